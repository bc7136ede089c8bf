/*
 * test_later.c - trees that are built at once have the rows that trees have which followed each
 * flush, also when the tables were closed between, and with snapshots, of which each sees what it
 * saw.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "ledger/internal.h"
#include "ledger/store_internal.h"
#include "pages/pages.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define IDENTITY CX_STR("a test")
enum { ACTORS = 4, FLUSHES = 9, CHANGES = 1500, KEYS = 3000 };

typedef struct side {
    cx_store store;
    char path[FOLDER_PATH_SIZE + 16];
    cx_pages_anchor trees[ACTORS][2];
    bool later;
} side;

static cx_err err;

static void open_side(side *s, bool is_new)
{
    bool stale = false;
    CHECK_STATUS(cx_store_open(s->path, CX_STORE_DERIVE, cx_alloc_default(), 7, IDENTITY, &s->store,
                               &stale, &err),
                 &err);
    CHECK(stale == is_new);
    if (is_new)
        CHECK_STATUS(cx_store_clear(&s->store, IDENTITY, &err), &err);
    if (is_new && s->later)
        CHECK_STATUS(cx_store_defer_trees(&s->store, &err), &err);
    if (!is_new)
        CHECK_STATUS(cx_store_resume_deferred(&s->store, &err), &err);
}

static void make_side(side *s, const char *folder, const char *name, bool later)
{
    *s = (side){.later = later};
    (void)snprintf(s->path, sizeof s->path, "%s/%s", folder, name);
    for (int64_t actor = 0; actor < ACTORS; actor++)
        for (unsigned which = 0; which < 2; which++)
            s->trees[actor][which] =
                cx_pages_anchor_empty(cx_tree_of(actor, which), CX_SCHEME_CORTEX_1);
    open_side(s, true);
}

static void put_actors(side *s)
{
    static const char *const names[ACTORS] = {"home", "a", "b", "c"};
    for (int64_t actor = 0; actor < ACTORS; actor++) {
        const cx_actor_row row = {.id = actor,
                                  .name = cx_str_z(names[actor]),
                                  .scheme = CX_SCHEME_CORTEX_1,
                                  .trees = {s->trees[actor][0], s->trees[actor][1]}};
        CHECK_STATUS(cx_store_put_actor(&s->store, &row, &err), &err);
    }
}

static void flush_side(side *s, uint64_t commit, bool builds)
{
    put_actors(s);
    CHECK_STATUS(cx_store_start_flush(&s->store, (cx_position){commit, 0}, &err), &err);
    s->store.later.wanted = builds && s->later;
    CHECK_STATUS(cx_store_flush_memtable(&s->store, s->store.flushing, &err), &err);
    for (size_t i = 0; i < ACTORS; i++)
        memcpy(s->trees[i], s->store.flushing->actors.items[i].trees_after, sizeof s->trees[i]);
    cx_store_flushed(&s->store);
}

static cx_digest random_digest(uint64_t *random)
{
    cx_digest digest;
    for (size_t i = 0; i < 4; i++) {
        const uint64_t word = cx_test_random(random) | 1;
        memcpy(digest.bytes + 8 * i, &word, 8);
    }
    return digest;
}

/* Actor 3 has no tree, actor 2 changes in the first flush alone; values come again. */
static void change(side sides[2], uint64_t flush, uint64_t *random)
{
    const size_t count = flush == 4 ? 0 : flush == 5 ? 256 : CHANGES;
    for (size_t i = 0; i < count; i++) {
        const uint64_t number = cx_test_random(random) % KEYS;
        const unsigned tree = (unsigned)(cx_test_random(random) % (flush == 0 ? 3 : 2));
        const cx_state_row row = {
            .tree = tree == 2 ? cx_tree_of(2, CX_TREE_MEMORIES) : cx_tree_of(1, tree),
            .pair = {cx_digest_of(cx_bytes_from(&number, sizeof number)), random_digest(random)},
            .newest = CX_NO_SNAPSHOT};
        for (size_t s = 0; s < 2; s++)
            CHECK_STATUS(cx_store_put_state(&sides[s].store, &row, &err), &err);
    }
}

static cx_status note_difference(void *arg, const char *table, int64_t actor, cx_bytes key,
                                 const char *how, cx_err *error)
{
    (void)key;
    (void)error;
    if ((*(size_t *)arg)++ == 0)
        printf("%s of %lld: %s\n", table, (long long)actor, how);
    return CX_SUCCESS;
}

