/*
 * state_review.h - an agent as reviewer (state_reviewer.c), for state_review.c alone.
 */
#ifndef CX_GOVERNOR_STATE_REVIEW_H
#define CX_GOVERNOR_STATE_REVIEW_H

#include "governor/state_internal.h"

/* Whether the configuration has a runner for the role REVIEWER. */
bool cx_governor_has_reviewer(const cx_governor *g);

/*
 * Runs it over a checkout of its own, read-only; fills t->reports.review (BLOCKED when it failed)
 * and adds to `findings` whatever it changed there.
 */
CX_RESULT cx_task_agent_review(cx_governor_task *t, cx_run_findings *findings, cx_err *err);

#endif
