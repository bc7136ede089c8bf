/*
 * test_thread.c - a team does every share once, and the lock keeps its members apart.
 */
#include "base/thread.h"

#include <stdatomic.h>

#include "base/io.h"
#include "tests/test.h"

typedef struct work {
    cx_lock lock;
    unsigned sum; /* guarded */
    atomic_uint seen[80];
} work;

static void add_up(void *arg, unsigned index)
{
    work *all = arg;
    atomic_fetch_add(&all->seen[index], 1);
    for (int i = 0; i < 2000; i++) {
        cx_lock_enter(&all->lock);
        all->sum++;
        cx_lock_leave(&all->lock);
    }
}

CX_TEST(thread_team_runs_each_member_once)
{
    static const unsigned counts[] = {0, 1, 2, 8, 64, 70};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        work all = {.sum = 0};
        cx_lock_init(&all.lock);
        cx_thread_team(counts[i], add_up, &all);
        unsigned members = 0;
        for (unsigned k = 0; k < 80; k++) {
            CHECK(all.seen[k] <= 1);
            members += all.seen[k];
        }
        /* 0 is the calling thread alone; more than 64 are not started. */
        CHECK_INT(members, counts[i] == 0 ? 1 : counts[i] > 64 ? 64 : counts[i]);
        CHECK_INT(all.sum, members * 2000);
        cx_lock_done(&all.lock);
    }
}

typedef struct relay {
    cx_lock lock;
    unsigned turn; /* guarded */
    unsigned order[64];
} relay;

static void in_turn(void *arg, unsigned index)
{
    relay *all = arg;
    cx_lock_enter(&all->lock);
    while (all->turn != index)
        cx_lock_wait(&all->lock);
    all->order[all->turn++] = index;
    cx_lock_wake(&all->lock);
    cx_lock_leave(&all->lock);
}

CX_TEST(thread_lock_wakes_all_who_wait)
{
    relay all = {.turn = 0};
    cx_lock_init(&all.lock);
    cx_thread_team(16, in_turn, &all);
    CHECK_INT(all.turn, 16);
    for (unsigned i = 0; i < 16; i++)
        CHECK_INT(all.order[i], i);
    cx_lock_done(&all.lock);
}

static void note(void *arg)
{
    relay *all = arg;
    cx_lock_enter(&all->lock);
    while (all->turn == 0)
        cx_lock_wait(&all->lock);
    all->turn = 7;
    cx_lock_leave(&all->lock);
}

CX_TEST(thread_started_runs_in_parallel_and_is_joined_once)
{
    relay all = {.turn = 0};
    cx_thread thread = {0};
    cx_lock_init(&all.lock);
    cx_thread_join(&thread); /* never started */
    for (int i = 0; i < 3; i++) {
        all.turn = 0;
        REQUIRE(cx_thread_start(&thread, note, &all));
        cx_lock_enter(&all.lock);
        all.turn = 1;
        cx_lock_wake(&all.lock);
        cx_lock_leave(&all.lock);
        cx_thread_join(&thread);
        CHECK_INT(all.turn, 7);
        cx_thread_join(&thread);
    }
    cx_lock_done(&all.lock);
}

CX_TEST(thread_cores_are_at_least_one)
{
    CHECK(cx_thread_cores() >= 1);
}

/* Also run with a clock that has been moved by a year: tests/torture/test_fault_injector.py. */
CX_TEST(thread_a_wait_ends_in_its_time)
{
    const cx_io *io = cx_io_system();
    cx_lock lock;
    cx_lock_init(&lock);
    cx_lock_enter(&lock);
    uint64_t before = io->monotonic_ns(io);
    cx_lock_wait_for(&lock, 20);
    uint64_t waited_ms = (io->monotonic_ns(io) - before) / 1000000;
    cx_lock_leave(&lock);
    cx_lock_done(&lock);
    CHECK(waited_ms < 60000);
}
