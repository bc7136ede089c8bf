/*
 * gen_ai_content.c - what spans and log records say, by the conventions of OpenTelemetry and of
 * what instruments without them (§2.1).
 *
 * Messages are one attribute (JSON, or JSON in a text), attributes with a number in their names
 * (`llm.input_messages.0.message.content`, `gen_ai.prompt.0.content`), or events of the span.
 */
#include <string.h>

#include "import/gen_ai.h"

#define MESSAGES_MAX 1000 /* of numbered ones; what is above it stays in raw */
#define CALLS_MAX 64      /* of one message */
#define VALUE_DEPTH_MAX 128

/* --- values of attributes --------------------------------------------------------------------- */

static cx_json any_value(const cx_json *value, cx_arena *arena, unsigned depth);

static cx_json value_list(const cx_json *values, bool named, cx_arena *arena, unsigned depth)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json out = {.type = CX_JSON_NULL};
    for (uint32_t i = 0; i < values->count; i++) {
        const cx_json *item = &values->items[i];
        const cx_json *inner = named ? CX_JSON_GET(item, "value") : item;
        if (inner == NULL)
            continue;
        if (named)
            cx_json_list_put(&list, CX_JSON_GET_STR(item, "key"), any_value(inner, arena, depth));
        else
            cx_json_list_add(&list, any_value(inner, arena, depth));
    }
    /* A name twice: the value stays as it was sent, in raw. */
    cx_status status = named ? cx_json_list_end_object(&list, &out, NULL)
                             : cx_json_list_end_array(&list, &out, NULL);
    return cx_failed(status) ? (cx_json){.type = CX_JSON_NULL} : out;
}

/* An AnyValue as the JSON that it means; other JSON as it is. */
static cx_json any_value(const cx_json *value, cx_arena *arena, unsigned depth)
{
    static const char *const plain[] = {"stringValue", "boolValue", "doubleValue", "intValue",
                                        "bytesValue"};
    const cx_json *list = CX_JSON_GET(value, "arrayValue"),
                  *map = CX_JSON_GET(value, "kvlistValue");
    if (depth == VALUE_DEPTH_MAX)
        return (cx_json){.type = CX_JSON_NULL};
    if (list != NULL || map != NULL) {
        const cx_json *values =
            cx_json_get_typed(list != NULL ? list : map, CX_STR("values"), CX_JSON_ARRAY);
        if (values != NULL)
            return value_list(values, map != NULL, arena, depth + 1);
    }
    for (size_t i = 0; i < CX_COUNT_OF(plain); i++) {
        const cx_json *inside = cx_json_get(value, cx_str_z(plain[i]));
        if (inside != NULL)
            return *inside;
    }
    return *value;
}

/* What is left of an attribute after unwrapping: arrays and maps in OTLP's form. */
static const cx_json *first_value(const cx_import_span *span, const char *const *names)
{
    static const char *const wrapped[] = {"values", NULL};
    const cx_json *found = cx_import_first_attribute(span, names);
    const cx_json *values = found == NULL ? NULL : cx_json_get(found, cx_str_z(wrapped[0]));
    if (values == NULL || values->type != CX_JSON_ARRAY || found->count != 1)
        return found;
    bool named = values->count != 0 && CX_JSON_GET(&values->items[0], "key") != NULL;
    cx_json *made = CX_ARENA_NEW(span->arena, cx_json);
    if (made != NULL)
        *made = value_list(values, named, span->arena, 0);
    return made;
}

static cx_str first_text(const cx_import_span *span, const char *const *names)
{
    const cx_json *found = cx_import_first_attribute(span, names);
    return found != NULL && found->type == CX_JSON_STRING ? cx_json_text(found) : (cx_str){NULL, 0};
}

/* --- numbered messages ------------------------------------------------------------------------ */

typedef struct numbered_call {
    cx_str id, name;
    const cx_json *arguments;
} numbered_call;

typedef struct numbered_message {
    cx_str role, call_id, name;
    const cx_json *body;
    numbered_call calls[CALLS_MAX];
    uint32_t call_count;
} numbered_message;

