/*
 * messages.c - conversations in the forms that APIs of models have (§2.11), from whatever program:
 * a list of messages, a message a line, a conversation a line, a request with its answer a line.
 *
 * It is also the reading of what no other format claims: objects that have a speaker and a text.
 */
#include "import/turns.h"

typedef struct messages_state {
    cx_import_turns turns;
} messages_state;

static const char *const lists[] = {"messages",     "conversations", "conversation", "contents",
                                    "chat_history", "history",       "items",        NULL};
static const char *const bodies[] = {"content", "parts",     "value", "text",
                                     "message", "utterance", NULL};
/* Who speaks, where there is no role. */
static const char *const speakers[] = {"role",   "from",  "sender", "speaker", "author",
                                       "source", "agent", "name",   NULL};
/* A name or a source alone says nothing of a conversation. */
static const char *const sure_speakers[] = {"role",   "from",  "sender", "speaker",
                                            "author", "agent", NULL};
static const char *const call_types[] = {"function_call", "custom_tool_call", "tool_call", NULL};
static const char *const answer_types[] = {"function_call_output", "custom_tool_call_output", NULL};

/* An item of the Responses API that is no message. */
static bool is_item(const cx_json *value)
{
    cx_str type = CX_JSON_GET_STR(value, "type");
    if (cx_str_is(type, "reasoning"))
        return cx_import_array_at(value, "summary") != NULL;
    return cx_import_has_str(value, "call_id") &&
           (cx_import_is_one_of(type, call_types) || cx_import_is_one_of(type, answer_types));
}

static cx_str role_of(const cx_json *message)
{
    cx_str type = CX_JSON_GET_STR(message, "type");
    if (is_item(message))
        return cx_import_is_one_of(type, answer_types) ? CX_STR("tool") : CX_STR("assistant");
    cx_str role = cx_import_first_str(message, speakers);
    return cx_str_is(role, "function_call") ? CX_STR("assistant") : role;
}

static bool is_known_role(cx_str role)
{
    return cx_import_is_model_role(role) || cx_import_is_tool_role(role) ||
           cx_import_is_user_role(role) || cx_import_is_system_role(role);
}

static bool is_text_or_list(const cx_json *value)
{
    return value != NULL && (value->type == CX_JSON_STRING || value->type == CX_JSON_ARRAY ||
                             value->type == CX_JSON_OBJECT);
}

static bool is_message(const cx_json *value)
{
    if (value->type != CX_JSON_OBJECT)
        return false;
    if (is_item(value))
        return true;
    bool calls =
        cx_import_array_at(value, "tool_calls") != NULL || cx_import_has(value, "function_call");
    return role_of(value).size != 0 &&
           (calls || is_text_or_list(cx_import_first_of(value, bodies)));
}

static const cx_json *list_of(const cx_json *value)
{
    for (size_t i = 0; lists[i] != NULL; i++) {
        const cx_json *list = cx_import_array_at(value, lists[i]);
        const cx_json *first = cx_import_first_object(list);
        if (list != NULL && (list->count == 0 || (first != NULL && is_message(first))))
            return list;
    }
    const cx_json *input = cx_import_array_at(value, "input");
    const cx_json *first = cx_import_first_object(input);
    return first != NULL && is_message(first) ? input : NULL;
}

/* --- a request and its answer ---------------------------------------------------------------- */

static const cx_json *inside(const cx_json *value, const char *name)
{
    const cx_json *found = value == NULL ? NULL : cx_json_get(value, cx_str_z(name));
    return found != NULL && found->type == CX_JSON_OBJECT ? found : value;
}

static const cx_json *answer_of(const cx_json *value)
{
    static const char *const names[] = {"response", "completion", NULL};
    const cx_json *found = cx_import_first_of(value, names);
    if (found == NULL) {
        bool bare = cx_import_array_at(value, "choices") != NULL ||
                    cx_import_array_at(value, "candidates") != NULL ||
                    cx_str_is(CX_JSON_GET_STR(value, "object"), "response");
        return bare ? value : NULL;
    }
    return inside(found, "body");
}

static const cx_json *request_of(const cx_json *value)
{
    static const char *const names[] = {"request", "body", "params", NULL};
    static const char *const given[] = {"messages", "contents", "input", "prompt", NULL};
    const cx_json *found = cx_import_first_of(value, names);
    if (found != NULL && found->type == CX_JSON_OBJECT)
        return inside(found, "body");
    return cx_import_first_of(value, given) != NULL ? value : NULL;
}

static bool is_exchange(const cx_json *value)
{
    if (value->type != CX_JSON_OBJECT || cx_import_has_str(value, "role"))
        return false;
    const cx_json *answer = answer_of(value), *request = request_of(value);
    if (answer == value)
        return true;
    bool asks =
        request != NULL && (list_of(request) != NULL || cx_import_has_str(request, "prompt") ||
                            cx_import_has_str(request, "input"));
    return answer != NULL ? asks : asks && request != value;
}

