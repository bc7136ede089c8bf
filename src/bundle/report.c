/*
 * report.c - what is said about a task: its result, its review, its tests (run.md §2, §17).
 *
 *   I1  A gate that was not reached says so and has not passed (§14).
 *   I2  task_result.status SUCCESS is written only with four passed gates: facts that contradict
 *       each other are written as FAILED, so that no report claims more than its gates.
 *   I3  Every reference points to a file of the bundle (§24, sentence 35).
 */
#include "bundle/report_parts.h"

#define GOVERNOR "cortex"

static bool gate_passed(const cx_run_gate *gate)
{
    return gate->reached && gate->passed && gate->violation_count == 0;
}

static bool all_passed(const cx_run_task_facts *facts)
{
    return gate_passed(&facts->diff_gate) && gate_passed(&facts->policy_gate) &&
           gate_passed(&facts->review_gate) && gate_passed(&facts->tests_gate);
}

/* I2 */
static cx_run_task_status status_of(const cx_run_task_facts *facts)
{
    if (facts->status == CX_RUN_TASK_SUCCESS && !all_passed(facts))
        return CX_RUN_TASK_FAILED;
    if (facts->status == CX_RUN_TASK_PENDING || facts->status == CX_RUN_TASK_RUNNING)
        return CX_RUN_TASK_FAILED; /* a report is written when the task is over */
    return facts->status;
}

static void put_gate(cx_json_list *gates, const char *name, const cx_run_gate *gate)
{
    static const cx_str not_run = {"not run", 7};
    cx_json_list object = cx_json_list_begin(gates->arena);
    cx_json_put_bool(&object, "passed", gate_passed(gate));
    if (gate->reached)
        cx_json_put_utf8_strs(&object, "violations", gate->violations, gate->violation_count);
    else
        cx_json_put_utf8_strs(&object, "violations", &not_run, 1); /* I1 */
    cx_json_put_object(gates, name, &object);
}

/* {role, agent_id, codex_thread_id} */
static void put_agent(cx_json_list *object, const char *name, cx_str role, cx_str agent_id,
                      cx_str thread_id)
{
    cx_json_list agent = cx_json_list_begin(object->arena);
    cx_json_put_utf8(&agent, "role", role);
    cx_run_part_put_or(&agent, "agent_id", agent_id, GOVERNOR);
    cx_run_part_put_given(&agent, "codex_thread_id", thread_id);
    cx_json_put_object(object, name, &agent);
}

/* {message, hint} */
static void put_failure(cx_json_list *object, cx_str message, cx_str hint)
{
    cx_json_list failure = cx_json_list_begin(object->arena);
    cx_json_put_utf8(&failure, "message", message);
    cx_json_put_utf8(&failure, "hint", hint);
    cx_json_put_object(object, "failure", &failure);
}

static void put_task(cx_json_list *object, const cx_run_task_facts *task)
{
    cx_json_put_utf8(object, "run_id", task->run_id);
    cx_json_put_utf8(object, "task_id", task->task_id);
    cx_json_put_uint(object, "attempt", task->attempt);
}

/* --- task_result ----------------------------------------------------------------------------- */

static void put_git(cx_json_list *object, const cx_run_task_facts *facts)
{
    cx_json_list git = cx_json_list_begin(object->arena);
    cx_run_part_put_or(&git, "baseline_ref", facts->baseline_commit, "none");
    cx_run_part_put_or(&git, "head_ref",
                       facts->head_commit.size != 0 ? facts->head_commit : facts->baseline_commit,
                       "none");
    cx_run_part_put_ref(&git, "changed_files", &facts->changed_files);
    cx_run_part_put_ref(&git, "patch", &facts->patch);
    cx_json_put_object(object, "git", &git);
}

static void put_gates(cx_json_list *object, const cx_run_task_facts *facts)
{
    cx_json_list gates = cx_json_list_begin(object->arena);
    put_gate(&gates, "diff_gate", &facts->diff_gate);
    put_gate(&gates, "policy_gate", &facts->policy_gate);
    put_gate(&gates, "review_gate", &facts->review_gate);
    put_gate(&gates, "tests_gate", &facts->tests_gate);
    cx_json_put_object(object, "gates", &gates);
}

static void put_next_steps(cx_json_list *object, const cx_run_task_facts *facts)
{
    cx_json_list next = cx_json_list_begin(object->arena);
    cx_json_put_z(&next, "suggested_action",
                  status_of(facts) == CX_RUN_TASK_SUCCESS ? "none" : "inspect");
    cx_json_put_utf8(&next, "notes", facts->notes);
    cx_json_put_object(object, "next_steps", &next);
}

