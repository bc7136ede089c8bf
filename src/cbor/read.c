/*
 * read.c - strict CBOR reader: anything that write.c would not have written is rejected (ledger.md
 * §2).
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"
#include "cbor/cbor.h"

void cx_cbor_begin(cx_cbor_reader *reader, cx_bytes bytes, const char *what)
{
    *reader = (cx_cbor_reader){.data = bytes.data, .size = bytes.size, .what = what};
}

void cx_cbor_reject(cx_cbor_reader *reader, size_t offset, const char *format, ...)
{
    char message[CX_ERR_MESSAGE_SIZE];
    va_list args;
    if (!cx_cbor_ok(reader))
        return;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    reader->status = cx_fail_at(&reader->err, CX_E_FORMAT, "NonCanonical", offset,
                                "%s: %.250s at byte %zu", reader->what, message, offset);
}

cx_status cx_cbor_end(cx_cbor_reader *reader, cx_err *err)
{
    if (cx_cbor_ok(reader) && reader->offset != reader->size)
        cx_cbor_reject(reader, reader->offset, "%zu bytes after the end",
                       reader->size - reader->offset);
    if (!cx_cbor_ok(reader) && err != NULL)
        *err = reader->err;
    return reader->status;
}

/* --- heads ----------------------------------------------------------------------------------- */

typedef struct item_head {
    size_t offset;
    cx_cbor_type type;
    unsigned info; /* the low five bits of the first byte */
    uint64_t argument;
} item_head;

/* Whether an argument of this width has a shorter encoding. */
static bool too_long(uint64_t argument, unsigned width)
{
    switch (width) {
    case 1: return argument < 24;
    case 2: return argument <= UINT8_MAX;
    case 4: return argument <= UINT16_MAX;
    case 8: return argument <= UINT32_MAX;
    default: return false;
    }
}

static bool read_head(cx_cbor_reader *reader, item_head *out)
{
    size_t at = reader->offset;
    if (!cx_cbor_ok(reader))
        return false;
    if (at >= reader->size) {
        cx_cbor_reject(reader, at, "the bytes end where an item should begin");
        return false;
    }
    *out = (item_head){.offset = at,
                       .type = (cx_cbor_type)(reader->data[at] >> 5),
                       .info = reader->data[at] & 31u};
    if (out->info > 27) {
        cx_cbor_reject(reader, at, "an indefinite or reserved length");
        return false;
    }
    unsigned width = out->info < 24 ? 0 : 1u << (out->info - 24);
    if (reader->size - at - 1 < width) {
        cx_cbor_reject(reader, at, "the bytes end inside an item");
        return false;
    }
    out->argument = width == 0 ? out->info : 0;
    for (unsigned i = 0; i < width; i++)
        out->argument = out->argument << 8 | reader->data[at + 1 + i];
    if (out->type != CX_CBOR_SIMPLE && too_long(out->argument, width)) {
        cx_cbor_reject(reader, at, "a number or length that is longer than it needs to be");
        return false;
    }
    reader->offset = at + 1 + width;
    return true;
}

static const char *type_name(cx_cbor_type type)
{
    static const char *const names[] = {"an unsigned integer",
                                        "a negative integer",
                                        "a byte string",
                                        "a text",
                                        "an array",
                                        "a map",
                                        "a tag",
                                        "a simple value",
                                        "the end"};
    return names[type <= CX_CBOR_NONE ? type : CX_CBOR_NONE];
}

static bool read_head_of_type(cx_cbor_reader *reader, cx_cbor_type type, item_head *out)
{
    if (!read_head(reader, out))
        return false;
    if (out->type == type)
        return true;
    cx_cbor_reject(reader, out->offset, "%s where %s is expected", type_name(out->type),
                   type_name(type));
    return false;
}

cx_cbor_type cx_cbor_peek(const cx_cbor_reader *reader)
{
    if (!cx_cbor_ok(reader) || reader->offset >= reader->size)
        return CX_CBOR_NONE;
    return (cx_cbor_type)(reader->data[reader->offset] >> 5);
}

