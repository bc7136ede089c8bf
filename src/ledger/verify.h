/*
 * verify.h - checking a whole data directory, and rebuilding its tables (ledger.md §10.2, §11).
 *
 * Verification reads the log from its first byte, derives everything again in a private database,
 * and compares that with the journal, the manifests and the stored tables.  It opens everything
 * read-only and never writes.
 */
#ifndef CX_LEDGER_VERIFY_H
#define CX_LEDGER_VERIFY_H

#include "ledger/home.h"
#include "ledger/root/home_root.h"
#include "proof/api.h"

/* An external anchor: a checkpoint's size and root, or a manifest, stored elsewhere. */
typedef struct cx_anchor_point {
    uint64_t size;
    cx_digest journal_root;
    const cx_manifest *manifest; /* NULL = only size and root */
    cx_str actor;                /* whose journal; empty = that of the options */
} cx_anchor_point;

typedef struct cx_home_verify_options {
    cx_home_options home;           /* read_only is implied */
    cx_str actor;                   /* empty = all */
    const cx_anchor_point *anchors; /* of `actor`, unless they name another one */
    size_t anchor_count;
    bool require_anchored; /* indeterminate unless an anchor holds */
    const cx_pubkey
        *seal_key;      /* NULL = seals' signatures are not checked, and the report says so */
    size_t finding_max; /* 0 = 1000 */
    /* A file outside of the data directory that keeps what was verified (check/kept.h), for this
     * run to go on from and the next one; NULL = everything is read, and nothing is kept. */
    const char *state;
    /* Of the journal of `actor`: only what came after is read (check/since.h); NULL =
     * everything. */
    const cx_anchor_point *since;
    bool (*go_on)(void *arg); /* between commits; false: CX_E_BUSY "Interrupted"; may be NULL */
    void *go_on_arg;
    size_t actor_max; /* whose roots the report has; 0 = all, which takes memory for each */
} cx_home_verify_options;

typedef struct cx_home_finding {
    const char *check; /* "log", "entry", "journal", "version", "head", "edge", "state", "manifest",
                          "seal", "payload", "counter", "table", "anchor", "home", "state" */
    const char *reason; /* "LogDamaged", "Truncated", "Forked", ... */
    cx_str actor;
    cx_str where;   /* "seq 12", "m/<hex>", a segment and offset */
    cx_str message; /* expected, found */
} cx_home_finding;

typedef struct cx_home_report cx_home_report;

CX_RESULT cx_home_verify(const char *path, const cx_home_verify_options *options,
                         cx_home_report **out, cx_err *err);
cx_verdict cx_home_report_verdict(const cx_home_report *report);
size_t cx_home_report_count(const cx_home_report *report); /* findings stored */
const cx_home_finding *cx_home_report_finding(const cx_home_report *report, size_t index);

typedef struct cx_home_totals {
    uint64_t actors, commits, entries, memories, versions, edges, manifests, payloads, erased;
    uint64_t findings;  /* all findings, stored or not */
    uint64_t log_bytes; /* of the log, that were read */
    bool anchored; /* an anchor holds: the history up to it is neither truncated nor rewritten */
    bool tables_checked; /* false: missing or unreadable, see tables_note */
    cx_str tables_note;
    uint64_t half_erased; /* of `erased`: bytes remain because a crash interrupted the erasure */
    uint64_t torn_bytes;  /* an incomplete group at the end, left by a crash; never acknowledged */
    bool
        since; /* a kept state or a checkpoint was continued: what is before was not read by this run */
    uint64_t since_commit, since_entries; /* .. the first commit that was, and what came before */
    int64_t since_ns;                     /* .. when the state was made */
    uint64_t recorded;                    /* entries of all actors but home:root */
    bool has_home_root;
    cx_home_root_entry home_root; /* the last one; it covers home_root.root.entries of `recorded` */
} cx_home_totals;
const cx_home_totals *cx_home_report_totals(const cx_home_report *report);
/* Roots of the actors, at most `actor_max` of them, as derived from the log. */
size_t cx_home_report_actor_count(const cx_home_report *report);
void cx_home_report_actor(const cx_home_report *report, size_t index, cx_actor_info *out,
                          cx_roots *out_roots);
void cx_home_report_close(cx_home_report *report);

typedef struct cx_rebuild_result {
    uint64_t commits, entries, records;
    bool changed; /* the old tables differed or were missing */
    bool resumed; /* an interrupted run was continued */
} cx_rebuild_result;
typedef enum cx_rebuild_mode {
    CX_REBUILD,            /* differing old tables are an error, RootMismatch, and stay */
    CX_REBUILD_REPLACE,    /* differing old tables are replaced: the log is the truth */
    CX_REBUILD_VERIFY_ONLY /* nothing is written */
} cx_rebuild_mode;

/*
 * Builds new tables next to the old ones, compares them with the manifests in the log and with the
 * old tables, and replaces these with one rename.  Continues an interrupted run.  CX_E_CONFLICT
 * "RootMismatch"; CX_E_BUSY while a writer process is active.
 */
CX_RESULT cx_home_rebuild(const char *path, const cx_home_options *options, cx_rebuild_mode mode,
                          cx_rebuild_result *out, cx_err *err);

#endif
