/*
 * recorder.h - receives traces exactly once and makes them searchable: intake, trust, feed,
 * answers, bridge (trace.md §4, §9 - §12; decisions 0015 - 0017, 0027).
 *
 *     cx_recorder_receive       a batch: verified, appended, durable; one result an event
 *     cx_recorder_feed_..    a thread feeds the ledger into an index, and resumes
 *     cx_recorder_answer_..  JSON for the command line and the server
 *     cx_recorder_lattice    a branch of recorded traces as a lattice
 *
 * Actors and kinds: traces under their agent (or "key:<id>"), `trace.received` with the received
 * bytes as committed payload, `trace.conflict` likewise; `batches`: `trace.batch`; `trust`:
 * `trace.key`; `alerts`: `trace.alert`, `trace.alert_ack`.  See docs/formats/trace.md for payloads
 * and records.  Thread-safe unless a function says it is not.
 *
 * Invariants of the intake:
 *
 *   I1  Traces are verified before any transaction, without a lock.  If the trust store has changed
 *       when the transaction begins, they are verified again with the new one.
 *   I2  Whether a trace is recorded already is decided inside the transaction, over everything that
 *       was written before and the events of this transaction.
 *   I3  Events of one actor share a transaction, transactions share a sync: the caller waits once,
 *       for the last, and everything accepted is durable when the call returns.
 *   I4  An item is stored only when it is verified, or when the policy stores unverified ones.
 *   I5  An event has an entry exactly when it is neither rejected nor pending.
 */
#ifndef CX_RECORDER_RECORDER_H
#define CX_RECORDER_RECORDER_H

#include <cortex/lattice.h>

#include "base/api.h"
#include "ledger/api.h"
#include "sensitive/api.h"
#include "index/api.h"
#include "trace/api.h"

#define CX_BATCH_BYTES_MAX (UINT32_C(8) << 20)
#define CX_BATCH_EVENTS_MAX 1000
#define CX_TAKE_STATUSES 6

/* The derivers of all modules, combined: every data directory is opened with it. */
extern const cx_deriver cx_recorder_deriver;

typedef struct cx_recorder cx_recorder;

typedef struct cx_recorder_options {
    const cx_alloc *alloc;               /* NULL = default */
    bool keep_unknown;                   /* policy unknown_key = keep_unverified (§4) */
    bool strip_level;                    /* policy level = strip (§2) */
    unsigned forms;                      /* CX_FORMS_ALL, or CX_FORM_BITs; 0 = all */
    const cx_sensitive_rules *sensitive; /* NULL = nothing is looked for; outlives it */
    unsigned index_days; /* rows older than that leave the index of a feed; 0 = they stay */
    /* More than that of an index in a file: its oldest rows leave it; 0 = they stay. */
    uint64_t index_bytes;
    int64_t (*now_ns)(void *arg); /* NULL = the data directory's clock */
    void *now_arg;
} cx_recorder_options;

/* Over an open data directory, which must outlive it. */
CX_RESULT cx_recorder_open(cx_home *home, const cx_recorder_options *options, cx_recorder **out,
                           cx_err *err);
void cx_recorder_close(cx_recorder *recorder); /* NULL is fine; ends the feed */
cx_home *cx_recorder_home(cx_recorder *recorder);
/* The rules it was opened with; NULL = none. */
const cx_sensitive_rules *cx_recorder_sensitive(const cx_recorder *recorder);

/* --- intake ----------------------------------------------------------------------------------- */

/* Where a record came from (decision 0027); a verified signature makes it `signed`. */
typedef enum cx_capture {
    CX_CAPTURE_IMPORTED,
    CX_CAPTURE_AUTHENTICATED,
    CX_CAPTURE_OPEN
} cx_capture;

typedef enum cx_intake_event_status {
    CX_INTAKE_STORED,
    CX_INTAKE_DUPLICATE,
    CX_INTAKE_UNVERIFIED,
    CX_INTAKE_CONFLICT,
    CX_INTAKE_REJECTED,
    CX_TAKE_PENDING /* accepted, and waits until its key is approved (§4.6) */
} cx_intake_event_status;
const char *cx_intake_event_status_name(cx_intake_event_status status);

