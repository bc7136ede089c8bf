/*
 * spawn.c - a running child: its streams, deadlines and end.
 *
 * One loop (`poll_child`) polls our pipe ends and the process itself; running to the end, writing
 * and reading a line are that loop with different reasons to stop.  Neither side can block the
 * other: while we wait for anything, outputs are read.
 *
 *   I1  While we wait for a child it is not reaped, so its process id, which is also its group's,
 *       cannot be reused and is safe to signal.
 *   I2  After the child ended only what its pipes still contain is read: a process that inherited
 *       them cannot make us wait.
 */
#include "os/spawn.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/api.h"
#include "os/spawn_start.h"
#include "os/system/system.h"

#define CANCEL_LOOK_MS 50
#define BLIND_LOOK_MS 5 /* where the system has no file for a process (Linux before 5.3) */
/* The largest pipe capacity without privileges (fs.pipe-max-size). */
#define PIPE_BYTES_MAX (1u << 20)

typedef struct stream {
    int file; /* our end of the pipe; -1 = closed, or none */
    cx_spawn_output to;
    cx_spawn_stream seen;
} stream;

struct cx_spawn_child {
    cx_spawn_ends ends;
    int process; /* a descriptor of it, readable when it has ended; -1 = none */
    stream out, errs;
    cx_buf lines; /* CX_SPAWN_OUT_LINES: read, not yet returned */
    size_t line_at, scanned;
    const atomic_bool *cancel;
    cx_file term_file;
    uint64_t grace_ns;
    uint64_t started_ns;
    uint64_t deadline_ns; /* UINT64_MAX = none */
    bool leave_rest;      /* of the group, when the child ends by itself */
    uint64_t term_ns;     /* when SIGTERM was sent; 0 = not */
    uint64_t last_ns;     /* when "k" was written; 0 = not yet */
    bool kill_sent, lost, ended, timed_out, cancelled;
    cx_status trouble; /* why we kill it */
    cx_err trouble_err;
};

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t deadline_after(uint64_t start_ns, uint64_t ms)
{
    return ms > (UINT64_MAX - start_ns) / 1000000u ? UINT64_MAX : start_ns + ms * 1000000u;
}

static uint64_t least_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- streams ---------------------------------------------------------------------------------- */

static void close_end(int *file)
{
    if (*file >= 0)
        (void)close(*file);
    *file = -1;
}

/* Records why the child is to be killed. */
static void fail_child(cx_spawn_child *child, cx_status why)
{
    if (!cx_failed(child->trouble))
        child->trouble = why;
}

static bool accepts_output(const cx_spawn_child *child, const stream *s)
{
    return s->file >= 0 && (s->to.to != CX_SPAWN_OUT_LINES ||
                            child->lines.size - child->line_at < s->to.limit_bytes);
}

/* False when nothing can be read now. */
static bool read_block(cx_spawn_child *child, stream *s, size_t *out_count)
{
    uint8_t block[65536];
    ssize_t count;
    do {
        count = read(s->file, block, sizeof block);
    } while (count < 0 && errno == EINTR);
    *out_count = count > 0 ? (size_t)count : 0;
    if (count < 0 && errno == EAGAIN)
        return false;
    if (count <= 0) {
        close_end(&s->file);
        return false;
    }
    s->seen.total_bytes += (uint64_t)count;
    uint64_t room =
        s->to.to == CX_SPAWN_OUT_LINES ? UINT64_MAX : s->to.limit_bytes - s->seen.kept_bytes;
    size_t kept = (size_t)least_u64((uint64_t)count, room);
    if (kept < (size_t)count) {
        s->seen.truncated = true;
        if (s->to.limit_fails)
            fail_child(child, cx_fail(&child->trouble_err, CX_E_LIMIT,
                                      "a program wrote more than the %llu bytes it may",
                                      (unsigned long long)s->to.limit_bytes));
    }
    if (s->to.to == CX_SPAWN_OUT_FILE)
        fail_child(child,
                   cx_io_write_all(cx_io_system(), s->to.file, "the file of a program's output",
                                   block, kept, &child->trouble_err));
    else if (s->to.to == CX_SPAWN_OUT_LINES)
        cx_buf_add(&child->lines, block, kept);
    else if (s->to.to == CX_SPAWN_OUT_BUF)
        cx_buf_add(s->to.buf, block, kept);
    s->seen.kept_bytes += kept;
    return true;
}

