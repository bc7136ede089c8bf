/*
 * metrics.h - what the server counts, and the Prometheus text of it.  Thread-safe.
 */
#ifndef CX_SERVER_METRICS_H
#define CX_SERVER_METRICS_H

#include <stdatomic.h>

#include "base/api.h"

#define CX_METRICS_ROUTES_MAX 128
#define CX_METRICS_CLASSES 6 /* by the first digit of a status code */
#define CX_METRICS_BUCKETS 12
#define CX_METRICS_EVENTS 6     /* as cx_intake_event_status */
#define CX_OTLP_RESULTS 4       /* stored, duplicate, conflict, rejected */
#define CX_ALERT_DESTINATIONS 3 /* as cx_destination */
#define CX_ALERT_RESULTS 4      /* as cx_delivery_state; waiting: to be tried again */
#define CX_METRICS_GRPC_CODES 17

typedef struct cx_histogram {
    atomic_uint_fast64_t buckets[CX_METRICS_BUCKETS]; /* the last one: longer */
    atomic_uint_fast64_t sum_us;
} cx_histogram;

typedef struct cx_metrics {
    atomic_uint_fast64_t requests[CX_METRICS_ROUTES_MAX + 1][CX_METRICS_CLASSES];
    cx_histogram intake, reads;                                   /* time from headers to answer */
    atomic_uint_fast64_t events[CX_METRICS_EVENTS];               /* by cx_intake_event_status */
    atomic_uint_fast64_t otlp[2][CX_OTLP_RESULTS];                /* spans, log records */
    atomic_uint_fast64_t otlp_bytes;                              /* of their requests, unpacked */
    atomic_uint_fast64_t grpc_calls[CX_METRICS_GRPC_CODES];       /* by cx_grpc_code */
    atomic_uint_fast64_t grpc_closed_flood;                       /* connections */
    atomic_uint_fast64_t body_bytes;                              /* received */
    atomic_int_fast64_t connections, in_flight;                   /* now */
    atomic_int_fast64_t queued_intake, queued_reads, body_memory; /* now */
    atomic_uint_fast64_t rejected_full, rejected_slow, closed_slow;
    atomic_int_fast64_t feed_readers;
    atomic_uint_fast64_t feed_events, feed_dropped;
    atomic_uint_fast64_t alert_attempts[CX_ALERT_DESTINATIONS][CX_ALERT_RESULTS];
    atomic_uint_fast64_t detect_rounds[2], detect_raised; /* done, failed */
    atomic_uint_fast64_t audits[3], audits_failed;        /* of live sessions, by cx_verdict */
    atomic_uint_fast64_t detect_last_us, detect_last_at;  /* of the last one that was done */
    atomic_uint_fast64_t log_bytes[3];  /* segments, archives, archives elsewhere; as of log_read */
    atomic_uint_fast64_t log_failed_at; /* archiving, seconds since 1970; 0 = not */
    atomic_uint_fast64_t log_read_ns;   /* by the monotonic clock; 0 = never */
} cx_metrics;

void cx_histogram_add(cx_histogram *histogram, uint64_t duration_ns);

/* Lines of one metric: its help and type, then values. */
void cx_metrics_head(cx_buf *out, const char *name, const char *type, const char *help);
void cx_metrics_value(cx_buf *out, const char *name, const char *labels, uint64_t value);
void cx_histogram_write(cx_buf *out, const char *name, const char *labels,
                        const cx_histogram *histogram);

static inline uint64_t cx_gauge(const atomic_int_fast64_t *gauge)
{
    int_fast64_t value = atomic_load_explicit(gauge, memory_order_relaxed);
    return value < 0 ? 0 : (uint64_t)value;
}
static inline void cx_gauge_add(atomic_int_fast64_t *gauge, int64_t by)
{
    (void)atomic_fetch_add_explicit(gauge, by, memory_order_relaxed);
}
static inline uint64_t cx_counter(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}
static inline void cx_counter_add(atomic_uint_fast64_t *counter, uint64_t by)
{
    (void)atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

#endif
