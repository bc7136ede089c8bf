/*
 * schema_format.c - the values of "format" that are known, each by its own document.
 *
 * All of them are grammars over bytes; text beyond ASCII is only taken where the format says so.
 */
#include "schema/schema_internal.h"

/* What is left to read. */
typedef struct rest {
    const char *at, *end;
} rest;

static rest rest_of(cx_str text)
{
    return (rest){text.size == 0 ? "" : text.data, text.size == 0 ? "" : text.data + text.size};
}

static size_t bytes_left(const rest *r)
{
    return (size_t)(r->end - r->at);
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}
static bool is_alpha(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}
static bool is_hex(char byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
static bool is_one_of(char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte) != NULL;
}

static bool accept_any_of(rest *r, const char *any_of)
{
    if (r->at == r->end || !is_one_of(*r->at, any_of))
        return false;
    r->at++;
    return true;
}

/* Exactly `count` digits. */
static bool read_digits(rest *r, unsigned count, unsigned *out)
{
    unsigned value = 0;
    if (bytes_left(r) < count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (!is_digit(r->at[i]))
            return false;
        value = value * 10 + (unsigned)(r->at[i] - '0');
    }
    r->at += count;
    *out = value;
    return true;
}

/* One or more digits. */
static bool read_number(rest *r)
{
    const char *start = r->at;
    while (r->at < r->end && is_digit(*r->at))
        r->at++;
    return r->at > start;
}

/* --- times: RFC 3339 §5.6, appendix A --------------------------------------------------------- */

static bool read_date(rest *r)
{
    static const uint8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned year, month, day;
    if (!read_digits(r, 4, &year) || !accept_any_of(r, "-") || !read_digits(r, 2, &month) ||
        !accept_any_of(r, "-") || !read_digits(r, 2, &day) || month < 1 || month > 12)
        return false;
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= DAYS[month - 1] + (month == 2 && is_leap ? 1u : 0u);
}

static bool read_time(rest *r)
{
    unsigned hour, minute, second, offset_hour = 0, offset_minute = 0;
    bool is_ahead = false;
    if (!read_digits(r, 2, &hour) || !accept_any_of(r, ":") || !read_digits(r, 2, &minute) ||
        !accept_any_of(r, ":") || !read_digits(r, 2, &second))
        return false;
    if (accept_any_of(r, ".") && !read_number(r))
        return false;
    if (!accept_any_of(r, "Zz")) {
        is_ahead = r->at < r->end && *r->at == '+';
        if (!accept_any_of(r, "+-") || !read_digits(r, 2, &offset_hour) || !accept_any_of(r, ":") ||
            !read_digits(r, 2, &offset_minute))
            return false;
    }
    if (hour > 23 || minute > 59 || second > 60 || offset_hour > 23 || offset_minute > 59)
        return false;
    if (second < 60)
        return true;
    /* A leap second is the last of a day of UTC. */
    unsigned now = hour * 60 + minute, offset = offset_hour * 60 + offset_minute, day = 24 * 60;
    return (is_ahead ? now + day - offset : now + offset) % day == day - 1;
}

static bool is_date(cx_str text)
{
    rest r = rest_of(text);
    return read_date(&r) && r.at == r.end;
}

static bool is_time(cx_str text)
{
    rest r = rest_of(text);
    return read_time(&r) && r.at == r.end;
}

static bool is_date_time(cx_str text)
{
    rest r = rest_of(text);
    return read_date(&r) && accept_any_of(&r, "Tt") && read_time(&r) && r.at == r.end;
}

/* Numbers with units that follow each other without a gap: "YMD" of P1Y2M but not of P1Y2D. */
static bool read_units(rest *r, const char *units)
{
    const char *next = NULL;
    while (r->at < r->end && is_digit(*r->at)) {
        (void)read_number(r);
        const char *unit = r->at == r->end || *r->at == '\0' ? NULL : strchr(units, *r->at);
        if (unit == NULL || (next != NULL && unit != next))
            return false;
        next = unit + 1;
        r->at++;
    }
    return next != NULL;
}

static bool is_duration(cx_str text)
{
    rest r = rest_of(text);
    if (!accept_any_of(&r, "P"))
        return false;
    rest weeks = r;
    if (read_number(&weeks) && accept_any_of(&weeks, "W"))
        return weeks.at == weeks.end;
    bool has_date = r.at < r.end && *r.at != 'T';
    if (has_date && !read_units(&r, "YMD"))
        return false;
    if (accept_any_of(&r, "T"))
        return read_units(&r, "HMS") && r.at == r.end;
    return has_date && r.at == r.end;
}

