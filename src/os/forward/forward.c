/*
 * forward.c - the thread of a forwarder (forward.h): it accepts, waits, and looks at the time.
 */
#include <string.h>

#include "os/forward/forward_parts.h"

#define EVENTS 64
#define LOOK_MS 100  /* how exact times of connections are */
#define PAUSE_MS 200 /* when there are no descriptors left */
#define ACCEPTS 64   /* connections of one socket before others have their turn */
#define MS UINT64_C(1000000)

uint64_t cx_forward_now(void)
{
    const cx_io *io = cx_io_system();
    return io->monotonic_ns(io);
}

/* --- accepting -------------------------------------------------------------------------------- */

/* FNV-1a; not 0. */
static uint64_t hash_of(const char *network)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *network != 0; network++)
        hash = (hash ^ (uint8_t)*network) * UINT64_C(1099511628211);
    return (hash ^ hash >> 32) | UINT64_C(1) << 63;
}

static bool has_place(const cx_forward *forward, uint64_t network)
{
    unsigned same = 0;
    for (const cx_forward_pair *p = forward->pairs; p != NULL; p = p->next)
        same += !p->is_inner && p->network == network ? 1u : 0u;
    return same < forward->options.connections_per_address;
}

static bool is_full(const cx_forward *forward)
{
    return atomic_load(&forward->open) >= forward->options.connections;
}

static void take_connection(cx_forward *forward, cx_socket made, bool is_inner, bool is_loopback,
                            const char *network)
{
    uint64_t hash = is_inner || is_loopback ? 0 : hash_of(network);
    (void)atomic_fetch_add(&forward->accepted, 1);
    if (!is_inner && forward->options.connections_per_address != 0 && !has_place(forward, hash)) {
        (void)atomic_fetch_add(&forward->refused, 1);
        cx_net_close(made);
        return;
    }
    (void)cx_forward_pair_open(forward, made, is_inner, hash);
}

static void accept_some(cx_forward *forward, bool is_inner)
{
    cx_socket from = is_inner ? forward->options.inner : forward->options.outer;
    for (unsigned i = 0; i < ACCEPTS && !is_full(forward); i++) {
        char network[CX_TCP_NETWORK_SIZE];
        bool is_loopback = false;
        cx_socket made = CX_SOCKET_NONE;
        cx_socket_result result = cx_tcp_accept(from, &made, &is_loopback, network);
        if (result == CX_SOCKET_ENDED)
            forward->pause_ns = cx_forward_now() + PAUSE_MS * MS;
        if (result != CX_SOCKET_DONE)
            return;
        take_connection(forward, made, is_inner, is_loopback, network);
    }
}

