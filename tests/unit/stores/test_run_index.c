/*
 * The index of runs: seals and event links by run, also of later entries (I1, I2 of stores/api.h),
 * and what damaged rows do to it (I2 of run_index.c).
 */
#include "base/hex.h"
#include "db/db.h"
#include "recorder/api.h"
#include "stores/run_index.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

#define RUN "run_20260101_000000_aee408847d35e44e99430f0979c3357b"
#define OTHER "run_20260101_000001_00000000000000000000000000000000"
#define ACTOR CX_STR("run:0123456789abcdef")
#define CLONE CX_STR("run:fedcba9876543210")

/* As every program opens a data directory: with the rows of runs. */
static bool open_with_runs(kit *k)
{
    cx_home_options options = kit_options();
    options.derivers = &cx_recorder_deriver;
    cx_status status = cx_home_open(k->path, &options, &k->home, &k->err);
    CHECK_STATUS(status, &k->err);
    return !cx_failed(status);
}

static void close_home(kit *k)
{
    CHECK_STATUS(cx_home_close(k->home, &k->err), &k->err);
    k->home = NULL;
}

static bool kit_with_runs(kit *k, const char *name)
{
    if (!kit_init(k, name, CX_SCHEME_CORTEX_1))
        return false;
    kit_close(k);
    return open_with_runs(k);
}

static void append(kit *k, cx_str actor, const char *kind, const char *payload)
{
    cx_txn *txn = NULL;
    const cx_entry_draft draft = {.kind = cx_str_z(kind),
                                  .created_at_ns = 1,
                                  .created_by = cx_str_bytes(CX_STR("test")),
                                  .payload = cx_str_bytes(cx_str_z(payload))};
    uint64_t seq;
    CHECK_STATUS(cx_txn_begin(k->home, actor, &txn, &k->err), &k->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, &seq, &k->err), &k->err);
    CHECK_STATUS(cx_txn_commit(txn, &k->err), &k->err);
}

static void append_event_of(kit *k, cx_str actor, const char *run, unsigned index, char digit)
{
    char payload[400], hash[65];
    memset(hash, digit, 64);
    hash[64] = 0;
    snprintf(payload, sizeof payload,
             "{\"event_sha256\":\"%s\",\"hash\":\"%s\",\"index\":%u,\"run_id\":\"%s"
             "\",\"type\":\"cortex.run.event.v1\"}",
             hash, hash, index, run);
    append(k, actor, "run.event", payload);
}

static void append_event(kit *k, unsigned index, char digit)
{
    append_event_of(k, ACTOR, RUN, index, digit);
}

static void append_seal(kit *k, const char *status)
{
    char payload[400];
    snprintf(payload, sizeof payload,
             "{\"events_count\":2,\"run_id\":\"" RUN "\",\"status\":\"%s\","
             "\"type\":\"cortex.run.seal.v1\"}",
             status);
    append(k, ACTOR, "run.seal", payload);
}

static bool link_is(const cx_run_known *known, size_t index, char digit)
{
    char hash[64];
    cx_digest expected;
    memset(hash, digit, sizeof hash);
    return index <= known->witness.event_count &&
           cx_digest_parse(cx_str_from(hash, sizeof hash), &expected) &&
           cx_digest_eq(&known->witness.events[index - 1], &expected);
}

