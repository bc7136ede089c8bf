/*
 * codex.c - Codex rollouts (§2.5): a line is an item, in an envelope of timestamp, type and
 * payload; older files have the bare items.
 *
 * Lines have no ids: each has the previous line of its file as its parent, and outputs their calls.
 * Events repeat the content of items; both are nodes, only items set state.
 */
#include "import/chat.h"

#define PARENT_PLACES 4

typedef struct codex_state {
    bool started;
    uint32_t file;
    uint32_t previous;     /* record before this one in the file */
    bool named;            /* the file's first session_meta was seen */
    cx_str agent;          /* who reasons and calls in this file */
    cx_str folder;         /* where it works, as its newest context says */
    cx_str scope;          /* of call ids: those of two files are different */
    cx_import_index tools; /* scope, call id -> tool */
    cx_import_index names; /* agent -> thread */
} codex_state;

/* A line on its way to be a record. */
typedef struct item {
    cx_import_sink *sink;
    codex_state *state;
    const cx_json *payload;
    cx_str type; /* the payload's */
} item;

static cx_status begin_file(cx_import_sink *sink, cx_err *err)
{
    codex_state *state = sink->state;
    if (state->started && state->file == sink->file)
        return CX_SUCCESS;
    state->started = true;
    state->file = sink->file;
    state->previous = CX_RECORD_NONE;
    state->named = false;
    state->agent = CX_STR("codex");
    state->folder = (cx_str){NULL, 0};
    state->scope = cx_arena_printf(sink->keep, "%u", (unsigned)sink->file);
    return state->scope.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Empty for an empty id; out of memory is left to cx_import_end. */
static cx_str tool_key(const item *it, cx_import_record *r, cx_str call_id)
{
    cx_str scope = it->state->scope;
    if (call_id.size == 0)
        return call_id;
    char *key = cx_arena_push(it->sink->arena, scope.size + 1 + call_id.size, 1);
    if (key == NULL) {
        r->failed = true;
        return (cx_str){NULL, 0};
    }
    memcpy(key, scope.data, scope.size);
    key[scope.size] = '/';
    memcpy(key + scope.size + 1, call_id.data, call_id.size);
    return cx_str_from(key, scope.size + 1 + call_id.size);
}

/* --- items --------------------------------------------------------------------------------- */

static void read_message(const item *it, cx_import_record *r)
{
    cx_str role = CX_JSON_GET_STR(it->payload, "role");
    r->content = cx_import_not_null(CX_JSON_GET(it->payload, "content"));
    r->kind = CX_KIND_MESSAGE;
    cx_import_field_str(r, CX_STR("role"), role);
    if (cx_str_is(role, "assistant")) {
        r->agent = it->state->agent;
        r->fork = CX_IMPORT_FORK_NATURAL;
        return;
    }
    r->agent = CX_STR("user");
    r->kind = CX_KIND_INPUT;
    r->fork = CX_IMPORT_FORK_NATURAL;
    if (!cx_str_is(role, "user") && !cx_str_is(role, "developer") && !cx_str_is(role, "system"))
        r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
}

/* A plan the agent states is its goals (§1.12). */
static void read_plan(cx_import_record *r, const cx_json *args)
{
    cx_json *decoded = CX_ARENA_NEW(r->arena, cx_json);
    if (decoded == NULL)
        r->failed = true;
    if (args == NULL || args->type != CX_JSON_STRING || decoded == NULL)
        return;
    if (cx_import_decode_for(r, cx_json_text(args), decoded))
        r->goals = cx_json_get_typed(decoded, CX_STR("plan"), CX_JSON_ARRAY);
}

static cx_status read_call(const item *it, cx_import_record *r, const char *args_name,
                           const char *fixed_tool, cx_err *err)
{
    const cx_json *args = cx_import_not_null(cx_json_get(it->payload, cx_str_z(args_name)));
    r->tool = fixed_tool != NULL ? cx_str_z(fixed_tool) : CX_JSON_GET_STR(it->payload, "name");
    r->call_id = cx_import_scalar(CX_JSON_GET(it->payload, "call_id"));
    if (r->call_id.size == 0)
        r->call_id = cx_import_scalar(CX_JSON_GET(it->payload, "id"));
    r->status = CX_JSON_GET_STR(it->payload, "status");
    r->agent = it->state->agent;
    r->kind = CX_KIND_ACT;
    r->fork = CX_IMPORT_FORK_NATURAL;
    r->content = args;
    if (cx_str_is(r->tool, "update_plan"))
        read_plan(r, args);
    if (cx_str_is(it->type, "web_search_call") || cx_str_is(it->type, "image_generation_call")) {
        /* It runs at the model's side: no line answers it. */
        cx_import_call_done(r, it->state->scope, r->call_id, r->tool, args,
                            !cx_str_is(r->status, "failed"),
                            cx_import_not_null(CX_JSON_GET(it->payload, "result")));
        return CX_SUCCESS;
    }
    cx_import_call(r, it->state->scope, r->call_id, r->tool, args);
    return cx_import_index_add(it->sink, &it->state->tools, tool_key(it, r, r->call_id), r->tool,
                               CX_RECORD_NONE, err);
}

static bool is_zero(const cx_json *number)
{
    double value;
    return cx_json_double(number, &value) && value == 0;
}

/* `Exit code: N` opens the text of shell outputs. */
static bool exit_in_text(cx_str text, bool *out_ok)
{
    static const char mark[] = "Exit code: ";
    if (!cx_str_starts(text, CX_STR("Exit code: ")) || text.size == sizeof mark - 1)
        return false;
    size_t at = sizeof mark - 1, start = at;
    bool negative = text.data[at] == '-', zero = true;
    at += negative;
    start += negative;
    for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++)
        zero = zero && text.data[at] == '0';
    *out_ok = zero;
    return at != start;
}

