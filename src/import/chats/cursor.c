/*
 * cursor.c - Cursor (§2.15): agent transcripts {"role","message":{"content"}}, the lines that its
 * command line prints with --output-format stream-json, and those of its editor's database
 * (vscdb.h).
 */
#include "import/turns.h"

static void cursor_content(cx_import_content *content, const cx_json *raw);

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

/* --- the database ----------------------------------------------------------------------------- */

enum { BUBBLE_USER = 1, BUBBLE_AGENT = 2 };

static int64_t type_of(const cx_json *bubble)
{
    int64_t type = 0;
    const cx_json *value = CX_JSON_GET(bubble, "type");
    if (value != NULL && value->type == CX_JSON_STRING) /* of old chats */
        return cx_str_is(cx_json_text(value), "user") ? BUBBLE_USER : BUBBLE_AGENT;
    return value != NULL && cx_json_int64(value, &type) ? type : 0;
}

/* A text that is not empty. */
static cx_str text_at(const cx_json *object, const char *name)
{
    return object == NULL ? (cx_str){NULL, 0} : cx_json_get_str(object, cx_str_z(name));
}

static void say_tool_bubble(cx_import_content *content, const cx_json *tool)
{
    static const char *const args[] = {"rawArgs", "params", NULL};
    cx_str id = text_at(tool, "toolCallId"), name = text_at(tool, "name");
    cx_str status = text_at(tool, "status");
    bool failed = cx_str_is(status, "error") || cx_str_is(status, "cancelled") ||
                  cx_str_is(text_at(tool, "userDecision"), "rejected");
    const cx_json *result = cx_import_not_null(CX_JSON_GET(tool, "result"));
    if (result == NULL)
        result = cx_import_not_null(CX_JSON_GET(tool, "error"));
    cx_import_say_call(content, id, name, cx_import_first_of(tool, args));
    if (result != NULL || failed || cx_str_is(status, "completed"))
        cx_import_say_result(content, id, name, failed, result);
}

static void say_bubble(cx_import_content *content, const cx_json *bubble)
{
    static const char *const texts[] = {"text", "rawText", NULL};
    const cx_json *thinking = CX_JSON_GET(bubble, "thinking");
    const cx_json *tool = object_at(bubble, "toolFormerData");
    const cx_json *images = cx_import_array_at(bubble, "images");
    cx_import_say_role(content,
                       type_of(bubble) == BUBBLE_USER ? CX_STR("user") : CX_STR("assistant"));
    if (thinking != NULL)
        cx_import_say_thought(content, thinking->type == CX_JSON_STRING
                                           ? cx_json_text(thinking)
                                           : text_at(thinking, "text"));
    cx_import_say_text(content, cx_import_first_str(bubble, texts));
    if (tool != NULL && text_at(tool, "name").size != 0)
        say_tool_bubble(content, tool);
    content->images += images == NULL ? 0 : images->count;
}

static void say_composer(cx_import_content *content, const cx_json *composer)
{
    static const char *const titles[] = {"name", "subtitle", "chatTitle", NULL};
    if (composer->type == CX_JSON_OBJECT)
        cx_import_say_text(content, cx_import_first_str(composer, titles));
}

static void say_missing(cx_import_content *content, cx_str why)
{
    cx_str text = cx_arena_printf(content->arena, "a message is missing: %.*s",
                                  (int)(why.size > 120 ? 120 : why.size), why.data);
    if (text.data == NULL)
        content->failed = true;
    else
        cx_import_say_text(content, text);
}

static bool is_stored(const cx_json *value)
{
    return cx_import_has_str(value, "composerId") &&
           (CX_JSON_GET(value, "composer") != NULL || cx_import_has_str(value, "bubbleId"));
}

