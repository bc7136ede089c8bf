/*
 * files_internal.h - shared by the files of files.h; private to them.
 *
 *   files.c         opening, closing, the lease and its threads
 *   files_io.c      the cx_io: paths, handles, and which of the following a call goes to
 *   files_names.c   names of the owner's files: seeing, making, renaming, removing them
 *   files_chunks.c  their bytes in memory
 *   files_bytes.c   reading, writing and syncing them
 *   files_small.c   small files
 *   files_trail.c   where in the log reading may begin
 *
 * Locks, in the order in which they are taken:
 *
 *   writer_lock  the connection that commits, renews and knows small files, and `part`.  Who has it
 *                is the only one who changes names, or syncs.
 *   reader_lock  the connection that reads chunks.
 *   lock         all that is in memory; never held during a query.
 *
 * Invariants:
 *
 *   M1  What no chunk in memory has is as in the database: in a chunk, pages that are not `valid`.
 *   M2  A chunk that is dirty, being synced or loaded stays in memory.
 *   M3  From `end` on the database has nothing of a file, and from `data_end` on all bytes are
 *       zero, in memory, too.
 *   M4  While `turning` (the lease is being taken or given back) nothing is loaded.
 *   M5  What is loaded while the part is owned is of a state that has all of this process's
 *       commits.
 *   M6  A database is read, through one handle, in one state but for what this process writes: who
 *       opened it before the lease was taken or given back gets -ESTALE.  (A log only grows.)
 */
#ifndef CX_FLEET_FILES_INTERNAL_H
#define CX_FLEET_FILES_INTERNAL_H

#include "fleet/files.h"

#define CX_FILES_PREFIX "fleet:"
/* Numbers of files: above those of descriptors, below those of a log's archives. */
#define CX_FILES_FIRST (1 << 27)
#define CX_FILES_HANDLES_MAX 65536
#define CX_FILES_COUNT_MAX (1u << 20)         /* files of the owner */
#define CX_FILES_SIZE_MAX (UINT64_C(1) << 46) /* bytes of one */
#define CX_FILES_PRIVATE_MAX 65536            /* .. of log/lock */
#define CX_FILES_FOLDERS_MAX 1024             /* made, and still empty */
#define CX_FILES_PAGE 4096u
#define CX_FILES_PAGES (CX_FLEET_CHUNK / CX_FILES_PAGE)
#define CX_FILES_ALL_PAGES ((1u << CX_FILES_PAGES) - 1)
#define CX_FILES_RANGES 8
#define CX_FILES_AHEAD 16 /* chunks of one query */
#define CX_FILES_NAME_SIZE (CX_FLEET_FILE_NAME_MAX + 1)

typedef struct cx_files_range {
    uint32_t from, to; /* in the chunk */
} cx_files_range;

typedef struct cx_files_file cx_files_file;

/* What of a chunk is to be written: ranges, or pages where the file is a database. */
typedef struct cx_files_dirt {
    uint32_t pages; /* a bit each */
    uint32_t count; /* of ranges, which do not touch */
    cx_files_range ranges[CX_FILES_RANGES];
} cx_files_dirt;

typedef struct cx_files_chunk {
    cx_files_file *file;
    uint64_t index;
    struct cx_files_chunk *same;          /* next with its hash */
    struct cx_files_chunk *newer, *older; /* by use */
    struct cx_files_chunk *next, *before; /* of the file */
    uint32_t valid;                       /* pages, a bit each */
    bool loading, syncing;
    bool listed_dirty;
    cx_files_dirt dirt, taken; /* taken: by the sync that runs */
    uint8_t bytes[CX_FLEET_CHUNK];
} cx_files_chunk;

struct cx_files_file {
    char name[CX_FILES_NAME_SIZE];
    uint64_t number;
    uint64_t size;      /* as this process sees it */
    uint64_t committed; /* .. and as the database has it */
    uint64_t synced_end;
    uint64_t low; /* the smallest size since the last sync */
    uint64_t end, data_end;
    uint64_t next_chunk; /* after the last load */
    uint32_t ahead;      /* chunks that the next load in order has */
    uint32_t handles, loads;
    bool pages;   /* derived, a database: pages, and its size changes with the sync */
    bool failed;  /* a write or a sync, since it was opened */
    bool private; /* log/lock: in this process alone, in `bytes` */
    bool removed;
    cx_buf bytes;
    cx_files_chunk *chunks[2]; /* [1]: those with `dirt` */
};

typedef enum cx_files_kind { CX_FILES_FOLDER, CX_FILES_OWNED, CX_FILES_SMALL } cx_files_kind;

