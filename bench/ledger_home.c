/*
 * ledger_home.c - see ledger_home.h.
 */
#include "bench/ledger_home.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "bench/bench.h"
#include "memory/memory.h"

enum { TURNS_MAX = 20000 };

uint8_t bench_record[BENCH_RECORD_SIZE];
cx_err bench_err;
static char folder[3000];

void bench_must(cx_status status)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench: %s\n", bench_err.message);
        exit(1);
    }
}

void bench_must_be(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

void bench_folder_make(const char *where)
{
    (void)snprintf(folder, sizeof folder, "%s/cortex-bench-ledger.%ld", where, (long)getpid());
    bench_must_be(mkdir(folder, 0700) == 0, folder);
    for (size_t i = 0; i < sizeof bench_record; i++)
        bench_record[i] = (uint8_t)(((uint64_t)i * i * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

int bench_folder_remove(void)
{
    char command[3200];
    (void)snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    return system(command) == 0 ? 0 : 1;
}

const char *bench_path(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static cx_home_options home_options(bool derived)
{
    cx_home_options options = {0};
    if (derived) {
        options.derivers = &cx_memory_deriver;
        options.deriver_count = 1;
    }
    return options;
}

void bench_home_make(const char *name)
{
    const cx_home_options options = home_options(true);
    bench_must(cx_home_create(bench_path(name), CX_SCHEME_CORTEX_1, &options, &bench_err));
}

cx_home *bench_home_open(const char *name, bool derived)
{
    const cx_home_options options = home_options(derived);
    cx_home *home;
    bench_must(cx_home_open(bench_path(name), &options, &home, &bench_err));
    return home;
}

void bench_roots(cx_home *home)
{
    cx_roots roots;
    bench_must(cx_home_roots(home, CX_STR("bench"), &roots, &bench_err));
}

/* The Head of a memory, in a buffer that stays until the next one is made. */
static cx_bytes head_of(uint64_t number, int64_t time, cx_id *out_id)
{
    static cx_buf head;
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    *out_id = (cx_id){{1}};
    memcpy(out_id->bytes + 1, &number, 7);
    memcpy(out_id->bytes + 8, &mixed, 8);
    if (head.alloc == NULL)
        cx_buf_init(&head, cx_alloc_default());
    cx_buf_clear(&head);
    const cx_head record = {.id = *out_id,
                            .type = 2,
                            .current_version = 1,
                            .actor_scope = CX_STR("bench"),
                            .visibility = 1,
                            .last_updated_at = time,
                            .forms = {CX_STR("is(matrix://x)=the sky is blue"),
                                      CX_STR("is(matrix://x)=the sky is blue")}};
    cx_head_encode(&record, &head);
    return cx_buf_bytes(&head);
}

static void put_head(cx_txn *txn, const cx_id *id, cx_bytes head)
{
    uint8_t key[18] = {'m', '/'};
    memcpy(key + 2, id->bytes, 16);
    bench_must(cx_txn_put(txn, cx_bytes_from(key, sizeof key), head, true, &bench_err));
}

void bench_put_state(cx_txn *txn, uint64_t number, int64_t time)
{
    cx_id id;
    cx_bytes head = head_of(number, time, &id);
    put_head(txn, &id, head);
}

void bench_put_memory(cx_txn *txn, uint64_t number, int64_t time)
{
    static cx_buf payload;
    cx_id id;
    cx_bytes head = head_of(number, time, &id);
    if (payload.alloc == NULL)
        cx_buf_init(&payload, cx_alloc_default());
    cx_buf_clear(&payload);
    cx_payload write = {.kind = CX_ENTRY_UPDATE_HEAD};
    write.as.update_head = (cx_payload_update_head){id, 1, cx_digest_of(head)};
    cx_payload_encode(&write, &payload);
    const cx_entry_draft draft = {.kind = CX_STR("update_head"),
                                  .created_at_ns = 1,
                                  .payload = cx_buf_bytes(&payload),
                                  .subject = &id};
    bench_must(cx_txn_entry(txn, &draft, NULL, &bench_err));
    put_head(txn, &id, head);
}

double bench_home_fill(const char *name, uint64_t records)
{
    bench_home_make(name);
    cx_home *home = bench_home_open(name, false);
    double before = bench_seconds(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < records;) {
        cx_txn *txn;
        uint64_t commit;
        bench_must(cx_txn_begin(home, CX_STR("bench"), &txn, &bench_err));
        for (int j = 0; j < 256 && i < records; j++)
            bench_put_memory(txn, i++, 1700000000);
        bench_must(cx_txn_commit_later(txn, &commit, &bench_err));
    }
    bench_must(cx_home_close(home, &bench_err));
    return (double)records / (bench_seconds(CLOCK_MONOTONIC) - before);
}

/* --- taking turns ---------------------------------------------------------------------------- */

typedef struct side {
    double seconds[TURNS_MAX];
    double cpu; /* of this thread, in all turns */
} side;

static void measure_side(side *s, size_t txn, void (*work)(void *), const bench_commits *what)
{
    double wall = bench_seconds(CLOCK_MONOTONIC), cpu = bench_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < what->times; i++)
        work(what->arg);
    s->cpu += bench_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    s->seconds[txn] = (bench_seconds(CLOCK_MONOTONIC) - wall) / (double)what->times;
}

static void print_side(const char *name, side *s, size_t txns, const bench_commits *what)
{
    double wall = 0;
    for (size_t i = 0; i < txns; i++)
        wall += s->seconds[i] * (double)what->times;
    bench_rate rate = bench_rate_of(s->seconds, txns, (double)what->count, s->cpu / wall);
    bench_print_side(name, &rate, 1, "records/s");
    printf("     %-28s %.2f us of CPU a record\n", "",
           s->cpu * 1e6 / (double)(txns * what->times * what->count));
}

void bench_compare_commits(const bench_commits *what)
{
    static side ours, theirs;
    static double ratios[TURNS_MAX];
    size_t txns = 0;
    ours.cpu = theirs.cpu = 0;
    what->theirs(what->arg);
    what->ours(what->arg);
    double end = bench_seconds(CLOCK_MONOTONIC) + what->seconds;
    while (txns < TURNS_MAX && bench_seconds(CLOCK_MONOTONIC) < end) {
        if (txns % 2 == 0)
            measure_side(&theirs, txns, what->theirs, what);
        measure_side(&ours, txns, what->ours, what);
        if (txns % 2 != 0)
            measure_side(&theirs, txns, what->theirs, what);
        ratios[txns] = theirs.seconds[txns] / ours.seconds[txns];
        txns++;
    }
    qsort(ratios, txns, sizeof *ratios, bench_compare);
    bench_rate home = bench_rate_of(ours.seconds, txns, (double)what->count, 0);
    bench_rate reference = bench_rate_of(theirs.seconds, txns, (double)what->count, 0);
    double ratio = ratios[txns / 2];
    printf("%s@%zu %s, %zu a commit: ours %.4g, reference %.4g, ratio %.2f [%.2f..%.2f]"
           " (target %g): %s\n",
           what->id, what->count, what->what, what->count, home.median, reference.median, ratio,
           ratios[txns / 4], ratios[txns * 3 / 4], what->target,
           ratio >= what->target ? "ok" : "below");
    print_side("home", &ours, txns, what);
    print_side("reference", &theirs, txns, what);
}

void bench_print_times(const char *id, const char *what, double *ours, double *theirs, size_t n,
                       double target)
{
    double ratios[64];
    for (size_t i = 0; i < n; i++)
        ratios[i] = theirs[i] / ours[i];
    qsort(ratios, n, sizeof *ratios, bench_compare);
    qsort(ours, n, sizeof *ours, bench_compare);
    qsort(theirs, n, sizeof *theirs, bench_compare);
    printf("%s %s: ours %.4g, reference %.4g, ratio %.2f [%.2f..%.2f] (target %.3g): %s\n", id,
           what, 1 / ours[n / 2], 1 / theirs[n / 2], ratios[n / 2], ratios[0], ratios[n - 1],
           1 / target, ratios[n / 2] >= 1 / target ? "ok" : "below");
    printf("     ours %.3f / %.3f / %.3f s, reference %.3f / %.3f / %.3f s (min/median/max)\n",
           ours[0], ours[n / 2], ours[n - 1], theirs[0], theirs[n / 2], theirs[n - 1]);
}
