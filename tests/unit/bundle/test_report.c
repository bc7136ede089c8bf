/*
 * Documents of a run: the facts of each golden bundle give the golden documents back, member by
 * member; facts that are missing or contradict each other never become a pass (run.md §2, §17).
 */
#include "base/alloc.h"
#include "base/io.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "bundle/report.h"
#include "rules/schemas.h"
#include "tests/test.h"

typedef struct fixture {
    cx_arena arena;
    cx_buf room;
    const char *scenario;
} fixture;

static void fixture_begin(fixture *s, const char *scenario)
{
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    cx_buf_init(&s->room, cx_alloc_default());
    s->scenario = scenario;
}

static void fixture_end(fixture *s)
{
    cx_buf_done(&s->room);
    cx_arena_done(&s->arena);
}

/* A document of the golden bundle; an empty object when there is none. */
static cx_json golden(fixture *s, const char *path)
{
    cx_err err;
    cx_json value = {.type = CX_JSON_OBJECT};
    cx_str name = cx_arena_printf(&s->arena, "vectors/run/golden/%s/bundle/%s", s->scenario, path);
    cx_buf_clear(&s->room);
    if (cx_failed(
            cx_io_read_file(cx_io_system(), cx_test_path(name.data), 1 << 20, &s->room, &err)))
        return value;
    cx_str text = cx_arena_copy_str(&s->arena, cx_buf_str(&s->room));
    CHECK_STATUS(cx_run_json_read(text, 0, &s->arena, &value, &err), &err);
    return value;
}

static cx_str at(const cx_json *value, const char *pointer)
{
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    return found == NULL || found->type != CX_JSON_STRING ? CX_STR("") : cx_json_text(found);
}

static uint64_t number_at(const cx_json *value, const char *pointer)
{
    uint64_t number = 0;
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    if (found != NULL)
        CHECK(cx_json_uint64(found, &number));
    return number;
}

static const cx_str *texts(fixture *s, const cx_json *array, size_t *out_count)
{
    cx_str *list = CX_ARENA_ARRAY(&s->arena, cx_str, array == NULL ? 1 : array->count + 1);
    *out_count = array == NULL ? 0 : array->count;
    for (size_t i = 0; i < *out_count; i++)
        list[i] = cx_json_text(&array->items[i]);
    return list;
}

static cx_run_ref ref_at(const cx_json *object)
{
    cx_run_ref ref = {.path = at(object, "/path"), .size_bytes = number_at(object, "/size_bytes")};
    if (ref.path.size != 0)
        CHECK(cx_digest_parse(at(object, "/sha256"), &ref.sha256));
    return ref;
}

static cx_run_gate gate_at(fixture *s, const cx_json *result, const char *pointer)
{
    cx_run_gate gate = {.reached = true};
    const cx_json *object = cx_json_pointer(result, cx_str_z(pointer));
    const cx_json *verdict = CX_JSON_GET(object, "passed");
    gate.passed = verdict != NULL && verdict->type == CX_JSON_TRUE;
    gate.violations = texts(s, CX_JSON_GET(object, "violations"), &gate.violation_count);
    if (gate.violation_count == 1 && cx_str_is(gate.violations[0], "not run"))
        gate = (cx_run_gate){.reached = false};
    return gate;
}

static cx_run_task_status task_status(cx_str name)
{
    for (int i = 0; i <= CX_RUN_TASK_BLOCKED; i++)
        if (cx_str_is(name, cx_run_task_status_name((cx_run_task_status)i)))
            return (cx_run_task_status)i;
    cx_test_fail(__FILE__, __LINE__, "no task status: %.*s", (int)name.size, name.data);
    return CX_RUN_TASK_SKIPPED;
}

