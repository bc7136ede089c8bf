/*
 * test_row.c - a trace as a row of the index: every column from where trace.md §10 says.
 */
#include "tests/support/rows.h"
#include "index/index_internal.h"

/* The seed's example, shortened, with a value in every place; spec 1.0, full level. */
static const char full[] =
    "{\"trace_id\":\"trace-1\",\"thought_id\":\"th-1\",\"task_id\":\"VERIFY_IDENTITY_2e1c\","
    "\"agent_id_hash\":\"0123456789abcdef\",\"started_at\":\"2026-01-01T04:20:08.026388+00:00\","
    "\"completed_at\":\"2026-01-01T04:20:20.017550+00:00\",\"trace_schema_version\":\"1.0\","
    "\"signature\":\"c2ln\",\"signature_key_id\":\"wa-1\",\"components\":["
    "{\"component_type\":\"observation\",\"event_type\":\"THOUGHT_START\",\"timestamp\":"
    "\"2026-01-01T04:20:08Z\",\"data\":{\"thought_type\":\"follow_up\",\"thought_depth\":3}},"
    "{\"component_type\":\"context\",\"event_type\":\"SNAPSHOT_AND_CONTEXT\",\"timestamp\":"
    "\"2026-01-01T04:20:09Z\",\"data\":{\"system_snapshot\":{\"agent_identity\":{\"agent_id\":"
    "\"Datum\"}},\"cognitive_state\":\"WAKEUP\"}},"
    "{\"component_type\":\"rationale\",\"event_type\":\"DMA_RESULTS\",\"timestamp\":"
    "\"2026-01-01T04:20:10Z\",\"data\":{\"csdma\":{\"plausibility_score\":0.9},\"dsdma\":"
    "{\"domain\":\"Datum\",\"domain_alignment\":1},\"pdma\":{\"stakeholders\":\"user, system\","
    "\"conflicts\":[\"a\",\"b \\\"c\\\"\"]},\"idma\":{\"k_eff\":2.0,\"correlation_risk\":0.2,"
    "\"fragility_flag\":false,\"phase\":\"healthy\",\"sources_identified\":[\"s1\",\"s2\"]}}},"
    "{\"component_type\":\"rationale\",\"event_type\":\"ASPDMA_RESULT\",\"timestamp\":"
    "\"2026-01-01T04:20:11Z\",\"data\":{\"selected_action\":\"HandlerActionType.task_complete\","
    "\"action_rationale\":\"because \\u00e9\",\"selection_confidence\":0.75,"
    "\"is_recursive\":false}},"
    "{\"component_type\":\"conscience\",\"event_type\":\"CONSCIENCE_RESULT\",\"timestamp\":"
    "\"2026-01-01T04:20:12Z\",\"data\":{\"conscience_passed\":true,"
    "\"action_was_overridden\":false,\"updated_status_detected\":true,"
    "\"thought_depth_triggered\":false,\"entropy_passed\":true,\"coherence_passed\":false,"
    "\"optimization_veto_passed\":true,\"epistemic_humility_passed\":false,"
    "\"entropy_score\":0.1,\"coherence_score\":0.2,\"optimization_veto_entropy_ratio\":0.3,"
    "\"epistemic_humility_certainty\":0.4,\"entropy_level\":0.5,\"epistemic_data\":"
    "{\"entropy_level\":0.25,\"coherence_level\":0,\"uncertainty_acknowledged\":true,"
    "\"reasoning_transparency\":1.0}}},"
    "{\"component_type\":\"action\",\"event_type\":\"ACTION_RESULT\",\"timestamp\":"
    "\"2026-01-01T04:20:20.017550+00:00\",\"data\":{\"action_executed\":\"task_complete\","
    "\"action_parameters\":{\"positive_moment\":\"yes\"},\"execution_success\":true,"
    "\"execution_error\":null,\"execution_time_ms\":20.067,\"audit_entry_id\":"
    "\"52eadd3c-75b7-42cf-88fb-dc85be19eb2a\",\"audit_sequence_number\":34,"
    "\"audit_entry_hash\":\"5142\",\"audit_signature\":\"oOR\",\"tokens_input\":86763,"
    "\"tokens_output\":616,\"tokens_total\":87379,\"cost_cents\":0.87379,"
    "\"carbon_grams\":13.10685,\"energy_mwh\":26213.7,\"llm_calls\":4,"
    "\"models_used\":[\"m/1\",\"m\\u00002\"],\"exact\":[1.0,1e-05,0.0031992000000000006,"
    "123456789012345678901234567890]}}]}";

