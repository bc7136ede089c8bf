/*
 * test_home_actors.c - more actors than memory keeps: those that left are read again and are what
 * they were, all of them are met in order, a lost name is told and never becomes a new actor, and
 * tables of the format before are brought up to date, also when that is interrupted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { LIMIT = 3, ACTORS = 40, ROUNDS = 3, MANY = 700, NUMBERS = 20000 };

typedef struct place {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_arena arena;
    cx_err err;
} place;

static bool place_open(place *p, size_t limit)
{
    cx_home_options options = kit_options();
    options.actor_limit = limit;
    CHECK_STATUS(cx_home_open(p->path, &options, &p->home, &p->err), &p->err);
    return p->home != NULL;
}

static bool place_init(place *p, const char *name, size_t limit)
{
    const cx_home_options options = kit_options();
    *p = (place){.home = NULL};
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    folder_fresh(p->path, name);
    CHECK_STATUS(cx_home_create(p->path, CX_SCHEME_CORTEX_1, &options, &p->err), &p->err);
    return place_open(p, limit);
}

static void place_close(place *p)
{
    CHECK_STATUS(cx_home_close(p->home, &p->err), &p->err);
    p->home = NULL;
}

static void place_done(place *p)
{
    place_close(p);
    cx_arena_done(&p->arena);
    folder_remove(p->path);
}

static cx_str name_of(unsigned number, char out[32])
{
    (void)snprintf(out, 32, "agent-%05u", number);
    return cx_str_z(out);
}

static void append(place *p, cx_str actor, unsigned what)
{
    cx_txn *txn;
    uint64_t commit;
    char text[32];
    (void)snprintf(text, sizeof text, "payload %u", what);
    const cx_entry_draft draft = {
        .kind = CX_STR("raw"), .created_at_ns = what, .payload = cx_str_bytes(cx_str_z(text))};
    CHECK_STATUS(cx_txn_begin(p->home, actor, &txn, &p->err), &p->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &p->err), &p->err);
    CHECK_STATUS(cx_txn_commit_later(txn, &commit, &p->err), &p->err);
}

/* Writes to each in turn; with `flushed`, all of them may leave in between. */
static void write_rounds(place *p, bool flushed)
{
    char name[32];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < ACTORS; i++) {
            append(p, name_of(i, name), 100 * round + i);
            cx_manifest manifest;
            if ((i + round) % 7 == 0)
                CHECK_STATUS(cx_snapshot_make(p->home, name_of(i, name), CX_STR("explicit"), 7,
                                              &p->arena, &manifest, &p->err),
                             &p->err);
            if ((i + round) % 14 == 7 && round > 0 && i % 7 == 0)
                CHECK_STATUS(
                    cx_snapshot_drop(p->home, name_of(i, name), 0, CX_STR("me"), 8, &p->err),
                    &p->err);
            if (flushed && i % 5 == 4)
                CHECK_STATUS(cx_home_flush(p->home, &p->err), &p->err);
        }
    }
}

static void check_equal(place *a, place *b)
{
    cx_home_root one, other;
    char name[32];
    for (unsigned i = 0; i < ACTORS; i++) {
        cx_roots left, right;
        cx_actor_info x, y;
        cx_str actor = name_of(i, name);
        CHECK_STATUS(cx_home_roots(a->home, actor, &left, &a->err), &a->err);
        CHECK_STATUS(cx_home_roots(b->home, actor, &right, &b->err), &b->err);
        CHECK(cx_digest_eq(&left.overall, &right.overall));
        CHECK_STATUS(cx_home_actor(a->home, actor, &x, &a->err), &a->err);
        CHECK_STATUS(cx_home_actor(b->home, actor, &y, &b->err), &b->err);
        CHECK(x.entry_count == y.entry_count && x.snapshot_count == y.snapshot_count);
    }
    CHECK_STATUS(cx_home_root_now(a->home, &one, &a->err), &a->err);
    CHECK_STATUS(cx_home_root_now(b->home, &other, &b->err), &b->err);
    CHECK(one.actors == ACTORS && cx_digest_eq(&one.root, &other.root));
}

