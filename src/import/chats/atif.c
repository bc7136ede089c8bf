/*
 * atif.c - the Agent Trajectory Interchange Format of Harbor (§2.20): steps with their calls and
 * what came back.
 */
#include "import/turns.h"

typedef struct atif_state {
    cx_import_turns turns;
} atif_state;

static const cx_json *object_at(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

static void atif_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *calls = cx_import_array_at(raw, "tool_calls");
    const cx_json *seen = object_at(raw, "observation"), *metrics = object_at(raw, "metrics");
    const cx_json *results = seen == NULL ? NULL : cx_import_array_at(seen, "results");
    cx_str source = CX_JSON_GET_STR(raw, "source");
    cx_import_say_role(content, cx_str_is(source, "agent") ? CX_STR("assistant") : source);
    cx_import_say_blocks(content, CX_JSON_GET(raw, "message"));
    cx_import_say_thought(content, CX_JSON_GET_STR(raw, "reasoning_content"));
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++)
        cx_import_say_call(content, CX_JSON_GET_STR(&calls->items[i], "tool_call_id"),
                           CX_JSON_GET_STR(&calls->items[i], "function_name"),
                           CX_JSON_GET(&calls->items[i], "arguments"));
    for (uint32_t i = 0; results != NULL && i < results->count; i++)
        cx_import_say_result(content, CX_JSON_GET_STR(&results->items[i], "source_call_id"),
                             (cx_str){NULL, 0}, false, CX_JSON_GET(&results->items[i], "content"));
    if (metrics != NULL)
        cx_import_say_cost(content, CX_JSON_GET(metrics, "cost_usd"));
}

static cx_status import_step(cx_import_sink *sink, const cx_json *step, const cx_json *agent,
                             cx_err *err)
{
    atif_state *state = sink->state;
    cx_str source = CX_JSON_GET_STR(step, "source");
    cx_str name = agent == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(agent, "name");
    if (step->type != CX_JSON_OBJECT || source.size == 0)
        return cx_import_bad(sink, step, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, step);
    r->src_id = cx_import_scalar(CX_JSON_GET(step, "step_id"));
    r->content = cx_import_not_null(CX_JSON_GET(step, "message"));
    cx_import_set_iso(r, CX_JSON_GET(step, "timestamp"));
    r->usage = object_at(step, "metrics");
    r->model = CX_JSON_GET_STR(step, "model_name");
    if (r->model.size == 0 && agent != NULL && cx_str_is(source, "agent"))
        r->model = CX_JSON_GET_STR(agent, "model_name");
    cx_import_turn_follow(r, &state->turns);
    return cx_import_turn_end(sink, &state->turns, atif_content, step, source,
                              name.size != 0 ? name : CX_STR("agent"), err);
}

static cx_status atif_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"steps", NULL};
    const cx_json *steps = cx_import_array_at(document, "steps");
    cx_json top;
    if (steps == NULL)
        return cx_import_shape(err, "an object with an array steps");
    CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
    CX_TRY(cx_import_top(sink, &top, err));
    for (uint32_t i = 0; i < steps->count; i++)
        CX_TRY(import_step(sink, &steps->items[i], object_at(document, "agent"), err));
    return CX_SUCCESS;
}

static void atif_done(cx_import_sink *sink)
{
    atif_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int atif_detect(cx_bytes head, const cx_json *record)
{
    (void)head;
    if (record == NULL || record->type != CX_JSON_OBJECT ||
        cx_import_array_at(record, "steps") == NULL)
        return 0;
    if (cx_str_starts(CX_JSON_GET_STR(record, "schema_version"), CX_STR("ATIF")))
        return 95;
    const cx_json *first = cx_import_first_object(cx_import_array_at(record, "steps"));
    return first != NULL && cx_import_has(first, "step_id") && cx_import_has(first, "source") ? 75
                                                                                              : 0;
}

const cx_import_format cx_import_atif = {
    .info = {"atif", "Agent Trajectory Interchange Format (Harbor)",
             "{\"schema_version\":\"ATIF-v1.x\",\"agent\":{...},\"steps\":[...]}", false},
    .state_size = sizeof(atif_state),
    .document = atif_document,
    .content = atif_content,
    .done = atif_done,
    .detect = atif_detect,
};
