/*
 * recorder.c - opens a recorder, and holds the derivers with which every data directory is opened.
 */
#include "recorder/recorder.h"

#include "base/api.h"
#include "memory/api.h"
#include "recorder/internal.h"
#include "recorder/pending.h"
#include "recorder/rows/run_rows.h"
#include "recorder/step_record.h"

/* A recorded step is found by its hash, which its record is named by. */
static cx_status derive_step(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                             size_t count, cx_err *err)
{
    const size_t size = sizeof CX_STEP_NODE_PREFIX - 1;
    if (entry == NULL || !cx_kinds_is(entry->kind, CX_KIND_LATTICE_NODE))
        return CX_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        cx_digest hash;
        if (changes[i].key.size != size + sizeof hash.bytes ||
            memcmp(changes[i].key.data, CX_STEP_NODE_PREFIX, size) != 0)
            continue;
        memcpy(hash.bytes, changes[i].key.data + size, sizeof hash.bytes);
        CX_TRY(cx_derive_hash(at, &hash, err));
    }
    return CX_SUCCESS;
}

static cx_status derive_rows(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                             size_t count, cx_err *err)
{
    CX_TRY(cx_memory_deriver.derive(at, entry, changes, count, err));
    CX_TRY(cx_trace_deriver.derive(at, entry, changes, count, err));
    CX_TRY(cx_run_deriver.derive(at, entry, changes, count, err));
    return derive_step(at, entry, changes, count, err);
}

/* The ledger itself checks the form of records that the module memory reads. */
static cx_status check_derived(const cx_entry *entry, const cx_change *changes, size_t count,
                               cx_arena *arena, cx_err *err)
{
    return cx_trace_deriver.check(entry, changes, count, arena, err);
}

/* The names of all with their versions: when one changes, the tables are rebuilt. */
const cx_deriver cx_recorder_deriver = {
    .name = "memory/4,trace/2,run/2,step/1", .derive = derive_rows, .check = check_derived};

int64_t cx_recorder_now(const cx_recorder *recorder)
{
    const cx_recorder_options *options = &recorder->options;
    if (options->now_ns != NULL)
        return options->now_ns(options->now_arg);
    const cx_io *io = cx_home_io(recorder->home);
    return (int64_t)io->wall_ns(io);
}

cx_status cx_recorder_open(cx_home *home, const cx_recorder_options *options, cx_recorder **out,
                           cx_err *err)
{
    static const cx_recorder_options none = {0};
    const cx_recorder_options *given = options != NULL ? options : &none;
    const cx_alloc *alloc = given->alloc != NULL ? given->alloc : cx_alloc_default();
    cx_recorder *recorder = cx_alloc_zeroed(alloc, 1, sizeof *recorder);
    if (recorder == NULL)
        return cx_fail_nomem(err);
    recorder->alloc = alloc;
    recorder->home = home;
    recorder->options = *given;
    if (recorder->options.forms == 0)
        recorder->options.forms = CX_FORMS_ALL;
    cx_lock_init(&recorder->lock);
    cx_status status = cx_pending_new(alloc, cx_home_path(home), &recorder->pending, err);
    if (!cx_failed(status))
        status = cx_deliveries_new(alloc, cx_home_path(home), &recorder->deliveries, err);
    if (cx_failed(status))
        cx_recorder_close(recorder);
    else
        *out = recorder;
    return status;
}

void cx_recorder_close(cx_recorder *recorder)
{
    if (recorder == NULL)
        return;
    cx_recorder_feed_end(recorder);
    cx_recorder_trust_release(recorder, recorder->view);
    cx_pending_free(recorder->pending);
    cx_deliveries_free(recorder->deliveries);
    cx_lock_done(&recorder->lock);
    cx_alloc_free(recorder->alloc, recorder, sizeof *recorder);
}

cx_home *cx_recorder_home(cx_recorder *recorder)
{
    return recorder->home;
}

const cx_sensitive_rules *cx_recorder_sensitive(const cx_recorder *recorder)
{
    return recorder->options.sensitive;
}
