/*
 * name.c - names and codes of this module, in both directions, and names derived from a trace's
 * ids.
 */
#include "trace/internal.h"

static bool find_name(const char *const *names, size_t count, cx_str text, unsigned *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (cx_str_is(text, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* --- levels ----------------------------------------------------------------------------------- */

static const char *const level_names[] = {"generic", "detailed", "full_traces"};

const char *cx_trace_level_name(cx_trace_level level)
{
    return level < CX_LEVEL_ABSENT ? level_names[level] : "";
}

bool cx_trace_level_parse(cx_str text, cx_trace_level *out)
{
    unsigned found;
    if (!find_name(level_names, CX_COUNT_OF(level_names), text, &found))
        return false;
    *out = (cx_trace_level)found;
    return true;
}

cx_trace_level cx_trace_level_of(const cx_trace *trace, cx_trace_level event, cx_trace_level batch)
{
    if (trace->level != CX_LEVEL_ABSENT)
        return trace->level;
    if (event != CX_LEVEL_ABSENT)
        return event;
    return batch != CX_LEVEL_ABSENT ? batch : CX_LEVEL_GENERIC;
}

/* --- events ----------------------------------------------------------------------------------- */

static const struct {
    const char *event_type, *component_type;
} events[CX_EVENT_COUNT] = {
    [CX_EVENT_THOUGHT_START] = {"THOUGHT_START", "observation"},
    [CX_EVENT_SNAPSHOT_AND_CONTEXT] = {"SNAPSHOT_AND_CONTEXT", "context"},
    [CX_EVENT_DMA_RESULTS] = {"DMA_RESULTS", "rationale"},
    [CX_EVENT_ASPDMA_RESULT] = {"ASPDMA_RESULT", "rationale"},
    [CX_EVENT_CONSCIENCE_RESULT] = {"CONSCIENCE_RESULT", "conscience"},
    [CX_EVENT_ACTION_RESULT] = {"ACTION_RESULT", "action"},
    [CX_EVENT_IDMA_RESULT] = {"IDMA_RESULT", "rationale"},
    [CX_EVENT_TSASPDMA_RESULT] = {"TSASPDMA_RESULT", "rationale"},
    [CX_EVENT_LLM_CALL] = {"LLM_CALL", "llm_call"},
    [CX_EVENT_VERB_SECOND_PASS_RESULT] = {"VERB_SECOND_PASS_RESULT", "verb_second_pass"},
};

const char *cx_event_type_name(cx_event_type type)
{
    return type < CX_EVENT_COUNT ? events[type].event_type : "";
}

const char *cx_event_component_type(cx_event_type event)
{
    return event < CX_EVENT_COUNT ? events[event].component_type : "";
}

cx_event_type cx_event_type_parse(cx_str text)
{
    for (unsigned i = 0; i < CX_EVENT_COUNT; i++)
        if (cx_str_is(text, events[i].event_type))
            return (cx_event_type)i;
    return CX_EVENT_UNKNOWN;
}

/* --- forms ------------------------------------------------------------------------------------ */

static const char *const form_names[] = {"A", "B", "C", "D", "E", "F", "G", "H"};

const char *cx_trace_form_name(cx_trace_form form)
{
    return form < CX_FORM_NONE ? form_names[form] : "";
}

bool cx_trace_forms_parse(cx_str text, unsigned *out_bits)
{
    unsigned bits = 0;
    if (text.size % 2 == 0)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (i % 2 == 1 ? text.data[i] != ',' : text.data[i] < 'A' || text.data[i] > 'H')
            return false;
        if (i % 2 == 0)
            bits |= CX_FORM_BIT((unsigned)(text.data[i] - 'A'));
    }
    *out_bits = bits;
    return true;
}

const char *cx_trace_numbers_name(cx_trace_numbers numbers)
{
    static const char *const names[] = {"", "same", "lexeme", "python", "jcs"};
    return names[numbers];
}

const char *cx_trace_signed_name(cx_trace_signed what)
{
    static const char *const names[] = {"", "components", "components+level", "envelope"};
    return names[what];
}

/* --- reasons ---------------------------------------------------------------------------------- */

static const char *const reason_names[] = {
    [CX_REASON_NONE] = "",
    [CX_REASON_INVALID_UTF8] = "invalid_utf8",
    [CX_REASON_MALFORMED_JSON] = "malformed_json",
    [CX_REASON_DUPLICATE_KEY] = "duplicate_key",
    [CX_REASON_DEPTH_EXCEEDED] = "depth_exceeded",
    [CX_REASON_LIMIT_EXCEEDED] = "limit_exceeded",
    [CX_REASON_NUMBER_NOT_FINITE] = "number_not_finite",
    [CX_REASON_MISSING_FIELD] = "missing_field",
    [CX_REASON_FIELD_TYPE] = "field_type",
    [CX_REASON_LEVEL_UNKNOWN] = "level_unknown",
    [CX_REASON_COMPONENT_TYPE_MISMATCH] = "component_type_mismatch",
    [CX_REASON_TIMESTAMP_INVALID] = "timestamp_invalid",
    [CX_REASON_COMPONENTS_MISSING] = "components_missing",
    [CX_REASON_SIGNATURE_ENCODING] = "signature_encoding",
    [CX_REASON_SIGNATURE_LENGTH] = "signature_length",
    [CX_REASON_KEY_UNKNOWN] = "key_unknown",
    [CX_REASON_KEY_AGENT_MISMATCH] = "key_agent_mismatch",
    [CX_REASON_KEY_NOT_YET_VALID] = "key_not_yet_valid",
    [CX_REASON_KEY_EXPIRED] = "key_expired",
    [CX_REASON_KEY_REVOKED] = "key_revoked",
    [CX_REASON_SIGNATURE_INVALID] = "signature_invalid",
    [CX_REASON_LEVEL_VIOLATION] = "level_violation",
    [CX_REASON_SIGNATURE_REPLAYED] = "signature_replayed",
    [CX_REASON_TRACE_ID_CONFLICT] = "trace_id_conflict",
};

const char *cx_trace_reason_name(cx_trace_reason reason)
{
    return reason_names[reason];
}

bool cx_trace_reason_parse(cx_str text, cx_trace_reason *out)
{
    unsigned found;
    if (text.size == 0 || !find_name(reason_names, CX_COUNT_OF(reason_names), text, &found))
        return false;
    *out = (cx_trace_reason)found;
    return true;
}

/* --- what follows from ids -------------------------------------------------------------------- */

cx_str cx_trace_wakeup_type(cx_str task_id)
{
    static const char *const types[] = {"VERIFY_IDENTITY", "VALIDATE_INTEGRITY",
                                        "EVALUATE_RESILIENCE", "ACCEPT_INCOMPLETENESS",
                                        "EXPRESS_GRATITUDE"};
    for (size_t i = 0; i < CX_COUNT_OF(types); i++) {
        cx_str type = cx_str_z(types[i]);
        if (task_id.size > type.size && cx_str_starts(task_id, type) &&
            task_id.data[type.size] == '_')
            return type;
    }
    return (cx_str){NULL, 0};
}

cx_str cx_trace_agent(const cx_trace *trace)
{
    if (trace->agent_id_hash.data == NULL || cx_str_eq(trace->agent_id_hash, CX_STR("unknown")))
        return (cx_str){NULL, 0};
    return trace->agent_id_hash;
}

cx_str cx_trace_actor(const cx_trace *trace, cx_arena *arena)
{
    cx_str agent = cx_trace_agent(trace);
    if (agent.data != NULL)
        return cx_arena_copy_str(arena, agent);
    return cx_arena_printf(arena, "key:%.*s", (int)trace->key_id.size, trace->key_id.data);
}
