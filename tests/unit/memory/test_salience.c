/*
 * test_salience.c - scores and weights bit for bit, and rate limits on a clock of the test's own.
 */
#include "memory/salience.h"

#include <math.h>

#include "memory/type.h"
#include "tests/unit/memory/fixture.h"

#define T0 INT64_C(1700000000123456789)
#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The record's bytes after each operation of codec.json, which come from its fields. */
static void check_step(fixture *kit, const cx_json *steps, uint32_t index, const cx_salience *now)
{
    const cx_json *step = &steps->items[index];
    cx_bytes cached = fixture_hex_of(kit, step, "cached_f32");
    uint32_t expected = (uint32_t)cached.data[0] << 24 | (uint32_t)cached.data[1] << 16 |
                        (uint32_t)cached.data[2] << 8 | cached.data[3];
    if (bits_of(now->cached) != expected)
        cx_test_fail(__FILE__, __LINE__, "step %u: %08x, expected %08x", index,
                     (unsigned)bits_of(now->cached), (unsigned)expected);
    cx_buf_clear(&kit->buf);
    cx_salience_encode(now, &kit->buf);
    CHECK(fixture_same(cx_buf_bytes(&kit->buf), fixture_hex_of(kit, step, "cbor")));
}

CX_TEST(salience_vectors)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *steps = cx_json_get(CX_JSON_GET(&file, "salience"), CX_STR("scores"));
        cx_weights weights = cx_weights_start();
        REQUIRE(steps != NULL && steps->count == 6);
        cx_salience s = cx_salience_on_write(5, false, &weights, T0);
        check_step(&kit, steps, 0, &s);
        cx_salience_on_access(&s, &weights, T0 + HOUR);
        check_step(&kit, steps, 1, &s);
        cx_salience_on_citation(&s, 1, &weights, T0 + 2 * HOUR);
        check_step(&kit, steps, 2, &s);
        cx_salience_on_citation(&s, -1, &weights, T0 + 3 * HOUR);
        check_step(&kit, steps, 3, &s);
        cx_salience_on_update(&s, 9, &weights, T0 + 4 * HOUR);
        check_step(&kit, steps, 4, &s);
        cx_salience_on_tombstone(&s, T0 + 5 * HOUR);
        check_step(&kit, steps, 5, &s);
    }
    fixture_done(&kit);
}

static bool same_weights(const cx_weights *a, const uint32_t expected[5])
{
    return bits_of(a->r) == expected[0] && bits_of(a->a) == expected[1] &&
           bits_of(a->c) == expected[2] && bits_of(a->d) == expected[3] &&
           bits_of(a->v) == expected[4];
}

/* Steps 15 and 16 of scenario.json: an Identity of importance 0 and a Preference of 9 are cited
 * with success, then the Preference with factual_error. */
CX_TEST(weights_learn_as_in_the_scenario)
{
    static const uint32_t after_success[5] = {0x3e886d46, 0x3e144a61, 0x3e92be07, 0x3e4f7b0e,
                                              0x3dcbc7f6};
    static const uint32_t after_failure[5] = {0x3e831a40, 0x3e19e71a, 0x3e9ad98c, 0x3e43cae7,
                                              0x3dcccccc};
    cx_weights w = cx_weights_start(), next;
    cx_salience identity = cx_salience_on_write(0, false, &w, T0);
    cx_salience preference = cx_salience_on_write(9, false, &w, T0);
    int64_t now = T0 + HOUR;
    cx_salience_on_citation(&identity, 1, &w, now);
    cx_salience_on_citation(&preference, 1, &w, now);
    cx_factors cited[2] = {cx_salience_factors(&identity, now),
                           cx_salience_factors(&preference, now)};
    CHECK(cx_weights_learn(&w, cited, 2, false, &next));
    CHECK(same_weights(&next, after_success));
    w = next;
    now += HOUR;
    cx_salience_on_citation(&preference, -1, &w, now);
    CHECK_INT(preference.citations, 0);
    CHECK_INT(preference.access, 1);
    cited[0] = cx_salience_factors(&preference, now);
    CHECK(cx_weights_learn(&w, cited, 1, true, &next));
    CHECK(same_weights(&next, after_failure));
}

