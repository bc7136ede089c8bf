/*
 * chain.h - several contracts run in the order of their dependencies: `cortex run chain` (decision
 * 0021).
 *
 *     {"version":"v1","chain_id","steps":[{"name","contract","depends_on":[]}]}
 *
 * Each step is a governed run of its own, with its own bundle and seal.  A step starts when all
 * steps that it depends on have succeeded; independent steps run in parallel. A step is skipped
 * when one that it depends on did not succeed. Steps that touch the same paths need an order:
 * otherwise the later one fails because of the locks.
 *
 * What happened is in ROOT/chains/<chain_run_id>/manifest.json, which is rewritten after
 * each step, and at the end its hash goes to the ledger (kind `run.chain`).
 */
#ifndef CX_GOVERNOR_CHAIN_H
#define CX_GOVERNOR_CHAIN_H

#include "bundle/api.h"
#include "governor/governor.h"

#define CX_RUN_CHAIN_BYTES_MAX (UINT32_C(16) << 20)
#define CX_RUN_CHAIN_STEPS_MAX 256
#define CX_RUN_CHAIN_PARALLEL_DEFAULT 4

typedef struct cx_run_chain_step {
    cx_str name;
    cx_bytes contract;     /* as its file or the chain has it */
    const uint32_t *after; /* indices of the steps it depends on */
    size_t after_count;
} cx_run_chain_step;

typedef struct cx_run_chain {
    cx_str chain_id;
    cx_str bytes;
    cx_run_chain_step *steps;
    size_t step_count;
} cx_run_chain;

/*
 * Reads a chain; `folder` is where contracts that are given as files are looked for (relative paths
 * that do not leave it).  Faults are findings: CH01 does not match its schema, CH02 a
 * duplicate name, CH03 depends on an unknown step, CH04 a cycle, CH05 a contract that cannot be
 * read, CH06 too many steps.  All memory from the arena.
 */
CX_RESULT cx_run_chain_read(cx_str bytes, const char *folder, cx_arena *arena,
                            cx_run_findings *findings, cx_run_chain *out, cx_err *err);

typedef enum cx_run_chain_state {
    CX_CHAIN_WAITING,
    CX_CHAIN_RUNNING,
    CX_CHAIN_SUCCESS,
    CX_CHAIN_FAILED, /* its run ended so, or could not be started */
    CX_CHAIN_SKIPPED /* something it depends on did not succeed, or the chain was interrupted */
} cx_run_chain_state;
const char *cx_run_chain_state_name(cx_run_chain_state state); /* "WAITING", "RUNNING", .. */

/* A step that changed its state; borrowed for the call, which comes from any thread, one at a
 * time. */
typedef struct cx_run_chain_news {
    const cx_run_chain_step *step;
    cx_run_chain_state state;
    cx_str run_id, reason;
} cx_run_chain_news;

typedef struct cx_run_chain_options {
    cx_run_options run; /* what every step's run gets; `contract` is the step's; its ledger must be
                           usable by several threads at once */
    const cx_run_store *store;
    uint32_t parallel;                                      /* 0 = CX_RUN_CHAIN_PARALLEL_DEFAULT */
    void (*news)(void *arg, const cx_run_chain_news *news); /* may be NULL */
    void *news_arg;
} cx_run_chain_options;

typedef struct cx_run_chain_outcome {
    int exit_code;       /* 0, 4 when a step did not succeed, 3 when one could not be started */
    cx_str chain_run_id; /* "chain_YYYYMMDD_HHMMSS_<hex>" */
    cx_str manifest_path;
    cx_json manifest; /* {chain_id, chain_run_id, chain_sha256, created_at, finished_at, status,
                         steps:[{name, depends_on, status, run_id, exit_code, reason,
                         contract_sha256, final_commit}], version} */
    bool sealed;
} cx_run_chain_outcome;

/* A step that fails is an outcome; an error means that the manifest or the ledger could not be
 * written. */
CX_RESULT cx_run_chain_execute(const cx_run_chain *chain, const cx_run_chain_options *options,
                               cx_arena *arena, cx_run_chain_outcome *out, cx_err *err);

#endif
