/*
 * view.c - read models of all runs together: list, contracts, locks, approvals (run.md §21).
 *
 * A list reads the manifests of the runs it shows, no more: verifying is asked for one run at a
 * time.
 */
#include "audit/view.h"

#include "os/api.h"
#include "crypto/api.h"
#include "approval/api.h"
#include "bundle/api.h"

/* A small file of a run's bundle.  `*out_found` false: it is not there, or no JSON object. */
static cx_status read_json(const cx_run_store *store, cx_str run_id, const char *name,
                           cx_arena *arena, cx_json *out, cx_digest *out_digest, bool *out_found,
                           cx_err *err)
{
    cx_buf text;
    cx_file folder = CX_FILE_NONE;
    cx_str root = cx_run_store_path(store, arena, "runs", CX_STR(""));
    cx_str path = cx_arena_printf(arena, "%.*s/%s", (int)run_id.size, run_id.data, name);
    *out_found = false;
    if (root.data == NULL || path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_folder_open(root.data, &folder, err);
    if (!cx_failed(status))
        status = cx_folder_read_file(folder, path.data, CX_RUN_JSON_BYTES_MAX, &text, err);
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
        status =
            copy.data == NULL ? cx_fail_nomem(err) : cx_run_json_read(copy, 0, arena, out, err);
        if (out_digest != NULL)
            *out_digest = cx_digest_of(cx_buf_bytes(&text));
    }
    cx_folder_close(folder);
    cx_buf_done(&text);
    *out_found = !cx_failed(status) && out->type == CX_JSON_OBJECT;
    return status.code == CX_E_NOMEM ? status : CX_SUCCESS;
}

static cx_str text_at(const cx_json *value, const char *pointer)
{
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    return found == NULL || found->type != CX_JSON_STRING ? CX_STR("") : cx_json_text(found);
}

/* --- list ------------------------------------------------------------------------------------ */

typedef struct summary {
    cx_str run_id, task_id, status, created_at, finished_at, failed_gate;
    bool sealed;
} summary;

/* Of a run without a manifest: its first event is enough. */
static cx_status read_first_event(const cx_run_store *store, cx_str run_id, cx_arena *arena,
                                  summary *out, cx_err *err)
{
    cx_run_bundle *bundle = NULL;
    cx_run_projection projection;
    cx_status status = cx_run_view_open(store, run_id, &bundle, err);
    if (cx_failed(status))
        return status.code == CX_E_NOMEM ? status : CX_SUCCESS;
    status = cx_run_view_projection(bundle, arena, &projection, err);
    if (!cx_failed(status) && projection.moments.count != 0) {
        out->created_at = cx_arena_copy_str(arena, projection.moments.items[0].ts);
        if (projection.tasks.count != 0)
            out->task_id = cx_arena_copy_str(arena, projection.tasks.items[0].task_id);
        out->failed_gate = cx_arena_copy_str(arena, projection.failed_gate);
    }
    cx_run_projection_done(&projection, arena);
    cx_run_bundle_close(bundle);
    return status.code == CX_E_NOMEM ? status : CX_SUCCESS;
}

static cx_status summarize(const cx_run_store *store, const cx_run_seals *seals, cx_str run_id,
                           cx_arena *arena, summary *out, cx_err *err)
{
    cx_json manifest;
    bool found;
    *out = (summary){.run_id = run_id, .status = CX_STR("RUNNING")};
    CX_TRY(read_json(store, run_id, "manifest.json", arena, &manifest, NULL, &found, err));
    if (found) {
        out->task_id = text_at(&manifest, "/task_id");
        out->status = text_at(&manifest, "/status");
        out->created_at = text_at(&manifest, "/created_at");
        out->finished_at = text_at(&manifest, "/finished_at");
        out->failed_gate = text_at(&manifest, "/failure_reason");
    } else {
        CX_TRY(read_first_event(store, run_id, arena, out, err));
    }
    if (seals != NULL && seals->sealed != NULL)
        CX_TRY(seals->sealed(seals->ctx, run_id, &out->sealed, err));
    return CX_SUCCESS;
}

