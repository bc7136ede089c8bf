/*
 * record_kit.h - what is done to every encoded record and payload: it comes back byte for byte,
 * and whatever is changed in it is refused or is another one's only spelling.
 */
#ifndef CX_TESTS_LEDGER_RECORD_KIT_H
#define CX_TESTS_LEDGER_RECORD_KIT_H

#include "fuzz/records.h"
#include "tests/support/tree_vectors.h"

#define KEY(k) (UINT64_C(1) << (k))
#define KEYS_UP_TO(k) (KEY((k) + 1) - 1)

/* One format: a record, or the payload of a kind. */
typedef struct kit_format {
    const char *name;
    record_again *again; /* NULL: the payload of `kind` */
    cx_entry_kind kind;
} kit_format;

#define KIT_RECORD(format) ((kit_format){#format, again_##format, CX_ENTRY_RAW})

static inline kit_format kit_payload(cx_entry_kind kind)
{
    return (kit_format){cx_entry_kind_name(kind).data, NULL, kind};
}

static inline bool kit_again(const kit_format *format, cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_buf_clear(out);
    return format->again != NULL ? format->again(bytes, arena, out)
                                 : again_payload(format->kind, bytes, arena, out);
}

/* Whether the bytes are accepted; then they are what the encoder writes. */
static inline bool kit_accepts(const kit_format *format, cx_bytes bytes)
{
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    bool accepted = kit_again(format, bytes, &arena, &out);
    if (accepted && !cx_str_eq(cx_buf_str(&out), cx_bytes_str(bytes)))
        cx_test_fail(__FILE__, __LINE__, "%s: accepted, but written differently", format->name);
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return accepted;
}

static inline cx_bytes kit_hex(cx_str hex, cx_arena *arena)
{
    uint8_t *bytes = cx_arena_push(arena, hex.size / 2 + 1, 1);
    if (bytes == NULL || !cx_hex_decode(hex, bytes, hex.size / 2))
        cx_test_fail(__FILE__, __LINE__, "not hex: %.*s", (int)hex.size, hex.data);
    return cx_bytes_from(bytes, hex.size / 2);
}

static inline cx_bytes kit_member(const cx_json *item, const char *name, cx_arena *arena)
{
    const cx_json *hex = cx_json_get(item, cx_str_z(name));
    if (hex == NULL || hex->type != CX_JSON_STRING)
        cx_test_fail(__FILE__, __LINE__, "no %s", name);
    return kit_hex(hex != NULL ? cx_json_text(hex) : CX_STR(""), arena);
}

/* The item of the list with this label. */
static inline const cx_json *kit_case(const cx_json *list, const char *label)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (cx_str_is(cx_json_get_str(&list->items[i], CX_STR("label")), label))
            return &list->items[i];
    cx_test_fail(__FILE__, __LINE__, "no case '%s'", label);
    return &list->items[0];
}

static inline void kit_same_at(const char *file, int line, const cx_buf *got, cx_bytes expected)
{
    cx_buf a, b;
    if (!got->failed && cx_str_eq(cx_buf_str(got), cx_bytes_str(expected)))
        return;
    cx_buf_init(&a, cx_alloc_default());
    cx_buf_init(&b, cx_alloc_default());
    cx_hex_add(&a, cx_buf_bytes(got));
    cx_hex_add(&b, expected);
    cx_test_fail(file, line, "%.*s, expected %.*s", (int)a.size, (const char *)a.data, (int)b.size,
                 (const char *)b.data);
    cx_buf_done(&a);
    cx_buf_done(&b);
}
#define CHECK_SAME(buf, expected) kit_same_at(__FILE__, __LINE__, (buf), (expected))

/* 16 bytes, each one more than the one before: the ids of the vectors. */
static inline cx_id kit_id(uint8_t first)
{
    cx_id id;
    for (uint8_t i = 0; i < sizeof id.bytes; i++)
        id.bytes[i] = (uint8_t)(first + i);
    return id;
}

static inline cx_digest kit_filled(uint8_t byte)
{
    cx_digest digest;
    memset(digest.bytes, byte, sizeof digest.bytes);
    return digest;
}

/* --- damage: cut short, and each bit turned -------------------------------------------------- */

static inline void kit_check_damage(const kit_format *format, cx_bytes bytes)
{
    cx_arena arena;
    cx_buf out, copy;
    size_t accepted = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&copy, cx_alloc_default());
    for (size_t size = 0; size < bytes.size; size++)
        CHECK(!kit_again(format, cx_bytes_from(bytes.data, size), &arena, &out));
    cx_buf_add(&copy, bytes.data, bytes.size);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        copy.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (kit_again(format, cx_buf_bytes(&copy), &arena, &out)) {
            CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&copy)));
            accepted++;
        }
        copy.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(accepted < 8 * bytes.size); /* the first byte alone has bits that must be refused */
    cx_buf_add_byte(&copy, 0);
    CHECK(!kit_again(format, cx_buf_bytes(&copy), &arena, &out));
    cx_buf_done(&copy);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

