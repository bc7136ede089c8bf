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

/* Where each event of a path of one agent began and ended, a second apart; from 1767600000 on. */
static void check_spans(const char *const *events, size_t count, const char *wanted)
{
    cx_buf text, out;
    cx_lattice *lattice = NULL;
    cx_lattice_view *view = NULL;
    cx_err err;
    const cx_lattice_view_range all = {.spans = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < count; i++)
        cx_buf_printf(&text,
                      "{\"node_id\":\"n%zu\",\"agent_id\":\"a\",\"seq\":%zu,\"timestamp\":%zu,"
                      "\"event\":%s,\"state_delta\":{},\"prev_hash\":\"p\",\"hash\":\"h%zu\","
                      "\"parents\":[%s],\"fork_type\":null}\n",
                      i, i, i + 1767600000, events[i], i, i == 0 ? "" : "\"n0\"");
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
    REQUIRE(lattice != NULL);
    CHECK_STATUS(cx_lattice_view_open(lattice, NULL, false, &view, &err), &err);
    REQUIRE(view != NULL);
    CHECK_STATUS(cx_lattice_view_window(&out, view, &all, &err), &err);
    CHECK(memmem(out.data, out.size, wanted, strlen(wanted)) != NULL);
    cx_lattice_view_close(view);
    cx_lattice_close(lattice);
    cx_buf_done(&out);
    cx_buf_done(&text);
}

CX_TEST(spans_are_what_was_recorded_of_durations)
{
#define SECOND ",\"duration_ns\":500000000}"
    /* A span's time is its beginning, that of a step of a program its end. */
    check_spans((const char *const[]){"{\"at\":{},\"source\":\"otlp\"" SECOND,
                                      "{\"kind\":\"message\"" SECOND, "{}"},
                3, "\"span\":[1767600000,1767600000.5,1767600000.5,1767600001,null,null]");
    /* Lines of sessions come when a turn is over, answers when a call is. */
    check_spans((const char *const[]){"{\"at\":{},\"source\":\"claude-code\"" SECOND,
                                      "{\"at\":{},\"result\":1,\"source\":\"otlp\"" SECOND},
                2, "\"span\":[1767599999.5,1767600000,1767600000.5,1767600001]");
    /* A call lasts until its answer, several of one message until the last one's. */
    check_spans((const char *const[]){"{\"call_id\":\"c\",\"arguments\":{}}", "{}",
                                      "{\"call_id\":\"c\",\"result\":\"r\"}"},
                3, "\"span\":[1767600000,1767600002,null,null,null,null]");
    check_spans((const char *const[]){"{\"tool_calls\":[{\"call_id\":\"c\",\"arguments\":{}},"
                                      "{\"call_id\":\"d\",\"arguments\":{}}]}",
                                      "{\"call_id\":\"d\",\"result\":1}",
                                      "{\"call_id\":\"c\",\"result\":1}"},
                3, "\"span\":[1767600000,1767600002,null,null,null,null]");
    /* Nonsense is no duration, and an answer to nothing ends nothing. */
    check_spans((const char *const[]){"{\"duration_ns\":-1}", "{\"duration_ns\":\"9\"}",
                                      "{\"call_id\":\"x\",\"result\":1}"},
                3, "\"span\":[null,null,null,null,null,null]");
}
