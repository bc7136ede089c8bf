/*
 * copilot_cli.c - GitHub Copilot CLI sessions (§2.14): events {"type","data","id","parentId"}.
 *
 * A call is told twice: in the assistant's message that asks for it, and when it is started.
 */
#include "import/turns.h"

#define EVENT_SPACE 'e'

typedef struct copilot_state {
    cx_import_turns turns;
} copilot_state;

static bool starts(cx_str text, const char *with)
{
    return cx_str_starts(text, cx_str_z(with));
}

static const cx_json *data_of(const cx_json *event)
{
    return cx_json_get_typed(event, CX_STR("data"), CX_JSON_OBJECT);
}

static void say_assistant(cx_import_content *content, const cx_json *data)
{
    const cx_json *calls = cx_import_array_at(data, "toolRequests");
    cx_import_say_role(content, CX_STR("assistant"));
    cx_import_say_blocks(content, CX_JSON_GET(data, "content"));
    cx_import_say_thought(content, CX_JSON_GET_STR(data, "reasoningText"));
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++)
        cx_import_say_call(content, CX_JSON_GET_STR(&calls->items[i], "toolCallId"),
                           CX_JSON_GET_STR(&calls->items[i], "name"),
                           CX_JSON_GET(&calls->items[i], "arguments"));
}

static void say_result(cx_import_content *content, const cx_json *data)
{
    const cx_json *error = cx_import_not_null(CX_JSON_GET(data, "error"));
    const cx_json *result = cx_import_not_null(CX_JSON_GET(data, "result"));
    const cx_json *success = CX_JSON_GET(data, "success");
    bool failed = error != NULL || (success != NULL && success->type == CX_JSON_FALSE);
    const cx_json *text = result == NULL ? NULL : CX_JSON_GET(result, "content");
    cx_str message = error == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(error, "message");
    cx_import_say_role(content, CX_STR("tool"));
    if (message.size == 0 && error != NULL)
        message = cx_import_plain_text(content, error);
    cx_import_say_error(content, message);
    cx_import_say_result(content, CX_JSON_GET_STR(data, "toolCallId"),
                         CX_JSON_GET_STR(data, "toolName"), failed,
                         text != NULL     ? text
                         : result != NULL ? result
                                          : error);
}

static void copilot_content(cx_import_content *content, const cx_json *raw)
{
    static const char *const texts[] = {"content", "message", "infoMessage", "title",
                                        "intent",  "summary", NULL};
    cx_str type = CX_JSON_GET_STR(raw, "type");
    const cx_json *data = data_of(raw);
    if (data == NULL)
        return;
    if (cx_str_is(type, "user.message")) {
        cx_import_say_role(content, CX_STR("user"));
        cx_import_say_blocks(content, CX_JSON_GET(data, "content"));
    } else if (cx_str_is(type, "assistant.message")) {
        say_assistant(content, data);
    } else if (cx_str_is(type, "assistant.reasoning")) {
        cx_import_say_role(content, CX_STR("assistant"));
        cx_import_say_thought(content, CX_JSON_GET_STR(data, "content"));
    } else if (cx_str_is(type, "tool.execution_start")) {
        cx_import_say_call(content, CX_JSON_GET_STR(data, "toolCallId"),
                           CX_JSON_GET_STR(data, "toolName"), CX_JSON_GET(data, "arguments"));
    } else if (cx_str_is(type, "tool.execution_complete")) {
        say_result(content, data);
    } else if (cx_str_is(type, "session.error") || cx_str_is(type, "abort")) {
        cx_import_say_error(content, cx_import_first_str(data, texts));
    } else {
        cx_import_say_role(content, CX_STR("system"));
        cx_import_say_text(content, cx_import_first_str(data, texts));
    }
}

