/*
 * cmd_mcp_gateway.c - `cortex mcp-gateway`: between an agent and an MCP server
 * (docs/formats/gateway.md).
 *
 *   W1  Standard output carries messages and nothing else.
 *   W2  The data directory is open for the time of one decision, never while anyone is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "cli/gateway/gateway.h"
#include "cli/live/live.h"
#include "os/api.h"
#include "recorder/api.h"

#define OPEN_WAIT_NS UINT64_C(10000000000) /* for a data directory that another process writes */

/* --- the data directory ----------------------------------------------------------------------- */

/* W2 */
static cx_status open_home(void *arg, cx_home **out, cx_err *err)
{
    cx_gateway_job *job = arg;
    const cx_io *io = job->cli->io;
    const cx_home_options options = cx_cli_home_options(job->cli, CX_CLI_WRITE, NULL);
    uint64_t end = io->monotonic_ns(io) + OPEN_WAIT_NS;
    cx_status status;
    do {
        status = cx_home_open(job->home, &options, out, err);
        if (status.code != CX_E_BUSY || io->monotonic_ns(io) >= end)
            break;
        cx_thread_sleep_ms(2);
    } while (true);
    return status;
}

static void close_home(void *arg, cx_home *home)
{
    cx_err ignored;
    (void)arg;
    /* What was committed is on the disk; tables are brought up to date later. */
    cx_status closed = cx_home_close(home, &ignored);
    (void)closed;
}

static void say_line(void *arg, cx_str line)
{
    cx_buf shown;
    (void)arg;
    cx_buf_init(&shown, cx_alloc_default());
    cx_shown_add(&shown, line);
    const char *text = cx_buf_z(&shown);
    if (text != NULL)
        cx_cli_complain("mcp-gateway: %s", text);
    cx_buf_done(&shown);
}

/* --- options ---------------------------------------------------------------------------------- */

/* The words of the command line, each with a zero byte after it, so that no two lists are
 * alike. */
