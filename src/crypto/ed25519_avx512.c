/*
 * ed25519_avx512.c - is S·B - H·A, encoded, R?  For eight signatures at once (key_lanes.h).
 *
 * Points of -x² + y² = 1 + d x² y² are (X : Y : Z : T), x = X/Z, y = Y/Z, T = XY/Z (RFC 8032
 * §5.1.4).  Its formulas for a sum hold for every two points of the curve, small orders and the
 * neutral point included, so there are no special cases.  Nothing here is secret: verification may
 * take the time it takes.
 *
 * S and H come as 64 signed digits of base 16 each; for each place, from the highest, the sum is
 * doubled four times and a multiple of -A and one of B, from 0 to 8 times and negated or not, are
 * added.  The multiples of B are made once, those of -A each time, both from their encodings: no
 * table of this file was copied from anywhere.
 */
#include "crypto/key_lanes.h"

#if defined(CX_KEY_X86) || defined(CX_LANES_EMULATED)

#include <pthread.h>

#include "crypto/field_lanes.h"

enum { MULTIPLES = 8, DIGITS = 64 };

/* d = -121665/121666, twice that, and a square root of -1, modulo p. */
static const uint64_t curve_d[5] = {0x34dca135978a3, 0x1a8283b156ebd, 0x5e7a26001c029,
                                    0x739c663a03cbb, 0x52036cee2b6ff};
static const uint64_t curve_2d[5] = {0x69b9426b2f159, 0x35050762add7a, 0x3cf44c0038052,
                                     0x6738cc7407977, 0x2406d9dc56dff};
static const uint64_t root_of_minus_1[5] = {0x61b274a0ea0b0, 0x0d5a5fc8f189d, 0x7ef5e9cbd0c60,
                                            0x78595a6804c9e, 0x2b8324804fc1d};

typedef struct point {
    field x, y, z, t;
} point;

/* What adding a point takes: y + x, y - x, 2z, 2d t. */
typedef struct addend {
    field plus, minus, z2, t2d;
} addend;

/* The multiples 1 to 8 of B, z = 1: slot k of limb i belongs to (k + 1)·B. */
typedef struct base_table {
    lanes plus[5], minus[5], t2d[5];
} base_table;

static base_table base;
static pthread_once_t base_once = PTHREAD_ONCE_INIT;

/* --- points -------------------------------------------------------------------------------- */

CX_LANES_KERNEL static void set_neutral(point *p)
{
    field_set_small(&p->x, 0);
    field_set_small(&p->y, 1);
    field_set_small(&p->z, 1);
    field_set_small(&p->t, 0);
}

/* t is needed by sums alone, not by the next doubling. */
CX_LANES_KERNEL static void finish(point *p, const field *e, const field *f, const field *g,
                                   const field *h, bool with_t)
{
    field_multiply(&p->x, e, f);
    field_multiply(&p->y, g, h);
    field_multiply(&p->z, f, g);
    if (with_t)
        field_multiply(&p->t, e, h);
}

/* RFC 8032 §5.1.4, all four with the other sign. */
CX_LANES_KERNEL static void double_point(point *p, bool with_t)
{
    field a, b, c, e, f, g, h;
    field_square(&a, &p->x);
    field_square(&b, &p->y);
    field_square(&c, &p->z);
    field_add(&e, &p->x, &p->y);
    field_square(&e, &e);
    field_add(&h, &a, &b);
    field_subtract(&e, &e, &h); /* 2xy */
    field_subtract(&g, &b, &a);
    field_add(&c, &c, &c);
    field_subtract(&f, &c, &g);
    finish(p, &e, &f, &g, &h, with_t);
}

CX_LANES_KERNEL static void add_to_point(point *p, const addend *q, bool with_t)
{
    field a, b, c, d, e, f, g, h;
    field_subtract(&a, &p->y, &p->x);
    field_multiply(&a, &a, &q->minus);
    field_add(&b, &p->y, &p->x);
    field_multiply(&b, &b, &q->plus);
    field_multiply(&c, &p->t, &q->t2d);
    field_multiply(&d, &p->z, &q->z2);
    field_subtract(&e, &b, &a);
    field_subtract(&f, &d, &c);
    field_add(&g, &d, &c);
    field_add(&h, &b, &a);
    finish(p, &e, &f, &g, &h, with_t);
}

CX_LANES_KERNEL static void make_addend(addend *out, const point *p)
{
    field twice_d;
    field_set(&twice_d, curve_2d);
    field_add(&out->plus, &p->y, &p->x);
    field_subtract(&out->minus, &p->y, &p->x);
    field_add(&out->z2, &p->z, &p->z);
    field_multiply(&out->t2d, &p->t, &twice_d);
}

