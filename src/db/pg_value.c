/*
 * pg_value.c - values in PostgreSQL's binary formats.
 *
 *     bigint            8 bytes, big-endian
 *     double precision  the 8 bytes of its binary64, big-endian
 *     timestamptz       bigint, microseconds since 2000-01-01 UTC
 *     boolean           1 byte
 *     bytea             its bytes
 *     jsonb             1 byte version (1), then the text
 *     uuid              16 bytes
 *     arrays            int32 dimensions (0 or 1), int32 has-null, int32 element type,
 *                       int32 size, int32 lower bound (1), then int32 length + bytes an element
 *
 * In COPY and as parameter each value has an int32 length before it; -1 is NULL.
 */
#include "db/pg_value.h"

#include "base/api.h"
#include "json/api.h"

/* Between 1970 and 2000. */
#define EPOCH_US INT64_C(946684800000000)

const uint32_t cx_pg_oids[] = {
    [CX_PG_TEXT] = 25,   [CX_PG_INT] = 20,     [CX_PG_FLOAT] = 701,  [CX_PG_BOOL] = 16,
    [CX_PG_TIME] = 1184, [CX_PG_JSON] = 3802,  [CX_PG_TEXTS] = 1009, [CX_PG_UUID] = 2950,
    [CX_PG_LIST] = 1009, [CX_PG_TIMES] = 1185, [CX_PG_BYTES] = 17,   [CX_PG_BLOBS] = 1001,
    [CX_PG_INTS] = 1016,
};

/* --- writing ---------------------------------------------------------------------------------- */

static void add_u32(cx_buf *out, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                        (uint8_t)value};
    cx_buf_add(out, bytes, sizeof bytes);
}

static void add_u64(cx_buf *out, uint64_t value)
{
    add_u32(out, (uint32_t)(value >> 32));
    add_u32(out, (uint32_t)value);
}

static int64_t us_of(int64_t ns)
{
    int64_t us = ns / 1000;
    if (ns % 1000 < 0)
        us--;
    return us - EPOCH_US;
}

static cx_status add_bytes(cx_buf *out, uint8_t version, cx_str text, cx_err *err)
{
    size_t size = text.size + (version != 0);
    if (size > INT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "a value is too long for PostgreSQL");
    add_u32(out, (uint32_t)size);
    if (version != 0)
        cx_buf_add_byte(out, version);
    cx_buf_add_str(out, text);
    return CX_SUCCESS;
}

static void add_array_head(cx_buf *out, uint32_t element_oid, size_t count)
{
    add_u32(out, count != 0);
    add_u32(out, 0);
    add_u32(out, element_oid);
    if (count != 0) {
        add_u32(out, (uint32_t)count);
        add_u32(out, 1);
    }
}

/* The length is known after the contents. */
static cx_status end_array(cx_buf *out, size_t start, cx_err *err)
{
    CX_TRY(cx_buf_check(out, err));
    size_t size = out->size - start - 4;
    if (size > INT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "a list is too long for PostgreSQL");
    for (unsigned i = 0; i < 4; i++)
        out->data[start + i] = (uint8_t)(size >> (24 - 8 * i));
    return CX_SUCCESS;
}

static cx_status add_list(cx_buf *out, cx_pg_type element, const cx_str *items, size_t count,
                          cx_err *err)
{
    size_t start = out->size;
    add_u32(out, 0);
    add_array_head(out, cx_pg_oids[element], count);
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_bytes(out, 0, items[i], err));
    return end_array(out, start, err);
}

static cx_status add_numbers(cx_buf *out, cx_pg_type element, const int64_t *items, size_t count,
                             cx_err *err)
{
    size_t start = out->size;
    add_u32(out, 0);
    add_array_head(out, cx_pg_oids[element], count);
    for (size_t i = 0; i < count; i++) {
        add_u32(out, 8);
        add_u64(out, (uint64_t)(element == CX_PG_TIME ? us_of(items[i]) : items[i]));
    }
    return end_array(out, start, err);
}

