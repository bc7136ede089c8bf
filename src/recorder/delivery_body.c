/*
 * delivery_body.c - an alert as the JSON of a webhook, of a command, and of Alertmanager.
 */
#include "analysis/api.h"
#include "recorder/internal.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

static cx_status write_json(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_json_write(&text, value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        status = out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

static cx_str time_text(int64_t ns, cx_arena *arena)
{
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(ns, text);
    return cx_arena_copy_str(arena, cx_str_z(text));
}

/* --- webhook, command ------------------------------------------------------------------------- */

static cx_status write_message(const cx_alert_event *event, cx_arena *arena, cx_str *out,
                               cx_err *err)
{
    cx_json value;
    cx_json_list data = cx_json_list_begin(arena), message = cx_json_list_begin(arena);
    cx_json_put(&data, "alert", event->alert == NULL ? cx_json_make_null() : *event->alert);
    cx_json_put_str(&data, "alert_id", event->alert_id);
    cx_json_put(&data, "mark", event->mark == NULL ? cx_json_make_null() : *event->mark);
    cx_json_put_object(&message, "data", &data);
    cx_json_put_str(&message, "home_id", event->home_id);
    cx_json_put_str(&message, "id", event->id);
    cx_json_put_str(&message, "timestamp", time_text(event->at_ns, arena));
    cx_json_put_str(&message, "type", event->type);
    CX_TRY(cx_json_list_end_object(&message, &value, err));
    return write_json(&value, arena, out, err);
}

/* --- Alertmanager ----------------------------------------------------------------------------- */

/* "hash_chain" -> "CortexHashChain". */
static cx_str alert_name(cx_str mechanism, cx_arena *arena)
{
    cx_buf name;
    bool capital = true;
    cx_buf_init(&name, arena->alloc);
    cx_buf_add_z(&name, "Cortex");
    for (size_t i = 0; i < mechanism.size; i++) {
        char c = mechanism.data[i];
        if (c != '_')
            cx_buf_add_byte(&name, (uint8_t)(capital && c >= 'a' && c <= 'z' ? c - 32 : c));
        capital = c == '_';
    }
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&name));
    cx_buf_done(&name);
    return copy;
}

static void put_label(cx_json_list *list, const char *name, cx_str value)
{
    if (value.size != 0) /* an empty label is as good as none */
        cx_json_put_str(list, name, value);
}

static const char *title_of(cx_str mechanism)
{
    for (size_t i = 0; i < CX_DETECT_COUNT; i++)
        if (cx_str_is(mechanism, cx_detectors[i].name))
            return cx_detectors[i].title;
    if (cx_str_is(mechanism, "enforcement_gap"))
        return "A tool call ran that no hook decided";
    return cx_str_is(mechanism, "trace_id_conflict") ? "Two different traces claim one id"
                                                     : "An alert of Cortex";
}

static void add_number(cx_buf *out, const cx_json *alert, const char *name)
{
    const cx_json *value = cx_json_get(alert, cx_str_z(name));
    if (value == NULL || !cx_json_is_number(value))
        return;
    cx_buf_printf(out, "%s%s ", out->size == 0 ? "" : ", ", name);
    cx_json_write_number(out, value, CX_JSON_PY_COMPACT);
}

static void put_numbers(cx_json_list *list, const cx_json *alert)
{
    cx_buf text;
    cx_buf_init(&text, list->arena->alloc);
    add_number(&text, alert, "value");
    add_number(&text, alert, "baseline");
    add_number(&text, alert, "deviation");
    put_label(list, "description", cx_arena_copy_str(list->arena, cx_buf_str(&text)));
    cx_buf_done(&text);
}

static void put_evidence(cx_json_list *list, const cx_json *alert)
{
    const cx_json *traces = CX_JSON_GET(alert, "evidence_traces");
    cx_buf text;
    cx_buf_init(&text, list->arena->alloc);
    for (uint32_t i = 0; traces != NULL && traces->type == CX_JSON_ARRAY && i < traces->count;
         i++) {
        cx_buf_add_z(&text, i == 0 ? "" : ", ");
        cx_buf_add_str(&text, cx_json_text(&traces->items[i]));
    }
    put_label(list, "evidence", cx_arena_copy_str(list->arena, cx_buf_str(&text)));
    cx_buf_done(&text);
}

static void put_labels(cx_json_list *outer, const cx_alert_event *event, cx_str mechanism)
{
    cx_json_list labels = cx_json_list_begin(outer->arena);
    put_label(&labels, "agent", CX_JSON_GET_STR(event->alert, "agent_id_hash"));
    put_label(&labels, "alert_id", event->alert_id);
    put_label(&labels, "alertname", alert_name(mechanism, outer->arena));
    put_label(&labels, "domain", CX_JSON_GET_STR(event->alert, "domain"));
    put_label(&labels, "home", event->home_id);
    put_label(&labels, "mechanism", mechanism);
    put_label(&labels, "metric", CX_JSON_GET_STR(event->alert, "metric"));
    put_label(&labels, "severity", CX_JSON_GET_STR(event->alert, "severity"));
    cx_json_put_object(outer, "labels", &labels);
}

static void put_annotations(cx_json_list *outer, const cx_alert_event *event, cx_str mechanism)
{
    cx_json_list notes = cx_json_list_begin(outer->arena);
    put_label(&notes, "action", CX_JSON_GET_STR(event->alert, "recommended_action"));
    put_numbers(&notes, event->alert);
    put_evidence(&notes, event->alert);
    put_label(&notes, "summary", cx_str_z(title_of(mechanism)));
    cx_json_put_object(outer, "annotations", &notes);
}

/* A list of one alert, as POST /api/v2/alerts takes it. */
static cx_status write_posted_alert(const cx_alert_event *event, int64_t from_ns, int64_t to_ns,
                                    cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_json value;
    cx_str mechanism = CX_JSON_GET_STR(event->alert, "detection_mechanism");
    cx_json_list alert = cx_json_list_begin(arena), alerts = cx_json_list_begin(arena);
    put_annotations(&alert, event, mechanism);
    cx_json_put_str(&alert, "endsAt", time_text(to_ns, arena));
    put_labels(&alert, event, mechanism);
    if (from_ns != CX_TIME_NONE)
        cx_json_put_str(&alert, "startsAt", time_text(from_ns, arena));
    cx_json_add_object(&alerts, &alert);
    CX_TRY(cx_json_list_end_array(&alerts, &value, err));
    return write_json(&value, arena, out, err);
}

/* It knows firing and resolved: nothing of acknowledgements. */
static cx_status write_alertmanager(const cx_alert_event *event, cx_arena *arena, cx_str *out,
                                    cx_err *err)
{
    if (event->alert == NULL)
        return CX_SUCCESS;
    if (event->mark == NULL)
        return write_posted_alert(event, event->at_ns, event->at_ns + CX_DELIVERY_DAYS * DAY_NS,
                                  arena, out, err);
    if (cx_str_is(event->type, "alert.resolved"))
        return write_posted_alert(event, CX_TIME_NONE, event->at_ns, arena, out, err);
    return CX_SUCCESS;
}

cx_status cx_delivery_body(const cx_alert_event *event, cx_destination destination, cx_arena *arena,
                           cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    return destination == CX_TO_ALERTMANAGER ? write_alertmanager(event, arena, out, err)
                                             : write_message(event, arena, out, err);
}
