/*
 * test_trace_fault.c - traces without memory: the n-th allocation fails, once and from then on, for
 * every n until nothing fires.  The answer is "out of memory" or that of an undisturbed run, and
 * nothing leaks; a verdict never comes out of a failure.
 */
#include "base/io.h"
#include "tests/support/fault.h"
#include "tests/test.h"
#include "trace/trace.h"

#include <stdio.h>

typedef struct job {
    const cx_alloc *alloc;
    cx_str trace, trust;
} job;

/* What one trace is asked: its verdict, told in JSON and text, and its views. */
static cx_status views(const cx_trace *trace, cx_arena *arena, cx_buf *out, cx_err *err)
{
    static const cx_canon_style strip = {.strip = true};
    for (cx_trace_level to = CX_LEVEL_GENERIC; to <= CX_LEVEL_FULL; to++) {
        const cx_trace_redaction how = {.from = CX_LEVEL_FULL, .to = to, .form = CX_FORM_B};
        const cx_str *removed;
        size_t count;
        cx_json view;
        CX_TRY(cx_trace_redact(trace, &how, arena, &view, &removed, &count, err));
        CX_TRY(cx_trace_canon_value(&view, &strip, out, err));
    }
    return CX_SUCCESS;
}

static cx_status judge(const job *j, cx_arena *arena, cx_buf *scratch, cx_buf *out, cx_err *err)
{
    cx_trust trust, copy;
    cx_trace trace;
    cx_trace_verdict verdict = {.verdict = CX_BROKEN, .form = CX_FORM_NONE};
    cx_digest content;
    CX_TRY(cx_trust_parse(j->trust, arena, &trust, err));
    CX_TRY(cx_trust_copy(&trust, arena, &copy, err));
    for (size_t i = 0; i < copy.count; i++) {
        cx_json key;
        CX_TRY(cx_trust_key_json(&copy.keys[i], arena, &key, err));
    }
    const cx_trace_check check = {.trust = &copy,
                                  .received_ns = INT64_C(1768176000) * 1000000000,
                                  .event_level = CX_LEVEL_ABSENT,
                                  .batch_level = CX_LEVEL_DETAILED,
                                  .forms = CX_FORMS_ALL};
    CX_TRY(cx_trace_read(cx_str_bytes(j->trace), arena, &trace, &verdict.problem, err));
    if (verdict.problem.reason == CX_REASON_NONE) {
        CX_TRY(cx_trace_verify_content(&trace, &check, scratch, arena, &verdict, &content, err));
        CX_TRY(views(&trace, arena, out, err));
    }
    CX_TRY(cx_trace_verdict_json(out, &trace, &verdict, err));
    return cx_trace_verdict_text(out, &trace, &verdict, false, err);
}

static cx_status ask(const job *j, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_buf scratch;
    cx_arena_init(&arena, j->alloc, 0);
    cx_buf_init(&scratch, j->alloc);
    cx_status status = judge(j, &arena, &scratch, out, err);
    cx_buf_done(&scratch);
    cx_arena_done(&arena);
    return status;
}

static void starve(const char *what, const job *plain, bool onwards)
{
    cx_buf expected;
    cx_err err = {0};
    cx_buf_init(&expected, cx_alloc_default());
    CHECK_STATUS(ask(plain, &expected, &err), &err);
    for (uint64_t at = 1;; at++) {
        fault_alloc memory;
        cx_buf got;
        job j = *plain;
        fault_alloc_init(&memory, at, onwards);
        j.alloc = &memory.alloc;
        cx_buf_init(&got, &memory.alloc);
        err = (cx_err){0};
        cx_status status = ask(&j, &got, &err);
        bool finished = memory.fired == 0;
        if (cx_failed(status) ? status.code != CX_E_NOMEM || err.code != CX_E_NOMEM || finished
                              : !cx_str_eq(cx_buf_str(&got), cx_buf_str(&expected)))
            cx_test_fail(__FILE__, __LINE__, "%s, allocation %llu%s: code %d (%s)", what,
                         (unsigned long long)at, onwards ? "+" : "", status.code, err.message);
        cx_buf_done(&got);
        if (memory.live_bytes != 0 || memory.wrong_size)
            cx_test_fail(__FILE__, __LINE__, "%s, allocation %llu: %lld bytes leaked", what,
                         (unsigned long long)at, (long long)memory.live_bytes);
        if (finished) {
            CHECK(at > 5);
            break;
        }
    }
    cx_buf_done(&expected);
}

static cx_str read_vector(const char *name, cx_buf *out)
{
    char path[128];
    cx_err err;
    (void)snprintf(path, sizeof path, "vectors/trace/%s", name);
    cx_buf_init(out, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(path), SIZE_MAX, out, &err), &err);
    return cx_buf_str(out);
}

CX_TEST(trace_every_allocation)
{
    static const char *const files[] = {
        "traces/form-B-edge0.json",       "traces/form-H-edge1.json",
        "traces/form-A-generic2.json",    "traces/form-E1-edge2.json",
        "traces/respelled-0.json",        "traces/S-plus-L.json",
        "traces/detailed-reasoning.json", "traces/dup-key-escaped.json",
        "traces/num-1e400.json",          "traces/missing-dma_results.json",
        "traces/json-control.json",       "traces/timestamp-frac10.json",
        "traces/utf8-overlong.json",      "traces/unknown-key-bad-sig.json"};
    cx_buf trust_text, text;
    job j = {.alloc = cx_alloc_default(), .trust = read_vector("trust.json", &trust_text)};
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        j.trace = read_vector(files[i], &text);
        starve(files[i], &j, false);
        starve(files[i], &j, true);
        cx_buf_done(&text);
    }
    cx_buf_done(&trust_text);
}
