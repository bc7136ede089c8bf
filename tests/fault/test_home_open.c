/*
 * test_home_open.c - who may open a home, and what looking at it leaves there: a second writer is
 * told who has it, a home that cannot be written to can be read and checked, and checking changes
 * no byte, also of what a killed writer left.
 */
#include <errno.h>
#include <signal.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "log/log.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

/* --- a second one ----------------------------------------------------------------------------- */

static bool refused_busy(const char *path)
{
    const cx_home_options options = kit_options();
    cx_home *home;
    cx_rebuild_result result;
    char pid[32];
    cx_err err = {0}, other = {0};
    (void)snprintf(pid, sizeof pid, "%ld", (long)getppid());
    return cx_home_open(path, &options, &home, &err).code == CX_E_BUSY && err.tag != NULL &&
           strcmp(err.tag, "Locked") == 0 && strstr(err.message, pid) != NULL &&
           cx_home_rebuild(path, &options, CX_REBUILD, &result, &other).code == CX_E_BUSY;
}

/* What a second process sees of a home that has a writer. */
static int look_from_second_process(const char *path)
{
    cx_home_options options = kit_options();
    cx_home *home;
    cx_roots roots;
    if (!refused_busy(path))
        return 1;
    options.read_only = true;
    if (cx_failed(cx_home_open(path, &options, &home, NULL)) ||
        cx_failed(cx_home_roots(home, KIT_ACTOR, &roots, NULL)) ||
        cx_failed(cx_home_close(home, NULL)))
        return 2;
    kit_verdict found = kit_verify(path, (cx_str){NULL, 0}, NULL);
    return cx_failed(found.status) || found.verdict != CX_HOLDS ? 3 : 0;
}

