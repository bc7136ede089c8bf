/*
 * sent.c - scopes that were sent (sent.h).
 *
 *     scope.sent            the scope's bytes
 *     idx/scope/<sha256>    u64be seq ‖ the same bytes (derive.c)
 *
 *   E1  An id is journaled once.
 *   E2  The row is made from any entry of that kind whose payload is a scope; another payload,
 *       which only `raw` could write, makes none.
 */
#include "memory/sent.h"

#include "crypto/api.h"
#include "memory/internal.h"

static cx_memory_key key_of(const cx_digest *id)
{
    cx_memory_key key;
    cx_memory_key_begin(&key, CX_MEMORY_SENT_KEY);
    cx_memory_key_add(&key, id->bytes, sizeof id->bytes);
    return key;
}

static cx_status read_row(cx_bytes row, cx_arena *arena, cx_sent_scope *out, cx_err *err)
{
    if (row.size <= 8)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a scope is damaged; run 'cortex tables rebuild'");
    cx_str copy = cx_arena_copy_str(arena, cx_str_from((const char *)row.data + 8, row.size - 8));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    out->seq = cx_memory_get_u64(row.data);
    out->bytes = cx_str_bytes(copy);
    out->id = cx_digest_of(out->bytes);
    return cx_scope_decode(out->bytes, arena, &out->scope, err);
}

/* --- sending ---------------------------------------------------------------------------------- */

static cx_status check_sent(cx_memory *memory, cx_bytes bytes, cx_arena *arena, cx_err *err)
{
    cx_scope scope;
    if (bytes.size > CX_SENT_SCOPE_SIZE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooLarge", CX_NO_OFFSET,
                          "the scope has %zu bytes, and at most %u can be sent; name fewer ids, or "
                          "hand it over as a file",
                          bytes.size, CX_SENT_SCOPE_SIZE_MAX);
    CX_TRY(cx_scope_decode(bytes, arena, &scope, err));
    if (!cx_str_eq(scope.actor, cx_memory_actor(memory)))
        return cx_fail_at(err, CX_E_USAGE, "ActorMismatch", CX_NO_OFFSET,
                          "the scope opens memories of %.*s, and this is the journal of %.*s",
                          (int)scope.actor.size, scope.actor.data, (int)memory->actor_size,
                          memory->actor);
    if (cx_kinds_journal_is_own(scope.actor))
        return cx_fail_at(err, CX_E_USAGE, "InvalidActor", CX_NO_OFFSET,
                          "the journal %.*s is written by this program itself and has no memories",
                          (int)scope.actor.size, scope.actor.data);
    if (scope.signature.null)
        return cx_fail_at(err, CX_E_USAGE, "NotSigned", CX_NO_OFFSET,
                          "the scope is not signed; its grantor %.*s signs it",
                          (int)scope.granted_by.size, scope.granted_by.data);
    return CX_SUCCESS;
}

static cx_status send_body(cx_memory_call *call, cx_bytes bytes, cx_str by, uint64_t *out_seq,
                           bool *out_duplicate, cx_err *err)
{
    const cx_digest id = cx_digest_of(bytes);
    const cx_memory_key key = key_of(&id);
    cx_bytes row;
    CX_TRY(check_sent(call->memory, bytes, call->arena, err));
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &row, out_duplicate, err));
    if (*out_duplicate) { /* E1 */
        cx_sent_scope sent;
        CX_TRY(read_row(row, call->arena, &sent, err));
        *out_seq = sent.seq;
        return CX_SUCCESS;
    }
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_SCOPE_SENT),
                                  .created_at_ns = cx_memory_call_now(call),
                                  .created_by = cx_str_bytes(by),
                                  .payload = bytes};
    CX_TRY(cx_txn_entry(call->txn, &draft, out_seq, err));
    call->wrote = true;
    return CX_SUCCESS;
}

