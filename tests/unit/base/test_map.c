/*
 * test_map.c - the hash map against a plain list, and its promise that a seed changes nothing.
 */
#include "base/map.h"

#include <stdio.h>

#include "tests/support/fault.h"
#include "tests/test.h"

CX_TEST(map_agrees_with_a_list)
{
    enum { KEYS = 3000 };
    static char names[KEYS][24];
    static uint64_t values[KEYS];
    uint64_t state = cx_test_seed();
    cx_map map;
    cx_err err;
    cx_map_init(&map, cx_alloc_default(), cx_test_random(&state));
    CHECK(cx_map_find(&map, CX_STR("absent")) == NULL);
    size_t count = 0;
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%.*s%d", (int)(cx_test_random(&state) % 18),
                       "aaaaaaaaaaaaaaaaaaaa", (int)(cx_test_random(&state) % 900));
        int known = 0;
        while (known < i && strcmp(names[known], names[i]) != 0)
            known++;
        uint64_t *slot;
        bool is_new;
        CHECK_STATUS(cx_map_put(&map, cx_str_z(names[i]), &slot, &is_new, &err), &err);
        CHECK(is_new == (known == i));
        CHECK(is_new ? *slot == 0 : *slot == values[known]);
        count += is_new;
        *slot = values[known] = cx_test_random(&state);
        values[i] = values[known];
    }
    CHECK_INT(map.used, count);
    for (int i = 0; i < KEYS; i++) {
        int known = 0;
        while (strcmp(names[known], names[i]) != 0)
            known++;
        uint64_t *slot = cx_map_find(&map, cx_str_z(names[i]));
        CHECK(slot != NULL && *slot == values[known]);
    }
    CHECK(cx_map_find(&map, CX_STR("b")) == NULL);
    cx_map_done(&map);
}

CX_TEST(map_takes_any_bytes_as_key)
{
    static const cx_str keys[] = {{NULL, 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}};
    cx_map map;
    cx_map_init(&map, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(keys); i++) {
        uint64_t *slot = NULL;
        bool is_new = false;
        CHECK(!cx_failed(cx_map_put(&map, keys[i], &slot, &is_new, NULL)));
        REQUIRE(slot != NULL);
        CHECK(is_new);
        *slot = i + 1;
    }
    for (size_t i = 0; i < CX_COUNT_OF(keys); i++)
        CHECK_INT(*cx_map_find(&map, keys[i]), i + 1);
    cx_map_done(&map);
}

CX_TEST(map_keys_of_every_length_differ_in_every_byte)
{
    uint8_t key[80];
    for (size_t size = 1; size <= sizeof key; size++) {
        memset(key, 0x41, sizeof key);
        uint64_t whole = cx_map_hash_bytes(1, key, size);
        CHECK(whole != cx_map_hash_bytes(2, key, size));
        CHECK(whole != cx_map_hash_bytes(1, key, size - 1));
        for (size_t at = 0; at < size; at++) {
            key[at] ^= 1;
            CHECK(whole != cx_map_hash_bytes(1, key, size));
            key[at] ^= 1;
        }
    }
}

/* One factor of a product that is zero would hide the other: the constants are public, the seed
 * is not. */
CX_TEST(map_hashes_cannot_be_aimed_at)
{
    static const uint64_t constants[] = {0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u};
    uint64_t words[4], hashes[64];
    for (size_t kind = 0; kind < 8; kind++) {
        size_t held = kind % 4, free = held % 2 == 0 ? held + 1 : held - 1;
        memset(words, 0, sizeof words);
        words[held] = constants[kind / 4];
        for (size_t i = 0; i < CX_COUNT_OF(hashes); i++) {
            words[free] = i * 0x0123456789abcdefu;
            hashes[i] = cx_map_hash_bytes(7, words, sizeof words);
            for (size_t k = 0; k < i; k++)
                CHECK(hashes[k] != hashes[i]);
        }
    }
}

CX_TEST(map_digests_hash_as_bytes_do)
{
    uint8_t data[5 * 34];
    uint32_t hashes[5];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + i / 7);
    cx_map_hash_digests(9, data + 2, 34, CX_COUNT_OF(hashes), hashes);
    for (size_t i = 0; i < CX_COUNT_OF(hashes); i++)
        CHECK(hashes[i] == (uint32_t)cx_map_hash_bytes(9, data + 2 + 34 * i, 32));
}

CX_TEST(map_reserve_is_enough)
{
    fault_alloc memory;
    cx_map map;
    char name[16][8];
    fault_alloc_init(&memory, 2, true);
    cx_map_init(&map, &memory.alloc, 5);
    CHECK(!cx_failed(cx_map_reserve(&map, 12, NULL)));
    for (int i = 0; i < 12; i++) {
        uint64_t *slot;
        (void)snprintf(name[i], sizeof name[i], "k%d", i);
        CHECK(!cx_failed(cx_map_put(&map, cx_str_z(name[i]), &slot, NULL, NULL)));
    }
    uint64_t *slot;
    cx_err err;
    CHECK(cx_map_put(&map, CX_STR("thirteenth"), &slot, NULL, &err).code == CX_E_NOMEM);
    CHECK_INT(map.used, 12); /* and what was there still is */
    CHECK(cx_map_find(&map, CX_STR("k11")) != NULL);
    CHECK(cx_map_reserve(&map, SIZE_MAX, NULL).code == CX_E_NOMEM);
    cx_map_done(&map);
    CHECK_INT(memory.live_bytes, 0);
    CHECK(!memory.wrong_size);
}
