/*
 * fuzz_trace.c - any bytes as a trace, as a trust store, and as text taken apart by brackets.
 *
 * No key signs these bytes, so nothing ever holds; what is read keeps its
 * promises: canonical text is JSON, stripping twice is stripping once, views keep their level, and
 * lowering in two steps is lowering in one.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "json/span.h"
#include "trace/trace.h"

typedef struct context {
    cx_arena arena;
    cx_buf scratch, first, second;
} context;

static bool same(const cx_buf *a, const cx_buf *b)
{
    return cx_str_eq(cx_buf_str(a), cx_buf_str(b));
}

static cx_str kept(context *d, const cx_buf *text)
{
    cx_str copy = cx_arena_copy_str(&d->arena, cx_buf_str(text));
    FUZZ_CHECK(copy.data != NULL);
    return copy;
}

/* Each style of writing is read back and written as itself. */
static void check_canon(context *d, const cx_json *value)
{
    for (unsigned i = 0; i < 8; i++) {
        const cx_canon_style style = {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
        cx_json again;
        cx_buf_clear(&d->first);
        cx_buf_clear(&d->second);
        FUZZ_CHECK(!cx_failed(cx_trace_canon_value(value, &style, &d->first, NULL)));
        FUZZ_CHECK(!cx_failed(cx_json_parse_text(kept(d, &d->first), &d->arena, &again, NULL)));
        FUZZ_CHECK(!cx_failed(cx_trace_canon_value(&again, &style, &d->second, NULL)));
        FUZZ_CHECK(same(&d->first, &d->second));
        if (i == 2 || i == 3) {
            cx_buf_clear(&d->second);
            FUZZ_CHECK(!cx_failed(cx_json_write(
                &d->second, value, i == 3 ? CX_JSON_PY_DEFAULT : CX_JSON_PY_COMPACT, NULL)));
            FUZZ_CHECK(same(&d->first, &d->second));
        }
    }
}

static void check_forms(context *d, const cx_trace *trace)
{
    static const char starts[] = "0[[[{{{{";
    for (cx_trace_bytes which = {.form = CX_FORM_A}; which.form <= CX_FORM_H; which.form++) {
        which.batch_level = CX_LEVEL_ABSENT;
        cx_buf_clear(&d->first);
        cx_status status = cx_trace_canonical(trace, &which, &d->first, NULL);
        FUZZ_CHECK(!cx_failed(status) || (which.form == CX_FORM_H && status.code == CX_E_FORMAT));
        if (!cx_failed(status) && which.form != CX_FORM_A)
            FUZZ_CHECK(d->first.data[0] == (uint8_t)starts[which.form]);
        if (!cx_failed(status) && which.form == CX_FORM_A)
            FUZZ_CHECK(d->first.size == 64);
    }
}

static void view(context *d, const cx_trace *trace, cx_trace_level from, cx_trace_level to,
                 cx_buf *out)
{
    static const cx_canon_style compact = {.spaces = false};
    const cx_trace_redaction how = {.from = from, .to = to, .form = CX_FORM_NONE};
    const cx_str *removed;
    size_t count;
    cx_json value;
    FUZZ_CHECK(!cx_failed(cx_trace_redact(trace, &how, &d->arena, &value, &removed, &count, NULL)));
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(cx_json_pointer(trace->json, removed[i]) != NULL);
    cx_buf_clear(out);
    FUZZ_CHECK(!cx_failed(cx_trace_canon_value(&value, &compact, out, NULL)));
}

static void check_views(context *d, const cx_trace *trace)
{
    cx_trace lowered;
    cx_trace_problem problem;
    const cx_str *paths;
    size_t count;
    view(d, trace, CX_LEVEL_FULL, CX_LEVEL_GENERIC, &d->first);
    view(d, trace, CX_LEVEL_FULL, CX_LEVEL_DETAILED, &d->second);
    cx_str text = kept(d, &d->second);
    FUZZ_CHECK(!cx_failed(cx_trace_read(cx_str_bytes(text), &d->arena, &lowered, &problem, NULL)));
    FUZZ_CHECK(problem.reason == CX_REASON_MISSING_FIELD ||
               problem.reason <= CX_REASON_LIMIT_EXCEEDED);
    if (problem.reason != CX_REASON_MISSING_FIELD)
        return;
    FUZZ_CHECK(!cx_failed(cx_trace_violations(&lowered, CX_LEVEL_DETAILED, &d->arena, &paths,
                                              &count, NULL)) &&
               count == 0);
    view(d, &lowered, CX_LEVEL_DETAILED, CX_LEVEL_GENERIC, &d->second);
    FUZZ_CHECK(same(&d->first, &d->second));
}

static void check_trace(context *d, cx_bytes bytes)
{
    static const cx_str ids[] = {{"k", 1}};
    const cx_trust_key key = {.key_id = ids[0],
                              .not_before = CX_TIME_NONE,
                              .not_after = CX_TIME_NONE,
                              .revoked_at = CX_TIME_NONE,
                              .compromised_since = CX_TIME_NONE};
    const cx_trust trust = {&key, 1};
    const cx_trace_check check = {.trust = &trust,
                                  .event_level = CX_LEVEL_ABSENT,
                                  .batch_level = CX_LEVEL_GENERIC,
                                  .forms = CX_FORMS_ALL};
    cx_trace trace;
    cx_trace_verdict verdict = {.verdict = CX_BROKEN, .form = CX_FORM_NONE};
    FUZZ_CHECK(!cx_failed(cx_trace_read(bytes, &d->arena, &trace, &verdict.problem, NULL)));
    cx_trace_reason reason = verdict.problem.reason;
    FUZZ_CHECK(reason <= CX_REASON_COMPONENTS_MISSING);
    FUZZ_CHECK(trace.json != NULL ||
               (reason >= CX_REASON_INVALID_UTF8 && reason <= CX_REASON_LIMIT_EXCEEDED));
    if (reason == CX_REASON_NONE) {
        FUZZ_CHECK(
            !cx_failed(cx_trace_verify(&trace, &check, &d->scratch, &d->arena, &verdict, NULL)));
        FUZZ_CHECK(verdict.verdict != CX_HOLDS && verdict.problem.reason > reason);
        check_forms(d, &trace);
        check_canon(d, trace.json);
        check_views(d, &trace);
    }
    cx_buf_clear(&d->first);
    FUZZ_CHECK(!cx_failed(cx_trace_verdict_json(&d->first, &trace, &verdict, NULL)));
    FUZZ_CHECK(!cx_failed(cx_trace_verdict_text(&d->first, &trace, &verdict, true, NULL)));
}

/* What is JSON as a whole has parts that are, and the other way round. */
static void check_spans(context *d, cx_str text)
{
    cx_json whole, part;
    cx_json_span span;
    cx_str name, value;
    uint32_t count = 0;
    bool all_good = true;
    bool is_json = !cx_failed(cx_json_parse_text(text, &d->arena, &whole, NULL));
    if (!cx_json_span_begin(&span, text)) {
        FUZZ_CHECK(!is_json || whole.type < CX_JSON_ARRAY);
        return;
    }
    for (; cx_json_span_next(&span, &name, &value); count++) {
        FUZZ_CHECK(value.size != 0 && value.data >= text.data &&
                   value.data + value.size <= text.data + text.size);
        all_good &= !cx_failed(cx_json_parse_text(value, &d->arena, &part, NULL));
        all_good &=
            name.data == NULL || !cx_failed(cx_json_parse_text(name, &d->arena, &part, NULL));
    }
    if (is_json)
        FUZZ_CHECK(!span.bad && all_good && count == whole.count);
    else if (!span.bad && all_good && span.close == ']')
        /* Only depth makes the difference: a part is one level less deep. */
        FUZZ_CHECK(count != 0);
}

static void check_trust(context *d, cx_str text)
{
    cx_trust trust, copy;
    if (cx_failed(cx_trust_parse(text, &d->arena, &trust, NULL)))
        return;
    FUZZ_CHECK(!cx_failed(cx_trust_copy(&trust, &d->arena, &copy, NULL)));
    for (size_t i = 0; i < copy.count; i++) {
        cx_json json, again;
        cx_trust_key key;
        FUZZ_CHECK(cx_trust_find(&trust, copy.keys[i].key_id) == &trust.keys[i]);
        FUZZ_CHECK(!cx_failed(cx_trust_key_json(&copy.keys[i], &d->arena, &json, NULL)));
        FUZZ_CHECK(!cx_failed(cx_trust_key_parse(&json, CX_STR(""), &d->arena, &key, NULL)));
        FUZZ_CHECK(!cx_failed(cx_trust_key_json(&key, &d->arena, &again, NULL)));
        FUZZ_CHECK(cx_json_equal(&json, &again));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    context d;
    cx_arena_init(&d.arena, cx_alloc_default(), 0);
    cx_buf_init(&d.scratch, cx_alloc_default());
    cx_buf_init(&d.first, cx_alloc_default());
    cx_buf_init(&d.second, cx_alloc_default());
    check_trace(&d, (cx_bytes){data, size});
    check_spans(&d, cx_str_from((const char *)data, size));
    check_trust(&d, cx_str_from((const char *)data, size));
    cx_buf_done(&d.scratch);
    cx_buf_done(&d.first);
    cx_buf_done(&d.second);
    cx_arena_done(&d.arena);
    return 0;
}
