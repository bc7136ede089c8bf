/*
 * tests_report_lines.c - reports of go and cargo, which are read from the standard output.
 *
 *     {"Time":"..","Action":"pass","Package":"example.org/refund","Test":"TestHalf","Elapsed":0}
 *
 *     running 2 tests
 *     test tests::halves ... ok
 *     test tests::later ... ignored, slow
 *
 *     test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
 */
#include <inttypes.h>
#include <string.h>

#include "base/api.h"
#include "json/api.h"
#include "rules/tests_report_parts.h"

/* --- go test -json ---------------------------------------------------------------------------- */

typedef struct go_reader {
    cx_tests_reader *r;
    cx_json_parser parser;
    cx_arena line;  /* for the values of one line */
    cx_map unended; /* "package" and "package\ntest": 1 = begun and not ended yet */
    uint64_t begun, ended;
} go_reader;

static bool is_one_of(cx_str text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(text, names[i]))
            return true;
    return false;
}

/* Each test must end exactly once after it begins: a program that exits in between has not run its
 * tests. */
static cx_status mark_go_test(go_reader *g, cx_str package, cx_str test, bool ends)
{
    uint64_t *value;
    bool is_new;
    cx_str key = test.size == 0 ? cx_arena_copy_str(g->r->arena, package)
                                : cx_arena_printf(g->r->arena, "%.*s\n%.*s", (int)package.size,
                                                  package.data, (int)test.size, test.data);
    if (key.data == NULL)
        return cx_fail_nomem(g->r->err);
    CX_TRY(cx_map_put(&g->unended, key, &value, &is_new, g->r->err));
    if (!ends && *value == 0)
        g->begun++;
    else if (ends && *value != 0)
        g->ended++;
    else if (ends && test.size != 0)
        return cx_tests_fail(g->r, "the test %.*s ends and did not begin", cx_tests_shown(test),
                             test.data);
    *value = ends ? 0 : 1;
    return CX_SUCCESS;
}

static cx_status end_go_test(go_reader *g, cx_str package, cx_str test, cx_str action)
{
    cx_tests_state state = cx_str_is(action, "pass")   ? CX_TEST_PASSED
                           : cx_str_is(action, "fail") ? CX_TEST_FAILED
                                                       : CX_TEST_SKIPPED;
    CX_TRY(mark_go_test(g, package, test, true));
    if (test.size != 0)
        return cx_tests_add(g->r, package, ".", test, state);
    /* A failed package counts as an additional failure: its tests may not have been built. */
    return state == CX_TEST_FAILED ? cx_tests_add(g->r, CX_STR(""), "", package, CX_TEST_FAILED)
                                   : CX_SUCCESS;
}

static cx_status read_go_event(go_reader *g, const cx_json *event)
{
    static const char *const ends[] = {"pass", "fail", "skip"};
    static const char *const silent[] = {"pause", "cont", "output", "bench", "attr", "artifacts"};
    cx_str action = CX_JSON_GET_STR(event, "Action");
    cx_str package = CX_JSON_GET_STR(event, "Package");
    cx_str test = CX_JSON_GET_STR(event, "Test");
    if (event->type != CX_JSON_OBJECT || action.size == 0)
        return cx_tests_fail(g->r, "it is no event of go test");
    if ((event->flags & CX_JSON_SURROGATE) != 0)
        return cx_tests_fail(g->r, "a text has half of a character");
    if (cx_str_is(action, "build-output"))
        return CX_SUCCESS;
    if (cx_str_is(action, "build-fail"))
        return cx_tests_fail(g->r, "a package could not be built");
    if (package.size == 0 || package.size > CX_TESTS_NAME_BYTES_MAX ||
        test.size > CX_TESTS_NAME_BYTES_MAX)
        return cx_tests_fail(g->r, "the event has no package, or a name that is too long");
    if (cx_str_is(action, "start") || cx_str_is(action, "run"))
        return mark_go_test(g, package, test, false);
    if (is_one_of(action, ends, CX_COUNT_OF(ends)))
        return end_go_test(g, package, test, action);
    if (is_one_of(action, silent, CX_COUNT_OF(silent)))
        return CX_SUCCESS;
    return cx_tests_fail(g->r, "'%.*s' is no action of go test", cx_tests_shown(action),
                         action.data);
}

static cx_status read_go_lines(go_reader *g)
{
    cx_str line;
    cx_json event;
    cx_err why = {0};
    while (cx_tests_line(g->r, &line)) {
        cx_arena_mark mark = cx_arena_mark_now(&g->line);
        cx_status status = cx_json_parse(&g->parser, line, &g->line, &event, &why);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(g->r->err);
        if (cx_failed(status))
            return cx_tests_fail(g->r, "it is not JSON");
        CX_TRY(read_go_event(g, &event));
        cx_arena_reset(&g->line, mark);
    }
    if (g->begun != g->ended)
        return cx_tests_fail(g->r, "of what began, %" PRIu64 " did not end", g->begun - g->ended);
    return CX_SUCCESS;
}

cx_status cx_tests_read_go_json(cx_tests_reader *r)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    go_reader g = {.r = r};
    limits.depth = 4;
    cx_json_parser_init(&g.parser, r->arena->alloc, &limits);
    cx_arena_init(&g.line, r->arena->alloc, 0);
    cx_map_init(&g.unended, r->arena->alloc, (uint64_t)(uintptr_t)r->arena);
    cx_status status = read_go_lines(&g);
    cx_map_done(&g.unended);
    cx_arena_done(&g.line);
    cx_json_parser_done(&g.parser);
    return status;
}

/* --- cargo test ------------------------------------------------------------------------------- */

typedef struct cargo_block {
    bool open;
    bool details; /* the output of failed tests, up to the result */
    uint32_t announced, passed, failed, ignored, measured;
} cargo_block;

