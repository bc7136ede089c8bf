/*
 * rows.h - traces for the tests of rows and of the index: made from a few numbers, read and turned
 * into rows the way the feed does it.  Signatures are not checked here, so they are none.
 */
#ifndef CX_TESTS_TRACE_ROWS_H
#define CX_TESTS_TRACE_ROWS_H

#include <math.h>

#include "base/alloc.h"
#include "tests/test.h"
#include "index/index.h"

typedef struct rows_spec {
    const char *agent; /* NULL: the trace says none */
    const char *trace_id;
    const char *task_id;
    int64_t at_ns; /* completed_at; components are up to a second earlier */
    cx_trace_level level;
    double csdma, k_eff; /* NAN = null */
    const char *action, *domain, *rationale;
    int64_t audit_seq; /* -1 = null */
    bool overridden, verified;
    const char *action_extra; /* more members of ACTION_RESULT, each after a comma */
    uint64_t seq;
} rows_spec;

#define ROWS_DAY_NS (INT64_C(86400) * 1000000000)
/* 2026-01-01T00:00:00Z */
#define ROWS_START_NS (INT64_C(1767225600) * 1000000000)

#define ROWS_SPEC_INIT                                                                      \
    {                                                                                       \
        .agent = "agent-a", .trace_id = "t-1", .task_id = "task-1", .at_ns = ROWS_START_NS, \
        .level = CX_LEVEL_GENERIC, .csdma = 0.5, .k_eff = 1.5, .action = "SPEAK",           \
        .domain = "home", .audit_seq = -1, .verified = true                                 \
    }

static inline void rows_add_number(cx_buf *out, double number)
{
    if (isnan(number))
        cx_buf_add_z(out, "null");
    else
        cx_buf_printf(out, "%.17g", number);
}

static inline void rows_add_text(cx_buf *out, const char *text)
{
    if (text == NULL)
        cx_buf_add_z(out, "null");
    else
        cx_json_write_str(out, cx_str_z(text), CX_JSON_JCS);
}

