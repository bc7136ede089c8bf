/*
 * verifier.h - shared by the files of a verification of a whole data directory (verify.h).
 */
#ifndef CX_LEDGER_CHECK_VERIFIER_H
#define CX_LEDGER_CHECK_VERIFIER_H

#include "ledger/check/erased.h"
#include "ledger/check/kept.h"
#include "ledger/internal.h"
#include "ledger/verify.h"

struct cx_home_report {
    const cx_alloc *alloc;
    cx_arena arena;
    CX_VEC(cx_home_finding) findings;
    size_t finding_max;
    cx_home_totals totals;
    cx_verdict verdict;
    CX_VEC(cx_actor_info) actors;
    CX_VEC(cx_roots) roots;
};

/* The tables of the data directory, whose pages another thread looks at while records are
 * checked. */
typedef struct cx_verified_tables {
    cx_store store;
    bool there, stale;
    cx_status opened;
    cx_err why; /* of `opened` */
    cx_thread thread;
    cx_status pages;
    cx_err damage; /* of `pages` */
} cx_verified_tables;

typedef struct cx_verifier {
    cx_home *home;
    cx_home_report *report;
    const cx_home_verify_options *options;
    cx_arena arena;
    cx_check_sink sink;
    cx_erased *erased;
    cx_kept *kept;         /* NULL = nothing is kept */
    cx_kept_point from;    /* where this run begins; all zero = with the first commit */
    bool resumed;          /* `from` is a point */
    cx_digest last_commit; /* cx_kept_commit_digest of it */
    uint64_t bytes_before; /* of the log, that this run does not read */
    uint64_t entries_read; /* of the log, by this run and those that it continues */
    cx_home_root_check *home_roots;
    uint64_t records; /* memories and edges that there are in the end */
    bool damaged;     /* the log is damaged: later frames cannot be derived */
    cx_verified_tables stored;
} cx_verifier;

/* --- report.c --------------------------------------------------------------------------------- */

/* As a cx_check_sink's call; `arg` is the report. */
CX_RESULT cx_report_add(void *arg, const char *check, const char *reason, cx_str actor,
                        const char *where, const char *message, cx_err *err);
CX_RESULT cx_verify_report(cx_verifier *check, const char *name, const char *reason, cx_str actor,
                           const char *where, const char *message, cx_err *err);
void cx_verify_progress(const cx_verifier *check, const char *what, uint64_t done, uint64_t total,
                        uint64_t entries);

/* --- verify_log.c ----------------------------------------------------------------------------- */

/* Reads the log from where the run begins, checks each frame and derives its rows. */
CX_RESULT cx_verify_log(cx_verifier *check, cx_err *err);
/* Then, of each payload that nothing explains the loss of; `arg` is the verifier. */
CX_RESULT cx_verify_unexplained(void *arg, cx_str actor, uint64_t seq, cx_err *err);
/* What was read so far without a finding stays, also when the program is killed (K1). */
CX_RESULT cx_verify_keep(cx_verifier *check, bool is_base, cx_err *err);

/* --- verify_records.c ------------------------------------------------------------------------- */

/* The records of an actor as they are in the end (checks 4, 5, 9). */
CX_RESULT cx_verify_state(cx_verifier *check, cx_actor *actor, cx_err *err);
/* The same of one that changed since a base; `arg` is the verifier. */
CX_RESULT cx_verify_record(void *arg, int64_t actor, cx_bytes key, cx_err *err);

/* --- verify_tables.c -------------------------------------------------------------------------- */

/* Opens the tables of the data directory, and lets another thread look at their pages. */
void cx_verify_tables_begin(cx_verifier *check);
void cx_verify_tables_end(cx_verifier *check); /* may be called again */
CX_RESULT cx_verify_tables(cx_verifier *check, cx_err *err);

/* --- verify_anchors.c ------------------------------------------------------------------------- */

/* Checkpoints and manifests that were stored elsewhere (§11). */
CX_RESULT cx_verify_anchors(cx_verifier *check, cx_err *err);

#endif
