/*
 * droid.c - Droid sessions (§2.16): a line for the start, then messages with Anthropic's blocks.
 */
#include "import/turns.h"

#define MESSAGE_SPACE 'm'

typedef struct droid_state {
    cx_import_turns turns;
} droid_state;

static const cx_json *message_of(const cx_json *line)
{
    return cx_json_get_typed(line, CX_STR("message"), CX_JSON_OBJECT);
}

static void droid_content(cx_import_content *content, const cx_json *raw)
{
    static const char *const texts[] = {"title", "summaryText", "summary", "text", NULL};
    const cx_json *todos = CX_JSON_GET(raw, "todos");
    if (message_of(raw) != NULL) {
        cx_import_say_message(content, message_of(raw));
        return;
    }
    cx_import_say_role(content, CX_STR("system"));
    cx_import_say_text(content, cx_import_first_str(raw, texts));
    if (todos != NULL && todos->type == CX_JSON_OBJECT)
        todos = CX_JSON_GET(todos, "todos");
    if (todos != NULL && todos->type == CX_JSON_ARRAY && cx_json_has_canonical(todos)) {
        content->plan = *todos;
        content->has_plan = true;
    }
}

static cx_status droid_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    static const char *const known[] = {"session_start", "todo_state", "compaction_state",
                                        "session_end", NULL};
    droid_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(value, "type"), role = {NULL, 0};
    const cx_json *message = message_of(value);
    if (type.size == 0)
        return cx_import_bad(sink, NULL, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    r->src_id = CX_JSON_GET_STR(value, "id");
    cx_import_set_iso(r, CX_JSON_GET(value, "timestamp"));
    if (message != NULL) {
        role = CX_JSON_GET_STR(message, "role");
        r->content = cx_import_not_null(CX_JSON_GET(message, "content"));
        r->src_parent = CX_JSON_GET_STR(value, "parentId");
        r->model = CX_JSON_GET_STR(message, "model");
        r->usage = cx_json_get_typed(message, CX_STR("usage"), CX_JSON_OBJECT);
        cx_import_define(r, MESSAGE_SPACE, r->src_id, CX_DEFINE_FIRST);
        cx_import_refer(r, MESSAGE_SPACE, r->src_parent, CX_REF_NAMED);
    }
    if (r->src_parent.size == 0)
        cx_import_turn_follow(r, &state->turns);
    if (role.size == 0) {
        r->agent = CX_STR("harness");
        r->kind = CX_KIND_STATE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
        r->issues |= cx_import_is_one_of(type, known) ? 0 : 1u << CX_ISSUE_UNKNOWN_TYPE;
    }
    return cx_import_turn_end(sink, &state->turns, droid_content, value, role, CX_STR("droid"),
                              err);
}

static void droid_done(cx_import_sink *sink)
{
    droid_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int droid_detect(cx_bytes head, const cx_json *record)
{
    static const char start[] = "\"session_start\"", owner[] = "\"owner\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, start, sizeof start - 1) != NULL &&
                       memmem(head.data, head.size, owner, sizeof owner - 1) != NULL
                   ? 60
                   : 0;
    cx_str type = CX_JSON_GET_STR(record, "type");
    if (record->type != CX_JSON_OBJECT || !cx_import_has_str(record, "id"))
        return 0;
    if (cx_str_is(type, "session_start"))
        return cx_import_has(record, "owner") || cx_import_has(record, "cwd") ? 88 : 0;
    return cx_str_is(type, "message") && !cx_import_has(record, "sessionId") &&
                   message_of(record) != NULL &&
                   CX_JSON_GET_STR(message_of(record), "role").size != 0
               ? 85
               : 0;
}

const cx_import_format cx_import_droid = {
    .info = {"droid", "Droid sessions",
             "JSON lines {\"type\":\"session_start\"}, {\"type\":\"message\",\"message\":{...}}",
             true},
    .state_size = sizeof(droid_state),
    .line = droid_line,
    .content = droid_content,
    .done = droid_done,
    .detect = droid_detect,
    .windows = true,
};
