/*
 * spawn_start.h - the first half of spawn.h: from options to a running process and our pipe ends.
 * Private to this module.
 */
#ifndef CX_OS_SPAWN_START_H
#define CX_OS_SPAWN_START_H

#include <sys/types.h>

#include "os/spawn.h"

/* Our ends are non-blocking; -1 where there is none. */
typedef struct cx_spawn_ends {
    pid_t pid; /* also its session and group */
    int input;
    int output;
    int errors;
} cx_spawn_ends;

/* Returns when the program runs; on failure no process is left. */
CX_RESULT cx_spawn_start(const cx_spawn_options *options, cx_spawn_ends *out, cx_err *err);

/* Sets limits on this process.  Async-signal-safe. */
void cx_spawn_limit_self(const cx_spawn_limits *limits);

#endif
