/*
 * run_start.h - what the commands that start runs share: `run CONTRACT`, `run chain`.
 */
#ifndef CX_CLI_RUN_START_H
#define CX_CLI_RUN_START_H

#include "cli/run/run_ledger.h"
#include "governor/api.h"

#define CX_CLI_OPTIONS_RUN                                                                       \
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME",                                                  \
               "The agent, as 'cortex runner list' names it: claude, codex and gemini are "      \
               "built in ('cortex runner add claude' pins the program)."),                       \
        CX_CLI_OPT("runner", 0, CX_CLI_TEXT, "NAME",                                             \
                   "The runner: its name in policies/cortex.json, or mcp, exec, replay-script; " \
                   "default as in the contract or the configuration."),                          \
        CX_CLI_OPT("script", 0, CX_CLI_FILE, "FILE",                                             \
                   "The script of replay-script, which it selects."),                            \
        CX_CLI_OPT_FLAG("no-merge", 0,                                                           \
                        "Stop when all gates have passed, and keep the candidate."),             \
        CX_CLI_OPT_MANY(                                                                         \
            "approval", 0, CX_CLI_FILE, "FILE",                                                  \
            "A signed approval for this run, in addition to those in the runtime root."),        \
        CX_CLI_OPT("approval-wait", 0, CX_CLI_COUNT, "SECONDS",                                  \
                   "How long to wait for an approval; default as configured, else no wait."),    \
        CX_CLI_OPT_FLAG("diagnostic", 0,                                                         \
                        "Allow an exec runner although runner.mcp_only is true; this is "        \
                        "recorded, and the result is never merged."),                            \
        CX_CLI_OPT_FLAG("allow-degraded-sandbox", 0,                                             \
                        "Continue without a layer of the sandbox if an approval allows it.")

/* Reads CX_CLI_OPTIONS_RUN; the contract and the receiver of events are the caller's. */
CX_RESULT cx_cli_run_options(cx_cli *cli, const cx_cli_args *args, cx_run_options *out,
                             cx_err *err);

/*
 * Opens the data directory for the journal of this repository's runs. From then on SIGINT and
 * SIGTERM request a clean end (a second one ends the process).  Close with
 * cx_cli_run_ledger_close.
 */
CX_RESULT cx_cli_run_ledger_begin(cx_cli_run_ledger *ledger, cx_cli *cli, const cx_cli_args *args,
                                  cx_run_options *options, cx_err *err);

#endif
