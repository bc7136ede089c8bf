/*
 * cline.c - Cline and its kin, Roo Code among them (§2.13): ui_messages.json, a list of what was
 * shown, and api_conversation_history.json, a list of Anthropic's messages.
 */
#include "import/turns.h"

typedef struct cline_state {
    cx_import_turns turns;
} cline_state;

static cx_str what_of(const cx_json *item)
{
    cx_str say = CX_JSON_GET_STR(item, "say");
    return say.size != 0 ? say : CX_JSON_GET_STR(item, "ask");
}

static bool is_shown(const cx_json *item)
{
    cx_str type = CX_JSON_GET_STR(item, "type");
    return (cx_str_is(type, "say") || cx_str_is(type, "ask")) && what_of(item).size != 0;
}

/* The text holds JSON in some kinds; the text itself otherwise. */
static const cx_json *decoded(cx_import_content *content, const cx_json *item)
{
    const cx_json *text = CX_JSON_GET(item, "text");
    cx_json *out = CX_ARENA_NEW(content->arena, cx_json);
    if (text == NULL || out == NULL) {
        content->failed = content->failed || out == NULL;
        return NULL;
    }
    return cx_import_decode_text(content, text, out) ? out : NULL;
}

/* {"tool":"readFile","path":...}: the names are of what is shown, so files.c knows their kin. */
static void say_tool(cx_import_content *content, const cx_json *about)
{
    static const struct {
        const char *shown, *tool;
    } tools[] = {{"readFile", "read_file"},
                 {"newFileCreated", "write_to_file"},
                 {"editedExistingFile", "replace_in_file"},
                 {"appliedDiff", "apply_diff"},
                 {"fileDeleted", "delete_file"}};
    static const char *const names[] = {"tool", "toolName", NULL};
    cx_str tool = cx_import_first_str(about, names);
    for (size_t i = 0; i < CX_COUNT_OF(tools); i++) {
        if (cx_str_is(tool, tools[i].shown))
            tool = cx_str_z(tools[i].tool);
    }
    const cx_json *args = CX_JSON_GET(about, "arguments");
    cx_import_say_call(content, (cx_str){NULL, 0}, tool, args != NULL ? args : about);
}

static void say_command(cx_import_content *content, const cx_json *item)
{
    cx_json_list list = cx_json_list_begin(content->arena);
    cx_json *args = CX_ARENA_NEW(content->arena, cx_json);
    cx_json_put_str(&list, "command", CX_JSON_GET_STR(item, "text"));
    if (args == NULL || cx_failed(cx_json_list_end_object(&list, args, NULL)))
        content->failed = true;
    else
        cx_import_say_call(content, (cx_str){NULL, 0}, CX_STR("execute_command"), args);
}

static bool is_error(cx_str what)
{
    static const char *const names[] = {
        "error",           "api_req_failed",        "diff_error", "clineignore_error",
        "rooignore_error", "mistake_limit_reached", NULL};
    return cx_import_is_one_of(what, names);
}

static bool is_answer(cx_str what)
{
    static const char *const names[] = {"command_output", "mcp_server_response",
                                        "browser_action_result", NULL};
    return cx_import_is_one_of(what, names);
}

static bool is_user(cx_str what)
{
    static const char *const names[] = {"task", "user_feedback", "user_feedback_diff", NULL};
    return cx_import_is_one_of(what, names);
}

static bool is_call(cx_str what)
{
    static const char *const names[] = {"tool", "command", "use_mcp_server", NULL};
    return cx_import_is_one_of(what, names);
}

static bool is_inner(cx_str what)
{
    return cx_str_starts(what, CX_STR("api_req_")) || cx_str_starts(what, CX_STR("checkpoint")) ||
           cx_str_starts(what, CX_STR("resume_")) || cx_str_starts(what, CX_STR("deleted_")) ||
           cx_str_starts(what, CX_STR("mcp_server_request"));
}

static void say_shown(cx_import_content *content, const cx_json *item)
{
    cx_str what = what_of(item), text = CX_JSON_GET_STR(item, "text");
    const cx_json *images = cx_import_array_at(item, "images");
    content->images += images == NULL ? 0 : images->count;
    if (is_error(what)) {
        cx_import_say_error(content, text);
    } else if (is_answer(what)) {
        cx_import_say_role(content, CX_STR("tool"));
        cx_import_say_result(content, (cx_str){NULL, 0},
                             cx_str_is(what, "command_output") ? CX_STR("execute_command")
                                                               : CX_STR(""),
                             false, CX_JSON_GET(item, "text"));
    } else if (is_inner(what)) {
        const cx_json *about = decoded(content, item);
        if (about != NULL && about->type == CX_JSON_OBJECT)
            cx_import_say_cost(content, CX_JSON_GET(about, "cost"));
        cx_import_say_role(content, CX_STR("system"));
    } else if (is_call(what)) {
        const cx_json *about = decoded(content, item);
        cx_import_say_role(content, CX_STR("assistant"));
        if (cx_str_is(what, "command"))
            say_command(content, item);
        else if (about != NULL && about->type == CX_JSON_OBJECT)
            say_tool(content, about);
    } else if (cx_str_is(what, "reasoning")) {
        cx_import_say_thought(content, text);
    } else if (cx_str_is(what, "followup")) {
        const cx_json *about = decoded(content, item);
        cx_str question = about != NULL && about->type == CX_JSON_OBJECT
                              ? CX_JSON_GET_STR(about, "question")
                              : text;
        cx_import_say_text(content, question.size != 0 ? question : text);
    } else {
        cx_import_say_role(content, is_user(what) ? CX_STR("user") : CX_STR(""));
        cx_import_say_text(content, text);
    }
}

