/*
 * fixture.h - what the tests of this module share: an arena, vectors read from files, hex.
 */
#ifndef CX_TESTS_MEMORY_FIXTURE_H
#define CX_TESTS_MEMORY_FIXTURE_H

#include <stdlib.h>

#include "base/io.h"
#include "base/hex.h"
#include "json/json.h"
#include "proof/entry.h"
#include "tests/test.h"

typedef struct fixture {
    cx_arena arena;
    cx_buf buf;
    cx_err err;
} fixture;

static inline void fixture_init(fixture *kit)
{
    memset(kit, 0, sizeof *kit);
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
    cx_buf_init(&kit->buf, cx_alloc_default());
}

static inline void fixture_done(fixture *kit)
{
    cx_buf_done(&kit->buf);
    cx_arena_done(&kit->arena);
}

/* A vector file as JSON; false (and a failure) when it cannot be read. */
static inline bool fixture_load(fixture *kit, const char *name, cx_json *out)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status =
        cx_io_read_file(cx_io_system(), cx_test_path(name), 8u << 20, &text, &kit->err);
    cx_str copy =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&kit->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    if (!cx_failed(status))
        status = cx_json_parse_text(copy, &kit->arena, out, &kit->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", name, kit->err.message);
    return !cx_failed(status);
}

/* JSON from text of the test's own. */
static inline cx_json fixture_json(fixture *kit, const char *text)
{
    cx_json value = cx_json_make_null();
    CHECK_STATUS(cx_json_parse_text(cx_str_z(text), &kit->arena, &value, &kit->err), &kit->err);
    return value;
}

/* The bytes of lower-case hex, in memory of exactly that size. */
static inline cx_bytes fixture_hex(fixture *kit, cx_str hex)
{
    uint8_t *bytes = cx_arena_push(&kit->arena, hex.size / 2 + 1, 1);
    if (bytes == NULL || !cx_hex_decode(hex, bytes, hex.size / 2))
        cx_test_fail(__FILE__, __LINE__, "not hex: %.*s", (int)hex.size, hex.data);
    return (cx_bytes){bytes, hex.size / 2};
}

static inline cx_bytes fixture_hex_of(fixture *kit, const cx_json *object, const char *name)
{
    return fixture_hex(kit, cx_json_get_str(object, cx_str_z(name)));
}

static inline uint64_t fixture_uint(const cx_json *object, const char *name)
{
    uint64_t value = 0;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    if (member == NULL || !cx_json_uint64(member, &value))
        cx_test_fail(__FILE__, __LINE__, "no number %s", name);
    return value;
}

static inline bool fixture_same(cx_bytes a, cx_bytes b)
{
    return cx_str_eq(cx_bytes_str(a), cx_bytes_str(b));
}

/* "" rather than NULL, so that a tag can always be compared. */
static inline cx_str fixture_tag(const cx_err *err)
{
    return cx_str_z(err->tag != NULL ? err->tag : "");
}

static inline cx_id fixture_id(uint64_t number)
{
    cx_id id = {{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00}};
    for (size_t i = 0; i < 8; i++)
        id.bytes[8 + i] = (uint8_t)(number >> (56 - 8 * i));
    return id;
}

#endif
