/*
 * flush.c - the thread that flushes committed rows to the tables.
 *
 * It waits briefly, so that many small commits become one table transaction, and starts at once
 * when a caller waits for the tables.
 *
 *   L1  Rows reach the database only after their commit is durable in the log: the tables are never
 *       ahead of the log.
 */
#include "ledger/internal.h"

/* A memtable is flushed when it is this large or this old. */
#define GATHER_ROWS 16384
#define GATHER_MS 100
/* After a failure the same memtable is tried again. */
#define RETRY_MS 1000

static cx_status wait_durable(cx_home *home, cx_position end, cx_err *err)
{
    if (end.frames != 0)
        return cx_log_wait(home->log, end.commit, err);
    return end.commit == 0 ? CX_SUCCESS : cx_log_wait(home->log, end.commit - 1, err);
}

static void flushed(cx_home *home)
{
    cx_home_actors_flushed(home, home->store.flushing);
    cx_home_end_overlays(home);
    cx_store_flushed(&home->store);
}

/* Called with the lock held; releases it while the database works. */
static void flush_once(cx_home *home)
{
    cx_err err = {0};
    cx_status status = CX_SUCCESS;
    if (home->store.flushing == NULL) {
        CX_ASSERT(!home->apply_failed);
        status = cx_home_save_actors(home, &err);
        if (!cx_failed(status))
            status = cx_store_start_flush(&home->store, home->applied, &err);
    }
    if (!cx_failed(status)) {
        cx_lock_leave(&home->lock);
        status = wait_durable(home, home->store.flushing->end, &err);
        if (!cx_failed(status))
            status = cx_store_flush_memtable(&home->store, home->store.flushing, &err);
        cx_lock_enter(&home->lock);
    }
    home->flush_status = status;
    if (cx_failed(status))
        home->flush_err = err;
    else
        flushed(home);
    cx_lock_wake(&home->lock);
}

/* In idle time rows of the past are given back, with flushes that bring nothing else. */
#define SWEEP_MS 20

static bool is_to_sweep(const cx_home *home)
{
    return home->store.sweeps && !home->apply_failed && !home->closing && !home->poisoned;
}

static bool nothing_to_flush(const cx_home *home)
{
    return home->store.flushing == NULL &&
           (home->apply_failed || cx_store_memtable_rows(&home->store) == 0);
}

/* Waits for more rows or for a caller that needs the tables.  Returns with the lock held. */
static void wait_for_more_rows(cx_home *home)
{
    uint64_t end = home->io->monotonic_ns(home->io) + GATHER_MS * UINT64_C(1000000);
    while (!home->closing && !home->flush_wanted &&
           cx_store_memtable_rows(&home->store) < GATHER_ROWS) {
        uint64_t now = home->io->monotonic_ns(home->io);
        if (now >= end)
            return;
        cx_lock_wait_for(&home->lock, (uint32_t)((end - now) / 1000000) + 1);
    }
}

static void flush_loop(void *arg)
{
    cx_home *home = arg;
    cx_lock_enter(&home->lock);
    for (;;) {
        if (nothing_to_flush(home)) {
            home->flush_wanted = false;
            if (home->closing)
                break;
            home->flusher_idle = true;
            const bool sweeps = is_to_sweep(home);
            if (sweeps)
                cx_lock_wait_for(&home->lock, SWEEP_MS);
            else
                cx_lock_wait(&home->lock);
            home->flusher_idle = false;
            if (!sweeps || !nothing_to_flush(home) || !is_to_sweep(home))
                continue;
            flush_once(home);
            if (!cx_failed(home->flush_status) || home->closing)
                continue;
            cx_lock_wait_for(&home->lock, RETRY_MS);
            continue;
        }
        wait_for_more_rows(home);
        if (nothing_to_flush(home))
            continue;
        flush_once(home);
        if (!cx_failed(home->flush_status))
            continue;
        if (home->closing)
            break;
        home->flush_wanted = false;
        cx_lock_wait_for(&home->lock, RETRY_MS);
    }
    cx_lock_leave(&home->lock);
}

cx_status cx_home_start_flusher(cx_home *home, cx_err *err)
{
    if (!cx_thread_start(&home->flusher, flush_loop, home))
        return cx_fail(err, CX_E_NOMEM, "a thread for the tables could not be started");
    return CX_SUCCESS;
}

