/*
 * run_start.c - options, signals and the ledger of runs that are started here.
 */
#include "cli/run/run_start.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cli/ledger/ledger.h"
#include "agent/api.h"
#include "cli/run/exec_policy.h"
#include "cli/run/run_lease.h"
#include "git/api.h"
#include "bundle/api.h"

static atomic_bool end_requested;

/* Whichever of the two came first: the same one again finds its default action (SA_RESETHAND) as
 * soon as this returns.  The other is blocked until then (sa_mask); otherwise it could be
 * delivered first. */
static void on_signal(int number)
{
    if (atomic_exchange(&end_requested, true))
        (void)raise(number);
}

/* The first signal ends the run in order, the second the process. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaddset(&action.sa_mask, SIGINT);
    (void)sigaddset(&action.sa_mask, SIGTERM);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* --- options ---------------------------------------------------------------------------------- */

static cx_status read_approvals(cx_cli *cli, const cx_cli_args *args, cx_run_options *out,
                                cx_err *err)
{
    const cx_cli_given *given = NULL;
    size_t count = 0;
    const char **files = CX_ARENA_ARRAY(&cli->arena, const char *, args->given_count + 1);
    if (files == NULL)
        return cx_fail_nomem(err);
    while ((given = cx_cli_next(args, "approval", given)) != NULL)
        files[count++] = given->values[0];
    out->approvals = files;
    out->approval_count = count;
    return CX_SUCCESS;
}

static uint64_t fault_of(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

cx_status cx_cli_run_options(cx_cli *cli, const cx_cli_args *args, cx_run_options *out, cx_err *err)
{
    uint64_t wait_s = cx_cli_number(args, "approval-wait", 0);
    if (wait_s > 86400)
        return cx_fail(err, CX_E_USAGE, "option --approval-wait: expected at most 86400 seconds");
    const char *agent = cx_cli_value(args, "agent"), *runner = cx_cli_value(args, "runner");
    if (agent != NULL && (runner != NULL || cx_cli_value(args, "script") != NULL))
        return cx_fail(err, CX_E_USAGE,
                       "option --agent: it selects the runner; leave out --runner and --script");
    *out = (cx_run_options){
        .alloc = cli->alloc,
        .io = cli->io,
        .runtime_root = getenv(CX_RUN_ROOT_ENV),
        .codex_base_home = getenv(CX_CODEX_BASE_HOME_ENV),
        .credentials = cx_cli_credentials_path(cli),
        .runner = agent != NULL ? agent : runner,
        .script = cx_cli_value(args, "script"),
        .diagnostic = cx_cli_has(args, "diagnostic"),
        .no_merge = cx_cli_has(args, "no-merge"),
        .allow_degraded_sandbox = cx_cli_has(args, "allow-degraded-sandbox"),
        .approval_wait_s = (uint32_t)wait_s,
        .cancel = &end_requested,
        .fault_event = fault_of(getenv("CORTEX_RUN_FAULT")), /* tests of crashes */
    };
    return read_approvals(cli, args, out, err);
}

/* The journal is named after the repository (decision 0015). */
cx_status cx_cli_run_ledger_begin(cx_cli_run_ledger *ledger, cx_cli *cli, const cx_cli_args *args,
                                  cx_run_options *options, cx_err *err)
{
    cx_git_options how = CX_GIT_OPTIONS_INIT;
    cx_git *git;
    cx_oid root;
    cx_str actor;
    char text[CX_OID_TEXT_SIZE], *real;
    CX_TRY(cx_git_open(".", &how, cli->alloc, &git, err));
    cx_status status = cx_git_root_commit(git, &root, err);
    cx_git_close(git);
    CX_TRY(status);
    cx_oid_text(&root, text);
    CX_TRY(cx_cli_run_actor(text, &cli->arena, &actor, err));
    CX_TRY(cx_cli_run_ledger_open(ledger, cli, args, actor, err));
    options->ledger = &ledger->ledger;
    if (cli->part != NULL) {
        CX_TRY(cx_cli_run_leases_open(ledger, &end_requested, err));
        options->shared_locks = cx_cli_run_leases_locks(ledger->leases);
    }
    real = realpath(ledger->path, NULL);
    if (real != NULL) {
        cx_str kept = cx_arena_copy_str(&cli->arena, cx_str_z(real));
        free(real);
        options->home = kept.data;
    }
    /* A part of a fleet is no folder that a sandbox could show. */
    if (options->home == NULL && cli->part == NULL)
        return cx_fail(err, CX_E_IO, "cannot find %s", ledger->path);
    catch_signals();
    return CX_SUCCESS;
}