/* The outcome of a call, where its output states it; true with the outcome. */
static bool outcome_of(cx_import_record *r, const cx_json *output, bool *out_ok)
{
    cx_json decoded;
    if (output == NULL)
        return false;
    if (output->type == CX_JSON_STRING) {
        cx_str text = cx_json_text(output);
        if (exit_in_text(text, out_ok))
            return true;
        if (text.size == 0 || text.data[0] != '{' || !cx_import_decode_for(r, text, &decoded))
            return false;
        output = &decoded;
    }
    const cx_json *code = cx_json_pointer(output, CX_STR("/metadata/exit_code"));
    if (code == NULL)
        code = CX_JSON_GET(output, "exit_code");
    if (code != NULL && cx_json_is_number(code)) {
        *out_ok = is_zero(code);
        return true;
    }
    const cx_json *success = CX_JSON_GET(output, "success");
    if (success == NULL || (success->type != CX_JSON_TRUE && success->type != CX_JSON_FALSE))
        return false;
    *out_ok = success->type == CX_JSON_TRUE;
    return true;
}

static void read_output(const item *it, cx_import_record *r)
{
    const cx_json *output = cx_import_not_null(cx_str_is(it->type, "tool_search_output")
                                                   ? CX_JSON_GET(it->payload, "tools")
                                                   : CX_JSON_GET(it->payload, "output"));
    bool ok = true, known = outcome_of(r, output, &ok);
    r->call_id = cx_import_scalar(CX_JSON_GET(it->payload, "call_id"));
    const cx_import_note *call =
        cx_import_index_find(&it->state->tools, tool_key(it, r, r->call_id));
    r->agent = CX_STR("tools");
    r->kind = CX_KIND_TOOL_RESULT;
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    r->content = output;
    r->tool = call == NULL ? (cx_str){NULL, 0} : call->text;
    if (r->call_id.size == 0)
        r->issues |= 1u << CX_ISSUE_ORPHAN_RESULT;
    cx_import_result(r, it->state->scope, r->call_id, ok, output);
    if (known) {
        r->status = ok ? CX_STR("ok") : CX_STR("error");
        cx_import_tool_belief(r, r->tool, ok);
    }
}