static cx_status target_of(cx_gateway_job *job, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, job->cli->alloc);
    cx_buf_add_z(&text, job->url == NULL ? "" : job->url);
    for (size_t i = 0; i < job->args->operand_count; i++) {
        cx_buf_add_z(&text, job->args->operands[i]);
        cx_buf_add_byte(&text, 0);
    }
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        job->options.target = cx_arena_copy_str(&job->cli->arena, cx_buf_str(&text));
        if (job->options.target.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status name_of(cx_gateway_job *job, cx_err *err)
{
    const char *given = cx_cli_value(job->args, "name");
    cx_err why;
    if (given != NULL) {
        job->options.name = cx_str_z(given);
    } else if (job->url != NULL) { /* the host */
        const char *host = strstr(job->url, "//") + 2;
        job->options.name = cx_str_from(host, strcspn(host, ":/?"));
    } else {
        const char *program = job->args->operands[0], *slash = strrchr(program, '/');
        job->options.name = cx_str_z(slash != NULL ? slash + 1 : program);
    }
    if (cx_failed(cx_gateway_check_name(job->options.name, &why)))
        return cx_fail(err, CX_E_USAGE, "%s: %s",
                       given != NULL ? "option --name" : "the server has no name; give --name",
                       why.message);
    return CX_SUCCESS;
}

/* NAME-20260102T030405Z-89abcdef */
static cx_status new_session(cx_gateway_job *job, cx_err *err)
{
    uint8_t random[4];
    char digits[9], time[28];
    const cx_io *io = job->cli->io;
    if (io->random(io, random, sizeof random) != 0)
        return cx_fail(err, CX_E_IO, "the system gives no random bytes");
    cx_hex_encode(cx_bytes_from(random, sizeof random), digits);
    cx_run_time_text((int64_t)io->wall_ns(io), time);
    job->options.session = cx_arena_printf(
        &job->cli->arena, "%.*s-%.4s%.2s%.2sT%.2s%.2s%.2sZ-%.8s", (int)job->options.name.size,
        job->options.name.data, time, time + 5, time + 8, time + 11, time + 14, time + 17, digits);
    job->options.live.agent = CX_LIVE_MCP;
    job->options.own_session = true;
    return job->options.session.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* AGENT:ID or session:AGENT:ID, as an agent's session is named. */
static cx_status agent_session(cx_gateway_job *job, const char *given, cx_err *err)
{
    cx_str agent, actor = cx_str_z(given);
    cx_err why;
    if (!cx_live_actor_is_session(actor))
        actor = cx_arena_printf(&job->cli->arena, "session:%s", given);
    if (actor.data == NULL)
        return cx_fail_nomem(err);
    cx_status status =
        cx_live_actor_split(actor, &job->cli->arena, &agent, &job->options.session, &why);
    if (!cx_failed(status))
        job->options.live.agent = cx_live_agent_parse(agent);
    if (cx_failed(status) || job->options.live.agent == CX_LIVE_AGENT_COUNT)
        return cx_fail(err, CX_E_USAGE,
                       "CORTEX_SESSION: found \"%s\", expected AGENT:ID such as claude-code:3f2a",
                       given);
    return CX_SUCCESS;
}

static cx_status list_of(cx_gateway_job *job, const char *option, cx_str_list *out, cx_err *err)
{
    const cx_str *items;
    size_t count;
    CX_TRY(cx_cli_all_values(job->cli, job->args, option, &items, &count, err));
    *out = (cx_str_list){items, count};
    return CX_SUCCESS;
}

static cx_status real_path(cx_gateway_job *job, const char *path, const char **out)
{
    cx_buf real;
    cx_err missing;
    cx_buf_init(&real, job->cli->alloc);
    cx_status status = cx_path_real(path, &real, &missing);
    if (!cx_failed(status)) {
        cx_str kept = cx_arena_copy_str(&job->cli->arena, cx_buf_str(&real));
        if (kept.data != NULL)
            *out = kept.data;
    }
    cx_buf_done(&real);
    return status;
}

/* Whether what is sent there stays on this machine. */
static bool is_loopback(const char *url)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = strstr(url, "//") + 2;
    for (size_t i = 0; i < CX_COUNT_OF(hosts); i++) {
        size_t size = strlen(hosts[i]);
        if (strncmp(host, hosts[i], size) == 0 && strchr(":/?", host[size]) != NULL)
            return true;
    }
    return false;
}

/* "NAME=VARIABLE" becomes "NAME: value"; secrets are in no command line. */
static cx_status read_header(cx_gateway_job *job, cx_str given, const char **out, cx_err *err)
{
    const char *equals = memchr(given.data, '=', given.size);
    size_t size = equals == NULL ? 0 : (size_t)(equals - given.data);
    bool good = size != 0;
    for (size_t i = 0; i < size; i++) {
        char c = given.data[i];
        good &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '-' || c == '_';
    }
    const char *value = good ? getenv(equals + 1) : NULL;
    if (!good)
        return cx_fail(err, CX_E_USAGE, "option --header: expected NAME=VARIABLE");
    for (const char *at = value; at != NULL && *at != 0; at++)
        good &= (uint8_t)*at >= ' ' && *at != 127;
    if (value == NULL || !good)
        return cx_fail(err, CX_E_USAGE, "option --header: the variable %s %s", equals + 1,
                       value == NULL ? "is not set" : "has control characters in it");
    cx_str line = cx_arena_printf(&job->cli->arena, "%.*s: %s", (int)size, given.data, value);
    *out = line.data;
    return line.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status read_url(cx_gateway_job *job, cx_err *err)
{
    cx_str_list given;
    job->url = cx_cli_value(job->args, "url");
    CX_TRY(list_of(job, "header", &given, err));
    if ((job->url == NULL) == (job->args->operand_count == 0))
        return cx_fail(err, CX_E_USAGE, "expected either --url or a server's command line");
    if (job->url == NULL && given.count != 0)
        return cx_fail(err, CX_E_USAGE, "--header goes with --url");
    if (job->url == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_http_post_check_url(job->url, err));
    if (given.count > CX_GATEWAY_HEADERS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --header: at most %d", CX_GATEWAY_HEADERS_MAX);
    if (given.count != 0 && strncmp(job->url, "https:", 6) != 0 && !is_loopback(job->url))
        return cx_fail(err, CX_E_USAGE,
                       "--header would be sent unencrypted to another machine: expected an address "
                       "with https://");
    for (size_t i = 0; i < given.count; i++)
        CX_TRY(read_header(job, given.items[i], &job->headers[i], err));
    job->header_count = given.count;
    return CX_SUCCESS;
}

static cx_status read_options(cx_gateway_job *job, cx_err *err)
{
    const char *mode = cx_cli_value(job->args, "mode"), *session = getenv("CORTEX_SESSION");
    const char *cwd = "";
    uint64_t wait = cx_cli_number(job->args, "wait", 0);
    cx_gateway_options *o = &job->options;
    *o = (cx_gateway_options){.alloc = job->cli->alloc,
                              .io = job->cli->io,
                              .arg = job,
                              .open_home = open_home,
                              .close_home = close_home,
                              .say = say_line};
    o->live.user_home = getenv("HOME");
    o->live.wait_ms = wait * 1000;
    if (mode != NULL && !cx_live_mode_parse(cx_str_z(mode), &o->live.mode))
        return cx_fail(err, CX_E_USAGE, "option --mode: expected observe, ask or enforce");
    if (wait > CX_GATEWAY_WAIT_S_MAX)
        return cx_fail(err, CX_E_USAGE, "option --wait: at most 3600 seconds");
    CX_TRY(read_url(job, err));
    o->no_batches = job->url != NULL;
    CX_TRY(name_of(job, err));
    CX_TRY(target_of(job, err));
    CX_TRY(list_of(job, "hide", &o->hide, err));
    CX_TRY(list_of(job, "refuse", &o->refuse, err));
    CX_TRY(session != NULL && session[0] != 0 ? agent_session(job, session, err)
                                              : new_session(job, err));
    CX_TRY(cx_cli_home_path(job->cli, job->args, &job->home, err));
    (void)!cx_failed(real_path(job, job->home, &job->home));
    (void)!cx_failed(real_path(job, cx_machine_program(), &o->live.program));
    if (cx_failed(real_path(job, ".", &cwd)))
        return cx_fail(err, CX_E_NOT_FOUND, "the present folder is gone");
    o->cwd = cx_str_z(cwd);
    o->live.home = job->home;
    return CX_SUCCESS;
}

/* --- running ---------------------------------------------------------------------------------- */

static cx_status run_child(cx_gateway_job *job, cx_err *err)
{
    size_t count = job->args->operand_count;
    const char **argv = CX_ARENA_ARRAY(&job->cli->arena, const char *, count + 1);
    if (argv == NULL)
        return cx_fail_nomem(err);
    memcpy(argv, job->args->operands, count * sizeof *argv);
    argv[count] = NULL;
    return cx_cli_gateway_stdio(job, argv, err);
}

static cx_status run_gateway(cx_gateway_job *job, cx_err *err)
{
    CX_TRY(read_options(job, err));
    CX_TRY(cx_gateway_open(&job->options, &job->gateway, err));
    cx_gateway_reader_init(&job->from_client, job->cli->alloc, CX_GATEWAY_MESSAGE_MAX);
    cx_gateway_reader_init(&job->from_server, job->cli->alloc, CX_GATEWAY_MESSAGE_MAX);
    cx_status status = job->url != NULL ? cx_cli_gateway_http(job, err) : run_child(job, err);
    cx_gateway_reader_done(&job->from_client);
    cx_gateway_reader_done(&job->from_server);
    cx_gateway_close(job->gateway);
    return status;
}

static int run_mcp_gateway(cx_cli *cli, const cx_cli_args *args)
{
    cx_gateway_job job = {.cli = cli, .args = args};
    cx_err err = {0};
    cx_alloc_return_large();
    if (!cx_failed(run_gateway(&job, &err)))
        return job.exit_code;
    cx_cli_complain("mcp-gateway: %s", err.message);
    if (err.code == CX_E_USAGE)
        cx_cli_remark("See 'cortex help mcp-gateway'.");
    return err.code == CX_E_USAGE ? CX_EXIT_USAGE : CX_EXIT_UNCHECKED;
}

static const cx_cli_operand operands[] = {{"SERVER", CX_CLI_COMMAND, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT(
        "name", 0, CX_CLI_TEXT, "NAME",
        "The server's name in policies, pins and entries; default: the program's, or the host."),
    CX_CLI_OPT(
        "url", 0, CX_CLI_TEXT, "URL",
        "The server is at this address (streamable HTTP) instead of being started; the agent "
        "still speaks over pipes."),
    CX_CLI_OPT_MANY("header", 0, CX_CLI_TEXT, "NAME=VARIABLE",
                    "With --url: send the header NAME with the value of this environment variable; "
                    "to another machine over https only; may be repeated."),
    CX_CLI_OPT("mode", 0, CX_CLI_CHOICE, "observe|ask|enforce",
               "observe, the default: record what would be decided, block nothing. ask: a person "
               "decides what the policy does not allow. enforce: the policy decides. A policy or a "
               "limit can make it stricter."),
    CX_CLI_OPT("wait", 0, CX_CLI_COUNT, "SECONDS",
               "A call that needs an approval waits this long for 'cortex session approve'; "
               "default 0, at most 3600."),
    CX_CLI_OPT_MANY("hide", 0, CX_CLI_TEXT, "TOOL",
                    "The agent does not see this tool, and may not call it; may be repeated."),
    CX_CLI_OPT_MANY("refuse", 0, CX_CLI_TEXT, "METHOD",
                    "Requests of this method, such as sampling/createMessage, are refused in both "
                    "directions; may be repeated."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_mcp_gateway = {
    .name = "mcp-gateway",
    .purpose = "stand between an agent and an MCP server: decide and record its calls",
    .about =
        "Starts the server, or reaches it with --url, and passes messages in both directions, byte "
        "for byte. Each tool call "
        "is decided by the policy of the session, checked against the tool's own schema, and "
        "recorded before the server gets it; its result is recorded before the agent does. "
        "Options stand before \"--\", the server's command line after it.\n\n"
        "Tools are pinned when they are first seen: one whose description or schema changes later "
        "is hidden in the modes ask and enforce until a person accepts it ('cortex mcp-gateway "
        "pin').\n\n"
        "With CORTEX_SESSION=AGENT:ID calls are decided and recorded in that session of an agent, "
        "else in one of the gateway's own.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 the server ended with 0; other codes are the server's, 128 and more a signal\n2 "
             "usage error\n3 no data directory, or the server cannot be started",
    .example = "cortex mcp-gateway --name files --mode enforce -- npx -y "
               "@modelcontextprotocol/server-filesystem .",
    .run = run_mcp_gateway,
};