CX_TEST(weights_are_left_alone_when_there_is_nothing_to_learn)
{
    static const uint32_t start[5] = {0x3e800000, 0x3e19999a, 0x3e99999a, 0x3e4ccccd, 0x3dcccccd};
    cx_weights w = cx_weights_start(), next = {0};
    cx_factors zero = {0, 0, 0, 0};
    CHECK(same_weights(&w, start));
    CHECK(!cx_weights_learn(&w, NULL, 0, false, &next));
    CHECK(same_weights(&next, start));
    CHECK(!cx_weights_learn(&w, &zero, 1, false, &next));
    CHECK(same_weights(&next, start));
}

CX_TEST(weights_stay_within_bounds)
{
    uint64_t state = cx_test_seed();
    cx_weights w = cx_weights_start();
    for (size_t i = 0; i < 5000; i++) {
        cx_factors f[3];
        for (size_t k = 0; k < 3; k++)
            f[k] = (cx_factors){(float)(cx_test_random(&state) % 1001) / 1000.0f,
                                (float)(cx_test_random(&state) % 1001) / 1000.0f,
                                (float)(cx_test_random(&state) % 1001) / 1000.0f,
                                (float)(cx_test_random(&state) % 1001) / 1000.0f};
        (void)cx_weights_learn(&w, f, 1 + cx_test_random(&state) % 3, cx_test_random(&state) % 2,
                               &w);
        float sum = w.r + w.a + w.c + w.d + w.v;
        CHECK(w.r >= 0 && w.a >= 0 && w.c >= 0 && w.d >= 0 && w.v >= 0);
        CHECK(fabsf(sum - 1.0f) < 1e-5f);
    }
}

CX_TEST(factors_at_the_borders)
{
    cx_salience s = {.last_used_ns = T0, .importance = 10};
    cx_factors f = cx_salience_factors(&s, T0);
    CHECK(f.r == 1.0f && f.a == 0.0f && f.c == 0.0f && f.d == 1.0f);
    /* In the future: as new. */
    f = cx_salience_factors(&s, T0 - DAY);
    CHECK(f.r == 1.0f);
    f = cx_salience_factors(&s, T0 + 90 * DAY);
    CHECK(f.r == 0.36787945f); /* 1/e */
    /* The whole range of the clock does not overflow. */
    s.last_used_ns = INT64_MIN;
    f = cx_salience_factors(&s, INT64_MAX);
    CHECK(f.r >= 0.0f && f.r < 1e-20f);
    s.access = 1000;
    s.citations = UINT64_MAX;
    s.importance = 255;
    f = cx_salience_factors(&s, INT64_MAX);
    CHECK(f.a == 1.0f && f.c == 1.0f && f.d == 1.0f);
    s.access = 999;
    CHECK(cx_salience_factors(&s, 0).a < 1.0f);
}

CX_TEST(scores)
{
    cx_weights w = cx_weights_start(), none = {0, 0, 0, 0, 1.0f};
    cx_salience s = cx_salience_on_write(0, true, &w, T0);
    CHECK(s.cached == 0.7f); /* pinned */
    CHECK(cx_salience_score(&s, &none, T0) == 0.7f);
    s.pinned = false;
    CHECK(cx_salience_score(&s, &none, T0) == 0.0f);
    s.importance = 10;
    s.access = s.citations = UINT64_MAX;
    s.pinned = true;
    CHECK(cx_salience_score(&s, &w, T0) == 1.0f);
    cx_salience absent = cx_salience_absent(1700000000, 4);
    CHECK_INT(absent.last_used_ns, INT64_C(1700000000000000000));
    CHECK_INT(absent.importance, 4);
    CHECK_INT(cx_salience_absent(INT64_MIN, 0).last_used_ns, INT64_MIN);
    CHECK_INT(cx_salience_absent(INT64_MAX, 0).last_used_ns, INT64_MAX);
}

