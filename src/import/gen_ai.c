/*
 * gen_ai.c - the GenAI conventions of OpenTelemetry, and any_agent's names for the same
 * (§2.1, 2.2).
 */
#include "import/gen_ai.h"

/* --- attributes ---------------------------------------------------------------------------- */

static bool is_decimal(cx_str text)
{
    size_t at = text.size != 0 && text.data[0] == '-';
    if (at == text.size || (text.data[at] == '0' && text.size > at + 1))
        return false;
    for (; at < text.size; at++) {
        if (text.data[at] < '0' || text.data[at] > '9')
            return false;
    }
    return true;
}

/* OTLP wraps a value in an object that names its type; 64-bit integers are decimal text. */
static cx_json unwrap(const cx_json *value)
{
    static const char *const types[] = {"stringValue", "boolValue",   "doubleValue",
                                        "arrayValue",  "kvlistValue", "bytesValue"};
    const cx_json *whole = CX_JSON_GET(value, "intValue");
    if (whole != NULL) {
        cx_json made = *whole;
        if (whole->type == CX_JSON_STRING && is_decimal(cx_json_text(whole))) {
            made.type = CX_JSON_INT;
            made.flags = 0; /* the spelling of minus zero is not canonical */
        }
        return made;
    }
    for (size_t i = 0; i < CX_COUNT_OF(types); i++) {
        const cx_json *inside = cx_json_get(value, cx_str_z(types[i]));
        if (inside != NULL)
            return *inside;
    }
    return *value;
}

bool cx_import_attribute(const cx_import_span *span, cx_str name, cx_json *out)
{
    const cx_json *list = span->attributes;
    if (list == NULL)
        return false;
    if (list->type == CX_JSON_OBJECT) {
        const cx_json *value = cx_json_get(list, name);
        if (value == NULL || value->type == CX_JSON_NULL)
            return false;
        *out = *value;
        return true;
    }
    for (uint32_t i = 0; list->type == CX_JSON_ARRAY && i < list->count; i++) {
        const cx_json *value = CX_JSON_GET(&list->items[i], "value");
        if (value == NULL || !cx_str_eq(CX_JSON_GET_STR(&list->items[i], "key"), name))
            continue;
        *out = unwrap(value);
        return out->type != CX_JSON_NULL;
    }
    return false;
}

cx_str cx_import_attribute_str(const cx_import_span *span, cx_str name)
{
    cx_json value;
    if (!cx_import_attribute(span, name, &value) || value.type != CX_JSON_STRING)
        return (cx_str){NULL, 0};
    return cx_json_text(&value);
}

const cx_json *cx_import_first_attribute(const cx_import_span *span, const char *const *names)
{
    for (; *names != NULL; names++) {
        cx_json value, *stored;
        if (!cx_import_attribute(span, cx_str_z(*names), &value))
            continue;
        stored = CX_ARENA_NEW(span->arena, cx_json);
        if (stored != NULL)
            *stored = value;
        return stored;
    }
    return NULL;
}

/* --- status -------------------------------------------------------------------------------- */

static bool ends_with_word(cx_str text, const char *word)
{
    size_t size = strlen(word);
    if (text.size < size)
        return false;
    for (size_t i = 0; i < size; i++) {
        if ((text.data[text.size - size + i] | 0x20) != word[i])
            return false;
    }
    return true;
}

cx_import_outcome cx_import_span_outcome(const cx_json *code)
{
    int64_t number;
    if (code == NULL)
        return CX_SPAN_UNSET;
    if (cx_json_int64(code, &number))
        return number == 2 ? CX_SPAN_ERROR : number == 1 ? CX_SPAN_OK : CX_SPAN_UNSET;
    if (code->type != CX_JSON_STRING)
        return CX_SPAN_UNSET;
    if (ends_with_word(cx_json_text(code), "error"))
        return CX_SPAN_ERROR;
    return ends_with_word(cx_json_text(code), "ok") ? CX_SPAN_OK : CX_SPAN_UNSET;
}

/* --- mapping ------------------------------------------------------------------------------- */

typedef struct named_kind {
    const char *name;
    cx_import_kind kind;
} named_kind;

static bool find_kind(cx_str name, const named_kind *kinds, size_t count, cx_import_kind *out)
{
    for (size_t i = 0; i < count; i++) {
        if (cx_str_is(name, kinds[i].name)) {
            *out = kinds[i].kind;
            return true;
        }
    }
    return false;
}

