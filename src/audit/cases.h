/*
 * cases.h - workflow cases: what was asked for in plain words, the plan that was made of it, and
 * the runs that worked on the plan (run.md §21).
 *
 *     ROOT/cases/<case_id>.json            the case
 *     ROOT/cases/<case_id>.contract.json   the contract of its plan, as the planner wrote it
 *     ROOT/cases/keys/<sha256>             the case that a sender's key made
 *     ROOT/cases/.mutex .planner .starter  flock(2): one writer, one planner of the queue, one
 *     start
 *
 *   W1  A case grants nothing and is evidence of nothing (decision 0025): the contract is the
 *       authority, bundles are the evidence.  A process that changes these files changes what is
 *       shown, and which contract a start is compared with; the gates of the run decide about it.
 *   W2  A case changes under the mutex: read, changed, written whole.
 */
#ifndef CX_AUDIT_CASES_H
#define CX_AUDIT_CASES_H

#include "bundle/api.h"

#define CX_RUN_CASE_ID_SIZE 54  /* "case_YYYYMMDD_HHMMSS_" and 32 hex digits, and a terminator */
#define CX_RUN_CASES_MAX 4096   /* in a runtime root */
#define CX_RUN_CASES_QUEUED 64  /* that wait for a planner */
#define CX_RUN_CASE_RUNS_MAX 64 /* of one case */
#define CX_RUN_CASE_KEY_MAX 128 /* bytes of a sender's key */

typedef enum cx_run_case_state {
    CX_CASE_QUEUED,
    CX_CASE_PLANNING,
    CX_CASE_PLANNED, /* there is a contract, and nothing that precedes the work would refuse it */
    CX_CASE_REFUSED, /* the planner was refused, or its contract would be */
    CX_CASE_STARTED, /* a run was started; what is shown follows from that run */
    CX_CASE_CANCELLED
} cx_run_case_state;

/* Text and JSON live in the arena of the call that made it; empty text = none. */
typedef struct cx_run_case {
    cx_str case_id, key, intent, runner, requested_by;
    bool no_merge;
    cx_run_case_state state;
    cx_str note; /* why it is in this state, where that needs a sentence */
    cx_str created_at, updated_at;
    cx_str plan_run_id;     /* the planner's run */
    cx_str gate, reason;    /* that refused the planner or its contract in that run */
    cx_json violations;     /* likewise; an array of text */
    cx_str contract_sha256; /* of the contract's file */
    cx_json preview;        /* as cx_run_dry says it, or null */
    cx_json runs;           /* ids, the newest last */
} cx_run_case;

/* Whether it has the form of a case's id. */
bool cx_run_case_id_valid(cx_str id);

/* W2.  The runtime root must be there; folders are made. */
CX_RESULT cx_run_cases_lock(const cx_run_store *store, cx_arena *arena, cx_file *out, cx_err *err);
/* The one process that plans what is queued; CX_E_BUSY when another does. */
CX_RESULT cx_run_cases_planner(const cx_run_store *store, cx_arena *arena, cx_file *out,
                               cx_err *err);

/* Held while a run is started, so that two calls do not start one case. */
CX_RESULT cx_run_cases_starter(const cx_run_store *store, uint64_t wait_ms, cx_arena *arena,
                               cx_file *out, cx_err *err);

/*
 * Queues a request: `asked` has intent, key, runner, requested_by, no_merge.  `*out_new` false: the
 * key made this case before.  CX_E_CONFLICT when it made one of another request, CX_E_LIMIT when
 * too many wait or too many cases exist.  Takes the mutex.
 */
CX_RESULT cx_run_case_add(const cx_run_store *store, const cx_run_case *asked, cx_arena *arena,
                          cx_run_case *out, bool *out_new, cx_err *err);
/* CX_E_NOT_FOUND, also for an id that can be none; CX_E_FORMAT for a file that is no case. */
CX_RESULT cx_run_case_read(const cx_run_store *store, cx_str case_id, cx_arena *arena,
                           cx_run_case *out, cx_err *err);
/* Under the mutex; sets updated_at. */
CX_RESULT cx_run_case_write(const cx_run_store *store, cx_run_case *one, cx_arena *arena,
                            cx_err *err);
CX_RESULT cx_run_case_write_contract(const cx_run_store *store, cx_run_case *one, cx_bytes contract,
                                     cx_arena *arena, cx_err *err);
/* The bytes whose hash the case has; CX_E_NOT_FOUND when it has no contract, CX_E_CONFLICT when
 * the file is another. */
CX_RESULT cx_run_case_contract(const cx_run_store *store, const cx_run_case *one, cx_arena *arena,
                               cx_bytes *out, cx_err *err);
/* Adds the id of a run that was started. */
CX_RESULT cx_run_case_add_run(cx_run_case *one, cx_str run_id, cx_arena *arena, cx_err *err);
/* Ids, newest first. */
CX_RESULT cx_run_case_list(const cx_run_store *store, cx_arena *arena, cx_str **out,
                           size_t *out_count, cx_err *err);
/* The oldest case that is queued; CX_E_NOT_FOUND when none is. */
CX_RESULT cx_run_case_next(const cx_run_store *store, cx_arena *arena, cx_run_case *out,
                           cx_err *err);

/* --- as they are shown ------------------------------------------------------------------------ */

typedef struct cx_run_case_query {
    cx_str state;  /* "QUEUED", .. "RUNNING", "DONE", "FAILED"; data NULL = any */
    cx_str cursor; /* an id; data NULL = the first page */
    size_t limit;  /* 0 = CX_RUN_PAGE_DEFAULT; at most CX_RUN_PAGE_MAX */
} cx_run_case_query;

/* {items:[CaseItem], next, execution_authority}; newest first. */
CX_RESULT cx_run_view_cases(const cx_run_store *store, const cx_run_case_query *query,
                            cx_arena *arena, cx_json *out, cx_err *err);
/* {items:[CaseItem], execution_authority}: what is planned and what waits, in its order. */
CX_RESULT cx_run_view_intents(const cx_run_store *store, cx_arena *arena, cx_json *out,
                              cx_err *err);
/* One case with its request, plan, contract, refusals and runs. */
CX_RESULT cx_run_view_case(const cx_run_store *store, const cx_run_case *one, cx_arena *arena,
                           cx_json *out, cx_err *err);
/* "QUEUED", "PLANNING", "PLANNED", "REFUSED", "CANCELLED"; of a started case "RUNNING", "DONE" or
 * "FAILED", as its newest run has it. */
CX_RESULT cx_run_case_state_text(const cx_run_store *store, const cx_run_case *one, cx_arena *arena,
                                 cx_str *out, cx_err *err);

#endif
