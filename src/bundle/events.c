/*
 * events.c - appending to the event log of a run (run.md §17).
 *
 * Invariants, in this order on the disk:
 *   I1  a link is written only when its event is durable
 *   I2  the ledger gets an entry only when the link is durable
 *   I3  after a failed write or sync nothing more is written: what the disk holds is not known
 */
#include "bundle/events_internal.h"

#include <stdio.h>

#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"

static cx_status copy_option_text(cx_run_events *log, cx_str *text, cx_err *err)
{
    *text = cx_arena_copy_str(&log->arena, *text);
    return text->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status open_log_file(cx_run_events *log, const char *name, cx_file *out, cx_err *err)
{
    const cx_io *io = log->options.io;
    cx_str path = cx_arena_printf(&log->arena, "%s/%s", log->options.folder, name);
    uint64_t size;
    bool regular = false;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    int failed =
        io->open(io, path.data,
                 CX_IO_READ | CX_IO_WRITE | CX_IO_APPEND | CX_IO_CREATE | CX_IO_NO_LINKS, out);
    if (failed != 0) {
        *out = CX_FILE_NONE;
        return cx_fail_os(err, -failed, "%s", path.data);
    }
    failed = io->size(io, *out, &size, &regular);
    if (failed != 0)
        return cx_fail_os(err, -failed, "%s", path.data);
    return regular ? CX_SUCCESS : cx_fail(err, CX_E_FORMAT, "%s is no regular file", path.data);
}

cx_status cx_run_events_open_files(const cx_run_events_options *options, uint32_t wait_ms,
                                   cx_run_events **out, cx_err *err)
{
    CX_ASSERT(options != NULL && out != NULL);
    cx_run_events *log = cx_alloc_new(options->alloc, sizeof *log);
    cx_status status;
    cx_str folder = cx_str_z(options->folder), lock_path = cx_str_z(options->lock_path);
    if (log == NULL)
        return cx_fail_nomem(err);
    memset(log, 0, sizeof *log);
    log->options = *options;
    log->locked = log->file = log->chain = CX_FILE_NONE;
    cx_arena_init(&log->arena, options->alloc, 0);
    cx_arena_init(&log->scratch, options->alloc, 0);
    cx_buf_init(&log->line, options->alloc);
    cx_buf_init(&log->link, options->alloc);
    cx_lock_init(&log->lock);
    CX_TRY_GOTO(status, copy_option_text(log, &folder, err));
    CX_TRY_GOTO(status, copy_option_text(log, &lock_path, err));
    CX_TRY_GOTO(status, copy_option_text(log, &log->options.run_id, err));
    CX_TRY_GOTO(status, copy_option_text(log, &log->options.trace_id, err));
    log->options.folder = folder.data;
    log->options.lock_path = lock_path.data;
    CX_TRY_GOTO(status, cx_flock_acquire(lock_path.data, wait_ms, &log->locked, err));
    CX_TRY_GOTO(status, open_log_file(log, CX_RUN_EVENTS_NAME, &log->file, err));
    CX_TRY_GOTO(status, open_log_file(log, CX_RUN_CHAIN_NAME, &log->chain, err));
    status = cx_io_sync_folder(options->io, folder.data, err);
done:
    if (cx_failed(status))
        cx_run_events_close(log);
    else
        *out = log;
    return status;
}

cx_status cx_run_events_create(const cx_run_events_options *options, cx_run_events **out,
                               cx_err *err)
{
    CX_ASSERT(options != NULL && out != NULL);
    cx_run_events *log;
    uint64_t size[2];
    bool regular;
    CX_TRY(cx_run_events_open_files(options, CX_RUN_LOCK_WAIT_MS, &log, err));
    int failed = log->options.io->size(log->options.io, log->file, &size[0], &regular);
    if (failed == 0)
        failed = log->options.io->size(log->options.io, log->chain, &size[1], &regular);
    cx_status status = CX_SUCCESS;
    if (failed != 0)
        status = cx_fail_os(err, -failed, "%s", log->options.folder);
    else if (size[0] != 0 || size[1] != 0)
        status = cx_fail(err, CX_E_EXISTS, "%s has events already", log->options.folder);
    if (cx_failed(status))
        cx_run_events_close(log);
    else
        *out = log;
    return status;
}

void cx_run_events_close(cx_run_events *log)
{
    if (log == NULL)
        return;
    const cx_alloc *alloc = log->options.alloc;
    const cx_io *io = log->options.io;
    if (log->file != CX_FILE_NONE)
        (void)io->close(io, log->file);
    if (log->chain != CX_FILE_NONE)
        (void)io->close(io, log->chain);
    cx_flock_release(log->locked);
    cx_lock_done(&log->lock);
    cx_buf_done(&log->line);
    cx_buf_done(&log->link);
    cx_arena_done(&log->scratch);
    cx_arena_done(&log->arena);
    cx_alloc_free(alloc, log, sizeof *log);
}

uint64_t cx_run_events_count(const cx_run_events *log)
{
    return log->count;
}

cx_str cx_run_events_head(const cx_run_events *log)
{
    return cx_str_z(log->head_text);
}

cx_str cx_run_events_trace_id(const cx_run_events *log)
{
    return log->options.trace_id;
}

/* --- one event -------------------------------------------------------------------------------- */

static const char *const level_names[] = {"INFO", "WARN", "ERROR"};

static void write_member(cx_buf *out, const char *name, cx_str text)
{
    cx_buf_printf(out, "\"%s\":", name);
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
    cx_buf_add_byte(out, ',');
}

/* The line without its '\n'; keys in the order of §17. */
static cx_status make_line(cx_run_events *log, const cx_run_event *event, const char *ts,
                           cx_err *err)
{
    cx_buf *out = &log->line;
    cx_json payload = event->payload;
    cx_buf_clear(out);
    cx_buf_add_byte(out, '{');
    write_member(out, "ts", cx_str_z(ts));
    write_member(out, "level", cx_str_z(level_names[event->level]));
    write_member(out, "event_type", cx_str_z(cx_run_event_type_name(event->type)));
    write_member(out, "run_id", log->options.run_id);
    if (event->task_id.size != 0)
        write_member(out, "task_id", event->task_id);
    else
        cx_buf_add_z(out, "\"task_id\":null,");
    if (event->attempt >= 0)
        cx_buf_printf(out, "\"attempt\":%d,", (int)event->attempt);
    else
        cx_buf_add_z(out, "\"attempt\":null,");
    write_member(out, "trace_id", log->options.trace_id);
    cx_buf_add_z(out, "\"payload\":");
    if (payload.type != CX_JSON_OBJECT) {
        cx_buf_add_z(out, "{}");
    } else {
        if (log->options.mask != NULL)
            CX_TRY(log->options.mask(log->options.mask_arg, &event->payload, &log->scratch,
                                     &payload, err));
        CX_TRY(cx_json_write(out, &payload, CX_JSON_PY_COMPACT, err));
    }
    cx_buf_add_byte(out, '}');
    CX_TRY(cx_buf_check(out, err));
    if (out->size > CX_RUN_EVENT_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "an event of type %s has %zu bytes, expected at most %u",
                       cx_run_event_type_name(event->type), out->size,
                       (unsigned)CX_RUN_EVENT_BYTES_MAX);
    /* What no reader could read back (nested too deeply, say) must not become evidence. */
    cx_json again;
    return cx_run_json_read(cx_buf_str(out), CX_RUN_EVENT_BYTES_MAX, &log->scratch, &again, err);
}

cx_digest cx_run_chain_hash(uint64_t index, const cx_digest *prev, const cx_digest *event_sha256)
{
    char text[24 + 2 * 66];
    int used = snprintf(text, 24, "%llu:", (unsigned long long)index);
    size_t size = used < 0 ? 0 : (size_t)used;
    if (prev != NULL) {
        cx_hex_encode(cx_bytes_from(prev->bytes, sizeof prev->bytes), text + size);
        size += 64;
    }
    text[size++] = ':';
    cx_hex_encode(cx_bytes_from(event_sha256->bytes, sizeof event_sha256->bytes), text + size);
    return cx_digest_of(cx_bytes_from((const uint8_t *)text, size + 64));
}

cx_digest cx_run_events_make_link(cx_run_events *log, const cx_digest *event_sha256)
{
    cx_buf *out = &log->link;
    cx_digest hash =
        cx_run_chain_hash(log->count + 1, log->count == 0 ? NULL : &log->head, event_sha256);
    cx_buf_clear(out);
    cx_buf_printf(out, "{\"index\":%llu,\"event_sha256\":\"", (unsigned long long)log->count + 1);
    cx_hex_add(out, cx_bytes_from(event_sha256->bytes, sizeof event_sha256->bytes));
    cx_buf_printf(out, "\",\"prev_hash\":\"%s\",\"hash\":\"", log->head_text);
    cx_hex_add(out, cx_bytes_from(hash.bytes, sizeof hash.bytes));
    cx_buf_add_z(out, "\"}\n");
    return hash;
}

void cx_run_events_set_head(cx_run_events *log, const cx_digest *head)
{
    log->head = *head;
    cx_hex_encode(cx_bytes_from(head->bytes, sizeof head->bytes), log->head_text);
    log->head_text[64] = '\0';
}

static cx_status write_durably(cx_run_events *log, cx_file file, const char *name,
                               const cx_buf *text, cx_err *err)
{
    const cx_io *io = log->options.io;
    CX_TRY(cx_io_write_all(io, file, name, text->data, text->size, err));
    int failed = io->sync(io, file, false);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "%s", name);
}

