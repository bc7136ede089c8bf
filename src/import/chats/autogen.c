/*
 * autogen.c - AutoGen and AG2 (§2.21): messages and events of named agents; a list, a result with
 * `messages`, AG2's `chat_history`, or a message a line.
 */
#include "import/turns.h"

typedef struct autogen_state {
    cx_import_turns turns;
} autogen_state;

static bool is_event(const cx_json *value)
{
    cx_str type = CX_JSON_GET_STR(value, "type");
    return value->type == CX_JSON_OBJECT && cx_import_has_str(value, "source") && type.size != 0 &&
           (cx_str_ends(type, CX_STR("Message")) || cx_str_ends(type, CX_STR("Event")));
}

/* AG2 names the speaker next to a role that depends on the agent that kept the list. */
static bool is_chat(const cx_json *value)
{
    return value->type == CX_JSON_OBJECT && cx_import_has_str(value, "name") &&
           cx_import_has_str(value, "role");
}

static const cx_json *list_of(const cx_json *document)
{
    static const char *const names[] = {"messages", "chat_history", NULL};
    if (document->type == CX_JSON_ARRAY)
        return document;
    const cx_json *list = cx_import_first_of(document, names);
    return list != NULL && list->type == CX_JSON_ARRAY ? list : NULL;
}

static void say_event(cx_import_content *content, const cx_json *raw)
{
    const cx_json *body = CX_JSON_GET(raw, "content");
    cx_str type = CX_JSON_GET_STR(raw, "type");
    bool list = body != NULL && body->type == CX_JSON_ARRAY;
    bool user = cx_str_is(CX_JSON_GET_STR(raw, "source"), "user");
    bool answers = cx_str_is(type, "ToolCallExecutionEvent");
    cx_import_say_role(content, user ? CX_STR("user") : CX_STR("assistant"));
    if (cx_str_is(type, "ThoughtEvent")) {
        cx_import_say_thought(content, CX_JSON_GET_STR(raw, "content"));
    } else if (list && (answers || cx_str_is(type, "ToolCallRequestEvent"))) {
        for (uint32_t i = 0; i < body->count; i++) {
            const cx_json *item = &body->items[i];
            if (answers)
                cx_import_say_result(
                    content, CX_JSON_GET_STR(item, "call_id"), CX_JSON_GET_STR(item, "name"),
                    cx_json_get_typed(item, CX_STR("is_error"), CX_JSON_TRUE) != NULL,
                    CX_JSON_GET(item, "content"));
            else
                cx_import_say_call(content, CX_JSON_GET_STR(item, "id"),
                                   CX_JSON_GET_STR(item, "name"), CX_JSON_GET(item, "arguments"));
        }
    } else if (body != NULL && (list || body->type == CX_JSON_STRING)) {
        cx_import_say_blocks(content, body);
    } else {
        cx_import_say_text(content, cx_import_plain_text(content, body));
    }
}

static void autogen_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *answers = cx_import_array_at(raw, "tool_responses");
    if (is_event(raw)) {
        say_event(content, raw);
        return;
    }
    if (answers == NULL || answers->count == 0)
        cx_import_say_message(content, raw);
    else
        cx_import_say_role(content, CX_STR("tool")); /* its content is the same again */
    for (uint32_t i = 0; answers != NULL && i < answers->count; i++)
        cx_import_say_result(content, CX_JSON_GET_STR(&answers->items[i], "tool_call_id"),
                             (cx_str){NULL, 0}, false, CX_JSON_GET(&answers->items[i], "content"));
}

static cx_import_kind kind_of(const cx_json *value, cx_str role)
{
    cx_str type = CX_JSON_GET_STR(value, "type");
    if (cx_str_is(type, "ToolCallRequestEvent") || cx_import_array_at(value, "tool_calls") != NULL)
        return CX_KIND_ACT;
    if (cx_str_is(type, "ToolCallExecutionEvent") || cx_import_is_tool_role(role))
        return CX_KIND_TOOL_RESULT;
    return cx_str_is(type, "ThoughtEvent") ? CX_KIND_REASON : CX_KIND_MESSAGE;
}

static cx_status import_message(cx_import_sink *sink, const cx_json *value, const cx_json *raw,
                                cx_err *err)
{
    static const char *const names[] = {"source", "name", "role", NULL};
    autogen_state *state = sink->state;
    cx_str agent = cx_import_first_str(value, names), role = CX_JSON_GET_STR(value, "role");
    if (value->type != CX_JSON_OBJECT || agent.size == 0)
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    bool user = cx_str_is(agent, "user");
    r->src_id = CX_JSON_GET_STR(value, "id");
    cx_import_set_any_time(r, CX_JSON_GET(value, "created_at"));
    r->usage = cx_json_get_typed(value, CX_STR("models_usage"), CX_JSON_OBJECT);
    r->kind = kind_of(value, is_event(value) ? CX_STR("") : role);
    r->agent = r->kind == CX_KIND_TOOL_RESULT ? CX_STR("tools") : agent;
    if (user && r->kind == CX_KIND_MESSAGE)
        r->kind = CX_KIND_INPUT;
    r->fork = r->kind == CX_KIND_TOOL_RESULT ? CX_IMPORT_FORK_OBSERVATION : CX_IMPORT_FORK_NATURAL;
    r->content = cx_import_not_null(CX_JSON_GET(value, "content"));
    cx_import_field_str(r, CX_STR("message_type"), CX_JSON_GET_STR(value, "type"));
    cx_import_field_str(r, CX_STR("target"), CX_JSON_GET_STR(value, "target"));
    cx_import_turn_follow(r, &state->turns);
    return cx_import_turn_end(sink, &state->turns, autogen_content, value, CX_STR(""), agent, err);
}

static cx_status autogen_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"messages", "chat_history", NULL};
    const cx_json *list = list_of(document);
    cx_json top;
    if (list == NULL && is_event(document))
        return import_message(sink, document, document, err);
    if (list == NULL)
        return cx_import_shape(err, "a list of messages with a source, or an object with one");
    if (document->type == CX_JSON_OBJECT) {
        CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
        CX_TRY(cx_import_top(sink, &top, err));
    }
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(import_message(sink, &list->items[i], &list->items[i], err));
    return CX_SUCCESS;
}

static cx_status autogen_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    return import_message(sink, value, NULL, err);
}

static void autogen_done(cx_import_sink *sink)
{
    autogen_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int autogen_detect(cx_bytes head, const cx_json *record)
{
    static const char usage[] = "\"models_usage\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, usage, sizeof usage - 1) != NULL ? 50
                                                                                               : 0;
    if (record->type == CX_JSON_OBJECT && is_event(record))
        return 85;
    const cx_json *list = list_of(record);
    const cx_json *first = list == NULL ? NULL : cx_import_first_object(list);
    if (first == NULL)
        return 0;
    if (is_event(first))
        return 88;
    return record->type == CX_JSON_OBJECT && is_chat(first) && cx_import_has(record, "chat_history")
               ? 80
               : 0;
}

const cx_import_format cx_import_autogen = {
    .info = {"autogen", "AutoGen and AG2 chats",
             "[{\"source\",\"type\",\"content\"}], in messages, as lines; {\"chat_history\"}",
             false},
    .state_size = sizeof(autogen_state),
    .document = autogen_document,
    .line = autogen_line,
    .content = autogen_content,
    .done = autogen_done,
    .detect = autogen_detect,
};
