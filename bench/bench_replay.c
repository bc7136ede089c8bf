/*
 * bench_replay.c - looking back at a run of many events.
 *
 *     bench_replay [events]
 *
 * R4 verifies a bundle of 10,000 events; the reference is sha256sum (coreutils) over the same
 * files. Below it, for information: telling the run again from its events, and making its lattice.
 * The bundle is the golden one (tests/vectors/run) with as many tool invocations as are asked for.
 */
#include "bench/bench.h"

#include <unistd.h>

#include "base/alloc.h"
#include "os/folder.h"
#include "os/spawn.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "provenance/run_lattice.h"
#include "audit/replay.h"

#define REPEATED_LINE 18 /* TOOL_INVOCATION, from 1 */
#define FILES_MAX 64

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_replay: %s\n", err->message);
        exit(1);
    }
}

typedef struct stage {
    char folder[256]; /* of the bundle: its run's id after a temporary folder */
    char base[200];
    const char *argv[FILES_MAX + 3]; /* sha256sum and every file */
    size_t file_count;
    cx_arena arena;
} stage;

/* --- the bundle ------------------------------------------------------------------------------- */

static cx_bytes read_golden(stage *s, cx_str path)
{
    cx_err err;
    cx_buf text;
    cx_str name = cx_arena_printf(&s->arena, "%s/%.*s", CX_BENCH_GOLDEN, (int)path.size, path.data);
    cx_buf_init(&text, cx_alloc_default());
    must(cx_io_read_file(cx_io_system(), name.data, 1 << 20, &text, &err), &err);
    cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return cx_str_bytes(copy);
}

static void write_file(stage *s, cx_str path, cx_bytes contents)
{
    cx_err err;
    cx_file file;
    const cx_io *io = cx_io_system();
    cx_str name = cx_arena_printf(&s->arena, "%s/%.*s", s->folder, (int)path.size, path.data);
    char *slash = strrchr((char *)(uintptr_t)name.data, '/');
    *slash = 0;
    must(cx_path_make_folders(name.data, &err), &err);
    *slash = '/';
    if (io->open(io, name.data, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &file) != 0)
        exit(1);
    must(cx_io_write_all(io, file, name.data, contents.data, contents.size, &err), &err);
    (void)io->close(io, file);
}

/* The golden events, one of them so often that there are `count`. */
static void make_events(cx_str golden, size_t count, cx_buf *events, cx_buf *chain)
{
    cx_str line, rest = golden;
    size_t lines = 0, at = 0;
    cx_digest before, link;
    for (size_t i = 0; i < golden.size; i++)
        lines += golden.data[i] == '\n';
    while (cx_run_next_line(&rest, &line)) {
        size_t times = ++at == REPEATED_LINE && count > lines ? count - lines + 1 : 1;
        for (size_t i = 0; i < times; i++) {
            cx_buf_add_str(events, line);
            cx_buf_add_byte(events, '\n');
        }
    }
    rest = cx_buf_str(events);
    for (uint64_t index = 1; cx_run_next_line(&rest, &line); index++) {
        cx_digest event = cx_digest_of(cx_str_bytes(line));
        link = cx_run_chain_hash(index, index == 1 ? NULL : &before, &event);
        cx_buf_printf(chain, "{\"index\":%llu,\"event_sha256\":\"", (unsigned long long)index);
        cx_hex_add(chain, cx_bytes_from(event.bytes, 32));
        cx_buf_add_z(chain, "\",\"prev_hash\":\"");
        if (index != 1)
            cx_hex_add(chain, cx_bytes_from(before.bytes, 32));
        cx_buf_add_z(chain, "\",\"hash\":\"");
        cx_hex_add(chain, cx_bytes_from(link.bytes, 32));
        cx_buf_add_z(chain, "\"}\n");
        before = link;
    }
}

static cx_str text_at(const cx_json *value, const char *pointer)
{
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    return found == NULL ? CX_STR("") : cx_json_text(found);
}

/* A manifest over the files as they are now. */
static void write_manifest(stage *s, const cx_json *golden, cx_run_ref *files, size_t count)
{
    cx_err err;
    cx_json made;
    cx_buf text;
    cx_run_manifest_task task = {.task_id = text_at(golden, "/task_id"),
                                 .role = CX_STR("WORKER"),
                                 .agent_id = CX_STR("agent-1"),
                                 .status = CX_RUN_TASK_SUCCESS};
    for (size_t i = 0; i < count; i++) {
        if (cx_str_is(files[i].path, "contract.json"))
            task.contract = files[i];
        if (cx_str_is(files[i].path, "reports/task_result.json"))
            task.result = files[i];
        if (cx_str_is(files[i].path, "reports/review_report.json"))
            task.review_report = files[i];
        if (cx_str_is(files[i].path, "reports/test_report.json"))
            task.test_report = files[i];
    }
    const cx_run_manifest_facts facts = {
        .run_id = text_at(golden, "/run_id"),
        .task_id = text_at(golden, "/task_id"),
        .created_at = text_at(golden, "/created_at"),
        .finished_at = text_at(golden, "/finished_at"),
        .status = CX_RUN_SUCCESS,
        .user_request = text_at(golden, "/user_request"),
        .trace_id = text_at(golden, "/trace_id"),
        .runner_name = CX_STR("replay-script"),
        .policy_pack = CX_STR("medium"),
        .baseline_commit = text_at(golden, "/repo/baseline_ref"),
        .final_commit = text_at(golden, "/repo/final_ref"),
        .cortex_version = CX_STR("bench"),
        .tasks = &task,
        .task_count = 1,
        .files = files,
        .file_count = count,
    };
    cx_buf_init(&text, cx_alloc_default());
    must(cx_run_report_manifest(&facts, &s->arena, &made, &err), &err);
    must(cx_run_json_write(&text, &made, &err), &err);
    write_file(s, CX_STR("manifest.json"), cx_buf_bytes(&text));
    cx_buf_done(&text);
}

