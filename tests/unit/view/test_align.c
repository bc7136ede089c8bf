/*
 * test_align.c - which step of one history is which of another.
 */
#include "tests/support/lattice_fixture.h"
#include "view/align.h"
#include "view/view.h"

/* A history of one agent from letters: an upper-case letter is a kind of event, the digit after it
 * what it found.  "A1B1" = two events. */
static void spell(fixture *f, const char *who, const char *steps)
{
    for (int i = 0; steps[2 * i] != 0; i++) {
        char id[24], before[24] = "", event[64], delta[128];
        (void)snprintf(id, sizeof id, "%s%d", who, i);
        if (i > 0)
            (void)snprintf(before, sizeof before, "%s%d", who, i - 1);
        (void)snprintf(event, sizeof event, "{\"type\":\"%c\"}", steps[2 * i]);
        (void)snprintf(delta, sizeof delta, "{\"memory\":{\"last.%c\":{\"n\":%c,\"who\":\"%s\"}}}",
                       steps[2 * i], steps[2 * i + 1], who);
        fixture_node(f, id, who, i, i, before, delta, event);
    }
}

typedef struct both {
    fixture f[2];
    alignment a;
} both;

static void both_open(both *b, const char *left, const char *right, const char *id_a,
                      const char *id_b)
{
    align_side sides[2];
    const char *texts[2] = {left, right}, *names[2] = {"xx0", "yy0"}, *ids[2] = {id_a, id_b};
    for (unsigned side = 0; side < 2; side++) {
        fixture_init(&b->f[side]);
        spell(&b->f[side], names[side], texts[side]);
        if (texts[side][0] == 0)
            fixture_node(&b->f[side], "only", "z", 0, 0, "", "{}", NULL);
        CHECK(fixture_load(&b->f[side]));
        sides[side] = (align_side){.lattice = b->f[side].lattice,
                                   .path = b->f[side].lattice->order,
                                   .count = strlen(texts[side]) / 2,
                                   .id = cx_str_z(ids[side])};
    }
    CHECK_STATUS(cx_align_init(&b->a, sides, cx_alloc_default(), &b->f[0].err), &b->f[0].err);
}

static void both_done(both *b)
{
    cx_align_done(&b->a);
    fixture_done(&b->f[0]);
    fixture_done(&b->f[1]);
}

/* Rows as "A=A" same, "A~A" alike, "A|B" neither, "A-" and "-B" of one side. */
static void rows_of(both *b, const char *left, const char *right, char *out, size_t size)
{
    static const char signs[] = "|~=";
    size_t at = 0;
    out[0] = 0;
    for (size_t r = 0; r < cx_align_count(&b->a) && at + 5 < size; r++) {
        align_row row;
        CHECK_STATUS(cx_align_row(&b->a, r, &row, &b->f[0].err), &b->f[0].err);
        if (r != 0)
            out[at++] = ' ';
        if (row.step[0] != ALIGN_NONE)
            out[at++] = left[2 * row.step[0]];
        out[at++] = row.step[0] == ALIGN_NONE || row.step[1] == ALIGN_NONE ? '-' : signs[row.how];
        if (row.step[1] != ALIGN_NONE)
            out[at++] = right[2 * row.step[1]];
        out[at] = 0;
    }
}

static void check_rows(const char *left, const char *right, const char *expected)
{
    both b;
    char got[256];
    both_open(&b, left, right, "xx0", "yy0");
    rows_of(&b, left, right, got, sizeof got);
    CHECK_STR(cx_str_z(got), expected);
    CHECK(align_is_whole(&b.a));
    both_done(&b);
}

CX_TEST(a_step_left_out_moves_nothing_that_follows)
{
    check_rows("A1B1C1D1", "A1C1D1", "A=A B- C=C D=D");
    check_rows("A1C1D1", "A1B1C1D1", "A=A -B C=C D=D");
    check_rows("A1B1C1", "A1B1C1", "A=A B=B C=C");
    check_rows("A1B1C1", "A1B2C1", "A=A B~B C=C");
    check_rows("A1B1", "A1X1", "A=A B- -X");
    check_rows("A1", "", "A-");
    check_rows("", "B1C1", "-B -C");
    /* A try that failed twice against one that failed once. */
    check_rows("A1T2F1T2F1T1Z1", "A1T2F1T1Z1", "A=A T=T F=F T- F- T=T Z=Z");
}

