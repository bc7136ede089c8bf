/* The table of runs and locks that the machines of a fleet share: E1 to E4, and what it may not
 * be. */
#include "approval/lease.h"

#include <stdio.h>

#include "tests/test.h"
#include "tests/support/run_kit.h"

#define NS INT64_C(1000000000)
#define START (INT64_C(1767225600) * NS) /* 2026-01-01T00:00:00Z */

typedef struct table_kit {
    cx_arena arena;
    cx_run_leases table;
    cx_err err;
} table_kit;

static void kit_begin(table_kit *kit)
{
    memset(kit, 0, sizeof *kit);
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_leases_read((cx_bytes){NULL, 0}, &kit->arena, &kit->table, &kit->err),
                 &kit->err);
    CHECK_INT(kit->table.count, 0);
}

static void kit_end(table_kit *kit)
{
    cx_arena_done(&kit->arena);
}

/* A run of a machine that this one cannot see. */
static cx_run_lease lease_of(table_kit *kit, const char *run, uint64_t token, int64_t renewed_ns)
{
    char text[28];
    cx_run_time_text(renewed_ns, text);
    cx_str time = cx_arena_copy_str(&kit->arena, cx_str_z(text));
    return (cx_run_lease){.run_id = cx_str_z(run),
                          .token = token,
                          .owner = {.host = CX_STR("elsewhere"),
                                    .boot_id = CX_STR("a start of it"),
                                    .pid = 7,
                                    .start_time = 9},
                          .opened_at = time,
                          .renewed_at = time,
                          .ttl_sec = 60};
}

static void add(table_kit *kit, const char *run, uint64_t token, int64_t renewed_ns)
{
    cx_run_lease lease = lease_of(kit, run, token, renewed_ns);
    CHECK_STATUS(cx_run_leases_add(&kit->table, &lease, &kit->err), &kit->err);
}

static cx_run_lock_result ask(table_kit *kit, const char *run, uint64_t token, const char *path,
                              int64_t now_ns, size_t *stale_count)
{
    cx_run_lock_result result = {0};
    size_t *stale;
    cx_str paths[] = {cx_str_z(path)};
    cx_run_lock_request request = {.run_id = cx_str_z(run),
                                   .task_id = CX_STR("task"),
                                   .paths = paths,
                                   .path_count = 1,
                                   .ttl_sec = 60};
    cx_run_lease *lease = cx_run_leases_find(&kit->table, cx_str_z(run), token);
    if (lease == NULL) {
        cx_test_fail(__FILE__, __LINE__, "%s is not in the table", run);
        return result;
    }
    CHECK_STATUS(cx_run_leases_acquire(&kit->table, lease, &request, now_ns, &result, &stale,
                                       stale_count, &kit->err),
                 &kit->err);
    return result;
}

CX_TEST(lease_locks_conflict_with_those_of_other_runs_only)
{
    table_kit kit;
    size_t stale;
    kit_begin(&kit);
    add(&kit, "one", 3, START);
    add(&kit, "two", 5, START);
    CHECK(ask(&kit, "one", 3, "src/", START, &stale).ok);
    cx_run_lock_result refused = ask(&kit, "two", 5, "src/app/x.c", START + 60 * NS, &stale);
    CHECK(!refused.ok);
    REQUIRE(refused.conflict_count == 1);
    CHECK_STR(refused.conflicts[0].path, "src");
    CHECK_STR(refused.conflicts[0].run_id, "one");
    CHECK_INT(cx_run_leases_find(&kit.table, CX_STR("two"), 5)->lock_count, 0); /* E4 */
    CHECK(ask(&kit, "one", 3, "src", START, &stale).ok); /* again, of the same task */
    CHECK_INT(cx_run_leases_find(&kit.table, CX_STR("one"), 3)->lock_count, 1);
    CHECK(ask(&kit, "two", 5, "docs", START, &stale).ok);
    CHECK(cx_run_lease_release(cx_run_leases_find(&kit.table, CX_STR("one"), 3), CX_STR("task")));
    CHECK(!cx_run_lease_release(cx_run_leases_find(&kit.table, CX_STR("one"), 3), CX_STR("task")));
    CHECK(ask(&kit, "two", 5, "src/app", START, &stale).ok);
    cx_run_lock_result invalid = ask(&kit, "two", 5, "../x", START, &stale);
    CHECK(!invalid.ok && invalid.invalid_count == 1);
    kit_end(&kit);
}

