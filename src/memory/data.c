/*
 * data.c - the data of a memory as bytes, and the checks of what a caller writes (ledger.md §4.1).
 *
 *     map { 0: schema, then the type's members by number; optional ones only when not empty }
 *
 * I1  encode(decode(bytes)) == bytes for all bytes that decode.
 */
#include "base/api.h"
#include "cbor/api.h"
#include "memory/data_shape.h"

/* --- what is empty --------------------------------------------------------------------------- */

bool cx_field_is_empty(const cx_data_field *field, const void *at)
{
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT: return ((const cx_str *)at)->size == 0;
    case CX_FIELD_TEXTS: return ((const cx_strs *)at)->count == 0;
    case CX_FIELD_BYTES: return ((const cx_bytes *)at)->size == 0;
    case CX_FIELD_MAYBE_BYTES: return ((const cx_maybe_bytes *)at)->null;
    case CX_FIELD_BLOBS: return ((const cx_blobs *)at)->count == 0;
    case CX_FIELD_TIME: return !((const cx_maybe_time *)at)->is_set;
    case CX_FIELD_STRENGTH: return false; /* never optional */
    case CX_FIELD_INT: return *(const int64_t *)at == 0;
    case CX_FIELD_DURATION: return !((const cx_maybe_duration *)at)->is_set;
    case CX_FIELD_BOOL: return !*(const bool *)at;
    case CX_FIELD_GROUP: return !*(const bool *)at;
    case CX_FIELD_GROUPS: return cx_field_list(at).count == 0;
    }
    return true;
}

/* --- encode ---------------------------------------------------------------------------------- */

static void encode_group(const cx_data_group *group, const void *value, const uint64_t *schema,
                         cx_buf *out);

static void encode_maybe_bytes(const cx_maybe_bytes *bytes, cx_buf *out)
{
    if (bytes->null)
        cx_cbor_null(out);
    else
        cx_cbor_bytes(out, bytes->bytes);
}

static void encode_list(const cx_data_field *field, const void *at, cx_buf *out)
{
    cx_data_list list = cx_field_list(at);
    cx_cbor_array(out, list.count);
    for (size_t i = 0; i < list.count; i++) {
        if (field->kind == CX_FIELD_TEXTS)
            cx_cbor_text(out, ((const cx_str *)list.items)[i]);
        else if (field->kind == CX_FIELD_BLOBS)
            encode_maybe_bytes(&((const cx_maybe_bytes *)list.items)[i], out);
        else
            encode_group(field->group, (const char *)list.items + i * field->group->size, NULL,
                         out);
    }
}

static void encode_time(const cx_maybe_time *time, cx_buf *out)
{
    if (time->is_set)
        cx_cbor_int(out, time->s);
    else
        cx_cbor_null(out);
}

static void encode_field(const cx_data_field *field, const void *at, cx_buf *out)
{
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT: cx_cbor_text(out, *(const cx_str *)at); break;
    case CX_FIELD_BYTES: cx_cbor_bytes(out, *(const cx_bytes *)at); break;
    case CX_FIELD_MAYBE_BYTES: encode_maybe_bytes(at, out); break;
    case CX_FIELD_TIME: encode_time(at, out); break;
    case CX_FIELD_STRENGTH: cx_cbor_f32(out, *(const float *)at); break;
    case CX_FIELD_INT: cx_cbor_int(out, *(const int64_t *)at); break;
    case CX_FIELD_DURATION: cx_cbor_int(out, ((const cx_maybe_duration *)at)->ns); break;
    case CX_FIELD_BOOL: cx_cbor_bool(out, *(const bool *)at); break;
    case CX_FIELD_GROUP: encode_group(field->group, at, NULL, out); break;
    case CX_FIELD_TEXTS:
    case CX_FIELD_BLOBS:
    case CX_FIELD_GROUPS: encode_list(field, at, out); break;
    }
}

