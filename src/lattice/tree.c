/*
 * tree.c - the persistent maps of tree.h.
 *
 * Invariants:
 *   I1  a node's key is greater than all keys to its left and less than all to its right;
 *   I2  a node outranks its children; ranks are a strict order on keys, so a set of keys has one
 *       shape only;
 *   I3  a node is written to only by the change that made it (its stamp), and until that change is
 *       over nothing but the tree being changed points to it; tree_place.c says what is then.
 *
 * All walks go from the top down and leave a hole to be filled, so that none needs a stack.
 */
#include "lattice/tree.h"

#include "base/api.h"
#include "json/api.h"

void cx_tree_work_done(tree_work *work)
{
    cx_vec_done(&work->pairs, work->alloc);
    cx_vec_done(&work->steps, work->alloc);
    cx_vec_done(&work->path, work->alloc);
}

const tree *cx_tree_find(const tree *root, cx_str key)
{
    while (root != NULL) {
        int order = cx_str_cmp(key, tree_key(root));
        if (order == 0)
            return root;
        root = order < 0 ? root->left : root->right;
    }
    return NULL;
}

bool cx_tree_outranks(const tree *a, const tree *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return cx_str_cmp(tree_key(a), tree_key(b)) < 0;
}

static tree *new_tree(cx_forest *forest)
{
    cx_arena *arena = forest->scratch != NULL ? forest->scratch : forest->arena;
    return cx_arena_push(arena, sizeof(tree), TREE_ALIGN);
}

/* By reference: short text moves into the node when it is placed (tree_place.c). */
static void set_text(tree *t, tree_name name, cx_value v)
{
    t->text.at.key = name.text.data;
    t->text.at.data = v.data;
    t->size = v.size;
    t->key_size = (uint32_t)name.text.size & INT32_MAX;
    t->key_escaped = name.escaped;
    t->is_inside = false;
}

/* The node itself when this change made it, else a copy of it; NULL when out of memory (I3). */
static tree *owned_node(cx_forest *forest, const tree *t)
{
    if (t->stamp == forest->stamp)
        return (tree *)(uintptr_t)t;
    tree *copy = new_tree(forest);
    if (copy != NULL) {
        *copy = *t;
        copy->count = 0;
        copy->stamp = forest->stamp;
    }
    return copy;
}

/* Splits a tree by a key that it does not contain. */
static bool split_tree(cx_forest *forest, const tree *at, cx_str key, const tree **left,
                       const tree **right)
{
    while (at != NULL) {
        tree *copy = owned_node(forest, at);
        if (copy == NULL)
            return false;
        if (cx_str_cmp(key, tree_key(at)) < 0) {
            *right = copy;
            right = &copy->left;
            at = copy->left;
        } else {
            *left = copy;
            left = &copy->right;
            at = copy->right;
        }
    }
    *left = *right = NULL;
    return true;
}

bool cx_tree_set(cx_forest *forest, const tree **root, tree_name name, cx_value v)
{
    const tree *held = cx_tree_find(*root, name.text);
    if (held != NULL && value_is_same(tree_value(held), v))
        return true;
    tree fresh = {.stamp = forest->stamp};
    set_text(&fresh, name, v);
    fresh.priority =
        cx_map_hash_bytes(forest->seed, name.text.data, name.text.size) & TREE_PRIORITY_MAX;

    const tree **hole = root;
    while (*hole != NULL && !cx_tree_outranks(&fresh, *hole)) {
        tree *copy = owned_node(forest, *hole);
        if (copy == NULL)
            return false;
        *hole = copy;
        int order = cx_str_cmp(name.text, tree_key(copy));
        if (order == 0) {
            set_text(copy, name, v); /* the newer text, which its value may lie right after */
            return true;
        }
        hole = order < 0 ? &copy->left : &copy->right;
    }
    tree *made = new_tree(forest);
    if (made == NULL)
        return false;
    *made = fresh;
    if (!split_tree(forest, *hole, name.text, &made->left, &made->right))
        return false;
    *hole = made;
    return true;
}

bool cx_tree_join(cx_forest *forest, const tree *left, const tree *right, const tree **out)
{
    const tree **hole = out;
    while (left != NULL && right != NULL) {
        bool left_up = cx_tree_outranks(left, right);
        tree *copy = owned_node(forest, left_up ? left : right);
        if (copy == NULL)
            return false;
        *hole = copy;
        if (left_up) {
            hole = &copy->right;
            left = copy->right;
        } else {
            hole = &copy->left;
            right = copy->left;
        }
    }
    *hole = left != NULL ? left : right;
    return true;
}

bool cx_tree_remove(cx_forest *forest, const tree **root, cx_str key)
{
    if (cx_tree_find(*root, key) == NULL)
        return true;
    const tree **hole = root;
    for (;;) {
        int order = cx_str_cmp(key, tree_key(*hole));
        if (order == 0)
            return cx_tree_join(forest, (*hole)->left, (*hole)->right, hole);
        tree *copy = owned_node(forest, *hole);
        if (copy == NULL)
            return false;
        *hole = copy;
        hole = order < 0 ? &copy->left : &copy->right;
    }
}

bool cx_tree_make(cx_forest *forest, const tree *like, cx_value v, const tree *left,
                  const tree *right, const tree **out)
{
    tree *made = new_tree(forest);
    if (made == NULL)
        return false;
    *made = *like;
    set_text(made, (tree_name){tree_key(like), like->key_escaped}, v);
    made->count = 0;
    made->left = left;
    made->right = right;
    made->stamp = forest->stamp;
    *out = made;
    return true;
}

/* --- ranges -------------------------------------------------------------------------------- */