/* Minus the encoded points; returns all ones where there is one (RFC 8032 §5.1.3). */
CX_LANES_KERNEL static void decode_negated(point *out, const lanes words[4], lanes *out_good)
{
    field u, v, v3, check, one, d, root;
    field_set_small(&one, 1);
    field_set(&d, curve_d);
    field_set(&root, root_of_minus_1);
    field_read(&out->y, words);
    out->z = one;
    field_square(&u, &out->y);
    field_multiply(&v, &u, &d);
    field_subtract(&u, &u, &one); /* x² = u/v */
    field_add(&v, &v, &one);

    field_square(&v3, &v);
    field_multiply(&v3, &v3, &v);
    field_square(&check, &v3);
    field_multiply(&check, &check, &v);
    field_multiply(&check, &check, &u); /* u v^7 */
    field_power_root(&out->x, &check);
    field_multiply(&out->x, &out->x, &v3);
    field_multiply(&out->x, &out->x, &u);

    field_square(&check, &out->x);
    field_multiply(&check, &check, &v);
    field_subtract(&v3, &check, &u);
    field_add(&check, &check, &u);
    lanes direct, turned;
    field_is_zero(&v3, &direct);
    field_is_zero(&check, &turned);
    field_multiply(&root, &root, &out->x);
    *out_good = direct | turned;
    turned &= ~direct;
    field_replace(&out->x, &root, &turned);

    field zero, opposite;
    field_set_small(&zero, 0);
    field_freeze(&out->x);
    field_subtract(&opposite, &zero, &out->x);
    lanes same_sign = (lanes)((out->x.v[0] & 1) == words[3] >> 63);
    field_replace(&out->x, &opposite, &same_sign);
    field_multiply(&out->t, &out->x, &out->y);
}

/* out[k] = (k + 1)·q */
CX_LANES_KERNEL static void make_multiples(const point *q, addend out[MULTIPLES])
{
    point p = *q;
    make_addend(&out[0], &p);
    for (size_t i = 1; i < MULTIPLES; i++) {
        add_to_point(&p, &out[0], true);
        make_addend(&out[i], &p);
    }
}

/* --- the base point ------------------------------------------------------------------------ */

/* B has y = 4/5 and an even x; here minus B is decoded from its encoding with the other sign. */
CX_LANES_KERNEL static void make_base(void)
{
    static const uint64_t encoded[4] = {0x6666666666666658, 0x6666666666666666, 0x6666666666666666,
                                        0xe666666666666666};
    lanes words[4], good;
    point p;
    addend multiples[MULTIPLES];
    for (size_t i = 0; i < 4; i++)
        words[i] = (lanes){0} + encoded[i];
    decode_negated(&p, words, &good);
    make_multiples(&p, multiples);
    for (size_t k = 0; k < MULTIPLES; k++) {
        addend *of = &multiples[k];
        field scale;
        field_invert(&scale, &of->z2);
        field_add(&scale, &scale, &scale); /* 1/z */
        field_multiply(&of->plus, &of->plus, &scale);
        field_multiply(&of->minus, &of->minus, &scale);
        field_multiply(&of->t2d, &of->t2d, &scale);
        for (size_t i = 0; i < 5; i++) {
            base.plus[i][k] = of->plus.v[i][0];
            base.minus[i][k] = of->minus.v[i][0];
            base.t2d[i][k] = of->t2d.v[i][0];
        }
    }
}

/* --- multiples by a digit ------------------------------------------------------------------ */

/* A digit without its sign, and all ones where it had one. */
typedef struct digit {
    lanes size, negative;
} digit;

CX_LANES_INLINE void read_digit(const int8_t digits[CX_KEY_LANES], digit *out)
{
    int64_t wide[CX_KEY_LANES];
    for (size_t i = 0; i < CX_KEY_LANES; i++)
        wide[i] = digits[i]; /* NOLINT(bugprone-signed-char-misuse,cert-str34-c): a number */
    lanes value;
    memcpy(&value, wide, sizeof value);
    out->negative = (lanes){0} - (value >> 63);
    out->size = (value ^ out->negative) - out->negative;
}

/* The other sign: y + x and y - x change places, t changes its own.  2p is above any tight limb. */
CX_LANES_INLINE void negate_addend(addend *a, const lanes *mask)
{
    for (size_t i = 0; i < 5; i++) {
        lanes swapped = (a->plus.v[i] ^ a->minus.v[i]) & *mask;
        lanes opposite = FOUR_P(i) / 2 - a->t2d.v[i];
        a->plus.v[i] ^= swapped;
        a->minus.v[i] ^= swapped;
        a->t2d.v[i] = (opposite & *mask) | (a->t2d.v[i] & ~*mask);
    }
}

