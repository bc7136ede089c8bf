/*
 * merge.c - the value rule of lattice.md §7, over persistent maps, at the price of what differs.
 *
 * Maps are merged by ranges of keys.  In a range the topmost key of any operand parts it into the
 * keys before, the key itself and the keys after; operands are not split for that, they are only
 * narrowed to the range.  A range is done at once when pointers say so:
 *
 *   P1  all parents are the same there: that is the result (they compete together or not at all);
 *   P2  all bases are the same there: parents that are the same as the base have no say, since
 *       they compete at a key only when no parent does, and then all have the base's value.  If
 *       only one other parent is left, or all others are the same, that is the result.
 *
 * P2 is right for one base only: with different bases a parent equal to one of them keeps its say
 * where none of the others competes.  For the same reason objects under one base are merged
 * without comparing them first: whether an equal parent takes part makes no difference.
 *
 * Trees have one shape for one set of keys, so the result is made bottom up from its parts; nodes
 * of parents are used again where nothing below them changed.  Frames lie in a vector: neither
 * the height of trees nor the nesting of objects reaches the C stack.
 */
#include "lattice/merge.h"

#include "base/api.h"

void cx_merger_init(merger *merge, cx_forest *forest, tree_work *work, patcher *patch,
                    const cx_alloc *alloc)
{
    *merge = (merger){.forest = forest, .work = work, .patch = patch, .alloc = alloc};
    cx_buf_init(&merge->text, alloc);
}

void cx_merger_done(merger *merge)
{
    cx_vec_done(&merge->frames, merge->alloc);
    cx_vec_done(&merge->operands, merge->alloc);
    cx_vec_done(&merge->candidates, merge->alloc);
    cx_buf_done(&merge->text);
}

/* --- rule 4: strategies -------------------------------------------------------------------- */

/* §7: missing, no number, or too large for a double is 0. */
static double confidence_of(cx_value v)
{
    if (!value_is_map(v))
        return 0;
    cx_value held = tree_value(cx_tree_find(v.data, CX_STR("confidence")));
    if (!value_is_leaf(held))
        return 0;
    cx_str text = value_text(held);
    if (text.data[0] != '-' && (text.data[0] < '0' || text.data[0] > '9'))
        return 0;
    cx_json number = {.type = CX_JSON_INT, .count = (uint32_t)text.size, .text = text.data};
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '.' || text.data[i] == 'e')
            number.type = CX_JSON_DOUBLE;
    double confidence;
    return cx_json_double(&number, &confidence) ? confidence : 0;
}

static double weight_of(const merger *merge, const merge_candidate *candidate)
{
    switch (merge->strategy) {
    case CX_MERGE_CONFIDENCE: return confidence_of(candidate->v);
    case CX_MERGE_POLICY: return merge->priorities == NULL ? 0 : merge->priorities[candidate->who];
    default: return 0; /* the last */
    }
}

/* The weightiest of those competing, of several the last. */
static cx_value choose_value(const merger *merge, size_t parent_count)
{
    const merge_candidate *best = NULL;
    double best_weight = 0;
    for (size_t i = 0; i < parent_count; i++) {
        const merge_candidate *candidate = &merge->candidates.items[i];
        if (!candidate->competes)
            continue;
        double weight = weight_of(merge, candidate);
        if (best == NULL || weight >= best_weight) {
            best = candidate;
            best_weight = weight;
        }
    }
    CX_ASSERT(best != NULL);
    return best->v;
}

/* Adds a value to the marker being written unless it is there; its text lives long enough. */
static cx_status add_distinct(merger *merge, cx_map *seen, cx_str text, cx_err *err)
{
    uint64_t *count;
    bool is_new;
    CX_TRY(cx_map_put(seen, text, &count, &is_new, err));
    if (!is_new)
        return CX_SUCCESS;
    if (seen->used > 1)
        cx_buf_add_byte(&merge->text, ',');
    cx_buf_add_str(&merge->text, text);
    return CX_SUCCESS;
}

/* A value as it goes into a marker: markers spliced, absent as null. */
static cx_status add_candidate(merger *merge, cx_map *seen, cx_value v, cx_err *err)
{
    cx_str values;
    if (cx_value_is_marker(v, &values)) {
        canon_walk walk = cx_canon_walk(values);
        cx_str item;
        while (cx_canon_item(&walk, &item))
            CX_TRY(add_distinct(merge, seen, item, err));
        return CX_SUCCESS;
    }
    if (value_is_absent(v))
        return add_distinct(merge, seen, CX_STR("null"), err);
    if (value_is_leaf(v))
        return add_distinct(merge, seen, value_text(v), err);
    cx_buf object;
    cx_buf_init(&object, merge->alloc);
    cx_str text = {NULL, 0};
    if (cx_tree_write(merge->work, v, &object))
        text = cx_arena_copy_str(merge->forest->arena, cx_buf_str(&object));
    cx_buf_done(&object);
    return text.data == NULL ? cx_fail_nomem(err) : add_distinct(merge, seen, text, err);
}

