/*
 * verify_agreement.c - manifest, reports, contract and events say the same (run.md §18).
 */
#include "crypto/api.h"
#include "rules/api.h"
#include "audit/verify_internal.h"

#define MANIFEST CX_STR("manifest.json")
#define TASK_RESULT CX_STR("reports/task_result.json")
#define REVIEW CX_STR("reports/review_report.json")
#define TESTS CX_STR("reports/test_report.json")

static int printed_size(cx_str text)
{
    return (int)(text.size > 80 ? 80 : text.size);
}

static bool is_object(const cx_json *value)
{
    return value->type == CX_JSON_OBJECT;
}

static bool is_true(const cx_json *object, const char *name)
{
    return cx_json_get_typed(object, cx_str_z(name), CX_JSON_TRUE) != NULL;
}

/* --- statuses --------------------------------------------------------------------------------- */

static bool has_event(const cx_run_verification *v, cx_run_event_type type)
{
    for (size_t i = 0; i < v->projection.moments.count; i++)
        if (v->projection.moments.items[i].kind == type)
            return true;
    return false;
}

/* Whether it is said of the run's own task: its documents say nothing of those it was split
 * into. */
static bool is_of_run_task(const cx_run_verification *v, const cx_run_moment *moment)
{
    bool split = false;
    if (moment->task_id.data == NULL || cx_str_eq(moment->task_id, v->task_id))
        return true;
    for (size_t i = 0; i < v->projection.transitions.count && !split; i++)
        split = cx_str_is(v->projection.transitions.items[i].reason, "plan_split");
    return !split;
}

static void check_tasks(cx_run_verification *v, cx_str status)
{
    const cx_json *tasks = cx_json_get_typed(&v->manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    cx_str recorded = CX_JSON_GET_STR(&v->task_result, "status");
    bool all = true;
    for (uint32_t i = 0; tasks != NULL && i < tasks->count; i++) {
        cx_str one = CX_JSON_GET_STR(&tasks->items[i], "status");
        all &= cx_str_is(one, "SUCCESS");
        if (tasks->count == 1 && recorded.data != NULL && !cx_str_eq(one, recorded))
            cx_run_verify_add_finding(
                v, CX_RUN_STATUS_MISMATCH, MANIFEST, "the task is %.*s here and %.*s in its result",
                printed_size(one), one.data, printed_size(recorded), recorded.data);
    }
    if (v->success && !all)
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, MANIFEST,
                                  "the run is SUCCESS, but not every task of it");
    if (v->success && recorded.data != NULL && !cx_str_is(recorded, "SUCCESS"))
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TASK_RESULT,
                                  "the run is SUCCESS, the task %.*s", printed_size(recorded),
                                  recorded.data);
    /* Work that was done well can still fail to be merged, or be interrupted; that has an event. */
    if (!v->success && all && v->has_projection && !has_event(v, CX_RUN_EVENT_MERGE_REFUSED) &&
        !has_event(v, CX_RUN_EVENT_GATE_FAILED) && !has_event(v, CX_RUN_EVENT_LOG_RECOVERED))
        cx_run_verify_add_finding(
            v, CX_RUN_STATUS_MISMATCH, MANIFEST,
            "the run is %.*s although every task is SUCCESS and nothing refused it",
            printed_size(status), status.data);
    cx_str work = CX_JSON_GET_STR(&v->work_report, "status");
    if (work.data != NULL && recorded.data != NULL &&
        cx_str_is(work, "success") != cx_str_is(recorded, "SUCCESS"))
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, CX_STR("reports/work_report.json"),
                                  "it says %.*s, the task's result %.*s", printed_size(work),
                                  work.data, printed_size(recorded), recorded.data);
}

/* A gate that had passed and then stopped the run all the same (a file that must not be overridden,
 * a program that was cut short) has not passed; gate_failed says so. */
static bool was_refused_after_passing(const cx_run_verification *v, unsigned gate)
{
    static const char *const named[CX_RUN_GATE_COUNT][3] = {
        {"diff", "diff_gate", NULL},
        {"policy", "policy_gate", NULL},
        {"review", "isolation", "reviewer"},
        {"tests", "tool", NULL},
    };
    cx_str failed = v->projection.failed_gate;
    for (size_t i = 0; i < 3 && failed.data != NULL; i++)
        if (named[gate][i] != NULL && cx_str_is(failed, named[gate][i]))
            return true;
    return false;
}

