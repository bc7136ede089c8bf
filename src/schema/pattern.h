/*
 * pattern.h - regular expressions of ECMA-262, as JSON Schema's "pattern" wants them: Unicode, an
 * unanchored search, `$` only at the very end, ASCII `\d` and `\w`.
 *
 * PCRE2 does the matching, but of patterns that need no search (pattern_plain.h); it is loaded when
 * the first that needs it is compiled.  A pattern is translated first, so nothing that only PCRE2
 * knows gets through, and what both spell alike but mean differently means what ECMA-262 says.
 * docs/formats/schema.md lists what is left.
 */
#ifndef CX_SCHEMA_PATTERN_H
#define CX_SCHEMA_PATTERN_H

#include "base/api.h"

/* Bytes of a pattern. */
#define CX_PATTERN_BYTES_MAX 16384

typedef struct cx_pattern cx_pattern;

/*
 * CX_E_SYNTAX when it is no pattern, with its offset; CX_E_UNSUPPORTED when it is one that cannot
 * be had here, or PCRE2 is not installed; CX_E_LIMIT when it is too long.
 */
CX_RESULT cx_pattern_compile(cx_str pattern, const cx_alloc *alloc, cx_pattern **out, cx_err *err);
void cx_pattern_close(cx_pattern *pattern);

/*
 * Whether it is found anywhere in `text` (UTF-8; lone surrogates as in utf8.h count as U+FFFD). Any
 * number of threads.  CX_E_LIMIT when the search takes too long: then there is no answer.
 */
CX_RESULT cx_pattern_match(const cx_pattern *pattern, cx_str text, bool *out, cx_err *err);

/* The same pattern as PCRE2 spells it, appended; the errors of cx_pattern_compile but for the
 * library's. */
CX_RESULT cx_pattern_translate(cx_str pattern, cx_buf *out, cx_err *err);

/*
 * What cx_pattern_translate made, as PCRE2 before 10.40 spells it, appended: `\p{Greek}` meant the
 * script there.  CX_E_UNSUPPORTED for `\p{Script_Extensions=..}`, which it does not have.
 */
CX_RESULT cx_pattern_spell_older(cx_str translated, cx_buf *out, cx_err *err);

#endif
