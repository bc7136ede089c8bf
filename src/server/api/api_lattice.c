/*
 * api_lattice.c - questions about recorded traces as a history, with the answers of
 * `cortex lattice` --json (lattice.md §8).
 *
 * The branch is "agent/<agent_id_hash>", "all" for everything that is recorded, or one of
 * external.h.
 */
#include "lattice/api.h"
#include "provenance/api.h"
#include "server/feed/external.h"
#include "server/route.h"
#include "server/feed/runs.h"

/* A history longer than this is not loaded for a request. */
#define NODES_MAX 2000000
/* Nor one that was received in more than that many bytes of external requests. */
#define EXTERNAL_BYTES_MAX ((size_t)256 << 20)

typedef struct question {
    cx_call *call;
    cx_buf lines; /* the lattice borrows from them */
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_states *states;
    cx_state_options state_options;
    cx_agent_role *roles;
    size_t role_count;
    cx_answer_options answer;
    cx_node targets[2];
    size_t target_count;
} question;

typedef struct question_kind {
    bool states;
    bool node;
    bool sides;
    cx_status (*answer)(question *q, cx_err *err);
} question_kind;

/* --- what is meant ---------------------------------------------------------------------------- */

static cx_status find_node(question *q, cx_str name, cx_err *err)
{
    cx_node node;
    cx_lattice_node_info info;
    CX_TRY(cx_lattice_resolve(q->lattice, name, &node, err));
    cx_lattice_node(q->lattice, node, &info);
    if (!info.in_graph)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoNode", CX_NO_OFFSET,
                          "this node is unusable or repeated, and is in no history");
    q->targets[q->target_count++] = node;
    return CX_SUCCESS;
}

/* An agent, for its newest node, or a node. */
static cx_status find_side(question *q, const char *param, cx_err *err)
{
    cx_str name = cx_call_text(q->call, param);
    cx_str head = cx_arena_printf(q->call->arena, "@%.*s", (int)name.size, name.data);
    cx_node node;
    if (head.data == NULL)
        return cx_fail_nomem(err);
    bool is_agent = !cx_failed(cx_lattice_resolve(q->lattice, head, &node, NULL));
    return find_node(q, is_agent ? head : name, err);
}

/* AGENT=NUMBER */
static cx_status parse_agent_priority(question *q, cx_str text, cx_agent_priority *out, cx_err *err)
{
    cx_json number;
    size_t equals = text.size;
    while (equals > 0 && text.data[equals - 1] != '=')
        equals--;
    if (equals < 2 ||
        cx_failed(cx_json_parse_text(cx_str_from(text.data + equals, text.size - equals),
                                     q->call->arena, &number, NULL)) ||
        !cx_json_double(&number, &out->priority))
        return cx_fail(err, CX_E_USAGE, "priority: expected AGENT=NUMBER");
    out->agent = cx_str_from(text.data, equals - 1);
    return CX_SUCCESS;
}

/* AGENT=ROLE */
static cx_status parse_agent_role(cx_str text, cx_agent_role *out, cx_err *err)
{
    size_t equals = text.size;
    while (equals > 0 && text.data[equals - 1] != '=')
        equals--;
    if (equals < 2 || equals == text.size)
        return cx_fail(err, CX_E_USAGE, "role: expected AGENT=ROLE");
    *out = (cx_agent_role){cx_str_from(text.data, equals - 1),
                           cx_str_from(text.data + equals, text.size - equals)};
    return CX_SUCCESS;
}

static cx_status read_state_options(question *q, cx_err *err)
{
    static const cx_merge_strategy strategies[] = {CX_MERGE_LWW, CX_MERGE_CONFIDENCE,
                                                   CX_MERGE_POLICY, CX_MERGE_MANUAL};
    const cx_target *target = &q->call->target;
    const cx_param *strategy = cx_call_param(q->call, "strategy");
    const cx_param *base = cx_call_param(q->call, "base");
    if (strategy->given)
        q->state_options.strategy = strategies[strategy->choice];
    q->state_options.base_none = base->given && base->choice == 1;
    cx_agent_priority *list =
        CX_ARENA_ARRAY(q->call->arena, cx_agent_priority, target->param_count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    q->state_options.priorities = list;
    q->roles = CX_ARENA_ARRAY(q->call->arena, cx_agent_role, target->param_count + 1);
    if (q->roles == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < target->param_count; i++)
        if (cx_str_is(target->params[i].name, "priority"))
            CX_TRY(parse_agent_priority(q, target->params[i].value,
                                        &list[q->state_options.priority_count++], err));
        else if (cx_str_is(target->params[i].name, "role"))
            CX_TRY(parse_agent_role(target->params[i].value, &q->roles[q->role_count++], err));
    return CX_SUCCESS;
}

/* --- runs ------------------------------------------------------------------------------------- */

/* "<run_id>", or "<run_id>/<task id or governor>". */
static cx_status open_run(question *q, cx_str name, const cx_lattice_options *options, cx_err *err)
{
    const char *slash = memchr(name.data, '/', name.size);
    size_t size = slash == NULL ? name.size : (size_t)(slash - name.data);
    cx_str branch =
        slash == NULL ? (cx_str){NULL, 0} : cx_str_from(slash + 1, name.size - size - 1);
    cx_runs *runs;
    cx_run_store store;
    cx_run_bundle *bundle = NULL;
    cx_bytes events;
    /* A token that may only read traces is not shown what runs did. */
    if ((q->call->token.scopes & CX_SCOPE_RUN_READ) == 0)
        return cx_fail(err, CX_E_DENIED, "this needs a token with the scope run:read");
    CX_TRY(cx_api_runs_of(q->call, &runs, err));
    CX_TRY(cx_runs_store(runs, &store, err));
    CX_TRY(cx_run_view_open(&store, cx_str_from(name.data, size), &bundle, err));
    cx_status status =
        cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, err);
    if (!cx_failed(status))
        status = cx_run_lattice(cx_bytes_str(events), branch, options, &q->lines, &q->lattice, err);
    cx_run_bundle_close(bundle);
    return status;
}

