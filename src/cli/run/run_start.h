/*
 * run_start.h - what the commands that start runs share: `run CONTRACT`, `run chain`.
 */
#ifndef CX_CLI_RUN_START_H
#define CX_CLI_RUN_START_H

#include "cli/run/run_ledger.h"
#include "governor/api.h"

#define CX_CLI_OPTIONS_RUN                                                                         \
    CX_CLI_OPT("runner", 0, CX_CLI_TEXT, "NAME",                                                   \
               "Who does the work: a runner of policies/cortex.json by its name, or mcp, exec, "   \
               "replay-script; default what the contract or the configuration says."),             \
        CX_CLI_OPT("script", 0, CX_CLI_FILE, "FILE",                                               \
                   "The script of replay-script, which it selects."),                              \
        CX_CLI_OPT_FLAG("no-merge", 0, "Stop when all gates have passed; the candidate is kept."), \
        CX_CLI_OPT_MANY("approval", 0, CX_CLI_FILE, "FILE",                                        \
                        "A signed approval for this run, beside those in the runtime root."),      \
        CX_CLI_OPT(                                                                                \
            "approval-wait", 0, CX_CLI_COUNT, "SECONDS",                                           \
            "How long to wait for an approval; default as configured, which is not at all."),      \
        CX_CLI_OPT_FLAG("diagnostic", 0,                                                           \
                        "Let an exec runner work although runner.mcp_only is true: recorded, and " \
                        "never merged."),                                                          \
        CX_CLI_OPT_FLAG("allow-degraded-sandbox", 0,                                               \
                        "Go on without a layer of the sandbox when an approval says so.")

/* Reads CX_CLI_OPTIONS_RUN; the contract, and who is told of events, are the caller's. */
CX_RESULT cx_cli_run_options(cx_cli *cli, const cx_cli_args *args, cx_run_options *out,
                             cx_err *err);

/*
 * Opens the home for the journal of this repository's runs, and from then on takes SIGINT and
 * SIGTERM as the wish to end in order (the second one ends the process).  Close with
 * cx_cli_run_ledger_close.
 */
CX_RESULT cx_cli_run_ledger_begin(cx_cli_run_ledger *ledger, cx_cli *cli, const cx_cli_args *args,
                                  cx_run_options *options, cx_err *err);

#endif
