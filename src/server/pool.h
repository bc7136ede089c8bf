/*
 * pool.h - a bounded queue of jobs, and the threads that run them.  Thread-safe.
 *
 * A place is reserved before a job is submitted, so that the caller can do what cannot be undone
 * between the two.
 *
 *   I1  Every submitted job runs exactly once, also after cx_pool_end.
 *   I2  At most `capacity` places are reserved or queued; each submit uses one reservation.
 *   I3  After cx_pool_end no reservation succeeds, and the threads end when every reservation has
 *       been submitted and run.  So a caller that reserves must submit.
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

/* `waiting` counts queued jobs; borrowed.  `threads` and `capacity` are at least 1. */
CX_RESULT cx_pool_open(cx_service *service, unsigned threads, size_t places,
                       atomic_int_fast64_t *waiting, cx_pool **out, cx_err *err);
/* False when all places are in use (I2), or after cx_pool_end (I3). */
bool cx_pool_reserve(cx_pool *pool);
void cx_pool_submit(cx_pool *pool, cx_pool_job *job);
/* cx_pool_reserve returns false from now on. */
void cx_pool_end(cx_pool *pool);
/* Ends the pool, runs the queued jobs, and joins the threads; other threads may still call
 * cx_pool_reserve, which returns false.  NULL is fine. */
void cx_pool_join(cx_pool *pool);
/* The same, and frees the pool: no other thread may use it any more.  NULL is fine. */
void cx_pool_close(cx_pool *pool);

#endif
