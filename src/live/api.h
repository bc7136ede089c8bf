/*
 * live - limits for the agent that a person is talking with: hook payloads in, decisions recorded
 * and answered (docs/formats/live.md).
 *
 * Knows the gates of runs, the ledger, what coding agents send and how they write down hooks; knows
 * nothing of HTTP, of terminals, and of where agents keep their files.  Numbered invariants:
 * live.h, register.h.
 */
#ifndef CX_LIVE_API_H
#define CX_LIVE_API_H

#include "live/live.h"
#include "live/policy.h"
#include "live/register.h"
#include "live/session.h"
#include "live/show.h"
#include "live/tools.h"

#endif
