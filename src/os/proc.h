/*
 * proc.h - starting other programs: by argv, never through a shell.
 *
 * A short form of spawn.h for programs that the user has asked for: the name is looked up in PATH,
 * and the environment may be inherited.  Everything else is as in spawn.h.
 */
#ifndef CX_OS_PROC_H
#define CX_OS_PROC_H

#include <stdatomic.h>

#include "base/api.h"

typedef struct cx_proc_options {
    const char *const *argv;   /* argv[0] is a path, or a name looked up in this process's PATH */
    const char *const *envp;   /* NULL = empty environment */
    bool inherit_env;          /* pass this process's environment instead */
    const char *cwd;           /* NULL = this process's */
    cx_bytes input;            /* fed to standard input, then closed */
    uint64_t timeout_ms;       /* 0 = none */
    size_t output_limit_bytes; /* on each of stdout and stderr; 0 = 64 MiB; beyond it the child is
                                  killed and CX_E_LIMIT returned */
    const atomic_bool *cancel; /* ends the program as a timeout does; NULL = none */
} cx_proc_options;

typedef struct cx_proc_result {
    int exit_code; /* -1 when ended by a signal */
    int signal;    /* 0 when it exited */
    bool timed_out;
    uint64_t duration_ns;
} cx_proc_result;

/*
 * Runs a program to its end.  `out` and `errout` may be NULL (output is discarded).  A program that
 * ran and failed is a result, not an error; CX_E_NOT_FOUND when the program does not exist.
 */
CX_RESULT cx_proc_run(const cx_proc_options *options, cx_buf *out, cx_buf *errout,
                      cx_proc_result *result, cx_err *err);

/* The file that argv[0] names: a path, or a name in PATH.  CX_E_NOT_FOUND. */
CX_RESULT cx_proc_find(const char *name, cx_buf *out, cx_err *err);

#endif
