/*
 * erase.c - Raw, Redact and RedactMemory (ledger.md §10): adding opaque entries, and destroying
 * content.
 *
 * X1  The entry that records who asked for it and why is durable before a byte is destroyed.
 * X2  The records of these entries contain nothing of the destroyed content.
 * X3  What a legal hold keeps is not destroyed: holds are read inside the transaction (holds.h).
 */
#include "memory/internal.h"

/* --- Raw ------------------------------------------------------------------------------------- */

/* The kinds of ledger.md have structured payloads and dedicated calls, so they are refused here. */
static cx_status check_kind(cx_str kind, cx_err *err)
{
    if (cx_entry_kind_of(kind) == CX_ENTRY_RAW ||
        (cx_entry_kind_ok(kind) && memchr(kind.data, '.', kind.size) != NULL))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                      "found kind '%.*s', expected raw or a dotted kind such as trace.received",
                      (int)(kind.size > CX_ENTRY_KIND_MAX ? CX_ENTRY_KIND_MAX : kind.size),
                      kind.data);
}

cx_status cx_memory_raw(cx_memory *memory, cx_str kind, cx_bytes payload, bool committed, cx_str by,
                        uint64_t *out_seq, cx_err *err)
{
    cx_memory_call call;
    uint64_t seq = 0;
    CX_TRY(check_kind(kind, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    const cx_entry_draft draft = {.kind = kind,
                                  .created_at_ns = cx_memory_call_now(&call),
                                  .created_by = cx_str_bytes(by),
                                  .payload = payload,
                                  .committed = committed};
    cx_status status = cx_txn_entry(call.txn, &draft, &seq, err);
    call.wrote = !cx_failed(status);
    CX_TRY(cx_memory_end(&call, status, err));
    *out_seq = seq;
    return CX_SUCCESS;
}

/* --- legal holds ------------------------------------------------------------------------------ */

static const cx_hold *hold_of_entry(const cx_holds *holds, cx_str actor,
                                    const cx_entry_view *target)
{
    for (size_t i = 0; i < holds->count && cx_str_is(actor, CX_HOLDS_ACTOR); i++)
        if (holds->items[i].seq == target->entry.seq) /* an active hold keeps itself */
            return &holds->items[i];
    const cx_hold_target about = {.actor = actor,
                                  .first_ns = target->entry.created_at_ns,
                                  .last_ns = target->entry.created_at_ns,
                                  .contents = &target->payload,
                                  .content_count = 1,
                                  .kind = target->entry.kind,
                                  .subject = target->has_subject ? &target->subject : NULL};
    return cx_holds_find(holds, &about);
}

/* Times of the entries about a memory. */
static cx_status find_times(const cx_memory_source *from, const cx_id *id, int64_t *out_first,
                            int64_t *out_last, cx_err *err)
{
    cx_str actor = cx_memory_actor(from->memory);
    cx_home *home = from->memory->home;
    const uint64_t *seqs;
    size_t count = 0;
    *out_first = INT64_MAX;
    *out_last = INT64_MIN;
    CX_TRY(cx_home_entries_about(home, actor, id, from->arena, &seqs, &count, err));
    for (size_t i = 0; i < count; i++) {
        cx_entry_view view;
        CX_TRY(cx_home_entry(home, actor, seqs[i], from->arena, &view, err));
        int64_t at = view.entry.created_at_ns;
        *out_first = at < *out_first ? at : *out_first;
        *out_last = at > *out_last ? at : *out_last;
    }
    return CX_SUCCESS;
}

static cx_status hold_of_memory(const cx_memory_source *from, const cx_holds *holds,
                                const cx_memory_head *head, const cx_hold **out, cx_err *err)
{
    cx_hold_target about = {.actor = cx_memory_actor(from->memory)};
    uint64_t versions = head->head.current_version;
    *out = NULL;
    if (holds->count == 0)
        return CX_SUCCESS;
    cx_bytes *contents = CX_ARENA_ARRAY(from->arena, cx_bytes, (size_t)versions + 1);
    if (contents == NULL)
        return cx_fail_nomem(err);
    contents[0] = head->bytes;
    for (uint64_t n = 1; n <= versions; n++) {
        cx_memory_key key = cx_memory_key_version(&head->head.id, n);
        bool found = false;
        CX_TRY(cx_memory_fetch(from, cx_memory_key_bytes(&key), &contents[n], &found, err));
        if (!found)
            contents[n] = (cx_bytes){NULL, 0};
    }
    about.contents = contents;
    about.content_count = (size_t)versions + 1;
    CX_TRY(find_times(from, &head->head.id, &about.first_ns, &about.last_ns, err));
    *out = cx_holds_find(holds, &about);
    return CX_SUCCESS;
}

cx_status cx_memory_hold_of(cx_memory *memory, const cx_id *id, const cx_holds *holds,
                            cx_arena *arena, const cx_hold **out, cx_err *err)
{
    const cx_memory_source from = {.memory = memory, .arena = arena};
    cx_memory_head head;
    CX_TRY(cx_memory_need_head(&from, id, 0, &head, err));
    return hold_of_memory(&from, holds, &head, out, err);
}

/* --- Redact ---------------------------------------------------------------------------------- */

static cx_memory_key payload_key(uint64_t seq)
{
    cx_memory_key key;
    cx_memory_key_begin(&key, "pay/");
    cx_memory_key_u64(&key, seq);
    return key;
}

static cx_status fail_already_redacted(uint64_t seq, cx_err *err)
{
    return cx_fail_at(err, CX_E_EXISTS, "AlreadyRedacted", CX_NO_OFFSET,
                      "the payload of entry %llu was already redacted", (unsigned long long)seq);
}

static cx_status find_target(cx_memory_call *call, uint64_t seq, cx_entry_view *out, cx_err *err)
{
    cx_memory *memory = call->memory;
    if (seq >= cx_txn_next_seq(call->txn))
        return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET, "there is no entry %llu",
                          (unsigned long long)seq);
    CX_TRY(cx_home_entry(memory->home, cx_memory_actor(memory), seq, call->arena, out, err));
    if (!out->entry.committed)
        return cx_fail_at(err, CX_E_CONFLICT, "NotCommitted", CX_NO_OFFSET,
                          "the payload of entry %llu is part of the journal; only committed"
                          " payloads can be destroyed",
                          (unsigned long long)seq);
    return out->payload_erased ? fail_already_redacted(seq, err) : CX_SUCCESS;
}

/* The empty record pay/<seq> hides the payload at once, before its bytes are destroyed. */
static cx_status redact_body(cx_memory_call *call, const cx_holds *holds, uint64_t seq,
                             cx_str reason, cx_str by, cx_err *err)
{
    cx_entry_view target;
    cx_memory_key key = payload_key(seq);
    cx_bytes value;
    bool found = false;
    CX_TRY(find_target(call, seq, &target, err));
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &value, &found, err));
    if (found)
        return fail_already_redacted(seq, err);
    const cx_hold *hold = hold_of_entry(holds, cx_memory_actor(call->memory), &target);
    if (hold != NULL)
        return cx_hold_fail(hold, err);
    const cx_payload payload = {
        .kind = CX_ENTRY_REDACT,
        .as.redact = {.target_seq = seq, .commitment = target.entry.commitment, .reason = reason}};
    CX_TRY(cx_memory_put_entry(call, &payload, by, NULL, NULL, err));
    return cx_memory_put_record(call, &key, (cx_bytes){NULL, 0}, false, err);
}

