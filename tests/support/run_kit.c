#include "tests/support/run_kit.h"

#include "os/folder.h"
#include "base/hex.h"
#include "tests/test.h"

static cx_status take_entry(void *ctx, const char *kind, cx_str run_id, cx_bytes payload,
                            uint64_t *out_index, cx_err *err)
{
    run_kit *kit = ctx;
    (void)run_id;
    if (kit->ledger_fails || (kit->seal_fails && strcmp(kind, "run.seal") == 0))
        return cx_fail(err, CX_E_IO, "the ledger is out of reach");
    kit_entry *slot = cx_vec_push(&kit->entries, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    (void)snprintf(slot->kind, sizeof slot->kind, "%s", kind);
    slot->payload = cx_arena_copy_str(&kit->arena, cx_bytes_str(payload));
    if (out_index != NULL)
        *out_index = kit->entries.count - 1;
    return slot->payload.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Nothing here turns the power off: what a process wrote is there, synced or not. */
static int no_sync(const cx_io *io, cx_file file, bool data_only)
{
    (void)io;
    (void)file;
    (void)data_only;
    return 0;
}

const cx_io *run_kit_io(void)
{
    static cx_io fast;
    if (fast.sync == NULL) {
        fast = *cx_io_system();
        fast.sync = no_sync;
    }
    return &fast;
}

bool run_kit_init(run_kit *kit, const char *name, const cx_io *io, const cx_alloc *alloc)
{
    memset(kit, 0, sizeof *kit);
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
    folder_fresh(kit->root, name);
    (void)!cx_failed(cx_path_remove_tree(kit->root, NULL));
    kit->ledger = (cx_run_ledger){.ctx = kit, .append = take_entry, .append_once = NULL};
    cx_status status = cx_run_store_open(&kit->store, kit->root, true,
                                         io != NULL ? io : run_kit_io(), alloc, &kit->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "store: %s", kit->err.message);
    return !cx_failed(status);
}

void run_kit_done(run_kit *kit)
{
    (void)!cx_failed(cx_path_remove_tree(kit->root, NULL));
    cx_vec_done(&kit->entries, cx_alloc_default());
    cx_arena_done(&kit->arena);
}

cx_str run_kit_path(run_kit *kit, const char *relative)
{
    return cx_arena_printf(&kit->arena, "%s/%s", kit->root, relative);
}

static cx_status read_path(run_kit *kit, const char *path, cx_str *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), path, CX_RUN_JSON_BYTES_MAX, &text, err);
    if (!cx_failed(status))
        *out = cx_arena_copy_str(&kit->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return status;
}

cx_str run_kit_read(run_kit *kit, const char *relative)
{
    cx_str text = {NULL, 0};
    (void)!cx_failed(read_path(kit, run_kit_path(kit, relative).data, &text, NULL));
    return text;
}

cx_status run_kit_begin(run_kit *kit, cx_run **out, cx_err *err)
{
    cx_run_begin_options options = {.store = &kit->store,
                                    .run_id = CX_STR(KIT_RUN),
                                    .task_id = CX_STR(KIT_TASK),
                                    .trace_id = CX_STR("9116120105ff6ba6e95e2f8b7e3dce3c"),
                                    .ledger = &kit->ledger};
    return cx_run_begin(&options, out, err);
}

static const char *golden(run_kit *kit, const char *relative)
{
    return cx_arena_printf(&kit->arena, "%s/%s", cx_test_path("vectors/run/golden/success/bundle"),
                           relative)
        .data;
}

static cx_status copy_files(run_kit *kit, cx_run *run, cx_err *err)
{
    cx_run_bundle *bundle;
    size_t count;
    cx_status status = CX_SUCCESS;
    CX_TRY(cx_run_bundle_open(NULL, NULL, golden(kit, "."), &bundle, err));
    const cx_run_entry *entries = cx_run_bundle_entries(bundle, &count);
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        cx_bytes bytes;
        if (cx_str_is(entries[i].path, "manifest.json") ||
            cx_str_starts(entries[i].path, CX_STR("events.")))
            continue;
        status = cx_run_bundle_read(bundle, entries[i].path, CX_RUN_JSON_BYTES_MAX, &bytes, err);
        if (!cx_failed(status))
            status = cx_run_file_write(run, entries[i].path, bytes, err);
    }
    cx_run_bundle_close(bundle);
    return status;
}

static cx_status copy_events(run_kit *kit, cx_run *run, size_t limit, cx_err *err)
{
    cx_str text, line;
    size_t index = 0;
    CX_TRY(read_path(kit, golden(kit, "events.jsonl"), &text, err));
    while (cx_run_next_line(&text, &line) && (limit == 0 || index < limit)) {
        cx_run_event_read from;
        CX_TRY(cx_run_event_parse(line, ++index, &kit->arena, &from, err));
        cx_run_event event = {.level = CX_RUN_INFO,
                              .type = from.kind,
                              .task_id = from.task_id,
                              .attempt = from.has_attempt ? (int32_t)from.attempt : -1,
                              .payload = from.payload};
        if (!cx_str_is(from.type, "RUN_FINISHED"))
            CX_TRY(cx_run_event_append(run, &event, NULL, err));
    }
    return CX_SUCCESS;
}

