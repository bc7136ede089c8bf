/*
 * test_home_derive.c - verification and rebuilds by several threads: the same answers, findings in
 * the same order and the same rows as by one, however often rows are flushed meanwhile.
 * ThreadSanitizer runs this program.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "db/db.h"
#include "ledger/internal.h"
#include "tests/support/fault.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { ACTORS = 30, ROUNDS = 4 };

static const unsigned thread_counts[] = {1, 2, 8};

static void append(kit *k, const char *actor, unsigned number)
{
    cx_txn *txn;
    const cx_entry_draft draft = {.kind = CX_STR("raw"),
                                  .created_at_ns = (int64_t)number,
                                  .payload = cx_str_bytes(CX_STR("a payload")),
                                  .committed = number % 3 == 0};
    CHECK_STATUS(cx_txn_begin(k->home, cx_str_z(actor), &txn, &k->err), &k->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &k->err), &k->err);
    CHECK_STATUS(cx_txn_put(txn, cx_str_bytes(CX_STR("one/row")), cx_str_bytes(cx_str_z(actor)),
                            false, &k->err),
                 &k->err);
    CHECK_STATUS(cx_txn_commit(txn, &k->err), &k->err);
}

/* All kinds of calls, and actors that are written to again after they have left memory. */
static void fill(kit *k)
{
    char name[32];
    cx_home_root_entry root;
    kit_fill(k);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < ACTORS; i++) {
            (void)snprintf(name, sizeof name, "agent-%u", i);
            append(k, name, ACTORS * round + i);
        }
        CHECK_STATUS(cx_home_root_record(k->home, 1000 + round, &root, &k->err), &k->err);
    }
    kit_close(k);
}

static cx_home_options few_actors(unsigned threads)
{
    cx_home_options options = kit_options();
    options.threads = threads;
    options.actor_limit = 3; /* a flush for every three that changed */
    return options;
}

/* Everything that a report says, as text. */
static void write_report(const cx_home_report *report, cx_buf *out)
{
    const cx_home_totals *t = cx_home_report_totals(report);
    cx_buf_printf(out, "verdict %d, %llu findings, %llu actors, %llu entries, %llu erased, %d\n",
                  (int)cx_home_report_verdict(report), (unsigned long long)t->findings,
                  (unsigned long long)t->actors, (unsigned long long)t->entries,
                  (unsigned long long)t->erased, t->tables_checked);
    for (size_t i = 0; i < cx_home_report_count(report); i++) {
        const cx_home_finding *f = cx_home_report_finding(report, i);
        cx_buf_printf(out, "%s %s %.*s %.*s %.*s\n", f->check, f->reason, (int)f->actor.size,
                      f->actor.data, (int)f->where.size, f->where.data, (int)f->message.size,
                      f->message.data);
    }
    for (size_t i = 0; i < cx_home_report_actor_count(report); i++) {
        cx_actor_info info;
        cx_roots roots;
        char hex[65] = "";
        cx_home_report_actor(report, i, &info, &roots);
        cx_hex_encode(cx_bytes_from(roots.overall.bytes, 32), hex);
        hex[64] = 0;
        cx_buf_printf(out, "%.*s %.64s\n", (int)info.name.size, info.name.data, hex);
    }
}

static void verify(const kit *k, unsigned threads, cx_verdict wanted, cx_buf *out)
{
    const cx_home_verify_options options = {.home = few_actors(threads)};
    cx_home_report *report = NULL;
    cx_err err = {0};
    CHECK_STATUS(cx_home_verify(k->path, &options, &report, &err), &err);
    if (report == NULL)
        return;
    CHECK_INT(cx_home_report_verdict(report), wanted);
    write_report(report, out);
    cx_home_report_close(report);
}

static void check_same_by_all(const kit *k, cx_verdict wanted)
{
    cx_buf first, other;
    cx_buf_init(&first, cx_alloc_default());
    verify(k, 1, wanted, &first);
    for (size_t i = 1; i < CX_COUNT_OF(thread_counts); i++) {
        cx_buf_init(&other, cx_alloc_default());
        verify(k, thread_counts[i], wanted, &other);
        CHECK(cx_str_eq(cx_buf_str(&first), cx_buf_str(&other)));
        cx_buf_done(&other);
    }
    cx_buf_done(&first);
}

static void change_tables(const kit *k, const char *sql)
{
    char path[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    cx_err err = {0};
    (void)snprintf(path, sizeof path, "%s/cortex.db", k->path);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &err)));
    CHECK_STATUS(cx_db_run(db, sql, &err), &err);
    cx_db_close(db);
}

CX_TEST(home_verified_by_several_threads)
{
    kit k;
    REQUIRE(kit_init(&k, "derive_verify", CX_SCHEME_CORTEX_1));
    fill(&k);
    check_same_by_all(&k, CX_HOLDS);
    /* Findings in all tables. */
    change_tables(&k, "UPDATE record SET value=x'00' WHERE actor % 5 = 2;"
                      "DELETE FROM entry WHERE seq = 1 AND actor % 3 = 1;"
                      "UPDATE actors SET live = live + 1 WHERE id = 4;");
    check_same_by_all(&k, CX_BROKEN);
    kit_done(&k);
}