/* Consumes a number and the label after it at the start of `rest`. */
static bool parse_count(cx_str *rest, const char *label, uint32_t *out)
{
    const char *space = memchr(rest->data, ' ', rest->size);
    if (space == NULL)
        return false;
    size_t size = (size_t)(space - rest->data), more = strlen(label);
    if (!cx_tests_number(cx_str_from(rest->data, size), out) || rest->size - size < more ||
        memcmp(space, label, more) != 0)
        return false;
    *rest = cx_str_from(space + more, rest->size - size - more);
    return true;
}

static cx_status begin_cargo_block(cx_tests_reader *r, cargo_block *b, cx_str rest)
{
    uint32_t count;
    if (b->open)
        return cx_tests_fail(r, "tests begin before those above have a result");
    if (!parse_count(&rest, " test", &count) || !(rest.size == 0 || cx_str_is(rest, "s")))
        return cx_tests_fail(r, "the number of tests cannot be read");
    *b = (cargo_block){.open = true, .announced = count};
    return CX_SUCCESS;
}

/* "ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s" */
static cx_status end_cargo_block(cx_tests_reader *r, cargo_block *b, cx_str rest)
{
    uint32_t passed, failed, ignored, measured, filtered;
    bool ok = cx_str_starts(rest, CX_STR("ok. "));
    size_t size = ok ? 4 : cx_str_starts(rest, CX_STR("FAILED. ")) ? 8 : 0;
    rest = cx_str_from(rest.data + size, rest.size - size);
    if (size == 0 || !parse_count(&rest, " passed; ", &passed) ||
        !parse_count(&rest, " failed; ", &failed) || !parse_count(&rest, " ignored; ", &ignored) ||
        !parse_count(&rest, " measured; ", &measured) ||
        !parse_count(&rest, " filtered out", &filtered))
        return cx_tests_fail(r, "the result of the tests cannot be read");
    if (passed != b->passed || failed != b->failed || ignored != b->ignored ||
        measured != b->measured || ok != (failed == 0))
        return cx_tests_fail(r, "the result is not that of the tests above");
    if ((uint64_t)passed + failed + ignored + measured != b->announced)
        return cx_tests_fail(r, "the number of tests is not the %u that was announced",
                             b->announced);
    b->open = false;
    return CX_SUCCESS;
}

/* The last " ... " of a line: names of documentation tests have spaces. */
static bool split_state(cx_str line, cx_str *out_name, cx_str *out_state)
{
    for (size_t at = line.size; at-- > 0;)
        if (line.size - at > 5 && memcmp(line.data + at, " ... ", 5) == 0) {
            *out_name = cx_str_from(line.data, at);
            *out_state = cx_str_from(line.data + at + 5, line.size - at - 5);
            return true;
        }
    return false;
}

static cx_status read_cargo_test(cx_tests_reader *r, cargo_block *b, cx_str rest)
{
    cx_str name, state;
    if (cx_str_ends(rest, CX_STR(" has been running for over 60 seconds")))
        return CX_SUCCESS;
    if (!split_state(rest, &name, &state))
        return cx_tests_fail(r, "the state of a test cannot be read");
    if (cx_str_is(state, "ok") || cx_str_starts(state, CX_STR("ok <"))) {
        b->passed++;
        return cx_tests_add(r, CX_STR(""), "", name, CX_TEST_PASSED);
    }
    if (cx_str_is(state, "ignored") || cx_str_starts(state, CX_STR("ignored, "))) {
        b->ignored++;
        return cx_tests_add(r, CX_STR(""), "", name, CX_TEST_SKIPPED);
    }
    if (cx_str_is(state, "FAILED") || cx_str_starts(state, CX_STR("FAILED <")) ||
        cx_str_starts(state, CX_STR("FAILED ("))) {
        b->failed++;
        return cx_tests_add(r, CX_STR(""), "", name, CX_TEST_FAILED);
    }
    if (cx_str_starts(state, CX_STR("bench: "))) {
        b->measured++;
        return CX_SUCCESS;
    }
    return cx_tests_fail(r, "'%.*s' is no state of a test", cx_tests_shown(state), state.data);
}

static cx_status read_cargo_line(cx_tests_reader *r, cargo_block *b, cx_str line)
{
    cx_str result = CX_STR("test result: "), test = CX_STR("test "), running = CX_STR("running ");
    if (b->open && cx_str_starts(line, result))
        return end_cargo_block(r, b, cx_str_from(line.data + result.size, line.size - result.size));
    if (line.size == 0 || b->details)
        return CX_SUCCESS;
    if (cx_str_starts(line, running))
        return begin_cargo_block(r, b,
                                 cx_str_from(line.data + running.size, line.size - running.size));
    if (!b->open && cx_str_starts(line, CX_STR("all doctests ran in ")))
        return CX_SUCCESS;
    if (b->open && cx_str_starts(line, test))
        return read_cargo_test(r, b, cx_str_from(line.data + test.size, line.size - test.size));
    if (b->open && (cx_str_is(line, "failures:") || cx_str_is(line, "successes:"))) {
        b->details = true;
        return CX_SUCCESS;
    }
    return cx_tests_fail(r, "'%.*s' is no line of a test's report", cx_tests_shown(line),
                         line.data);
}

cx_status cx_tests_read_cargo(cx_tests_reader *r)
{
    cargo_block block = {0};
    cx_str line;
    while (cx_tests_line(r, &line)) {
        CX_TRY(read_cargo_line(r, &block, line));
        if (!block.open)
            block.details = false;
    }
    if (block.open)
        return cx_tests_fail(r, "tests began, but the result line is missing");
    return CX_SUCCESS;
}