/* Gates of the result: all passed in a SUCCESS, and as the events have it where there is one task.
 */
static void check_gates(cx_run_verification *v)
{
    const cx_json *gates = cx_json_get_typed(&v->task_result, CX_STR("gates"), CX_JSON_OBJECT);
    const cx_json *tasks = cx_json_get_typed(&v->manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    bool success = v->success || cx_str_is(CX_JSON_GET_STR(&v->task_result, "status"), "SUCCESS");
    const cx_run_projection_task *task = NULL;
    if (gates == NULL)
        return;
    if (v->has_projection && tasks != NULL)
        task = cx_run_projection_find(&v->projection, v->task_id);
    if (task != NULL && tasks->count != 1 && !task->gates[CX_RUN_GATE_DIFF].reached)
        task = NULL; /* it has no work of its own */
    for (unsigned i = 0; i < CX_RUN_GATE_COUNT; i++) {
        const cx_json *gate = cx_json_get(gates, cx_str_z(cx_run_gate_names[i]));
        bool passed = gate != NULL && is_true(gate, "passed");
        const cx_json *violations =
            gate == NULL ? NULL : cx_json_get_typed(gate, CX_STR("violations"), CX_JSON_ARRAY);
        if (success && !passed)
            cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TASK_RESULT,
                                      "it is SUCCESS, but %s has not passed", cx_run_gate_names[i]);
        if (passed && violations != NULL && violations->count != 0)
            cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TASK_RESULT,
                                      "%s has passed and has violations", cx_run_gate_names[i]);
        bool recorded = task != NULL && cx_run_projection_task_passed(&v->projection, task, i);
        if (task != NULL && passed != recorded && (passed || !was_refused_after_passing(v, i)))
            cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TASK_RESULT,
                                      "%s has %spassed here, by the events it has%s",
                                      cx_run_gate_names[i], passed ? "" : "not ",
                                      passed ? " not" : "");
    }
}

/* What the two verdict events say last, and the reports. */
static cx_status check_verdict_events(cx_run_verification *v)
{
    static const struct {
        cx_run_event_type type;
        const char *member;
    } verdicts[] = {{CX_RUN_EVENT_REVIEW_RESULT, "verdict"}, {CX_RUN_EVENT_TEST_RESULT, "status"}};
    const cx_json *reports[] = {&v->review_report, &v->test_report};
    for (size_t i = 0; i < CX_COUNT_OF(verdicts); i++) {
        cx_str recorded = cx_json_get_str(reports[i], cx_str_z(verdicts[i].member));
        if (recorded.data == NULL)
            continue;
        for (size_t m = v->projection.moments.count; m-- > 0;) {
            cx_run_event_read event;
            if (v->projection.moments.items[m].kind != verdicts[i].type ||
                !is_of_run_task(v, &v->projection.moments.items[m]))
                continue;
            CX_TRY(cx_run_event_parse(v->projection.moments.items[m].line, m + 1, v->arena, &event,
                                      v->err));
            cx_str last = cx_json_get_str(&event.payload, cx_str_z(verdicts[i].member));
            if (last.data != NULL && !cx_str_eq(last, recorded))
                cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, i == 0 ? REVIEW : TESTS,
                                          "it says %.*s, the last %s %.*s", printed_size(recorded),
                                          recorded.data, cx_run_event_type_name(verdicts[i].type),
                                          printed_size(last), last.data);
            break;
        }
    }
    return CX_SUCCESS;
}

static void check_end(cx_run_verification *v, cx_str status)
{
    cx_str recorded = v->projection.status;
    if (recorded.data != NULL && !cx_str_eq(recorded, status))
        cx_run_verify_add_finding(
            v, CX_RUN_STATUS_MISMATCH, MANIFEST, "the run is %.*s here and %.*s in RUN_FINISHED",
            printed_size(status), status.data, printed_size(recorded), recorded.data);
    if (recorded.data != NULL && v->projection.exit_code >= 0 &&
        (v->projection.exit_code == 0) != cx_str_is(recorded, "SUCCESS"))
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, CX_STR("events.jsonl"),
                                  "RUN_FINISHED says %.*s and exit code %lld",
                                  printed_size(recorded), recorded.data,
                                  (long long)v->projection.exit_code);
}

