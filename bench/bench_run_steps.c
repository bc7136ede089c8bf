/*
 * bench_run_steps.c - what two steps of a run cost, for information: judging a contract against a
 * repository of 100 files, and finishing and sealing a bundle of 200 files of 50 kB.
 *
 * Works in $TMPDIR, and cleans up.
 */
#include <string.h>

#include "os/folder.h"
#include "bench/bench.h"
#include "bundle/bundle.h"
#include "contract/contract_command.h"
#include "contract/contract_repo.h"
#include "rules/schemas.h"

#define REPO_FILES 100
#define BUNDLE_FILES 200
#define BUNDLE_FILE_BYTES ((size_t)50 * 1000)
/* What finishing and sealing make durable without a ledger (strace -e trace=fsync): the last event,
 * its link of the chain, the manifest and its folder. */
#define SEAL_SYNCS 4
#define FILE_LIMIT ((size_t)1 << 20)

static cx_err err;
static cx_arena arena; /* of the whole program */
static const char *base;

static void need(cx_status status, const char *what)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_run_steps: %s: %s\n", what, err.message);
        exit(1);
    }
}

static void start(const char *const *argv, const char *cwd)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent",
                                       "GIT_CONFIG_NOSYSTEM=1", NULL};
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    how.argv = argv;
    how.envp = envp;
    how.cwd = cwd;
    need(cx_spawn_run(&how, &result, &err), argv[0]);
    if (result.exit_code != 0) {
        fprintf(stderr, "bench_run_steps: %s %s: exit %d\n", argv[0], argv[1], result.exit_code);
        exit(1);
    }
}

static void print_row(const char *what, bench_side *sides)
{
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "a second");
    (void)bench_print_row("-", what, &sides[0].rate, &sides[1].rate, 1, 0);
}

/* --- a contract ------------------------------------------------------------------------------- */

static cx_str contract_text;
static cx_git *git;

static void judge(void *arg)
{
    (void)arg;
    cx_arena own;
    cx_run_git_repo answers;
    cx_run_findings findings;
    cx_contract contract;
    cx_run_policy policy;
    cx_arena_init(&own, cx_alloc_default(), 0);
    cx_run_findings_init(&findings, &own);
    cx_run_repo repo = cx_run_git_repo_init(&answers, git, &own);
    need(cx_run_contract_check(contract_text, &repo, NULL, &cx_run_contract_command_checks, &own,
                               &findings, &contract, &policy, &err),
         "contract");
    if (findings.refusing != 0) {
        fprintf(stderr, "bench_run_steps: the contract is refused: %.*s\n",
                (int)findings.list.items[0].message.size, findings.list.items[0].message.data);
        exit(1);
    }
    cx_run_findings_done(&findings);
    cx_arena_done(&own);
}

static void read_and_check(void *arg)
{
    (void)arg;
    cx_arena own;
    cx_run_findings findings;
    cx_json json;
    cx_arena_init(&own, cx_alloc_default(), 0);
    cx_run_findings_init(&findings, &own);
    need(cx_json_parse_text(contract_text, &own, &json, &err), "contract");
    need(cx_run_schema_check("task_contract.v1.json", &json, "K01", &findings, &err), "schema");
    cx_run_findings_done(&findings);
    cx_arena_done(&own);
}

