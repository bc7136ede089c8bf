/*
 * runner_exec.c - an agent that is a program: started once a turn, prompt on standard input, reply
 * in the file that {output} names, else what its session calls the result (session.h), else the
 * last line of standard output that is a JSON object (run.md §16).  Lines are read while it works:
 * tool calls become events at once.
 *
 * Whole tokens of the template are replaced: {cwd} the work tree, {schema} the schema's file,
 * {output} a file in the scratch folder, {thread} the thread to continue ({thread} and an option
 * before it, such as --resume {thread}, are left out when there is none).
 */
#include "os/api.h"
#include "agent/runner.h"
#include "sandbox/api.h"

#define LINE_BYTES_MAX ((size_t)16 << 20)
#define STDERR_BYTES_MAX ((uint64_t)1 << 20)

typedef struct exec_runner {
    cx_runner base;
    const cx_runner_settings *settings;
    const cx_alloc *alloc;
    const cx_io *io;
} exec_runner;

/* --- argv ------------------------------------------------------------------------------------- */

static bool is_option(const char *token)
{
    return token[0] == '-' && token[1] != 0;
}

#define THREAD_BYTES_MAX 256

/* The agent's own output names the thread: it must not become an option of the agent's program,
 * with which a model that writes that output would lift what the other arguments say. */
static bool is_thread(cx_str id)
{
    for (size_t i = 0; i < id.size; i++)
        if (id.data[i] <= ' ' || id.data[i] > '~')
            return false;
    return id.size != 0 && id.size <= THREAD_BYTES_MAX && id.data[0] != '-';
}

static cx_status expand_argv(exec_runner *x, const cx_runner_turn *turn, const char *output,
                             const char *const **out, bool *out_file, cx_err *err)
{
    const cx_runner_settings *settings = x->settings;
    const char **argv = CX_ARENA_ARRAY(turn->arena, const char *, settings->argv_count + 1);
    size_t count = 0;
    *out_file = false;
    if (argv == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < settings->argv_count; i++) {
        cx_str token = settings->argv[i];
        if (cx_str_is(token, "{thread}") && !is_thread(turn->thread_id)) {
            if (count > 1 && is_option(argv[count - 1]))
                count--;
            continue;
        }
        if (cx_str_is(token, "{thread}"))
            token = turn->thread_id;
        else if (cx_str_is(token, "{cwd}"))
            token = cx_str_z(turn->worktree);
        else if (cx_str_is(token, "{schema}"))
            token = cx_str_z(turn->schema_path);
        else if (cx_str_is(token, "{output}"))
            token = cx_str_z(output), *out_file = true;
        argv[count] = cx_arena_copy_str(turn->arena, token).data;
        if (argv[count++] == NULL)
            return cx_fail_nomem(err);
    }
    argv[count] = NULL;
    *out = argv;
    return CX_SUCCESS;
}

/* --- its output ------------------------------------------------------------------------------- */

typedef struct agent_output {
    exec_runner *runner;
    const cx_runner_host *host;
    const cx_runner_turn *turn;
    cx_session session;
    cx_str last;   /* the last line that is a JSON object; in the turn's arena */
    cx_str thread; /* the first "thread_id" or "session_id" */
} agent_output;

