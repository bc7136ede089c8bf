/*
 * mcpd_call.c - calls a tool: from its arguments to a route, from the route's answer to a result.
 *
 *   T1  A tool's arguments are the captures and parameters of its routes; the first route that
 *       knows all given arguments, and whose required ones are given, is called.
 *   T2  Arguments become one segment or one value of the target, all but unreserved characters as
 *       %XX: no argument can select another route.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"
#include "server/mcp/mcpd_parts.h"

/* --- tools/call: the request ------------------------------------------------------------------ */

typedef struct question {
    cx_mcpd_call *call;
    const cx_mcpd_tool *tool;
    const cx_json *arguments; /* an object */
    cx_buf target;
    uint64_t from, most; /* bytes of the answer */
    cx_str wrong;        /* data NULL = the request can be made */
} question;

static void reject_arguments(question *q, const char *format, ...) CX_PRINTF(2, 3);
static void reject_arguments(question *q, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    q->wrong = cx_arena_copy_str(q->call->arena, cx_str_z(text));
    if (q->wrong.data == NULL)
        q->wrong = CX_STR("out of memory");
}

static bool is_captured(const cx_mcpd_variant *w, cx_str name)
{
    return (w->capture != NULL && cx_str_is(name, w->capture)) ||
           (w->capture2 != NULL && cx_str_is(name, w->capture2));
}

static bool known_argument(const cx_mcpd_tool *t, cx_str name)
{
    for (size_t i = 0; i < t->variant_count; i++)
        if (cx_mcpd_variant_knows(&t->variants[i], name))
            return true;
    return cx_mcpd_is_shown_arg(name);
}

static bool variant_fits(const cx_mcpd_variant *w, const cx_json *arguments)
{
    for (uint32_t i = 0; i < arguments->count; i++) {
        cx_str name = cx_json_text(&arguments->members[i].name);
        if (!cx_mcpd_is_shown_arg(name) && !cx_mcpd_variant_knows(w, name))
            return false;
    }
    return cx_mcpd_variant_lacks(w, arguments) == NULL;
}

/* What one argument is as text, in the arena; data NULL when it is of no type that has one. */
static cx_str argument_text(const question *q, const cx_json *value)
{
    (void)q;
    switch ((cx_json_type)value->type) {
    case CX_JSON_TRUE: return CX_STR("true");
    case CX_JSON_FALSE: return CX_STR("false");
    case CX_JSON_INT:
    case CX_JSON_DOUBLE:
    case CX_JSON_STRING: return cx_json_text(value);
    case CX_JSON_NULL:
    case CX_JSON_ARRAY:
    case CX_JSON_OBJECT: break;
    }
    return (cx_str){NULL, 0};
}

static void add_query(question *q, bool *any, cx_str name, const cx_json *value)
{
    cx_str text = argument_text(q, value);
    if (text.data == NULL) {
        reject_arguments(q, "%.*s: found %s, expected text, a number, true or false",
                         (int)name.size, name.data, cx_json_type_name(value));
        return;
    }
    cx_buf_add_byte(&q->target, *any ? '&' : '?');
    *any = true;
    cx_mcpd_add_escaped(&q->target, name);
    cx_buf_add_byte(&q->target, '=');
    cx_mcpd_add_escaped(&q->target, text);
}

/* T2 */
static void add_capture(question *q, const char *name, const char *otherwise)
{
    const cx_json *value = cx_json_get(q->arguments, cx_str_z(name));
    CX_ASSERT(value != NULL ||
              otherwise != NULL); /* else this variant would not have been chosen */
    if (value != NULL && (value->type != CX_JSON_STRING || value->count == 0))
        reject_arguments(q, "%s: found %s, expected text that is not empty", name,
                         value->type == CX_JSON_STRING ? "an empty text"
                                                       : cx_json_type_name(value));
    else
        cx_mcpd_add_escaped(&q->target, value == NULL ? cx_str_z(otherwise) : cx_json_text(value));
}

