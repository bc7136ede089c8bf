/*
 * projection.h - what the events of a run state: states, verdicts of gates, tasks, end.
 *
 * Replay compares it with manifest and reports (run.md §18), views show it (§21), and a lattice has
 * the same words (docs/formats/run-lattice.md). It is computed from the bytes of events.jsonl
 * alone, so a run in progress has a projection too.
 */
#ifndef CX_BUNDLE_PROJECTION_H
#define CX_BUNDLE_PROJECTION_H

#include "bundle/events.h"
#include "bundle/gates.h"

/* The four gates of task_result, in its order. */
enum {
    CX_RUN_GATE_DIFF,
    CX_RUN_GATE_POLICY,
    CX_RUN_GATE_REVIEW,
    CX_RUN_GATE_TESTS,
    CX_RUN_GATE_COUNT
};
extern const char *const cx_run_gate_names[CX_RUN_GATE_COUNT]; /* "diff_gate", .. */

/* What one event says about a gate. */
typedef struct cx_run_gate_verdict {
    cx_gate_id id;
    const char *gate; /* its name; static storage */
    bool passed;
} cx_run_gate_verdict;

/* False when an event of this type is no gate's verdict. */
bool cx_run_gate_verdict_read(cx_run_event_type type, const cx_json *payload,
                              cx_run_gate_verdict *out);

/* One event, without its payload.  Text lives in the arena. */
typedef struct cx_run_moment {
    uint64_t index; /* from 1 */
    cx_str line;    /* as it is in the file, without '\n'; borrowed from the bytes */
    cx_str ts, level, type;
    cx_run_event_type kind; /* of `type` */
    cx_str task_id;         /* data NULL = null */
    int64_t attempt;        /* CX_RUN_NO_ATTEMPT = null */
} cx_run_moment;

typedef struct cx_run_transition {
    size_t moment; /* in `moments` */
    cx_str from, to, reason;
} cx_run_transition;

typedef struct cx_run_ruling {
    size_t moment;
    cx_run_gate_verdict judgement;
    const cx_str *violations; /* "D07 README.md", .. */
    size_t violation_count;
} cx_run_ruling;

typedef struct cx_run_projection_task {
    cx_str task_id;
    int64_t attempt;    /* the last one */
    size_t first, last; /* moments */
    cx_str state;       /* "to" of its last transition, "S0" before */
    /* Of the last attempt.  `reached` false: not run. */
    struct {
        bool reached, passed;
    } gates[CX_RUN_GATE_COUNT];
    bool isolation_failed; /* REVIEWER_GATE_RESULT; review cannot pass then */
} cx_run_projection_task;

typedef struct cx_run_projection {
    cx_str run_id, trace_id; /* of the first event */
    CX_VEC(cx_run_moment) moments;
    CX_VEC(cx_run_transition) transitions;
    CX_VEC(cx_run_ruling) rulings;
    CX_VEC(cx_run_projection_task) tasks; /* in order of appearance */
    cx_str state;                         /* of the last transition; "S0" before the first */
    cx_str failed_gate;                   /* of the last gate_failed, unless the run succeeded */
    cx_str reason;                        /* of it */
    cx_str status;     /* of RUN_FINISHED: "SUCCESS", "FAILURE"; data NULL = still going on */
    int64_t exit_code; /* likewise; -1 = unknown */
    cx_str baseline_commit, contract_sha256; /* of RUN_CREATED; may be empty */
    bool torn;                               /* the last line has no end: it was not counted */
} cx_run_projection;

/*
 * `events` (borrowed) is the file.  CX_E_SYNTAX or CX_E_FORMAT with err->line when a line cannot be
 * read, CX_E_LIMIT.  cx_run_projection_done in every case.
 */
void cx_run_projection_init(cx_run_projection *projection);
CX_RESULT cx_run_projection_read(cx_str events, cx_arena *arena, cx_run_projection *projection,
                                 cx_err *err);
void cx_run_projection_done(cx_run_projection *projection, const cx_arena *arena);

/* The task of that id, or NULL. */
const cx_run_projection_task *cx_run_projection_find(const cx_run_projection *projection,
                                                     cx_str task_id);
/* Whether a gate passed for a task.  The policy gate judges a contract: tasks that one was split
 * into have its verdict. */
bool cx_run_projection_task_passed(const cx_run_projection *projection,
                                   const cx_run_projection_task *task, unsigned gate);
/* Whether a gate passed in every task that got as far as a gate of its own; false when none did. */
bool cx_run_projection_passed(const cx_run_projection *projection, unsigned gate);

/* [{index, ts, task_id, attempt, from, to, reason}] */
CX_RESULT cx_run_projection_states_json(const cx_run_projection *projection, cx_arena *arena,
                                        cx_json *out, cx_err *err);
/* [{index, ts, task_id, attempt, gate, event_type, passed, violations}] */
CX_RESULT cx_run_projection_rulings_json(const cx_run_projection *projection, cx_arena *arena,
                                         cx_json *out, cx_err *err);
/* {diff_gate: {passed, reached}, ..} of all tasks together. */
CX_RESULT cx_run_projection_gates_json(const cx_run_projection *projection, cx_arena *arena,
                                       cx_json *out, cx_err *err);

#endif