static void measure_contract(void)
{
    const char *folder = cx_arena_printf(&arena, "%s/repo", base).data;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    need(cx_io_read_file(cx_io_system(), CX_BENCH_GOLDEN "/success/contract.input.json", FILE_LIMIT,
                         &text, &err),
         "contract");
    contract_text = cx_arena_copy_str(&arena, cx_buf_str(&text));
    cx_buf_done(&text);
    need(cx_path_make_folders(cx_arena_printf(&arena, "%s/src/app", folder).data, &err), folder);
    for (unsigned i = 0; i < REPO_FILES; i++) {
        const char *path = i == 0 ? cx_arena_printf(&arena, "%s/test.sh", folder).data
                                  : cx_arena_printf(&arena, "%s/src/app/f%03u.c", folder, i).data;
        need(cx_io_replace_file(cx_io_system(), path, cx_str_bytes(CX_STR("int x;\n")), &err),
             path);
    }
    start((const char *const[]){"/usr/bin/git", "init", "-q", "-b", "main", NULL}, folder);
    start((const char *const[]){"/usr/bin/git", "add", "-A", NULL}, folder);
    start((const char *const[]){"/usr/bin/git", "-c", "user.name=a", "-c",
                                "user.email=a@example.com", "commit", "-q", "-m", "base", NULL},
          folder);
    need(cx_git_open(folder, NULL, NULL, &git, &err), folder);
    bench_side sides[] = {
        {.name = "contract judged", .work = judge, .units = 1},
        {.name = "JSON read, schema checked", .work = read_and_check, .units = 1}};
    bench_measure(sides, 2);
    print_row("a contract judged over git, 100 files / its JSON read and checked (rate)", sides);
    cx_git_close(git);
}

/* --- a bundle --------------------------------------------------------------------------------- */

static const char *const named[] = {"contract.json",
                                    "patch.diff",
                                    "diff_name_only.txt",
                                    "reports/task_result.json",
                                    "reports/review_report.json",
                                    "reports/test_report.json",
                                    "reports/work_report.json",
                                    "reports/evidence_report.json"};
#define NAMED_COUNT (sizeof named / sizeof *named)

static cx_run_store store;

static const char *file_name(unsigned i, char out[64])
{
    if (i < NAMED_COUNT)
        return named[i];
    (void)snprintf(out, 64, "artifacts/f%03u.bin", i);
    return out;
}

static cx_run *begin(void)
{
    static uint8_t bytes[BUNDLE_FILE_BYTES];
    cx_run *run;
    char name[64];
    memset(bytes, 'x', sizeof bytes);
    cx_run_begin_options options = {.store = &store, .task_id = CX_STR("bench")};
    need(cx_run_begin(&options, &run, &err), "begin");
    for (unsigned i = 0; i < BUNDLE_FILES; i++)
        need(cx_run_file_write(run, cx_str_z(file_name(i, name)), (cx_bytes){bytes, sizeof bytes},
                               &err),
             name);
    cx_run_event created = {.level = CX_RUN_INFO,
                            .type = CX_RUN_EVENT_RUN_CREATED,
                            .task_id = CX_STR("bench"),
                            .attempt = -1};
    need(cx_json_parse_text(CX_STR("{}"), &arena, &created.payload, &err), "payload");
    need(cx_run_event_append(run, &created, NULL, &err), "event");
    return run;
}

static cx_run_ref find(const cx_run_ref *files, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(files[i].path, path))
            return files[i];
    return (cx_run_ref){0};
}

static void seal(cx_run *run)
{
    cx_arena own;
    const cx_run_ref *files;
    size_t count;
    cx_json manifest;
    cx_run_sealed sealed;
    cx_arena_init(&own, cx_alloc_default(), 0);
    need(cx_run_finish(run, CX_RUN_SUCCESS, 0, &own, &files, &count, &err), "finish");
    cx_run_manifest_task task = {.task_id = CX_STR("bench"),
                                 .role = CX_STR("WORKER"),
                                 .agent_id = CX_STR("agent-1"),
                                 .status = CX_RUN_TASK_SUCCESS,
                                 .contract = find(files, count, "contract.json")};
    cx_run_manifest_facts facts = {.run_id = cx_run_id(run),
                                   .task_id = task.task_id,
                                   .created_at = CX_STR("2026-01-01T00:00:00.000000Z"),
                                   .status = CX_RUN_SUCCESS,
                                   .trace_id = cx_run_trace_id(run),
                                   .runner_name = CX_STR("replay-script"),
                                   .cortex_version = CX_STR("bench"),
                                   .tasks = &task,
                                   .task_count = 1,
                                   .files = files,
                                   .file_count = count};
    need(cx_run_report_manifest(&facts, &own, &manifest, &err), "manifest");
    cx_run_seal_facts what = {.task_id = task.task_id, .status = CX_RUN_SUCCESS};
    need(cx_run_seal(run, &manifest, &what, &sealed, &err), "seal");
    cx_arena_done(&own);
}

