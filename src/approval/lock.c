/*
 * lock.c - the files of locks: names, classification, reading and writing (run.md §11).
 *
 * Invariants L1, L2 and L3: lock.h.
 */
#include "approval/lock.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/api.h"
#include "crypto/api.h"
#include "rules/api.h"
#include "approval/lock_internal.h"

#define MUTEX_WAIT_MS 30000
#define LOCK_BYTES_MAX 65536

/* --- names ------------------------------------------------------------------------------------ */

cx_status cx_run_lock_name(cx_str path, cx_arena *arena, cx_str *out_normalized, cx_digest *out_key,
                           cx_err *err)
{
    const char *rule = cx_run_path_lint(path, NULL);
    if (rule != NULL)
        return cx_fail(err, CX_E_FORMAT, "'%.*s' cannot be locked: it %s (%s)",
                       (int)(path.size > 200 ? 200 : path.size), path.data,
                       cx_run_path_rule_text(rule), rule);
    cx_str normal = cx_run_path_normal(path, arena);
    if (normal.data == NULL)
        return cx_fail_nomem(err);
    *out_normalized = normal;
    *out_key = cx_digest_of(cx_str_bytes(normal));
    return CX_SUCCESS;
}

void cx_run_lock_file_name(const cx_digest *key, char out[CX_RUN_LOCK_NAME_SIZE])
{
    cx_hex_encode(cx_bytes_from(key->bytes, sizeof key->bytes), out);
    memcpy(out + 64, ".lock", 6);
}

/* --- stale ------------------------------------------------------------------------------------ */

cx_run_lock_reason cx_run_lock_classify(bool finished, cx_run_owner_state owner, uint64_t age_sec,
                                        uint64_t ttl_sec)
{
    bool expired = ttl_sec > 0 && age_sec > ttl_sec;
    if (finished)
        return CX_RUN_LOCK_RUN_FINISHED;
    switch (owner) {
    case CX_RUN_OWNER_DEAD: return CX_RUN_LOCK_OWNER_DEAD;
    case CX_RUN_OWNER_ELSEWHERE: return expired ? CX_RUN_LOCK_LEASE_EXPIRED : CX_RUN_LOCK_VALID;
    case CX_RUN_OWNER_ALIVE: break;
    }
    return expired ? CX_RUN_LOCK_OVERDUE : CX_RUN_LOCK_VALID;
}

bool cx_run_lock_stale(cx_run_lock_reason reason)
{
    return reason >= CX_RUN_LOCK_RUN_FINISHED;
}

const char *cx_run_lock_reason_name(cx_run_lock_reason reason)
{
    static const char *const names[] = {"", "overdue", "run_finished", "owner_dead",
                                        "lease_expired"};
    CX_ASSERT((size_t)reason < CX_COUNT_OF(names));
    return names[reason];
}

/* --- reading ---------------------------------------------------------------------------------- */

bool cx_run_lock_parse(const cx_json *value, cx_run_lock *out)
{
    const cx_json *pid = CX_JSON_GET(value, "pid"), *start = CX_JSON_GET(value, "start_time");
    const cx_json *ttl = CX_JSON_GET(value, "ttl_sec");
    cx_run_lock lock = {
        .run_id = CX_JSON_GET_STR(value, "run_id"),
        .task_id = CX_JSON_GET_STR(value, "task_id"),
        .path = CX_JSON_GET_STR(value, "path"),
        .owner = {.host = CX_JSON_GET_STR(value, "host"),
                  .boot_id = CX_JSON_GET_STR(value, "boot_id")},
        .acquired_at = CX_JSON_GET_STR(value, "acquired_at"),
        .renewed_at = CX_JSON_GET_STR(value, "renewed_at"),
        .content = *value,
    };
    if (!cx_run_id_valid(lock.run_id) || lock.task_id.data == NULL || lock.path.data == NULL ||
        lock.owner.host.data == NULL || lock.owner.boot_id.data == NULL ||
        lock.acquired_at.data == NULL || lock.renewed_at.size != 27 || pid == NULL ||
        start == NULL || ttl == NULL || !cx_json_uint64(pid, &lock.owner.pid) ||
        !cx_json_uint64(start, &lock.owner.start_time) || !cx_json_uint64(ttl, &lock.ttl_sec))
        return false;
    *out = lock;
    return true;
}

static bool is_lock_name(const char *name)
{
    cx_digest key;
    cx_str text = cx_str_z(name);
    return text.size == CX_RUN_LOCK_NAME_SIZE - 1 && cx_str_ends(text, CX_STR(".lock")) &&
           cx_digest_parse(cx_str_from(name, 64), &key);
}

