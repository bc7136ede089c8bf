/*
 * param.c - checks query parameters: known, not repeated, and of their type.
 */
#include "server/param.h"

#include "crypto/api.h"
#include "json/api.h"

#define TEXT_MAX_DEFAULT 1024

void cx_param_describe(const cx_route_param *param, cx_buf *out)
{
    switch (param->type) {
    case CX_PARAM_TEXT:
        cx_buf_printf(out, "text of 1 to %llu bytes",
                      (unsigned long long)(param->max == 0 ? TEXT_MAX_DEFAULT : param->max));
        break;
    case CX_PARAM_FLAG: cx_buf_add_z(out, "true or false"); break;
    case CX_PARAM_TRI: cx_buf_add_z(out, "true, false or any"); break;
    case CX_PARAM_TIME: cx_buf_add_z(out, "a time such as 2026-01-31T12:00:00Z"); break;
    case CX_PARAM_NUMBER: cx_buf_add_z(out, "a finite number"); break;
    case CX_PARAM_COUNT:
        cx_buf_printf(out, "a whole number from %llu to %llu", (unsigned long long)param->min,
                      (unsigned long long)param->max);
        break;
    case CX_PARAM_LEVEL: cx_buf_add_z(out, "generic, detailed or full_traces"); break;
    case CX_PARAM_CHOICE: cx_buf_printf(out, "one of %s", param->choices); break;
    case CX_PARAM_DIGEST: cx_buf_add_z(out, "64 lower-case hex digits"); break;
    }
}

static void add_enum_words(const char *words, cx_buf *out)
{
    cx_buf_add_z(out, "\"enum\":[\"");
    for (const char *c = words; *c != 0; c++)
        if (*c == '|')
            cx_buf_add_z(out, "\",\"");
        else
            cx_buf_add_byte(out, (uint8_t)*c);
    cx_buf_add_z(out, "\"],\"type\":\"string\"");
}

static void add_schema_part(const cx_route_param *param, cx_buf *out)
{
    switch (param->type) {
    case CX_PARAM_TEXT:
        cx_buf_printf(out, "\"maxLength\":%llu,\"minLength\":1,\"type\":\"string\"",
                      (unsigned long long)(param->max == 0 ? TEXT_MAX_DEFAULT : param->max));
        break;
    case CX_PARAM_FLAG: cx_buf_add_z(out, "\"type\":\"boolean\""); break;
    case CX_PARAM_TRI: add_enum_words("true|false|any", out); break;
    case CX_PARAM_TIME: cx_buf_add_z(out, "\"format\":\"date-time\",\"type\":\"string\""); break;
    case CX_PARAM_NUMBER: cx_buf_add_z(out, "\"type\":\"number\""); break;
    case CX_PARAM_COUNT:
        cx_buf_printf(out, "\"maximum\":%llu,\"minimum\":%llu,\"type\":\"integer\"",
                      (unsigned long long)param->max, (unsigned long long)param->min);
        break;
    case CX_PARAM_LEVEL: add_enum_words("generic|detailed|full_traces", out); break;
    case CX_PARAM_CHOICE: add_enum_words(param->choices, out); break;
    case CX_PARAM_DIGEST:
        cx_buf_add_z(out, "\"pattern\":\"^[0-9a-f]{64}$\",\"type\":\"string\"");
        break;
    }
}

void cx_param_schema(const cx_route_param *param, cx_buf *out)
{
    if (param->many)
        cx_buf_add_z(out, "\"items\":{");
    add_schema_part(param, out);
    if (param->many)
        cx_buf_add_z(out, "},\"type\":\"array\"");
}

/* --- values ----------------------------------------------------------------------------------- */

static bool read_flag(cx_str text, bool *out)
{
    *out = cx_str_is(text, "true") || cx_str_is(text, "1");
    return *out || cx_str_is(text, "false") || cx_str_is(text, "0");
}

static bool read_tri(cx_str text, int8_t *out)
{
    bool flag;
    *out = CX_NULL;
    if (cx_str_is(text, "any"))
        return true;
    if (!read_flag(text, &flag))
        return false;
    *out = flag ? CX_TRUE : CX_FALSE;
    return true;
}

/* In an offset that was typed into a query the plus is often unescaped, which makes it a space. */
static bool read_time(cx_str text, int64_t *out)
{
    char copy[64];
    bool naive;
    if (text.size > sizeof copy)
        return false;
    for (size_t i = 0; i < text.size; i++)
        copy[i] = text.data[i] == ' ' ? '+' : text.data[i];
    return cx_trace_time_parse(cx_str_from(copy, text.size), out, &naive);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The grammar of JSON numbers. */
static bool read_number(cx_str text, double *out)
{
    size_t i = text.size != 0 && text.data[0] == '-' ? 1 : 0, start = i;
    while (i < text.size && is_digit(text.data[i]))
        i++;
    if (i == start || (text.data[start] == '0' && i - start > 1) || text.size > 64)
        return false;
    if (i < text.size && text.data[i] == '.') {
        start = ++i;
        while (i < text.size && is_digit(text.data[i]))
            i++;
        if (i == start)
            return false;
    }
    if (i < text.size && (text.data[i] == 'e' || text.data[i] == 'E')) {
        i++;
        if (i < text.size && (text.data[i] == '+' || text.data[i] == '-'))
            i++;
        start = i;
        while (i < text.size && is_digit(text.data[i]))
            i++;
        if (i == start)
            return false;
    }
    return i == text.size && cx_number_parse(text, out);
}

static bool read_count(cx_str text, const cx_route_param *param, uint64_t *out)
{
    uint64_t value = 0;
    if (text.size == 0 || text.size > 19)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!is_digit(text.data[i]))
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out = value;
    return value >= param->min && value <= param->max;
}

