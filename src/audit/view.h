/*
 * view.h - read models of runs (run.md §21): what `cortex run list|show|events` and the HTTP API
 * show.
 *
 * A view is a JSON value made from files as they are now; a run that is going on has views too.
 * Nothing is written.  Values live in the arena and, where said, borrow from an open bundle.
 * Views never carry authority: whatever they show of a contract says so (execution_authority).
 */
#ifndef CX_AUDIT_VIEW_H
#define CX_AUDIT_VIEW_H

#include "bundle/api.h"
#include "audit/verify.h"

#define CX_RUN_PAGE_DEFAULT 50
#define CX_RUN_PAGE_MAX 1000
/* Runs looked at for one page of a filtered list; the page then ends early, with `next`. */
#define CX_RUN_LIST_LOOKS 5000

/* Looks up whether a run is sealed; zeroed: unknown. */
typedef struct cx_run_seals {
    void *ctx;
    cx_status (*sealed)(void *ctx, cx_str run_id, bool *out, cx_err *err);
} cx_run_seals;

/* --- many runs ------------------------------------------------------------------------------- */

typedef struct cx_run_list_query {
    cx_str status; /* "RUNNING", "SUCCESS", "FAILURE"; data NULL = any */
    cx_str cursor; /* the `next` of the page before: an id; data NULL = the first page */
    size_t limit;  /* 0 = CX_RUN_PAGE_DEFAULT; at most CX_RUN_PAGE_MAX */
} cx_run_list_query;

/* {items:[{run_id, task_id, status, created_at, finished_at, failed_gate, sealed}], next}; newest
 * first. */
CX_RESULT cx_run_view_list(const cx_run_store *store, const cx_run_seals *seals,
                           const cx_run_list_query *query, cx_arena *arena, cx_json *out,
                           cx_err *err);
/* One item of that list.  A run without a manifest is RUNNING, one that is not there too. */
CX_RESULT cx_run_view_item(const cx_run_store *store, const cx_run_seals *seals, cx_str run_id,
                           cx_arena *arena, cx_json *out, cx_err *err);
/* {items:[{task_id, run_id, parent_task_id, role, agent_id, spec, sha256, status}],
 * execution_authority}; newest run first. */
CX_RESULT cx_run_view_contracts(const cx_run_store *store, size_t limit, cx_arena *arena,
                                cx_json *out, cx_err *err);
/* {contract, run_id, sha256, role_binding_read_model, execution_authority} of the newest run that
 * has a task of that id.  CX_E_NOT_FOUND. */
CX_RESULT cx_run_view_contract(const cx_run_store *store, cx_str task_id, cx_arena *arena,
                               cx_json *out, cx_err *err);
/* {items:[{path, run_id, task_id, acquired_at, renewed_at, ttl_sec, stale, reason}], ..
 * authority} */
CX_RESULT cx_run_view_locks(const cx_run_store *store, cx_arena *arena, cx_json *out, cx_err *err);
/* {items:[{approval_id, run_id, contract_sha256, scopes, reason, approver, issued_at, expires_at,
 * sha256, file}]}: as stated in the files; whether one is good is judged when it is used. */
CX_RESULT cx_run_view_approvals(const cx_run_store *store, cx_arena *arena, cx_json *out,
                                cx_err *err);

/* --- one run --------------------------------------------------------------------------------- */

/* Opens runs/<run_id>, which must be a real folder.  CX_E_NOT_FOUND "NoRun", also for an id that
 * can be none (§1 R6). */
CX_RESULT cx_run_view_open(const cx_run_store *store, cx_str run_id, cx_run_bundle **out,
                           cx_err *err);
/* Its events as they are now; the projection is to be closed with cx_run_projection_done also after
 * errors. */
CX_RESULT cx_run_view_projection(cx_run_bundle *bundle, cx_arena *arena, cx_run_projection *out,
                                 cx_err *err);

/* manifest + {sealed, verdict, codes, state, role_binding_read_model, workflow_case_read_model,
 * failed_tests}; of a run that is going on, or ended without a manifest, what its events say. */
CX_RESULT cx_run_view_show(cx_run_bundle *bundle, const cx_run_witness *witness, cx_arena *arena,
                           cx_json *out, cx_err *err);

#define CX_RUN_FAILED_TESTS_MAX 16
#define CX_RUN_OUTPUT_END_BYTES 4096
#define CX_RUN_OUTPUT_END_LINES 40

/*
 * Commands that failed in the last attempt of each task, at most CX_RUN_FAILED_TESTS_MAX, with the
 * end of what they printed: [{task_id, name, exit_code, problem?, stdout, stderr}], where an output
 * is {path, bytes, cut, text}.  `text` is masked as events are (§1 R7) and has U+FFFD in place of
 * bytes that are not UTF-8; other characters are those of the program, and are escaped where they
 * are shown.  Empty when no test failed; a report or log that is missing or damaged is
 * verification's finding.
 */
CX_RESULT cx_run_view_failed_tests(cx_run_bundle *bundle, cx_arena *arena, cx_json *out,
                                   cx_err *err);
/* {items, next}: events from index `from` (from 1), as values with their index, or with `raw` as
 * {index, raw: the line}. */
CX_RESULT cx_run_view_events(const cx_run_projection *projection, uint64_t from, size_t limit,
                             bool raw, cx_arena *arena, cx_json *out, cx_err *err);
/* An OTLP/JSON ExportTraceServiceRequest under the run's trace id: the run, each visit of a state,
 * each tool call, at most 20,000 spans; gates are events of the run's span. */
CX_RESULT cx_run_view_spans(const cx_run_projection *run, cx_arena *arena, cx_json *out,
                            cx_err *err);
/* What an operator sees of a case's run: {execution_authority, source, run_id, state, status,
 * role_binding_summary} (decision 0025). */
CX_RESULT cx_run_view_workflow_case(cx_run_bundle *bundle, cx_arena *arena, cx_json *out,
                                    cx_err *err);
/* {run_id, gates{}, verdicts[]} */
CX_RESULT cx_run_view_gates(const cx_run_projection *projection, cx_arena *arena, cx_json *out,
                            cx_err *err);
/* {run_id, state, items:[{index, ts, level, event_type, task_id, attempt}], states[]} */
CX_RESULT cx_run_view_timeline(const cx_run_projection *projection, cx_arena *arena, cx_json *out,
                               cx_err *err);
/* {items:[{name, path, sha256, media_type, size_bytes}]}: files below `folder` ("reports/"). */
CX_RESULT cx_run_view_files(cx_run_bundle *bundle, cx_str folder, cx_arena *arena, cx_json *out,
                            cx_err *err);

#endif