static cx_status make_conflict(merger *merge, size_t parent_count, cx_value *out, cx_err *err)
{
    cx_map seen;
    cx_map_init(&seen, merge->alloc, merge->forest->seed);
    cx_buf_clear(&merge->text);
    cx_buf_add_z(&merge->text, "{\"__conflict\":true,\"values\":[");
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < parent_count && !cx_failed(status); i++)
        if (merge->candidates.items[i].competes)
            status = add_candidate(merge, &seen, merge->candidates.items[i].v, err);
    cx_map_done(&seen);
    CX_TRY(status);
    cx_buf_add_z(&merge->text, "]}");
    CX_TRY(cx_buf_check(&merge->text, err));
    cx_str text = cx_arena_copy_str(merge->forest->arena, cx_buf_str(&merge->text));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    return cx_patch_import(merge->patch, text, out, err);
}

/* --- rules 1 to 3 -------------------------------------------------------------------------- */

static bool is_atomic_object(cx_value v)
{
    return value_is_map(v) && (cx_tree_find(v.data, CX_STR("confidence")) != NULL ||
                               cx_tree_find(v.data, CX_STR("__conflict")) != NULL);
}

static bool is_plain_object(cx_value v)
{
    return value_is_map(v) && !is_atomic_object(v);
}

/* All (or all competing) parents are plain objects, and no base is an atomic one. */
static bool can_recurse(const merger *merge, size_t parent_count, size_t base_count, bool all)
{
    const merge_candidate *candidates = merge->candidates.items;
    for (size_t i = 0; i < parent_count; i++)
        if ((all || candidates[i].competes) && !is_plain_object(candidates[i].v))
            return false;
    for (size_t i = 0; i < base_count; i++)
        if (is_atomic_object(candidates[parent_count + i].v))
            return false;
    return true;
}

static bool have_one_root(const merge_candidate *bases, size_t base_count)
{
    for (size_t i = 1; i < base_count; i++)
        if (value_root(bases[i].v) != value_root(bases[0].v))
            return false;
    return true;
}

/* Rule 1. */
static cx_status find_competing(merger *merge, size_t parent_count, size_t base_count, cx_err *err)
{
    merge_candidate *parents = merge->candidates.items, *bases = parents + parent_count;
    size_t competing = 0;
    for (size_t i = 0; i < parent_count; i++) {
        bool equal = false;
        for (size_t k = 0; k < base_count && !equal; k++)
            if (!cx_tree_equal(merge->work, parents[i].v, bases[k].v, &equal))
                return cx_fail_nomem(err);
        parents[i].competes = !equal;
        competing += !equal;
    }
    for (size_t i = 0; i < parent_count && competing == 0; i++)
        parents[i].competes = true;
    return CX_SUCCESS;
}

/* Rule 2. */
static cx_status all_equal(merger *merge, size_t parent_count, bool *out, cx_value *out_value,
                           cx_err *err)
{
    const merge_candidate *last = NULL;
    for (size_t i = 0; i < parent_count; i++) {
        const merge_candidate *candidate = &merge->candidates.items[i];
        if (!candidate->competes)
            continue;
        bool equal = true;
        if (last != NULL && !cx_tree_equal(merge->work, last->v, candidate->v, &equal))
            return cx_fail_nomem(err);
        if (!equal) {
            *out = false;
            return CX_SUCCESS;
        }
        last = candidate;
    }
    CX_ASSERT(last != NULL);
    *out = true;
    *out_value = last->v;
    return CX_SUCCESS;
}

static bool push_operand(merger *merge, const tree *at, uint32_t who)
{
    merge_operand *slot = cx_vec_push(&merge->operands, merge->alloc);
    if (slot == NULL)
        return false;
    *slot = (merge_operand){at, who};
    return true;
}