static cx_trace_facts full_facts(void)
{
    cx_trace_facts facts = {
        .level = CX_LEVEL_FULL,
        .received_ns = ROWS_START_NS,
        .consent_ns = ROWS_START_NS - 1,
        .verified = true,
        .form = CX_FORM_B,
        .has_canonical = true,
        .actor = CX_STR("0123456789abcdef"),
        .seq = 41,
        .key_id = CX_STR("wa-1"),
    };
    facts.canonical.bytes[0] = 0xab;
    facts.content.bytes[31] = 0xcd;
    return facts;
}

/* A cell as text: null, a number, true, or the text itself. */
static const char *cell_text(const cx_trace_row *row, const char *name)
{
    static char text[8][600];
    static unsigned turn;
    char *out = text[turn++ % 8];
    int column = cx_trace_column(name);
    if (column < 0)
        return "no such column";
    const cx_cell *cell = &row->cells[column];
    if (cell->null)
        return "null";
    switch (cx_trace_columns[column].type) {
    case CX_CELL_INT: (void)snprintf(out, 600, "%lld", (long long)cell->i); break;
    case CX_CELL_FLOAT: (void)snprintf(out, 600, "%.17g", cell->f); break;
    case CX_CELL_BOOL: return cell->b ? "true" : "false";
    case CX_CELL_TIME: cx_trace_time_write(cell->i, out); break;
    default:
        (void)snprintf(out, 600, "%.*s", (int)(cell->text.size < 599 ? cell->text.size : 599),
                       cell->text.data);
        break;
    }
    return out;
}

#define CHECK_CELL(name, expected) CHECK_STR(cx_str_z(cell_text(&row, name)), expected)

CX_TEST(columns_are_those_of_the_format_in_order)
{
    CHECK_INT(cx_trace_column_count, CX_COL_COUNT);
    CHECK_INT(cx_trace_column_count, 83);
    CHECK_INT(cx_trace_column("trace_id"), 0);
    CHECK_INT(cx_trace_column("ledger_seq"), 82);
    CHECK_INT(cx_trace_column("id"), -1);
    CHECK(cx_trace_columns[cx_trace_column("models_used")].type == CX_CELL_TEXTS);
    CHECK(cx_trace_columns[cx_trace_column("timestamp")].required);
    CHECK(!cx_trace_columns[cx_trace_column("task_id")].required);
}

