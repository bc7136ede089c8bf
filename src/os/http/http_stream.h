/*
 * http_stream.h - a request to another server over HTTP or HTTPS, whose response is handed on while
 * it arrives.  Otherwise as http_post.h: libcurl, certificates of the system, no redirects, proxies
 * of the environment.
 *
 * One call uses one thread until the response has ended; any number may run at once.
 */
#ifndef CX_OS_HTTP_STREAM_H
#define CX_OS_HTTP_STREAM_H

#include <stdatomic.h>

#include "base/api.h"

#define CX_HTTP_STREAM_HEADERS_MAX ((size_t)64 << 10) /* bytes of a response's headers */

typedef struct cx_http_stream {
    const char *url;            /* as cx_http_post_check_url accepts it */
    const char *method;         /* "POST", "PUT", "GET", "DELETE" */
    const char *const *headers; /* "Name: value" each */
    size_t header_count;
    cx_bytes body;             /* of a POST or a PUT */
    uint32_t timeout_ms;       /* for all of it; 0 = none */
    const atomic_bool *cancel; /* ends it within about a second; NULL = none */
    void *arg;
    /* Each header of the final response, before its body; false ends the exchange.  May be NULL. */
    bool (*header)(void *arg, cx_str name, cx_str value);
    /* A part of the body; `status` is the response's.  False ends the exchange. */
    bool (*received)(void *arg, unsigned status, cx_bytes part);
} cx_http_stream;

/* *out_status: of the response; every status is one.  CX_E_IO: no response, or an incomplete one;
 * CX_E_TIMEOUT; CX_E_LIMIT: a callback or the size of the headers ended it; CX_E_UNSUPPORTED. */
CX_RESULT cx_http_stream_send(const cx_http_stream *stream, unsigned *out_status, cx_err *err);

#endif