/* "consent_after_batch", "consent_in_future", "batch_in_future", "consent_revoked" */
#define CX_INTAKE_WARNINGS_MAX 4

typedef struct cx_intake_event {
    cx_str trace_id;    /* data NULL when it could not be read */
    cx_str signing_key; /* signature_key_id, likewise */
    cx_intake_event_status status;
    cx_trace_verdict verdict;
    cx_digest content;
    bool has_content;
    bool has_entry;
    cx_str actor; /* stored, duplicate, unverified, conflict: where it is */
    uint64_t seq;
    /* What the sender should look at although the trace was accepted (decision 0026). */
    const char *warnings[CX_INTAKE_WARNINGS_MAX];
    size_t warning_count;
    const cx_str *stripped; /* what the strip policy removed */
    size_t stripped_count;
} cx_intake_event;

/* Why a batch as a whole was refused; http is the status code (400, 413, 422). */
typedef struct cx_batch_problem {
    int http;         /* 0 = the batch was read */
    const char *type; /* "malformed-json", "duplicate-key", "invalid-utf8", "too-large", .. */
    cx_str detail;
    cx_str pointer; /* data NULL = none */
} cx_batch_problem;

typedef struct cx_intake {
    cx_batch_problem problem;
    const cx_intake_event *events;
    size_t received, accepted, rejected;
    size_t pending; /* of those accepted: they wait, and nothing else counts them */
    bool changed;   /* something was written */
} cx_intake;

/* The body of POST /events.  Returns when everything accepted is durable (I3).  Errors: the ledger
 * cannot be written (then nothing may be assumed). */
CX_RESULT cx_recorder_receive(cx_recorder *recorder, cx_bytes body, cx_capture capture,
                              cx_arena *arena, cx_intake *out, cx_err *err);
/* Traces as they are in files, which share one sync; one that is not JSON is rejected alone.
 * `batch_level` CX_LEVEL_ABSENT when unknown. */
CX_RESULT cx_recorder_receive_traces(cx_recorder *recorder, const cx_bytes *traces, size_t count,
                                     cx_trace_level batch_level, cx_capture capture,
                                     cx_arena *arena, cx_intake *out, cx_err *err);

/* A sender without a token: only what a registered or a pending key signed is accepted. */
typedef struct cx_open_sender {
    /* Whether so many more events of this key are admitted now; they carry its signature. */
    bool (*admit)(void *arg, cx_str key_id, size_t events);
    void *arg;
} cx_open_sender;
/* The same as cx_recorder_receive for such a sender.  A problem with code 429 means that a limit
 * was reached and that nothing was stored. */
CX_RESULT cx_recorder_take_open(cx_recorder *recorder, cx_bytes body, const cx_open_sender *sender,
                                cx_arena *arena, cx_intake *out, cx_err *err);
/* "ok", "partial", "rejected" */
const char *cx_intake_status(const cx_intake *intake);
/* The answer of §11, one line. */
CX_RESULT cx_intake_json(cx_buf *out, const cx_intake *intake, cx_err *err);

/* --- trust ------------------------------------------------------------------------------------ */

/* `*out_new` false: the same key was there.  CX_E_CONFLICT "KeyConflict": the id is another key's.
 * The key's added_at is set to now. */
CX_RESULT cx_recorder_key_add(cx_recorder *recorder, const cx_trust_key *key, bool *out_new,
                              cx_err *err);
/* CX_E_NOT_FOUND "NoKey".  compromised_since CX_TIME_NONE = only from now on. */
CX_RESULT cx_recorder_key_revoke(cx_recorder *recorder, cx_str key_id, cx_str reason, cx_str by,
                                 int64_t compromised_since, cx_err *err);
/* The store as it is now, copied into the arena. */
CX_RESULT cx_recorder_trust(cx_recorder *recorder, cx_arena *arena, cx_trust *out, cx_err *err);

/* --- consent ---------------------------------------------------------------------------------- */

#define CX_CONSENTS_ACTOR "consents"

