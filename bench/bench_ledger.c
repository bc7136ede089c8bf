/*
 * bench_ledger.c - a home at work, beside named limits (rows G1, G2, G5, G6, G8).
 *
 *     bench_ledger [FOLDER [RECORDS [SECONDS]]]   on the file system of FOLDER (.), with RECORDS
 *                                                 memories for G5 and G6 (1,000,000), SECONDS a row
 *                                                 of G1 and G2 (5)
 *
 * G1  a durable append of a 4 KiB record with all that follows from it (entry, commitment, journal
 *     tree, tables) / pwrite and fdatasync of the same bytes into a file filled before; both take
 *     turns of a few milliseconds.
 * G2  the same at 16 a commit / RocksDB and SQLite holding records and Merkle nodes as rows, synced
 *     as often.
 * G5  opening a home until its roots answer / reading its rows once and hashing two nodes a record.
 * G6  rebuilding all tables / reading the log and inserting the same rows with bare SQLite; once
 *     with the old tables lost, and once (for information) comparing with them, row by row.
 * G8  bytes of log and tables / bytes recorded.  Segments count up to their last byte that is not
 *     zero: what lies behind the log's end is room that the next commits use.  Beside it, for
 *     information: that room, and all that the process had written.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "bench/bench.h"
#include "ledger/home.h"
#include "ledger/verify.h"
#include "log/log.h"
#include "memory/memory.h"
#ifdef CX_BENCH_ROCKSDB
#include "bench/rocksdb_peer.h"
#endif

enum { RECORD_SIZE = 4096, COUNT_MAX = 256, TURNS_MAX = 20000, RAW_SIZE = 64 << 20 };

static uint8_t contents[RECORD_SIZE];
static char folder[3000];
static cx_err err;

static void must(cx_status status)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_ledger: %s\n", err.message);
        exit(1);
    }
}

static void must_be(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_ledger: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static const char *path_of(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static cx_home_options home_options(void)
{
    return (cx_home_options){.derivers = &cx_memory_deriver, .deriver_count = 1};
}

static void make_home(const char *name)
{
    const cx_home_options options = home_options();
    must(cx_home_create(path_of(name), CX_SCHEME_CORTEX_1, &options, &err));
}

static cx_home *open_home(const char *name)
{
    const cx_home_options options = home_options();
    cx_home *home;
    must(cx_home_open(path_of(name), &options, &home, &err));
    return home;
}

/* --- G1: appending --------------------------------------------------------------------------- */

typedef struct appending {
    cx_home *home;
    int raw;
    off_t raw_at;
    sqlite3 *db;
    sqlite3_stmt *put_record, *put_node;
#ifdef CX_BENCH_ROCKSDB
    rocksdb_peer *rocksdb;
#endif
    uint64_t peer_seq;
    size_t count;
} appending;

static void home_commit(appending *a)
{
    uint64_t commit = 0;
    for (size_t i = 0; i < a->count; i++) {
        cx_turn *turn;
        must(cx_turn_begin(a->home, CX_STR("bench"), &turn, &err));
        const cx_entry_draft draft = {.kind = CX_STR("trace.received"),
                                      .created_at_ns = 1,
                                      .payload = cx_bytes_from(contents, sizeof contents),
                                      .committed = true};
        must(cx_turn_entry(turn, &draft, NULL, &err));
        must(cx_turn_commit_later(turn, &commit, &err));
    }
    must(cx_home_wait(a->home, commit, &err));
}

static void raw_commit(appending *a)
{
    static uint8_t block[COUNT_MAX * RECORD_SIZE];
    size_t size = a->count * RECORD_SIZE;
    if (a->raw_at + (off_t)size > RAW_SIZE)
        a->raw_at = 0;
    must_be(pwrite(a->raw, block, size, a->raw_at) == (ssize_t)size, "pwrite");
    must_be(fdatasync(a->raw) == 0, "fdatasync");
    a->raw_at += (off_t)size;
}

static void must_sql(appending *a, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE) {
        fprintf(stderr, "bench_ledger: SQLite: %s\n", sqlite3_errmsg(a->db));
        exit(1);
    }
}

static void put_row(appending *a, sqlite3_stmt *statement, uint64_t key, const void *data, int size)
{
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)key);
    sqlite3_bind_blob(statement, 2, data, size, SQLITE_STATIC);
    must_sql(a, sqlite3_step(statement));
    must_sql(a, sqlite3_reset(statement));
}

/* Records and the nodes of their Merkle mountain range as rows: a leaf and the parents it
 * completes. */
