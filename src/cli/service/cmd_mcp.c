/*
 * cmd_mcp.c - `cortex mcp`: the ledger as an MCP server over the standard streams, for agents and
 * editors that start it.
 *
 *   S1  The data directory is opened for reading for each request: this works while others
 *       write, shows what they wrote, and keeps no lock between requests.
 *   S2  One thread reads, and answers requests that need no ledger; another queries the ledger.
 *       A request that is cancelled before its answer gets none.
 *   S3  Standard output carries messages and nothing else.
 *   S4  A tool that writes (--memory-writes), or acts under a scope (--agent), whose violation is
 *       journaled, opens the data directory for writing, or uses the process that owns it, for that
 *       one request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/trace/trace.h"
#include "git/api.h"
#include "server/api.h"

#define WAITING_MAX 64 /* requests that wait for the ledger */
#define READ_STEP ((size_t)64 << 10)

typedef struct job {
    struct job *next;
    cx_arena arena; /* the job itself is in it */
    cx_str message;
    cx_str id; /* its JSON; empty = a batch */
    cx_mcpd_session session;
    bool cancelled;
} job;

typedef struct serving {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *home_path, *index_where, *repo, *runtime_root;
    cx_token token; /* what may be read */
    cx_mcpd_host host;
    cx_mcpd_session session;
    cx_lock lock; /* guards what follows, and the output */
    job *first, *at_work;
    size_t waiting;
    bool ended;                     /* nothing more comes */
    char said[CX_ERR_MESSAGE_SIZE]; /* the last line logged for the question at work */
} serving;

/* --- asking ----------------------------------------------------------------------------------- */

static void keep_message(void *arg, const char *line)
{
    serving *s = arg;
    (void)snprintf(s->said, sizeof s->said, "%s", line);
}

typedef struct opened {
    cx_home *home;
    cx_recorder *recorder;
    cx_runs *runs;
    cx_service *service;
} opened;

static cx_status open_runs(serving *s, opened *o, cx_err *err)
{
    const cx_runs_options options = {.alloc = s->cli->alloc,
                                     .io = s->cli->io,
                                     .repo = s->repo,
                                     .runtime_root = s->runtime_root,
                                     .home_path = s->home_path,
                                     .home = o->home};
    return s->repo == NULL ? CX_SUCCESS : cx_runs_open(&options, &o->runs, err);
}

/* S1 */
static cx_status open_all(serving *s, cx_cli_access access, opened *o, cx_err *err)
{
    const cx_home_options reading = cx_cli_home_options(s->cli, access, NULL);
    const cx_recorder_options recorder = {.alloc = s->cli->alloc};
    CX_TRY(cx_home_open(s->home_path, &reading, &o->home, err));
    CX_TRY(cx_recorder_open(o->home, &recorder, &o->recorder, err));
    CX_TRY(open_runs(s, o, err));
    const cx_service_options service = {
        .alloc = s->cli->alloc,
        .io = s->cli->io,
        .recorder = o->recorder,
        .home_path = s->home_path,
        .index_where = s->index_where,
        .runs = o->runs,
        .log = keep_message,
        .log_arg = s,
    };
    return cx_service_open(&service, &o->service, err);
}

static void close_all(opened *o)
{
    cx_service_close(o->service);
    cx_runs_close(o->runs);
    cx_recorder_close(o->recorder);
    cx_status closed = cx_home_close(o->home, NULL);
    (void)closed; /* nothing was written */
}

/* S1, S4: GET when `body` is NULL. */
static cx_status request_endpoint(serving *s, cx_str target, const cx_str *body, cx_arena *arena,
                                  cx_mcpd_reply *out, cx_err *err)
{
    opened o = {NULL, NULL, NULL, NULL};
    cx_worker worker;
    s->said[0] = 0;
    cx_status status = open_all(s, body == NULL ? CX_CLI_READ : CX_CLI_WRITE, &o, err);
    if (!cx_failed(status)) {
        cx_worker_init(&worker, o.service);
        status = body == NULL ? cx_mcpd_get(&worker, &s->token, target, arena, out, err)
                              : cx_mcpd_post(&worker, &s->token, target, *body, arena, out, err);
        cx_worker_done(&worker);
    }
    if (!cx_failed(status) && out->status >= 500 && s->said[0] != 0)
        out->log = cx_arena_copy_str(arena, cx_str_z(s->said));
    close_all(&o);
    return status;
}

static cx_status get_endpoint(void *arg, cx_str target, cx_arena *arena, cx_mcpd_reply *out,
                              cx_err *err)
{
    return request_endpoint(arg, target, NULL, arena, out, err);
}

