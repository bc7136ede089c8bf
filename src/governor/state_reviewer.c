/*
 * state_reviewer.c - an agent as reviewer: a checkout of the candidate of its own, read-only; no
 * network, no approvals; its reply is a review_report or the review is BLOCKED (run.md §10).
 */
#include "os/api.h"
#include "rules/api.h"
#include "candidate/api.h"
#include "governor/state_review.h"
#include "agent/api.h"

#define SCHEMA "review_report.v1.json"

typedef struct reviewer {
    cx_governor_task *t;
    cx_worktree_options options;
    cx_worktree worktree;
    cx_snapshot *before;
    cx_runner_settings settings;
    cx_runner *runner;
    const char *program;
    const char *evidence; /* folder with patch and evidence, read-only inside */
    const char *scratch;
    const char *schema_path;
    cx_str schema;
    cx_sandbox_spec spec;
    cx_sandbox_bind binds[3];
    const char *env[3]; /* CORTEX_EVIDENCE, CODEX_HOME */
} reviewer;

bool cx_governor_has_reviewer(const cx_governor *g)
{
    return g->policy.config.role_runners[CX_ROLE_REVIEWER].size != 0;
}

static void block_review(cx_governor_task *t, const char *why)
{
    t->reports.review.verdict = CX_RUN_REVIEW_BLOCKED;
    t->reports.review.summary =
        cx_arena_printf(&t->arena, "the reviewer failed: %s", why == NULL ? "no memory" : why);
    if (t->reports.review.summary.data == NULL)
        t->reports.review.summary = CX_STR("the reviewer failed");
}

/* --- what it is given ------------------------------------------------------------------------- */

static cx_status copy_evidence(reviewer *r, const char *name, const char *as, cx_err *err)
{
    cx_governor *g = r->t->governor;
    cx_buf bytes;
    cx_str path = cx_arena_printf(&r->t->arena, "%s/%s", r->evidence, as);
    cx_str from = cx_task_file(r->t, name);
    if (path.data == NULL || from.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_run_file_exists(g->run, from))
        return CX_SUCCESS;
    cx_buf_init(&bytes, g->alloc);
    cx_status status = cx_run_file_read(g->run, from, CX_RUN_OUTPUT_BYTES_MAX * 2, &bytes, err);
    if (!cx_failed(status))
        status = cx_run_write_file(g->io, path.data, cx_buf_bytes(&bytes), err);
    cx_buf_done(&bytes);
    return status;
}

static cx_status make_folders(reviewer *r, cx_err *err)
{
    cx_governor_task *t = r->t;
    cx_bytes schema;
    cx_str base = cx_arena_printf(&t->arena, "%s/review", t->workspace.private_folder);
    cx_str evidence = cx_arena_printf(&t->arena, "%s/evidence", base.data);
    cx_str path = cx_arena_printf(&t->arena, "%s/evidence/output_schema.json", base.data);
    cx_str work = cx_arena_printf(&t->arena, "%s/work", base.data);
    cx_str env = cx_arena_printf(&t->arena, "CORTEX_EVIDENCE=%s", evidence.data);
    if (base.data == NULL || evidence.data == NULL || path.data == NULL || work.data == NULL ||
        env.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_run_asset("schemas/" SCHEMA, &schema))
        return cx_fail(err, CX_E_NOT_FOUND, "the program carries no " SCHEMA);
    CX_TRY(cx_path_make_folders(evidence.data, err));
    CX_TRY(cx_path_make_folders(work.data, err));
    CX_TRY(cx_run_write_file(t->governor->io, path.data, schema, err));
    r->evidence = evidence.data;
    r->scratch = work.data;
    r->schema_path = path.data;
    r->schema = cx_bytes_str(schema);
    r->env[0] = env.data;
    CX_TRY(copy_evidence(r, "patch.diff", "patch.diff", err));
    CX_TRY(copy_evidence(r, "diff_name_only.txt", "diff_name_only.txt", err));
    return copy_evidence(r, "artifacts/runner_result.json", "runner_result.json", err);
}

static cx_status open_checkout(reviewer *r, cx_err *err)
{
    cx_governor_task *t = r->t;
    r->options = t->workspace.options;
    r->options.suffix = CX_STR(".review");
    r->options.commit = t->candidate.commit;
    CX_TRY(cx_run_worktree_add(t->governor->git, &r->options, &t->arena, &r->worktree, err));
    return cx_snapshot_read(r->worktree.git, NULL, &r->before, err);
}

