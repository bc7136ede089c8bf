/*
 * proc.c - runs another program to its end.
 *
 * The parent writes standard input and collects both outputs with poll, so that neither side can
 * block the other; when a limit on time or output is exceeded, the child's process group is killed.
 * Between fork and exec only async-signal-safe calls are made; a failed exec reports its errno
 * through a pipe, which a successful exec closes.
 */
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_OUTPUT_LIMIT ((size_t)64 << 20)

typedef struct child {
    pid_t pid;
    int input;  /* our write end */
    int output; /* our read ends */
    int errors;
    int report; /* errno of a failed exec, or end of file */
} child;

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

/* Runs in the child; never returns. */
static _Noreturn void exec_child(const cx_proc_options *options, char *const *envp, int in, int out,
                                 int errors, int report)
{
    (void)setpgid(0, 0);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGPIPE, &plain, NULL);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(errors, 2) >= 0 &&
        (options->cwd == NULL || chdir(options->cwd) == 0)) {
        /* Also those that this process inherited. */
        (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
        (void)execvpe(options->argv[0], (char *const *)(uintptr_t)options->argv, envp);
    }
    int code = errno;
    (void)!write(report, &code, sizeof code);
    _exit(127);
}

static cx_status start_child(const cx_proc_options *options, child *out, cx_err *err)
{
    int pipes[4][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    for (int i = 0; i < 4; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            int code = errno;
            for (int k = 0; k < i; k++)
                close_pipe(pipes[k]);
            return cx_fail_os(err, code, "cannot make a pipe");
        }
    }
    static char *const empty[] = {NULL};
    char *const *envp = options->inherit_env    ? environ
                        : options->envp == NULL ? empty
                                                : (char *const *)(uintptr_t)options->envp;
    pid_t pid = fork();
    if (pid == 0)
        exec_child(options, envp, pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1]);
    int code = errno;
    if (pid < 0) {
        for (int i = 0; i < 4; i++)
            close_pipe(pipes[i]);
        return cx_fail_os(err, code, "cannot start %s", options->argv[0]);
    }
    (void)setpgid(pid, pid);
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    close(pipes[3][1]);
    *out = (child){pid, pipes[0][1], pipes[1][0], pipes[2][0], pipes[3][0]};
    return CX_SUCCESS;
}

/* Reads what is available into buf (NULL: discards it); closes *fd at its end.  False over the
 * limit. */
static bool drain_pipe(int *fd, cx_buf *buf, size_t *total, size_t limit)
{
    uint8_t block[65536];
    ssize_t count = read(*fd, block, sizeof block);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (count <= 0) {
        close(*fd);
        *fd = -1;
        return true;
    }
    *total += (size_t)count;
    if (*total > limit)
        return false;
    if (buf != NULL)
        cx_buf_add(buf, block, (size_t)count);
    return true;
}

static void feed_input(int *fd, cx_bytes *input)
{
    ssize_t count = input->size == 0 ? 0 : write(*fd, input->data, input->size);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (count > 0) {
        input->data += count;
        input->size -= (size_t)count;
    }
    /* A child that does not read its input (EPIPE) is no error. */
    if (count < 0 || input->size == 0) {
        close(*fd);
        *fd = -1;
    }
}

typedef enum pump_end { PUMP_CLOSED, PUMP_TIMEOUT, PUMP_LIMIT } pump_end;

