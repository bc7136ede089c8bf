/*
 * scoped.c - the calls of a grantee (ledger.md §10.3): reading the pinned snapshot's records,
 * whether a memory may be written, and journaling violations of the scope.
 *
 * S1  A verified scope is valid through its last second.
 * S2  Only records of the pinned snapshot are shown; a record must equal the leaf that the scope's
 *     proof shows.
 * S3  What is written is decided by the memory as it is now: its head before an update, and the new
 *     head of a new memory, which no id of the scope can name.
 */
#include "memory/internal.h"

cx_status cx_memory_scope_alive(const cx_scope_use *scope, int64_t now_ns, cx_err *err)
{
    if (!scope->scope.expires || cx_memory_seconds(now_ns) <= scope->scope.expires_at)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, "ScopeExpired", CX_NO_OFFSET,
                      "the scope ended at %lld seconds; now it is %lld",
                      (long long)scope->scope.expires_at, (long long)cx_memory_seconds(now_ns));
}

static cx_status fail_denied(const char *reason, cx_err *err)
{
    if (strcmp(reason, "not_writable") == 0)
        return cx_fail_at(err, CX_E_DENIED, "NotWritable", CX_NO_OFFSET,
                          "the scope allows reading only");
    return cx_fail_at(err, CX_E_DENIED, "ScopeViolation", CX_NO_OFFSET,
                      "the scope does not include this memory");
}

cx_status cx_memory_violation(cx_memory_call *call, const cx_scope_use *scope, const cx_id *id,
                              const char *reason, const char *mode, cx_err *err)
{
    const cx_scope *granted = &scope->scope;
    cx_err limited;
    cx_status status = cx_memory_rate_check(call, 'v', CX_RATE_VIOLATION, granted->granted_to,
                                            granted->granted_by, &limited);
    if (status.code == CX_E_DENIED)
        return fail_denied(reason, err);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = limited;
        return status;
    }
    const cx_payload payload = {.kind = CX_ENTRY_SCOPE_VIOLATION,
                                .as.scope_violation = {.granted_to = granted->granted_to,
                                                       .granted_by = granted->granted_by,
                                                       .id = *id,
                                                       .reason = cx_str_z(reason),
                                                       .mode = cx_str_z(mode)}};
    CX_TRY(cx_memory_put_entry(call, &payload, granted->granted_to, NULL, NULL, err));
    call->keep = true;
    return fail_denied(reason, err);
}

/* S3 */
cx_status cx_memory_scope_writes(cx_memory_call *call, const cx_scope_use *scope,
                                 const cx_head *head, cx_err *err)
{
    CX_TRY(cx_memory_scope_alive(scope, cx_memory_call_now(call), err));
    if (!cx_scope_use_allows(scope, head))
        return cx_memory_violation(call, scope, &head->id, "violation", "write", err);
    if (!scope->scope.writable)
        return cx_memory_violation(call, scope, &head->id, "not_writable", "write", err);
    return CX_SUCCESS;
}

static cx_status journal_read(cx_memory *memory, const cx_scope_use *scope, const cx_id *id,
                              int64_t now, cx_err *err)
{
    cx_memory_call call;
    CX_TRY(cx_memory_begin(memory, &call, err));
    call.now = now;
    call.has_now = true;
    return cx_memory_end(&call, cx_memory_violation(&call, scope, id, "violation", "read", err),
                         err);
}

cx_status cx_memory_resolve_scoped(cx_memory *memory, const cx_uri *uri, const cx_scope_use *scope,
                                   cx_arena *arena, cx_memory_view *out, cx_err *err)
{
    const cx_memory_source from = {.memory = memory, .arena = arena, .pinned = scope};
    const int64_t now = cx_memory_now(memory);
    cx_memory_head head;
    CX_TRY(cx_memory_scope_alive(scope, now, err));
    CX_TRY(cx_memory_need_head(&from, &uri->id, 0, &head, err));
    if (!cx_scope_use_allows(scope, &head.head))
        return journal_read(memory, scope, &uri->id, now, err);
    cx_bytes leaf = cx_granted_leaf(scope, &uri->id);
    if (leaf.size != 0 && !cx_str_eq(cx_bytes_str(leaf), cx_bytes_str(head.bytes)))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the record at the pinned snapshot is not the one its proof shows");
    CX_TRY(cx_memory_need_uri(&from, uri, &head, err));
    cx_memory_view view;
    CX_TRY(cx_memory_make_view(&from, &head, uri->version, &view, err));
    view.expired = cx_memory_is_expired(&view.version, now);
    *out = view;
    return CX_SUCCESS;
}
