/*
 * pages_kit.h - a tree in tables and the same tree in memory, which is the model.
 */
#ifndef CX_TESTS_PAGES_KIT_H
#define CX_TESTS_PAGES_KIT_H

#include <stdlib.h>

#include "pages/internal.h"
#include "tests/test.h"

static const cx_scheme kit_schemes[] = {CX_SCHEME_CORTEX_1, CX_SCHEME_MATRIX_1};

typedef struct kit {
    cx_db *db;
    cx_pages *pages;
    cx_pages_anchor anchor;
    cx_pages_moment moment;
    cx_smt *model;
    cx_scheme scheme;
    uint64_t random;
    cx_err err;
} kit;

static inline void kit_open_at(kit *k, cx_scheme scheme, const char *path, cx_db_mode mode,
                               size_t cache_bytes)
{
    *k = (kit){.scheme = scheme, .random = cx_test_seed()};
    cx_pages_options options = CX_PAGES_OPTIONS_INIT;
    options.cache_bytes = cache_bytes;
    CHECK_STATUS(cx_db_open(path, mode, &k->db, &k->err), &k->err);
    CHECK_STATUS(cx_pages_create_tables(k->db, &k->err), &k->err);
    CHECK_STATUS(cx_pages_open(k->db, &options, &k->pages, &k->err), &k->err);
    CHECK_STATUS(cx_smt_open(scheme, cx_alloc_default(), &k->model, &k->err), &k->err);
    k->anchor = cx_pages_anchor_empty(7, scheme);
}

static inline void kit_open(kit *k, cx_scheme scheme, size_t cache_bytes)
{
    kit_open_at(k, scheme, "", CX_DB_SCRATCH, cache_bytes);
}

static inline void kit_close(kit *k)
{
    cx_smt_close(k->model);
    cx_pages_close(k->pages);
    cx_db_close(k->db);
}

static inline uint64_t kit_below(kit *k, uint64_t bound)
{
    return cx_test_random(&k->random) % bound;
}

static inline cx_digest kit_random_digest(kit *k)
{
    cx_digest digest;
    for (size_t i = 0; i < 4; i++) {
        uint64_t word = cx_test_random(&k->random);
        memcpy(digest.bytes + 8 * i, &word, 8);
    }
    digest.bytes[31] |= 1;
    return digest;
}

/* The key of a number: as from a hash. */
static inline cx_digest kit_key(uint64_t i)
{
    return cx_digest_of(cx_bytes_from(&i, sizeof i));
}

static inline cx_digest kit_model_root(kit *k)
{
    cx_digest root = {{0}};
    CHECK_STATUS(cx_smt_root(k->model, &root, &k->err), &k->err);
    return root;
}

/* Puts the pairs into both; they must have the same root. */
static inline void kit_put(kit *k, const cx_smt_pair *pairs, size_t count)
{
    CHECK_STATUS(cx_pages_put(k->pages, &k->anchor, pairs, count, &k->moment, &k->err), &k->err);
    CHECK_STATUS(cx_smt_put_many(k->model, pairs, count, &k->err), &k->err);
    cx_digest root = kit_model_root(k);
    CHECK(cx_digest_eq(&root, &k->anchor.root));
    CHECK_INT(k->anchor.key_count, cx_smt_count(k->model));
}

static inline bool kit_same_path(const cx_smt_path *a, const cx_smt_path *b)
{
    return cx_digest_eq(&a->key, &b->key) && a->member == b->member &&
           a->has_other == b->has_other && cx_digest_eq(&a->value, &b->value) &&
           cx_digest_eq(&a->other_key, &b->other_key) &&
           cx_digest_eq(&a->other_value, &b->other_value) && a->sibling_count == b->sibling_count &&
           (a->sibling_count == 0 ||
            memcmp(a->siblings, b->siblings, a->sibling_count * sizeof *a->siblings) == 0);
}

/* Whether pages prove the same of the keys as the model does. */
static inline void kit_check_proofs(kit *k, const cx_pages_view *view, const cx_digest *keys,
                                    size_t count)
{
    cx_arena arena;
    const cx_smt_path *got = NULL, *expected = NULL;
    size_t wrong = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_pages_prove(k->pages, view, keys, count, &arena, &got, &k->err);
    CHECK_STATUS(status, &k->err);
    CHECK_STATUS(cx_smt_prove(k->model, keys, count, &arena, &expected, &k->err), &k->err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        wrong += !kit_same_path(&got[i], &expected[i]);
    CHECK_INT(wrong, 0);
    cx_arena_done(&arena);
}

/* One number out of the database; -1 when that fails. */
static inline int64_t kit_ask(cx_db *db, const char *sql)
{
    cx_db_statement *s = NULL;
    cx_err err = {0};
    bool row = false;
    int64_t answer = -1;
    if (cx_failed(cx_db_prepare(db, sql, &s, &err)))
        return -1;
    if (!cx_failed(cx_db_step(s, &row, &err)) && row)
        answer = cx_db_int(s, 0);
    cx_db_finish(s);
    return answer;
}

#endif
