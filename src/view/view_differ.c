/*
 * view_differ.c - the differences between the states of two nodes, of one history or of two.
 *
 *   ,"diff":[{"a","b","key","section"}],"more_diff"
 *
 *   D1  trees of one forest share equal parts and are compared by structure (tree.h); trees of two
 *       forests are walked in parallel, key by key, and their values compared as texts;
 *   D2  what differs only by the sides' ids does not differ.
 */
#include "view/align.h"
#include "lattice/answer.h"
#include "view/view_internal.h"

typedef struct differences {
    cx_buf *out;
    const cx_lattice_view_side *sides;
    tree_work work;  /* of the walk */
    tree_work inner; /* of a value in it */
    cx_buf texts[2];
    state_section section; /* being compared */
    uint32_t told;
    bool more;
    cx_status status;
    cx_err *err;
} differences;

/* D2.  Whole texts are compared, not their cut forms. */
static cx_status is_equal_value(differences *d, cx_value a, cx_value b, bool *out)
{
    const cx_value values[2] = {a, b};
    *out = false;
    if (value_is_absent(a) || value_is_absent(b))
        return CX_SUCCESS;
    for (unsigned side = 0; side < 2; side++) {
        cx_buf_clear(&d->texts[side]);
        if (!cx_tree_write(&d->inner, values[side], &d->texts[side]))
            return cx_fail_nomem(d->err);
        CX_TRY(cx_buf_check(&d->texts[side], d->err));
    }
    *out = cx_align_equal(d->sides[0].id, d->sides[1].id, cx_buf_str(&d->texts[0]),
                          cx_buf_str(&d->texts[1]));
    return CX_SUCCESS;
}

static cx_status put_both(differences *d, cx_str key, cx_value a, cx_value b)
{
    cx_buf_add_z(d->out, d->told++ == 0 ? "{\"a\":" : ",{\"a\":");
    CX_TRY(cx_lattice_view_put_value(d->out, &d->inner, a, CX_LATTICE_VIEW_VALUE_BYTES, d->err));
    cx_buf_add_z(d->out, ",\"b\":");
    CX_TRY(cx_lattice_view_put_value(d->out, &d->inner, b, CX_LATTICE_VIEW_VALUE_BYTES, d->err));
    cx_buf_add_z(d->out, ",\"key\":");
    if (key.data == NULL)
        cx_buf_add_z(d->out, "null");
    else
        cx_answer_str(d->out, key);
    cx_buf_add_z(d->out, ",\"section\":");
    cx_answer_str(d->out, cx_state_section_name(d->section));
    cx_buf_add_byte(d->out, '}');
    return CX_SUCCESS;
}

/* False ends the walk: the list is full, or something failed. */
static bool add_difference(void *arg, cx_str key, cx_value a, cx_value b)
{
    differences *d = arg;
    bool same_forest = d->sides[0].states == d->sides[1].states, equal = false;
    if (!same_forest)
        d->status = is_equal_value(d, a, b, &equal);
    if (cx_failed(d->status) || equal)
        return !cx_failed(d->status);
    if (d->told == CX_LATTICE_VIEW_CHANGES_MAX) {
        d->more = true;
        return false;
    }
    d->status = put_both(d, key, a, b);
    return !cx_failed(d->status);
}

/* --- trees of two forests --------------------------------------------------------------------- */

/* The path to the current node of an in-order walk. */
typedef struct walker {
    CX_VEC(const tree *) path;
    const cx_alloc *alloc;
} walker;

static bool push_left_path(walker *w, const tree *t)
{
    for (; t != NULL; t = t->left) {
        const tree **slot = cx_vec_push(&w->path, w->alloc);
        if (slot == NULL)
            return false;
        *slot = t;
    }
    return true;
}

static const tree *current_node(const walker *w)
{
    return w->path.count == 0 ? NULL : w->path.items[w->path.count - 1];
}

static bool advance(walker *w)
{
    const tree *t = w->path.items[--w->path.count];
    return push_left_path(w, t->right);
}

/* D1.  False: out of memory, which `add_difference` could not say. */
static bool walk_both(differences *d, walker w[2])
{
    bool ok = true;
    while (ok && (current_node(&w[0]) != NULL || current_node(&w[1]) != NULL)) {
        const tree *a = current_node(&w[0]), *b = current_node(&w[1]);
        int order = a == NULL ? 1 : b == NULL ? -1 : cx_str_cmp(tree_key(a), tree_key(b));
        cx_str key = tree_key(order <= 0 ? a : b);
        if (!add_difference(d, key, tree_value(order <= 0 ? a : NULL),
                            tree_value(order >= 0 ? b : NULL)))
            return true;
        ok = (order > 0 || advance(&w[0])) && (order < 0 || advance(&w[1]));
    }
    return ok;
}

static void compare_maps(differences *d, const tree *a, const tree *b)
{
    bool ok;
    if (cx_failed(d->status) || d->more)
        return;
    if (d->sides[0].states == d->sides[1].states) {
        ok = cx_tree_diff(&d->work, a, b, add_difference, d);
    } else {
        walker w[2] = {{.alloc = d->work.alloc}, {.alloc = d->work.alloc}};
        ok = push_left_path(&w[0], a) && push_left_path(&w[1], b) && walk_both(d, w);
        cx_vec_done(&w[0].path, w[0].alloc);
        cx_vec_done(&w[1].path, w[1].alloc);
    }
    if (!ok && !d->more && !cx_failed(d->status))
        d->status = cx_fail_nomem(d->err);
}

static void compare_lists(differences *d, const state states[2])
{
    static const state_section lists[2] = {SECTION_GOALS, SECTION_CONTEXT_STACK};
    for (size_t i = 0; i < 2 && !cx_failed(d->status) && !d->more; i++) {
        cx_value left = cx_state_section_value(&states[0], lists[i]);
        cx_value right = cx_state_section_value(&states[1], lists[i]);
        bool equal = value_is_same(left, right);
        d->section = lists[i];
        if (!equal)
            d->status = is_equal_value(d, left, right, &equal);
        if (!cx_failed(d->status) && !equal)
            (void)add_difference(d, (cx_str){NULL, 0}, left, right);
    }
}

/* --- all of it -------------------------------------------------------------------------------- */

cx_status cx_lattice_view_put_differences(cx_buf *out, const cx_lattice_view_side sides[2],
                                          const cx_node nodes[2], cx_err *err)
{
    const cx_alloc *alloc = sides[0].states->alloc;
    differences d = {.out = out, .sides = sides, .status = CX_SUCCESS, .err = err};
    state states[2];
    for (unsigned side = 0; side < 2; side++)
        CX_TRY(cx_states_get(sides[side].states, nodes[side], false, &states[side], err));
    cx_tree_work_init(&d.work, alloc);
    cx_tree_work_init(&d.inner, alloc);
    cx_buf_init(&d.texts[0], alloc);
    cx_buf_init(&d.texts[1], alloc);
    cx_buf_add_z(out, ",\"diff\":[");
    d.section = SECTION_MEMORY;
    compare_maps(&d, states[0].memory, states[1].memory);
    d.section = SECTION_BELIEFS;
    compare_maps(&d, states[0].beliefs, states[1].beliefs);
    compare_lists(&d, states);
    cx_buf_printf(out, "],\"more_diff\":%s", d.more ? "true" : "false");
    cx_buf_done(&d.texts[0]);
    cx_buf_done(&d.texts[1]);
    cx_tree_work_done(&d.work);
    cx_tree_work_done(&d.inner);
    return d.status;
}
