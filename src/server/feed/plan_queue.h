/*
 * plan_queue.h - the queue of requests: one planner at a time makes contracts of them (run.md §21).
 *
 * A request is a case (audit/cases.h).  A thread takes the oldest that is queued, runs the planner
 * as a process of its own (`cortex run --intent .. --plan-only`), and writes down what would be
 * refused.  Nothing is worked on until a case is started.
 *
 *   Q1  The queue is in files: what was acknowledged is planned after a restart too.
 *   Q2  Of several servers of one repository one plans; the others queue.
 *   Q3  A case that was being planned when its server ended is queued again.
 */
#ifndef CX_SERVER_PLAN_QUEUE_H
#define CX_SERVER_PLAN_QUEUE_H

#include "server/feed/runs.h"

typedef struct cx_plan_queue cx_plan_queue;

/* `runs` and `options` outlive it. */
CX_RESULT cx_plan_queue_open(cx_runs *runs, const cx_runs_options *options, cx_plan_queue **out,
                             cx_err *err);
/* Something was queued. */
void cx_plan_queue_wake(cx_plan_queue *queue);
void cx_plan_queue_end(cx_plan_queue *queue);
/* NULL is fine; after cx_plan_queue_end.  Waits for the planner that was told to stop. */
void cx_plan_queue_close(cx_plan_queue *queue);

/* What would refuse a contract that starts now, as cx_run_dry says it; `runner` may be empty. */
CX_RESULT cx_plan_preview(const cx_runs_options *options, cx_bytes contract, cx_str runner,
                          cx_arena *arena, cx_json *out, bool *out_allow, cx_err *err);

#endif
