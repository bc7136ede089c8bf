/*
 * calls.c - tools/call: what the gateway knows of the tool, the policy's decision, its entry, and
 * the answer when it is not to be.
 */
#include <string.h>

#include "gateway/gate_parts.h"

#define FOUND_MAX 6
#define LOOK_NS UINT64_C(250000000)
#define SECOND_NS UINT64_C(1000000000)
#define CALL_ID_MAX 128

/* --- policy ----------------------------------------------------------------------------------- */

static cx_status begin_session(cx_gateway *g, cx_home *home, cx_err *err)
{
    cx_live_outcome outcome;
    const cx_live_call call = {.agent = g->live.agent,
                               .event = CX_LIVE_START,
                               .event_name = CX_STR("gateway/start"),
                               .session = g->options->session,
                               .cwd = g->options->cwd,
                               .source = g->options->name,
                               .mcp_server = g->options->name};
    return cx_live_take_call(home, &g->live, &call, &g->turn, &outcome, err);
}

cx_status cx_gateway_read_policy(cx_gateway *g, cx_home *home, cx_live_policy *out, cx_err *err)
{
    bool found;
    CX_TRY(cx_live_session_policy(home, g->actor, &g->turn, out, &found, err));
    if (!found) {
        CX_TRY(begin_session(g, home, err));
        CX_TRY(cx_live_session_policy(home, g->actor, &g->turn, out, &found, err));
    }
    if (!found) { /* none can be read: cx_live_take_call says so with each call (L03) */
        memset(out, 0, sizeof *out);
        out->mode = CX_LIVE_ENFORCE;
    }
    g->mode = out->mode > g->live.mode ? out->mode : g->live.mode;
    return CX_SUCCESS;
}

cx_str cx_gateway_whole_name(cx_gateway *g, cx_str tool)
{
    return cx_arena_printf(&g->turn, "mcp__%.*s__%.*s", (int)g->options->name.size,
                           g->options->name.data, (int)tool.size, tool.data);
}

bool cx_gateway_hides(const cx_gateway *g, const cx_live_policy *policy, cx_str tool)
{
    cx_str server = g->options->name;
    for (size_t i = 0; i < g->options->hide.count; i++)
        if (cx_str_eq(g->options->hide.items[i], tool))
            return true;
    return cx_live_list_names_tool(g->options->hide, CX_STR(""), server, tool) ||
           cx_live_list_names_tool(policy->tools_hide, CX_STR(""), server, tool);
}

/* --- what is known of the call ---------------------------------------------------------------- */

typedef struct judging {
    cx_gateway *g;
    cx_home *home;
    const cx_gateway_message *message;
    cx_live_policy policy;
    cx_live_call call;
    cx_str tool;
    cx_gateway_tool *known; /* NULL: it was never listed */
    cx_live_effect found[FOUND_MAX];
    size_t found_count;
    bool again; /* it was held before */
    cx_live_outcome outcome;
} judging;

static void add_found(judging *j, cx_live_verdict verdict, const char *rule, cx_str why)
{
    CX_ASSERT(j->found_count < FOUND_MAX);
    j->found[j->found_count++] = (cx_live_effect){
        .kind = CX_LIVE_TOOL, .verdict = verdict, .rule = rule, .text = j->tool, .why = why};
}

static cx_status find_hidden(judging *j, cx_err *err)
{
    bool accepted = false;
    cx_gateway_tool *tool = j->known;
    if (cx_gateway_hides(j->g, &j->policy, j->tool)) {
        add_found(j, CX_LIVE_FORBIDDEN, "M02", CX_STR("an option or the policy hides this tool"));
        return CX_SUCCESS;
    }
    if (tool->rule == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_gateway_pins_is_accepted(j->home, &j->g->origin, j->tool, &tool->digests, &j->g->turn,
                                       &accepted, err));
    if (accepted)
        return cx_gateway_tool_hide(&j->g->tools, tool, NULL, CX_STR(""), err);
    add_found(j, CX_LIVE_FORBIDDEN, tool->rule, tool->why);
    return CX_SUCCESS;
}

/* A member that the schema says nothing about, and a reader without case takes for one of which it
 * does. */