static cx_status add_json_texts(cx_buf *out, const cx_json *array, cx_err *err)
{
    size_t start = out->size;
    add_u32(out, 0);
    add_array_head(out, cx_pg_oids[CX_PG_TEXT], array->count);
    for (uint32_t i = 0; i < array->count; i++) {
        if (array->items[i].type != CX_JSON_STRING)
            return cx_fail(err, CX_E_USAGE, "a list of texts contains a value that is not a text");
        CX_TRY(add_bytes(out, 0, cx_json_text(&array->items[i]), err));
    }
    return end_array(out, start, err);
}

static cx_status add_texts(cx_buf *out, cx_str text, cx_err *err)
{
    cx_json array;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_json_parse_text(text, &arena, &array, err);
    if (!cx_failed(status))
        status = array.type == CX_JSON_ARRAY
                     ? add_json_texts(out, &array, err)
                     : cx_fail(err, CX_E_USAGE, "a list of texts is not a JSON array");
    cx_arena_done(&arena);
    return status;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static cx_status add_uuid(cx_buf *out, cx_str text, cx_err *err)
{
    uint8_t bytes[16];
    size_t digits = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0 && text.data[i] == '-')
            continue;
        if (digit < 0 || digits == 32)
            return cx_fail(err, CX_E_USAGE, "a UUID is malformed: expected 36 characters");
        bytes[digits / 2] = (uint8_t)(digits % 2 == 0 ? digit << 4 : bytes[digits / 2] | digit);
        digits++;
    }
    if (digits != 32)
        return cx_fail(err, CX_E_USAGE, "a UUID is malformed: expected 36 characters");
    add_u32(out, sizeof bytes);
    cx_buf_add(out, bytes, sizeof bytes);
    return CX_SUCCESS;
}

cx_status cx_pg_add_value(cx_buf *out, const cx_pg_value *value, cx_err *err)
{
    uint64_t bits;
    if (value->null) {
        add_u32(out, UINT32_MAX);
        return CX_SUCCESS;
    }
    switch (value->type) {
    case CX_PG_TEXT:
    case CX_PG_BYTES: return add_bytes(out, 0, value->text, err);
    case CX_PG_JSON: return add_bytes(out, 1, value->text, err);
    case CX_PG_TEXTS: return add_texts(out, value->text, err);
    case CX_PG_UUID: return add_uuid(out, value->text, err);
    case CX_PG_LIST: return add_list(out, CX_PG_TEXT, value->items, value->count, err);
    case CX_PG_BLOBS: return add_list(out, CX_PG_BYTES, value->items, value->count, err);
    case CX_PG_TIMES: return add_numbers(out, CX_PG_TIME, value->times, value->count, err);
    case CX_PG_INTS: return add_numbers(out, CX_PG_INT, value->times, value->count, err);
    case CX_PG_BOOL:
        add_u32(out, 1);
        cx_buf_add_byte(out, value->b);
        return CX_SUCCESS;
    case CX_PG_INT: bits = (uint64_t)value->i; break;
    case CX_PG_TIME: bits = (uint64_t)us_of(value->i); break;
    default: memcpy(&bits, &value->f, sizeof bits); break;
    }
    add_u32(out, 8);
    add_u64(out, bits);
    return CX_SUCCESS;
}

void cx_pg_add_row(cx_buf *out, unsigned column_count)
{
    uint8_t count[2] = {(uint8_t)(column_count >> 8), (uint8_t)column_count};
    cx_buf_add(out, count, sizeof count);
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status type_error(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "PostgreSQL: a column is not of the type it should be");
}

