/*
 * signal.h - sets of signals, for WebAssembly, which has no signals: blocking all of them is done.
 */
#ifndef CX_WASM_SIGNAL_H
#define CX_WASM_SIGNAL_H

#include_next <signal.h>

#define __NEED_sigset_t
#include <bits/alltypes.h>

#ifndef SIG_BLOCK
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#endif

static inline int sigfillset(sigset_t *set)
{
    *set = (sigset_t)-1;
    return 0;
}

static inline int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    (void)how, (void)set;
    if (before != NULL)
        *before = 0;
    return 0;
}

#endif
