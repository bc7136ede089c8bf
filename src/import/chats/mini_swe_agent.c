/*
 * mini_swe_agent.c - mini-swe-agent trajectories (§2.19): messages whose only tool is a shell,
 * called by a block of the text or by an API's call.
 */
#include "import/turns.h"

typedef struct mini_state {
    cx_import_turns turns;
} mini_state;

static const cx_json *extra_of(const cx_json *message)
{
    return cx_json_get_typed(message, CX_STR("extra"), CX_JSON_OBJECT);
}

/* The command between a line that begins with ```bash and the next ```. */
static cx_str block_in(cx_str text)
{
    static const char *const marks[] = {"```bash\n", "```mswea_bash_command\n"};
    for (size_t i = 0; i < CX_COUNT_OF(marks) && text.size != 0; i++) {
        size_t size = strlen(marks[i]);
        const char *from = memmem(text.data, text.size, marks[i], size);
        if (from == NULL)
            continue;
        from += size;
        size_t left = (size_t)(text.data + text.size - from);
        const char *end = left == 0 ? NULL : memmem(from, left, "\n```", 4);
        if (end != NULL)
            return cx_str_from(from, (size_t)(end - from));
    }
    return (cx_str){NULL, 0};
}

static void say_command(cx_import_content *content, cx_str id, cx_str command)
{
    cx_json_list list = cx_json_list_begin(content->arena);
    cx_json *args = CX_ARENA_NEW(content->arena, cx_json);
    cx_json_put_str(&list, "command", command);
    if (args == NULL || cx_failed(cx_json_list_end_object(&list, args, NULL)))
        content->failed = true;
    else
        cx_import_say_call(content, id, CX_STR("bash"), args);
}

static void say_assistant(cx_import_content *content, const cx_json *message)
{
    const cx_json *extra = extra_of(message);
    const cx_json *actions = extra == NULL ? NULL : cx_import_array_at(extra, "actions");
    cx_str text = CX_JSON_GET_STR(message, "content");
    cx_import_say_role(content, CX_STR("assistant"));
    cx_import_say_message(content, message);
    if (extra != NULL)
        cx_import_say_cost(content, CX_JSON_GET(extra, "cost"));
    if (content->said != NULL)
        return;
    for (uint32_t i = 0; actions != NULL && i < actions->count; i++)
        say_command(content, CX_JSON_GET_STR(&actions->items[i], "tool_call_id"),
                    CX_JSON_GET_STR(&actions->items[i], "command"));
    if (content->said == NULL && block_in(text).size != 0)
        say_command(content, (cx_str){NULL, 0}, block_in(text));
}

/* <returncode>N</returncode> at the start, or in extra; false when there is none. */
static bool return_code(const cx_json *message, bool *out_failed)
{
    static const char mark[] = "<returncode>";
    const cx_json *extra = extra_of(message);
    const cx_json *code = extra == NULL ? NULL : CX_JSON_GET(extra, "returncode");
    cx_str text = CX_JSON_GET_STR(message, "content");
    int64_t number = 0;
    if (code != NULL && cx_json_int64(code, &number)) {
        *out_failed = number != 0;
        return true;
    }
    if (!cx_str_starts(text, CX_STR("<returncode>")))
        return false;
    *out_failed = !cx_str_starts(
        cx_str_from(text.data + sizeof mark - 1, text.size - sizeof mark + 1), CX_STR("0<"));
    return true;
}

static void mini_content(cx_import_content *content, const cx_json *raw)
{
    cx_str role = CX_JSON_GET_STR(raw, "role");
    bool failed = false;
    if (cx_str_is(role, "assistant") || cx_str_is(CX_JSON_GET_STR(raw, "object"), "response")) {
        if (role.size != 0)
            say_assistant(content, raw);
        else
            cx_import_say_response(content, raw);
        return;
    }
    if (cx_str_is(role, "exit")) {
        cx_import_say_role(content, CX_STR("system"));
        cx_import_say_text(content, CX_JSON_GET_STR(raw, "content"));
        return;
    }
    bool answer = return_code(raw, &failed);
    if (answer && cx_str_is(role, "user")) {
        cx_import_say_role(content, CX_STR("tool"));
        cx_import_say_result(content, (cx_str){NULL, 0}, CX_STR("bash"), failed,
                             CX_JSON_GET(raw, "content"));
        return;
    }
    if (role.size == 0)
        cx_import_say_blocks(content, raw);
    else
        cx_import_say_message(content, raw);
    for (cx_import_said *at = content->said; answer && at != NULL; at = at->next)
        at->failed = failed;
}

