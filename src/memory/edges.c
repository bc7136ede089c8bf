/*
 * edges.c - AddEdge and RemoveEdge (ledger.md §10), and the edges of a memory.
 *
 * A frame has an edge once, at e/from/; its copy at e/to/ is derived (derive.c).
 */
#include <math.h>

#include "memory/internal.h"

static cx_status check_type(uint8_t type, cx_err *err)
{
    if (type < CX_EDGE_TYPE_MIN || type > CX_EDGE_TYPE_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidEdgeType", CX_NO_OFFSET,
                          "edge type %u, expected %d to %d", type, CX_EDGE_TYPE_MIN,
                          CX_EDGE_TYPE_MAX);
    return CX_SUCCESS;
}

static cx_status find_edge(cx_memory_call *call, const cx_edge_name *name, cx_edge *out,
                           bool *out_found, cx_err *err)
{
    cx_memory_key key = cx_memory_key_edge(name, false);
    cx_bytes bytes;
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &bytes, out_found, err));
    return *out_found ? cx_edge_decode(bytes, call->arena, out, err) : CX_SUCCESS;
}

static cx_status put_edge(cx_memory_call *call, const cx_edge *edge, cx_err *err)
{
    const cx_edge_name name = {edge->src, edge->type, edge->dst};
    cx_buf_clear(&call->buf);
    cx_edge_encode(edge, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    cx_memory_key key = cx_memory_key_edge(&name, false);
    return cx_memory_put_record(call, &key, cx_buf_bytes(&call->buf), false, err);
}

/* --- AddEdge --------------------------------------------------------------------------------- */

/* Ends may be tombstoned, but they must exist. */
static cx_status check_end(cx_memory_call *call, const cx_id *id, const char *which, cx_err *err)
{
    cx_memory_key key = cx_memory_key_of("m/", id);
    cx_bytes bytes;
    bool found = false;
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &bytes, &found, err));
    if (found)
        return CX_SUCCESS;
    char text[CX_ULID_SIZE];
    cx_ulid_format(id, text);
    return cx_fail_at(err, CX_E_NOT_FOUND, "DanglingEdge", CX_NO_OFFSET,
                      "the edge's %s %.*s does not exist", which, CX_ULID_SIZE, text);
}

static cx_status add_body(cx_memory_call *call, const cx_edge *wanted, cx_err *err)
{
    const cx_edge_name name = {wanted->src, wanted->type, wanted->dst};
    CX_TRY(check_end(call, &name.src, "source", err));
    CX_TRY(check_end(call, &name.dst, "destination", err));
    cx_edge there;
    bool found = false;
    CX_TRY(find_edge(call, &name, &there, &found, err));
    if (found && !there.tombstoned)
        return CX_SUCCESS;
    cx_edge edge = *wanted;
    edge.created_at = cx_memory_seconds(cx_memory_call_now(call));
    if (edge.blinded)
        CX_TRY(cx_memory_new_blind(call, &edge.blind, err));
    const cx_payload payload = {
        .kind = CX_ENTRY_ADD_EDGE,
        .as.edge = {.type = edge.type, .src = edge.src, .dst = edge.dst, .weight = edge.weight}};
    CX_TRY(cx_memory_put_entry(call, &payload, edge.created_by, NULL, NULL, err));
    return put_edge(call, &edge, err);
}

static cx_status check_edge(const cx_edge *edge, cx_err *err)
{
    CX_TRY(check_type(edge->type, err));
    if (memcmp(edge->src.bytes, edge->dst.bytes, sizeof edge->src.bytes) == 0)
        return cx_fail_at(err, CX_E_USAGE, "SelfEdge", CX_NO_OFFSET,
                          "an edge leads from a memory to another one");
    if (!isfinite(edge->weight))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the weight is not a finite number");
    if (edge->data.size > CX_MEMORY_DATA_SIZE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "data of %zu bytes, expected at most %u", edge->data.size,
                          CX_MEMORY_DATA_SIZE_MAX);
    return cx_memory_check_text(edge->created_by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err);
}

