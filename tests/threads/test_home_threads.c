/*
 * test_home_threads.c - many threads on one home: no change is lost, compare-and-set lets one
 * through, snapshots are numbered without gaps and show one moment, and readers are right while
 * others write (ledger.md §14.1 to 3).  ThreadSanitizer runs this program.
 */
#include "base/alloc.h"
#include "base/thread.h"
#include "db/db.h"
#include "tests/support/fault.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { CALLERS = 40 };

typedef struct crowd {
    kit k;
    cx_uri uri;
    cx_uri others[CALLERS];
    atomic_uint won, lost, wrong;
    atomic_uint writers_left;
    cx_manifest manifests[CALLERS];
    cx_arena arenas[CALLERS];
} crowd;

static crowd *crowd_open(const char *name)
{
    crowd *c = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *c);
    if (c == NULL || !kit_init(&c->k, name, CX_SCHEME_CORTEX_1))
        return NULL;
    CHECK_STATUS(kit_write(c->k.memory, "the first", &c->uri, &c->k.err), &c->k.err);
    for (unsigned i = 0; i < CALLERS; i++)
        cx_arena_init(&c->arenas[i], cx_alloc_default(), 0);
    return c;
}

static void crowd_close(crowd *c)
{
    kit_close(&c->k);
    (void)CHECK_HOLDS(c->k.path, true, NULL);
    for (unsigned i = 0; i < CALLERS; i++)
        cx_arena_done(&c->arenas[i]);
    kit_done(&c->k);
    cx_alloc_free(cx_alloc_default(), c, sizeof *c);
}

static void count(crowd *c, cx_status status, const cx_err *err, const char *allowed)
{
    if (!cx_failed(status))
        atomic_fetch_add(&c->won, 1);
    else if (err->tag != NULL && strcmp(err->tag, allowed) == 0)
        atomic_fetch_add(&c->lost, 1);
    else
        atomic_fetch_add(&c->wrong, 1);
}

static uint64_t entries(crowd *c)
{
    cx_actor_info info = {0};
    CHECK_STATUS(cx_home_actor(c->k.home, KIT_ACTOR, &info, &c->k.err), &c->k.err);
    return info.entry_count;
}

static cx_memory_view latest(crowd *c, const cx_id *id)
{
    cx_memory_view view = {0};
    CHECK_STATUS(cx_memory_resolve_latest(c->k.memory, id, &c->k.arena, &view, &c->k.err),
                 &c->k.err);
    return view;
}

/* --- compare-and-set -------------------------------------------------------------------------- */

static void update_once(void *arg, unsigned index)
{
    crowd *c = arg;
    cx_uri uri;
    cx_err err = {0};
    (void)index;
    count(c, kit_update(c->k.memory, &c->uri, "another", &uri, &err), &err, "VersionConflict");
}

CX_TEST(home_forty_updates_of_one_version)
{
    crowd *c = crowd_open("updates");
    REQUIRE(c != NULL);
    cx_thread_team(CALLERS, update_once, c);
    CHECK_INT(atomic_load(&c->won), 1);
    CHECK_INT(atomic_load(&c->lost), CALLERS - 1);
    CHECK_INT(atomic_load(&c->wrong), 0);
    CHECK_INT(latest(c, &c->uri.id).uri.version, 2);
    CHECK_INT(entries(c), 2);
    crowd_close(c);
}

static void update_until_done(void *arg, unsigned index)
{
    crowd *c = arg;
    char text[32];
    cx_arena *arena = &c->arenas[index];
    (void)snprintf(text, sizeof text, "said by %u", index);
    for (unsigned txn = 0; txn < 10000; txn++) {
        cx_memory_view view;
        cx_uri uri;
        cx_err err = {0};
        cx_arena_mark mark = cx_arena_mark_now(arena);
        cx_status status = cx_memory_resolve_latest(c->k.memory, &c->uri.id, arena, &view, &err);
        if (!cx_failed(status))
            status = kit_update(c->k.memory, &view.uri, text, &uri, &err);
        cx_arena_reset(arena, mark);
        count(c, status, &err, "VersionConflict");
        if (!cx_failed(status))
            return;
    }
}

