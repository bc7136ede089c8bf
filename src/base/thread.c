/*
 * thread.c - locks and threads over POSIX threads.
 */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/diag.h"
#include "base/platform.h"

#define TEAM_MAX 64

void cx_lock_init(cx_lock *lock)
{
    int failed = pthread_mutex_init(&lock->mutex, NULL);
    CX_ASSERT(failed == 0);
    failed = cx_platform_condition_init(&lock->changed);
    CX_ASSERT(failed == 0);
}

void cx_lock_done(cx_lock *lock)
{
    (void)pthread_cond_destroy(&lock->changed);
    (void)pthread_mutex_destroy(&lock->mutex);
}

void cx_lock_enter(cx_lock *lock)
{
    int failed = pthread_mutex_lock(&lock->mutex);
    CX_ASSERT(failed == 0);
}

void cx_lock_leave(cx_lock *lock)
{
    int failed = pthread_mutex_unlock(&lock->mutex);
    CX_ASSERT(failed == 0);
}

void cx_lock_wait(cx_lock *lock)
{
    int failed = pthread_cond_wait(&lock->changed, &lock->mutex);
    CX_ASSERT(failed == 0);
}

void cx_lock_wait_for(cx_lock *lock, uint32_t milliseconds)
{
    cx_platform_condition_wait(&lock->changed, &lock->mutex, milliseconds);
}

void cx_lock_wake(cx_lock *lock)
{
    (void)pthread_cond_broadcast(&lock->changed);
}

void cx_thread_sleep_ms(uint32_t milliseconds)
{
    struct timespec pause = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static void *thread_main(void *arg)
{
    const cx_thread *self = arg;
    self->work(self->arg);
    return NULL;
}

bool cx_thread_start(cx_thread *thread, void (*work)(void *arg), void *arg)
{
    /* Signals belong to the caller's threads; a new thread inherits the blocked set. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    *thread = (cx_thread){.work = work, .arg = arg};
    thread->started = pthread_create(&thread->id, NULL, thread_main, thread) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread->started;
}

void cx_thread_join(cx_thread *thread)
{
    if (!thread->started)
        return;
    (void)pthread_join(thread->id, NULL);
    thread->started = false;
}

unsigned cx_thread_cores(void)
{
    return cx_platform_cores();
}

typedef struct member {
    void (*work)(void *arg, unsigned index);
    void *arg;
    unsigned index;
} member;

static void *member_main(void *arg)
{
    const member *self = arg;
    self->work(self->arg, self->index);
    return NULL;
}

void cx_thread_team(unsigned count, void (*work)(void *arg, unsigned index), void *arg)
{
    pthread_t threads[TEAM_MAX];
    member members[TEAM_MAX];
    bool started[TEAM_MAX] = {false};
    if (count > TEAM_MAX)
        count = TEAM_MAX;
    for (unsigned i = 1; i < count; i++) {
        members[i] = (member){work, arg, i};
        started[i] = pthread_create(&threads[i], NULL, member_main, &members[i]) == 0;
    }
    work(arg, 0);
    for (unsigned i = 1; i < count; i++)
        if (started[i])
            (void)pthread_join(threads[i], NULL);
}