CX_TEST(home_actors_leave_memory_and_return)
{
    place few, all;
    REQUIRE(place_init(&few, "actors_few", LIMIT));
    REQUIRE(place_init(&all, "actors_all", 0));
    write_rounds(&few, true);
    write_rounds(&all, false);
    CHECK_STATUS(cx_home_flush(few.home, &few.err), &few.err);
    check_equal(&few, &all);
    CHECK(few.home->actors.held.count < ACTORS / 2);
    CHECK_INT(all.home->actors.held.count, ACTORS + 1);
    place_close(&few);
    REQUIRE(place_open(&few, LIMIT));
    CHECK_INT(few.home->actors.held.count, 1); /* the home itself */
    check_equal(&few, &all);
    write_rounds(&few, true);
    write_rounds(&all, true);
    check_equal(&few, &all);
    place_close(&few);
    (void)CHECK_HOLDS(few.path, true, NULL);
    REQUIRE(place_open(&few, LIMIT));
    place_done(&few);
    place_done(&all);
}

/* --- all of them ------------------------------------------------------------------------------ */

static void check_walk(place *p, unsigned count)
{
    cx_actor_walk walk;
    const cx_actor_info *info = NULL;
    unsigned seen = 0;
    char name[32];
    cx_actor_walk_begin(&walk, p->home);
    for (;;) {
        CHECK_STATUS(cx_actor_walk_next(&walk, &info, &p->err), &p->err);
        if (info == NULL)
            break;
        CHECK(cx_str_eq(info->name, name_of(seen, name)));
        CHECK_INT(info->entry_count, 1 + (seen % 3 == 0 ? 1 : 0));
        seen++;
    }
    cx_actor_walk_end(&walk);
    CHECK_INT(seen, count);
    const cx_actor_info *infos;
    size_t all = 0;
    CHECK_STATUS(cx_home_actors(p->home, &p->arena, &infos, &all, &p->err), &p->err);
    CHECK_INT(all, count);
    CHECK(cx_str_eq(infos[count - 1].name, name_of(count - 1, name)));
}

CX_TEST(home_actors_are_met_in_order)
{
    place p;
    char name[32];
    cx_tables_status tables;
    REQUIRE(place_init(&p, "actors_walk", LIMIT));
    for (unsigned i = 0; i < MANY; i++)
        append(&p, name_of(i, name), i);
    CHECK_STATUS(cx_home_flush(p.home, &p.err), &p.err);
    /* Some are changed in memory, the others are in the tables only. */
    for (unsigned i = 0; i < MANY; i += 3)
        append(&p, name_of(i, name), i);
    check_walk(&p, MANY);
    CHECK_STATUS(cx_home_flush(p.home, &p.err), &p.err);
    CHECK_STATUS(cx_home_tables_status(p.home, &tables, &p.err), &p.err);
    CHECK_INT(tables.entry_rows, MANY + (MANY + 2) / 3);
    uint64_t entries = 0, records = 0;
    CHECK_STATUS(cx_home_count_rows(p.home, &entries, &records, &p.err), &p.err);
    CHECK(entries == tables.entry_rows && records == tables.record_rows);
    place_close(&p);
    REQUIRE(place_open(&p, LIMIT));
    check_walk(&p, MANY);
    place_done(&p);
}

/* --- names that are lost ---------------------------------------------------------------------- */

static void change_tables(place *p, const char *sql)
{
    char path[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    (void)snprintf(path, sizeof path, "%s/cortex.db", p->path);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &p->err)));
    CHECK_STATUS(cx_db_run(db, sql, &p->err), &p->err);
    cx_db_close(db);
}

static uint64_t commits_of(place *p)
{
    CHECK_STATUS(cx_home_sync(p->home, &p->err), &p->err);
    return cx_home_durable(p->home);
}

