/*
 * test_tests_report.c - reports of test runners: read whole or not at all, and compared.
 */
#include "rules/tests_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "bundle/tests_demand.h"
#include "tests/support/fault.h"
#include "tests/test.h"

static const char junit_two[] =
    "<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"s\" failures=\"0\">"
    "<testcase classname=\"c\" name=\"a\"/><testcase classname=\"c\" "
    "name=\"b\"><skipped/></testcase>"
    "</testsuite></testsuites>\n";

static cx_status read_text(cx_tests_format format, cx_str text, const char *root, cx_arena *arena,
                           cx_tests_report *out, cx_err *err)
{
    *out = (cx_tests_report){0};
    *err = (cx_err){0};
    return cx_tests_report_read(format, text, cx_str_z(root), arena, out, err);
}

/* "+a -b ~c": passed, failed, skipped. */
static const char *told(const cx_tests_report *report, cx_arena *arena)
{
    cx_str text = CX_STR("");
    for (size_t i = 0; i < report->count; i++)
        text = cx_arena_printf(arena, "%.*s%s%c%.*s", (int)text.size, text.data, i == 0 ? "" : " ",
                               "+-~"[report->tests[i].state], (int)report -> tests[i].name.size,
                               report->tests[i].name.data);
    return text.data;
}

static void reads_as(cx_tests_format format, const char *text, const char *expected)
{
    cx_arena arena;
    cx_tests_report report;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = read_text(format, cx_str_z(text), "", &arena, &report, &err);
    CHECK_STATUS(status, &err);
    if (!cx_failed(status))
        CHECK_STR(cx_str_z(told(&report, &arena)), expected);
    cx_arena_done(&arena);
}

/* The message has `why` in it. */
static void is_refused_of(cx_tests_format format, cx_str text, cx_code code, const char *why)
{
    cx_arena arena;
    cx_tests_report report;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = read_text(format, text, "", &arena, &report, &err);
    if (status.code != code || strstr(err.message, why) == NULL)
        cx_test_fail(__FILE__, __LINE__, "%.60s: got %d '%s', expected '%s'", text.data,
                     (int)status.code, cx_failed(status) ? err.message : told(&report, &arena),
                     why);
    CHECK_INT(status.code, code);
    cx_arena_done(&arena);
}

static void is_refused(cx_tests_format format, const char *text, const char *why)
{
    is_refused_of(format, cx_str_z(text), CX_E_FORMAT, why);
}

static void file_reads_as(cx_tests_format format, const char *name, const char *root,
                          const char *expected)
{
    cx_arena arena;
    cx_buf text;
    cx_err err = {0};
    cx_tests_report report;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_str path = cx_arena_printf(&arena, "vectors/run/reports/%s", name);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(path.data), 1 << 20, &text, &err),
                 &err);
    cx_status status = read_text(format, cx_buf_str(&text), root, &arena, &report, &err);
    CHECK_STATUS(status, &err);
    if (!cx_failed(status))
        CHECK_STR(cx_str_z(told(&report, &arena)), expected);
    /* No beginning of it is a report, but for what ends with white space or comments. */
    size_t whole = 0;
    for (size_t size = 0; size < text.size; size++)
        whole += !cx_failed(read_text(format, cx_str_from((const char *)text.data, size), root,
                                      &arena, &report, &err)) &&
                 report.passed != 0 && size + 2 < text.size && format == CX_TESTS_JUNIT;
    CHECK_INT(whole, 0);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

CX_TEST(tests_reports_of_real_runners_are_read)
{
    file_reads_as(CX_TESTS_JUNIT, "pytest.xml", "",
                  "+test_a.test_one +test_a.test_two ~test_a.test_skip +test_a.test_p[1] "
                  "+test_a.test_p[2] +test_a.test_p[a<b&\\n] ~test_a.test_x +test_a.TestK.test_m");
    /* A test that is to be done, and failed: node's XML calls that a failure, its TAP does not. */
    file_reads_as(CX_TESTS_JUNIT, "node.xml", "/src",
                  "+test.adds ~test.skipped -test.todo # one +test.inner +test.other +test.child "
                  "+test.tests/b.test.js");
    file_reads_as(CX_TESTS_TAP, "node.tap", "/src/tests",
                  "+adds ~skipped ~todo \\# one +group > inner +group > other +parent > child "
                  "+b.test.js");
    file_reads_as(CX_TESTS_GO_JSON, "go.jsonl", "",
                  "+example.org/refund.TestHalf/even +example.org/refund.TestHalf "
                  "~example.org/refund.TestLater");
    file_reads_as(CX_TESTS_CARGO, "cargo.txt", "",
                  "+tests::breaks +tests::halves ~tests::later +tests::leaves "
                  "+tests::panics - should panic +src/lib.rs - half (line 1)");
    file_reads_as(CX_TESTS_CARGO, "cargo-failed.txt", "",
                  "+tests::halves ~tests::later +tests::leaves +tests::panics - should panic "
                  "-tests::breaks +src/lib.rs - half (line 1)");
}

