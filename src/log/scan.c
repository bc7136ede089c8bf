/*
 * scan.c - reading the commits of a log in order, across segments, across damage, and after a
 * living writer (docs/formats/log.md §5).
 *
 * At a place where no whole group begins there is one of three cases: the end of the log, the end
 * of a segment that has a successor, or damage.  In the writing process the durable count tells; so
 * it does for a reader of a data directory with a living writer.  Without one a reader looks
 * whether anything whole lies after.
 */
#include <errno.h>

#include "log/internal.h"

typedef enum scan_state {
    SCAN_SEGMENT,    /* the segment is to be opened */
    SCAN_GROUP,      /* a group begins at `offset`, or nothing does */
    SCAN_PAST_DAMAGE /* damage was reported: look for what is whole after it */
} scan_state;

struct cx_log_scan {
    cx_log *log;
    cx_log_window window;
    scan_state state;
    uint32_t segment;
    uint64_t offset;
    uint64_t next;      /* number of the commit that is expected */
    uint64_t from;      /* those before it are passed over */
    uint64_t quiet;     /* after this offset of this segment nothing was found; 0 = not looked */
    uint64_t end_at;    /* after the last group of this segment */
    cx_log_point point; /* where reading of the last segment may begin; 0 = at its beginning */
    uint8_t last_mark[CX_LOG_MARK_SIZE];
    uint64_t bytes_before; /* of the segments that were read before this one */
    uint64_t bytes_total;
};

/* --- beginning ----------------------------------------------------------------------------- */

/* The first commit in a segment; damage counts as not known. */
static cx_status first_commit(cx_log *log, uint32_t segment, uint64_t *out, bool *out_known,
                              cx_err *err)
{
    cx_file file;
    cx_log_header header;
    cx_status status = cx_log_segment_open(log, segment, CX_IO_READ, &file, &header, err);
    *out_known = !cx_failed(status);
    if (status.code == CX_E_FORMAT || status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    (void)log->io->close(log->io, file);
    *out = header.first_commit;
    return CX_SUCCESS;
}

cx_status cx_log_first_commit(cx_log *log, uint32_t segment, uint64_t *out, cx_err *err)
{
    bool known = false;
    char path[CX_LOG_PATH_SIZE];
    CX_TRY(first_commit(log, segment, out, &known, err));
    cx_log_segment_path(log, segment, path);
    return known ? CX_SUCCESS : cx_log_damaged(err, path, 0, "its header cannot be read");
}

/* The last segment that begins at or before `from`.  Where a header cannot be read, the first one:
 * the scan will come by the damage and name it. */
static cx_status find_segment(cx_log *log, uint32_t count, uint64_t from, uint32_t *out,
                              cx_err *err)
{
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t first = 0;
        bool known;
        CX_TRY(first_commit(log, middle, &first, &known, err));
        if (!known) {
            low = 0;
            break;
        }
        if (first <= from)
            low = middle;
        else
            high = middle;
    }
    *out = low;
    return CX_SUCCESS;
}