CX_TEST(run_index_catches_up)
{
    kit k;
    cx_run_index *index = NULL;
    cx_run_known known;
    bool sealed = true;
    REQUIRE(kit_with_runs(&k, "run-book"));
    CHECK_STATUS(cx_run_index_open(k.home, cx_alloc_default(), &index, &k.err), &k.err);
    CHECK_STATUS(cx_run_index_find(index, CX_STR(RUN), &k.arena, &known, &k.err), &k.err);
    CHECK(!known.sealed && !known.witness.has_events && known.witness.seal == NULL);
    append_event(&k, 1, 'a');
    append_event(&k, 2, 'b');
    CHECK_STATUS(cx_run_index_find(index, CX_STR(RUN), &k.arena, &known, &k.err), &k.err);
    CHECK(!known.sealed && known.witness.has_events);
    CHECK_INT(known.witness.event_count, 2);
    CHECK(link_is(&known, 1, 'a') && link_is(&known, 2, 'b'));
    CHECK_STATUS(cx_run_index_sealed(index, CX_STR(RUN), &sealed, &k.err), &k.err);
    CHECK(!sealed);
    append_seal(&k, "SUCCESS");
    CHECK_STATUS(cx_run_index_find(index, CX_STR(RUN), &k.arena, &known, &k.err), &k.err);
    CHECK(known.sealed && known.witness.seal == &known.seal);
    CHECK_INT(known.seal_index, 2);
    CHECK_STR(known.actor, "run:0123456789abcdef");
    CHECK_STR(CX_JSON_GET_STR(&known.seal, "status"), "SUCCESS");
    CHECK_STATUS(cx_run_index_find(index, CX_STR("run_other"), &k.arena, &known, &k.err), &k.err);
    CHECK(!known.sealed && !known.witness.has_events);
    cx_run_index_close(index);
    kit_done(&k);
}

/* I1 */
CX_TEST(run_index_uses_the_first_entry)
{
    kit k;
    cx_run_index *index = NULL;
    cx_run_known known;
    REQUIRE(kit_with_runs(&k, "run-book-first"));
    append_event(&k, 1, 'a');
    append_seal(&k, "FAILURE");
    append_event(&k, 1, 'c');
    append_seal(&k, "SUCCESS");
    CHECK_STATUS(cx_run_index_open(k.home, cx_alloc_default(), &index, &k.err), &k.err);
    CHECK_STATUS(cx_run_index_find(index, CX_STR(RUN), &k.arena, &known, &k.err), &k.err);
    CHECK(link_is(&known, 1, 'a'));
    CHECK_STR(CX_JSON_GET_STR(&known.seal, "status"), "FAILURE");
    cx_run_index_close(index);
    kit_done(&k);
}

/* I2 */
CX_TEST(run_index_ignores_entries_that_are_not_ours)
{
    static const char *const payloads[] = {
        "nothing",
        "{}",
        "{\"type\":\"cortex.run.seal.v1\",\"run_id\":\"../x\"}",
        "{\"type\":\"another\",\"run_id\":\"" RUN "\"}",
    };
    kit k;
    cx_run_index *index = NULL;
    cx_run_known known;
    REQUIRE(kit_with_runs(&k, "run-book-others"));
    for (size_t i = 0; i < CX_COUNT_OF(payloads); i++)
        append(&k, ACTOR, "run.seal", payloads[i]);
    append(&k, ACTOR, "run.event",
           "{\"type\":\"cortex.run.event.v1\",\"run_id\":\"" RUN "\",\"index\":0,\"hash\":\"x\"}");
    append(&k, ACTOR, "note", "{\"type\":\"cortex.run.seal.v1\",\"run_id\":\"" RUN "\"}");
    /* Another actor cannot seal a run. */
    append(&k, CX_STR("andrew"), "run.seal",
           "{\"type\":\"cortex.run.seal.v1\",\"run_id\":\"" RUN "\"}");
    CHECK_STATUS(cx_run_index_open(k.home, cx_alloc_default(), &index, &k.err), &k.err);
    CHECK_STATUS(cx_run_index_find(index, CX_STR(RUN), &k.arena, &known, &k.err), &k.err);
    CHECK(!known.sealed && !known.witness.has_events);
    cx_run_index_close(index);
    kit_done(&k);
}

/* --- rows ------------------------------------------------------------------------------------- */

static cx_status find(kit *k, const char *run, cx_run_known *out)
{
    cx_run_index *index = NULL;
    CX_TRY(cx_run_index_open(k->home, cx_alloc_default(), &index, &k->err));
    cx_status status = cx_run_index_find(index, cx_str_z(run), &k->arena, out, &k->err);
    cx_run_index_close(index);
    return status;
}

