/*
 * view_cache.h - a cache of opened lattices for the page's requests.  Thread-safe.
 *
 * A name is that of /api/v1/view/{branch}: "all", "agent/..", "run/..", "part/ENTRY/agent/.." (the
 * steps from that entry on, cx_recorder_steps_part), "part/ENTRY/session/.." (cx_external_part), or
 * "file" for the one file of `cortex lattice view`.  A lattice is verified when it is opened; its
 * states and its views are made on first use.  A changed history is opened again, but not more
 * often than its cost allows (CX_VIEW_CACHE_FRESH_FACTOR): until then a page sees one version.
 *
 *   I1  An item is freed when it has no references and is no longer in the cache; a caller with a
 *       reference keeps the version that it acquired.
 *   I2  Expensive work (opening, states, views) happens under the item's lock, never under the
 *       cache's: a slow history delays no other one.
 *   I3  The cache has at most CX_VIEW_CACHE_ITEMS_MAX items; the least recently used is evicted.
 */
#ifndef CX_SERVER_VIEW_CACHE_H
#define CX_SERVER_VIEW_CACHE_H

#include "view/api.h"
#include "server/service.h"

#define CX_VIEW_CACHE_ITEMS_MAX 8
/* Nodes of all items; the least recently used are evicted. */
#define CX_VIEW_CACHE_NODES_MAX 4000000
/* Of one lattice; for a longer history use `cortex lattice view`, which has no such limit. */
#define CX_CACHED_VIEW_NODES_MAX 2000000
/* A version is fresh for at least a second, and for this many times as long as opening it took. */
#define CX_VIEW_CACHE_FRESH_FACTOR 10

typedef struct cx_cached_view cx_cached_view;

CX_RESULT cx_view_cache_open(const cx_alloc *alloc, cx_view_cache **out, cx_err *err);
void cx_view_cache_close(cx_view_cache *cache); /* NULL is fine; all references released */

/* The lattice that the call's first {capture} names, until it is released.  Errors are those of
 * opening it; CX_E_DENIED when the token may not see it. */
CX_RESULT cx_view_cache_acquire(cx_view_cache *cache, cx_call *call, cx_cached_view **out,
                                cx_err *err);
/* The same with a given name. */
CX_RESULT cx_view_cache_acquire_named(cx_view_cache *cache, cx_call *call, cx_str name,
                                      cx_cached_view **out, cx_err *err);
void cx_view_cache_release(cx_view_cache *cache, cx_cached_view *view_item); /* NULL is fine */

const cx_lattice *cx_view_cache_lattice(const cx_cached_view *view_item);
/* Whether it is a part of a history: it has no states but those of its own steps. */
bool cx_view_cache_is_part(const cx_cached_view *view_item);
/* Made on first use; concurrent callers wait for it. */
CX_RESULT cx_view_cache_view(cx_cached_view *view_item, bool fold, const cx_lattice_view **out,
                             cx_err *err);
CX_RESULT cx_view_cache_states(cx_cached_view *view_item, const cx_states **out, cx_err *err);

#endif
