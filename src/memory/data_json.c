/*
 * data_json.c - the data of a memory as JSON with the member names of ledger.md §4.1, the form that
 * people write and read.
 *
 * I1  from_json(to_json(data)) == data, for data whose floats are finite.
 */
#include <math.h>

#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "memory/data_shape.h"
#include "memory/forms.h"

/* --- from JSON ------------------------------------------------------------------------------- */

typedef struct reading {
    cx_arena *arena;
    cx_err *err;
} reading;

static cx_status fail_type_mismatch(const reading *r, const cx_data_group *group, cx_str name,
                                    const char *expected, const cx_json *found)
{
    return cx_fail_at(r->err, CX_E_USAGE, "TypeDataMismatch", CX_NO_OFFSET,
                      "%s.%.*s: expected %s, found %s", group->name,
                      (int)(name.size > 60 ? 60 : name.size), name.data, expected,
                      cx_json_type_name(found));
}

/* Text without lone surrogates, which UTF-8 cannot express. */
static bool is_text(const cx_json *json)
{
    return json->type == CX_JSON_STRING && (json->flags & CX_JSON_SURROGATE) == 0;
}

static cx_status read_group(const reading *r, const cx_data_group *group, const cx_json *json,
                            void *value, uint64_t *schema);

/* Text, or {"base64": "..."}; *out_good is false for anything else. */
static cx_status read_bytes(const reading *r, const cx_json *json, cx_bytes *out, bool *out_good)
{
    *out_good = false;
    if (is_text(json)) {
        *out = cx_str_bytes(cx_json_text(json));
        *out_good = true;
        return CX_SUCCESS;
    }
    const cx_json *base64 = CX_JSON_GET(json, "base64");
    if (base64 == NULL || json->count != 1 || base64->type != CX_JSON_STRING)
        return CX_SUCCESS;
    cx_buf bytes;
    cx_buf_init(&bytes, r->arena->alloc);
    *out_good = cx_base64_decode(cx_json_text(base64), CX_BASE64, &bytes);
    cx_status status = cx_buf_check(&bytes, r->err);
    if (!cx_failed(status) && *out_good) {
        cx_str copy = cx_arena_copy_str(r->arena, cx_buf_str(&bytes));
        *out = cx_str_bytes(copy);
        status = copy.data == NULL ? cx_fail_nomem(r->err) : CX_SUCCESS;
    }
    cx_buf_done(&bytes);
    return status;
}

static bool read_time(const cx_json *json, cx_maybe_time *out)
{
    out->is_set = true;
    if (json->type == CX_JSON_INT)
        return cx_json_int64(json, &out->s);
    return json->type == CX_JSON_STRING && cx_form_parse_time(cx_json_text(json), &out->s);
}

static bool read_duration(const cx_json *json, cx_maybe_duration *out)
{
    out->is_set = true;
    if (json->type == CX_JSON_INT)
        return cx_json_int64(json, &out->ns);
    return json->type == CX_JSON_STRING && cx_form_parse_duration(cx_json_text(json), &out->ns);
}

static bool read_strength(const cx_json *json, float *out)
{
    double value;
    if (!cx_json_is_number(json) || !cx_json_double(json, &value) || !isfinite(value) ||
        !isfinite((float)value))
        return false;
    *out = (float)value;
    return true;
}

static size_t item_size(const cx_data_field *field)
{
    if (field->kind == CX_FIELD_TEXTS)
        return sizeof(cx_str);
    return field->kind == CX_FIELD_BLOBS ? sizeof(cx_maybe_bytes) : field->group->size;
}

static cx_status read_item(const reading *r, const cx_data_group *group, const cx_data_field *field,
                           const cx_json *json, void *at)
{
    bool good = true;
    if (field->kind == CX_FIELD_GROUPS)
        return read_group(r, field->group, json, at, NULL);
    if (field->kind == CX_FIELD_TEXTS) {
        good = is_text(json);
        if (good)
            *(cx_str *)at = cx_json_text(json);
    } else if (json->type == CX_JSON_NULL) {
        ((cx_maybe_bytes *)at)->null = true;
    } else {
        CX_TRY(read_bytes(r, json, &((cx_maybe_bytes *)at)->bytes, &good));
    }
    return good ? CX_SUCCESS
                : fail_type_mismatch(r, group, cx_str_z(field->name),
                                     field->kind == CX_FIELD_TEXTS
                                         ? "text in the list"
                                         : "text, {\"base64\"} or null in the list",
                                     json);
}

