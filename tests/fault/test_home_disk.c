/*
 * test_home_disk.c - a home whose log lies on a disk that loses, tears and reorders what was not
 * synced, fails to sync, or is full; its tables are on a real one and survive the crash, or do not.
 * After each: what was acknowledged is there, the home holds, and its roots are those of the log.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <unistd.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "tests/support/disk.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

typedef struct world {
    disk d;
    cx_io io; /* the disk's, with the system's clock */
    char path[FOLDER_PATH_SIZE];
    kit_source source;
    uint64_t seed;
    cx_home *home;
    cx_memory *memory;
    CX_VEC(cx_uri) acknowledged;
    cx_err err;
} world;

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
    cx_status status = cx_home_open(w->path, &options, &w->home, &w->err);
    if (cx_failed(status)) {
        w->home = NULL;
        return false;
    }
    CHECK_STATUS(cx_memory_open(w->home, KIT_ACTOR, &own, &w->memory, &w->err), &w->err);
    return true;
}

static cx_status world_close(world *w)
{
    cx_memory_close(w->memory);
    cx_status status = cx_home_close(w->home, NULL);
    w->memory = NULL;
    w->home = NULL;
    return status;
}

static bool world_init(world *w, const char *name, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    disk_init(&w->d, seed);
    w->io = w->d.io;
    w->io.monotonic_ns = cx_io_system()->monotonic_ns;
    w->io.wall_ns = cx_io_system()->wall_ns;
    w->seed = seed;
    kit_source_init(&w->source, seed % 1000 + 1);
    folder_fresh(w->path, name);
    CHECK(mkdir(w->path, 0700) == 0);
    char above[FOLDER_PATH_SIZE];
    (void)snprintf(above, sizeof above, "%s", w->path);
    *strrchr(above, '/') = 0;
    CHECK(w->io.mkdir(&w->io, above) == 0);
    const cx_home_options options = options_of(w);
    CHECK_STATUS(cx_home_create(w->path, CX_SCHEME_CORTEX_1, &options, &w->err), &w->err);
    return world_open(w);
}

static void world_done(world *w)
{
    cx_vec_done(&w->acknowledged, cx_alloc_default());
    disk_done(&w->d);
    folder_remove(w->path);
}

static void remember(world *w, const cx_uri *uri)
{
    cx_uri *slot = cx_vec_push(&w->acknowledged, cx_alloc_default());
    CX_ASSERT(slot != NULL);
    *slot = *uri;
}

/* One call; what it says is believed. */
static cx_status act(world *w, cx_uri *last)
{
    uint64_t seq, dice = cx_test_random(&w->seed) % 10;
    cx_uri uri;
    if (dice < 3 && last->version != 0) {
        CX_TRY(kit_update(w->memory, last, "changed", &uri, &w->err));
    } else if (dice == 9) {
        CX_TRY(cx_memory_raw(w->memory, CX_STR("trace.x"), cx_str_bytes(CX_STR("some payload")),
                             true, CX_STR("me"), &seq, &w->err));
        return cx_memory_redact(w->memory, seq, CX_STR("asked"), CX_STR("me"), &w->err);
    } else {
        CX_TRY(kit_write(w->memory, "written", &uri, &w->err));
    }
    *last = uri;
    remember(w, &uri);
    return CX_SUCCESS;
}

/* What the disk holds, as files next to the tables, so that all of the home can be verified. */
static void bring_out(void *arg, const char *path, cx_buf *contents)
{
    const world *w = arg;
    size_t size = strlen(w->path);
    if (strncmp(path, w->path, size) != 0 || strncmp(path + size, "/log/", 5) != 0)
        return;
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    if (file == NULL)
        return;
    CHECK(fwrite(contents->data, 1, contents->size, file) == contents->size);
    CHECK(fclose(file) == 0);
}

static void check_whole(world *w, bool tables)
{
    char log[FOLDER_PATH_SIZE + 8];
    (void)snprintf(log, sizeof log, "%s/log", w->path);
    folder_remove(log);
    CHECK(mkdir(log, 0700) == 0);
    disk_each(&w->d, bring_out, w);
    (void)CHECK_HOLDS(w->path, tables, NULL);
    folder_remove(log);
}

static bool all_there(world *w)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < w->acknowledged.count; i++) {
        cx_memory_view view;
        if (!cx_failed(
                cx_memory_resolve(w->memory, &w->acknowledged.items[i], &arena, &view, &w->err)))
            continue;
        cx_test_fail(__FILE__, __LINE__, "acknowledged and lost: %s", w->err.message);
        cx_arena_done(&arena);
        return false;
    }
    cx_arena_done(&arena);
    return true;
}

/* --- power ------------------------------------------------------------------------------------ */