cx_status cx_run_events_append_to_ledger(cx_run_events *log, const cx_digest *event_sha256,
                                         cx_err *err)
{
    const cx_run_ledger *ledger = log->options.ledger;
    if (ledger == NULL)
        return CX_SUCCESS;
    cx_buf_clear(&log->link);
    cx_buf_add_z(&log->link, "{\"event_sha256\":\"");
    cx_hex_add(&log->link, cx_bytes_from(event_sha256->bytes, sizeof event_sha256->bytes));
    cx_buf_printf(&log->link, "\",\"hash\":\"%s\",\"index\":%llu,\"run_id\":", log->head_text,
                  (unsigned long long)log->count);
    cx_json_write_str(&log->link, log->options.run_id, CX_JSON_PY_COMPACT);
    cx_buf_add_z(&log->link, ",\"type\":\"cortex.run.event.v1\"}");
    CX_TRY(cx_buf_check(&log->link, err));
    return ledger->append(ledger->ctx, "run.event", log->options.run_id, cx_buf_bytes(&log->link),
                          NULL, err);
}

static cx_status append_locked(cx_run_events *log, const cx_run_event *event, cx_err *err)
{
    char ts[28];
    cx_run_time_text((int64_t)log->options.io->wall_ns(log->options.io), ts);
    if (strcmp(ts, log->last_ts) < 0)
        memcpy(ts, log->last_ts, sizeof ts);
    CX_TRY(make_line(log, event, ts, err));
    cx_digest event_sha256 = cx_digest_of(cx_buf_bytes(&log->line));
    cx_digest head = cx_run_events_make_link(log, &event_sha256);
    cx_buf_add_byte(&log->line, '\n');
    CX_TRY(cx_buf_check(&log->line, err));
    CX_TRY(cx_buf_check(&log->link, err));
    log->failed = true; /* I3, until all of it is done */
    CX_TRY(write_durably(log, log->file, CX_RUN_EVENTS_NAME, &log->line, err)); /* I1 */
    CX_TRY(write_durably(log, log->chain, CX_RUN_CHAIN_NAME, &log->link, err));
    memcpy(log->last_ts, ts, sizeof ts);
    log->count++;
    cx_run_events_set_head(log, &head);
    CX_TRY(cx_run_events_append_to_ledger(log, &event_sha256, err)); /* I2 */
    log->failed = false;
    return CX_SUCCESS;
}

cx_status cx_run_events_append(cx_run_events *log, const cx_run_event *event, cx_str *out_line,
                               cx_err *err)
{
    cx_status status;
    CX_ASSERT(event->type > CX_RUN_EVENT_UNKNOWN && event->type < CX_RUN_EVENT_TYPE_COUNT);
    CX_ASSERT((size_t)event->level < CX_COUNT_OF(level_names));
    cx_lock_enter(&log->lock);
    cx_arena_mark mark = cx_arena_mark_now(&log->scratch);
    if (log->failed)
        status = cx_fail(err, CX_E_IO,
                         "the events of %s could not be written before; nothing follows them",
                         log->options.run_id.data);
    else if (log->count >= CX_RUN_EVENTS_MAX)
        status = cx_fail(err, CX_E_LIMIT, "a run has more than %d events", CX_RUN_EVENTS_MAX);
    else
        status = append_locked(log, event, err);
    cx_arena_reset(&log->scratch, mark);
    if (!cx_failed(status) && out_line != NULL)
        *out_line = cx_str_from((const char *)log->line.data, log->line.size - 1);
    cx_lock_leave(&log->lock);
    return status;
}
