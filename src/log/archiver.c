/*
 * archiver.c - the thread that archives the segments of a log by itself (log.h).
 *
 * It takes the oldest segment that is due, packs it block by block, and asks before each whether it
 * may go on.  What fails is noted in the file `archive-failed` of the log's folder, for other
 * processes to show: seconds since 1970, a space, the message, a line feed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/internal.h"
#include "os/api.h"

#define MS_NS UINT64_C(1000000)
#define S_NS UINT64_C(1000000000)
/* Between two looks whether a segment is due, and after a failure. */
#define LOOK_MS 2000
#define RETRY_MS 60000
/* The log counts as being written to for so long after a commit. */
#define WRITTEN_NS S_NS
#define REST_SHARE 3
#define REST_MAX_MS 500

static const char failed_name[] = "archive-failed";

/* --- what failed --------------------------------------------------------------------------- */

static void note_failure(cx_log *log, const cx_err *why)
{
    char path[CX_LOG_PATH_SIZE], line[CX_LOG_FAILURE_SIZE + 32];
    cx_log_path(log, failed_name, path);
    int size = snprintf(line, sizeof line, "%" PRIu64 " %.*s\n", log->io->wall_ns(log->io) / S_NS,
                        CX_LOG_FAILURE_SIZE - 2, why->message);
    /* Where even this cannot be written, there is nothing more to do. */
    if (size > 0 && (size_t)size < sizeof line)
        (void)cx_failed(cx_io_replace_file(log->io, path, cx_bytes_from(line, (size_t)size), NULL));
}

static void forget_failure(cx_log *log)
{
    char path[CX_LOG_PATH_SIZE];
    cx_log_path(log, failed_name, path);
    (void)log->io->unlink(log->io, path);
}

void cx_log_archiver_noted(const cx_log *log, cx_log_space *out)
{
    char path[CX_LOG_PATH_SIZE], line[CX_LOG_FAILURE_SIZE + 32];
    cx_buf text;
    cx_log_path(log, failed_name, path);
    cx_buf_init(&text, log->alloc);
    if (!cx_failed(cx_io_read_file(log->io, path, sizeof line - 1, &text, NULL)) &&
        text.size != 0) {
        char *end;
        memcpy(line, text.data, text.size);
        line[text.data[text.size - 1] == '\n' ? text.size - 1 : text.size] = 0;
        uint64_t seconds = strtoull(line, &end, 10);
        if (end != line && *end == ' ' && seconds < (uint64_t)INT64_MAX / S_NS) {
            out->failed_ns = (int64_t)(seconds * S_NS);
            (void)snprintf(out->failure, sizeof out->failure, "%s", end + 1);
        }
    }
    cx_buf_done(&text);
}

/* --- pace ---------------------------------------------------------------------------------- */

static bool is_written_to(cx_log *log, uint64_t now)
{
    cx_log_archiver *a = &log->archiver;
    uint64_t commits = cx_log_durable(log);
    if (commits != a->commits_seen)
        a->written_ns = now;
    a->commits_seen = commits;
    return a->written_ns != 0 && now - a->written_ns < WRITTEN_NS;
}

/* Before each block. */
static bool may_go_on(void *arg)
{
    cx_log *log = arg;
    cx_log_archiver *a = &log->archiver;
    uint64_t now = log->io->monotonic_ns(log->io);
    bool written = is_written_to(log, now);
    cx_lock_enter(&a->lock);
    uint64_t rest = written ? (now - a->block_ns) / MS_NS * REST_SHARE : 0;
    if (!a->stop && rest != 0)
        cx_lock_wait_for(&a->lock, rest < REST_MAX_MS ? (uint32_t)rest : REST_MAX_MS);
    a->block_ns = log->io->monotonic_ns(log->io);
    bool stop = a->stop;
    cx_lock_leave(&a->lock);
    return !stop;
}

/* --- what is due --------------------------------------------------------------------------- */

static cx_status find_due(cx_log *log, uint32_t *out_segment, bool *out_found, cx_err *err)
{
    cx_log_archiver *a = &log->archiver;
    uint32_t closed = cx_log_closed_segments(log);
    uint32_t keep = a->wanted.keep > 1 ? a->wanted.keep - 1 : 0; /* as in cx_log_archive */
    uint32_t end = closed > keep ? closed - keep : 0;
    *out_found = false;
    for (bool archived = true; a->from < end && archived; a->from += archived ? 1 : 0)
        CX_TRY(cx_log_is_archived(log, a->from, &archived, err));
    *out_segment = a->from;
    return a->from < end ? cx_log_is_old(log, a->from, a->wanted.age_ns, out_found, err)
                         : CX_SUCCESS;
}

