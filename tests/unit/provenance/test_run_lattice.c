/*
 * A run as a lattice: every golden run verifies under all of the lattice's own checks, tasks
 * descend from the governor and the governor from tasks, states and verdicts can be asked for.
 */
#include "base/alloc.h"
#include "base/io.h"
#include "lattice/lattice.h"
#include "provenance/run_lattice.h"
#include "tests/test.h"

typedef struct fixture {
    cx_buf events, lines;
    cx_lattice *lattice;
    cx_err err;
} fixture;

static void fixture_begin(fixture *s, const char *scenario)
{
    char path[128];
    memset(s, 0, sizeof *s);
    cx_buf_init(&s->events, cx_alloc_default());
    cx_buf_init(&s->lines, cx_alloc_default());
    snprintf(path, sizeof path, "vectors/run/golden/%s/bundle/events.jsonl", scenario);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(path), 1 << 20, &s->events, &s->err),
                 &s->err);
}

static void fixture_end(fixture *s)
{
    cx_lattice_close(s->lattice);
    cx_buf_done(&s->lines);
    cx_buf_done(&s->events);
}

static cx_status open_branch(fixture *s, cx_str branch)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.threads = 1;
    options.keep_deltas = options.keep_seals = true;
    cx_lattice_close(s->lattice);
    s->lattice = NULL;
    cx_buf_clear(&s->lines);
    return cx_run_lattice(cx_buf_str(&s->events), branch, &options, &s->lines, &s->lattice,
                          &s->err);
}

static void holds(fixture *s)
{
    cx_lattice_checks checks = CX_LATTICE_CHECKS_INIT;
    cx_lattice_report *report = NULL;
    checks.content_ids = checks.require_seals = checks.strict_time = true;
    CHECK_STATUS(cx_lattice_verify(s->lattice, &checks, &report, &s->err), &s->err);
    CHECK_INT(cx_lattice_report_verdict(report), CX_HOLDS);
    cx_lattice_report_close(report);
}

static size_t lines_of(const cx_buf *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->size; i++)
        count += text->data[i] == '\n';
    return count;
}

CX_TEST(golden_runs_are_lattices_that_hold)
{
    static const char *const scenarios[] = {"success",  "out_of_scope", "tests_fail",
                                            "fix_loop", "tool_gate",    "wide_path"};
    for (size_t i = 0; i < CX_COUNT_OF(scenarios); i++) {
        fixture s;
        fixture_begin(&s, scenarios[i]);
        CHECK_STATUS(open_branch(&s, (cx_str){NULL, 0}), &s.err);
        CHECK_INT(cx_lattice_count(s.lattice), lines_of(&s.events));
        CHECK_INT(cx_lattice_agent_count(s.lattice), 2);
        holds(&s);
        fixture_end(&s);
    }
}

CX_TEST(tasks_descend_from_the_governor_and_back)
{
    fixture s;
    cx_lattice_node_info info, parent;
    fixture_begin(&s, "success");
    CHECK_STATUS(open_branch(&s, (cx_str){NULL, 0}), &s.err);
    cx_node end = cx_lattice_find(
        s.lattice, CX_STR("@run/run_20260101_000000_aee408847d35e44e99430f0979c3357b/governor"));
    REQUIRE(end != CX_NODE_NONE);
    cx_lattice_node(s.lattice, end, &info);
    CHECK_INT(info.seq, 2); /* RUN_CREATED, SCHEMA_REGISTRY_CHECK, RUN_FINISHED */
    CHECK_INT(info.parent_count, 2);
    bool joins = false;
    for (uint32_t i = 0; i < info.parent_count; i++) {
        cx_lattice_node(s.lattice, info.parents[i], &parent);
        joins = joins || cx_str_ends(parent.agent, CX_STR("/golden_success"));
    }
    CHECK(joins);
    cx_node task = end;
    for (uint32_t i = 0; i < cx_lattice_count(s.lattice); i++) {
        cx_lattice_node(s.lattice, i, &info);
        if (info.seq == 0 && cx_str_ends(info.agent, CX_STR("/golden_success")))
            task = i;
    }
    cx_lattice_node(s.lattice, task, &info);
    REQUIRE(info.parent_count == 1);
    cx_lattice_node(s.lattice, info.parents[0], &parent);
    CHECK(cx_str_ends(parent.agent, CX_STR("/governor")));
    CHECK_INT(parent.seq, 1);
    fixture_end(&s);
}

CX_TEST(one_branch_comes_with_what_it_descends_from)
{
    fixture s;
    fixture_begin(&s, "success");
    CHECK_STATUS(open_branch(&s, CX_STR("golden_success")), &s.err);
    CHECK_INT(cx_lattice_count(s.lattice), lines_of(&s.events) - 1); /* all but RUN_FINISHED */
    holds(&s);
    CHECK_STATUS(open_branch(&s, CX_STR("governor")), &s.err);
    CHECK_INT(cx_lattice_count(s.lattice), lines_of(&s.events));
    CHECK_INT(open_branch(&s, CX_STR("nobody")).code, CX_E_NOT_FOUND);
    fixture_end(&s);
}

CX_TEST(states_and_verdicts_are_memories)
{
    fixture s;
    fixture_begin(&s, "out_of_scope");
    CHECK_STATUS(open_branch(&s, (cx_str){NULL, 0}), &s.err);
    const char *text = cx_buf_z(&s.lines);
    CHECK(strstr(text, "\"state_delta\":{\"memory\":{\"gate.diff\":{\"passed\":false}}}") != NULL);
    CHECK(strstr(text, "\"state_delta\":{\"memory\":{\"state\":\"FAIL\"}}") != NULL);
    CHECK(strstr(text, "\"state_delta\":{\"memory\":{\"last.gate_failed\":{\"gate\":\"diff\"") !=
          NULL);
    CHECK(strstr(text, "\"source\":\"run\"") != NULL);
    fixture_end(&s);
}

CX_TEST(the_same_events_give_the_same_nodes)
{
    fixture s;
    cx_buf again;
    fixture_begin(&s, "fix_loop");
    cx_buf_init(&again, cx_alloc_default());
    CHECK_STATUS(open_branch(&s, (cx_str){NULL, 0}), &s.err);
    CHECK_STATUS(cx_run_lattice_lines(cx_buf_str(&s.events), (cx_str){NULL, 0}, &again, &s.err),
                 &s.err);
    CHECK(cx_str_eq(cx_buf_str(&again), cx_buf_str(&s.lines)));
    cx_buf_done(&again);
    fixture_end(&s);
}

CX_TEST(events_that_cannot_be_read_are_named_by_line)
{
    fixture s;
    fixture_begin(&s, "success");
    s.events.data[0] = '[';
    CHECK(cx_failed(open_branch(&s, (cx_str){NULL, 0})));
    CHECK_INT(s.err.line, 1);
    cx_buf_clear(&s.events);
    CHECK_INT(open_branch(&s, (cx_str){NULL, 0}).code, CX_E_NOT_FOUND);
    fixture_end(&s);
}