static bool read_choice(cx_str text, const char *choices, unsigned *out)
{
    *out = 0;
    for (const char *word = choices;;) {
        const char *end = strchr(word, '|');
        size_t size = end == NULL ? strlen(word) : (size_t)(end - word);
        if (cx_str_eq(text, cx_str_from(word, size)))
            return true;
        if (end == NULL)
            return false;
        word = end + 1;
        (*out)++;
    }
}

static bool read_value(const cx_route_param *param, cx_str text, cx_param *out)
{
    uint64_t max = param->max == 0 ? TEXT_MAX_DEFAULT : param->max;
    switch (param->type) {
    case CX_PARAM_TEXT: return text.size >= 1 && text.size <= max;
    case CX_PARAM_FLAG: return read_flag(text, &out->flag);
    case CX_PARAM_TRI: return read_tri(text, &out->tri);
    case CX_PARAM_TIME: return read_time(text, &out->time_ns);
    case CX_PARAM_NUMBER: return read_number(text, &out->number);
    case CX_PARAM_COUNT: return read_count(text, param, &out->count);
    case CX_PARAM_LEVEL: return cx_trace_level_parse(text, &out->level);
    case CX_PARAM_CHOICE: return read_choice(text, param->choices, &out->choice);
    case CX_PARAM_DIGEST: return cx_digest_parse(text, &out->digest);
    }
    return false;
}

/* --- the table -------------------------------------------------------------------------------- */

static void reject_parameter(cx_call *call, cx_str name, const char *reason)
{
    cx_problem problem = {
        .status = 422,
        .type = "invalid-parameter",
        .detail = CX_STR("the query has an invalid parameter"),
        .parameter = name,
        .reason = cx_str_z(reason),
    };
    cx_call_problem(call, &problem);
}

static void reject_value(cx_call *call, const cx_route_param *param)
{
    cx_buf reason;
    cx_buf_init(&reason, call->service->alloc);
    cx_buf_add_z(&reason, "expected ");
    cx_param_describe(param, &reason);
    const char *text = cx_buf_z(&reason);
    reject_parameter(call, cx_str_z(param->name), text == NULL ? "invalid value" : text);
    cx_buf_done(&reason);
}

static size_t find_parameter(const cx_route *route, cx_str name)
{
    size_t i = 0;
    while (i < route->param_count && !cx_str_is(name, route->params[i].name) &&
           (route->params[i].also == NULL || !cx_str_is(name, route->params[i].also)))
        i++;
    return i;
}

static bool read_parameter(cx_call *call, const cx_target_param *given)
{
    const cx_route *route = call->route;
    size_t at = find_parameter(route, given->name);
    if (at == route->param_count) {
        reject_parameter(call, given->name, "unknown parameter");
        return false;
    }
    const cx_route_param *param = &route->params[at];
    cx_param *value = &call->values[at];
    if (value->given && !param->many) {
        reject_parameter(call, cx_str_z(param->name), "the parameter is given more than once");
        return false;
    }
    if (!read_value(param, given->value, value)) {
        reject_value(call, param);
        return false;
    }
    value->given = true;
    value->text = given->value;
    return true;
}

bool cx_params_read(cx_call *call)
{
    const cx_route *route = call->route;
    CX_ASSERT(route->param_count <= CX_ROUTE_PARAMS_MAX);
    for (size_t i = 0; i < call->target.param_count; i++)
        if (!read_parameter(call, &call->target.params[i]))
            return false;
    for (size_t i = 0; i < route->param_count; i++)
        if (route->params[i].required && !call->values[i].given) {
            reject_parameter(call, cx_str_z(route->params[i].name), "the parameter is required");
            return false;
        }
    return true;
}

const cx_param *cx_call_param(const cx_call *call, const char *name)
{
    size_t at = find_parameter(call->route, cx_str_z(name));
    CX_ASSERT(at < call->route->param_count);
    return &call->values[at];
}

bool cx_call_flag(const cx_call *call, const char *name)
{
    const cx_param *param = cx_call_param(call, name);
    return param->given && param->flag;
}

cx_str cx_call_text(const cx_call *call, const char *name)
{
    const cx_param *param = cx_call_param(call, name);
    return param->given ? param->text : (cx_str){NULL, 0};
}
