/*
 * content.c - what a record says (content.h), as members of its event and keys of the state.
 */
#include "import/content.h"

#include <stdio.h>
#include <string.h>

#include "crypto/api.h"
#include "import/files.h"

#define DECODE_DEPTH_MAX 900
/* A state is read by people and carried by every proof of it: long values are in the event. */
#define STATE_TEXT_MAX 4096

static const cx_json no_value = {.type = CX_JSON_NULL};

void cx_import_content_begin(cx_import_content *content, cx_arena *arena, const cx_alloc *alloc,
                             const cx_json *derived)
{
    *content = (cx_import_content){.arena = arena,
                                   .alloc = alloc,
                                   .derived = derived,
                                   .texts = cx_json_list_begin(arena),
                                   .thoughts = cx_json_list_begin(arena),
                                   .inputs = cx_json_list_begin(arena),
                                   .duration_ns = -1};
    content->said_end = &content->said;
}

static cx_str joined(cx_import_content *content, const cx_json_list *list);

/* --- saying -------------------------------------------------------------------------------- */

void cx_import_say_role(cx_import_content *content, cx_str role)
{
    if (content->role.size == 0)
        content->role = role;
}

void cx_import_say_text(cx_import_content *content, cx_str text)
{
    if (text.size != 0)
        cx_json_list_add(&content->texts, cx_json_make_str(text));
}

void cx_import_say_thought(cx_import_content *content, cx_str text)
{
    if (text.size != 0)
        cx_json_list_add(&content->thoughts, cx_json_make_str(text));
}

void cx_import_say_input(cx_import_content *content, cx_str role, cx_str text)
{
    cx_json_list item = cx_json_list_begin(content->arena);
    if (text.size == 0)
        return;
    cx_json_put_str(&item, "role", role);
    cx_json_put_str(&item, "text", text);
    cx_json_add_object(&content->inputs, &item);
}

void cx_import_say_error(cx_import_content *content, cx_str text)
{
    if (content->error.size == 0)
        content->error = text;
}

void cx_import_say_duration(cx_import_content *content, int64_t start_ns, int64_t end_ns)
{
    int64_t size;
    if (!__builtin_sub_overflow(end_ns, start_ns, &size) && size >= 0)
        content->duration_ns = size;
}

/* Digits with at most one point and an exponent, which is what the number's parser takes. */
static bool is_decimal(cx_str text)
{
    size_t digits = 0, points = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool exponent = (c == 'e' || c == 'E') && digits != 0;
        if (exponent) {
            i += i + 1 < text.size && (text.data[i + 1] == '-' || text.data[i + 1] == '+');
            if (++i >= text.size)
                return false;
            for (; i < text.size; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                    return false;
            }
            return true;
        }
        points += c == '.';
        digits += c >= '0' && c <= '9';
        if ((c != '.' && (c < '0' || c > '9')) || points > 1)
            return false;
    }
    return digits != 0;
}

void cx_import_say_cost(cx_import_content *content, const cx_json *usd)
{
    double value = 0;
    bool found = usd != NULL && cx_json_is_number(usd) && cx_json_double(usd, &value);
    if (usd != NULL && usd->type == CX_JSON_STRING)
        found = is_decimal(cx_json_text(usd)) && cx_number_parse(cx_json_text(usd), &value);
    if (!found || !(value >= 0) || content->has_cost)
        return;
    content->has_cost = true;
    content->cost_usd = value;
}

bool cx_import_decode_text(cx_import_content *content, const cx_json *value, cx_json *out)
{
    const cx_json_limits limits = {DECODE_DEPTH_MAX, 4300, 0, false};
    cx_json_parser parser;
    cx_json decoded;
    *out = *value;
    if (value->type != CX_JSON_STRING || value->count == 0 ||
        (value->text[0] != '{' && value->text[0] != '['))
        return true;
    cx_json_parser_init(&parser, content->alloc, &limits);
    cx_status status = cx_json_parse(&parser, cx_json_text(value), content->arena, &decoded, NULL);
    cx_json_parser_done(&parser);
    if (status.code == CX_E_NOMEM)
        content->failed = true;
    else if (!cx_failed(status) && cx_json_has_canonical(&decoded))
        *out = decoded;
    return !content->failed;
}

static cx_import_said *add_said(cx_import_content *content, cx_str call_id, cx_str tool)
{
    cx_import_said *made = CX_ARENA_NEW(content->arena, cx_import_said);
    if (made == NULL) {
        content->failed = true;
        return NULL;
    }
    *made = (cx_import_said){.call_id = call_id, .tool = tool};
    *content->said_end = made;
    content->said_end = &made->next;
    return made;
}

