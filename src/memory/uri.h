/*
 * uri.h - names of memories: strict URIs, new ids, actors, compactions (ledger.md §4.3).  ULIDs and
 * URIs in general are in proof/uri.h.
 */
#ifndef CX_MEMORY_URI_H
#define CX_MEMORY_URI_H

#include "base/api.h"
#include "proof/api.h"

#define CX_ACTOR_NAME_MAX 256
#define CX_COMPACT_NAME_MAX 255

/* cx_uri_parse of a memory: an edge's URI is "BadURI" too. */
CX_RESULT cx_memory_uri_parse(cx_str text, cx_uri *out, cx_err *err);

/*
 * A new id: 6 bytes of milliseconds and 10 random bytes.  Ids of one process ascend across threads
 * and clock jumps: within a millisecond (or when the clock goes back) the next id is the last one
 * plus one.  CX_E_IO when random bytes cannot be read.
 */
CX_RESULT cx_id_new(const cx_io *io, cx_id *out, cx_err *err);
/* The same on the caller's state (initially all zeros), not thread-safe: for tests and replay. */
CX_RESULT cx_id_next(cx_id *last, const cx_io *io, cx_id *out, cx_err *err);

/* 1..256 bytes of UTF-8 without '/', NUL or controls (U+0000..1F, U+007F..9F). */
bool cx_actor_ok(cx_str actor);

/* Intent and step of a compaction: 1..255 bytes of UTF-8 without controls.  '/' is allowed. */
bool cx_compact_name_ok(cx_str name);
/* matrix://journal/logs/<intent>/<step> */
void cx_compact_uri_add(cx_str intent, cx_str step, cx_buf *out);

#endif
