/*
 * test_ancestors.c - best common ancestors against their definition, on small and random graphs.
 */
#include "lattice/ancestors.h"

#include "tests/support/lattice_fixture.h"

enum { NODES = 60 };

/* ancestors[n] has bit a when a is n or an ancestor of it. */
static void close_over(const cx_lattice *lattice, uint64_t ancestors[NODES])
{
    for (uint32_t p = 0; p < lattice->order_count; p++) {
        cx_node which = lattice->order[p];
        const node *n = node_at(lattice, which);
        ancestors[which] = UINT64_C(1) << which;
        for (uint32_t i = 0; i < n->parent_count; i++)
            ancestors[which] |= ancestors[node_parents(lattice, n)[i]];
    }
}

static uint64_t best_common(const uint64_t ancestors[NODES], const cx_node *heads, size_t count)
{
    uint64_t common = UINT64_MAX, best = 0;
    for (size_t i = 0; i < count; i++)
        common &= ancestors[heads[i]];
    for (unsigned a = 0; a < NODES; a++) {
        bool below_another = false;
        for (unsigned b = 0; b < NODES; b++)
            below_another |= a != b && (common >> b & 1) != 0 && (ancestors[b] >> a & 1) != 0;
        if ((common >> a & 1) != 0 && !below_another)
            best |= UINT64_C(1) << a;
    }
    return best;
}

static void random_lattice(fixture *f, uint64_t *random)
{
    for (int i = 0; i < NODES; i++) {
        char id[16], parents[64] = "";
        unsigned parent_count = i == 0 ? 0 : (unsigned)(cx_test_random(random) % 4);
        if (parent_count == 0 && cx_test_random(random) % 8 != 0 && i > 0)
            parent_count = 1;
        uint64_t taken = 0;
        for (unsigned k = 0; k < parent_count; k++) {
            /* Mostly recent ones, so that graphs are deep. */
            uint64_t span = cx_test_random(random) % 3 == 0 ? (uint64_t)i : 6;
            int parent =
                i - 1 - (int)(cx_test_random(random) % (span > (uint64_t)i ? (uint64_t)i : span));
            if ((taken >> parent & 1) != 0)
                continue;
            taken |= UINT64_C(1) << parent;
            size_t used = strlen(parents);
            (void)snprintf(parents + used, sizeof parents - used, "%sn%d", used ? "," : "", parent);
        }
        (void)snprintf(id, sizeof id, "n%d", i);
        fixture_node(f, id, "w", i, i, parents, "{}", NULL);
    }
}

static void check_answer(const cx_lattice *lattice, const cx_node *found, size_t count,
                         uint64_t expected)
{
    uint64_t got = 0;
    for (size_t i = 0; i < count; i++) {
        got |= UINT64_C(1) << found[i];
        if (i != 0)
            CHECK(lattice->position[found[i - 1]] > lattice->position[found[i]]);
    }
    CHECK_INT(got, expected);
}

CX_TEST(ancestors_as_defined_on_random_graphs)
{
    uint64_t random = cx_test_seed();
    for (unsigned round = 0; round < 40; round++) {
        fixture f;
        uint64_t ancestors[NODES];
        fixture_init(&f);
        random_lattice(&f, &random);
        REQUIRE(fixture_load(&f));
        REQUIRE(f.lattice->order_count == NODES);
        close_over(f.lattice, ancestors);
        ancestry plain, spanned;
        cx_ancestry_init(&plain, f.lattice);
        cx_ancestry_init(&spanned, f.lattice);
        CHECK_STATUS(cx_ancestry_span(&spanned, &f.err), &f.err);
        for (unsigned query = 0; query < 60; query++) {
            cx_node heads[80];
            size_t count = query == 0 ? 80 : 1 + cx_test_random(&random) % 5;
            for (size_t i = 0; i < count; i++)
                heads[i] = (cx_node)(cx_test_random(&random) % NODES);
            uint64_t expected = best_common(ancestors, heads, count);
            CHECK_STATUS(cx_ancestry_find(&plain, heads, count, &f.err), &f.err);
            check_answer(f.lattice, plain.found.items, plain.found.count, expected);
            CHECK_STATUS(cx_ancestry_find(&spanned, heads, count, &f.err), &f.err);
            check_answer(f.lattice, spanned.found.items, spanned.found.count, expected);
        }
        cx_ancestry_done(&plain);
        cx_ancestry_done(&spanned);
        fixture_done(&f);
    }
}

