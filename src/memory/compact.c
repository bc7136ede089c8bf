/*
 * compact.c - Compact (ledger.md §10): chooses the memories that stay in a context, and writes one
 * line about each of the others.
 */
#include "memory/internal.h"

typedef struct compaction {
    cx_memory_call *call;
    const cx_weights *weights;
    CX_VEC(cx_id) seen;
    CX_VEC(cx_str) kept;
    CX_VEC(cx_compacted) compacted;
    uint64_t tokens;
} compaction;

static bool is_seen(const compaction *c, const cx_id *id)
{
    for (size_t i = 0; i < c->seen.count; i++)
        if (memcmp(c->seen.items[i].bytes, id->bytes, sizeof id->bytes) == 0)
            return true;
    return false;
}

static bool bears_load(const cx_memory_compact *compact, const cx_id *id)
{
    for (size_t i = 0; i < compact->load_bearing_count; i++)
        if (memcmp(compact->load_bearing[i].id.bytes, id->bytes, sizeof id->bytes) == 0)
            return true;
    return false;
}

/* Identity, hard Constraint, active Goal. */
static cx_status is_needed(cx_memory_call *call, const cx_memory_view *view, bool *out, cx_err *err)
{
    uint8_t type = view->head.type;
    *out = type == CX_TYPE_IDENTITY;
    if (type != CX_TYPE_CONSTRAINT && type != CX_TYPE_GOAL)
        return CX_SUCCESS;
    cx_data data;
    CX_TRY(cx_data_decode(type, view->version.data.bytes, call->arena, &data, err));
    *out = type == CX_TYPE_GOAL ? cx_str_is(data.as.goal.status, "active")
                                : cx_str_is(data.as.constraint.strength, "hard");
    return CX_SUCCESS;
}

static cx_status uri_text(cx_memory_call *call, const cx_uri *uri, cx_str *out, cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_uri_add(uri, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    *out = cx_arena_copy_str(call->arena, cx_buf_str(&call->buf));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status add_kept(compaction *c, cx_str uri, const cx_memory_view *view, cx_err *err)
{
    cx_str *slot = cx_vec_push(&c->kept, c->call->memory->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = uri;
    c->tokens += cx_tokens_of(view->version.forms.medium);
    return CX_SUCCESS;
}

static cx_status add_compacted(compaction *c, cx_str uri, const cx_memory_view *view, cx_err *err)
{
    cx_salience salience;
    CX_TRY(cx_memory_salience_at(&c->call->from, &view->head, &salience, err));
    cx_compacted *slot = cx_vec_push(&c->compacted, c->call->memory->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_compacted){
        .uri = uri,
        .brief = view->version.forms.brief,
        .salience = cx_salience_score(&salience, c->weights, cx_memory_call_now(c->call))};
    c->tokens += cx_tokens_of(view->version.forms.brief);
    return CX_SUCCESS;
}

/* Of what is in the context, whether something is left; load-bearing memories alone are no
 * context. */
static cx_status check_context_alive(const compaction *c, cx_err *err)
{
    if (c->kept.count + c->compacted.count != 0)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "EmptyInContext", CX_NO_OFFSET,
                      "in_context is empty: each of its %zu memories is tombstoned", c->seen.count);
}

static cx_status classify_memory(compaction *c, const cx_memory_compact *compact, const cx_uri *uri,
                                 cx_err *err)
{
    cx_memory_call *call = c->call;
    if (is_seen(c, &uri->id))
        return CX_SUCCESS;
    cx_memory_head head;
    cx_memory_view view;
    CX_TRY(cx_memory_need_uri(&call->from, uri, &head, err));
    cx_id *seen = cx_vec_push(&c->seen, call->memory->alloc);
    if (seen == NULL)
        return cx_fail_nomem(err);
    *seen = uri->id;
    if (head.head.tombstoned)
        return CX_SUCCESS;
    CX_TRY(cx_memory_make_view(&call->from, &head, uri->version, &view, err));
    bool needed = bears_load(compact, &uri->id);
    if (!needed)
        CX_TRY(is_needed(call, &view, &needed, err));
    cx_str text;
    CX_TRY(uri_text(call, uri, &text, err));
    return needed ? add_kept(c, text, &view, err) : add_compacted(c, text, &view, err);
}

static cx_status put_checkpoint(cx_memory_call *call, const cx_checkpoint_record *record,
                                cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, call->memory->alloc);
    cx_checkpoint_record_encode(record, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status)) {
        const cx_payload payload = {
            .kind = CX_ENTRY_COMPACT,
            .as.compact = {.intent = record->intent,
                           .step = record->step,
                           .budget = record->budget,
                           .kept = record->kept_count,
                           .compacted = record->compacted_count,
                           .record_hash = cx_digest_of(cx_buf_bytes(&bytes))}};
        status = cx_memory_put_entry(call, &payload, (cx_str){NULL, 0}, NULL, NULL, err);
    }
    if (!cx_failed(status)) {
        cx_memory_key key = cx_memory_key_checkpoint(record->intent, record->step);
        status = cx_memory_put_record(call, &key, cx_buf_bytes(&bytes), false, err);
    }
    cx_buf_done(&bytes);
    return status;
}

