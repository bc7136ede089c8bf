/*
 * detection.h - one run of the detectors over an index: all at once (alerts.c), or what is new
 * (detect_round.c).
 */
#ifndef CX_RECORDER_DETECTION_H
#define CX_RECORDER_DETECTION_H

#include "recorder/internal.h"

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

#endif
