/*
 * test_home_cut.c - a journal that was cut by its last commits together with its tables, and one
 * whose past was rewritten: each home is whole in itself, and only what was kept elsewhere, a
 * size and a root, tells (ledger.md §11, §14.23).
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { STEPS = 24 };

typedef struct history {
    kit k;
    cx_roots roots[STEPS]; /* after each step */
    char paths[STEPS][FOLDER_PATH_SIZE];
    cx_uri uris[STEPS];
} history;

/* One commit each, now and then of two entries, so that sizes are not commits. */
static void step(kit *k, cx_uri *uris, unsigned i, const char *said)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s %u", said, i);
    if (i % 5 == 3) {
        cx_buf name;
        cx_buf_init(&name, cx_alloc_default());
        cx_uri_add(&uris[i - 1], &name);
        const cx_str cited = cx_buf_str(&name);
        const cx_memory_attest attest = {
            .intent = cx_str_z(text), .cited = &cited, .cited_count = 1};
        CHECK_STATUS(cx_memory_attest_outcome(k->memory, &attest, NULL, &k->err), &k->err);
        cx_buf_done(&name);
        uris[i] = uris[i - 1];
        return;
    }
    CHECK_STATUS(kit_write(k->memory, text, &uris[i], &k->err), &k->err);
}

/* A copy of the home as it was after each step: what is left when the commits after it are cut. */
static bool history_init(history *h, const char *name)
{
    if (!kit_init(&h->k, name, CX_SCHEME_CORTEX_1))
        return false;
    for (unsigned i = 0; i < STEPS; i++) {
        char copy[32];
        step(&h->k, h->uris, i, "said");
        CHECK_STATUS(cx_home_roots(h->k.home, KIT_ACTOR, &h->roots[i], &h->k.err), &h->k.err);
        kit_close(&h->k);
        (void)snprintf(copy, sizeof copy, "%s_%u", name, i);
        folder_fresh(h->paths[i], copy);
        kit_copy(h->k.path, h->paths[i]);
        if (!kit_open(&h->k))
            return false;
    }
    return true;
}

static void history_done(history *h)
{
    for (unsigned i = 0; i < STEPS; i++)
        folder_remove(h->paths[i]);
    kit_done(&h->k);
}

static bool told(const char *path, const cx_anchor_point *anchor, const char *reason)
{
    kit_verdict found = kit_verify(path, KIT_ACTOR, anchor);
    bool good = !cx_failed(found.status) && found.verdict == CX_BROKEN &&
                strstr(found.first, reason) != NULL;
    if (!good)
        cx_test_fail(__FILE__, __LINE__, "size %llu, expected %s, found: %s",
                     (unsigned long long)anchor->size, reason, found.first);
    return good;
}

CX_TEST(home_cut_at_the_end)
{
    history *h = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *h);
    REQUIRE(h != NULL && history_init(h, "cut"));
    for (unsigned left = 0; left < STEPS; left++) {
        /* Nothing in it is wrong .. */
        (void)CHECK_HOLDS(h->paths[left], true, NULL);
        for (unsigned known = 0; known < STEPS; known++) {
            const cx_anchor_point anchor = {.size = h->roots[known].journal_size,
                                            .journal_root = h->roots[known].journal};
            if (known > left) { /* .. but it was longer once. */
                CHECK(told(h->paths[left], &anchor, "Truncated"));
                continue;
            }
            kit_verdict found = kit_verify(h->paths[left], KIT_ACTOR, &anchor);
            CHECK(!cx_failed(found.status) && found.verdict == CX_HOLDS);
        }
    }
    history_done(h);
    cx_alloc_free(cx_alloc_default(), h, sizeof *h);
}

/* The same without the tables, with those of later on, and with the lock file of later on. */
CX_TEST(home_cut_but_not_everywhere)
{
    history *h = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *h);
    REQUIRE(h != NULL && history_init(h, "cut_part"));
    for (unsigned left = 0; left + 1 < STEPS; left++) {
        const cx_anchor_point anchor = {.size = h->roots[left + 1].journal_size,
                                        .journal_root = h->roots[left + 1].journal};
        char path[FOLDER_PATH_SIZE + 64], later[FOLDER_PATH_SIZE + 64];
        cx_buf bytes;
        cx_buf_init(&bytes, cx_alloc_default());
        kit_remove_tables(h->paths[left]);
        CHECK(told(h->paths[left], &anchor, "Truncated"));
        (void)snprintf(path, sizeof path, "%s/cortex.db", h->paths[left]);
        (void)snprintf(later, sizeof later, "%s/cortex.db", h->paths[left + 1]);
        CHECK_STATUS(cx_io_read_file(cx_io_system(), later, SIZE_MAX, &bytes, &h->k.err),
                     &h->k.err);
        CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_buf_bytes(&bytes), &h->k.err),
                     &h->k.err);
        kit_verdict found = kit_verify(h->paths[left], (cx_str){NULL, 0}, NULL);
        CHECK(!cx_failed(found.status) && found.verdict == CX_BROKEN);
        CHECK(strstr(found.first, "LogCut") != NULL);
        const cx_home_options options = kit_options();
        cx_home *home;
        cx_err err = {0};
        CHECK(cx_home_open(h->paths[left], &options, &home, &err).code == CX_E_FORMAT);
        CHECK(err.tag != NULL && strcmp(err.tag, "LogCut") == 0);
        kit_remove_tables(h->paths[left]);
        (void)snprintf(path, sizeof path, "%s/log/lock", h->paths[left]);
        (void)snprintf(later, sizeof later, "%s/log/lock", h->paths[left + 1]);
        cx_buf_clear(&bytes);
        CHECK_STATUS(cx_io_read_file(cx_io_system(), later, SIZE_MAX, &bytes, &h->k.err),
                     &h->k.err);
        CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_buf_bytes(&bytes), &h->k.err),
                     &h->k.err);
        found = kit_verify(h->paths[left], (cx_str){NULL, 0}, NULL);
        CHECK(cx_failed(found.status) || found.verdict == CX_BROKEN);
        cx_buf_done(&bytes);
    }
    history_done(h);
    cx_alloc_free(cx_alloc_default(), h, sizeof *h);
}

/* From one copy on, the records differ: Forked at every size after that, and before it not. */
CX_TEST(home_rewritten)
{
    history *h = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *h);
    REQUIRE(h != NULL && history_init(h, "fork"));
    enum { FROM = 9 };
    kit other;
    memset(&other, 0, sizeof other);
    cx_arena_init(&other.arena, cx_alloc_default(), 0);
    (void)snprintf(other.path, sizeof other.path, "%s", h->paths[FROM]);
    kit_source_init(&other.source, 7);
    REQUIRE(kit_open(&other));
    for (unsigned i = FROM + 1; i < STEPS; i++)
        step(&other, h->uris, i, "never said");
    kit_close(&other);
    (void)CHECK_HOLDS(other.path, true, NULL);
    for (unsigned known = 0; known < STEPS; known++) {
        const cx_anchor_point anchor = {.size = h->roots[known].journal_size,
                                        .journal_root = h->roots[known].journal};
        if (known > FROM) {
            CHECK(told(other.path, &anchor, "Forked"));
            continue;
        }
        kit_verdict found = kit_verify(other.path, KIT_ACTOR, &anchor);
        CHECK(!cx_failed(found.status) && found.verdict == CX_HOLDS);
    }
    kit_done(&other);
    history_done(h);
    cx_alloc_free(cx_alloc_default(), h, sizeof *h);
}
