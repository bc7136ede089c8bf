/*
 * folder.h - untrusted folders: paths inside are resolved without following links and without
 * leaving the folder, and entries of any kind are reported as they are (lstat).
 *
 * A folder is an open descriptor (a cx_file).  Paths passed with a folder are relative to it, with
 * '/' between components.  Every component but the last must be a folder; "..", an absolute path,
 * or a link on the way is CX_E_DENIED (openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS where
 * the kernel has it, else the same component by component).  "" or "." is the folder itself.
 * Functions named cx_path_ take an ordinary path in a trusted place instead.  All are thread-safe.
 */
#ifndef CX_OS_FOLDER_H
#define CX_OS_FOLDER_H

#include "base/api.h"

#define CX_PATH_BYTES_MAX 4095 /* of one path; longer ones are CX_E_LIMIT */

typedef enum cx_file_kind {
    CX_FILE_REGULAR,
    CX_FILE_FOLDER,
    CX_FILE_LINK,
    CX_FILE_SPECIAL /* FIFO, socket, device */
} cx_file_kind;

typedef struct cx_facts {
    cx_file_kind kind;
    uint32_t mode; /* permission bits with set-uid, set-gid and sticky: 07777 */
    uint32_t owner_id;
    uint32_t group_id;
    uint64_t size_bytes;
    uint64_t link_count;
    uint64_t device;
    uint64_t inode;
    int64_t modified_ns; /* since 1970 */
    int64_t changed_ns;  /* ctime: the last change of contents or attributes */
} cx_facts;

/* --- opening and reading -------------------------------------------------------------------- */

/* Opens a folder in a trusted place: links on the way are followed. */
CX_RESULT cx_folder_open(const char *path, cx_file *out, cx_err *err);
/* Opens a file or folder in it, with the CX_IO_ flags of io.h (CX_IO_DIRECTORY for a folder); the
 * last component must not be a link either.  Never waits for the other end of a FIFO. */
CX_RESULT cx_folder_open_in(cx_file folder, const char *path, unsigned flags, cx_file *out,
                            cx_err *err);
void cx_folder_close(cx_file folder); /* CX_FILE_NONE is accepted */

/* lstat.  CX_E_NOT_FOUND when it does not exist. */
CX_RESULT cx_folder_facts(cx_file folder, const char *path, cx_facts *out, cx_err *err);
CX_RESULT cx_path_facts(const char *path, bool follow, cx_facts *out, cx_err *err);
CX_RESULT cx_file_facts(cx_file file, cx_facts *out, cx_err *err);

/* Appends the contents of a regular file (CX_E_DENIED for other kinds); CX_E_LIMIT when longer. */
CX_RESULT cx_folder_read_file(cx_file folder, const char *path, size_t limit_bytes, cx_buf *out,
                              cx_err *err);
/* Appends the target of a symbolic link. */
CX_RESULT cx_folder_read_link(cx_file folder, const char *path, cx_buf *out, cx_err *err);
/*
 * From here on paths that are `prefix` or begin with it and "/" are those of `io`, for
 * cx_path_facts and cx_path_real: a name that opens is a regular file, one that lists a folder.
 * NULL takes it back.  Before threads begin; both live until then.
 */
void cx_path_use_files(const char *prefix, const cx_io *io);
/* Appends the path with every link resolved. */
CX_RESULT cx_path_real(const char *path, cx_buf *out, cx_err *err);
/* Names in no order; the callback stops the listing by returning false. */
CX_RESULT cx_folder_list(cx_file folder, const char *path, cx_io_name *name, void *arg,
                         cx_err *err);

/* --- walking -------------------------------------------------------------------------------- */

typedef struct cx_walk_entry {
    const char *path; /* from the folder walked, terminated; only during the call */
    size_t path_size;
    const char *name; /* its last component */
    cx_facts facts;
    cx_file parent; /* the folder that holds it, open during the call */
} cx_walk_entry;

typedef enum cx_walk_step {
    CX_WALK_ON,
    CX_WALK_SKIP /* do not enter this folder */,
    CX_WALK_STOP
} cx_walk_step;
typedef cx_walk_step cx_walk_visit(void *arg, const cx_walk_entry *entry);

typedef struct cx_walk_limits {
    uint64_t entries;
    unsigned depth;
    bool may_vanish; /* another process renames files meanwhile: one that is gone when it is looked
                        at is left out; else that is CX_E_NOT_FOUND */
} cx_walk_limits;

