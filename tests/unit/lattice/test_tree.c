/*
 * test_tree.c - persistent maps against a plain sorted array, old versions included.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "lattice/tree_runs.h"
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

static void begin_change(cx_forest *forest)
{
    forest->stamp++;
    if (forest->scratch != NULL)
        cx_arena_reset(forest->scratch, (cx_arena_mark){0});
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
    REQUIRE(cx_tree_settle(&forest, &work, &root));
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
    REQUIRE(cx_tree_settle(&forest, &work, &root));
    begin_change(&forest);
    REQUIRE(set_member(&forest, &root, CX_STR("\"fits\":0"), 4));
    REQUIRE(cx_tree_settle(&forest, &work, &root));
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
    REQUIRE(cx_tree_settle(&forest, &work, &root));
    CHECK(root->is_inside);
    CHECK_STR(tree_key(root), "k");
    CHECK_STR(value_text(tree_value(root)), "1");
    /* A decoded key is not what is written. */
    REQUIRE(cx_tree_set(&forest, &other, escaped, value_of_text(CX_STR("1"))));
    REQUIRE(cx_tree_settle(&forest, &work, &other));
    CHECK(!other->is_inside);
    CHECK_STR(tree_key(other), "\n");
    /* A node like another has its key and another value. */
    begin_change(&forest);
    REQUIRE(cx_tree_make(&forest, root, value_of_text(CX_STR("2")), NULL, NULL, &made));
    REQUIRE(cx_tree_settle(&forest, &work, &made));
    CHECK(made->is_inside);
    CHECK_STR(tree_key(made), "k");
    CHECK_STR(value_text(tree_value(made)), "2");
    CHECK_STR(value_text(tree_value(root)), "1");
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
}

/* --- settled trees ------------------------------------------------------------------------- */

/* I1 to I3 of settle.c: the number of keys, or 0 when something is wrong. */
static unsigned settled_count(const tree *t)
{
    unsigned left = t->left == NULL ? 0 : settled_count(t->left);
    unsigned right = t->right == NULL ? 0 : settled_count(t->right), count = left + 1 + right;
    if (t->stamp != 0 || (t->left != NULL && left == 0) || (t->right != NULL && right == 0))
        return 0;
    if (count > TREE_BLOCK)
        return t->count == 0 ? count : 0;
    if (t->count != count || t->before != left ||
        (t->left != NULL && t->left - t->left->before != t - left) ||
        (t->right != NULL && t->right - t->right->before != t + 1))
        return 0;
    return count;
}

static void list_nodes(const tree *t, const tree **nodes, unsigned *count)
{
    if (t == NULL)
        return;
    list_nodes(t->left, nodes, count);
    nodes[(*count)++] = t;
    list_nodes(t->right, nodes, count);
}

/* The directory has all nodes, in their order. */
static bool is_listed(const tree *root)
{
    const tree *nodes[KEYS];
    unsigned count = 0, at = 0;
    list_nodes(root, nodes, &count);
    for (uint32_t i = 0; i < tree_run_count(root); i++) {
        tree_run run = tree_run_at(root, i);
        for (const tree *t = run.first; t < run.end; t++)
            if (at == count || nodes[at++] != t)
                return false;
    }
    return at == count;
}

static int compare_keys(const void *a, const void *b)
{
    return cx_str_cmp(key_of(*(const unsigned *)a), key_of(*(const unsigned *)b));
}

/* What a map is to be written as; `inner` stands for the value of key 0 when it is there. */
static void write_model(const model *m, const char *inner, cx_buf *out)
{
    unsigned sorted[KEYS];
    for (unsigned k = 0; k < KEYS; k++)
        sorted[k] = k;
    qsort(sorted, KEYS, sizeof *sorted, compare_keys);
    cx_buf_add_byte(out, '{');
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned k = sorted[i];
        if (m->leaf[k] == 0)
            continue;
        cx_buf_printf(out, "%s\"%.*s\":%s", out->data[out->size - 1] == '{' ? "" : ",",
                      (int)key_of(k).size, key_of(k).data,
                      k == 0 && inner != NULL ? inner : leaf_texts[m->leaf[k] - 1]);
    }
    cx_buf_add_byte(out, '}');
}

typedef struct settled_run {
    const tree *roots[VERSIONS];
    model models[VERSIONS];
    cx_arena arena, scratch;
    tree_work work;
    cx_forest forest;
} settled_run;

static void settled_begin(settled_run *run, const cx_alloc *alloc, uint64_t seed)
{
    *run = (settled_run){.forest = {.arena = &run->arena, .seed = seed, .scratch = &run->scratch}};
    cx_arena_init(&run->arena, alloc, 0);
    cx_arena_init(&run->scratch, cx_alloc_default(), 0);
    cx_tree_work_init(&run->work, cx_alloc_default());
}

static void settled_end(settled_run *run)
{
    cx_arena_done(&run->arena);
    cx_arena_done(&run->scratch);
    cx_tree_work_done(&run->work);
}