/* tests_report.h I1 */
CX_TEST(tests_reports_of_junit_are_whole_or_refused)
{
    const cx_tests_format junit = CX_TESTS_JUNIT;
    reads_as(junit, junit_two, "+c.a ~c.b");
    reads_as(junit, "\xEF\xBB\xBF<testsuite><testcase name='a'/></testsuite>", "+a");
    reads_as(junit, "<testsuite/>", "");
    reads_as(junit,
             "<testsuites><!-- x --><testsuite><properties><property name='p'/></properties>"
             "<testcase name='&lt;&#x41;&#233;&quot;'><system-out><![CDATA[<testcase name='f'/>]]>"
             "</system-out></testcase><testcase name='b'><error/></testcase>"
             "<testcase name='c'><skipped/><failure>no</failure></testcase></testsuite>"
             "</testsuites>",
             "+<A\xC3\xA9\" -b -c");
    reads_as(junit,
             "<testsuite><testcase name='a' status='run' result='completed'/>"
             "<testcase name='b' status='notrun' result='suppressed'/>"
             "<testcase name='c' status='disabled'/><testcase name='d' status='fail'/></testsuite>",
             "+a ~b ~c -d");
    is_refused(junit, "", "it is empty");
    is_refused(junit, "not xml", "line 1: text is outside");
    is_refused(junit, "<testsuite>", "has no end");
    is_refused(junit, "<testsuite><testcase name='a'></testsuite>", "ends what is not open");
    is_refused(junit, "<testsuite/><testsuite/>", "something follows");
    is_refused(junit, "<html/>", "neither testsuites nor testsuite");
    is_refused(junit, "<testcase name='a'/>", "neither testsuites nor testsuite");
    is_refused(junit, "<testsuite><x><testcase name='a'/></x></testsuite>", "in no suite");
    is_refused(junit, "<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>",
               "in no suite");
    is_refused(junit, "<testsuite><x><testsuite/></x></testsuite>", "in something else");
    is_refused(junit, "<testsuite><testcase/></testsuite>", "has no name");
    is_refused(junit, "<testsuite><testcase name='a' name='b'/></testsuite>", "given twice");
    is_refused(junit, "<testsuite><testcase name='a'name2='b'/></testsuite>", "a tag has no end");
    is_refused(junit, "<testsuite><testcase name=a/></testsuite>", "no quoted value");
    is_refused(junit, "<testsuite><testcase name='a<'/></testsuite>", "has no end");
    is_refused(junit, "<testsuite>&nbsp;</testsuite>", "a reference is none of the five");
    is_refused(junit, "<testsuite>&#0;</testsuite>", "a reference is none of the five");
    is_refused(junit, "<testsuite>&#xD800;</testsuite>", "a reference is none of the five");
    is_refused(junit, "<testsuite>&#;</testsuite>", "a reference is none of the five");
    is_refused(junit, "<testsuite>&#99999999999;</testsuite>", "a reference is none of the five");
    is_refused(junit, "<testsuite>\n\x01</testsuite>", "line 2: U+0001");
    is_refused(junit, "<testsuite>\xFF</testsuite>", "byte 11 is not UTF-8");
    is_refused(junit, "<testsuite><!-- a -- b --></testsuite>", "a comment has '--'");
    is_refused(junit, "<testsuite failures='one'/>", "failures is no number");
    is_refused(junit, "<testsuite failures='1'><testcase name='a'/></testsuite>",
               "tells of failures");
    is_refused(junit, "<testsuite><error/><testcase name='a'/></testsuite>", "tells of failures");
    /* Nothing is declared, expanded or fetched. */
    is_refused(junit,
               "<!DOCTYPE t [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>"
               "<testsuite>&b;</testsuite>",
               "a document type or declaration is refused");
    is_refused(junit, "<!DOCTYPE t SYSTEM 'file:///etc/passwd'><testsuite/>", "is refused");
}

