/*
 * test_view_times.c - a history without times has an order, and no durations.
 */
#include <math.h>

#include "tests/support/lattice_fixture.h"
#include "view/layout.h"
#include "view/view.h"

/* A path of one agent, with these times; false when they are those of a clock. */
static bool is_timed(const char *const *times, size_t count)
{
    cx_buf text;
    cx_lattice *lattice = NULL;
    cx_err err;
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = 0; i < count; i++)
        cx_buf_printf(&text,
                      "{\"node_id\":\"n%zu\",\"agent_id\":\"a\",\"seq\":%zu,\"timestamp\":%s,"
                      "\"event\":{},\"state_delta\":{},\"prev_hash\":\"p\",\"hash\":\"h\","
                      "\"parents\":[%s],\"fork_type\":null}\n",
                      i, i, times[i], i == 0 ? "" : "\"n0\"");
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
    bool timed = lattice != NULL && cx_lattice_is_timed(lattice);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
    return timed;
}

CX_TEST(times_that_count_steps_are_no_times)
{
    CHECK(!is_timed((const char *const[]){"0", "1", "2"}, 3));
    CHECK(!is_timed((const char *const[]){"0.0", "1.0", "1.0"}, 3));
    CHECK(!is_timed((const char *const[]){"0", "99999999"}, 2));
    CHECK(is_timed((const char *const[]){"0", "100000000"}, 2));
    CHECK(is_timed((const char *const[]){"0", "1.5"}, 2));
    CHECK(is_timed((const char *const[]){"1767600000", "1767600000"}, 2));
    CHECK(is_timed((const char *const[]){"99999999999999999999"}, 1));
}

static void check_has(const fixture *f, const char *text, bool wanted)
{
    bool has = memmem(f->out.data, f->out.size, text, strlen(text)) != NULL;
    CHECK_INT(has, wanted);
}

/* All that the page asks for, of three nodes from `start` on. */
static void check_answers(int start, bool timed)
{
    fixture f;
    cx_lattice_view *view = NULL;
    const cx_lattice_view_heat_asked asked = {.layer = CX_HEAT_TIME, .from = NAN, .to = NAN};
    const cx_lattice_view_range all = {.to = 0};
    fixture_init(&f);
    for (int i = 0; i < 3; i++)
        fixture_node(&f,
                     i == 0   ? "n0"
                     : i == 1 ? "n1"
                              : "n2",
                     "a", i, start + 2 * i,
                     i == 0   ? ""
                     : i == 1 ? "n0"
                              : "n1",
                     "{}", NULL);
    REQUIRE(fixture_load(&f));
    CHECK_STATUS(cx_lattice_view_open(f.lattice, NULL, false, &view, &f.err), &f.err);
    REQUIRE(view != NULL);

    CHECK_STATUS(cx_lattice_view_heat(&f.out, view, &asked, &f.err), &f.err);
    check_has(&f, timed ? "\"axis\":\"time\"" : "\"axis\":\"order\"", true);
    check_has(&f, timed ? "\"total\":4" : "\"total\":0", true);
    cx_buf_clear(&f.out);
    CHECK_STATUS(cx_lattice_view_window(&f.out, view, &all, &f.err), &f.err);
    check_has(&f, "\"t\":[null,null,null]", !timed);
    cx_buf_clear(&f.out);

    cx_render_options drawn = {.form = CX_RENDER_SVG};
    CHECK_STATUS(cx_lattice_render(&f.out, f.lattice, &drawn, &f.err), &f.err);
    check_has(&f, ">step 1</text>", !timed);
    check_has(&f, ">+0.0 s</text>", timed);
    check_has(&f, "\ntime ", timed);
    cx_buf_clear(&f.out);
    drawn.form = CX_RENDER_JSON;
    CHECK_STATUS(cx_lattice_render(&f.out, f.lattice, &drawn, &f.err), &f.err);
    check_has(&f, "\"time\":null", !timed);
    cx_lattice_view_close(view);
    fixture_done(&f);
}

CX_TEST(a_history_without_times_shows_its_order)
{
    check_answers(5, false);
    check_answers(1767600000, true);
}
