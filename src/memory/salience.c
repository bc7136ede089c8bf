/*
 * salience.c - scores, learning and rate limits (ledger.md §10.1).
 *
 * I1  every product and sum is rounded to float on its own: no fused multiply-add (the build says
 *     -ffp-contract=off; the pragma says it to compilers that know it), and intermediate values are
 *     stored in floats, so that wider registers do not matter.
 * I2  weights that sum to one still do after learning, except for rounding.
 */
#include "memory/salience.h"

#include <math.h>

#include "base/api.h"
#include "crypto/api.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "IEEE 754");

#define RECENCY_NS (90.0 * 86400.0 * 1e9) /* 90 days: the score falls to 1/e */
#define SATURATION 1000                   /* accesses or citations that count as 1 */

cx_weights cx_weights_start(void)
{
    return (cx_weights){0.25f, 0.15f, 0.30f, 0.20f, 0.10f};
}

static float clamp01(float value)
{
    if (!(value > 0.0f)) /* NaN too */
        return 0.0f;
    return value > 1.0f ? 1.0f : value;
}

/* ln(1 + count) / ln(1001), rounded once. */
static float saturating(uint64_t count)
{
    return clamp01((float)(log(1.0 + (double)count) / log(1.0 + (double)SATURATION)));
}

/* now - then, 0 when that is in the future; without overflow. */
static double elapsed_ns(int64_t then_ns, int64_t now_ns)
{
    return now_ns <= then_ns ? 0.0 : (double)((uint64_t)now_ns - (uint64_t)then_ns);
}

cx_factors cx_salience_factors(const cx_salience *salience, int64_t now_ns)
{
    cx_factors factors;
    double age = elapsed_ns(salience->last_used_ns, now_ns);
    factors.r = clamp01((float)exp(-(age / RECENCY_NS)));
    factors.a = saturating(salience->access);
    factors.c = saturating(salience->citations);
    factors.d = clamp01((float)salience->importance / 10.0f);
    return factors;
}

static float multiply(float a, float b)
{
    float product = a * b;
    return product;
}

static float add(float a, float b)
{
    float sum = a + b;
    return sum;
}

/* a + b + c + d from left to right. */
static float sum4(float a, float b, float c, float d)
{
    return add(add(add(a, b), c), d);
}

float cx_salience_score(const cx_salience *salience, const cx_weights *weights, int64_t now_ns)
{
    cx_factors f = cx_salience_factors(salience, now_ns);
    float total = sum4(multiply(weights->r, f.r), multiply(weights->a, f.a),
                       multiply(weights->c, f.c), multiply(weights->d, f.d));
    float whole = sum4(weights->r, weights->a, weights->c, weights->d);
    float score = clamp01(whole > 0.0f ? total / whole : 0.0f);
    if (salience->pinned && score < CX_SALIENCE_PINNED_MIN)
        score = CX_SALIENCE_PINNED_MIN;
    return score;
}

cx_salience cx_salience_absent(int64_t created_at_s, uint8_t importance)
{
    /* Times outside the nanosecond range are clamped to its ends. */
    int64_t ns = created_at_s > INT64_MAX / 1000000000   ? INT64_MAX
                 : created_at_s < INT64_MIN / 1000000000 ? INT64_MIN
                                                         : created_at_s * 1000000000;
    return (cx_salience){.last_used_ns = ns, .importance = importance};
}

/* --- what the calls do ----------------------------------------------------------------------- */

static void update_cached_score(cx_salience *salience, const cx_weights *weights, int64_t now_ns)
{
    salience->cached = cx_salience_score(salience, weights, now_ns);
    salience->computed_at_ns = now_ns;
}

cx_salience cx_salience_on_write(uint8_t importance, bool pinned, const cx_weights *weights,
                                 int64_t now_ns)
{
    cx_salience salience = {.last_used_ns = now_ns, .importance = importance, .pinned = pinned};
    update_cached_score(&salience, weights, now_ns);
    return salience;
}

void cx_salience_on_update(cx_salience *salience, uint8_t importance, const cx_weights *weights,
                           int64_t now_ns)
{
    salience->last_used_ns = now_ns;
    salience->importance = importance;
    update_cached_score(salience, weights, now_ns);
}

void cx_salience_on_access(cx_salience *salience, const cx_weights *weights, int64_t now_ns)
{
    if (salience->access != UINT64_MAX)
        salience->access++;
    salience->last_used_ns = now_ns;
    update_cached_score(salience, weights, now_ns);
}

void cx_salience_on_tombstone(cx_salience *salience, int64_t now_ns)
{
    salience->cached = 0.0f;
    salience->computed_at_ns = now_ns;
}

int cx_attest_delta(uint8_t outcome, cx_str reason)
{
    if (outcome == 0)
        return 1;
    return cx_str_is(reason, "factual_error") || cx_str_is(reason, "wrong_assumption") ? -1 : 0;
}