bool cx_cbor_skip_null(cx_cbor_reader *reader)
{
    if (!cx_cbor_ok(reader) || reader->offset >= reader->size ||
        reader->data[reader->offset] != 0xf6)
        return false;
    reader->offset++;
    return true;
}

/* --- numbers --------------------------------------------------------------------------------- */

/* The next `count` bytes, or NULL when fewer are left.  For the fast paths of items that proofs
 * have by the thousand; anything a fast path does not handle takes the general path, which reports
 * the error. */
static const uint8_t *bytes_left(const cx_cbor_reader *reader, size_t count)
{
    bool there = cx_cbor_ok(reader) && reader->offset <= reader->size &&
                 reader->size - reader->offset >= count;
    return there ? reader->data + reader->offset : NULL;
}

uint64_t cx_cbor_read_uint(cx_cbor_reader *reader)
{
    const uint8_t *data = bytes_left(reader, 3);
    if (data != NULL && data[0] < 24) {
        reader->offset++;
        return data[0];
    }
    if (data != NULL && data[0] == 0x19 && data[1] != 0) {
        reader->offset += 3;
        return (uint64_t)data[1] << 8 | data[2];
    }
    item_head head;
    return read_head_of_type(reader, CX_CBOR_UINT, &head) ? head.argument : 0;
}

uint64_t cx_cbor_read_uint_max(cx_cbor_reader *reader, uint64_t max)
{
    item_head head;
    if (!read_head_of_type(reader, CX_CBOR_UINT, &head))
        return 0;
    if (head.argument > max) {
        cx_cbor_reject(reader, head.offset, "%llu is more than the allowed %llu",
                       (unsigned long long)head.argument, (unsigned long long)max);
        return 0;
    }
    return head.argument;
}

int64_t cx_cbor_read_int(cx_cbor_reader *reader)
{
    item_head head;
    if (!read_head(reader, &head))
        return 0;
    if (head.type != CX_CBOR_UINT && head.type != CX_CBOR_NEGATIVE) {
        cx_cbor_reject(reader, head.offset, "%s where an integer is expected",
                       type_name(head.type));
        return 0;
    }
    if (head.argument > INT64_MAX) {
        cx_cbor_reject(reader, head.offset, "an integer of more than 64 bits with its sign");
        return 0;
    }
    return head.type == CX_CBOR_UINT ? (int64_t)head.argument : -1 - (int64_t)head.argument;
}

