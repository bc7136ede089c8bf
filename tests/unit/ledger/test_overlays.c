/*
 * test_overlays.c - roots between flushes: each lays only what is new over the pages, and all are
 * those of the model, also while a flush waits for the database and after it.
 */
#include "db/api.h"
#include "ledger/internal.h"
#include "pages/pages.h"
#include "tests/support/folder.h"
#include "tests/test.h"

enum { FILLED = 4000, COMMITS = 60, A_COMMIT = 20 };

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_smt *model;
    uint64_t random;
    cx_err err;
} fixture;

static void put_memory(fixture *f, cx_txn *txn, uint64_t number, uint64_t value)
{
    uint8_t key[CX_HEAD_KEY_SIZE] = "m/";
    memcpy(key + 2, &number, sizeof number);
    const cx_bytes content = cx_bytes_from((const uint8_t *)&value, sizeof value);
    CHECK_STATUS(cx_txn_put(txn, cx_bytes_from(key, sizeof key), content, true, &f->err), &f->err);
    const cx_digest leaf = cx_scheme_memory_key(CX_SCHEME_CORTEX_1, key + 2);
    const cx_digest hash = cx_scheme_value(CX_SCHEME_CORTEX_1, content);
    CHECK_STATUS(cx_smt_put(f->model, &leaf, &hash, &f->err), &f->err);
}

static void commit_some(fixture *f, uint64_t below, size_t count)
{
    cx_txn *txn = NULL;
    const cx_entry_draft draft = {.kind = CX_STR("test.said"), .created_at_ns = 1};
    CHECK_STATUS(cx_txn_begin(f->home, CX_STR("agent"), &txn, &f->err), &f->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &f->err), &f->err);
    for (size_t i = 0; txn != NULL && i < count; i++)
        put_memory(f, txn, cx_test_random(&f->random) % below, cx_test_random(&f->random));
    CHECK_STATUS(cx_txn_commit(txn, &f->err), &f->err);
}

static void check_root(fixture *f)
{
    cx_roots roots = {.journal_size = 0};
    cx_digest expected = {{0}};
    CHECK_STATUS(cx_home_roots(f->home, CX_STR("agent"), &roots, &f->err), &f->err);
    CHECK_STATUS(cx_smt_root(f->model, &expected, &f->err), &f->err);
    CHECK(cx_digest_eq(&roots.memories, &expected));
}

static void begin(fixture *f)
{
    const cx_home_options options = {.io = NULL};
    *f = (fixture){.random = cx_test_seed()};
    folder_fresh(f->path, "overlays");
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &f->model, &f->err), &f->err);
    CHECK_STATUS(cx_home_create(f->path, CX_SCHEME_CORTEX_1, &options, &f->err), &f->err);
    CHECK_STATUS(cx_home_open(f->path, &options, &f->home, &f->err), &f->err);
    REQUIRE(f->home != NULL);
    commit_some(f, FILLED, FILLED);
    CHECK_STATUS(cx_home_flush(f->home, &f->err), &f->err);
    check_root(f);
}

static void end(fixture *f)
{
    CHECK_STATUS(cx_home_close(f->home, &f->err), &f->err);
    cx_smt_close(f->model);
    folder_remove(f->path);
}

/* A transaction of another connection: the flusher waits for it. */
static cx_db *hold_tables(fixture *f)
{
    char name[FOLDER_PATH_SIZE + 16];
    cx_db *db = NULL;
    (void)snprintf(name, sizeof name, "%s/cortex.db", f->path);
    CHECK_STATUS(cx_db_open(name, CX_DB_WRITE, &db, &f->err), &f->err);
    CHECK_STATUS(cx_db_begin_write(db, &f->err), &f->err);
    return db;
}

static void let_tables_go(cx_db *db)
{
    cx_db_rollback(db);
    cx_db_close(db);
}

/* On a slow machine the flusher has given up once, and tries again. */
static void flush_all(fixture *f)
{
    cx_status status = cx_home_flush(f->home, &f->err);
    for (int i = 0; i < 20 && status.code == CX_E_BUSY; i++)
        status = cx_home_flush(f->home, &f->err);
    CHECK_STATUS(status, &f->err);
}

CX_TEST(overlays_roots_lay_only_what_is_new)
{
    fixture f;
    begin(&f);
    cx_pages *pages = f.home->store.reading.pages;
    cx_db *db = hold_tables(&f);
    const uint64_t before = cx_pages_stats_of(pages).hashes;
    for (size_t i = 0; i < COMMITS; i++) {
        commit_some(&f, 2 * FILLED, A_COMMIT);
        check_root(&f);
    }
    /* A change hashes its way in two pages; all of a page's hashes once, when it is read. */
    const uint64_t hashes = cx_pages_stats_of(pages).hashes - before;
    CHECK(hashes < COMMITS * A_COMMIT * 25 + 2 * FILLED * 2);
    let_tables_go(db);
    flush_all(&f);
    check_root(&f);
    /* What the flush led to was in memory already. */
    const uint64_t read = cx_pages_stats_of(pages).pages_read;
    commit_some(&f, 2 * FILLED, 1);
    check_root(&f);
    CHECK_INT(cx_pages_stats_of(pages).pages_read, read);
    end(&f);
}

CX_TEST(overlays_are_right_across_flushes)
{
    fixture f;
    begin(&f);
    for (size_t i = 0; i < COMMITS; i++) {
        cx_db *db = i % 10 == 0 ? hold_tables(&f) : NULL;
        commit_some(&f, 2 * FILLED, 1 + (size_t)(cx_test_random(&f.random) % 9));
        if (i % 3 != 0)
            check_root(&f);
        if (db != NULL)
            let_tables_go(db);
        if (i % 7 == 0)
            flush_all(&f);
        check_root(&f);
    }
    end(&f);
}

/* A commit of 20,000 changes and the roots after it, while nothing can be flushed. */
static cx_status roots_after_many(fixture *f)
{
    cx_roots roots;
    cx_home_options *options = &f->home->options;
    const uint32_t before = options->flush_timeout_ms;
    commit_some(f, 2 * FILLED, 20000);
    options->flush_timeout_ms = 100;
    cx_status status = cx_home_roots(f->home, CX_STR("agent"), &roots, &f->err);
    options->flush_timeout_ms = before;
    return status;
}

CX_TEST(overlays_of_a_small_tree_wait_for_no_flush)
{
    fixture f;
    begin(&f);
    cx_db *db = hold_tables(&f);
    CHECK_STATUS(roots_after_many(&f), &f.err);
    check_root(&f);
    CHECK(cx_pages_overlay_bytes(f.home->overlays[0].overlay) <= 2 * FILLED * CX_PAGES_KEY_BYTES);
    let_tables_go(db);
    flush_all(&f);
    check_root(&f);
    end(&f);
}

CX_TEST(overlays_have_bounded_memory)
{
    fixture f;
    begin(&f);
    f.home->overlay_bytes = (size_t)1 << 20; /* the whole tree could have more */
    cx_db *db = hold_tables(&f);
    CHECK(cx_failed(roots_after_many(&f)));
    let_tables_go(db);
    flush_all(&f);
    check_root(&f);
    for (size_t i = 0; i < COMMITS; i++) {
        commit_some(&f, 2 * FILLED, 100);
        check_root(&f);
        for (size_t which = 0; which < 2; which++)
            CHECK(f.home->overlays[which].overlay == NULL ||
                  cx_pages_overlay_bytes(f.home->overlays[which].overlay) <= f.home->overlay_bytes);
    }
    end(&f);
}