cx_status run_kit_fill(run_kit *kit, cx_run *run, size_t events, cx_err *err)
{
    CX_TRY(copy_files(kit, run, err));
    return copy_events(kit, run, events, err);
}

static cx_run_ref find(const cx_run_ref *files, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(files[i].path, path))
            return files[i];
    return (cx_run_ref){0};
}

cx_status run_kit_seal(run_kit *kit, cx_run *run, cx_run_sealed *out, cx_err *err)
{
    static const char baseline[] = "93b8680ba499415e135df3981f4ad09433e69a54";
    static const char final[] = "29c8763eed1dfc639a893e6fbf3c913c12081689";
    const cx_run_ref *files;
    size_t count;
    cx_json manifest;
    CX_TRY(cx_run_finish(run, CX_RUN_SUCCESS, 0, &kit->arena, &files, &count, err));
    cx_run_manifest_task task = {
        .task_id = CX_STR(KIT_TASK),
        .role = CX_STR("WORKER"),
        .agent_id = CX_STR("agent-1"),
        .status = CX_RUN_TASK_SUCCESS,
        .contract = find(files, count, "contract.json"),
        .result = find(files, count, "reports/task_result.json"),
        .review_report = find(files, count, "reports/review_report.json"),
        .test_report = find(files, count, "reports/test_report.json"),
    };
    cx_run_manifest_facts facts = {
        .run_id = cx_run_id(run),
        .task_id = task.task_id,
        .created_at = CX_STR("2026-01-01T00:00:00.000000Z"),
        .finished_at = CX_STR("2026-01-01T00:01:00.000000Z"),
        .status = CX_RUN_SUCCESS,
        .user_request = CX_STR("add a helper"),
        .trace_id = cx_run_trace_id(run),
        .runner_name = CX_STR("replay-script"),
        .policy_pack = CX_STR("medium"),
        .baseline_commit = CX_STR(baseline),
        .final_commit = CX_STR(final),
        .cortex_version = CX_STR("test"),
        .tasks = &task,
        .task_count = 1,
        .files = files,
        .file_count = count,
    };
    CX_TRY(cx_run_report_manifest(&facts, &kit->arena, &manifest, err));
    cx_run_seal_facts seal = {.task_id = task.task_id,
                              .status = CX_RUN_SUCCESS,
                              .baseline_commit = CX_STR(baseline),
                              .final_commit = CX_STR(final)};
    return cx_run_seal(run, &manifest, &seal, out, err);
}

cx_status run_kit_write(run_kit *kit, cx_err *err)
{
    cx_run *run;
    cx_run_sealed sealed;
    CX_TRY(run_kit_begin(kit, &run, err));
    cx_status status = run_kit_fill(kit, run, 0, err);
    if (!cx_failed(status))
        status = run_kit_seal(kit, run, &sealed, err);
    cx_run_end(run);
    return status;
}

cx_status run_kit_witness(run_kit *kit, cx_json *seal, cx_run_witness *out, cx_err *err)
{
    cx_digest *events = CX_ARENA_ARRAY(&kit->arena, cx_digest, kit->entries.count + 1);
    *out = (cx_run_witness){.has_events = true, .events = events};
    if (events == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < kit->entries.count; i++) {
        cx_json value;
        uint64_t index = 0;
        CX_TRY(cx_run_json_read(kit->entries.items[i].payload, 0, &kit->arena, &value, err));
        if (strcmp(kit->entries.items[i].kind, "run.seal") == 0) {
            *seal = value;
            out->seal = seal;
        } else if (cx_json_uint64(CX_JSON_GET(&value, "index"), &index) && index != 0 &&
                   index <= kit->entries.count) {
            (void)cx_digest_parse(CX_JSON_GET_STR(&value, "hash"), &events[index - 1]);
            if (index > out->event_count)
                out->event_count = index;
        }
    }
    return CX_SUCCESS;
}

const char *run_kit_verdict(run_kit *kit, bool ledger)
{
    static char said[600];
    cx_run_bundle *bundle;
    cx_run_witness witness = {0};
    cx_run_verdict verdict;
    cx_json seal;
    cx_err err = {0};
    cx_status status =
        cx_run_bundle_open(NULL, NULL, run_kit_path(kit, "runs/" KIT_RUN).data, &bundle, &err);
    if (cx_failed(status)) {
        (void)snprintf(said, sizeof said, "%s", err.message);
        return said;
    }
    if (ledger)
        status = run_kit_witness(kit, &seal, &witness, &err);
    if (!cx_failed(status))
        status = cx_run_verify(bundle, &witness, &kit->arena, &verdict, &err);
    if (cx_failed(status)) {
        (void)snprintf(said, sizeof said, "%s", err.message);
    } else {
        const char *const *codes;
        size_t count = 0, used;
        used = (size_t)snprintf(said, sizeof said, "%s", cx_verdict_name(verdict.verdict));
        if (!cx_failed(cx_run_verdict_codes(&verdict, &kit->arena, &codes, &count, &err)))
            for (size_t i = 0; i < count && used < sizeof said - 64; i++)
                used += (size_t)snprintf(said + used, sizeof said - used, "%s%s",
                                         i == 0 ? ": " : " ", codes[i]);
        cx_run_findings_done(&verdict.findings);
    }
    cx_run_bundle_close(bundle);
    return said;
}
