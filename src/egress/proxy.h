/*
 * proxy.h - the process outside of a sandbox through which programs inside reach the network
 * (docs/formats/egress.md).
 *
 *     cx_egress_start          a thread accepts; one thread a connection
 *     cx_egress_channel        goes to the sandbox, whose launcher passes its listening socket on
 *     cx_egress_stop           ends all connections and tells what there was
 *
 *   X1  Nothing is sent to a host before `open` of its record has returned success.
 *   X2  The address that is connected to is one that was checked for this connection.
 *   X3  In a tunnel, nothing of the client is forwarded before its ClientHello named the host that
 *       it asked for.
 *   X4  A connection carries one request, or one tunnel.
 *   X5  A value of a credential is written to no record, no message and no client.
 */
#ifndef CX_EGRESS_PROXY_H
#define CX_EGRESS_PROXY_H

#include "egress/credential.h"
#include "egress/policy.h"
#include "json/api.h"

typedef enum cx_egress_way {
    CX_EGRESS_WAY_UNKNOWN,
    CX_EGRESS_WAY_CONNECT, /* a tunnel, with TLS inside */
    CX_EGRESS_WAY_HTTP,
    CX_EGRESS_WAY_INJECT /* http inside, TLS and a credential outside */
} cx_egress_way;
/* "unknown", "connect", "http", "inject". */
const char *cx_egress_way_name(cx_egress_way way);

/* One connection.  Texts are borrowed for the call. */
typedef struct cx_egress_record {
    uint64_t number; /* from 1, in the order of their requests */
    cx_egress_way way;
    cx_str method; /* of HTTP; empty = unknown */
    cx_egress_host host;
    bool has_host;
    cx_egress_host sni;
    bool has_sni;
    cx_ip address;
    bool has_address;
    cx_egress_class class; /* of the address */
    bool allowed;
    const char *rule;             /* "E00" when allowed; static storage */
    const char *why;              /* when refused; static storage */
    cx_str credential;            /* its name; empty = none */
    uint64_t bytes_out, bytes_in; /* to the host, from it; of the tunnel or of HTTP */
    int64_t started_ns, ended_ns; /* since 1970 */
    const char *error;            /* what ended it early; NULL = nothing */
} cx_egress_record;

/* Where records go; any thread may call, several at once.  `open`: the connection was allowed and
 * is about to be made.  `end`: it was refused, or has ended. */
typedef struct cx_egress_sink {
    cx_status (*open)(void *arg, const cx_egress_record *record, cx_err *err);
    cx_status (*end)(void *arg, const cx_egress_record *record, cx_err *err);
    void *arg;
} cx_egress_sink;

/* The record as members of an entry (egress.md §7); `with_end` adds what is known at the end. */
CX_RESULT cx_egress_record_json(const cx_egress_record *record, bool with_end, cx_json_list *out,
                                cx_err *err);

typedef cx_status (*cx_egress_lookup)(const char *name, cx_ip out[CX_IP_LOOKUP_MAX],
                                      size_t *out_count, cx_err *err);

typedef struct cx_egress_options {
    const cx_io *io;
    const cx_egress_policy *policy;           /* lives longer than the proxy */
    const cx_egress_credentials *credentials; /* NULL = none; likewise */
    cx_egress_sink sink;
    cx_egress_lookup lookup; /* NULL = cx_ip_lookup */
} cx_egress_options;

#define CX_EGRESS_REFUSALS_MAX 8 /* kinds of refusals that are told apart */

typedef struct cx_egress_refusal {
    char what[CX_EGRESS_NAME_MAX + 32]; /* "host:port (E01)" */
    uint64_t count;
} cx_egress_refusal;

typedef struct cx_egress_totals {
    uint64_t connections, allowed, refused, failed;
    uint64_t unrecorded; /* refused after the last record that the limits allow */
    uint64_t bytes_out, bytes_in;
    cx_egress_refusal refusals[CX_EGRESS_REFUSALS_MAX]; /* the first kinds */
    size_t refusal_count;
    bool record_failed; /* a record could not be written */
    char record_error[sizeof((cx_err){0}.message)];
} cx_egress_totals;

typedef struct cx_egress cx_egress;

CX_RESULT cx_egress_start(const cx_egress_options *options, cx_egress **out, cx_err *err);
/* Borrowed until cx_egress_stop: one end of a pair, for cx_sandbox_spec.egress.  The newest four
 * listening sockets that are passed over it are served. */
cx_socket cx_egress_channel(const cx_egress *egress);
/* NULL is accepted; `out` may be NULL. */
void cx_egress_stop(cx_egress *egress, cx_egress_totals *out);

#endif