/* Cuts `NUMBER.` off the front; false when there is none. */
static bool cut_number(cx_str *name, uint32_t limit, uint32_t *out)
{
    uint32_t value = 0;
    size_t at = 0;
    for (; at < name->size && name->data[at] >= '0' && name->data[at] <= '9' && value < limit; at++)
        value = value * 10 + (uint32_t)(name->data[at] - '0');
    if (at == 0 || at == name->size || name->data[at] != '.' || value >= limit)
        return false;
    *out = value;
    *name = cx_str_from(name->data + at + 1, name->size - at - 1);
    return true;
}

static bool cut_prefix(cx_str *name, const char *prefix)
{
    size_t size = strlen(prefix);
    if (name->size <= size || memcmp(name->data, prefix, size) != 0)
        return false;
    *name = cx_str_from(name->data + size, name->size - size);
    return true;
}

static cx_str text_of(const cx_json *value)
{
    return value->type == CX_JSON_STRING ? cx_json_text(value) : (cx_str){NULL, 0};
}

static void read_call_field(numbered_message *message, cx_str name, const cx_json *value)
{
    uint32_t number = 0;
    if (!cut_number(&name, CALLS_MAX, &number))
        return;
    numbered_call *call = &message->calls[number];
    if (message->call_count <= number)
        message->call_count = number + 1;
    (void)cut_prefix(&name, "tool_call.");
    (void)cut_prefix(&name, "function.");
    if (cx_str_is(name, "id"))
        call->id = text_of(value);
    else if (cx_str_is(name, "name"))
        call->name = text_of(value);
    else if (cx_str_is(name, "arguments"))
        call->arguments = value;
}

static void read_field(numbered_message *message, cx_str name, const cx_json *value)
{
    (void)cut_prefix(&name, "message.");
    if (cut_prefix(&name, "tool_calls."))
        read_call_field(message, name, value);
    else if (cx_str_is(name, "role"))
        message->role = text_of(value);
    else if (cx_str_is(name, "content") ||
             (message->body == NULL && cx_str_is(name, "contents.0.message_content.text")))
        message->body = value;
    else if (cx_str_is(name, "tool_call_id"))
        message->call_id = text_of(value);
    else if (cx_str_is(name, "name"))
        message->name = text_of(value);
}

/* The attributes below `prefix`, as messages; NULL when there are none. */
static numbered_message **read_numbered(const cx_import_span *span, const char *prefix,
                                        uint32_t *out_count)
{
    numbered_message **messages = NULL;
    const cx_json *list = span->attributes;
    *out_count = 0;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        bool object = list->type == CX_JSON_OBJECT;
        cx_str name =
            object ? cx_json_text(&list->members[i].name) : CX_JSON_GET_STR(&list->items[i], "key");
        const cx_json *value =
            object ? &list->members[i].value : CX_JSON_GET(&list->items[i], "value");
        uint32_t number = 0;
        if (value == NULL || !cut_prefix(&name, prefix) ||
            !cut_number(&name, MESSAGES_MAX, &number))
            continue;
        if (messages == NULL) {
            messages = CX_ARENA_ARRAY(span->arena, numbered_message *, MESSAGES_MAX);
            if (messages == NULL)
                return NULL;
            memset(messages, 0, MESSAGES_MAX * sizeof *messages);
        }
        if (messages[number] == NULL) {
            messages[number] = CX_ARENA_NEW(span->arena, numbered_message);
            if (messages[number] == NULL)
                return NULL;
            memset(messages[number], 0, sizeof *messages[number]);
        }
        cx_json *inside = CX_ARENA_NEW(span->arena, cx_json);
        if (inside == NULL)
            return NULL;
        *inside = any_value(value, span->arena, 0);
        read_field(messages[number], name, inside);
        if (*out_count <= number)
            *out_count = number + 1;
    }
    return messages;
}

static void say_numbered_answer(cx_import_content *content, numbered_message *const *messages,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const numbered_message *message = messages[i];
        if (message == NULL)
            continue;
        cx_import_say_role(content, message->role);
        cx_import_say_blocks(content, message->body);
        for (uint32_t k = 0; k < message->call_count; k++)
            cx_import_say_call(content, message->calls[k].id, message->calls[k].name,
                               message->calls[k].arguments);
    }
}

