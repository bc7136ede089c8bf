/*
 * internal.h - shared by the files of this module: finding the next byte of a string that is not
 * plain, many bytes at a time; walking values without recursion; sorting members.
 *
 * A *plain* byte is U+0020..U+007E except quote and backslash: it stands for itself in every form
 * we read or write.  Strings are mostly runs of them, so runs are found and copied by blocks.
 */
#ifndef CX_JSON_INTERNAL_H
#define CX_JSON_INTERNAL_H

#include "base/api.h"
#include "json/json.h"

#if defined(CX_JSON_PORTABLE)
#define CX_JSON_BLOCK 8
#elif defined(__SSE2__)
#include "json/block_sse2.h"
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include "json/block_neon.h"
#else
#define CX_JSON_BLOCK 8
#endif

_Static_assert(sizeof(cx_json) == 16 || sizeof(void *) != 8, "a value is two words");
_Static_assert(sizeof(cx_json_member) == 2 * sizeof(cx_json), "members are pairs of values");

/* --- runs of plain bytes ------------------------------------------------------------------- */

static inline bool cx_json_byte_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

/* True when all eight bytes are plain, whatever the byte order of the machine. */
static inline bool cx_json_word_is_plain(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    uint64_t bad = word | (word + ones);                          /* 0x80 and above, 0x7F */
    bad |= (word - ones * 0x20) & ~word;                          /* below 0x20 */
    bad |= ((quote - ones) & ~quote) | ((slash - ones) & ~slash); /* a zero byte */
    return (bad & tops) == 0;
}

/* The first byte in [at, end) that is not plain, or end. */
static inline const uint8_t *cx_json_scan_plain(const uint8_t *at, const uint8_t *end)
{
#ifdef CX_JSON_BLOCKS
    while (end - at >= 16) {
        cx_json_mask mask = cx_json_block_not_plain(cx_json_block_load(at));
        if (mask != 0)
            return at + cx_json_mask_first(mask);
        at += 16;
    }
#endif
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        if (!cx_json_word_is_plain(word))
            break;
        at += 8;
    }
    while (at < end && cx_json_byte_is_plain(*at))
        at++;
    return at;
}

/*
 * Copies plain bytes of [at, end) to `to` and returns how many.  Whole blocks are stored: `to`
 * needs CX_JSON_BLOCK bytes more than end - at.
 */
static inline size_t cx_json_copy_plain(uint8_t *to, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *start = at;
#ifdef CX_JSON_BLOCKS
    while (end - at >= 16) {
        cx_json_block block = cx_json_block_load(at);
        cx_json_block_store(to, block);
        cx_json_mask mask = cx_json_block_not_plain(block);
        if (mask != 0)
            return (size_t)(at - start) + cx_json_mask_first(mask);
        at += 16;
        to += 16;
    }
#endif
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        memcpy(to, &word, 8);
        if (!cx_json_word_is_plain(word))
            break;
        at += 8;
        to += 8;
    }
    while (at < end && cx_json_byte_is_plain(*at))
        *to++ = *at++;
    return (size_t)(at - start);
}

/* memcpy for sizes that are mostly small: no call up to 32 bytes. */
static inline void cx_json_copy_bytes(uint8_t *to, const void *from, size_t size)
{
    const uint8_t *at = (const uint8_t *)from;
    if (size > 32) {
        memcpy(to, at, size);
    } else if (size >= 16) {
        memcpy(to, at, 16);
        memcpy(to + size - 16, at + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, at, 8);
        memcpy(to + size - 8, at + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, at, 4);
        memcpy(to + size - 4, at + size - 4, 4);
    } else if (size != 0) {
        to[0] = at[0];
        to[size / 2] = at[size / 2];
        to[size - 1] = at[size - 1];
    }
}

/* --- walking ------------------------------------------------------------------------------- */

/* The values inside an array, or names and values in turn inside an object. */
static inline const cx_json *cx_json_inside(const cx_json *value)
{
    return value->type == CX_JSON_OBJECT ? (const cx_json *)value->members : value->items;
}