/* Value of a half float; every one is a float exactly. */
static float half_value(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u, mantissa = half & 0x3ffu;
    uint32_t bits;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    bits = exponent == 31 ? sign | 0x7f800000u | mantissa << 13
                          : sign | (exponent + 112) << 23 | mantissa << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double float_value(const item_head *head)
{
    if (head->info == 25)
        return (double)half_value((uint16_t)head->argument);
    if (head->info == 26) {
        float value;
        uint32_t bits = (uint32_t)head->argument;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &head->argument, sizeof value);
    return value;
}

/* Checks that a float has the width that the writer would have chosen. */
static bool check_float(cx_cbor_reader *reader, const item_head *head, double value)
{
    uint8_t room[16];
    cx_buf shortest = {.data = room, .capacity = sizeof room};
    cx_cbor_f64(&shortest, value);
    size_t size = reader->offset - head->offset;
    if (shortest.size == size && memcmp(room, reader->data + head->offset, size) == 0)
        return true;
    cx_cbor_reject(reader, head->offset, "a float that is not in its shortest form");
    return false;
}

double cx_cbor_read_f64(cx_cbor_reader *reader)
{
    item_head head;
    if (!read_head_of_type(reader, CX_CBOR_SIMPLE, &head))
        return 0;
    if (head.info < 25) {
        cx_cbor_reject(reader, head.offset, "a simple value where a float is expected");
        return 0;
    }
    double value = float_value(&head);
    return check_float(reader, &head, value) ? value : 0;
}

float cx_cbor_read_f32(cx_cbor_reader *reader)
{
    size_t at = reader->offset;
    double value = cx_cbor_read_f64(reader);
    if (cx_cbor_ok(reader) && value == value && (double)(float)value != value) {
        cx_cbor_reject(reader, at, "a float of 64 bits where 32 are allowed");
        return 0;
    }
    return (float)value;
}

bool cx_cbor_read_bool(cx_cbor_reader *reader)
{
    item_head head;
    if (!read_head_of_type(reader, CX_CBOR_SIMPLE, &head))
        return false;
    if (head.info != 20 && head.info != 21)
        cx_cbor_reject(reader, head.offset, "something else where true or false is expected");
    return head.info == 21;
}

/* --- strings --------------------------------------------------------------------------------- */

static cx_bytes read_string_bytes(cx_cbor_reader *reader, const item_head *head)
{
    if (head->argument > reader->size - reader->offset) {
        cx_cbor_reject(reader, head->offset, "a string longer than the bytes that are left");
        return (cx_bytes){NULL, 0};
    }
    cx_bytes bytes = {reader->data + reader->offset, (size_t)head->argument};
    reader->offset += bytes.size;
    return bytes;
}

cx_bytes cx_cbor_read_bytes(cx_cbor_reader *reader)
{
    item_head head;
    return read_head_of_type(reader, CX_CBOR_BYTES, &head) ? read_string_bytes(reader, &head)
                                                           : (cx_bytes){NULL, 0};
}

bool cx_cbor_read_exactly(cx_cbor_reader *reader, void *out, size_t size)
{
    size_t at = reader->offset;
    cx_bytes bytes = cx_cbor_read_bytes(reader);
    if (!cx_cbor_ok(reader))
        return false;
    if (bytes.size != size) {
        cx_cbor_reject(reader, at, "%zu bytes where %zu are expected", bytes.size, size);
        return false;
    }
    memcpy(out, bytes.data, size);
    return true;
}

cx_digest cx_cbor_read_digest(cx_cbor_reader *reader)
{
    cx_digest digest = {{0}};
    const uint8_t *data = bytes_left(reader, 2 + sizeof digest.bytes);
    if (data != NULL && data[0] == 0x58 && data[1] == sizeof digest.bytes) {
        memcpy(digest.bytes, data + 2, sizeof digest.bytes);
        reader->offset += 2 + sizeof digest.bytes;
        return digest;
    }
    (void)cx_cbor_read_exactly(reader, digest.bytes, sizeof digest.bytes);
    return digest;
}

cx_str cx_cbor_read_text(cx_cbor_reader *reader)
{
    item_head head;
    if (!read_head_of_type(reader, CX_CBOR_TEXT, &head))
        return (cx_str){NULL, 0};
    cx_str text = cx_bytes_str(read_string_bytes(reader, &head));
    if (cx_cbor_ok(reader) && !cx_utf8_valid(text)) {
        cx_cbor_reject(reader, head.offset, "a text that is not valid UTF-8");
        return (cx_str){NULL, 0};
    }
    return text;
}

/* --- arrays and maps ------------------------------------------------------------------------- */

static size_t read_array_count(cx_cbor_reader *reader, cx_cbor_type type, size_t bytes_each,
                               size_t max)
{
    item_head head;
    if (!read_head_of_type(reader, type, &head))
        return 0;
    if (head.argument > (reader->size - reader->offset) / bytes_each) {
        cx_cbor_reject(reader, head.offset, "more items than the bytes that are left can hold");
        return 0;
    }
    if (head.argument > max) {
        cx_cbor_reject(reader, head.offset, "%llu items; at most %zu are allowed",
                       (unsigned long long)head.argument, max);
        return 0;
    }
    return (size_t)head.argument;
}

size_t cx_cbor_read_array(cx_cbor_reader *reader, size_t max)
{
    return read_array_count(reader, CX_CBOR_ARRAY, 1, max);
}

size_t cx_cbor_read_map(cx_cbor_reader *reader, size_t max)
{
    return read_array_count(reader, CX_CBOR_MAP, 2, max);
}

uint64_t cx_cbor_read_tag(cx_cbor_reader *reader)
{
    item_head head;
    return read_head_of_type(reader, CX_CBOR_TAG, &head) ? head.argument : 0;
}

cx_cbor_members cx_cbor_read_members(cx_cbor_reader *reader)
{
    cx_cbor_members members = {.offset = reader->offset};
    members.left = cx_cbor_read_map(reader, SIZE_MAX);
    return members;
}

bool cx_cbor_next_member(cx_cbor_reader *reader, cx_cbor_members *members)
{
    if (!cx_cbor_ok(reader) || members->left == 0)
        return false;
    uint64_t before = members->key;
    members->key_offset = reader->offset;
    members->left--;
    members->key = cx_cbor_read_uint(reader);
    if (!cx_cbor_ok(reader))
        return false;
    if (members->seen != 0 && members->key <= before) {
        cx_cbor_reject(reader, members->key_offset, "field %llu out of order or twice",
                       (unsigned long long)members->key);
        return false;
    }
    if (members->key > 63) {
        cx_cbor_reject_member(reader, members);
        return false;
    }
    members->seen |= UINT64_C(1) << members->key;
    return true;
}

void cx_cbor_reject_member(cx_cbor_reader *reader, const cx_cbor_members *members)
{
    cx_cbor_reject(reader, members->key_offset, "unknown field %llu",
                   (unsigned long long)members->key);
}

void cx_cbor_reject_empty(cx_cbor_reader *reader, const cx_cbor_members *members)
{
    cx_cbor_reject(reader, members->key_offset, "field %llu is empty and should be left out",
                   (unsigned long long)members->key);
}

void cx_cbor_require(cx_cbor_reader *reader, const cx_cbor_members *members, uint64_t mask)
{
    uint64_t missing = mask & ~members->seen;
    for (unsigned key = 0; missing != 0 && key < 64; key++)
        if ((missing >> key & 1) != 0) {
            cx_cbor_reject(reader, members->offset, "required field %u is missing", key);
            return;
        }
}

/* --- long lists, as in proofs ----------------------------------------------------------------- */

static bool are_digests(const uint8_t *data, size_t count)
{
    unsigned differs = 0;
    for (size_t i = 0; i < count; i++)
        differs |= (data[i * CX_CBOR_DIGEST_STRIDE] ^ 0x58u) |
                   (data[i * CX_CBOR_DIGEST_STRIDE + 1] ^ (unsigned)sizeof(cx_digest));
    return differs == 0;
}

const uint8_t *cx_cbor_read_digests(cx_cbor_reader *reader, size_t max, size_t *out_count)
{
    size_t count = cx_cbor_read_array(reader, max);
    const uint8_t *data = reader->data + reader->offset;
    *out_count = cx_cbor_ok(reader) ? count : 0;
    if (*out_count == 0)
        return NULL;
    if (count <= (reader->size - reader->offset) / CX_CBOR_DIGEST_STRIDE &&
        are_digests(data, count)) {
        reader->offset += count * CX_CBOR_DIGEST_STRIDE;
        return data + CX_CBOR_DIGEST_STRIDE - sizeof(cx_digest);
    }
    /* One of them is invalid: the general path reports which. */
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++)
        (void)cx_cbor_read_digest(reader);
    CX_ASSERT(!cx_cbor_ok(reader));
    *out_count = 0;
    return NULL;
}

