/*
 * report.h - the documents of a run (§2, §17), made from what the governor observed.
 *
 * The machine fills the facts; each cx_run_report_* makes one document that is valid under its
 * schema.  Zeroed facts claim nothing: a gate that was never reached is {passed:false, ["not
 * run"]}, a review that did not happen is BLOCKED, tests that did not run are SKIPPED, a task no
 * one started is SKIPPED.  Nothing here turns a missing fact into a pass.
 *
 * All text is borrowed until the document is written; documents live in `arena`.  Errors are
 * CX_E_NOMEM alone.  Text that comes from an agent is to be masked (§1 R7) by the caller.
 * What a schema demands and the run never learned (a contract that names no role, a baseline that
 * does not resolve) is filled in as said at the field, so that no document breaks its own schema.
 */
#ifndef CX_BUNDLE_REPORT_H
#define CX_BUNDLE_REPORT_H

#include "rules/api.h"

/* --- references to files of the bundle ------------------------------------------------------- */

/* AREF of §2.  `name` empty = the last component of `path`.  A ref without a path is no ref. */
typedef struct cx_run_ref {
    cx_str name;
    cx_str path; /* relative to the bundle */
    cx_digest sha256;
    uint64_t size_bytes;
} cx_run_ref;

/* Of a file whose bytes are at hand.  Borrows `path`. */
cx_run_ref cx_run_ref_of(cx_str path, cx_bytes contents);
/* "application/json", "application/x-ndjson", "text/x-diff", "application/octet-stream" (.bin,
 * .zst), else "text/plain"; by the end of the path.  Static storage. */
cx_str cx_run_media_type(cx_str path);
/* {name, path, sha256, media_type, size_bytes}. */
CX_RESULT cx_run_ref_json(const cx_run_ref *ref, cx_arena *arena, cx_json *out, cx_err *err);

/* --- verdicts -------------------------------------------------------------------------------- */

/* Zero: never reached.  Violations of a gate that passed must be empty. */
typedef struct cx_run_gate {
    bool reached;
    bool passed;
    const cx_str *violations; /* "D07 README.md", "C14 scripts/test.sh", "unit exit 1" */
    size_t violation_count;
} cx_run_gate;

typedef enum cx_run_task_status {
    CX_RUN_TASK_SKIPPED,
    CX_RUN_TASK_SUCCESS,
    CX_RUN_TASK_FAILED,
    CX_RUN_TASK_BLOCKED, /* a gate refused before the agent started */
    CX_RUN_TASK_PENDING, /* of a manifest only */
    CX_RUN_TASK_RUNNING  /* likewise */
} cx_run_task_status;

typedef enum cx_run_review_verdict {
    CX_RUN_REVIEW_BLOCKED,
    CX_RUN_REVIEW_PASS,
    CX_RUN_REVIEW_FAIL
} cx_run_review_verdict;

typedef enum cx_run_test_status {
    CX_RUN_TESTS_SKIPPED,
    CX_RUN_TESTS_PASS,
    CX_RUN_TESTS_FAIL,
    CX_RUN_TESTS_ERROR
} cx_run_test_status;

typedef enum cx_run_status { CX_RUN_FAILURE, CX_RUN_SUCCESS, CX_RUN_RUNNING } cx_run_status;

const char *cx_run_task_status_name(cx_run_task_status status);       /* "SUCCESS" */
const char *cx_run_review_verdict_name(cx_run_review_verdict status); /* "PASS" */
const char *cx_run_test_status_name(cx_run_test_status status);       /* "ERROR" */
const char *cx_run_status_name(cx_run_status status);                 /* "FAILURE" */

/* --- a task ---------------------------------------------------------------------------------- */

