/*
 * request.h - the head of an HTTP request to the proxy (docs/formats/egress.md §4; RFC 9110,
 * RFC 9112).
 *
 *   R1  One reading only: bare line feeds, folded lines, white space before a colon, two lengths, a
 *       length with chunks, any coding but "chunked", and controls in values are refused, so that
 *       no two programs disagree about where a request ends.
 *   R2  What is forwarded is written again: target, Host and framing come from what was checked.
 *   R3  Headers of one connection (RFC 9110 §7.6.1), and those that Connection names, are never
 *       forwarded.
 */
#ifndef CX_EGRESS_REQUEST_H
#define CX_EGRESS_REQUEST_H

#include "egress/host.h"

#define CX_EGRESS_HEAD_MAX ((size_t)32 << 10)
#define CX_EGRESS_HEADERS_MAX 100
#define CX_EGRESS_METHOD_MAX 32
#define CX_EGRESS_TARGET_MAX ((size_t)16 << 10)

typedef enum cx_egress_framing {
    CX_EGRESS_NO_BODY,
    CX_EGRESS_LENGTH,
    CX_EGRESS_CHUNKED
} cx_egress_framing;

typedef struct cx_egress_header {
    cx_str name, value;
} cx_egress_header;

/* Texts are borrowed from the head. */
typedef struct cx_egress_request {
    bool connect; /* else absolute form with http:// */
    cx_str method;
    cx_egress_host host; /* with a port: that of the scheme when none was given */
    cx_str target;       /* origin form without its first '/', which may have been left out */
    cx_egress_framing framing;
    uint64_t length;                                 /* of CX_EGRESS_LENGTH */
    bool wants_continue;                             /* Expect: 100-continue */
    cx_egress_header headers[CX_EGRESS_HEADERS_MAX]; /* that are forwarded (R3) */
    size_t header_count;
} cx_egress_request;

/* Why a head was refused. */
typedef struct cx_egress_fault {
    const char *rule; /* of egress.md §5; static storage */
    unsigned status;  /* of HTTP */
    const char *why;  /* static storage */
} cx_egress_fault;

/* Bytes up to and with the empty line; 0 when it is not there yet. */
size_t cx_egress_head_size(cx_str bytes);
/* `head` is what cx_egress_head_size found.  False: `fault` says why; *out may be partly written,
 * and its host is set when it was understood. */
bool cx_egress_request_parse(cx_str head, cx_egress_request *out, cx_egress_fault *fault);
/* The request as an origin server gets it (R2), up to the empty line, which is not written. */
void cx_egress_request_write(const cx_egress_request *request, cx_buf *out);
/* Whether two names of headers are the same. */
bool cx_egress_header_is(cx_str name, const char *wanted);
/* A value that can be sent in a header: visible ASCII, and spaces inside. */
bool cx_egress_header_value_ok(cx_str value);

#endif
