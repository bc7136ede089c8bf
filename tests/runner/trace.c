/*
 * trace.c - the trace suite's vectors: one list of cases, each with an `op`.
 *
 * A result must contain what is expected and may hold more, so when comparing it is narrowed to the
 * members that the case names; numbers that agree to 1e-9 are equal.
 */
#include "tests/runner/trace.h"

#include "crypto/digest.h"
#include "crypto/key.h"
#include "base/hex.h"
#include "trace/trace.h"

static cx_str text_or_none(const cx_json *item, const char *name)
{
    return cx_json_get_str(item, cx_str_z(name));
}

cx_status runner_trace_time(const cx_json *item, const char *name, int64_t *out, cx_err *err)
{
    cx_str text;
    bool naive;
    CX_TRY(runner_text(item, name, &text, err));
    if (!cx_trace_time_parse(text, out, &naive))
        return cx_fail(err, CX_E_FORMAT, "'%s' of the case is no time", name);
    return CX_SUCCESS;
}

/* --- verify ---------------------------------------------------------------------------------- */

static cx_status read_level(const cx_json *item, const char *name, cx_trace_level *out, cx_err *err)
{
    cx_str text = text_or_none(item, name);
    *out = CX_LEVEL_ABSENT;
    if (text.data != NULL && !cx_trace_level_parse(text, out))
        return cx_fail(err, CX_E_FORMAT, "'%s' of the case is no level", name);
    return CX_SUCCESS;
}

static cx_status read_forms(runner *r, const cx_json *item, unsigned *out, cx_err *err)
{
    const cx_json *list = CX_JSON_GET(item, "forms");
    cx_str *names;
    *out = CX_FORMS_ALL;
    if (list == NULL || list->type != CX_JSON_ARRAY)
        return CX_SUCCESS;
    CX_TRY(runner_texts(r, list, &names, err));
    *out = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        unsigned bits;
        if (!cx_trace_forms_parse(names[i], &bits))
            return cx_fail(err, CX_E_FORMAT, "the case names an unknown form");
        *out |= bits;
    }
    return CX_SUCCESS;
}

static cx_status read_trust(runner *r, const cx_json *item, cx_trust *out, cx_err *err)
{
    cx_str file, text;
    CX_TRY(runner_text(item, "trust", &file, err));
    CX_TRY(runner_read(r, file, &text, err));
    return cx_trust_parse(text, &r->arena, out, err);
}

static cx_status read_trace(runner *r, const cx_json *item, cx_trace *out,
                            cx_trace_problem *out_problem, cx_err *err)
{
    cx_str file, text;
    CX_TRY(runner_text(item, "file", &file, err));
    CX_TRY(runner_read(r, file, &text, err));
    return cx_trace_read(cx_str_bytes(text), &r->arena, out, out_problem, err);
}

static cx_status judge(runner *r, const cx_json *item, cx_buf *scratch, cx_json *out, cx_err *err)
{
    cx_trust trust;
    cx_trace trace;
    cx_trace_verdict verdict = {.verdict = CX_BROKEN, .form = CX_FORM_NONE};
    cx_trace_check check = {.trust = &trust, .event_level = CX_LEVEL_ABSENT};
    CX_TRY(read_trust(r, item, &trust, err));
    CX_TRY(runner_trace_time(item, "received_at", &check.received_ns, err));
    CX_TRY(read_level(item, "batch_level", &check.batch_level, err));
    CX_TRY(read_forms(r, item, &check.forms, err));
    CX_TRY(read_trace(r, item, &trace, &verdict.problem, err));
    if (verdict.problem.reason == CX_REASON_NONE)
        CX_TRY(cx_trace_verify(&trace, &check, scratch, &r->arena, &verdict, err));
    cx_buf_clear(scratch);
    CX_TRY(cx_trace_verdict_json(scratch, &trace, &verdict, err));
    return runner_parse(r, scratch, out, err);
}

static cx_status answer_verify(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_buf scratch;
    cx_buf_init(&scratch, cx_alloc_default());
    cx_status status = judge(r, item, &scratch, out, err);
    cx_buf_done(&scratch);
    return status;
}

