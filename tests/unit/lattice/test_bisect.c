/*
 * test_bisect.c - first and later turns of a predicate on a node's path.
 */
#include "tests/support/lattice_fixture.h"

static cx_str bisect(fixture *f, const char *name, const char *text,
                     const cx_answer_options *options)
{
    cx_arena arena;
    cx_predicate predicate;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_clear(&f->out);
    CHECK_STATUS(cx_predicate_parse(cx_str_z(text), &arena, &predicate, &f->err), &f->err);
    CHECK_STATUS(cx_lattice_answer_bisect(&f->out, f->states, fixture_find(f, name), &predicate,
                                          options, &f->err),
                 &f->err);
    cx_arena_done(&arena);
    return cx_buf_str(&f->out);
}

static void turning(fixture *f)
{
    static const char *const deltas[] = {"{\"memory\":{\"x\":1}}", "{\"memory\":{\"x\":2}}",
                                         "{\"memory\":{\"y\":0}}", "{\"memory\":{\"x\":1}}",
                                         "{\"memory\":{\"x\":3}}", "{}"};
    for (int i = 0; i < 6; i++) {
        char id[16], parent[16] = "";
        (void)snprintf(id, sizeof id, "n%d", i);
        if (i > 0)
            (void)snprintf(parent, sizeof parent, "n%d", i - 1);
        fixture_node(f, id, "w", i, i, parent, deltas[i], NULL);
    }
    /* Off the path: another branch, merged but not of the lineage. */
    fixture_node(f, "side", "v", 0, 10, "n0", "{\"memory\":{\"x\":9}}", NULL);
}

CX_TEST(bisect_finds_every_turn)
{
    fixture f;
    fixture_init(&f);
    turning(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(bisect(&f, "n5", "/memory/x>=2", &answer_json_options),
              "{\"first\":\"n1\",\"holds_at_end\":true,\"node\":\"n5\",\"predicate\":"
              "\"/memory/x>=2\",\"steps\":6,\"turns\":[{\"agent\":\"w\",\"holds\":true,\"node\":"
              "\"n1\",\"seq\":1},{\"agent\":\"w\",\"holds\":false,\"node\":\"n3\",\"seq\":3},{"
              "\"agent\":\"w\",\"holds\":true,\"node\":\"n4\",\"seq\":4}],\"verified\":true}\n");
    CHECK_STR(bisect(&f, "n5", "/memory/x>=2", &answer_text_options),
              "Predicate /memory/x>=2 on the 6 nodes up to n5\n"
              "  true from   n1 w#1\n"
              "  false from  n3 w#3\n"
              "  true from   n4 w#4\n"
              "The lattice holds.\n");
    fixture_done(&f);
}

CX_TEST(bisect_never_always_and_until)
{
    fixture f;
    fixture_init(&f);
    turning(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(bisect(&f, "n5", "/memory/x=9", &answer_json_options),
              "{\"first\":null,\"holds_at_end\":false,\"node\":\"n5\",\"predicate\":"
              "\"/memory/x=9\",\"steps\":6,\"turns\":[],\"verified\":true}\n");
    CHECK_STR(bisect(&f, "n3", "/memory/x", &answer_json_options),
              "{\"first\":\"n0\",\"holds_at_end\":true,\"node\":\"n3\",\"predicate\":\"/memory/x\","
              "\"steps\":4,\"turns\":[{\"agent\":\"w\",\"holds\":true,\"node\":\"n0\",\"seq\":0}],"
              "\"verified\":true}\n");
    CHECK_STR(bisect(&f, "side", "/memory/x=1", &answer_json_options),
              "{\"first\":\"n0\",\"holds_at_end\":false,\"node\":\"side\",\"predicate\":"
              "\"/memory/x=1\",\"steps\":2,\"turns\":[{\"agent\":\"w\",\"holds\":true,\"node\":"
              "\"n0\",\"seq\":0},{\"agent\":\"v\",\"holds\":false,\"node\":\"side\",\"seq\":0}],"
              "\"verified\":true}\n");
    /* The whole state. */
    cx_str text = bisect(&f, "n5",
                         "!={\"beliefs\":{},\"context_stack\":[],\"goals\":[],\"memory\":"
                         "{\"x\":2,\"y\":0}}",
                         &answer_text_options);
    CHECK(contains(text, "  false from  n2 w#2\n  true from   n3 w#3\n"));
    fixture_done(&f);
}
