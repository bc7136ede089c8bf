/*
 * test_put.c - batches of changes: roots and proofs as those of the tree in memory, pages as those
 * of a build at once.
 */
#include "tests/unit/pages/pages_kit.h"

enum { KEYS_MAX = 20000 };

/* --- the model of pages (P1, P2) -------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const cx_smt_pair *x = a, *y = b;
    return memcmp(x->key.bytes, y->key.bytes, sizeof x->key.bytes);
}

typedef struct range {
    uint64_t prefix;
    unsigned depth;
} range;

/* Cuts items from..to, which share `depth` bits, by the words of P2; ranges that have no more than
 * 64 are added. */
static void cut_plainly(const range *items, size_t from, size_t to, range own, range *out,
                        size_t *count)
{
    if (to - from <= 64) {
        out[(*count)++] = own;
        return;
    }
    unsigned bit = own.depth;
    while ((items[from].prefix ^ items[to - 1].prefix) >> (63 - bit) == 0)
        bit++;
    size_t middle = from;
    while ((items[middle].prefix >> (63 - bit) & 1) == 0)
        middle++;
    range left = {page_mask(items[from].prefix, bit + 1), bit + 1};
    range right = {page_mask(items[middle].prefix, bit + 1), bit + 1};
    cut_plainly(items, from, middle, left, out, count);
    cut_plainly(items, middle, to, right, out, count);
}

/* Whether the rows of `page` at a level are these; the root page has none. */
static void check_level(kit *k, unsigned level, const range *expected, size_t count)
{
    cx_db_statement *s;
    bool row = true;
    size_t at = 0;
    CHECK_STATUS(cx_db_prepare(k->db,
                               "SELECT prefix, depth FROM page WHERE tree=7 AND level=? AND"
                               " depth<>255 ORDER BY prefix",
                               &s, &k->err),
                 &k->err);
    cx_db_bind_int(s, 1, level);
    for (; !cx_failed(cx_db_step(s, &row, &k->err)) && row; at++)
        if (at >= count || cx_pages_prefix(s, 0) != expected[at].prefix ||
            cx_db_int(s, 1) != expected[at].depth)
            break;
    CHECK(!row && at == count);
    cx_db_finish(s);
}

/* Keys that agree in their first 64 bits are not expected here. */
static void check_shape(kit *k, cx_smt_pair *pairs, size_t count)
{
    range *items = calloc(2 * count + 2, sizeof *items), *cut = items + count + 1;
    unsigned level = 0;
    qsort(pairs, count, sizeof *pairs, by_key);
    for (size_t i = 0; i < count; i++)
        items[i].prefix = smt_word(&pairs[i].key, 0);
    while (count > 64) {
        size_t cut_count = 0;
        cut_plainly(items, 0, count, (range){0, 0}, cut, &cut_count);
        check_level(k, level++, cut, cut_count);
        memcpy(items, cut, cut_count * sizeof *items);
        count = cut_count;
    }
    check_level(k, level, NULL, 0);
    CHECK_INT(k->anchor.height, level);
    free(items);
}

/* --- random keys ----------------------------------------------------------------------------- */

