/*
 * store_upgrade.c - tables of the format before become current ones, in place.
 *
 *     format 1  no rows actor/<name>; a planned erasure is erase/<seq> of its actor; no counters;
 *               an actor's row has a sum over its entries, and no peaks; no folds
 *     format 2  was never released
 *     format 3  store.c, erase.c
 *
 * U1  Until the last transaction, which also writes the identity, the tables are those of format 1
 *     for every program: what is added before has no meaning there.
 * U2  How far the names are is written with them, and with the position of the tables.  A program
 *     of format 1 that has written meanwhile has moved that position: then all is done again.
 * U3  Before the identity changes it is counted whether each actor has its name's row.
 * U4  Entries do not change: what was made of an actor's first ones stays right whoever writes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

/* Names, and entries, in one transaction. */
#define BATCH 8192
#define ENTRY_BATCH UINT64_C(262144)

typedef struct upgrade {
    cx_store *store;
    uint64_t actors; /* the data directory itself included */
    uint64_t entries_done;
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
    cx_db_statement *former, *get_edge, *put_edge, *leaves, *put_actor;
} upgrade;

static cx_status ask_number(cx_db *db, const char *sql, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        *out = row ? (uint64_t)cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    return status;
}

/* --- how far it is (U2) ----------------------------------------------------------------------- */

typedef struct mark_text {
    char text[96];
} mark_text;

static void make_mark(const upgrade *u, uint64_t next, mark_text *out)
{
    (void)snprintf(out->text, sizeof out->text, "%" PRIu64 " %" PRIu64 " %" PRIu64,
                   u->store->flushed.commit, u->store->flushed.frames, next);
}

static cx_status put_mark(upgrade *u, uint64_t next, cx_err *err)
{
    mark_text mark;
    cx_db_statement *put = u->store->writing.put_meta;
    make_mark(u, next, &mark);
    cx_db_bind_text(put, 1, CX_STR("upgrade"));
    cx_db_bind_text(put, 2, cx_str_z(mark.text));
    return cx_db_execute(put, err);
}