static void say_exchange(cx_import_content *content, const cx_json *value)
{
    static const char *const given[] = {"messages", "contents", "input", "prompt", NULL};
    const cx_json *request = request_of(value), *answer = answer_of(value);
    cx_import_say_role(content, CX_STR("assistant"));
    if (request != NULL)
        cx_import_say_request(content, cx_import_first_of(request, given));
    if (answer != NULL)
        cx_import_say_response(content, answer);
    const cx_json *error = cx_import_not_null(CX_JSON_GET(value, "error"));
    if (answer != NULL && error == NULL && answer->type == CX_JSON_OBJECT)
        error = cx_import_not_null(CX_JSON_GET(answer, "error"));
    if (error != NULL)
        cx_import_say_error(content, cx_import_has_str(error, "message")
                                         ? CX_JSON_GET_STR(error, "message")
                                         : cx_import_plain_text(content, error));
}

/* --- what a record says ---------------------------------------------------------------------- */

static void say_item(cx_import_content *content, const cx_json *item)
{
    const cx_json *summary = cx_import_array_at(item, "summary");
    if (summary == NULL) {
        cx_import_say_blocks(content, item);
        return;
    }
    for (uint32_t i = 0; i < summary->count; i++)
        cx_import_say_thought(content, CX_JSON_GET_STR(&summary->items[i], "text"));
}

static void messages_content(cx_import_content *content, const cx_json *raw)
{
    if (raw->type != CX_JSON_OBJECT || (list_of(raw) != NULL && !is_exchange(raw)))
        return; /* a conversation without its messages */
    if (is_exchange(raw)) {
        say_exchange(content, raw);
        return;
    }
    if (is_known_role(role_of(raw)) || cx_import_has_str(raw, "role"))
        cx_import_say_role(content, role_of(raw));
    if (is_item(raw)) {
        say_item(content, raw);
        return;
    }
    const cx_json *call = cx_json_get_typed(raw, CX_STR("function_call"), CX_JSON_OBJECT);
    if (call != NULL)
        cx_import_say_call(content, (cx_str){NULL, 0}, CX_JSON_GET_STR(call, "name"),
                           CX_JSON_GET(call, "arguments"));
    const cx_json *body = cx_import_first_of(raw, bodies);
    bool usual = CX_JSON_GET(raw, "content") != NULL || CX_JSON_GET(raw, "parts") != NULL ||
                 CX_JSON_GET(raw, "tool_calls") != NULL;
    if (usual || body == NULL)
        cx_import_say_message(content, raw);
    else if (body->type == CX_JSON_OBJECT && CX_JSON_GET(body, "content") != NULL)
        cx_import_say_message(content, body);
    else
        cx_import_say_blocks(content, body);
}

/* --- records --------------------------------------------------------------------------------- */

static void read_about(cx_import_record *r, const cx_json *value)
{
    static const char *const times[] = {"timestamp", "created_at", "create_time", "createdAt",
                                        "created",   "ts",         "time",        NULL};
    static const char *const ids[] = {"id", "uuid", "message_id", "messageId", NULL};
    const cx_json *answer = is_exchange(value) ? answer_of(value) : NULL;
    const cx_json *request = is_exchange(value) ? request_of(value) : NULL;
    const cx_json *about = answer != NULL && answer->type == CX_JSON_OBJECT ? answer : value;
    cx_import_set_any_time(r, cx_import_first_of(value, times));
    if (!r->has_time && about != value)
        cx_import_set_any_time(r, cx_import_first_of(about, times));
    r->src_id = cx_import_first_str(value, ids);
    r->model = CX_JSON_GET_STR(about, "model");
    if (r->model.size == 0 && request != NULL)
        r->model = CX_JSON_GET_STR(request, "model");
    r->usage = cx_json_get_typed(about, CX_STR("usage"), CX_JSON_OBJECT);
    if (r->usage == NULL)
        r->usage = cx_json_get_typed(about, CX_STR("usageMetadata"), CX_JSON_OBJECT);
}

static cx_status import_turn(cx_import_sink *sink, const cx_json *value, const cx_json *raw,
                             uint32_t part, cx_err *err)
{
    messages_state *state = sink->state;
    cx_str name = CX_STR("assistant");
    bool exchange = is_exchange(value);
    if (!exchange && !is_message(value))
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    r->part = part;
    read_about(r, value);
    cx_import_turn_follow(r, &state->turns);
    cx_str role = exchange ? CX_STR("assistant") : role_of(value);
    if (!exchange && CX_JSON_GET_STR(value, "name").size != 0)
        name = CX_JSON_GET_STR(value, "name");
    if (!exchange)
        r->content = cx_import_first_of(value, bodies);
    if (!exchange && !is_known_role(role) && !cx_import_has_str(value, "role")) {
        r->agent = role; /* a name */
        r->kind = CX_KIND_MESSAGE;
        r->fork = CX_IMPORT_FORK_NATURAL;
    }
    return cx_import_turn_end(sink, &state->turns, messages_content, value, role, name, err);
}

