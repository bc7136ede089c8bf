/*
 * bench_live.c - V1 to V4: a decision of `cortex hook`, from the start of the process to its end.
 *
 * bench_live [CORTEX]    path of the cortex program, default the one built next to this one
 *
 * The agent pays this before each tool call.  Next to it stands what the call itself costs the
 * agent: `git status`, and the least there is, `sh -c true`.  The kinds take turns, so that a busy
 * machine slows all of them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

#ifndef CX_BENCH_CORTEX
#define CX_BENCH_CORTEX "cortex"
#endif

#define RUNS 300    /* of each kind */
#define SESSIONS 10 /* at once */
#define SESSION_RUNS 60
#define GOAL_SECONDS 0.025

extern char **environ;

static char folder[] = "/tmp/cortex-bench-live-XXXXXX", home[64], repo[64], payload[96];
static const char *cortex;

static void fail(const char *what)
{
    fprintf(stderr, "bench_live: %s\n", what);
    exit(1);
}

/* Starts a program whose standard input is `input`, in the repository; its output goes nowhere. */
static pid_t start(const char *const *argv, const char *input)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        fail(argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Seconds from start to end; the exit code must be 0. */
static double once(const char *const *argv, const char *input)
{
    int status;
    double before = bench_seconds(CLOCK_MONOTONIC);
    pid_t pid = start(argv, input);
    while (waitpid(pid, &status, 0) != pid) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail(argv[0]);
    return bench_seconds(CLOCK_MONOTONIC) - before;
}

static void must(const char *const *argv)
{
    (void)once(argv, "/dev/null");
}

static void write_payload(const char *path, unsigned session)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail(path);
    fprintf(file,
            "{\"session_id\":\"s%u\",\"cwd\":\"%s\",\"hook_event_name\":\"PreToolUse\","
            "\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"git status\"},"
            "\"tool_use_id\":\"c1\"}\n",
            session, repo);
    if (fclose(file) != 0)
        fail(path);
}

static void make_place(void)
{
    if (mkdtemp(folder) == NULL)
        fail(folder);
    (void)snprintf(home, sizeof home, "%s/home", folder);
    (void)snprintf(repo, sizeof repo, "%s/repo", folder);
    (void)snprintf(payload, sizeof payload, "%s/call.json", folder);
    must((const char *[]){"git", "init", "-q", repo, NULL});
    must((const char *[]){"git", "-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit",
                          "-q", "--allow-empty", "-m", "x", NULL});
    must((const char *[]){cortex, "init", "--no-repo", home, NULL});
    write_payload(payload, 0);
}

static pid_t start_server(void)
{
    char path[96];
    struct stat facts;
    pid_t pid = start((const char *[]){cortex, "serve", "--home", home, "--listen", "127.0.0.1:0",
                                       "--otlp", "off", NULL},
                      "/dev/null");
    (void)snprintf(path, sizeof path, "%s/socket", home);
    for (unsigned i = 0; stat(path, &facts) != 0; i++) {
        if (i == 1000 || waitpid(pid, NULL, WNOHANG) != 0)
            fail("the server does not start");
        (void)usleep(10000);
    }
    return pid;
}

/* --- distributions ---------------------------------------------------------------------------- */

typedef struct times {
    double seconds[SESSIONS * SESSION_RUNS];
    size_t count;
} times;

static double at_share(times *t, double share)
{
    qsort(t->seconds, t->count, sizeof *t->seconds, bench_compare);
    size_t index = (size_t)((double)t->count * share);
    return t->seconds[index < t->count ? index : t->count - 1];
}

static void show(const char *name, times *t)
{
    printf("     %-28s min %6.2f  p50 %6.2f  p90 %6.2f  p99 %6.2f ms\n", name, at_share(t, 0) * 1e3,
           at_share(t, 0.5) * 1e3, at_share(t, 0.9) * 1e3, at_share(t, 0.99) * 1e3);
}

