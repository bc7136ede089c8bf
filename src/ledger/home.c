/*
 * home.c - creating, opening and closing a data directory.
 *
 *     HOME/log/        segments (docs/formats/log.md); the only truth; its lock is the directory's
 *     HOME/cortex.db   tables, with the log position up to which they are true
 *     HOME/keys/       the checkpoints signed last
 *     HOME/format      the format of all this (home_format.h)
 *     HOME/socket      while the writer process serves others (remote.h)
 *
 * H1  Tables made for another data directory, format or set of derivers are emptied and rebuilt.
 * H2  Tables ahead of the log mean that the log was truncated: this is reported, never repaired.
 * H3  Opening for reading changes no byte.  If the tables lag the log, they are derived again in a
 *     private database.
 * H4  What a proof reads of the trees' rows leads to the roots in the actor's row, or there is
 *     none.
 */
#include "ledger/home.h"

#include <errno.h>

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/backup/home_format.h"
#include "ledger/internal.h"

/* Increment when the tables' layout or the rows that apply.c derives change: tables of another
 * format are made again from the log. */
#define TABLES_FORMAT "cortex-tables/5"
#define FLUSH_TIMEOUT_MS 30000
/* Rows written in one transaction while catching up. */
#define CATCH_UP_ROWS 65536
/* How long a reader waits for the tables of a live writer before it derives its own. */
#define READER_WAIT_MS 2000
#define READER_POLL_MS 10

/* --- paths ----------------------------------------------------------------------------------- */

static char *join_path(const cx_alloc *alloc, const char *folder, const char *name)
{
    size_t folder_size = strlen(folder), name_size = strlen(name);
    char *path = cx_alloc_new(alloc, folder_size + name_size + 1);
    if (path != NULL) {
        memcpy(path, folder, folder_size);
        memcpy(path + folder_size, name, name_size + 1);
    }
    return path;
}

static void free_text(const cx_alloc *alloc, char *text)
{
    if (text != NULL)
        cx_alloc_free(alloc, text, strlen(text) + 1);
}

static const cx_alloc *alloc_of(const cx_home_options *options)
{
    return options->alloc != NULL ? options->alloc : cx_alloc_default();
}

static const cx_io *io_of(const cx_home_options *options)
{
    return options->io != NULL ? options->io : cx_io_system();
}

/* --- creating -------------------------------------------------------------------------------- */

static cx_status write_first_frame(cx_log *log, cx_scheme scheme, const cx_alloc *alloc,
                                   cx_err *err)
{
    const cx_change change = {.key = cx_str_bytes(CX_STR("meta/scheme")),
                              .value = cx_str_bytes(cx_scheme_name(scheme))};
    const cx_ledger_frame frame = {.changes = &change, .change_count = 1};
    cx_buf guarded, erasable;
    cx_buf_init(&guarded, alloc);
    cx_buf_init(&erasable, alloc);
    uint64_t commit = 0;
    cx_log_place place;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_frame_encode(&frame, &guarded, &erasable, err));
    const cx_log_frame parts = {cx_buf_bytes(&guarded), cx_buf_bytes(&erasable)};
    CX_TRY_GOTO(status, cx_log_submit(log, &parts, 1, &place, &commit, err));
    CX_TRY_GOTO(status, cx_log_wait(log, commit, err));
done:
    cx_buf_done(&guarded);
    cx_buf_done(&erasable);
    return status;
}

static cx_status make_folder(const cx_io *io, const char *path, cx_err *err)
{
    int failed = io->mkdir(io, path);
    if (failed == 0)
        return CX_SUCCESS;
    cx_status status = cx_fail_os(err, -failed, "making the folder %s", path);
    return status.code == CX_E_EXISTS ? CX_SUCCESS : status;
}

/* Makes a folder's name durable in its parent. */
static cx_status sync_above(const cx_io *io, const char *path, const cx_alloc *alloc, cx_err *err)
{
    char *above = join_path(alloc, path, "");
    if (above == NULL)
        return cx_fail_nomem(err);
    size_t before = strlen(above), size = before;
    while (size > 1 && above[size - 1] == '/')
        size--;
    while (size > 0 && above[size - 1] != '/')
        size--;
    while (size > 1 && above[size - 1] == '/')
        size--;
    above[size] = 0;
    cx_status status = cx_io_sync_folder(io, size == 0 ? "." : above, err);
    cx_alloc_free(alloc, above, before + 1);
    return status;
}