/* A single task whose report says PASS or FAIL while the gate in the result says otherwise. */
static void check_report_gates(cx_run_verification *v)
{
    const cx_json *gates = cx_json_get_typed(&v->task_result, CX_STR("gates"), CX_JSON_OBJECT);
    if (gates == NULL)
        return;
    const cx_json *review = CX_JSON_GET(gates, "review_gate");
    const cx_json *tests = CX_JSON_GET(gates, "tests_gate");
    cx_str verdict = CX_JSON_GET_STR(&v->review_report, "verdict");
    cx_str status = CX_JSON_GET_STR(&v->test_report, "status");
    if (review != NULL && is_true(review, "passed") && verdict.data != NULL &&
        !cx_str_is(verdict, "PASS"))
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, REVIEW,
                                  "it says %.*s, but review_gate has passed", printed_size(verdict),
                                  verdict.data);
    if (tests != NULL && is_true(tests, "passed") && status.data != NULL &&
        !cx_str_is(status, "PASS"))
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TESTS,
                                  "it says %.*s, but tests_gate has passed", printed_size(status),
                                  status.data);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Whether `argv` is the lexed text, word by word. */
static cx_status same_words(cx_run_verification *v, const cx_json *argv, cx_str text, bool *out)
{
    cx_run_lexed lexed;
    CX_TRY(cx_run_lex(text, v->arena, &lexed, v->err));
    *out = lexed.rule == NULL && argv != NULL && argv->type == CX_JSON_ARRAY &&
           argv->count == lexed.argv.count;
    for (uint32_t i = 0; *out && i < argv->count; i++)
        *out = argv->items[i].type == CX_JSON_STRING &&
               cx_str_eq(cx_json_text(&argv->items[i]), lexed.argv.items[i]);
    return CX_SUCCESS;
}

/* Whether the report that the bundle has says what was counted. */
static cx_status check_counts(cx_run_verification *v, uint32_t index, const cx_json *command,
                              const cx_json *report)
{
    static const char *const names[] = {"passed", "failed", "skipped"};
    const cx_json *file = CX_JSON_GET(report, "path") == NULL ? CX_JSON_GET(command, "stdout")
                                                              : CX_JSON_GET(command, "report_file");
    cx_str path = file == NULL ? CX_STR("") : CX_JSON_GET_STR(file, "path");
    cx_tests_report read;
    cx_err why = {0};
    cx_bytes bytes = {NULL, 0};
    if (CX_JSON_GET(report, "passed") == NULL)
        return CX_SUCCESS; /* it could not be taken, and does not hold */
    if (path.size != 0)
        CX_TRY(cx_run_verify_bytes(v, path, CX_TESTS_REPORT_BYTES_MAX, &bytes));
    cx_status status =
        cx_tests_report_read(cx_tests_format_parse(CX_JSON_GET_STR(report, "format")),
                             cx_bytes_str(bytes), CX_STR(""), v->arena, &read, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(v->err);
    if (cx_failed(status)) {
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TESTS,
                                  "the report of command %u cannot be read again: %s", index + 1,
                                  why.message);
        return CX_SUCCESS;
    }
    const size_t counts[] = {read.passed, read.failed, read.skipped};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        uint64_t recorded = UINT64_MAX;
        const cx_json *count = cx_json_get(report, cx_str_z(names[i]));
        if (count == NULL || !cx_json_uint64(count, &recorded) || recorded != counts[i])
            cx_run_verify_add_finding(
                v, CX_RUN_STATUS_MISMATCH, TESTS,
                "the report of command %u has %zu tests %s, and another number is "
                "told",
                index + 1, counts[i], names[i]);
    }
    return CX_SUCCESS;
}

static uint64_t count_at(const cx_json *object, const char *name)
{
    uint64_t count = 0;
    const cx_json *value = object == NULL ? NULL : cx_json_get(object, cx_str_z(name));
    return value != NULL && cx_json_uint64(value, &count) ? count : 0;
}

