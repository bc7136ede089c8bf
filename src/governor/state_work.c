/*
 * state_work.c - S2: one turn of the agent, its reply through the output gate, its work through
 * the diff gate, and the candidate commit (run.md §6, §9, §16).
 */
#include "governor/state_internal.h"
#include "agent/api.h"
#include "rules/api.h"

#define REPLY_BYTES_MAX CX_RUN_JSON_BYTES_MAX
#define SUMMARY_BYTES_MAX 4096

/* --- the turn --------------------------------------------------------------------------------- */

static cx_status make_turn(cx_governor_task *t, cx_runner_turn *out, cx_err *err)
{
    cx_governor *g = t->governor;
    const cx_contract *contract = &t->contract;
    cx_run_shell_map shell =
        cx_run_shell_mapping(contract->permissions.shell, contract->permissions.network);
    uint64_t seconds = contract->timeout_sec, most = g->policy.config.limits.command_sec;
    bool reviewer = contract->assigned.role == CX_ROLE_REVIEWER;
    cx_str prompt,
        instruction = t->plans ? cx_run_prompt_split() : cx_run_prompt_instruction(false);
    if (shell.error != NULL)
        return cx_fail(err, CX_E_FORMAT, "tool_permissions: %s", shell.error);
    CX_TRY(cx_run_prompt(instruction, t->contract_text, t->agent.schema, &t->arena, &prompt, err));
    *out = (cx_runner_turn){
        .attempt = t->attempt,
        .task_id = t->id,
        .run_id = cx_run_id(g->run),
        .instruction = instruction,
        .contract = t->contract_text,
        .schema = t->agent.schema,
        .prompt = prompt.data,
        .prompt_size = prompt.size,
        .schema_path = t->agent.schema_path,
        .worktree = t->workspace.worktree.path,
        .scratch = t->workspace.scratch,
        .sandbox_mode =
            cx_str_z(reviewer || t->plans ? cx_run_filesystem_name(CX_FS_READ_ONLY)
                                          : cx_run_filesystem_name(contract->filesystem)),
        .approval_policy =
            shell.approval_policy == NULL ? CX_STR("") : cx_str_z(shell.approval_policy),
        .shell_tool = shell.shell_tool,
        .thread_id = t->agent.thread_id,
        .timeout_ms = (seconds < most ? seconds : most) * 1000,
        .program = t->agent.program,
        .box = g->sandbox,
        .sandbox = &t->agent.spec,
        .cancel = g->options->cancel,
        .arena = &t->arena,
    };
    if (reviewer)
        out->approval_policy = CX_STR("never");
    else if (g->unconfined)
        out->sandbox_mode = cx_str_z(cx_run_filesystem_name(CX_FS_DANGER));
    return CX_SUCCESS;
}

/* K15, once more when they are handed over: each artifact still has the stated bytes. */
static cx_status check_artifacts(cx_governor_task *t, cx_err *err)
{
    cx_run_findings findings;
    cx_texts faults = {NULL, 0};
    cx_status status = CX_SUCCESS;
    t->gate = CX_GATE_CONTRACT;
    cx_run_findings_init(&findings, &t->arena);
    for (size_t i = 0; i < t->contract.artifact_count && !cx_failed(status); i++) {
        cx_bytes bytes;
        cx_str where = cx_arena_printf(&t->arena, "/inputs/artifacts/%zu", i);
        status =
            where.data == NULL
                ? cx_fail_nomem(err)
                : cx_run_contract_artifact(&t->contract, &t->contract.artifacts[i], where,
                                           &t->governor->repo, &t->arena, &findings, &bytes, err);
    }
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, &faults, err);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    return faults.count == 0
               ? CX_SUCCESS
               : cx_task_refuse(t, CX_GATE_CONTRACT, "artifact_changed", false, &faults, err);
}

static cx_status write_runner_started(cx_governor_task *t, const cx_runner_turn *turn, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&payload, "thread_id", t->agent.thread_id);
    cx_json_put_quoted(&payload, "sandbox", turn->sandbox_mode);
    if (turn->approval_policy.size != 0)
        cx_json_put_quoted(&payload, "approval_policy", turn->approval_policy);
    cx_json_put_quoted(&payload, "cwd", t->workspace.ref);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_RUNNER_STARTED, &payload, err);
}

static const char *end_name(cx_runner_end end)
{
    static const char *const names[] = {"ok", "failed", "timeout", "cancelled", "violation"};
    return names[end];
}

static cx_status write_runner_finished(cx_governor_task *t, const cx_runner_reply *reply,
                                       cx_err *err)
{
    bool good = reply->end == CX_RUNNER_OK;
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "exit", end_name(reply->end));
    if (!good)
        cx_json_put_quoted(&payload, "message", reply->message);
    if (reply->session != NULL)
        cx_json_put(&payload, "session", *reply->session);
    return cx_task_event(t, good ? CX_RUN_INFO : CX_RUN_ERROR, CX_RUN_EVENT_RUNNER_FINISHED,
                         &payload, err);
}

