/* A bundle from its folder to its seal, what its writer refuses, and ending one that died (§17). */
#include "bundle/bundle.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/folder.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "governor/cleanup.h"
#include "tests/support/fault.h"
#include "tests/test.h"
#include "tests/support/run_kit.h"

#define BUNDLE "runs/" KIT_RUN

CX_TEST(bundle_that_is_written_holds)
{
    run_kit kit;
    cx_run *run;
    cx_run_sealed sealed;
    struct stat info;
    if (!run_kit_init(&kit, "bundle_write", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    CHECK(stat(run_kit_path(&kit, "active/runs/" KIT_RUN "/owner.json").data, &info) == 0);
    CHECK_STATUS(run_kit_fill(&kit, run, 0, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_seal(&kit, run, &sealed, &kit.err), &kit.err);
    CHECK(sealed.in_ledger);
    cx_run_end(run);
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, true)), "holds");
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, false)), "indeterminate");
    CHECK(stat(run_kit_path(&kit, "active/runs/" KIT_RUN).data, &info) != 0);
    CHECK(stat(run_kit_path(&kit, BUNDLE).data, &info) == 0);
    CHECK_INT(info.st_mode & 07777, 0555);
    CHECK(stat(run_kit_path(&kit, BUNDLE "/reports").data, &info) == 0);
    CHECK_INT(info.st_mode & 07777, 0555);
    CHECK(stat(run_kit_path(&kit, BUNDLE "/manifest.json").data, &info) == 0);
    CHECK_INT(info.st_mode & 07777, 0444);
    cx_digest digest = cx_digest_of(cx_str_bytes(run_kit_read(&kit, BUNDLE "/manifest.json")));
    CHECK(cx_digest_eq(&digest, &sealed.manifest_sha256));
    run_kit_done(&kit);
}

CX_TEST(bundle_seal_is_sorted_and_compact)
{
    run_kit kit;
    if (!run_kit_init(&kit, "bundle_seal", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_write(&kit, &kit.err), &kit.err);
    REQUIRE(kit.entries.count == 37);
    cx_str seal = kit.entries.items[36].payload;
    CHECK_STR(cx_str_z(kit.entries.items[36].kind), "run.seal");
    CHECK(cx_str_starts(seal,
                        CX_STR("{\"baseline_commit\":\"93b8680ba499415e135df3981f4ad09433e69a54\","
                               "\"chain_head\":\"")));
    CHECK(cx_str_ends(seal, CX_STR("\"run_id\":\"" KIT_RUN "\",\"status\":\"SUCCESS\",\"task_id\":"
                                   "\"" KIT_TASK "\",\"type\":\"cortex.run.seal.v1\"}")));
    run_kit_done(&kit);
}

CX_TEST(bundle_without_a_ledger_stays_unsealed)
{
    run_kit kit;
    cx_run *run;
    cx_run_sealed sealed;
    cx_run_begin_options options = {.task_id = CX_STR("t")};
    if (!run_kit_init(&kit, "bundle_unsealed", NULL, NULL))
        return;
    options.store = &kit.store;
    options.run_id = CX_STR(KIT_RUN);
    options.trace_id = CX_STR("9116120105ff6ba6e95e2f8b7e3dce3c");
    CHECK_STATUS(cx_run_begin(&options, &run, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_fill(&kit, run, 0, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_seal(&kit, run, &sealed, &kit.err), &kit.err);
    CHECK(!sealed.in_ledger);
    cx_run_end(run);
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, false)), "indeterminate");
    run_kit_done(&kit);
}

CX_TEST(bundle_ids_are_used_once)
{
    run_kit kit;
    cx_run *run, *second;
    if (!run_kit_init(&kit, "bundle_twice", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    CHECK_INT(run_kit_begin(&kit, &second, &kit.err).code, CX_E_EXISTS);
    cx_run_end(run);
    run_kit_done(&kit);
    if (!run_kit_init(&kit, "bundle_twice", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_write(&kit, &kit.err), &kit.err);
    CHECK_INT(run_kit_begin(&kit, &second, &kit.err).code, CX_E_EXISTS);
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, true)), "holds");
    run_kit_done(&kit);
}