CX_TEST(home_actor_whose_name_is_lost_is_not_a_new_one)
{
    static const char *const changes[] = {
        "DELETE FROM record WHERE actor=0 AND key=CAST('actor/agent-00007' AS BLOB)",
        "UPDATE record SET key=CAST('actor/agent-0000x' AS BLOB) WHERE actor=0 AND"
        " key=CAST('actor/agent-00007' AS BLOB)",
        "UPDATE actor SET name='agent-0000x' WHERE name='agent-00007'",
        "UPDATE record SET value=(SELECT value FROM record WHERE actor=0 AND"
        " key=CAST('actor/agent-00008' AS BLOB)) WHERE key=CAST('actor/agent-00007' AS BLOB)",
        "DELETE FROM actor WHERE name='agent-00007'"};
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        place p;
        char name[32];
        cx_txn *txn = NULL;
        REQUIRE(place_init(&p, "actors_lost", 0));
        for (unsigned j = 0; j < 20; j++)
            append(&p, name_of(j, name), j);
        place_close(&p);
        change_tables(&p, changes[i]);
        REQUIRE(place_open(&p, 0));
        uint64_t before = commits_of(&p);
        CHECK_INT(cx_txn_begin(p.home, CX_STR("agent-00007"), &txn, &p.err).code, CX_E_FORMAT);
        CHECK_STR(cx_str_z(p.err.tag), "DatabaseDamaged");
        append(&p, CX_STR("agent-00009"), 9); /* others are not concerned */
        CHECK_INT(commits_of(&p), before + 1);
        place_close(&p);
        kit_remove_tables(p.path);
        (void)CHECK_HOLDS(p.path, false, NULL);
        REQUIRE(place_open(&p, 0));
        place_done(&p);
    }
}

CX_TEST(home_last_actor_is_missed)
{
    place p;
    char name[32];
    cx_home *home = NULL;
    const cx_home_options options = kit_options();
    REQUIRE(place_init(&p, "actors_last", 0));
    for (unsigned j = 0; j < 20; j++)
        append(&p, name_of(j, name), j);
    place_close(&p);
    change_tables(&p, "DELETE FROM actor WHERE id=20");
    CHECK_INT(cx_home_open(p.path, &options, &home, &p.err).code, CX_E_FORMAT);
    kit_remove_tables(p.path);
    REQUIRE(place_open(&p, 0));
    place_done(&p);
}

/* --- tables of the format before -------------------------------------------------------------- */

/* The erasure that was planned and not carried out, as a program of that time would have left
 * it. */
static void put_plan(cx_store *store, place *p)
{
    static const uint8_t old_key[] = {'e', 'r', 'a', 's', 'e', '/', 0, 0, 0, 0, 0, 0, 0, 1};
    static const uint8_t target[9] = {0}; /* the payload of entry 0 */
    CHECK_STATUS(cx_store_write_record(store, 1, cx_bytes_from(old_key, sizeof old_key),
                                       cx_bytes_from(target, sizeof target), &p->err),
                 &p->err);
}

static void set_meta_sum(cx_store *store, cx_str identity, place *p)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "UPDATE meta SET value=%lu WHERE name='sum'",
                   (unsigned long)cx_store_sum_meta(identity, store->flushed, NULL));
    CHECK_STATUS(cx_db_run(store->writing.db, sql, &p->err), &p->err);
}

typedef struct former_actor {
    int64_t id;
    cx_actor_row row;
    char name[CX_ACTOR_SIZE_MAX + 1];
    uint64_t entry_sum;
} former_actor;

static cx_status copy_former(void *arg, const cx_actor_row *row, cx_err *err)
{
    former_actor *all = arg;
    former_actor *one = &all[row->id];
    (void)err;
    one->row = *row;
    (void)snprintf(one->name, sizeof one->name, "%.*s", (int)row->name.size, row->name.data);
    one->row.name = cx_str_z(one->name);
    one->entry_sum = 0;
    return CX_SUCCESS;
}

