/*
 * test_sandbox.c - programs in a sandbox: what they see, what they can do, what is said of it.
 *
 * The escape attempts of real programs are in tests/cli/test_sandbox.py.  What needs a layer that
 * this machine cannot give is skipped, and says which.
 */
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/folder.h"
#include "tests/test.h"

typedef struct room {
    cx_sandbox *box;
    char worktree[64];
    cx_sandbox_spec spec;
    cx_sandbox_result result;
    cx_buf out, errout;
    cx_err err;
} room;

/* False when the test is to be skipped. */
static bool open_room(room *r, const char *bwrap)
{
    *r = (room){.worktree = "/tmp/cx_sandbox_XXXXXX", .spec = CX_SANDBOX_SPEC_INIT};
    cx_buf_init(&r->out, cx_alloc_default());
    cx_buf_init(&r->errout, cx_alloc_default());
    if (access(CX_CORTEX_BIN, X_OK) != 0 || mkdtemp(r->worktree) == NULL) {
        cx_test_skip("there is no cortex program for the stage");
        return false;
    }
    cx_sandbox_options options = {.program = CX_CORTEX_BIN, .bwrap = bwrap};
    CHECK_STATUS(cx_sandbox_open(&options, &r->box, &r->err), &r->err);
    r->spec.worktree = r->worktree;
    r->spec.out = cx_spawn_to_buf(&r->out, 1 << 20);
    r->spec.errout = cx_spawn_to_buf(&r->errout, 1 << 20);
    if (r->box != NULL && (r->box->missing == 0 || bwrap != NULL))
        return true;
    char why[300] = "no sandbox";
    for (size_t i = 0; r->box != NULL && i < CX_SANDBOX_LAYER_COUNT; i++)
        if ((r->box->missing & 1u << i) != 0)
            (void)snprintf(why, sizeof why, "no layer %s: %s",
                           cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)), r->box->reason[i]);
    printf("%s\n", why);
    cx_test_skip("this machine has no full sandbox");
    return false;
}

static void close_room(room *r)
{
    cx_sandbox_close(r->box);
    CHECK_STATUS(cx_path_remove_tree(r->worktree, &r->err), &r->err);
    cx_buf_done(&r->out);
    cx_buf_done(&r->errout);
}

static void shell(room *r, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    cx_buf_clear(&r->out);
    cx_buf_clear(&r->errout);
    r->spec.argv = argv;
    r->result = (cx_sandbox_result){.exit_code = -99};
    CHECK_STATUS(cx_sandbox_run(r->box, &r->spec, &r->result, &r->err), &r->err);
    if (r->result.exit_code == -99)
        printf("%.*s\n", (int)r->errout.size, (const char *)r->errout.data);
}

CX_TEST(sandbox_runs_a_program_in_a_worktree_it_can_write)
{
    room r;
    if (open_room(&r, NULL)) {
        shell(&r, "pwd; echo made > file; cat file; exit 7");
        CHECK_INT(r.result.exit_code, 7);
        char expected[100];
        (void)snprintf(expected, sizeof expected, "%s\nmade\n", r.worktree);
        CHECK_STR(cx_buf_str(&r.out), expected);
        CHECK((r.result.layers & CX_SANDBOX_REQUIRED) == CX_SANDBOX_REQUIRED);
        r.spec.read_only = true;
        shell(&r, "cat file; echo more >> file");
        CHECK(r.result.exit_code != 0);
        CHECK_STR(cx_buf_str(&r.out), "made\n");
    }
    close_room(&r);
}

CX_TEST(sandbox_gives_the_environment_of_r4)
{
    room r;
    if (open_room(&r, NULL)) {
        static const char *const more[] = {"EXTRA=1", "HOME=/evil", NULL};
        r.spec.env = more;
        r.spec.run_id = "run_x";
        r.spec.task_id = "task_x";
        shell(&r, "exec env | grep -v ^PWD= | sort");
        CHECK_STR(cx_buf_str(&r.out),
                  "CORTEX_RUN_ID=run_x\nCORTEX_TASK_ID=task_x\nEXTRA=1\nHOME=/home/agent\n"
                  "LANG=C.UTF-8\nLC_ALL=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\n"
                  "PYTHONDONTWRITEBYTECODE=1\nTMPDIR=/tmp\n");
        shell(&r, "ls -A $HOME; touch $HOME/a $TMPDIR/b && echo ok");
        CHECK_STR(cx_buf_str(&r.out), "ok\n");
    }
    close_room(&r);
}

