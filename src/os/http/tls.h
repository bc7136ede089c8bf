/*
 * tls.h - a TLS connection to another machine, verified, through libcurl, which is loaded when it
 * is first needed.
 *
 * The certificates that count are those of the system, or of the file that SSL_CERT_FILE names.
 * One connection belongs to one thread at a time.
 */
#ifndef CX_OS_TLS_H
#define CX_OS_TLS_H

#include "os/ip.h"
#include "os/poller.h"

typedef struct cx_tls cx_tls;

/*
 * Connects to that address and verifies that it is `host` (which is also sent as the server name).
 * CX_E_UNSUPPORTED without libcurl; CX_E_DENIED when the certificate does not hold; CX_E_TIMEOUT,
 * CX_E_IO.
 */
CX_RESULT cx_tls_connect(const char *host, uint16_t port, const cx_ip *ip, uint32_t timeout_ms,
                         cx_tls **out, cx_err *err);
void cx_tls_close(cx_tls *tls); /* NULL is accepted */
/* To wait on. */
cx_socket cx_tls_socket(const cx_tls *tls);
/* As cx_tcp_receive and cx_tcp_send. */
cx_socket_result cx_tls_receive(cx_tls *tls, void *data, size_t size, size_t *out_size);
cx_socket_result cx_tls_send(cx_tls *tls, const void *data, size_t size, size_t *out_size);

#endif
