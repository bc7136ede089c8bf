/*
 * row.c - a trace as a row of the index (trace.md §6, §8, §10).
 *
 * A value that does not fit its column is NULL there; the JSON columns still have it.  Nothing that
 * a sender writes may make an insert fail later (I4), so values that PostgreSQL cannot store are
 * replaced here, for both databases alike:
 *
 *   - U+0000 and lone surrogates become U+FFFD in text and JSON;
 *   - a text longer than an index entry allows is NULL in an indexed column;
 *   - a number in JSON whose exponent leaves the range of `numeric` is spelled as the binary64
 *     nearest to it.
 */
#include <math.h>

#include "base/api.h"
#include "analysis/api.h"
#include "index/index_internal.h"

/* Well under the 2,704 bytes of a B-tree entry of PostgreSQL, two of which may be in one key. */
#define INDEXED_TEXT_BYTES_MAX 1024
/* `numeric` stores 16,383 digits after the point; a number literal has up to 4,096 digits. */
#define NUMBER_EXPONENT_MAX 12000
#define NUMBER_LITERAL_BYTES_MAX 4300
#define JSON_DEPTH_MAX (CX_TRACE_DEPTH_MAX + 1)

typedef struct maker {
    const cx_trace *trace;
    const cx_trace_facts *facts;
    cx_arena *arena;
    cx_cell *cells;
    cx_buf buf; /* the JSON being written */
    bool failed;
} maker;

/* --- text and JSON ---------------------------------------------------------------------------- */

bool cx_index_is_clean(cx_str text)
{
    return text.size == 0 || (memchr(text.data, 0, text.size) == NULL && cx_utf8_valid(text));
}

/* Invalid UTF-8 becomes one U+FFFD: for a byte, or for the three bytes of a lone surrogate. */
cx_str cx_index_clean(cx_str text, cx_arena *arena)
{
    if (cx_index_is_clean(text))
        return text;
    char *copy = CX_ARENA_ARRAY(arena, char, text.size * 3);
    if (copy == NULL)
        return (cx_str){NULL, 0};
    size_t size = 0;
    for (size_t at = 0; at < text.size;) {
        const uint8_t *bytes = (const uint8_t *)text.data + at;
        size_t left = text.size - at, length = cx_utf8_sequence(bytes, left);
        if (length != 0 && *bytes != 0) {
            memcpy(copy + size, bytes, length);
            size += length;
            at += length;
            continue;
        }
        bool surrogate = left >= 3 && bytes[0] == 0xed && bytes[1] >= 0xa0 && bytes[1] <= 0xbf &&
                         bytes[2] >= 0x80 && bytes[2] <= 0xbf;
        memcpy(copy + size, "\xef\xbf\xbd", 3);
        size += 3;
        at += surrogate ? 3 : 1;
    }
    return (cx_str){copy, size};
}

static cx_str clean_text(maker *m, cx_str text)
{
    cx_str cleaned = cx_index_clean(text, m->arena);
    if (cleaned.data == NULL && text.data != NULL)
        m->failed = true;
    return cleaned;
}

/* Whether the exponent of a number literal, if any, is within the range of `numeric`. */
static bool exponent_fits(cx_str literal)
{
    int64_t exponent = 0;
    size_t i = 0;
    while (i < literal.size && literal.data[i] != 'e' && literal.data[i] != 'E')
        i++;
    for (; i < literal.size && exponent <= NUMBER_EXPONENT_MAX; i++)
        if (literal.data[i] >= '0' && literal.data[i] <= '9')
            exponent = exponent * 10 + (literal.data[i] - '0');
    return exponent <= NUMBER_EXPONENT_MAX;
}