static void put_or_null(cx_json_list *object, const char *name, cx_str text)
{
    if (text.size == 0)
        cx_json_put(object, name, cx_json_make_null());
    else
        cx_json_put_utf8(object, name, text);
}

static cx_json_list summary_object(cx_arena *arena, const summary *one)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_utf8(&object, "run_id", one->run_id);
    put_or_null(&object, "task_id", one->task_id);
    cx_json_put_utf8(&object, "status", one->status);
    put_or_null(&object, "created_at", one->created_at);
    put_or_null(&object, "finished_at", one->finished_at);
    put_or_null(&object, "failed_gate", one->failed_gate);
    cx_json_put_bool(&object, "sealed", one->sealed);
    return object;
}

static void add_summary(cx_json_list *items, const summary *one)
{
    cx_json_list object = summary_object(items->arena, one);
    cx_json_add_object(items, &object);
}

cx_status cx_run_view_item(const cx_run_store *store, const cx_run_seals *seals, cx_str run_id,
                           cx_arena *arena, cx_json *out, cx_err *err)
{
    summary one;
    CX_TRY(summarize(store, seals, run_id, arena, &one, err));
    cx_json_list object = summary_object(arena, &one);
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_view_list(const cx_run_store *store, const cx_run_seals *seals,
                           const cx_run_list_query *query, cx_arena *arena, cx_json *out,
                           cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    cx_str *ids, last = {NULL, 0};
    size_t count, shown = 0, looked = 0, i = 0;
    size_t limit = query->limit == 0                ? CX_RUN_PAGE_DEFAULT
                   : query->limit > CX_RUN_PAGE_MAX ? CX_RUN_PAGE_MAX
                                                    : query->limit;
    CX_TRY(cx_run_store_list(store, arena, &ids, &count, err));
    while (i < count && query->cursor.data != NULL && cx_str_cmp(ids[i], query->cursor) >= 0)
        i++;
    for (; i < count && shown < limit && looked < CX_RUN_LIST_LOOKS; i++, looked++) {
        summary one;
        CX_TRY(summarize(store, seals, ids[i], arena, &one, err));
        last = ids[i];
        if (query->status.data != NULL && !cx_str_eq(query->status, one.status))
            continue;
        add_summary(&items, &one);
        shown++;
    }
    cx_json_put_array(&object, "items", &items);
    put_or_null(&object, "next", i < count ? last : CX_STR(""));
    return cx_json_list_end_object(&object, out, err);
}

/* --- contracts ------------------------------------------------------------------------------- */

typedef struct names {
    cx_arena *arena;
    CX_VEC(cx_str) list;
    bool failed;
} names;

static bool add_run_id(void *arg, const char *name)
{
    names *n = arg;
    cx_str text = cx_str_z(name);
    if (text.size <= 5 || !cx_str_ends(text, CX_STR(".json")) || text.data[0] == '.')
        return true;
    cx_str *slot = cx_vec_push(&n->list, n->arena->alloc);
    if (slot == NULL || (*slot = cx_arena_copy_str(n->arena, text)).data == NULL)
        n->failed = true;
    return !n->failed;
}

/* Names *.json in a folder of the runtime root, sorted; none when it is not there. */
static cx_status list_json(const cx_run_store *store, const char *path, names *out, cx_err *err)
{
    cx_file root;
    CX_TRY(cx_folder_open(store->root, &root, err));
    cx_status status = cx_folder_list(root, path, add_run_id, out, err);
    cx_folder_close(root);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_DENIED)
        return CX_SUCCESS;
    if (!cx_failed(status) && out->failed)
        return cx_fail_nomem(err);
    for (size_t i = 1; !cx_failed(status) && i < out->list.count; i++)
        for (size_t k = i; k > 0 && cx_str_cmp(out->list.items[k], out->list.items[k - 1]) < 0;
             k--) {
            cx_str swap = out->list.items[k];
            out->list.items[k] = out->list.items[k - 1];
            out->list.items[k - 1] = swap;
        }
    return status;
}

static void put_hex(cx_json_list *object, const char *name, const cx_digest *digest)
{
    cx_json_put_digest(object, name, digest);
}

