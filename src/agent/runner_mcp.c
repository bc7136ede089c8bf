/*
 * runner_mcp.c - an agent run by an MCP server that the governor starts in the sandbox (run.md
 * §16): the tools `codex` and `codex-reply`, whose arguments are set only here.
 */
#include "agent/mcp_agent.h"
#include "sandbox/api.h"

#include "base/api.h"

#define TOOL_NEW "codex"
#define TOOL_CONTINUE "codex-reply"

enum {
    CONNECT_MS = 20000,
    CLOSE_MS = 5000,
    TURNS_MAX = 12, /* the first, ten retries, and time to end */
    ERRORS_BYTES_MAX = 64 << 10
};

typedef struct mcp_runner {
    cx_runner base;
    const cx_runner_settings *settings;
    const cx_alloc *alloc;
    const cx_io *io;
    cx_arena arena; /* of what lives from start to stop */
    cx_sandbox_child *child;
    cx_mcp *client;
    cx_buf error_text;         /* the server's standard error */
    const atomic_bool *cancel; /* the run's, which outlives its turns */
    /* Of the current turn. */
    const cx_runner_host *host;
    const cx_runner_turn *turn;
    cx_buf thread; /* as named by notifications */
    cx_session session;
    uint32_t tools_used;
    bool used_shell; /* although the shell is denied */
} mcp_runner;

static const cx_str tools_needed[] = {CX_STR(TOOL_NEW)};

static bool is_cancelled(const mcp_runner *m)
{
    return m->cancel != NULL && atomic_load(m->cancel);
}

/* --- lines of the child ----------------------------------------------------------------------- */

/* A cancelled child is killed at any moment, which may appear as a timeout, a broken pipe, or the
 * end of its output. */
static cx_status map_child_status(const mcp_runner *m, cx_status status, bool ended, cx_err *err)
{
    if ((cx_failed(status) || ended) && is_cancelled(m))
        return cx_fail_at(err, CX_E_BUSY, "Cancelled", CX_NO_OFFSET, "the run was cancelled");
    return status;
}

static cx_status send_child_line(void *arg, cx_bytes line, uint64_t timeout_ms, cx_err *err)
{
    mcp_runner *m = arg;
    cx_status status = cx_spawn_write(cx_sandbox_process(m->child), line, timeout_ms, err);
    return map_child_status(m, status, false, err);
}

static cx_status receive_child_line(void *arg, size_t limit_bytes, uint64_t timeout_ms,
                                    cx_str *out_line, bool *out_end, cx_err *err)
{
    mcp_runner *m = arg;
    cx_status status = cx_spawn_read_line(cx_sandbox_process(m->child), limit_bytes, timeout_ms,
                                          out_line, out_end, err);
    return map_child_status(m, status, !cx_failed(status) && *out_end, err);
}

/* --- requests and notifications of the server ------------------------------------------------- */

static cx_status on_raw(void *arg, cx_bytes line, cx_err *err)
{
    mcp_runner *m = arg;
    return m->host->raw(m->host->arg, line, err);
}

static cx_status on_request(void *arg, cx_str method, const cx_json *params, cx_arena *arena,
                            cx_mcp_answer *out, cx_err *err)
{
    mcp_runner *m = arg;
    cx_runner_request request;
    cx_mcp_request_class asks;
    bool granted = false;
    CX_TRY(cx_mcp_read_request(method, params, arena, &asks, &request, err));
    if (asks == CX_MCP_REQUEST_UNSUPPORTED)
        return CX_SUCCESS; /* `out` is a rejection by default */
    CX_TRY(m->host->ask(m->host->arg, &request, &granted, err));
    return cx_mcp_make_answer(&request, granted, arena, out, err);
}

/* Tool calls are events already (cx_mcp_read_tool). */
static cx_status on_session_item(void *arg, const cx_session_item *item, cx_err *err)
{
    mcp_runner *m = arg;
    return m->host->item == NULL ? CX_SUCCESS : m->host->item(m->host->arg, item, err);
}