static bool is_absent(const cx_json *value)
{
    return value == NULL || value->type == CX_JSON_NULL || !cx_json_has_canonical(value);
}

void cx_import_say_call(cx_import_content *content, cx_str call_id, cx_str tool,
                        const cx_json *arguments)
{
    cx_import_said *made = add_said(content, call_id, tool);
    if (made == NULL)
        return;
    made->has_arguments = true;
    made->arguments = no_value;
    if (!is_absent(arguments))
        cx_import_decode_text(content, arguments, &made->arguments);
}

void cx_import_say_result(cx_import_content *content, cx_str call_id, cx_str tool, bool failed,
                          const cx_json *result)
{
    cx_import_said *made = NULL;
    for (cx_import_said *at = content->said; at != NULL && made == NULL; at = at->next) {
        if (!at->has_result && cx_str_eq(at->call_id, call_id))
            made = at; /* call and answer in one */
    }
    if (made == NULL)
        made = add_said(content, call_id, tool);
    if (made == NULL)
        return;
    made->has_result = true;
    made->failed = failed;
    made->result = is_absent(result) ? no_value : *result;
}

/* --- messages and their blocks ------------------------------------------------------------- */

static bool is_one_of(cx_str name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (cx_str_is(name, *names))
            return true;
    }
    return false;
}

static const cx_json *first_of(const cx_json *object, const char *const *names)
{
    for (; *names != NULL; names++) {
        const cx_json *value = cx_json_get(object, cx_str_z(*names));
        if (!is_absent(value))
            return value;
    }
    return NULL;
}

static cx_str first_str(const cx_json *object, const char *const *names)
{
    for (; *names != NULL; names++) {
        cx_str text = cx_json_get_str(object, cx_str_z(*names));
        if (text.size != 0)
            return text;
    }
    return (cx_str){NULL, 0};
}

static const char *const call_ids[] = {"id",         "call_id", "tool_use_id", "tool_call_id",
                                       "toolCallId", "callID",  NULL};
static const char *const result_ids[] = {"tool_use_id", "tool_call_id", "toolCallId",
                                         "call_id",     "id",           NULL};
static const char *const tool_names[] = {"name", "tool_name", "toolName", "tool", NULL};
static const char *const call_args[] = {"input", "arguments", "args", "tool_input", NULL};
static const char *const results[] = {"content", "result", "response", "output", NULL};

static void say_call_block(cx_import_content *content, const cx_json *block)
{
    cx_import_say_call(content, first_str(block, call_ids), first_str(block, tool_names),
                       first_of(block, call_args));
}

static void say_result_block(cx_import_content *content, const cx_json *block)
{
    static const char *const flags[] = {"is_error", "isError", NULL};
    const cx_json *failed = first_of(block, flags);
    cx_import_say_result(content, first_str(block, result_ids), first_str(block, tool_names),
                         failed != NULL && failed->type == CX_JSON_TRUE, first_of(block, results));
}

/* Gemini has no types: a part is what its one member says. */
static void say_part(cx_import_content *content, const cx_json *part)
{
    static const char *const calls[] = {"functionCall", "function_call", NULL};
    static const char *const answers[] = {"functionResponse", "function_response", NULL};
    static const char *const data[] = {"inlineData", "inline_data", "fileData", "image_url", NULL};
    const cx_json *call = first_of(part, calls), *answer = first_of(part, answers);
    const cx_json *thought = CX_JSON_GET(part, "thought");
    static const char *const text_names[] = {"text", "content", NULL};
    cx_str text = first_str(part, text_names);
    if (call != NULL)
        say_call_block(content, call);
    if (CX_JSON_GET_STR(part, "tool.name").size != 0) /* any_agent */
        cx_import_say_call(content, (cx_str){NULL, 0}, CX_JSON_GET_STR(part, "tool.name"),
                           CX_JSON_GET(part, "tool.args"));
    if (answer != NULL)
        say_result_block(content, answer);
    if (first_of(part, data) != NULL)
        content->images++;
    if (thought != NULL && thought->type == CX_JSON_TRUE)
        cx_import_say_thought(content, text);
    else
        cx_import_say_text(content, text);
}

