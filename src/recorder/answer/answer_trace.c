/*
 * answer_trace.c - one trace with its verdict, its position in the ledger, and the proof of it.
 */
#include "crypto/api.h"
#include "ledger/api.h"
#include "recorder/answer/reply.h"

/* --- one trace -------------------------------------------------------------------------------- */

/* Where it is; of several levels the highest that may be shown, else the lowest there is. */
typedef struct place {
    cx_str actor;
    uint64_t seq;
    cx_trace_level level;
} place;

static cx_status ambiguous(const cx_trace_wanted *wanted, cx_err *err)
{
    return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                      "several agents have a trace %.*s: choose one with agent_id_hash",
                      (int)wanted->trace_id.size, wanted->trace_id.data);
}

static bool is_better(cx_trace_level level, cx_trace_level than, cx_trace_level wanted)
{
    if (level <= wanted)
        return than > wanted || level > than;
    return than > wanted && level < than;
}

static cx_status find_place(cx_index *index, const cx_trace_wanted *wanted, cx_arena *arena,
                            place *out, cx_err *err)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    const cx_found_row *rows;
    size_t count = 0;
    bool more;
    query.trace_id = wanted->trace_id;
    query.agent = wanted->agent;
    query.verified = CX_NULL;
    query.level = CX_LEVEL_FULL;
    query.every_level = true;
    query.limit = 64;
    CX_TRY(cx_index_find(index, &query, arena, &rows, &count, &more, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoTrace", CX_NO_OFFSET, "no such trace");
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        cx_trace_level level = CX_LEVEL_FULL;
        if (!cx_str_eq(cx_reply_cell(&rows[i], "agent_id_hash")->text,
                       cx_reply_cell(&rows[0], "agent_id_hash")->text))
            return ambiguous(wanted, err);
        (void)cx_trace_level_parse(cx_reply_cell(&rows[i], "trace_level")->text, &level);
        if (found && !is_better(level, out->level, wanted->level))
            continue;
        *out = (place){cx_reply_cell(&rows[i], "ledger_actor")->text,
                       (uint64_t)cx_reply_cell(&rows[i], "ledger_seq")->i, level};
        found = true;
    }
    return CX_SUCCESS;
}

static cx_status erased_trace(cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "Erased", CX_NO_OFFSET,
                      "the trace was erased; its entry is still in the ledger");
}

static cx_status fetch_trace(cx_recorder *recorder, cx_index *index, const cx_trace_wanted *wanted,
                             cx_arena *arena, cx_recorded *out, place *out_place, cx_err *err)
{
    CX_TRY(find_place(index, wanted, arena, out_place, err));
    CX_TRY(cx_recorder_recorded(recorder->home, out_place->actor, out_place->seq, out_place->level,
                                arena, out, err));
    return out->erased ? erased_trace(err) : CX_SUCCESS;
}

/* Judged now, with the keys as they are now; of a view only what was found at intake is known. */
static cx_status verdict_json(cx_recorder *recorder, const cx_recorded *recorded, cx_arena *arena,
                              cx_json *out, cx_err *err)
{
    const cx_trace_record *record = &recorded->record;
    cx_trust_view *view;
    cx_trace_verdict verdict = {.verdict = record->verified ? CX_HOLDS : CX_INDETERMINATE,
                                .problem = {.reason = record->reason},
                                .form = record->form,
                                .numbers = record->numbers,
                                .canonical = record->canonical};
    CX_TRY(cx_recorder_trust_acquire(recorder, &view, err));
    const cx_trace_check check = {.trust = &view->trust,
                                  .received_ns = record->received_ns,
                                  .event_level = record->level,
                                  .batch_level = record->level,
                                  .forms = CX_FORMS_ALL,
                                  .any_level = true};
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = CX_SUCCESS;
    if (!record->is_view)
        CX_TRY_GOTO(status, cx_trace_verify(&recorded->trace, &check, &text, arena, &verdict, err));
    cx_buf_clear(&text);
    CX_TRY_GOTO(status, cx_trace_verdict_json(&text, &recorded->trace, &verdict, err));
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
    status = copy.data == NULL ? cx_fail_nomem(err) : cx_json_parse_text(copy, arena, out, err);
done:
    cx_buf_done(&text);
    cx_recorder_trust_release(recorder, view);
    return status;
}