/* The same files, open, as sha256sum sees them; then as many syncs and changes of mode. */
static void bare_seal(const char *folder)
{
    static const char *argv[BUNDLE_FILES + 2] = {"/usr/bin/sha256sum"};
    char name[64];
    const cx_io *io = cx_io_system();
    cx_file file;
    for (unsigned i = 0; i < BUNDLE_FILES; i++)
        argv[i + 1] = cx_arena_copy_str(&arena, cx_str_z(file_name(i, name))).data;
    start(argv, folder);
    const char *log = cx_arena_printf(&arena, "%s/log", base).data;
    if (io->open(io, log, CX_IO_WRITE | CX_IO_CREATE | CX_IO_APPEND, &file) != 0)
        exit(1);
    for (unsigned i = 0; i < SEAL_SYNCS; i++) {
        need(cx_io_write_all(io, file, log, folder, strlen(folder), &err), log);
        if (io->sync(io, file, false) != 0)
            exit(1);
    }
    (void)io->close(io, file);
    for (unsigned i = 0; i < BUNDLE_FILES; i++)
        need(cx_path_set_mode(cx_arena_printf(&arena, "%s/%s", folder, argv[i + 1]).data, 0444,
                              &err),
             name);
}

/* A sync pays for what others left in the file system's journal: not while a side is measured. */
static double time_after_sync(void)
{
    need(cx_io_replace_file(cx_io_system(), cx_arena_printf(&arena, "%s/settled", base).data,
                            cx_str_bytes(CX_STR("x")), &err),
         base);
    return bench_seconds(CLOCK_MONOTONIC);
}

static void measure_seal(void)
{
    double seconds[2][BENCH_TURNS];
    const char *root = cx_arena_printf(&arena, "%s/root", base).data;
    need(cx_run_store_open(&store, root, true, NULL, NULL, &err), root);
    for (size_t turn = 0; turn <= BENCH_TURNS; turn++) {
        size_t at = turn == 0 ? 0 : turn - 1; /* the first one warms up */
        cx_run *run = begin(), *peer = begin();
        double before = time_after_sync();
        seal(run);
        seconds[0][at] = bench_seconds(CLOCK_MONOTONIC) - before;
        before = time_after_sync();
        bare_seal(cx_run_folder(peer));
        seconds[1][at] = bench_seconds(CLOCK_MONOTONIC) - before;
        cx_run_end(run);
        cx_run_end(peer);
    }
    bench_side sides[] = {{.name = "finished and sealed"}, {.name = "sha256sum, syncs, modes"}};
    for (size_t i = 0; i < 2; i++)
        sides[i].rate = bench_rate_of(seconds[i], BENCH_TURNS, 1, 0);
    print_row("sealing 200 files, 10 MB / sha256sum and as many syncs and modes (rate)", sides);
}

int main(void)
{
    const char *temp = getenv("TMPDIR");
    cx_arena_init(&arena, cx_alloc_default(), 0);
    base = cx_arena_printf(&arena, "%s/cortex-bench-steps-%llu", temp == NULL ? "/tmp" : temp,
                           (unsigned long long)cx_io_system()->process_id(cx_io_system()))
               .data;
    need(cx_path_make_folders(base, &err), base);
    measure_contract();
    measure_seal();
    need(cx_path_remove_tree(base, &err), base);
    cx_arena_done(&arena);
    return 0;
}