/* --- addresses -------------------------------------------------------------------------------- */

static bool is_ipv4(cx_str text)
{
    rest r = rest_of(text);
    for (unsigned part = 0; part < 4; part++) {
        const char *start = r.at;
        unsigned value = 0;
        if (part > 0 && !accept_any_of(&r, "."))
            return false;
        start = r.at;
        while (r.at < r.end && is_digit(*r.at) && r.at - start < 4)
            value = value * 10 + (unsigned)(*r.at++ - '0');
        if (r.at == start || value > 255 || (*start == '0' && r.at - start > 1))
            return false;
    }
    return r.at == r.end;
}

/* RFC 4291 §2.2. */
static bool is_ipv6(cx_str text)
{
    rest r = rest_of(text);
    unsigned groups = 0;
    bool gap = false, need_group = true;
    if (bytes_left(&r) >= 2 && r.at[0] == ':') {
        if (r.at[1] != ':')
            return false;
        r.at += 2;
        gap = true;
        need_group = false;
    }
    while (r.at < r.end) {
        const char *start = r.at;
        while (r.at < r.end && is_hex(*r.at))
            r.at++;
        size_t digits = (size_t)(r.at - start);
        if (r.at < r.end && *r.at == '.') {
            groups += 2;
            return is_ipv4(cx_str_from(start, (size_t)(r.end - start))) &&
                   (gap ? groups < 8 : groups == 8);
        }
        if (digits == 0 || digits > 4 || ++groups > 8)
            return false;
        need_group = false;
        if (r.at == r.end)
            break;
        if (!accept_any_of(&r, ":"))
            return false;
        need_group = true;
        if (accept_any_of(&r, ":")) {
            if (gap)
                return false;
            gap = true;
            need_group = false;
        }
    }
    return !need_group && (gap ? groups < 8 : groups == 8);
}

/* RFC 1123 §2.1, RFC 5891 §4.2.3.1: "--" in third and fourth place is for A-labels only. */
static bool is_label(cx_str label)
{
    if (label.size == 0 || label.size > 63 || label.data[0] == '-' ||
        label.data[label.size - 1] == '-')
        return false;
    for (size_t i = 0; i < label.size; i++)
        if (!is_alpha(label.data[i]) && !is_digit(label.data[i]) && label.data[i] != '-')
            return false;
    if (label.size < 4 || label.data[2] != '-' || label.data[3] != '-')
        return true;
    return (label.data[0] | 32) == 'x' && (label.data[1] | 32) == 'n' && label.size > 4;
}

static bool is_hostname(cx_str text)
{
    size_t start = 0;
    if (text.size == 0 || text.size > 253)
        return false;
    for (size_t i = 0; i <= text.size; i++)
        if (i == text.size || text.data[i] == '.') {
            if (!is_label(cx_str_from(text.data + start, i - start)))
                return false;
            start = i + 1;
        }
    return true;
}

/* RFC 5321 §4.1.2, the quoted form too; with `wide`, RFC 6531's characters. */
static bool is_local_part(cx_str text, bool wide)
{
    bool is_quoted = text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"';
    if (text.size == 0 || text.size > 64)
        return false;
    if (is_quoted) {
        for (size_t i = 1; i + 1 < text.size; i++) {
            uint8_t byte = (uint8_t)text.data[i];
            if (byte == '\\' && ++i + 1 >= text.size)
                return false;
            if (byte < 0x20 || byte == 0x7F || byte == '"' || (byte >= 0x80 && !wide))
                return false;
        }
        return true;
    }
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        bool is_dot = byte == '.' && i > 0 && i + 1 < text.size && text.data[i - 1] != '.';
        bool is_wide = wide && (uint8_t)byte >= 0x80;
        if (!is_alpha(byte) && !is_digit(byte) && !is_dot && !is_wide &&
            !is_one_of(byte, "!#$%&'*+-/=?^_`{|}~"))
            return false;
    }
    return true;
}

