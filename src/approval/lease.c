/*
 * lease.c - the table of the runs of a fleet: read, decided on, written.
 *
 * Invariants E1 to E4: lease.h.
 *
 *     {"runs":[{"boot_id","host","locks":[{"acquired_at","path","task_id"}],"merge":{"commit","ref"}
 *      or null,"opened_at","pid","renewed_at","run_id","start_time","token","ttl_sec",
 *      "contract_sha256" once it has locks}],
 *      "type":"cortex.run.leases.v1"}
 */
#include "approval/lease.h"

#include <stdlib.h>

#include "rules/api.h"

#define TYPE "cortex.run.leases.v1"

/* --- reading ---------------------------------------------------------------------------------- */

static bool read_uint(const cx_json *object, const char *name, uint64_t *out)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && cx_json_uint64(value, out);
}

static bool read_locks(const cx_json *value, cx_arena *arena, cx_run_lease *out, cx_err *err,
                       cx_status *status)
{
    const cx_json *locks = cx_json_get_typed(value, CX_STR("locks"), CX_JSON_ARRAY);
    if (locks == NULL || locks->count > CX_RUN_LOCKS_MAX)
        return false;
    out->locks = CX_ARENA_ARRAY(arena, cx_run_lease_lock, (size_t)locks->count + 1);
    if (out->locks == NULL) {
        *status = cx_fail_nomem(err);
        return false;
    }
    for (uint32_t i = 0; i < locks->count; i++) {
        cx_run_lease_lock lock = {.path = CX_JSON_GET_STR(&locks->items[i], "path"),
                                  .task_id = CX_JSON_GET_STR(&locks->items[i], "task_id"),
                                  .acquired_at = CX_JSON_GET_STR(&locks->items[i], "acquired_at")};
        if (lock.path.size == 0 || lock.task_id.data == NULL || lock.acquired_at.data == NULL)
            return false;
        out->locks[out->lock_count++] = lock;
    }
    return true;
}

static bool read_lease(const cx_json *value, cx_arena *arena, cx_run_lease *out, cx_err *err,
                       cx_status *status)
{
    const cx_json *merge = cx_json_get_typed(value, CX_STR("merge"), CX_JSON_OBJECT);
    int64_t time;
    *out = (cx_run_lease){.run_id = CX_JSON_GET_STR(value, "run_id"),
                          .owner = {.host = CX_JSON_GET_STR(value, "host"),
                                    .boot_id = CX_JSON_GET_STR(value, "boot_id")},
                          .opened_at = CX_JSON_GET_STR(value, "opened_at"),
                          .renewed_at = CX_JSON_GET_STR(value, "renewed_at"),
                          .contract_sha256 = CX_JSON_GET_STR(value, "contract_sha256")};
    if (merge != NULL) {
        out->merge_ref = CX_JSON_GET_STR(merge, "ref");
        out->merge_commit = CX_JSON_GET_STR(merge, "commit");
    }
    return cx_run_id_valid(out->run_id) && out->owner.host.data != NULL &&
           out->owner.boot_id.data != NULL && out->opened_at.data != NULL &&
           out->renewed_at.data != NULL && cx_run_time_parse(out->renewed_at, &time) &&
           read_uint(value, "token", &out->token) && read_uint(value, "pid", &out->owner.pid) &&
           read_uint(value, "start_time", &out->owner.start_time) &&
           read_uint(value, "ttl_sec", &out->ttl_sec) && read_locks(value, arena, out, err, status);
}