static cx_status on_notified(void *arg, cx_str method, const cx_json *params, cx_err *err)
{
    mcp_runner *m = arg;
    cx_arena scratch;
    cx_json payload;
    bool is_tool, is_shell;
    cx_str thread = cx_mcp_read_thread(method, params);
    if (thread.size != 0 && thread.size <= 256) {
        cx_buf_clear(&m->thread);
        cx_buf_add_str(&m->thread, thread);
        CX_TRY(cx_buf_check(&m->thread, err));
    }
    cx_arena_init(&scratch, m->alloc, 0);
    cx_status status =
        cx_mcp_read_tool(method, params, &scratch, &is_tool, &is_shell, &payload, err);
    if (!cx_failed(status) && is_tool) {
        if (++m->tools_used > CX_RUNNER_TOOLS_MAX)
            status =
                cx_fail_at(err, CX_E_LIMIT, "TooManyTools", CX_NO_OFFSET,
                           "the agent used more than %d tools in one turn", CX_RUNNER_TOOLS_MAX);
        else
            status = m->host->tool(m->host->arg, &payload, err);
        m->used_shell = m->used_shell || (is_shell && !m->turn->shell_tool);
    }
    if (!cx_failed(status) && params != NULL && cx_str_is(method, "codex/event"))
        status = cx_session_read_value(&m->session, params, on_session_item, m, err);
    cx_arena_done(&scratch);
    return status;
}

/* --- starting --------------------------------------------------------------------------------- */

static cx_status start_child(mcp_runner *m, const cx_runner_turn *turn, cx_err *err)
{
    const cx_runner_settings *settings = m->settings;
    cx_sandbox_spec spec = *turn->sandbox;
    const char **argv = CX_ARENA_ARRAY(&m->arena, const char *, settings->argv_count + 1);
    if (argv == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < settings->argv_count; i++) {
        argv[i] = cx_arena_copy_str(&m->arena, settings->argv[i]).data;
        if (argv[i] == NULL)
            return cx_fail_nomem(err);
    }
    argv[settings->argv_count] = NULL;
    spec.argv = argv;
    spec.path = turn->program;
    spec.in = CX_SPAWN_IN_PIPE;
    spec.out = (cx_spawn_output){.to = CX_SPAWN_OUT_LINES, .file = CX_FILE_NONE};
    spec.out.limit_bytes = 2 * CX_MCP_LINE_BYTES_MAX; /* buffered output, while this side writes */
    spec.errout = cx_spawn_to_buf(&m->error_text, ERRORS_BYTES_MAX);
    spec.errout.limit_fails = false;
    spec.timeout_ms = turn->timeout_ms > UINT64_MAX / TURNS_MAX ? 0 : turn->timeout_ms * TURNS_MAX;
    spec.cancel = turn->cancel;
    return cx_sandbox_start(turn->box, &spec, &m->child, err);
}

/* The last line of the server's standard error; may be empty. */
static cx_str last_error_line(const mcp_runner *m)
{
    cx_str message = cx_buf_str(&m->error_text);
    while (message.size != 0 &&
           (message.data[message.size - 1] == '\n' || message.data[message.size - 1] == '\r'))
        message.size--;
    size_t start = message.size;
    while (start != 0 && message.data[start - 1] != '\n')
        start--;
    return message.size == 0 ? message : cx_str_from(message.data + start, message.size - start);
}

static cx_status fail_with_end(const mcp_runner *m, const cx_mcp_end *end, cx_err *err)
{
    static const cx_code codes[] = {[CX_MCP_OK] = CX_OK,
                                    [CX_MCP_BROKEN] = CX_E_FORMAT,
                                    [CX_MCP_TIMED_OUT] = CX_E_TIMEOUT,
                                    [CX_MCP_CANCELLED] = CX_E_BUSY,
                                    [CX_MCP_TOO_MUCH] = CX_E_LIMIT};
    cx_str error_text = last_error_line(m);
    int size = error_text.size > 200 ? 200 : (int)error_text.size;
    return cx_fail(err, codes[end->kind], "%s%s%.*s", end->message,
                   size == 0 ? "" : "; its last error line: ", size,
                   size == 0 ? "" : error_text.data);
}

