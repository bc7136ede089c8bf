/*
 * test_damage.c - each byte of each table changed: told, or without effect on any answer; rows that
 * are missing or too many; repairing.
 */
#include "tests/unit/pages/pages_kit.h"

enum { KEYS = 260, ASKED = 80, SNAPSHOTS = 3 };

/* A tree with a past, and all answers that it gives. */
typedef struct answers {
    kit k;
    cx_digest keys[ASKED];
    cx_pages_view views[SNAPSHOTS + 1];
    const cx_smt_path *paths[SNAPSHOTS + 1];
    cx_arena arena;
} answers;

/* Keys with long common beginnings, so that there are rows that are no pages any more. */
static cx_digest damage_key(uint64_t i)
{
    cx_digest key = kit_key(i);
    if (key.bytes[31] % 3 != 0) {
        key.bytes[0] = 0xff;
        key.bytes[1] |= 0xc0;
    }
    return key;
}

static void note_answers(answers *a, size_t view)
{
    kit *k = &a->k;
    a->views[view] = cx_pages_view_now(&k->anchor);
    CHECK_STATUS(cx_smt_prove(k->model, a->keys, ASKED, &a->arena, &a->paths[view], &k->err),
                 &k->err);
}

static void answers_open(answers *a, cx_scheme scheme)
{
    kit *k = &a->k;
    cx_smt_pair pairs[KEYS];
    kit_open(k, scheme, (size_t)1 << 20);
    cx_arena_init(&a->arena, cx_alloc_default(), 0);
    for (uint64_t i = 0; i < ASKED; i++)
        a->keys[i] = damage_key(i * (KEYS + 80) / ASKED);
    for (uint64_t i = 0; i < KEYS; i++)
        pairs[i] = (cx_smt_pair){damage_key(i), kit_random_digest(k)};
    static const size_t ends[] = {60, 100, 180, KEYS};
    for (size_t view = 0, from = 0; view <= SNAPSHOTS; from = ends[view++]) {
        for (size_t i = 0; i < from; i += 3)
            pairs[i].value = kit_random_digest(k);
        kit_put(k, pairs, ends[view]);
        note_answers(a, view);
        k->moment = (cx_pages_moment){view + 1, true, view};
    }
    for (size_t view = 0; view < SNAPSHOTS; view++)
        a->views[view] = cx_pages_view_past(&a->views[view].anchor, &k->anchor, view);
}

static void answers_close(answers *a)
{
    cx_arena_done(&a->arena);
    kit_close(&a->k);
}

/* How many answers are other ones; *out_told when one was refused as damaged. */
static size_t wrong_answers(answers *a, bool *out_told)
{
    size_t wrong = 0;
    *out_told = false;
    for (size_t view = 0; view <= SNAPSHOTS; view++) {
        for (size_t i = 0; i < ASKED; i += 8) {
            cx_arena arena;
            const cx_smt_path *got;
            cx_arena_init(&arena, cx_alloc_default(), 0);
            cx_pages_forget(a->k.pages);
            cx_status status = cx_pages_prove(a->k.pages, &a->views[view], a->keys + i, 8, &arena,
                                              &got, &a->k.err);
            for (size_t n = 0; n < 8 && !cx_failed(status); n++)
                wrong += !kit_same_path(&got[n], &a->paths[view][i + n]);
            if (cx_failed(status)) {
                *out_told = true;
                wrong += status.code != CX_E_FORMAT || a->k.err.tag == NULL ||
                         strcmp(a->k.err.tag, "DatabaseDamaged") != 0;
            }
            cx_arena_done(&arena);
        }
    }
    return wrong;
}

/* --- flips ----------------------------------------------------------------------------------- */

typedef struct column {
    const char *table, *name, *where; /* ?1, .. of the row's key */
    const char *keys;
    int key_count;
    bool is_blob;
} column;

