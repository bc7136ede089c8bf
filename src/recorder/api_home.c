/*
 * api_home.c - the installed calls that open a data directory (cortex/journal.h).  They are in this
 * module, and not in ledger/ like the others, because a data directory is opened with the derivers
 * of all modules.
 */
#include "base/api.h"
#include "ledger/api.h"
#include "memory/api.h"
#include "recorder/recorder.h"

static const cx_ledger_options no_options = CX_LEDGER_OPTIONS_INIT;

static cx_home_options home_options(const cx_ledger_options *from)
{
    const cx_ledger_options *options = from != NULL ? from : &no_options;
    return (cx_home_options){
        .alloc = options->alloc != NULL ? options->alloc : cx_alloc_default(),
        .read_only = options->read_only,
        .segment_bytes = options->segment_bytes,
        .derivers = &cx_recorder_deriver,
        .deriver_count = 1,
        .flush_timeout_ms = options->flush_timeout_ms,
        .progress = options->progress,
        .progress_arg = options->progress_arg,
    };
}

static cx_status need_path(const char *path, cx_err *err)
{
    return path == NULL || path[0] == 0
               ? cx_api_refuse(err, "expected the path of a data directory")
               : CX_SUCCESS;
}

cx_status cx_ledger_make(const char *path, const char *scheme, const cx_ledger_options *options,
                         cx_err *err)
{
    cx_scheme chosen;
    const cx_home_options home = home_options(options);
    CX_TRY(need_path(path, err));
    CX_TRY(cx_api_scheme(scheme, &chosen, err));
    return cx_home_create(path, chosen, &home, err);
}

cx_status cx_ledger_open(const char *path, const cx_ledger_options *options, cx_ledger **out,
                         cx_err *err)
{
    const cx_home_options home = home_options(options);
    CX_TRY(need_path(path, err));
    cx_ledger *ledger = cx_alloc_zeroed(home.alloc, 1, sizeof *ledger);
    if (ledger == NULL)
        return cx_fail_nomem(err);
    ledger->alloc = home.alloc;
    cx_status status = cx_home_open(path, &home, &ledger->home, err);
    if (cx_failed(status)) {
        cx_alloc_free(home.alloc, ledger, sizeof *ledger);
        return status;
    }
    *out = ledger;
    return CX_SUCCESS;
}

cx_status cx_ledger_erase(cx_ledger *ledger, const char *actor, uint64_t seq, const char *reason,
                          const char *by, cx_err *err)
{
    cx_str name, why, who;
    cx_actor_info info;
    cx_memory *memory;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    CX_TRY(cx_api_text_or(reason, "the reason", CX_STR(""), &why, err));
    CX_TRY(cx_api_text_or(by, "by", CX_STR(""), &who, err));
    CX_TRY(cx_home_actor(ledger->home, name, &info, err));
    const cx_memory_options options = {.alloc = ledger->alloc};
    CX_TRY(cx_memory_open(ledger->home, name, &options, &memory, err));
    cx_status status = cx_memory_redact(memory, seq, why, who, err);
    cx_memory_close(memory);
    return status;
}

/* --- verifying -------------------------------------------------------------------------------- */

static cx_status read_anchors(const cx_ledger_verify_options *options, cx_arena *arena,
                              const cx_anchor_point **out, cx_err *err)
{
    cx_anchor_point *points = CX_ARENA_ARRAY(arena, cx_anchor_point, options->anchor_count + 1);
    if (points == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < options->anchor_count; i++) {
        const cx_ledger_anchor *anchor = &options->anchors[i];
        points[i] =
            (cx_anchor_point){.size = anchor->journal_size, .journal_root = anchor->journal_root};
        if (anchor->manifest.size == 0)
            continue;
        cx_manifest *manifest = CX_ARENA_NEW(arena, cx_manifest);
        if (manifest == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_manifest_decode(anchor->manifest, manifest, err));
        points[i] = (cx_anchor_point){.size = manifest->journal_size,
                                      .journal_root = manifest->journal_root,
                                      .manifest = manifest};
    }
    *out = points;
    return CX_SUCCESS;
}

static cx_status verify(const char *path, const cx_ledger_verify_options *options, cx_arena *arena,
                        cx_home_report **out, cx_err *err)
{
    const cx_ledger_options open = {.alloc = arena->alloc,
                                    .progress = options->progress,
                                    .progress_arg = options->progress_arg};
    cx_home_verify_options verify_options = {
        .home = home_options(&open),
        .anchor_count = options->anchor_count,
        .require_anchored = options->require_anchored,
        .seal_key = options->seal_key,
        .finding_max = options->finding_max,
    };
    CX_TRY(cx_api_text_or(options->actor, "the actor", CX_STR(""), &verify_options.actor, err));
    CX_TRY(read_anchors(options, arena, &verify_options.anchors, err));
    return cx_home_verify(path, &verify_options, out, err);
}

cx_status cx_ledger_verify(const char *path, const cx_ledger_verify_options *options,
                           cx_ledger_report **out, cx_err *err)
{
    static const cx_ledger_verify_options all = CX_LEDGER_VERIFY_OPTIONS_INIT;
    cx_arena arena;
    if (options == NULL)
        options = &all;
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    CX_TRY(need_path(path, err));
    cx_ledger_report *report = cx_alloc_zeroed(alloc, 1, sizeof *report);
    if (report == NULL)
        return cx_fail_nomem(err);
    report->alloc = alloc;
    cx_arena_init(&arena, alloc, 0);
    cx_status status = verify(path, options, &arena, &report->report, err);
    cx_arena_done(&arena);
    if (cx_failed(status)) {
        cx_alloc_free(alloc, report, sizeof *report);
        return status;
    }
    *out = report;
    return CX_SUCCESS;
}

/* --- rebuilding ------------------------------------------------------------------------------- */

cx_status cx_ledger_rebuild(const char *path, const cx_ledger_options *options,
                            cx_ledger_rebuild_mode mode, cx_ledger_rebuilt *out, cx_err *err)
{
    const cx_home_options home = home_options(options);
    cx_rebuild_mode how;
    cx_rebuild_result result;
    CX_TRY(need_path(path, err));
    switch (mode) {
    case CX_LEDGER_REBUILD: how = CX_REBUILD; break;
    case CX_LEDGER_REBUILD_REPLACE: how = CX_REBUILD_REPLACE; break;
    case CX_LEDGER_REBUILD_COMPARE: how = CX_REBUILD_VERIFY_ONLY; break;
    default: return cx_api_refuse(err, "unknown rebuild option");
    }
    CX_TRY(cx_home_rebuild(path, &home, how, &result, err));
    if (out != NULL)
        *out = (cx_ledger_rebuilt){
            .entries = result.entries,
            .records = result.records,
            .changed = result.changed,
            .resumed = result.resumed,
        };
    return CX_SUCCESS;
}
