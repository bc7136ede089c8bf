/*
 * answer.h - pieces of the answers of lattice.md §8, the same in every one of them.
 *
 * JSON answers are one line of canonical JSON; text answers are for users and terminals.
 */
#ifndef CX_LATTICE_ANSWER_H
#define CX_LATTICE_ANSWER_H

#include "lattice/internal.h"

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

#endif
