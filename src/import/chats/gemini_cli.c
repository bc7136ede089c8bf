/*
 * gemini_cli.c - Gemini CLI sessions (§2.9): a document with all messages, or a log of them.
 *
 * The log says a message again, whole, when more is known of it: each version is a record, and the
 * calls in it are the same calls.  `$set` patches what is known of the session, and may carry
 * messages; those that the log has not had are records too.
 */
#include "import/turns.h"

#define MESSAGE_SPACE 'm'

typedef struct gemini_state {
    cx_import_turns turns;
    cx_import_index seen; /* ids of messages */
} gemini_state;

/* [{"functionResponse":{"response":{"output":TEXT}}}]: the text, else what is there. */
static const cx_json *result_of(const cx_json *result)
{
    const cx_json *part = cx_import_first_object(result);
    const cx_json *answer = part == NULL ? NULL : CX_JSON_GET(part, "functionResponse");
    const cx_json *response = answer == NULL ? NULL : CX_JSON_GET(answer, "response");
    if (response == NULL || result->count != 1)
        return result;
    static const char *const names[] = {"output", "error", NULL};
    const cx_json *text = cx_import_first_of(response, names);
    return text != NULL && response->count == 1 ? text : response;
}

static void say_tool(cx_import_content *content, const cx_json *call)
{
    cx_str id = CX_JSON_GET_STR(call, "id"), tool = CX_JSON_GET_STR(call, "name");
    cx_str status = CX_JSON_GET_STR(call, "status");
    const cx_json *result = cx_import_not_null(CX_JSON_GET(call, "result"));
    bool failed = cx_str_is(status, "error") || cx_str_is(status, "cancelled");
    cx_import_say_call(content, id, tool, CX_JSON_GET(call, "args"));
    if (result != NULL || failed)
        cx_import_say_result(content, id, tool, failed,
                             result == NULL ? CX_JSON_GET(call, "resultDisplay")
                                            : result_of(result));
}

static void gemini_content(cx_import_content *content, const cx_json *raw)
{
    cx_str type = CX_JSON_GET_STR(raw, "type");
    const cx_json *thoughts = cx_import_array_at(raw, "thoughts");
    const cx_json *calls = cx_import_array_at(raw, "toolCalls");
    const cx_json *body = cx_import_not_null(CX_JSON_GET(raw, "content"));
    if (type.size == 0)
        type = CX_JSON_GET_STR(raw, "role");
    bool gemini = cx_str_is(type, "gemini") || cx_str_is(type, "model");
    cx_import_say_role(content, gemini                    ? CX_STR("assistant")
                                : cx_str_is(type, "user") ? type
                                                          : CX_STR("system"));
    if (cx_str_is(type, "error"))
        cx_import_say_error(content, cx_import_plain_text(content, body));
    else
        cx_import_say_blocks(content, body != NULL ? body : CX_JSON_GET(raw, "message"));
    for (uint32_t i = 0; thoughts != NULL && i < thoughts->count; i++) {
        cx_import_say_thought(content, CX_JSON_GET_STR(&thoughts->items[i], "subject"));
        cx_import_say_thought(content, CX_JSON_GET_STR(&thoughts->items[i], "description"));
    }
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++) {
        if (calls->items[i].type == CX_JSON_OBJECT)
            say_tool(content, &calls->items[i]);
    }
    if (CX_JSON_GET(raw, "parts") != NULL) /* a checkpoint has the API's messages */
        cx_import_say_message(content, raw);
}

static void set_harness(cx_import_record *r, cx_import_kind kind)
{
    r->agent = CX_STR("harness");
    r->kind = kind;
    r->fork = CX_IMPORT_FORK_OBSERVATION;
}

static cx_status import_message(cx_import_sink *sink, const cx_json *message, const cx_json *raw,
                                uint32_t part, cx_err *err)
{
    static const char *const types[] = {"user", "gemini", "info", "warning", "error", NULL};
    gemini_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(message, "type"), id = CX_JSON_GET_STR(message, "id");
    if (type.size == 0)
        type = CX_JSON_GET_STR(message, "role");
    if (message->type != CX_JSON_OBJECT || type.size == 0)
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    r->part = part;
    r->src_id = id;
    cx_import_define(r, MESSAGE_SPACE, id, CX_DEFINE_LAST);
    cx_import_set_iso(r, CX_JSON_GET(message, "timestamp"));
    r->model = CX_JSON_GET_STR(message, "model");
    r->usage = cx_json_get_typed(message, CX_STR("tokens"), CX_JSON_OBJECT);
    r->content = cx_import_not_null(CX_JSON_GET(message, "content"));
    if (r->content != NULL && r->content->type == CX_JSON_STRING && r->content->count == 0)
        r->content = NULL; /* a message of calls only */
    cx_import_turn_follow(r, &state->turns);
    if (cx_str_is(type, "error"))
        set_harness(r, CX_KIND_ERROR);
    else if (cx_import_is_one_of(type, types) && !cx_str_is(type, "user") &&
             !cx_str_is(type, "gemini"))
        set_harness(r, CX_KIND_OBSERVE);
    CX_TRY(cx_import_index_add(sink, &state->seen, id, CX_STR(""), CX_RECORD_NONE, err));
    cx_import_tell(sink, MESSAGE_SPACE, id);
    return cx_import_turn_end(sink, &state->turns, gemini_content, message, type, CX_STR("gemini"),
                              err);
}

