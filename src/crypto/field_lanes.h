/*
 * field_lanes.h - numbers modulo p = 2^255 - 19, eight at a time, for ed25519_avx512.c alone.
 *
 * A number is five limbs of 51 bits, limb i counting 2^(51 i); a vector holds the same limb of
 * eight numbers.  VPMADD52 multiplies the low 52 bits of two lanes and adds the low or the high 52
 * bits of the product.
 *
 * Invariants:
 *   I1  a number is *tight*: its limbs are below 2^51 + 2^15.  So they fit the 52 bits that are
 *       multiplied, and every function here takes tight numbers and makes tight ones.
 *   I2  before carrying, limbs are below 2^62: what is carried is below 2^11, times 19 below 2^15.
 */
#ifndef CX_CRYPTO_FIELD_LANES_H
#define CX_CRYPTO_FIELD_LANES_H

#include "crypto/key_lanes.h"

#if defined(CX_KEY_X86) || defined(CX_LANES_EMULATED)

#include <string.h>

#ifndef CX_LANES_EMULATED
#include <immintrin.h>
#endif

typedef cx_lanes lanes;

typedef struct field {
    lanes v[5];
} field;

#define LIMB_BITS 51
#define LIMB_MASK ((UINT64_C(1) << LIMB_BITS) - 1)

#ifdef CX_LANES_EMULATED
/* 26 bits at a time: not every machine multiplies 64 by 64 bits. */
static inline void multiply_add(lanes *sum, const lanes *a, const lanes *b, bool want_high)
{
    const uint64_t half = (UINT64_C(1) << 26) - 1;
    for (size_t i = 0; i < CX_KEY_LANES; i++) {
        uint64_t x = (*a)[i], y = (*b)[i];
        CX_ASSERT(x >> 52 == 0 && y >> 52 == 0); /* I1 */
        uint64_t low = (x & half) * (y & half), high = (x >> 26) * (y >> 26);
        uint64_t middle = (x >> 26) * (y & half) + (x & half) * (y >> 26);
        low += (middle & half) << 26; /* below 2^53 */
        high += (middle >> 26) + (low >> 52);
        (*sum)[i] += want_high ? high : low & ((UINT64_C(1) << 52) - 1);
    }
}
#define ADD_LOW(sum, a, b) multiply_add(&(sum), &(a), &(b), false)
#define ADD_HIGH(sum, a, b) multiply_add(&(sum), &(a), &(b), true)
#else
#define ADD_LOW(sum, a, b) \
    ((sum) = (lanes)_mm512_madd52lo_epu64((__m512i)(sum), (__m512i)(a), (__m512i)(b)))
#define ADD_HIGH(sum, a, b) \
    ((sum) = (lanes)_mm512_madd52hi_epu64((__m512i)(sum), (__m512i)(a), (__m512i)(b)))
#endif

/* Vectors are only passed by address: how they travel by value depends on the target.
 *
 * 2^255 = 19: what is above the highest limb comes back to the lowest. */
#define TIMES_19(x) (((x) << 4) + ((x) << 1) + (x))

/* Written out: at -O2 compilers keep loops over five limbs as loops, and the limbs in memory. */
#define EACH_LIMB(DO) DO(0) DO(1) DO(2) DO(3) DO(4)

CX_LANES_INLINE void field_carry(field *a)
{
    lanes over[5];
#define PART(i)                     \
    over[i] = a->v[i] >> LIMB_BITS; \
    a->v[i] &= LIMB_MASK;
    EACH_LIMB(PART)
#undef PART
    a->v[0] += TIMES_19(over[4]);
    a->v[1] += over[0];
    a->v[2] += over[1];
    a->v[3] += over[2];
    a->v[4] += over[3];
}

CX_LANES_INLINE void field_set(field *out, const uint64_t limbs[5])
{
    for (size_t i = 0; i < 5; i++)
        out->v[i] = (lanes){0} + limbs[i];
}

CX_LANES_INLINE void field_set_small(field *out, uint64_t value)
{
    *out = (field){.v = {(lanes){0} + value}};
}

CX_LANES_INLINE void field_add(field *out, const field *a, const field *b)
{
    field sum;
#define SUM(i) sum.v[i] = a->v[i] + b->v[i];
    EACH_LIMB(SUM)
#undef SUM
    field_carry(&sum);
    *out = sum;
}

