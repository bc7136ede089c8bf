/*
 * test_tree.c - persistent maps against a plain sorted array, old versions included.
 */
#include "tests/support/tree_model.h"

/* Differing keys counted in the order they come. */
typedef struct diff_log {
    const model *a, *b;
    unsigned count;
    cx_str last;
    bool right;
} diff_log;

static bool log_difference(void *arg, cx_str key, cx_value a, cx_value b)
{
    diff_log *log = arg;
    log->right &= log->last.data == NULL || cx_str_cmp(log->last, key) < 0;
    log->last = key;
    log->count++;
    for (unsigned k = 0; k < KEYS; k++)
        if (cx_str_eq(key_of(k), key))
            log->right &= log->a->leaf[k] != log->b->leaf[k] &&
                          value_is_absent(a) == (log->a->leaf[k] == 0) &&
                          value_is_absent(b) == (log->b->leaf[k] == 0);
    return true;
}

CX_TEST(tree_old_versions_stay_and_shapes_are_one)
{
    static const tree *roots[VERSIONS];
    static model models[VERSIONS];
    uint64_t random = cx_test_seed();
    cx_arena arena;
    tree_work work;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_tree_work_init(&work, cx_alloc_default());
    cx_forest forest = {.arena = &arena, .seed = random, .stamp = 1};
    for (unsigned v = 1; v < VERSIONS; v++) {
        forest.stamp++;
        roots[v] = roots[v - 1];
        models[v] = models[v - 1];
        for (unsigned i = 0; i < v % 4; i++)
            REQUIRE(change(&forest, &roots[v], &models[v], &random));
    }
    for (unsigned v = 0; v < VERSIONS; v++) {
        const tree *last = NULL;
        CHECK(matches(roots[v], &models[v]));
        CHECK(is_sound(roots[v], &last));
        unsigned other = (unsigned)(cx_test_random(&random) % VERSIONS), expected = 0;
        for (unsigned k = 0; k < KEYS; k++)
            expected += models[v].leaf[k] != models[other].leaf[k];
        diff_log log = {&models[v], &models[other], 0, {NULL, 0}, true};
        REQUIRE(cx_tree_diff(&work, roots[v], roots[other], log_difference, &log));
        CHECK_INT(log.count, expected);
        CHECK(log.right);
        bool equal;
        REQUIRE(cx_tree_equal(&work, value_of_root(roots[v]), value_of_root(roots[other]), &equal));
        CHECK_INT(equal, expected == 0);
    }
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
}

CX_TEST(tree_order_of_building_does_not_show)
{
    cx_arena arena;
    tree_work work;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_tree_work_init(&work, cx_alloc_default());
    cx_forest forest = {.arena = &arena, .seed = cx_test_seed(), .stamp = 1};
    const tree *up = NULL, *down = NULL;
    for (unsigned k = 0; k < KEYS; k++) {
        REQUIRE(cx_tree_set(&forest, &up, (tree_name){key_of(k), false}, leaf_value(1)));
        REQUIRE(
            cx_tree_set(&forest, &down, (tree_name){key_of(KEYS - 1 - k), false}, leaf_value(1)));
    }
    bool equal;
    REQUIRE(cx_tree_equal(&work, value_of_root(up), value_of_root(down), &equal));
    CHECK(equal);
    REQUIRE(cx_tree_set(&forest, &down, (tree_name){key_of(3), false}, leaf_value(2)));
    REQUIRE(cx_tree_equal(&work, value_of_root(up), value_of_root(down), &equal));
    CHECK(!equal);
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
}

CX_TEST(tree_what_does_not_change_is_not_copied)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_forest forest = {.arena = &arena, .seed = cx_test_seed(), .stamp = 1};
    const tree *root = NULL;
    for (unsigned k = 0; k < KEYS; k++)
        REQUIRE(cx_tree_set(&forest, &root, (tree_name){key_of(k), false}, leaf_value(1)));
    const tree *before = root;
    forest.stamp++;
    REQUIRE(cx_tree_set(&forest, &root, (tree_name){key_of(5), false}, leaf_value(1)));
    REQUIRE(cx_tree_remove(&forest, &root, CX_STR("never")));
    CHECK(root == before);
    cx_arena_done(&arena);
}

