/*
 * cmd_hook.c - `cortex hook claude|codex|gemini|cursor|copilot`: what a coding agent's hook starts
 * (docs/formats/live.md).
 *
 *   H1  Whatever goes wrong, the answer is "no": exit 2 and one line on standard error, also when
 *       the deadline passes, memory runs out, a limit of the system is met, a signal asks this
 *       process to end, or the process itself is in error.  With --fail-open and in mode observe
 *       the answer is "no objection".  SIGKILL alone has no answer: then the agent decides.
 *   H2  The data directory is not held while a person is waited for.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "cli/live/live.h"
#include "db/api.h"
#include "live/api.h"
#include "os/api.h"
#include "recorder/api.h"

#define DEADLINE_S 10
#define DEADLINE_S_MAX 600
#define POLL_MS 200

/* --- the deadline ----------------------------------------------------------------------------- */

static volatile sig_atomic_t deadline_is_open; /* the answer then: 1 = no objection */
static volatile sig_atomic_t deadline_is_cursor;

/* H1 */
static void on_deadline(int signal_number)
{
    static const char late[] = "cortex: no decision in time\n";
    static const char ended[] = "cortex: no decision: the hook was asked to end\n";
    static const char failed[] = "cortex: no decision: the hook itself is in error\n";
    static const char allow[] = "{\"permission\":\"allow\"}\n";
    bool asked = signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP ||
                 signal_number == SIGQUIT;
    ssize_t ignored = signal_number == SIGALRM ? write(STDERR_FILENO, late, sizeof late - 1)
                      : asked                  ? write(STDERR_FILENO, ended, sizeof ended - 1)
                                               : write(STDERR_FILENO, failed, sizeof failed - 1);
    if (deadline_is_open && deadline_is_cursor)
        ignored = write(STDOUT_FILENO, allow, sizeof allow - 1);
    (void)ignored;
    _exit(deadline_is_open ? 0 : 2);
}

