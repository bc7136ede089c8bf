/*
 * connection.c - one connection of a client: its request, the decision, and what follows from it.
 * X1 to X5: proxy.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "egress/proxy_internal.h"

#define SLICE_MS 1000

uint64_t egress_now_ns(const cx_egress *proxy)
{
    return proxy->options.io->monotonic_ns(proxy->options.io);
}

static uint64_t deadline(const egress_connection *c, uint64_t seconds)
{
    uint64_t end = egress_now_ns(c->proxy) + seconds * UINT64_C(1000000000);
    return end < c->end_ns ? end : c->end_ns;
}

void egress_note(egress_connection *c, const char *format, ...)
{
    va_list args;
    if (c->error[0] != 0)
        return;
    va_start(args, format);
    (void)vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    c->record.error = c->error;
}

bool egress_wait(const egress_connection *c, cx_socket socket, unsigned wanted, uint64_t end_ns)
{
    for (;;) {
        cx_stream_wait list[2] = {{socket, wanted, 0}, {c->proxy->stop[0], CX_POLL_READ, 0}};
        uint64_t now = egress_now_ns(c->proxy);
        if (now >= end_ns)
            return false;
        uint64_t left = (end_ns - now) / 1000000 + 1;
        (void)cx_stream_poll(list, 2, left > SLICE_MS ? SLICE_MS : (uint32_t)left);
        if (list[1].ready != 0)
            return false;
        if (list[0].ready != 0)
            return true;
    }
}

bool egress_answer(egress_connection *c, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t end = deadline(c, c->proxy->limits.seconds_head);
    c->answered = true;
    while (size != 0) {
        size_t sent = 0;
        cx_socket_result result = cx_tcp_send(c->client, at, size, &sent);
        if (result == CX_SOCKET_ENDED ||
            (result == CX_SOCKET_WAITS && !egress_wait(c, c->client, CX_POLL_WRITE, end)))
            return false;
        at += sent;
        size -= sent;
    }
    return true;
}

/* --- refusing --------------------------------------------------------------------------------- */

static const char *phrase_of(unsigned status)
{
    switch (status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 408: return "Request Timeout";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Refused";
    }
}

static void answer_text(egress_connection *c, unsigned status, const char *rule, const char *why)
{
    char body[512], all[900];
    int size =
        snprintf(body, sizeof body, "cortex egress: %s%s%s%s\n", rule, rule[0] == 0 ? "" : ": ",
                 c->record.has_host ? c->record.host.name : "", c->record.has_host ? ": " : "");
    if (size > 0 && (size_t)size < sizeof body)
        (void)snprintf(body + size - 1, sizeof body - (size_t)size + 1, "%s\n", why);
    size = snprintf(all, sizeof all,
                    "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                    "Content-Length: %zu\r\nConnection: close\r\nX-Cortex-Rule: %s\r\n\r\n%s",
                    status, phrase_of(status), strlen(body), rule, body);
    if (size > 0)
        (void)egress_answer(c, all, (size_t)size < sizeof all ? (size_t)size : sizeof all - 1);
}

/* With the lock. */
static void keep_refusal(egress_connection *c)
{
    cx_egress_totals *totals = &c->proxy->totals;
    const cx_egress_host *host = &c->record.host;
    bool v6 = host->is_address && host->address.is_v6;
    char what[sizeof totals->refusals[0].what];
    if (c->record.has_host)
        (void)snprintf(what, sizeof what, "%s%s%s:%u (%s)", v6 ? "[" : "", host->name,
                       v6 ? "]" : "", (unsigned)host->port, c->record.rule);
    else
        (void)snprintf(what, sizeof what, "a request (%s)", c->record.rule);
    for (size_t i = 0; i < totals->refusal_count; i++)
        if (strcmp(totals->refusals[i].what, what) == 0) {
            totals->refusals[i].count++;
            return;
        }
    if (totals->refusal_count == CX_EGRESS_REFUSALS_MAX)
        return;
    cx_egress_refusal *kept = &totals->refusals[totals->refusal_count++];
    memcpy(kept->what, what, sizeof what);
    kept->count = 1;
}

/* The verdict only; the answer to the client is the caller's. */
static void refuse(egress_connection *c, const char *rule, const char *why)
{
    c->record.allowed = false;
    c->record.rule = rule;
    c->record.why = why;
}

static void refuse_http(egress_connection *c, const char *rule, unsigned status, const char *why)
{
    refuse(c, rule, why);
    answer_text(c, status, rule, why);
}

/* After "200": the client waits for TLS, so the answer is an alert, access_denied. */
static void refuse_tls(egress_connection *c, const char *rule, const char *why)
{
    static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 49};
    refuse(c, rule, why);
    (void)egress_answer(c, alert, sizeof alert);
}

