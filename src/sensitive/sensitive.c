/*
 * sensitive.c - the table of patterns, and one pass over a text that tries them.
 *
 * The loop stops only at bytes that can belong to something: '@', '+', digits, and of each literal
 * prefix its rarest byte, from which the prefix is compared to both sides.
 */
#include "sensitive/sensitive.h"

#include <string.h>

#define EMAIL_LOCAL_MAX 64
#define EMAIL_DOMAIN_MAX 255
#define USERINFO_MAX 256
#define CARD_DIGITS_MAX 19
#define PHONE_DIGITS_MAX 15
#define IBAN_MAX 34
#define PREFIX_MAX 64
#define LENGTH_MAX 256 /* of the part after a user's prefix */
#define DIFFERENT_MIN 6

/* --- characters ------------------------------------------------------------------------------- */

enum {
    DIGIT = 1,
    HEX = 2, /* letters of it */
    UPPER = 4,
    LOWER = 8,
    UNDER = 16,
    DASH = 32,
    BASE = 64, /* + / = */
    DOT = 128,
    LETTER = UPPER | LOWER,
    ALNUM = LETTER | DIGIT,
    WORD = ALNUM | UNDER,
    URL = WORD | DASH
};

static unsigned bits_of(char c)
{
    if (c >= '0' && c <= '9')
        return DIGIT;
    if (c >= 'a' && c <= 'z')
        return c <= 'f' ? LOWER | HEX : LOWER;
    if (c >= 'A' && c <= 'Z')
        return c <= 'F' ? UPPER | HEX : UPPER;
    return c == '_'                           ? UNDER
           : c == '-'                         ? DASH
           : c == '.' || c == '~'             ? DOT
           : c == '+' || c == '/' || c == '=' ? BASE
                                              : 0;
}

static bool is_in(char c, unsigned charset)
{
    return (bits_of(c) & charset) != 0;
}

static bool is_in_text(cx_str text, size_t at, unsigned charset)
{
    return at < text.size && is_in(text.data[at], charset);
}

/* Bytes of the set from there on, at most `most`. */
static size_t run_length(cx_str text, size_t from, unsigned charset, size_t most)
{
    size_t size = 0;
    while (size < most && is_in_text(text, from + size, charset))
        size++;
    return size;
}

static bool starts_at(cx_str text, size_t at, const char *with)
{
    size_t size = strlen(with);
    return at <= text.size && text.size - at >= size && memcmp(text.data + at, with, size) == 0;
}

/* A string is scanned as it is written, so what looks like a letter may be the second half of "\n",
 * or, where one text is quoted in another, of "\\n". */
static bool is_escape_letter(cx_str text, size_t at)
{
    return at > 0 && text.data[at - 1] == '\\' && text.data[at] != 0 &&
           strchr("nrtbf", text.data[at]) != NULL;
}

/* Whether the byte is escaped by the one before it, and cannot be masked without that. */
static bool is_escaped(cx_str text, size_t at)
{
    size_t slashes = 0;
    while (slashes < at && text.data[at - 1 - slashes] == '\\')
        slashes++;
    return slashes % 2 == 1;
}

/* A token does not begin inside a word. */
static bool is_start(cx_str text, size_t at)
{
    if (at == 0)
        return true;
    if (text.data[at - 1] == '\\')
        return !is_escaped(text, at);
    return !is_in(text.data[at - 1], URL) || is_escape_letter(text, at - 1);
}

/* --- patterns with a literal prefix ----------------------------------------------------------- */

typedef enum how {
    PREFIXED, /* the prefix, then least to most of the charset */
    VARIED,   /* the same, with a digit in it */
    NEXT,     /* what follows the prefix, and not the prefix */
    AFTER_GAP,
    JWT,
    BASIC,
    PASSWORD_IN_URL,
    PEM,
    OF_USER
} how;

typedef struct pattern {
    const char *name;
    cx_sensitive_class class_of;
    cx_str prefix;
    unsigned charset;
    uint32_t least, most; /* most 0 = any */
    how is;
    uint16_t pivot; /* of the prefix: the byte that the loop stops at */
    uint16_t next;  /* of those with the same byte, plus 1; 0 = none */
} pattern;

#define TOKEN(name, prefix, charset, least, most, is)                                      \
    {                                                                                      \
        (name), CX_SENSITIVE_TOKEN, CX_STR(prefix), (charset), (least), (most), (is), 0, 0 \
    }

