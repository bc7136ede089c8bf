/*
 * lists.c - the answer to tools/list: which tools there are, whether they are what they were, and
 * which of them the client gets to see.
 */
#include <string.h>

#include "gateway/gate_parts.h"
#include "gateway/span.h"

typedef struct listing {
    cx_gateway *g;
    const cx_json *array;
    cx_gateway_listed *tools; /* of those that have a name */
    size_t count;
    bool *hidden; /* by item of the array */
    bool any_hidden;
    cx_live_policy policy;
} listing;

static unsigned tricks_in(const cx_json *value)
{
    unsigned found = 0;
    if (value->type == CX_JSON_STRING)
        return cx_gateway_tricks(cx_json_text(value));
    for (uint32_t i = 0; value->type == CX_JSON_ARRAY && i < value->count; i++)
        found |= tricks_in(&value->items[i]);
    for (uint32_t i = 0; value->type == CX_JSON_OBJECT && i < value->count; i++)
        found |= tricks_in(&value->members[i].name) | tricks_in(&value->members[i].value);
    return found;
}

/* What a client without case would take for the list, or for a text of a tool, and no pin
 * covers. */
static cx_status check_names(const cx_json *object, cx_err *err)
{
    static const char *const known[] = {"tools",       "name",         "title",      "description",
                                        "inputSchema", "outputSchema", "annotations"};
    const cx_json *mistaken = cx_gateway_mistaken_member(object, known, CX_COUNT_OF(known));
    if (mistaken == NULL)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_FORMAT,
                   "it has the member \"%.*s\", which differs from one of MCP in case only",
                   mistaken->count > 100 ? 100 : (int)mistaken->count, mistaken->text);
}

/* Items that are no tool pass when nothing is hidden; they have no name to be called by. */
static cx_status read_tools(listing *l, cx_err *err)
{
    cx_gateway *g = l->g;
    if (l->array->count > CX_GATEWAY_TOOLS_MAX)
        return cx_fail(err, CX_E_LIMIT, "it has %u tools, more than %d", l->array->count,
                       CX_GATEWAY_TOOLS_MAX);
    l->tools = CX_ARENA_ARRAY(&g->turn, cx_gateway_listed, l->array->count + 1);
    l->hidden = CX_ARENA_ARRAY(&g->turn, bool, l->array->count + 1);
    if (l->tools == NULL || l->hidden == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < l->array->count; i++) {
        const cx_json *tool = &l->array->items[i];
        cx_str name = CX_JSON_GET_STR(tool, "name");
        l->hidden[i] = false;
        if (name.size == 0 || name.size > CX_GATEWAY_TOOL_NAME_MAX)
            return cx_fail(err, CX_E_FORMAT,
                           "tool %u of the list: /name: expected a text of 1 to 256 bytes", i + 1);
        CX_TRY(check_names(tool, err));
        cx_gateway_listed *listed = &l->tools[l->count++];
        memset(listed, 0, sizeof *listed);
        listed->tool = tool;
        listed->name = name;
        listed->tricks = tricks_in(tool);
        for (size_t k = 0; k + 1 < l->count && !listed->repeated; k++)
            listed->repeated = cx_str_eq(l->tools[k].name, name);
        CX_TRY(cx_gateway_tool_digest(tool, &g->turn, &listed->digests, err));
    }
    return CX_SUCCESS;
}

/* --- why a tool is hidden --------------------------------------------------------------------- */

static const char *changed_part(const cx_gateway_listed *tool)
{
    if (!cx_digest_eq(&tool->pinned.description, &tool->digests.description))
        return "description";
    if (!cx_digest_eq(&tool->pinned.schema, &tool->digests.schema))
        return "schema";
    return "object (a member as _meta, icons or execution)";
}

static cx_str why_not(listing *l, const cx_gateway_listed *tool, const char **out_rule)
{
    cx_gateway *g = l->g;
    cx_str name = g->options->name;
    const char *what = changed_part(tool);
    *out_rule = "M03";
    switch (tool->state) {
    case CX_GATEWAY_PIN_NEW:
    case CX_GATEWAY_PIN_SAME: break;
    case CX_GATEWAY_PIN_CHANGED:
        return cx_arena_printf(&g->turn,
                               "its %s changed since it was first seen; a person can look at it "
                               "and run: cortex mcp-gateway pin --accept %.*s",
                               what, (int)name.size, name.data);
    case CX_GATEWAY_PIN_TRICK:
        *out_rule = "M04";
        return cx_arena_printf(&g->turn,
                               "its description has characters that a person does not see; "
                               "after a look at it: cortex mcp-gateway pin --accept %.*s",
                               (int)name.size, name.data);
    case CX_GATEWAY_PIN_REPEATED:
        *out_rule = "M03";
        return cx_arena_printf(&g->turn, "the server lists two tools of this name");
    }
    *out_rule = NULL;
    return CX_STR("");
}

