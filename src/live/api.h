/*
 * live - limits for the agent that a person is talking with: hook payloads in, decisions recorded
 * and answered (docs/formats/live.md).
 *
 * Knows the gates of runs, the ledger and what coding agents send; knows nothing of HTTP, of
 * terminals, and of how hooks are registered.  Numbered invariants: live.h.
 */
#ifndef CX_LIVE_API_H
#define CX_LIVE_API_H

#include "live/live.h"
#include "live/policy.h"
#include "live/session.h"
#include "live/show.h"