static void check_same(side sides[2])
{
    size_t differences = 0;
    const cx_store_comparison how = {.max = 10, .differ = note_difference, .arg = &differences};
    CHECK_STATUS(cx_store_compare(&sides[0].store, &sides[1].store, &how, &err), &err);
    CHECK_INT(differences, 0);
}

static int64_t count_tables(side *s)
{
    cx_db_statement *statement;
    bool row = false;
    CHECK_STATUS(cx_db_prepare(s->store.writing.db,
                               "SELECT (SELECT count(*) FROM sqlite_master WHERE name='state_run')"
                               " + (SELECT count(*) FROM meta WHERE name='trees_later')",
                               &statement, &err),
                 &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    const int64_t count = row ? cx_db_int(statement, 0) : -1;
    cx_db_finish(statement);
    return count;
}

CX_TEST(later_trees_are_those_of_each_flush)
{
    char folder[FOLDER_PATH_SIZE];
    uint64_t random = cx_test_seed();
    static side sides[2];
    folder_fresh(folder, "later");
    REQUIRE(mkdir(folder, 0700) == 0);
    make_side(&sides[0], folder, "later.db", true);
    make_side(&sides[1], folder, "each.db", false);
    for (uint64_t flush = 0; flush < FLUSHES; flush++) {
        change(sides, flush, &random);
        flush_side(&sides[0], flush + 1, flush == FLUSHES - 2);
        flush_side(&sides[1], flush + 1, false);
        if (flush == 3) {
            cx_store_close(&sides[0].store);
            open_side(&sides[0], false);
            CHECK(sides[0].store.later.on);
            CHECK_INT(sides[0].store.later.runs, 4);
        }
        if (flush != FLUSHES - 2)
            continue;
        /* What comes later follows each flush. */
        CHECK(!sides[0].store.later.on && sides[0].store.later.built);
        CHECK_INT(count_tables(&sides[0]), 0);
        check_same(sides);
        memcpy(sides[0].trees, sides[1].trees, sizeof sides[0].trees);
    }
    check_same(sides);
    for (size_t s = 0; s < 2; s++)
        cx_store_close(&sides[s].store);
    folder_remove(folder);
}

/* --- snapshots -------------------------------------------------------------------------------- */

enum { ROUNDS = 12, EACH_ROUND = 700, SNAPSHOTS_MAX = 2 * ROUNDS };

/* What is known of an actor: the values of both trees now, and when each snapshot was made. */
typedef struct known_values {
    cx_digest trees[2][KEYS]; /* zeros: not there */
} known_values;

typedef struct known_actor {
    known_values now;
    known_values *then[SNAPSHOTS_MAX]; /* NULL = dropped */
    cx_pages_anchor trees[SNAPSHOTS_MAX][2];
    uint64_t count;
} known_actor;

static known_actor known[ACTORS];

static uint64_t newest_retained(const known_actor *k)
{
    for (uint64_t i = k->count; i-- > 0;)
        if (k->then[i] != NULL)
            return i;
    return CX_NO_SNAPSHOT;
}

static cx_digest key_of(uint64_t number)
{
    return cx_digest_of(cx_bytes_from(&number, sizeof number));
}

static void change_actor(side sides[2], int64_t actor, size_t count, uint64_t *random)
{
    known_actor *k = &known[actor];
    for (size_t i = 0; i < count; i++) {
        const uint64_t number = cx_test_random(random) % KEYS;
        const unsigned which = (unsigned)(cx_test_random(random) % 2);
        const cx_state_row row = {.tree = cx_tree_of(actor, which),
                                  .pair = {key_of(number), random_digest(random)},
                                  .next_snapshot = k->count,
                                  .newest = newest_retained(k)};
        k->now.trees[which][number] = row.pair.value;
        for (size_t s = 0; s < 2; s++)
            CHECK_STATUS(cx_store_put_state(&sides[s].store, &row, &err), &err);
    }
}

/* The other side is flushed at each snapshot, so its roots are known. */
static void make_snapshot(side sides[2], int64_t actor, uint64_t *commit, bool lies)
{
    known_actor *k = &known[actor];
    const cx_snapshot_row row = {.actor = actor, .snapshot = k->count};
    flush_side(&sides[1], ++*commit, false);
    for (size_t s = 0; s < 2; s++)
        CHECK_STATUS(cx_store_put_snapshot(&sides[s].store, &row, &err), &err);
    memcpy(k->trees[k->count], sides[1].trees[actor], sizeof k->trees[0]);
    cx_digest roots[2] = {sides[1].trees[actor][0].root, sides[1].trees[actor][1].root};
    roots[1].bytes[7] ^= lies ? 1 : 0;
    CHECK(!cx_store_expect_roots(&sides[0].store, actor + 1, k->count, &roots[0], &roots[1]));
    CHECK(!cx_store_expect_roots(&sides[0].store, actor, k->count + 1, &roots[0], &roots[1]));
    CHECK(cx_store_expect_roots(&sides[0].store, actor, k->count, &roots[0], &roots[1]));
    CHECK(!cx_store_expect_roots(&sides[0].store, actor, k->count, &roots[0], &roots[1]));
    CHECK(!cx_store_expect_roots(&sides[1].store, actor, k->count, &roots[0], &roots[1]));
    k->then[k->count] = malloc(sizeof k->now);
    REQUIRE(k->then[k->count] != NULL);
    *k->then[k->count++] = k->now;
}

static void drop_snapshot(side sides[2], int64_t actor, uint64_t snapshot)
{
    const cx_snapshot_row row = {.actor = actor, .snapshot = snapshot, .dropped = true};
    for (size_t s = 0; s < 2; s++)
        CHECK_STATUS(cx_store_put_snapshot(&sides[s].store, &row, &err), &err);
    free(known[actor].then[snapshot]);
    known[actor].then[snapshot] = NULL;
}

static cx_status take_trees(void *arg, const cx_actor_row *row, cx_err *error)
{
    side *s = arg;
    (void)error;
    memcpy(s->trees[row->id], row->trees, sizeof row->trees);
    return CX_SUCCESS;
}

/* As cx_home_reload_trees: they were built within a flush. */
static void reload_trees(side *s)
{
    if (s->store.later.built)
        CHECK_STATUS(cx_store_scan_actors(&s->store, 0, ACTORS, take_trees, s, &err), &err);
    s->store.later.built = false;
}

/* Each retained snapshot sees each key as it was. */
static void check_views(side *s)
{
    for (int64_t actor = 0; actor < ACTORS; actor++)
        for (uint64_t i = 0; i < 2 * known[actor].count; i++) {
            const unsigned which = (unsigned)(i % 2);
            const known_values *then = known[actor].then[i / 2];
            if (then == NULL)
                continue;
            const cx_pages_view view = cx_pages_view_past(&known[actor].trees[i / 2][which],
                                                          &s->trees[actor][which], i / 2);
            for (uint64_t number = 0; number < KEYS; number++) {
                static const cx_digest absent = {{0}};
                const cx_digest key = key_of(number);
                cx_digest value = absent;
                bool found = false;
                CHECK_STATUS(
                    cx_pages_get(s->store.reading.pages, &view, &key, &found, &value, &err), &err);
                CHECK(cx_digest_eq(&value, &then->trees[which][number]));
            }
        }
}

/* All rows of a table as text, of which no two are the same. */
static void read_table(side *s, const char *sql, cx_buf *out)
{
    cx_db_statement *rows;
    bool row = true;
    CHECK_STATUS(cx_db_prepare(s->store.writing.db, sql, &rows, &err), &err);
    while (row) {
        CHECK_STATUS(cx_db_step(rows, &row, &err), &err);
        if (row)
            cx_buf_add_str(out, cx_db_text(rows, 0));
    }
    cx_db_finish(rows);
}

/* What is not compared by cx_store_compare, once nothing is left to sweep. */
static void check_same_past(side sides[2])
{
    static const char *const tables[] = {
        "SELECT tree||' '||hex(key)||' '||until||' '||hex(value)||char(10) FROM leaf_was"
        " ORDER BY tree, key, until",
        "SELECT tree||' '||level||' '||prefix||' '||until||' '||depth||' '||hex(hash)||char(10)"
        " FROM page_was ORDER BY tree, level, prefix, until"};
    for (size_t i = 0; i < CX_COUNT_OF(tables); i++) {
        cx_buf rows[2];
        for (size_t s = 0; s < 2; s++) {
            cx_buf_init(&rows[s], cx_alloc_default());
            read_table(&sides[s], tables[i], &rows[s]);
        }
        CHECK(rows[0].size != 0);
        CHECK(cx_str_eq(cx_buf_str(&rows[0]), cx_buf_str(&rows[1])));
        for (size_t s = 0; s < 2; s++)
            cx_buf_done(&rows[s]);
    }
}

typedef struct other_roots {
    size_t count;
    int64_t actor;
    uint64_t snapshot;
    bool edges;
} other_roots;

static cx_status note_other(void *arg, const cx_snapshot_row *named, const cx_digest found[2],
                            cx_err *error)
{
    other_roots *other = arg;
    (void)error;
    const bool memories = cx_digest_eq(&named->roots[0], &found[0]);
    *other = (other_roots){other->count + 1, named->actor, named->snapshot,
                           memories && !cx_digest_eq(&named->roots[1], &found[1])};
    return CX_SUCCESS;
}

/* Actor 1 has snapshots from the beginning on, 2 before it has keys; 3 has some and never a key. */
static void take_round(side sides[2], unsigned round, uint64_t *commit, uint64_t *random)
{
    change_actor(sides, 1, round == 8 ? 0 : EACH_ROUND, random);
    if (round % 3 == 0)
        make_snapshot(sides, 2, commit, false);
    if (round % 4 != 3)
        make_snapshot(sides, 1, commit, round == 4);
    if (round == 5)
        make_snapshot(sides, 3, commit, false);
    change_actor(sides, 1, EACH_ROUND / 3, random);
    if (round == 6 || round == 9) /* the newest */
        drop_snapshot(sides, 1, known[1].count - 1);
    if (round == 7)
        drop_snapshot(sides, 1, 2);
    if (round == 10)
        drop_snapshot(sides, 2, 0);
    change_actor(sides, 1, EACH_ROUND / 3, random);
    if (round > 2)
        change_actor(sides, 2, EACH_ROUND, random);
}

static void close_and_resume(side *s)
{
    const uint64_t runs = s->store.later.runs, snapshots = s->store.later.snapshots;
    cx_store_close(&s->store);
    open_side(s, false);
    CHECK(s->store.later.on && !s->store.sweeps);
    CHECK_INT(s->store.later.runs, runs);
    CHECK(s->store.later.snapshots <= snapshots); /* ids of what is built may come again */
}

/* `runs_max`: so often trees are built between. */
static void derive_with_snapshots(const char *name, uint64_t runs_max)
{
    char folder[FOLDER_PATH_SIZE];
    uint64_t random = cx_test_seed(), commit = 0;
    static side sides[2];
    other_roots other = {0};
    memset(known, 0, sizeof known);
    folder_fresh(folder, name);
    REQUIRE(mkdir(folder, 0700) == 0);
    make_side(&sides[0], folder, "later.db", true);
    make_side(&sides[1], folder, "each.db", false);
    for (unsigned round = 0; round < ROUNDS; round++) {
        sides[0].store.later.runs_max = runs_max;
        take_round(sides, round, &commit, &random);
        flush_side(&sides[1], ++commit, false);
        flush_side(&sides[0], commit, round == ROUNDS - 1);
        CHECK(sides[0].store.later.on == (round != ROUNDS - 1));
        CHECK(sides[0].store.later.built == (round == ROUNDS - 1 || (round + 1) % runs_max == 0));
        reload_trees(&sides[0]);
        if (round % 4 == 1)
            close_and_resume(&sides[0]);
    }
    check_same(sides);
    check_views(&sides[0]);
    check_views(&sides[1]);
    CHECK_STATUS(cx_store_other_roots(&sides[0].store, note_other, &other, &err), &err);
    CHECK(other.count == 1 && other.actor == 1 && other.edges);
    CHECK_INT(other.snapshot, 3); /* of round 4: there was none in round 3 */
    for (size_t s = 0; s < 2; s++)
        for (CHECK(sides[s].store.sweeps); sides[s].store.sweeps;)
            flush_side(&sides[s], ++commit, false);
    check_same_past(sides);
    check_views(&sides[0]);
    CHECK_STATUS(cx_store_forget_roots(&sides[0].store, &err), &err);
    other.count = 0;
    CHECK_STATUS(cx_store_other_roots(&sides[0].store, note_other, &other, &err), &err);
    CHECK_INT(other.count, 0);
    for (int64_t actor = 0; actor < ACTORS; actor++)
        for (uint64_t i = 0; i < known[actor].count; i++)
            free(known[actor].then[i]);
    for (size_t s = 0; s < 2; s++)
        cx_store_close(&sides[s].store);
    folder_remove(folder);
}

CX_TEST(later_snapshots_see_what_they_saw)
{
    derive_with_snapshots("later_snapshots", UINT64_MAX);
}

CX_TEST(later_trees_are_built_when_too_many_runs_wait)
{
    derive_with_snapshots("later_built", 3);
}
