/* The pool: a bounded queue that loses no job. */
#include "server/pool.h"

#include "tests/unit/server/asking.h"

typedef struct work {
    cx_pool_job job;
    atomic_uint *done;
    atomic_bool *gate; /* waits until it is open */
} work;

static void run(cx_pool_job *job, cx_worker *worker)
{
    work *w = (work *)job;
    cx_lock pause;
    CHECK(worker->service != NULL);
    cx_lock_init(&pause);
    while (w->gate != NULL && !atomic_load(w->gate)) {
        cx_lock_enter(&pause);
        cx_lock_wait_for(&pause, 1);
        cx_lock_leave(&pause);
    }
    cx_lock_done(&pause);
    (void)atomic_fetch_add(w->done, 1);
}

/* I1, I2 */
CX_TEST(pool_runs_every_job_and_reports_when_full)
{
    enum { PLACES = 5, JOBS = 64 };
    static asking a;
    static work jobs[JOBS];
    atomic_uint done = 0;
    atomic_bool gate = false;
    atomic_int_fast64_t waiting = 0;
    cx_pool *pool;
    asking_init(&a, "pool");
    REQUIRE(!cx_failed(cx_pool_open(a.service, 2, PLACES, &waiting, &pool, &a.fixture.err)));
    unsigned put = 0, refused = 0;
    /* Two are being worked on at most, so at most seven fit. */
    for (unsigned i = 0; i < 20; i++) {
        if (!cx_pool_reserve(pool)) {
            refused++;
            continue;
        }
        jobs[put] = (work){{NULL, run}, &done, &gate};
        cx_pool_submit(pool, &jobs[put++].job);
    }
    CHECK(put >= PLACES && put <= PLACES + 2 && refused == 20 - put);
    atomic_store(&gate, true);
    while (put < JOBS)
        if (cx_pool_reserve(pool)) {
            jobs[put] = (work){{NULL, run}, &done, NULL};
            cx_pool_submit(pool, &jobs[put++].job);
        }
    cx_pool_end(pool);
    CHECK(!cx_pool_reserve(pool));
    cx_pool_close(pool);
    CHECK_INT(atomic_load(&done), JOBS);
    CHECK_INT(cx_gauge(&waiting), 0);
    asking_done(&a);
}

/* I3 */
CX_TEST(pool_join_waits_for_reservations)
{
    static asking a;
    static work job;
    atomic_uint done = 0;
    atomic_int_fast64_t waiting = 0;
    cx_pool *pool;
    asking_init(&a, "pool-reserved");
    REQUIRE(!cx_failed(cx_pool_open(a.service, 3, 4, &waiting, &pool, &a.fixture.err)));
    CHECK(cx_pool_reserve(pool));
    cx_pool_end(pool);
    job = (work){{NULL, run}, &done, NULL};
    cx_pool_submit(pool, &job.job);
    cx_pool_close(pool);
    CHECK_INT(atomic_load(&done), 1);
    asking_done(&a);
}