typedef struct name_list {
    cx_arena *arena;
    CX_VEC(cx_str) list;
    bool failed, too_many;
} name_list;

static bool collect_lock_name(void *arg, const char *name)
{
    name_list *all = arg;
    if (!is_lock_name(name))
        return true;
    all->too_many = all->list.count >= CX_RUN_LOCKS_MAX;
    cx_str *slot = all->too_many ? NULL : cx_vec_push(&all->list, all->arena->alloc);
    if (slot != NULL)
        *slot = cx_arena_copy_str(all->arena, cx_str_z(name));
    all->failed = slot == NULL || slot->data == NULL;
    return !all->failed;
}

/* Reads one lock file; an invalid one gets an empty run id. */
static cx_status read_lock(cx_run_locks *locks, cx_str name, cx_run_lock *out, bool *out_found,
                           cx_err *err)
{
    cx_buf text;
    cx_json value;
    *out = (cx_run_lock){.path = name};
    *out_found = true;
    cx_buf_init(&text, locks->store->alloc);
    cx_status status = cx_folder_read_file(locks->folder, name.data, LOCK_BYTES_MAX, &text, err);
    if (status.code == CX_E_NOT_FOUND) {
        *out_found = false;
        status = CX_SUCCESS;
    } else if (status.code == CX_E_LIMIT || status.code == CX_E_DENIED) {
        status = CX_SUCCESS; /* not a valid lock: listed with an empty run id */
    } else if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(locks->arena, cx_buf_str(&text));
        if (copy.data == NULL)
            status = cx_fail_nomem(err);
        else if (!cx_failed(cx_run_json_read(copy, LOCK_BYTES_MAX, locks->arena, &value, NULL)))
            (void)cx_run_lock_parse(&value, out);
    }
    cx_buf_done(&text);
    if (!cx_failed(status) && *out_found)
        (void)cx_digest_parse(cx_str_from(name.data, 64), &out->key);
    return status;
}

static int compare_lock_paths(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_run_lock *)a)->path, ((const cx_run_lock *)b)->path);
}

/* All lock files, sorted by path. */
static cx_status read_locks(cx_run_locks *locks, cx_err *err)
{
    name_list all = {.arena = locks->arena};
    cx_status status = cx_folder_list(locks->folder, "", collect_lock_name, &all, err);
    if (!cx_failed(status) && all.too_many)
        status = cx_fail(err, CX_E_LIMIT, "%s/locks holds more than %d locks", locks->store->root,
                         CX_RUN_LOCKS_MAX);
    else if (!cx_failed(status) && all.failed)
        status = cx_fail_nomem(err);
    locks->list = CX_ARENA_ARRAY(locks->arena, cx_run_lock, all.list.count + 1);
    locks->count = 0;
    if (!cx_failed(status) && locks->list == NULL)
        status = cx_fail_nomem(err);
    for (size_t i = 0; i < all.list.count && !cx_failed(status); i++) {
        bool found;
        status = read_lock(locks, all.list.items[i], &locks->list[locks->count], &found, err);
        locks->count += found;
    }
    if (!cx_failed(status) && locks->count != 0)
        qsort(locks->list, locks->count, sizeof *locks->list, compare_lock_paths);
    cx_vec_done(&all.list, locks->arena->alloc);
    return status;
}

