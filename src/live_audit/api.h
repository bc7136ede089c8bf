/*
 * live_audit - what was not decided: transcripts, work trees and other records of sessions,
 * compared with what their hooks recorded (docs/formats/live.md §10).
 *
 * Knows transcripts, journals of sessions, and git's files as bytes; knows nothing of terminals and
 * HTTP. Numbered invariants: live_audit.h.
 */
#ifndef CX_LIVE_AUDIT_API_H
#define CX_LIVE_AUDIT_API_H

#include "live_audit/live_audit.h"

#endif
