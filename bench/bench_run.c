/*
 * bench_run.c - R3: a whole scripted run against its bare parts; and what two of its steps cost.
 *
 * bench_run [CORTEX]    default the one built next to this one; works in $TMPDIR, and cleans up
 *
 * The bare parts were read off one run of the golden scenario `success` with a home:
 *
 *     strace -f -y -e trace=execve,fsync,fdatasync cortex run contract.json --script script.json
 *
 * `bare_calls` are the git commands in the order they came (those that git itself starts are left
 * out: they come by themselves), without the fixed options that git.c puts before all of them.  The
 * agent and the test command each start one bubblewrap with the mounts that sandbox_args.c asks
 * for; trying out the sandbox is a third, which counts as ours.  Count again when the machine
 * changes: who starts fewer processes must also take them out here.
 */
#include <string.h>

#include "os/folder.h"
#include "bench/bench.h"
#include "bench/bench_run_parts.h"
#include "json/json.h"
#include "git/git.h"

#ifndef CX_BENCH_CORTEX
#define CX_BENCH_CORTEX "cortex"
#endif

/* Events: a line, a link of the chain, a frame of the ledger, each made durable. */
#define BARE_EVENTS 36
/* Other files of the bundle: temporary name, sync, rename, sync of the folder. */
#define BARE_FILES 32
#define BARE_EVENT_BYTES 600
#define BARE_FILE_BYTES 1500
/* Of the ledger's database, and of a folder made. */
#define BARE_OTHER_SYNCS 6

#define FILE_LIMIT ((size_t)1 << 20)

static cx_err err;

static void need(cx_status status, const char *what)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_run: %s: %s\n", what, err.message);
        exit(1);
    }
}

static const char *joined(cx_arena *arena, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *text = CX_ARENA_ARRAY(arena, char, size);
    (void)snprintf(text, size, "%s/%s", folder, name);
    return text;
}

/* --- the repository of the golden runs -------------------------------------------------------- */

typedef struct place {
    cx_arena arena;
    const char *base, *repo, *home, *work, *trial, *index, *files; /* paths */
    cx_git *git;
    cx_git *linked; /* of the worktree that was opened last */
    char commit[CX_OID_TEXT_SIZE];
    char tree[CX_OID_TEXT_SIZE], fresh[CX_OID_TEXT_SIZE]; /* what the agent makes of it */
    char index_info[160];
    size_t index_info_size;
} place;

static const char *const plain_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                        "HOME=/nonexistent",
                                        "GIT_CONFIG_GLOBAL=/dev/null",
                                        "GIT_CONFIG_NOSYSTEM=1",
                                        "GIT_AUTHOR_NAME=Cortex Test",
                                        "GIT_AUTHOR_EMAIL=test@example.invalid",
                                        "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
                                        "GIT_COMMITTER_NAME=Cortex Test",
                                        "GIT_COMMITTER_EMAIL=test@example.invalid",
                                        "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
                                        NULL};
static const char *const *const author = plain_env + 4;

static void start(const char *const *argv, const char *cwd, const char *const *envp)
{
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    cx_buf said;
    cx_buf_init(&said, cx_alloc_default());
    how.argv = argv;
    how.envp = envp;
    how.cwd = cwd;
    how.errout = cx_spawn_to_buf(&said, FILE_LIMIT);
    need(cx_spawn_run(&how, &result, &err), argv[0]);
    if (result.exit_code != 0) {
        fprintf(stderr, "bench_run: %s %s: exit %d\n%.*s", argv[0], argv[1], result.exit_code,
                (int)said.size, (const char *)said.data);
        exit(1);
    }
    cx_buf_done(&said);
}

static void read_json(cx_arena *arena, const char *path, cx_json *out)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    need(cx_io_read_file(cx_io_system(), path, FILE_LIMIT, &text, &err), path);
    need(cx_json_parse_text(cx_arena_copy_str(arena, cx_buf_str(&text)), arena, out, &err), path);
    cx_buf_done(&text);
}

static void put(const char *path, cx_str text, bool executable)
{
    need(cx_io_replace_file(cx_io_system(), path, cx_str_bytes(text), &err), path);
    need(cx_path_set_mode(path, executable ? 0755 : 0644, &err), path);
}

static void fill(place *p)
{
    cx_json spec;
    read_json(&p->arena, CX_BENCH_GOLDEN "/repo.json", &spec);
    const cx_json *files = CX_JSON_GET(&spec, "files");
    const cx_json *programs = CX_JSON_GET(&spec, "executable");
    for (uint32_t i = 0; i < files->count; i++) {
        cx_str name = cx_json_text(&files->members[i].name);
        const char *path = joined(&p->arena, p->repo, cx_arena_copy_str(&p->arena, name).data);
        char folder[512];
        (void)snprintf(folder, sizeof folder, "%s", path);
        *strrchr(folder, '/') = '\0';
        need(cx_path_make_folders(folder, &err), folder);
        bool executable = false;
        for (uint32_t k = 0; k < programs->count; k++)
            executable = executable || cx_str_eq(cx_json_text(&programs->items[k]), name);
        put(path, cx_json_text(&files->members[i].value), executable);
    }
}

