/*
 * test_spawn.c - programs under control: what they get, what they may write, how they end.
 */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/test.h"

typedef struct outcome {
    cx_status status;
    cx_spawn_result result;
    cx_buf out, errout;
    cx_err err;
} outcome;

static void begin(outcome *o, cx_spawn_options *how)
{
    *o = (outcome){.result = {.exit_code = -99}};
    cx_buf_init(&o->out, cx_alloc_default());
    cx_buf_init(&o->errout, cx_alloc_default());
    *how = CX_SPAWN_OPTIONS_INIT;
    how->out = cx_spawn_to_buf(&o->out, 0);
    how->errout = cx_spawn_to_buf(&o->errout, 0);
}

static void run_shell(outcome *o, cx_spawn_options *how, const char *script)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    how->argv = argv;
    if (how->envp == NULL)
        how->envp = envp;
    o->status = cx_spawn_run(how, &o->result, &o->err);
}

static void drop(outcome *o)
{
    cx_buf_done(&o->out);
    cx_buf_done(&o->errout);
}

/* Whether the process whose number `text` starts with is gone, after a moment at the latest. */
static bool is_gone(cx_str text)
{
    char digits[32] = {0};
    memcpy(digits, text.data, text.size < 31 ? text.size : 31);
    long pid = strtol(digits, NULL, 10);
    for (int i = 0; pid > 1 && i < 500; i++) {
        char path[64], state[256] = {0};
        if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            return true;
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? 0 : read(file, state, sizeof state - 1);
        if (file >= 0)
            close(file);
        const char *after_name = got > 0 ? strrchr(state, ')') : NULL;
        if (after_name != NULL && (after_name[2] == 'Z' || after_name[2] == 'X'))
            return true; /* perhaps no process reaps it */
        (void)usleep(20000);
    }
    return false;
}

CX_TEST(spawn_collects_outputs_and_the_exit_code)
{
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    run_shell(&o, &how, "echo out; echo err >&2; exit 7");
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "out\n");
    CHECK_STR(cx_buf_str(&o.errout), "err\n");
    CHECK_INT(o.result.exit_code, 7);
    CHECK_INT(cx_spawn_exit(&o.result), 7);
    CHECK_INT(o.result.out.total_bytes, 4);
    CHECK(!o.result.out.truncated && !o.result.timed_out && !o.result.killed);
    drop(&o);
}

CX_TEST(spawn_says_which_signal_ended_it)
{
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    run_shell(&o, &how, "kill -USR1 $$");
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.result.signal, SIGUSR1);
    CHECK_INT(o.result.exit_code, -1);
    CHECK_INT(cx_spawn_exit(&o.result), 128 + SIGUSR1);
    drop(&o);
}

CX_TEST(spawn_gives_exactly_this_environment)
{
    static const char *const envp[] = {"ONLY=this", NULL};
    static const char *const argv[] = {"/usr/bin/env", NULL};
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    (void)setenv("SPAWN_SECRET", "s", 1);
    how.argv = argv;
    how.envp = envp;
    CHECK_STATUS(cx_spawn_run(&how, &o.result, &o.err), &o.err);
    CHECK_STR(cx_buf_str(&o.out), "ONLY=this\n");
    cx_buf_clear(&o.out);
    how.envp = NULL;
    CHECK_STATUS(cx_spawn_run(&how, &o.result, &o.err), &o.err);
    CHECK_STR(cx_buf_str(&o.out), "");
    (void)unsetenv("SPAWN_SECRET");
    drop(&o);
}

CX_TEST(spawn_joins_the_streams_and_changes_the_folder)
{
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.errout = (cx_spawn_output){.to = CX_SPAWN_OUT_JOIN};
    how.cwd = "/";
    run_shell(&o, &how, "echo 1; echo 2 >&2; pwd; umask");
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "1\n2\n/\n0022\n");
    drop(&o);
}

