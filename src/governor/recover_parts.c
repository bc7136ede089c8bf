/*
 * recover_parts.c - the parts of a split run whose process died, for its manifest.
 *
 * A part is told when its contract is in the bundle and the events know it.  Its status is that of
 * its result if it came to one; otherwise it failed where it stood, or was never begun.
 */
#include "governor/recover_parts.h"

#define DOCUMENT_BYTES_MAX ((size_t)16 << 20)
#define PATCH_BYTES_MAX ((size_t)256 << 20) /* what a verification reads */

typedef struct part {
    cx_run *run;
    cx_arena *arena;
    cx_err *err;
    cx_str id;
} part;

static cx_status path_of(const part *p, const char *format, cx_str *out)
{
    *out = cx_arena_printf(p->arena, format, (int)p->id.size, p->id.data);
    return out->data == NULL ? cx_fail_nomem(p->err) : CX_SUCCESS;
}

/* An object; type NULL when the file is none, cannot be read as one, or is not there. */
static cx_status read_document(const part *p, cx_str path, cx_json *out)
{
    cx_buf text;
    cx_err why = {.code = CX_OK};
    *out = cx_json_make_null();
    cx_buf_init(&text, p->arena->alloc);
    cx_status status = cx_run_file_read(p->run, path, DOCUMENT_BYTES_MAX, &text, &why);
    cx_str stored =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(p->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    if (!cx_failed(status) && stored.data == NULL)
        return cx_fail_nomem(p->err);
    if (!cx_failed(status))
        status = cx_run_json_read(stored, 0, p->arena, out, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(p->err);
    if (cx_failed(status) || out->type != CX_JSON_OBJECT)
        *out = cx_json_make_null();
    return CX_SUCCESS;
}

/* Only an id that names files may name them (K14). */
static bool names_files(cx_str id)
{
    return id.size != 0 && id.size <= 128 && id.data[0] != '.' &&
           memchr(id.data, '/', id.size) == NULL;
}

static cx_str agent_member(const cx_json *contract, const char *name)
{
    const cx_json *agent = CX_JSON_GET(contract, "assigned_agent");
    cx_str text = agent == NULL ? CX_STR("") : cx_json_get_str(agent, cx_str_z(name));
    return text.data == NULL ? CX_STR("") : text;
}

static bool parse_status(cx_str text, cx_run_task_status *out)
{
    static const cx_run_task_status all[] = {CX_RUN_TASK_SKIPPED, CX_RUN_TASK_SUCCESS,
                                             CX_RUN_TASK_FAILED, CX_RUN_TASK_BLOCKED};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++)
        if (cx_str_is(text, cx_run_task_status_name(all[i]))) {
            *out = all[i];
            return true;
        }
    return false;
}

/* A part that died between writing its patch and the copy of it has two of them. */
static cx_status restore_patch_copy(const part *p)
{
    cx_str patch, copy;
    cx_buf text;
    CX_TRY(path_of(p, "results/%.*s/patch.diff", &patch));
    CX_TRY(path_of(p, "patches/%.*s.diff", &copy));
    if (!cx_run_file_exists(p->run, patch))
        return CX_SUCCESS;
    cx_buf_init(&text, p->arena->alloc);
    cx_status status = cx_run_file_read(p->run, patch, PATCH_BYTES_MAX, &text, p->err);
    bool longer = status.code == CX_E_LIMIT;
    if (!cx_failed(status))
        status = cx_run_file_write(p->run, copy, cx_buf_bytes(&text), p->err);
    cx_buf_done(&text);
    return longer ? CX_SUCCESS : status; /* a longer one stays as it is: it is evidence, too */
}

static cx_status set_ref_if_present(const part *p, const char *format, cx_run_ref *out)
{
    cx_str path;
    CX_TRY(path_of(p, format, &path));
    if (!cx_run_file_exists(p->run, path))
        return CX_SUCCESS;
    return cx_run_file_ref(p->run, path, p->arena, out, p->err);
}

static cx_status read_part(const part *p, const cx_json *contract, bool begun,
                           cx_run_manifest_task *out)
{
    cx_json result;
    cx_str path;
    *out = (cx_run_manifest_task){.task_id = p->id,
                                  .role = agent_member(contract, "role"),
                                  .agent_id = agent_member(contract, "agent_id"),
                                  .status = begun ? CX_RUN_TASK_FAILED : CX_RUN_TASK_SKIPPED};
    CX_TRY(restore_patch_copy(p));
    CX_TRY(set_ref_if_present(p, "tasks/%.*s.json", &out->contract));
    CX_TRY(path_of(p, "results/%.*s/result.json", &path));
    CX_TRY(read_document(p, path, &result));
    if (result.type == CX_JSON_OBJECT &&
        parse_status(CX_JSON_GET_STR(&result, "status"), &out->status))
        CX_TRY(set_ref_if_present(p, "results/%.*s/result.json", &out->result));
    CX_TRY(set_ref_if_present(p, "reviews/%.*s.json", &out->review_report));
    return set_ref_if_present(p, "ci/%.*s/report.json", &out->test_report);
}

cx_status cx_run_recover_parts(cx_run *run, const cx_run_projection *projection, cx_str whole,
                               cx_arena *arena, cx_run_manifest_task *out, size_t *out_count,
                               cx_err *err)
{
    CX_ASSERT(run != NULL && projection != NULL && arena != NULL && out != NULL);
    *out_count = 0;
    for (size_t i = 0; i < projection->tasks.count; i++) {
        const cx_run_projection_task *recorded = &projection->tasks.items[i];
        const part p = {run, arena, err, recorded->task_id};
        cx_json contract;
        cx_str path;
        if (cx_str_eq(p.id, whole) || !names_files(p.id))
            continue;
        CX_TRY(path_of(&p, "tasks/%.*s.json", &path));
        CX_TRY(read_document(&p, path, &contract));
        if (contract.type != CX_JSON_OBJECT ||
            !cx_str_eq(CX_JSON_GET_STR(&contract, "task_id"), p.id) ||
            !cx_str_eq(CX_JSON_GET_STR(&contract, "parent_task_id"), whole))
            continue;
        CX_TRY(read_part(&p, &contract, !cx_str_is(recorded->state, "S0"), &out[(*out_count)++]));
    }
    return CX_SUCCESS;
}