static void put_as_rows(appending *a, void (*put)(appending *a, char table, uint64_t key,
                                                  const void *data, int size))
{
    for (size_t i = 0; i < a->count; i++) {
        cx_digest node = cx_digest_of(cx_bytes_from(contents, sizeof contents));
        uint64_t seq = a->peer_seq++, position = cx_mmr_leaf_position(seq);
        put(a, 'r', seq, contents, RECORD_SIZE);
        put(a, 'n', position, node.bytes, 32);
        for (uint64_t left = seq + 1; left % 2 == 0; left /= 2) {
            cx_digest pair[2] = {node, node};
            node = cx_digest_of(cx_bytes_from(pair[0].bytes, sizeof pair));
            put(a, 'n', ++position, node.bytes, 32);
        }
    }
}

static void put_in_sqlite(appending *a, char table, uint64_t key, const void *data, int size)
{
    put_row(a, table == 'r' ? a->put_record : a->put_node, key, data, size);
}

static void sqlite_commit(appending *a)
{
    must_sql(a, sqlite3_exec(a->db, "BEGIN", NULL, NULL, NULL));
    put_as_rows(a, put_in_sqlite);
    must_sql(a, sqlite3_exec(a->db, "COMMIT", NULL, NULL, NULL));
}

#ifdef CX_BENCH_ROCKSDB
static void put_in_rocksdb(appending *a, char table, uint64_t key, const void *data, int size)
{
    rocksdb_peer_put(a->rocksdb, table, key, data, (size_t)size);
}

static void rocksdb_commit(appending *a)
{
    put_as_rows(a, put_in_rocksdb);
    rocksdb_peer_commit(a->rocksdb);
}
#endif

static void open_sqlite(appending *a)
{
    must_be(sqlite3_open(path_of("peer.db"), &a->db) == SQLITE_OK, "SQLite");
    must_sql(a, sqlite3_exec(a->db,
                             "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                             "CREATE TABLE record(seq INTEGER PRIMARY KEY, body BLOB);"
                             "CREATE TABLE node(position INTEGER PRIMARY KEY, hash BLOB);",
                             NULL, NULL, NULL));
    must_sql(a,
             sqlite3_prepare_v2(a->db, "INSERT INTO record VALUES(?,?)", -1, &a->put_record, NULL));
    must_sql(a, sqlite3_prepare_v2(a->db, "INSERT INTO node VALUES(?,?)", -1, &a->put_node, NULL));
}