/* The demand of the contract is the one that was judged, and what passed kept it. */
static cx_status check_report(cx_run_verification *v, uint32_t index, const cx_json *command,
                              const cx_json *test, bool must_hold)
{
    const cx_json *demand = test == NULL ? NULL : CX_JSON_GET(test, "report");
    const cx_json *report = cx_json_get_typed(command, CX_STR("report"), CX_JSON_OBJECT);
    if (demand == NULL && report == NULL)
        return CX_SUCCESS;
    if (demand == NULL || report == NULL ||
        !cx_str_eq(CX_JSON_GET_STR(demand, "format"), CX_JSON_GET_STR(report, "format")) ||
        !cx_str_eq(CX_JSON_GET_STR(demand, "path"), CX_JSON_GET_STR(report, "path")) ||
        count_at(demand, "min_tests") != count_at(report, "min_tests") ||
        is_true(demand, "same_as_baseline") != is_true(report, "same_as_baseline")) {
        cx_run_verify_add_finding(v, CX_RUN_TESTS_OUTSIDE, TESTS,
                                  "the report of command %u is not the one that test %u demands",
                                  index + 1, index + 1);
        return CX_SUCCESS;
    }
    bool stored = count_at(report, "failed") == 0 && count_at(report, "lost_count") == 0 &&
                  count_at(report, "passed") >= count_at(demand, "min_tests") &&
                  (!is_true(demand, "same_as_baseline") || CX_JSON_GET(report, "baseline") != NULL);
    if (must_hold && (!stored || !is_true(report, "holds")))
        cx_run_verify_add_finding(
            v, CX_RUN_STATUS_MISMATCH, TESTS,
            "it says PASS, but the report of command %u is not what test %u demands", index + 1,
            index + 1);
    return check_counts(v, index, command, report);
}

/* §18: each cmd_argv = the lexed command of the contract, same order; a run may stop early. */
static cx_status check_tests(cx_run_verification *v)
{
    const cx_json *commands = cx_json_get_typed(&v->test_report, CX_STR("commands"), CX_JSON_ARRAY);
    const cx_json *tests =
        cx_json_get_typed(&v->contract, CX_STR("acceptance_tests"), CX_JSON_ARRAY);
    bool pass = cx_str_is(CX_JSON_GET_STR(&v->test_report, "status"), "PASS"), ran = false;
    if (commands == NULL || tests == NULL)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < commands->count; i++) {
        const cx_json *command = &commands->items[i];
        const cx_json *test = i < tests->count ? &tests->items[i] : NULL;
        bool same = false, must = is_true(command, "must_pass");
        int64_t code = -1;
        const cx_json *exit_code = CX_JSON_GET(command, "exit_code");
        if (test != NULL)
            CX_TRY(same_words(v, CX_JSON_GET(command, "cmd_argv"), CX_JSON_GET_STR(test, "cmd"),
                              &same));
        if (!same || !cx_str_eq(CX_JSON_GET_STR(command, "name"), CX_JSON_GET_STR(test, "name")) ||
            must != is_true(test, "must_pass"))
            cx_run_verify_add_finding(v, CX_RUN_TESTS_OUTSIDE, TESTS,
                                      "command %u is not test %u of the contract", i + 1, i + 1);
        bool zero = exit_code != NULL && cx_json_int64(exit_code, &code) && code == 0;
        CX_TRY(check_report(v, i, command, test, pass && must));
        ran |= must && zero;
        if (pass && must && !zero)
            cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TESTS,
                                      "it says PASS, but command %u exited with %lld", i + 1,
                                      (long long)code);
    }
    if (pass && commands->count < tests->count)
        cx_run_verify_add_finding(v, CX_RUN_TESTS_OUTSIDE, TESTS,
                                  "it says PASS after %u of %u commands", commands->count,
                                  tests->count);
    if (pass && !ran)
        cx_run_verify_add_finding(v, CX_RUN_STATUS_MISMATCH, TESTS,
                                  "it says PASS, but no command that must pass did");
    return CX_SUCCESS;
}

