/*
 * test_proc.c - other programs: what they are given, what they give back, and how they are stopped.
 */
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

typedef struct outcome {
    cx_status status;
    cx_proc_result result;
    cx_buf out, errout;
    cx_err err;
} outcome;

static void run(outcome *o, const cx_proc_options *options)
{
    cx_buf_init(&o->out, cx_alloc_default());
    cx_buf_init(&o->errout, cx_alloc_default());
    o->result = (cx_proc_result){.exit_code = -99};
    o->status = cx_proc_run(options, &o->out, &o->errout, &o->result, &o->err);
}

static void run_shell(outcome *o, const char *script, cx_proc_options options)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    options.argv = argv;
    run(o, &options);
}

static void drop(outcome *o)
{
    cx_buf_done(&o->out);
    cx_buf_done(&o->errout);
}

static bool is_alive(const cx_buf *out)
{
    char text[32] = {0};
    memcpy(text, out->data, out->size < 31 ? out->size : 31);
    long pid = strtol(text, NULL, 10);
    for (int i = 0; i < 100; i++) { /* a killed process needs a moment to be gone */
        if (pid <= 1 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
            return false;
        char path[64], state[256] = {0};
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) { /* perhaps no process reaps it: a zombie is dead */
            ssize_t got = read(file, state, sizeof state - 1);
            close(file);
            const char *after_name = got > 0 ? strrchr(state, ')') : NULL;
            if (after_name != NULL && after_name[1] == ' ' &&
                (after_name[2] == 'Z' || after_name[2] == 'X'))
                return false;
        }
        (void)usleep(20000);
    }
    return true;
}

CX_TEST(proc_collects_both_outputs_and_the_exit_code)
{
    outcome o;
    run_shell(&o, "echo out; echo err >&2; exit 7", (cx_proc_options){0});
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "out\n");
    CHECK_STR(cx_buf_str(&o.errout), "err\n");
    CHECK_INT(o.result.exit_code, 7);
    CHECK_INT(o.result.signal, 0);
    CHECK(!o.result.timed_out);
    CHECK(o.result.duration_ns > 0);
    drop(&o);
}

CX_TEST(proc_outputs_may_be_thrown_away)
{
    const char *const argv[] = {"/bin/sh", "-c", "seq 1 100000; seq 1 100000 >&2", NULL};
    cx_proc_options options = {.argv = argv};
    cx_proc_result result;
    cx_err err;
    options.inherit_env = true;
    CHECK_STATUS(cx_proc_run(&options, NULL, NULL, &result, &err), &err);
    CHECK_INT(result.exit_code, 0);
}

CX_TEST(proc_program_that_cannot_start_is_an_error)
{
    static const struct {
        const char *path;
        cx_code code;
    } cases[] = {{"/nonexistent/program", CX_E_NOT_FOUND},
                 {"no-such-program-anywhere", CX_E_NOT_FOUND},
                 {"/etc/passwd", CX_E_DENIED},
                 {"/", CX_E_DENIED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const argv[] = {cases[i].path, NULL};
        outcome o;
        run(&o, &(cx_proc_options){.argv = argv});
        CHECK_INT(o.status.code, cases[i].code);
        CHECK_INT(o.result.exit_code, -99); /* outputs are written only on success */
        drop(&o);
    }
    outcome o;
    run_shell(&o, "exit 127", (cx_proc_options){0}); /* a program may end like that: a result */
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.result.exit_code, 127);
    drop(&o);
}

CX_TEST(proc_input_is_fed_to_its_end)
{
    outcome o;
    cx_buf input;
    cx_buf_init(&input, cx_alloc_default());
    for (int i = 0; i < 200000; i++)
        cx_buf_printf(&input, "%05d", i % 99999);
    run_shell(&o, "cat", (cx_proc_options){.input = cx_buf_bytes(&input), .inherit_env = true});
    CHECK_STATUS(o.status, &o.err);
    CHECK(cx_str_eq(cx_buf_str(&o.out), cx_buf_str(&input))); /* more than any pipe holds */
    drop(&o);
    run_shell(&o, "exit 3", (cx_proc_options){.input = cx_buf_bytes(&input)});
    CHECK_STATUS(o.status, &o.err); /* not reading it is no error */
    CHECK_INT(o.result.exit_code, 3);
    drop(&o);
    run_shell(&o, "read x || echo end", (cx_proc_options){0});
    CHECK_STR(cx_buf_str(&o.out), "end\n");
    drop(&o);
    cx_buf_done(&input);
}

CX_TEST(proc_child_that_closed_its_outputs_still_gets_its_input)
{
    outcome o;
    cx_buf input;
    cx_buf_init(&input, cx_alloc_default());
    for (int i = 0; i < 100000; i++)
        cx_buf_add_z(&input, "0123456789");
    run_shell(
        &o, "exec >&- 2>&-; test \"$(cat | wc -c)\" -eq 1000000",
        (cx_proc_options){.input = cx_buf_bytes(&input), .inherit_env = true, .timeout_ms = 20000});
    CHECK_STATUS(o.status, &o.err);
    CHECK(!o.result.timed_out);
    CHECK_INT(o.result.exit_code, 0);
    drop(&o);
    cx_buf_done(&input);
}