/* The first that fits counts, so longer prefixes come first. */
static const pattern built_in[] = {
    TOKEN("aws", "AKIA", UPPER | DIGIT, 16, 16, PREFIXED),
    TOKEN("aws", "ASIA", UPPER | DIGIT, 16, 16, PREFIXED),
    TOKEN("aws", "aws_secret_access_key", ALNUM | BASE, 40, 40, AFTER_GAP),
    TOKEN("aws", "AWS_SECRET_ACCESS_KEY", ALNUM | BASE, 40, 40, AFTER_GAP),
    TOKEN("aws", "SecretAccessKey", ALNUM | BASE, 40, 40, AFTER_GAP),
    TOKEN("github", "ghp_", ALNUM, 36, 0, PREFIXED),
    TOKEN("github", "gho_", ALNUM, 36, 0, PREFIXED),
    TOKEN("github", "ghu_", ALNUM, 36, 0, PREFIXED),
    TOKEN("github", "ghs_", ALNUM, 36, 0, PREFIXED),
    TOKEN("github", "ghr_", ALNUM, 36, 0, PREFIXED),
    TOKEN("github", "github_pat_", WORD, 36, 0, PREFIXED),
    TOKEN("gitlab", "glpat-", URL, 20, 0, PREFIXED),
    TOKEN("gitlab", "gldt-", URL, 20, 0, PREFIXED),
    TOKEN("gitlab", "glrt-", URL, 20, 0, PREFIXED),
    TOKEN("gitlab", "glptt-", URL, 20, 0, PREFIXED),
    TOKEN("slack", "xoxa-", URL, 10, 0, VARIED),
    TOKEN("slack", "xoxb-", URL, 10, 0, VARIED),
    TOKEN("slack", "xoxe-", URL, 10, 0, VARIED),
    TOKEN("slack", "xoxp-", URL, 10, 0, VARIED),
    TOKEN("slack", "xoxr-", URL, 10, 0, VARIED),
    TOKEN("slack", "xoxs-", URL, 10, 0, VARIED),
    TOKEN("slack", "xapp-", URL, 10, 0, VARIED),
    TOKEN("slack", "hooks.slack.com/services/", ALNUM | BASE, 30, 0, VARIED),
    TOKEN("stripe", "sk_live_", ALNUM, 16, 0, PREFIXED),
    TOKEN("stripe", "sk_test_", ALNUM, 16, 0, PREFIXED),
    TOKEN("stripe", "rk_live_", ALNUM, 16, 0, PREFIXED),
    TOKEN("stripe", "rk_test_", ALNUM, 16, 0, PREFIXED),
    TOKEN("stripe", "whsec_", ALNUM | BASE, 24, 0, PREFIXED),
    TOKEN("anthropic", "sk-ant-", URL, 20, 0, PREFIXED),
    TOKEN("openai", "sk-proj-", URL, 20, 0, PREFIXED),
    TOKEN("openai", "sk-svcacct-", URL, 20, 0, PREFIXED),
    TOKEN("openai", "sk-admin-", URL, 20, 0, PREFIXED),
    TOKEN("openrouter", "sk-or-v1-", ALNUM, 32, 0, PREFIXED),
    TOKEN("openai", "sk-", ALNUM, 32, 0, VARIED),
    TOKEN("google", "AIza", URL, 35, 35, PREFIXED),
    TOKEN("google", "ya29.", URL, 20, 0, PREFIXED),
    TOKEN("google", "GOCSPX-", URL, 24, 0, PREFIXED),
    TOKEN("npm", "npm_", ALNUM, 36, 36, PREFIXED),
    TOKEN("pypi", "pypi-AgE", URL, 50, 0, PREFIXED),
    TOKEN("huggingface", "hf_", ALNUM, 30, 0, PREFIXED),
    TOKEN("docker", "dckr_pat_", URL, 20, 0, PREFIXED),
    TOKEN("sendgrid", "SG.", URL | DOT, 40, 0, VARIED),
    TOKEN("vault", "hvs.", URL, 20, 0, PREFIXED),
    TOKEN("digitalocean", "dop_v1_", DIGIT | HEX, 64, 64, PREFIXED),
    TOKEN("shopify", "shpat_", DIGIT | HEX, 32, 32, PREFIXED),
    TOKEN("grafana", "glsa_", WORD, 32, 0, PREFIXED),
    TOKEN("xai", "xai-", ALNUM, 40, 0, PREFIXED),
    TOKEN("groq", "gsk_", ALNUM, 40, 0, PREFIXED),
    TOKEN("age", "AGE-SECRET-KEY-1", UPPER | DIGIT, 50, 0, PREFIXED),
    TOKEN("jwt", "eyJ", URL, 0, 0, JWT),
    TOKEN("bearer", "Bearer ", URL | DOT | BASE, 16, 0, NEXT),
    TOKEN("bearer", "bearer ", URL | DOT | BASE, 16, 0, NEXT),
    TOKEN("basic", "Basic ", ALNUM | BASE, 8, 0, BASIC),
    TOKEN("basic", "basic ", ALNUM | BASE, 8, 0, BASIC),
    {"url", CX_SENSITIVE_PASSWORD, CX_STR("://"), 0, 0, 0, PASSWORD_IN_URL, 0, 0},
    {"pem", CX_SENSITIVE_PRIVATE_KEY, CX_STR("-----BEGIN "), 0, 0, 0, PEM, 0, 0},
};

enum { STOP_LITERAL = 1, STOP_AT = 2, STOP_PLUS = 4, STOP_DIGIT = 8 };

struct cx_sensitive_rules {
    cx_sensitive_action actions[CX_SENSITIVE_CLASS_COUNT];
    bool is_on, masks;
    pattern *patterns;
    size_t pattern_count;
    uint8_t stop[256];
    uint16_t chain[256];        /* the first pattern of a byte, plus 1 */
    uint32_t pairs[65536 / 32]; /* of those bytes and the next of the prefix */
};

