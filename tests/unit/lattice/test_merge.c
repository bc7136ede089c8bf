/*
 * test_merge.c - the value rule of lattice.md §7: its vectors, its table, and the graph around it.
 */
#include "lattice/merge.h"

#include "tests/support/lattice_fixture.h"

static const char *const strategy_names[] = {"lww", "confidence", "policy", "manual"};

static cx_merge_strategy strategy_called(cx_str name)
{
    for (unsigned i = 0; i < CX_COUNT_OF(strategy_names); i++)
        if (cx_str_is(name, strategy_names[i]))
            return (cx_merge_strategy)i;
    cx_test_fail(__FILE__, __LINE__, "no strategy '%.*s'", (int)name.size, name.data);
    return CX_MERGE_LWW;
}

static void run_vector(const cx_json *item, bool whole)
{
    cx_err err;
    cx_buf got, expected;
    cx_str agents[8];
    cx_agent_priority priorities[8];
    const cx_json *names = CX_JSON_GET(item, "agents"), *given = CX_JSON_GET(item, "priority");
    const cx_json *bases = CX_JSON_GET(item, "bases"), *states = CX_JSON_GET(item, "states");
    cx_merge_case merge = {.bases = bases->items,
                           .base_count = bases->count,
                           .states = states->items,
                           .state_count = states->count,
                           .agents = agents,
                           .strategy = strategy_called(CX_JSON_GET_STR(item, "strategy")),
                           .priorities = priorities,
                           .base_none = cx_str_is(CX_JSON_GET_STR(item, "base_mode"), "none"),
                           .whole_states = whole};
    for (uint32_t i = 0; i < names->count && i < 8; i++)
        agents[i] = cx_json_text(&names->items[i]);
    if (given != NULL && given->type == CX_JSON_OBJECT)
        for (uint32_t i = 0; i < given->count && i < 8; i++, merge.priority_count++) {
            priorities[i].agent = cx_json_text(&given->members[i].name);
            CHECK(cx_json_double(&given->members[i].value, &priorities[i].priority));
        }
    cx_buf_init(&got, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    CHECK_STATUS(cx_state_merge_json(&merge, cx_alloc_default(), &got, &err), &err);
    CHECK_STATUS(cx_json_write(&expected, CX_JSON_GET(item, "expect"), CX_JSON_PY_COMPACT, &err),
                 &err);
    if (!cx_str_eq(cx_buf_str(&got), cx_buf_str(&expected)))
        cx_test_fail(__FILE__, __LINE__, "%s: got %.*s, expected %.*s",
                     strategy_names[merge.strategy], (int)got.size, (const char *)got.data,
                     (int)expected.size, (const char *)expected.data);
    cx_buf_done(&got);
    cx_buf_done(&expected);
}

CX_TEST(merge_vectors)
{
    cx_err err;
    cx_buf file;
    cx_arena arena;
    cx_json all;
    cx_buf_init(&file, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path("vectors/lattice/merge.json"),
                                 1 << 24, &file, &err),
                 &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&file), &arena, &all, &err), &err);
    const cx_json *dicts = CX_JSON_GET(&all, "dicts"), *states = CX_JSON_GET(&all, "states");
    CHECK(dicts->count >= 288 && states->count >= 4);
    for (uint32_t i = 0; i < dicts->count; i++)
        run_vector(&dicts->items[i], false);
    for (uint32_t i = 0; i < states->count; i++)
        run_vector(&states->items[i], true);
    cx_arena_done(&arena);
    cx_buf_done(&file);
}

/* --- a table of our own -------------------------------------------------------------------- */

typedef struct merge_row {
    const char *bases, *states; /* arrays of objects */
    cx_merge_strategy strategy;
    const char *expected;
} merge_row;

static void run_row(const merge_row *row)
{
    static const cx_str agents[4] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
    static const cx_agent_priority priorities[2] = {{{"a", 1}, 2}, {{"b", 1}, -1}};
    cx_err err;
    cx_buf got;
    cx_arena arena;
    cx_json bases, states;
    cx_buf_init(&got, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(row->bases), &arena, &bases, &err), &err);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(row->states), &arena, &states, &err), &err);
    cx_merge_case merge = {.bases = bases.items,
                           .base_count = bases.count,
                           .states = states.items,
                           .state_count = states.count,
                           .agents = agents,
                           .strategy = row->strategy,
                           .priorities = priorities,
                           .priority_count = 2};
    CHECK_STATUS(cx_state_merge_json(&merge, cx_alloc_default(), &got, &err), &err);
    if (!cx_str_eq(cx_buf_str(&got), cx_str_z(row->expected)))
        cx_test_fail(__FILE__, __LINE__, "%s of %s over %s: got %.*s, expected %s",
                     strategy_names[row->strategy], row->states, row->bases, (int)got.size,
                     (const char *)got.data, row->expected);
    cx_arena_done(&arena);
    cx_buf_done(&got);
}