static void add_contract(cx_json_list *items, const cx_json *contract, const cx_digest *digest,
                         cx_str run_id, cx_str status)
{
    cx_json_list object = cx_json_list_begin(items->arena);
    cx_json_put_utf8(&object, "task_id", text_at(contract, "/task_id"));
    cx_json_put_utf8(&object, "run_id", run_id);
    put_or_null(&object, "parent_task_id", text_at(contract, "/parent_task_id"));
    put_or_null(&object, "role", text_at(contract, "/assigned_agent/role"));
    put_or_null(&object, "agent_id", text_at(contract, "/assigned_agent/agent_id"));
    cx_json_put_utf8(&object, "spec", text_at(contract, "/inputs/spec"));
    put_hex(&object, "sha256", digest);
    cx_json_put_utf8(&object, "status", status);
    cx_json_add_object(items, &object);
}

static cx_status add_contracts_of(const cx_run_store *store, cx_str run_id, cx_json_list *items,
                                  size_t limit, cx_err *err)
{
    cx_arena *arena = items->arena;
    names files = {.arena = arena};
    summary one;
    cx_str folder = cx_arena_printf(arena, "runs/%.*s/tasks", (int)run_id.size, run_id.data);
    cx_status status =
        folder.data == NULL ? cx_fail_nomem(err) : list_json(store, folder.data, &files, err);
    if (!cx_failed(status))
        status = summarize(store, NULL, run_id, arena, &one, err);
    for (size_t i = 0; !cx_failed(status) && i < files.list.count && items->count < limit; i++) {
        cx_json contract;
        cx_digest digest;
        bool found;
        cx_str name = cx_arena_printf(arena, "tasks/%s", files.list.items[i].data);
        status = name.data == NULL
                     ? cx_fail_nomem(err)
                     : read_json(store, run_id, name.data, arena, &contract, &digest, &found, err);
        if (!cx_failed(status) && found)
            add_contract(items, &contract, &digest, run_id, one.status);
    }
    cx_vec_done(&files.list, arena->alloc);
    return status;
}