static void open_raw(appending *a)
{
    static uint8_t zeros[1 << 20];
    a->raw = open(path_of("raw"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    must_be(a->raw >= 0, "raw");
    for (off_t at = 0; at < RAW_SIZE; at += (off_t)sizeof zeros)
        must_be(pwrite(a->raw, zeros, sizeof zeros, at) == (ssize_t)sizeof zeros, "pwrite");
    must_be(fsync(a->raw) == 0, "fsync");
}

static double timed(void (*work)(appending *), appending *a, size_t times)
{
    double before = bench_seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < times; i++)
        work(a);
    return (bench_seconds(CLOCK_MONOTONIC) - before) / (double)times;
}

static void compare(appending *a, const char *id, const char *what, void (*peer)(appending *),
                    double target, double seconds)
{
    static double theirs[TURNS_MAX], ours[TURNS_MAX], ratios[TURNS_MAX];
    size_t turns = 0, times = a->count == 1 ? 8 : a->count == 16 ? 4 : 1;
    peer(a);
    home_commit(a);
    double end = bench_seconds(CLOCK_MONOTONIC) + seconds;
    while (turns < TURNS_MAX && bench_seconds(CLOCK_MONOTONIC) < end) {
        if (turns % 2 == 0)
            theirs[turns] = timed(peer, a, times);
        ours[turns] = timed(home_commit, a, times);
        if (turns % 2 != 0)
            theirs[turns] = timed(peer, a, times);
        ratios[turns] = theirs[turns] / ours[turns];
        turns++;
    }
    qsort(ratios, turns, sizeof *ratios, bench_compare);
    double ratio = ratios[turns / 2];
    printf("%s %s, %zu a commit: ratio median %.2f (quarter %.2f, three quarters %.2f)"
           " (target %g): %s\n",
           id, what, a->count, ratio, ratios[turns / 4], ratios[turns * 3 / 4], target,
           ratio >= target ? "ok" : "below");
    bench_rate rate = bench_rate_of(ours, turns, (double)a->count, 0);
    bench_print_side("home", &rate, 1, "records/s");
    rate = bench_rate_of(theirs, turns, (double)a->count, 0);
    bench_print_side("reference", &rate, 1, "records/s");
}

static void compare_with_rocksdb(appending *a, double seconds)
{
    const char *what = "durable append / RocksDB with Merkle nodes as rows";
#ifdef CX_BENCH_ROCKSDB
    a->rocksdb = rocksdb_peer_open(path_of("peer.rocksdb"));
    a->peer_seq = 0;
    compare(a, "G2", what, rocksdb_commit, 3, seconds);
    rocksdb_peer_close(a->rocksdb);
#else
    (void)a;
    (void)seconds;
    bench_print_skipped("G2", what, 3, "no RocksDB");
#endif
}

static void compare_with_sqlite(appending *a, double seconds)
{
    open_sqlite(a);
    a->peer_seq = 0;
    compare(a, "G2", "durable append / SQLite with Merkle nodes as rows", sqlite_commit, 8,
            seconds);
    sqlite3_finalize(a->put_record);
    sqlite3_finalize(a->put_node);
    sqlite3_close(a->db);
}

static uint64_t file_bytes(const char *path)
{
    struct stat state;
    return stat(path, &state) == 0 ? (uint64_t)state.st_size : 0;
}

/* Up to the last byte that is not zero.  A segment ends with a checksum, of which a last byte is
 * zero once in 256 times. */
static uint64_t used_bytes(const char *path)
{
    static uint8_t block[1 << 16];
    uint64_t at = 0, used = 0;
    size_t got;
    FILE *file = fopen(path, "rb");
    must_be(file != NULL, path);
    while ((got = fread(block, 1, sizeof block, file)) != 0) {
        for (size_t i = got; i > 0 && used <= at; i--)
            used = block[i - 1] != 0 ? at + i : used;
        at += got;
    }
    (void)fclose(file);
    return used;
}

static void measure_log(const char *name, uint64_t *out_used, uint64_t *out_room)
{
    const char *folder_path = path_of(name);
    char path[8192];
    DIR *log = opendir(folder_path);
    must_be(log != NULL, folder_path);
    *out_used = *out_room = 0;
    for (const struct dirent *entry; (entry = readdir(log)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder_path, entry->d_name);
        uint64_t used = used_bytes(path);
        *out_used += used;
        *out_room += file_bytes(path) - used;
    }
    (void)closedir(log);
}

static uint64_t written_bytes(void)
{
    unsigned long long bytes = 0;
    char line[128];
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "write_bytes: %llu", &bytes);
    if (file != NULL)
        (void)fclose(file);
    return bytes;
}

/* Recorded: payloads of 4 KiB, 16 a commit. */
static void measure_bytes(void)
{
    enum { COMMITS = 2000 };
    appending a = {.count = 16};
    make_home("bytes");
    a.home = open_home("bytes");
    uint64_t before = written_bytes(), used, room;
    for (int i = 0; i < COMMITS; i++)
        home_commit(&a);
    must(cx_home_settle(a.home, &err));
    uint64_t written = written_bytes() - before;
    must(cx_home_close(a.home, &err));
    measure_log("bytes/log", &used, &room);
    double recorded = (double)COMMITS * 16 * RECORD_SIZE;
    double log = (double)used / recorded;
    double tables = (double)file_bytes(path_of("bytes/cortex.db")) / recorded;
    printf("G8 bytes of log and tables / bytes recorded: %.3f (log %.3f, tables %.3f)"
           " (target at most 1.5): %s\n",
           log + tables, log, tables, log + tables <= 1.5 ? "ok" : "above");
    printf("     not counted: %.1f MB of room behind the log's end (%.3f)\n", (double)room / 1e6,
           (double)room / recorded);
    printf("     bytes written in all, that room and the tables' journal included: %.3f\n",
           (double)written / recorded);
}

/* --- G5 and G6: a home of many memories ------------------------------------------------------ */

