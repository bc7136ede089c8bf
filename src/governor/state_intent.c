/*
 * state_intent.c - S0 by an agent: a request becomes a contract (run.md §14 S0, decision 0021).
 *
 * The planner works before there is a contract, so nothing that it is held to comes from one: it
 * has a read-only checkout of HEAD, no shell approvals, no network but what the registry's row of
 * its role allows, and the limits of HEAD's policies.  What it answers is data.  It passes the
 * output gate or the run ends; then it is read and judged by every lint and gate as a contract file
 * is.
 *
 * RUN_CREATED names the contract, so the events of this turn wait until it is written
 * (state_event.c).
 *
 *   N1  The request is in the prompt's data part only, never in the instruction.
 *   N2  A planner that is refused leaves a bundle too: its task, named after the request, is then
 *       the run's only one.
 *   N3  A planned contract starts from the commit that was planned on: an older one might have
 *       policies that allow more.
 */
#include "os/api.h"
#include "crypto/api.h"
#include "base/api.h"
#include "rules/api.h"
#include "governor/state_intent.h"
#include "agent/api.h"

#define SCHEMA "task_contract.v1.json"
#define SECONDS_MAX 900

/* --- who -------------------------------------------------------------------------------------- */

static cx_status find_commit(cx_governor *g, cx_err *err)
{
    CX_TRY(g->repo.resolve(g->repo.arg, CX_STR("HEAD"), g->arena, &g->planner_commit, err));
    if (g->planner_commit.size == 0 || !cx_oid_parse(g->planner_commit, &g->baseline_oid))
        return cx_fail(err, CX_E_NOT_FOUND, "HEAD names no commit to plan on");
    g->baseline = g->planner_commit; /* until the contract says it */
    return CX_SUCCESS;
}

static cx_status load_policies(cx_governor *g, cx_err *err)
{
    cx_run_findings findings;
    cx_run_findings_init(&findings, g->arena);
    cx_status status =
        cx_run_policy_load(&g->repo, g->planner_commit, g->arena, &findings, &g->policy, err);
    if (!cx_failed(status))
        status = cx_run_findings_check(&findings, err);
    for (size_t i = 0; i < findings.list.count && !cx_failed(status); i++)
        if (!findings.list.items[i].informs)
            status = cx_fail(
                err, CX_E_FORMAT, "%.*s of HEAD: %.*s", (int)findings.list.items[i].where.size,
                findings.list.items[i].where.data, (int)findings.list.items[i].message.size,
                findings.list.items[i].message.data);
    cx_run_findings_done(&findings);
    return status;
}

static cx_status choose_planner(cx_governor *g, cx_err *err)
{
    const cx_run_options *options = g->options;
    if (options->runner == NULL && options->script == NULL &&
        g->policy.config.role_runners[CX_ROLE_PM].size == 0)
        return cx_fail(
            err, CX_E_USAGE,
            "no runner makes contracts of requests: name one in policies/cortex.json, "
            "\"roles\": {\"PM\": \"NAME\"}, after 'cortex runner add NAME ...', and commit "
            "it; or use --runner NAME or --script FILE");
    CX_TRY(cx_governor_choose_runner(g, err));
    if (g->runner_settings.name.size == 0)
        return cx_fail(
            err, CX_E_USAGE,
            "roles.PM of policies/cortex.json names '%.*s', which is none of its runners",
            (int)g->runner_settings.profile.size, g->runner_settings.profile.data);
    return CX_SUCCESS;
}

/* The registry's row of the role: what it may do at most. */
static const cx_run_agent *registry_row_of(const cx_governor *g)
{
    for (size_t i = 0; i < g->policy.agent_count; i++)
        if (g->policy.agents[i].role == CX_ROLE_PM)
            return &g->policy.agents[i];
    return NULL;
}