static void set_turn(mcp_runner *m, const cx_runner_host *host, const cx_runner_turn *turn)
{
    m->host = host;
    m->turn = turn;
    m->cancel = turn->cancel;
    m->tools_used = 0;
    m->used_shell = false;
    cx_buf_clear(&m->thread);
}

static cx_status connect_server(mcp_runner *m, const cx_runner_turn *turn, cx_err *err)
{
    const cx_mcp_options options = {.alloc = m->alloc,
                                    .io = m->io,
                                    .lines = {m, send_child_line, receive_child_line},
                                    .host = {m, on_raw, on_request, on_notified},
                                    .client_name = "cortex",
                                    .client_version = CX_VERSION};
    cx_mcp_end end;
    uint32_t connect_ms = m->settings->connect_ms == 0 ? CONNECT_MS : m->settings->connect_ms;
    CX_TRY(cx_mcp_open(&options, &m->client, err));
    CX_TRY(cx_mcp_connect(m->client, connect_ms, &end, err));
    if (end.kind != CX_MCP_OK)
        return fail_with_end(m, &end, err);
    if (!cx_mcp_has_tool(m->client, CX_STR(TOOL_NEW)))
        return cx_fail(err, CX_E_FORMAT, "the server has no tool '%s'", TOOL_NEW);
    if (turn->thread_id.size != 0 && !cx_mcp_has_tool(m->client, CX_STR(TOOL_CONTINUE)))
        return cx_fail(err, CX_E_FORMAT, "the server has no tool '%s' to continue a thread with",
                       TOOL_CONTINUE);
    return CX_SUCCESS;
}

static cx_status start_mcp(cx_runner *self, const cx_runner_host *host, const cx_runner_turn *turn,
                           cx_err *err)
{
    mcp_runner *m = (mcp_runner *)self;
    set_turn(m, host, turn);
    CX_TRY(start_child(m, turn, err));
    return connect_server(m, turn, err);
}

/* --- the turn --------------------------------------------------------------------------------- */

static void put_str(cx_json_list *object, const char *name, cx_str text)
{
    cx_json_list_put(object, cx_str_z(name), cx_json_make_str(text));
}

/* The configured `config`, and shell tools off when the contract denies them (§5). */
static cx_status put_config(mcp_runner *m, const cx_runner_turn *turn, cx_json_list *arguments,
                            cx_err *err)
{
    static const char shell_tool[] = "features.shell_tool";
    const cx_json *given = m->settings->config;
    cx_json_list config = cx_json_list_begin(turn->arena);
    cx_json value;
    bool has_given = given != NULL && given->type == CX_JSON_OBJECT;
    if (!has_given && turn->shell_tool)
        return CX_SUCCESS;
    for (uint32_t i = 0; has_given && i < given->count; i++) {
        cx_str name = cx_json_text(&given->members[i].name);
        if (turn->shell_tool || !cx_str_is(name, shell_tool))
            cx_json_list_put(&config, name, given->members[i].value);
    }
    if (!turn->shell_tool)
        cx_json_list_put(&config, CX_STR(shell_tool), cx_json_make_bool(false));
    CX_TRY(cx_json_list_end_object(&config, &value, err));
    cx_json_list_put(arguments, CX_STR("config"), value);
    return CX_SUCCESS;
}