/* What went wrong, in one word where a gate said no. */
static cx_str failure_of(const cx_run_task_facts *facts)
{
    if (facts->failed_gate.size != 0)
        return facts->failed_gate;
    switch (status_of(facts)) {
    case CX_RUN_TASK_SUCCESS: return CX_STR("");
    case CX_RUN_TASK_SKIPPED: return CX_STR("not started");
    default: return facts->aborted ? CX_STR("aborted") : CX_STR("gates not passed");
    }
}

cx_status cx_run_report_task_result(const cx_run_task_facts *facts, cx_arena *arena, cx_json *out,
                                    cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    cx_str failure = failure_of(facts);
    put_task(&object, facts);
    put_agent(&object, "producer",
              cx_run_part_is_role(facts->role) ? facts->role : CX_STR("ORCHESTRATOR"),
              facts->agent_id, facts->thread_id);
    cx_json_put_z(&object, "status", cx_run_task_status_name(status_of(facts)));
    cx_json_put_utf8(&object, "started_at", facts->started_at);
    cx_json_put_utf8(&object, "finished_at", facts->finished_at);
    cx_run_part_put_or(&object, "summary", facts->summary, "not started");
    cx_run_part_put_refs(&object, "artifacts", facts->artifacts, facts->artifact_count);
    put_git(&object, facts);
    put_gates(&object, facts);
    put_next_steps(&object, facts);
    if (failure.size != 0)
        put_failure(&object, failure, facts->failure_hint);
    return cx_json_list_end_object(&object, out, err);
}

/* --- work_report ----------------------------------------------------------------------------- */

/* The roles that this document knows; another one is left out. */
static bool is_work_role(cx_str role)
{
    static const char *const roles[] = {"PM",       "TECH_LEAD",   "WORKER",
                                        "REVIEWER", "TEST_RUNNER", "ORCHESTRATOR"};
    for (size_t i = 0; i < CX_COUNT_OF(roles); i++)
        if (cx_str_is(role, roles[i]))
            return true;
    return false;
}

static void put_diff_summary(cx_json_list *object, const cx_run_task_facts *facts)
{
    size_t size = 0, used = 0;
    for (size_t i = 0; i < facts->changed_count; i++)
        size += facts->changed[i].size + 2;
    char *text = size == 0 ? NULL : cx_arena_push(object->arena, size, 1);
    if (text == NULL && size != 0) {
        object->failed = true;
        return;
    }
    for (size_t i = 0; i < facts->changed_count; i++) {
        memcpy(text + used, ", ", i == 0 ? 0 : 2);
        used += i == 0 ? 0 : 2;
        if (facts->changed[i].size != 0)
            memcpy(text + used, facts->changed[i].data, facts->changed[i].size);
        used += facts->changed[i].size;
    }
    cx_json_put_utf8(object, "diff_summary", cx_str_from(text, used));
}

cx_status cx_run_report_work_report(const cx_run_task_facts *facts, cx_arena *arena, cx_json *out,
                                    cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_list evidence = cx_json_list_begin(arena);
    bool success = status_of(facts) == CX_RUN_TASK_SUCCESS;
    put_task(&object, facts);
    if (is_work_role(facts->role))
        cx_json_put_utf8(&object, "role", facts->role);
    cx_json_put_z(&object, "status", success ? "success" : facts->aborted ? "aborted" : "fail");
    cx_run_part_put_or(&object, "patch_ref", facts->patch.path, "patch.diff");
    put_diff_summary(&object, facts);
    cx_json_put_z(&evidence, "task_result", "reports/task_result.json");
    cx_json_put_object(&object, "evidence_refs", &evidence);
    cx_json_put_utf8(&object, "failure_reason", failure_of(facts));
    return cx_json_list_end_object(&object, out, err);
}

/* --- evidence -------------------------------------------------------------------------------- */

/* "bundle-" and the end of the run's id. */
static cx_str bundle_id(cx_arena *arena, cx_str run_id)
{
    size_t size = run_id.size < 8 ? run_id.size : 8;
    return cx_arena_printf(arena, "bundle-%.*s%s", (int)size, run_id.data + (run_id.size - size),
                           size == 0 ? "0" : "");
}

