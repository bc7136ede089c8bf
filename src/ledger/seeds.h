/*
 * seeds.h - the D11 seed of a compilation over an actor's state (ledger.md §9.2).
 */
#ifndef CX_LEDGER_SEEDS_H
#define CX_LEDGER_SEEDS_H

#include "ledger/home.h"
#include "proof/api.h"

typedef struct cx_seed_question {
    cx_str intent_id;
    cx_str mtx_digest;
    cx_str model_id;
    bool at; /* the state of `snapshot`; else the present one */
    uint64_t snapshot;
} cx_seed_question;

typedef struct cx_seed_answer {
    char seed[CX_SEED_SIZE]; /* lower-case hex, not terminated */
    cx_scheme scheme;
    cx_digest overall_root;
    bool has_snapshot; /* a snapshot has that root, so that it can be found and proven later */
    uint64_t snapshot;
} cx_seed_answer;

/* The actor must exist.  CX_E_USAGE "InvalidArgument"; CX_E_NOT_FOUND "NoActor",
 * "SnapshotNotFound". */
CX_RESULT cx_seed_over(cx_home *home, cx_str actor, const cx_seed_question *question,
                       cx_arena *arena, cx_seed_answer *out, cx_err *err);

#endif
