/*
 * test_digest.c - every SHA-256 kernel against FIPS 180-4, OpenSSL and the other kernels.
 *
 * The sixteen-lane kernel is compiled here a second time without AVX-512, under other names, so
 * that its logic is checked on any machine; this must come before every other header.
 */
#define CX_DIGEST_LANES_EMULATED 1
#define cx_digest_avx512_compress_lanes emulated_compress_lanes
#define cx_digest_avx512_pairs emulated_pairs
#define cx_digest_avx512_padded emulated_padded
#include "crypto/digest_avx512.c"
#undef cx_digest_avx512_compress_lanes
#undef cx_digest_avx512_pairs
#undef cx_digest_avx512_padded

#include <pthread.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/hex.h"
#include "tests/test.h"

enum { LONGEST = 70000 };

static const cx_digest_kernel kernels[] = {CX_DIGEST_PORTABLE, CX_DIGEST_NEON, CX_DIGEST_ARMV8,
                                           CX_DIGEST_SHANI, CX_DIGEST_AVX512};
_Static_assert(CX_COUNT_OF(kernels) == CX_DIGEST_KERNEL_COUNT, "every kernel is compared");

/* What OpenSSL says, asked in the plainest way. */
static cx_digest expected_of(cx_bytes message)
{
    cx_digest digest;
    memset(&digest, 0, sizeof digest);
    if (EVP_Digest(message.data, message.size, digest.bytes, NULL, EVP_sha256(), NULL) != 1)
        cx_test_fail(__FILE__, __LINE__, "OpenSSL has no SHA-256");
    return digest;
}

static bool is_hex(const cx_digest *digest, const char *expected)
{
    char text[64];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), text);
    return cx_str_is(cx_str_from(text, sizeof text), expected);
}

static uint8_t *random_bytes(size_t size, uint64_t *seed)
{
    uint8_t *data = malloc(size);
    for (size_t i = 0; data != NULL && i < size; i++)
        data[i] = (uint8_t)cx_test_random(seed);
    return data;
}

/* In pieces of random size. */
static cx_digest streamed(cx_bytes message, uint64_t *seed)
{
    cx_sha256 hash;
    cx_sha256_init(&hash);
    for (size_t at = 0; at < message.size;) {
        size_t piece = (size_t)(cx_test_random(seed) % 150);
        piece = piece < message.size - at ? piece : message.size - at;
        cx_sha256_add(&hash, message.data + at, piece);
        at += piece;
    }
    return cx_sha256_end(&hash);
}

/* --- the examples of FIPS 180-4 ------------------------------------------------------------ */

static void check_everywhere(cx_bytes message, const char *expected)
{
    cx_digest digest = cx_digest_of(message);
    uint64_t seed = cx_test_seed();
    CHECK(is_hex(&digest, expected));
    digest = streamed(message, &seed);
    CHECK(is_hex(&digest, expected));
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        if (!cx_digest_has(kernels[i]))
            continue;
        digest = cx_digest_of_with(kernels[i], message);
        CHECK(is_hex(&digest, expected));
    }
}

