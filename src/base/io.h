/*
 * io.h - files, clocks and randomness as an interface.
 *
 * Modules reach them only through a cx_io, so that tests can fail the n-th call, tear writes and
 * set the clock, and so that replay is deterministic.  cx_io_system() is the implementation over
 * the operating system.  Thread-safe.
 */
#ifndef CX_BASE_IO_H
#define CX_BASE_IO_H

#include "base/buf.h"
#include "base/status.h"

typedef int cx_file; /* as a descriptor; CX_FILE_NONE when there is none */
#define CX_FILE_NONE (-1)
#define CX_FILE_STDIN 0

enum {
    CX_IO_READ = 1,
    CX_IO_WRITE = 2,
    CX_IO_CREATE = 4,    /* make it when absent, mode 0600 unless CX_IO_PUBLIC */
    CX_IO_EXCLUSIVE = 8, /* with CREATE: fail with CX_E_EXISTS when present */
    CX_IO_TRUNCATE = 16,
    CX_IO_PUBLIC = 32, /* with CREATE: mode 0666 less the umask */
    CX_IO_DIRECTORY = 64,
    CX_IO_NO_LINKS = 128,
    CX_IO_APPEND = 256 /* with WRITE: each write goes to the end */
};

typedef struct cx_io cx_io;

/* Called for each name in a folder; false stops the listing. */
typedef bool cx_io_name(void *arg, const char *name);

/* Each call returns 0 or a negated errno; sizes are returned as non-negative numbers. */
struct cx_io {
    int (*open)(const cx_io *io, const char *path, unsigned flags, cx_file *out);
    int (*close)(const cx_io *io, cx_file file);
    int64_t (*read)(const cx_io *io, cx_file file, void *data, size_t size);
    int64_t (*pread)(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset);
    int64_t (*write)(const cx_io *io, cx_file file, const void *data, size_t size);
    int64_t (*pwrite)(const cx_io *io, cx_file file, const void *data, size_t size,
                      uint64_t offset);
    int (*sync)(const cx_io *io, cx_file file, bool data_only);
    /* Starts writeback of a range.  Does not wait and guarantees nothing; the next sync reports
     * errors. */
    void (*start_sync)(const cx_io *io, cx_file file, uint64_t offset, uint64_t size);
    /* The page cache may drop the pages of this file that are on the disk.  A hint. */
    void (*forget)(const cx_io *io, cx_file file);
    int (*truncate)(const cx_io *io, cx_file file, uint64_t size);
    int (*size)(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular);
    int (*rename)(const cx_io *io, const char *from, const char *to);
    int (*unlink)(const cx_io *io, const char *path);
    int (*mkdir)(const cx_io *io, const char *path);
    /* Names in no order, without "." and "..".  A callback that stops the listing is no error. */
    int (*list)(const cx_io *io, const char *path, cx_io_name *name, void *arg);
    /* Reserves disk space for the first `size` bytes; bytes past the old end read as zeros. */
    int (*allocate)(const cx_io *io, cx_file file, uint64_t size);
    /* An exclusive lock that ends when the file is closed, at the latest with the process; -EAGAIN
     * when another open of the file has it, in this process or another. */
    int (*lock)(const cx_io *io, cx_file file);
    /* Whether another open of the file has that lock.  Does not acquire it. */
    int (*locked)(const cx_io *io, cx_file file, bool *out_locked);
    /* Whether what one sync brought to the storage begins at `offset`.  -ENOTSUP, or no such call
     * (NULL): it cannot tell, as a file system cannot. */
    int (*write_began)(const cx_io *io, cx_file file, uint64_t offset, bool *out_began);
    uint64_t (*process_id)(const cx_io *io);
    uint64_t (*wall_ns)(const cx_io *io);      /* since 1970-01-01 UTC */
    uint64_t (*monotonic_ns)(const cx_io *io); /* from an arbitrary start */
    int (*random)(const cx_io *io, void *data, size_t size);
    void *ctx;
};

const cx_io *cx_io_system(void);

/* Reads `size` bytes, retrying short reads and EINTR; *out_size < size only at the end of the file.
 */
CX_RESULT cx_io_read_some(const cx_io *io, cx_file file, const char *path, void *data, size_t size,
                          size_t *out_size, cx_err *err);

/* Writes all, retrying short writes and EINTR. */
CX_RESULT cx_io_write_all(const cx_io *io, cx_file file, const char *path, const void *data,
                          size_t size, cx_err *err);

/* The same at an offset: `*out_size` < size only where the file ends. */
CX_RESULT cx_io_read_at(const cx_io *io, cx_file file, const char *path, void *data, size_t size,
                        uint64_t offset, size_t *out_size, cx_err *err);
CX_RESULT cx_io_write_at(const cx_io *io, cx_file file, const char *path, const void *data,
                         size_t size, uint64_t offset, cx_err *err);

/* Makes creations, renames and removals in a folder durable. */
CX_RESULT cx_io_sync_folder(const cx_io *io, const char *folder, cx_err *err);

/* Appends the whole file ("-" = standard input) to buf; CX_E_LIMIT when longer than limit_bytes. */
CX_RESULT cx_io_read_file(const cx_io *io, const char *path, size_t limit_bytes, cx_buf *buf,
                          cx_err *err);

/* Replaces a file atomically: temporary file in the same folder, sync, rename, sync of the
 * folder. */
CX_RESULT cx_io_replace_file(const cx_io *io, const char *path, cx_bytes contents, cx_err *err);
/* The same for a file that only its owner may read (mode 0600). */
CX_RESULT cx_io_replace_private_file(const cx_io *io, const char *path, cx_bytes contents,
                                     cx_err *err);

/* A random seed for hash maps; 0 when random bytes cannot be read. */
uint64_t cx_io_seed(const cx_io *io);

#endif