void cx_cbor_read_indexes(cx_cbor_reader *reader, uint32_t *out, size_t count)
{
    size_t done = 0;
    while (done < count && cx_cbor_ok(reader)) {
        const uint8_t *at = reader->data + reader->offset, *end = reader->data + reader->size;
        for (; done < count && end - at >= 3; done++) {
            if (at[0] < 24) {
                out[done] = at[0];
                at += 1;
            } else if (at[0] == 0x19 && at[1] != 0) {
                out[done] = (uint32_t)at[1] << 8 | at[2];
                at += 3;
            } else if (at[0] == 0x18 && at[1] >= 24) {
                out[done] = at[1];
                at += 2;
            } else {
                break;
            }
        }
        reader->offset = (size_t)(at - reader->data);
        if (done < count) {
            uint64_t index = cx_cbor_read_uint(reader);
            out[done++] = index > UINT32_MAX ? UINT32_MAX : (uint32_t)index;
        }
    }
}

/* --- anything -------------------------------------------------------------------------------- */

/* `depth`: how many arrays and maps may still be opened. */
static void check_item(cx_cbor_reader *reader, unsigned depth);

static void check_map(cx_cbor_reader *reader, size_t count, unsigned depth)
{
    cx_str before = {NULL, 0};
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++) {
        size_t at = reader->offset;
        check_item(reader, depth);
        if (!cx_cbor_ok(reader))
            return;
        cx_str key = cx_str_from((const char *)reader->data + at, reader->offset - at);
        if (i != 0 && cx_str_cmp(before, key) >= 0) {
            cx_cbor_reject(reader, at, "a map's key out of order or twice");
            return;
        }
        before = key;
        check_item(reader, depth);
    }
}

