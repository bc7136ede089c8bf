/*
 * recover.c - ending a run whose process died (run.md §23: FAILURE, never SUCCESS).
 *
 * What the dead process knew is lost; what it did is in its events.  Documents are made from them:
 * a gate that was never reached has not passed, a review without an event is BLOCKED, tests without
 * one are SKIPPED.  Files that are there stay, unless they would claim more than the events do.
 */
#include <stdio.h>

#include "governor/recover_parts.h"
#include "governor/cleanup.h"
#include "rules/api.h"
#include "bundle/api.h"

#define DOCUMENT_BYTES_MAX ((size_t)16 << 20)
#define REASON "crashed"
#define FILLED_MAX 64

typedef struct ending {
    const cx_run_store *store;
    cx_arena *arena;
    cx_err *err;
    cx_run *run;
    cx_run_recovery recovery;
    cx_run_projection projection;
    const cx_run_projection_task *task; /* of the projection; NULL = none */
    cx_json contract;                   /* an object, perhaps empty */
    cx_str task_id;
    char now[28];
    cx_run_task_facts facts;
    cx_str filled[FILLED_MAX]; /* what was not there */
    size_t filled_count;
} ending;

/* --- reading ---------------------------------------------------------------------------------- */

/* The file's text in the arena; data NULL when it is not there. */
static cx_status read_text(ending *e, cx_str path, cx_str *out)
{
    cx_buf text;
    *out = (cx_str){NULL, 0};
    cx_buf_init(&text, e->arena->alloc);
    cx_status status = cx_run_file_read(e->run, path, DOCUMENT_BYTES_MAX, &text, e->err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(e->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(e->err);
    } else if (status.code == CX_E_NOT_FOUND) {
        status = CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

/* An object; type NULL when the file is none or not there. */
static cx_status read_object(ending *e, cx_str path, cx_json *out)
{
    cx_str text;
    *out = (cx_json){0};
    CX_TRY(read_text(e, path, &text));
    if (text.data == NULL)
        return CX_SUCCESS;
    cx_status status = cx_run_json_read(text, 0, e->arena, out, e->err);
    if (status.code == CX_E_NOMEM)
        return status;
    if (cx_failed(status) || out->type != CX_JSON_OBJECT)
        *out = (cx_json){0};
    return CX_SUCCESS;
}

static cx_status read_events(ending *e)
{
    cx_str events;
    CX_TRY(read_text(e, CX_STR("events.jsonl"), &events));
    cx_run_projection_done(&e->projection, e->arena);
    cx_run_projection_init(&e->projection);
    CX_TRY(cx_run_projection_read(events, e->arena, &e->projection, e->err));
    e->task = cx_run_projection_find(&e->projection, e->task_id);
    return CX_SUCCESS;
}

/* --- events of the end ------------------------------------------------------------------------ */

static cx_status write_event(ending *e, cx_run_level level, cx_run_event_type type, cx_str task_id,
                             int64_t attempt, cx_json_list *payload)
{
    cx_run_event event = {.level = level,
                          .type = type,
                          .task_id = task_id,
                          .attempt = attempt < 0 ? CX_RUN_NO_ATTEMPT : (int32_t)attempt};
    CX_TRY(cx_json_list_end_object(payload, &event.payload, e->err));
    return cx_run_event_append(e->run, &event, NULL, e->err);
}

static cx_status write_run_created(ending *e)
{
    cx_json_list payload = cx_json_list_begin(e->arena);
    cx_json_list_put(&payload, CX_STR("recovered"), cx_json_make_bool(true));
    return write_event(e, CX_RUN_WARN, CX_RUN_EVENT_RUN_CREATED, CX_STR(""), -1, &payload);
}

static cx_status release_locks(ending *e)
{
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    cx_str *paths;
    size_t count, released;
    cx_str run_id = cx_run_id(e->run);
    CX_TRY(cx_run_lock_list(e->store, e->arena, &locks, &reasons, &count, e->err));
    for (size_t i = 0; i < count; i++) {
        if (!cx_str_eq(locks[i].run_id, run_id))
            continue;
        cx_json_list payload = cx_json_list_begin(e->arena);
        cx_json_list_put(&payload, CX_STR("lock"), locks[i].content);
        cx_json_list_put(&payload, CX_STR("reason"), cx_json_make_str(CX_STR("owner_dead")));
        CX_TRY(write_event(e, CX_RUN_WARN, CX_RUN_EVENT_LOCK_RECLAIMED, locks[i].task_id, -1,
                           &payload));
    }
    return cx_run_lock_release(e->store, run_id, CX_STR(""), e->arena, &paths, &released, e->err);
}

static cx_status fail_task(ending *e, cx_str task_id, int64_t attempt, cx_str from)
{
    cx_json_list payload = cx_json_list_begin(e->arena);
    cx_json_list_put(&payload, CX_STR("from"), cx_json_make_str(from));
    cx_json_list_put(&payload, CX_STR("to"), cx_json_make_str(CX_STR("FAIL")));
    cx_json_list_put(&payload, CX_STR("reason"), cx_json_make_str(CX_STR(REASON)));
    return write_event(e, CX_RUN_ERROR, CX_RUN_EVENT_STATE_TRANSITION, task_id, attempt, &payload);
}

/* Every task that has not failed yet fails now. */
static cx_status fail_tasks(ending *e)
{
    size_t count = 0;
    for (size_t i = 0; i < e->projection.tasks.count; i++) {
        const cx_run_projection_task *task = &e->projection.tasks.items[i];
        bool moved = false;
        for (size_t t = 0; t < e->projection.transitions.count; t++)
            moved |= cx_str_eq(
                e->projection.moments.items[e->projection.transitions.items[t].moment].task_id,
                task->task_id);
        count += moved || cx_str_eq(task->task_id, e->task_id);
        if ((moved || cx_str_eq(task->task_id, e->task_id)) && !cx_str_is(task->state, "FAIL"))
            CX_TRY(fail_task(e, task->task_id, task->attempt, task->state));
    }
    return count != 0 ? CX_SUCCESS : fail_task(e, e->task_id, -1, CX_STR("S0"));
}

/* --- missing files ---------------------------------------------------------------------------- */

static cx_status path_of(ending *e, const char *format, cx_str *out)
{
    *out = cx_arena_printf(e->arena, format, (int)e->task_id.size, e->task_id.data);
    return out->data == NULL ? cx_fail_nomem(e->err) : CX_SUCCESS;
}

static void add_filled_path(ending *e, cx_str path)
{
    if (e->filled_count < FILLED_MAX)
        e->filled[e->filled_count++] = path;
}

static cx_status fill_file(ending *e, cx_str path, cx_str text)
{
    if (cx_run_file_exists(e->run, path))
        return CX_SUCCESS;
    add_filled_path(e, path);
    return cx_run_file_write(e->run, path, cx_str_bytes(text), e->err);
}

/* The events say which trace it is.  A run that died before its first one was noted has left the
 * name of another in its file. */
static cx_status fill_trace(ending *e)
{
    const cx_str path = CX_STR("trace/trace_id.txt");
    cx_str there, trace = cx_run_trace_id(e->run);
    cx_str line = cx_arena_printf(e->arena, "%.*s\n", (int)trace.size, trace.data);
    if (line.data == NULL)
        return cx_fail_nomem(e->err);
    CX_TRY(read_text(e, path, &there));
    if (there.data != NULL && cx_str_eq(there, line))
        return CX_SUCCESS;
    add_filled_path(e, path);
    return cx_run_file_write(e->run, path, cx_str_bytes(line), e->err);
}

/* `mirror` becomes what `path` is. */
static cx_status copy_report(ending *e, const char *path, const char *format)
{
    cx_str text, to;
    CX_TRY(path_of(e, format, &to));
    CX_TRY(read_text(e, cx_str_z(path), &text));
    if (text.data == NULL)
        return cx_fail(e->err, CX_E_FORMAT, "%s is gone", path);
    return cx_run_file_write(e->run, to, cx_str_bytes(text), e->err);
}

static cx_status write_json(ending *e, const char *path, const cx_json *value)
{
    if (!cx_run_file_exists(e->run, cx_str_z(path)))
        add_filled_path(e, cx_str_z(path));
    return cx_run_file_write_json(e->run, cx_str_z(path), value, e->err);
}

static cx_str baseline_of(const ending *e)
{
    if (e->projection.baseline_commit.size != 0)
        return e->projection.baseline_commit;
    const cx_json *rollback = CX_JSON_GET(&e->contract, "rollback");
    cx_str ref = rollback == NULL ? CX_STR("") : CX_JSON_GET_STR(rollback, "baseline_ref");
    return ref.size == 40 || ref.size == 64 ? ref : CX_STR("");
}

static cx_status fill_files(ending *e)
{
    cx_str path, baseline = baseline_of(e);
    cx_str text = cx_arena_printf(e->arena, "%.*s\n", baseline.size == 0 ? 4 : (int)baseline.size,
                                  baseline.size == 0 ? "none" : baseline.data);
    if (text.data == NULL)
        return cx_fail_nomem(e->err);
    CX_TRY(fill_file(e, CX_STR("worktree_ref.txt"), CX_STR("none\n")));
    CX_TRY(fill_trace(e));
    CX_TRY(fill_file(e, CX_STR("git/baseline_commit.txt"), text));
    CX_TRY(fill_file(e, CX_STR("tests/stdout.log"), CX_STR("")));
    CX_TRY(fill_file(e, CX_STR("tests/stderr.log"), CX_STR("")));
    static const char *const of_task[] = {"codex/%.*s/events.jsonl", "codex/%.*s/transcript.md",
                                          "codex/%.*s/thread_id.txt"};
    for (size_t i = 0; i < CX_COUNT_OF(of_task); i++) {
        CX_TRY(path_of(e, of_task[i], &path));
        CX_TRY(fill_file(e, path, CX_STR("")));
    }
    /* Half a patch says nothing: with one of the two files gone both are empty. */
    if (!cx_run_file_exists(e->run, CX_STR("patch.diff")) ||
        !cx_run_file_exists(e->run, CX_STR("diff_name_only.txt"))) {
        add_filled_path(e, CX_STR("patch.diff"));
        add_filled_path(e, CX_STR("diff_name_only.txt"));
        CX_TRY(cx_run_file_write(e->run, CX_STR("patch.diff"), (cx_bytes){NULL, 0}, e->err));
        CX_TRY(
            cx_run_file_write(e->run, CX_STR("diff_name_only.txt"), (cx_bytes){NULL, 0}, e->err));
    }
    CX_TRY(copy_report(e, "patch.diff", "git/patch.diff"));
    CX_TRY(copy_report(e, "diff_name_only.txt", "git/diff_name_only.txt"));
    CX_TRY(copy_report(e, "patch.diff", "results/%.*s/patch.diff"));
    CX_TRY(copy_report(e, "patch.diff", "patches/%.*s.diff"));
    return copy_report(e, "contract.json", "tasks/%.*s.json");
}

/* --- documents -------------------------------------------------------------------------------- */

static const cx_str lost[] = {{"see events.jsonl", 16}};

static void set_gate(ending *e, unsigned gate, cx_run_gate *out)
{
    bool reached = e->task != NULL && e->task->gates[gate].reached;
    bool passed = reached && cx_run_projection_task_passed(&e->projection, e->task, gate);
    *out = (cx_run_gate){.reached = reached,
                         .passed = passed,
                         .violations = lost,
                         .violation_count = reached && !passed};
}

static cx_str member_of(const cx_json *object, const char *outer, const char *inner)
{
    const cx_json *value = cx_json_get(object, cx_str_z(outer));
    cx_str text = value == NULL ? CX_STR("") : cx_json_get_str(value, cx_str_z(inner));
    return text.data == NULL ? CX_STR("") : text;
}

/* The last event of a type: its payload's member, "" when there is none. */
static cx_status last_of(ending *e, cx_run_event_type type, const char *member, cx_str *out)
{
    *out = CX_STR("");
    for (size_t i = e->projection.moments.count; i-- > 0;) {
        const cx_run_moment *moment = &e->projection.moments.items[i];
        cx_run_event_read event;
        if (moment->kind != type ||
            (moment->task_id.data != NULL && !cx_str_eq(moment->task_id, e->task_id)))
            continue;
        CX_TRY(cx_run_event_parse(moment->line, moment->index, e->arena, &event, e->err));
        cx_str text = cx_json_get_str(&event.payload, cx_str_z(member));
        if (text.data != NULL)
            *out = text;
        return CX_SUCCESS;
    }
    return CX_SUCCESS;
}

static cx_status make_facts(ending *e)
{
    cx_run_task_facts *f = &e->facts;
    cx_str started =
        e->projection.moments.count == 0 ? cx_str_z(e->now) : e->projection.moments.items[0].ts;
    *f = (cx_run_task_facts){
        .run_id = cx_run_id(e->run),
        .task_id = e->task_id,
        .attempt = e->task == NULL || e->task->attempt < 0 ? 0 : (uint32_t)e->task->attempt,
        .role = member_of(&e->contract, "assigned_agent", "role"),
        .agent_id = member_of(&e->contract, "assigned_agent", "agent_id"),
        .spec = member_of(&e->contract, "inputs", "spec"),
        .created_at = started,
        .started_at = started,
        .finished_at = cx_str_z(e->now),
        .status = CX_RUN_TASK_FAILED,
        .aborted = true,
        .failed_gate = CX_STR(REASON),
        .failure_hint = CX_STR("the process that ran it ended without finishing; events.jsonl says "
                               "how far it came"),
        .summary = CX_STR("the run died; this was written afterwards, from its events"),
        .baseline_commit = baseline_of(e),
        .notes = CX_STR("ended by cleanup"),
    };
    set_gate(e, CX_RUN_GATE_DIFF, &f->diff_gate);
    set_gate(e, CX_RUN_GATE_POLICY, &f->policy_gate);
    set_gate(e, CX_RUN_GATE_REVIEW, &f->review_gate);
    set_gate(e, CX_RUN_GATE_TESTS, &f->tests_gate);
    CX_TRY(last_of(e, CX_RUN_EVENT_CANDIDATE_COMMITTED, "commit", &f->head_commit));
    CX_TRY(cx_run_file_ref(e->run, CX_STR("patch.diff"), e->arena, &f->patch, e->err));
    return cx_run_file_ref(e->run, CX_STR("diff_name_only.txt"), e->arena, &f->changed_files,
                           e->err);
}

static cx_status write_review(ending *e)
{
    static const char path[] = "reports/review_report.json";
    cx_json old, made;
    cx_str verdict;
    cx_run_review_facts facts = {.reviewed_at = cx_str_z(e->now),
                                 .summary = CX_STR("the run died; this is what its events say")};
    CX_TRY(last_of(e, CX_RUN_EVENT_REVIEW_RESULT, "verdict", &verdict));
    CX_TRY(read_object(e, CX_STR(path), &old));
    if (old.type != CX_JSON_OBJECT || verdict.size == 0 ||
        !cx_str_eq(CX_JSON_GET_STR(&old, "verdict"), verdict)) {
        facts.reached = verdict.size != 0;
        facts.verdict = cx_str_is(verdict, "PASS")   ? CX_RUN_REVIEW_PASS
                        : cx_str_is(verdict, "FAIL") ? CX_RUN_REVIEW_FAIL
                                                     : CX_RUN_REVIEW_BLOCKED;
        facts.scope_passed = e->facts.diff_gate.passed;
        CX_TRY(cx_run_report_review(&e->facts, &facts, e->arena, &made, e->err));
        CX_TRY(write_json(e, path, &made));
    }
    return copy_report(e, path, "reviews/%.*s.json");
}

static cx_status read_report_ref(ending *e, size_t index, cx_run_command_facts *out)
{
    cx_str path = cx_arena_printf(e->arena, "tests/cmd_%zu.report.log", index);
    if (path.data == NULL)
        return cx_fail_nomem(e->err);
    bool is_file = out->report != NULL && CX_JSON_GET(out->report, "path") != NULL;
    return is_file && cx_run_file_exists(e->run, path)
               ? cx_run_file_ref(e->run, path, e->arena, &out->report_ref, e->err)
               : CX_SUCCESS;
}

/* One command that the events say ran, as the contract has it. */
static cx_status read_command(ending *e, const cx_json *test, const cx_json *payload, size_t index,
                              cx_run_command_facts *out)
{
    int64_t code = 0;
    cx_run_lexed lexed;
    cx_str names[2] = {cx_arena_printf(e->arena, "tests/cmd_%zu.stdout.log", index),
                       cx_arena_printf(e->arena, "tests/cmd_%zu.stderr.log", index)};
    if (names[0].data == NULL || names[1].data == NULL)
        return cx_fail_nomem(e->err);
    const cx_json *exit_code = CX_JSON_GET(payload, "exit_code");
    if (exit_code == NULL || !cx_json_int64(exit_code, &code) || code < 0 || code > 255)
        code = 1;
    *out = (cx_run_command_facts){
        .name = CX_JSON_GET_STR(test, "name"),
        .must_pass = cx_json_get_typed(test, CX_STR("must_pass"), CX_JSON_TRUE) != NULL,
        .exit_code = (int)code,
    };
    CX_TRY(cx_run_lex(CX_JSON_GET_STR(test, "cmd"), e->arena, &lexed, e->err));
    out->argv = lexed.argv.items;
    out->argv_count = lexed.rule == NULL ? lexed.argv.count : 0;
    out->report = cx_json_get_typed(payload, CX_STR("report"), CX_JSON_OBJECT);
    out->report_refused = out->report != NULL &&
                          cx_json_get_typed(out->report, CX_STR("holds"), CX_JSON_TRUE) == NULL;
    CX_TRY(read_report_ref(e, index, out));
    CX_TRY(fill_file(e, names[0], CX_STR("")));
    CX_TRY(fill_file(e, names[1], CX_STR("")));
    CX_TRY(cx_run_file_ref(e->run, names[0], e->arena, &out->stdout_ref, e->err));
    return cx_run_file_ref(e->run, names[1], e->arena, &out->stderr_ref, e->err);
}

/* Commands of the last attempt at S4, in order. */
static cx_status read_commands(ending *e, cx_run_command_facts **out, size_t *out_count)
{
    const cx_json *tests =
        cx_json_get_typed(&e->contract, CX_STR("acceptance_tests"), CX_JSON_ARRAY);
    uint32_t room = tests == NULL ? 0 : tests->count;
    size_t start = 0, count = 0;
    *out = CX_ARENA_ARRAY(e->arena, cx_run_command_facts, (size_t)room + 1);
    if (*out == NULL)
        return cx_fail_nomem(e->err);
    for (size_t t = 0; t < e->projection.transitions.count; t++)
        if (cx_str_is(e->projection.transitions.items[t].to, "S4"))
            start = e->projection.transitions.items[t].moment;
    for (size_t i = start; i < e->projection.moments.count && count < room; i++) {
        const cx_run_moment *moment = &e->projection.moments.items[i];
        cx_run_event_read event;
        if (moment->kind != CX_RUN_EVENT_TEST_COMMAND_RESULT)
            continue;
        CX_TRY(cx_run_event_parse(moment->line, moment->index, e->arena, &event, e->err));
        if (!cx_str_eq(CX_JSON_GET_STR(&event.payload, "name"),
                       CX_JSON_GET_STR(&tests->items[count], "name")))
            break;
        CX_TRY(read_command(e, &tests->items[count], &event.payload, count, &(*out)[count]));
        if ((*out)[count].argv_count == 0)
            break;
        count++;
    }
    *out_count = count;
    return CX_SUCCESS;
}

static cx_status write_tests(ending *e)
{
    static const char path[] = "reports/test_report.json";
    cx_json old, made;
    cx_str recorded;
    cx_run_command_facts *commands = NULL;
    size_t count = 0;
    CX_TRY(last_of(e, CX_RUN_EVENT_TEST_RESULT, "status", &recorded));
    CX_TRY(read_object(e, CX_STR(path), &old));
    if (old.type == CX_JSON_OBJECT && recorded.size != 0 &&
        cx_str_eq(CX_JSON_GET_STR(&old, "status"), recorded) &&
        cx_run_file_exists(e->run, CX_STR("tests/command.txt")))
        return copy_report(e, path, "ci/%.*s/report.json");
    CX_TRY(read_commands(e, &commands, &count));
    cx_run_test_facts facts = {
        .status = cx_str_is(recorded, "PASS")   ? CX_RUN_TESTS_PASS
                  : cx_str_is(recorded, "FAIL") ? CX_RUN_TESTS_FAIL
                  : recorded.size != 0          ? CX_RUN_TESTS_ERROR
                                                : CX_RUN_TESTS_SKIPPED,
        .commands = commands,
        .command_count = count,
        .failure = cx_str_is(recorded, "PASS") || recorded.size == 0 ? CX_STR("") : CX_STR(REASON),
    };
    CX_TRY(cx_run_report_tests(&e->facts, &facts, e->arena, &made, e->err));
    CX_TRY(write_json(e, path, &made));
    CX_TRY(copy_report(e, path, "ci/%.*s/report.json"));
    cx_buf text;
    cx_buf_init(&text, e->arena->alloc);
    const cx_json *tests =
        cx_json_get_typed(&e->contract, CX_STR("acceptance_tests"), CX_JSON_ARRAY);
    for (size_t i = 0; i < count; i++) {
        cx_buf_add_str(&text, CX_JSON_GET_STR(&tests->items[i], "cmd"));
        cx_buf_add_byte(&text, '\n');
    }
    cx_status status = cx_buf_check(&text, e->err);
    if (!cx_failed(status))
        status =
            cx_run_file_write(e->run, CX_STR("tests/command.txt"), cx_buf_bytes(&text), e->err);
    cx_buf_done(&text);
    return status;
}

static cx_status write_documents(ending *e)
{
    cx_json made;
    cx_run_meta_facts meta = {.run_id = cx_run_id(e->run),
                              .cortex_version = CX_STR(CX_VERSION),
                              .runner = CX_STR("unknown")};
    CX_TRY(write_review(e));
    CX_TRY(write_tests(e));
    CX_TRY(cx_run_report_task_result(&e->facts, e->arena, &made, e->err));
    CX_TRY(write_json(e, "reports/task_result.json", &made));
    CX_TRY(copy_report(e, "reports/task_result.json", "results/%.*s/result.json"));
    CX_TRY(cx_run_report_work_report(&e->facts, e->arena, &made, e->err));
    CX_TRY(write_json(e, "reports/work_report.json", &made));
    CX_TRY(cx_run_report_evidence_bundle(&e->facts, e->arena, &made, e->err));
    CX_TRY(write_json(e, "reports/evidence_bundle.json", &made));
    if (!cx_run_file_exists(e->run, CX_STR("artifacts/runner_result.json"))) {
        CX_TRY(cx_run_report_runner_stub(&e->facts, e->arena, &made, e->err));
        CX_TRY(write_json(e, "artifacts/runner_result.json", &made));
    }
    if (!cx_run_file_exists(e->run, CX_STR("meta.json"))) {
        CX_TRY(cx_run_report_meta(&meta, e->arena, &made, e->err));
        CX_TRY(write_json(e, "meta.json", &made));
    }
    CX_TRY(cx_run_report_evidence_report(e->filled, e->filled_count, e->arena, &made, e->err));
    return cx_run_file_write_json(e->run, CX_STR("reports/evidence_report.json"), &made, e->err);
}

/* --- the end ---------------------------------------------------------------------------------- */

static cx_run_ref find_ref(const cx_run_ref *files, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(files[i].path, path))
            return files[i];
    return (cx_run_ref){0};
}

static cx_status seal_failed_run(ending *e, cx_run_sealed *out)
{
    const cx_run_ref *files;
    size_t count;
    cx_json manifest;
    size_t part_count;
    cx_run_manifest_task *tasks =
        CX_ARENA_ARRAY(e->arena, cx_run_manifest_task, 1 + e->projection.tasks.count);
    if (tasks == NULL)
        return cx_fail_nomem(e->err);
    CX_TRY(cx_run_recover_parts(e->run, &e->projection, e->task_id, e->arena, tasks + 1,
                                &part_count, e->err));
    CX_TRY(cx_run_finish(e->run, CX_RUN_FAILURE, 3, e->arena, &files, &count, e->err));
    cx_run_time_text((int64_t)e->store->io->wall_ns(e->store->io), e->now);
    tasks[0] = (cx_run_manifest_task){
        .task_id = e->task_id,
        .role = e->facts.role,
        .agent_id = e->facts.agent_id,
        .status = CX_RUN_TASK_FAILED,
        .contract = find_ref(files, count, "contract.json"),
        .result = find_ref(files, count, "reports/task_result.json"),
        .review_report = find_ref(files, count, "reports/review_report.json"),
        .test_report = find_ref(files, count, "reports/test_report.json"),
    };
    cx_run_manifest_facts facts = {
        .run_id = cx_run_id(e->run),
        .task_id = e->task_id,
        .created_at = e->facts.created_at,
        .finished_at = cx_str_z(e->now),
        .status = CX_RUN_FAILURE,
        .failure_reason = CX_STR(REASON),
        .user_request = e->facts.spec,
        .trace_id = cx_run_trace_id(e->run),
        .runner_name = CX_STR("unknown"),
        .policy_pack = CX_JSON_GET_STR(&e->contract, "policy_pack"),
        .baseline_commit = e->facts.baseline_commit,
        .notes = CX_STR("the process of this run ended without finishing; ended by cleanup"),
        .cortex_version = CX_STR(CX_VERSION),
        .contract = e->contract.count == 0 ? NULL : &e->contract,
        .tasks = tasks,
        .task_count = 1 + part_count,
        .files = files,
        .file_count = count,
    };
    CX_TRY(cx_run_report_manifest(&facts, e->arena, &manifest, e->err));
    const cx_json *repo = CX_JSON_GET(&manifest, "repo");
    cx_run_seal_facts sealing = {
        .task_id = e->task_id,
        .status = CX_RUN_FAILURE,
        .baseline_commit = repo == NULL ? CX_STR("") : CX_JSON_GET_STR(repo, "baseline_ref"),
        .final_commit = repo == NULL ? CX_STR("") : CX_JSON_GET_STR(repo, "final_ref"),
    };
    return cx_run_seal(e->run, &manifest, &sealing, out, e->err);
}

/* The contract as it was run; a run that died before it had one has an empty one. */
static cx_status read_run_contract(ending *e)
{
    static const char name[] = "contract.json";
    CX_TRY(read_object(e, CX_STR(name), &e->contract));
    if (e->contract.type != CX_JSON_OBJECT) {
        cx_json_list none = cx_json_list_begin(e->arena);
        CX_TRY(cx_json_list_end_object(&none, &e->contract, e->err));
        if (!cx_run_file_exists(e->run, CX_STR(name)))
            CX_TRY(write_json(e, name, &e->contract));
    }
    e->task_id = CX_JSON_GET_STR(&e->contract, "task_id");
    /* Only an id that names files may name them (K14). */
    if (e->task_id.size == 0 || e->task_id.size > 128 || e->task_id.data[0] == '.' ||
        memchr(e->task_id.data, '/', e->task_id.size) != NULL)
        e->task_id = CX_STR("unknown_task");
    return CX_SUCCESS;
}

static cx_status end_dead_run(ending *e, cx_run_sealed *out)
{
    cx_run_time_text((int64_t)e->store->io->wall_ns(e->store->io), e->now);
    CX_TRY(read_run_contract(e));
    if (cx_run_event_count(e->run) == 0)
        CX_TRY(write_run_created(e));
    CX_TRY(read_events(e));
    CX_TRY(release_locks(e));
    CX_TRY(fail_tasks(e));
    CX_TRY(read_events(e));
    CX_TRY(fill_files(e));
    CX_TRY(make_facts(e));
    CX_TRY(write_documents(e));
    return seal_failed_run(e, out);
}

cx_status cx_run_recover(const cx_run_store *store, cx_str run_id, const cx_run_ledger *ledger,
                         cx_arena *arena, cx_run_sealed *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    ending e = {.store = store, .arena = arena, .err = err};
    cx_run_begin_options options = {.store = store, .run_id = run_id, .ledger = ledger};
    CX_TRY(cx_run_resume(&options, &e.run, &e.recovery, err));
    cx_run_projection_init(&e.projection);
    cx_status status = end_dead_run(&e, out);
    cx_run_projection_done(&e.projection, arena);
    cx_run_end(e.run);
    return status;
}
