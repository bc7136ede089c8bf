/*
 * test_view_marks.c - what stands out of a history: overrides and snapshots next to findings, forks
 * and merges.
 */
#include "tests/support/lattice_fixture.h"
#include "view/layout.h"
#include "view/view.h"

/* The fixture's hashes are made up, so each of its nodes has a violation's mark, too. */
typedef struct scene {
    fixture f;
    cx_lattice_report *report;
    cx_lattice_view *view;
} scene;

static bool scene_open(scene *s, bool fold)
{
    cx_status status = {0};
    if (!fixture_open(&s->f, NULL))
        return false;
    status = cx_lattice_verify(s->f.lattice, NULL, &s->report, &s->f.err);
    if (!cx_failed(status))
        status = cx_lattice_view_open(s->f.lattice, s->report, fold, &s->view, &s->f.err);
    return !cx_failed(status);
}

static void scene_done(scene *s)
{
    cx_lattice_view_close(s->view);
    cx_lattice_report_close(s->report);
    fixture_done(&s->f);
}

static cx_str overview(scene *s, const cx_lattice_view_range *range)
{
    cx_buf_clear(&s->f.out);
    CHECK_STATUS(cx_lattice_view_overview(&s->f.out, s->view, range, &s->f.err), &s->f.err);
    return cx_buf_str(&s->f.out);
}

static cx_str detail(scene *s, const char *name)
{
    cx_buf_clear(&s->f.out);
    CHECK_STATUS(
        cx_lattice_view_node(&s->f.out, s->view, s->f.states, fixture_find(&s->f, name), &s->f.err),
        &s->f.err);
    return cx_buf_str(&s->f.out);
}

