/*
 * pthread.h - POSIX threads as far as cortex-verify names them, for WebAssembly, which has one
 * thread: locks are free, and a thread cannot be started, which every caller has an answer to.
 */
#ifndef CX_WASM_PTHREAD_H
#define CX_WASM_PTHREAD_H

#include <errno.h>
#include <stddef.h>
#include <time.h>

/* The C library has the types, and no function of them. */
#define __NEED_pthread_t
#define __NEED_pthread_attr_t
#define __NEED_pthread_once_t
#define __NEED_pthread_mutex_t
#define __NEED_pthread_cond_t
#define __NEED_pthread_condattr_t
#define __NEED_pthread_key_t
#include <bits/alltypes.h>

#define PTHREAD_ONCE_INIT 0

static inline int pthread_once(pthread_once_t *once, void (*start)(void))
{
    if (*once == 0) {
        *once = 1;
        start();
    }
    return 0;
}

static inline int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes)
{
    (void)mutex, (void)attributes;
    return 0;
}

static inline int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_condattr_init(pthread_condattr_t *attributes)
{
    (void)attributes;
    return 0;
}

static inline int pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock)
{
    (void)attributes, (void)clock;
    return 0;
}

static inline int pthread_condattr_destroy(pthread_condattr_t *attributes)
{
    (void)attributes;
    return 0;
}

static inline int pthread_cond_init(pthread_cond_t *changed, const pthread_condattr_t *attributes)
{
    (void)changed, (void)attributes;
    return 0;
}

static inline int pthread_cond_destroy(pthread_cond_t *changed)
{
    (void)changed;
    return 0;
}

/* Nobody else could change what is waited for: a caller that comes here would wait for ever. */
static inline int pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex)
{
    (void)changed, (void)mutex;
    return EDEADLK;
}

static inline int pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex,
                                         const struct timespec *until)
{
    (void)changed, (void)mutex, (void)until;
    return ETIMEDOUT;
}

static inline int pthread_cond_broadcast(pthread_cond_t *changed)
{
    (void)changed;
    return 0;
}

static inline int pthread_create(pthread_t *thread, const void *attributes, void *(*main)(void *),
                                 void *arg)
{
    (void)thread, (void)attributes, (void)main, (void)arg;
    return EAGAIN;
}

static inline int pthread_join(pthread_t thread, void **out)
{
    (void)thread, (void)out;
    return ESRCH;
}

/* Only OpenSSL's contexts are kept so, and there is no OpenSSL. */
static inline int pthread_key_create(pthread_key_t *key, void (*done)(void *))
{
    (void)key, (void)done;
    return EAGAIN;
}

static inline void *pthread_getspecific(pthread_key_t key)
{
    (void)key;
    return NULL;
}

static inline int pthread_setspecific(pthread_key_t key, const void *value)
{
    (void)key, (void)value;
    return EINVAL;
}

#endif
