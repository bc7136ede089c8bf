/*
 * hello.h - the name in a TLS ClientHello (RFC 8446, RFC 6066; docs/formats/egress.md §6).
 *
 *   T1  Nothing of the handshake is answered, changed or kept: the bytes go on as they came.
 */
#ifndef CX_EGRESS_HELLO_H
#define CX_EGRESS_HELLO_H

#include "egress/host.h"

#define CX_EGRESS_HELLO_MAX ((size_t)32 << 10) /* bytes of the records of a ClientHello */

typedef enum cx_egress_hello_state {
    CX_EGRESS_HELLO_MORE, /* not complete yet */
    CX_EGRESS_HELLO_READ,
    CX_EGRESS_HELLO_BAD /* no ClientHello, or one that is not well formed */
} cx_egress_hello_state;

typedef struct cx_egress_hello {
    bool has_name;
    cx_egress_host name; /* without a port */
    bool has_ech;        /* a name may be encrypted in it */
    const char *why;     /* of CX_EGRESS_HELLO_BAD; static storage */
} cx_egress_hello;

cx_egress_hello_state cx_egress_hello_read(cx_bytes bytes, cx_egress_hello *out);

#endif
