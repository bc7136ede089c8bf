/*
 * forms.c - short, medium and full form of each type (ledger.md §4.2), byte for byte.
 *
 *     short   a template of the required members
 *     medium  short, then " — " and the parts that are set, joined with ", "
 *
 * I1  forms rendered from valid UTF-8 are valid UTF-8 and within their token limit.
 */
#include "memory/forms.h"

#include <inttypes.h>

#include "base/api.h"

#define DASH " \xe2\x80\x94 "          /* U+2014 between spaces */
#define ELLIPSIS "\xe2\x80\xa6"        /* U+2026 */
#define NO_TIME "0001-01-01T00:00:00Z" /* how "no time" is spelled */

/* --- tokens ---------------------------------------------------------------------------------- */

/* The longest prefix of whole characters within `max` bytes.  A byte that starts no valid sequence
 * counts as one character. */
static size_t whole_char_prefix(cx_str text, size_t max)
{
    size_t at = 0;
    while (at < text.size) {
        size_t size = cx_utf8_sequence((const uint8_t *)text.data + at, text.size - at);
        if (size == 0)
            size = 1;
        if (size > max - at)
            break;
        at += size;
    }
    return at;
}

void cx_tokens_truncate(cx_str text, size_t max_tokens, cx_buf *out)
{
    cx_str ellipsis = CX_STR(ELLIPSIS);
    if (cx_tokens_of(text) <= max_tokens) {
        cx_buf_add_str(out, text);
        return;
    }
    /* The text is longer than max_tokens * 4, so the product does not overflow. */
    size_t max = max_tokens * 4;
    if (max <= ellipsis.size) {
        cx_buf_add(out, ellipsis.data, whole_char_prefix(ellipsis, max));
        return;
    }
    cx_buf_add(out, text.data, whole_char_prefix(text, max - ellipsis.size));
    cx_buf_add_str(out, ellipsis);
}

/* --- times ----------------------------------------------------------------------------------- */

void cx_form_time(int64_t seconds, cx_buf *out)
{
    cx_civil_time time = cx_civil_of_seconds(seconds);
    int64_t year = time.date.year;
    if (year < 0)
        cx_buf_add_byte(out, '-');
    cx_buf_printf(out, "%04" PRId64 "-%02u-%02uT%02u:%02u:%02uZ", year < 0 ? -year : year,
                  time.date.month, time.date.day, time.hour, time.minute, time.second);
}