static void say_block(cx_import_content *content, const cx_json *block)
{
    static const char *const thinks[] = {"thinking", "reasoning", "thought", "reasoning_text",
                                         NULL};
    static const char *const thought_texts[] = {"thinking", "text", "reasoning", "content", NULL};
    static const char *const calls[] = {
        "tool_use",     "tool_call",     "tool-call", "server_tool_use",
        "mcp_tool_use", "function_call", NULL};
    static const char *const answers[] = {
        "tool_result",     "tool_call_response",     "tool-result", "function_call_output",
        "mcp_tool_result", "web_search_tool_result", NULL};
    static const char *const images[] = {"image", "image_url", "input_image",
                                         "file",  "document",  NULL};
    cx_str type = CX_JSON_GET_STR(block, "type");
    if (block->type == CX_JSON_STRING)
        cx_import_say_text(content, cx_json_text(block));
    else if (is_one_of(type, thinks))
        cx_import_say_thought(content, first_str(block, thought_texts));
    else if (is_one_of(type, calls))
        say_call_block(content, block);
    else if (is_one_of(type, answers))
        say_result_block(content, block);
    else if (is_one_of(type, images))
        content->images++;
    else
        say_part(content, block);
}

void cx_import_say_blocks(cx_import_content *content, const cx_json *blocks)
{
    if (blocks == NULL)
        return;
    if (blocks->type == CX_JSON_STRING || blocks->type == CX_JSON_OBJECT)
        say_block(content, blocks);
    for (uint32_t i = 0; blocks->type == CX_JSON_ARRAY && i < blocks->count; i++)
        say_block(content, &blocks->items[i]);
}

static void say_chat_calls(cx_import_content *content, const cx_json *message)
{
    const cx_json *calls = cx_json_get_typed(message, CX_STR("tool_calls"), CX_JSON_ARRAY);
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++) {
        const cx_json *function = CX_JSON_GET(&calls->items[i], "function");
        const cx_json *call = function == NULL ? &calls->items[i] : function;
        cx_import_say_call(content, first_str(&calls->items[i], call_ids),
                           first_str(call, tool_names), first_of(call, call_args));
    }
}

void cx_import_say_message(cx_import_content *content, const cx_json *message)
{
    static const char *const bodies[] = {"content", "parts", "text", NULL};
    static const char *const thoughts[] = {"reasoning_content", "reasoning", "thought", "thinking",
                                           NULL};
    if (message == NULL)
        return;
    if (message->type != CX_JSON_OBJECT) {
        cx_import_say_blocks(content, message);
        return;
    }
    cx_str role = CX_JSON_GET_STR(message, "role");
    const cx_json *body = first_of(message, bodies);
    cx_import_say_role(content, role);
    cx_import_say_thought(content, first_str(message, thoughts));
    if (cx_str_is(role, "tool") || cx_str_is(role, "function")) {
        bool blocks = body != NULL && body->type == CX_JSON_ARRAY && body->count != 0 &&
                      is_one_of(CX_JSON_GET_STR(&body->items[0], "type"),
                                (const char *const[]){"tool-result", "tool_result",
                                                      "tool_call_response", NULL});
        if (blocks)
            cx_import_say_blocks(content, body);
        else
            cx_import_say_result(content, first_str(message, result_ids),
                                 first_str(message, tool_names), false, body);
        return;
    }
    cx_import_say_blocks(content, body);
    say_chat_calls(content, message);
}

/* --- calls of models ----------------------------------------------------------------------- */

static bool is_message(const cx_json *value)
{
    return CX_JSON_GET_STR(value, "role").size != 0;
}

static bool is_assistant(const cx_json *message)
{
    cx_str role = CX_JSON_GET_STR(message, "role");
    return cx_str_is(role, "assistant") || cx_str_is(role, "model") || cx_str_is(role, "ai");
}

/* Some exports list the tools that a model has among its messages. */
static bool is_definition(const cx_json *message)
{
    const cx_json *body = cx_json_get_typed(message, CX_STR("content"), CX_JSON_OBJECT);
    return body != NULL && CX_JSON_GET(body, "function") != NULL &&
           cx_str_is(CX_JSON_GET_STR(body, "type"), "function");
}

/* The messages of a request: all that came after the model's own last one are new to it. */
static void say_request(cx_import_content *content, const cx_json *messages)
{
    uint32_t first = 0;
    for (uint32_t i = messages->count; i-- > 0 && first == 0;) {
        if (is_assistant(&messages->items[i]))
            first = i + 1;
    }
    for (uint32_t i = first; i < messages->count; i++) {
        cx_import_content inner;
        if (is_definition(&messages->items[i]))
            continue;
        cx_import_content_begin(&inner, content->arena, content->alloc, content->derived);
        cx_import_say_message(&inner, &messages->items[i]);
        cx_str role = inner.role, text = joined(&inner, &inner.texts);
        for (const cx_import_said *at = inner.said; at != NULL && text.size == 0; at = at->next)
            text = at->has_result ? cx_import_plain_text(&inner, &at->result) : text;
        cx_import_say_input(content, role.size != 0 ? role : CX_STR("user"), text);
        content->images += inner.images;
        content->failed = content->failed || inner.failed;
    }
}

