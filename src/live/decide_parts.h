/*
 * decide_parts.h - what the parts of a decision share: places, effects, commands.
 */
#ifndef CX_LIVE_DECIDE_PARTS_H
#define CX_LIVE_DECIDE_PARTS_H

#include "live/policy.h"
#include "live/shell.h"
#include "live/tools.h"

typedef struct cx_deciding {
    const cx_live_policy *policy;
    const cx_live_call *call;
    cx_arena *arena;
    cx_live_effect *effects; /* room for CX_LIVE_EFFECTS_MAX */
    size_t count;
    bool too_many;
    cx_str cwd;       /* absolute; empty = not known */
    cx_str rewritten; /* of a command; data NULL = none */
    cx_err *err;
    cx_status status; /* of memory, and of what could not be asked */
} cx_deciding;

/* Adds an effect; `why` is formatted when the verdict is not to allow. */
void cx_deciding_add(cx_deciding *d, cx_live_effect_kind kind, cx_live_verdict verdict,
                     const char *rule, cx_str text, const char *why, ...) CX_PRINTF(6, 7);

/* --- places (paths.c) ------------------------------------------------------------------------- */

/* A path as it will be met: absolute, without "." and "..", links of what exists resolved.  Data
 * NULL when it cannot be known. */
cx_str cx_deciding_resolve(cx_deciding *d, cx_str path);
/* The part below the work tree: "" for the work tree itself; data NULL when it is outside. */
cx_str cx_deciding_below_root(const cx_deciding *d, cx_str absolute);
void cx_deciding_read(cx_deciding *d, cx_str path);
void cx_deciding_write(cx_deciding *d, cx_str path);
/* Whether a read would be allowed; nothing is added. */
bool cx_deciding_may_read(cx_deciding *d, cx_str path);
/* "*** Add File: .." and the like; each file is an effect. */
void cx_deciding_patch(cx_deciding *d, cx_str patch);

/* --- hosts (hosts.c) -------------------------------------------------------------------------- */

void cx_deciding_url(cx_deciding *d, cx_str url);
/* A search that the provider runs. */
void cx_deciding_web(cx_deciding *d, cx_str query);
/* Every http URL in a text. */
size_t cx_deciding_urls_in(cx_deciding *d, cx_str text);

/* --- agents and what runs later (starts.c) ---------------------------------------------------- */

void cx_deciding_agent(cx_deciding *d, cx_str name);
void cx_deciding_message(cx_deciding *d, cx_str to);
/* Skills, workflows, prompts for later. */
void cx_deciding_later(cx_deciding *d, cx_str text);
void cx_deciding_worktree(cx_deciding *d);

/* --- commands (commands.c) -------------------------------------------------------------------- */

void cx_deciding_command(cx_deciding *d, cx_str text);

#endif