static cx_status read_list(const reading *r, const cx_data_group *group, const cx_data_field *field,
                           const cx_json *json, void *at)
{
    size_t size = item_size(field);
    if (json->type != CX_JSON_ARRAY)
        return fail_type_mismatch(r, group, cx_str_z(field->name), "a list", json);
    if (json->count == 0)
        return CX_SUCCESS;
    char *items = cx_arena_push_array(r->arena, json->count, size, alignof(max_align_t));
    if (items == NULL)
        return cx_fail_nomem(r->err);
    memset(items, 0, json->count * size);
    for (uint32_t i = 0; i < json->count; i++)
        CX_TRY(read_item(r, group, field, &json->items[i], items + i * size));
    cx_data_list list = {items, json->count};
    memcpy(at, &list, sizeof list);
    return CX_SUCCESS;
}

static cx_status read_field(const reading *r, const cx_data_group *group,
                            const cx_data_field *field, const cx_json *json, void *at)
{
    const char *expected = "";
    bool good = true;
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT:
        expected = "text";
        good = is_text(json);
        if (good)
            *(cx_str *)at = cx_json_text(json);
        break;
    case CX_FIELD_BYTES:
        expected = "text or {\"base64\"}";
        CX_TRY(read_bytes(r, json, at, &good));
        break;
    case CX_FIELD_MAYBE_BYTES:
        expected = "text, {\"base64\"} or null";
        ((cx_maybe_bytes *)at)->null = false;
        CX_TRY(read_bytes(r, json, &((cx_maybe_bytes *)at)->bytes, &good));
        break;
    case CX_FIELD_TIME:
        expected = "a time (RFC 3339, or seconds)";
        good = read_time(json, at);
        break;
    case CX_FIELD_STRENGTH:
        expected = "a number";
        good = read_strength(json, at);
        break;
    case CX_FIELD_INT:
        expected = "an integer";
        good = cx_json_int64(json, at);
        break;
    case CX_FIELD_DURATION:
        expected = "a duration (as 1m30s, or nanoseconds)";
        good = read_duration(json, at);
        break;
    case CX_FIELD_BOOL:
        expected = "true or false";
        good = json->type == CX_JSON_TRUE || json->type == CX_JSON_FALSE;
        *(bool *)at = json->type == CX_JSON_TRUE;
        break;
    case CX_FIELD_GROUP:
        CX_TRY(read_group(r, field->group, json, at, NULL));
        *(bool *)at = true;
        break;
    case CX_FIELD_TEXTS:
    case CX_FIELD_BLOBS:
    case CX_FIELD_GROUPS: return read_list(r, group, field, json, at);
    }
    return good ? CX_SUCCESS : fail_type_mismatch(r, group, cx_str_z(field->name), expected, json);
}

static const cx_data_field *field_named(const cx_data_group *group, cx_str name)
{
    for (size_t i = 0; i < group->count; i++)
        if (cx_str_is(name, group->fields[i].name))
            return &group->fields[i];
    return NULL;
}

static cx_status read_group(const reading *r, const cx_data_group *group, const cx_json *json,
                            void *value, uint64_t *schema)
{
    if (json->type != CX_JSON_OBJECT)
        return fail_type_mismatch(r, group, CX_STR("*"), "an object", json);
    for (uint32_t i = 0; i < json->count; i++) {
        cx_str name = cx_json_text(&json->members[i].name);
        const cx_json *member = &json->members[i].value;
        const cx_data_field *field = field_named(group, name);
        if (schema != NULL && cx_str_is(name, "schema")) {
            if (!cx_json_uint64(member, schema))
                return fail_type_mismatch(r, group, name, "a number of a schema", member);
            continue;
        }
        if (field == NULL)
            return fail_type_mismatch(r, group, name, "no such member", member);
        if (member->type != CX_JSON_NULL)
            CX_TRY(read_field(r, group, field, member, (char *)value + field->offset));
    }
    return CX_SUCCESS;
}

/* Sets the fields whose default is null. */
static void preset_nulls(const cx_data_group *group, void *value)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->fields[i].kind == CX_FIELD_MAYBE_BYTES)
            ((cx_maybe_bytes *)(void *)((char *)value + group->fields[i].offset))->null = true;
}

