/*
 * http_upgrade.h - a connection to an HTTP server which from then on speaks another protocol
 * (RFC 9110 §7.8), over HTTP or HTTPS.
 *
 *   U1  A token crosses no network in clear: over http:// it is sent to this machine only.
 *   U2  Certificates are those of tls.h, and the name of the URL must be in the server's.
 *   U3  What the server says before it agrees has limits; nothing that follows its agreement is
 *       read here.
 */
#ifndef CX_OS_HTTP_HTTP_UPGRADE_H
#define CX_OS_HTTP_HTTP_UPGRADE_H

#include "os/net.h"

typedef struct cx_http_upgrade {
    const char *url;      /* http://HOST[:PORT][/PATH] or https://.. */
    const char *path;     /* appended to the URL */
    const char *protocol; /* the value of Upgrade */
    cx_str token;         /* for Authorization: Bearer; empty = none */
    uint32_t timeout_ms;  /* to connect, and for the answer */
} cx_http_upgrade;

typedef struct cx_http_upgraded cx_http_upgraded;

/*
 * *out_socket speaks the new protocol and is the caller's to close.  CX_E_USAGE: the URL, or a
 * token for another machine; CX_E_NOT_FOUND: nothing listens there, or no such host; CX_E_DENIED:
 * the certificate, or the server refuses the token; CX_E_UNSUPPORTED: the server speaks no such
 * protocol there, or there is no TLS; CX_E_BUSY: it cannot now; CX_E_TIMEOUT, CX_E_FORMAT, CX_E_IO.
 */
CX_RESULT cx_http_upgrade_open(const cx_http_upgrade *request, const cx_alloc *alloc,
                               cx_http_upgraded **out, cx_socket *out_socket, cx_err *err);
/* After the socket was closed.  NULL is accepted. */
void cx_http_upgraded_close(cx_http_upgraded *upgraded);

#endif