static void write_number(maker *m, const cx_json *value)
{
    cx_str literal = cx_json_text(value);
    double number;
    if ((value->flags & CX_JSON_NONFINITE) != 0) {
        cx_buf_add_z(&m->buf, "null");
    } else if (literal.size <= NUMBER_LITERAL_BYTES_MAX && exponent_fits(literal)) {
        cx_buf_add_str(&m->buf, literal);
    } else if (cx_json_double(value, &number)) {
        cx_json spelled = cx_json_make_double(m->arena, number);
        if (spelled.text == NULL)
            m->failed = true;
        else
            cx_buf_add_str(&m->buf, cx_json_text(&spelled));
    } else {
        cx_buf_add_z(&m->buf, "null");
    }
}

static void write_scalar(maker *m, const cx_json *value)
{
    switch (value->type) {
    case CX_JSON_NULL: cx_buf_add_z(&m->buf, "null"); break;
    case CX_JSON_FALSE: cx_buf_add_z(&m->buf, "false"); break;
    case CX_JSON_TRUE: cx_buf_add_z(&m->buf, "true"); break;
    case CX_JSON_STRING:
        cx_json_write_str(&m->buf, clean_text(m, cx_json_text(value)), CX_JSON_JCS);
        break;
    default: write_number(m, value); break;
    }
}

typedef struct json_frame {
    const cx_json *value;
    uint32_t next;
} json_frame;

/* The next value of an open array or object; writes its name. */
static const cx_json *next_inside(maker *m, json_frame *frame)
{
    if (frame->next != 0)
        cx_buf_add_byte(&m->buf, ',');
    if (frame->value->type == CX_JSON_ARRAY)
        return &frame->value->items[frame->next++];
    const cx_json_member *member = &frame->value->members[frame->next++];
    write_scalar(m, &member->name);
    cx_buf_add_byte(&m->buf, ':');
    return &member->value;
}

/* Compact, text readable, numbers as received.  Never recurses. */
static cx_status write_json(maker *m, const cx_json *value, cx_err *err)
{
    json_frame frames[JSON_DEPTH_MAX];
    size_t depth = 0;
    for (;;) {
        if (value->type == CX_JSON_ARRAY || value->type == CX_JSON_OBJECT) {
            if (depth == JSON_DEPTH_MAX)
                return cx_fail(err, CX_E_LIMIT, "a trace nests deeper than %d", JSON_DEPTH_MAX);
            cx_buf_add_byte(&m->buf, value->type == CX_JSON_ARRAY ? '[' : '{');
            frames[depth++] = (json_frame){value, 0};
        } else {
            write_scalar(m, value);
        }
        while (depth > 0 && frames[depth - 1].next == frames[depth - 1].value->count) {
            depth--;
            cx_buf_add_byte(&m->buf, frames[depth].value->type == CX_JSON_ARRAY ? ']' : '}');
        }
        if (depth == 0)
            return CX_SUCCESS;
        value = next_inside(m, &frames[depth - 1]);
    }
}

