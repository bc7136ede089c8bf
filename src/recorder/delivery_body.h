/*
 * delivery_body.h - what is sent about an alert (trace.md §12.2).  Pure.
 */
#ifndef CX_RECORDER_DELIVERY_BODY_H
#define CX_RECORDER_DELIVERY_BODY_H

#include "recorder/deliveries.h"

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

#endif