CX_TEST(digest_fips_examples)
{
    check_everywhere(cx_bytes_from(NULL, 0),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_everywhere(cx_str_bytes(CX_STR("abc")),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_everywhere(
        cx_str_bytes(CX_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    uint8_t *million = malloc(1000000);
    REQUIRE(million != NULL);
    memset(million, 'a', 1000000);
    check_everywhere(cx_bytes_from(million, 1000000),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* --- one message --------------------------------------------------------------------------- */

static cx_digest compressed_with(cx_digest_compress *compress, cx_bytes message)
{
    cx_digest_lanes one = {1, 1, 8, 2, NULL, compress};
    cx_digest digest;
    const cx_digest_messages messages = {.whole = &message, .count = 1};
    cx_digest_lanes_many(&one, &messages, &digest);
    return digest;
}

static void check_one(cx_bytes message, uint64_t *seed)
{
    cx_digest expected = expected_of(message);
    cx_digest digest = cx_digest_of(message);
    CHECK(cx_digest_eq(&digest, &expected));
    digest = streamed(message, seed);
    CHECK(cx_digest_eq(&digest, &expected));
    digest = compressed_with(cx_digest_plain_compress, message);
    CHECK(cx_digest_eq(&digest, &expected));
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        if (!cx_digest_has(kernels[i]))
            continue;
        digest = cx_digest_of_with(kernels[i], message);
        CHECK(cx_digest_eq(&digest, &expected));
    }
}

CX_TEST(digest_of_every_short_length)
{
    uint64_t seed = cx_test_seed();
    uint8_t *data = random_bytes(301 + 7, &seed);
    REQUIRE(data != NULL);
    for (size_t size = 0; size <= 300; size++) /* at every alignment too */
        check_one(cx_bytes_from(data + size % 7, size), &seed);
    free(data);
}

CX_TEST(digest_of_long_messages)
{
    uint64_t seed = cx_test_seed();
    uint8_t *data = random_bytes(LONGEST, &seed);
    REQUIRE(data != NULL);
    for (unsigned i = 0; i < 60; i++)
        check_one(cx_bytes_from(data, (size_t)(cx_test_random(&seed) % LONGEST)), &seed);
    free(data);
}

CX_TEST(sha256_state_copies_by_assignment)
{
    cx_sha256 hash, copy;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, "ab", 2);
    copy = hash;
    cx_sha256_add(&hash, "c", 1);
    cx_sha256_add(&copy, "cc", 2);
    cx_digest abc = cx_sha256_end(&hash), abcc = cx_sha256_end(&copy);
    cx_digest expected = expected_of(cx_str_bytes(CX_STR("abc")));
    CHECK(cx_digest_eq(&abc, &expected));
    expected = expected_of(cx_str_bytes(CX_STR("abcc")));
    CHECK(cx_digest_eq(&abcc, &expected));
}

/* --- many messages ------------------------------------------------------------------------- */

typedef void many_function(const void *arg, const cx_bytes *messages, cx_digest *out, size_t count);

static void many_by_kernel(const void *arg, const cx_bytes *messages, cx_digest *out, size_t count)
{
    cx_digest_many_with(*(const cx_digest_kernel *)arg, messages, out, count);
}

static void many_by_lanes(const void *arg, const cx_bytes *messages, cx_digest *out, size_t count)
{
    const cx_digest_messages all = {.whole = messages, .count = count};
    cx_digest_lanes_many(arg, &all, out);
}

static void many_chosen(const void *arg, const cx_bytes *messages, cx_digest *out, size_t count)
{
    (void)arg;
    cx_digest_many(messages, out, count);
}

enum { MOST = 90, ROUND_COUNT = 40 };

/* Each message cut somewhere in its first 64 bytes, or not at all. */
static void cut_in_two(const cx_bytes *messages, cx_digest_pieces *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t head = (i * 29 + messages[i].size) % 64;
        head = head < messages[i].size ? head : messages[i].size;
        head = head < 64 ? head : 63;
        out[i] = (cx_digest_pieces){.body = messages[i]};
        if (head != 0)
            out[i] = (cx_digest_pieces){
                .head = cx_bytes_from(messages[i].data, head),
                .body = cx_bytes_from(messages[i].data + head, messages[i].size - head)};
    }
}

static void pieces_by_kernel(const void *arg, const cx_bytes *messages, cx_digest *out,
                             size_t count)
{
    cx_digest_pieces pieces[MOST];
    cut_in_two(messages, pieces, count);
    if (arg == NULL)
        cx_digest_many_pieces(pieces, out, count);
    else
        cx_digest_many_pieces_with(*(const cx_digest_kernel *)arg, pieces, out, count);
}

static void pieces_by_lanes(const void *arg, const cx_bytes *messages, cx_digest *out, size_t count)
{
    cx_digest_pieces pieces[MOST];
    cut_in_two(messages, pieces, count);
    const cx_digest_messages all = {.pieces = pieces, .count = count};
    cx_digest_lanes_many(arg, &all, out);
}

/* Messages of all kinds of lengths, in one call. */
static void check_many(many_function *many, const void *arg, size_t longest)
{
    uint64_t seed = cx_test_seed();
    uint8_t *data = random_bytes(longest + MOST, &seed);
    cx_bytes messages[MOST];
    cx_digest got[MOST + 1], expected, untouched;
    REQUIRE(data != NULL);
    memset(&untouched, 0x5a, sizeof untouched);
    for (size_t i = 0; i < ROUND_COUNT; i++) {
        size_t count = i < 20 ? i : (size_t)(cx_test_random(&seed) % (MOST + 1));
        for (size_t j = 0; j < count; j++) {
            size_t size = (size_t)(cx_test_random(&seed) % (longest + 1));
            messages[j] = size == 0 ? cx_bytes_from(NULL, 0) : cx_bytes_from(data + j, size);
        }
        memset(got, 0x5a, sizeof got);
        many(arg, messages, got, count);
        for (size_t j = 0; j < count; j++) {
            expected = expected_of(messages[j]);
            CHECK(cx_digest_eq(&got[j], &expected));
        }
        CHECK(cx_digest_eq(&got[count], &untouched));
    }
    free(data);
}

static void check_many_lengths(many_function *many, const void *arg)
{
    check_many(many, arg, 0);
    check_many(many, arg, 70);
    check_many(many, arg, 140);
    check_many(many, arg, 300);
    check_many(many, arg, 5000);
}

CX_TEST(digest_many_by_every_kernel)
{
    check_many_lengths(many_chosen, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        if (cx_digest_has(kernels[i]))
            check_many_lengths(many_by_kernel, &kernels[i]);
    }
}

CX_TEST(digest_many_by_emulated_sixteen_lanes)
{
    cx_digest_lanes lanes16 = {16, 16, 1, 1, emulated_compress_lanes, cx_digest_plain_compress};
    check_many_lengths(many_by_lanes, &lanes16);
    lanes16.worth_count = 7;
    check_many_lengths(many_by_lanes, &lanes16);
}

CX_TEST(digest_many_in_two_pieces)
{
    cx_digest_lanes lanes16 = {16, 16, 1, 7, emulated_compress_lanes, cx_digest_plain_compress};
    check_many_lengths(pieces_by_kernel, NULL);
    check_many_lengths(pieces_by_lanes, &lanes16);
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        if (cx_digest_has(kernels[i]))
            check_many_lengths(pieces_by_kernel, &kernels[i]);
    }
}

/* --- pairs --------------------------------------------------------------------------------- */

typedef void pairs_function(const uint8_t *pairs, cx_digest *out, size_t count);

static void check_pairs(pairs_function *pairs, const cx_digest_kernel *kernel, size_t count)
{
    uint64_t seed = cx_test_seed() + count;
    uint8_t *data = random_bytes(64 * count + 64, &seed);
    cx_digest *got = calloc(count + 1, sizeof *got), expected;
    REQUIRE(data != NULL && got != NULL);
    if (pairs != NULL)
        pairs(data, got, count);
    else
        cx_digest_pairs_with(*kernel, data, got, count);
    for (size_t i = 0; i < count; i++) {
        expected = expected_of(cx_bytes_from(data + 64 * i, 64));
        CHECK(cx_digest_eq(&got[i], &expected));
    }
    memset(&expected, 0, sizeof expected);
    CHECK(cx_digest_eq(&got[count], &expected));
    /* Over its own input. */
    if (pairs != NULL)
        pairs(data, (cx_digest *)(void *)data, count);
    else
        cx_digest_pairs_with(*kernel, data, (cx_digest *)(void *)data, count);
    CHECK(memcmp(data, got, count * sizeof *got) == 0);
    free(data);
    free(got);
}

CX_TEST(digest_pairs_by_every_kernel)
{
    for (size_t count = 0; count <= 70; count++) {
        check_pairs(cx_digest_pairs, NULL, count);
        for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
            if (cx_digest_has(kernels[i]))
                check_pairs(NULL, &kernels[i], count);
        }
    }
}

CX_TEST(digest_of_nothing)
{
    cx_digest_pairs(NULL, NULL, 0);
    cx_digest_many(NULL, NULL, 0);
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        if (!cx_digest_has(kernels[i]))
            continue;
        cx_digest_pairs_with(kernels[i], NULL, NULL, 0);
        cx_digest_many_with(kernels[i], NULL, NULL, 0);
    }
}

