/*
 * tests_gate.c - running the acceptance tests of a contract (run.md §12).
 *
 *   I1  What is executed is what was judged: the argv of the verdict, by the file of the verdict.
 *   I2  Everything a status says follows from exit codes that were observed, and from reports that
 *       were read whole; whatever is not known leaves it at ERROR.
 *   I3  A report is taken when no process of the command is left, and only from where nothing was
 *       before the command ran.
 *   I4  No command runs on files of the candidate that an earlier one has changed.
 */
#include "candidate/tests_gate.h"
#include "candidate/test_dependencies.h"
#include "candidate/tests_untouched.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/api.h"
#include "contract/api.h"
#include "agent/api.h"
#include "bundle/api.h"
#include "git/api.h"

#define EARLIER_FILE_BYTES_MAX (CX_RUN_OUTPUT_BYTES_MAX * 16)

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

typedef struct job {
    const cx_run_tests_options *options;
    cx_arena *arena;
    const char *folder;
    uint64_t output_bytes;
    const char *prefix;          /* of the evidence of a command */
    cx_tests_leftover *baseline; /* one a test; NULL = the baseline was not run */
    cx_worktree worktree;
    cx_str git_config;   /* that commands see */
    cx_snapshot *before; /* the checkout before the first of several commands, else NULL */
    cx_test_dependencies dependencies;
    cx_run_git_repo git_repo;
    cx_run_repo repo;
    cx_run_script_context ground;
    cx_run_command_options judge;
    cx_run_test_facts *facts;
    CX_VEC(cx_run_command_facts) ran;
    cx_file all_out, all_err; /* stdout.log, stderr.log */
    bool must_pass_ran;
    bool over; /* the first must_pass failed, or a command was refused */
} job;

/* --- evidence --------------------------------------------------------------------------------- */

static cx_str evidence_path(const job *j, const char *name)
{
    return cx_arena_printf(j->arena, "%s/%s", j->folder, name);
}

/* "tests/cmd_0.stdout.log" */
static cx_str command_path(const job *j, size_t index, const char *what)
{
    return cx_arena_printf(j->arena, "%s/%s_%zu.%s", j->folder, j->prefix, index, what);
}

static cx_status open_evidence(const job *j, cx_str path, cx_file *out, cx_err *err)
{
    if (path.data == NULL)
        return cx_fail_nomem(err);
    return j->options->run == NULL ? cx_confine_memory_file(out, err)
                                   : cx_run_file_open(j->options->run, path, false, out, err);
}

static void close_evidence(cx_file *file)
{
    if (*file != CX_FILE_NONE)
        (void)cx_io_system()->close(cx_io_system(), *file);
    *file = CX_FILE_NONE;
}

/* Reads back what a command wrote: its digest is that of the file, not of what went by. */
static cx_status read_evidence(const job *j, cx_file file, cx_str path, cx_buf *out, cx_err *err)
{
    if (j->options->run != NULL)
        return cx_run_file_read(j->options->run, path, (size_t)j->output_bytes, out, err);
    uint8_t block[65536];
    for (size_t count = sizeof block; count == sizeof block;) {
        CX_TRY(cx_io_read_at(cx_io_system(), file, path.data, block, sizeof block, out->size,
                             &count, err));
        cx_buf_add(out, block, count);
    }
    return cx_buf_check(out, err);
}

/* Closes the log of one stream, and appends it to the one of all. */
static cx_status record_evidence(const job *j, cx_file *file, cx_str path, cx_file all,
                                 cx_buf *text, cx_run_ref *out, cx_err *err)
{
    cx_status status = read_evidence(j, *file, path, text, err);
    if (!cx_failed(status) && all != CX_FILE_NONE)
        status = cx_io_write_all(cx_io_system(), all, "the log of all tests", text->data,
                                 text->size, err);
    if (!cx_failed(status))
        *out = cx_run_ref_of(path, cx_buf_bytes(text));
    close_evidence(file);
    return status;
}

static cx_status move_evidence_file(const job *j, cx_str from, const char *name, cx_buf *text,
                                    cx_err *err)
{
    cx_run *run = j->options->run;
    if (from.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_run_file_exists(run, from))
        return CX_SUCCESS;
    cx_str to = cx_arena_printf(j->arena, "%s/attempt_%" PRIu32 "/%s", j->folder,
                                j->options->attempt - 1, name);
    cx_buf_clear(text);
    CX_TRY(cx_run_file_read(run, from, (size_t)EARLIER_FILE_BYTES_MAX, text, err));
    return to.data == NULL ? cx_fail_nomem(err)
                           : cx_run_file_write(run, to, cx_buf_bytes(text), err);
}

