/*
 * state_test.c - S4: the acceptance tests on the candidate, then the diff gate once more (run.md
 * §12); and the same tests on a merge.
 */
#include "contract/api.h"
#include "governor/state_internal.h"
#include "agent/api.h"

typedef struct testing {
    cx_governor_task *t;
    const char *refused_rule; /* of the command gate; NULL: it refused nothing */
    cx_str refused_cmd;
    cx_str refused_why;
} testing;

/* --- events ----------------------------------------------------------------------------------- */

static cx_status on_judged(void *arg, const cx_run_test *test,
                           const cx_run_command_verdict *verdict, cx_err *err)
{
    testing *s = arg;
    cx_json payload;
    cx_governor_enter(s->t->governor);
    if (!verdict->allow) {
        s->refused_rule = verdict->rule;
        s->refused_cmd = test->cmd;
        s->refused_why = cx_arena_copy_str(&s->t->arena, verdict->reason);
    }
    cx_status status = cx_run_command_verdict_json(verdict, test->cmd, &s->t->arena, &payload, err);
    if (!cx_failed(status))
        status = cx_task_event_json(s->t, verdict->allow ? CX_RUN_INFO : CX_RUN_ERROR,
                                    CX_RUN_EVENT_TOOL_GATE_RESULT, &payload, err);
    cx_governor_leave(s->t->governor);
    return status;
}

static cx_status on_ran(void *arg, const cx_run_test *test, const cx_run_command_facts *facts,
                        cx_err *err)
{
    testing *s = arg;
    cx_json_list payload = cx_json_list_begin(&s->t->arena);
    (void)test;
    cx_json_put_quoted(&payload, "name", facts->name);
    cx_json_list_put(&payload, CX_STR("exit_code"),
                     cx_json_make_int(&s->t->arena, facts->exit_code));
    if (facts->report != NULL)
        cx_json_list_put(&payload, CX_STR("report"), *facts->report);
    bool good = facts->exit_code == 0 && !facts->report_refused;
    cx_governor_enter(s->t->governor);
    cx_status status = cx_task_event(s->t, good ? CX_RUN_INFO : CX_RUN_ERROR,
                                     CX_RUN_EVENT_TEST_COMMAND_RESULT, &payload, err);
    cx_governor_leave(s->t->governor);
    return status;
}

static bool is_granted(void *governor, cx_str scope)
{
    cx_governor_enter(governor);
    bool granted = cx_governor_scope_granted(governor, scope);
    cx_governor_leave(governor);
    return granted;
}

/* --- running ---------------------------------------------------------------------------------- */

static cx_status list_tests(cx_governor_task *t, const cx_run_test **out, cx_err *err)
{
    cx_run_test *tests = CX_ARENA_ARRAY(&t->arena, cx_run_test, t->contract.test_count + 1);
    if (tests == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < t->contract.test_count; i++)
        tests[i] = (cx_run_test){t->contract.tests[i].name, t->contract.tests[i].cmd,
                                 t->contract.tests[i].must_pass, t->contract.tests[i].report};
    *out = tests;
    return CX_SUCCESS;
}

typedef struct test_run {
    cx_oid commit;
    const char *folder; /* of the evidence */
    uint32_t attempt;
} test_run;