/* A log without commits is left by an interrupted creation, which is completed here. */
static cx_status make_log(const char *log_path, const cx_log_options *options, cx_err *err)
{
    cx_status status = cx_log_create(log_path, options, err);
    if (status.code != CX_E_EXISTS)
        return status;
    cx_log_options looking = *options;
    cx_log_opened opened;
    cx_log *log;
    looking.read_only = true;
    if (cx_failed(cx_log_open(log_path, &looking, &log, &opened, NULL)))
        return status;
    cx_log_close(log);
    return opened.commit_count == 0 ? CX_SUCCESS : status;
}

static cx_status create_parts(const char *path, const char *log_path, const char *keys_path,
                              cx_scheme scheme, const cx_home_options *options, cx_err *err)
{
    const cx_io *io = io_of(options);
    CX_TRY(make_folder(io, path, err));
    const cx_log_options log_options = {
        .alloc = alloc_of(options), .io = io, .segment_bytes = options->segment_bytes};
    CX_TRY(make_log(log_path, &log_options, err));
    CX_TRY(make_folder(io, keys_path, err));
    CX_TRY(cx_home_format_write(io, path, alloc_of(options), err));
    CX_TRY(cx_io_sync_folder(io, path, err));
    CX_TRY(sync_above(io, path, alloc_of(options), err));
    cx_log *log = NULL;
    cx_log_opened opened;
    CX_TRY(cx_log_open(log_path, &log_options, &log, &opened, err));
    cx_status status = write_first_frame(log, scheme, alloc_of(options), err);
    cx_log_close(log);
    return status;
}

cx_status cx_home_create(const char *path, cx_scheme scheme, const cx_home_options *options,
                         cx_err *err)
{
    CX_ASSERT(path != NULL);
    const cx_alloc *alloc = alloc_of(options);
    CX_TRY(cx_home_format_check(io_of(options), path, alloc, err));
    char *log_path = join_path(alloc, path, "/log");
    char *keys_path = join_path(alloc, path, "/keys");
    cx_status status = log_path == NULL || keys_path == NULL
                           ? cx_fail_nomem(err)
                           : create_parts(path, log_path, keys_path, scheme, options, err);
    free_text(alloc, log_path);
    free_text(alloc, keys_path);
    return status;
}

/* --- catching up ----------------------------------------------------------------------------- */

static cx_status apply_commit(cx_home *home, const cx_log_commit *commit, uint64_t skip,
                              cx_arena *arena, cx_err *err)
{
    for (size_t i = skip < commit->count ? (size_t)skip : commit->count; i < commit->count; i++) {
        const cx_log_item *item = &commit->items[i];
        cx_arena_mark mark = cx_arena_mark_now(arena);
        cx_ledger_frame frame;
        CX_TRY(cx_frame_decode(&item->frame, cx_frame_erased(item), arena, &frame, err));
        const cx_applied at = {.place = item->place, .commit = commit->number};
        CX_TRY(cx_home_apply(home, &frame, &at, arena, err));
        cx_arena_reset(arena, mark);
        home->applied = (cx_position){commit->number, i + 1};
    }
    return CX_SUCCESS;
}

static void show_progress(cx_home *home, uint64_t done, uint64_t total)
{
    if (home->options.progress != NULL)
        home->options.progress(home->options.progress_arg, "tables", done, total);
}

static cx_status apply_all(cx_home *home, cx_log_scan *scan, cx_arena *arena, cx_err *err)
{
    uint64_t skip = home->applied.frames;
    for (;;) {
        cx_log_commit commit;
        bool end = false;
        CX_TRY(cx_log_scan_next(scan, &commit, &end, err));
        if (end)
            return CX_SUCCESS;
        CX_TRY(apply_commit(home, &commit, skip, arena, err));
        skip = 0;
        if (cx_store_memtable_rows(&home->store) >= CATCH_UP_ROWS) {
            CX_TRY(cx_home_flush_now(home, err));
            show_progress(home, commit.bytes_done, commit.bytes_total);
        }
    }
}

/* Whether the tables end with the last frame of the newest commit, so that no segment has to be
 * searched. */