CX_TEST(equal_but_for_their_names)
{
    both b;
    char got[64];
    /* The texts name the agents, which are called otherwise. */
    both_open(&b, "A1B1", "A1B1", "", "");
    rows_of(&b, "A1B1", "A1B1", got, sizeof got);
    CHECK_STR(cx_str_z(got), "A~A B~B");
    both_done(&b);
    cx_str x = CX_STR("x"), y = CX_STR("y"), none = CX_STR("");
    CHECK(cx_align_equal(x, y, CX_STR("axb"), CX_STR("ayb")));
    CHECK(!cx_align_equal(x, y, CX_STR("axb"), CX_STR("azb")));
    CHECK(!cx_align_equal(x, y, CX_STR("axb"), CX_STR("ab")));
    CHECK(!cx_align_equal(x, y, CX_STR("ayb"), CX_STR("axb")));
    CHECK(!cx_align_equal(x, none, CX_STR("x"), CX_STR("")));
    CHECK(cx_align_equal(none, none, CX_STR(""), CX_STR("")));
}

/* --- against all alignments that there are ---------------------------------------------------- */

static unsigned worth(const char *a, const char *b)
{
    return a[0] != b[0] ? 0 : a[1] == b[1] ? 12 : 5;
}

static unsigned best(const char *left, const char *right)
{
    if (left[0] == 0 || right[0] == 0)
        return 0;
    unsigned ways[3] = {best(left + 2, right), best(left, right + 2), 0};
    if (worth(left, right) != 0)
        ways[2] = worth(left, right) + best(left + 2, right + 2);
    unsigned most = ways[0] > ways[1] ? ways[0] : ways[1];
    return ways[2] > most ? ways[2] : most;
}

CX_TEST(alignments_are_the_best_there_are)
{
    uint64_t seed = cx_test_seed();
    for (unsigned round = 0; round < 200; round++) {
        char texts[2][16] = {"", ""};
        for (unsigned side = 0; side < 2; side++) {
            size_t size = cx_test_random(&seed) % 7;
            for (size_t i = 0; i < size; i++) {
                texts[side][2 * i] = (char)('A' + cx_test_random(&seed) % 3);
                texts[side][2 * i + 1] = (char)('1' + cx_test_random(&seed) % 2);
                texts[side][2 * i + 2] = 0;
            }
        }
        both b;
        size_t next[2] = {0, 0};
        unsigned sum = 0, prefix = 0;
        both_open(&b, texts[0], texts[1], "xx0", "yy0");
        for (size_t r = 0; r < cx_align_count(&b.a); r++) {
            align_row row;
            CHECK_STATUS(cx_align_row(&b.a, r, &row, &b.f[0].err), &b.f[0].err);
            /* Each step of each side once, in its order. */
            for (unsigned side = 0; side < 2; side++)
                if (row.step[side] != ALIGN_NONE)
                    CHECK_INT(row.step[side], next[side]++);
            if (row.how == ALIGN_ONLY) {
                CHECK(row.step[0] == ALIGN_NONE || row.step[1] == ALIGN_NONE);
                continue;
            }
            unsigned value = worth(texts[0] + 2 * row.step[0], texts[1] + 2 * row.step[1]);
            CHECK_INT(value, row.how == ALIGN_SAME ? 12 : 5);
            sum += value;
            prefix += r < b.a.prefix;
        }
        CHECK_INT(next[0], strlen(texts[0]) / 2);
        CHECK_INT(next[1], strlen(texts[1]) / 2);
        CHECK_INT(sum - 12 * prefix, best(texts[0] + 2 * prefix, texts[1] + 2 * prefix));
        both_done(&b);
    }
}

/* --- windows ---------------------------------------------------------------------------------- */

static void long_one(fixture *f, const char *who, int count, int skipped)
{
    fixture_init(f);
    for (int i = 0, seq = 0; i < count; i++) {
        char id[24], before[24] = "", event[64], delta[64];
        if (i == skipped || (skipped == -1 && i % 2 == 1 && i > 100))
            continue;
        (void)snprintf(id, sizeof id, "%s%d", who, seq);
        if (seq > 0)
            (void)snprintf(before, sizeof before, "%s%d", who, seq - 1);
        (void)snprintf(event, sizeof event, "{\"type\":\"k%d\"}", i);
        (void)snprintf(delta, sizeof delta, "{\"memory\":{\"k\":%d}}", i);
        fixture_node(f, id, who, seq, seq, before, delta, event);
        seq++;
    }
    CHECK(fixture_load(f));
}

