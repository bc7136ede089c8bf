/*
 * test_home_kept.c - verification that keeps its state: stopped after every few commits it comes to
 * the same end, what was found stays found, and of a log that was changed at or after the point it
 * never says that it holds.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "ledger/internal.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { ENTRIES = 23 };

typedef struct place {
    char path[FOLDER_PATH_SIZE], folder[FOLDER_PATH_SIZE];
    char state[FOLDER_PATH_SIZE + 8];
    cx_home *home;
    cx_arena arena;
    cx_err err;
} place;

static void place_open(place *p)
{
    const cx_home_options options = kit_options();
    CHECK_STATUS(cx_home_open(p->path, &options, &p->home, &p->err), &p->err);
}

static void place_close(place *p)
{
    CHECK_STATUS(cx_home_close(p->home, &p->err), &p->err);
    p->home = NULL;
}

static void append(place *p, const char *actor, unsigned number)
{
    cx_txn *txn;
    char text[32];
    (void)snprintf(text, sizeof text, "payload %u", number);
    const cx_entry_draft draft = {.kind = CX_STR("raw"),
                                  .created_at_ns = (int64_t)number,
                                  .payload = cx_str_bytes(cx_str_z(text)),
                                  .committed = number % 3 == 0};
    CHECK_STATUS(cx_txn_begin(p->home, cx_str_z(actor), &txn, &p->err), &p->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &p->err), &p->err);
    CHECK_STATUS(cx_txn_put(txn, cx_str_bytes(cx_str_z(text)), cx_str_bytes(CX_STR("a value")),
                            false, &p->err),
                 &p->err);
    CHECK_STATUS(cx_txn_commit(txn, &p->err), &p->err);
}

static void fill(place *p, unsigned from)
{
    cx_home_root_entry root;
    cx_manifest manifest;
    for (unsigned i = from; i < from + ENTRIES; i++)
        append(p, i % 4 == 0 ? "other" : "one", i);
    CHECK_STATUS(cx_snapshot_make(p->home, CX_STR("one"), CX_STR("explicit"), 7, &p->arena,
                                  &manifest, &p->err),
                 &p->err);
    CHECK_STATUS(cx_home_root_record(p->home, 100 + from, &root, &p->err), &p->err);
    append(p, "other", from + 200);
}

static void place_init(place *p, const char *name)
{
    const cx_home_options options = kit_options();
    char side[64];
    *p = (place){.home = NULL};
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    folder_fresh(p->path, name);
    (void)snprintf(side, sizeof side, "%s_state", name);
    folder_fresh(p->folder, side);
    CHECK_INT(mkdir(p->folder, 0700), 0);
    (void)snprintf(p->state, sizeof p->state, "%s/state", p->folder);
    CHECK_STATUS(cx_home_create(p->path, CX_SCHEME_CORTEX_1, &options, &p->err), &p->err);
    place_open(p);
}

static void place_done(place *p)
{
    cx_arena_done(&p->arena);
    folder_remove(p->path);
    folder_remove(p->folder);
}

static bool counts_down(void *arg)
{
    unsigned *left = arg;
    return *left == 0 || --*left != 0;
}

/* The totals of a verification with the state; stopped after `stop` commits (0 = never). */
static cx_status verify(const place *p, unsigned stop, cx_home_totals *out, cx_verdict *verdict,
                        cx_err *err)
{
    const cx_home_verify_options options = {
        .home = kit_options(), .state = p->state, .go_on = counts_down, .go_on_arg = &stop};
    cx_home_report *report;
    CX_TRY(cx_home_verify(p->path, &options, &report, err));
    *out = *cx_home_report_totals(report);
    out->tables_note = (cx_str){NULL, 0};
    *verdict = cx_home_report_verdict(report);
    cx_home_report_close(report);
    return CX_SUCCESS;
}

/* Stopped again and again until it comes to its end; how often. */
static unsigned verify_in_parts(const place *p, unsigned commits, cx_home_totals *out,
                                cx_verdict *verdict)
{
    for (unsigned stops = 0;; stops++) {
        cx_err err = {0};
        cx_status status = verify(p, commits, out, verdict, &err);
        if (!cx_failed(status) || stops > 200)
            return stops;
        CHECK_STR(cx_str_z(err.tag == NULL ? err.message : err.tag), "Interrupted");
        if (status.code != CX_E_BUSY)
            return stops;
    }
}