static void add_path(question *q, const cx_mcpd_variant *w)
{
    bool second = false;
    for (const char *at = w->route; *at != 0;) {
        size_t size = strcspn(at, "{");
        cx_buf_add(&q->target, at, size);
        at += size;
        if (*at == 0)
            return;
        add_capture(q, second ? w->capture2 : w->capture, second ? NULL : w->otherwise);
        second = true;
        at = strchr(at, '}') + 1;
    }
}

static void make_target(question *q, const cx_mcpd_variant *w)
{
    bool any = false;
    add_path(q, w);
    for (uint32_t i = 0; i < q->arguments->count && q->wrong.data == NULL; i++) {
        cx_str name = cx_json_text(&q->arguments->members[i].name);
        const cx_json *value = &q->arguments->members[i].value;
        const cx_route_param *param = cx_mcpd_param_of(w, name);
        if (param == NULL || is_captured(w, name))
            continue;
        if (!param->many || value->type != CX_JSON_ARRAY) {
            add_query(q, &any, name, value);
            continue;
        }
        for (uint32_t j = 0; j < value->count && q->wrong.data == NULL; j++)
            add_query(q, &any, name, &value->items[j]);
    }
    if (q->wrong.data == NULL && q->target.size > CX_TARGET_BYTES_MAX)
        reject_arguments(q, "the arguments are longer than %d bytes together", CX_TARGET_BYTES_MAX);
}

static void read_number_argument(question *q, size_t which, uint64_t *out)
{
    const cx_route_param *param = &cx_mcpd_shown_params[which];
    const cx_json *value = cx_json_get(q->arguments, cx_str_z(param->name));
    uint64_t number;
    if (value == NULL)
        return;
    if (cx_json_uint64(value, &number) && number >= param->min && number <= param->max)
        *out = number;
    else
        reject_arguments(q, "%s: expected a whole number from %llu to %llu", param->name,
                         (unsigned long long)param->min, (unsigned long long)param->max);
}

/* "run_id; agent_id_hash; branch, node": the needed arguments of each way. */
static void reject_variants(question *q)
{
    cx_buf list;
    cx_buf_init(&list, q->call->arena->alloc);
    for (size_t i = 0; i < q->tool->variant_count; i++) {
        const cx_mcpd_variant *w = &q->tool->variants[i];
        const cx_route *route = cx_mcpd_route_of(w);
        size_t count = 0;
        if (i != 0)
            cx_buf_add_z(&list, "; or ");
        if (w->capture != NULL && w->otherwise == NULL)
            cx_buf_printf(&list, "%s%s", count++ == 0 ? "" : " and ", w->capture);
        if (w->capture2 != NULL)
            cx_buf_printf(&list, "%s%s", count++ == 0 ? "" : " and ", w->capture2);
        for (size_t j = 0; j < route->param_count; j++)
            if (route->params[j].required)
                cx_buf_printf(&list, "%s%s", count++ == 0 ? "" : " and ", route->params[j].name);
        if (count == 0)
            cx_buf_add_z(&list, "no required argument");
    }
    const char *text = cx_buf_z(&list);
    if (text == NULL)
        q->wrong = CX_STR("out of memory");
    else
        reject_arguments(q,
                         "these arguments cannot be combined; %s needs %s, and accepts with them "
                         "only the arguments that its description lists",
                         q->tool->name, text);
    cx_buf_done(&list);
}