CX_TEST(spawn_feeds_input_with_no_reader_or_many)
{
    size_t size = 3 << 20;
    uint8_t *data = malloc(size);
    REQUIRE(data != NULL);
    memset(data, 'x', size);
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.in = CX_SPAWN_IN_BYTES;
    how.input = (cx_bytes){data, size};
    run_shell(&o, &how, "exit 3");
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.result.exit_code, 3);
    run_shell(&o, &how, "cat; cat >&2");
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.out.size, size);
    CHECK_INT(o.errout.size, 0);
    how.input = (cx_bytes){data, 0};
    run_shell(&o, &how, "wc -c >&2");
    CHECK_STR(cx_buf_str(&o.errout), "0\n");
    free(data);
    drop(&o);
}

CX_TEST(spawn_cuts_a_file_at_its_cap_and_says_so)
{
    char path[] = "/tmp/cx_spawn_XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.out = cx_spawn_to_file(file, 100000);
    run_shell(&o, &how, "yes | head -c 5000000; echo end >&2");
    CHECK_STATUS(o.status, &o.err);
    struct stat info = {0};
    CHECK(fstat(file, &info) == 0);
    CHECK_INT(info.st_size, 100000);
    CHECK(o.result.out.truncated);
    CHECK_INT(o.result.out.total_bytes, 5000000);
    CHECK_INT(o.result.out.kept_bytes, 100000);
    CHECK_INT(o.result.exit_code, 0);
    CHECK_STR(cx_buf_str(&o.errout), "end\n");
    close(file);
    (void)unlink(path);
    drop(&o);
}

CX_TEST(spawn_ends_a_program_that_writes_more_than_a_buffer_takes)
{
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.out = cx_spawn_to_buf(&o.out, 1000);
    run_shell(&o, &how, "exec yes");
    CHECK_INT(o.status.code, CX_E_LIMIT);
    CHECK_INT(o.out.size, 1000);
    drop(&o);
}

CX_TEST(spawn_kills_the_whole_group_when_the_time_is_up)
{
    outcome o;
    cx_spawn_options how;
    /* Longer until the shell came to its first line: machines may be busy. */
    for (uint64_t timeout_ms = 300; timeout_ms < 100000; timeout_ms *= 4) {
        begin(&o, &how);
        how.timeout_ms = timeout_ms;
        run_shell(&o, &how, "sleep 600 & echo $!; exec sleep 600");
        CHECK_STATUS(o.status, &o.err);
        CHECK(o.result.timed_out);
        CHECK_INT(cx_spawn_exit(&o.result), 124);
        bool started = o.out.size != 0;
        if (started)
            CHECK(is_gone(cx_buf_str(&o.out)));
        drop(&o);
        if (started)
            return;
    }
    cx_test_fail(__FILE__, __LINE__, "a shell did not start in time");
}

CX_TEST(spawn_waits_for_the_program_not_for_those_who_hold_its_pipes)
{
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    run_shell(&o, &how, "sleep 600 & echo $!");
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(o.result.exit_code, 0);
    CHECK(is_gone(cx_buf_str(&o.out)));
    drop(&o);
}

static void cancel_soon(void *arg)
{
    (void)usleep(100000);
    atomic_store((atomic_bool *)arg, true);
}

CX_TEST(spawn_can_be_cancelled)
{
    atomic_bool cancel = false;
    cx_thread thread;
    REQUIRE(cx_thread_start(&thread, cancel_soon, &cancel));
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.cancel = &cancel;
    run_shell(&o, &how, "exec sleep 600");
    CHECK_STATUS(o.status, &o.err);
    CHECK(o.result.cancelled && !o.result.timed_out);
    CHECK_INT(o.result.signal, SIGTERM);
    cx_thread_join(&thread);
    drop(&o);
}

static const char *const list_descriptors[] = {"/bin/ls", "-1", "/proc/self/fd", NULL};

