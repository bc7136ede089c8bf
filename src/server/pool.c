/*
 * pool.c - worker threads, each with its own cx_worker.
 */
#include "server/pool.h"

#include "base/api.h"

struct cx_pool {
    cx_service *service;
    atomic_int_fast64_t *waiting;
    cx_lock lock;
    cx_pool_job *first, **last;
    size_t reserved, queued, capacity; /* `reserved` includes the queued ones */
    bool ending;
    unsigned thread_count;
    cx_thread threads[];
};

static size_t pool_size(unsigned threads)
{
    return sizeof(cx_pool) + threads * sizeof(cx_thread);
}

static cx_pool_job *next_job(cx_pool *pool)
{
    cx_lock_enter(&pool->lock);
    while (pool->first == NULL && !(pool->ending && pool->reserved == 0))
        cx_lock_wait(&pool->lock);
    cx_pool_job *job = pool->first;
    if (job != NULL) {
        CX_ASSERT(pool->queued > 0 && pool->queued <= pool->reserved); /* I2 */
        pool->queued--;
        pool->first = job->next;
        if (pool->first == NULL)
            pool->last = &pool->first;
        pool->reserved--;
        cx_gauge_add(pool->waiting, -1);
        /* The last job releases the threads that still wait. */
        if (pool->ending && pool->reserved == 0)
            cx_lock_wake(&pool->lock);
    }
    cx_lock_leave(&pool->lock);
    return job;
}

static void run_worker_thread(void *arg)
{
    cx_pool *pool = arg;
    cx_worker worker;
    cx_worker_init(&worker, pool->service);
    for (cx_pool_job *job; (job = next_job(pool)) != NULL;)
        job->run(job, &worker);
    cx_worker_done(&worker);
}

cx_status cx_pool_open(cx_service *service, unsigned threads, size_t capacity,
                       atomic_int_fast64_t *waiting, cx_pool **out, cx_err *err)
{
    CX_ASSERT(threads > 0 && capacity > 0 && waiting != NULL);
    cx_pool *pool = cx_alloc_zeroed(service->alloc, 1, pool_size(threads));
    if (pool == NULL)
        return cx_fail_nomem(err);
    pool->service = service;
    pool->waiting = waiting;
    pool->last = &pool->first;
    pool->capacity = capacity;
    pool->thread_count = threads;
    cx_lock_init(&pool->lock);
    for (unsigned i = 0; i < threads; i++)
        if (!cx_thread_start(&pool->threads[i], run_worker_thread, pool)) {
            cx_pool_close(pool);
            return cx_fail(err, CX_E_BUSY, "only %u of %u threads can be started", i, threads);
        }
    *out = pool;
    return CX_SUCCESS;
}

bool cx_pool_reserve(cx_pool *pool)
{
    cx_lock_enter(&pool->lock);
    bool is_free = !pool->ending && pool->reserved < pool->capacity;
    if (is_free)
        pool->reserved++;
    cx_lock_leave(&pool->lock);
    return is_free;
}

void cx_pool_submit(cx_pool *pool, cx_pool_job *job)
{
    CX_ASSERT(job->run != NULL);
    job->next = NULL;
    cx_gauge_add(pool->waiting, 1);
    cx_lock_enter(&pool->lock);
    CX_ASSERT(pool->queued < pool->reserved); /* I2: the caller has a reservation */
    pool->queued++;
    *pool->last = job;
    pool->last = &job->next;
    cx_lock_wake(&pool->lock);
    cx_lock_leave(&pool->lock);
}

void cx_pool_end(cx_pool *pool)
{
    cx_lock_enter(&pool->lock);
    pool->ending = true;
    cx_lock_wake(&pool->lock);
    cx_lock_leave(&pool->lock);
}

void cx_pool_join(cx_pool *pool)
{
    if (pool == NULL)
        return;
    cx_pool_end(pool);
    for (unsigned i = 0; i < pool->thread_count; i++)
        cx_thread_join(&pool->threads[i]);
}

void cx_pool_close(cx_pool *pool)
{
    if (pool == NULL)
        return;
    cx_pool_join(pool);
    CX_ASSERT(pool->first == NULL && pool->reserved == 0); /* I1, I3 */
    cx_lock_done(&pool->lock);
    cx_alloc_free(pool->service->alloc, pool, pool_size(pool->thread_count));
}