cx_status cx_run_leases_read(cx_bytes bytes, cx_arena *arena, cx_run_leases *out, cx_err *err)
{
    cx_json value;
    const cx_json *runs = NULL;
    cx_status status = CX_SUCCESS;
    *out = (cx_run_leases){.arena = arena};
    if (bytes.size != 0) {
        cx_str text = cx_arena_copy_str(arena, cx_bytes_str(bytes));
        if (text.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_run_json_read(text, CX_RUN_LEASES_BYTES_MAX, arena, &value, err));
        runs = cx_json_get_typed(&value, CX_STR("runs"), CX_JSON_ARRAY);
        if (runs == NULL || !cx_str_is(CX_JSON_GET_STR(&value, "type"), TYPE) ||
            runs->count > CX_RUN_LEASES_MAX)
            return cx_fail(err, CX_E_FORMAT,
                           "the table of runs that go on is damaged, or of a newer version");
    }
    out->capacity = (runs == NULL ? 0 : (size_t)runs->count) + 1;
    out->list = CX_ARENA_ARRAY(arena, cx_run_lease, out->capacity);
    if (out->list == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; runs != NULL && i < runs->count; i++) {
        if (!read_lease(&runs->items[i], arena, &out->list[out->count], err, &status))
            return cx_failed(status)
                       ? status
                       : cx_fail(err, CX_E_FORMAT,
                                 "the table of runs that go on is damaged at run %u", (unsigned)i);
        out->count++;
    }
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(text));
}

static void add_lease(cx_json_list *runs, const cx_run_lease *lease, cx_arena *arena)
{
    cx_json_list run = cx_json_list_begin(arena), locks = cx_json_list_begin(arena);
    put_text(&run, "run_id", lease->run_id);
    cx_json_put_uint(&run, "token", lease->token);
    put_text(&run, "host", lease->owner.host);
    put_text(&run, "boot_id", lease->owner.boot_id);
    cx_json_put_uint(&run, "pid", lease->owner.pid);
    cx_json_put_uint(&run, "start_time", lease->owner.start_time);
    put_text(&run, "opened_at", lease->opened_at);
    put_text(&run, "renewed_at", lease->renewed_at);
    cx_json_put_uint(&run, "ttl_sec", lease->ttl_sec);
    for (size_t i = 0; i < lease->lock_count; i++) {
        cx_json_list lock = cx_json_list_begin(arena);
        put_text(&lock, "path", lease->locks[i].path);
        put_text(&lock, "task_id", lease->locks[i].task_id);
        put_text(&lock, "acquired_at", lease->locks[i].acquired_at);
        cx_json_add_object(&locks, &lock);
    }
    cx_json_put_array(&run, "locks", &locks);
    if (lease->contract_sha256.size != 0)
        put_text(&run, "contract_sha256", lease->contract_sha256);
    if (lease->merge_ref.size == 0) {
        cx_json_put_null(&run, "merge");
    } else {
        cx_json_list merge = cx_json_list_begin(arena);
        put_text(&merge, "ref", lease->merge_ref);
        put_text(&merge, "commit", lease->merge_commit);
        cx_json_put_object(&run, "merge", &merge);
    }
    cx_json_add_object(runs, &run);
}

cx_status cx_run_leases_write(const cx_run_leases *leases, cx_buf *out, cx_err *err)
{
    cx_json value;
    cx_json_list table = cx_json_list_begin(leases->arena);
    cx_json_list runs = cx_json_list_begin(leases->arena);
    for (size_t i = 0; i < leases->count; i++)
        add_lease(&runs, &leases->list[i], leases->arena);
    put_text(&table, "type", CX_STR(TYPE));
    cx_json_put_array(&table, "runs", &runs);
    CX_TRY(cx_json_list_end_object(&table, &value, err));
    cx_buf_clear(out);
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(out, err));
    return out->size <= CX_RUN_LEASES_BYTES_MAX
               ? CX_SUCCESS
               : cx_fail(err, CX_E_LIMIT,
                         "the runs that go on have more locks than fit into %u bytes: let some of "
                         "them end first",
                         (unsigned)CX_RUN_LEASES_BYTES_MAX);
}

/* --- runs ------------------------------------------------------------------------------------- */

cx_run_lease *cx_run_leases_find(const cx_run_leases *leases, cx_str run_id, uint64_t token)
{
    for (size_t i = 0; i < leases->count; i++)
        if (leases->list[i].token == token && cx_str_eq(leases->list[i].run_id, run_id))
            return &leases->list[i];
    return NULL;
}

