/*
 * test_state.c - states of whole lattices: inheriting, asking for parts, and what has no state.
 */
#include "tests/support/lattice_fixture.h"

#include <pthread.h>

#define EMPTY_STATE "{\"beliefs\":{},\"context_stack\":[],\"goals\":[],\"memory\":{}}"

CX_TEST(state_of_the_example)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(fixture_state(&f, "n2", false),
              "{\"beliefs\":{\"safe\":{\"confidence\":0.7,\"value\":false}},\"context_stack\":[],"
              "\"goals\":[\"g0\",\"gb\"],\"memory\":{\"done\":true,\"note\":{\"k\":[1,2]},"
              "\"plan\":\"A\",\"task\":\"audit\",\"x\":3}}");
    CHECK_STR(fixture_state(&f, "n0", true), EMPTY_STATE);
    CHECK_STR(fixture_state(&f, "n1_a", true),
              "{\"beliefs\":{\"safe\":{\"confidence\":0.5,\"value\":true}},\"context_stack\":[],"
              "\"goals\":[\"g0\"],\"memory\":{\"task\":\"audit\",\"x\":1}}");
    CHECK_STR(fixture_state(&f, "n2", true),
              "{\"beliefs\":{\"safe\":{\"confidence\":0.7,\"value\":false}},\"context_stack\":[],"
              "\"goals\":[\"g0\",\"gb\"],\"memory\":{\"note\":{\"k\":[1,2]},\"plan\":\"A\","
              "\"task\":\"audit\",\"x\":3}}");
    fixture_done(&f);
}

CX_TEST(state_parts_by_pointer)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "",
                 "{\"memory\":{\"a/b\":{\"~\":[{\"x\":7}]},\"s\":\"text\"},\"goals\":[\"g\"],"
                 "\"other\":{\"x\":1}}",
                 NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(fixture_at(&f, "a", ""),
              "{\"beliefs\":{},\"context_stack\":[],\"goals\":[\"g\"],\"memory\":{\"a/b\":{"
              "\"~\":[{\"x\":7}]},\"s\":\"text\"}}");
    CHECK_STR(fixture_at(&f, "a", "/memory/a~1b/~0"), "[{\"x\":7}]");
    CHECK_STR(fixture_at(&f, "a", "/memory/a~1b/~0/0/x"), "7");
    CHECK_STR(fixture_at(&f, "a", "/goals/0"), "\"g\"");
    CHECK_STR(fixture_at(&f, "a", "/beliefs"), "{}");
    CHECK_STR(fixture_at(&f, "a", "/other"), "(none)");
    CHECK_STR(fixture_at(&f, "a", "/memory/s/0"), "(none)");
    CHECK_STR(fixture_at(&f, "a", "/memory/none/deeper"), "(none)");
    CHECK_STR(fixture_at(&f, "a", "/goals/1"), "(none)");
    cx_node a = fixture_find(&f, "a");
    CHECK_INT(cx_states_write_at(f.states, a, CX_STR("memory"), &f.out, &f.err).code, CX_E_USAGE);
    CHECK_INT(cx_states_write_at(f.states, a, CX_STR("/memory/~2"), &f.out, &f.err).code,
              CX_E_USAGE);
    fixture_done(&f);
}

CX_TEST(state_lists_are_replaced_whole)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "", "{\"goals\":[1,2],\"context_stack\":[{}]}", NULL);
    fixture_node(&f, "b", "w", 1, 2, "a", "{\"goals\":[]}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(fixture_at(&f, "b", "/goals"), "[]");
    CHECK_STR(fixture_at(&f, "b", "/context_stack"), "[{}]");
    fixture_done(&f);
}

CX_TEST(state_after_a_cycle_is_refused)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "ok", "w", 0, 1, "", "{\"memory\":{\"a\":1}}", NULL);
    fixture_node(&f, "x", "w", 1, 2, "y,ok", "{}", NULL);
    fixture_node(&f, "y", "w", 2, 3, "x", "{}", NULL);
    fixture_node(&f, "z", "w", 3, 4, "y", "{}", NULL);
    fixture_node(&f, "ok", "w", 4, 5, "", "{}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(fixture_at(&f, "ok", "/memory/a"), "1");
    state s;
    CHECK_INT(cx_states_get(f.states, fixture_find(&f, "x"), false, &s, &f.err).code, CX_E_FORMAT);
    CHECK_INT(cx_states_get(f.states, fixture_find(&f, "z"), false, &s, &f.err).code, CX_E_FORMAT);
    CHECK(strstr(f.err.message, "cycle") != NULL);
    /* The second "ok" is left out. */
    CHECK_INT(cx_states_get(f.states, 4, false, &s, &f.err).code, CX_E_FORMAT);
    CHECK_INT(cx_states_get(f.states, 5, false, &s, &f.err).code, CX_E_NOT_FOUND);
    cx_node target = fixture_find(&f, "z");
    cx_states *states;
    CHECK_INT(cx_states_open_for(f.lattice, NULL, &target, 1, &states, &f.err).code, CX_E_FORMAT);
    fixture_done(&f);
}