static cx_status classify_context(compaction *c, const cx_memory_compact *compact,
                                  cx_checkpoint_record *record, cx_err *err)
{
    for (size_t i = 0; i < compact->in_context_count; i++)
        CX_TRY(classify_memory(c, compact, &compact->in_context[i], err));
    CX_TRY(check_context_alive(c, err));
    for (size_t i = 0; i < compact->load_bearing_count; i++)
        CX_TRY(classify_memory(c, compact, &compact->load_bearing[i], err));
    if (c->tokens > record->budget)
        return cx_fail_at(
            err, CX_E_LIMIT, "BudgetUnreachable", CX_NO_OFFSET,
            "the mandatory memories and the lines about the rest need %llu tokens, but the"
            " budget is %llu",
            (unsigned long long)c->tokens, (unsigned long long)record->budget);
    record->kept = c->kept.items;
    record->kept_count = c->kept.count;
    record->kept_null = c->kept.count == 0;
    record->compacted = c->compacted.items;
    record->compacted_count = c->compacted.count;
    record->compacted_null = c->compacted.count == 0;
    return CX_SUCCESS;
}

/* The record, decoded from its bytes, in the caller's arena. */
static cx_status copy_record_out(cx_memory_call *call, const cx_checkpoint_record *record,
                                 cx_arena *arena, cx_checkpoint_record *out, cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_checkpoint_record_encode(record, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&call->buf));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    return cx_checkpoint_record_decode(cx_str_bytes(copy), arena, out, err);
}

static cx_status compact_body(cx_memory_call *call, const cx_memory_compact *compact,
                              cx_arena *arena, cx_checkpoint_record *out, cx_err *err)
{
    cx_weights_record weights;
    CX_TRY(cx_memory_weights_at(&call->from, &weights, err));
    compaction c = {.call = call, .weights = &weights.weights};
    cx_checkpoint_record record = {
        .intent = compact->intent,
        .step = compact->step,
        .budget = compact->budget != 0 ? compact->budget : CX_COMPACT_BUDGET,
    };
    cx_status status = classify_context(&c, compact, &record, err);
    if (!cx_failed(status)) {
        record.created_ns = cx_memory_call_now(call);
        status = put_checkpoint(call, &record, err);
    }
    if (!cx_failed(status))
        status = copy_record_out(call, &record, arena, out, err);
    cx_vec_done(&c.seen, call->memory->alloc);
    cx_vec_done(&c.kept, call->memory->alloc);
    cx_vec_done(&c.compacted, call->memory->alloc);
    return status;
}

static cx_status check_compact(const cx_memory_compact *compact, cx_err *err)
{
    if (compact->in_context_count == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyInContext", CX_NO_OFFSET,
                          "in_context is empty: there are no memories to compact");
    if (compact->intent.size == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyIntent", CX_NO_OFFSET,
                          "a compaction needs an intent");
    if (compact->step.size == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyStep", CX_NO_OFFSET, "a compaction needs a step");
    if (!cx_compact_name_ok(compact->intent) || !cx_compact_name_ok(compact->step))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "intent and step are 1 to %d bytes of UTF-8 without controls",
                          CX_COMPACT_NAME_MAX);
    if (compact->in_context_count > CX_COMPACT_URIS_MAX ||
        compact->load_bearing_count > CX_COMPACT_URIS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "more than %d memories in one context", CX_COMPACT_URIS_MAX);
    return CX_SUCCESS;
}

cx_status cx_memory_compact_context(cx_memory *memory, const cx_memory_compact *compact,
                                    cx_arena *arena, cx_checkpoint_record *out, cx_err *err)
{
    cx_memory_call call;
    cx_checkpoint_record record;
    CX_TRY(check_compact(compact, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    CX_TRY(cx_memory_end(&call, compact_body(&call, compact, arena, &record, err), err));
    *out = record;
    return CX_SUCCESS;
}