static const cx_json *usage_of(const cx_json *bubble)
{
    const cx_json *count = object_at(bubble, "tokenCount");
    const cx_json *input = count == NULL ? NULL : CX_JSON_GET(count, "inputTokens");
    const cx_json *output = count == NULL ? NULL : CX_JSON_GET(count, "outputTokens");
    int64_t given = 0, said = 0;
    bool known = input != NULL && output != NULL && cx_json_int64(input, &given) &&
                 cx_json_int64(output, &said) && (given > 0 || said > 0);
    return known ? count : NULL; /* both are 0 where nothing was counted */
}

static void set_bubble_time(cx_import_record *r, const cx_json *bubble)
{
    static const char *const names[] = {"createdAt", "timestamp", NULL};
    static const char *const timings[] = {"clientStartTime", "clientRpcSendTime", NULL};
    const cx_json *timing = object_at(bubble, "timingInfo");
    const cx_json *time = cx_import_first_of(bubble, names);
    if (time == NULL && timing != NULL)
        time = cx_import_first_of(timing, timings);
    cx_import_set_any_time(r, time);
}

static cx_status import_bubble(cx_import_sink *sink, const cx_json *value, const cx_json *bubble,
                               cx_err *err)
{
    cursor_state *state = sink->state;
    const cx_json *model = object_at(bubble, "modelInfo");
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    r->src_id = CX_JSON_GET_STR(value, "bubbleId");
    set_bubble_time(r, bubble);
    r->model = text_at(model, "modelName");
    r->usage = usage_of(bubble);
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(value, "composerId"));
    cx_import_turn_follow(r, &state->turns);
    return cx_import_turn_end(sink, &state->turns, cursor_content, value,
                              type_of(bubble) == BUBBLE_USER ? CX_STR("user") : CX_STR("assistant"),
                              CX_STR("cursor"), err);
}

/* A conversation begins; `missing` messages are said to be so. */
static cx_status import_note(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    cursor_state *state = sink->state;
    const cx_json *composer = CX_JSON_GET(value, "composer");
    bool begins = composer != NULL;
    if (begins)
        CX_TRY(cx_import_turns_open(sink, &state->turns, err));
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(value, "composerId"));
    r->agent = CX_STR("harness");
    r->kind = begins ? CX_KIND_STATE : CX_KIND_OBSERVE;
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    r->src_id = begins ? (cx_str){NULL, 0} : CX_JSON_GET_STR(value, "bubbleId");
    if (begins && composer->type == CX_JSON_OBJECT) {
        const cx_json *model = object_at(composer, "modelConfig");
        cx_import_set_any_time(r, CX_JSON_GET(composer, "createdAt"));
        r->model = text_at(model, "modelName");
        cx_import_field_str(r, CX_STR("name"), text_at(composer, "name"));
    }
    cx_import_turn_follow(r, &state->turns);
    return cx_import_turn_end(sink, &state->turns, cursor_content, value, CX_STR(""), CX_STR(""),
                              err);
}

static cx_status import_stored(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    const cx_json *bubble = object_at(value, "bubble");
    return bubble == NULL ? import_note(sink, value, err) : import_bubble(sink, value, bubble, err);
}

/* --- lines ------------------------------------------------------------------------------------ */

static void cursor_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *composer = CX_JSON_GET(raw, "composer"), *bubble = object_at(raw, "bubble");
    if (bubble != NULL) {
        say_bubble(content, bubble);
        return;
    }
    if (composer != NULL || cx_import_has_str(raw, "missing")) {
        cx_import_say_role(content, CX_STR("system"));
        if (composer != NULL)
            say_composer(content, composer);
        else
            say_missing(content, CX_JSON_GET_STR(raw, "missing"));
        return;
    }
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
    if (value->type == CX_JSON_OBJECT && is_stored(value))
        return import_stored(sink, value, err);
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
    if (is_stored(record))
        return 90;
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
             "JSON lines {\"role\",\"message\":{\"content\"}} or of stream-json; or state.vscdb",
             true},
    .state_size = sizeof(cursor_state),
    .line = cursor_line,
    .content = cursor_content,
    .done = cursor_done,
    .detect = cursor_detect,
    .windows = true,
};