static void say_numbered_request(cx_import_content *content, numbered_message *const *messages,
                                 uint32_t count)
{
    uint32_t first = 0;
    for (uint32_t i = count; i-- > 0 && first == 0;) {
        if (messages[i] != NULL && cx_str_is(messages[i]->role, "assistant"))
            first = i + 1;
    }
    for (uint32_t i = first; i < count; i++) {
        if (messages[i] != NULL)
            cx_import_say_input(content, messages[i]->role,
                                cx_import_plain_text(content, messages[i]->body));
    }
}

/* --- events of a span ------------------------------------------------------------------------- */

static void say_exception(cx_import_content *content, const cx_import_span *event)
{
    cx_str type = cx_import_attribute_str(event, CX_STR("exception.type"));
    cx_str text = cx_import_attribute_str(event, CX_STR("exception.message"));
    if (type.size != 0 && text.size != 0)
        text = cx_arena_printf(content->arena, "%.*s: %.*s", (int)type.size, type.data,
                               (int)text.size, text.data);
    else if (text.size == 0)
        text = type;
    content->failed = content->failed || (text.data == NULL && type.size != 0);
    cx_import_say_error(content, text);
}

static void say_event(cx_import_content *content, const cx_import_span *event, cx_str name,
                      const cx_json *body)
{
    static const char *const given[] = {"gen_ai.input.messages", "gen_ai.prompt", NULL};
    static const char *const said[] = {"gen_ai.output.messages", "gen_ai.completion", "message",
                                       NULL};
    static const char *const texts[] = {"content", NULL};
    static const struct {
        const char *name, *role;
    } inputs[] = {{"gen_ai.user.message", "user"},
                  {"gen_ai.system.message", "system"},
                  {"gen_ai.tool.message", "tool"}};
    for (size_t i = 0; i < CX_COUNT_OF(inputs); i++) {
        if (!cx_str_is(name, inputs[i].name))
            continue;
        const cx_json *text = body != NULL ? CX_JSON_GET(body, "content") : NULL;
        if (text == NULL)
            text = first_value(event, texts);
        cx_import_say_input(content, cx_str_z(inputs[i].role), cx_import_plain_text(content, text));
        return;
    }
    if (cx_str_is(name, "exception")) {
        say_exception(content, event);
    } else if (cx_str_starts(name, CX_STR("gen_ai."))) {
        cx_import_say_request(content, first_value(event, given));
        cx_import_say_response(content, first_value(event, said));
        if (body != NULL && body->type == CX_JSON_OBJECT) {
            const cx_json *message = CX_JSON_GET(body, "message");
            cx_import_say_message(content, message != NULL ? message : body);
        }
    }
}

static void say_events(cx_import_content *content, const cx_json *events)
{
    for (uint32_t i = 0; events != NULL && events->type == CX_JSON_ARRAY && i < events->count;
         i++) {
        const cx_json *event = &events->items[i];
        const cx_import_span view = {.attributes = CX_JSON_GET(event, "attributes"),
                                     .arena = content->arena};
        say_event(content, &view, CX_JSON_GET_STR(event, "name"), NULL);
    }
}

/* --- a span ----------------------------------------------------------------------------------- */

static void say_tool(cx_import_content *content, const cx_import_span *span)
{
    static const char *const arguments[] = {
        "gen_ai.tool.call.arguments", "gen_ai.tool.args", "ai.toolCall.args",
        "traceloop.entity.input",     "input.value",      NULL};
    static const char *const answers[] = {
        "gen_ai.tool.call.result", "gen_ai.output", "ai.toolCall.result",
        "traceloop.entity.output", "output.value",  NULL};
    cx_str id = CX_JSON_GET_STR(content->derived, "call_id");
    cx_str tool = CX_JSON_GET_STR(content->derived, "tool");
    const cx_json *answer = first_value(span, answers);
    bool failed = cx_str_is(CX_JSON_GET_STR(content->derived, "status"), "error");
    cx_import_say_call(content, id, tool, first_value(span, arguments));
    if (answer != NULL || failed)
        cx_import_say_result(content, id, tool, failed, answer);
}