static bool is_mailbox(cx_str text, bool wide)
{
    size_t at = text.size;
    while (at > 0 && text.data[at - 1] != '@')
        at--;
    if (at == 0 || !is_local_part(cx_str_from(text.data, at - 1), wide))
        return false;
    cx_str domain = cx_str_from(text.data + at, text.size - at);
    if (domain.size > 2 && domain.data[0] == '[' && domain.data[domain.size - 1] == ']') {
        cx_str inside = cx_str_from(domain.data + 1, domain.size - 2);
        if (cx_str_starts(inside, CX_STR("IPv6:")))
            return is_ipv6(cx_str_from(inside.data + 5, inside.size - 5));
        return is_ipv4(inside);
    }
    if (!wide)
        return is_hostname(domain);
    for (size_t i = 0; i < domain.size; i++)
        if ((uint8_t)domain.data[i] >= 0x80)
            return true;
    return is_hostname(domain);
}

static bool is_email(cx_str text)
{
    return is_mailbox(text, false);
}
static bool is_idn_email(cx_str text)
{
    return is_mailbox(text, true);
}

/* --- URIs: RFC 3986, RFC 3987 ----------------------------------------------------------------- */

/* Characters of `more`, unreserved, sub-delims and percent-encoded ones; `wide`: beyond ASCII too.
 */
static bool are_characters(cx_str text, const char *more, bool wide)
{
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            if (i + 2 >= text.size || !is_hex(text.data[i + 1]) || !is_hex(text.data[i + 2]))
                return false;
            i += 2;
        } else if (!is_alpha(byte) && !is_digit(byte) && !is_one_of(byte, "-._~!$&'()*+,;=") &&
                   !is_one_of(byte, more) && !(wide && (uint8_t)byte >= 0x80)) {
            return false;
        }
    }
    return true;
}

static bool is_authority(cx_str text, bool wide)
{
    size_t at = 0;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '@')
            at = i + 1;
    if (at != 0 && !are_characters(cx_str_from(text.data, at - 1), ":", wide))
        return false;
    size_t end = text.size;
    while (end > at && is_digit(text.data[end - 1]))
        end--;
    bool has_port = end > at && text.data[end - 1] == ':';
    cx_str host = cx_str_from(text.data + at, (has_port ? end - 1 : text.size) - at);
    if (host.size == 0 || host.data[0] != '[')
        return are_characters(host, "", wide);
    if (host.data[host.size - 1] != ']')
        return false;
    cx_str inside = cx_str_from(host.data + 1, host.size - 2);
    if (inside.size > 2 && (inside.data[0] | 32) == 'v') {
        const char *dot = memchr(inside.data, '.', inside.size);
        return dot != NULL && is_hex(inside.data[1]) &&
               are_characters(cx_str_from(dot, (size_t)(inside.data + inside.size - dot)), ":",
                              false);
    }
    return is_ipv6(inside);
}

static size_t find_stop(cx_str text, size_t from, const char *stops)
{
    while (from < text.size && !is_one_of(text.data[from], stops))
        from++;
    return from;
}

static bool is_reference(cx_str text, bool needs_scheme, bool wide)
{
    size_t at = 0, colon = find_stop(text, 0, ":/?#");
    bool has_scheme = colon < text.size && text.data[colon] == ':';
    if (has_scheme) {
        for (size_t i = 0; i < colon; i++)
            if (!is_alpha(text.data[i]) &&
                (i == 0 || (!is_digit(text.data[i]) && !is_one_of(text.data[i], "+-."))))
                return false;
        if (colon == 0)
            return false;
        at = colon + 1;
    } else if (needs_scheme) {
        return false;
    }
    if (text.size - at >= 2 && text.data[at] == '/' && text.data[at + 1] == '/') {
        size_t end = find_stop(text, at + 2, "/?#");
        if (!is_authority(cx_str_from(text.data + at + 2, end - at - 2), wide))
            return false;
        at = end;
    }
    size_t end = find_stop(text, at, "?#");
    if (!are_characters(cx_str_from(text.data + at, end - at), ":@/", wide))
        return false;
    at = end;
    if (at < text.size && text.data[at] == '?') {
        end = find_stop(text, at, "#");
        if (!are_characters(cx_str_from(text.data + at + 1, end - at - 1), ":@/?", wide))
            return false;
        at = end;
    }
    return at >= text.size ||
           are_characters(cx_str_from(text.data + at + 1, text.size - at - 1), ":@/?", wide);
}

