/*
 * bench_diff.c - R1: the diff gate on a repository of 10,000 files, against the git processes that
 * it starts (the very calls, seen and made again), and against `git diff` + `git status`.
 *
 * bench_diff [FILES]    default 10000; the repository is made in $TMPDIR and removed afterwards
 */
#include <string.h>

#include "os/folder.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "candidate/diff.h"

#define CALLS_MAX 64

static cx_err err;

static void need(cx_status status, const char *what)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_diff: %s: %s\n", what, err.message);
        exit(1);
    }
}

/* --- the calls of one gate, to be made again -------------------------------------------------- */

typedef struct calls {
    cx_arena arena;
    cx_git_call items[CALLS_MAX];
    size_t count;
    bool off;
    cx_lock lock; /* the gate asks from several threads */
} calls;

static const char *kept(calls *c, const char *text)
{
    return text == NULL ? NULL : cx_arena_copy_str(&c->arena, cx_str_z(text)).data;
}

static void keep_call(calls *c, const cx_git_call *call)
{
    size_t count = 0;
    cx_git_call *copy = &c->items[c->count++];
    *copy = *call;
    while (call->args[count] != NULL)
        count++;
    const char **args = CX_ARENA_ARRAY(&c->arena, const char *, count + 1);
    for (size_t i = 0; i <= count; i++)
        args[i] = kept(c, call->args[i]);
    copy->args = args;
    copy->index_file = kept(c, call->index_file);
    copy->git_dir = kept(c, call->git_dir);
    copy->input = cx_str_bytes(cx_arena_copy_str(&c->arena, cx_bytes_str(call->input)));
    copy->env = NULL;
}

static void note(void *arg, const cx_git_call *call)
{
    calls *c = arg;
    cx_lock_enter(&c->lock);
    /* One that asks about a folder of the gate's own cannot be made again: it is gone by then. */
    if (!c->off && c->count < CALLS_MAX && call->work_tree == NULL)
        keep_call(c, call);
    cx_lock_leave(&c->lock);
}

typedef struct world {
    cx_git *git;
    cx_snapshot *before;
    calls made;
    cx_diff_options options;
} world;

static void gate(void *arg)
{
    world *w = arg;
    cx_arena arena;
    cx_diff_report report;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    need(cx_diff_gate_run(&w->options, &arena, &report, &err), "gate");
    if (!report.passed) {
        fprintf(stderr, "bench_diff: the gate rejects\n");
        exit(1);
    }
    cx_diff_report_done(&report);
    cx_arena_done(&arena);
}

static void processes(void *arg)
{
    world *w = arg;
    for (size_t i = 0; i < w->made.count; i++) {
        cx_buf out;
        int code;
        cx_buf_init(&out, cx_alloc_default());
        need(cx_git_call_run(w->git, &w->made.items[i], &out, &code, &err), "git");
        cx_buf_done(&out);
    }
}

static void call_plain(world *w, const char *const *args)
{
    cx_git_call call = {.args = args};
    cx_buf out;
    int code;
    cx_buf_init(&out, cx_alloc_default());
    need(cx_git_call_run(w->git, &call, &out, &code, &err), "git");
    cx_buf_done(&out);
}

static void diff_and_status(void *arg)
{
    call_plain(arg, CX_GIT_ARGS("diff", "--no-ext-diff", "HEAD"));
    call_plain(arg, CX_GIT_ARGS("status", "--porcelain=v2", "-z", "-uall", "--ignored=matching"));
}

/* --- the repository --------------------------------------------------------------------------- */

static void put(cx_file folder, const char *path, const char *text)
{
    cx_file file;
    need(cx_folder_open_in(folder, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &file, &err),
         path);
    need(cx_io_write_all(cx_io_system(), file, path, text, strlen(text), &err), path);
    cx_folder_close(file);
}

static void fill(cx_file folder, unsigned files)
{
    char path[64], text[1500];
    for (unsigned i = 0; i < files; i++) {
        if (i % 100 == 0) {
            (void)snprintf(path, sizeof path, "src/d%03u", i / 100);
            need(cx_folder_make_folders(folder, path, 0755, &err), path);
        }
        (void)snprintf(path, sizeof path, "src/d%03u/f%05u.c", i / 100, i);
        size_t size = 0;
        while (size < sizeof text - 64)
            size += (size_t)snprintf(text + size, sizeof text - size, "line %zu of file %u\n", size,
                                     i * 2654435761u);
        put(folder, path, text);
    }
}