cx_status cx_data_from_json(uint8_t type, const cx_json *json, cx_arena *arena, cx_data *out,
                            cx_err *err)
{
    const cx_data_group *group = cx_data_group_of(type);
    const reading r = {arena, err};
    cx_data data;
    if (group == NULL)
        return cx_fail_at(err, CX_E_USAGE, "InvalidType", CX_NO_OFFSET,
                          "unknown memory type %u, expected 1 to %d", type, CX_TYPE_MAX);
    if (json->type == CX_JSON_OBJECT && json->count == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyData", CX_NO_OFFSET, "%s: there is no data",
                          group->name);
    memset(&data, 0, sizeof data);
    data.type = type;
    data.schema = 1;
    preset_nulls(group, &data.as);
    CX_TRY(read_group(&r, group, json, &data.as, &data.schema));
    *out = data;
    return CX_SUCCESS;
}

/* --- to JSON --------------------------------------------------------------------------------- */

static cx_status write_group(const cx_data_group *group, const void *value, const uint64_t *schema,
                             cx_arena *arena, cx_json *out, cx_err *err);

/* The decimal with the fewest digits that reads back as the same float. */
static double shortest_double(float value)
{
    char digits[17];
    int point = 0;
    double exact = (double)value;
    if (value == 0.0f)
        return exact;
    int count = cx_number_shortest(fabs(exact), digits, &point);
    for (int wanted = 1; wanted <= count; wanted++) {
        char literal[CX_NUMBER_TEXT_SIZE + 16];
        char kept[18] = "0";
        double found;
        /* Rounds half up; reading it back shows whether the digits suffice. */
        memcpy(kept + 1, digits, (size_t)wanted);
        if (wanted < count && digits[wanted] >= '5') {
            int i = wanted;
            while (kept[i] == '9')
                kept[i--] = '0';
            kept[i]++;
        }
        int size =
            snprintf(literal, sizeof literal, "%c.%.*se%d", kept[0], wanted, kept + 1, point);
        if (cx_number_parse(cx_str_from(literal, (size_t)size), &found) &&
            (float)found == fabsf(value))
            return value < 0 ? -found : found;
    }
    return exact;
}

static cx_json write_float(cx_arena *arena, float value)
{
    return isfinite(value) ? cx_json_make_double(arena, shortest_double(value))
                           : cx_json_make_null();
}

/* Years of four digits have an RFC 3339 spelling. */
static bool has_calendar_time(int64_t s)
{
    return s >= INT64_C(-62167219200) && s <= INT64_C(253402300799);
}

static cx_json keep_text(cx_buf *text, cx_arena *arena)
{
    cx_str copy = cx_buf_check(text, NULL).code == CX_OK
                      ? cx_arena_copy_str(arena, cx_buf_str(text))
                      : (cx_str){NULL, 1};
    cx_buf_done(text);
    if (copy.data == NULL) { /* reported by the list it is put into */
        cx_json none = {.type = CX_JSON_INT};
        return none;
    }
    return cx_json_make_str(copy);
}

static cx_json write_time(cx_arena *arena, int64_t s)
{
    cx_buf text;
    if (!has_calendar_time(s))
        return cx_json_make_int(arena, s);
    cx_buf_init(&text, arena->alloc);
    cx_form_time(s, &text);
    return keep_text(&text, arena);
}

static cx_json write_duration(cx_arena *arena, int64_t ns)
{
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_form_duration(ns, &text);
    return keep_text(&text, arena);
}

/* Readable bytes: UTF-8 without control characters except tabs and new lines. */
static bool is_readable(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f)
            return false;
    }
    return cx_utf8_valid(text);
}

static cx_status write_bytes(cx_bytes bytes, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_buf text;
    cx_str direct = cx_bytes_str(bytes);
    if (is_readable(direct)) {
        *out = cx_json_make_str(direct.size != 0 ? direct : CX_STR(""));
        return CX_SUCCESS;
    }
    cx_buf_init(&text, arena->alloc);
    cx_base64_add(&text, bytes, CX_BASE64);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_list_put(&object, CX_STR("base64"), keep_text(&text, arena));
    return cx_json_list_end_object(&object, out, err);
}

static cx_status write_maybe_bytes(const cx_maybe_bytes *bytes, cx_arena *arena, cx_json *out,
                                   cx_err *err)
{
    if (!bytes->null)
        return write_bytes(bytes->bytes, arena, out, err);
    *out = cx_json_make_null();
    return CX_SUCCESS;
}

static cx_json write_text(cx_str text)
{
    return cx_json_make_str(text.size != 0 ? text : CX_STR(""));
}