void cx_import_say_request(cx_import_content *content, const cx_json *input)
{
    static const char *const lists[] = {"messages", "contents", "input", NULL};
    cx_json value;
    if (is_absent(input) || !cx_import_decode_text(content, input, &value))
        return;
    const cx_json *inside = value.type == CX_JSON_OBJECT ? first_of(&value, lists) : &value;
    if (inside == NULL || inside->type == CX_JSON_OBJECT)
        inside = &value;
    /* LangChain puts a list of messages in a list. */
    if (inside->type == CX_JSON_ARRAY && inside->count == 1 &&
        inside->items[0].type == CX_JSON_ARRAY)
        inside = &inside->items[0];
    if (inside->type == CX_JSON_ARRAY && inside->count != 0 && is_message(&inside->items[0]))
        say_request(content, inside);
    else
        cx_import_say_input(content, CX_STR("user"), cx_import_plain_text(content, inside));
}

void cx_import_say_response(cx_import_content *content, const cx_json *output)
{
    static const char *const lists[] = {"choices", "candidates", "output", "messages", NULL};
    static const char *const inner_names[] = {"message", "content", "delta", NULL};
    cx_json value;
    if (is_absent(output) || !cx_import_decode_text(content, output, &value))
        return;
    const cx_json *list = value.type == CX_JSON_OBJECT ? first_of(&value, lists) : &value;
    if (list == NULL || is_message(&value))
        list = &value;
    if (list->type != CX_JSON_ARRAY) {
        if (list->type == CX_JSON_STRING || is_message(list) ||
            CX_JSON_GET(list, "content") != NULL || CX_JSON_GET(list, "parts") != NULL)
            cx_import_say_message(content, list);
        else
            cx_import_say_text(content, cx_import_plain_text(content, list));
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *item = &list->items[i];
        const cx_json *inner = is_message(item) ? NULL : first_of(item, inner_names);
        bool wraps = inner != NULL && inner->type == CX_JSON_OBJECT;
        /* The Responses API lists calls next to messages. */
        if (!wraps && !is_message(item) && CX_JSON_GET_STR(item, "type").size != 0)
            say_block(content, item);
        else
            cx_import_say_message(content, wraps ? inner : item);
    }
}

/* --- as text ------------------------------------------------------------------------------- */

/* The strings of a list, a blank line between two. */
static cx_str joined(cx_import_content *content, const cx_json_list *list)
{
    size_t size = 0, at = 0;
    if (list->count == 1)
        return cx_json_text(&list->members[0].value);
    for (uint32_t i = 0; i < list->count; i++)
        size += list->members[i].value.count + 2;
    char *text = size == 0 ? NULL : cx_arena_push(content->arena, size, 1);
    if (text == NULL) {
        content->failed = content->failed || size != 0;
        return (cx_str){NULL, 0};
    }
    for (uint32_t i = 0; i < list->count; i++) {
        cx_str piece = cx_json_text(&list->members[i].value);
        if (i != 0) {
            memcpy(text + at, "\n\n", 2);
            at += 2;
        }
        memcpy(text + at, piece.data, piece.size);
        at += piece.size;
    }
    return cx_str_from(text, at);
}

static cx_str canonical_text(cx_import_content *content, const cx_json *value)
{
    cx_buf buf;
    cx_buf_init(&buf, content->alloc);
    cx_status status = cx_json_write(&buf, value, CX_JSON_PY_COMPACT, NULL);
    if (!cx_failed(status))
        status = cx_buf_check(&buf, NULL);
    cx_str text = {NULL, 0};
    if (!cx_failed(status))
        text = cx_arena_copy_str(content->arena, cx_buf_str(&buf));
    cx_buf_done(&buf);
    content->failed = content->failed || text.data == NULL;
    return text;
}

/* Items with more than a text, such as documents with their ids and scores: no blocks, no parts of
 * Gemini and no messages.  Their text alone would leave out the rest. */
static bool is_data(const cx_json *list)
{
    static const char *const known[] = {"type",
                                        "role",
                                        "thought",
                                        "functionCall",
                                        "function_call",
                                        "functionResponse",
                                        "inlineData",
                                        "function_response",
                                        "inline_data",
                                        "fileData",
                                        "image_url",
                                        "tool.name",
                                        NULL};
    for (uint32_t i = 0; list->type == CX_JSON_ARRAY && i < list->count; i++)
        if (list->items[i].type == CX_JSON_OBJECT && list->items[i].count > 1 &&
            first_of(&list->items[i], known) == NULL)
            return true;
    return false;
}

