/*
 * tests_report_junit.c - JUnit's XML, as test runners write it.
 *
 *     <?xml version="1.0" encoding="utf-8"?>
 *     <testsuites>
 *       <testsuite name="pytest" errors="0" failures="0" skipped="1" tests="2">
 *         <testcase classname="test_refund" name="test_half"/>
 *         <testcase classname="test_refund" name="test_later"><skipped message="slow"/></testcase>
 *       </testsuite>
 *     </testsuites>
 *
 * The subset of XML 1.0 that such files use: elements, attributes, text, the five entities and
 * character references, comments, CDATA and processing instructions.
 *
 *   J1 No document type: nothing is declared, expanded or fetched.
 *   J2 The document is well-formed; unknown elements are skipped and have no effect.
 *   J3 A suite that counts failures which none of its cases shows is a failure.
 */
#include <string.h>

#include "base/api.h"
#include "rules/tests_report_parts.h"

enum { ATTRIBUTES_MAX = 64 };

typedef enum element_kind {
    ELEMENT_OTHER,
    ELEMENT_SUITES,
    ELEMENT_SUITE,
    ELEMENT_CASE,
    ELEMENT_FAILED, /* <failure>, <error> */
    ELEMENT_SKIPPED
} element_kind;

typedef struct element {
    cx_str name;
    element_kind kind;
} element;

typedef struct attribute {
    cx_str name, raw; /* the value with its references not yet decoded */
} attribute;

typedef struct junit {
    cx_tests_reader *r;
    element open[CX_TESTS_DEPTH_MAX];
    size_t depth;
    attribute attributes[ATTRIBUTES_MAX];
    size_t attribute_count;
    cx_str case_class, case_name; /* of the open testcase */
    bool case_failed, case_skipped;
    bool suites_failed; /* J3 */
    bool rooted;
} junit;

/* --- bytes ------------------------------------------------------------------------------------ */

static int peek_byte(const junit *j)
{
    const cx_tests_reader *r = j->r;
    return r->at == r->text.size ? -1 : (uint8_t)r->text.data[r->at];
}

static void advance(junit *j, size_t count)
{
    for (; count != 0 && j->r->at < j->r->text.size; count--)
        j->r->line += j->r->text.data[j->r->at++] == '\n';
}

static bool accept_text(junit *j, const char *text)
{
    size_t size = strlen(text);
    if (j->r->text.size - j->r->at < size || memcmp(j->r->text.data + j->r->at, text, size) != 0)
        return false;
    advance(j, size);
    return true;
}

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool skip_space(junit *j)
{
    size_t start = j->r->at;
    while (is_space(peek_byte(j)))
        advance(j, 1);
    return j->r->at != start;
}

/* XML 1.0 §2.2, for text that is valid UTF-8. */
static bool is_character(uint32_t code)
{
    return code == '\t' || code == '\n' || code == '\r' ||
           (code >= 0x20 && code != 0xFFFE && code != 0xFFFF && (code < 0xD800 || code > 0xDFFF) &&
            code <= 0x10FFFF);
}

static bool is_name_byte(int c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' || c >= 0x80 ||
           (!first && ((c >= '0' && c <= '9') || c == '-' || c == '.'));
}

static cx_status read_name(junit *j, cx_str *out)
{
    size_t start = j->r->at;
    while (is_name_byte(peek_byte(j), j->r->at == start))
        advance(j, 1);
    *out = cx_str_from(j->r->text.data + start, j->r->at - start);
    return out->size == 0 || out->size > 256 ? cx_tests_fail(j->r, "a name was expected")
                                             : CX_SUCCESS;
}

/* Advances past the next `end`. */
static cx_status skip_past(junit *j, const char *end, const char *what)
{
    while (peek_byte(j) >= 0) {
        if (accept_text(j, end))
            return CX_SUCCESS;
        advance(j, 1);
    }
    return cx_tests_fail(j->r, "%s has no end", what);
}

/* --- references ------------------------------------------------------------------------------- */

/* Decodes a reference such as "&lt;" at the start of `text`: the character and its size, 0 for
 * none. */