static bool has_newest_whole(const cx_home *home)
{
    return home->applied.frames != 0 &&
           home->applied.frames == cx_log_newest_frames(home->log, home->applied.commit);
}

cx_status cx_home_catch_up(cx_home *home, cx_err *err)
{
    home->applied = home->store.flushed;
    uint64_t durable = cx_log_durable(home->log);
    if (home->applied.commit > durable ||
        (home->applied.commit == durable && home->applied.frames != 0))
        return cx_fail_at(err, CX_E_FORMAT, "LogCut", CX_NO_OFFSET,
                          "the tables have %llu commits, the log has %llu: the log was truncated or"
                          " replaced; put back the missing segments, or delete cortex.db to accept"
                          " what is left",
                          (unsigned long long)home->applied.commit, (unsigned long long)durable);
    if (home->applied.commit == durable || has_newest_whole(home))
        return CX_SUCCESS;
    cx_log_scan *scan;
    CX_TRY(cx_log_scan_begin(home->log, home->applied.commit, &scan, err));
    cx_arena arena;
    cx_arena_init(&arena, home->alloc, 0);
    cx_status status = apply_all(home, scan, &arena, err);
    if (!cx_failed(status) && cx_store_memtable_rows(&home->store) != 0)
        status = cx_home_flush_now(home, err);
    cx_arena_done(&arena);
    cx_log_scan_end(scan);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status make_identity(cx_home *home, cx_err *err)
{
    uint8_t id[16];
    cx_log_home_id(home->log, id);
    cx_buf_add_z(&home->identity, TABLES_FORMAT " ");
    cx_hex_add(&home->identity, cx_bytes_from(id, sizeof id));
    for (size_t i = 0; i < home->options.deriver_count; i++) {
        cx_buf_add_byte(&home->identity, ' ');
        cx_buf_add_z(&home->identity, home->options.derivers[i].name);
    }
    return cx_buf_check(&home->identity, err);
}

/* SQLite gives its side files the mode of this file, so it is created readable by its owner only.
 * An existing file is not touched: closing it would drop the locks that other connections of this
 * process have on it (POSIX). */
static cx_status make_private(const cx_home *home, cx_err *err)
{
    cx_file file;
    int failed = home->io->open(home->io, home->db_path,
                                CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file);
    if (failed == -EEXIST)
        return CX_SUCCESS;
    if (failed != 0)
        return cx_fail_os(err, -failed, "opening %s", home->db_path);
    (void)home->io->close(home->io, file);
    return CX_SUCCESS;
}

static cx_status open_store(cx_home *home, cx_store_mode mode, bool *out_stale, cx_err *err)
{
    if (mode == CX_STORE_WRITE || mode == CX_STORE_DERIVE || mode == CX_STORE_FILL)
        CX_TRY(make_private(home, err));
    CX_TRY(cx_store_open(home->db_path, mode, home->alloc, cx_io_seed(home->io),
                         cx_buf_str(&home->identity), &home->store, out_stale, err));
    home->store_open = true;
    return CX_SUCCESS;
}

static void close_store(cx_home *home)
{
    cx_home_drop_overlays(home);
    if (home->store_open)
        cx_store_close(&home->store);
    home->store_open = false;
    cx_home_drop_actors(home);
}

/* Directories of 0.1 and 0.2 have no such file.  Without it nothing is wrong: that it cannot be
 * written, on a full disk for example, must not keep anybody from an erasure. */
static void note_format(const cx_home *home)
{
    cx_status ignored = cx_home_format_write(home->io, home->path, home->alloc, NULL);
    (void)ignored;
}

static cx_status open_tables_to_write(cx_home *home, cx_err *err)
{
    bool stale = false;
    CX_TRY(open_store(home, CX_STORE_WRITE, &stale, err));
    if (stale)
        CX_TRY(cx_store_clear(&home->store, cx_buf_str(&home->identity), err));
    if (!stale)
        CX_TRY(cx_home_load_actors(home, err));
    CX_TRY(cx_home_catch_up(home, err));
    CX_TRY(cx_home_finish_all_erasures(home, err));
    note_format(home);
    return cx_home_start_flusher(home, err);
}

static cx_status open_scratch_tables(cx_home *home, cx_err *err)
{
    bool stale = false;
    CX_TRY(open_store(home, CX_STORE_SCRATCH, &stale, err));
    CX_TRY(cx_store_clear(&home->store, cx_buf_str(&home->identity), err));
    return cx_home_catch_up(home, err);
}

/* Size of a file; 0 when there is none. */
static uint64_t file_size(const cx_io *io, const char *path)
{
    uint64_t size = 0;
    cx_file file;
    bool regular;
    if (io->open(io, path, CX_IO_READ, &file) != 0)
        return 0;
    if (io->size(io, file, &size, &regular) != 0)
        size = 0;
    (void)io->close(io, file);
    return size;
}

/* Size of the write-ahead log of the database at `db_path`; 0 when there is none. */
static uint64_t wal_size(const cx_home *home, const char *db_path)
{
    char *path = join_path(home->alloc, db_path, "-wal");
    uint64_t size = path == NULL ? 0 : file_size(home->io, path);
    free_text(home->alloc, path);
    return size;
}

/* Whether another process, or another handle of this process, writes to this data directory. */
static bool writer_lives(const cx_home *home)
{
    bool held = false;
    cx_file file;
    char *path = home->holds_lock ? NULL : join_path(home->alloc, home->log_path, "/lock");
    if (path != NULL && home->io->open(home->io, path, CX_IO_READ, &file) == 0) {
        if (home->io->locked(home->io, file, &held) != 0)
            held = true;
        (void)home->io->close(home->io, file);
    }
    free_text(home->alloc, path);
    return held;
}

/* With a live writer SQLite's locks are needed; without one no file may be touched (H3). */
static cx_store_mode reading_mode(const cx_home *home, const char *db_path)
{
    if (writer_lives(home))
        return CX_STORE_READ;
    return wal_size(home, db_path) == 0 ? CX_STORE_IMMUTABLE : CX_STORE_ALONE;
}

/* Opens the tables without locks when there is no writer (H3).  A writer that appeared meanwhile
 * may have changed them: then they are opened again, with SQLite's locks. */
static cx_status open_as_found(const cx_home *home, const char *path, cx_store *out,
                               bool *out_stale, cx_err *err)
{
    const cx_store_mode mode = reading_mode(home, path);
    const uint64_t seed = cx_io_seed(home->io);
    cx_str identity = cx_buf_str(&home->identity);
    cx_status status = cx_store_open(path, mode, home->alloc, seed, identity, out, out_stale, err);
    if (mode == CX_STORE_READ)
        return status;
    if (!cx_failed(status) && !writer_lives(home))
        return status;
    if (cx_failed(status) && status.code != CX_E_BUSY)
        return status;
    if (!cx_failed(status))
        cx_store_close(out);
    return cx_store_open(path, CX_STORE_READ, home->alloc, seed, identity, out, out_stale, err);
}

cx_status cx_home_open_tables_to_check(const cx_home *home, cx_store *out, bool *out_there,
                                       bool *out_stale, cx_err *err)
{
    char *path = join_path(home->alloc, home->path, "/cortex.db");
    if (path == NULL)
        return cx_fail_nomem(err);
    cx_status status = open_as_found(home, path, out, out_stale, err);
    free_text(home->alloc, path);
    *out_there = status.code != CX_E_NOT_FOUND; /* no file, or an empty one */
    return *out_there ? status : CX_SUCCESS;
}

/* Opens the tables without changing them; *out_current: they have everything the log had before. */
static cx_status open_tables_to_read(cx_home *home, bool *out_current, cx_err *err)
{
    bool stale = false;
    uint64_t durable = cx_log_durable(home->log);
    CX_TRY(open_as_found(home, home->db_path, &home->store, &stale, err));
    home->store_open = true;
    const cx_position at = home->store.flushed;
    *out_current = !stale && at.commit + (at.frames != 0 ? 1 : 0) >= durable;
    if (!*out_current)
        return CX_SUCCESS;
    home->applied = at;
    return cx_home_load_actors(home, err);
}

static cx_status open_to_read(cx_home *home, cx_err *err)
{
    uint64_t end = home->io->monotonic_ns(home->io) + READER_WAIT_MS * UINT64_C(1000000);
    for (;;) {
        bool current = false;
        cx_err failure = {0};
        cx_status status = open_tables_to_read(home, &current, &failure);
        if (!cx_failed(status) && current)
            return CX_SUCCESS;
        close_store(home);
        if (cx_failed(status) && status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        /* A live writer flushes its tables soon; without a writer they do not change. */
        bool waiting = writer_lives(home) && home->io->monotonic_ns(home->io) < end;
        if (!waiting)
            return open_scratch_tables(home, err);
        cx_lock_enter(&home->lock);
        cx_lock_wait_for(&home->lock, READER_POLL_MS);
        cx_lock_leave(&home->lock);
    }
}

static cx_home *home_new(const char *path, const cx_home_options *options)
{
    const cx_alloc *alloc = alloc_of(options);
    cx_home *home = cx_alloc_zeroed(alloc, 1, sizeof *home);
    if (home == NULL)
        return NULL;
    home->alloc = alloc;
    home->io = io_of(options);
    home->options = *options;
    home->overlay_bytes = CX_OVERLAY_BYTES;
    if (home->options.flush_timeout_ms == 0)
        home->options.flush_timeout_ms = FLUSH_TIMEOUT_MS;
    home->read_only = options->read_only;
    home->last_commit = UINT64_MAX;
    home->path = join_path(alloc, path, "");
    home->log_path = join_path(alloc, path, "/log");
    home->db_path = join_path(alloc, path, "/cortex.db");
    cx_buf_init(&home->identity, alloc);
    home->actors.seed = cx_io_seed(home->io);
    cx_arena_init(&home->txn_arena, alloc, 0);
    cx_lock_init(&home->lock);
    return home;
}

static void home_free(cx_home *home)
{
    cx_remote_leave(home);
    close_store(home);
    cx_log_close(home->log);
    cx_buf_done(&home->identity);
    cx_arena_done(&home->txn_arena);
    free_text(home->alloc, home->path);
    free_text(home->alloc, home->log_path);
    free_text(home->alloc, home->db_path);
    cx_lock_done(&home->lock);
    cx_alloc_free(home->alloc, home, sizeof *home);
}

static cx_status open_log(cx_home *home, bool read_only, cx_err *err)
{
    if (home->path == NULL || home->log_path == NULL || home->db_path == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_home_format_check(home->io, home->path, home->alloc, err));
    const cx_log_options options = {.alloc = home->alloc,
                                    .io = home->io,
                                    .segment_bytes = home->options.segment_bytes,
                                    .read_only = read_only};
    cx_log_opened opened;
    cx_status status = cx_log_open(home->log_path, &options, &home->log, &opened, err);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoHome", CX_NO_OFFSET,
                          "there is no data directory at %s; 'cortex init' creates one",
                          home->path);
    CX_TRY(status);
    if (opened.commit_count == 0)
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "NoHome", CX_NO_OFFSET,
            "creating the data directory at %s was interrupted; 'cortex init' completes it",
            home->path);
    home->torn_bytes = opened.torn_bytes;
    home->holds_lock = !read_only;
    return make_identity(home, err);
}

