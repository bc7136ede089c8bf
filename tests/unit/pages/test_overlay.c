/*
 * test_overlay.c - changes in memory alone lead to what a flush of them leads to; a transaction
 * that is rolled back leaves pages in memory that are right.
 */
#include <sys/stat.h>

#include "tests/support/folder.h"
#include "tests/unit/pages/pages_kit.h"

enum { KEYS = 6000, CHANGES = 3000 };

static int64_t rows_of(kit *k)
{
    return kit_ask(k->db, "SELECT (SELECT count(*) FROM leaf) + (SELECT count(*) FROM page) +"
                          " (SELECT coalesce(sum(unicode(hex(value))), 0) FROM leaf)");
}

static void fill_pairs(kit *k, cx_smt_pair *pairs, size_t count, uint64_t below)
{
    for (size_t i = 0; i < count; i++)
        pairs[i] = (cx_smt_pair){kit_key(kit_below(k, below)), kit_random_digest(k)};
}

/* `first` keys in the tables; then changes, in calls of several sizes. */
static void overlay_then_flush(cx_scheme scheme, size_t first)
{
    static cx_smt_pair pairs[KEYS], changes[CHANGES];
    static const size_t sizes[] = {1, 1, 64, 7, 1500, 2, 900};
    kit k;
    cx_pages_overlay *overlay = NULL;
    kit_open(&k, scheme, (size_t)1 << 20);
    fill_pairs(&k, pairs, first, KEYS);
    kit_put(&k, pairs, first);
    fill_pairs(&k, changes, CHANGES, 2 * KEYS);
    int64_t rows = rows_of(&k);
    uint64_t written = cx_pages_stats_of(k.pages).rows_written;
    CHECK_STATUS(cx_pages_overlay_open(k.pages, &k.anchor, CHANGES, &overlay, &k.err), &k.err);
    REQUIRE(overlay != NULL);
    size_t at = 0;
    for (size_t i = 0; at < CHANGES; i++) {
        size_t size = sizes[i % CX_COUNT_OF(sizes)];
        size = size < CHANGES - at ? size : CHANGES - at;
        CHECK_STATUS(cx_pages_overlay_put(overlay, changes + at, size, &k.err), &k.err);
        CHECK_STATUS(cx_smt_put_many(k.model, changes + at, size, &k.err), &k.err);
        at += size;
        cx_digest root = kit_model_root(&k), keys[20];
        CHECK(cx_digest_eq(&root, &cx_pages_overlay_anchor(overlay)->root));
        for (size_t n = 0; n < CX_COUNT_OF(keys); n++)
            keys[n] = n % 2 == 0 ? changes[kit_below(&k, CHANGES)].key : kit_random_digest(&k);
        const cx_pages_view view = cx_pages_view_overlay(overlay);
        kit_check_proofs(&k, &view, keys, CX_COUNT_OF(keys));
    }
    CHECK_INT(cx_pages_overlay_anchor(overlay)->key_count, cx_smt_count(k.model));
    CHECK(cx_pages_overlay_put(overlay, changes, 1, &k.err).code == CX_E_LIMIT);
    CHECK_INT(rows_of(&k), rows);
    CHECK_INT(cx_pages_stats_of(k.pages).rows_written, written);
    kit_put(&k, changes, CHANGES); /* the flush: as the model, which has them */
    CHECK(cx_digest_eq(&k.anchor.root, &cx_pages_overlay_anchor(overlay)->root));
    CHECK_INT(k.anchor.height, cx_pages_overlay_anchor(overlay)->height);
    cx_pages_overlay_close(overlay);
    kit_close(&k);
}

CX_TEST(pages_overlay_is_what_a_flush_gives)
{
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
        overlay_then_flush(kit_schemes[s], 0);
        overlay_then_flush(kit_schemes[s], 1);
        overlay_then_flush(kit_schemes[s], 64);
        overlay_then_flush(kit_schemes[s], s == 0 ? KEYS : 500);
    }
}

/* --- transactions ---------------------------------------------------------------------------- */

/* Batches in transactions of which some are rolled back; the anchor goes back with them. */
static void put_and_roll_back(cx_scheme scheme, const char *path, unsigned rounds)
{
    kit k;
    cx_smt_pair pairs[300];
    kit_open_at(&k, scheme, path, CX_DB_WRITE, (size_t)8 << 20);
    for (unsigned round = 0; round < rounds; round++) {
        size_t count = 1 + (size_t)kit_below(&k, CX_COUNT_OF(pairs));
        cx_pages_anchor before = k.anchor;
        bool back = kit_below(&k, 3) == 0;
        if (kit_below(&k, 3) == 0) {
            k.moment.has_newest = true;
            k.moment.newest = k.moment.next_snapshot++;
        }
        fill_pairs(&k, pairs, count, KEYS);
        CHECK_STATUS(cx_db_begin_write(k.db, &k.err), &k.err);
        if (back) {
            CHECK_STATUS(cx_pages_put(k.pages, &k.anchor, pairs, count, &k.moment, &k.err), &k.err);
            cx_db_rollback(k.db);
            k.anchor = before;
            /* Sometimes the same again: pages in memory have the hashes of what was undone. */
            CHECK_STATUS(cx_db_begin_write(k.db, &k.err), &k.err);
            count = kit_below(&k, 2) == 0 ? count : count / 2;
        }
        kit_put(&k, pairs, count);
        CHECK_STATUS(cx_db_commit(k.db, &k.err), &k.err);
        const cx_pages_view view = cx_pages_view_now(&k.anchor);
        kit_check_proofs(&k, &view, &pairs[0].key, 1);
    }
    /* Read by another connection, all of it is there. */
    cx_digest keys[KEYS / 10];
    for (size_t i = 0; i < CX_COUNT_OF(keys); i++)
        keys[i] = kit_key(10 * i);
    cx_pages_forget(k.pages);
    const cx_pages_view view = cx_pages_view_now(&k.anchor);
    kit_check_proofs(&k, &view, keys, CX_COUNT_OF(keys));
    kit_close(&k);
}

CX_TEST(pages_rolled_back)
{
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
        char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 8];
        folder_fresh(folder, "pages");
        REQUIRE(mkdir(folder, 0700) == 0);
        (void)snprintf(path, sizeof path, "%s/t.db", folder);
        put_and_roll_back(kit_schemes[s], path, s == 0 ? 60 : 10);
        folder_remove(folder);
    }
}