/* Called for what is not hidden, too, so that a finding is said in every mode. */
static cx_status apply_state(listing *l, uint32_t index, cx_err *err)
{
    cx_gateway *g = l->g;
    cx_gateway_listed *listed = &l->tools[index];
    cx_gateway_tool *known;
    const char *rule;
    cx_str why = why_not(l, listed, &rule);
    if (why.data == NULL)
        return cx_fail_nomem(err);
    bool by_name = cx_gateway_hides(g, &l->policy, listed->name);
    bool hides = g->mode != CX_LIVE_OBSERVE;
    if (rule != NULL && listed->is_news)
        cx_gateway_say(g, "the tool %.*s of the server %.*s%s: %.*s", (int)listed->name.size,
                       listed->name.data, (int)g->options->name.size, g->options->name.data,
                       hides ? " is hidden" : "", (int)why.size, why.data);
    l->hidden[index] = by_name || (rule != NULL && hides);
    l->any_hidden |= l->hidden[index];
    if (listed->repeated)
        return CX_SUCCESS; /* what is known of the first one holds */
    CX_TRY(
        cx_gateway_tools_put(&g->tools, listed->name, listed->tool, &listed->digests, &known, err));
    return cx_gateway_tool_hide(&g->tools, known, rule, why, err);
}

/* --- the list --------------------------------------------------------------------------------- */

static cx_status check_pins(listing *l, cx_err *err)
{
    cx_home *home;
    cx_gateway *g = l->g;
    if (g->list_entries >= CX_GATEWAY_LISTS_MAX)
        return cx_fail(err, CX_E_LIMIT, "the server changed its tools more than %d times",
                       CX_GATEWAY_LISTS_MAX);
    CX_TRY(g->options->open_home(g->options->arg, &home, err));
    cx_status status = cx_gateway_read_policy(g, home, &l->policy, err);
    if (!cx_failed(status))
        status = cx_gateway_pins_check(home, &g->origin, l->tools, l->count,
                                       g->mode != CX_LIVE_OBSERVE, err);
    g->options->close_home(g->options->arg, home);
    for (size_t i = 0; i < l->count && !cx_failed(status); i++)
        if (l->tools[i].is_news) {
            g->list_entries++;
            break;
        }
    return status;
}

/* G1: the list without what is hidden, every other byte as it came. */
static cx_status send_rest(listing *l, cx_str raw, cx_err *err)
{
    cx_str result, array, name, item;
    cx_buf *out = &l->g->out[CX_GATEWAY_CLIENT];
    size_t offset = 0, index = 0;
    bool first = true;
    if (!cx_gateway_span_member(raw, "result", &result) ||
        !cx_gateway_span_member(result, "tools", &array))
        return cx_fail(err, CX_E_FORMAT, "the list of tools is not where it was");
    cx_buf_add(out, raw.data, (size_t)(array.data - raw.data));
    cx_buf_add_z(out, "[");
    while (cx_gateway_span_next(array, &offset, &name, &item)) {
        CX_ASSERT(index < l->array->count);
        if (l->hidden[index++])
            continue;
        if (!first)
            cx_buf_add_z(out, ",");
        first = false;
        cx_buf_add_str(out, item);
    }
    cx_buf_add_z(out, "]");
    const char *after = array.data + array.size;
    cx_buf_add(out, after, (size_t)(raw.data + raw.size - after));
    cx_buf_add_z(out, "\n");
    return CX_SUCCESS;
}

static cx_status work(listing *l, const cx_json *result, cx_err *err)
{
    CX_TRY(check_names(result, err));
    if (l->array == NULL) /* no list, so that nothing can be called by it */
        return CX_SUCCESS;
    CX_TRY(read_tools(l, err));
    CX_TRY(check_pins(l, err));
    for (uint32_t i = 0; i < l->count; i++)
        CX_TRY(apply_state(l, i, err));
    return CX_SUCCESS;
}

cx_status cx_gateway_list_answer(cx_gateway *g, const cx_gateway_message *message, cx_str raw,
                                 cx_gateway_fate *out, cx_err *err)
{
    listing l = {.g = g};
    cx_err why;
    *out = CX_GATEWAY_PASSES;
    if (message->result == NULL)
        return CX_SUCCESS;
    l.array = cx_json_get_typed(message->result, CX_STR("tools"), CX_JSON_ARRAY);
    cx_status status = work(&l, message->result, &why);
    *out = CX_GATEWAY_STOPS;
    if (cx_failed(status)) {
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        cx_gateway_say(g, "a list of tools was kept back: %s", why.message);
        cx_str text =
            cx_arena_printf(&g->turn, "cortex: the list of tools was kept back: %s", why.message);
        if (text.data == NULL)
            return cx_fail_nomem(err);
        cx_gateway_add_error(&g->out[CX_GATEWAY_CLIENT], message->id, CX_GATEWAY_E_INTERNAL, text);
        return CX_SUCCESS;
    }
    if (l.any_hidden)
        return send_rest(&l, raw, err);
    *out = CX_GATEWAY_PASSES;
    return CX_SUCCESS;
}
