/*
 * tests_report.c - reports of test runners: what the readers share, and the comparison of two
 * reports.
 *
 * Invariants I1 and I2: tests_report.h.
 */
#include "rules/tests_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/api.h"
#include "rules/tests_report_parts.h"

static const char *const format_names[] = {"", "junit", "tap", "go-json", "cargo"};

cx_tests_format cx_tests_format_parse(cx_str name)
{
    for (size_t i = 1; i < CX_COUNT_OF(format_names); i++)
        if (cx_str_is(name, format_names[i]))
            return (cx_tests_format)i;
    return CX_TESTS_NO_REPORT;
}

const char *cx_tests_format_name(cx_tests_format format)
{
    CX_ASSERT((size_t)format < CX_COUNT_OF(format_names));
    return format_names[format];
}

/* --- what the readers share ------------------------------------------------------------------- */

bool cx_tests_line(cx_tests_reader *r, cx_str *out)
{
    if (r->at == r->text.size)
        return false;
    const char *start = r->text.data + r->at;
    const char *end = memchr(start, '\n', r->text.size - r->at);
    size_t size = end == NULL ? r->text.size - r->at : (size_t)(end - start);
    r->at += size + (end == NULL ? 0 : 1);
    r->line++;
    if (size != 0 && start[size - 1] == '\r')
        size--;
    *out = cx_str_from(start, size);
    return true;
}

cx_status cx_tests_fail(cx_tests_reader *r, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return cx_fail(r->err, CX_E_FORMAT, "line %zu: %s", r->line, what);
}

int cx_tests_shown(cx_str text)
{
    size_t size = text.size;
    if (size > 80)
        for (size = 80; size != 0 && ((uint8_t)text.data[size] & 0xC0) == 0x80;)
            size--;
    return (int)size;
}

bool cx_tests_number(cx_str text, uint32_t *out)
{
    uint32_t value = 0;
    if (text.size == 0 || text.size > 9)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(text.data[i] - '0');
    }
    *out = value;
    return true;
}

/* I2: prefixes of names repeat, so the bytes of all names are counted. */
static cx_status make_test_name(cx_tests_reader *r, cx_str group, const char *between, cx_str name,
                                cx_str *out)
{
    size_t middle = group.size == 0 ? 0 : strlen(between);
    size_t size = group.size + middle + name.size;
    if (name.size == 0)
        return cx_tests_fail(r, "a test has no name");
    if (size > CX_TESTS_NAME_BYTES_MAX)
        return cx_fail(r->err, CX_E_LIMIT, "line %zu: the name of a test is over %u bytes long",
                       r->line, CX_TESTS_NAME_BYTES_MAX);
    r->name_bytes += size;
    if (r->name_bytes > CX_TESTS_NAMES_BYTES_MAX)
        return cx_fail(r->err, CX_E_LIMIT, "the names of all tests are over %u bytes long",
                       CX_TESTS_NAMES_BYTES_MAX);
    char *copy = cx_arena_push(r->arena, size, 1);
    if (copy == NULL)
        return cx_fail_nomem(r->err);
    if (group.size != 0)
        memcpy(copy, group.data, group.size);
    if (middle != 0)
        memcpy(copy + group.size, between, middle);
    memcpy(copy + group.size + middle, name.data, name.size);
    *out = cx_str_from(copy, size);
    return CX_SUCCESS;
}

/* Some runners put absolute paths into names, and a bundle may be checked from another checkout. */
static cx_str remove_root(const cx_tests_reader *r, cx_str name)
{
    size_t used = 0, root = r->root.size;
    char *text = (char *)name.data; /* allocated by make_test_name */
    for (size_t at = 0; at < name.size;) {
        if (root != 0 && name.size - at > root && name.data[at + root] == '/' &&
            memcmp(name.data + at, r->root.data, root) == 0)
            at += root + 1;
        else
            text[used++] = name.data[at++];
    }
    return cx_str_from(text, used);
}