static cx_status make_arguments(mcp_runner *m, const cx_runner_turn *turn, cx_json *out,
                                cx_err *err)
{
    cx_json_list arguments = cx_json_list_begin(turn->arena);
    put_str(&arguments, "prompt", cx_str_from(turn->prompt, turn->prompt_size));
    if (turn->thread_id.size != 0) {
        /* Older servers have only this name for the thread, and require it in the schema. */
        bool older =
            cx_mcp_tool_requires(m->client, CX_STR(TOOL_CONTINUE), CX_STR("conversationId"));
        put_str(&arguments, older ? "conversationId" : "threadId", turn->thread_id);
        return cx_json_list_end_object(&arguments, out, err);
    }
    put_str(&arguments, "cwd", cx_str_z(turn->worktree));
    put_str(&arguments, "sandbox", turn->sandbox_mode);
    if (turn->approval_policy.size != 0)
        put_str(&arguments, "approval-policy", turn->approval_policy);
    if (m->settings->model.size != 0)
        put_str(&arguments, "model", m->settings->model);
    CX_TRY(put_config(m, turn, &arguments, err));
    return cx_json_list_end_object(&arguments, out, err);
}

static cx_status report_tool_call(mcp_runner *m, const cx_runner_turn *turn, const char *tool,
                                  cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(turn->arena);
    cx_json value;
    put_str(&payload, "tool", cx_str_z(tool));
    if (m->settings->profile.size != 0)
        put_str(&payload, "server", m->settings->profile);
    CX_TRY(cx_json_list_end_object(&payload, &value, err));
    return m->host->tool(m->host->arg, &value, err);
}

