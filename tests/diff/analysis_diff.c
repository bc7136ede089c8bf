/*
 * analysis_diff.c - the half of the differential test that is ours: one JSON document a line in,
 * one line out.  `op` says what is asked: detect, capacity, n_eff, chain or idma; rows have the
 * names of cx_score_row's members.  analysis_diff.py is the other half.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "json/json.h"
#include "analysis/detect.h"
#include "analysis/idma.h"

typedef struct asked {
    const cx_json *question;
    cx_arena *arena;
    cx_err err;
} asked;

/* --- reading --------------------------------------------------------------------------------- */

typedef struct field {
    const char *name;
    size_t offset;
} field;
#define FIELD(member)                             \
    {                                             \
        (#member), offsetof(cx_score_row, member) \
    }

static const field texts[] = {FIELD(trace_id),   FIELD(agent),  FIELD(agent_name),
                              FIELD(trace_type), FIELD(domain), FIELD(selected_action)};
static const field numbers[] = {FIELD(csdma),           FIELD(dsdma),
                                FIELD(coherence),       FIELD(entropy),
                                FIELD(k_eff),           FIELD(rho),
                                FIELD(entropy_score),   FIELD(veto_ratio),
                                FIELD(coherence_score), FIELD(humility_certainty)};
static const field flags[] = {
    FIELD(fragility_flag), FIELD(entropy_passed),  FIELD(coherence_passed),
    FIELD(veto_passed),    FIELD(humility_passed), FIELD(conscience_passed),
    FIELD(overridden),     FIELD(action_success),  FIELD(has_positive_moment)};

static double number_of(const cx_json *object, const char *name)
{
    double value;
    return cx_json_double(cx_json_get(object, cx_str_z(name)), &value) ? value : (double)NAN;
}

static int8_t flag_of(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    if (value == NULL || (value->type != CX_JSON_TRUE && value->type != CX_JSON_FALSE))
        return CX_NULL;
    return value->type == CX_JSON_TRUE ? CX_TRUE : CX_FALSE;
}

static int64_t int_of(const cx_json *object, const char *name)
{
    int64_t value = 0;
    return cx_json_int64(cx_json_get(object, cx_str_z(name)), &value) ? value : 0;
}

static void read_row(const cx_json *item, cx_score_row *row)
{
    char *at = (char *)row;
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        *(cx_str *)(at + texts[i].offset) = cx_json_get_str(item, cx_str_z(texts[i].name));
    for (size_t i = 0; i < CX_COUNT_OF(numbers); i++)
        *(double *)(at + numbers[i].offset) = number_of(item, numbers[i].name);
    for (size_t i = 0; i < CX_COUNT_OF(flags); i++)
        *(int8_t *)(at + flags[i].offset) = flag_of(item, flags[i].name);
    row->timestamp_ns = int_of(item, "timestamp_ns");
    row->has_audit_seq = flag_of(item, "has_audit_seq") == CX_TRUE;
}

static const cx_score_row *rows_of(asked *a, const char *name, size_t *out_count)
{
    const cx_json *list = cx_json_get_typed(a->question, cx_str_z(name), CX_JSON_ARRAY);
    uint32_t count = list == NULL ? 0 : list->count;
    cx_score_row *rows = CX_ARENA_ARRAY(a->arena, cx_score_row, (size_t)count + 1);
    if (rows == NULL)
        exit(3);
    memset(rows, 0, (count + 1) * sizeof *rows);
    for (uint32_t i = 0; i < count; i++)
        read_row(&list->items[i], &rows[i]);
    *out_count = count;
    return rows;
}

/* --- answers --------------------------------------------------------------------------------- */

static cx_status add_alerts(asked *a, const cx_alerts *alerts, cx_json_list *list)
{
    for (size_t i = 0; i < alerts->count; i++) {
        cx_json value;
        CX_TRY(cx_alert_json(&alerts->items[i], a->arena, &value, &a->err));
        cx_json_list_add(list, value);
    }
    return CX_SUCCESS;
}

static cx_status write_alerts(asked *a, cx_json_list *list, cx_buf *out)
{
    cx_json value;
    CX_TRY(cx_json_list_end_array(list, &value, &a->err));
    return cx_json_write(out, &value, CX_JSON_PY_COMPACT, &a->err);
}

static cx_status answer_detect(asked *a, cx_buf *out)
{
    size_t count;
    const cx_score_row *rows = rows_of(a, "rows", &count);
    int64_t now = int_of(a->question, "now_ns");
    cx_json_list list = cx_json_list_begin(a->arena);
    cx_alerts alerts;
    CX_TRY(cx_detect_cross_agent(rows, count, now, a->arena, &alerts, &a->err));
    CX_TRY(add_alerts(a, &alerts, &list));
    CX_TRY(cx_detect_intra_agent(rows, count, now, a->arena, &alerts, &a->err));
    CX_TRY(add_alerts(a, &alerts, &list));
    CX_TRY(cx_detect_drift(rows, count, now, a->arena, &alerts, &a->err));
    CX_TRY(add_alerts(a, &alerts, &list));
    CX_TRY(cx_detect_override(rows, count, now, a->arena, &alerts, &a->err));
    CX_TRY(add_alerts(a, &alerts, &list));
    return write_alerts(a, &list, out);
}

static cx_verdict verdict_of(cx_str name)
{
    cx_verdict all[] = {CX_HOLDS, CX_BROKEN, CX_INDETERMINATE};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++)
        if (cx_str_is(name, cx_verdict_name(all[i])))
            return all[i];
    exit(3);
}

