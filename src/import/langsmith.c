/*
 * langsmith.c - run exports of LangSmith (§2.22): runs with a parent_run_id or with child_runs; a
 * list, {"runs"}, or a run a line.
 */
#include "import/turns.h"

#define RUN_SPACE 'r'
#define CHILD_DEPTH_MAX 64 /* deeper ones stay in their parent's raw */

static const cx_json *object_at(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

/* The program's own export calls it run_id. */
static cx_str id_of(const cx_json *run)
{
    cx_str id = cx_import_scalar(CX_JSON_GET(run, "id"));
    return id.size != 0 ? id : cx_import_scalar(CX_JSON_GET(run, "run_id"));
}

static bool is_run(const cx_json *value)
{
    return value->type == CX_JSON_OBJECT && cx_import_has_str(value, "run_type") &&
           (cx_import_has(value, "id") || cx_import_has(value, "run_id") ||
            cx_import_has(value, "inputs"));
}

static cx_import_kind kind_of(cx_str type)
{
    return cx_str_is(type, "llm") || cx_str_is(type, "chat_model") ? CX_KIND_REASON
           : cx_str_is(type, "tool")                               ? CX_KIND_ACT
           : cx_str_is(type, "chain")                              ? CX_KIND_RUN
                                                                   : CX_KIND_OBSERVE;
}

/* --- what a run says ------------------------------------------------------------------------- */

/* LangChain writes a message down with its class and the arguments of its constructor. */
static const cx_json *message_in(const cx_json *value, cx_str *out_role)
{
    static const struct {
        const char *name, *role;
    } roles[] = {{"human", "user"},
                 {"HumanMessage", "user"},
                 {"ai", "assistant"},
                 {"AIMessage", "assistant"},
                 {"AIMessageChunk", "assistant"},
                 {"system", "system"},
                 {"SystemMessage", "system"},
                 {"tool", "tool"},
                 {"ToolMessage", "tool"}};
    const cx_json *inside = object_at(value, "kwargs"), *id = cx_import_array_at(value, "id");
    if (inside == NULL)
        inside = object_at(value, "data");
    if (inside == NULL)
        inside = value;
    cx_str name = CX_JSON_GET_STR(inside, "type");
    *out_role = CX_JSON_GET_STR(inside, "role");
    if (id != NULL && id->count != 0 && id->items[id->count - 1].type == CX_JSON_STRING)
        name = cx_json_text(&id->items[id->count - 1]);
    if (name.size == 0)
        name = CX_JSON_GET_STR(value, "type");
    for (size_t i = 0; i < CX_COUNT_OF(roles) && out_role->size == 0; i++) {
        if (cx_str_is(name, roles[i].name))
            *out_role = cx_str_z(roles[i].role);
    }
    return inside;
}

static void say_given(cx_import_content *content, const cx_json *inputs)
{
    const cx_json *list = inputs == NULL ? NULL : cx_import_array_at(inputs, "messages");
    if (list != NULL && list->count == 1 && list->items[0].type == CX_JSON_ARRAY)
        list = &list->items[0];
    if (list == NULL) {
        cx_import_say_request(content, inputs);
        return;
    }
    uint32_t first = 0; /* what came after the model's own last message is new to it */
    for (uint32_t i = list->count; i-- > 0 && first == 0;) {
        cx_str role;
        (void)message_in(&list->items[i], &role);
        first = cx_import_is_model_role(role) ? i + 1 : 0;
    }
    for (uint32_t i = first; i < list->count; i++) {
        cx_str role;
        const cx_json *message = message_in(&list->items[i], &role);
        cx_import_say_input(content, role.size != 0 ? role : CX_STR("user"),
                            cx_import_plain_text(content, CX_JSON_GET(message, "content")));
    }
}

static void say_answer(cx_import_content *content, const cx_json *message)
{
    cx_str role;
    const cx_json *inside = message_in(message, &role);
    const cx_json *calls = cx_import_array_at(inside, "tool_calls");
    cx_import_say_blocks(content, CX_JSON_GET(inside, "content"));
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++) {
        const cx_json *function = object_at(&calls->items[i], "function");
        const cx_json *call = function != NULL ? function : &calls->items[i];
        const cx_json *args = CX_JSON_GET(call, "args");
        cx_import_say_call(content, CX_JSON_GET_STR(&calls->items[i], "id"),
                           CX_JSON_GET_STR(call, "name"),
                           args != NULL ? args : CX_JSON_GET(call, "arguments"));
    }
}