static bool is_item_type(cx_str type)
{
    static const char *const types[] = {"message",
                                        "reasoning",
                                        "function_call",
                                        "function_call_output",
                                        "custom_tool_call",
                                        "local_shell_call",
                                        "web_search_call",
                                        "custom_tool_call_output",
                                        "tool_search_call",
                                        "agent_message",
                                        "image_generation_call",
                                        "tool_search_output",
                                        "ghost_snapshot",
                                        NULL};
    return cx_import_is_one_of(type, types);
}

/* What another agent of the run sent to this thread. */
static void read_agent_message(const item *it, cx_import_record *r)
{
    cx_str author = CX_JSON_GET_STR(it->payload, "author");
    r->agent = author.size != 0 ? author : it->state->agent;
    r->kind = CX_KIND_MESSAGE;
    r->fork = CX_IMPORT_FORK_NATURAL;
    r->content = cx_import_not_null(CX_JSON_GET(it->payload, "content"));
    cx_import_field_str(r, CX_STR("recipient"), CX_JSON_GET_STR(it->payload, "recipient"));
}

/* A commit of the work tree that undo returns to; the program makes it. */
static void read_ghost_snapshot(const item *it, cx_import_record *r)
{
    r->kind = CX_KIND_STATE;
    r->content = cx_import_not_null(CX_JSON_GET(it->payload, "ghost_commit"));
    if (r->content != NULL)
        cx_import_field_str(r, CX_STR("commit"), CX_JSON_GET_STR(r->content, "id"));
}

static cx_status read_item(const item *it, cx_import_record *r, cx_err *err)
{
    if (cx_str_is(it->type, "message")) {
        read_message(it, r);
    } else if (cx_str_is(it->type, "reasoning")) {
        r->agent = it->state->agent;
        r->kind = CX_KIND_REASON;
        r->fork = CX_IMPORT_FORK_NATURAL;
        r->content = it->payload;
    } else if (cx_str_is(it->type, "function_call")) {
        return read_call(it, r, "arguments", NULL, err);
    } else if (cx_str_is(it->type, "custom_tool_call")) {
        return read_call(it, r, "input", NULL, err);
    } else if (cx_str_is(it->type, "local_shell_call")) {
        return read_call(it, r, "action", "local_shell", err);
    } else if (cx_str_is(it->type, "web_search_call")) {
        return read_call(it, r, "action", "web_search", err);
    } else if (cx_str_is(it->type, "image_generation_call")) {
        return read_call(it, r, "revised_prompt", "image_generation", err);
    } else if (cx_str_is(it->type, "tool_search_call")) {
        return read_call(it, r, "arguments", "tool_search", err);
    } else if (cx_str_is(it->type, "agent_message")) {
        read_agent_message(it, r);
    } else if (cx_str_is(it->type, "ghost_snapshot")) {
        read_ghost_snapshot(it, r);
    } else if (is_item_type(it->type)) {
        read_output(it, r);
    } else {
        r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE; /* stays with the harness */
    }
    return CX_SUCCESS;
}

/* --- about the session --------------------------------------------------------------------- */

static cx_str parent_thread(const cx_json *meta)
{
    static const char *const places[PARENT_PLACES] = {
        "/parent_thread_id", "/source/subagent/thread_spawn/parent_thread_id",
        "/source/subagent/parent_thread_id", "/source/parent_thread_id"};
    for (size_t i = 0; i < PARENT_PLACES; i++) {
        const cx_json *found = cx_json_pointer(meta, cx_str_z(places[i]));
        if (found != NULL && found->type == CX_JSON_STRING && found->count != 0)
            return cx_json_text(found);
    }
    return (cx_str){NULL, 0};
}

/*
 * Only the first meta of a file describes the file: later ones were copied from the thread it came
 * from.
 */
static cx_status read_meta(const item *it, cx_import_record *r, cx_err *err)
{
    cx_str id = CX_JSON_GET_STR(it->payload, "id");
    r->kind = CX_KIND_CONFIG;
    r->src_id = id;
    if (it->state->named)
        return CX_SUCCESS;
    cx_str parent = parent_thread(it->payload);
    it->state->named = true;
    cx_import_define(r, 's', id, CX_DEFINE_QUIET);
    if (parent.size == 0)
        return CX_SUCCESS;
    cx_import_field_str(r, CX_STR("parent_thread"), parent);
    cx_import_refer(r, 's', parent, CX_REF_OPTIONAL);
    return cx_import_short_name(it->sink, &it->state->names, CX_STR("codex-"), id,
                                &it->state->agent, err);
}

