/*
 * host.h - hosts as they are asked for, and patterns of hosts in policies
 * (docs/formats/egress.md §2).
 *
 *   H1  A host has one spelling: lower case, no final dot, addresses in their canonical form.
 *   H2  A text that a resolver could read as an address, but that is not an address in dotted
 *       decimal, is no host (0x7f.1, 2130706433, 0177.0.0.1).
 *   H3  A wildcard covers names below it, never the name itself and never an address.
 */
#ifndef CX_EGRESS_HOST_H
#define CX_EGRESS_HOST_H

#include "base/api.h"
#include "os/api.h"

#define CX_EGRESS_NAME_MAX 253
#define CX_EGRESS_LABEL_MAX 63

typedef struct cx_egress_host {
    char name[CX_EGRESS_NAME_MAX + 1]; /* H1; an IPv6 address without brackets */
    size_t size;
    bool is_address;
    cx_ip address; /* when it is one */
    uint16_t port; /* 0 = none was given */
} cx_egress_host;

static inline cx_str cx_egress_host_str(const cx_egress_host *host)
{
    return cx_str_from(host->name, host->size);
}

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT".  NULL when it is one, else why not (static storage). */
const char *cx_egress_host_parse(cx_str text, cx_egress_host *out);
/* Whether the text is no host because it is a number form of an address (H2). */
bool cx_egress_host_is_number_form(cx_str text);

typedef struct cx_egress_pattern {
    cx_egress_host host; /* port 0: 80 and 443 */
    bool wildcard;       /* "*." before the name */
} cx_egress_pattern;

/* NULL when it is a pattern, else why not (static storage). */
const char *cx_egress_pattern_parse(cx_str text, cx_egress_pattern *out);
bool cx_egress_pattern_covers(const cx_egress_pattern *pattern, const cx_egress_host *host);

#endif
