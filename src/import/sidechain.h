/*
 * sidechain.h - subagents of Claude Code before they had files of their own (§2.4): their lines are
 * in the caller's file, with isSidechain and without agentId.
 *
 * A sidechain is the lines that descend from one of it, and is named by the first.  Nothing names
 * the call that started it, but that its first message is the call's prompt.
 */
#ifndef CX_IMPORT_SIDECHAIN_H
#define CX_IMPORT_SIDECHAIN_H

#include "import/chat.h"

/* Zeroed = none. */
typedef struct cx_import_sidechains {
    cx_import_index lines;  /* uuid -> id of its sidechain */
    cx_import_index names;  /* id -> uuid of the first line */
    cx_import_index orders; /* prompt, number -> call id */
    cx_import_index taken;  /* those of them that started a sidechain -> its id */
    cx_import_index calls;  /* call id -> id of the sidechain that it started */
} cx_import_sidechains;

/* The id of the sidechain of a line; empty when it is of none, or says itself whose it is. */
CX_RESULT cx_import_sidechain_of(cx_import_sink *sink, cx_import_sidechains *chains,
                                 const cx_json *line, cx_str *out, cx_err *err);

/* A call that may start one. */
CX_RESULT cx_import_sidechain_order(cx_import_sink *sink, cx_import_sidechains *chains,
                                    cx_str call_id, const cx_json *input, cx_err *err);

/* The call that started a sidechain, by its first message; empty = unknown.  A call starts one. */
CX_RESULT cx_import_sidechain_start(cx_import_sink *sink, cx_import_sidechains *chains, cx_str id,
                                    cx_str prompt, cx_str *out_call_id, cx_err *err);

/* The id of the sidechain that a call started; empty when it started none. */
cx_str cx_import_sidechain_by_call(const cx_import_sidechains *chains, cx_str call_id);

void cx_import_sidechains_done(cx_import_sidechains *chains, const cx_alloc *alloc);

#endif