static void encode_group(const cx_data_group *group, const void *value, const uint64_t *schema,
                         cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    if (schema != NULL) {
        cx_cbor_field(&fields, 0);
        cx_cbor_uint(out, *schema);
    }
    for (size_t i = 0; i < group->count; i++) {
        const cx_data_field *field = &group->fields[i];
        const void *at = cx_field_at(field, value);
        if (field->rule == CX_FIELD_OPTIONAL && cx_field_is_empty(field, at))
            continue;
        cx_cbor_field(&fields, field->key);
        encode_field(field, at, out);
    }
    cx_cbor_fields_end(&fields);
}

void cx_data_encode(const cx_data *data, cx_buf *out)
{
    const cx_data_group *group = cx_data_group_of(data->type);
    CX_ASSERT(group != NULL);
    encode_group(group, &data->as, &data->schema, out);
}

/* --- decode ---------------------------------------------------------------------------------- */

typedef struct decoder {
    cx_cbor_reader reader;
    cx_arena *arena;
    bool out_of_memory;
} decoder;

static void decode_group(decoder *d, const cx_data_group *group, void *value, uint64_t *schema);

static cx_maybe_bytes decode_maybe_bytes(decoder *d)
{
    if (cx_cbor_skip_null(&d->reader))
        return (cx_maybe_bytes){.null = true};
    return (cx_maybe_bytes){.bytes = cx_cbor_read_bytes(&d->reader)};
}

static size_t item_size(const cx_data_field *field)
{
    if (field->kind == CX_FIELD_TEXTS)
        return sizeof(cx_str);
    return field->kind == CX_FIELD_BLOBS ? sizeof(cx_maybe_bytes) : field->group->size;
}

static void decode_list(decoder *d, const cx_data_field *field, void *at)
{
    size_t count = cx_cbor_read_array(&d->reader, SIZE_MAX);
    size_t size = item_size(field);
    char *items = NULL;
    if (count != 0) {
        items = cx_arena_push_array(d->arena, count, size, alignof(max_align_t));
        if (items == NULL) {
            d->out_of_memory = true;
            return;
        }
        memset(items, 0, count * size);
    }
    for (size_t i = 0; i < count && cx_cbor_ok(&d->reader) && !d->out_of_memory; i++) {
        if (field->kind == CX_FIELD_TEXTS)
            ((cx_str *)(void *)items)[i] = cx_cbor_read_text(&d->reader);
        else if (field->kind == CX_FIELD_BLOBS)
            ((cx_maybe_bytes *)(void *)items)[i] = decode_maybe_bytes(d);
        else
            decode_group(d, field->group, items + i * size, NULL);
    }
    cx_data_list list = {items, count};
    memcpy(at, &list, sizeof list);
}

static cx_maybe_time decode_time(decoder *d, const cx_data_field *field)
{
    if (field->rule != CX_FIELD_OPTIONAL && cx_cbor_skip_null(&d->reader))
        return (cx_maybe_time){.is_set = false};
    return (cx_maybe_time){.is_set = true, .s = cx_cbor_read_int(&d->reader)};
}

static void decode_field(decoder *d, const cx_data_field *field, void *at)
{
    cx_cbor_reader *reader = &d->reader;
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT: *(cx_str *)at = cx_cbor_read_text(reader); break;
    case CX_FIELD_BYTES: *(cx_bytes *)at = cx_cbor_read_bytes(reader); break;
    case CX_FIELD_MAYBE_BYTES: *(cx_maybe_bytes *)at = decode_maybe_bytes(d); break;
    case CX_FIELD_TIME: *(cx_maybe_time *)at = decode_time(d, field); break;
    case CX_FIELD_STRENGTH: *(float *)at = cx_cbor_read_f32(reader); break;
    case CX_FIELD_INT: *(int64_t *)at = cx_cbor_read_int(reader); break;
    case CX_FIELD_DURATION:
        *(cx_maybe_duration *)at =
            (cx_maybe_duration){.is_set = true, .ns = cx_cbor_read_int(reader)};
        break;
    case CX_FIELD_BOOL: *(bool *)at = cx_cbor_read_bool(reader); break;
    case CX_FIELD_GROUP:
        *(bool *)at = true;
        decode_group(d, field->group, at, NULL);
        break;
    case CX_FIELD_TEXTS:
    case CX_FIELD_BLOBS:
    case CX_FIELD_GROUPS: decode_list(d, field, at); break;
    }
}