CX_TEST(home_forty_updates_with_retry)
{
    crowd *c = crowd_open("retry");
    REQUIRE(c != NULL);
    uint64_t before = entries(c);
    cx_thread_team(CALLERS, update_until_done, c);
    CHECK_INT(atomic_load(&c->won), CALLERS);
    CHECK_INT(atomic_load(&c->wrong), 0);
    CHECK_INT(latest(c, &c->uri.id).uri.version, CALLERS + 1);
    CHECK_INT(entries(c) - before, CALLERS);
    for (uint64_t n = 1; n <= CALLERS + 1; n++) {
        cx_memory_view view;
        cx_uri uri = c->uri;
        uri.version = n;
        CHECK_STATUS(cx_memory_resolve(c->k.memory, &uri, &c->k.arena, &view, &c->k.err),
                     &c->k.err);
    }
    crowd_close(c);
}

/* --- nothing is lost -------------------------------------------------------------------------- */

/* Each thread does one kind of change to the same memory, and none of them undoes another's. */
static cx_status change(crowd *c, unsigned index, cx_err *err)
{
    const cx_bytes none = {NULL, 0};
    const float vector[] = {1, 2, 3, 4};
    char text[48];
    bool written;
    (void)snprintf(text, sizeof text, "intent %u", index);
    switch (index % 4) {
    case 0: {
        const cx_edge_name name = {c->uri.id, 2, c->others[index].id};
        return cx_memory_add_edge(c->k.memory, &name, CX_STR("me"), 0.5f, none, false, &written,
                                  err);
    }
    case 1: {
        cx_buf uri;
        cx_buf_init(&uri, cx_alloc_default());
        cx_uri_add(&c->uri, &uri);
        const cx_str cited = cx_buf_str(&uri);
        const cx_memory_attest attest = {
            .intent = cx_str_z(text), .cited = &cited, .cited_count = 1};
        cx_status status = cx_memory_attest_outcome(c->k.memory, &attest, NULL, err);
        cx_buf_done(&uri);
        return status;
    }
    case 2: return cx_memory_embed(c->k.memory, &c->uri.id, 1, CX_STR("model"), vector, 4, err);
    default: {
        const cx_head_patch patch = {.set_importance = index % 8 == 3,
                                     .importance = 9,
                                     .set_visibility = index % 8 != 3,
                                     .visibility = CX_VISIBILITY_ACTOR_PUBLIC};
        return cx_memory_update_head(c->k.memory, &c->uri, &patch, err);
    }
    }
}

static void change_once(void *arg, unsigned index)
{
    crowd *c = arg;
    cx_err err = {0};
    if (index == CALLERS) {
        count(c, cx_memory_tombstone(c->k.memory, &c->uri, CX_STR("done"), CX_STR("me"), &err),
              &err, "");
        return;
    }
    count(c, change(c, index, &err), &err, "Tombstoned");
}

static void write_others(crowd *c)
{
    for (unsigned i = 0; i < CALLERS; i++)
        CHECK_STATUS(kit_write(c->k.memory, "other end", &c->others[i], &c->k.err), &c->k.err);
}

