/*
 * events_recover.c - the event log of a run that died (run.md §17, "After a crash").
 *
 * Because of the order in which events.c writes, a crash leaves one of these, and nothing else:
 *   whole            n events, n links
 *   torn event       n events and a piece of one without '\n'; n links
 *   missing link     n events; n - 1 links, perhaps a piece of the last one
 * A piece of a link is thrown away, for the link is computed again.  Whatever does not look like
 * one of them was not a crash.
 */
#include "os/api.h"
#include "crypto/api.h"
#include "bundle/events_internal.h"
#include "bundle/store.h"

#define TORN_NAME "artifacts/torn_tail.bin"
#define TORN_BYTES_MAX ((size_t)64 << 20)

typedef struct found {
    cx_buf events, chain;
    size_t events_whole; /* bytes of whole lines */
    size_t chain_whole;
    uint64_t event_count, link_count;
    cx_digest last_event; /* sha256 of the last whole line */
    cx_digest heads[2];   /* after the last link, and after the one before it */
    cx_run_recovery recovery;
} found;

static cx_status corrupt(cx_err *err, const char *name, uint64_t line, const char *what)
{
    return cx_fail(err, CX_E_FORMAT,
                   "%s line %llu: %s; a crash does not do that, so nothing was repaired", name,
                   (unsigned long long)line, what);
}

static cx_status read_log_file(cx_run_events *log, const char *name, cx_buf *out, size_t *out_whole,
                               cx_err *err)
{
    cx_str path = cx_arena_printf(&log->arena, "%s/%s", log->options.folder, name);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_io_read_file(log->options.io, path.data, CX_RUN_EVENTS_BYTES_MAX, out, err));
    *out_whole = out->size;
    while (*out_whole != 0 && out->data[*out_whole - 1] != '\n')
        --*out_whole;
    return CX_SUCCESS;
}

/* Static text for a state's name, "" for none. */
static cx_str state_named(cx_str name)
{
    static const char *const states[] = {"S0", "S1", "S2", "S3", "S4", "S5", "S6", "FAIL"};
    for (size_t i = 0; i < CX_COUNT_OF(states); i++)
        if (cx_str_is(name, states[i]))
            return cx_str_z(states[i]);
    return CX_STR("");
}

static cx_status check_event(cx_run_events *log, found *f, cx_str line, cx_err *err)
{
    cx_run_event_read event;
    uint64_t index = f->event_count + 1;
    if (index > CX_RUN_EVENTS_MAX)
        return cx_fail(err, CX_E_LIMIT, CX_RUN_EVENTS_NAME " has more than %d lines",
                       CX_RUN_EVENTS_MAX);
    if (cx_failed(cx_run_event_parse(line, index, &log->scratch, &event, NULL)))
        return corrupt(err, CX_RUN_EVENTS_NAME, index, "found no event");
    if (!cx_str_eq(event.run_id, log->options.run_id))
        return corrupt(err, CX_RUN_EVENTS_NAME, index, "found the event of another run");
    if (event.ts.size != sizeof log->last_ts - 1 ||
        cx_str_cmp(event.ts, cx_str_z(log->last_ts)) < 0)
        return corrupt(err, CX_RUN_EVENTS_NAME, index, "found a time before the one above it");
    if (index == 1) {
        log->options.trace_id = cx_arena_copy_str(&log->arena, event.trace_id);
        if (log->options.trace_id.data == NULL)
            return cx_fail_nomem(err);
    } else if (!cx_str_eq(event.trace_id, log->options.trace_id)) {
        return corrupt(err, CX_RUN_EVENTS_NAME, index, "found another trace id");
    }
    memcpy(log->last_ts, event.ts.data, event.ts.size);
    f->last_event = cx_digest_of(cx_str_bytes(line));
    f->event_count = index;
    f->recovery.finished |= event.kind == CX_RUN_EVENT_RUN_FINISHED;
    if (event.kind == CX_RUN_EVENT_STATE_TRANSITION) {
        cx_str to = state_named(CX_JSON_GET_STR(&event.payload, "to"));
        if (to.size != 0)
            f->recovery.last_state = to;
    }
    return CX_SUCCESS;
}