static inline bool is_above(const tree *t, cx_str low)
{
    return low.data == NULL || cx_str_cmp(tree_key(t), low) > 0;
}

static inline bool is_below(const tree *t, cx_str high)
{
    return high.data == NULL || cx_str_cmp(tree_key(t), high) < 0;
}

const tree *cx_tree_narrow(const tree *root, tree_range range)
{
    while (root != NULL) {
        if (!is_above(root, range.low))
            root = root->right;
        else if (!is_below(root, range.high))
            root = root->left;
        else
            return root;
    }
    return NULL;
}

/* Only what is above `low`; copies nothing when that is everything. */
static bool cut_low(cx_forest *forest, const tree *t, cx_str low, const tree **out)
{
    const tree *first = t;
    while (first != NULL && first->left != NULL)
        first = first->left;
    *out = t;
    if (first == NULL || is_above(first, low))
        return true;
    const tree **hole = out;
    while (t != NULL) {
        if (!is_above(t, low)) {
            t = t->right;
            continue;
        }
        tree *copy = owned_node(forest, t);
        if (copy == NULL)
            return false;
        *hole = copy;
        hole = &copy->left;
        t = copy->left;
    }
    *hole = NULL;
    return true;
}

static bool cut_high(cx_forest *forest, const tree *t, cx_str high, const tree **out)
{
    const tree *last = t;
    while (last != NULL && last->right != NULL)
        last = last->right;
    *out = t;
    if (last == NULL || is_below(last, high))
        return true;
    const tree **hole = out;
    while (t != NULL) {
        if (!is_below(t, high)) {
            t = t->left;
            continue;
        }
        tree *copy = owned_node(forest, t);
        if (copy == NULL)
            return false;
        *hole = copy;
        hole = &copy->right;
        t = copy->right;
    }
    *hole = NULL;
    return true;
}

bool cx_tree_restrict(cx_forest *forest, const tree *root, tree_range range, const tree **out)
{
    const tree *above;
    return cut_low(forest, cx_tree_narrow(root, range), range.low, &above) &&
           cut_high(forest, above, range.high, out);
}

/* --- comparing ----------------------------------------------------------------------------- */

static bool push_pair(tree_work *work, tree_pair pair)
{
    tree_pair *slot = cx_vec_push(&work->pairs, work->alloc);
    if (slot == NULL)
        return false;
    *slot = pair;
    return true;
}

bool cx_tree_equal(tree_work *work, cx_value a, cx_value b, bool *out_equal)
{
    *out_equal = value_is_same(a, b);
    if (*out_equal || !value_is_map(a) || !value_is_map(b))
        return true;
    /* Equal contents have equal shapes (I2): both are walked in step, in any order. */
    size_t bottom = work->pairs.count;
    if (!push_pair(work, (tree_pair){.a = a.data, .b = b.data}))
        return false;
    bool equal = true, ok = true;
    while (equal && ok && work->pairs.count > bottom) {
        tree_pair pair = work->pairs.items[--work->pairs.count];
        if (pair.a == pair.b)
            continue;
        equal = pair.a != NULL && pair.b != NULL && pair.a->priority == pair.b->priority &&
                cx_str_eq(tree_key(pair.a), tree_key(pair.b));
        if (!equal)
            break;
        cx_value left = tree_value(pair.a), right = tree_value(pair.b);
        if (value_is_map(left) && value_is_map(right))
            ok = push_pair(work, (tree_pair){.a = left.data, .b = right.data});
        else
            equal = value_is_same(left, right);
        ok = ok && push_pair(work, (tree_pair){.a = pair.a->left, .b = pair.b->left}) &&
             push_pair(work, (tree_pair){.a = pair.a->right, .b = pair.b->right});
    }
    work->pairs.count = bottom;
    *out_equal = equal;
    return ok;
}

/* Replaces a pair by its left side, its key, and its right side, so that they come in order. */
static bool open_pair(tree_work *work, const tree *a, const tree *b, tree_range range)
{
    const tree *top = b == NULL || (a != NULL && cx_tree_outranks(a, b)) ? a : b;
    cx_str key = tree_key(top);
    bool in_a = a != NULL && cx_str_eq(tree_key(a), key);
    bool in_b = b != NULL && cx_str_eq(tree_key(b), key);
    return push_pair(
               work,
               (tree_pair){in_a ? a->right : a, in_b ? b->right : b, {key, range.high}, false}) &&
           push_pair(work, (tree_pair){in_a ? a : NULL, in_b ? b : NULL, {{0}, {0}}, true}) &&
           push_pair(work,
                     (tree_pair){in_a ? a->left : a, in_b ? b->left : b, {range.low, key}, false});
}

bool cx_tree_diff(tree_work *work, const tree *a, const tree *b, tree_visit visit, void *arg)
{
    size_t bottom = work->pairs.count;
    if (!push_pair(work, (tree_pair){.a = a, .b = b}))
        return false;
    bool ok = true, go_on = true;
    while (ok && go_on && work->pairs.count > bottom) {
        tree_pair pair = work->pairs.items[--work->pairs.count];
        if (pair.visit) {
            bool equal;
            ok = cx_tree_equal(work, tree_value(pair.a), tree_value(pair.b), &equal);
            if (ok && !equal)
                go_on = visit(arg, tree_key(pair.a != NULL ? pair.a : pair.b), tree_value(pair.a),
                              tree_value(pair.b));
            continue;
        }
        pair.a = cx_tree_narrow(pair.a, pair.range);
        pair.b = cx_tree_narrow(pair.b, pair.range);
        if (pair.a != pair.b)
            ok = open_pair(work, pair.a, pair.b, pair.range);
    }
    work->pairs.count = bottom;
    return ok;
}
