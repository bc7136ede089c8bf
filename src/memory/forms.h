/*
 * forms.h - the short and medium form of a memory (ledger.md §4.2).  Forms are part of the Head,
 * whose hash is anchored, so every byte of them is fixed.
 *
 * Pure; thread-safe; nothing depends on the locale or on how a C library rounds.
 */
#ifndef CX_MEMORY_FORMS_H
#define CX_MEMORY_FORMS_H

#include "memory/type.h"

#define CX_FORM_SHORT_TOKENS 50
#define CX_FORM_MEDIUM_TOKENS 200

/* ceil(bytes / 4). */
static inline uint64_t cx_tokens_of(cx_str text)
{
    return (uint64_t)text.size / 4 + (text.size % 4 != 0);
}

/* The text, or its longest prefix of whole characters that leaves space for an ellipsis. */
void cx_tokens_truncate(cx_str text, size_t max_tokens, cx_buf *out);

/* The medium form before truncation: the text that is embedded. */
void cx_forms_full(const cx_data *data, cx_buf *out);
/* Both forms, truncated; text from the arena. */
CX_RESULT cx_forms_render(const cx_data *data, cx_arena *arena, cx_forms *out, cx_err *err);
/* A caller's own forms: CX_E_LIMIT "FormTooLong", CX_E_USAGE "InvalidArgument" (not UTF-8). */
CX_RESULT cx_forms_check(const cx_forms *forms, cx_err *err);

/* --- the parts, as the format spells them ---------------------------------------------------- */

/* "2023-11-14T22:13:20Z"; years beyond four digits are written out. */
void cx_form_time(int64_t seconds, cx_buf *out);
/* Parses it; also with a fraction (rounded down) and a numeric zone.  False when it is not a time.
 */
bool cx_form_parse_time(cx_str text, int64_t *out_seconds);
/* "1m30s", "1.5s", "100ms", "0s", "-1h0m0s". */
void cx_form_duration(int64_t nanoseconds, cx_buf *out);
bool cx_form_parse_duration(cx_str text, int64_t *out_nanoseconds);
/* printf's %.2f, half to even on the exact value; "NaN", "+Inf", "-Inf". */
void cx_form_fixed2(float value, cx_buf *out);

#endif