CX_TEST(citations)
{
    cx_weights w = cx_weights_start();
    cx_salience s = cx_salience_on_write(0, false, &w, T0);
    CHECK_INT(cx_attest_delta(0, CX_STR("factual_error")), 1);
    CHECK_INT(cx_attest_delta(1, CX_STR("factual_error")), -1);
    CHECK_INT(cx_attest_delta(1, CX_STR("wrong_assumption")), -1);
    CHECK_INT(cx_attest_delta(1, CX_STR("timeout")), 0);
    CHECK_INT(cx_attest_delta(1, CX_STR("")), 0);
    cx_salience_on_citation(&s, -1, &w, T0 + 1);
    CHECK(s.citations == 0 && s.access == 0 && s.last_used_ns == T0 + 1);
    cx_salience_on_citation(&s, 0, &w, T0 + 2);
    CHECK(s.citations == 0 && s.access == 0 && s.last_used_ns == T0 + 2);
    s.access = s.citations = UINT64_MAX;
    cx_salience_on_citation(&s, 1, &w, T0 + 3);
    CHECK(s.access == UINT64_MAX && s.citations == UINT64_MAX);
}

/* --- rate limits ------------------------------------------------------------------------------ */

#define SECOND INT64_C(1000000000)

CX_TEST(bucket_burst_and_refill)
{
    cx_bucket bucket = {0};
    CHECK(cx_bucket_is_full(&bucket, CX_RATE_ATTEST, T0));
    for (int i = 0; i < 5; i++)
        CHECK(cx_bucket_take(&bucket, CX_RATE_ATTEST, T0));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, T0));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, T0 + SECOND - 1));
    CHECK(cx_bucket_take(&bucket, CX_RATE_ATTEST, T0 + SECOND));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, T0 + SECOND));
    CHECK(!cx_bucket_is_full(&bucket, CX_RATE_ATTEST, T0 + 6 * SECOND - 1));
    CHECK(cx_bucket_is_full(&bucket, CX_RATE_ATTEST, T0 + 6 * SECOND));
    /* However long ago, it holds no more than the burst. */
    for (int i = 0; i < 5; i++)
        CHECK(cx_bucket_take(&bucket, CX_RATE_ATTEST, T0 + 1000 * DAY));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, T0 + 1000 * DAY));
}

CX_TEST(bucket_and_a_clock_that_goes_back)
{
    cx_bucket bucket = {0};
    for (int i = 0; i < 5; i++)
        CHECK(cx_bucket_take(&bucket, CX_RATE_ATTEST, T0));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, T0 - DAY));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, INT64_MIN));
    CHECK(!cx_bucket_take(&bucket, CX_RATE_ATTEST, T0));
    CHECK(cx_bucket_take(&bucket, CX_RATE_ATTEST, INT64_MAX));
}

/* Over any stretch of time no more than burst + rate * time get through. */
CX_TEST(bucket_never_gives_more_than_its_rate)
{
    uint64_t state = cx_test_seed();
    cx_bucket bucket = {0};
    int64_t now = 0;
    uint64_t given = 0;
    for (size_t i = 0; i < 20000; i++) {
        now += (int64_t)(cx_test_random(&state) % (SECOND / 4));
        given += cx_bucket_take(&bucket, CX_RATE_VIOLATION, now);
        CHECK(given <= 20 + (uint64_t)now / (SECOND / 10));
    }
    CHECK(given + 20 >= (uint64_t)now / (SECOND / 10) * 9 / 10 || given > 15000);
}

CX_TEST(buckets_as_rows)
{
    cx_bucket bucket = {0}, read;
    uint8_t bytes[CX_BUCKET_SIZE + 1] = {0};
    for (int i = 0; i < 3; i++)
        CHECK(cx_bucket_take(&bucket, CX_RATE_ATTEST, T0));
    cx_bucket_encode(&bucket, bytes);
    CHECK(cx_bucket_decode(cx_bytes_from(bytes, CX_BUCKET_SIZE), CX_RATE_ATTEST, &read));
    CHECK(read.used && read.at_ns == T0 && read.level_nano == bucket.level_nano);
    for (size_t size = 0; size <= sizeof bytes; size++)
        CHECK(size == CX_BUCKET_SIZE ||
              !cx_bucket_decode(cx_bytes_from(bytes, size), CX_RATE_ATTEST, &read));
    bytes[0] = 0xff; /* more than the burst */
    CHECK(!cx_bucket_decode(cx_bytes_from(bytes, CX_BUCKET_SIZE), CX_RATE_ATTEST, &read));
    cx_digest a = cx_rate_name(CX_STR("a"), CX_STR("bc"));
    cx_digest b = cx_rate_name(CX_STR("ab"), CX_STR("c"));
    CHECK(!cx_digest_eq(&a, &b));
}