cx_status cx_run_view_contracts(const cx_run_store *store, size_t limit, cx_arena *arena,
                                cx_json *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    cx_str *ids;
    size_t count;
    if (limit == 0 || limit > CX_RUN_PAGE_MAX)
        limit = limit == 0 ? CX_RUN_PAGE_DEFAULT : CX_RUN_PAGE_MAX;
    CX_TRY(cx_run_store_list(store, arena, &ids, &count, err));
    for (size_t i = 0; i < count && items.count < limit; i++)
        CX_TRY(add_contracts_of(store, ids[i], &items, limit, err));
    cx_json_put_array(&object, "items", &items);
    cx_json_put_z(&object, "execution_authority", "task_contract");
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_view_contract(const cx_run_store *store, cx_str task_id, cx_arena *arena,
                               cx_json *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_str *ids;
    size_t count;
    bool sane = task_id.size != 0 && task_id.size <= 128 && task_id.data[0] != '.' &&
                memchr(task_id.data, '/', task_id.size) == NULL;
    CX_TRY(cx_run_store_list(store, arena, &ids, &count, err));
    for (size_t i = 0; sane && i < count; i++) {
        cx_json contract, binding;
        cx_digest digest;
        bool found;
        cx_json_list object = cx_json_list_begin(arena);
        cx_str name = cx_arena_printf(arena, "tasks/%.*s.json", (int)task_id.size, task_id.data);
        if (name.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(read_json(store, ids[i], name.data, arena, &contract, &digest, &found, err));
        if (!found)
            continue;
        CX_TRY(cx_run_report_role_binding(&contract, arena, &binding, err));
        cx_json_put(&object, "contract", contract);
        cx_json_put_utf8(&object, "run_id", ids[i]);
        put_hex(&object, "sha256", &digest);
        cx_json_put(&object, "role_binding_read_model", binding);
        cx_json_put_z(&object, "execution_authority", "task_contract");
        return cx_json_list_end_object(&object, out, err);
    }
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoContract", CX_NO_OFFSET,
                      "no run has a task of that id");
}

/* --- locks, approvals ------------------------------------------------------------------------ */

cx_status cx_run_view_locks(const cx_run_store *store, cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count;
    cx_status status = cx_run_lock_list(store, arena, &locks, &reasons, &count, err);
    if (status.code == CX_E_NOT_FOUND)
        count = 0; /* nothing was ever locked here */
    else if (cx_failed(status))
        return status;
    for (size_t i = 0; i < count; i++) {
        cx_json_list one = cx_json_list_begin(arena);
        cx_json_put_utf8(&one, "path", locks[i].path);
        put_or_null(&one, "run_id", locks[i].run_id);
        put_or_null(&one, "task_id", locks[i].task_id);
        put_or_null(&one, "acquired_at", locks[i].acquired_at);
        put_or_null(&one, "renewed_at", locks[i].renewed_at);
        cx_json_put_uint(&one, "ttl_sec", locks[i].ttl_sec);
        cx_json_put_bool(&one, "stale", cx_run_lock_stale(reasons[i]));
        cx_json_put_z(&one, "reason", cx_run_lock_reason_name(reasons[i]));
        cx_json_add_object(&items, &one);
    }
    cx_json_put_array(&object, "items", &items);
    cx_json_put_z(&object, "execution_authority", "task_contract");
    return cx_json_list_end_object(&object, out, err);
}

/* The envelope's payload as JSON; NULL type when it is none. */
static bool approval_of(const cx_json *envelope, cx_arena *arena, cx_run_approval *out)
{
    cx_buf payload;
    cx_buf_init(&payload, arena->alloc);
    cx_str text = CX_JSON_GET_STR(envelope, "payload");
    bool good = text.data != NULL && cx_base64_decode(text, CX_BASE64, &payload) && !payload.failed;
    if (good) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&payload));
        good = copy.data != NULL &&
               !cx_failed(cx_run_approval_decode(cx_str_bytes(copy), arena, out, NULL));
    }
    cx_buf_done(&payload);
    return good;
}

static cx_status add_approval(const cx_run_store *store, cx_str name, cx_json_list *items,
                              cx_err *err)
{
    cx_arena *arena = items->arena;
    cx_buf text;
    cx_file root;
    cx_json envelope, value;
    cx_run_approval approval;
    cx_json_list one = cx_json_list_begin(arena);
    cx_str path = cx_arena_printf(arena, CX_RUN_APPROVALS_FOLDER "/%s", name.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open(store->root, &root, err));
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_folder_read_file(root, path.data, CX_RUN_CONTRACT_BYTES_MAX, &text, err);
    cx_folder_close(root);
    cx_str copy =
        cx_failed(status) ? cx_str_from(NULL, 0) : cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    if (copy.data == NULL || cx_failed(cx_run_json_read(copy, 0, arena, &envelope, NULL)) ||
        !approval_of(&envelope, arena, &approval))
        return status.code == CX_E_NOMEM ? status : CX_SUCCESS; /* no approval */
    approval.sha256 = cx_digest_of(cx_str_bytes(copy));
    CX_TRY(cx_run_approval_json(&approval, true, arena, &value, err));
    for (uint32_t i = 0; i < value.count; i++)
        cx_json_list_put(&one, cx_json_text(&value.members[i].name), value.members[i].value);
    cx_json_put_utf8(&one, "file", path);
    cx_json_add_object(items, &one);
    return CX_SUCCESS;
}

cx_status cx_run_view_approvals(const cx_run_store *store, cx_arena *arena, cx_json *out,
                                cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    names files = {.arena = arena};
    cx_status status = list_json(store, CX_RUN_APPROVALS_FOLDER, &files, err);
    for (size_t i = 0; !cx_failed(status) && i < files.list.count; i++)
        status = add_approval(store, files.list.items[i], &items, err);
    cx_vec_done(&files.list, arena->alloc);
    if (cx_failed(status))
        return status;
    cx_json_put_array(&object, "items", &items);
    cx_json_put_z(&object, "execution_authority", "task_contract");
    return cx_json_list_end_object(&object, out, err);
}