static cx_status post_endpoint(void *arg, cx_str target, cx_str body, cx_arena *arena,
                               cx_mcpd_reply *out, cx_err *err)
{
    return request_endpoint(arg, target, &body, arena, out, err);
}

/* --- answering -------------------------------------------------------------------------------- */

/* One line; under the lock. */
static void write_message(serving *s, cx_buf *answer)
{
    if (answer->size == 0)
        return;
    cx_buf_add_byte(answer, '\n');
    if (answer->failed)
        cx_cli_complain("mcp: out of memory: an answer was not sent");
    else
        cx_cli_out_write_exact(&s->cli->out, cx_buf_bytes(answer));
}

static void answer_message(serving *s, cx_mcpd_session *session, cx_str message)
{
    cx_buf answer;
    cx_err err;
    cx_buf_init(&answer, s->cli->alloc);
    if (cx_failed(cx_mcpd_answer(&s->host, session, message, s->cli->alloc, &answer, &err)))
        cx_cli_complain("mcp: %s: an answer was not sent", err.message);
    else {
        cx_lock_enter(&s->lock);
        write_message(s, &answer);
        cx_lock_leave(&s->lock);
    }
    cx_buf_done(&answer);
}

static void write_error(serving *s, int code, const char *why)
{
    cx_buf answer;
    cx_buf_init(&answer, s->cli->alloc);
    cx_mcpd_error(&answer, code, why);
    cx_lock_enter(&s->lock);
    write_message(s, &answer);
    cx_lock_leave(&s->lock);
    cx_buf_done(&answer);
}

static void free_job(job *j)
{
    cx_arena arena = j->arena;
    cx_arena_done(&arena);
}

/* S2: the next job, NULL when all is done. */
static job *next_job(serving *s)
{
    cx_lock_enter(&s->lock);
    while (s->first == NULL && !s->ended)
        cx_lock_wait(&s->lock);
    s->at_work = s->first;
    if (s->first != NULL) {
        s->first = s->first->next;
        s->waiting--;
    }
    cx_lock_leave(&s->lock);
    return s->at_work;
}

