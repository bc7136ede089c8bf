/*
 * test_heatmap.c - branching nodes and heads.
 */
#include "tests/support/lattice_fixture.h"

CX_TEST(heatmap_most_children_first_then_by_id)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "g", "g", 0, 0, "", "{}", NULL);
    fixture_node(&f, "b", "b", 0, 1, "g", "{}", NULL);
    fixture_node(&f, "a", "a", 0, 2, "g", "{}", NULL);
    fixture_node(&f, "m", "m", 0, 3, "a,b", "{}", NULL);
    fixture_node(&f, "n", "n", 0, 4, "a,b,g", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_answer_heatmap(&f.out, f.lattice, &answer_json_options, &f.err),
                 &f.err);
    CHECK_STR(cx_buf_str(&f.out), "{\"nodes\":[{\"D\":3,\"node\":\"g\"},{\"D\":2,\"node\":\"a\"},"
                                  "{\"D\":2,\"node\":\"b\"}],\"verified\":true}\n");
    cx_buf_clear(&f.out);
    CHECK_STATUS(cx_lattice_answer_heatmap(&f.out, f.lattice, &answer_text_options, &f.err),
                 &f.err);
    CHECK_STR(cx_buf_str(&f.out), "g 3\na 2\nb 2\n");
    fixture_done(&f);
}

CX_TEST(heatmap_of_a_chain_is_empty)
{
    static const cx_answer_options broken = {.verified = false, .json = true};
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 0, "", "{}", NULL);
    fixture_node(&f, "b", "w", 1, 1, "a", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_answer_heatmap(&f.out, f.lattice, &broken, &f.err), &f.err);
    CHECK_STR(cx_buf_str(&f.out), "{\"nodes\":[],\"verified\":false}\n");
    fixture_done(&f);
}

CX_TEST(heads_by_name_with_greatest_seq_time_and_id)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "z0", "zoe", 0, 0, "", "{}", NULL);
    fixture_node(&f, "a0", "ann", 7, 1, "z0", "{}", NULL);
    fixture_node(&f, "z1", "zoe", 1, 2, "z0", "{}", NULL);
    fixture_node(&f, "z2", "zoe", 1, 3, "z0", "{}", NULL);
    fixture_node(&f, "z3", "zoe", 1, 3, "z0", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_answer_heads(&f.out, f.lattice, &answer_json_options, &f.err), &f.err);
    CHECK_STR(
        cx_buf_str(&f.out),
        "{\"heads\":[{\"agent\":\"ann\",\"hash\":"
        "\"0000000000000000000000000000000000000000000000000000000000000002\",\"node\":\"a0\","
        "\"seq\":7},{\"agent\":\"zoe\",\"hash\":"
        "\"0000000000000000000000000000000000000000000000000000000000000005\",\"node\":\"z3\","
        "\"seq\":1}],\"verified\":true}\n");
    cx_buf_clear(&f.out);
    CHECK_STATUS(cx_lattice_answer_heads(&f.out, f.lattice, &answer_text_options, &f.err), &f.err);
    CHECK_STR(cx_buf_str(&f.out),
              "ann#7 a0 0000000000000000000000000000000000000000000000000000000000000002\n"
              "zoe#1 z3 0000000000000000000000000000000000000000000000000000000000000005\n");
    fixture_done(&f);
}
