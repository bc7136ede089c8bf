/*
 * http_client.h - one HTTP/1.1 request and its answer, over TCP without TLS: for services of this
 * machine and of networks that their operator trusts.
 *
 *   C1  The whole exchange has one deadline.  Only the look-up of a name is left to the system and
 *       its limits; an address, or "localhost", is not looked up.
 *   C2  The answer has a limit, and so has what comes before its body.  An answer that ends early,
 *       has two lengths, or is encoded in a way that was not asked for is an error, never a shorter
 *       body.
 *   C3  A token is sent to this machine only: elsewhere it would cross the network unencrypted.
 *   C4  No redirect is followed, and nothing of the environment (http_proxy) is looked at.
 */
#ifndef CX_OS_HTTP_CLIENT_H
#define CX_OS_HTTP_CLIENT_H

#include "base/api.h"

#define CX_HTTP_CLIENT_URL_MAX 2048
#define CX_HTTP_CLIENT_HEAD_MAX ((size_t)64 << 10)

typedef struct cx_http_client_request {
    const char *method;
    const char *url;  /* http://HOST[:PORT][/PATH] */
    const char *path; /* appended to the URL, "/api/v1/x"; NULL = nothing */
    cx_str token;     /* for Authorization: Bearer; empty = none */
    cx_bytes body;    /* application/json; empty = none */
    uint32_t timeout_ms;
    size_t body_max; /* bytes of the answer's body */
} cx_http_client_request;

/* CX_E_USAGE when it is no URL that this client can use: the message says why. */
CX_RESULT cx_http_client_check_url(const char *url, cx_err *err);

/*
 * Appends the answer's body to `out_body`.  Every status of the server is an answer.  CX_E_USAGE:
 * the URL, or a token for another machine; CX_E_NOT_FOUND: nothing listens there, or no such host;
 * CX_E_TIMEOUT; CX_E_LIMIT: the answer is larger than allowed; CX_E_FORMAT: it is no HTTP;
 * CX_E_IO.
 */
CX_RESULT cx_http_client_exchange(const cx_http_client_request *request, const cx_alloc *alloc,
                                  unsigned *out_status, cx_buf *out_body, cx_err *err);

#endif