/* One component with what is in `data` so far. */
static inline void rows_add_component(cx_buf *out, const char *type, const char *event,
                                      int64_t at_ns, const char *data)
{
    char time[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(at_ns, time);
    cx_buf_printf(out,
                  "%s{\"component_type\":\"%s\",\"event_type\":\"%s\",\"timestamp\":\"%s\","
                  "\"data\":{%s}}",
                  out->data[out->size - 1] == '[' ? "" : ",", type, event, time, data);
}

static inline void rows_add_components(cx_buf *out, const rows_spec *spec)
{
    cx_buf data;
    cx_buf_init(&data, cx_alloc_default());
    rows_add_component(out, "observation", "THOUGHT_START", spec->at_ns - 900000000,
                       "\"thought_type\":\"standard\",\"thought_depth\":1");
    rows_add_component(out, "context", "SNAPSHOT_AND_CONTEXT", spec->at_ns - 800000000,
                       "\"cognitive_state\":\"WORK\",\"system_snapshot\":{\"agent_identity\":"
                       "{\"agent_id\":\"Datum\"}}");
    cx_buf_add_z(&data, "\"csdma\":{\"plausibility_score\":");
    rows_add_number(&data, spec->csdma);
    cx_buf_add_z(&data, "},\"dsdma\":{\"domain_alignment\":0.75,\"domain\":");
    rows_add_text(&data, spec->domain);
    cx_buf_add_z(&data, "},\"idma\":{\"correlation_risk\":0.25,\"phase\":\"ok\",\"k_eff\":");
    rows_add_number(&data, spec->k_eff);
    cx_buf_printf(&data, ",\"fragility_flag\":%s}", spec->k_eff < 2.0 ? "true" : "false");
    rows_add_component(out, "rationale", "DMA_RESULTS", spec->at_ns - 700000000, cx_buf_z(&data));
    cx_buf_clear(&data);
    cx_buf_printf(
        &data, "\"selected_action\":\"HandlerActionType.%s\",\"action_rationale\":", spec->action);
    rows_add_text(&data, spec->rationale);
    rows_add_component(out, "rationale", "ASPDMA_RESULT", spec->at_ns - 600000000, cx_buf_z(&data));
    cx_buf_clear(&data);
    cx_buf_printf(&data,
                  "\"conscience_passed\":%s,\"action_was_overridden\":%s,\"epistemic_data\":"
                  "{\"entropy_level\":0.125,\"coherence_level\":0}",
                  spec->overridden ? "false" : "true", spec->overridden ? "true" : "false");
    rows_add_component(out, "conscience", "CONSCIENCE_RESULT", spec->at_ns - 500000000,
                       cx_buf_z(&data));
    cx_buf_clear(&data);
    cx_buf_add_z(&data, "\"action_executed\":\"speak\",\"execution_success\":true,"
                        "\"tokens_total\":100,\"cost_cents\":0.5,\"models_used\":[\"m\\\"1\"]");
    if (spec->audit_seq >= 0)
        cx_buf_printf(&data,
                      ",\"audit_sequence_number\":%lld,\"audit_entry_hash\":"
                      "\"%064llx\"",
                      (long long)spec->audit_seq, (unsigned long long)spec->audit_seq);
    if (spec->action_extra != NULL)
        cx_buf_add_z(&data, spec->action_extra);
    rows_add_component(out, "action", "ACTION_RESULT", spec->at_ns - 400000000, cx_buf_z(&data));
    cx_buf_done(&data);
}

static inline cx_str rows_trace_text(const rows_spec *spec, cx_arena *arena)
{
    char time[CX_TRACE_TIME_SIZE];
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_trace_time_write(spec->at_ns, time);
    cx_buf_add_z(&text, "{\"trace_id\":");
    rows_add_text(&text, spec->trace_id);
    cx_buf_add_z(&text, ",\"task_id\":");
    rows_add_text(&text, spec->task_id);
    cx_buf_printf(&text, ",\"thought_id\":\"th-%s\"", spec->trace_id);
    if (spec->agent != NULL)
        cx_buf_printf(&text, ",\"agent_id_hash\":\"%s\"", spec->agent);
    cx_buf_printf(&text,
                  ",\"completed_at\":\"%s\",\"trace_level\":\"%s\",\"signature\":\"%086d\","
                  "\"signature_key_id\":\"key-1\",\"components\":[",
                  time, cx_trace_level_name(spec->level), 0);
    rows_add_components(&text, spec);
    cx_buf_add_z(&text, "]}");
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

static inline cx_trace_facts rows_facts(const rows_spec *spec)
{
    cx_trace_facts facts = {
        .level = spec->level,
        .received_ns = spec->at_ns + 1000000000,
        .consent_ns = CX_TIME_NONE,
        .verified = spec->verified,
        .reason = spec->verified ? CX_REASON_NONE : CX_REASON_KEY_UNKNOWN,
        .form = spec->verified ? CX_FORM_B : CX_FORM_NONE,
        .has_canonical = spec->verified,
        .actor = spec->agent != NULL ? cx_str_z(spec->agent) : CX_STR("key:key-1"),
        .seq = spec->seq,
        .key_id = CX_STR("key-1"),
    };
    memset(facts.canonical.bytes, 0xab, sizeof facts.canonical.bytes);
    memset(facts.content.bytes, 0xcd, sizeof facts.content.bytes);
    return facts;
}

/* False, with a failed check, when the trace cannot be read. */
static inline bool rows_make_text(cx_str text, const cx_trace_facts *facts, cx_arena *arena,
                                  cx_trace_row *out)
{
    cx_trace *trace = CX_ARENA_NEW(arena, cx_trace);
    cx_trace_problem problem;
    cx_err err = {0};
    CHECK_STATUS(cx_trace_read(cx_str_bytes(text), arena, trace, &problem, &err), &err);
    CHECK_STR(cx_str_z(cx_trace_reason_name(problem.reason)), "");
    cx_status status = cx_trace_row_make(trace, facts, arena, out, &err);
    CHECK_STATUS(status, &err);
    return !cx_failed(status);
}

static inline bool rows_make(const rows_spec *spec, cx_arena *arena, cx_trace_row *out)
{
    cx_trace_facts facts = rows_facts(spec);
    return rows_make_text(rows_trace_text(spec, arena), &facts, arena, out);
}

#endif