/* A writer process without a socket cannot be joined: the caller gets the lock's error and may
 * wait. */
static cx_status join_writer_process(cx_home *home, cx_status locked, cx_err *err)
{
    cx_err why = {0};
    cx_status status = cx_remote_join(home, &why);
    if (status.code == CX_E_NOT_FOUND)
        return locked;
    *err = why;
    return status;
}

cx_status cx_home_open(const char *path, const cx_home_options *options, cx_home **out, cx_err *err)
{
    CX_ASSERT(path != NULL && out != NULL);
    cx_home *home = home_new(path, options);
    if (home == NULL)
        return cx_fail_nomem(err);
    cx_status status = CX_SUCCESS;
    cx_err failure = {0};
    if (options->only_reach)
        status = cx_remote_join(home, &failure);
    else
        status = open_log(home, home->read_only, &failure);
    if (status.code == CX_E_BUSY && options->or_remote && !options->only_reach && !home->read_only)
        status = join_writer_process(home, status, &failure);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = failure;
        goto done;
    }
    if (home->remote == NULL)
        status = home->read_only ? open_to_read(home, err) : open_tables_to_write(home, err);
    if (!cx_failed(status) && options->archives && home->remote == NULL && !home->read_only)
        status = cx_log_archiver_begin(home->log, &options->archiving, err);
