/*
 * files_internal.h - between the files of files.h, their locks, and SQLite.
 */
#ifndef CX_DB_FILES_INTERNAL_H
#define CX_DB_FILES_INTERNAL_H

#include <stdatomic.h>

#include "base/api.h"

#define CX_FILES_VFS "cortex-io"

enum {
    CX_IMAGE_BLOCK = 4096, /* what is staged is counted in these */
    CX_IMAGE_SLOTS = 8     /* locks on the index of the write-ahead log */
};

/* Registers the VFS; its name, or NULL when that failed. */
const char *cx_files_register(void);
/* The errno of the last failure on this thread since the last call; 0 = none. */
int cx_files_take_errno(void);

/* --- images ----------------------------------------------------------------------------------- */

typedef struct cx_image_locks {
    pthread_mutex_t mutex;
    unsigned shared;    /* connections with a lock on the file */
    const void *writer; /* the one with more than a shared lock, and its level */
    int writer_level;
    int slots[CX_IMAGE_SLOTS]; /* -1 = exclusive, else how many share it */
    void **regions;            /* of the index */
    size_t region_count, region_size;
    unsigned region_users;
} cx_image_locks;

/* A database as this process has it: shared by all connections to a path that is written. */
typedef struct cx_image {
    struct cx_image *next; /* of those that are written */
    char *path;
    unsigned users; /* under the registry's lock, as `next` */
    bool live;      /* some connection writes, or did */
    const cx_io *io;
    cx_file file;
    atomic_int failure; /* errno of what failed on the way to the io; nothing is changed after it */

    pthread_mutex_t changing;  /* of the contents: one at a time */
    pthread_rwlock_t contents; /* also to be had for a change of these */
    cx_file stage;             /* blocks on their way to the io, each at its own offset */
    cx_buf staged;             /* a bit for each block: it is in `stage` */
    uint64_t size;             /* as SQLite sees it */
    uint64_t base;             /* bytes of the io's file that count; what follows reads as zeros */
    bool changed;              /* since the last sync */

    cx_file log; /* write-ahead log; CX_FILE_NONE = it is empty and stays so */
    cx_image_locks locks;
} cx_image;

/* A connection's part in it. */
typedef struct cx_image_user {
    cx_image *image;
    bool writes;
    bool uses_index;
    int level;
    unsigned shared_slots, exclusive_slots; /* bits */
} cx_image_user;

/* The io of a path that begins with the prefix, or NULL. */
const cx_io *cx_files_io(const char *path);

/* These return 0 or a negated errno.  -ESTALE: a change of it failed before. */
int cx_image_open(const char *path, bool writes, bool create, cx_image **out);
/* Of a path that is written; NULL when there is none.  Borrowed: the caller has it open. */
cx_image *cx_image_find(const char *path);
/* The size of the write-ahead log of such a path, 0 when there is none.  `drop`: it is emptied,
 * unless a connection uses it. */
int cx_image_find_log(const char *path, bool drop, uint64_t *out);
void cx_image_close(cx_image *image);
/* `*out_count` < size only at the end. */
int cx_image_read(cx_image *image, void *data, size_t size, uint64_t offset, size_t *out_count);
int cx_image_write(cx_image *image, const void *data, size_t size, uint64_t offset);
int cx_image_truncate(cx_image *image, uint64_t size);
int cx_image_sync(cx_image *image);
uint64_t cx_image_size(cx_image *image);

/* The write-ahead log.  Reading and writing it needs no lock: SQLite's do. */
int cx_image_log_read(const cx_image *image, void *data, size_t size, uint64_t offset,
                      size_t *out_count);
int cx_image_log_write(const cx_image *image, const void *data, size_t size, uint64_t offset);
int cx_image_log_truncate(const cx_image *image, uint64_t size);
int cx_image_log_size(const cx_image *image, uint64_t *out);

/* --- locks ------------------------------------------------------------------------------------ */

/* These return a code of SQLite, SQLITE_BUSY at once when another connection is in the way. */
bool cx_image_locks_init(cx_image_locks *locks);
void cx_image_locks_done(cx_image_locks *locks);
int cx_image_lock(cx_image_user *user, int level);
void cx_image_unlock(cx_image_user *user, int level);
bool cx_image_is_reserved(const cx_image_user *user);
/* Memory of the index, which all connections share; NULL when it is not there and not to be
 * made. */
int cx_image_index(cx_image_user *user, size_t region, size_t size, bool make, void volatile **out);
int cx_image_index_lock(cx_image_user *user, int slot, int count, int flags);
void cx_image_index_barrier(cx_image_user *user);
bool cx_image_index_is_used(cx_image *image);
/* Leaves the locks of the index; the last one drops it. */
void cx_image_index_leave(cx_image_user *user);

#endif