/* What the program says of itself. */
static void read_harness(cx_import_record *r, cx_str type)
{
    static const char *const known[] = {"session.", "assistant.",  "tool.", "subagent.", "hook.",
                                        "skill.",   "permission.", "abort", "system.",   "result"};
    bool found = false;
    for (size_t i = 0; i < CX_COUNT_OF(known); i++)
        found = found || starts(type, known[i]);
    r->agent = CX_STR("harness");
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    r->issues |= found ? 0 : 1u << CX_ISSUE_UNKNOWN_TYPE;
    r->kind = cx_str_is(type, "session.error") ? CX_KIND_ERROR
              : cx_str_is(type, "session.start") || cx_str_is(type, "session.resume") ||
                      starts(type, "session.compaction") || cx_str_is(type, "session.shutdown") ||
                      cx_str_is(type, "result")
                  ? CX_KIND_STATE
              : cx_str_is(type, "session.model_change") ? CX_KIND_CONFIG
                                                        : CX_KIND_OBSERVE;
}

static cx_status copilot_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    static const char *const models[] = {"model", "newModel", "selectedModel", NULL};
    copilot_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(value, "type"), role = {NULL, 0};
    const cx_json *data = value->type == CX_JSON_OBJECT ? data_of(value) : NULL;
    if (type.size == 0)
        return cx_import_bad(sink, NULL, UINT64_MAX, err);
    state->turns.repeats = true;
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    r->src_id = CX_JSON_GET_STR(value, "id");
    r->src_parent = CX_JSON_GET_STR(value, "parentId");
    cx_import_define(r, EVENT_SPACE, r->src_id, CX_DEFINE_FIRST);
    cx_import_refer(r, EVENT_SPACE, r->src_parent, CX_REF_NAMED);
    if (r->src_parent.size == 0)
        cx_import_turn_follow(r, &state->turns);
    cx_import_set_any_time(r, CX_JSON_GET(value, "timestamp"));
    cx_import_field_str(r, CX_STR("event_type"), type);
    if (data != NULL) {
        r->model = cx_import_first_str(data, models);
        r->usage = CX_JSON_GET(data, "inputTokens") != NULL ? data : NULL;
        cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(data, "sessionId"));
    }
    if (cx_str_is(type, "user.message"))
        role = CX_STR("user");
    else if (cx_str_is(type, "assistant.message") || cx_str_is(type, "assistant.reasoning") ||
             (cx_str_is(type, "tool.execution_start") && data != NULL &&
              !cx_import_turn_knows(sink, &state->turns, CX_JSON_GET_STR(data, "toolCallId"))))
        role = CX_STR("assistant");
    else if (cx_str_is(type, "tool.execution_complete"))
        role = CX_STR("tool");
    else
        read_harness(r, type);
    return cx_import_turn_end(sink, &state->turns, copilot_content, value, role, CX_STR("copilot"),
                              err);
}

static void copilot_done(cx_import_sink *sink)
{
    copilot_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int copilot_detect(cx_bytes head, const cx_json *record)
{
    static const char *const types[] = {"session.start",
                                        "session.resume",
                                        "user.message",
                                        "assistant.message",
                                        "assistant.turn_start",
                                        "assistant.turn_end",
                                        "tool.execution_start",
                                        "tool.execution_complete",
                                        "session.model_change",
                                        "session.info",
                                        "session.error",
                                        "assistant.reasoning",
                                        "subagent.started",
                                        "session.shutdown",
                                        "session.compaction_start",
                                        NULL};
    static const char name[] = "\"toolCallId\"", complete[] = "\"tool.execution_complete\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, name, sizeof name - 1) != NULL &&
                       memmem(head.data, head.size, complete, sizeof complete - 1) != NULL
                   ? 60
                   : 0;
    return record->type == CX_JSON_OBJECT && data_of(record) != NULL &&
                   cx_import_is_one_of(CX_JSON_GET_STR(record, "type"), types)
               ? 90
               : 0;
}

const cx_import_format cx_import_copilot_cli = {
    .info = {"copilot-cli", "Copilot CLI sessions",
             "JSON lines {\"type\":\"user.message\",\"data\":{...},\"id\",\"parentId\"}", true},
    .state_size = sizeof(copilot_state),
    .line = copilot_line,
    .content = copilot_content,
    .done = copilot_done,
    .detect = copilot_detect,
    .windows = true,
};