static void git(const char *folder, const char *const *args)
{
    const char *argv[24] = {
        "/usr/bin/git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0"};
    size_t count = 7;
    while (args[count - 7] != NULL && count < 23) {
        argv[count] = args[count - 7];
        count++;
    }
    static const char *const envp[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", NULL};
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    how.argv = argv;
    how.envp = envp;
    how.cwd = folder;
    need(cx_spawn_run(&how, &result, &err), "git");
    if (result.exit_code != 0) {
        fprintf(stderr, "bench_diff: git %s: exit %d\n", args[0], result.exit_code);
        exit(1);
    }
}

static bool measure(world *w, const char *what)
{
    char title[128];
    bench_side sides[] = {
        {.name = "diff gate", .work = gate, .arg = w, .units = 1},
        {.name = "its git processes", .work = processes, .arg = w, .units = 1},
        {.name = "git diff + git status", .work = diff_and_status, .arg = w, .units = 1}};
    w->made.count = 0;
    w->made.off = false;
    gate(w);
    w->made.off = true;
    bench_measure(sides, 3);
    for (size_t i = 0; i < 3; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "a second");
    (void)snprintf(title, sizeof title, "%s: gate / its %zu git processes (rate, 1/2 or more)",
                   what, w->made.count);
    bool good = bench_print_row("R1", title, &sides[0].rate, &sides[1].rate, 1, 0.5);
    (void)snprintf(title, sizeof title, "%s: gate / git diff + git status (rate)", what);
    (void)bench_print_row("R1", title, &sides[0].rate, &sides[2].rate, 1, 0);
    return good;
}

int main(int argc, char **argv)
{
    static const cx_str allowed[] = {{"src/", 4}};
    const char *temp = getenv("TMPDIR");
    char path[512];
    unsigned files = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000;
    cx_file folder;
    world w;
    memset(&w, 0, sizeof w);
    cx_arena_init(&w.made.arena, cx_alloc_default(), 0);
    w.made.off = true;
    cx_lock_init(&w.made.lock);
    (void)snprintf(path, sizeof path, "%s/cortex-bench-diff-%llu", temp == NULL ? "/tmp" : temp,
                   (unsigned long long)cx_io_system()->process_id(cx_io_system()));
    need(cx_path_make_folders(path, &err), path);
    need(cx_folder_open(path, &folder, &err), path);
    fill(folder, files);
    git(path, CX_GIT_ARGS("init", "-q", "-b", "main"));
    git(path, CX_GIT_ARGS("add", "-A"));
    git(path, CX_GIT_ARGS("commit", "-q", "-m", "base"));
    git(path, CX_GIT_ARGS("gc", "-q"));
    git(path, CX_GIT_ARGS("status", "-s"));
    cx_git_options how = CX_GIT_OPTIONS_INIT;
    how.seen = note;
    how.seen_arg = &w.made;
    need(cx_git_open(path, &how, NULL, &w.git, &err), path);
    need(cx_snapshot_read(w.git, NULL, &w.before, &err), "snapshot");
    w.options.git = w.git;
    w.options.snapshot = w.before;
    w.options.baseline = CX_STR("HEAD");
    w.options.allowed_paths = allowed;
    w.options.allowed_count = 1;
    printf("     %u files\n", files);
    bool good = measure(&w, "nothing changed");
    put(folder, "src/d000/f00000.c", "changed\n");
    put(folder, "src/d001/f00100.c", "changed too\n");
    good = measure(&w, "two files changed") && good;
    put(folder, "src/d000/new.c",
        "a new file that is long enough to be looked at for what it may have been copied from\n");
    good = measure(&w, "and one added") && good;
    cx_snapshot_close(w.before);
    cx_git_close(w.git);
    cx_arena_done(&w.made.arena);
    cx_lock_done(&w.made.lock);
    cx_folder_close(folder);
    need(cx_path_remove_tree(path, &err), path);
    return good ? 0 : 1;
}
