/*
 * test_later.c - trees that are built at once have the rows that trees have which followed each
 * flush, also when the tables were closed between.
 */
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