/*
 * Visits everything below a folder, each folder before its contents, otherwise in no order.  A
 * folder that cannot be read is an error; nothing is skipped silently.  CX_E_LIMIT beyond the
 * limits (NULL: 2 million entries, 256 levels) and for paths over CX_PATH_BYTES_MAX.
 */
CX_RESULT cx_folder_walk(cx_file folder, const cx_walk_limits *limits, cx_walk_visit *visit,
                         void *arg, cx_err *err);

/*
 * The same by up to `threads` threads (1 to CX_WALK_THREADS_MAX); thread i passes args[i] to
 * `visit`. Which thread visits an entry is undefined, and other threads may visit one more entry
 * after one has stopped.  Each thread has a descriptor open for every level of its current path.
 */
#define CX_WALK_THREADS_MAX 3
CX_RESULT cx_folder_walk_many(cx_file folder, const cx_walk_limits *limits, unsigned threads,
                              cx_walk_visit *visit, void *const *args, cx_err *err);

/* --- changing ------------------------------------------------------------------------------- */

/* Creates a trusted path and its missing parents, mode 0700.  An existing folder is no error. */
CX_RESULT cx_path_make_folders(const char *path, cx_err *err);
/* Creates a new folder of mode 0700 with a random name below TMPDIR or /tmp.  `out` has
 * CX_PATH_BYTES_MAX + 1 bytes. */
CX_RESULT cx_path_make_temporary(char *out, cx_err *err);
/* Opens a new file of mode 0600 there that has no name: it is gone when it is closed, at the latest
 * with the process.  For cx_io_system(). */
CX_RESULT cx_path_open_unnamed(cx_file *out, cx_err *err);
/* cx_path_make_folders in a folder, with a mode. */
CX_RESULT cx_folder_make_folders(cx_file folder, const char *path, uint32_t mode, cx_err *err);
CX_RESULT cx_folder_make_link(cx_file folder, const char *target, const char *path, cx_err *err);
CX_RESULT cx_folder_make_hard_link(cx_file folder, const char *from, const char *to, cx_err *err);
CX_RESULT cx_folder_make_fifo(cx_file folder, const char *path, cx_err *err);
CX_RESULT cx_folder_rename(cx_file folder, const char *from, const char *to, cx_err *err);
/* Of a file or folder, never through a link. */
CX_RESULT cx_folder_set_mode(cx_file folder, const char *path, uint32_t mode, cx_err *err);
CX_RESULT cx_path_set_mode(const char *path, uint32_t mode, cx_err *err);
/* Sets access and modification time to now. */
CX_RESULT cx_folder_touch(cx_file folder, const char *path, cx_err *err);

/* Removes a file, a link, or an empty folder.  CX_E_NOT_FOUND when it does not exist. */
CX_RESULT cx_folder_remove(cx_file folder, const char *path, cx_err *err);
/* Removes a tree of any depth without following links; folders that deny access to their owner are
 * given the permissions first.  A missing tree is no error. */
CX_RESULT cx_folder_remove_tree(cx_file folder, const char *path, cx_err *err);
CX_RESULT cx_path_remove_tree(const char *path, cx_err *err);

/* The effective user id of this process. */
uint32_t cx_user_id(void);

/* --- flock ----------------------------------------------------------------------------------- */

/* Takes the exclusive flock(2) of a file, which is created when absent (0600); held until
 * cx_flock_release or the end of the process.  CX_E_BUSY when another owner keeps it for longer
 * than `wait_ms`; 0 = do not wait. */
CX_RESULT cx_flock_acquire(const char *path, uint64_t wait_ms, cx_file *out, cx_err *err);
void cx_flock_release(cx_file file); /* CX_FILE_NONE is accepted */

/* Space of the file system of a path, in bytes: what this user may still write, and the total. */
CX_RESULT cx_path_space(const char *path, uint64_t *out_free, uint64_t *out_all, cx_err *err);

/* Whether every later change of a file in this folder is certain to change its changed_ns: true for
 * file systems known to do so; not for tmpfs, where memory-mapped writes leave no trace. */
bool cx_folder_keeps_times(cx_file folder);
/* The clock that file systems use for timestamps.  A file whose changed_ns is below its present
 * value will show every later change, as long as the clock is not set back. */
int64_t cx_folder_clock_ns(void);

#endif
