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

/* The first of several names that is there, as a value of its own in the arena. */
static const cx_json *first_attribute(const cx_import_span *span, const char *const *names)
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

static cx_import_kind kind_of(cx_str operation)
{
    static const struct {
        const char *name;
        cx_import_kind kind;
    } kinds[] = {
        {"chat", CX_KIND_REASON},
        {"generate_content", CX_KIND_REASON},
        {"text_completion", CX_KIND_REASON},
        {"call_llm", CX_KIND_REASON},
        {"execute_tool", CX_KIND_ACT},
        {"invoke_agent", CX_KIND_RUN},
        {"create_agent", CX_KIND_RUN},
        {"invoke_workflow", CX_KIND_RUN},
        {"embeddings", CX_KIND_OBSERVE},
        {"retrieval", CX_KIND_OBSERVE},
    };
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++) {
        if (cx_str_is(operation, kinds[i].name))
            return kinds[i].kind;
    }
    return CX_KIND_MESSAGE;
}

/* Old and new names of one count meet under the new one; what else is there keeps its name. */
static cx_status usage_of(const cx_import_span *span, const cx_json **out, cx_err *err)
{
    static const char *const names[][3] = {
        {"input_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
        {"output_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
        {"total_tokens", "gen_ai.usage.total_tokens", NULL},
        {"input_cost", "gen_ai.usage.input_cost", NULL},
        {"output_cost", "gen_ai.usage.output_cost", NULL},
        {"cache_read_input_tokens", "gen_ai.usage.cache_read.input_tokens", NULL},
        {"cache_creation_input_tokens", "gen_ai.usage.cache_creation.input_tokens", NULL},
    };
    cx_json_list list = cx_json_list_begin(span->arena);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const char *const either[] = {names[i][1], names[i][2], NULL};
        const cx_json *value = first_attribute(span, either);
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

static void set_agent(cx_import_record *record, const cx_import_span *span)
{
    record->agent = cx_import_attribute_str(span, CX_STR("gen_ai.agent.name"));
    if (record->agent.size == 0)
        record->agent = cx_import_attribute_str(span, CX_STR("gen_ai.agent.id"));
    if (record->agent.size == 0) {
        record->inherit_agent = true;
        record->agent = span->fallback_agent;
    }
}

cx_status cx_import_gen_ai(cx_import_record *record, const cx_import_span *span, cx_err *err)
{
    static const char *const args_names[] = {"gen_ai.tool.call.arguments", "gen_ai.tool.args",
                                             NULL};
    static const char *const output_names[] = {"gen_ai.tool.call.result", "gen_ai.output",
                                               "gen_ai.output.messages", "gen_ai.completion", NULL};
    static const char *const outcomes[] = {"", "ok", "error"};
    cx_str operation = cx_import_attribute_str(span, CX_STR("gen_ai.operation.name"));
    cx_str provider = cx_import_attribute_str(span, CX_STR("gen_ai.provider.name"));
    set_agent(record, span);
    record->kind = kind_of(operation);
    record->tool = cx_import_attribute_str(span, CX_STR("gen_ai.tool.name"));
    record->call_id = cx_import_attribute_str(span, CX_STR("gen_ai.tool.call.id"));
    record->model = cx_import_attribute_str(span, CX_STR("gen_ai.request.model"));
    record->status = cx_str_z(outcomes[span->outcome]);
    record->content = first_attribute(span, output_names);
    CX_TRY(usage_of(span, &record->usage, err));
    cx_import_field_str(record, CX_STR("operation"), operation);
    if (provider.size == 0)
        provider = cx_import_attribute_str(span, CX_STR("gen_ai.system"));
    cx_import_field_str(record, CX_STR("provider"), provider);
    if (record->kind == CX_KIND_ACT)
        cx_import_call_done(record, span->scope, record->call_id, record->tool,
                            first_attribute(span, args_names), span->outcome != CX_SPAN_ERROR,
                            record->content);
    if (span->outcome != CX_SPAN_UNSET)
        cx_import_belief(record, CX_STR("span_ok"), cx_json_make_bool(span->outcome == CX_SPAN_OK));
    record->fork = CX_IMPORT_FORK_NATURAL;
    record->fork_if_handed = true;
    record->fork_always = cx_str_is(operation, "invoke_agent");
    return CX_SUCCESS;
}
