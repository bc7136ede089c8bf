/*
 * qwen_code.c - Qwen Code sessions (§2.10): lines that form a tree by uuid and parentUuid, with
 * messages in Gemini's parts.
 */
#include "import/turns.h"

#define LINE_SPACE 'u'

typedef struct qwen_state {
    cx_import_turns turns;
} qwen_state;

/* A notice of the program says it in its payload, in a member that its subtype has. */
static void say_system(cx_import_content *content, const cx_json *raw)
{
    static const char *const names[] = {"text",       "message",  "prompt",
                                        "rawCommand", "userText", NULL};
    const cx_json *payload = CX_JSON_GET(raw, "systemPayload");
    cx_import_say_role(content, CX_STR("system"));
    if (payload != NULL && payload->type == CX_JSON_OBJECT)
        cx_import_say_text(content, cx_import_first_str(payload, names));
}

static void qwen_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *message = cx_json_get_typed(raw, CX_STR("message"), CX_JSON_OBJECT);
    const cx_json *result = cx_json_get_typed(raw, CX_STR("toolCallResult"), CX_JSON_OBJECT);
    cx_str type = CX_JSON_GET_STR(raw, "type");
    if (cx_str_is(type, "system")) {
        say_system(content, raw);
        return;
    }
    cx_import_say_role(content, cx_str_is(type, "tool_result") ? CX_STR("tool") : type);
    cx_import_say_message(content, message);
    if (result == NULL)
        return;
    bool failed = cx_str_is(CX_JSON_GET_STR(result, "status"), "error") ||
                  cx_str_is(CX_JSON_GET_STR(result, "status"), "cancelled");
    if (content->said == NULL)
        cx_import_say_result(content, CX_JSON_GET_STR(result, "callId"), (cx_str){NULL, 0}, failed,
                             CX_JSON_GET(result, "resultDisplay"));
    for (cx_import_said *at = content->said; at != NULL; at = at->next)
        at->failed = at->failed || (failed && at->has_result);
    const cx_json *error = cx_import_not_null(CX_JSON_GET(result, "error"));
    if (failed && error != NULL)
        cx_import_say_error(content, error->type == CX_JSON_OBJECT
                                         ? CX_JSON_GET_STR(error, "message")
                                         : cx_import_plain_text(content, error));
}

static cx_status qwen_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    qwen_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(value, "type");
    if (value->type != CX_JSON_OBJECT || type.size == 0)
        return cx_import_bad(sink, NULL, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    r->src_id = CX_JSON_GET_STR(value, "uuid");
    r->src_parent = CX_JSON_GET_STR(value, "parentUuid");
    cx_import_define(r, LINE_SPACE, r->src_id, CX_DEFINE_FIRST);
    cx_import_refer(r, LINE_SPACE, r->src_parent, CX_REF_NAMED);
    if (r->src_parent.size == 0 && r->src_id.size == 0)
        cx_import_turn_follow(r, &state->turns);
    cx_import_set_iso(r, CX_JSON_GET(value, "timestamp"));
    r->model = CX_JSON_GET_STR(value, "model");
    r->usage = cx_json_get_typed(value, CX_STR("usageMetadata"), CX_JSON_OBJECT);
    r->content = cx_import_not_null(CX_JSON_GET(value, "message"));
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(value, "sessionId"));
    cx_import_field_str(r, CX_STR("subtype"), CX_JSON_GET_STR(value, "subtype"));
    if (cx_str_is(type, "system")) {
        r->agent = CX_STR("harness");
        r->kind = cx_str_is(CX_JSON_GET_STR(value, "subtype"), "chat_compression")
                      ? CX_KIND_STATE
                      : CX_KIND_OBSERVE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    return cx_import_turn_end(sink, &state->turns, qwen_content, value, type, CX_STR("qwen"), err);
}

static void qwen_done(cx_import_sink *sink)
{
    qwen_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int qwen_detect(cx_bytes head, const cx_json *record)
{
    static const char parts[] = "\"parts\"", parent[] = "\"parentUuid\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, parts, sizeof parts - 1) != NULL &&
                       memmem(head.data, head.size, parent, sizeof parent - 1) != NULL
                   ? 70
                   : 0;
    bool has_id = cx_import_has(record, "uuid") || cx_import_has(record, "sessionId");
    if (record->type == CX_JSON_OBJECT && has_id &&
        (cx_import_has_parts(record) || cx_import_has(record, "systemPayload")))
        return 90;
    return 0;
}

const cx_import_format cx_import_qwen_code = {
    .info = {"qwen-code", "Qwen Code sessions",
             "JSON lines with uuid, parentUuid and message.parts", true},
    .state_size = sizeof(qwen_state),
    .line = qwen_line,
    .content = qwen_content,
    .done = qwen_done,
    .detect = qwen_detect,
    .windows = true,
};
