/*
 * test_forward.c - connections that are handed on: to the own server, to another forwarder, held,
 * given up, limited, and never in circles.
 */
#include "os/forward/forward.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

#define ANSWER "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
#define WAIT_MS 10000

typedef struct node {
    cx_forward *forward;
    cx_tcp_address outer, inner;
} node;

static const cx_tcp_address any_port = {.host = "127.0.0.1", .is_loopback = true};

static void listen_somewhere(cx_tcp_address *out_address, cx_socket *out)
{
    cx_err err;
    *out_address = any_port;
    *out = CX_SOCKET_NONE;
    CHECK_STATUS(cx_tcp_listen(out_address, out, &err), &err);
}

static node open_node_with(cx_forward_options options)
{
    node n = {.forward = NULL};
    cx_err err;
    listen_somewhere(&n.outer, &options.outer);
    listen_somewhere(&n.inner, &options.inner);
    options.answer = ANSWER;
    CHECK_STATUS(cx_forward_open(&options, &n.forward, &err), &err);
    return n;
}

static node open_node(uint32_t hold_ms)
{
    return open_node_with(
        (cx_forward_options){.connections = 100, .hold_ms = hold_ms, .idle_ms = 60000});
}

static cx_socket connect_to(const cx_tcp_address *address)
{
    static const cx_ip loopback = {{127, 0, 0, 1}, false};
    cx_socket made = CX_SOCKET_NONE;
    cx_err err;
    CHECK_STATUS(cx_stream_connect(&loopback, address->port, WAIT_MS, CX_SOCKET_NONE, &made, &err),
                 &err);
    return made;
}

static cx_socket accept_from(cx_socket listening)
{
    cx_stream_wait wait = {listening, CX_POLL_READ, 0};
    char network[CX_TCP_NETWORK_SIZE];
    bool is_loopback = false;
    cx_socket made = CX_SOCKET_NONE;
    CHECK(cx_stream_poll(&wait, 1, WAIT_MS));
    CHECK_INT(cx_tcp_accept(listening, &made, &is_loopback, network), CX_SOCKET_DONE);
    CHECK(is_loopback);
    return made;
}

static void say(cx_socket socket, const char *text)
{
    cx_err err;
    CHECK_STATUS(cx_net_write(socket, text, strlen(text), WAIT_MS, &err), &err);
}

static bool hears(cx_socket socket, const char *text)
{
    char got[256] = "";
    size_t size = 0;
    cx_err err;
    CHECK_STATUS(cx_net_read(socket, got, strlen(text), WAIT_MS, &size, &err), &err);
    return size == strlen(text) && memcmp(got, text, size) == 0;
}

/* It has ended, or was cut, without another byte. */
static bool is_at_end(cx_socket socket)
{
    char byte;
    size_t size = 1;
    cx_err err;
    cx_status status = cx_net_read(socket, &byte, 1, WAIT_MS, &size, &err);
    return cx_failed(status) ? status.code == CX_E_IO : size == 0;
}

static bool wait_held(const node *n, uint64_t count)
{
    for (unsigned i = 0; i < WAIT_MS / 5 && cx_forward_count(n->forward).held != count; i++)
        cx_thread_sleep_ms(5);
    return cx_forward_count(n->forward).held == count;
}

CX_TEST(forward_hands_on_to_the_own_server)
{
    cx_tcp_address at;
    cx_socket server;
    node n = open_node(WAIT_MS);
    listen_somewhere(&at, &server);
    cx_forward_to(n.forward, &at, NULL);
    cx_socket client = connect_to(&n.outer), accepted = accept_from(server);
    say(client, "question");
    CHECK(hears(accepted, "question"));
    cx_stream_end_output(client); /* W4 */
    CHECK(is_at_end(accepted));
    say(accepted, "answer");
    CHECK(hears(client, "answer"));
    CHECK_INT(cx_forward_count(n.forward).own, 1);
    cx_net_close(accepted);
    CHECK(is_at_end(client));
    cx_net_close(client);
    cx_net_close(server);
    cx_forward_close(n.forward);
}

CX_TEST(forward_holds_until_there_is_a_server)
{
    cx_tcp_address at;
    cx_socket server;
    node n = open_node(WAIT_MS);
    cx_socket client = connect_to(&n.outer);
    say(client, "early");
    CHECK(wait_held(&n, 1));
    /* A server that is not there (any more) is none. */
    listen_somewhere(&at, &server);
    cx_net_close(server);
    cx_forward_to(n.forward, &at, NULL);
    cx_thread_sleep_ms(20);
    CHECK(wait_held(&n, 1));
    listen_somewhere(&at, &server);
    cx_forward_to(n.forward, &at, NULL);
    cx_socket accepted = accept_from(server);
    CHECK(hears(accepted, "early"));
    CHECK(wait_held(&n, 0));
    cx_net_close(client);
    CHECK(is_at_end(accepted));
    cx_net_close(accepted);
    cx_net_close(server);
    cx_forward_close(n.forward);
}

CX_TEST(forward_goes_through_the_node_that_serves)
{
    cx_tcp_address at;
    cx_socket server;
    node here = open_node(WAIT_MS), there = open_node(WAIT_MS);
    cx_forward_to(here.forward, NULL, &there.inner);
    cx_socket client = connect_to(&here.outer);
    say(client, "far");
    /* The other has no server (W2), and hands nothing on itself (W1). */
    cx_forward_to(there.forward, NULL, &here.inner);
    cx_thread_sleep_ms(300);
    CHECK(cx_forward_count(there.forward).accepted >= 1);
    CHECK_INT(cx_forward_count(there.forward).held, 0);
    listen_somewhere(&at, &server);
    cx_forward_to(there.forward, &at, NULL);
    cx_socket accepted = accept_from(server);
    CHECK(hears(accepted, "far"));
    say(accepted, "back");
    CHECK(hears(client, "back"));
    cx_net_close(accepted);
    CHECK(is_at_end(client));
    cx_net_close(client);
    cx_net_close(server);
    cx_forward_close(here.forward);
    cx_forward_close(there.forward);
}