/* `count` digits at *at; false when there are fewer. */
static bool parse_digits(cx_str text, size_t *at, size_t count, unsigned *out)
{
    unsigned value = 0;
    if (text.size - *at < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        char c = text.data[*at + i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (unsigned)(c - '0');
    }
    *at += count;
    *out = value;
    return true;
}

static bool parse_mark(cx_str text, size_t *at, char mark)
{
    if (*at >= text.size || text.data[*at] != mark)
        return false;
    *at += 1;
    return true;
}

static bool parse_date(cx_str text, size_t *at, int64_t *out_days)
{
    unsigned year, month, day;
    if (!parse_digits(text, at, 4, &year) || !parse_mark(text, at, '-') ||
        !parse_digits(text, at, 2, &month) || !parse_mark(text, at, '-') ||
        !parse_digits(text, at, 2, &day) || month < 1 || month > 12 || day < 1 ||
        day > cx_civil_days_in(year, month))
        return false;
    *out_days = cx_civil_days((cx_civil){year, month, day});
    return true;
}

/* "Z" or "+hh:mm": the seconds to subtract. */
static bool parse_zone(cx_str text, size_t *at, int64_t *out_seconds)
{
    unsigned hours, minutes;
    *out_seconds = 0;
    if (parse_mark(text, at, 'Z'))
        return true;
    bool west = *at < text.size && text.data[*at] == '-';
    if ((!west && !parse_mark(text, at, '+')) || (west && !parse_mark(text, at, '-')) ||
        !parse_digits(text, at, 2, &hours) || !parse_mark(text, at, ':') ||
        !parse_digits(text, at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *out_seconds = (int64_t)(hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return true;
}

bool cx_form_parse_time(cx_str text, int64_t *out_seconds)
{
    size_t at = 0;
    int64_t days, zone;
    unsigned hour, minute, second, digit;
    if (!parse_date(text, &at, &days) || !parse_mark(text, &at, 'T') ||
        !parse_digits(text, &at, 2, &hour) || !parse_mark(text, &at, ':') ||
        !parse_digits(text, &at, 2, &minute) || !parse_mark(text, &at, ':') ||
        !parse_digits(text, &at, 2, &second) || hour > 23 || minute > 59 || second > 59)
        return false;
    /* A fraction belongs to the named second, so dropping it rounds down. */
    if (parse_mark(text, &at, '.')) {
        if (!parse_digits(text, &at, 1, &digit))
            return false;
        while (parse_digits(text, &at, 1, &digit))
            ;
    }
    if (!parse_zone(text, &at, &zone) || at != text.size)
        return false;
    *out_seconds = days * CX_SECONDS_PER_DAY + (int64_t)(hour * 3600 + minute * 60 + second) - zone;
    return true;
}

/* --- durations ------------------------------------------------------------------------------- */

#define NS_US UINT64_C(1000)
#define NS_MS UINT64_C(1000000)
#define NS_S UINT64_C(1000000000)
#define NS_M (60 * NS_S)
#define NS_H (60 * NS_M)

/* value / unit with the fraction trimmed, then the unit's name. */
static void add_fraction(uint64_t value, uint64_t unit, const char *name, cx_buf *out)
{
    uint64_t rest = value % unit;
    cx_buf_add_u64(out, value / unit);
    if (rest != 0) {
        cx_buf_add_byte(out, '.');
        for (uint64_t digit = unit / 10; rest != 0; digit /= 10) {
            cx_buf_add_byte(out, (uint8_t)('0' + rest / digit));
            rest %= digit;
        }
    }
    cx_buf_add_z(out, name);
}

void cx_form_duration(int64_t nanoseconds, cx_buf *out)
{
    /* The magnitude of INT64_MIN fits only unsigned. */
    uint64_t value = nanoseconds < 0 ? 0 - (uint64_t)nanoseconds : (uint64_t)nanoseconds;
    if (nanoseconds < 0)
        cx_buf_add_byte(out, '-');
    if (value == 0) {
        cx_buf_add_z(out, "0s");
    } else if (value < NS_US) {
        add_fraction(value, 1, "ns", out);
    } else if (value < NS_MS) {
        add_fraction(value, NS_US, "\xc2\xb5s", out);
    } else if (value < NS_S) {
        add_fraction(value, NS_MS, "ms", out);
    } else {
        if (value >= NS_H)
            cx_buf_printf(out, "%" PRIu64 "h", value / NS_H);
        if (value >= NS_M)
            cx_buf_printf(out, "%" PRIu64 "m", value % NS_H / NS_M);
        add_fraction(value % NS_M, NS_S, "s", out);
    }
}

typedef struct duration_unit {
    const char *name;
    uint64_t ns;
} duration_unit;

/* Both signs for micro, and 'u'.  "ms" must come before "m". */
static const duration_unit duration_units[] = {
    {"ns", 1},     {"us", NS_US}, {"\xc2\xb5s", NS_US}, {"\xce\xbcs", NS_US},
    {"ms", NS_MS}, {"s", NS_S},   {"m", NS_M},          {"h", NS_H}};

static uint64_t parse_unit(cx_str *rest)
{
    for (size_t i = 0; i < CX_COUNT_OF(duration_units); i++) {
        cx_str name = cx_str_z(duration_units[i].name);
        if (cx_str_starts(*rest, name)) {
            *rest = cx_str_from(rest->data + name.size, rest->size - name.size);
            return duration_units[i].ns;
        }
    }
    return 0;
}

/* a + b * c, or false when that is more than 2^63. */
static bool add_product(uint64_t *a, uint64_t b, uint64_t c)
{
    const uint64_t max = UINT64_C(1) << 63;
    if (c != 0 && b > (max - *a) / c)
        return false;
    *a += b * c;
    return true;
}

static bool parse_duration_part(cx_str *rest, uint64_t *total)
{
    uint64_t whole = 0, fraction = 0, scale = 1;
    size_t at = 0, digits = 0;
    for (; at < rest->size && rest->data[at] >= '0' && rest->data[at] <= '9'; at++, digits++) {
        uint64_t next = (uint64_t)(rest->data[at] - '0');
        if (whole > (UINT64_MAX - next) / 10)
            return false;
        whole = whole * 10 + next;
    }
    if (digits != 0 && at < rest->size && rest->data[at] == '.') {
        size_t begin = ++at;
        for (; at < rest->size && rest->data[at] >= '0' && rest->data[at] <= '9'; at++) {
            if (scale >= NS_S * 100000) /* more digits than the largest unit has nanoseconds */
                return false;
            fraction = fraction * 10 + (uint64_t)(rest->data[at] - '0');
            scale *= 10;
        }
        if (at == begin)
            return false;
    }
    if (digits == 0)
        return false;
    *rest = cx_str_from(rest->data + at, rest->size - at);
    uint64_t unit = parse_unit(rest), gain = 0;
    /* Digits below a nanosecond cannot be stored, so they are refused. */
    for (; scale > 1 && fraction % 10 == 0; scale /= 10)
        fraction /= 10;
    if (unit == 0 ||
        (fraction != 0 && (fraction > UINT64_MAX / unit || fraction * unit % scale != 0)))
        return false;
    if (fraction != 0)
        gain = fraction * unit / scale;
    return add_product(total, whole, unit) && add_product(total, gain, 1);
}

bool cx_form_parse_duration(cx_str text, int64_t *out_nanoseconds)
{
    bool negative = text.size != 0 && text.data[0] == '-';
    cx_str rest = negative ? cx_str_from(text.data + 1, text.size - 1) : text;
    uint64_t total = 0;
    if (rest.size == 0)
        return false;
    while (rest.size != 0)
        if (!parse_duration_part(&rest, &total))
            return false;
    if (!negative && total > INT64_MAX)
        return false;
    *out_nanoseconds = negative ? (int64_t)(0 - total) : (int64_t)total;
    return true;
}

/* --- %.2f ------------------------------------------------------------------------------------ */

/* Decimal digits of mantissa * 2^exponent, exponent 0..104: 39 digits are enough for a float. */
static void add_large(uint32_t mantissa, unsigned exponent, cx_buf *out)
{
    uint8_t digits[40] = {0}; /* lowest first */
    size_t count = 0;
    for (; mantissa != 0; mantissa /= 10)
        digits[count++] = (uint8_t)(mantissa % 10);
    for (; exponent != 0; exponent--) {
        unsigned carry = 0;
        for (size_t i = 0; i < count; i++) {
            unsigned value = digits[i] * 2u + carry;
            digits[i] = (uint8_t)(value % 10);
            carry = value / 10;
        }
        if (carry != 0)
            digits[count++] = (uint8_t)carry;
    }
    while (count != 0)
        cx_buf_add_byte(out, (uint8_t)('0' + digits[--count]));
    cx_buf_add_z(out, ".00");
}

void cx_form_fixed2(float value, cx_buf *out)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t mantissa = bits & 0x7fffffu, field = bits >> 23 & 0xffu;
    bool negative = bits >> 31 != 0;
    if (field == 0xff) {
        cx_buf_add_z(out, mantissa != 0 ? "NaN" : negative ? "-Inf" : "+Inf");
        return;
    }
    int exponent = (field == 0 ? 1 : (int)field) - 150; /* value = mantissa * 2^exponent */
    mantissa |= field == 0 ? 0 : 0x800000u;
    if (negative)
        cx_buf_add_byte(out, '-');
    if (exponent >= 0) {
        add_large(mantissa, (unsigned)exponent, out);
        return;
    }
    /* Below 2^24 hundredths fit in 64 bits; the bits shifted out decide the rounding, half to
     * even. */
    unsigned shift = (unsigned)-exponent;
    uint64_t scaled = (uint64_t)mantissa * 100, cents = shift < 64 ? scaled >> shift : 0;
    uint64_t rest = shift < 64 ? scaled & ((UINT64_C(1) << shift) - 1) : scaled;
    uint64_t half = shift <= 64 ? UINT64_C(1) << (shift - 1) : UINT64_MAX;
    if (rest > half || (rest == half && (cents & 1) != 0))
        cents += 1;
    cx_buf_printf(out, "%" PRIu64 ".%02u", cents / 100, (unsigned)(cents % 100));
}

/* --- templates ------------------------------------------------------------------------------- */

/* {} texts, in order, around the literal parts. */
static void add3(cx_buf *out, cx_str a, const char *literal, cx_str b)
{
    cx_buf_add_str(out, a);
    cx_buf_add_z(out, literal);
    cx_buf_add_str(out, b);
}

static void short_event(const cx_data_event *event, cx_buf *out)
{
    add3(out, event->outcome, " ", event->kind);
    if (event->counterparty.size != 0)
        add3(out, CX_STR(" with "), "", event->counterparty);
    if (event->cost.is_set) {
        cx_buf_add_z(out, " cost=");
        add3(out, event->cost.amount, "", event->cost.asset);
    }
}

static void short_constraint(const cx_data_constraint *constraint, cx_buf *out)
{
    add3(out, CX_STR("["), "", constraint->strength);
    add3(out, CX_STR("] "), "", constraint->polarity);
    add3(out, CX_STR(" "), "", constraint->statement);
}

static void add_short(const cx_data *data, cx_buf *out)
{
    switch ((cx_type)data->type) {
    case CX_TYPE_IDENTITY:
        cx_buf_add_str(out, data->as.identity.name);
        if (data->as.identity.did.size != 0) {
            add3(out, CX_STR(" ("), "", data->as.identity.did);
            cx_buf_add_byte(out, ')');
        }
        break;
    case CX_TYPE_FACT:
        add3(out, data->as.fact.predicate, "(", data->as.fact.subject);
        add3(out, CX_STR(")="), "", data->as.fact.statement);
        break;
    case CX_TYPE_PREFERENCE:
        add3(out, CX_STR("prefers "), "", data->as.preference.topic);
        add3(out, CX_STR(" ("), "", data->as.preference.polarity);
        cx_buf_add_z(out, ", strength=");
        cx_form_fixed2(data->as.preference.strength, out);
        cx_buf_add_byte(out, ')');
        break;
    case CX_TYPE_BELIEF: add3(out, data->as.belief.stance, " ", data->as.belief.statement); break;
    case CX_TYPE_EVENT: short_event(&data->as.event, out); break;
    case CX_TYPE_GOAL:
        add3(out, CX_STR("["), "", data->as.goal.status);
        add3(out, CX_STR("] "), "", data->as.goal.statement);
        break;
    case CX_TYPE_CONSTRAINT: short_constraint(&data->as.constraint, out); break;
    case CX_TYPE_CAPABILITY:
        add3(out, data->as.capability.subject, " can ", data->as.capability.capability);
        cx_buf_add_z(out, data->as.capability.verified ? " (verified)" : " (unverified)");
        break;
    case CX_TYPE_PATTERN:
        cx_buf_add_str(out, data->as.pattern.statement);
        cx_buf_add_z(out, " (strength=");
        cx_form_fixed2(data->as.pattern.strength, out);
        cx_buf_printf(out, ", coverage=%" PRId64 ")", data->as.pattern.coverage);
        break;
    }
}

/* Parts of the medium form: the first brings the dash, the others a comma. */
typedef struct parts {
    cx_buf *out;
    bool begun;
} parts;

static void part_begin(parts *p, const char *label)
{
    cx_buf_add_z(p->out, p->begun ? ", " : DASH);
    cx_buf_add_z(p->out, label);
    p->begun = true;
}

static void part_count(parts *p, const char *label, size_t count)
{
    if (count != 0) {
        part_begin(p, label);
        cx_buf_add_u64(p->out, count);
    }
}

static void part_text(parts *p, const char *label, cx_str text)
{
    if (text.size != 0) {
        part_begin(p, label);
        cx_buf_add_str(p->out, text);
    }
}

static void part_time(parts *p, const char *label, const cx_maybe_time *time)
{
    part_begin(p, label);
    if (time->is_set)
        cx_form_time(time->s, p->out);
    else
        cx_buf_add_z(p->out, NO_TIME);
}

static void parts_identity(parts *p, const cx_data_identity *identity)
{
    part_count(p, "wallets=", identity->wallets.count);
    for (size_t i = 0; i < identity->roles.count; i++) {
        if (i == 0)
            part_begin(p, "roles=");
        else
            cx_buf_add_byte(p->out, ',');
        cx_buf_add_str(p->out, identity->roles.items[i]);
    }
    part_count(p, "keys=", identity->public_keys.count);
}

static void parts_event(parts *p, const cx_data_event *event)
{
    if (event->duration.is_set) {
        part_begin(p, "duration=");
        cx_form_duration(event->duration.ns, p->out);
    }
    part_count(p, "artifacts=", event->artifacts.count);
    part_text(p, "intent=", event->intent_ref);
    part_text(p, "", event->summary);
}

static void parts_belief(parts *p, const cx_data_belief *belief)
{
    part_begin(p, "");
    cx_buf_printf(p->out, "%zu for / %zu against", belief->evidence_for.count,
                  belief->evidence_against.count);
}

static void parts_goal(parts *p, const cx_data_goal *goal)
{
    if (goal->horizon_end.is_set)
        part_time(p, "by=", &goal->horizon_end);
    part_count(p, "criteria=", goal->success_criteria.count);
    part_count(p, "subgoals=", goal->subgoals.count);
}

static void parts_constraint(parts *p, const cx_data_constraint *constraint)
{
    part_begin(p, "source=");
    cx_buf_add_str(p->out, constraint->source);
    part_text(p, "trigger=", constraint->trigger);
}

static void add_parts(const cx_data *data, cx_buf *out)
{
    parts p = {out, false};
    switch ((cx_type)data->type) {
    case CX_TYPE_IDENTITY: parts_identity(&p, &data->as.identity); break;
    case CX_TYPE_FACT:
        if (data->as.fact.as_of.is_set)
            part_time(&p, "as_of=", &data->as.fact.as_of);
        part_text(&p, "source=", data->as.fact.source);
        break;
    case CX_TYPE_PREFERENCE: part_text(&p, "", data->as.preference.rationale); break;
    case CX_TYPE_BELIEF: parts_belief(&p, &data->as.belief); break;
    case CX_TYPE_EVENT: parts_event(&p, &data->as.event); break;
    case CX_TYPE_GOAL: parts_goal(&p, &data->as.goal); break;
    case CX_TYPE_CONSTRAINT: parts_constraint(&p, &data->as.constraint); break;
    case CX_TYPE_CAPABILITY:
        part_time(&p, "last_observed=", &data->as.capability.last_observed);
        break;
    case CX_TYPE_PATTERN:
        part_count(&p, "derived from ", data->as.pattern.derived_from.count);
        break;
    }
}

void cx_forms_full(const cx_data *data, cx_buf *out)
{
    add_short(data, out);
    add_parts(data, out);
}

static cx_status truncate_form(cx_str full, size_t max_tokens, cx_buf *scratch, cx_arena *arena,
                               cx_str *out, cx_err *err)
{
    cx_buf_clear(scratch);
    cx_tokens_truncate(full, max_tokens, scratch);
    CX_TRY(cx_buf_check(scratch, err));
    *out = cx_arena_copy_str(arena, cx_buf_str(scratch));
    return out->data != NULL ? CX_SUCCESS : cx_fail_nomem(err);
}

cx_status cx_forms_render(const cx_data *data, cx_arena *arena, cx_forms *out, cx_err *err)
{
    cx_forms forms;
    cx_buf text, scratch;
    cx_status status;
    cx_buf_init(&text, arena->alloc);
    cx_buf_init(&scratch, arena->alloc);
    add_short(data, &text);
    size_t short_size = text.size;
    add_parts(data, &text);
    CX_TRY_GOTO(status, cx_buf_check(&text, err));
    CX_TRY_GOTO(status, truncate_form(cx_str_from((const char *)text.data, short_size),
                                      CX_FORM_SHORT_TOKENS, &scratch, arena, &forms.brief, err));
    CX_TRY_GOTO(status, truncate_form(cx_buf_str(&text), CX_FORM_MEDIUM_TOKENS, &scratch, arena,
                                      &forms.medium, err));
    *out = forms;
done:
    cx_buf_done(&scratch);
    cx_buf_done(&text);
    return status;
}

static cx_status check_form(cx_str form, size_t max_tokens, const char *name, cx_err *err)
{
    if (!cx_utf8_valid(form))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the %s form is not valid UTF-8", name);
    if (cx_tokens_of(form) > max_tokens)
        return cx_fail_at(err, CX_E_LIMIT, "FormTooLong", CX_NO_OFFSET,
                          "the %s form has %" PRIu64 " tokens, expected at most %zu", name,
                          cx_tokens_of(form), max_tokens);
    return CX_SUCCESS;
}

cx_status cx_forms_check(const cx_forms *forms, cx_err *err)
{
    CX_TRY(check_form(forms->brief, CX_FORM_SHORT_TOKENS, "short", err));
    return check_form(forms->medium, CX_FORM_MEDIUM_TOKENS, "medium", err);
}
