/*
 * receipt.c - what an erasure destroyed, read from the ledger again (erasure.h R3).
 *
 * Erasing entries name their request at the beginning of their reason.  They are read in the order
 * of the log from where the erasure began, so the list is the same whenever it is made.
 */
#include "erasure/internal.h"

typedef struct listing {
    cx_home *reader;
    uint64_t request;
    cx_str tag;
    cx_arena *arena; /* of one line */
    cx_buf *out;
    uint64_t entries, memories;
} listing;

static void end_line(listing *l, const cx_digest *digest, const cx_tail_item *item)
{
    cx_hex_add(l->out, cx_bytes_from(digest->bytes, sizeof digest->bytes));
    cx_buf_printf(l->out, " %llu ", (unsigned long long)item->entry.seq);
    cx_shown_add(l->out, item->actor);
    cx_buf_add_byte(l->out, '\n');
}

static cx_status list_entry(listing *l, const cx_tail_item *item, cx_err *err)
{
    cx_payload payload;
    cx_entry_view target;
    char time[CX_TRACE_TIME_SIZE];
    CX_TRY(cx_payload_decode(CX_ENTRY_REDACT, item->entry.payload, l->arena, &payload, err));
    if (!cx_str_starts(payload.as.redact.reason, l->tag))
        return CX_SUCCESS;
    CX_TRY(cx_home_entry(l->reader, item->actor, payload.as.redact.target_seq, l->arena, &target,
                         err));
    cx_trace_time_write(target.entry.created_at_ns, time);
    cx_buf_printf(l->out, "entry %llu %.*s %s ", (unsigned long long)payload.as.redact.target_seq,
                  (int)target.entry.kind.size, target.entry.kind.data, time);
    end_line(l, &payload.as.redact.commitment, item);
    l->entries++;
    return CX_SUCCESS;
}

static cx_status list_memory(listing *l, const cx_tail_item *item, cx_err *err)
{
    cx_payload payload;
    char id[CX_ULID_SIZE];
    CX_TRY(cx_payload_decode(CX_ENTRY_REDACT_MEMORY, item->entry.payload, l->arena, &payload, err));
    if (!cx_str_starts(payload.as.redact_memory.reason, l->tag))
        return CX_SUCCESS;
    cx_ulid_format(&payload.as.redact_memory.id, id);
    cx_buf_printf(l->out, "memory %.*s %llu ", CX_ULID_SIZE, id,
                  (unsigned long long)payload.as.redact_memory.versions_erased);
    end_line(l, &payload.as.redact_memory.head_hash, item);
    l->memories++;
    return CX_SUCCESS;
}

/* What the erasure removed of itself comes after its receipt, and is not listed. */
static bool ends_listing(const listing *l, const cx_tail_item *item)
{
    return cx_str_is(item->actor, CX_ERASURES_ACTOR) && item->entry.seq > l->request;
}

static cx_status list_tail(listing *l, cx_tail *tail, cx_err *err)
{
    bool end = false;
    for (;;) {
        cx_tail_item item;
        CX_TRY(cx_tail_next(tail, &item, &end, err));
        if (end || (item.has_entry && ends_listing(l, &item)))
            return CX_SUCCESS;
        cx_arena_mark mark = cx_arena_mark_now(l->arena);
        if (item.has_entry && cx_str_is(item.entry.kind, "redact"))
            CX_TRY(list_entry(l, &item, err));
        else if (item.has_entry && cx_str_is(item.entry.kind, "redact_memory"))
            CX_TRY(list_memory(l, &item, err));
        cx_arena_reset(l->arena, mark);
    }
}

cx_status cx_erasure_list(cx_home *reader, uint64_t request, cx_position from, cx_buf *out,
                          uint64_t *out_entries, uint64_t *out_memories, cx_err *err)
{
    char tag[CX_ERASURE_TAG_MAX];
    cx_arena arena;
    cx_tail *tail;
    listing l = {.reader = reader,
                 .request = request,
                 .tag = cx_erasure_tag(request, tag),
                 .arena = &arena,
                 .out = out};
    CX_TRY(cx_tail_begin(reader, from, &tail, err));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = list_tail(&l, tail, err);
    cx_arena_done(&arena);
    cx_tail_end(tail);
    CX_TRY(status);
    *out_entries = l.entries;
    *out_memories = l.memories;
    return cx_buf_check(out, err);
}

/* --- a receipt of before ---------------------------------------------------------------------- */

static cx_status fail_no_receipt(uint64_t seq, cx_err *err)
{
    return cx_fail_at(
        err, CX_E_NOT_FOUND, "NoReceipt", CX_NO_OFFSET,
        "there is no receipt of an erasure %llu; 'cortex log --actor " CX_ERASURES_ACTOR
        "' lists them",
        (unsigned long long)seq);
}

/* The head whose request or own number is `seq`. */
static cx_status find_head(cx_home *reader, uint64_t seq, cx_arena *arena, cx_erasure_head *out,
                           cx_str *out_text, cx_err *err)
{
    cx_actor_info info;
    if (cx_home_actor(reader, CX_STR(CX_ERASURES_ACTOR), &info, NULL).code != CX_OK)
        return fail_no_receipt(seq, err);
    for (uint64_t at = seq; at < info.entry_count; at++) {
        cx_entry_view view;
        cx_str rest;
        CX_TRY(cx_home_entry(reader, CX_STR(CX_ERASURES_ACTOR), at, arena, &view, err));
        if (!cx_kinds_is(view.entry.kind, CX_KIND_ERASURE_RECEIPT))
            continue;
        *out_text = cx_bytes_str(view.payload);
        CX_TRY(cx_erasure_head_read(*out_text, out, &rest, err));
        return out->request == seq || at == seq ? CX_SUCCESS : fail_no_receipt(seq, err);
    }
    return fail_no_receipt(seq, err);
}

static cx_status write_receipt(cx_home *reader, uint64_t seq, cx_arena *arena, cx_buf *out,
                               cx_err *err)
{
    cx_erasure_head head;
    cx_erasure_receipt receipt;
    cx_str text;
    uint64_t entries, memories;
    CX_TRY(find_head(reader, seq, arena, &head, &text, err));
    cx_buf_add_str(out, text);
    CX_TRY(cx_erasure_list(reader, head.request, (cx_position){head.from_commit, head.from_frames},
                           out, &entries, &memories, err));
    return cx_erasure_read(cx_buf_bytes(out), &receipt, err);
}

cx_status cx_erasure_receipt_text(cx_home *reader, uint64_t seq, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = write_receipt(reader, seq, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}
