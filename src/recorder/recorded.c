/*
 * recorded.c - reads a trace from the ledger: entry, record, and the trace itself.
 */
#include "recorder/internal.h"

static cx_status no_trace(cx_str actor, uint64_t seq, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoTrace", CX_NO_OFFSET,
                      "entry %llu of %.*s is not a received trace", (unsigned long long)seq,
                      (int)actor.size, actor.data);
}

/* An erased trace does not contain its id any more, but the key of its record does. */
static cx_status find_record(cx_home *home, cx_str actor, cx_str trace_id, cx_trace_level level,
                             cx_arena *arena, cx_trace_record *out, cx_err *err)
{
    cx_trace_record_key name;
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_home_get(home, actor, cx_trace_record_name(&name, level, trace_id), arena, &value,
                       &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoTrace", CX_NO_OFFSET, "the trace has no record");
    return cx_trace_record_decode(value, out, err);
}

cx_status cx_recorder_recorded(cx_home *home, cx_str actor, uint64_t seq, cx_trace_level level,
                               cx_arena *arena, cx_recorded *out, cx_err *err)
{
    cx_trace_problem problem;
    *out = (cx_recorded){.record = {.level = level}};
    CX_TRY(cx_home_entry(home, actor, seq, arena, &out->entry, err));
    if (!cx_str_eq(out->entry.entry.kind, CX_KIND_RECEIVED))
        return no_trace(actor, seq, err);
    out->erased = out->entry.payload_erased;
    if (out->erased)
        return CX_SUCCESS;
    CX_TRY(cx_trace_read_stored(out->entry.payload, arena, &out->trace, &problem, err));
    if (out->trace.trace_id.data == NULL)
        return no_trace(actor, seq, err);
    return find_record(home, actor, out->trace.trace_id, level, arena, &out->record, err);
}
