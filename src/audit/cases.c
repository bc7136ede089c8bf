/*
 * cases.c - the files of workflow cases (cases.h); view_cases.c shows them.
 *
 *     {"version":"v1","case_id","key","intent","runner","requested_by","no_merge","state","note",
 *      "created_at","updated_at","plan_run_id","gate","reason","violations","contract_sha256",
 *      "preview","runs"}
 */
#include "audit/cases.h"

#include <stdlib.h>

#include "crypto/api.h"
#include "os/api.h"

#define FOLDER "cases"
#define KEYS FOLDER "/keys"
#define PREFIX "case_"
#define FILE_END ".json"
#define CONTRACT_END ".contract.json"
#define MUTEX_WAIT_MS 10000
#define CASE_BYTES_MAX ((size_t)4 << 20)

static const char *const state_names[] = {"QUEUED",  "PLANNING", "PLANNED",
                                          "REFUSED", "STARTED",  "CANCELLED"};

bool cx_run_case_id_valid(cx_str id)
{
    char run[CX_RUN_ID_SIZE];
    size_t skip = sizeof PREFIX - 1;
    if (id.size != CX_RUN_CASE_ID_SIZE - 1 || !cx_str_starts(id, CX_STR(PREFIX)))
        return false;
    memcpy(run, "run_", 4);
    memcpy(run + 4, id.data + skip, id.size - skip);
    return cx_run_id_is_made(cx_str_from(run, 4 + id.size - skip));
}

/* --- places ----------------------------------------------------------------------------------- */

static cx_status open_root(const cx_run_store *store, bool make, cx_file *out, cx_err *err)
{
    CX_TRY(cx_folder_open(store->root, out, err));
    cx_status status = make ? cx_folder_make_folders(*out, KEYS, 0700, err) : CX_SUCCESS;
    if (cx_failed(status))
        cx_folder_close(*out);
    return status;
}

static cx_status lock_file(const cx_run_store *store, const char *name, uint64_t wait_ms,
                           cx_arena *arena, cx_file *out, cx_err *err)
{
    cx_file root;
    cx_str path = cx_run_store_path(store, arena, FOLDER, cx_str_z(name));
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(open_root(store, true, &root, err));
    cx_folder_close(root);
    return cx_flock_acquire(path.data, wait_ms, out, err);
}

cx_status cx_run_cases_lock(const cx_run_store *store, cx_arena *arena, cx_file *out, cx_err *err)
{
    return lock_file(store, ".mutex", MUTEX_WAIT_MS, arena, out, err);
}

cx_status cx_run_cases_planner(const cx_run_store *store, cx_arena *arena, cx_file *out,
                               cx_err *err)
{
    return lock_file(store, ".planner", 0, arena, out, err);
}

cx_status cx_run_cases_starter(const cx_run_store *store, uint64_t wait_ms, cx_arena *arena,
                               cx_file *out, cx_err *err)
{
    return lock_file(store, ".starter", wait_ms, arena, out, err);
}

static cx_str hex_of(cx_bytes bytes, cx_arena *arena)
{
    char hex[65] = {0};
    const cx_digest digest = cx_digest_of(bytes);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    return cx_arena_copy_str(arena, cx_str_from(hex, 64));
}

static cx_str name_of(cx_str case_id, const char *end, cx_arena *arena)
{
    return cx_arena_printf(arena, FOLDER "/%.*s%s", (int)case_id.size, case_id.data, end);
}

