/*
 * relay.h - two streams between two programs, with a caller in the middle that may look at, keep
 * back or answer what passes.
 *
 * The near side is the program that started this one (standard input and output), the far side
 * usually a child (spawn.h).  One poll loop serves both, so that neither can block the other:
 *
 *   R1  Nothing here waits for one side only.
 *   R2  A side is read while less than `queue_max` bytes wait for either side.
 *   R3  What was read before the end of a stream is handed on before the end is.
 *   R4  SIGTERM, SIGINT and SIGHUP end the loop (out_signal), SIGPIPE is of no effect; afterwards
 *       signals are as they were.
 */
#ifndef CX_OS_RELAY_H
#define CX_OS_RELAY_H

#include "base/api.h"

typedef enum cx_relay_side { CX_RELAY_NEAR, CX_RELAY_FAR } cx_relay_side;

#define CX_RELAY_NEVER UINT32_MAX

typedef struct cx_relay {
    cx_file near_in, near_out;
    cx_file far_in, far_out;  /* far_in: what the far side writes.  -1: there is none */
    cx_file far_process;      /* readable when the far side has ended; -1 = not known */
    cx_file wake;             /* an event file (cx_relay_wake_open) of other threads; -1 = none */
    cx_buf *to_near, *to_far; /* what waits to be written: callbacks append */
    size_t queue_max;
    uint32_t linger_ms; /* for the far side, after the near side has ended */
    void *arg;
    /* Bytes of a side; none: it has ended. */
    cx_status (*received)(void *arg, cx_relay_side from, cx_bytes bytes, cx_err *err);
    /* When `due_ms` has passed, and after a wake-up. */
    cx_status (*tick)(void *arg, cx_err *err);
    /* How long until the next tick; CX_RELAY_NEVER. */
    uint32_t (*due_ms)(void *arg);
    /* All was written to the far side after the near one has ended: closes far_out. */
    void (*end_far)(void *arg);
    /* Whether nothing more comes from a far side without far_in; may be NULL when it has one. */
    bool (*is_idle)(void *arg);
} cx_relay;

/* Runs until both sides, or the far one, have ended; *out_signal is the signal that asked this
 * process to end, else 0. */
CX_RESULT cx_relay_run(const cx_relay *relay, int *out_signal, cx_err *err);

/* -1 when the system has none left. */
cx_file cx_relay_wake_open(void);
void cx_relay_wake(cx_file wake); /* from any thread */
void cx_relay_wake_close(cx_file wake);

#endif
