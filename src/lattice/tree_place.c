/*
 * tree_place.c - places the nodes of a tree in memory when a change is complete.
 *
 * A change makes nodes in scratch, in the order it came upon them.  Of these the ones that are part
 * of the result are copied to where they stay.  A tree of up to TREE_BLOCK keys becomes a block:
 * its nodes next to each other in the order of their keys, whichever change made them.  Above
 * blocks only the nodes of this change move, and after the topmost one goes a directory of where
 * all nodes lie. A reader of a state finds there all addresses to prefetch at once, and does not
 * wait for one node to learn where the next one is.
 *
 * Invariants:
 *   I1  a placed node is never written to again: no change has stamp 0;
 *   I2  every subtree of a block is a block: it lies in one piece within the larger;
 *   I3  in a placed tree the nodes of blocks have their count, and all other nodes count 0.
 */
#include "lattice/tree_runs.h"

/* The count of a scratch node that has been copied: `left` points to the copy. */
#define MOVED 15

_Static_assert(TREE_BLOCK < MOVED, "counts of blocks have 4 bits");
_Static_assert(sizeof(tree) % TREE_ALIGN == 0, "nodes side by side are aligned");

static bool is_fresh(const cx_forest *forest, const tree *t)
{
    return t != NULL && t->stamp == forest->stamp;
}

/* Copies a short key and value into the node, so that reading them needs no other cache line. */
static void store_inline(tree *t)
{
    cx_str key = tree_key(t), value = value_text(tree_value(t));
    char text[TREE_INSIDE];
    if (t->is_inside || t->key_escaped || !value_is_leaf(tree_value(t)) || key.size > TREE_INSIDE ||
        value.size > TREE_INSIDE || key.size + 3 + value.size > TREE_INSIDE)
        return;
    memset(text, 0, sizeof text);
    text[0] = '"';
    memcpy(text + 1, key.data, key.size);
    text[key.size + 1] = '"';
    text[key.size + 2] = ':';
    memcpy(text + key.size + 3, value.data, value.size);
    memcpy(t->text.inside, text, sizeof text);
    t->is_inside = true;
}

static void copy_node_inline(tree *made, const tree *t)
{
    *made = *t;
    store_inline(made);
    made->stamp = 0;
}

/* Lays a tree out in the order of its keys, from *next on.  Not deeper than TREE_BLOCK. */
static const tree *lay_out_block(const tree *t, tree **next)
{
    if (t == NULL)
        return NULL;
    tree *first = *next;
    const tree *left = lay_out_block(t->left, next);
    tree *made = (*next)++;
    copy_node_inline(made, t);
    made->left = left;
    made->right = lay_out_block(t->right, next);
    made->before = (unsigned)(made - first) & MOVED;
    made->count = (unsigned)(*next - first) & MOVED;
    return made;
}

/* A small tree that is fresh at its top becomes a block. */
static bool place_block(cx_forest *forest, const tree **root)
{
    const tree *t = *root;
    if (!is_fresh(forest, t) || t->count == 0)
        return true;
    tree *next = cx_arena_push(forest->arena, t->count * sizeof *next, TREE_ALIGN);
    if (next == NULL)
        return false;
    *root = lay_out_block(t, &next);
    return true;
}

/* --- directories --------------------------------------------------------------------------- */

typedef struct run_list {
    tree_run runs[TREE_RUNS];
    uint32_t count;
    uint32_t top; /* which of them is the topmost node, whose place is not known yet */
} run_list;

/* Nodes next to each other, after those that are there; false when there are too many.  A
 * node that is still in scratch is next to none of those that are not: chunks of arenas begin
 * with a header. */
static bool add_run(run_list *list, const tree *first, size_t count)
{
    tree_run *last = list->count == 0 ? NULL : &list->runs[list->count - 1];
    if (last != NULL && last->end == first &&
        (size_t)(last->end - last->first) + count <= RUN_NODES) {
        last->end += count;
        return true;
    }
    if (list->count == TREE_RUNS)
        return false;
    list->runs[list->count++] = (tree_run){first, first + count};
    return true;
}

/* The runs of a tree whose subtrees are placed; false when they are too many. */
static bool list_runs(const tree *t, run_list *list)
{
    const tree *open[TREE_RUNS], *at = t;
    size_t depth = 0;
    list->count = list->top = 0;
    for (;;) {
        if (at != NULL && at->count == 0) {
            if (depth == TREE_RUNS)
                return false;
            open[depth++] = at;
            at = at->left;
            continue;
        }
        if (at != NULL && !add_run(list, at - at->before, at->count))
            return false;
        if (depth == 0)
            return true;
        at = open[--depth];
        if (!add_run(list, at, 1))
            return false;
        if (at == t)
            list->top = list->count - 1;
        at = at->right;
    }
}

