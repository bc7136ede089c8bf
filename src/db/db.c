/*
 * db.c - the database of derived tables, on SQLite.
 *
 * Settings, and why: WAL, so that readers do not wait for the writer; synchronous=NORMAL, so that a
 * loss of power may take the last transactions (the log brings them back) but never tears the file;
 * secure_delete, so that what was erased does not stay on free pages; below SQLite the unused part
 * of every page is wiped (wipe.c), where bytes of rows stay that have moved to another page.  A
 * file that is filled (CX_DB_FILL) has no readers and mostly new pages: it has a rollback journal,
 * with only the pages that were there before a transaction, and synchronous=FULL.
 *
 * D1  A file that is read without SQLite's locks (IMMUTABLE, ALONE) does not change meanwhile.
 *     Such a reader has a shared lock on the folder, which changes no byte; a writer that comes
 *     later moves its write-ahead log into the file only while it has the exclusive lock, and
 *     otherwise leaves it to the next one.  The lock is on the folder because closing another
 *     descriptor of the file itself would release SQLite's own locks.
 *
 * D2  Of a file in a cx_io (files.h) only a checkpoint is seen outside.  D1 does not concern
 *     it: the io keeps what others read as it was.  Its write-ahead log is emptied whenever a
 *     checkpoint can do it, as it has no other bound.
 */
#include "db/db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/api.h"
#include "db/files.h"
#include "db/files_internal.h"
#include "db/rows.h"
#include "db/wipe.h"
#include "os/api.h"

/* How long a reader or writer waits for another process's short lock. */
#define BUSY_TIMEOUT_MS 10000
#define WAL_RETRY_MS 5
#define POLL_MS 10
/* Pages in the write-ahead log from which on a commit tries to move them into the file. */
#define CHECKPOINT_PAGES 4000
/* .. where most pages are written again by a later transaction: 256 MB. */
#define BULK_CHECKPOINT_PAGES 65536
#define PAGE_BYTES 4096
/* What may be asked of an external file, in steps of SQLite's machine: about a minute. */
#define EXTERNAL_STEPS 1000000
#define EXTERNAL_STEPS_TIMES 5000u
#define EXTERNAL_VALUE_MAX (256 << 20)

struct cx_db {
    sqlite3 *handle;
    bool writes;
    bool external;
    unsigned external_steps; /* in EXTERNAL_STEPS */
    int checkpoint_pages;    /* of a writer */
    uint64_t log_pages;      /* in the write-ahead log after the last commit; 0 = there was none */
    cx_file folder;          /* where the file lies, for the lock of D1 */
    char in_files[32];       /* the database of this connection that is in a cx_io; "" = none */
    bool writes_files;       /* .. and is written */
    cx_db_rows *rows;        /* that are inserted now */
    bool has_rows;           /* .. can be */
    _Atomic bool lent;       /* to the thread whose `borrowed` it is */
    cx_lock lending;
};

static _Thread_local const cx_db *borrowed;

struct cx_db_statement {
    cx_db *db;
    sqlite3_stmt *handle;
    int bind_failure; /* the first one; reported by the next step */
};

/* --- one thread at a time --------------------------------------------------------------------- */

void cx_db_lend(cx_db *db)
{
    CX_ASSERT(!atomic_load(&db->lent));
    atomic_store(&db->lent, true);
}

void cx_db_borrow(cx_db *db)
{
    CX_ASSERT(borrowed == NULL && atomic_load(&db->lent));
    borrowed = db;
}

void cx_db_give_back(cx_db *db)
{
    CX_ASSERT(borrowed == db);
    borrowed = NULL;
    cx_lock_enter(&db->lending);
    atomic_store(&db->lent, false);
    cx_lock_wake(&db->lending);
    cx_lock_leave(&db->lending);
}

static void wait_for_return(cx_db *db)
{
    cx_lock_enter(&db->lending);
    while (atomic_load(&db->lent))
        cx_lock_wait(&db->lending);
    cx_lock_leave(&db->lending);
}

