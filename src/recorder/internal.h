/*
 * internal.h - shared by the files of the recorder.
 */
#ifndef CX_RECORDER_INTERNAL_H
#define CX_RECORDER_INTERNAL_H

#include "base/api.h"
#include "recorder/deliveries.h"
#include "recorder/recorder.h"
#include "index/api.h"

/* Actors of the recorder's own (decision 0015). */
#define CX_ACTOR_TRUST CX_STR("trust")
#define CX_ACTOR_BATCHES CX_STR("batches")
#define CX_ACTOR_ALERTS CX_STR("alerts")

#define CX_KIND_RECEIVED cx_kinds_name(CX_KIND_TRACE_RECEIVED)
#define CX_KIND_CONFLICT cx_kinds_name(CX_KIND_TRACE_CONFLICT)
#define CX_KIND_BATCH cx_kinds_name(CX_KIND_TRACE_BATCH)
#define CX_KIND_KEY cx_kinds_name(CX_KIND_TRACE_KEY)
#define CX_KIND_CONNECTIVITY cx_kinds_name(CX_KIND_TRACE_CONNECTIVITY)
#define CX_KIND_KEY_REJECTED cx_kinds_name(CX_KIND_TRACE_KEY_REJECTED)
#define CX_KIND_ALERT cx_kinds_name(CX_KIND_TRACE_ALERT)
#define CX_KIND_ALERT_ACK cx_kinds_name(CX_KIND_TRACE_ALERT_ACK)

/* --- trust.c ---------------------------------------------------------------------------------- */

/* A store that grows entry by entry.  Belongs to one thread. */
typedef struct cx_trust_store {
    const cx_alloc *alloc;
    cx_arena arena;
    CX_VEC(cx_trust_key) keys; /* in order of arrival */
    cx_map by_id;
} cx_trust_store;

void cx_trust_store_init(cx_trust_store *store, const cx_alloc *alloc);
void cx_trust_store_done(cx_trust_store *store);
/* Applies one trace.key entry; returns the key that was added or changed, borrowed until the
 * next call; NULL when the entry changes nothing.  After CX_E_NOMEM the store is unusable. */
CX_RESULT cx_trust_store_apply(cx_trust_store *store, cx_bytes payload,
                               const cx_trust_key **out_changed, cx_err *err);
/* All keys; sorted by id, texts borrowed from the store. */
CX_RESULT cx_trust_store_store(const cx_trust_store *store, cx_arena *arena, cx_trust *out,
                               cx_err *err);

/* The store as the ledger had it after `entries` entries of the trust actor; never changed. */
typedef struct cx_trust_view {
    cx_trust_store store;
    cx_arena arena;
    cx_trust trust;
    uint64_t entries;
    unsigned users; /* under the recorder's lock; 0 = freed */
} cx_trust_view;

/* The newest view, valid until it is released. */
CX_RESULT cx_recorder_trust_acquire(cx_recorder *recorder, cx_trust_view **out, cx_err *err);
void cx_recorder_trust_release(cx_recorder *recorder, cx_trust_view *view);
/* Entries of the trust actor: another number than a view's means that it is old. */
CX_RESULT cx_recorder_trust_entries(cx_home *home, uint64_t *out, cx_err *err);

/* --- batch.c ---------------------------------------------------------------------------------- */

/* One event as received in the batch. */
typedef struct cx_event {
    cx_bytes trace; /* raw bytes of the trace object */
    cx_trace_level level;
    bool connectivity;        /* event_type "connectivity_.." (§11) */
    cx_trace_problem problem; /* of the event itself; path relative to the trace or event */
} cx_event;

typedef struct cx_batch {
    const cx_event *events;
    size_t event_count;
    int64_t batch_ns, consent_ns;
    cx_str batch_timestamp, consent_timestamp; /* verbatim */
    cx_trace_level level;                      /* CX_LEVEL_ABSENT */
    const cx_json *correlation_metadata;       /* NULL = absent */
    int64_t received_ns;                       /* when it had to wait; 0 = now */
} cx_batch;

/* A problem means that the batch as a whole is refused.  Memory from the arena, bytes from the
 * body. */
CX_RESULT cx_batch_read(cx_bytes body, cx_arena *arena, cx_batch *out,
                        cx_batch_problem *out_problem, cx_err *err);
/* The trace_id of a trace that could not be read: a string that is given once; else data NULL. */
cx_str cx_batch_trace_id(cx_bytes trace, cx_arena *arena);
/* The problem that the whole batch has when one of its events is no JSON at all. */
bool cx_batch_unreadable(cx_trace_reason reason, cx_batch_problem *out_problem);

/* --- intake.c --------------------------------------------------------------------------------- */

/* What cx_recorder_receive does with a batch that was read. */
CX_RESULT cx_recorder_receive_from(cx_recorder *recorder, const cx_batch *batch, cx_capture capture,
                                   const cx_open_sender *sender, cx_arena *arena, cx_intake *out,
                                   cx_err *err);

