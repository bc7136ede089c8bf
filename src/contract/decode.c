/*
 * decode.c - decodes members of configuration files.
 */
#include "contract/decode.h"

#include <stdlib.h>

#include "json/api.h"

void cx_decode_fault(cx_decoder *decoder, const char *where, const char *expected)
{
    CX_ASSERT(decoder->err != NULL);
    if (decoder->failed)
        return;
    decoder->failed = true;
    (void)cx_fail(decoder->err, CX_E_FORMAT, "%s: %s%sexpected %s", decoder->file, where,
                  *where == 0 ? "" : ": ", expected);
}

static cx_str member_name(const char *where)
{
    const char *dot = strrchr(where, '.');
    return cx_str_z(dot == NULL ? where : dot + 1);
}

/* The member, NULL when absent or after a fault. */
static const cx_json *find_member(cx_decoder *decoder, const cx_json *object, const char *where)
{
    return decoder->failed ? NULL : cx_json_get(object, member_name(where));
}

void cx_decode_object(cx_decoder *decoder, const cx_json *value, const char *where,
                      const char *const *names, size_t name_count)
{
    if (decoder->failed)
        return;
    if (value->type != CX_JSON_OBJECT) {
        cx_decode_fault(decoder, where, "an object");
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        cx_str name = cx_json_text(&value->members[i].name);
        size_t known = 0;
        while (known < name_count && !cx_str_is(name, names[known]))
            known++;
        if (known == name_count) {
            decoder->failed = true;
            (void)cx_fail(decoder->err, CX_E_FORMAT,
                          "%s: there is no member '%.*s' in %s%s; see docs/formats/run-config.md",
                          decoder->file, (int)(name.size < 64 ? name.size : 64), name.data,
                          *where == 0 ? "the file" : where, "");
            return;
        }
    }
}

const cx_json *cx_decode_need(cx_decoder *decoder, const cx_json *object, const char *where)
{
    const cx_json *value = find_member(decoder, object, where);
    if (value == NULL)
        cx_decode_fault(decoder, where, "this member, which is missing");
    return value;
}

void cx_decode_str(cx_decoder *decoder, const cx_json *object, const char *where, cx_str *out)
{
    const cx_json *value = find_member(decoder, object, where);
    if (value == NULL)
        return;
    if (value->type != CX_JSON_STRING || value->count == 0 ||
        memchr(value->text, 0, value->count) != NULL)
        cx_decode_fault(decoder, where, "text that is not empty");
    else
        *out = cx_json_text(value);
}

void cx_decode_bool(cx_decoder *decoder, const cx_json *object, const char *where, bool *out)
{
    const cx_json *value = find_member(decoder, object, where);
    if (value == NULL)
        return;
    if (value->type != CX_JSON_TRUE && value->type != CX_JSON_FALSE)
        cx_decode_fault(decoder, where, "true or false");
    else
        *out = value->type == CX_JSON_TRUE;
}

void cx_decode_u64(cx_decoder *decoder, const cx_json *object, const char *where, uint64_t min,
                   uint64_t max, uint64_t *out)
{
    CX_ASSERT(min <= max);
    const cx_json *value = find_member(decoder, object, where);
    uint64_t number = 0;
    char expected[96];
    if (value == NULL)
        return;
    bool good = value->type == CX_JSON_INT && value->count <= 19 && value->text[0] != '-';
    for (uint32_t i = 0; good && i < value->count; i++)
        number = number * 10 + (uint64_t)(value->text[i] - '0');
    if (good && number >= min && number <= max) {
        *out = number;
        return;
    }
    (void)snprintf(expected, sizeof expected, "a whole number from %llu to %llu",
                   (unsigned long long)min, (unsigned long long)max);
    cx_decode_fault(decoder, where, expected);
}

void cx_decode_u32(cx_decoder *decoder, const cx_json *object, const char *where, uint32_t min,
                   uint32_t max, uint32_t *out)
{
    uint64_t wide = *out;
    cx_decode_u64(decoder, object, where, min, max, &wide);
    *out = (uint32_t)wide;
}

void cx_decode_word_items(cx_decoder *decoder, const cx_json *array, const char *where,
                          cx_str_list *out)
{
    if (decoder->failed)
        return;
    if (array->type != CX_JSON_ARRAY) {
        cx_decode_fault(decoder, where, "an array of texts");
        return;
    }
    cx_str *items = CX_ARENA_ARRAY(decoder->arena, cx_str, array->count + 1);
    if (items == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    for (uint32_t i = 0; i < array->count; i++) {
        const cx_json *item = &array->items[i];
        if (item->type != CX_JSON_STRING || item->count == 0 ||
            memchr(item->text, 0, item->count) != NULL) {
            cx_decode_fault(decoder, where, "texts only, none of them empty");
            return;
        }
        items[i] = cx_json_text(item);
    }
    *out = (cx_str_list){items, array->count};
}

void cx_decode_words(cx_decoder *decoder, const cx_json *object, const char *where,
                     cx_str_list *out)
{
    const cx_json *value = find_member(decoder, object, where);
    if (value != NULL)
        cx_decode_word_items(decoder, value, where, out);
}

void cx_decode_version(cx_decoder *decoder, const cx_json *object)
{
    const cx_json *value = cx_decode_need(decoder, object, "version");
    if (value != NULL &&
        (value->type != CX_JSON_STRING || !cx_str_eq(cx_json_text(value), CX_STR("v1"))))
        cx_decode_fault(decoder, "version", "\"v1\"");
}

cx_status cx_decode_end(const cx_decoder *decoder)
{
    CX_ASSERT(!decoder->failed || decoder->err->code != CX_OK);
    return decoder->failed ? (cx_status){decoder->err->code} : CX_SUCCESS;
}
