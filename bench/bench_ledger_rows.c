/*
 * bench_ledger_rows.c - durable appends against databases that hold Merkle nodes as rows (row G2).
 *
 *     bench_ledger_rows [FOLDER [SECONDS]]   on the file system of FOLDER (.), SECONDS a row (5)
 *
 * One commit is 16 records of 4 KiB, each changing the state of one of 131,072 memories.  On all
 * sides the record, the journal's tree, the tree over the states and both roots are there when the
 * commit is: a home has the trees in memory, the databases have each node as a row, written in the
 * same transaction and synced as often.  Their tree is the most favourable one: perfect, its 17
 * levels addressed by small numbers, hashed by the same code.
 */
#include <sqlite3.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/ledger_home.h"
#ifdef CX_BENCH_ROCKSDB
#include "bench/rocksdb_peer.h"
#endif

enum { COUNT = 16, LEVELS = 17, MEMORIES = 1 << LEVELS };

/* Rows of a database, by table and number. */
typedef struct rows {
    void *db;
    void (*put)(void *db, char table, uint64_t key, const void *data, size_t size);
    void (*get)(void *db, char table, uint64_t key, void *out, size_t size);
    void (*commit)(void *db);
} rows;

typedef struct appending {
    cx_home *home;
    rows peer;
    uint64_t seq; /* of the peer's records */
    uint64_t txn; /* of the home's */
} appending;

static uint64_t some_memory(uint64_t number)
{
    return number * UINT64_C(7919) % MEMORIES;
}

/* --- the home -------------------------------------------------------------------------------- */

static void home_commit(void *arg)
{
    appending *a = arg;
    cx_txn *txn;
    bench_must(cx_txn_begin(a->home, CX_STR("bench"), &txn, &bench_err));
    for (size_t i = 0; i < COUNT; i++) {
        const cx_entry_draft draft = {.kind = CX_STR("trace.received"),
                                      .created_at_ns = 1,
                                      .payload = cx_bytes_from(bench_record, sizeof bench_record),
                                      .committed = true};
        bench_must(cx_txn_entry(txn, &draft, NULL, &bench_err));
        bench_put_state(txn, some_memory(a->txn), (int64_t)(1700000000 + a->txn));
        a->txn++;
    }
    bench_must(cx_txn_commit(txn, &bench_err));
    bench_roots(a->home);
}

/* --- the databases --------------------------------------------------------------------------- */

static cx_digest parent_of(const cx_digest *left, const cx_digest *right)
{
    const cx_digest pair[2] = {*left, *right};
    cx_digest node;
    cx_digest_pairs(pair[0].bytes, &node, 1);
    return node;
}

/* The journal's tree: a leaf and the parents that it completes; their left children are read. */
static void put_in_journal(appending *a, cx_digest node)
{
    uint64_t position = cx_mmr_leaf_position(a->seq), height = 0;
    a->peer.put(a->peer.db, 'n', position, node.bytes, sizeof node.bytes);
    for (uint64_t left = a->seq + 1; left % 2 == 0; left /= 2, height++) {
        cx_digest sibling;
        a->peer.get(a->peer.db, 'n', position - ((UINT64_C(2) << height) - 1), sibling.bytes, 32);
        node = parent_of(&sibling, &node);
        a->peer.put(a->peer.db, 'n', ++position, node.bytes, sizeof node.bytes);
    }
}

/* The state's tree: node 1 is its root, 2n and 2n + 1 are the children of n. */
static void put_in_state(appending *a, uint64_t memory, cx_digest node)
{
    uint64_t at = MEMORIES + memory;
    a->peer.put(a->peer.db, 's', at, node.bytes, sizeof node.bytes);
    for (; at > 1; at /= 2) {
        cx_digest sibling;
        a->peer.get(a->peer.db, 's', at ^ 1, sibling.bytes, sizeof sibling.bytes);
        node = at % 2 == 0 ? parent_of(&node, &sibling) : parent_of(&sibling, &node);
        a->peer.put(a->peer.db, 's', at / 2, node.bytes, sizeof node.bytes);
    }
}

static void peer_commit(void *arg)
{
    appending *a = arg;
    for (size_t i = 0; i < COUNT; i++, a->seq++) {
        const cx_digest leaf = cx_digest_of(cx_bytes_from(bench_record, sizeof bench_record));
        a->peer.put(a->peer.db, 'r', a->seq, bench_record, sizeof bench_record);
        put_in_journal(a, leaf);
        put_in_state(a, some_memory(a->seq), leaf);
    }
    a->peer.commit(a->peer.db);
}

static void fill_peer(appending *a)
{
    const cx_digest node = {{1}};
    a->seq = 0;
    for (uint64_t at = 1; at < 2 * MEMORIES; at++)
        a->peer.put(a->peer.db, 's', at, node.bytes, sizeof node.bytes);
    a->peer.commit(a->peer.db);
}

static void compare(appending *a, const char *what, double target, double seconds)
{
    const bench_commits commits = {.id = "G2",
                                   .what = what,
                                   .ours = home_commit,
                                   .theirs = peer_commit,
                                   .arg = a,
                                   .count = COUNT,
                                   .times = 4,
                                   .target = target,
                                   .seconds = seconds};
    fill_peer(a);
    bench_compare_commits(&commits);
}