/* --- the run of a question -------------------------------------------------------------------- */

static cx_status run_question(question *q, const question_kind *kind, cx_err *err)
{
    cx_call *call = q->call;
    cx_str branch = call->captures[0];
    const cx_lattice_options options = {
        .alloc = call->service->alloc,
        .threads = 1,
        .keep_deltas = kind->states,
        .max_nodes = NODES_MAX,
    };
    if (kind->states)
        CX_TRY(read_state_options(q, err));
    const cx_external_options external = {.branch = branch, .max_bytes = EXTERNAL_BYTES_MAX};
    if (cx_str_starts(branch, CX_STR("run/")))
        CX_TRY(open_run(q, cx_str_from(branch.data + 4, branch.size - 4), &options, err));
    else if (cx_external_is(branch))
        CX_TRY(cx_external_lattice(cx_recorder_home(call->service->recorder), &external, &options,
                                   &q->lines, &q->lattice, err));
    else
        CX_TRY(cx_recorder_lattice(cx_recorder_home(call->service->recorder),
                                   cx_str_is(branch, "all") ? (cx_str){NULL, 0} : branch, &options,
                                   &q->lines, &q->lattice, err));
    CX_TRY(cx_lattice_verify(q->lattice, NULL, &q->report, err));
    q->answer.verified = cx_lattice_report_verdict(q->report) == CX_HOLDS;
    if (kind->node)
        CX_TRY(find_node(q, cx_call_text(call, "node"), err));
    if (kind->sides) {
        CX_TRY(find_side(q, "a", err));
        CX_TRY(find_side(q, "b", err));
    }
    if (kind->states)
        CX_TRY(cx_lattice_resolve_roles(q->lattice, q->roles, q->role_count, call->arena,
                                        &q->state_options, err));
    if (kind->states)
        CX_TRY(cx_states_open_for(q->lattice, &q->state_options, q->targets, q->target_count,
                                  &q->states, err));
    return kind->answer(q, err);
}

static cx_status answer_question(cx_call *call, const question_kind *kind, cx_err *err)
{
    question q = {.call = call, .answer = {.json = true}};
    cx_buf_init(&q.lines, call->service->alloc);
    cx_call_answer(call, 200, "application/json");
    cx_status status = run_question(&q, kind, err);
    cx_states_close(q.states);
    cx_lattice_report_close(q.report);
    cx_lattice_close(q.lattice);
    cx_buf_done(&q.lines);
    return status;
}

/* --- the questions ---------------------------------------------------------------------------- */

static cx_status answer_state(question *q, cx_err *err)
{
    return cx_lattice_answer_state(&q->call->response.body, q->states, q->targets[0],
                                   cx_call_flag(q->call, "inherited"), &q->answer, err);
}

cx_status cx_api_lattice_state(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.states = true, .node = true, .answer = answer_state};
    return answer_question(call, &kind, err);
}

static cx_status answer_why(question *q, cx_err *err)
{
    cx_str section = cx_call_text(q->call, "section");
    q->answer.reasons = cx_call_flag(q->call, "reasons");
    return cx_lattice_answer_why(&q->call->response.body, q->states, q->targets[0],
                                 cx_call_text(q->call, "key"),
                                 section.data == NULL ? CX_STR("") : section, &q->answer, err);
}

static cx_status answer_said(question *q, cx_err *err)
{
    return cx_lattice_answer_said(&q->call->response.body, q->lattice, q->targets[0],
                                  cx_call_text(q->call, "text"), &q->answer, err);
}