/* In units of TREE_ALIGN. */
static int64_t tree_distance(const tree *from, const tree *to)
{
    return (int64_t)((intptr_t)((uintptr_t)to - (uintptr_t)from) / TREE_ALIGN);
}

static bool is_near(const tree *from, const run_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        int64_t away = tree_distance(from, list->runs[i].first);
        if (i != list->top && (away < -(1 << 27) || away >= 1 << 27))
            return false;
    }
    return true;
}

static size_t directory_size(const run_list *list, bool near)
{
    return (near ? sizeof(uint32_t) : sizeof(int64_t)) * (list->count + (size_t)1);
}

static void write_directory(tree *t, const run_list *list, bool near)
{
    uint32_t *near_runs = (uint32_t *)(t + 1) + 1;
    int64_t *far_runs = (int64_t *)(t + 1) + 1;
    *(uint32_t *)(t + 1) = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        const tree_run *run = &list->runs[i];
        int64_t packed = tree_distance(t, run->first) * (RUN_NODES + 1) + (run->end - run->first);
        if (near)
            near_runs[i] = (uint32_t)packed;
        else
            far_runs[i] = packed;
    }
    t->before = near ? DIRECTORY_NEAR : DIRECTORY_FAR;
}

/* --- nodes above blocks -------------------------------------------------------------------- */

static void place_above_as(tree *made, tree *t)
{
    copy_node_inline(made, t);
    made->count = 0;
    made->before = DIRECTORY_NONE;
    t->left = made;
    t->count = MOVED;
}

/* A node too large for a block, whose children are placed or small.  Small ones go next to it. */
static bool place_above(cx_forest *forest, tree *t)
{
    bool left = is_fresh(forest, t->left), right = is_fresh(forest, t->right);
    size_t before = left ? t->left->count : 0, after = right ? t->right->count : 0;
    tree *next = cx_arena_push(forest->arena, (before + 1 + after) * sizeof *next, TREE_ALIGN);
    if (next == NULL)
        return false;
    if (left)
        t->left = lay_out_block(t->left, &next);
    tree *made = next++;
    if (right)
        t->right = lay_out_block(t->right, &next);
    place_above_as(made, t);
    return true;
}

/* The same for the topmost node of a tree, which comes last. */
static bool place_topmost(cx_forest *forest, tree *t)
{
    if (!place_block(forest, &t->left) || !place_block(forest, &t->right))
        return false;
    run_list list;
    bool listed = list_runs(t, &list);
    /* It will lie about here; if not, in the first node of a new chunk, it may go without. */
    bool near = listed && is_near((const tree *)(const void *)forest->arena->cursor, &list);
    size_t size = sizeof(tree) + (listed ? directory_size(&list, near) : 0);
    tree *made = cx_arena_push(forest->arena, size, TREE_ALIGN);
    if (made == NULL)
        return false;
    place_above_as(made, t);
    if (!listed || (near && !is_near(made, &list)))
        return true;
    list.runs[list.top] = (tree_run){made, made + 1};
    write_directory(made, &list, near);
    return true;
}

/* Places one node.  Both children are small trees or placed already. */
static bool place_one(cx_forest *forest, tree *t, bool topmost)
{
    const tree *left = t->left, *right = t->right;
    bool small = (left == NULL || left->count != 0) && (right == NULL || right->count != 0);
    unsigned count = 1u + (left == NULL ? 0 : left->count) + (right == NULL ? 0 : right->count);
    if (small && count <= TREE_BLOCK) {
        t->count = count & MOVED;
        return true;
    }
    return topmost ? place_topmost(forest, t) : place_above(forest, t);
}

/* True when that child is small or placed; else it must be placed first. */
static bool is_ready(const cx_forest *forest, const tree **child)
{
    if (!is_fresh(forest, *child))
        return true;
    if ((*child)->count == MOVED)
        *child = (*child)->left;
    return (*child)->count != 0 || !is_fresh(forest, *child);
}

static bool push_tree(tree_work *work, const tree *t)
{
    tree **slot = cx_vec_push(&work->path, work->alloc);
    if (slot == NULL)
        return false;
    *slot = (tree *)(uintptr_t)t; /* fresh, so ours */
    return true;
}

bool cx_tree_place(cx_forest *forest, tree_work *work, const tree **root)
{
    bool ok = is_ready(forest, root) || push_tree(work, *root);
    while (ok && work->path.count != 0) {
        tree *t = work->path.items[work->path.count - 1];
        if (!is_ready(forest, &t->left)) {
            ok = push_tree(work, t->left);
        } else if (!is_ready(forest, &t->right)) {
            ok = push_tree(work, t->right);
        } else {
            work->path.count--;
            ok = place_one(forest, t, work->path.count == 0);
        }
    }
    work->path.count = 0;
    return ok && is_ready(forest, root) && place_block(forest, root);
}
