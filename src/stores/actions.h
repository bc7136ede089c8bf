/*
 * actions.h - collects what a run or an archived session did, and records it as an action set
 * (docs/formats/actions.md).
 *
 *   A1  What cannot be told apart is recorded as both: a name that is not in a set was not called,
 *       read, written or asked by any recorded call that names it.
 *   A2  A set and its list are two neighbouring entries of one commit; an unchanged set is not
 *       recorded again.
 *
 * The record `action/<subject>` has the number of the newest set's entry.
 */
#ifndef CX_STORES_ACTIONS_H
#define CX_STORES_ACTIONS_H

#include "bundle/api.h"
#include "json/api.h"
#include "ledger/api.h"

/* What has been collected.  Close it with cx_actions_done. */
typedef struct cx_actions {
    const cx_alloc *alloc;
    cx_arena arena;
    cx_map by_name; /* name in normal form -> place in items */
    CX_VEC(cx_action_item) items;
    cx_buf name;
    uint64_t calls, opaque, relative, unread; /* as in cx_action_set */
} cx_actions;

void cx_actions_init(cx_actions *actions, const cx_alloc *alloc, uint64_t seed);
void cx_actions_done(cx_actions *actions);

/* A tool call as its record describes it. */
typedef struct cx_action_call {
    cx_str tool;   /* empty = unknown */
    cx_str folder; /* of relative paths; empty = unknown */
    cx_str place;
    cx_str command;      /* what a shell runs, in addition to the arguments; empty = none */
    const cx_json *args; /* an object, a text (JSON or not), or NULL = unknown */
    bool cut;            /* the arguments are not whole */
} cx_action_call;
CX_RESULT cx_actions_add_call(cx_actions *actions, const cx_action_call *call, cx_err *err);
CX_RESULT cx_actions_add_path(cx_actions *actions, bool written, cx_str path, cx_str folder,
                              cx_str place, cx_err *err);
/* The host of a URL; nothing when it has none. */
CX_RESULT cx_actions_add_url(cx_actions *actions, cx_str url, cx_str place, cx_err *err);

/* Everything that a bundle says: events, changed files, sources. */
CX_RESULT cx_actions_of_run(cx_actions *actions, cx_run_bundle *bundle, cx_err *err);

/* Records the set and its list, durable when this returns.  *out_seq is the set's entry. */
CX_RESULT cx_actions_record(cx_actions *actions, cx_home *home, cx_str actor, cx_str subject,
                            uint64_t upto, uint64_t *out_seq, cx_err *err);
/* Collects and records what an archived session did so far. */
CX_RESULT cx_actions_record_session(cx_home *home, cx_str name, const cx_alloc *alloc,
                                    uint64_t *out_seq, cx_err *err);

/* The newest set of a subject. */
typedef struct cx_actions_recorded {
    cx_str actor;
    uint64_t seq; /* of the set's entry; its list is the one before */
    cx_action_set set;
    bool outdated; /* more of the session was archived since */
    bool list_erased;
    const cx_action_item *items;
    size_t count;
} cx_actions_recorded;
/*
 * `subject` as cx_action_subject_normal gives it; a session by its name or id.  CX_E_NOT_FOUND
 * "NoActionSet".  Memory from the arena.
 */
CX_RESULT cx_actions_find(cx_home *home, cx_str subject, cx_arena *arena, cx_actions_recorded *out,
                          cx_err *err);

#endif
