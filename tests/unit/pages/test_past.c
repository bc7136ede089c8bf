/*
 * test_past.c - proofs at retained snapshots are those that were kept when the snapshot was made:
 * through growth from few keys to many, drops in any order, sweeps, and pages that are cut far
 * down.
 */
#include "tests/unit/pages/pages_kit.h"

enum { KEYS_MAX = 100000, SNAPSHOTS_MAX = 40, PROOFS = 12 };

typedef struct kept {
    uint64_t number;
    cx_pages_anchor anchor;
    cx_digest keys[PROOFS];
    const cx_smt_path *paths;
    cx_arena arena;
} kept;

typedef struct past {
    kit k;
    kept kept[SNAPSHOTS_MAX]; /* retained, ascending */
    size_t kept_count;
    cx_pages_sweep_position position;
    cx_digest (*key)(kit *k, uint64_t i); /* of a number */
    uint64_t key_count, keys_max;
} past;

static cx_digest plain_key(kit *k, uint64_t i)
{
    (void)k;
    return kit_key(i);
}

/* Begins with many ones, or zeros, and goes on as a hash. */
static cx_digest chosen_key(kit *k, uint64_t i)
{
    (void)k;
    cx_digest key = kit_key(i);
    size_t shared = key.bytes[30] % 50;
    for (size_t b = 0; b < shared; b++)
        key.bytes[b / 8] |= (uint8_t)(0x80u >> b % 8);
    if (shared > 16 && key.bytes[29] % 4 == 0)
        key.bytes[0] = 0xfe;
    return key;
}

/* --- snapshots ------------------------------------------------------------------------------- */

static void note_newest(past *p)
{
    p->k.moment.has_newest = p->kept_count > 0;
    if (p->kept_count > 0)
        p->k.moment.newest = p->kept[p->kept_count - 1].number;
}

static void drop_snapshot(past *p, size_t at)
{
    cx_arena_done(&p->kept[at].arena);
    p->kept_count--;
    memmove(&p->kept[at], &p->kept[at + 1], (p->kept_count - at) * sizeof *p->kept);
    note_newest(p);
}

static void make_snapshot(past *p)
{
    kit *k = &p->k;
    if (p->kept_count == SNAPSHOTS_MAX)
        drop_snapshot(p, (size_t)kit_below(k, p->kept_count));
    kept *s = &p->kept[p->kept_count++];
    s->number = k->moment.next_snapshot++;
    s->anchor = k->anchor;
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    /* Some are there, some will come, some never. */
    for (size_t i = 0; i < PROOFS; i++)
        s->keys[i] = p->key(k, kit_below(k, i % 2 == 0 ? p->key_count + 1 : p->keys_max + 5));
    CHECK_STATUS(cx_smt_prove(k->model, s->keys, PROOFS, &s->arena, &s->paths, &k->err), &k->err);
    note_newest(p);
}

static size_t wrong_proofs(past *p, const kept *s)
{
    kit *k = &p->k;
    cx_arena arena;
    const cx_smt_path *got = NULL;
    size_t wrong = 0;
    const cx_pages_view view = cx_pages_view_past(&s->anchor, &k->anchor, s->number);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_pages_prove(k->pages, &view, s->keys, PROOFS, &arena, &got, &k->err);
    CHECK_STATUS(status, &k->err);
    for (size_t i = 0; i < PROOFS && !cx_failed(status); i++)
        wrong += !kit_same_path(&got[i], &s->paths[i]);
    cx_arena_done(&arena);
    return wrong;
}

static void check_all(past *p)
{
    size_t wrong = 0;
    cx_pages_forget(p->k.pages);
    for (size_t i = 0; i < p->kept_count; i++)
        wrong += wrong_proofs(p, &p->kept[i]);
    CHECK_INT(wrong, 0);
}

static void sweep(past *p, size_t rows_max, bool *out_done)
{
    uint64_t retained[SNAPSHOTS_MAX];
    for (size_t i = 0; i < p->kept_count; i++)
        retained[i] = p->kept[i].number;
    CHECK_STATUS(cx_pages_sweep(p->k.pages, 7, retained, p->kept_count, rows_max, &p->position,
                                out_done, &p->k.err),
                 &p->k.err);
}