/* The record comes back, and stands the damage. */
static inline void kit_check_whole(const kit_format *format, cx_bytes bytes)
{
    if (!kit_accepts(format, bytes))
        cx_test_fail(__FILE__, __LINE__, "%s: a record of the vectors is refused", format->name);
    else
        kit_check_damage(format, bytes);
}

/* --- damage: the fields of one map ----------------------------------------------------------- */

typedef struct kit_field {
    uint64_t key;
    size_t at, value_at, end;
} kit_field;

typedef struct kit_map {
    const kit_format *format;
    cx_bytes bytes; /* the whole record */
    size_t at, end; /* of the map inside it */
    kit_field fields[24];
    size_t count;
    cx_buf work;
} kit_map;

/* Down into bytes: a field's key in a map, an index in an array. */
static inline void kit_enter(cx_cbor_reader *r, unsigned step)
{
    if (cx_cbor_peek(r) == CX_CBOR_ARRAY) {
        (void)cx_cbor_read_array(r, SIZE_MAX);
        for (unsigned i = 0; i < step; i++)
            (void)cx_cbor_read_any(r);
        return;
    }
    (void)cx_cbor_read_map(r, SIZE_MAX);
    while (cx_cbor_ok(r) && cx_cbor_read_uint(r) != step)
        (void)cx_cbor_read_any(r);
}

/* `path`: the steps down to the map, closed by -1. */
static inline void kit_map_open(kit_map *map, const kit_format *format, cx_bytes bytes,
                                const int *path)
{
    cx_cbor_reader r;
    *map = (kit_map){.format = format, .bytes = bytes};
    cx_buf_init(&map->work, cx_alloc_default());
    cx_cbor_begin(&r, bytes, format->name);
    for (size_t i = 0; path[i] >= 0; i++)
        kit_enter(&r, (unsigned)path[i]);
    map->at = r.offset;
    map->count = cx_cbor_read_map(&r, CX_COUNT_OF(map->fields));
    for (size_t i = 0; i < map->count; i++) {
        kit_field *field = &map->fields[i];
        field->at = r.offset;
        field->key = cx_cbor_read_uint(&r);
        field->value_at = r.offset;
        (void)cx_cbor_read_any(&r);
        field->end = r.offset;
    }
    map->end = r.offset;
    if (!cx_cbor_ok(&r))
        cx_test_fail(__FILE__, __LINE__, "%s: no such map", format->name);
}

static inline void kit_map_begin(kit_map *map, size_t count)
{
    cx_buf_clear(&map->work);
    cx_buf_add(&map->work, map->bytes.data, map->at);
    cx_cbor_map(&map->work, count);
}

static inline void kit_map_add(kit_map *map, const kit_field *field)
{
    cx_buf_add(&map->work, map->bytes.data + field->at, field->end - field->at);
}

static inline bool kit_map_end(kit_map *map)
{
    cx_buf_add(&map->work, map->bytes.data + map->end, map->bytes.size - map->end);
    return kit_accepts(map->format, cx_buf_bytes(&map->work));
}

static inline void kit_expect(const kit_map *map, bool accepted, bool expected, const char *what,
                              uint64_t key)
{
    if (accepted != expected)
        cx_test_fail(__FILE__, __LINE__, "%s: with field %llu %s it is %s", map->format->name,
                     (unsigned long long)key, what, accepted ? "accepted" : "refused");
}

static inline void kit_try_without(kit_map *map, size_t left_out, uint64_t required)
{
    uint64_t key = map->fields[left_out].key;
    kit_map_begin(map, map->count - 1);
    for (size_t i = 0; i < map->count; i++)
        if (i != left_out)
            kit_map_add(map, &map->fields[i]);
    kit_expect(map, kit_map_end(map), (required & KEY(key)) == 0, "left out", key);
}

static inline void kit_try_twice(kit_map *map, size_t twice)
{
    kit_map_begin(map, map->count + 1);
    for (size_t i = 0; i < map->count; i++)
        for (int times = i == twice ? 2 : 1; times > 0; times--)
            kit_map_add(map, &map->fields[i]);
    kit_expect(map, kit_map_end(map), false, "twice", map->fields[twice].key);
}

static inline void kit_try_swapped(kit_map *map, size_t first)
{
    kit_map_begin(map, map->count);
    for (size_t i = 0; i < map->count; i++)
        kit_map_add(map, &map->fields[i == first ? i + 1 : i == first + 1 ? i - 1 : i]);
    kit_expect(map, kit_map_end(map), false, "out of order", map->fields[first].key);
}