static void say_output(cx_import_content *content, const cx_json *outputs)
{
    const cx_json *list = outputs == NULL ? NULL : cx_import_array_at(outputs, "generations");
    if (outputs == NULL)
        return;
    if (list != NULL && list->count != 0 && list->items[0].type == CX_JSON_ARRAY)
        list = &list->items[0];
    if (list == NULL) {
        cx_import_say_response(content, outputs);
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *message = object_at(&list->items[i], "message");
        if (message != NULL)
            say_answer(content, message);
        else
            cx_import_say_text(content, CX_JSON_GET_STR(&list->items[i], "text"));
    }
}

/* {"output": X} and {"input": X} stand for X. */
static const cx_json *only_member(const cx_json *object, const char *name)
{
    const cx_json *found = object == NULL ? NULL : cx_json_get(object, cx_str_z(name));
    return found != NULL && object->count == 1 ? found : object;
}

static void langsmith_content(cx_import_content *content, const cx_json *raw)
{
    static const char *const costs[] = {"total_cost", "cost", NULL};
    cx_str type = CX_JSON_GET_STR(raw, "run_type"), error = CX_JSON_GET_STR(raw, "error");
    const cx_json *inputs = cx_import_not_null(CX_JSON_GET(raw, "inputs"));
    const cx_json *outputs = cx_import_not_null(CX_JSON_GET(raw, "outputs"));
    int64_t start, end;
    if (cx_str_is(type, "tool")) {
        cx_str id = id_of(raw), tool = CX_JSON_GET_STR(raw, "name");
        cx_import_say_call(content, id, tool, only_member(inputs, "input"));
        if (outputs != NULL || error.size != 0)
            cx_import_say_result(content, id, tool, error.size != 0,
                                 only_member(outputs, "output"));
    } else {
        if (kind_of(type) == CX_KIND_REASON)
            cx_import_say_role(content, CX_STR("assistant"));
        say_given(content, inputs);
        say_output(content, outputs);
    }
    const cx_json *extra = object_at(raw, "extra");
    const cx_import_graph graph = {.name = CX_JSON_GET_STR(raw, "name"),
                                   .metadata =
                                       extra == NULL ? NULL : CX_JSON_GET(extra, "metadata"),
                                   .input = inputs,
                                   .output = outputs};
    cx_import_say_graph(content, &graph);
    cx_import_say_error(content, error);
    cx_import_say_cost(content, cx_import_first_of(raw, costs));
    if (cx_import_time_iso(CX_JSON_GET_STR(raw, "start_time"), &start) &&
        cx_import_time_iso(CX_JSON_GET_STR(raw, "end_time"), &end))
        cx_import_say_duration(content, start, end);
}

/* --- records --------------------------------------------------------------------------------- */

/* Where a run does not count, its answer does: in itself, or in the message of LangChain. */
static const cx_json *usage_in(const cx_json *outputs)
{
    const cx_json *found = object_at(outputs, "usage_metadata");
    const cx_json *model = object_at(outputs, "llm_output");
    const cx_json *list = cx_import_array_at(outputs, "generations");
    if (list != NULL && list->count != 0 && list->items[0].type == CX_JSON_ARRAY)
        list = &list->items[0];
    const cx_json *first = list == NULL ? NULL : cx_import_first_object(list);
    const cx_json *message = first == NULL ? NULL : object_at(first, "message");
    const cx_json *inside = message == NULL ? NULL : object_at(message, "kwargs");
    if (found == NULL && inside != NULL)
        found = object_at(inside, "usage_metadata");
    if (found == NULL && model != NULL)
        found = object_at(model, "token_usage");
    return found;
}

static cx_status read_usage(cx_import_record *r, const cx_json *run, cx_err *err)
{
    static const char *const names[] = {"prompt_tokens", "completion_tokens", "total_tokens"};
    cx_json_list list = cx_json_list_begin(r->arena);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *count = cx_json_get(run, cx_str_z(names[i]));
        if (count != NULL && cx_json_is_number(count))
            cx_json_put(&list, names[i], *count);
    }
    cx_json *usage = CX_ARENA_NEW(r->arena, cx_json);
    const cx_json *outputs = object_at(run, "outputs");
    if (list.count == 0) { /* runs around others repeat what their children used */
        r->usage = outputs == NULL || r->kind != CX_KIND_REASON ? NULL : usage_in(outputs);
        return CX_SUCCESS;
    }
    if (usage == NULL)
        return cx_fail_nomem(err);
    r->usage = usage;
    return cx_json_list_end_object(&list, usage, err);
}

static cx_str model_of(const cx_json *run)
{
    static const char *const names[] = {"ls_model_name", "model_name", "model", NULL};
    const cx_json *extra = object_at(run, "extra");
    const cx_json *metadata = extra == NULL ? NULL : object_at(extra, "metadata");
    const cx_json *params = extra == NULL ? NULL : object_at(extra, "invocation_params");
    cx_str name = metadata == NULL ? (cx_str){NULL, 0} : cx_import_first_str(metadata, names);
    return name.size == 0 && params != NULL ? cx_import_first_str(params, names) : name;
}