static cx_status set_failed_reply(cx_runner_reply *out, cx_runner_end end, cx_arena *arena,
                                  cx_str why, cx_err *err)
{
    out->end = end;
    out->message = cx_arena_copy_str(arena, why);
    return out->message.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_runner_end runner_end_of(cx_mcp_end_kind kind)
{
    switch (kind) {
    case CX_MCP_TIMED_OUT: return CX_RUNNER_TIMED_OUT;
    case CX_MCP_CANCELLED: return CX_RUNNER_CANCELLED;
    default: return CX_RUNNER_FAILED;
    }
}

/* The reply and the thread: from structuredContent, else from the text and the notifications. */
static cx_status read_agent_reply(mcp_runner *m, const cx_runner_turn *turn,
                                  const cx_mcp_result *result, cx_runner_reply *out, cx_err *err)
{
    cx_str body = result->text, thread = cx_buf_str(&m->thread);
    if (result->structured != NULL) {
        const cx_json *content =
            cx_json_get_typed(result->structured, CX_STR("content"), CX_JSON_STRING);
        if (content == NULL)
            return set_failed_reply(out, CX_RUNNER_FAILED, turn->arena,
                                    CX_STR("the server's structuredContent has no text 'content'"),
                                    err);
        body = cx_json_text(content);
        if (CX_JSON_GET_STR(result->structured, "threadId").size != 0)
            thread = CX_JSON_GET_STR(result->structured, "threadId");
    }
    if (turn->thread_id.size != 0 && thread.size != 0 && !cx_str_eq(thread, turn->thread_id))
        return set_failed_reply(out, CX_RUNNER_FAILED, turn->arena,
                                CX_STR("the server answered in another thread"), err);
    if (thread.size == 0)
        thread = turn->thread_id;
    cx_str copy = cx_arena_copy_str(turn->arena, body);
    out->thread_id = cx_arena_copy_str(turn->arena, thread);
    if (copy.data == NULL || out->thread_id.data == NULL)
        return cx_fail_nomem(err);
    out->body = cx_str_bytes(copy);
    return CX_SUCCESS;
}

static cx_status classify_result(mcp_runner *m, const cx_runner_turn *turn,
                                 const cx_mcp_result *result, cx_runner_reply *out, cx_err *err)
{
    if (m->used_shell)
        return set_failed_reply(out, CX_RUNNER_VIOLATED, turn->arena,
                                CX_STR("the agent ran a command; tool_permissions.shell is deny"),
                                err);
    if (result->refused || result->is_error) {
        cx_str why = result->refused ? result->message : result->text;
        cx_str text =
            cx_arena_printf(turn->arena, "the agent failed: %.*s",
                            why.size > 400 ? 400 : (int)why.size, why.size == 0 ? "" : why.data);
        if (text.data == NULL)
            return cx_fail_nomem(err);
        return set_failed_reply(out, CX_RUNNER_FAILED, turn->arena, text, err);
    }
    return read_agent_reply(m, turn, result, out, err);
}

static cx_status run_mcp_turn(cx_runner *self, const cx_runner_host *host,
                              const cx_runner_turn *turn, cx_runner_reply *out, cx_err *err)
{
    mcp_runner *m = (mcp_runner *)self;
    const char *tool = turn->thread_id.size == 0 ? TOOL_NEW : TOOL_CONTINUE;
    cx_json arguments;
    cx_mcp_result result;
    cx_mcp_end end;
    cx_err why;
    memset(out, 0, sizeof *out);
    set_turn(m, host, turn);
    if (m->client == NULL || !cx_mcp_has_tool(m->client, cx_str_z(tool)))
        return set_failed_reply(out, CX_RUNNER_FAILED, turn->arena,
                                CX_STR("the server has no tool to continue a thread with"), err);
    CX_TRY(make_arguments(m, turn, &arguments, err));
    CX_TRY(report_tool_call(m, turn, tool, err));
    cx_status status = cx_mcp_call(m->client, cx_str_z(tool), &arguments, turn->timeout_ms,
                                   turn->arena, &result, &end, err);
    if (status.code == CX_E_LIMIT && err->tag != NULL && strcmp(err->tag, "TooManyTools") == 0)
        return set_failed_reply(out, CX_RUNNER_FAILED, turn->arena, cx_str_z(err->message), err);
    CX_TRY(status);
    if (end.kind != CX_MCP_OK) {
        (void)fail_with_end(m, &end, &why).code;
        return set_failed_reply(out, m->used_shell ? CX_RUNNER_VIOLATED : runner_end_of(end.kind),
                                turn->arena, cx_str_z(why.message), err);
    }
    return classify_result(m, turn, &result, out, err);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void stop_mcp(cx_runner *self)
{
    mcp_runner *m = (mcp_runner *)self;
    uint32_t close_ms = m->settings->close_ms == 0 ? CLOSE_MS : m->settings->close_ms;
    cx_err unused;
    cx_mcp_close(m->client);
    if (m->child != NULL) {
        /* The exit has no effect any more: the gates have checked the result. */
        cx_status status = cx_sandbox_end(m->child, is_cancelled(m) ? 0 : close_ms, NULL, &unused);
        (void)status;
    }
    cx_buf_done(&m->error_text);
    cx_buf_done(&m->thread);
    cx_session_done(&m->session);
    cx_arena_done(&m->arena);
    cx_alloc_free(m->alloc, m, sizeof *m);
}

cx_status cx_runner_mcp_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                             const cx_io *io, cx_runner **out, cx_err *err)
{
    if (settings->argv_count == 0)
        return cx_fail(err, CX_E_FORMAT, "the configuration of the runner has no argv");
    mcp_runner *m = cx_alloc_zeroed(alloc, 1, sizeof *m);
    if (m == NULL)
        return cx_fail_nomem(err);
    m->settings = settings;
    m->alloc = alloc;
    m->io = io;
    cx_arena_init(&m->arena, alloc, 0);
    cx_buf_init(&m->error_text, alloc);
    cx_buf_init(&m->thread, alloc);
    cx_session_init(&m->session, alloc);
    m->base = (cx_runner){.name = CX_STR(CX_RUNNER_NAME_MCP),
                          .tools = tools_needed,
                          .tool_count = CX_COUNT_OF(tools_needed),
                          .argv = settings->argv,
                          .argv_count = settings->argv_count,
                          .network = settings->network,
                          .start = start_mcp,
                          .turn = run_mcp_turn,
                          .stop = stop_mcp};
    *out = &m->base;
    return CX_SUCCESS;
}
