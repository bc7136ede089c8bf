/*
 * bench_ledger.c - appending to a home, against the bare disk (rows G1, G8).
 *
 *     bench_ledger [FOLDER [SECONDS]]   on the file system of FOLDER (.), SECONDS a row of G1 (5)
 *
 * G1  a durable append of 4 KiB records with all that follows from them (entries, commitments, the
 *     journal's tree and the roots, rows on their way to the tables) / pwrite and fdatasync of the
 *     same bytes into a file filled before; both take turns of a few milliseconds.
 * G8  bytes of log and tables / bytes recorded.  Segments count up to their last byte that is not
 *     zero: what lies after the log's end is room that the next commits use.  Next to it,
 *     for information: that room, and all that the process had written, as the kernel counts it
 *     (large pages of its cache as a whole).
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/ledger_home.h"

enum { COUNT_MAX = 256, RAW_SIZE = 64 << 20 };

/* --- G1 -------------------------------------------------------------------------------------- */

typedef struct appending {
    cx_home *home;
    int raw;
    off_t raw_at;
    size_t count;
} appending;

static void home_commit(void *arg)
{
    appending *a = arg;
    const cx_entry_draft draft = {.kind = CX_STR("trace.received"),
                                  .created_at_ns = 1,
                                  .payload = cx_bytes_from(bench_record, sizeof bench_record),
                                  .committed = true};
    cx_txn *txn;
    bench_must(cx_txn_begin(a->home, CX_STR("bench"), &txn, &bench_err));
    for (size_t i = 0; i < a->count; i++)
        bench_must(cx_txn_entry(txn, &draft, NULL, &bench_err));
    bench_must(cx_txn_commit(txn, &bench_err));
    bench_roots(a->home);
}

static void raw_commit(void *arg)
{
    static uint8_t block[COUNT_MAX * BENCH_RECORD_SIZE];
    appending *a = arg;
    size_t size = a->count * BENCH_RECORD_SIZE;
    if (a->raw_at + (off_t)size > RAW_SIZE)
        a->raw_at = 0;
    bench_must_be(pwrite(a->raw, block, size, a->raw_at) == (ssize_t)size, "pwrite");
    bench_must_be(fdatasync(a->raw) == 0, "fdatasync");
    a->raw_at += (off_t)size;
}

static void open_raw(appending *a)
{
    static uint8_t zeros[1 << 20];
    a->raw = open(bench_path("raw"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    bench_must_be(a->raw >= 0, "raw");
    for (off_t at = 0; at < RAW_SIZE; at += (off_t)sizeof zeros)
        bench_must_be(pwrite(a->raw, zeros, sizeof zeros, at) == (ssize_t)sizeof zeros, "pwrite");
    bench_must_be(fsync(a->raw) == 0, "fsync");
}

static void measure_appending(double seconds)
{
    appending a = {0};
    bench_home_make("append");
    a.home = bench_home_open("append", true);
    open_raw(&a);
    for (a.count = 1; a.count <= COUNT_MAX; a.count *= 16) {
        const bench_commits what = {.id = "G1",
                                    .what = "durable append / pwrite and fdatasync",
                                    .ours = home_commit,
                                    .theirs = raw_commit,
                                    .arg = &a,
                                    .count = a.count,
                                    .times = a.count == 1    ? 8
                                             : a.count == 16 ? 4
                                                             : 1,
                                    .target = 0.6,
                                    .seconds = seconds};
        bench_compare_commits(&what);
    }
    (void)close(a.raw);
    bench_must(cx_home_close(a.home, &bench_err));
}

/* --- G8 -------------------------------------------------------------------------------------- */

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
    bench_must_be(file != NULL, path);
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
    const char *folder_path = bench_path(name);
    char path[8192];
    DIR *log = opendir(folder_path);
    bench_must_be(log != NULL, folder_path);
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
    bench_home_make("bytes");
    a.home = bench_home_open("bytes", true);
    uint64_t before = written_bytes(), used, room;
    for (int i = 0; i < COMMITS; i++)
        home_commit(&a);
    bench_must(cx_home_flush(a.home, &bench_err));
    uint64_t written = written_bytes() - before;
    bench_must(cx_home_close(a.home, &bench_err));
    measure_log("bytes/log", &used, &room);
    double recorded = (double)COMMITS * 16 * BENCH_RECORD_SIZE;
    double log = (double)used / recorded;
    double tables = (double)file_bytes(bench_path("bytes/cortex.db")) / recorded;
    double ratio = 1 / (log + tables);
    printf("G8 bytes recorded / bytes of log and tables: ours %.4g, reference 1, ratio %.2f"
           " (target 0.667): %s\n",
           log + tables, ratio, ratio >= 1 / 1.5 ? "ok" : "below");
    printf("     log %.3f, tables %.3f of what was recorded\n", log, tables);
    printf("     not counted: %.1f MB of room behind the log's end (%.3f)\n", (double)room / 1e6,
           (double)room / recorded);
    printf("     bytes written in all, that room and the tables' journal included: %.3f\n",
           (double)written / recorded);
}

int main(int argc, char **argv)
{
    bench_folder_make(argc > 1 ? argv[1] : ".");
    measure_appending(argc > 2 ? strtod(argv[2], NULL) : 5);
    measure_bytes();
    return bench_folder_remove();
}