static size_t read_reference(cx_str text, uint32_t *out)
{
    static const struct {
        const char *name;
        uint32_t code;
    } known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < CX_COUNT_OF(known); i++)
        if (cx_str_starts(text, cx_str_z(known[i].name))) {
            *out = known[i].code;
            return strlen(known[i].name);
        }
    bool hex = cx_str_starts(text, CX_STR("&#x"));
    if (!hex && !cx_str_starts(text, CX_STR("&#")))
        return 0;
    uint32_t code = 0;
    for (size_t at = hex ? 3 : 2; at < text.size && at < 12; at++) {
        int c = (uint8_t)text.data[at];
        if (c == ';')
            return at > (hex ? 3u : 2u) && is_character(code) ? (*out = code, at + 1) : 0;
        int digit = c >= '0' && c <= '9'          ? c - '0'
                    : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                  : -1;
        if (digit < 0)
            return 0;
        code = code * (hex ? 16 : 10) + (uint32_t)digit;
        if (code > 0x10FFFF)
            return 0;
    }
    return 0;
}

static cx_status read_text_reference(junit *j)
{
    uint32_t code;
    size_t size =
        read_reference(cx_str_from(j->r->text.data + j->r->at, j->r->text.size - j->r->at), &code);
    if (size == 0)
        return cx_tests_fail(j->r, "a reference is none of the five, and no character");
    advance(j, size);
    return CX_SUCCESS;
}

/* Decodes a value whose references read_value has validated. */
static cx_status decode_value(junit *j, cx_str raw, cx_str *out)
{
    char *text = cx_arena_push(j->r->arena, raw.size + 1, 1);
    size_t used = 0;
    if (text == NULL)
        return cx_fail_nomem(j->r->err);
    for (size_t at = 0; at < raw.size;) {
        uint32_t code;
        size_t size = raw.data[at] == '&'
                          ? read_reference(cx_str_from(raw.data + at, raw.size - at), &code)
                          : 0;
        if (size == 0) {
            text[used++] = raw.data[at++];
            continue;
        }
        uint8_t bytes[4];
        size_t count = cx_utf8_encode(code, bytes); /* never longer than the reference */
        memcpy(text + used, bytes, count);
        used += count;
        at += size;
    }
    *out = cx_str_from(text, used);
    return CX_SUCCESS;
}

/* --- attributes ------------------------------------------------------------------------------- */

static cx_status read_value(junit *j, cx_str *out)
{
    int quote = peek_byte(j);
    if (quote != '"' && quote != '\'')
        return cx_tests_fail(j->r, "an attribute has no quoted value");
    advance(j, 1);
    size_t start = j->r->at;
    while (peek_byte(j) != quote) {
        if (peek_byte(j) < 0 || peek_byte(j) == '<')
            return cx_tests_fail(j->r, "the value of an attribute has no end");
        if (peek_byte(j) == '&')
            CX_TRY(read_text_reference(j));
        else
            advance(j, 1);
    }
    *out = cx_str_from(j->r->text.data + start, j->r->at - start);
    advance(j, 1);
    return CX_SUCCESS;
}

static cx_str raw_attribute(const junit *j, const char *name)
{
    for (size_t i = 0; i < j->attribute_count; i++)
        if (cx_str_is(j->attributes[i].name, name))
            return j->attributes[i].raw;
    return cx_str_from(NULL, 0);
}

static cx_status read_attribute(junit *j)
{
    attribute one;
    CX_TRY(read_name(j, &one.name));
    (void)skip_space(j);
    if (!accept_text(j, "="))
        return cx_tests_fail(j->r, "an attribute has no value");
    (void)skip_space(j);
    CX_TRY(read_value(j, &one.raw));
    for (size_t i = 0; i < j->attribute_count; i++)
        if (cx_str_eq(j->attributes[i].name, one.name))
            return cx_tests_fail(j->r, "an attribute is given twice");
    if (j->attribute_count == ATTRIBUTES_MAX)
        return cx_fail(j->r->err, CX_E_LIMIT, "line %zu: an element has over %d attributes",
                       j->r->line, ATTRIBUTES_MAX);
    j->attributes[j->attribute_count++] = one;
    return CX_SUCCESS;
}

