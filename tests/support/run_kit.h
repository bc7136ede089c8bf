/*
 * run_kit.h - a runtime root in a temporary folder, a ledger in memory, and the golden run written
 * again through bundle.h.
 */
#ifndef CX_TESTS_UNIT_RUN_KIT_H
#define CX_TESTS_UNIT_RUN_KIT_H

#include "audit/verify.h"
#include "tests/support/folder.h"

#define KIT_RUN "run_20260101_000000_aee408847d35e44e99430f0979c3357b"
#define KIT_TASK "golden_success"

typedef struct kit_entry {
    char kind[16];
    cx_str payload;
} kit_entry;

typedef struct run_kit {
    char root[FOLDER_PATH_SIZE];
    cx_run_store store;
    cx_arena arena;
    cx_run_ledger ledger;
    CX_VEC(kit_entry) entries;
    bool ledger_fails;
    bool seal_fails; /* only for the seal */
    cx_err err;
} run_kit;

/* The system's, without syncing: tests that count on it pass their own. */
const cx_io *run_kit_io(void);
/* `io` (NULL = run_kit_io) and `alloc` may be NULL. */
bool run_kit_init(run_kit *kit, const char *name, const cx_io *io, const cx_alloc *alloc);
void run_kit_done(run_kit *kit);

/* Plain paths of the root. */
cx_str run_kit_path(run_kit *kit, const char *relative);
/* The file's text, in the arena; data NULL when it is not there. */
cx_str run_kit_read(run_kit *kit, const char *relative);

/* The golden run, begun under its id: nothing but owner and empty events. */
CX_RESULT run_kit_begin(run_kit *kit, cx_run **out, cx_err *err);
/* Its files and the first `events` of its events (0 = all but RUN_FINISHED). */
CX_RESULT run_kit_fill(run_kit *kit, cx_run *run, size_t events, cx_err *err);
/* Finishes and seals it as SUCCESS. */
CX_RESULT run_kit_seal(run_kit *kit, cx_run *run, cx_run_sealed *out, cx_err *err);
/* All of it. */
CX_RESULT run_kit_write(run_kit *kit, cx_err *err);

/* What the ledger in memory knows: the last seal, kept in *seal, and the hash of each event. */
CX_RESULT run_kit_witness(run_kit *kit, cx_json *seal, cx_run_witness *out, cx_err *err);
/* Verifies what is there, with what the ledger in memory knows when `ledger` is set.  "holds",
 * "broken: code code", "indeterminate", or the error. */
const char *run_kit_verdict(run_kit *kit, bool ledger);

#endif