static inline void wait_until_ours(cx_db *db)
{
    if (atomic_load_explicit(&db->lent, memory_order_acquire) && borrowed != db)
        wait_for_return(db);
}

/* --- failures --------------------------------------------------------------------------------- */

/* Of a connection to a file in a cx_io: with what the io said. */
static cx_status fail_files(int os_errno, const char *doing, const char *text, cx_err *err)
{
    if (os_errno != ESTALE)
        return cx_fail_os(err, os_errno, "database: %s: %s", doing, text);
    return cx_fail(err, CX_E_IO,
                   "database: %s: writing its file failed before, so nothing more is written;"
                   " close all its connections and open it again",
                   doing);
}

static cx_status fail_db(cx_db *db, int code, const char *long_doing, cx_err *err)
{
    const char *text = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
    char doing[120]; /* a long statement must not push out what was wrong with it */
    (void)snprintf(doing, sizeof doing, "%s", long_doing);
    const int os_errno = db->in_files[0] != 0 ? cx_files_take_errno() : 0;
    if (os_errno != 0 &&
        (code == SQLITE_FULL || ((code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_NOMEM)))
        return fail_files(os_errno, doing, text, err);
    switch (code & 0xff) {
    case SQLITE_NOMEM: return cx_fail_nomem(err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return cx_fail(err, CX_E_BUSY, "database: %s: %s", doing, text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        if (db->external) /* nothing here can repair it */
            return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET, "%s", text);
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "database: %s: %s; 'cortex tables rebuild --replace' makes it anew",
                          doing, text);
    case SQLITE_INTERRUPT: return cx_fail(err, CX_E_LIMIT, "database: %s takes too long", doing);
    case SQLITE_CANTOPEN: return cx_fail(err, CX_E_NOT_FOUND, "database: %s: %s", doing, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return cx_fail(err, CX_E_DENIED, "database: %s: %s", doing, text);
    default: return cx_fail(err, CX_E_IO, "database: %s: %s", doing, text);
    }
}

/* A path as a URI: what has a meaning there is written as %XX. */
static cx_status add_uri(const char *path, cx_buf *uri, cx_err *err)
{
    static const char digits[] = "0123456789ABCDEF";
    cx_buf_add_z(uri, "file:");
    for (const char *c = path; *c != 0; c++) {
        uint8_t byte = (uint8_t)*c;
        if (byte <= ' ' || byte == '%' || byte == '?' || byte == '#' || byte >= 0x7f) {
            cx_buf_add_byte(uri, '%');
            cx_buf_add_byte(uri, (uint8_t)digits[byte >> 4]);
            cx_buf_add_byte(uri, (uint8_t)digits[byte & 15]);
        } else {
            cx_buf_add_byte(uri, byte);
        }
    }
    return cx_buf_check(uri, err);
}

/* --- the lock of D1 --------------------------------------------------------------------------- */

static cx_status lock_folder_shared(cx_db *db, cx_err *err)
{
    if (cx_share_lock_shared(db->folder))
        return CX_SUCCESS;
    return cx_fail(err, CX_E_BUSY, "database: a writer is changing the file; try again");
}

static int after_commit(void *arg, sqlite3 *handle, const char *name, int pages)
{
    cx_db *db = arg;
    db->log_pages = pages < 0 ? 0 : (uint64_t)pages;
    if (pages >= db->checkpoint_pages && cx_share_lock_exclusive(db->folder)) {
        (void)sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        cx_share_leave(db->folder);
    }
    return SQLITE_OK;
}

/*
 * A checkpoint of the file in a cx_io.  Each try looks at the readers again: SQLite's own waiting
 * is for the place of a reader that was in the way, which new ones may share without end.
 */
static int checkpoint_files(cx_db *db, int how, int wait_ms)
{
    int code, waited_ms = 0;
    sqlite3_busy_timeout(db->handle, 0);
    for (;;) {
        code = sqlite3_wal_checkpoint_v2(db->handle, db->in_files, how, NULL, NULL);
        if ((code & 0xff) != SQLITE_BUSY || waited_ms >= wait_ms)
            break;
        waited_ms += sqlite3_sleep(WAL_RETRY_MS);
    }
    sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    return code;
}

/* Brings over what readers allow, without waiting for them, and empties the log when that is all
 * (D2).  What fails here fails again at the next change (F2 in files_image.c). */
static int after_files_commit(void *arg, sqlite3 *handle, const char *name, int pages)
{
    cx_db *db = arg;
    if (pages < CHECKPOINT_PAGES)
        return SQLITE_OK;
    if (strcmp(name, db->in_files) == 0)
        (void)checkpoint_files(db, SQLITE_CHECKPOINT_TRUNCATE, 0);
    else
        (void)sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

void cx_db_write_in_bulk(cx_db *db)
{
    db->checkpoint_pages = BULK_CHECKPOINT_PAGES;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The VFS of a writer; NULL when it cannot be registered. */
static const char *writing_vfs(bool in_files)
{
    return in_files ? cx_db_wipe_register_over_files() : cx_db_wipe_register();
}

static bool writes_file(cx_db_mode mode)
{
    return mode == CX_DB_WRITE || mode == CX_DB_FILL;
}

static cx_status open_handle(cx_db *db, const char *path, cx_db_mode mode, cx_err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
    flags |= writes_file(mode) || mode == CX_DB_SCRATCH ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                        : SQLITE_OPEN_READONLY;
    cx_buf uri;
    cx_buf_init(&uri, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    if (mode != CX_DB_SCRATCH) {
        CX_TRY_GOTO(status, add_uri(path, &uri, err));
        if (db->in_files[0] != 0)
            cx_buf_add_z(&uri, writes_file(mode) ? "" : "?vfs=" CX_FILES_VFS);
        else if (mode == CX_DB_IMMUTABLE || mode == CX_DB_EXTERNAL)
            cx_buf_add_z(&uri, "?immutable=1");
        else if (mode == CX_DB_ALONE)
            cx_buf_add_z(&uri, "?vfs=unix-none");
    }
    const char *name = cx_buf_z(&uri);
    if (name == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    const char *files = writes_file(mode) ? writing_vfs(db->in_files[0] != 0) : NULL;
    if (writes_file(mode) && files == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    int code = sqlite3_open_v2(name, &db->handle, flags, files);
    if (code != SQLITE_OK)
        status = fail_db(db, code, path, err);
done:
    cx_buf_done(&uri);
    return status;
}

/* Of a private database: what it does not keep is written to a file and read again. */
#define SCRATCH_CACHE (UINT64_C(32) << 20)
/* Of an index that is only read. */
#define READER_CACHE (UINT64_C(16) << 20)

static _Atomic uint64_t cache_max = CX_DB_CACHE_DEFAULT;

void cx_db_limit_cache(uint64_t bytes)
{
    atomic_store(&cache_max, bytes < CX_DB_CACHE_MIN ? CX_DB_CACHE_MIN : bytes);
}

static cx_status set_cache(cx_db *db, const char *name, uint64_t wanted, cx_err *err)
{
    char text[120];
    uint64_t max = atomic_load(&cache_max);
    /* Negative: in KiB. */
    (void)snprintf(text, sizeof text, "PRAGMA %s.cache_size=-%llu", name,
                   (unsigned long long)((wanted < max ? wanted : max) >> 10));
    return cx_db_run(db, text, err);
}

/* Two that make a new file a WAL at once both hold what the other needs: SQLite then calls it
 * locked at once, without waiting (sqlite.org/pragma.html#pragma_journal_mode). */
static cx_status use_wal(cx_db *db, const char *name, cx_err *err)
{
    int waited_ms = 0;
    char sql[96];
    (void)snprintf(sql, sizeof sql, "PRAGMA %s.journal_mode=WAL", name);
    for (;;) {
        cx_status status = cx_db_run(db, sql, err);
        if (status.code != CX_E_BUSY || waited_ms >= BUSY_TIMEOUT_MS)
            return status;
        waited_ms += sqlite3_sleep(WAL_RETRY_MS);
    }
}

/* Of a writer: its write-ahead log stays small (D2). */
static cx_status follow_files(cx_db *db, cx_err *err)
{
    char sql[96];
    db->writes_files = true;
    (void)snprintf(sql, sizeof sql, "PRAGMA %s.journal_size_limit=0", db->in_files);
    (void)sqlite3_wal_hook(db->handle, after_files_commit, db);
    return cx_db_run(db, sql, err);
}

static int count_external_steps(void *arg)
{
    cx_db *db = arg;
    return ++db->external_steps > EXTERNAL_STEPS_TIMES;
}

static cx_status distrust(cx_db *db, cx_err *err)
{
    db->external = true;
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, EXTERNAL_VALUE_MAX);
    (void)sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_progress_handler(db->handle, EXTERNAL_STEPS, count_external_steps, db);
    return cx_db_run(db, "PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;",
                     err);
}

static cx_status configure(cx_db *db, cx_db_mode mode, cx_err *err)
{
    if (mode == CX_DB_EXTERNAL)
        return distrust(db, err);
    sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    if (mode == CX_DB_SCRATCH) {
        CX_TRY(cx_db_run(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", err));
        return set_cache(db, "main", SCRATCH_CACHE, err);
    }
    if (mode == CX_DB_ALONE && db->in_files[0] == 0) {
        /* Exclusive: the index of the write-ahead log is made in memory, not in a file next to it.
         */
        (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return cx_db_run(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=ON;", err);
    }
    if (!writes_file(mode))
        return cx_db_run(db, "PRAGMA query_only=ON;", err);
    CX_TRY(cx_db_run(db, "PRAGMA auto_vacuum=NONE", err)); /* of a new file (W2 in wipe.c) */
    CX_TRY(mode == CX_DB_FILL && db->in_files[0] == 0
               ? cx_db_run(db, "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL;", err)
               : use_wal(db, "main", err));
    CX_TRY(cx_db_run(db, "PRAGMA secure_delete=ON; PRAGMA foreign_keys=OFF;", err));
    if (mode == CX_DB_WRITE || db->in_files[0] != 0)
        CX_TRY(cx_db_run(db, "PRAGMA synchronous=NORMAL", err));
    CX_TRY(set_cache(db, "main", CX_DB_CACHE_DEFAULT, err));
    if (db->in_files[0] != 0)
        return follow_files(db, err);
    (void)sqlite3_wal_hook(db->handle, after_commit, db);
    return CX_SUCCESS;
}

static void note_files(cx_db *db, const char *name)
{
    (void)snprintf(db->in_files, sizeof db->in_files, "%s", name);
    (void)cx_files_take_errno();
}

void cx_db_make_private(const char *path)
{
    const cx_io *io = cx_io_system();
    cx_file file;
    if (io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file) == 0)
        (void)io->close(io, file);
}

cx_status cx_db_open(const char *path, cx_db_mode mode, cx_db **out, cx_err *err)
{
    cx_db *db = cx_alloc_new(cx_alloc_default(), sizeof *db);
    if (db == NULL)
        return cx_fail_nomem(err);
    *db = (cx_db){
        .writes = writes_file(mode), .checkpoint_pages = CHECKPOINT_PAGES, .folder = CX_FILE_NONE};
    cx_lock_init(&db->lending);
    if (mode != CX_DB_SCRATCH && cx_db_in_files(path))
        note_files(db, "main");
    else if (writes_file(mode) || mode == CX_DB_IMMUTABLE || mode == CX_DB_ALONE)
        db->folder = cx_share_open(path);
    cx_status status = CX_SUCCESS;
    if (mode == CX_DB_IMMUTABLE || mode == CX_DB_ALONE)
        status = lock_folder_shared(db, err);
    if (!cx_failed(status))
        status = open_handle(db, path == NULL ? "" : path, mode, err);
    if (!cx_failed(status))
        status = configure(db, mode, err);
    if (cx_failed(status)) {
        db->writes = db->writes_files = false;
        cx_db_close(db);
        return status;
    }
    *out = db;
    return CX_SUCCESS;
}

cx_status cx_db_filled(cx_db *db, cx_err *err)
{
    CX_TRY(use_wal(db, "main", err));
    return cx_db_run(db, "PRAGMA synchronous=NORMAL", err);
}

/* ATTACH of a URI, whose name is a value and so needs no quoting. */
static cx_status attach_uri(cx_db *db, const char *uri, const char *name, cx_err *err)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "ATTACH ?1 AS %s", name);
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_db_bind_text(statement, 1, cx_str_z(uri));
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

/* No transaction waits in the write-ahead log. */
static bool is_at_rest(const char *path)
{
    const cx_io *io = cx_io_system();
    cx_buf name;
    cx_file file;
    uint64_t size = 0;
    bool regular;
    cx_buf_init(&name, cx_alloc_default());
    cx_buf_printf(&name, "%s-wal", path);
    const char *text = cx_buf_z(&name);
    int failed = text == NULL ? -ENOMEM : io->open(io, text, CX_IO_READ, &file);
    cx_buf_done(&name);
    if (failed != 0)
        return failed == -ENOENT;
    failed = io->size(io, file, &size, &regular);
    (void)io->close(io, file);
    return failed == 0 && size == 0;
}

/* A file in a folder that cannot be written to has no place for the log's index: it is read as it
 * lies there, when that is all there is. */
static cx_status attach_at_rest(cx_db *db, const char *path, cx_buf *uri, const char *name,
                                cx_err *err)
{
    cx_err failure = *err;
    cx_buf_add_z(uri, "&immutable=1");
    const char *text = cx_buf_z(uri);
    if (text != NULL && is_at_rest(path) && !cx_failed(attach_uri(db, text, name, err)))
        return CX_SUCCESS;
    *err = failure;
    return (cx_status){failure.code};
}

cx_status cx_db_attach(cx_db *db, const char *path, cx_db_mode mode, const char *name, cx_err *err)
{
    CX_ASSERT(mode == CX_DB_WRITE || mode == CX_DB_READ);
    const bool in_files = cx_db_in_files(path);
    if (in_files) {
        CX_ASSERT(db->in_files[0] == 0 && strlen(name) < sizeof db->in_files);
        note_files(db, name);
    }
    char settings[256];
    cx_err failure = {0};
    cx_buf uri;
    cx_buf_init(&uri, cx_alloc_default());
    cx_status status;
    CX_TRY_GOTO(status, add_uri(path, &uri, err));
    if (mode == CX_DB_READ)
        cx_buf_add_z(&uri, in_files ? "?mode=ro&vfs=" CX_FILES_VFS : "?mode=ro");
    else if (writing_vfs(in_files) != NULL)
        cx_buf_printf(&uri, "?vfs=%s", writing_vfs(in_files));
    const char *text = cx_buf_z(&uri);
    if (text == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    status = attach_uri(db, text, name, &failure);
    if (status.code == CX_E_DENIED && mode == CX_DB_READ && !in_files)
        status = attach_at_rest(db, path, &uri, name, &failure);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = failure;
        goto done;
    }
    if (mode == CX_DB_WRITE)
        CX_TRY_GOTO(status, use_wal(db, name, err));
    (void)snprintf(settings, sizeof settings,
                   "PRAGMA %1$s.synchronous=NORMAL; PRAGMA %1$s.secure_delete=ON;"
                   "PRAGMA wal_autocheckpoint=4000;",
                   name);
    status = cx_db_run(db, mode == CX_DB_READ ? "PRAGMA query_only=ON;" : settings, err);
    if (!cx_failed(status))
        status = set_cache(db, name, mode == CX_DB_READ ? READER_CACHE : CX_DB_CACHE_DEFAULT, err);
    if (!cx_failed(status) && mode == CX_DB_WRITE && in_files)
        status = follow_files(db, err); /* takes the place of wal_autocheckpoint */
done:
    if (in_files && cx_failed(status))
        db->in_files[0] = 0;
    cx_buf_done(&uri);
    return status;
}

static _Atomic uint64_t log_kept;

void cx_db_leave_log(uint64_t bytes)
{
    atomic_store(&log_kept, bytes);
}

static bool leaves_log(const cx_db *db)
{
    return db->log_pages != 0 && db->log_pages <= atomic_load(&log_kept) / PAGE_BYTES;
}

void cx_db_close(cx_db *db)
{
    if (db == NULL)
        return;
    wait_until_ours(db);
    if (db->writes_files) /* what is left in its log is lost with the last connection (D2) */
        (void)checkpoint_files(db, SQLITE_CHECKPOINT_TRUNCATE, BUSY_TIMEOUT_MS);
    else if (db->writes && !leaves_log(db) && cx_share_lock_exclusive(db->folder))
        (void)sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    else if (db->writes)
        (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int code = sqlite3_close(db->handle);
    CX_ASSERT(code == SQLITE_OK); /* a statement was left open */
    cx_share_close(db->folder);
    cx_lock_done(&db->lending);
    cx_alloc_free(cx_alloc_default(), db, sizeof *db);
}

static cx_status wait_for_exclusive_share(const cx_db *db)
{
    for (int waited = 0; !cx_share_lock_exclusive(db->folder); waited += POLL_MS) {
        if (waited >= BUSY_TIMEOUT_MS)
            return (cx_status){CX_E_BUSY};
        (void)sqlite3_sleep(POLL_MS);
    }
    return CX_SUCCESS;
}

cx_status cx_db_empty_log(cx_db *db, cx_err *err)
{
    CX_ASSERT(db->writes);
    cx_status status = wait_for_exclusive_share(db);
    if (!cx_failed(status)) {
        int code = db->writes_files
                       ? checkpoint_files(db, SQLITE_CHECKPOINT_TRUNCATE, BUSY_TIMEOUT_MS)
                       : sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                                   NULL, NULL);
        cx_share_leave(db->folder);
        if (code != SQLITE_OK && code != SQLITE_BUSY)
            return fail_db(db, code, "emptying its log", err);
        status.code = code == SQLITE_OK ? CX_OK : CX_E_BUSY;
    }
    if (cx_failed(status))
        return cx_fail(
            err, CX_E_BUSY,
            "a reader still uses the old contents of the tables; they are removed when this"
            " is called again, or the data directory is opened again");
    return CX_SUCCESS;
}

cx_status cx_db_publish(cx_db *db, cx_err *err)
{
    if (!db->writes_files)
        return CX_SUCCESS;
    int code = checkpoint_files(db, SQLITE_CHECKPOINT_FULL, BUSY_TIMEOUT_MS);
    if ((code & 0xff) == SQLITE_BUSY)
        return cx_fail(err, CX_E_BUSY,
                       "a reader still uses the old contents of the database; what was committed is"
                       " seen by other processes when this is called again");
    return code == SQLITE_OK ? CX_SUCCESS : fail_db(db, code, "publishing", err);
}

bool cx_db_empty_attached_log(cx_db *db, const char *name)
{
    int code =
        db->writes_files && strcmp(name, db->in_files) == 0
            ? checkpoint_files(db, SQLITE_CHECKPOINT_TRUNCATE, BUSY_TIMEOUT_MS)
            : sqlite3_wal_checkpoint_v2(db->handle, name, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return code == SQLITE_OK && sqlite3_db_release_memory(db->handle) == SQLITE_OK;
}

/* Rewrites the file: what is in it was partly written without wiping (wipe.c). */
static cx_status rewrite(cx_db *db, cx_err *err)
{
    CX_TRY(cx_db_run(db, "VACUUM", err));
    return cx_db_empty_log(db, err);
}

static cx_status ask_number(cx_db *db, const char *sql, int64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        *out = row ? cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    return status;
}

cx_status cx_db_forget_deleted(cx_db *db, bool wiped, cx_err *err)
{
    int64_t pages = 0, mapped = 1;
    CX_TRY(ask_number(db, "PRAGMA page_count", &pages, err));
    CX_TRY(ask_number(db, "PRAGMA auto_vacuum", &mapped, err));
    if (!wiped || mapped != 0 || pages < 0 || (uint64_t)pages >= CX_DB_WIPE_PAGES_MAX)
        CX_TRY(rewrite(db, err));
    else
        CX_TRY(cx_db_empty_log(db, err));
    /* Pages in memory still have it in their unused part, and would bring it into the next
     * write-ahead log. */
    int code = sqlite3_db_release_memory(db->handle);
    return code == SQLITE_OK ? CX_SUCCESS : fail_db(db, code, "dropping pages in memory", err);
}

cx_status cx_db_run(cx_db *db, const char *sql, cx_err *err)
{
    wait_until_ours(db);
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? CX_SUCCESS : fail_db(db, code, sql, err);
}

cx_status cx_db_begin(cx_db *db, cx_err *err)
{
    return cx_db_run(db, "BEGIN", err);
}

cx_status cx_db_begin_write(cx_db *db, cx_err *err)
{
    return cx_db_run(db, "BEGIN IMMEDIATE", err);
}

cx_status cx_db_commit(cx_db *db, cx_err *err)
{
    return cx_db_run(db, "COMMIT", err);
}

void cx_db_rollback(cx_db *db)
{
    wait_until_ours(db);
    if (sqlite3_get_autocommit(db->handle) == 0)
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

cx_status cx_db_prepare(cx_db *db, const char *sql, cx_db_statement **out, cx_err *err)
{
    cx_db_statement *statement = cx_alloc_new(cx_alloc_default(), sizeof *statement);
    if (statement == NULL)
        return cx_fail_nomem(err);
    *statement = (cx_db_statement){.db = db, .bind_failure = SQLITE_OK};
    wait_until_ours(db);
    int code = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  &statement->handle, NULL);
    if (code != SQLITE_OK) {
        cx_alloc_free(cx_alloc_default(), statement, sizeof *statement);
        /* Our own SQL is right: where it does not fit, the tables are not those we made. */
        return fail_db(db, code == SQLITE_ERROR ? SQLITE_CORRUPT : code, sql, err);
    }
    *out = statement;
    return CX_SUCCESS;
}

void cx_db_finish(cx_db_statement *statement)
{
    if (statement == NULL)
        return;
    wait_until_ours(statement->db);
    (void)sqlite3_finalize(statement->handle); /* repeats the last step's failure, already told */
    cx_alloc_free(cx_alloc_default(), statement, sizeof *statement);
}

static void note_bind_result(cx_db_statement *statement, int code)
{
    CX_ASSERT(code != SQLITE_RANGE && code != SQLITE_MISUSE);
    if (code != SQLITE_OK && statement->bind_failure == SQLITE_OK)
        statement->bind_failure = code;
}

void cx_db_bind_int(cx_db_statement *statement, int index, int64_t value)
{
    wait_until_ours(statement->db);
    note_bind_result(statement, sqlite3_bind_int64(statement->handle, index, value));
}

void cx_db_bind_double(cx_db_statement *statement, int index, double value)
{
    wait_until_ours(statement->db);
    note_bind_result(statement, sqlite3_bind_double(statement->handle, index, value));
}

void cx_db_bind_bytes(cx_db_statement *statement, int index, cx_bytes value)
{
    wait_until_ours(statement->db);
    /* A NULL pointer would bind SQL's NULL, which is not the same as no bytes. */
    const void *data = value.data != NULL ? (const void *)value.data : "";
    note_bind_result(
        statement, sqlite3_bind_blob64(statement->handle, index, data, value.size, SQLITE_STATIC));
}

void cx_db_bind_text(cx_db_statement *statement, int index, cx_str value)
{
    const char *data = value.data != NULL ? value.data : "";
    wait_until_ours(statement->db);
    note_bind_result(statement, sqlite3_bind_text64(statement->handle, index, data, value.size,
                                                    SQLITE_STATIC, SQLITE_UTF8));
}

void cx_db_bind_null(cx_db_statement *statement, int index)
{
    wait_until_ours(statement->db);
    note_bind_result(statement, sqlite3_bind_null(statement->handle, index));
}

cx_status cx_db_step(cx_db_statement *statement, bool *out_row, cx_err *err)
{
    int code = statement->bind_failure;
    statement->bind_failure = SQLITE_OK;
    wait_until_ours(statement->db);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement->handle);
    if (code == SQLITE_ROW) {
        *out_row = true;
        return CX_SUCCESS;
    }
    cx_status status = CX_SUCCESS;
    if (code != SQLITE_DONE)
        status = fail_db(statement->db, code, sqlite3_sql(statement->handle), err);
    cx_db_reset(statement);
    if (!cx_failed(status))
        *out_row = false;
    return status;
}

cx_status cx_db_execute(cx_db_statement *statement, cx_err *err)
{
    bool row = true;
    while (row)
        CX_TRY(cx_db_step(statement, &row, err));
    return CX_SUCCESS;
}

void cx_db_reset(cx_db_statement *statement)
{
    wait_until_ours(statement->db);
    (void)sqlite3_reset(statement->handle); /* repeats the last step's failure, already told */
}

int64_t cx_db_int(const cx_db_statement *statement, int column)
{
    return sqlite3_column_int64(statement->handle, column);
}

double cx_db_double(const cx_db_statement *statement, int column)
{
    return sqlite3_column_double(statement->handle, column);
}

cx_bytes cx_db_bytes(const cx_db_statement *statement, int column)
{
    const void *data = sqlite3_column_blob(statement->handle, column);
    return cx_bytes_from(data, (size_t)sqlite3_column_bytes(statement->handle, column));
}

cx_str cx_db_text(const cx_db_statement *statement, int column)
{
    const unsigned char *data = sqlite3_column_text(statement->handle, column);
    return cx_str_from((const char *)data, (size_t)sqlite3_column_bytes(statement->handle, column));
}

bool cx_db_is_null(const cx_db_statement *statement, int column)
{
    return sqlite3_column_type(statement->handle, column) == SQLITE_NULL;
}

bool cx_db_equal(const cx_db_statement *left, const cx_db_statement *right, int column)
{
    int type = sqlite3_column_type(left->handle, column);
    if (type != sqlite3_column_type(right->handle, column))
        return false;
    /* As text a number would cost ten times as much. */
    if (type == SQLITE_INTEGER)
        return cx_db_int(left, column) == cx_db_int(right, column);
    return cx_str_eq(cx_bytes_str(cx_db_bytes(left, column)),
                     cx_bytes_str(cx_db_bytes(right, column)));
}

cx_status cx_db_insert_rows(cx_db *db, const char *table, size_t columns, cx_db_next_row *next,
                            void *arg, cx_err *err)
{
    cx_status failed = CX_SUCCESS;
    wait_until_ours(db);
    int code = db->has_rows ? SQLITE_OK : cx_db_rows_register(db->handle, &db->rows);
    db->has_rows = code == SQLITE_OK;
    if (code == SQLITE_OK)
        code = cx_db_rows_insert(db->handle, &db->rows, table, columns, next, arg, &failed, err);
    if (cx_failed(failed))
        return failed;
    return code == SQLITE_OK ? CX_SUCCESS : fail_db(db, code, table, err);
}

int64_t cx_db_changes(const cx_db *db)
{
    return sqlite3_changes64(db->handle);
}

cx_status cx_db_check(cx_db *db, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, "PRAGMA integrity_check(1)", &statement, err));
    bool row = false;
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row) {
        cx_str answer = cx_db_text(statement, 0);
        if (!cx_str_is(answer, "ok"))
            status = cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                                "database: %.*s; 'cortex tables rebuild --replace' makes it anew",
                                (int)(answer.size < 200 ? answer.size : 200), answer.data);
    }
    cx_db_finish(statement);
    return status;
}
