/*
 * test_answer.c - the answer to `state`: its frame, and the pointers of conflicts.
 */
#include "tests/support/lattice_fixture.h"

static cx_str answer(fixture *f, const char *name, bool inherited, const cx_answer_options *options)
{
    cx_buf_clear(&f->out);
    CHECK_STATUS(cx_lattice_answer_state(&f->out, f->states, fixture_find(f, name), inherited,
                                         options, &f->err),
                 &f->err);
    return cx_buf_str(&f->out);
}

CX_TEST(answer_state_of_the_example)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(answer(&f, "@agent_a", false, &answer_json_options),
              "{\"base\":\"lca\",\"conflicts\":[],\"node\":\"n2\",\"state\":{\"beliefs\":{\"safe\":"
              "{\"confidence\":0.7,\"value\":false}},\"context_stack\":[],\"goals\":[\"g0\","
              "\"gb\"],\"memory\":{\"done\":true,\"note\":{\"k\":[1,2]},\"plan\":\"A\",\"task\":"
              "\"audit\",\"x\":3}},\"strategy\":\"lww\",\"verified\":true}\n");
    cx_str text = answer(&f, "n0", true, &answer_text_options);
    CHECK(cx_str_starts(text, CX_STR("State before n0 (system#0), merges: lww, base lca\n{\n")));
    CHECK(cx_str_ends(text, CX_STR("}\nThe lattice holds.\n")));
    fixture_done(&f);
}

CX_TEST(answer_state_lists_conflicts_in_order)
{
    cx_state_options manual = {CX_MERGE_MANUAL, true, NULL, 0};
    fixture f;
    fixture_init(&f);
    fixture_node(
        &f, "a", "a", 0, 1, "",
        "{\"memory\":{\"b/\":1,\"b\":{\"~\":1},\"l\":[0,{\"__conflict\":true,\"values\":[]}]"
        "},\"goals\":[1]}",
        NULL);
    fixture_node(
        &f, "b", "b", 0, 2, "",
        "{\"memory\":{\"b/\":2,\"b\":{\"~\":2},\"not\":{\"__conflict\":false,\"values\":[]}"
        "},\"goals\":[2]}",
        NULL);
    fixture_node(&f, "m", "a", 1, 3, "a,b", "{}", NULL);
    REQUIRE(fixture_open(&f, &manual));
    cx_str text = answer(&f, "m", false, &answer_json_options);
    const char *start = "{\"base\":\"none\",\"conflicts\":[\"/goals\",\"/memory/b/~0\","
                        "\"/memory/b~1\",\"/memory/l/1\"],\"node\":\"m\",";
    CHECK(cx_str_starts(text, cx_str_z(start)));
    CHECK(cx_str_ends(text, CX_STR("},\"strategy\":\"manual\",\"verified\":true}\n")));
    text = answer(&f, "m", false, &answer_text_options);
    CHECK(contains(text, "\nConflict: /memory/b/~0\n"));
    fixture_done(&f);
}
