/*
 * The index of runs: seals and event links by run, also of later entries (I1, I2 of stores/api.h).
 */
#include "base/hex.h"
#include "stores/run_index.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

#define RUN "run_20260101_000000_aee408847d35e44e99430f0979c3357b"
#define ACTOR CX_STR("run:0123456789abcdef")

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

static void append_event(kit *k, unsigned index, char digit)
{
    char payload[400], hash[65];
    memset(hash, digit, 64);
    hash[64] = 0;
    snprintf(payload, sizeof payload,
             "{\"event_sha256\":\"%s\",\"hash\":\"%s\",\"index\":%u,\"run_id\":\"" RUN
             "\",\"type\":\"cortex.run.event.v1\"}",
             hash, hash, index);
    append(k, ACTOR, "run.event", payload);
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
    REQUIRE(kit_init(&k, "run-book", CX_SCHEME_CORTEX_1));
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
    REQUIRE(kit_init(&k, "run-book-first", CX_SCHEME_CORTEX_1));
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
    REQUIRE(kit_init(&k, "run-book-others", CX_SCHEME_CORTEX_1));
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
