/*
 * key.c - Ed25519 verification (RFC 8032 §5.1.7) through libsodium; of several, in lanes first.
 *
 * What is accepted is libsodium's rule, written down in tests/vectors/crypto/README.md and held
 * there by vectors: a library that answers one of them differently must not be put in its place.
 */
#include "crypto/key.h"

#include <pthread.h>
#include <stdlib.h>

#include <sodium.h>

#include "base/api.h"
#include "crypto/key_lanes.h"

_Static_assert(sizeof(cx_pubkey) == crypto_sign_PUBLICKEYBYTES, "libsodium's key size");
_Static_assert(sizeof(cx_signature) == crypto_sign_BYTES, "libsodium's signature size");

static bool lanes_are_there; /* set once, before anything is verified */

static void start_sodium(void)
{
    CX_ASSERT(sodium_init() >= 0);
    lanes_are_there = cx_key_lanes_has();
}

/* libsodium picks its implementations here; it must come first, and once is enough. */
static void need_sodium(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CX_ASSERT(pthread_once(&once, start_sodium) == 0);
}

static bool verify_signature(const cx_pubkey *key, cx_bytes message, const cx_signature *signature)
{
    return crypto_sign_verify_detached(signature->bytes, message.data, message.size, key->bytes) ==
           0;
}

bool cx_ed25519_verify(const cx_pubkey *key, cx_bytes message, const cx_signature *signature)
{
    need_sodium();
    return verify_signature(key, message, signature);
}

/* --- many ---------------------------------------------------------------------------------- */

/* Fewer than this are checked one by one: eight lanes take about as long as one signature does. */
enum { WORTH_LANES = 2, WINDOW = 64 };

#ifdef CX_KEY_X86
static unsigned verify_in_lanes(const cx_ed25519_item *const items[CX_KEY_LANES])
{
    return cx_key_lanes_with(items, cx_sha512_avx512, cx_ed25519_avx512);
}
#else
static unsigned verify_in_lanes(const cx_ed25519_item *const items[CX_KEY_LANES])
{
    (void)items;
    return 0;
}
#endif

static int by_size(const void *a, const void *b)
{
    size_t x = (*(const cx_ed25519_item *const *)a)->message.size;
    size_t y = (*(const cx_ed25519_item *const *)b)->message.size;
    return (x > y) - (x < y);
}

/* Messages of like sizes share lanes, which all wait for the longest. */
static void verify_window(const cx_ed25519_item *items, bool *out_good, size_t count)
{
    const cx_ed25519_item *sorted[WINDOW], *eight[CX_KEY_LANES];
    for (size_t i = 0; i < count; i++)
        sorted[i] = &items[i];
    if (count > CX_KEY_LANES)
        qsort(sorted, count, sizeof *sorted, by_size);
    for (size_t first = 0; first < count; first += CX_KEY_LANES) {
        size_t used = count - first < CX_KEY_LANES ? count - first : CX_KEY_LANES;
        for (size_t i = 0; i < CX_KEY_LANES; i++)
            eight[i] = sorted[first + (i < used ? i : 0)];
        unsigned good = used < WORTH_LANES ? 0 : verify_in_lanes(eight);
        for (size_t i = 0; i < used; i++)
            out_good[eight[i] - items] =
                (good >> i & 1) != 0 ||
                verify_signature(&eight[i]->key, eight[i]->message, &eight[i]->signature);
    }
}

void cx_ed25519_verify_many(const cx_ed25519_item *items, bool *out_good, size_t count)
{
    need_sodium();
    if (lanes_are_there)
        for (size_t first = 0; first < count; first += WINDOW)
            verify_window(items + first, out_good + first,
                          count - first < WINDOW ? count - first : WINDOW);
    else
        for (size_t i = 0; i < count; i++)
            out_good[i] = verify_signature(&items[i].key, items[i].message, &items[i].signature);
}