CX_TEST(lease_that_has_expired_gives_its_locks_to_who_asks)
{
    table_kit kit;
    size_t stale = 9;
    kit_begin(&kit);
    add(&kit, "one", 3, START);
    add(&kit, "two", 5, START + 61 * NS);
    CHECK(ask(&kit, "one", 3, "src", START, &stale).ok);
    CHECK_INT(stale, 0);
    /* To the second: 60 are the lease, and a clock that is late ends nothing. */
    CHECK(!ask(&kit, "two", 5, "src", START + 60 * NS, &stale).ok);
    CHECK(!ask(&kit, "two", 5, "src", START - 3600 * NS, &stale).ok);
    cx_run_lock_result taken = ask(&kit, "two", 5, "src", START + 61 * NS, &stale);
    CHECK(taken.ok);
    CHECK_INT(stale, 1);
    REQUIRE(taken.reclaimed_count == 1);
    CHECK_STR(taken.reclaimed[0].run_id, "one");
    CHECK_INT(taken.reclaimed_why[0], CX_RUN_LOCK_LEASE_EXPIRED);
    /* Whose locks are not asked for stays, expired or not. */
    kit_end(&kit);
    kit_begin(&kit);
    add(&kit, "one", 3, START);
    add(&kit, "two", 5, START);
    CHECK(ask(&kit, "one", 3, "src", START, &stale).ok);
    CHECK(ask(&kit, "two", 5, "docs", START + 600 * NS, &stale).ok);
    CHECK_INT(stale, 0);
    kit_end(&kit);
}

/* E2: a token is of one lease; the same run with another is not there. */
CX_TEST(lease_is_found_by_run_and_token_only)
{
    table_kit kit;
    kit_begin(&kit);
    add(&kit, "one", 3, START);
    CHECK(cx_run_leases_find(&kit.table, CX_STR("one"), 3) != NULL);
    CHECK(cx_run_leases_find(&kit.table, CX_STR("one"), 2) == NULL);
    CHECK(cx_run_leases_find(&kit.table, CX_STR("one"), 4) == NULL);
    cx_run_lease again = lease_of(&kit, "one", 8, START);
    CHECK(cx_run_leases_add(&kit.table, &again, &kit.err).code == CX_E_EXISTS);
    add(&kit, "two", 5, START);
    add(&kit, "three", 6, START);
    cx_run_leases_remove(&kit.table, cx_run_leases_find(&kit.table, CX_STR("two"), 5));
    CHECK_INT(kit.table.count, 2);
    CHECK(cx_run_leases_find(&kit.table, CX_STR("two"), 5) == NULL);
    CHECK(cx_run_leases_find(&kit.table, CX_STR("three"), 6) != NULL);
    kit_end(&kit);
}

/* Only a process of this start of this machine can be seen to be dead. */
CX_TEST(lease_of_a_dead_process_is_told_from_one_of_another_machine)
{
    table_kit kit;
    cx_run_owner self;
    kit_begin(&kit);
    CHECK_STATUS(cx_run_owner_self(&kit.arena, &self, &kit.err), &kit.err);
    cx_run_lease lease = lease_of(&kit, "one", 3, START);
    CHECK_INT(cx_run_lease_classify(&lease, START), CX_RUN_LOCK_VALID);
    lease.owner = self;
    CHECK_INT(cx_run_lease_classify(&lease, START), CX_RUN_LOCK_VALID);
    lease.owner.start_time++; /* its number is used again */
    CHECK_INT(cx_run_lease_classify(&lease, START), CX_RUN_LOCK_OWNER_DEAD);
    lease.owner.boot_id = CX_STR("another machine of the same name");
    CHECK_INT(cx_run_lease_classify(&lease, START), CX_RUN_LOCK_VALID);
    CHECK_INT(cx_run_lease_classify(&lease, START + 61 * NS), CX_RUN_LOCK_LEASE_EXPIRED);
    /* Alive, and silent: what it still does is refused (E2). */
    lease.owner = self;
    CHECK_INT(cx_run_lease_classify(&lease, START + 61 * NS), CX_RUN_LOCK_LEASE_EXPIRED);
    lease.ttl_sec = 0;
    CHECK_INT(cx_run_lease_classify(&lease, START + 6100 * NS), CX_RUN_LOCK_VALID);
    kit_end(&kit);
}