typedef struct cx_consent_revocation {
    cx_str agent, by, reason;
    int64_t revoked_ns;
} cx_consent_revocation;
/* Recorded; the last one of an agent counts. */
CX_RESULT cx_recorder_consent_revoke(cx_recorder *recorder, const cx_consent_revocation *revocation,
                                     cx_err *err);
/* When the consent to an agent's traces was revoked; CX_TIME_NONE = it was not. */
CX_RESULT cx_recorder_consent_revoked(cx_recorder *recorder, cx_str agent, cx_arena *arena,
                                      int64_t *out_ns, cx_err *err);

/* --- keys that register themselves (§4.6) ----------------------------------------------------- */

typedef struct cx_pending_sums {
    uint64_t keys, events, bytes;
} cx_pending_sums;

typedef struct cx_registration {
    const cx_trust_key *key; /* id, key and description count */
    cx_str address;          /* where it came from, for people and for the limit of one address */
    bool loopback;           /* that limit does not apply */
} cx_registration;
typedef enum cx_registered {
    CX_REGISTERED_TRUSTED, /* the same key is in the trust store */
    CX_REGISTERED_PENDING,
    CX_REGISTERED_PENDING_BEFORE
} cx_registered;
/* CX_E_CONFLICT "KeyConflict", CX_E_DENIED "KeyRejected", CX_E_LIMIT "PendingFull". */
CX_RESULT cx_recorder_register(cx_recorder *recorder, const cx_registration *registration,
                               cx_registered *out, cx_err *err);

typedef struct cx_approval_of_key {
    cx_str key_id, by;
    const cx_str *agents; /* that it may sign for; none = any */
    size_t agent_count;
} cx_approval_of_key;
typedef struct cx_key_decided {
    uint64_t events, accepted, rejected; /* of what waited */
    uint64_t bytes;                      /* of a rejected key: what was discarded */
} cx_key_decided;
/* Moves a pending key to the trust store, and records what waited in the order of arrival.  Can be
 * repeated after a failure.  CX_E_NOT_FOUND "NoPendingKey". */
CX_RESULT cx_recorder_key_approve(cx_recorder *recorder, const cx_approval_of_key *approval,
                                  cx_key_decided *out, cx_err *err);
/* Discards the key and what waited; the ledger records that, and how much it was. */
CX_RESULT cx_recorder_key_reject(cx_recorder *recorder, cx_str key_id, cx_str by, cx_str reason,
                                 cx_key_decided *out, cx_err *err);
CX_RESULT cx_recorder_answer_pending(cx_recorder *recorder, cx_buf *out, cx_err *err);
CX_RESULT cx_recorder_pending_counts(cx_recorder *recorder, cx_pending_sums *out, cx_err *err);

/* --- the index -------------------------------------------------------------------------------- */

/* Feeds the ledger into the index at `where` (as cx_index_open) until it has caught up; the data
 * directory may be open for reading only.  For commands. */
CX_RESULT cx_recorder_feed_now(cx_recorder *recorder, const char *where, cx_err *err);
/* What became of the index; `failure` is NULL when it can be written again.  Called once for each
 * change, by this function's thread before it returns or by the feed's. */
typedef void cx_feed_changed(void *arg, const cx_err *failure);
/* The same by a thread, for servers: it continues when a database becomes available again.
 * `changed` may be NULL.  Once. */
CX_RESULT cx_recorder_feed_begin(cx_recorder *recorder, const char *where, cx_feed_changed *changed,
                                 void *arg, cx_err *err);
void cx_recorder_feed_end(cx_recorder *recorder);
/* Waits until the index has all that is on the disk now; CX_E_TIMEOUT "IndexBehind". */
CX_RESULT cx_recorder_feed_wait(cx_recorder *recorder, unsigned timeout_ms, cx_err *err);
typedef struct cx_feed_status {
    uint64_t log_commits, index_commits;
    bool running;
    bool away; /* the database could not be reached last time */
    char last_error[CX_ERR_MESSAGE_SIZE];
} cx_feed_status;
void cx_recorder_feed_get_status(cx_recorder *recorder, cx_feed_status *out);
/* HOME/cirislens.db; the path lives in the arena. */
const char *cx_recorder_index_path(const char *home_path, cx_arena *arena);