CX_TEST(home_changes_of_every_kind_to_one_memory)
{
    crowd *c = crowd_open("changes");
    REQUIRE(c != NULL);
    write_others(c);
    uint64_t before = entries(c);
    cx_thread_team(CALLERS, change_once, c);
    CHECK_INT(atomic_load(&c->won), CALLERS);
    CHECK_INT(atomic_load(&c->wrong), 0);
    cx_memory_view view = latest(c, &c->uri.id);
    const cx_edge_view *edges;
    size_t edge_count;
    CHECK_STATUS(cx_memory_edges(c->k.memory, &c->uri.id, false, 0, false, 1000, &c->k.arena,
                                 &edges, &edge_count, &c->k.err),
                 &c->k.err);
    cx_salience salience;
    float cold;
    CHECK_STATUS(cx_memory_salience_of(c->k.memory, &c->uri.id, &salience, &cold, &c->k.err),
                 &c->k.err);
    CHECK_INT(edge_count, CALLERS / 4);
    CHECK_INT(salience.citations, CALLERS / 4);
    CHECK_INT(view.head.importance, 9);
    CHECK_INT(view.head.visibility, CX_VISIBILITY_ACTOR_PUBLIC);
    CHECK(view.head.embedded);
    /* Two entries for each attest. */
    CHECK_INT(entries(c) - before, CALLERS + CALLERS / 4);
    crowd_close(c);
}

CX_TEST(home_tombstone_among_changes)
{
    crowd *c = crowd_open("tombstone");
    REQUIRE(c != NULL);
    write_others(c);
    cx_thread_team(CALLERS + 1, change_once, c);
    CHECK_INT(atomic_load(&c->won) + atomic_load(&c->lost), CALLERS + 1);
    CHECK_INT(atomic_load(&c->wrong), 0);
    /* Nothing that came later brought it back. */
    CHECK(latest(c, &c->uri.id).head.tombstoned);
    crowd_close(c);
}

/* --- snapshots during writes ------------------------------------------------------------------ */

static void snapshot_once(void *arg, unsigned index)
{
    crowd *c = arg;
    cx_err err = {0};
    cx_uri uri;
    count(c, kit_write(c->k.memory, "beside a snapshot", &uri, &err), &err, "");
    count(c,
          cx_snapshot_make(c->k.home, KIT_ACTOR, CX_STR("periodic"), (int64_t)index,
                           &c->arenas[index], &c->manifests[index], &err),
          &err, "");
}

/* That a manifest's roots belong to its journal size is what verification checks of each. */
CX_TEST(home_snapshots_at_once)
{
    crowd *c = crowd_open("snapshots");
    REQUIRE(c != NULL);
    bool seen[CALLERS] = {false};
    cx_thread_team(CALLERS, snapshot_once, c);
    CHECK_INT(atomic_load(&c->won), 2 * CALLERS);
    for (unsigned i = 0; i < CALLERS; i++) {
        const cx_manifest *m = &c->manifests[i];
        REQUIRE(m->snapshot_seq < CALLERS);
        CHECK(!seen[m->snapshot_seq]);
        seen[m->snapshot_seq] = true;
        cx_inclusion proof;
        cx_digest root;
        CHECK_STATUS(cx_proof_journal(c->k.home, KIT_ACTOR, 0, m->journal_size, false, &c->k.arena,
                                      &proof, &root, &c->k.err),
                     &c->k.err);
        CHECK(cx_digest_eq(&root, &m->journal_root));
        cx_digest overall =
            cx_scheme_overall(m->scheme, &m->journal_root, &m->edges_root, &m->memories_root);
        CHECK(cx_digest_eq(&overall, &m->overall_root));
    }
    crowd_close(c);
}

/* --- readers during writes -------------------------------------------------------------------- */

enum { WRITERS = 4, READERS = 4, WRITES = 60 };

static cx_status take_all(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    uint64_t *seen = arg;
    (void)key;
    (void)value;
    (void)stop;
    (void)err;
    (*seen)++;
    return CX_SUCCESS;
}

static void write_much(crowd *c, unsigned index)
{
    cx_err err = {0};
    for (unsigned i = 0; i < WRITES; i++) {
        cx_uri uri;
        uint64_t seq;
        char text[32];
        (void)snprintf(text, sizeof text, "text %u of %u", i, index);
        count(c, kit_write(c->k.memory, text, &uri, &err), &err, "");
        count(c, kit_update(c->k.memory, &uri, "again", &uri, &err), &err, "");
        if (i % 10 == 5) {
            count(c,
                  cx_memory_raw(c->k.memory, CX_STR("trace.x"), cx_bytes_from(text, sizeof text),
                                true, CX_STR("me"), &seq, &err),
                  &err, "");
            count(c, cx_memory_redact(c->k.memory, seq, CX_STR("asked"), CX_STR("me"), &err), &err,
                  "");
        }
    }
}

