/*
 * sender_rate.h - how much of something each sender may do in a minute: token buckets in a table of
 * fixed size.
 *
 * A bucket holds what a minute allows, and refills evenly.  When the table is full, the bucket that
 * is nearest to full is forgotten: who is being limited stays limited.  Thread-safe.
 */
#ifndef CX_SERVER_SENDER_RATE_H
#define CX_SERVER_SENDER_RATE_H

#include "base/api.h"

#define CX_SENDER_RATE_SETS 512
#define CX_SENDER_RATE_WAYS 8

typedef struct cx_sender_rate_bucket {
    uint64_t name; /* its hash; 0 = free */
    double left;
    uint64_t seen_ns;
} cx_sender_rate_bucket;

typedef struct cx_sender_rate {
    cx_lock lock;
    uint64_t seed;
    double per_minute, burst;
    cx_sender_rate_bucket buckets[CX_SENDER_RATE_SETS][CX_SENDER_RATE_WAYS];
} cx_sender_rate;

/* `burst` is what a bucket holds. */
void cx_sender_rate_init(cx_sender_rate *rate, uint64_t seed, double per_minute, double burst);
void cx_sender_rate_done(cx_sender_rate *rate);
/* Takes `count` out of the bucket of `name`; false, and nothing taken: it does not hold so many. */
bool cx_sender_rate_take(cx_sender_rate *rate, cx_str name, double count, uint64_t now_ns);

#endif