/* The table of actors with the columns it had: a sum over the entries in place of peaks. */
static void make_former_actors(cx_store *store, place *p)
{
    const uint64_t count = store->counters.actors;
    former_actor *all = calloc((size_t)count, sizeof *all);
    cx_db_statement *put;
    cx_db *db = store->writing.db;
    REQUIRE(all != NULL);
    CHECK_STATUS(cx_store_scan_actors(store, 0, (int64_t)count, copy_former, all, &p->err),
                 &p->err);
    CHECK_STATUS(cx_db_run(db,
                           "DROP TABLE actor; DROP TABLE fold;"
                           "CREATE TABLE actor(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
                           " scheme TEXT NOT NULL, entries INTEGER NOT NULL,"
                           " snapshots INTEGER NOT NULL, live INTEGER NOT NULL,"
                           " dead INTEGER NOT NULL, edges INTEGER NOT NULL,"
                           " entry_sum INTEGER NOT NULL, state_sum INTEGER NOT NULL,"
                           " sum INTEGER NOT NULL)",
                           &p->err),
                 &p->err);
    CHECK_STATUS(
        cx_db_prepare(db, "INSERT INTO actor VALUES(?,?,?,?,?,?,?,?,?,?,?)", &put, &p->err),
        &p->err);
    for (uint64_t i = 0; i < count; i++) {
        former_actor *one = &all[i];
        const cx_actor_row *row = &one->row;
        for (uint64_t seq = 0; seq < row->entries; seq++) {
            cx_digest leaf;
            CHECK_STATUS(cx_store_read_journal(store, row->id, 0, seq, 1, &leaf, &p->err), &p->err);
            one->entry_sum += cx_sum_of_entry(seq, &leaf);
        }
        const uint64_t numbers[] = {row->entries, row->snapshots, row->live,     row->dead,
                                    row->edges,   one->entry_sum, row->state_sum};
        cx_db_bind_int(put, 1, row->id);
        cx_db_bind_text(put, 2, row->name);
        cx_db_bind_text(put, 3, cx_scheme_name(row->scheme));
        for (int n = 0; n < 7; n++)
            cx_db_bind_int(put, 4 + n, (int64_t)numbers[n]);
        cx_db_bind_int(put, 11, cx_store_sum_former_actor(row, one->entry_sum));
        CHECK_STATUS(cx_db_execute(put, &p->err), &p->err);
    }
    cx_db_finish(put);
    free(all);
}

/* What a program of format 1 would have: no names, no counters, plans with their actors. */
static void make_former(place *p, cx_buf *rows)
{
    char path[FOLDER_PATH_SIZE + 16];
    cx_store store;
    cx_buf identity, before;
    bool stale;
    cx_buf_init(&identity, cx_alloc_default());
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_add_str(&identity, cx_buf_str(&p->home->identity));
    CHECK_STATUS(cx_store_identity_before(cx_buf_str(&identity), &before, &p->err), &p->err);
    place_close(p);
    CHECK(kit_rows(p->path, rows));
    (void)snprintf(path, sizeof path, "%s/cortex.db", p->path);
    CHECK_STATUS(cx_store_open(path, CX_STORE_WRITE, cx_alloc_default(), 1, cx_buf_str(&identity),
                               &store, &stale, &p->err),
                 &p->err);
    CHECK(!stale && store.format == CX_TABLES_NOW);
    CHECK_STATUS(cx_db_begin_write(store.writing.db, &p->err), &p->err);
    put_plan(&store, p);
    make_former_actors(&store, p);
    CHECK_STATUS(
        cx_db_run(store.writing.db,
                  "DELETE FROM record WHERE actor=0 AND key >= CAST('erase/' AS BLOB)"
                  " AND key < CAST('erase0' AS BLOB);"
                  "DELETE FROM record WHERE actor=0 AND key >= CAST('actor/' AS BLOB)"
                  " AND key < CAST('actor0' AS BLOB);"
                  "DELETE FROM meta WHERE name IN ('actors','entries','records','rows_sum',"
                  "'clean');"
                  "UPDATE meta SET value=replace(value,'cortex-tables/3','cortex-tables/1')"
                  " WHERE name='identity'",
                  &p->err),
        &p->err);
    set_meta_sum(&store, cx_buf_str(&before), p);
    CHECK_STATUS(cx_db_commit(store.writing.db, &p->err), &p->err);
    cx_store_close(&store);
    cx_buf_done(&identity);
    cx_buf_done(&before);
}

#define SECRET "what was asked to be erased"