static const column columns[] = {
    {"leaf", "key", "key=?2", "key", 1, true},
    {"leaf", "value", "key=?2", "key", 1, true},
    {"leaf", "born", "key=?2", "key", 1, false},
    {"page", "level", "level=?2 AND prefix=?3", "level, prefix", 2, false},
    {"page", "prefix", "level=?2 AND prefix=?3", "level, prefix", 2, false},
    {"page", "depth", "level=?2 AND prefix=?3", "level, prefix", 2, false},
    {"page", "hash", "level=?2 AND prefix=?3", "level, prefix", 2, true},
    {"page", "born", "level=?2 AND prefix=?3", "level, prefix", 2, false},
    {"leaf_was", "key", "key=?2 AND until=?3", "key, until", 2, true},
    {"leaf_was", "until", "key=?2 AND until=?3", "key, until", 2, false},
    {"leaf_was", "value", "key=?2 AND until=?3", "key, until", 2, true},
    {"page_was", "prefix", "level=?2 AND prefix=?3 AND until=?4", "level, prefix, until", 3, false},
    {"page_was", "until", "level=?2 AND prefix=?3 AND until=?4", "level, prefix, until", 3, false},
    {"page_was", "depth", "level=?2 AND prefix=?3 AND until=?4", "level, prefix, until", 3, false},
    {"page_was", "hash", "level=?2 AND prefix=?3 AND until=?4", "level, prefix, until", 3, true},
    {"page_cut", "prefix", "level=?2 AND prefix=?3 AND depth=?4", "level, prefix, depth", 3, false},
    {"page_cut", "depth", "level=?2 AND prefix=?3 AND depth=?4", "level, prefix, depth", 3, false},
    {"page_cut", "names", "level=?2 AND prefix=?3 AND depth=?4", "level, prefix, depth", 3, true},
};

/* Copies of the tables, so that a change can be taken back. */
static void save_tables(kit *k)
{
    CHECK_STATUS(cx_db_run(k->db,
                           "CREATE TABLE s_leaf AS SELECT * FROM leaf;"
                           "CREATE TABLE s_page AS SELECT * FROM page;"
                           "CREATE TABLE s_leaf_was AS SELECT * FROM leaf_was;"
                           "CREATE TABLE s_page_was AS SELECT * FROM page_was;"
                           "CREATE TABLE s_page_cut AS SELECT * FROM page_cut;",
                           &k->err),
                 &k->err);
}

static void restore_table(kit *k, const char *table)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "DELETE FROM %s; INSERT INTO %s SELECT * FROM s_%s;", table,
                   table, table);
    CHECK_STATUS(cx_db_run(k->db, sql, &k->err), &k->err);
}

/* Changes one bit of a value in row number `row`; false when the table has fewer rows or the blob
 * fewer bytes, or the new key is there already. */
static bool flip(kit *k, const column *c, int64_t row, size_t byte, unsigned bit)
{
    char sql[400];
    cx_db_statement *s = NULL;
    bool has_row = false;
    uint8_t bytes[8192];
    cx_bytes value = {NULL, 0};
    int64_t number = 0;
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM s_%s ORDER BY %s LIMIT 1 OFFSET ?1", c->name,
                   c->table, c->keys);
    CHECK_STATUS(cx_db_prepare(k->db, sql, &s, &k->err), &k->err);
    cx_db_bind_int(s, 1, row);
    if (!cx_failed(cx_db_step(s, &has_row, &k->err)) && has_row) {
        number = cx_db_int(s, 0) ^ (int64_t)(UINT64_C(1) << (8 * (byte % 8) + bit));
        value = c->is_blob ? cx_db_bytes(s, 0) : value;
        has_row = c->is_blob ? byte < value.size && value.size <= sizeof bytes : byte < 8;
        if (has_row && c->is_blob) {
            memcpy(bytes, value.data, value.size);
            bytes[byte] ^= (uint8_t)(1u << bit);
        }
        value.data = bytes;
    }
    cx_db_finish(s);
    if (!has_row)
        return false;
    (void)snprintf(sql, sizeof sql,
                   "UPDATE OR IGNORE %s SET %s=?1 WHERE (tree, %s)=(SELECT tree, %s FROM s_%s"
                   " ORDER BY %s LIMIT 1 OFFSET ?2)",
                   c->table, c->name, c->keys, c->keys, c->table, c->keys);
    CHECK_STATUS(cx_db_prepare(k->db, sql, &s, &k->err), &k->err);
    if (c->is_blob)
        cx_db_bind_bytes(s, 1, value);
    else
        cx_db_bind_int(s, 1, number);
    cx_db_bind_int(s, 2, row);
    CHECK_STATUS(cx_db_execute(s, &k->err), &k->err);
    cx_db_finish(s);
    return cx_db_changes(k->db) > 0;
}

