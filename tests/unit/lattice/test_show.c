/*
 * test_show.c - one node with everything its source says.
 */
#include "tests/support/lattice_fixture.h"

static cx_str show(fixture *f, cx_node which, const cx_answer_options *options)
{
    cx_buf_clear(&f->out);
    CHECK_STATUS(cx_lattice_answer_show(&f->out, f->lattice, which, options, &f->err), &f->err);
    return cx_buf_str(&f->out);
}

#define HASH_1 "0000000000000000000000000000000000000000000000000000000000000001"
#define HASH_2 "0000000000000000000000000000000000000000000000000000000000000002"

CX_TEST(show_has_source_and_neighbours)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "", "{}", NULL);
    fixture_node(&f, "b", "w", 1, 2, "a", "{\"extra\":1.50}", "{\"say\":\"h\xc3\xa9\"}");
    fixture_node(&f, "c", "w", 2, 3, "b", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STR(show(&f, 1, &answer_json_options),
              "{\"children\":[\"c\"],\"line\":2,\"lineage\":\"a\",\"node\":{\"agent_id\":\"w\","
              "\"event\":{\"say\":\"h\\u00e9\"},\"hash\":\"" HASH_2 "\",\"node_id\":\"b\","
              "\"parents\":[\"a\"],\"prev_hash\":\"" HASH_1 "\",\"seq\":1,\"state_delta\":{"
              "\"extra\":1.5},\"timestamp\":2},\"parents\":[\"a\"],\"verified\":true}\n");
    cx_str text = show(&f, 1, &answer_text_options);
    const char *start = "Node b (w#1), line 2\nParents: a\nLineage parent: a\nChildren: c\n{\n";
    CHECK(cx_str_starts(text, cx_str_z(start)));
    CHECK(cx_str_ends(text, CX_STR("}\nThe lattice holds.\n")));
    CHECK_INT(cx_lattice_answer_show(&f.out, f.lattice, 3, &answer_json_options, &f.err).code,
              CX_E_NOT_FOUND);
    fixture_done(&f);
}

CX_TEST(show_a_node_that_has_no_canonical_form)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "", "{}", "{\"x\":1e400}");
    fixture_node(&f, "b", "w", 1, 2, "", "{}", NULL);
    REQUIRE(fixture_load(&f));
    cx_str text = show(&f, 0, &answer_json_options);
    CHECK(contains(text, "\"event\":\"{\\n  \\\"x\\\": 1e400\\n}\""));
    CHECK(contains(text, "\"lineage\":null"));
    fixture_done(&f);
}
