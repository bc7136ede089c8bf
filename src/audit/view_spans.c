/*
 * view_spans.c - a run as OpenTelemetry spans (docs/formats/otlp.md): the run, each visit of a
 * state, each tool call.  Ids follow from the trace id alone, so that an export can be repeated.
 */
#include "audit/view.h"
#include "bundle/api.h"
#include "crypto/api.h"
#include "rules/api.h"

#define SPANS_MAX 20000

enum { STATUS_OK = 1, STATUS_ERROR = 2, KIND_INTERNAL = 1 };

typedef struct spans {
    const cx_run_projection *run;
    cx_arena *arena;
    cx_json_list list;
    size_t count;
    int64_t *since;   /* of each task: when its state began */
    uint32_t *visits; /* of each task: states that ended */
} spans;

/* --- values ----------------------------------------------------------------------------------- */

static int64_t time_of(const spans *s, size_t moment)
{
    int64_t ns = 0;
    (void)cx_run_time_parse(s->run->moments.items[moment].ts, &ns);
    return ns;
}

static void put_time(cx_json_list *object, const char *name, int64_t ns)
{
    cx_json_put_utf8(object, name, cx_arena_printf(object->arena, "%lld", (long long)ns));
}

/* Eight bytes of a hash over the trace id and what the span stands for. */
static cx_str span_id(const spans *s, const char *what, cx_str name, uint64_t number)
{
    cx_str text = cx_arena_printf(s->arena, "%.*s %s %.*s %llu", (int)s->run->trace_id.size,
                                  s->run->trace_id.data, what, (int)name.size,
                                  name.size == 0 ? "" : name.data, (unsigned long long)number);
    char hex[17] = "";
    if (text.data == NULL)
        return text;
    const cx_digest digest = cx_digest_of(cx_str_bytes(text));
    cx_hex_encode(cx_bytes_from(digest.bytes, 8), hex);
    return cx_arena_copy_str(s->arena, cx_str_from(hex, 16));
}

static void add_attribute(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list one = cx_json_list_begin(list->arena), value = cx_json_list_begin(list->arena);
    if (text.size == 0)
        return;
    cx_json_put_z(&one, "key", name);
    cx_json_put_utf8(&value, "stringValue", text);
    cx_json_put_object(&one, "value", &value);
    cx_json_add_object(list, &one);
}

/* --- spans ------------------------------------------------------------------------------------ */

typedef struct span {
    cx_str id, parent, name;
    int64_t from_ns, to_ns;
    cx_json_list attributes, events;
    int status; /* 0: unset */
} span;

static span begin_span(const spans *s)
{
    return (span){.attributes = cx_json_list_begin(s->arena),
                  .events = cx_json_list_begin(s->arena)};
}

static void add_span(spans *s, span *one)
{
    cx_json_list object = cx_json_list_begin(s->arena), status = cx_json_list_begin(s->arena);
    s->count++;
    cx_json_put_utf8(&object, "traceId", s->run->trace_id);
    cx_json_put_utf8(&object, "spanId", one->id);
    if (one->parent.size != 0)
        cx_json_put_utf8(&object, "parentSpanId", one->parent);
    cx_json_put_utf8(&object, "name", one->name);
    cx_json_put_uint(&object, "kind", KIND_INTERNAL);
    put_time(&object, "startTimeUnixNano", one->from_ns);
    put_time(&object, "endTimeUnixNano", one->to_ns < one->from_ns ? one->from_ns : one->to_ns);
    cx_json_put_array(&object, "attributes", &one->attributes);
    cx_json_put_array(&object, "events", &one->events);
    if (one->status != 0)
        cx_json_put_int(&status, "code", one->status);
    cx_json_put_object(&object, "status", &status);
    cx_json_add_object(&s->list, &object);
}

static cx_str root_id(const spans *s)
{
    return span_id(s, "run", s->run->run_id, 0);
}

/* Each gate's verdict is an event of the run's span. */
static void add_gate_events(const spans *s, span *root)
{
    for (size_t i = 0; i < s->run->rulings.count; i++) {
        const cx_run_ruling *ruling = &s->run->rulings.items[i];
        cx_json_list one = cx_json_list_begin(s->arena), attributes = cx_json_list_begin(s->arena);
        put_time(&one, "timeUnixNano", time_of(s, ruling->moment));
        cx_json_put_z(&one, "name", "cortex.gate");
        add_attribute(&attributes, "cortex.gate", cx_str_z(ruling->judgement.gate));
        add_attribute(&attributes, "cortex.gate.result",
                      ruling->judgement.passed ? CX_STR("passed") : CX_STR("rejected"));
        add_attribute(&attributes, "cortex.task_id", s->run->moments.items[ruling->moment].task_id);
        cx_json_put_array(&one, "attributes", &attributes);
        cx_json_add_object(&root->events, &one);
    }
}

static void add_root(spans *s)
{
    span root = begin_span(s);
    bool failed = !cx_str_is(s->run->status, "SUCCESS");
    root.id = root_id(s);
    root.name = CX_STR("cortex.run");
    root.from_ns = time_of(s, 0);
    root.to_ns = time_of(s, s->run->moments.count - 1);
    root.status = s->run->status.size == 0 ? 0 : failed ? STATUS_ERROR : STATUS_OK;
    add_attribute(&root.attributes, "cortex.run_id", s->run->run_id);
    add_attribute(&root.attributes, "cortex.status", s->run->status);
    add_attribute(&root.attributes, "error.type", s->run->failed_gate);
    add_gate_events(s, &root);
    add_span(s, &root);
}

