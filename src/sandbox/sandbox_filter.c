/*
 * sandbox_filter.c - the system calls that a program in a sandbox may not make (run.md §16): a deny
 * list compiled by libseccomp, which is loaded when a sandbox is opened.
 *
 * Denied calls fail with EPERM, so that programs can report it; calls for which programs have a
 * fallback fail with ENOSYS.  Calls of another architecture end the process.
 *
 *   F1  Namespaces cannot be created: clone3, whose flags no filter can see, is unavailable, and
 *       clone with any of CLONE_NEW* is denied.
 *   F2  Sockets are AF_UNIX, and AF_INET and AF_INET6 when the network is allowed.
 *
 * libseccomp's header is not needed: these are the few names of its stable ABI that are used.
 */
#include <errno.h>
#include <inttypes.h>

#include "os/api.h"
#include "sandbox/sandbox_internal.h"

/* --- the ABI of libseccomp.so.2 --------------------------------------------------------------- */

typedef struct arg_condition {
    unsigned int argument;
    int op;
    uint64_t a;
    uint64_t b;
} arg_condition;

enum { CMP_NE = 1, CMP_EQ = 4, CMP_GT = 6, CMP_MASKED_EQ = 7 };

#define ACT_ALLOW UINT32_C(0x7fff0000)
#define ACT_ERRNO(code) (UINT32_C(0x00050000) | ((uint32_t)(code)&0xffffu))
#define ACT_KILL_PROCESS UINT32_C(0x80000000)
#define ATTR_BAD_ARCH 2
#define NO_SUCH_CALL (-1)

typedef struct seccomp {
    cx_library *library;
    void *(*init)(uint32_t action);
    void (*release)(void *filter);
    int (*attr_set)(void *filter, int attribute, uint32_t value);
    int (*resolve)(const char *name);
    int (*add)(void *filter, uint32_t action, int call, unsigned int count,
               const arg_condition *list);
    int (*export)(const void *filter, int file);
} seccomp;

static cx_status load_libseccomp(seccomp *s, cx_err *err)
{
    CX_TRY(cx_library_load("libseccomp.so.2", &s->library, err));
    cx_status status;
    CX_TRY_GOTO(status, cx_library_symbol(s->library, "seccomp_init", &s->init, err));
    CX_TRY_GOTO(status, cx_library_symbol(s->library, "seccomp_release", &s->release, err));
    CX_TRY_GOTO(status, cx_library_symbol(s->library, "seccomp_attr_set", &s->attr_set, err));
    CX_TRY_GOTO(status,
                cx_library_symbol(s->library, "seccomp_syscall_resolve_name", &s->resolve, err));
    CX_TRY_GOTO(status, cx_library_symbol(s->library, "seccomp_rule_add_array", &s->add, err));
    CX_TRY_GOTO(status, cx_library_symbol(s->library, "seccomp_export_bpf", &s->export, err));
done:
    if (cx_failed(status))
        cx_library_close(s->library);
    return status;
}

/* --- the list --------------------------------------------------------------------------------- */

static const char *const denied_calls[] = {
    /* mounts and roots */
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    /* other processes */
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "pidfd_getfd",
    /* namespaces (F1) */
    "setns",
    "unshare",
    /* keys */
    "keyctl",
    "add_key",
    "request_key",
    /* loading code into the kernel, and inspecting it */
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "kexec_load",
    "kexec_file_load",
    "syslog",
    "lookup_dcookie",
    "vhangup",
    "acct",
    "fanotify_init",
    "open_by_handle_at",
    "name_to_handle_at",
    "nfsservctl",
    /* the machine */
    "reboot",
    "sethostname",
    "setdomainname",
    "settimeofday",
    "stime",
    "clock_settime",
    "clock_settime64",
    "clock_adjtime",
    "clock_adjtime64",
    "adjtimex",
    "iopl",
    "ioperm",
    "modify_ldt",
    "vm86",
    "vm86old",
    "uselib",
    "ustat",
    "sysfs",
    "_sysctl",
    "personality",
};

static const char *const absent_calls[] = {"io_uring_setup", "io_uring_enter", "io_uring_register",
                                           "clone3"};

/* CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
static const uint64_t clone_flags[] = {0x80,      0x20000,    0x2000000,  0x4000000,
                                       0x8000000, 0x10000000, 0x20000000, 0x40000000};

/* Injecting input into another terminal: TIOCSTI, TIOCLINUX. */
static const uint64_t terminal_requests[] = {0x5412, 0x541c};

static bool deny_call(const seccomp *s, void *filter, const char *name, int code,
                      const arg_condition *conditions, unsigned count)
{
    int call = s->resolve(name);
    if (call == NO_SUCH_CALL)
        return true; /* this architecture has no such call */
    /* Negative pseudo numbers are calls that this architecture multiplexes; some cannot be
     * compared. */
    int result = s->add(filter, ACT_ERRNO(code), call, count, conditions);
    return result == 0 || (call < 0 && (result == -EDOM || result == -EOPNOTSUPP));
}

/* F2. A rule compares an argument once, so with the network it takes one rule for each other
 * family; the kernel reads 32 bits, and a value with higher bits set is denied as greater than all
 * families. */
static bool deny_sockets(const seccomp *s, void *filter, bool network)
{
    enum { UNIX = 1, INET = 2, INET6 = 10 };
    const arg_condition not_unix = {0, CMP_NE, UNIX, 0};
    if (!deny_call(s, filter, "socketpair", EAFNOSUPPORT, &not_unix, 1))
        return false;
    if (!network)
        return deny_call(s, filter, "socket", EAFNOSUPPORT, &not_unix, 1);
    bool good = true;
    for (uint64_t family = 0; family < INET6 && good; family++) {
        const arg_condition is = {0, CMP_EQ, family, 0};
        good = family == UNIX || family == INET ||
               deny_call(s, filter, "socket", EAFNOSUPPORT, &is, 1);
    }
    const arg_condition above = {0, CMP_GT, INET6, 0};
    return good && deny_call(s, filter, "socket", EAFNOSUPPORT, &above, 1);
}

static bool add_rules(const seccomp *s, void *filter, bool network)
{
    bool good = s->attr_set(filter, ATTR_BAD_ARCH, ACT_KILL_PROCESS) == 0;
    for (size_t i = 0; i < CX_COUNT_OF(denied_calls); i++)
        good = good && deny_call(s, filter, denied_calls[i], EPERM, NULL, 0);
    for (size_t i = 0; i < CX_COUNT_OF(absent_calls); i++)
        good = good && deny_call(s, filter, absent_calls[i], ENOSYS, NULL, 0);
    for (size_t i = 0; i < CX_COUNT_OF(clone_flags); i++) {
        const arg_condition has = {0, CMP_MASKED_EQ, clone_flags[i], clone_flags[i]};
        good = good && deny_call(s, filter, "clone", EPERM, &has, 1);
    }
    for (size_t i = 0; i < CX_COUNT_OF(terminal_requests); i++) {
        const arg_condition is = {1, CMP_MASKED_EQ, UINT32_MAX, terminal_requests[i]};
        good = good && deny_call(s, filter, "ioctl", EPERM, &is, 1);
    }
    return good && deny_sockets(s, filter, network);
}

cx_status cx_sandbox_filter_make(bool network, cx_file *out, cx_err *err)
{
    seccomp s = {0};
    CX_TRY(load_libseccomp(&s, err));
    void *filter = s.init(ACT_ALLOW);
    cx_status status = CX_SUCCESS;
    cx_file file = CX_FILE_NONE;
    if (filter == NULL || !add_rules(&s, filter, network))
        status = cx_fail(err, CX_E_UNSUPPORTED, "libseccomp rejects the rules");
    if (!cx_failed(status))
        status = cx_confine_memory_file(&file, err);
    if (!cx_failed(status) && s.export(filter, file) != 0)
        status = cx_fail(err, CX_E_UNSUPPORTED, "libseccomp cannot compile the rules");
    if (filter != NULL)
        s.release(filter);
    cx_library_close(s.library);
    if (!cx_failed(status))
        *out = file;
    else if (file != CX_FILE_NONE)
        (void)cx_io_system()->close(cx_io_system(), file);
    return status;
}