/* The events, one by one, each with its link where there is one. */
static cx_status compare_with_chain(cx_run_events *log, found *f, cx_err *err)
{
    cx_str events = cx_str_from((const char *)f->events.data, f->events_whole);
    cx_str chain = cx_str_from((const char *)f->chain.data, f->chain_whole);
    cx_str line, link;
    while (cx_run_next_line(&events, &line)) {
        cx_arena_mark mark = cx_arena_mark_now(&log->scratch);
        cx_status status = check_event(log, f, line, err);
        cx_arena_reset(&log->scratch, mark);
        CX_TRY(status);
        if (!cx_run_next_line(&chain, &link))
            continue;
        if (f->link_count + 1 != f->event_count)
            return corrupt(err, CX_RUN_CHAIN_NAME, f->link_count + 1, "found a link out of order");
        log->count = f->link_count;
        cx_digest head = cx_run_events_make_link(log, &f->last_event);
        CX_TRY(cx_buf_check(&log->link, err));
        if (!cx_str_eq(link, cx_str_from((const char *)log->link.data, log->link.size - 1)))
            return corrupt(err, CX_RUN_CHAIN_NAME, f->event_count, "the link is not the event's");
        f->link_count++;
        cx_run_events_set_head(log, &head);
    }
    if (chain.size != 0)
        return corrupt(err, CX_RUN_CHAIN_NAME, f->link_count + 1, "found a link without an event");
    log->count = f->link_count;
    return CX_SUCCESS;
}

static cx_status check_crash_shape(const found *f, cx_err *err)
{
    bool torn_event = f->events.size != f->events_whole;
    bool torn_link = f->chain.size != f->chain_whole;
    if (f->event_count - f->link_count > 1)
        return corrupt(err, CX_RUN_CHAIN_NAME, f->link_count + 1,
                       "the chain is more than one line short");
    if (f->event_count != f->link_count && torn_event)
        return corrupt(err, CX_RUN_EVENTS_NAME, f->event_count + 1,
                       "found more after an event that has no link yet");
    if (torn_link && f->event_count == f->link_count)
        return corrupt(err, CX_RUN_CHAIN_NAME, f->link_count + 1, "found more than the events");
    if (f->events.size - f->events_whole > TORN_BYTES_MAX)
        return corrupt(err, CX_RUN_EVENTS_NAME, f->event_count + 1, "the last line has no end");
    return CX_SUCCESS;
}

/* --- repairing -------------------------------------------------------------------------------- */

/* Keeps the piece.  Done again after another crash it changes nothing. */
static cx_status store_torn_tail(cx_run_events *log, cx_str piece, cx_err *err)
{
    cx_file folder;
    cx_buf stored;
    CX_TRY(cx_folder_open(log->options.folder, &folder, err));
    cx_buf_init(&stored, log->options.alloc);
    cx_status status = cx_folder_read_file(folder, TORN_NAME, TORN_BYTES_MAX, &stored, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
    if (!cx_failed(status) && !cx_str_ends(cx_buf_str(&stored), piece)) {
        cx_buf_add_str(&stored, piece);
        status = cx_buf_check(&stored, err);
        if (!cx_failed(status))
            status = cx_run_write_file_in(log->options.io, folder, TORN_NAME, cx_buf_bytes(&stored),
                                          err);
    }
    cx_buf_done(&stored);
    cx_folder_close(folder);
    return status;
}

static cx_status truncate_log(cx_run_events *log, cx_file file, const char *name, uint64_t size,
                              cx_err *err)
{
    const cx_io *io = log->options.io;
    int failed = io->truncate(io, file, size);
    if (failed == 0)
        failed = io->sync(io, file, false);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "%s", name);
}