static cx_status make_task(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_str intent = g->options->intent;
    const cx_run_agent *row = registry_row_of(g);
    cx_digest digest = cx_digest_of(cx_str_bytes(intent));
    cx_str hex = cx_digest_text(&digest, g->arena);
    cx_governor_task *t = CX_ARENA_NEW(g->arena, cx_governor_task);
    cx_str id = hex.data == NULL ? hex : cx_arena_printf(g->arena, "intent_%.12s", hex.data);
    if (t == NULL || id.data == NULL)
        return cx_fail_nomem(err);
    memset(t, 0, sizeof *t);
    cx_governor_task_init(t, g, id);
    g->planner = p->t = t;
    cx_contract_agent agent = {.role_name = cx_str_z(cx_run_role_name(CX_ROLE_PM)),
                               .role = CX_ROLE_PM,
                               .agent_id = row == NULL ? CX_STR("pm") : row->agent_id};
    cx_run_network network = row == NULL ? CX_NETWORK_DENY : row->network;
    t->contract = (cx_contract){
        .task_id = id,
        .owner = agent,
        .assigned = agent,
        .spec = intent,
        .filesystem = CX_FS_READ_ONLY,
        .shell = CX_SHELL_NEVER,
        .network = network,
        .permissions = {.filesystem = cx_str_z(cx_run_filesystem_name(CX_FS_READ_ONLY)),
                        .shell = cx_str_z(cx_run_shell_name(CX_SHELL_NEVER)),
                        .network = cx_str_z(cx_run_network_name(network))},
    };
    g->runner_settings.task_id = id;
    t->settings = g->runner_settings;
    t->runner_config = g->runner_config;
    t->refusal.blocked = true; /* until it starts */
    return CX_SUCCESS;
}

/* --- where it works --------------------------------------------------------------------------- */

static cx_status make_folders(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_governor_task *t = p->t;
    cx_str run = cx_run_id(g->run);
    cx_bytes schema;
    cx_str base = cx_arena_printf(g->arena, "%s/active/runs/%.*s/scratch/%.*s", g->store.root,
                                  (int)run.size, run.data, (int)t->id.size, t->id.data);
    cx_str work = cx_arena_printf(g->arena, "%s/work", base.data);
    cx_str facts = cx_arena_printf(g->arena, "%s/given", base.data);
    cx_str path = cx_arena_printf(g->arena, "%s/given/output_schema.json", base.data);
    if (base.data == NULL || work.data == NULL || facts.data == NULL || path.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_run_asset("schemas/" SCHEMA, &schema))
        return cx_fail(err, CX_E_NOT_FOUND, "the program carries no " SCHEMA);
    CX_TRY(cx_path_make_folders(work.data, err));
    p->base = base.data;
    CX_TRY(cx_path_make_folders(facts.data, err));
    CX_TRY(cx_run_write_file(g->io, path.data, schema, err));
    t->workspace.scratch = work.data;
    t->agent.schema_path = path.data;
    t->agent.schema = cx_bytes_str(schema);
    t->agent.spec_binds[0] = (cx_sandbox_bind){facts.data, false};
    t->agent.spec_binds[1] = (cx_sandbox_bind){work.data, true};
    return CX_SUCCESS;
}

static cx_status open_checkout(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_governor_task *t = p->t;
    t->gate = CX_GATE_WORKTREE;
    t->workspace.options = (cx_worktree_options){.runtime_root = g->store.root,
                                                 .run_id = cx_run_id(g->run),
                                                 .task_id = t->id,
                                                 .suffix = CX_STR(".plan"),
                                                 .commit = g->baseline_oid};
    CX_TRY(
        cx_run_worktree_add(g->git, &t->workspace.options, g->arena, &t->workspace.worktree, err));
    t->workspace.has_worktree = true;
    return CX_SUCCESS;
}

/* --- gates of §13 that do not need a contract ------------------------------------------------- */

static cx_status refuse_planner(cx_planner *p, cx_gate_id gate, const char *reason, const char *why,
                                cx_err *err)
{
    cx_str text = cx_str_z(why == NULL ? "" : why);
    cx_texts violations = {&text, 1};
    p->t->gate = gate;
    p->t->refusal.hint = cx_arena_copy_str(p->governor->arena, text);
    return cx_task_refuse(p->t, gate, reason, false, why == NULL ? NULL : &violations, err);
}

static cx_status open_runner(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    bool exec = cx_str_is(g->runner_settings.name, CX_RUNNER_NAME_EXEC);
    cx_json_list payload = cx_json_list_begin(&p->t->arena);
    p->t->gate = CX_GATE_RUNNER;
    /* Decision 0018. */
    if (exec && g->policy.config.mcp_only && !g->options->diagnostic)
        return refuse_planner(p, CX_GATE_RUNNER, "mcp_only", "the runner of role PM is exec", err);
    g->planner_diagnostic = exec && g->options->diagnostic;
    CX_TRY(cx_runner_open(&g->runner_settings, g->alloc, g->io, &p->t->agent.runner, err));
    cx_json_put_quoted(&payload, "runner", g->runner_settings.name);
    if (g->runner_settings.profile.size != 0)
        cx_json_put_quoted(&payload, "profile", g->runner_settings.profile);
    cx_json_put_z(&payload, "role", cx_run_role_name(CX_ROLE_PM));
    return cx_task_event(p->t, CX_RUN_INFO, CX_RUN_EVENT_RUNNER_SELECTED, &payload, err);
}

