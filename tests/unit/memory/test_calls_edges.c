/*
 * test_calls_edges.c - AddEdge, RemoveEdge, lists of edges, Walk (ledger.md §10; §14: 6).
 */
#include <math.h>

#include "tests/unit/memory/calls.h"

#define WITH_HOME(kit, name)                                   \
    calls kit;                                                 \
    if (!calls_init(&kit, name, "andrew", CX_SCHEME_CORTEX_1)) \
        return;

static bool add(calls *kit, uint64_t src, uint8_t type, uint64_t dst)
{
    const cx_edge_name name = {fixture_id(src), type, fixture_id(dst)};
    bool written = false;
    CHECK_STATUS(cx_memory_add_edge(kit->memory, &name, CX_STR(""), 0.0f, (cx_bytes){NULL, 0},
                                    false, &written, &kit->err),
                 &kit->err);
    return written;
}

static cx_status add_raw(calls *kit, uint64_t src, uint8_t type, uint64_t dst, float weight)
{
    const cx_edge_name name = {fixture_id(src), type, fixture_id(dst)};
    bool written;
    return cx_memory_add_edge(kit->memory, &name, CX_STR(""), weight, (cx_bytes){NULL, 0}, false,
                              &written, &kit->err);
}

static bool take_away(calls *kit, uint64_t src, uint8_t type, uint64_t dst)
{
    const cx_edge_name name = {fixture_id(src), type, fixture_id(dst)};
    bool written = false;
    CHECK_STATUS(cx_memory_remove_edge(kit->memory, &name, CX_STR("gone"), CX_STR("bob"), &written,
                                       &kit->err),
                 &kit->err);
    return written;
}

static size_t count_edges(calls *kit, uint64_t id, bool to, uint8_t type, bool removed)
{
    const cx_id of = fixture_id(id);
    const cx_edge_view *edges;
    size_t count = 0;
    CHECK_STATUS(cx_memory_edges(kit->memory, &of, to, type, removed, 100, &kit->arena, &edges,
                                 &count, &kit->err),
                 &kit->err);
    return count;
}

CX_TEST(edges_are_added_removed_and_added_again)
{
    WITH_HOME(kit, "edges");
    for (int i = 0; i < 3; i++)
        (void)calls_write_fact(&kit, "x");
    CHECK(add(&kit, 1, 3, 2));
    CHECK(!add(&kit, 1, 3, 2));
    CHECK(add(&kit, 1, 4, 2));
    CHECK(add(&kit, 3, 3, 2));
    CHECK_INT(count_edges(&kit, 1, false, 0, false), 2);
    CHECK_INT(count_edges(&kit, 1, false, 3, false), 1);
    CHECK_INT(count_edges(&kit, 2, true, 0, false), 3);
    CHECK_INT(count_edges(&kit, 2, true, 3, false), 2);
    CHECK_INT(count_edges(&kit, 2, false, 0, false), 0);
    CHECK(take_away(&kit, 1, 3, 2));
    CHECK(!take_away(&kit, 1, 3, 2));
    CHECK(!take_away(&kit, 2, 3, 1));
    CHECK_INT(count_edges(&kit, 1, false, 0, false), 1);
    CHECK_INT(count_edges(&kit, 1, false, 0, true), 2);
    CHECK_INT(count_edges(&kit, 2, true, 3, false), 1);
    CHECK_INT(count_edges(&kit, 2, true, 3, true), 2);
    CHECK(add(&kit, 1, 3, 2));
    CHECK_INT(count_edges(&kit, 1, false, 3, false), 1);
    CHECK_INT(calls_entries(&kit), 3 + 3 + 1 + 1);
    calls_done(&kit);
}

CX_TEST(edges_are_refused)
{
    WITH_HOME(kit, "refused");
    (void)calls_write_fact(&kit, "x");
    cx_uri dead = calls_write_fact(&kit, "y");
    CHECK_REFUSED(&kit, add_raw(&kit, 1, 0, 2, 0), "InvalidEdgeType");
    CHECK_REFUSED(&kit, add_raw(&kit, 1, 15, 2, 0), "InvalidEdgeType");
    CHECK_REFUSED(&kit, add_raw(&kit, 1, 1, 1, 0), "SelfEdge");
    CHECK_REFUSED(&kit, add_raw(&kit, 1, 1, 3, 0), "DanglingEdge");
    CHECK_REFUSED(&kit, add_raw(&kit, 3, 1, 1, 0), "DanglingEdge");
    CHECK_REFUSED(&kit, add_raw(&kit, 1, 1, 2, INFINITY), "InvalidArgument");
    const cx_edge_name name = {fixture_id(1), 99, fixture_id(2)};
    bool written;
    CHECK_REFUSED(
        &kit, cx_memory_remove_edge(kit.memory, &name, CX_STR(""), CX_STR(""), &written, &kit.err),
        "InvalidEdgeType");
    /* A dead end is an end. */
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &dead, CX_STR(""), CX_STR(""), &kit.err),
                 &kit.err);
    CHECK(add(&kit, 1, 1, 2));
    calls_done(&kit);
}

/* --- Walk ------------------------------------------------------------------------------------- */

static size_t walk(calls *kit, uint64_t from, unsigned depth, bool backwards, bool *out_cut)
{
    const cx_id start = fixture_id(from);
    const cx_memory_step *steps;
    size_t count = 0;
    CHECK_STATUS(cx_memory_walk(kit->memory, &start, depth, backwards, &kit->arena, &steps, &count,
                                out_cut, &kit->err),
                 &kit->err);
    for (size_t i = 1; i < count; i++)
        CHECK(steps[i].depth >= steps[i - 1].depth && steps[i].by_type == 3);
    return count;
}

CX_TEST(walk_is_breadth_first_and_says_when_it_was_cut)
{
    WITH_HOME(kit, "walk");
    /* A line of 12 with a circle back to its beginning, and a removed edge. */
    for (int i = 0; i < 13; i++)
        (void)calls_write_fact(&kit, "x");
    for (uint64_t i = 1; i < 12; i++)
        (void)add(&kit, i, 3, i + 1);
    (void)add(&kit, 12, 3, 1);
    (void)add(&kit, 1, 3, 13);
    (void)take_away(&kit, 1, 3, 13);
    bool cut = true;
    CHECK_INT(walk(&kit, 1, 0, false, &cut), 1);
    CHECK(cut);
    CHECK_INT(walk(&kit, 1, 2, false, &cut), 3);
    CHECK(cut);
    CHECK_INT(walk(&kit, 1, 8, false, &cut), 9);
    CHECK(cut);
    CHECK_INT(walk(&kit, 1, 3, true, &cut), 4);
    CHECK(cut);
    CHECK_INT(walk(&kit, 13, 8, true, &cut), 1);
    CHECK(!cut);
    for (uint64_t i = 2; i < 12; i++)
        (void)take_away(&kit, i, 3, i + 1);
    CHECK_INT(walk(&kit, 1, 1, false, &cut), 2);
    CHECK(!cut);
    const cx_id nowhere = fixture_id(99), start = fixture_id(1);
    const cx_memory_step *steps;
    size_t count;
    CHECK_REFUSED(
        &kit,
        cx_memory_walk(kit.memory, &nowhere, 1, false, &kit.arena, &steps, &count, &cut, &kit.err),
        "NotFound");
    CHECK_REFUSED(
        &kit,
        cx_memory_walk(kit.memory, &start, 9, false, &kit.arena, &steps, &count, &cut, &kit.err),
        "InvalidArgument");
    calls_done(&kit);
}