CX_TEST(state_only_for_targets_and_their_ancestors)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    REQUIRE(fixture_load(&f));
    cx_node target = fixture_find(&f, "n1_b");
    CHECK_STATUS(cx_states_open_for(f.lattice, NULL, &target, 1, &f.states, &f.err), &f.err);
    CHECK_STR(fixture_at(&f, "n1_b", "/memory/x"), "3");
    CHECK_STR(fixture_at(&f, "n0", "/memory/x"), "1");
    state s;
    CHECK_INT(cx_states_get(f.states, fixture_find(&f, "n2"), false, &s, &f.err).code, CX_E_USAGE);
    CHECK_INT(cx_states_get(f.states, fixture_find(&f, "n1_a"), false, &s, &f.err).code,
              CX_E_USAGE);
    fixture_done(&f);
}

CX_TEST(state_needs_kept_deltas)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&f.text), NULL, &f.lattice, &f.err), &f.err);
    CHECK_INT(cx_states_open(f.lattice, NULL, &f.states, &f.err).code, CX_E_USAGE);
    fixture_done(&f);
}

/* --- depth and length ---------------------------------------------------------------------- */

enum { DEEP = 1000, LONG = 30000 };

/* {"memory":{"d":{"d":...,"s":SIBLING},...}} */
static void deep_delta(cx_buf *out, unsigned sibling, const char *leaf)
{
    cx_buf_clear(out);
    cx_buf_add_z(out, "{\"memory\":{\"d\":");
    for (unsigned i = 0; i < DEEP; i++)
        cx_buf_add_z(out, "{\"d\":");
    cx_buf_add_z(out, leaf);
    for (unsigned i = 0; i < DEEP; i++)
        cx_buf_printf(out, ",\"s\":%u}", sibling + i);
    cx_buf_add_z(out, "}}");
    (void)cx_buf_z(out);
}

static void *build_deep(void *arg)
{
    fixture *f = arg;
    cx_buf delta;
    cx_buf_init(&delta, cx_alloc_default());
    deep_delta(&delta, 0, "0");
    fixture_node(f, "g", "g", 0, 0, "", (const char *)delta.data, NULL);
    deep_delta(&delta, 0, "1");
    fixture_node(f, "a", "a", 0, 1, "g", (const char *)delta.data, NULL);
    deep_delta(&delta, 5, "2");
    fixture_node(f, "b", "b", 0, 2, "g", (const char *)delta.data, NULL);
    fixture_node(f, "m", "a", 1, 3, "a,b", "{}", NULL);
    for (int i = 0; i < LONG; i++) {
        char id[16], parent[16];
        (void)snprintf(id, sizeof id, "c%d", i);
        (void)snprintf(parent, sizeof parent, i == 0 ? "m" : "c%d", i - 1);
        fixture_node(f, id, "a", 2 + i, 4 + i, parent, "{\"beliefs\":{\"i\":1}}", NULL);
    }
    cx_buf_done(&delta);
    if (!fixture_open(f, NULL))
        return NULL;
    (void)fixture_state(f, "@a", false);
    return NULL;
}

CX_TEST(state_depth_and_length_stay_off_the_stack)
{
    fixture f;
    fixture_init(&f);
    pthread_t thread;
    pthread_attr_t small;
    REQUIRE(pthread_attr_init(&small) == 0);
    REQUIRE(pthread_attr_setstacksize(&small, 256 << 10) == 0);
    REQUIRE(pthread_create(&thread, &small, build_deep, &f) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&small);
    /* Both changed the leaf: the later parent's; only b changed the siblings. */
    cx_buf pointer;
    cx_buf_init(&pointer, cx_alloc_default());
    cx_buf_add_z(&pointer, "/memory/d");
    for (unsigned i = 0; i < DEEP; i++)
        cx_buf_add_z(&pointer, "/d");
    CHECK_STR(fixture_at(&f, "@a", cx_buf_z(&pointer)), "2");
    pointer.size -= 1;
    cx_buf_add_z(&pointer, "s");
    CHECK_STR(fixture_at(&f, "@a", cx_buf_z(&pointer)), "5");
    CHECK_STR(fixture_at(&f, "@a", "/beliefs/i"), "1");
    cx_buf_done(&pointer);
    fixture_done(&f);
}
