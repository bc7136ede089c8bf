/*
 * tests_report_tap.c - the Test Anything Protocol, versions 13 and 14, with subtests.
 *
 *     TAP version 13
 *     # Subtest: parent                   comments are ignored
 *         ok 1 - child                    a subtest is indented by four spaces and has its own plan
 *         1..1
 *     ok 1 - parent                       the point that the subtests belong to
 *       ---                               indented by two spaces: YAML, up to its "..."
 *       ...
 *     not ok 2 - other # TODO reason      SKIP and TODO: skipped, passed or not
 *     1..2
 *
 *   T1  Each level has exactly one plan, and as many points as it states.  Numbers of points are
 *       not compared: node numbers them wrongly when there are several files.
 */
#include <string.h>

#include "rules/tests_report_parts.h"

typedef struct level {
    bool planned;
    uint32_t plan, points;
    bool open;    /* subtests were read and their point is expected */
    size_t first; /* the first test that belongs to this level's next point, when `open` */
} level;

typedef struct tap {
    cx_tests_reader *r;
    level levels[CX_TESTS_DEPTH_MAX];
    size_t depth;     /* of the current level */
    bool after_point; /* YAML may follow */
} tap;

static size_t count_spaces(cx_str line)
{
    size_t count = 0;
    while (count < line.size && line.data[count] == ' ')
        count++;
    return count;
}

static cx_str text_after(cx_str text, size_t count)
{
    return cx_str_from(text.data + count, text.size - count);
}

static cx_str trimmed(cx_str text)
{
    while (text.size != 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = text_after(text, 1);
    while (text.size != 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static bool starts_folded(cx_str text, const char *lower)
{
    for (size_t i = 0; lower[i] != 0; i++) {
        if (i == text.size)
            return false;
        char c = text.data[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != lower[i])
            return false;
    }
    return true;
}

static cx_status check_plan(tap *t, const level *l)
{
    if (l->open)
        return cx_tests_fail(t->r, "subtests end without the point that they belong to");
    if (!l->planned)
        return cx_tests_fail(t->r, "there is no plan (1..N) for the tests above");
    if (l->plan != l->points)
        return cx_tests_fail(t->r, "the plan is %u tests, but there are %u", l->plan, l->points);
    return CX_SUCCESS;
}

/* Changes to the level of a line. */
static cx_status enter_level(tap *t, size_t depth)
{
    for (; t->depth > depth; t->depth--)
        CX_TRY(check_plan(t, &t->levels[t->depth]));
    if (depth == t->depth)
        return CX_SUCCESS;
    level *above = &t->levels[t->depth];
    if (depth != t->depth + 1 || depth >= CX_TESTS_DEPTH_MAX)
        return cx_tests_fail(t->r, "it is %zu levels too far in", depth - t->depth);
    if (above->open)
        return cx_tests_fail(t->r, "subtests begin before those above have their point");
    above->open = true;
    above->first = t->r->tests.count;
    t->levels[++t->depth] = (level){0};
    return CX_SUCCESS;
}

/* Splits a description at an unescaped " #" from its directive. */
static cx_str split_directive(cx_str text, cx_str *out_directive)
{
    *out_directive = cx_str_from(NULL, 0);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\\' && i + 1 < text.size) {
            i++;
            continue;
        }
        if (text.data[i] == '#' && (i == 0 || text.data[i - 1] == ' ')) {
            *out_directive = trimmed(text_after(text, i + 1));
            text.size = i;
        }
    }
    return trimmed(text);
}

static cx_status read_point(tap *t, cx_str text, bool ok)
{
    cx_str directive;
    level *l = &t->levels[t->depth];
    text = trimmed(text);
    size_t digits = 0;
    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    if (digits != 0 && (digits == text.size || text.data[digits] == ' '))
        text = trimmed(text_after(text, digits));
    if (cx_str_starts(text, CX_STR("- ")))
        text = text_after(text, 2);
    cx_str name = split_directive(text, &directive);
    bool skipped = starts_folded(directive, "skip") || starts_folded(directive, "todo");
    cx_tests_state state = skipped ? CX_TEST_SKIPPED : ok ? CX_TEST_PASSED : CX_TEST_FAILED;
    if (name.size == 0)
        name = CX_STR("(no name)");
    l->points++;
    t->after_point = true;
    if (!l->open)
        return cx_tests_add(t->r, CX_STR(""), "", name, state);
    l->open = false;
    CX_TRY(cx_tests_group(t->r, l->first, name));
    /* A point with subtests is no test, but it can fail when all its subtests passed. */
    return state == CX_TEST_FAILED ? cx_tests_add(t->r, CX_STR(""), "", name, state) : CX_SUCCESS;
}

static cx_status read_plan(tap *t, cx_str text)
{
    cx_str directive;
    level *l = &t->levels[t->depth];
    cx_str count = split_directive(text, &directive);
    if (l->planned)
        return cx_tests_fail(t->r, "there is a second plan");
    if (!cx_tests_number(count, &l->plan))
        return cx_tests_fail(t->r, "the plan has no number of tests");
    l->planned = true;
    return CX_SUCCESS;
}

static cx_status skip_yaml(tap *t, size_t indent)
{
    cx_str line;
    size_t start = t->r->line;
    while (cx_tests_line(t->r, &line))
        if (count_spaces(line) == indent && cx_str_is(text_after(line, indent), "..."))
            return CX_SUCCESS;
    return cx_tests_fail(t->r, "the block that line %zu begins has no end", start);
}

static cx_status read_statement(tap *t, cx_str text)
{
    if (cx_str_is(text, "ok") || cx_str_starts(text, CX_STR("ok ")))
        return read_point(t, text_after(text, 2), true);
    if (cx_str_is(text, "not ok") || cx_str_starts(text, CX_STR("not ok ")))
        return read_point(t, text_after(text, 6), false);
    if (cx_str_starts(text, CX_STR("1..")))
        return read_plan(t, text_after(text, 3));
    if (starts_folded(text, "bail out!"))
        return cx_tests_fail(t->r, "the run bailed out");
    if (cx_str_starts(text, CX_STR("pragma ")))
        return CX_SUCCESS;
    return cx_tests_fail(t->r, "'%.*s' is no line of TAP", cx_tests_shown(text), text.data);
}

static cx_status read_line(tap *t, cx_str line)
{
    size_t indent = count_spaces(line);
    cx_str text = text_after(line, indent);
    bool may_be_yaml = t->after_point;
    t->after_point = false;
    if (text.size == 0 || text.data[0] == '#')
        return CX_SUCCESS;
    if (may_be_yaml && indent == 4 * t->depth + 2 && cx_str_is(text, "---"))
        return skip_yaml(t, indent);
    if (indent % 4 != 0)
        return cx_tests_fail(t->r, "it begins with %zu spaces, which is no level of subtests",
                             indent);
    CX_TRY(enter_level(t, indent / 4));
    return read_statement(t, text);
}

cx_status cx_tests_read_tap(cx_tests_reader *r)
{
    cx_str line = {NULL, 0};
    tap t = {.r = r};
    if (!cx_tests_line(r, &line) ||
        !(cx_str_is(line, "TAP version 13") || cx_str_is(line, "TAP version 14")))
        return cx_tests_fail(r, "it does not begin with 'TAP version 13' or 14");
    while (cx_tests_line(r, &line))
        CX_TRY(read_line(&t, line));
    CX_TRY(enter_level(&t, 0));
    return check_plan(&t, &t.levels[0]);
}
