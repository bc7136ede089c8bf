/*
 * thread.h - locks, threads, and teams of threads that share one job.
 */
#ifndef CX_BASE_THREAD_H
#define CX_BASE_THREAD_H

#include <pthread.h>

#include "base/status.h"

/* A mutex with one condition variable: change the guarded data, then wake all waiters. */
typedef struct cx_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} cx_lock;

void cx_lock_init(cx_lock *lock);
void cx_lock_done(cx_lock *lock);
void cx_lock_enter(cx_lock *lock);
void cx_lock_leave(cx_lock *lock);
/* With the lock held: sleeps until the next cx_lock_wake; may wake spuriously. */
void cx_lock_wait(cx_lock *lock);
/* The same with a timeout. */
void cx_lock_wait_for(cx_lock *lock, uint32_t milliseconds);
void cx_lock_wake(cx_lock *lock);

/* A thread with all signals blocked. */
typedef struct cx_thread {
    pthread_t id;
    void (*work)(void *arg);
    void *arg;
    bool started;
} cx_thread;

/* False when the system cannot start one.  `thread` must not move before it is joined. */
bool cx_thread_start(cx_thread *thread, void (*work)(void *arg), void *arg);
/* Waits for its end; does nothing when it was not started. */
void cx_thread_join(cx_thread *thread);

/* Sleeps for about so long; a signal handler may end it early. */
void cx_thread_sleep_ms(uint32_t milliseconds);

/* Number of cores that this process may use, at least 1. */
unsigned cx_thread_cores(void);

/*
 * Runs work(arg, 0) on the calling thread and work(arg, 1..count-1) on others; returns when all
 * have ended.  When a thread cannot be started the others do its share: `work` must not rely on
 * `count` members.
 */
void cx_thread_team(unsigned count, void (*work)(void *arg, unsigned index), void *arg);

#endif