cx_status cx_run_leases_add(cx_run_leases *leases, const cx_run_lease *lease, cx_err *err)
{
    for (size_t i = 0; i < leases->count; i++)
        if (cx_str_eq(leases->list[i].run_id, lease->run_id))
            return cx_fail(err, CX_E_EXISTS, "run %.*s goes on already", (int)lease->run_id.size,
                           lease->run_id.data);
    if (leases->count >= CX_RUN_LEASES_MAX)
        return cx_fail(err, CX_E_LIMIT,
                       "%d runs of this repository go on: 'cortex run cleanup --apply' ends those "
                       "of dead machines",
                       CX_RUN_LEASES_MAX);
    if (leases->count == leases->capacity) {
        size_t capacity = leases->capacity * 2 + 1;
        cx_run_lease *list = CX_ARENA_ARRAY(leases->arena, cx_run_lease, capacity);
        if (list == NULL)
            return cx_fail_nomem(err);
        if (leases->count != 0)
            memcpy(list, leases->list, leases->count * sizeof *list);
        leases->list = list;
        leases->capacity = capacity;
    }
    leases->list[leases->count++] = *lease;
    return CX_SUCCESS;
}

void cx_run_leases_remove(cx_run_leases *leases, cx_run_lease *lease)
{
    size_t index = (size_t)(lease - leases->list);
    CX_ASSERT(index < leases->count);
    memmove(lease, lease + 1, (leases->count - index - 1) * sizeof *lease);
    leases->count--;
}

/* E3.  Names of machines need not differ, so a process is only called dead by the start of the
 * machine that it was of. */
cx_run_lock_reason cx_run_lease_classify(const cx_run_lease *lease, int64_t now_ns)
{
    int64_t renewed;
    cx_run_owner self;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    bool ours = !cx_failed(cx_run_owner_self(&arena, &self, NULL)) && self.boot_id.size != 0 &&
                cx_str_eq(self.boot_id, lease->owner.boot_id) &&
                cx_str_eq(self.host, lease->owner.host);
    cx_arena_done(&arena);
    if (ours && cx_run_owner_state_of(&lease->owner) == CX_RUN_OWNER_DEAD)
        return CX_RUN_LOCK_OWNER_DEAD;
    if (lease->ttl_sec == 0 || !cx_run_time_parse(lease->renewed_at, &renewed) || now_ns <= renewed)
        return CX_RUN_LOCK_VALID;
    return (uint64_t)(now_ns - renewed) / UINT64_C(1000000000) > lease->ttl_sec
               ? CX_RUN_LOCK_LEASE_EXPIRED
               : CX_RUN_LOCK_VALID;
}

/* --- locks ------------------------------------------------------------------------------------ */

cx_status cx_run_lease_lock_view(const cx_run_lease *lease, size_t index, cx_arena *arena,
                                 cx_run_lock *out, cx_err *err)
{
    CX_ASSERT(index < lease->lock_count);
    const cx_run_lease_lock *lock = &lease->locks[index];
    cx_json_list content = cx_json_list_begin(arena);
    put_text(&content, "run_id", lease->run_id);
    put_text(&content, "task_id", lock->task_id);
    put_text(&content, "path", lock->path);
    put_text(&content, "acquired_at", lock->acquired_at);
    put_text(&content, "renewed_at", lease->renewed_at);
    cx_json_put_uint(&content, "ttl_sec", lease->ttl_sec);
    cx_json_put_uint(&content, "token", lease->token);
    *out = (cx_run_lock){.run_id = lease->run_id,
                         .task_id = lock->task_id,
                         .path = lock->path,
                         .owner = lease->owner,
                         .acquired_at = lock->acquired_at,
                         .renewed_at = lease->renewed_at,
                         .ttl_sec = lease->ttl_sec,
                         .key = cx_digest_of(cx_str_bytes(lock->path))};
    return cx_json_list_end_object(&content, &out->content, err);
}

typedef struct asking {
    cx_run_leases *leases;
    cx_run_lease *lease;
    const cx_run_lock_request *request;
    int64_t now_ns;
    cx_str *paths; /* normalised, no two alike */
    size_t path_count;
    cx_run_lock_result result;
    cx_run_lock *conflicts;
    CX_VEC(size_t) stale;
} asking;