/* Limb i of 4p, above any tight limb: what is subtracted from it does not go below zero. */
#define FOUR_P(i) ((i) == 0 ? (UINT64_C(1) << 53) - 76 : (UINT64_C(1) << 53) - 4)

CX_LANES_INLINE void field_subtract(field *out, const field *a, const field *b)
{
    field rest;
#define DIFFERENCE(i) rest.v[i] = a->v[i] + FOUR_P(i) - b->v[i];
    EACH_LIMB(DIFFERENCE)
#undef DIFFERENCE
    field_carry(&rest);
    *out = rest;
}

/* The sums of a product, column by column: column k counts 2^(51 k).  Each has at most five terms
 * below 2^52; the high halves count 2^52, which is twice 2^51. */
typedef struct columns {
    lanes low[10], high[10];
} columns;

CX_LANES_INLINE void columns_clear(columns *c)
{
    const lanes zero = {0};
#define CLEAR(i)                        \
    c->low[i] = c->low[(i) + 5] = zero; \
    c->high[i] = c->high[(i) + 5] = zero;
    EACH_LIMB(CLEAR)
#undef CLEAR
}

/* Upper columns are below 15 * 2^52, the sums below 300 * 2^52 < 2^61 (I2). */
CX_LANES_INLINE void field_fold(field *out, const columns *c)
{
    field sum;
#define FOLD(i)                                                              \
    do {                                                                     \
        lanes upper = c->low[(i) + 5] + c->high[(i) + 5] + c->high[(i) + 5]; \
        sum.v[i] = c->low[i] + c->high[i] + c->high[i] + TIMES_19(upper);    \
    } while (0);
    EACH_LIMB(FOLD)
#undef FOLD
    field_carry(&sum);
    *out = sum;
}

#define PRODUCT(i, j)                                    \
    do {                                                 \
        ADD_LOW(c.low[(i) + (j)], x.v[i], y.v[j]);       \
        ADD_HIGH(c.high[(i) + (j) + 1], x.v[i], y.v[j]); \
    } while (0)
#define PRODUCT_ROW(i) \
    PRODUCT(i, 0);     \
    PRODUCT(i, 1);     \
    PRODUCT(i, 2);     \
    PRODUCT(i, 3);     \
    PRODUCT(i, 4);

CX_LANES_KERNEL static inline void field_multiply(field *out, const field *a, const field *b)
{
    const field x = *a, y = *b;
    columns c;
    columns_clear(&c);
    EACH_LIMB(PRODUCT_ROW)
    field_fold(out, &c);
}

/* Products of different limbs come twice: they are summed once and doubled. */
CX_LANES_KERNEL static inline void field_square(field *out, const field *a)
{
    const field x = *a, y = x;
    columns c;
    columns_clear(&c);
    PRODUCT(0, 1);
    PRODUCT(0, 2);
    PRODUCT(0, 3);
    PRODUCT(0, 4);
    PRODUCT(1, 2);
    PRODUCT(1, 3);
    PRODUCT(1, 4);
    PRODUCT(2, 3);
    PRODUCT(2, 4);
    PRODUCT(3, 4);
#define TWICE(i)                      \
    c.low[i] += c.low[i];             \
    c.low[(i) + 5] += c.low[(i) + 5]; \
    c.high[i] += c.high[i];           \
    c.high[(i) + 5] += c.high[(i) + 5];
    EACH_LIMB(TWICE)
#undef TWICE
    PRODUCT(0, 0);
    PRODUCT(1, 1);
    PRODUCT(2, 2);
    PRODUCT(3, 3);
    PRODUCT(4, 4);
    field_fold(out, &c);
}

CX_LANES_KERNEL static inline void field_square_times(field *out, const field *a, unsigned count)
{
    field_square(out, a);
    for (unsigned i = 1; i < count; i++)
        field_square(out, out);
}