/* A digit, and different characters enough that it is no placeholder. */
static bool is_varied(cx_str text, size_t from, size_t size, bool needs_digit)
{
    uint64_t seen[4] = {0};
    size_t different = 0;
    bool digit = false;
    for (size_t i = from; i < from + size; i++) {
        uint8_t c = (uint8_t)text.data[i];
        different += (seen[c >> 6] >> (c & 63) & 1) == 0;
        seen[c >> 6] |= UINT64_C(1) << (c & 63);
        digit |= is_in(text.data[i], DIGIT);
    }
    return different >= DIFFERENT_MIN && (digit || !needs_digit);
}

static bool set_hit(const pattern *p, size_t offset, size_t size, cx_sensitive_hit *out)
{
    *out = (cx_sensitive_hit){p->class_of, p->name, offset, size};
    return true;
}

/* Three parts, of which the first two are JSON objects. */
static bool match_jwt(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    size_t end = at + run_length(text, at, URL, text.size);
    if (end - at < 10 || !starts_at(text, end, ".eyJ"))
        return false;
    size_t second = end + 1;
    end = second + run_length(text, second, URL, text.size);
    if (end - second < 10 || end >= text.size || text.data[end] != '.')
        return false;
    size_t third = run_length(text, end + 1, URL, text.size);
    return third >= 10 && set_hit(p, at, end + 1 + third - at, out);
}

static unsigned base64_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? (unsigned)(c - 'A')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 26
           : c >= '0' && c <= '9' ? (unsigned)(c - '0') + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : 64;
}

/* base64 of "user:password" */
static bool match_basic(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    size_t size = run_length(text, at, p->charset, LENGTH_MAX);
    unsigned value = 0, bits = 0;
    bool colon = false;
    if (size < p->least || size % 4 != 0)
        return false;
    for (size_t i = at; i < at + size && text.data[i] != '='; i++) {
        value = (value << 6 | base64_value(text.data[i])) & 0xFFFF;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        unsigned byte = value >> bits & 0xFF;
        if (byte < 0x20 || byte > 0x7E)
            return false;
        colon |= byte == ':';
    }
    return colon && set_hit(p, at, size, out);
}

/* "user:password@" after "://": the password; a variable is none. */
static bool match_password(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    size_t colon = 0, i = at;
    for (; i < text.size && i < at + USERINFO_MAX; i++) {
        char c = text.data[i];
        if (c == '@' || (uint8_t)c <= ' ' || strchr("/\"'`<>?#\\", c) != NULL)
            break;
        if (c == ':' && colon == 0)
            colon = i + 1;
    }
    if (colon == 0 || i == colon || i >= text.size || text.data[i] != '@' ||
        text.data[colon] == '{' || text.data[colon] == '*' || starts_at(text, colon, "${") ||
        starts_at(text, colon, "$("))
        return false;
    return set_hit(p, colon, i - colon, out);
}

/* A private key in PEM, or the part of it that is there. */
static bool match_pem(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    size_t i = at + p->prefix.size, longest = 0, run = 0;
    bool is_private = false;
    for (; i < at + p->prefix.size + 40; i++) {
        if (!is_in_text(text, i, UPPER | DIGIT) && !(i < text.size && text.data[i] == ' '))
            break;
        is_private |= starts_at(text, i, "PRIVATE KEY");
    }
    if (!is_private || !starts_at(text, i, "-----"))
        return false;
    for (i += 5; i < text.size; i++) {
        char c = text.data[i];
        if (c == '-' && starts_at(text, i, "-----"))
            break;
        if (!is_in(c, ALNUM | BASE | DASH) && strchr(" \t\r\n:,.\\()@", c) == NULL)
            break;
        run = is_in(c, ALNUM | BASE) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    if (longest < 32)
        return false;
    while (text.data[i - 1] == '\\') /* of the quote that follows */
        i--;
    if (starts_at(text, i, "-----END "))
        for (size_t end = i + 9; end < text.size && end < i + 60; end++)
            if (starts_at(text, end, "-----")) {
                i = end + 5;
                break;
            }
    return set_hit(p, at, i - at, out);
}

/* NAME = "VALUE" and the like. */
static bool match_after_gap(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    size_t i = at, most = at + 8;
    while (i < text.size && i < most && text.data[i] != 0 &&
           (strchr(" \t\"'=:\\>", text.data[i]) != NULL || is_escape_letter(text, i)))
        i++;
    size_t size = run_length(text, i, p->charset, (size_t)p->most + 1);
    return i != at && size >= p->least && size <= p->most && is_varied(text, i, size, true) &&
           set_hit(p, i, size, out);
}

static bool match_prefixed(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    size_t body = at + p->prefix.size;
    size_t most = p->most == 0 ? text.size : (size_t)p->most + 1;
    size_t size = run_length(text, body, p->charset, most);
    /* Letters that are not in the set do not end a token. */
    if (size < p->least || (p->most != 0 && size > p->most) ||
        (p->is != NEXT && is_in_text(text, body + size, ALNUM)))
        return false;
    if (p->is != OF_USER && !is_varied(text, body, size, p->is != PREFIXED))
        return false;
    return p->is == NEXT ? set_hit(p, body, size, out) : set_hit(p, at, p->prefix.size + size, out);
}

static bool match_pattern(const pattern *p, cx_str text, size_t at, cx_sensitive_hit *out)
{
    if (p->is == PASSWORD_IN_URL)
        return match_password(p, text, at + p->prefix.size, out);
    if (p->is == PEM)
        return match_pem(p, text, at, out);
    if (!is_start(text, at))
        return false;
    switch (p->is) {
    case JWT: return match_jwt(p, text, at, out);
    case BASIC: return match_basic(p, text, at + p->prefix.size, out);
    case AFTER_GAP: return match_after_gap(p, text, at + p->prefix.size, out);
    default: return match_prefixed(p, text, at, out);
    }
}

/* --- e-mail ----------------------------------------------------------------------------------- */

static bool is_one_of(cx_str word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(word, words[i]))
            return true;
    return false;
}

