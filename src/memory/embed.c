/*
 * embed.c - Embed (ledger.md §10): adds a vector, only for the current version.
 *
 * Only field 10 of the Head changes, so that a slow embedding cannot restore anything that was
 * changed or tombstoned meanwhile.
 */
#include "memory/embedder.h"
#include "memory/internal.h"

/* All vectors of a model have one size. */
static cx_status check_dim(cx_memory_call *call, cx_str model, size_t dim, cx_err *err)
{
    cx_memory_key key;
    cx_bytes value;
    bool found = false;
    cx_memory_key_begin(&key, CX_MEMORY_DIM_KEY);
    cx_memory_key_add(&key, model.data, model.size);
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &value, &found, err));
    if (!found || value.size != 8 || cx_memory_get_u64(value.data) == dim)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "DimMismatch", CX_NO_OFFSET,
                      "the vector has %zu components, and those of model %.*s have %llu", dim,
                      (int)model.size, model.data,
                      (unsigned long long)cx_memory_get_u64(value.data));
}

/* The existing number, or the next one (from 1). */
static cx_status choose_vertex(cx_memory_call *call, const cx_head *head, uint64_t *out,
                               cx_err *err)
{
    cx_bytes value;
    bool found = false;
    *out = head->vertex;
    if (head->embedded)
        return CX_SUCCESS;
    CX_TRY(cx_memory_fetch(&call->from, cx_str_bytes(CX_STR(CX_MEMORY_VERTEX_KEY)), &value, &found,
                           err));
    *out = found && value.size == 8 ? cx_memory_get_u64(value.data) : 1;
    return CX_SUCCESS;
}

static cx_status put_vector(cx_memory_call *call, const cx_id *id, const cx_vector *vector,
                            cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_vector_encode(vector, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    cx_memory_key key = cx_memory_key_of("vec/meta/", id);
    return cx_memory_put_record(call, &key, cx_buf_bytes(&call->buf), true, err);
}

static cx_status check_current(const cx_head *head, uint64_t source_version, cx_err *err)
{
    if (head->tombstoned)
        return cx_fail_at(err, CX_E_CONFLICT, "Tombstoned", CX_NO_OFFSET,
                          "the memory is tombstoned and cannot be embedded");
    if (head->current_version != source_version)
        return cx_fail_at(err, CX_E_CONFLICT, "StaleVersion", CX_NO_OFFSET,
                          "the vector is of version %llu, and version %llu is current",
                          (unsigned long long)source_version,
                          (unsigned long long)head->current_version);
    return CX_SUCCESS;
}

static cx_status embed_body(cx_memory_call *call, const cx_id *id, cx_vector *vector, cx_err *err)
{
    cx_memory_head current;
    CX_TRY(cx_memory_need_head(&call->from, id, 0, &current, err));
    cx_head *head = &current.head;
    CX_TRY(check_current(head, vector->source_version, err));
    CX_TRY(check_dim(call, vector->model, (size_t)vector->dim, err));
    CX_TRY(choose_vertex(call, head, &vector->vertex, err));
    vector->embedded_at = cx_memory_seconds(cx_memory_call_now(call));
    head->embedded = true;
    head->vertex = vector->vertex;
    head->model = vector->model;
    head->dim = vector->dim;
    head->stale = false;
    const cx_payload payload = {.kind = CX_ENTRY_EMBED,
                                .as.embed = {.id = *id,
                                             .vertex = vector->vertex,
                                             .model = vector->model,
                                             .dim = vector->dim,
                                             .vector_hash = vector->hash,
                                             .source_version = vector->source_version}};
    CX_TRY(cx_memory_put_entry(call, &payload, CX_STR(CX_EMBEDDER_BY), id, NULL, err));
    CX_TRY(put_vector(call, id, vector, err));
    return cx_memory_put_head(call, head, true, err);
}

cx_status cx_memory_embed(cx_memory *memory, const cx_id *id, uint64_t source_version, cx_str model,
                          const float *values, size_t dim, cx_err *err)
{
    cx_memory_call call;
    CX_TRY(cx_memory_check_text(model, "the model's name", 1, CX_MODEL_SIZE_MAX, err));
    CX_TRY(cx_near_check(values, dim, err));
    cx_vector vector = {.model = model,
                        .dim = dim,
                        .values = values,
                        .source_version = source_version,
                        .hash = cx_vector_hash(values, dim)};
    CX_TRY(cx_memory_begin(memory, &call, err));
    return cx_memory_end(&call, embed_body(&call, id, &vector, err), err);
}
