/*
 * test_home_files.c - a whole data directory without a file system: its log on a disk in memory,
 * its tables as a database over a cx_io.  The process is killed, or the power goes off: the tables
 * are those of some flush, and are brought up to date from the log.
 */
#include <errno.h>

#include "db/api.h"
#include "tests/support/disk.h"
#include "tests/support/home_kit.h"
#include "tests/support/synced.h"
#include "tests/test.h"

#define HOME "mem:home"
#define TABLES HOME "/cortex.db"

/* Files of the two have numbers of their own. */
enum { TABLES_FROM = 10000, ROUNDS = 12, WRITTEN_MAX = 4000 };

typedef struct world {
    cx_io io;
    disk log;
    synced_files tables;
    kit_source source;
    uint64_t seed;
    cx_home *home;
    cx_memory *memory;
    cx_uri written[WRITTEN_MAX];
    size_t written_count;
    unsigned syncs; /* of the tables */
    cx_err err;
} world;

static bool is_table(const char *path)
{
    const size_t size = strlen(path);
    return size > 3 && strcmp(path + size - 3, ".db") == 0;
}

static const cx_io *io_of(const cx_io *io, cx_file *file)
{
    world *w = io->ctx;
    if (*file < TABLES_FROM)
        return &w->log.io;
    *file -= TABLES_FROM;
    return &w->tables.io;
}

static int world_io_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    world *w = io->ctx;
    if (!is_table(path))
        return w->log.io.open(&w->log.io, path, flags, out);
    int failed = w->tables.io.open(&w->tables.io, path, flags, out);
    *out += failed == 0 ? TABLES_FROM : 0;
    return failed;
}

static int world_io_close(const cx_io *io, cx_file file)
{
    const cx_io *own = io_of(io, &file);
    return own->close(own, file);
}

static int64_t world_io_pread(const cx_io *io, cx_file file, void *data, size_t size,
                              uint64_t offset)
{
    const cx_io *own = io_of(io, &file);
    return own->pread(own, file, data, size, offset);
}

static int64_t world_io_pwrite(const cx_io *io, cx_file file, const void *data, size_t size,
                               uint64_t offset)
{
    const cx_io *own = io_of(io, &file);
    return own->pwrite(own, file, data, size, offset);
}

static int world_io_sync(const cx_io *io, cx_file file, bool data_only)
{
    const cx_io *own = io_of(io, &file);
    return own->sync(own, file, data_only);
}

static int world_io_truncate(const cx_io *io, cx_file file, uint64_t size)
{
    const cx_io *own = io_of(io, &file);
    return own->truncate(own, file, size);
}

static int world_io_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    const cx_io *own = io_of(io, &file);
    return own->size(own, file, out, out_regular);
}

static int world_io_unlink(const cx_io *io, const char *path)
{
    const world *w = io->ctx;
    const cx_io *own = is_table(path) ? &w->tables.io : &w->log.io;
    return own->unlink(own, path);
}

/* The other calls are the disk's. */
#define WORLD_OF(io) ((const world *)(io)->ctx)

static void world_io_start_sync(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    WORLD_OF(io)->log.io.start_sync(&WORLD_OF(io)->log.io, file, offset, size);
}

static void world_io_forget(const cx_io *io, cx_file file)
{
    WORLD_OF(io)->log.io.forget(&WORLD_OF(io)->log.io, file);
}

static int world_io_rename(const cx_io *io, const char *from, const char *to)
{
    return WORLD_OF(io)->log.io.rename(&WORLD_OF(io)->log.io, from, to);
}

static int world_io_mkdir(const cx_io *io, const char *path)
{
    return WORLD_OF(io)->log.io.mkdir(&WORLD_OF(io)->log.io, path);
}

static int world_io_list(const cx_io *io, const char *path, cx_io_name *name, void *arg)
{
    return WORLD_OF(io)->log.io.list(&WORLD_OF(io)->log.io, path, name, arg);
}