CX_TEST(every_column_comes_from_its_place)
{
    cx_arena arena;
    cx_trace_row row;
    cx_trace_facts facts = full_facts();
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(rows_make_text(CX_STR(full), &facts, &arena, &row));
    static const char *const cells[][2] = {
        {"trace_id", "trace-1"},
        {"thought_id", "th-1"},
        {"task_id", "VERIFY_IDENTITY_2e1c"},
        {"agent_id_hash", "0123456789abcdef"},
        {"agent_name", "Datum"},
        {"trace_type", "VERIFY_IDENTITY"},
        {"cognitive_state", "WAKEUP"},
        {"thought_type", "follow_up"},
        {"thought_depth", "3"},
        {"started_at", "2026-01-01T04:20:08.026388000Z"},
        {"completed_at", "2026-01-01T04:20:20.017550000Z"},
        {"timestamp", "2026-01-01T04:20:20.017550000Z"},
        {"received_at", "2026-01-01T00:00:00.000000000Z"},
        {"consent_timestamp", "2025-12-31T23:59:59.999999999Z"},
        {"trace_level", "full_traces"},
        {"thought_start", "{\"thought_depth\":3,\"thought_type\":\"follow_up\"}"},
        {"idma_result", "null"},
        {"csdma_plausibility_score", "0.90000000000000002"},
        {"dsdma_domain_alignment", "1"},
        {"dsdma_domain", "Datum"},
        {"pdma_stakeholders", "user, system"},
        {"pdma_conflicts", "[\"a\",\"b \\\"c\\\"\"]"},
        {"action_rationale", "because \xc3\xa9"},
        {"idma_k_eff", "2"},
        {"idma_correlation_risk", "0.20000000000000001"},
        {"idma_k_eff_computed", "1.6666666666666667"},
        {"idma_fragility_flag", "false"},
        {"idma_phase", "healthy"},
        {"idma_phase_computed", "healthy"},
        {"idma_check", "mismatch"},
        {"conscience_passed", "true"},
        {"action_was_overridden", "false"},
        {"updated_status_detected", "true"},
        {"thought_depth_triggered", "false"},
        {"entropy_passed", "true"},
        {"coherence_passed", "false"},
        {"optimization_veto_passed", "true"},
        {"epistemic_humility_passed", "false"},
        {"uncertainty_acknowledged", "true"},
        {"entropy_level", "0.5"},
        {"coherence_level", "0"},
        {"reasoning_transparency", "1"},
        {"entropy_score", "0.10000000000000001"},
        {"coherence_score", "0.20000000000000001"},
        {"optimization_veto_entropy_ratio", "0.29999999999999999"},
        {"epistemic_humility_certainty", "0.40000000000000002"},
        {"selection_confidence", "0.75"},
        {"selected_action", "TASK_COMPLETE"},
        {"is_recursive", "false"},
        {"action_success", "true"},
        {"has_positive_moment", "true"},
        {"has_execution_error", "null"},
        {"audit_entry_id", "52eadd3c-75b7-42cf-88fb-dc85be19eb2a"},
        {"audit_sequence_number", "34"},
        {"audit_entry_hash", "5142"},
        {"audit_signature", "oOR"},
        {"tokens_input", "86763"},
        {"tokens_output", "616"},
        {"tokens_total", "87379"},
        {"llm_calls", "4"},
        {"cost_cents", "0.87378999999999996"},
        {"carbon_grams", "13.10685"},
        {"energy_mwh", "26213.700000000001"},
        {"execution_time_ms", "20.067"},
        {"processing_ms", "11991.162"},
        {"models_used", "[\"m/1\",\"m\xef\xbf\xbd"
                        "2\"]"},
        {"signature", "c2ln"},
        {"signer_key_id", "wa-1"},
        {"signature_verified", "true"},
        {"verification_error", "null"},
        {"canonical_form", "B"},
        {"canonical_sha256", "ab00000000000000000000000000000000000000000000000000000000000000"},
        {"content_sha256", "00000000000000000000000000000000000000000000000000000000000000cd"},
        {"schema_version", "1.0"},
        {"envelope_signed", "false"},
        {"primary_row", "false"},
        {"ledger_actor", "0123456789abcdef"},
        {"ledger_seq", "41"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cells); i++)
        if (strcmp(cell_text(&row, cells[i][0]), cells[i][1]) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s is '%s', expected '%s'", cells[i][0],
                         cell_text(&row, cells[i][0]), cells[i][1]);
    CHECK_STR(row.action_executed, "task_complete");
    CHECK_STR(row.action_timestamp, "2026-01-01T04:20:20.017550+00:00");
    /* §14.4: numbers keep their spelling in the JSON columns. */
    CHECK(strstr(cell_text(&row, "action_result"),
                 "\"exact\":[1.0,1e-05,0.0031992000000000006,123456789012345678901234567890]") !=
          NULL);
    cx_arena_done(&arena);
}

/* Changes a piece of the example; the piece must be there. */
static cx_str edited(cx_arena *arena, const char *from, const char *to)
{
    const char *at = strstr(full, from);
    if (at == NULL) {
        cx_test_fail(__FILE__, __LINE__, "the example has no %s", from);
        return CX_STR(full);
    }
    return cx_arena_printf(arena, "%.*s%s%s", (int)(at - full), full, to, at + strlen(from));
}

