/*
 * proxy.c - accepts the connections of a sandbox, and gives each a thread.
 */
#include "egress/proxy.h"

#include <stdio.h>
#include <string.h>

#include "egress/proxy_internal.h"

#define SLICE_MS 1000

const char *cx_egress_way_name(cx_egress_way way)
{
    static const char *const names[] = {"unknown", "connect", "http", "inject"};
    CX_ASSERT((size_t)way < CX_COUNT_OF(names));
    return names[way];
}

/* --- accepting -------------------------------------------------------------------------------- */

/* The newest listening sockets are served; the oldest makes room. */
static void keep_listener(cx_egress *proxy, cx_socket listener)
{
    proxy->newest = (proxy->newest + 1) % EGRESS_LISTENERS_MAX;
    cx_net_close(proxy->listeners[proxy->newest]);
    proxy->listeners[proxy->newest] = listener;
}

/* A free slot whose earlier thread has been joined; NULL when all are busy. */
static egress_slot *free_slot(cx_egress *proxy)
{
    egress_slot *found = NULL;
    cx_lock_enter(&proxy->lock);
    for (size_t i = 0; i < proxy->limits.connections && found == NULL; i++)
        if (!proxy->slots[i].used || proxy->slots[i].done)
            found = &proxy->slots[i];
    bool join = found != NULL && found->used;
    cx_lock_leave(&proxy->lock);
    if (join)
        cx_thread_join(&found->thread);
    if (found != NULL)
        *found = (egress_slot){.proxy = proxy, .client = CX_SOCKET_NONE};
    return found;
}

/* Waits for a slot, so that more connections than the limit wait in the kernel. */
static egress_slot *wait_for_slot(cx_egress *proxy)
{
    egress_slot *slot;
    while ((slot = free_slot(proxy)) == NULL) {
        cx_stream_wait stop = {proxy->stop[0], CX_POLL_READ, 0};
        cx_lock_enter(&proxy->lock);
        if (proxy->busy == proxy->limits.connections)
            cx_lock_wait_for(&proxy->lock, 200);
        cx_lock_leave(&proxy->lock);
        if (cx_stream_poll(&stop, 1, 0) && stop.ready != 0)
            return NULL;
    }
    return slot;
}

/* False when stopping. */
static bool accept_from(cx_egress *proxy, cx_socket listener)
{
    bool loopback;
    char network[CX_TCP_NETWORK_SIZE];
    egress_slot *slot = wait_for_slot(proxy);
    if (slot == NULL)
        return false;
    cx_socket_result result = cx_tcp_accept(listener, &slot->client, &loopback, network);
    if (result != CX_SOCKET_DONE) {
        if (result == CX_SOCKET_ENDED)
            cx_thread_sleep_ms(20); /* no descriptors now */
        return true;
    }
    cx_lock_enter(&proxy->lock);
    slot->used = true;
    proxy->busy++;
    cx_lock_leave(&proxy->lock);
    if (!cx_thread_start(&slot->thread, egress_serve, slot)) {
        cx_net_close(slot->client);
        cx_lock_enter(&proxy->lock);
        slot->used = false;
        proxy->busy--;
        cx_lock_leave(&proxy->lock);
    }
    return true;
}

static void accept_all(void *arg)
{
    cx_egress *proxy = arg;
    bool channel_open = true;
    for (;;) {
        cx_stream_wait list[2 + EGRESS_LISTENERS_MAX] = {
            {proxy->stop[0], CX_POLL_READ, 0},
            {channel_open ? proxy->channel[0] : CX_SOCKET_NONE, CX_POLL_READ, 0}};
        for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
            list[2 + i] = (cx_stream_wait){proxy->listeners[i], CX_POLL_READ, 0};
        (void)cx_stream_poll(list, CX_COUNT_OF(list), SLICE_MS);
        if (list[0].ready != 0)
            return;
        for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
            if (list[2 + i].ready != 0 && !accept_from(proxy, proxy->listeners[i]))
                return;
        cx_socket passed;
        if (list[1].ready != 0) {
            cx_socket_result result = cx_stream_take(proxy->channel[0], &passed);
            if (result == CX_SOCKET_DONE)
                keep_listener(proxy, passed);
            channel_open = result != CX_SOCKET_ENDED;
        }
    }
}

/* --- starting and stopping -------------------------------------------------------------------- */

static void close_file(const cx_io *io, cx_file *file)
{
    if (*file != CX_FILE_NONE)
        (void)io->close(io, *file);
    *file = CX_FILE_NONE;
}

static void release(cx_egress *proxy)
{
    const cx_alloc *alloc = cx_alloc_default();
    for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
        cx_net_close(proxy->listeners[i]);
    for (size_t i = 0; i < 2; i++) {
        cx_net_close(proxy->channel[i]);
        close_file(proxy->options.io, &proxy->stop[i]);
    }
    cx_lock_done(&proxy->lock);
    cx_alloc_free(alloc, proxy->slots, (size_t)proxy->limits.connections * sizeof *proxy->slots);
    cx_alloc_free(alloc, proxy, sizeof *proxy);
}

cx_status cx_egress_start(const cx_egress_options *options, cx_egress **out, cx_err *err)
{
    const cx_alloc *alloc = cx_alloc_default();
    cx_egress *proxy = cx_alloc_zeroed(alloc, 1, sizeof *proxy);
    if (proxy == NULL)
        return cx_fail_nomem(err);
    proxy->options = *options;
    proxy->limits = options->policy->limits;
    proxy->stop[0] = proxy->stop[1] = CX_FILE_NONE;
    proxy->channel[0] = proxy->channel[1] = CX_SOCKET_NONE;
    for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
        proxy->listeners[i] = CX_SOCKET_NONE;
    cx_lock_init(&proxy->lock);
    proxy->slots = cx_alloc_zeroed(alloc, (size_t)proxy->limits.connections, sizeof *proxy->slots);
    cx_status status = proxy->slots == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_confine_pipe(proxy->stop, err);
    if (!cx_failed(status))
        status = cx_stream_pair(proxy->channel, err);
    if (!cx_failed(status) && !cx_thread_start(&proxy->acceptor, accept_all, proxy))
        status = cx_fail(err, CX_E_IO, "cannot start a thread for the proxy");
    if (cx_failed(status)) {
        release(proxy);
        return status;
    }
    *out = proxy;
    return CX_SUCCESS;
}

cx_socket cx_egress_channel(const cx_egress *egress)
{
    return egress->channel[1];
}

void cx_egress_stop(cx_egress *egress, cx_egress_totals *out)
{
    if (egress == NULL)
        return;
    close_file(egress->options.io, &egress->stop[1]);
    cx_thread_join(&egress->acceptor);
    for (size_t i = 0; i < egress->limits.connections; i++)
        cx_thread_join(&egress->slots[i].thread);
    if (out != NULL)
        *out = egress->totals;
    release(egress);
}