static void cline_content(cx_import_content *content, const cx_json *raw)
{
    if (is_shown(raw))
        say_shown(content, raw);
    else
        cx_import_say_message(content, raw);
    cx_str kind = CX_JSON_GET_STR(content->derived, "kind");
    if (content->role.size == 0 && kind.size != 0)
        cx_import_say_role(content,
                           cx_str_is(kind, "input") ? CX_STR("user") : CX_STR("assistant"));
}

/* api_req_started says in JSON what the request took. */
static void read_usage(cx_import_record *r, const cx_json *item)
{
    static const char *const names[][2] = {{"input_tokens", "tokensIn"},
                                           {"output_tokens", "tokensOut"},
                                           {"cache_read_input_tokens", "cacheReads"},
                                           {"cache_creation_input_tokens", "cacheWrites"}};
    cx_json about;
    cx_json_list list = cx_json_list_begin(r->arena);
    if (!cx_str_is(what_of(item), "api_req_started") ||
        !cx_import_decode_for(r, CX_JSON_GET_STR(item, "text"), &about) ||
        about.type != CX_JSON_OBJECT)
        return;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *count = cx_json_get(&about, cx_str_z(names[i][1]));
        if (count != NULL && cx_json_is_number(count))
            cx_json_put(&list, names[i][0], *count);
    }
    cx_json *usage = CX_ARENA_NEW(r->arena, cx_json);
    if (usage == NULL || cx_failed(cx_json_list_end_object(&list, usage, NULL)))
        r->failed = true;
    else if (usage->count != 0)
        r->usage = usage;
}

static cx_str role_of(const cx_json *item, uint32_t index)
{
    cx_str what = what_of(item);
    if (!is_shown(item))
        return CX_JSON_GET_STR(item, "role");
    if (is_user(what) || (index == 0 && cx_str_is(what, "text")))
        return CX_STR("user");
    if (is_answer(what))
        return CX_STR("tool");
    return is_inner(what) || is_error(what) ? CX_STR("") : CX_STR("assistant");
}

static cx_status cline_item(cx_import_sink *sink, const cx_json *item, uint32_t index, cx_err *err)
{
    static const char *const times[] = {"ts", "timestamp", NULL};
    cline_state *state = sink->state;
    if (item->type != CX_JSON_OBJECT ||
        (!is_shown(item) && CX_JSON_GET_STR(item, "role").size == 0))
        return cx_import_bad(sink, item, UINT64_MAX, err);
    cx_str role = role_of(item, index);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, item);
    cx_import_set_any_time(r, cx_import_first_of(item, times));
    cx_import_turn_follow(r, &state->turns);
    if (is_shown(item)) {
        cx_import_field_str(r, CX_STR("shown"), what_of(item));
        read_usage(r, item);
    }
    if (role.size == 0) {
        r->agent = CX_STR("harness");
        r->kind = is_error(what_of(item)) ? CX_KIND_ERROR : CX_KIND_OBSERVE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    return cx_import_turn_end(sink, &state->turns, cline_content, item, role, CX_STR("cline"), err);
}

static cx_status cline_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    if (document->type != CX_JSON_ARRAY)
        return cx_import_shape(err, "an array of {\"ts\",\"type\",\"say\"} or of messages");
    for (uint32_t i = 0; i < document->count; i++)
        CX_TRY(cline_item(sink, &document->items[i], i, err));
    return CX_SUCCESS;
}

static void cline_done(cx_import_sink *sink)
{
    cline_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

/* The program's own marks in the first message of a history. */
static bool has_marks(const cx_json *message)
{
    const cx_json *blocks = cx_import_array_at(message, "content");
    for (uint32_t i = 0; blocks != NULL && i < blocks->count && i < 4; i++) {
        cx_str text = CX_JSON_GET_STR(&blocks->items[i], "text");
        if (cx_str_starts(text, CX_STR("<task>")) ||
            cx_str_starts(text, CX_STR("<environment_details>")))
            return true;
    }
    return false;
}

static int cline_detect(cx_bytes head, const cx_json *record)
{
    const cx_json *first = record == NULL ? NULL : cx_import_first_object(record);
    (void)head;
    if (first == NULL)
        return 0;
    if (is_shown(first) && cx_import_has(first, "ts"))
        return 90;
    return cx_import_has_str(first, "role") && has_marks(first) ? 70 : 0;
}

static const char *const the_document[] = {NULL};

const cx_import_format cx_import_cline = {
    .info = {"cline", "Cline and Roo Code tasks",
             "ui_messages.json or api_conversation_history.json of a task", false},
    .state_size = sizeof(cline_state),
    .document = cline_document,
    .item_lists = the_document,
    .item = cline_item,
    .content = cline_content,
    .done = cline_done,
    .detect = cline_detect,
};