static cx_status answer_capacity(asked *a, cx_buf *out)
{
    cx_capacity capacity;
    cx_capacity_input input = {.received_count = (uint64_t)int_of(a->question, "received"),
                               .chain = verdict_of(CX_JSON_GET_STR(a->question, "chain")),
                               .now_ns = int_of(a->question, "now_ns")};
    input.rows = rows_of(a, "rows", &input.count);
    input.baseline = rows_of(a, "baseline", &input.baseline_count);
    CX_TRY(cx_capacity_compute(&input, a->arena, &capacity, &a->err));
    return cx_capacity_json(out, CX_STR("a"), &capacity, &a->err);
}

static cx_status answer_n_eff(asked *a, cx_buf *out)
{
    size_t count;
    cx_n_eff n;
    const cx_score_row *rows = rows_of(a, "rows", &count);
    CX_TRY(cx_n_eff_compute(rows, count, a->arena, &n, &a->err));
    cx_buf_printf(out, "{\"enough\":%s,\"rows\":%llu", n.enough ? "true" : "false",
                  (unsigned long long)n.rows_used);
    if (n.enough) {
        cx_buf_printf(out, ",\"participation\":%.17g,\"entropy\":%.17g", n.participation,
                      n.entropy);
        for (unsigned i = 0; i < n.columns_used; i++)
            cx_buf_printf(out, "%s%.17g", i == 0 ? ",\"eigenvalues\":[" : ",", n.eigenvalues[i]);
        for (unsigned i = 0; i < n.columns_used; i++)
            cx_buf_printf(out, "%s\"%s\"", i == 0 ? "],\"columns\":[" : ",", n.columns[i]);
        cx_buf_add_byte(out, ']');
    }
    cx_buf_add_byte(out, '}');
    return cx_buf_check(out, &a->err);
}

static void read_entry(const cx_json *item, cx_chain_entry *out)
{
    int8_t success = flag_of(item, "success");
    *out = (cx_chain_entry){.seq = int_of(item, "seq"),
                            .action = CX_JSON_GET_STR(item, "action"),
                            .has_success = success != CX_NULL,
                            .success = success == CX_TRUE,
                            .timestamp = CX_JSON_GET_STR(item, "timestamp"),
                            .timestamp_ns = int_of(item, "timestamp_ns"),
                            .trace_id = CX_JSON_GET_STR(item, "trace_id"),
                            .arrival = (uint64_t)int_of(item, "arrival")};
    out->has_hash = cx_digest_parse(CX_JSON_GET_STR(item, "hash"), &out->hash);
}

