/*
 * serve_watch.c - asks the worker of a node whether it is ready (serve_fleet.h, N4).
 *
 * /readyz is answered by the threads that have the connections, before any request of clients that
 * waits for a thread of its own: a worker that has much to do answers it.
 */
#include "cli/fleet/serve_fleet.h"

#include <stdio.h>

#define ASK_MS 1000
#define ANSWER_MS 1000
#define BODY_MAX ((size_t)64 << 10)

typedef enum answer { ANSWER_NONE, ANSWER_READY, ANSWER_UNREADY } answer;

/* One that expects TLS closes the connection: that is an answer, and all that can be learned. */
static answer ask_worker(const cx_tcp_address *address)
{
    char url[sizeof address->host + 16];
    unsigned code = 0;
    cx_buf body;
    cx_err ignored;
    (void)snprintf(url, sizeof url, "http://%s:%u", address->host, (unsigned)address->port);
    const cx_http_client_request request = {.method = "GET",
                                            .url = url,
                                            .path = "/readyz",
                                            .timeout_ms = ANSWER_MS,
                                            .body_max = BODY_MAX};
    cx_buf_init(&body, cx_alloc_default());
    cx_status status =
        cx_http_client_exchange(&request, cx_alloc_default(), &code, &body, &ignored);
    cx_buf_done(&body);
    if (status.code == CX_E_TIMEOUT || status.code == CX_E_NOT_FOUND)
        return ANSWER_NONE;
    return !cx_failed(status) && code == 503 ? ANSWER_UNREADY : ANSWER_READY;
}

static void take_answer(cx_serve_watch *watch, unsigned round, answer got)
{
    if (watch->round != round)
        return;
    watch->silent = got == ANSWER_NONE ? watch->silent + 1 : 0;
    watch->unready = got == ANSWER_UNREADY ? watch->unready + 1 : 0;
}

static void run_watch(void *arg)
{
    cx_serve_watch *watch = arg;
    const cx_io *io = cx_io_system();
    cx_lock_enter(&watch->lock);
    while (!watch->ends) {
        uint64_t begun = io->monotonic_ns(io);
        if (watch->asks) {
            cx_tcp_address address = watch->address;
            unsigned round = watch->round;
            cx_lock_leave(&watch->lock);
            answer got = ask_worker(&address);
            cx_lock_enter(&watch->lock);
            take_answer(watch, round, got);
        }
        uint64_t passed = (io->monotonic_ns(io) - begun) / UINT64_C(1000000);
        if (!watch->ends && passed < ASK_MS)
            cx_lock_wait_for(&watch->lock, (uint32_t)(ASK_MS - passed));
    }
    cx_lock_leave(&watch->lock);
}

cx_status cx_serve_watch_open(cx_serve_watch *watch, cx_err *err)
{
    cx_lock_init(&watch->lock);
    if (cx_thread_start(&watch->thread, run_watch, watch))
        return CX_SUCCESS;
    cx_lock_done(&watch->lock);
    return cx_fail(err, CX_E_BUSY, "a thread cannot be started");
}

void cx_serve_watch_at(cx_serve_watch *watch, const cx_tcp_address *address)
{
    cx_lock_enter(&watch->lock);
    watch->asks = address != NULL;
    if (address != NULL)
        watch->address = *address;
    watch->round++;
    watch->silent = watch->unready = 0;
    cx_lock_leave(&watch->lock);
}

void cx_serve_watch_count(cx_serve_watch *watch, unsigned *out_silent, unsigned *out_unready)
{
    cx_lock_enter(&watch->lock);
    *out_silent = watch->silent;
    *out_unready = watch->unready;
    cx_lock_leave(&watch->lock);
}

void cx_serve_watch_close(cx_serve_watch *watch)
{
    if (!watch->thread.started)
        return;
    cx_lock_enter(&watch->lock);
    watch->ends = true;
    cx_lock_wake(&watch->lock);
    cx_lock_leave(&watch->lock);
    cx_thread_join(&watch->thread);
    cx_lock_done(&watch->lock);
}