/* --- recorded.c ------------------------------------------------------------------------------- */

/* A trace as the ledger has it. */
typedef struct cx_recorded {
    cx_trace_record record;
    bool erased;
    cx_trace trace; /* unless erased */
    cx_entry_view entry;
} cx_recorded;
/* CX_E_NOT_FOUND when the entry is no received trace. */
CX_RESULT cx_recorder_recorded(cx_home *home, cx_str actor, uint64_t seq, cx_trace_level level,
                               cx_arena *arena, cx_recorded *out, cx_err *err);

/* --- alerts.c --------------------------------------------------------------------------------- */

/* Different bytes were received under an id that is in use (trace.md §9). */
typedef struct cx_conflict_alert {
    cx_str agent, trace_id;
    cx_digest content;
    int64_t at_ns;
} cx_conflict_alert;
/* Appends the alert unless it was raised before; the commit is not waited for. */
CX_RESULT cx_recorder_raise_conflict(cx_recorder *recorder, const cx_conflict_alert *alert,
                                     bool *out_raised, uint64_t *out_commit, cx_err *err);

/* --- deliveries.c ----------------------------------------------------------------------------- */

typedef struct cx_deliveries cx_deliveries;

/* `home_path` is that of the data directory; nothing is opened before it is needed. */
CX_RESULT cx_deliveries_new(const cx_alloc *alloc, const char *home_path, cx_deliveries **out,
                            cx_err *err);
void cx_deliveries_free(cx_deliveries *deliveries); /* NULL is fine */

/* --- answers.c -------------------------------------------------------------------------------- */

/* The chain of an agent from the index; a key's chain_profile is used for `auto`. */
CX_RESULT cx_recorder_chain(cx_recorder *recorder, cx_index *index, cx_str agent,
                            const cx_chain_options *options, cx_arena *arena, cx_chain_report *out,
                            cx_err *err);

/* What changed near the numbers first to last of a chain: the report is that of the entries around
 * them, with the findings that these have a part in, and CX_BROKEN only because of them. */
CX_RESULT cx_recorder_chain_near(cx_recorder *recorder, cx_index *index, cx_str agent,
                                 int64_t first, int64_t last, cx_arena *arena, cx_chain_report *out,
                                 cx_err *err);

/* --- alerts.c, detect_round.c ----------------------------------------------------------------- */

/* One run of the detectors over an index: all at once, or what is new. */
typedef struct cx_detection {
    cx_recorder *recorder;
    cx_index *index;
    cx_arena *arena;
    int64_t now_ns;
    CX_VEC(cx_json) found;
} cx_detection;

/* Adds alerts to those found. */
CX_RESULT cx_detection_collect(cx_detection *d, const cx_alerts *alerts, cx_err *err);
/* Runs the detectors over scores. */
CX_RESULT cx_detection_scores(cx_detection *d, cx_err *err);
/* Checks the whole chain of one agent; of all agents. */
CX_RESULT cx_detection_chain(cx_detection *d, cx_str agent, cx_err *err);
CX_RESULT cx_detection_chains(cx_detection *d, cx_err *err);
/* Records what was found and not raised before; durable when it returns. */
CX_RESULT cx_detection_raise(cx_detection *d, uint64_t *out_new, cx_err *err);

/* --- delivery_body.c -------------------------------------------------------------------------- */

/* One entry of the journal `alerts`. */
typedef struct cx_alert_event {
    cx_str id;      /* of the delivery */
    cx_str home_id; /* hex */
    cx_str type;    /* "alert.raised", .. */
    cx_str alert_id;
    int64_t at_ns;
    const cx_json *alert; /* NULL = it was raised before this destination was configured */
    const cx_json *mark;  /* NULL = raised */
} cx_alert_event;

/* The body for a destination; data NULL: there is nothing to tell it. */
CX_RESULT cx_delivery_body(const cx_alert_event *event, cx_destination destination, cx_arena *arena,
                           cx_str *out, cx_err *err);

/* --- feed.c ----------------------------------------------------------------------------------- */

typedef struct cx_feeder {
    cx_thread thread;
    char *where; /* NULL = none */
    bool stopping;
    cx_feed_status status;
    cx_feed_changed *changed; /* or NULL */
    void *arg;
} cx_feeder;

/* --- recorder --------------------------------------------------------------------------------- */

struct cx_recorder {
    const cx_alloc *alloc;
    cx_home *home;
    cx_recorder_options options;
    cx_lock lock;
    cx_trust_view *view; /* NULL = not read yet */
    struct cx_pending *pending;
    struct cx_deliveries *deliveries;
    cx_feeder feeder;
};

/* Tells the feed that there is something new. */
void cx_recorder_notify(cx_recorder *recorder);

#endif