static int world_io_allocate(const cx_io *io, cx_file file, uint64_t size)
{
    return WORLD_OF(io)->log.io.allocate(&WORLD_OF(io)->log.io, file, size);
}

static int world_io_lock(const cx_io *io, cx_file file)
{
    return WORLD_OF(io)->log.io.lock(&WORLD_OF(io)->log.io, file);
}

static int world_io_locked(const cx_io *io, cx_file file, bool *out_locked)
{
    return WORLD_OF(io)->log.io.locked(&WORLD_OF(io)->log.io, file, out_locked);
}

static int world_io_random(const cx_io *io, void *data, size_t size)
{
    return WORLD_OF(io)->log.io.random(&WORLD_OF(io)->log.io, data, size);
}

static uint64_t world_io_process(const cx_io *io)
{
    (void)io;
    return 4711;
}

static uint64_t world_io_wall(const cx_io *io)
{
    (void)io;
    return cx_io_system()->wall_ns(cx_io_system());
}

static uint64_t world_io_monotonic(const cx_io *io)
{
    (void)io;
    return cx_io_system()->monotonic_ns(cx_io_system());
}

static const cx_io world_io = {
    .open = world_io_open,
    .close = world_io_close,
    .pread = world_io_pread,
    .pwrite = world_io_pwrite,
    .sync = world_io_sync,
    .start_sync = world_io_start_sync,
    .forget = world_io_forget,
    .truncate = world_io_truncate,
    .size = world_io_size,
    .rename = world_io_rename,
    .unlink = world_io_unlink,
    .mkdir = world_io_mkdir,
    .list = world_io_list,
    .allocate = world_io_allocate,
    .lock = world_io_lock,
    .locked = world_io_locked,
    .process_id = world_io_process,
    .wall_ns = world_io_wall,
    .monotonic_ns = world_io_monotonic,
    .random = world_io_random,
};

/* --- the home --------------------------------------------------------------------------------- */

static cx_home_options options_of(world *w)
{
    cx_home_options options = kit_options();
    options.io = &w->io;
    return options;
}

static bool world_open(world *w)
{
    const cx_home_options options = options_of(w);
    const cx_memory_options own = kit_memory_options(&w->source);
    cx_status status = cx_home_open(HOME, &options, &w->home, &w->err);
    if (!cx_failed(status))
        status = cx_memory_open(w->home, KIT_ACTOR, &own, &w->memory, &w->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "opening: %s", w->err.message);
    return !cx_failed(status);
}

static cx_status world_close(world *w)
{
    cx_memory_close(w->memory);
    cx_status status = cx_home_close(w->home, &w->err);
    w->memory = NULL;
    w->home = NULL;
    return status;
}

static void count_flushed(void *arg, const char *path)
{
    world *w = arg;
    w->syncs += strcmp(path, TABLES) == 0 ? 1 : 0;
}

static world *world_new(uint64_t seed)
{
    world *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    CX_ASSERT(w != NULL);
    w->io = world_io;
    w->io.ctx = w;
    w->seed = seed;
    disk_init(&w->log, seed);
    synced_init(&w->tables);
    w->tables.on_sync = count_flushed;
    w->tables.arg = w;
    kit_source_init(&w->source, 1);
    CHECK_STATUS(cx_db_use_files("mem:", &w->io, &w->err), &w->err);
    const cx_home_options options = options_of(w);
    CHECK_STATUS(cx_home_create(HOME, CX_SCHEME_CORTEX_1, &options, &w->err), &w->err);
    return w;
}

