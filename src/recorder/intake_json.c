/*
 * intake_json.c - the answer to a batch (trace.md §11), as one line of canonical JSON.
 */
#include "crypto/api.h"
#include "recorder/internal.h"

static cx_json add_text(cx_str value)
{
    return value.data == NULL ? cx_json_make_null() : cx_json_make_str(value);
}

static cx_status add_hex(cx_json_list *list, cx_str name, const cx_digest *digest, cx_arena *arena,
                         cx_err *err)
{
    char hex[64];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_str copy = cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(list, name, cx_json_make_str(copy));
    return CX_SUCCESS;
}

static cx_status add_texts(cx_json_list *list, cx_str name, const cx_str *items, size_t count,
                           cx_arena *arena, cx_err *err)
{
    cx_json array;
    cx_json_list texts = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&texts, cx_json_make_str(items[i]));
    CX_TRY(cx_json_list_end_array(&texts, &array, err));
    cx_json_list_put(list, name, array);
    return CX_SUCCESS;
}

static cx_status add_entry(cx_json_list *list, const cx_intake_event *outcome, cx_arena *arena,
                           cx_err *err)
{
    cx_json entry;
    cx_json_list members = cx_json_list_begin(arena);
    cx_json_list_put(&members, CX_STR("actor"), cx_json_make_str(outcome->actor));
    cx_json_list_put(&members, CX_STR("seq"), cx_json_make_uint(arena, outcome->seq));
    CX_TRY(cx_json_list_end_object(&members, &entry, err));
    cx_json_list_put(list, CX_STR("entry"), entry);
    return CX_SUCCESS;
}

static bool was_rejected(const cx_intake_event *outcome)
{
    return outcome->status != CX_INTAKE_STORED && outcome->status != CX_INTAKE_DUPLICATE &&
           outcome->status != CX_TAKE_PENDING;
}

static cx_status event_json(const cx_intake_event *outcome, size_t index, cx_arena *arena,
                            cx_json *out, cx_err *err)
{
    const cx_trace_verdict *v = &outcome->verdict;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("index"), cx_json_make_uint(arena, index));
    cx_json_list_put(&list, CX_STR("trace_id"), add_text(outcome->trace_id));
    cx_json_list_put(&list, CX_STR("status"),
                     cx_json_make_str(cx_str_z(cx_intake_event_status_name(outcome->status))));
    if (v->form != CX_FORM_NONE) {
        cx_json_list_put(&list, CX_STR("form"),
                         cx_json_make_str(cx_str_z(cx_trace_form_name(v->form))));
        cx_json_list_put(&list, CX_STR("numbers"),
                         cx_json_make_str(cx_str_z(cx_trace_numbers_name(v->numbers))));
    }
    if (outcome->has_content)
        CX_TRY(add_hex(&list, CX_STR("content_sha256"), &outcome->content, arena, err));
    if (outcome->has_entry)
        CX_TRY(add_entry(&list, outcome, arena, err));
    if (was_rejected(outcome)) {
        cx_json_list_put(&list, CX_STR("reason"),
                         cx_json_make_str(cx_str_z(cx_trace_reason_name(v->problem.reason))));
        if (v->problem.path.data != NULL)
            cx_json_list_put(&list, CX_STR("path"), cx_json_make_str(v->problem.path));
        if (v->problem.detail.data != NULL)
            cx_json_list_put(&list, CX_STR("detail"), cx_json_make_str(v->problem.detail));
        if (v->problem.reason == CX_REASON_LEVEL_VIOLATION)
            CX_TRY(add_texts(&list, CX_STR("paths"), v->paths, v->path_count, arena, err));
    }
    if (outcome->stripped_count != 0)
        CX_TRY(add_texts(&list, CX_STR("stripped"), outcome->stripped, outcome->stripped_count,
                         arena, err));
    if (outcome->warning_count != 0) {
        cx_str warnings[CX_INTAKE_WARNINGS_MAX];
        for (size_t i = 0; i < outcome->warning_count; i++)
            warnings[i] = cx_str_z(outcome->warnings[i]);
        CX_TRY(add_texts(&list, CX_STR("warnings"), warnings, outcome->warning_count, arena, err));
    }
    return cx_json_list_end_object(&list, out, err);
}