/*
 * An item of the turn that has ended.  Commands and calls repeat response items under their call
 * id, so they are described here, and only those set state.
 */
static void read_completed(const item *it, cx_import_record *r)
{
    const cx_json *done = cx_json_get_typed(it->payload, CX_STR("item"), CX_JSON_OBJECT);
    if (done == NULL) {
        r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
        return;
    }
    cx_str type = CX_JSON_GET_STR(done, "type"), status = CX_JSON_GET_STR(done, "status");
    const cx_json *code = CX_JSON_GET(done, "exit_code");
    bool failed = cx_str_is(status, "failed") || cx_str_is(status, "declined") ||
                  (code != NULL && cx_json_is_number(code) && !is_zero(code));
    bool command = cx_str_is(type, "CommandExecution"), mcp = cx_str_is(type, "McpToolCall");
    r->content = done;
    cx_import_field_str(r, CX_STR("item"), type);
    if (command || mcp) {
        r->tool = command ? CX_STR("shell") : CX_JSON_GET_STR(done, "tool");
        r->call_id = CX_JSON_GET_STR(done, "id");
        r->status = failed                           ? CX_STR("error")
                    : cx_str_is(status, "completed") ? CX_STR("ok")
                                                     : status;
        cx_import_field_str(r, CX_STR("server"), CX_JSON_GET_STR(done, "server"));
    } else if (cx_str_is(type, "SubAgentActivity")) {
        r->status = CX_JSON_GET_STR(done, "kind");
        cx_import_field_str(r, CX_STR("thread"), CX_JSON_GET_STR(done, "agent_thread_id"));
    }
}

static void read_event_line(const item *it, cx_import_record *r)
{
    bool failed = cx_str_is(it->type, "error") || cx_str_is(it->type, "stream_error") ||
                  cx_str_is(it->type, "turn_aborted");
    r->kind = failed ? CX_KIND_ERROR : CX_KIND_OBSERVE;
    if (it->type.size == 0)
        r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
    if (cx_str_is(it->type, "item_completed"))
        read_completed(it, r);
    if (cx_str_is(it->type, "token_count")) {
        const cx_json *usage = cx_json_pointer(it->payload, CX_STR("/info/last_token_usage"));
        r->usage = usage != NULL && usage->type == CX_JSON_OBJECT ? usage : NULL;
    }
}

/* Before envelopes, a file opened with a line that has an id and no type. */
static bool is_old_meta(const cx_json *line)
{
    return CX_JSON_GET_STR(line, "id").size != 0 && CX_JSON_GET_STR(line, "timestamp").size != 0 &&
           (CX_JSON_GET(line, "instructions") != NULL || CX_JSON_GET(line, "git") != NULL);
}

/* The types of lines around an item or event. */
static const char *const envelopes[] = {
    "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", NULL};

static cx_status read_rollout_line(item *it, cx_import_record *r, const cx_json *line, cx_str type,
                                   cx_err *err)
{
    r->agent = CX_STR("harness");
    r->kind = CX_KIND_OBSERVE;
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    r->content = it->payload;
    if (cx_str_is(type, "response_item"))
        return read_item(it, r, err);
    if (cx_str_is(type, "event_msg")) {
        read_event_line(it, r);
    } else if (cx_str_is(type, "session_meta") || type.size == 0) {
        return read_meta(it, r, err);
    } else if (cx_str_is(type, "turn_context")) {
        r->kind = CX_KIND_CONFIG;
        r->model = it->payload == NULL ? r->model : CX_JSON_GET_STR(it->payload, "model");
    } else if (cx_str_is(type, "world_state")) {
        r->kind = CX_KIND_STATE; /* what the model is told of its surroundings */
    } else if (cx_str_is(type, "compacted")) {
        r->kind = CX_KIND_STATE;
        r->fork = CX_IMPORT_FORK_NATURAL;
        r->fork_always = true;
    } else if (is_item_type(type)) {
        it->payload = line;
        it->type = type;
        return read_item(it, r, err);
    } else {
        r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
    }
    return CX_SUCCESS;
}

