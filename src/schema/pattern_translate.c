/*
 * pattern_translate.c - from ECMA-262 (with the `u` flag) to PCRE2.
 *
 * A single pass over the pattern, which also is its grammar check.  More is read than the `u` flag
 * allows: punctuation may be escaped without need, and brackets that close nothing are themselves,
 * as everywhere outside of `u`.  Letters are never escaped without meaning.
 *
 *   T1  Everything literal is written so that PCRE2 cannot read anything else into it.
 *   T2  Groups have numbers only; names are looked up here.
 */
#include "base/api.h"
#include "schema/pattern.h"

#define GROUPS_MAX 200
#define REPEAT_MAX 65535 /* PCRE2's */

/* ECMA-262's WhiteSpace and LineTerminator, and everything but. */
#define SPACES                                                                                    \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}" \
    "\\x{3000}\\x{feff}"
#define NO_SPACES                                                                            \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"         \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-" \
    "\\x{d7ff}\\x{e000}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

typedef struct translation {
    cx_str text;
    size_t at;
    cx_buf *out;
    cx_str names[GROUPS_MAX]; /* of each group, empty without one */
    unsigned group_count;     /* in the whole pattern */
    unsigned open;
    cx_err *err;
} translation;

#define UNICODE_END UINT32_MAX

static cx_status pattern_error(const translation *t, size_t at, const char *what)
{
    return cx_fail_at(t->err, CX_E_SYNTAX, "PatternSyntax", at, "the pattern has %s at byte %zu",
                      what, at);
}

static int peek_byte(const translation *t, size_t ahead)
{
    return t->at + ahead < t->text.size ? (unsigned char)t->text.data[t->at + ahead] : -1;
}

static bool accept_literal(translation *t, const char *literal)
{
    cx_str rest = cx_str_from(t->text.data + t->at, t->text.size - t->at);
    if (!cx_str_starts(rest, cx_str_z(literal)))
        return false;
    t->at += strlen(literal);
    return true;
}

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}
static bool is_letter(int byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}
static int hex_value(int byte)
{
    if (is_digit(byte))
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* T1 */
static void put_code(translation *t, uint32_t code)
{
    if (code < 0x80 && (is_digit((int)code) || is_letter((int)code)))
        cx_buf_add_byte(t->out, (uint8_t)code);
    else
        cx_buf_printf(t->out, "\\x{%x}", (unsigned)code);
}

/* --- escapes ---------------------------------------------------------------------------------- */

/* `count` hexadecimal digits. */
static bool read_hex(translation *t, unsigned count, uint32_t *out)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < count; i++) {
        int digit = hex_value(peek_byte(t, i));
        if (digit < 0)
            return false;
        value = value << 4 | (uint32_t)digit;
    }
    t->at += count;
    *out = value;
    return true;
}

/* After `\u`. */
static cx_status read_unicode_escape(translation *t, size_t start, uint32_t *out)
{
    uint32_t value = 0;
    if (accept_literal(t, "{")) {
        size_t digits = 0;
        for (; hex_value(peek_byte(t, 0)) >= 0 && value <= 0x10FFFF; t->at++, digits++)
            value = value << 4 | (uint32_t)hex_value(peek_byte(t, 0));
        if (digits == 0 || value > 0x10FFFF || !accept_literal(t, "}"))
            return pattern_error(t, start, "a \\u{..} that names no code point");
    } else if (!read_hex(t, 4, &value)) {
        return pattern_error(t, start, "a \\u without four hexadecimal digits");
    }
    uint32_t low = 0;
    size_t back = t->at;
    if (value >= 0xD800 && value <= 0xDBFF && accept_literal(t, "\\u") && read_hex(t, 4, &low) &&
        low >= 0xDC00 && low <= 0xDFFF)
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    else if (value >= 0xD800 && value <= 0xDBFF)
        t->at = back;
    if (value >= 0xD800 && value <= 0xDFFF)
        return cx_fail_at(
            t->err, CX_E_UNSUPPORTED, "PatternSurrogate", start,
            "the pattern names a lone surrogate at byte %zu; nothing here matches one", start);
    *out = value;
    return CX_SUCCESS;
}

/*
 * After the backslash: an escape that is one code point.  *out_known is false, and nothing is
 * taken, when it is something else.
 */