CX_TEST(a_value_that_does_not_fit_is_null)
{
    static const char *const edits[][4] = {
        {"\"thought_depth\":3", "\"thought_depth\":3.0", "thought_depth", "null"},
        {"\"thought_depth\":3", "\"thought_depth\":9223372036854775808", "thought_depth", "null"},
        {"\"thought_depth\":3", "\"thought_depth\":-9223372036854775808", "thought_depth",
         "-9223372036854775808"},
        {"\"thought_depth\":3", "\"thought_depth\":\"3\"", "thought_depth", "null"},
        {"\"thought_type\":\"follow_up\"", "\"thought_type\":7", "thought_type", "null"},
        {"\"plausibility_score\":0.9", "\"plausibility_score\":true", "csdma_plausibility_score",
         "null"},
        {"\"plausibility_score\":0.9", "\"plausibility_score\":\"0.9\"", "csdma_plausibility_score",
         "null"},
        {"\"plausibility_score\":0.9", "\"plausibility_score\":0", "csdma_plausibility_score", "0"},
        {"\"conscience_passed\":true", "\"conscience_passed\":1", "conscience_passed", "null"},
        {"\"conscience_passed\":true", "\"conscience_passed\":null", "conscience_passed", "null"},
        {"75b7-42cf", "75b742cf-", "audit_entry_id", "null"},
        {"dc85be19eb2a", "dc85be19eb2", "audit_entry_id", "null"},
        {"52eadd3c", "52EADD3C", "audit_entry_id", "52eadd3c-75b7-42cf-88fb-dc85be19eb2a"},
        {"[\"m/1\",", "[1,", "models_used", "null"},
        {"\"entropy_level\":0.5,", "", "entropy_level", "0.25"},
        {"\"execution_success\":true", "\"success\":false", "action_success", "false"},
        {"\"execution_error\":null", "\"execution_error\":\"boom\"", "has_execution_error", "true"},
        {"\"execution_error\":null", "\"has_positive_moment\":false", "has_positive_moment",
         "false"},
        {"\"HandlerActionType.task_complete\"", "null", "selected_action", "TASK_COMPLETE"},
        {"\"HandlerActionType.task_complete\"", "\"a.b.Ponder\"", "selected_action", "PONDER"},
        {"\"completed_at\":\"2026-01-01T04:20:20.017550+00:00\"", "\"completed_at\":null",
         "timestamp", "2026-01-01T04:20:20.017550000Z"},
        {"\"completed_at\":\"2026-01-01T04:20:20.017550+00:00\"", "\"completed_at\":null",
         "processing_ms", "null"},
        {"\"agent_id_hash\":\"0123456789abcdef\"", "\"agent_id_hash\":\"unknown\"", "agent_id_hash",
         "key:wa-1"},
        {"\"task_id\":\"VERIFY_IDENTITY_2e1c\"", "\"task_id\":\"please VERIFY_IDENTITY_2\"",
         "trace_type", "null"},
        {"{\"agent_id\":\"Datum\"}", "{},\"x\":1},\"agent_name\":\"Named\",\"y\":{\"z\":1",
         "agent_name", "Named"},
        {"\"csdma\":{\"plausibility_score\":0.9}", "\"csdma_plausibility_score\":0.5",
         "csdma_plausibility_score", "0.5"},
    };
    cx_trace_facts facts = full_facts();
    for (size_t i = 0; i < CX_COUNT_OF(edits); i++) {
        cx_arena arena;
        cx_trace_row row;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        if (rows_make_text(edited(&arena, edits[i][0], edits[i][1]), &facts, &arena, &row) &&
            strcmp(cell_text(&row, edits[i][2]), edits[i][3]) != 0)
            cx_test_fail(__FILE__, __LINE__, "with %s: %s is '%s', expected '%s'", edits[i][1],
                         edits[i][2], cell_text(&row, edits[i][2]), edits[i][3]);
        cx_arena_done(&arena);
    }
}

