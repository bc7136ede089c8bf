/*
 * cursor.c - Cursor (§2.15): agent transcripts {"role","message":{"content"}}, and the lines that
 * its command line prints with --output-format stream-json.
 */
#include "import/turns.h"

typedef struct cursor_state {
    cx_import_turns turns;
} cursor_state;

static const cx_json *object_at(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

/* {"readToolCall":{"args","result"}} is the tool read; {"function":{"name","arguments"}}
 * another. */
static cx_str tool_in(const cx_json *call, const cx_json **out_body)
{
    *out_body = NULL;
    for (uint32_t i = 0; i < call->count; i++) {
        cx_str name = cx_json_text(&call->members[i].name);
        const cx_json *body = &call->members[i].value;
        if (body->type != CX_JSON_OBJECT)
            continue;
        *out_body = body;
        if (cx_str_is(name, "function"))
            return CX_JSON_GET_STR(body, "name");
        if (cx_str_ends(name, CX_STR("ToolCall")))
            name.size -= sizeof "ToolCall" - 1;
        return name;
    }
    return (cx_str){NULL, 0};
}

static void say_tool(cx_import_content *content, const cx_json *raw)
{
    static const char *const args[] = {"args", "arguments", "input", NULL};
    static const char *const bad[] = {"error", "failure", "rejected", NULL};
    const cx_json *call = object_at(raw, "tool_call"), *body = NULL;
    cx_str id = CX_JSON_GET_STR(raw, "call_id");
    cx_str tool = call == NULL ? (cx_str){NULL, 0} : tool_in(call, &body);
    const cx_json *result = body == NULL ? NULL : cx_import_not_null(CX_JSON_GET(body, "result"));
    cx_import_say_call(content, id, tool, body == NULL ? NULL : cx_import_first_of(body, args));
    if (!cx_str_is(CX_JSON_GET_STR(raw, "subtype"), "completed") && result == NULL)
        return;
    const cx_json *failure = result == NULL ? NULL : cx_import_first_of(result, bad);
    const cx_json *success = result == NULL ? NULL : CX_JSON_GET(result, "success");
    cx_import_say_result(content, id, tool, failure != NULL,
                         failure != NULL   ? failure
                         : success != NULL ? success
                                           : result);
}

static void cursor_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *message = object_at(raw, "message"), *took = CX_JSON_GET(raw, "duration_ms");
    cx_str type = CX_JSON_GET_STR(raw, "type"), role = CX_JSON_GET_STR(raw, "role");
    int64_t ms = 0;
    if (cx_str_is(type, "tool_call") || cx_str_is(type, "thinking"))
        role = CX_STR("assistant");
    cx_import_say_role(content, role.size != 0 ? role : message != NULL ? type : CX_STR("system"));
    if (message != NULL)
        cx_import_say_message(content, message);
    else if (cx_str_is(type, "tool_call"))
        say_tool(content, raw);
    else if (cx_str_is(type, "thinking"))
        cx_import_say_thought(content, CX_JSON_GET_STR(raw, "text"));
    else if (cx_json_get_typed(raw, CX_STR("is_error"), CX_JSON_TRUE) != NULL)
        cx_import_say_error(content, CX_JSON_GET_STR(raw, "result"));
    else
        cx_import_say_text(content, CX_JSON_GET_STR(raw, "result"));
    if (took != NULL && cx_json_int64(took, &ms) && ms >= 0 && ms < INT64_MAX / 1000000)
        cx_import_say_duration(content, 0, ms * 1000000);
}

static cx_status cursor_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    static const char *const known[] = {"system", "result", "turn_ended", "error", NULL};
    cursor_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(value, "type"), role = CX_JSON_GET_STR(value, "role");
    if (type.size == 0 && role.size == 0)
        return cx_import_bad(sink, NULL, UINT64_MAX, err);
    state->turns.repeats = true;
    if (role.size == 0 && object_at(value, "message") != NULL)
        role = type;
    if (cx_str_is(type, "tool_call") || cx_str_is(type, "thinking"))
        role = CX_STR("assistant");
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    cx_import_set_any_time(r, CX_JSON_GET(value, "timestamp_ms"));
    r->model = CX_JSON_GET_STR(value, "model");
    r->usage = object_at(value, "usage");
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(value, "session_id"));
    cx_import_turn_follow(r, &state->turns);
    if (role.size == 0) {
        r->agent = CX_STR("harness");
        r->kind = cx_str_is(type, "error") ? CX_KIND_ERROR : CX_KIND_STATE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
        r->issues |= cx_import_is_one_of(type, known) ? 0 : 1u << CX_ISSUE_UNKNOWN_TYPE;
    } else if (cx_str_is(type, "tool_call") &&
               cx_import_turn_knows(sink, &state->turns, CX_JSON_GET_STR(value, "call_id"))) {
        r->agent = CX_STR("tools");
        r->kind = CX_KIND_TOOL_RESULT;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    return cx_import_turn_end(sink, &state->turns, cursor_content, value, role, CX_STR("cursor"),
                              err);
}

static void cursor_done(cx_import_sink *sink)
{
    cursor_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

/* Claude Code prints lines of the same types, with a uuid. */
static int cursor_detect(cx_bytes head, const cx_json *record)
{
    (void)head;
    if (record == NULL || record->type != CX_JSON_OBJECT || cx_import_has(record, "uuid"))
        return 0;
    const cx_json *message = object_at(record, "message");
    cx_str type = CX_JSON_GET_STR(record, "type");
    bool session = cx_import_has_str(record, "session_id");
    if (session && cx_str_is(type, "tool_call") && object_at(record, "tool_call") != NULL)
        return 90;
    if (type.size == 0 && cx_import_has_str(record, "role") && message != NULL)
        return CX_JSON_GET(message, "content") != NULL ? 80 : 0;
    if (session && message != NULL && (cx_str_is(type, "user") || cx_str_is(type, "assistant")))
        return 60;
    return session && cx_str_is(type, "system") &&
                   cx_str_is(CX_JSON_GET_STR(record, "subtype"), "init")
               ? 40
               : 0;
}

const cx_import_format cx_import_cursor = {
    .info = {"cursor", "Cursor agent transcripts",
             "JSON lines {\"role\",\"message\":{\"content\"}}, or of --output-format stream-json",
             true},
    .state_size = sizeof(cursor_state),
    .line = cursor_line,
    .content = cursor_content,
    .done = cursor_done,
    .detect = cursor_detect,
};