static cx_status run_tests(testing *s, const test_run *what, cx_run_test_facts *out, cx_err *err)
{
    cx_governor_task *t = s->t;
    cx_governor *g = t->governor;
    cx_run_command_rules rules;
    const cx_run_test *tests = NULL;
    const cx_str forbidden[] = {cx_str_z(g->repo_root), cx_str_z(g->store.root)};
    cx_run_trust trust = cx_run_config_trust(&g->policy.config, forbidden, CX_COUNT_OF(forbidden));
    cx_run_tests_host host = {s, on_judged, on_ran};
    cx_str folder = cx_task_file(t, what->folder);
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_policy_rules(&g->policy, t->contract.pack, t->contract.forbidden_actions,
                               &t->arena, &rules, err));
    CX_TRY(list_tests(t, &tests, err));
    cx_run_command_options judge = {
        .rules = &rules,
        .network_policy = t->contract.permissions.network.data == NULL
                              ? CX_STR("deny")
                              : t->contract.permissions.network,
        .network_approved = cx_governor_scope_granted(g, CX_STR("network")),
        .granted = is_granted,
        .granted_arg = g,
        .trust = &trust,
    };
    cx_run_tests_options options = {
        .git = g->git,
        .runtime_root = g->store.root,
        .run_id = cx_run_id(g->run),
        .task_id = t->id,
        .candidate = what->commit,
        .baseline = g->baseline,
        .tests = tests,
        .test_count = t->contract.test_count,
        .timeout_sec = t->contract.timeout_sec,
        .output_bytes = g->policy.config.limits.output_bytes,
        .dependencies = g->policy.config.test_dependencies.items,
        .dependency_count = g->policy.config.test_dependencies.count,
        .judge = &judge,
        .box = g->sandbox,
        .may_miss = g->degraded ? g->sandbox->missing : 0,
        .cancel = g->options->cancel,
        .run = g->run,
        .folder = folder.data,
        .attempt = what->attempt,
        .host = &host,
    };
    cx_governor_leave(g);
    cx_status status = cx_run_tests(&options, &t->arena, out, err);
    cx_governor_enter(g);
    return status;
}

/* C14, §13: a script that differs from the baseline's may be run when a human signed for it. */
static cx_status ask_script_approval(testing *s, bool *out_granted, cx_err *err)
{
    cx_governor_task *t = s->t;
    cx_run_lexed lexed;
    *out_granted = false;
    if (s->refused_rule == NULL || strcmp(s->refused_rule, "C14") != 0)
        return CX_SUCCESS;
    CX_TRY(cx_run_lex(s->refused_cmd, &t->arena, &lexed, err));
    for (size_t i = 0; lexed.rule == NULL && i < lexed.argv.count && i < 2; i++) {
        cx_str scope = cx_arena_printf(&t->arena, "script:%.*s", (int)lexed.argv.items[i].size,
                                       lexed.argv.items[i].data);
        cx_texts scopes = {&scope, 1};
        if (scope.data == NULL)
            return cx_fail_nomem(err);
        if (cx_governor_may_be_approved(t->governor, &scopes))
            return cx_task_ask_approval(t, &scopes, out_granted, err);
    }
    return CX_SUCCESS;
}

/* --- what came of it -------------------------------------------------------------------------- */

static const char *tool_reason(const char *rule)
{
    return strcmp(rule, "C14") == 0 ? "script_modified" : "command_rejected";
}

static cx_status refuse_command(testing *s, cx_err *err)
{
    cx_governor_task *t = s->t;
    cx_str *text = CX_ARENA_NEW(&t->arena, cx_str);
    if (text == NULL)
        return cx_fail_nomem(err);
    *text = cx_arena_printf(&t->arena, "%s %.*s", s->refused_rule, (int)s->refused_cmd.size,
                            s->refused_cmd.data);
    if (text->data == NULL)
        return cx_fail_nomem(err);
    cx_texts violations = {text, 1};
    t->verdicts.tests = (cx_run_gate){true, false, text, 1};
    t->refusal.hint = s->refused_why;
    return cx_task_refuse(t, CX_GATE_TOOL, tool_reason(s->refused_rule), true, &violations, err);
}

static cx_status write_test_result(cx_governor_task *t, const cx_run_test_facts *facts, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "status", cx_run_test_status_name(facts->status));
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_TEST_RESULT, &payload, err);
}

static cx_status store_failed_tests(cx_governor_task *t, cx_err *err)
{
    cx_json failed;
    cx_str path = cx_arena_printf(&t->arena, "artifacts/tests_failed_attempt_%u.json", t->attempt);
    if (path.data != NULL)
        path = cx_task_file(t, path.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_report_tests_failed(t->attempt, &t->reports.tests, &t->arena, &failed, err));
    CX_TRY(cx_run_file_write_json(t->governor->run, path, &failed, err));
    return cx_task_add_artifact(t, path, err);
}