/* --- growing --------------------------------------------------------------------------------- */

static void put_some(past *p, size_t count)
{
    static cx_smt_pair batch[KEYS_MAX];
    kit *k = &p->k;
    for (size_t i = 0; i < count; i++) {
        bool is_new = p->key_count < p->keys_max && (p->key_count == 0 || kit_below(k, 3) != 0);
        uint64_t number = is_new ? p->key_count++ : kit_below(k, p->key_count);
        batch[i] = (cx_smt_pair){p->key(k, number), kit_random_digest(k)};
    }
    kit_put(k, batch, count);
}

/* From `first` keys on, with a snapshot after many of the batches. */
static void grow_under_snapshots(cx_scheme scheme, cx_digest (*key)(kit *, uint64_t), size_t first,
                                 size_t keys_max)
{
    past *p = calloc(1, sizeof *p);
    bool done = false;
    kit_open(&p->k, scheme, (size_t)4 << 20);
    p->key = key;
    p->keys_max = keys_max;
    p->k.moment.next_snapshot = kit_below(&p->k, 3);
    make_snapshot(p); /* of the tree without keys */
    put_some(p, first);
    make_snapshot(p);
    for (unsigned round = 0; p->key_count < keys_max; round++) {
        size_t size = 1 + (size_t)kit_below(&p->k, round % 8 == 7 ? p->key_count + 1 : 40);
        put_some(p, size < KEYS_MAX ? size : KEYS_MAX);
        if (kit_below(&p->k, 3) != 0)
            make_snapshot(p);
        if (kit_below(&p->k, 4) == 0 && p->kept_count > 1)
            drop_snapshot(p, (size_t)kit_below(&p->k, p->kept_count));
        if (kit_below(&p->k, 3) == 0)
            sweep(p, 1 + (size_t)kit_below(&p->k, 500), &done);
        if (round % 16 == 0)
            check_all(p);
    }
    check_all(p);
    /* Views and the present next to each other in one cache. */
    for (size_t i = 0; i < p->kept_count; i++)
        CHECK_INT(wrong_proofs(p, &p->kept[i]), 0);
    const cx_pages_view view = cx_pages_view_now(&p->k.anchor);
    kit_check_proofs(&p->k, &view, p->kept[0].keys, PROOFS);
    while (p->kept_count > 0) {
        drop_snapshot(p, (size_t)kit_below(&p->k, p->kept_count));
        for (done = false; !done && p->kept_count % 5 == 0;)
            sweep(p, 10000, &done);
        if (p->kept_count % 5 == 0)
            check_all(p);
    }
    CHECK_INT(kit_ask(p->k.db,
                      "SELECT (SELECT count(*) FROM leaf_was) +"
                      " (SELECT count(*) FROM page_was) + (SELECT count(*) FROM page_cut)"),
              0);
    kit_close(&p->k);
    free(p);
}

CX_TEST(pages_past_through_growth)
{
    static const size_t firsts[] = {0, 1, 50, 60, 64, 65, 400};
    bool deep = getenv("CORTEX_DEEP") != NULL;
    for (size_t i = 0; i < CX_COUNT_OF(firsts); i++)
        grow_under_snapshots(CX_SCHEME_CORTEX_1, plain_key, firsts[i],
                             deep     ? KEYS_MAX
                             : i == 2 ? 20000
                                      : 1500);
    grow_under_snapshots(CX_SCHEME_MATRIX_1, plain_key, 50, deep ? 20000 : 700);
}

CX_TEST(pages_past_of_chosen_keys)
{
    bool deep = getenv("CORTEX_DEEP") != NULL;
    for (size_t i = 0; i < (deep ? 60u : 3u); i++) {
        grow_under_snapshots(CX_SCHEME_CORTEX_1, chosen_key, 30 * i, deep ? 20000 : 2500);
        grow_under_snapshots(CX_SCHEME_MATRIX_1, chosen_key, 40, 300);
    }
}