static void change_tables(kit *k, const char *sql)
{
    char path[FOLDER_PATH_SIZE + 16];
    cx_db *db = NULL;
    (void)snprintf(path, sizeof path, "%s/cortex.db", k->path);
    CHECK_STATUS(cx_db_open(path, CX_DB_WRITE, &db, &k->err), &k->err);
    CHECK_STATUS(cx_db_run(db, sql, &k->err), &k->err);
    cx_db_close(db);
}

/* Two runs whose events are between each other, in two journals. */
static void append_two_runs(kit *k)
{
    for (unsigned i = 1; i <= 20; i++) {
        append_event_of(k, i == 13 ? CLONE : ACTOR, RUN, i, (char)('a' + i % 6));
        append_event_of(k, ACTOR, OTHER, i, '7');
    }
    append_event(k, 40, 'f');
    append_seal(k, "SUCCESS");
}

static void check_run(const cx_run_known *known)
{
    CHECK_INT(known->witness.event_count, 40);
    for (unsigned i = 1; i <= 20; i++)
        CHECK(link_is(known, i, (char)('a' + i % 6)));
    CHECK(!link_is(known, 21, 'f') && link_is(known, 40, 'f'));
    CHECK(known->sealed);
    CHECK_STR(known->actor, "run:0123456789abcdef");
}

CX_TEST(run_index_reads_nothing_of_other_runs)
{
    kit k;
    cx_run_known known;
    REQUIRE(kit_with_runs(&k, "run-book-alone"));
    append_two_runs(&k);
    CHECK_STATUS(find(&k, RUN, &known), &k.err);
    check_run(&known);
    close_home(&k);
    /* The entries of the other run cannot be read any more. */
    change_tables(&k, "DELETE FROM entry WHERE seq IN (1,3,5,7) AND actor ="
                      " (SELECT id FROM actors WHERE name='run:0123456789abcdef')");
    REQUIRE(open_with_runs(&k));
    CHECK_STATUS(find(&k, RUN, &known), &k.err);
    check_run(&known);
    CHECK(cx_failed(find(&k, OTHER, &known)));
    CHECK_STR(cx_str_z(k.err.tag), "DatabaseDamaged");
    kit_done(&k);
}

/* A row that is missing, or leads to another entry, is told, and no verdict rests on it. */
CX_TEST(run_index_tells_damaged_rows)
{
    static const char *const changes[] = {
        /* the row of an event, of all events, the first row */
        "DELETE FROM record WHERE hex(key) = hex('run/" RUN "/') || '00000003'",
        "DELETE FROM record WHERE key > CAST('run/" RUN "/' AS BLOB)"
        " AND key < CAST('run/" RUN "0' AS BLOB)",
        "DELETE FROM record WHERE key = CAST('run/" RUN "/' AS BLOB)",
    };
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        kit k;
        cx_run_known known;
        REQUIRE(kit_with_runs(&k, "run-book-damaged"));
        append_two_runs(&k);
        close_home(&k);
        change_tables(&k, changes[i]);
        REQUIRE(open_with_runs(&k));
        CHECK(cx_failed(find(&k, RUN, &known)));
        CHECK_STR(cx_str_z(k.err.tag), "DatabaseDamaged");
        CHECK_STATUS(find(&k, OTHER, &known), &k.err);
        CHECK_INT(known.witness.event_count, 20);
        kit_done(&k);
    }
}

/* Rows with good checksums that lead astray: made by a program that derives something else. */
static cx_status derive_astray(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                               size_t count, cx_err *err)
{
    cx_run_row_key key;
    cx_bytes name, value;
    bool found = false;
    CX_TRY(cx_recorder_deriver.derive(at, entry, changes, count, err));
    if (entry == NULL || !cx_str_is(entry->kind, "note"))
        return CX_SUCCESS;
    name = cx_run_event_row_name(&key, CX_STR(RUN), 3);
    CX_TRY(cx_derive_get_common(at, name, &value, &found, err));
    CHECK(found);
    return cx_derive_put_common(at, name, entry->payload, err);
}