CX_TEST(home_kept_verification_goes_on_where_it_was_stopped)
{
    static const unsigned parts[] = {1, 2, 7, 0};
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++) {
        place p;
        cx_home_totals totals, again;
        cx_verdict verdict = CX_BROKEN;
        place_init(&p, "kept_parts");
        fill(&p, 0);
        place_close(&p);
        const unsigned stops = verify_in_parts(&p, parts[i], &totals, &verdict);
        CHECK(parts[i] == 0 ? stops == 0 : stops > 2);
        CHECK_INT(verdict, CX_HOLDS);
        CHECK(totals.since == (stops != 0) && totals.tables_checked && totals.has_home_root);
        CHECK_INT(totals.actors, 3);
        CHECK_INT(totals.since_entries + totals.entries, ENTRIES + 2);
        /* Nothing new, then something. */
        CHECK_INT(verify_in_parts(&p, 0, &again, &verdict), 0);
        CHECK(again.since && again.entries == 0 && again.commits == 0 && verdict == CX_HOLDS);
        CHECK_INT(again.since_entries, ENTRIES + 2);
        CHECK(again.home_root.seq == totals.home_root.seq);
        place_open(&p);
        fill(&p, 50);
        place_close(&p);
        (void)verify_in_parts(&p, parts[i], &again, &verdict);
        CHECK_INT(verdict, CX_HOLDS);
        CHECK(again.since && again.tables_checked);
        CHECK_INT(again.since_entries + again.entries, 2 * (ENTRIES + 2));
        CHECK_INT(again.home_root.seq, 1);
        CHECK_INT(again.manifests, 1);
        place_done(&p);
    }
}

static void flip_byte(const char *name, uint64_t at)
{
    FILE *file = fopen(name, "r+b");
    REQUIRE(file != NULL);
    (void)fseek(file, (long)at, SEEK_SET);
    const int byte = fgetc(file);
    (void)fseek(file, (long)at, SEEK_SET);
    (void)fputc(byte ^ 0x10, file);
    (void)fclose(file);
}

/* One byte of the log at a time, from `from` on; the state is of the log before. */
static void flip_log(const place *p, uint64_t from, uint64_t to)
{
    char name[FOLDER_PATH_SIZE + 32];
    (void)snprintf(name, sizeof name, "%s/log/000000.seg", p->path);
    for (uint64_t at = from; at < to; at += 13) {
        cx_home_totals totals;
        cx_verdict verdict = CX_HOLDS;
        cx_err err = {0};
        flip_byte(name, at);
        cx_status status = verify(p, 0, &totals, &verdict, &err);
        CHECK(cx_failed(status) || (verdict == CX_BROKEN && totals.since));
        flip_byte(name, at);
    }
}

static uint64_t log_end(const place *p)
{
    cx_log *log;
    cx_log_opened opened;
    cx_err err = {0};
    char folder[FOLDER_PATH_SIZE + 8];
    const cx_log_options options = {.alloc = cx_alloc_default(), .read_only = true};
    uint64_t end = 0;
    (void)snprintf(folder, sizeof folder, "%s/log", p->path);
    CHECK_STATUS(cx_log_open(folder, &options, &log, &opened, &err), &err);
    cx_log_scan *scan;
    CHECK_STATUS(cx_log_scan_begin(log, 0, &scan, &err), &err);
    for (bool done = false; !done;) {
        cx_log_commit commit;
        CHECK_STATUS(cx_log_scan_next(scan, &commit, &done, &err), &err);
        if (!done)
            end = commit.items[commit.count - 1].place.offset;
    }
    cx_log_scan_end(scan);
    cx_log_close(log);
    return end;
}

CX_TEST(home_kept_state_never_hides_what_came_after)
{
    place p;
    cx_home_totals totals;
    cx_verdict verdict = CX_BROKEN;
    place_init(&p, "kept_flips");
    append(&p, "one", 1);
    append(&p, "one", 2);
    place_close(&p);
    CHECK_INT(verify_in_parts(&p, 0, &totals, &verdict), 0);
    CHECK_INT(verdict, CX_HOLDS);
    const uint64_t point = log_end(&p);
    place_open(&p);
    append(&p, "one", 3);
    append(&p, "two", 4);
    place_close(&p);
    flip_log(&p, point + 16, log_end(&p));
    /* Unchanged again: no finding has stayed in the state. */
    CHECK_INT(verify_in_parts(&p, 0, &totals, &verdict), 0);
    CHECK(verdict == CX_HOLDS && totals.since && totals.entries == 2);
    place_done(&p);
}