cx_status cx_index_clean_json(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err)
{
    maker m = {.arena = arena};
    cx_buf_init(&m.buf, cx_alloc_default());
    cx_status status = write_json(&m, value, err);
    if (!cx_failed(status))
        status = m.failed ? cx_fail_nomem(err) : cx_buf_check(&m.buf, err);
    cx_str text = {NULL, 0};
    if (!cx_failed(status)) {
        text = cx_arena_copy_str(arena, cx_buf_str(&m.buf));
        if (text.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&m.buf);
    if (!cx_failed(status))
        *out = text;
    return status;
}

/* --- cells ------------------------------------------------------------------------------------ */

static void set_text(maker *m, unsigned column, cx_str text)
{
    if (text.data != NULL)
        m->cells[column] = (cx_cell){.text = clean_text(m, text)};
}

static void set_indexed_text(maker *m, unsigned column, cx_str text)
{
    if (text.size <= INDEXED_TEXT_BYTES_MAX)
        set_text(m, column, text);
}

static void set_name(maker *m, unsigned column, const char *name)
{
    if (name != NULL && name[0] != 0)
        m->cells[column] = (cx_cell){.text = cx_str_z(name)};
}

static void set_time(maker *m, unsigned column, int64_t ns)
{
    if (ns != CX_TIME_NONE)
        m->cells[column] = (cx_cell){.i = ns};
}

static void set_bool(maker *m, unsigned column, bool value)
{
    m->cells[column] = (cx_cell){.b = value};
}

static void set_double(maker *m, unsigned column, double value)
{
    if (isfinite(value))
        m->cells[column] = (cx_cell){.f = value};
}

static void set_digest(maker *m, unsigned column, const cx_digest *digest)
{
    static const char digits[] = "0123456789abcdef";
    char *hex = CX_ARENA_ARRAY(m->arena, char, 64);
    if (hex == NULL) {
        m->failed = true;
        return;
    }
    for (size_t i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest->bytes[i] >> 4];
        hex[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    m->cells[column] = (cx_cell){.text = {hex, 64}};
}

/* A JSON value into a cell of its column's type; a value of another type leaves it NULL. */
static void set_value(maker *m, unsigned column, const cx_json *value)
{
    int64_t number;
    double real;
    if (value == NULL)
        return;
    switch (cx_trace_columns[column].type) {
    case CX_CELL_INT:
        if (cx_json_int64(value, &number))
            m->cells[column] = (cx_cell){.i = number};
        break;
    case CX_CELL_FLOAT:
        if (cx_json_is_number(value) && (value->flags & CX_JSON_NONFINITE) == 0 &&
            cx_json_double(value, &real))
            set_double(m, column, real);
        break;
    case CX_CELL_BOOL:
        if (value->type == CX_JSON_TRUE || value->type == CX_JSON_FALSE)
            set_bool(m, column, value->type == CX_JSON_TRUE);
        break;
    default:
        if (value->type == CX_JSON_STRING)
            set_text(m, column, cx_json_text(value));
        break;
    }
}

static cx_status set_json(maker *m, unsigned column, const cx_json *value, cx_err *err)
{
    if (value == NULL)
        return CX_SUCCESS;
    cx_buf_clear(&m->buf);
    CX_TRY(write_json(m, value, err));
    CX_TRY(cx_buf_check(&m->buf, err));
    cx_str text = cx_arena_copy_str(m->arena, cx_buf_str(&m->buf));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    m->cells[column] = (cx_cell){.text = text};
    return CX_SUCCESS;
}

/* A text as it is, a list as JSON (§10, "lists joined as JSON"). */
static cx_status set_text_or_list(maker *m, unsigned column, const cx_json *value, cx_err *err)
{
    if (value != NULL && value->type == CX_JSON_ARRAY)
        return set_json(m, column, value, err);
    set_value(m, column, value);
    return CX_SUCCESS;
}

/* An array of texts only: anything else is NULL. */
static cx_status set_texts(maker *m, unsigned column, const cx_json *value, cx_err *err)
{
    if (value == NULL || value->type != CX_JSON_ARRAY)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < value->count; i++)
        if (value->items[i].type != CX_JSON_STRING)
            return CX_SUCCESS;
    return set_json(m, column, value, err);
}

/* 8-4-4-4-12 hexadecimal digits, in lower case. */
static void set_uuid(maker *m, unsigned column, const cx_json *value)
{
    if (value == NULL || value->type != CX_JSON_STRING || value->count != 36)
        return;
    char *text = CX_ARENA_ARRAY(m->arena, char, 36);
    if (text == NULL) {
        m->failed = true;
        return;
    }
    for (unsigned i = 0; i < 36; i++) {
        char c = value->text[i];
        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? c != '-' : !hex)
            return;
        text[i] = c;
    }
    m->cells[column] = (cx_cell){.text = {text, 36}};
}

/* --- the components --------------------------------------------------------------------------- */

/* The component's `data`; NULL when there is no such component. */
static const cx_json *data_of(const maker *m, cx_event_type event)
{
    const cx_trace_component *component = m->trace->last[event];
    return component == NULL ? NULL : component->data;
}

/* A member that exists and is not null. */
static const cx_json *get(const cx_json *object, const char *name)
{
    const cx_json *value = object == NULL ? NULL : cx_json_get(object, cx_str_z(name));
    return value == NULL || value->type == CX_JSON_NULL ? NULL : value;
}

