/*
 * address.h - which addresses are public ones of the internet
 * (docs/formats/egress.md §3).
 *
 *   A1  What is not known to be public is not public.
 *   A2  An IPv6 address that carries an IPv4 address is of the class of that one; forms that relay
 *       through machines of others are of a class of their own.
 */
#ifndef CX_EGRESS_ADDRESS_H
#define CX_EGRESS_ADDRESS_H

#include "os/api.h"

typedef enum cx_egress_class {
    CX_EGRESS_PUBLIC,
    CX_EGRESS_LOOPBACK,
    CX_EGRESS_PRIVATE, /* RFC 1918, RFC 4193 */
    CX_EGRESS_SHARED,  /* 100.64.0.0/10 */
    CX_EGRESS_OWN,     /* of an interface of this machine; found by cx_ip_is_own */
    /* These no policy can allow. */
    CX_EGRESS_UNSPECIFIED,
    CX_EGRESS_LINK_LOCAL, /* 169.254.169.254 is here */
    CX_EGRESS_MULTICAST,
    CX_EGRESS_TRANSITION, /* 6to4, Teredo, site-local */
    CX_EGRESS_RESERVED
} cx_egress_class;

cx_egress_class cx_egress_address_class(const cx_ip *ip);
/* "public", "loopback", .. */
const char *cx_egress_class_name(cx_egress_class class);
/* Whether `private_hosts` can allow it. */
static inline bool cx_egress_class_can_be_allowed(cx_egress_class class)
{
    return class < CX_EGRESS_UNSPECIFIED;
}

#endif
