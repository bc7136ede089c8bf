/*
 * test_tests_gate.c - acceptance tests in a fresh checkout: what is run, what is said, what is
 * kept.
 */
#include "candidate/tests_gate.h"

#include <stdlib.h>
#include <unistd.h>

#include "os/folder.h"
#include "agent/agent_ops.h"
#include "tests/test.h"

typedef struct lab {
    char path[64];
    cx_arena arena;
    cx_run_store store;
    cx_run *run;
    cx_git *git;
    cx_sandbox *box;
    cx_run_test tests[4];
    cx_run_command_rules rules;
    cx_run_argv allow[2];
    cx_run_command_options judge;
    cx_run_trust trust;
    cx_run_tests_options options;
    cx_run_test_facts facts;
    unsigned judged, ran;
    cx_err err;
} lab;

static cx_status count_judged(void *arg, const cx_run_test *test,
                              const cx_run_command_verdict *verdict, cx_err *err)
{
    (void)test;
    (void)verdict;
    (void)err;
    ((lab *)arg)->judged++;
    return CX_SUCCESS;
}

static cx_status count_ran(void *arg, const cx_run_test *test, const cx_run_command_facts *facts,
                           cx_err *err)
{
    (void)test;
    (void)facts;
    (void)err;
    ((lab *)arg)->ran++;
    return CX_SUCCESS;
}

static bool apply(lab *l, const char *text)
{
    cx_json ops;
    cx_status status = cx_run_json_read(cx_str_z(text), 0, &l->arena, &ops, &l->err);
    cx_str folder = cx_arena_printf(&l->arena, "%s/repo", l->path);
    for (size_t i = 0; !cx_failed(status) && i < ops.count; i++)
        status = cx_agent_op_apply(folder.data, &ops.items[i], cx_alloc_default(), &l->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s", l->err.message);
    return !cx_failed(status);
}

static const char repository[] =
    "[[\"git\",\"init\",\"-q\",\"-b\",\"main\"],"
    "[\"write\",\"scripts/test.sh\",\"#!/bin/sh\\ncat a && test ! -e left && touch left\\n\"],"
    "[\"write\",\"scripts/bootstrap.sh\",\"#!/bin/sh\\nexit 5\\n\"],"
    "[\"write\",\"scripts/e2e.sh\",\"#!/bin/sh\\nexec sleep 600\\n\"],"
    "[\"write\",\"a\",\"one\\n\"],[\"chmod\",\"scripts/test.sh\",\"755\"],"
    "[\"chmod\",\"scripts/bootstrap.sh\",\"755\"],[\"chmod\",\"scripts/e2e.sh\",\"755\"],"
    "[\"git\",\"add\",\"-A\"],[\"git\",\"commit\",\"-qm\",\"base\"]]";

/* False when the test is to be skipped, or cannot be. */
static bool open_lab(lab *l)
{
    static const cx_str forbidden[] = {{"rm -rf", 6}};
    *l = (lab){.path = "/tmp/cx_tests_XXXXXX"};
    cx_arena_init(&l->arena, cx_alloc_default(), 0);
    if (mkdtemp(l->path) == NULL || access(CX_CORTEX_BIN, X_OK) != 0) {
        cx_test_skip("there is no cortex program for the stage");
        return false;
    }
    cx_sandbox_options box = {.program = CX_CORTEX_BIN};
    CHECK_STATUS(cx_sandbox_open(&box, &l->box, &l->err), &l->err);
    if (l->box == NULL || l->box->missing != 0) {
        cx_test_skip("this machine has no full sandbox");
        return false;
    }
    const char *repo = cx_arena_printf(&l->arena, "%s/repo", l->path).data;
    const char *root = cx_arena_printf(&l->arena, "%s/root", l->path).data;
    CHECK_STATUS(cx_path_make_folders(repo, &l->err), &l->err);
    if (!apply(l, repository))
        return false;
    CHECK_STATUS(cx_git_open(repo, NULL, cx_alloc_default(), &l->git, &l->err), &l->err);
    CHECK_STATUS(cx_run_store_open(&l->store, root, true, NULL, NULL, &l->err), &l->err);
    const cx_run_begin_options begin = {.store = &l->store, .task_id = CX_STR("task-one")};
    CHECK_STATUS(cx_run_begin(&begin, &l->run, &l->err), &l->err);
    if (l->git == NULL || l->run == NULL)
        return false;
    cx_oid head;
    char text[CX_OID_TEXT_SIZE];
    CHECK_STATUS(cx_git_resolve(l->git, CX_STR("HEAD"), &head, &l->err), &l->err);
    cx_oid_text(&head, text);
    const cx_str scripts[] = {CX_STR("scripts/"), CX_STR("cat")};
    for (size_t i = 0; i < 2; i++)
        CHECK_STATUS(cx_run_argv_make(&scripts[i], 1, &l->arena, &l->allow[i], &l->err), &l->err);
    l->rules = (cx_run_command_rules){true, l->allow, 2, forbidden, 1};
    l->judge = (cx_run_command_options){
        .rules = &l->rules, .network_policy = CX_STR("deny"), .trust = &l->trust};
    l->options = (cx_run_tests_options){
        .git = l->git,
        .runtime_root = root,
        .run_id = cx_run_id(l->run),
        .task_id = CX_STR("task-one"),
        .candidate = head,
        .baseline = cx_arena_copy_str(&l->arena, cx_str_z(text)),
        .tests = l->tests,
        .timeout_sec = 60,
        .judge = &l->judge,
        .box = l->box,
        .run = l->run,
    };
    return true;
}

static void close_lab(lab *l)
{
    cx_run_end(l->run);
    cx_git_close(l->git);
    cx_sandbox_close(l->box);
    CHECK_STATUS(cx_path_remove_tree(l->path, &l->err), &l->err);
    cx_arena_done(&l->arena);
}

static void run_tests(lab *l, size_t count)
{
    const cx_run_tests_host host = {l, count_judged, count_ran};
    l->options.host = &host;
    l->options.test_count = count;
    l->judged = l->ran = 0;
    l->facts = (cx_run_test_facts){0};
    CHECK_STATUS(cx_run_tests(&l->options, &l->arena, &l->facts, &l->err), &l->err);
    l->options.host = NULL;
}

static bool holds(lab *l, const char *path, const char *expected)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_run_file_read(l->run, cx_str_z(path), 1000, &text, &l->err), &l->err);
    bool same = cx_str_is(cx_buf_str(&text), expected);
    cx_buf_done(&text);
    return same;
}

