/*
 * tests_demand.c - compares the report of a test with what the contract demands.
 *
 *   I1  It holds only when the report was read whole, no test of it failed, at least min_tests
 *       passed, and each that passed at the baseline passed as often.
 */
#include "bundle/tests_demand.h"

#include <string.h>

#include "bundle/report_parts.h"
#include "rules/api.h"

/* An event has 1 MiB, and a byte of a name may take six in JSON. */
enum { NAMES_SAID = 5, NAMES_KEPT = 100, NAMES_KEPT_BYTES = 65536 };

typedef struct judging {
    const cx_tests_requirement *demand;
    const cx_tests_leftover *made, *baseline;
    cx_arena *arena;
    const cx_tests_regression *lost;
    size_t lost_count;
    cx_buf problem;
    cx_err *err;
} judging;

cx_status cx_tests_leftover_read(const cx_tests_requirement *demand, cx_str text, cx_str root,
                                 cx_arena *arena, cx_tests_leftover *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_err why = {0};
    cx_status status = cx_tests_report_read(demand->format, text, root, arena, &out->report, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    out->report = (cx_tests_report){0};
    out->trouble = cx_arena_copy_str(arena, cx_str_z(why.message));
    return out->trouble.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- what is wrong ---------------------------------------------------------------------------- */

/* ": a, b and 3 more" */
static void print_test_name(judging *j, size_t index, size_t count, cx_str name, bool skipped)
{
    if (index == NAMES_SAID)
        cx_buf_printf(&j->problem, " and %zu more", count - index);
    if (index >= NAMES_SAID)
        return;
    cx_buf_printf(&j->problem, "%s%.*s%s", index == 0 ? ": " : ", ", cx_tests_shown(name),
                  name.data, cx_tests_shown(name) < (int)name.size ? "..." : "");
    if (skipped)
        cx_buf_add_z(&j->problem, " (skipped)");
}

static void describe_failed(judging *j)
{
    const cx_tests_report *report = &j->made->report;
    cx_buf_printf(&j->problem, "%zu of its tests failed", report->failed);
    for (size_t i = 0, recorded = 0; i < report->count; i++)
        if (report->tests[i].state == CX_TEST_FAILED)
            print_test_name(j, recorded++, report->failed, report->tests[i].name, false);
}

static void describe_lost(judging *j)
{
    cx_buf_printf(&j->problem, "%zu test%s that passed at the baseline did not run", j->lost_count,
                  j->lost_count == 1 ? "" : "s");
    for (size_t i = 0; i < j->lost_count; i++)
        print_test_name(j, i, j->lost_count, j->lost[i].name, j->lost[i].skipped);
}

static void describe_not_run(judging *j, const char *of, cx_str trouble)
{
    cx_str path = j->demand->path;
    cx_buf_printf(&j->problem, "the report%s, ", of);
    if (path.data == NULL)
        cx_buf_add_z(&j->problem, "the standard output");
    else
        cx_buf_add_str(&j->problem, path);
    cx_buf_printf(&j->problem, ", cannot be read: %.*s", (int)trouble.size, trouble.data);
}

/* I1, in the order in which it is worth knowing. */
static void find_problem(judging *j)
{
    const cx_tests_leftover *made = j->made;
    if (made->trouble.data != NULL)
        describe_not_run(j, "", made->trouble);
    else if (made->report.failed != 0)
        describe_failed(j);
    else if (made->report.passed < j->demand->min_tests)
        cx_buf_printf(&j->problem, "%zu test%s passed; the contract demands at least %u",
                      made->report.passed, made->report.passed == 1 ? "" : "s",
                      j->demand->min_tests);
    else if (j->demand->same_as_baseline && j->baseline == NULL)
        cx_buf_add_z(&j->problem, "the tests were not run at the baseline");
    else if (j->demand->same_as_baseline && j->baseline->trouble.data != NULL)
        describe_not_run(j, " of the baseline", j->baseline->trouble);
    else if (j->lost_count != 0)
        describe_lost(j);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void put_counts(cx_json_list *object, const cx_tests_leftover *left)
{
    if (left->trouble.data != NULL)
        return;
    cx_json_put_uint(object, "passed", left->report.passed);
    cx_json_put_uint(object, "failed", left->report.failed);
    cx_json_put_uint(object, "skipped", left->report.skipped);
}

static cx_status put_lost(judging *j, cx_json_list *object)
{
    size_t count = j->lost_count > NAMES_KEPT ? NAMES_KEPT : j->lost_count;
    cx_str *names = CX_ARENA_ARRAY(j->arena, cx_str, count + 1);
    if (names == NULL)
        return cx_fail_nomem(j->err);
    size_t room = NAMES_KEPT_BYTES, stored = 0;
    for (; stored < count && j->lost[stored].name.size <= room; stored++) {
        names[stored] = j->lost[stored].name;
        room -= names[stored].size;
    }
    if (count != 0) {
        cx_json_put_uint(object, "lost_count", j->lost_count);
        cx_json_put_utf8_strs(object, "lost", names, stored);
    }
    return CX_SUCCESS;
}

static cx_status make_json(judging *j, cx_tests_verdict *out)
{
    cx_json_list object = cx_json_list_begin(j->arena), baseline = cx_json_list_begin(j->arena);
    const cx_tests_requirement *demand = j->demand;
    cx_json_put_z(&object, "format", cx_tests_format_name(demand->format));
    cx_run_part_put_given(&object, "path", demand->path);
    cx_json_put_uint(&object, "min_tests", demand->min_tests);
    cx_json_put_bool(&object, "same_as_baseline", demand->same_as_baseline);
    cx_json_put_bool(&object, "holds", out->holds);
    cx_run_part_put_given(&object, "problem", out->problem);
    put_counts(&object, j->made);
    CX_TRY(put_lost(j, &object));
    if (j->baseline != NULL) {
        cx_json_put(&baseline, "exit_code",
                    cx_json_make_int(j->arena, (int64_t)j->baseline->exit_code));
        put_counts(&baseline, j->baseline);
        cx_json_put_object(&object, "baseline", &baseline);
    }
    return cx_json_list_end_object(&object, &out->json, j->err);
}

static cx_status check_demand(judging *j, cx_tests_verdict *out)
{
    bool both =
        j->made->trouble.data == NULL && j->baseline != NULL && j->baseline->trouble.data == NULL;
    if (both)
        CX_TRY(cx_tests_report_regressions(&j->baseline->report, &j->made->report, j->arena,
                                           &j->lost, &j->lost_count, j->err));
    find_problem(j);
    CX_TRY(cx_buf_check(&j->problem, j->err));
    out->problem = cx_arena_copy_str(j->arena, cx_buf_str(&j->problem));
    if (out->problem.data == NULL && j->problem.size != 0)
        return cx_fail_nomem(j->err);
    out->holds = j->problem.size == 0;
    return make_json(j, out);
}

cx_status cx_tests_check_requirement(const cx_tests_requirement *demand,
                                     const cx_tests_leftover *made,
                                     const cx_tests_leftover *baseline, cx_arena *arena,
                                     cx_tests_verdict *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    judging j = {.demand = demand,
                 .made = made,
                 .baseline = demand->same_as_baseline ? baseline : NULL,
                 .arena = arena,
                 .err = err};
    cx_buf_init(&j.problem, arena->alloc);
    cx_status status = check_demand(&j, out);
    cx_buf_done(&j.problem);
    return status;
}
