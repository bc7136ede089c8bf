/*
 * flow.c - moves bytes between a client and a host, both ways at once, within the limits.
 */
#include <string.h>

#include "egress/proxy_internal.h"

#define STEP ((size_t)32 << 10)
#define SLICE_MS 1000
#define LAST_STEPS 256u /* after the sandbox ended; its processes send nothing more */

static bool identity(void *arg, cx_bytes bytes, cx_buf *out)
{
    (void)arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return true;
}

void egress_flow_init(egress_flow *flow, egress_connection *c)
{
    memset(flow, 0, sizeof *flow);
    flow->connection = c;
    flow->up.filter = flow->down.filter = identity;
    cx_buf_init(&flow->up.pending, cx_alloc_default());
    cx_buf_init(&flow->down.pending, cx_alloc_default());
}

void egress_flow_done(egress_flow *flow)
{
    cx_buf_done(&flow->up.pending);
    cx_buf_done(&flow->down.pending);
}

static size_t waiting(const egress_half *half)
{
    return half->pending.size - half->sent;
}

static bool wants_more(const egress_half *half)
{
    return !half->ended && waiting(half) < EGRESS_PENDING_MAX;
}

static cx_socket_result peer_receive(const egress_peer *peer, void *data, size_t size, size_t *out)
{
    return peer->tls != NULL ? cx_tls_receive(peer->tls, data, size, out)
                             : cx_tcp_receive(peer->socket, data, size, out);
}

static cx_socket_result peer_send(const egress_peer *peer, const void *data, size_t size,
                                  size_t *out)
{
    return peer->tls != NULL ? cx_tls_send(peer->tls, data, size, out)
                             : cx_tcp_send(peer->socket, data, size, out);
}

/* False: a limit was reached, or the filter refuses. */
static bool take_bytes(egress_flow *flow, egress_half *half, cx_bytes bytes)
{
    egress_connection *c = flow->connection;
    cx_egress *proxy = c->proxy;
    bool up = half == &flow->up;
    *(up ? &c->record.bytes_out : &c->record.bytes_in) += bytes.size;
    cx_lock_enter(&proxy->lock);
    *(up ? &proxy->totals.bytes_out : &proxy->totals.bytes_in) += bytes.size;
    uint64_t total = proxy->totals.bytes_out + proxy->totals.bytes_in;
    cx_lock_leave(&proxy->lock);
    if (c->record.bytes_out + c->record.bytes_in > proxy->limits.bytes_connection ||
        total > proxy->limits.bytes_total) {
        egress_note(c, "the limit of bytes was reached (E10)");
        return false;
    }
    if (half->filter(half->arg, bytes, &half->pending) && !half->pending.failed) {
        half->ended |= up && flow->body != NULL && flow->body->complete;
        return true;
    }
    egress_note(c,
                up ? "the body of the request is not well formed (E02)" : "the answer is not HTTP");
    return false;
}

static bool receive_half(egress_flow *flow, egress_half *half, const egress_peer *from)
{
    uint8_t data[STEP];
    half->more = false;
    while (wants_more(half)) {
        size_t got = 0;
        cx_socket_result result = peer_receive(from, data, sizeof data, &got);
        if (result == CX_SOCKET_WAITS)
            return true;
        if (result == CX_SOCKET_ENDED) {
            half->ended = true;
            if (half == &flow->up && flow->body != NULL && !flow->body->complete)
                egress_note(flow->connection, "the client ended before its request did");
            return half != &flow->up || flow->body == NULL || flow->body->complete;
        }
        if (!take_bytes(flow, half, cx_bytes_from(data, got)))
            return false;
    }
    half->more = !half->ended;
    return true;
}

static bool send_half(egress_flow *flow, egress_half *half, const egress_peer *to)
{
    while (waiting(half) != 0) {
        size_t sent = 0;
        cx_socket_result result =
            peer_send(to, half->pending.data + half->sent, waiting(half), &sent);
        if (result == CX_SOCKET_WAITS)
            return true;
        if (result == CX_SOCKET_ENDED) {
            egress_note(flow->connection, "%s closed the connection",
                        half == &flow->up ? "the host" : "the client");
            return false;
        }
        half->sent += sent;
        if (half == &flow->down)
            flow->connection->answered = true;
    }
    half->pending.size = half->sent = 0;
    if (half->ended && !half->shut) {
        half->shut = true;
        if (to->tls == NULL && flow->body == NULL)
            cx_stream_end_output(to->socket);
    }
    return true;
}

