/*
 * remote_wire_internal.h - members of messages, for remote_wire.c and remote_answer.c.
 */
#ifndef CX_SOCKET_REMOTE_WIRE_INTERNAL_H
#define CX_SOCKET_REMOTE_WIRE_INTERNAL_H

#include "cbor/api.h"
#include "socket/remote_wire.h"

#define BIT(member) (UINT32_C(1) << (member))

/* Which members a message has, apart from the first two of every one. */
typedef struct members {
    uint32_t required;
    uint32_t optional;
} members;

static inline bool is_in_range(const members *known, uint64_t seen)
{
    /* The first two, number and operation or number and error, are looked at elsewhere. */
    uint32_t rest = (uint32_t)seen & ~(BIT(0) | BIT(1));
    return (rest & known->required) == known->required &&
           (rest & ~(known->required | known->optional)) == 0;
}

/* The members that both maps have under one number are told apart by the bit. */
static inline bool takes(const members *known, unsigned member)
{
    return ((known->required | known->optional) & BIT(member)) != 0;
}

static inline void put_bytes(cx_cbor_fields *fields, unsigned member, cx_bytes bytes)
{
    cx_cbor_field(fields, (uint8_t)member);
    cx_cbor_bytes(fields->out, bytes);
}

static inline void put_uint(cx_cbor_fields *fields, unsigned member, uint64_t value)
{
    cx_cbor_field(fields, (uint8_t)member);
    cx_cbor_uint(fields->out, value);
}

static inline void put_true(cx_cbor_fields *fields, unsigned member)
{
    cx_cbor_field(fields, (uint8_t)member);
    cx_cbor_bool(fields->out, true);
}

static inline cx_bytes read_bytes_max(cx_cbor_reader *reader, size_t max)
{
    size_t at = reader->offset;
    cx_bytes bytes = cx_cbor_read_bytes(reader);
    if (bytes.size > max) {
        cx_cbor_reject(reader, at, "%zu bytes are more than the allowed %zu", bytes.size, max);
        return (cx_bytes){NULL, 0};
    }
    return bytes;
}

/* False stands for itself by not being there. */
static inline bool read_true(cx_cbor_reader *reader)
{
    size_t at = reader->offset;
    if (cx_cbor_read_bool(reader))
        return true;
    cx_cbor_reject(reader, at, "false, which is said by leaving it out");
    return false;
}

static inline cx_scheme read_scheme(cx_cbor_reader *reader)
{
    cx_scheme scheme = CX_SCHEME_CORTEX_1;
    size_t at = reader->offset;
    cx_str name = cx_cbor_read_text(reader);
    if (cx_cbor_ok(reader) && !cx_scheme_parse(name, &scheme))
        cx_cbor_reject(reader, at, "no scheme that is known");
    return scheme;
}

static inline cx_id read_id(cx_cbor_reader *reader)
{
    cx_id id = {{0}};
    (void)cx_cbor_read_exactly(reader, id.bytes, sizeof id.bytes);
    return id;
}

/* Room for an array's items; an array that has none gets some all the same. */
#define READ_ARRAY(reader, arena, type, count) \
    ((type *)read_array(reader, arena, count, sizeof(type), alignof(type)))

static inline void *read_array(cx_cbor_reader *reader, cx_arena *arena, size_t count,
                               size_t item_size, size_t align)
{
    void *items = cx_arena_push_array(arena, count + 1, item_size, align);
    if (items == NULL)
        reader->status = cx_fail_nomem(&reader->err);
    return items;
}

#endif