static void flip_everything(cx_scheme scheme, size_t row_step, size_t byte_step)
{
    static answers a;
    bool told;
    answers_open(&a, scheme);
    CHECK_INT(wrong_answers(&a, &told), 0);
    CHECK(!told);
    CHECK(kit_ask(a.k.db, "SELECT count(*) FROM page_was WHERE level=0") > 0);
    CHECK(kit_ask(a.k.db, "SELECT count(*) FROM page_cut") > 1);
    save_tables(&a.k);
    for (size_t c = 0; c < CX_COUNT_OF(columns); c++) {
        const column *now = &columns[c];
        size_t told_count = 0, wrong = 0, flips = 0;
        size_t step = strncmp(now->table, "leaf", 4) != 0 ? cx_test_step(3)
                      : now->table[4] == 0                ? row_step
                                                          : row_step / 8 + 1;
        size_t bytes = !now->is_blob         ? 3
                       : now->name[0] == 'n' ? 13 * byte_step
                                             : byte_step,
               row = (size_t)kit_below(&a.k, step);
        for (bool any = true; any || row < KEYS; row += step) {
            any = false;
            for (size_t byte = (size_t)kit_below(&a.k, bytes); byte < 2080; byte += bytes) {
                if (!flip(&a.k, now, (int64_t)row, byte, (unsigned)kit_below(&a.k, 8)))
                    break;
                any = true;
                flips++;
                wrong += wrong_answers(&a, &told);
                told_count += told;
                restore_table(&a.k, now->table);
            }
        }
        if (wrong != 0 || flips == 0)
            cx_test_fail(__FILE__, __LINE__, "%s.%s: %zu of %zu flips", now->table, now->name,
                         wrong, flips);
        /* Hashes and names of the present are told whenever something below them is asked. */
        if (c == 6)
            CHECK(told_count > flips / 2);
    }
    answers_close(&a);
}

CX_TEST(pages_damage_of_each_byte_is_told)
{
    bool deep = getenv("CORTEX_DEEP") != NULL;
    flip_everything(CX_SCHEME_CORTEX_1, deep ? 1 : 70, deep ? 1 : 19);
    flip_everything(CX_SCHEME_MATRIX_1, deep ? 10 : 200, deep ? 8 : 31);
}

/* --- rows missing, rows too many ------------------------------------------------------------- */

static void damage_with(answers *a, const char *sql)
{
    bool told;
    CHECK_STATUS(cx_db_run(a->k.db, sql, &a->k.err), &a->k.err);
    CHECK_INT(wrong_answers(a, &told), 0);
    if (!told)
        cx_test_fail(__FILE__, __LINE__, "not told: %s", sql);
    restore_table(&a->k, "leaf");
    restore_table(&a->k, "page");
    restore_table(&a->k, "leaf_was");
    restore_table(&a->k, "page_cut");
}

CX_TEST(pages_damage_of_rows_that_are_missing_or_too_many)
{
    static answers a;
    bool told;
    answers_open(&a, CX_SCHEME_CORTEX_1);
    save_tables(&a.k);
    damage_with(&a, "DELETE FROM leaf WHERE key=(SELECT max(key) FROM leaf)");
    damage_with(&a, "DELETE FROM leaf");
    damage_with(&a, "DELETE FROM page WHERE prefix=(SELECT max(prefix) FROM page)");
    damage_with(&a, "INSERT INTO leaf SELECT 7, randomblob(32), value, 0 FROM leaf");
    damage_with(&a, "UPDATE page SET depth=1");
    damage_with(&a, "UPDATE page SET depth=-1");
    damage_with(&a, "UPDATE page SET hash=x'00'");
    damage_with(&a, "UPDATE leaf SET value=value||value");
    damage_with(&a, "UPDATE leaf SET value='text'");
    damage_with(&a, "DELETE FROM page_cut");
    damage_with(&a, "DELETE FROM leaf_was");
    damage_with(&a, "UPDATE page_cut SET names=names||names");
    CHECK_INT(wrong_answers(&a, &told), 0);
    CHECK(!told);
    answers_close(&a);
}