static bool is_uri(cx_str text)
{
    return is_reference(text, true, false);
}
static bool is_uri_reference(cx_str text)
{
    return is_reference(text, false, false);
}
static bool is_iri(cx_str text)
{
    return is_reference(text, true, true);
}
static bool is_iri_reference(cx_str text)
{
    return is_reference(text, false, true);
}

/* One expression of RFC 6570 §2.2, between its braces. */
static bool is_expression(cx_str text)
{
    rest r = rest_of(text);
    (void)accept_any_of(&r, "+#./;?&=,!@|");
    for (;;) {
        const char *start = r.at;
        while (r.at < r.end && (is_alpha(*r.at) || is_digit(*r.at) || is_one_of(*r.at, "_.%"))) {
            if (*r.at == '.' && (r.at == start || r.at + 1 == r.end))
                return false;
            if (*r.at == '%' && (bytes_left(&r) < 3 || !is_hex(r.at[1]) || !is_hex(r.at[2])))
                return false;
            r.at++;
        }
        if (r.at == start)
            return false;
        if (accept_any_of(&r, ":")) {
            start = r.at;
            if (!read_number(&r) || *start == '0' || r.at - start > 4)
                return false;
        } else {
            (void)accept_any_of(&r, "*");
        }
        if (r.at == r.end)
            return true;
        if (!accept_any_of(&r, ","))
            return false;
    }
}

static bool is_uri_template(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '{') {
            size_t end = find_stop(text, i, "}");
            if (end == text.size || !is_expression(cx_str_from(text.data + i + 1, end - i - 1)))
                return false;
            i = end;
        } else if (byte == '%') {
            if (i + 2 >= text.size || !is_hex(text.data[i + 1]) || !is_hex(text.data[i + 2]))
                return false;
        } else if ((uint8_t)byte <= 0x20 || byte == 0x7F || is_one_of(byte, "\"'<>\\^`|}")) {
            return false;
        }
    }
    return true;
}

/* --- the others ------------------------------------------------------------------------------- */

static bool is_uuid(cx_str text)
{
    if (text.size != 36)
        return false;
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text.data[i] != '-' : !is_hex(text.data[i]))
            return false;
    }
    return true;
}

static bool is_json_pointer(cx_str text)
{
    if (text.size != 0 && text.data[0] != '/')
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '~' &&
            (i + 1 == text.size || (text.data[i + 1] != '0' && text.data[i + 1] != '1')))
            return false;
    return true;
}

static bool is_relative_json_pointer(cx_str text)
{
    rest r = rest_of(text);
    const char *start = r.at;
    if (!read_number(&r) || (*start == '0' && r.at - start > 1))
        return false;
    if (bytes_left(&r) == 1 && *r.at == '#')
        return true;
    return is_json_pointer(cx_str_from(r.at, bytes_left(&r)));
}

static const struct {
    const char *name;
    bool (*holds)(cx_str text); /* NULL: a pattern */
} FORMATS[] = {
    {"date-time", is_date_time},
    {"date", is_date},
    {"time", is_time},
    {"duration", is_duration},
    {"email", is_email},
    {"idn-email", is_idn_email},
    {"hostname", is_hostname},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"uri", is_uri},
    {"uri-reference", is_uri_reference},
    {"iri", is_iri},
    {"iri-reference", is_iri_reference},
    {"uri-template", is_uri_template},
    {"uuid", is_uuid},
    {"json-pointer", is_json_pointer},
    {"relative-json-pointer", is_relative_json_pointer},
    {"regex", NULL},
};

int schema_format_find(cx_str name)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (cx_str_is(name, FORMATS[i].name))
            return (int)i;
    return -1;
}

bool schema_format_is_date_time(int format)
{
    return format == 0;
}

cx_status schema_format_holds(int format, cx_str text, bool *out, cx_err *err)
{
    if (FORMATS[format].holds != NULL) {
        *out = FORMATS[format].holds(text);
        return CX_SUCCESS;
    }
    cx_buf ignored;
    cx_buf_init(&ignored, cx_alloc_default());
    cx_status status = cx_pattern_translate(text, &ignored, err);
    cx_buf_done(&ignored);
    /* A pattern that cannot be had here still is one. */
    if (status.code == CX_E_NOMEM || status.code == CX_E_LIMIT)
        return status;
    *out = status.code != CX_E_SYNTAX;
    return CX_SUCCESS;
}
