/*
 * spawn_start.c - starts another program.
 *
 * The child may share this process's memory until its exec (system.h: cx_system_start).
 *
 *   I1  Between the start and the exec the child makes only async-signal-safe calls.
 *   I2  No signal handler of ours runs in the child: all signals are blocked from before the start
 *       until each has its default action.
 *   I3  The exec closes every descriptor that is not listed; the listed numbers are set last, from
 *       copies above all of them.
 *   I4  A failed start reports its errno through a pipe that a successful exec closes.
 */
#include "os/spawn_start.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/system/system.h"

/* Everything the child needs, prepared before the start. */
typedef struct plan {
    const char *path;
    char *const *argv;
    char *const *envp;
    const char *cwd;
    int executable;
    int report;
    cx_spawn_inherit keep[3 + CX_SPAWN_KEEP_MAX]; /* 0, 1, 2 first */
    size_t keep_count;
    int first_free; /* above every number of `keep` */
    cx_spawn_limits limits;
    const cx_file *join;
    size_t join_count;
    pid_t starter; /* the child dies with it; 0 = it may outlive us */
} plan;

/* --- the child's side ------------------------------------------------------------------------- */

void cx_spawn_limit_self(const cx_spawn_limits *limits)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    cx_system_limit(RLIMIT_CPU, limits->cpu_seconds);
    cx_system_limit(RLIMIT_NPROC, limits->processes);
    cx_system_limit(RLIMIT_FSIZE, limits->file_bytes);
    cx_system_limit(RLIMIT_NOFILE, limits->open_files);
    cx_system_limit(RLIMIT_DATA, limits->memory_bytes);
}

/* I2. */
static void reset_signals(void)
{
    struct sigaction plain;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &plain, NULL); /* fails for KILL, STOP and the C library's own */
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves a descriptor above all listed numbers. */
static bool move_up(int *file, int first_free)
{
    if (*file < 0 || *file >= first_free)
        return true;
    *file = fcntl(*file, F_DUPFD_CLOEXEC, first_free);
    return *file >= 0;
}

/* I3. */
static bool set_descriptors(plan *p)
{
    for (size_t i = 0; i < p->keep_count; i++)
        if (!move_up(&p->keep[i].file, p->first_free))
            return false;
    if (!move_up(&p->executable, p->first_free))
        return false;
    cx_system_close_on_exec();
    for (size_t i = 0; i < p->keep_count; i++)
        if (dup2(p->keep[i].file, p->keep[i].as) < 0)
            return false;
    return true;
}

static bool join_groups(const plan *p)
{
    for (size_t i = 0; i < p->join_count; i++)
        if (write(p->join[i], "0", 1) != 1)
            return false;
    return true;
}

static int child_main(void *arg)
{
    /* This may be the parent's memory: it then waits, and does not read the plan afterwards. */
    plan *p = arg;
    (void)setsid();
    if (p->starter != 0 && !cx_system_die_with(p->starter))
        _exit(127);
    (void)umask(022);
    reset_signals();
    if (join_groups(p) && move_up(&p->report, p->first_free) && set_descriptors(p) &&
        (p->cwd == NULL || chdir(p->cwd) == 0)) {
        cx_spawn_limit_self(&p->limits);
        if (p->executable >= 0)
            cx_system_execute(p->executable, p->argv, p->envp);
        /* ENOENT: a script, whose interpreter could not open a descriptor that the exec closes. */
        if (p->executable < 0 || errno == ENOENT || errno == ENOSYS)
            (void)execve(p->path, p->argv, p->envp);
    }
    int code = errno;
    (void)!write(p->report, &code, sizeof code);
    _exit(127);
}

/* --- the parent's side ------------------------------------------------------------------------ */

static void close_all(const int *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
}

/* An unnamed file with the input: a slow reader cannot make us wait. */
static cx_status open_input(cx_bytes input, int *out, cx_err *err)
{
    int file = cx_system_unnamed_file();
    if (file < 0)
        return cx_fail_os(err, errno, "cannot hold the input of a program");
    cx_status status = cx_io_write_all(cx_io_system(), file, "input", input.data, input.size, err);
    if (!cx_failed(status) && lseek(file, 0, SEEK_SET) != 0)
        status = cx_fail_os(err, errno, "cannot hold the input of a program");
    if (cx_failed(status))
        (void)close(file);
    else
        *out = file;
    return status;
}

/* The two ends of a pipe: the child's and ours, which is non-blocking. */
static cx_status open_pipe(int *theirs, int *ours, bool they_read, cx_err *err)
{
    int ends[2];
    if (!cx_system_pipe(ends))
        return cx_fail_os(err, errno, "cannot make a pipe");
    *theirs = they_read ? ends[0] : ends[1];
    *ours = they_read ? ends[1] : ends[0];
    (void)fcntl(*ours, F_SETFL, O_NONBLOCK);
    return CX_SUCCESS;
}

static bool needs_pipe(cx_spawn_out to)
{
    return to == CX_SPAWN_OUT_BUF || to == CX_SPAWN_OUT_FILE || to == CX_SPAWN_OUT_LINES;
}