/* tests/command.txt: one command a line, those of the contract, in order. */
static cx_status check_command_file(cx_run_verification *v)
{
    static const char path[] = "tests/command.txt";
    const cx_json *tests =
        cx_json_get_typed(&v->contract, CX_STR("acceptance_tests"), CX_JSON_ARRAY);
    const cx_json *commands = cx_json_get_typed(&v->test_report, CX_STR("commands"), CX_JSON_ARRAY);
    cx_bytes bytes;
    cx_str line;
    uint32_t count = 0;
    CX_TRY(cx_run_verify_bytes(v, CX_STR(path), CX_RUN_JSON_BYTES_MAX, &bytes));
    if (bytes.data == NULL || tests == NULL || commands == NULL)
        return CX_SUCCESS;
    cx_str text = cx_bytes_str(bytes);
    for (; cx_run_next_line(&text, &line); count++)
        if (count >= tests->count || !cx_str_eq(line, CX_JSON_GET_STR(&tests->items[count], "cmd")))
            cx_run_verify_add_finding(v, CX_RUN_TESTS_OUTSIDE, CX_STR(path),
                                      "line %u is not command %u of the contract", count + 1,
                                      count + 1);
    /* A run that was cut short may have begun a command that was not reported. */
    bool pass = cx_str_is(CX_JSON_GET_STR(&v->test_report, "status"), "PASS");
    if (text.size != 0 || count < commands->count || (pass && count != commands->count))
        cx_run_verify_add_finding(v, CX_RUN_TESTS_OUTSIDE, CX_STR(path),
                                  "it has %u lines, %u commands were reported", count,
                                  commands->count);
    return CX_SUCCESS;
}

/* --- baseline and references of the manifest -------------------------------------------------- */

static bool is_commit(cx_str text)
{
    if (text.size != 40 && text.size != 64)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!((text.data[i] >= '0' && text.data[i] <= '9') ||
              (text.data[i] >= 'a' && text.data[i] <= 'f')))
            return false;
    return true;
}

static void compare_baseline(cx_run_verification *v, cx_str document, cx_str expected, cx_str found)
{
    if (found.data != NULL && !cx_str_eq(expected, found))
        cx_run_verify_add_finding(
            v, CX_RUN_BASELINE_MISMATCH, document, "its baseline is '%.*s', the manifest's '%.*s'",
            printed_size(found), found.data, printed_size(expected), expected.data);
}

static cx_status check_baseline(cx_run_verification *v)
{
    static const char path[] = "git/baseline_commit.txt";
    const cx_json *repo = CX_JSON_GET(&v->manifest, "repo");
    const cx_json *rollback = CX_JSON_GET(&v->contract, "rollback");
    const cx_json *git = CX_JSON_GET(&v->task_result, "git");
    cx_str baseline = repo == NULL ? CX_STR("") : CX_JSON_GET_STR(repo, "baseline_ref");
    cx_bytes bytes;
    CX_TRY(cx_run_verify_bytes(v, CX_STR(path), CX_RUN_JSON_BYTES_MAX, &bytes));
    if (bytes.data != NULL && is_commit(baseline)) {
        cx_str text = cx_bytes_str(bytes), line = {NULL, 0};
        if (!cx_run_next_line(&text, &line) || text.size != 0)
            cx_run_verify_add_finding(v, CX_RUN_BASELINE_MISMATCH, CX_STR(path),
                                      "it is not one commit id and a newline");
        compare_baseline(v, CX_STR(path), baseline, line);
    }
    if (git != NULL)
        compare_baseline(v, TASK_RESULT, baseline, CX_JSON_GET_STR(git, "baseline_ref"));
    if (v->has_projection && v->projection.baseline_commit.size != 0)
        compare_baseline(v, CX_STR("events.jsonl"), baseline, v->projection.baseline_commit);
    /* A contract that was refused early still has what it asked for, a branch perhaps. */
    cx_str asked = rollback == NULL ? CX_STR("") : CX_JSON_GET_STR(rollback, "baseline_ref");
    if (is_commit(baseline) &&
        (is_commit(asked) || v->success || has_event(v, CX_RUN_EVENT_CONTRACT_VALIDATED)))
        compare_baseline(v, CX_STR("contract.json"), baseline, asked);
    return CX_SUCCESS;
}

