/*
 * forward_pair.c - one connection that is handed on (forward.h).
 *
 * Its step is changed by enter only, which keeps the counts.
 */
#include <stdio.h>
#include <string.h>

#include "os/forward/forward_parts.h"

#define CONNECT_MS 2000
#define GREETING_MS 5000
#define RETRY_MS 100
#define REFUSED_MS 1000 /* after it was not trusted */
#define LINGER_MS 5000  /* for a client to read the rest, when its server has ended */
#define ROUNDS 4        /* blocks of one direction before others have their turn */
#define MS UINT64_C(1000000)

static const uint8_t magic[4] = {'C', 'X', 'R', '1'};

/* --- sockets and steps ------------------------------------------------------------------------ */

static void drop_waiting(cx_forward_half *half)
{
    if (half->waiting != NULL)
        cx_alloc_free(half->pair->forward->alloc, half->waiting, CX_FORWARD_CHUNK);
    half->waiting = NULL;
    half->at = half->size = 0;
}

/* False: no memory. */
static bool put_waiting(cx_forward_half *half, const uint8_t *data, size_t size)
{
    CX_ASSERT(half->at == 0 && half->size + size <= CX_FORWARD_CHUNK);
    if (half->waiting == NULL)
        half->waiting = cx_alloc_zeroed(half->pair->forward->alloc, 1, CX_FORWARD_CHUNK);
    if (half->waiting == NULL)
        return false;
    memcpy(half->waiting + half->size, data, size);
    half->size += size;
    return true;
}

static void close_half(cx_forward_half *half)
{
    if (half->watched)
        cx_poller_remove(&half->pair->forward->poller, half->socket);
    half->watched = false;
    half->wanted = 0;
    cx_forward_session_close(half->session);
    half->session = NULL;
    cx_net_close(half->socket);
    half->socket = CX_SOCKET_NONE;
}

static void enter(cx_forward_pair *pair, cx_forward_step step)
{
    cx_forward *forward = pair->forward;
    if (pair->step == CX_FORWARD_HELD)
        (void)atomic_fetch_sub(&forward->held, 1);
    if (step == CX_FORWARD_HELD)
        (void)atomic_fetch_add(&forward->held, 1);
    pair->step = step;
}

static void set_own(cx_forward_pair *pair, bool at_own)
{
    if (pair->at_own == at_own)
        return;
    pair->at_own = at_own;
    if (at_own)
        (void)atomic_fetch_add(&pair->forward->at_own, 1);
    else
        (void)atomic_fetch_sub(&pair->forward->at_own, 1);
}

static void unlink_pair(cx_forward_pair *pair)
{
    if (pair->prev != NULL)
        pair->prev->next = pair->next;
    else
        pair->forward->pairs = pair->next;
    if (pair->next != NULL)
        pair->next->prev = pair->prev;
}

void cx_forward_pair_close(cx_forward_pair *pair)
{
    cx_forward *forward = pair->forward;
    if (pair->step == CX_FORWARD_CLOSED)
        return;
    close_half(&pair->client);
    close_half(&pair->server);
    drop_waiting(&pair->client);
    drop_waiting(&pair->server);
    set_own(pair, false);
    enter(pair, CX_FORWARD_CLOSED);
    unlink_pair(pair);
    pair->prev = NULL;
    pair->next = forward->closed;
    forward->closed = pair;
    (void)atomic_fetch_sub(&forward->open, 1);
}

/* Tells the poller what is of interest now. */
static void watch(cx_forward_half *half, unsigned wanted)
{
    cx_poller *poller = &half->pair->forward->poller;
    cx_status status = CX_SUCCESS;
    if (half->socket < 0 || (half->watched && half->wanted == wanted) ||
        (!half->watched && wanted == 0))
        return;
    if (half->watched)
        status = cx_poller_change(poller, half->socket, wanted, half, NULL);
    else
        status = cx_poller_add(poller, half->socket, wanted, half, NULL);
    half->watched = !cx_failed(status);
    half->wanted = wanted;
    if (cx_failed(status))
        cx_forward_pair_close(half->pair);
}