/* --- SQLite ---------------------------------------------------------------------------------- */

enum { TABLES = 3 };
static const char tables[TABLES] = {'r', 'n', 's'};

typedef struct sqlite {
    sqlite3 *db;
    sqlite3_stmt *puts[TABLES], *gets[TABLES];
    bool open; /* a transaction */
} sqlite;

static void must_sql(sqlite *s, int code)
{
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW)
        return;
    fprintf(stderr, "bench: SQLite: %s\n", sqlite3_errmsg(s->db));
    exit(1);
}

static size_t index_of(char table)
{
    size_t i = 0;
    while (tables[i] != table)
        i++;
    return i;
}

static void begin_if_none(sqlite *s)
{
    if (!s->open)
        must_sql(s, sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL));
    s->open = true;
}

static void sqlite_put(void *db, char table, uint64_t key, const void *data, size_t size)
{
    sqlite *s = db;
    sqlite3_stmt *put = s->puts[index_of(table)];
    begin_if_none(s);
    sqlite3_bind_int64(put, 1, (sqlite3_int64)key);
    sqlite3_bind_blob(put, 2, data, (int)size, SQLITE_STATIC);
    must_sql(s, sqlite3_step(put));
    must_sql(s, sqlite3_reset(put));
}

static void sqlite_get(void *db, char table, uint64_t key, void *out, size_t size)
{
    sqlite *s = db;
    sqlite3_stmt *get = s->gets[index_of(table)];
    begin_if_none(s);
    sqlite3_bind_int64(get, 1, (sqlite3_int64)key);
    must_sql(s, sqlite3_step(get));
    memcpy(out, sqlite3_column_blob(get, 0), size);
    must_sql(s, sqlite3_reset(get));
}

static void sqlite_commit(void *db)
{
    sqlite *s = db;
    must_sql(s, sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL));
    s->open = false;
}

static void open_sqlite(sqlite *s)
{
    char sql[200];
    bench_must_be(sqlite3_open(bench_path("peer.db"), &s->db) == SQLITE_OK, "SQLite");
    must_sql(s, sqlite3_exec(s->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;", NULL, NULL,
                             NULL));
    for (size_t i = 0; i < TABLES; i++) {
        (void)snprintf(sql, sizeof sql, "CREATE TABLE t%c(key INTEGER PRIMARY KEY, value BLOB)",
                       tables[i]);
        must_sql(s, sqlite3_exec(s->db, sql, NULL, NULL, NULL));
        (void)snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO t%c VALUES(?,?)", tables[i]);
        must_sql(s, sqlite3_prepare_v2(s->db, sql, -1, &s->puts[i], NULL));
        (void)snprintf(sql, sizeof sql, "SELECT value FROM t%c WHERE key=?", tables[i]);
        must_sql(s, sqlite3_prepare_v2(s->db, sql, -1, &s->gets[i], NULL));
    }
}

static void compare_with_sqlite(appending *a, double seconds)
{
    sqlite s = {0};
    open_sqlite(&s);
    a->peer = (rows){&s, sqlite_put, sqlite_get, sqlite_commit};
    compare(a, "durable append / SQLite with Merkle nodes as rows", 8, seconds);
    for (size_t i = 0; i < TABLES; i++) {
        sqlite3_finalize(s.puts[i]);
        sqlite3_finalize(s.gets[i]);
    }
    sqlite3_close(s.db);
}

/* --- RocksDB --------------------------------------------------------------------------------- */

#ifdef CX_BENCH_ROCKSDB
static void rocksdb_put(void *db, char table, uint64_t key, const void *data, size_t size)
{
    rocksdb_peer_put(db, table, key, data, size);
}

static void rocksdb_get(void *db, char table, uint64_t key, void *out, size_t size)
{
    rocksdb_peer_get(db, table, key, out, size);
}

static void rocksdb_commit(void *db)
{
    rocksdb_peer_commit(db);
}
#endif

static void compare_with_rocksdb(appending *a, double seconds)
{
    const char *what = "durable append / RocksDB with Merkle nodes as rows";
#ifdef CX_BENCH_ROCKSDB
    rocksdb_peer *peer = rocksdb_peer_open(bench_path("peer.rocksdb"));
    a->peer = (rows){peer, rocksdb_put, rocksdb_get, rocksdb_commit};
    compare(a, what, 3, seconds);
    rocksdb_peer_close(peer);
#else
    (void)a;
    (void)seconds;
    bench_print_skipped("G2", what, 3, "no RocksDB");
#endif
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 5;
    appending a = {0};
    bench_folder_make(argc > 1 ? argv[1] : ".");
    (void)bench_home_fill("rows", MEMORIES);
    a.home = bench_home_open("rows", false);
    compare_with_rocksdb(&a, seconds);
    compare_with_sqlite(&a, seconds);
    bench_must(cx_home_close(a.home, &bench_err));
    return bench_folder_remove();
}
