/* The event log: what is written, what is refused, what is repaired after a crash (§17). */
#include "bundle/events.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crypto/digest.h"
#include "base/hex.h"
#include "tests/test.h"
#include "tests/support/run_kit.h"

#define EVENTS "runs/" KIT_RUN "/events.jsonl"
#define CHAIN "runs/" KIT_RUN "/events.hashchain.jsonl"

static cx_run_event plain(cx_run_event_type type)
{
    return (cx_run_event){.level = CX_RUN_INFO, .type = type, .attempt = CX_RUN_NO_ATTEMPT};
}

static size_t lines_of(cx_str text)
{
    size_t count = 0;
    cx_str line;
    while (cx_run_next_line(&text, &line))
        count++;
    return count;
}

static void put(run_kit *kit, const char *relative, cx_str text)
{
    FILE *file = fopen(run_kit_path(kit, relative).data, "wb");
    REQUIRE(file != NULL);
    CHECK_INT(fwrite(text.data, 1, text.size, file), text.size);
    CHECK_INT(fclose(file), 0);
}

CX_TEST(event_lines_have_their_members_in_order)
{
    run_kit kit;
    cx_run *run;
    cx_str line;
    if (!run_kit_init(&kit, "events_order", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    cx_run_event event = {.level = CX_RUN_WARN,
                          .type = CX_RUN_EVENT_GATE_FAILED,
                          .task_id = CX_STR("t\"1"),
                          .attempt = 2};
    cx_json_list payload = cx_json_list_begin(&kit.arena);
    cx_json_list_put(&payload, CX_STR("gate"), cx_json_make_str(CX_STR("diff")));
    cx_json_list_put(&payload, CX_STR("a"), cx_json_make_int(&kit.arena, 1));
    CHECK_STATUS(cx_json_list_end_object(&payload, &event.payload, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_event_append(run, &event, &line, &kit.err), &kit.err);
    cx_str copy = cx_arena_copy_str(&kit.arena, line);
    REQUIRE(copy.size > 40);
    CHECK_STR(cx_str_from(copy.data, 7), "{\"ts\":\"");
    CHECK_STR(cx_str_from(copy.data + 34, copy.size - 34),
              "\",\"level\":\"WARN\",\"event_type\":\"gate_failed\",\"run_id\":\"" KIT_RUN
              "\",\"task_id\":\"t\\\"1\",\"attempt\":2,\"trace_id\":"
              "\"9116120105ff6ba6e95e2f8b7e3dce3c\",\"payload\":{\"a\":1,\"gate\":\"diff\"}}");
    cx_run_event bare = plain(CX_RUN_EVENT_RUN_CREATED);
    CHECK_STATUS(cx_run_event_append(run, &bare, &line, &kit.err), &kit.err);
    CHECK(cx_str_ends(line, CX_STR("\"payload\":{}}")));
    CHECK_INT(cx_run_event_count(run), 2);
    cx_run_end(run);
    run_kit_done(&kit);
}

CX_TEST(event_chain_is_the_formats)
{
    run_kit kit;
    cx_run *run;
    cx_str line, text, link, prev = CX_STR("");
    if (!run_kit_init(&kit, "events_chain", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_fill(&kit, run, 5, &kit.err), &kit.err);
    text = run_kit_read(&kit, EVENTS);
    cx_str chain = run_kit_read(&kit, CHAIN);
    for (unsigned i = 1; cx_run_next_line(&text, &line); i++) {
        cx_digest digest = cx_digest_of(cx_str_bytes(line));
        char hex[65] = {0};
        REQUIRE(cx_run_next_line(&chain, &link));
        cx_hex_encode(cx_bytes_from(digest.bytes, 32), hex);
        cx_str mix = cx_arena_printf(&kit.arena, "%u:%.*s:%s", i, (int)prev.size, prev.data, hex);
        digest = cx_digest_of(cx_str_bytes(mix));
        char head[65] = {0};
        cx_hex_encode(cx_bytes_from(digest.bytes, 32), head);
        cx_str expected = cx_arena_printf(
            &kit.arena,
            "{\"index\":%u,\"event_sha256\":\"%s\",\"prev_hash\":\"%.*s\",\"hash\":\"%s\"}", i, hex,
            (int)prev.size, prev.data, head);
        CHECK_STR(link, expected.data);
        /* The ledger has heard of it, keys sorted. */
        expected = cx_arena_printf(&kit.arena,
                                   "{\"event_sha256\":\"%s\",\"hash\":\"%s\",\"index\":%u,"
                                   "\"run_id\":\"" KIT_RUN "\",\"type\":\"cortex.run.event.v1\"}",
                                   hex, head, i);
        REQUIRE(kit.entries.count >= i);
        CHECK_STR(kit.entries.items[i - 1].payload, expected.data);
        prev = cx_arena_copy_str(&kit.arena, cx_str_from(head, 64));
    }
    CHECK_INT(lines_of(chain), 0);
    cx_run_end(run);
    run_kit_done(&kit);
}

/* A clock that goes back. */
static uint64_t going_back(const cx_io *io)
{
    uint64_t *now = io->ctx;
    *now -= 1000000000;
    return *now;
}

CX_TEST(event_times_never_go_back)
{
    run_kit kit;
    cx_run *run;
    uint64_t now = UINT64_C(1700000000000000000);
    cx_io io = *run_kit_io();
    cx_str text, line, first = {NULL, 0};
    io.ctx = &now;
    io.wall_ns = going_back;
    if (!run_kit_init(&kit, "events_time", &io, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_fill(&kit, run, 4, &kit.err), &kit.err);
    text = run_kit_read(&kit, EVENTS);
    while (cx_run_next_line(&text, &line)) {
        cx_run_event_read event;
        CHECK_STATUS(cx_run_event_parse(line, 1, &kit.arena, &event, &kit.err), &kit.err);
        if (first.data != NULL)
            CHECK(cx_str_eq(event.ts, first));
        first = event.ts;
    }
    cx_run_end(run);
    run_kit_done(&kit);
}

CX_TEST(event_too_deep_to_be_read_back_is_not_written)
{
    run_kit kit;
    cx_run *run;
    char text[512];
    if (!run_kit_init(&kit, "events_deep", NULL, NULL))
        return;
    memset(text, '[', 200);
    memset(text + 200, ']', 200);
    cx_run_event event = plain(CX_RUN_EVENT_TOOL_INVOCATION);
    cx_json deep;
    CHECK_STATUS(cx_json_parse_text(cx_str_from(text, 400), &kit.arena, &deep, &kit.err), &kit.err);
    cx_json_list payload = cx_json_list_begin(&kit.arena);
    cx_json_list_put(&payload, CX_STR("deep"), deep);
    CHECK_STATUS(cx_json_list_end_object(&payload, &event.payload, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    CHECK(cx_failed(cx_run_event_append(run, &event, NULL, &kit.err)));
    CHECK_INT(run_kit_read(&kit, EVENTS).size, 0);
    cx_run_end(run);
    run_kit_done(&kit);
}

CX_TEST(event_log_stops_when_the_ledger_does)
{
    run_kit kit;
    cx_run *run;
    if (!run_kit_init(&kit, "events_ledger", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    cx_run_event event = plain(CX_RUN_EVENT_RUN_CREATED);
    kit.ledger_fails = true;
    CHECK(cx_failed(cx_run_event_append(run, &event, NULL, &kit.err)));
    kit.ledger_fails = false;
    CHECK_INT(cx_run_event_append(run, &event, NULL, &kit.err).code, CX_E_IO);
    cx_run_end(run);
    run_kit_done(&kit);
}

/* --- after a crash ---------------------------------------------------------------------------- */

static cx_status recover(run_kit *kit, cx_run_events **log, cx_run_recovery *recovery)
{
    cx_run_events_options options = {
        .io = kit->store.io,
        .alloc = kit->store.alloc,
        .folder = run_kit_path(kit, "runs/" KIT_RUN).data,
        .lock_path = run_kit_path(kit, "active/runs/" KIT_RUN "/events.lock").data,
        .run_id = CX_STR(KIT_RUN),
        .trace_id = CX_STR("9116120105ff6ba6e95e2f8b7e3dce3c"),
        .ledger = &kit->ledger};
    return cx_run_events_recover(&options, log, recovery, &kit->err);
}

/* Five events, the process gone. */
static bool five_events(run_kit *kit, const char *name)
{
    cx_run *run;
    if (!run_kit_init(kit, name, NULL, NULL))
        return false;
    cx_status status = run_kit_begin(kit, &run, &kit->err);
    if (!cx_failed(status)) {
        status = run_kit_fill(kit, run, 5, &kit->err);
        cx_run_end(run);
    }
    CHECK(!cx_failed(status));
    return !cx_failed(status);
}

CX_TEST(recovery_of_a_whole_log_changes_nothing)
{
    run_kit kit;
    cx_run_events *log;
    cx_run_recovery recovery;
    if (!five_events(&kit, "recover_whole"))
        return;
    cx_str before = run_kit_read(&kit, EVENTS);
    CHECK_STATUS(recover(&kit, &log, &recovery), &kit.err);
    CHECK_INT(recovery.events, 5);
    CHECK_INT(recovery.torn_bytes, 0);
    CHECK(!recovery.chain_completed);
    CHECK_STR(recovery.last_state, "S0");
    /* Who comes second finds it taken. */
    cx_run_events *second;
    CHECK_INT(recover(&kit, &second, &recovery).code, CX_E_BUSY);
    cx_run_events_close(log);
    CHECK(cx_str_eq(before, run_kit_read(&kit, EVENTS)));
    run_kit_done(&kit);
}

CX_TEST(recovery_keeps_a_torn_line_as_evidence)
{
    run_kit kit;
    cx_run_events *log;
    cx_run_recovery recovery;
    if (!five_events(&kit, "recover_torn"))
        return;
    cx_str whole = run_kit_read(&kit, EVENTS);
    put(&kit, EVENTS,
        cx_arena_printf(&kit.arena, "%.*s{\"ts\":\"2026", (int)whole.size, whole.data));
    CHECK_STATUS(recover(&kit, &log, &recovery), &kit.err);
    CHECK_INT(recovery.torn_bytes, 11);
    cx_run_events_close(log);
    CHECK_STR(run_kit_read(&kit, "runs/" KIT_RUN "/artifacts/torn_tail.bin"), "{\"ts\":\"2026");
    cx_str events = run_kit_read(&kit, EVENTS);
    CHECK_INT(lines_of(events), 6);
    CHECK(cx_str_starts(events, whole));
    CHECK_INT(lines_of(run_kit_read(&kit, CHAIN)), 6);
    CHECK(strstr(events.data + whole.size, "\"LOG_RECOVERED\"") != NULL);
    run_kit_done(&kit);
}

CX_TEST(recovery_completes_a_chain_that_is_one_short)
{
    static const char *const pieces[] = {"", "{\"index\":5,\"eve"};
    for (size_t i = 0; i < CX_COUNT_OF(pieces); i++) {
        run_kit kit;
        cx_run_events *log;
        cx_run_recovery recovery;
        cx_str line, rest;
        if (!five_events(&kit, "recover_chain"))
            return;
        cx_str chain = rest = run_kit_read(&kit, CHAIN);
        size_t size = 0;
        for (unsigned n = 0; n < 4 && cx_run_next_line(&rest, &line); n++)
            size += line.size + 1;
        put(&kit, CHAIN, cx_arena_printf(&kit.arena, "%.*s%s", (int)size, chain.data, pieces[i]));
        CHECK_STATUS(recover(&kit, &log, &recovery), &kit.err);
        CHECK(recovery.chain_completed);
        cx_run_events_close(log);
        cx_str after = run_kit_read(&kit, CHAIN);
        CHECK(cx_str_starts(after, chain)); /* as it was, and the link of LOG_RECOVERED */
        CHECK_INT(lines_of(after), 6);
        run_kit_done(&kit);
    }
}

CX_TEST(recovery_refuses_what_no_crash_does)
{
    static const struct {
        const char *name;
        bool chain;
        size_t keep_lines; /* of the five */
        const char *more;
    } cases[] = {
        {"events cut by a line", false, 4, ""},
        {"two links gone", true, 3, ""},
        {"a line that is no event", false, 5, "no event\n"},
        {"a link too many", true, 5, "{\"index\":6}\n"},
        {"a torn link too many", true, 5, "{\"ind"},
        {"another run's event", false, 5,
         "{\"ts\":\"2999-01-01T00:00:00.000000Z\",\"level\":\"INFO\",\"event_type\":\"X\","
         "\"run_id\":\"other\",\"task_id\":null,\"attempt\":null,\"trace_id\":"
         "\"9116120105ff6ba6e95e2f8b7e3dce3c\",\"payload\":{}}\n"},
        {"another trace", false, 5,
         "{\"ts\":\"2999-01-01T00:00:00.000000Z\",\"level\":\"INFO\",\"event_type\":\"X\","
         "\"run_id\":\"" KIT_RUN "\",\"task_id\":null,\"attempt\":null,\"trace_id\":\"t\","
         "\"payload\":{}}\n"},
        {"a time that went back", false, 5,
         "{\"ts\":\"1999-01-01T00:00:00.000000Z\",\"level\":\"INFO\",\"event_type\":\"X\","
         "\"run_id\":\"" KIT_RUN "\",\"task_id\":null,\"attempt\":null,\"trace_id\":"
         "\"9116120105ff6ba6e95e2f8b7e3dce3c\",\"payload\":{}}\n"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        run_kit kit;
        cx_run_events *log;
        cx_run_recovery recovery;
        cx_str line;
        const char *file = cases[i].chain ? CHAIN : EVENTS;
        if (!five_events(&kit, "recover_refuse"))
            return;
        cx_str text = run_kit_read(&kit, file), rest = text;
        size_t size = 0;
        for (size_t n = 0; n < cases[i].keep_lines && cx_run_next_line(&rest, &line); n++)
            size += line.size + 1;
        put(&kit, file, cx_arena_printf(&kit.arena, "%.*s%s", (int)size, text.data, cases[i].more));
        cx_str events = run_kit_read(&kit, EVENTS), chain = run_kit_read(&kit, CHAIN);
        cx_status status = recover(&kit, &log, &recovery);
        if (status.code != CX_E_FORMAT)
            cx_test_fail(__FILE__, __LINE__, "%s: status %d", cases[i].name, (int)status.code);
        if (!cx_failed(status))
            cx_run_events_close(log);
        CHECK(cx_str_eq(events, run_kit_read(&kit, EVENTS)));
        CHECK(cx_str_eq(chain, run_kit_read(&kit, CHAIN)));
        run_kit_done(&kit);
    }
}

/* Appends until it is killed; says when it has begun. */
static void append_for_ever(run_kit *kit, int ready)
{
    cx_run *run;
    if (cx_failed(run_kit_begin(kit, &run, NULL)))
        _exit(1);
    cx_run_event event = plain(CX_RUN_EVENT_RUN_CREATED);
    for (unsigned i = 0;; i++) {
        if (cx_failed(cx_run_event_append(run, &event, NULL, NULL)))
            _exit(2);
        event.type = CX_RUN_EVENT_TOOL_INVOCATION;
        if (i == 3)
            (void)!write(ready, "x", 1);
    }
}

CX_TEST(recovery_after_kill_at_any_moment)
{
    for (unsigned round = 0; round < 8; round++) {
        run_kit kit;
        cx_run_events *log;
        cx_run_recovery recovery;
        int fds[2];
        char byte;
        if (!run_kit_init(&kit, "recover_kill", NULL, NULL))
            return;
        REQUIRE(pipe(fds) == 0);
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            (void)close(fds[0]);
            append_for_ever(&kit, fds[1]);
        }
        (void)close(fds[1]);
        CHECK_INT(read(fds[0], &byte, 1), 1); /* at least four are durable */
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        (void)close(fds[0]);
        CHECK_STATUS(recover(&kit, &log, &recovery), &kit.err);
        CHECK(recovery.events >= 4);
        cx_run_events_close(log);
        CHECK_INT(lines_of(run_kit_read(&kit, EVENTS)), lines_of(run_kit_read(&kit, CHAIN)));
        run_kit_done(&kit);
    }
}