/* gen_ai.operation.name. */
static const named_kind operations[] = {
    {"chat", CX_KIND_REASON},
    {"generate_content", CX_KIND_REASON},
    {"text_completion", CX_KIND_REASON},
    {"call_llm", CX_KIND_REASON},
    {"execute_tool", CX_KIND_ACT},
    {"tool_call", CX_KIND_ACT},
    {"invoke_agent", CX_KIND_RUN},
    {"create_agent", CX_KIND_RUN},
    {"invoke_workflow", CX_KIND_RUN},
    {"embeddings", CX_KIND_OBSERVE},
    {"retrieval", CX_KIND_OBSERVE},
};

/* openinference.span.kind; traceloop.span.kind says the same in lower case. */
static const named_kind span_kinds[] = {
    {"LLM", CX_KIND_REASON},       {"TOOL", CX_KIND_ACT},          {"AGENT", CX_KIND_RUN},
    {"CHAIN", CX_KIND_RUN},        {"RETRIEVER", CX_KIND_OBSERVE}, {"EMBEDDING", CX_KIND_OBSERVE},
    {"RERANKER", CX_KIND_OBSERVE}, {"GUARDRAIL", CX_KIND_OBSERVE}, {"EVALUATOR", CX_KIND_OBSERVE},
    {"tool", CX_KIND_ACT},         {"agent", CX_KIND_RUN},         {"workflow", CX_KIND_RUN},
    {"task", CX_KIND_RUN},
};

/* The AI SDK nests ai.generateText.doGenerate, the call of the model, in ai.generateText. */
static bool sdk_kind(cx_str operation, cx_import_kind *out)
{
    static const struct {
        const char *part;
        cx_import_kind kind;
    } parts[] = {{"toolCall", CX_KIND_ACT},     {"doGenerate", CX_KIND_REASON},
                 {"doStream", CX_KIND_REASON},  {"doEmbed", CX_KIND_OBSERVE},
                 {"ai.embed", CX_KIND_OBSERVE}, {"ai.", CX_KIND_RUN}};
    if (!cx_str_starts(operation, CX_STR("ai.")))
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++) {
        if (memmem(operation.data, operation.size, parts[i].part, strlen(parts[i].part)) != NULL) {
            *out = parts[i].kind;
            return true;
        }
    }
    return false;
}

static const char *const model_names[] = {"gen_ai.request.model",
                                          "gen_ai.response.model",
                                          "llm.model_name",
                                          "llm.request.model",
                                          "ai.model.id",
                                          "embedding.model_name",
                                          NULL};

/* The conventions of OpenTelemetry first, then those of what instruments without them. */
static cx_import_kind kind_of(const cx_import_span *span, cx_str operation)
{
    static const char *const others[] = {"openinference.span.kind", "traceloop.span.kind"};
    cx_import_kind kind = CX_KIND_MESSAGE;
    if (find_kind(operation, operations, CX_COUNT_OF(operations), &kind))
        return kind;
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        cx_str name = cx_import_attribute_str(span, cx_str_z(others[i]));
        if (find_kind(name, span_kinds, CX_COUNT_OF(span_kinds), &kind))
            return kind;
    }
    if (sdk_kind(cx_import_attribute_str(span, CX_STR("ai.operationId")), &kind))
        return kind;
    return operation.size == 0 && cx_import_first_attribute(span, model_names) != NULL
               ? CX_KIND_REASON
               : CX_KIND_MESSAGE;
}

/* Old and new names of one count meet under the new one; what else is there keeps its name. */
static cx_status usage_of(const cx_import_span *span, const cx_json **out, cx_err *err)
{
    static const char *const names[][7] = {
        {"input_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
         "llm.token_count.prompt", "ai.usage.inputTokens", "ai.usage.promptTokens", NULL},
        {"output_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
         "llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens", NULL},
        {"total_tokens", "gen_ai.usage.total_tokens", "llm.usage.total_tokens",
         "llm.token_count.total", "ai.usage.totalTokens", NULL},
        {"input_cost", "gen_ai.usage.input_cost", "llm.cost.prompt", NULL},
        {"output_cost", "gen_ai.usage.output_cost", "llm.cost.completion", NULL},
        {"cache_read_input_tokens", "gen_ai.usage.cache_read.input_tokens",
         "gen_ai.usage.cache_read_input_tokens", "llm.token_count.prompt_details.cache_read",
         "ai.usage.cachedInputTokens", NULL},
        {"cache_creation_input_tokens", "gen_ai.usage.cache_creation.input_tokens",
         "gen_ai.usage.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write",
         NULL},
    };
    cx_json_list list = cx_json_list_begin(span->arena);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *value = cx_import_first_attribute(span, names[i] + 1);
        if (value != NULL)
            cx_json_list_put(&list, cx_str_z(names[i][0]), *value);
    }
    if (list.count == 0)
        return CX_SUCCESS;
    cx_json *made = CX_ARENA_NEW(span->arena, cx_json);
    if (made == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_list_end_object(&list, made, err));
    *out = made;
    return CX_SUCCESS;
}