static cx_status read_output_object(agent_output *h, cx_str line, cx_err *err)
{
    cx_arena scratch;
    cx_json value;
    size_t at = 0;
    while (at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'))
        at++;
    if (at == line.size || line.data[at] != '{')
        return CX_SUCCESS;
    cx_arena_init(&scratch, h->turn->arena->alloc, 0);
    cx_status status = CX_SUCCESS;
    if (!cx_failed(cx_run_json_read(line, LINE_BYTES_MAX, &scratch, &value, NULL))) {
        cx_str thread = CX_JSON_GET_STR(&value, "thread_id");
        if (thread.size == 0)
            thread = CX_JSON_GET_STR(&value, "session_id");
        h->last = cx_arena_copy_str(h->turn->arena, line);
        if (h->thread.size == 0 && thread.size != 0)
            h->thread = cx_arena_copy_str(h->turn->arena, thread);
        if (h->last.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_arena_done(&scratch);
    return status;
}

/* A tool call is an event before the agent's next line is read; a shell that the contract denies
 * ends the turn (§5). */
static cx_status on_session_item(void *arg, const cx_session_item *item, cx_err *err)
{
    agent_output *h = arg;
    cx_arena scratch;
    cx_json payload;
    if (h->host->item != NULL)
        CX_TRY(h->host->item(h->host->arg, item, err));
    if (item->kind != CX_SESSION_CALL)
        return CX_SUCCESS;
    if (h->session.counts.calls > CX_RUNNER_TOOLS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooManyTools", CX_NO_OFFSET,
                          "the agent used more than %d tools in one turn", CX_RUNNER_TOOLS_MAX);
    cx_arena_init(&scratch, h->runner->alloc, 0);
    cx_status status = cx_session_call_json(item, &scratch, &payload, err);
    if (!cx_failed(status))
        status = h->host->tool(h->host->arg, &payload, err);
    cx_arena_done(&scratch);
    CX_TRY(status);
    if (item->shell && !h->turn->shell_tool)
        return cx_fail_at(err, CX_E_DENIED, "ShellDenied", CX_NO_OFFSET,
                          "the agent ran a command; tool_permissions.shell is deny");
    return CX_SUCCESS;
}

static cx_status read_output_line(agent_output *h, cx_str line, cx_err *err)
{
    bool is_record;
    CX_TRY(h->host->raw(h->host->arg, cx_str_bytes(line), err));
    CX_TRY(cx_session_read(&h->session, line, on_session_item, h, &is_record, err));
    if (is_record) {
        h->last = (cx_str){NULL, 0}; /* what the session calls its reply is newer */
        return CX_SUCCESS;
    }
    return read_output_object(h, line, err);
}

/* Until the end of its output, or its timeout or cancellation, which cx_sandbox_end reports. */
static cx_status read_output(agent_output *h, cx_sandbox_child *child, cx_err *err)
{
    for (;;) {
        cx_str line;
        bool end;
        cx_status status = cx_spawn_read_line(cx_sandbox_process(child), LINE_BYTES_MAX,
                                              CX_SPAWN_FOREVER, &line, &end, err);
        if (status.code == CX_E_TIMEOUT)
            return CX_SUCCESS;
        CX_TRY(status);
        if (end)
            return CX_SUCCESS;
        CX_TRY(read_output_line(h, line, err));
    }
}

/* The agent wrote the file, so no component of its path may be a link. */
static cx_status read_output_file(const cx_runner_turn *turn, cx_bytes *out, bool *out_there,
                                  cx_err *err)
{
    cx_file folder;
    cx_buf text;
    CX_TRY(cx_folder_open(turn->scratch, &folder, err));
    cx_buf_init(&text, turn->arena->alloc);
    cx_status status = cx_folder_read_file(folder, "output.json", LINE_BYTES_MAX, &text, err);
    *out_there = !cx_failed(status);
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(turn->arena, cx_buf_str(&text));
        *out = cx_str_bytes(copy);
        if (copy.data == NULL)
            status = cx_fail_nomem(err);
    } else if (status.code == CX_E_NOT_FOUND) {
        status = CX_SUCCESS;
    }
    cx_buf_done(&text);
    cx_folder_close(folder);
    return status;
}

/* --- the turn --------------------------------------------------------------------------------- */

static void classify_exit(const cx_runner_turn *turn, const cx_sandbox_result *result,
                          cx_str error_text, cx_runner_reply *out)
{
    if (result->process.cancelled) {
        out->end = CX_RUNNER_CANCELLED;
        out->message = CX_STR("cancelled");
    } else if (result->process.timed_out) {
        out->end = CX_RUNNER_TIMED_OUT;
        out->message = CX_STR("the agent took longer than timeout_sec");
    } else if (result->exit_code != 0) {
        size_t size = error_text.size < 400 ? error_text.size : 400;
        while (size != 0 && (uint8_t)error_text.data[size - 1] <= 0x20)
            size--;
        out->end = CX_RUNNER_FAILED;
        out->message =
            cx_arena_printf(turn->arena, "the agent ended with exit code %d%s%.*s",
                            result->exit_code, size == 0 ? "" : ": ", (int)size, error_text.data);
    }
}

static cx_status set_session_reply(agent_output *h, cx_bytes *out, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(h->turn->arena, cx_buf_str(&h->session.reply));
    *out = cx_str_bytes(copy);
    return copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status make_exec_reply(agent_output *h, bool from_file, cx_runner_reply *out, cx_err *err)
{
    const cx_runner_turn *turn = h->turn;
    bool has_session = h->session.reply.size != 0 && !h->session.reply_failed;
    bool has_reply = h->last.size != 0 || has_session;
    if (from_file)
        CX_TRY(read_output_file(turn, &out->body, &has_reply, err));
    else if (h->last.size != 0)
        out->body = cx_str_bytes(h->last);
    else if (has_session)
        CX_TRY(set_session_reply(h, &out->body, err));
    if (h->session.failure.size != 0) {
        cx_str why = cx_buf_str(&h->session.failure);
        out->end = CX_RUNNER_FAILED;
        out->message = cx_arena_printf(turn->arena, "the agent reports that it failed: %.*s",
                                       why.size < 400 ? (int)why.size : 400, why.data);
    } else if (!has_reply) {
        out->end = CX_RUNNER_FAILED;
        out->message = from_file ? CX_STR("the agent wrote no {output} file")
                                 : CX_STR("the agent printed no line that is a JSON object");
    }
    return CX_SUCCESS;
}

/* What is known of the session also when the turn has failed. */
static cx_status set_session_facts(agent_output *h, cx_runner_reply *out, cx_err *err)
{
    cx_str thread = h->thread.size != 0 ? h->thread : cx_buf_str(&h->session.thread);
    cx_json *counts = CX_ARENA_NEW(h->turn->arena, cx_json);
    out->thread_id = cx_arena_copy_str(h->turn->arena, thread);
    if (counts == NULL || (thread.size != 0 && out->thread_id.data == NULL))
        return cx_fail_nomem(err);
    if (h->session.format == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_session_counts_json(&h->session, h->turn->arena, counts, err));
    out->session = counts;
    return CX_SUCCESS;
}

static cx_status run_program(agent_output *h, cx_sandbox_spec *spec, cx_sandbox_result *result,
                             cx_err *err)
{
    cx_sandbox_child *child;
    cx_err unused;
    CX_TRY(cx_sandbox_start(h->turn->box, spec, &child, err));
    cx_status status = read_output(h, child, err);
    cx_status ended = cx_sandbox_end(child, cx_failed(status) ? 0 : h->turn->timeout_ms, result,
                                     cx_failed(status) ? &unused : err);
    return cx_failed(status) ? status : ended;
}

static cx_status run_exec_turn(cx_runner *self, const cx_runner_host *host,
                               const cx_runner_turn *turn, cx_runner_reply *out, cx_err *err)
{
    exec_runner *x = (exec_runner *)self;
    cx_sandbox_spec spec = *turn->sandbox;
    cx_sandbox_result result;
    agent_output h = {.runner = x, .host = host, .turn = turn};
    cx_buf error_text;
    bool from_file;
    cx_str output = cx_arena_printf(turn->arena, "%s/output.json", turn->scratch);
    memset(out, 0, sizeof *out);
    if (output.data == NULL)
        return cx_fail_nomem(err);
    (void)x->io->unlink(x->io, output.data); /* the file of the previous turn */
    CX_TRY(expand_argv(x, turn, output.data, &spec.argv, &from_file, err));
    cx_buf_init(&error_text, x->alloc);
    cx_session_init(&h.session, x->alloc);
    spec.path = turn->program;
    spec.in = CX_SPAWN_IN_BYTES;
    spec.input = (cx_bytes){(const uint8_t *)turn->prompt, turn->prompt_size};
    spec.out = (cx_spawn_output){.to = CX_SPAWN_OUT_LINES, .file = CX_FILE_NONE};
    spec.out.limit_bytes = 2 * LINE_BYTES_MAX; /* that were not read yet */
    spec.errout = cx_spawn_to_buf(&error_text, STDERR_BYTES_MAX);
    spec.errout.limit_fails = false;
    spec.timeout_ms = turn->timeout_ms;
    spec.cancel = turn->cancel;
    cx_status status = run_program(&h, &spec, &result, err);
    if (!cx_failed(status))
        classify_exit(turn, &result, cx_buf_str(&error_text), out);
    if (!cx_failed(status))
        status = set_session_facts(&h, out, err);
    if (!cx_failed(status) && out->end == CX_RUNNER_OK)
        status = make_exec_reply(&h, from_file, out, err);
    cx_session_done(&h.session);
    cx_buf_done(&error_text);
    return status;
}

static cx_status start_exec(cx_runner *self, const cx_runner_host *host, const cx_runner_turn *turn,
                            cx_err *err)
{
    (void)self;
    (void)host;
    (void)turn;
    (void)err;
    return CX_SUCCESS;
}

static void stop_exec(cx_runner *self)
{
    exec_runner *x = (exec_runner *)self;
    cx_alloc_free(x->alloc, x, sizeof *x);
}

cx_status cx_runner_exec_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                              const cx_io *io, cx_runner **out, cx_err *err)
{
    if (settings->argv_count == 0)
        return cx_fail(err, CX_E_FORMAT, "the configuration of the runner has no argv");
    exec_runner *x = cx_alloc_zeroed(alloc, 1, sizeof *x);
    if (x == NULL)
        return cx_fail_nomem(err);
    x->settings = settings;
    x->alloc = alloc;
    x->io = io;
    x->base = (cx_runner){.name = CX_STR(CX_RUNNER_NAME_EXEC),
                          .argv = settings->argv,
                          .argv_count = settings->argv_count,
                          .network = settings->network,
                          .start = start_exec,
                          .turn = run_exec_turn,
                          .stop = stop_exec};
    *out = &x->base;
    return CX_SUCCESS;
}
