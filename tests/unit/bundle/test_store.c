/* The runtime root, ids of runs, who a process is, files that replace each other (R2, R5, R6). */
#include "bundle/store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/folder.h"
#include "tests/support/folder.h"
#include "tests/test.h"

CX_TEST(store_root_is_of_the_repository_or_absolute)
{
    cx_arena arena;
    const char *root;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_store_root("/r", NULL, &arena, &root, &err), &err);
    CHECK_STR(cx_str_z(root), "/r/.runtime-cache/cortexpilot");
    CHECK_STATUS(cx_run_store_root("/r", "", &arena, &root, &err), &err);
    CHECK_STR(cx_str_z(root), "/r/.runtime-cache/cortexpilot");
    CHECK_STATUS(cx_run_store_root("/r", "/elsewhere", &arena, &root, &err), &err);
    CHECK_STR(cx_str_z(root), "/elsewhere");
    CHECK_INT(cx_run_store_root("/r", "relative/root", &arena, &root, &err).code, CX_E_USAGE);
    cx_arena_done(&arena);
}

CX_TEST(store_makes_its_folders_for_its_owner_alone)
{
    static const char *const names[] = {"",       "/runs",      "/worktrees",
                                        "/locks", "/approvals", "/active"};
    char root[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    cx_run_store store;
    cx_err err;
    folder_fresh(root, "store");
    CHECK_STATUS(cx_run_store_open(&store, root, false, NULL, NULL, &err), &err);
    CHECK(access(root, F_OK) != 0); /* nothing is made by looking */
    CHECK_INT(cx_run_store_open(&store, "relative", true, NULL, NULL, &err).code, CX_E_USAGE);
    CHECK_STATUS(cx_run_store_open(&store, root, true, NULL, NULL, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        struct stat info;
        (void)snprintf(path, sizeof path, "%s%s", root, names[i]);
        CHECK(stat(path, &info) == 0 && S_ISDIR(info.st_mode));
        CHECK_INT(info.st_mode & 07777, 0700);
    }
    CHECK_STATUS(cx_run_store_open(&store, root, false, NULL, NULL, &err), &err);
    folder_remove(root);
}

CX_TEST(run_ids_are_names_of_one_component)
{
    static const char *const good[] = {"a", "run_20260101_000000_00ff", "A.b-c_d", "1.2.3"};
    static const char *const bad[] = {"",    ".",   "..",   ".a",   "-a",   "_a",
                                      "a/b", "a b", "a..b", "a\\b", "a\nb", "\xc3\xa4"};
    char longest[130];
    for (size_t i = 0; i < CX_COUNT_OF(good); i++)
        CHECK(cx_run_id_valid(cx_str_z(good[i])));
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!cx_run_id_valid(cx_str_z(bad[i])));
    memset(longest, 'a', sizeof longest);
    CHECK(cx_run_id_valid(cx_str_from(longest, 128)));
    CHECK(!cx_run_id_valid(cx_str_from(longest, 129)));
}

CX_TEST(run_ids_made_are_valid_and_differ)
{
    char a[CX_RUN_ID_SIZE], b[CX_RUN_ID_SIZE];
    cx_err err;
    CHECK_STATUS(cx_run_id_make(cx_io_system(), a, &err), &err);
    CHECK_STATUS(cx_run_id_make(cx_io_system(), b, &err), &err);
    CHECK(cx_run_id_valid(cx_str_z(a)) && strlen(a) == CX_RUN_ID_SIZE - 1);
    CHECK(strcmp(a, b) != 0);
    CHECK(memcmp(a, "run_20", 6) == 0);
}

CX_TEST(owner_of_this_process_lives_and_others_are_told_apart)
{
    cx_arena arena;
    cx_run_owner self, other;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_owner_self(&arena, &self, &err), &err);
    CHECK_INT(cx_run_owner_state_of(&self), CX_RUN_OWNER_ALIVE);
    other = self;
    other.start_time++; /* the number was given to another process */
    CHECK_INT(cx_run_owner_state_of(&other), CX_RUN_OWNER_DEAD);
    other = self;
    other.boot_id = CX_STR("00000000-0000-0000-0000-000000000000");
    CHECK_INT(cx_run_owner_state_of(&other), CX_RUN_OWNER_DEAD);
    other = self;
    other.host = CX_STR("another-host");
    CHECK_INT(cx_run_owner_state_of(&other), CX_RUN_OWNER_ELSEWHERE);
    cx_arena_done(&arena);
}

CX_TEST(owner_that_ended_is_dead_before_it_is_buried)
{
    cx_arena arena;
    cx_run_owner self;
    cx_err err;
    int fds[2];
    char byte;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_owner_self(&arena, &self, &err), &err);
    REQUIRE(pipe(fds) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)close(fds[1]);
        (void)!read(fds[0], &byte, 1); /* until the other end closes */
        _exit(0);
    }
    (void)close(fds[0]);
    self.pid = (uint64_t)child;
    (void)close(fds[1]);
    siginfo_t info;
    REQUIRE(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0); /* a zombie now */
    CHECK_INT(cx_run_owner_state_of(&self), CX_RUN_OWNER_DEAD);
    (void)waitpid(child, NULL, 0);
    CHECK_INT(cx_run_owner_state_of(&self), CX_RUN_OWNER_DEAD);
    cx_arena_done(&arena);
}

CX_TEST(writing_replaces_a_link_and_never_follows_it)
{
    char root[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32], outside[FOLDER_PATH_SIZE + 32];
    cx_run_store store;
    cx_err err;
    struct stat info;
    cx_file folder;
    folder_fresh(root, "store_write");
    CHECK_STATUS(cx_run_store_open(&store, root, true, NULL, NULL, &err), &err);
    (void)snprintf(path, sizeof path, "%s/file", root);
    (void)snprintf(outside, sizeof outside, "%s/outside", root);
    CHECK_STATUS(cx_run_write_file(store.io, outside, cx_str_bytes(CX_STR("old")), &err), &err);
    REQUIRE(symlink("outside", path) == 0);
    CHECK_STATUS(cx_run_write_file(store.io, path, cx_str_bytes(CX_STR("new")), &err), &err);
    CHECK(lstat(path, &info) == 0 && S_ISREG(info.st_mode));
    CHECK(lstat(outside, &info) == 0 && info.st_size == 3);
    /* A folder on the way that is a link is refused. */
    (void)snprintf(path, sizeof path, "%s/way", root);
    REQUIRE(symlink("locks", path) == 0);
    CHECK_STATUS(cx_folder_open(root, &folder, &err), &err);
    CHECK(cx_failed(
        cx_run_write_file_in(store.io, folder, "way/x", cx_str_bytes(CX_STR("x")), &err)));
    CHECK_STATUS(cx_run_write_file_in(store.io, folder, "a/b/c", cx_str_bytes(CX_STR("x")), &err),
                 &err);
    cx_folder_close(folder);
    folder_remove(root);
}
