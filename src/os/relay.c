/*
 * relay.c - the poll loop of relay.h.
 */
#include "os/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "os/system/system.h"

#define READ_BYTES 65536
#define WRITE_BYTES 4096     /* what a pipe takes without waiting once it is ready */
#define PIPE_BLOCKS_MAX 32   /* a grandchild may go on writing */
#define COMPACT_BYTES 262144 /* sent bytes that are kept before the rest is moved */
#define LAST_WORDS_MS 1000   /* for output of a far side that reads no more */

enum { NEAR_IN, NEAR_OUT, FAR_IN, FAR_OUT, PROCESS, WAKE, SIGNALS, WATCHED };

typedef struct relaying {
    const cx_relay *relay;
    cx_file files[WATCHED]; /* -1: closed, or of no interest any more */
    size_t near_sent, far_sent;
    bool near_ended, far_ended, far_told;
    uint64_t end_ns; /* the loop ends then, whatever the far side does */
    int signal;
    cx_err *err;
} relaying;

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void end_within(relaying *r, uint64_t ms)
{
    uint64_t end = now_ns() + ms * 1000000u;
    if (end < r->end_ns)
        r->end_ns = end;
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status end_side(relaying *r, cx_relay_side side)
{
    bool *ended = side == CX_RELAY_NEAR ? &r->near_ended : &r->far_ended;
    r->files[side == CX_RELAY_NEAR ? NEAR_IN : FAR_IN] = -1;
    if (*ended)
        return CX_SUCCESS;
    *ended = true;
    if (side == CX_RELAY_NEAR)
        end_within(r, r->relay->linger_ms);
    return r->relay->received(r->relay->arg, side, cx_bytes_from(NULL, 0), r->err);
}

static cx_status read_side(relaying *r, cx_relay_side side, bool *out_more)
{
    uint8_t block[READ_BYTES];
    ssize_t count;
    *out_more = false;
    do {
        count = read(r->files[side == CX_RELAY_NEAR ? NEAR_IN : FAR_IN], block, sizeof block);
    } while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return CX_SUCCESS;
    if (count <= 0)
        return end_side(r, side);
    *out_more = true;
    return r->relay->received(r->relay->arg, side, cx_bytes_from(block, (size_t)count), r->err);
}

/* R3: the far program has ended; what it wrote is in the pipe. */
static cx_status drain_far(relaying *r)
{
    bool more = r->files[FAR_IN] >= 0;
    for (size_t i = 0; i < PIPE_BLOCKS_MAX && more && r->files[FAR_IN] >= 0; i++)
        CX_TRY(read_side(r, CX_RELAY_FAR, &more));
    r->files[PROCESS] = -1;
    return end_side(r, CX_RELAY_FAR);
}

/* --- writing ---------------------------------------------------------------------------------- */

static size_t waiting(const cx_buf *buf, size_t sent)
{
    return buf->size - sent;
}

static void drop_sent(cx_buf *buf, size_t *sent)
{
    if (*sent != buf->size && *sent < COMPACT_BYTES)
        return;
    size_t left = buf->size - *sent;
    if (left != 0)
        memmove(buf->data, buf->data + *sent, left);
    buf->size = left;
    *sent = 0;
    if (left == 0 && buf->capacity > READ_BYTES) { /* what a large message needed is given back */
        const cx_alloc *alloc = buf->alloc;
        cx_buf_done(buf);
        cx_buf_init(buf, alloc);
    }
}

/* 0: not now; below 0: it reads no more. */
static ssize_t write_some(cx_file file, const uint8_t *data, size_t size)
{
    ssize_t count = send(file, data, size, MSG_DONTWAIT | cx_system_send_flags);
    if (count < 0 && errno == ENOTSOCK)
        count = write(file, data, size < WRITE_BYTES ? size : WRITE_BYTES);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return count;
}

/* False when the side reads no more. */
static bool write_side(relaying *r, cx_relay_side side)
{
    bool near = side == CX_RELAY_NEAR;
    cx_buf *buf = near ? r->relay->to_near : r->relay->to_far;
    size_t *sent = near ? &r->near_sent : &r->far_sent;
    ssize_t count =
        write_some(r->files[near ? NEAR_OUT : FAR_OUT], buf->data + *sent, waiting(buf, *sent));
    if (count < 0)
        return false;
    *sent += (size_t)count;
    drop_sent(buf, sent);
    return true;
}

/* No one reads it: it must not be waited for. */
static void discard(cx_buf *buf, size_t *sent)
{
    cx_buf_clear(buf);
    *sent = 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool may_read(const relaying *r)
{
    return waiting(r->relay->to_near, r->near_sent) < r->relay->queue_max &&
           waiting(r->relay->to_far, r->far_sent) < r->relay->queue_max; /* R2 */
}

static void set_wanted(const relaying *r, struct pollfd fds[WATCHED])
{
    bool read_more = may_read(r);
    for (size_t i = 0; i < WATCHED; i++)
        fds[i] = (struct pollfd){r->files[i], POLLIN, 0};
    if (!read_more)
        fds[NEAR_IN].fd = fds[FAR_IN].fd = fds[PROCESS].fd = -1;
    fds[NEAR_OUT].events = fds[FAR_OUT].events = POLLOUT;
    if (waiting(r->relay->to_near, r->near_sent) == 0)
        fds[NEAR_OUT].fd = -1;
    if (waiting(r->relay->to_far, r->far_sent) == 0)
        fds[FAR_OUT].fd = -1;
}

static int wait_ms(const relaying *r)
{
    uint64_t now = now_ns(), ms = r->relay->due_ms(r->relay->arg);
    if (ms == CX_RELAY_NEVER)
        ms = UINT64_MAX;
    if (r->end_ns != UINT64_MAX) {
        uint64_t left = r->end_ns <= now ? 0 : (r->end_ns - now) / 1000000u + 1;
        ms = left < ms ? left : ms;
    }
    return ms == UINT64_MAX ? -1 : ms > 1000000 ? 1000000 : (int)ms;
}

static void take_signal(relaying *r)
{
    int number = cx_system_signals_read(r->files[SIGNALS]);
    if (number != 0)
        r->signal = number;
}

static cx_status take_reads(relaying *r, const struct pollfd fds[WATCHED])
{
    bool more;
    if (fds[NEAR_IN].fd >= 0 && fds[NEAR_IN].revents != 0)
        CX_TRY(read_side(r, CX_RELAY_NEAR, &more));
    if (fds[FAR_IN].fd >= 0 && fds[FAR_IN].revents != 0)
        CX_TRY(read_side(r, CX_RELAY_FAR, &more));
    if (fds[PROCESS].fd >= 0 && fds[PROCESS].revents != 0)
        CX_TRY(drain_far(r));
    return CX_SUCCESS;
}

static cx_status take_writes(relaying *r, const struct pollfd fds[WATCHED])
{
    if (fds[FAR_OUT].fd >= 0 && fds[FAR_OUT].revents != 0 && !write_side(r, CX_RELAY_FAR)) {
        r->files[FAR_OUT] = -1;
        end_within(r, LAST_WORDS_MS);
    }
    if (r->files[FAR_OUT] < 0 && r->relay->far_out >= 0)
        discard(r->relay->to_far, &r->far_sent);
    if (fds[NEAR_OUT].fd >= 0 && fds[NEAR_OUT].revents != 0 && !write_side(r, CX_RELAY_NEAR)) {
        r->files[NEAR_OUT] = -1;
        CX_TRY(end_side(r, CX_RELAY_NEAR));
    }
    if (r->files[NEAR_OUT] < 0)
        discard(r->relay->to_near, &r->near_sent);
    return CX_SUCCESS;
}

static cx_status take_events(relaying *r, const struct pollfd fds[WATCHED])
{
    if (fds[SIGNALS].revents != 0)
        take_signal(r);
    if (fds[WAKE].fd >= 0 && fds[WAKE].revents != 0)
        cx_system_wake_clear(r->files[WAKE]);
    CX_TRY(take_reads(r, fds));
    CX_TRY(take_writes(r, fds));
    if ((fds[WAKE].fd >= 0 && fds[WAKE].revents != 0) || r->relay->due_ms(r->relay->arg) == 0)
        CX_TRY(r->relay->tick(r->relay->arg, r->err));
    CX_TRY(cx_buf_check(r->relay->to_near, r->err));
    return cx_buf_check(r->relay->to_far, r->err);
}

static bool is_done(relaying *r)
{
    const cx_relay *relay = r->relay;
    bool near_flushed = waiting(relay->to_near, r->near_sent) == 0;
    if (r->signal != 0 || now_ns() >= r->end_ns)
        return true;
    if (r->far_ended)
        return near_flushed;
    if (!r->near_ended || waiting(relay->to_far, r->far_sent) != 0)
        return false;
    if (relay->is_idle != NULL)
        return near_flushed && relay->is_idle(relay->arg);
    if (!r->far_told) {
        r->far_told = true;
        r->files[FAR_OUT] = -1;
        relay->end_far(relay->arg);
    }
    return false;
}

static cx_status run_loop(relaying *r)
{
    struct pollfd fds[WATCHED];
    while (!is_done(r)) {
        set_wanted(r, fds);
        int ready = poll(fds, WATCHED, wait_ms(r));
        if (ready < 0 && errno != EINTR)
            return cx_fail_os(r->err, errno, "cannot wait for the two programs");
        if (ready <= 0)
            for (size_t i = 0; i < WATCHED; i++)
                fds[i].revents = 0;
        CX_TRY(take_events(r, fds));
    }
    return CX_SUCCESS;
}

static cx_status run_with_signals(relaying *r, const sigset_t *taken)
{
    r->files[SIGNALS] = cx_system_signals_open(taken);
    if (r->files[SIGNALS] < 0)
        return cx_fail_os(r->err, errno, "cannot wait for signals");
    cx_status status = run_loop(r);
    cx_system_signals_close(r->files[SIGNALS]);
    return status;
}

cx_status cx_relay_run(const cx_relay *relay, int *out_signal, cx_err *err)
{
    sigset_t taken, blocked, before, pending;
    relaying r = {.relay = relay, .end_ns = UINT64_MAX, .err = err};
    const cx_file files[] = {relay->near_in, relay->near_out,    relay->far_in,
                             relay->far_out, relay->far_process, relay->wake};
    memcpy(r.files, files, sizeof files);
    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
    blocked = taken;
    sigaddset(&blocked, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
    cx_status status = run_with_signals(&r, &taken);
    /* A SIGPIPE of ours must not end this process when it is unblocked. */
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1)
        cx_system_drop_pending(SIGPIPE);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    *out_signal = r.signal;
    return status;
}

/* --- wake-ups --------------------------------------------------------------------------------- */

cx_file cx_relay_wake_open(void)
{
    return cx_system_wake_open();
}

void cx_relay_wake(cx_file wake)
{
    cx_system_wake(wake);
}

void cx_relay_wake_close(cx_file wake)
{
    if (wake >= 0)
        (void)close(wake);
}
