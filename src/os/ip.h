/*
 * ip.h - IP addresses as values, and the addresses of names.
 */
#ifndef CX_OS_IP_H
#define CX_OS_IP_H

#include "base/api.h"

#define CX_IP_TEXT_SIZE 48
#define CX_IP_LOOKUP_MAX 16 /* addresses of one name; further ones are ignored */

typedef struct cx_ip {
    uint8_t bytes[16]; /* IPv4: the first four */
    bool is_v6;
} cx_ip;

/* Dotted decimal with four parts and no leading zeros, or IPv6 without brackets and zone; every
 * other form is no address. */
bool cx_ip_parse(cx_str text, cx_ip *out);
/* The canonical form; an IPv6 address without brackets. */
void cx_ip_write(const cx_ip *ip, char out[CX_IP_TEXT_SIZE]);
bool cx_ip_eq(const cx_ip *a, const cx_ip *b);

/* The addresses of a name as this system finds them, in its order; waits as long as the system's
 * resolver does.  CX_E_NOT_FOUND, CX_E_IO with the resolver's words. */
CX_RESULT cx_ip_lookup(const char *name, cx_ip out[CX_IP_LOOKUP_MAX], size_t *out_count,
                       cx_err *err);
/* Whether a network interface of this machine has that address.  CX_E_IO when that cannot be
 * told. */
CX_RESULT cx_ip_is_own(const cx_ip *ip, bool *out, cx_err *err);

#endif