CX_TEST(alignment_goes_on_from_window_to_window)
{
    fixture f[2];
    alignment a;
    align_side sides[2];
    const int count = 3 * ALIGN_WINDOW + 50;
    /* The other one leaves out one step near the beginning, and every second one .. */
    long_one(&f[0], "x", count, 20);
    long_one(&f[1], "y", count, -1);
    for (unsigned side = 0; side < 2; side++)
        sides[side] = (align_side){.lattice = f[side].lattice,
                                   .path = f[side].lattice->order,
                                   .count = f[side].lattice->order_count};
    CHECK_STATUS(cx_align_init(&a, sides, cx_alloc_default(), &f[0].err), &f[0].err);
    CHECK_INT(a.prefix, 20);
    CHECK(align_is_whole(&a));
    size_t same = 0;
    for (size_t r = 0; r < a.rows.count; r++)
        same += a.rows.items[r].how == ALIGN_SAME;
    /* .. and all that both have is found in both. */
    CHECK_INT(same + a.prefix, f[1].lattice->order_count - 1);
    CHECK_INT(cx_align_count(&a), count);
    cx_align_done(&a);
    fixture_done(&f[0]);
    fixture_done(&f[1]);
}

CX_TEST(alignment_of_strangers_ends_at_its_limit)
{
    fixture f[2];
    alignment a;
    align_side sides[2];
    const int count = ALIGN_WINDOWS * ALIGN_WINDOW + 40;
    for (unsigned side = 0; side < 2; side++) {
        fixture_init(&f[side]);
        for (int i = 0; i < count; i++) {
            char id[24], before[24] = "";
            (void)snprintf(id, sizeof id, "%u-%d", side, i);
            if (i > 0)
                (void)snprintf(before, sizeof before, "%u-%d", side, i - 1);
            fixture_node(&f[side], id, "a", i, i, before, "{}",
                         side == 0 ? "{\"type\":\"left\"}" : "{\"type\":\"right\"}");
        }
        CHECK(fixture_load(&f[side]));
        sides[side] = (align_side){.lattice = f[side].lattice,
                                   .path = f[side].lattice->order,
                                   .count = f[side].lattice->order_count};
    }
    CHECK_STATUS(cx_align_init(&a, sides, cx_alloc_default(), &f[0].err), &f[0].err);
    CHECK_INT(a.prefix, 0);
    CHECK(!align_is_whole(&a));
    CHECK_INT(a.placed[0], ALIGN_WINDOWS * ALIGN_WINDOW);
    CHECK_INT(cx_align_count(&a), 2 * ALIGN_WINDOWS * ALIGN_WINDOW + 40);
    align_row row;
    CHECK_STATUS(cx_align_row(&a, cx_align_count(&a) - 1, &row, &f[0].err), &f[0].err);
    CHECK(row.step[0] == (size_t)count - 1 && row.step[1] == (size_t)count - 1);
    CHECK_INT(row.how, ALIGN_ONLY);
    cx_align_done(&a);
    fixture_done(&f[0]);
    fixture_done(&f[1]);
}

/* --- the answer ------------------------------------------------------------------------------- */

typedef struct shown {
    fixture f;
    cx_lattice_report *report;
    cx_lattice_view *view;
} shown;

static void shown_open(shown *s)
{
    REQUIRE(fixture_open(&s->f, NULL));
    CHECK_STATUS(cx_lattice_verify(s->f.lattice, NULL, &s->report, &s->f.err), &s->f.err);
    CHECK_STATUS(cx_lattice_view_open(s->f.lattice, s->report, false, &s->view, &s->f.err),
                 &s->f.err);
}

static void shown_done(shown *s)
{
    cx_lattice_view_close(s->view);
    cx_lattice_report_close(s->report);
    fixture_done(&s->f);
}

static cx_lattice_view_side side_of(const shown *s, const char *name, const char *id)
{
    return (cx_lattice_view_side){s->view, s->f.states,
                                  name == NULL ? CX_NODE_NONE : fixture_find(&s->f, name),
                                  cx_str_z(id)};
}

