/*
 * pool.h - a queue of calls that has an end, and the threads that work through it.
 *
 * A place is reserved before a call is put in, so that whoever puts it in can do what cannot be
 * undone between the two.
 */
#ifndef CX_SERVER_POOL_H
#define CX_SERVER_POOL_H

#include "base/api.h"
#include "server/service.h"

typedef struct cx_pool cx_pool;

typedef struct cx_pool_job {
    struct cx_pool_job *next;
    void (*run)(struct cx_pool_job *job, cx_worker *worker);
} cx_pool_job;

/* `waiting` counts what waits; borrowed. */
CX_RESULT cx_pool_open(cx_service *service, unsigned threads, size_t places,
                       atomic_int_fast64_t *waiting, cx_pool **out, cx_err *err);
/* False when all places are taken, or the pool is about to end. */
bool cx_pool_reserve(cx_pool *pool);
void cx_pool_submit(cx_pool *pool, cx_pool_job *job);
/* cx_pool_reserve says no from now on. */
void cx_pool_end(cx_pool *pool);
/* Ends it, runs what is in the queue, and joins the threads; others may still ask for places, and
 * hear no.  NULL is fine. */
void cx_pool_join(cx_pool *pool);
/* All that, and frees it: nobody asks any more.  NULL is fine. */
void cx_pool_close(cx_pool *pool);

#endif