CX_TEST(tests_gate_passes_when_all_that_must_pass_do)
{
    lab l;
    if (open_lab(&l)) {
        l.tests[0] = (cx_run_test){CX_STR("unit"), CX_STR("scripts/test.sh"), true, {0}};
        l.tests[1] = (cx_run_test){CX_STR("extra"), CX_STR("scripts/bootstrap.sh"), false, {0}};
        run_tests(&l, 2);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_PASS);
        CHECK_INT(l.facts.command_count, 2);
        CHECK_INT(l.facts.passed, 1);
        CHECK_INT(l.facts.failed, 1);
        CHECK_INT(l.judged, 2);
        CHECK_INT(l.ran, 2);
        if (l.facts.command_count == 2) {
            CHECK_INT(l.facts.commands[1].exit_code, 5);
            CHECK_STR(l.facts.commands[0].argv[0], "scripts/test.sh");
            CHECK_STR(l.facts.commands[0].stdout_ref.path, "tests/cmd_0.stdout.log");
            CHECK_INT(l.facts.commands[0].stdout_ref.size_bytes, 4);
        }
        CHECK(holds(&l, "tests/cmd_0.stdout.log", "one\n"));
        CHECK(holds(&l, "tests/stdout.log", "one\n"));
        CHECK(holds(&l, "tests/command.txt", "scripts/test.sh\nscripts/bootstrap.sh\n"));
        /* The next attempt has a checkout of its own, and keeps what this one left. */
        l.options.attempt = 1;
        run_tests(&l, 1);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_PASS);
        CHECK(holds(&l, "tests/attempt_0/command.txt", "scripts/test.sh\nscripts/bootstrap.sh\n"));
        CHECK(holds(&l, "tests/command.txt", "scripts/test.sh\n"));
        cx_facts facts;
        const char *left = cx_arena_printf(&l.arena, "%s/repo/left", l.path).data;
        CHECK_INT(cx_path_facts(left, false, &facts, &l.err).code, CX_E_NOT_FOUND);
    }
    close_lab(&l);
}

