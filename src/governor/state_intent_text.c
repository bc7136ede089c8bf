/*
 * state_intent_text.c - S0 by an agent: the documents of it.  What the planner is given, what the
 * bundle keeps of its turn, and what is there for a contract that was never made.
 */
#include "crypto/api.h"
#include "rules/api.h"
#include "governor/state_intent.h"

#define INTENT "artifacts/intent.json"

/* --- what it is given ------------------------------------------------------------------------- */

static void put_object(cx_json_list *to, const char *name, cx_json_list *object)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_object(object, &value, NULL)))
        to->failed = true;
    else if (name == NULL)
        cx_json_list_add(to, value);
    else
        cx_json_list_put(to, cx_str_z(name), value);
}

static void put_array(cx_json_list *to, const char *name, cx_json_list *array)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_array(array, &value, NULL)))
        to->failed = true;
    else
        cx_json_list_put(to, cx_str_z(name), value);
}

static void put_agents(cx_planner *p, cx_json_list *to)
{
    const cx_run_policy *policy = &p->governor->policy;
    cx_json_list list = cx_json_list_begin(to->arena);
    for (size_t i = 0; i < policy->agent_count; i++) {
        const cx_run_agent *agent = &policy->agents[i];
        cx_json_list one = cx_json_list_begin(to->arena);
        cx_json_put_z(&one, "role", cx_run_role_name(agent->role));
        cx_json_put_quoted(&one, "agent_id", agent->agent_id);
        cx_json_put_z(&one, "filesystem", cx_run_filesystem_name(agent->filesystem));
        cx_json_put_z(&one, "shell", cx_run_shell_name(agent->shell));
        cx_json_put_z(&one, "network", cx_run_network_name(agent->network));
        cx_json_put_quoted_strs(&one, "mcp_tools", agent->mcp_tools.items, agent->mcp_tools.count);
        put_object(&list, NULL, &one);
    }
    put_array(to, "agents", &list);
}

/* K04: the file of HEAD, else the program's own. */
static cx_status put_schema(cx_planner *p, cx_json_list *to, const char *file, const char *roles,
                            cx_err *err)
{
    cx_governor *g = p->governor;
    cx_str path = cx_arena_printf(g->arena, "schemas/%s", file);
    cx_run_blob kind;
    cx_bytes bytes;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(g->repo.read(g->repo.arg, g->planner_commit, path, CX_RUN_JSON_BYTES_MAX, g->arena,
                        &kind, &bytes, err));
    if (kind != CX_BLOB_FILE && !cx_run_asset(path.data, &bytes))
        return cx_fail(err, CX_E_NOT_FOUND, "the program carries no %s", path.data);
    cx_digest digest = cx_digest_of(bytes);
    cx_json_list one = cx_json_list_begin(to->arena);
    cx_json_put_z(&one, "for_roles", roles);
    cx_json_put_quoted(&one, "uri", path);
    cx_json_put_digest(&one, "sha256", &digest);
    put_object(to, NULL, &one);
    return CX_SUCCESS;
}