static void make_bundle(stage *s, size_t count)
{
    cx_err err;
    cx_json manifest;
    cx_buf events, chain;
    must(cx_run_json_read(cx_bytes_str(read_golden(s, CX_STR("manifest.json"))), 0, &s->arena,
                          &manifest, &err),
         &err);
    snprintf(s->base, sizeof s->base, "/tmp/cortex-bench-replay-%ld", (long)getpid());
    cx_str run_id = text_at(&manifest, "/run_id");
    snprintf(s->folder, sizeof s->folder, "%s/%.*s", s->base, (int)run_id.size, run_id.data);
    cx_buf_init(&events, cx_alloc_default());
    cx_buf_init(&chain, cx_alloc_default());
    make_events(cx_bytes_str(read_golden(s, CX_STR("events.jsonl"))), count, &events, &chain);
    const cx_json *list = CX_JSON_GET(&manifest, "artifacts");
    cx_run_ref files[FILES_MAX];
    if (list->count > FILES_MAX)
        exit(1);
    s->argv[0] = "/usr/bin/sha256sum";
    for (uint32_t i = 0; i < list->count; i++) {
        cx_str path = CX_JSON_GET_STR(&list->items[i], "path");
        cx_bytes bytes = cx_str_is(path, "events.jsonl")             ? cx_buf_bytes(&events)
                         : cx_str_is(path, "events.hashchain.jsonl") ? cx_buf_bytes(&chain)
                                                                     : read_golden(s, path);
        write_file(s, path, bytes);
        files[i] = cx_run_ref_of(path, bytes);
        s->argv[i + 1] =
            cx_arena_printf(&s->arena, "%s/%.*s", s->folder, (int)path.size, path.data).data;
    }
    s->argv[list->count + 1] = NULL;
    write_manifest(s, &manifest, files, list->count);
    printf("     %zu events, %.1f MB of events, %u files\n", count, (double)events.size * 1e-6,
           list->count + 1);
    cx_buf_done(&chain);
    cx_buf_done(&events);
}

/* --- sides ------------------------------------------------------------------------------------ */

static cx_run_bundle *open_bundle(const stage *s)
{
    cx_err err;
    cx_run_bundle *bundle = NULL;
    must(cx_run_bundle_open(cx_io_system(), cx_alloc_default(), s->folder, &bundle, &err), &err);
    return bundle;
}

static void verify(void *arg)
{
    const stage *s = arg;
    cx_err err;
    cx_arena arena;
    cx_run_verdict verdict;
    cx_run_bundle *bundle = open_bundle(s);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_run_verify(bundle, NULL, &arena, &verdict, &err), &err);
    if (verdict.verdict != CX_INDETERMINATE) {
        fprintf(stderr, "bench_replay: the bundle does not hold: %s\n",
                verdict.findings.list.count == 0 ? "?" : verdict.findings.list.items[0].rule);
        exit(1);
    }
    cx_run_findings_done(&verdict.findings);
    cx_arena_done(&arena);
    cx_run_bundle_close(bundle);
}

static void replay(void *arg)
{
    const stage *s = arg;
    cx_err err;
    cx_arena arena;
    cx_run_rehydration done;
    cx_run_bundle *bundle = open_bundle(s);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_run_rehydrate(bundle, NULL, NULL, &arena, &done, &err), &err);
    if (done.exit_code != 3) /* unsealed, and nothing else */
        exit(1);
    cx_arena_done(&arena);
    cx_run_bundle_close(bundle);
}

static void weave(void *arg)
{
    const stage *s = arg;
    cx_err err;
    cx_bytes events;
    cx_buf lines;
    cx_run_bundle *bundle = open_bundle(s);
    cx_buf_init(&lines, cx_alloc_default());
    must(cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, &err),
         &err);
    must(cx_run_lattice_lines(cx_bytes_str(events), (cx_str){NULL, 0}, &lines, &err), &err);
    cx_buf_done(&lines);
    cx_run_bundle_close(bundle);
}

static void sum(void *arg)
{
    const stage *s = arg;
    cx_err err;
    cx_spawn_result result;
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    how.argv = s->argv;
    must(cx_spawn_run(&how, &result, &err), &err);
    if (result.exit_code != 0)
        exit(1);
}

int main(int argc, char **argv)
{
    static stage s;
    cx_err err;
    size_t count = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 10000;
    cx_arena_init(&s.arena, cx_alloc_default(), 0);
    make_bundle(&s, count);
    bench_side sides[] = {{.name = "verify", .work = verify, .arg = &s, .units = 1},
                          {.name = "sha256sum", .work = sum, .arg = &s, .units = 1},
                          {.name = "replay", .work = replay, .arg = &s, .units = 1},
                          {.name = "lattice", .work = weave, .arg = &s, .units = 1}};
    bench_measure(sides, CX_COUNT_OF(sides));
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "/s");
    /* Times as long as the reference: at most 4 is a rate of at least a quarter. */
    bool good = bench_print_row("R4", "verify a bundle / sha256sum of its files", &sides[0].rate,
                                &sides[1].rate, 1, 0.25);
    (void)bench_print_row("R4r", "tell a run again / sha256sum of its files", &sides[2].rate,
                          &sides[1].rate, 1, 0);
    (void)bench_print_row("R4l", "the lattice of a run / sha256sum of its files", &sides[3].rate,
                          &sides[1].rate, 1, 0);
    cx_status removed = cx_path_remove_tree(s.base, &err);
    (void)removed;
    cx_arena_done(&s.arena);
    return good ? 0 : 1;
}