static void write_memory(cx_turn *turn, uint64_t number)
{
    static cx_buf head, payload;
    cx_id id = {{1}};
    uint8_t key[18] = {'m', '/'};
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(id.bytes + 1, &number, 7);
    memcpy(id.bytes + 8, &mixed, 8);
    memcpy(key + 2, id.bytes, 16);
    if (head.alloc == NULL) {
        cx_buf_init(&head, cx_alloc_default());
        cx_buf_init(&payload, cx_alloc_default());
    }
    cx_buf_clear(&head);
    cx_buf_clear(&payload);
    const cx_head record = {.id = id,
                            .type = 2,
                            .current_version = 1,
                            .actor_scope = CX_STR("bench"),
                            .visibility = 1,
                            .last_updated_at = 1700000000,
                            .forms = {CX_STR("is(matrix://x)=the sky is blue"),
                                      CX_STR("is(matrix://x)=the sky is blue")}};
    cx_head_encode(&record, &head);
    cx_payload write = {.kind = CX_ENTRY_UPDATE_HEAD};
    write.as.update_head = (cx_payload_update_head){id, 1, cx_digest_of(cx_buf_bytes(&head))};
    cx_payload_encode(&write, &payload);
    const cx_entry_draft draft = {.kind = CX_STR("update_head"),
                                  .created_at_ns = 1,
                                  .payload = cx_buf_bytes(&payload),
                                  .subject = &id};
    must(cx_turn_entry(turn, &draft, NULL, &err));
    must(cx_turn_put(turn, cx_bytes_from(key, sizeof key), cx_buf_bytes(&head), true, &err));
}

static void fill_home(const char *name, uint64_t records)
{
    make_home(name);
    const cx_home_options options = {0}; /* bare records: nothing derived from them but the trees */
    cx_home *home;
    must(cx_home_open(path_of(name), &options, &home, &err));
    double before = bench_seconds(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < records;) {
        cx_turn *turn;
        uint64_t commit;
        must(cx_turn_begin(home, CX_STR("bench"), &turn, &err));
        for (int j = 0; j < 256 && i < records; j++)
            write_memory(turn, i++);
        must(cx_turn_commit_later(turn, &commit, &err));
    }
    must(cx_home_close(home, &err));
    printf("     filling a home with %llu memories: %.4g a second, tables included\n",
           (unsigned long long)records,
           (double)records / (bench_seconds(CLOCK_MONOTONIC) - before));
}

static double open_and_answer(const char *name)
{
    const cx_home_options options = {0};
    cx_home *home;
    cx_roots roots;
    double before = bench_seconds(CLOCK_MONOTONIC);
    must(cx_home_open(path_of(name), &options, &home, &err));
    must(cx_home_roots(home, CX_STR("bench"), &roots, &err));
    double took = bench_seconds(CLOCK_MONOTONIC) - before;
    must(cx_home_close(home, &err));
    return took;
}

static double read_and_hash(const char *name, uint64_t records)
{
    char path[4096];
    sqlite3 *db;
    sqlite3_stmt *statement;
    uint64_t sum = 0;
    static uint8_t pairs[1024 * 64];
    static cx_digest out[1024];
    (void)snprintf(path, sizeof path, "%s/cortex.db", path_of(name));
    double before = bench_seconds(CLOCK_MONOTONIC);
    must_be(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, "SQLite");
    const char *const queries[] = {"SELECT seq, leaf FROM entry", "SELECT key, value FROM record"};
    for (int q = 0; q < 2; q++) {
        must_be(sqlite3_prepare_v2(db, queries[q], -1, &statement, NULL) == SQLITE_OK, "prepare");
        while (sqlite3_step(statement) == SQLITE_ROW)
            sum += ((const uint8_t *)sqlite3_column_blob(statement, 1))[0] +
                   (uint64_t)sqlite3_column_bytes(statement, 1);
        sqlite3_finalize(statement);
    }
    sqlite3_close(db);
    for (uint64_t done = 0; done < 2 * records; done += 1024)
        cx_digest_pairs(pairs, out, 1024);
    double took = bench_seconds(CLOCK_MONOTONIC) - before;
    return sum == 1 ? 0 : took;
}

static void print_times(const char *id, const char *what, double *ours, double *theirs, size_t n,
                        double target)
{
    qsort(ours, n, sizeof *ours, bench_compare);
    qsort(theirs, n, sizeof *theirs, bench_compare);
    double ratio = ours[n / 2] / theirs[n / 2];
    printf("%s %s: ours %.3f / %.3f / %.3f s, reference %.3f / %.3f / %.3f s (min/median/max),"
           " time ratio %.2f (target at most %g): %s\n",
           id, what, ours[0], ours[n / 2], ours[n - 1], theirs[0], theirs[n / 2], theirs[n - 1],
           ratio, target, ratio <= target ? "ok" : "above");
}

static void measure_open(const char *name, uint64_t records)
{
    enum { TURNS = 5 };
    double ours[TURNS], theirs[TURNS];
    for (size_t i = 0; i < TURNS; i++) {
        ours[i] = open_and_answer(name);
        theirs[i] = read_and_hash(name, records);
    }
    print_times("G5", "open until roots answer", ours, theirs, TURNS, 3);
}

