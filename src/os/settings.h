/*
 * settings.h - settings files: a small, exact subset of TOML 1.0, which every TOML parser reads.
 *
 *     # a comment
 *     home = "/srv/cortex"        text: "..." with escapes, or '...' without
 *
 *     [serve]
 *     workers = 8                 an integer, at least 0
 *     insecure = false
 *     forms = ["B", "H"]          texts, on one line or several
 *
 * No dotted keys, inline tables, dates, fractions, multi-line texts: anything not listed here is an
 * error that names line and column.
 */
#ifndef CX_OS_SETTINGS_H
#define CX_OS_SETTINGS_H

#include "base/api.h"

#define CX_SETTINGS_BYTES_MAX ((size_t)64 << 10)
#define CX_SETTINGS_MAX 1000     /* in one file */
#define CX_SETTING_TEXTS_MAX 256 /* in one list */
#define CX_SETTING_NAME_MAX 64   /* bytes of a section's or a setting's name */

typedef enum cx_setting_kind {
    CX_SETTING_TEXT,
    CX_SETTING_NUMBER, /* its decimal digits */
    CX_SETTING_FLAG,   /* "true" or "false" */
    CX_SETTING_TEXTS
} cx_setting_kind;

typedef struct cx_setting {
    cx_str section; /* "" = before the first header */
    cx_str name;
    cx_setting_kind kind;
    const char *const *values; /* each terminated, without U+0000 */
    size_t value_count;        /* 1 unless TEXTS */
    unsigned line, column;     /* of the name, from 1; columns are bytes */
} cx_setting;

/*
 * Reads all settings, in the order of the file; texts are in the arena.  CX_E_FORMAT says where
 * ("line 3, column 9: .."), what was found and what was expected.
 */
CX_RESULT cx_settings_read(cx_str text, cx_arena *arena, const cx_setting **out, size_t *out_count,
                           cx_err *err);

#endif