void cx_salience_on_citation(cx_salience *salience, int delta, const cx_weights *weights,
                             int64_t now_ns)
{
    if (delta > 0) {
        if (salience->citations != UINT64_MAX)
            salience->citations++;
        if (salience->access != UINT64_MAX)
            salience->access++;
    } else if (delta < 0 && salience->citations != 0) {
        salience->citations--;
    }
    salience->last_used_ns = now_ns;
    update_cached_score(salience, weights, now_ns);
}

/* --- learning -------------------------------------------------------------------------------- */

/* w + .05 (profile - w), or w - .05 (profile - w), not below zero. */
static float step_weight(float weight, float profile, bool decrement)
{
    float change = multiply(CX_SALIENCE_ALPHA, add(profile, -weight));
    float value = decrement ? add(weight, -change) : add(weight, change);
    return value > 0.0f ? value : 0.0f;
}

bool cx_weights_learn(const cx_weights *weights, const cx_factors *cited, size_t cited_count,
                      bool decrement, cx_weights *out)
{
    cx_factors mean = {0, 0, 0, 0};
    const float count = (float)cited_count;
    cx_weights now = *weights;
    for (size_t i = 0; i < cited_count; i++) {
        mean.r = add(mean.r, cited[i].r);
        mean.a = add(mean.a, cited[i].a);
        mean.c = add(mean.c, cited[i].c);
        mean.d = add(mean.d, cited[i].d);
    }
    *out = *weights;
    if (cited_count == 0)
        return false;
    mean = (cx_factors){mean.r / count, mean.a / count, mean.c / count, mean.d / count};
    float whole = sum4(mean.r, mean.a, mean.c, mean.d);
    if (!(whole > 0.0f))
        return false;
    now.r = step_weight(weights->r, mean.r / whole, decrement);
    now.a = step_weight(weights->a, mean.a / whole, decrement);
    now.c = step_weight(weights->c, mean.c / whole, decrement);
    now.d = step_weight(weights->d, mean.d / whole, decrement);
    float sum = add(sum4(now.r, now.a, now.c, now.d), now.v);
    if (!(sum > 0.0f))
        return false;
    *out = (cx_weights){now.r / sum, now.a / sum, now.c / sum, now.d / sum, now.v / sum};
    return true;
}

/* --- rate limits ----------------------------------------------------------------------------- */

#define NANO UINT64_C(1000000000)

/* The bucket's level at `now_ns`, in billionths of a token. */
static uint64_t bucket_level_at(const cx_bucket *bucket, cx_rate rate, int64_t now_ns)
{
    uint64_t full = rate.burst * NANO;
    if (!bucket->used)
        return full;
    if (now_ns <= bucket->at_ns || rate.per_second == 0)
        return bucket->level_nano;
    uint64_t gone = (uint64_t)now_ns - (uint64_t)bucket->at_ns;
    uint64_t missing = full - bucket->level_nano;
    if (gone > missing / rate.per_second)
        return full;
    return bucket->level_nano + gone * rate.per_second;
}

bool cx_bucket_take(cx_bucket *bucket, cx_rate rate, int64_t now_ns)
{
    uint64_t level = bucket_level_at(bucket, rate, now_ns);
    if (!bucket->used || now_ns > bucket->at_ns)
        bucket->at_ns = now_ns;
    bucket->used = true;
    bucket->level_nano = level;
    if (level < NANO)
        return false;
    bucket->level_nano = level - NANO;
    return true;
}

bool cx_bucket_is_full(const cx_bucket *bucket, cx_rate rate, int64_t now_ns)
{
    return bucket_level_at(bucket, rate, now_ns) == rate.burst * NANO;
}

void cx_bucket_encode(const cx_bucket *bucket, uint8_t out[CX_BUCKET_SIZE])
{
    cx_writer writer = cx_writer_over(out, CX_BUCKET_SIZE);
    cx_writer_uint(&writer, bucket->level_nano, 8);
    cx_writer_uint(&writer, (uint64_t)bucket->at_ns, 8);
    CX_ASSERT(cx_writer_ok(&writer));
}

bool cx_bucket_decode(cx_bytes bytes, cx_rate rate, cx_bucket *out)
{
    cx_reader reader = cx_reader_over(bytes);
    if (bytes.size != CX_BUCKET_SIZE)
        return false;
    *out = (cx_bucket){.used = true};
    out->level_nano = cx_reader_u64(&reader);
    out->at_ns = (int64_t)cx_reader_u64(&reader);
    return out->level_nano <= rate.burst * NANO;
}

cx_digest cx_rate_name(cx_str first, cx_str second)
{
    uint8_t size[8];
    cx_writer writer = cx_writer_over(size, sizeof size);
    cx_sha256 hash;
    cx_writer_uint(&writer, first.size, 8); /* separates the two parts of the name */
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, size, sizeof size);
    cx_sha256_add(&hash, first.data, first.size);
    cx_sha256_add(&hash, second.data, second.size);
    return cx_sha256_end(&hash);
}
