/*
 * alerts.c - findings of the detectors, stored in the ledger (trace.md §12).
 *
 * An alert is an entry `trace.alert` of the actor `alerts`, whose payload is its JSON; the record
 * alert/<alert_id> written with it marks it as raised, so that detecting it again writes nothing.
 * A `trace.alert_ack` records that a user has acknowledged or resolved it:
 *
 *     {"alert_id":"..","by":"..","notes":"..","state":"acknowledged" or "resolved"}
 */
#include "base/api.h"
#include "crypto/api.h"
#include "recorder/internal.h"

#define ALERT_ID_SIZE 32
#define DAY_NS (INT64_C(86400) * 1000000000)

typedef struct alert_key {
    uint8_t bytes[6 + ALERT_ID_SIZE];
} alert_key;

static cx_bytes alert_key_of(alert_key *key, cx_str id)
{
    CX_ASSERT(id.size == ALERT_ID_SIZE);
    memcpy(key->bytes, "alert/", 6);
    memcpy(key->bytes + 6, id.data, id.size);
    return cx_bytes_from(key->bytes, sizeof key->bytes);
}

/* --- raising ---------------------------------------------------------------------------------- */

static cx_status append_alert(cx_recorder *recorder, cx_txn *txn, const cx_json *alert,
                              cx_bytes key, int64_t now, cx_err *err)
{
    cx_buf text;
    uint64_t seq;
    cx_buf_init(&text, recorder->alloc);
    cx_status status = cx_json_write(&text, alert, CX_JSON_PY_COMPACT, err);
    const cx_entry_draft draft = {
        .kind = CX_KIND_ALERT, .created_at_ns = now, .payload = cx_buf_bytes(&text)};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, &seq, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, key, cx_str_bytes(CX_STR("raised")), false, err);
    cx_buf_done(&text);
    return status;
}

/* Those of `alerts` that were not raised before, in one transaction. */
static cx_status raise_alert(cx_recorder *recorder, const cx_json *alerts, size_t count,
                             uint64_t *out_new, uint64_t *out_commit, cx_err *err)
{
    cx_txn *txn;
    cx_status status = CX_SUCCESS;
    int64_t now = cx_recorder_now(recorder);
    *out_new = 0;
    if (count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_txn_begin(recorder->home, CX_ACTOR_ALERTS, &txn, err));
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        alert_key name;
        cx_bytes value, key = alert_key_of(&name, CX_JSON_GET_STR(&alerts[i], "alert_id"));
        bool found = false;
        status = cx_txn_get(txn, key, &value, &found, err);
        if (cx_failed(status) || found)
            continue;
        status = append_alert(recorder, txn, &alerts[i], key, now, err);
        ++*out_new;
    }
    if (cx_failed(status) || *out_new == 0) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit_later(txn, out_commit, err);
}

static cx_status hex_text(const cx_digest *digest, size_t size, cx_arena *arena, cx_str *out,
                          cx_err *err)
{
    char hex[64];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    *out = cx_arena_copy_str(arena, cx_str_from(hex, size));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* An alert of something that happened, rather than of a statistic: its values are null. */
typedef struct event_alert {
    const char *mechanism, *metric, *action;
    cx_str id, agent;
    int64_t at_ns;
    cx_json evidence, inputs;
    bool has_value;
    uint64_t value;
} event_alert;

static cx_status event_json(const event_alert *alert, cx_arena *arena, cx_json *out, cx_err *err)
{
    char at[CX_TRACE_TIME_SIZE];
    cx_json_list list = cx_json_list_begin(arena);
    cx_trace_time_write(alert->at_ns, at);
    cx_str at_copy = cx_arena_copy_str(arena, cx_str_z(at));
    if (at_copy.data == NULL)
        return cx_fail_nomem(err);
    cx_json_put_str(&list, "alert_id", alert->id);
    cx_json_put_z(&list, "severity", "critical");
    cx_json_put_z(&list, "detection_mechanism", alert->mechanism);
    cx_json_put_str(&list, "agent_id_hash", alert->agent);
    cx_json_put_null(&list, "domain");
    cx_json_put_z(&list, "metric", alert->metric);
    if (alert->has_value)
        cx_json_put_uint(&list, "value", alert->value);
    else
        cx_json_put_null(&list, "value");
    cx_json_put_null(&list, "baseline");
    cx_json_put_null(&list, "deviation");
    cx_json_put(&list, "evidence_traces", alert->evidence);
    cx_json_put_z(&list, "recommended_action", alert->action);
    cx_json_put_str(&list, "window_end", at_copy);
    cx_json_put(&list, "inputs", alert->inputs);
    return cx_json_list_end_object(&list, out, err);
}

/* The id of an alert: a digest of what makes it unique, a line each. */
static cx_status event_id(const cx_str *lines, size_t count, cx_arena *arena, cx_str *out,
                          cx_err *err)
{
    cx_sha256 hash;
    cx_sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        cx_sha256_add(&hash, lines[i].data, lines[i].size);
        if (i + 1 != count)
            cx_sha256_add(&hash, "\n", 1);
    }
    const cx_digest digest = cx_sha256_end(&hash);
    return hex_text(&digest, ALERT_ID_SIZE, arena, out, err);
}

