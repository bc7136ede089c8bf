/*
 * test_home_tree.c - the home root from what has changed: it is the one that the leaves of all
 * actors give, reads no more than what changed, and damage of its rows leads to no other root.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ledger/root/home_tree.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { ACTORS = 600, ROUNDS = 12, LEAVES = 70000 };

typedef struct place {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_err err;
} place;

static bool place_open(place *p)
{
    const cx_home_options options = kit_options();
    CHECK_STATUS(cx_home_open(p->path, &options, &p->home, &p->err), &p->err);
    return p->home != NULL;
}

static bool place_init(place *p, const char *name)
{
    const cx_home_options options = kit_options();
    *p = (place){.home = NULL};
    folder_fresh(p->path, name);
    CHECK_STATUS(cx_home_create(p->path, CX_SCHEME_CORTEX_1, &options, &p->err), &p->err);
    return place_open(p);
}

static void place_close(place *p)
{
    CHECK_STATUS(cx_home_close(p->home, &p->err), &p->err);
    p->home = NULL;
}

static void place_done(place *p)
{
    if (p->home != NULL)
        place_close(p);
    folder_remove(p->path);
}

static void append(place *p, unsigned number)
{
    char name[32];
    cx_txn *txn;
    (void)snprintf(name, sizeof name, "agent-%05u", number);
    const cx_entry_draft draft = {
        .kind = CX_STR("raw"), .created_at_ns = 5, .payload = cx_str_bytes(CX_STR("text"))};
    REQUIRE(!cx_failed(cx_txn_begin(p->home, cx_str_z(name), &txn, &p->err)));
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &p->err), &p->err);
    CHECK_STATUS(cx_txn_commit(txn, &p->err), &p->err);
}

static cx_home_root record(place *p, int64_t now)
{
    cx_home_root_entry entry = {.seq = 0};
    CHECK_STATUS(cx_home_root_record(p->home, now, &entry, &p->err), &p->err);
    return entry.root;
}

/* From the leaves of all actors. */
static cx_home_root model(place *p)
{
    cx_home_root root = {.actors = 0};
    cx_lock_enter(&p->home->lock);
    CHECK_STATUS(cx_home_lock_txn(p->home, &p->err), &p->err);
    CHECK_STATUS(cx_home_leaves_walk(p->home, NULL, &root, &p->err), &p->err);
    cx_home_unlock_txn(p->home);
    cx_lock_leave(&p->home->lock);
    return root;
}

static bool same(const cx_home_root *a, const cx_home_root *b)
{
    return a->actors == b->actors && a->entries == b->entries && cx_digest_eq(&a->root, &b->root);
}

static uint64_t number_of_changed(place *p)
{
    uint64_t count = 0;
    cx_db *db;
    cx_db_statement *statement;
    char path[FOLDER_PATH_SIZE + 16];
    bool row = false;
    CHECK_STATUS(cx_home_flush(p->home, &p->err), &p->err);
    (void)snprintf(path, sizeof path, "%s/cortex.db", p->path);
    if (cx_failed(cx_db_open(path, CX_DB_READ, &db, &p->err)))
        return UINT64_MAX;
    CHECK_STATUS(cx_db_prepare(db, "SELECT count(*) FROM changed", &statement, &p->err), &p->err);
    CHECK_STATUS(cx_db_step(statement, &row, &p->err), &p->err);
    count = row ? (uint64_t)cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    cx_db_close(db);
    return count;
}

/* Actors come and change in any order, some flushes lie between, and the directory is opened
 * again. */
CX_TEST(home_root_of_what_has_changed_is_that_of_all)
{
    place p;
    uint64_t seed = 7;
    unsigned there = 0;
    REQUIRE(place_init(&p, "tree_model"));
    for (int round = 0; round < ROUNDS; round++) {
        const unsigned end = ACTORS * (unsigned)(round + 1) / ROUNDS;
        while (there < end)
            append(&p, there++);
        for (int i = 0; i < 5; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            append(&p, (unsigned)(seed >> 33) % there);
            if (i == 2 && round % 3 == 0)
                CHECK_STATUS(cx_home_flush(p.home, &p.err), &p.err);
        }
        const cx_home_root expected = model(&p);
        cx_home_root now;
        CHECK_STATUS(cx_home_root_now(p.home, &now, &p.err), &p.err);
        CHECK(same(&now, &expected));
        now = record(&p, 100 + round);
        CHECK(same(&now, &expected));
        CHECK_INT(now.actors, there);
        CHECK_INT(number_of_changed(&p), 0);
        append(&p, 0);
        append(&p, there / 2);
        CHECK_INT(number_of_changed(&p), 2);
        if (round % 4 == 1) {
            place_close(&p);
            REQUIRE(place_open(&p));
        }
    }
    place_close(&p);
    (void)CHECK_HOLDS(p.path, true, NULL);
    place_done(&p);
}