CX_TEST(idma_result_wins_over_dma_results_and_has_newer_names)
{
    static const char component[] =
        ",{\"component_type\":\"rationale\",\"event_type\":\"IDMA_RESULT\",\"timestamp\":"
        "\"2026-01-01T04:20:10Z\",\"data\":{\"idma_k_eff\":1.0,\"source_overlap\":0.5,"
        "\"idma_reasoning_is_fragile\":true,\"reasoning_state\":\"rigid\","
        "\"sources_identified\":[\"only\"]}}]}";
    cx_arena arena;
    cx_trace_row row;
    cx_trace_facts facts = full_facts();
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str text = cx_arena_printf(&arena, "%.*s%s", (int)(sizeof full - 1 - 2), full, component);
    REQUIRE(rows_make_text(text, &facts, &arena, &row));
    CHECK_CELL("idma_k_eff", "1");
    CHECK_CELL("idma_correlation_risk", "0.5");
    CHECK_CELL("idma_fragility_flag", "true");
    CHECK_CELL("idma_phase", "rigid");
    CHECK_CELL("idma_phase_computed", "nascent");
    CHECK_CELL("idma_k_eff_computed", "1");
    CHECK_CELL("idma_check", "consistent");
    facts.established = true;
    REQUIRE(rows_make_text(text, &facts, &arena, &row));
    CHECK_CELL("idma_phase_computed", "fragile");
    cx_arena_done(&arena);
}

CX_TEST(an_unverified_row_says_why_and_claims_nothing)
{
    cx_arena arena;
    cx_trace_row row;
    cx_trace_facts facts = full_facts();
    cx_arena_init(&arena, cx_alloc_default(), 0);
    facts.verified = false;
    facts.reason = CX_REASON_KEY_UNKNOWN;
    facts.form = CX_FORM_NONE;
    facts.has_canonical = false;
    facts.consent_ns = CX_TIME_NONE;
    REQUIRE(rows_make_text(CX_STR(full), &facts, &arena, &row));
    CHECK_CELL("signature_verified", "false");
    CHECK_CELL("verification_error", "key_unknown");
    CHECK_CELL("canonical_form", "null");
    CHECK_CELL("canonical_sha256", "null");
    CHECK_CELL("consent_timestamp", "null");
    facts.verified = true;
    facts.form = CX_FORM_H;
    REQUIRE(rows_make_text(CX_STR(full), &facts, &arena, &row));
    CHECK_CELL("envelope_signed", "true");
    cx_arena_done(&arena);
}

/* What is hashed into the chain is verbatim or absent: never something that was made to fit. */
CX_TEST(an_action_that_cannot_be_stored_is_absent_from_the_chain)
{
    cx_arena arena;
    cx_trace_row row;
    cx_trace_facts facts = full_facts();
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str text = edited(&arena, "\"action_executed\":\"task_complete\"",
                         "\"action_executed\":\"task\\u0000\"");
    REQUIRE(rows_make_text(text, &facts, &arena, &row));
    CHECK(row.action_executed.data == NULL);
    CHECK(row.action_timestamp.data != NULL);
    cx_arena_done(&arena);
}

/* The example nests to any depth that reading allows, and not by recursion. */
CX_TEST(deep_components_are_written_whole)
{
    char deep[400];
    size_t size = 0;
    cx_arena arena;
    cx_trace_row row;
    cx_trace_facts facts = full_facts();
    cx_arena_init(&arena, cx_alloc_default(), 0);
    size += (size_t)snprintf(deep, sizeof deep, "\"thought_depth\":");
    /* The trace, its components, one of them and its data are four. */
    for (unsigned i = 0; i < CX_TRACE_DEPTH_MAX - 4; i++)
        deep[size++] = '[';
    for (unsigned i = 0; i < CX_TRACE_DEPTH_MAX - 4; i++)
        deep[size++] = ']';
    deep[size] = 0;
    REQUIRE(rows_make_text(edited(&arena, "\"thought_depth\":3", deep), &facts, &arena, &row));
    CHECK(strstr(cell_text(&row, "thought_start"), deep + strlen("\"thought_depth\":")) != NULL);
    cx_arena_done(&arena);
}
