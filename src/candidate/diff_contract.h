/*
 * diff_contract.h - what a contract says about the diff gate.
 */
#ifndef CX_CANDIDATE_DIFF_CONTRACT_H
#define CX_CANDIDATE_DIFF_CONTRACT_H

#include "contract/api.h"
#include "candidate/diff.h"

/* Sets baseline, allowed paths, what may be binary (D12) and the limits of D15; `config` may be
 * NULL. Lists live in the arena or in the contract. */
CX_RESULT cx_diff_options_contract(const cx_contract *contract, const cx_run_config *config,
                                   cx_arena *arena, cx_diff_options *out, cx_err *err);

#endif
