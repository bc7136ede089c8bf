/*
 * detect_report.c - alerts and capacity as JSON.
 */
#include <math.h>

#include "crypto/api.h"
#include "analysis/detect.h"
#include "trace/api.h"

/* --- alerts as JSON --------------------------------------------------------------------------- */

static cx_json number_or_null(cx_arena *arena, double value)
{
    return isfinite(value) ? cx_json_make_double(arena, value) : cx_json_make_null();
}

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name),
                     text.data == NULL ? cx_json_make_null() : cx_json_make_str(text));
}

static void put_number(cx_json_list *list, const char *name, double value)
{
    cx_json_list_put(list, cx_str_z(name), number_or_null(list->arena, value));
}

/* One id for each (mechanism, agent, domain, metric, day): the first 16 bytes of the SHA-256 of
 * these as a JSON array.  Names are external text; a JSON array separates them whatever they
 * contain, and distinguishes a missing domain from an empty one. */
static cx_status alert_id(const cx_alert *alert, cx_str day, cx_arena *arena, cx_str *out,
                          cx_err *err)
{
    const cx_str parts[] = {cx_str_z(cx_mechanism_name(alert->mechanism)), alert->agent,
                            alert->domain, alert->metric, day};
    char hex[64];
    cx_buf text;
    cx_json value;
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++)
        cx_json_list_add(&list,
                         parts[i].data == NULL ? cx_json_make_null() : cx_json_make_str(parts[i]));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status)) {
        const cx_digest digest = cx_digest_of(cx_bytes_from(text.data, text.size));
        cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
        *out = cx_arena_copy_str(arena, cx_str_from(hex, 32));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

cx_status cx_alert_json(const cx_alert *alert, cx_arena *arena, cx_json *out, cx_err *err)
{
    char time[CX_TRACE_TIME_SIZE];
    cx_json evidence;
    cx_trace_time_write(alert->window_end_ns, time);
    cx_str end = cx_arena_copy_str(arena, cx_str_z(time));
    cx_str id;
    if (end.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(alert_id(alert, cx_str_from(end.data, 10), arena, &id, err)); /* YYYY-MM-DD */
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < alert->evidence_count; i++)
        cx_json_list_add(&list, cx_json_make_str(alert->evidence[i]));
    CX_TRY(cx_json_list_end_array(&list, &evidence, err));
    list = cx_json_list_begin(arena);
    put_text(&list, "alert_id", id);
    put_text(&list, "severity", alert->critical ? CX_STR("critical") : CX_STR("warning"));
    put_text(&list, "detection_mechanism", cx_str_z(cx_mechanism_name(alert->mechanism)));
    put_text(&list, "agent_id_hash", alert->agent);
    put_text(&list, "domain", alert->domain);
    put_text(&list, "metric", alert->metric);
    put_number(&list, "value", alert->value);
    put_number(&list, "baseline", alert->baseline);
    put_number(&list, "deviation", alert->deviation);
    cx_json_list_put(&list, CX_STR("evidence_traces"), evidence);
    put_text(&list, "recommended_action", alert->recommended_action);
    put_text(&list, "window_end", end);
    cx_json_list_put(&list, CX_STR("inputs"), alert->inputs);
    return cx_json_list_end_object(&list, out, err);
}

/* --- capacity --------------------------------------------------------------------------------- */

static const char *confidence_name(cx_confidence confidence)
{
    static const char *const names[] = {"insufficient", "low", "medium", "high"};
    return names[confidence];
}

static cx_status capacity_value(cx_str agent, const cx_capacity *capacity, cx_arena *arena,
                                cx_json *out, cx_err *err)
{
    bool scored = capacity->confidence != CX_CONFIDENCE_INSUFFICIENT;
    cx_json factors;
    cx_json_list list = cx_json_list_begin(arena);
    put_number(&list, "c", capacity->c);
    put_number(&list, "i_int", capacity->i_int);
    put_number(&list, "r", capacity->r_known ? capacity->r : (double)NAN);
    put_number(&list, "i_inc", capacity->i_inc);
    put_number(&list, "s", capacity->s);
    CX_TRY(cx_json_list_end_object(&list, &factors, err));
    list = cx_json_list_begin(arena);
    put_text(&list, "agent", agent);
    cx_json_list_put(&list, CX_STR("n"), cx_json_make_uint(arena, capacity->n));
    put_text(&list, "confidence", cx_str_z(confidence_name(capacity->confidence)));
    put_number(&list, "score", scored ? capacity->score : (double)NAN);
    put_number(&list, "fragility", scored ? capacity->fragility : (double)NAN);
    put_text(&list, "category", scored ? cx_str_z(capacity->category) : (cx_str){NULL, 0});
    cx_json_list_put(&list, CX_STR("factors"), factors);
    cx_json_list_put(&list, CX_STR("inputs"), capacity->inputs);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_capacity_json(cx_buf *out, cx_str agent, const cx_capacity *capacity, cx_err *err)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = capacity_value(agent, capacity, &arena, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
    cx_arena_done(&arena);
    if (cx_failed(status))
        return status;
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}