static void git_plain(place *p, const char *const *args)
{
    const char *argv[16] = {"/usr/bin/git"};
    for (size_t i = 0; args[i] != NULL && i < 14; i++)
        argv[i + 1] = args[i];
    start(argv, p->repo, plain_env);
}

static void open_place(place *p, const char *base, const char *name)
{
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    p->base = joined(&p->arena, base, name);
    p->repo = joined(&p->arena, p->base, "repo");
    p->home = joined(&p->arena, p->base, "home");
    p->files = joined(&p->arena, p->base, "files");
    p->index = joined(&p->arena, p->base, "index");
    p->work = joined(&p->arena, p->repo, ".runtime-cache/bare/work");
    p->trial = joined(&p->arena, p->repo, ".runtime-cache/bare/trial");
    need(cx_path_make_folders(p->repo, &err), p->repo);
    need(cx_path_make_folders(p->files, &err), p->files);
    fill(p);
    git_plain(p, CX_GIT_ARGS("init", "-q", "-b", "main"));
    git_plain(p, CX_GIT_ARGS("add", "-A"));
    git_plain(p, CX_GIT_ARGS("commit", "-q", "-m", "base"));
    need(cx_git_open(p->repo, NULL, NULL, &p->git, &err), p->repo);
    cx_oid oid;
    need(cx_git_resolve(p->git, CX_STR("main"), &oid, &err), "main");
    cx_oid_text(&oid, p->commit);
}

static void close_place(place *p)
{
    cx_git_close(p->linked);
    cx_git_close(p->git);
    need(cx_path_remove_tree(p->base, &err), p->base);
    cx_arena_done(&p->arena);
}

static void back_to_base(place *p)
{
    git_plain(p, CX_GIT_ARGS("reset", "-q", "--hard", p->commit));
}

/* --- a run ------------------------------------------------------------------------------------ */

static const char *cortex = CX_BENCH_CORTEX;

static void run_env(place *p, const char *out[4])
{
    char *home = CX_ARENA_ARRAY(&p->arena, char, 600);
    (void)snprintf(home, 600, "CORTEX_HOME=%s", p->home);
    out[0] = plain_env[0];
    out[1] = plain_env[1];
    out[2] = home;
    out[3] = NULL;
}

static void whole_run(place *p)
{
    const char *argv[] = {cortex,
                          "run",
                          CX_BENCH_GOLDEN "/success/contract.input.json",
                          "--script",
                          CX_BENCH_GOLDEN "/success/script.json",
                          "--json",
                          NULL};
    const char *envp[4];
    run_env(p, envp);
    start(argv, p->repo, envp);
}

/* --- its bare parts --------------------------------------------------------------------------- */

/* The places of the list, filled in; lives as long as the place. */
static const char *filled(place *p, const char *word)
{
    const struct {
        const char *name, *value;
    } names[] = {{"@work", p->work},
                 {"@trial", p->trial},
                 {"@base", p->commit},
                 {"@tree", p->tree},
                 {"@fresh", p->fresh}};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (const char *at = word; *at != '\0';) {
        size_t i = 0, count = sizeof names / sizeof *names;
        while (i < count && strncmp(at, names[i].name, strlen(names[i].name)) != 0)
            i++;
        cx_buf_add_str(&out, i < count ? cx_str_z(names[i].value) : cx_str_from(at, 1));
        at += i < count ? strlen(names[i].name) : 1;
    }
    const char *text = cx_arena_copy_str(&p->arena, cx_buf_str(&out)).data;
    cx_buf_done(&out);
    return text;
}

