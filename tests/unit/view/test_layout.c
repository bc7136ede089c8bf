/*
 * test_layout.c - lanes, rows, edges, folding and windows of pictures, against what the graph says.
 */
#include "view/layout.h"

#include <stdio.h>

#include "tests/test.h"

/* --- lattices for pictures: hashes are made up, since drawing does not ask for them ----------- */

static void add_node(cx_buf *out, const char *id, const char *who, int seq, double at,
                     const char *parents, const char *fork)
{
    cx_buf_printf(out,
                  "{\"node_id\":\"%s\",\"agent_id\":\"%s\",\"seq\":%d,\"timestamp\":%d,"
                  "\"event\":{\"type\":\"act\"},\"state_delta\":{},\"prev_hash\":\"\","
                  "\"hash\":\"%064d\",\"parents\":[%s],\"fork_type\":%s}\n",
                  id, who, seq, (int)at, seq, parents, fork);
}

static cx_lattice *open_text(const cx_buf *text)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(text), &options, &lattice, &err), &err);
    return lattice;
}

static cx_str row_id(const cx_lattice *lattice, const layout *l, uint32_t row)
{
    static char scratch[16];
    return cx_lattice_label(lattice, l->rows[row].node, scratch);
}

static const layout_edge *edge_into(const layout *l, uint32_t row, uint32_t number)
{
    return &l->edges[l->rows[row].first_edge + number];
}

CX_TEST(layout_rows_are_topological_and_lanes_appear_in_that_order)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    add_node(&text, "c", "second", 1, 3, "\"a\",\"b\"", "null"); /* last first */
    add_node(&text, "b", "second", 0, 2, "\"a\"", "\"natural\"");
    add_node(&text, "a", "first", 0, 1, "", "null");
    cx_lattice *lattice = open_text(&text);
    layout l;
    cx_err err;
    CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &(layout_options){.labels = true}, &err),
                 &err);
    CHECK_INT(l.row_count, 3);
    CHECK_INT(l.row_total, 3);
    CHECK_STR(row_id(lattice, &l, 0), "a");
    CHECK_STR(row_id(lattice, &l, 1), "b");
    CHECK_STR(row_id(lattice, &l, 2), "c");
    CHECK_INT(l.lane_count, 2);
    CHECK_STR(layout_lane_name(lattice, &l.lanes[0]), "first");
    CHECK_STR(layout_lane_name(lattice, &l.lanes[1]), "second");
    CHECK_INT(l.lanes[1].node_count, 2);
    CHECK_INT(l.lanes[0].last, 0);
    CHECK_INT(l.lanes[0].last_use, 2); /* c reaches back to it */
    CHECK_STR(l.rows[0].label, "act");
    CHECK(l.rows[0].marks & LAYOUT_IS_ROOT);
    CHECK(l.rows[0].marks & LAYOUT_IS_HEAD);
    CHECK((l.rows[1].marks & LAYOUT_IS_HEAD) == 0);
    cx_lattice_layout_done(&l);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

CX_TEST(layout_tells_the_types_of_edges)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    add_node(&text, "a0", "a", 0, 1, "", "null");
    add_node(&text, "b0", "b", 0, 2, "\"a0\"", "\"injection\"");
    add_node(&text, "a1", "a", 1, 3, "\"a0\"", "null");
    add_node(&text, "t1", "a", 1, 4, "\"a0\"", "\"observation\""); /* a self-fork */
    add_node(&text, "a2", "a", 2, 5, "\"a1\",\"t1\",\"b0\",\"a0\"", "null");
    cx_lattice *lattice = open_text(&text);
    layout l;
    cx_err err;
    CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &(layout_options){0}, &err), &err);
    REQUIRE(l.row_count == 5 && l.edge_count == 7);
    CHECK_INT(edge_into(&l, 1, 0)->type, LAYOUT_FORK);
    CHECK_INT(edge_into(&l, 1, 0)->fork, CX_FORK_INJECTION);
    CHECK_INT(edge_into(&l, 2, 0)->type, LAYOUT_LINEAGE);
    CHECK_INT(edge_into(&l, 3, 0)->type, LAYOUT_FORK);
    CHECK_INT(edge_into(&l, 3, 0)->fork, CX_FORK_OBSERVATION);
    unsigned seen[4] = {0};
    for (uint32_t i = 0; i < l.rows[4].edge_count; i++)
        seen[edge_into(&l, 4, i)->type]++;
    /* prev_hash names no node here, so the lineage parent is the first in time: a0. */
    CHECK_INT(seen[LAYOUT_LINEAGE], 1);
    CHECK_INT(seen[LAYOUT_MERGE], 3);
    CHECK(l.rows[4].marks & LAYOUT_IS_MERGE);
    cx_lattice_layout_done(&l);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

