/*
 * repair.c - damaged rows of the tables, found and repaired.
 */
#include "ledger/check/repair.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "ledger/find/hash_rows.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

/* Pages of one tree, or nodes of one journal, that are repaired in one go; more need a rebuild. */
#define REPAIRED_AT_ONCE 256
/* Leaves below one damaged page that are made from the records: 64 MB. */
#define PAIRS_MAX ((size_t)1 << 20)
/* `born` of a row that came back; no snapshot has that number. */
#define CAME_BACK ((uint64_t)1 << 62)

typedef struct repairing {
    cx_home *home;
    const cx_tables_repairing *how;
    cx_tables_check *out;
    cx_actor *actor;
} repairing;

typedef struct page_list {
    cx_pages_damage items[REPAIRED_AT_ONCE];
    char whys[REPAIRED_AT_ONCE][CX_ERR_MESSAGE_SIZE];
    size_t count;
    bool more;
} page_list;

static const char *const tree_names[] = {"memories", "edges"};

static cx_status report(repairing *m, cx_table_damage *damage, cx_err *err)
{
    m->out->damaged++;
    m->out->repaired += damage->repaired ? 1 : 0;
    if (m->actor != NULL)
        damage->actor = m->actor->info.name;
    if (!damage->repaired && damage->left == NULL)
        damage->left = m->how->repair ? "only a rebuild makes it again" : "";
    return m->how->found(m->how->arg, damage, err);
}

/* What cannot be repaired here: a row that does not have its checksum. */
static cx_status report_rows(repairing *m, const char *what, const cx_err *reason, cx_err *err)
{
    cx_table_damage damage = {.what = what, .why = reason->message};
    return report(m, &damage, err);
}

/* Damage is reported and the rest goes on; other failures end the check. */
static cx_status go_on_after(repairing *m, const char *what, cx_status status, const cx_err *reason,
                             cx_err *err)
{
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code == CX_E_FORMAT)
        return report_rows(m, what, reason, err);
    return cx_fail_at(err, status.code, reason->tag, CX_NO_OFFSET, "%s", reason->message);
}

/* --- leaves made from the records ------------------------------------------------------------- */

typedef struct pair_list {
    const repairing *m;
    const cx_pages_damage *where;
    CX_VEC(cx_smt_pair) pairs;
    size_t at;
} pair_list;

static bool is_below(const cx_digest *key, const cx_pages_damage *where)
{
    uint64_t word = 0;
    for (size_t i = 0; i < sizeof word; i++)
        word = word << 8 | key->bytes[i];
    const unsigned depth = where->depth < 64 ? where->depth : 64;
    return depth == 0 || (word ^ where->prefix) >> (64 - depth) == 0;
}