/* The session and each turn say where the agent works. */
static cx_status remember_folder(const item *it, cx_str type, cx_err *err)
{
    cx_str folder = it->payload == NULL ? CX_STR("") : CX_JSON_GET_STR(it->payload, "cwd");
    bool says =
        type.size == 0 || cx_str_is(type, "session_meta") || cx_str_is(type, "turn_context");
    if (!says || folder.size == 0 || cx_str_eq(folder, it->state->folder))
        return CX_SUCCESS;
    it->state->folder = cx_arena_copy_str(it->sink->keep, folder);
    return it->state->folder.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status codex_line(cx_import_sink *sink, const cx_json *line, cx_err *err)
{
    codex_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(line, "type");
    item it = {.sink = sink, .state = state};
    CX_TRY(begin_file(sink, err));
    it.payload = cx_json_get_typed(line, CX_STR("payload"), CX_JSON_OBJECT);
    if (type.size == 0 && is_old_meta(line))
        it.payload = line;
    else if (type.size == 0)
        return cx_import_bad(sink, NULL, UINT64_MAX, err);
    if (it.payload != NULL)
        it.type = CX_JSON_GET_STR(it.payload, "type");
    /* The payload names the item or event. */
    if (it.type.size == 0 && (cx_str_is(type, "response_item") || cx_str_is(type, "event_msg")))
        return cx_import_bad(sink, NULL, UINT64_MAX, err);

    CX_TRY(remember_folder(&it, type, err));
    cx_import_record *r = cx_import_begin(sink);
    r->folder = state->folder;
    if (state->previous != CX_RECORD_NONE)
        cx_import_refer_record(r, state->previous, CX_REF_SEQUENCE);
    cx_import_set_iso(r, CX_JSON_GET(line, "timestamp"));
    CX_TRY(read_rollout_line(&it, r, line, type, err));
    cx_import_field_str(r, CX_STR("type"), it.type.size != 0 ? it.type : type);
    return cx_import_end(sink, &state->previous, err);
}

/* Output is a text, blocks, an object, or JSON in a text, whose `output` is what the model
 * reads. */
static void say_output(cx_import_content *content, const cx_json *payload)
{
    const cx_json *output = CX_JSON_GET(payload, "output");
    cx_json decoded;
    cx_str id = cx_import_scalar(CX_JSON_GET(payload, "call_id"));
    bool failed = cx_str_is(CX_JSON_GET_STR(content->derived, "status"), "error");
    if (output == NULL)
        output = CX_JSON_GET(payload, "tools");
    if (output == NULL || !cx_import_decode_text(content, output, &decoded))
        return;
    const cx_json *inner = CX_JSON_GET(&decoded, "output");
    if (inner == NULL)
        inner = CX_JSON_GET(&decoded, "content");
    cx_import_say_result(content, id, (cx_str){NULL, 0}, failed, inner == NULL ? &decoded : inner);
}

static void say_item(cx_import_content *content, const cx_json *payload, cx_str type)
{
    static const char *const arguments[] = {"arguments", "input", "action", "revised_prompt"};
    const cx_json *given = NULL;
    if (cx_str_is(type, "message") || cx_str_is(type, "agent_message")) {
        cx_import_say_message(content, payload);
    } else if (cx_str_is(type, "reasoning")) {
        const cx_json *parts[] = {CX_JSON_GET(payload, "summary"), CX_JSON_GET(payload, "content")};
        for (size_t k = 0; k < CX_COUNT_OF(parts); k++) {
            for (uint32_t i = 0;
                 parts[k] != NULL && parts[k]->type == CX_JSON_ARRAY && i < parts[k]->count; i++)
                cx_import_say_thought(content, CX_JSON_GET_STR(&parts[k]->items[i], "text"));
        }
    } else if (CX_JSON_GET(payload, "output") != NULL || cx_str_is(type, "tool_search_output")) {
        say_output(content, payload);
    } else if (cx_str_is(CX_JSON_GET_STR(content->derived, "kind"), "act")) {
        for (size_t i = 0; i < CX_COUNT_OF(arguments) && given == NULL; i++)
            given = cx_json_get(payload, cx_str_z(arguments[i]));
        cx_import_say_call(content, CX_JSON_GET_STR(content->derived, "call_id"),
                           CX_JSON_GET_STR(content->derived, "tool"), given);
    }
}

/* Events repeat the items of the conversation; only what is nowhere else is said again. */
static void codex_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *payload = cx_json_get_typed(raw, CX_STR("payload"), CX_JSON_OBJECT);
    cx_str type = CX_JSON_GET_STR(raw, "type");
    if (payload == NULL)
        payload = raw;
    cx_str item_type = CX_JSON_GET_STR(payload, "type");
    if (cx_str_is(type, "event_msg")) {
        if (cx_str_is(CX_JSON_GET_STR(content->derived, "kind"), "error"))
            cx_import_say_error(content, CX_JSON_GET_STR(payload, "message"));
    } else if (cx_str_is(type, "session_meta")) {
        cx_import_say_role(content, CX_STR("system"));
        cx_import_say_text(content, CX_JSON_GET_STR(payload, "instructions"));
    } else if (cx_str_is(type, "compacted")) {
        cx_import_say_text(content, CX_JSON_GET_STR(payload, "message"));
    } else {
        say_item(content, payload, item_type);
    }
}

