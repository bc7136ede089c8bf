/*
 * test_calls_work.c - Embed, Compact, Attest, Raw (ledger.md §10, §10.1).
 */
#include "tests/unit/memory/calls.h"

#define WITH_HOME(kit, name)                                   \
    calls kit;                                                 \
    if (!calls_init(&kit, name, "andrew", CX_SCHEME_CORTEX_1)) \
        return;

/* --- Embed ------------------------------------------------------------------------------------ */

static cx_status embed(calls *kit, const cx_id *id, uint64_t version, const char *model, size_t dim)
{
    static const float values[4] = {1.0f, 0.5f, -0.25f, 0.0f};
    return cx_memory_embed(kit->memory, id, version, cx_str_z(model), values, dim, &kit->err);
}

CX_TEST(embed_touches_nothing_but_the_reference)
{
    WITH_HOME(kit, "embed");
    cx_uri a = calls_write_fact(&kit, "a"), b = calls_write_fact(&kit, "b"), next;
    cx_memory_view before = calls_latest(&kit, &a.id);
    CHECK_STATUS(embed(&kit, &a.id, 1, "m", 3), &kit.err);
    cx_memory_view view = calls_latest(&kit, &a.id);
    CHECK(view.head.embedded);
    CHECK_INT(view.head.vertex, 1);
    CHECK_INT(view.head.dim, 3);
    CHECK_STR(view.head.model, "m");
    CHECK_INT(view.head.last_updated_at, before.head.last_updated_at);
    CHECK_STATUS(embed(&kit, &b.id, 1, "m", 3), &kit.err);
    view = calls_latest(&kit, &b.id);
    CHECK_INT(view.head.vertex, 2);
    CHECK_REFUSED(&kit, embed(&kit, &a.id, 2, "m", 3), "StaleVersion");
    CHECK_REFUSED(&kit, embed(&kit, &a.id, 1, "m", 4), "DimMismatch");
    CHECK_REFUSED(&kit, embed(&kit, &a.id, 1, "", 3), "InvalidArgument");
    CHECK_REFUSED(&kit, embed(&kit, &a.id, 1, "m", 0), "InvalidArgument");
    const cx_id unknown = fixture_id(9);
    CHECK_REFUSED(&kit, embed(&kit, &unknown, 1, "m", 3), "NotFound");
    const cx_memory_update update = {.data = calls_fact(&kit, "a2")};
    CHECK_STATUS(cx_memory_update_at(kit.memory, &a, &update, &next, &kit.err), &kit.err);
    CHECK_REFUSED(&kit, embed(&kit, &a.id, 1, "m", 3), "StaleVersion");
    CHECK_STATUS(embed(&kit, &a.id, 2, "other", 4), &kit.err);
    view = calls_latest(&kit, &a.id);
    CHECK_INT(view.head.vertex, 1);
    CHECK_INT(view.head.current_version, 2);
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &b, CX_STR(""), CX_STR(""), &kit.err), &kit.err);
    CHECK_REFUSED(&kit, embed(&kit, &b.id, 1, "m", 3), "Tombstoned");
    calls_done(&kit);
}

/* --- Compact ---------------------------------------------------------------------------------- */

static cx_uri write_typed(calls *kit, uint8_t type, const char *json)
{
    const cx_memory_write write = {.type = type, .data = calls_data(kit, type, json)};
    return calls_write(kit, &write);
}

static cx_status compact(calls *kit, const cx_memory_compact *what, cx_checkpoint_record *out)
{
    return cx_memory_compact_context(kit->memory, what, &kit->arena, out, &kit->err);
}