CX_TEST(spawn_hands_over_only_the_descriptors_listed)
{
    int leak = open("/dev/null", O_RDONLY);
    int given = open("/etc/passwd", O_RDONLY);
    REQUIRE(leak >= 0 && given >= 0);
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    /* Numbers that cross: the second source stands where the first wants to be. */
    const cx_spawn_inherit keep[] = {{leak, given}, {given, leak}, {given, 40}};
    how.keep = keep;
    how.keep_count = 3;
    char script[200];
    (void)snprintf(script, sizeof script, "readlink /proc/$$/fd/%d /proc/$$/fd/%d /proc/$$/fd/40",
                   given, leak);
    run_shell(&o, &how, script);
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "/dev/null\n/etc/passwd\n/etc/passwd\n");
    how.keep_count = 0;
    cx_buf_clear(&o.out);
    how.argv = list_descriptors;
    CHECK_STATUS(cx_spawn_run(&how, &o.result, &o.err), &o.err);
    CHECK_STR(cx_buf_str(&o.out), "0\n1\n2\n3\n"); /* 3: the folder being listed */
    close(leak);
    close(given);
    drop(&o);
}

CX_TEST(spawn_gives_a_session_and_default_signals)
{
    struct sigaction ignore, before;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, &before);
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    run_shell(&o, &how,
              "read -r pid comm state ppid pgrp session rest < /proc/self/stat; "
              "test \"$pgrp\" = \"$$\" && test \"$session\" = \"$$\" && echo own; "
              /* By the shell itself: while it starts a program, it blocks signals. */
              "while read -r name mask; do case $name in SigBlk:|SigIgn:) echo $name $mask;; esac; "
              "done < /proc/self/status");
    (void)sigaction(SIGPIPE, &before, NULL);
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "own\nSigBlk: 0000000000000000\nSigIgn: 0000000000000000\n");
    drop(&o);
}

CX_TEST(spawn_runs_an_opened_program_and_a_script_by_its_path)
{
    static const char *const argv[] = {"name", "a b", NULL};
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.argv = argv;
    how.path = "/nowhere";
    how.executable = open("/bin/echo", O_PATH | O_CLOEXEC);
    o.status = cx_spawn_run(&how, &o.result, &o.err);
    if (o.status.code == CX_E_UNSUPPORTED) { /* refused, rather than run by a path */
        CHECK_INT(o.out.size, 0);
        cx_test_skip("this system executes no open files");
        close(how.executable);
        drop(&o);
        return;
    }
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "a b\n");
    close(how.executable);

    char path[] = "/tmp/cx_spawn_XXXXXX";
    int file = mkstemp(path);
    static const char text[] = "#!/bin/sh\necho \"$0\"\n";
    REQUIRE(file >= 0 && write(file, text, sizeof text - 1) > 0 && fchmod(file, 0700) == 0);
    close(file);
    how.path = path;
    how.executable = open(path, O_PATH | O_CLOEXEC);
    cx_buf_clear(&o.out);
    CHECK_STATUS(cx_spawn_run(&how, &o.result, &o.err), &o.err);
    CHECK_INT(o.out.size, strlen(path) + 1);
    close(how.executable);
    (void)unlink(path);
    drop(&o);
}

CX_TEST(spawn_says_why_a_program_cannot_be_started)
{
    static const char *const missing[] = {"/nowhere/at-all", NULL};
    static const char *const folder[] = {"/", NULL};
    static const char *const searched[] = {"ls", NULL};
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    how.argv = missing;
    CHECK_INT(cx_spawn_run(&how, &o.result, &o.err).code, CX_E_NOT_FOUND);
    CHECK(strstr(o.err.message, "/nowhere/at-all") != NULL);
    how.argv = folder;
    CHECK_INT(cx_spawn_run(&how, &o.result, &o.err).code, CX_E_DENIED);
    how.argv = searched;
    CHECK_INT(cx_spawn_run(&how, &o.result, &o.err).code, CX_E_USAGE);
    static const char *const fine[] = {"/bin/true", NULL};
    how.argv = fine;
    how.cwd = "/nowhere";
    CHECK_INT(cx_spawn_run(&how, &o.result, &o.err).code, CX_E_NOT_FOUND);
    drop(&o);
}