/* The next actor; 1 = from the beginning. */
static cx_status read_mark(upgrade *u, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    mark_text expected;
    *out = 1;
    CX_TRY(cx_db_prepare(u->store->writing.db, "SELECT value FROM meta WHERE name='upgrade'",
                         &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row) {
        const cx_str found = cx_db_text(statement, 0);
        for (uint64_t next = BATCH + 1; next <= u->actors; next += BATCH) {
            make_mark(u, next, &expected);
            if (cx_str_is(found, expected.text))
                *out = next;
        }
        make_mark(u, u->actors, &expected);
        if (cx_str_is(found, expected.text))
            *out = u->actors;
    }
    cx_db_finish(statement);
    return status;
}

/* --- names ------------------------------------------------------------------------------------ */

/* A row of the format before; the text is borrowed until the next one. */
typedef struct former_row {
    cx_actor_row row;
    uint64_t entry_sum;
} former_row;

static cx_status read_former(upgrade *u, int64_t id, former_row *out, cx_err *err)
{
    cx_db_statement *statement = u->former;
    bool there = false;
    cx_db_reset(statement);
    cx_db_bind_int(statement, 1, id);
    CX_TRY(cx_db_step(statement, &there, err));
    if (!there)
        return cx_store_damaged("an actor's row is missing", err);
    cx_actor_row *row = &out->row;
    *row = (cx_actor_row){.id = cx_db_int(statement, 0), .name = cx_db_text(statement, 1)};
    if (!cx_scheme_parse(cx_db_text(statement, 2), &row->scheme))
        return cx_store_damaged("an actor's row names no known scheme", err);
    uint64_t *numbers[] = {&row->entries, &row->snapshots, &row->live,     &row->dead,
                           &row->edges,   &out->entry_sum, &row->state_sum};
    for (int i = 0; i < 7; i++)
        *numbers[i] = (uint64_t)cx_db_int(statement, 3 + i);
    const bool named = id == CX_ACTOR_HOME
                           ? row->name.size == 0
                           : row->name.size != 0 && row->name.size <= CX_ACTOR_SIZE_MAX;
    return named && cx_db_int(statement, 10) ==
                        (int64_t)cx_store_sum_former_actor(row, out->entry_sum)
               ? CX_SUCCESS
               : cx_store_damaged("an actor's row is damaged", err);
}

static cx_status put_names(upgrade *u, uint64_t from, uint64_t to, cx_err *err)
{
    former_row former;
    for (uint64_t id = from; id < to; id++) {
        CX_TRY(read_former(u, (int64_t)id, &former, err));
        CX_TRY(cx_store_write_actor_name(u->store, (int64_t)id, former.row.name, err));
    }
    return put_mark(u, to, err);
}

static cx_status
in_transaction(upgrade *u, uint64_t from, uint64_t to,
               cx_status (*work)(upgrade *u, uint64_t from, uint64_t to, cx_err *err), cx_err *err)
{
    cx_db *db = u->store->writing.db;
    CX_TRY(cx_db_begin_write(db, err));
    cx_status status = work(u, from, to, err);
    if (!cx_failed(status))
        status = cx_db_commit(db, err);
    if (cx_failed(status))
        cx_db_rollback(db);
    return status;
}

/* --- journals (U4) ---------------------------------------------------------------------------- */

/* What is known of an actor's journal so far. */
typedef struct journal_part {
    cx_mmr_edge edge;
    uint64_t sum; /* of its entries */
} journal_part;

static cx_status read_part(upgrade *u, int64_t id, journal_part *out, cx_err *err)
{
    bool there = false;
    cx_db_bind_int(u->get_edge, 1, id);
    cx_status status = cx_db_step(u->get_edge, &there, err);
    out->edge.size = out->edge.peaks.count = 0;
    out->sum = 0;
    if (!cx_failed(status) && there) {
        const cx_bytes peaks = cx_db_bytes(u->get_edge, 2);
        const uint64_t size = (uint64_t)cx_db_int(u->get_edge, 0);
        const size_t count = (size_t)__builtin_popcountll(size);
        if (peaks.size != count * sizeof(cx_digest))
            status = cx_store_damaged("what an upgrade has kept is damaged", err);
        else if (!cx_vec_reserve(&out->edge.peaks, count, u->store->alloc))
            status = cx_fail_nomem(err);
        else if (count != 0)
            memcpy(out->edge.peaks.items, peaks.data, peaks.size);
        out->edge.size = size;
        out->edge.peaks.count = count;
        out->sum = (uint64_t)cx_db_int(u->get_edge, 1);
    }
    cx_db_reset(u->get_edge);
    return status;
}

static cx_bytes bytes_of_peaks(const cx_mmr_edge *edge)
{
    return cx_bytes_from((const uint8_t *)edge->peaks.items, edge->peaks.count * sizeof(cx_digest));
}

static cx_status write_part(upgrade *u, int64_t id, const journal_part *part, cx_err *err)
{
    cx_db_bind_int(u->put_edge, 1, id);
    cx_db_bind_int(u->put_edge, 2, (int64_t)part->edge.size);
    cx_db_bind_int(u->put_edge, 3, (int64_t)part->sum);
    cx_db_bind_bytes(u->put_edge, 4, bytes_of_peaks(&part->edge));
    return cx_db_execute(u->put_edge, err);
}

static cx_status add_leaf(upgrade *u, const cx_actor_row *row, journal_part *part,
                          const cx_db_statement *statement, cx_err *err)
{
    const cx_bytes bytes = cx_db_bytes(statement, 1);
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t count = 0;
    cx_digest leaf;
    if (bytes.size != sizeof leaf.bytes || (uint64_t)cx_db_int(statement, 0) != part->edge.size)
        return cx_store_damaged("an entry's row is missing", err);
    memcpy(leaf.bytes, bytes.data, sizeof leaf.bytes);
    part->sum += cx_sum_of_entry(part->edge.size, &leaf);
    CX_TRY(
        cx_mmr_edge_append(&part->edge, row->scheme, u->store->alloc, &leaf, folds, &count, err));
    for (size_t i = 0; i < count; i++) {
        const cx_fold_row fold = {row->id, folds[i]};
        CX_TRY(cx_store_write_fold(u->store, &fold, err));
    }
    return CX_SUCCESS;
}

/* The entries of one actor from where it is up to `end`. */
static cx_status add_leaves(upgrade *u, const cx_actor_row *row, journal_part *part, uint64_t end,
                            cx_err *err)
{
    cx_db_bind_int(u->leaves, 1, row->id);
    cx_db_bind_int(u->leaves, 2, (int64_t)part->edge.size);
    cx_db_bind_int(u->leaves, 3, (int64_t)end);
    cx_status status = CX_SUCCESS;
    while (part->edge.size < end && !cx_failed(status)) {
        bool more = false;
        status = cx_db_step(u->leaves, &more, err);
        if (!cx_failed(status))
            status = more ? add_leaf(u, row, part, u->leaves, err)
                          : cx_store_damaged("an entry's row is missing", err);
    }
    cx_db_reset(u->leaves);
    return status;
}

/* Continues one actor's journal by at most *left entries. */
static cx_status continue_journal(upgrade *u, int64_t id, journal_part *part, uint64_t *left,
                                  bool *out_whole, cx_err *err)
{
    former_row former;
    CX_TRY(read_former(u, id, &former, err));
    CX_TRY(read_part(u, id, part, err));
    const uint64_t entries = former.row.entries, from = part->edge.size;
    if (from > entries)
        return cx_store_damaged("an actor has fewer entries than it had", err);
    const uint64_t end = entries - from < *left ? entries : from + *left;
    CX_TRY(add_leaves(u, &former.row, part, end, err));
    *left -= end - from;
    u->entries_done += end - from;
    *out_whole = end == entries;
    if (*out_whole && part->sum != former.entry_sum)
        return cx_store_damaged("the rows of an actor's entries do not add up", err);
    /* Of an actor without entries nothing need be kept. */
    return end == from ? CX_SUCCESS : write_part(u, id, part, err);
}

/* The actors `from` .. `to` - 1 in as many transactions as it takes. */
static cx_status make_journals(upgrade *u, cx_err *err)
{
    cx_db *db = u->store->writing.db;
    journal_part part = {.sum = 0};
    cx_status status = CX_SUCCESS;
    for (uint64_t id = 0; id < u->actors && !cx_failed(status);) {
        uint64_t left = ENTRY_BATCH;
        status = cx_db_begin_write(db, err);
        while (!cx_failed(status) && left != 0 && id < u->actors) {
            bool whole = false;
            status = continue_journal(u, (int64_t)id, &part, &left, &whole, err);
            id += whole ? 1 : 0;
        }
        if (!cx_failed(status))
            status = cx_db_commit(db, err);
        if (!cx_failed(status) && u->progress != NULL)
            u->progress(u->progress_arg, "tables", u->actors + id, 2 * u->actors);
    }
    if (cx_failed(status))
        cx_db_rollback(db);
    cx_vec_done(&part.edge.peaks, u->store->alloc);
    return status;
}

/* --- the last transaction --------------------------------------------------------------------- */

typedef struct moved_plan {
    uint8_t key[CX_ERASE_PREFIX_SIZE + 16];
} moved_plan;

/* A plan erase/<seq> of an actor becomes erase/<actor><seq> of the data directory. */
static cx_status move_plan(upgrade *u, int64_t actor, cx_bytes key, cx_bytes value, cx_err *err)
{
    moved_plan moved;
    if (key.size != CX_ERASE_PREFIX_SIZE + 8)
        return cx_store_damaged("a row of a planned erasure is damaged", err);
    memcpy(moved.key, CX_ERASE_PREFIX, CX_ERASE_PREFIX_SIZE);
    for (unsigned i = 0; i < 8; i++)
        moved.key[CX_ERASE_PREFIX_SIZE + i] = (uint8_t)((uint64_t)actor >> (8 * (7 - i)));
    memcpy(moved.key + CX_ERASE_PREFIX_SIZE + 8, key.data + CX_ERASE_PREFIX_SIZE, 8);
    return cx_store_write_record(u->store, CX_ACTOR_HOME,
                                 cx_bytes_from(moved.key, sizeof moved.key), value, err);
}

typedef struct plan_moving {
    upgrade *u;
    int64_t actor;
} plan_moving;

static cx_status move_one(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    plan_moving *moving = arg;
    (void)stop;
    return move_plan(moving->u, moving->actor, key, value, err);
}

/* Planned erasures are few, but an actor with one cannot be found without asking each. */
static cx_status move_plans(upgrade *u, cx_err *err)
{
    for (uint64_t id = 1; id < u->actors; id++) {
        plan_moving moving = {u, (int64_t)id};
        CX_TRY(cx_store_scan(u->store, (int64_t)id, cx_str_bytes(CX_STR(CX_ERASE_PREFIX)),
                             (cx_bytes){NULL, 0}, false, move_one, &moving, err));
    }
    return cx_db_run(u->store->writing.db,
                     "DELETE FROM record WHERE actor > 0 AND actor IN (SELECT id FROM actor)"
                     " AND key >= CAST('erase/' AS BLOB) AND key < CAST('erase0' AS BLOB)",
                     err);
}

/* U3 */
static cx_status check_names(upgrade *u, cx_err *err)
{
    uint64_t names = 0;
    CX_TRY(ask_number(u->store->writing.db,
                      "SELECT count(*) FROM record WHERE actor=0 AND key >= CAST('actor/' AS BLOB)"
                      " AND key < CAST('actor0' AS BLOB)",
                      &names, err));
    return names + 1 == u->actors ? CX_SUCCESS
                                  : cx_store_damaged("the names of actors are not as many as they"
                                                     " are",
                                                     err);
}

static cx_status move_actor(upgrade *u, int64_t id, journal_part *part, cx_err *err)
{
    former_row former;
    CX_TRY(read_former(u, id, &former, err));
    CX_TRY(read_part(u, id, part, err));
    if (part->edge.size != former.row.entries)
        return cx_store_damaged("an actor got entries while its tables were upgraded", err);
    former.row.peaks = bytes_of_peaks(&part->edge);
    u->store->writing.put_actor = u->put_actor;
    cx_status status = cx_store_write_actor(u->store, &former.row, err);
    u->store->writing.put_actor = NULL;
    return status;
}

/* The table of actors with its current columns. */
static cx_status move_actors(upgrade *u, cx_err *err)
{
    cx_db *db = u->store->writing.db;
    journal_part part = {.sum = 0};
    char sql[1024];
    (void)snprintf(sql, sizeof sql, cx_store_actor_schema, "actor_now");
    CX_TRY(cx_db_run(db, sql, err));
    CX_TRY(cx_db_prepare(db, "INSERT INTO actor_now VALUES(?,?,?,?,?,?,?,?,?,?,?)", &u->put_actor,
                         err));
    cx_status status = CX_SUCCESS;
    for (uint64_t id = 0; id < u->actors && !cx_failed(status); id++)
        status = move_actor(u, (int64_t)id, &part, err);
    cx_vec_done(&part.edge.peaks, u->store->alloc);
    cx_db_finish(u->put_actor);
    cx_db_reset(u->former);
    CX_TRY(status);
    return cx_db_run(db,
                     "DROP TABLE actor; ALTER TABLE actor_now RENAME TO actor;"
                     " DROP TABLE journal_part",
                     err);
}

static cx_status finish(upgrade *u, uint64_t from, uint64_t to, cx_err *err)
{
    cx_store *store = u->store;
    cx_db *db = store->writing.db;
    cx_db_statement *put = store->writing.put_meta;
    cx_store_counters counters = {.actors = u->actors};
    (void)from;
    (void)to;
    CX_TRY(move_plans(u, err));
    CX_TRY(check_names(u, err));
    CX_TRY(move_actors(u, err));
    CX_TRY(ask_number(db, "SELECT count(*) FROM entry", &counters.entries, err));
    CX_TRY(ask_number(db,
                      "SELECT (SELECT count(*) FROM record) - (SELECT count(*) FROM record"
                      " WHERE actor=0 AND key >= CAST('erase/' AS BLOB)"
                      " AND key < CAST('erase0' AS BLOB))",
                      &counters.records, err));
    CX_TRY(cx_db_run(db, "DELETE FROM meta WHERE name='upgrade'", err));
    cx_db_bind_text(put, 1, CX_STR("identity"));
    cx_db_bind_text(put, 2, store->identity);
    CX_TRY(cx_db_execute(put, err));
    CX_TRY(cx_store_put_position(store, store->identity, store->flushed, &counters, err));
    store->flushing_counters = counters;
    return CX_SUCCESS;
}

static cx_status prepare(upgrade *u, cx_err *err)
{
    cx_db *db = u->store->writing.db;
    CX_TRY(cx_db_run(db,
                     "CREATE TABLE IF NOT EXISTS journal_part(id INTEGER PRIMARY KEY,"
                     " entries INTEGER NOT NULL, entry_sum INTEGER NOT NULL, peaks BLOB NOT NULL)",
                     err));
    CX_TRY(cx_db_prepare(db,
                         "SELECT id, name, scheme, entries, snapshots, live, dead, edges,"
                         " entry_sum, state_sum, sum FROM actor WHERE id=?",
                         &u->former, err));
    CX_TRY(cx_db_prepare(db, "SELECT entries, entry_sum, peaks FROM journal_part WHERE id=?",
                         &u->get_edge, err));
    CX_TRY(cx_db_prepare(db, "INSERT OR REPLACE INTO journal_part VALUES(?,?,?,?)", &u->put_edge,
                         err));
    return cx_db_prepare(db,
                         "SELECT seq, leaf FROM entry WHERE actor=? AND seq>=? AND seq<?"
                         " ORDER BY seq",
                         &u->leaves, err);
}

static cx_status run(upgrade *u, cx_err *err)
{
    uint64_t next = 1;
    CX_TRY(prepare(u, err));
    CX_TRY(read_mark(u, &next, err));
    while (next < u->actors) {
        const uint64_t to = u->actors - next < BATCH ? u->actors : next + BATCH;
        CX_TRY(in_transaction(u, next, to, put_names, err));
        next = to;
        if (u->progress != NULL)
            u->progress(u->progress_arg, "tables", next, 2 * u->actors);
    }
    CX_TRY(make_journals(u, err));
    return in_transaction(u, 0, 0, finish, err);
}

cx_status cx_store_upgrade(cx_store *store,
                           void (*progress)(void *arg, const char *what, uint64_t done,
                                            uint64_t total),
                           void *arg, cx_err *err)
{
    CX_ASSERT(store->format == CX_TABLES_BEFORE && !store->shared && store->writing.db != NULL);
    upgrade u = {.store = store, .progress = progress, .progress_arg = arg};
    CX_TRY(cx_store_count_actors(store, &u.actors, err));
    cx_status status = run(&u, err);
    cx_db_finish(u.former);
    cx_db_finish(u.get_edge);
    cx_db_finish(u.put_edge);
    cx_db_finish(u.leaves);
    CX_TRY(status);
    store->counters = store->flushing_counters;
    store->format = CX_TABLES_NOW;
    return cx_store_prepare_actors(store, err);
}
