/*
 * replay_rerun.c - tests and agent of a recorded run, run again in the sandbox (run.md §12, §16,
 * §18).
 */
#include "os/api.h"
#include "agent/api.h"
#include "audit/replay_reexec.h"
#include "bundle/api.h"
#include "candidate/api.h"

#define SAID_MAX (UINT64_C(1) << 20)

/* 0, not 0, timeout: what of an exit code is the same on every machine (§18). */
static const char *exit_class(int64_t code)
{
    return code == 0 ? "zero" : code == 124 ? "timeout" : "nonzero";
}

static cx_str text_at(const cx_json *value, const char *pointer)
{
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    return found == NULL || found->type != CX_JSON_STRING ? CX_STR("") : cx_json_text(found);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void compare_log(cx_reexec *x, const cx_json *command, const char *stream,
                        const cx_run_ref *made, cx_str name)
{
    cx_json value;
    cx_str recorded = text_at(cx_json_get(command, cx_str_z(stream)) == NULL
                                  ? command
                                  : cx_json_get(command, cx_str_z(stream)),
                              "/sha256");
    if (cx_failed(cx_run_ref_json(made, x->arena, &value, NULL))) {
        x->failed = true;
        return;
    }
    const cx_json *digest = cx_json_get(&value, CX_STR("sha256"));
    if (!cx_str_eq(recorded, cx_json_text(digest)))
        cx_reexec_soft(x, cx_reexec_text(x, recorded), *digest, "tests/%.*s/%s_sha256",
                       (int)name.size, name.data, stream);
}

static cx_json member_or_null(const cx_json *object, const char *name)
{
    const cx_json *value = object == NULL ? NULL : cx_json_get(object, cx_str_z(name));
    return value == NULL ? cx_json_make_null() : *value;
}

/* Whether the demand holds is what the gate asked; how many tests there are may depend on the
 * machine. */
static void compare_report(cx_reexec *x, const cx_json *recorded, const cx_json *made, cx_str name)
{
    static const char *const members[] = {"holds", "passed", "failed", "skipped"};
    for (size_t i = 0; i < CX_COUNT_OF(members); i++) {
        cx_json was = member_or_null(recorded, members[i]), is = member_or_null(made, members[i]);
        if (cx_json_equal(&was, &is))
            continue;
        if (i == 0)
            cx_reexec_hard(x, was, is, "tests/%.*s/report/holds", (int)name.size, name.data);
        else
            cx_reexec_soft(x, was, is, "tests/%.*s/report/%s", (int)name.size, name.data,
                           members[i]);
    }
}

static void compare_command(cx_reexec *x, const cx_json *recorded, const cx_run_command_facts *made)
{
    int64_t code = -1;
    double seconds = 0;
    const cx_json *number = CX_JSON_GET(recorded, "exit_code");
    const cx_json *duration = CX_JSON_GET(recorded, "duration_sec");
    cx_str name = made->name;
    if (number == NULL || !cx_json_int64(number, &code) ||
        strcmp(exit_class(code), exit_class(made->exit_code)) != 0)
        cx_reexec_hard(x, cx_json_make_str(cx_str_z(exit_class(code))),
                       cx_json_make_str(cx_str_z(exit_class(made->exit_code))),
                       "tests/%.*s/exit_class", (int)name.size, name.data);
    compare_report(x, CX_JSON_GET(recorded, "report"), made->report, name);
    compare_log(x, recorded, "stdout", &made->stdout_ref, name);
    compare_log(x, recorded, "stderr", &made->stderr_ref, name);
    if (duration == NULL || !cx_json_double(duration, &seconds) ||
        (uint64_t)(seconds * 1000) != made->duration_ms)
        cx_reexec_soft(x, duration == NULL ? cx_json_make_null() : *duration,
                       cx_json_make_double(x->arena, (double)made->duration_ms / 1000),
                       "tests/%.*s/duration_sec", (int)name.size, name.data);
}

static void compare_tests(cx_reexec *x, const cx_run_test_facts *made)
{
    const cx_json *commands = cx_json_get_typed(&x->tests, CX_STR("commands"), CX_JSON_ARRAY);
    size_t count = commands == NULL ? 0 : commands->count;
    cx_str status = text_at(&x->tests, "/status");
    const char *again = cx_run_test_status_name(made->status);
    if (!cx_str_is(status, again))
        cx_reexec_hard(x, cx_reexec_text(x, status), cx_json_make_str(cx_str_z(again)),
                       "tests/status");
    if (count != made->command_count)
        cx_reexec_hard(x, cx_json_make_uint(x->arena, count),
                       cx_json_make_uint(x->arena, made->command_count), "tests/commands");
    for (size_t i = 0; i < count && i < made->command_count; i++)
        compare_command(x, &commands->items[i], &made->commands[i]);
}

static cx_status run_tests(cx_reexec *x, const cx_oid *candidate, cx_run_test_facts *out,
                           cx_err *err)
{
    cx_run_command_rules rules;
    const cx_str forbidden[] = {cx_str_z(cx_git_worktree(x->git)), cx_str_z(x->options->root)};
    const cx_run_trust trust =
        cx_run_config_trust(&x->policy.config, forbidden, CX_COUNT_OF(forbidden));
    cx_run_test *tests = CX_ARENA_ARRAY(x->arena, cx_run_test, x->contract.test_count + 1);
    if (tests == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < x->contract.test_count; i++)
        tests[i] = (cx_run_test){x->contract.tests[i].name, x->contract.tests[i].cmd,
                                 x->contract.tests[i].must_pass, x->contract.tests[i].report};
    CX_TRY(cx_run_policy_rules(&x->policy, x->contract.pack, x->contract.forbidden_actions,
                               x->arena, &rules, err));
    const cx_run_command_options judge = {
        .rules = &rules,
        .network_policy = cx_str_z(cx_run_network_name(x->contract.network)),
        .network_approved = cx_reexec_granted(x, CX_STR("network")),
        .granted = cx_reexec_granted,
        .granted_arg = x,
        .trust = &trust,
    };
    const cx_run_tests_options options = {
        .git = x->git,
        .runtime_root = x->options->root,
        .run_id = cx_str_z(x->new_id),
        .task_id = x->contract.task_id,
        .candidate = *candidate,
        .baseline = x->baseline_text,
        .tests = tests,
        .test_count = x->contract.test_count,
        .timeout_sec = x->contract.timeout_sec,
        .output_bytes = x->policy.config.limits.output_bytes,
        .dependencies = x->policy.config.test_dependencies.items,
        .dependency_count = x->policy.config.test_dependencies.count,
        .judge = &judge,
        .box = x->box,
        .may_miss = x->options->allow_degraded_sandbox ? x->box->missing : 0,
    };
    return cx_run_tests(&options, x->arena, out, err);
}

cx_status cx_reexec_tests(cx_reexec *x, const cx_oid *candidate, cx_err *err)
{
    cx_run_test_facts made = {.status = CX_RUN_TESTS_SKIPPED};
    cx_err why = {0};
    if (!x->has_policy) {
        cx_reexec_error(x, "the policies of the baseline cannot be read, so no test may run");
        return CX_SUCCESS;
    }
    if (!cx_reexec_sandbox(x))
        return CX_SUCCESS;
    cx_status status = run_tests(x, candidate, &made, &why);
    CX_TRY(cx_reexec_note(x, status, &why, "running the tests again", err));
    if (!cx_failed(status))
        compare_tests(x, &made);
    return CX_SUCCESS;
}

/* --- the agent ------------------------------------------------------------------------------- */

static cx_status read_script(cx_reexec *x, cx_json *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, x->options->alloc);
    cx_status status =
        cx_io_read_file(x->options->io, x->options->script, CX_RUN_JSON_BYTES_MAX, &text, err);
    cx_str copy =
        cx_failed(status) ? cx_str_from(NULL, 0) : cx_arena_copy_str(x->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(copy, 0, x->arena, out, err));
    if (!cx_str_is(text_at(out, "/format"), "cortex.replay-script.v1"))
        return cx_fail(err, CX_E_FORMAT, "expected a script of format cortex.replay-script.v1");
    return CX_SUCCESS;
}