static cx_status conflict_json(const cx_conflict_alert *alert, cx_arena *arena, cx_json *out,
                               cx_err *err)
{
    const cx_str unique[] = {
        CX_STR("trace_id_conflict"), alert->agent, alert->trace_id,
        cx_str_from((const char *)alert->content.bytes, sizeof alert->content.bytes)};
    event_alert event = {
        .mechanism = "trace_id_conflict",
        .metric = "trace_id",
        .action = "Compare both records: the agent signed two traces under one id, or another "
                  "party has its key",
        .agent = alert->agent,
        .at_ns = alert->at_ns};
    cx_str content;
    CX_TRY(event_id(unique, CX_COUNT_OF(unique), arena, &event.id, err));
    CX_TRY(hex_text(&alert->content, 64, arena, &content, err));
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_add(&list, cx_json_make_str(alert->trace_id));
    CX_TRY(cx_json_list_end_array(&list, &event.evidence, err));
    list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("content_sha256"), cx_json_make_str(content));
    CX_TRY(cx_json_list_end_object(&list, &event.inputs, err));
    return event_json(&event, arena, out, err);
}

static cx_status gap_json(const cx_gap_alert *alert, cx_arena *arena, cx_json *out, cx_err *err)
{
    const cx_str unique[] = {CX_STR("enforcement_gap"), alert->agent, alert->session,
                             alert->findings};
    event_alert event = {
        .mechanism = "enforcement_gap",
        .metric = "undecided",
        .action = "Run 'cortex hook audit' for the session: its findings name the calls, and "
                  "'cortex hook status' says whether hooks are in force",
        .agent = alert->actor,
        .at_ns = alert->at_ns,
        .has_value = true,
        .value = alert->count};
    CX_TRY(event_id(unique, CX_COUNT_OF(unique), arena, &event.id, err));
    cx_json_list list = cx_json_list_begin(arena);
    CX_TRY(cx_json_list_end_array(&list, &event.evidence, err));
    list = cx_json_list_begin(arena);
    cx_json_put_str(&list, "agent", alert->agent);
    cx_json_put_str(&list, "session", alert->session);
    cx_json_put_str(&list, "findings", alert->findings);
    cx_json_put_str(&list, "message", alert->message);
    CX_TRY(cx_json_list_end_object(&list, &event.inputs, err));
    return event_json(&event, arena, out, err);
}

cx_status cx_recorder_raise_conflict(cx_recorder *recorder, const cx_conflict_alert *alert,
                                     bool *out_raised, uint64_t *out_commit, cx_err *err)
{
    cx_arena arena;
    cx_json value;
    uint64_t raised = 0;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = conflict_json(alert, &arena, &value, err);
    if (!cx_failed(status))
        status = raise_alert(recorder, &value, 1, &raised, out_commit, err);
    cx_arena_done(&arena);
    *out_raised = raised != 0;
    return status;
}

cx_status cx_recorder_raise_gap(cx_recorder *recorder, const cx_gap_alert *alert, bool *out_raised,
                                cx_err *err)
{
    cx_arena arena;
    cx_json value;
    uint64_t raised = 0, commit = 0;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = gap_json(alert, &arena, &value, err);
    if (!cx_failed(status))
        status = raise_alert(recorder, &value, 1, &raised, &commit, err);
    if (!cx_failed(status) && raised != 0) {
        status = cx_home_wait(recorder->home, commit, err);
        cx_recorder_notify(recorder);
    }
    cx_arena_done(&arena);
    *out_raised = raised != 0;
    return status;
}

/* --- the detectors over an index -------------------------------------------------------------- */

cx_status cx_detection_collect(cx_detection *d, const cx_alerts *alerts, cx_err *err)
{
    for (size_t i = 0; i < alerts->count; i++) {
        cx_json *slot = cx_vec_push(&d->found, d->recorder->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_alert_json(&alerts->items[i], d->arena, slot, err));
    }
    return CX_SUCCESS;
}

cx_status cx_detection_scores(cx_detection *d, cx_err *err)
{
    const cx_score_row *rows;
    size_t count = 0;
    int64_t longest = 0;
    for (cx_mechanism m = 0; m < CX_DETECT_COUNT; m++)
        if (cx_detectors[m].days > longest)
            longest = cx_detectors[m].days;
    CX_TRY(cx_index_scores(d->index, (cx_str){NULL, 0}, d->now_ns - longest * DAY_NS, d->now_ns,
                           d->arena, &rows, &count, err));
    for (cx_mechanism m = 0; m < CX_DETECT_COUNT; m++) {
        const cx_detector *detector = &cx_detectors[m];
        cx_alerts alerts;
        if (detector->detect == NULL)
            continue;
        size_t first = 0; /* rows are by time */
        while (first < count && rows[first].timestamp_ns < d->now_ns - detector->days * DAY_NS)
            first++;
        CX_TRY(detector->detect(rows + first, count - first, d->now_ns, d->arena, &alerts, err));
        CX_TRY(cx_detection_collect(d, &alerts, err));
    }
    return CX_SUCCESS;
}