/* --- elements --------------------------------------------------------------------------------- */

static element_kind element_kind_of(cx_str name)
{
    static const struct {
        const char *name;
        element_kind kind;
    } known[] = {{"testsuites", ELEMENT_SUITES}, {"testsuite", ELEMENT_SUITE},
                 {"testcase", ELEMENT_CASE},     {"failure", ELEMENT_FAILED},
                 {"error", ELEMENT_FAILED},      {"skipped", ELEMENT_SKIPPED}};
    for (size_t i = 0; i < CX_COUNT_OF(known); i++)
        if (cx_str_is(name, known[i].name))
            return known[i].kind;
    return ELEMENT_OTHER;
}

static element_kind parent_kind(const junit *j)
{
    return j->depth == 0 ? ELEMENT_OTHER : j->open[j->depth - 1].kind;
}

/* J3 */ static cx_status check_suite_counts(junit *j)
{
    static const char *const names[] = {"failures", "errors"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_str raw = raw_attribute(j, names[i]);
        uint32_t count = 0;
        if (raw.data != NULL && !cx_tests_number(raw, &count))
            return cx_tests_fail(j->r, "%s is no number", names[i]);
        j->suites_failed = j->suites_failed || count != 0;
    }
    return CX_SUCCESS;
}

/* CTest and GoogleTest report the state in an attribute, too; GoogleTest reports disabled tests
 * only there. */
static const char *const failed_words[] = {"fail", "failed", "failure", "error"};
static const char *const skipped_words[] = {"notrun", "disabled", "skipped", "suppressed",
                                            "ignored"};

static bool case_has_status(const junit *j, const char *const *words, size_t count)
{
    cx_str status = raw_attribute(j, "status"), result = raw_attribute(j, "result");
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(status, words[i]) || cx_str_is(result, words[i]))
            return true;
    return false;
}

static cx_status begin_case(junit *j)
{
    element_kind over = parent_kind(j);
    if (over != ELEMENT_SUITE && over != ELEMENT_SUITES)
        return cx_tests_fail(j->r, "a testcase is in no suite");
    CX_TRY(decode_value(j, raw_attribute(j, "classname"), &j->case_class));
    CX_TRY(decode_value(j, raw_attribute(j, "name"), &j->case_name));
    j->case_failed = case_has_status(j, failed_words, CX_COUNT_OF(failed_words));
    j->case_skipped = case_has_status(j, skipped_words, CX_COUNT_OF(skipped_words));
    return CX_SUCCESS;
}

static cx_status begin_element(junit *j, element_kind kind)
{
    element_kind over = parent_kind(j);
    if (j->depth == 0 && kind != ELEMENT_SUITES && kind != ELEMENT_SUITE)
        return cx_tests_fail(j->r, "the document is neither testsuites nor testsuite");
    switch (kind) {
    case ELEMENT_SUITES:
    case ELEMENT_SUITE:
        if (j->depth != 0 && over != ELEMENT_SUITES && over != ELEMENT_SUITE)
            return cx_tests_fail(j->r, "a suite is in something else");
        return check_suite_counts(j);
    case ELEMENT_CASE: return begin_case(j);
    case ELEMENT_FAILED:
        j->case_failed = j->case_failed || over == ELEMENT_CASE;
        /* A failure of a suite: its setup failed. */
        j->suites_failed = j->suites_failed || over == ELEMENT_SUITE || over == ELEMENT_SUITES;
        break;
    case ELEMENT_SKIPPED: j->case_skipped = j->case_skipped || over == ELEMENT_CASE; break;
    case ELEMENT_OTHER: break;
    }
    return CX_SUCCESS;
}

static cx_status end_element(junit *j, element_kind kind)
{
    if (kind != ELEMENT_CASE)
        return CX_SUCCESS;
    return cx_tests_add(j->r, j->case_class, ".", j->case_name,
                        j->case_failed    ? CX_TEST_FAILED
                        : j->case_skipped ? CX_TEST_SKIPPED
                                          : CX_TEST_PASSED);
}

