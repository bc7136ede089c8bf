/*
 * approval - approvals that count once, signed statements (DSSE, in-toto), locks on paths,
 * and the table of runs and locks that the machines of a fleet share.
 *
 * Knows nothing of gates: it answers whether a scope is approved and who has a lock.  Numbered
 * invariants: approval.h, dsse.h, lock.h, lease.h.
 */
#ifndef CX_APPROVAL_API_H
#define CX_APPROVAL_API_H

#include "approval/approval.h"
#include "approval/attest.h"
#include "approval/lease.h"
#include "approval/lock.h"
#include "approval/statement.h"

#endif
