/*
 * pointer.c - RFC 6901: naming one value inside another.
 */
#include "json/internal.h"

/* Whether the escaped token spells `name` (~0 is '~', ~1 is '/'); its escapes are well-formed. */
static bool token_is(cx_str token, cx_str name)
{
    size_t at = 0;
    for (size_t i = 0; i < token.size; i++, at++) {
        char byte = token.data[i];
        if (byte == '~')
            byte = token.data[++i] == '0' ? '~' : '/';
        if (at == name.size || name.data[at] != byte)
            return false;
    }
    return at == name.size;
}

static const cx_json *member_of(const cx_json *object, cx_str token)
{
    if (token.size == 0 || memchr(token.data, '~', token.size) == NULL)
        return cx_json_get(object, token);
    for (uint32_t i = 0; i < object->count; i++)
        if (token_is(token, cx_json_text(&object->members[i].name)))
            return &object->members[i].value;
    return NULL;
}

/* RFC 6901 §4: digits without a leading zero; '-' denotes the element after the last: none. */
static const cx_json *item_of(const cx_json *array, cx_str token)
{
    uint64_t index = 0;
    if (token.size == 0 || token.size > 10 || (token.size > 1 && token.data[0] == '0'))
        return NULL;
    for (size_t i = 0; i < token.size; i++) {
        if (token.data[i] < '0' || token.data[i] > '9')
            return NULL;
        index = index * 10 + (uint64_t)(token.data[i] - '0');
    }
    return index < array->count ? &array->items[index] : NULL;
}

static bool well_formed(cx_str pointer)
{
    if (pointer.size != 0 && pointer.data[0] != '/')
        return false;
    for (size_t i = 0; i < pointer.size; i++)
        if (pointer.data[i] == '~' &&
            (i + 1 == pointer.size || (pointer.data[i + 1] != '0' && pointer.data[i + 1] != '1')))
            return false;
    return true;
}

const cx_json *cx_json_pointer(const cx_json *root, cx_str pointer)
{
    if (!well_formed(pointer))
        return NULL;
    size_t at = 0;
    while (root != NULL && at < pointer.size) {
        const char *start = pointer.data + at + 1;
        size_t left = pointer.size - at - 1;
        const char *slash = left == 0 ? NULL : memchr(start, '/', left);
        cx_str token = {start, slash != NULL ? (size_t)(slash - start) : left};
        if (root->type == CX_JSON_OBJECT)
            root = member_of(root, token);
        else if (root->type == CX_JSON_ARRAY)
            root = item_of(root, token);
        else
            root = NULL;
        at += 1 + token.size;
    }
    return root;
}

void cx_json_pointer_add(cx_buf *pointer, cx_str token)
{
    cx_buf_add_byte(pointer, '/');
    for (size_t i = 0; i < token.size; i++) {
        if (token.data[i] == '~')
            cx_buf_add_z(pointer, "~0");
        else if (token.data[i] == '/')
            cx_buf_add_z(pointer, "~1");
        else
            cx_buf_add_byte(pointer, (uint8_t)token.data[i]);
    }
}