static void say_request(cx_import_content *content, const cx_import_span *span)
{
    static const char *const rules[] = {"gen_ai.system_instructions", NULL};
    static const char *const given[] = {"gen_ai.input.messages",
                                        "gen_ai.prompt",
                                        "ai.prompt.messages",
                                        "ai.prompt",
                                        "input.value",
                                        "traceloop.entity.input",
                                        NULL};
    static const char *const prefixes[] = {"llm.input_messages.", "gen_ai.prompt."};
    const cx_json *rule = first_value(span, rules);
    cx_json decoded;
    if (rule != NULL && cx_import_decode_text(content, rule, &decoded))
        cx_import_say_input(content, CX_STR("system"), cx_import_plain_text(content, &decoded));
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++) {
        uint32_t count = 0;
        numbered_message **messages = read_numbered(span, prefixes[i], &count);
        if (messages == NULL)
            continue;
        say_numbered_request(content, messages, count);
        return;
    }
    cx_import_say_request(content, first_value(span, given));
}

static void say_answer(cx_import_content *content, const cx_import_span *span)
{
    static const char *const texts[] = {"ai.response.text", "ai.response.object", NULL};
    static const char *const calls[] = {"ai.response.toolCalls", NULL};
    static const char *const said[] = {"gen_ai.output.messages",  "gen_ai.output",
                                       "gen_ai.completion",       "output.value",
                                       "traceloop.entity.output", NULL};
    static const char *const prefixes[] = {"llm.output_messages.", "gen_ai.completion."};
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++) {
        uint32_t count = 0;
        numbered_message **messages = read_numbered(span, prefixes[i], &count);
        if (messages == NULL)
            continue;
        say_numbered_answer(content, messages, count);
        return;
    }
    const cx_json *called = first_value(span, calls);
    cx_json list;
    cx_import_say_text(content, first_text(span, texts));
    if (called != NULL && cx_import_decode_text(content, called, &list)) {
        for (uint32_t i = 0; list.type == CX_JSON_ARRAY && i < list.count; i++) {
            const cx_json *input = CX_JSON_GET(&list.items[i], "input");
            cx_import_say_call(content, CX_JSON_GET_STR(&list.items[i], "toolCallId"),
                               CX_JSON_GET_STR(&list.items[i], "toolName"),
                               input != NULL ? input : CX_JSON_GET(&list.items[i], "args"));
        }
    }
    if (content->texts.count == 0 && content->said == NULL)
        cx_import_say_response(content, first_value(span, said));
}

void cx_import_say_span(cx_import_content *content, const cx_json *attributes,
                        const cx_json *events, cx_str failure)
{
    static const char *const costs[] = {"gen_ai.usage.cost", "gen_ai.usage.total_cost",
                                        "llm.cost.total", "llm.usage.cost", NULL};
    const cx_import_span span = {.attributes = attributes, .arena = content->arena};
    cx_str kind = CX_JSON_GET_STR(content->derived, "kind");
    if (cx_str_is(kind, "act")) {
        say_tool(content, &span);
    } else if (!cx_str_is(kind, "message")) {
        say_request(content, &span);
        say_answer(content, &span);
        if (cx_str_is(kind, "reason"))
            cx_import_say_role(content, CX_STR("assistant"));
    }
    cx_import_say_graph_span(content, &span);
    say_events(content, events);
    if (cx_str_is(CX_JSON_GET_STR(content->derived, "status"), "error"))
        cx_import_say_error(content, failure);
    cx_import_say_cost(content, cx_import_first_attribute(&span, costs));
}

void cx_import_say_log(cx_import_content *content, const cx_json *attributes, const cx_json *body,
                       cx_str event_name)
{
    const cx_import_span view = {.attributes = attributes, .arena = content->arena};
    cx_json value = {.type = CX_JSON_NULL};
    if (body != NULL)
        value = any_value(body, content->arena, 0);
    if (cx_str_starts(event_name, CX_STR("gen_ai.")) || cx_str_is(event_name, "exception"))
        say_event(content, &view, event_name, &value);
    else if (value.type != CX_JSON_NULL)
        cx_import_say_text(content, cx_import_plain_text(content, &value));
}