/* A batch does not build on rows that do not fold. */
CX_TEST(pages_damage_stops_a_batch)
{
    kit k;
    cx_smt_pair pairs[500];
    cx_pages_damage damage;
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
        kit_open(&k, kit_schemes[s], (size_t)1 << 20);
        for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
            pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
        kit_put(&k, pairs, CX_COUNT_OF(pairs));
        CHECK(!cx_pages_last_damage(k.pages, &damage));
        CHECK_STATUS(cx_db_run(k.db,
                               s == 0 ? "UPDATE leaf SET value=randomblob(32)"
                                      : "UPDATE page SET hash=randomblob(32) WHERE level=0",
                               &k.err),
                     &k.err);
        cx_pages_forget(k.pages);
        cx_pages_anchor before = k.anchor;
        pairs[3].value = kit_random_digest(&k);
        CHECK(cx_pages_put(k.pages, &k.anchor, pairs, 5, &k.moment, &k.err).code == CX_E_FORMAT);
        CHECK(cx_pages_last_damage(k.pages, &damage));
        CHECK(damage.tree == 7 && !damage.past && damage.level == (s == 0 ? 0 : 1));
        CHECK(strstr(k.err.message, "tree 7, level") != NULL);
        CHECK(memcmp(&before, &k.anchor, sizeof before) == 0);
        kit_close(&k);
    }
}

/* matrix-1: a new neighbour moves a leaf; a value that was changed must not get into its hash. */
CX_TEST(pages_damage_of_a_value_is_not_hashed_into_the_tree)
{
    kit k;
    cx_smt_pair pairs[30];
    kit_open(&k, CX_SCHEME_MATRIX_1, 0);
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++) {
        pairs[i] = (cx_smt_pair){kit_random_digest(&k), kit_random_digest(&k)};
        pairs[i].key.bytes[0] = (uint8_t)(i < 15 ? 0x80 + i : 0x80 + i - 15);
    }
    kit_put(&k, pairs, 15);
    CHECK_STATUS(cx_db_run(k.db, "UPDATE leaf SET value=randomblob(32)||substr(value, 33)", &k.err),
                 &k.err);
    size_t told = 0;
    for (size_t i = 15; i < CX_COUNT_OF(pairs); i++) {
        cx_pages_anchor anchor = k.anchor;
        CHECK_STATUS(cx_db_run(k.db, "SAVEPOINT s", &k.err), &k.err);
        told += cx_pages_put(k.pages, &anchor, &pairs[i], 1, &k.moment, &k.err).code == CX_E_FORMAT;
        cx_pages_forget(k.pages);
    }
    CHECK_INT(told, 15);
    kit_close(&k);
}

/* --- repairing ------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const cx_smt_pair *x = a, *y = b;
    return memcmp(x->key.bytes, y->key.bytes, sizeof x->key.bytes);
}

/* Of sorted pairs those under a prefix. */
typedef struct truth {
    const cx_smt_pair *pairs;
    size_t at, count;
    uint64_t prefix;
    unsigned depth;
} truth;

static cx_status next_true(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err)
{
    truth *t = arg;
    (void)err;
    while (t->at < t->count &&
           page_mask(smt_word(&t->pairs[t->at].key, 0) ^ t->prefix, t->depth) != 0)
        t->at++;
    *out_more = t->at < t->count;
    if (*out_more)
        *out = t->pairs[t->at++];
    return CX_SUCCESS;
}