/* What the machine knew, taken from what the golden bundle says. */
static cx_run_task_facts task_facts(fixture *s)
{
    cx_json manifest = golden(s, "manifest.json"), result = golden(s, "reports/task_result.json");
    cx_json work = golden(s, "reports/work_report.json");
    cx_run_task_facts facts = {
        .run_id = at(&result, "/run_id"),
        .task_id = at(&result, "/task_id"),
        .attempt = (uint32_t)number_at(&result, "/attempt"),
        .role = at(&result, "/producer/role"),
        .agent_id = at(&result, "/producer/agent_id"),
        .spec = at(&manifest, "/user_request"),
        .created_at = at(&manifest, "/created_at"),
        .started_at = at(&result, "/started_at"),
        .finished_at = at(&result, "/finished_at"),
        .status = task_status(at(&result, "/status")),
        .failed_gate = at(&manifest, "/failure_reason"),
        .summary = at(&result, "/summary"),
        .baseline_commit = at(&result, "/git/baseline_ref"),
        .head_commit = at(&result, "/git/head_ref"),
        .diff_gate = gate_at(s, &result, "/gates/diff_gate"),
        .policy_gate = gate_at(s, &result, "/gates/policy_gate"),
        .review_gate = gate_at(s, &result, "/gates/review_gate"),
        .tests_gate = gate_at(s, &result, "/gates/tests_gate"),
        .patch = ref_at(cx_json_pointer(&result, CX_STR("/git/patch"))),
        .changed_files = ref_at(cx_json_pointer(&result, CX_STR("/git/changed_files"))),
    };
    cx_run_ref *artifact = CX_ARENA_NEW(&s->arena, cx_run_ref);
    cx_str *changed = CX_ARENA_NEW(&s->arena, cx_str);
    *artifact = ref_at(cx_json_pointer(&result, CX_STR("/artifacts/0")));
    *changed = at(&work, "/diff_summary"); /* one text stands for the list joined by ", " */
    facts.artifacts = artifact;
    facts.artifact_count = 1;
    facts.changed = changed;
    facts.changed_count = changed->size != 0;
    return facts;
}

/* Every document that has a schema is valid under it. */
static void valid(fixture *s, const char *schema, const cx_json *made)
{
    cx_err err;
    cx_run_findings findings;
    cx_run_findings_init(&findings, &s->arena);
    CHECK_STATUS(cx_run_schema_check(schema, made, "report_schema", &findings, &err), &err);
    for (size_t i = 0; i < findings.list.count; i++)
        cx_test_fail(__FILE__, __LINE__, "%s %s: %.*s: %.*s", s->scenario, schema,
                     (int)findings.list.items[i].where.size, findings.list.items[i].where.data,
                     (int)findings.list.items[i].message.size, findings.list.items[i].message.data);
    cx_run_findings_done(&findings);
}

/* "reports/task_result.json" has task_result.v1.json; NULL = none. */
static const char *schema_of(fixture *s, const char *path)
{
    cx_str name = cx_str_z(path);
    if (cx_str_is(name, "manifest.json"))
        return "run_manifest.v1.json";
    if (!cx_str_starts(name, CX_STR("reports/")))
        return NULL;
    return cx_arena_printf(&s->arena, "%.*s.v1.json", (int)(name.size - 13), path + 8).data;
}

static void same(fixture *s, const char *path, cx_status status, const cx_json *made, cx_err *err)
{
    cx_json wanted = golden(s, path);
    const char *schema = schema_of(s, path);
    if (!cx_failed(status) && schema != NULL)
        valid(s, schema, made);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "%s %s: %s", s->scenario, path, err->message);
    } else if (!cx_json_equal(made, &wanted)) {
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        CHECK_STATUS(cx_run_json_write(&text, made, err), err);
        cx_test_fail(__FILE__, __LINE__, "%s %s differs; made:\n%.*s", s->scenario, path,
                     (int)text.size, (const char *)text.data);
        cx_buf_done(&text);
    }
}

