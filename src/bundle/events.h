/*
 * events.h - the events of a run: one line each, chained, and appended to the ledger (run.md §17).
 *
 * Appending, under the lock active/runs/<run_id>/events.lock: the line with one write to
 * events.jsonl, fsync; its link to events.hashchain.jsonl, fsync; then the ledger.  So after a
 * crash the last line may be torn and the chain may be one short, and nothing else.
 *
 *     {"ts","level","event_type","run_id","task_id","attempt","trace_id","payload"}   in this order
 *     {"index","event_sha256","prev_hash","hash"}   hash = sha256("<index>:<prev>:<event_sha256>")
 */
#ifndef CX_BUNDLE_EVENTS_H
#define CX_BUNDLE_EVENTS_H

#include "base/api.h"
#include "bundle/event_types.h"
#include "crypto/api.h"
#include "rules/api.h"

#define CX_RUN_EVENTS_MAX 1000000                     /* of one run */
#define CX_RUN_EVENT_BYTES_MAX (UINT32_C(1) << 20)    /* of one line */
#define CX_RUN_EVENTS_BYTES_MAX (UINT64_C(256) << 20) /* of events.jsonl, when reading */

/* What the entries of a run are appended to (decision 0015).  Payloads are JSON, keys sorted,
 * compact. */
typedef struct cx_run_ledger {
    void *ctx;
    /* Returns when the entry is durable.  `kind` is "run.event", "run.seal" or of egress.md;
     * `*out_index` its place in the journal (may be NULL).  Events come from one thread at a time
     * per run; other kinds (connections, egress.md) from any. */
    cx_status (*append)(void *ctx, const char *kind, cx_str run_id, cx_bytes payload,
                        uint64_t *out_index, cx_err *err);
    /* The same for what counts once: *out_first is false when the journal has an earlier entry
     * about `subject`, of any writer.  Appending comes first, so of two at once one is told
     * so. */
    cx_status (*append_once)(void *ctx, const char *kind, const cx_digest *subject,
                             cx_bytes payload, bool *out_first, cx_err *err);
    /* The seal of the bundle in `folder` is durable; its files are not read-only yet.  NULL =
     * nothing to do. */
    void (*sealed)(void *ctx, cx_str run_id, const char *folder);
} cx_run_ledger;

/* --- writing ---------------------------------------------------------------------------------- */

#define CX_RUN_NO_ATTEMPT (-1)

typedef struct cx_run_event {
    cx_run_level level;
    cx_run_event_type type;
    cx_str task_id;  /* empty = null */
    int32_t attempt; /* CX_RUN_NO_ATTEMPT = null */
    cx_json payload; /* an object; a zeroed value = {} */
} cx_run_event;

typedef struct cx_run_events cx_run_events;

typedef struct cx_run_events_options {
    const cx_io *io;
    const cx_alloc *alloc;
    const char *folder;    /* the bundle; must be there */
    const char *lock_path; /* outside the bundle */
    cx_str run_id;
    cx_str trace_id;
    const cx_run_ledger *ledger; /* NULL = none */
    /* Masks secrets in a payload (§1 R7) before anything is written; NULL = none. */
    cx_status (*mask)(void *arg, const cx_json *payload, cx_arena *arena, cx_json *out,
                      cx_err *err);
    void *mask_arg;
} cx_run_events_options;

/* Makes both files empty, or finds them so; CX_E_EXISTS when there are events already. */
CX_RESULT cx_run_events_create(const cx_run_events_options *options, cx_run_events **out,
                               cx_err *err);
void cx_run_events_close(cx_run_events *events);

/*
 * Appends.  Never before the last one: when the clock went back the time of the last event is
 * written again.  `out_line` (may be NULL) is borrowed until the next append, without '\n'.
 * Thread-safe.  After an error of writing nothing more can be appended: CX_E_IO ever after.
 */
CX_RESULT cx_run_events_append(cx_run_events *events, const cx_run_event *event, cx_str *out_line,
                               cx_err *err);
uint64_t cx_run_events_count(const cx_run_events *events);
/* The last link's hash, hex; "" before the first event.  Borrowed until the next append. */
cx_str cx_run_events_head(const cx_run_events *events);
cx_str cx_run_events_trace_id(const cx_run_events *events);

/* --- after a crash ---------------------------------------------------------------------------- */

typedef struct cx_run_recovery {
    uint64_t events;      /* whole lines that are there */
    uint64_t torn_bytes;  /* of a last line without its end: moved to artifacts/torn_tail.bin */
    bool chain_completed; /* the chain was one line short */
    bool finished;        /* RUN_FINISHED was written */
    cx_str last_state;    /* "to" of the last STATE_TRANSITION, or "S0"; static storage */
} cx_run_recovery;

/*
 * Opens the log of a run whose owner is dead, repairs what a crash can have done, and writes
 * LOG_RECOVERED when it did.  The trace id is that of the events; options->trace_id serves a run
 * that has none.  Anything a crash cannot explain is CX_E_FORMAT, and nothing is changed.
 * options->run_id says which run; trace_id is ignored.
 */
CX_RESULT cx_run_events_recover(const cx_run_events_options *options, cx_run_events **out,
                                cx_run_recovery *out_recovery, cx_err *err);

/* --- reading ---------------------------------------------------------------------------------- */

/* One event as it is in the file.  Text borrows from the line or the arena. */
typedef struct cx_run_event_read {
    cx_str line;    /* without '\n' */
    uint64_t index; /* from 1 */
    cx_str ts, level, type, run_id, trace_id;
    cx_run_event_type kind; /* of `type`; CX_RUN_EVENT_UNKNOWN is no error */
    cx_str task_id;         /* NULL data = null */
    bool has_attempt;
    int64_t attempt;
    cx_json payload;
    cx_json whole;
} cx_run_event_read;

/* CX_E_SYNTAX / CX_E_FORMAT when it is no JSON object or lacks a member of the right type. */
CX_RESULT cx_run_event_parse(cx_str line, uint64_t index, cx_arena *arena, cx_run_event_read *out,
                             cx_err *err);
/* Takes the next line off `*text` (which then begins after its '\n'); false at the end, and for a
 * last line without '\n', which stays in `*text`. */
bool cx_run_next_line(cx_str *text, cx_str *out_line);

/* hash = sha256("<index>:<prev>:<event_sha256>"); `prev` NULL for the first. */
cx_digest cx_run_chain_hash(uint64_t index, const cx_digest *prev, const cx_digest *event_sha256);

#endif
