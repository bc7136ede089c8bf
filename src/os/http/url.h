/*
 * url.h - addresses of HTTP servers: SCHEME://HOST[:PORT][/PATH], without a user.  Private to this
 * module.
 */
#ifndef CX_OS_HTTP_URL_H
#define CX_OS_HTTP_URL_H

#include "base/api.h"

#define CX_URL_MAX 2048
#define CX_URL_HOST_MAX 255

typedef struct cx_url {
    char host[CX_URL_HOST_MAX + 1]; /* without brackets */
    char port[6];
    bool is_v6;
    bool is_tls;      /* https */
    const char *path; /* begins with '/', or is empty; in the text that was parsed */
} cx_url;

/* CX_E_USAGE "BadUrl" says why; https only with `allow_tls`. */
CX_RESULT cx_url_parse(const char *text, bool allow_tls, cx_url *out, cx_err *err);

#endif