/* --- the request ------------------------------------------------------------------------------ */

/* More bytes of the client; false at the end or the deadline. */
static bool receive(egress_connection *c, size_t max, uint64_t end_ns)
{
    for (;;) {
        size_t got = 0;
        cx_socket_result result =
            cx_tcp_receive(c->client, c->bytes + c->received, max - c->received, &got);
        if (result == CX_SOCKET_DONE) {
            c->received += got;
            return true;
        }
        if (result == CX_SOCKET_ENDED || !egress_wait(c, c->client, CX_POLL_READ, end_ns))
            return false;
    }
}

/* False: refused, or nothing was asked (then the record has no rule). */
static bool read_request(egress_connection *c, size_t *out_head)
{
    cx_egress_fault fault;
    uint64_t end = deadline(c, c->proxy->limits.seconds_head);
    size_t head = 0;
    while ((head = cx_egress_head_size(cx_str_from((const char *)c->bytes, c->received))) == 0) {
        if (c->received == CX_EGRESS_HEAD_MAX) {
            refuse_http(c, "E02", 431, "the head has more than 32768 bytes");
            return false;
        }
        if (receive(c, CX_EGRESS_HEAD_MAX, end))
            continue;
        if (c->received != 0)
            refuse_http(c, "E10", 408, "the head of the request did not come in time");
        return false;
    }
    bool good =
        cx_egress_request_parse(cx_str_from((const char *)c->bytes, head), &c->request, &fault);
    c->record.method = c->request.method;
    c->record.has_host = c->request.host.size != 0;
    if (c->record.has_host)
        c->record.host = c->request.host;
    if (!good) {
        refuse_http(c, fault.rule, fault.status, fault.why);
        return false;
    }
    c->record.way = c->request.connect ? CX_EGRESS_WAY_CONNECT : CX_EGRESS_WAY_HTTP;
    *out_head = head;
    return true;
}

/* --- the decision ----------------------------------------------------------------------------- */

static void choose_credential(egress_connection *c)
{
    if (c->request.connect || c->proxy->options.credentials == NULL)
        return;
    c->credential = cx_egress_credentials_for(c->proxy->options.credentials, &c->request.host);
    if (c->credential == NULL)
        return;
    c->record.way = CX_EGRESS_WAY_INJECT;
    c->record.credential = c->credential->name;
    c->record.host.port = c->credential->host.port;
}

/* Every address of the name is checked, and one bad one refuses them all. */
static const char *check_addresses(egress_connection *c, const char **out_why)
{
    cx_err err = {0};
    for (size_t i = 0; i < c->address_count; i++) {
        bool own = false;
        cx_egress_class class = cx_egress_address_class(&c->addresses[i]);
        c->record.address = c->addresses[i];
        c->record.has_address = true;
        if (class == CX_EGRESS_PUBLIC && cx_failed(cx_ip_is_own(&c->addresses[i], &own, &err))) {
            *out_why = "whether the address is of this machine cannot be told";
            return "E04";
        }
        c->record.class = own ? CX_EGRESS_OWN : class;
        const char *rule = cx_egress_policy_address(c->proxy->options.policy, &c->record.host,
                                                    c->record.class, out_why);
        if (rule != NULL)
            return rule;
    }
    return NULL;
}

static bool look_up(egress_connection *c)
{
    cx_err err = {0};
    const cx_egress_host *host = &c->record.host;
    cx_egress_lookup lookup = c->proxy->options.lookup;
    if (host->is_address) {
        c->addresses[0] = host->address;
        c->address_count = 1;
        return true;
    }
    cx_status status =
        (lookup == NULL ? cx_ip_lookup : lookup)(host->name, c->addresses, &c->address_count, &err);
    if (!cx_failed(status) && c->address_count != 0)
        return true;
    egress_note(c, "%s", err.message);
    refuse_http(c, "E05", 502, "the name has no address");
    return false;
}

static bool decide(egress_connection *c)
{
    const char *why = "", *rule;
    choose_credential(c);
    rule = cx_egress_policy_host(c->proxy->options.policy, &c->record.host, &why);
    if (rule == NULL && !look_up(c))
        return false;
    if (rule == NULL)
        rule = check_addresses(c, &why);
    if (rule != NULL) {
        refuse_http(c, rule, 403, why);
        return false;
    }
    c->record.allowed = true;
    c->record.rule = "E00";
    return true;
}

static void record_failed(egress_connection *c, const cx_err *err)
{
    cx_egress *proxy = c->proxy;
    cx_lock_enter(&proxy->lock);
    if (!proxy->totals.record_failed)
        (void)snprintf(proxy->totals.record_error, sizeof proxy->totals.record_error, "%s",
                       err->message);
    proxy->totals.record_failed = true;
    cx_lock_leave(&proxy->lock);
}