/* An array of texts as JSON. */
static cx_status read_texts(cx_reader *reader, cx_buf *scratch, cx_str *out, cx_err *err)
{
    size_t start = scratch->size;
    uint32_t dimensions = cx_reader_u32(reader);
    (void)cx_reader_u32(reader);
    (void)cx_reader_u32(reader);
    uint32_t count = 0;
    if (dimensions == 1) {
        count = cx_reader_u32(reader);
        (void)cx_reader_u32(reader);
    }
    if (dimensions > 1 || !cx_reader_ok(reader))
        return type_error(err);
    cx_buf_add_byte(scratch, '[');
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = cx_reader_u32(reader);
        cx_bytes text = {NULL, 0};
        if (size != UINT32_MAX)
            text = cx_reader_bytes(reader, size);
        if (!cx_reader_ok(reader))
            return type_error(err);
        if (i != 0)
            cx_buf_add_byte(scratch, ',');
        if (size == UINT32_MAX)
            cx_buf_add_z(scratch, "null");
        else
            cx_json_write_str(scratch, cx_bytes_str(text), CX_JSON_JCS);
    }
    cx_buf_add_byte(scratch, ']');
    CX_TRY(cx_buf_check(scratch, err));
    *out = (cx_str){(const char *)scratch->data + start, scratch->size - start};
    return CX_SUCCESS;
}

static cx_status read_uuid(cx_bytes bytes, cx_buf *scratch, cx_str *out, cx_err *err)
{
    static const char digits[] = "0123456789abcdef";
    size_t start = scratch->size;
    if (bytes.size != 16)
        return type_error(err);
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            cx_buf_add_byte(scratch, '-');
        cx_buf_add_byte(scratch, (uint8_t)digits[bytes.data[i] >> 4]);
        cx_buf_add_byte(scratch, (uint8_t)digits[bytes.data[i] & 15]);
    }
    CX_TRY(cx_buf_check(scratch, err));
    *out = (cx_str){(const char *)scratch->data + start, scratch->size - start};
    return CX_SUCCESS;
}

static cx_status read_number(cx_bytes bytes, cx_pg_value *out, cx_err *err)
{
    cx_reader reader = cx_reader_over(bytes);
    if (bytes.size != 8)
        return type_error(err);
    uint64_t bits = cx_reader_u64(&reader);
    if (out->type == CX_PG_FLOAT) {
        memcpy(&out->f, &bits, sizeof bits);
        return CX_SUCCESS;
    }
    out->i = (int64_t)bits;
    if (out->type != CX_PG_TIME)
        return CX_SUCCESS;
    /* `infinity` and years that nanoseconds do not reach. */
    if (out->i > INT64_MAX / 1000 - EPOCH_US || out->i < INT64_MIN / 1000)
        return type_error(err);
    out->i = (out->i + EPOCH_US) * 1000;
    return CX_SUCCESS;
}

size_t cx_pg_scratch_size(cx_pg_type type, size_t size)
{
    /* An escaped byte takes six; each element has brackets of its own and a length of four. */
    return type == CX_PG_TEXTS ? 16 * size + 64 : type == CX_PG_UUID ? 64 : 0;
}

cx_status cx_pg_read_value(cx_bytes bytes, cx_pg_type type, cx_buf *scratch, cx_pg_value *out,
                           cx_err *err)
{
    cx_reader reader = cx_reader_over(bytes);
    *out = (cx_pg_value){.type = type};
    switch (type) {
    case CX_PG_TEXT:
    case CX_PG_BYTES: out->text = cx_bytes_str(bytes); return CX_SUCCESS;
    case CX_PG_JSON:
        if (bytes.size < 1 || bytes.data[0] != 1)
            return type_error(err);
        out->text = (cx_str){(const char *)bytes.data + 1, bytes.size - 1};
        return CX_SUCCESS;
    case CX_PG_TEXTS: return read_texts(&reader, scratch, &out->text, err);
    case CX_PG_UUID: return read_uuid(bytes, scratch, &out->text, err);
    case CX_PG_BOOL:
        if (bytes.size != 1)
            return type_error(err);
        out->b = bytes.data[0] != 0;
        return CX_SUCCESS;
    case CX_PG_INT:
    case CX_PG_FLOAT:
    case CX_PG_TIME: return read_number(bytes, out, err);
    default: return cx_fail(err, CX_E_USAGE, "a type that is only a parameter's");
    }
}