static const cx_run_command_facts *commands(fixture *s, const cx_json *report, size_t *out_count)
{
    const cx_json *list = CX_JSON_GET(report, "commands");
    cx_run_command_facts *made =
        CX_ARENA_ARRAY(&s->arena, cx_run_command_facts, (size_t)list->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *one = &list->items[i];
        made[i] = (cx_run_command_facts){
            .name = at(one, "/name"),
            .must_pass = CX_JSON_GET(one, "must_pass")->type == CX_JSON_TRUE,
            .timeout_sec = number_at(one, "/timeout_sec"),
            .exit_code = (int)number_at(one, "/exit_code"),
            .duration_ms = 1000 * number_at(one, "/duration_sec"),
            .stdout_ref = ref_at(CX_JSON_GET(one, "stdout")),
            .stderr_ref = ref_at(CX_JSON_GET(one, "stderr")),
        };
        made[i].argv = texts(s, CX_JSON_GET(one, "cmd_argv"), &made[i].argv_count);
    }
    *out_count = list->count;
    return made;
}

static cx_run_test_facts test_facts(fixture *s, const cx_json *report)
{
    cx_run_test_facts facts = {.failure = at(report, "/failure/message")};
    for (int i = 0; i <= CX_RUN_TESTS_ERROR; i++)
        if (cx_str_is(at(report, "/status"), cx_run_test_status_name((cx_run_test_status)i)))
            facts.status = (cx_run_test_status)i;
    facts.commands = commands(s, report, &facts.command_count);
    return facts;
}

static cx_run_manifest_facts manifest_facts(fixture *s, const cx_json *manifest,
                                            cx_run_manifest_task *task)
{
    const cx_json *files = CX_JSON_GET(manifest, "artifacts");
    cx_run_ref *refs = CX_ARENA_ARRAY(&s->arena, cx_run_ref, files->count);
    for (uint32_t i = 0; i < files->count; i++)
        refs[i] = ref_at(&files->items[i]);
    *task = (cx_run_manifest_task){
        .task_id = at(manifest, "/tasks/0/task_id"),
        .role = at(manifest, "/tasks/0/role"),
        .agent_id = at(manifest, "/tasks/0/assigned_agent_id"),
        .thread_id = at(manifest, "/tasks/0/thread_id"),
        .status = task_status(at(manifest, "/tasks/0/status")),
        .contract = ref_at(cx_json_pointer(manifest, CX_STR("/tasks/0/contract"))),
        .result = ref_at(cx_json_pointer(manifest, CX_STR("/tasks/0/result"))),
        .review_report = ref_at(cx_json_pointer(manifest, CX_STR("/tasks/0/review_report"))),
        .test_report = ref_at(cx_json_pointer(manifest, CX_STR("/tasks/0/test_report"))),
    };
    return (cx_run_manifest_facts){
        .run_id = at(manifest, "/run_id"),
        .task_id = at(manifest, "/task_id"),
        .created_at = at(manifest, "/created_at"),
        .finished_at = at(manifest, "/finished_at"),
        .status = cx_str_is(at(manifest, "/status"), "SUCCESS") ? CX_RUN_SUCCESS : CX_RUN_FAILURE,
        .failure_reason = at(manifest, "/failure_reason"),
        .user_request = at(manifest, "/user_request"),
        .trace_id = at(manifest, "/trace_id"),
        .runner_name = at(manifest, "/runner/name"),
        .policy_pack = at(manifest, "/policy_pack"),
        .baseline_commit = at(manifest, "/repo/baseline_ref"),
        .final_commit = at(manifest, "/repo/final_ref"),
        .cortex_version = at(manifest, "/versions/orchestrator"),
        .tasks = task,
        .task_count = 1,
        .files = refs,
        .file_count = files->count,
    };
}

static void check_reports(fixture *s, const cx_run_task_facts *task)
{
    cx_err err;
    cx_json made, review = golden(s, "reports/review_report.json");
    same(s, "reports/task_result.json", cx_run_report_task_result(task, &s->arena, &made, &err),
         &made, &err);
    same(s, "reports/work_report.json", cx_run_report_work_report(task, &s->arena, &made, &err),
         &made, &err);
    same(s, "reports/evidence_bundle.json",
         cx_run_report_evidence_bundle(task, &s->arena, &made, &err), &made, &err);
    same(s, "reports/evidence_report.json",
         cx_run_report_evidence_report(NULL, 0, &s->arena, &made, &err), &made, &err);
    cx_run_review_facts facts = {
        .reached = !cx_str_is(at(&review, "/summary"), "not reviewed"),
        .verdict = CX_RUN_REVIEW_PASS,
        .scope_passed = true,
    };
    same(s, "reports/review_report.json",
         cx_run_report_review(task, &facts, &s->arena, &made, &err), &made, &err);
    if (task->status == CX_RUN_TASK_BLOCKED)
        same(s, "artifacts/runner_result.json",
             cx_run_report_runner_stub(task, &s->arena, &made, &err), &made, &err);
}

