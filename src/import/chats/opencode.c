/*
 * opencode.c - OpenCode sessions (§2.12): an export {"info","messages":[{"info","parts"}]}, the
 * events of `opencode run --format json`, or stored messages and parts as lines.
 */
#include "import/turns.h"

typedef struct opencode_state {
    cx_import_turns turns;
} opencode_state;

static const cx_json *object_at(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

/* What a message is about: of an export its info, of an event or a stored part that itself. */
static const cx_json *about(const cx_json *value)
{
    const cx_json *info = object_at(value, "info");
    return info != NULL ? info : value;
}

static void say_tool(cx_import_content *content, const cx_json *part)
{
    const cx_json *state = object_at(part, "state");
    cx_str id = CX_JSON_GET_STR(part, "callID"), tool = CX_JSON_GET_STR(part, "tool");
    cx_str status = state == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(state, "status");
    cx_import_say_call(content, id, tool, state == NULL ? NULL : CX_JSON_GET(state, "input"));
    if (cx_str_is(status, "completed"))
        cx_import_say_result(content, id, tool, false, CX_JSON_GET(state, "output"));
    else if (cx_str_is(status, "error"))
        cx_import_say_result(content, id, tool, true, CX_JSON_GET(state, "error"));
}

static void say_part(cx_import_content *content, const cx_json *part)
{
    static const char *const texts[] = {"text", "prompt", NULL};
    cx_str type = CX_JSON_GET_STR(part, "type");
    if (cx_str_is(type, "tool"))
        say_tool(content, part);
    else if (cx_str_is(type, "reasoning"))
        cx_import_say_thought(content, CX_JSON_GET_STR(part, "text"));
    else if (cx_str_is(type, "text") || cx_str_is(type, "subtask"))
        cx_import_say_text(content, cx_import_first_str(part, texts));
    else if (cx_str_is(type, "step-finish"))
        cx_import_say_cost(content, CX_JSON_GET(part, "cost"));
    else if (cx_str_is(type, "file"))
        content->images += cx_str_starts(CX_JSON_GET_STR(part, "mime"), CX_STR("image/"));
}

static void say_error(cx_import_content *content, const cx_json *error)
{
    const cx_json *data = error == NULL ? NULL : CX_JSON_GET(error, "data");
    if (error == NULL)
        return;
    if (data != NULL && CX_JSON_GET_STR(data, "message").size != 0)
        cx_import_say_error(content, CX_JSON_GET_STR(data, "message"));
    else if (CX_JSON_GET_STR(error, "message").size != 0)
        cx_import_say_error(content, CX_JSON_GET_STR(error, "message"));
    else
        cx_import_say_error(content, error->type == CX_JSON_OBJECT
                                         ? CX_JSON_GET_STR(error, "name")
                                         : cx_import_plain_text(content, error));
}

static void say_duration(cx_import_content *content, const cx_json *time)
{
    const cx_json *from = time == NULL ? NULL : CX_JSON_GET(time, "created");
    const cx_json *to = time == NULL ? NULL : CX_JSON_GET(time, "completed");
    cx_import_record times[2] = {0};
    cx_import_set_any_time(&times[0], from);
    cx_import_set_any_time(&times[1], to);
    if (times[0].has_time && times[1].has_time)
        cx_import_say_duration(content, times[0].t_ns, times[1].t_ns);
}

static void opencode_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *info = about(raw), *parts = cx_import_array_at(raw, "parts");
    const cx_json *part = object_at(raw, "part");
    cx_str role = CX_JSON_GET_STR(info, "role");
    cx_import_say_role(content, role.size != 0 ? role : CX_STR("assistant"));
    for (uint32_t i = 0; parts != NULL && i < parts->count; i++)
        say_part(content, &parts->items[i]);
    if (part != NULL)
        say_part(content, part);
    else if (parts == NULL)
        say_part(content, raw);
    say_error(content, cx_import_not_null(CX_JSON_GET(info, "error")));
    say_duration(content, object_at(info, "time"));
    cx_import_say_cost(content, CX_JSON_GET(info, "cost"));
}

/* Parts that a program keeps for itself. */
static bool is_inner(cx_str type)
{
    static const char *const names[] = {"step-start", "step-finish", "step_start", "step_finish",
                                        "snapshot",   "patch",       "compaction", "retry",
                                        "file",       "agent",       NULL};
    return cx_import_is_one_of(type, names);
}