/* The recorder's clock: ns since 1970. */
int64_t cx_recorder_now(const cx_recorder *recorder);

/* --- answers: one line of canonical JSON each ------------------------------------------------- */

/* Of GET /traces; `query` as received, the cursor already decoded.  `next_cursor` is
 * authenticated by a key of the data directory. */
CX_RESULT cx_recorder_answer_traces(cx_recorder *recorder, cx_index *index,
                                    const cx_trace_query *query, cx_buf *out, cx_err *err);
/* Reads an opaque cursor into the query; CX_E_FORMAT "BadCursor". */
CX_RESULT cx_recorder_cursor_parse(cx_recorder *recorder, cx_str cursor, cx_trace_query *query,
                                   cx_err *err);

typedef struct cx_trace_wanted {
    cx_str trace_id;
    cx_str agent; /* data NULL = any; CX_E_CONFLICT "Ambiguous" when several agents have it */
    cx_trace_level level; /* highest that may be shown */
} cx_trace_wanted;
/* {"trace":..,"level","verdict":{..},"entry":{"actor","seq"},"proof":{..},"conflicts":[..]}; the
 * trace is redacted when it is stored above `level`.  CX_E_NOT_FOUND "NoTrace". */
CX_RESULT cx_recorder_answer_trace(cx_recorder *recorder, cx_index *index,
                                   const cx_trace_wanted *wanted, cx_buf *out, cx_err *err);
/* {"agent_id_hash","batch":{"accepted","batch_id","correlation_metadata","received",
 * "rejected"}|null,"next":row|null,"nodes":[hash|null, ..],"previous":row|null,"row"}: the
 * context of a trace (rows as GET /traces shows them): the agent's traces before and after it,
 * the batch it came in, its nodes (by component; searched in the agent's whole journal only when
 * `nodes`).  CX_E_NOT_FOUND "NoTrace". */
CX_RESULT cx_recorder_answer_around(cx_recorder *recorder, cx_index *index,
                                    const cx_trace_wanted *wanted, bool nodes, cx_buf *out,
                                    cx_err *err);
#define CX_CHECK_TRACES_MAX 100
/* {"left_out":N,"results":[verdict, ..]}: whether a trace, or each of a batch's first
 * CX_CHECK_TRACES_MAX, would verify now with the keys that are trusted here; nothing is recorded.
 * What cannot be read is one trace that is broken. */
CX_RESULT cx_recorder_answer_check(cx_recorder *recorder, cx_bytes body, cx_buf *out, cx_err *err);
#define CX_FLEET_DAYS_MAX 90
#define CX_FLEET_AGENTS_MAX 200
typedef struct cx_fleet_wanted {
    unsigned days; /* 1 .. CX_FLEET_DAYS_MAX */
    int64_t to_ns; /* in the last day; CX_TIME_NONE = that of the newest verified trace */
    cx_str agent;  /* only this one; data NULL = those with most traces */
} cx_fleet_wanted;
/* {"agents":[..],"capacity_step","days":[..],"left_out":{"agents","traces"},"more"}: each agent's
 * traces of the last days, day by day; what is left out is counted (answer_fleet.c). */
CX_RESULT cx_recorder_answer_fleet(cx_recorder *recorder, cx_index *index,
                                   const cx_fleet_wanted *wanted, cx_buf *out, cx_err *err);
/* The received bytes; CX_E_DENIED "LevelTooLow" when they are of a higher level. */
CX_RESULT cx_recorder_raw_trace(cx_recorder *recorder, cx_index *index,
                                const cx_trace_wanted *wanted, cx_buf *out, cx_err *err);
CX_RESULT cx_recorder_answer_chain(cx_recorder *recorder, cx_index *index, cx_str agent,
                                   const cx_chain_options *options, cx_buf *out,
                                   cx_verdict *out_verdict, cx_err *err);
CX_RESULT cx_recorder_answer_wakeup(cx_recorder *recorder, cx_index *index, cx_str agent,
                                    cx_buf *out, bool *out_complete, cx_err *err);