static cx_status gate_network(cx_planner *p, cx_err *err)
{
    cx_governor_task *t = p->t;
    bool needs = p->governor->runner_settings.network;
    const char *fault = cx_run_gate_network(t->contract.permissions.network, needs, false);
    if (fault != NULL)
        return refuse_planner(
            p, CX_GATE_NETWORK, fault,
            "its runner needs the network, which agent_registry.json does not allow PM", err);
    t->agent.network_on = needs;
    return CX_SUCCESS;
}

/* Tools of the runner itself, by the global list: the role has no others. */
static cx_status gate_tools(cx_planner *p, cx_err *err)
{
    cx_str_list tools = {p->t->agent.runner->tools, p->t->agent.runner->tool_count};
    cx_run_tool_verdict verdict;
    CX_TRY(cx_run_gate_mcp(p->governor->policy.mcp_allow, p->governor->policy.mcp_deny, tools,
                           tools, &p->t->arena, &verdict, err));
    if (!verdict.ok)
        return refuse_planner(p, CX_GATE_MCP, "tool_not_allowed",
                              "its runner needs a tool that is not allowed", err);
    return CX_SUCCESS;
}

/* A planner gets no approvals, so none for a missing layer either. */
static cx_status gate_sandbox(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_governor_task *t = p->t;
    cx_json described;
    t->gate = CX_GATE_SANDBOX;
    CX_TRY(cx_governor_open_box(g, g->arena, err));
    for (unsigned i = 0; i < CX_SANDBOX_LAYER_COUNT; i++)
        if ((g->sandbox->missing & (1u << i)) != 0)
            return refuse_planner(p, CX_GATE_SANDBOX, "sandbox_layer_missing",
                                  cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)), err);
    t->agent.spec = CX_SANDBOX_SPEC_INIT;
    t->agent.spec.worktree = t->workspace.worktree.path;
    t->agent.spec.read_only = true;
    t->agent.spec.cwd = t->workspace.worktree.path;
    t->agent.spec.binds = t->agent.spec_binds;
    t->agent.spec.bind_count = 2;
    t->agent.spec.network = t->agent.network_on;
    t->agent.spec.run_id = cx_run_id(g->run).data;
    t->agent.spec.task_id = t->id.data;
    t->agent.spec.cancel = g->options->cancel;
    CX_TRY(cx_sandbox_describe(g->sandbox, t->agent.network_on ? CX_SANDBOX_ON : CX_SANDBOX_OFF,
                               g->arena, &described, err));
    return cx_task_event_json(t, CX_RUN_INFO, CX_RUN_EVENT_SANDBOX_APPLIED, &described, err);
}

/* --- the turn --------------------------------------------------------------------------------- */

static cx_status write_runner_started(cx_planner *p, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&p->t->arena);
    cx_json_put_quoted(&payload, "thread_id", p->t->agent.thread_id);
    cx_json_put_z(&payload, "sandbox", cx_run_filesystem_name(CX_FS_READ_ONLY));
    cx_json_put_z(&payload, "approval_policy", "never");
    cx_json_put_z(&payload, "cwd", p->t->workspace.worktree.relative);
    return cx_task_event(p->t, CX_RUN_INFO, CX_RUN_EVENT_RUNNER_STARTED, &payload, err);
}

static cx_status write_runner_finished(cx_planner *p, const cx_runner_reply *reply, cx_err *err)
{
    static const char *const names[] = {"ok", "failed", "timeout", "cancelled", "violation"};
    cx_governor_task *t = p->t;
    cx_json_list payload = cx_json_list_begin(&t->arena);
    bool good = reply->end == CX_RUNNER_OK;
    cx_json_put_z(&payload, "exit", names[reply->end]);
    if (!good)
        cx_json_put_quoted(&payload, "message", reply->message);
    CX_TRY(cx_task_event(t, good ? CX_RUN_INFO : CX_RUN_ERROR, CX_RUN_EVENT_RUNNER_FINISHED,
                         &payload, err));
    if (good)
        return CX_SUCCESS;
    if (reply->end == CX_RUNNER_CANCELLED) {
        t->refusal.aborted = true;
        return cx_task_refuse(t, CX_GATE_INTERRUPTED, "signal", false, NULL, err);
    }
    return refuse_planner(p, CX_GATE_RUNNER, names[reply->end], reply->message.data, err);
}

