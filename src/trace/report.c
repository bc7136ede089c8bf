/*
 * report.c - a verdict for programs (one line of canonical JSON) and for people.
 */
#include "trace/internal.h"

#include "crypto/api.h"

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name),
                     text.data == NULL ? cx_json_make_null() : cx_json_make_str(text));
}

/* Names that are empty mean "none". */
static void put_name(cx_json_list *list, const char *name, const char *text)
{
    put_text(list, name, text[0] == 0 ? (cx_str){NULL, 0} : cx_str_z(text));
}

static const char *pqc_name(cx_trace_pqc pqc)
{
    static const char *const names[] = {"", "not_checked", "holds", "broken"};
    return names[pqc];
}

static void put_canonical(cx_json_list *list, const cx_trace_verdict *verdict)
{
    char hex[2 * sizeof verdict->canonical.bytes];
    cx_str text = {NULL, 0};
    if (verdict->form != CX_FORM_NONE) {
        cx_hex_encode(cx_bytes_from(verdict->canonical.bytes, sizeof verdict->canonical.bytes),
                      hex);
        text = cx_arena_copy_str(list->arena, cx_str_from(hex, sizeof hex));
        list->failed |= text.data == NULL;
    }
    put_text(list, "canonical_sha256", text);
    cx_json_list_put(list, CX_STR("canonical_len"),
                     verdict->form == CX_FORM_NONE
                         ? cx_json_make_null()
                         : cx_json_make_uint(list->arena, verdict->canonical_size_bytes));
}

static cx_status put_texts(cx_json_list *list, const char *name, const cx_str *texts, size_t count,
                           cx_err *err)
{
    cx_json value;
    cx_json_list items = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&items, cx_json_make_str(texts[i]));
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_json_list_put(list, cx_str_z(name), value);
    return CX_SUCCESS;
}

static cx_status verdict_value(const cx_trace *trace, const cx_trace_verdict *verdict,
                               cx_arena *arena, cx_json *out, cx_err *err)
{
    static const cx_str naive = {"naive_timestamp", 15};
    cx_json_list list = cx_json_list_begin(arena);
    put_text(&list, "trace_id", trace->trace_id);
    put_text(&list, "agent_id_hash", trace->agent_id_hash);
    put_text(&list, "key_id", trace->key_id);
    put_text(&list, "trace_type", cx_trace_wakeup_type(trace->task_id));
    put_name(&list, "trace_level", cx_trace_level_name(trace->level));
    put_name(&list, "verdict", cx_verdict_name(verdict->verdict));
    put_name(&list, "reason", cx_trace_reason_name(verdict->problem.reason));
    put_text(&list, "path", verdict->problem.path);
    put_text(&list, "detail", verdict->problem.detail);
    put_name(&list, "form", cx_trace_form_name(verdict->form));
    put_name(&list, "numbers", cx_trace_numbers_name(verdict->numbers));
    put_name(&list, "signed", cx_trace_signed_name(verdict->covers));
    put_name(&list, "pqc", pqc_name(verdict->pqc));
    put_canonical(&list, verdict);
    CX_TRY(put_texts(&list, "paths", verdict->paths, verdict->path_count, err));
    CX_TRY(put_texts(&list, "warnings", &naive, verdict->naive_timestamp, err));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_trace_verdict_json(cx_buf *out, const cx_trace *trace, const cx_trace_verdict *verdict,
                                cx_err *err)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = verdict_value(trace, verdict, &arena, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
    cx_arena_done(&arena);
    if (!cx_failed(status))
        cx_buf_add_byte(out, '\n');
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

/* --- text ------------------------------------------------------------------------------------- */

/* Ids are external text: everything that could act on a terminal is escaped. */
static void add_external(cx_buf *out, cx_str text)
{
    if (text.data == NULL)
        cx_buf_add_z(out, "(none)");
    else
        cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
}

static void add_line(cx_buf *out, const char *label, const char *text)
{
    if (text[0] != 0)
        cx_buf_printf(out, "  %-10s %s\n", label, text);
}

static void add_external_line(cx_buf *out, const char *label, cx_str text)
{
    cx_buf_printf(out, "  %-10s ", label);
    add_external(out, text);
    cx_buf_add_byte(out, '\n');
}

static void add_form(cx_buf *out, const cx_trace_verdict *verdict)
{
    if (verdict->form == CX_FORM_NONE)
        return;
    cx_buf_printf(out, "  %-10s %s, numbers %s, %llu bytes, SHA-256 ", "form",
                  cx_trace_form_name(verdict->form), cx_trace_numbers_name(verdict->numbers),
                  (unsigned long long)verdict->canonical_size_bytes);
    cx_hex_add(out, cx_bytes_from(verdict->canonical.bytes, sizeof verdict->canonical.bytes));
    cx_buf_add_byte(out, '\n');
    add_line(out, "signed", cx_trace_signed_name(verdict->covers));
    if (verdict->covers != CX_SIGNED_ENVELOPE)
        add_line(out, "", "ids and times of the envelope are not signed in this form");
}

cx_status cx_trace_verdict_text(cx_buf *out, const cx_trace *trace, const cx_trace_verdict *verdict,
                                bool colour, cx_err *err)
{
    static const char *const colours[] = {"\x1b[32m", "\x1b[31m", "\x1b[33m"};
    cx_str type = cx_trace_wakeup_type(trace->task_id);
    cx_buf_add_z(out, "trace ");
    add_external(out, trace->trace_id);
    cx_buf_printf(out, ": %s%s%s\n", colour ? colours[verdict->verdict] : "",
                  cx_verdict_name(verdict->verdict), colour ? "\x1b[0m" : "");
    add_line(out, "reason", cx_trace_reason_name(verdict->problem.reason));
    if (verdict->problem.path.size != 0 && verdict->path_count == 0)
        add_external_line(out, "at", verdict->problem.path);
    for (size_t i = 0; i < verdict->path_count; i++)
        add_external_line(out, i == 0 ? "at" : "", verdict->paths[i]);
    if (verdict->problem.detail.size != 0)
        add_external_line(out, "detail", verdict->problem.detail);
    add_external_line(out, "agent", trace->agent_id_hash);
    add_external_line(out, "key", trace->key_id);
    if (type.data != NULL)
        add_external_line(out, "wakeup", type);
    add_form(out, verdict);
    if (verdict->pqc == CX_PQC_NOT_CHECKED)
        add_line(
            out, "pqc",
            "not checked: ML-DSA-65 needs OpenSSL 3.5 or liboqs 0.12, form H, pubkey_ml_dsa_65");
    if (verdict->pqc == CX_PQC_HOLDS)
        add_line(out, "pqc", "holds, with the ML-DSA-65 key inside the trace");
    if (verdict->pqc == CX_PQC_BROKEN)
        add_line(out, "pqc", "broken");
    if (verdict->naive_timestamp)
        add_line(out, "warning", "a timestamp without an offset was taken as UTC");
    return cx_buf_check(out, err);
}