/* What the first command does to the checkout in which the second one passes. */
static void touches(const char *script, const char *expected)
{
    lab l;
    if (open_lab(&l)) {
        cx_oid head;
        cx_str op = cx_arena_printf(&l.arena,
                                    "[[\"write\",\"scripts/bootstrap.sh\",\"#!/bin/sh\\n%s\\n\"],"
                                    "[\"git\",\"commit\",\"-qam\",\"more\"]]",
                                    script);
        char text[CX_OID_TEXT_SIZE];
        CHECK(apply(&l, op.data));
        CHECK_STATUS(cx_git_resolve(l.git, CX_STR("HEAD"), &head, &l.err), &l.err);
        cx_oid_text(&head, text);
        l.options.candidate = head;
        l.options.baseline = cx_arena_copy_str(&l.arena, cx_str_z(text));
        l.tests[0] = (cx_run_test){CX_STR("boot"), CX_STR("scripts/bootstrap.sh"), false, {0}};
        l.tests[1] = (cx_run_test){CX_STR("unit"), CX_STR("scripts/test.sh"), true, {0}};
        run_tests(&l, 2);
        CHECK_INT(l.facts.status, expected == NULL ? CX_RUN_TESTS_PASS : CX_RUN_TESTS_FAIL);
        CHECK_INT(l.facts.command_count, expected == NULL ? 2 : 1);
        if (expected != NULL)
            CHECK_STR(l.facts.failure, expected);
        /* What the last one changes decides nothing. */
        l.tests[1] = l.tests[0];
        l.tests[0] = (cx_run_test){CX_STR("unit"), CX_STR("scripts/test.sh"), true, {0}};
        run_tests(&l, 2);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_PASS);
    }
    close_lab(&l);
}

CX_TEST(tests_gate_refuses_files_that_an_earlier_command_changed)
{
    touches("echo two > a", "boot changed a, which later tests judge");
    touches("echo one > b; mv b a; touch -d 2001-01-01 a", NULL);
    touches("chmod 600 a", "boot changed a, which later tests judge");
    touches("rm a; mkfifo a", "boot changed a, which later tests judge");
    touches("rm a; ln -s /etc/hostname a", "boot changed a, which later tests judge");
    touches("rm -r scripts", "boot changed scripts, which later tests judge");
    touches("rm .git; git init -q", "boot changed .git, which later tests judge");
    touches("echo x > .git", "boot changed .git, which later tests judge");
    touches("mkdir out; echo built > out/x; mkfifo out/f", NULL);
}

CX_TEST(tests_gate_stops_at_the_first_that_must_pass_and_does_not)
{
    lab l;
    if (open_lab(&l)) {
        l.tests[0] = (cx_run_test){CX_STR("boot"), CX_STR("scripts/bootstrap.sh"), true, {0}};
        l.tests[1] = (cx_run_test){CX_STR("unit"), CX_STR("scripts/test.sh"), true, {0}};
        run_tests(&l, 2);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_FAIL);
        CHECK_STR(l.facts.failure, "boot exit 5");
        CHECK_INT(l.facts.skipped, 1);
        CHECK_INT(l.ran, 1);
        /* Nothing that must pass, nothing passed. */
        l.tests[0].must_pass = false;
        run_tests(&l, 1);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_ERROR);
        run_tests(&l, 0);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_ERROR);
    }
    close_lab(&l);
}

CX_TEST(tests_gate_ends_a_command_that_takes_too_long)
{
    lab l;
    if (open_lab(&l)) {
        l.tests[0] = (cx_run_test){CX_STR("slow"), CX_STR("scripts/e2e.sh"), true, {0}};
        l.options.timeout_sec = 1;
        l.options.run = NULL; /* without a bundle: only hashed */
        run_tests(&l, 1);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_FAIL);
        CHECK_STR(l.facts.failure, "slow exit 124");
    }
    close_lab(&l);
}

CX_TEST(tests_gate_runs_nothing_that_the_command_gate_refuses)
{
    lab l;
    if (open_lab(&l)) {
        l.tests[0] = (cx_run_test){CX_STR("bad"), CX_STR("rm -rf /"), true, {0}};
        l.tests[1] = (cx_run_test){CX_STR("unit"), CX_STR("scripts/test.sh"), true, {0}};
        run_tests(&l, 2);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_ERROR);
        CHECK_STR(l.facts.failure, "C07 rm -rf /");
        CHECK_INT(l.judged, 1);
        CHECK_INT(l.ran, 0);
        CHECK_INT(l.facts.command_count, 0);
        /* A candidate that changed the script is judged by the baseline's. */
        CHECK(apply(&l, "[[\"write\",\"scripts/test.sh\",\"#!/bin/sh\\nexit 0\\n\"],"
                        "[\"git\",\"commit\",\"-qam\",\"cheat\"]]"));
        CHECK_STATUS(cx_git_resolve(l.git, CX_STR("HEAD"), &l.options.candidate, &l.err), &l.err);
        l.tests[0] = l.tests[1];
        run_tests(&l, 1);
        CHECK_INT(l.facts.status, CX_RUN_TESTS_ERROR);
        CHECK_STR(l.facts.failure, "C14 scripts/test.sh");
    }
    close_lab(&l);
}