cx_str cx_import_plain_text(cx_import_content *content, const cx_json *value)
{
    cx_import_content inner;
    if (value == NULL || value->type == CX_JSON_NULL)
        return (cx_str){NULL, 0};
    if (value->type == CX_JSON_STRING)
        return cx_json_text(value);
    if (is_data(value))
        return canonical_text(content, value);
    cx_import_content_begin(&inner, content->arena, content->alloc, content->derived);
    if (value->type == CX_JSON_ARRAY || cx_json_get_str(value, CX_STR("type")).size != 0)
        cx_import_say_blocks(&inner, value);
    cx_str text = joined(&inner, &inner.texts);
    content->images += inner.images;
    content->failed = content->failed || inner.failed || inner.texts.failed;
    return text.size != 0 || inner.images != 0 ? text : canonical_text(content, value);
}

/* --- in the event -------------------------------------------------------------------------- */

static void put_absent(cx_json_list *list, const char *name, cx_json value, const cx_json *derived)
{
    if (cx_json_get(derived, cx_str_z(name)) == NULL)
        cx_json_put(list, name, value);
}

static void put_text(cx_import_content *content, cx_json_list *event, const char *name, cx_str text)
{
    if (text.size != 0)
        put_absent(event, name, cx_json_make_str(text), content->derived);
}

/* What the answer says: its text; JSON that is no text stays JSON. */
static cx_json result_value(cx_import_content *content, const cx_import_said *said)
{
    if (said->result.type != CX_JSON_ARRAY || is_data(&said->result))
        return said->result;
    return cx_json_make_str(cx_import_plain_text(content, &said->result));
}

static void put_said(cx_import_content *content, cx_json_list *list, const cx_import_said *said,
                     bool named)
{
    if (named) {
        cx_json_put_str(list, "call_id", said->call_id);
        cx_json_put_str(list, "tool", said->tool);
    }
    if (said->has_arguments && said->arguments.type != CX_JSON_NULL)
        cx_json_put(list, "arguments", said->arguments);
    if (said->has_result && said->result.type != CX_JSON_NULL)
        cx_json_put(list, "result", result_value(content, said));
    if (named && said->failed)
        cx_json_put_bool(list, "failed", true);
}

/* One call or answer is in the event itself, several are a list. */
static void put_all_said(cx_import_content *content, cx_json_list *event)
{
    if (content->said == NULL)
        return;
    if (content->said->next == NULL) {
        const cx_import_said *only = content->said;
        put_said(content, event, only, false);
        put_text(content, event, "tool", only->tool);
        put_text(content, event, "call_id", only->call_id);
        return;
    }
    cx_json_list list = cx_json_list_begin(content->arena);
    for (const cx_import_said *at = content->said; at != NULL; at = at->next) {
        cx_json_list item = cx_json_list_begin(content->arena);
        put_said(content, &item, at, true);
        cx_json_add_object(&list, &item);
    }
    cx_json_put_array(event, "tool_calls", &list);
}

static const char *const input_names[] = {"input_tokens",
                                          "prompt_tokens",
                                          "input",
                                          "prompt",
                                          "promptTokens",
                                          "inputTokens",
                                          "promptTokenCount",
                                          "input_token_count",
                                          "prompt_token_count",
                                          NULL};
static const char *const output_names[] = {"output_tokens",
                                           "completion_tokens",
                                           "output",
                                           "completion",
                                           "completionTokens",
                                           "outputTokens",
                                           "candidatesTokenCount",
                                           "output_token_count",
                                           "candidates_token_count",
                                           NULL};
static const char *const cached_names[] = {"cache_read_input_tokens",
                                           "cached_input_tokens",
                                           "cacheRead",
                                           "cachedContentTokenCount",
                                           "cached",
                                           "cached_tokens",
                                           "cache_read",
                                           NULL};

static void put_count(cx_import_content *content, cx_json_list *list, const char *name,
                      const cx_json *usage, const char *const *names)
{
    int64_t value;
    for (; *names != NULL; names++) {
        const cx_json *found = cx_json_get(usage, cx_str_z(*names));
        if (found == NULL || !cx_json_int64(found, &value) || value < 0)
            continue;
        cx_json_put(list, name, cx_json_make_int(content->arena, value));
        return;
    }
}

static const char *const detail_names[] = {"prompt_tokens_details", "input_tokens_details",
                                           "input_token_details"};

static bool has_cached(const cx_json_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (cx_str_is(cx_json_text(&list->members[i].name), "cached"))
            return true;
    return false;
}