/* An error of ours in the middle of a turn still ends the turn in the events. */
static cx_status run_turn(cx_governor_task *t, const cx_runner_turn *turn, cx_runner_reply *reply,
                          cx_err *err)
{
    cx_runner_host host = cx_task_host(t);
    cx_err why;
    cx_status status = CX_SUCCESS;
    memset(reply, 0, sizeof *reply);
    cx_governor_leave(t->governor);
    if (!t->agent.started)
        status = t->agent.runner->start(t->agent.runner, &host, turn, &why);
    t->agent.started = true;
    if (!cx_failed(status))
        status = t->agent.runner->turn(t->agent.runner, &host, turn, reply, &why);
    cx_governor_enter(t->governor);
    t->agent.turns++;
    if (!cx_failed(status) || t->governor->log_failed)
        return status;
    reply->end = why.code == CX_E_DENIED && why.tag != NULL ? CX_RUNNER_VIOLATED : CX_RUNNER_FAILED;
    if (cx_task_cancelled(t))
        reply->end = CX_RUNNER_CANCELLED;
    reply->message = cx_governor_message(t->governor, &why, &t->arena);
    return reply->message.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status refuse_unfinished_turn(cx_governor_task *t, const cx_runner_reply *reply,
                                        cx_err *err)
{
    cx_texts violations = {&reply->message, reply->message.size == 0 ? 0u : 1u};
    t->refusal.hint = reply->message;
    if (reply->end == CX_RUNNER_VIOLATED)
        return cx_task_refuse(t, CX_GATE_RUNNER, "shell_denied", true, &violations, err);
    if (reply->end == CX_RUNNER_CANCELLED) {
        t->refusal.aborted = true;
        return cx_task_refuse(t, CX_GATE_INTERRUPTED, "signal", false, NULL, err);
    }
    return cx_task_refuse(t, CX_GATE_RUNNER, end_name(reply->end), false, &violations, err);
}

/* It outlives the runner that named it. */
static cx_status store_thread_id(cx_governor_task *t, cx_str id, cx_err *err)
{
    t->agent.thread_id = cx_arena_copy_str(&t->arena, id);
    return t->agent.thread_id.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status run_agent(cx_governor_task *t, cx_runner_reply *reply, cx_err *err)
{
    cx_runner_turn turn;
    CX_TRY(check_artifacts(t, err));
    if (t->refused)
        return CX_SUCCESS;
    t->gate = CX_GATE_RUNNER;
    if (t->agent.thread_id.size == 0)
        CX_TRY(store_thread_id(t,
                               t->agent.runner->thread_id.size != 0
                                   ? t->agent.runner->thread_id
                                   : t->contract.assigned.codex_thread_id,
                               err));
    CX_TRY(make_turn(t, &turn, err));
    CX_TRY(write_runner_started(t, &turn, err));
    t->refusal.blocked = false;
    CX_TRY(run_turn(t, &turn, reply, err));
    if (reply->thread_id.size != 0)
        CX_TRY(store_thread_id(t, reply->thread_id, err));
    CX_TRY(write_runner_finished(t, reply, err));
    return reply->end == CX_RUNNER_OK ? CX_SUCCESS : refuse_unfinished_turn(t, reply, err);
}

/* --- the output gate (§6) --------------------------------------------------------------------- */

/* The reply's task_id is the original's or, in the fix loop, that of the new contract. */
static bool names_this_task(const cx_governor_task *t, const cx_json *reply)
{
    cx_str id = CX_JSON_GET_STR(reply, "task_id");
    return cx_str_eq(id, t->id) || cx_str_eq(id, t->contract.task_id);
}

static cx_status check_reply(cx_governor_task *t, cx_bytes body, cx_texts *faults, cx_err *err)
{
    cx_run_findings findings;
    cx_err why;
    cx_str *one = CX_ARENA_NEW(&t->arena, cx_str);
    cx_str own =
        cx_arena_copy_str(&t->arena, cx_bytes_str(body)); /* what is read borrows from it */
    if (one == NULL || own.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_run_json_read(own, REPLY_BYTES_MAX, &t->arena, &t->agent.reply, &why);
    if (cx_failed(status)) {
        *one = cx_arena_printf(&t->arena, "not one JSON value: %s", why.message);
        *faults = (cx_texts){one, 1};
        return one->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_run_findings_init(&findings, &t->arena);
    status = cx_run_schema_check_bytes(t->agent.schema, &t->agent.reply, "output_schema", &findings,
                                       err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, faults, err);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    if (faults->count == 0 && !names_this_task(t, &t->agent.reply)) {
        *one = CX_STR("task_id is not that of the contract");
        *faults = (cx_texts){one, 1};
    }
    return CX_SUCCESS;
}

static cx_status add_transcript(cx_governor_task *t, cx_err *err)
{
    if (t->agent.transcript.size != 0 && !t->agent.transcript_listed)
        cx_buf_add_byte(&t->agent.transcript, '\n');
    t->agent.transcript_listed = true;
    cx_buf_printf(&t->agent.transcript, "- turn %u: ", t->attempt);
    for (size_t i = 0; i < t->agent.summary.size && i < SUMMARY_BYTES_MAX; i++)
        cx_buf_add_byte(&t->agent.transcript, (uint8_t)t->agent.summary.data[i] < 0x20
                                                  ? (uint8_t)' '
                                                  : (uint8_t)t->agent.summary.data[i]);
    cx_buf_add_byte(&t->agent.transcript, '\n');
    return cx_buf_check(&t->agent.transcript, err);
}

static cx_status gate_output(cx_governor_task *t, cx_bytes body, cx_err *err)
{
    cx_texts faults = {NULL, 0};
    t->gate = CX_GATE_OUTPUT_SCHEMA;
    CX_TRY(check_reply(t, body, &faults, err));
    if (faults.count != 0)
        return cx_task_refuse(t, CX_GATE_OUTPUT_SCHEMA, "reply_not_valid", false, &faults, err);
    CX_TRY(cx_run_mask_json(&t->governor->mask, &t->agent.reply, &t->arena, &t->agent.reply,
                            err)); /* R7 */
    CX_TRY(cx_task_check_evidence(t, err));
    if (t->refused)
        return CX_SUCCESS;
    t->agent.summary = CX_JSON_GET_STR(&t->agent.reply, "summary");
    CX_TRY(add_transcript(t, err));
    cx_str path = cx_task_file(t, "artifacts/runner_result.json");
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_file_write_json(t->governor->run, path, &t->agent.reply, err));
    t->agent.has_reply = true; /* its file is there */
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&payload, "schema", t->contract.output_schema_file);
    cx_json_put_bool(&payload, "passed", true);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_OUTPUT_SCHEMA_ENFORCED, &payload, err);
}

/* An agent's SUCCESS proves nothing; that it gave up is believed. */
static cx_status write_task_result(cx_governor_task *t, cx_err *err)
{
    cx_str status = CX_JSON_GET_STR(&t->agent.reply, "status");
    cx_json_list payload = cx_json_list_begin(&t->arena);
    if (status.size == 0)
        status = CX_JSON_GET_STR(&t->agent.reply, "verdict");
    cx_json_put_quoted(&payload, "status", status);
    CX_TRY(cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_TASK_RESULT_RECORDED, &payload, err));
    if (cx_str_is(status, "FAILED") || cx_str_is(status, "BLOCKED") ||
        cx_str_is(status, "SKIPPED")) {
        cx_texts violations = {&status, 1};
        t->gate = CX_GATE_RUNNER;
        return cx_task_refuse(t, CX_GATE_RUNNER, "agent_gave_up", false, &violations, err);
    }
    return CX_SUCCESS;
}