CX_TEST(spawn_sets_limits)
{
    outcome o;
    cx_spawn_options how;
    begin(&o, &how);
    cx_spawn_limits limits = {.open_files = 20, .file_bytes = 4096, .cpu_seconds = 9};
    how.limits = &limits;
    run_shell(&o, &how, "ulimit -n; ulimit -t; ulimit -c");
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "20\n9\n0\n");
    drop(&o);
}

/* --- talking ---------------------------------------------------------------------------------- */

static bool open_shell(cx_spawn_child **out, const char *script, uint64_t timeout_ms, cx_err *err)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    how.argv = argv;
    how.envp = envp;
    how.in = CX_SPAWN_IN_PIPE;
    how.out = (cx_spawn_output){.to = CX_SPAWN_OUT_LINES};
    how.timeout_ms = timeout_ms;
    how.grace_ms = 200;
    return !cx_failed(cx_spawn_open(&how, out, err));
}

CX_TEST(spawn_talks_line_by_line)
{
    cx_spawn_child *child = NULL;
    cx_spawn_result result;
    cx_err err;
    cx_str line;
    bool end;
    REQUIRE(open_shell(&child, "while read -r a; do echo \"<$a>\"; done; printf last", 0, &err));
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(cx_spawn_write(child, cx_str_bytes(CX_STR("one\ntwo\n")), 60000, &err), &err);
        CHECK_STATUS(cx_spawn_read_line(child, 100, 60000, &line, &end, &err), &err);
        CHECK_STR(line, "<one>");
        CHECK_STATUS(cx_spawn_read_line(child, 100, 60000, &line, &end, &err), &err);
        CHECK_STR(line, "<two>");
    }
    cx_spawn_end_input(child);
    CHECK_STATUS(cx_spawn_read_line(child, 100, 60000, &line, &end, &err), &err);
    CHECK_STR(line, "last");
    CHECK(!end);
    CHECK_STATUS(cx_spawn_read_line(child, 100, 60000, &line, &end, &err), &err);
    CHECK(end);
    CHECK_STATUS(cx_spawn_close(child, 60000, &result, &err), &err);
    CHECK_INT(result.exit_code, 0);
}

CX_TEST(spawn_writes_more_than_both_pipes_hold)
{
    size_t size = 1 << 20;
    char *data = malloc(size);
    REQUIRE(data != NULL);
    memset(data, 'y', size);
    data[size - 1] = '\n';
    cx_spawn_child *child = NULL;
    cx_err err;
    cx_str line;
    bool end;
    REQUIRE(open_shell(&child, "exec cat", 0, &err));
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(cx_spawn_write(child, (cx_bytes){(uint8_t *)data, size}, 60000, &err), &err);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(cx_spawn_read_line(child, size, 60000, &line, &end, &err), &err);
        CHECK_INT(line.size, size - 1);
    }
    CHECK_STATUS(cx_spawn_close(child, 60000, NULL, &err), &err);
    free(data);
}

CX_TEST(spawn_bounds_waiting_and_lines)
{
    cx_spawn_child *child = NULL;
    cx_spawn_result result;
    cx_err err;
    cx_str line;
    bool end;
    REQUIRE(open_shell(&child, "read -r a; head -c 5000 /dev/zero; exec sleep 600", 0, &err));
    CHECK_INT(cx_spawn_read_line(child, 100, 30, &line, &end, &err).code, CX_E_TIMEOUT);
    CHECK_STATUS(cx_spawn_write(child, cx_str_bytes(CX_STR("go\n")), 60000, &err), &err);
    CHECK_INT(cx_spawn_read_line(child, 100, 60000, &line, &end, &err).code, CX_E_LIMIT);
    CHECK_STATUS(cx_spawn_close(child, 0, &result, &err), &err);
    CHECK_INT(result.signal, SIGTERM);
    CHECK(!result.timed_out);

    REQUIRE(open_shell(&child, "while :; do sleep 1; done", 100, &err));
    CHECK_INT(cx_spawn_read_line(child, 100, 60000, &line, &end, &err).code, CX_E_TIMEOUT);
    CHECK_STATUS(cx_spawn_close(child, 0, &result, &err), &err);
    CHECK(result.timed_out);
}

