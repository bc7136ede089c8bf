/*
 * sandbox - a program in a sandbox: namespaces, mounts, limits, system calls.
 *
 * Knows nothing of runs, contracts and git.
 */
#ifndef CX_SANDBOX_API_H
#define CX_SANDBOX_API_H

#include "sandbox/sandbox.h"

#endif