void cx_home_stop_flusher(cx_home *home)
{
    cx_lock_enter(&home->lock);
    home->closing = true;
    cx_lock_wake(&home->lock);
    cx_lock_leave(&home->lock);
    cx_thread_join(&home->flusher);
}

/* --- without a flusher thread ----------------------------------------------------------------- */

cx_status cx_home_flush_end(cx_home *home, cx_err *err)
{
    if (!home->store.aside.runs)
        return CX_SUCCESS;
    CX_TRY(cx_store_flush_end(&home->store, err));
    flushed(home);
    return home->store.later.built ? cx_home_reload_trees(home, err) : CX_SUCCESS;
}

static cx_status flush_in_order(cx_home *home, bool by_thread, cx_err *err)
{
    CX_TRY(cx_home_flush_end(home, err));
    CX_TRY(cx_home_save_actors(home, err));
    CX_TRY(cx_store_start_flush(&home->store, home->applied, err));
    cx_store_flush_aside(&home->store, by_thread);
    return CX_SUCCESS;
}

unsigned cx_home_derive_threads(const cx_home *home)
{
    return home->options.threads != 0 ? home->options.threads : cx_thread_cores();
}

cx_status cx_home_flush_aside(cx_home *home, cx_err *err)
{
    return flush_in_order(home, cx_home_derive_threads(home) > 1, err);
}

cx_status cx_home_flush_now(cx_home *home, cx_err *err)
{
    CX_TRY(flush_in_order(home, false, err));
    return cx_home_flush_end(home, err);
}

cx_status cx_home_merge_runs(cx_home *home, cx_err *err)
{
    if (home->store.runs == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_home_flush_end(home, err));
    return cx_store_merge_waiting(&home->store, err);
}

cx_status cx_home_finish_derived(cx_home *home, cx_err *err)
{
    CX_TRY(cx_home_flush_end(home, err));
    home->store.later.wanted = home->store.later.on;
    return home->store.later.on || cx_store_memtable_rows(&home->store) != 0
               ? cx_home_flush_now(home, err)
               : CX_SUCCESS;
}

bool cx_home_is_flush_due(const cx_home *home)
{
    return cx_store_memtable_bytes(&home->store) >= CX_MEMTABLE_BYTES / 2 ||
           cx_home_actors_crowded(home);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Waits until the tables have everything applied up to `wanted`, or nothing is left to flush. */
static cx_status flush_until(cx_home *home, cx_position wanted, cx_err *err)
{
    if (home->read_only && !home->store.shared)
        return CX_SUCCESS; /* a reader's view was complete when it was opened */
    if (!home->flusher.started) {
        CX_TRY(cx_home_flush_end(home, err));
        if (!nothing_to_flush(home))
            CX_TRY(cx_home_flush_now(home, err));
        return cx_store_merge_waiting(&home->store, err);
    }
    uint64_t limit_ms = home->options.flush_timeout_ms;
    uint64_t end = home->io->monotonic_ns(home->io) + limit_ms * UINT64_C(1000000);
    while (cx_store_memtable_rows(&home->store) != 0 || home->store.flushing != NULL) {
        if (home->apply_failed)
            return cx_home_check_alive(home, err);
        if (!cx_position_before(home->store.flushed, wanted))
            break;
        if (cx_failed(home->flush_status)) {
            if (err != NULL)
                *err = home->flush_err;
            return home->flush_status;
        }
        uint64_t now = home->io->monotonic_ns(home->io);
        if (now >= end)
            return cx_fail(err, CX_E_TIMEOUT,
                           "the tables did not catch up with the log within %llu ms",
                           (unsigned long long)limit_ms);
        home->flush_wanted = true;
        cx_lock_wake(&home->lock);
        cx_lock_wait_for(&home->lock, (uint32_t)((end - now) / 1000000) + 1);
    }
    return CX_SUCCESS;
}

cx_status cx_home_flush_wait_locked(cx_home *home, cx_err *err)
{
    return flush_until(home, home->applied, err);
}

cx_status cx_home_drain_locked(cx_home *home, cx_err *err)
{
    return flush_until(home, (cx_position){UINT64_MAX, UINT64_MAX}, err);
}
