/*
 * report_parts.c - the pieces that documents of a run are made of.
 */
#include "bundle/report_parts.h"

#include "base/api.h"
#include "crypto/api.h"

cx_json cx_run_part_str(cx_arena *arena, cx_str text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t good = cx_utf8_valid_prefix(text), used = 0;
    if (good == text.size)
        return cx_json_make_str(text);
    /* Each byte that fits nowhere becomes three. */
    char *made = text.size > SIZE_MAX / 3 ? NULL : cx_arena_push(arena, 3 * text.size, 1);
    if (made == NULL)
        return cx_json_make_str(cx_str_from(text.data, good));
    for (cx_str rest = text; rest.size != 0;) {
        good = cx_utf8_valid_prefix(rest);
        memcpy(made + used, rest.data, good);
        used += good;
        if (good == rest.size)
            break;
        memcpy(made + used, replacement, 3);
        used += 3;
        rest = cx_str_from(rest.data + good + 1, rest.size - good - 1);
    }
    return cx_json_make_str(cx_str_from(made, used));
}

void cx_run_part_put(cx_json_list *object, const char *name, cx_json value)
{
    cx_json_list_put(object, cx_str_z(name), value);
}

void cx_run_part_put_z(cx_json_list *object, const char *name, const char *text)
{
    cx_run_part_put(object, name, cx_json_make_str(cx_str_z(text)));
}

void cx_run_part_put_str(cx_json_list *object, const char *name, cx_str text)
{
    cx_run_part_put(object, name, cx_run_part_str(object->arena, text));
}

void cx_run_part_put_or(cx_json_list *object, const char *name, cx_str text, const char *otherwise)
{
    cx_run_part_put_str(object, name, text.size != 0 ? text : cx_str_z(otherwise));
}

void cx_run_part_put_given(cx_json_list *object, const char *name, cx_str text)
{
    if (text.size != 0)
        cx_run_part_put_str(object, name, text);
}

void cx_run_part_put_bool(cx_json_list *object, const char *name, bool value)
{
    cx_run_part_put(object, name, cx_json_make_bool(value));
}

void cx_run_part_put_uint(cx_json_list *object, const char *name, uint64_t value)
{
    cx_run_part_put(object, name, cx_json_make_uint(object->arena, value));
}

void cx_run_part_put_digest(cx_json_list *object, const char *name, const cx_digest *value)
{
    char *hex = cx_arena_push(object->arena, 64, 1);
    if (hex == NULL) {
        object->failed = true;
        return;
    }
    cx_hex_encode(cx_bytes_from(value->bytes, sizeof value->bytes), hex);
    cx_run_part_put(object, name, cx_json_make_str(cx_str_from(hex, 64)));
}

void cx_run_part_put_object(cx_json_list *object, const char *name, cx_json_list *child)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_object(child, &value, NULL)))
        object->failed = true;
    else
        cx_run_part_put(object, name, value);
}

void cx_run_part_put_array(cx_json_list *object, const char *name, cx_json_list *child)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_array(child, &value, NULL)))
        object->failed = true;
    else
        cx_run_part_put(object, name, value);
}

void cx_run_part_add_object(cx_json_list *array, cx_json_list *child)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_object(child, &value, NULL)))
        array->failed = true;
    else
        cx_json_list_add(array, value);
}

void cx_run_part_put_texts(cx_json_list *object, const char *name, const cx_str *texts,
                           size_t count)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&array, cx_run_part_str(object->arena, texts[i]));
    cx_run_part_put_array(object, name, &array);
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
    cx_run_part_put_str(&object, "name",
                        ref->name.size != 0 ? ref->name : last_component(ref->path));
    cx_run_part_put_str(&object, "path", ref->path);
    cx_run_part_put_digest(&object, "sha256", &ref->sha256);
    cx_run_part_put_str(&object, "media_type", cx_run_media_type(ref->path));
    cx_run_part_put_uint(&object, "size_bytes", ref->size_bytes);
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
    cx_run_part_put_object(object, name, &members);
}

void cx_run_part_put_refs(cx_json_list *object, const char *name, const cx_run_ref *refs,
                          size_t count)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list members = ref_members(&refs[i], object->arena);
        cx_run_part_add_object(&array, &members);
    }
    cx_run_part_put_array(object, name, &array);
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