CX_TEST(home_second_process)
{
    kit k;
    int status;
    cx_uri uri;
    REQUIRE(kit_init(&k, "second", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    pid_t pid = fork();
    if (pid == 0)
        _exit(look_from_second_process(k.path));
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    /* Nothing of it is in the way of the first one. */
    CHECK_STATUS(kit_write(k.memory, "still here", &uri, &k.err), &k.err);
    kit_close(&k);
    (void)CHECK_HOLDS(k.path, true, NULL);
    kit_done(&k);
}

/* --- looking changes nothing ------------------------------------------------------------------ */

static void look_at(const char *path)
{
    cx_home_options options = kit_options();
    cx_home *home;
    cx_rebuild_result result;
    cx_roots roots;
    cx_err err;
    options.read_only = true;
    (void)CHECK_HOLDS(path, false, NULL);
    CHECK_STATUS(cx_home_rebuild(path, &options, CX_REBUILD_VERIFY_ONLY, &result, &err), &err);
    CHECK_STATUS(cx_home_open(path, &options, &home, &err), &err);
    CHECK_STATUS(cx_home_roots(home, KIT_ACTOR, &roots, &err), &err);
    CHECK_STATUS(cx_home_close(home, &err), &err);
}

static void check_untouched(const char *path)
{
    cx_buf before, after;
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    kit_bytes(path, &before);
    look_at(path);
    kit_bytes(path, &after);
    CHECK(before.size > 60000);
    CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
    cx_buf_done(&before);
    cx_buf_done(&after);
}

CX_TEST(home_looking_changes_no_byte)
{
    kit k;
    REQUIRE(kit_init(&k, "look", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    kit_close(&k);
    check_untouched(k.path);
    kit_remove_tables(k.path);
    check_untouched(k.path);
    kit_done(&k);
}

/* Writes, waits for the tables, and is killed: its write-ahead log stays. */
static void leave_wal(kit *k, bool flushed)
{
    int ends[2], status;
    char byte = 0;
    CX_ASSERT(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        cx_uri uri;
        bool good = kit_open(k) && !cx_failed(kit_write(k->memory, "in the wal", &uri, &k->err)) &&
                    (!flushed || !cx_failed(cx_home_flush(k->home, &k->err)));
        if (!good || write(ends[1], &byte, 1) != 1)
            _exit(1);
        (void)pause();
        _exit(2);
    }
    (void)close(ends[1]);
    atomic_fetch_add(&k->source.ids, 1); /* the child has used it */
    CHECK(read(ends[0], &byte, 1) == 1);
    (void)close(ends[0]);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
}

static bool wal_there(const char *path)
{
    char file[FOLDER_PATH_SIZE + 32];
    struct stat info;
    (void)snprintf(file, sizeof file, "%s/cortex.db-wal", path);
    return stat(file, &info) == 0 && info.st_size > 0;
}

CX_TEST(home_looking_changes_no_byte_of_a_killed_writer)
{
    kit k;
    REQUIRE(kit_init(&k, "look_wal", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    kit_close(&k);
    leave_wal(&k, true);
    CHECK(wal_there(k.path));
    check_untouched(k.path);
    (void)CHECK_HOLDS(k.path, true, NULL);
    /* Also where the index of the write-ahead log is gone. */
    char file[FOLDER_PATH_SIZE + 32];
    (void)snprintf(file, sizeof file, "%s/cortex.db-shm", k.path);
    CHECK(unlink(file) == 0);
    check_untouched(k.path);
    REQUIRE(kit_open(&k));
    kit_close(&k);
    CHECK(!wal_there(k.path));
    leave_wal(&k, false);
    check_untouched(k.path);
    kit_done(&k);
}

/* --- read-only -------------------------------------------------------------------------------- */

/* In a child with a view of its own: the home's folder can only be read. */
static int look_read_only(const char *path)
{
    const cx_home_options options = kit_options();
    cx_home *home;
    cx_err err = {0};
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(path, path, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 77;
    if (!cx_failed(cx_home_open(path, &options, &home, &err)) || err.message[0] == 0)
        return 1;
    if (err.code != CX_E_DENIED && err.code != CX_E_IO)
        return 2;
    kit_verdict found = kit_verify(path, (cx_str){NULL, 0}, NULL);
    if (cx_failed(found.status) || found.verdict != CX_HOLDS || !found.tables_checked) {
        (void)fprintf(stderr, "read-only: %s\n", found.first);
        return 3;
    }
    cx_home_options reading = options;
    cx_roots roots;
    reading.read_only = true;
    return cx_failed(cx_home_open(path, &reading, &home, NULL)) ||
                   cx_failed(cx_home_roots(home, KIT_ACTOR, &roots, NULL)) ||
                   cx_failed(cx_home_close(home, NULL))
               ? 4
               : 0;
}

static void check_read_only(const char *path)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(look_read_only(path));
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        cx_test_skip("a read-only mount needs root and a namespace of its own");
    else
        CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

CX_TEST(home_in_a_folder_that_can_only_be_read)
{
    kit k;
    REQUIRE(kit_init(&k, "read_only", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    kit_close(&k);
    check_read_only(k.path);
    leave_wal(&k, true);
    check_read_only(k.path);
    kit_done(&k);
}

/* --- a home that was never finished ----------------------------------------------------------- */

/* Making a home was cut short before its first frame: nothing is written to it by mistake. */
CX_TEST(home_half_made)
{
    const cx_home_options options = kit_options();
    const cx_log_options log_options = {.segment_bytes = options.segment_bytes};
    char path[FOLDER_PATH_SIZE], log_path[FOLDER_PATH_SIZE + 8];
    cx_home *home = NULL;
    cx_memory *memory;
    cx_uri uri;
    cx_err err = {0};
    folder_fresh(path, "half_made");
    CHECK(mkdir(path, 0700) == 0);
    (void)snprintf(log_path, sizeof log_path, "%s/log", path);
    CHECK_STATUS(cx_log_create(log_path, &log_options, &err), &err);
    CHECK(cx_home_open(path, &options, &home, &err).code == CX_E_NOT_FOUND);
    CHECK(err.tag != NULL && strcmp(err.tag, "NoHome") == 0);
    /* Making it again finishes it, once. */
    CHECK_STATUS(cx_home_create(path, CX_SCHEME_MATRIX_1, &options, &err), &err);
    CHECK(cx_home_create(path, CX_SCHEME_MATRIX_1, &options, &err).code == CX_E_EXISTS);
    CHECK_STATUS(cx_home_open(path, &options, &home, &err), &err);
    REQUIRE(home != NULL);
    CHECK(cx_home_scheme(home) == CX_SCHEME_MATRIX_1);
    CHECK_STATUS(cx_memory_open(home, KIT_ACTOR, NULL, &memory, &err), &err);
    CHECK_STATUS(kit_write(memory, "first", &uri, &err), &err);
    cx_memory_close(memory);
    CHECK_STATUS(cx_home_close(home, &err), &err);
    (void)CHECK_HOLDS(path, true, NULL);
    folder_remove(path);
}
