/*
 * mcpd_tools.c - the table of tools: each has one or more GET routes (variants), of which the
 * arguments choose one.
 *
 * Adding a tool touches two places: a row of `tools` here, and the row of docs/mcp.md that
 * tools/check_docs.py compares with it.
 *
 *   T1  A tool's arguments are the captures and parameters of its routes; the first route that
 *       knows all given arguments, and whose required ones are given, is called.
 *   T2  Arguments become one segment or one value of the target, all but unreserved characters as
 *       %XX: no argument can select another route.
 */
#include <stdarg.h>
#include <stdio.h>

#include "server/mcp/mcpd_parts.h"
#include "server/param.h"
#include "server/route.h"

#define LATTICE "/api/v1/lattice/{branch...}"
#define TRACES "/api/v1/covenant/traces"
#define VARIANTS(list) .variants = (list), .variant_count = CX_COUNT_OF(list)
#define ARGS_MAX 32

/* --- the table -------------------------------------------------------------------------------- */

static const cx_mcpd_variant verify_variants[] = {
    {"/api/v1/runs/{id}/verify", "run_id", NULL, NULL, NULL},
    {"/api/v1/covenant/chain/{agent_id_hash}", "agent_id_hash", NULL, NULL, NULL},
    {LATTICE "/verify", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant why_variants[] = {{"/api/v1/why", NULL, NULL, NULL, NULL},
                                               {LATTICE "/why", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant state_variants[] = {{LATTICE "/state", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant bisect_variants[] = {{LATTICE "/bisect", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant heads_variants[] = {{LATTICE "/heads", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant diff_variants[] = {
    {"/api/v1/runs/{id}/diff", "run_id", NULL, NULL, NULL},
    {LATTICE "/compare", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant search_variants[] = {{"/api/v1/memories", NULL, NULL, NULL, NULL},
                                                  {TRACES, NULL, NULL, NULL, NULL}};
static const cx_mcpd_variant prove_variants[] = {
    {"/api/v1/proofs/memory", NULL, NULL, NULL, "raw"},
    {"/api/v1/proofs/entry", NULL, NULL, NULL, "raw"},
    {"/api/v1/proofs/consistency", NULL, NULL, NULL, "raw"}};
static const cx_mcpd_variant show_variants[] = {
    {"/api/v1/objects", NULL, NULL, NULL, NULL},

    {"/api/v1/runs/{id}/reports/{name}", "run_id", "report", NULL, NULL},
    {"/api/v1/runs/{id}", "run_id", NULL, NULL, NULL},
    {TRACES "/{trace_id}", "trace_id", NULL, NULL, "raw"},
    {"/api/v1/memories/{id}", "memory", NULL, NULL, NULL},
    {LATTICE "/show", "branch", NULL, "all", NULL}};
static const cx_mcpd_variant runs_variants[] = {{"/api/v1/runs", NULL, NULL, NULL, NULL}};
static const cx_mcpd_variant events_variants[] = {
    {"/api/v1/runs/{id}/events", "run_id", NULL, NULL, NULL}};
static const cx_mcpd_variant roots_variants[] = {{"/api/v1/roots", NULL, NULL, NULL, NULL}};

static const cx_mcpd_variant scopes_variants[] = {
    {"/api/v1/scopes/{id}", "scope_id", NULL, NULL, NULL},
    {"/api/v1/scopes", NULL, NULL, NULL, NULL}};

static const cx_mcpd_variant seed_variants[] = {{"/api/v1/seed", NULL, NULL, NULL, NULL}};

static const cx_mcpd_tool tools[] = {
    {"verify", "Verify a history",
     "Checks whether recorded history holds: with run_id a governed run's sealed bundle, with "
     "agent_id_hash that agent's audit chain, else every hash, link and branch of a lattice branch "
     "(default all). The verdict is holds, broken or indeterminate, with each finding.",
     VARIANTS(verify_variants)},
    {"why", "Trace a value to its origins",
     "With id (FILE:LINE, a commit, a run, a trace, a memory, ..): what it came from: the commit "
     "that wrote the line, the governed run, its contract and gates, the signed decisions and "
     "memories it used, each step with a verdict. With node and key: every recorded change that "
     "led to that value in an agent's memory or beliefs.",
     VARIANTS(why_variants)},
    {"state", "What an agent knew",
     "What an agent knew and believed at a node of the lattice, after its own changes and merges.",
     VARIANTS(state_variants)},
    {"diff", "Compare two agents, or show a patch",
     "With run_id: the patch of a governed run. With a and b: where two agents' histories diverge "
     "and how their states differ.",
     VARIANTS(diff_variants)},
    {"search", "Find traces or memories",
     "With actor: that actor's memories, by words (full-text), text, type and tag. Without: signed "
     "traces, newest "
     "first, by agent, action, time, scores or words of the rationale. limit and cursor (or after) "
     "page.",
     VARIANTS(search_variants)},
    {"prove", "Make a proof",
     "A proof that others can check offline with cortex-verify, as base64. With actor and uri: "
     "that "
     "memories or edges are (absent: are not) in a snapshot; with actor and seq: that an entry is "
     "in the journal; with actor, from and to: that the journal only grew.",
     VARIANTS(prove_variants)},
    {"show", "Show one object",
     "One object in full: with id any object by its id, hash, URI or root, with its references; or "
     "a governed run (run_id, or one of its reports with report), a signed trace (trace_id), a "
     "memory (actor and memory), a node of the lattice (node).",
     VARIANTS(show_variants)},
    {"bisect", "Find when a condition became true",
     "The first node of an agent's history at which a predicate over its state holds, such as "
     "/memory/refund_limit>500.",
     VARIANTS(bisect_variants)},
    {"heads", "Agents and their newest nodes",
     "Each agent of a lattice branch with its newest node: the start of most queries. branch is "
     "agent/AGENT_ID_HASH for one agent's traces, run/RUN_ID for a governed run, default all "
     "recorded traces.",
     VARIANTS(heads_variants)},
    {"runs", "List governed runs",
     "Governed runs of the repository, newest first, with state and result.",
     VARIANTS(runs_variants)},
    {"events", "Events of a governed run", "The events of a governed run, in order.",
     VARIANTS(events_variants)},
    {"roots", "Roots of the ledger",
     "The actors of the ledger and the 32-byte root hashes over all of their entries, memories and "
     "edges.",
     VARIANTS(roots_variants)},
    {"seed", "Seed of a compilation",
     "The D11 seed: one hash of an intent, an actor, its overall root, a method's digest and a "
     "model. The same inputs over the same state give the same seed.",
     VARIANTS(seed_variants)},
    {"scopes", "Scopes that were granted to you",
     "The scopes that were sent to the agent that calls: whose memories each opens, until when, "
     "and "
     "whether they may be written. With scope_id one of them with its bytes.",
     VARIANTS(scopes_variants), .needs = CX_SCOPE_MEMORY_SCOPED},
};

static const struct captured {
    const char *name, *help;
} captured[] = {
    {"branch",
     "agent/AGENT_ID_HASH, run/RUN_ID, run/RUN_ID/TASK, otel/TRACE_ID, session/ID, or all (the "
     "default): all signed traces."},
    {"run_id", "A governed run, such as the tool runs lists."},
    {"agent_id_hash", "The agent."},
    {"trace_id", "The trace."},
    {"memory", "A memory's URI or ULID."},
    {"scope_id", "The id of a scope, 64 hex digits, as the list has it."},
    {"report", "The name of a report of the run, such as gates.json."},
};

/* Arguments of every tool. */
const cx_route_param cx_mcpd_shown_params[CX_MCPD_SHOWN_ARGS] = {
    {.name = "from_byte",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .help = "Show the answer from this byte on: next_byte of a truncated answer."},
    {.name = "max_bytes",
     .type = CX_PARAM_COUNT,
     .min = CX_MCPD_SHOWN_MIN,
     .max = CX_MCPD_SHOWN_MAX,
     .help = "Maximum bytes of the answer to show; default 40000."},
};

/* --- routes ----------------------------------------------------------------------------------- */

const cx_route *cx_mcpd_route_of(const cx_mcpd_variant *w)
{
    const cx_route *found = NULL;
    for (size_t i = 0; i < cx_route_count && found == NULL; i++)
        if (strcmp(cx_routes[i].path, w->route) == 0 && strcmp(cx_routes[i].method, "GET") == 0)
            found = &cx_routes[i];
    CX_ASSERT(found != NULL); /* each way is a route of the table */
    return found;
}

static bool is_named(cx_str name, const char *word)
{
    return word != NULL && cx_str_is(name, word);
}

/* A parameter of the route that is an argument; NULL when there is no such parameter. */
const cx_route_param *cx_mcpd_param_of(const cx_mcpd_variant *w, cx_str name)
{
    const cx_route *route = cx_mcpd_route_of(w);
    for (size_t i = 0; i < route->param_count; i++)
        if (cx_str_is(name, route->params[i].name) && !is_named(name, w->leave_out))
            return &route->params[i];
    return NULL;
}

bool cx_mcpd_is_shown_arg(cx_str name)
{
    return cx_str_is(name, cx_mcpd_shown_params[0].name) ||
           cx_str_is(name, cx_mcpd_shown_params[1].name);
}

bool cx_mcpd_variant_knows(const cx_mcpd_variant *w, cx_str name)
{
    return is_named(name, w->capture) || is_named(name, w->capture2) ||
           cx_mcpd_param_of(w, name) != NULL;
}

/* T1: a required argument that is missing; NULL when there is none. */
const char *cx_mcpd_variant_lacks(const cx_mcpd_variant *w, const cx_json *arguments)
{
    const cx_route *route = cx_mcpd_route_of(w);
    if (w->capture != NULL && w->otherwise == NULL &&
        cx_json_get(arguments, cx_str_z(w->capture)) == NULL)
        return w->capture;
    if (w->capture2 != NULL && cx_json_get(arguments, cx_str_z(w->capture2)) == NULL)
        return w->capture2;
    for (size_t i = 0; i < route->param_count; i++)
        if (route->params[i].required &&
            cx_json_get(arguments, cx_str_z(route->params[i].name)) == NULL)
            return route->params[i].name;
    return NULL;
}

const cx_mcpd_tool *cx_mcpd_find_tool(cx_str name)
{
    for (size_t i = 0; i < CX_COUNT_OF(tools); i++)
        if (cx_str_is(name, tools[i].name))
            return &tools[i];
    return NULL;
}

/* --- tools/list ------------------------------------------------------------------------------- */

typedef struct schema {
    cx_buf *out;
    const char *names[ARGS_MAX]; /* written already */
    size_t count;
} schema;

/* Begins an argument; false when another way of the tool had it. */
static bool begin_argument(schema *s, const char *name, const char *help)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->names[i], name) == 0)
            return false;
    CX_ASSERT(s->count < ARGS_MAX);
    s->names[s->count++] = name;
    if (s->count != 1)
        cx_buf_add_byte(s->out, ',');
    cx_json_write_str(s->out, cx_str_z(name), CX_JSON_PY_COMPACT);
    cx_buf_add_z(s->out, ":{\"description\":");
    cx_json_write_str(s->out, cx_str_z(help), CX_JSON_PY_COMPACT);
    cx_buf_add_byte(s->out, ',');
    return true;
}

static void add_captured(schema *s, const char *name)
{
    const char *help = "";
    if (name == NULL)
        return;
    for (size_t i = 0; i < CX_COUNT_OF(captured); i++)
        if (strcmp(captured[i].name, name) == 0)
            help = captured[i].help;
    if (begin_argument(s, name, help))
        cx_buf_add_z(s->out, "\"minLength\":1,\"type\":\"string\"}");
}

static void add_param(schema *s, const cx_route_param *param)
{
    if (!begin_argument(s, param->name, param->help))
        return;
    cx_param_schema(param, s->out);
    cx_buf_add_byte(s->out, '}');
}

static void add_input_schema(const cx_mcpd_tool *t, cx_buf *out)
{
    schema s = {.out = out};
    cx_buf_add_z(out, "{\"additionalProperties\":false,\"properties\":{");
    for (size_t i = 0; i < t->variant_count; i++) {
        const cx_route *route = cx_mcpd_route_of(&t->variants[i]);
        add_captured(&s, t->variants[i].capture);
        add_captured(&s, t->variants[i].capture2);
        for (size_t j = 0; j < route->param_count; j++)
            if (cx_mcpd_param_of(&t->variants[i], cx_str_z(route->params[j].name)) != NULL)
                add_param(&s, &route->params[j]);
    }
    for (size_t i = 0; i < CX_MCPD_SHOWN_ARGS; i++)
        add_param(&s, &cx_mcpd_shown_params[i]);
    cx_buf_add_z(out, "},\"required\":[");
    /* With several variants, the required arguments depend on the variant, and the description
     * lists them. */
    const cx_mcpd_variant *only = &t->variants[0];
    size_t count = 0;
    if (t->variant_count == 1 && only->capture != NULL && only->otherwise == NULL)
        cx_buf_printf(out, "%s\"%s\"", count++ == 0 ? "" : ",", only->capture);
    for (size_t i = 0; t->variant_count == 1 && i < cx_mcpd_route_of(only)->param_count; i++)
        if (cx_mcpd_route_of(only)->params[i].required)
            cx_buf_printf(out, "%s\"%s\"", count++ == 0 ? "" : ",",
                          cx_mcpd_route_of(only)->params[i].name);
    cx_buf_add_z(out, "],\"type\":\"object\"}");
}

const char cx_mcpd_output_schema[] =
    "{\"properties\":{\"answer\":{\"description\":\"The whole answer, when it is JSON and nothing "
    "was "
    "cut.\"},\"from_byte\":{\"minimum\":0,\"type\":\"integer\"},\"next_byte\":{\"description\":"
    "\"Where to continue when the answer was "
    "truncated.\",\"minimum\":0,\"type\":\"integer\"},\"part\":{\"description\":\"What is shown, "
    "when it is not in "
    "answer.\",\"type\":\"string\"},\"total_bytes\":{\"minimum\":0,\"type\":\"integer\"},"
    "\"truncated\":{\"type\":\"boolean\"}},\"required\":[\"from_byte\",\"total_bytes\","
    "\"truncated\"],\"type\":\"object\"}";

static void add_tool(const cx_mcpd_tool *t, cx_mcpd_version version, cx_buf *out)
{
    cx_buf_add_byte(out, '{');
    if (version >= CX_MCPD_2025_03_26) {
        cx_buf_add_z(out, "\"annotations\":{\"destructiveHint\":false,\"idempotentHint\":true,"
                          "\"openWorldHint\":false,\"readOnlyHint\":true,\"title\":");
        cx_json_write_str(out, cx_str_z(t->title), CX_JSON_PY_COMPACT);
        cx_buf_add_z(out, "},");
    }
    cx_buf_add_z(out, "\"description\":");
    cx_json_write_str(out, cx_str_z(t->about), CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, ",\"inputSchema\":");
    add_input_schema(t, out);
    cx_buf_printf(out, ",\"name\":\"%s\"", t->name);
    if (version >= CX_MCPD_2025_06_18) {
        cx_buf_printf(out, ",\"outputSchema\":%s,\"title\":", cx_mcpd_output_schema);
        cx_json_write_str(out, cx_str_z(t->title), CX_JSON_PY_COMPACT);
    }
    cx_buf_add_byte(out, '}');
}

cx_status cx_mcpd_tools_list(cx_mcpd_call *call, cx_err *err)
{
    (void)err;
    if (!cx_mcpd_first_page(call))
        return CX_SUCCESS;
    cx_buf_add_z(call->result, "{\"tools\":[");
    for (size_t i = 0; i < CX_COUNT_OF(tools); i++) {
        if (tools[i].needs != 0 && (tools[i].needs & call->host->scopes) == 0)
            continue;
        if (i != 0)
            cx_buf_add_byte(call->result, ',');
        add_tool(&tools[i], call->version, call->result);
    }
    cx_mcpd_add_write_tools(call->host, call->version, call->result);
    cx_buf_add_z(call->result, "]}");
    return CX_SUCCESS;
}