static cx_status make_turn(cx_planner *p, cx_runner_turn *out, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_governor_task *t = p->t;
    uint32_t most = g->policy.config.limits.command_sec;
    cx_str prompt, instruction = cx_run_prompt_planner();
    CX_TRY(cx_run_prompt_of("REQUEST", instruction, p->request, t->agent.schema, g->arena, &prompt,
                            err));
    *out = (cx_runner_turn){
        .task_id = t->id,
        .run_id = cx_run_id(g->run),
        .instruction = instruction,
        .contract = p->request,
        .schema = t->agent.schema,
        .prompt = prompt.data,
        .prompt_size = prompt.size,
        .schema_path = t->agent.schema_path,
        .worktree = t->workspace.worktree.path,
        .scratch = t->workspace.scratch,
        .sandbox_mode = cx_str_z(cx_run_filesystem_name(CX_FS_READ_ONLY)),
        .approval_policy = CX_STR("never"),
        .shell_tool = true,
        .thread_id = t->agent.thread_id,
        .timeout_ms = (uint64_t)(most < SECONDS_MAX ? most : SECONDS_MAX) * 1000,
        .program = t->agent.program,
        .box = g->sandbox,
        .sandbox = &t->agent.spec,
        .cancel = g->options->cancel,
        .arena = g->arena,
    };
    return CX_SUCCESS;
}

static cx_status run_planner_turn(cx_planner *p, cx_runner_reply *reply, cx_err *err)
{
    cx_governor_task *t = p->t;
    cx_runner_turn turn;
    cx_runner_host host = cx_task_host(t);
    cx_err why;
    t->gate = CX_GATE_RUNNER;
    memset(reply, 0, sizeof *reply);
    t->agent.thread_id = cx_arena_copy_str(p->governor->arena, t->agent.runner->thread_id);
    CX_TRY(make_turn(p, &turn, err));
    CX_TRY(write_runner_started(p, err));
    t->refusal.blocked = false;
    t->agent.started = true;
    t->agent.turns++;
    cx_status status = t->agent.runner->start(t->agent.runner, &host, &turn, &why);
    if (!cx_failed(status))
        status = t->agent.runner->turn(t->agent.runner, &host, &turn, reply, &why);
    if (cx_failed(status)) {
        reply->end = cx_task_cancelled(t) ? CX_RUNNER_CANCELLED : CX_RUNNER_FAILED;
        reply->message = cx_governor_message(p->governor, &why, p->governor->arena);
    }
    if (reply->thread_id.size != 0)
        t->agent.thread_id = cx_arena_copy_str(p->governor->arena, reply->thread_id);
    return write_runner_finished(p, reply, err);
}

/* --- the output gate (§6) --------------------------------------------------------------------- */

