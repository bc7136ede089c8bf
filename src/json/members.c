/*
 * members.c - the members of an object in order of their names.
 *
 * Names are sorted by keys that contain their first eight bytes as a big-endian number, padded with
 * zeros; only equal prefixes compare the names themselves.  Few members are sorted by insertion,
 * many by merging, so that no input costs more than O(n log n) comparisons.
 *
 * RFC 8785 §3.2.3 sorts by UTF-16 code units.  In UTF-8 terms that is byte order, except that the
 * lead bytes EE and EF (U+E000..U+FFFF) come after F0..F4 (surrogate pairs): moving those two
 * above F4 before comparing is all it takes.
 */
#include "json/internal.h"

typedef struct sorting {
    const cx_json_member *members;
    cx_json_order order;
} sorting;

static inline uint8_t utf16_rank(uint8_t byte)
{
    return byte == 0xEE || byte == 0xEF ? (uint8_t)(byte + 0x10) : byte;
}

static inline uint64_t load_four(const uint8_t *at)
{
    return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

static inline uint64_t load_eight(const uint8_t *at)
{
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 |
           (uint64_t)at[3] << 32 | (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
           (uint64_t)at[6] << 8 | at[7];
}

static inline uint64_t prefix_of(const cx_json *name, cx_json_order order)
{
    const uint8_t *text = (const uint8_t *)name->text;
    if (CX_UNLIKELY(order == CX_JSON_BY_UTF16)) {
        uint64_t value = 0;
        for (size_t i = 0; i < 8; i++)
            value = value << 8 | (i < name->count ? utf16_rank(text[i]) : 0);
        return value;
    }
    if (name->count >= 8)
        return load_eight(text);
    if (name->count >= 4) {
        /* Two overlapping halves; the shared bytes have the same bits in both. */
        uint64_t tail = load_four(text + name->count - 4);
        return load_four(text) << 32 | tail << (8 * (8 - name->count));
    }
    if (name->count == 0)
        return 0;
    return (uint64_t)text[0] << 56 | (name->count > 1 ? (uint64_t)text[1] << 48 : 0) |
           (name->count > 2 ? (uint64_t)text[2] << 40 : 0);
}

static int compare_utf16(const cx_json *a, const cx_json *b)
{
    const uint8_t *left = (const uint8_t *)a->text, *right = (const uint8_t *)b->text;
    uint32_t common = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 0; i < common; i++)
        if (left[i] != right[i])
            return utf16_rank(left[i]) < utf16_rank(right[i]) ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

static inline int compare_keys(const sorting *by, cx_json_key a, cx_json_key b)
{
    if (CX_LIKELY(a.prefix != b.prefix))
        return a.prefix < b.prefix ? -1 : 1;
    const cx_json *left = &by->members[a.index].name;
    const cx_json *right = &by->members[b.index].name;
    if (CX_UNLIKELY(by->order == CX_JSON_BY_UTF16))
        return compare_utf16(left, right);
    return cx_str_cmp(cx_json_text(left), cx_json_text(right));
}

static void sort_few(const sorting *by, cx_json_key *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        cx_json_key key = keys[i];
        uint32_t to = i;
        while (to > 0 && compare_keys(by, key, keys[to - 1]) < 0) {
            keys[to] = keys[to - 1];
            to--;
        }
        keys[to] = key;
    }
}

static void merge_keys(const sorting *by, const cx_json_key *a, const cx_json_key *a_end,
                       const cx_json_key *b, const cx_json_key *b_end, cx_json_key *out)
{
    while (a < a_end && b < b_end)
        *out++ = compare_keys(by, *b, *a) < 0 ? *b++ : *a++;
    while (a < a_end)
        *out++ = *a++;
    while (b < b_end)
        *out++ = *b++;
}

/* Sorts runs by insertion, then merges them pairwise between both halves of the memory. */
static const cx_json_key *sort_many(const sorting *by, cx_json_key *keys, size_t count)
{
    const size_t run = 16;
    for (size_t i = 0; i < count; i += run)
        sort_few(by, keys + i, (uint32_t)(count - i < run ? count - i : run));
    cx_json_key *from = keys, *to = keys + count;
    for (size_t width = run; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t middle = count - i < width ? count : i + width;
            size_t stop = count - i < 2 * width ? count : i + 2 * width;
            merge_keys(by, from + i, from + middle, from + middle, from + stop, to + i);
        }
        cx_json_key *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

uint32_t cx_json_sort_members(const cx_json_member *members, uint32_t count, cx_json_order order,
                              cx_json_key *keys, cx_json_member *out)
{
    sorting by = {members, order};
    bool ascending = true;
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = (cx_json_key){prefix_of(&members[i].name, order), i};
        ascending = ascending && (i == 0 || compare_keys(&by, keys[i - 1], keys[i]) < 0);
    }
    if (ascending) {
        memcpy(out, members, count * sizeof *out);
        return count;
    }
    const cx_json_key *sorted = keys;
    if (count <= CX_JSON_FEW_MEMBERS)
        sort_few(&by, keys, count);
    else
        sorted = sort_many(&by, keys, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0 && compare_keys(&by, sorted[i - 1], sorted[i]) == 0)
            return sorted[i].index;
        out[i] = members[sorted[i].index];
    }
    return count;
}
