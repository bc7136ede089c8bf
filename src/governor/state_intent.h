/*
 * state_intent.h - shared by state_intent.c and state_intent_text.c: S0 of a run that starts from a
 * request, whose contract an agent writes.
 */
#ifndef CX_GOVERNOR_STATE_INTENT_H
#define CX_GOVERNOR_STATE_INTENT_H

#include "governor/state_internal.h"

typedef struct cx_planner {
    cx_governor *governor;
    cx_governor_task *t; /* m->planner */
    const char *base;    /* the folder it is given to write into, and its schema; NULL: none made */
    cx_str request;      /* JSON: what it is given */
    cx_str reply;        /* as it came; no data: there was none */
    cx_str started_at, finished_at;
} cx_planner;

/* Fills p->request: the request, the agents there are with their rights, the schemas to bind. */
CX_RESULT cx_planner_request(cx_planner *p, cx_err *err);
/* artifacts/intent.json, and the reply. */
CX_RESULT cx_planner_write_evidence(cx_planner *p, cx_err *err);
/* A planner that was refused: what the run has in place of a contract (N2). */
CX_RESULT cx_planner_write_refusal(cx_planner *p, cx_err *err);

#endif
