/*
 * machine_posix.c - the part of machine.h that needs nothing but POSIX.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "os/machine.h"

#define NAME_BYTES 256
#define LOOK_NS UINT64_C(20000000)

static int take_pending(const sigset_t *signals)
{
    sigset_t pending;
    int got = 0;
    if (sigpending(&pending) != 0)
        return 0;
    for (int number = 1; number < NSIG; number++)
        if (sigismember(signals, number) == 1 && sigismember(&pending, number) == 1)
            return sigwait(signals, &got) == 0 ? got : 0;
    return 0;
}

/* No call waits for signals and a time: it is looked for them from time to time. */
int cx_machine_await_signal(const sigset_t *signals, uint64_t timeout_ns)
{
    const cx_io *io = cx_io_system();
    uint64_t began = io->monotonic_ns(io);
    for (;;) {
        int got = take_pending(signals);
        uint64_t passed = io->monotonic_ns(io) - began;
        if (got != 0 || passed >= timeout_ns)
            return got;
        uint64_t left = timeout_ns - passed;
        const struct timespec pause = {0, (long)(left < LOOK_NS ? left : LOOK_NS)};
        (void)nanosleep(&pause, NULL);
    }
}

cx_status cx_machine_host(cx_buf *out, cx_err *err)
{
    char name[NAME_BYTES + 1] = {0};
    if (gethostname(name, NAME_BYTES) != 0)
        return cx_fail_os(err, errno, "cannot read the name of this machine");
    cx_buf_add_z(out, name);
    return cx_buf_check(out, err);
}