/* X1 */
static bool record_open(egress_connection *c)
{
    cx_err err = {0};
    cx_lock_enter(&c->proxy->lock);
    bool failed = c->proxy->totals.record_failed;
    cx_lock_leave(&c->proxy->lock);
    if (!failed) {
        const cx_egress_sink *sink = &c->proxy->options.sink;
        if (!cx_failed(sink->open(sink->arg, &c->record, &err))) {
            c->opened = true;
            return true;
        }
        record_failed(c, &err);
    }
    refuse_http(c, "E12", 503, "the connection cannot be recorded");
    return false;
}

/* --- connecting ------------------------------------------------------------------------------- */

/* X2 */
static bool connect_upstream(egress_connection *c)
{
    cx_err err = {0};
    uint32_t timeout = (uint32_t)c->proxy->limits.seconds_connect * 1000;
    cx_status status = {CX_E_IO};
    for (size_t i = 0; i < c->address_count && cx_failed(status); i++) {
        c->record.address = c->addresses[i];
        c->record.class = cx_egress_address_class(&c->addresses[i]);
        if (c->credential != NULL) {
            status = cx_tls_connect(c->record.host.name, c->record.host.port, &c->addresses[i],
                                    timeout, &c->upstream.tls, &err);
            if (!cx_failed(status))
                c->upstream.socket = cx_tls_socket(c->upstream.tls);
        } else {
            status = cx_stream_connect(&c->addresses[i], c->record.host.port, timeout,
                                       c->proxy->stop[0], &c->upstream.socket, &err);
        }
    }
    if (!cx_failed(status))
        return true;
    egress_note(c, "%s", err.message);
    answer_text(c, status.code == CX_E_TIMEOUT ? 504 : 502, "", err.message);
    return false;
}

static void close_upstream(egress_connection *c)
{
    if (c->upstream.tls != NULL)
        cx_tls_close(c->upstream.tls);
    else
        cx_net_close(c->upstream.socket);
}

/* --- a tunnel --------------------------------------------------------------------------------- */

static const char *check_hello(egress_connection *c, const cx_egress_hello *hello,
                               const char **out_why)
{
    const cx_egress_host *host = &c->record.host;
    c->record.has_sni = hello->has_name;
    c->record.sni = hello->name;
    *out_why = "the ClientHello may have another name encrypted in it";
    if (hello->has_ech)
        return "E09";
    *out_why = "the ClientHello names no host";
    if (!hello->has_name)
        return host->is_address ? NULL : "E08";
    *out_why = "the ClientHello names another host than CONNECT";
    return cx_str_eq(cx_egress_host_str(&hello->name), cx_egress_host_str(host)) ? NULL : "E07";
}

/* X3.  The bytes of the client after its request are moved to the beginning of `bytes`. */
static bool read_hello(egress_connection *c, size_t head)
{
    const char *why = NULL;
    cx_egress_hello hello;
    uint64_t end = deadline(c, c->proxy->limits.seconds_head);
    c->received -= head;
    memmove(c->bytes, c->bytes + head, c->received);
    for (;;) {
        cx_egress_hello_state state =
            cx_egress_hello_read(cx_bytes_from(c->bytes, c->received), &hello);
        if (state == CX_EGRESS_HELLO_READ)
            break;
        if (state == CX_EGRESS_HELLO_BAD || c->received == CX_EGRESS_HELLO_MAX) {
            refuse_tls(c, "E08", hello.why != NULL ? hello.why : "the ClientHello is too long");
            return false;
        }
        if (!receive(c, CX_EGRESS_HELLO_MAX, end)) {
            if (c->received == 0)
                egress_note(c, "the client sent nothing");
            else
                refuse_tls(c, "E08", "the ClientHello did not come in time");
            return false;
        }
    }
    const char *rule = check_hello(c, &hello, &why);
    if (rule != NULL)
        refuse_tls(c, rule, why);
    return rule == NULL;
}

static void run_tunnel(egress_connection *c, size_t head)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    egress_flow flow;
    c->record.method = CX_STR("CONNECT"); /* the buffer is used again */
    if (!egress_answer(c, established, sizeof established - 1)) {
        egress_note(c, "the client closed the connection");
        return;
    }
    if (!read_hello(c, head))
        return;
    egress_flow_init(&flow, c);
    egress_flow_run(&flow, cx_bytes_from(c->bytes, c->received));
    egress_flow_done(&flow);
}

/* --- one request ------------------------------------------------------------------------------ */

