/*
 * test_tree_place.c - where nodes of maps lie when a change is over, and maps written from there.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "lattice/tree_runs.h"
#include "tests/support/tree_model.h"

/* I1 to I3 of tree_place.c: the number of keys, or 0 when something is wrong. */
static unsigned placed_count(const tree *t)
{
    unsigned left = t->left == NULL ? 0 : placed_count(t->left);
    unsigned right = t->right == NULL ? 0 : placed_count(t->right), count = left + 1 + right;
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

typedef struct placed_run {
    const tree *roots[VERSIONS];
    model models[VERSIONS];
    cx_arena arena, scratch;
    tree_work work;
    cx_forest forest;
} placed_run;

static void placed_begin(placed_run *run, const cx_alloc *alloc, uint64_t seed)
{
    *run = (placed_run){.forest = {.arena = &run->arena, .seed = seed, .scratch = &run->scratch}};
    cx_arena_init(&run->arena, alloc, 0);
    cx_arena_init(&run->scratch, cx_alloc_default(), 0);
    cx_tree_work_init(&run->work, cx_alloc_default());
}

static void placed_end(placed_run *run)
{
    cx_arena_done(&run->arena);
    cx_arena_done(&run->scratch);
    cx_tree_work_done(&run->work);
}

/* Many versions, each on one of those before it. */
static void placed_grow(placed_run *run, uint64_t *random)
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
        REQUIRE(cx_tree_place(&run->forest, &run->work, &run->roots[v]));
    }
    cx_arena_done(&run->scratch); /* nothing may point there */
}

static void placed_check(placed_run *run, unsigned *out_kinds)
{
    cx_buf out, expected;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    for (unsigned v = 0; v < VERSIONS; v++) {
        const tree *last = NULL, *root = run->roots[v];
        CHECK(matches(root, &run->models[v]));
        CHECK(is_sound(root, &last));
        CHECK(root == NULL || placed_count(root) != 0);
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

CX_TEST(tree_placed_versions_lie_in_blocks)
{
    static placed_run run;
    unsigned kinds[16] = {0};
    uint64_t random = cx_test_seed();
    placed_begin(&run, cx_alloc_default(), random);
    placed_grow(&run, &random);
    placed_check(&run, kinds);
    CHECK(kinds[DIRECTORY_NEAR] + kinds[DIRECTORY_FAR] > VERSIONS / 2);
    placed_end(&run);
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

CX_TEST(tree_placed_versions_far_apart)
{
    static placed_run run;
    unsigned kinds[16] = {0};
    uint64_t random = cx_test_seed();
    far_memory far = {0};
    if (SIZE_MAX == UINT32_MAX)
        return; /* nothing is that far away */
    far.base = mmap(NULL, FAR_APART + FAR_ROOM, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (far.base == MAP_FAILED)
        return; /* address space is limited here */
    const cx_alloc alloc = {far_resize, &far};
    placed_begin(&run, &alloc, random);
    placed_grow(&run, &random);
    placed_check(&run, kinds);
    CHECK(kinds[DIRECTORY_FAR] != 0);
    CHECK(kinds[DIRECTORY_NEAR] != 0);
    placed_end(&run);
    CHECK(munmap(far.base, FAR_APART + FAR_ROOM) == 0);
}

CX_TEST(tree_maps_within_placed_maps_are_written)
{
    static placed_run run;
    uint64_t random = cx_test_seed();
    cx_buf out, expected;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    placed_begin(&run, cx_alloc_default(), random);
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
                REQUIRE(cx_tree_place(&run.forest, &run.work, &roots[i]));
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
    placed_end(&run);
    cx_buf_done(&out);
    cx_buf_done(&expected);
}

CX_TEST(tree_large_maps_are_written_without_a_directory)
{
    enum { MANY = 3000 };
    static char names[MANY][16];
    static placed_run run;
    const tree *root = NULL, *inner = NULL;
    cx_buf out, expected;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    placed_begin(&run, cx_alloc_default(), cx_test_seed());
    begin_change(&run.forest);
    REQUIRE(set_member(&run.forest, &inner, CX_STR("\"a\":1"), 1));
    REQUIRE(cx_tree_place(&run.forest, &run.work, &inner));
    for (unsigned i = 0; i < MANY; i++) {
        bool map = i % 3 == 0;
        (void)snprintf(names[i], sizeof names[i], "\"k%04u\":%u", i, i % 10);
        tree_name name = {cx_str_from(names[i] + 1, 5), false};
        cx_value v = map ? value_of_root(inner) : value_of_text(cx_str_from(names[i] + 8, 1));
        REQUIRE(cx_tree_set(&run.forest, &root, name, v));
        cx_buf_printf(&expected, "%c%.8s%s", i == 0 ? '{' : ',', names[i],
                      map ? "{\"a\":1}" : names[i] + 8);
    }
    cx_buf_add_byte(&expected, '}');
    REQUIRE(cx_tree_place(&run.forest, &run.work, &root));
    CHECK_INT(placed_count(root), MANY);
    CHECK_INT(tree_run_count(root), 0);
    REQUIRE(cx_tree_write(&run.work, value_of_root(root), &out));
    CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&expected)));
    placed_end(&run);
    cx_buf_done(&out);
    cx_buf_done(&expected);
}