/* I2. */
static void drain_stream(cx_spawn_child *child, stream *s)
{
    size_t total = 0, count = 0;
    while (s->file >= 0 && total < PIPE_BYTES_MAX && read_block(child, s, &count))
        total += count;
    close_end(&s->file);
}

/* write() without SIGPIPE for a closed pipe: the process may not ignore that signal. */
static ssize_t write_quietly(int file, cx_bytes data)
{
    sigset_t broken, pending, before;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &broken, &before);
    ssize_t count = write(file, data.data, data.size);
    int code = errno;
    if (count < 0 && code == EPIPE && sigismember(&pending, SIGPIPE) == 0)
        cx_system_drop_pending(SIGPIPE);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return count;
}

/* --- time and end ----------------------------------------------------------------------------- */

static bool has_ended(const cx_spawn_child *child)
{
    siginfo_t info = {0};
    int done;
    do {
        done = waitid(P_PID, (id_t)child->ends.pid, &info, WEXITED | WNOHANG | WNOWAIT);
    } while (done != 0 && errno == EINTR);
    return done != 0 || info.si_pid != 0;
}

static void signal_group(const cx_spawn_child *child, int number)
{
    (void)kill(-child->ends.pid, number); /* I1 */
}

static void send_terminate(const cx_spawn_child *child)
{
    if (child->term_file >= 0) {
        (void)write_quietly(child->term_file, (cx_bytes){(const uint8_t *)"t", 1});
        return;
    }
    signal_group(child, SIGTERM);
    signal_group(child, SIGCONT); /* a stopped process would not receive it */
}

/* Sends the signals that are due.  Returns the time of the next one. */
static uint64_t apply_deadlines(cx_spawn_child *child, uint64_t now)
{
    if (child->term_ns == 0 && !cx_failed(child->trouble)) {
        child->cancelled = child->cancel != NULL && atomic_load(child->cancel);
        child->timed_out = !child->cancelled && now >= child->deadline_ns;
        if (!child->cancelled && !child->timed_out)
            return child->deadline_ns;
        child->term_ns = now;
        send_terminate(child);
    }
    uint64_t kill_at = cx_failed(child->trouble) ? now : child->term_ns + child->grace_ns;
    if (now < kill_at)
        return kill_at;
    child->kill_sent = true;
    if (child->term_file >= 0 && child->last_ns == 0) {
        (void)write_quietly(child->term_file, (cx_bytes){(const uint8_t *)"k", 1});
        child->last_ns = now;
    }
    uint64_t last = child->last_ns + CX_SPAWN_LAST_MS * UINT64_C(1000000);
    if (child->term_file >= 0 && now < last)
        return last;
    child->lost = child->term_file >= 0;
    signal_group(child, SIGKILL); /* repeated: a process may have forked meanwhile */
    return now + BLIND_LOOK_MS * 1000000u;
}

static int poll_wait_ms(const cx_spawn_child *child, uint64_t now, uint64_t until)
{
    uint64_t ms = until == UINT64_MAX ? 1000000 : until <= now ? 0 : (until - now) / 1000000u + 1;
    if (child->process < 0)
        ms = least_u64(ms, BLIND_LOOK_MS);
    if (child->cancel != NULL)
        ms = least_u64(ms, CANCEL_LOOK_MS);
    return (int)least_u64(ms, 1000000);
}