/* Batches of many sizes, of new keys and of keys that are there. */
static void grow_and_compare(cx_scheme scheme, size_t keys_max, size_t cache_bytes)
{
    static cx_smt_pair pairs[KEYS_MAX], batch[KEYS_MAX];
    static const size_t sizes[] = {1, 2, 1, 30, 7, 60, 64, 1, 65, 300, 1, 1, 2000, 3000, 5};
    kit k;
    size_t count = 0;
    kit_open(&k, scheme, cache_bytes);
    for (size_t round = 0; count < keys_max; round++) {
        size_t size = sizes[round % CX_COUNT_OF(sizes)];
        size = size < keys_max - count ? size : keys_max - count;
        for (size_t i = 0; i < size; i++) {
            bool is_new = count == 0 || kit_below(&k, 4) != 0;
            size_t at = is_new ? count++ : (size_t)kit_below(&k, count);
            pairs[at] = (cx_smt_pair){is_new ? kit_key(at) : pairs[at].key, kit_random_digest(&k)};
            batch[i] = pairs[at];
        }
        kit_put(&k, batch, size);
        cx_digest keys[40];
        for (size_t i = 0; i < CX_COUNT_OF(keys); i++)
            keys[i] = i % 2 == 0 ? pairs[kit_below(&k, count)].key : kit_random_digest(&k);
        const cx_pages_view view = cx_pages_view_now(&k.anchor);
        kit_check_proofs(&k, &view, keys, CX_COUNT_OF(keys));
        /* Everything is there in the rows, too. */
        if (round % 4 == 0)
            cx_pages_forget(k.pages);
    }
    /* check_shape sorts, and numbers are no longer those of keys. */
    check_shape(&k, pairs, count);
    kit_close(&k);
}

CX_TEST(pages_put_has_the_roots_and_proofs_of_the_model)
{
    bool deep = getenv("CORTEX_DEEP") != NULL;
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
        size_t keys_max = s == 0 || deep ? KEYS_MAX : KEYS_MAX / 4;
        grow_and_compare(kit_schemes[s], keys_max, (size_t)16 << 20);
        grow_and_compare(kit_schemes[s], keys_max / 4, 0);
    }
}

/* --- chosen keys ----------------------------------------------------------------------------- */

/* A key whose bits often go on as those of a common beginning: pages that are cut far down, keys
 * under none of them, rows that are no pages any more. */
static cx_digest chosen_key(kit *k)
{
    cx_digest key = kit_random_digest(k);
    size_t shared = (size_t)kit_below(k, 56);
    for (size_t i = 0; i < shared; i++)
        key.bytes[i / 8] |= (uint8_t)(0x80u >> i % 8);
    if (shared > 8 && kit_below(k, 2) == 0)
        key.bytes[0] = 0xfe;
    return key;
}

static void put_chosen(cx_scheme scheme, size_t keys_max)
{
    static cx_smt_pair pairs[KEYS_MAX];
    kit k, whole;
    size_t count = 0;
    kit_open(&k, scheme, (size_t)1 << 20);
    while (count < keys_max) {
        size_t first = count, size = (size_t)kit_below(&k, 8) == 0 ? 300 : kit_below(&k, 40) + 1;
        for (size_t i = 0; i < size && count < keys_max; i++)
            pairs[count++] = (cx_smt_pair){chosen_key(&k), kit_random_digest(&k)};
        kit_put(&k, pairs + first, count - first);
        cx_digest keys[24];
        for (size_t i = 0; i < CX_COUNT_OF(keys); i++)
            keys[i] = i % 2 == 0 ? pairs[kit_below(&k, count)].key : chosen_key(&k);
        const cx_pages_view view = cx_pages_view_now(&k.anchor);
        kit_check_proofs(&k, &view, keys, CX_COUNT_OF(keys));
    }
    kit_open(&whole, scheme, 0);
    kit_put(&whole, pairs, count);
    bool same = false;
    cx_pages_difference difference;
    CHECK_STATUS(cx_pages_compare(k.db, whole.db, 7, &same, &difference, &k.err), &k.err);
    CHECK(same);
    check_shape(&k, pairs, count);
    kit_close(&whole);
    kit_close(&k);
}

CX_TEST(pages_put_of_chosen_keys)
{
    put_chosen(CX_SCHEME_CORTEX_1, 6000);
    put_chosen(CX_SCHEME_MATRIX_1, 1500);
}

