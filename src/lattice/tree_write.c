/*
 * tree_write.c - a map as canonical JSON.
 *
 * Nodes lie where history put them, and a walk in order of keys would wait for each place in turn;
 * so a map's nodes are sent for first.  Where they are says the directory (tree_place.c), or, in
 * maps that are too large to have one, a walk level by level.
 */
#include "json/api.h"
#include "lattice/tree_runs.h"

/* --- sending for what is needed ------------------------------------------------------------ */

#define FETCHED 1024 /* nodes above blocks, and blocks: of larger maps the rest is waited for */
#define LINE 64

static void fetch_run(tree_run run)
{
    const char *end = (const char *)run.end;
    for (const char *at = (const char *)run.first; at < end; at += LINE)
        __builtin_prefetch(at);
    __builtin_prefetch(end - 1);
}

/* Long texts, and the maps that are values. */
static void fetch_values(const tree *at, const tree *end)
{
    for (; at < end; at++) {
        if (at->is_inside)
            continue;
        __builtin_prefetch(at->text.at.key);
        __builtin_prefetch(at->text.at.data);
    }
}

/* Level by level, so that a level's worth is under way at once. */
static void fetch_levels(const tree *root)
{
    const tree *queue[FETCHED + 1];
    size_t first = 0, last = 0;
    if (root != NULL)
        queue[last++] = root;
    while (first < last && last < FETCHED) {
        const tree *t = queue[first++];
        if (t->count != 0) {
            fetch_run((tree_run){t - t->before, t - t->before + t->count});
            continue;
        }
        __builtin_prefetch(t->left);
        __builtin_prefetch(t->right);
        if (t->left != NULL)
            queue[last++] = t->left;
        if (t->right != NULL)
            queue[last++] = t->right;
    }
    for (size_t i = 0; i < last; i++) {
        const tree *t = queue[i], *from = t->count == 0 ? t : t - t->before;
        fetch_values(from, t->count == 0 ? t + 1 : from + t->count);
    }
    /* Without this the compiler sees no effect and leaves the walk out. */
    __asm__ volatile("" ::: "memory");
}

/* --- writing ------------------------------------------------------------------------------- */

/*
 * What to do next is a step: the nodes from `at` to before `end`, which lie next to each other, are
 * to be written; with end NULL the node `at` and then its right side; with SIDE its right side
 * only; with at NULL a brace is to be closed.
 */
static const tree side;
#define SIDE (&side)

static bool push_step(tree_work *work, const tree *at, const tree *end)
{
    tree_step *slot = cx_vec_push(&work->steps, work->alloc);
    if (slot == NULL)
        return false;
    *slot = (tree_step){at, end};
    return true;
}

static bool push_left_side(tree_work *work, const tree *t)
{
    for (; t != NULL; t = t->left) {
        if (t->count != 0)
            return push_step(work, t - t->before, t - t->before + t->count);
        if (!push_step(work, t, NULL))
            return false;
    }
    return true;
}

/* `"key":value` of a leaf, `"key":` of a map. */
static void write_member(const tree *t, cx_buf *out)
{
    if (out->size != 0 && out->data[out->size - 1] != '{')
        cx_buf_add_byte(out, ',');
    cx_value v = tree_value(t);
    cx_str key = tree_key(t);
    if (t->key_escaped) {
        cx_json_write_str(out, key, CX_JSON_PY_COMPACT);
        cx_buf_add_byte(out, ':');
    } else {
        /* The key lies in canonical text, its value often right after it. */
        size_t size = key.size + 3;
        if (value_is_leaf(v) && (const char *)v.data == key.data + key.size + 2) {
            cx_buf_add(out, key.data - 1, size + v.size);
            return;
        }
        cx_buf_add(out, key.data - 1, size);
    }
    if (value_is_leaf(v))
        cx_buf_add(out, v.data, v.size);
}

/* All runs of a map, the first one on top; by then they are under way. */
static bool push_runs(tree_work *work, const tree *root, uint32_t count)
{
    if (!cx_vec_reserve(&work->steps, work->steps.count + count, work->alloc))
        return false;
    work->steps.count += count;
    tree_step *step = work->steps.items + work->steps.count;
    for (uint32_t i = 0; i < count; i++) {
        tree_run run = tree_run_at(root, i);
        fetch_run(run);
        *--step = (tree_step){run.first, run.end};
    }
    return true;
}

/* Goes into a map: its first nodes are next, its brace is to be closed. */
static bool open_map(tree_work *work, const tree *root, cx_buf *out)
{
    cx_buf_add_byte(out, '{');
    if (!push_step(work, NULL, NULL))
        return false;
    if (root == NULL)
        return true;
    uint32_t runs = tree_run_count(root);
    if (runs != 0)
        return push_runs(work, root, runs);
    fetch_levels(root);
    return push_left_side(work, root);
}

/* The next run's values are sent for while this one is written. */
static void fetch_next(const tree_work *work)
{
    const tree_step *next = &work->steps.items[work->steps.count - 1];
    if (next->at != NULL && next->end != NULL && next->end != SIDE)
        fetch_values(next->at, next->end);
}

/* Nodes next to each other, up to the first that is a map. */
static bool write_run(tree_work *work, const tree *at, const tree *end, cx_buf *out)
{
    fetch_next(work);
    for (; at < end; at++) {
        write_member(at, out);
        if (value_is_map(tree_value(at)))
            return (at + 1 == end || push_step(work, at + 1, end)) &&
                   open_map(work, tree_value(at).data, out);
    }
    return true;
}

static bool write_node(tree_work *work, const tree *t, cx_buf *out)
{
    write_member(t, out);
    if (value_is_map(tree_value(t)))
        return push_step(work, t, SIDE) && open_map(work, tree_value(t).data, out);
    return push_left_side(work, t->right);
}

bool cx_tree_write(tree_work *work, cx_value v, cx_buf *out)
{
    bool whole;
    return cx_tree_write_most(work, v, SIZE_MAX, out, &whole);
}

bool cx_tree_write_most(tree_work *work, cx_value v, size_t most, cx_buf *out, bool *out_whole)
{
    *out_whole = true;
    if (!value_is_map(v)) {
        cx_buf_add(out, v.data, v.size);
        return !out->failed;
    }
    size_t bottom = work->steps.count, start = out->size;
    bool ok = open_map(work, v.data, out);
    while (ok && work->steps.count > bottom) {
        if (out->size - start > most) {
            *out_whole = false;
            break;
        }
        tree_step step = work->steps.items[--work->steps.count];
        if (step.at == NULL)
            cx_buf_add_byte(out, '}');
        else if (step.end == NULL)
            ok = write_node(work, step.at, out);
        else if (step.end == SIDE)
            ok = push_left_side(work, step.at->right);
        else
            ok = write_run(work, step.at, step.end, out);
    }
    work->steps.count = bottom;
    return ok && !out->failed;
}
