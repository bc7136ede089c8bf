/*
 * internal.h - shared by the files of this module; private to it.
 *
 *   layout.c    bytes of header, frame and end mark (docs/formats/log.md §2)
 *   segment.c   segment files: names, preparing, opening; the lock file
 *   window.c    reading a segment group by group, and searching after damage
 *   open.c      creating, opening, recovering, closing
 *   commit.c    submitting, group commit, going on to the next segment
 *   read.c      single frames: reading, erasing
 *   scan.c      reading in order
 *   backup.c    copying
 *   archive.c   segments into archives and back; archiver.c does it by itself
 */
#ifndef CX_LOG_INTERNAL_H
#define CX_LOG_INTERNAL_H

#include <stdatomic.h>

#include "base/api.h"
#include "log/archived.h"
#include "log/log.h"

#define CX_LOG_DAMAGED "LogDamaged"

enum {
    CX_LOG_HEADER_SIZE = 4096,
    CX_LOG_FRAME_HEAD_SIZE = 16,
    CX_LOG_ERASABLE_HEAD_SIZE = 8,
    CX_LOG_MARK_SIZE = 32,
    CX_LOG_ALIGNMENT = 8,
    CX_LOG_ID_SIZE = 16,
    CX_LOG_PATH_SIZE = 4096,
    CX_LOG_FILES_MAX = 32
};

/* --- layout.c ------------------------------------------------------------------------------ */

/* Big-endian. */
static inline void cx_log_put_u32(uint8_t *at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}
static inline uint32_t cx_log_get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline void cx_log_put_u64(uint8_t *at, uint64_t value)
{
    cx_log_put_u32(at, (uint32_t)(value >> 32));
    cx_log_put_u32(at + 4, (uint32_t)value);
}
static inline uint64_t cx_log_get_u64(const uint8_t *at)
{
    return (uint64_t)cx_log_get_u32(at) << 32 | cx_log_get_u32(at + 4);
}

typedef struct cx_log_header {
    uint32_t version; /* of the format */
    uint8_t home_id[CX_LOG_ID_SIZE];
    uint32_t number;
    uint64_t first_commit;
    uint64_t size_bytes; /* of the file */
    cx_digest previous_end;
} cx_log_header;

#define CX_LOG_VERSION 1u

typedef struct cx_log_mark {
    uint32_t frame_count;
    uint64_t commit;
    uint64_t group_bytes; /* of the frames, without the mark */
    uint32_t heads_crc;
} cx_log_mark;

typedef enum cx_log_erasable {
    CX_LOG_LIVE,
    CX_LOG_ERASED,
    CX_LOG_HALF_ERASED, /* it was said that it is to be erased, and bytes are left */
    CX_LOG_SPOILT       /* as no writer leaves it: torn or damaged */
} cx_log_erasable;

void cx_log_header_encode(const cx_log_header *header, uint8_t out[CX_LOG_HEADER_SIZE]);
bool cx_log_header_decode(const uint8_t in[CX_LOG_HEADER_SIZE], cx_log_header *out);

/* What a segment's end is called in the header of the next. */
cx_digest cx_log_end_digest(const cx_log_header *header, uint64_t end_offset,
                            const uint8_t last_mark[CX_LOG_MARK_SIZE]);

/* Begins every checksum in a segment, so that bytes of another home or segment never pass. */
uint32_t cx_log_seed(const uint8_t home_id[CX_LOG_ID_SIZE], uint32_t segment);

/* Where the head of a frame's erasable part is in it. */
uint64_t cx_log_erasable_at(uint64_t guarded_size);
/* What replaces that head in an erased frame. */
void cx_log_erased_head(uint8_t out[CX_LOG_ERASABLE_HEAD_SIZE]);
uint64_t cx_log_frame_bytes(uint64_t guarded_size, uint64_t erasable_size);
/* Writes cx_log_frame_bytes() bytes that will stand at `offset`. */
void cx_log_frame_encode(const cx_log_frame *frame, uint32_t seed, uint64_t offset, uint8_t *out);
/* The sizes from a frame's head; false when it is none. */
bool cx_log_frame_sizes(const uint8_t *head, uint32_t *out_guarded, uint32_t *out_erasable);
/* `in` holds the frame up to the end of its guarded part; false when that is not what was written.
 */
