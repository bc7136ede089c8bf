/*
 * test_snapshot_marks.c - snapshots of a journal, found after the nodes after which they were
 * taken.
 */
#include "view/layout.h"
#include "ledger/snapshot.h"
#include "recorder/snapshot_marks.h"
#include "tests/support/recorder_fixture.h"

typedef struct shown {
    cx_buf lines;
    cx_lattice *lattice;
    cx_lattice_view_snapshot *list;
    size_t count;
} shown;

static void show(fixture *s, shown *out)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_str none = {NULL, 0};
    options.keep_deltas = true;
    cx_buf_init(&out->lines, cx_alloc_default());
    CHECK_STATUS(cx_recorder_lattice(s->home, none, &options, &out->lines, &out->lattice, &s->err),
                 &s->err);
    CHECK_STATUS(cx_recorder_snapshot_marks(s->home, out->lattice, &s->arena, &out->list,
                                            &out->count, &s->err),
                 &s->err);
}

static void shown_done(shown *out)
{
    cx_lattice_close(out->lattice);
    cx_buf_done(&out->lines);
}

static void snapshot(fixture *s, const char *actor)
{
    cx_manifest made;
    CHECK_STATUS(cx_snapshot_make(s->home, cx_str_z(actor), CX_STR("explicit"), s->now_ns,
                                  &s->arena, &made, &s->err),
                 &s->err);
}

static void send(fixture *s, maker *m, bool overridden)
{
    maker_options trace_options = MAKER_OPTIONS_INIT;
    trace_options.overridden = overridden;
    CHECK_INT(fixture_send(s, fixture_make(s, m, &trace_options), "generic"), CX_INTAKE_STORED);
}

CX_TEST(snapshots_are_after_the_newest_event_they_contain)
{
    fixture s;
    maker alpha, beta;
    shown all;
    cx_lattice_node_info info;
    fixture_init(&s, "held", NULL);
    maker_init(&alpha, "alpha");
    maker_init(&beta, "beta");
    fixture_trust(&s, &alpha);
    fixture_trust(&s, &beta);
    send(&s, &alpha, false);
    send(&s, &beta, false);
    send(&s, &alpha, false);
    snapshot(&s, alpha.agent);
    snapshot(&s, alpha.agent);
    send(&s, &alpha, true);
    send(&s, &beta, false);
    snapshot(&s, beta.agent);
    show(&s, &all);
    REQUIRE(all.count == 3);
    for (size_t i = 0; i < all.count; i++) {
        const cx_lattice_view_snapshot *one = &all.list[i];
        bool is_alpha = cx_str_is(one->actor, alpha.agent);
        cx_lattice_node(all.lattice, one->node, &info);
        /* Two traces of six components each. */
        CHECK_INT(info.seq, 11);
        CHECK_INT(one->entries, 2);
        CHECK_INT(one->number, is_alpha ? i : 0);
        CHECK_INT(one->root.size, 64);
        CHECK_INT(one->created_ns, s.now_ns);
        CHECK(!one->sealed);
        cx_str name = info.agent;
        CHECK(memmem(name.data, name.size, one->actor.data, one->actor.size) != NULL);
    }
    uint32_t overrides = 0;
    for (cx_node n = 0; n < cx_lattice_count(all.lattice); n++)
        overrides += cx_lattice_overrides(all.lattice, n);
    CHECK_INT(overrides, 1);
    shown_done(&all);
    fixture_done(&s);
}

CX_TEST(dropped_snapshots_and_those_of_other_actors_are_not_shown)
{
    fixture s;
    maker alpha;
    shown all;
    fixture_init(&s, "held_dropped", NULL);
    maker_init(&alpha, "alpha");
    fixture_trust(&s, &alpha);
    send(&s, &alpha, false);
    snapshot(&s, alpha.agent);
    snapshot(&s, alpha.agent);
    CHECK_STATUS(cx_snapshot_drop(s.home, cx_str_z(alpha.agent), 0, CX_STR("me"), s.now_ns, &s.err),
                 &s.err);
    show(&s, &all);
    REQUIRE(all.count == 1);
    CHECK_INT(all.list[0].number, 1);
    CHECK_INT(all.list[0].node, 5);
    shown_done(&all);
    fixture_done(&s);
}

/* The lattice is of an older state of the home: what came since is after its last node. */
CX_TEST(snapshots_newer_than_the_lattice_are_at_its_end)
{
    fixture s;
    maker alpha;
    shown all;
    fixture_init(&s, "held_newer", NULL);
    maker_init(&alpha, "alpha");
    fixture_trust(&s, &alpha);
    send(&s, &alpha, false);
    show(&s, &all);
    CHECK_INT(all.count, 0);
    send(&s, &alpha, false);
    snapshot(&s, alpha.agent);
    CHECK_STATUS(
        cx_recorder_snapshot_marks(s.home, all.lattice, &s.arena, &all.list, &all.count, &s.err),
        &s.err);
    REQUIRE(all.count == 1);
    CHECK_INT(all.list[0].node, 5);
    CHECK_INT(all.list[0].entries, 2);
    shown_done(&all);
    fixture_done(&s);
}