static cx_str compare(shown *s, cx_lattice_view_side a, cx_lattice_view_side b,
                      cx_lattice_view_range rows)
{
    const cx_lattice_view_side sides[2] = {a, b};
    cx_buf_clear(&s->f.out);
    CHECK_STATUS(cx_lattice_view_compare(&s->f.out, sides, &rows, &s->f.err), &s->f.err);
    return cx_buf_str(&s->f.out);
}

CX_TEST(two_agents_from_their_common_ancestor)
{
    shown s;
    fixture_init(&s.f);
    fixture_node(&s.f, "n0", "system", 0, 0, "", "{\"memory\":{\"k\":1}}", "{\"type\":\"begin\"}");
    fixture_node(&s.f, "a0", "a", 1, 1, "n0", "{\"memory\":{\"k\":2}}", "{\"type\":\"look\"}");
    fixture_node(&s.f, "a1", "a", 2, 2, "a0", "{\"memory\":{\"x\":1}}", "{\"type\":\"ask\"}");
    fixture_node(&s.f, "a2", "a", 3, 3, "a1", "{\"memory\":{\"y\":1}}", "{\"type\":\"pay\"}");
    fixture_node(&s.f, "b0", "b", 1, 1, "n0", "{\"memory\":{\"k\":2}}", "{\"type\":\"look\"}");
    fixture_node(&s.f, "b1", "b", 2, 2, "b0", "{\"memory\":{\"y\":{\"z\":2}}}",
                 "{\"type\":\"pay\"}");
    shown_open(&s);
    cx_str all =
        compare(&s, side_of(&s, "@a", ""), side_of(&s, "@b", ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"common\":{\"agent\":\"system\""));
    CHECK(contains(all, "\"counts\":[3,2]"));
    CHECK(contains(all, "\"aligned\":true,\"from\":0,\"first\":1,\"matched\":{\"alike\":1,\"only\":"
                        "[1,0],\"same\":1},\"parted\":1,\"rows\":3,"));
    CHECK(contains(all, "\"label\":\"ask\"},\"b\":null,\"differs\":[],\"differ_count\":0,\"how\":"
                        "\"only\",\"same\":false}"));
    CHECK(contains(all, "\"label\":\"pay\"},\"differs\":[\"memory.y\"],\"differ_count\":1,\"how\":"
                        "\"alike\",\"same\":false}"));
    all = compare(&s, side_of(&s, "@a", ""), side_of(&s, "@b", ""),
                  (cx_lattice_view_range){.from = 2, .count = 1});
    CHECK(contains(all, "\"from\":2,\"first\":1,"));
    CHECK(!contains(all, "\"label\":\"ask\""));
    all = compare(&s, side_of(&s, "@a", ""), side_of(&s, "a1", ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"counts\":[1,0]"));
    all = compare(&s, side_of(&s, "@a", ""), side_of(&s, "@a", ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"first\":null,"));
    CHECK(contains(all, "\"rows\":0,\"steps\":[]"));
    /* All of it against one branch of it: what both begin with has the same hash. */
    all = compare(&s, side_of(&s, NULL, ""), side_of(&s, "a0", ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"common\":{\"agent\":\"a\""));
    CHECK(contains(all, "\"counts\":[4,0]"));
    shown_done(&s);
}

static void run_of(shown *s, const char *id, const char *failed)
{
    char who[32], delta[200];
    fixture_init(&s->f);
    (void)snprintf(who, sizeof who, "run/%s/t", id);
    (void)snprintf(delta, sizeof delta, "{\"memory\":{\"last.RUN_STARTED\":{\"run_id\":\"%s\"}}}",
                   id);
    fixture_node(&s->f, "r0", who, 0, 0, "", delta, "{\"event_type\":\"RUN_STARTED\"}");
    (void)snprintf(delta, sizeof delta,
                   "{\"memory\":{\"gate.tests\":{\"passed\":%s},\"last.TEST\":{\"path\":\"/runs/%s/"
                   "out\",\"took\":%s}}}",
                   failed, id, failed);
    fixture_node(&s->f, "r1", who, 1, 1, "r0", delta, "{\"event_type\":\"TEST\"}");
    shown_open(s);
}

