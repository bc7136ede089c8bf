/*
 * unicode.h - normal form C and case folding, by libutf8proc, which is loaded when text that is not
 * ASCII is first met (docs/decisions/0007).
 */
#ifndef CX_RULES_UNICODE_H
#define CX_RULES_UNICODE_H

#include "base/api.h"

/* Code points that one call looks at; more is refused. */
#define CX_UNICODE_CODES_MAX 4096

/* Whether the library is there; loads it.  Thread-safe. */
bool cx_unicode_ready(void);

/*
 * `count` code points, decomposed, folded when asked for, and composed again, as UTF-8.  False when
 * it does not fit into `capacity` or CX_UNICODE_CODES_MAX, or the library is not there.
 */
bool cx_unicode_compose(const int32_t *codes, size_t count, bool fold_case, char *out,
                        size_t capacity, size_t *out_size);

#endif
