/*
 * map.c - hash map over borrowed byte strings.
 *
 * Invariants:
 *   I1  slot_count is 0 or a power of two; at most 3/4 of the slots are used;
 *   I2  a slot is used when its hash is not 0; a key is in the run of used slots that starts at the
 *       slot of its hash.
 */
#include "base/map.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/wide.h"

static uint64_t read64(const uint8_t *data)
{
    uint64_t value;
    memcpy(&value, data, sizeof value);
    return value;
}

/* The two halves of the 128-bit product combined: every input bit affects every output bit. */
static uint64_t fold_product(uint64_t a, uint64_t b)
{
    cx_wide product = cx_wide_product(a, b);
    return product.low ^ product.high;
}

/* Both factors of every product depend on the seed: an input that makes one factor zero would make
 * the other one irrelevant. */
static inline uint64_t hash_bytes(uint64_t seed, const void *data, size_t size_bytes)
{
    const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd1b54a32d192ed03u;
    const uint8_t *at = data;
    const uint64_t secret = fold_product(seed ^ k1, k0);
    uint64_t hash = seed ^ fold_product(size_bytes ^ k0, k1);
    size_t left = size_bytes;
    for (; left > 16; left -= 16, at += 16)
        hash = fold_product(read64(at) ^ k0 ^ hash, read64(at + 8) ^ secret);
    uint64_t a = 0, b = 0;
    if (left >= 8) {
        a = read64(at);
        b = read64(at + left - 8);
    } else if (left > 0) {
        for (size_t i = 0; i < left; i++)
            a = a << 8 | at[i];
    }
    hash = fold_product(a ^ k0 ^ hash, b ^ secret);
    return fold_product(hash ^ k1, seed ^ k0);
}

uint64_t cx_map_hash_bytes(uint64_t seed, const void *data, size_t size_bytes)
{
    return hash_bytes(seed, data, size_bytes);
}

void cx_map_hash_digests(uint64_t seed, const uint8_t *data, size_t stride_bytes, size_t count,
                         uint32_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (uint32_t)hash_bytes(seed, data + i * stride_bytes, sizeof(cx_digest));
}

void cx_map_init(cx_map *map, const cx_alloc *alloc, uint64_t seed)
{
    *map = (cx_map){.alloc = alloc, .seed = seed};
}

void cx_map_done(cx_map *map)
{
    cx_alloc_free(map->alloc, map->slots, map->slot_count * sizeof *map->slots);
    cx_map_init(map, map->alloc, map->seed);
}

uint64_t cx_map_hash(const cx_map *map, cx_str key)
{
    uint64_t hash = cx_map_hash_bytes(map->seed, key.data, key.size);
    return hash == 0 ? 1 : hash;
}

/* The slot of the key, or the free slot where it would be inserted (I2). */
static cx_map_slot *find_slot(const cx_map *map, cx_str key, uint64_t hash)
{
    size_t mask = map->slot_count - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        cx_map_slot *slot = &map->slots[at];
        if (slot->hash == 0)
            return slot;
        if (slot->hash == hash && slot->key_size == key.size &&
            (key.size == 0 || memcmp(slot->key, key.data, key.size) == 0))
            return slot;
    }
}

static cx_status resize_slots(cx_map *map, size_t slot_count, cx_err *err)
{
    cx_map_slot *old = map->slots;
    size_t old_count = map->slot_count;
    cx_map_slot *slots = cx_alloc_zeroed(map->alloc, slot_count, sizeof *slots);
    if (slots == NULL)
        return cx_fail_nomem(err);
    map->slots = slots;
    map->slot_count = slot_count;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].hash != 0)
            *find_slot(map, (cx_str){old[i].key, old[i].key_size}, old[i].hash) = old[i];
    cx_alloc_free(map->alloc, old, old_count * sizeof *old);
    return CX_SUCCESS;
}

cx_status cx_map_reserve(cx_map *map, size_t count, cx_err *err)
{
    size_t slot_count = map->slot_count == 0 ? 16 : map->slot_count;
    while (slot_count - slot_count / 4 < count) {
        if (slot_count > SIZE_MAX / 2 / sizeof *map->slots)
            return cx_fail_nomem(err);
        slot_count *= 2;
    }
    return slot_count == map->slot_count ? CX_SUCCESS : resize_slots(map, slot_count, err);
}

uint64_t *cx_map_find_hashed(const cx_map *map, cx_str key, uint64_t hash)
{
    if (map->slot_count == 0)
        return NULL;
    cx_map_slot *slot = find_slot(map, key, hash);
    return slot->hash == 0 ? NULL : &slot->value;
}

uint64_t *cx_map_find(const cx_map *map, cx_str key)
{
    return map->slot_count == 0 ? NULL : cx_map_find_hashed(map, key, cx_map_hash(map, key));
}

cx_status cx_map_put_hashed(cx_map *map, cx_str key, uint64_t hash, uint64_t **out_value,
                            bool *out_new, cx_err *err)
{
    CX_DEBUG_ASSERT(hash != 0);
    CX_TRY(cx_map_reserve(map, map->used + 1, err));
    cx_map_slot *slot = find_slot(map, key, hash);
    bool is_new = slot->hash == 0;
    if (is_new) {
        *slot = (cx_map_slot){key.data, key.size, 0, hash};
        map->used++;
    }
    *out_value = &slot->value;
    if (out_new != NULL)
        *out_new = is_new;
    return CX_SUCCESS;
}

cx_status cx_map_put(cx_map *map, cx_str key, uint64_t **out_value, bool *out_new, cx_err *err)
{
    return cx_map_put_hashed(map, key, cx_map_hash(map, key), out_value, out_new, err);
}
