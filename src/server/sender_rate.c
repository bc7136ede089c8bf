/*
 * sender_rate.c - token buckets by name; see sender_rate.h.
 */
#include "server/sender_rate.h"

void cx_sender_rate_init(cx_sender_rate *rate, uint64_t seed, double per_minute, double burst)
{
    *rate = (cx_sender_rate){.seed = seed, .per_minute = per_minute, .burst = burst};
    cx_lock_init(&rate->lock);
}

void cx_sender_rate_done(cx_sender_rate *rate)
{
    cx_lock_done(&rate->lock);
}

static double left_now(const cx_sender_rate *rate, const cx_sender_rate_bucket *bucket,
                       uint64_t now_ns)
{
    double seconds = now_ns > bucket->seen_ns ? (double)(now_ns - bucket->seen_ns) * 1e-9 : 0.0;
    double left = bucket->left + seconds * rate->per_minute / 60.0;
    return left < rate->burst ? left : rate->burst;
}

/* The bucket of this name, made full if there is none. */
static cx_sender_rate_bucket *bucket_of(cx_sender_rate *rate, uint64_t name, uint64_t now_ns)
{
    cx_sender_rate_bucket *set = rate->buckets[(name >> 1) % CX_SENDER_RATE_SETS],
                          *fullest = &set[0];
    for (size_t i = 0; i < CX_SENDER_RATE_WAYS; i++) {
        if (set[i].name == name)
            return &set[i];
        if (fullest->name != 0 &&
            (set[i].name == 0 || left_now(rate, &set[i], now_ns) > left_now(rate, fullest, now_ns)))
            fullest = &set[i];
    }
    *fullest = (cx_sender_rate_bucket){.name = name, .left = rate->burst, .seen_ns = now_ns};
    return fullest;
}

bool cx_sender_rate_take(cx_sender_rate *rate, cx_str name, double count, uint64_t now_ns)
{
    uint64_t hash = cx_map_hash_bytes(rate->seed, name.data, name.size) | 1;
    cx_lock_enter(&rate->lock);
    cx_sender_rate_bucket *bucket = bucket_of(rate, hash, now_ns);
    double left = left_now(rate, bucket, now_ns);
    bool taken = left >= count;
    *bucket = (cx_sender_rate_bucket){
        .name = hash, .left = taken ? left - count : left, .seen_ns = now_ns};
    cx_lock_leave(&rate->lock);
    return taken;
}