/* Many versions, each on one of those before it. */
static void settled_grow(settled_run *run, uint64_t *random)
{
    for (unsigned v = 1; v < VERSIONS; v++) {
        unsigned from =
            cx_test_random(random) % 4 == 0 ? (unsigned)cx_test_random(random) % v : v - 1;
        begin_change(&run->forest);
        run->roots[v] = run->roots[from];
        run->models[v] = run->models[from];
        unsigned changes = v % 50 == 1 ? KEYS : v % 3;
        for (unsigned i = 0; i < changes; i++)
            REQUIRE(change(&run->forest, &run->roots[v], &run->models[v], random));
        REQUIRE(cx_tree_settle(&run->forest, &run->work, &run->roots[v]));
    }
    cx_arena_done(&run->scratch); /* nothing may point there */
}

static void settled_check(settled_run *run, unsigned *out_kinds)
{
    cx_buf out, expected;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    for (unsigned v = 0; v < VERSIONS; v++) {
        const tree *last = NULL, *root = run->roots[v];
        CHECK(matches(root, &run->models[v]));
        CHECK(is_sound(root, &last));
        CHECK(root == NULL || settled_count(root) != 0);
        if (root != NULL && root->count == 0) {
            CHECK(root->before == DIRECTORY_NONE || is_listed(root));
            out_kinds[root->before]++;
        }
        cx_buf_clear(&out);
        cx_buf_clear(&expected);
        write_model(&run->models[v], NULL, &expected);
        REQUIRE(cx_tree_write(&run->work, value_of_root(root), &out));
        CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&expected)));
    }
    cx_buf_done(&out);
    cx_buf_done(&expected);
}

CX_TEST(tree_settled_versions_lie_in_blocks)
{
    static settled_run run;
    unsigned kinds[16] = {0};
    uint64_t random = cx_test_seed();
    settled_begin(&run, cx_alloc_default(), random);
    settled_grow(&run, &random);
    settled_check(&run, kinds);
    CHECK(kinds[DIRECTORY_NEAR] + kinds[DIRECTORY_FAR] > VERSIONS / 2);
    settled_end(&run);
}

/* Chunks of two places further apart than a near directory reaches, in turns. */
typedef struct far_memory {
    uint8_t *base;
    size_t used[2];
    unsigned turn;
} far_memory;

#define FAR_APART ((size_t)5 << 30)
#define FAR_ROOM ((size_t)64 << 20)

static void *far_resize(void *ctx, void *block, size_t old_size_bytes, size_t new_size_bytes)
{
    far_memory *far = ctx;
    unsigned place = far->turn++ & 1;
    (void)block;
    if (old_size_bytes != 0 || new_size_bytes > FAR_ROOM - far->used[place])
        return NULL;
    uint8_t *at = far->base + place * FAR_APART + far->used[place];
    far->used[place] += (new_size_bytes + 63) & ~(size_t)63;
    return at;
}

CX_TEST(tree_settled_versions_far_apart)
{
    static settled_run run;
    unsigned kinds[16] = {0};
    uint64_t random = cx_test_seed();
    far_memory far = {0};
    far.base = mmap(NULL, FAR_APART + FAR_ROOM, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (far.base == MAP_FAILED)
        return; /* an address space too small for it needs no far directories */
    const cx_alloc alloc = {far_resize, &far};
    settled_begin(&run, &alloc, random);
    settled_grow(&run, &random);
    settled_check(&run, kinds);
    CHECK(kinds[DIRECTORY_FAR] != 0);
    CHECK(kinds[DIRECTORY_NEAR] != 0);
    settled_end(&run);
    CHECK(munmap(far.base, FAR_APART + FAR_ROOM) == 0);
}

CX_TEST(tree_maps_within_settled_maps_are_written)
{
    static settled_run run;
    uint64_t random = cx_test_seed();
    cx_buf out, expected;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    settled_begin(&run, cx_alloc_default(), random);
    for (unsigned outer = 1; outer < KEYS; outer += 3) {
        for (unsigned inner = 0; inner < KEYS; inner += 7) {
            static model m[2];
            const tree *roots[2] = {NULL, NULL};
            begin_change(&run.forest);
            m[0] = m[1] = (model){0};
            for (unsigned i = 0; i < 2; i++) {
                for (unsigned k = 0; k < (i == 0 ? inner : outer); k++) {
                    cx_value v = i == 1 && k == 0 ? value_of_root(roots[0]) : leaf_value(1);
                    m[i].leaf[k] = 1;
                    REQUIRE(cx_tree_set(&run.forest, &roots[i], (tree_name){member_of(k, 1), false},
                                        v));
                }
                REQUIRE(cx_tree_settle(&run.forest, &run.work, &roots[i]));
            }
            cx_buf_clear(&out);
            cx_buf_clear(&expected);
            write_model(&m[0], NULL, &expected);
            char *text = strdup(cx_buf_z(&expected));
            REQUIRE(text != NULL);
            cx_buf_clear(&expected);
            write_model(&m[1], text, &expected);
            free(text);
            REQUIRE(cx_tree_write(&run.work, value_of_root(roots[1]), &out));
            CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&expected)));
        }
    }
    settled_end(&run);
    cx_buf_done(&out);
    cx_buf_done(&expected);
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