/* What a conversation has next to its messages. */
static bool has_more(const cx_json *value)
{
    return value->count > 1;
}

static cx_status import_conversation(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    messages_state *state = sink->state;
    const cx_json *list = list_of(value);
    CX_TRY(cx_import_turns_open(sink, &state->turns, err));
    if (has_more(value)) {
        cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
        r->agent = CX_STR("conversation");
        r->kind = CX_KIND_RUN;
        CX_TRY(cx_import_turn_end(sink, &state->turns, messages_content, value, CX_STR(""),
                                  CX_STR(""), err));
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].type == CX_JSON_OBJECT && is_message(&list->items[i]))
            CX_TRY(import_turn(sink, &list->items[i], &list->items[i], i, err));
    }
    return CX_SUCCESS;
}

static const cx_json *messages_part(const cx_json *line, uint32_t part)
{
    return &list_of(line)->items[part];
}

static cx_status messages_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    const cx_json *list = value->type == CX_JSON_OBJECT ? list_of(value) : NULL;
    if (list != NULL && list->count != 0 && !is_exchange(value))
        return import_conversation(sink, value, err);
    return import_turn(sink, value, NULL, UINT32_MAX, err);
}

static cx_status messages_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    const cx_json *list = document->type == CX_JSON_ARRAY ? document : NULL;
    cx_json top;
    if (document->type == CX_JSON_OBJECT && is_exchange(document))
        return import_turn(sink, document, document, UINT32_MAX, err);
    if (document->type == CX_JSON_OBJECT) {
        list = list_of(document);
        if (list == NULL && is_message(document))
            return import_turn(sink, document, document, UINT32_MAX, err);
        if (list != NULL) {
            CX_TRY(cx_import_without(document, lists, sink->arena, &top, err));
            CX_TRY(cx_import_top(sink, &top, err));
        }
    }
    if (list == NULL)
        return cx_import_shape(err, "a list of messages, or an object with an array messages");
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(import_turn(sink, &list->items[i], &list->items[i], UINT32_MAX, err));
    return CX_SUCCESS;
}

static void messages_done(cx_import_sink *sink)
{
    messages_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

/* --- detection ------------------------------------------------------------------------------- */

/* Logs of programs and of versions have authors and messages too. */
static bool is_log_entry(const cx_json *value)
{
    static const char *const names[] = {"level", "severity", "logger", "commit",
                                        "sha",   "tree",     "hash",   NULL};
    return cx_import_first_of(value, names) != NULL;
}

/* How sure it is that an object is a message: 0 when nothing says so. */
static int message_confidence(const cx_json *value)
{
    cx_str role = role_of(value);
    bool known = is_known_role(role);
    if (!is_message(value))
        return 0;
    if (known && (cx_import_has_str(value, "role") || is_item(value)))
        return 40;
    if (known && cx_import_has_str(value, "from"))
        return 38;
    const cx_json *body = cx_import_first_of(value, bodies);
    bool text = body != NULL && (body->type == CX_JSON_STRING || body->type == CX_JSON_ARRAY);
    return text && value->count <= 12 && !is_log_entry(value) &&
                   cx_import_first_str(value, sure_speakers).size != 0
               ? 12
               : 0;
}

static int messages_detect(cx_bytes head, const cx_json *record)
{
    static const char role[] = "\"role\"", list[] = "\"messages\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, role, sizeof role - 1) != NULL &&
                       memmem(head.data, head.size, list, sizeof list - 1) != NULL
                   ? 20
                   : 0;
    if (record->type == CX_JSON_ARRAY) {
        const cx_json *first = cx_import_first_object(record);
        return first == NULL ? 0 : message_confidence(first);
    }
    if (record->type != CX_JSON_OBJECT)
        return 0;
    if (is_exchange(record))
        return 42;
    const cx_json *messages = list_of(record);
    if (messages != NULL && messages->count != 0) {
        int says = message_confidence(&messages->items[0]);
        return says >= 38 ? 45 : says;
    }
    return message_confidence(record);
}

const cx_import_format cx_import_messages = {
    .info = {"messages", "messages of any chat API",
             "{\"messages\":[...]}, or JSON lines of messages, conversations or calls", true},
    .state_size = sizeof(messages_state),
    .document = messages_document,
    .line = messages_line,
    .content = messages_content,
    .part = messages_part,
    .done = messages_done,
    .detect = messages_detect,
};