/* Tokens under one spelling, next to the source's own `usage`. */
static void put_tokens(cx_import_content *content, cx_json_list *event)
{
    const cx_json *usage = CX_JSON_GET(content->derived, "usage");
    cx_json_list list = cx_json_list_begin(content->arena);
    if (usage == NULL)
        return;
    put_count(content, &list, "input", usage, input_names);
    put_count(content, &list, "output", usage, output_names);
    put_count(content, &list, "cached", usage, cached_names);
    for (size_t i = 0; i < CX_COUNT_OF(detail_names); i++) { /* what APIs say in an object of it */
        const cx_json *details = cx_json_get(usage, cx_str_z(detail_names[i]));
        if (details != NULL && details->type == CX_JSON_OBJECT && !has_cached(&list))
            put_count(content, &list, "cached", details, cached_names);
    }
    if (list.count != 0)
        cx_json_put_object(event, "tokens", &list);
    if (content->has_cost)
        return;
    const cx_json *in = CX_JSON_GET(usage, "input_cost"), *out = CX_JSON_GET(usage, "output_cost");
    double sum = 0, part;
    bool found = false;
    if (in != NULL && cx_json_double(in, &part)) {
        sum += part;
        found = true;
    }
    if (out != NULL && cx_json_double(out, &part)) {
        sum += part;
        found = true;
    }
    if (found && sum >= 0 && sum < 1e12) {
        content->has_cost = true;
        content->cost_usd = sum;
    }
}