/* Rule 3: a frame for the objects of those competing. */
static cx_status enter_objects(merger *merge, size_t parent_count, size_t base_count, cx_err *err)
{
    const merge_candidate *candidates = merge->candidates.items;
    merge_frame frame = {.first = merge->operands.count, .base_count = (uint32_t)base_count};
    for (size_t i = 0; i < parent_count + base_count; i++) {
        if (i < parent_count && !candidates[i].competes)
            continue;
        if (!push_operand(merge, value_root(candidates[i].v), candidates[i].who))
            return cx_fail_nomem(err);
        frame.parent_count += i < parent_count;
    }
    merge_frame *slot = cx_vec_push(&merge->frames, merge->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = frame;
    return CX_SUCCESS;
}

/* The value rule over the candidates: *out is the answer, or a frame was pushed for it. */
static cx_status decide_value(merger *merge, size_t parent_count, size_t base_count, cx_value *out,
                              bool *out_entered, cx_err *err)
{
    *out_entered = false;
    merge_candidate *parents = merge->candidates.items;
    if (have_one_root(parents + parent_count, base_count) &&
        can_recurse(merge, parent_count, base_count, true)) {
        for (size_t i = 0; i < parent_count; i++)
            parents[i].competes = true;
        *out_entered = true;
        return enter_objects(merge, parent_count, base_count, err);
    }
    bool equal;
    CX_TRY(find_competing(merge, parent_count, base_count, err));
    CX_TRY(all_equal(merge, parent_count, &equal, out, err));
    if (equal)
        return CX_SUCCESS;
    if (can_recurse(merge, parent_count, base_count, false)) {
        *out_entered = true;
        return enter_objects(merge, parent_count, base_count, err);
    }
    if (merge->strategy == CX_MERGE_MANUAL)
        return make_conflict(merge, parent_count, out, err);
    *out = choose_value(merge, parent_count);
    return CX_SUCCESS;
}

/* --- ranges -------------------------------------------------------------------------------- */

/* P2: leaves only the parents that differ from the one base. */
static void drop_unchanged(merger *merge, merge_frame *frame)
{
    merge_operand *parents = merge->operands.items + frame->first;
    merge_operand *bases = parents + frame->parent_count;
    const tree *base = bases[0].at;
    for (uint32_t i = 1; i < frame->base_count; i++)
        if (bases[i].at != base)
            return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < frame->parent_count; i++)
        if (parents[i].at != base)
            parents[kept++] = parents[i];
    if (kept == 0)
        return;
    parents[kept] = bases[0];
    frame->parent_count = kept;
    frame->base_count = 1;
    merge->operands.count = frame->first + kept + 1;
}

/* Narrows the operands; true when pointers alone give the result, restricted to the range. */
static bool is_decided(merger *merge, merge_frame *frame, const tree **out)
{
    merge_operand *operands = merge->operands.items + frame->first;
    for (uint32_t i = 0; i < frame->parent_count + frame->base_count; i++)
        operands[i].at = cx_tree_narrow(operands[i].at, frame->range);
    drop_unchanged(merge, frame);
    for (uint32_t i = 1; i < frame->parent_count; i++)
        if (operands[i].at != operands[0].at)
            return false;
    *out = operands[0].at;
    return true;
}