static void world_free(world *w)
{
    CHECK_INT(synced_open_count(&w->tables), 0);
    CHECK_STATUS(cx_db_use_files(NULL, NULL, &w->err), &w->err);
    synced_done(&w->tables);
    disk_done(&w->log);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

static bool write_one(world *w)
{
    cx_uri uri;
    if (w->written_count == WRITTEN_MAX ||
        cx_failed(kit_write(w->memory, "written", &uri, &w->err)))
        return false;
    w->written[w->written_count++] = uri;
    return true;
}

static void check_all_there(world *w)
{
    cx_arena arena;
    uint64_t entries = 0, records = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < w->written_count; i++) {
        cx_memory_view view;
        CHECK_STATUS(cx_memory_resolve(w->memory, &w->written[i], &arena, &view, &w->err), &w->err);
    }
    cx_arena_done(&arena);
    CHECK_STATUS(cx_home_flush(w->home, &w->err), &w->err);
    CHECK_STATUS(cx_home_count_rows(w->home, &entries, &records, &w->err), &w->err);
    CHECK(entries >= w->written_count);
}

CX_TEST(home_without_a_file_system)
{
    world *w = world_new(cx_test_seed());
    if (world_open(w)) {
        for (int i = 0; i < 200; i++)
            CHECK(write_one(w));
        check_all_there(w);
        CHECK_STATUS(world_close(w), &w->err);
    }
    bool there;
    cx_buf image = synced_image(&w->tables, TABLES, &there);
    CHECK(there && image.size > 4096);
    cx_buf_done(&image);
    /* Once more, of the tables that are there, and read by another. */
    cx_tables_status tables = {0};
    cx_home *reader = NULL;
    cx_home_options reads = options_of(w);
    reads.read_only = true;
    CHECK_STATUS(cx_home_open(HOME, &reads, &reader, &w->err), &w->err);
    if (reader != NULL) {
        CHECK_STATUS(cx_home_tables_status(reader, &tables, &w->err), &w->err);
        CHECK(tables.entry_rows >= 200 && tables.table_commits == tables.log_commits);
        CHECK_STATUS(cx_home_close(reader, &w->err), &w->err);
    }
    if (world_open(w)) {
        CHECK(write_one(w));
        check_all_there(w);
        CHECK_STATUS(world_close(w), &w->err);
    }
    world_free(w);
}

/* What has been flushed is seen outside, as far as readers allow. */
static void publish_tables(world *w)
{
    cx_db *db = NULL;
    CHECK_STATUS(cx_db_open(TABLES, CX_DB_WRITE, &db, &w->err), &w->err);
    if (db != NULL)
        CHECK_STATUS(cx_db_run(db, "PRAGMA wal_checkpoint(PASSIVE)", &w->err), &w->err);
    cx_db_close(db);
}

/* From here on nothing comes to the disk or to the tables, whatever the process does. */
static void write_until_killed(world *w)
{
    while (w->log.calls < w->log.off_at && write_one(w)) {
        if (cx_test_random(&w->seed) % 20 != 0)
            continue;
        if (cx_failed(cx_home_flush(w->home, &w->err)))
            break;
        publish_tables(w);
    }
    w->tables.refuse_sync = EIO;
    cx_status ignored = world_close(w);
    (void)ignored;
    disk_crash(&w->log, 512);
    synced_kill(&w->tables);
    w->tables.refuse_sync = 0;
}

CX_TEST(home_without_a_file_system_is_killed)
{
    world *w = world_new(cx_test_seed());
    bool good = world_open(w);
    for (int i = 0; i < 60 && good; i++)
        good = write_one(w);
    if (good) {
        CHECK_STATUS(cx_home_flush(w->home, &w->err), &w->err);
        publish_tables(w);
        CHECK_STATUS(world_close(w), &w->err);
    }
    CHECK(good && w->syncs > 1);
    for (int round = 0; round < ROUNDS && good; round++) {
        good = world_open(w);
        if (!good)
            break;
        check_all_there(w);
        w->log.off_at = w->log.calls + 1 + cx_test_random(&w->seed) % 300;
        write_until_killed(w);
    }
    if (good && world_open(w)) {
        check_all_there(w);
        CHECK_STATUS(world_close(w), &w->err);
    }
    world_free(w);
}