static pump_end exchange_streams(const cx_proc_options *options, child *kid, cx_buf *out,
                                 cx_buf *errout, uint64_t deadline_ns)
{
    size_t limit = options->output_limit_bytes ? options->output_limit_bytes : DEFAULT_OUTPUT_LIMIT;
    size_t out_total = 0, err_total = 0;
    cx_bytes input = options->input;
    (void)fcntl(kid->input, F_SETFL, O_NONBLOCK);
    /* A child that closed its outputs may still be reading. */
    while (kid->output >= 0 || kid->errors >= 0 || kid->input >= 0) {
        struct pollfd fds[3] = {
            {kid->output, POLLIN, 0}, {kid->errors, POLLIN, 0}, {kid->input, POLLOUT, 0}};
        int wait_ms = -1;
        if (deadline_ns != 0) {
            uint64_t now = now_ns();
            if (now >= deadline_ns)
                return PUMP_TIMEOUT;
            uint64_t left_ms = (deadline_ns - now) / 1000000u + 1;
            wait_ms = left_ms > 1000000 ? 1000000 : (int)left_ms;
        }
        if (poll(fds, 3, wait_ms) < 0 && errno != EINTR)
            return PUMP_CLOSED;
        if (fds[2].revents != 0)
            feed_input(&kid->input, &input);
        if (fds[0].revents != 0 && !drain_pipe(&kid->output, out, &out_total, limit))
            return PUMP_LIMIT;
        if (fds[1].revents != 0 && !drain_pipe(&kid->errors, errout, &err_total, limit))
            return PUMP_LIMIT;
    }
    return PUMP_CLOSED;
}

/* Waits for the child; past the deadline kills its group and returns true. */
static bool reap_child(pid_t pid, uint64_t deadline_ns, int *out_state)
{
    bool killed = false;
    for (uint64_t pause_ns = 100000;;) {
        pid_t done = waitpid(pid, out_state, deadline_ns == 0 || killed ? 0 : WNOHANG);
        if (done == pid)
            return killed;
        if (done < 0 && errno != EINTR)
            return killed;
        if (done == 0 && now_ns() >= deadline_ns) {
            (void)kill(-pid, SIGKILL);
            killed = true;
        } else if (done == 0) {
            struct timespec nap = {0, (long)pause_ns};
            (void)nanosleep(&nap, NULL);
            pause_ns = pause_ns < 10000000 ? pause_ns * 2 : pause_ns;
        }
    }
}

cx_status cx_proc_run(const cx_proc_options *options, cx_buf *out, cx_buf *errout,
                      cx_proc_result *result, cx_err *err)
{
    child kid = {-1, -1, -1, -1, -1};
    uint64_t started = now_ns();
    /* Timeouts over two centuries count as none. */
    bool limited = options->timeout_ms != 0 && options->timeout_ms < UINT64_MAX / 2000000u;
    uint64_t deadline = limited ? started + options->timeout_ms * 1000000u : 0;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    (void)sigaction(SIGPIPE, &ignore, &before);
    cx_status status = start_child(options, &kid, err);
    if (cx_failed(status)) {
        (void)sigaction(SIGPIPE, &before, NULL);
        return status;
    }
    int exec_errno = 0;
    ssize_t reported;
    do {
        reported = read(kid.report, &exec_errno, sizeof exec_errno);
    } while (reported < 0 && errno == EINTR);
    close(kid.report);
    pump_end end = reported == (ssize_t)sizeof exec_errno
                       ? PUMP_CLOSED
                       : exchange_streams(options, &kid, out, errout, deadline);
    if (end != PUMP_CLOSED)
        (void)kill(-kid.pid, SIGKILL);
    int state = 0;
    bool late = reap_child(kid.pid, end == PUMP_CLOSED ? deadline : 0, &state);
    int ends[3] = {kid.input, kid.output, kid.errors};
    for (int i = 0; i < 3; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    (void)sigaction(SIGPIPE, &before, NULL);
    if (reported == (ssize_t)sizeof exec_errno)
        return cx_fail_os(err, exec_errno, "cannot start %s", options->argv[0]);
    if (end == PUMP_LIMIT)
        return cx_fail(err, CX_E_LIMIT, "%s wrote more than its output limit", options->argv[0]);
    *result = (cx_proc_result){
        .exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1,
        .signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0,
        .timed_out = late || end == PUMP_TIMEOUT,
        .duration_ns = now_ns() - started,
    };
    if (out != NULL)
        CX_TRY(cx_buf_check(out, err));
    return errout != NULL ? cx_buf_check(errout, err) : CX_SUCCESS;
}