CX_TEST(digest_pairs_by_emulated_sixteen_lanes)
{
    for (size_t count = 0; count <= 64; count += 16)
        check_pairs(emulated_pairs, NULL, count);
}

/* --- message templates ------------------------------------------------------------------------ */

enum { TEMPLATED_MOST = 50 };

/* Any of the shapes a template may have: at most two blocks from the one in which own bytes
 * begin. */
static void check_template(const uint8_t *data, size_t before_size, size_t own_size,
                           size_t after_size)
{
    static const size_t counts[] = {0,  1,  2,  3,  5,  6,  7,  15,
                                    16, 17, 21, 22, 31, 32, 33, TEMPLATED_MOST};
    uint8_t own[TEMPLATED_MOST * 64], message[192];
    cx_digest expected[TEMPLATED_MOST], got[TEMPLATED_MOST + 1], untouched;
    cx_digest_template template;
    memset(&untouched, 0x5a, sizeof untouched);
    memcpy(own, data + 200, sizeof own);
    memcpy(message, data, before_size);
    memcpy(message + before_size + own_size, data + 100, after_size);
    for (size_t i = 0; i < TEMPLATED_MOST; i++) {
        memcpy(message + before_size, own + i * own_size, own_size);
        expected[i] = expected_of(cx_bytes_from(message, before_size + own_size + after_size));
    }
    cx_digest_template_init(&template, cx_bytes_from(before_size == 0 ? NULL : data, before_size),
                            own_size, cx_bytes_from(data + 100, after_size));
    for (size_t k = 0; k <= CX_COUNT_OF(kernels); k++) {
        if (k < CX_COUNT_OF(kernels) && !cx_digest_has(kernels[k]))
            continue;
        for (size_t c = 0; c < CX_COUNT_OF(counts); c++) {
            memset(got, 0x5a, sizeof got);
            if (k < CX_COUNT_OF(kernels))
                cx_digest_template_many_with(kernels[k], &template, own, got, counts[c]);
            else
                cx_digest_template_many(&template, own, got, counts[c]);
            CHECK(memcmp(got, expected, counts[c] * sizeof *got) == 0);
            CHECK(cx_digest_eq(&got[counts[c]], &untouched));
        }
        if (own_size < 32)
            continue;
        /* Over its own input. */
        uint8_t both[sizeof own];
        memcpy(both, own, sizeof own);
        cx_digest_template_many_with(k < CX_COUNT_OF(kernels) ? kernels[k] : cx_digest_chosen(),
                                     &template, both, (cx_digest *)(void *)both, TEMPLATED_MOST);
        CHECK(memcmp(both, expected, sizeof expected) == 0);
    }
}