/* out = a^(2^250 - 1), *out_11 = a^11: the common part of the two powers below. */
CX_LANES_KERNEL static inline void field_power_250(field *out, field *out_11, const field *a)
{
    field t, u, v;
    field_square(&t, a);            /* 2 */
    field_square_times(&u, &t, 2);  /* 8 */
    field_multiply(&u, &u, a);      /* 9 */
    field_multiply(out_11, &u, &t); /* 11 */
    field_square(&t, out_11);       /* 22 */
    field_multiply(&t, &t, &u);     /* 31 = 2^5 - 1 */
    field_square_times(&u, &t, 5);
    field_multiply(&t, &u, &t); /* 2^10 - 1 */
    field_square_times(&u, &t, 10);
    field_multiply(&u, &u, &t); /* 2^20 - 1 */
    field_square_times(&v, &u, 20);
    field_multiply(&u, &v, &u); /* 2^40 - 1 */
    field_square_times(&u, &u, 10);
    field_multiply(&t, &u, &t); /* 2^50 - 1 */
    field_square_times(&u, &t, 50);
    field_multiply(&u, &u, &t); /* 2^100 - 1 */
    field_square_times(&v, &u, 100);
    field_multiply(&u, &v, &u); /* 2^200 - 1 */
    field_square_times(&u, &u, 50);
    field_multiply(out, &u, &t); /* 2^250 - 1 */
}

/* 1/a = a^(p - 2), p - 2 = 2^255 - 21; 0 of 0. */
CX_LANES_KERNEL static inline void field_invert(field *out, const field *a)
{
    field power, eleventh;
    field_power_250(&power, &eleventh, a);
    field_square_times(&power, &power, 5);
    field_multiply(out, &power, &eleventh);
}

/* a^((p - 5) / 8), (p - 5) / 8 = 2^252 - 3. */
CX_LANES_KERNEL static inline void field_power_root(field *out, const field *a)
{
    field power, ignored;
    field_power_250(&power, &ignored, a);
    field_square_times(&power, &power, 2);
    field_multiply(out, &power, a);
}

/* The one spelling of each number that is below p. */
CX_LANES_KERNEL static inline void field_freeze(field *a)
{
    /* Twice along the limbs: all below 2^51 then, the number below 2^255. */
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < 4; i++) {
            a->v[i + 1] += a->v[i] >> LIMB_BITS;
            a->v[i] &= LIMB_MASK;
        }
        a->v[0] += TIMES_19(a->v[4] >> LIMB_BITS);
        a->v[4] &= LIMB_MASK;
    }
    /* The number is p or more when adding 19 carries out of the top: then 19 more, less 2^255. */
    lanes over = (a->v[0] + 19) >> LIMB_BITS;
    for (size_t i = 1; i < 5; i++)
        over = (a->v[i] + over) >> LIMB_BITS;
    a->v[0] += TIMES_19(over);
    for (size_t i = 0; i < 4; i++) {
        a->v[i + 1] += a->v[i] >> LIMB_BITS;
        a->v[i] &= LIMB_MASK;
    }
    a->v[4] &= LIMB_MASK;
}

/* The number of the low 255 bits of four words. */
CX_LANES_KERNEL static inline void field_read(field *out, const lanes words[4])
{
    out->v[0] = words[0] & LIMB_MASK;
    out->v[1] = (words[0] >> 51 | words[1] << 13) & LIMB_MASK;
    out->v[2] = (words[1] >> 38 | words[2] << 26) & LIMB_MASK;
    out->v[3] = (words[2] >> 25 | words[3] << 39) & LIMB_MASK;
    out->v[4] = words[3] >> 12 & LIMB_MASK;
}

/* The words of a frozen number. */
CX_LANES_KERNEL static inline void field_write(const field *a, lanes words[4])
{
    words[0] = a->v[0] | a->v[1] << 51;
    words[1] = a->v[1] >> 13 | a->v[2] << 38;
    words[2] = a->v[2] >> 26 | a->v[3] << 25;
    words[3] = a->v[3] >> 39 | a->v[4] << 12;
}

/* All ones in the lanes that are zero modulo p. */
CX_LANES_INLINE void field_is_zero(const field *a, lanes *out)
{
    field f = *a;
    field_freeze(&f);
    *out = (lanes)((f.v[0] | f.v[1] | f.v[2] | f.v[3] | f.v[4]) == 0);
}

/* out = a in the lanes of the mask. */
CX_LANES_INLINE void field_replace(field *out, const field *a, const lanes *mask)
{
    for (size_t i = 0; i < 5; i++)
        out->v[i] = (a->v[i] & *mask) | (out->v[i] & ~*mask);
}

#endif
#endif
