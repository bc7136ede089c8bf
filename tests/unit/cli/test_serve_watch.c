/*
 * test_serve_watch.c - what the parent of a node counts of its worker's answers (serve_watch.c).
 */
#include "tests/test.h"

#include "cli/fleet/serve_watch.c" /* NOLINT: the program's files are no library */

#include <string.h>
#include <sys/socket.h>

#define WAIT_MS 20000

/* A worker that answers each connection with `text`; NULL = it accepts none. */
typedef struct worker {
    cx_socket listening;
    cx_tcp_address address;
    cx_thread thread;
    _Atomic(const char *) text;
    atomic_bool ends;
} worker;

static void answer_one(worker *w, const char *text)
{
    char network[CX_TCP_NETWORK_SIZE], request[4096];
    bool is_loopback = false;
    cx_socket made = CX_SOCKET_NONE;
    if (cx_tcp_accept(w->listening, &made, &is_loopback, network) != CX_SOCKET_DONE)
        return;
    cx_stream_wait wait = {made, CX_POLL_READ, 0};
    if (cx_stream_poll(&wait, 1, 1000))
        (void)!recv(made, request, sizeof request, 0);
    (void)!send(made, text, strlen(text), MSG_NOSIGNAL);
    cx_net_close(made);
}

static void run_worker(void *arg)
{
    worker *w = arg;
    while (!atomic_load(&w->ends)) {
        cx_stream_wait wait = {w->listening, CX_POLL_READ, 0};
        const char *text = atomic_load(&w->text);
        if (text == NULL)
            cx_thread_sleep_ms(10);
        else if (cx_stream_poll(&wait, 1, 10))
            answer_one(w, text);
    }
}

static void open_worker(worker *w)
{
    cx_err err;
    w->address = (cx_tcp_address){.host = "127.0.0.1", .is_loopback = true};
    CHECK_STATUS(cx_tcp_listen(&w->address, &w->listening, &err), &err);
    CHECK(cx_thread_start(&w->thread, run_worker, w));
}

static void close_worker(worker *w)
{
    atomic_store(&w->ends, true);
    cx_thread_join(&w->thread);
    cx_net_close(w->listening);
}

static bool comes_to(cx_serve_watch *watch, unsigned least_silent, unsigned least_unready)
{
    unsigned silent = 0, unready = 0;
    for (unsigned passed = 0; passed < WAIT_MS; passed += 10) {
        cx_serve_watch_count(watch, &silent, &unready);
        bool is_none = least_silent == 0 && least_unready == 0;
        if (is_none ? silent == 0 && unready == 0
                    : silent >= least_silent && unready >= least_unready)
            return true;
        cx_thread_sleep_ms(10);
    }
    return false;
}

CX_TEST(answers_are_counted)
{
    static const char ready[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    static const char unready[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}";
    static const char alert[] = "\x15\x03\x03\x00\x02\x02\x28"; /* TLS: handshake failure */
    worker w = {.text = unready};
    cx_serve_watch watch = {.ends = false};
    cx_err err;
    open_worker(&w);
    CHECK_STATUS(cx_serve_watch_open(&watch, &err), &err);
    cx_serve_watch_at(&watch, &w.address);
    CHECK(comes_to(&watch, 0, 2));
    atomic_store(&w.text, ready);
    CHECK(comes_to(&watch, 0, 0));
    atomic_store(&w.text, NULL);
    CHECK(comes_to(&watch, 2, 0));
    atomic_store(&w.text, alert);
    CHECK(comes_to(&watch, 0, 0));
    /* Of another worker the count begins again. */
    atomic_store(&w.text, unready);
    CHECK(comes_to(&watch, 0, 1));
    cx_serve_watch_at(&watch, NULL);
    CHECK(comes_to(&watch, 0, 0));
    cx_serve_watch_close(&watch);
    close_worker(&w);
}

CX_TEST(a_worker_that_is_gone_is_silent)
{
    worker w = {.text = NULL};
    cx_serve_watch watch = {.ends = false};
    cx_err err;
    open_worker(&w);
    close_worker(&w);
    CHECK_STATUS(cx_serve_watch_open(&watch, &err), &err);
    cx_serve_watch_at(&watch, &w.address);
    CHECK(comes_to(&watch, 2, 0));
    cx_serve_watch_close(&watch);
}