/* Pushes the frame for one side of the topmost key. */
static cx_status enter_side(merger *merge, merge_frame frame, bool right, cx_err *err)
{
    cx_str key = tree_key(frame.top);
    merge_frame side = {.first = merge->operands.count,
                        .parent_count = frame.parent_count,
                        .base_count = frame.base_count,
                        .range = frame.range};
    if (right)
        side.range.low = key;
    else
        side.range.high = key;
    for (uint32_t i = 0; i < frame.parent_count + frame.base_count; i++) {
        merge_operand operand = merge->operands.items[frame.first + i];
        const tree *at = operand.at;
        if (at != NULL && cx_str_eq(tree_key(at), key))
            at = right ? at->right : at->left;
        if (!push_operand(merge, at, operand.who))
            return cx_fail_nomem(err);
    }
    merge_frame *slot = cx_vec_push(&merge->frames, merge->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = side;
    return CX_SUCCESS;
}

static const tree *topmost(const merger *merge, const merge_frame *frame)
{
    const tree *top = NULL;
    for (uint32_t i = 0; i < frame->parent_count + frame->base_count; i++) {
        const tree *at = merge->operands.items[frame->first + i].at;
        if (at != NULL && (top == NULL || cx_tree_outranks(at, top)))
            top = at;
    }
    return top;
}

/* What each operand has at the topmost key. */
static bool gather_operands(merger *merge, const merge_frame *frame)
{
    size_t count = (size_t)frame->parent_count + frame->base_count;
    if (!cx_vec_reserve(&merge->candidates, count, merge->alloc))
        return false;
    for (size_t i = 0; i < count; i++) {
        const merge_operand *operand = &merge->operands.items[frame->first + i];
        bool has = operand->at != NULL && cx_str_eq(tree_key(operand->at), tree_key(frame->top));
        merge->candidates.items[i] =
            (merge_candidate){has ? tree_value(operand->at) : VALUE_ABSENT, operand->who, false};
    }
    return true;
}

/* The three parts as one tree: a parent's node when it says the same, else a new one. */
static bool assemble_tree(merger *merge, const merge_frame *frame, const tree *right,
                          const tree **out)
{
    if (value_is_absent(frame->middle))
        return cx_tree_join(merge->forest, frame->left, right, out);
    for (uint32_t i = 0; i < frame->parent_count; i++) {
        const tree *at = merge->operands.items[frame->first + i].at;
        if (at != NULL && at->left == frame->left && at->right == right &&
            value_is_same(tree_value(at), frame->middle) &&
            cx_str_eq(tree_key(at), tree_key(frame->top))) {
            *out = at;
            return true;
        }
    }
    return cx_tree_make(merge->forest, frame->top, frame->middle, frame->left, right, out);
}

/* --- the engine ---------------------------------------------------------------------------- */

/* The frame on top has its result. */
static void leave_frame(merger *merge)
{
    merge->operands.count = merge->frames.items[--merge->frames.count].first;
}

static merge_frame *top_frame(merger *merge)
{
    return &merge->frames.items[merge->frames.count - 1];
}

/* One step of the frame on top. *result: of the frame left last, or of this one when it leaves. */
static cx_status step_frame(merger *merge, const tree **result, cx_err *err)
{
    merge_frame *frame = top_frame(merge);
    bool entered;
    switch (frame->phase) {
    case MERGE_LEFT:
        if (is_decided(merge, frame, result)) {
            if (!cx_tree_restrict(merge->forest, *result, frame->range, result))
                return cx_fail_nomem(err);
            leave_frame(merge);
            return CX_SUCCESS;
        }
        frame->phase = MERGE_KEY;
        frame->top = topmost(merge, frame);
        return enter_side(merge, *frame, false, err);
    case MERGE_KEY:
        frame->left = *result;
        frame->phase = MERGE_INNER;
        if (!gather_operands(merge, frame))
            return cx_fail_nomem(err);
        cx_value middle = VALUE_ABSENT;
        CX_TRY(decide_value(merge, frame->parent_count, frame->base_count, &middle, &entered, err));
        if (entered)
            return CX_SUCCESS;
        frame = top_frame(merge);
        frame->middle = middle;
        break;
    case MERGE_INNER:
        if (!cx_tree_place(merge->forest, merge->work, result))
            return cx_fail_nomem(err);
        frame->middle = value_of_root(*result);
        break;
    case MERGE_RIGHT:
        if (!assemble_tree(merge, frame, *result, result))
            return cx_fail_nomem(err);
        leave_frame(merge);
        return CX_SUCCESS;
    }
    frame->phase = MERGE_RIGHT;
    return enter_side(merge, *frame, true, err);
}

static cx_status run_merge(merger *merge, const tree **out, cx_err *err)
{
    const tree *result = NULL;
    while (merge->frames.count != 0)
        CX_TRY(step_frame(merge, &result, err));
    if (!cx_tree_place(merge->forest, merge->work, &result))
        return cx_fail_nomem(err);
    *out = result;
    return CX_SUCCESS;
}

cx_status cx_merge_value(merger *merge, const cx_value *parents, size_t parent_count,
                         const cx_value *bases, size_t base_count, cx_value *out, cx_err *err)
{
    merge->frames.count = merge->operands.count = 0;
    if (!cx_vec_reserve(&merge->candidates, parent_count + base_count, merge->alloc))
        return cx_fail_nomem(err);
    merge_candidate *candidates = merge->candidates.items;
    for (size_t i = 0; i < parent_count; i++)
        candidates[i] = (merge_candidate){parents[i], (uint32_t)i, false};
    for (size_t i = 0; i < base_count; i++)
        candidates[parent_count + i] = (merge_candidate){bases[i], 0, false};
    bool entered;
    CX_TRY(decide_value(merge, parent_count, base_count, out, &entered, err));
    if (!entered)
        return CX_SUCCESS;
    const tree *root;
    CX_TRY(run_merge(merge, &root, err));
    *out = value_of_root(root);
    return CX_SUCCESS;
}

cx_status cx_merge_maps(merger *merge, const tree *const *parents, size_t parent_count,
                        const tree *const *bases, size_t base_count, const tree **out, cx_err *err)
{
    /* A section is merged key by key whatever its keys are called. */
    merge->frames.count = merge->operands.count = 0;
    for (size_t i = 0; i < parent_count + base_count; i++)
        if (!push_operand(merge, i < parent_count ? parents[i] : bases[i - parent_count],
                          (uint32_t)i))
            return cx_fail_nomem(err);
    merge_frame *frame = cx_vec_push(&merge->frames, merge->alloc);
    if (frame == NULL)
        return cx_fail_nomem(err);
    *frame =
        (merge_frame){.parent_count = (uint32_t)parent_count, .base_count = (uint32_t)base_count};
    return run_merge(merge, out, err);
}