static void check_scenario(const char *scenario)
{
    fixture s;
    cx_err err;
    cx_json made;
    cx_run_manifest_task manifest_task;
    fixture_begin(&s, scenario);
    cx_json report = golden(&s, "reports/test_report.json"), manifest = golden(&s, "manifest.json");
    cx_json meta = golden(&s, "meta.json");
    cx_run_task_facts task = task_facts(&s);
    check_reports(&s, &task);
    cx_run_test_facts tests = test_facts(&s, &report);
    same(&s, "reports/test_report.json", cx_run_report_tests(&task, &tests, &s.arena, &made, &err),
         &made, &err);
    if (tests.status == CX_RUN_TESTS_FAIL)
        same(&s, "artifacts/tests_failed_attempt_1.json",
             cx_run_report_tests_failed(1, &tests, &s.arena, &made, &err), &made, &err);
    cx_run_manifest_facts run = manifest_facts(&s, &manifest, &manifest_task);
    same(&s, "manifest.json", cx_run_report_manifest(&run, &s.arena, &made, &err), &made, &err);
    cx_run_meta_facts about = {.run_id = at(&meta, "/run_id"),
                               .cortex_version = at(&meta, "/versions/cortex"),
                               .git_version = at(&meta, "/versions/git"),
                               .runner = at(&meta, "/params/runner"),
                               .env_hash = cx_digest_of(cx_bytes_from(NULL, 0))};
    same(&s, "meta.json", cx_run_report_meta(&about, &s.arena, &made, &err), &made, &err);
    fixture_end(&s);
}

CX_TEST(facts_of_golden_runs_give_golden_documents)
{
    static const char *const scenarios[] = {"success",  "out_of_scope", "tests_fail",
                                            "fix_loop", "tool_gate",    "wide_path"};
    for (size_t i = 0; i < CX_COUNT_OF(scenarios); i++)
        check_scenario(scenarios[i]);
}

/* --- reports without facts ------------------------------------------------------------------- */

static cx_run_task_facts bare_facts(void)
{
    return (cx_run_task_facts){
        .run_id = CX_STR("run_20260101_000000_ab"),
        .task_id = CX_STR("task_bare"),
        .created_at = CX_STR("2026-01-01T00:00:00.000000Z"),
        .started_at = CX_STR("2026-01-01T00:00:00.000000Z"),
        .finished_at = CX_STR("2026-01-01T00:00:01.000000Z"),
        .patch = cx_run_ref_of(CX_STR("patch.diff"), (cx_bytes){NULL, 0}),
        .changed_files = cx_run_ref_of(CX_STR("diff_name_only.txt"), (cx_bytes){NULL, 0})};
}

