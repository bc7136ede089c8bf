/*
 * deliveries.h - alerts on their way out: a durable queue for each destination (trace.md §12.2).
 *
 * The journal `alerts` is the truth: what was raised, acknowledged and resolved.  For each
 * destination HOME/alerts.db has the number of the next entry to take from there, the messages made
 * of earlier ones, and what became of each.  Nothing here sends: the caller asks for the next
 * message, and says how its attempt went.
 *
 *   V1  A message is made of an entry that is durable, once, in the transaction that moves the
 *       destination past it: no entry is skipped, and a restart loses nothing.
 *   V2  A message leaves the queue only after its outcome is durable: after a crash it is sent
 *       again under the same id (at least once).
 *   V3  Messages of one destination are sent in the order of their entries.  One that the receiver
 *       refuses for what it contains fails after CX_DELIVERY_REFUSALS_MAX attempts, every other one
 *       is tried until it is older than CX_DELIVERY_DAYS.
 *   V4  The queue has at most CX_DELIVERY_WAITING_MAX waiting messages of a destination (the rest
 *       stays in the journal) and CX_DELIVERY_KEPT_MAX finished ones.
 *
 * Thread-safe, and safe between processes.
 */
#ifndef CX_RECORDER_DELIVERIES_H
#define CX_RECORDER_DELIVERIES_H

#include "base/api.h"
#include "recorder/recorder.h"

#define CX_DELIVERY_DAYS 7
#define CX_DELIVERY_REFUSALS_MAX 5
#define CX_DELIVERY_WAITING_MAX 1000
#define CX_DELIVERY_KEPT_MAX 10000
/* Between attempts: doubled from the first to the last. */
#define CX_DELIVERY_PAUSE_FIRST_MS 1000
#define CX_DELIVERY_PAUSE_LAST_MS 300000

typedef enum cx_destination {
    CX_TO_WEBHOOK,
    CX_TO_ALERTMANAGER,
    CX_TO_COMMAND,
    CX_DESTINATIONS
} cx_destination;
const char *cx_destination_name(cx_destination destination); /* "webhook", .. */

typedef enum cx_delivery_state {
    CX_DELIVERY_WAITING, /* not sent yet, or to be sent again */
    CX_DELIVERY_DELIVERED,
    CX_DELIVERY_FAILED, /* refused for what it contains */
    CX_DELIVERY_EXPIRED,
    CX_DELIVERY_STATES
} cx_delivery_state;
const char *cx_delivery_state_name(cx_delivery_state state); /* "waiting", .. */

/* One message. */
typedef struct cx_delivery {
    int64_t number; /* in the queue */
    cx_destination destination;
    cx_str id;    /* the same in every attempt and for every destination */
    cx_str event; /* "alert.raised", "alert.acknowledged", "alert.resolved" */
    cx_str alert_id;
    cx_str body;       /* JSON */
    int64_t at_ns;     /* of the entry */
    uint64_t attempts; /* before this one */
} cx_delivery;

typedef enum cx_attempt_result {
    CX_ATTEMPT_DELIVERED,
    CX_ATTEMPT_AGAIN,  /* not now: no connection, an error of the receiver */
    CX_ATTEMPT_REFUSED /* the receiver does not take this message */
} cx_attempt_result;

typedef struct cx_delivery_attempt {
    cx_attempt_result result;
    cx_str error;           /* why not, one line; empty when it was delivered */
    uint32_t retry_after_s; /* asked for by the receiver; 0 = chosen here */
} cx_delivery_attempt;

/* At the start of a server: a destination that is new begins with what is raised from now on; what
 * waits is due at once. */
CX_RESULT cx_deliveries_begin(cx_recorder *recorder, cx_destination destination, cx_err *err);
/* Takes over what the journal has that is new (V1); `*out_count` messages were made. */
CX_RESULT cx_deliveries_collect(cx_recorder *recorder, cx_destination destination,
                                uint64_t *out_count, cx_err *err);
/* The oldest waiting message, in the arena; `*out_due_ns`: when it may be sent, CX_TIME_NONE when
 * there is none. */
CX_RESULT cx_deliveries_next(cx_recorder *recorder, cx_destination destination, cx_arena *arena,
                             cx_delivery *out, int64_t *out_due_ns, cx_err *err);
/* Records an attempt (V2); `*out_state` is what the message now is. */
CX_RESULT cx_deliveries_record(cx_recorder *recorder, const cx_delivery *delivery,
                               const cx_delivery_attempt *attempt, cx_delivery_state *out_state,
                               cx_err *err);

/* Messages that wait, and the time of the oldest; CX_TIME_NONE = none waits. */
typedef struct cx_deliveries_waiting {
    uint64_t count;
    int64_t oldest_ns;
} cx_deliveries_waiting;
CX_RESULT cx_deliveries_waiting_now(cx_recorder *recorder,
                                    cx_deliveries_waiting out[CX_DESTINATIONS], cx_err *err);

/* [{"attempts","destination","error","event","id","next_at","state","tried_at"},..] of one alert,
 * in the order of their entries. */
CX_RESULT cx_deliveries_json(cx_recorder *recorder, cx_str alert_id, cx_arena *arena, cx_json *out,
                             cx_err *err);

/* --- for the schedule of the detectors -------------------------------------------------------- */

/* Up to where in the log the audit chains were checked; `*out_found` false: never. */
CX_RESULT cx_deliveries_checked(cx_recorder *recorder, cx_position *out, bool *out_found,
                                cx_err *err);
CX_RESULT cx_deliveries_set_checked(cx_recorder *recorder, cx_position position, cx_err *err);

#endif
