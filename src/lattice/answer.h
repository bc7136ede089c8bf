/*
 * answer.h - pieces of the answers of lattice.md §8, the same in every one of them.
 *
 * JSON answers are one line of canonical JSON; text answers are for users and terminals.
 */
#ifndef CX_LATTICE_ANSWER_H
#define CX_LATTICE_ANSWER_H

#include "lattice/internal.h"
#include "lattice/state.h"

/* A name for users: what would act on a terminal (controls, directional marks) is escaped. */
void cx_answer_name(cx_buf *out, cx_str name);
/* A JSON string. */
void cx_answer_str(cx_buf *out, cx_str text);
/* The label of a node, likewise. */
void cx_answer_node_name(cx_buf *out, const cx_lattice *lattice, cx_node which);
void cx_answer_node_str(cx_buf *out, const cx_lattice *lattice, cx_node which);
/* `"verified":true}` and LF: the last member of every answer. */
void cx_answer_end(cx_buf *out, const cx_answer_options *options);
/* A line that says whether the lattice holds, for text answers longer than a table. */
void cx_answer_verdict_line(cx_buf *out, const cx_answer_options *options);
/* Bold, when colours are asked for. */
void cx_answer_heading(cx_buf *out, const cx_answer_options *options, const char *text);

/* Appends canonical JSON again, indented for users. */
CX_RESULT cx_answer_pretty(cx_buf *out, cx_str canonical, const cx_alloc *alloc, cx_err *err);

/* --- why_path.c: keys below the top level ----------------------------------------------------- */

#define WHY_TOKENS_MAX 64

/* What is asked about in one section. */
typedef struct why_path {
    bool is_asked;
    cx_str pointer;                /* RFC 6901, the section first */
    cx_str tokens[WHY_TOKENS_MAX]; /* after the section, as canonical JSON spells them */
    size_t token_count;
} why_path;

/* One for each section, in the arena.  *out_is_path false: the key is no path.  CX_E_USAGE. */
CX_RESULT cx_why_path_parse(cx_str key, cx_str section, cx_arena *arena, why_path **out,
                            bool *out_is_path, cx_err *err);
/* The canonical text of what the path names in a state; false: out of memory. */
bool cx_why_path_text(const why_path *path, const state *s, tree_work *work, cx_buf *out,
                      bool *out_there);
/* Whether a delta sets what the path names, or something around it. */
bool cx_why_path_in_delta(const why_path *path, state_section section, cx_str delta);
/* CX_E_NOT_FOUND "NoKey", with the keys of the state after the node that are spelled most alike. */
CX_RESULT cx_why_no_key(const cx_states *states, cx_node which, cx_str key, cx_str section,
                        cx_arena *arena, cx_err *err);

/* --- content/reason.c: why a change was made -------------------------------------------------- */

#define CHANGE_REASONS_MAX 500u /* changes of an answer that have a reason, newest first */
#define CHANGE_SOURCES_MAX 32u  /* of which the text that the value came from is looked for */
#define CHANGE_VALUE_MAX ((size_t)64 << 10)

typedef struct change_reason {
    cx_node which;                  /* has a topological place */
    cx_str value, old;              /* canonical JSON, or nothing */
    cx_str because, thinking, text; /* what the agent said; size 0 = nothing */
    cx_node source;                 /* the newest node before that has the value, or NONE */
    cx_str source_text;
} change_reason;

/* Fills in what a list of changes, newest first, lacks but for `which`, `value` and `old`;
 * `source` is CX_NODE_NONE before.  Texts live in the arena. */
CX_RESULT cx_change_reasons(const cx_lattice *lattice, change_reason *changes, size_t count,
                            cx_arena *arena, cx_err *err);

/* --- content/reach.c: what a step reached ----------------------------------------------------- */

#define REACH_WIDTH 24u               /* bytes that a text must share with the source */
#define REACH_BYTES ((size_t)1 << 20) /* of the source's content that are compared */
#define REACH_CARRIERS_MAX 2000u      /* listed ones */

typedef struct reach_carrier {
    cx_node which;
    bool by_text, by_call;
    cx_str text;  /* the longest that they share, with what is around it */
    cx_str *keys; /* "memory.KEY" of values that share it */
    size_t key_count;
} reach_carrier;

typedef struct lattice_reach {
    uint64_t *follows; /* by topological position: descendants of the source */
    uint32_t follow_count;
    reach_carrier *carriers; /* in topological order */
    size_t listed, carrier_count;
    size_t size; /* bytes of the source's content */
    bool is_cut; /* more than REACH_BYTES */
} lattice_reach;

/* Everything lives in the arena. */
CX_RESULT cx_lattice_reach(const cx_lattice *lattice, cx_node source, cx_arena *arena,
                           lattice_reach *out, cx_err *err);
/* ,"by":[..],"keys":[..] */
void cx_answer_reach_members(cx_buf *out, const reach_carrier *carrier);

#endif