cx_status cx_memory_add_edge(cx_memory *memory, const cx_edge_name *name, cx_str by, float weight,
                             cx_bytes data, bool blind, bool *out_written, cx_err *err)
{
    const cx_edge edge = {.type = name->type,
                          .src = name->src,
                          .dst = name->dst,
                          .created_by = cx_memory_or(by, cx_memory_actor(memory)),
                          .weight = weight,
                          .data = data,
                          .blinded = blind};
    cx_memory_call call;
    CX_TRY(check_edge(&edge, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    cx_status status = add_body(&call, &edge, err);
    CX_TRY(cx_memory_end(&call, status, err));
    *out_written = call.wrote;
    return CX_SUCCESS;
}

/* --- RemoveEdge ------------------------------------------------------------------------------ */

static cx_status remove_body(cx_memory_call *call, const cx_edge_name *name, cx_str reason,
                             cx_str by, cx_err *err)
{
    cx_edge edge;
    bool found = false;
    CX_TRY(find_edge(call, name, &edge, &found, err));
    if (!found || edge.tombstoned)
        return CX_SUCCESS;
    edge.tombstoned = true;
    edge.has_tombstoned_at = true;
    edge.tombstoned_at = cx_memory_seconds(cx_memory_call_now(call));
    edge.reason = reason;
    edge.by = by;
    const cx_payload payload = {.kind = CX_ENTRY_REMOVE_EDGE,
                                .as.edge = {.type = edge.type,
                                            .src = edge.src,
                                            .dst = edge.dst,
                                            .weight = edge.weight,
                                            .tombstoned = true,
                                            .reason = reason,
                                            .by = by}};
    CX_TRY(cx_memory_put_entry(call, &payload, by, NULL, NULL, err));
    return put_edge(call, &edge, err);
}

cx_status cx_memory_remove_edge(cx_memory *memory, const cx_edge_name *name, cx_str reason,
                                cx_str by, bool *out_written, cx_err *err)
{
    cx_memory_call call;
    by = cx_memory_or(by, cx_memory_actor(memory));
    CX_TRY(check_type(name->type, err));
    CX_TRY(cx_memory_check_text(reason, "the reason", 0, CX_REASON_SIZE_MAX, err));
    CX_TRY(cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    cx_status status = remove_body(&call, name, reason, by, err);
    CX_TRY(cx_memory_end(&call, status, err));
    *out_written = call.wrote;
    return CX_SUCCESS;
}

/* --- listing --------------------------------------------------------------------------------- */

typedef struct listing {
    cx_arena *arena;
    bool with_removed;
    size_t limit;
    const cx_alloc *alloc;
    CX_VEC(cx_edge_view) edges;
} listing;

static cx_status collect_edge(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    listing *list = arg;
    (void)key;
    cx_str copy = cx_arena_copy_str(list->arena, cx_bytes_str(value));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    cx_edge_view view = {.bytes = cx_str_bytes(copy)};
    CX_TRY(cx_edge_decode(view.bytes, list->arena, &view.edge, err));
    if (view.edge.tombstoned && !list->with_removed)
        return CX_SUCCESS;
    cx_edge_view *slot = cx_vec_push(&list->edges, list->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = view;
    *stop = list->edges.count == list->limit;
    return CX_SUCCESS;
}

cx_status cx_memory_edges(cx_memory *memory, const cx_id *id, bool to, uint8_t type,
                          bool with_removed, size_t limit, cx_arena *arena,
                          const cx_edge_view **out, size_t *out_count, cx_err *err)
{
    if (type != 0)
        CX_TRY(check_type(type, err));
    cx_memory_key prefix = cx_memory_key_of(to ? "e/to/" : "e/from/", id);
    if (type != 0)
        cx_memory_key_add(&prefix, &type, 1);
    listing list = {
        .arena = arena, .with_removed = with_removed, .limit = limit, .alloc = memory->alloc};
    cx_status status = CX_SUCCESS;
    if (limit != 0)
        status = cx_memory_scan(memory, cx_memory_key_bytes(&prefix), (cx_bytes){NULL, 0},
                                collect_edge, &list, err);
    cx_edge_view *edges = NULL;
    if (!cx_failed(status)) {
        edges = CX_ARENA_ARRAY(arena, cx_edge_view, list.edges.count + 1);
        if (edges == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (list.edges.count != 0)
            memcpy(edges, list.edges.items, list.edges.count * sizeof *edges);
        *out = edges;
        *out_count = list.edges.count;
    }
    cx_vec_done(&list.edges, memory->alloc);
    return status;
}