static cx_status file_size(const cx_log *log, uint32_t segment, uint64_t *out, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    bool regular;
    *out = 0;
    cx_log_segment_path(log, segment, path);
    int failed = log->io->open(log->io, path, CX_IO_READ, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    failed = log->io->size(log->io, file, out, &regular);
    (void)log->io->close(log->io, file);
    return failed == 0 ? CX_SUCCESS
                       : cx_fail_os(err, -failed, "cannot ask for the size of %s", path);
}

/* Of the segments that are to be read. */
static cx_status add_sizes(cx_log_scan *scan, uint32_t count, cx_err *err)
{
    cx_log *log = scan->log;
    cx_lock_enter(&log->lock);
    uint32_t last = log->head.number;
    uint64_t end = log->end_offset;
    cx_lock_leave(&log->lock);
    for (uint32_t i = scan->segment; i < count; i++) {
        uint64_t size = end; /* of the last one only what is written counts */
        if (i != last)
            CX_TRY(file_size(log, i, &size, err));
        scan->bytes_total += size;
    }
    return CX_SUCCESS;
}

static cx_status begin_scan(cx_log_scan *scan, uint64_t from, cx_err *err)
{
    cx_log *log = scan->log;
    uint32_t count;
    uint64_t durable = cx_log_durable(log);
    if (from > durable)
        return cx_fail(err, CX_E_USAGE, "there are %llu commits, none is number %llu",
                       (unsigned long long)durable, (unsigned long long)from);
    CX_TRY(cx_log_segment_count(log, &count, err));
    CX_TRY(find_segment(log, count, from, &scan->segment, err));
    CX_TRY(add_sizes(scan, count, err));
    cx_lock_enter(&log->lock);
    if (log->trail.known.commits <= from)
        scan->point = log->trail.known;
    cx_lock_leave(&log->lock);
    scan->from = from;
    return CX_SUCCESS;
}

cx_status cx_log_scan_begin(cx_log *log, uint64_t from, cx_log_scan **out, cx_err *err)
{
    cx_log_scan *scan = cx_alloc_zeroed(log->alloc, 1, sizeof *scan);
    if (scan == NULL)
        return cx_fail_nomem(err);
    scan->log = log;
    cx_log_window_init(&scan->window, log);
    cx_status status = begin_scan(scan, from, err);
    if (cx_failed(status))
        cx_log_scan_end(scan);
    else
        *out = scan;
    return status;
}

void cx_log_scan_end(cx_log_scan *scan)
{
    if (scan == NULL)
        return;
    cx_log_window_done(&scan->window);
    cx_alloc_free(scan->log->alloc, scan, sizeof *scan);
}

/* --- segments ------------------------------------------------------------------------------ */

static cx_status damage_error(cx_log_scan *scan, uint64_t offset, const char *what, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_log_segment_path(scan->log, scan->segment, path);
    scan->state = SCAN_PAST_DAMAGE;
    return cx_log_damaged(err, path, offset, what);
}

static void leave_segment(cx_log_scan *scan)
{
    if (scan->window.file != CX_FILE_NONE)
        scan->bytes_before += scan->window.header.size_bytes;
    cx_log_window_close(&scan->window);
    scan->segment++;
    scan->state = SCAN_SEGMENT;
}

static cx_status enter_segment(cx_log_scan *scan, cx_err *err)
{
    cx_status status = cx_log_window_open(&scan->window, scan->segment, err);
    if (status.code == CX_E_NOT_FOUND)
        return damage_error(scan, 0, "the segment is missing", err);
    if (status.code == CX_E_FORMAT)
        scan->state = SCAN_PAST_DAMAGE;
    CX_TRY(status);
    const cx_log_header *header = &scan->window.header;
    if (memcmp(header->home_id, scan->log->home_id, CX_LOG_ID_SIZE) != 0) {
        cx_log_window_close(&scan->window);
        return damage_error(scan, 16, "the segment is of another log", err);
    }
    /* After damage the commits that are lost are passed over; it was reported. */
    if (header->first_commit > scan->next)
        scan->next = header->first_commit;
    scan->end_at = scan->offset = CX_LOG_HEADER_SIZE;
    memset(scan->last_mark, 0, sizeof scan->last_mark);
    const cx_log_point *point = &scan->point;
    if (point->offset != 0 && point->segment == header->number && point->commits > scan->next) {
        scan->next = point->commits;
        scan->end_at = scan->offset = point->offset;
        memcpy(scan->last_mark, point->mark, sizeof scan->last_mark);
    }
    scan->quiet = 0;
    scan->state = SCAN_GROUP;
    return CX_SUCCESS;
}

/*
 * Whether the next segment says that this one ends where it was read to.  A header that cannot be
 * read says nothing: entering that segment will name the damage.
 */
static cx_status ends_here(cx_log_scan *scan, bool *out, cx_err *err)
{
    cx_file file;
    cx_log_header next;
    cx_status status =
        cx_log_segment_open(scan->log, scan->segment + 1, CX_IO_READ, &file, &next, err);
    *out = status.code == CX_E_FORMAT;
    if (*out)
        return CX_SUCCESS;
    CX_TRY(status);
    (void)scan->log->io->close(scan->log->io, file);
    cx_digest end = cx_log_end_digest(&scan->window.header, scan->end_at, scan->last_mark);
    *out = next.first_commit == scan->next && cx_digest_eq(&next.previous_end, &end);
    return CX_SUCCESS;
}

static cx_status segment_exists(const cx_log *log, uint32_t segment, bool *out, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    cx_log_segment_path(log, segment, path);
    int failed = log->io->open(log->io, path, CX_IO_READ, &file);
    *out = failed == 0;
    if (failed == 0)
        (void)log->io->close(log->io, file);
    return failed == 0 || failed == -ENOENT ? CX_SUCCESS
                                            : cx_fail_os(err, -failed, "cannot open %s", path);
}

/* --- groups -------------------------------------------------------------------------------- */

static cx_status scan_limits(cx_log_scan *scan, uint64_t *out_required, uint64_t *out_limit,
                             cx_err *err)
{
    if (scan->log->read_only)
        return cx_log_lock_inspect(scan->log, out_required, out_limit, err);
    *out_required = *out_limit = cx_log_durable(scan->log);
    return CX_SUCCESS;
}

/* There is no writer: anything whole after `offset` says that this is damage. */
static cx_status later_commit_exists(cx_log_scan *scan, bool *out, cx_err *err)
{
    cx_log_found after;
    *out = false;
    if (scan->quiet == scan->offset)
        return CX_SUCCESS;
    CX_TRY(cx_log_window_search(&scan->window, scan->offset, scan->next + 1, &after, err));
    *out = after.found;
    if (!after.found)
        scan->quiet = scan->offset;
    return CX_SUCCESS;
}

/* Where the expected group does not begin.  *out_again: look again, here or in the next segment;
 * otherwise this is the end of the log, or an error. */
static cx_status no_group(cx_log_scan *scan, uint64_t required, uint64_t limit, bool *out_again,
                          cx_err *err)
{
    cx_log_group group;
    bool more, whole, good = false;
    *out_again = true;
    CX_TRY(segment_exists(scan->log, scan->segment + 1, &more, err));
    if (!more && scan->next >= required) {
        bool after = false;
        if (limit == UINT64_MAX)
            CX_TRY(later_commit_exists(scan, &after, err));
        good = !after;
    }
    /* A writer may have finished the group since it was looked at, and then what was seen after it
     * means nothing; or the segment was archived, and its file overwritten. */
    cx_buf_clear(&scan->window.bytes);
    if (more) {
        cx_status status = cx_log_window_open(&scan->window, scan->segment, err);
        if (status.code == CX_E_FORMAT)
            scan->state = SCAN_PAST_DAMAGE;
        CX_TRY(status);
    }
    CX_TRY(cx_log_window_group(&scan->window, scan->offset, &group, &whole, err));
    if (whole && group.mark.commit == scan->next)
        return CX_SUCCESS;
    if (more)
        CX_TRY(ends_here(scan, &good, err));
    if (!good)
        return damage_error(scan, scan->offset, "a commit is not as it was written", err);
    *out_again = more;
    if (more)
        leave_segment(scan);
    return CX_SUCCESS;
}

/* Looks for the next whole commit after damage, or goes on to the next segment. */
static cx_status find_group_past_damage(cx_log_scan *scan, cx_log_group *group, bool *out_found,
                                        cx_err *err)
{
    bool more;
    *out_found = false;
    if (scan->window.file != CX_FILE_NONE)
        CX_TRY(cx_log_window_next_whole(&scan->window, scan->offset, scan->next, group, out_found,
                                        err));
    if (*out_found)
        return CX_SUCCESS;
    CX_TRY(segment_exists(scan->log, scan->segment + 1, &more, err));
    if (more)
        leave_segment(scan);
    return CX_SUCCESS;
}

/*
 * A group whose erasable parts are torn is no group when it is the last one: nothing acknowledges
 * it, and nothing follows it.
 */
static cx_status is_torn(cx_log_scan *scan, const cx_log_group *group, uint64_t required, bool *out,
                         cx_err *err)
{
    cx_log_found after;
    bool more;
    *out = false;
    if (!group->spoilt || !scan->log->read_only || group->mark.commit < required)
        return CX_SUCCESS;
    CX_TRY(segment_exists(scan->log, scan->segment + 1, &more, err));
    if (more)
        return CX_SUCCESS;
    CX_TRY(cx_log_window_search(&scan->window, group->end, group->mark.commit + 1, &after, err));
    *out = !after.found;
    cx_log_group again;
    bool whole;
    return cx_log_window_group(&scan->window, group->offset, &again, &whole, err);
}

static cx_status find_group(cx_log_scan *scan, cx_log_group *group, bool *out_found, cx_err *err)
{
    bool again = true;
    *out_found = false;
    while (again && !*out_found) {
        uint64_t required, limit;
        if (scan->state == SCAN_SEGMENT)
            CX_TRY(enter_segment(scan, err));
        CX_TRY(scan_limits(scan, &required, &limit, err));
        if (scan->next >= limit)
            break;
        if (scan->state == SCAN_PAST_DAMAGE) {
            CX_TRY(find_group_past_damage(scan, group, out_found, err));
            again = scan->state == SCAN_SEGMENT;
        } else {
            CX_TRY(cx_log_window_group(&scan->window, scan->offset, group, out_found, err));
            *out_found = *out_found && group->mark.commit == scan->next;
            if (!*out_found)
                CX_TRY(no_group(scan, required, limit, &again, err));
        }
        /* There was no writer when this was checked, but perhaps since: then this may not be
         * durable yet. */
        if (*out_found && scan->log->read_only)
            CX_TRY(scan_limits(scan, &required, &limit, err));
        bool torn = false;
        if (*out_found)
            CX_TRY(is_torn(scan, group, required, &torn, err));
        if (*out_found && (torn || group->mark.commit >= limit)) {
            *out_found = false;
            break;
        }
    }
    return CX_SUCCESS;
}

static void accept_group(cx_log_scan *scan, const cx_log_group *group)
{
    cx_log *log = scan->log;
    scan->state = SCAN_GROUP;
    scan->offset = scan->end_at = group->end;
    scan->next = group->mark.commit + 1;
    memcpy(scan->last_mark, group->mark_bytes, CX_LOG_MARK_SIZE);
    if (!log->read_only)
        return;
    cx_lock_enter(&log->lock);
    if (log->durable < scan->next)
        log->durable = scan->next;
    cx_lock_leave(&log->lock);
}

cx_status cx_log_scan_next(cx_log_scan *scan, cx_log_commit *out, bool *out_end, cx_err *err)
{
    cx_log_group group;
    bool found;
    do {
        CX_TRY(find_group(scan, &group, &found, err));
        if (found)
            accept_group(scan, &group);
    } while (found && group.mark.commit < scan->from);
    *out_end = !found;
    if (!found)
        return CX_SUCCESS;
    uint64_t done = scan->bytes_before + group.end;
    if (scan->bytes_total < done)
        scan->bytes_total = done;
    *out = (cx_log_commit){.number = group.mark.commit,
                           .count = scan->window.items.count,
                           .items = scan->window.items.items,
                           .bytes_done = done,
                           .bytes_total = scan->bytes_total};
    return CX_SUCCESS;
}