static void run_jobs(void *arg)
{
    serving *s = arg;
    for (job *j; (j = next_job(s)) != NULL; free_job(j)) {
        cx_buf answer;
        cx_err err;
        cx_buf_init(&answer, s->cli->alloc);
        cx_status status = j->cancelled ? CX_SUCCESS
                                        : cx_mcpd_answer(&s->host, &j->session, j->message,
                                                         s->cli->alloc, &answer, &err);
        cx_lock_enter(&s->lock);
        if (cx_failed(status))
            cx_cli_complain("mcp: %s: an answer was not sent", err.message);
        else if (!j->cancelled)
            write_message(s, &answer);
        s->at_work = NULL;
        cx_lock_leave(&s->lock);
        cx_buf_done(&answer);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void cancel_job(serving *s, cx_str id)
{
    cx_lock_enter(&s->lock);
    if (s->at_work != NULL && id.size != 0 && cx_str_eq(s->at_work->id, id))
        s->at_work->cancelled = true;
    for (job *j = s->first; j != NULL; j = j->next)
        if (id.size != 0 && cx_str_eq(j->id, id))
            j->cancelled = true;
    cx_lock_leave(&s->lock);
}

/* The message and its id, in the job's own arena. */
static job *make_job(serving *s, cx_str message, cx_str id)
{
    cx_arena arena;
    cx_arena_init(&arena, s->cli->alloc, 0);
    job *j = CX_ARENA_NEW(&arena, job);
    if (j != NULL) {
        *j = (job){.session = s->session};
        j->message = cx_arena_copy_str(&arena, message);
        j->id = cx_arena_copy_str(&arena, id);
    }
    if (j == NULL || j->message.data == NULL || (id.size != 0 && j->id.data == NULL)) {
        cx_arena_done(&arena);
        return NULL;
    }
    j->arena = arena;
    return j;
}

static void queue_job(serving *s, cx_str message, cx_str id)
{
    job *j = make_job(s, message, id);
    bool full = false;
    if (j == NULL) {
        cx_cli_complain("mcp: out of memory: a request gets no answer");
        return;
    }
    cx_lock_enter(&s->lock);
    full = s->waiting >= WAITING_MAX;
    if (!full) {
        job **place = &s->first;
        while (*place != NULL)
            place = &(*place)->next;
        *place = j;
        s->waiting++;
        cx_lock_wake(&s->lock);
    }
    cx_lock_leave(&s->lock);
    if (!full)
        return;
    cx_str text = cx_arena_printf(&j->arena,
                                  "{\"error\":{\"code\":%d,\"message\":\"%d requests are waiting "
                                  "already; try again later\"},\"id\":%.*s,\"jsonrpc\":\"2.0\"}",
                                  CX_MCPD_BUSY, WAITING_MAX, id.size == 0 ? 4 : (int)id.size,
                                  id.size == 0 ? "null" : id.data);
    cx_buf answer;
    cx_buf_init(&answer, s->cli->alloc);
    if (text.data != NULL)
        cx_buf_add_str(&answer, text);
    cx_lock_enter(&s->lock);
    write_message(s, &answer);
    cx_lock_leave(&s->lock);
    cx_buf_done(&answer);
    free_job(j);
}

static void handle_line(serving *s, cx_str line)
{
    cx_arena arena;
    cx_mcpd_inspected look;
    cx_err err;
    while (line.size != 0 && (line.data[line.size - 1] == '\r' || line.data[line.size - 1] == ' '))
        line.size--;
    if (line.size == 0)
        return;
    cx_arena_init(&arena, s->cli->alloc, 0);
    if (cx_failed(cx_mcpd_inspect(line, &arena, &look, &err)))
        cx_cli_complain("mcp: %s: a message was dropped", err.message);
    else if (look.kind == CX_MCPD_CANCELLED)
        cancel_job(s, look.id);
    else if (look.kind == CX_MCPD_SLOW)
        queue_job(s, line, look.id);
    else
        answer_message(s, &s->session, line);
    cx_arena_done(&arena);
}

/* Handles all complete lines of `input`; a line that is too long is skipped. */
static void handle_lines(serving *s, cx_buf *input, bool *passing)
{
    size_t used = 0;
    const uint8_t *end;
    while (used < input->size &&
           (end = memchr(input->data + used, '\n', input->size - used)) != NULL) {
        size_t size = (size_t)(end - (input->data + used));
        if (!*passing && size > CX_MCPD_MESSAGE_MAX)
            write_error(s, CX_MCPD_INVALID, "a message may have 1 MiB");
        else if (!*passing)
            handle_line(s, cx_str_from((const char *)input->data + used, size));
        *passing = false;
        used += size + 1;
    }
    memmove(input->data, input->data + used, input->size - used);
    input->size -= used;
    if (input->size <= CX_MCPD_MESSAGE_MAX)
        return;
    if (!*passing)
        write_error(s, CX_MCPD_INVALID, "a message may have 1 MiB");
    *passing = true;
    input->size = 0;
}

/* The reader of the answers is gone. */
static bool is_deaf(serving *s)
{
    cx_lock_enter(&s->lock);
    bool deaf = s->cli->out.failed;
    cx_lock_leave(&s->lock);
    return deaf;
}

static cx_status read_all(serving *s, cx_err *err)
{
    cx_buf input;
    bool passing = false;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&input, s->cli->alloc);
    for (;;) {
        uint8_t *room = cx_buf_reserve(&input, READ_STEP);
        if (room == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        int64_t got = s->cli->io->read(s->cli->io, CX_FILE_STDIN, room, READ_STEP);
        if (got == -EINTR)
            continue;
        if (got < 0)
            status = cx_fail_os(err, (int)-got, "cannot read standard input");
        if (got <= 0)
            break;
        cx_buf_advance(&input, (size_t)got);
        handle_lines(s, &input, &passing);
        if (is_deaf(s))
            break;
    }
    /* The last line may lack its end. */
    if (!cx_failed(status) && !passing && input.size != 0)
        handle_line(s, cx_buf_str(&input));
    cx_buf_done(&input);
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

/* --repo, or the repository this is started in; without one there are no runs to show. */
static cx_status find_repo(serving *s, cx_err *err)
{
    const char *given = cx_cli_value(s->args, "repo"), *root = getenv(CX_RUN_ROOT_ENV);
    cx_git *git = NULL;
    cx_status status = cx_git_open(given == NULL ? "." : given, NULL, s->cli->alloc, &git, err);
    if (cx_failed(status))
        return given == NULL && status.code != CX_E_NOMEM ? CX_SUCCESS : status;
    cx_str repo = cx_arena_copy_str(&s->cli->arena, cx_str_z(cx_git_worktree(git)));
    if (cx_git_is_linked(git)) /* runs belong to the main checkout */
        repo = cx_arena_printf(&s->cli->arena, "%s/..", cx_git_common_dir(git));
    cx_git_close(git);
    if (repo.data == NULL)
        return cx_fail_nomem(err);
    s->repo = repo.data;
    return cx_run_store_root(s->repo, root, &s->cli->arena, &s->runtime_root, err);
}

/* --agent: whose scopes may be presented. */
static cx_status read_agent(serving *s, cx_err *err)
{
    const char *agent = cx_cli_value(s->args, "agent");
    if (agent == NULL)
        return CX_SUCCESS;
    if (agent[0] == 0 || strlen(agent) > CX_TOKEN_NAME_MAX)
        return cx_fail(err, CX_E_USAGE, "option --agent: expected a name of 1 to %d bytes",
                       CX_TOKEN_NAME_MAX);
    (void)snprintf(s->token.name, sizeof s->token.name, "%s", agent);
    s->token.scopes |= CX_SCOPE_MEMORY_SCOPED;
    return CX_SUCCESS;
}

static cx_status prepare_server(serving *s, cx_err *err)
{
    CX_TRY(cx_cli_home_path(s->cli, s->args, &s->home_path, err));
    cx_facts facts;
    if (cx_cli_has(s->args, "home") && cx_failed(cx_path_facts(s->home_path, true, &facts, NULL)))
        return cx_fail_at(err, CX_E_USAGE, "NoHome", CX_NO_OFFSET,
                          "option --home: %s does not exist; 'cortex init --home %s' makes a data "
                          "directory",
                          s->home_path, s->home_path);
    s->index_where = cx_cli_value(s->args, "db");
    s->token = (cx_token){.name = "mcp",
                          .scopes = CX_SCOPE_READ | CX_SCOPE_RUN_READ,
                          .level = cx_cli_level_option(s->args, "level", CX_LEVEL_FULL),
                          .expires_ns = CX_TIME_NONE};
    if (cx_cli_has(s->args, "memory-writes"))
        s->token.scopes |= CX_SCOPE_MEMORY_WRITE;
    CX_TRY(read_agent(s, err));
    s->host = (cx_mcpd_host){.arg = s,
                             .ask = get_endpoint,
                             .post = post_endpoint,
                             .scopes = s->token.scopes,
                             .writes = cx_cli_has(s->args, "memory-writes")};
    s->session = (cx_mcpd_session)CX_MCPD_SESSION_INIT;
    return find_repo(s, err);
}

static int run_mcp(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    serving s = {.cli = cli, .args = args};
    cx_thread worker;
    if (cx_failed(prepare_server(&s, &err)))
        return cx_cli_fail(cli, "mcp", &err, false);
    if (isatty(CX_FILE_STDIN) == 1)
        cx_cli_complain("mcp: waiting for messages on standard input; an agent or editor starts "
                        "this, see 'cortex help mcp'");
    cx_lock_init(&s.lock);
    if (!cx_thread_start(&worker, run_jobs, &s)) {
        (void)cx_fail(&err, CX_E_IO, "cannot start a thread");
        cx_lock_done(&s.lock);
        return cx_cli_fail(cli, "mcp", &err, false);
    }
    cx_status status = read_all(&s, &err);
    cx_lock_enter(&s.lock);
    s.ended = true;
    cx_lock_wake(&s.lock);
    cx_lock_leave(&s.lock);
    cx_thread_join(&worker);
    cx_lock_done(&s.lock);
    return cx_failed(status) ? cx_cli_fail(cli, "mcp", &err, false) : CX_EXIT_HOLDS;
}

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_DB,
    CX_CLI_OPT(
        "repo", 0, CX_CLI_FILE, "DIR",
        "The git repository whose governed runs are shown; default: the current one, if any."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "The highest level of traces that may be read; below full_traces (the default) "
               "states, memories and proofs, which show contents as they are, are refused."),
    CX_CLI_OPT_FLAG("memory-writes", 0,
                    "Offer the tools that write memories, too: memory_write, memory_update, "
                    "memory_tombstone, memory_edge, memory_attest, scope_make, scope_send."),
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME",
               "The agent that calls: offer the tools that read memories under scopes that were "
               "granted to it (scopes, scope_check, scope_read, scope_find), and with "
               "--memory-writes those that write them."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_mcp = {
    .name = "mcp",
    .purpose = "answer agents and editors over the Model Context Protocol",
    .about =
        "Speaks MCP (2024-11-05 to 2025-11-25, and the stateless 2026-07-28) over standard "
        "input and output; an agent or editor starts it. The tools verify, why, state, diff, "
        "search, prove, show, bisect, "
        "heads, runs, events, roots and seed only read: the data directory is opened for reading, "
        "also "
        "while a server or a run owns it, and nothing is written. With --memory-writes there are "
        "also "
        "tools that write memories, and with --agent tools that act under scopes. Long answers are "
        "truncated "
        "and say how to continue.\n\nA server started with 'cortex serve' answers the same at POST "
        "/mcp. docs/mcp.md has the configuration of common clients.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 standard input ended\n2 usage error\n3 could not be read from, or written to",
    .example = "claude mcp add cortex -- cortex mcp --home ~/.local/share/cortex",
    .run = run_mcp,
};