static void bare_git(place *p, const bare_call *bare, cx_buf *out)
{
    const char *args[BARE_ARGS_MAX + 1] = {NULL};
    cx_git_call call = {.args = args, .env = author, .bare = !bare->tree};
    int code;
    for (size_t i = 0; i < BARE_ARGS_MAX && bare->args[i] != NULL; i++)
        args[i] = filled(p, bare->args[i]);
    char line[CX_OID_TEXT_SIZE + 1];
    switch (bare->input) {
    case BARE_IN_NOTHING: break;
    case BARE_IN_PATH: call.input = cx_str_bytes(CX_STR("./src/app/main.c\n")); break;
    case BARE_IN_ENTRY:
        call.input = (cx_bytes){(const uint8_t *)p->index_info, p->index_info_size};
        break;
    case BARE_IN_COMMIT:
        (void)snprintf(line, sizeof line, "%s\n", p->fresh);
        call.input = cx_str_bytes(cx_str_z(line));
        break;
    case BARE_IN_TEXT:
        call.input = cx_str_bytes(CX_STR("cortex: golden_success\n\nCortex-Run: none\n"));
        break;
    }
    call.plain_paths = strcmp(args[0], "check-ignore") == 0;
    if (bare->index)
        call.index_file = p->index;
    /* Some ask whether something is there that is not, as in the run. */
    need(cx_git_call_run(bare->where == BARE_MAIN ? p->git : p->linked, &call, out, &code, &err),
         args[0]);
    if (code > 1 && strcmp(args[0], "show-ref") != 0) {
        fprintf(stderr, "bench_run: git %s: exit %d\n", args[0], code);
        exit(1);
    }
}

static void open_linked(place *p, const char *folder)
{
    cx_git_close(p->linked);
    p->linked = NULL;
    need(cx_git_open(folder, NULL, NULL, &p->linked, &err), folder);
}

static void boxed(place *p, const char *folder, const char *program)
{
    const char *argv[BARE_BOX_MAX + 16];
    char git_dir[512];
    size_t count = 0;
    (void)snprintf(git_dir, sizeof git_dir, "%s/.git", p->repo);
    for (size_t i = 0; bare_box_first[i] != NULL; i++)
        argv[count++] = bare_box_first[i];
    for (size_t i = 0; bare_box_shown[i] != NULL; i++) {
        argv[count++] = "--ro-bind-try";
        argv[count++] = bare_box_shown[i];
        argv[count++] = bare_box_shown[i];
    }
    for (size_t i = 0; bare_box_last[i] != NULL; i++)
        argv[count++] = bare_box_last[i];
    const char *more[] = {"--ro-bind", git_dir,        git_dir, "--bind",  folder,
                          folder,      "--remount-ro", "/",     "--chdir", folder,
                          "--",        program,        NULL};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        argv[count++] = more[i];
    start(argv, folder, plain_env);
}

static void edit(place *p)
{
    cx_file file;
    static const char more[] = "/* helper */\n";
    const char *path = joined(&p->arena, p->work, "src/app/main.c");
    const cx_io *io = cx_io_system();
    if (io->open(io, path, CX_IO_WRITE | CX_IO_APPEND, &file) != 0)
        exit(1);
    need(cx_io_write_all(io, file, path, more, sizeof more - 1, &err), path);
    (void)io->close(io, file);
}

static cx_file opened(place *p, const char *name)
{
    cx_file file;
    const cx_io *io = cx_io_system();
    const char *path = joined(&p->arena, p->files, name);
    if (io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_APPEND, &file) != 0) {
        fprintf(stderr, "bench_run: cannot make %s\n", path);
        exit(1);
    }
    return file;
}

static void synced(cx_file file, bool data_only)
{
    if (cx_io_system()->sync(cx_io_system(), file, data_only) != 0)
        exit(1);
}

static void bare_syncs(place *p)
{
    static char text[BARE_FILE_BYTES];
    const char *const names[] = {"events", "chain", "ledger"};
    cx_file logs[3];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < 3; i++)
        logs[i] = opened(p, names[i]);
    for (size_t n = 0; n < BARE_EVENTS; n++)
        for (size_t i = 0; i < 3; i++) {
            need(cx_io_write_all(cx_io_system(), logs[i], names[i], text, BARE_EVENT_BYTES, &err),
                 names[i]);
            synced(logs[i], i == 2);
        }
    for (size_t i = 0; i < BARE_OTHER_SYNCS; i++) {
        need(cx_io_write_all(cx_io_system(), logs[2], names[2], text, BARE_EVENT_BYTES, &err),
             names[2]);
        synced(logs[2], true);
    }
    for (size_t i = 0; i < 3; i++)
        (void)cx_io_system()->close(cx_io_system(), logs[i]);
    for (unsigned i = 0; i < BARE_FILES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "file%u", i);
        need(cx_io_replace_file(cx_io_system(), joined(&p->arena, p->files, name),
                                (cx_bytes){(const uint8_t *)text, sizeof text}, &err),
             name);
    }
}