CX_TEST(layout_shows_what_has_no_topological_place)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    add_node(&text, "x", "a", 0, 5, "\"y\"", "null");
    add_node(&text, "y", "a", 1, 6, "\"x\"", "null");
    cx_buf_add_z(&text, "{\"node_id\":\"bad\",\"seq\":0}\n");
    add_node(&text, "ok", "b", 0, 9, "", "null");
    add_node(&text, "ok", "b", 1, 9, "", "null"); /* repeated */
    cx_lattice *lattice = open_text(&text);
    cx_lattice_report *report;
    cx_err err;
    CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
    layout l;
    layout_options options = {.report = report, .fold = true};
    CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &options, &err), &err);
    REQUIRE(l.row_count == 5);
    CHECK_STR(row_id(lattice, &l, 0), "ok");
    CHECK_STR(row_id(lattice, &l, 1), "x");
    CHECK(l.rows[1].marks & LAYOUT_NO_ORDER);
    CHECK(l.rows[1].marks & LAYOUT_HAS_ERROR);
    CHECK_INT(edge_into(&l, 1, 0)->from, 2); /* against the order: the cycle */
    CHECK_INT(l.rows[1].code, CX_E_CYCLE);
    CHECK(l.rows[3].marks & LAYOUT_LEFT_OUT);
    CHECK_INT(l.rows[3].code, CX_E_SCHEMA);
    CHECK(l.rows[4].marks & LAYOUT_LEFT_OUT);
    CHECK_INT(l.rows[4].edge_count, 0);
    CHECK_STR(layout_lane_name(lattice, &l.lanes[2]), "?");
    CHECK_INT(l.lanes[l.rows[1].lane].verdict, LAYOUT_INVALID);
    cx_lattice_layout_done(&l);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

/* --- folding ---------------------------------------------------------------------------------- */

/* A chain of `count` nodes; with `cross`, another agent branches off from that one. */
static cx_lattice *open_chain(cx_buf *text, int count, int cross)
{
    cx_buf_clear(text);
    for (int i = 0; i < count; i++) {
        char id[24], parent[32] = "";
        snprintf(id, sizeof id, "c%d", i);
        if (i > 0)
            snprintf(parent, sizeof parent, "\"c%d\"", i - 1);
        add_node(text, id, "w", i, i, parent, "null");
        if (i == cross) {
            snprintf(parent, sizeof parent, "\"c%d\"", i);
            add_node(text, "other", "o", 0, i, parent, "\"natural\"");
        }
    }
    return open_text(text);
}

static uint32_t folded_rows(int count, int cross, uint32_t *out_longest)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_lattice *lattice = open_chain(&text, count, cross);
    layout l;
    cx_err err;
    CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &(layout_options){.fold = true}, &err), &err);
    uint32_t nodes = 0;
    *out_longest = 0;
    for (uint32_t r = 0; r < l.row_count; r++) {
        nodes += l.rows[r].folded == 0 ? 1 : l.rows[r].folded;
        if (l.rows[r].folded > *out_longest)
            *out_longest = l.rows[r].folded;
    }
    CHECK_INT(nodes, cx_lattice_count(lattice)); /* I1 */
    uint32_t rows = l.row_count;
    cx_lattice_layout_done(&l);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
    return rows;
}

CX_TEST(layout_folds_quiet_stretches_only)
{
    uint32_t longest;
    CHECK_INT(folded_rows(9, -1, &longest), 9); /* 7 quiet: too short */
    CHECK_INT(longest, 0);
    CHECK_INT(folded_rows(10, -1, &longest), 3); /* root, 8 quiet, head */
    CHECK_INT(longest, 8);
    CHECK_INT(folded_rows(30, 15, &longest), 6); /* root, 14, 15, other, 13, head */
    CHECK_INT(longest, 14);
    CHECK_INT(folded_rows(100000, -1, &longest), 3);
    CHECK_INT(longest, 99998);
}

CX_TEST(layout_never_folds_a_finding_away)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_lattice *lattice = open_chain(&text, 30, -1); /* all hashes are made up */
    cx_lattice_report *report;
    cx_err err;
    CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
    layout l;
    layout_options options = {.report = report, .fold = true};
    CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &options, &err), &err);
    CHECK_INT(l.row_count, 30);
    CHECK(l.rows[12].marks & LAYOUT_HAS_ERROR);
    CHECK_INT(l.rows[12].code, CX_E_HASH);
    CHECK(l.rows[12].finding_count >= 1);
    cx_lattice_layout_done(&l);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

/* --- properties over random lattices ---------------------------------------------------------- */

#define RANDOM_NODES 60

