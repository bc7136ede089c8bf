/*
 * answer.h - answers in the form of each agent (docs/formats/live.md §6).
 *
 *   A1  "No" is exit 2, one line on standard error and nothing on standard output, for every agent;
 *       Claude Code and Codex get JSON where only that is understood (PermissionRequest).
 *   A2  "No objection" is exit 0 and nothing on standard output; Cursor gets its explicit allow.
 *   A3  Over HTTP "no" is JSON of the agent's own: an agent takes every other answer for none.
 */
#ifndef CX_LIVE_ANSWER_H
#define CX_LIVE_ANSWER_H

#include "live/live.h"
#include "live/policy.h"

/* Sets out, complaint and exit_code of the outcome by its answer. */
CX_RESULT cx_live_answer(const cx_live_call *call, bool over_http, cx_arena *arena,
                         cx_live_outcome *out, cx_err *err);
bool cx_live_answer_can_rewrite(const cx_live_call *call);
/* The command line that runs the call's command in the sandbox; false when there is none. */
bool cx_live_sandboxed(const cx_live_policy *policy, const cx_live_call *call, cx_arena *arena,
                       cx_str *out);

#endif
