/*
 * home_tree.c - the tree over all actors as rows.
 *
 * Invariants T1 to T3: home_tree.h.
 *
 * A *block* is 256 neighbours of one level.  Changes go up level by level: each block that has some
 * is read, and when it is whole, its hash is a change of the level above.
 */
#include "ledger/root/home_tree.h"

#include <stdlib.h>

#include "base/api.h"

enum {
    LEVEL_BITS = 8,
    BLOCK_WIDTH = 1 << LEVEL_BITS,
    LEVELS = 8,
    NODE_PREFIX_SIZE = sizeof CX_HOME_TREE_PREFIX - 1,
    NODE_KEY_SIZE = NODE_PREFIX_SIZE + 1 + 8,
    PEAKS_MAX = 64
};

#define SIZE_KEY CX_HOME_TREE_PREFIX "size"

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct rows {
    cx_home *home;
    int64_t actor;
    uint64_t commit; /* of what is written */
} rows;

static cx_bytes node_key(unsigned level, uint64_t block, uint8_t out[NODE_KEY_SIZE])
{
    cx_writer writer = cx_writer_over(out + NODE_PREFIX_SIZE, NODE_KEY_SIZE - NODE_PREFIX_SIZE);
    memcpy(out, CX_HOME_TREE_PREFIX, NODE_PREFIX_SIZE);
    cx_writer_uint(&writer, level, 1);
    cx_writer_uint(&writer, block, 8);
    return cx_bytes_from(out, NODE_KEY_SIZE);
}

/* The hashes of a block, zeros where the row has none; *out_width: how many the row has. */
static cx_status read_block(const rows *r, unsigned level, uint64_t block,
                            cx_digest out[BLOCK_WIDTH], size_t *out_width, cx_err *err)
{
    uint8_t key[NODE_KEY_SIZE];
    cx_arena arena;
    cx_bytes value = {NULL, 0};
    bool found = false;
    cx_arena_init(&arena, r->home->alloc, 0);
    cx_status status = cx_store_get(&r->home->store, r->actor, node_key(level, block, key), &arena,
                                    &value, &found, NULL, err);
    if (!cx_failed(status)) {
        const size_t width = found ? value.size / sizeof *out : 0;
        *out_width = width < BLOCK_WIDTH ? width : BLOCK_WIDTH;
        memset(out, 0, BLOCK_WIDTH * sizeof *out);
        if (width != 0)
            memcpy(out, value.data, *out_width * sizeof *out);
    }
    cx_arena_done(&arena);
    return status;
}

static cx_status write_row(const rows *r, cx_bytes key, cx_bytes value, cx_err *err)
{
    const cx_row row = {.actor = r->actor, .key = key, .value = value, .commit = r->commit};
    return cx_store_put(&r->home->store, &row, err);
}

static cx_status write_block(const rows *r, unsigned level, uint64_t block,
                             const cx_digest hashes[BLOCK_WIDTH], size_t width, cx_err *err)
{
    uint8_t key[NODE_KEY_SIZE];
    return write_row(r, node_key(level, block, key),
                     cx_bytes_from((const uint8_t *)hashes, width * sizeof *hashes), err);
}

static cx_status read_size(const rows *r, uint64_t *out, cx_err *err)
{
    cx_arena arena;
    cx_bytes value = {NULL, 0};
    bool found = false;
    cx_arena_init(&arena, r->home->alloc, 0);
    cx_status status = cx_store_get(&r->home->store, r->actor, cx_str_bytes(CX_STR(SIZE_KEY)),
                                    &arena, &value, &found, NULL, err);
    *out = 0;
    for (size_t i = 0; !cx_failed(status) && found && i < value.size && i < sizeof *out; i++)
        *out = *out << 8 | value.data[i];
    cx_arena_done(&arena);
    return status;
}

static cx_status write_size(const rows *r, uint64_t size, cx_err *err)
{
    uint8_t value[8];
    cx_writer writer = cx_writer_over(value, sizeof value);
    cx_writer_uint(&writer, size, sizeof value);
    return write_row(r, cx_str_bytes(CX_STR(SIZE_KEY)), cx_bytes_from(value, sizeof value), err);
}

/* --- changes, level by level ------------------------------------------------------------------ */

typedef CX_VEC(cx_home_tree_change) change_list; /* `position` within the level */

/* How blocks are read as they were, and what becomes of them. */
typedef struct update {
    const cx_alloc *alloc;
    uint64_t size_before, size;
    void *arg;
    cx_status (*read)(void *arg, unsigned level, uint64_t block, size_t width,
                      cx_digest out[BLOCK_WIDTH], cx_err *err);
    /* Each block that changed, and the last one of a level where `edge` is to be known. */
    cx_status (*see)(void *arg, unsigned level, uint64_t block, const cx_digest *hashes,
                     size_t width, bool changed, cx_err *err);
    bool edge;
} update;

