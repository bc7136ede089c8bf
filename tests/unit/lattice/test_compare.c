/*
 * test_compare.c - two agents side by side.
 */
#include "tests/support/lattice_fixture.h"

static cx_str compare(fixture *f, const char *a, const char *b, const cx_answer_options *options)
{
    cx_buf_clear(&f->out);
    CHECK_STATUS(
        cx_lattice_answer_compare(&f->out, f->states, cx_str_z(a), cx_str_z(b), options, &f->err),
        &f->err);
    return cx_buf_str(&f->out);
}

CX_TEST(compare_of_the_example)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(compare(&f, "agent_a", "agent_b", &answer_json_options),
              "{\"agents\":[\"agent_a\",\"agent_b\"],\"causal_lca\":[\"n1_b\"],\"diff\":[{\"a\":"
              "true,\"key\":\"done\",\"section\":\"memory\"},{\"a\":\"A\",\"key\":\"plan\","
              "\"section\":\"memory\"}],\"heads\":[\"n2\",\"n1_b\"],\"lca\":\"n0\",\"paths\":[["
              "\"n1_a\",\"n2\"],[\"n1_b\"]],\"verified\":true}\n");
    CHECK_STR(compare(&f, "agent_a", "agent_b", &answer_text_options),
              "Comparing agent_a (a) with agent_b (b)\n"
              "Head a: agent_a#2 n2\n"
              "Head b: agent_b#1 n1_b\n"
              "Last common node by lineage: n0\n"
              "Last common knowledge: n1_b\n"
              "Path a: 2 nodes: n1_a > n2\n"
              "Path b: 1 node: n1_b\n"
              "State variance:\n"
              "  memory.done\n    a: true\n    b: -\n"
              "  memory.plan\n    a: \"A\"\n    b: -\n"
              "2 differ: 2 only in a, 0 only in b, 0 with other values\n"
              "The lattice holds.\n");
    fixture_done(&f);
}

CX_TEST(compare_with_itself_and_with_a_stranger)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    fixture_node(&f, "s", "stranger", 0, 9, "", "{\"goals\":[\"s\"],\"memory\":{\"x\":3}}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(compare(&f, "agent_b", "agent_b", &answer_json_options),
              "{\"agents\":[\"agent_b\",\"agent_b\"],\"causal_lca\":[\"n1_b\"],\"diff\":[],"
              "\"heads\":[\"n1_b\",\"n1_b\"],\"lca\":\"n1_b\",\"paths\":[[],[]],"
              "\"verified\":true}\n");
    CHECK_STR(compare(&f, "stranger", "system", &answer_json_options),
              "{\"agents\":[\"stranger\",\"system\"],\"causal_lca\":[],\"diff\":[{\"b\":\"audit\","
              "\"key\":\"task\",\"section\":\"memory\"},{\"a\":3,\"b\":1,\"key\":\"x\",\"section\":"
              "\"memory\"},{\"b\":{\"confidence\":0.5,\"value\":true},\"key\":\"safe\",\"section\":"
              "\"beliefs\"},{\"a\":[\"s\"],\"b\":[\"g0\"],\"key\":null,\"section\":\"goals\"}],"
              "\"heads\":[\"s\",\"n0\"],\"lca\":null,\"paths\":[[\"s\"],[\"n0\"]],"
              "\"verified\":true}\n");
    CHECK_INT(cx_lattice_answer_compare(&f.out, f.states, CX_STR("stranger"), CX_STR("nobody"),
                                        &answer_json_options, &f.err)
                  .code,
              CX_E_NOT_FOUND);
    fixture_done(&f);
}

CX_TEST(compare_after_a_cycle_is_refused)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "g", "g", 0, 0, "", "{}", NULL);
    fixture_node(&f, "x", "a", 0, 1, "x", "{}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_INT(cx_lattice_answer_compare(&f.out, f.states, CX_STR("g"), CX_STR("a"),
                                        &answer_json_options, &f.err)
                  .code,
              CX_E_FORMAT);
    lineage_paths paths;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_INT(cx_lattice_lineage(f.lattice, 0, 1, &arena, &paths, &f.err).code, CX_E_FORMAT);
    cx_arena_done(&arena);
    fixture_done(&f);
}

/* By lineage n's parent is the one its prev_hash names, not the other one. */
CX_TEST(compare_lineage_follows_prev_hash)
{
    fixture f;
    lineage_paths paths;
    cx_arena arena;
    fixture_init(&f);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    fixture_node(&f, "g", "g", 0, 0, "", "{}", NULL);
    fixture_node(&f, "a", "a", 0, 1, "g", "{}", NULL);
    fixture_node(&f, "b", "b", 0, 2, "g", "{}", NULL);
    fixture_node(&f, "n", "b", 1, 3, "b,a", "{}", NULL);
    fixture_node(&f, "m", "a", 1, 4, "a,n", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_lineage(f.lattice, 3, 4, &arena, &paths, &f.err), &f.err);
    CHECK_INT(paths.lca, 0);
    CHECK(paths.count[0] == 2 && paths.path[0][0] == 2 && paths.path[0][1] == 3);
    CHECK(paths.count[1] == 2 && paths.path[1][0] == 1 && paths.path[1][1] == 4);
    cx_arena_done(&arena);
    fixture_done(&f);
}

CX_TEST(compare_long_paths_are_cut_in_text_only)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "g", "g", 0, 0, "", "{}", NULL);
    for (int i = 0; i < 20; i++) {
        char id[16], parent[16];
        (void)snprintf(id, sizeof id, "c%d", i);
        (void)snprintf(parent, sizeof parent, i == 0 ? "g" : "c%d", i - 1);
        fixture_node(&f, id, "c", i, i + 1, parent, "{}", NULL);
    }
    REQUIRE(fixture_open(&f, NULL));
    cx_str text = compare(&f, "c", "g", &answer_text_options);
    CHECK(contains(text, "Path a: 20 nodes: c0 > c1 > c2 > c3 > ... > c16 > c17 > c18 > c19\n"));
    CHECK(contains(text, "State variance:\n  none\n"));
    text = compare(&f, "c", "g", &answer_json_options);
    CHECK(contains(text, "\"c9\",\"c10\""));
    fixture_done(&f);
}

CX_TEST(compare_part_of_a_report_survives_a_cycle)
{
    static const cx_str agents[2] = {{"a", 1}, {"b", 1}};
    static const cx_lattice_text_options options = {.compare = agents};
    fixture f;
    cx_lattice_report *report;
    fixture_init(&f);
    fixture_node(&f, "p", "a", 0, 0, "q", "{}", NULL);
    fixture_node(&f, "q", "b", 0, 1, "p", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_verify(f.lattice, NULL, &report, &f.err), &f.err);
    cx_buf_clear(&f.out);
    CHECK_STATUS(cx_lattice_report_text(&f.out, f.lattice, report, &options, &f.err), &f.err);
    CHECK(contains(cx_buf_str(&f.out), "E_CYCLE p\n"));
    CHECK(contains(cx_buf_str(&f.out), "(LCA): unknown: the parents form a cycle"));
    CHECK(contains(cx_buf_str(&f.out), "Not congruent.\nEvidence: "));
    cx_lattice_report_close(report);
    fixture_done(&f);
}
