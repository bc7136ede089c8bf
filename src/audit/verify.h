/*
 * verify.h - checks that a bundle is consistent, complete and sealed (run.md §18).
 *
 *     CX_TRY(cx_run_bundle_open(io, alloc, path, &bundle, err));
 *     CX_TRY(cx_run_verify(bundle, &witness, arena, &verdict, err));
 *
 * Nothing is written, and the same bundle gives the same findings in the same order. A fault of a
 * bundle is a finding, never an error; an error means that it could not be read.
 */
#ifndef CX_AUDIT_VERIFY_H
#define CX_AUDIT_VERIFY_H

#include "bundle/api.h"

/* What is known of it outside the bundle.  Zeroed: nothing. */
typedef struct cx_run_witness {
    const cx_json *seal;     /* {type: cortex.run.seal.v1, ..}; NULL = none is known */
    bool has_events;         /* the ledger's entries of the run's events are below */
    const cx_digest *events; /* `hash` of the entry with that index, from 1; all zero = none */
    size_t event_count;
} cx_run_witness;

typedef struct cx_run_verdict {
    cx_verdict verdict;       /* CX_HOLDS, CX_BROKEN, CX_INDETERMINATE */
    const char *reason;       /* "unsealed" when indeterminate, else ""; static storage */
    cx_str run_id;            /* of the manifest, else the bundle's name */
    cx_run_findings findings; /* rule = a code of §18, where = a file; call cx_run_findings_done */
    uint64_t file_count;
    uint64_t event_count;
    cx_str manifest_sha256; /* hex; empty when there is no manifest */
    cx_str chain_head;      /* hex */
    bool sealed;            /* a seal was given and agrees */
} cx_run_verdict;

CX_RESULT cx_run_verify(cx_run_bundle *bundle, const cx_run_witness *witness, cx_arena *arena,
                        cx_run_verdict *out, cx_err *err);

/* Why there is no bundle that could be read. */
typedef enum cx_run_unread {
    CX_RUN_UNREAD_CHANGED, /* its bytes are not those that were recorded: broken */
    CX_RUN_UNREAD_MISSING, /* indeterminate, as is */
    CX_RUN_UNREAD_ERASED,
    CX_RUN_UNREAD_AWAY, /* the store that has it cannot be asked */
    CX_RUN_UNREAD_ENDED /* another machine ended the run, and no bundle was ever sealed */
} cx_run_unread;
/* The verdict on a run of which the bundle cannot be read; it is never CX_HOLDS. */
CX_RESULT cx_run_verify_unread(cx_str run_id, cx_run_unread why, cx_str message, cx_arena *arena,
                               cx_run_verdict *out, cx_err *err);
/* 0 holds, 1 broken, 3 indeterminate. */
int cx_run_verdict_exit(const cx_run_verdict *verdict);
/* The distinct codes, in the order of §18; static storage, in the arena. */
CX_RESULT cx_run_verdict_codes(const cx_run_verdict *verdict, cx_arena *arena,
                               const char *const **out, size_t *out_count, cx_err *err);
/* {run_id, verdict, reason, codes[], details[{code,path,message}], files, events, seal}. */
CX_RESULT cx_run_verdict_json(const cx_run_verdict *verdict, cx_arena *arena, cx_json *out,
                              cx_err *err);

#endif