static const cx_json *usage_of(const cx_json *info, const cx_json *part)
{
    const cx_json *tokens = object_at(info, "tokens");
    return tokens == NULL && part != NULL ? object_at(part, "tokens") : tokens;
}

static cx_status import_record(cx_import_sink *sink, const cx_json *value, const cx_json *raw,
                               cx_err *err)
{
    static const char *const agents[] = {"agent", "mode", NULL};
    static const char *const models[] = {"modelID", "model", NULL};
    opencode_state *state = sink->state;
    const cx_json *info = about(value), *part = object_at(value, "part");
    cx_str role = CX_JSON_GET_STR(info, "role"), type = CX_JSON_GET_STR(value, "type");
    cx_str agent = cx_import_first_str(info, agents);
    if (value->type != CX_JSON_OBJECT || (role.size == 0 && type.size == 0))
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    const cx_json *time = object_at(info, "time");
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    r->src_id = CX_JSON_GET_STR(part != NULL ? part : info, "id");
    cx_import_set_any_time(r, time != NULL ? CX_JSON_GET(time, "created")
                                           : CX_JSON_GET(value, "timestamp"));
    r->model = cx_import_first_str(info, models);
    r->usage = usage_of(info, part);
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(info, "sessionID"));
    cx_import_turn_follow(r, &state->turns);
    if (role.size == 0 && cx_str_is(type, "error")) {
        r->agent = CX_STR("harness");
        r->kind = CX_KIND_ERROR;
    } else if (role.size == 0 && is_inner(type)) {
        r->agent = CX_STR("harness");
        r->kind = CX_KIND_OBSERVE;
    }
    return cx_import_turn_end(sink, &state->turns, opencode_content, value,
                              role.size != 0 ? role : CX_STR("assistant"),
                              agent.size != 0 ? agent : CX_STR("opencode"), err);
}

static cx_status opencode_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"messages", NULL};
    const cx_json *messages = document;
    cx_json top;
    if (document->type == CX_JSON_OBJECT) {
        messages = cx_import_array_at(document, "messages");
        if (messages == NULL && (cx_import_has(document, "sessionID")))
            return import_record(sink, document, document, err);
        if (messages != NULL) {
            CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
            CX_TRY(cx_import_top(sink, &top, err));
        }
    }
    if (messages == NULL || messages->type != CX_JSON_ARRAY)
        return cx_import_shape(err, "an object with an array messages of {\"info\",\"parts\"}");
    for (uint32_t i = 0; i < messages->count; i++)
        CX_TRY(import_record(sink, &messages->items[i], &messages->items[i], err));
    return CX_SUCCESS;
}

static cx_status opencode_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    return import_record(sink, value, NULL, err);
}

static void opencode_done(cx_import_sink *sink)
{
    opencode_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static bool is_exported(const cx_json *message)
{
    return message != NULL && object_at(message, "info") != NULL &&
           cx_import_array_at(message, "parts") != NULL;
}

static int opencode_detect(cx_bytes head, const cx_json *record)
{
    static const char session[] = "\"sessionID\"", parts[] = "\"parts\"";
    if (record == NULL)
        return head.size != 0 &&
                       memmem(head.data, head.size, session, sizeof session - 1) != NULL &&
                       memmem(head.data, head.size, parts, sizeof parts - 1) != NULL
                   ? 60
                   : 0;
    if (record->type == CX_JSON_ARRAY)
        return is_exported(cx_import_first_object(record)) ? 88 : 0;
    if (record->type != CX_JSON_OBJECT)
        return 0;
    if (is_exported(record) ||
        is_exported(cx_import_first_object(cx_import_array_at(record, "messages"))))
        return 90;
    if (!cx_import_has_str(record, "sessionID"))
        return 0;
    return cx_import_has_str(record, "messageID") || cx_import_has_str(record, "role") ||
                   object_at(record, "part") != NULL || cx_import_has_str(record, "type")
               ? 80
               : 0;
}

const cx_import_format cx_import_opencode = {
    .info = {"opencode", "OpenCode sessions",
             "`opencode export`: {\"info\",\"messages\":[{\"info\",\"parts\"}]}, or JSON events",
             false},
    .state_size = sizeof(opencode_state),
    .document = opencode_document,
    .line = opencode_line,
    .content = opencode_content,
    .done = opencode_done,
    .detect = opencode_detect,
    .windows = true,
};
