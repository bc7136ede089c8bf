/*
 * lock_acquire.c - acquires, renews and releases locks (run.md §11).
 */
#include <stdlib.h>

#include "approval/lock_internal.h"
#include "rules/api.h"

typedef struct lock_acquisition {
    cx_run_locks locks;
    const cx_run_lock_request *request;
    cx_arena *arena;
    cx_run_lock *requested; /* one for each requested path, no key twice */
    size_t requested_count;
    cx_run_lock *conflicts, *reclaimed;
    cx_run_lock_reason *why;
    size_t conflict_count, reclaimed_count;
} lock_acquisition;

static int compare_keys(const void *a, const void *b)
{
    return memcmp(((const cx_run_lock *)a)->key.bytes, ((const cx_run_lock *)b)->key.bytes,
                  sizeof(cx_digest));
}

static int compare_paths(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* §11: any invalid path or an empty list rejects the whole request. */
static cx_status name_requested_locks(lock_acquisition *t, cx_run_lock_result *out, cx_err *err)
{
    const cx_run_lock_request *request = t->request;
    cx_str *invalid = CX_ARENA_ARRAY(t->arena, cx_str, request->path_count + 1);
    t->requested = CX_ARENA_ARRAY(t->arena, cx_run_lock, request->path_count + 1);
    if (invalid == NULL || t->requested == NULL)
        return cx_fail_nomem(err);
    if (request->path_count > CX_RUN_LOCKS_MAX)
        return cx_fail(err, CX_E_LIMIT, "%zu paths are to be locked, expected at most %d",
                       request->path_count, CX_RUN_LOCKS_MAX);
    for (size_t i = 0; i < request->path_count; i++) {
        cx_run_lock *lock = &t->requested[t->requested_count];
        *lock = (cx_run_lock){
            .run_id = request->run_id, .task_id = request->task_id, .ttl_sec = request->ttl_sec};
        cx_status status =
            cx_run_lock_name(request->paths[i], t->arena, &lock->path, &lock->key, err);
        if (status.code == CX_E_FORMAT)
            invalid[out->invalid_count++] = request->paths[i];
        else if (cx_failed(status))
            return status;
        else
            t->requested_count++;
    }
    out->invalid = invalid;
    /* "src" and "src/" are one lock. */
    if (t->requested_count != 0)
        qsort(t->requested, t->requested_count, sizeof *t->requested, compare_keys);
    size_t kept = 0;
    for (size_t i = 0; i < t->requested_count; i++)
        if (kept == 0 || compare_keys(&t->requested[kept - 1], &t->requested[i]) != 0)
            t->requested[kept++] = t->requested[i];
    t->requested_count = kept;
    return CX_SUCCESS;
}

static bool overlaps_request(const lock_acquisition *t, const cx_run_lock *existing)
{
    for (size_t i = 0; i < t->requested_count; i++)
        if (cx_run_path_overlap(existing->path, t->requested[i].path, NULL) != CX_RUN_APART)
            return true;
    return false;
}

static bool is_lock_of(const cx_run_lock *lock, cx_str run_id, cx_str task_id)
{
    return cx_str_eq(lock->run_id, run_id) &&
           (task_id.size == 0 || cx_str_eq(lock->task_id, task_id));
}

/* The task whose locks are no conflict; empty = all of the run. */
static cx_str own_task(const cx_run_lock_request *request)
{
    return request->shares_in_run ? CX_STR("") : request->task_id;
}

/* An invalid lock file blocks a request of exactly its path. */
static bool blocks_unreadable(const lock_acquisition *t, const cx_run_lock *existing)
{
    for (size_t i = 0; i < t->requested_count; i++)
        if (cx_digest_eq(&existing->key, &t->requested[i].key))
            return true;
    return false;
}

static cx_status find_conflicts(lock_acquisition *t, cx_err *err)
{
    size_t capacity = t->locks.count + 1;
    t->conflicts = CX_ARENA_ARRAY(t->arena, cx_run_lock, capacity);
    t->reclaimed = CX_ARENA_ARRAY(t->arena, cx_run_lock, capacity);
    t->why = CX_ARENA_ARRAY(t->arena, cx_run_lock_reason, capacity);
    if (t->conflicts == NULL || t->reclaimed == NULL || t->why == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < t->locks.count; i++) {
        const cx_run_lock *existing = &t->locks.list[i];
        if (existing->run_id.size == 0) {
            if (blocks_unreadable(t, existing))
                t->conflicts[t->conflict_count++] = *existing;
            continue;
        }
        if (is_lock_of(existing, t->request->run_id, own_task(t->request)) ||
            !overlaps_request(t, existing))
            continue;
        cx_run_lock_reason reason = cx_run_locks_classify(&t->locks, existing);
        if (!cx_run_lock_stale(reason)) {
            t->conflicts[t->conflict_count++] = *existing;
        } else {
            t->reclaimed[t->reclaimed_count] = *existing;
            t->why[t->reclaimed_count++] = reason;
        }
    }
    return CX_SUCCESS;
}

/* Whether the task has the lock already; it is then renewed by writing it again. */
static bool has_own_lock(const lock_acquisition *t, const cx_run_lock *lock)
{
    for (size_t i = 0; i < t->locks.count; i++)
        if (cx_digest_eq(&t->locks.list[i].key, &lock->key) &&
            is_lock_of(&t->locks.list[i], t->request->run_id, own_task(t->request)))
            return true;
    return false;
}

static size_t count_passed(const lock_acquisition *t)
{
    size_t count = 0;
    for (size_t i = 0; i < t->requested_count; i++)
        count += has_own_lock(t, &t->requested[i]);
    return count;
}

/* L2: all or none. */
static cx_status write_locks(lock_acquisition *t, cx_err *err)
{
    cx_run_owner self;
    char now[28];
    cx_status status = CX_SUCCESS;
    size_t done = 0;
    CX_TRY(cx_run_owner_self(t->arena, &self, err));
    cx_run_time_text((int64_t)t->locks.store->io->wall_ns(t->locks.store->io), now);
    for (size_t i = 0; i < t->reclaimed_count; i++)
        CX_TRY(cx_run_locks_remove(&t->locks, &t->reclaimed[i], err));
    for (; done < t->requested_count && !cx_failed(status); done++) {
        cx_run_lock *lock = &t->requested[done];
        lock->owner = self;
        lock->acquired_at = lock->renewed_at = cx_str_z(now);
        status = cx_run_locks_write(&t->locks, lock, has_own_lock(t, lock), err);
    }
    for (size_t i = 0; cx_failed(status) && i < done; i++)
        if (!has_own_lock(t, &t->requested[i]))
            (void)!cx_failed(cx_run_locks_remove(&t->locks, &t->requested[i], NULL));
    return status;
}

static cx_status list_taken_paths(lock_acquisition *t, cx_run_lock_result *out, cx_err *err)
{
    cx_str *paths = CX_ARENA_ARRAY(t->arena, cx_str, t->requested_count + 1);
    if (paths == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < t->requested_count; i++)
        paths[i] = t->requested[i].path;
    qsort(paths, t->requested_count, sizeof *paths, compare_paths);
    out->taken = paths;
    out->taken_count = t->requested_count;
    out->ok = true;
    return CX_SUCCESS;
}

cx_status cx_run_lock_acquire(const cx_run_store *store, const cx_run_lock_request *request,
                              cx_arena *arena, cx_run_lock_result *out, cx_err *err)
{
    CX_ASSERT(request->path_count == 0 || request->paths != NULL);
    lock_acquisition t = {.request = request, .arena = arena};
    cx_run_lock_result result = {0};
    if (!cx_run_id_valid(request->run_id))
        return cx_fail(err, CX_E_USAGE, "a lock needs a run id, found '%.*s'",
                       (int)request->run_id.size, request->run_id.data);
    CX_TRY(name_requested_locks(&t, &result, err));
    if (result.invalid_count != 0 || t.requested_count == 0) {
        *out = result;
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_locks_open(&t.locks, store, true, arena, err));
    cx_status status = find_conflicts(&t, err);
    if (!cx_failed(status) && t.conflict_count == 0) {
        status = write_locks(&t, err);
        if (!cx_failed(status))
            status = list_taken_paths(&t, &result, err);
        result.passed_count = t.request->shares_in_run ? count_passed(&t) : 0;
        result.reclaimed = t.reclaimed;
        result.reclaimed_why = t.why;
        result.reclaimed_count = t.reclaimed_count;
    }
    result.conflicts = t.conflicts;
    result.conflict_count = t.conflict_count;
    cx_run_locks_close(&t.locks);
    if (!cx_failed(status))
        *out = result;
    return status;
}

cx_status cx_run_lock_release(const cx_run_store *store, cx_str run_id, cx_str task_id,
                              cx_arena *arena, cx_str **out_paths, size_t *out_count, cx_err *err)
{
    cx_run_locks locks;
    CX_TRY(cx_run_locks_open(&locks, store, true, arena, err));
    cx_str *paths = CX_ARENA_ARRAY(arena, cx_str, locks.count + 1);
    size_t count = 0;
    cx_status status = paths == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    for (size_t i = 0; i < locks.count && !cx_failed(status); i++) {
        if (!is_lock_of(&locks.list[i], run_id, task_id) || run_id.size == 0)
            continue;
        paths[count++] = locks.list[i].path;
        status = cx_run_locks_remove(&locks, &locks.list[i], err);
    }
    cx_run_locks_close(&locks);
    if (!cx_failed(status)) {
        *out_paths = paths;
        *out_count = count;
    }
    return status;
}

cx_status cx_run_lock_renew(const cx_run_store *store, cx_str run_id, size_t expected, cx_err *err)
{
    cx_run_locks locks;
    cx_run_owner self;
    cx_arena arena;
    char now[28];
    size_t count = 0;
    cx_arena_init(&arena, store->alloc, 0);
    cx_status status = cx_run_owner_self(&arena, &self, err);
    if (!cx_failed(status))
        status = cx_run_locks_open(&locks, store, true, &arena, err);
    if (cx_failed(status)) {
        cx_arena_done(&arena);
        return status;
    }
    cx_run_time_text((int64_t)store->io->wall_ns(store->io), now);
    for (size_t i = 0; i < locks.count && !cx_failed(status); i++) {
        cx_run_lock *lock = &locks.list[i];
        if (!is_lock_of(lock, run_id, CX_STR("")) || lock->owner.pid != self.pid ||
            lock->owner.start_time != self.start_time)
            continue;
        lock->renewed_at = cx_str_z(now);
        status = cx_run_locks_write(&locks, lock, true, err);
        count++;
    }
    cx_run_locks_close(&locks);
    cx_arena_done(&arena);
    if (!cx_failed(status) && count < expected)
        status = cx_fail(err, CX_E_CONFLICT, "%zu of %zu locks of run %.*s no longer exist",
                         expected - count, expected, (int)run_id.size, run_id.data);
    return status;
}

/* --- periodic renewal ------------------------------------------------------------------------- */

#define KEEP_LOOK_MS 500

static void renew_periodically(void *arg)
{
    cx_run_lock_renewer *keeper = arg;
    const cx_io *io = keeper->store.io;
    uint64_t every = keeper->ttl_sec * UINT64_C(1000000000) / 3;
    uint64_t next = io->monotonic_ns(io) + every;
    cx_lock_enter(&keeper->lock);
    while (!keeper->stopping && !keeper->lost) {
        cx_lock_wait_for(&keeper->lock, KEEP_LOOK_MS);
        if (keeper->stopping || io->monotonic_ns(io) < next)
            continue;
        next += every;
        size_t expected = keeper->expected;
        cx_lock_leave(&keeper->lock);
        cx_status renewed =
            cx_run_lock_renew(&keeper->store, cx_str_z(keeper->run_id), expected, NULL);
        cx_lock_enter(&keeper->lock);
        /* Some may have been released meanwhile; then the next renewal decides. */
        keeper->lost = cx_failed(renewed) && expected <= keeper->expected;
    }
    cx_lock_leave(&keeper->lock);
}

cx_status cx_run_lock_renewer_start(cx_run_lock_renewer *keeper, const cx_run_store *store,
                                    cx_str run_id, size_t expected, uint64_t ttl_sec, cx_err *err)
{
    if (!cx_run_id_valid(run_id))
        return cx_fail(err, CX_E_USAGE, "'%.*s' is not a run id", (int)run_id.size, run_id.data);
    memset(keeper, 0, sizeof *keeper);
    keeper->store = *store;
    memcpy(keeper->run_id, run_id.data, run_id.size);
    keeper->expected = expected;
    keeper->ttl_sec = ttl_sec == 0 ? CX_RUN_LOCK_TTL_SEC : ttl_sec;
    cx_lock_init(&keeper->lock);
    keeper->started = cx_thread_start(&keeper->thread, renew_periodically, keeper);
    if (!keeper->started) {
        cx_lock_done(&keeper->lock);
        return cx_fail(err, CX_E_LIMIT, "no thread could be started to renew locks");
    }
    return CX_SUCCESS;
}

void cx_run_lock_renewer_expect_more(cx_run_lock_renewer *keeper, size_t count)
{
    if (!keeper->started)
        return;
    cx_lock_enter(&keeper->lock);
    keeper->expected += count;
    cx_lock_leave(&keeper->lock);
}

void cx_run_lock_renewer_expect_fewer(cx_run_lock_renewer *keeper, size_t count)
{
    if (!keeper->started)
        return;
    cx_lock_enter(&keeper->lock);
    CX_ASSERT(count <= keeper->expected);
    keeper->expected -= count;
    cx_lock_leave(&keeper->lock);
}

bool cx_run_lock_renewer_ok(cx_run_lock_renewer *keeper)
{
    if (!keeper->started)
        return true;
    cx_lock_enter(&keeper->lock);
    bool kept = !keeper->lost;
    cx_lock_leave(&keeper->lock);
    return kept;
}

void cx_run_lock_renewer_stop(cx_run_lock_renewer *keeper)
{
    if (!keeper->started)
        return;
    cx_lock_enter(&keeper->lock);
    keeper->stopping = true;
    cx_lock_wake(&keeper->lock);
    cx_lock_leave(&keeper->lock);
    cx_thread_join(&keeper->thread);
    cx_lock_done(&keeper->lock);
    keeper->started = false;
}

/* --- listing, and removing by force ----------------------------------------------------------- */

static cx_status judge_locks(cx_run_locks *locks, cx_run_lock_reason **out, cx_err *err)
{
    *out = CX_ARENA_ARRAY(locks->arena, cx_run_lock_reason, locks->count + 1);
    if (*out == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < locks->count; i++)
        (*out)[i] = cx_run_locks_classify(locks, &locks->list[i]);
    return CX_SUCCESS;
}

cx_status cx_run_lock_list(const cx_run_store *store, cx_arena *arena, cx_run_lock **out,
                           cx_run_lock_reason **out_reasons, size_t *out_count, cx_err *err)
{
    cx_run_locks locks;
    cx_status status = cx_run_locks_open(&locks, store, false, arena, err);
    if (status.code == CX_E_NOT_FOUND) { /* no run has created the folder yet */
        *out_count = 0;
        return CX_SUCCESS;
    }
    CX_TRY(status);
    status = judge_locks(&locks, out_reasons, err);
    cx_run_locks_close(&locks);
    if (!cx_failed(status)) {
        *out = locks.list;
        *out_count = locks.count;
    }
    return status;
}

cx_status cx_run_lock_reclaim(const cx_run_store *store, cx_arena *arena, cx_run_lock **out,
                              cx_run_lock_reason **out_reasons, size_t *out_count, cx_err *err)
{
    cx_run_locks locks;
    cx_run_lock_reason *reasons = NULL;
    size_t count = 0;
    CX_TRY(cx_run_locks_open(&locks, store, true, arena, err));
    cx_status status = judge_locks(&locks, &reasons, err);
    for (size_t i = 0; i < locks.count && !cx_failed(status); i++) {
        if (!cx_run_lock_stale(reasons[i]))
            continue;
        status = cx_run_locks_remove(&locks, &locks.list[i], err);
        locks.list[count] = locks.list[i];
        reasons[count++] = reasons[i];
    }
    cx_run_locks_close(&locks);
    if (!cx_failed(status)) {
        *out = locks.list;
        *out_reasons = reasons;
        *out_count = count;
    }
    return status;
}

cx_status cx_run_lock_force(const cx_run_store *store, cx_str path, cx_arena *arena,
                            cx_run_lock *out, cx_err *err)
{
    cx_run_locks locks;
    cx_str normal;
    cx_digest key;
    CX_TRY(cx_run_lock_name(path, arena, &normal, &key, err));
    CX_TRY(cx_run_locks_open(&locks, store, true, arena, err));
    cx_status status =
        cx_fail(err, CX_E_NOT_FOUND, "no run holds a lock on %.*s", (int)normal.size, normal.data);
    for (size_t i = 0; i < locks.count; i++) {
        if (!cx_digest_eq(&locks.list[i].key, &key))
            continue;
        *out = locks.list[i];
        status = cx_run_locks_remove(&locks, &locks.list[i], err);
        break;
    }
    cx_run_locks_close(&locks);
    return status;
}