cx_status cx_detection_chain(cx_detection *d, cx_str agent, cx_err *err)
{
    cx_chain_report report;
    cx_alerts alerts;
    const cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    CX_TRY(cx_recorder_chain(d->recorder, d->index, agent, &options, d->arena, &report, err));
    CX_TRY(cx_detect_chain(agent, &report, d->now_ns, d->arena, &alerts, err));
    return cx_detection_collect(d, &alerts, err);
}

cx_status cx_detection_chains(cx_detection *d, cx_err *err)
{
    const cx_str *agents;
    size_t count = 0;
    CX_TRY(cx_index_agents(d->index, d->arena, &agents, &count, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(cx_detection_chain(d, agents[i], err));
    return CX_SUCCESS;
}

static cx_status write_detection(cx_detection *d, uint64_t new_count, cx_buf *out, cx_err *err)
{
    cx_json alerts, value;
    cx_json_list list = cx_json_list_begin(d->arena);
    for (size_t i = 0; i < d->found.count; i++)
        cx_json_list_add(&list, d->found.items[i]);
    CX_TRY(cx_json_list_end_array(&list, &alerts, err));
    list = cx_json_list_begin(d->arena);
    cx_json_list_put(&list, CX_STR("alerts"), alerts);
    cx_json_list_put(&list, CX_STR("new"), cx_json_make_uint(d->arena, new_count));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

cx_status cx_detection_raise(cx_detection *d, uint64_t *out_new, cx_err *err)
{
    uint64_t commit = 0;
    CX_TRY(raise_alert(d->recorder, d->found.items, d->found.count, out_new, &commit, err));
    if (*out_new == 0)
        return CX_SUCCESS;
    CX_TRY(cx_home_wait(d->recorder->home, commit, err));
    cx_recorder_notify(d->recorder);
    return CX_SUCCESS;
}

static cx_status detect_findings(cx_detection *d, bool record, cx_buf *out, cx_err *err)
{
    uint64_t new_count = 0;
    CX_TRY(cx_detection_scores(d, err));
    CX_TRY(cx_detection_chains(d, err));
    if (record)
        CX_TRY(cx_detection_raise(d, &new_count, err));
    return write_detection(d, new_count, out, err);
}

cx_status cx_recorder_detect(cx_recorder *recorder, cx_index *index, bool record, cx_buf *out,
                             uint64_t *out_found, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_detection d = {
        .recorder = recorder, .index = index, .arena = &arena, .now_ns = cx_recorder_now(recorder)};
    cx_status status = detect_findings(&d, record, out, err);
    if (!cx_failed(status))
        *out_found = d.found.count;
    cx_vec_done(&d.found, recorder->alloc);
    cx_arena_done(&arena);
    return status;
}

/* --- acknowledged and resolved ---------------------------------------------------------------- */

static cx_status append_acknowledgement(cx_recorder *recorder, cx_txn *txn, cx_str alert_id,
                                        bool resolved, cx_str by, cx_str notes, cx_err *err)
{
    cx_json mark;
    uint64_t seq;
    cx_buf text;
    alert_key name;
    cx_bytes value;
    bool found = false;
    if (alert_id.size == ALERT_ID_SIZE)
        CX_TRY(cx_txn_get(txn, alert_key_of(&name, alert_id), &value, &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoAlert", CX_NO_OFFSET, "no such alert");
    cx_json_list list = cx_json_list_begin(cx_txn_arena(txn));
    cx_json_list_put(&list, CX_STR("alert_id"), cx_json_make_str(alert_id));
    cx_json_list_put(&list, CX_STR("by"), cx_json_make_str(by));
    cx_json_list_put(&list, CX_STR("notes"), cx_json_make_str(notes));
    cx_json_list_put(&list, CX_STR("state"),
                     cx_json_make_str(resolved ? CX_STR("resolved") : CX_STR("acknowledged")));
    CX_TRY(cx_json_list_end_object(&list, &mark, err));
    cx_buf_init(&text, recorder->alloc);
    cx_status status = cx_json_write(&text, &mark, CX_JSON_PY_COMPACT, err);
    const cx_entry_draft draft = {.kind = CX_KIND_ALERT_ACK,
                                  .created_at_ns = cx_recorder_now(recorder),
                                  .payload = cx_buf_bytes(&text)};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, &seq, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_recorder_alert_mark(cx_recorder *recorder, cx_str alert_id, bool resolved, cx_str by,
                                 cx_str notes, cx_err *err)
{
    cx_txn *txn;
    CX_TRY(cx_txn_begin(recorder->home, CX_ACTOR_ALERTS, &txn, err));
    cx_status status = append_acknowledgement(recorder, txn, alert_id, resolved, by, notes, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    status = cx_txn_commit(txn, err);
    cx_recorder_notify(recorder);
    return status;
}