bool cx_log_frame_guarded(const uint8_t *in, uint32_t seed, uint64_t offset, cx_bytes *out);
/* What the head of an erasable part says of it, CX_LOG_SPOILT when nothing; not what it has. */
cx_log_erasable cx_log_erasable_said(const uint8_t head[CX_LOG_ERASABLE_HEAD_SIZE]);
/* `in` holds the whole frame; false when the guarded part is not what was written. */
bool cx_log_frame_decode(const uint8_t *in, uint32_t seed, uint64_t offset, cx_log_frame *out,
                         cx_log_erasable *out_erasable);

void cx_log_mark_encode(const cx_log_mark *mark, uint32_t seed, uint64_t offset,
                        uint8_t out[CX_LOG_MARK_SIZE]);
bool cx_log_mark_decode(const uint8_t *in, uint32_t seed, uint64_t offset, cx_log_mark *out);
/* Whether four bytes begin a mark. */
bool cx_log_is_mark(const uint8_t *in);
uint32_t cx_log_mark_frames(const uint8_t *mark); /* of one that is whole */

/* --- the log ------------------------------------------------------------------------------- */

/* The segment that is packed into an archive.  What is erased in it meanwhile must not stay in the
 * copy: an erasure has the copy given up, and waits for that. */
typedef struct cx_log_packing {
    bool active;
    bool unwanted; /* by an erasure in it, or by who was asked to archive */
    bool left;     /* a copy could not be overwritten; nothing is erased before it is */
    uint32_t segment;
} cx_log_packing;

/* The thread that archives by itself. */
typedef struct cx_log_archiver {
    cx_thread thread;
    cx_lock lock; /* guards what follows */
    bool on, stop;
    cx_log_archiving wanted; /* `folder` is `target` */
    char target[CX_LOG_PATH_SIZE];
    uint32_t from;                     /* all segments below have been archived */
    uint64_t commits_seen, written_ns; /* whether the log is being written to */
    uint64_t block_ns;                 /* when the block began */
    cx_log_archiving_state state;
} cx_log_archiver;

/* An open segment file that single frames are read from. */
typedef struct cx_log_file {
    cx_file file;
    uint32_t segment;
    uint32_t users;
    uint64_t last_used; /* 0 = the slot is free */
    bool stale;         /* not for new users: the file may have been replaced */
} cx_log_file;

/* The place after a commit's mark. */
typedef struct cx_log_point {
    uint32_t segment;
    uint64_t offset;  /* 0 = none */
    uint64_t commits; /* up to there */
    uint8_t mark[CX_LOG_MARK_SIZE];
} cx_log_point;

/* Both are of commits that are on the disk; see trail.c. */
typedef struct cx_log_trail {
    cx_log_point known; /* where who opens the log begins to read: a step or two before the end */
    cx_log_point next;  /* the next `known`, when the log has grown by a step after it */
} cx_log_trail;

typedef struct cx_log_spare {
    cx_file file; /* open when ready */
    bool ready;
    bool preparing;    /* by the thread */
    bool tried;        /* for this segment; a failure is not repeated ahead of need */
    uint32_t ahead_of; /* the number of the segment that is being filled */
    _Atomic bool stop;
    cx_thread thread;
} cx_log_spare;

struct cx_log {
    const cx_alloc *alloc;
    cx_archives *archives;
    const cx_io *io; /* of `archives`: segments are there, archived or not */
    char *folder;
    size_t folder_size; /* with its zero */
    uint8_t home_id[CX_LOG_ID_SIZE];
    bool read_only;
    uint64_t segment_bytes, trail_bytes;