static uint64_t nodes_at(uint64_t size, unsigned level)
{
    return size >> (LEVEL_BITS * level);
}

/* How many nodes a block has when its level has `count`. */
static size_t width_of(uint64_t count, uint64_t block)
{
    const uint64_t first = block << LEVEL_BITS;
    if (count <= first)
        return 0;
    return count - first < BLOCK_WIDTH ? (size_t)(count - first) : BLOCK_WIDTH;
}

/* hashes[0] becomes the node over the first `width` of a level, a power of two. */
static void fold(unsigned level, cx_digest *hashes, size_t width)
{
    if (level == 0)
        cx_scheme_level0_many(CX_SCHEME_CORTEX_1, hashes, hashes, width);
    for (; width > 1; width /= 2)
        cx_scheme_nodes(CX_SCHEME_CORTEX_1, hashes, hashes, width / 2);
}

/* The block with its changes, which begin at *at; what is above it if it is whole. */
static cx_status update_block(const update *u, unsigned level, uint64_t block,
                              const change_list *changes, size_t *at, change_list *above,
                              cx_err *err)
{
    cx_digest hashes[BLOCK_WIDTH];
    const size_t width = width_of(nodes_at(u->size, level), block);
    const size_t before = width_of(nodes_at(u->size_before, level), block);
    const size_t first = *at;
    memset(hashes, 0, sizeof hashes);
    if (before != 0)
        CX_TRY(u->read(u->arg, level, block, before, hashes, err));
    for (; *at < changes->count && changes->items[*at].position >> LEVEL_BITS == block; ++*at)
        hashes[changes->items[*at].position % BLOCK_WIDTH] = changes->items[*at].hash;
    CX_TRY(u->see(u->arg, level, block, hashes, width, *at != first, err));
    if (width != BLOCK_WIDTH || *at == first)
        return CX_SUCCESS;
    cx_home_tree_change *slot = cx_vec_push(above, u->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    fold(level, hashes, BLOCK_WIDTH);
    *slot = (cx_home_tree_change){block, hashes[0]};
    return CX_SUCCESS;
}

static cx_status update_level(const update *u, unsigned level, const change_list *changes,
                              change_list *above, cx_err *err)
{
    const uint64_t count = nodes_at(u->size, level);
    bool edge = u->edge && count % BLOCK_WIDTH != 0;
    size_t at = 0;
    above->count = 0;
    while (at < changes->count) {
        const uint64_t block = changes->items[at].position >> LEVEL_BITS;
        edge = edge && block != count >> LEVEL_BITS;
        CX_TRY(update_block(u, level, block, changes, &at, above, err));
    }
    return edge ? update_block(u, level, count >> LEVEL_BITS, changes, &at, above, err)
                : CX_SUCCESS;
}

static cx_status run_update(const update *u, const cx_home_tree_change *changes, size_t count,
                            cx_err *err)
{
    change_list lists[2] = {{0}, {0}};
    cx_status status = CX_SUCCESS;
    if (!cx_vec_reserve(&lists[0], count, u->alloc))
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(lists[0].items, changes, count * sizeof *changes);
    lists[0].count = count;
    for (unsigned level = 0; level < LEVELS && nodes_at(u->size, level) != 0; level++) {
        status = update_level(u, level, &lists[level % 2], &lists[(level + 1) % 2], err);
        if (cx_failed(status))
            break;
    }
    cx_vec_done(&lists[0], u->alloc);
    cx_vec_done(&lists[1], u->alloc);
    return status;
}

/* --- applying a frame (T1) -------------------------------------------------------------------- */

static cx_status read_as_written(void *arg, unsigned level, uint64_t block, size_t width,
                                 cx_digest out[BLOCK_WIDTH], cx_err *err)
{
    size_t ignored;
    (void)width;
    return read_block(arg, level, block, out, &ignored, err);
}

static cx_status write_changed(void *arg, unsigned level, uint64_t block, const cx_digest *hashes,
                               size_t width, bool changed, cx_err *err)
{
    return changed ? write_block(arg, level, block, hashes, width, err) : CX_SUCCESS;
}

typedef struct leaf_at {
    uint64_t position;
    size_t order; /* in the frame */
} leaf_at;

static int compare_leaves(const void *a, const void *b)
{
    const leaf_at *x = a, *y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* By position; of two for one, the later, as in the records. */
static cx_status list_leaves(change_list *list, const cx_change *changes, size_t count,
                             const cx_alloc *alloc, cx_err *err)
{
    const size_t size = (count + 1) * sizeof(leaf_at);
    size_t found = 0;
    leaf_at *leaves = cx_alloc_new(alloc, size);
    if (leaves == NULL || !cx_vec_reserve(list, count, alloc)) {
        cx_alloc_free(alloc, leaves, size);
        return cx_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        /* Positions are numbers of actors, which tables have as signed ones. */
        leaves[found] = (leaf_at){.order = i};
        found += cx_home_leaf_is(changes[i].key, &leaves[found].position) &&
                 leaves[found].position < (uint64_t)INT64_MAX;
    }
    qsort(leaves, found, sizeof *leaves, compare_leaves);
    for (size_t i = 0; i < found; i++)
        if (i + 1 == found || leaves[i + 1].position != leaves[i].position)
            list->items[list->count++] = (cx_home_tree_change){
                leaves[i].position, cx_home_leaf_hash(changes[leaves[i].order].value)};
    cx_alloc_free(alloc, leaves, size);
    return CX_SUCCESS;
}

cx_status cx_home_tree_apply(cx_home *home, const cx_actor *actor, const cx_change *changes,
                             size_t count, uint64_t commit, cx_err *err)
{
    rows r = {home, actor->id, commit};
    update u = {.alloc = home->alloc, .arg = &r, .read = read_as_written, .see = write_changed};
    change_list list = {0};
    cx_status status = list_leaves(&list, changes, count, home->alloc, err);
    if (!cx_failed(status) && list.count != 0) {
        status = read_size(&r, &u.size_before, err);
        const uint64_t end = list.items[list.count - 1].position + 1;
        u.size = u.size_before < end ? end : u.size_before;
        if (!cx_failed(status))
            status = run_update(&u, list.items, list.count, err);
        if (!cx_failed(status) && u.size != u.size_before)
            status = write_size(&r, u.size, err);
    }
    cx_vec_done(&list, home->alloc);
    return status;
}

/* --- a tree that leads to a home root (T2) ---------------------------------------------------- */

struct cx_home_tree {
    rows rows;
    uint64_t size;
    cx_mmr *mmr;
};

static cx_status damaged(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the tree over all actors is damaged; run 'cortex tables rebuild' (the log "
                      "is the truth, nothing is lost)");
}

static cx_status give_nodes(void *arg, unsigned level, uint64_t first, size_t count, cx_digest *out,
                            cx_err *err)
{
    cx_digest hashes[BLOCK_WIDTH];
    size_t width;
    CX_TRY(read_block(arg, level, first >> LEVEL_BITS, hashes, &width, err));
    if (first % BLOCK_WIDTH + count > width)
        return damaged(err);
    memcpy(out, hashes + first % BLOCK_WIDTH, count * sizeof *out);
    return CX_SUCCESS;
}

static cx_status give_leaves(void *arg, uint64_t first, size_t count, cx_digest *out, cx_err *err)
{
    return give_nodes(arg, 0, first, count, out, err);
}

/* Peaks of all heights; those of a block begin at 8 * level. */
typedef struct peaks {
    cx_digest at[PEAKS_MAX];
} peaks;

static void add_peaks(peaks *p, unsigned level, const cx_digest *hashes, size_t width)
{
    size_t end = 0;
    for (unsigned j = LEVEL_BITS; j-- > 0;) {
        cx_digest part[BLOCK_WIDTH];
        const size_t some = (size_t)1 << j;
        if ((width & some) == 0)
            continue;
        memcpy(part, hashes + end, some * sizeof *part);
        fold(level, part, some);
        p->at[LEVEL_BITS * level + j] = part[0];
        end += some;
    }
}

static cx_status edge_of(const peaks *p, uint64_t size, const cx_alloc *alloc, cx_mmr_edge *out,
                         cx_err *err)
{
    *out = (cx_mmr_edge){.size = size};
    if (!cx_vec_reserve(&out->peaks, PEAKS_MAX, alloc))
        return cx_fail_nomem(err);
    for (unsigned height = PEAKS_MAX; height-- > 0;)
        if ((size >> height & 1) != 0)
            out->peaks.items[out->peaks.count++] = p->at[height];
    return CX_SUCCESS;
}

static cx_status read_peaks(const rows *r, uint64_t size, peaks *out, cx_err *err)
{
    for (unsigned level = 0; level < LEVELS && nodes_at(size, level) != 0; level++) {
        const uint64_t count = nodes_at(size, level);
        cx_digest hashes[BLOCK_WIDTH];
        size_t width;
        if (count % BLOCK_WIDTH == 0)
            continue;
        CX_TRY(read_block(r, level, count >> LEVEL_BITS, hashes, &width, err));
        if (width != count % BLOCK_WIDTH)
            return damaged(err);
        add_peaks(out, level, hashes, width);
    }
    return CX_SUCCESS;
}

static cx_status open_at(cx_home_tree *tree, const cx_home_root *root, cx_err *err)
{
    const cx_alloc *alloc = tree->rows.home->alloc;
    const cx_mmr_keeper keeper = {&tree->rows, give_leaves, give_nodes};
    peaks p = {0};
    cx_mmr_edge edge;
    if (root->actors >= (uint64_t)INT64_MAX)
        return damaged(err);
    CX_TRY(read_peaks(&tree->rows, root->actors, &p, err));
    CX_TRY(edge_of(&p, root->actors, alloc, &edge, err));
    const cx_digest found = cx_mmr_edge_root(&edge, CX_SCHEME_CORTEX_1);
    cx_status status =
        cx_digest_eq(&found, &root->root)
            ? cx_mmr_open_kept(CX_SCHEME_CORTEX_1, alloc, &edge, &keeper, &tree->mmr, err)
            : damaged(err);
    cx_vec_done(&edge.peaks, alloc);
    return status;
}

cx_status cx_home_tree_open(cx_home *home, int64_t actor, const cx_home_root *root,
                            cx_home_tree **out, cx_err *err)
{
    cx_home_tree *tree = cx_alloc_zeroed(home->alloc, 1, sizeof *tree);
    if (tree == NULL)
        return cx_fail_nomem(err);
    tree->rows = (rows){.home = home, .actor = actor};
    tree->size = root == NULL ? 0 : root->actors;
    cx_status status = root == NULL ? CX_SUCCESS : open_at(tree, root, err);
    if (cx_failed(status))
        cx_home_tree_close(tree);
    else
        *out = tree;
    return status;
}

void cx_home_tree_close(cx_home_tree *tree)
{
    if (tree == NULL)
        return;
    cx_mmr_close(tree->mmr);
    cx_alloc_free(tree->rows.home->alloc, tree, sizeof *tree);
}

cx_status cx_home_tree_leaf(cx_home_tree *tree, uint64_t position, cx_digest *out, cx_err *err)
{
    CX_ASSERT(position < tree->size);
    return cx_mmr_leaves(tree->mmr, position, 1, out, err);
}

cx_status cx_home_tree_inclusion(cx_home_tree *tree, uint64_t position, cx_mmr_path *out,
                                 cx_err *err)
{
    CX_ASSERT(position < tree->size);
    return cx_mmr_inclusion(tree->mmr, position, tree->size, out, err);
}

typedef struct with_changes {
    cx_home_tree *tree;
    peaks peaks;
} with_changes;

static cx_status read_checked(void *arg, unsigned level, uint64_t block, size_t width,
                              cx_digest out[BLOCK_WIDTH], cx_err *err)
{
    const with_changes *w = arg;
    const uint64_t first = block << LEVEL_BITS;
    if (level == 0)
        return cx_mmr_leaves(w->tree->mmr, first, width, out, err);
    for (size_t i = 0; i < width; i++)
        CX_TRY(cx_mmr_node(w->tree->mmr, LEVEL_BITS * level, first + i, &out[i], err));
    return CX_SUCCESS;
}

static cx_status note_edge(void *arg, unsigned level, uint64_t block, const cx_digest *hashes,
                           size_t width, bool changed, cx_err *err)
{
    with_changes *w = arg;
    (void)block;
    (void)changed;
    (void)err;
    if (width != BLOCK_WIDTH)
        add_peaks(&w->peaks, level, hashes, width);
    return CX_SUCCESS;
}

cx_status cx_home_tree_root_with(cx_home_tree *tree, const cx_home_tree_change *changes,
                                 size_t count, uint64_t size, cx_digest *out, cx_err *err)
{
    with_changes w = {.tree = tree};
    const cx_alloc *alloc = tree->rows.home->alloc;
    const update u = {.alloc = alloc,
                      .size_before = tree->size,
                      .size = size,
                      .arg = &w,
                      .read = read_checked,
                      .see = note_edge,
                      .edge = true};
    cx_mmr_edge edge;
    CX_ASSERT(size >= tree->size);
    CX_TRY(run_update(&u, changes, count, err));
    CX_TRY(edge_of(&w.peaks, size, alloc, &edge, err));
    *out = cx_mmr_edge_root(&edge, CX_SCHEME_CORTEX_1);
    cx_vec_done(&edge.peaks, alloc);
    return CX_SUCCESS;
}