static cx_status write_list(const cx_data_field *field, const void *at, cx_arena *arena,
                            cx_json *out, cx_err *err)
{
    cx_data_list values = cx_field_list(at);
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < values.count; i++) {
        cx_json item;
        if (field->kind == CX_FIELD_TEXTS)
            item = write_text(((const cx_str *)values.items)[i]);
        else if (field->kind == CX_FIELD_BLOBS)
            CX_TRY(
                write_maybe_bytes(&((const cx_maybe_bytes *)values.items)[i], arena, &item, err));
        else
            CX_TRY(write_group(field->group, (const char *)values.items + i * field->group->size,
                               NULL, arena, &item, err));
        cx_json_list_add(&list, item);
    }
    return cx_json_list_end_array(&list, out, err);
}

static cx_status write_field(const cx_data_field *field, const void *at, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT: *out = write_text(*(const cx_str *)at); break;
    case CX_FIELD_BYTES: return write_bytes(*(const cx_bytes *)at, arena, out, err);
    case CX_FIELD_MAYBE_BYTES: return write_maybe_bytes(at, arena, out, err);
    case CX_FIELD_TIME: {
        const cx_maybe_time *time = at;
        *out = time->is_set ? write_time(arena, time->s) : cx_json_make_null();
        break;
    }
    case CX_FIELD_STRENGTH: *out = write_float(arena, *(const float *)at); break;
    case CX_FIELD_INT: *out = cx_json_make_int(arena, *(const int64_t *)at); break;
    case CX_FIELD_DURATION:
        *out = write_duration(arena, ((const cx_maybe_duration *)at)->ns);
        break;
    case CX_FIELD_BOOL: *out = cx_json_make_bool(*(const bool *)at); break;
    case CX_FIELD_GROUP: return write_group(field->group, at, NULL, arena, out, err);
    case CX_FIELD_TEXTS:
    case CX_FIELD_BLOBS:
    case CX_FIELD_GROUPS: return write_list(field, at, arena, out, err);
    }
    return CX_SUCCESS;
}

static cx_status write_group(const cx_data_group *group, const void *value, const uint64_t *schema,
                             cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    if (schema != NULL && *schema != 1)
        cx_json_list_put(&object, CX_STR("schema"), cx_json_make_uint(arena, *schema));
    for (size_t i = 0; i < group->count; i++) {
        const cx_data_field *field = &group->fields[i];
        const void *at = cx_field_at(field, value);
        cx_json member;
        if (field->rule == CX_FIELD_OPTIONAL && cx_field_is_empty(field, at))
            continue;
        CX_TRY(write_field(field, at, arena, &member, err));
        cx_json_list_put(&object, cx_str_z(field->name), member);
    }
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_data_to_json(const cx_data *data, cx_arena *arena, cx_json *out, cx_err *err)
{
    const cx_data_group *group = cx_data_group_of(data->type);
    CX_ASSERT(group != NULL);
    return write_group(group, &data->as, &data->schema, arena, out, err);
}

/* --- one member ------------------------------------------------------------------------------ */

bool cx_data_member_text(const cx_data *data, cx_str name, cx_buf *out)
{
    const cx_data_group *group = cx_data_group_of(data->type);
    const cx_data_field *field = group != NULL ? field_named(group, name) : NULL;
    const void *at = field != NULL ? cx_field_at(field, &data->as) : NULL;
    if (field == NULL || (field->rule == CX_FIELD_OPTIONAL && cx_field_is_empty(field, at)))
        return false;
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT: cx_buf_add_str(out, *(const cx_str *)at); return true;
    case CX_FIELD_TIME:
        if (!((const cx_maybe_time *)at)->is_set)
            return false;
        cx_form_time(((const cx_maybe_time *)at)->s, out);
        return true;
    case CX_FIELD_STRENGTH: {
        char text[CX_NUMBER_TEXT_SIZE];
        float value = *(const float *)at;
        if (!isfinite(value))
            return false;
        cx_buf_add(out, text, cx_number_write_py(shortest_double(value), text));
        return true;
    }
    case CX_FIELD_INT: cx_buf_add_i64(out, *(const int64_t *)at); return true;
    case CX_FIELD_DURATION: cx_buf_add_i64(out, ((const cx_maybe_duration *)at)->ns); return true;
    case CX_FIELD_BOOL: cx_buf_add_z(out, *(const bool *)at ? "true" : "false"); return true;
    case CX_FIELD_BYTES:
    case CX_FIELD_MAYBE_BYTES:
    case CX_FIELD_TEXTS:
    case CX_FIELD_BLOBS:
    case CX_FIELD_GROUP:
    case CX_FIELD_GROUPS: break;
    }
    return false;
}