static cx_status check_reply(cx_planner *p, cx_str body, cx_texts *faults, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_run_findings findings;
    cx_json reply;
    cx_err why;
    cx_str *one = CX_ARENA_NEW(g->arena, cx_str);
    if (one == NULL)
        return cx_fail_nomem(err);
    *faults = (cx_texts){one, 1};
    if (cx_failed(cx_run_json_read(body, CX_RUN_CONTRACT_BYTES_MAX, g->arena, &reply, &why))) {
        *one = cx_arena_printf(g->arena, "not one JSON value: %s", why.message);
        return one->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_run_findings_init(&findings, g->arena);
    cx_status status = cx_run_schema_check(SCHEMA, &reply, "output_schema", &findings, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_findings_texts(&findings, g->arena, faults, err);
    bool valid = findings.refusing == 0;
    cx_run_findings_done(&findings);
    CX_TRY(status);
    cx_str id = CX_JSON_GET_STR(&reply, "task_id");
    if (valid && !cx_run_task_id_ok(id))
        *one = CX_STR("task_id cannot name files");
    else if (valid && cx_str_eq(id, p->t->id))
        *one = CX_STR("task_id is that of the request");
    else if (valid)
        *faults = (cx_texts){NULL, 0};
    return CX_SUCCESS;
}

static cx_status gate_output(cx_planner *p, cx_bytes body, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_governor_task *t = p->t;
    cx_texts faults;
    cx_str own = cx_arena_copy_str(g->arena, cx_bytes_str(body)); /* the runner's goes with it */
    if (own.data == NULL)
        return cx_fail_nomem(err);
    t->gate = CX_GATE_OUTPUT_SCHEMA;
    p->reply = own;
    CX_TRY(check_reply(p, own, &faults, err));
    if (faults.count != 0)
        return cx_task_refuse(t, CX_GATE_OUTPUT_SCHEMA, "reply_not_valid", false, &faults, err);
    g->contract_bytes = cx_str_bytes(own);
    cx_digest digest = cx_digest_of(g->contract_bytes);
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "schema", SCHEMA);
    cx_json_put_bool(&payload, "passed", true);
    cx_json_put_digest(&payload, "contract_sha256", &digest);
    cx_buf_add_z(&t->agent.transcript, "- turn 0: a task contract\n");
    CX_TRY(cx_buf_check(&t->agent.transcript, err));
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_OUTPUT_SCHEMA_ENFORCED, &payload, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

typedef cx_status plan_step(cx_planner *p, cx_err *err);

static cx_status gate_integrated(cx_planner *p, cx_err *err)
{
    return cx_gate_integrated(p->t, err);
}

static cx_status gate_argv(cx_planner *p, cx_err *err)
{
    return cx_gate_runner_argv(p->t, err);
}

static cx_status plan_request(cx_planner *p, cx_err *err)
{
    static plan_step *const steps[] = {open_checkout, make_folders, open_runner,  gate_integrated,
                                       gate_network,  gate_tools,   gate_sandbox, gate_argv};
    cx_runner_reply reply;
    for (size_t i = 0; i < CX_COUNT_OF(steps); i++) {
        CX_TRY(steps[i](p, err));
        if (p->t->refused)
            return CX_SUCCESS;
    }
    CX_TRY(run_planner_turn(p, &reply, err));
    return p->t->refused ? CX_SUCCESS : gate_output(p, reply.body, err);
}

/* Nothing of the planner's is there when others work: its checkout, its folder, its sandbox. */
static cx_status release_planner(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_governor_task *t = p->t;
    cx_status status = CX_SUCCESS;
    cx_task_stop_runner(t);
    if (t->workspace.has_worktree)
        status = cx_run_worktree_remove(g->git, &t->workspace.options, &t->workspace.worktree, true,
                                        err);
    t->workspace.has_worktree = false;
    if (!cx_failed(status) && p->base != NULL)
        status = cx_path_remove_tree(p->base, err);
    t->workspace.scratch = NULL;
    t->agent.spec = CX_SANDBOX_SPEC_INIT;
    cx_sandbox_close(g->sandbox);
    g->sandbox = NULL;
    return status;
}

static cx_status check_request(cx_str intent, cx_err *err)
{
    size_t at = 0;
    if (intent.size > CX_RUN_INTENT_BYTES_MAX)
        return cx_fail(err, CX_E_USAGE, "a request has at most %u bytes",
                       (unsigned)CX_RUN_INTENT_BYTES_MAX);
    while (at < intent.size && (uint8_t)intent.data[at] <= 0x20)
        at++;
    if (at == intent.size || !cx_utf8_valid(intent))
        return cx_fail(err, CX_E_USAGE, "a request is text in UTF-8, and not blank");
    return CX_SUCCESS;
}

cx_status cx_governor_plan_intent(cx_governor *g, cx_err *err)
{
    cx_planner p = {.governor = g};
    cx_err why;
    CX_TRY(check_request(g->options->intent, err));
    CX_TRY(find_commit(g, err));
    CX_TRY(load_policies(g, err));
    CX_TRY(choose_planner(g, err));
    CX_TRY(make_task(&p, err));
    CX_TRY(cx_planner_request(&p, err));
    CX_TRY(cx_governor_begin_bundle(g, p.t->id, err));
    cx_governor_defer_events(g);
    p.started_at = g->created_at;
    cx_status status = plan_request(&p, &why);
    if (cx_failed(status) && !p.t->refused)
        status = cx_task_refuse_error(p.t, &why, err); /* I1 */
    cx_status given_back = release_planner(&p, &why);
    if (cx_failed(given_back) && !p.t->refused)
        CX_TRY(cx_task_refuse_error(p.t, &why, err));
    g->deferring = false;
    p.finished_at = cx_governor_now(g, g->arena);
    if (p.finished_at.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_planner_write_evidence(&p, err));
    g->baseline = CX_STR("");
    g->baseline_oid = (cx_oid){.size = 0};
    if (p.t->refused)
        return cx_planner_write_refusal(&p, err);
    /* The run's own runner is chosen by the contract. */
    g->runner_config = NULL;
    memset(&g->runner_settings, 0, sizeof g->runner_settings);
    return CX_SUCCESS;
}
