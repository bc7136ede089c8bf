/*
 * audit - finished runs: verification, replay, re-execution, the views that are shown.
 *
 * Believes nothing in a bundle that it has not recomputed.
 */
#ifndef CX_AUDIT_API_H
#define CX_AUDIT_API_H

#include "audit/cases.h"
#include "audit/replay.h"
#include "audit/verify.h"
#include "audit/view.h"

#endif