/* Copies those members of `from` that have the type. */
static void copy_members(cx_json_list *to, const cx_json *from, const char *const *names,
                         size_t count, cx_json_type type)
{
    for (size_t i = 0; i < count; i++) {
        const cx_json *value = cx_json_get_typed(from, cx_str_z(names[i]), type);
        if (value != NULL)
            cx_json_list_put(to, cx_str_z(names[i]), *value);
    }
}

static void add_source(cx_json_list *sources, const cx_json *given)
{
    static const char *const texts[] = {"source_id", "retrieved_at",   "url",
                                        "publisher", "content_sha256", "notes"};
    cx_json_list one = cx_json_list_begin(sources->arena);
    cx_str kind = CX_JSON_GET_STR(given, "kind"), title = CX_JSON_GET_STR(given, "title");
    copy_members(&one, given, texts, CX_COUNT_OF(texts), CX_JSON_STRING);
    cx_run_part_put_or(&one, "kind", kind, "webpage");
    cx_run_part_put_or(&one, "title", title.size != 0 ? title : CX_JSON_GET_STR(given, "url"),
                       "(none)");
    cx_json_add_object(sources, &one);
}

/* The agent's word that a claim is verified is not a verification (I3). */
static void add_claim(cx_json_list *claims, const cx_json *given)
{
    static const char *const texts[] = {"claim_id", "text", "verification_notes", "risk_if_wrong"};
    static const char *const arrays[] = {"supporting_source_ids", "contradicting_source_ids"};
    cx_json_list one = cx_json_list_begin(claims->arena);
    cx_str status = CX_JSON_GET_STR(given, "status");
    const cx_json *confidence = CX_JSON_GET(given, "confidence");
    copy_members(&one, given, texts, CX_COUNT_OF(texts), CX_JSON_STRING);
    copy_members(&one, given, arrays, CX_COUNT_OF(arrays), CX_JSON_ARRAY);
    cx_json_put_utf8(&one, "status",
                     status.size == 0 || cx_str_is(status, "VERIFIED") ? CX_STR("UNVERIFIED")
                                                                       : status);
    cx_json_put(&one, "confidence",
                confidence != NULL ? *confidence : cx_json_make_int(claims->arena, 0));
    cx_json_add_object(claims, &one);
}

static void add_evidence(const cx_run_task_facts *facts, cx_json_list *sources,
                         cx_json_list *claims, cx_json_list *limitations)
{
    const cx_json *given[2] = {NULL, NULL};
    if (facts->evidence != NULL) {
        given[0] = cx_json_get_typed(facts->evidence, CX_STR("sources"), CX_JSON_ARRAY);
        given[1] = cx_json_get_typed(facts->evidence, CX_STR("claims"), CX_JSON_ARRAY);
        cx_json_list_add(limitations,
                         cx_json_make_str(CX_STR("sources, digests and claims are as the agent "
                                                 "reported them; nothing was fetched again")));
    }
    for (uint32_t i = 0; given[0] != NULL && i < given[0]->count; i++)
        add_source(sources, &given[0]->items[i]);
    for (uint32_t i = 0; given[1] != NULL && i < given[1]->count; i++)
        add_claim(claims, &given[1]->items[i]);
    if (facts->evidence_note.size != 0)
        cx_json_list_add(limitations, cx_json_make_str(facts->evidence_note));
}

