/*
 * buf.h - owned bytes that grow.
 *
 * Appending never returns an error: when memory runs out the buffer becomes `failed`, later appends
 * are ignored, and cx_buf_check reports it once at the end.  This keeps writers readable and loses
 * nothing silently, because callers must not use the contents of a failed buffer.
 */
#ifndef CX_BASE_BUF_H
#define CX_BASE_BUF_H

#include "base/bytes.h"
#include "base/diag.h"
#include "base/status.h"

typedef struct cx_buf {
    const cx_alloc *alloc;
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool failed;
} cx_buf;

void cx_buf_init(cx_buf *buf, const cx_alloc *alloc);
void cx_buf_done(cx_buf *buf);

/* Removes the contents, retains the memory, clears `failed`. */
static inline void cx_buf_clear(cx_buf *buf)
{
    buf->size = 0;
    buf->failed = false;
}

/* CX_E_NOMEM when any append since the last clear failed. */
CX_RESULT cx_buf_check(const cx_buf *buf, cx_err *err);

/* Slow path of cx_buf_reserve: false when out of memory. */
bool cx_buf_grow(cx_buf *buf, size_t more_bytes);

/* Space for `more_bytes` after the contents, or NULL when out of memory; commit with
 * cx_buf_advance. */
static inline uint8_t *cx_buf_reserve(cx_buf *buf, size_t more_bytes)
{
    if (CX_UNLIKELY(buf->capacity - buf->size < more_bytes) && !cx_buf_grow(buf, more_bytes))
        return NULL;
    return buf->data + buf->size;
}

static inline void cx_buf_advance(cx_buf *buf, size_t size_bytes)
{
    CX_DEBUG_ASSERT(size_bytes <= buf->capacity - buf->size);
    buf->size += size_bytes;
}

static inline void cx_buf_add(cx_buf *buf, const void *data, size_t size_bytes)
{
    uint8_t *space;
    if (size_bytes != 0 && (space = cx_buf_reserve(buf, size_bytes)) != NULL) {
        memcpy(space, data, size_bytes);
        buf->size += size_bytes;
    }
}

static inline void cx_buf_add_str(cx_buf *buf, cx_str text)
{
    cx_buf_add(buf, text.data, text.size);
}
static inline void cx_buf_add_z(cx_buf *buf, const char *text)
{
    cx_buf_add(buf, text, strlen(text));
}

static inline void cx_buf_add_byte(cx_buf *buf, uint8_t byte)
{
    uint8_t *space = cx_buf_reserve(buf, 1);
    if (space != NULL) {
        *space = byte;
        buf->size += 1;
    }
}

void cx_buf_add_u64(cx_buf *buf, uint64_t value); /* decimal */
void cx_buf_add_i64(cx_buf *buf, int64_t value);  /* decimal */
/* A word of a command line of sh, as it is where no character means more to a shell, else between
 * quotes ('it'\''s'); the second always between quotes. */
void cx_buf_add_sh_word(cx_buf *buf, cx_str word);
void cx_buf_add_sh_quoted(cx_buf *buf, cx_str word);
void cx_buf_printf(cx_buf *buf, const char *format, ...) CX_PRINTF(2, 3);

/* Borrowed until the next append. */
static inline cx_str cx_buf_str(const cx_buf *buf)
{
    return (cx_str){(const char *)buf->data, buf->size};
}
static inline cx_bytes cx_buf_bytes(const cx_buf *buf)
{
    return (cx_bytes){buf->data, buf->size};
}

/* Appends a zero byte that is not counted and returns the text, or NULL when failed. */
const char *cx_buf_z(cx_buf *buf);

#endif