CX_TEST(proc_environment_is_what_was_asked_for)
{
    outcome o;
    const char *const argv[] = {"/usr/bin/env", NULL};
    CHECK_INT(setenv("CORTEX_TEST_VARIABLE", "seen", 1), 0);
    run(&o, &(cx_proc_options){.argv = argv});
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.out.size, 0);
    drop(&o);
    const char *const given[] = {"A=1", "B=two words", NULL};
    run(&o, &(cx_proc_options){.argv = argv, .envp = given});
    CHECK_STR(cx_buf_str(&o.out), "A=1\nB=two words\n");
    drop(&o);
    run(&o, &(cx_proc_options){.argv = argv, .inherit_env = true});
    CHECK(strstr(cx_buf_z(&o.out), "CORTEX_TEST_VARIABLE=seen") != NULL);
    drop(&o);
}

CX_TEST(proc_runs_where_it_is_told)
{
    outcome o;
    run_shell(&o, "pwd", (cx_proc_options){.cwd = "/usr"});
    CHECK_STR(cx_buf_str(&o.out), "/usr\n");
    drop(&o);
    run_shell(&o, "pwd", (cx_proc_options){.cwd = "/nonexistent"});
    CHECK_INT(o.status.code, CX_E_NOT_FOUND);
    drop(&o);
}

CX_TEST(proc_death_by_signal_is_told)
{
    outcome o;
    run_shell(&o, "kill -9 $$", (cx_proc_options){0});
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.result.exit_code, -1);
    CHECK_INT(o.result.signal, SIGKILL);
    CHECK(!o.result.timed_out);
    drop(&o);
}

CX_TEST(proc_child_has_plain_signals)
{
    outcome o;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &blocked, &before);
    run_shell(&o, "kill -TERM $$; echo survived", (cx_proc_options){.timeout_ms = 20000});
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    CHECK_INT(o.result.signal, SIGTERM); /* our mask is not the child's */
    drop(&o);
    run_shell(&o, "kill -PIPE $$; echo survived", (cx_proc_options){.timeout_ms = 20000});
    CHECK_INT(o.result.signal, SIGPIPE); /* nor that we ignore SIGPIPE meanwhile */
    drop(&o);
    struct sigaction now;
    (void)sigaction(SIGPIPE, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL); /* and afterwards all is as it was */
}

CX_TEST(proc_timeout_kills_the_child)
{
    outcome o;
    run_shell(&o, "echo $$; exec sleep 60",
              (cx_proc_options){.timeout_ms = 300, .inherit_env = true});
    CHECK_STATUS(o.status, &o.err);
    CHECK(o.result.timed_out);
    CHECK_INT(o.result.signal, SIGTERM);
    CHECK(o.result.duration_ns >= 300000000u && o.result.duration_ns < 20000000000u);
    CHECK(!is_alive(&o.out));
    drop(&o);
}

CX_TEST(proc_timeout_kills_grandchildren_too)
{
    outcome o;
    run_shell(&o, "sleep 60 & echo $!; wait",
              (cx_proc_options){.timeout_ms = 300, .inherit_env = true});
    CHECK_STATUS(o.status, &o.err);
    CHECK(o.result.timed_out);
    CHECK(o.out.size > 1);
    CHECK(!is_alive(&o.out));
    drop(&o);
}

/* xdg-open starts the browser and ends. */
CX_TEST(proc_leaves_alone_what_a_program_started_and_left_running)
{
    outcome o;
    run_shell(&o, "sleep 60 >/dev/null 2>&1 & echo $!", (cx_proc_options){.inherit_env = true});
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.result.exit_code, 0);
    CHECK(is_alive(&o.out));
    cx_buf_add_byte(&o.out, 0);
    (void)kill((pid_t)strtol((const char *)o.out.data, NULL, 10), SIGKILL);
    drop(&o);
}

CX_TEST(proc_timeout_also_holds_when_outputs_are_closed)
{
    outcome o;
    run_shell(&o, "exec >&- 2>&-; exec sleep 60",
              (cx_proc_options){.timeout_ms = 300, .inherit_env = true});
    CHECK_STATUS(o.status, &o.err);
    CHECK(o.result.timed_out);
    CHECK_INT(o.result.signal, SIGTERM);
    drop(&o);
}

CX_TEST(proc_timeout_that_never_comes_is_no_timeout)
{
    outcome o;
    run_shell(&o, "sleep 0.2; echo done",
              (cx_proc_options){.timeout_ms = UINT64_MAX, .inherit_env = true});
    CHECK_STATUS(o.status, &o.err);
    CHECK(!o.result.timed_out);
    CHECK_STR(cx_buf_str(&o.out), "done\n");
    drop(&o);
}

CX_TEST(proc_output_limit_is_an_error_and_ends_the_child)
{
    static const char *const scripts[] = {"echo $$; yes", "echo $$; yes >&2"};
    for (int i = 0; i < 2; i++) {
        outcome o;
        run_shell(&o, scripts[i],
                  (cx_proc_options){.output_limit_bytes = 100000, .inherit_env = true});
        CHECK_INT(o.status.code, CX_E_LIMIT);
        CHECK(o.out.size <= 100000 && o.errout.size <= 100000);
        CHECK(!is_alive(&o.out));
        drop(&o);
    }
    outcome o;
    run_shell(&o, "head -c 1000 /dev/zero",
              (cx_proc_options){.output_limit_bytes = 1000, .inherit_env = true});
    CHECK_STATUS(o.status, &o.err); /* the limit itself is allowed */
    CHECK_INT(o.out.size, 1000);
    drop(&o);
}

CX_TEST(proc_child_has_no_descriptors_of_ours)
{
    outcome o;
    int held = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    run_shell(&o, "ls /proc/self/fd | wc -l", (cx_proc_options){.inherit_env = true});
    CHECK_STR(cx_buf_str(&o.out), "4\n"); /* 0, 1, 2, and the folder being listed */
    close(held);
    drop(&o);
}
