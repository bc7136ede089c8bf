/*
 * fuzz_lattice.c - any bytes as a lattice: loaded, judged, asked and drawn.
 *
 * Whatever loads must give a report that agrees with itself, and the same one when read again.
 */
#include "fuzz/fuzz.h"
#include "lattice/lattice.h"

static void ask(const cx_lattice *lattice, const cx_lattice_report *report)
{
    static const cx_answer_options json = {.json = true}, text = {.json = false};
    cx_states *states;
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    for (int strategy = CX_MERGE_LWW; strategy <= CX_MERGE_MANUAL; strategy++) {
        cx_state_options options = CX_STATE_OPTIONS_INIT;
        options.strategy = (cx_merge_strategy)strategy;
        options.base_none = (strategy & 1) != 0;
        if (cx_failed(cx_states_open(lattice, &options, &states, &err)))
            continue;
        cx_node last = cx_lattice_count(lattice) - 1;
        (void)!cx_lattice_answer_state(&out, states, last, strategy == 0, &json, &err).code;
        (void)!cx_lattice_answer_why(&out, states, last, CX_STR("k"), CX_STR(""), &text, &err).code;
        if (cx_lattice_agent_count(lattice) > 1)
            (void)!cx_lattice_answer_compare(&out, states, cx_lattice_agent_name(lattice, 0),
                                             cx_lattice_agent_name(lattice, 1), &json, &err)
                .code;
        cx_states_close(states);
    }
    (void)!cx_lattice_answer_heatmap(&out, lattice, &json, &err).code;
    (void)!cx_lattice_answer_show(&out, lattice, 0, &json, &err).code;
    for (int form = CX_RENDER_TERMINAL; form <= CX_RENDER_JSON; form++) {
        cx_render_options options = {.form = (cx_render_form)form, .report = report};
        (void)!cx_lattice_render(&out, lattice, &options, &err).code;
    }
    cx_buf_done(&out);
}

/* The report as JSON, empty when the bytes cannot be read. */
static void judge(cx_bytes bytes, bool strict, bool asking, cx_buf *out)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_lattice_checks checks = CX_LATTICE_CHECKS_INIT;
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    options.keep_deltas = options.keep_seals = true;
    checks.content_ids = checks.require_seals = checks.strict_time = checks.unambiguous = strict;
    if (cx_failed(cx_lattice_open_bytes(bytes, &options, &lattice, &err))) {
        FUZZ_CHECK(err.tag != NULL);
        return;
    }
    FUZZ_CHECK(!cx_failed(cx_lattice_verify(lattice, &checks, &report, &err)));
    FUZZ_CHECK(!cx_failed(cx_lattice_report_json(out, lattice, report, &err)));
    size_t errors;
    (void)cx_lattice_report_errors(report, &errors);
    FUZZ_CHECK((errors == 0) == (cx_lattice_report_verdict(report) == CX_HOLDS));
    if (asking)
        ask(lattice, report);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_buf first, second;
    bool strict = size != 0 && (data[size - 1] & 1) != 0;
    cx_buf_init(&first, cx_alloc_default());
    cx_buf_init(&second, cx_alloc_default());
    judge((cx_bytes){data, size}, strict, true, &first);
    judge((cx_bytes){data, size}, strict, false, &second);
    FUZZ_CHECK(cx_str_eq(cx_buf_str(&first), cx_buf_str(&second)));
    cx_buf_done(&first);
    cx_buf_done(&second);
    return 0;
}
