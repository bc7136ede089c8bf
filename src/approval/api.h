/*
 * approval - consent that counts once, signed statements (DSSE, in-toto), locks on paths.
 */
#ifndef CX_APPROVAL_API_H
#define CX_APPROVAL_API_H

#include "approval/approval.h"
#include "approval/attest.h"
#include "approval/lock.h"

#endif
