/*
 * proof - entries, records, trees as arithmetic, proofs, their containers and their checking.
 *
 * Needs no data directory, no file and no network: what cortex-verify is made of. Never signs.
 */
#ifndef CX_PROOF_API_H
#define CX_PROOF_API_H

#include "proof/action_set.h"
#include "proof/check.h"
#include "proof/codec.h"
#include "proof/entry.h"
#include "proof/erasure.h"
#include "proof/export.h"
#include "proof/home_root.h"
#include "proof/proof.h"
#include "proof/record.h"
#include "proof/scope.h"
#include "proof/seed.h"
#include "proof/uri.h"
#include "proof/witness.h"

#endif
