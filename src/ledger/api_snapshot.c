/*
 * api_snapshot.c - the installed calls on snapshots (cortex/journal.h), and the report on a whole
 * data directory.
 */
#include "base/api.h"
#include "ledger/handle.h"
#include "ledger/snapshot.h"

/* --- manifests -------------------------------------------------------------------------------- */

static cx_status copy_manifest_out(cx_ledger *ledger, const cx_manifest *from,
                                   cx_ledger_manifest *out, cx_err *err)
{
    cx_buf bytes;
    cx_owned memory;
    cx_manifest manifest;
    cx_buf_init(&bytes, ledger->alloc);
    cx_manifest_encode(from, &bytes);
    CX_TRY(cx_owned_from_buf(&bytes, &memory, err));
    cx_status status = cx_manifest_decode(cx_owned_bytes(&memory), &manifest, err);
    if (cx_failed(status)) {
        cx_owned_done(&memory);
        return status;
    }
    *out = (cx_ledger_manifest){
        .snapshot = manifest.snapshot_seq,
        .actor = manifest.actor,
        .scheme = cx_scheme_name(manifest.scheme).data,
        .state = {.journal_size = manifest.journal_size,
                  .journal_root = manifest.journal_root,
                  .edges_root = manifest.edges_root,
                  .memories_root = manifest.memories_root,
                  .overall_root = manifest.overall_root},
        .created_at_ns = manifest.created_ns,
        .reason = manifest.trigger,
        .sealed = !manifest.signature.null,
        .signed_by = manifest.signed_by,
        .live_memories = manifest.live_memories,
        .tombstoned = manifest.tombstoned,
        .edge_count = manifest.edge_count,
        .bytes = cx_owned_bytes(&memory),
        .memory = memory,
    };
    return CX_SUCCESS;
}

void cx_ledger_manifest_done(cx_ledger_manifest *manifest)
{
    cx_owned_done(&manifest->memory);
    *manifest = (cx_ledger_manifest){.memory = CX_OWNED_INIT};
}

/* The actor must exist: a misspelled name must not create one. */
static cx_status parse_existing_actor(cx_ledger *ledger, const char *actor, cx_str *out,
                                      cx_err *err)
{
    cx_actor_info info;
    CX_TRY(cx_api_text(actor, "the actor", out, err));
    return cx_home_actor(ledger->home, *out, &info, err);
}