CX_TEST(nothing_reached_is_nothing_passed)
{
    fixture s;
    cx_err err;
    cx_json result, review, tests, work, evidence;
    cx_run_task_facts task = bare_facts();
    const cx_run_review_facts no_review = {
        .reached = false, .verdict = CX_RUN_REVIEW_PASS, .scope_passed = true};
    const cx_run_test_facts no_tests = {.status = CX_RUN_TESTS_SKIPPED};
    fixture_begin(&s, "");
    CHECK_STATUS(cx_run_report_task_result(&task, &s.arena, &result, &err), &err);
    CHECK_STATUS(cx_run_report_work_report(&task, &s.arena, &work, &err), &err);
    CHECK_STATUS(cx_run_report_review(&task, &no_review, &s.arena, &review, &err), &err);
    CHECK_STATUS(cx_run_report_tests(&task, &no_tests, &s.arena, &tests, &err), &err);
    valid(&s, "task_result.v1.json", &result);
    valid(&s, "work_report.v1.json", &work);
    valid(&s, "review_report.v1.json", &review);
    valid(&s, "test_report.v1.json", &tests);
    CHECK_STATUS(cx_run_report_evidence_bundle(&task, &s.arena, &evidence, &err), &err);
    valid(&s, "evidence_bundle.v1.json", &evidence);
    CHECK_STR(at(&result, "/status"), "SKIPPED");
    CHECK_STR(at(&result, "/producer/role"), "ORCHESTRATOR");
    CHECK_STR(at(&result, "/git/baseline_ref"), "none");
    CHECK_STR(at(&result, "/gates/diff_gate/violations/0"), "not run");
    CHECK_STR(at(&result, "/gates/policy_gate/violations/0"), "not run");
    CHECK_STR(at(&result, "/failure/message"), "not started");
    CHECK_STR(at(&work, "/status"), "fail");
    CHECK_STR(at(&review, "/verdict"), "BLOCKED");
    CHECK(cx_json_pointer(&review, CX_STR("/scope_check/passed"))->type == CX_JSON_FALSE);
    CHECK_STR(at(&tests, "/status"), "SKIPPED");
    fixture_end(&s);
}

CX_TEST(success_needs_four_gates)
{
    fixture s;
    cx_err err;
    cx_json result;
    const cx_run_gate good = {.reached = true, .passed = true};
    cx_run_task_facts task = bare_facts();
    fixture_begin(&s, "");
    task.status = CX_RUN_TASK_SUCCESS;
    task.diff_gate = task.policy_gate = task.review_gate = task.tests_gate = good;
    CHECK_STATUS(cx_run_report_task_result(&task, &s.arena, &result, &err), &err);
    CHECK_STR(at(&result, "/status"), "SUCCESS");
    cx_run_gate *const gates[] = {&task.diff_gate, &task.policy_gate, &task.review_gate,
                                  &task.tests_gate};
    const cx_str violation = CX_STR("D07 x");
    const cx_run_gate bad[] = {
        {.reached = false, .passed = true},
        {.reached = true, .passed = false},
        {.reached = true, .passed = true, .violations = &violation, .violation_count = 1}};
    for (size_t i = 0; i < CX_COUNT_OF(gates); i++) {
        for (size_t k = 0; k < CX_COUNT_OF(bad); k++) {
            *gates[i] = bad[k];
            CHECK_STATUS(cx_run_report_task_result(&task, &s.arena, &result, &err), &err);
            CHECK_STR(at(&result, "/status"), "FAILED");
        }
        *gates[i] = good;
    }
    fixture_end(&s);
}

