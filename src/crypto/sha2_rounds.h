/*
 * sha2_rounds.h - the rounds of SHA-256 and SHA-512 over vectors, which differ in their word and
 * its turns alone (FIPS 180-4 §6.2.2, §6.4.2).
 *
 * Who includes this has a type `lanes`, TERNARY with its tables, BIG_SIGMA_0 and _1, SMALL_SIGMA_0
 * and _1; where rounds are used, vectors a to h, w[16], and WK(i): word and constant of round i,
 * added.
 */
#ifndef CX_CRYPTO_SHA2_ROUNDS_H
#define CX_CRYPTO_SHA2_ROUNDS_H

/* CX_SHUFFLE(a, b, ...): a vector of the elements with these numbers, those of `b` counted on from
 * those of `a`.  gcc 11 and older have their own form of it. */
#if __has_builtin(__builtin_shufflevector)
#define CX_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CX_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

/*
 * The state is a..h by name, so that a round renames instead of moving.
 *
 * What comes last is added last: from e to the next e, and from a to the next a, are three
 * operations each (turn, exclusive or, add), and all other sums are ready before.  That is two
 * additions more than FIPS 180-4 writes down and a third less time, as long as the compiler leaves
 * the order alone (CMakeLists.txt says so to gcc).
 */
#define ROUND(a, b, c, d, e, f, g, h, wk)                                    \
    do {                                                                     \
        lanes given_ = (h) + (wk), chosen_ = TERNARY(e, f, g, TABLE_CHOOSE); \
        lanes most_ = TERNARY(a, b, c, TABLE_MAJORITY);                      \
        lanes turned_ = BIG_SIGMA_1(e);                                      \
        lanes early_e_ = (d) + given_;                                       \
        lanes early_a_ = given_ + chosen_;                                   \
        early_e_ += chosen_;                                                 \
        early_a_ += most_;                                                   \
        early_a_ += turned_;                                                 \
        (d) = early_e_ + turned_;                                            \
        (h) = early_a_ + BIG_SIGMA_0(a);                                     \
    } while (0)

#define EIGHT_ROUNDS(first)                           \
    do {                                              \
        ROUND(a, b, c, d, e, f, g, h, WK(first));     \
        ROUND(h, a, b, c, d, e, f, g, WK(first + 1)); \
        ROUND(g, h, a, b, c, d, e, f, WK(first + 2)); \
        ROUND(f, g, h, a, b, c, d, e, WK(first + 3)); \
        ROUND(e, f, g, h, a, b, c, d, WK(first + 4)); \
        ROUND(d, e, f, g, h, a, b, c, WK(first + 5)); \
        ROUND(c, d, e, f, g, h, a, b, WK(first + 6)); \
        ROUND(b, c, d, e, f, g, h, a, WK(first + 7)); \
    } while (0)

/* The next sixteen words, one after the other. */
#define EXPAND(i) \
    (w[i] +=      \
     SMALL_SIGMA_0(w[((i) + 1) & 15]) + w[((i) + 9) & 15] + SMALL_SIGMA_1(w[((i) + 14) & 15]))

#endif
