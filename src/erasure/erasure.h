/*
 * erasure.h - erasing many records at once (docs/formats/erasure.md).
 *
 *     cx_erasure_plan_make   what would be destroyed, and what a legal hold keeps
 *     cx_erasure_run         destroys it: an entry erasure.request, then an entry `redact` or
 *                            `redact_memory` for each, then erasure.receipt
 *     cx_erasure_receipt     the receipt as text, made again from the ledger
 *
 *   R1  The request is durable before anything else, and says all that is needed to complete it.
 *       While one is open, no other begins: it is completed first.  So a process that is killed in
 *       between loses nothing, whatever command comes next.
 *   R2  What was recorded after the request is never destroyed by it.
 *   R3  The receipt is a function of the ledger: the entries that name the request.
 *   R4  The text that names a person is destroyed at the end, with the payload of the request; the
 *       receipt has its salted hash.
 */
#ifndef CX_ERASURE_ERASURE_H
#define CX_ERASURE_ERASURE_H

#include "base/api.h"
#include "ledger/api.h"
#include "memory/api.h"
#include "proof/api.h"
#include "trace/api.h"

#define CX_ERASURES_ACTOR "erasures"
/* Items of one request; what is left is counted, and taken by the next one. */
#define CX_ERASURE_ITEMS_MAX 200000
#define CX_ERASURE_REASON_MAX 3000
#define CX_RETENTION_RULES_MAX 64

/* --- what to erase ---------------------------------------------------------------------------- */

/* KIND[/LEVEL] AGE, such as "trace.received/full_traces 30d", "session.* 1y", "memory never". */
typedef struct cx_retention_rule {
    cx_str text;
    cx_str kind; /* of entries; "x.*" = all that begin so; "memory" = memories; "*" = all */
    bool has_level;
    cx_trace_level level; /* of traces */
    int64_t age_ns;       /* INT64_MAX = never */
} cx_retention_rule;

/* CX_E_USAGE; the text is borrowed. */
CX_RESULT cx_retention_rule_parse(cx_str text, cx_retention_rule *out, cx_err *err);

/* All conditions that are given must be true.  Texts without data are not given. */
typedef struct cx_erasure_filter {
    cx_str agent;
    cx_str subject;
    int64_t before_ns; /* CX_TIME_NONE = not given */
    /* The first rule that covers a record decides; what no rule covers stays. */
    const cx_retention_rule *rules;
    size_t rule_count;
    int64_t now_ns; /* ages are counted from here */
    cx_str reason, by;
} cx_erasure_filter;

/* --- what it comes to ------------------------------------------------------------------------- */

typedef struct cx_erasure_kind {
    cx_str kind; /* of entries, or "memory" */
    uint64_t count, bytes;
    int64_t oldest_ns, newest_ns;
} cx_erasure_kind;

typedef struct cx_erasure_kept {
    uint64_t hold;
    cx_str reason;
    uint64_t count;
} cx_erasure_kept;

typedef struct cx_erasure_sums {
    const cx_erasure_kind *kinds; /* by name */
    size_t kind_count;
    const cx_erasure_kept *kept; /* by hold */
    size_t kept_count;
    uint64_t entries, memories, bytes;
    uint64_t held, left;
} cx_erasure_sums;

/* Reads the whole log, and changes nothing.  Memory from the arena. */
CX_RESULT cx_erasure_plan_make(cx_home *reader, const cx_erasure_filter *filter, cx_arena *arena,
                               cx_erasure_sums *out, cx_err *err);

typedef struct cx_erasure_result {
    bool nothing; /* nothing was selected, so nothing was recorded */
    bool resumed; /* an erasure that was interrupted was completed; the filter was not looked at */
    uint64_t request; /* in the journal `erasures` */
    uint64_t receipt;
    cx_erasure_sums sums; /* of a resumed one, what was left of it */
    cx_erasure_head head;
} cx_erasure_result;

/*
 * Where the log is read, when another process owns the data directory: a second handle, opened for
 * reading.  It must be closed while content is destroyed, because it keeps the old tables alive.
 */
typedef struct cx_erasure_reader {
    cx_status (*begin)(void *arg, cx_home **out, cx_err *err);
    void (*end)(void *arg, cx_home *reader);
    void *arg;
} cx_erasure_reader;

/* `reader` NULL = the home itself.  With an open request, that one is completed instead. */
CX_RESULT cx_erasure_run(cx_home *home, const cx_erasure_reader *reader,
                         const cx_erasure_filter *filter, cx_arena *arena, cx_erasure_result *out,
                         cx_err *err);
/* The open request is completed, if there is one; else `nothing`. */
CX_RESULT cx_erasure_resume(cx_home *home, const cx_erasure_reader *reader, cx_arena *arena,
                            cx_erasure_result *out, cx_err *err);

/* The text to sign, of the request with that number or of the receipt's own entry.
 * CX_E_NOT_FOUND "NoReceipt". */
CX_RESULT cx_erasure_receipt_text(cx_home *reader, uint64_t seq, cx_buf *out, cx_err *err);

#endif