static const cx_json *get_either(const cx_json *object, const char *name, const char *other)
{
    const cx_json *value = get(object, name);
    return value != NULL ? value : get(object, other);
}

/* `group.name`, else the flat spelling of stamped traces. */
static const cx_json *get_nested(const cx_json *object, const char *group, const char *name,
                                 const char *flat)
{
    const cx_json *value = get(get(object, group), name);
    return value != NULL ? value : get(object, flat);
}

static void add_thought(maker *m)
{
    const cx_json *start = data_of(m, CX_EVENT_THOUGHT_START);
    set_value(m, CX_COL_thought_type, get(start, "thought_type"));
    set_value(m, CX_COL_thought_depth, get(start, "thought_depth"));
    const cx_json *context = data_of(m, CX_EVENT_SNAPSHOT_AND_CONTEXT);
    const cx_json *identity = get(get(context, "system_snapshot"), "agent_identity");
    if (identity == NULL)
        identity = get(context, "agent_identity");
    const cx_json *name = get_either(identity, "agent_id", "agent_name");
    set_value(m, CX_COL_agent_name, name != NULL ? name : get(context, "agent_name"));
    set_value(m, CX_COL_cognitive_state, get(context, "cognitive_state"));
}

static cx_status add_judgements(maker *m, cx_err *err)
{
    const cx_json *dma = data_of(m, CX_EVENT_DMA_RESULTS);
    set_value(m, CX_COL_csdma_plausibility_score,
              get_nested(dma, "csdma", "plausibility_score", "csdma_plausibility_score"));
    set_value(m, CX_COL_dsdma_domain_alignment,
              get_nested(dma, "dsdma", "domain_alignment", "dsdma_domain_alignment"));
    const cx_json *domain = get_nested(dma, "dsdma", "domain", "dsdma_domain");
    if (domain != NULL && domain->count <= INDEXED_TEXT_BYTES_MAX)
        set_value(m, CX_COL_dsdma_domain, domain);
    const cx_json *pdma = get(dma, "pdma");
    CX_TRY(set_text_or_list(m, CX_COL_pdma_stakeholders, get(pdma, "stakeholders"), err));
    return set_text_or_list(m, CX_COL_pdma_conflicts, get(pdma, "conflicts"), err);
}

/* IDMA_RESULT wins over DMA_RESULTS.idma (§6); its members may carry the prefix `idma_`, and newer
 * agents have other names for the same values (§1.2). */
typedef struct idma_fields {
    const cx_json *k_eff, *rho, *flag, *phase, *sources;
} idma_fields;

static const cx_json *get_idma(const cx_json *idma, const char *name, const char *prefixed,
                               const char *newer, const char *newer_prefixed)
{
    const cx_json *value = get_either(idma, name, prefixed);
    return value != NULL ? value : get_either(idma, newer, newer_prefixed);
}

static idma_fields find_idma(const maker *m)
{
    const cx_json *idma = data_of(m, CX_EVENT_IDMA_RESULT);
    if (idma == NULL)
        idma = get(data_of(m, CX_EVENT_DMA_RESULTS), "idma");
    return (idma_fields){
        .k_eff = get_idma(idma, "k_eff", "idma_k_eff", "effective_source_count",
                          "idma_effective_source_count"),
        .rho = get_idma(idma, "correlation_risk", "idma_correlation_risk", "source_overlap",
                        "idma_source_overlap"),
        .flag = get_idma(idma, "fragility_flag", "idma_fragility_flag", "reasoning_is_fragile",
                         "idma_reasoning_is_fragile"),
        .phase = get_idma(idma, "phase", "idma_phase", "reasoning_state", "idma_reasoning_state"),
        .sources = get_either(idma, "sources_identified", "source_ids"),
    };
}