CX_TEST(merge_table)
{
    static const merge_row rows[] = {
        {"[{\"a\":0}]", "[{\"a\":1},{\"a\":0}]", CX_MERGE_LWW, "{\"a\":1}"},
        {"[{\"a\":0}]", "[{},{\"a\":0}]", CX_MERGE_LWW, "{}"},
        {"[{}]", "[{\"d\":{\"x\":1}},{\"d\":{\"y\":2,\"x\":3}}]", CX_MERGE_LWW,
         "{\"d\":{\"x\":3,\"y\":2}}"},
        {"[{}]", "[{\"d\":{\"x\":1}},{\"d\":{\"y\":2,\"x\":3}}]", CX_MERGE_MANUAL,
         "{\"d\":{\"x\":{\"__conflict\":true,\"values\":[1,3]},\"y\":2}}"},
        {"[{\"x\":0,\"y\":1},{\"x\":1,\"y\":0}]", "[{\"x\":2,\"y\":1},{\"x\":1,\"y\":2}]",
         CX_MERGE_LWW, "{\"x\":2,\"y\":2}"},
        /* Criss-cross inside an object: each parent equals another base there. */
        {"[{\"d\":{\"x\":0}},{\"d\":{\"x\":1}}]", "[{\"d\":{\"x\":0}},{\"d\":{\"x\":1}}]",
         CX_MERGE_MANUAL, "{\"d\":{\"x\":{\"__conflict\":true,\"values\":[0,1]}}}"},
        /* A parent equal to one base as a whole has no say inside when another one competes. */
        {"[{\"d\":{\"x\":0,\"y\":0}},{\"d\":{\"x\":1,\"y\":0}}]",
         "[{\"d\":{\"x\":0,\"y\":0}},{\"d\":{\"x\":1,\"y\":5}}]", CX_MERGE_MANUAL,
         "{\"d\":{\"x\":1,\"y\":5}}"},
        /* An atomic object in a base: no recursion, though both parents are plain. */
        {"[{\"k\":{\"confidence\":1}}]", "[{\"k\":{\"a\":1}},{\"k\":{\"b\":2}}]", CX_MERGE_LWW,
         "{\"k\":{\"b\":2}}"},
        {"[{\"k\":7}]", "[{\"k\":{\"a\":1}},{\"k\":{\"b\":2}}]", CX_MERGE_LWW,
         "{\"k\":{\"a\":1,\"b\":2}}"},
        /* Emptied on both sides it is still there. */
        {"[{\"k\":{\"a\":1,\"b\":2}}]", "[{\"k\":{\"a\":1}},{\"k\":{\"b\":2}}]", CX_MERGE_LWW,
         "{\"k\":{}}"},
        /* Confidence: negative loses to missing, equal values go to the last, big numbers count
         * 0. */
        {"[{}]", "[{\"k\":{\"confidence\":-1}},{\"k\":1}]", CX_MERGE_CONFIDENCE, "{\"k\":1}"},
        {"[{}]", "[{\"k\":1},{\"k\":{\"confidence\":-1}}]", CX_MERGE_CONFIDENCE, "{\"k\":1}"},
        {"[{}]", "[{\"k\":{\"a\":1,\"confidence\":1}},{\"k\":{\"a\":2,\"confidence\":1.0}}]",
         CX_MERGE_CONFIDENCE, "{\"k\":{\"a\":2,\"confidence\":1.0}}"},
        {"[{}]", "[{\"k\":{\"confidence\":1e-05}},{\"k\":{\"confidence\":\"9\"}}]",
         CX_MERGE_CONFIDENCE, "{\"k\":{\"confidence\":1e-05}}"},
        /* Policy: a 2, b -1, others 0. */
        {"[{}]", "[{\"k\":1},{\"k\":2},{\"k\":3}]", CX_MERGE_POLICY, "{\"k\":1}"},
        {"[{\"k\":1}]", "[{\"k\":1},{\"k\":2},{\"k\":3},{\"k\":4}]", CX_MERGE_POLICY, "{\"k\":4}"},
        /* Manual: absent is null, markers are spliced, values are distinct. */
        {"[{\"k\":0}]", "[{},{\"k\":2}]", CX_MERGE_MANUAL,
         "{\"k\":{\"__conflict\":true,\"values\":[null,2]}}"},
        {"[{}]",
         "[{\"k\":{\"__conflict\":true,\"values\":[1,{\"b\":2}]}},{\"k\":1},{\"k\":{\"b\":2,"
         "\"confidence\":0}}]",
         CX_MERGE_MANUAL,
         "{\"k\":{\"__conflict\":true,\"values\":[1,{\"b\":2},{\"b\":2,\"confidence\":0}]}}"},
        {"[{}]", "[{\"k\":1},{\"k\":1.0},{\"k\":1}]", CX_MERGE_MANUAL,
         "{\"k\":{\"__conflict\":true,\"values\":[1,1.0]}}"},
        /* A marker that is none: kept as a value. */
        {"[{}]", "[{\"k\":{\"__conflict\":1,\"values\":[1]}},{\"k\":2}]", CX_MERGE_MANUAL,
         "{\"k\":{\"__conflict\":true,\"values\":[{\"__conflict\":1,\"values\":[1]},2]}}"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        run_row(&rows[i]);
}

CX_TEST(merge_confidence_beyond_doubles_counts_nothing)
{
    cx_buf states;
    cx_buf_init(&states, cx_alloc_default());
    cx_buf_add_z(&states, "[{\"k\":{\"confidence\":0.1}},{\"k\":{\"confidence\":1");
    for (int i = 0; i < 400; i++)
        cx_buf_add_byte(&states, '0');
    cx_buf_add_z(&states, "}}]");
    run_row(&(merge_row){"[{}]", cx_buf_z(&states), CX_MERGE_CONFIDENCE,
                         "{\"k\":{\"confidence\":0.1}}"});
    cx_buf_done(&states);
}

/* --- in a graph ---------------------------------------------------------------------------- */

CX_TEST(merge_order_is_that_of_time_not_of_writing)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "a", 0, 5, "", "{\"memory\":{\"k\":\"late\"}}", NULL);
    fixture_node(&f, "b", "b", 0, 1, "", "{\"memory\":{\"k\":\"early\"}}", NULL);
    fixture_node(&f, "m", "a", 1, 6, "a,b", "{}", NULL);
    fixture_node(&f, "n", "b", 1, 7, "b,a", "{}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(fixture_at(&f, "m", "/memory/k"), "\"late\"");
    CHECK_STR(fixture_at(&f, "n", "/memory/k"), "\"late\"");
    fixture_done(&f);
}

