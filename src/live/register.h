/*
 * register.h - hooks of ours in the configuration of a coding agent: text in, text out
 * (docs/formats/live.md §8).
 *
 * Knows the form that each agent gives its hooks, and nothing of files.  A text is edited where it
 * has to change; every other byte stays as it is, spaces and order of members included.
 *
 *   R1  What cannot be read as strict JSON is not edited: comments and doubled members would be
 *       lost or mean something else to the agent.
 *   R2  An entry is ours when its command starts a program named cortex with `hook AGENT`.  Entries
 *       of others are never changed, moved or removed.
 *   R3  Adding twice adds nothing.
 *   R4  In modes ask and enforce whatever keeps our program from answering is a "no", as far as the
 *       agent's form can say so; in mode observe it is no objection.
 */
#ifndef CX_LIVE_REGISTER_H
#define CX_LIVE_REGISTER_H

#include "live/live.h"

#define CX_LIVE_CONFIG_MAX ((size_t)1 << 20) /* bytes of an agent's configuration */
#define CX_LIVE_HOOK_TIMEOUT_S 60            /* of the agent; our own deadline is 10 s */

/* What one registered command says. */
typedef struct cx_live_hook {
    cx_live_agent agent;
    cx_str program; /* absolute path */
    cx_str home;    /* of the data directory, absolute; empty = by the agent's environment */
    cx_live_mode mode;
} cx_live_hook;

/* The command line for a POSIX shell.  CX_E_FORMAT: a path that no shell word can hold (a line
 * feed, not UTF-8) or that is not absolute. */
CX_RESULT cx_live_hook_command(const cx_live_hook *hook, cx_arena *arena, cx_str *out, cx_err *err);
/* Reads it back; false when it is not one of ours (R2).  Texts are in the arena. */
bool cx_live_hook_command_read(cx_str command, cx_arena *arena, cx_live_hook *out);

/* The events that are registered for an agent, in the agent's spelling; static storage. */
typedef struct cx_live_hook_event {
    const char *name;
    bool of_tool; /* the agent filters it by tool: all are asked for */
} cx_live_hook_event;
const cx_live_hook_event *cx_live_hook_events(cx_live_agent agent, size_t *out_count);

/* --- the text of a configuration -------------------------------------------------------------- */

typedef struct cx_live_register_options {
    bool managed;      /* an administrator's file: says, too, that hooks are on */
    bool managed_only; /* Claude Code: "allowManagedHooksOnly": true */
} cx_live_register_options;

/*
 * Appends `text` with our entries to `out`; entries of ours that say something else are replaced.
 * Empty text is a new file.  Equal to `text` when nothing is to be done.  CX_E_SYNTAX, CX_E_FORMAT,
 * CX_E_LIMIT: the text cannot be edited; the message has line and column.
 */
CX_RESULT cx_live_register_add(cx_str text, const cx_live_hook *hook,
                               const cx_live_register_options *options, cx_arena *arena,
                               cx_buf *out, cx_err *err);
/* Appends `text` without our entries, and without lists that are empty then; *out_removed counts
 * entries. */
CX_RESULT cx_live_register_remove(cx_str text, cx_live_agent agent,
                                  const cx_live_register_options *options, cx_arena *arena,
                                  cx_buf *out, size_t *out_removed, cx_err *err);

typedef struct cx_live_registered {
    size_t ours;         /* entries, of any event */
    size_t complete;     /* events that have ours, exactly as cx_live_register_add writes it */
    size_t expected;     /* events that should */
    const char *missing; /* the first event without; NULL when complete; static storage */
    cx_live_hook hook;   /* of the first entry; set when ours != 0 */
    bool mixed;          /* others of ours say something else */
    size_t others;       /* entries that are not ours */
    bool off;            /* this text switches hooks off */
    bool on;             /* this text says that hooks are on (Gemini CLI) */
    bool managed_only;   /* this text admits hooks of administrators only */
} cx_live_registered;
/* Errors as cx_live_register_add. */
CX_RESULT cx_live_register_read(cx_str text, cx_live_agent agent, cx_arena *arena,
                                cx_live_registered *out, cx_err *err);

#endif