static cx_status read_character_escape(translation *t, bool in_class, uint32_t *out,
                                       bool *out_known)
{
    static const struct {
        char letter;
        uint8_t code;
    } CONTROLS[] = {{'t', 9}, {'n', 10}, {'v', 11}, {'f', 12}, {'r', 13}};
    size_t start = t->at - 1;
    int byte = peek_byte(t, 0);
    *out_known = true;
    for (size_t i = 0; i < sizeof CONTROLS / sizeof *CONTROLS; i++)
        if (byte == CONTROLS[i].letter) {
            t->at++;
            *out = CONTROLS[i].code;
            return CX_SUCCESS;
        }
    if (byte == 'b' && in_class) {
        t->at++;
        *out = 8;
    } else if (byte == 'c') {
        if (!is_letter(peek_byte(t, 1)))
            return pattern_error(t, start, "a \\c without a letter");
        *out = (uint32_t)peek_byte(t, 1) & 31;
        t->at += 2;
    } else if (byte == '0') {
        if (is_digit(peek_byte(t, 1)))
            return pattern_error(t, start, "an octal escape");
        t->at++;
        *out = 0;
    } else if (byte == 'x') {
        t->at++;
        if (!read_hex(t, 2, out))
            return pattern_error(t, start, "a \\x without two hexadecimal digits");
    } else if (byte == 'u') {
        t->at++;
        return read_unicode_escape(t, start, out);
    } else if (byte > ' ' && byte < 0x7F && !is_letter(byte) && !is_digit(byte)) {
        t->at++;
        *out = (uint32_t)byte;
    } else {
        *out_known = false;
    }
    return CX_SUCCESS;
}