/* The member of the last event of a type; data NULL when there is none. */
static cx_status last_event_text(cx_run_verification *v, cx_run_event_type type, const char *member,
                                 cx_str *out)
{
    *out = (cx_str){NULL, 0};
    for (size_t i = v->projection.moments.count; i-- > 0;) {
        const cx_run_moment *moment = &v->projection.moments.items[i];
        cx_run_event_read event;
        if (moment->kind != type || !is_of_run_task(v, moment))
            continue;
        CX_TRY(cx_run_event_parse(moment->line, moment->index, v->arena, &event, v->err));
        *out = cx_json_get_str(&event.payload, cx_str_z(member));
        return CX_SUCCESS;
    }
    return CX_SUCCESS;
}

/* The commits that a run names are those its events made. */
static cx_status check_commits(cx_run_verification *v)
{
    const cx_json *tasks = cx_json_get_typed(&v->manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    const cx_json *repo = CX_JSON_GET(&v->manifest, "repo");
    const cx_json *git = CX_JSON_GET(&v->task_result, "git");
    cx_str candidate, merged;
    if (tasks == NULL)
        return CX_SUCCESS;
    CX_TRY(last_event_text(v, CX_RUN_EVENT_CANDIDATE_COMMITTED, "commit", &candidate));
    CX_TRY(last_event_text(v, CX_RUN_EVENT_MERGE_APPLIED, "commit", &merged));
    cx_str head = git == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(git, "head_ref");
    cx_str final = repo == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(repo, "final_ref");
    if (candidate.data != NULL && head.data != NULL && !cx_str_eq(candidate, head))
        cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, TASK_RESULT,
                                  "its head_ref is not the candidate that the events name");
    cx_str made = merged.data != NULL ? merged : candidate;
    if (v->success && made.data != NULL && final.data != NULL && !cx_str_eq(made, final))
        cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, MANIFEST,
                                  "its final_ref is not the commit that the events name");
    return CX_SUCCESS;
}

static cx_status check_identity(cx_run_verification *v)
{
    const cx_run_entry *contract = cx_run_bundle_find(v->bundle, CX_STR("contract.json"));
    const cx_json *integrity = CX_JSON_GET(&v->manifest, "integrity");
    cx_bytes bytes;
    cx_digest digest;
    char hex[65] = {0};
    if (contract != NULL && contract->regular) {
        CX_TRY(cx_run_bundle_digest(v->bundle, CX_STR("contract.json"), &digest, v->err));
        cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
        cx_str stated =
            integrity == NULL ? CX_STR("") : CX_JSON_GET_STR(integrity, "contract_sha256");
        if (stated.size != 0 && !cx_str_is(stated, hex))
            cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, MANIFEST,
                                      "integrity.contract_sha256 is not that of contract.json");
        if (v->has_projection && v->projection.contract_sha256.size == 64 &&
            !cx_str_is(v->projection.contract_sha256, hex))
            cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, CX_STR("contract.json"),
                                      "RUN_CREATED names another contract");
    }
    cx_str task = CX_JSON_GET_STR(&v->contract, "task_id");
    if (task.data != NULL && v->task_id.size != 0 && !cx_str_eq(task, v->task_id))
        cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, CX_STR("contract.json"),
                                  "it is the contract of another task");
    CX_TRY(cx_run_verify_bytes(v, CX_STR("trace/trace_id.txt"), CX_RUN_JSON_BYTES_MAX, &bytes));
    if (bytes.data != NULL && v->trace_id.size != 0) {
        cx_str text = cx_bytes_str(bytes), line = {NULL, 0};
        if (!cx_run_next_line(&text, &line) || text.size != 0 || !cx_str_eq(line, v->trace_id))
            cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, CX_STR("trace/trace_id.txt"),
                                      "it is not the manifest's trace id");
    }
    return CX_SUCCESS;
}

cx_status cx_run_verify_agreement(cx_run_verification *v)
{
    cx_str status = CX_JSON_GET_STR(&v->manifest, "status");
    check_tasks(v, status);
    if (is_object(&v->task_result)) {
        check_gates(v);
        check_report_gates(v);
    }
    if (v->has_projection) {
        check_end(v, status);
        CX_TRY(check_verdict_events(v));
        CX_TRY(check_commits(v));
    }
    CX_TRY(check_tests(v));
    CX_TRY(check_command_file(v));
    CX_TRY(check_baseline(v));
    return check_identity(v);
}