CX_TEST(spawn_kills_what_ignores_the_first_signal)
{
    cx_spawn_child *child = NULL;
    cx_spawn_result result;
    cx_err err;
    cx_str line;
    bool end;
    REQUIRE(open_shell(&child, "trap '' TERM; echo $$; while :; do sleep 1; done", 0, &err));
    CHECK_STATUS(cx_spawn_read_line(child, 100, 60000, &line, &end, &err), &err);
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%.*s", (int)(line.size < 31 ? line.size : 31), line.data);
    CHECK_STATUS(cx_spawn_close(child, 0, &result, &err), &err);
    CHECK(result.killed && !result.timed_out);
    CHECK_INT(result.signal, SIGKILL);
    CHECK(is_gone(cx_str_z(pid)));
}

CX_TEST(spawn_waits_for_a_program_that_ends_others)
{
    outcome o;
    cx_spawn_options how;
    int control[2];
    CHECK(pipe(control) == 0);
    const cx_spawn_inherit keep = {control[0], 5};
    begin(&o, &how);
    how.keep = &keep;
    how.keep_count = 1;
    how.term_file = control[1];
    how.timeout_ms = 100;
    how.grace_ms = 100;
    run_shell(&o, &how,
              "one() { dd bs=1 count=1 <&5 2>/dev/null; }; a=$(one); b=$(one); sleep 0.5; "
              "echo \"$a$b\"; exit 7");
    CHECK_STATUS(o.status, &o.err);
    CHECK_STR(cx_buf_str(&o.out), "tk\n");
    CHECK(o.result.timed_out && o.result.killed && !o.result.lost);
    CHECK_INT(o.result.exit_code, 7);
    drop(&o);
    (void)close(control[0]);
    (void)close(control[1]);
}

CX_TEST(spawn_says_when_there_is_no_reader)
{
    cx_spawn_child *child = NULL;
    cx_err err;
    cx_str line;
    bool end;
    REQUIRE(open_shell(&child, "exec <&-; echo closed; exec sleep 600", 0, &err));
    CHECK_STATUS(cx_spawn_read_line(child, 100, 60000, &line, &end, &err), &err);
    /* Without the help of an ignored SIGPIPE. */
    struct sigaction plain, before;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    (void)sigaction(SIGPIPE, &plain, &before);
    CHECK_INT(cx_spawn_write(child, cx_str_bytes(CX_STR("x")), 60000, &err).code, CX_E_IO);
    (void)sigaction(SIGPIPE, &before, NULL);
    CHECK_STATUS(cx_spawn_close(child, 0, NULL, &err), &err);
    CHECK_STATUS(cx_spawn_close(NULL, 0, NULL, &err), &err);
}

static void spawn_many(void *arg, unsigned index)
{
    atomic_uint *good = arg;
    for (unsigned i = 0; i < 20; i++) {
        outcome o;
        cx_spawn_options how;
        char script[64], expected[64];
        (void)snprintf(script, sizeof script, "echo %u %u; exec ls -1 /proc/self/fd", index, i);
        (void)snprintf(expected, sizeof expected, "%u %u\n0\n1\n2\n3\n", index, i);
        begin(&o, &how);
        run_shell(&o, &how, script);
        if (!cx_failed(o.status) && cx_str_is(cx_buf_str(&o.out), expected))
            atomic_fetch_add(good, 1);
        drop(&o);
    }
}

CX_TEST(spawn_from_many_threads_at_once)
{
    atomic_uint good = 0;
    cx_thread_team(4, spawn_many, &good);
    CHECK(atomic_load(&good) >= 20); /* threads that could not be started do nothing */
    CHECK_INT(atomic_load(&good) % 20, 0);
}