done:
    if (cx_failed(status)) {
        home_free(home);
        return status;
    }
    if (home->remote == NULL && !home->read_only)
        cx_home_root_load_status(home);
    *out = home;
    return CX_SUCCESS;
}

/* Of a part of a fleet every byte that is written goes to its database: no runs there. */
static cx_status open_new_store(cx_home *home, bool in_file, bool *out_stale, cx_err *err)
{
    CX_TRY(open_store(home, in_file ? CX_STORE_FILL : CX_STORE_SCRATCH, out_stale, err));
    return in_file && !cx_db_in_files(home->db_path)
               ? cx_store_begin_runs(&home->store, home->io, home->db_path, err)
               : CX_SUCCESS;
}

static cx_status open_derived_tables(cx_home *home, const char *db_path, cx_err *err)
{
    bool stale = false;
    if (db_path != NULL) {
        free_text(home->alloc, home->db_path);
        home->db_path = join_path(home->alloc, db_path, "");
        if (home->db_path == NULL)
            return cx_fail_nomem(err);
    }
    cx_status status = open_new_store(home, db_path != NULL, &stale, err);
    if (status.code == CX_E_FORMAT && db_path != NULL) {
        close_store(home);
        cx_home_remove_new_tables(home->io, home->path);
        status = open_new_store(home, true, &stale, err);
    }
    CX_TRY(status);
    /* Tables that were begun for a longer log cannot be continued for this one. */
    if (stale || home->store.flushed.commit == 0 ||
        home->store.flushed.commit > cx_log_durable(home->log)) {
        CX_TRY(cx_store_clear(&home->store, cx_buf_str(&home->identity), err));
        return cx_store_defer_trees(&home->store, err);
    }
    CX_TRY(cx_home_load_actors(home, err));
    home->applied = home->store.flushed;
    return cx_store_resume_deferred(&home->store, err);
}

