/*
 * report_parts.c - the pieces that documents of a run are made of.
 */
#include "bundle/report_parts.h"

#include "base/api.h"
#include "crypto/api.h"

cx_json cx_run_part_str(cx_arena *arena, cx_str text)
{
    return cx_json_make_str(cx_json_utf8(text, arena));
}

void cx_run_part_put_or(cx_json_list *object, const char *name, cx_str text, const char *otherwise)
{
    cx_json_put_utf8(object, name, text.size != 0 ? text : cx_str_z(otherwise));
}

void cx_run_part_put_given(cx_json_list *object, const char *name, cx_str text)
{
    if (text.size != 0)
        cx_json_put_utf8(object, name, text);
}

/* --- references ------------------------------------------------------------------------------ */

static cx_str last_component(cx_str path)
{
    size_t start = path.size;
    while (start != 0 && path.data[start - 1] != '/')
        start--;
    return cx_str_from(path.data + start, path.size - start);
}

cx_run_ref cx_run_ref_of(cx_str path, cx_bytes contents)
{
    return (cx_run_ref){.name = last_component(path),
                        .path = path,
                        .sha256 = cx_digest_of(contents),
                        .size_bytes = contents.size};
}

cx_str cx_run_media_type(cx_str path)
{
    static const struct {
        const char *end, *type;
    } types[] = {
        {".json", "application/json"},
        {".jsonl", "application/x-ndjson"},
        {".diff", "text/x-diff"},
        {".bin", "application/octet-stream"},
        {".zst", "application/octet-stream"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(types); i++)
        if (cx_str_ends(path, cx_str_z(types[i].end)))
            return cx_str_z(types[i].type);
    return CX_STR("text/plain");
}

static cx_json_list ref_members(const cx_run_ref *ref, cx_arena *arena)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_utf8(&object, "name", ref->name.size != 0 ? ref->name : last_component(ref->path));
    cx_json_put_utf8(&object, "path", ref->path);
    cx_json_put_digest(&object, "sha256", &ref->sha256);
    cx_json_put_utf8(&object, "media_type", cx_run_media_type(ref->path));
    cx_json_put_uint(&object, "size_bytes", ref->size_bytes);
    return object;
}

cx_status cx_run_ref_json(const cx_run_ref *ref, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list object = ref_members(ref, arena);
    return cx_json_list_end_object(&object, out, err);
}

void cx_run_part_put_ref(cx_json_list *object, const char *name, const cx_run_ref *ref)
{
    cx_json_list members = ref_members(ref, object->arena);
    cx_json_put_object(object, name, &members);
}

void cx_run_part_put_refs(cx_json_list *object, const char *name, const cx_run_ref *refs,
                          size_t count)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list members = ref_members(&refs[i], object->arena);
        cx_json_add_object(&array, &members);
    }
    cx_json_put_array(object, name, &array);
}

/* --- words of §2 ----------------------------------------------------------------------------- */

bool cx_run_part_is_role(cx_str role)
{
    static const char *const roles[] = {
        "PM",       "TECH_LEAD",  "WORKER", "REVIEWER", "TEST_RUNNER",
        "SEARCHER", "RESEARCHER", "UI_UX",  "FRONTEND", "BACKEND",
        "AI",       "SECURITY",   "INFRA",  "TEST",     "OPS",
    };
    for (size_t i = 0; i < CX_COUNT_OF(roles); i++)
        if (cx_str_is(role, roles[i]))
            return true;
    return false;
}

const char *cx_run_task_status_name(cx_run_task_status status)
{
    static const char *const names[] = {"SKIPPED", "SUCCESS", "FAILED",
                                        "BLOCKED", "PENDING", "RUNNING"};
    CX_ASSERT((size_t)status < CX_COUNT_OF(names));
    return names[status];
}

const char *cx_run_review_verdict_name(cx_run_review_verdict verdict)
{
    static const char *const names[] = {"BLOCKED", "PASS", "FAIL"};
    CX_ASSERT((size_t)verdict < CX_COUNT_OF(names));
    return names[verdict];
}

const char *cx_run_test_status_name(cx_run_test_status status)
{
    static const char *const names[] = {"SKIPPED", "PASS", "FAIL", "ERROR"};
    CX_ASSERT((size_t)status < CX_COUNT_OF(names));
    return names[status];
}

const char *cx_run_status_name(cx_run_status status)
{
    static const char *const names[] = {"FAILURE", "SUCCESS", "RUNNING"};
    CX_ASSERT((size_t)status < CX_COUNT_OF(names));
    return names[status];
}