CX_TEST(ancestors_more_heads_than_bits_in_a_word)
{
    fixture f;
    cx_node heads[200], *found;
    size_t count;
    cx_arena arena;
    fixture_init(&f);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    fixture_node(&f, "r", "w", 0, 0, "", "{}", NULL);
    fixture_node(&f, "s", "w", 1, 1, "r", "{}", NULL);
    for (int i = 0; i < 199; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "h%d", i);
        fixture_node(&f, id, "w", 2 + i, 2 + i, "s", "{}", NULL);
    }
    REQUIRE(fixture_load(&f));
    for (cx_node i = 0; i < 199; i++)
        heads[i] = 2 + i;
    CHECK_STATUS(cx_lattice_common(f.lattice, heads, 199, &arena, &found, &count, &f.err), &f.err);
    CHECK(count == 1 && found[0] == 1);
    heads[199] = 0;
    CHECK_STATUS(cx_lattice_common(f.lattice, heads, 200, &arena, &found, &count, &f.err), &f.err);
    CHECK(count == 1 && found[0] == 0);
    cx_arena_done(&arena);
    fixture_done(&f);
}

CX_TEST(ancestors_criss_cross_has_two_latest_first)
{
    fixture f;
    cx_node *found;
    size_t count;
    cx_arena arena;
    fixture_init(&f);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    fixture_node(&f, "g", "g", 0, 0, "", "{}", NULL);
    fixture_node(&f, "a1", "a", 0, 1, "g", "{}", NULL);
    fixture_node(&f, "b1", "b", 0, 2, "g", "{}", NULL);
    fixture_node(&f, "a2", "a", 1, 3, "a1,b1", "{}", NULL);
    fixture_node(&f, "b2", "b", 1, 4, "b1,a1", "{}", NULL);
    fixture_node(&f, "z", "z", 0, 5, "", "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_common(f.lattice, (cx_node[]){3, 4}, 2, &arena, &found, &count, &f.err),
                 &f.err);
    CHECK(count == 2 && found[0] == 2 && found[1] == 1);
    CHECK_STATUS(cx_lattice_common(f.lattice, (cx_node[]){3, 5}, 2, &arena, &found, &count, &f.err),
                 &f.err);
    CHECK_INT(count, 0);
    CHECK_STATUS(cx_lattice_common(f.lattice, (cx_node[]){3, 3}, 2, &arena, &found, &count, &f.err),
                 &f.err);
    CHECK(count == 1 && found[0] == 3);
    cx_arena_done(&arena);
    fixture_done(&f);
}

/* A branch that comes back is found without walking the trunk to where it left. */
CX_TEST(ancestors_cost_follows_the_region)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "t0", "t", 0, 0, "", "{}", NULL);
    for (int i = 1; i < 3000; i++) {
        char id[16], parent[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        (void)snprintf(parent, sizeof parent, "t%d", i - 1);
        fixture_node(&f, id, "t", i, i, parent, "{}", NULL);
    }
    fixture_node(&f, "s", "s", 0, 3000, "t0", "{}", NULL);
    REQUIRE(fixture_load(&f));
    ancestry search;
    cx_ancestry_init(&search, f.lattice);
    CHECK_STATUS(cx_ancestry_span(&search, &f.err), &f.err);
    CHECK_STATUS(cx_ancestry_find(&search, (cx_node[]){2999, 3000}, 2, &f.err), &f.err);
    CHECK(search.found.count == 1 && search.found.items[0] == 0);
    CHECK(search.met.count < 10);
    cx_ancestry_done(&search);
    fixture_done(&f);
}