CX_TEST(tests_reports_of_tap_are_whole_or_refused)
{
    const cx_tests_format tap = CX_TESTS_TAP;
    reads_as(tap, "TAP version 13\n1..3\nok 1 - a\nnot ok 2 b\nok # skip not here\n",
             "+a -b ~(no name)");
    reads_as(tap, "TAP version 14\r\npragma +strict\r\nok\r\n1..1\r\n", "+(no name)");
    reads_as(tap, "TAP version 13\n1..0 # SKIP all\n", "");
    reads_as(tap, "TAP version 13\nok 1 - a \\# b # time=1\nnot ok 2 - c # TODO later\n1..2\n",
             "+a \\# b ~c");
    reads_as(tap,
             "TAP version 13\n    not ok 1 - in\n      ---\n      ok 2 - no\n      ...\n    1..1\n"
             "not ok 1 - out\n1..1\n",
             "-out > in -out");
    reads_as(tap, "TAP version 13\n    1..0\nok 1 - empty\n1..1\n", "");
    is_refused(tap, "1..1\nok 1 - a\n", "does not begin with");
    is_refused(tap, "TAP version 13\nok 1 - a\n", "there is no plan");
    is_refused(tap, "TAP version 13\nok 1 - a\n1..2\n", "the plan is 2 tests, but there are 1");
    is_refused(tap, "TAP version 13\nok 1 - a\n1..1\n1..1\n", "a second plan");
    is_refused(tap, "TAP version 13\n1..x\n", "has no number");
    is_refused(tap, "TAP version 13\n1..99999999999\n", "has no number");
    is_refused(tap, "TAP version 13\nok 1 - a\nBail out! disk\n1..1\n",
               "line 3: the run bailed out");
    is_refused(tap, "TAP version 13\nhello\n1..0\n", "line 2: 'hello' is no line of TAP");
    is_refused(tap, "TAP version 13\n  ok 1 - a\n1..0\n", "no level of subtests");
    is_refused(tap, "TAP version 13\n        ok 1 - a\n1..0\n", "2 levels too far in");
    is_refused(tap, "TAP version 13\n    ok 1 - a\nok 1 - b\n1..1\n", "there is no plan");
    is_refused(tap, "TAP version 13\n    ok 1 - a\n    1..1\n1..0\n", "without the point");
    is_refused(tap, "TAP version 13\n    1..0\n1..0\n    1..0\nok 1 - a\n", "have their point");
    is_refused(tap, "TAP version 13\nok 1 - a\n  ---\n  b: c\n1..1\n", "has no end");
    is_refused(tap, "TAP version 13\n# a\n  ---\n  ...\n1..0\n", "no level of subtests");
}

CX_TEST(tests_reports_of_go_are_whole_or_refused)
{
    const cx_tests_format go = CX_TESTS_GO_JSON;
    reads_as(go,
             "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n"
             "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"T\"}\n"
             "{\"Action\":\"fail\",\"Package\":\"p\"}",
             "-p.T -p");
    is_refused(go, "ok  \tp\t0.01s\n", "line 1: it is not JSON");
    is_refused(go, "\n", "line 1: it is not JSON");
    is_refused(go, "[]\n", "it is no event");
    is_refused(go, "{\"Package\":\"p\"}\n", "it is no event");
    is_refused(go, "{\"Action\":\"run\"}\n", "has no package");
    is_refused(go, "{\"Action\":\"won\",\"Package\":\"p\"}\n", "'won' is no action");
    is_refused(go, "{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"T\"}\n", "did not begin");
    is_refused(go,
               "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n"
               "{\"Action\":\"pass\",\"Package\":\"p\"}\n",
               "of what began, 1 did not end");
    is_refused(go, "{\"Action\":\"start\",\"Package\":\"p\"}\n", "did not end");
    is_refused(go, "{\"Action\":\"build-fail\",\"ImportPath\":\"p\"}\n", "could not be built");
    is_refused(go, "{\"Action\":\"run\",\"Action\":\"run\",\"Package\":\"p\"}\n", "not JSON");
    is_refused(go, "{\"Action\":\"run\",\"Package\":\"\\ud800\"}\n", "half of a character");
    is_refused(go, "{\"a\":[[[[[[[[]]]]]]]]}\n", "not JSON");
}