CX_TEST(compact_keeps_what_must_stay)
{
    WITH_HOME(kit, "compact");
    cx_uri all[8];
    all[0] = write_typed(&kit, CX_TYPE_IDENTITY, "{\"name\":\"n\"}");
    all[1] = write_typed(&kit, CX_TYPE_CONSTRAINT,
                         "{\"statement\":\"x\",\"polarity\":\"dont\",\"strength\":\"hard\","
                         "\"source\":\"learned\"}");
    all[2] = write_typed(&kit, CX_TYPE_CONSTRAINT,
                         "{\"statement\":\"x\",\"polarity\":\"dont\",\"strength\":\"soft\","
                         "\"source\":\"learned\"}");
    all[3] = write_typed(&kit, CX_TYPE_GOAL, "{\"statement\":\"g\",\"status\":\"active\"}");
    all[4] = write_typed(&kit, CX_TYPE_GOAL, "{\"statement\":\"g\",\"status\":\"done\"}");
    all[5] = calls_write_fact(&kit, "load bearing");
    all[6] = calls_write_fact(&kit, "dead");
    all[7] = all[0];
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &all[6], CX_STR(""), CX_STR(""), &kit.err),
                 &kit.err);
    cx_memory_compact what = {.in_context = all,
                              .in_context_count = 8,
                              .load_bearing = &all[5],
                              .load_bearing_count = 1,
                              .intent = CX_STR("i"),
                              .step = CX_STR("s")};
    cx_checkpoint_record record = {0};
    CHECK_STATUS(compact(&kit, &what, &record), &kit.err);
    CHECK_INT(record.kept_count, 4);
    CHECK_INT(record.compacted_count, 2);
    CHECK_INT(record.budget, 4000);
    CHECK(cx_str_eq(record.kept[0], calls_uri(&kit, &all[0])));
    CHECK(cx_str_eq(record.kept[3], calls_uri(&kit, &all[5])));
    CHECK(cx_str_eq(record.compacted[0].uri, calls_uri(&kit, &all[2])));
    CHECK_STR(record.compacted[1].brief, "[done] g");
    CHECK(record.compacted[1].salience > 0.2f && record.compacted[1].salience < 0.3f);
    cx_memory_key key = cx_memory_key_checkpoint(CX_STR("i"), CX_STR("s"));
    CHECK(calls_record(&kit, &key).size != 0);
    what.in_context = &all[6]; /* dead; what bears load is no context */
    what.in_context_count = 1;
    const uint64_t entries = calls_entries(&kit);
    CHECK_REFUSED(&kit, compact(&kit, &what, &record), "EmptyInContext");
    CHECK_INT(calls_entries(&kit), entries);
    what.in_context = all;
    what.in_context_count = 8;
    what.budget = 5;
    CHECK(cx_failed(compact(&kit, &what, &record)));
    CHECK_STR(fixture_tag(&kit.err), "BudgetUnreachable");
    what.in_context_count = 0;
    CHECK_REFUSED(&kit, compact(&kit, &what, &record), "EmptyInContext");
    what.in_context_count = 1;
    what.intent = CX_STR("");
    CHECK_REFUSED(&kit, compact(&kit, &what, &record), "EmptyIntent");
    what.intent = CX_STR("i");
    what.step = CX_STR("");
    CHECK_REFUSED(&kit, compact(&kit, &what, &record), "EmptyStep");
    what.step = CX_STR("\x01");
    CHECK_REFUSED(&kit, compact(&kit, &what, &record), "InvalidArgument");
    what.step = CX_STR("s");
    all[0].id = fixture_id(99);
    CHECK_REFUSED(&kit, compact(&kit, &what, &record), "NotFound");
    calls_done(&kit);
}

/* --- Attest ----------------------------------------------------------------------------------- */

static cx_memory_attest attest_of(const cx_str *cited, size_t count)
{
    return (cx_memory_attest){.intent = CX_STR("i"), .cited = cited, .cited_count = count};
}

static cx_status attest(calls *kit, const cx_memory_attest *what, cx_memory_attested *out)
{
    return cx_memory_attest_outcome(kit->memory, what, out, &kit->err);
}

static cx_salience salience_of(calls *kit, const cx_id *id)
{
    cx_salience salience = {0};
    float cold;
    CHECK_STATUS(cx_memory_salience_of(kit->memory, id, &salience, &cold, &kit->err), &kit->err);
    return salience;
}

CX_TEST(attest_skips_what_it_cannot_use)
{
    WITH_HOME(kit, "attest");
    cx_uri good = calls_write_fact(&kit, "a"), dead = calls_write_fact(&kit, "b"), odd = good;
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &dead, CX_STR(""), CX_STR(""), &kit.err),
                 &kit.err);
    odd.version = 9;
    cx_str cited[] = {
        calls_uri(&kit, &good), calls_uri(&kit, &dead),
        calls_uri(&kit, &good), CX_STR("nonsense"),
        calls_uri(&kit, &odd),  CX_STR("matrix://cortex/Fact/01HF7YAT000000000000000009#1")};
    cx_memory_attest what = attest_of(cited, CX_COUNT_OF(cited));
    cx_memory_attested done;
    CHECK_STATUS(attest(&kit, &what, &done), &kit.err);
    CHECK_INT(done.used, 1);
    CHECK_INT(done.seq, 3);
    CHECK(done.learned);
    CHECK_INT(calls_entries(&kit), 5);
    cx_salience salience = salience_of(&kit, &good.id);
    CHECK_INT(salience.citations, 1);
    CHECK_INT(salience.access, 1);
    cx_weights_record weights, again;
    CHECK_STATUS(cx_memory_weights_now(kit.memory, &weights, &kit.err), &kit.err);
    CHECK_INT(weights.updates, 1);
    CHECK(weights.weights.r > 0.25f);
    /* Nothing usable: entries, but nothing learned. */
    what = attest_of(cited + 3, 1);
    CHECK_STATUS(attest(&kit, &what, &done), &kit.err);
    CHECK(done.used == 0 && !done.learned);
    what = attest_of(cited, 1);
    what.outcome = 1;
    what.reason = CX_STR("timeout");
    CHECK_STATUS(attest(&kit, &what, &done), &kit.err);
    /* Neither praise nor blame: the memory's counts stay, the weights still learn its profile. */
    CHECK(done.used == 1 && done.learned);
    CHECK_STATUS(cx_memory_weights_now(kit.memory, &again, &kit.err), &kit.err);
    CHECK(again.weights.r > weights.weights.r && again.updates == 2);
    CHECK_INT(salience_of(&kit, &good.id).citations, 1);
    what.reason = CX_STR("wrong_assumption");
    CHECK_STATUS(attest(&kit, &what, &done), &kit.err);
    CHECK(done.learned);
    CHECK_INT(salience_of(&kit, &good.id).citations, 0);
    CHECK_STATUS(attest(&kit, &what, NULL), &kit.err);
    CHECK_INT(salience_of(&kit, &good.id).citations, 0);
    calls_done(&kit);
}

