/* Locks on paths: all or none, whose they are, when they are stale (§11). */
#include "approval/lock.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/folder.h"
#include "tests/test.h"
#include "tests/support/run_kit.h"

static bool take(run_kit *kit, const char *run, const char *const *paths, size_t count,
                 cx_run_lock_result *out)
{
    cx_str texts[8];
    for (size_t i = 0; i < count; i++)
        texts[i] = cx_str_z(paths[i]);
    cx_run_lock_request request = {.run_id = cx_str_z(run),
                                   .task_id = CX_STR("task"),
                                   .paths = texts,
                                   .path_count = count,
                                   .ttl_sec = CX_RUN_LOCK_TTL_SEC};
    cx_status status = cx_run_lock_acquire(&kit->store, &request, &kit->arena, out, &kit->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s", kit->err.message);
    return !cx_failed(status) && out->ok;
}

#define TAKE(kit, run, out, ...)                           \
    take((kit), (run), (const char *const[]){__VA_ARGS__}, \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (out))

static size_t count_of(run_kit *kit)
{
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count = 0;
    CHECK_STATUS(cx_run_lock_list(&kit->store, &kit->arena, &locks, &reasons, &count, &kit->err),
                 &kit->err);
    return count;
}

CX_TEST(lock_on_a_folder_keeps_others_out_of_it)
{
    run_kit kit;
    cx_run_lock_result result;
    if (!run_kit_init(&kit, "lock_folder", NULL, NULL))
        return;
    CHECK(TAKE(&kit, "one", &result, "src/"));
    CHECK_INT(result.taken_count, 1);
    CHECK_STR(result.taken[0], "src");
    CHECK(!TAKE(&kit, "two", &result, "docs", "src/app/x.c"));
    REQUIRE(result.conflict_count == 1);
    CHECK_STR(result.conflicts[0].path, "src");
    CHECK_STR(result.conflicts[0].run_id, "one");
    CHECK_INT(count_of(&kit), 1); /* nothing of "two" */
    CHECK(!TAKE(&kit, "two", &result, "SRC/app"));
    CHECK(TAKE(&kit, "two", &result, "srcs"));
    run_kit_done(&kit);
}

CX_TEST(lock_of_ones_own_is_taken_again)
{
    run_kit kit;
    cx_run_lock_result result;
    if (!run_kit_init(&kit, "lock_own", NULL, NULL))
        return;
    CHECK(TAKE(&kit, "one", &result, "src/app", "src/app/"));
    CHECK_INT(result.taken_count, 1);
    CHECK(TAKE(&kit, "one", &result, "src", "src/app"));
    CHECK_INT(result.taken_count, 2);
    CHECK_INT(count_of(&kit), 2);
    run_kit_done(&kit);
}

/* lock.h L2 */
static bool take_part(run_kit *kit, const char *task, const char *path, cx_run_lock_result *out)
{
    cx_str text = cx_str_z(path);
    cx_run_lock_request request = {.run_id = CX_STR("one"),
                                   .task_id = cx_str_z(task),
                                   .paths = &text,
                                   .path_count = 1,
                                   .ttl_sec = CX_RUN_LOCK_TTL_SEC,
                                   .shares_in_run = true};
    CHECK_STATUS(cx_run_lock_acquire(&kit->store, &request, &kit->arena, out, &kit->err),
                 &kit->err);
    return out->ok;
}

CX_TEST(lock_of_a_part_passes_to_the_next)
{
    run_kit kit;
    cx_run_lock_result result;
    cx_str *paths;
    size_t count;
    if (!run_kit_init(&kit, "lock_parts", NULL, NULL))
        return;
    CHECK(take_part(&kit, "first", "src/a.c", &result));
    CHECK_INT(result.passed_count, 0);
    CHECK(take_part(&kit, "second", "src/", &result)); /* overlaps, another path */
    CHECK_INT(result.passed_count, 0);
    CHECK(take_part(&kit, "third", "src/a.c", &result));
    CHECK_INT(result.taken_count, 1);
    CHECK_INT(result.passed_count, 1);
    CHECK_INT(count_of(&kit), 2);
    CHECK_STATUS(cx_run_lock_renew(&kit.store, CX_STR("one"), 2, &kit.err), &kit.err);
    CHECK(!TAKE(&kit, "two", &result, "src/a.c")); /* another run's */
    CHECK_STATUS(cx_run_lock_release(&kit.store, CX_STR("one"), CX_STR("first"), &kit.arena, &paths,
                                     &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 0); /* it is the third's now */
    CHECK_STATUS(cx_run_lock_release(&kit.store, CX_STR("one"), CX_STR("third"), &kit.arena, &paths,
                                     &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 1);
    run_kit_done(&kit);
}

CX_TEST(lock_requests_that_are_invalid_take_nothing)
{
    run_kit kit;
    cx_run_lock_result result;
    if (!run_kit_init(&kit, "lock_invalid", NULL, NULL))
        return;
    CHECK(!TAKE(&kit, "one", &result, "ok", "../up"));
    CHECK_INT(result.invalid_count, 1);
    CHECK(!TAKE(&kit, "one", &result, ".git/config"));
    CHECK(!take(&kit, "one", NULL, 0, &result));
    CHECK_INT(count_of(&kit), 0);
    run_kit_done(&kit);
}

CX_TEST(lock_release_gives_back_ones_own_only)
{
    run_kit kit;
    cx_run_lock_result result;
    cx_str *paths;
    size_t count;
    if (!run_kit_init(&kit, "lock_release", NULL, NULL))
        return;
    CHECK(TAKE(&kit, "one", &result, "a", "b"));
    CHECK(TAKE(&kit, "two", &result, "c"));
    CHECK_STATUS(cx_run_lock_release(&kit.store, CX_STR("one"), CX_STR("other task"), &kit.arena,
                                     &paths, &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 0);
    CHECK_STATUS(cx_run_lock_release(&kit.store, CX_STR("one"), CX_STR(""), &kit.arena, &paths,
                                     &count, &kit.err),
                 &kit.err);
    REQUIRE(count == 2);
    CHECK_STR(paths[0], "a");
    CHECK_STR(paths[1], "b");
    CHECK_INT(count_of(&kit), 1);
    run_kit_done(&kit);
}

/* A child takes the path and is gone. */
static void taken_by_the_dead(run_kit *kit, const char *path)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        cx_run_lock_result result;
        _exit(TAKE(kit, "dead", &result, path) ? 0 : 1);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

CX_TEST(lock_of_a_dead_process_is_taken_over_and_told)
{
    run_kit kit;
    cx_run_lock_result result;
    if (!run_kit_init(&kit, "lock_dead", NULL, NULL))
        return;
    taken_by_the_dead(&kit, "src/app");
    CHECK_INT(count_of(&kit), 1);
    CHECK(TAKE(&kit, "one", &result, "src"));
    REQUIRE(result.reclaimed_count == 1);
    CHECK_STR(result.reclaimed[0].run_id, "dead");
    CHECK_INT(result.reclaimed_why[0], CX_RUN_LOCK_OWNER_DEAD);
    CHECK_STR(CX_JSON_GET_STR(&result.reclaimed[0].content, "path"), "src/app");
    CHECK_INT(count_of(&kit), 1);
    run_kit_done(&kit);
}

CX_TEST(lock_of_a_finished_run_is_stale_though_its_process_lives)
{
    run_kit kit;
    cx_run_lock_result result;
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count;
    if (!run_kit_init(&kit, "lock_finished", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_write(&kit, &kit.err), &kit.err);
    CHECK(TAKE(&kit, KIT_RUN, &result, "src"));
    CHECK_STATUS(cx_run_lock_list(&kit.store, &kit.arena, &locks, &reasons, &count, &kit.err),
                 &kit.err);
    REQUIRE(count == 1);
    CHECK_INT(reasons[0], CX_RUN_LOCK_RUN_FINISHED);
    CHECK_STATUS(cx_run_lock_reclaim(&kit.store, &kit.arena, &locks, &reasons, &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 1);
    CHECK_INT(count_of(&kit), 0);
    run_kit_done(&kit);
}

CX_TEST(lock_file_that_cannot_be_read_blocks_its_own_path)
{
    run_kit kit;
    cx_run_lock_result result;
    cx_str normal;
    cx_digest key;
    char hex[65] = {0}, name[128];
    if (!run_kit_init(&kit, "lock_unread", NULL, NULL))
        return;
    CHECK_STATUS(cx_run_lock_name(CX_STR("src"), &kit.arena, &normal, &key, &kit.err), &kit.err);
    for (size_t i = 0; i < 32; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", key.bytes[i]);
    (void)snprintf(name, sizeof name, "locks/%s.lock", hex);
    CHECK_STATUS(cx_run_write_file(kit.store.io, run_kit_path(&kit, name).data,
                                   cx_str_bytes(CX_STR("{")), &kit.err),
                 &kit.err);
    CHECK(!TAKE(&kit, "one", &result, "src"));
    CHECK(TAKE(&kit, "one", &result, "other"));
    cx_run_lock forced;
    CHECK_STATUS(cx_run_lock_force(&kit.store, CX_STR("src"), &kit.arena, &forced, &kit.err),
                 &kit.err);
    CHECK(TAKE(&kit, "one", &result, "src"));
    CHECK_INT(cx_run_lock_force(&kit.store, CX_STR("nowhere"), &kit.arena, &forced, &kit.err).code,
              CX_E_NOT_FOUND);
    run_kit_done(&kit);
}

CX_TEST(lock_renewal_notices_a_lock_that_is_gone)
{
    run_kit kit;
    cx_run_lock_result result;
    cx_run_lock forced;
    if (!run_kit_init(&kit, "lock_renew", NULL, NULL))
        return;
    CHECK(TAKE(&kit, "one", &result, "a", "b"));
    CHECK_STATUS(cx_run_lock_renew(&kit.store, CX_STR("one"), 2, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_lock_force(&kit.store, CX_STR("a"), &kit.arena, &forced, &kit.err),
                 &kit.err);
    CHECK_INT(cx_run_lock_renew(&kit.store, CX_STR("one"), 2, &kit.err).code, CX_E_CONFLICT);
    run_kit_done(&kit);
}

/* A clock that runs a year a second, so that the keeper's thirds of a lease go by. */
static uint64_t fast_clock(const cx_io *io)
{
    return cx_io_system()->monotonic_ns(io) * 100000;
}

CX_TEST(lock_keeper_renews_and_says_when_it_cannot)
{
    run_kit kit;
    cx_run_lock_result result;
    cx_run_lock_renewer keeper;
    cx_run_lock forced;
    cx_io io = *run_kit_io();
    io.monotonic_ns = fast_clock;
    if (!run_kit_init(&kit, "lock_keep", &io, NULL))
        return;
    CHECK(TAKE(&kit, "one", &result, "a"));
    CHECK_STATUS(cx_run_lock_renewer_start(&keeper, &kit.store, CX_STR("one"), 0, 900, &kit.err),
                 &kit.err);
    cx_run_lock_renewer_expect_more(&keeper, 1);
    cx_run_lock_renewer_expect_fewer(&keeper, 1);
    cx_run_lock_renewer_expect_more(&keeper, 1);
    CHECK(cx_run_lock_renewer_ok(&keeper));
    CHECK_STATUS(cx_run_lock_force(&kit.store, CX_STR("a"), &kit.arena, &forced, &kit.err),
                 &kit.err);
    for (unsigned i = 0; i < 6000 && cx_run_lock_renewer_ok(&keeper); i++)
        (void)usleep(10000);
    CHECK(!cx_run_lock_renewer_ok(&keeper));
    cx_run_lock_renewer_stop(&keeper);
    run_kit_done(&kit);
}

/* Processes that want overlapping paths: one of them gets them. */
/* lock.h L1 */
CX_TEST(lock_races_have_one_winner)
{
    static const char *const wanted[] = {"src", "src/app", "src/app/x.c", "src/"};
    run_kit kit;
    int go[2], won = 0;
    pid_t children[CX_COUNT_OF(wanted)];
    if (!run_kit_init(&kit, "lock_race", NULL, NULL))
        return;
    REQUIRE(pipe(go) == 0);
    for (size_t i = 0; i < CX_COUNT_OF(wanted); i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            char byte, run[16];
            cx_run_lock_result result;
            (void)close(go[1]);
            (void)!read(go[0], &byte, 1); /* all at once */
            (void)snprintf(run, sizeof run, "run%zu", i);
            _exit(TAKE(&kit, run, &result, wanted[i]) ? 0 : 1);
        }
    }
    (void)close(go[0]);
    (void)close(go[1]);
    /* All have ended before anybody is buried: a winner that died would be taken over. */
    for (size_t i = 0; i < CX_COUNT_OF(wanted); i++) {
        int status = 0;
        CHECK_INT(waitpid(children[i], &status, 0), children[i]);
        won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    CHECK(won >= 1); /* one that came after a winner had ended may have taken over */
    CHECK_INT(count_of(&kit), 1);
    run_kit_done(&kit);
}