CX_TEST(tests_reports_of_cargo_are_whole_or_refused)
{
    const cx_tests_format cargo = CX_TESTS_CARGO;
    static const char end[] = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; "
                              "0 filtered out; finished in 0.00s\n";
    char text[512];
    reads_as(cargo, "\n", "");
    snprintf(text, sizeof text,
             "running 1 test\ntest a has been running for over 60 seconds\n"
             "test a ... ok\n\n%s\nall doctests ran in 0.1s\n",
             end);
    reads_as(cargo, text, "+a");
    reads_as(cargo,
             "running 2 tests\ntest a ... bench:  1 ns/iter (+/- 0)\ntest b ... ignored\n"
             "test result: ok. 0 passed; 0 failed; 1 ignored; 1 measured; 0 filtered out\n",
             "~b");
    is_refused(cargo, "running 5 tests\ntest a ... ok\n\nrunning 1 test\n",
               "line 4: tests begin before those above have a result");
    is_refused(cargo, "running 1 test\ntest a ... ok\n",
               "tests began, but the result line is missing");
    snprintf(text, sizeof text, "running 2 tests\ntest a ... ok\n%s", end);
    is_refused(cargo, text, "not the 2 that was announced");
    snprintf(text, sizeof text, "running 1 test\ntest a ... ignored\n%s", end);
    is_refused(cargo, text, "is not that of the tests above");
    is_refused(cargo, end, "is no line of a test's report");
    is_refused(cargo, "running many tests\n", "the number of tests cannot be read");
    is_refused(cargo, "running 1 test\ntest a ... okay\n", "'okay' is no state");
    is_refused(cargo, "running 1 test\ntest a\n", "the state of a test cannot be read");
    is_refused(cargo, "hello\n", "line 1: 'hello' is no line");
    is_refused(cargo, "running 1 test\nhello\n", "line 2: 'hello' is no line");
    is_refused(cargo,
               "running 1 test\ntest a ... FAILED\ntest result: ok. 0 passed; 1 failed; "
               "0 ignored; 0 measured; 0 filtered out\n",
               "is not that of the tests above");
    /* A program that left before its end, as it was. */
    cx_buf left;
    cx_err err = {0};
    cx_buf_init(&left, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path("vectors/run/reports/cargo-left.txt"),
                                 1 << 20, &left, &err),
                 &err);
    is_refused_of(cargo, cx_buf_str(&left), CX_E_FORMAT, "tests begin before those above");
    cx_buf_done(&left);
}

/* Deep, long and many: bounded, whatever is written. */
/* tests_report.h I2 */
CX_TEST(tests_reports_that_are_too_large_are_refused)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (int i = 0; i < 100; i++)
        cx_buf_add_z(&text, "<testsuite>");
    is_refused_of(CX_TESTS_JUNIT, cx_buf_str(&text), CX_E_LIMIT, "more than 64 deep");
    cx_buf_clear(&text);
    cx_buf_add_z(&text, "<testsuite");
    for (int i = 0; i < 100; i++)
        cx_buf_printf(&text, " a%d=''", i);
    cx_buf_add_z(&text, "/>");
    is_refused_of(CX_TESTS_JUNIT, cx_buf_str(&text), CX_E_LIMIT, "over 64 attributes");
    cx_buf_clear(&text);
    cx_buf_add_z(&text, "TAP version 13\nok 1 - ");
    for (int i = 0; i < CX_TESTS_NAME_BYTES_MAX + 1; i++)
        cx_buf_add_byte(&text, 'a');
    cx_buf_add_z(&text, "\n1..1\n");
    is_refused_of(CX_TESTS_TAP, cx_buf_str(&text), CX_E_LIMIT, "over 4096 bytes");
    cx_buf_clear(&text);
    cx_buf_add_z(&text, "TAP version 13\n");
    for (int i = 0; i < 80; i++)
        cx_buf_printf(&text, "%*sok 1 - a\n", 4 * i, "");
    is_refused_of(CX_TESTS_TAP, cx_buf_str(&text), CX_E_FORMAT, "too far in");
    /* Names that repeat that of their parent are many times what is written. */
    cx_buf_clear(&text);
    cx_buf_add_z(&text, "TAP version 13\n");
    for (int i = 0; i < 20000; i++)
        cx_buf_add_z(&text, "    ok - a\n");
    cx_buf_add_z(&text, "    1..20000\nok 1 - ");
    for (int i = 0; i < 4000; i++)
        cx_buf_add_byte(&text, 'b');
    cx_buf_add_z(&text, "\n1..1\n");
    is_refused_of(CX_TESTS_TAP, cx_buf_str(&text), CX_E_LIMIT, "the names of all tests");
    cx_buf_clear(&text);
    cx_buf_add_z(&text, "TAP version 13\n");
    for (int i = 0; i <= CX_TESTS_COUNT_MAX; i++)
        cx_buf_add_z(&text, "ok a\n");
    is_refused_of(CX_TESTS_TAP, cx_buf_str(&text), CX_E_LIMIT, "over 1000000 tests");
    cx_buf_clear(&text);
    while (text.size <= CX_TESTS_REPORT_BYTES_MAX)
        cx_buf_add_z(&text, "# a comment, again and again\n");
    is_refused_of(CX_TESTS_TAP, cx_buf_str(&text), CX_E_LIMIT, "bytes long");
    cx_buf_done(&text);
    is_refused(CX_TESTS_NO_REPORT, "x", "not known");
}