CX_TEST(two_runs_are_compared_as_wholes_and_without_their_ids)
{
    shown a, b;
    run_of(&a, "run_1", "true");
    run_of(&b, "run_22", "false");
    cx_str all = compare(&a, side_of(&a, NULL, "run_1"), side_of(&b, NULL, "run_22"),
                         (cx_lattice_view_range){0});
    CHECK(contains(all, "\"common\":null,\"counts\":[2,2],\"knowledge\":[],"));
    CHECK(contains(all, "\"first\":1,"));
    CHECK(contains(all, "\"parted\":null,"));
    CHECK(contains(all, "\"differs\":[\"memory.gate.tests.passed\",\"memory.last.TEST.took\"],"
                        "\"differ_count\":2,"));
    CHECK(contains(all, "\"key\":\"gate.tests\",\"section\":\"memory\""));
    CHECK(contains(all, "\"key\":\"last.TEST\""));
    CHECK(!contains(all, "\"key\":\"last.RUN_STARTED\""));
    /* Without ids everything that names the run differs. */
    all = compare(&a, side_of(&a, NULL, ""), side_of(&b, NULL, ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"first\":0,"));
    CHECK(contains(all, "\"key\":\"last.RUN_STARTED\""));
    shown_done(&a);
    shown_done(&b);
}

static void many_keys(shown *s, bool is_other)
{
    cx_buf delta;
    cx_buf_init(&delta, cx_alloc_default());
    cx_buf_add_z(&delta, "{\"goals\":[\"g\"],\"memory\":{\"~\":0");
    for (int k = 0; k < 200; k++)
        if (!is_other || k % 11 != 0)
            cx_buf_printf(&delta, ",\"k%03d\":{\"v\":[%d]}", k, is_other && k % 7 == 0 ? -1 : k);
    cx_buf_printf(&delta, "}}%c", 0);
    fixture_init(&s->f);
    fixture_node(&s->f, "n", "a", 0, 0, "", (const char *)delta.data, NULL);
    cx_buf_done(&delta);
    shown_open(s);
}

/* D1: each opened lattice shapes its trees by a seed of its own. */
CX_TEST(states_of_two_histories_are_compared_key_by_key)
{
    shown a, b;
    many_keys(&a, false);
    many_keys(&b, true);
    cx_str all =
        compare(&a, side_of(&a, NULL, ""), side_of(&b, NULL, ""), (cx_lattice_view_range){0});
    for (int k = 0; k < 200; k++) {
        char key[16];
        (void)snprintf(key, sizeof key, "\"key\":\"k%03d\"", k);
        CHECK(contains(all, key) == (k % 7 == 0 || k % 11 == 0));
    }
    CHECK(contains(all, "\"b\":null,\"key\":\"k011\""));
    CHECK(!contains(all, "\"section\":\"goals\""));
    all = compare(&a, side_of(&a, NULL, ""), side_of(&a, NULL, ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"diff\":[],"));
    shown_done(&a);
    shown_done(&b);
}

CX_TEST(only_what_holds_is_common_by_its_hash)
{
    /* The fixture's hashes are made up, so neither side holds and nothing is taken for common. */
    shown a, b;
    fixture_init(&a.f);
    fixture_init(&b.f);
    fixture_node(&a.f, "n0", "a", 0, 0, "", "{\"memory\":{\"k\":1}}", NULL);
    fixture_node(&b.f, "n0", "a", 0, 0, "", "{\"memory\":{\"k\":2}}", NULL);
    shown_open(&a);
    shown_open(&b);
    cx_str all =
        compare(&a, side_of(&a, NULL, ""), side_of(&b, NULL, ""), (cx_lattice_view_range){0});
    CHECK(contains(all, "\"common\":null,\"counts\":[1,1]"));
    CHECK(contains(all, "\"verified\":false"));
    shown_done(&a);
    shown_done(&b);
}

CX_TEST(comparing_what_has_no_place_is_refused)
{
    shown s;
    fixture_init(&s.f);
    fixture_node(&s.f, "x", "a", 0, 1, "x", "{}", NULL);
    shown_open(&s);
    const cx_lattice_view_side lost[2] = {side_of(&s, "x", ""), side_of(&s, "x", "")};
    const cx_lattice_view_side empty[2] = {side_of(&s, NULL, ""), side_of(&s, NULL, "")};
    const cx_lattice_view_range rows = {0};
    CHECK_INT(cx_lattice_view_compare(&s.f.out, lost, &rows, &s.f.err).code, CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(s.f.err.tag), "NoState");
    CHECK_INT(cx_lattice_view_compare(&s.f.out, empty, &rows, &s.f.err).code, CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(s.f.err.tag), "NoNode");
    shown_done(&s);
}