/* --- damage ----------------------------------------------------------------------------------- */

static void change_tables(place *p, const char *sql)
{
    char path[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    (void)snprintf(path, sizeof path, "%s/cortex.db", p->path);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &p->err)));
    CHECK_STATUS(cx_db_run(db, sql, &p->err), &p->err);
    cx_db_close(db);
}

/* An actor whose row cannot be read is not looked at when it has not changed. */
CX_TEST(home_root_reads_what_has_changed)
{
    place p;
    cx_arena arena;
    cx_home_root_entry entry;
    cx_home_root now;
    cx_home_proof proof;
    cx_digest root;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(place_init(&p, "tree_reads"));
    for (unsigned n = 0; n < 300; n++)
        append(&p, n);
    record(&p, 100);
    place_close(&p);
    change_tables(&p, "UPDATE actors SET entries=entries+1 WHERE name='agent-00100'");
    REQUIRE(place_open(&p));
    append(&p, 7);
    append(&p, 300);
    CHECK_STATUS(cx_home_root_now(p.home, &now, &p.err), &p.err);
    CHECK(now.actors == 301 && now.entries == 302);
    CHECK_STATUS(cx_home_root_record(p.home, 101, &entry, &p.err), &p.err);
    CHECK(same(&entry.root, &now));
    CHECK_STATUS(
        cx_home_root_prove(p.home, CX_STR("agent-00300"), 0, &arena, &proof, &root, &p.err),
        &p.err);
    CHECK_INT(proof.index, 300);
    append(&p, 100 + 1);
    place_close(&p);
    change_tables(&p, "DELETE FROM changed");
    REQUIRE(place_open(&p));
    CHECK_INT(cx_home_root_now(p.home, &now, &p.err).code, CX_E_FORMAT);
    place_close(&p);
    kit_remove_tables(p.path);
    (void)CHECK_HOLDS(p.path, false, NULL);
    cx_arena_done(&arena);
    place_done(&p);
}

/* Rows tree/<level><block>; `old` is as they were under the home root before the last. */
#define NODES "key>=x'747265652f00' AND key<x'747265652f09'"
#define OLD "value=(SELECT value FROM old WHERE old.key=record.key) WHERE "

/* Two home roots, and changes after them. */
static bool make_damaged(place *p)
{
    if (!place_init(p, "tree_damage"))
        return false;
    for (unsigned n = 0; n < 300; n++)
        append(p, n);
    record(p, 100);
    place_close(p);
    change_tables(p, "CREATE TABLE old AS SELECT key, value FROM record WHERE " NODES);
    if (!place_open(p))
        return false;
    static const unsigned before[] = {5, 7, 298}, after[] = {7, 299, 300};
    for (size_t i = 0; i < CX_COUNT_OF(before); i++)
        append(p, before[i]);
    record(p, 101);
    for (size_t i = 0; i < CX_COUNT_OF(after); i++)
        append(p, after[i]);
    place_close(p);
    return true;
}

/* No root is recorded that is not that of all leaves.  Checksums of the rows are right. */
CX_TEST(home_root_is_right_whatever_its_rows_say)
{
    static const char *const changes[] = {
        "DELETE FROM changed",
        "DELETE FROM changed WHERE actor=(SELECT max(actor) FROM changed)",
        "DELETE FROM changed WHERE actor=(SELECT min(actor) FROM changed)",
        "INSERT OR IGNORE INTO changed SELECT max(roots), 5 FROM changed",
        "INSERT OR IGNORE INTO changed SELECT max(roots), 99999 FROM changed",
        "INSERT OR IGNORE INTO changed SELECT max(roots), -3 FROM changed",
        ("UPDATE record SET " OLD "key=x'747265652f000000000000000000'"),
        ("UPDATE record SET " OLD "key=x'747265652f000000000000000001'"),
        ("UPDATE record SET " OLD "key=x'747265652f010000000000000000'"),
        ("UPDATE record SET " OLD NODES),
        "DELETE FROM record WHERE key=x'747265652f000000000000000000'",
        "DELETE FROM record WHERE key=x'747265652f010000000000000000'",
        "DELETE FROM record WHERE " NODES,
        "DELETE FROM record WHERE key=x'6c6561662f0000000000000007'"};
    place whole, p;
    REQUIRE(make_damaged(&whole));
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        cx_home_root now, expected;
        p = (place){.home = NULL};
        folder_fresh(p.path, "tree_damaged");
        folder_remove(p.path);
        kit_copy(whole.path, p.path);
        change_tables(&p, changes[i]);
        REQUIRE(place_open(&p));
        expected = model(&p);
        CHECK_STATUS(cx_home_root_now(p.home, &now, &p.err), &p.err);
        CHECK(same(&now, &expected));
        now = record(&p, 102);
        CHECK(same(&now, &expected));
        place_close(&p);
        kit_remove_tables(p.path);
        (void)CHECK_HOLDS(p.path, false, NULL);
        place_done(&p);
    }
    place_done(&whole);
}

