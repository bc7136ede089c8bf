/*
 * test_tree.c - persistent maps against a plain sorted array, old versions included.
 */
#include "lattice/tree.h"

#include "tests/test.h"

enum { KEYS = 60, VERSIONS = 400 };

static char key_texts[KEYS][16];
static char member_texts[KEYS][4][32];
/* The last is too long to lie inside of a node. */
static const char *const leaf_texts[4] = {"1", "2.5", "\"x\"", "[1,null,true]"};

/* Which leaf each key has, 0 = none. */
typedef struct model {
    uint8_t leaf[KEYS];
} model;

static cx_str key_of(unsigned k)
{
    if (key_texts[k][0] == 0)
        (void)snprintf(key_texts[k], sizeof key_texts[k], "\"k%u\":", k * 7919 % 1000);
    return cx_str_from(key_texts[k] + 1, strlen(key_texts[k]) - 3);
}

static cx_value leaf_value(unsigned leaf)
{
    return value_of_text(cx_str_z(leaf_texts[leaf - 1]));
}

/* The key with the leaf right behind it, as in the text of a delta. */
static cx_str member_of(unsigned k, unsigned leaf)
{
    char *text = member_texts[k][leaf - 1];
    if (text[0] == 0)
        (void)snprintf(text, sizeof member_texts[k][0], "\"%.*s\":%s", (int)key_of(k).size,
                       key_of(k).data, leaf_texts[leaf - 1]);
    return cx_str_from(text + 1, key_of(k).size);
}

static bool matches(const tree *root, const model *m)
{
    for (unsigned k = 0; k < KEYS; k++) {
        cx_value expected = m->leaf[k] == 0 ? VALUE_ABSENT : leaf_value(m->leaf[k]);
        if (!value_is_same(tree_value(cx_tree_find(root, key_of(k))), expected))
            return false;
    }
    return true;
}

static bool is_sound(const tree *t, const tree **last)
{
    if (t == NULL)
        return true;
    if ((t->left != NULL && !cx_tree_outranks(t, t->left)) ||
        (t->right != NULL && !cx_tree_outranks(t, t->right)) || !is_sound(t->left, last))
        return false;
    if (*last != NULL && cx_str_cmp(tree_key(*last), tree_key(t)) >= 0)
        return false;
    *last = t;
    return is_sound(t->right, last);
}

static bool change(cx_forest *forest, const tree **root, model *m, uint64_t *random)
{
    unsigned k = (unsigned)(cx_test_random(random) % KEYS);
    unsigned leaf = (unsigned)(cx_test_random(random) % 5);
    m->leaf[k] = (uint8_t)leaf;
    if (leaf == 0)
        return cx_tree_remove(forest, root, key_of(k));
    if (cx_test_random(random) % 4 == 0)
        return cx_tree_set(forest, root, (tree_name){key_of(k), false}, leaf_value(leaf));
    cx_str key = member_of(k, leaf);
    cx_str text = cx_str_from(key.data + key.size + 2, strlen(leaf_texts[leaf - 1]));
    return cx_tree_set(forest, root, (tree_name){key, false}, value_of_text(text));
}

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
    cx_forest forest = {&arena, random, 1};
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
    cx_forest forest = {&arena, cx_test_seed(), 1};
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
    cx_forest forest = {&arena, cx_test_seed(), 1};
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

/* `"key":value` as one text: the name in it, and the value behind it. */
static bool set_member(cx_forest *forest, const tree **root, cx_str text, size_t key_size)
{
    tree_name name = {cx_str_from(text.data + 1, key_size), false};
    cx_str value = cx_str_from(text.data + key_size + 3, text.size - key_size - 3);
    return cx_tree_set(forest, root, name, value_of_text(value));
}

CX_TEST(tree_short_texts_lie_inside_and_stay)
{
    cx_arena arena;
    tree_work work;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_tree_work_init(&work, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    cx_forest forest = {&arena, 5, 1};
    const tree *root = NULL;
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":12345"), 1));
    REQUIRE(set_member(&forest, &root, CX_STR("\"fits\":\"exactly\""), 4));
    REQUIRE(set_member(&forest, &root, CX_STR("\"long\":\"too much\""), 4));
    const tree *k = cx_tree_find(root, CX_STR("k")), *lasting = cx_tree_find(root, CX_STR("long"));
    CHECK(k->key == k->inside + 1);
    CHECK(lasting->key != lasting->inside + 1);
    cx_value old = tree_value(k);

    /* Within one change the node is overwritten, the text it held is not. */
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":67890"), 1));
    CHECK(cx_tree_find(root, CX_STR("k")) == k);
    CHECK_STR(value_text(old), "12345");
    CHECK_STR(value_text(tree_value(k)), "67890");

    /* A later change makes a node with a text of its own; what is only copied takes its along. */
    const tree *before = root;
    forest.stamp++;
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":[]"), 1));
    const tree *later = cx_tree_find(root, CX_STR("k"));
    CHECK(later != k && later->key == later->inside + 1);
    forest.stamp++;
    REQUIRE(set_member(&forest, &root, CX_STR("\"fits\":0"), 4));
    REQUIRE(cx_tree_write(&work, value_of_root(root), &out));
    CHECK_STR(cx_buf_str(&out), "{\"fits\":0,\"k\":[],\"long\":\"too much\"}");
    cx_buf_clear(&out);
    REQUIRE(cx_tree_write(&work, value_of_root(before), &out));
    CHECK_STR(cx_buf_str(&out), "{\"fits\":\"exactly\",\"k\":67890,\"long\":\"too much\"}");
    cx_buf_done(&out);
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
}

CX_TEST(tree_texts_in_two_places_do_not_lie_inside)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_forest forest = {&arena, 5, 1};
    const tree *root = NULL, *made = NULL;
    static const char quoted[] = "\"k\"";
    tree_name name = {cx_str_from(&quoted[1], 1), false}, escaped = {CX_STR("\n"), true};
    REQUIRE(cx_tree_set(&forest, &root, name, value_of_text(CX_STR("1"))));
    CHECK(root->key != root->inside + 1);
    const tree *other = NULL;
    REQUIRE(cx_tree_set(&forest, &other, escaped, value_of_text(CX_STR("1"))));
    CHECK(other->key != other->inside + 1);
    /* A node like another has its key, inside as well, and another value. */
    root = NULL;
    REQUIRE(set_member(&forest, &root, CX_STR("\"k\":1"), 1));
    REQUIRE(cx_tree_make(&forest, root, value_of_text(CX_STR("2")), NULL, NULL, &made));
    CHECK(made->key == made->inside + 1);
    CHECK_STR(tree_key(made), "k");
    CHECK_STR(value_text(tree_value(made)), "2");
    CHECK_STR(value_text(tree_value(root)), "1");
    cx_arena_done(&arena);
}

CX_TEST(tree_restrict_takes_the_open_range)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_forest forest = {&arena, cx_test_seed(), 1};
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