static cx_status read_once(crowd *c, cx_arena *arena, uint64_t *size, cx_err *err)
{
    cx_roots roots;
    cx_entry_view entry;
    cx_memory_view view;
    cx_inclusion proof;
    cx_consistency growth;
    cx_digest root, older;
    uint64_t rows = 0;
    CX_TRY(cx_home_roots(c->k.home, KIT_ACTOR, &roots, err));
    if (roots.journal_size < *size)
        return cx_fail(err, CX_E_CONFLICT, "the journal became shorter");
    const cx_scan scan = {
        .actor = KIT_ACTOR, .prefix = cx_str_bytes(CX_STR("m/")), .row = take_all, .arg = &rows};
    CX_TRY(cx_home_scan(c->k.home, &scan, err));
    CX_TRY(cx_home_entry(c->k.home, KIT_ACTOR, roots.journal_size - 1, arena, &entry, err));
    CX_TRY(cx_proof_journal(c->k.home, KIT_ACTOR, roots.journal_size - 1, roots.journal_size, true,
                            arena, &proof, &root, err));
    if (rows == 0 || !cx_digest_eq(&root, &roots.journal))
        return cx_fail(err, CX_E_CONFLICT, "a root that was given before is another one now");
    if (*size != 0)
        CX_TRY(cx_proof_consistency(c->k.home, KIT_ACTOR, *size, roots.journal_size, arena, &growth,
                                    &older, &root, err));
    *size = roots.journal_size;
    const cx_memory_find find = {.types = cx_bytes_from("\2", 1), .limit = 20};
    const cx_memory_hit *hits;
    size_t hit_count;
    CX_TRY(cx_memory_find_all(c->k.memory, &find, arena, &hits, &hit_count, err));
    return cx_memory_resolve_latest(c->k.memory, &c->uri.id, arena, &view, err);
}

static void read_or_write(void *arg, unsigned index)
{
    crowd *c = arg;
    if (index < WRITERS) {
        write_much(c, index);
        atomic_fetch_sub(&c->writers_left, 1);
        return;
    }
    uint64_t size = 0;
    do {
        cx_err err = {0};
        cx_arena_mark mark = cx_arena_mark_now(&c->arenas[index]);
        cx_status status = read_once(c, &c->arenas[index], &size, &err);
        cx_arena_reset(&c->arenas[index], mark);
        if (cx_failed(status)) {
            (void)fprintf(stderr, "reader: %s\n", err.message);
            atomic_fetch_add(&c->wrong, 1);
            return;
        }
    } while (atomic_load(&c->writers_left) != 0);
}

CX_TEST(home_readers_during_writes)
{
    crowd *c = crowd_open("readers");
    REQUIRE(c != NULL);
    atomic_store(&c->writers_left, WRITERS);
    cx_thread_team(WRITERS + READERS, read_or_write, c);
    CHECK_INT(atomic_load(&c->wrong), 0);
    CHECK_INT(atomic_load(&c->lost), 0);
    CHECK_INT(entries(c), 1 + WRITERS * (2 * WRITES + 2 * (WRITES / 10)));
    crowd_close(c);
}

/* --- trees from tables ------------------------------------------------------------------------ */

enum { MANY = 12000, AT_ONCE = 3000 };