CX_TEST(bundle_writer_refuses_paths_and_its_own_files)
{
    static const char *const bad[] = {"",
                                      "/etc/x",
                                      "../x",
                                      "a/../x",
                                      "a//b",
                                      "./a",
                                      "a/",
                                      "a\nb",
                                      "events.jsonl",
                                      "manifest.json",
                                      "events.hashchain.jsonl"};
    run_kit kit;
    cx_run *run;
    cx_file file;
    if (!run_kit_init(&kit, "bundle_paths", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_str path = cx_str_z(bad[i]);
        CHECK(cx_failed(cx_run_file_write(run, path, cx_str_bytes(CX_STR("x")), &kit.err)));
        CHECK(cx_failed(cx_run_file_open(run, path, true, &file, &kit.err)));
    }
    /* Links on the way are not followed, wherever they lead. */
    REQUIRE(symlink("/tmp", run_kit_path(&kit, BUNDLE "/way").data) == 0);
    CHECK(cx_failed(cx_run_file_write(run, CX_STR("way/x"), cx_str_bytes(CX_STR("x")), &kit.err)));
    CHECK(cx_failed(cx_run_file_open(run, CX_STR("way/x"), false, &file, &kit.err)));
    /* .. and a bundle with one is not finished. */
    const cx_run_ref *files;
    size_t count;
    CHECK_INT(cx_run_finish(run, CX_RUN_FAILURE, 4, &kit.arena, &files, &count, &kit.err).code,
              CX_E_FORMAT);
    cx_run_end(run);
    run_kit_done(&kit);
}

CX_TEST(bundle_files_stream_append_and_are_read)
{
    run_kit kit;
    cx_run *run;
    cx_file file;
    cx_buf text;
    cx_run_ref ref;
    if (!run_kit_init(&kit, "bundle_stream", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(cx_run_file_open(run, CX_STR("codex/t/events.jsonl"), true, &file, &kit.err),
                     &kit.err);
        CHECK_STATUS(cx_io_write_all(kit.store.io, file, "x", "line\n", 5, &kit.err), &kit.err);
        CHECK_INT(kit.store.io->close(kit.store.io, file), 0);
    }
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_run_file_read(run, CX_STR("codex/t/events.jsonl"), 100, &text, &kit.err),
                 &kit.err);
    CHECK_STR(cx_buf_str(&text), "line\nline\n");
    CHECK_INT(cx_run_file_read(run, CX_STR("codex/t/events.jsonl"), 5, &text, &kit.err).code,
              CX_E_LIMIT);
    CHECK_INT(cx_run_file_read(run, CX_STR("codex/none"), 5, &text, &kit.err).code, CX_E_NOT_FOUND);
    CHECK(cx_run_file_exists(run, CX_STR("codex/t/events.jsonl")));
    CHECK(!cx_run_file_exists(run, CX_STR("codex/t")));
    CHECK_STATUS(cx_run_file_ref(run, CX_STR("codex/t/events.jsonl"), &kit.arena, &ref, &kit.err),
                 &kit.err);
    CHECK_INT(ref.size_bytes, 10);
    cx_buf_done(&text);
    cx_run_end(run);
    run_kit_done(&kit);
}

/* --- runs that died --------------------------------------------------------------------------- */

/* A child that begins the golden run, writes `events` of it (0 = everything but the seal), and is
 * gone. */
static void die_after(run_kit *kit, size_t events, bool files, bool finish)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        cx_run *run;
        const cx_run_ref *refs;
        size_t count;
        bool fine = !cx_failed(run_kit_begin(kit, &run, NULL));
        if (fine && files)
            fine = !cx_failed(run_kit_fill(kit, run, events, NULL));
        if (fine && finish)
            fine =
                !cx_failed(cx_run_finish(run, CX_RUN_SUCCESS, 0, &kit->arena, &refs, &count, NULL));
        _exit(fine ? 0 : 1);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static cx_str status_of(run_kit *kit)
{
    cx_json manifest;
    if (cx_failed(cx_run_json_read(run_kit_read(kit, BUNDLE "/manifest.json"), 0, &kit->arena,
                                   &manifest, &kit->err)))
        return CX_STR("");
    return CX_JSON_GET_STR(&manifest, "status");
}

CX_TEST(bundle_of_a_dead_run_ends_as_a_failure_wherever_it_died)
{
    static const struct {
        size_t events;
        bool files, finish;
    } cases[] = {{0, false, false}, {1, true, false},  {3, true, false},
                 {8, true, false},  {22, true, false}, {30, true, false},
                 {34, true, false}, {0, true, false},  {0, true, true}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        run_kit kit;
        cx_run_sealed sealed;
        if (!run_kit_init(&kit, "bundle_dead", NULL, NULL))
            return;
        die_after(&kit, cases[i].events, cases[i].files, cases[i].finish);
        CHECK_STATUS(
            cx_run_recover(&kit.store, CX_STR(KIT_RUN), &kit.ledger, &kit.arena, &sealed, &kit.err),
            &kit.err);
        CHECK_STR(status_of(&kit), "FAILURE");
        const char *verdict = run_kit_verdict(&kit, false);
        if (strcmp(verdict, "indeterminate") != 0)
            cx_test_fail(__FILE__, __LINE__, "case %zu: %s", i, verdict);
        CHECK_INT(
            cx_run_recover(&kit.store, CX_STR(KIT_RUN), &kit.ledger, &kit.arena, &sealed, &kit.err)
                .code,
            CX_E_EXISTS);
        run_kit_done(&kit);
    }
}

CX_TEST(bundle_of_a_living_run_is_left_alone)
{
    run_kit kit;
    cx_run *run;
    cx_run_sealed sealed;
    if (!run_kit_init(&kit, "bundle_alive", NULL, NULL))
        return;
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    CHECK_INT(
        cx_run_recover(&kit.store, CX_STR(KIT_RUN), &kit.ledger, &kit.arena, &sealed, &kit.err)
            .code,
        CX_E_BUSY);
    CHECK_STATUS(run_kit_fill(&kit, run, 0, &kit.err), &kit.err);
    CHECK_STATUS(run_kit_seal(&kit, run, &sealed, &kit.err), &kit.err);
    cx_run_end(run);
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, true)), "holds");
    run_kit_done(&kit);
}