static const cx_json *find_mistaken(const cx_json *input, const cx_gateway_tool *tool)
{
    for (uint32_t i = 0; i < input->count; i++) {
        cx_str name = cx_json_text(&input->members[i].name);
        for (size_t k = 0; k < tool->property_count; k++)
            if (cx_gateway_is_mistaken(name, tool->properties[k]))
                return &input->members[i].name;
    }
    return NULL;
}

static cx_status find_mismatch(judging *j, cx_err *err)
{
    static const cx_json empty = {.type = CX_JSON_OBJECT};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    cx_err problem;
    cx_str why;
    const cx_json *input = j->call.input == NULL ? &empty : j->call.input;
    how.errors_max = 1;
    const cx_json *mistaken = find_mistaken(input, j->known);
    if (mistaken != NULL) {
        why = cx_arena_printf(&j->g->turn,
                              "the argument \"%.*s\" differs from one of the schema in case only: "
                              "the server may take it for that one",
                              (int)mistaken->count, mistaken->text);
        add_found(j, CX_LIVE_FORBIDDEN, "M05", why);
        return why.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    if (j->known->schema == NULL) {
        why = cx_arena_printf(&j->g->turn, "its arguments cannot be checked: %.*s",
                              (int)j->known->schema_problem.size, j->known->schema_problem.data);
        add_found(j, CX_LIVE_UNLISTED, "M05", why);
        return why.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_status status =
        cx_schema_check(j->known->schema, input, &how, &j->g->turn, &report, &problem);
    if (cx_failed(status) && status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        why = cx_arena_printf(&j->g->turn, "its arguments cannot be checked: %s", problem.message);
    } else if (report.valid) {
        return CX_SUCCESS;
    } else {
        const cx_schema_error *first = report.error_count == 0 ? NULL : &report.errors[0];
        cx_str at = first == NULL ? CX_STR("") : first->instance;
        cx_str what = first == NULL ? CX_STR("they do not match") : first->message;
        why = cx_arena_printf(
            &j->g->turn, "the arguments do not match the schema that the server listed: %.*s: %.*s",
            (int)at.size, at.size == 0 ? "" : at.data, (int)what.size, what.data);
    }
    add_found(j, CX_LIVE_FORBIDDEN, "M05", why);
    return why.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status find_rate(judging *j, cx_err *err)
{
    const cx_io *io = j->g->options->io;
    for (size_t i = 0; i < j->policy.rate_count; i++) {
        const cx_live_rate *rate = &j->policy.rates[i];
        const cx_str_list name = {&rate->name, 1};
        bool within;
        if (!cx_live_list_names_tool(name, CX_STR(""), j->g->options->name, j->tool))
            continue;
        CX_TRY(cx_gateway_tool_rate(&j->g->tools, j->known, rate->per_minute, io->monotonic_ns(io),
                                    false, &within, err));
        if (within)
            continue;
        cx_str why = cx_arena_printf(&j->g->turn, "called %u times within a minute already",
                                     rate->per_minute);
        add_found(j, CX_LIVE_FORBIDDEN, "M06", why);
        return why.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    return CX_SUCCESS;
}

static cx_status find_out(judging *j, cx_err *err)
{
    j->known = cx_gateway_tools_find(&j->g->tools, j->tool);
    if (j->known == NULL) {
        add_found(j, CX_LIVE_FORBIDDEN, "M01",
                  CX_STR("the server has listed no such tool to this client"));
        return CX_SUCCESS;
    }
    CX_TRY(find_hidden(j, err));
    CX_TRY(find_mismatch(j, err));
    return find_rate(j, err);
}

/* Calls that pass count; a rate of a server counts each of its tools alone. */
static cx_status count_call(judging *j, cx_err *err)
{
    const cx_io *io = j->g->options->io;
    bool within;
    if (j->known == NULL || j->policy.rate_count == 0)
        return CX_SUCCESS;
    return cx_gateway_tool_rate(&j->g->tools, j->known, CX_LIVE_RATE_MAX, io->monotonic_ns(io),
                                true, &within, err);
}

/* --- the decision ----------------------------------------------------------------------------- */

/* The id under which the agent's hook knows the call, where it tells the server. */
static cx_str call_id(const cx_gateway_message *message)
{
    const cx_json *meta = CX_JSON_GET(message->params, "_meta");
    static const char *const names[] = {"claudecode/toolUseId", "callId"};
    for (size_t i = 0; i < CX_COUNT_OF(names) && meta != NULL; i++) {
        cx_str text = cx_json_get_str(meta, cx_str_z(names[i]));
        if (text.size != 0 && text.size <= CALL_ID_MAX)
            return text;
    }
    return message->id;
}

/* CX_E_FORMAT: what is wrong with the request. */
static cx_status read_call(judging *j, cx_err *err)
{
    static const char *const known[] = {"name", "arguments"};
    const cx_json *params = j->message->params;
    const cx_json *input = CX_JSON_GET(params, "arguments");
    const cx_json *mistaken = cx_gateway_mistaken_member(params, known, CX_COUNT_OF(known));
    j->tool = CX_JSON_GET_STR(params, "name");
    if (params == NULL || params->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "/params: expected an object");
    if (mistaken != NULL)
        return cx_fail(err, CX_E_FORMAT,
                       "/params/%.*s: expected no member that differs from \"name\" or "
                       "\"arguments\" in case only",
                       (int)mistaken->count, mistaken->text);
    if (j->tool.size == 0 || j->tool.size > CX_GATEWAY_TOOL_NAME_MAX)
        return cx_fail(err, CX_E_FORMAT, "/params/name: expected a text of 1 to 256 bytes");
    if (input != NULL && input->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "/params/arguments: found %s, expected an object",
                       cx_json_type_name(input));
    j->call = (cx_live_call){.agent = j->g->live.agent,
                             .event = CX_LIVE_BEFORE,
                             .event_name = CX_STR("tools/call"),
                             .session = j->g->options->session,
                             .cwd = j->g->options->cwd,
                             .id = call_id(j->message),
                             .tool = cx_gateway_whole_name(j->g, j->tool),
                             .input = input,
                             .mcp_server = j->g->options->name};
    if (j->call.tool.data == NULL)
        return cx_fail_nomem(err);
    return cx_live_input_digest(input, &j->call.input_sha256, &j->call.input_bytes, err);
}

/* G2: returns when the entry is on the disk. */
static cx_status decide(judging *j, cx_err *err)
{
    cx_gateway *g = j->g;
    CX_TRY(g->options->open_home(g->options->arg, &j->home, err));
    cx_status status = cx_gateway_read_policy(g, j->home, &j->policy, err);
    if (!cx_failed(status))
        status = find_out(j, err);
    if (!cx_failed(status)) {
        cx_live_options how = g->live;
        how.found = j->found;
        how.found_count = j->found_count;
        status = cx_live_take_call(j->home, &how, &j->call, &g->turn, &j->outcome, err);
    }
    g->options->close_home(g->options->arg, j->home);
    j->home = NULL;
    return status;
}

/* --- calls that wait -------------------------------------------------------------------------- */

void cx_gateway_held_remove(cx_gateway *g, size_t index)
{
    cx_gateway_held *held = &g->held[index];
    g->held_bytes -= held->size;
    cx_alloc_free(g->options->alloc, held->line, held->block_size);
    memmove(held, held + 1, (g->held_count - index - 1) * sizeof *held);
    g->held_count--;
}

static bool can_hold(const cx_gateway *g, cx_str raw)
{
    return g->live.wait_ms != 0 && g->held_count < CX_GATEWAY_HELD_MAX &&
           raw.size <= CX_GATEWAY_HELD_BYTES_MAX - g->held_bytes;
}

static cx_status hold_call(judging *j, cx_str raw, cx_err *err)
{
    cx_gateway *g = j->g;
    cx_gateway_held *held = &g->held[g->held_count];
    const cx_io *io = g->options->io;
    cx_str id = j->message->id;
    held->block_size = raw.size + id.size;
    held->line = cx_alloc_new(g->options->alloc, held->block_size);
    if (held->line == NULL)
        return cx_fail_nomem(err);
    memcpy(held->line, raw.data, raw.size);
    memcpy(held->line + raw.size, id.data, id.size);
    held->size = raw.size;
    held->id = cx_str_from(held->line + raw.size, id.size);
    held->seq = j->outcome.seq;
    held->end_ns = io->monotonic_ns(io) + g->live.wait_ms * UINT64_C(1000000);
    g->held_bytes += raw.size;
    g->held_count++;
    g->look_ns = io->monotonic_ns(io) + LOOK_NS;
    return CX_SUCCESS;
}

/* --- answers ---------------------------------------------------------------------------------- */

static cx_status refuse(judging *j, cx_err *err)
{
    cx_gateway *g = j->g;
    cx_str why = cx_live_reason(&j->call, &j->outcome, &g->turn);
    if (why.data == NULL)
        return cx_fail_nomem(err);
    if (j->known == NULL && strcmp(j->outcome.decision.rule, "M01") == 0) {
        cx_gateway_add_error(&g->out[CX_GATEWAY_CLIENT], j->message->id, CX_GATEWAY_E_PARAMS, why);
        return CX_SUCCESS;
    }
    cx_gateway_add_refusal(&g->out[CX_GATEWAY_CLIENT], j->message->id,
                           cx_gateway_is_stateless(j->message), why);
    return CX_SUCCESS;
}

static cx_status refuse_undecided(judging *j, const cx_err *why, cx_err *err)
{
    cx_gateway *g = j->g;
    cx_str text = cx_arena_printf(&g->turn, "cortex: no decision: %s", why->message);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_gateway_say(g, "a call of %.*s was refused: %s", (int)j->tool.size, j->tool.data,
                   why->message);
    cx_gateway_add_refusal(&g->out[CX_GATEWAY_CLIENT], j->message->id,
                           cx_gateway_is_stateless(j->message), text);
    return CX_SUCCESS;
}

static cx_status judge(judging *j, cx_str raw, cx_gateway_fate *out, cx_err *err)
{
    cx_gateway *g = j->g;
    cx_err why;
    *out = CX_GATEWAY_STOPS;
    cx_status status = read_call(j, &why);
    if (cx_failed(status) && status.code == CX_E_FORMAT) {
        cx_gateway_add_error(&g->out[CX_GATEWAY_CLIENT], j->message->id, CX_GATEWAY_E_PARAMS,
                             cx_str_z(why.message));
        return CX_SUCCESS;
    }
    if (!cx_failed(status))
        status = decide(j, &why);
    if (cx_failed(status) && status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return refuse_undecided(j, &why, err);
    if (j->outcome.answer == CX_LIVE_PASS) {
        CX_TRY(count_call(j, err));
        *out = CX_GATEWAY_PASSES;
        return cx_gateway_flight_add(g, &g->asked_server, CX_GATEWAY_FLIGHT_CALL, j->message->id,
                                     &j->call, err);
    }
    if (j->outcome.answer == CX_LIVE_ASKED && !j->again && can_hold(g, raw)) {
        cx_gateway_say(g, "a call waits for a person: cortex session approve %.*s",
                       (int)g->options->session.size, g->options->session.data);
        return hold_call(j, raw, err);
    }
    return refuse(j, err);
}

cx_status cx_gateway_call(cx_gateway *g, const cx_gateway_message *message, cx_str raw,
                          cx_gateway_fate *out, cx_err *err)
{
    judging j = {.g = g, .message = message};
    return judge(&j, raw, out, err);
}

/* --- the time afterwards ---------------------------------------------------------------------- */

cx_status cx_gateway_call_answer(cx_gateway *g, const cx_gateway_flight *flight,
                                 const cx_gateway_message *message, cx_gateway_fate *out,
                                 cx_err *err)
{
    cx_home *home;
    cx_err why;
    cx_live_outcome outcome;
    const cx_json *is_error = CX_JSON_GET(message->result, "isError");
    bool failed = message->result == NULL || (is_error != NULL && is_error->type == CX_JSON_TRUE);
    const cx_live_call call = {.agent = g->live.agent,
                               .event = failed ? CX_LIVE_FAILED : CX_LIVE_AFTER,
                               .event_name = CX_STR("tools/call"),
                               .session = g->options->session,
                               .cwd = g->options->cwd,
                               .id = flight->call_id,
                               .tool = flight->tool,
                               .input_sha256 = flight->input_sha256,
                               .mcp_server = g->options->name,
                               .output =
                                   message->result != NULL ? message->result : message->error};
    *out = CX_GATEWAY_PASSES;
    cx_status status = g->options->open_home(g->options->arg, &home, &why);
    if (!cx_failed(status)) {
        status = cx_live_take_call(home, &g->live, &call, &g->turn, &outcome, &why);
        g->options->close_home(g->options->arg, home);
    }
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    *out = CX_GATEWAY_STOPS; /* G2 */
    cx_gateway_say(g, "a result was kept back: %s", why.message);
    cx_str text = cx_arena_printf(
        &g->turn, "cortex: the call was made, but its result cannot be recorded: %s", why.message);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_gateway_add_error(&g->out[CX_GATEWAY_CLIENT], flight->id, CX_GATEWAY_E_INTERNAL, text);
    return CX_SUCCESS;
}

/* Between its receipt and now the server may have left everything else unanswered. */
static cx_status judge_held(judging *j, cx_str raw, cx_gateway_fate *out, cx_err *err)
{
    cx_gateway *g = j->g;
    if (cx_gateway_has_room(g, &g->asked_server))
        return judge(j, raw, out, err);
    cx_gateway_add_error(&g->out[CX_GATEWAY_CLIENT], j->message->id, CX_GATEWAY_E_BUSY,
                         CX_STR(CX_GATEWAY_BUSY));
    return CX_SUCCESS;
}

/* Decides a held call once more: what a person has said counts now. */
static cx_status retry_held(cx_gateway *g, size_t index, cx_err *err)
{
    cx_json root;
    cx_gateway_message message;
    cx_gateway_fate fate = CX_GATEWAY_STOPS;
    cx_arena_mark mark = cx_arena_mark_now(&g->turn);
    cx_str raw = cx_str_from(g->held[index].line, g->held[index].size);
    judging j = {.g = g, .message = &message, .again = true};
    cx_status status = cx_json_parse(&g->parser, raw, &g->turn, &root, err);
    if (!cx_failed(status))
        status = cx_gateway_message_read(&root, &g->turn, &message, err);
    if (!cx_failed(status))
        status = judge_held(&j, raw, &fate, err);
    if (!cx_failed(status) && fate == CX_GATEWAY_PASSES)
        cx_gateway_send(g, CX_GATEWAY_SERVER, raw);
    cx_gateway_held_remove(g, index);
    cx_arena_reset(&g->turn, mark);
    return status;
}

static bool is_still_asked(const cx_live_asked *asked, size_t count, uint64_t seq)
{
    for (size_t i = 0; i < count; i++)
        if (asked[i].seq == seq)
            return true;
    return false;
}

static cx_status read_asked(cx_gateway *g, const cx_live_asked **out, size_t *out_count,
                            cx_err *err)
{
    cx_home *home;
    CX_TRY(g->options->open_home(g->options->arg, &home, err));
    cx_status status = cx_live_session_asked(home, g->actor, &g->turn, out, out_count, err);
    g->options->close_home(g->options->arg, home);
    return status;
}

cx_status cx_gateway_tick(cx_gateway *g, cx_err *err)
{
    const cx_io *io = g->options->io;
    const cx_live_asked *asked = NULL;
    size_t count = 0;
    cx_err ignored;
    uint64_t now = io->monotonic_ns(io);
    if (g->held_count == 0 || now < g->look_ns)
        return CX_SUCCESS;
    g->look_ns = now + LOOK_NS;
    cx_arena_mark mark = cx_arena_mark_now(&g->turn);
    bool readable = !cx_failed(read_asked(g, &asked, &count, &ignored));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < g->held_count && !cx_failed(status);)
        if ((readable && !is_still_asked(asked, count, g->held[i].seq)) || now >= g->held[i].end_ns)
            status = retry_held(g, i, err);
        else
            i++;
    cx_arena_reset(&g->turn, mark);
    return status;
}

cx_status cx_gateway_client_gone(cx_gateway *g, cx_err *err)
{
    while (g->held_count != 0)
        CX_TRY(retry_held(g, 0, err));
    return CX_SUCCESS;
}

uint32_t cx_gateway_due_ms(const cx_gateway *g)
{
    const cx_io *io = g->options->io;
    uint64_t now = io->monotonic_ns(io);
    if (g->held_count == 0)
        return UINT32_MAX;
    return g->look_ns <= now ? 0 : (uint32_t)((g->look_ns - now) / 1000000u + 1);
}