static void end_visit(spans *s, size_t task, cx_str state, cx_str reason, int64_t to_ns)
{
    span one = begin_span(s);
    cx_str id = s->run->tasks.items[task].task_id;
    one.id = span_id(s, "state", id, s->visits[task]++);
    one.parent = root_id(s);
    one.name = cx_arena_printf(s->arena, "cortex.state %.*s", (int)state.size,
                               state.size == 0 ? "" : state.data);
    one.from_ns = s->since[task];
    one.to_ns = to_ns;
    add_attribute(&one.attributes, "cortex.task_id", id);
    add_attribute(&one.attributes, "cortex.state", state);
    add_attribute(&one.attributes, "cortex.reason", reason);
    add_span(s, &one);
    s->since[task] = to_ns;
}

static cx_status add_tool(spans *s, size_t task, size_t moment, cx_err *err)
{
    const cx_run_moment *at = &s->run->moments.items[moment];
    cx_run_event_read event;
    span one = begin_span(s);
    CX_TRY(cx_run_event_parse(at->line, at->index, s->arena, &event, err));
    const cx_json *payload = CX_JSON_GET(&event.whole, "payload");
    cx_str tool = payload == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(payload, "tool");
    cx_str call = payload == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(payload, "call");
    one.id = span_id(s, "tool", at->task_id, at->index);
    one.parent = span_id(s, "state", at->task_id, s->visits[task]);
    one.name = cx_arena_printf(s->arena, "execute_tool %.*s", (int)tool.size,
                               tool.size == 0 ? "" : tool.data);
    one.from_ns = one.to_ns = time_of(s, moment);
    add_attribute(&one.attributes, "gen_ai.operation.name", CX_STR("execute_tool"));
    add_attribute(&one.attributes, "gen_ai.tool.name", tool);
    add_attribute(&one.attributes, "gen_ai.tool.call.id", call);
    add_attribute(&one.attributes, "cortex.task_id", at->task_id);
    add_span(s, &one);
    return CX_SUCCESS;
}

static size_t task_of(const spans *s, cx_str id)
{
    size_t i = 0;
    while (i < s->run->tasks.count && !cx_str_eq(s->run->tasks.items[i].task_id, id))
        i++;
    return i;
}

static cx_status add_moments(spans *s, cx_err *err)
{
    size_t next = 0;
    for (size_t i = 0; i < s->run->moments.count && s->count < SPANS_MAX; i++) {
        const cx_run_moment *at = &s->run->moments.items[i];
        size_t task = task_of(s, at->task_id);
        if (task < s->run->tasks.count && at->kind == CX_RUN_EVENT_TOOL_INVOCATION)
            CX_TRY(add_tool(s, task, i, err));
        if (next == s->run->transitions.count || s->run->transitions.items[next].moment != i)
            continue;
        const cx_run_transition *change = &s->run->transitions.items[next++];
        if (task < s->run->tasks.count)
            end_visit(s, task, change->from, change->reason, time_of(s, i));
    }
    for (size_t i = 0; i < s->run->tasks.count; i++)
        end_visit(s, i, s->run->tasks.items[i].state, CX_STR(""),
                  time_of(s, s->run->moments.count - 1));
    return CX_SUCCESS;
}

static cx_status begin_tasks(spans *s, cx_err *err)
{
    size_t count = s->run->tasks.count;
    s->since = CX_ARENA_ARRAY(s->arena, int64_t, count + 1);
    s->visits = CX_ARENA_ARRAY(s->arena, uint32_t, count + 1);
    if (s->since == NULL || s->visits == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        s->since[i] = time_of(s, s->run->tasks.items[i].first);
        s->visits[i] = 0;
    }
    return CX_SUCCESS;
}

/* {"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans"}]}]} */
static cx_status wrap_spans(spans *s, cx_json *out, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(s->arena), resources = cx_json_list_begin(s->arena);
    cx_json_list of = cx_json_list_begin(s->arena), resource = cx_json_list_begin(s->arena);
    cx_json_list names = cx_json_list_begin(s->arena), scopes = cx_json_list_begin(s->arena);
    cx_json_list in = cx_json_list_begin(s->arena), scope = cx_json_list_begin(s->arena);
    add_attribute(&names, "service.name", CX_STR("cortex"));
    cx_json_put_array(&resource, "attributes", &names);
    cx_json_put_object(&of, "resource", &resource);
    cx_json_put_z(&scope, "name", "cortex.run");
    cx_json_put_object(&in, "scope", &scope);
    cx_json_put_array(&in, "spans", &s->list);
    cx_json_add_object(&scopes, &in);
    cx_json_put_array(&of, "scopeSpans", &scopes);
    cx_json_add_object(&resources, &of);
    cx_json_put_array(&root, "resourceSpans", &resources);
    return cx_json_list_end_object(&root, out, err);
}

cx_status cx_run_view_spans(const cx_run_projection *run, cx_arena *arena, cx_json *out,
                            cx_err *err)
{
    CX_ASSERT(run != NULL && arena != NULL && out != NULL);
    spans s = {.run = run, .arena = arena, .list = cx_json_list_begin(arena)};
    if (run->moments.count == 0 || run->trace_id.size != 32)
        return cx_fail(err, CX_E_NOT_FOUND, "the run has no event with a trace id");
    CX_TRY(begin_tasks(&s, err));
    add_root(&s);
    CX_TRY(add_moments(&s, err));
    return wrap_spans(&s, out, err);
}