CX_TEST(attest_refuses)
{
    WITH_HOME(kit, "attest-refuses");
    cx_uri uri = calls_write_fact(&kit, "a");
    static cx_str many[257];
    for (size_t i = 0; i < 257; i++)
        many[i] = calls_uri(&kit, &uri);
    cx_memory_attest what = attest_of(many, 0);
    CHECK_REFUSED(&kit, attest(&kit, &what, NULL), "EmptyCitations");
    what = attest_of(many, 257);
    CHECK_REFUSED(&kit, attest(&kit, &what, NULL), "TooManyCitations");
    what = attest_of(many, 256);
    what.intent = CX_STR("");
    CHECK_REFUSED(&kit, attest(&kit, &what, NULL), "EmptyIntent");
    what.intent = CX_STR("i");
    what.outcome = 2;
    CHECK_REFUSED(&kit, attest(&kit, &what, NULL), "InvalidOutcome");
    what.outcome = 0;
    /* Five at once, then one a second; by intent. */
    kit.tick = 1000000;
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(attest(&kit, &what, NULL), &kit.err);
    uint64_t entries = calls_entries(&kit);
    CHECK(cx_failed(attest(&kit, &what, NULL)));
    CHECK_STR(fixture_tag(&kit.err), "RateLimited");
    CHECK_INT(kit.err.code, CX_E_DENIED);
    CHECK_INT(calls_entries(&kit), entries);
    what.intent = CX_STR("j");
    CHECK_STATUS(attest(&kit, &what, NULL), &kit.err);
    what.intent = CX_STR("i");
    kit.tick = 1000000000;
    CHECK_STATUS(attest(&kit, &what, NULL), &kit.err);
    kit.tick = 1000000;
    CHECK(cx_failed(attest(&kit, &what, NULL)));
    calls_done(&kit);
}

CX_TEST(attest_limits_are_shared_and_outlive_the_process)
{
    WITH_HOME(kit, "attest-shared");
    cx_uri uri = calls_write_fact(&kit, "a");
    cx_str cited = calls_uri(&kit, &uri);
    cx_memory_attest what = attest_of(&cited, 1);
    cx_memory_options options = calls_options(&kit);
    cx_memory *first = kit.memory, *second;
    kit.tick = 1000;
    CHECK_STATUS(cx_memory_open(kit.home, CX_STR("andrew"), &options, &second, &kit.err), &kit.err);
    for (int i = 0; i < 5; i++) {
        kit.memory = i % 2 == 0 ? first : second;
        CHECK_STATUS(attest(&kit, &what, NULL), &kit.err);
    }
    kit.memory = first;
    CHECK(cx_failed(attest(&kit, &what, NULL)));
    CHECK_STR(fixture_tag(&kit.err), "RateLimited");
    cx_memory_close(second);
    calls_shut(&kit);
    REQUIRE(calls_open(&kit, "andrew"));
    CHECK(cx_failed(attest(&kit, &what, NULL)));
    CHECK_STR(fixture_tag(&kit.err), "RateLimited");
    kit.tick = 1000000000;
    CHECK_STATUS(attest(&kit, &what, NULL), &kit.err);
    calls_done(&kit);
}

/* --- Raw -------------------------------------------------------------------------------------- */

CX_TEST(raw_takes_kinds_of_others_only)
{
    WITH_HOME(kit, "raw");
    const cx_bytes payload = cx_str_bytes(CX_STR("hello"));
    uint64_t seq = 9;
    CHECK_STATUS(
        cx_memory_raw(kit.memory, CX_STR("raw"), payload, false, CX_STR(""), &seq, &kit.err),
        &kit.err);
    CHECK_INT(seq, 0);
    CHECK_STATUS(cx_memory_raw(kit.memory, CX_STR("trace.received"), payload, true, CX_STR("bob"),
                               &seq, &kit.err),
                 &kit.err);
    CHECK_INT(seq, 1);
    cx_entry_view entry;
    CHECK_STATUS(cx_home_entry(kit.home, CX_STR("andrew"), 1, &kit.arena, &entry, &kit.err),
                 &kit.err);
    CHECK(entry.entry.committed);
    CHECK_STR(cx_bytes_str(entry.payload), "hello");
    static const char *const kinds[] = {"write", "tombstone", "redact", "seal", "", "Trace.x", "."};
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        CHECK_REFUSED(&kit,
                      cx_memory_raw(kit.memory, cx_str_z(kinds[i]), payload, false, CX_STR(""),
                                    &seq, &kit.err),
                      "InvalidArgument");
    calls_done(&kit);
}
