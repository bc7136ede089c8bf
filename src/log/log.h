/*
 * log.h - the append-only log: the only truth of a data directory (ledger.md §5,
 * docs/formats/log.md).
 *
 * A log is a folder of segment files.  What is written is a group of frames closed by a commit
 * mark, in one write and one sync; a group is there whole or not at all.  A frame has a guarded
 * part, which never changes, and an erasable part, which can be overwritten with zeros in place
 * later. The log gives no meaning to either.
 *
 *     uint64_t commit;
 *     cx_log_submit(log, frames, count, places, &commit, err);    in memory, in order
 *     cx_log_wait(log, commit, err);                              on disk, or an error
 *
 * Submitting and waiting may be done by many threads: the first that waits writes for all that have
 * submitted by then (group commit).  A failed write or sync poisons the log: everything from then
 * on is refused until it is opened again.  One writer a folder; any number of readers in other
 * processes, which never write.
 */
#ifndef CX_LOG_LOG_H
#define CX_LOG_LOG_H

#include "base/api.h"

#define CX_LOG_SEGMENT_DEFAULT (UINT64_C(64) << 20)
#define CX_LOG_SEGMENT_MIN (UINT64_C(64) << 10)
#define CX_LOG_SEGMENT_MAX (UINT64_C(4) << 30)
/* A frame longer than a segment has room for gets a segment of its own, as large as it needs. */
#define CX_LOG_GUARDED_MAX (UINT64_C(80) << 20)
#define CX_LOG_ERASABLE_MAX (UINT64_C(1) << 30)

typedef struct cx_log cx_log;

typedef struct cx_log_frame {
    cx_bytes guarded;  /* 1 .. CX_LOG_GUARDED_MAX bytes */
    cx_bytes erasable; /* may be empty */
} cx_log_frame;

/* Where a frame stands; stays true forever. */
typedef struct cx_log_place {
    uint32_t segment;
    uint32_t size_bytes; /* 0 = not known (read_frame finds out) */
    uint64_t offset;     /* in the segment file */
} cx_log_place;

typedef struct cx_log_options {
    const cx_alloc *alloc;  /* NULL = default */
    const cx_io *io;        /* NULL = system */
    uint64_t segment_bytes; /* of new segments; 0 = default */
    uint64_t trail_bytes;   /* opening reads one to two times as much of the end of the log, and
                               the last commits; 0 = 2 MiB */
    const uint8_t *home_id; /* of cx_log_create: 16 bytes, to reproduce given ones; NULL = random */
    bool read_only;         /* changes nothing, not even the lock file; sees what others write */
} cx_log_options;

/* What opening found. */
typedef struct cx_log_opened {
    uint64_t commit_count; /* whole commits; the last one is number commit_count - 1 */
    uint64_t torn_bytes;   /* of an incomplete group cut from the end (0 = none); when read-only:
                              left where it is and not read */
    uint32_t segment_count;
} cx_log_opened;

/* Makes folder/ and its first segment.  CX_E_EXISTS when it holds a log already. */
CX_RESULT cx_log_create(const char *folder, const cx_log_options *options, cx_err *err);

/*
 * Opens for writing (takes the lock; CX_E_BUSY "Locked" names the writer process's process id) or
 * reading. Only the end of the last segment is read through, up to two times trail_bytes, or all of
 * it where no writer left a note in the lock file; damage there with whole commits after is
 * CX_E_FORMAT "LogDamaged" when opening for writing.  A segment number that is missing is
 * "LogDamaged" too.
 */
CX_RESULT cx_log_open(const char *folder, const cx_log_options *options, cx_log **out,
                      cx_log_opened *out_opened, cx_err *err);
/* Waits for nothing: what has not been waited for may be lost.  NULL is accepted. */
void cx_log_close(cx_log *log);

/* Sixteen bytes, of cx_log_create; each segment's header has them. */
void cx_log_home_id(const cx_log *log, uint8_t out[16]);

/*
 * Puts frames after all that was submitted before, in one commit.  The bytes are copied.
 * CX_E_LIMIT when a frame is too large; CX_E_IO "Poisoned" after a failure; CX_E_IO with ENOSPC
 * when there is no room for the segment, before anything is written.
 */
CX_RESULT cx_log_submit(cx_log *log, const cx_log_frame *frames, size_t count,
                        cx_log_place *out_places, uint64_t *out_commit, cx_err *err);
