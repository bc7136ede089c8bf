/*
 * ledger_moments.h - what the scenario files tell of a home at certain moments: its manifest, its
 * proofs, its records.
 */
#ifndef CX_TESTS_RUNNER_LEDGER_MOMENTS_H
#define CX_TESTS_RUNNER_LEDGER_MOMENTS_H

#include "ledger/snapshot.h"
#include "memory/apply.h"
#include "tests/runner/ledger.h"

typedef struct runner_moment {
    cx_str actor;
    const cx_json *calls; /* the file that tells the calls: of matrix-1 */
    cx_apply *apply;
    cx_home *home;
    int64_t (*now_ns)(void *arg);
    void *now_arg;
    bool has_snapshot;
    uint64_t snapshot; /* the one that runner_moment_snapshot saw last */
    cx_bytes proof;    /* of memories, at that snapshot; in the arena */
} runner_moment;

/* A row {"k": logical key, "v"}; CX_E_UNSUPPORTED for rows that are the original's own business. */
CX_RESULT runner_row(runner *r, runner_moment *moment, const cx_json *item, cx_json *out,
                     cx_err *err);
/* What a rebuild finds, and the roots before and after one. */
CX_RESULT runner_rebuilt(runner *r, runner_moment *moment, const cx_json *item, cx_json *out,
                         cx_err *err);

/* After a step that made a snapshot. */
void runner_moment_snapshot(runner *r, runner_moment *moment);
/* After each step of scenario.json: what its arguments tell of the entry it wrote. */
void runner_moment_step(runner *r, runner_moment *moment, size_t index);
/* Point `index` of scenario_embed.json. */
void runner_moment_point(runner *r, runner_moment *moment, size_t index);
/* After the last step. */
void runner_moment_end(runner *r, runner_moment *moment);

#endif
