/*
 * confine.c - dropping rights by Landlock, seccomp and resource limits; supervising a child.
 *
 * The constants of Landlock are those of the kernel's ABI (linux/landlock.h).  They are written
 * here because build machines have older headers; rights unknown to the running kernel are not
 * requested.
 */
#include "os/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/spawn_start.h"

/* --- Landlock --------------------------------------------------------------------------------- */

#define SYS_LANDLOCK_CREATE_RULESET 444
#define SYS_LANDLOCK_ADD_RULE 445
#define SYS_LANDLOCK_RESTRICT_SELF 446
#define RULE_PATH_BENEATH 1

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11,
    FS_ALL_1 = (1 << 13) - 1,
    FS_REFER = 1 << 13,     /* ABI 2 */
    FS_TRUNCATE = 1 << 14,  /* ABI 3 */
    FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
    NET_TCP = 3,            /* ABI 4: bind and connect */
    SCOPE_BOTH = 3          /* ABI 6: abstract sockets and signals */
};

typedef struct ruleset {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
} ruleset;

typedef struct path_rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed)) path_rule;

int cx_confine_landlock_abi(void)
{
    long abi = syscall(SYS_LANDLOCK_CREATE_RULESET, NULL, (size_t)0, 1u);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t known_landlock_access(int abi)
{
    uint64_t known = FS_ALL_1;
    known |= abi >= 2 ? FS_REFER : 0;
    known |= abi >= 3 ? FS_TRUNCATE : 0;
    known |= abi >= 5 ? FS_IOCTL_DEV : 0;
    return known;
}

static cx_status allow_path(int rules, const cx_confine_path *at, uint64_t known, cx_err *err)
{
    int file = open(at->path, O_PATH | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? CX_SUCCESS : cx_fail_os(err, errno, "cannot open %s", at->path);
    uint64_t allowed = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    /* Creating devices is never allowed; using existing ones is, where writing is allowed. */
    if (at->writable)
        allowed = known & ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK);
    struct stat info;
    cx_status status = CX_SUCCESS;
    if (fstat(file, &info) == 0 && !S_ISDIR(info.st_mode))
        allowed &= FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
    path_rule rule = {allowed & known, file};
    if (syscall(SYS_LANDLOCK_ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0u) != 0)
        status = cx_fail_os(err, errno, "Landlock does not take %s", at->path);
    (void)close(file);
    return status;
}

cx_status cx_confine_landlock(const cx_confine_path *paths, size_t count, bool network, cx_err *err)
{
    int abi = cx_confine_landlock_abi();
    if (abi == 0)
        return cx_fail(err, CX_E_UNSUPPORTED, "this kernel has no Landlock");
    ruleset wanted = {
        .fs = known_landlock_access(abi),
        .net = abi >= 4 && !network ? NET_TCP : 0,
        .scoped = abi >= 6 ? SCOPE_BOTH : 0,
    };
    size_t size = abi >= 6   ? sizeof wanted
                  : abi >= 4 ? offsetof(ruleset, scoped)
                             : offsetof(ruleset, net);
    int rules = (int)syscall(SYS_LANDLOCK_CREATE_RULESET, &wanted, size, 0u);
    if (rules < 0)
        return cx_fail_os(err, errno, "Landlock gives no rules");
    cx_status status = cx_confine_privileges(err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = allow_path(rules, &paths[i], wanted.fs, err);
    if (!cx_failed(status) && syscall(SYS_LANDLOCK_RESTRICT_SELF, rules, 0u) != 0)
        status = cx_fail_os(err, errno, "Landlock does not take effect");
    (void)close(rules);
    return status;
}

/* --- seccomp, privileges, limits -------------------------------------------------------------- */

bool cx_confine_has_seccomp(void)
{
    /* With a NULL filter a kernel that supports filters fails with EFAULT. */
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != 0 && errno == EFAULT;
}

cx_status cx_confine_seccomp(cx_file filter, cx_err *err)
{
    static struct sock_filter rules[4096];
    struct stat info;
    if (fstat(filter, &info) != 0)
        return cx_fail_os(err, errno, "cannot look at the filter");
    if (info.st_size <= 0 || (size_t)info.st_size > sizeof rules ||
        (size_t)info.st_size % sizeof rules[0] != 0)
        return cx_fail(err, CX_E_FORMAT, "the filter of system calls has %lld bytes",
                       (long long)info.st_size);
    size_t got = 0;
    while (got < (size_t)info.st_size) {
        ssize_t count = pread(filter, (char *)rules + got, (size_t)info.st_size - got, (off_t)got);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return cx_fail_os(err, count < 0 ? errno : EIO, "cannot read the filter");
        got += (size_t)count;
    }
    CX_TRY(cx_confine_privileges(err));
    struct sock_fprog program = {(unsigned short)(got / sizeof rules[0]), rules};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        return cx_fail_os(err, errno, "the kernel does not take the filter");
    return CX_SUCCESS;
}

cx_status cx_confine_privileges(cx_err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return cx_fail_os(err, errno, "cannot give up new privileges");
    return CX_SUCCESS;
}

void cx_confine_limits(const cx_spawn_limits *limits)
{
    cx_spawn_limit_self(limits);
}

/* --- descriptors ------------------------------------------------------------------------------ */

cx_status cx_confine_memory_file(cx_file *out, cx_err *err)
{
    *out = memfd_create("cortex", MFD_CLOEXEC);
    return *out < 0 ? cx_fail_os(err, errno, "cannot make a file in memory") : CX_SUCCESS;
}

cx_status cx_confine_pipe(cx_file out[2], cx_err *err)
{
    return pipe2(out, O_CLOEXEC) != 0 ? cx_fail_os(err, errno, "cannot make a pipe") : CX_SUCCESS;
}

void cx_confine_close_on_exec(void)
{
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int file = 3; file < 4096; file++)
        (void)fcntl(file, F_SETFD, FD_CLOEXEC);
}

int cx_confine_exec(cx_file executable, const char *path, char *const *argv)
{
    if (executable >= 0)
        (void)syscall(SYS_execveat, executable, "", argv, environ, AT_EMPTY_PATH);
    /* ENOENT: a script, whose interpreter could not open the descriptor. */
    if (executable < 0 || errno == ENOENT || errno == ENOSYS)
        (void)execve(path, argv, environ);
    return errno;
}

/* --- supervising ------------------------------------------------------------------------------ */

/* Kills our children, among them orphans that were reparented to us.  Only we reap them, so their
 * process ids cannot be reused meanwhile. */
static bool kill_children(void)
{
    char path[64], line[4096];
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, line, sizeof line - 1);
    if (file >= 0)
        (void)close(file);
    if (size <= 0)
        return false;
    line[size] = 0;
    bool any = false;
    for (char *at = line, *end; *at != 0; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        any |= pid > 1 && kill((pid_t)pid, SIGKILL) == 0;
    }
    return any;
}