cx_status cx_tests_add(cx_tests_reader *r, cx_str group, const char *between, cx_str name,
                       cx_tests_state state)
{
    cx_str whole;
    CX_TRY(make_test_name(r, group, between, name, &whole));
    if (r->tests.count == CX_TESTS_COUNT_MAX)
        return cx_fail(r->err, CX_E_LIMIT, "it has over %d tests", CX_TESTS_COUNT_MAX);
    cx_tests_one *slot = cx_vec_push(&r->tests, r->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(r->err);
    *slot = (cx_tests_one){remove_root(r, whole), state};
    return CX_SUCCESS;
}

cx_status cx_tests_group(cx_tests_reader *r, size_t first, cx_str group)
{
    CX_ASSERT(first <= r->tests.count);
    for (size_t i = first; i < r->tests.count; i++)
        CX_TRY(make_test_name(r, group, " > ", r->tests.items[i].name, &r->tests.items[i].name));
    return CX_SUCCESS;
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status read_tests(cx_tests_reader *r, cx_tests_format format)
{
    switch (format) {
    case CX_TESTS_JUNIT: return cx_tests_read_junit(r);
    case CX_TESTS_TAP: return cx_tests_read_tap(r);
    case CX_TESTS_GO_JSON: return cx_tests_read_go_json(r);
    case CX_TESTS_CARGO: return cx_tests_read_cargo(r);
    default: return cx_fail(r->err, CX_E_FORMAT, "reports of this format are not known");
    }
}

static cx_status finish_report(cx_tests_reader *r, cx_tests_report *out)
{
    cx_tests_report report = {.count = r->tests.count};
    cx_tests_one *copy = CX_ARENA_ARRAY(r->arena, cx_tests_one, report.count + 1);
    if (copy == NULL)
        return cx_fail_nomem(r->err);
    for (size_t i = 0; i < report.count; i++) {
        copy[i] = r->tests.items[i];
        report.passed += copy[i].state == CX_TEST_PASSED;
        report.failed += copy[i].state == CX_TEST_FAILED;
        report.skipped += copy[i].state == CX_TEST_SKIPPED;
    }
    CX_ASSERT(report.passed + report.failed + report.skipped == report.count);
    report.tests = copy;
    *out = report;
    return CX_SUCCESS;
}

cx_status cx_tests_report_read(cx_tests_format format, cx_str text, cx_str root, cx_arena *arena,
                               cx_tests_report *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_tests_reader r = {.arena = arena, .text = text, .root = root, .err = err};
    if (text.size > CX_TESTS_REPORT_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "it is over %u bytes long", CX_TESTS_REPORT_BYTES_MAX);
    if (text.size == 0)
        return cx_fail(err, CX_E_FORMAT, "it is empty");
    if (!cx_utf8_valid(text))
        return cx_fail(err, CX_E_FORMAT, "byte %zu is not UTF-8", cx_utf8_valid_prefix(text));
    cx_status status = read_tests(&r, format);
    if (!cx_failed(status))
        status = finish_report(&r, out);
    cx_vec_done(&r.tests, arena->alloc);
    return status;
}

/* --- comparing -------------------------------------------------------------------------------- */

enum { SKIPPED_SHIFT = 32 }; /* the counts of one name: passed below, skipped above */

static cx_status count_test_names(cx_map *map, const cx_tests_report *report, cx_err *err)
{
    for (size_t i = 0; i < report->count; i++) {
        uint64_t *value;
        bool is_new;
        if (report->tests[i].state == CX_TEST_FAILED)
            continue;
        CX_TRY(cx_map_put(map, report->tests[i].name, &value, &is_new, err));
        *value += report->tests[i].state == CX_TEST_PASSED ? 1 : UINT64_C(1) << SKIPPED_SHIFT;
    }
    return CX_SUCCESS;
}

cx_status cx_tests_report_regressions(const cx_tests_report *before, const cx_tests_report *now,
                                      cx_arena *arena, const cx_tests_regression **out,
                                      size_t *out_count, cx_err *err)
{
    cx_map map;
    size_t count = 0;
    cx_tests_regression *lost = CX_ARENA_ARRAY(arena, cx_tests_regression, before->passed + 1);
    if (lost == NULL)
        return cx_fail_nomem(err);
    cx_map_init(&map, arena->alloc, cx_io_seed(cx_io_system()));
    cx_status status = count_test_names(&map, now, err);
    for (size_t i = 0; i < before->count && !cx_failed(status); i++) {
        const cx_tests_one *one = &before->tests[i];
        uint64_t *left = one->state == CX_TEST_PASSED ? cx_map_find(&map, one->name) : NULL;
        if (one->state != CX_TEST_PASSED)
            continue;
        if (left != NULL && (uint32_t)*left != 0) {
            --*left;
            continue;
        }
        bool skipped = left != NULL && *left >> SKIPPED_SHIFT != 0;
        if (skipped)
            *left -= UINT64_C(1) << SKIPPED_SHIFT;
        lost[count++] = (cx_tests_regression){one->name, skipped};
    }
    cx_map_done(&map);
    CX_TRY(status);
    *out = lost;
    *out_count = count;
    return CX_SUCCESS;
}
