/*
 * test_names.c - names of nodes, keys below the top level, roles (lattice.md §7, §8).
 */
#include "lattice/lattice.h"

#include "lattice/internal.h"
#include "tests/test.h"

#define EXAMPLE CX_TEST_ROOT "/../examples/merge.jsonl"

typedef struct opened {
    cx_lattice *lattice;
    cx_arena arena;
    cx_err err;
} opened;

static void open_example(opened *o)
{
    const cx_lattice_options options = {.keep_deltas = true, .threads = 1};
    cx_arena_init(&o->arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_lattice_open(EXAMPLE, &options, &o->lattice, &o->err), &o->err);
}

static void close_example(opened *o)
{
    cx_lattice_close(o->lattice);
    cx_arena_done(&o->arena);
}

static cx_code code_of(opened *o, const char *name, cx_node *out)
{
    return cx_lattice_resolve(o->lattice, cx_str_z(name), out, &o->err).code;
}

CX_TEST(nodes_are_found_by_all_that_is_printed)
{
    opened o;
    cx_node n = 0, head = 0;
    open_example(&o);
    CHECK_INT(code_of(&o, "@agent_a", &head), CX_OK);
    CHECK_INT(code_of(&o, "@agent/agent_a", &n), CX_OK);
    CHECK_INT(n, head);
    CHECK_INT(code_of(&o, "agent_a#2", &n), CX_OK);
    CHECK_INT(n, head);
    CHECK_INT(code_of(&o, "@agent_a#2", &n), CX_OK);
    CHECK_INT(n, head);
    CHECK_INT(code_of(&o, "#3", &n), CX_OK);
    CHECK_INT(n, 3);
    CHECK_INT(code_of(&o, "6da2f100", &n), CX_OK);
    CHECK_INT(n, 0);
    CHECK_INT(code_of(&o, "n1_a", &n), CX_OK);
    CHECK_INT(code_of(&o, "6da", &n), CX_E_NOT_FOUND);
    CHECK_INT(code_of(&o, "#4", &n), CX_E_NOT_FOUND);
    CHECK_INT(code_of(&o, "agent_a#7", &n), CX_E_NOT_FOUND);
    CHECK_INT(code_of(&o, "agent_a#", &n), CX_E_NOT_FOUND);
    CHECK_INT(code_of(&o, "nobody#0", &n), CX_E_NOT_FOUND);
    CHECK_INT(code_of(&o, "", &n), CX_E_NOT_FOUND);
    CHECK_INT(code_of(&o, "@agent/", &n), CX_E_NOT_FOUND);
    close_example(&o);
}

CX_TEST(a_beginning_of_several_ids_is_ambiguous)
{
    static const char text[] =
        "{\"agent_id\":\"a\",\"node_id\":\"step-1\",\"seq\":0,\"timestamp\":1,\"event\":{},"
        "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"x\",\"parents\":[]}\n"
        "{\"agent_id\":\"a\",\"node_id\":\"step-2\",\"seq\":0,\"timestamp\":2,\"event\":{},"
        "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"y\",\"parents\":[]}\n";
    opened o;
    cx_node n;
    cx_arena_init(&o.arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_lattice_open_bytes(cx_bytes_from(text, strlen(text)), NULL, &o.lattice, &o.err),
                 &o.err);
    CHECK_INT(code_of(&o, "step", &n), CX_E_CONFLICT);
    CHECK(strstr(o.err.message, "step-1") != NULL && strstr(o.err.message, "step-2") != NULL);
    CHECK_INT(code_of(&o, "a#0", &n), CX_E_CONFLICT);
    CHECK_INT(code_of(&o, "step-2", &n), CX_OK);
    CHECK_INT(n, 1);
    close_example(&o);
}