/* Damages rows, and repairs what is told until nothing is. */
static void repair_after(cx_scheme scheme, const char *sql, bool with_pairs)
{
    enum { COUNT = 6000 };
    static cx_smt_pair pairs[COUNT];
    kit k, whole;
    static cx_digest keys[COUNT];
    kit_open(&k, scheme, (size_t)1 << 20);
    kit_open(&whole, scheme, 0);
    for (size_t i = 0; i < COUNT; i++)
        pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
    kit_put(&k, pairs, COUNT);
    kit_put(&whole, pairs, COUNT);
    for (size_t i = 0; i < CX_COUNT_OF(keys); i++)
        keys[i] = kit_key(i);
    qsort(pairs, COUNT, sizeof *pairs, by_key);
    CHECK_STATUS(cx_db_run(k.db, sql, &k.err), &k.err);
    cx_pages_forget(k.pages);
    const cx_pages_view view = cx_pages_view_now(&k.anchor);
    size_t repairs = 0;
    for (;; repairs++) {
        cx_arena arena;
        cx_pages_damage d;
        const cx_smt_path *paths;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        cx_status status =
            cx_pages_prove(k.pages, &view, keys, CX_COUNT_OF(keys), &arena, &paths, &k.err);
        cx_arena_done(&arena);
        if (!cx_failed(status) || repairs == 1000)
            break;
        REQUIRE(cx_pages_last_damage(k.pages, &d));
        truth all = {pairs, 0, COUNT, d.prefix, d.depth};
        CHECK_STATUS(cx_pages_repair(k.pages, &k.anchor, d.level, d.prefix,
                                     with_pairs ? next_true : NULL, &all, 0, &k.err),
                     &k.err);
    }
    if (repairs == 0 || repairs == 1000)
        cx_test_fail(__FILE__, __LINE__, "%zu repairs after %s", repairs, sql);
    kit_check_proofs(&k, &view, keys, CX_COUNT_OF(keys));
    bool same = false;
    cx_pages_difference difference = {.table = ""};
    CHECK_STATUS(cx_pages_compare(k.db, whole.db, 7, &same, &difference, &k.err), &k.err);
    if (!same)
        cx_test_fail(__FILE__, __LINE__, "%s: %s, level %u, prefix %016llx, %d %d", sql,
                     difference.table, difference.level, (unsigned long long)difference.prefix,
                     difference.missing_left, difference.missing_right);
    kit_close(&whole);
    kit_close(&k);
}

CX_TEST(pages_repair)
{
    static const char too_many[] = "INSERT INTO leaf SELECT 7, CAST(substr(key, 1, 20)||"
                                   "substr(key, 1, 12) AS BLOB), value, 0 FROM leaf";
    static const char *const leaves[] = {
        "UPDATE leaf SET value=zeroblob(length(value)) WHERE hex(key) LIKE '3%'",
        "DELETE FROM leaf WHERE hex(key) LIKE '7%'",
        "DELETE FROM leaf",
        "INSERT INTO leaf SELECT 7, CAST(substr(key, 9)||key AS BLOB), value, 0 FROM leaf",
        too_many,
    };
    static const char *const pages[] = {
        "UPDATE page SET hash=zeroblob(32) WHERE level=0 AND prefix%7=0",
        "UPDATE page SET hash=zeroblob(32)",
        "UPDATE page SET depth=depth+1 WHERE level=1",
        "UPDATE page SET prefix=prefix+5 WHERE prefix%9=0",
        "DELETE FROM page",
        "INSERT INTO page SELECT tree, level, prefix+12345, depth, hash, 0 FROM page",
    };
    for (size_t s = 0; s < CX_COUNT_OF(kit_schemes); s++) {
        for (size_t i = 0; i < CX_COUNT_OF(leaves) && s == 0; i++)
            repair_after(kit_schemes[s], leaves[i], true);
        for (size_t i = 0; i < CX_COUNT_OF(pages); i += s == 0 ? 1 : 5)
            repair_after(kit_schemes[s], pages[i], i % 2 == 0);
    }
}

CX_TEST(pages_repair_needs_the_truth)
{
    kit k;
    cx_smt_pair pairs[200];
    kit_open(&k, CX_SCHEME_CORTEX_1, 0);
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++)
        pairs[i] = (cx_smt_pair){kit_key(i), kit_random_digest(&k)};
    kit_put(&k, pairs, CX_COUNT_OF(pairs));
    qsort(pairs, CX_COUNT_OF(pairs), sizeof *pairs, by_key);
    cx_pages_anchor *at = &k.anchor;
    truth all = {pairs, 0, CX_COUNT_OF(pairs) - 1, 0, 0};
    CHECK(cx_pages_repair(k.pages, at, 2, 0, NULL, NULL, 0, &k.err).code == CX_E_NOT_FOUND);
    CHECK(cx_pages_repair(k.pages, at, 0, 12345, NULL, NULL, 0, &k.err).code == CX_E_NOT_FOUND);
    CHECK(cx_pages_repair(k.pages, at, 1, 0, next_true, &all, 0, &k.err).code == CX_E_FORMAT);
    cx_smt_pair swapped[2] = {pairs[1], pairs[0]};
    all = (truth){swapped, 0, 2, 0, 0};
    CHECK(cx_pages_repair(k.pages, at, 1, 0, next_true, &all, 0, &k.err).code == CX_E_USAGE);
    kit_close(&k);
}
