/*
 * preimage.c - the bytes a node's hash and seal are taken over.
 *
 *   hash  prev_hash || canonical(event) || seq || agent_id || schema_version || bundle      (§3.1)
 *   seal  canonical({"fork_type":F,"state_delta":D,"timestamp":T})                          (§5.1)
 *
 * Plain concatenation, no separator: the formula is kept as it was; lattice.md §5 says what it
 * lets through and which options close it.
 */
#include "lattice/lattice.h"

#include "lattice/record.h"

/* Insertion sort: parents are few; a long list falls back to heap sort to stay O(n log n). */
static void sift_down(cx_str *items, size_t root, size_t count)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && cx_str_cmp(items[child], items[child + 1]) < 0)
            child++;
        if (cx_str_cmp(items[root], items[child]) >= 0)
            return;
        cx_str held = items[root];
        items[root] = items[child];
        items[child] = held;
        root = child;
    }
}

void cx_lattice_sort_ids(cx_str *items, size_t count)
{
    if (count <= 32) {
        for (size_t i = 1; i < count; i++) {
            cx_str held = items[i];
            size_t at = i;
            for (; at > 0 && cx_str_cmp(items[at - 1], held) > 0; at--)
                items[at] = items[at - 1];
            items[at] = held;
        }
        return;
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(items, i, count);
    for (size_t end = count - 1; end > 0; end--) {
        cx_str held = items[0];
        items[0] = items[end];
        items[end] = held;
        sift_down(items, 0, end);
    }
}

/* What follows the event: seq || agent_id || schema_version || bundle. */
cx_status cx_lattice_preimage_tail(cx_buf *out, const cx_lattice_fields *fields, cx_err *err)
{
    cx_str few[16];
    cx_str *sorted = few;
    size_t sorted_size = 0;
    if (fields->parent_count > CX_COUNT_OF(few)) {
        if (!cx_size_mul(fields->parent_count, sizeof *sorted, &sorted_size) ||
            (sorted = out->alloc->resize(out->alloc->ctx, NULL, 0, sorted_size)) == NULL)
            return cx_fail_nomem(err);
    }
    if (fields->parent_count != 0)
        memcpy(sorted, fields->parents, fields->parent_count * sizeof *sorted);
    cx_lattice_sort_ids(sorted, fields->parent_count);

    cx_buf_add_i64(out, fields->seq);
    cx_buf_add_str(out, fields->agent_id);
    cx_buf_add_str(out, fields->schema_version);
    for (size_t i = 0; i < fields->parent_count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        cx_buf_add_str(out, sorted[i]);
    }
    if (sorted != few)
        (void)out->alloc->resize(out->alloc->ctx, sorted, sorted_size, 0);
    return cx_buf_check(out, err);
}

cx_status cx_lattice_preimage(cx_buf *out, const cx_lattice_fields *fields, cx_err *err)
{
    cx_buf_add_str(out, fields->prev_hash);
    CX_TRY(cx_json_write(out, fields->event, CX_JSON_PY_COMPACT, err));
    return cx_lattice_preimage_tail(out, fields, err);
}

void cx_lattice_seal_preimage_begin(cx_buf *out, cx_str fork_type)
{
    cx_buf_add_z(out, "{\"fork_type\":");
    if (fork_type.data == NULL)
        cx_buf_add_z(out, "null");
    else
        cx_json_write_str(out, fork_type, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, ",\"state_delta\":");
}

cx_status cx_lattice_seal_preimage_end(cx_buf *out, const cx_json *timestamp, cx_err *err)
{
    cx_buf_add_z(out, ",\"timestamp\":");
    CX_TRY(cx_json_write(out, timestamp, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '}');
    return cx_buf_check(out, err);
}

cx_status cx_lattice_seal_preimage(cx_buf *out, cx_str fork_type, const cx_json *state_delta,
                                   const cx_json *timestamp, cx_err *err)
{
    cx_lattice_seal_preimage_begin(out, fork_type);
    CX_TRY(cx_json_write(out, state_delta, CX_JSON_PY_COMPACT, err));
    return cx_lattice_seal_preimage_end(out, timestamp, err);
}