static const cx_data_field *field_of(const cx_data_group *group, uint64_t key)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->fields[i].key == key)
            return &group->fields[i];
    return NULL;
}

static void decode_group(decoder *d, const cx_data_group *group, void *value, uint64_t *schema)
{
    uint64_t always = schema != NULL ? 1 : 0;
    cx_cbor_members members = cx_cbor_read_members(&d->reader);
    while (!d->out_of_memory && cx_cbor_next_member(&d->reader, &members)) {
        if (schema != NULL && members.key == 0) {
            *schema = cx_cbor_read_uint(&d->reader);
            continue;
        }
        const cx_data_field *field = field_of(group, members.key);
        if (field == NULL) {
            cx_cbor_reject_member(&d->reader, &members);
            continue;
        }
        void *at = (char *)value + field->offset;
        decode_field(d, field, at);
        if (cx_cbor_ok(&d->reader) && field->rule == CX_FIELD_OPTIONAL &&
            cx_field_is_empty(field, at))
            cx_cbor_reject_empty(&d->reader, &members);
    }
    for (size_t i = 0; i < group->count; i++)
        if (group->fields[i].rule != CX_FIELD_OPTIONAL)
            always |= UINT64_C(1) << group->fields[i].key;
    cx_cbor_require(&d->reader, &members, always);
}

static cx_status invalid_type(uint8_t type, cx_err *err)
{
    return cx_fail_at(err, CX_E_USAGE, "InvalidType", CX_NO_OFFSET,
                      "unknown memory type %u, expected 1 to %d", type, CX_TYPE_MAX);
}

cx_status cx_data_decode(uint8_t type, cx_bytes bytes, cx_arena *arena, cx_data *out, cx_err *err)
{
    const cx_data_group *group = cx_data_group_of(type);
    if (group == NULL)
        return invalid_type(type, err);
    decoder d = {.arena = arena};
    cx_data data;
    memset(&data, 0, sizeof data);
    data.type = type;
    cx_cbor_begin(&d.reader, bytes, group->name);
    decode_group(&d, group, &data.as, &data.schema);
    if (d.out_of_memory)
        return cx_fail_nomem(err);
    CX_TRY(cx_cbor_end(&d.reader, err));
    *out = data;
    return CX_SUCCESS;
}

/* --- what may be written --------------------------------------------------------------------- */

/* Unicode White_Space. */
static bool is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

/* The text is valid UTF-8. */
static bool is_blank(cx_str text)
{
    for (size_t i = 0, size; i < text.size; i += size)
        if (!is_space(cx_utf8_decode((const uint8_t *)text.data + i, &size)))
            return false;
    return true;
}

static bool is_one_of(cx_str text, const char *words)
{
    for (const char *word = words; word != NULL;) {
        const char *end = strchr(word, '|');
        size_t size = end != NULL ? (size_t)(end - word) : strlen(word);
        if (cx_str_eq(text, cx_str_from(word, size)))
            return true;
        word = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static cx_status fail_invalid_field(const cx_data_group *group, const cx_data_field *field,
                                    const char *why, cx_err *err)
{
    return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "%s.%s: %s", group->name,
                      field->name, why);
}

static cx_status check_text(const cx_data_group *group, const cx_data_field *field, cx_str text,
                            cx_err *err)
{
    if (!cx_utf8_valid(text))
        return fail_invalid_field(group, field, "the text is not valid UTF-8", err);
    if (field->rule == CX_FIELD_NEEDED && is_blank(text))
        return cx_fail_at(err, CX_E_USAGE, "FieldMissing", CX_NO_OFFSET, "%s.%s: %s", group->name,
                          field->name, text.size == 0 ? "is missing" : "is blank");
    /* An optional text may be empty instead. */
    if (field->words != NULL && text.size != 0 && !is_one_of(text, field->words))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "%s.%s: found \"%.*s\", expected one of %s", group->name, field->name,
                          (int)(text.size > 40 ? 40 : text.size), text.data, field->words);
    return CX_SUCCESS;
}