static cx_status import_run(cx_import_sink *sink, const cx_json *run, const cx_json *raw,
                            cx_str parent, unsigned depth, cx_err *err)
{
    const cx_json *children = cx_import_array_at(run, "child_runs");
    cx_str type = CX_JSON_GET_STR(run, "run_type");
    if (!is_run(run))
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    cx_str id = id_of(run);
    bool outside =
        children != NULL && children->count != 0 && depth < CHILD_DEPTH_MAX && raw != NULL;
    if (outside) {
        static const char *const records[] = {"child_runs", NULL};
        cx_json *rest = CX_ARENA_NEW(sink->arena, cx_json);
        if (rest == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_import_without(run, records, sink->arena, rest, err));
        raw = rest;
    }
    cx_import_record *r = cx_import_begin(sink);
    r->raw = raw;
    r->kind = kind_of(type);
    r->src_id = id;
    r->src_parent = cx_import_scalar(CX_JSON_GET(run, "parent_run_id"));
    if (r->src_parent.size == 0)
        r->src_parent = parent;
    cx_import_define(r, RUN_SPACE, id, CX_DEFINE_FIRST);
    cx_import_refer(r, RUN_SPACE, r->src_parent, CX_REF_NAMED);
    r->under_file = r->src_parent.size == 0;
    r->agent = CX_JSON_GET_STR(run, "name");
    r->inherit_agent = r->src_parent.size != 0;
    r->fork = CX_IMPORT_FORK_NATURAL;
    cx_import_set_any_time(r, CX_JSON_GET(run, "start_time"));
    r->status = CX_JSON_GET_STR(run, "status");
    r->model = model_of(run);
    r->content = cx_import_not_null(CX_JSON_GET(run, "outputs"));
    CX_TRY(read_usage(r, run, err));
    cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(run, "name"));
    cx_import_field_str(r, CX_STR("type"), type);
    cx_import_field_str(r, CX_STR("trace_id"), CX_JSON_GET_STR(run, "trace_id"));
    if (r->kind == CX_KIND_ACT) {
        bool ok = CX_JSON_GET_STR(run, "error").size == 0;
        r->tool = CX_JSON_GET_STR(run, "name");
        r->call_id = id;
        if (ok && r->content == NULL)
            cx_import_call(r, CX_STR(""), id, r->tool, CX_JSON_GET(run, "inputs"));
        else
            cx_import_call_done(r, CX_STR(""), id, r->tool,
                                cx_import_not_null(CX_JSON_GET(run, "inputs")), ok, r->content);
    }
    CX_TRY(cx_import_end(sink, NULL, err));
    for (uint32_t i = 0; outside && i < children->count; i++)
        CX_TRY(import_run(sink, &children->items[i], &children->items[i], id, depth + 1, err));
    return CX_SUCCESS;
}

static cx_status langsmith_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"runs", NULL};
    const cx_json *runs = document->type == CX_JSON_ARRAY ? document : NULL;
    cx_json top;
    if (is_run(document))
        return import_run(sink, document, document, CX_STR(""), 0, err);
    if (document->type == CX_JSON_OBJECT) {
        runs = cx_import_array_at(document, "runs");
        if (runs != NULL) {
            CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
            CX_TRY(cx_import_top(sink, &top, err));
        }
    }
    if (runs == NULL)
        return cx_import_shape(err, "a list of runs, or an object with an array runs");
    for (uint32_t i = 0; i < runs->count; i++)
        CX_TRY(import_run(sink, &runs->items[i], &runs->items[i], CX_STR(""), 0, err));
    return CX_SUCCESS;
}

static cx_status langsmith_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    return import_run(sink, value, NULL, CX_STR(""), 0, err);
}

static int langsmith_detect(cx_bytes head, const cx_json *record)
{
    static const char type[] = "\"run_type\"", parent[] = "\"parent_run_id\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, type, sizeof type - 1) != NULL &&
                       memmem(head.data, head.size, parent, sizeof parent - 1) != NULL
                   ? 65
                   : 0;
    if (is_run(record))
        return 88;
    const cx_json *list =
        record->type == CX_JSON_ARRAY ? record : cx_import_array_at(record, "runs");
    const cx_json *first = list == NULL ? NULL : cx_import_first_object(list);
    return first != NULL && is_run(first) ? 88 : 0;
}

const cx_import_format cx_import_langsmith = {
    .info = {"langsmith", "LangSmith run exports",
             "[{\"id\",\"run_type\",\"parent_run_id\",\"inputs\",\"outputs\"}], {\"runs\"}, or "
             "JSON lines",
             false},
    .document = langsmith_document,
    .line = langsmith_line,
    .content = langsmith_content,
    .detect = langsmith_detect,
};