/* Accounts of programs, and what only looks like a domain. */
static bool is_no_person(cx_str local, cx_str top)
{
    static const char *const accounts[] = {"git", "hg", "svn", "noreply", "no-reply"};
    static const char *const files[] = {"png", "jpg",  "jpeg", "gif", "svg", "webp", "js", "json",
                                        "css", "html", "tgz",  "gz",  "tar", "zip",  "whl"};
    return is_one_of(local, accounts, CX_COUNT_OF(accounts)) ||
           is_one_of(top, files, CX_COUNT_OF(files));
}

static bool match_email(cx_str text, size_t floor, size_t at, cx_sensitive_hit *out)
{
    static const pattern email = {.name = "email", .class_of = CX_SENSITIVE_EMAIL};
    size_t start = at, end = at + 1, labels = 0, numbers = 0;
    cx_str top = {NULL, 0};
    while (start > floor && at - start <= EMAIL_LOCAL_MAX &&
           (is_in(text.data[start - 1], WORD | DASH) || text.data[start - 1] == '.' ||
            text.data[start - 1] == '+' || text.data[start - 1] == '%'))
        start--;
    if (start < at && is_escaped(text, start))
        start++;
    while (start < at && !is_in(text.data[start], WORD))
        start++;
    if (start == at || at - start > EMAIL_LOCAL_MAX || text.data[at - 1] == '.')
        return false;
    for (size_t i = end; i < at + EMAIL_DOMAIN_MAX;) {
        size_t size = run_length(text, i, ALNUM | DASH, EMAIL_LOCAL_MAX);
        if (size == 0 || size == EMAIL_LOCAL_MAX)
            break;
        end = i + size;
        top = cx_str_from(text.data + i, size);
        numbers += run_length(text, i, DIGIT, size) == size;
        labels++;
        if (end >= text.size || text.data[end] != '.')
            break;
        i = end + 1;
    }
    bool is_top = labels >= 2 && top.size >= 2 && top.size <= 24 &&
                  run_length(top, 0, LETTER, top.size) == top.size;
    if (!is_top || numbers >= 2 || is_no_person(cx_str_from(text.data + start, at - start), top))
        return false;
    return set_hit(&email, start, end - start, out);
}

/* --- numbers ---------------------------------------------------------------------------------- */

typedef struct digits {
    uint8_t items[CARD_DIGITS_MAX + 1];
    size_t count;
} digits;

static unsigned first_digits(const digits *d, size_t count)
{
    unsigned value = 0;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + d->items[i];
    return value;
}

/* ISO/IEC 7812-1: whose number it can be, by its first digits and its length; NULL = no one's. */
static const char *card_issuer(const digits *d)
{
    if (d->count < 14)
        return NULL;
    unsigned two = first_digits(d, 2), three = first_digits(d, 3), four = first_digits(d, 4);
    if (d->count == 15)
        return two == 34 || two == 37 ? "amex" : NULL;
    if (d->count == 14)
        return two == 36 || two == 38 || (three >= 300 && three <= 305) ? "diners" : NULL;
    if (d->count == 19)
        return two == 62 ? "unionpay" : NULL;
    if (d->count != 16)
        return NULL;
    if (d->items[0] == 4)
        return "visa";
    if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720))
        return "mastercard";
    if (four == 6011 || two == 65 || (three >= 644 && three <= 649))
        return "discover";
    if (four >= 3528 && four <= 3589)
        return "jcb";
    return two == 62 ? "unionpay" : NULL;
}

static bool has_luhn(const digits *d)
{
    unsigned sum = 0;
    for (size_t i = 0; i < d->count; i++) {
        unsigned digit = d->items[d->count - 1 - i];
        unsigned twice = digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
        sum += i % 2 == 1 ? twice : digit;
    }
    return sum % 10 == 0;
}

/* What may not touch a number: it would be part of something longer. */
static bool is_number_start(cx_str text, size_t at)
{
    if (at == 0 || is_escape_letter(text, at - 1))
        return true;
    char before = text.data[at - 1];
    return !is_in(before, URL | DOT) && before != '+' && (uint8_t)before < 0x80;
}

static bool is_number_end(cx_str text, size_t at)
{
    if (at >= text.size)
        return true;
    if (text.data[at] == '.')
        return !is_in_text(text, at + 1, ALNUM);
    return !is_in(text.data[at], URL);
}