static void make_spec(reviewer *r)
{
    r->binds[0] = (cx_sandbox_bind){r->evidence, false};
    r->binds[1] = (cx_sandbox_bind){r->scratch, true};
    r->spec = r->t->agent.spec;
    r->spec.worktree = r->worktree.path;
    r->spec.cwd = r->worktree.path;
    r->spec.read_only = true;
    r->spec.binds = r->binds;
    r->spec.bind_count = 2;
    r->spec.git = NULL;
    r->spec.network = false;
    r->spec.unconfined = false;
    r->spec.env = r->env;
}

static cx_status open_runner(reviewer *r, cx_err *err)
{
    cx_governor *g = r->t->governor;
    cx_str name = g->policy.config.role_runners[CX_ROLE_REVIEWER];
    const cx_run_runner_config *config = cx_run_config_runner(&g->policy.config, name);
    if (config == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "roles.REVIEWER names '%.*s', which is no runner",
                       (int)name.size, name.data);
    if (config->kind == CX_RUNNER_EXEC && g->policy.config.mcp_only && !g->options->diagnostic)
        return cx_fail(err, CX_E_DENIED, "runner.mcp_only: the reviewer's runner is exec");
    cx_governor_settings_from(g, config, &r->settings);
    r->settings.network = false;
    if (!config->needs_network) /* else the hosts of the contract, through its proxy */
        r->spec.egress = NULL;
    return cx_runner_open(&r->settings, g->alloc, g->io, &r->runner, err);
}

/* --- its reply -------------------------------------------------------------------------------- */

static cx_status texts_of(cx_governor_task *t, const cx_json *array, const cx_str **out,
                          size_t *out_count, cx_err *err)
{
    size_t count = array == NULL || array->type != CX_JSON_ARRAY ? 0 : array->count, used = 0;
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (array->items[i].type == CX_JSON_STRING)
            items[used++] = cx_json_text(&array->items[i]);
    *out = items;
    *out_count = used;
    return CX_SUCCESS;
}

static cx_status read_verdict(cx_governor_task *t, const cx_json *reply, cx_err *err)
{
    cx_run_review_facts *review = &t->reports.review;
    const cx_json *scope = CX_JSON_GET(reply, "scope_check");
    const cx_json *passed = CX_JSON_GET(scope, "passed");
    cx_str verdict = CX_JSON_GET_STR(reply, "verdict");
    review->verdict = cx_str_is(verdict, "PASS")   ? CX_RUN_REVIEW_PASS
                      : cx_str_is(verdict, "FAIL") ? CX_RUN_REVIEW_FAIL
                                                   : CX_RUN_REVIEW_BLOCKED;
    review->summary = CX_JSON_GET_STR(reply, "summary");
    review->notes = CX_JSON_GET_STR(reply, "notes");
    review->scope_passed = passed != NULL && passed->type == CX_JSON_TRUE;
    review->agent_id = CX_JSON_GET_STR(CX_JSON_GET(reply, "reviewer"), "agent_id");
    return texts_of(t, CX_JSON_GET(scope, "violations"), &review->violations,
                    &review->violation_count, err);
}

/* Whole reply one JSON value, schema-valid, of this run, and it says that it changed nothing. */
static cx_status check_reply(reviewer *r, cx_bytes body, cx_err *err)
{
    cx_governor_task *t = r->t;
    cx_json reply;
    cx_err why;
    cx_run_findings findings;
    cx_str own =
        cx_arena_copy_str(&t->arena, cx_bytes_str(body)); /* what is read borrows from it */
    if (own.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_run_json_read(own, CX_RUN_JSON_BYTES_MAX, &t->arena, &reply, &why))) {
        block_review(t, "its reply is not one JSON value");
        return CX_SUCCESS;
    }
    cx_run_findings_init(&findings, &t->arena);
    cx_status status = cx_run_schema_check(SCHEMA, &reply, "output_schema", &findings, err);
    bool valid = findings.refusing == 0;
    cx_run_findings_done(&findings);
    CX_TRY(status);
    const cx_json *produced = CX_JSON_GET(&reply, "produced_diff");
    if (!valid)
        block_review(t, "its reply does not match " SCHEMA);
    else if (produced == NULL || produced->type != CX_JSON_FALSE)
        block_review(t, "produced_diff is not there or not false");
    else if (!cx_str_eq(CX_JSON_GET_STR(&reply, "run_id"), cx_run_id(t->governor->run)))
        block_review(t, "its run_id is that of another run");
    else
        return read_verdict(t, &reply, err);
    return CX_SUCCESS;
}