static void read_arguments(question *q)
{
    for (uint32_t i = 0; i < q->arguments->count; i++) {
        cx_str name = cx_json_text(&q->arguments->members[i].name);
        if (!known_argument(q->tool, name)) {
            reject_arguments(q, "%s has no argument '%.*s'; tools/list lists them", q->tool->name,
                             (int)(name.size < 80 ? name.size : 80), name.data);
            return;
        }
    }
    read_number_argument(q, 0, &q->from);
    read_number_argument(q, 1, &q->most);
    for (size_t i = 0; i < q->tool->variant_count && q->wrong.data == NULL; i++)
        if (variant_fits(&q->tool->variants[i], q->arguments)) {
            make_target(q, &q->tool->variants[i]);
            return;
        }
    if (q->wrong.data != NULL)
        return;
    if (q->tool->variant_count == 1)
        reject_arguments(q, "%s: required, but missing",
                         cx_mcpd_variant_lacks(&q->tool->variants[0], q->arguments));
    else
        reject_variants(q);
}

/* --- tools/call: what is answered ------------------------------------------------------------- */

/* M3 */
static void answer_tool_error(question *q, cx_str why)
{
    cx_buf *out = q->call->result;
    cx_buf_add_z(out, "{\"content\":[{\"text\":");
    cx_mcpd_add_text(out, why);
    cx_buf_add_z(out, ",\"type\":\"text\"}],\"isError\":true}");
}

static bool is_inside_character(cx_str text, uint64_t at)
{
    return at < text.size && ((unsigned char)text.data[at] & 0xc0) == 0x80;
}

/* JSON is written again: a report may have line ends between its members, and a message is one
 * line.  False: the body is not JSON, or has no canonical form. */
static bool add_answer(const question *q, cx_str body)
{
    cx_buf *out = q->call->result;
    cx_json value;
    size_t before = out->size;
    cx_buf_add_z(out, "\"answer\":");
    cx_status status = cx_json_parse_text(body, q->call->arena, &value, NULL);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, NULL);
    if (status.code == CX_E_NOMEM)
        out->failed = true;
    if (cx_failed(status))
        out->size = before;
    else
        cx_buf_add_byte(out, ',');
    return !cx_failed(status);
}

static void add_structured(const question *q, cx_str body, cx_str part, bool cut)
{
    cx_buf *out = q->call->result;
    cx_buf_add_z(out, ",\"structuredContent\":{");
    bool is_json = !cut && add_answer(q, body);
    cx_buf_printf(out, "\"from_byte\":%llu,", (unsigned long long)q->from);
    if (cut && q->from + part.size < body.size)
        cx_buf_printf(out, "\"next_byte\":%llu,", (unsigned long long)(q->from + part.size));
    if (!is_json) {
        cx_buf_add_z(out, "\"part\":");
        cx_mcpd_add_text(out, part);
        cx_buf_add_byte(out, ',');
    }
    cx_buf_printf(out, "\"total_bytes\":%zu,\"truncated\":%s}", body.size, cut ? "true" : "false");
}

/* M2 */
static void answer_body(question *q, cx_str body)
{
    cx_buf *out = q->call->result;
    while (body.size != 0 && body.data[body.size - 1] == '\n')
        body.size--;
    while (is_inside_character(body, q->from))
        q->from++;
    if (q->from != 0 && q->from >= body.size) {
        reject_arguments(
            q, "from_byte: the answer has %zu bytes; it may have changed since the last call",
            body.size);
        answer_tool_error(q, q->wrong);
        return;
    }
    uint64_t end = body.size - q->from > q->most ? q->from + q->most : body.size;
    while (end > q->from + 1 && is_inside_character(body, end))
        end--;
    cx_str part = cx_str_from(body.data + q->from, (size_t)(end - q->from));
    bool cut = part.size < body.size;
    cx_buf_add_z(out, "{\"content\":[{\"text\":");
    cx_mcpd_add_text(out, part);
    cx_buf_add_z(out, ",\"type\":\"text\"}");
    if (cut) {
        cx_buf_printf(out, ",{\"text\":\"[truncated: bytes %llu to %llu of %zu are shown; ",
                      (unsigned long long)q->from, (unsigned long long)(end - 1), body.size);
        if (end < body.size)
            cx_buf_printf(out, "continue with from_byte=%llu, or narrow the query]",
                          (unsigned long long)end);
        else
            cx_buf_add_z(out, "this is the end]");
        cx_buf_add_z(out, "\",\"type\":\"text\"}");
    }
    cx_buf_add_z(out, "],\"isError\":false");
    if (q->call->version >= CX_MCPD_2025_06_18)
        add_structured(q, body, part, cut);
    cx_buf_add_byte(out, '}');
}