static bool read_digits(cx_str text, size_t at, size_t count, digits *d)
{
    if (d->count + count > CARD_DIGITS_MAX || run_length(text, at, DIGIT, count + 1) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        d->items[d->count++] = (uint8_t)(text.data[at + i] - '0');
    return true;
}

/* Groups of these sizes with one separator between them; *out_end after the last. */
static bool read_groups(cx_str text, size_t at, const uint8_t *sizes, digits *d, size_t *out_end)
{
    char between = 0;
    *d = (digits){.count = 0};
    for (size_t i = 0; sizes[i] != 0; i++) {
        if (i != 0) {
            char c = at < text.size ? text.data[at] : (char)0;
            if ((c != ' ' && c != '-') || (i > 1 && c != between))
                return false;
            between = c;
            at++;
        }
        if (!read_digits(text, at, sizes[i], d))
            return false;
        at += sizes[i];
    }
    *out_end = at;
    return true;
}

static bool match_card(cx_str text, size_t at, size_t run, cx_sensitive_hit *out)
{
    static const uint8_t layouts[][6] = {{4, 4, 4, 4, 0}, {4, 6, 5, 0}, {4, 6, 4, 0}};
    pattern card = {.class_of = CX_SENSITIVE_CARD};
    digits d = {.count = 0};
    size_t end = at + run;
    if (!is_number_start(text, at))
        return false;
    bool found = run >= 14 && run <= CARD_DIGITS_MAX && read_digits(text, at, run, &d);
    for (size_t i = 0; run == 4 && i < CX_COUNT_OF(layouts) && !found; i++)
        found = read_groups(text, at, layouts[i], &d, &end);
    card.name = found && is_number_end(text, end) ? card_issuer(&d) : NULL;
    return card.name != NULL && has_luhn(&d) && set_hit(&card, at, end - at, out);
}

/* ISO 13616: countries and the length of their numbers. */
static size_t iban_size(const char *country)
{
    static const char countries[] =
        "NO15BE16DK18FI18FO18GL18NL18MK19SI20AT20BA20EE20KZ20LT20LU20XK20CR22CH21"
        "HR21LI21LV21BG22BH22DE22GB22GE22IE22ME22RS22AE23GI23IL23IQ23TL23AD24CZ24"
        "ES24MD24PK24RO24SA24SE24SK24TN24VG24PT25IS26TR26FR27GR27IT27MC27MR27SM27"
        "AL28AZ28BY28CY28DO28GT28HU28LB28PL28SV28BR29EG29PS29QA29UA29JO30KW30MU30"
        "MT31SC31LC32";
    for (size_t i = 0; i + 4 < sizeof countries; i += 4)
        if (memcmp(countries + i, country, 2) == 0)
            return (size_t)(countries[i + 2] - '0') * 10 + (size_t)(countries[i + 3] - '0');
    return 0;
}

/* The rest of the number read from its fifth character on, then its first four, modulo 97. */
static bool has_mod_97(const char *number, size_t size)
{
    unsigned rest = 0;
    for (size_t i = 0; i < size; i++) {
        char c = number[(i + 4) % size];
        rest = is_in(c, DIGIT) ? (rest * 10 + (unsigned)(c - '0')) % 97
                               : (rest * 100 + (unsigned)(c - 'A') + 10) % 97;
    }
    return rest == 1;
}

/* `at` is the first of the two check digits. */
static bool match_iban(cx_str text, size_t floor, size_t at, cx_sensitive_hit *out)
{
    static const pattern iban = {.name = "iban", .class_of = CX_SENSITIVE_IBAN};
    char number[IBAN_MAX];
    if (at < floor + 2 || !is_in(text.data[at - 1], UPPER) || !is_in(text.data[at - 2], UPPER) ||
        !is_start(text, at - 2))
        return false;
    size_t want = iban_size(text.data + at - 2), size = 0, i = at - 2;
    if (want == 0)
        return false;
    for (; i < text.size && size < want; i++) {
        if (text.data[i] == ' ' && size % 4 == 0 && size != 0 && text.data[i - 1] != ' ')
            continue;
        if (!is_in(text.data[i], UPPER | DIGIT))
            return false;
        number[size++] = text.data[i];
    }
    return size == want && !is_in_text(text, i, URL) && is_in(number[3], DIGIT) &&
           has_mod_97(number, size) && set_hit(&iban, at - 2, i - (at - 2), out);
}

static const pattern phone = {.name = "phone", .class_of = CX_SENSITIVE_PHONE};

/* North America without a country code: 415-555-2671, (415) 555-2671. */
static bool match_local_phone(cx_str text, size_t floor, size_t at, cx_sensitive_hit *out)
{
    bool in_brackets = at > floor && text.data[at - 1] == '(';
    size_t start = in_brackets ? at - 1 : at, i = at + 3;
    if (text.data[at] < '2' || !(in_brackets ? is_start(text, start) : is_number_start(text, at)))
        return false;
    if (in_brackets && !(i < text.size && text.data[i++] == ')'))
        return false;
    if (i < text.size && (text.data[i] == '-' || (in_brackets && text.data[i] == ' ')))
        i++;
    else if (!in_brackets)
        return false;
    if (run_length(text, i, DIGIT, 4) != 3 || text.data[i] < '2' || i + 3 >= text.size ||
        text.data[i + 3] != '-' || run_length(text, i + 4, DIGIT, 5) != 4)
        return false;
    i += 8;
    return is_number_end(text, i) && set_hit(&phone, start, i - start, out);
}

/* E.164 with spaces, hyphens and brackets.  A line of a patch begins with '+', too. */
static bool match_phone(cx_str text, size_t at, cx_sensitive_hit *out)
{
    char before = at == 0 ? ' ' : text.data[at - 1];
    uint8_t all[PHONE_DIGITS_MAX + 1];
    size_t count = 0, between = 0, end = at + 1, first = 0;
    if (is_in(before, URL | DOT | BASE) && !(at > 0 && is_escape_letter(text, at - 1)))
        return false;
    for (size_t i = at + 1, gap = 0; i < text.size && gap <= 2 && count <= PHONE_DIGITS_MAX; i++) {
        char c = text.data[i];
        if (is_in(c, DIGIT)) {
            all[count < PHONE_DIGITS_MAX ? count : PHONE_DIGITS_MAX] = (uint8_t)(c - '0');
            count++;
            gap = 0;
            end = i + 1;
        } else if (c == ' ' || c == '-' || c == '(' || c == ')') {
            first = between == 0 ? count : first;
            between++;
            gap++;
        } else {
            break;
        }
    }
    bool is_apart = first != 0 && end > at + 1 + first;
    if (count < (is_apart ? 9u : 10u) || count > PHONE_DIGITS_MAX || all[0] == 0 ||
        (is_apart && first > 3) || (!is_apart && before == '\n') || !is_number_end(text, end))
        return false;
    if (all[0] == 1 && (count != 11 || all[1] < 2 || all[4] < 2))
        return false;
    return set_hit(&phone, at, end - at, out);
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool match_literal(const cx_sensitive_rules *rules, cx_str text, size_t floor, size_t at,
                          cx_sensitive_hit *out)
{
    for (size_t i = rules->chain[(uint8_t)text.data[at]]; i != 0; i = rules->patterns[i - 1].next) {
        const pattern *p = &rules->patterns[i - 1];
        size_t start = at - p->pivot;
        if (at < p->pivot || start < floor || text.size - start < p->prefix.size ||
            memcmp(text.data + start, p->prefix.data, p->prefix.size) != 0)
            continue;
        if (match_pattern(p, text, start, out))
            return true;
    }
    return false;
}

static unsigned pair_of(const char *at)
{
    return (unsigned)(uint8_t)at[0] << 8 | (uint8_t)at[1];
}

static bool is_pair(const cx_sensitive_rules *rules, const char *at)
{
    return (rules->pairs[pair_of(at) / 32] >> pair_of(at) % 32 & 1) != 0;
}

static bool match_number(const cx_sensitive_rules *rules, cx_str text, size_t floor, size_t at,
                         size_t run, cx_sensitive_hit *out)
{
    if (rules->actions[CX_SENSITIVE_CARD] != CX_SENSITIVE_OFF && run >= 4 &&
        match_card(text, at, run, out))
        return true;
    if (rules->actions[CX_SENSITIVE_IBAN] != CX_SENSITIVE_OFF && run >= 2 &&
        match_iban(text, floor, at, out))
        return true;
    return rules->actions[CX_SENSITIVE_PHONE] != CX_SENSITIVE_OFF && run == 3 &&
           match_local_phone(text, floor, at, out);
}

static bool has_stop(const cx_sensitive_rules *rules, const char *four)
{
    const uint8_t *stop = rules->stop;
    return (stop[(uint8_t)four[0]] | stop[(uint8_t)four[1]] | stop[(uint8_t)four[2]] |
            stop[(uint8_t)four[3]]) != 0;
}

bool cx_sensitive_next(const cx_sensitive_rules *rules, cx_str text, size_t *at,
                       cx_sensitive_hit *out)
{
    const size_t floor = *at;
    bool found = false;
    for (size_t i = floor; i < text.size && !found;) {
        const unsigned stop = rules->stop[(uint8_t)text.data[i]];
        size_t used = 1;
        if (CX_LIKELY(stop == 0)) {
            i++;
            while (i + 4 <= text.size && !has_stop(rules, text.data + i))
                i += 4;
            continue;
        }
        if ((stop & STOP_LITERAL) != 0 && i + 1 < text.size && is_pair(rules, text.data + i))
            found = match_literal(rules, text, floor, i, out);
        if (!found && (stop & STOP_AT) != 0)
            found = match_email(text, floor, i, out);
        if (!found && (stop & STOP_PLUS) != 0)
            found = match_phone(text, i, out);
        if (!found && (stop & STOP_DIGIT) != 0) {
            while (is_in_text(text, i + used, DIGIT))
                used++;
            if (used > 1)
                found = match_number(rules, text, floor, i, used, out);
        }
        i += used;
    }
    *at = found ? out->offset + out->size : text.size;
    CX_ASSERT(!found || (out->offset >= floor && out->size != 0 && *at <= text.size));
    return found;
}

/* --- rules ------------------------------------------------------------------------------------ */

static const char *const class_names[] = {
#define CX_SENSITIVE_NAME(id, name, group) name,
    CX_SENSITIVE_CLASSES(CX_SENSITIVE_NAME)
#undef CX_SENSITIVE_NAME
};

static const char *const class_groups[] = {
#define CX_SENSITIVE_GROUP(id, name, group) group,
    CX_SENSITIVE_CLASSES(CX_SENSITIVE_GROUP)
#undef CX_SENSITIVE_GROUP
};

const char *cx_sensitive_class_name(cx_sensitive_class class_of)
{
    CX_ASSERT(class_of < CX_SENSITIVE_CLASS_COUNT);
    return class_names[class_of];
}

cx_sensitive_class cx_sensitive_class_of(cx_str name)
{
    for (int i = 0; i < CX_SENSITIVE_CLASS_COUNT; i++)
        if (cx_str_is(name, class_names[i]))
            return (cx_sensitive_class)i;
    return CX_SENSITIVE_CLASS_COUNT;
}

static cx_status bad_rule(cx_str rule, cx_err *err)
{
    return cx_fail(err, CX_E_USAGE,
                   "sensitive: found '%.*s', expected off, mark or mask, or CLASS=ACTION with the "
                   "class token, private-key, password, custom, email, phone, card, iban, secrets "
                   "or personal",
                   (int)(rule.size > 60 ? 60 : rule.size), rule.data);
}

static cx_status apply_rule(cx_sensitive_rules *rules, cx_str rule, cx_err *err)
{
    static const char *const names[] = {"off", "mark", "mask"};
    const char *equals = memchr(rule.data, '=', rule.size);
    size_t name_size = equals == NULL ? 0 : (size_t)(equals - rule.data);
    cx_str name = cx_str_from(rule.data, name_size), word = rule;
    size_t action = 0;
    bool fits = false;
    if (equals != NULL)
        word = cx_str_from(equals + 1, rule.size - name_size - 1);
    while (action < CX_COUNT_OF(names) && !cx_str_is(word, names[action]))
        action++;
    if (action == CX_COUNT_OF(names))
        return bad_rule(rule, err);
    for (size_t i = 0; i < CX_SENSITIVE_CLASS_COUNT; i++) {
        if (equals != NULL && !cx_str_is(name, class_names[i]) && !cx_str_is(name, class_groups[i]))
            continue;
        rules->actions[i] = (cx_sensitive_action)action;
        fits = true;
    }
    return fits ? CX_SUCCESS : bad_rule(rule, err);
}

static cx_status apply_policy(cx_sensitive_rules *rules, cx_str policy, cx_err *err)
{
    for (size_t at = 0; at <= policy.size;) {
        const char *comma = memchr(policy.data + at, ',', policy.size - at);
        size_t end = comma == NULL ? policy.size : (size_t)(comma - policy.data);
        CX_TRY(apply_rule(rules, cx_str_from(policy.data + at, end - at), err));
        at = end + 1;
    }
    return CX_SUCCESS;
}

static cx_status bad_pattern(cx_str text, cx_err *err)
{
    return cx_fail(err, CX_E_USAGE,
                   "sensitive-pattern: found '%.*s', expected PREFIX:CHARSET:MIN or "
                   "PREFIX:CHARSET:MIN-MAX, such as acme_:alnum:24; a prefix of 2 to 64 printable "
                   "characters without quotes and backslashes, the charset digits, hex, upper, "
                   "alnum, word, url or base64, and 1 to 256",
                   (int)(text.size > 80 ? 80 : text.size), text.data);
}

static bool read_length(cx_str text, uint32_t *out)
{
    uint32_t value = 0;
    if (text.size == 0 || text.size > 3)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!is_in(text.data[i], DIGIT))
            return false;
        value = value * 10 + (uint32_t)(text.data[i] - '0');
    }
    *out = value;
    return value >= 1 && value <= LENGTH_MAX;
}