CX_TEST(cleanup_says_first_and_does_only_when_told)
{
    run_kit kit;
    cx_run_leftover *list;
    size_t count;
    FILE *file;
    if (!run_kit_init(&kit, "cleanup", NULL, NULL))
        return;
    die_after(&kit, 8, true, false);
    file = fopen(run_kit_path(&kit, "locks/.x.0011.tmp").data, "wb");
    REQUIRE(file != NULL);
    CHECK_INT(fclose(file), 0);
    cx_run_cleanup_options options = {.store = &kit.store, .ledger = &kit.ledger};
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    REQUIRE(count == 1); /* the file is too young to count as abandoned */
    CHECK_INT(list[0].kind, CX_RUN_LEFTOVER_RUN);
    CHECK(!list[0].done);
    CHECK_INT(run_kit_read(&kit, BUNDLE "/manifest.json").size, 0);
    options.apply = true;
    options.older_sec = 3600;
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    CHECK_INT(count, 0);
    options.older_sec = 0;
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    REQUIRE(count == 1);
    CHECK(list[0].done);
    CHECK_STR(status_of(&kit), "FAILURE");
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    CHECK_INT(count, 0);
    run_kit_done(&kit);
}

static cx_status kit_find(void *ctx, cx_str run_id, cx_arena *arena, cx_run_witness *out,
                          cx_err *err)
{
    static cx_json seal;
    (void)run_id;
    (void)arena;
    return run_kit_witness(ctx, &seal, out, err);
}

/* The golden run up to its manifest; the ledger was gone when the seal came, and then the process.
 */
static bool die_unsealed(run_kit *kit)
{
    static const char start[] = "\"start_time\": ";
    cx_run *run;
    cx_run_sealed sealed;
    CHECK_STATUS(run_kit_begin(kit, &run, &kit->err), &kit->err);
    CHECK_STATUS(run_kit_fill(kit, run, 0, &kit->err), &kit->err);
    kit->ledger_fails = false;
    kit->seal_fails = true;
    CHECK(cx_failed(run_kit_seal(kit, run, &sealed, &kit->err)));
    kit->seal_fails = false;
    cx_run_end(run);
    /* As of a process whose number is another's now. */
    cx_str path = run_kit_path(kit, "active/runs/" KIT_RUN "/owner.json");
    cx_str text = run_kit_read(kit, "active/runs/" KIT_RUN "/owner.json");
    char *owner = (char *)cx_arena_copy_str(&kit->arena, text).data;
    char *at = owner == NULL ? NULL : strstr(owner, start);
    if (at == NULL) {
        cx_test_fail(__FILE__, __LINE__, "no start_time in %s", text.data);
        return false;
    }
    at += strlen(start);
    *at = *at == '1' ? '2' : '1';
    CHECK_STATUS(
        cx_run_write_file(kit->store.io, path.data, cx_bytes_from(owner, text.size), &kit->err),
        &kit->err);
    return true;
}