static const char *const records[] = {"messages", "history", NULL};

static cx_status gemini_item(cx_import_sink *sink, const cx_json *item, uint32_t index, cx_err *err)
{
    (void)index;
    return import_message(sink, item, item, UINT32_MAX, err);
}

static cx_status gemini_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    gemini_state *state = sink->state;
    const cx_json *messages = cx_import_array_at(document, "messages");
    cx_json top;
    state->turns.repeats = true;
    if (messages == NULL)
        messages = cx_import_array_at(document, "history");
    if (messages == NULL)
        return cx_import_shape(err, "an object with an array messages or history");
    CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
    CX_TRY(cx_import_top(sink, &top, err));
    for (uint32_t i = 0; i < messages->count; i++)
        CX_TRY(gemini_item(sink, &messages->items[i], i, err));
    return CX_SUCCESS;
}

static const cx_json *set_messages(const cx_json *line)
{
    const cx_json *set = cx_json_get_typed(line, CX_STR("$set"), CX_JSON_OBJECT);
    return cx_import_array_at(set != NULL ? set : line, "messages");
}

static const cx_json *gemini_part(const cx_json *line, uint32_t part)
{
    return &set_messages(line)->items[part];
}

/* What the program keeps of the session. */
static void say_nothing(cx_import_content *content, const cx_json *raw)
{
    (void)content;
    (void)raw;
}

static cx_status import_patch(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    gemini_state *state = sink->state;
    const cx_json *messages = set_messages(value);
    const cx_json *to = CX_JSON_GET(value, "$rewindTo");
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    set_harness(r, CX_KIND_STATE);
    cx_import_set_iso(r, CX_JSON_GET(value, "startTime"));
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(value, "sessionId"));
    cx_import_turn_follow(r, &state->turns);
    if (to != NULL)
        cx_import_refer(r, MESSAGE_SPACE, cx_import_scalar(to), CX_REF_OPTIONAL);
    CX_TRY(
        cx_import_turn_end(sink, &state->turns, say_nothing, value, CX_STR(""), CX_STR(""), err));
    for (uint32_t i = 0; messages != NULL && i < messages->count; i++) {
        const cx_json *message = &messages->items[i];
        const cx_str id = CX_JSON_GET_STR(message, "id");
        const bool known = cx_import_index_find(&state->seen, id) != NULL;
        if (message->type == CX_JSON_OBJECT && cx_import_has_str(message, "type") &&
            !cx_import_ask(sink, MESSAGE_SPACE, id, known))
            CX_TRY(import_message(sink, message, message, i, err));
    }
    return CX_SUCCESS;
}

static cx_status gemini_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    gemini_state *state = sink->state;
    state->turns.repeats = true;
    if (value->type == CX_JSON_OBJECT && CX_JSON_GET(value, "type") == NULL &&
        (CX_JSON_GET(value, "$set") != NULL || CX_JSON_GET(value, "$rewindTo") != NULL ||
         CX_JSON_GET(value, "sessionId") != NULL))
        return import_patch(sink, value, err);
    return import_message(sink, value, NULL, UINT32_MAX, err);
}

static void gemini_done(cx_import_sink *sink)
{
    gemini_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
    cx_import_index_done(&state->seen, sink->options->alloc);
}

static int gemini_detect(cx_bytes head, const cx_json *record)
{
    static const char project[] = "\"projectHash\"", kind[] = "\"gemini\"";
    if (record == NULL)
        return head.size != 0 &&
                       memmem(head.data, head.size, project, sizeof project - 1) != NULL &&
                       memmem(head.data, head.size, kind, sizeof kind - 1) != NULL
                   ? 60
                   : 0;
    if (record->type != CX_JSON_OBJECT)
        return 0;
    if (cx_import_has_str(record, "sessionId") && cx_import_has(record, "projectHash"))
        return 92;
    if (cx_json_get_typed(record, CX_STR("$set"), CX_JSON_OBJECT) != NULL ||
        cx_import_has(record, "$rewindTo"))
        return 88;
    const cx_json *history = cx_import_first_object(cx_import_array_at(record, "history"));
    if (history != NULL && cx_import_array_at(history, "parts") != NULL)
        return 86;
    return cx_str_is(CX_JSON_GET_STR(record, "type"), "gemini") && cx_import_has(record, "content")
               ? 85
               : 0;
}

const cx_import_format cx_import_gemini_cli = {
    .info = {"gemini-cli", "Gemini CLI sessions",
             "{\"sessionId\",\"projectHash\",\"messages\":[...]}, or JSON lines of the same", true},
    .windows = true,
    .asks = true,
    .state_size = sizeof(gemini_state),
    .document = gemini_document,
    .item_lists = records,
    .item = gemini_item,
    .line = gemini_line,
    .content = gemini_content,
    .part = gemini_part,
    .done = gemini_done,
    .detect = gemini_detect,
};
