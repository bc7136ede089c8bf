/*
 * shelf.h - lattices that pages look at, opened once and kept for the next question.
 *
 * A name is what /api/v1/view/{branch} names: "all", "agent/..", "run/..", or "file" for the one
 * file of `cortex lattice view`.  A lattice is verified when it is opened; its states and its
 * pictures are made when somebody first asks for them.  What changes meanwhile is opened again,
 * but not more often than it can be afforded (CX_SHELF_REST): a page looks at one version for that
 * long.  Thread-safe.
 */
#ifndef CX_SERVER_SHELF_H
#define CX_SERVER_SHELF_H

#include "view/api.h"
#include "server/service.h"

#define CX_SHELF_BOOKS_MAX 8
/* Nodes of all that is kept; what was used longest ago makes room. */
#define CX_SHELF_NODES_MAX 4000000
/* Of one lattice; a longer history is shown by `cortex lattice view` with the whole machine. */
#define CX_SHELF_BOOK_NODES_MAX 2000000
/* A version is good for at least a second, and for so many times as long as opening it took. */
#define CX_SHELF_REST 10

typedef struct cx_shelf_book cx_shelf_book;

CX_RESULT cx_shelf_open(const cx_alloc *alloc, cx_shelf **out, cx_err *err);
void cx_shelf_close(cx_shelf *shelf); /* NULL is fine; nothing may be lent */

/* The lattice that the call's first {capture} names, until it is given back.  Errors as of opening
 * it; CX_E_DENIED when the token may not see it. */
CX_RESULT cx_shelf_lend(cx_shelf *shelf, cx_call *call, cx_shelf_book **out, cx_err *err);
/* The one of that name, for the same caller. */
CX_RESULT cx_shelf_lend_named(cx_shelf *shelf, cx_call *call, cx_str name, cx_shelf_book **out,
                              cx_err *err);
void cx_shelf_give_back(cx_shelf *shelf, cx_shelf_book *book); /* NULL is fine */

const cx_lattice *cx_shelf_lattice(const cx_shelf_book *book);
/* Made by the first who asks; the others wait for it. */
CX_RESULT cx_shelf_stage(cx_shelf_book *book, bool fold, const cx_stage **out, cx_err *err);
CX_RESULT cx_shelf_states(cx_shelf_book *book, const cx_states **out, cx_err *err);

#endif