static void set_deadline(unsigned seconds, bool open, bool cursor)
{
    static const int signals[] = {
        SIGALRM,
        SIGTERM,
        SIGINT,
        SIGHUP,
        SIGQUIT,
        SIGXCPU,
        SIGUSR1,
        SIGUSR2,
        SIGTRAP,
        SIGSYS,
        SIGVTALRM,
        SIGPROF,
#if !defined(__SANITIZE_ADDRESS__) /* a sanitizer reports by these */
        SIGSEGV,
        SIGBUS,
        SIGILL,
        SIGFPE,
        SIGABRT
#endif
    };
    static char own_stack[65536]; /* the process's own can be what failed */
    const stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_ONSTACK;
    action.sa_handler = on_deadline;
    sigemptyset(&action.sa_mask);
    deadline_is_open = open;
    deadline_is_cursor = cursor;
    (void)sigaltstack(&stack, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(signals); i++)
        (void)sigaction(signals[i], &action, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like others */
    (void)alarm(seconds);
}

/* Of the tables: one in about two hundred calls moves it into the file, and waits for the disk. */
#define LOG_LEFT (UINT64_C(4) << 20)

/* --- one event -------------------------------------------------------------------------------- */

typedef struct hook_call {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_live_options options;
    const char *home;
    cx_buf input;
    uint64_t end_ns; /* by the monotonic clock */
} hook_call;

static cx_status open_home(hook_call *h, cx_home **out, cx_err *err)
{
    const cx_io *io = h->cli->io;
    cx_home_options options = cx_cli_home_options(h->cli, CX_CLI_WRITE, NULL);
    options.segment_bytes = CX_CLI_SEGMENT_SIZE;
    options.archives = false; /* it ends at once */
    cx_db_leave_log(LOG_LEFT);
    cx_status status;
    do {
        status = cx_home_open(h->home, &options, out, err);
        if (status.code != CX_E_BUSY || io->monotonic_ns(io) >= h->end_ns)
            break;
        cx_thread_sleep_ms(2);
    } while (true);
    return status;
}

static cx_status take_event(hook_call *h, cx_live_outcome *out, cx_err *err)
{
    cx_home *home;
    cx_err ignored;
    CX_TRY(open_home(h, &home, err));
    cx_status status =
        cx_live_take(home, &h->options, cx_buf_str(&h->input), &h->cli->arena, out, err);
    cx_status closed = cx_home_close(home, &ignored);
    (void)closed; /* what was committed is on the disk; tables are brought up to date later */
    return status;
}

/* Whether a person has answered meanwhile. */
static cx_status is_answered(hook_call *h, const cx_live_outcome *asked, bool *out, cx_err *err)
{
    cx_home *home;
    cx_err ignored;
    const cx_live_asked *list;
    size_t count;
    CX_TRY(open_home(h, &home, err));
    cx_status status =
        cx_live_session_asked(home, asked->actor, &h->cli->arena, &list, &count, err);
    cx_status closed = cx_home_close(home, &ignored);
    (void)closed;
    CX_TRY(status);
    *out = true;
    for (size_t i = 0; i < count; i++)
        if (memcmp(&list[i].input_sha256, &asked->input_sha256, sizeof asked->input_sha256) == 0)
            *out = false;
    return CX_SUCCESS;
}

/* H2: for agents that cannot ask their person. */
static cx_status wait_for_person(hook_call *h, cx_live_outcome *out, cx_err *err)
{
    const cx_io *io = h->cli->io;
    uint64_t end = io->monotonic_ns(io) + h->options.wait_ms * UINT64_C(1000000);
    while (out->answer == CX_LIVE_ASKED && io->monotonic_ns(io) < end) {
        bool answered = false;
        cx_thread_sleep_ms(POLL_MS);
        CX_TRY(is_answered(h, out, &answered, err));
        /* Another call with the same input may have used an answer that counts once. */
        if (answered)
            CX_TRY(take_event(h, out, err));
    }
    return CX_SUCCESS;
}

static cx_status handle_event(hook_call *h, cx_live_outcome *out, cx_err *err)
{
    CX_TRY(cx_cli_home_path(h->cli, h->args, &h->home, err));
    cx_buf real;
    cx_buf_init(&real, h->cli->alloc);
    cx_err missing;
    if (!cx_failed(cx_path_real(h->home, &real, &missing))) {
        cx_str kept = cx_arena_copy_str(&h->cli->arena, cx_buf_str(&real));
        if (kept.data != NULL)
            h->home = kept.data;
    }
    cx_buf_clear(&real);
    if (!cx_failed(cx_path_real(cx_machine_program(), &real, &missing))) {
        cx_str kept = cx_arena_copy_str(&h->cli->arena, cx_buf_str(&real));
        h->options.program = kept.data;
    }
    cx_buf_done(&real);
    h->options.home = h->home;
    CX_TRY(cx_io_read_file(h->cli->io, "-", CX_LIVE_INPUT_MAX, &h->input, err));
    CX_TRY(take_event(h, out, err));
    if (out->answer == CX_LIVE_ASKED && h->options.agent != CX_LIVE_CLAUDE &&
        h->options.wait_ms != 0)
        CX_TRY(wait_for_person(h, out, err));
    return CX_SUCCESS;
}

/* Standard error first: an agent that sees the answer has the reason, too. */
static int deliver(const cx_live_outcome *outcome)
{
    if (outcome->complaint.size != 0) {
        cx_str line = outcome->complaint;
        while (line.size != 0) {
            ssize_t wrote = write(STDERR_FILENO, line.data, line.size);
            if (wrote <= 0)
                break;
            line.data += wrote;
            line.size -= (size_t)wrote;
        }
        ssize_t ignored = write(STDERR_FILENO, "\n", 1);
        (void)ignored;
    }
    cx_str out = outcome->out;
    while (out.size != 0) {
        ssize_t wrote = write(STDOUT_FILENO, out.data, out.size);
        if (wrote <= 0)
            return 2; /* H1: an answer that did not arrive is none */
        out.data += wrote;
        out.size -= (size_t)wrote;
    }
    return outcome->exit_code;
}

static int run_hook(cx_cli *cli, const cx_cli_args *args, cx_live_agent agent)
{
    hook_call h = {.cli = cli, .args = args};
    cx_err err = {0};
    cx_live_outcome outcome;
    uint64_t deadline = DEADLINE_S, wait = 0;
    const char *mode = cx_cli_value(args, "mode");
    h.options = (cx_live_options){.agent = agent,
                                  .mode = CX_LIVE_OBSERVE,
                                  .fail_open = cx_cli_has(args, "fail-open"),
                                  .via = "process",
                                  .user_home = getenv("HOME")};
    cx_status status = CX_SUCCESS;
    if (mode != NULL && !cx_live_mode_parse(cx_str_z(mode), &h.options.mode))
        status = cx_fail(&err, CX_E_USAGE, "option --mode: expected observe, ask or enforce");
    if (!cx_failed(status) && cx_cli_has(args, "deadline"))
        status = cx_cli_parse_number("--deadline", cx_cli_value(args, "deadline"), &deadline, &err);
    if (!cx_failed(status) && cx_cli_has(args, "wait"))
        status = cx_cli_parse_number("--wait", cx_cli_value(args, "wait"), &wait, &err);
    if (!cx_failed(status) && (deadline == 0 || deadline > DEADLINE_S_MAX || wait > DEADLINE_S_MAX))
        status = cx_fail(&err, CX_E_USAGE, "--deadline takes 1 to 600 seconds, --wait at most 600");
    bool open = !cx_failed(status) && (h.options.fail_open || h.options.mode == CX_LIVE_OBSERVE);
    h.options.wait_ms = wait * 1000;
    h.end_ns = cli->io->monotonic_ns(cli->io) + (deadline + wait) * UINT64_C(1000000000);
    if (!cx_failed(status) && isatty(STDIN_FILENO) == 1) {
        open = false;
        status = cx_fail(&err, CX_E_USAGE,
                         "expected the agent's hook JSON on standard input, and it is a terminal");
    }
    set_deadline((unsigned)(deadline + wait), open, agent == CX_LIVE_CURSOR);
    cx_buf_init(&h.input, cli->alloc);
    if (!cx_failed(status))
        status = handle_event(&h, &outcome, &err);
    if (cx_failed(status))
        cx_live_answer_failure(agent, open, &err, &cli->arena, &outcome);
    cx_buf_done(&h.input);
    return deliver(&outcome);
}

static int run_claude(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook(cli, args, CX_LIVE_CLAUDE);
}
static int run_codex(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook(cli, args, CX_LIVE_CODEX);
}
static int run_gemini(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook(cli, args, CX_LIVE_GEMINI);
}
static int run_cursor(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook(cli, args, CX_LIVE_CURSOR);
}
static int run_copilot(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook(cli, args, CX_LIVE_COPILOT);
}

static const cx_cli_option options[] = {
    CX_CLI_OPT("mode", 0, CX_CLI_CHOICE, "observe|ask|enforce",
               "observe, the default: record what would be decided, block nothing. ask: a person "
               "decides what the policy does not allow. enforce: the policy decides. A policy or a "
               "limit can make it stricter."),
    CX_CLI_OPT_FLAG("fail-open", 0,
                    "When no decision is possible: no objection instead of \"no\". Each entry says "
                    "that it was given."),
    CX_CLI_OPT("deadline", 0, CX_CLI_COUNT, "SECONDS", "Answer within; default 10, at most 600."),
    CX_CLI_OPT("wait", 0, CX_CLI_COUNT, "SECONDS",
               "Where the agent cannot ask its person: wait this long for 'cortex session "
               "approve'; default 0."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTIONS_COMMON};

#define HOOK_ABOUT                                                                                 \
    "Reads what the agent's hook gives on standard input, decides by the policy of the session, "  \
    "records the decision, and answers in the agent's own form. The record is on the disk before " \
    "the answer. 'cortex hook install' registers it; no one else needs to start it."
#define HOOK_EXITS                                                                                 \
    "0 no objection, or an answer on standard output\n2 \"no\": the reason is on standard error; " \
    "also when no decision was possible"

#define HOOK_COMMAND(id, word, agent_name)                            \
    const cx_cli_command cx_cli_hook_##id = {                         \
        .name = "hook " word,                                         \
        .purpose = "decide a tool call of " agent_name,               \
        .about = HOOK_ABOUT,                                          \
        .options = options,                                           \
        .option_count = CX_COUNT_OF(options),                         \
        .exits = HOOK_EXITS,                                          \
        .example = "cortex hook " word " --mode enforce < call.json", \
        .run = run_##id,                                              \
    }

HOOK_COMMAND(claude, "claude", "Claude Code");
HOOK_COMMAND(codex, "codex", "Codex");
HOOK_COMMAND(gemini, "gemini", "Gemini CLI");
HOOK_COMMAND(cursor, "cursor", "Cursor");
HOOK_COMMAND(copilot, "copilot", "Copilot CLI");
