/*
 * test_fault.c - memory that ends: an ordinary error, nothing leaks, and going on later is right.
 */
#include <sys/stat.h>

#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/unit/pages/pages_kit.h"

enum { FIRST = 300, THEN = 400 };

typedef struct fault_kit {
    kit k; /* the model, and the tables as they were before */
    cx_smt_pair pairs[FIRST + THEN];
    cx_digest root; /* with all of them */
} fault_kit;

static cx_status next_pair(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err)
{
    const cx_smt_pair **next = arg;
    (void)err;
    *out_more = *next != NULL;
    if (*out_more)
        *out = **next;
    *next = NULL;
    return CX_SUCCESS;
}

static cx_status use_pages(fault_kit *f, const cx_alloc *alloc)
{
    kit *k = &f->k;
    cx_pages_options options = CX_PAGES_OPTIONS_INIT;
    cx_pages *pages = NULL;
    cx_pages_overlay *overlay = NULL;
    cx_pages_anchor anchor = k->anchor;
    cx_pages_moment moment = {.next_snapshot = 1, .has_newest = true};
    cx_arena arena;
    const cx_smt_path *paths;
    cx_status status;
    options.alloc = alloc;
    options.cache_bytes = 20000;
    cx_arena_init(&arena, alloc, 0);
    CX_TRY_GOTO(status, cx_pages_open(k->db, &options, &pages, &k->err));
    CX_TRY_GOTO(status, cx_pages_overlay_open(pages, &anchor, THEN, &overlay, &k->err));
    CX_TRY_GOTO(status, cx_pages_overlay_put(overlay, f->pairs + FIRST, THEN / 2, &k->err));
    CX_TRY_GOTO(status,
                cx_pages_overlay_put(overlay, f->pairs + FIRST + THEN / 2, THEN / 2, &k->err));
    CHECK(cx_digest_eq(&cx_pages_overlay_anchor(overlay)->root, &f->root));
    CX_TRY_GOTO(status, cx_pages_put(pages, &anchor, f->pairs + FIRST, THEN, &moment, &k->err));
    CHECK(cx_digest_eq(&anchor.root, &f->root));
    const cx_pages_view now = cx_pages_view_now(&anchor);
    const cx_pages_view past = cx_pages_view_past(&k->anchor, &anchor, 0);
    cx_digest keys[3] = {f->pairs[0].key, f->pairs[FIRST].key, f->root};
    CX_TRY_GOTO(status, cx_pages_prove(pages, &now, keys, 3, &arena, &paths, &k->err));
    CX_TRY_GOTO(status, cx_pages_prove(pages, &past, keys, 3, &arena, &paths, &k->err));
    CHECK(paths[0].member && !paths[1].member);
    CX_TRY_GOTO(status, cx_pages_repair(pages, &anchor, 1, 0, NULL, NULL, 1, &k->err));
    cx_pages_sweep_position position = {.table = 0};
    bool done;
    CX_TRY_GOTO(status, cx_pages_sweep(pages, 7, NULL, 0, 10000, &position, &done, &k->err));
    const cx_smt_pair other = {f->pairs[0].key, f->pairs[1].value}, *next = &other;
    CX_TRY_GOTO(status, cx_pages_put_sorted(pages, &anchor, next_pair, &next, &moment, &k->err));
    CHECK(!cx_digest_eq(&anchor.root, &f->root));
done:
    cx_arena_done(&arena);
    cx_pages_overlay_close(overlay);
    cx_pages_close(pages);
    return status;
}

/* After each failure the transaction is rolled back. */
static void fail_each(fault_kit *f, bool onwards)
{
    kit *k = &f->k;
    for (uint64_t fail_at = 1;; fail_at += 1 + fail_at / 16) {
        fault_alloc memory;
        fault_alloc_init(&memory, fail_at, onwards);
        CHECK_STATUS(cx_db_begin_write(k->db, &k->err), &k->err);
        cx_status status = use_pages(f, &memory.alloc);
        cx_db_rollback(k->db);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
        if (atomic_load(&memory.fired) == 0) {
            CHECK(!cx_failed(status));
            CHECK(fail_at > 20);
            break;
        }
        CHECK(status.code == CX_E_NOMEM);
    }
}

CX_TEST(pages_without_memory)
{
    static fault_kit f;
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 8];
    folder_fresh(folder, "pages-fault");
    REQUIRE(mkdir(folder, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/t.db", folder);
    kit_open_at(&f.k, CX_SCHEME_CORTEX_1, path, CX_DB_WRITE, 0);
    for (uint64_t i = 0; i < FIRST + THEN; i++)
        f.pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&f.k)};
    CHECK_STATUS(cx_db_begin_write(f.k.db, &f.k.err), &f.k.err);
    kit_put(&f.k, f.pairs, FIRST);
    CHECK_STATUS(cx_db_commit(f.k.db, &f.k.err), &f.k.err);
    CHECK_STATUS(cx_smt_put_many(f.k.model, f.pairs + FIRST, THEN, &f.k.err), &f.k.err);
    f.root = kit_model_root(&f.k);
    fail_each(&f, false);
    fail_each(&f, true);
    kit_close(&f.k);
    folder_remove(folder);
}