static void read_exit(cx_import_record *r, const cx_json *message)
{
    const cx_json *extra = extra_of(message);
    const cx_json *status = extra == NULL ? NULL : CX_JSON_GET(extra, "exit_status");
    r->agent = CX_STR("harness");
    r->kind = CX_KIND_STATE;
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    if (status != NULL && status->type == CX_JSON_STRING)
        cx_import_belief(r, CX_STR("exit_status"), *status);
}

static cx_status import_message(cx_import_sink *sink, const cx_json *message, cx_err *err)
{
    mini_state *state = sink->state;
    cx_str role = CX_JSON_GET_STR(message, "role"), type = CX_JSON_GET_STR(message, "type");
    bool answered = cx_str_is(CX_JSON_GET_STR(message, "object"), "response");
    const cx_json *extra = extra_of(message);
    const cx_json *response = extra == NULL ? NULL : CX_JSON_GET(extra, "response");
    if (role.size == 0 && type.size == 0 && !answered)
        return cx_import_bad(sink, message, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, message);
    r->content = cx_import_not_null(CX_JSON_GET(message, "content"));
    const cx_json *time = extra == NULL ? NULL : CX_JSON_GET(extra, "timestamp");
    if (time == NULL && response != NULL && response->type == CX_JSON_OBJECT)
        time = CX_JSON_GET(response, "created"); /* of older files: when the API answered */
    cx_import_set_any_time(r, time);
    if (response != NULL && response->type == CX_JSON_OBJECT) {
        r->model = CX_JSON_GET_STR(response, "model");
        r->usage = cx_json_get_typed(response, CX_STR("usage"), CX_JSON_OBJECT);
    }
    cx_import_turn_follow(r, &state->turns);
    if (cx_str_is(role, "exit"))
        read_exit(r, message);
    else if (role.size == 0)
        role = answered ? CX_STR("assistant") : CX_STR("tool");
    return cx_import_turn_end(sink, &state->turns, mini_content, message, role, CX_STR("agent"),
                              err);
}

static cx_status mini_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"messages", NULL};
    const cx_json *messages = cx_import_array_at(document, "messages");
    cx_json top;
    if (messages == NULL)
        return cx_import_shape(err, "an object with an array messages");
    CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
    CX_TRY(cx_import_top(sink, &top, err));
    for (uint32_t i = 0; i < messages->count; i++)
        CX_TRY(import_message(sink, &messages->items[i], err));
    return CX_SUCCESS;
}

static void mini_done(cx_import_sink *sink)
{
    mini_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int mini_detect(cx_bytes head, const cx_json *record)
{
    (void)head;
    if (record == NULL || record->type != CX_JSON_OBJECT ||
        cx_import_array_at(record, "messages") == NULL)
        return 0;
    const cx_json *info = cx_json_get_typed(record, CX_STR("info"), CX_JSON_OBJECT);
    if (cx_str_starts(CX_JSON_GET_STR(record, "trajectory_format"), CX_STR("mini-swe-agent")))
        return 95;
    if (info == NULL)
        return 0;
    return cx_import_has(info, "mini_version")                                        ? 92
           : cx_import_has(info, "model_stats") || cx_import_has(info, "exit_status") ? 80
                                                                                      : 0;
}

const cx_import_format cx_import_mini_swe_agent = {
    .info = {"mini-swe-agent", "mini-swe-agent trajectories",
             "{\"info\",\"messages\":[...],\"trajectory_format\":\"mini-swe-agent-1\"}", false},
    .state_size = sizeof(mini_state),
    .document = mini_document,
    .content = mini_content,
    .done = mini_done,
    .detect = mini_detect,
};
