/*
 * confine.h - drops the rights of the calling process for good, and supervises a child: the steps
 * that a sandbox's launcher applies to itself (sandbox/sandbox.h).
 *
 * Everything here acts on the calling process, which must be single-threaded, and cannot be undone.
 */
#ifndef CX_OS_CONFINE_H
#define CX_OS_CONFINE_H

#include "base/api.h"
#include "os/spawn.h"

/* The version of the Landlock ABI that the kernel offers; 0 = none. */
int cx_confine_landlock_abi(void);

typedef struct cx_confine_path {
    const char *path;
    bool writable; /* else it may be read and executed */
} cx_confine_path;

/* Restricts file access to these paths and what is below them; paths that do not exist are skipped.
 * Without `network` TCP is denied, too (ABI 4); signals and abstract sockets to processes outside
 * are always denied (ABI 6).  CX_E_UNSUPPORTED without Landlock. */
CX_RESULT cx_confine_landlock(const cx_confine_path *paths, size_t count, bool network,
                              cx_err *err);

/* Loads a system call filter: `filter` is a file of struct sock_filter. */
CX_RESULT cx_confine_seccomp(cx_file filter, cx_err *err);
/* Whether the kernel supports such filters. */
bool cx_confine_has_seccomp(void);

/* Programs executed from now on cannot gain rights (set-uid bits have no effect). */
CX_RESULT cx_confine_privileges(cx_err *err);

/* Sets soft and hard limits; never raises one. */
void cx_confine_limits(const cx_spawn_limits *limits);

/* An empty, unnamed file in memory. */
CX_RESULT cx_confine_memory_file(cx_file *out, cx_err *err);
/* A pipe: [0] is the read end, [1] the write end. */
CX_RESULT cx_confine_pipe(cx_file out[2], cx_err *err);
/* Marks all descriptors from 3 on as close-on-exec. */
void cx_confine_close_on_exec(void);

/* Executes another program, given as an open file `executable` (CX_FILE_NONE = none) or else as
 * `path`; returns only on failure, with the errno. */
int cx_confine_exec(cx_file executable, const char *path, char *const *argv);

/*
 * Forks.  The child returns and continues.  The parent supervises it and exits with its exit
 * code, or 128 + the signal that ended it; no descendant of the child outlives the parent.  Reading
 * "t" from `control` sends SIGTERM: to every process of this process namespace when `alone`, else
 * to the process group.  "k", or the end of `control` (the controlling process is gone), kills all
 * descendants, and the parent exits after the last one.  When `control` has ended before the fork
 * there is no child.  Fails when the fork fails, when `alone` is set but this process is not
 * process 1 of a namespace, and where the kernel does not hand us orphans of the child's
 * descendants.
 */
cx_status cx_confine_watched(cx_file control, bool alone, cx_err *err);

/* Sleeps that long. */
void cx_confine_pause(uint32_t milliseconds);

#endif
