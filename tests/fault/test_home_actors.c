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

/* Verified with so many actors in memory, and the roots of `listed` of them. */
static void check_verified(const place *p, size_t limit, size_t listed, uint64_t findings)
{
    cx_home_verify_options options = {.home = kit_options(), .actor_max = listed};
    cx_home_report *report;
    cx_err err = {0};
    options.home.actor_limit = limit;
    CHECK_STATUS(cx_home_verify(p->path, &options, &report, &err), &err);
    const cx_home_totals *totals = cx_home_report_totals(report);
    CHECK_INT(totals->findings, findings);
    CHECK_INT(totals->actors, ACTORS + 1);
    CHECK_INT(cx_home_report_actor_count(report), listed);
    CHECK(totals->has_home_root && totals->log_bytes != 0);
    CHECK_INT(totals->home_root.root.actors, ACTORS);
    cx_home_report_close(report);
}

/* With 1 the tree over all actors is not kept in memory either. */
CX_TEST(home_verification_keeps_few_actors)
{
    static const size_t limits[] = {1, LIMIT, 1000};
    place p;
    cx_home_root_entry entry;
    REQUIRE(place_init(&p, "actors_verified", 0));
    write_rounds(&p, true);
    CHECK_STATUS(cx_home_root_record(p.home, 100, &entry, &p.err), &p.err);
    write_rounds(&p, false);
    CHECK_STATUS(cx_home_root_record(p.home, 200, &entry, &p.err), &p.err);
    CHECK_INT(entry.root.actors, ACTORS);
    place_close(&p);
    for (size_t i = 0; i < CX_COUNT_OF(limits); i++)
        check_verified(&p, limits[i], i + 2, 0);
    cx_arena_done(&p.arena);
    folder_remove(p.path);
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
        "UPDATE actors SET name='agent-0000x' WHERE name='agent-00007'",
        "UPDATE record SET value=(SELECT value FROM record WHERE actor=0 AND"
        " key=CAST('actor/agent-00008' AS BLOB)) WHERE key=CAST('actor/agent-00007' AS BLOB)",
        "DELETE FROM actors WHERE name='agent-00007'"};
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
    change_tables(&p, "DELETE FROM actors WHERE id=20");
    CHECK_INT(cx_home_open(p.path, &options, &home, &p.err).code, CX_E_FORMAT);
    kit_remove_tables(p.path);
    REQUIRE(place_open(&p, 0));
    place_done(&p);
}

/* --- what is not written ---------------------------------------------------------------------- */

/* A frame that removes a memory could not be applied, and would be in the log for good. */
CX_TEST(home_memories_and_edges_are_not_removed)
{
    place p;
    cx_txn *txn;
    uint8_t head[18] = {'m', '/'}, edge[40] = {'e', '/', 'f', 'r', 'o', 'm', '/'};
    REQUIRE(place_init(&p, "actors_remove", 0));
    append(&p, CX_STR("a"), 0);
    CHECK_STATUS(cx_txn_begin(p.home, CX_STR("a"), &txn, &p.err), &p.err);
    CHECK_STATUS(cx_txn_bare(txn, &p.err), &p.err);
    CHECK_INT(cx_txn_remove(txn, cx_bytes_from(head, sizeof head), &p.err).code, CX_E_USAGE);
    CHECK_INT(cx_txn_remove(txn, cx_bytes_from(edge, sizeof edge), &p.err).code, CX_E_USAGE);
    CHECK_STATUS(cx_txn_remove(txn, cx_str_bytes(CX_STR("test/key")), &p.err), &p.err);
    cx_txn_abort(txn);
    append(&p, CX_STR("a"), 1);
    place_done(&p);
}

/* The newest retained snapshot must be below the next one; a number that wraps would not be. */
CX_TEST(home_number_of_a_snapshot_has_an_end)
{
    static const uint64_t numbers[] = {UINT64_MAX, UINT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < CX_COUNT_OF(numbers); i++) {
        place p;
        cx_txn *txn;
        cx_buf bytes;
        uint8_t key[13] = {'s', 'n', 'a', 'p', '/'};
        cx_manifest manifest = {.scheme = CX_SCHEME_CORTEX_1,
                                .actor = CX_STR("a"),
                                .snapshot_seq = numbers[i],
                                .has_edges = true,
                                .has_memories = true,
                                .trigger = CX_STR("made up"),
                                .signature = {.null = true}};
        REQUIRE(place_init(&p, "actors_number", 0));
        append(&p, CX_STR("a"), 0);
        for (unsigned b = 0; b < 8; b++)
            key[5 + b] = (uint8_t)(numbers[i] >> (56 - 8 * b));
        cx_buf_init(&bytes, cx_alloc_default());
        cx_manifest_encode(&manifest, &bytes);
        CHECK_STATUS(cx_txn_begin(p.home, CX_STR("a"), &txn, &p.err), &p.err);
        CHECK_STATUS(cx_txn_bare(txn, &p.err), &p.err);
        CHECK_STATUS(
            cx_txn_put(txn, cx_bytes_from(key, sizeof key), cx_buf_bytes(&bytes), false, &p.err),
            &p.err);
        CHECK_INT(cx_txn_commit(txn, &p.err).code, CX_E_FORMAT);
        CHECK(strstr(p.err.message, "too large") != NULL);
        place_close(&p);
        (void)CHECK_HOLDS(p.path, false, NULL);
        cx_buf_done(&bytes);
        cx_arena_done(&p.arena);
        folder_remove(p.path);
    }
}