static cx_status ask_why(opened *o, const char *key, const char *section, cx_buf *out)
{
    const cx_state_options options = CX_STATE_OPTIONS_INIT;
    const cx_answer_options json = {.verified = true, .json = true};
    cx_states *states = NULL;
    CX_TRY(cx_states_open(o->lattice, &options, &states, &o->err));
    cx_buf_clear(out);
    cx_status status =
        cx_lattice_answer_why(out, states, 3, cx_str_z(key), cx_str_z(section), &json, &o->err);
    cx_states_close(states);
    return status;
}

CX_TEST(why_takes_nested_keys_and_pointers)
{
    static const char *const same[] = {"beliefs.safe.value", "/beliefs/safe/value", "safe.value"};
    opened o;
    cx_buf out;
    open_example(&o);
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(same); i++) {
        CHECK_STATUS(ask_why(&o, same[i], "", &out), &o.err);
        /* Nodes n2 (by the merge) and n1_b, n0: true, false. */
        CHECK(memmem(out.data, out.size, "\"new\":false", 11) != NULL);
        CHECK(memmem(out.data, out.size, "\"section\":\"beliefs\"", 19) != NULL);
        CHECK(memmem(out.data, out.size, "\"via\":\"delta\"", 13) != NULL);
        CHECK(memmem(out.data, out.size, "\"via\":\"merge\"", 13) != NULL);
    }
    CHECK_STATUS(ask_why(&o, "/memory/note/k/1", "", &out), &o.err);
    CHECK(memmem(out.data, out.size, "\"new\":2", 7) != NULL);
    CHECK_STATUS(ask_why(&o, "/goals", "", &out), &o.err);
    CHECK_INT(ask_why(&o, "safe.value", "memory", &out).code, CX_E_NOT_FOUND);
    CHECK_INT(out.size, 0);
    CHECK_INT(ask_why(&o, "/memory/~2", "", &out).code, CX_E_USAGE);
    cx_buf_done(&out);
    close_example(&o);
}

CX_TEST(a_key_that_never_was_is_told_with_its_neighbours)
{
    opened o;
    cx_buf out;
    open_example(&o);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_INT(ask_why(&o, "tsak", "", &out).code, CX_E_NOT_FOUND);
    CHECK(o.err.tag != NULL && strcmp(o.err.tag, "NoKey") == 0);
    CHECK(strstr(o.err.message, "task") != NULL);
    CHECK_INT(ask_why(&o, "/beliefs/safe/vlue", "", &out).code, CX_E_NOT_FOUND);
    CHECK(strstr(o.err.message, "beliefs.safe.value") != NULL);
    CHECK_INT(ask_why(&o, "", "", &out).code, CX_E_NOT_FOUND);
    CHECK_INT(ask_why(&o, "/", "", &out).code, CX_E_NOT_FOUND);
    CHECK_INT(ask_why(&o, "...", "", &out).code, CX_E_NOT_FOUND);
    cx_buf_done(&out);
    close_example(&o);
}

CX_TEST(priorities_of_roles_are_those_of_their_agents)
{
    static const cx_agent_role roles[] = {{CX_STR("agent_a"), CX_STR("lead")},
                                          {CX_STR("agent_b"), CX_STR("helper")}};
    static const cx_agent_priority given[] = {
        {CX_STR("role:lead"), 5}, {CX_STR("role:helper"), 2}, {CX_STR("agent_b"), 9}};
    opened o;
    open_example(&o);
    cx_state_options options = {
        .strategy = CX_MERGE_POLICY, .priorities = given, .priority_count = 3};
    CHECK_STATUS(cx_lattice_resolve_roles(o.lattice, roles, 2, &o.arena, &options, &o.err), &o.err);
    double a = 0, b = 0, system = 0;
    for (size_t i = 0; i < options.priority_count; i++) {
        const cx_agent_priority *one = &options.priorities[i];
        a = cx_str_is(one->agent, "agent_a") ? one->priority : a;
        b = cx_str_is(one->agent, "agent_b") ? one->priority : b;
        system = cx_str_is(one->agent, "system") ? one->priority : system;
    }
    CHECK(a == 5 && b == 9 && system == 0);
    close_example(&o);
}