cx_status cx_memory_redact(cx_memory *memory, uint64_t seq, cx_str reason, cx_str by, cx_err *err)
{
    cx_memory_call call;
    by = cx_memory_or(by, cx_memory_actor(memory));
    CX_TRY(cx_memory_check_text(reason, "the reason", 0, CX_REASON_SIZE_MAX, err));
    CX_TRY(cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    cx_holds holds = {NULL, 0};
    cx_status status = cx_holds_load(memory->home, false, call.arena, &holds, err);
    if (!cx_failed(status))
        status = redact_body(&call, &holds, seq, reason, by, err);
    CX_TRY(cx_memory_end(&call, status, err));
    return cx_home_erase(memory->home, cx_memory_actor(memory), err);
}

/* --- RedactMemory ---------------------------------------------------------------------------- */

/* Removes tags, embedding, frames, blind and forms; the tombstone stays or is added. */
static void empty_head(cx_head *head)
{
    head->tags = NULL;
    head->tag_count = 0;
    head->embedded = false;
    head->frames = NULL;
    head->frame_count = 0;
    head->blinded = false;
    head->forms = (cx_forms){.brief = {"", 0}, .medium = {"", 0}};
}

static cx_status put_stubs(cx_memory_call *call, const cx_head *head, cx_err *err)
{
    for (uint64_t n = 1; n <= head->current_version; n++) {
        cx_arena_mark mark = cx_arena_mark_now(call->arena);
        cx_version_record version;
        CX_TRY(cx_memory_need_version(&call->from, &head->id, n, &version, err));
        const cx_version_record stub = {
            .id = head->id, .version = n, .type = head->type, .hash = version.hash, .erased = true};
        cx_arena_reset(call->arena, mark);
        CX_TRY(cx_memory_put_version(call, &stub, false, err));
    }
    return CX_SUCCESS;
}

static cx_status redact_head(cx_memory_call *call, const cx_holds *holds, cx_memory_head *current,
                             cx_str reason, cx_str by, cx_err *err)
{
    cx_version_record version;
    const cx_hold *hold;
    cx_head *head = &current->head;
    CX_TRY(cx_memory_need_version(&call->from, &head->id, head->current_version, &version, err));
    if (version.erased)
        return CX_SUCCESS;
    CX_TRY(hold_of_memory(&call->from, holds, current, &hold, err));
    if (hold != NULL)
        return cx_hold_fail(hold, err);
    empty_head(head);
    if (!head->tombstoned)
        head->last_updated_at = cx_memory_seconds(cx_memory_call_now(call));
    head->last_updated_null = false;
    if (!head->tombstoned) {
        head->tombstoned = true;
        head->tombstone_reason = reason;
        head->tombstoned_by = by;
        head->tombstoned_at = head->last_updated_at;
    }
    cx_payload payload = {.kind = CX_ENTRY_REDACT_MEMORY,
                          .as.redact_memory = {.id = head->id,
                                               .versions_erased = head->current_version,
                                               .reason = reason}};
    CX_TRY(cx_memory_hash_head(call, head, &payload.as.redact_memory.head_hash, err));
    CX_TRY(cx_memory_put_entry(call, &payload, by, &head->id, NULL, err));
    CX_TRY(cx_memory_put_head(call, head, false, err));
    CX_TRY(put_stubs(call, head, err));
    /* The copy in the earlier tombstone is destroyed with the rest, so the reason is repeated. */
    CX_TRY(cx_memory_bury(call, head, reason, by, false, err));
    cx_memory_key vector = cx_memory_key_of("vec/meta/", &head->id);
    return cx_txn_remove(call->txn, cx_memory_key_bytes(&vector), err);
}

static cx_status redact_memory_body(cx_memory_call *call, const cx_uri *uri, cx_str reason,
                                    cx_str by, cx_err *err)
{
    cx_memory_head current;
    cx_holds holds;
    CX_TRY(cx_memory_need_uri(&call->from, uri, &current, err));
    CX_TRY(cx_holds_load(call->memory->home, false, call->arena, &holds, err));
    return redact_head(call, &holds, &current, reason, by, err);
}

cx_status cx_memory_redact_memory(cx_memory *memory, const cx_uri *uri, cx_str reason, cx_str by,
                                  cx_err *err)
{
    cx_memory_call call;
    by = cx_memory_or(by, cx_memory_actor(memory));
    CX_TRY(cx_memory_check_text(reason, "the reason", 0, CX_REASON_SIZE_MAX, err));
    CX_TRY(cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    CX_TRY(cx_memory_end(&call, redact_memory_body(&call, uri, reason, by, err), err));
    return cx_home_erase(memory->home, cx_memory_actor(memory), err);
}

/* --- many at once ----------------------------------------------------------------------------- */

static cx_status redact_target(cx_memory_call *call, const cx_holds *holds,
                               const cx_memory_target *target, cx_str reason, cx_str by,
                               cx_err *err)
{
    cx_memory_head head;
    if (!target->is_memory)
        return redact_body(call, holds, target->seq, reason, by, err);
    CX_TRY(cx_memory_need_head(&call->from, &target->id, 0, &head, err));
    return redact_head(call, holds, &head, reason, by, err);
}

static cx_status redact_targets(cx_memory_call *call, const cx_memory_target *targets, size_t count,
                                cx_str reason, cx_str by, size_t *out_held, cx_err *err)
{
    cx_holds holds;
    CX_TRY(cx_holds_load(call->memory->home, false, call->arena, &holds, err));
    for (size_t i = 0; i < count; i++) {
        cx_err own = {0};
        cx_status status = redact_target(call, &holds, &targets[i], reason, by, &own);
        if (cx_failed(status) && own.tag != NULL && strcmp(own.tag, "OnHold") == 0)
            ++*out_held;
        else if (cx_failed(status) &&
                 (own.tag == NULL || strcmp(own.tag, "AlreadyRedacted") != 0)) {
            if (err != NULL)
                *err = own;
            return status;
        }
    }
    return CX_SUCCESS;
}

cx_status cx_memory_redact_many(cx_memory *memory, const cx_memory_target *targets, size_t count,
                                cx_str reason, cx_str by, size_t *out_held, cx_err *err)
{
    cx_memory_call call;
    *out_held = 0;
    CX_TRY(cx_memory_check_text(reason, "the reason", 0, CX_REASON_SIZE_MAX, err));
    CX_TRY(cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    cx_status status = redact_targets(&call, targets, count, reason, by, out_held, err);
    return cx_memory_end(&call, status, err);
}