/* Moves the evidence of the previous attempt to its own folder. */
static cx_status archive_earlier_attempt(const job *j, cx_err *err)
{
    static const char *const whole[] = {"command.txt", "stdout.log", "stderr.log"};
    static const char *const parts[] = {"cmd_%zu.stdout.log",      "cmd_%zu.stderr.log",
                                        "cmd_%zu.report.log",      "baseline_%zu.stdout.log",
                                        "baseline_%zu.stderr.log", "baseline_%zu.report.log"};
    if (j->options->run == NULL || j->options->attempt == 0)
        return CX_SUCCESS;
    cx_buf text;
    cx_buf_init(&text, j->arena->alloc);
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(whole) && !cx_failed(status); i++)
        status = move_evidence_file(j, evidence_path(j, whole[i]), whole[i], &text, err);
    for (size_t i = 0; i < CX_COUNT_OF(parts) * j->options->test_count && !cx_failed(status); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, parts[i % CX_COUNT_OF(parts)], i / CX_COUNT_OF(parts));
        status = move_evidence_file(j, evidence_path(j, name), name, &text, err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status begin_evidence(job *j, cx_err *err)
{
    if (j->options->run == NULL)
        return CX_SUCCESS;
    CX_TRY(open_evidence(j, evidence_path(j, "stdout.log"), &j->all_out, err));
    return open_evidence(j, evidence_path(j, "stderr.log"), &j->all_err, err);
}

/* Those that were run: tests run in order and stop at the first that decides, so they are the first
 * of the contract. */
static cx_status write_commands(const job *j, cx_err *err)
{
    if (j->options->run == NULL)
        return CX_SUCCESS;
    cx_buf commands;
    cx_buf_init(&commands, j->arena->alloc);
    for (size_t i = 0; i < j->ran.count; i++) {
        cx_buf_add_str(&commands, j->options->tests[i].cmd);
        cx_buf_add_byte(&commands, '\n');
    }
    cx_str path = evidence_path(j, "command.txt");
    cx_status status = cx_buf_check(&commands, err);
    if (!cx_failed(status))
        status = path.data == NULL
                     ? cx_fail_nomem(err)
                     : cx_run_file_write(j->options->run, path, cx_buf_bytes(&commands), err);
    cx_buf_done(&commands);
    return status;
}

/* --- one command ------------------------------------------------------------------------------ */

static cx_status refuse_command(job *j, const cx_run_test *test, const char *rule, cx_err *err)
{
    cx_str why = cx_arena_printf(j->arena, "%s %.*s", rule, (int)test->cmd.size, test->cmd.data);
    if (why.data == NULL)
        return cx_fail_nomem(err);
    j->facts->status = CX_RUN_TESTS_ERROR;
    j->facts->failure = why;
    j->over = true;
    return CX_SUCCESS;
}

static uint64_t timeout_of(const job *j)
{
    uint64_t wanted = j->options->timeout_sec;
    return wanted == 0 || wanted > CX_RUN_TEST_TIMEOUT_MAX_S ? CX_RUN_TEST_TIMEOUT_MAX_S : wanted;
}

static cx_status execute_command(const job *j, const cx_run_command_verdict *verdict,
                                 cx_file streams[2], cx_sandbox_result *result, cx_err *err)
{
    const cx_io *io = cx_io_system();
    const cx_sandbox_git git = {.common_dir = cx_git_common_dir(j->worktree.git),
                                .config = j->git_config,
                                .git_dir = cx_git_dir(j->worktree.git)};
    cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
    /* Terminated: it came from an arena or a literal of the gate. */
    cx_str path = cx_arena_copy_str(j->arena, verdict->executable.path);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_file opened = CX_FILE_NONE;
    int code = io->open(io, path.data, CX_IO_READ, &opened);
    if (code != 0)
        return cx_fail_os(err, -code, "cannot open %s", path.data);
    spec.argv = verdict->argv.words;
    spec.path = path.data;
    spec.executable = opened; /* I1 */
    spec.worktree = j->worktree.path;
    spec.git = &git;
    spec.binds = j->dependencies.binds;
    spec.bind_count = j->dependencies.bind_count;
    spec.env = j->dependencies.env;
    spec.run_id = cx_arena_copy_str(j->arena, j->options->run_id).data;
    spec.task_id = cx_arena_copy_str(j->arena, j->options->task_id).data;
    spec.may_miss = j->options->may_miss;
    spec.out = cx_spawn_to_file(streams[0], j->output_bytes);
    spec.errout = cx_spawn_to_file(streams[1], j->output_bytes);
    spec.timeout_ms = timeout_of(j) * 1000;
    spec.cancel = j->options->cancel;
    cx_status status = cx_sandbox_run(j->options->box, &spec, result, err);
    close_evidence(&opened);
    return status;
}

static cx_status check_test_command(job *j, const cx_run_test *test, cx_run_command_verdict *out,
                                    cx_err *err)
{
    *out = (cx_run_command_verdict){0};
    CX_TRY(cx_run_command_check(&j->judge, test->cmd, j->arena, out, err));
    const cx_run_tests_host *host = j->options->host;
    return host != NULL && host->judged != NULL ? host->judged(host->arg, test, out, err)
                                                : CX_SUCCESS;
}

/* I2. */
static cx_status count_result(job *j, const cx_run_test *test, const cx_run_command_facts *command,
                              const cx_tests_verdict *verdict, cx_err *err)
{
    cx_run_test_facts *facts = j->facts;
    int exit_code = command->exit_code;
    bool good = exit_code == 0 && !command->report_refused;
    if (good)
        facts->passed++;
    else
        facts->failed++;
    if (!test->must_pass)
        return CX_SUCCESS;
    j->must_pass_ran = true;
    if (good)
        return CX_SUCCESS;
    bool not_run = exit_code == EXIT_NOT_EXECUTABLE || exit_code == EXIT_NOT_FOUND;
    facts->status = not_run ? CX_RUN_TESTS_ERROR : CX_RUN_TESTS_FAIL;
    facts->failure =
        exit_code != 0
            ? cx_arena_printf(j->arena, "%.*s exit %d", (int)test->name.size, test->name.data,
                              exit_code)
            : cx_arena_printf(j->arena, "%.*s report: %.*s", (int)test->name.size, test->name.data,
                              (int)verdict->problem.size, verdict->problem.data);
    j->over = true;
    return facts->failure.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- reports ---------------------------------------------------------------------------------- */

static bool has_report(const cx_run_test *test)
{
    return test->report.format != CX_TESTS_NO_REPORT;
}

static cx_status set_report_trouble(const job *j, cx_tests_leftover *left, const char *why,
                                    cx_err *err)
{
    left->trouble = cx_arena_copy_str(j->arena, cx_str_z(why));
    return left->trouble.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* I3: what is there before the command runs is not its report. */
static cx_status run_baseline_reports(const job *j, const cx_run_test *test,
                                      cx_tests_leftover *left, cx_err *err)
{
    cx_facts facts;
    cx_file folder = CX_FILE_NONE;
    cx_err why = {0};
    if (!has_report(test) || test->report.path.data == NULL)
        return CX_SUCCESS;
    cx_str path = cx_arena_copy_str(j->arena, test->report.path); /* terminated */
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open(j->worktree.path, &folder, err));
    cx_status status = cx_folder_facts(folder, path.data, &facts, &why);
    cx_folder_close(folder);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    return set_report_trouble(
        j, left, cx_failed(status) ? why.message : "it is there before the tests run", err);
}

/* Only a regular file is read, and no link on the way to it is followed. */
static cx_status read_report_file(const job *j, const cx_run_test *test, cx_buf *out,
                                  cx_tests_leftover *left, cx_err *err)
{
    cx_file folder = CX_FILE_NONE;
    cx_err why = {0};
    cx_str path = cx_arena_copy_str(j->arena, test->report.path);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open(j->worktree.path, &folder, err));
    cx_status status = cx_folder_read_file(folder, path.data, CX_TESTS_REPORT_BYTES_MAX, out, &why);
    cx_folder_close(folder);
    if (!cx_failed(status))
        return cx_buf_check(out, err);
    cx_buf_clear(out);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return set_report_trouble(
        j, left, status.code == CX_E_NOT_FOUND ? "the tests left none" : why.message, err);
}

/* The file in the bundle.  One of an attempt before this is no report of this one. */
static cx_status store_report(const job *j, size_t index, cx_str text, bool taken, cx_run_ref *out,
                              cx_err *err)
{
    cx_str path = command_path(j, index, "report.log");
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_run *run = j->options->run;
    if (run != NULL && (taken || cx_run_file_exists(run, path)))
        CX_TRY(cx_run_file_write(run, path, cx_str_bytes(text), err));
    if (taken)
        *out = cx_run_ref_of(path, cx_str_bytes(text));
    return CX_SUCCESS;
}

static cx_status read_left_file(const job *j, size_t index, const cx_run_test *test, cx_buf *text,
                                cx_run_command_facts *facts, cx_tests_leftover *left, cx_err *err)
{
    CX_TRY(read_report_file(j, test, text, left, err));
    return store_report(j, index, cx_buf_str(text), left->trouble.data == NULL, &facts->report_ref,
                        err);
}

/* `said`: what the command wrote to its standard output. */
static cx_status read_left_report(const job *j, size_t index, const cx_run_test *test,
                                  cx_str printed, cx_run_command_facts *facts,
                                  cx_tests_leftover *left, cx_err *err)
{
    cx_buf text;
    cx_status status = CX_SUCCESS;
    bool is_file = test->report.path.data != NULL;
    left->exit_code = facts->exit_code;
    if (!has_report(test) || left->trouble.data != NULL)
        return CX_SUCCESS;
    cx_buf_init(&text, j->arena->alloc);
    if (is_file)
        status = read_left_file(j, index, test, &text, facts, left, err);
    if (!cx_failed(status) && left->trouble.data == NULL)
        status = cx_tests_leftover_read(&test->report, is_file ? cx_buf_str(&text) : printed,
                                        cx_str_z(j->worktree.path), j->arena, left, err);
    cx_buf_done(&text);
    return status;
}

static cx_status check_report(const job *j, size_t index, const cx_run_test *test,
                              const cx_tests_leftover *left, cx_run_command_facts *facts,
                              cx_tests_verdict *out, cx_err *err)
{
    cx_json *json = CX_ARENA_NEW(j->arena, cx_json);
    if (json == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_tests_check_requirement(
        &test->report, left, j->baseline == NULL ? NULL : &j->baseline[index], j->arena, out, err));
    *json = out->json;
    facts->report = json;
    facts->report_refused = !out->holds;
    return CX_SUCCESS;
}

/* --- one test --------------------------------------------------------------------------------- */

static cx_status run_command(job *j, size_t index, const cx_run_test *test,
                             const cx_run_command_verdict *verdict, cx_run_command_facts *facts,
                             cx_tests_leftover *left, cx_err *err)
{
    cx_str paths[2] = {command_path(j, index, "stdout.log"), command_path(j, index, "stderr.log")};
    cx_file streams[2] = {CX_FILE_NONE, CX_FILE_NONE};
    cx_sandbox_result result = {0};
    cx_buf printed[2];
    cx_buf_init(&printed[0], j->arena->alloc);
    cx_buf_init(&printed[1], j->arena->alloc);
    cx_status status;
    CX_TRY_GOTO(status, open_evidence(j, paths[0], &streams[0], err));
    CX_TRY_GOTO(status, open_evidence(j, paths[1], &streams[1], err));
    CX_TRY_GOTO(status, run_baseline_reports(j, test, left, err));
    CX_TRY_GOTO(status, execute_command(j, verdict, streams, &result, err));
    CX_TRY_GOTO(status, record_evidence(j, &streams[0], paths[0], j->all_out, &printed[0],
                                        &facts->stdout_ref, err));
    CX_TRY_GOTO(status, record_evidence(j, &streams[1], paths[1], j->all_err, &printed[1],
                                        &facts->stderr_ref, err));
    if (result.process.cancelled)
        CX_TRY_GOTO(status, cx_fail(err, CX_E_BUSY, "the tests were cancelled"));
    facts->exit_code = result.exit_code;
    facts->duration_ms = result.process.duration_ns / 1000000u;
    status = read_left_report(j, index, test, cx_buf_str(&printed[0]), facts, left, err);
done:
    close_evidence(&streams[0]);
    close_evidence(&streams[1]);
    cx_buf_done(&printed[0]);
    cx_buf_done(&printed[1]);
    return status;
}

static cx_status run_test(job *j, size_t index, const cx_run_test *test, cx_err *err)
{
    cx_run_command_verdict verdict;
    cx_tests_leftover left = {0};
    cx_tests_verdict report = {0};
    CX_TRY(check_test_command(j, test, &verdict, err));
    if (!verdict.allow)
        return refuse_command(j, test, verdict.rule, err);
    cx_run_command_facts facts = {
        .name = test->name,
        .argv = verdict.argv.items,
        .argv_count = verdict.argv.count,
        .must_pass = test->must_pass,
        .timeout_sec = timeout_of(j),
    };
    CX_TRY(run_command(j, index, test, &verdict, &facts, &left, err));
    if (has_report(test))
        CX_TRY(check_report(j, index, test, &left, &facts, &report, err));
    cx_run_command_facts *slot = cx_vec_push(&j->ran, j->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = facts;
    CX_TRY(count_result(j, test, &facts, &report, err));
    const cx_run_tests_host *host = j->options->host;
    return host != NULL && host->ran != NULL ? host->ran(host->arg, test, &facts, err) : CX_SUCCESS;
}

/* I4: a command runs the candidate's code, and what it changed would be what the next one
 * judges. */
static cx_status check_untouched(job *j, const cx_run_test *test, cx_err *err)
{
    cx_run_test_facts *facts = j->facts;
    cx_str touched = CX_STR("");
    if (j->over || j->before == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_tests_find_touched(j->worktree.path, j->before, j->arena, &touched, err));
    if (touched.size == 0)
        return CX_SUCCESS;
    facts->status = CX_RUN_TESTS_FAIL;
    facts->failure =
        cx_arena_printf(j->arena, "%.*s changed %.*s, which later tests judge",
                        (int)test->name.size, test->name.data, (int)touched.size, touched.data);
    j->over = true;
    return facts->failure.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* At the baseline nothing is judged but whether the command may run. */
static cx_status run_test_at_baseline(job *j, size_t index, const cx_run_test *test, cx_err *err)
{
    cx_run_command_verdict verdict = {0};
    cx_run_command_facts facts = {.name = test->name};
    cx_tests_leftover *left = &j->baseline[index];
    CX_TRY(cx_run_command_check(&j->judge, test->cmd, j->arena, &verdict, err));
    if (verdict.allow)
        return run_command(j, index, test, &verdict, &facts, left, err);
    left->exit_code = EXIT_NOT_EXECUTABLE;
    left->trouble =
        cx_arena_printf(j->arena, "the command gate refuses the command there: %s", verdict.rule);
    return left->trouble.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void conclude_verdict(const job *j, size_t reached)
{
    cx_run_test_facts *facts = j->facts;
    facts->skipped = (uint32_t)(j->options->test_count - reached);
    facts->counted = j->options->test_count > 1;
    if (!j->over && j->must_pass_ran) {
        facts->status = CX_RUN_TESTS_PASS;
    } else if (!j->over) {
        facts->status = CX_RUN_TESTS_ERROR;
        facts->failure = CX_STR("no test that must pass has run");
    }
}

/* What ran is a fact, also when something kept the rest from running. */
static cx_status copy_commands(const job *j, cx_err *err)
{
    cx_run_test_facts *facts = j->facts;
    CX_TRY(write_commands(j, err));
    if (j->ran.count == 0)
        return CX_SUCCESS;
    cx_run_command_facts *copy = CX_ARENA_ARRAY(j->arena, cx_run_command_facts, j->ran.count);
    if (copy == NULL)
        return cx_fail_nomem(err);
    memcpy(copy, j->ran.items, j->ran.count * sizeof *copy);
    facts->commands = copy;
    facts->command_count = j->ran.count;
    return CX_SUCCESS;
}

static void prepare_command_gate(job *j)
{
    const cx_run_tests_options *options = j->options;
    j->repo = cx_run_git_repo_init(&j->git_repo, options->git, j->arena);
    j->ground = (cx_run_script_context){
        .worktree = j->worktree.path,
        .repo = &j->repo,
        .commit = options->baseline,
        .alloc = j->arena->alloc,
    };
    j->judge = *options->judge;
    j->judge.lint = false;
    j->judge.worktree = j->worktree.path;
    j->judge.script = cx_run_script_compare;
    j->judge.script_arg = &j->ground;
}

static cx_status prepare_ground(job *j, cx_err *err)
{
    const cx_run_tests_options *options = j->options;
    const char *root = cx_git_main_worktree(options->git);
    CX_TRY(cx_git_public_config(options->git, j->arena, &j->git_config, err));
    if (options->dependency_count == 0)
        return CX_SUCCESS;
    return cx_test_dependencies_link(options->dependencies, options->dependency_count,
                                     root != NULL ? root : cx_git_worktree(options->git),
                                     j->worktree.path, j->arena, &j->dependencies, err);
}

static cx_status run_all_tests(job *j, cx_err *err)
{
    size_t reached = 0;
    prepare_command_gate(j);
    CX_TRY(prepare_ground(j, err));
    CX_TRY(begin_evidence(j, err));
    if (j->options->test_count > 1)
        CX_TRY(cx_snapshot_read(j->worktree.git, NULL, &j->before, err));
    while (reached < j->options->test_count && !j->over) {
        const cx_run_test *test = &j->options->tests[reached++];
        CX_TRY(run_test(j, reached - 1, test, err));
        if (reached < j->options->test_count)
            CX_TRY(check_untouched(j, test, err));
    }
    conclude_verdict(j, reached);
    return CX_SUCCESS;
}

static cx_worktree_options checkout_of(const cx_run_tests_options *options, cx_oid commit)
{
    return (cx_worktree_options){
        .runtime_root = options->runtime_root,
        .run_id = options->run_id,
        .task_id = options->task_id,
        .suffix = CX_STR(".test"),
        .commit = commit,
    };
}

static job begin_job(const cx_run_tests_options *options, cx_arena *arena, cx_run_test_facts *facts)
{
    return (job){
        .options = options,
        .arena = arena,
        .folder = options->folder == NULL ? "tests" : options->folder,
        .prefix = "cmd",
        .output_bytes =
            options->output_bytes == 0 ? CX_RUN_OUTPUT_BYTES_MAX : options->output_bytes,
        .facts = facts,
        .all_out = CX_FILE_NONE,
        .all_err = CX_FILE_NONE,
    };
}

static cx_status drop_checkout(const job *j, cx_worktree *worktree,
                               const cx_worktree_options *where, cx_status status, cx_err *err)
{
    cx_err removing;
    cx_status removed = cx_run_worktree_remove(j->options->git, where, worktree, true, &removing);
    if (cx_failed(status) || !cx_failed(removed))
        return status;
    if (err != NULL)
        *err = removing;
    return removed;
}

/* The commands up to the last whose report is compared: one may build what the next one tests.  In
 * a checkout at the same place as the candidate's will be, so that paths in names are the same. */
static cx_status run_baseline(const cx_run_tests_options *options, cx_arena *arena,
                              cx_tests_leftover **out, cx_err *err)
{
    size_t count = 0;
    cx_oid commit;
    cx_run_test_facts unused = {0};
    job j = begin_job(options, arena, &unused);
    CX_TRY(archive_earlier_attempt(&j, err));
    for (size_t i = 0; i < options->test_count; i++)
        if (has_report(&options->tests[i]) && options->tests[i].report.same_as_baseline)
            count = i + 1;
    if (count == 0)
        return CX_SUCCESS;
    j.prefix = "baseline";
    j.baseline = CX_ARENA_ARRAY(arena, cx_tests_leftover, options->test_count);
    if (j.baseline == NULL)
        return cx_fail_nomem(err);
    memset(j.baseline, 0, options->test_count * sizeof *j.baseline);
    CX_TRY(cx_git_resolve(options->git, options->baseline, &commit, err));
    const cx_worktree_options where = checkout_of(options, commit);
    CX_TRY(cx_run_worktree_add(options->git, &where, arena, &j.worktree, err));
    prepare_command_gate(&j);
    cx_status status = prepare_ground(&j, err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = run_test_at_baseline(&j, i, &options->tests[i], err);
    status = drop_checkout(&j, &j.worktree, &where, status, err);
    *out = j.baseline;
    return status;
}

cx_status cx_run_tests(const cx_run_tests_options *options, cx_arena *arena, cx_run_test_facts *out,
                       cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    cx_run_test_facts facts = {.status = CX_RUN_TESTS_ERROR};
    job j = begin_job(options, arena, &facts);
    const cx_worktree_options where = checkout_of(options, options->candidate);
    CX_TRY(run_baseline(options, arena, &j.baseline, err));
    CX_TRY(cx_run_worktree_add(options->git, &where, arena, &j.worktree, err));
    cx_status status = run_all_tests(&j, err);
    bool went_through = !cx_failed(status);
    cx_status stored = copy_commands(&j, went_through ? err : NULL);
    if (went_through)
        status = stored;
    else
        facts.status = CX_RUN_TESTS_ERROR;
    close_evidence(&j.all_out);
    close_evidence(&j.all_err);
    cx_snapshot_close(j.before);
    cx_vec_done(&j.ran, arena->alloc);
    status = drop_checkout(&j, &j.worktree, &where, status, err);
    *out = facts;
    return status;
}