static bool is_done(const egress_flow *flow)
{
    bool down = flow->down.ended && waiting(&flow->down) == 0;
    return down && (flow->body != NULL || (flow->up.ended && waiting(&flow->up) == 0));
}

/* Whether the client closed its side; what it sends after its one request is dropped. */
static bool has_left(const egress_flow *flow, const egress_peer *client)
{
    uint8_t data[STEP];
    size_t got = 0;
    cx_socket_result result = CX_SOCKET_DONE;
    if (flow->body == NULL)
        return flow->up.ended;
    for (unsigned i = 0; i < LAST_STEPS && result == CX_SOCKET_DONE; i++)
        result = peer_receive(client, data, sizeof data, &got);
    return result == CX_SOCKET_ENDED;
}

/* The sandbox ended, and with it the client.  What it sent before still goes on, as much as a
 * socket may hold; that it left is no error when it had an answer and nothing waited for it. */
static void end_with_sandbox(egress_flow *flow, const egress_peer *client)
{
    egress_connection *c = flow->connection;
    uint64_t before = UINT64_MAX;
    for (unsigned i = 0; i < LAST_STEPS && c->record.bytes_out != before; i++) {
        before = c->record.bytes_out;
        if (!receive_half(flow, &flow->up, client) || !send_half(flow, &flow->up, &c->upstream))
            return;
    }
    if (waiting(&flow->up) != 0 || waiting(&flow->down) != 0 || !c->answered ||
        !has_left(flow, client))
        egress_note(c, "the sandbox ended");
}

/* One wait and what it brought; false ends the flow. */
static bool step(egress_flow *flow, const egress_peer *client, uint64_t *latest_ns)
{
    egress_connection *c = flow->connection;
    cx_egress *proxy = c->proxy;
    cx_stream_wait list[3] = {
        {client->socket,
         (wants_more(&flow->up) ? CX_POLL_READ : 0) |
             (waiting(&flow->down) != 0 ? CX_POLL_WRITE : 0),
         0},
        {c->upstream.socket,
         (wants_more(&flow->down) ? CX_POLL_READ : 0) |
             (waiting(&flow->up) != 0 ? CX_POLL_WRITE : 0),
         0},
        {proxy->stop[0], CX_POLL_READ, 0},
    };
    for (size_t i = 0; i < 2; i++) /* a hang-up would be told of again and again */
        if (list[i].wanted == 0)
            list[i].socket = CX_SOCKET_NONE;
    bool buffered =
        (flow->up.more && wants_more(&flow->up)) || (flow->down.more && wants_more(&flow->down));
    bool any = cx_stream_poll(list, 3, buffered ? 0 : SLICE_MS) || buffered;
    uint64_t now = egress_now_ns(proxy);
    if (list[2].ready != 0) {
        end_with_sandbox(flow, client);
        return false;
    }
    if (any)
        *latest_ns = now;
    if (now >= c->end_ns || now - *latest_ns >= proxy->limits.seconds_idle * UINT64_C(1000000000)) {
        egress_note(c, now >= c->end_ns ? "the limit of time was reached (E10)"
                                        : "nothing was sent for too long (E10)");
        return false;
    }
    return receive_half(flow, &flow->up, client) && receive_half(flow, &flow->down, &c->upstream) &&
           send_half(flow, &flow->up, &c->upstream) && send_half(flow, &flow->down, client);
}

void egress_flow_run(egress_flow *flow, cx_bytes start)
{
    const egress_peer client = {flow->connection->client, NULL};
    uint64_t latest = egress_now_ns(flow->connection->proxy);
    if (start.size != 0 && !take_bytes(flow, &flow->up, start))
        return;
    if (!send_half(flow, &flow->up, &flow->connection->upstream))
        return;
    while (!is_done(flow) && step(flow, &client, &latest))
        continue;
}