CX_TEST(tree_short_texts_lie_inside_and_stay)
{
    cx_arena arena, scratch;
    tree_work work;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_arena_init(&scratch, cx_alloc_default(), 0);
    cx_tree_work_init(&work, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    cx_forest forest = {.arena = &arena, .seed = 5, .stamp = 1, .scratch = &scratch};
    const tree *root = NULL;
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":12345"), 1));
    REQUIRE(set_member(&forest, &root, CX_STR("\"fits\":\"exactly\""), 4));
    REQUIRE(set_member(&forest, &root, CX_STR("\"long\":\"too much\""), 4));
    REQUIRE(cx_tree_place(&forest, &work, &root));
    CHECK(cx_tree_find(root, CX_STR("k"))->is_inside);
    CHECK(cx_tree_find(root, CX_STR("fits"))->is_inside);
    CHECK(!cx_tree_find(root, CX_STR("long"))->is_inside);
    cx_value old = tree_value(cx_tree_find(root, CX_STR("k")));

    /* What is overwritten, twice in one change, and what is only copied. */
    const tree *before = root;
    begin_change(&forest);
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":67890"), 1));
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":[]"), 1));
    CHECK_STR(value_text(old), "12345");
    CHECK_STR(value_text(tree_value(cx_tree_find(root, CX_STR("k")))), "[]");
    REQUIRE(cx_tree_place(&forest, &work, &root));
    begin_change(&forest);
    REQUIRE(set_member(&forest, &root, CX_STR("\"fits\":0"), 4));
    REQUIRE(cx_tree_place(&forest, &work, &root));
    cx_arena_done(&scratch);
    REQUIRE(cx_tree_write(&work, value_of_root(root), &out));
    CHECK_STR(cx_buf_str(&out), "{\"fits\":0,\"k\":[],\"long\":\"too much\"}");
    cx_buf_clear(&out);
    REQUIRE(cx_tree_write(&work, value_of_root(before), &out));
    CHECK_STR(cx_buf_str(&out), "{\"fits\":\"exactly\",\"k\":12345,\"long\":\"too much\"}");
    cx_buf_done(&out);
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
}

CX_TEST(tree_texts_of_two_places_come_together)
{
    cx_arena arena;
    tree_work work;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_tree_work_init(&work, cx_alloc_default());
    cx_forest forest = {.arena = &arena, .seed = 5, .stamp = 1};
    const tree *root = NULL, *other = NULL, *made = NULL;
    static const char quoted[] = "\"k\"";
    tree_name name = {cx_str_from(&quoted[1], 1), false}, escaped = {CX_STR("\n"), true};
    REQUIRE(cx_tree_set(&forest, &root, name, value_of_text(CX_STR("1"))));
    REQUIRE(cx_tree_place(&forest, &work, &root));
    CHECK(root->is_inside);
    CHECK_STR(tree_key(root), "k");
    CHECK_STR(value_text(tree_value(root)), "1");
    /* A decoded key is not what is written. */
    REQUIRE(cx_tree_set(&forest, &other, escaped, value_of_text(CX_STR("1"))));
    REQUIRE(cx_tree_place(&forest, &work, &other));
    CHECK(!other->is_inside);
    CHECK_STR(tree_key(other), "\n");
    /* A node like another has its key and another value. */
    begin_change(&forest);
    REQUIRE(cx_tree_make(&forest, root, value_of_text(CX_STR("2")), NULL, NULL, &made));
    REQUIRE(cx_tree_place(&forest, &work, &made));
    CHECK(made->is_inside);
    CHECK_STR(tree_key(made), "k");
    CHECK_STR(value_text(tree_value(made)), "2");
    CHECK_STR(value_text(tree_value(root)), "1");
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
}

CX_TEST(tree_restrict_takes_the_open_range)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_forest forest = {.arena = &arena, .seed = cx_test_seed(), .stamp = 1};
    const tree *root = NULL;
    for (unsigned k = 0; k < KEYS; k++)
        REQUIRE(cx_tree_set(&forest, &root, (tree_name){key_of(k), false}, leaf_value(1)));
    for (unsigned low = 0; low < KEYS; low++) {
        for (unsigned high = 0; high < KEYS; high += 7) {
            const tree *part, *last = NULL;
            tree_range range = {key_of(low), key_of(high)};
            forest.stamp++;
            REQUIRE(cx_tree_restrict(&forest, root, range, &part));
            CHECK(is_sound(part, &last));
            for (unsigned k = 0; k < KEYS; k++) {
                bool inside =
                    cx_str_cmp(key_of(k), range.low) > 0 && cx_str_cmp(key_of(k), range.high) < 0;
                CHECK_INT(cx_tree_find(part, key_of(k)) != NULL, inside);
                CHECK(cx_tree_find(root, key_of(k)) != NULL);
            }
        }
    }
    cx_arena_done(&arena);
}