    cx_lock lock;   /* guards what follows, up to files */
    bool busy;      /* a thread writes a group or goes on to the next segment */
    bool switching; /* the latter */
    bool poisoned;
    cx_err poison;
    cx_log_header head; /* of the segment that is written to, or the last one found */
    uint32_t seed;
    cx_file file;
    uint64_t durable;    /* commits on the disk; when read-only: seen so far */
    uint64_t end_offset; /* after the last of them */
    uint8_t last_mark[CX_LOG_MARK_SIZE];
    cx_log_trail trail;
    uint64_t next_offset;   /* where the pending group will stand */
    uint64_t next_commit;   /* its number */
    uint64_t bytes_written; /* to this segment by this object */
    uint32_t pending_frames;
    uint32_t pending_crc; /* over the heads of its frames */
    cx_buf pending;
    cx_buf writing; /* the other buffer: the group that is being written */
    bool begun;     /* .. all of it with its mark, but no thread syncs it yet */
    cx_log_spare spare;

    cx_lock files_lock; /* guards what follows */
    cx_file lock_file;
    uint64_t file_clock;
    cx_log_file files[CX_LOG_FILES_MAX];

    cx_lock erase_lock; /* one erasure at a time; guards what follows */
    cx_log_packing packing;

    cx_log_archiver archiver;
};

CX_RESULT cx_log_damaged(cx_err *err, const char *path, uint64_t offset, const char *what);

/* --- segment.c ----------------------------------------------------------------------------- */

/* `folder`/name; the folder's length was checked when the log was opened. */
void cx_log_path(const cx_log *log, const char *name, char out[CX_LOG_PATH_SIZE]);
void cx_log_segment_path(const cx_log *log, uint32_t segment, char out[CX_LOG_PATH_SIZE]);

/* How many segments there are; a gap is damage, none at all CX_E_NOT_FOUND. */
CX_RESULT cx_log_segment_count(const cx_log *log, uint32_t *out, cx_err *err);

/* A new file of zeros under a working name, synced; gives up when the log is being closed. */
CX_RESULT cx_log_segment_prepare(const cx_log *log, const char *name, uint64_t size_bytes,
                                 cx_file *out, cx_err *err);
/* Gives the prepared file its header and its name, both durable. */
CX_RESULT cx_log_segment_begin(const cx_log *log, const char *name, cx_file file,
                               const cx_log_header *header, cx_err *err);
/* Opens and checks size and header; CX_E_NOT_FOUND when there is no such file. */
CX_RESULT cx_log_segment_open(const cx_log *log, uint32_t segment, unsigned flags, cx_file *out,
                              cx_log_header *out_header, cx_err *err);

extern const char cx_log_spare_name[], cx_log_large_name[];

/* Takes the lock for writing; CX_E_BUSY "Locked". */
CX_RESULT cx_log_lock_acquire(cx_log *log, cx_err *err);
/* What the last writer said was durable; 0 when nothing is known. */
uint64_t cx_log_lock_count(const cx_log *log);
void cx_log_lock_publish(const cx_log *log, uint64_t count);
/*
 * When read-only: commits below *out_required must be there; those from *out_limit on are not to be
 * shown yet (UINT64_MAX: there is no writer).
 */
CX_RESULT cx_log_lock_inspect(cx_log *log, uint64_t *out_required, uint64_t *out_limit,
                              cx_err *err);

/* --- window.c ------------------------------------------------------------------------------ */

typedef CX_VEC(cx_log_item) cx_log_items;

typedef struct cx_log_group {
    uint64_t offset;
    uint64_t end; /* after the mark */
    cx_log_mark mark;
    uint8_t mark_bytes[CX_LOG_MARK_SIZE];
    bool spoilt; /* an erasable part is as no writer leaves it: torn, when this is the last group */
} cx_log_group;

/* A piece of a segment file in memory. */
typedef struct cx_log_window {
    cx_log *log;
    cx_file file;
    cx_log_header header;
    uint32_t seed;
    uint64_t base; /* offset of the first byte held */
    cx_buf bytes;
    cx_log_items items; /* of the group read last */
} cx_log_window;