static cx_status answer_chain(asked *a, cx_buf *out)
{
    const cx_json *list = cx_json_get_typed(a->question, CX_STR("entries"), CX_JSON_ARRAY);
    cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    cx_digest genesis;
    cx_chain_report report;
    cx_alerts alerts;
    if (list == NULL ||
        !cx_chain_profile_parse(CX_JSON_GET_STR(a->question, "profile"), &options.profile))
        exit(3);
    if (cx_digest_parse(CX_JSON_GET_STR(a->question, "genesis"), &genesis))
        options.genesis = &genesis;
    cx_chain_entry *entries = CX_ARENA_ARRAY(a->arena, cx_chain_entry, (size_t)list->count + 1);
    if (entries == NULL)
        exit(3);
    for (uint32_t i = 0; i < list->count; i++)
        read_entry(&list->items[i], &entries[i]);
    CX_TRY(cx_chain_check(entries, list->count, &options, a->arena, &report, &a->err));
    CX_TRY(cx_detect_chain(CX_STR("a"), &report, int_of(a->question, "now_ns"), a->arena, &alerts,
                           &a->err));
    cx_json_list alert_list = cx_json_list_begin(a->arena);
    CX_TRY(add_alerts(a, &alerts, &alert_list));
    cx_buf_add_z(out, "{\"alerts\":");
    CX_TRY(write_alerts(a, &alert_list, out));
    cx_buf_add_z(out, ",\"report\":");
    CX_TRY(cx_chain_json(out, CX_STR("a"), &report, &a->err));
    out->size--; /* its line end */
    cx_buf_add_byte(out, '}');
    return cx_buf_check(out, &a->err);
}

static cx_status answer_idma(asked *a, cx_buf *out)
{
    int8_t flag = flag_of(a->question, "fragility_flag");
    cx_idma_input input = {.k_eff = number_of(a->question, "k_eff"),
                           .rho = number_of(a->question, "correlation_risk"),
                           .source_count = (uint64_t)int_of(a->question, "sources"),
                           .has_sources = CX_JSON_GET(a->question, "sources")->type == CX_JSON_INT,
                           .has_flag = flag != CX_NULL,
                           .fragility_flag = flag == CX_TRUE,
                           .established = flag_of(a->question, "established") == CX_TRUE};
    cx_idma_result result;
    input.has_k_eff = isfinite(input.k_eff);
    input.has_rho = isfinite(input.rho);
    cx_idma_judge(&input, &result);
    if (result.has_computed)
        cx_buf_printf(out, "{\"computed\":%.17g", result.computed);
    else
        cx_buf_add_z(out, "{\"computed\":null");
    cx_buf_printf(out, ",\"check\":\"%s\",\"phase\":\"%s\",\"flag\":\"%s\"}",
                  cx_idma_check_name(result.check), cx_idma_phase_name(result.phase),
                  cx_idma_flag_name(result.flag));
    return cx_buf_check(out, &a->err);
}

/* --- all of it ------------------------------------------------------------------------------- */

static cx_status answer(asked *a, cx_buf *out)
{
    static const struct {
        const char *op;
        cx_status (*run)(asked *a, cx_buf *out);
    } ops[] = {{"detect", answer_detect},
               {"capacity", answer_capacity},
               {"n_eff", answer_n_eff},
               {"chain", answer_chain},
               {"idma", answer_idma}};
    cx_str op = CX_JSON_GET_STR(a->question, "op");
    for (size_t i = 0; i < CX_COUNT_OF(ops); i++)
        if (cx_str_is(op, ops[i].op))
            return ops[i].run(a, out);
    return cx_fail(&a->err, CX_E_FORMAT, "unknown op");
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_arena_mark empty = cx_arena_mark_now(&arena);
    while ((size = getline(&line, &capacity, stdin)) > 0) {
        cx_json question;
        asked a = {.question = &question, .arena = &arena};
        cx_buf_clear(&out);
        cx_status status =
            cx_json_parse_text(cx_str_from(line, (size_t)size), &arena, &question, &a.err);
        if (!cx_failed(status))
            status = answer(&a, &out);
        if (cx_failed(status)) {
            (void)fprintf(stderr, "%s\n", a.err.message);
            return 3;
        }
        if (out.data[out.size - 1] != '\n')
            cx_buf_add_byte(&out, '\n');
        if (fwrite(out.data, 1, out.size, stdout) != out.size)
            return 3;
        cx_arena_reset(&arena, empty);
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
    free(line);
    return fflush(stdout) == 0 ? 0 : 3;
}
