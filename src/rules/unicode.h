/*
 * unicode.h - normal form C and case folding with libutf8proc, which is loaded at the first text
 * that is not ASCII (docs/decisions/0007).
 */
#ifndef CX_RULES_UNICODE_H
#define CX_RULES_UNICODE_H

#include "base/api.h"

/* The most code points of one call; longer text is rejected. */
#define CX_UNICODE_CODES_MAX 4096

/* Loads the library; false when it is missing. Thread-safe. */
bool cx_unicode_ready(void);

/*
 * Decomposes `count` code points, folds their case if asked, composes them and writes UTF-8. False
 * when the result exceeds `capacity` or CX_UNICODE_CODES_MAX, or the library is missing.
 */
bool cx_unicode_compose(const int32_t *codes, size_t count, bool fold_case, char *out,
                        size_t capacity, size_t *out_size);

#endif
