/*
 * fill_home.c - a data directory of a given size, for measuring how cost grows with it
 * (bench/scale.py).
 *
 *     fill_home FOLDER actors COUNT ENTRIES   COUNT actors with ENTRIES entries each
 *     fill_home FOLDER memories COUNT         one actor ("bench") with COUNT memories
 *     fill_home FOLDER runs COUNT EVENTS      COUNT sealed runs with EVENTS events each, in 10
 *                                             journals
 *     fill_home FOLDER entries COUNT          one actor ("bench") with COUNT entries, 256 a commit
 *
 * Everything goes through the calls that any writer uses, but nothing is synced: the folder must
 * not be trusted after a loss of power.
 */
#include <string.h>

#include "bench/bench.h"
#include "ledger/home.h"
#include "memory/memory.h"
#include "recorder/recorder.h"

/* Each change costs less in a flush of many (docs/scale.md). */
#define WAITING_BYTES ((size_t)768 << 20)

enum { AT_ONCE = 256 };

static cx_err failure;

static void must(cx_status status)
{
    if (!cx_failed(status))
        return;
    (void)fprintf(stderr, "fill_home: %s\n", failure.message);
    exit(3);
}

static int never_sync(const cx_io *io, cx_file file, bool data_only)
{
    (void)io;
    (void)file;
    (void)data_only;
    return 0;
}

static void never_start(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    (void)io;
    (void)file;
    (void)offset;
    (void)size;
}

static void commit_entries(cx_home *home, cx_str actor, uint64_t first, uint64_t count)
{
    cx_txn *txn;
    must(cx_txn_begin(home, actor, &txn, &failure));
    for (uint64_t i = 0; i < count; i++) {
        const cx_entry_draft draft = {.kind = CX_STR("raw"),
                                      .created_at_ns = (int64_t)(1700000000000000000 + first),
                                      .payload = cx_str_bytes(CX_STR("an entry of the bench"))};
        must(cx_txn_entry(txn, &draft, NULL, &failure));
    }
    must(cx_txn_commit(txn, &failure));
}

static void fill_actors(cx_home *home, uint64_t actors, uint64_t entries)
{
    char name[32];
    for (uint64_t i = 0; i < actors; i++) {
        (void)snprintf(name, sizeof name, "agent-%07llu", (unsigned long long)i);
        commit_entries(home, cx_str_z(name), i, entries);
    }
}

static void append_to_run(cx_txn *txn, const char *kind, const char *payload)
{
    const cx_entry_draft draft = {.kind = cx_str_z(kind),
                                  .created_at_ns = INT64_C(1700000000000000000),
                                  .payload = cx_str_bytes(cx_str_z(payload))};
    must(cx_txn_entry(txn, &draft, NULL, &failure));
}

static void fill_runs(cx_home *home, uint64_t runs, uint64_t events)
{
    static const char hash[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    char journal[32], payload[512];
    for (uint64_t i = 0; i < runs; i++) {
        cx_txn *txn;
        (void)snprintf(journal, sizeof journal, "run:%016llu", (unsigned long long)(i % 10));
        must(cx_txn_begin(home, cx_str_z(journal), &txn, &failure));
        for (uint64_t j = 1; j <= events; j++) {
            (void)snprintf(payload, sizeof payload,
                           "{\"event_sha256\":\"%s\",\"hash\":\"%s\",\"index\":%llu,\"run_id\":"
                           "\"run_20260101_000000_%032llu\",\"type\":\"cortex.run.event.v1\"}",
                           hash, hash, (unsigned long long)j, (unsigned long long)i);
            append_to_run(txn, "run.event", payload);
        }
        (void)snprintf(payload, sizeof payload,
                       "{\"events_count\":%llu,\"run_id\":\"run_20260101_000000_%032llu\","
                       "\"type\":\"cortex.run.seal.v1\"}",
                       (unsigned long long)events, (unsigned long long)i);
        append_to_run(txn, "run.seal", payload);
        must(cx_txn_commit(txn, &failure));
    }
}

static void fill_entries(cx_home *home, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += AT_ONCE)
        commit_entries(home, CX_STR("bench"), i, count - i < AT_ONCE ? count - i : AT_ONCE);
}

static void fill_memories(cx_home *home, uint64_t count)
{
    cx_memory *memory;
    cx_buf bytes;
    char statement[96];
    cx_buf_init(&bytes, cx_alloc_default());
    must(cx_memory_open(home, CX_STR("bench"), NULL, &memory, &failure));
    for (uint64_t i = 0; i < count; i++) {
        cx_data data = {.type = CX_TYPE_FACT, .schema = 1};
        cx_uri uri;
        (void)snprintf(statement, sizeof statement, "number %llu is remembered as it was told",
                       (unsigned long long)i);
        data.as.fact.statement = cx_str_z(statement);
        data.as.fact.subject = CX_STR("matrix://subject");
        data.as.fact.predicate = CX_STR("is");
        cx_buf_clear(&bytes);
        cx_data_encode(&data, &bytes);
        const cx_memory_write write = {.type = CX_TYPE_FACT, .data = cx_buf_bytes(&bytes)};
        must(cx_memory_write_new(memory, &write, &uri, &failure));
    }
    cx_memory_close(memory);
    cx_buf_done(&bytes);
}

int main(int argc, char **argv)
{
    bool actors = argc == 5 && strcmp(argv[2], "actors") == 0;
    bool runs = argc == 5 && strcmp(argv[2], "runs") == 0;
    bool entries = argc == 4 && strcmp(argv[2], "entries") == 0;
    if (!actors && !runs && !entries && (argc != 4 || strcmp(argv[2], "memories") != 0)) {
        (void)fprintf(stderr, "usage: fill_home FOLDER actors COUNT ENTRIES\n"
                              "       fill_home FOLDER memories|entries COUNT\n"
                              "       fill_home FOLDER runs COUNT EVENTS\n");
        return 2;
    }
    cx_io io = *cx_io_system();
    io.sync = never_sync;
    io.start_sync = never_start;
    const cx_home_options options = {.io = &io,
                                     .derivers = &cx_recorder_deriver,
                                     .deriver_count = 1,
                                     .waiting_bytes = WAITING_BYTES};
    cx_home *home;
    must(cx_home_create(argv[1], CX_SCHEME_CORTEX_1, &options, &failure));
    must(cx_home_open(argv[1], &options, &home, &failure));
    if (actors)
        fill_actors(home, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    else if (runs)
        fill_runs(home, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    else if (entries)
        fill_entries(home, strtoull(argv[3], NULL, 10));
    else
        fill_memories(home, strtoull(argv[3], NULL, 10));
    must(cx_home_close(home, &failure));
    return 0;
}