static cx_status answer_reply(question *q, cx_status status, const cx_mcpd_reply *reply,
                              const cx_err *why, cx_err *err)
{
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        reject_arguments(q, "%s%s%s", why->tag == NULL ? "" : why->tag,
                         why->tag == NULL ? "" : ": ", why->message);
        answer_tool_error(q, q->wrong);
    } else if (reply->status >= 300) {
        answer_tool_error(q, cx_mcpd_problem_text(reply, q->call->arena));
    } else {
        answer_body(q, reply->body);
    }
    return CX_SUCCESS;
}

static cx_status call_tool(question *q, cx_err *err)
{
    cx_mcpd_reply reply = {.status = 0};
    cx_err why = {0};
    CX_TRY(cx_buf_check(&q->target, err));
    cx_status status = q->call->host->ask(q->call->host->arg, cx_buf_str(&q->target),
                                          q->call->arena, &reply, &why);
    return answer_reply(q, status, &reply, &why, err);
}

static cx_status call_write_tool(question *q, const cx_mcpd_write_tool *tool, cx_err *err)
{
    cx_mcpd_reply reply = {.status = 0};
    cx_err why = {0};
    cx_status status =
        cx_mcpd_call_write_tool(q->call, tool, q->arguments, &reply, &q->wrong, &why);
    if (q->wrong.data == NULL)
        return answer_reply(q, status, &reply, &why, err);
    answer_tool_error(q, q->wrong);
    return CX_SUCCESS;
}

cx_status cx_mcpd_tools_call(cx_mcpd_call *call, cx_err *err)
{
    static const cx_json none = {.type = CX_JSON_OBJECT};
    const cx_json *name = call->params == NULL ? NULL : CX_JSON_GET(call->params, "name");
    const cx_json *arguments = call->params == NULL ? NULL : CX_JSON_GET(call->params, "arguments");
    if (name == NULL || name->type != CX_JSON_STRING) {
        cx_mcpd_fault(call, CX_MCPD_PARAMS, "tools/call: expected params.name, a tool's name");
        return CX_SUCCESS;
    }
    if (arguments == NULL || arguments->type == CX_JSON_NULL)
        arguments = &none;
    cx_str text = cx_json_text(name);
    const cx_mcpd_tool *t = cx_mcpd_find_tool(text);
    const cx_mcpd_write_tool *write = t == NULL ? cx_mcpd_find_write_tool(call->host, text) : NULL;
    if (t == NULL && write == NULL)
        cx_mcpd_fault(call, CX_MCPD_PARAMS, "no such tool '%.*s'; tools/list lists them",
                      (int)(text.size < 80 ? text.size : 80), text.data);
    else if (arguments->type != CX_JSON_OBJECT)
        cx_mcpd_fault(call, CX_MCPD_PARAMS, "arguments: found %s, expected an object",
                      cx_json_type_name(arguments));
    if (call->code != 0)
        return CX_SUCCESS;
    question q = {.call = call, .tool = t, .arguments = arguments, .most = CX_MCPD_SHOWN_DEFAULT};
    if (write != NULL)
        return call_write_tool(&q, write, err);
    cx_buf_init(&q.target, call->arena->alloc);
    read_arguments(&q);
    cx_status status = CX_SUCCESS;
    if (q.wrong.data != NULL)
        answer_tool_error(&q, q.wrong);
    else
        status = call_tool(&q, err);
    cx_buf_done(&q.target);
    return status;
}