static cx_status proof_json(cx_recorder *recorder, const place *at, const cx_recorded *recorded,
                            cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_inclusion proof;
    cx_digest root;
    cx_buf bytes, text;
    CX_TRY(
        cx_proof_journal(recorder->home, at->actor, at->seq, 0, true, arena, &proof, &root, err));
    cx_buf_init(&bytes, arena->alloc);
    cx_buf_init(&text, arena->alloc);
    cx_inclusion_encode(&proof, &bytes);
    cx_base64_add(&text, cx_buf_bytes(&bytes), CX_BASE64_URL);
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&bytes);
    cx_buf_done(&text);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list list = cx_json_list_begin(arena);
    cx_reply_uint(&list, "journal_size", proof.tree_size);
    cx_reply_hex(&list, "journal_root", root.bytes, sizeof root.bytes);
    cx_reply_hex(&list, "leaf", recorded->entry.leaf_hash.bytes, 32);
    cx_reply_hex(&list, "payload_salt", recorded->entry.salt, sizeof recorded->entry.salt);
    cx_reply_text(&list, "inclusion", copy);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status conflicts_json(cx_index *index, const cx_recorded *recorded, cx_arena *arena,
                                const place *at, cx_json *out, cx_err *err)
{
    const cx_conflict_row *rows;
    size_t count = 0;
    CX_TRY(
        cx_index_conflicts(index, at->actor, recorded->trace.trace_id, arena, &rows, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++) {
        cx_json item;
        cx_json_list row = cx_json_list_begin(arena);
        cx_reply_text(&row, "actor", rows[i].actor);
        cx_reply_uint(&row, "seq", rows[i].seq);
        cx_reply_hex(&row, "content_sha256", rows[i].content.bytes, 32);
        cx_reply_time(&row, "received_at", rows[i].received_ns);
        CX_TRY(cx_json_list_end_object(&row, &item, err));
        cx_json_list_add(&list, item);
    }
    return cx_json_list_end_array(&list, out, err);
}

/* The trace as it may be shown: itself, or its view. */
static cx_status shown_trace(const cx_recorded *recorded, cx_trace_level level, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    const cx_trace_record *record = &recorded->record;
    const cx_str *removed;
    size_t removed_count;
    if (record->level <= level) {
        *out = *recorded->trace.json;
        return CX_SUCCESS;
    }
    const cx_trace_redaction how = {.from = record->level,
                                    .to = level,
                                    .form = record->form,
                                    .canonical = record->canonical,
                                    .content = record->content,
                                    .has_canonical = record->form != CX_FORM_NONE};
    return cx_trace_redact(&recorded->trace, &how, arena, out, &removed, &removed_count, err);
}

static cx_status entry_json(const place *at, const cx_recorded *recorded, cx_arena *arena,
                            cx_json *out, cx_err *err)
{
    const cx_trace_record *record = &recorded->record;
    cx_json_list list = cx_json_list_begin(arena);
    cx_reply_text(&list, "actor", at->actor);
    cx_reply_uint(&list, "seq", at->seq);
    cx_reply_time(&list, "received_at", record->received_ns);
    cx_reply_text(&list, "capture", record->capture);
    cx_reply_hex(&list, "content_sha256", record->content.bytes, 32);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status trace_json(cx_recorder *recorder, cx_index *index, const cx_trace_wanted *wanted,
                            cx_arena *arena, cx_buf *out, cx_err *err)
{
    place at = {.level = CX_LEVEL_FULL};
    cx_recorded recorded;
    cx_json trace, verdict, proof, conflicts, entry;
    CX_TRY(fetch_trace(recorder, index, wanted, arena, &recorded, &at, err));
    CX_TRY(shown_trace(&recorded, wanted->level, arena, &trace, err));
    CX_TRY(verdict_json(recorder, &recorded, arena, &verdict, err));
    CX_TRY(entry_json(&at, &recorded, arena, &entry, err));
    CX_TRY(proof_json(recorder, &at, &recorded, arena, &proof, err));
    CX_TRY(conflicts_json(index, &recorded, arena, &at, &conflicts, err));
    cx_trace_level level = at.level < wanted->level ? at.level : wanted->level;
    /* The trace keeps its number spelling (§14.4), the rest is ours. */
    static const cx_canon_style as_received = {.spaces = false};
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    cx_reply_z(&list, "level", cx_trace_level_name(level));
    cx_reply_add(&list, "verdict", verdict);
    cx_reply_add(&list, "entry", entry);
    cx_reply_add(&list, "proof", proof);
    cx_reply_add(&list, "conflicts", conflicts);
    cx_reply_add(&list, "trace", trace);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    CX_TRY(cx_trace_canon_value(&value, &as_received, out, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

cx_status cx_recorder_answer_trace(cx_recorder *recorder, cx_index *index,
                                   const cx_trace_wanted *wanted, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = trace_json(recorder, index, wanted, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_recorder_raw_trace(cx_recorder *recorder, cx_index *index,
                                const cx_trace_wanted *wanted, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    place at = {.level = CX_LEVEL_FULL};
    cx_recorded recorded;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = fetch_trace(recorder, index, wanted, &arena, &recorded, &at, err);
    if (!cx_failed(status) && recorded.record.level > wanted->level)
        status = cx_fail_at(err, CX_E_DENIED, "LevelTooLow", CX_NO_OFFSET,
                            "the received bytes are of level %s",
                            cx_trace_level_name(recorded.record.level));
    else if (!cx_failed(status)) {
        cx_buf_add(out, recorded.entry.payload.data, recorded.entry.payload.size);
        status = cx_buf_check(out, err);
    }
    cx_arena_done(&arena);
    return status;
}