CX_TEST(digest_templates_by_every_kernel)
{
    uint64_t seed = cx_test_seed();
    uint8_t *data = random_bytes(200 + TEMPLATED_MOST * 64, &seed);
    REQUIRE(data != NULL);
    unsigned shape_count = 0;
    for (size_t before = 0; before <= 70; before++) {
        for (size_t own = 1; own <= 64; own += own == 1 ? 30 : own == 31 || own == 63 ? 1 : 31) {
            for (size_t after = 0; after <= 33; after += 11) {
                if ((before + own + after + 9 + 63) / 64 - before / 64 > 2)
                    continue;
                check_template(data, before, own, after);
                shape_count++;
            }
        }
    }
    CHECK(shape_count > 500);
    free(data);
}

CX_TEST(digest_padded_by_emulated_sixteen_lanes)
{
    uint64_t seed = cx_test_seed();
    uint8_t *blocks = random_bytes(32 * 128, &seed);
    cx_digest got[33], expected;
    REQUIRE(blocks != NULL);
    memset(got, 0, sizeof got);
    for (size_t block_count = 1; block_count <= 2; block_count++) {
        uint32_t state[8];
        for (size_t i = 0; i < 8; i++)
            state[i] = (uint32_t)cx_test_random(&seed);
        emulated_padded(state, blocks, block_count, got, 32);
        for (size_t i = 0; i < 32; i++) {
            uint32_t one[8];
            memcpy(one, state, sizeof one);
            cx_digest_plain_compress(one, blocks + i * block_count * 64, block_count);
            for (size_t k = 0; k < 32; k++)
                expected.bytes[k] = (uint8_t)(one[k / 4] >> (24 - 8 * (k % 4)));
            CHECK(cx_digest_eq(&got[i], &expected));
        }
    }
    memset(&expected, 0, sizeof expected);
    CHECK(cx_digest_eq(&got[32], &expected));
    free(blocks);
}