static double rebuild_once(const char *name, bool tables_lost)
{
    const cx_home_options options = {0};
    cx_rebuild_result result;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/cortex.db", path_of(name));
    if (tables_lost)
        must_be(unlink(path) == 0, path);
    double before = bench_seconds(CLOCK_MONOTONIC);
    must(cx_home_rebuild(path_of(name), &options, CX_REBUILD, &result, &err));
    return bench_seconds(CLOCK_MONOTONIC) - before;
}

/* Reads every frame of the log, then copies the rows of the tables into a new database. */
static double read_and_insert(const char *name)
{
    static const char copy[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"
        "CREATE TABLE entry(actor INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,"
        " created_ns INTEGER NOT NULL, subject BLOB, segment INTEGER NOT NULL,"
        " offset INTEGER NOT NULL, size INTEGER NOT NULL, leaf BLOB NOT NULL, sum INTEGER NOT NULL,"
        " PRIMARY KEY(actor, seq)) WITHOUT ROWID;"
        "CREATE INDEX entry_subject ON entry(actor, subject, seq) WHERE subject IS NOT NULL;"
        "CREATE TABLE record(actor INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
        " PRIMARY KEY(actor, key)) WITHOUT ROWID;";
    char path[4096], sql[8192];
    sqlite3 *db;
    cx_log *log;
    cx_log_scan *scan;
    cx_log_opened opened;
    const cx_log_options options = {.read_only = true};
    (void)snprintf(path, sizeof path, "%s/log", path_of(name));
    (void)unlink(path_of("copy.db"));
    double before = bench_seconds(CLOCK_MONOTONIC);
    must(cx_log_open(path, &options, &log, &opened, &err));
    must(cx_log_scan_begin(log, 0, &scan, &err));
    for (bool end = false; !end;) {
        cx_log_commit commit;
        must(cx_log_scan_next(scan, &commit, &end, &err));
    }
    cx_log_scan_end(scan);
    cx_log_close(log);
    must_be(sqlite3_open(path_of("copy.db"), &db) == SQLITE_OK, "SQLite");
    must_be(sqlite3_exec(db, copy, NULL, NULL, NULL) == SQLITE_OK, "schema");
    (void)snprintf(sql, sizeof sql,
                   "ATTACH '%s/cortex.db' AS old; BEGIN;"
                   "INSERT INTO entry SELECT * FROM old.entry ORDER BY actor, seq;"
                   "INSERT INTO record SELECT * FROM old.record ORDER BY actor, key; COMMIT;",
                   path_of(name));
    must_be(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sqlite3_errmsg(db));
    sqlite3_close(db);
    return bench_seconds(CLOCK_MONOTONIC) - before;
}

static void measure_rebuild(const char *name)
{
    enum { TURNS = 3 };
    double ours[TURNS], compared[TURNS], theirs[TURNS];
    for (size_t i = 0; i < TURNS; i++) {
        ours[i] = rebuild_once(name, true);
        theirs[i] = read_and_insert(name);
        compared[i] = rebuild_once(name, false);
    }
    print_times("G6", "rebuild all tables", ours, theirs, TURNS, 2);
    qsort(compared, TURNS, sizeof *compared, bench_compare);
    printf("     with the old tables compared: %.3f / %.3f / %.3f s (min/median/max), time ratio"
           " %.2f\n",
           compared[0], compared[TURNS / 2], compared[TURNS - 1],
           compared[TURNS / 2] / theirs[TURNS / 2]);
}

int main(int argc, char **argv)
{
    uint64_t records = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 5;
    char command[3200];
    (void)snprintf(folder, sizeof folder, "%s/cortex-bench-ledger.%ld", argc > 1 ? argv[1] : ".",
                   (long)getpid());
    must_be(mkdir(folder, 0700) == 0, folder);
    for (size_t i = 0; i < sizeof contents; i++) /* nothing a peer could compress */
        contents[i] = (uint8_t)(((uint64_t)i * i * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
    appending a = {0};
    make_home("append");
    a.home = open_home("append");
    open_raw(&a);
    for (size_t count = 1; count <= COUNT_MAX; count *= 16) {
        a.count = count;
        compare(&a, "G1", "durable append / pwrite and fdatasync", raw_commit, 0.6, seconds);
    }
    a.count = 16;
    compare_with_rocksdb(&a, seconds);
    compare_with_sqlite(&a, seconds);
    (void)close(a.raw);
    must(cx_home_close(a.home, &err));
    measure_bytes();
    fill_home("many", records);
    measure_open("many", records);
    measure_rebuild("many");
    (void)snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    return system(command) == 0 ? 0 : 1;
}