CX_TEST(merge_the_nodes_own_strategy_wins)
{
    static const cx_agent_priority priorities[1] = {{{"a", 1}, 3}};
    cx_state_options options = {CX_MERGE_MANUAL, false, priorities, 1};
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "a", 0, 1, "", "{\"memory\":{\"k\":1},\"goals\":[1]}", NULL);
    fixture_node(&f, "b", "b", 0, 2, "", "{\"memory\":{\"k\":2},\"goals\":[2]}", NULL);
    fixture_node(&f, "l", "a", 1, 3, "a,b", "{}", "{\"merge_strategy\":\"lww\"}");
    fixture_node(&f, "p", "b", 1, 4, "b,a", "{}", "{\"merge_strategy\":\"policy\"}");
    fixture_node(&f, "o", "o", 0, 5, "b,a", "{}", "{\"merge_strategy\":\"other\"}");
    REQUIRE(fixture_open(&f, &options));
    CHECK_STR(fixture_at(&f, "l", "/memory/k"), "2");
    CHECK_STR(fixture_at(&f, "p", "/memory/k"), "1");
    CHECK_STR(fixture_at(&f, "p", "/goals"), "[1]");
    CHECK_STR(fixture_at(&f, "o", "/memory/k/values"), "[1,2]");
    CHECK_STR(fixture_at(&f, "o", "/goals/values"), "[[1],[2]]");
    fixture_done(&f);
}

CX_TEST(merge_base_none_brings_deleted_keys_back)
{
    cx_state_options none = {CX_MERGE_LWW, true, NULL, 0};
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "g", "g", 0, 0, "", "{\"memory\":{\"a\":0,\"b\":0}}", NULL);
    fixture_node(&f, "x", "x", 0, 1, "g", "{\"memory\":{\"a\":1,\"b\":null}}", NULL);
    fixture_node(&f, "y", "y", 0, 2, "g", "{}", NULL);
    fixture_node(&f, "m", "x", 1, 3, "x,y", "{}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(fixture_at(&f, "m", "/memory"), "{\"a\":1}");
    REQUIRE(fixture_states(&f, &none));
    CHECK_STR(fixture_at(&f, "m", "/memory"), "{\"a\":0,\"b\":0}");
    fixture_done(&f);
}

/* One side changed everything, the other nothing: nothing needs to be made for that. */
CX_TEST(merge_takes_over_what_one_side_has)
{
    fixture f;
    cx_buf delta;
    fixture_init(&f);
    cx_buf_init(&delta, cx_alloc_default());
    fixture_node(&f, "g", "g", 0, 0, "", "{\"memory\":{\"k\":1}}", NULL);
    cx_buf_add_z(&delta, "{\"memory\":{");
    for (unsigned i = 0; i < 1000; i++)
        cx_buf_printf(&delta, "%s\"k%u\":%u", i == 0 ? "" : ",", i, i);
    cx_buf_add_z(&delta, "}}");
    fixture_node(&f, "a", "a", 0, 1, "g", cx_buf_z(&delta), NULL);
    fixture_node(&f, "b", "b", 0, 2, "g", "{\"beliefs\":{\"z\":1}}", NULL);
    fixture_node(&f, "m", "a", 1, 3, "a,b", "{}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    const state *a = cx_states_at(f.states, fixture_find(&f, "a"));
    const state *b = cx_states_at(f.states, fixture_find(&f, "b"));
    const state *m = cx_states_at(f.states, fixture_find(&f, "m"));
    CHECK(m->memory == a->memory);
    CHECK(m->beliefs == b->beliefs);
    cx_buf_done(&delta);
    fixture_done(&f);
}