enum { NULL_FILE, INPUT, OUTPUT, ERRORS, REPORT, OPENED }; /* what is open for the child */

static cx_status open_streams(const cx_spawn_options *options, int opened[OPENED],
                              cx_spawn_ends *ends, plan *p, cx_err *err)
{
    opened[NULL_FILE] = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (opened[NULL_FILE] < 0)
        return cx_fail_os(err, errno, "cannot open /dev/null");
    if (options->in == CX_SPAWN_IN_PIPE)
        CX_TRY(open_pipe(&opened[INPUT], &ends->input, true, err));
    else if (options->in == CX_SPAWN_IN_BYTES && options->input.size != 0)
        CX_TRY(open_input(options->input, &opened[INPUT], err));
    if (needs_pipe(options->out.to))
        CX_TRY(open_pipe(&opened[OUTPUT], &ends->output, false, err));
    if (needs_pipe(options->errout.to))
        CX_TRY(open_pipe(&opened[ERRORS], &ends->errors, false, err));
    int input = options->in == CX_SPAWN_IN_FILE ? options->input_file : opened[INPUT];
    int output = opened[OUTPUT] >= 0 ? opened[OUTPUT] : opened[NULL_FILE];
    int errors = options->errout.to == CX_SPAWN_OUT_JOIN    ? output
                 : options->errout.to == CX_SPAWN_OUT_GIVEN ? options->errout.file
                                                            : opened[ERRORS];
    p->keep[0] = (cx_spawn_inherit){input >= 0 ? input : opened[NULL_FILE], 0};
    p->keep[1] = (cx_spawn_inherit){output, 1};
    p->keep[2] = (cx_spawn_inherit){errors >= 0 ? errors : opened[NULL_FILE], 2};
    p->keep_count = 3;
    p->first_free = 3;
    return CX_SUCCESS;
}

static cx_status plan_keeps(const cx_spawn_options *options, plan *p, cx_err *err)
{
    if (options->keep_count > CX_SPAWN_KEEP_MAX)
        return cx_fail(err, CX_E_LIMIT, "a program is handed at most %d descriptors",
                       CX_SPAWN_KEEP_MAX);
    for (size_t i = 0; i < options->keep_count; i++) {
        CX_ASSERT(options->keep[i].as >= 3 && options->keep[i].as < 256);
        p->keep[p->keep_count++] = options->keep[i];
        if (options->keep[i].as >= p->first_free)
            p->first_free = options->keep[i].as + 1;
    }
    return CX_SUCCESS;
}

/* 0 when the program runs, otherwise the errno of the failed start (I4). */
static int await_exec(int report)
{
    int code = 0;
    ssize_t count;
    do {
        count = read(report, &code, sizeof code);
    } while (count < 0 && errno == EINTR);
    return count == (ssize_t)sizeof code ? code : 0;
}

static cx_status launch_child(plan *p, int opened[OPENED], cx_spawn_ends *ends, cx_err *err)
{
    int report[2];
    if (!cx_system_pipe(report))
        return cx_fail_os(err, errno, "cannot make a pipe");
    opened[REPORT] = p->report = report[1];
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = cx_system_start(child_main, p);
    int code = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(opened[REPORT]);
    opened[REPORT] = -1;
    if (pid > 0) {
        code = await_exec(report[0]);
        if (code != 0)
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                continue;
    }
    (void)close(report[0]);
    if (pid < 0 || code != 0)
        return cx_fail_os(err, code, "cannot start %s", p->path);
    ends->pid = pid;
    return CX_SUCCESS;
}

cx_status cx_spawn_start(const cx_spawn_options *options, cx_spawn_ends *out, cx_err *err)
{
    static char *const empty[] = {NULL};
    const char *path = options->path != NULL ? options->path : options->argv[0];
    if (path == NULL || strchr(path, '/') == NULL)
        return cx_fail(err, CX_E_USAGE, "'%s' names no file: a program is started by its path",
                       path == NULL ? "" : path);
    if (options->executable >= 0 && !cx_system_executes_files)
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "needs Linux: this system cannot execute the open file of %s, only the path",
                       path);
    plan p = {
        .path = path,
        .argv = (char *const *)(uintptr_t)options->argv,
        .envp = options->envp == NULL ? empty : (char *const *)(uintptr_t)options->envp,
        .cwd = options->cwd,
        .executable = options->executable,
        .join = options->join,
        .join_count = options->join == NULL ? 0 : options->join_count,
        .starter = options->die_with_starter ? getpid() : 0,
    };
    if (options->limits != NULL)
        p.limits = *options->limits;
    int opened[OPENED] = {-1, -1, -1, -1, -1};
    cx_spawn_ends ends = {-1, -1, -1, -1};
    cx_status status = open_streams(options, opened, &ends, &p, err);
    if (!cx_failed(status))
        status = plan_keeps(options, &p, err);
    if (!cx_failed(status))
        status = launch_child(&p, opened, &ends, err);
    close_all(opened, OPENED);
    if (cx_failed(status))
        close_all((const int[]){ends.input, ends.output, ends.errors}, 3);
    else
        *out = ends;
    return status;
}