static bool read_charset(cx_str word, unsigned *out)
{
    static const struct {
        const char *name;
        unsigned charset;
    } sets[] = {{"digits", DIGIT}, {"hex", DIGIT | HEX}, {"upper", UPPER | DIGIT}, {"alnum", ALNUM},
                {"word", WORD},    {"url", URL},         {"base64", ALNUM | BASE}};
    for (size_t i = 0; i < CX_COUNT_OF(sets); i++)
        if (cx_str_is(word, sets[i].name)) {
            *out = sets[i].charset;
            return true;
        }
    return false;
}

/* The text before the last ':', and what follows it. */
static bool split_last(cx_str *text, cx_str *out)
{
    size_t at = text->size;
    while (at > 0 && text->data[at - 1] != ':')
        at--;
    if (at == 0)
        return false;
    *out = cx_str_from(text->data + at, text->size - at);
    text->size = at - 1;
    return true;
}

static cx_status read_pattern(cx_str text, pattern *out, cx_err *err)
{
    cx_str prefix = text, lengths, charset;
    *out = (pattern){.name = "custom", .class_of = CX_SENSITIVE_CUSTOM, .is = OF_USER};
    if (!split_last(&prefix, &lengths) || !split_last(&prefix, &charset) ||
        !read_charset(charset, &out->charset) || prefix.size < 2 || prefix.size > PREFIX_MAX)
        return bad_pattern(text, err);
    for (size_t i = 0; i < prefix.size; i++)
        if (prefix.data[i] <= ' ' || prefix.data[i] > '~' || prefix.data[i] == '"' ||
            prefix.data[i] == '\'' || prefix.data[i] == '\\')
            return bad_pattern(text, err);
    const char *dash = memchr(lengths.data, '-', lengths.size);
    size_t first = dash == NULL ? lengths.size : (size_t)(dash - lengths.data);
    if (!read_length(cx_str_from(lengths.data, first), &out->least) ||
        (dash != NULL &&
         !read_length(cx_str_from(dash + 1, lengths.size - first - 1), &out->most)) ||
        (dash != NULL && out->most < out->least))
        return bad_pattern(text, err);
    out->prefix = prefix;
    return CX_SUCCESS;
}