CX_TEST(cleanup_makes_up_for_a_seal_that_never_came)
{
    run_kit kit;
    cx_run_leftover *list;
    size_t count;
    if (!run_kit_init(&kit, "unsealed", NULL, NULL))
        return;
    REQUIRE(die_unsealed(&kit));
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, true)), "broken: seal_missing");
    const cx_run_witnesses witnesses = {&kit, kit_find};
    cx_run_cleanup_options options = {
        .store = &kit.store, .ledger = &kit.ledger, .witnesses = &witnesses, .apply = true};
    kit.seal_fails = true; /* still no ledger: it is tried again next time */
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    REQUIRE(count == 1);
    CHECK(!list[0].done);
    kit.seal_fails = false;
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    REQUIRE(count == 2);
    CHECK_STR(list[0].reason, "seal_missing");
    CHECK(list[0].done && list[1].done);
    CHECK_STR(cx_str_z(run_kit_verdict(&kit, true)), "holds");
    CHECK_STR(status_of(&kit), "SUCCESS");
    CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
    CHECK_INT(count, 0);
    run_kit_done(&kit);
}

CX_TEST(cleanup_seals_nothing_that_does_not_agree_with_the_ledger)
{
    static const struct {
        const char *file, *contents;
        bool forget;
    } changes[] = {{"reports/work_report.json", "{}\n", false},
                   {"manifest.json", "{}\n", false},
                   {"extra.txt", "x", false},
                   {NULL, NULL, true}};
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        run_kit kit;
        cx_run_leftover *list;
        size_t count;
        if (!run_kit_init(&kit, "unsealed_changed", NULL, NULL))
            return;
        REQUIRE(die_unsealed(&kit));
        if (changes[i].forget) /* an event the ledger has not seen */
            kit.entries.count--;
        else
            CHECK_STATUS(
                cx_run_write_file(kit.store.io,
                                  cx_arena_printf(&kit.arena, "%s/%s",
                                                  run_kit_path(&kit, BUNDLE).data, changes[i].file)
                                      .data,
                                  cx_str_bytes(cx_str_z(changes[i].contents)), &kit.err),
                &kit.err);
        const cx_run_witnesses witnesses = {&kit, kit_find};
        cx_run_cleanup_options options = {
            .store = &kit.store, .ledger = &kit.ledger, .witnesses = &witnesses, .apply = true};
        size_t entries = kit.entries.count;
        CHECK_STATUS(cx_run_cleanup(&options, &kit.arena, &list, &count, &kit.err), &kit.err);
        CHECK_INT(kit.entries.count, entries);
        REQUIRE(count == 2);
        CHECK(!list[0].done);
        CHECK(strstr(run_kit_verdict(&kit, true), "seal_missing") != NULL);
        run_kit_done(&kit);
    }
}

/* --- faults ----------------------------------------------------------------------------------- */

/* With the n-th call failing the run is not sealed, nothing leaks, and nothing that is there holds;
 * when nothing failed it does. */
CX_TEST(bundle_writing_survives_any_failing_call)
{
    static const unsigned which[] = {FAULT_WRITE, FAULT_SYNC, FAULT_OPEN, FAULT_RANDOM};
    for (size_t w = 0; w < CX_COUNT_OF(which); w++) {
        bool fired = true;
        for (uint64_t n = 1; fired && n < 400; n += n < 12 ? 1 : 17) {
            fault_io files;
            run_kit kit;
            fault_io_init(&files, run_kit_io(), which[w], FAULT_NEVER, false);
            if (!run_kit_init(&kit, "bundle_fault", &files.io, NULL))
                return;
            atomic_store(&files.calls, 0);
            files.fail_at = n;
            cx_status status = run_kit_write(&kit, &kit.err);
            fired = atomic_load(&files.fired) != 0;
            if (fired)
                CHECK(cx_failed(status));
            else
                CHECK_STATUS(status, &kit.err);
            const char *verdict = run_kit_verdict(&kit, true);
            if (fired == (strcmp(verdict, "holds") == 0))
                cx_test_fail(__FILE__, __LINE__, "call %llu of kind %u failed: %s",
                             (unsigned long long)n, which[w], verdict);
            run_kit_done(&kit);
        }
    }
}

CX_TEST(bundle_writing_survives_any_failing_allocation)
{
    bool fired = true;
    for (uint64_t n = 1; fired && n < 20000; n += n < 40 ? 1 : 53) {
        fault_alloc memory;
        run_kit kit;
        fault_alloc_init(&memory, n, false);
        if (!run_kit_init(&kit, "bundle_memory", NULL, &memory.alloc))
            return;
        cx_status status = run_kit_write(&kit, &kit.err);
        fired = atomic_load(&memory.fired) != 0;
        if (!fired)
            CHECK_STATUS(status, &kit.err);
        else if (cx_failed(status))
            CHECK_INT(status.code, CX_E_NOMEM);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        run_kit_done(&kit);
    }
}
