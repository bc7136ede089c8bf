/*
 * http_post.h - sends a body to another server over HTTP or HTTPS, through libcurl.
 *
 * libcurl is loaded when it is first needed: git of Debian brings it along.  Certificates are
 * verified against those of the system, or of the file that $SSL_CERT_FILE names; redirects are not
 * followed, proxies are those of the environment (http_proxy, ..).  Thread-safe.
 */
#ifndef CX_OS_HTTP_POST_H
#define CX_OS_HTTP_POST_H

#include <stdatomic.h>

#include "base/api.h"

#define CX_HTTP_POST_URL_MAX 2000

/*
 * Whether requests can be sent there: http or https, a host, no user name and no password (they
 * would be seen in lists of processes), no fragment, printable ASCII without spaces.  CX_E_USAGE
 * says what is wrong with it.
 */
CX_RESULT cx_http_post_check_url(const char *url, cx_err *err);

/* CX_E_UNSUPPORTED: there is no libcurl; names the package. */
CX_RESULT cx_http_post_ready(cx_err *err);

typedef struct cx_http_post {
    const char *url;            /* as cx_http_post_check_url accepts it */
    const char *const *headers; /* "Name: value" each */
    size_t header_count;
    cx_bytes body;
    uint32_t timeout_ms;       /* for all of it */
    const atomic_bool *cancel; /* ends it within about a second; NULL = none */
} cx_http_post;

typedef struct cx_http_post_result {
    unsigned status;        /* of the response */
    uint32_t retry_after_s; /* its Retry-After; 0 = none, at most a day */
} cx_http_post_result;

/* The response's body is not kept.  CX_E_IO: no response; CX_E_TIMEOUT; CX_E_LIMIT: a response of
 * more than 1 MiB. */
CX_RESULT cx_http_post_send(const cx_http_post *post, cx_http_post_result *out, cx_err *err);

#endif