static bool lose_power(uint64_t seed)
{
    world *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    CX_ASSERT(w != NULL);
    bool good = world_init(w, "power", seed);
    for (unsigned round = 0; good && round < 4; round++) {
        cx_uri last = {0};
        w->d.off_at = w->d.calls + 1 + cx_test_random(&w->seed) % 120;
        while (!cx_failed(act(w, &last)))
            ;
        bool is_closed = !cx_failed(world_close(w));
        (void)is_closed;
        disk_crash(&w->d, 512);
        if (cx_test_random(&w->seed) % 2 == 0)
            kit_remove_tables(w->path);
        check_whole(w, false);
        good = world_open(w);
        if (!good)
            cx_test_fail(__FILE__, __LINE__, "does not open: %s", w->err.message);
        good = good && all_there(w);
    }
    if (good) {
        CHECK_STATUS(world_close(w), &w->err);
        check_whole(w, true);
    }
    world_done(w);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
    return good;
}

CX_TEST(home_loses_power)
{
    const char *given = getenv("CORTEX_CRASH_ROUNDS");
    uint64_t rounds = given != NULL ? strtoull(given, NULL, 10) : 10;
    for (uint64_t i = 0; i < rounds; i++)
        if (!lose_power(cx_test_seed() * 100 + i)) {
            cx_test_fail(__FILE__, __LINE__, "round %llu of seed %llu", (unsigned long long)i,
                         (unsigned long long)cx_test_seed());
            break;
        }
}

/* --- a sync that fails ------------------------------------------------------------------------ */

CX_TEST(home_sync_fails)
{
    world *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    REQUIRE(w != NULL && world_init(w, "sync_fails", cx_test_seed()));
    cx_uri uri, other;
    cx_roots roots;
    CHECK_STATUS(kit_write(w->memory, "before", &uri, &w->err), &w->err);
    remember(w, &uri);
    w->d.sync_fails = true;
    CHECK(kit_write(w->memory, "lost", &other, &w->err).code == CX_E_IO);
    w->d.sync_fails = false;
    /* It works again, but what the disk has is not known: nothing is acknowledged any more. */
    CHECK(kit_write(w->memory, "not written", &other, &w->err).code == CX_E_IO);
    CHECK(w->err.tag != NULL && strcmp(w->err.tag, "Poisoned") == 0);
    CHECK(cx_home_roots(w->home, KIT_ACTOR, &roots, &w->err).code == CX_E_IO);
    CHECK(cx_failed(world_close(w)));
    disk_crash(&w->d, 512);
    check_whole(w, false);
    REQUIRE(world_open(w));
    CHECK(all_there(w));
    CHECK_STATUS(kit_write(w->memory, "afterwards", &uri, &w->err), &w->err);
    CHECK_STATUS(world_close(w), &w->err);
    check_whole(w, true);
    world_done(w);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

/* --- no room ---------------------------------------------------------------------------------- */

CX_TEST(home_log_without_room)
{
    static uint8_t payload[20000];
    world *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    REQUIRE(w != NULL && world_init(w, "no_room", cx_test_seed()));
    cx_status status = CX_SUCCESS;
    uint64_t seq, written = 0;
    cx_uri uri;
    w->d.room = 3 * 65536 + 8192;
    while (!cx_failed(status) && written < 100) {
        status = cx_memory_raw(w->memory, CX_STR("raw"), cx_bytes_from(payload, sizeof payload),
                               false, CX_STR("me"), &seq, &w->err);
        written += cx_failed(status) ? 0 : 1;
    }
    CHECK(status.code == CX_E_IO && w->err.os_errno == ENOSPC);
    CHECK(written > 3 && written < 100);
    /* Refused before anything was half written: the next one does not find it poisoned. */
    status = cx_memory_raw(w->memory, CX_STR("raw"), cx_bytes_from(payload, sizeof payload), false,
                           CX_STR("me"), &seq, &w->err);
    CHECK(status.code == CX_E_IO && w->err.os_errno == ENOSPC);
    w->d.room = 0;
    CHECK_STATUS(kit_write(w->memory, "there is room again", &uri, &w->err), &w->err);
    remember(w, &uri);
    cx_actor_info info;
    CHECK_STATUS(cx_home_actor(w->home, KIT_ACTOR, &info, &w->err), &w->err);
    CHECK_INT(info.entry_count, written + 1);
    CHECK(all_there(w));
    CHECK_STATUS(world_close(w), &w->err);
    check_whole(w, true);
    world_done(w);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

/* The database may grow no more: what is written is acknowledged, and the tables come back. */
CX_TEST(home_database_without_room)
{
    world *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    REQUIRE(w != NULL && world_init(w, "no_db_room", cx_test_seed()));
    struct rlimit before, small;
    cx_uri uri;
    CHECK_STATUS(kit_write(w->memory, "before", &uri, &w->err), &w->err);
    CHECK_STATUS(cx_home_flush(w->home, &w->err), &w->err);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 4096;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (unsigned i = 0; i < 20; i++) {
        cx_status status = kit_write(w->memory, "acknowledged all the same", &uri, &w->err);
        CHECK_STATUS(status, &w->err);
        if (!cx_failed(status))
            remember(w, &uri);
    }
    CHECK(cx_failed(cx_home_flush(w->home, &w->err)));
    CHECK(all_there(w));
    CHECK(cx_failed(world_close(w)));
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    (void)signal(SIGXFSZ, handler);
    REQUIRE(world_open(w));
    CHECK(all_there(w));
    CHECK_STATUS(world_close(w), &w->err);
    check_whole(w, true);
    world_done(w);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}
