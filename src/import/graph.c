/*
 * graph.c - the state of a LangGraph graph, as spans carry it (§1.15).
 *
 * LangGraph runs a node of the graph as a run of the node's name and marks everything inside of it
 * with `langgraph_node`, `langgraph_step` and more.  What such a run returns is written to the
 * state, key by key; the run of the whole graph begins with the keys that its caller gave.  How a
 * value joins what was there (a reducer) is not in a trace: a key shows what the step wrote.
 */
#include <string.h>

#include "import/gen_ai.h"

/* Instruments put the marks under these names. */
static const char *const prefixes[] = {"metadata.", "traceloop.association.properties.",
                                       "langsmith.metadata.", "langfuse.observation.metadata.",
                                       NULL};

static const char *const roots[] = {"LangGraph", "CompiledStateGraph", "LangGraph.workflow", NULL};

static const cx_json *object_in(cx_import_content *content, const cx_json *value)
{
    cx_json *decoded = CX_ARENA_NEW(content->arena, cx_json);
    if (value == NULL)
        return NULL;
    if (decoded == NULL) {
        content->failed = true;
        return NULL;
    }
    *decoded = *value;
    if (value->type == CX_JSON_STRING && !cx_import_decode_text(content, value, decoded))
        return NULL;
    return decoded->type == CX_JSON_OBJECT ? decoded : NULL;
}

/* Of one member the value, for wrappers such as {"outputs": X} and a Command's {"update": X}. */
static const cx_json *unwrapped(cx_import_content *content, const cx_json *object)
{
    static const char *const wrappers[] = {"outputs", "inputs", "update"};
    for (size_t i = 0; object != NULL && i < CX_COUNT_OF(wrappers); i++) {
        const cx_json *inside = cx_json_get(object, cx_str_z(wrappers[i]));
        bool command = cx_json_get(object, CX_STR("goto")) != NULL;
        bool traced = cx_json_get(object, CX_STR("kwargs")) != NULL ||
                      cx_json_get(object, CX_STR("tags")) != NULL || object->count == 1;
        if (inside != NULL && (i < 2 ? traced : command))
            return object_in(content, inside);
    }
    return object;
}

static bool is_one_of(cx_str text, const char *const *names)
{
    for (; *names != NULL; names++)
        if (cx_str_is(text, *names))
            return true;
    return false;
}

void cx_import_say_graph(cx_import_content *content, const cx_import_graph *graph)
{
    const cx_json *metadata = object_in(content, graph->metadata);
    cx_str node = graph->node;
    if (metadata != NULL && node.size == 0)
        node = CX_JSON_GET_STR(metadata, "langgraph_node");
    bool is_root = node.size == 0 && is_one_of(graph->name, roots);
    if (!is_root && (node.size == 0 || !cx_str_eq(node, graph->name)))
        return;
    const cx_json *written =
        unwrapped(content, object_in(content, is_root ? graph->input : graph->output));
    if (written == NULL || written->count == 0)
        return;
    content->graph = *written;
    content->has_graph = true;
}

/* An attribute of one of the names that instruments give a mark. */
static cx_str mark_of(const cx_import_span *span, const char *mark)
{
    cx_str text = {NULL, 0};
    for (size_t i = 0; prefixes[i] != NULL && text.size == 0; i++) {
        cx_str name = cx_arena_printf(span->arena, "%s%s", prefixes[i], mark);
        if (name.data != NULL)
            text = cx_import_attribute_str(span, name);
    }
    return text;
}

void cx_import_say_graph_span(cx_import_content *content, const cx_import_span *span)
{
    static const char *const metadata[] = {"metadata", NULL};
    static const char *const inputs[] = {"input.value", "traceloop.entity.input",
                                         "langfuse.observation.input", "gen_ai.prompt", NULL};
    static const char *const outputs[] = {"output.value", "traceloop.entity.output",
                                          "langfuse.observation.output", "gen_ai.completion", NULL};
    cx_str entity = cx_import_attribute_str(span, CX_STR("traceloop.entity.name"));
    const cx_import_graph graph = {
        .name = entity.size != 0 ? entity : CX_JSON_GET_STR(content->derived, "name"),
        .node = mark_of(span, "langgraph_node"),
        .metadata = cx_import_first_attribute(span, metadata),
        .input = cx_import_first_attribute(span, inputs),
        .output = cx_import_first_attribute(span, outputs)};
    cx_import_say_graph(content, &graph);
}
