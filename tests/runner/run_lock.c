/*
 * run_lock.c - lock.json: names of locks, taking them all or none, which are stale (run.md §11).
 */
#include "approval/lock.h"
#include "tests/runner/run_answers.h"
#include "tests/support/folder.h"

static cx_status name_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str path, normal;
    cx_digest key;
    cx_json_list list = cx_json_list_begin(&r->arena);
    CX_TRY(runner_text(item, "path", &path, err));
    cx_status status = cx_run_lock_name(path, &r->arena, &normal, &key, err);
    if (status.code == CX_E_FORMAT) {
        cx_json_list_put(&list, CX_STR("invalid"), cx_json_make_bool(true));
    } else {
        cx_json sha256;
        CX_TRY(status);
        CX_TRY(runner_sha256(r, cx_str_bytes(normal), &sha256, err));
        cx_json_list_put(&list, CX_STR("normalized"), cx_json_make_str(normal));
        cx_json_list_put(&list, CX_STR("sha256"), sha256);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status texts_json(runner *r, const cx_str *texts, size_t count, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, cx_json_make_str(texts[i]));
    return cx_json_list_end_array(&list, out, err);
}

static cx_status acquire(runner *r, const cx_run_store *store, const cx_json *paths, cx_str run_id,
                         cx_run_lock_result *out, cx_err *err)
{
    cx_str *texts;
    CX_TRY(runner_texts(r, paths, &texts, err));
    cx_run_lock_request request = {
        .run_id = run_id, .task_id = CX_STR("task"), .paths = texts, .path_count = paths->count};
    return cx_run_lock_acquire(store, &request, &r->arena, out, err);
}

/* What the folder holds for the run afterwards. */
static cx_status mine_after(runner *r, const cx_run_store *store, cx_str run_id, cx_json *out,
                            cx_err *err)
{
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count;
    cx_json_list list = cx_json_list_begin(&r->arena);
    CX_TRY(cx_run_lock_list(store, &r->arena, &locks, &reasons, &count, err));
    for (size_t i = 0; i < count; i++)
        if (cx_str_eq(locks[i].run_id, run_id))
            cx_json_list_add(&list, cx_json_make_str(locks[i].path));
    return cx_json_list_end_array(&list, out, err);
}

static cx_status acquire_in(runner *r, const cx_run_store *store, const cx_json *item, cx_json *out,
                            cx_err *err)
{
    const cx_json *held, *request;
    cx_run_lock_result other, result;
    cx_json conflicts, mine;
    cx_json_list list = cx_json_list_begin(&r->arena);
    CX_TRY(runner_member(item, "held_by_other", CX_JSON_ARRAY, &held, err));
    CX_TRY(runner_member(item, "request", CX_JSON_ARRAY, &request, err));
    if (held->count != 0) {
        CX_TRY(acquire(r, store, held, CX_STR("run_other"), &other, err));
        if (!other.ok)
            return cx_fail(err, CX_E_FORMAT, "held_by_other cannot be locked");
    }
    CX_TRY(acquire(r, store, request, CX_STR("run_mine"), &result, err));
    cx_str *paths = CX_ARENA_ARRAY(&r->arena, cx_str, result.conflict_count + 1);
    if (paths == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < result.conflict_count; i++)
        paths[i] = result.conflicts[i].path;
    CX_TRY(texts_json(r, paths, result.conflict_count, &conflicts, err));
    CX_TRY(mine_after(r, store, CX_STR("run_mine"), &mine, err));
    cx_json_list_put(&list, CX_STR("ok"), cx_json_make_bool(result.ok));
    cx_json_list_put(&list, CX_STR("conflicts"), conflicts);
    cx_json_list_put(&list, CX_STR("mine_after"), mine);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status acquire_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    char root[FOLDER_PATH_SIZE];
    cx_run_store store;
    folder_fresh(root, "run_lock");
    cx_status status = cx_run_store_open(&store, root, true, NULL, NULL, err);
    if (!cx_failed(status))
        status = acquire_in(r, &store, item, out, err);
    folder_remove(root);
    return status;
}

static cx_status stale_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const struct {
        const char *name;
        cx_run_owner_state state;
    } owners[] = {{"alive", CX_RUN_OWNER_ALIVE},         {"pid_gone", CX_RUN_OWNER_DEAD},
                  {"pid_reused", CX_RUN_OWNER_DEAD},     {"other_boot", CX_RUN_OWNER_DEAD},
                  {"other_boot_id", CX_RUN_OWNER_DEAD},  {"rebooted", CX_RUN_OWNER_DEAD},
                  {"other_host", CX_RUN_OWNER_ELSEWHERE}};
    const cx_json *age, *ttl;
    cx_str owner, status = CX_JSON_GET_STR(item, "run_status");
    uint64_t age_sec, ttl_sec;
    cx_json_list list = cx_json_list_begin(&r->arena);
    CX_TRY(runner_text(item, "owner", &owner, err));
    CX_TRY(runner_member(item, "age_sec", CX_JSON_INT, &age, err));
    CX_TRY(runner_member(item, "ttl_sec", CX_JSON_INT, &ttl, err));
    if (!cx_json_uint64(age, &age_sec) || !cx_json_uint64(ttl, &ttl_sec))
        return cx_fail(err, CX_E_FORMAT, "an age of the case is negative");
    for (size_t i = 0; i < CX_COUNT_OF(owners); i++) {
        if (!cx_str_is(owner, owners[i].name))
            continue;
        bool finished = cx_str_is(status, "SUCCESS") || cx_str_is(status, "FAILURE");
        cx_run_lock_reason reason =
            cx_run_lock_classify(finished, owners[i].state, age_sec, ttl_sec);
        cx_json_list_put(&list, CX_STR("stale"), cx_json_make_bool(cx_run_lock_stale(reason)));
        cx_json_list_put(&list, CX_STR("reason"),
                         cx_json_make_str(cx_str_z(cx_run_lock_reason_name(reason))));
        return cx_json_list_end_object(&list, out, err);
    }
    return cx_fail(err, CX_E_FORMAT, "the case has an unknown owner");
}

cx_status run_lock_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str kind;
    CX_TRY(runner_text(item, "kind", &kind, err));
    if (cx_str_is(kind, "name"))
        return name_got(r, item, out, err);
    if (cx_str_is(kind, "acquire"))
        return acquire_got(r, item, out, err);
    if (cx_str_is(kind, "stale"))
        return stale_got(r, item, out, err);
    return cx_fail(err, CX_E_UNSUPPORTED, "unknown kind of case");
}