void cx_log_window_init(cx_log_window *window, cx_log *log);
CX_RESULT cx_log_window_open(cx_log_window *window, uint32_t segment, cx_err *err);
void cx_log_window_close(cx_log_window *window);
void cx_log_window_done(cx_log_window *window);

/* Reads the group that begins at `offset`, with whatever number.  Not whole: *out_whole false. */
CX_RESULT cx_log_window_group(cx_log_window *window, uint64_t offset, cx_log_group *out,
                              bool *out_whole, cx_err *err);

typedef struct cx_log_found {
    bool found;
    uint64_t mark_offset;
    cx_log_mark mark;
    uint64_t data_end; /* after the last byte that is not zero; when nothing was found */
} cx_log_found;

/* Looks from `offset` on for a mark with number `least` or higher. */
CX_RESULT cx_log_window_search(cx_log_window *window, uint64_t offset, uint64_t least,
                               cx_log_found *out, cx_err *err);
/* The same, but only a mark whose whole group is there; false when there is none. */
CX_RESULT cx_log_window_next_whole(cx_log_window *window, uint64_t offset, uint64_t least,
                                   cx_log_group *out, bool *out_found, cx_err *err);

/* --- trail.c ------------------------------------------------------------------------------- */

/* What the lock file says of the window's segment, if it is true; otherwise both are none. */
void cx_log_trail_begin(cx_log_trail *trail, const cx_log_window *window);
/* A commit that ends at `end` is on the disk, and the one after it too, or no other is being
 * written.  True when `known` moved on, and is to be published. */
bool cx_log_trail_step(cx_log_trail *trail, uint64_t step_bytes, const cx_log_point *end);
/* By the writer. */
void cx_log_trail_publish(const cx_log *log);

/* --- open.c, commit.c, read.c -------------------------------------------------------------- */

/* No slot has that segment open any more. */
void cx_log_files_forget(cx_log *log, uint32_t segment);

/* A log object without anything opened. */
CX_RESULT cx_log_new(const char *folder, const cx_log_options *options, cx_log **out, cx_err *err);

/* With erase_lock held, before anything in that segment is erased: no copy of it is on its way. */
CX_RESULT cx_log_stop_packing(cx_log *log, uint32_t segment, cx_err *err);
/* Which of the two forms a segment has. */
CX_RESULT cx_log_is_archived(const cx_log *log, uint32_t segment, bool *out, cx_err *err);
/* Whether its file was last written to at least so long ago. */
CX_RESULT cx_log_is_old(const cx_log *log, uint32_t segment, int64_t age_ns, bool *out,
                        cx_err *err);
/* Segments that have a successor. */
uint32_t cx_log_closed_segments(cx_log *log);
/* One segment that has a successor, if it is not archived yet.  *out_stopped: `pace` or a thread
 * that could not wait said so; the segment is as it was. */
CX_RESULT cx_log_archive_segment(cx_log *log, uint32_t segment, const cx_archive_pace *pace,
                                 cx_log_archived *done, bool *out_stopped, cx_err *err);
/* From now on archives are put into `folder` (cx_log_archive_options). */
CX_RESULT cx_log_archive_move(cx_log *log, const char *folder, cx_err *err);
/* Ends the thread that archives; it gives up the segment that it is at. */
void cx_log_archiver_done(cx_log *log);
/* The last failure of it that a process noted in the log's folder. */
void cx_log_archiver_noted(const cx_log *log, cx_log_space *out);

/* Makes the name of the log's folder durable in the folder above it. */
CX_RESULT cx_log_sync_above(const cx_log *log, cx_err *err);

/* With the lock held: makes every later call fail. */
void cx_log_poison(cx_log *log, const cx_err *cause);
/* Waits for the helper and removes what it prepared. */
void cx_log_spare_done(cx_log *log);

void cx_log_files_done(cx_log *log);

#endif
