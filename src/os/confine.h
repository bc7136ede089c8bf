/*
 * confine.h - a process that gives up rights for good, and watches over another: what the stage of
 * a sandbox does to itself (sandbox/sandbox.h).
 *
 * Everything here acts on the calling process, which is single-threaded; there is no way back.
 */
#ifndef CX_OS_CONFINE_H
#define CX_OS_CONFINE_H

#include "base/api.h"
#include "os/spawn.h"

/* The version of Landlock that the kernel has switched on; 0 = none. */
int cx_confine_landlock_abi(void);

typedef struct cx_confine_path {
    const char *path;
    bool writable; /* else it may be read and executed */
} cx_confine_path;

/* From now on only what is at and below these paths can be reached; paths that do not exist are
 * passed over.  Without `network` no TCP either (ABI 4), and in any case no signals and no abstract
 * sockets to processes outside (ABI 6).  CX_E_UNSUPPORTED where there is no Landlock. */
CX_RESULT cx_confine_landlock(const cx_confine_path *paths, size_t count, bool network,
                              cx_err *err);

/* Loads a filter of system calls: `filter` is a file of struct sock_filter. */
CX_RESULT cx_confine_seccomp(cx_file filter, cx_err *err);
/* Whether the kernel loads filters at all. */
bool cx_confine_has_seccomp(void);

/* No program it executes has more rights than it has (set-uid bits do nothing). */
CX_RESULT cx_confine_privileges(cx_err *err);

/* Soft and hard limits; lower ones stay. */
void cx_confine_limits(const cx_spawn_limits *limits);

/* A file without a name, empty, in memory. */
CX_RESULT cx_confine_memory_file(cx_file *out, cx_err *err);
/* A pipe: what is written to [1] is read from [0]. */
CX_RESULT cx_confine_pipe(cx_file out[2], cx_err *err);
/* The number of a descriptor below 3 is its own; all others end with the next exec. */
void cx_confine_close_on_exec(void);

/* Becomes another program, by `executable` (CX_FILE_NONE = none) or else by `path`; returns only
 * when it cannot, with the errno. */
int cx_confine_exec(cx_file executable, const char *path, char *const *argv);

/*
 * Forks: the child returns true from here and goes on.  The parent watches over it and exits with
 * its exit code, or 128 + the signal that ended it; nothing the child left lives longer.  "t" from
 * `control` means SIGTERM: to every process of this process namespace when `alone`, else to the
 * process group.  "k" means that everything is killed, and the parent ends after all of it.  The
 * end of `control` means the same, as who wanted all this is gone; when it was so from the
 * beginning the child is not made.  False when no child can be made, and
 * when it is to be `alone` and is not process 1 of a namespace.
 */
bool cx_confine_watched(cx_file control, bool alone);

/* Sleeps. */
void cx_confine_pause(uint32_t milliseconds);

#endif
