/*
 * hook_state.h - whether an agent's hooks hold: what its configurations say, which of them wins,
 * and what the ledger has of it.
 *
 * Nothing is changed.  The agent's own program is started to ask for its version, and Codex for its
 * trust; nothing of a repository is started.
 */
#ifndef CX_CLI_LIVE_HOOK_STATE_H
#define CX_CLI_LIVE_HOOK_STATE_H

#include "cli/live/agent_file.h"

typedef struct cx_hook_place {
    bool has;         /* the agent has this scope */
    const char *path; /* of the file */
    bool there;
    cx_str problem; /* why the file cannot be read; empty = none */
    cx_live_registered found;
    bool in_force; /* ours is there, complete, and nothing switches it off */
    cx_str off;    /* why it is not in force although it is there; empty = it is */
} cx_hook_place;

typedef struct cx_hook_state {
    cx_live_agent agent;
    const char *program; /* of the agent, in PATH; NULL = not found */
    cx_str version;      /* what it says; empty = it says none */
    cx_hook_place places[CX_SCOPE_COUNT];
    bool installed; /* ours is in one of them */
    bool holds;     /* and in force in one, and no place has a problem */
    cx_str trust;   /* Codex: what it says of our hooks; empty otherwise */
    cx_str note;    /* what else is worth knowing; empty = nothing */
    bool has_latest;
    cx_live_session latest; /* the session with the newest event */
} cx_hook_state;

/* `home` is the open data directory, or NULL. */
CX_RESULT cx_hook_state_read(cx_cli *cli, cx_live_agent agent, cx_home *home, cx_hook_state *out,
                             cx_err *err);

/* The agent's program in PATH; NULL when there is none. */
const char *cx_agent_program(cx_cli *cli, cx_live_agent agent);

#endif