typedef struct cx_run_task_facts {
    cx_str run_id;
    cx_str task_id; /* of the original contract, also after fix loops */
    uint32_t attempt;
    cx_str role;       /* of the assigned agent; none of §2 = ORCHESTRATOR */
    cx_str agent_id;   /* empty = "cortex" */
    cx_str thread_id;  /* empty = left out */
    cx_str spec;       /* inputs.spec; empty = "(none)" */
    cx_str created_at; /* of the run, RFC 3339 */
    cx_str started_at;
    cx_str finished_at;
    cx_run_task_status status;
    bool aborted;       /* the run ended by itself (crash, signal), not by a gate */
    cx_str failed_gate; /* "policy", "diff", "tool", "tests", ..; empty when none failed */
    cx_str failure_hint;
    cx_str summary;         /* the agent's; empty = "not started" */
    cx_str baseline_commit; /* empty = "none" */
    cx_str head_commit;     /* the candidate; empty = the baseline */
    cx_run_gate diff_gate, policy_gate, review_gate, tests_gate;
    cx_run_ref patch;            /* patch.diff */
    cx_run_ref changed_files;    /* diff_name_only.txt */
    const cx_run_ref *artifacts; /* artifacts/runner_result.json, failed evidence, .. */
    size_t artifact_count;
    const cx_str *changed; /* the paths of diff_name_only.txt */
    size_t changed_count;
    cx_str notes;
    const cx_json *evidence; /* sources and claims as the agent gave them; NULL = none */
    cx_str evidence_note;    /* why its evidence was left out; empty: it was not */
} cx_run_task_facts;

/* reports/task_result.json */
CX_RESULT cx_run_report_task_result(const cx_run_task_facts *facts, cx_arena *arena, cx_json *out,
                                    cx_err *err);
/* reports/work_report.json */
CX_RESULT cx_run_report_work_report(const cx_run_task_facts *facts, cx_arena *arena, cx_json *out,
                                    cx_err *err);
#define CX_RUN_EVIDENCE_MAX 1000 /* sources, and claims, of one reply */

/* reports/evidence_bundle.json: source 0 is the baseline commit, then the agent's sources and
 * claims.  What it calls verified is UNVERIFIED here, and what was not checked is a limitation. */
CX_RESULT cx_run_report_evidence_bundle(const cx_run_task_facts *facts, cx_arena *arena,
                                        cx_json *out, cx_err *err);
/* reports/evidence_report.json: {"status": ok|fail, "missing"}. */
CX_RESULT cx_run_report_evidence_report(const cx_str *missing, size_t count, cx_arena *arena,
                                        cx_json *out, cx_err *err);

/*
 * artifacts/runner_result.json when there is no reply that passed the output gate: never started
 * (BLOCKED, failure "<failed_gate> gate"), or the reply was refused (FAILED).  A reply that passed
 * is stored as it was read.
 */
CX_RESULT cx_run_report_runner_stub(const cx_run_task_facts *facts, cx_arena *arena, cx_json *out,
                                    cx_err *err);

/* --- review ---------------------------------------------------------------------------------- */

typedef struct cx_run_review_facts {
    bool reached; /* false: "not reviewed", BLOCKED, scope as the diff gate found it */
    cx_run_review_verdict verdict;
    cx_str agent_id; /* empty = the task's agent */
    cx_str thread_id;
    cx_str reviewed_at; /* empty = the task's start */
    cx_str summary;
    bool scope_passed;
    const cx_str *violations;
    size_t violation_count;
    const cx_run_ref *evidence; /* none = the task's patch */
    size_t evidence_count;
    cx_str notes; /* empty = left out */
} cx_run_review_facts;

/* reports/review_report.json */
CX_RESULT cx_run_report_review(const cx_run_task_facts *task, const cx_run_review_facts *facts,
                               cx_arena *arena, cx_json *out, cx_err *err);
/* artifacts/review_failed_attempt_<k>.json (§15). */
CX_RESULT cx_run_report_review_failed(uint32_t attempt, const cx_run_review_facts *facts,
                                      cx_arena *arena, cx_json *out, cx_err *err);

/* --- tests ----------------------------------------------------------------------------------- */

typedef struct cx_run_command_facts {
    cx_str name;
    const cx_str *argv; /* as judged and executed; at least one */
    size_t argv_count;
    bool must_pass;
    uint64_t timeout_sec;
    int exit_code; /* §12: 124 timeout, 126/127 not executable/not found, 128+n signal */
    uint64_t duration_ms;
    cx_str cwd; /* empty = left out */
    cx_run_ref stdout_ref;
    cx_run_ref stderr_ref;
    const cx_json *report; /* tests_demand.h; NULL = none was demanded */
    bool report_refused;   /* it is not what was demanded */
    cx_run_ref report_ref; /* the file, when it was one */
} cx_run_command_facts;