/* --- the candidate ---------------------------------------------------------------------------- */

cx_status cx_task_set_candidate(cx_governor_task *t, const cx_oid *commit, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE], tree[CX_OID_TEXT_SIZE];
    t->candidate.commit = *commit;
    cx_oid_text(commit, text);
    cx_oid_text(&t->candidate.diff.tree, tree);
    t->candidate.commit_text = cx_arena_copy_str(&t->arena, cx_str_z(text));
    t->candidate.tree_text = cx_arena_copy_str(&t->arena, cx_str_z(tree));
    if (t->candidate.commit_text.data == NULL || t->candidate.tree_text.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "commit", text);
    cx_json_put_z(&payload, "tree", tree);
    cx_json_put_quoted(&payload, "parent", t->governor->baseline);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_CANDIDATE_COMMITTED, &payload, err);
}

static cx_status commit_candidate(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_oid commit;
    cx_candidate_facts facts = {.run_id = cx_run_id(g->run),
                                .task_id = t->id,
                                .contract_sha256 = cx_digest_text(&g->contract_sha256, &t->arena),
                                .attempt = t->attempt,
                                .time_s = (int64_t)(g->io->wall_ns(g->io) / UINT64_C(1000000000)),
                                .branch = t->workspace.worktree.branch};
    t->gate = CX_GATE_CANDIDATE;
    CX_TRY(cx_run_candidate_commit(t->workspace.worktree.git, &t->candidate.diff, &facts, &commit,
                                   err));
    return cx_task_set_candidate(t, &commit, err);
}

/* --- the state -------------------------------------------------------------------------------- */

cx_status cx_task_turn(cx_governor_task *t, cx_err *err)
{
    cx_runner_reply reply;
    CX_TRY(run_agent(t, &reply, err));
    if (!t->refused)
        CX_TRY(gate_output(t, reply.body, err));
    if (!t->refused)
        CX_TRY(write_task_result(t, err));
    return t->refused ? CX_SUCCESS : cx_task_run_diff_gate(t, NULL, err);
}

cx_status cx_state_work(cx_governor_task *t, cx_err *err)
{
    if (t->plans)
        return cx_task_work_parts(t, err);
    if (!t->workspace.has_worktree) {
        CX_TRY(cx_task_enter(t, err));
        if (t->refused)
            return CX_SUCCESS;
    }
    CX_TRY(cx_task_turn(t, err));
    if (t->refused)
        return CX_SUCCESS;
    CX_TRY(commit_candidate(t, err));
    cx_task_go(t, CX_WHY_DIFF_PASSED);
    return CX_SUCCESS;
}