static void add_idma(maker *m)
{
    idma_fields fields = find_idma(m);
    set_value(m, CX_COL_idma_k_eff, fields.k_eff);
    set_value(m, CX_COL_idma_correlation_risk, fields.rho);
    set_value(m, CX_COL_idma_fragility_flag, fields.flag);
    set_value(m, CX_COL_idma_phase, fields.phase);
    const cx_cell *k_eff = &m->cells[CX_COL_idma_k_eff];
    const cx_cell *rho = &m->cells[CX_COL_idma_correlation_risk];
    const cx_cell *flag = &m->cells[CX_COL_idma_fragility_flag];
    bool listed = fields.sources != NULL && fields.sources->type == CX_JSON_ARRAY;
    cx_idma_input input = {
        .has_k_eff = !k_eff->null,
        .k_eff = k_eff->null ? 0 : k_eff->f,
        .has_rho = !rho->null,
        .rho = rho->null ? 0 : rho->f,
        .has_sources = listed,
        .source_count = listed ? fields.sources->count : 0,
        .has_flag = !flag->null,
        .fragility_flag = !flag->null && flag->b,
        .established = m->facts->established,
    };
    cx_idma_result result;
    cx_idma_judge(&input, &result);
    if (result.has_computed)
        set_double(m, CX_COL_idma_k_eff_computed, result.computed);
    set_name(m, CX_COL_idma_phase_computed, cx_idma_phase_name(result.phase));
    set_name(m, CX_COL_idma_check, cx_idma_check_name(result.check));
}

static void add_conscience(maker *m)
{
    static const unsigned columns[] = {
        CX_COL_conscience_passed,
        CX_COL_action_was_overridden,
        CX_COL_updated_status_detected,
        CX_COL_thought_depth_triggered,
        CX_COL_entropy_passed,
        CX_COL_coherence_passed,
        CX_COL_optimization_veto_passed,
        CX_COL_epistemic_humility_passed,
        CX_COL_uncertainty_acknowledged,
        CX_COL_entropy_level,
        CX_COL_coherence_level,
        CX_COL_reasoning_transparency,
        CX_COL_entropy_score,
        CX_COL_coherence_score,
        CX_COL_optimization_veto_entropy_ratio,
        CX_COL_epistemic_humility_certainty,
    };
    const cx_json *data = data_of(m, CX_EVENT_CONSCIENCE_RESULT);
    const cx_json *epistemic = get(data, "epistemic_data");
    for (size_t i = 0; i < CX_COUNT_OF(columns); i++) {
        const char *name = cx_trace_columns[columns[i]].name;
        const cx_json *value = get(data, name);
        bool in_both = columns[i] >= CX_COL_uncertainty_acknowledged &&
                       columns[i] <= CX_COL_reasoning_transparency;
        set_value(m, columns[i], value == NULL && in_both ? get(epistemic, name) : value);
    }
}

/* The text after the last '.', upper-case: "HandlerActionType.SPEAK" and "speak" are SPEAK. */
static void set_action(maker *m, cx_str text)
{
    for (size_t i = text.size; i > 0; i--)
        if (text.data[i - 1] == '.') {
            text = (cx_str){text.data + i, text.size - i};
            break;
        }
    if (text.size > INDEXED_TEXT_BYTES_MAX)
        return;
    char *upper = CX_ARENA_ARRAY(m->arena, char, text.size + 1);
    if (upper == NULL) {
        m->failed = true;
        return;
    }
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    set_text(m, CX_COL_selected_action, (cx_str){upper, text.size});
}

static void add_selection(maker *m)
{
    const cx_json *selection = data_of(m, CX_EVENT_ASPDMA_RESULT);
    const cx_json *action = get(selection, "selected_action");
    if (action == NULL || action->type != CX_JSON_STRING)
        action = get(data_of(m, CX_EVENT_ACTION_RESULT), "action_executed");
    if (action != NULL && action->type == CX_JSON_STRING)
        set_action(m, cx_json_text(action));
    set_value(m, CX_COL_action_rationale, get(selection, "action_rationale"));
    set_value(m, CX_COL_selection_confidence, get(selection, "selection_confidence"));
    const cx_json *recursive = get(selection, "is_recursive");
    set_value(m, CX_COL_is_recursive,
              recursive != NULL ? recursive
                                : get(data_of(m, CX_EVENT_CONSCIENCE_RESULT), "is_recursive"));
}