static bool is_poisoned(cx_log *log)
{
    cx_lock_enter(&log->lock);
    bool poisoned = log->poisoned;
    cx_lock_leave(&log->lock);
    return poisoned;
}

/* One segment, if one is due. */
static cx_status archive_due(cx_log *log, bool *out_more, cx_err *err)
{
    cx_log_archiver *a = &log->archiver;
    const cx_archive_pace pace = {may_go_on, log};
    cx_log_archived done = {0};
    uint32_t segment;
    bool found, stopped;
    *out_more = false;
    if (is_poisoned(log))
        return CX_SUCCESS;
    CX_TRY(find_due(log, &segment, &found, err));
    if (!found)
        return CX_SUCCESS;
    a->block_ns = log->io->monotonic_ns(log->io);
    CX_TRY(cx_log_archive_segment(log, segment, &pace, &done, &stopped, err));
    *out_more = true;
    cx_lock_enter(&a->lock);
    a->state.segments += done.segments;
    a->state.bytes_unpacked += done.bytes_unpacked;
    a->state.bytes_packed += done.bytes_packed;
    cx_lock_leave(&a->lock);
    if (done.segments != 0)
        forget_failure(log);
    return CX_SUCCESS;
}

/* --- the thread ---------------------------------------------------------------------------- */

/* False: it is to end. */
static bool rest_for(cx_log_archiver *a, uint32_t milliseconds)
{
    cx_lock_enter(&a->lock);
    if (!a->stop && milliseconds != 0)
        cx_lock_wait_for(&a->lock, milliseconds);
    bool go_on = !a->stop;
    cx_lock_leave(&a->lock);
    return go_on;
}

static cx_status prepare(cx_log *log, cx_err *err)
{
    const char *folder = log->archiver.wanted.folder;
    CX_TRY(cx_zstd_load(err));
    if (folder == NULL)
        return CX_SUCCESS;
    if (folder[0] != 0) {
        int failed = log->io->mkdir(log->io, folder);
        if (failed != 0 && failed != -EEXIST)
            return cx_fail_os(err, -failed, "cannot make %s", folder);
    }
    CX_TRY(cx_log_archive_move(log, folder, err));
    log->archiver.wanted.folder = NULL;
    return CX_SUCCESS;
}

static void archive_by_itself(void *arg)
{
    cx_log *log = arg;
    cx_log_archiver *a = &log->archiver;
    uint32_t wait_ms = a->wanted.start_ms;
    while (rest_for(a, wait_ms)) {
        cx_err why = {0};
        bool more = false;
        cx_status status = prepare(log, &why);
        if (!cx_failed(status))
            status = archive_due(log, &more, &why);
        wait_ms = cx_failed(status) ? RETRY_MS : more ? 0 : LOOK_MS;
        if (!cx_failed(status))
            continue;
        note_failure(log, &why);
        cx_lock_enter(&a->lock);
        a->state.failures++;
        cx_lock_leave(&a->lock);
    }
}

cx_status cx_log_archiver_begin(cx_log *log, const cx_log_archiving *wanted, cx_err *err)
{
    cx_log_archiver *a = &log->archiver;
    if (log->read_only)
        return cx_fail(err, CX_E_DENIED, "%s is open for reading only", log->folder);
    CX_ASSERT(!a->on);
    a->wanted = *wanted;
    if (wanted->folder != NULL) {
        int size = snprintf(a->target, sizeof a->target, "%s", wanted->folder);
        if (size < 0 || (size_t)size >= sizeof a->target)
            return cx_fail(err, CX_E_LIMIT, "path too long: %s", wanted->folder);
        a->wanted.folder = a->target;
    }
    a->on = a->state.on = cx_thread_start(&a->thread, archive_by_itself, log);
    return a->on ? CX_SUCCESS : cx_fail_os(err, EAGAIN, "cannot start a thread");
}

void cx_log_archiver_done(cx_log *log)
{
    cx_log_archiver *a = &log->archiver;
    cx_lock_enter(&a->lock);
    a->stop = true;
    cx_lock_wake(&a->lock);
    cx_lock_leave(&a->lock);
    cx_thread_join(&a->thread);
}

void cx_log_archiver_state(cx_log *log, cx_log_archiving_state *out)
{
    cx_lock_enter(&log->archiver.lock);
    *out = log->archiver.state;
    cx_lock_leave(&log->archiver.lock);
}