/* --- spellings ------------------------------------------------------------------------------- */

/* A text and its SHA-256. */
static cx_status put_spelled(runner *r, cx_json_list *list, const char *name, const cx_buf *text,
                             cx_err *err)
{
    cx_json both, value;
    cx_json_list pair = cx_json_list_begin(&r->arena);
    CX_TRY(runner_string(r, cx_buf_str(text), &value, err));
    cx_json_list_put(&pair, CX_STR("text"), value);
    CX_TRY(runner_sha256(r, cx_buf_bytes(text), &value, err));
    cx_json_list_put(&pair, CX_STR("sha256"), value);
    CX_TRY(cx_json_list_end_object(&pair, &both, err));
    cx_json_list_put(list, cx_str_z(name), both);
    return CX_SUCCESS;
}

static cx_status spell_all(runner *r, const cx_json *value, cx_buf *text, cx_json *out, cx_err *err)
{
    static const struct {
        const char *name;
        cx_canon_style style;
    } styles[] = {{"python_default", {.spaces = true}},
                  {"python_compact", {.spaces = false}},
                  {"python_compact_numbers", {.python_numbers = true}},
                  {"python_compact_strip", {.strip = true}}};
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < CX_COUNT_OF(styles); i++) {
        cx_buf_clear(text);
        CX_TRY(cx_trace_canon_value(value, &styles[i].style, text, err));
        CX_TRY(put_spelled(r, &list, styles[i].name, text, err));
    }
    cx_buf_clear(text);
    cx_status status = cx_json_write(text, value, CX_JSON_JCS, err);
    if (status.code == CX_E_FORMAT)
        cx_json_list_put(&list, CX_STR("jcs"), cx_json_make_null());
    else if (cx_failed(status))
        return status;
    else
        CX_TRY(put_spelled(r, &list, "jcs", text, err));
    return cx_json_list_end_object(&list, out, err);
}