/* Below bit 64 nothing is cut: such a page just becomes larger. */
CX_TEST(pages_put_of_keys_that_share_64_bits)
{
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
        kit k;
        cx_smt_pair pairs[300];
        kit_open(&k, kit_schemes[s], 0);
        for (size_t i = 0; i < CX_COUNT_OF(pairs); i++) {
            pairs[i] = (cx_smt_pair){kit_random_digest(&k), kit_random_digest(&k)};
            if (i % 3 != 0)
                memset(pairs[i].key.bytes, 0x5a, 8);
        }
        kit_put(&k, pairs, 100);
        kit_put(&k, pairs + 100, 1);
        kit_put(&k, pairs + 101, 199);
        const cx_pages_view view = cx_pages_view_now(&k.anchor);
        for (size_t i = 0; i < CX_COUNT_OF(pairs); i += 5)
            kit_check_proofs(&k, &view, &pairs[i].key, 1);
        kit_close(&k);
    }
}

/* --- building -------------------------------------------------------------------------------- */

typedef struct source {
    const cx_smt_pair *pairs;
    size_t count;
} source;

static cx_status next_pair(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err)
{
    source *from = arg;
    (void)err;
    *out_more = from->count > 0;
    if (*out_more) {
        *out = *from->pairs++;
        from->count--;
    }
    return CX_SUCCESS;
}

CX_TEST(pages_build_is_what_batches_lead_to)
{
    static cx_smt_pair pairs[KEYS_MAX];
    static const size_t counts[] = {0, 1, 63, 64, 65, 66, 129, 5000};
    for (size_t c = 0; c < CX_COUNT_OF(counts); c++) {
        for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
            kit k, built;
            size_t count = counts[c];
            kit_open(&k, kit_schemes[s], (size_t)1 << 20);
            kit_open(&built, kit_schemes[s], 0);
            for (size_t i = 0; i < count; i++)
                pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
            for (size_t at = 0; at < count; at += 1 + at)
                kit_put(&k, pairs + at, count - at < 1 + at ? count - at : 1 + at);
            qsort(pairs, count, sizeof *pairs, by_key);
            source from = {pairs, count};
            CHECK_STATUS(cx_pages_build(built.pages, &built.anchor, next_pair, &from, 0, &k.err),
                         &k.err);
            CHECK(cx_digest_eq(&built.anchor.root, &k.anchor.root));
            CHECK_INT(built.anchor.height, k.anchor.height);
            CHECK_INT(built.anchor.key_count, count);
            bool same = false;
            cx_pages_difference difference;
            CHECK_STATUS(cx_pages_compare(k.db, built.db, 7, &same, &difference, &k.err), &k.err);
            CHECK(same);
            kit_close(&built);
            kit_close(&k);
        }
    }
}

CX_TEST(pages_build_refuses_what_is_not_sorted)
{
    kit k;
    kit_open(&k, CX_SCHEME_CORTEX_1, 0);
    cx_smt_pair pairs[2] = {{kit_key(1), kit_key(2)}, {kit_key(1), kit_key(2)}};
    source from = {pairs, 2};
    CHECK(cx_pages_build(k.pages, &k.anchor, next_pair, &from, 0, &k.err).code == CX_E_USAGE);
    CHECK_INT(k.anchor.key_count, 0);
    CHECK_STATUS(cx_db_run(k.db, "DELETE FROM leaf; DELETE FROM page;", &k.err), &k.err);
    kit_put(&k, pairs, 1);
    from = (source){pairs, 1};
    CHECK(cx_pages_build(k.pages, &k.anchor, next_pair, &from, 0, &k.err).code == CX_E_USAGE);
    memset(&pairs[0].value, 0, sizeof pairs[0].value);
    CHECK(cx_pages_put(k.pages, &k.anchor, pairs, 1, &k.moment, &k.err).code == CX_E_USAGE);
    kit_close(&k);
}

/* --- changes that come sorted ----------------------------------------------------------------- */