typedef struct cx_files_handle {
    cx_files_kind kind;
    unsigned flags;
    bool locked;
    uint64_t at; /* of read and write */
    cx_files_file *file;
    uint64_t turn; /* of the lease, when it was opened */
    /* small */
    char name[CX_FILES_NAME_SIZE];
    bool dirty, orphan;
    uint64_t version; /* counts what changes `bytes` */
    cx_buf bytes;
} cx_files_handle;

/* Of the log's lock file; see files_trail.c. */
typedef struct cx_files_trail {
    uint8_t bytes[CX_FLEET_TRAIL];
    bool there;
    bool changed; /* by this process, and not in the database yet */
} cx_files_trail;

typedef struct cx_files_cache {
    cx_files_chunk **slots;
    size_t slot_count; /* a power of two */
    size_t count, limit;
    cx_files_chunk *newest, *oldest;
} cx_files_cache;

struct cx_fleet_files {
    cx_fleet_files_options options;
    const cx_io *under;
    cx_io io;
    char url[CX_FLEET_URL_MAX + 1];
    char path[sizeof CX_FILES_PREFIX + CX_FLEET_PART_NAME_MAX];
    char node[CX_FLEET_NODE_MAX + 1];

    cx_lock writer_lock;
    cx_fleet *writer;
    cx_fleet_part part;

    cx_lock reader_lock;
    cx_fleet *reader; /* NULL until it is needed */

    cx_lock lock;                  /* guards what follows */
    CX_VEC(cx_files_file *) names; /* by name */
    CX_VEC(cx_files_handle *) handles;
    CX_VEC(char *) folders;
    cx_files_cache cache;
    unsigned number; /* of the part */
    uint64_t turn;   /* counts takes of the lease, and giving it back */
    uint64_t known;  /* commits of the part, while it is owned */
    uint64_t quota;  /* .. and what its log may have; 0 = any */
    uint64_t top;    /* the highest number of a file that was seen */
    uint32_t lease_ms;
    cx_files_trail trail;
    bool seen; /* `names` are those of the database */
    bool owned, lost, turning, bulk, stopping;
    unsigned loads;
    uint64_t tables_ns;           /* when the tables were synced last; 0 = not by this process */
    uint64_t heard_ns;            /* when the newest request that renewed the lease was sent */
    cx_files_handle *lock_handle; /* has the lease, takes it or gives it back */
    char why[CX_ERR_MESSAGE_SIZE], shown[CX_ERR_MESSAGE_SIZE];
    cx_thread renewer, watcher;
};

static inline const cx_alloc *cx_files_alloc(void)
{
    return cx_alloc_default();
}

/* --- files.c ---------------------------------------------------------------------------------- */

/* Keeps the words of `err` and returns its number, negative. */
int cx_files_errno(cx_fleet_files *files, const cx_err *err);

/* Takes `lock` for a call on the owner's files, and sees their names where `see`; 0, or a negated
 * errno, and the lock is not held then. */
int cx_files_enter(cx_fleet_files *files, bool see);
/* With the lock held: whether the answer may still be given; 0 or a negated errno. */
int cx_files_still(cx_fleet_files *files);
/* With the lock held: -EROFS where the lease is not this process's. */
int cx_files_may_write(const cx_fleet_files *files);
/* Gives `lock` back. */
void cx_files_leave(cx_fleet_files *files);

/* With writer_lock held and `lock` not: one commit.  A failure that may have lost the lease loses
 * the part (P6). */
int cx_files_commit(cx_fleet_files *files, const cx_fleet_change *change, uint64_t bytes);
/* P1; without any lock held. */
int cx_files_take(cx_fleet_files *files, cx_files_handle *handle);
void cx_files_give_back(cx_fleet_files *files);

/* With reader_lock held: opens it where it is not. */
CX_RESULT cx_files_open_reader(cx_fleet_files *files, bool owned, cx_err *err);

/* --- files_io.c ------------------------------------------------------------------------------- */

void cx_files_io_init(cx_fleet_files *files);
void cx_files_io_done(cx_fleet_files *files);

/* With `lock` held: M6; 0 or -ESTALE. */
int cx_files_is_fresh(const cx_fleet_files *files, const cx_files_handle *handle);

/* --- files_names.c ---------------------------------------------------------------------------- */

/* log/.. and *.db; also the tables that a rebuild makes. */
bool cx_files_is_owned(const char *name);
/* With `lock` held. */
cx_files_file *cx_files_find(const cx_fleet_files *files, const char *name);
/* Reads names and trail through `fleet`, with the lock of that connection held and `lock` not. */
CX_RESULT cx_files_see(cx_fleet_files *files, cx_fleet *fleet, cx_err *err);
/* With `lock` held, which is left meanwhile: sees the names where they were not seen. */
int cx_files_see_once(cx_fleet_files *files);
/* With `lock` held: one who had it open is done with it. */
void cx_files_drop_handle(cx_fleet_files *files, cx_files_file *file);
/* Without locks. */
int cx_files_open_owned(cx_fleet_files *files, const char *name, cx_files_handle *handle);
int cx_files_remove(cx_fleet_files *files, const char *name);
int cx_files_rename(cx_fleet_files *files, const char *from, const char *to);
/* With `lock` held, nothing being loaded: those that are not open, and all bytes. */
void cx_files_forget_names(cx_fleet_files *files);