/* --- comparing -------------------------------------------------------------------------------- */

static void loses(const char *before, const char *now, const char *expected)
{
    cx_arena arena;
    cx_tests_report reports[2];
    const char *const texts[] = {before, now};
    const cx_tests_regression *lost = NULL;
    size_t count = 0;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (int i = 0; i < 2; i++) {
        cx_str text = cx_arena_printf(&arena, "TAP version 13\n%s", texts[i]);
        CHECK_STATUS(read_text(CX_TESTS_TAP, text, "", &arena, &reports[i], &err), &err);
    }
    CHECK_STATUS(cx_tests_report_regressions(&reports[0], &reports[1], &arena, &lost, &count, &err),
                 &err);
    cx_str said = CX_STR("");
    for (size_t i = 0; i < count; i++)
        said =
            cx_arena_printf(&arena, "%.*s%s%.*s", (int)said.size, said.data,
                            lost[i].skipped ? "~" : "-", (int)lost[i].name.size, lost[i].name.data);
    CHECK_STR(said, expected);
    cx_arena_done(&arena);
}

CX_TEST(tests_reports_are_compared_by_name_and_number)
{
    loses("ok - a\nok - b\n1..2\n", "ok - b\nok - a\nok - c\n1..3\n", "");
    loses("ok - a\nok - b\n1..2\n", "ok - a\nok - b # SKIP\n1..2\n", "~b");
    loses("ok - a\nok - a\nok - a\n1..3\n", "ok - a\nok - a # SKIP\n1..2\n", "~a-a");
    loses("ok - a # SKIP\nnot ok - b\n1..2\n", "ok - c\n1..1\n", "");
    loses("ok - a\n1..1\n", "not ok - a\n1..1\n", "-a");
    loses("1..0\n", "1..0\n", "");
}

typedef struct demand_case {
    const char *baseline, *made; /* NULL: none */
    uint32_t min_tests;
    bool same;
    const char *problem;
} demand_case;

static const demand_case demand_cases[] = {
    {NULL, "ok - a\n1..1\n", 1, false, ""},
    {NULL, "ok - a\n1..1\n", 2, false, "1 test passed; the contract demands at least 2"},
    {NULL, "ok - a # SKIP\n1..1\n", 1, false, "0 tests passed; the contract demands at least 1"},
    {NULL, "ok - a\nnot ok - b\n1..2\n", 1, false, "1 of its tests failed: b"},
    {NULL, "ok - a\n", 1, false,
     "the report, the standard output, cannot be read: line 2: there is no plan (1..N) for the "
     "tests above"},
    {NULL, "ok - a\n1..1\n", 1, true, "the tests were not run at the baseline"},
    {"ok\n", "ok - a\n1..1\n", 1, true,
     "the report of the baseline, the standard output, cannot be read: line 2: there is no plan "
     "(1..N) for the tests above"},
    {"ok - a\nnot ok - b\n1..2\n", "ok - a\n1..1\n", 1, true, ""},
    {"ok - 1\nok - 2\nok - 3\nok - 4\nok - 5\nok - 6\nok - 7\n1..7\n", "ok - 7\n1..1\n", 1, true,
     "6 tests that passed at the baseline did not run: 1, 2, 3, 4, 5 and 1 more"},
};