static cx_lattice *open_random(cx_buf *text, uint64_t *seed)
{
    int seqs[5] = {0}, last[5] = {-1, -1, -1, -1, -1};
    cx_buf_clear(text);
    for (int i = 0; i < RANDOM_NODES; i++) {
        /* Mostly the same agent again, so that stretches become long enough to fold. */
        uint64_t pick = cx_test_random(seed) % 40;
        int who = pick < 5 ? (int)pick : (i / 15) % 5;
        char id[16], name[16], parents[64] = "";
        snprintf(id, sizeof id, "n%d", i);
        snprintf(name, sizeof name, "agent%d", who);
        if (last[who] >= 0)
            snprintf(parents, sizeof parents, "\"n%d\"", last[who]);
        int other = i > 0 ? (int)(cx_test_random(seed) % (uint64_t)i) : -1;
        bool joins = cx_test_random(seed) % 8 == 0 || last[who] < 0;
        if (joins && other >= 0 && other != last[who])
            snprintf(parents + strlen(parents), sizeof parents - strlen(parents), "%s\"n%d\"",
                     parents[0] != '\0' ? "," : "", other);
        add_node(text, id, name, seqs[who]++, i, parents, last[who] < 0 ? "\"natural\"" : "null");
        last[who] = i;
    }
    return open_text(text);
}

/* Every edge of the graph with an end in the window, each once, and none within a fold (I4). */
static void check_edges(const cx_lattice *lattice, const layout *l)
{
    static uint32_t row_of[RANDOM_NODES];
    for (cx_node n = 0; n < RANDOM_NODES; n++)
        row_of[n] = LAYOUT_OUTSIDE;
    for (uint32_t r = 0; r < l->row_count; r++) {
        cx_node n = l->rows[r].last;
        for (uint32_t i = 1; i < l->rows[r].folded; i++, n = node_at(lattice, n)->lineage)
            row_of[n] = r;
        CHECK_INT(n, l->rows[r].node);
        row_of[n] = r;
    }
    uint32_t expected = 0;
    for (cx_node n = 0; n < RANDOM_NODES; n++) {
        const node *child = node_at(lattice, n);
        for (uint32_t i = 0; i < child->parent_count; i++) {
            cx_node parent = node_parents(lattice, child)[i];
            bool in = row_of[n] != LAYOUT_OUTSIDE || row_of[parent] != LAYOUT_OUTSIDE;
            expected += in && row_of[n] != row_of[parent];
        }
    }
    CHECK_INT(l->edge_count, expected);
    for (uint32_t i = 0; i < l->edge_count; i++) {
        const layout_edge *edge = &l->edges[i];
        CHECK_INT(edge->from, row_of[edge->parent]);
        CHECK_INT(edge->to, row_of[edge->child]);
        if (edge->from != LAYOUT_OUTSIDE && edge->to != LAYOUT_OUTSIDE)
            CHECK(edge->from < edge->to); /* I2 */
    }
}

static void check_columns(const layout *l)
{
    for (uint32_t r = 1; r < l->row_count; r++) {
        CHECK(l->rows[r].column >= l->rows[r - 1].column);
        for (uint32_t q = 0; q < r; q++) {
            if (l->rows[q].column == l->rows[r].column)
                CHECK(l->rows[q].lane != l->rows[r].lane);
        }
        for (uint32_t i = 0; i < l->rows[r].edge_count; i++) {
            uint32_t from = edge_into(l, r, i)->from;
            if (from != LAYOUT_OUTSIDE)
                CHECK(l->rows[from].column < l->rows[r].column);
        }
    }
}

CX_TEST(layout_windows_and_folds_keep_the_invariants)
{
    uint64_t seed = cx_test_seed();
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    uint32_t folds = 0;
    for (int round = 0; round < 60; round++) {
        cx_lattice *lattice = open_random(&text, &seed);
        layout_options options = {.fold = round % 2 == 0,
                                  .first = (uint32_t)(cx_test_random(&seed) % 30),
                                  .max_rows = (uint32_t)(cx_test_random(&seed) % 40)};
        layout l;
        cx_err err;
        CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &options, &err), &err);
        CHECK(options.max_rows == 0 || l.row_count <= options.max_rows);
        CHECK(l.first + l.row_count <= l.row_total);
        for (uint32_t r = 0; r < l.row_count; r++)
            folds += l.rows[r].folded != 0;
        check_edges(lattice, &l);
        check_columns(&l);
        cx_lattice_layout_done(&l);
        cx_lattice_close(lattice);
    }
    CHECK(folds > 0); /* or this test says nothing about folding */
    cx_buf_done(&text);
}

CX_TEST(layout_window_after_the_end_is_empty)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_lattice *lattice = open_chain(&text, 5, -1);
    layout l;
    cx_err err;
    CHECK_STATUS(cx_lattice_layout_init(&l, lattice, &(layout_options){.first = 99}, &err), &err);
    CHECK_INT(l.row_count, 0);
    CHECK_INT(l.edge_count, 0);
    CHECK_INT(l.first, 5);
    cx_lattice_layout_done(&l);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}