cx_status cx_memory_send_scope(cx_memory *memory, cx_bytes scope, cx_str by, uint64_t *out_seq,
                               bool *out_duplicate, cx_err *err)
{
    cx_memory_call call;
    CX_TRY(cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    return cx_memory_end(&call, send_body(&call, scope, by, out_seq, out_duplicate, err), err);
}

/* --- receiving -------------------------------------------------------------------------------- */

cx_status cx_memory_sent_scope(cx_memory *memory, const cx_digest *id, cx_arena *arena,
                               cx_sent_scope *out, bool *out_found, cx_err *err)
{
    const cx_memory_source from = {.memory = memory, .arena = arena};
    const cx_memory_key key = key_of(id);
    cx_bytes row;
    CX_TRY(cx_memory_fetch(&from, cx_memory_key_bytes(&key), &row, out_found, err));
    return *out_found ? read_row(row, arena, out, err) : CX_SUCCESS;
}

typedef struct listing {
    const cx_alloc *alloc;
    cx_arena *arena;
    cx_str granted_to;
    size_t limit;
    CX_VEC(cx_sent_scope) items;
} listing;

static cx_status collect_scope(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    listing *list = arg;
    const cx_arena_mark mark = cx_arena_mark_now(list->arena);
    cx_sent_scope sent;
    (void)key;
    CX_TRY(read_row(value, list->arena, &sent, err));
    if (list->granted_to.size != 0 && !cx_str_eq(sent.scope.granted_to, list->granted_to)) {
        cx_arena_reset(list->arena, mark);
        return CX_SUCCESS;
    }
    cx_sent_scope *slot = cx_vec_push(&list->items, list->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = sent;
    *stop = list->items.count >= list->limit;
    return CX_SUCCESS;
}

static cx_status list_actor(cx_memory *memory, listing *list, cx_err *err)
{
    if (list->items.count >= list->limit)
        return CX_SUCCESS;
    return cx_memory_scan(memory, cx_str_bytes(CX_STR(CX_MEMORY_SENT_KEY)), (cx_bytes){NULL, 0},
                          collect_scope, list, err);
}

static cx_status copy_listing(const listing *list, const cx_sent_scope **out, size_t *out_count,
                              cx_err *err)
{
    cx_sent_scope *items = CX_ARENA_ARRAY(list->arena, cx_sent_scope, list->items.count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    if (list->items.count != 0)
        memcpy(items, list->items.items, list->items.count * sizeof *items);
    *out = items;
    *out_count = list->items.count;
    return CX_SUCCESS;
}

cx_status cx_memory_sent_scopes(cx_memory *memory, cx_str granted_to, size_t limit, cx_arena *arena,
                                const cx_sent_scope **out, size_t *out_count, cx_err *err)
{
    listing list = {
        .alloc = memory->alloc, .arena = arena, .granted_to = granted_to, .limit = limit};
    cx_status status = list_actor(memory, &list, err);
    if (!cx_failed(status))
        status = copy_listing(&list, out, out_count, err);
    cx_vec_done(&list.items, memory->alloc);
    return status;
}

/* --- all journals ----------------------------------------------------------------------------- */

/* Calls `look` with each actor's memories until it stops. */
static cx_status
each_actor(cx_home *home, cx_status (*look)(void *arg, cx_memory *memory, bool *stop, cx_err *err),
           void *arg, cx_err *err)
{
    cx_actor_walk walk;
    const cx_actor_info *info = NULL;
    bool stop = false;
    cx_status status = CX_SUCCESS;
    cx_actor_walk_begin(&walk, home);
    while (!stop && !cx_failed(status)) {
        cx_memory *memory = NULL;
        status = cx_actor_walk_next(&walk, &info, err);
        if (cx_failed(status) || info == NULL)
            break;
        if (cx_kinds_journal_is_own(info->name))
            continue;
        status = cx_memory_open(home, info->name, NULL, &memory, err);
        if (!cx_failed(status))
            status = look(arg, memory, &stop, err);
        cx_memory_close(memory);
    }
    cx_actor_walk_end(&walk);
    return status;
}

typedef struct wanted_scope {
    const cx_digest *id;
    cx_arena *arena;
    cx_sent_scope *out;
    bool found;
} wanted_scope;

static cx_status look_for_scope(void *arg, cx_memory *memory, bool *stop, cx_err *err)
{
    wanted_scope *wanted = arg;
    CX_TRY(
        cx_memory_sent_scope(memory, wanted->id, wanted->arena, wanted->out, &wanted->found, err));
    *stop = wanted->found;
    return CX_SUCCESS;
}

cx_status cx_sent_scope_find(cx_home *home, const cx_digest *id, cx_arena *arena,
                             cx_sent_scope *out, bool *out_found, cx_err *err)
{
    wanted_scope wanted = {.id = id, .arena = arena, .out = out};
    CX_TRY(each_actor(home, look_for_scope, &wanted, err));
    *out_found = wanted.found;
    return CX_SUCCESS;
}

static cx_status look_through_actor(void *arg, cx_memory *memory, bool *stop, cx_err *err)
{
    listing *list = arg;
    CX_TRY(list_actor(memory, list, err));
    *stop = list->items.count >= list->limit;
    return CX_SUCCESS;
}

cx_status cx_sent_scopes_of(cx_home *home, cx_str granted_to, size_t limit, cx_arena *arena,
                            const cx_sent_scope **out, size_t *out_count, cx_err *err)
{
    listing list = {
        .alloc = arena->alloc, .arena = arena, .granted_to = granted_to, .limit = limit};
    cx_status status = each_actor(home, look_through_actor, &list, err);
    if (!cx_failed(status))
        status = copy_listing(&list, out, out_count, err);
    cx_vec_done(&list.items, list.alloc);
    return status;
}