CX_TEST(sandbox_says_what_a_shell_says_about_the_end)
{
    room r;
    if (open_room(&r, NULL)) {
        static const char *const missing[] = {"/usr/bin/no-such-program", NULL};
        static const char *const folder[] = {"/usr", NULL};
        shell(&r, "kill -KILL $$");
        CHECK_INT(r.result.exit_code, 137);
        r.spec.argv = missing;
        CHECK_STATUS(cx_sandbox_run(r.box, &r.spec, &r.result, &r.err), &r.err);
        CHECK_INT(r.result.exit_code, 127);
        r.spec.argv = folder;
        CHECK_STATUS(cx_sandbox_run(r.box, &r.spec, &r.result, &r.err), &r.err);
        CHECK_INT(r.result.exit_code, 126);
    }
    close_room(&r);
}

/* sandbox.h I5 */
CX_TEST(sandbox_asks_first_when_the_time_is_up)
{
    room r;
    if (open_room(&r, NULL)) {
        /* Longer until the shell came so far: machines may be busy. */
        for (r.spec.timeout_ms = 1000; r.spec.timeout_ms < 200000; r.spec.timeout_ms *= 4) {
            shell(&r, "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.1; done");
            if (r.out.size != 0)
                break;
        }
        CHECK_INT(r.result.exit_code, 124);
        CHECK(r.result.process.timed_out);
        CHECK_STR(cx_buf_str(&r.out), "ready\nasked\n");
        CHECK(!r.result.process.killed);
    }
    close_room(&r);
}

CX_TEST(sandbox_talks)
{
    room r;
    if (open_room(&r, NULL)) {
        static const char *const argv[] = {"/bin/cat", NULL};
        cx_sandbox_child *child = NULL;
        cx_str line = {0};
        bool end = true;
        r.spec.argv = argv;
        r.spec.in = CX_SPAWN_IN_PIPE;
        r.spec.out = (cx_spawn_output){.to = CX_SPAWN_OUT_LINES};
        CHECK_STATUS(cx_sandbox_start(r.box, &r.spec, &child, &r.err), &r.err);
        if (child != NULL) {
            cx_spawn_child *talk = cx_sandbox_process(child);
            CHECK_STATUS(cx_spawn_write(talk, cx_str_bytes(CX_STR("hello\n")), 60000, &r.err),
                         &r.err);
            CHECK_STATUS(cx_spawn_read_line(talk, 100, 60000, &line, &end, &r.err), &r.err);
            CHECK_STR(line, "hello");
            CHECK_STATUS(cx_sandbox_end(child, 60000, &r.result, &r.err), &r.err);
            CHECK_INT(r.result.exit_code, 0);
            CHECK(r.result.layers != 0);
        }
    }
    close_room(&r);
}

CX_TEST(sandbox_hides_and_shows_by_the_most_exact_path)
{
    room r;
    if (open_room(&r, NULL)) {
        char outer[100], inner[100], secret[120];
        (void)snprintf(outer, sizeof outer, "%s/outer", r.worktree);
        (void)snprintf(inner, sizeof inner, "%s/outer/root/inner", r.worktree);
        (void)snprintf(secret, sizeof secret, "%s/outer/root", r.worktree);
        CHECK_STATUS(cx_path_make_folders(inner, &r.err), &r.err);
        const char *const hide[] = {secret};
        cx_sandbox_options options = {.program = CX_CORTEX_BIN, .hide = hide, .hide_count = 1};
        cx_sandbox_close(r.box);
        r.box = NULL;
        CHECK_STATUS(cx_sandbox_open(&options, &r.box, &r.err), &r.err);
        const cx_sandbox_bind binds[] = {{outer, false}};
        r.spec.binds = binds;
        r.spec.bind_count = 1;
        r.spec.worktree = inner;
        shell(&r, "touch mine && cd ../.. && ls -A . root root/inner; touch here");
        CHECK_STR(cx_buf_str(&r.out), ".:\nroot\n\nroot:\ninner\n\nroot/inner:\nmine\n");
        CHECK(r.result.exit_code != 0);
    }
    close_room(&r);
}

/* sandbox.h I1, I2 */
CX_TEST(sandbox_without_bubblewrap_refuses_or_is_degraded)
{
    room r;
    if (open_room(&r, "/nowhere/bwrap")) {
        CHECK((r.box->missing & CX_SANDBOX_FILES) != 0);
        static const char *const argv[] = {"/bin/true", NULL};
        r.spec.argv = argv;
        CHECK_INT(cx_sandbox_run(r.box, &r.spec, &r.result, &r.err).code, CX_E_DENIED);
        CHECK(strstr(r.err.message, "user") != NULL);
        r.spec.may_miss = CX_SANDBOX_REQUIRED;
        shell(&r, "echo $HOME > home; test -w $HOME && test -w $TMPDIR && echo ok");
        CHECK_INT(r.result.exit_code, 0);
        CHECK_STR(cx_buf_str(&r.out), "ok\n");
        if ((r.result.layers & CX_SANDBOX_LANDLOCK) != 0) {
            shell(&r, "echo x > /tmp/cx_sandbox_escape");
            CHECK(r.result.exit_code != 0);
        }
        cx_arena arena;
        cx_json json;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_STATUS(cx_sandbox_describe(r.box, CX_SANDBOX_OFF, &arena, &json, &r.err), &r.err);
        CHECK_STR(CX_JSON_GET_STR(&json, "mode"), "degraded");
        CHECK(CX_JSON_GET(&json, "missing") != NULL);
        cx_arena_done(&arena);
    }
    close_room(&r);
}

