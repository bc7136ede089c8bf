/*
 * shelf.h - lattices that pages look at, opened once and kept for the next question.
 *
 * A name is what /api/v1/view/{branch} names: "all", "agent/..", "run/..", or "file" for the one
 * file of `cortex lattice view`.  A lattice is verified when it is opened; its states and its
 * pictures are made when somebody first asks for them.  What changes meanwhile is opened again,
 * but not more often than it can be afforded (CX_VIEW_CACHE_FRESH_FACTOR): a page looks at one
 * version for that long.  Thread-safe.
 */
#ifndef CX_SERVER_VIEW_CACHE_H
#define CX_SERVER_VIEW_CACHE_H

#include "view/api.h"
#include "server/service.h"

#define CX_VIEW_CACHE_ITEMS_MAX 8
/* Nodes of all that is kept; what was used longest ago makes room. */
#define CX_VIEW_CACHE_NODES_MAX 4000000
/* Of one lattice; a longer history is shown by `cortex lattice view` with the whole machine. */
#define CX_CACHED_VIEW_NODES_MAX 2000000
/* A version is good for at least a second, and for so many times as long as opening it took. */
#define CX_VIEW_CACHE_FRESH_FACTOR 10

typedef struct cx_cached_view cx_cached_view;

CX_RESULT cx_view_cache_open(const cx_alloc *alloc, cx_view_cache **out, cx_err *err);
void cx_view_cache_close(cx_view_cache *cache); /* NULL is fine; nothing may be lent */

/* The lattice that the call's first {capture} names, until it is given back.  Errors as of opening
 * it; CX_E_DENIED when the token may not see it. */
CX_RESULT cx_view_cache_acquire(cx_view_cache *cache, cx_call *call, cx_cached_view **out,
                                cx_err *err);
/* The one of that name, for the same caller. */
CX_RESULT cx_view_cache_acquire_named(cx_view_cache *cache, cx_call *call, cx_str name,
                                      cx_cached_view **out, cx_err *err);
void cx_view_cache_release(cx_view_cache *cache, cx_cached_view *view_item); /* NULL is fine */

const cx_lattice *cx_view_cache_lattice(const cx_cached_view *view_item);
/* Made by the first who asks; the others wait for it. */
CX_RESULT cx_view_cache_view(cx_cached_view *view_item, bool fold, const cx_lattice_view **out,
                             cx_err *err);
CX_RESULT cx_view_cache_states(cx_cached_view *view_item, const cx_states **out, cx_err *err);

#endif