/* --- files_chunks.c; with `lock` held --------------------------------------------------------- */

bool cx_files_cache_init(cx_files_cache *cache, uint64_t bytes);
void cx_files_cache_done(cx_files_cache *cache);
cx_files_chunk *cx_files_chunk_find(cx_fleet_files *files, const cx_files_file *file,
                                    uint64_t index);
/* Finds or makes it; NULL when out of memory. */
cx_files_chunk *cx_files_chunk_make(cx_fleet_files *files, cx_files_file *file, uint64_t index);
void cx_files_chunk_drop(cx_fleet_files *files, cx_files_chunk *chunk);
/* Those from `from` on, dirty or not; none is being loaded. */
void cx_files_chunks_drop(cx_fleet_files *files, cx_files_file *file, uint64_t from);
/* Those that need not stay. */
void cx_files_chunks_forget(cx_fleet_files *files, const cx_files_file *file);
bool cx_files_is_dirty(const cx_files_dirt *dirt);
/* After `dirt` was changed. */
void cx_files_chunk_relist(cx_files_chunk *chunk);
void cx_files_dirty_range(cx_files_dirt *dirt, uint32_t from, uint32_t to);
void cx_files_dirty_add(cx_files_dirt *to, const cx_files_dirt *more);
/* Leaves the lock: loads `index`, and up to `wanted` chunks with it; waits when another thread does
 * it.  Afterwards the chunk is looked for again. */
int cx_files_load(cx_fleet_files *files, cx_files_file *file, uint64_t index, uint64_t wanted);
/* Waits until nothing of the file is being loaded. */
void cx_files_wait_loads(cx_fleet_files *files, const cx_files_file *file);

/* --- files_bytes.c; without locks ------------------------------------------------------------- */

int64_t cx_files_read(cx_fleet_files *files, cx_files_handle *handle, void *data, size_t size,
                      const uint64_t *offset);
int64_t cx_files_write(cx_fleet_files *files, cx_files_handle *handle, const void *data,
                       size_t size, const uint64_t *offset);
int cx_files_sync(cx_fleet_files *files, const cx_files_handle *handle);
/* `grow_only`: as allocate. */
int cx_files_resize(cx_fleet_files *files, const cx_files_handle *handle, uint64_t size,
                    bool grow_only);

/* --- files_trail.c ---------------------------------------------------------------------------- */

/* Through `fleet`, with the lock of that connection held and `lock` not. */
CX_RESULT cx_files_trail_load(cx_fleet_files *files, cx_fleet *fleet, cx_err *err);
/* With `lock` held: the lock file of this process has what was loaded. */
void cx_files_trail_fill(const cx_fleet_files *files, cx_files_file *file);
/* With `lock` held, after the lock file was written to. */
void cx_files_trail_note(cx_fleet_files *files, const cx_files_file *file);
/* With writer_lock held and `lock` not: what was noted goes to the database. */
void cx_files_trail_store(cx_fleet_files *files);
/* Without locks: as write_began of a cx_io. */
int cx_files_write_began(cx_fleet_files *files, const cx_files_handle *handle, uint64_t offset,
                         bool *out_began);

/* --- files_small.c; without locks ------------------------------------------------------------- */

int cx_small_open(cx_fleet_files *files, const char *name, cx_files_handle *handle);
int cx_small_close(cx_fleet_files *files, cx_files_handle *handle);
int64_t cx_small_read(cx_fleet_files *files, cx_files_handle *handle, void *data, size_t size,
                      const uint64_t *offset);
int64_t cx_small_write(cx_fleet_files *files, cx_files_handle *handle, const void *data,
                       size_t size, const uint64_t *offset);
int cx_small_sync(cx_fleet_files *files, cx_files_handle *handle);
int cx_small_resize(cx_fleet_files *files, cx_files_handle *handle, uint64_t size, bool grow_only);
int cx_small_lock(cx_fleet_files *files, cx_files_handle *handle);
int cx_small_locked(cx_fleet_files *files, const cx_files_handle *handle, bool *out_locked);
int cx_small_rename(cx_fleet_files *files, const char *from, const char *to);
int cx_small_remove(cx_fleet_files *files, const char *name);
/* Calls `each` for the names. */
int cx_small_list(cx_fleet_files *files, void (*each)(void *arg, cx_str name), void *arg);

#endif
