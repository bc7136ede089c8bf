/*
 * run_places.h - places in a long run at which its nodes can be made without those before
 * (docs/formats/run-lattice.md).
 *
 *     ROOT/places/<run_id>    what the file is, from events.jsonl alone; made when a part is asked
 *                             for, continued when the run has grown, made again when it is missing,
 *                             damaged, or found to be of other events
 *
 *     64 hex digits, LF       SHA-256 of what follows
 *     {"bytes","events"       how much of events.jsonl was read, in whole lines
 *      "format":"cortex-run-places-1","run_id","stride",
 *      "rows":[{"bytes","event","heads":[[branch,seq,hash]..],"sha256"}]
 *      "tasks":[[task_id,last,joined]..]}
 *
 *   L1  A row stands before event `event`, which begins at `bytes`; `heads` are the newest nodes of
 *       the governor (branch 0) and of tasks that it has not joined, `sha256` is of the bytes since
 *       the row before.  There is one for every `stride` events.
 *   L2  `last` and `joined` (null = not) are events of a task and of the governor that are no
 *       longer right when the task goes on: then rows after `joined` are dropped.
 *   L3  Rows are believed as far as what is woven from one agrees with the next.
 */
#ifndef CX_PROVENANCE_RUN_PLACES_H
#define CX_PROVENANCE_RUN_PLACES_H

#include "provenance/run_weave.h"

/* Half of a part, so that parts of the page begin at rows. */
#define CX_RUN_PLACES_STRIDE (CX_STEPS_PART / 2)

typedef struct cx_place_head {
    uint32_t branch;
    int64_t seq;
    char hash[CX_NODE_HASH_SIZE];
} cx_place_head;

typedef struct cx_place_row {
    uint64_t event, bytes;
    cx_digest sha256;
    cx_place_head *heads; /* in the arena */
    size_t head_count;
} cx_place_row;

/* Lines of events.jsonl, read in pieces. */
typedef struct cx_run_lines {
    cx_run_bundle *bundle;
    uint64_t bytes; /* where the next line begins */
    uint64_t event; /* and its number, from 0 */
    cx_buf piece;
    size_t used;       /* of the piece */
    cx_sha256 *digest; /* of the lines that are taken; or NULL */
} cx_run_lines;

typedef struct cx_run_places {
    const cx_run_store *store;
    cx_run_bundle *bundle;
    cx_str run_id;
    uint64_t stride;
    uint64_t events, bytes; /* what was read */
    cx_weave weave;         /* the tasks, and their last events */
    CX_VEC(cx_place_row) rows;
    cx_arena arena;   /* of heads */
    cx_arena scratch; /* of one event */
    cx_buf node;      /* one that is not wanted */
} cx_run_places;

/* Those of the run that are on the disk, or none. */
CX_RESULT cx_run_places_open(cx_run_places *places, const cx_run_store *store,
                             cx_run_bundle *bundle, cx_str run_id, uint64_t stride, cx_err *err);
void cx_run_places_close(cx_run_places *places);
/* As if there were none. */
CX_RESULT cx_run_places_forget(cx_run_places *places, cx_err *err);
/* Up to the last whole event that the bundle has; what is new is on the disk then, if it can be. */
CX_RESULT cx_run_places_extend(cx_run_places *places, cx_err *err);

void cx_run_lines_open(cx_run_lines *lines, const cx_run_places *places, uint64_t bytes,
                       uint64_t event);
void cx_run_lines_close(cx_run_lines *lines);
/* *out_line without LF, until the next call; false at the end.  CX_E_LIMIT: it is too long. */
CX_RESULT cx_run_lines_next(cx_run_lines *lines, cx_str *out_line, bool *out, cx_err *err);

/* Sets the state before a row's event; row NULL: before the first. */
void cx_run_places_restore(cx_run_places *places, const cx_place_row *row);
/* The row of the state that is now, without bytes; heads in the arena. */
CX_RESULT cx_run_places_now(cx_run_places *places, uint64_t event, cx_place_row *out, cx_err *err);

#endif