/* A batch of `count` after one of `before` keys and a snapshot, both ways. */
static void check_put_sorted(cx_scheme scheme, size_t before, size_t count)
{
    static cx_smt_pair pairs[KEYS_MAX];
    kit k, sorted;
    bool same = false;
    cx_pages_difference difference;
    kit_open(&k, scheme, 0);
    kit_open(&sorted, scheme, 0);
    for (size_t i = 0; i < before; i++)
        pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
    kit_put(&k, pairs, before);
    kit_put(&sorted, pairs, before);
    k.moment = sorted.moment = (cx_pages_moment){.next_snapshot = 1, .has_newest = true};
    for (size_t i = 0; i < count; i++) /* half of them are new */
        pairs[i] = (cx_smt_pair){kit_key(before / 2 + i), kit_random_digest(&k)};
    qsort(pairs, count, sizeof *pairs, by_key);
    kit_put(&k, pairs, count);
    source from = {pairs, count};
    CHECK_STATUS(cx_pages_put_sorted(sorted.pages, &sorted.anchor, next_pair, &from, &sorted.moment,
                                     &sorted.err),
                 &sorted.err);
    CHECK_INT(from.count, 0);
    CHECK(cx_digest_eq(&sorted.anchor.root, &k.anchor.root));
    CHECK_INT(sorted.anchor.height, k.anchor.height);
    CHECK_INT(sorted.anchor.key_count, k.anchor.key_count);
    CHECK_STATUS(cx_pages_compare(k.db, sorted.db, 7, &same, &difference, &k.err), &k.err);
    CHECK(same);
    CHECK_INT(kit_ask(sorted.db, "SELECT count(*) FROM leaf_was"),
              kit_ask(k.db, "SELECT count(*) FROM leaf_was"));
    CHECK_INT(kit_ask(sorted.db, "SELECT count(*) FROM page_was"),
              kit_ask(k.db, "SELECT count(*) FROM page_was"));
    kit_close(&sorted);
    kit_close(&k);
}

CX_TEST(pages_put_sorted_is_what_a_put_leads_to)
{
    static const size_t before[] = {0, 40, 3000}, counts[] = {0, 1, 1023, 1024, 1025, 2500};
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++)
        for (size_t b = 0; b < CX_COUNT_OF(before); b++)
            for (size_t c = 0; c < CX_COUNT_OF(counts); c++)
                check_put_sorted(kit_schemes[s], before[b], counts[c]);
}

/* Also where one chunk of changes ends and the next begins. */
CX_TEST(pages_put_sorted_refuses_what_is_not)
{
    static cx_smt_pair pairs[1025];
    kit k;
    kit_open(&k, CX_SCHEME_CORTEX_1, 0);
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
        pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
    qsort(pairs, CX_COUNT_OF(pairs), sizeof *pairs, by_key);
    const cx_digest last = pairs[1024].key;
    pairs[1024].key = pairs[1023].key;
    source from = {pairs, 1025};
    CHECK(cx_pages_put_sorted(k.pages, &k.anchor, next_pair, &from, &k.moment, &k.err).code ==
          CX_E_USAGE);
    from = (source){pairs + 1023, 2};
    CHECK(cx_pages_put_sorted(k.pages, &k.anchor, next_pair, &from, &k.moment, &k.err).code ==
          CX_E_USAGE);
    pairs[1024] = (cx_smt_pair){.key = last};
    from = (source){pairs + 1023, 2};
    CHECK(cx_pages_put_sorted(k.pages, &k.anchor, next_pair, &from, &k.moment, &k.err).code ==
          CX_E_USAGE);
    CHECK_INT(k.anchor.key_count, 0);
    kit_close(&k);
}

/* --- edges ---------------------------------------------------------------------------- */