/* The first of several names that has a text. */
static cx_str first_text(const cx_import_span *span, const char *const *names)
{
    cx_str text = {NULL, 0};
    for (; *names != NULL && text.size == 0; names++)
        text = cx_import_attribute_str(span, cx_str_z(*names));
    return text;
}

/* The span of an agent itself; everything inside of it is its own. */
static bool is_agent_span(const cx_import_span *span, cx_str operation)
{
    return cx_str_is(operation, "invoke_agent") ||
           cx_str_is(cx_import_attribute_str(span, CX_STR("openinference.span.kind")), "AGENT") ||
           cx_str_is(cx_import_attribute_str(span, CX_STR("traceloop.span.kind")), "agent");
}

static void set_agent(cx_import_record *record, const cx_import_span *span, cx_str operation)
{
    static const char *const names[] = {"gen_ai.agent.name", "gen_ai.agent.id", "agent.name",
                                        "ai.telemetry.functionId", NULL};
    static const char *const own_names[] = {"traceloop.entity.name", "graph.node.id", NULL};
    record->agent = first_text(span, names);
    if (record->agent.size == 0 && is_agent_span(span, operation)) {
        record->agent = first_text(span, own_names);
        if (record->agent.size == 0)
            record->agent = span->name;
    }
    if (record->agent.size == 0) {
        record->inherit_agent = true;
        record->agent = span->fallback_agent;
    }
}

cx_status cx_import_gen_ai(cx_import_record *record, const cx_import_span *span, cx_err *err)
{
    static const char *const args_names[] = {
        "gen_ai.tool.call.arguments", "gen_ai.tool.args", "ai.toolCall.args",
        "traceloop.entity.input",     "input.value",      NULL};
    static const char *const output_names[] = {
        "gen_ai.tool.call.result", "gen_ai.output",      "gen_ai.output.messages",
        "gen_ai.completion",       "ai.toolCall.result", "ai.response.text",
        "traceloop.entity.output", "output.value",       NULL};
    static const char *const tools[] = {"gen_ai.tool.name", "tool.name", "ai.toolCall.name", NULL};
    static const char *const calls[] = {"gen_ai.tool.call.id", "gen_ai.tool.call_id",
                                        "tool_call.id", "ai.toolCall.id", NULL};
    static const char *const providers[] = {"gen_ai.provider.name", "gen_ai.system",
                                            "llm.provider",         "llm.system",
                                            "ai.model.provider",    NULL};
    static const char *const outcomes[] = {"", "ok", "error"};
    cx_str operation = cx_import_attribute_str(span, CX_STR("gen_ai.operation.name"));
    set_agent(record, span, operation);
    record->kind = kind_of(span, operation);
    record->tool = first_text(span, tools);
    if (record->tool.size == 0 && record->kind == CX_KIND_ACT)
        record->tool = cx_import_attribute_str(span, CX_STR("traceloop.entity.name"));
    if (record->tool.size == 0 && record->kind == CX_KIND_ACT && operation.size == 0)
        record->tool = span->name;
    record->call_id = first_text(span, calls);
    record->model = first_text(span, model_names);
    record->status = cx_str_z(outcomes[span->outcome]);
    record->content = cx_import_first_attribute(span, output_names);
    CX_TRY(usage_of(span, &record->usage, err));
    cx_import_field_str(record, CX_STR("operation"), operation);
    cx_import_field_str(record, CX_STR("provider"), first_text(span, providers));
    if (record->kind == CX_KIND_ACT)
        cx_import_call_done(record, span->scope, record->call_id, record->tool,
                            cx_import_first_attribute(span, args_names),
                            span->outcome != CX_SPAN_ERROR, record->content);
    if (span->outcome != CX_SPAN_UNSET)
        cx_import_belief(record, CX_STR("span_ok"), cx_json_make_bool(span->outcome == CX_SPAN_OK));
    record->fork = CX_IMPORT_FORK_NATURAL;
    record->fork_if_handed = true;
    record->fork_always = is_agent_span(span, operation);
    return CX_SUCCESS;
}
