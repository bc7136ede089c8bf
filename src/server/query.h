/*
 * query.h - parses the target of a request: path segments and query parameters, decoded
 * (RFC 3986 §3.3, §3.4; the query as application/x-www-form-urlencoded).
 *
 * Splitting comes before decoding, so that %2F is a character of a segment and not a separator, and
 * nothing is decoded twice.  Segments are names, never files: "." and ".." have no meaning here.
 * Pure functions on bytes.
 */
#ifndef CX_SERVER_QUERY_H
#define CX_SERVER_QUERY_H

#include "base/api.h"

#define CX_TARGET_BYTES_MAX 8192
#define CX_TARGET_SEGMENTS_MAX 24
#define CX_TARGET_PARAMS_MAX 80

typedef struct cx_target_param {
    cx_str name, value; /* decoded */
} cx_target_param;

typedef enum cx_target_fault {
    CX_TARGET_OK,
    CX_TARGET_LONG,  /* longer than CX_TARGET_BYTES_MAX */
    CX_TARGET_PATH,  /* no path that could be one of ours */
    CX_TARGET_QUERY, /* a wrong escape, text that is not UTF-8, U+0000, too many parameters */
} cx_target_fault;

typedef struct cx_target {
    /* Each not empty; in memory a slash and the next one follow. */
    cx_str segments[CX_TARGET_SEGMENTS_MAX];
    size_t segment_count;
    cx_target_param params[CX_TARGET_PARAMS_MAX];
    size_t param_count;
} cx_target;

/*
 * Parses `text`.  Decoded text is written to `storage`, which has at least `text.size` bytes and
 * must live as long as `out` is used.  With a fault in the query the path is valid.
 */
cx_target_fault cx_target_parse(cx_str text, char *storage, cx_target *out);

/* Decodes %XX, and with `plus` also '+' as a space, into `storage` (which may overlap `text`);
 * false for a wrong escape, and for a result that is not UTF-8 or contains U+0000. */
bool cx_target_decode(cx_str text, bool plus, char *storage, cx_str *out);

#endif