static cx_status answer_canon(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str json;
    cx_json value;
    cx_buf text;
    CX_TRY(runner_text(item, "json", &json, err));
    CX_TRY(cx_json_parse_text(json, &r->arena, &value, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = spell_all(r, &value, &text, out, err);
    cx_buf_done(&text);
    return status;
}

/* The text of a value in both spellings, shown by `show`; null where there is none. */
typedef cx_status shower(runner *r, cx_str text, cx_json *out, cx_err *err);

static cx_status spell_both(runner *r, cx_str json, shower *show, const char *python,
                            const char *jcs, cx_json *out, cx_err *err)
{
    static const cx_canon_style style = {.python_numbers = true};
    cx_json value, shown = cx_json_make_null();
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status;
    CX_TRY_GOTO(status, cx_json_parse_text(json, &r->arena, &value, err));
    CX_TRY_GOTO(status, cx_trace_canon_value(&value, &style, &text, err));
    CX_TRY_GOTO(status, show(r, cx_buf_str(&text), &shown, err));
    cx_json_list_put(&list, cx_str_z(python), shown);
    cx_buf_clear(&text);
    status = cx_json_write(&text, &value, CX_JSON_JCS, err);
    if (status.code == CX_E_FORMAT)
        shown = cx_json_make_null();
    else if (cx_failed(status))
        goto done;
    else
        CX_TRY_GOTO(status, show(r, cx_buf_str(&text), &shown, err));
    cx_json_list_put(&list, cx_str_z(jcs), shown);
    status = cx_json_list_end_object(&list, out, err);
done:
    cx_buf_done(&text);
    return status;
}

static cx_status show_hex(runner *r, cx_str text, cx_json *out, cx_err *err)
{
    char *hex = cx_arena_push(&r->arena, 2 * text.size + 1, 1);
    if (hex == NULL)
        return cx_fail_nomem(err);
    cx_hex_encode(cx_str_bytes(text), hex);
    *out = cx_json_make_str(cx_str_from(hex, 2 * text.size));
    return CX_SUCCESS;
}

static cx_status answer_number(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str lexeme;
    CX_TRY(runner_text(item, "lexeme", &lexeme, err));
    return spell_both(r, lexeme, runner_string, "python", "jcs", out, err);
}

static cx_status answer_string(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str json;
    CX_TRY(runner_text(item, "json", &json, err));
    return spell_both(r, json, show_hex, "python_hex", "jcs_hex", out, err);
}

/* --- signatures ------------------------------------------------------------------------------ */

static cx_status read_hex(const cx_json *item, const char *name, uint8_t *out, size_t size,
                          cx_err *err)
{
    cx_str hex;
    CX_TRY(runner_text(item, name, &hex, err));
    if (!cx_hex_decode(hex, out, size))
        return cx_fail(err, CX_E_FORMAT, "'%s' of the case is not %zu bytes of hex", name, size);
    return CX_SUCCESS;
}

static cx_status answer_ed25519(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_pubkey key;
    cx_signature signature;
    cx_str hex;
    CX_TRY(read_hex(item, "public_key_hex", key.bytes, sizeof key.bytes, err));
    CX_TRY(read_hex(item, "signature_hex", signature.bytes, sizeof signature.bytes, err));
    CX_TRY(runner_text(item, "message_hex", &hex, err));
    uint8_t *message = cx_arena_push(&r->arena, hex.size / 2 + 1, 1);
    if (message == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_hex(item, "message_hex", message, hex.size / 2, err));
    bool accept = cx_ed25519_verify(&key, cx_bytes_from(message, hex.size / 2), &signature);
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("accept"), cx_json_make_bool(accept));
    return cx_json_list_end_object(&list, out, err);
}

/* --- views ----------------------------------------------------------------------------------- */

/* The form B bytes of the view's components: the view is written and read like any trace. */
static cx_status digest_of_view(runner *r, const cx_json *view, cx_buf *text, cx_json *out,
                                cx_err *err)
{
    static const cx_canon_style compact = {.spaces = false};
    static const cx_trace_bytes form = {.form = CX_FORM_B, .batch_level = CX_LEVEL_ABSENT};
    cx_trace trace;
    cx_trace_problem problem;
    CX_TRY(cx_trace_canon_value(view, &compact, text, err));
    cx_str copy = cx_arena_copy_str(&r->arena, cx_buf_str(text));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_trace_read(cx_str_bytes(copy), &r->arena, &trace, &problem, err));
    if (problem.reason != CX_REASON_MISSING_FIELD || !cx_str_is(problem.path, "/signature"))
        return cx_fail(err, CX_E_FORMAT, "a view lacks its signature and nothing else, not: %s",
                       cx_trace_reason_name(problem.reason));
    cx_buf_clear(text);
    CX_TRY(cx_trace_canonical(&trace, &form, text, err));
    return runner_sha256(r, cx_buf_bytes(text), out, err);
}

static cx_status lower(runner *r, const cx_json *item, cx_buf *text, cx_json *out, cx_err *err)
{
    cx_trace trace;
    cx_trace_problem problem;
    cx_trace_level batch;
    cx_trace_redaction how = {.form = CX_FORM_NONE};
    cx_json view, value;
    const cx_str *removed;
    size_t count;
    CX_TRY(read_level(item, "batch_level", &batch, err));
    CX_TRY(read_level(item, "to", &how.to, err));
    CX_TRY(read_trace(r, item, &trace, &problem, err));
    how.from = cx_trace_level_of(&trace, CX_LEVEL_ABSENT, batch);
    CX_TRY(cx_trace_redact(&trace, &how, &r->arena, &view, &removed, &count, err));
    cx_json_list list = cx_json_list_begin(&r->arena), paths = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&paths, cx_json_make_str(removed[i]));
    CX_TRY(cx_json_list_end_array(&paths, &value, err));
    cx_json_list_put(&list, CX_STR("removed"), value);
    CX_TRY(digest_of_view(r, &view, text, &value, err));
    cx_json_list_put(&list, CX_STR("components_sha256"), value);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status answer_lower(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = lower(r, item, &text, out, err);
    cx_buf_done(&text);
    return status;
}

static cx_status answer_wakeup(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str task_id, type;
    (void)r;
    CX_TRY(runner_text(item, "task_id", &task_id, err));
    type = cx_trace_wakeup_type(task_id);
    *out = type.data != NULL ? cx_json_make_str(type) : cx_json_make_null();
    return CX_SUCCESS;
}