cx_status cx_run_locks_open(cx_run_locks *locks, const cx_run_store *store, bool change,
                            cx_arena *arena, cx_err *err)
{
    *locks = (cx_run_locks){
        .store = store, .arena = arena, .mutex = CX_FILE_NONE, .folder = CX_FILE_NONE};
    cx_str folder = cx_run_store_path(store, arena, "locks", CX_STR(""));
    cx_str mutex = cx_run_store_path(store, arena, "locks", CX_STR(".mutex"));
    cx_status status;
    if (folder.data == NULL || mutex.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY_GOTO(status, cx_folder_open(folder.data, &locks->folder, err));
    if (change)
        CX_TRY_GOTO(status, cx_flock_acquire(mutex.data, MUTEX_WAIT_MS, &locks->mutex, err));
    status = read_locks(locks, err);
done:
    if (cx_failed(status))
        cx_run_locks_close(locks);
    return status;
}

void cx_run_locks_close(cx_run_locks *locks)
{
    cx_flock_release(locks->mutex);
    cx_folder_close(locks->folder);
    locks->mutex = locks->folder = CX_FILE_NONE;
}

/* --- classifying locks ------------------------------------------------------------------------ */

/* Whether the run's manifest says SUCCESS or FAILURE. */
static bool is_run_finished(const cx_run_locks *locks, cx_str run_id)
{
    cx_arena arena;
    cx_buf text;
    cx_json manifest;
    bool finished = false;
    cx_arena_init(&arena, locks->store->alloc, 0);
    cx_buf_init(&text, locks->store->alloc);
    cx_str path = cx_run_store_path(locks->store, &arena, "runs", run_id);
    if (path.data != NULL)
        path = cx_arena_printf(&arena, "%s/manifest.json", path.data);
    if (path.data != NULL &&
        !cx_failed(
            cx_io_read_file(locks->store->io, path.data, CX_RUN_JSON_BYTES_MAX, &text, NULL)) &&
        !cx_failed(cx_run_json_read(cx_buf_str(&text), 0, &arena, &manifest, NULL))) {
        cx_str status = CX_JSON_GET_STR(&manifest, "status");
        finished = cx_str_is(status, "SUCCESS") || cx_str_is(status, "FAILURE");
    }
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return finished;
}

cx_run_lock_reason cx_run_locks_classify(const cx_run_locks *locks, const cx_run_lock *lock)
{
    int64_t renewed, now = (int64_t)locks->store->io->wall_ns(locks->store->io);
    if (lock->run_id.size == 0)
        return CX_RUN_LOCK_VALID;
    /* A malformed time counts as not expired. */
    uint64_t age = 0;
    if (cx_run_time_parse(lock->renewed_at, &renewed) && now > renewed)
        age = (uint64_t)(now - renewed) / 1000000000;
    return cx_run_lock_classify(is_run_finished(locks, lock->run_id),
                                cx_run_owner_state_of(&lock->owner), age, lock->ttl_sec);
}

cx_status cx_run_locks_remove(cx_run_locks *locks, const cx_run_lock *lock, cx_err *err)
{
    CX_ASSERT(locks->mutex != CX_FILE_NONE); /* L1 */
    char name[CX_RUN_LOCK_NAME_SIZE];
    cx_run_lock_file_name(&lock->key, name);
    cx_status status = cx_folder_remove(locks->folder, name, err);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

/* --- writing ---------------------------------------------------------------------------------- */

cx_status cx_run_locks_write(cx_run_locks *locks, const cx_run_lock *lock, bool replace,
                             cx_err *err)
{
    CX_ASSERT(locks->mutex != CX_FILE_NONE); /* L1 */
    char name[CX_RUN_LOCK_NAME_SIZE];
    cx_facts facts;
    cx_buf text;
    cx_json value;
    cx_arena *arena = locks->arena;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("run_id"), cx_json_make_str(lock->run_id));
    cx_json_list_put(&list, CX_STR("task_id"), cx_json_make_str(lock->task_id));
    cx_json_list_put(&list, CX_STR("path"), cx_json_make_str(lock->path));
    cx_json_list_put(&list, CX_STR("pid"), cx_json_make_uint(arena, lock->owner.pid));
    cx_json_list_put(&list, CX_STR("start_time"), cx_json_make_uint(arena, lock->owner.start_time));
    cx_json_list_put(&list, CX_STR("boot_id"), cx_json_make_str(lock->owner.boot_id));
    cx_json_list_put(&list, CX_STR("host"), cx_json_make_str(lock->owner.host));
    cx_json_list_put(&list, CX_STR("acquired_at"), cx_json_make_str(lock->acquired_at));
    cx_json_list_put(&list, CX_STR("renewed_at"), cx_json_make_str(lock->renewed_at));
    cx_json_list_put(&list, CX_STR("ttl_sec"), cx_json_make_uint(arena, lock->ttl_sec));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    cx_run_lock_file_name(&lock->key, name);
    bool exists = !cx_failed(cx_folder_facts(locks->folder, name, &facts, NULL));
    if (exists != replace) /* under the mutex no process can interfere: O_EXCL in two steps */
        return cx_fail(err, replace ? CX_E_CONFLICT : CX_E_EXISTS,
                       replace ? "the lock on %.*s no longer exists" : "%.*s is locked already",
                       (int)lock->path.size, lock->path.data);
    cx_buf_init(&text, locks->store->alloc);
    cx_status status = cx_run_json_write(&text, &value, err);
    if (!cx_failed(status))
        status =
            cx_run_write_file_in(locks->store->io, locks->folder, name, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}