/* Ubuntu 22.04 has bubblewrap 0.6: its users need another one, not another kernel. */
CX_TEST(sandbox_with_an_older_bubblewrap_says_which_one_it_needs)
{
    static const char script[] = "#!/bin/sh\necho 'bwrap: Unknown option --size' >&2\nexit 1\n";
    char bwrap[] = "/tmp/cx_older_bwrap_XXXXXX";
    int file = mkstemp(bwrap);
    REQUIRE(file >= 0);
    CHECK(write(file, script, sizeof script - 1) == (ssize_t)sizeof script - 1);
    CHECK(fchmod(file, 0700) == 0 && close(file) == 0);
    room r;
    if (open_room(&r, bwrap)) {
        CHECK((r.box->missing & CX_SANDBOX_FILES) != 0);
        for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++) {
            if ((1u << i & CX_SANDBOX_FILES) == 0)
                continue;
            CHECK(r.box->reason[i] != NULL && strstr(r.box->reason[i], "--size") != NULL);
            CHECK(r.box->fix[i] != NULL && strstr(r.box->fix[i], "bubblewrap 0.7") != NULL);
        }
    }
    (void)unlink(bwrap);
    close_room(&r);
}

/* --- who starts it is killed ------------------------------------------------------------------ */

enum { GO_ON_MS = 20, NEVER_MS = 120000 };

/* Processes among whose arguments the worktree is; with `number` each gets this signal. */
static size_t processes_of(const room *r, int number)
{
    size_t count = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        char path[300], words[16384];
        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int pid = atoi(entry->d_name), file = pid > 1 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t size = file < 0 ? -1 : read(file, words, sizeof words);
        if (file >= 0)
            (void)close(file);
        if (size > 0 && memmem(words, (size_t)size, r->worktree, strlen(r->worktree)) != NULL) {
            count++;
            if (number != 0)
                (void)kill(pid, number);
        }
    }
    if (all != NULL)
        (void)closedir(all);
    return count;
}

static bool comes_to(const room *r, size_t least, size_t most)
{
    for (int waited = 0; waited < NEVER_MS; waited += GO_ON_MS) {
        size_t count = processes_of(r, 0);
        if (count >= least && count <= most)
            return true;
        (void)usleep(GO_ON_MS * 1000);
    }
    printf("%zu processes\n", processes_of(r, 0));
    return false;
}

static bool write_script(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool good = file != NULL && fputs(text, file) >= 0;
    good = (file == NULL || fclose(file) == 0) && good;
    return good && chmod(path, 0755) == 0;
}

/* As much as goes in. */
static void fill(int file)
{
    static const char block[4096];
    while (write(file, block, sizeof block) > 0)
        continue;
    while (write(file, block, 1) > 0)
        continue;
}

/*
 * bubblewrap is held by `option`, an argument with a descriptor that is `hold` in the worktree;
 * then who started it is killed, and bubblewrap let go.  A full pipe holds it where it tells
 * `--info-fd` of its other half, which waits for it; an empty one where that half has set up
 * everything.
 */