static void kill_descendants(void)
{
    while (kill_children())
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
            continue;
}

/* When process 1 of a namespace exits the kernel kills all others; no process inside can
 * kill it. */
static _Noreturn void exit_namespace(bool alone, int code)
{
    if (!alone)
        kill_descendants();
    _exit(code);
}

/* Whether the other end of `control` was closed and everything from it has been read. */
static bool control_has_ended(cx_file control)
{
    struct pollfd end = {control, POLLIN, 0};
    return poll(&end, 1, 0) != 0 && (end.revents & POLLIN) == 0;
}

static void note_signal(int number)
{
    (void)number;
}

/* SIGCHLD is blocked except while waiting, so that no exit of a child is missed. */
static _Noreturn void watch_child(pid_t child, cx_file control, bool alone)
{
    sigset_t none;
    sigemptyset(&none);
    struct sigaction on_child;
    memset(&on_child, 0, sizeof on_child);
    on_child.sa_handler = note_signal;
    (void)sigaction(SIGCHLD, &on_child, NULL);
    for (;;) {
        /* Also reaps orphans that were reparented to us. */
        int state = 0;
        pid_t ended = waitpid(-1, &state, WNOHANG);
        if (ended == child)
            exit_namespace(alone, WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state));
        if (ended > 0)
            continue;
        struct pollfd asked = {control, POLLIN, 0};
        if (ppoll(&asked, 1, NULL, &none) <= 0)
            continue;
        char byte;
        ssize_t count = read(control, &byte, 1);
        if (count > 0 && byte == 't')
            (void)kill(alone ? -1 : 0, SIGTERM); /* this process ignores it */
        else if (count >= 0 || errno != EINTR)
            exit_namespace(alone, 128 + SIGKILL);
    }
}

cx_status cx_confine_watched(cx_file control, bool alone, cx_err *err)
{
    if (alone && getpid() != 1) /* kill(-1) would signal every process of the machine */
        return cx_fail(err, CX_E_DENIED, "this is not the first process of a namespace");
    if (control_has_ended(control))
        _exit(128 + SIGKILL);
    /* When `alone`, killing this process ends the namespace, so it may die with bubblewrap;
     * otherwise it is needed until the last descendant has ended. */
    if (prctl(alone ? PR_SET_PDEATHSIG : PR_SET_CHILD_SUBREAPER, alone ? SIGKILL : 1, 0, 0, 0) != 0)
        return cx_fail_os(err, errno, "cannot end what the program leaves running");
    (void)signal(SIGTERM, SIG_IGN);
    sigset_t child_ends, before;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child_ends, &before);
    pid_t child = fork();
    if (child < 0)
        return cx_fail_os(err, errno, "cannot create a process");
    if (child != 0) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        watch_child(child, control, alone);
    }
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return CX_SUCCESS;
}

void cx_confine_pause(uint32_t milliseconds)
{
    (void)poll(NULL, 0, (int)milliseconds);
}