static cx_status repair_log(cx_run_events *log, found *f, cx_err *err)
{
    size_t torn = f->events.size - f->events_whole;
    if (torn != 0) {
        cx_str piece = cx_str_from((const char *)f->events.data + f->events_whole, torn);
        CX_TRY(store_torn_tail(log, piece, err));
        CX_TRY(truncate_log(log, log->file, CX_RUN_EVENTS_NAME, f->events_whole, err));
    }
    if (f->link_count != f->event_count) {
        const cx_io *io = log->options.io;
        CX_TRY(truncate_log(log, log->chain, CX_RUN_CHAIN_NAME, f->chain_whole, err));
        cx_digest head = cx_run_events_make_link(log, &f->last_event);
        CX_TRY(cx_buf_check(&log->link, err));
        CX_TRY(cx_io_write_all(io, log->chain, CX_RUN_CHAIN_NAME, log->link.data, log->link.size,
                               err));
        int failed = io->sync(io, log->chain, false);
        if (failed != 0)
            return cx_fail_os(err, -failed, CX_RUN_CHAIN_NAME);
        cx_run_events_set_head(log, &head);
        log->count = f->event_count;
    }
    f->recovery.events = f->event_count;
    f->recovery.torn_bytes = torn;
    f->recovery.chain_completed = f->link_count != f->event_count;
    /* It is unknown whether the ledger heard of the last one; twice does no harm. */
    return f->event_count == 0 ? CX_SUCCESS
                               : cx_run_events_append_to_ledger(log, &f->last_event, err);
}

static cx_status write_recovered_event(cx_run_events *log, const found *f, cx_err *err)
{
    cx_run_event event = {.level = CX_RUN_WARN, .type = CX_RUN_EVENT_LOG_RECOVERED, .attempt = -1};
    cx_arena *arena = &log->arena;
    cx_json_list payload = cx_json_list_begin(arena);
    cx_json_list_put(&payload, CX_STR("events"), cx_json_make_uint(arena, f->recovery.events));
    cx_json_list_put(&payload, CX_STR("torn_bytes"),
                     cx_json_make_uint(arena, f->recovery.torn_bytes));
    cx_json_list_put(&payload, CX_STR("chain_completed"),
                     cx_json_make_bool(f->recovery.chain_completed));
    if (f->recovery.torn_bytes != 0)
        cx_json_list_put(&payload, CX_STR("torn_tail"), cx_json_make_str(CX_STR(TORN_NAME)));
    CX_TRY(cx_json_list_end_object(&payload, &event.payload, err));
    return cx_run_events_append(log, &event, NULL, err);
}

/* A log without any event has nothing to be recovered into. */
static bool was_repaired(const found *f)
{
    return f->event_count != 0 &&
           (f->recovery.torn_bytes != 0 || f->recovery.chain_completed || f->recovery.finished);
}

cx_status cx_run_events_recover(const cx_run_events_options *options, cx_run_events **out,
                                cx_run_recovery *out_recovery, cx_err *err)
{
    CX_ASSERT(options != NULL && out != NULL);
    cx_run_events *log;
    found f = {.recovery = {.last_state = CX_STR("S0")}};
    cx_status status;
    CX_TRY(cx_run_events_open_files(options, 0, &log, err));
    cx_buf_init(&f.events, options->alloc);
    cx_buf_init(&f.chain, options->alloc);
    CX_TRY_GOTO(status, read_log_file(log, CX_RUN_EVENTS_NAME, &f.events, &f.events_whole, err));
    CX_TRY_GOTO(status, read_log_file(log, CX_RUN_CHAIN_NAME, &f.chain, &f.chain_whole, err));
    CX_TRY_GOTO(status, compare_with_chain(log, &f, err));
    CX_TRY_GOTO(status, check_crash_shape(&f, err));
    CX_TRY_GOTO(status, repair_log(log, &f, err));
    if (was_repaired(&f))
        CX_TRY_GOTO(status, write_recovered_event(log, &f, err));
done:
    cx_buf_done(&f.events);
    cx_buf_done(&f.chain);
    if (cx_failed(status)) {
        cx_run_events_close(log);
    } else {
        *out = log;
        *out_recovery = f.recovery;
    }
    return status;
}