/* General categories by the names that Unicode gives them and PCRE2 does not know. */
static const char *const CATEGORIES[][2] = {
    {"Letter", "L"},
    {"Cased_Letter", "L&"},
    {"LC", "L&"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Surrogate", "Cs"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

static const char *category_of(cx_str name)
{
    for (size_t i = 0; i < sizeof CATEGORIES / sizeof *CATEGORIES; i++)
        if (cx_str_is(name, CATEGORIES[i][0]))
            return CATEGORIES[i][1];
    return NULL;
}

/* `\p{..}` or `\P{..}`, from the letter on. */
static cx_status put_property(translation *t)
{
    size_t start = t->at - 1;
    bool negated = peek_byte(t, 0) == 'P';
    t->at++;
    size_t end = t->at;
    size_t equals = 0;
    if (!accept_literal(t, "{"))
        return pattern_error(t, start, "a \\p without a property in braces");
    for (end = t->at; end < t->text.size && t->text.data[end] != '}'; end++) {
        int byte = (unsigned char)t->text.data[end];
        if (byte == '=' && equals == 0)
            equals = end;
        else if (!is_letter(byte) && !is_digit(byte) && byte != '_')
            return pattern_error(t, start, "a \\p{..} that is no property");
    }
    cx_str name = cx_str_from(t->text.data + t->at, end - t->at);
    if (end == t->text.size || name.size == 0)
        return pattern_error(t, start, "a \\p{..} that does not end");
    t->at = end + 1;
    const char *kind = "";
    if (equals != 0) {
        cx_str key = cx_str_from(name.data, equals - (size_t)(name.data - t->text.data));
        name = cx_str_from(t->text.data + equals + 1, end - equals - 1);
        if (cx_str_is(key, "Script") || cx_str_is(key, "sc"))
            kind = "sc:";
        else if (cx_str_is(key, "Script_Extensions") || cx_str_is(key, "scx"))
            kind = "scx:";
        else if (!cx_str_is(key, "General_Category") && !cx_str_is(key, "gc"))
            return pattern_error(t, start, "a \\p{..} of an unknown kind");
    }
    if (cx_str_is(name, "Assigned")) {
        negated = !negated;
        name = CX_STR("Cn");
    }
    const char *category = *kind == '\0' ? category_of(name) : NULL;
    if (category != NULL)
        name = cx_str_z(category);
    cx_buf_printf(t->out, "\\%c{%s%.*s}", negated ? 'P' : 'p', kind, (int)name.size, name.data);
    return CX_SUCCESS;
}

/* After the backslash: \d \w \s, their opposites, and properties. */
static cx_status put_set(translation *t, bool in_class, bool *out_known)
{
    int byte = peek_byte(t, 0);
    *out_known = true;
    if (byte == 'p' || byte == 'P')
        return put_property(t);
    if (byte == 'd' || byte == 'D' || byte == 'w' || byte == 'W')
        cx_buf_printf(t->out, "\\%c", byte);
    else if (byte == 's' || byte == 'S')
        cx_buf_printf(t->out, in_class ? "%s" : "[%s]", byte == 's' ? SPACES : NO_SPACES);
    else
        *out_known = false;
    if (*out_known)
        t->at++;
    return CX_SUCCESS;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* At `<`: the name in angle brackets. */
static cx_status read_group_name(translation *t, cx_str *out)
{
    size_t start = t->at;
    t->at++;
    size_t name = t->at;
    while (peek_byte(t, 0) > 0 &&
           (is_letter(peek_byte(t, 0)) || peek_byte(t, 0) == '_' || peek_byte(t, 0) == '$' ||
            peek_byte(t, 0) >= 0x80 || (t->at > name && is_digit(peek_byte(t, 0)))))
        t->at++;
    *out = cx_str_from(t->text.data + name, t->at - name);
    if (out->size == 0 || !accept_literal(t, ">"))
        return pattern_error(t, start, "a group with a name that is none");
    return CX_SUCCESS;
}

/* Numbers the groups and keeps their names, before anything refers to them. */
static cx_status find_groups(translation *t)
{
    bool in_class = false;
    for (; t->at < t->text.size; t->at++) {
        int byte = peek_byte(t, 0);
        if (byte == '\\') {
            t->at++;
        } else if (byte == '[' || byte == ']') {
            in_class = byte == '[';
        } else if (byte == '(' && !in_class) {
            cx_str name = {NULL, 0};
            if (peek_byte(t, 1) == '?') {
                if (peek_byte(t, 2) != '<' || peek_byte(t, 3) == '=' || peek_byte(t, 3) == '!')
                    continue;
                size_t start = t->at;
                t->at += 2;
                CX_TRY(read_group_name(t, &name));
                t->at--;
                for (unsigned i = 0; i < t->group_count; i++)
                    if (cx_str_eq(t->names[i], name))
                        return pattern_error(t, start, "two groups of one name");
            }
            if (t->group_count == GROUPS_MAX)
                return cx_fail_at(t->err, CX_E_LIMIT, "PatternLimit", t->at,
                                  "the pattern has more than %d groups", GROUPS_MAX);
            t->names[t->group_count++] = name;
        }
    }
    t->at = 0;
    return CX_SUCCESS;
}

/* After the backslash: \1 or \k<name>. */
static cx_status put_reference(translation *t)
{
    size_t start = t->at - 1;
    unsigned number = 0;
    if (accept_literal(t, "k")) {
        cx_str name;
        if (peek_byte(t, 0) != '<')
            return pattern_error(t, start, "a \\k without a name");
        CX_TRY(read_group_name(t, &name));
        while (number < t->group_count && !cx_str_eq(t->names[number], name))
            number++;
        number++;
    } else {
        for (; is_digit(peek_byte(t, 0)) && number <= GROUPS_MAX; t->at++)
            number = number * 10 + (unsigned)(peek_byte(t, 0) - '0');
    }
    if (number == 0 || number > t->group_count)
        return pattern_error(t, start, "a reference to a group that there is not");
    cx_buf_printf(t->out, "\\g{%u}", number);
    return CX_SUCCESS;
}

static cx_status put_group_start(translation *t)
{
    static const char *const KINDS[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!"};
    size_t start = t->at;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (accept_literal(t, KINDS[i])) {
            cx_buf_add_z(t->out, KINDS[i]);
            t->open++;
            return CX_SUCCESS;
        }
    if (accept_literal(t, "(?<")) {
        cx_str name;
        t->at--;
        CX_TRY(read_group_name(t, &name));
    } else if (peek_byte(t, 1) == '?') {
        return pattern_error(t, start, "a group of a kind that ECMA-262 does not have");
    } else {
        t->at++;
    }
    cx_buf_add_byte(t->out, '(');
    t->open++;
    return CX_SUCCESS;
}

/* --- classes ---------------------------------------------------------------------------------- */

static uint32_t read_code_point(translation *t)
{
    size_t size;
    uint32_t code = cx_utf8_decode((const uint8_t *)t->text.data + t->at, &size);
    t->at += size;
    return code;
}

/* One member of a class: a code point, or a set that is written at once (*out = UNICODE_END). */
static cx_status read_class_member(translation *t, uint32_t *out)
{
    size_t start = t->at;
    bool known;
    *out = UNICODE_END;
    if (!accept_literal(t, "\\")) {
        *out = read_code_point(t);
        return CX_SUCCESS;
    }
    CX_TRY(put_set(t, true, &known));
    if (known)
        return CX_SUCCESS;
    CX_TRY(read_character_escape(t, true, out, &known));
    return known ? CX_SUCCESS : pattern_error(t, start, "an escape that means nothing");
}

static cx_status put_class(translation *t)
{
    size_t start = t->at++;
    bool negated = accept_literal(t, "^");
    if (accept_literal(t, "]")) {
        cx_buf_add_z(t->out, negated ? "(?s:.)" : "(?:(?!))");
        return CX_SUCCESS;
    }
    cx_buf_add_z(t->out, negated ? "[^" : "[");
    while (!accept_literal(t, "]")) {
        uint32_t low, high;
        size_t at = t->at;
        if (at == t->text.size)
            return pattern_error(t, start, "a class without its ']'");
        CX_TRY(read_class_member(t, &low));
        bool range = peek_byte(t, 0) == '-' && peek_byte(t, 1) != ']' && peek_byte(t, 1) != -1;
        if (!range) {
            if (low != UNICODE_END)
                put_code(t, low);
            continue;
        }
        t->at++;
        if (low == UNICODE_END)
            return pattern_error(t, at, "a range that begins with a set");
        /* What the end writes, if it is a set, is thrown away with the pattern. */
        CX_TRY(read_class_member(t, &high));
        if (high == UNICODE_END)
            return pattern_error(t, at, "a range that ends in a set");
        if (low > high)
            return pattern_error(t, at, "a range that runs backwards");
        put_code(t, low);
        cx_buf_add_byte(t->out, '-');
        put_code(t, high);
    }
    cx_buf_add_byte(t->out, ']');
    return CX_SUCCESS;
}

/* --- quantifiers ------------------------------------------------------------------------------ */

static bool read_number(const translation *t, size_t *ahead, uint32_t *out)
{
    uint64_t value = 0;
    size_t start = *ahead;
    for (; is_digit(peek_byte(t, *ahead)); *ahead += 1)
        value = value > REPEAT_MAX ? value : value * 10 + (uint64_t)(peek_byte(t, *ahead) - '0');
    *out = value > REPEAT_MAX ? REPEAT_MAX + 1 : (uint32_t)value;
    return *ahead > start;
}

/* {n} {n,} {n,m}; nothing is taken when it is only a brace. */
static cx_status put_counted(translation *t, bool *out_known)
{
    size_t ahead = 1;
    uint32_t low, high = 0;
    *out_known = false;
    if (!read_number(t, &ahead, &low))
        return CX_SUCCESS;
    bool open = false, comma = peek_byte(t, ahead) == ',';
    if (comma) {
        ahead++;
        open = !read_number(t, &ahead, &high);
    }
    if (peek_byte(t, ahead) != '}')
        return CX_SUCCESS;
    if (low > REPEAT_MAX || high > REPEAT_MAX)
        return cx_fail_at(t->err, CX_E_UNSUPPORTED, "PatternLimit", t->at,
                          "the pattern repeats more than %d times at byte %zu", REPEAT_MAX, t->at);
    if (comma && !open && low > high)
        return pattern_error(t, t->at, "a quantifier that runs backwards");
    *out_known = true;
    t->at += ahead + 1;
    if (!comma)
        cx_buf_printf(t->out, "{%u}", (unsigned)low);
    else if (open)
        cx_buf_printf(t->out, "{%u,}", (unsigned)low);
    else
        cx_buf_printf(t->out, "{%u,%u}", (unsigned)low, (unsigned)high);
    return CX_SUCCESS;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* After a backslash outside of classes; *out_atom: it can be repeated. */
static cx_status put_escape(translation *t, bool *out_atom)
{
    size_t start = t->at++;
    uint32_t code;
    bool known;
    int byte = peek_byte(t, 0);
    *out_atom = true;
    if (byte == 'b' || byte == 'B') {
        cx_buf_printf(t->out, "\\%c", byte);
        t->at++;
        *out_atom = false;
        return CX_SUCCESS;
    }
    if (byte == 'k' || (byte >= '1' && byte <= '9'))
        return put_reference(t);
    CX_TRY(put_set(t, false, &known));
    if (known)
        return CX_SUCCESS;
    CX_TRY(read_character_escape(t, false, &code, &known));
    if (!known)
        return pattern_error(t, start, "an escape that means nothing");
    put_code(t, code);
    return CX_SUCCESS;
}

/* One quantifier when there is one. */
static cx_status put_quantifier(translation *t, bool atom, bool *out_known)
{
    size_t start = t->at;
    int byte = peek_byte(t, 0);
    *out_known = false;
    if (byte == '{') {
        size_t mark = t->out->size;
        CX_TRY(put_counted(t, out_known));
        if (*out_known && !atom) {
            t->out->size = mark;
            return pattern_error(t, start, "a quantifier with nothing in front of it");
        }
    } else if (byte == '*' || byte == '+' || byte == '?') {
        if (!atom)
            return pattern_error(t, start, "a quantifier with nothing in front of it");
        cx_buf_add_byte(t->out, (uint8_t)byte);
        t->at++;
        *out_known = true;
    }
    if (*out_known && accept_literal(t, "?"))
        cx_buf_add_byte(t->out, '?');
    return CX_SUCCESS;
}

static cx_status put_pattern(translation *t)
{
    bool atom = false; /* what was written last can be repeated */
    while (t->at < t->text.size) {
        bool quantifier;
        CX_TRY(put_quantifier(t, atom, &quantifier));
        if (quantifier) {
            atom = false;
            continue;
        }
        int byte = peek_byte(t, 0);
        atom = true;
        if (byte == '\\') {
            CX_TRY(put_escape(t, &atom));
        } else if (byte == '[') {
            CX_TRY(put_class(t));
        } else if (byte == '(') {
            CX_TRY(put_group_start(t));
            atom = false;
        } else if (byte == ')') {
            if (t->open == 0)
                return pattern_error(t, t->at, "a ')' without its '('");
            t->open--;
            t->at++;
            cx_buf_add_byte(t->out, ')');
        } else if (byte == '|' || byte == '^' || byte == '$') {
            cx_buf_add_byte(t->out, (uint8_t)byte);
            t->at++;
            atom = false;
        } else if (byte == '.') {
            cx_buf_add_z(t->out, "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]");
            t->at++;
        } else {
            put_code(t, read_code_point(t));
        }
    }
    return t->open == 0 ? CX_SUCCESS : pattern_error(t, t->at, "a '(' without its ')'");
}

cx_status cx_pattern_translate(cx_str pattern, cx_buf *out, cx_err *err)
{
    if (pattern.size > CX_PATTERN_BYTES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "PatternLimit", CX_NO_OFFSET,
                          "the pattern has %zu bytes, more than %d", pattern.size,
                          CX_PATTERN_BYTES_MAX);
    size_t valid = cx_utf8_valid_prefix(pattern);
    if (valid != pattern.size)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "PatternSurrogate", valid,
                          "the pattern is no UTF-8 at byte %zu", valid);
    translation t = {.text = pattern, .out = out, .err = err};
    CX_TRY(find_groups(&t));
    CX_TRY(put_pattern(&t));
    return cx_buf_check(out, err);
}

/* The translation escapes every backslash that stands for itself, so one that does not follow
 * another begins an escape. */
cx_status cx_pattern_spell_older(cx_str translated, cx_buf *out, cx_err *err)
{
    size_t from = 0;
    for (size_t i = 0; i + 1 < translated.size; i++) {
        if (translated.data[i] != '\\')
            continue;
        i++;
        cx_str rest = {translated.data + i + 1, translated.size - i - 1};
        if (translated.data[i] != 'p' && translated.data[i] != 'P')
            continue;
        if (cx_str_starts(rest, CX_STR("{scx:")))
            return cx_fail_at(err, CX_E_UNSUPPORTED, "PatternUnsupported", CX_NO_OFFSET,
                              "the pattern has \\p{Script_Extensions=..}: PCRE2 10.40 or newer is "
                              "needed");
        if (!cx_str_starts(rest, CX_STR("{sc:")))
            continue;
        cx_buf_add(out, translated.data + from, i + 2 - from);
        from = i + 2 + sizeof "sc:" - 1;
    }
    cx_buf_add(out, translated.data + from, translated.size - from);
    return cx_buf_check(out, err);
}