/* --- many leaves ------------------------------------------------------------------------------ */

static cx_digest leaf_hash(uint64_t position, unsigned version)
{
    uint8_t text[16];
    for (unsigned i = 0; i < 8; i++) {
        text[i] = (uint8_t)(position >> 8 * i);
        text[8 + i] = (uint8_t)(version >> 8 * (i % 4));
    }
    return cx_home_leaf_hash(cx_bytes_from(text, sizeof text));
}

/* Records of home:root with such leaves, as a frame of them is applied; the home root is not of
 * actors. */
static void put_leaves(place *p, const uint64_t *positions, size_t count, unsigned version)
{
    cx_txn *txn;
    REQUIRE(!cx_failed(cx_txn_begin_reserved(p->home, CX_STR(CX_HOME_ROOT_ACTOR),
                                             CX_SCHEME_CORTEX_1, &txn, &p->err)));
    CHECK_STATUS(cx_txn_bare(txn, &p->err), &p->err);
    for (size_t n = 0; n < count; n++) {
        const size_t i = version % 2 == 0 ? n : count - 1 - n; /* any order in a frame */
        uint8_t key[CX_HOME_LEAF_KEY_SIZE], text[16];
        for (unsigned k = 0; k < 8; k++) {
            text[k] = (uint8_t)(positions[i] >> 8 * k);
            text[8 + k] = (uint8_t)(version >> 8 * (k % 4));
        }
        CHECK_STATUS(cx_txn_put(txn, cx_home_leaf_key(positions[i], key),
                                cx_bytes_from(text, sizeof text), false, &p->err),
                     &p->err);
    }
    CHECK_STATUS(cx_txn_commit(txn, &p->err), &p->err);
}

/* The rows lead to the root of a tree in memory, and give its paths. */
static void check_tree(place *p, const cx_digest *leaves, uint64_t count)
{
    cx_home_tree *tree = NULL;
    cx_actor *actor = NULL;
    cx_mmr *mmr;
    cx_home_root root = {.actors = count};
    REQUIRE(!cx_failed(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, &p->err)));
    CHECK_STATUS(cx_mmr_append(mmr, leaves, (size_t)count, &p->err), &p->err);
    CHECK_STATUS(cx_mmr_root(mmr, count, &root.root, &p->err), &p->err);
    cx_lock_enter(&p->home->lock);
    CHECK_STATUS(cx_home_lock_txn(p->home, &p->err), &p->err);
    CHECK_STATUS(cx_home_find_actor(p->home, CX_STR(CX_HOME_ROOT_ACTOR), &actor, &p->err), &p->err);
    CHECK_STATUS(cx_home_tree_open(p->home, actor->id, &root, &tree, &p->err), &p->err);
    for (uint64_t at = 0; tree != NULL && at < count; at += 1 + count / 50) {
        cx_mmr_path path, expected;
        CHECK_STATUS(cx_home_tree_inclusion(tree, at, &path, &p->err), &p->err);
        CHECK_STATUS(cx_mmr_inclusion(mmr, at, count, &expected, &p->err), &p->err);
        CHECK(path.count == expected.count &&
              memcmp(path.hashes, expected.hashes, path.count * sizeof *path.hashes) == 0);
    }
    cx_home_tree_close(tree);
    cx_home_unlock_txn(p->home);
    cx_lock_leave(&p->home->lock);
    cx_mmr_close(mmr);
}

CX_TEST(home_tree_of_many_leaves_is_the_model)
{
    static const uint64_t sizes[] = {1,   2,    255,   256,   257,   511,
                                     512, 3000, 65535, 65536, 65537, LEAVES};
    place p;
    uint64_t there = 0, seed = 3, *positions = malloc(LEAVES * sizeof *positions);
    cx_digest *leaves = malloc(LEAVES * sizeof *leaves);
    REQUIRE(positions != NULL && leaves != NULL && place_init(&p, "tree_many"));
    for (unsigned round = 0; round < CX_COUNT_OF(sizes); round++) {
        size_t count = 0;
        for (int i = 0; i < 20 && there != 0; i++) { /* ascending */
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const uint64_t from = count == 0 ? 0 : positions[count - 1] + 1;
            const uint64_t next = from + (seed >> 33) % (there / 10 + 1);
            if (next < there)
                positions[count++] = next;
        }
        while (there < sizes[round])
            positions[count++] = there++;
        put_leaves(&p, positions, count, round);
        for (size_t i = 0; i < count; i++)
            leaves[positions[i]] = leaf_hash(positions[i], round);
        check_tree(&p, leaves, there);
    }
    free(positions);
    free(leaves);
    place_done(&p);
}