cx_status cx_home_open_derived(const char *path, const char *db_path, bool lock,
                               const cx_home_options *options, cx_home **out, cx_err *err)
{
    cx_home *home = home_new(path, options);
    if (home == NULL)
        return cx_fail_nomem(err);
    cx_status status = open_log(home, !lock, err);
    if (!cx_failed(status))
        status = open_derived_tables(home, db_path, err);
    if (cx_failed(status))
        home_free(home);
    else
        *out = home;
    return status;
}

cx_status cx_home_open_kept(const char *path, const char *db_path, const cx_home_options *options,
                            cx_home **out, bool *out_stale, cx_err *err)
{
    cx_home *home = home_new(path, options);
    if (home == NULL)
        return cx_fail_nomem(err);
    cx_status status = open_log(home, true, err);
    if (!cx_failed(status)) {
        free_text(home->alloc, home->db_path);
        home->db_path = join_path(home->alloc, db_path, "");
        status = home->db_path == NULL ? cx_fail_nomem(err)
                                       : open_store(home, CX_STORE_DERIVE, out_stale, err);
    }
    if (cx_failed(status))
        home_free(home);
    else
        *out = home;
    return status;
}

cx_status cx_home_begin_kept(cx_home *home, bool empty, cx_err *err)
{
    if (empty)
        return cx_store_clear(&home->store, cx_buf_str(&home->identity), err);
    CX_TRY(cx_home_load_actors(home, err));
    home->applied = home->store.flushed;
    return CX_SUCCESS;
}

void cx_home_close_derived_tables(cx_home *home)
{
    close_store(home);
}

void cx_home_close_derived(cx_home *home)
{
    if (home != NULL)
        home_free(home);
}

cx_status cx_home_close(cx_home *home, cx_err *err)
{
    if (home == NULL)
        return CX_SUCCESS;
    CX_ASSERT(!home->serving); /* cx_home_serve_end must be called first */
    cx_status status = CX_SUCCESS;
    if (home->flusher.started) {
        cx_home_stop_flusher(home);
        status = home->flush_status;
        if (cx_failed(status) && err != NULL)
            *err = home->flush_err;
    }
    home_free(home);
    return status;
}

/* --- small questions ------------------------------------------------------------------------- */

cx_scheme cx_home_scheme(const cx_home *home)
{
    return home->scheme;
}

const cx_io *cx_home_io(const cx_home *home)
{
    return home->io;
}

const char *cx_home_path(const cx_home *home)
{
    return home->path;
}

uint64_t cx_home_torn_bytes(const cx_home *home)
{
    return home->torn_bytes;
}
