/*
 * forward_tls.h - TLS between forwarders, both of which show a certificate.  Through OpenSSL's
 * libssl, which is loaded when it is first needed; libpq brings it.
 *
 *   T1  TLS 1.3 or nothing; no session is resumed, so that each connection is checked.
 *   T2  The other side's certificate is of the given CA alone (not of those of the system), is
 *       valid now, may be used for its side of TLS, and names the address of that side, or the
 *       given name.
 *   T3  Nothing of a connection is handed on before that is known.
 *
 * Files are read once, when it is opened.
 */
#ifndef CX_OS_FORWARD_TLS_H
#define CX_OS_FORWARD_TLS_H

#include "base/api.h"

typedef struct cx_forward_tls cx_forward_tls;

typedef struct cx_forward_tls_options {
    const char *cert, *key, *ca; /* PEM files: the chain that is shown, its key; the CA */
    const char *name;            /* a DNS name that all have; NULL = each its address */
} cx_forward_tls_options;

/* CX_E_USAGE when a file is not as it must be, or the own certificate has expired;
 * CX_E_UNSUPPORTED without libssl. */
CX_RESULT cx_forward_tls_open(const cx_forward_tls_options *options, cx_forward_tls **out,
                              cx_err *err);
/* No forwarder has it any more; NULL is accepted. */
void cx_forward_tls_close(cx_forward_tls *tls);

#endif