CX_TEST(pages_put_takes_the_last_value_of_a_key)
{
    kit k;
    kit_open(&k, CX_SCHEME_CORTEX_1, (size_t)1 << 20);
    cx_smt_pair pairs[200];
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
        pairs[i] = (cx_smt_pair){kit_key(i % 50), kit_random_digest(&k)};
    kit_put(&k, pairs, CX_COUNT_OF(pairs));
    uint64_t rows = cx_pages_stats_of(k.pages).rows_written;
    kit_put(&k, pairs + 150, 50); /* as they are: nothing is written */
    CHECK_INT(cx_pages_stats_of(k.pages).rows_written, rows);
    kit_put(&k, pairs, 0);
    bool found = false;
    cx_digest value, absent = kit_key(1000), root;
    const cx_pages_view view = cx_pages_view_now(&k.anchor);
    CHECK_STATUS(cx_pages_get(k.pages, &view, &pairs[150].key, &found, &value, &k.err), &k.err);
    CHECK(found && cx_digest_eq(&value, &pairs[150].value));
    CHECK_STATUS(cx_pages_get(k.pages, &view, &absent, &found, &value, &k.err), &k.err);
    CHECK(!found);
    CHECK_STATUS(cx_pages_root(k.pages, &view, &root, &k.err), &k.err);
    CHECK(cx_digest_eq(&root, &k.anchor.root));
    kit_close(&k);
}

CX_TEST(pages_anchor_codec)
{
    uint8_t bytes[CX_PAGES_ANCHOR_SIZE], wrong[CX_PAGES_ANCHOR_SIZE];
    cx_pages_anchor anchor = {.tree = 12345678901u,
                              .scheme = CX_SCHEME_MATRIX_1,
                              .height = 3,
                              .key_count = 999999999999u,
                              .root = kit_key(5)};
    cx_pages_anchor out;
    cx_pages_anchor_encode(&anchor, bytes);
    CHECK(cx_pages_anchor_decode(cx_bytes_from(bytes, sizeof bytes), &out));
    CHECK(out.tree == anchor.tree && out.scheme == anchor.scheme && out.height == 3 &&
          out.key_count == anchor.key_count && cx_digest_eq(&out.root, &anchor.root));
    CHECK(!cx_pages_anchor_decode(cx_bytes_from(bytes, sizeof bytes - 1), &out));
    static const size_t places[] = {0, 1, 2};
    for (size_t i = 0; i < CX_COUNT_OF(places); i++) {
        memcpy(wrong, bytes, sizeof wrong);
        wrong[places[i]] = 0xff;
        CHECK(!cx_pages_anchor_decode(cx_bytes_from(wrong, sizeof wrong), &out));
    }
}

/* Trees do not touch each other. */
CX_TEST(pages_trees_are_apart)
{
    kit k;
    kit_open(&k, CX_SCHEME_CORTEX_1, (size_t)1 << 20);
    cx_smt_pair pairs[500];
    cx_pages_anchor other = cx_pages_anchor_empty(8, CX_SCHEME_MATRIX_1), again = other;
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
        pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
    kit_put(&k, pairs, 300);
    CHECK_STATUS(cx_pages_put(k.pages, &other, pairs, 400, &k.moment, &k.err), &k.err);
    kit_put(&k, pairs + 300, 200);
    const cx_pages_view view = cx_pages_view_now(&k.anchor);
    cx_pages_forget(k.pages);
    kit_check_proofs(&k, &view, &pairs[7].key, 1);
    bool done = false;
    for (size_t i = 0; !done && i < 100; i++)
        CHECK_STATUS(cx_pages_drop(k.pages, 8, 50, &done, &k.err), &k.err);
    CHECK(done);
    CHECK_INT(kit_ask(k.db, "SELECT count(*) FROM leaf WHERE tree<>7"), 0);
    CHECK_INT(kit_ask(k.db, "SELECT count(*) FROM page WHERE tree<>7"), 0);
    CHECK_STATUS(cx_pages_put(k.pages, &again, pairs, 400, &k.moment, &k.err), &k.err);
    CHECK(cx_digest_eq(&again.root, &other.root));
    kit_close(&k);
}