/* digit·A of each lane, from the multiples of each lane; 0·A is (0, 1). */
CX_LANES_KERNEL static void pick_multiple(const addend multiples[MULTIPLES],
                                          const int8_t digits[CX_KEY_LANES], addend *out)
{
    digit d;
    read_digit(digits, &d);
    lanes none = (lanes)(d.size == 0);
    field_set_small(&out->plus, 1);
    field_set_small(&out->z2, 2);
    field_set_small(&out->t2d, 0);
    out->plus.v[0] &= none;
    out->z2.v[0] &= none;
    out->minus = out->plus;
    for (size_t k = 0; k < MULTIPLES; k++) {
        lanes mask = (lanes)(d.size == (lanes){0} + (k + 1));
        for (size_t i = 0; i < 5; i++) {
            out->plus.v[i] |= multiples[k].plus.v[i] & mask;
            out->minus.v[i] |= multiples[k].minus.v[i] & mask;
            out->z2.v[i] |= multiples[k].z2.v[i] & mask;
            out->t2d.v[i] |= multiples[k].t2d.v[i] & mask;
        }
    }
    negate_addend(out, &d.negative);
}

#ifdef CX_LANES_EMULATED
static inline void lookup_slots(lanes *out, const lanes *table, const lanes *slots)
{
    for (size_t i = 0; i < CX_KEY_LANES; i++)
        (*out)[i] = (*table)[(*slots)[i] & 7];
}
#else
#define lookup_slots(out, table, slots) \
    (*(out) = (lanes)_mm512_permutexvar_epi64((__m512i) * (slots), (__m512i) * (table)))
#endif

/* digit·B; slot 7 is looked at for 0 and taken back. */
CX_LANES_KERNEL static void pick_base(const int8_t digits[CX_KEY_LANES], addend *out)
{
    digit d;
    read_digit(digits, &d);
    lanes none = (lanes)(d.size == 0), slots = d.size - 1;
    field_set_small(&out->z2, 2);
    for (size_t i = 0; i < 5; i++) {
        lookup_slots(&out->plus.v[i], &base.plus[i], &slots);
        lookup_slots(&out->minus.v[i], &base.minus[i], &slots);
        lookup_slots(&out->t2d.v[i], &base.t2d[i], &slots);
        out->plus.v[i] &= ~none;
        out->minus.v[i] &= ~none;
        out->t2d.v[i] &= ~none;
    }
    out->plus.v[0] |= none & 1;
    out->minus.v[0] |= none & 1;
    negate_addend(out, &d.negative);
}

/* --- the equation -------------------------------------------------------------------------- */

CX_LANES_KERNEL static void combine_points(const cx_ed25519_eight *in, const point *a, point *out)
{
    addend multiples[MULTIPLES], picked;
    make_multiples(a, multiples);
    set_neutral(out);
    for (size_t i = DIGITS; i-- > 0;) {
        if (i != DIGITS - 1)
            for (unsigned k = 0; k < 4; k++)
                double_point(out, k == 3);
        pick_multiple(multiples, in->challenge[i], &picked);
        add_to_point(out, &picked, true);
        pick_base(in->response[i], &picked);
        add_to_point(out, &picked, false);
    }
}

/* All ones where the point is encoded as R (RFC 8032 §5.1.2). */
CX_LANES_KERNEL static void compare_encoded(const point *p, const lanes expected[4], lanes *out)
{
    field x, y, scale;
    lanes words[4];
    field_invert(&scale, &p->z);
    field_multiply(&x, &p->x, &scale);
    field_multiply(&y, &p->y, &scale);
    field_freeze(&x);
    field_freeze(&y);
    field_write(&y, words);
    words[3] |= x.v[0] << 63;
    lanes differs = {0};
    for (size_t i = 0; i < 4; i++)
        differs |= words[i] ^ expected[i];
    *out = (lanes)(differs == 0);
}

CX_LANES_KERNEL unsigned cx_ed25519_avx512(const cx_ed25519_eight *in)
{
    CX_ASSERT(pthread_once(&base_once, make_base) == 0);
    lanes keys[4], points[4], good, equal;
    point a, sum;
    memcpy(keys, in->keys, sizeof keys);
    memcpy(points, in->points, sizeof points);
    decode_negated(&a, keys, &good);
    combine_points(in, &a, &sum);
    compare_encoded(&sum, points, &equal);
    unsigned found = 0;
    for (size_t i = 0; i < CX_KEY_LANES; i++)
        found |= (unsigned)((good[i] & equal[i]) >> 63) << i;
    return found;
}

#endif