/* One round of the loop: waits for an event or `until_ns`, then handles all events. */
static void poll_child(cx_spawn_child *child, bool to_write, uint64_t until_ns, bool *out_writable)
{
    uint64_t now = now_ns();
    uint64_t due = apply_deadlines(child, now);
    struct pollfd fds[4] = {
        {accepts_output(child, &child->out) ? child->out.file : -1, POLLIN, 0},
        {accepts_output(child, &child->errs) ? child->errs.file : -1, POLLIN, 0},
        {child->process, POLLIN, 0},
        {to_write ? child->ends.input : -1, POLLOUT, 0},
    };
    size_t count = 0;
    *out_writable = false;
    int ready = poll(fds, 4, poll_wait_ms(child, now, least_u64(due, until_ns)));
    if (ready > 0 && fds[0].revents != 0)
        (void)read_block(child, &child->out, &count);
    if (ready > 0 && fds[1].revents != 0)
        (void)read_block(child, &child->errs, &count);
    *out_writable = ready > 0 && fds[3].revents != 0;
    if ((child->process < 0 || (ready > 0 && fds[2].revents != 0)) && has_ended(child)) {
        if (!child->leave_rest || child->term_ns != 0)
            signal_group(child, SIGKILL);
        drain_stream(child, &child->out);
        drain_stream(child, &child->errs);
        child->ended = true;
    }
}

static void drain_until(cx_spawn_child *child, uint64_t until_ns)
{
    bool writable;
    while (!child->ended && now_ns() < until_ns)
        poll_child(child, false, until_ns, &writable);
}

