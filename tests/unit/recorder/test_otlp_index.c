/*
 * test_otlp_index.c - spans and logs in the ledger: once, told apart, found again.
 */
#include "recorder/otlp_index.h"

#include "tests/support/recorder_fixture.h"

static const uint8_t trace_a[16] = {1}, trace_b[16] = {2};
static const uint8_t span_1[8] = {1}, span_2[8] = {2};

static cx_otlp_item item_of(const uint8_t *trace, const uint8_t *span, const char *content)
{
    return (cx_otlp_item){.trace_id = trace,
                          .span_id = span,
                          .content = cx_digest_of(cx_str_bytes(cx_str_z(content)))};
}

static cx_otlp_stored take(fixture *s, const char *request, bool is_logs, const cx_otlp_item *items,
                           size_t count)
{
    const cx_otlp_delivery delivery = {.is_logs = is_logs,
                                       .request = cx_str_bytes(cx_str_z(request)),
                                       .sender = CX_STR("open"),
                                       .items = items,
                                       .item_count = count};
    cx_otlp_stored kept = {.stored = 99};
    CHECK_STATUS(cx_recorder_otlp_store(s->recorder, &delivery, &kept, &s->err), &s->err);
    return kept;
}

static size_t entries(fixture *s, const uint8_t *trace)
{
    const uint64_t *seqs;
    size_t count = 99;
    CHECK_STATUS(cx_recorder_otlp_entries(s->home, trace, &s->arena, &seqs, &count, &s->err),
                 &s->err);
    return count;
}

CX_TEST(otlp_index_stores_once)
{
    fixture s;
    fixture_init(&s, "otlp-book", NULL);
    CHECK_INT(entries(&s, NULL), 0);
    const cx_otlp_item first[] = {item_of(trace_a, span_1, "x"), item_of(trace_a, span_2, "y"),
                                  item_of(trace_a, span_1, "x")};
    cx_otlp_stored kept = take(&s, "r1", false, first, 3);
    CHECK(kept.stored == 2 && kept.duplicates == 1 && kept.conflicts == 0 && kept.has_entry);
    kept = take(&s, "r1", false, first, 3);
    CHECK(kept.stored == 0 && kept.duplicates == 3 && !kept.has_entry);
    kept = take(&s, "another batch", false, first + 1, 1);
    CHECK(kept.duplicates == 1 && !kept.has_entry);
    fixture_reopen(&s);
    const cx_otlp_item other[] = {item_of(trace_a, span_1, "told anew"),
                                  item_of(trace_b, span_1, "x")};
    kept = take(&s, "r2", false, other, 2);
    CHECK(kept.stored == 1 && kept.conflicts == 1 && kept.has_entry);
    CHECK_INT(kept.seq, 1);
    kept = take(&s, "r3", false, other, 1);
    CHECK(kept.duplicates == 1 && !kept.has_entry);
    kept = take(&s, "nothing", false, NULL, 0);
    CHECK(!kept.has_entry && kept.stored == 0);
    CHECK_INT(entries(&s, NULL), 2);
    CHECK_INT(entries(&s, trace_a), 2);
    CHECK_INT(entries(&s, trace_b), 1);
    fixture_done(&s);
}

/* A row of an earlier version has the hash of the JSON as it was spelt. */
CX_TEST(otlp_index_knows_rows_of_earlier_versions)
{
    fixture s;
    cx_json value = cx_json_make_str(CX_STR("span"));
    fixture_init(&s, "otlp-earlier", NULL);
    cx_otlp_item item = item_of(trace_a, span_1, "\"span\"");
    CHECK_INT(take(&s, "r1", false, &item, 1).stored, 1);
    item = item_of(trace_a, span_1, "by meaning");
    item.value = &value;
    cx_otlp_stored again = take(&s, "r2", false, &item, 1);
    CHECK(again.duplicates == 1 && again.conflicts == 0 && !again.has_entry);
    value = cx_json_make_str(CX_STR("other"));
    CHECK_INT(take(&s, "r3", false, &item, 1).conflicts, 1);
    fixture_done(&s);
}

CX_TEST(otlp_index_logs_are_distinguished_by_request)
{
    fixture s;
    fixture_init(&s, "otlp-logs", NULL);
    const cx_otlp_item logs[] = {item_of(trace_a, NULL, "x"), item_of(NULL, NULL, "x")};
    CHECK_INT(take(&s, "r1", true, logs, 2).stored, 2);
    CHECK_INT(take(&s, "r1", true, logs, 2).duplicates, 2);
    CHECK_INT(take(&s, "r2", true, logs, 2).stored, 2);
    CHECK_INT(entries(&s, trace_a), 2);
    fixture_done(&s);
}

CX_TEST(otlp_index_lists_traces)
{
    fixture s;
    const cx_otlp_trace_row *rows;
    size_t count;
    fixture_init(&s, "otlp-traces", NULL);
    const cx_otlp_item items[] = {item_of(trace_b, span_1, "x"), item_of(trace_a, span_1, "x"),
                                  item_of(trace_b, span_2, "y")};
    (void)take(&s, "r1", false, items, 3);
    CHECK_STATUS(cx_recorder_otlp_traces(s.home, NULL, 10, &s.arena, &rows, &count, &s.err),
                 &s.err);
    REQUIRE(count == 2);
    CHECK(memcmp(rows[0].trace_id, trace_a, 16) == 0 && rows[0].spans == 1);
    CHECK(memcmp(rows[1].trace_id, trace_b, 16) == 0 && rows[1].spans == 2);
    CHECK_STATUS(cx_recorder_otlp_traces(s.home, trace_a, 10, &s.arena, &rows, &count, &s.err),
                 &s.err);
    REQUIRE(count == 1);
    CHECK(memcmp(rows[0].trace_id, trace_b, 16) == 0);
    CHECK_STATUS(cx_recorder_otlp_traces(s.home, NULL, 1, &s.arena, &rows, &count, &s.err), &s.err);
    CHECK_INT(count, 1);
    fixture_done(&s);
}
