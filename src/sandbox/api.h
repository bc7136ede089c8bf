/*
 * sandbox - runs a program in a sandbox: namespaces, mounts, limits, system call filter.
 *
 * Knows nothing of runs, contracts and git.  Numbered invariants: sandbox.h.
 */
#ifndef CX_SANDBOX_API_H
#define CX_SANDBOX_API_H

#include "sandbox/sandbox.h"

#endif