static cx_status add_pair(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    pair_list *list = arg;
    const cx_scheme scheme = list->m->actor->info.scheme;
    cx_smt_pair pair;
    bool edge = false;
    (void)stop;
    if (!cx_state_key(scheme, key, &pair.key, &edge) || !is_below(&pair.key, list->where))
        return CX_SUCCESS;
    if (!cx_value_erased(value, &pair.value))
        pair.value = cx_scheme_value(scheme, value);
    if (list->pairs.count >= PAIRS_MAX)
        return cx_fail(err, CX_E_LIMIT, "more than %zu leaves are below it", PAIRS_MAX);
    cx_smt_pair *slot = cx_vec_push(&list->pairs, list->m->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = pair;
    return CX_SUCCESS;
}

static int compare_pairs(const void *a, const void *b)
{
    return memcmp(((const cx_smt_pair *)a)->key.bytes, ((const cx_smt_pair *)b)->key.bytes,
                  sizeof(cx_digest));
}

static cx_status next_pair(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err)
{
    pair_list *list = arg;
    (void)err;
    *out_more = list->at < list->pairs.count;
    if (*out_more)
        *out = list->pairs.items[list->at++];
    return CX_SUCCESS;
}

static cx_status read_pairs(pair_list *list, unsigned which, cx_err *err)
{
    const cx_str prefix = which == CX_TREE_EDGES ? CX_STR(CX_EDGE_PREFIX) : CX_STR(CX_HEAD_PREFIX);
    CX_TRY(cx_store_scan(&list->m->home->store, list->m->actor->id, cx_str_bytes(prefix),
                         (cx_bytes){NULL, 0}, false, add_pair, list, err));
    if (list->pairs.count != 0)
        qsort(list->pairs.items, list->pairs.count, sizeof *list->pairs.items, compare_pairs);
    return CX_SUCCESS;
}

/* --- pages ------------------------------------------------------------------------------------ */

static cx_status count_came_back(cx_db *db, const char *sql, uint64_t tree, uint64_t *out,
                                 cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_db_bind_int(statement, 1, (int64_t)tree);
    cx_db_bind_int(statement, 2, (int64_t)CAME_BACK);
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        *out += row ? (uint64_t)cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    return status;
}

static cx_status set_born(cx_db *db, const char *sql, uint64_t tree, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_db_bind_int(statement, 1, (int64_t)tree);
    cx_db_bind_int(statement, 2, (int64_t)CAME_BACK);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

/* Without a snapshot ever made all rows came before the first one. */
static cx_status finish_came_back(const repairing *m, uint64_t tree, cx_err *err)
{
    cx_db *db = m->home->store.writing.db;
    uint64_t count = 0;
    CX_TRY(count_came_back(db, "SELECT count(*) FROM leaf WHERE tree=? AND born=?", tree, &count,
                           err));
    CX_TRY(count_came_back(db, "SELECT count(*) FROM page WHERE tree=? AND born=?", tree, &count,
                           err));
    if (count == 0)
        return CX_SUCCESS;
    if (m->actor->info.snapshot_count != 0)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "a row was lost, and nothing tells before which snapshot it came; only a "
                          "rebuild makes it again");
    CX_TRY(set_born(db, "UPDATE leaf SET born=0 WHERE tree=? AND born=?", tree, err));
    return set_born(db, "UPDATE page SET born=0 WHERE tree=? AND born=?", tree, err);
}

static cx_status repair_with(const repairing *m, const cx_pages_damage *where,
                             const cx_pages_anchor *anchor, pair_list *list, cx_err *err)
{
    cx_store *store = &m->home->store;
    CX_TRY(cx_db_begin_write(store->writing.db, err));
    cx_status status = cx_pages_repair(store->writing.pages, anchor, where->level, where->prefix,
                                       list != NULL ? next_pair : NULL, list, CAME_BACK, err);
    if (!cx_failed(status))
        status = finish_came_back(m, anchor->tree, err);
    if (!cx_failed(status))
        status = cx_db_commit(store->writing.db, err);
    if (cx_failed(status))
        cx_db_rollback(store->writing.db);
    cx_pages_forget(store->writing.pages);
    return status;
}

/* From its leaves; where these are damaged too, from the records. */
static cx_status repair_page(const repairing *m, unsigned which, const cx_pages_damage *where,
                             cx_err *err)
{
    const cx_pages_anchor *anchor = &m->actor->trees[which];
    pair_list list = {.m = m, .where = where};
    cx_status status = repair_with(m, where, anchor, NULL, err);
    if (status.code != CX_E_FORMAT && status.code != CX_E_NOT_FOUND)
        return status;
    status = read_pairs(&list, which, err);
    if (!cx_failed(status))
        status = repair_with(m, where, anchor, &list, err);
    cx_vec_done(&list.pairs, m->home->alloc);
    return status;
}

static cx_status note_page(void *arg, const cx_pages_damage *where, const char *why, cx_err *err)
{
    page_list *list = arg;
    (void)err;
    list->more = list->count == REPAIRED_AT_ONCE;
    if (list->more)
        return CX_SUCCESS;
    (void)snprintf(list->whys[list->count], sizeof list->whys[0], "%s", why);
    list->items[list->count++] = *where;
    return CX_SUCCESS;
}

static cx_status report_page(repairing *m, unsigned which, const cx_pages_damage *where,
                             const char *why, cx_err *err)
{
    cx_table_damage damage = {.what = tree_names[which], .why = why};
    cx_err reason = {0};
    (void)snprintf(damage.where, sizeof damage.where, "page %016llx/%u of level %u",
                   (unsigned long long)where->prefix, where->depth, where->level);
    if (m->how->repair) {
        cx_status status = repair_page(m, which, where, &reason);
        if (status.code == CX_E_NOMEM || status.code == CX_E_IO)
            return cx_fail(err, status.code, "%s", reason.message);
        damage.repaired = !cx_failed(status);
        damage.left = reason.message;
    }
    return report(m, &damage, err);
}

static cx_status check_tree(repairing *m, unsigned which, page_list *list, cx_err *err)
{
    cx_err reason = {0};
    uint64_t pages = 0;
    list->count = 0;
    cx_status status = cx_pages_check(m->home->store.reading.pages, &m->actor->trees[which],
                                      note_page, list, &pages, &reason);
    m->out->pages += pages;
    CX_TRY(go_on_after(m, tree_names[which], status, &reason, err));
    for (size_t i = 0; i < list->count; i++)
        CX_TRY(report_page(m, which, &list->items[i], list->whys[i], err));
    if (list->more) {
        cx_table_damage damage = {.what = tree_names[which],
                                  .why = "there are more damaged pages than are named"};
        CX_TRY(report(m, &damage, err));
    }
    return CX_SUCCESS;
}

/* --- journals --------------------------------------------------------------------------------- */

typedef struct journal_walk {
    repairing *m;
    cx_mmr_edge edge;
    cx_fold_row wrong[REPAIRED_AT_ONCE];
    size_t wrong_count;
    bool more;
} journal_walk;

/* A node as it follows from the leaves, against its row. */
static cx_status compare_fold(journal_walk *walk, const cx_mmr_fold *fold, cx_err *err)
{
    cx_digest stored;
    cx_err reason = {0};
    cx_status status = cx_store_read_journal(&walk->m->home->store, walk->m->actor->id, fold->level,
                                             fold->number, 1, &stored, &reason);
    walk->m->out->nodes++;
    if (cx_failed(status) && status.code != CX_E_FORMAT)
        return cx_fail(err, status.code, "%s", reason.message);
    if (!cx_failed(status) && cx_digest_eq(&stored, &fold->hash))
        return CX_SUCCESS;
    walk->more = walk->wrong_count == REPAIRED_AT_ONCE;
    if (!walk->more)
        walk->wrong[walk->wrong_count++] = (cx_fold_row){walk->m->actor->id, *fold};
    return CX_SUCCESS;
}

static cx_status add_entry(void *arg, const cx_entry_row *entry, bool *stop, cx_err *err)
{
    journal_walk *walk = arg;
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t count = 0;
    (void)stop;
    if (entry->seq != walk->edge.size)
        return cx_store_damaged("an entry's row is missing", err);
    walk->m->out->entries++;
    CX_TRY(cx_mmr_edge_append(&walk->edge, walk->m->actor->info.scheme, walk->m->home->alloc,
                              &entry->leaf, folds, &count, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(compare_fold(walk, &folds[i], err));
    return CX_SUCCESS;
}

static bool is_edge(const cx_mmr_edge *a, const cx_mmr_edge *b)
{
    return a->size == b->size && a->peaks.count == b->peaks.count &&
           (a->peaks.count == 0 ||
            memcmp(a->peaks.items, b->peaks.items, a->peaks.count * sizeof *a->peaks.items) == 0);
}

static cx_status report_nodes(journal_walk *walk, cx_err *err)
{
    repairing *m = walk->m;
    if (walk->wrong_count != 0 && m->how->repair)
        CX_TRY(cx_store_repair_folds(&m->home->store, walk->wrong, walk->wrong_count, err));
    for (size_t i = 0; i < walk->wrong_count; i++) {
        const cx_mmr_fold *fold = &walk->wrong[i].fold;
        cx_table_damage damage = {.what = "journal",
                                  .why = "it is not what the leaves below it lead to",
                                  .repaired = m->how->repair};
        (void)snprintf(damage.where, sizeof damage.where, "node %llu of level %u",
                       (unsigned long long)fold->number, fold->level);
        CX_TRY(report(m, &damage, err));
    }
    if (!walk->more)
        return CX_SUCCESS;
    cx_table_damage damage = {.what = "journal",
                              .why = "there are more damaged nodes than are named"};
    return report(m, &damage, err);
}

static cx_status check_journal(repairing *m, cx_err *err)
{
    cx_err reason = {0};
    journal_walk *walk = cx_alloc_zeroed(m->home->alloc, 1, sizeof *walk);
    if (walk == NULL)
        return cx_fail_nomem(err);
    walk->m = m;
    cx_status status =
        cx_store_scan_entries(&m->home->store, m->actor->id, NULL, add_entry, walk, &reason);
    /* What is wrong with nodes is known only where the leaves lead to the actor's row. */
    if (cx_failed(status))
        status = go_on_after(m, "entry", status, &reason, err);
    else if (is_edge(&walk->edge, &m->actor->edge))
        status = report_nodes(walk, err);
    else {
        cx_table_damage damage = {.what = "entry",
                                  .why = "the leaves do not lead to the journal's root"};
        status = report(m, &damage, err);
    }
    cx_vec_done(&walk->edge.peaks, m->home->alloc);
    cx_alloc_free(m->home->alloc, walk, sizeof *walk);
    return status;
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status check_records(repairing *m, cx_err *err)
{
    cx_err reason = {0};
    cx_status status =
        cx_store_check_records(&m->home->store, m->actor->id, &m->out->records, &reason);
    return go_on_after(m, "record", status, &reason, err);
}

static cx_status check_actor(repairing *m, int64_t id, page_list *list, cx_err *err)
{
    cx_err reason = {0};
    cx_actor *actor = NULL;
    m->actor = NULL;
    cx_status status = cx_home_actor_numbered(m->home, id, &actor, &reason);
    if (cx_failed(status))
        return go_on_after(m, "actor", status, &reason, err);
    m->actor = actor;
    m->out->actors++;
    cx_actor_hold(actor);
    status = check_records(m, err);
    if (!cx_failed(status))
        status = check_journal(m, err);
    for (unsigned which = 0; which < 2 && !cx_failed(status); which++)
        status = check_tree(m, which, list, err);
    cx_actor_release(actor);
    return status;
}

static cx_status check_hashes(repairing *m, cx_err *err)
{
    cx_err reason = {0};
    uint64_t count = 0;
    cx_status status = cx_store_check_hashes(&m->home->store, &count, &reason);
    return go_on_after(m, "hash", status, &reason, err);
}

static cx_status check_all(repairing *m, cx_err *err)
{
    cx_home *home = m->home;
    cx_err reason = {0};
    page_list *list = cx_alloc_new(home->alloc, sizeof *list);
    if (list == NULL)
        return cx_fail_nomem(err);
    *list = (page_list){.count = 0};
    cx_status status = cx_db_check(home->store.reading.db, &reason);
    status = go_on_after(m, "database", status, &reason, err);
    for (int64_t id = 0; (uint64_t)id < home->actors.count && !cx_failed(status); id++)
        status = check_actor(m, id, list, err);
    if (!cx_failed(status))
        status = check_hashes(m, err);
    cx_alloc_free(home->alloc, list, sizeof *list);
    return status;
}

cx_status cx_home_check_tables(cx_home *home, const cx_tables_repairing *how, cx_tables_check *out,
                               cx_err *err)
{
    repairing m = {.home = home, .how = how, .out = out};
    *out = (cx_tables_check){.usable = true};
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "checking the tables", err);
    CX_ASSERT(!how->repair || !home->read_only);
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_lock_txn(home, err);
    if (!cx_failed(status)) {
        out->usable = !home->store.shared;
        if (out->usable)
            status = how->repair ? cx_home_drain_locked(home, err)
                                 : cx_home_flush_wait_locked(home, err);
        if (out->usable && !cx_failed(status))
            status = check_all(&m, err);
        cx_pages_forget(home->store.reading.pages);
        cx_home_unlock_txn(home);
    }
    cx_lock_leave(&home->lock);
    return status;
}