/*
 * For who will wait, but has something else to do before: what was submitted goes on its way to the
 * disk now, and what is submitted from here on goes into the next commit.  Waits for no sync; a
 * failure is told by cx_log_wait.  Does nothing while a group is on its way already.
 */
void cx_log_start(cx_log *log);
/*
 * For who cannot go on with what it submitted: whatever is not on the disk yet, and that no thread
 * is syncing, is never acknowledged.  What was started is overwritten with zeros and synced, so
 * that it is not found again; then the log is "Poisoned" because of `cause`.
 */
void cx_log_discard_pending(cx_log *log, const cx_err *cause);
/* Returns when that commit is on the disk. */
CX_RESULT cx_log_wait(cx_log *log, uint64_t commit, cx_err *err);
/* Commits on the disk. */
uint64_t cx_log_durable(cx_log *log);
/* Frames of commit `commit` if that is the newest one; 0 where it is not, or not known: the log is
 * open for reading, or the newest segment has no commit yet. */
uint64_t cx_log_newest_frames(cx_log *log, uint64_t commit);

/*
 * Reads one frame that is on the disk, checking its checksums.  `*out` borrows from `buf`.
 * `*out_erased`: the erasable part was overwritten, or its head says that it is to be (another
 * process is at it now, or was killed at it); out->erasable is then empty.
 * CX_E_FORMAT "LogDamaged" when the bytes are not those that were written.
 */
CX_RESULT cx_log_read(cx_log *log, cx_log_place place, cx_buf *buf, cx_log_frame *out,
                      bool *out_erased, cx_err *err);

/* Some bytes of a frame's erasable part, with all of its guarded one. */
typedef struct cx_log_range {
    cx_bytes guarded; /* checked; borrows from the buffer */
    uint64_t erasable_size;
    bool erased; /* as *out_erased of cx_log_read; no bytes were read */
} cx_log_range;
/*
 * Appends the bytes from .. from + size - 1 of it to `bytes`, without reading the others: they are
 * compared with no checksum, which is of all of them, so the caller knows a hash of these.  `buf`
 * is the frame's.  CX_E_USAGE when the part is shorter; CX_E_FORMAT "LogDamaged".
 */
CX_RESULT cx_log_read_range(cx_log *log, cx_log_place place, uint64_t from, size_t size,
                            cx_buf *buf, cx_buf *bytes, cx_log_range *out, cx_err *err);

/* Overwrites a frame's erasable part with zeros and syncs.  Done already: success. */
CX_RESULT cx_log_erase(cx_log *log, cx_log_place place, cx_err *err);
/* The same for many, with two syncs for those of one segment that follow each other. */
CX_RESULT cx_log_erase_many(cx_log *log, const cx_log_place *places, size_t count, cx_err *err);

/* --- archives -------------------------------------------------------------------------------- */

/*
 * A segment that has a successor can be archived: compressed, in the log's folder or another one
 * (docs/formats/log.md §7).  All calls go on as before, erasing too; reading a frame costs the
 * unpacking of up to 128 KiB around it.  Needs zstd (CX_E_UNSUPPORTED "LibraryMissing").
 */
typedef struct cx_log_archive_options {
    uint32_t keep;      /* so many of the newest segments stay as they are; at least 1 counts */
    int64_t age_ns;     /* .. and those that were written to later than so long ago; 0 = none */
    const char *folder; /* absolute, where archives are put from now on; NULL = where they are put
                           now; "" = the log's own folder.  CX_E_USAGE when the present one is
                           another and has archives */
    bool (*go_on)(void *arg, uint32_t done, uint32_t count); /* between segments; may be NULL */
    void *arg;
} cx_log_archive_options;

typedef struct cx_log_archived {
    uint32_t segments;       /* that were archived, or brought back */
    uint64_t bytes_unpacked; /* of them, as segments */
    uint64_t bytes_packed;   /* as archives */
    bool stopped;            /* because go_on said so */
} cx_log_archived;

/* Of a log open for writing.  Stopped half-way it leaves each segment whole in one of both
 * forms. */
CX_RESULT cx_log_archive(cx_log *log, const cx_log_archive_options *options, cx_log_archived *out,
                         cx_err *err);
/* Brings all archives back; `keep` and `folder` mean nothing. */
CX_RESULT cx_log_unarchive(cx_log *log, const cx_log_archive_options *options, cx_log_archived *out,
                           cx_err *err);

