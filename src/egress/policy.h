/*
 * policy.h - which hosts may be reached, and how much (docs/formats/egress.md §2).
 *
 *   P1  A policy is read completely or not used: unknown and malformed members are errors.
 *   P2  A host is covered by an entry of every list, or it is refused.
 *   P3  An address that is not public needs an entry of `private_hosts`, too.
 */
#ifndef CX_EGRESS_POLICY_H
#define CX_EGRESS_POLICY_H

#include "egress/address.h"
#include "egress/host.h"

#define CX_EGRESS_POLICY_FILE "policies/egress.json"
#define CX_EGRESS_POLICY_BYTES_MAX ((size_t)1 << 20)
#define CX_EGRESS_LIST_MAX 1024
#define CX_EGRESS_LISTS_MAX 4

typedef enum cx_egress_network {
    CX_EGRESS_DENY,
    CX_EGRESS_ALLOWLIST, /* what the lists cover */
    CX_EGRESS_ALLOW      /* without a list: every public host */
} cx_egress_network;

typedef struct cx_egress_list {
    const cx_egress_pattern *items;
    size_t count;
} cx_egress_list;

typedef struct cx_egress_limits {
    uint64_t connections;        /* at once; others wait: 64 */
    uint64_t connections_total;  /* 10000 */
    uint64_t bytes_connection;   /* both ways: 1 GiB */
    uint64_t bytes_total;        /* 8 GiB */
    uint64_t seconds_head;       /* until a request, or a ClientHello, is complete: 10 */
    uint64_t seconds_connect;    /* 10 */
    uint64_t seconds_idle;       /* without a byte: 120 */
    uint64_t seconds_connection; /* 3600 */
} cx_egress_limits;

typedef struct cx_egress_policy {
    cx_egress_network network;
    cx_egress_list lists[CX_EGRESS_LISTS_MAX]; /* P2 */
    size_t list_count;
    cx_egress_list private_hosts;
    const cx_str *credentials; /* names that may be used */
    size_t credential_count;
    cx_egress_limits limits;
} cx_egress_policy;

/* Denies everything, with the usual limits. */
void cx_egress_policy_init(cx_egress_policy *policy);
/* policies/egress.json; `name` is for messages. */
CX_RESULT cx_egress_policy_read(cx_str text, const char *name, cx_arena *arena,
                                cx_egress_policy *out, cx_err *err);
/* Patterns; CX_E_USAGE names `what` and the first that is none. */
CX_RESULT cx_egress_list_make(const cx_str *texts, size_t count, const char *what, cx_arena *arena,
                              cx_egress_list *out, cx_err *err);
/* One more list that must cover a host; CX_E_LIMIT. */
CX_RESULT cx_egress_policy_narrow(cx_egress_policy *policy, const cx_egress_list *list,
                                  cx_err *err);
/* What either list covers. */
CX_RESULT cx_egress_list_join(const cx_egress_list *a, const cx_egress_list *b, cx_arena *arena,
                              cx_egress_list *out, cx_err *err);
bool cx_egress_list_covers(const cx_egress_list *list, const cx_egress_host *host);

/* NULL: allowed; else the rule (egress.md §5), and *out_why in static storage. */
const char *cx_egress_policy_host(const cx_egress_policy *policy, const cx_egress_host *host,
                                  const char **out_why);
const char *cx_egress_policy_address(const cx_egress_policy *policy, const cx_egress_host *host,
                                     cx_egress_class class, const char **out_why);

#endif