cx_status cx_api_lattice_why(cx_call *call, cx_err *err)
{
    static const question_kind of_key = {.states = true, .node = true, .answer = answer_why};
    static const question_kind of_text = {.node = true, .answer = answer_said};
    bool by_text = cx_call_param(call, "text")->given;
    if (by_text == cx_call_param(call, "key")->given)
        return cx_fail(err, CX_E_USAGE, "expected node and key, or node and text");
    return answer_question(call, by_text ? &of_text : &of_key, err);
}

static cx_status answer_reach(question *q, cx_err *err)
{
    return cx_lattice_answer_reach(&q->call->response.body, q->lattice, q->targets[0], &q->answer,
                                   err);
}

cx_status cx_api_lattice_reach(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.node = true, .answer = answer_reach};
    return answer_question(call, &kind, err);
}

static cx_status answer_heatmap(question *q, cx_err *err)
{
    return cx_lattice_answer_heatmap(&q->call->response.body, q->lattice, &q->answer, err);
}

cx_status cx_api_lattice_heatmap(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.answer = answer_heatmap};
    return answer_question(call, &kind, err);
}

static cx_status answer_compare(question *q, cx_err *err)
{
    return cx_lattice_answer_compare_nodes(&q->call->response.body, q->states, q->targets,
                                           &q->answer, err);
}

cx_status cx_api_lattice_compare(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.states = true, .sides = true, .answer = answer_compare};
    return answer_question(call, &kind, err);
}

static cx_status answer_heads(question *q, cx_err *err)
{
    return cx_lattice_answer_heads(&q->call->response.body, q->lattice, &q->answer, err);
}

cx_status cx_api_lattice_heads(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.answer = answer_heads};
    return answer_question(call, &kind, err);
}

static cx_status answer_show(question *q, cx_err *err)
{
    return cx_lattice_answer_show(&q->call->response.body, q->lattice, q->targets[0], &q->answer,
                                  err);
}

cx_status cx_api_lattice_show(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.node = true, .answer = answer_show};
    return answer_question(call, &kind, err);
}

static cx_status answer_bisect(question *q, cx_err *err)
{
    cx_predicate predicate;
    cx_err parse_err;
    if (cx_failed(cx_predicate_parse(cx_call_text(q->call, "predicate"), q->call->arena, &predicate,
                                     &parse_err)))
        return cx_fail(err, CX_E_USAGE, "predicate: %s", parse_err.message);
    return cx_lattice_answer_bisect(&q->call->response.body, q->states, q->targets[0], &predicate,
                                    &q->answer, err);
}

cx_status cx_api_lattice_bisect(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.states = true, .node = true, .answer = answer_bisect};
    return answer_question(call, &kind, err);
}

static cx_status answer_render(question *q, cx_err *err)
{
    static const struct {
        cx_render_form form;
        const char *type;
    } forms[] = {{CX_RENDER_JSON, "application/json"},
                 {CX_RENDER_SVG, "image/svg+xml"},
                 {CX_RENDER_DOT, "text/vnd.graphviz"},
                 {CX_RENDER_TERMINAL, "text/plain; charset=utf-8"}};
    const cx_param *form = cx_call_param(q->call, "form");
    const cx_param *first = cx_call_param(q->call, "first"), *max = cx_call_param(q->call, "max");
    unsigned chosen = form->given ? form->choice : 0;
    const cx_render_options options = {
        .form = forms[chosen].form,
        .max_nodes = max->given ? (uint32_t)max->count : 0,
        .first = first->given ? (uint32_t)first->count : 0,
        .report = q->report,
        .fold = cx_call_flag(q->call, "fold"),
    };
    cx_call_answer(q->call, 200, forms[chosen].type);
    /* A picture may hold no script, wherever it is shown. */
    cx_call_header(q->call, "Content-Security-Policy",
                   "default-src 'none'; style-src 'unsafe-inline'");
    return cx_lattice_render(&q->call->response.body, q->lattice, &options, err);
}

cx_status cx_api_lattice_render(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.answer = answer_render};
    return answer_question(call, &kind, err);
}

static cx_status answer_verify(question *q, cx_err *err)
{
    const cx_param *strict = cx_call_param(q->call, "strict");
    cx_lattice_report *strict_report = NULL;
    if (!strict->given || !strict->flag)
        return cx_lattice_report_json(&q->call->response.body, q->lattice, q->report, err);
    const cx_lattice_checks checks = {
        .content_ids = true, .require_seals = true, .strict_time = true, .unambiguous = true};
    CX_TRY(cx_lattice_verify(q->lattice, &checks, &strict_report, err));
    cx_status status =
        cx_lattice_report_json(&q->call->response.body, q->lattice, strict_report, err);
    cx_lattice_report_close(strict_report);
    return status;
}

cx_status cx_api_lattice_verify(cx_call *call, cx_err *err)
{
    static const question_kind kind = {.answer = answer_verify};
    return answer_question(call, &kind, err);
}