/* A rate's ratio, as everywhere: more is better. */
static bool row(const char *id, const char *what, double ours, double reference, double target)
{
    const bench_rate left = {.min = 1 / ours, .median = 1 / ours, .max = 1 / ours};
    const bench_rate right = {.min = 1 / reference, .median = 1 / reference, .max = 1 / reference};
    return bench_print_row(id, what, &left, &right, 1, target);
}

static times decisions, statuses, nothings;

static void measure(const char *name)
{
    const char *hook[] = {cortex, "hook", "claude", "--home", home, NULL};
    const char *status[] = {"git", "-C", repo, "status", NULL};
    const char *nothing[] = {"/bin/sh", "-c", "true", NULL};
    decisions.count = statuses.count = nothings.count = 0;
    for (size_t i = 0; i < RUNS + 5; i++) {
        double a = once(hook, payload), b = once(status, "/dev/null"),
               c = once(nothing, "/dev/null");
        if (i < 5) /* caches, and the session's first call */
            continue;
        decisions.seconds[decisions.count++] = a;
        statuses.seconds[statuses.count++] = b;
        nothings.seconds[nothings.count++] = c;
    }
    show(name, &decisions);
    show("git status", &statuses);
    show("sh -c true", &nothings);
}

/* --- ten sessions at once --------------------------------------------------------------------- */

typedef struct session {
    pthread_t thread;
    unsigned number;
    double seconds[SESSION_RUNS];
} session;

static void *be_session(void *arg)
{
    session *s = arg;
    char path[128];
    const char *hook[] = {cortex, "hook", "claude", "--home", home, "--deadline", "60", NULL};
    (void)snprintf(path, sizeof path, "%s/call%u.json", folder, s->number);
    write_payload(path, s->number);
    for (size_t i = 0; i < SESSION_RUNS; i++)
        s->seconds[i] = once(hook, path);
    return NULL;
}

static void measure_sessions(const char *name)
{
    static session sessions[SESSIONS];
    for (unsigned i = 0; i < SESSIONS; i++) {
        sessions[i].number = i + 1;
        if (pthread_create(&sessions[i].thread, NULL, be_session, &sessions[i]) != 0)
            fail("no thread");
    }
    decisions.count = 0;
    for (unsigned i = 0; i < SESSIONS; i++) {
        (void)pthread_join(sessions[i].thread, NULL);
        memcpy(decisions.seconds + decisions.count, sessions[i].seconds,
               sizeof sessions[i].seconds);
        decisions.count += SESSION_RUNS;
    }
    show(name, &decisions);
}

int main(int argc, char **argv)
{
    cortex = argc > 1 ? argv[1] : CX_BENCH_CORTEX;
    make_place();
    measure("alone");
    bool good = row("V1", "a decision without a server, p50 / git status",
                    at_share(&decisions, 0.5), at_share(&statuses, 0.5), 0);
    pid_t server = start_server();
    measure("with an idle server");
    good &= row("V2", "a decision with an idle server, p50 / git status", at_share(&decisions, 0.5),
                at_share(&statuses, 0.5), 0);
    row("V2", "the same / sh -c true", at_share(&decisions, 0.5), at_share(&nothings, 0.5), 0);
    good &= row("V3", "p99 of it / 25 ms (rate)", at_share(&decisions, 0.99), GOAL_SECONDS, 1);
    measure_sessions("ten sessions, with a server");
    row("V4", "p50 of ten sessions at once, with a server / 25 ms (rate)",
        at_share(&decisions, 0.5), GOAL_SECONDS, 0);
    kill(server, SIGTERM);
    (void)waitpid(server, NULL, 0);
    measure_sessions("ten sessions, alone");
    row("V4", "the same without a server / 25 ms (rate)", at_share(&decisions, 0.5), GOAL_SECONDS,
        0);
    must((const char *[]){"rm", "-rf", folder, NULL});
    return good ? 0 : 1;
}
