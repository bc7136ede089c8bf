/*
 * run_weave.h - events of a run, one after the other, as nodes (decision 0017).
 *
 *     agent_id      run/<run_id>/<task_id>, or run/<run_id>/governor for events without a task
 *     seq           counts the branch's nodes from 0
 *     timestamp     the event's, in seconds, exact
 *     event         {"__seal","attempt","event_type","level","payload_sha256","source":"run"}
 *     state_delta   {"memory":{"state":<to>}} on a transition, {"memory":{"gate.<name>":
 *                   {"passed":..}}} on a gate's verdict, else {"memory":{"last.<type>":<payload>}}
 *
 *   I1  A task's first node descends from the governor's newest node, which spawned it.
 *   I2  The governor's first node after a task's last one descends from that one too.
 *   I4  A node follows from its event, the newest nodes of branches that are not joined yet, and
 *       the last event of each task: so weaving can go on at any event where these are known.
 *
 * Events are read twice: cx_run_weave_note all of them, since I2 asks for last ones, and then
 * cx_run_weave_node, in order.  Events are counted from 0.
 */
#ifndef CX_PROVENANCE_RUN_WEAVE_H
#define CX_PROVENANCE_RUN_WEAVE_H

#include "base/api.h"
#include "bundle/api.h"
#include "recorder/api.h"

#define CX_WEAVE_NONE UINT64_MAX

typedef struct cx_weave_branch {
    cx_str task_id, agent_id; /* task_id data NULL: the governor's */
    uint64_t last;            /* event of the task */
    uint64_t joined;          /* the governor's event that descends from the last one; or NONE */
    uint64_t newest;          /* event; NONE = the branch has no node yet */
    int64_t next_seq;         /* of its next node */
    char hash[CX_NODE_HASH_SIZE]; /* of its newest node */
} cx_weave_branch;

typedef struct cx_weave {
    cx_arena arena;
    cx_buf preimage;
    cx_map tasks;                     /* task id to branch */
    CX_VEC(cx_weave_branch) branches; /* 0 is the governor, then tasks as they appear */
    CX_VEC(uint32_t) open;            /* tasks with nodes that are not joined, as they appeared */
    CX_VEC(uint64_t) parents;         /* of the node that was written last: events */
} cx_weave;

void cx_run_weave_init(cx_weave *weave, const cx_alloc *alloc);
void cx_run_weave_done(cx_weave *weave);

/* The governor's branch, which must be there before all others. */
CX_RESULT cx_run_weave_begin(cx_weave *weave, cx_str run_id, cx_err *err);
/* The id of the run, as its first event says. */
cx_str cx_run_weave_run(const cx_weave *weave);
/* The branch of a task, made when it is new. */
CX_RESULT cx_run_weave_task(cx_weave *weave, cx_str task_id, uint32_t *out, cx_err *err);
/* That there is this event; *out is its branch. */
CX_RESULT cx_run_weave_note(cx_weave *weave, const cx_run_event_read *event, uint64_t at,
                            uint32_t *out, cx_err *err);
/* Before event `at`, with no node: what comes is the first. */
void cx_run_weave_restart(cx_weave *weave, uint64_t at);
/* Appends the event's node as one line.  `scratch` is memory of the call. */
CX_RESULT cx_run_weave_node(cx_weave *weave, const cx_run_event_read *event, uint64_t at,
                            cx_arena *scratch, cx_buf *out, cx_err *err);

/* Parses a line; errors name the event, from 1, in err->line. */
CX_RESULT cx_run_weave_parse(cx_str line, uint64_t at, cx_arena *scratch, cx_run_event_read *out,
                             cx_err *err);

#endif