/* The sentences that senders of before know (§11). */
static cx_str old_error(const cx_intake_event *outcome, cx_arena *arena)
{
    cx_trace_reason reason = outcome->verdict.problem.reason;
    cx_str id = outcome->trace_id.data == NULL ? CX_STR("unknown") : outcome->trace_id;
    if (reason == CX_REASON_SIGNATURE_INVALID)
        return cx_arena_printf(arena, "%.*s: Invalid signature", (int)id.size, id.data);
    cx_str key = outcome->signing_key;
    if (reason == CX_REASON_KEY_UNKNOWN && key.data != NULL)
        return cx_arena_printf(arena, "%.*s: Unknown signer key: %.*s", (int)id.size, id.data,
                               (int)key.size, key.data);
    return cx_arena_printf(arena, "%.*s: %s", (int)id.size, id.data, cx_trace_reason_name(reason));
}

static cx_status add_rejected(cx_json_list *list, const cx_intake *intake, cx_arena *arena,
                              cx_err *err)
{
    cx_json ids, errors;
    cx_json_list id_list = cx_json_list_begin(arena), error_list = cx_json_list_begin(arena);
    for (size_t i = 0; i < intake->received; i++) {
        const cx_intake_event *outcome = &intake->events[i];
        if (outcome->status != CX_INTAKE_CONFLICT && outcome->status != CX_INTAKE_REJECTED)
            continue;
        cx_str sentence = old_error(outcome, arena);
        if (sentence.data == NULL)
            return cx_fail_nomem(err);
        if (outcome->trace_id.data != NULL)
            cx_json_list_add(&id_list, cx_json_make_str(outcome->trace_id));
        cx_json_list_add(&error_list, cx_json_make_str(sentence));
    }
    CX_TRY(cx_json_list_end_array(&id_list, &ids, err));
    CX_TRY(cx_json_list_end_array(&error_list, &errors, err));
    cx_json_list_put(list, CX_STR("rejected_traces"), ids);
    cx_json_list_put(list, CX_STR("errors"), errors);
    return CX_SUCCESS;
}

static cx_status intake_value(const cx_intake *intake, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json results;
    cx_json_list events = cx_json_list_begin(arena);
    for (size_t i = 0; i < intake->received; i++) {
        cx_json event;
        CX_TRY(event_json(&intake->events[i], i, arena, &event, err));
        cx_json_list_add(&events, event);
    }
    CX_TRY(cx_json_list_end_array(&events, &results, err));
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("status"), cx_json_make_str(cx_str_z(cx_intake_status(intake))));
    cx_json_list_put(&list, CX_STR("received"), cx_json_make_uint(arena, intake->received));
    cx_json_list_put(&list, CX_STR("accepted"), cx_json_make_uint(arena, intake->accepted));
    cx_json_list_put(&list, CX_STR("rejected"), cx_json_make_uint(arena, intake->rejected));
    if (intake->pending != 0)
        cx_json_list_put(&list, CX_STR("pending"), cx_json_make_uint(arena, intake->pending));
    cx_json_list_put(&list, CX_STR("results"), results);
    CX_TRY(add_rejected(&list, intake, arena, err));
    return cx_json_list_end_object(&list, out, err);
}

const char *cx_intake_status(const cx_intake *intake)
{
    if (intake->rejected == 0)
        return "ok";
    return intake->accepted == 0 ? "rejected" : "partial";
}

cx_status cx_intake_json(cx_buf *out, const cx_intake *intake, cx_err *err)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = intake_value(intake, &arena, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
    cx_arena_done(&arena);
    cx_buf_add_byte(out, '\n');
    return cx_failed(status) ? status : cx_buf_check(out, err);
}
