/*
 * salience.h - the current score of a memory, learning weights from citations, and rate limits
 * (ledger.md §10.1).
 *
 * Weights are journaled, so their bits must be reproducible: everything is in float, in the order
 * written here, without fused multiply-add; only exp and ln are taken in double and rounded once.
 * Pure functions; times are nanoseconds of the caller's clock.
 */
#ifndef CX_MEMORY_SALIENCE_H
#define CX_MEMORY_SALIENCE_H

#include "base/api.h"
#include "proof/api.h"

#define CX_SALIENCE_ALPHA 0.05f
#define CX_SALIENCE_PINNED_MIN 0.7f

/* .25 .15 .30 .20 .10 */
cx_weights cx_weights_start(void);

/* Recency, access, citations, declared importance, each 0..1. */
typedef struct cx_factors {
    float r, a, c, d;
} cx_factors;

cx_factors cx_salience_factors(const cx_salience *salience, int64_t now_ns);
/* 0..1; pinned ones at least .7. */
float cx_salience_score(const cx_salience *salience, const cx_weights *weights, int64_t now_ns);
/* A memory without a salience record: last used when its version was made. */
cx_salience cx_salience_absent(int64_t created_at_s, uint8_t importance);

/* Updates of a record by the calls.  Each sets `cached` and `computed_at_ns` with the weights. */
cx_salience cx_salience_on_write(uint8_t importance, bool pinned, const cx_weights *weights,
                                 int64_t now_ns);
void cx_salience_on_update(cx_salience *salience, uint8_t importance, const cx_weights *weights,
                           int64_t now_ns);
void cx_salience_on_access(cx_salience *salience, const cx_weights *weights, int64_t now_ns);
void cx_salience_on_tombstone(cx_salience *salience, int64_t now_ns);

/* The effect of an outcome on the memories it cites: success +1; failure with "factual_error" or
 * "wrong_assumption" -1; else 0. */
int cx_attest_delta(uint8_t outcome, cx_str reason);
/* +1: citations and access up; -1: citations down, not below 0; the time of last use is always set
 * to now. */
void cx_salience_on_citation(cx_salience *salience, int delta, const cx_weights *weights,
                             int64_t now_ns);

/*
 * One learning step from the factors of the cited memories, in cited order, after their update;
 * moves away from their profile when `decrement`.  False: skipped, *out = *weights (nothing cited,
 * or all factors zero).
 */
bool cx_weights_learn(const cx_weights *weights, const cx_factors *cited, size_t cited_count,
                      bool decrement, cx_weights *out);

/* --- rate limits ----------------------------------------------------------------------------- */

typedef struct cx_rate {
    uint32_t per_second;
    uint32_t burst;
} cx_rate;

#define CX_RATE_ATTEST ((cx_rate){1, 5})      /* by actor and intent */
#define CX_RATE_VIOLATION ((cx_rate){10, 20}) /* by granted_to and granted_by */

/* A token bucket; all zeros is a full one.  A clock that goes back adds no tokens. */
typedef struct cx_bucket {
    bool used;
    uint64_t level_nano; /* tokens times 10^9 */
    int64_t at_ns;
} cx_bucket;

bool cx_bucket_take(cx_bucket *bucket, cx_rate rate, int64_t now_ns);
/* The bucket is full: it can be dropped. */
bool cx_bucket_is_full(const cx_bucket *bucket, cx_rate rate, int64_t now_ns);

/*
 * Buckets are rows that follow from the entries they count (derive.c), so that all processes share
 * them and a restart changes nothing: 8 bytes of level, 8 bytes of time.  Their key is
 * CX_MEMORY_RATE_KEY, a letter for the rate, and the hash of their two names: ("a", "bc") is not
 * ("ab", "c").
 */
#define CX_BUCKET_SIZE 16
void cx_bucket_encode(const cx_bucket *bucket, uint8_t out[CX_BUCKET_SIZE]);
/* False: these bytes are no bucket of that rate. */
bool cx_bucket_decode(cx_bytes bytes, cx_rate rate, cx_bucket *out);
cx_digest cx_rate_name(cx_str first, cx_str second);

#endif
