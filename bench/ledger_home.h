/*
 * ledger_home.h - homes for the benchmarks of the ledger, and taking turns with a reference.
 *
 * A failure ends the program: what is measured has no result then.
 */
#ifndef CX_BENCH_LEDGER_HOME_H
#define CX_BENCH_LEDGER_HOME_H

#include "ledger/home.h"

enum { BENCH_RECORD_SIZE = 4096 };

/* Bytes that nothing could compress. */
extern uint8_t bench_record[BENCH_RECORD_SIZE];

void bench_must(cx_status status);
void bench_must_be(bool good, const char *what); /* errno says why */
extern cx_err bench_err;

/* A folder of its own below `where`, for all that the program writes; and away with it. */
void bench_folder_make(const char *where);
int bench_folder_remove(void);
/* A name in it.  The last four stay. */
const char *bench_path(const char *name);

void bench_home_make(const char *name);
/* `derived`: with what the module `memory` derives, too; else bare records and the trees. */
cx_home *bench_home_open(const char *name, bool derived);

/* The next frame of the turn writes the Head of memory `number` as of `time`. */
void bench_put_memory(cx_txn *txn, uint64_t number, int64_t time);
/* The same Head with a frame that is there already. */
void bench_put_state(cx_txn *txn, uint64_t number, int64_t time);
/* A home with so many memories; returns how many a second were written. */
double bench_home_fill(const char *name, uint64_t records);

/* Roots with everything that was written so far, on the disk. */
void bench_roots(cx_home *home);

typedef struct bench_commits {
    const char *id, *what;
    void (*ours)(void *arg);
    void (*theirs)(void *arg);
    void *arg;
    size_t count;   /* records a commit */
    size_t times;   /* commits a turn */
    double target;  /* ours / theirs in records a second */
    double seconds; /* of measuring */
} bench_commits;

/* Turns of a few milliseconds, each side first every other time; a ratio is of two neighbours.
 * Next to it the CPU time of this thread: what else it took, the disk did. */
void bench_compare_commits(const bench_commits *what);

/* A row of times, where less is better: ours / theirs is at most `target`.  Sorts both. */
void bench_print_times(const char *id, const char *what, double *ours, double *theirs, size_t n,
                       double target);

#endif
