/*
 * tests_gate.h - the contract's acceptance tests, exactly and in order (run.md §12).
 *
 * In a fresh checkout of the candidate commit (<task_id>.test, dropped afterwards), each command
 * through the command gate right before it runs, in the sandbox, without network.  The first
 * must_pass that does not exit with 0 ends it.  PASS needs that at least one must_pass ran and that
 * all did exit with 0; what is unknown, empty or skipped never passes.
 *
 * Where a test has a report (tests_report.h), it must also be what the contract demands.  For a
 * demand to run what ran at the baseline, the commands are first run in a checkout of that.
 *
 * Afterwards the caller compares the candidate's own worktree with its snapshot (§9).
 */
#ifndef CX_CANDIDATE_TESTS_GATE_H
#define CX_CANDIDATE_TESTS_GATE_H

#include "bundle/api.h"
#include "command/api.h"
#include "git/api.h"
#include "sandbox/api.h"
#include "rules/api.h"

#define CX_RUN_TEST_TIMEOUT_MAX_S 3600 /* §8 */

typedef struct cx_run_test {
    cx_str name;
    cx_str cmd;
    bool must_pass;
    cx_tests_requirement report;
} cx_run_test;

/* Callbacks by which the governor writes events; functions may be NULL, an error stops the
 * tests. */
typedef struct cx_run_tests_host {
    void *arg;
    /* TOOL_GATE_RESULT, before the command runs or is refused. */
    cx_status (*judged)(void *arg, const cx_run_test *test, const cx_run_command_verdict *verdict,
                        cx_err *err);
    /* TEST_COMMAND_RESULT. */
    cx_status (*ran)(void *arg, const cx_run_test *test, const cx_run_command_facts *facts,
                     cx_err *err);
} cx_run_tests_host;

typedef struct cx_run_tests_options {
    const cx_git *git; /* of the repository */
    const char *runtime_root;
    cx_str run_id, task_id; /* of the original task, for the checkout's name */
    cx_oid candidate;
    cx_str baseline; /* full commit id: scripts are compared with it (C14) */
    const cx_run_test *tests;
    size_t test_count;
    uint64_t timeout_sec;  /* of each command; at most CX_RUN_TEST_TIMEOUT_MAX_S are given */
    uint64_t output_bytes; /* of each stream of each command; 0 = CX_RUN_OUTPUT_BYTES_MAX */
    /* Rules, network, approvals, trust: all but worktree, script and script_arg.  Network is what
     * the policy says; the sandbox has none in any case. */
    const cx_run_command_options *judge;
    const cx_sandbox *box;
    unsigned may_miss;         /* as in cx_sandbox_spec */
    const atomic_bool *cancel; /* NULL = none */
    cx_run *run;               /* takes the evidence; NULL = none is kept, only hashed */
    const char *folder;        /* of the evidence in the bundle; NULL = "tests" */
    uint32_t attempt;          /* > 0: what an earlier one left goes to <folder>/attempt_<n-1>/ */
    const cx_run_tests_host *host; /* NULL = none */
    const cx_str *dependencies;    /* installed packages (test_dependencies.h) */
    size_t dependency_count;
} cx_run_tests_options;

/* Facts for cx_run_report_tests, in the arena.  Failing tests, refused commands and timeouts are
 * facts; errors are what kept them from being found, and mean that nothing passed (R1): then `out`
 * has the commands that did run, status ERROR.  A command
 * that the gate refuses: ERROR, failure "C14 scripts/test.sh", and no further commands. */
CX_RESULT cx_run_tests(const cx_run_tests_options *options, cx_arena *arena, cx_run_test_facts *out,
                       cx_err *err);

#endif
