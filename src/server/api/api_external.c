/*
 * api_external.c - lists traces received over OTLP and archived sessions: the names of branches
 * that lattice questions accept (external.h).
 */
#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "recorder/api.h"
#include "stores/api.h"
#include "server/route.h"

#define LIMIT_DEFAULT 100

static cx_status hex_of(cx_call *call, const uint8_t *id, size_t size, cx_json *out, cx_err *err)
{
    char text[64];
    CX_ASSERT(2 * size <= sizeof text);
    cx_hex_encode(cx_bytes_from(id, size), text);
    cx_str stored = cx_arena_copy_str(call->arena, cx_str_from(text, 2 * size));
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    *out = cx_json_make_str(stored);
    return CX_SUCCESS;
}

static cx_status put_object(cx_json_list *array, cx_json_list *object, cx_err *err)
{
    cx_json made;
    CX_TRY(cx_json_list_end_object(object, &made, err));
    cx_json_list_add(array, made);
    return CX_SUCCESS;
}

static cx_status add_trace(cx_call *call, const cx_otlp_trace_row *row, cx_json_list *out,
                           cx_err *err)
{
    cx_json id;
    cx_json_list list = cx_json_list_begin(call->arena);
    CX_TRY(hex_of(call, row->trace_id, sizeof row->trace_id, &id, err));
    cx_json_list_put(&list, CX_STR("first_seq"), cx_json_make_uint(call->arena, row->first_seq));
    cx_json_list_put(&list, CX_STR("spans"), cx_json_make_uint(call->arena, row->spans));
    cx_json_list_put(&list, CX_STR("trace_id"), id);
    return put_object(out, &list, err);
}

static cx_status answer_list(cx_call *call, const char *name, cx_json_list *rows, cx_json after,
                             cx_err *err)
{
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_json made, answer;
    CX_TRY(cx_json_list_end_array(rows, &made, err));
    cx_json_list_put(&list, cx_str_z(name), made);
    cx_json_list_put(&list, CX_STR("next_after"), after);
    CX_TRY(cx_json_list_end_object(&list, &answer, err));
    return cx_call_answer_json(call, 200, &answer, err);
}

cx_status cx_api_otel_traces(cx_call *call, cx_err *err)
{
    const cx_param *limit = cx_call_param(call, "limit");
    cx_str after = cx_call_text(call, "after");
    uint8_t from[CX_OTLP_INDEX_TRACE_SIZE];
    const cx_otlp_trace_row *rows;
    size_t count, max = limit->given ? (size_t)limit->count : LIMIT_DEFAULT;
    cx_json next = cx_json_make_null();
    if (after.data != NULL && !cx_hex_decode_any(after, from, sizeof from))
        return cx_fail(err, CX_E_USAGE, "after: expected a trace id, 32 hexadecimal digits");
    CX_TRY(cx_recorder_otlp_traces(cx_recorder_home(call->service->recorder),
                                   after.data == NULL ? NULL : from, max, call->arena, &rows,
                                   &count, err));
    cx_json_list list = cx_json_list_begin(call->arena);
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_trace(call, &rows[i], &list, err));
    if (count == max)
        CX_TRY(hex_of(call, rows[count - 1].trace_id, sizeof rows->trace_id, &next, err));
    return answer_list(call, "traces", &list, next, err);
}

static cx_status add_session(cx_call *call, const cx_recorded_session *session, cx_json_list *out,
                             cx_err *err)
{
    cx_json id;
    cx_json_list list = cx_json_list_begin(call->arena);
    CX_TRY(hex_of(call, session->id, sizeof session->id, &id, err));
    cx_json_list_put(&list, CX_STR("bytes"), cx_json_make_uint(call->arena, session->offset));
    cx_json_list_put(&list, CX_STR("file"),
                     cx_json_make_str(cx_utf8_valid(session->path) ? session->path : CX_STR("?")));
    cx_json_list_put(&list, CX_STR("format"),
                     cx_json_make_str(cx_str_z(cx_recorded_session_format_name(session->format))));
    cx_json_list_put(&list, CX_STR("generation"),
                     cx_json_make_uint(call->arena, session->generation));
    cx_json_list_put(&list, CX_STR("session"), id);
    return put_object(out, &list, err);
}

cx_status cx_api_archived(cx_call *call, cx_err *err)
{
    const cx_recorded_session *sessions;
    size_t count;
    CX_TRY(cx_recorder_sessions(cx_recorder_home(call->service->recorder), call->arena, &sessions,
                                &count, err));
    cx_json_list list = cx_json_list_begin(call->arena);
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_session(call, &sessions[i], &list, err));
    return answer_list(call, "sessions", &list, cx_json_make_null(), err);
}