/* Capacity and N_eff of one agent. */
CX_RESULT cx_recorder_answer_capacity(cx_recorder *recorder, cx_index *index, cx_str agent,
                                      cx_buf *out, cx_err *err);
CX_RESULT cx_recorder_answer_alerts(cx_recorder *recorder, cx_index *index, bool open_only,
                                    uint32_t limit, cx_buf *out, cx_err *err);
/* {"hits":[{"agent","at","cut_after","cut_before","failed","history","kind","ref","role","snippet",
 * "source","title","tool"}],"next_cursor"}: what cx_index_search finds. */
CX_RESULT cx_recorder_answer_search(cx_recorder *recorder, cx_index *index,
                                    const cx_step_query *query, cx_buf *out, cx_err *err);
/* {"histories":[{"agent","calls","cost_usd","errors","first","last","model","name","path","source",
 * "steps","title","tokens_input","tokens_output"}],"next_cursor"} */
CX_RESULT cx_recorder_answer_histories(cx_recorder *recorder, cx_index *index,
                                       const cx_history_query *query, cx_buf *out, cx_err *err);
/* Read `next_cursor` of these answers into a query; CX_E_FORMAT "BadCursor". */
CX_RESULT cx_recorder_step_cursor(cx_str cursor, cx_step_query *query, cx_err *err);
CX_RESULT cx_recorder_history_cursor(cx_str cursor, cx_history_query *query, cx_err *err);
CX_RESULT cx_recorder_answer_keys(cx_recorder *recorder, cx_buf *out, cx_err *err);

/* Runs the five detectors over the index; what is new is appended as `trace.alert` (when `record`).
 * Answers {"alerts":[..],"new":N}. */
CX_RESULT cx_recorder_detect(cx_recorder *recorder, cx_index *index, bool record, cx_buf *out,
                             uint64_t *out_found, cx_err *err);
/*
 * The same for a schedule, at a cost that does not grow with the past: the scores of the last 30
 * days when there is anything new, and of the audit chains only what has changed since the last
 * round.  What is newer than the round before is left for the next one, so that entries that arrive
 * out of order meanwhile are no gap.
 */
typedef struct cx_detect_schedule {
    uint64_t seen_commits; /* that the index had in the last round */
    bool has_seen;
    int64_t scored_day;
    uint64_t scored_commits;
} cx_detect_schedule; /* {0} at the start; belongs to one thread */
typedef struct cx_detect_round {
    uint64_t chains; /* places in audit chains that were checked */
    uint64_t found, raised;
} cx_detect_round;
CX_RESULT cx_recorder_detect_round(cx_recorder *recorder, cx_index *index,
                                   cx_detect_schedule *schedule, cx_detect_round *out, cx_err *err);

/* A live session in which a call ran that no hook decided (docs/formats/live.md §10). */
typedef struct cx_gap_alert {
    cx_str agent, session;
    cx_str actor;    /* its journal; empty = it has none */
    cx_str findings; /* the ids of its errors, in their order, with a space between */
    cx_str message;  /* of the first */
    uint64_t count;  /* errors */
    int64_t at_ns;
} cx_gap_alert;
/* Appends the alert, durable when this returns, unless one of this session with these findings was
 * raised before. */
CX_RESULT cx_recorder_raise_gap(cx_recorder *recorder, const cx_gap_alert *alert, bool *out_raised,
                                cx_err *err);

/* CX_E_NOT_FOUND "NoAlert". */
CX_RESULT cx_recorder_alert_mark(cx_recorder *recorder, cx_str alert_id, bool resolved, cx_str by,
                                 cx_str notes, cx_err *err);

/* --- as a lattice (§7, decision 0017) --------------------------------------------------------- */

/* The nodes of one agent's traces as JSON Lines; `branch` "agent/<..>", or data NULL = all. */
CX_RESULT cx_recorder_lattice_lines(cx_home *home, cx_str branch, cx_buf *out, cx_err *err);
/* The same, loaded from `lines`, which must outlive it.  CX_E_NOT_FOUND "NoBranch". */
CX_RESULT cx_recorder_lattice(cx_home *home, cx_str branch, const cx_lattice_options *options,
                              cx_buf *lines, cx_lattice **out, cx_err *err);

#endif