/* Of the bytes of a prefix before its last the one that ordinary text has least. */
static uint16_t rarest_byte(cx_str prefix)
{
    static const char order[] = "JQZXKVYWGqHFUzPBjMOxLDNRCSTIAE@kvbywgpfm_-:uhcdlrsnoiat./e";
    size_t best = sizeof order, found = 0;
    for (size_t i = 0; i + 1 < prefix.size; i++) {
        const char *at = strchr(order, prefix.data[i]);
        size_t rank = at == NULL ? sizeof order - 1 : (size_t)(at - order);
        if (rank < best) {
            best = rank;
            found = i;
        }
    }
    return (uint16_t)found;
}

static void add_pattern(cx_sensitive_rules *rules, const pattern *from)
{
    if (rules->actions[from->class_of] == CX_SENSITIVE_OFF)
        return;
    pattern *p = &rules->patterns[rules->pattern_count++];
    *p = *from;
    p->pivot = rarest_byte(p->prefix);
    uint8_t byte = (uint8_t)p->prefix.data[p->pivot];
    const unsigned pair = pair_of(p->prefix.data + p->pivot);
    rules->pairs[pair / 32] |= UINT32_C(1) << pair % 32;
    uint16_t *end = &rules->chain[byte];
    while (*end != 0)
        end = &rules->patterns[*end - 1].next;
    *end = (uint16_t)rules->pattern_count;
    rules->stop[byte] |= STOP_LITERAL;
}