typedef struct cx_run_test_facts {
    cx_run_test_status status;
    cx_str agent_id;                      /* empty = the task's agent */
    cx_str started_at, finished_at;       /* empty = the task's */
    const cx_run_command_facts *commands; /* that ran */
    size_t command_count;
    bool counted; /* write `summary` */
    uint32_t passed, failed, skipped;
    cx_str failure; /* "unit exit 1", "C14 scripts/test.sh"; empty when PASS or SKIPPED */
    const cx_run_ref *artifacts;
    size_t artifact_count;
} cx_run_test_facts;

/* reports/test_report.json */
CX_RESULT cx_run_report_tests(const cx_run_task_facts *task, const cx_run_test_facts *facts,
                              cx_arena *arena, cx_json *out, cx_err *err);
/* artifacts/tests_failed_attempt_<k>.json (§15): the must_pass commands that did not pass. */
CX_RESULT cx_run_report_tests_failed(uint32_t attempt, const cx_run_test_facts *facts,
                                     cx_arena *arena, cx_json *out, cx_err *err);

/* --- the run --------------------------------------------------------------------------------- */

typedef struct cx_run_meta_facts {
    cx_str run_id;
    cx_str cortex_version;
    cx_str git_version;   /* empty = "unknown" */
    const cx_json *model; /* NULL = null */
    cx_str runner;
    cx_digest env_hash; /* of the environment as given to the agent: NAME=value lines, sorted */
} cx_run_meta_facts;

/* meta.json */
CX_RESULT cx_run_report_meta(const cx_run_meta_facts *facts, cx_arena *arena, cx_json *out,
                             cx_err *err);

/* One of manifest.tasks; refs without a path are left out, but `contract` must have one. */
typedef struct cx_run_manifest_task {
    cx_str task_id;
    cx_str role; /* none of §2 = PM, the state in which such a contract is refused */
    cx_str agent_id;
    cx_str thread_id;
    cx_run_task_status status;
    cx_run_ref contract, result, review_report, test_report;
} cx_run_manifest_task;

typedef struct cx_run_manifest_facts {
    cx_str run_id;
    cx_str task_id;
    cx_str created_at;
    cx_str finished_at; /* empty = left out */
    cx_run_status status;
    cx_str failure_reason; /* the gate; left out when SUCCESS */
    cx_str user_request;   /* inputs.spec; empty = "(none)" */
    cx_str trace_id;
    bool diagnostic;
    cx_str runner_name;
    bool runner_mcp_only;
    cx_str runner_profile;
    cx_str policy_pack;     /* none of low, medium, high = left out */
    cx_str baseline_commit; /* empty = "none" */
    cx_str final_commit;    /* empty = the baseline */
    cx_str branch;          /* empty = left out; the next two as well */
    cx_str remote_url;
    cx_str notes; /* "sandbox degraded: ..", .. */
    cx_str cortex_version;
    const cx_json *model;    /* {id, temperature, ..}; NULL = left out */
    const cx_json *contract; /* as run: role_binding_summary comes from it; NULL = left out */
    const cx_run_manifest_task *tasks; /* at least one */
    size_t task_count;
    const cx_run_ref *files; /* every file of the bundle but manifest.json, sorted by path */
    size_t file_count;
} cx_run_manifest_facts;

/* manifest.json.  `files` must hold contract.json (integrity) and the six of §2 evidence_hashes. */
CX_RESULT cx_run_report_manifest(const cx_run_manifest_facts *facts, cx_arena *arena, cx_json *out,
                                 cx_err *err);

/*
 * role_binding_summary of a contract (§6, decision 0025): what was bound to the role, read from the
 * contract.  A read model, never an authority.
 */
CX_RESULT cx_run_report_role_binding(const cx_json *contract, cx_arena *arena, cx_json *out,
                                     cx_err *err);

/* --- re-execution (§18) ---------------------------------------------------------------------- */

typedef struct cx_run_difference {
    cx_str key; /* "patch.diff", "tests/unit/exit_class", .. */
    cx_json expected;
    cx_json actual;
} cx_run_difference;

typedef struct cx_run_reexec_facts {
    cx_str run_id;
    cx_str at; /* RFC 3339 */
    const cx_run_difference *hard;
    size_t hard_count;
    const cx_run_difference *soft;
    size_t soft_count;
    const cx_str *errors;
    size_t error_count;
} cx_run_reexec_facts;

/* status is pass exactly when there is no hard difference and no error. */
CX_RESULT cx_run_report_reexec(const cx_run_reexec_facts *facts, cx_arena *arena, cx_json *out,
                               cx_err *err);

#endif