static void watch_listening(cx_forward *forward, cx_socket socket, bool wants, bool *watched,
                            void *arg)
{
    if (*watched == wants || socket < 0)
        return;
    if (wants && cx_failed(cx_poller_add(&forward->poller, socket, CX_POLL_READ, arg, NULL)))
        return; /* tried again at the next turn */
    if (!wants)
        cx_poller_remove(&forward->poller, socket);
    *watched = wants;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void close_listening(cx_forward *forward)
{
    watch_listening(forward, forward->options.outer, false, &forward->outer_watched, forward);
    watch_listening(forward, forward->options.inner, false, &forward->inner_watched, forward);
    cx_net_close(forward->options.outer);
    cx_net_close(forward->options.inner);
    forward->options.outer = forward->options.inner = CX_SOCKET_NONE;
}

/* Does what other threads asked for; false: it is to end. */
static bool take_orders(cx_forward *forward)
{
    cx_lock_enter(&forward->lock);
    bool moved = forward->moved, stops = forward->stops, closes = forward->closes;
    forward->moved = false;
    forward->to_own = forward->own;
    forward->to_other = forward->other;
    cx_lock_leave(&forward->lock);
    if (stops && !forward->stopped) {
        close_listening(forward);
        cx_lock_enter(&forward->lock);
        forward->stopped = true;
        cx_lock_wake(&forward->lock);
        cx_lock_leave(&forward->lock);
    }
    for (cx_forward_pair *p = forward->pairs; p != NULL && moved; p = p->next)
        p->retry_ns = p->step == CX_FORWARD_HELD ? 0 : p->retry_ns;
    return !closes;
}

static void free_closed(cx_forward *forward)
{
    while (forward->closed != NULL) {
        cx_forward_pair *pair = forward->closed;
        forward->closed = pair->next;
        cx_alloc_free(forward->alloc, pair, sizeof *pair);
    }
}

static void look_at_all(cx_forward *forward)
{
    uint64_t now = cx_forward_now();
    cx_forward_pair *next = NULL;
    for (cx_forward_pair *p = forward->pairs; p != NULL; p = next) {
        next = p->next;
        cx_forward_pair_look(p, now);
    }
    free_closed(forward);
}

static void take_event(cx_forward *forward, const cx_poll_event *event)
{
    if (event->arg == &forward->options.outer)
        accept_some(forward, false);
    else if (event->arg == &forward->options.inner)
        accept_some(forward, true);
    else
        cx_forward_pair_ready(event->arg, event->ready);
}

static void run_forward(void *arg)
{
    cx_forward *forward = arg;
    cx_poll_event events[EVENTS];
    uint64_t look_ns = 0;
    while (take_orders(forward)) {
        uint64_t now = cx_forward_now();
        bool accepts = !is_full(forward) && now >= forward->pause_ns;
        watch_listening(forward, forward->options.outer, accepts, &forward->outer_watched,
                        &forward->options.outer);
        watch_listening(forward, forward->options.inner, accepts, &forward->inner_watched,
                        &forward->options.inner);
        size_t count = cx_poller_wait(&forward->poller, events, EVENTS, LOOK_MS);
        for (size_t i = 0; i < count; i++)
            take_event(forward, &events[i]);
        free_closed(forward);
        if (count == 0 || cx_forward_now() >= look_ns) {
            look_at_all(forward);
            look_ns = cx_forward_now() + LOOK_MS * MS;
        }
    }
    while (forward->pairs != NULL) {
        cx_forward_pair *pair = forward->pairs;
        if (pair->step == CX_FORWARD_HELD)
            cx_forward_pair_give_up(pair);
        cx_forward_pair_close(pair);
    }
    free_closed(forward);
}

/* --- for other threads ------------------------------------------------------------------------ */

static cx_forward_place place_of(const cx_tcp_address *address)
{
    cx_forward_place place = {.is_set = false};
    if (address != NULL) {
        place.port = address->port;
        place.is_set = cx_ip_parse(cx_str_z(address->host), &place.ip);
    }
    return place;
}

void cx_forward_to(cx_forward *forward, const cx_tcp_address *own, const cx_tcp_address *other)
{
    cx_lock_enter(&forward->lock);
    forward->own = place_of(own);
    forward->other = place_of(other);
    forward->moved = true;
    cx_lock_leave(&forward->lock);
    cx_poller_wake(&forward->poller);
}

cx_forward_counts cx_forward_count(const cx_forward *forward)
{
    return (cx_forward_counts){.open = atomic_load(&forward->open),
                               .held = atomic_load(&forward->held),
                               .own = atomic_load(&forward->at_own),
                               .accepted = atomic_load(&forward->accepted),
                               .given_up = atomic_load(&forward->given_up),
                               .refused = atomic_load(&forward->refused)};
}

void cx_forward_stop(cx_forward *forward)
{
    cx_lock_enter(&forward->lock);
    forward->stops = true;
    cx_poller_wake(&forward->poller);
    while (!forward->stopped)
        cx_lock_wait(&forward->lock);
    cx_lock_leave(&forward->lock);
}

void cx_forward_close(cx_forward *forward)
{
    if (forward == NULL)
        return;
    if (forward->thread.started) {
        cx_lock_enter(&forward->lock);
        forward->closes = true;
        cx_lock_leave(&forward->lock);
        cx_poller_wake(&forward->poller);
        cx_thread_join(&forward->thread);
    }
    close_listening(forward);
    cx_poller_close(&forward->poller);
    cx_lock_done(&forward->lock);
    cx_alloc_free(forward->alloc, forward, sizeof *forward);
}

cx_status cx_forward_open(const cx_forward_options *options, cx_forward **out, cx_err *err)
{
    const cx_alloc *alloc = options->alloc == NULL ? cx_alloc_default() : options->alloc;
    CX_ASSERT(options->connections != 0 && options->connections <= 1000000);
    CX_ASSERT(options->answer == NULL || strlen(options->answer) <= CX_FORWARD_CHUNK);
    cx_forward *forward = cx_alloc_zeroed(alloc, 1, sizeof *forward);
    if (forward == NULL) {
        cx_net_close(options->outer);
        cx_net_close(options->inner);
        return cx_fail_nomem(err);
    }
    forward->alloc = alloc;
    forward->options = *options;
    forward->poller = (cx_poller)CX_POLLER_NONE;
    cx_lock_init(&forward->lock);
    cx_status status = cx_poller_open(&forward->poller, err);
    if (!cx_failed(status) && !cx_thread_start(&forward->thread, run_forward, forward))
        status = cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    if (cx_failed(status))
        cx_forward_close(forward);
    else
        *out = forward;
    return status;
}
