/*
 * map.h - byte-string keys to 64-bit values: open addressing, linear probing, no deletion.
 *
 * Keys are borrowed and must outlive the map.  The hash is seeded per map, so an input cannot be
 * made to collide; nothing iterates in hash order, so no output can depend on the seed.
 */
#ifndef CX_BASE_MAP_H
#define CX_BASE_MAP_H

#include "base/bytes.h"
#include "base/status.h"

typedef struct cx_map_slot {
    const char *key;
    size_t key_size;
    uint64_t value;
    uint64_t hash; /* never 0 in a used slot */
} cx_map_slot;

typedef struct cx_map {
    const cx_alloc *alloc;
    cx_map_slot *slots;
    size_t slot_count; /* 0 or a power of two */
    size_t used;
    uint64_t seed;
} cx_map;

void cx_map_init(cx_map *map, const cx_alloc *alloc, uint64_t seed);
void cx_map_done(cx_map *map);

/* Reserves space for `count` keys without rehashing. */
CX_RESULT cx_map_reserve(cx_map *map, size_t count, cx_err *err);

/* The key's hash under the map's seed, never 0. */
uint64_t cx_map_hash(const cx_map *map, cx_str key);

/* NULL when absent.  Valid until the next insertion. */
uint64_t *cx_map_find(const cx_map *map, cx_str key);
uint64_t *cx_map_find_hashed(const cx_map *map, cx_str key, uint64_t hash);

/*
 * Finds or inserts.  *out_value points at the value (0 when new), *out_new says which.  Valid
 * until the next insertion.
 */
CX_RESULT cx_map_put(cx_map *map, cx_str key, uint64_t **out_value, bool *out_new, cx_err *err);
CX_RESULT cx_map_put_hashed(cx_map *map, cx_str key, uint64_t hash, uint64_t **out_value,
                            bool *out_new, cx_err *err);

/* 64-bit hash of bytes under a seed; stable within a process only. */
uint64_t cx_map_hash_bytes(uint64_t seed, const void *data, size_t size_bytes);
/* 32 bits of that hash for each of `count` digests at intervals of stride_bytes. */
void cx_map_hash_digests(uint64_t seed, const uint8_t *data, size_t stride_bytes, size_t count,
                         uint32_t *out);

#endif