cx_status cx_ledger_snapshot_make(cx_ledger *ledger, const char *actor, const char *reason,
                                  cx_ledger_manifest *out, cx_err *err)
{
    cx_str name, why;
    cx_arena arena;
    cx_manifest manifest;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    CX_TRY(cx_api_text_or(reason, "the reason", CX_STR("explicit"), &why, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_status status =
        cx_snapshot_make(ledger->home, name, why, cx_api_now(ledger), &arena, &manifest, err);
    if (!cx_failed(status))
        status = copy_manifest_out(ledger, &manifest, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_ledger_snapshot_get(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                 cx_ledger_manifest *out, cx_err *err)
{
    cx_str name;
    cx_arena arena;
    cx_manifest manifest;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_status status = cx_snapshot_get(ledger->home, name, snapshot, &arena, &manifest, NULL, err);
    if (!cx_failed(status))
        status = copy_manifest_out(ledger, &manifest, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_ledger_snapshot_find(cx_ledger *ledger, const char *actor,
                                  const cx_digest *overall_root, cx_ledger_manifest *out,
                                  cx_err *err)
{
    cx_str name;
    cx_arena arena;
    cx_manifest manifest;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_status status =
        cx_snapshot_by_root(ledger->home, name, overall_root, &arena, &manifest, NULL, err);
    if (!cx_failed(status))
        status = copy_manifest_out(ledger, &manifest, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_ledger_each_snapshot(cx_ledger *ledger, const char *actor,
                                  bool (*visit)(void *arg, const cx_ledger_manifest *manifest),
                                  void *arg, cx_err *err)
{
    cx_str name;
    cx_arena arena;
    const cx_manifest *manifests;
    size_t count = 0;
    bool more = true;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_status status = cx_snapshot_list(ledger->home, name, &arena, &manifests, &count, err);
    for (size_t i = 0; i < count && more; i++) {
        cx_ledger_manifest manifest;
        status = copy_manifest_out(ledger, &manifests[i], &manifest, err);
        if (cx_failed(status))
            break;
        more = visit(arg, &manifest);
        cx_ledger_manifest_done(&manifest);
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_ledger_snapshot_to_sign(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                     cx_owned *out, cx_err *err)
{
    cx_str name;
    cx_buf bytes;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    cx_buf_init(&bytes, ledger->alloc);
    cx_status status = cx_snapshot_to_sign(ledger->home, name, snapshot, &bytes, err);
    if (cx_failed(status)) {
        cx_buf_done(&bytes);
        return status;
    }
    return cx_owned_from_buf(&bytes, out, err);
}

cx_status cx_ledger_snapshot_seal(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                  const cx_ledger_seal *seal, cx_err *err)
{
    cx_str name, signed_by, by;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    CX_TRY(cx_api_text(seal->signed_by, "signed_by", &signed_by, err));
    CX_TRY(cx_api_text_or(seal->by, "by", (cx_str){NULL, 0}, &by, err));
    return cx_snapshot_seal(ledger->home, name, snapshot, signed_by, &seal->signature, &seal->key,
                            by, cx_api_now(ledger), err);
}

cx_status cx_ledger_snapshot_drop(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                  const char *by, cx_err *err)
{
    cx_str name, who;
    CX_TRY(parse_existing_actor(ledger, actor, &name, err));
    CX_TRY(cx_api_text_or(by, "by", (cx_str){NULL, 0}, &who, err));
    return cx_snapshot_drop(ledger->home, name, snapshot, who, cx_api_now(ledger), err);
}

/* --- the report on a whole home --------------------------------------------------------------- */

void cx_ledger_report_close(cx_ledger_report *report)
{
    if (report == NULL)
        return;
    cx_home_report_close(report->report);
    cx_alloc_free(report->alloc, report, sizeof *report);
}

cx_verdict cx_ledger_report_verdict(const cx_ledger_report *report)
{
    return cx_home_report_verdict(report->report);
}

size_t cx_ledger_report_count(const cx_ledger_report *report)
{
    return cx_home_report_count(report->report);
}

void cx_ledger_report_finding(const cx_ledger_report *report, size_t index, cx_ledger_finding *out)
{
    const cx_home_finding *finding = cx_home_report_finding(report->report, index);
    *out = (cx_ledger_finding){
        .check = finding->check,
        .reason = finding->reason,
        .actor = finding->actor,
        .where = finding->where,
        .message = finding->message,
    };
}

void cx_ledger_report_totals(const cx_ledger_report *report, cx_ledger_totals *out)
{
    const cx_home_totals *totals = cx_home_report_totals(report->report);
    *out = (cx_ledger_totals){
        .actors = totals->actors,
        .entries = totals->entries,
        .memories = totals->memories,
        .versions = totals->versions,
        .edges = totals->edges,
        .manifests = totals->manifests,
        .payloads = totals->payloads,
        .erased = totals->erased,
        .findings = totals->findings,
        .anchored = totals->anchored,
        .tables_checked = totals->tables_checked,
        .tables_note = totals->tables_note,
        .torn_bytes = totals->torn_bytes,
    };
}

size_t cx_ledger_report_actor_count(const cx_ledger_report *report)
{
    return cx_home_report_actor_count(report->report);
}

void cx_ledger_report_actor(const cx_ledger_report *report, size_t index, cx_ledger_actor_info *out,
                            cx_ledger_state *out_state)
{
    cx_actor_info info;
    cx_roots roots;
    cx_home_report_actor(report->report, index, &info, &roots);
    cx_api_actor(&info, out);
    cx_api_state(&roots, out_state);
}