CX_TEST(run_index_does_not_believe_rows)
{
    static const struct {
        const char *payload;
        size_t size;
    } astray[] = {
        {"\0\0\0\0\0\0\0\0", 8},   /* event 1 of this run */
        {"\0\0\0\0\0\0\0\5", 8},   /* event 3 of the other */
        {"\0\0\0\0\0\0\0\x28", 8}, /* the seal */
        {"\0\0\0\0\0\0\1\0", 8},   /* no entry */
        {"\0\0\0\0\0\0\0\0andrew", 14}, {"\0\0\0", 3},
    };
    const cx_deriver deriver = {.name = cx_recorder_deriver.name, .derive = derive_astray};
    for (size_t i = 0; i < CX_COUNT_OF(astray); i++) {
        kit k;
        cx_run_known known;
        REQUIRE(kit_init(&k, "run-book-astray", CX_SCHEME_CORTEX_1));
        kit_close(&k);
        cx_home_options options = kit_options();
        options.derivers = &deriver;
        CHECK_STATUS(cx_home_open(k.path, &options, &k.home, &k.err), &k.err);
        append_two_runs(&k);
        cx_txn *txn = NULL;
        const cx_entry_draft draft = {.kind = CX_STR("note"),
                                      .created_at_ns = 1,
                                      .payload = cx_bytes_from(astray[i].payload, astray[i].size)};
        CHECK_STATUS(cx_txn_begin(k.home, CX_STR("andrew"), &txn, &k.err), &k.err);
        CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &k.err), &k.err);
        CHECK_STATUS(cx_txn_commit(txn, &k.err), &k.err);
        CHECK(cx_failed(find(&k, RUN, &known)));
        CHECK_STR(cx_str_z(k.err.tag), "DatabaseDamaged");
        CHECK_STATUS(find(&k, OTHER, &known), &k.err);
        kit_done(&k);
    }
}

/* An entry whose content can be erased has no row: the tables must not change with it. */
CX_TEST(run_index_ignores_what_can_be_erased)
{
    kit k;
    cx_run_known known;
    cx_txn *txn = NULL;
    REQUIRE(kit_with_runs(&k, "run-book-erasable"));
    const cx_entry_draft draft = {.kind = CX_STR("run.seal"),
                                  .created_at_ns = 1,
                                  .committed = true,
                                  .payload = cx_str_bytes(CX_STR(
                                      "{\"type\":\"cortex.run.seal.v1\",\"run_id\":\"" RUN "\"}"))};
    CHECK_STATUS(cx_txn_begin(k.home, ACTOR, &txn, &k.err), &k.err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &k.err), &k.err);
    CHECK_STATUS(cx_txn_commit(txn, &k.err), &k.err);
    CHECK_STATUS(find(&k, RUN, &known), &k.err);
    CHECK(!known.sealed);
    kit_done(&k);
}

/* More runs than are kept, each asked twice, with entries in between. */
CX_TEST(run_index_forgets_and_reads_again)
{
    kit k;
    cx_run_index *index = NULL;
    cx_run_known known;
    bool sealed = true;
    char run[] = "run_20260101_000001_00000000000000000000000000000000";
    REQUIRE(kit_with_runs(&k, "run-book-many"));
    CHECK_STATUS(cx_run_index_open(k.home, cx_alloc_default(), &index, &k.err), &k.err);
    for (unsigned round = 1; round <= 2; round++)
        for (unsigned i = 0; i < 150; i++) {
            (void)snprintf(run + 20, sizeof run - 20, "%032u", i);
            append_event_of(&k, ACTOR, run, round, 'a');
            CHECK_STATUS(cx_run_index_sealed(index, cx_str_z(run), &sealed, &k.err), &k.err);
            CHECK(!sealed);
            CHECK_STATUS(cx_run_index_find(index, cx_str_z(run), &k.arena, &known, &k.err), &k.err);
            CHECK_INT(known.witness.event_count, round);
        }
    cx_run_index_close(index);
    kit_done(&k);
}
