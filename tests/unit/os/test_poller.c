/*
 * test_poller.c - many sockets in one thread: connections, what is ready, and wake-ups.
 */
#include "os/poller.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/test.h"

typedef struct places {
    cx_poller poller;
    cx_tcp_address address;
    int listening;
    cx_socket client, server; /* of one connection */
    cx_err err;
} places;

static cx_socket connect_to(const cx_tcp_address *address)
{
    struct sockaddr_in peer = {.sin_family = AF_INET,
                               .sin_port = htons(address->port),
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, (struct sockaddr *)&peer, sizeof peer) != 0)
        return CX_SOCKET_NONE;
    return made;
}

static bool begin_places(places *p)
{
    *p = (places){.poller = CX_POLLER_NONE,
                  .listening = CX_SOCKET_NONE,
                  .client = CX_SOCKET_NONE,
                  .server = CX_SOCKET_NONE};
    CHECK_STATUS(cx_tcp_address_parse("127.0.0.1:0", &p->address, &p->err), &p->err);
    CHECK_STATUS(cx_tcp_listen(&p->address, &p->listening, &p->err), &p->err);
    CHECK_STATUS(cx_poller_open(&p->poller, &p->err), &p->err);
    return p->listening >= 0 && p->poller.wake_up >= 0;
}

static bool connect_places(places *p)
{
    cx_poll_event event;
    char network[CX_TCP_NETWORK_SIZE];
    bool loopback = false;
    CHECK(cx_tcp_accept(p->listening, &p->server, &loopback, network) == CX_SOCKET_WAITS);
    CHECK_STATUS(cx_poller_add(&p->poller, p->listening, CX_POLL_READ, p, &p->err), &p->err);
    CHECK_INT(cx_poller_wait(&p->poller, &event, 1, 0), 0);
    p->client = connect_to(&p->address);
    CHECK_INT(cx_poller_wait(&p->poller, &event, 1, 5000), 1);
    CHECK(event.arg == p && event.ready == CX_POLL_READ);
    CHECK(cx_tcp_accept(p->listening, &p->server, &loopback, network) == CX_SOCKET_DONE);
    CHECK(loopback && strcmp(network, "127.0.0.1") == 0);
    cx_poller_remove(&p->poller, p->listening);
    return p->client >= 0 && p->server >= 0;
}

static void end_places(places *p)
{
    cx_net_close(p->client);
    cx_net_close(p->server);
    cx_tcp_close(p->listening);
    cx_poller_close(&p->poller);
    cx_poller_close(&p->poller); /* one that is not open is accepted */
}

CX_TEST(poller_says_when_a_socket_can_be_read_and_written)
{
    places p;
    cx_poll_event events[4];
    char bytes[8];
    size_t size = 0;
    REQUIRE(begin_places(&p) && connect_places(&p));
    CHECK_STATUS(cx_poller_add(&p.poller, p.server, CX_POLL_READ, &p.server, &p.err), &p.err);
    CHECK_INT(cx_poller_wait(&p.poller, events, 4, 0), 0);
    CHECK(cx_tcp_receive(p.server, bytes, sizeof bytes, &size) == CX_SOCKET_WAITS);
    CHECK_INT(write(p.client, "abc", 3), 3);
    CHECK_INT(cx_poller_wait(&p.poller, events, 4, 5000), 1);
    CHECK(events[0].arg == &p.server && events[0].ready == CX_POLL_READ);
    CHECK(cx_tcp_receive(p.server, bytes, sizeof bytes, &size) == CX_SOCKET_DONE);
    CHECK(size == 3 && memcmp(bytes, "abc", 3) == 0);
    CHECK_STATUS(cx_poller_change(&p.poller, p.server, CX_POLL_READ | CX_POLL_WRITE, &p, &p.err),
                 &p.err);
    CHECK_INT(cx_poller_wait(&p.poller, events, 4, 5000), 1);
    CHECK(events[0].arg == &p && events[0].ready == CX_POLL_WRITE);
    CHECK(cx_tcp_send(p.server, "xy", 2, &size) == CX_SOCKET_DONE);
    CHECK_INT(size, 2);
    end_places(&p);
}

CX_TEST(poller_says_when_the_other_side_is_gone)
{
    places p;
    cx_poll_event events[4];
    char bytes[8];
    size_t size = 0;
    REQUIRE(begin_places(&p) && connect_places(&p));
    CHECK_STATUS(cx_poller_add(&p.poller, p.server, CX_POLL_READ, &p, &p.err), &p.err);
    cx_net_close(p.client);
    p.client = CX_SOCKET_NONE;
    CHECK_INT(cx_poller_wait(&p.poller, events, 4, 5000), 1);
    CHECK((events[0].ready & CX_POLL_READ) != 0);
    CHECK(cx_tcp_receive(p.server, bytes, sizeof bytes, &size) == CX_SOCKET_ENDED);
    /* The first one may still go out; then the peer has refused it. */
    cx_socket_result sent = CX_SOCKET_DONE;
    for (int i = 0; i < 200 && sent == CX_SOCKET_DONE; i++) {
        sent = cx_tcp_send(p.server, "x", 1, &size);
        cx_thread_sleep_ms(5);
    }
    CHECK(sent == CX_SOCKET_ENDED);
    end_places(&p);
}

CX_TEST(a_full_socket_waits_until_it_is_read)
{
    static char many[1 << 16];
    places p;
    cx_poll_event events[4];
    size_t size = 0, all = 0;
    REQUIRE(begin_places(&p) && connect_places(&p));
    while (cx_tcp_send(p.server, many, sizeof many, &size) == CX_SOCKET_DONE)
        all += size;
    CHECK_STATUS(cx_poller_add(&p.poller, p.server, CX_POLL_WRITE, &p, &p.err), &p.err);
    CHECK_INT(cx_poller_wait(&p.poller, events, 4, 0), 0);
    while (all > 0) {
        ssize_t got = read(p.client, many, sizeof many);
        REQUIRE(got > 0);
        all -= (size_t)got;
    }
    CHECK_INT(cx_poller_wait(&p.poller, events, 4, 5000), 1);
    CHECK(events[0].ready == CX_POLL_WRITE);
    end_places(&p);
}

static void wake_later(void *arg)
{
    cx_thread_sleep_ms(20);
    cx_poller_wake(arg);
}

CX_TEST(poller_is_woken_by_another_thread)
{
    places p;
    cx_poll_event event;
    cx_thread thread = {.started = false};
    REQUIRE(begin_places(&p));
    REQUIRE(cx_thread_start(&thread, wake_later, &p.poller));
    CHECK_INT(cx_poller_wait(&p.poller, &event, 1, 60000), 0);
    cx_thread_join(&thread);
    /* A wake-up counts once, however often it was called. */
    cx_poller_wake(&p.poller);
    cx_poller_wake(&p.poller);
    CHECK_INT(cx_poller_wait(&p.poller, &event, 1, 60000), 0);
    CHECK_INT(cx_poller_wait(&p.poller, &event, 1, 0), 0);
    end_places(&p);
}