static cx_status check_group(const cx_data_group *group, const void *value, cx_err *err);

static cx_status check_list(const cx_data_group *group, const cx_data_field *field, const void *at,
                            cx_err *err)
{
    cx_data_list list = cx_field_list(at);
    for (size_t i = 0; i < list.count; i++) {
        if (field->kind == CX_FIELD_TEXTS)
            CX_TRY(check_text(group, field, ((const cx_str *)list.items)[i], err));
        else
            CX_TRY(
                check_group(field->group, (const char *)list.items + i * field->group->size, err));
    }
    return CX_SUCCESS;
}

static cx_status check_field(const cx_data_group *group, const cx_data_field *field, const void *at,
                             cx_err *err)
{
    switch ((cx_field_kind)field->kind) {
    case CX_FIELD_TEXT: return check_text(group, field, *(const cx_str *)at, err);
    case CX_FIELD_STRENGTH: {
        float strength = *(const float *)at;
        /* The comparison is written so that NaN is refused. */
        return strength >= 0.0f && strength <= 1.0f
                   ? CX_SUCCESS
                   : fail_invalid_field(group, field, "expected a number from 0 to 1", err);
    }
    case CX_FIELD_TEXTS:
    case CX_FIELD_GROUPS: return check_list(group, field, at, err);
    case CX_FIELD_GROUP: return *(const bool *)at ? check_group(field->group, at, err) : CX_SUCCESS;
    case CX_FIELD_BYTES:
    case CX_FIELD_MAYBE_BYTES:
    case CX_FIELD_BLOBS:
    case CX_FIELD_TIME:
    case CX_FIELD_INT:
    case CX_FIELD_DURATION:
    case CX_FIELD_BOOL: break;
    }
    return CX_SUCCESS;
}

static cx_status check_group(const cx_data_group *group, const void *value, cx_err *err)
{
    for (size_t i = 0; i < group->count; i++)
        CX_TRY(check_field(group, &group->fields[i], cx_field_at(&group->fields[i], value), err));
    return CX_SUCCESS;
}

cx_status cx_data_check(const cx_data *data, cx_err *err)
{
    const cx_data_group *group = cx_data_group_of(data->type);
    if (group == NULL)
        return invalid_type(data->type, err);
    if (data->schema != 1)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "%s: found schema %llu, expected 1", group->name,
                          (unsigned long long)data->schema);
    return check_group(group, &data->as, err);
}

cx_status cx_data_accept(uint8_t type, cx_bytes bytes, cx_arena *arena, cx_data *out, cx_err *err)
{
    cx_err found = {0};
    cx_data data;
    if (cx_data_group_of(type) == NULL)
        return invalid_type(type, err);
    if (bytes.size == 0 || (bytes.size == 1 && bytes.data[0] == 0xa0))
        return cx_fail_at(err, CX_E_USAGE, "EmptyData", CX_NO_OFFSET, "%s: there is no data",
                          cx_data_group_of(type)->name);
    cx_status status = cx_data_decode(type, bytes, arena, &data, &found);
    if (status.code == CX_E_FORMAT && !cx_failed(cx_cbor_check(bytes, NULL)))
        return cx_fail_at(err, CX_E_USAGE, "TypeDataMismatch", found.offset, "%s", found.message);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = found;
        return status;
    }
    CX_TRY(cx_data_check(&data, err));
    *out = data;
    return CX_SUCCESS;
}