/* --- batches ---------------------------------------------------------------------------------- */

/* The rows of leaf and page are a function of the keys and of the snapshots that were made: not of
 * where batches end, nor of which snapshots are retained. */
static void same_rows(uint64_t intervals, size_t interval_max, uint64_t seed)
{
    static cx_smt_pair pairs[2000];
    kit a, b;
    cx_pages_difference difference = {.table = ""};
    uint64_t number = 0;
    bool same = false;
    kit_open(&a, CX_SCHEME_CORTEX_1, (size_t)1 << 20);
    kit_open(&b, CX_SCHEME_CORTEX_1, 0);
    a.random += seed;
    for (uint64_t interval = 0; interval < intervals; interval++) {
        size_t count = 1 + (size_t)kit_below(&a, interval_max);
        for (size_t i = 0; i < count; i++) {
            bool is_new = number == 0 || kit_below(&a, 4) != 0;
            uint64_t key = is_new ? number++ : kit_below(&a, number);
            pairs[i] = (cx_smt_pair){chosen_key(&a, key), kit_random_digest(&a)};
        }
        kit_put(&a, pairs, count);
        for (size_t at = 0, some; at < count; at += some) {
            some = 1 + (size_t)kit_below(&a, 90);
            some = some < count - at ? some : count - at;
            kit_put(&b, pairs + at, some);
        }
        a.moment.next_snapshot = ++b.moment.next_snapshot;
        a.moment.has_newest = kit_below(&a, 2) == 0;
        a.moment.newest = kit_below(&a, a.moment.next_snapshot);
    }
    CHECK_STATUS(cx_pages_compare(a.db, b.db, 7, &same, &difference, &a.err), &a.err);
    if (!same)
        cx_test_fail(__FILE__, __LINE__, "seed %llu: %s, level %u, prefix %016llx, %d %d",
                     (unsigned long long)seed, difference.table, difference.level,
                     (unsigned long long)difference.prefix, difference.missing_left,
                     difference.missing_right);
    kit_close(&b);
    kit_close(&a);
}

CX_TEST(pages_past_does_not_show_in_rows)
{
    size_t times = getenv("CORTEX_DEEP") != NULL ? 400 : 8;
    for (size_t i = 0; i < times; i++)
        same_rows(12, i % 2 == 0 ? 150 : 800, i);
}

/* --- sizes ----------------------------------------------------------------------------------- */

/* A row is kept once for all changes after a snapshot, and not for rows that came after it. */
CX_TEST(pages_past_keeps_a_row_once)
{
    past *p = calloc(1, sizeof *p);
    kit *k = &p->k;
    kit_open(k, CX_SCHEME_CORTEX_1, (size_t)4 << 20);
    p->key = plain_key;
    p->keys_max = 1000;
    cx_smt_pair pairs[1000];
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
        pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(k)};
    kit_put(k, pairs, 400);
    CHECK_INT(kit_ask(k->db, "SELECT count(*) FROM leaf_was"), 0);
    p->key_count = 400;
    make_snapshot(p);
    make_snapshot(p);
    for (size_t round = 0; round < 5; round++) {
        for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
            pairs[i].value = kit_random_digest(k);
        kit_put(k, pairs, 10);
        kit_put(k, pairs + 500, 10);
    }
    CHECK_INT(kit_ask(k->db, "SELECT count(*) FROM leaf_was"), 10);
    CHECK_INT(kit_ask(k->db, "SELECT count(*) FROM leaf WHERE born>1"), 10);
    /* The newest one is dropped: what was kept for it is what the other one sees. */
    drop_snapshot(p, 1);
    pairs[0].value = kit_random_digest(k);
    kit_put(k, pairs, 1);
    CHECK_INT(kit_ask(k->db, "SELECT count(*) FROM leaf_was"), 10);
    check_all(p);
    drop_snapshot(p, 0);
    kit_close(k);
    free(p);
}
