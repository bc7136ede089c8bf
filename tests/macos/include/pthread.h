/* Written for tests/macos: without pthread_condattr_setclock, which macOS lacks. */
#ifndef CX_MACOS_PTHREAD_H
#define CX_MACOS_PTHREAD_H
#include <sys/types.h>
#include <time.h>
#define PTHREAD_MUTEX_INITIALIZER \
    {                             \
        0x32AAABA7,               \
        {                         \
            0                     \
        }                         \
    }
#define PTHREAD_COND_INITIALIZER \
    {                            \
        0x3CB0B1BB,              \
        {                        \
            0                    \
        }                        \
    }
#define PTHREAD_ONCE_INIT \
    {                     \
        0x30B1BCBA,       \
        {                 \
            0             \
        }                 \
    }
int pthread_cond_broadcast(pthread_cond_t *condition);
int pthread_cond_destroy(pthread_cond_t *condition);
int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int pthread_cond_signal(pthread_cond_t *condition);
int pthread_cond_timedwait_relative_np(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                       const struct timespec *left);
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *arg);
int pthread_detach(pthread_t thread);
void *pthread_getspecific(pthread_key_t key);
int pthread_join(pthread_t thread, void **out);
int pthread_key_create(pthread_key_t *out, void (*done)(void *));
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_trylock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_once(pthread_once_t *once, void (*call)(void));
pthread_t pthread_self(void);
int pthread_setspecific(pthread_key_t key, const void *value);
int pthread_sigmask(int how, const unsigned *set, unsigned *before);
#endif