/* A flag of newer agents; without it a present text means true; false is never implied. */
static void set_flag_or_text(maker *m, unsigned column, const cx_json *flag, const cx_json *text)
{
    set_value(m, column, flag);
    if (m->cells[column].null && text != NULL && text->type == CX_JSON_STRING && text->count > 0)
        set_bool(m, column, true);
}

static cx_status add_action(maker *m, cx_err *err)
{
    static const unsigned columns[] = {
        CX_COL_audit_sequence_number,
        CX_COL_audit_entry_hash,
        CX_COL_audit_signature,
        CX_COL_tokens_input,
        CX_COL_tokens_output,
        CX_COL_tokens_total,
        CX_COL_llm_calls,
        CX_COL_cost_cents,
        CX_COL_carbon_grams,
        CX_COL_energy_mwh,
        CX_COL_execution_time_ms,
    };
    const cx_json *data = data_of(m, CX_EVENT_ACTION_RESULT);
    for (size_t i = 0; i < CX_COUNT_OF(columns); i++)
        set_value(m, columns[i], get(data, cx_trace_columns[columns[i]].name));
    set_value(m, CX_COL_action_success, get_either(data, "execution_success", "success"));
    const cx_json *moment = get(data, "positive_moment");
    if (moment == NULL)
        moment = get(get(data, "action_parameters"), "positive_moment");
    set_flag_or_text(m, CX_COL_has_positive_moment, get(data, "has_positive_moment"), moment);
    set_flag_or_text(m, CX_COL_has_execution_error, get(data, "has_execution_error"),
                     get(data, "execution_error"));
    set_uuid(m, CX_COL_audit_entry_id, get(data, "audit_entry_id"));
    return set_texts(m, CX_COL_models_used, get(data, "models_used"), err);
}

static cx_status add_components(maker *m, cx_err *err)
{
    static const struct {
        unsigned column;
        cx_event_type event;
    } parts[] = {
        {CX_COL_thought_start, CX_EVENT_THOUGHT_START},
        {CX_COL_snapshot_and_context, CX_EVENT_SNAPSHOT_AND_CONTEXT},
        {CX_COL_dma_results, CX_EVENT_DMA_RESULTS},
        {CX_COL_aspdma_result, CX_EVENT_ASPDMA_RESULT},
        {CX_COL_conscience_result, CX_EVENT_CONSCIENCE_RESULT},
        {CX_COL_action_result, CX_EVENT_ACTION_RESULT},
        {CX_COL_idma_result, CX_EVENT_IDMA_RESULT},
    };
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++)
        CX_TRY(set_json(m, parts[i].column, data_of(m, parts[i].event), err));
    return CX_SUCCESS;
}

/* --- the envelope and what was found ---------------------------------------------------------- */

static void add_envelope(maker *m)
{
    const cx_trace *trace = m->trace;
    /* A redacted view has neither signature nor key id (§2). */
    cx_str key_id = m->facts->key_id.data != NULL ? m->facts->key_id : trace->key_id;
    set_text(m, CX_COL_trace_id, trace->trace_id);
    set_indexed_text(m, CX_COL_thought_id, trace->thought_id);
    set_indexed_text(m, CX_COL_task_id, trace->task_id);
    cx_str agent = cx_trace_agent(trace);
    if (agent.data == NULL)
        agent = cx_arena_printf(m->arena, "key:%.*s", (int)key_id.size, key_id.data);
    if (agent.data == NULL)
        m->failed = true;
    set_text(m, CX_COL_agent_id_hash, agent);
    set_text(m, CX_COL_trace_type, cx_trace_wakeup_type(trace->task_id));
    set_time(m, CX_COL_started_at, trace->has_started ? trace->started_ns : CX_TIME_NONE);
    set_time(m, CX_COL_completed_at, trace->has_completed ? trace->completed_ns : CX_TIME_NONE);
    set_time(m, CX_COL_timestamp, trace->has_completed ? trace->completed_ns : trace->signed_ns);
    if (trace->has_started && trace->has_completed)
        set_double(m, CX_COL_processing_ms,
                   (double)(trace->completed_ns - trace->started_ns) / 1e6);
    set_text(m, CX_COL_signature, trace->signature.data != NULL ? trace->signature : CX_STR(""));
    set_text(m, CX_COL_signer_key_id, key_id);
    set_text(m, CX_COL_schema_version, trace->schema_version);
}