/* Memories and edges of which only the bytes matter here. */
static void put_many(kit *k)
{
    for (uint32_t i = 0; i < MANY;) {
        cx_txn *txn;
        uint64_t commit;
        REQUIRE(!cx_failed(cx_txn_begin(k->home, KIT_ACTOR, &txn, &k->err)));
        CHECK_STATUS(cx_txn_bare(txn, &k->err), &k->err);
        for (uint32_t end = i + AT_ONCE; i < end; i++) {
            uint8_t key[7 + 33] = {'m', '/'}, value[40] = {1};
            bool edge = i % 5 == 0;
            uint32_t mixed = i * 2654435761u;
            if (edge)
                memcpy(key, "e/from/", 7);
            memcpy(key + (edge ? 7 : 2), &mixed, sizeof mixed);
            memcpy(value + 1, &i, sizeof i);
            CHECK_STATUS(cx_txn_put(txn, cx_bytes_from(key, edge ? 40 : 18),
                                    cx_bytes_from(value, 5 + i % 30), i % 3 == 0, &k->err),
                         &k->err);
        }
        CHECK_STATUS(cx_txn_commit_later(txn, &commit, &k->err), &k->err);
    }
}

/* That a key is in neither tree. */
static cx_status prove_both(cx_home *home, cx_err *err)
{
    static const cx_namespace spaces[] = {CX_NAMESPACE_MEMORIES, CX_NAMESPACE_EDGES};
    cx_digest key = {{1, 2, 3}}, root;
    const cx_smt_path *path;
    cx_trees trees;
    cx_arena arena;
    CX_TRY(cx_home_trees_begin(home, KIT_ACTOR, &trees, err));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(spaces) && !cx_failed(status); i++) {
        status = cx_trees_prove(home, spaces[i], &key, 1, &arena, &root, &path, err);
        if (!cx_failed(status)) {
            const cx_digest folded = cx_smt_fold(trees.scheme, path);
            CHECK(!path->member && cx_digest_eq(&folded, &root));
        }
    }
    cx_arena_done(&arena);
    cx_home_trees_end(home);
    return status;
}

static cx_status ask_again(kit *k, cx_roots *out)
{
    const cx_home_options options = kit_options();
    cx_home *home;
    cx_status status = cx_home_open(k->path, &options, &home, &k->err);
    if (cx_failed(status))
        return status;
    status = cx_home_roots(home, KIT_ACTOR, out, &k->err);
    if (!cx_failed(status))
        status = prove_both(home, &k->err);
    CHECK(!cx_failed(cx_home_close(home, NULL)));
    return status;
}

static void change_tables(const kit *k, const char *sql)
{
    char path[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    cx_err err;
    (void)snprintf(path, sizeof path, "%s/cortex.db", k->path);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &err)));
    CHECK_STATUS(cx_db_run(db, sql, &err), &err);
    cx_db_close(db);
}

/* Trees of many rows are what was written, and rows that are not are noticed. */
CX_TEST(home_trees_from_many_rows)
{
    static const char *const changes[] = {"UPDATE leaf SET value = zeroblob(32) WHERE tree % 2 = 0",
                                          "UPDATE leaf SET value = zeroblob(32) WHERE tree % 2 = 1",
                                          "DELETE FROM leaf WHERE tree % 2 = 0",
                                          "UPDATE page SET hash = zeroblob(32) WHERE level = 0",
                                          "DELETE FROM page WHERE tree % 2 = 1"};
    kit k;
    cx_roots written, built;
    REQUIRE(kit_init(&k, "many_rows", CX_SCHEME_CORTEX_1));
    put_many(&k);
    CHECK_STATUS(cx_home_roots(k.home, KIT_ACTOR, &written, &k.err), &k.err);
    kit_close(&k);
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        CHECK_STATUS(ask_again(&k, &built), &k.err);
        CHECK(cx_digest_eq(&built.overall, &written.overall));
        change_tables(&k, changes[i]);
        CHECK_INT(ask_again(&k, &built).code, CX_E_FORMAT);
        CHECK_STR(cx_str_z(k.err.tag), "DatabaseDamaged");
        kit_remove_tables(k.path);
    }
    CHECK_STATUS(ask_again(&k, &built), &k.err);
    CHECK(cx_digest_eq(&built.overall, &written.overall));
    /* The same rows again from the log, and compared with those that are there. */
    const cx_home_options options = kit_options();
    cx_rebuild_result again;
    for (int mode = 0; mode < 2; mode++) {
        CHECK_STATUS(cx_home_rebuild(k.path, &options,
                                     mode == 0 ? CX_REBUILD_VERIFY_ONLY : CX_REBUILD, &again,
                                     &k.err),
                     &k.err);
        CHECK_INT(again.records, MANY + 4);
        CHECK(!again.changed);
        CHECK_STATUS(ask_again(&k, &built), &k.err);
        CHECK(cx_digest_eq(&built.overall, &written.overall));
    }
    kit_done(&k);
}

