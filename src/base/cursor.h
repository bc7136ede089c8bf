/*
 * cursor.h - bounds-checked reading and writing over fixed memory.
 *
 * A reader that ran past its end stays failed: later reads return zeros, and the caller checks
 * cx_reader_ok once, at the end.  Integers are big-endian, as in every Cortex format.
 */
#ifndef CX_BASE_CURSOR_H
#define CX_BASE_CURSOR_H

#include "base/bytes.h"
#include "base/diag.h"

typedef struct cx_reader {
    const uint8_t *data;
    size_t size;
    size_t offset;
    bool failed;
} cx_reader;

static inline cx_reader cx_reader_over(cx_bytes bytes)
{
    return (cx_reader){bytes.data, bytes.size, 0, false};
}
static inline bool cx_reader_ok(const cx_reader *reader)
{
    return !reader->failed;
}
static inline size_t cx_reader_left(const cx_reader *reader)
{
    return reader->size - reader->offset;
}

/* `size` bytes, borrowed; empty and failed when fewer are left. */
static inline cx_bytes cx_reader_bytes(cx_reader *reader, size_t size)
{
    if (reader->failed || size > cx_reader_left(reader)) {
        reader->failed = true;
        return (cx_bytes){NULL, 0};
    }
    if (size == 0) /* also of a reader over nothing, whose data is NULL */
        return (cx_bytes){reader->data, 0};
    cx_bytes bytes = {reader->data + reader->offset, size};
    reader->offset += size;
    return bytes;
}

static inline uint64_t cx_reader_uint(cx_reader *reader, size_t width)
{
    CX_ASSERT(width >= 1 && width <= 8);
    cx_bytes bytes = cx_reader_bytes(reader, width);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size; i++)
        value = value << 8 | bytes.data[i];
    return value;
}
static inline uint8_t cx_reader_u8(cx_reader *reader)
{
    return (uint8_t)cx_reader_uint(reader, 1);
}
static inline uint16_t cx_reader_u16(cx_reader *reader)
{
    return (uint16_t)cx_reader_uint(reader, 2);
}
static inline uint32_t cx_reader_u32(cx_reader *reader)
{
    return (uint32_t)cx_reader_uint(reader, 4);
}
static inline uint64_t cx_reader_u64(cx_reader *reader)
{
    return cx_reader_uint(reader, 8);
}

typedef struct cx_writer {
    uint8_t *data;
    size_t size;
    size_t offset;
    bool failed;
} cx_writer;

static inline cx_writer cx_writer_over(void *data, size_t size)
{
    return (cx_writer){(uint8_t *)data, size, 0, false};
}
static inline bool cx_writer_ok(const cx_writer *writer)
{
    return !writer->failed;
}

static inline void cx_writer_put(cx_writer *writer, const void *data, size_t size)
{
    if (writer->failed || size > writer->size - writer->offset) {
        writer->failed = true;
        return;
    }
    if (size != 0)
        memcpy(writer->data + writer->offset, data, size);
    writer->offset += size;
}

static inline void cx_writer_uint(cx_writer *writer, uint64_t value, size_t width)
{
    CX_ASSERT(width >= 1 && width <= 8);
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    cx_writer_put(writer, bytes, width);
}

#endif