static cx_status read_file(const cx_run_store *store, cx_str path, size_t most, cx_arena *arena,
                           cx_str *out, cx_err *err)
{
    cx_file root;
    cx_buf text;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(open_root(store, false, &root, err));
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_folder_read_file(root, path.data, most, &text, err);
    cx_folder_close(root);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status write_file(const cx_run_store *store, cx_str path, cx_bytes bytes, cx_err *err)
{
    cx_file root;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(open_root(store, true, &root, err));
    cx_status status = cx_run_write_file_in(store->io, root, path.data, bytes, err);
    cx_folder_close(root);
    return status;
}

/* --- one case --------------------------------------------------------------------------------- */

static cx_status set_time(const cx_run_store *store, cx_str *out, cx_arena *arena, cx_err *err)
{
    char text[28];
    cx_run_time_text((int64_t)store->io->wall_ns(store->io), text);
    *out = cx_arena_copy_str(arena, cx_str_z(text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void put_json(cx_json_list *object, const char *name, const cx_json *value,
                     cx_json_type type)
{
    cx_json_list empty = cx_json_list_begin(object->arena);
    if (value->type == type)
        cx_json_put(object, name, *value);
    else if (type == CX_JSON_ARRAY)
        cx_json_put_array(object, name, &empty);
    else
        cx_json_put_null(object, name);
}

cx_status cx_run_case_write(const cx_run_store *store, cx_run_case *one, cx_arena *arena,
                            cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    cx_buf text;
    CX_TRY(set_time(store, &one->updated_at, arena, err));
    cx_json_put_z(&object, "version", "v1");
    cx_json_put_utf8(&object, "case_id", one->case_id);
    cx_json_put_maybe(&object, "key", one->key);
    cx_json_put_utf8(&object, "intent", one->intent);
    cx_json_put_maybe(&object, "runner", one->runner);
    cx_json_put_maybe(&object, "requested_by", one->requested_by);
    cx_json_put_bool(&object, "no_merge", one->no_merge);
    cx_json_put_z(&object, "state", state_names[one->state]);
    cx_json_put_maybe(&object, "note", one->note);
    cx_json_put_utf8(&object, "created_at", one->created_at);
    cx_json_put_utf8(&object, "updated_at", one->updated_at);
    cx_json_put_maybe(&object, "plan_run_id", one->plan_run_id);
    cx_json_put_maybe(&object, "gate", one->gate);
    cx_json_put_maybe(&object, "reason", one->reason);
    put_json(&object, "violations", &one->violations, CX_JSON_ARRAY);
    cx_json_put_maybe(&object, "contract_sha256", one->contract_sha256);
    put_json(&object, "preview", &one->preview, CX_JSON_OBJECT);
    put_json(&object, "runs", &one->runs, CX_JSON_ARRAY);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_run_json_write(&text, &value, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status =
            write_file(store, name_of(one->case_id, FILE_END, arena), cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

static cx_str text_of(const cx_json *value, const char *name)
{
    cx_str text = cx_json_get_str(value, cx_str_z(name));
    return text.data == NULL ? CX_STR("") : text;
}

static cx_json list_of(const cx_json *value, const char *name)
{
    const cx_json *found = cx_json_get_typed(value, cx_str_z(name), CX_JSON_ARRAY);
    for (uint32_t i = 0; found != NULL && i < found->count; i++)
        if (found->items[i].type != CX_JSON_STRING)
            return cx_json_make_null();
    return found == NULL ? cx_json_make_null() : *found;
}

static cx_status no_case(cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoCase", CX_NO_OFFSET,
                      "no case has this id; GET /api/v1/cases lists them");
}

cx_status cx_run_case_read(const cx_run_store *store, cx_str case_id, cx_arena *arena,
                           cx_run_case *out, cx_err *err)
{
    cx_json value;
    cx_str text;
    size_t state = 0;
    if (!cx_run_case_id_valid(case_id))
        return no_case(err);
    cx_status status =
        read_file(store, name_of(case_id, FILE_END, arena), CASE_BYTES_MAX, arena, &text, err);
    if (status.code == CX_E_NOT_FOUND)
        return no_case(err);
    CX_TRY(status);
    CX_TRY(cx_run_json_read(text, 0, arena, &value, err));
    while (state < CX_COUNT_OF(state_names) &&
           !cx_str_is(text_of(&value, "state"), state_names[state]))
        state++;
    if (state == CX_COUNT_OF(state_names) || !cx_str_eq(text_of(&value, "case_id"), case_id))
        return cx_fail(err, CX_E_FORMAT, FOLDER "/%.*s.json below the runtime root is no case",
                       (int)case_id.size, case_id.data);
    const cx_json *no_merge = CX_JSON_GET(&value, "no_merge");
    const cx_json *preview = cx_json_get_typed(&value, CX_STR("preview"), CX_JSON_OBJECT);
    *out = (cx_run_case){
        .case_id = text_of(&value, "case_id"),
        .key = text_of(&value, "key"),
        .intent = text_of(&value, "intent"),
        .runner = text_of(&value, "runner"),
        .requested_by = text_of(&value, "requested_by"),
        .no_merge = no_merge != NULL && no_merge->type == CX_JSON_TRUE,
        .state = (cx_run_case_state)state,
        .note = text_of(&value, "note"),
        .created_at = text_of(&value, "created_at"),
        .updated_at = text_of(&value, "updated_at"),
        .plan_run_id = text_of(&value, "plan_run_id"),
        .gate = text_of(&value, "gate"),
        .reason = text_of(&value, "reason"),
        .violations = list_of(&value, "violations"),
        .contract_sha256 = text_of(&value, "contract_sha256"),
        .preview = preview == NULL ? cx_json_make_null() : *preview,
        .runs = list_of(&value, "runs"),
    };
    return CX_SUCCESS;
}

cx_status cx_run_case_write_contract(const cx_run_store *store, cx_run_case *one, cx_bytes contract,
                                     cx_arena *arena, cx_err *err)
{
    one->contract_sha256 = hex_of(contract, arena);
    if (one->contract_sha256.data == NULL)
        return cx_fail_nomem(err);
    return write_file(store, name_of(one->case_id, CONTRACT_END, arena), contract, err);
}

cx_status cx_run_case_contract(const cx_run_store *store, const cx_run_case *one, cx_arena *arena,
                               cx_bytes *out, cx_err *err)
{
    cx_str text;
    if (one->contract_sha256.size == 0)
        return cx_fail(err, CX_E_NOT_FOUND, "the case has no contract");
    CX_TRY(read_file(store, name_of(one->case_id, CONTRACT_END, arena), CX_RUN_JSON_BYTES_MAX,
                     arena, &text, err));
    *out = cx_str_bytes(text);
    cx_str hex = hex_of(*out, arena);
    if (hex.data == NULL)
        return cx_fail_nomem(err);
    return cx_str_eq(hex, one->contract_sha256)
               ? CX_SUCCESS
               : cx_fail(err, CX_E_CONFLICT,
                         "the case's contract is not the one that was planned: its file changed");
}

cx_status cx_run_case_add_run(cx_run_case *one, cx_str run_id, cx_arena *arena, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; one->runs.type == CX_JSON_ARRAY && i < one->runs.count; i++)
        cx_json_list_add(&list, one->runs.items[i]);
    cx_json_list_add(&list, cx_json_make_str(run_id));
    return cx_json_list_end_array(&list, &one->runs, err);
}

/* --- all of them ------------------------------------------------------------------------------ */

typedef struct ids {
    cx_arena *arena;
    CX_VEC(cx_str) list;
    bool failed;
} ids;

static bool add_case_id(void *arg, const char *name)
{
    ids *n = arg;
    cx_str text = cx_str_z(name);
    if (!cx_str_ends(text, CX_STR(FILE_END)))
        return true;
    text.size -= sizeof FILE_END - 1;
    if (!cx_run_case_id_valid(text))
        return true;
    cx_str *slot = cx_vec_push(&n->list, n->arena->alloc);
    if (slot == NULL || (*slot = cx_arena_copy_str(n->arena, text)).data == NULL)
        n->failed = true;
    return !n->failed;
}

static int by_id_descending(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)b, *(const cx_str *)a);
}

cx_status cx_run_case_list(const cx_run_store *store, cx_arena *arena, cx_str **out,
                           size_t *out_count, cx_err *err)
{
    ids found = {.arena = arena};
    cx_file root;
    CX_TRY(open_root(store, false, &root, err));
    cx_status status = cx_folder_list(root, FOLDER, add_case_id, &found, err);
    cx_folder_close(root);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
    *out = NULL;
    *out_count = found.list.count;
    if (!cx_failed(status)) {
        *out = CX_ARENA_ARRAY(arena, cx_str, found.list.count + 1);
        if (*out == NULL || found.failed)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status) && found.list.count != 0) {
        memcpy(*out, found.list.items, found.list.count * sizeof **out);
        qsort(*out, found.list.count, sizeof **out, by_id_descending);
    }
    cx_vec_done(&found.list, arena->alloc);
    return status;
}

/* What cannot be read is left out: it stops no other case. */
static cx_status find_queued(const cx_run_store *store, cx_arena *arena, cx_run_case *out_oldest,
                             size_t *out_queued, size_t *out_all, cx_err *err)
{
    cx_str *all;
    CX_TRY(cx_run_case_list(store, arena, &all, out_all, err));
    *out_queued = 0;
    for (size_t i = 0; i < *out_all; i++) {
        cx_run_case one;
        cx_status status = cx_run_case_read(store, all[i], arena, &one, err);
        if (status.code == CX_E_NOMEM)
            return status;
        if (cx_failed(status) || one.state != CX_CASE_QUEUED)
            continue;
        if (*out_queued == 0 || cx_str_cmp(one.created_at, out_oldest->created_at) < 0)
            *out_oldest = one; /* ids tell seconds apart, no less */
        ++*out_queued;
    }
    return CX_SUCCESS;
}

cx_status cx_run_case_next(const cx_run_store *store, cx_arena *arena, cx_run_case *out,
                           cx_err *err)
{
    size_t queued, all;
    CX_TRY(find_queued(store, arena, out, &queued, &all, err));
    return queued == 0 ? cx_fail(err, CX_E_NOT_FOUND, "no case is queued") : CX_SUCCESS;
}

/* --- queueing --------------------------------------------------------------------------------- */

static cx_str key_file(cx_str key, cx_arena *arena)
{
    cx_str hex = hex_of(cx_str_bytes(key), arena);
    return hex.data == NULL ? hex : cx_arena_printf(arena, KEYS "/%.*s", (int)hex.size, hex.data);
}

/* `*out_found`: the key made a case before, which is the same request. */
static cx_status find_by_key(const cx_run_store *store, const cx_run_case *asked, cx_arena *arena,
                             cx_run_case *out, bool *out_found, cx_err *err)
{
    cx_str id;
    *out_found = false;
    if (asked->key.size == 0)
        return CX_SUCCESS;
    cx_status status =
        read_file(store, key_file(asked->key, arena), CX_RUN_CASE_ID_SIZE, arena, &id, err);
    if (!cx_failed(status))
        status = cx_run_case_read(store, id, arena, out, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    *out_found = true;
    return cx_str_eq(out->intent, asked->intent) && cx_str_eq(out->runner, asked->runner) &&
                   out->no_merge == asked->no_merge
               ? CX_SUCCESS
               : cx_fail(
                     err, CX_E_CONFLICT,
                     "this key made %.*s, of another request: send a new key with a new request",
                     (int)out->case_id.size, out->case_id.data);
}

static cx_status check_room(const cx_run_store *store, cx_arena *arena, cx_err *err)
{
    cx_run_case oldest;
    size_t queued, all;
    CX_TRY(find_queued(store, arena, &oldest, &queued, &all, err));
    if (queued >= CX_RUN_CASES_QUEUED)
        return cx_fail_at(err, CX_E_LIMIT, "PendingFull", CX_NO_OFFSET,
                          "%d requests wait for a planner: try again when some are planned, or "
                          "cancel one",
                          CX_RUN_CASES_QUEUED);
    if (all >= CX_RUN_CASES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "PendingFull", CX_NO_OFFSET,
                          "the runtime root has %d cases: move old files of its folder cases away",
                          CX_RUN_CASES_MAX);
    return CX_SUCCESS;
}

static cx_status make_case(const cx_run_store *store, const cx_run_case *asked, cx_arena *arena,
                           cx_run_case *out, cx_err *err)
{
    char id[CX_RUN_ID_SIZE];
    CX_TRY(cx_run_id_make(store->io, id, err));
    *out = (cx_run_case){
        .case_id = cx_arena_printf(arena, PREFIX "%s", id + strlen("run_")),
        .key = asked->key,
        .intent = asked->intent,
        .runner = asked->runner,
        .requested_by = asked->requested_by,
        .no_merge = asked->no_merge,
        .state = CX_CASE_QUEUED,
        .violations = cx_json_make_null(),
        .preview = cx_json_make_null(),
        .runs = cx_json_make_null(),
    };
    if (out->case_id.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(set_time(store, &out->created_at, arena, err));
    /* The key first: a crash in between leaves a key of no case, which makes one later. */
    if (asked->key.size != 0)
        CX_TRY(write_file(store, key_file(asked->key, arena), cx_str_bytes(out->case_id), err));
    return cx_run_case_write(store, out, arena, err);
}

cx_status cx_run_case_add(const cx_run_store *store, const cx_run_case *asked, cx_arena *arena,
                          cx_run_case *out, bool *out_new, cx_err *err)
{
    CX_ASSERT(store != NULL && asked->intent.size != 0 && out != NULL);
    cx_file mutex;
    bool found;
    CX_TRY(cx_run_cases_lock(store, arena, &mutex, err));
    cx_status status = find_by_key(store, asked, arena, out, &found, err);
    *out_new = !found;
    if (!cx_failed(status) && !found)
        status = check_room(store, arena, err);
    if (!cx_failed(status) && !found)
        status = make_case(store, asked, arena, out, err);
    cx_flock_release(mutex);
    return status;
}