/* The entry that asks for it; that it is done is left to the next opening. */
static void ask_for_erasure(place *p)
{
    cx_txn *txn;
    cx_entry_view view;
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK_STATUS(cx_home_entry(p->home, CX_STR("agent-00000"), 0, &p->arena, &view, &p->err),
                 &p->err);
    cx_payload redact = {.kind = CX_ENTRY_REDACT};
    redact.as.redact.target_seq = 0;
    redact.as.redact.commitment = view.entry.commitment;
    cx_payload_encode(&redact, &bytes);
    const cx_entry_draft draft = {
        .kind = CX_STR("redact"), .created_at_ns = 2, .payload = cx_buf_bytes(&bytes)};
    CHECK_STATUS(cx_txn_begin(p->home, CX_STR("agent-00000"), &txn, &p->err), &p->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &p->err), &p->err);
    CHECK_STATUS(cx_txn_commit(txn, &p->err), &p->err);
    cx_buf_done(&bytes);
}

static void fill_numbers(place *p)
{
    char name[32];
    cx_txn *txn;
    const cx_entry_draft secret = {.kind = CX_STR("raw"),
                                   .created_at_ns = 1,
                                   .payload = cx_str_bytes(CX_STR(SECRET)),
                                   .committed = true};
    CHECK_STATUS(cx_txn_begin(p->home, name_of(0, name), &txn, &p->err), &p->err);
    CHECK_STATUS(cx_txn_entry(txn, &secret, NULL, &p->err), &p->err);
    CHECK_STATUS(cx_txn_commit(txn, &p->err), &p->err);
    for (unsigned i = 1; i < NUMBERS; i++)
        append(p, name_of(i, name), i);
    ask_for_erasure(p);
}

static void die_after(void *arg, const char *what, uint64_t done, uint64_t total)
{
    unsigned *left = arg;
    (void)what;
    (void)done;
    (void)total;
    if ((*left)-- == 0)
        _exit(0);
}

static void upgrade_in_child(place *p, unsigned steps)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        cx_home_options options = kit_options();
        options.progress = die_after;
        options.progress_arg = &steps;
        _exit(cx_failed(cx_home_open(p->path, &options, &p->home, NULL)) ? 3 : 4);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A reader changes nothing, and sees the same. */
static void check_reader(place *p, const cx_digest *overall)
{
    cx_home_options options = kit_options();
    cx_home *home = NULL;
    cx_roots roots;
    cx_actor_info info;
    options.read_only = true;
    CHECK_STATUS(cx_home_open(p->path, &options, &home, &p->err), &p->err);
    CHECK_INT(home->store.format, CX_TABLES_NOW); /* tables of its own */
    CHECK_STATUS(cx_home_roots(home, CX_STR("agent-19000"), &roots, &p->err), &p->err);
    CHECK(cx_digest_eq(&roots.overall, overall));
    CHECK_INT(cx_home_actor(home, CX_STR("agent-99000"), &info, NULL).code, CX_E_NOT_FOUND);
    CHECK_STATUS(cx_home_close(home, &p->err), &p->err);
}

CX_TEST(home_tables_of_the_format_before_are_upgraded)
{
    place p;
    cx_buf before, after;
    cx_roots roots;
    REQUIRE(place_init(&p, "actors_former", 0));
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    fill_numbers(&p);
    CHECK_STATUS(cx_home_roots(p.home, CX_STR("agent-19000"), &roots, &p.err), &p.err);
    make_former(&p, &before);
    CHECK(kit_contains(p.path, SECRET, sizeof SECRET - 1));
    (void)CHECK_HOLDS(p.path, true, NULL);
    check_reader(&p, &roots.overall);
    for (unsigned steps = 0; steps < 3; steps++) {
        upgrade_in_child(&p, steps == 2 ? 2 : 0);
        check_reader(&p, &roots.overall);
        if (steps == 1) /* as if a program of format 1 had written meanwhile */
            change_tables(&p, "UPDATE meta SET value='1 2 16385' WHERE name='upgrade'");
    }
    (void)CHECK_HOLDS(p.path, true, NULL);
    REQUIRE(place_open(&p, 0));
    CHECK_INT(p.home->store.format, CX_TABLES_NOW);
    CHECK(!kit_contains(p.path, SECRET, sizeof SECRET - 1));
    place_close(&p);
    CHECK(kit_rows(p.path, &after));
    CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
    (void)CHECK_HOLDS(p.path, true, NULL);
    REQUIRE(place_open(&p, 0));
    cx_buf_done(&before);
    cx_buf_done(&after);
    place_done(&p);
}