/* Every kind of value in place of the field's: none may be accepted and written differently, and
 * an omittable field is never there when empty. */
static inline void kit_try_values(kit_map *map, size_t at, bool omittable)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool empty;
    } values[] = {{"\x00", 1, true},
                  {"\x40", 1, true},
                  {"\x60", 1, true},
                  {"\x80", 1, true},
                  {"\xa0", 1, true},
                  {"\xf4", 1, true},
                  {"\xf6", 1, true},
                  {"\xf9\x00\x00", 3, true},
                  {"\xf9\x80\x00", 3, true},
                  {"\xf7", 1, true},
                  {"\x01", 1, false},
                  {"\x20", 1, false},
                  {"\x41\x00", 2, false},
                  {"\x61\x61", 2, false},
                  {"\x81\x60", 2, false},
                  {"\xa1\x00\x00", 3, false},
                  {"\xf5", 1, false},
                  {"\xf9\x3c\x00", 3, false},
                  {"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 9, false}};
    for (size_t v = 0; v < CX_COUNT_OF(values); v++) {
        kit_map_begin(map, map->count);
        for (size_t i = 0; i < map->count; i++) {
            if (i != at) {
                kit_map_add(map, &map->fields[i]);
                continue;
            }
            cx_cbor_uint(&map->work, map->fields[i].key);
            cx_buf_add(&map->work, values[v].bytes, values[v].size);
        }
        bool accepted = kit_map_end(map);
        if (values[v].empty && omittable)
            kit_expect(map, accepted, false, "empty", map->fields[at].key);
    }
}

/* A field that the map does not have, in its place among the others, with a value of each kind. */
static inline void kit_try_unknown(kit_map *map, uint64_t key)
{
    static const uint8_t zeros[33];
    for (unsigned kind = 0; kind < 8; kind++) {
        size_t i = 0;
        kit_map_begin(map, map->count + 1);
        for (; i < map->count && map->fields[i].key < key; i++)
            kit_map_add(map, &map->fields[i]);
        cx_cbor_uint(&map->work, key);
        switch (kind) {
        case 0: cx_cbor_uint(&map->work, 1); break;
        case 1: cx_cbor_bytes(&map->work, cx_bytes_from(zeros, 16)); break;
        case 2: cx_cbor_bytes(&map->work, cx_bytes_from(zeros, 32)); break;
        case 3: cx_cbor_text(&map->work, CX_STR("a")); break;
        case 4: cx_cbor_bool(&map->work, true); break;
        case 5: cx_cbor_null(&map->work); break;
        case 6: cx_cbor_f32(&map->work, 1.0f); break;
        default: cx_cbor_array(&map->work, 1); cx_cbor_text(&map->work, CX_STR("a"));
        }
        for (; i < map->count; i++)
            kit_map_add(map, &map->fields[i]);
        kit_expect(map, kit_map_end(map), false, "unknown", key);
    }
}

/*
 * The map at `path` has all keys of both masks and no others.  Only required ones must be there;
 * of those in `omittable` none may be empty (times are never empty and are in neither mask: they
 * go to `times`).
 */
static inline void kit_check_map(const kit_format *format, cx_bytes bytes, const int *path,
                                 uint64_t required, uint64_t omittable, uint64_t times)
{
    kit_map map;
    uint64_t seen = 0;
    kit_map_open(&map, format, bytes, path);
    for (size_t i = 0; i < map.count; i++)
        seen |= KEY(map.fields[i].key);
    if (seen != (required | omittable | times))
        cx_test_fail(__FILE__, __LINE__, "%s: the sample has other fields (%llx)", format->name,
                     (unsigned long long)seen);
    for (size_t i = 0; i < map.count; i++) {
        kit_try_without(&map, i, required);
        kit_try_twice(&map, i);
        if (i + 1 < map.count)
            kit_try_swapped(&map, i);
        kit_try_values(&map, i, (omittable & KEY(map.fields[i].key)) != 0);
    }
    for (uint64_t key = 0; key < 66; key++)
        if (key > 63 || (seen & KEY(key)) == 0)
            kit_try_unknown(&map, key);
    kit_try_unknown(&map, UINT64_MAX);
    cx_buf_done(&map.work);
}

#define KIT_PATH(...) ((const int[]){__VA_ARGS__, -1})
#define KIT_TOP ((const int[]){-1})

/* --- memory that runs out -------------------------------------------------------------------- */

static inline void *kit_no_memory(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)block;
    (void)old_size;
    return new_size == 0 ? NULL : NULL;
}

static const cx_alloc kit_no_alloc = {kit_no_memory, NULL};

#endif