CX_TEST(tests_pass_only_when_a_must_pass_command_did)
{
    fixture s;
    cx_err err;
    cx_json report;
    const cx_str argv = CX_STR("pytest");
    cx_run_command_facts command = {
        .name = CX_STR("unit"), .argv = &argv, .argv_count = 1, .duration_ms = 1500};
    cx_run_test_facts facts = {
        .status = CX_RUN_TESTS_PASS, .commands = &command, .command_count = 1};
    cx_run_task_facts task = bare_facts();
    fixture_begin(&s, "");
    CHECK_STATUS(cx_run_report_tests(&task, &facts, &s.arena, &report, &err), &err);
    CHECK_STR(at(&report, "/status"), "ERROR"); /* nothing of what must pass ran */
    command.must_pass = true;
    CHECK_STATUS(cx_run_report_tests(&task, &facts, &s.arena, &report, &err), &err);
    CHECK_STR(at(&report, "/status"), "PASS");
    CHECK_STR(cx_json_text(cx_json_pointer(&report, CX_STR("/commands/0/duration_sec"))), "1.5");
    command.exit_code = 124;
    CHECK_STATUS(cx_run_report_tests(&task, &facts, &s.arena, &report, &err), &err);
    CHECK_STR(at(&report, "/status"), "FAIL");
    /* An exit code of 0 is not enough where a report was demanded. */
    cx_json json;
    CHECK_STATUS(
        cx_run_json_read(CX_STR("{\"format\":\"tap\",\"min_tests\":2,"
                                "\"same_as_baseline\":false,\"holds\":false,"
                                "\"problem\":\"1 test passed; the contract demands at least 2\","
                                "\"passed\":1,\"failed\":0,\"skipped\":0}"),
                         0, &s.arena, &json, &err),
        &err);
    command.exit_code = 0;
    command.report = &json;
    command.report_refused = true;
    CHECK_STATUS(cx_run_report_tests(&task, &facts, &s.arena, &report, &err), &err);
    CHECK_STR(at(&report, "/status"), "FAIL");
    CHECK_STR(at(&report, "/commands/0/report/format"), "tap");
    valid(&s, "test_report.v1.json", &report);
    CHECK_STATUS(cx_run_report_tests_failed(1, &facts, &s.arena, &report, &err), &err);
    CHECK_STR(at(&report, "/failed/0/report/problem"),
              "1 test passed; the contract demands at least 2");
    command.exit_code = 124;
    facts.counted = true;
    facts.failure = CX_STR("unit exit 124");
    CHECK_STATUS(cx_run_report_tests(&task, &facts, &s.arena, &report, &err), &err);
    valid(&s, "test_report.v1.json", &report);
    fixture_end(&s);
}

CX_TEST(manifest_needs_what_every_bundle_has)
{
    fixture s;
    cx_err err;
    cx_json made;
    cx_run_manifest_task task;
    fixture_begin(&s, "success");
    cx_json manifest = golden(&s, "manifest.json");
    cx_run_manifest_facts facts = manifest_facts(&s, &manifest, &task);
    facts.task_count = 0;
    CHECK_INT(cx_run_report_manifest(&facts, &s.arena, &made, &err).code, CX_E_USAGE);
    facts.task_count = 1;
    cx_run_ref *files = CX_ARENA_ARRAY(&s.arena, cx_run_ref, facts.file_count);
    for (size_t left_out = 0; left_out < facts.file_count; left_out++) {
        static const char *const needed = "|contract.json|events.jsonl|patch.diff|"
                                          "diff_name_only.txt|reports/review_report.json|"
                                          "reports/test_report.json|";
        cx_run_manifest_facts less = facts;
        size_t count = 0;
        for (size_t i = 0; i < facts.file_count; i++)
            if (i != left_out)
                files[count++] = facts.files[i];
        less.files = files;
        less.file_count = count;
        cx_str sought = cx_arena_printf(&s.arena, "|%.*s|", (int)facts.files[left_out].path.size,
                                        facts.files[left_out].path.data);
        cx_status status = cx_run_report_manifest(&less, &s.arena, &made, &err);
        CHECK_INT(status.code, strstr(needed, sought.data) != NULL ? CX_E_USAGE : CX_OK);
    }
    fixture_end(&s);
}

/* §24, sentence 37: no manifest violates its own schema, whatever the contract was. */
CX_TEST(manifest_of_a_contract_that_says_nothing_is_valid)
{
    fixture s;
    cx_err err;
    cx_json made, contract = {.type = CX_JSON_OBJECT};
    cx_run_manifest_task task;
    fixture_begin(&s, "success");
    cx_json manifest = golden(&s, "manifest.json");
    cx_run_manifest_facts facts = manifest_facts(&s, &manifest, &task);
    const cx_str nothing = CX_STR("");
    task.role = task.agent_id = task.thread_id = nothing;
    task.result = task.review_report = task.test_report = (cx_run_ref){.size_bytes = 0};
    facts.user_request = facts.policy_pack = facts.baseline_commit = facts.final_commit = nothing;
    facts.runner_name = facts.failure_reason = facts.cortex_version = facts.finished_at = nothing;
    facts.status = CX_RUN_FAILURE;
    facts.contract = &contract;
    facts.notes = CX_STR("sandbox degraded: landlock");
    CHECK_STATUS(cx_run_report_manifest(&facts, &s.arena, &made, &err), &err);
    valid(&s, "run_manifest.v1.json", &made);
    CHECK_STR(at(&made, "/tasks/0/role"), "PM");
    CHECK_STR(at(&made, "/user_request"), "(none)");
    fixture_end(&s);
}

