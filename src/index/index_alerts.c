/*
 * index_alerts.c - alerts of the detectors, and their acknowledgement and resolution (trace.md §10,
 * §12).
 *
 * The alert's JSON is stored whole; its columns are for queries.  Putting an alert again keeps its
 * acknowledgement and resolution.
 */
#include "base/api.h"
#include "index/index_internal.h"

#include <math.h>

static cx_sql_value number_of(const cx_json *alert, const char *name)
{
    double number = (double)NAN;
    const cx_json *value = cx_json_get(alert, cx_str_z(name));
    if (value == NULL || (value->flags & CX_JSON_NONFINITE) != 0 || !cx_json_double(value, &number))
        number = (double)NAN;
    return cx_sql_double(number);
}

static cx_str text_of(const cx_json *alert, const char *name)
{
    return cx_json_get_str(alert, cx_str_z(name));
}

static cx_status put_alert(cx_index *index, const cx_json *alert, int64_t at_ns, cx_str evidence,
                           cx_str json, cx_err *err)
{
    cx_sql_value values[] = {
        cx_sql_text(text_of(alert, "alert_id")),
        cx_sql_text(text_of(alert, "severity")),
        cx_sql_text(text_of(alert, "detection_mechanism")),
        cx_sql_text(text_of(alert, "agent_id_hash")),
        cx_sql_text(text_of(alert, "domain")),
        cx_sql_text(text_of(alert, "metric")),
        number_of(alert, "value"),
        number_of(alert, "baseline"),
        number_of(alert, "deviation"),
        {CX_CELL_TEXTS, {.null = evidence.size == 0, .text = evidence}},
        cx_sql_text(text_of(alert, "recommended_action")),
        cx_sql_time(at_ns),
        cx_sql_json(json),
    };
    for (size_t i = 0; i < 3; i++)
        if (values[i].cell.null)
            return cx_fail_at(err, CX_E_FORMAT, "BadAlert", CX_NO_OFFSET,
                              "an alert has alert_id, severity and detection_mechanism");
    return cx_index_do(index,
                       "INSERT INTO cirislens.coherence_ratchet_alerts (alert_id, severity,"
                       " detection_mechanism, agent_id_hash, domain, metric, value, baseline,"
                       " deviation, evidence_traces, recommended_action, timestamp, alert)"
                       " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
                       " ON CONFLICT (alert_id) DO NOTHING",
                       values, CX_COUNT_OF(values), err);
}

