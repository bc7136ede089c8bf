/*
 * tcp.h - a listening TCP socket, to be handed to an HTTP library.
 */
#ifndef CX_OS_TCP_H
#define CX_OS_TCP_H

#include "base/api.h"

typedef struct cx_tcp_address {
    char host[64]; /* numeric, without brackets */
    uint16_t port; /* 0 = any free port */
    bool is_v6;
    bool is_loopback;
} cx_tcp_address;

/* "127.0.0.1:8420", "[::1]:8420", "localhost:8420".  Names are not looked up. */
CX_RESULT cx_tcp_address_parse(const char *text, cx_tcp_address *out, cx_err *err);

/* Listens; sets `address->port` to the actual port.  CX_E_BUSY when the port is in use. */
CX_RESULT cx_tcp_listen(cx_tcp_address *address, int *out_socket, cx_err *err);
void cx_tcp_close(int socket);
/* Stops accepting connections.  The descriptor stays open but never becomes readable again, so that
 * a thread that polls it keeps waiting until it is closed. */
void cx_tcp_stop_listening(int socket);
/* Shuts down both directions of a connection that its owner will close. */
void cx_tcp_cut(int socket);
/* Whether the other side has ended it and nothing is left to be read.  Does not wait. */
bool cx_tcp_has_ended(int socket);

/* The network of a peer, from its struct sockaddr: its IPv4 address, or the first 64 bits of its
 * IPv6 address, which one customer can vary beyond.  True when it is this machine; empty when it is
 * of another family. */
#define CX_TCP_NETWORK_SIZE 48
bool cx_tcp_network(const void *sockaddr, char out[CX_TCP_NETWORK_SIZE]);

/* Raises the soft limit of open descriptors towards `wanted`, as far as the hard limit allows;
 * returns the limit now in force. */
uint64_t cx_tcp_descriptors(uint64_t wanted);

#endif
