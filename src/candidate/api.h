/*
 * candidate - what an agent changed: the diff gate, isolation, the tests gate, merge, rollback.
 *
 * Judges bytes of the repository, never what an agent claims.
 */
#ifndef CX_CANDIDATE_API_H
#define CX_CANDIDATE_API_H

#include "candidate/candidate.h"
#include "candidate/diff_contract.h"
#include "candidate/hooks.h"
#include "candidate/isolation.h"
#include "candidate/merge.h"
#include "candidate/tests_gate.h"

#endif
