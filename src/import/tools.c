/*
 * tools.c - helpers of all formats: exact times, digests, copies without some members.
 */
#include "import/internal.h"

#include "base/api.h"
#include "crypto/api.h"

#define NS_PER_SECOND 1000000000

/* --- times (§1.9) -------------------------------------------------------------------------- */

/* Exactly `count` digits from *at; false and *at unmoved when there are fewer. */
static bool parse_digits(const char **at, const char *end, int count, int *out)
{
    int value = 0;
    if (end - *at < count)
        return false;
    for (int i = 0; i < count; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *at += count;
    *out = value;
    return true;
}

static bool parse_char(const char **at, const char *end, char wanted)
{
    if (*at == end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

static bool parse_date(const char **at, const char *end, int64_t *out_days)
{
    int year, month, day;
    if (!parse_digits(at, end, 4, &year) || !parse_char(at, end, '-') ||
        !parse_digits(at, end, 2, &month) || !parse_char(at, end, '-') ||
        !parse_digits(at, end, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > (int)cx_civil_days_in(year, (unsigned)month))
        return false;
    *out_days = cx_civil_days((cx_civil){year, (unsigned)month, (unsigned)day});
    return true;
}

/* Digits after the point as nanoseconds; more than nine only when the others are zeros. */
static bool parse_fraction(const char **at, const char *end, int64_t *out_ns)
{
    int digits = 0;
    int64_t ns = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++, digits++) {
        if (digits < 9)
            ns = ns * 10 + (**at - '0');
        else if (**at != '0')
            return false;
    }
    if (digits == 0)
        return false;
    for (; digits < 9; digits++)
        ns *= 10;
    *out_ns = ns;
    return true;
}

/* HH:MM[:SS[.fraction]]; a leap second counts as the second after it. */
static bool parse_clock(const char **at, const char *end, int64_t *out_seconds, int64_t *out_ns)
{
    int hour, minute, second = 0;
    *out_ns = 0;
    if (!parse_digits(at, end, 2, &hour) || !parse_char(at, end, ':') ||
        !parse_digits(at, end, 2, &minute))
        return false;
    if (parse_char(at, end, ':')) {
        if (!parse_digits(at, end, 2, &second))
            return false;
        if ((parse_char(at, end, '.') || parse_char(at, end, ',')) &&
            !parse_fraction(at, end, out_ns))
            return false;
    }
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    *out_seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/* Z, +HH:MM, +HHMM, +HH or nothing, which is UTC. */
static bool parse_offset(const char **at, const char *end, int64_t *out_seconds)
{
    int hour, minute = 0, sign = 1;
    *out_seconds = 0;
    if (*at == end || parse_char(at, end, 'Z') || parse_char(at, end, 'z'))
        return true;
    if (parse_char(at, end, '-'))
        sign = -1;
    else if (!parse_char(at, end, '+'))
        return false;
    if (!parse_digits(at, end, 2, &hour))
        return false;
    bool colon = parse_char(at, end, ':');
    if ((colon || *at < end) && !parse_digits(at, end, 2, &minute))
        return false;
    if (hour > 23 || minute > 59)
        return false;
    *out_seconds = sign * (hour * 3600 + minute * 60);
    return true;
}

bool cx_import_time_iso(cx_str text, int64_t *out_ns)
{
    const char *at = text.data, *end = text.data + text.size;
    int64_t days, seconds, fraction, offset, total;
    if (text.size == 0 || !parse_date(&at, end, &days))
        return false;
    if (!parse_char(&at, end, 'T') && !parse_char(&at, end, 't') && !parse_char(&at, end, ' '))
        return false;
    if (!parse_clock(&at, end, &seconds, &fraction) || !parse_offset(&at, end, &offset) ||
        at != end)
        return false;
    /* Before 1970 the seconds are negative and the fraction still counts upwards: the product of
     * the whole seconds may pass the range although the sum does not, by less than a second. */
    seconds += days * 86400 - offset;
    if (__builtin_mul_overflow(seconds, (int64_t)NS_PER_SECOND, &total) ||
        __builtin_add_overflow(total, fraction, &total))
        return false;
    *out_ns = total;
    return true;
}

void cx_import_set_iso(cx_import_record *record, const cx_json *value)
{
    if (value == NULL || value->type == CX_JSON_NULL)
        return;
    record->has_time =
        value->type == CX_JSON_STRING && cx_import_time_iso(cx_json_text(value), &record->t_ns);
    record->time_bad = !record->has_time;
}

static bool parse_int64(cx_str text, int64_t *out)
{
    const char *at = text.data, *end = text.data + text.size;
    bool negative = text.size != 0 && *at == '-';
    int64_t value = 0;
    at += negative;
    if (text.size == 0 || at == end)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, (int64_t)10, &value))
            return false;
        int64_t digit = *at - '0';
        if (__builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *out = value;
    return true;
}

void cx_import_set_ticks(cx_import_record *record, const cx_json *value, int64_t unit_ns)
{
    int64_t ticks;
    if (value == NULL || value->type == CX_JSON_NULL)
        return;
    if (value->type == CX_JSON_STRING && value->count == 0)
        return;
    bool whole = value->type == CX_JSON_INT || value->type == CX_JSON_STRING;
    record->has_time = whole && parse_int64(cx_json_text(value), &ticks) &&
                       !__builtin_mul_overflow(ticks, unit_ns, &record->t_ns);
    record->time_bad = !record->has_time;
}

/* --- values -------------------------------------------------------------------------------- */

cx_status cx_import_digest(const cx_json *value, cx_buf *scratch, char out[16], cx_err *err)
{
    cx_bytes text;
    if (value->type == CX_JSON_STRING && (value->flags & CX_JSON_SURROGATE) == 0) {
        text = cx_str_bytes(cx_json_text(value));
    } else {
        cx_buf_clear(scratch);
        CX_TRY(cx_json_write(scratch, value, CX_JSON_PY_COMPACT, err));
        CX_TRY(cx_buf_check(scratch, err));
        text = cx_buf_bytes(scratch);
    }
    const cx_digest digest = cx_digest_of(text);
    cx_hex_encode(cx_bytes_from(digest.bytes, 8), out);
    return CX_SUCCESS;
}

bool cx_import_is_one_of(cx_str name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (cx_str_is(name, *names))
            return true;
    }
    return false;
}

cx_status cx_import_without(const cx_json *object, const char *const *names, cx_arena *arena,
                            cx_json *out, cx_err *err)
{
    if (object->type != CX_JSON_OBJECT) {
        *out = *object;
        return CX_SUCCESS;
    }
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < object->count; i++) {
        const cx_json_member *member = &object->members[i];
        if (!cx_import_is_one_of(cx_json_text(&member->name), names))
            cx_json_list_put(&list, cx_json_text(&member->name), member->value);
    }
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_import_shape(cx_err *err, const char *expected)
{
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "found a document of another shape, expected %s", expected);
}

bool cx_import_has_parts(const cx_json *record)
{
    const cx_json *message = cx_json_get_typed(record, CX_STR("message"), CX_JSON_OBJECT);
    return message != NULL && cx_json_get_typed(message, CX_STR("parts"), CX_JSON_ARRAY) != NULL;
}