static void bare_parts(place *p)
{
    for (size_t i = 0; bare_calls[i].what != BARE_END; i++) {
        const bare_call *bare = &bare_calls[i];
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        switch (bare->what) {
        case BARE_GIT: bare_git(p, bare, &out); break;
        case BARE_OPEN_MAIN: {
            cx_git *git;
            need(cx_git_open(p->repo, NULL, NULL, &git, &err), p->repo);
            cx_git_close(git);
            break;
        }
        case BARE_OPEN_WORK: open_linked(p, p->work); break;
        case BARE_OPEN_TRIAL: {
            cx_git *git;
            need(cx_git_open(p->trial, NULL, NULL, &git, &err), p->trial);
            cx_git_close(git);
            break;
        }
        case BARE_AGENT:
            boxed(p, p->work, "/usr/bin/true");
            edit(p);
            break;
        case BARE_TEST: boxed(p, p->trial, "scripts/test.sh"); break;
        case BARE_END: break;
        }
        cx_buf_done(&out);
    }
    bare_syncs(p);
}

/* The ids of what the list makes are known beforehand: all of it is made of fixed bytes. */
static void foresee(place *p)
{
    static const bare_call steps[] = {
        {BARE_GIT, BARE_MAIN, true, true, BARE_IN_NOTHING, {"read-tree", "@base"}},
        {BARE_GIT, BARE_MAIN, true, true, BARE_IN_ENTRY, {"update-index", "-z", "--index-info"}},
        {BARE_GIT, BARE_MAIN, true, true, BARE_IN_NOTHING, {"write-tree"}},
        {BARE_GIT,
         BARE_MAIN,
         false,
         false,
         BARE_IN_TEXT,
         {"commit-tree", "-F", "-", "-p", "@base", "@tree"}}};
    cx_buf text, out;
    cx_oid oid;
    char hex[CX_OID_TEXT_SIZE];
    const char *path = joined(&p->arena, p->repo, "src/app/main.c");
    cx_buf_init(&text, cx_alloc_default());
    need(cx_io_read_file(cx_io_system(), path, FILE_LIMIT, &text, &err), path);
    cx_buf_add_str(&text, CX_STR("/* helper */\n"));
    const char *changed = joined(&p->arena, p->files, "main.c");
    put(changed, cx_buf_str(&text), false);
    git_plain(p, CX_GIT_ARGS("hash-object", "-w", "--no-filters", changed));
    oid = cx_git_blob_oid(p->git, cx_buf_bytes(&text));
    cx_buf_done(&text);
    cx_oid_text(&oid, hex);
    p->index_info_size = 1 + (size_t)snprintf(p->index_info, sizeof p->index_info,
                                              "100644 %s 0\tsrc/app/main.c", hex);
    for (size_t i = 0; i < 4; i++) {
        cx_buf_init(&out, cx_alloc_default());
        bare_git(p, &steps[i], &out);
        if (i >= 2)
            (void)snprintf(i == 2 ? p->tree : p->fresh, CX_OID_TEXT_SIZE, "%.*s",
                           (int)(out.size - 1), (const char *)out.data);
        cx_buf_done(&out);
    }
}

/* --- measuring -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const char *temp = getenv("TMPDIR");
    char base[400];
    double seconds[2][BENCH_TURNS], cpu[2] = {0};
    static place run, bare;
    if (argc > 1)
        cortex = argv[1];
    (void)snprintf(base, sizeof base, "%s/cortex-bench-run-%llu", temp == NULL ? "/tmp" : temp,
                   (unsigned long long)cx_io_system()->process_id(cx_io_system()));
    open_place(&run, base, "run");
    open_place(&bare, base, "bare");
    const char *envp[4];
    run_env(&run, envp);
    start((const char *const[]){cortex, "init", "--home", run.home, NULL}, run.base, envp);
    foresee(&bare);
    /* The repository is put back between turns, which is not measured; the first turn warms up. */
    for (size_t turn = 0; turn <= BENCH_TURNS; turn++)
        for (size_t side = 0; side < 2; side++) {
            place *p = side == 0 ? &run : &bare;
            back_to_base(p);
            double before = bench_seconds(CLOCK_MONOTONIC);
            side == 0 ? whole_run(p) : bare_parts(p);
            seconds[side][turn == 0 ? 0 : turn - 1] = bench_seconds(CLOCK_MONOTONIC) - before;
        }
    bench_rate whole = bench_rate_of(seconds[0], BENCH_TURNS, 1, cpu[0]);
    bench_rate parts = bench_rate_of(seconds[1], BENCH_TURNS, 1, cpu[1]);
    bench_print_side("a scripted run", &whole, 1, "a second");
    bench_print_side("its bare parts", &parts, 1, "a second");
    bool good = bench_print_row("R3",
                                "a scripted run / its bare git, sandbox and test commands and "
                                "fsyncs (rate, 1/1.5 or more)",
                                &whole, &parts, 1, 0.667);
    close_place(&run);
    close_place(&bare);
    need(cx_path_remove_tree(base, &err), base);
    return good ? 0 : 1;
}