static void check_simple(cx_cbor_reader *reader)
{
    unsigned info = reader->data[reader->offset] & 31u;
    if (info >= 25 && info <= 27) {
        (void)cx_cbor_read_f64(reader);
        return;
    }
    if (info < 20 || info > 22)
        cx_cbor_reject(reader, reader->offset, "a simple value other than false, true and null");
    else
        reader->offset++;
}

static void check_item(cx_cbor_reader *reader, unsigned depth)
{
    size_t at = reader->offset;
    cx_cbor_type type = cx_cbor_peek(reader);
    if (depth == 0 && (type == CX_CBOR_ARRAY || type == CX_CBOR_MAP)) {
        cx_cbor_reject(reader, at, "nested deeper than %d", CX_CBOR_DEPTH_MAX);
        return;
    }
    switch (type) {
    case CX_CBOR_UINT: (void)cx_cbor_read_uint(reader); break;
    case CX_CBOR_NEGATIVE: {
        item_head head;
        (void)read_head(reader, &head);
        break;
    }
    case CX_CBOR_BYTES: (void)cx_cbor_read_bytes(reader); break;
    case CX_CBOR_TEXT: (void)cx_cbor_read_text(reader); break;
    case CX_CBOR_ARRAY: {
        size_t count = cx_cbor_read_array(reader, SIZE_MAX);
        for (size_t i = 0; i < count && cx_cbor_ok(reader); i++)
            check_item(reader, depth - 1);
        break;
    }
    case CX_CBOR_MAP: {
        size_t count = cx_cbor_read_map(reader, SIZE_MAX);
        check_map(reader, count, depth - 1);
        break;
    }
    case CX_CBOR_SIMPLE: check_simple(reader); break;
    case CX_CBOR_TAG: cx_cbor_reject(reader, at, "a tag"); break;
    case CX_CBOR_NONE: {
        item_head head;
        (void)read_head(reader, &head);
        break;
    }
    }
}

cx_bytes cx_cbor_read_any(cx_cbor_reader *reader)
{
    size_t at = reader->offset;
    check_item(reader, CX_CBOR_DEPTH_MAX);
    if (!cx_cbor_ok(reader))
        return (cx_bytes){NULL, 0};
    return cx_bytes_from(reader->data + at, reader->offset - at);
}

cx_status cx_cbor_check(cx_bytes bytes, cx_err *err)
{
    cx_cbor_reader reader;
    cx_cbor_begin(&reader, bytes, "CBOR");
    (void)cx_cbor_read_any(&reader);
    return cx_cbor_end(&reader, err);
}