static cx_status read_start(junit *j)
{
    cx_str name;
    CX_TRY(read_name(j, &name));
    j->attribute_count = 0;
    while (skip_space(j) && peek_byte(j) != '>' && peek_byte(j) != '/')
        CX_TRY(read_attribute(j));
    bool empty = accept_text(j, "/");
    if (!accept_text(j, ">"))
        return cx_tests_fail(j->r, "a tag has no end");
    if (j->depth == CX_TESTS_DEPTH_MAX)
        return cx_fail(j->r->err, CX_E_LIMIT, "line %zu: elements are nested more than %d deep",
                       j->r->line, CX_TESTS_DEPTH_MAX);
    if (j->depth == 0 && j->rooted)
        return cx_tests_fail(j->r, "something follows the document");
    element_kind kind = element_kind_of(name);
    CX_TRY(begin_element(j, kind));
    j->rooted = true;
    if (empty)
        return end_element(j, kind);
    j->open[j->depth++] = (element){name, kind};
    return CX_SUCCESS;
}

static cx_status read_end(junit *j)
{
    cx_str name;
    CX_TRY(read_name(j, &name));
    (void)skip_space(j);
    if (!accept_text(j, ">"))
        return cx_tests_fail(j->r, "a tag has no end");
    if (j->depth == 0 || !cx_str_eq(j->open[j->depth - 1].name, name))
        return cx_tests_fail(j->r, "</%.*s> ends what is not open", cx_tests_shown(name),
                             name.data);
    return end_element(j, j->open[--j->depth].kind);
}

static cx_status read_comment(junit *j)
{
    CX_TRY(skip_past(j, "--", "a comment"));
    return accept_text(j, ">") ? CX_SUCCESS : cx_tests_fail(j->r, "a comment has '--' in it");
}

static cx_status read_markup(junit *j)
{
    if (accept_text(j, "<!--"))
        return read_comment(j);
    if (j->depth != 0 && accept_text(j, "<![CDATA["))
        return skip_past(j, "]]>", "a CDATA section");
    if (accept_text(j, "<?"))
        return skip_past(j, "?>", "a processing instruction");
    if (accept_text(j, "</"))
        return read_end(j);
    if (accept_text(j, "<!")) /* J1 */
        return cx_tests_fail(j->r, "a document type or declaration is refused");
    advance(j, 1);
    return read_start(j);
}

static cx_status read_text(junit *j)
{
    if (peek_byte(j) == '&' && j->depth != 0)
        return read_text_reference(j);
    if (j->depth == 0 && !is_space(peek_byte(j)))
        return cx_tests_fail(j->r, "text is outside of the document");
    advance(j, 1);
    return CX_SUCCESS;
}

/* Checks that XML allows every character of the file. */
static cx_status check_characters(cx_tests_reader *r)
{
    size_t line = 1;
    for (size_t at = 0, size; at < r->text.size; at += size) {
        uint32_t code = cx_utf8_decode((const uint8_t *)r->text.data + at, &size);
        line += code == '\n';
        if (!is_character(code))
            return cx_fail(r->err, CX_E_FORMAT, "line %zu: U+%04X cannot be in XML", line,
                           (unsigned)code);
    }
    return CX_SUCCESS;
}

cx_status cx_tests_read_junit(cx_tests_reader *r)
{
    junit j = {.r = r};
    CX_TRY(check_characters(r));
    r->line = 1;
    (void)accept_text(&j, "\xEF\xBB\xBF");
    while (peek_byte(&j) >= 0)
        CX_TRY(peek_byte(&j) == '<' ? read_markup(&j) : read_text(&j));
    if (j.depth != 0 || !j.rooted)
        return cx_tests_fail(r, "the document has no end");
    for (size_t i = 0; i < r->tests.count; i++)
        if (r->tests.items[i].state == CX_TEST_FAILED)
            return CX_SUCCESS;
    return j.suites_failed ? cx_tests_fail(r, "a suite tells of failures, and no test of it failed")
                           : CX_SUCCESS;
}