/* --- through TLS, or not ---------------------------------------------------------------------- */

static cx_socket_result receive(cx_forward_half *half, void *data, size_t size, size_t *out_size)
{
    return half->session == NULL ? cx_tcp_receive(half->socket, data, size, out_size)
                                 : cx_forward_session_receive(half->session, data, size, out_size);
}

static cx_socket_result send_some(cx_forward_half *half, const void *data, size_t size,
                                  size_t *out_size)
{
    return half->session == NULL ? cx_tcp_send(half->socket, data, size, out_size)
                                 : cx_forward_session_send(half->session, data, size, out_size);
}

static void end_output(cx_forward_half *half)
{
    if (half->session != NULL)
        cx_forward_session_end_output(half->session);
    cx_stream_end_output(half->socket);
}

static bool was_refused(const cx_forward_half *half)
{
    return half->session != NULL && cx_forward_session_why(half->session)[0] != 0;
}

static void say_refused(const cx_forward_half *half)
{
    const cx_forward_options *options = &half->pair->forward->options;
    char text[CX_IP_TEXT_SIZE + 320];
    if (options->refused == NULL || !was_refused(half))
        return;
    (void)snprintf(text, sizeof text, "the %s at %s: %s",
                   half->pair->is_inner ? "client of the node port" : "node",
                   cx_forward_session_address(half->session),
                   cx_forward_session_why(half->session));
    options->refused(options->refused_arg, text);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Writes what waits; false when something is left, or it takes no more. */
static bool flush(cx_forward_half *to)
{
    while (to->size != 0) {
        size_t sent = 0;
        cx_socket_result result = send_some(to, to->waiting + to->at, to->size, &sent);
        if (result == CX_SOCKET_WAITS)
            return false;
        if (result == CX_SOCKET_ENDED) {
            to->finished = to->broken = true;
            drop_waiting(to);
            return true;
        }
        to->at += sent;
        to->size -= sent;
        to->pair->moved_ns = cx_forward_now();
    }
    drop_waiting(to);
    return true;
}

/* True when bytes came. */
static bool take_block(cx_forward_half *from, cx_forward_half *to)
{
    uint8_t *block = from->pair->forward->block;
    size_t size = 0, sent = 0;
    cx_socket_result result = receive(from, block, CX_FORWARD_CHUNK, &size);
    if (result != CX_SOCKET_DONE) {
        from->readable = false;
        from->ended = result == CX_SOCKET_ENDED;
        return false;
    }
    from->pair->moved_ns = cx_forward_now();
    if (to->finished)
        return true; /* no one reads it */
    result = send_some(to, block, size, &sent);
    if (result == CX_SOCKET_ENDED || (sent < size && !put_waiting(to, block + sent, size - sent)))
        to->finished = to->broken = true;
    return true;
}

static void move(cx_forward_half *from, cx_forward_half *to)
{
    for (unsigned i = 0; i < ROUNDS && flush(to); i++)
        if (from->ended || !from->readable || !take_block(from, to))
            break;
    /* W4 */
    if (from->ended && to->size == 0 && !to->finished) {
        end_output(to);
        to->finished = true;
    }
}

static void close_if_over(cx_forward_half *half)
{
    if (half->ended && half->finished && half->socket >= 0)
        close_half(half);
}

static void move_both(cx_forward_pair *pair)
{
    cx_forward_half *client = &pair->client, *server = &pair->server;
    move(server, client);
    move(client, server);
    if (client->broken || (client->ended && server->ended && client->size == 0)) {
        cx_forward_pair_close(pair);
        return;
    }
    close_if_over(client);
    close_if_over(server);
    unsigned read_client = client->ended || server->size != 0 ? 0 : CX_POLL_READ;
    unsigned read_server = server->ended || client->size != 0 ? 0 : CX_POLL_READ;
    watch(client, read_client | (client->size == 0 ? 0 : CX_POLL_WRITE));
    if (pair->step != CX_FORWARD_CLOSED)
        watch(server, read_server | (server->size == 0 ? 0 : CX_POLL_WRITE));
}

/* --- finding a server ------------------------------------------------------------------------- */

static void begin_moving(cx_forward_pair *pair)
{
    static const uint8_t yes = '+';
    size_t sent = 0;
    enter(pair, CX_FORWARD_MOVING);
    pair->moved_ns = cx_forward_now();
    if (pair->is_inner && send_some(&pair->client, &yes, 1, &sent) != CX_SOCKET_DONE) {
        cx_forward_pair_close(pair);
        return;
    }
    pair->client.readable = pair->server.readable = true;
    move_both(pair);
}

/* It had no server, or lost it before anything was sent there (W2). */
static void hold(cx_forward_pair *pair)
{
    uint64_t now = cx_forward_now();
    uint64_t pause_ms = was_refused(&pair->server) ? REFUSED_MS : RETRY_MS;
    close_half(&pair->server);
    set_own(pair, false);
    if (pair->is_inner) {
        cx_forward_pair_close(pair);
        return;
    }
    enter(pair, CX_FORWARD_HELD);
    pair->retry_ns = now + pause_ms * MS;
    watch(&pair->client,
          pair->client.ended || pair->server.size == CX_FORWARD_CHUNK ? 0 : CX_POLL_READ);
}

static void send_greeting(cx_forward_pair *pair)
{
    uint8_t greeting[CX_FORWARD_GREETING];
    size_t sent = 0;
    memcpy(greeting, magic, sizeof magic);
    for (size_t i = 0; i < 4; i++)
        greeting[4 + i] = (uint8_t)(pair->network >> (8 * i));
    /* The first bytes of a connection always have room. */
    if (send_some(&pair->server, greeting, sizeof greeting, &sent) != CX_SOCKET_DONE ||
        sent != sizeof greeting) {
        hold(pair);
        return;
    }
    enter(pair, CX_FORWARD_GREETING_SENT);
    watch(&pair->server, CX_POLL_READ);
}

/* W5; one step of it. */
static void shake(cx_forward_half *half)
{
    cx_forward_pair *pair = half->pair;
    unsigned wanted = CX_POLL_READ;
    cx_socket_result result = cx_forward_session_shake(half->session, &wanted);
    if (result == CX_SOCKET_WAITS) {
        watch(half, wanted);
    } else if (result == CX_SOCKET_ENDED) {
        say_refused(half);
        hold(pair);
    } else if (pair->is_inner) {
        enter(pair, CX_FORWARD_GREETED);
        watch(half, CX_POLL_READ);
    } else {
        send_greeting(pair);
    }
}

static void begin_shaking(cx_forward_half *half)
{
    cx_forward_pair *pair = half->pair;
    cx_ip peer;
    if (cx_stream_peer(half->socket, &peer))
        half->session = cx_forward_session_open(pair->forward->options.tls, half->socket,
                                                pair->is_inner, &peer);
    if (half->session == NULL) {
        hold(pair);
        return;
    }
    enter(pair, CX_FORWARD_SHAKING);
    shake(half);
}

static void connected(cx_forward_pair *pair)
{
    if (pair->at_own)
        begin_moving(pair);
    else if (pair->forward->options.tls != NULL)
        begin_shaking(&pair->server);
    else
        send_greeting(pair);
}

/* 127.64.0.1 .. 127.127.255.254, as the network of the client. */
static cx_ip source_of(const cx_forward_pair *pair)
{
    uint64_t n = pair->network;
    cx_ip ip = {{127, 0, 0, 1}, false};
    if (n != 0) {
        ip.bytes[1] = (uint8_t)(64 + (n & 63));
        ip.bytes[2] = (uint8_t)(n >> 8);
        ip.bytes[3] = (uint8_t)(1 + (n >> 16 & 255) % 254);
    }
    return ip;
}

static void seek(cx_forward_pair *pair)
{
    cx_forward *forward = pair->forward;
    bool to_own = forward->to_own.is_set;
    const cx_forward_place *place =
        to_own || pair->is_inner ? &forward->to_own : &forward->to_other;
    cx_ip source = source_of(pair);
    bool is_connected = false;
    if (!place->is_set ||
        cx_failed(cx_stream_connect_begin(&place->ip, place->port,
                                          to_own && pair->network != 0 ? &source : NULL,
                                          &pair->server.socket, &is_connected, NULL))) {
        hold(pair);
        return;
    }
    set_own(pair, to_own);
    enter(pair, CX_FORWARD_CONNECTING);
    pair->retry_ns = cx_forward_now() + CONNECT_MS * MS;
    if (is_connected)
        connected(pair);
    else
        watch(&pair->server, CX_POLL_WRITE);
}

/* A capital word, a space, and a slash. */
static bool is_http(const cx_forward_half *server)
{
    const uint8_t *text = server->waiting;
    size_t at = 0;
    while (at < server->size && at < 16 && text[at] >= 'A' && text[at] <= 'Z')
        at++;
    return at >= 3 && at + 1 < server->size && text[at] == ' ' && text[at + 1] == '/';
}

void cx_forward_pair_give_up(cx_forward_pair *pair)
{
    const char *answer = pair->forward->options.answer;
    bool answers = answer != NULL && !pair->is_inner && is_http(&pair->server);
    (void)atomic_fetch_add(&pair->forward->given_up, 1);
    close_half(&pair->server);
    set_own(pair, false);
    drop_waiting(&pair->server);
    pair->server.ended = pair->server.finished = pair->server.broken = true;
    if (!answers || !put_waiting(&pair->client, (const uint8_t *)answer, strlen(answer))) {
        cx_forward_pair_close(pair);
        return;
    }
    enter(pair, CX_FORWARD_MOVING);
    pair->moved_ns = cx_forward_now();
    pair->client.readable = true;
    move_both(pair);
}

/* --- events ----------------------------------------------------------------------------------- */

static void read_held(cx_forward_pair *pair)
{
    cx_forward *forward = pair->forward;
    size_t size = 0;
    cx_socket_result result = cx_tcp_receive(pair->client.socket, forward->block,
                                             CX_FORWARD_CHUNK - pair->server.size, &size);
    if (result == CX_SOCKET_DONE && !put_waiting(&pair->server, forward->block, size))
        cx_forward_pair_close(pair);
    if (result != CX_SOCKET_ENDED)
        return;
    pair->client.ended = true;
    if (pair->server.size == 0)
        cx_forward_pair_close(pair); /* it asked nothing */
}

static void read_greeting(cx_forward_pair *pair)
{
    size_t size = 0;
    cx_socket_result result = receive(&pair->client, pair->greeting + pair->greeting_size,
                                      CX_FORWARD_GREETING - pair->greeting_size, &size);
    if (result == CX_SOCKET_WAITS)
        return;
    pair->greeting_size += result == CX_SOCKET_DONE ? size : 0;
    if (result == CX_SOCKET_ENDED ||
        memcmp(pair->greeting, magic, pair->greeting_size < 4 ? pair->greeting_size : 4) != 0) {
        cx_forward_pair_close(pair);
    } else if (pair->greeting_size == CX_FORWARD_GREETING) {
        for (size_t i = 0; i < 4; i++)
            pair->network |= (uint64_t)pair->greeting[4 + i] << (8 * i);
        watch(&pair->client, 0);
        if (pair->step != CX_FORWARD_CLOSED)
            seek(pair);
    }
}

static void read_consent(cx_forward_pair *pair)
{
    uint8_t byte = 0;
    size_t size = 0;
    cx_socket_result result = receive(&pair->server, &byte, 1, &size);
    if (result == CX_SOCKET_DONE && byte == '+')
        begin_moving(pair);
    else if (result != CX_SOCKET_WAITS) {
        say_refused(&pair->server);
        hold(pair);
    }
}

static void take_client(cx_forward_pair *pair)
{
    if (pair->step == CX_FORWARD_SHAKING && pair->is_inner)
        shake(&pair->client);
    else if (pair->step == CX_FORWARD_GREETED)
        read_greeting(pair);
    else if (pair->step == CX_FORWARD_MOVING)
        move_both(pair);
    else if (pair->is_inner)
        watch(&pair->client, 0); /* what follows its greeting waits for our consent */
    else
        read_held(pair);
    if (pair->step != CX_FORWARD_MOVING && pair->step != CX_FORWARD_CLOSED && !pair->is_inner)
        watch(&pair->client,
              pair->client.ended || pair->server.size == CX_FORWARD_CHUNK ? 0 : CX_POLL_READ);
}

static void take_server(cx_forward_pair *pair)
{
    if (pair->step == CX_FORWARD_CONNECTING && cx_stream_connected(pair->server.socket))
        connected(pair);
    else if (pair->step == CX_FORWARD_CONNECTING)
        hold(pair);
    else if (pair->step == CX_FORWARD_SHAKING && !pair->is_inner)
        shake(&pair->server);
    else if (pair->step == CX_FORWARD_GREETING_SENT)
        read_consent(pair);
    else if (pair->step == CX_FORWARD_MOVING)
        move_both(pair);
}

void cx_forward_pair_ready(cx_forward_half *half, unsigned ready)
{
    cx_forward_pair *pair = half->pair;
    if (pair->step == CX_FORWARD_CLOSED || half->socket < 0)
        return;
    if (half->wanted == 0) { /* it failed, which the next call on it tells */
        cx_poller_remove(&pair->forward->poller, half->socket);
        half->watched = false;
        return;
    }
    if ((ready & CX_POLL_READ) != 0)
        half->readable = true;
    if (half == &pair->client)
        take_client(pair);
    else
        take_server(pair);
}

static bool is_late(const cx_forward_pair *pair, uint64_t now)
{
    const cx_forward_options *options = &pair->forward->options;
    uint64_t quiet = now > pair->moved_ns ? now - pair->moved_ns : 0;
    bool lingers = pair->server.ended && pair->client.finished;
    if (pair->step == CX_FORWARD_MOVING)
        return quiet > (lingers ? LINGER_MS : options->idle_ms) * MS;
    return pair->is_inner && now >= pair->until_ns;
}

void cx_forward_pair_look(cx_forward_pair *pair, uint64_t now)
{
    if (is_late(pair, now))
        cx_forward_pair_close(pair);
    else if ((pair->step == CX_FORWARD_CONNECTING || pair->step == CX_FORWARD_GREETING_SENT ||
              (pair->step == CX_FORWARD_SHAKING && !pair->is_inner)) &&
             now >= pair->retry_ns)
        hold(pair);
    else if (pair->step == CX_FORWARD_HELD && now >= pair->until_ns)
        cx_forward_pair_give_up(pair);
    else if (pair->step == CX_FORWARD_HELD && now >= pair->retry_ns)
        seek(pair);
}

cx_forward_pair *cx_forward_pair_open(cx_forward *forward, cx_socket client, bool is_inner,
                                      uint64_t network)
{
    cx_forward_pair *pair = cx_alloc_zeroed(forward->alloc, 1, sizeof *pair);
    if (pair == NULL) {
        cx_net_close(client);
        return NULL;
    }
    uint64_t now = cx_forward_now();
    pair->forward = forward;
    pair->client = (cx_forward_half){.pair = pair, .socket = client};
    pair->server = (cx_forward_half){.pair = pair, .socket = CX_SOCKET_NONE};
    pair->is_inner = is_inner;
    pair->network = network;
    pair->step = CX_FORWARD_GREETED;
    pair->until_ns = now + (is_inner ? GREETING_MS : forward->options.hold_ms) * MS;
    pair->next = forward->pairs;
    if (pair->next != NULL)
        pair->next->prev = pair;
    forward->pairs = pair;
    (void)atomic_fetch_add(&forward->open, 1);
    if (is_inner && forward->options.tls != NULL)
        begin_shaking(&pair->client);
    else if (is_inner)
        watch(&pair->client, CX_POLL_READ);
    else
        seek(pair);
    return pair;
}
