/*
 * tcp.h - a listening TCP socket, for those who then hand it to an HTTP library.
 */
#ifndef CX_OS_TCP_H
#define CX_OS_TCP_H

#include "base/api.h"

typedef struct cx_tcp_address {
    char host[64]; /* numeric, without brackets */
    uint16_t port; /* 0 = any that is free */
    bool is_v6;
    bool is_loopback;
} cx_tcp_address;

/* "127.0.0.1:8420", "[::1]:8420", "localhost:8420".  Names are not looked up. */
CX_RESULT cx_tcp_address_parse(const char *text, cx_tcp_address *out, cx_err *err);

/* Listens; `address->port` becomes the one that was taken.  CX_E_BUSY when somebody else has it. */
CX_RESULT cx_tcp_listen(cx_tcp_address *address, int *out_socket, cx_err *err);
void cx_tcp_close(int socket);
/* Nobody connects any more, and whoever waits for connections on this number waits on for ever: it
 * stays taken, by something that never has anything, until it is closed. */
void cx_tcp_stop_listening(int socket);
/* Ends both directions of a connection that somebody else owns and will close. */
void cx_tcp_cut(int socket);

/* Raises how many descriptors this process may have, as far as it is allowed to, to at most
 * `wanted`; returns how many that are. */
uint64_t cx_tcp_descriptors(uint64_t wanted);

#endif