CX_TEST(tests_demands_hold_or_say_what_is_wrong)
{
    for (size_t i = 0; i < CX_COUNT_OF(demand_cases); i++) {
        const demand_case *c = &demand_cases[i];
        const cx_tests_requirement demand = {
            .format = CX_TESTS_TAP, .min_tests = c->min_tests, .same_as_baseline = c->same};
        const char *const texts[] = {c->baseline, c->made};
        cx_tests_leftover left[2] = {{.exit_code = 0}, {.exit_code = 0}};
        cx_tests_verdict verdict;
        cx_arena arena;
        cx_err err = {0};
        cx_arena_init(&arena, cx_alloc_default(), 0);
        for (int k = 0; k < 2; k++) {
            if (texts[k] == NULL)
                continue;
            cx_str text = cx_arena_printf(&arena, "TAP version 13\n%s", texts[k]);
            CHECK_STATUS(cx_tests_leftover_read(&demand, text, CX_STR(""), &arena, &left[k], &err),
                         &err);
        }
        CHECK_STATUS(cx_tests_check_requirement(&demand, &left[1],
                                                c->baseline == NULL ? NULL : &left[0], &arena,
                                                &verdict, &err),
                     &err);
        CHECK_STR(verdict.problem, c->problem);
        CHECK(verdict.holds == (c->problem[0] == 0));
        CHECK((cx_json_get_typed(&verdict.json, CX_STR("holds"), CX_JSON_TRUE) != NULL) ==
              verdict.holds);
        cx_arena_done(&arena);
    }
}

/* What is told of lost tests fits into an event, however long their names are. */
CX_TEST(tests_demands_tell_no_more_than_an_event_holds)
{
    const cx_tests_requirement demand = {
        .format = CX_TESTS_TAP, .min_tests = 1, .same_as_baseline = true};
    cx_tests_leftover left[2] = {{.exit_code = 0}, {.exit_code = 0}};
    cx_tests_verdict verdict = {0};
    cx_arena arena;
    cx_err err = {0};
    cx_buf text;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "TAP version 13\n1..200\n");
    for (int i = 0; i < 200; i++) {
        cx_buf_printf(&text, "ok - %d ", i);
        for (int k = 0; k < 4000; k++)
            cx_buf_add_byte(&text, 1);
        cx_buf_add_byte(&text, '\n');
    }
    CHECK_STATUS(
        cx_tests_leftover_read(&demand, cx_buf_str(&text), CX_STR(""), &arena, &left[0], &err),
        &err);
    CHECK_STATUS(cx_tests_leftover_read(&demand, CX_STR("TAP version 13\n1..1\nok - a\n"),
                                        CX_STR(""), &arena, &left[1], &err),
                 &err);
    CHECK_STATUS(cx_tests_check_requirement(&demand, &left[1], &left[0], &arena, &verdict, &err),
                 &err);
    cx_buf_clear(&text);
    CHECK_STATUS(cx_json_write(&text, &verdict.json, CX_JSON_PY_COMPACT, &err), &err);
    CHECK(text.size > 100000 && text.size < 500000);
    CHECK_INT(cx_json_get(&verdict.json, CX_STR("lost"))->count, 16);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

/* When memory runs out there is an error or the right answer, and no leak. */
CX_TEST(tests_reports_survive_any_failing_allocation)
{
    static const struct {
        cx_tests_format format;
        const char *name;
        size_t passed;
    } files[] = {{CX_TESTS_JUNIT, "pytest.xml", 6},
                 {CX_TESTS_TAP, "node.tap", 5},
                 {CX_TESTS_GO_JSON, "go.jsonl", 2},
                 {CX_TESTS_CARGO, "cargo.txt", 5}};
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        char path[128];
        cx_buf text;
        cx_err err = {0};
        bool fired = true;
        cx_buf_init(&text, cx_alloc_default());
        (void)snprintf(path, sizeof path, "vectors/run/reports/%s", files[i].name);
        CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(path), 1 << 20, &text, &err),
                     &err);
        for (uint64_t n = 1; fired && n < 10000; n++) {
            fault_alloc memory;
            cx_arena arena;
            const cx_tests_requirement demand = {
                .format = files[i].format, .min_tests = 1, .same_as_baseline = true};
            cx_tests_leftover left = {0};
            cx_tests_verdict verdict = {0};
            fault_alloc_init(&memory, n, false);
            cx_arena_init(&arena, &memory.alloc, 0);
            cx_status status = cx_tests_leftover_read(&demand, cx_buf_str(&text), CX_STR("/src"),
                                                      &arena, &left, &err);
            if (!cx_failed(status))
                status = cx_tests_check_requirement(&demand, &left, &left, &arena, &verdict, &err);
            fired = atomic_load(&memory.fired) != 0;
            if (cx_failed(status)) {
                CHECK(fired && status.code == CX_E_NOMEM);
            } else {
                CHECK_INT(left.report.passed, files[i].passed);
                CHECK(verdict.holds);
            }
            cx_arena_done(&arena);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
        }
        CHECK(!fired);
        cx_buf_done(&text);
    }
}
