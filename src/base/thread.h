/*
 * thread.h - a team of threads doing one job, and the lock they share.
 */
#ifndef CX_BASE_THREAD_H
#define CX_BASE_THREAD_H

#include <pthread.h>

#include "base/status.h"

/* A mutex with one condition: change what it guards, then wake everybody. */
typedef struct cx_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} cx_lock;

void cx_lock_init(cx_lock *lock);
void cx_lock_done(cx_lock *lock);
void cx_lock_enter(cx_lock *lock);
void cx_lock_leave(cx_lock *lock);
/* Inside the lock: sleeps until the next cx_lock_wake; may wake early. */
void cx_lock_wait(cx_lock *lock);
/* The same, at most about that long. */
void cx_lock_wait_for(cx_lock *lock, uint32_t milliseconds);
void cx_lock_wake(cx_lock *lock);

/* One thread beside the caller's, without signals.  False when none can be started. */
typedef struct cx_thread {
    pthread_t id;
    void (*work)(void *arg);
    void *arg;
    bool started;
} cx_thread;

/* `thread` must stay where it is until it was joined. */
bool cx_thread_start(cx_thread *thread, void (*work)(void *arg), void *arg);
/* Waits for its end; nothing to do when it was not started. */
void cx_thread_join(cx_thread *thread);

/* Cores this process may use, at least 1. */
unsigned cx_thread_cores(void);

/*
 * Runs work(arg, 0) on the calling thread and work(arg, 1..count-1) on others; returns when all
 * have ended.  Where a thread cannot be started the rest do its share: work must not count on
 * `count`.
 */
void cx_thread_team(unsigned count, void (*work)(void *arg, unsigned index), void *arg);

#endif