cx_status cx_index_put_alert(cx_index *index, const cx_json *alert, int64_t at_ns, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    cx_arena arena;
    cx_str json, evidence = {NULL, 0};
    const cx_json *traces = CX_JSON_GET(alert, "evidence_traces");
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_index_clean_json(alert, &arena, &json, err);
    if (!cx_failed(status) && traces != NULL && traces->type == CX_JSON_ARRAY)
        status = cx_index_clean_json(traces, &arena, &evidence, err);
    if (!cx_failed(status))
        status = put_alert(index, alert, at_ns, evidence, json, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_index_mark_alert(cx_index *index, cx_str alert_id, bool resolved, int64_t at_ns,
                              cx_str by, cx_str notes, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    cx_sql_value values[] = {cx_sql_text(alert_id), cx_sql_time(at_ns), cx_sql_text(by),
                             cx_sql_text(notes)};
    return cx_index_do(index,
                       resolved ? "UPDATE cirislens.coherence_ratchet_alerts SET resolved = TRUE,"
                                  " resolved_at = $2, resolved_by = $3, resolved_notes = $4"
                                  " WHERE alert_id = $1"
                                : "UPDATE cirislens.coherence_ratchet_alerts SET"
                                  " acknowledged = TRUE, acknowledged_at = $2,"
                                  " acknowledged_by = $3, acknowledged_notes = $4"
                                  " WHERE alert_id = $1",
                       values, CX_COUNT_OF(values), err);
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct alert_list {
    cx_arena *arena;
    CX_VEC(cx_json) alerts;
} alert_list;

static cx_json text_value(cx_arena *arena, const cx_cell *cell)
{
    if (cell->null)
        return cx_json_make_null();
    return cx_json_make_str(cx_arena_copy_str(arena, cell->text));
}

static cx_json time_value(cx_arena *arena, const cx_cell *cell)
{
    char text[CX_TRACE_TIME_SIZE];
    if (cell->null)
        return cx_json_make_null();
    cx_trace_time_write(cell->i, text);
    return cx_json_make_str(cx_arena_copy_str(arena, cx_str_z(text)));
}

static const char *const marks[] = {"acknowledged",       "acknowledged_at", "acknowledged_by",
                                    "acknowledged_notes", "resolved",        "resolved_at",
                                    "resolved_by",        "resolved_notes"};

static bool is_mark(cx_str name)
{
    for (size_t i = 0; i < CX_COUNT_OF(marks); i++)
        if (cx_str_is(name, marks[i]))
            return true;
    return cx_str_is(name, "timestamp");
}

/* The alert's own members, its time, and its acknowledgement and resolution. */
static cx_status collect_alert(void *arg, const cx_cell *c, cx_err *err)
{
    alert_list *found = arg;
    cx_json alert;
    cx_str text = cx_arena_copy_str(found->arena, c[0].text);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(text, found->arena, &alert, err));
    cx_json_list members = cx_json_list_begin(found->arena);
    for (uint32_t i = 0; alert.type == CX_JSON_OBJECT && i < alert.count; i++)
        if (!is_mark(cx_json_text(&alert.members[i].name)))
            cx_json_list_put(&members, cx_json_text(&alert.members[i].name),
                             alert.members[i].value);
    cx_json_list_put(&members, CX_STR("timestamp"), time_value(found->arena, &c[1]));
    for (size_t i = 0; i < CX_COUNT_OF(marks); i++) {
        const cx_cell *cell = &c[2 + i];
        cx_json value = i % 4 == 0   ? cx_json_make_bool(!cell->null && cell->b)
                        : i % 4 == 1 ? time_value(found->arena, cell)
                                     : text_value(found->arena, cell);
        cx_json_list_put(&members, cx_str_z(marks[i]), value);
    }
    cx_json *out = cx_vec_push(&found->alerts, cx_alloc_default());
    return out == NULL ? cx_fail_nomem(err) : cx_json_list_end_object(&members, out, err);
}

static cx_status collect_alerts(cx_index *index, bool open_only, uint32_t limit, alert_list *list,
                                cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_JSON, CX_CELL_TIME, CX_CELL_BOOL, CX_CELL_TIME,
                                         CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_BOOL, CX_CELL_TIME,
                                         CX_CELL_TEXT, CX_CELL_TEXT};
#define SELECT_ALERTS                                                          \
    "SELECT alert, timestamp, acknowledged, acknowledged_at, acknowledged_by," \
    " acknowledged_notes, resolved, resolved_at, resolved_by, resolved_notes"  \
    " FROM cirislens.coherence_ratchet_alerts"
#define ORDER_ALERTS " ORDER BY timestamp DESC, alert_id LIMIT $1"
    cx_sql_value value = cx_sql_int(limit);
    cx_question question = {open_only ? SELECT_ALERTS " WHERE resolved = FALSE" ORDER_ALERTS
                                      : SELECT_ALERTS ORDER_ALERTS,
                            &value,
                            1,
                            types,
                            CX_COUNT_OF(types),
                            collect_alert,
                            list};
    return cx_index_ask(index, &question, err);
}

cx_status cx_index_alerts(cx_index *index, bool open_only, uint32_t limit, cx_arena *arena,
                          const cx_json **out, size_t *out_count, cx_err *err)
{
    alert_list list = {.arena = arena};
    cx_status status = collect_alerts(index, open_only, limit, &list, err);
    cx_json *copy = NULL;
    if (!cx_failed(status)) {
        copy = CX_ARENA_ARRAY(arena, cx_json, list.alerts.count + 1);
        if (copy == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (list.alerts.count != 0)
            memcpy(copy, list.alerts.items, list.alerts.count * sizeof *copy);
        *out = copy;
        *out_count = list.alerts.count;
    }
    cx_vec_done(&list.alerts, cx_alloc_default());
    return status;
}