CX_TEST(forward_takes_only_nodes_at_the_inner_socket)
{
    cx_tcp_address at;
    cx_socket server;
    node n = open_node(WAIT_MS);
    listen_somewhere(&at, &server);
    cx_forward_to(n.forward, &at, NULL);
    cx_socket client = connect_to(&n.inner);
    say(client, "GET / HTTP/1.1\r\n\r\n");
    CHECK(is_at_end(client));
    cx_net_close(client);
    CHECK_INT(cx_forward_count(n.forward).own, 0);
    cx_net_close(server);
    cx_forward_close(n.forward);
}

CX_TEST(forward_gives_up_in_the_words_of_http)
{
    node n = open_node(100);
    cx_socket http = connect_to(&n.outer), other = connect_to(&n.outer);
    say(http, "GET /readyz HTTP/1.1\r\n\r\n");
    say(other, "\x16\x03\x01 a greeting of TLS");
    CHECK(hears(http, ANSWER));
    CHECK(is_at_end(http));
    CHECK(is_at_end(other));
    CHECK_INT(cx_forward_count(n.forward).given_up, 2);
    cx_net_close(http);
    cx_net_close(other);
    cx_forward_close(n.forward);
}

CX_TEST(forward_has_limits)
{
    node n = open_node_with((cx_forward_options){
        .connections = 2, .connections_per_address = 1, .hold_ms = WAIT_MS, .idle_ms = 60000});
    cx_socket first = connect_to(&n.outer);
    CHECK(wait_held(&n, 1));
    cx_socket second = connect_to(&n.outer);
    CHECK(is_at_end(second));
    CHECK_INT(cx_forward_count(n.forward).refused, 1);
    cx_net_close(second);
    cx_net_close(first);
    CHECK(wait_held(&n, 0));
    cx_socket third = connect_to(&n.outer);
    CHECK(wait_held(&n, 1));
    cx_forward_stop(n.forward);
    CHECK(wait_held(&n, 1));
    cx_forward_close(n.forward);
    CHECK(is_at_end(third));
    cx_net_close(third);
}

CX_TEST(forward_ends_silent_connections)
{
    cx_tcp_address at;
    cx_socket server;
    node n =
        open_node_with((cx_forward_options){.connections = 100, .hold_ms = WAIT_MS, .idle_ms = 50});
    listen_somewhere(&at, &server);
    cx_forward_to(n.forward, &at, NULL);
    cx_socket client = connect_to(&n.outer), accepted = accept_from(server);
    CHECK(is_at_end(client));
    CHECK(is_at_end(accepted));
    cx_net_close(client);
    cx_net_close(accepted);
    cx_net_close(server);
    cx_forward_close(n.forward);
}

/* W3: far more than fits into all buffers, in both directions, each read only at the end. */
typedef struct talker {
    cx_socket socket;
    uint64_t sum;
    bool is_whole;
} talker;

#define TALK_BYTES ((size_t)24 << 20)

static void listen_slowly(void *arg)
{
    talker *t = arg;
    static _Thread_local uint8_t block[40000];
    size_t all = 0, size = 0;
    cx_err err;
    cx_thread_sleep_ms(100);
    while (all < TALK_BYTES &&
           !cx_failed(cx_net_read(t->socket, block,
                                  TALK_BYTES - all < sizeof block ? TALK_BYTES - all : sizeof block,
                                  WAIT_MS, &size, &err)) &&
           size != 0) {
        for (size_t i = 0; i < size; i++)
            t->sum = t->sum * 31 + block[i];
        all += size;
    }
    t->is_whole = all == TALK_BYTES;
}

static uint64_t talk(cx_socket socket, uint64_t seed)
{
    static uint8_t block[65536];
    uint64_t sum = 0;
    cx_err err;
    for (size_t all = 0; all < TALK_BYTES; all += sizeof block) {
        for (size_t i = 0; i < sizeof block; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            block[i] = (uint8_t)(seed >> 56);
            sum = sum * 31 + block[i];
        }
        CHECK_STATUS(cx_net_write(socket, block, sizeof block, WAIT_MS, &err), &err);
    }
    return sum;
}

CX_TEST(forward_waits_for_slow_readers)
{
    cx_tcp_address at;
    cx_socket server;
    node here = open_node(WAIT_MS), there = open_node(WAIT_MS);
    listen_somewhere(&at, &server);
    cx_forward_to(there.forward, &at, NULL);
    cx_forward_to(here.forward, NULL, &there.inner);
    cx_socket client = connect_to(&here.outer);
    say(client, "x");
    cx_socket accepted = accept_from(server);
    CHECK(hears(accepted, "x"));
    for (unsigned turn = 0; turn < 2; turn++) {
        talker t = {.socket = turn == 0 ? accepted : client};
        cx_thread thread;
        CHECK(cx_thread_start(&thread, listen_slowly, &t));
        uint64_t sum = talk(turn == 0 ? client : accepted, 7 + turn);
        cx_thread_join(&thread);
        CHECK(t.is_whole);
        CHECK(t.sum == sum);
    }
    cx_net_close(client);
    CHECK(is_at_end(accepted));
    cx_net_close(accepted);
    cx_net_close(server);
    cx_forward_close(here.forward);
    cx_forward_close(there.forward);
}