static void store_tests_verdict(cx_governor_task *t)
{
    bool passed = t->reports.tests.status == CX_RUN_TESTS_PASS;
    cx_str *failure = CX_ARENA_NEW(&t->arena, cx_str);
    t->verdicts.tests = (cx_run_gate){true, passed, NULL, 0};
    if (passed || failure == NULL)
        return;
    *failure = t->reports.tests.failure.size == 0 ? CX_STR("tests did not pass")
                                                  : t->reports.tests.failure;
    t->verdicts.tests.violations = failure;
    t->verdicts.tests.violation_count = 1;
}

static cx_status apply_tests_verdict(cx_governor_task *t, cx_err *err)
{
    CX_TRY(write_test_result(t, &t->reports.tests, err));
    store_tests_verdict(t);
    cx_texts violations = {t->verdicts.tests.violations, t->verdicts.tests.violation_count};
    if (t->reports.tests.status == CX_RUN_TESTS_PASS) {
        CX_TRY(cx_task_run_diff_gate(t, "after_tests", err));
        if (!t->refused)
            cx_task_go(t, CX_WHY_TESTS_PASSED);
        return CX_SUCCESS;
    }
    if (t->reports.tests.status != CX_RUN_TESTS_FAIL)
        return cx_task_refuse(t, CX_GATE_TESTS, "tests_error", false, &violations, err);
    CX_TRY(store_failed_tests(t, err));
    if (t->contract.audit_only)
        return cx_task_refuse(t, CX_GATE_TESTS, "must_pass_failed", false, &violations, err);
    CX_TRY(cx_task_gate_failed(t, CX_GATE_TESTS, "must_pass_failed", false, &violations, err));
    cx_task_go(t, CX_WHY_TESTS_FAILED);
    return CX_SUCCESS;
}

cx_status cx_state_tests(cx_governor_task *t, cx_err *err)
{
    testing s = {.t = t};
    test_run what = {t->candidate.commit, "tests", t->attempt};
    bool granted;
    t->gate = CX_GATE_TESTS;
    cx_status status = run_tests(&s, &what, &t->reports.tests, err);
    if (cx_failed(status)) {
        store_tests_verdict(t);
        return status;
    }
    if (s.refused_rule != NULL) {
        CX_TRY(ask_script_approval(&s, &granted, err));
        if (!granted)
            return refuse_command(&s, err);
        s.refused_rule = NULL;
        CX_TRY(run_tests(&s, &what, &t->reports.tests, err));
        if (s.refused_rule != NULL)
            return refuse_command(&s, err);
    }
    if (cx_task_cancelled(t)) {
        t->refusal.aborted = true;
        return cx_task_refuse(t, CX_GATE_INTERRUPTED, "signal", false, NULL, err);
    }
    return apply_tests_verdict(t, err);
}

/* The evidence of the candidate's own tests stays what it was. */
cx_status cx_task_test_merge(cx_governor_task *t, const cx_oid *commit, bool *out_passed,
                             cx_err *err)
{
    testing s = {.t = t};
    test_run what = {*commit, "tests/merge", 0};
    cx_run_test_facts facts;
    CX_TRY(run_tests(&s, &what, &facts, err));
    *out_passed = false;
    if (s.refused_rule != NULL)
        return refuse_command(&s, err);
    CX_TRY(write_test_result(t, &facts, err));
    *out_passed = facts.status == CX_RUN_TESTS_PASS;
    return CX_SUCCESS;
}

/* --- scripts of a runner's argv --------------------------------------------------------------- */

cx_status cx_task_compare_script(cx_governor_task *t, cx_str plain, cx_run_script *out, cx_err *err)
{
    cx_run_script_context ground = {t->workspace.worktree.path, &t->governor->repo,
                                    t->governor->baseline, t->governor->alloc};
    return cx_run_script_compare(&ground, plain, plain, out, err);
}
