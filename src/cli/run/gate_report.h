/*
 * gate_report.h - how every `gate` command and `contract lint` answer: text, JSON, SARIF
 * 2.1.0 for code scanning, JUnit XML for test reports.  Exit 0 allowed, 4 rejected.
 */
#ifndef CX_CLI_GATE_REPORT_H
#define CX_CLI_GATE_REPORT_H

#include "cli/cli.h"
#include "cli/links.h"
#include "rules/api.h"

#define CX_CLI_OPTIONS_GATE                                         \
    CX_CLI_OPT("format", 0, CX_CLI_CHOICE, "text|json|sarif|junit", \
               "How to answer; default text."),                     \
        CX_CLI_OPT_FLAG("json", 0, "The same as --format json."),   \
        CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE",              \
                   "Write the answer to this file instead of standard output.")

#define CX_CLI_EXITS_GATE \
    "0 the gate allows it\n2 usage error\n3 could not be checked\n4 the gate rejects it"

typedef struct cx_cli_gate_report {
    const char *gate;    /* "command", "diff", "policy", "contract", "schema" */
    const char *subject; /* the file that SARIF points at, when a finding names no path of
                            the repository; NULL = none */
    bool allow;
    bool where_is_path;              /* findings' `where` are paths, not JSON pointers */
    const cx_cli_links *links;       /* then: of those paths, in text; NULL = none */
    const cx_run_findings *findings; /* those that inform become notes; never NULL */
    cx_json json;                    /* the whole answer of --json, an object */
    cx_str text; /* shown before the findings when answering in text; may be empty */
} cx_cli_gate_report;

/* Writes the answer in the form of the options; returns the exit code. */
int cx_cli_gate_answer(cx_cli *cli, const cx_cli_args *args, const cx_cli_gate_report *report);
/* Whether errors are written as JSON too. */
bool cx_cli_gate_json(const cx_cli_args *args);

#endif