/* --- choosing ------------------------------------------------------------------------------ */

#if defined(__x86_64__) || defined(__i386__)
#define FLAGS_LINE "flags"
#else
#define FLAGS_LINE "Features"
#endif

/* The kernel's list of processor flags is a second witness, each word between spaces.  Under
 * emulation /proc/cpuinfo may be the host's: then there is no such line, and false. */
static bool read_flags(char *line, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    bool found = false;
    if (file == NULL)
        return false;
    while (!found && fgets(line, (int)size, file) != NULL)
        found = strncmp(line, FLAGS_LINE, strlen(FLAGS_LINE)) == 0;
    (void)fclose(file);
    line[strcspn(line, "\n")] = ' ';
    return found;
}

CX_TEST(digest_kernel_choice)
{
    CHECK(cx_digest_has(CX_DIGEST_PORTABLE));
    CHECK(cx_digest_has(cx_digest_chosen()));
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++)
        CHECK(!cx_digest_has(kernels[i]) || kernels[i] <= cx_digest_chosen());
    CHECK(cx_str_is(cx_str_z(cx_digest_kernel_name(CX_DIGEST_PORTABLE)), "portable"));
    CHECK(cx_str_is(cx_str_z(cx_digest_kernel_name(CX_DIGEST_NEON)), "neon"));
    CHECK(cx_str_is(cx_str_z(cx_digest_kernel_name(CX_DIGEST_ARMV8)), "armv8-sha2"));
    CHECK(cx_str_is(cx_str_z(cx_digest_kernel_name(CX_DIGEST_SHANI)), "sha-ni"));
    CHECK(cx_str_is(cx_str_z(cx_digest_kernel_name(CX_DIGEST_AVX512)), "avx-512"));
    char flags[8192] = "";
    bool known = read_flags(flags, sizeof flags);
#if defined(__x86_64__) || defined(__i386__)
    CHECK(known);
    CHECK_INT(cx_digest_has(CX_DIGEST_SHANI), strstr(flags, " sha_ni ") != NULL);
    CHECK_INT(cx_digest_has(CX_DIGEST_AVX512), strstr(flags, " avx512f ") != NULL);
    CHECK(!cx_digest_has(CX_DIGEST_ARMV8) && !cx_digest_has(CX_DIGEST_NEON));
#elif defined(__aarch64__)
    if (known)
        CHECK_INT(cx_digest_has(CX_DIGEST_ARMV8), strstr(flags, " sha2 ") != NULL);
    CHECK(cx_digest_has(CX_DIGEST_NEON));
    CHECK(!cx_digest_has(CX_DIGEST_SHANI) && !cx_digest_has(CX_DIGEST_AVX512));
#else
    (void)known;
    CHECK_INT(cx_digest_chosen(), CX_DIGEST_PORTABLE);
#endif
}

/* Each thread has an OpenSSL context of its own. */
static void *hash_in_thread(void *arg)
{
    uint64_t seed = cx_test_seed();
    uint8_t data[500];
    bool *good = arg;
    *good = true;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)cx_test_random(&seed);
    for (size_t size = 0; size < sizeof data; size++) {
        cx_bytes message = cx_bytes_from(data, size);
        cx_digest got = cx_digest_of_with(CX_DIGEST_PORTABLE, message);
        cx_digest expected = expected_of(message);
        *good = *good && cx_digest_eq(&got, &expected);
    }
    return NULL;
}

CX_TEST(digest_portable_in_threads)
{
    pthread_t threads[4];
    bool good[4] = {false};
    for (size_t i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, hash_in_thread, &good[i]) == 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(good[i]);
    }
}
