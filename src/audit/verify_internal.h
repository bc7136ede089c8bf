/*
 * verify_internal.h - one verification: documents that are read once and used by several checks.
 */
#ifndef CX_AUDIT_VERIFY_INTERNAL_H
#define CX_AUDIT_VERIFY_INTERNAL_H

#include "bundle/api.h"
#include "audit/verify.h"

/* The codes of §18, in its order. */
typedef enum cx_run_code {
    CX_RUN_MANIFEST_MISSING,
    CX_RUN_MANIFEST_INVALID,
    CX_RUN_MANIFEST_SCHEMA,
    CX_RUN_ID_MISMATCH,
    CX_RUN_SEAL_MISSING,
    CX_RUN_SEAL_MISMATCH,
    CX_RUN_FILE_MISSING,
    CX_RUN_FILE_UNCOVERED,
    CX_RUN_FILE_HASH_MISMATCH,
    CX_RUN_SPECIAL_FILE,
    CX_RUN_CONTRACT_SCHEMA,
    CX_RUN_REPORT_SCHEMA,
    CX_RUN_EVENT_NOT_JSON,
    CX_RUN_EVENT_SCHEMA,
    CX_RUN_EVENT_ORDER,
    CX_RUN_EVENT_RUN_ID,
    CX_RUN_EVENTS_TORN,
    CX_RUN_CHAIN_MISSING,
    CX_RUN_CHAIN_INVALID,
    CX_RUN_STATE_ORDER,
    CX_RUN_MIRROR_MISMATCH,
    CX_RUN_PATCH_NAMES,
    CX_RUN_DIFF_SCOPE,
    CX_RUN_TESTS_OUTSIDE,
    CX_RUN_STATUS_MISMATCH,
    CX_RUN_BASELINE_MISMATCH,
    CX_RUN_REF_MISMATCH,
    CX_RUN_LEDGER_MISSING,
    CX_RUN_STORED_CHANGED,
    CX_RUN_STORED_MISSING,
    CX_RUN_STORED_ERASED,
    CX_RUN_STORED_UNREACHABLE,
    CX_RUN_ENDED_BY_ANOTHER,
    CX_RUN_CODE_COUNT
} cx_run_code;

extern const char *const cx_run_code_names[CX_RUN_CODE_COUNT];

typedef struct cx_run_verification {
    cx_run_bundle *bundle;
    const cx_run_witness *witness;
    cx_arena *arena;
    cx_run_verdict *out;
    cx_err *err;
    unsigned said[CX_RUN_CODE_COUNT];

    /* NULL types: the file is not there or not readable as what it should be. */
    cx_json manifest, contract, task_result, review_report, test_report, work_report;
    cx_str run_id;   /* that everything must agree with */
    cx_str task_id;  /* of the manifest; empty when it names none */
    cx_str trace_id; /* of the manifest; empty when it names none */
    bool success;    /* the manifest says SUCCESS */
    cx_run_projection projection;
    bool has_projection; /* events.jsonl could be read from end to end */
} cx_run_verification;

/* One finding; of each code only the first few are kept. */
void cx_run_verify_add_finding(cx_run_verification *v, cx_run_code code, cx_str path,
                               const char *format, ...) CX_PRINTF(4, 5);

/* The file's bytes; data NULL when there is no such regular file (reported elsewhere) or it is
 * larger than it may be. */
CX_RESULT cx_run_verify_bytes(cx_run_verification *v, cx_str path, size_t limit_bytes,
                              cx_bytes *out);
/* "FOLDER/TASK/NAME" or "FOLDER/TASK.SUFFIX" of the run's task, in the arena. */
CX_RESULT cx_run_verify_path(cx_run_verification *v, cx_str *out, const char *format, ...)
    CX_PRINTF(3, 4);

/* The parts, in the order in which they are done. */
CX_RESULT cx_run_verify_files(cx_run_verification *v);     /* hashes, cover, special files */
CX_RESULT cx_run_verify_events(cx_run_verification *v);    /* lines, schema, order, chain */
CX_RESULT cx_run_verify_states(cx_run_verification *v);    /* transitions, first and last */
CX_RESULT cx_run_verify_documents(cx_run_verification *v); /* schemas, refs, mirrors */
CX_RESULT cx_run_verify_agreement(cx_run_verification *v); /* statuses, baseline, tests */
CX_RESULT cx_run_verify_patch(cx_run_verification *v);     /* names, scope */
CX_RESULT cx_run_verify_tasks(cx_run_verification *v);     /* those of a split */

/*
 * Paths named by the patch, both sides of renames, in the arena; false when it is no patch that git
 * writes.
 */
CX_RESULT cx_run_patch_paths(cx_str patch, cx_arena *arena, cx_str **out, size_t *out_count,
                             bool *out_readable, cx_err *err);
/* Lines of diff_name_only.txt, unquoted (core.quotePath=false). */
CX_RESULT cx_run_name_list(cx_str text, cx_arena *arena, cx_str **out, size_t *out_count,
                           bool *out_readable, cx_err *err);

#endif