/* The head as the host gets it, with the credential in place of what the client sent of it. */
static void write_head(egress_connection *c, cx_buf *out)
{
    cx_egress_request *request = &c->request;
    const cx_egress_credential *credential = c->credential;
    if (credential != NULL) {
        size_t kept = 0;
        for (size_t i = 0; i < request->header_count; i++) {
            cx_str name = request->headers[i].name;
            if (!cx_egress_header_is(name, credential->header.data))
                request->headers[kept++] = request->headers[i];
        }
        request->header_count = kept;
        /* The port that the writer leaves out is 80; with https it is 443. */
        request->host.port = credential->host.port == 443 ? 80 : credential->host.port;
    }
    cx_egress_request_write(request, out);
    if (credential != NULL) {
        cx_buf_add_str(out, credential->header);
        cx_buf_add_z(out, ": ");
        cx_buf_add_str(out, credential->value);
        cx_buf_add_z(out, "\r\n");
    }
    cx_buf_add_z(out, "\r\n");
}

static void run_request(egress_connection *c, size_t head)
{
    egress_flow flow;
    egress_body body;
    egress_head answer = {.done = false};
    egress_body_init(&body, &c->request);
    egress_flow_init(&flow, c);
    cx_buf_init(&answer.held, cx_alloc_default());
    flow.body = &body;
    flow.up.filter = egress_body_filter;
    flow.up.arg = &body;
    flow.up.ended = body.complete;
    flow.down.filter = egress_head_filter;
    flow.down.arg = &answer;
    write_head(c, &flow.up.pending);
    if (c->request.wants_continue && !body.complete)
        cx_buf_add_z(&flow.down.pending, "HTTP/1.1 100 Continue\r\n\r\n");
    size_t rest = body.complete ? 0 : c->received - head;
    if (flow.up.pending.failed || flow.down.pending.failed)
        egress_note(c, "out of memory");
    else
        egress_flow_run(&flow, cx_bytes_from(c->bytes + head, rest));
    if (!c->answered)
        answer_text(c, 502, "", c->error[0] == 0 ? "the host sent no answer" : c->error);
    cx_buf_done(&answer.held);
    egress_flow_done(&flow);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* False: no more of them; a number of its refusals are recorded. */
static bool take_number(egress_connection *c)
{
    cx_egress *proxy = c->proxy;
    cx_lock_enter(&proxy->lock);
    c->record.number = ++proxy->requests;
    proxy->totals.connections++;
    cx_lock_leave(&proxy->lock);
    if (c->record.number <= proxy->limits.connections_total)
        return true;
    refuse_http(c, "E10", 429, "the limit of connections was reached");
    return false;
}

static void conclude(egress_connection *c)
{
    cx_egress *proxy = c->proxy;
    const cx_egress_sink *sink = &proxy->options.sink;
    cx_err err = {0};
    c->record.ended_ns = (int64_t)proxy->options.io->wall_ns(proxy->options.io);
    cx_lock_enter(&proxy->lock);
    proxy->totals.allowed += c->record.allowed;
    proxy->totals.refused += !c->record.allowed;
    proxy->totals.failed += c->record.allowed && c->record.error != NULL;
    if (!c->record.allowed)
        keep_refusal(c);
    bool recorded =
        c->opened || c->record.number <= proxy->limits.connections_total + EGRESS_REFUSALS_KEPT;
    proxy->totals.unrecorded += !recorded;
    cx_lock_leave(&proxy->lock);
    if (recorded && cx_failed(sink->end(sink->arg, &c->record, &err)))
        record_failed(c, &err);
}

static void serve_request(egress_connection *c)
{
    size_t head = 0;
    bool read = read_request(c, &head);
    if (!read && c->record.rule == NULL)
        return; /* nothing was asked */
    if (take_number(c) && read && decide(c) && record_open(c)) {
        if (connect_upstream(c)) {
            if (c->request.connect)
                run_tunnel(c, head);
            else
                run_request(c, head);
        }
        close_upstream(c);
    }
    conclude(c);
}

void egress_serve(void *arg)
{
    egress_slot *slot = arg;
    cx_egress *proxy = slot->proxy;
    egress_connection *c = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *c);
    if (c != NULL) {
        c->proxy = proxy;
        c->client = slot->client;
        c->upstream.socket = CX_SOCKET_NONE;
        c->end_ns = UINT64_MAX;
        c->end_ns = deadline(c, proxy->limits.seconds_connection);
        c->record.started_ns = (int64_t)proxy->options.io->wall_ns(proxy->options.io);
        serve_request(c);
        cx_alloc_free(cx_alloc_default(), c, sizeof *c);
    }
    cx_net_close(slot->client);
    cx_lock_enter(&proxy->lock);
    slot->done = true;
    proxy->busy--;
    cx_lock_wake(&proxy->lock);
    cx_lock_leave(&proxy->lock);
}