cx_status cx_planner_request(cx_planner *p, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(p->governor->arena);
    cx_json_list schemas = cx_json_list_begin(p->governor->arena);
    cx_json value;
    cx_buf text;
    cx_json_put_quoted(&list, "request", p->t->contract.spec);
    cx_json_put_quoted(&list, "baseline_commit", p->governor->planner_commit);
    put_agents(p, &list);
    CX_TRY(put_schema(p, &schemas, "review_report.v1.json", "REVIEWER", err));
    CX_TRY(put_schema(p, &schemas, "test_report.v1.json", "TEST, TEST_RUNNER", err));
    CX_TRY(put_schema(p, &schemas, "agent_task_result.v1.json", "all others", err));
    put_array(&list, "output_schemas", &schemas);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    cx_buf_init(&text, p->governor->alloc);
    cx_status status = cx_run_json_write(&text, &value, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        p->request = cx_arena_copy_str(p->governor->arena, cx_buf_str(&text));
        if (p->request.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* --- what is stored --------------------------------------------------------------------------- */

/* N2: what the bundle says in place of a contract. */
cx_status cx_planner_write_refusal(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_json_list list = cx_json_list_begin(g->arena);
    cx_json value;
    cx_buf text;
    cx_json_put_quoted(&list, "task_id", p->t->id);
    cx_json_put_quoted(&list, "request", p->t->contract.spec);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    CX_TRY(cx_run_mask_json(&g->mask, &value, g->arena, &value, err)); /* R7 */
    cx_buf_init(&text, g->alloc);
    cx_status status = cx_run_json_write(&text, &value, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        g->contract_text = cx_arena_copy_str(g->arena, cx_buf_str(&text));
        if (g->contract_text.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    g->contract = p->t->contract;
    g->contract_bytes = cx_str_bytes(g->contract_text);
    g->contract_sha256 = cx_digest_of(g->contract_bytes);
    p->t->contract_text = g->contract_text;
    p->t->started_at = p->started_at;
    cx_run_findings_init(&g->findings, g->arena);
    return status;
}

/* As it came: contract.json is the resolved form, and of a refused reply there is no other copy. */
static cx_status write_reply(cx_planner *p, cx_err *err)
{
    cx_str path = cx_arena_printf(p->governor->arena, "codex/%.*s/reply.txt", (int)p->t->id.size,
                                  p->t->id.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    return p->reply.data == NULL
               ? CX_SUCCESS
               : cx_run_file_write(p->governor->run, path, cx_str_bytes(p->reply), err);
}

cx_status cx_planner_write_evidence(cx_planner *p, cx_err *err)
{
    cx_governor *g = p->governor;
    cx_json_list list = cx_json_list_begin(g->arena);
    cx_json value;
    cx_digest contract = cx_digest_of(g->contract_bytes);
    cx_digest request = cx_digest_of(cx_str_bytes(g->options->intent));
    cx_json_put_quoted(&list, "request", g->options->intent);
    cx_json_put_digest(&list, "request_sha256", &request);
    cx_json_put_quoted(&list, "task_id", p->t->id);
    cx_json_put_quoted(&list, "runner", g->runner_settings.name);
    cx_json_put_quoted(&list, "profile", g->runner_settings.profile);
    cx_json_put_quoted(&list, "commit", g->planner_commit);
    cx_json_put_quoted(&list, "started_at", p->started_at);
    cx_json_put_quoted(&list, "finished_at", p->finished_at);
    if (p->t->refused)
        cx_json_list_put(&list, CX_STR("contract_sha256"), cx_json_make_null());
    else
        cx_json_put_digest(&list, "contract_sha256", &contract);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    CX_TRY(cx_run_mask_json(&g->mask, &value, g->arena, &value, err)); /* R7 */
    CX_TRY(cx_run_file_write_json(g->run, CX_STR(INTENT), &value, err));
    return write_reply(p, err);
}

void cx_governor_check_intent(cx_governor *g)
{
    if (g->contract.baseline_commit.size != 0 &&
        !cx_str_eq(g->contract.baseline_commit, g->planner_commit)) /* N3 */
        cx_run_findings_reject(
            &g->findings, "K05", CX_STR("/rollback/baseline_ref"), CX_STR(""),
            "a contract that is made of a request starts from the commit it was planned "
            "on, %.12s; use HEAD",
            g->planner_commit.data);
}

cx_status cx_governor_record_intent(cx_governor *g, cx_err *err)
{
    CX_TRY(cx_governor_record_events(g, err));
    CX_TRY(cx_task_add_artifact(&g->tasks[0], CX_STR(INTENT), err));
    return g->planner->refused ? CX_SUCCESS : cx_task_write_session(g->planner, err);
}