static cx_status run_reviewer_turn(reviewer *r, cx_runner_reply *reply, cx_err *err)
{
    cx_governor_task *t = r->t;
    cx_runner_host host = cx_task_host(t);
    cx_str prompt, instruction = cx_run_prompt_instruction(true);
    CX_TRY(cx_run_prompt(instruction, t->contract_text, r->schema, &t->arena, &prompt, err));
    cx_runner_turn turn = {
        .attempt = t->attempt,
        .task_id = t->id,
        .run_id = cx_run_id(t->governor->run),
        .instruction = instruction,
        .contract = t->contract_text,
        .schema = r->schema,
        .prompt = prompt.data,
        .prompt_size = prompt.size,
        .schema_path = r->schema_path,
        .worktree = r->worktree.path,
        .scratch = r->scratch,
        .sandbox_mode = CX_STR("read-only"),
        .approval_policy = CX_STR("never"),
        .shell_tool = true,
        .timeout_ms = (uint64_t)t->contract.timeout_sec * 1000,
        .program = r->program,
        .box = t->governor->sandbox,
        .sandbox = &r->spec,
        .cancel = t->governor->options->cancel,
        .arena = &t->arena,
    };
    cx_governor_leave(t->governor);
    cx_status status = r->runner->start(r->runner, &host, &turn, err);
    if (!cx_failed(status))
        status = r->runner->turn(r->runner, &host, &turn, reply, err);
    cx_governor_enter(t->governor);
    return status;
}

/* The tool gate, as for every other runner. */
static cx_status find_program(reviewer *r, cx_err *err)
{
    cx_run_command_verdict verdict;
    if (r->runner->argv_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_task_check_argv(r->t, r->runner, false, &verdict, err));
    if (!verdict.allow)
        return cx_fail(err, CX_E_DENIED, "%s: %.*s", verdict.rule, (int)verdict.reason.size,
                       verdict.reason.data);
    r->program = verdict.executable.path.data;
    return CX_SUCCESS;
}

/* A reviewer has settings of its own: those of the registry's first REVIEWER. */
static cx_status make_home(reviewer *r, cx_err *err)
{
    cx_governor_task *t = r->t;
    const cx_run_policy *policy = &t->governor->policy;
    const cx_run_agent *row = NULL;
    cx_json evidence;
    for (size_t i = 0; i < policy->agent_count && row == NULL; i++)
        if (policy->agents[i].role == CX_ROLE_REVIEWER)
            row = &policy->agents[i];
    if (r->runner->argv_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_task_codex_home(t, row, CX_STR("reviewer"), &r->env[1], &evidence, err));
    if (r->env[1] == NULL)
        return CX_SUCCESS;
    r->binds[r->spec.bind_count++] = (cx_sandbox_bind){cx_codex_home_of(r->env[1]), true};
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&payload, "runner", r->settings.name);
    cx_json_put_quoted(&payload, "profile", r->settings.profile);
    cx_json_put_z(&payload, "role", "REVIEWER");
    cx_json_list_put(&payload, CX_STR("codex_home"), evidence);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_RUNNER_SELECTED, &payload, err);
}

static cx_status run_reviewer(reviewer *r, cx_err *err)
{
    cx_governor_task *t = r->t;
    cx_runner_reply reply = {.end = CX_RUNNER_FAILED};
    cx_err why;
    cx_status status = open_runner(r, &why);
    if (!cx_failed(status))
        status = find_program(r, &why);
    if (!cx_failed(status))
        status = make_home(r, &why);
    if (!cx_failed(status))
        status = run_reviewer_turn(r, &reply, &why);
    if (t->governor->log_failed)
        return cx_fail(err, CX_E_IO, "an event could not be written");
    if (cx_failed(status))
        block_review(t, cx_governor_message(t->governor, &why, &t->arena).data);
    else if (reply.end != CX_RUNNER_OK)
        block_review(t, reply.message.size == 0 ? "it ended badly" : reply.message.data);
    else
        return check_reply(r, reply.body, err);
    return CX_SUCCESS;
}

cx_status cx_task_agent_review(cx_governor_task *t, cx_run_findings *findings, cx_err *err)
{
    CX_ASSERT(t != NULL && findings != NULL);
    reviewer r = {.t = t};
    cx_snapshot *after = NULL;
    CX_TRY(make_folders(&r, err));
    cx_status status = open_checkout(&r, err);
    if (!cx_failed(status)) {
        make_spec(&r);
        status = run_reviewer(&r, err);
    }
    if (r.runner != NULL)
        r.runner->stop(r.runner);
    if (!cx_failed(status))
        status = cx_snapshot_read(r.worktree.git, NULL, &after, err);
    if (!cx_failed(status))
        cx_run_isolation_compare(r.before, after, true, findings);
    cx_snapshot_close(after);
    cx_snapshot_close(r.before);
    if (r.worktree.git != NULL) {
        cx_err ignored;
        cx_status gone =
            cx_run_worktree_remove(t->governor->git, &r.options, &r.worktree, true, &ignored);
        if (!cx_failed(status) && cx_failed(gone)) {
            if (err != NULL)
                *err = ignored;
            status = gone;
        }
    }
    return status;
}