cx_status cx_import_content_event(cx_import_content *content, cx_json_list *event, cx_err *err)
{
    cx_json value;
    /* An API of messages lets the user say what tools answered. */
    if (cx_str_is(CX_JSON_GET_STR(content->derived, "kind"), "tool_result"))
        content->role = CX_STR("tool");
    put_text(content, event, "role", content->role);
    cx_str text = joined(content, &content->texts), thought = joined(content, &content->thoughts);
    put_text(content, event, "text", text);
    if (!cx_str_eq(text, thought))
        put_text(content, event, "thinking", thought);
    put_text(content, event, "error", content->error);
    put_all_said(content, event);
    if (content->inputs.count != 0) {
        CX_TRY(cx_json_list_end_array(&content->inputs, &value, err));
        put_absent(event, "input", value, content->derived);
    }
    put_tokens(content, event);
    if (content->has_cost)
        put_absent(event, "cost_usd", cx_json_make_double(content->arena, content->cost_usd),
                   content->derived);
    if (content->duration_ns >= 0)
        put_absent(event, "duration_ns", cx_json_make_int(content->arena, content->duration_ns),
                   content->derived);
    if (content->images != 0)
        put_absent(event, "images", cx_json_make_uint(content->arena, content->images),
                   content->derived);
    return content->failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- in the state -------------------------------------------------------------------------- */

/* At most STATE_TEXT_MAX bytes, cut between characters; *out_whole_size is set when it was cut. */
static cx_str brief(cx_str text, size_t *out_whole_size)
{
    size_t size = STATE_TEXT_MAX;
    if (text.size <= STATE_TEXT_MAX)
        return text;
    while (size > 0 && ((unsigned char)text.data[size] & 0xC0) == 0x80)
        size--;
    *out_whole_size = text.size;
    return cx_str_from(text.data, size);
}

static void put_brief(cx_json_list *list, const char *name, cx_str text)
{
    size_t whole = 0;
    cx_json_put_str(list, name, brief(text, &whole));
    if (whole != 0)
        cx_json_put_uint(list, "bytes", whole);
}

/* The record's place in its source: LINE, LINE-INDEX, INDEX; FILE: before it from the second on. */
static cx_str place_name(const cx_import_content *content)
{
    const cx_json *at = CX_JSON_GET(content->derived, "at");
    uint64_t file = 0, line = 0, index = 0;
    char before[24] = "";
    if (at == NULL)
        return (cx_str){NULL, 0};
    const cx_json *in_line = CX_JSON_GET(at, "line"), *in_list = CX_JSON_GET(at, "index");
    if (cx_json_uint64(CX_JSON_GET(at, "file"), &file) && file != 0)
        (void)snprintf(before, sizeof before, "%llu:", (unsigned long long)file + 1);
    bool has_line = in_line != NULL && cx_json_uint64(in_line, &line);
    bool has_index = in_list != NULL && cx_json_uint64(in_list, &index);
    if (has_line && has_index)
        return cx_arena_printf(content->arena, "%s%llu-%llu", before, (unsigned long long)line,
                               (unsigned long long)index);
    return cx_arena_printf(content->arena, "%s%llu", before,
                           (unsigned long long)(has_line ? line : index));
}

static const char *default_role(cx_str kind)
{
    if (cx_str_is(kind, "reason") || cx_str_is(kind, "act"))
        return "assistant";
    return cx_str_is(kind, "tool_result") ? "tool" : "";
}

/* The text of a message, or of the answers that go into the context as one. */
static cx_str message_text(cx_import_content *content, bool *out_answers)
{
    cx_json_list texts = cx_json_list_begin(content->arena);
    cx_str text = joined(content, &content->texts);
    *out_answers = text.size == 0;
    if (text.size != 0)
        return text;
    for (const cx_import_said *at = content->said; at != NULL; at = at->next) {
        text = at->has_result ? cx_import_plain_text(content, &at->result) : (cx_str){NULL, 0};
        if (text.size != 0)
            cx_json_list_add(&texts, cx_json_make_str(text));
    }
    content->failed = content->failed || texts.failed;
    return joined(content, &texts);
}

static void put_messages(cx_import_content *content, cx_str agent, cx_json_list *memory)
{
    cx_json_list messages = cx_json_list_begin(content->arena);
    bool answers = false;
    cx_str place = place_name(content), text = message_text(content, &answers);
    cx_str role = answers ? CX_STR("tool") : content->role;
    cx_json inputs;
    /* A span around others repeats what they were given and answered. */
    if (place.data == NULL || cx_str_is(CX_JSON_GET_STR(content->derived, "kind"), "run"))
        return;
    if (content->inputs.count != 0 &&
        cx_failed(cx_json_list_end_array(&content->inputs, &inputs, NULL)))
        content->failed = true;
    for (uint32_t i = 0; !content->failed && i < content->inputs.count; i++) {
        cx_json_list item = cx_json_list_begin(content->arena), *into = &item;
        cx_str name = cx_arena_printf(content->arena, "%.*s-in%u", (int)place.size, place.data,
                                      (unsigned)i + 1);
        cx_json_put_str(into, "role", CX_JSON_GET_STR(&inputs.items[i], "role"));
        put_brief(into, "text", CX_JSON_GET_STR(&inputs.items[i], "text"));
        if (name.data != NULL)
            cx_json_put_object(&messages, name.data, into);
        content->failed = content->failed || name.data == NULL;
    }
    if (text.size != 0) {
        cx_json_list item = cx_json_list_begin(content->arena);
        if (role.size == 0)
            role = CX_JSON_GET_STR(content->derived, "role");
        if (role.size == 0)
            role = cx_str_z(default_role(CX_JSON_GET_STR(content->derived, "kind")));
        cx_json_put_str(&item, "agent", agent);
        if (role.size != 0)
            cx_json_put_str(&item, "role", role);
        put_brief(&item, "text", text);
        cx_json_put_object(&messages, place.data, &item);
    }
    if (messages.count != 0)
        cx_json_put_object(memory, "messages", &messages);
}

/*
 * tool.NAME.last: the newest call of the tool, and its answer.  Arguments are text: an object would
 * be merged with that of the call before (lattice.md §6).
 */
static cx_json tool_value(cx_import_content *content, const cx_import_said *said)
{
    cx_json_list last = cx_json_list_begin(content->arena), tool = last;
    cx_json value = no_value;
    cx_str call_id = said->call_id;
    if (call_id.size == 0)
        call_id = CX_JSON_GET_STR(content->derived, "call_id");
    if (said->has_arguments) {
        size_t whole = 0;
        cx_str text = cx_import_plain_text(content, &said->arguments);
        cx_json_put_str(&last, "arguments", brief(text, &whole));
        if (call_id.size != 0)
            cx_json_put_str(&last, "call", call_id);
        if (!said->has_result)
            cx_json_put_null(&last, "result");
    }
    if (said->has_result) {
        size_t whole = 0;
        cx_json_put_str(&last, "result",
                        brief(cx_import_plain_text(content, &said->result), &whole));
    }
    cx_json_put_z(&last, "status", !said->has_result ? "open" : said->failed ? "error" : "ok");
    cx_json_put_object(&tool, "last", &last);
    if (cx_failed(cx_json_list_end_object(&tool, &value, NULL)))
        content->failed = true;
    return value;
}

static cx_str tool_of(const cx_import_content *content, const cx_import_said *said)
{
    bool alone = content->said->next == NULL;
    return said->tool.size != 0 || !alone ? said->tool : CX_JSON_GET_STR(content->derived, "tool");
}

/* Of several calls of one tool in a record the last one counts. */
static void put_tools(cx_import_content *content, cx_json_list *memory)
{
    cx_json_list tools = cx_json_list_begin(content->arena);
    for (const cx_import_said *at = content->said; at != NULL; at = at->next) {
        cx_str name = tool_of(content, at);
        bool later = name.size == 0;
        for (const cx_import_said *next = at->next; next != NULL && !later; next = next->next)
            later = cx_str_eq(name, tool_of(content, next));
        if (!later)
            cx_json_list_put(&tools, name, tool_value(content, at));
    }
    if (tools.count != 0)
        cx_json_put_object(memory, "tool", &tools);
}

/* files.PATH.read or .written: who asked for it, by which call. */
static void put_file(cx_import_content *content, cx_json_list *files, cx_str agent,
                     const cx_import_said *said, const cx_import_file *file)
{
    cx_json_list item = cx_json_list_begin(content->arena), entry = item;
    for (uint32_t i = 0; i < files->count; i++) {
        if (cx_str_eq(cx_json_text(&files->members[i].name), file->path))
            return; /* one record, one entry a file */
    }
    cx_json_put_str(&item, "agent", agent);
    if (said->call_id.size != 0)
        cx_json_put_str(&item, "call", said->call_id);
    cx_json_put_str(&item, "tool", tool_of(content, said));
    if (file->what != CX_IMPORT_FILE_READ)
        cx_json_put_z(&item, "how", cx_import_file_verb(file->what));
    if (file->content != NULL) {
        cx_digest digest = cx_digest_of(cx_str_bytes(cx_json_text(file->content)));
        cx_json_put_uint(&item, "bytes", file->content->count);
        cx_json_put_digest(&item, "sha256", &digest);
    } else if (file->what != CX_IMPORT_FILE_READ) {
        cx_json_put_null(&item, "bytes"); /* of the writing before */
        cx_json_put_null(&item, "sha256");
    }
    cx_json_put_object(&entry, file->what == CX_IMPORT_FILE_READ ? "read" : "written", &item);
    cx_json value;
    if (cx_failed(cx_json_list_end_object(&entry, &value, NULL)))
        content->failed = true;
    else
        cx_json_list_put(files, file->path, value);
}

static void put_files(cx_import_content *content, cx_str agent, cx_json_list *memory)
{
    cx_json_list files = cx_json_list_begin(content->arena);
    for (const cx_import_said *at = content->said; at != NULL; at = at->next) {
        cx_import_file found[CX_IMPORT_FILES_MAX];
        if (!at->has_arguments)
            continue;
        size_t count = cx_import_files_of(tool_of(content, at), &at->arguments, found);
        for (size_t i = 0; i < count; i++)
            put_file(content, &files, agent, at, &found[i]);
    }
    if (files.count != 0)
        cx_json_put_object(memory, "files", &files);
}

/* graph.KEY: what the step wrote; a long value as text that is cut, with its whole size. */
static void put_graph(cx_import_content *content, cx_json_list *memory)
{
    cx_json_list keys = cx_json_list_begin(content->arena);
    for (uint32_t i = 0; content->has_graph && i < content->graph.count; i++) {
        const cx_json *value = &content->graph.members[i].value;
        size_t whole = 0;
        cx_str text = brief(cx_import_plain_text(content, value), &whole);
        cx_json_list cut = cx_json_list_begin(content->arena);
        if (whole == 0) {
            cx_json_list_put(&keys, cx_json_text(&content->graph.members[i].name), *value);
            continue;
        }
        cx_json long_value;
        cx_json_put_uint(&cut, "bytes", whole);
        cx_json_put_str(&cut, "text", text);
        if (cx_failed(cx_json_list_end_object(&cut, &long_value, NULL)))
            content->failed = true;
        else
            cx_json_list_put(&keys, cx_json_text(&content->graph.members[i].name), long_value);
    }
    if (keys.count != 0)
        cx_json_put_object(memory, "graph", &keys);
}

/* Lists of steps that agents keep by a tool of theirs. */
static void find_plan(cx_import_content *content)
{
    static const char *const tools[] = {"TodoWrite", "update_plan", "write_todos",
                                        "todowrite", "todo_write",  "manage_todo_list",
                                        NULL};
    static const char *const names[] = {"todos", "plan", "todoList", NULL};
    for (const cx_import_said *at = content->said; at != NULL; at = at->next) {
        const cx_json *plan = NULL;
        if (at->has_arguments && is_one_of(tool_of(content, at), tools))
            plan = first_of(&at->arguments, names);
        if (plan == NULL || plan->type != CX_JSON_ARRAY)
            continue;
        content->plan = *plan;
        content->has_plan = true;
    }
}

cx_status cx_import_content_memory(cx_import_content *content, cx_str agent, cx_json_list *memory,
                                   cx_err *err)
{
    put_messages(content, agent, memory);
    put_tools(content, memory);
    put_files(content, agent, memory);
    find_plan(content);
    if (content->has_plan)
        cx_json_put(memory, "plan", content->plan);
    put_graph(content, memory);
    return content->failed || memory->failed ? cx_fail_nomem(err) : CX_SUCCESS;
}