/* Marks are kind, column, node, again and again. */
static unsigned count_marks(cx_str overview_text, unsigned long kind)
{
    static const char name[] = "\"marks\":[";
    unsigned count = 0;
    const char *at = memmem(overview_text.data, overview_text.size, name, sizeof name - 1);
    if (at == NULL)
        return UINT32_MAX;
    at += sizeof name - 1;
    for (unsigned i = 0; *at != ']'; i++) {
        char *end;
        unsigned long value = strtoul(at, &end, 10);
        count += i % 3 == 0 && value == kind;
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* A path of one agent: n0 .. n(count-1), of which one has the delta given. */
static void path(fixture *f, const char *who, int count, int special, const char *delta)
{
    fixture_init(f);
    for (int i = 0; i < count; i++) {
        char id[16], before[16] = "";
        (void)snprintf(id, sizeof id, "n%d", i);
        if (i > 0)
            (void)snprintf(before, sizeof before, "n%d", i - 1);
        fixture_node(f, id, who, i, i, before, i == special ? delta : "{\"memory\":{\"k\":1}}",
                     NULL);
    }
}

static uint32_t overrides_of(const char *who, const char *delta)
{
    fixture f;
    path(&f, who, 1, 0, delta);
    uint32_t count = fixture_load(&f) ? cx_lattice_overrides(f.lattice, 0) : UINT32_MAX;
    fixture_done(&f);
    return count;
}

CX_TEST(overrides_are_members_and_not_words)
{
#define SAYS(what) "{\"memory\":{\"c\":{\"action_was_overridden\":" what "}}}"
    CHECK_INT(overrides_of("a", SAYS("true")), 1);
    CHECK_INT(overrides_of("a", SAYS("false")), 0);
    CHECK_INT(overrides_of("a", SAYS("\"true\"")), 0);
    CHECK_INT(overrides_of("a", "{\"memory\":{\"action_was_overridden\":true,\"d\":{"
                                "\"action_was_overridden\":true}}}"),
              2);
    CHECK_INT(overrides_of("a", "{\"memory\":{\"action_was_overridden\":true}}"), 1);
    CHECK_INT(overrides_of("a", "{\"memory\":{\"k\":\"\\\"action_was_overridden\\\":true\"}}"), 0);
    CHECK_INT(overrides_of("a", "{\"memory\":{\",\\\"action_was_overridden\":true}}"), 0);
    CHECK_INT(overrides_of("a", "{\"memory\":{\"action_was_overridden2\":true}}"), 0);
    CHECK_INT(overrides_of("a", "{}"), 0);
    /* A person's word counts in runs only: elsewhere it is an agent's name for something. */
    static const char approved[] =
        "{\"memory\":{\"last.HUMAN_APPROVAL_COMPLETED\":{\"by\":\"x\"}}}";
    CHECK_INT(overrides_of("run/r1/t1", approved), 1);
    CHECK_INT(overrides_of("a", approved), 0);
    CHECK_INT(overrides_of("run/r1/t1", "{\"memory\":{\"last.HUMAN_APPROVAL_REQUIRED\":{}}}"), 0);
}

CX_TEST(an_override_is_marked_and_never_folded)
{
    fixture f;
    layout l;
    const layout_options options = {.fold = true};
    path(&f, "a", 40, 20, SAYS("true"));
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_layout_init(&l, f.lattice, &options, &f.err), &f.err);
    /* The first, a fold, the override, a fold, the head. */
    REQUIRE(l.row_count == 5);
    CHECK_INT(l.rows[1].folded, 19);
    CHECK_INT(l.rows[2].node, 20);
    CHECK_INT(l.rows[2].folded, 0);
    CHECK_INT(l.rows[2].marks, LAYOUT_IS_OVERRIDE);
    CHECK_INT(l.rows[3].folded, 18);
    CHECK((l.rows[1].marks & LAYOUT_IS_OVERRIDE) == 0);
    cx_lattice_layout_done(&l);
    fixture_done(&f);
}

CX_TEST(an_override_is_told_of_its_node)
{
    scene s = {.view = NULL};
    path(&s.f, "a", 4, 2, SAYS("true"));
    REQUIRE(scene_open(&s, false));
    CHECK(contains(overview(&s, &(cx_lattice_view_range){.from = 0}), ",6,2,2,"));
    CHECK(contains(detail(&s, "n2"), "\"override\":1,\"snapshots\":[],"));
    CHECK(contains(detail(&s, "n1"), "\"override\":0,\"snapshots\":[],"));
    scene_done(&s);
}

CX_TEST(snapshots_are_marks_of_their_node)
{
    scene s = {.view = NULL};
    path(&s.f, "a", 6, -1, NULL);
    REQUIRE(scene_open(&s, false));
    const cx_lattice_view_snapshot held[] = {
        {.node = 4,
         .number = 1,
         .entries = 5,
         .created_ns = 9,
         .actor = CX_STR("a\"b"),
         .root = CX_STR("ff"),
         .sealed = true},
        {.node = 1,
         .number = 0,
         .entries = 2,
         .created_ns = -3,
         .actor = CX_STR("b"),
         .root = CX_STR("00")},
        {.node = 4,
         .number = 2,
         .entries = 5,
         .created_ns = 10,
         .actor = CX_STR("a\"b"),
         .root = CX_STR("ff")},
    };
    CHECK_STATUS(cx_lattice_view_snapshots(s.view, held, 3, &s.f.err), &s.f.err);
    CHECK(contains(overview(&s, &(cx_lattice_view_range){.from = 0}),
                   ",7,1,1,7,4,4,7,4,4],\"to\":6}"));
    /* Windows have theirs alone. */
    CHECK(contains(overview(&s, &(cx_lattice_view_range){.from = 2, .to = 6}),
                   ",7,4,4,7,4,4],\"to\":6}"));
    CHECK(!contains(overview(&s, &(cx_lattice_view_range){.from = 2, .to = 4}), ",7,"));
    CHECK(contains(detail(&s, "n4"),
                   "\"snapshots\":[{\"actor\":\"a\\\"b\",\"created_ns\":9,\"entries\":5,"
                   "\"number\":1,\"root\":\"ff\",\"sealed\":true},{\"actor\":\"a\\\"b\","
                   "\"created_ns\":10,\"entries\":5,\"number\":2,\"root\":\"ff\","
                   "\"sealed\":false}]"));
    CHECK(contains(detail(&s, "n1"), "\"created_ns\":-3,"));
    CHECK(contains(detail(&s, "n2"), "\"snapshots\":[]"));
    const cx_lattice_view_snapshot nowhere = {.node = 6};
    CHECK_INT(cx_lattice_view_snapshots(s.view, &nowhere, 1, &s.f.err).code, CX_E_USAGE);
    scene_done(&s);
}

CX_TEST(marks_of_one_column_are_all_told)
{
    scene s = {.view = NULL};
    fixture_init(&s.f);
    fixture_node(&s.f, "n", "root", 0, 0, "", "{}", NULL);
    for (int i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "c%d", i);
        fixture_node(&s.f, id, id, 0, 1, "n", SAYS("true"), NULL);
    }
    REQUIRE(scene_open(&s, false));
    cx_str all = overview(&s, &(cx_lattice_view_range){.from = 0});
    CHECK_INT(count_marks(all, 6), 16);
    CHECK_INT(count_marks(all, 7), 0);
    scene_done(&s);
}

/* M1 */
CX_TEST(marks_stay_few_in_long_histories)
{
    scene s = {.view = NULL};
    fixture_init(&s.f);
    cx_node expected = 0;
    for (int i = 0; i < 5000; i++) {
        char id[16], before[16] = "";
        (void)snprintf(id, sizeof id, "n%d", i);
        if (i > 0)
            (void)snprintf(before, sizeof before, "n%d", i - 1);
        fixture_node(&s.f, id, "a", i, i, before, SAYS("true"), NULL);
        expected++;
    }
    REQUIRE(scene_open(&s, true));
    cx_str all = overview(&s, &(cx_lattice_view_range){.from = 0});
    CHECK_INT(count_marks(all, 6), 1000);
    CHECK_INT(cx_lattice_count(s.f.lattice), expected);
    scene_done(&s);
}