/* --- cases ----------------------------------------------------------------------------------- */

static const struct {
    const char *op;
    runner_trace_op *answer;
} ops[] = {{"verify", answer_verify},   {"canon", answer_canon},
           {"number", answer_number},   {"string", answer_string},
           {"ed25519", answer_ed25519}, {"lower", answer_lower},
           {"wakeup", answer_wakeup},   {"chain", runner_trace_chain},
           {"idma", runner_trace_idma}, {"ingest", runner_trace_ingest}};

static bool nearly(const cx_json *expected, const cx_json *got)
{
    double a, b;
    if (!cx_json_double(expected, &a) || !cx_json_double(got, &b))
        return false;
    double distance = a < b ? b - a : a - b, size = a < 0 ? -a : a;
    return distance <= 1e-9 * size;
}

/* The members of `got` that `expected` names, and those of what is inside them. */
static cx_status narrow(runner *r, const cx_json *expected, const cx_json *got, unsigned depth,
                        cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json inside;
    *out = nearly(expected, got) ? *expected : *got;
    if (expected->type != got->type || got->type < CX_JSON_ARRAY || depth == 8)
        return CX_SUCCESS;
    if (got->type == CX_JSON_ARRAY) {
        if (expected->count != got->count)
            return CX_SUCCESS;
        for (uint32_t i = 0; i < got->count; i++) {
            CX_TRY(narrow(r, &expected->items[i], &got->items[i], depth + 1, &inside, err));
            cx_json_list_add(&list, inside);
        }
        return cx_json_list_end_array(&list, out, err);
    }
    for (uint32_t i = 0; i < expected->count; i++) {
        const cx_json_member *member = &expected->members[i];
        const cx_json *value = cx_json_get(got, cx_json_text(&member->name));
        if (value == NULL)
            continue;
        CX_TRY(narrow(r, &member->value, value, depth + 1, &inside, err));
        cx_json_list_put(&list, cx_json_text(&member->name), inside);
    }
    return cx_json_list_end_object(&list, out, err);
}

/* What a case expects: its `expect`, or those of its steps. */
static cx_status expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *expected = CX_JSON_GET(item, "expect");
    const cx_json *steps = cx_json_get_typed(item, CX_STR("steps"), CX_JSON_ARRAY);
    cx_json_list list = cx_json_list_begin(&r->arena);
    if (expected != NULL) {
        *out = *expected;
        return CX_SUCCESS;
    }
    for (uint32_t i = 0; steps != NULL && i < steps->count; i++) {
        const cx_json *step = CX_JSON_GET(&steps->items[i], "expect");
        if (step == NULL)
            return cx_fail(err, CX_E_FORMAT, "step %u of the case has no 'expect'", i);
        cx_json_list_add(&list, *step);
    }
    if (steps == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no 'expect'");
    return cx_json_list_end_array(&list, out, err);
}

static cx_status answer(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str op;
    CX_TRY(runner_text(item, "op", &op, err));
    for (size_t i = 0; i < CX_COUNT_OF(ops); i++) {
        cx_json got, expected;
        if (!cx_str_is(op, ops[i].op))
            continue;
        CX_TRY(ops[i].answer(r, item, &got, err));
        *out = got;
        /* A case that expects nothing fails when that is asked for. */
        if (r->got_only || cx_failed(expect(r, item, &expected, NULL)))
            return CX_SUCCESS;
        return narrow(r, &expected, &got, 0, out, err);
    }
    return cx_fail(err, CX_E_UNSUPPORTED, "unknown operation '%.*s'",
                   (int)(op.size > 40 ? 40 : op.size), op.data);
}

void runner_trace(runner *r)
{
    static const runner_kind kind = {"/cases", answer, expect};
    cx_json root;
    cx_err err = {0};
    if (cx_failed(runner_read_json(r, CX_STR("index.json"), &root, &err))) {
        runner_fail(r, CX_STR("index.json"), err.message);
        return;
    }
    runner_run_list(r, &kind, "index.json", &root);
}