static void overwrite_middle(const char *path)
{
    FILE *file = fopen(path, "r+b");
    REQUIRE(file != NULL);
    CHECK(fseek(file, 9 * 4096 + 40, SEEK_SET) == 0);
    for (int i = 0; i < 4 * 4096; i++)
        CHECK(fputc(0x5a, file) != EOF);
    CHECK(fclose(file) == 0);
}

/* The file itself is damaged: told at its place, whichever thread sees it. */
CX_TEST(home_damaged_pages_seen_by_several_threads)
{
    kit k;
    char path[FOLDER_PATH_SIZE + 16];
    REQUIRE(kit_init(&k, "derive_pages", CX_SCHEME_CORTEX_1));
    fill(&k);
    (void)snprintf(path, sizeof path, "%s/cortex.db", k.path);
    overwrite_middle(path);
    check_same_by_all(&k, CX_BROKEN);
    kit_done(&k);
}

static void check_rebuilt_by_all(kit *k)
{
    cx_buf before, after;
    cx_buf_init(&before, cx_alloc_default());
    CHECK(kit_rows(k->path, &before));
    for (size_t i = 0; i < CX_COUNT_OF(thread_counts); i++) {
        const cx_home_options options = few_actors(thread_counts[i]);
        cx_rebuild_result result;
        kit_remove_tables(k->path);
        CHECK_STATUS(cx_home_rebuild(k->path, &options, CX_REBUILD, &result, &k->err), &k->err);
        cx_buf_init(&after, cx_alloc_default());
        CHECK(kit_rows(k->path, &after));
        CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
        cx_buf_done(&after);
    }
    cx_buf_done(&before);
}

CX_TEST(home_rebuilt_by_several_threads)
{
    kit k;
    REQUIRE(kit_init(&k, "derive_rebuild", CX_SCHEME_MATRIX_1));
    fill(&k);
    check_rebuilt_by_all(&k);
    kit_done(&k);
}

/* So many rows that a flush of three actors is a run (ledger/store_runs.c). */
static void put_rows(kit *k, const char *actor, unsigned number)
{
    enum { ROWS = 1500 };
    cx_txn *txn;
    char key[32], value[32];
    const cx_entry_draft draft = {.kind = CX_STR("raw"),
                                  .created_at_ns = (int64_t)number,
                                  .payload = cx_str_bytes(CX_STR("many rows"))};
    CHECK_STATUS(cx_txn_begin(k->home, cx_str_z(actor), &txn, &k->err), &k->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &k->err), &k->err);
    for (unsigned i = 0; i < ROWS; i++) {
        (void)snprintf(key, sizeof key, "many/%u", (i * 7919 + number * 500) % 20000);
        (void)snprintf(value, sizeof value, "%u of %u", i, number);
        CHECK_STATUS(cx_txn_put(txn, cx_str_bytes(cx_str_z(key)), cx_str_bytes(cx_str_z(value)),
                                false, &k->err),
                     &k->err);
    }
    CHECK_STATUS(cx_txn_commit(txn, &k->err), &k->err);
}

/* Actors are read from runs by one thread while another writes the next one. */
CX_TEST(home_rebuilt_by_several_threads_from_runs)
{
    kit k;
    char name[32];
    REQUIRE(kit_init(&k, "derive_runs", CX_SCHEME_CORTEX_1));
    for (unsigned number = 0; number < 24; number++) {
        (void)snprintf(name, sizeof name, "agent-%u", number % 7);
        put_rows(&k, name, number);
        if (number == 17)
            kit_fill(&k);
    }
    kit_close(&k);
    check_rebuilt_by_all(&k);
    kit_done(&k);
}

/* No row of a failed flush is taken for one that is written: the failure ends the run. */
CX_TEST(home_verified_by_several_threads_without_memory)
{
    kit k;
    bool good = false;
    REQUIRE(kit_init(&k, "derive_alloc", CX_SCHEME_CORTEX_1));
    fill(&k);
    for (size_t at = 1; !good && at < 200000; at += 97) {
        fault_alloc memory;
        cx_home_verify_options options = {.home = few_actors(2)};
        cx_home_report *report = NULL;
        fault_alloc_init(&memory, at, true);
        options.home.alloc = &memory.alloc;
        cx_status status = cx_home_verify(k.path, &options, &report, &k.err);
        CHECK(!cx_failed(status) || status.code == CX_E_NOMEM);
        good = !cx_failed(status);
        CHECK(!good || cx_home_report_verdict(report) == CX_HOLDS);
        if (good)
            cx_home_report_close(report);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
    }
    CHECK(good);
    kit_done(&k);
}
