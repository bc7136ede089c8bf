/*
 * buf.c - growing buffers.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

void cx_buf_init(cx_buf *buf, const cx_alloc *alloc)
{
    *buf = (cx_buf){.alloc = alloc};
}

void cx_buf_done(cx_buf *buf)
{
    cx_alloc_free(buf->alloc, buf->data, buf->capacity);
    cx_buf_init(buf, buf->alloc);
}

cx_status cx_buf_check(const cx_buf *buf, cx_err *err)
{
    return buf->failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

bool cx_buf_grow(cx_buf *buf, size_t more_bytes)
{
    size_t needed;
    if (buf->failed || !cx_size_add(buf->size, more_bytes, &needed)) {
        buf->failed = true;
        return false;
    }
    if (needed <= buf->capacity)
        return true;
    size_t capacity = buf->capacity < 64 ? 64 : buf->capacity;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    uint8_t *data = buf->alloc->resize(buf->alloc->ctx, buf->data, buf->capacity, capacity);
    if (data == NULL) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void cx_buf_add_u64(cx_buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    cx_buf_add(buf, digits + at, sizeof digits - at);
}

void cx_buf_add_i64(cx_buf *buf, int64_t value)
{
    if (value < 0)
        cx_buf_add_byte(buf, '-');
    cx_buf_add_u64(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void cx_buf_add_sh_quoted(cx_buf *buf, cx_str word)
{
    cx_buf_add_byte(buf, '\'');
    for (size_t i = 0; i < word.size; i++)
        if (word.data[i] == '\'')
            cx_buf_add_z(buf, "'\\''");
        else
            cx_buf_add_byte(buf, (uint8_t)word.data[i]);
    cx_buf_add_byte(buf, '\'');
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("/._-+@%,:", c) != NULL);
}

void cx_buf_add_sh_word(cx_buf *buf, cx_str word)
{
    bool plain = word.size != 0;
    for (size_t i = 0; i < word.size && plain; i++)
        plain = is_plain(word.data[i]);
    if (plain)
        cx_buf_add_str(buf, word);
    else
        cx_buf_add_sh_quoted(buf, word);
}

void cx_buf_printf(cx_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    uint8_t *room = size < 0 ? NULL : cx_buf_reserve(buf, (size_t)size + 1);
    if (room == NULL) {
        buf->failed = true;
        return;
    }
    va_start(args, format);
    (void)vsnprintf((char *)room, (size_t)size + 1, format, args);
    va_end(args);
    buf->size += (size_t)size;
}

const char *cx_buf_z(cx_buf *buf)
{
    uint8_t *room = buf->failed ? NULL : cx_buf_reserve(buf, 1);
    if (room == NULL)
        return NULL;
    *room = 0;
    return (const char *)buf->data;
}