static void add_stops(cx_sensitive_rules *rules)
{
    const cx_sensitive_action *actions = rules->actions;
    if (actions[CX_SENSITIVE_EMAIL] != CX_SENSITIVE_OFF)
        rules->stop['@'] |= STOP_AT;
    if (actions[CX_SENSITIVE_PHONE] != CX_SENSITIVE_OFF)
        rules->stop['+'] |= STOP_PLUS;
    if (actions[CX_SENSITIVE_PHONE] != CX_SENSITIVE_OFF ||
        actions[CX_SENSITIVE_CARD] != CX_SENSITIVE_OFF ||
        actions[CX_SENSITIVE_IBAN] != CX_SENSITIVE_OFF)
        for (char c = '0'; c <= '9'; c++)
            rules->stop[(uint8_t)c] |= STOP_DIGIT;
    for (size_t i = 0; i < CX_SENSITIVE_CLASS_COUNT; i++) {
        rules->is_on |= actions[i] != CX_SENSITIVE_OFF;
        rules->masks |= actions[i] == CX_SENSITIVE_MASK;
    }
}

cx_status cx_sensitive_rules_make(const cx_str *policy, size_t policy_count, const cx_str *patterns,
                                  size_t pattern_count, cx_arena *arena,
                                  const cx_sensitive_rules **out, cx_err *err)
{
    cx_sensitive_rules *rules = CX_ARENA_NEW(arena, cx_sensitive_rules);
    pattern own;
    if (rules == NULL)
        return cx_fail_nomem(err);
    if (pattern_count > CX_SENSITIVE_PATTERNS_MAX)
        return cx_fail(err, CX_E_USAGE,
                       "sensitive-pattern: found %zu patterns, expected at most %d", pattern_count,
                       CX_SENSITIVE_PATTERNS_MAX);
    *rules = (cx_sensitive_rules){.is_on = false};
    rules->patterns = CX_ARENA_ARRAY(arena, pattern, CX_COUNT_OF(built_in) + pattern_count);
    if (rules->patterns == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < policy_count; i++)
        CX_TRY(apply_policy(rules, policy[i], err));
    for (size_t i = 0; i < pattern_count; i++) {
        CX_TRY(read_pattern(patterns[i], &own, err));
        own.prefix = cx_arena_copy_str(arena, own.prefix);
        if (own.prefix.data == NULL)
            return cx_fail_nomem(err);
        add_pattern(rules, &own);
    }
    for (size_t i = 0; i < CX_COUNT_OF(built_in); i++)
        add_pattern(rules, &built_in[i]);
    add_stops(rules);
    *out = rules;
    return CX_SUCCESS;
}

bool cx_sensitive_is_on(const cx_sensitive_rules *rules)
{
    return rules != NULL && rules->is_on;
}

bool cx_sensitive_masks(const cx_sensitive_rules *rules)
{
    return rules != NULL && rules->masks;
}

cx_sensitive_action cx_sensitive_action_of(const cx_sensitive_rules *rules,
                                           cx_sensitive_class class_of)
{
    CX_ASSERT(class_of < CX_SENSITIVE_CLASS_COUNT);
    return rules == NULL ? CX_SENSITIVE_OFF : rules->actions[class_of];
}