static int compare_texts(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

static cx_status name_paths(asking *a, cx_err *err)
{
    const cx_run_lock_request *request = a->request;
    cx_arena *arena = a->leases->arena;
    cx_str *invalid = CX_ARENA_ARRAY(arena, cx_str, request->path_count + 1);
    a->paths = CX_ARENA_ARRAY(arena, cx_str, request->path_count + 1);
    if (invalid == NULL || a->paths == NULL)
        return cx_fail_nomem(err);
    if (request->path_count > CX_RUN_LOCKS_MAX)
        return cx_fail(err, CX_E_LIMIT, "%zu paths are to be locked, expected at most %d",
                       request->path_count, CX_RUN_LOCKS_MAX);
    for (size_t i = 0; i < request->path_count; i++) {
        cx_digest key;
        cx_status status =
            cx_run_lock_name(request->paths[i], arena, &a->paths[a->path_count], &key, err);
        if (status.code == CX_E_FORMAT)
            invalid[a->result.invalid_count++] = request->paths[i];
        else if (cx_failed(status))
            return status;
        else
            a->path_count++;
    }
    a->result.invalid = invalid;
    if (a->path_count != 0)
        qsort(a->paths, a->path_count, sizeof *a->paths, compare_texts);
    size_t kept = 0;
    for (size_t i = 0; i < a->path_count; i++)
        if (kept == 0 || !cx_str_eq(a->paths[kept - 1], a->paths[i]))
            a->paths[kept++] = a->paths[i];
    a->path_count = kept;
    return CX_SUCCESS;
}

static bool is_asked_for(const asking *a, cx_str path)
{
    for (size_t i = 0; i < a->path_count; i++)
        if (cx_run_path_overlap(path, a->paths[i], NULL) != CX_RUN_APART)
            return true;
    return false;
}

/* Whether a lock of the own run is on the way: the tasks of a run are kept apart by the governor
 * where it says so (shares_in_run). */
static bool is_own(const asking *a, const cx_run_lease *lease, const cx_run_lease_lock *lock)
{
    return lease == a->lease &&
           (a->request->shares_in_run || cx_str_eq(lock->task_id, a->request->task_id));
}

static cx_status find_conflicts(asking *a, cx_err *err)
{
    cx_run_leases *leases = a->leases;
    size_t total = 1;
    for (size_t r = 0; r < leases->count; r++)
        total += leases->list[r].lock_count;
    a->conflicts = CX_ARENA_ARRAY(leases->arena, cx_run_lock, total);
    if (a->conflicts == NULL)
        return cx_fail_nomem(err);
    for (size_t r = 0; r < leases->count; r++) {
        const cx_run_lease *other = &leases->list[r];
        bool stale =
            other != a->lease && cx_run_lock_stale(cx_run_lease_classify(other, a->now_ns));
        bool in_the_way = false;
        for (size_t i = 0; i < other->lock_count; i++) {
            if (is_own(a, other, &other->locks[i]) || !is_asked_for(a, other->locks[i].path))
                continue;
            in_the_way = true;
            if (!stale)
                CX_TRY(cx_run_lease_lock_view(other, i, leases->arena,
                                              &a->conflicts[a->result.conflict_count++], err));
        }
        if (!stale || !in_the_way)
            continue;
        size_t *slot = cx_vec_push(&a->stale, leases->arena->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = r;
    }
    return CX_SUCCESS;
}

/* The locks of the runs that are ended, for LOCK_RECLAIMED. */
static cx_status list_reclaimed(asking *a, cx_err *err)
{
    size_t count = 0, total = 1;
    for (size_t i = 0; i < a->stale.count; i++)
        total += a->leases->list[a->stale.items[i]].lock_count;
    cx_run_lock *locks = CX_ARENA_ARRAY(a->leases->arena, cx_run_lock, total);
    cx_run_lock_reason *why = CX_ARENA_ARRAY(a->leases->arena, cx_run_lock_reason, total);
    if (locks == NULL || why == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < a->stale.count; i++) {
        const cx_run_lease *lease = &a->leases->list[a->stale.items[i]];
        for (size_t k = 0; k < lease->lock_count; k++) {
            why[count] = cx_run_lease_classify(lease, a->now_ns);
            CX_TRY(cx_run_lease_lock_view(lease, k, a->leases->arena, &locks[count++], err));
        }
    }
    a->result.reclaimed = locks;
    a->result.reclaimed_why = why;
    a->result.reclaimed_count = count;
    return CX_SUCCESS;
}

/* One on the same path passes to the task that asks now. */
static cx_status add_locks(asking *a, cx_err *err)
{
    cx_run_lease *lease = a->lease;
    cx_arena *arena = a->leases->arena;
    char now[28];
    size_t old = lease->lock_count;
    cx_run_time_text(a->now_ns, now);
    cx_str time = cx_arena_copy_str(arena, cx_str_z(now));
    cx_str task = cx_arena_copy_str(arena, a->request->task_id);
    cx_run_lease_lock *locks = CX_ARENA_ARRAY(arena, cx_run_lease_lock, old + a->path_count + 1);
    if (time.data == NULL || task.data == NULL || locks == NULL)
        return cx_fail_nomem(err);
    if (old + a->path_count > CX_RUN_LOCKS_MAX)
        return cx_fail(err, CX_E_LIMIT, "a run would have %zu locks, expected at most %d",
                       old + a->path_count, CX_RUN_LOCKS_MAX);
    if (old != 0)
        memcpy(locks, lease->locks, old * sizeof *locks);
    for (size_t i = 0; i < a->path_count; i++) {
        size_t at = 0;
        while (at < lease->lock_count && !cx_str_eq(locks[at].path, a->paths[i]))
            at++;
        a->result.passed_count += at < old && a->request->shares_in_run;
        lease->lock_count += at == lease->lock_count;
        locks[at] = (cx_run_lease_lock){a->paths[i], task, time};
    }
    lease->locks = locks;
    lease->renewed_at = time;
    a->result.taken = a->paths;
    a->result.taken_count = a->path_count;
    a->result.ok = true;
    return CX_SUCCESS;
}

static cx_status ask_for_locks(asking *a, cx_err *err)
{
    CX_TRY(name_paths(a, err));
    if (a->result.invalid_count != 0 || a->path_count == 0)
        return CX_SUCCESS;
    CX_TRY(find_conflicts(a, err));
    a->result.conflicts = a->conflicts;
    if (a->result.conflict_count != 0)
        return CX_SUCCESS;
    CX_TRY(list_reclaimed(a, err));
    return add_locks(a, err);
}

cx_status cx_run_leases_acquire(cx_run_leases *leases, cx_run_lease *lease,
                                const cx_run_lock_request *request, int64_t now_ns,
                                cx_run_lock_result *out, size_t **out_stale,
                                size_t *out_stale_count, cx_err *err)
{
    asking a = {.leases = leases, .lease = lease, .request = request, .now_ns = now_ns};
    cx_status status = ask_for_locks(&a, err);
    size_t count = !cx_failed(status) && a.result.ok ? a.stale.count : 0;
    size_t *stale = CX_ARENA_ARRAY(leases->arena, size_t, count + 1);
    if (!cx_failed(status) && stale == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status)) {
        if (count != 0)
            memcpy(stale, a.stale.items, count * sizeof *stale);
        *out = a.result;
        *out_stale = stale;
        *out_stale_count = count;
    }
    cx_vec_done(&a.stale, leases->arena->alloc);
    return status;
}

bool cx_run_lease_release(cx_run_lease *lease, cx_str task_id)
{
    size_t kept = 0, before = lease->lock_count;
    for (size_t i = 0; i < before; i++)
        if (task_id.size != 0 && !cx_str_eq(lease->locks[i].task_id, task_id))
            lease->locks[kept++] = lease->locks[i];
    lease->lock_count = kept;
    return kept != before;
}