/* One turn, as the runner does it: the operations, by our own program in the sandbox. */
static cx_status run_agent_turn(cx_reexec *x, const cx_worktree *tree, const cx_json *turn,
                                uint32_t i, cx_err *err)
{
    const cx_json *ops = cx_json_get_typed(turn, CX_STR("ops"), CX_JSON_ARRAY);
    cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
    cx_sandbox_result result;
    cx_buf input, printed;
#ifdef CX_ARENA_ASAN
    /* As in runner_script.c: AddressSanitizer maps terabytes that it never touches. */
    static const char *const env[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
    const cx_sandbox_limits limits = {.memory_bytes = UINT64_MAX};
    spec.limits = &limits;
    spec.env = env;
#endif
    if (ops == NULL)
        return cx_fail(err, CX_E_FORMAT, "turn %u of the script has no ops", i);
    CX_TRY(cx_agent_ops_check(ops, err));
    cx_buf_init(&input, x->options->alloc);
    cx_buf_init(&printed, x->options->alloc);
    spec.worktree = tree->path;
    spec.timeout_ms = (uint64_t)x->contract.timeout_sec * 1000;
    spec.may_miss = x->options->allow_degraded_sandbox ? x->box->missing : 0;
    spec.in = CX_SPAWN_IN_BYTES;
    spec.out = cx_spawn_to_buf(&printed, SAID_MAX);
    spec.out.limit_fails = false;
    spec.errout.to = CX_SPAWN_OUT_NULL;
    const char *argv[] = {cx_sandbox_program(x->box, &spec), CX_AGENT_OPS, NULL};
    spec.argv = argv;
    cx_status status = cx_json_write(&input, ops, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&input, err);
    spec.input = cx_buf_bytes(&input);
    if (!cx_failed(status))
        status = cx_sandbox_run(x->box, &spec, &result, err);
    if (!cx_failed(status) && result.exit_code != 0 && result.exit_code != 1)
        status = cx_fail(err, CX_E_IO, "turn %u of the script ended with %d", i, result.exit_code);
    cx_buf_done(&printed);
    cx_buf_done(&input);
    return status;
}

static cx_status run_task_turns(cx_reexec *x, const cx_worktree *tree, const cx_json *own,
                                int64_t last, cx_err *err)
{
    const cx_json *turns = cx_json_get_typed(own, CX_STR("turns"), CX_JSON_ARRAY);
    for (int64_t i = 0; i <= (last < 0 ? 0 : last); i++) {
        if (turns == NULL || i >= turns->count)
            return cx_fail(err, CX_E_FORMAT, "the script has no turn %lld", (long long)i);
        CX_TRY(run_agent_turn(x, tree, &turns->items[i], (uint32_t)i, err));
    }
    return CX_SUCCESS;
}

/* A script for several tasks: one after the other in one work tree, as no two share a path. */
static cx_status run_script_turns(cx_reexec *x, const cx_worktree *tree, const cx_json *script,
                                  cx_err *err)
{
    const cx_json *tasks = cx_json_get_typed(script, CX_STR("tasks"), CX_JSON_OBJECT);
    if (tasks == NULL)
        return run_task_turns(x, tree, script, x->task->attempt, err);
    for (size_t i = 0; i < x->projection.tasks.count; i++) {
        const cx_run_projection_task *task = &x->projection.tasks.items[i];
        const cx_json *own = cx_json_get_typed(tasks, task->task_id, CX_JSON_OBJECT);
        if (task->task_id.size == 0)
            continue;
        if (own == NULL)
            return cx_fail(err, CX_E_FORMAT, "the script has no task %.*s",
                           (int)(task->task_id.size > 128 ? 128 : task->task_id.size),
                           task->task_id.data);
        CX_TRY(run_task_turns(x, tree, own, task->attempt, err));
    }
    return CX_SUCCESS;
}

static cx_status compare_agent(cx_reexec *x, const cx_worktree *tree, const cx_snapshot *before,
                               cx_bytes patch, cx_err *err)
{
    cx_diff_report report;
    cx_buf made, names;
    CX_TRY(cx_reexec_run_diff_gate(x, tree, before, &report, err));
    cx_buf_init(&made, x->options->alloc);
    cx_buf_init(&names, x->options->alloc);
    cx_status status = cx_run_candidate_patch(tree->git, &report, &made, &names, err);
    bool was = x->task->gates[CX_RUN_GATE_DIFF].passed;
    if (!cx_failed(status) && !cx_str_eq(cx_buf_str(&made), cx_bytes_str(patch)))
        cx_reexec_hard(x, cx_json_make_uint(x->arena, patch.size),
                       cx_json_make_uint(x->arena, made.size), "agent/patch.diff");
    if (!cx_failed(status) && report.passed != was)
        cx_reexec_hard(x, cx_json_make_bool(was), cx_json_make_bool(report.passed),
                       "agent/gates/diff_gate");
    cx_buf_done(&names);
    cx_buf_done(&made);
    cx_diff_report_done(&report);
    return status;
}

static cx_status agent_in_worktree(cx_reexec *x, const cx_json *script, cx_bytes patch, cx_err *err)
{
    cx_worktree tree;
    cx_snapshot *before = NULL;
    cx_err closing = {0};
    const cx_worktree_options where = {.runtime_root = x->options->root,
                                       .run_id = cx_str_z(x->new_id),
                                       .task_id = x->contract.task_id,
                                       .suffix = CX_STR(".agent"),
                                       .commit = x->baseline};
    CX_TRY(cx_run_worktree_add(x->git, &where, x->arena, &tree, err));
    cx_status status = cx_snapshot_read(tree.git, NULL, &before, err);
    if (!cx_failed(status))
        status = run_script_turns(x, &tree, script, err);
    if (!cx_failed(status))
        status = compare_agent(x, &tree, before, patch, err);
    cx_snapshot_close(before);
    cx_status removed = cx_run_worktree_remove(x->git, &where, &tree, true, &closing);
    if (!cx_failed(status) && cx_failed(removed))
        cx_reexec_error(x, "the agent's new work tree could not be removed: %s", closing.message);
    return status;
}

cx_status cx_reexec_agent(cx_reexec *x, cx_bytes patch, cx_err *err)
{
    cx_json script;
    cx_err why = {0};
    if (!cx_reexec_sandbox(x))
        return CX_SUCCESS;
    cx_status status = read_script(x, &script, &why);
    if (!cx_failed(status))
        status = agent_in_worktree(x, &script, patch, &why);
    return cx_reexec_note(x, status, &why, "running the agent again", err);
}