CX_TEST(lease_table_is_read_as_it_was_written)
{
    table_kit kit;
    cx_run_leases again;
    cx_buf text, second;
    size_t stale;
    kit_begin(&kit);
    add(&kit, "one", UINT64_MAX, START);
    add(&kit, "two", 5, START);
    CHECK(ask(&kit, "one", UINT64_MAX, "src/\xc3\xa4 \"x\"", START, &stale).ok);
    kit.table.list[1].merge_ref = CX_STR("refs/heads/main");
    kit.table.list[1].merge_commit = CX_STR("abc");
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&second, cx_alloc_default());
    CHECK_STATUS(cx_run_leases_write(&kit.table, &text, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_leases_read(cx_buf_bytes(&text), &kit.arena, &again, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_leases_write(&again, &second, &kit.err), &kit.err);
    CHECK(cx_str_eq(cx_buf_str(&text), cx_buf_str(&second)));
    REQUIRE(again.count == 2);
    CHECK(again.list[0].token == UINT64_MAX);
    CHECK_STR(again.list[0].locks[0].path, "src/\xc3\xa4 \"x\"");
    CHECK_STR(again.list[1].merge_commit, "abc");
    /* Cut anywhere, it is no table. */
    for (size_t size = 1; size < text.size; size++)
        CHECK(cx_failed(
            cx_run_leases_read(cx_bytes_from(text.data, size), &kit.arena, &again, &kit.err)));
    cx_buf_done(&second);
    cx_buf_done(&text);
    kit_end(&kit);
}

CX_TEST(lease_table_that_is_damaged_is_refused)
{
    static const char *const bad[] = {
        "[]",
        "{}",
        "{\"type\":\"cortex.run.leases.v2\",\"runs\":[]}",
        "{\"type\":\"cortex.run.leases.v1\",\"runs\":{}}",
        "{\"type\":\"cortex.run.leases.v1\",\"runs\":[1]}",
        "{\"type\":\"cortex.run.leases.v1\",\"runs\":[{\"run_id\":\"../x\"}]}",
        "{\"type\":\"cortex.run.leases.v1\",\"runs\":[{\"run_id\":\"a\",\"token\":1,\"host\":\"h\","
        "\"boot_id\":\"b\",\"pid\":1,\"start_time\":1,\"opened_at\":\"\",\"renewed_at\":\"x\","
        "\"ttl_sec\":1,\"locks\":[],\"merge\":null}]}",
        "{\"type\":\"cortex.run.leases.v1\",\"runs\":[{\"run_id\":\"a\",\"token\":-1,\"host\":"
        "\"h\","
        "\"boot_id\":\"b\",\"pid\":1,\"start_time\":1,\"opened_at\":\"\","
        "\"renewed_at\":\"2026-01-01T00:00:00.000000Z\",\"ttl_sec\":1,\"locks\":[],\"merge\":null}]"
        "}",
        "{\"type\":\"cortex.run.leases.v1\",\"runs\":[{\"run_id\":\"a\",\"token\":1,\"host\":\"h\","
        "\"boot_id\":\"b\",\"pid\":1,\"start_time\":1,\"opened_at\":\"\","
        "\"renewed_at\":\"2026-01-01T00:00:00.000000Z\",\"ttl_sec\":1,\"locks\":[{}],\"merge\":"
        "null}]}",
    };
    table_kit kit;
    kit_begin(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_status status =
            cx_run_leases_read(cx_str_bytes(cx_str_z(bad[i])), &kit.arena, &kit.table, &kit.err);
        if (!cx_failed(status))
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
    }
    kit_end(&kit);
}

CX_TEST(lease_table_has_limits)
{
    table_kit kit;
    char name[32];
    kit_begin(&kit);
    for (unsigned i = 0; i < CX_RUN_LEASES_MAX; i++) {
        (void)snprintf(name, sizeof name, "run%u", i);
        cx_run_lease lease = lease_of(&kit, "x", i, START);
        lease.run_id = cx_arena_copy_str(&kit.arena, cx_str_z(name));
        CHECK_STATUS(cx_run_leases_add(&kit.table, &lease, &kit.err), &kit.err);
    }
    cx_run_lease more = lease_of(&kit, "more", 1, START);
    CHECK(cx_run_leases_add(&kit.table, &more, &kit.err).code == CX_E_LIMIT);
    kit_end(&kit);
}
