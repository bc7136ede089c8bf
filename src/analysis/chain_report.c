/*
 * chain_report.c - the findings of an audit chain as JSON and as text.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "analysis/chain.h"

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_z(cx_json_list *list, const char *name, const char *text)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(cx_str_z(text)));
}

static void put_int(cx_json_list *list, const char *name, int64_t value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_int(list->arena, value));
}

static void put_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    char hex[64];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_str copy = cx_arena_copy_str(list->arena, cx_str_from(hex, sizeof hex));
    list->failed |= copy.data == NULL;
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(copy.data == NULL ? CX_STR("") : copy));
}

/* A mismatch names the entry that does not follow; where there are two, both are named. */
static cx_status put_trace_ids(const cx_chain_finding *finding, cx_json_list *out, cx_err *err)
{
    cx_json ids;
    cx_json_list list = cx_json_list_begin(out->arena);
    if (finding->trace_id.data != NULL)
        cx_json_list_add(&list, cx_json_make_str(finding->trace_id));
    if (finding->other_id.data != NULL && finding->kind != CX_CHAIN_MISMATCH)
        cx_json_list_add(&list, cx_json_make_str(finding->other_id));
    CX_TRY(cx_json_list_end_array(&list, &ids, err));
    cx_json_list_put(out, CX_STR("trace_ids"), ids);
    return CX_SUCCESS;
}

static cx_status finding_json(const cx_chain_finding *finding, cx_arena *arena, cx_json *out,
                              cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    put_z(&list, "kind", cx_chain_kind_name(finding->kind));
    put_int(&list, "seq", finding->seq);
    CX_TRY(put_trace_ids(finding, &list, err));
    if (finding->kind == CX_CHAIN_GAP) {
        put_int(&list, "next", finding->next);
        put_int(&list, "missing", finding->missing);
    }
    if (finding->kind == CX_CHAIN_MISMATCH) {
        put_digest(&list, "found", &finding->found);
        if (finding->has_expected)
            put_digest(&list, "expected", &finding->expected);
        if (finding->other_id.data != NULL)
            cx_json_list_put(&list, CX_STR("previous"), cx_json_make_str(finding->other_id));
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status findings_json(const cx_chain_report *report, cx_arena *arena, cx_json *out,
                               cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    if (report->empty) {
        cx_json_list empty = cx_json_list_begin(arena);
        put_z(&empty, "kind", "empty");
        CX_TRY(cx_json_list_end_object(&empty, &value, err));
        cx_json_list_add(&list, value);
    }
    for (size_t i = 0; i < report->finding_count; i++) {
        CX_TRY(finding_json(&report->findings[i], arena, &value, err));
        cx_json_list_add(&list, value);
    }
    return cx_json_list_end_array(&list, out, err);
}

static cx_status report_json(cx_str agent, const cx_chain_report *report, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    cx_json findings;
    CX_TRY(findings_json(report, arena, &findings, err));
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("agent"), cx_json_make_str(agent));
    put_z(&list, "verdict", cx_verdict_name(report->verdict));
    put_z(&list, "profile", cx_chain_profile_name(report->profile));
    cx_json_list_put(&list, CX_STR("entries"), cx_json_make_uint(arena, report->entry_count));
    cx_json_list_put(&list, CX_STR("findings"), findings);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_chain_json(cx_buf *out, cx_str agent, const cx_chain_report *report, cx_err *err)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = report_json(agent, report, &arena, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
    cx_arena_done(&arena);
    if (cx_failed(status))
        return status;
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

/* --- text ------------------------------------------------------------------------------------- */

static void finding_text(cx_buf *out, const cx_chain_finding *finding)
{
    cx_buf_printf(out, "  %-9s %lld", cx_chain_kind_name(finding->kind), (long long)finding->seq);
    if (finding->kind == CX_CHAIN_GAP) {
        cx_buf_printf(out, "  %lld missing before %lld", (long long)finding->missing,
                      (long long)finding->next);
    } else {
        cx_buf_add_z(out, "  ");
        cx_shown_add(out, finding->trace_id);
        if (finding->other_id.data != NULL) {
            cx_buf_add_z(out, finding->kind == CX_CHAIN_MISMATCH ? " does not follow " : ", ");
            cx_shown_add(out, finding->other_id);
        }
    }
    cx_buf_add_byte(out, '\n');
}

cx_status cx_chain_text(cx_buf *out, cx_str agent, const cx_chain_report *report, bool colour,
                        cx_err *err)
{
    static const char *const colours[] = {"\x1b[32m", "\x1b[31m", "\x1b[33m"};
    cx_shown_add(out, agent);
    cx_buf_printf(out, ": %s%s%s, %llu entries, profile %s\n",
                  colour ? colours[report->verdict] : "", cx_verdict_name(report->verdict),
                  colour ? "\x1b[0m" : "", (unsigned long long)report->entry_count,
                  cx_chain_profile_name(report->profile));
    if (report->empty)
        cx_buf_add_z(out, "  empty\n");
    for (size_t i = 0; i < report->finding_count; i++)
        finding_text(out, &report->findings[i]);
    return cx_buf_check(out, err);
}