static void add_facts(maker *m)
{
    const cx_trace_facts *facts = m->facts;
    cx_trace_form form = facts->verified ? facts->form : CX_FORM_NONE;
    set_name(m, CX_COL_trace_level, cx_trace_level_name(facts->level));
    set_time(m, CX_COL_received_at, facts->received_ns);
    set_time(m, CX_COL_consent_timestamp, facts->consent_ns);
    set_bool(m, CX_COL_signature_verified, facts->verified);
    if (!facts->verified)
        set_name(m, CX_COL_verification_error, cx_trace_reason_name(facts->reason));
    set_name(m, CX_COL_canonical_form, cx_trace_form_name(form));
    if (facts->has_canonical)
        set_digest(m, CX_COL_canonical_sha256, &facts->canonical);
    set_digest(m, CX_COL_content_sha256, &facts->content);
    set_bool(m, CX_COL_envelope_signed, cx_index_form_signs_envelope(form));
    set_bool(m, CX_COL_primary_row, false);
    set_text(m, CX_COL_ledger_actor, facts->actor);
    m->cells[CX_COL_ledger_seq] = (cx_cell){.i = (int64_t)facts->seq};
}

/* The audit chain hashes the received text: a text that had to be changed counts as absent, so that
 * the link is unchecked rather than wrongly broken. */
static void add_audit(const maker *m, cx_trace_row *out)
{
    const cx_trace_component *action = m->trace->last[CX_EVENT_ACTION_RESULT];
    if (action == NULL)
        return;
    cx_str executed = CX_JSON_GET_STR(action->data, "action_executed");
    if (cx_index_is_clean(executed))
        out->action_executed = executed;
    if (cx_index_is_clean(action->timestamp))
        out->action_timestamp = action->timestamp;
}

bool cx_index_form_signs_envelope(cx_trace_form form)
{
    return form == CX_FORM_A || form == CX_FORM_F || form == CX_FORM_G || form == CX_FORM_H;
}

static cx_status make_row(maker *m, cx_err *err)
{
    add_envelope(m);
    add_facts(m);
    add_thought(m);
    CX_TRY(add_judgements(m, err));
    add_idma(m);
    add_conscience(m);
    add_selection(m);
    CX_TRY(add_action(m, err));
    CX_TRY(add_components(m, err));
    if (m->failed)
        return cx_fail_nomem(err);
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        if (cx_trace_columns[i].required && m->cells[i].null)
            return cx_fail_at(err, CX_E_USAGE, "RowIncomplete", CX_NO_OFFSET,
                              "a trace without %s cannot be put into the index",
                              cx_trace_columns[i].name);
    return CX_SUCCESS;
}

cx_status cx_trace_row_make(const cx_trace *trace, const cx_trace_facts *facts, cx_arena *arena,
                            cx_trace_row *out, cx_err *err)
{
    cx_cell *cells = CX_ARENA_ARRAY(arena, cx_cell, CX_COL_COUNT);
    if (cells == NULL)
        return cx_fail_nomem(err);
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        cells[i] = CX_NULL_CELL;
    maker m = {.trace = trace, .facts = facts, .arena = arena, .cells = cells};
    cx_buf_init(&m.buf, cx_alloc_default());
    cx_status status = make_row(&m, err);
    cx_buf_done(&m.buf);
    if (cx_failed(status))
        return status;
    *out = (cx_trace_row){.cells = cells};
    add_audit(&m, out);
    return CX_SUCCESS;
}