static inline bool cx_json_is_container(const cx_json *value)
{
    return value->type >= CX_JSON_ARRAY;
}

/* One open array or object on the way through a value. */
typedef struct cx_json_step {
    const cx_json *at;    /* the item, or the name of the member, being worked on */
    const cx_json *other; /* the same place in a second value */
    uint32_t left;        /* items or members from `at` to the end */
    bool is_object;
} cx_json_step;

#define CX_JSON_LOCAL_STEPS 64

/* The path from the root to the current value: no recursion, no allocation unless a value is
 * deep. */
typedef struct cx_json_path {
    const cx_alloc *alloc;
    cx_json_step *steps;
    size_t depth;
    size_t capacity;
    cx_json_step local[CX_JSON_LOCAL_STEPS];
} cx_json_path;

static inline void cx_json_path_init(cx_json_path *path, const cx_alloc *alloc)
{
    path->alloc = alloc;
    path->steps = path->local;
    path->depth = 0;
    path->capacity = CX_JSON_LOCAL_STEPS;
}

void cx_json_path_done(cx_json_path *path);
bool cx_json_path_grow(cx_json_path *path);

/* False when out of memory. */
static inline bool cx_json_path_push(cx_json_path *path, const cx_json_step *step)
{
    if (CX_UNLIKELY(path->depth == path->capacity) && !cx_json_path_grow(path))
        return false;
    path->steps[path->depth++] = *step;
    return true;
}

/* Enters a container that is not empty; false when out of memory. */
static inline bool cx_json_path_enter(cx_json_path *path, const cx_json *value)
{
    cx_json_step step = {cx_json_inside(value), NULL, value->count, value->type == CX_JSON_OBJECT};
    return cx_json_path_push(path, &step);
}

static inline cx_json_step *cx_json_path_top(cx_json_path *path)
{
    return &path->steps[path->depth - 1];
}

/* The value to work on at this step. */
static inline const cx_json *cx_json_step_value(const cx_json_step *step)
{
    return step->at + step->is_object;
}

/* Moves to the next item or member; false after the last. */
static inline bool cx_json_step_next(cx_json_step *step)
{
    size_t stride = 1 + (size_t)step->is_object;
    step->at += stride;
    if (step->other != NULL)
        step->other += stride;
    return --step->left != 0;
}

/* --- members ------------------------------------------------------------------------------- */

enum {
    /* Flags that a container inherits from its items and members. */
    CX_JSON_INHERITED = CX_JSON_SURROGATE | CX_JSON_OVERFLOW | CX_JSON_NONFINITE
};

typedef enum cx_json_order {
    CX_JSON_BY_CODE_POINT, /* byte order */
    CX_JSON_BY_UTF16       /* RFC 8785 §3.2.3 */
} cx_json_order;

/* A sort key of a name: its first eight bytes decide most comparisons. */
typedef struct cx_json_key {
    uint64_t prefix;
    uint32_t index;
} cx_json_key;

/* The keys of up to this many members fit on the stack. */
#define CX_JSON_FEW_MEMBERS 32

/* The number of keys that cx_json_sort_members needs: merging uses a second half. */
static inline size_t cx_json_keys_needed(uint32_t count)
{
    return count <= CX_JSON_FEW_MEMBERS ? count : 2 * (size_t)count;
}

/*
 * Writes the members to `out` (which must not overlap them) in order of their names.  Returns the
 * index in `members` of one whose name another has too, or `count` when all are distinct.
 */
uint32_t cx_json_sort_members(const cx_json_member *members, uint32_t count, cx_json_order order,
                              cx_json_key *keys, cx_json_member *out);

/* The flags that an array or object inherits from `count` values inside. */
static inline uint8_t cx_json_inherit(const cx_json *inside, size_t count)
{
    unsigned flags = 0;
    for (size_t i = 0; i < count; i++)
        flags |= inside[i].flags;
    return (uint8_t)(flags & CX_JSON_INHERITED);
}

/* True when the text holds a surrogate in its 3-byte form. */
bool cx_json_has_surrogate(cx_str text);

#endif