CX_TEST(role_binding_is_read_from_the_contract)
{
    fixture s;
    cx_err err;
    cx_json contract, made;
    fixture_begin(&s, "");
    CHECK_STATUS(
        cx_json_parse_text(
            CX_STR("{\"mcp_tool_set\":[\"codex\"],\"runtime_options\":{\"runner\":\"codex\"},"
                   "\"role_contract\":{\"skills_bundle_ref\":\"policies/"
                   "skills_bundle_registry.json#a\",\"mcp_bundle_ref\":null,"
                   "\"runtime_binding\":{\"runner\":\"mcp\",\"provider\":null,"
                   "\"model\":null},\"resolved_mcp_tool_set\":[\"codex\",\"x\"]}}"),
            &s.arena, &contract, &err),
        &err);
    CHECK_STATUS(cx_run_report_role_binding(&contract, &s.arena, &made, &err), &err);
    CHECK_STR(at(&made, "/execution_authority"), "task_contract");
    CHECK_STR(at(&made, "/skills_bundle_ref/status"), "registry-backed");
    CHECK_STR(at(&made, "/mcp_bundle_ref/status"), "unresolved");
    CHECK_STR(at(&made, "/mcp_bundle_ref/resolved_mcp_tool_set/1"), "x");
    CHECK_STR(at(&made, "/runtime_binding/summary/runner"), "mcp");
    CHECK_STR(at(&made, "/runtime_binding/status"), "partially-resolved");
    fixture_end(&s);
}

CX_TEST(reexecution_passes_only_without_hard_differences_and_errors)
{
    fixture s;
    cx_err err;
    cx_json made;
    const cx_run_difference difference = {.key = CX_STR("patch.diff"),
                                          .expected = cx_json_make_str(CX_STR("a")),
                                          .actual = cx_json_make_str(CX_STR("b"))};
    const cx_str error = CX_STR("no sandbox");
    cx_run_reexec_facts facts = {.run_id = CX_STR("run_x"),
                                 .at = CX_STR("2026-01-01T00:00:00.000000Z"),
                                 .soft = &difference,
                                 .soft_count = 1};
    fixture_begin(&s, "");
    CHECK_STATUS(cx_run_report_reexec(&facts, &s.arena, &made, &err), &err);
    CHECK_STR(at(&made, "/status"), "pass");
    CHECK(CX_JSON_GET(&made, "soft_equal_pass")->type == CX_JSON_FALSE);
    facts.errors = &error;
    facts.error_count = 1;
    CHECK_STATUS(cx_run_report_reexec(&facts, &s.arena, &made, &err), &err);
    CHECK_STR(at(&made, "/status"), "fail");
    facts.error_count = 0;
    facts.hard = &difference;
    facts.hard_count = 1;
    CHECK_STATUS(cx_run_report_reexec(&facts, &s.arena, &made, &err), &err);
    CHECK_STR(at(&made, "/status"), "fail");
    valid(&s, "reexec_report.v1.json", &made);
    CHECK_STR(at(&made, "/hard_diffs/0/key"), "patch.diff");
    fixture_end(&s);
}

CX_TEST(names_that_are_no_utf8_stay_text)
{
    fixture s;
    cx_err err;
    cx_json made;
    const cx_str changed[] = {{"a\xff"
                               "b",
                               3},
                              {"c", 1}};
    cx_run_task_facts task = bare_facts();
    fixture_begin(&s, "");
    task.changed = changed;
    task.changed_count = 2;
    CHECK_STATUS(cx_run_report_work_report(&task, &s.arena, &made, &err), &err);
    CHECK_STR(at(&made, "/diff_summary"), "a\xef\xbf\xbd"
                                          "b, c");
    fixture_end(&s);
}