static void starter_dies_while_held(const char *option, bool full)
{
    room r;
    if (!open_room(&r, NULL)) {
        close_room(&r);
        return;
    }
    char hold[100], bwrap[100], ran[100], text[600];
    (void)snprintf(hold, sizeof hold, "%s/hold", r.worktree);
    (void)snprintf(bwrap, sizeof bwrap, "%s/bwrap", r.worktree);
    (void)snprintf(ran, sizeof ran, "%s/ran", r.worktree);
    (void)snprintf(text, sizeof text,
                   "#!/bin/sh\n[ -p %s ] || exec /usr/bin/bwrap \"$@\"\n"
                   "exec /usr/bin/bwrap %s 9 \"$@\" 9<>%s\n",
                   hold, option, hold);
    cx_sandbox_options options = {.program = CX_CORTEX_BIN, .bwrap = bwrap};
    cx_sandbox_close(r.box);
    r.box = NULL;
    REQUIRE(write_script(bwrap, text));
    CHECK_STATUS(cx_sandbox_open(&options, &r.box, &r.err), &r.err);
    REQUIRE(mkfifo(hold, 0600) == 0);
    int held = open(hold, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(held >= 0 && r.box != NULL && r.box->missing == 0);
    if (full)
        fill(held);
    pid_t starter = fork();
    REQUIRE(starter >= 0);
    if (starter == 0) {
        const char *const argv[] = {"/usr/bin/touch", ran, NULL};
        r.spec.argv = argv;
        _exit(cx_failed(cx_sandbox_run(r.box, &r.spec, &r.result, &r.err)) ? 1 : 0);
    }
    CHECK(comes_to(&r, 2, 2)); /* both halves */
    CHECK(kill(starter, SIGKILL) == 0 && waitpid(starter, NULL, 0) == starter);
    char block[4096] = {0};
    ssize_t count;
    do {
        count = full ? read(held, block, sizeof block) : write(held, block, 2);
    } while (full && count > 0);
    CHECK(comes_to(&r, 0, 0));
    CHECK(access(ran, F_OK) != 0);
    (void)processes_of(&r, SIGKILL);
    (void)close(held);
    close_room(&r);
}

CX_TEST(sandbox_goes_with_who_starts_it_before_bubblewrap_has_divided_in_two)
{
    starter_dies_while_held("--info-fd", true);
}

CX_TEST(sandbox_goes_with_who_starts_it_before_the_program_runs)
{
    starter_dies_while_held("--block-fd", false);
}

static void starter_dies(const char *bwrap)
{
    room r;
    if (open_room(&r, bwrap)) {
        char ran[100], script[300];
        (void)snprintf(ran, sizeof ran, "%s/ran", r.worktree);
        (void)snprintf(script, sizeof script,
                       "trap '' TERM; setsid sh -c 'while :; do sleep 1; done' %s & touch %s; "
                       "while :; do sleep 1; done",
                       r.worktree, ran);
        pid_t starter = fork();
        REQUIRE(starter >= 0);
        if (starter == 0) {
            r.spec.may_miss = bwrap == NULL ? 0 : CX_SANDBOX_REQUIRED;
            shell(&r, script);
            _exit(0);
        }
        for (int waited = 0; access(ran, F_OK) != 0 && waited < NEVER_MS; waited += GO_ON_MS)
            (void)usleep(GO_ON_MS * 1000);
        CHECK(access(ran, F_OK) == 0);
        CHECK(processes_of(&r, 0) >= 2);
        CHECK(kill(starter, SIGKILL) == 0 && waitpid(starter, NULL, 0) == starter);
        CHECK(comes_to(&r, 0, 0));
        (void)processes_of(&r, SIGKILL);
    }
    close_room(&r);
}

/* sandbox.h I4 */
CX_TEST(sandbox_goes_with_who_started_it)
{
    starter_dies(NULL);
}

CX_TEST(sandbox_without_bubblewrap_goes_with_who_started_it)
{
    starter_dies("/nowhere/bwrap");
}

/* As on a system that gives a process no orphans of its descendants: qemu's user mode is one. */
static bool forbid_subreapers(void)
{
    const uint32_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args) + low),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_CHILD_SUBREAPER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {CX_COUNT_OF(rules), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* sandbox.h I4: where it cannot be kept the program is not started. */
CX_TEST(sandbox_without_bubblewrap_starts_nothing_that_could_outlive_it)
{
    enum { SKIPPED = 77 };
    room r;
    if (open_room(&r, "/nowhere/bwrap")) {
        char ran[100];
        (void)snprintf(ran, sizeof ran, "%s/ran", r.worktree);
        const char *const argv[] = {"/usr/bin/touch", ran, NULL};
        r.spec.argv = argv;
        r.spec.may_miss = CX_SANDBOX_REQUIRED;
        pid_t starter = fork();
        REQUIRE(starter >= 0);
        if (starter == 0) {
            if (!forbid_subreapers())
                _exit(SKIPPED);
            bool refused = cx_failed(cx_sandbox_run(r.box, &r.spec, &r.result, &r.err));
            _exit(refused && strstr(r.err.message, "leaves running") != NULL ? 0 : 1);
        }
        int state = 0;
        CHECK(waitpid(starter, &state, 0) == starter && WIFEXITED(state));
        if (WIFEXITED(state) && WEXITSTATUS(state) == SKIPPED)
            cx_test_skip("this kernel filters no system calls");
        else
            CHECK_INT(WEXITSTATUS(state), 0);
        CHECK(access(ran, F_OK) != 0 || WEXITSTATUS(state) == SKIPPED);
    }
    close_room(&r);
}