cx_status cx_run_report_evidence_bundle(const cx_run_task_facts *facts, cx_arena *arena,
                                        cx_json *out, cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_list by = cx_json_list_begin(arena), query = cx_json_list_begin(arena);
    cx_json_list sources = cx_json_list_begin(arena), source = cx_json_list_begin(arena);
    cx_json_list claims = cx_json_list_begin(arena), limitations = cx_json_list_begin(arena);
    cx_str baseline = facts->baseline_commit.size == 0 ? CX_STR("none") : facts->baseline_commit;
    cx_str title =
        cx_arena_printf(arena, "baseline commit %.*s", (int)baseline.size, baseline.data);
    cx_str id = bundle_id(arena, facts->run_id);
    if (title.data == NULL || id.data == NULL)
        return cx_fail_nomem(err);
    cx_json_put_utf8(&object, "bundle_id", id);
    cx_json_put_utf8(&object, "created_at", facts->created_at);
    cx_json_put_z(&by, "role", "ORCHESTRATOR");
    cx_json_put_z(&by, "agent_id", GOVERNOR);
    cx_json_put_object(&object, "requested_by", &by);
    cx_run_part_put_or(&query, "raw_question", facts->spec, "(none)");
    cx_run_part_put_or(&query, "refined_prompt", facts->spec, "(none)");
    cx_json_put_object(&object, "query", &query);
    cx_json_put_z(&source, "source_id", "src-0");
    cx_json_put_z(&source, "kind", "repo");
    cx_json_put_utf8(&source, "title", title);
    cx_json_put_utf8(&source, "retrieved_at", facts->created_at);
    cx_json_add_object(&sources, &source);
    add_evidence(facts, &sources, &claims, &limitations);
    cx_json_put_array(&object, "sources", &sources);
    cx_json_put_array(&object, "claims", &claims);
    cx_json_put_array(&object, "limitations", &limitations);
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_report_evidence_report(const cx_str *missing, size_t count, cx_arena *arena,
                                        cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_z(&object, "status", count == 0 ? "ok" : "fail");
    cx_json_put_utf8_strs(&object, "missing", missing, count);
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_report_runner_stub(const cx_run_task_facts *facts, cx_arena *arena, cx_json *out,
                                    cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), refs = cx_json_list_begin(arena);
    bool refused = facts->failed_gate.size != 0;
    cx_str why = cx_arena_printf(
        arena, "%.*s%s", (int)(refused ? facts->failed_gate.size : failure_of(facts).size),
        refused ? facts->failed_gate.data : failure_of(facts).data, refused ? " gate" : "");
    if (why.data == NULL)
        return cx_fail_nomem(err);
    cx_json_put_utf8(&object, "task_id", facts->task_id);
    cx_json_put_z(&object, "status", cx_run_task_status_name(status_of(facts)));
    cx_run_part_put_or(&object, "summary", facts->summary, "not started");
    cx_json_put_object(&object, "evidence_refs", &refs);
    put_failure(&object, why, facts->failure_hint);
    return cx_json_list_end_object(&object, out, err);
}

/* --- review ---------------------------------------------------------------------------------- */

static void put_scope(cx_json_list *object, const cx_run_task_facts *task,
                      const cx_run_review_facts *facts)
{
    cx_json_list scope = cx_json_list_begin(object->arena);
    bool reached = facts->reached;
    cx_json_put_bool(&scope, "passed",
                     reached && facts->scope_passed && facts->violation_count == 0);
    if (reached)
        cx_json_put_utf8_strs(&scope, "violations", facts->violations, facts->violation_count);
    else
        cx_json_put_utf8_strs(&scope, "violations", task->diff_gate.violations,
                              task->diff_gate.reached ? task->diff_gate.violation_count : 0);
    cx_json_put_object(object, "scope_check", &scope);
}

cx_status cx_run_report_review(const cx_run_task_facts *task, const cx_run_review_facts *facts,
                               cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    bool reached = facts->reached;
    put_task(&object, task);
    put_agent(&object, "reviewer", CX_STR("REVIEWER"),
              facts->agent_id.size != 0 ? facts->agent_id : task->agent_id, facts->thread_id);
    cx_json_put_utf8(&object, "reviewed_at",
                     reached && facts->reviewed_at.size != 0 ? facts->reviewed_at
                                                             : task->started_at);
    cx_json_put_z(&object, "verdict",
                  cx_run_review_verdict_name(reached ? facts->verdict : CX_RUN_REVIEW_BLOCKED));
    cx_run_part_put_or(&object, "summary", reached ? facts->summary : CX_STR(""),
                       reached ? "no finding" : "not reviewed");
    put_scope(&object, task, facts);
    if (facts->evidence_count != 0)
        cx_run_part_put_refs(&object, "evidence", facts->evidence, facts->evidence_count);
    else
        cx_run_part_put_refs(&object, "evidence", &task->patch, task->patch.path.size != 0);
    cx_json_put_bool(&object, "produced_diff", false);
    cx_run_part_put_given(&object, "notes", facts->notes);
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_report_review_failed(uint32_t attempt, const cx_run_review_facts *facts,
                                      cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_uint(&object, "attempt", attempt);
    cx_json_put_z(&object, "verdict", cx_run_review_verdict_name(facts->verdict));
    cx_json_put_utf8(&object, "summary", facts->summary);
    cx_json_put_utf8_strs(&object, "violations", facts->violations, facts->violation_count);
    return cx_json_list_end_object(&object, out, err);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void put_command(cx_json_list *array, const cx_run_command_facts *command)
{
    cx_json_list object = cx_json_list_begin(array->arena);
    uint64_t ms = command->duration_ms;
    cx_json_put_utf8(&object, "name", command->name);
    cx_json_put_utf8_strs(&object, "cmd_argv", command->argv, command->argv_count);
    cx_json_put_bool(&object, "must_pass", command->must_pass);
    cx_json_put_uint(&object, "timeout_sec", command->timeout_sec);
    cx_json_put(&object, "exit_code", cx_json_make_int(array->arena, (int64_t)command->exit_code));
    cx_json_put(&object, "duration_sec",
                ms % 1000 == 0 ? cx_json_make_uint(array->arena, ms / 1000)
                               : cx_json_make_double(array->arena, (double)ms / 1000));
    cx_run_part_put_given(&object, "cwd", command->cwd);
    cx_run_part_put_ref(&object, "stdout", &command->stdout_ref);
    cx_run_part_put_ref(&object, "stderr", &command->stderr_ref);
    if (command->report != NULL)
        cx_json_put(&object, "report", *command->report);
    if (command->report != NULL && command->report_ref.path.size != 0)
        cx_run_part_put_ref(&object, "report_file", &command->report_ref);
    cx_json_add_object(array, &object);
}

/* PASS needs a must_pass command that ran, and none that failed or whose report was refused
 * (§12). */
static cx_run_test_status test_status(const cx_run_test_facts *facts)
{
    size_t good = 0;
    if (facts->status != CX_RUN_TESTS_PASS)
        return facts->status;
    for (size_t i = 0; i < facts->command_count; i++) {
        if (!facts->commands[i].must_pass)
            continue;
        if (facts->commands[i].exit_code != 0 || facts->commands[i].report_refused)
            return CX_RUN_TESTS_FAIL;
        good++;
    }
    return good == 0 ? CX_RUN_TESTS_ERROR : CX_RUN_TESTS_PASS;
}

static void put_counts(cx_json_list *object, const cx_run_test_facts *facts)
{
    cx_json_list counts = cx_json_list_begin(object->arena);
    cx_json_put_uint(&counts, "passed", facts->passed);
    cx_json_put_uint(&counts, "failed", facts->failed);
    cx_json_put_uint(&counts, "skipped", facts->skipped);
    cx_json_put_object(object, "summary", &counts);
}

cx_status cx_run_report_tests(const cx_run_task_facts *task, const cx_run_test_facts *facts,
                              cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), commands = cx_json_list_begin(arena);
    put_task(&object, task);
    put_agent(&object, "runner", CX_STR("TEST_RUNNER"),
              facts->agent_id.size != 0 ? facts->agent_id : task->agent_id, CX_STR(""));
    cx_json_put_utf8(&object, "started_at",
                     facts->started_at.size != 0 ? facts->started_at : task->started_at);
    cx_json_put_utf8(&object, "finished_at",
                     facts->finished_at.size != 0 ? facts->finished_at : task->finished_at);
    cx_json_put_z(&object, "status", cx_run_test_status_name(test_status(facts)));
    for (size_t i = 0; i < facts->command_count; i++)
        put_command(&commands, &facts->commands[i]);
    cx_json_put_array(&object, "commands", &commands);
    cx_run_part_put_refs(&object, "artifacts", facts->artifacts, facts->artifact_count);
    if (facts->counted)
        put_counts(&object, facts);
    if (facts->failure.size != 0)
        put_failure(&object, facts->failure, CX_STR(""));
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_report_tests_failed(uint32_t attempt, const cx_run_test_facts *facts,
                                     cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), failed = cx_json_list_begin(arena);
    cx_json_put_uint(&object, "attempt", attempt);
    for (size_t i = 0; i < facts->command_count; i++) {
        const cx_run_command_facts *command = &facts->commands[i];
        cx_json_list one = cx_json_list_begin(arena);
        if (!command->must_pass || (command->exit_code == 0 && !command->report_refused))
            continue;
        cx_json_put_utf8(&one, "name", command->name);
        cx_json_put(&one, "exit_code", cx_json_make_int(arena, (int64_t)command->exit_code));
        cx_json_put_digest(&one, "stdout_sha256", &command->stdout_ref.sha256);
        cx_json_put_digest(&one, "stderr_sha256", &command->stderr_ref.sha256);
        if (command->report != NULL)
            cx_json_put(&one, "report", *command->report);
        cx_json_add_object(&failed, &one);
    }
    cx_json_put_array(&object, "failed", &failed);
    return cx_json_list_end_object(&object, out, err);
}