/* One allocation after the other fails, on either side: an error, and nothing is left. */
CX_TEST(home_trees_from_many_rows_without_memory)
{
    kit k;
    cx_roots roots;
    bool good = false;
    REQUIRE(kit_init(&k, "no_memory", CX_SCHEME_CORTEX_1));
    put_many(&k);
    kit_close(&k);
    for (uint64_t at = 1; !good && at < 10000; at += 7) {
        fault_alloc memory;
        cx_home *home;
        fault_alloc_init(&memory, at, true);
        cx_home_options options = kit_options();
        options.alloc = &memory.alloc;
        cx_status status = cx_home_open(k.path, &options, &home, NULL);
        if (!cx_failed(status)) {
            status = cx_home_roots(home, KIT_ACTOR, &roots, NULL);
            cx_status closed = cx_home_close(home, NULL); /* tables may have to wait */
            CHECK(!cx_failed(closed) || closed.code == CX_E_NOMEM);
        }
        CHECK(!cx_failed(status) || status.code == CX_E_NOMEM);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        good = !cx_failed(status);
    }
    CHECK(good);
    kit_done(&k);
}

/* A tree whose pieces several threads hash has the root of one that grew key by key. */
CX_TEST(home_trees_hashed_by_several)
{
    enum { KEYS = 20000, STEP = 500 };
    static cx_smt_pair pairs[KEYS];
    for (uint32_t round = 0; round < 2; round++) {
        cx_scheme scheme = round == 0 ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1;
        size_t count = round == 0 ? KEYS : KEYS / 4;
        cx_smt *slow, *fast;
        cx_digest wanted, got;
        cx_err err;
        REQUIRE(!cx_failed(cx_smt_open(scheme, cx_alloc_default(), &slow, &err)));
        REQUIRE(!cx_failed(cx_smt_open(scheme, cx_alloc_default(), &fast, &err)));
        for (uint32_t i = 0; i < count; i++) {
            uint32_t other = ~i;
            pairs[i] = (cx_smt_pair){cx_digest_of(cx_bytes_from(&i, sizeof i)),
                                     cx_digest_of(cx_bytes_from(&other, sizeof other))};
        }
        for (size_t at = 0; at < count; at += STEP) {
            CHECK_STATUS(cx_smt_put_many(slow, pairs + at, STEP, &err), &err);
            CHECK_STATUS(cx_smt_root(slow, &wanted, &err), &err);
        }
        CHECK_STATUS(cx_smt_put_many(fast, pairs, count, &err), &err);
        CHECK_STATUS(cx_smt_root(fast, &got, &err), &err);
        CHECK(cx_digest_eq(&wanted, &got));
        /* Then other values for a part of it. */
        for (size_t i = 0; i < count; i += 3) {
            pairs[i].value.bytes[0] ^= 1;
            CHECK_STATUS(cx_smt_put(slow, &pairs[i].key, &pairs[i].value, &err), &err);
            CHECK_STATUS(cx_smt_put(fast, &pairs[i].key, &pairs[i].value, &err), &err);
            if (i % STEP == 0)
                CHECK_STATUS(cx_smt_root(slow, &wanted, &err), &err);
        }
        CHECK_STATUS(cx_smt_root(slow, &wanted, &err), &err);
        CHECK_STATUS(cx_smt_root(fast, &got, &err), &err);
        CHECK(cx_digest_eq(&wanted, &got));
        cx_smt_close(slow);
        cx_smt_close(fast);
    }
}