#define CX_LOG_FAILURE_SIZE 400

typedef struct cx_log_space {
    uint32_t segments, archived; /* of `segments` */
    uint64_t bytes;              /* that all have as segments */
    uint64_t bytes_stored;       /* that they take, archives compressed */
    uint64_t bytes_plain;        /* of that: segments */
    uint64_t bytes_archived;     /* archives in the log's folder */
    uint64_t bytes_elsewhere;    /* archives in the other one */
    const char *elsewhere;       /* the other folder of archives, "" = none; lives as the log */
    int64_t failed_ns;           /* when archiving by itself failed last, since 1970; 0 = it did
                                    not, or has succeeded since */
    char failure[CX_LOG_FAILURE_SIZE]; /* why */
} cx_log_space;

/* Reads the end of each archive: grows with the number of segments. */
CX_RESULT cx_log_space_of(cx_log *log, cx_log_space *out, cx_err *err);

/*
 * A log that is open for writing can archive by itself, in a thread: one segment after the other,
 * the oldest first, a block of 128 KiB at a time.  While the log is being written to, it rests
 * three times as long as it works.  Appending never waits for it; an erasure waits for a block, or
 * while one segment's file is overwritten.  A failure is noted in the log's folder
 * (cx_log_space.failure) and tried again after a minute.
 */
typedef struct cx_log_archiving {
    uint32_t keep;      /* so many of the newest segments stay as they are; at least 1 counts */
    int64_t age_ns;     /* .. and those that were written to later than so long ago */
    const char *folder; /* as in cx_log_archive_options; copied */
    uint32_t start_ms;  /* it begins so long after this call */
} cx_log_archiving;

/* Once, of a log open for writing.  That zstd or the folder is missing is a failure that is
 * noted. */
CX_RESULT cx_log_archiver_begin(cx_log *log, const cx_log_archiving *wanted, cx_err *err);

typedef struct cx_log_archiving_state {
    bool on;
    uint64_t segments, bytes_unpacked, bytes_packed; /* since the log was opened */
    uint64_t failures;
} cx_log_archiving_state;

void cx_log_archiver_state(cx_log *log, cx_log_archiving_state *out);

/* --- reading in order ---------------------------------------------------------------------- */

typedef struct cx_log_scan cx_log_scan;

/* One frame of a commit. */
typedef struct cx_log_item {
    cx_log_frame frame;
    bool erased;
    bool erasable_damaged; /* neither the bytes that were written nor zeros */
    bool half_erased;      /* .. because erasing it was cut short: what is left means nothing */
    cx_log_place place;
    uint32_t erasable_size; /* as it was written, also of one that was erased */
} cx_log_item;

typedef struct cx_log_commit {
    uint64_t number;
    size_t count;
    const cx_log_item *items; /* valid until the next call */
    uint64_t bytes_done; /* since the beginning of the first segment that is read, for progress */
    uint64_t bytes_total;
} cx_log_commit;

/* Starts at commit number `from` (<= durable commits). */
CX_RESULT cx_log_scan_begin(cx_log *log, uint64_t from, cx_log_scan **out, cx_err *err);
/*
 * *out_end: there are no more whole commits now (a later call may find new ones).  CX_E_FORMAT
 * "LogDamaged" names segment file and offset; calling again goes on after the damage with the next
 * commit that is whole, if there is one.
 */
CX_RESULT cx_log_scan_next(cx_log_scan *scan, cx_log_commit *out, bool *out_end, cx_err *err);
void cx_log_scan_end(cx_log_scan *scan);
/* The first commit in a segment, for cx_log_scan_begin; CX_E_FORMAT "LogDamaged" where its header
 * cannot be read. */
CX_RESULT cx_log_first_commit(cx_log *log, uint32_t segment, uint64_t *out, cx_err *err);

/* Where a log ends. */
typedef struct cx_log_end {
    uint64_t commit_count;
    uint32_t segment_count;
    cx_digest digest; /* of the last segment's header and last mark (log.md §2.1) */
} cx_log_end;
/* What is durable; when read-only, what opening found. */
void cx_log_get_end(cx_log *log, cx_log_end *out);

/* Copies all durable commits to a new folder, which is a log of its own right; writers go on. */
CX_RESULT cx_log_backup(cx_log *log, const char *to_folder, cx_err *err);

#endif