static void codex_done(cx_import_sink *sink)
{
    codex_state *state = sink->state;
    cx_import_index_done(&state->tools, sink->options->alloc);
    cx_import_index_done(&state->names, sink->options->alloc);
}

static bool has_array(const cx_json *record, const char *name)
{
    return cx_json_get_typed(record, cx_str_z(name), CX_JSON_ARRAY) != NULL;
}

/* A bare item has the members of its type; other programs use the same types with other members. */
static bool is_bare_item(const cx_json *record, cx_str type)
{
    bool has_call = CX_JSON_GET(record, "call_id") != NULL;
    if (CX_JSON_GET(record, "message") != NULL || CX_JSON_GET(record, "sessionID") != NULL)
        return false;
    if (cx_str_is(type, "message"))
        return CX_JSON_GET_STR(record, "role").size != 0 && has_array(record, "content");
    if (cx_str_is(type, "reasoning"))
        return has_array(record, "summary") || CX_JSON_GET(record, "encrypted_content") != NULL;
    if (cx_str_is(type, "function_call") || cx_str_is(type, "custom_tool_call"))
        return CX_JSON_GET_STR(record, "name").size != 0 && has_call;
    if (cx_str_is(type, "local_shell_call") || cx_str_is(type, "web_search_call"))
        return CX_JSON_GET(record, "action") != NULL;
    return is_item_type(type) && has_call;
}

static int codex_detect(cx_bytes head, const cx_json *record)
{
    static const char meta[] = "\"session_meta\"", item_name[] = "\"response_item\"";
    if (record != NULL) {
        if (record->type != CX_JSON_OBJECT)
            return 0;
        cx_str type = CX_JSON_GET_STR(record, "type");
        if (type.size == 0)
            return is_old_meta(record) ? 60 : 0;
        if (cx_json_get_typed(record, CX_STR("payload"), CX_JSON_OBJECT) != NULL)
            return cx_import_is_one_of(type, envelopes) ? 90 : 0;
        return is_bare_item(record, type) ? 55 : 0;
    }
    bool found =
        head.size != 0 && (memmem(head.data, head.size, meta, sizeof meta - 1) != NULL ||
                           memmem(head.data, head.size, item_name, sizeof item_name - 1) != NULL);
    return found ? 75 : 0;
}

const cx_import_format cx_import_codex = {
    .info = {"codex", "Codex rollouts",
             "JSON lines {\"timestamp\",\"type\",\"payload\":{...}}, or bare items", true},
    .state_size = sizeof(codex_state),
    .windows = true,
    .line = codex_line,
    .content = codex_content,
    .done = codex_done,
    .detect = codex_detect,
};