static cx_status reap_child(cx_spawn_child *child, cx_spawn_result *result, cx_err *err)
{
    int state = 0;
    struct rusage used = {0};
    pid_t done;
    do {
        done = wait4(child->ends.pid, &state, 0, &used);
    } while (done < 0 && errno == EINTR);
    if (done < 0)
        return cx_fail_os(err, errno, "another part of this process reaped the program");
    uint64_t cpu_s = (uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec;
    uint64_t cpu_us = (uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec;
    *result = (cx_spawn_result){
        .exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1,
        .signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0,
        .timed_out = child->timed_out,
        .cancelled = child->cancelled,
        .killed = child->kill_sent,
        .lost = child->lost,
        .duration_ns = now_ns() - child->started_ns,
        .cpu_ns = cpu_s * 1000000000u + cpu_us * 1000u,
        .out = child->out.seen,
        .errout = child->errs.seen,
    };
    return CX_SUCCESS;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static cx_status check_options(const cx_spawn_options *options, bool talking, cx_err *err)
{
    CX_ASSERT(options->argv != NULL && options->argv[0] != NULL);
    bool talks = options->in == CX_SPAWN_IN_PIPE || options->out.to == CX_SPAWN_OUT_LINES;
    if ((talks && !talking) || options->errout.to == CX_SPAWN_OUT_LINES ||
        options->out.to == CX_SPAWN_OUT_JOIN || options->out.to == CX_SPAWN_OUT_GIVEN)
        return cx_fail(err, CX_E_USAGE, "a program cannot be given its streams this way");
    return CX_SUCCESS;
}

static void set_stream(stream *s, int file, const cx_spawn_output *to)
{
    s->file = file;
    s->to = *to;
    if (s->to.limit_bytes == 0)
        s->to.limit_bytes = CX_SPAWN_OUTPUT_DEFAULT;
}

static cx_status begin_child(const cx_spawn_options *options, cx_spawn_child *child, cx_err *err)
{
    *child = (cx_spawn_child){
        .process = -1,
        .cancel = options->cancel,
        .leave_rest = options->leave_rest,
        .term_file = options->term_file,
        .grace_ns = (options->grace_ms == 0 ? CX_SPAWN_GRACE_MS : options->grace_ms) * 1000000u,
        .started_ns = now_ns(),
    };
    child->deadline_ns = options->timeout_ms == 0
                             ? UINT64_MAX
                             : deadline_after(child->started_ns, options->timeout_ms);
    cx_buf_init(&child->lines, cx_alloc_default());
    CX_TRY(cx_spawn_start(options, &child->ends, err));
    set_stream(&child->out, child->ends.output, &options->out);
    set_stream(&child->errs, child->ends.errors, &options->errout);
    child->process = cx_system_process_file(child->ends.pid);
    return CX_SUCCESS;
}

/* The child has ended. */
static cx_status finish_child(cx_spawn_child *child, cx_spawn_result *result, cx_err *err)
{
    cx_spawn_result unused;
    cx_status status = reap_child(child, result != NULL ? result : &unused, err);
    close_end(&child->process);
    close_end(&child->ends.input);
    cx_buf_done(&child->lines);
    if (cx_failed(child->trouble)) {
        if (err != NULL)
            *err = child->trouble_err;
        return child->trouble;
    }
    return status;
}

int cx_spawn_exit(const cx_spawn_result *result)
{
    if (result->timed_out)
        return 124;
    return result->signal != 0 ? 128 + result->signal : result->exit_code;
}

static cx_status check_bufs(const cx_spawn_options *options, cx_err *err)
{
    if (options->out.to == CX_SPAWN_OUT_BUF)
        CX_TRY(cx_buf_check(options->out.buf, err));
    if (options->errout.to == CX_SPAWN_OUT_BUF)
        CX_TRY(cx_buf_check(options->errout.buf, err));
    return CX_SUCCESS;
}

cx_status cx_spawn_run(const cx_spawn_options *options, cx_spawn_result *result, cx_err *err)
{
    cx_spawn_child child;
    CX_TRY(check_options(options, false, err));
    CX_TRY(begin_child(options, &child, err));
    drain_until(&child, UINT64_MAX);
    CX_TRY(finish_child(&child, result, err));
    return check_bufs(options, err);
}

cx_status cx_spawn_open(const cx_spawn_options *options, cx_spawn_child **out, cx_err *err)
{
    CX_TRY(check_options(options, true, err));
    cx_spawn_child *child = cx_alloc_new(cx_alloc_default(), sizeof *child);
    if (child == NULL)
        return cx_fail_nomem(err);
    cx_status status = begin_child(options, child, err);
    if (cx_failed(status))
        cx_alloc_free(cx_alloc_default(), child, sizeof *child);
    else
        *out = child;
    return status;
}

void cx_spawn_kill(cx_spawn_child *child)
{
    if (child->ended)
        return;
    child->kill_sent = true;
    signal_group(child, SIGKILL);
}

cx_status cx_spawn_close(cx_spawn_child *child, uint64_t wait_ms, cx_spawn_result *result,
                         cx_err *err)
{
    if (child == NULL)
        return CX_SUCCESS;
    cx_spawn_end_input(child);
    /* Unread output must not keep the child from ending. */
    if (child->out.to.to == CX_SPAWN_OUT_LINES)
        child->out.to = (cx_spawn_output){.to = CX_SPAWN_OUT_NULL, .limit_bytes = UINT64_MAX};
    drain_until(child, deadline_after(now_ns(), wait_ms));
    if (!child->ended) {
        /* Ended by the close, not by a timeout. */
        bool in_time = child->term_ns == 0;
        child->deadline_ns = 0;
        drain_until(child, UINT64_MAX);
        if (in_time)
            child->timed_out = false;
    }
    cx_status status = finish_child(child, result, err);
    cx_alloc_free(cx_alloc_default(), child, sizeof *child);
    return status;
}

/* --- writing and reading lines ---------------------------------------------------------------- */

/* CX_E_TIMEOUT, after ending a child whose own deadline has passed. */
static cx_status check_time(cx_spawn_child *child, uint64_t until_ns, cx_err *err)
{
    if (cx_failed(child->trouble) || child->term_ns != 0 ||
        (!child->ended && now_ns() >= child->deadline_ns))
        drain_until(child, UINT64_MAX);
    if (cx_failed(child->trouble)) {
        if (err != NULL)
            *err = child->trouble_err;
        return child->trouble;
    }
    if (child->cancelled)
        return cx_fail(err, CX_E_TIMEOUT, "a program was cancelled");
    if (child->timed_out)
        return cx_fail(err, CX_E_TIMEOUT, "a program took longer than it may");
    if (now_ns() >= until_ns)
        return cx_fail(err, CX_E_TIMEOUT, "a program did not answer in time");
    return CX_SUCCESS;
}

cx_status cx_spawn_write(cx_spawn_child *child, cx_bytes data, uint64_t timeout_ms, cx_err *err)
{
    uint64_t until = deadline_after(now_ns(), timeout_ms);
    while (data.size != 0) {
        ssize_t count = -1;
        if (child->ends.input < 0 || child->ended)
            return cx_fail_os(err, EPIPE, "a program reads no more");
        count = write_quietly(child->ends.input, data);
        if (count > 0) {
            data.data += count;
            data.size -= (size_t)count;
        } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
            int code = errno;
            close_end(&child->ends.input);
            return cx_fail_os(err, code, "a program reads no more");
        } else {
            bool writable;
            CX_TRY(check_time(child, until, err));
            poll_child(child, true, until, &writable);
        }
    }
    return CX_SUCCESS;
}

void cx_spawn_end_input(cx_spawn_child *child)
{
    close_end(&child->ends.input);
}

cx_spawn_files cx_spawn_child_files(const cx_spawn_child *child)
{
    return (cx_spawn_files){child->ends.input, child->out.file, child->process};
}

/* The next complete line; at the end of the stream also one without a line feed. */
static bool next_line(cx_spawn_child *child, cx_str *out)
{
    const char *all = (const char *)child->lines.data;
    size_t from = child->line_at + child->scanned;
    const char *end =
        from < child->lines.size ? memchr(all + from, '\n', child->lines.size - from) : NULL;
    size_t held = child->lines.size - child->line_at;
    if (end == NULL && (child->out.file >= 0 || held == 0)) {
        child->scanned = held;
        return false;
    }
    size_t size = end == NULL ? held : (size_t)(end - all) - child->line_at;
    *out = (cx_str){all + child->line_at, size};
    child->line_at += end == NULL ? size : size + 1;
    child->scanned = 0;
    return true;
}

/* Drops the lines that were returned before more is read. */
static void drop_returned(cx_spawn_child *child)
{
    if (child->line_at == 0)
        return;
    size_t left = child->lines.size - child->line_at;
    if (left != 0)
        memmove(child->lines.data, child->lines.data + child->line_at, left);
    child->lines.size = left;
    child->line_at = 0;
}

cx_status cx_spawn_read_line(cx_spawn_child *child, size_t limit_bytes, uint64_t timeout_ms,
                             cx_str *out_line, bool *out_end, cx_err *err)
{
    uint64_t until = deadline_after(now_ns(), timeout_ms);
    *out_end = false;
    /* Moving the rest only from time to time keeps many short lines cheap. */
    if (child->line_at == child->lines.size || child->line_at >= PIPE_BYTES_MAX)
        drop_returned(child);
    for (;;) {
        CX_TRY(cx_buf_check(&child->lines, err));
        bool have = next_line(child, out_line);
        if ((have ? out_line->size : child->lines.size - child->line_at) > limit_bytes)
            return cx_fail(err, CX_E_LIMIT, "a program wrote a line of more than %zu bytes",
                           limit_bytes);
        if (have)
            return CX_SUCCESS;
        if (child->out.file < 0) {
            *out_line = (cx_str){"", 0};
            *out_end = true;
            return CX_SUCCESS;
        }
        CX_TRY(check_time(child, until, err));
        drop_returned(child);
        bool writable;
        poll_child(child, false, until, &writable);
    }
}
