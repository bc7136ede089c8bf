/*
 * test_index.c - the index keeps and answers alike on both databases (trace.md §9, §10, §11, §14).
 */
#include "base/io.h"
#include "tests/support/index_kit.h"

#define MINUTE_NS (INT64_C(60) * 1000000000)

/* Rows of many kinds: levels, agents, days, unverified ones, repeated ids. */
static size_t make_mix(rows_spec *specs, size_t count)
{
    static char ids[512][16];
    static const char *const agents[] = {"agent-a", "agent-b", NULL, "agent-d"};
    static const char *const actions[] = {"SPEAK", "TOOL", "DEFER"};
    static const char *const domains[] = {"home", "work", NULL};
    uint64_t state = 42;
    for (size_t i = 0; i < count; i++) {
        uint64_t random = cx_test_random(&state);
        (void)snprintf(ids[i], sizeof ids[i], "t-%zu", i - (i % 7 == 6 ? 3 : 0));
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].agent = agents[random % 4];
        specs[i].at_ns += (int64_t)(random % 5) * ROWS_DAY_NS + (int64_t)i * MINUTE_NS;
        specs[i].level = (cx_trace_level)(random / 8 % 3);
        specs[i].csdma = random / 32 % 9 == 0 ? (double)NAN : (double)(random / 32 % 9) / 8;
        specs[i].k_eff = (double)(random / 512 % 30) / 10;
        specs[i].action = actions[random / 64 % 3];
        specs[i].domain = domains[random / 128 % 3];
        specs[i].rationale = i % 3 == 0 ? "the quick brown fox" : i % 3 == 1 ? "lazy dog" : NULL;
        specs[i].verified = random / 1024 % 5 != 0;
        specs[i].overridden = random / 4096 % 4 == 0;
        specs[i].audit_seq = (int64_t)i;
        specs[i].seq = i;
    }
    return count;
}

/* --- feeding ---------------------------------------------------------------------------------- */

BOTH(tables_are_made_once_and_a_second_time_changes_nothing)
{
    cx_err err = {0};
    cx_buf before, after;
    rows_spec specs[40];
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    kit_put(index, specs, make_mix(specs, 40));
    kit_dump(index, &before);
    CHECK(before.size > 10000);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.cortex_index_versions"),
              CX_INDEX_VERSION);
    cx_index_close(index);
    CHECK_STATUS(cx_index_open(where, CX_INDEX_WRITE, &index, &err), &err);
    kit_dump(index, &after);
    CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
    /* The same rows again: as after a crash whose position was not kept. */
    int64_t ids = kit_number(index, "SELECT CAST(sum(id) AS bigint) FROM"
                                    " cirislens.covenant_traces");
    kit_put(index, specs, 40);
    kit_dump(index, &after);
    CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
    CHECK_INT(kit_number(index, "SELECT CAST(sum(id) AS bigint) FROM cirislens.covenant_traces"),
              ids);
    cx_index_close(index);
    cx_buf_done(&before);
    cx_buf_done(&after);
    (void)pg;
}

BOTH(small_steps_and_a_lost_transaction_give_the_same_rows_as_one_big_step)
{
    cx_err err = {0};
    cx_buf whole, steps;
    rows_spec specs[300];
    size_t count = make_mix(specs, 300);
    cx_buf_init(&whole, cx_alloc_default());
    cx_buf_init(&steps, cx_alloc_default());
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    kit_put(index, specs, count);
    kit_dump(index, &whole);
    int64_t last = kit_number(index, "SELECT last_id FROM cirislens.cortex_index_feed");
    CHECK_STATUS(cx_index_clear(index, &err), &err);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 0);
    for (size_t i = 0; i < count; i += 7) {
        size_t now = count - i < 7 ? count - i : 7;
        if (i % 3 == 0) {
            cx_arena arena;
            cx_trace_row row;
            cx_arena_init(&arena, cx_alloc_default(), 0);
            CHECK_STATUS(cx_index_begin(index, &err), &err);
            if (rows_make(&specs[i], &arena, &row))
                CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
            cx_index_rollback(index);
            cx_arena_done(&arena);
        }
        kit_put(index, specs + i, now);
    }
    kit_dump(index, &steps);
    CHECK(cx_str_eq(cx_buf_str(&whole), cx_buf_str(&steps)));
    CHECK_INT(kit_number(index, "SELECT last_id FROM cirislens.cortex_index_feed"), last);
    cx_index_close(index);
    cx_buf_done(&whole);
    cx_buf_done(&steps);
    (void)pg;
}

/* I1 */
CX_TEST(pg_and_sqlite_hold_the_same)
{
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    cx_buf sqlite, pg;
    rows_spec specs[300];
    size_t count = make_mix(specs, 300);
    cx_buf_init(&sqlite, cx_alloc_default());
    cx_buf_init(&pg, cx_alloc_default());
    const char *path = kit_place(false);
    cx_index *index = kit_open_empty(path);
    REQUIRE(index != NULL);
    kit_put(index, specs, count);
    kit_dump(index, &sqlite);
    cx_index_close(index);
    kit_remove(path, false);
    index = kit_open_empty(url);
    REQUIRE(index != NULL);
    kit_put(index, specs, count);
    kit_dump(index, &pg);
    cx_index_close(index);
    CHECK(sqlite.size > 100000);
    CHECK(cx_str_eq(cx_buf_str(&sqlite), cx_buf_str(&pg)));
    cx_buf_done(&sqlite);
    cx_buf_done(&pg);
}

BOTH(a_position_belongs_to_its_home_and_to_what_was_committed)
{
    static const uint8_t other[16] = {9};
    cx_err err = {0};
    cx_feed_position position;
    rows_spec spec = ROWS_SPEC_INIT;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    CHECK_STATUS(cx_index_position(index, kit_home, &position, &err), &err);
    CHECK_INT(position.commit + position.frames, 0);
    kit_put(index, &spec, 1);
    CHECK_STATUS(cx_index_position(index, kit_home, &position, &err), &err);
    CHECK_INT(position.commit, 5);
    CHECK_INT(position.frames, 2);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 1);
    /* A transaction that was never committed. */
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    cx_index_close(index);
    CHECK_STATUS(cx_index_open(where, CX_INDEX_READ, &index, &err), &err);
    CHECK_STATUS(cx_index_position(index, other, &position, &err), &err);
    CHECK_INT(position.commit, 0);
    CHECK_STATUS(cx_index_position(index, kit_home, &position, &err), &err);
    CHECK_INT(position.commit, 5);
    CHECK(cx_index_begin(index, &err).code == CX_E_USAGE);
    cx_index_close(index);
    /* Another home's feed does not touch them, until they were emptied for it. */
    CHECK_STATUS(cx_index_open(where, CX_INDEX_WRITE, &index, &err), &err);
    CHECK(cx_index_position(index, other, &position, &err).code == CX_E_CONFLICT);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 1);
    CHECK_STATUS(cx_index_clear(index, &err), &err);
    CHECK_STATUS(cx_index_position(index, other, &position, &err), &err);
    CHECK_INT(position.commit, 0);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 0);
    cx_index_close(index);
    (void)pg;
}

BOTH(tables_of_a_newer_program_are_refused)
{
    cx_err err = {0};
    cx_index *other = NULL, *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    CHECK_STATUS(cx_index_do(index,
                             "INSERT INTO cirislens.cortex_index_versions (version, name)"
                             " VALUES (99, 'from the future')",
                             NULL, 0, &err),
                 &err);
    cx_index_close(index);
    CHECK(cx_index_open(where, CX_INDEX_WRITE, &other, &err).code == CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "IndexVersion");
    CHECK(cx_index_open(where, CX_INDEX_READ, &other, &err).code == CX_E_FORMAT);
#ifdef CX_WITH_PG
    if (pg) {
        /* Made right again for the tests after this one. */
        cx_pg *connection;
        cx_pg_options options = CX_PG_OPTIONS_INIT;
        CHECK_STATUS(cx_pg_open(where, &options, &connection, &err), &err);
        CHECK_STATUS(cx_pg_run(connection, "DROP SCHEMA cirislens CASCADE", &err), &err);
        cx_pg_close(connection);
    }
#else
    (void)pg;
#endif
}

/* --- rows of one trace ------------------------------------------------------------------------ */

static void check_primary(cx_index *index, const char *expected, int line)
{
    cx_err err = {0};
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    cx_arena arena;
    const cx_found_row *rows;
    size_t count;
    bool more;
    query.verified = CX_NULL;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_index_find(index, &query, &arena, &rows, &count, &more, &err);
    if (cx_failed(status) || count != 1 ||
        !cx_str_is(rows[0].cells[CX_COL_trace_level].text, expected))
        cx_test_fail(__FILE__, line, "%zu primary rows, level %.*s, expected %s", count,
                     count == 0 ? 0 : (int)rows[0].cells[CX_COL_trace_level].text.size,
                     count == 0 ? "" : rows[0].cells[CX_COL_trace_level].text.data, expected);
    cx_arena_done(&arena);
}
#define CHECK_PRIMARY(index, expected) check_primary((index), (expected), __LINE__)

static void rejudge(cx_index *index, cx_trace_level level, bool verified)
{
    cx_err err = {0};
    cx_rejudged change = {
        .agent = CX_STR("agent-a"),
        .trace_id = CX_STR("t-1"),
        .level = level,
        .verified = verified,
        .reason = CX_REASON_KEY_REVOKED,
        .form = CX_FORM_G,
        .has_canonical = verified,
    };
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_rejudge(index, &change, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
}

BOTH(one_row_of_a_trace_is_primary_verified_before_unverified_then_the_highest_level)
{
    rows_spec specs[3] = {ROWS_SPEC_INIT, ROWS_SPEC_INIT, ROWS_SPEC_INIT};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    specs[1].level = CX_LEVEL_FULL;
    specs[1].verified = false;
    specs[2].level = CX_LEVEL_DETAILED;
    specs[2].at_ns += 3 * ROWS_DAY_NS; /* under B the time is not signed: it may differ */
    kit_put(index, &specs[0], 1);
    CHECK_PRIMARY(index, "generic");
    kit_put(index, &specs[1], 1);
    CHECK_PRIMARY(index, "generic");
    kit_put(index, &specs[2], 1);
    CHECK_PRIMARY(index, "detailed");
    rejudge(index, CX_LEVEL_FULL, true);
    CHECK_PRIMARY(index, "full_traces");
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"
                                " WHERE canonical_form = 'G' AND envelope_signed = TRUE"
                                " AND verification_error IS NULL"),
              1);
    rejudge(index, CX_LEVEL_DETAILED, false);
    rejudge(index, CX_LEVEL_FULL, false);
    CHECK_PRIMARY(index, "generic");
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"
                                " WHERE verification_error = 'key_revoked'"
                                " AND canonical_form IS NULL AND canonical_sha256 IS NULL"),
              2);
    rejudge(index, CX_LEVEL_GENERIC, false);
    CHECK_PRIMARY(index, "full_traces");
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 3);
    /* All in one transaction, and one of them twice. */
    specs[0].csdma = 0.25;
    kit_put(index, specs, 3);
    CHECK_PRIMARY(index, "detailed");
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 3);
    cx_index_close(index);
    (void)pg;
}

BOTH(a_row_put_again_replaces_the_old_one_whatever_its_time)
{
    rows_spec specs[4] = {ROWS_SPEC_INIT, ROWS_SPEC_INIT, ROWS_SPEC_INIT, ROWS_SPEC_INIT};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    specs[0].rationale = "before";
    specs[1].trace_id = "t-2";
    specs[2].rationale = "between";
    specs[2].at_ns += 2 * ROWS_DAY_NS;
    specs[3].rationale = "after";
    specs[3].at_ns += 5 * ROWS_DAY_NS;
    kit_put(index, specs, 2);
    kit_put(index, specs + 2, 2); /* the same key twice in one transaction */
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 2);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_trace_keys"), 2);
    CHECK_INT(kit_number(index, "SELECT id FROM cirislens.covenant_traces WHERE trace_id = 't-1'"),
              1);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.text = CX_STR("after");
    CHECK_FINDS(index, &query, "t-1");
    query.text = CX_STR("before");
    CHECK_FINDS(index, &query, "");
    query.text = CX_STR("between");
    CHECK_FINDS(index, &query, "");
    cx_index_close(index);
    (void)pg;
}

/* §14.13, §14.14: the agent is part of the key; without one, the key that signed is. */
BOTH(two_agents_may_use_one_trace_id)
{
    rows_spec specs[3] = {ROWS_SPEC_INIT, ROWS_SPEC_INIT, ROWS_SPEC_INIT};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    specs[1].agent = "agent-b";
    specs[2].agent = NULL;
    kit_put(index, specs, 3);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"
                                " WHERE primary_row = TRUE"),
              3);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.agent = CX_STR("key:key-1");
    CHECK_FINDS(index, &query, "t-1");
    cx_index_close(index);
    (void)pg;
}

/* --- questions -------------------------------------------------------------------------------- */

static void put_six(cx_index *index)
{
    rows_spec specs[6];
    static const char *const ids[] = {"t-0", "t-1", "t-2", "t-3", "t-4", "t-5"};
    for (size_t i = 0; i < 6; i++) {
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].at_ns += (int64_t)i * MINUTE_NS;
        specs[i].csdma = (double)i / 8;
    }
    specs[1].task_id = "VERIFY_IDENTITY_7";
    specs[2].action = "Handler.tool";
    specs[3].domain = "work";
    specs[3].k_eff = 2.5;
    specs[4].overridden = true;
    specs[4].agent = "agent-b";
    specs[5].verified = false;
    specs[2].rationale = "a quick \"answer\", naturally";
    kit_put(index, specs, 6);
}

BOTH(every_filter_filters)
{
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    const cx_trace_query all = CX_TRACE_QUERY_INIT;
    cx_trace_query query = all;
    CHECK_FINDS(index, &query, "t-4 t-3 t-2 t-1 t-0");
#define CHECK_FILTER(set, expected)           \
    do {                                      \
        query = all;                          \
        set;                                  \
        CHECK_FINDS(index, &query, expected); \
    } while (0)
    CHECK_FILTER(query.verified = CX_NULL, "t-5 t-4 t-3 t-2 t-1 t-0");
    CHECK_FILTER(query.verified = CX_FALSE, "t-5");
    CHECK_FILTER(query.trace_type = CX_STR("VERIFY_IDENTITY"), "t-1");
    CHECK_FILTER(query.task_id = CX_STR("VERIFY_IDENTITY_7"), "t-1");
    CHECK_FILTER(query.thought_id = CX_STR("th-t-3"), "t-3");
    CHECK_FILTER(query.trace_id = CX_STR("t-3"), "t-3");
    CHECK_FILTER(query.agent = CX_STR("agent-b"), "t-4");
    CHECK_FILTER(query.selected_action = CX_STR("TOOL"), "t-2");
    CHECK_FILTER(query.cognitive_state = CX_STR("PLAY"), "");
    CHECK_FILTER(query.domain = CX_STR("work"), "t-3");
    CHECK_FILTER(query.fragility_flag = CX_FALSE, "t-3");
    CHECK_FILTER(query.overridden = CX_TRUE, "t-4");
    CHECK_FILTER(query.conscience_passed = CX_FALSE, "t-4");
    CHECK_FILTER(query.min_plausibility = 0.375, "t-4 t-3");
    CHECK_FILTER(query.max_plausibility = 0, "t-0");
    CHECK_FILTER(query.from_ns = ROWS_START_NS + 3 * MINUTE_NS, "t-4 t-3");
    CHECK_FILTER(query.to_ns = ROWS_START_NS + MINUTE_NS, "t-0");
    CHECK_FILTER(query.text = CX_STR("Quick answer"), "t-2");
    CHECK_FILTER(query.text = CX_STR("quick slow"), "");
    CHECK_FILTER(query.text = CX_STR("\" OR NEAR( * quick ' ) : -"), "");
    CHECK_FILTER(query.text = CX_STR("\"*'quick:("), "t-2");
    CHECK_FILTER(query.text = CX_STR("-- ' \" * ()"), "");
    CHECK_FILTER(query.task_id = CX_STR("' OR 1=1; DROP TABLE cirislens.covenant_traces; --"), "");
    CHECK_FILTER(query.limit = 2, "t-4 t-3 +");
    cx_err err = {0};
    cx_arena arena;
    const cx_found_row *rows;
    size_t count;
    bool more;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    query = all;
    query.limit = 1001;
    CHECK(cx_index_find(index, &query, &arena, &rows, &count, &more, &err).code == CX_E_USAGE);
    query.limit = 0;
    CHECK(cx_index_find(index, &query, &arena, &rows, &count, &more, &err).code == CX_E_USAGE);
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

BOTH(a_row_is_found_with_its_cells_and_its_components_when_asked_for)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_found_row *rows;
    size_t count;
    bool more;
    rows_spec spec = ROWS_SPEC_INIT;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    spec.csdma = 0.0031992000000000006; /* §14.15 */
    spec.action_extra = ",\"audit_entry_id\":\"52EADD3C-75b7-42cf-88fb-dc85be19eb2a\"";
    kit_put(index, &spec, 1);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_find(index, &query, &arena, &rows, &count, &more, &err), &err);
    REQUIRE(count == 1 && !more);
    CHECK(rows[0].timestamp_ns == ROWS_START_NS);
    CHECK(rows[0].cells[CX_COL_csdma_plausibility_score].f == 0.0031992000000000006);
    CHECK(!rows[0].cells[CX_COL_coherence_level].null && /* §14.20 */
          rows[0].cells[CX_COL_coherence_level].f == 0.0);
    CHECK(rows[0].cells[CX_COL_started_at].null);
    CHECK_STR(rows[0].cells[CX_COL_models_used].text, "[\"m\\\"1\"]");
    CHECK_STR(rows[0].cells[CX_COL_audit_entry_id].text, "52eadd3c-75b7-42cf-88fb-dc85be19eb2a");
    CHECK(rows[0].cells[CX_COL_action_result].null);
    query.components = true;
    CHECK_STATUS(cx_index_find(index, &query, &arena, &rows, &count, &more, &err), &err);
    REQUIRE(count == 1);
    cx_json data;
    CHECK_STATUS(cx_json_parse_text(rows[0].cells[CX_COL_action_result].text, &arena, &data, &err),
                 &err);
    CHECK_STR(CX_JSON_GET_STR(&data, "action_executed"), "speak");
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

/* §14.21: pages follow one another without a gap or a repeat, also where many rows have one time,
 * and rows that come in meanwhile do not move them. */
BOTH(pages_are_stable_while_rows_come_in)
{
    rows_spec specs[100];
    static char ids[100][16];
    cx_err err = {0};
    cx_buf seen, expected;
    cx_arena arena;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    cx_buf_init(&seen, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "p-%zu", i);
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].at_ns += (int64_t)(i / 25) * ROWS_DAY_NS;
        specs[i].action = i % 2 == 0 ? "SPEAK" : "TOOL";
    }
    for (size_t i = 60; i-- > 0;)
        if (i % 2 == 0)
            cx_buf_printf(&expected, "p-%zu ", i);
    kit_put(index, specs, 60);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.selected_action = CX_STR("SPEAK");
    query.limit = 7;
    bool more = true;
    for (size_t page = 0; more && page < 10; page++) {
        const cx_found_row *rows;
        size_t count;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_STATUS(cx_index_find(index, &query, &arena, &rows, &count, &more, &err), &err);
        for (size_t i = 0; i < count; i++)
            cx_buf_printf(&seen, "%.*s ", (int)rows[i].cells[0].text.size,
                          rows[i].cells[0].text.data);
        if (count > 0) {
            query.has_cursor = true;
            query.cursor_ns = rows[count - 1].timestamp_ns;
            query.cursor_id = rows[count - 1].id;
        }
        cx_arena_done(&arena);
        if (page < 4) /* newer ones: of a later day, and of the day being read */
            kit_put(index, specs + 60 + 10 * page, 10);
    }
    CHECK(!more);
    CHECK(cx_str_eq(cx_buf_str(&seen), cx_buf_str(&expected)));
    cx_buf_done(&seen);
    cx_buf_done(&expected);
    cx_index_close(index);
    (void)pg;
}

BOTH(scores_leave_out_what_is_unverified_or_not_primary)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_score_row *rows;
    const cx_str *agents;
    size_t count;
    uint64_t received;
    rows_spec again = ROWS_SPEC_INIT;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    again.trace_id = "t-0";
    again.level = CX_LEVEL_DETAILED;
    again.csdma = (double)NAN;
    kit_put(index, &again, 1);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_scores(index, (cx_str){NULL, 0}, CX_TIME_NONE, CX_TIME_NONE, &arena,
                                 &rows, &count, &err),
                 &err);
    REQUIRE(count == 5);
    CHECK_STR(rows[0].trace_id, "t-0");
    CHECK(isnan(rows[0].csdma));
    CHECK(rows[1].csdma == 0.125 && rows[1].dsdma == 0.75 && rows[1].coherence == 0.0);
    CHECK(isnan(rows[1].entropy_score) && rows[1].entropy_passed == CX_NULL);
    CHECK(rows[4].overridden == CX_TRUE && rows[3].overridden == CX_FALSE);
    CHECK(rows[3].fragility_flag == CX_FALSE && rows[2].fragility_flag == CX_TRUE);
    CHECK(!rows[0].has_audit_seq);
    CHECK_STR(rows[1].agent_name, "Datum");
    CHECK_STR(rows[1].trace_type, "VERIFY_IDENTITY");
    CHECK(rows[0].trace_type.data == NULL);
    CHECK_STATUS(cx_index_scores(index, CX_STR("agent-a"), ROWS_START_NS + MINUTE_NS,
                                 ROWS_START_NS + 3 * MINUTE_NS, &arena, &rows, &count, &err),
                 &err);
    CHECK_INT(count, 2);
    CHECK_STATUS(cx_index_received_count(index, CX_STR("agent-a"), CX_TIME_NONE, CX_TIME_NONE,
                                         &received, &err),
                 &err);
    CHECK_INT(received, 5); /* with the unverified one, each trace once */
    CHECK_STATUS(cx_index_agents(index, &arena, &agents, &count, &err), &err);
    REQUIRE(count == 2);
    CHECK_STR(agents[0], "agent-a");
    CHECK_STR(agents[1], "agent-b");
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

BOTH(an_agent_is_established_by_thirty_traces_or_one_of_k_eff_two)
{
    cx_err err = {0};
    cx_arena arena;
    bool established;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    for (int i = 0; i < 35; i++) {
        char id[16];
        cx_trace_row row;
        rows_spec spec = ROWS_SPEC_INIT;
        (void)snprintf(id, sizeof id, "t-%d", i);
        spec.trace_id = id;
        CHECK_STATUS(cx_index_established(index, CX_STR("agent-a"), &established, &err), &err);
        CHECK(established == (i >= 30));
        REQUIRE(rows_make(&spec, &arena, &row));
        CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
        CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err); /* again: counts once */
        spec.level = CX_LEVEL_FULL;
        REQUIRE(rows_make(&spec, &arena, &row));
        CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err); /* another level: neither */
        spec.agent = "agent-u";
        spec.verified = false;
        REQUIRE(rows_make(&spec, &arena, &row));
        CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    }
    rows_spec two = ROWS_SPEC_INIT;
    cx_trace_row row;
    two.agent = "agent-k";
    two.k_eff = 2.0;
    REQUIRE(rows_make(&two, &arena, &row));
    CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    CHECK_STATUS(cx_index_established(index, CX_STR("agent-k"), &established, &err), &err);
    CHECK(established);
    CHECK_STATUS(cx_index_established(index, CX_STR("agent-u"), &established, &err), &err);
    CHECK(!established);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    /* The same from the tables alone. */
    CHECK_STATUS(cx_index_established(index, CX_STR("agent-a"), &established, &err), &err);
    CHECK(established);
    CHECK_STATUS(cx_index_established(index, CX_STR("agent-k"), &established, &err), &err);
    CHECK(established);
    CHECK_STATUS(cx_index_established(index, CX_STR("nobody"), &established, &err), &err);
    CHECK(!established);
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

BOTH(the_chain_around_some_numbers)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_chain_entry *entries;
    size_t count;
    int64_t number;
    bool found;
    static const int numbers[] = {1, 2, 3, 5, 8, 9, 12, 20};
    rows_spec specs[CX_COUNT_OF(numbers) + 2];
    char names[CX_COUNT_OF(numbers)][8];
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    for (size_t i = 0; i < CX_COUNT_OF(specs); i++)
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
    for (size_t i = 0; i < CX_COUNT_OF(numbers); i++) {
        (void)snprintf(names[i], sizeof names[i], "t%d", numbers[i]);
        specs[i].trace_id = names[i];
        specs[i].audit_seq = numbers[i];
    }
    specs[8].trace_id = "t-unverified";
    specs[8].audit_seq = 6;
    specs[8].verified = false;
    specs[9].trace_id = "t-other";
    specs[9].audit_seq = 7;
    specs[9].agent = "agent-b";
    kit_put(index, specs, CX_COUNT_OF(specs));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    static const struct {
        int64_t first, last;
        unsigned context;
        size_t count;
        int64_t from, to;
    } cases[] = {{5, 8, 0, 2, 5, 8},    {5, 8, 1, 4, 3, 9},     {5, 8, 2, 6, 2, 12},
                 {1, 1, 2, 3, 1, 3},    {20, 20, 1, 2, 12, 20}, {6, 7, 1, 2, 5, 8},
                 {5, 8, 100, 8, 1, 20}, {30, 40, 0, 0, 0, 0}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        CHECK_STATUS(cx_index_chain_near(index, CX_STR("agent-a"), cases[i].first, cases[i].last,
                                         cases[i].context, &arena, &entries, &count, &err),
                     &err);
        REQUIRE(count == cases[i].count);
        if (count != 0) {
            CHECK_INT(entries[0].seq, cases[i].from);
            CHECK_INT(entries[count - 1].seq, cases[i].to);
        }
    }
    CHECK_STATUS(
        cx_index_audit_number(index, CX_STR("agent-a"), CX_STR("t8"), &number, &found, &err), &err);
    CHECK(found && number == 8);
    CHECK_STATUS(cx_index_audit_number(index, CX_STR("agent-a"), CX_STR("t-unverified"), &number,
                                       &found, &err),
                 &err);
    CHECK(!found);
    CHECK_STATUS(
        cx_index_audit_number(index, CX_STR("agent-a"), CX_STR("t-other"), &number, &found, &err),
        &err);
    CHECK(!found);
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

BOTH(the_chain_gets_what_was_hashed_verbatim_in_order_of_arrival)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_chain_entry *entries;
    const cx_wakeup_row *wakeups;
    size_t count;
    rows_spec specs[4] = {ROWS_SPEC_INIT, ROWS_SPEC_INIT, ROWS_SPEC_INIT, ROWS_SPEC_INIT};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    specs[0].audit_seq = 8;
    specs[0].trace_id = "t-late";
    specs[0].at_ns += 3 * ROWS_DAY_NS;
    specs[0].task_id = "EXPRESS_GRATITUDE_1";
    specs[1].audit_seq = 7;
    specs[1].trace_id = "t-early";
    specs[1].task_id = "VERIFY_IDENTITY_1";
    specs[2].audit_seq = -1;
    specs[2].trace_id = "t-none";
    specs[3].audit_seq = 9;
    specs[3].trace_id = "t-unverified";
    specs[3].verified = false;
    specs[3].at_ns += ROWS_DAY_NS;
    specs[3].task_id = "VERIFY_IDENTITY_2";
    kit_put(index, specs, 4);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_chain(index, CX_STR("agent-a"), &arena, &entries, &count, &err), &err);
    REQUIRE(count == 2);
    CHECK_STR(entries[0].trace_id, "t-late");
    CHECK_INT(entries[0].seq, 8);
    CHECK_INT(entries[1].seq, 7);
    CHECK(entries[0].arrival < entries[1].arrival);
    CHECK(entries[1].has_hash && entries[1].hash.bytes[31] == 7);
    CHECK(entries[1].has_success && entries[1].success);
    CHECK_STR(entries[1].action, "speak");
    CHECK_STR(entries[1].timestamp, "2025-12-31T23:59:59.600000000Z");
    CHECK(entries[1].timestamp_ns == ROWS_START_NS - 400000000);
    CHECK_STATUS(cx_index_wakeups(index, CX_STR("agent-a"), &arena, &wakeups, &count, &err), &err);
    REQUIRE(count == 3);
    CHECK_STR(wakeups[0].trace_id, "t-early");
    CHECK_STR(wakeups[0].trace_type, "VERIFY_IDENTITY");
    CHECK(wakeups[0].verified && wakeups[0].conscience_passed == CX_TRUE);
    CHECK(!wakeups[1].verified);
    CHECK_STR(wakeups[2].trace_type, "EXPRESS_GRATITUDE");
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

/* --- side tables ------------------------------------------------------------------------------ */

BOTH(keys_batches_and_conflicts_are_kept_and_put_again)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_keyed_row *keyed;
    const cx_conflict_row *conflicts;
    size_t count;
    cx_str agents[] = {CX_STR("agent-a"), CX_STR("agent \"b\"")};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    cx_trust_key key = {
        .key_id = CX_STR("key-1"),
        .agents = agents,
        .agent_count = 2,
        .not_before = ROWS_START_NS,
        .not_after = CX_TIME_NONE,
        .revoked_at = CX_TIME_NONE,
        .compromised_since = CX_TIME_NONE,
        .added_at = ROWS_START_NS,
    };
    memset(key.key.bytes, 0xff, sizeof key.key.bytes);
    cx_batch_row batch = {
        .batch_id = CX_STR("b1"),
        .received_ns = ROWS_START_NS,
        .batch_ns = ROWS_START_NS,
        .consent_ns = CX_TIME_NONE,
        .level = CX_LEVEL_ABSENT,
        .correlation_metadata = CX_STR("{\"run_id\":\"r-1\"}"),
        .received = 3,
        .accepted = 2,
        .rejected = 1,
        .reasons = CX_STR("{\"key_unknown\":1}"),
    };
    cx_conflict_row conflict = {
        .agent = CX_STR("agent-a"),
        .trace_id = CX_STR("t-1"),
        .level = CX_LEVEL_FULL,
        .content = {{1, 2, 3}},
        .received_ns = ROWS_START_NS,
        .actor = CX_STR("agent-a"),
        .seq = 12,
    };
    for (int turn = 0; turn < 2; turn++) {
        CHECK_STATUS(cx_index_begin(index, &err), &err);
        key.revoked_at = turn == 0 ? CX_TIME_NONE : ROWS_START_NS + ROWS_DAY_NS;
        CHECK_STATUS(cx_index_put_key(index, &key, &err), &err);
        CHECK_STATUS(cx_index_put_batch(index, &batch, &err), &err);
        CHECK_STATUS(cx_index_put_conflict(index, &conflict, &err), &err);
        CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    }
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_public_keys WHERE"
                                " revoked_at IS NOT NULL AND public_key_base64 ="
                                " '__________________________________________8'"),
              1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_trace_batches WHERE"
                                " rejected_count = 1 AND trace_level IS NULL"
                                " AND findings IS NULL"),
              1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_trace_batches WHERE"
                                " traces_rejected = 1 AND traces_received = received_count"
                                " AND traces_accepted = accepted_count"
                                " AND rejection_reasons = reasons AND source_ip IS NULL"),
              1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_trace_metrics WHERE"
                                " traces_received_total >= traces_accepted_total"
                                " AND traces_rejected_invalid_sig >= 0"
                                " AND traces_rejected_unknown_key >= 0"
                                " AND traces_rejected_invalid_json >= 0"),
              kit_number(index, "SELECT count(*) FROM cirislens.covenant_trace_metrics"));
    if (pg) /* §14.26: an array is an array, and JSON is JSON */
        CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_public_keys k,"
                                    " cirislens.covenant_trace_batches b WHERE"
                                    " k.agents[2] = 'agent \"b\"' AND"
                                    " b.correlation_metadata->>'run_id' = 'r-1'"),
                  1);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_rows_of_key(index, CX_STR("key-1"), &arena, &keyed, &count, &err), &err);
    REQUIRE(count == 6);
    CHECK_STR(keyed[4].agent, "agent-b");
    CHECK(keyed[4].verified && !keyed[5].verified && keyed[4].level == CX_LEVEL_GENERIC);
    CHECK_STATUS(cx_index_rows_of_key(index, CX_STR("key-2"), &arena, &keyed, &count, &err), &err);
    CHECK_INT(count, 0);
    CHECK_STATUS(cx_index_conflicts(index, CX_STR("agent-a"), CX_STR("t-1"), &arena, &conflicts,
                                    &count, &err),
                 &err);
    REQUIRE(count == 1);
    CHECK(conflicts[0].content.bytes[2] == 3 && conflicts[0].seq == 12 &&
          conflicts[0].level == CX_LEVEL_FULL && conflicts[0].received_ns == ROWS_START_NS);
    cx_arena_done(&arena);
    cx_index_close(index);
}

BOTH(alerts_keep_what_people_said_about_them)
{
    static const char *const texts[] = {
        "{\"alert_id\":\"a1\",\"severity\":\"critical\",\"detection_mechanism\":\"hash_chain\","
        "\"agent_id_hash\":\"agent-a\",\"domain\":null,\"metric\":\"chain\",\"value\":1,"
        "\"evidence_traces\":[\"t-1\",\"t-2\"],\"inputs\":{\"n\":0.25}}",
        "{\"alert_id\":\"a2\",\"severity\":\"warning\",\"detection_mechanism\":\"temporal_drift\","
        "\"evidence_traces\":[]}"};
    cx_err err = {0};
    cx_arena arena;
    const cx_json *alerts;
    size_t count;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (int turn = 0; turn < 2; turn++) {
        CHECK_STATUS(cx_index_begin(index, &err), &err);
        for (size_t i = 0; i < 2; i++) {
            cx_json alert;
            CHECK_STATUS(cx_json_parse_text(cx_str_z(texts[i]), &arena, &alert, &err), &err);
            CHECK_STATUS(cx_index_put_alert(index, &alert, ROWS_START_NS + (int64_t)i, &err), &err);
        }
        if (turn == 0) {
            CHECK_STATUS(cx_index_mark_alert(index, CX_STR("a1"), false, ROWS_START_NS + 5000,
                                             CX_STR("ann"), CX_STR("seen"), &err),
                         &err);
            CHECK_STATUS(cx_index_mark_alert(index, CX_STR("a2"), true, ROWS_START_NS + 6000,
                                             CX_STR("bob"), (cx_str){NULL, 0}, &err),
                         &err);
        }
        CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    }
    CHECK_STATUS(cx_index_alerts(index, false, 10, &arena, &alerts, &count, &err), &err);
    REQUIRE(count == 2);
    const cx_json *one = &alerts[0], *two = &alerts[1];
    if (cx_str_is(CX_JSON_GET_STR(one, "alert_id"), "a2")) {
        one = &alerts[1];
        two = &alerts[0];
    }
    CHECK(CX_JSON_GET(one, "acknowledged")->type == CX_JSON_TRUE);
    CHECK_STR(CX_JSON_GET_STR(one, "acknowledged_by"), "ann");
    CHECK_STR(CX_JSON_GET_STR(one, "acknowledged_notes"), "seen");
    CHECK_STR(CX_JSON_GET_STR(one, "acknowledged_at"), "2026-01-01T00:00:00.000005000Z");
    CHECK(CX_JSON_GET(one, "resolved")->type == CX_JSON_FALSE);
    CHECK(cx_json_pointer(one, CX_STR("/inputs/n")) != NULL);
    CHECK_STR(CX_JSON_GET_STR(one, "timestamp"), "2026-01-01T00:00:00.000000000Z");
    CHECK(CX_JSON_GET(two, "resolved")->type == CX_JSON_TRUE);
    CHECK(CX_JSON_GET(two, "resolved_notes")->type == CX_JSON_NULL);
    CHECK_STATUS(cx_index_alerts(index, true, 10, &arena, &alerts, &count, &err), &err);
    REQUIRE(count == 1);
    CHECK_STR(CX_JSON_GET_STR(&alerts[0], "alert_id"), "a1");
    CHECK_INT(kit_number(index, pg ? "SELECT CAST(cardinality(evidence_traces) AS bigint) FROM"
                                     " cirislens.coherence_ratchet_alerts WHERE alert_id = 'a1'"
                                   : "SELECT json_array_length(evidence_traces) FROM"
                                     " cirislens.coherence_ratchet_alerts WHERE alert_id = 'a1'"),
              2);
    cx_arena_done(&arena);
    cx_index_close(index);
}

/* --- age -------------------------------------------------------------------------------------- */

BOTH(age_takes_whole_days_and_leaves_the_rest_right)
{
    cx_err err = {0};
    uint64_t dropped;
    cx_index_status status;
    rows_spec specs[12], split = ROWS_SPEC_INIT;
    static char ids[12][16];
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    for (size_t i = 0; i < 12; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "d-%zu", i);
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].at_ns += (int64_t)i * ROWS_DAY_NS / 2;
        specs[i].rationale = "words";
    }
    kit_put(index, specs, 12);
    /* A trace of which the better row is old. */
    split.trace_id = "d-10";
    split.level = CX_LEVEL_FULL;
    kit_put(index, &split, 1);
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + 2 * ROWS_DAY_NS + 3, &dropped, &err), &err);
    CHECK_INT(dropped, 5);
    CHECK_STATUS(cx_index_get_status(index, &status, &err), &err);
    CHECK_INT(status.trace_rows, 8);
    CHECK_INT(status.position.commit, kit_position.commit);
    CHECK_INT(status.schema_version, CX_INDEX_VERSION);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_trace_keys"), 8);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"
                                " WHERE primary_row = TRUE"),
              8);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.text = CX_STR("words");
    CHECK_FINDS(index, &query, "d-11 d-10 d-9 d-8 d-7 d-6 d-5 d-4");
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + 2 * ROWS_DAY_NS + 3, &dropped, &err), &err);
    CHECK_INT(dropped, 0);
    kit_put(index, specs, 1); /* an old one that comes late is kept until the next time */
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + 2 * ROWS_DAY_NS, &dropped, &err), &err);
    CHECK_INT(dropped, 1);
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + 90 * ROWS_DAY_NS, &dropped, &err), &err);
    CHECK_INT(dropped, 8);
    cx_index_close(index);
    (void)pg;
}

/* Twelve rows an hour of three days, each with some kilobytes of text. */
static void put_three_days(cx_index *index)
{
    static char text[6000], ids[72][16];
    rows_spec specs[72];
    memset(text, 'x', sizeof text - 1);
    for (size_t i = 0; i < CX_COUNT_OF(specs); i++) {
        (void)snprintf(ids[i], sizeof ids[i], "h-%zu", i);
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].at_ns += (int64_t)i * ROWS_DAY_NS / 24;
        specs[i].rationale = text;
    }
    kit_put(index, specs, CX_COUNT_OF(specs));
}

BOTH(size_takes_the_oldest_days_then_hours_and_says_so)
{
    cx_err err = {0};
    uint64_t dropped = 0;
    int64_t retained_ns, newest_ns = ROWS_START_NS + 71 * (ROWS_DAY_NS / 24);
    cx_index_status status, after;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    if (pg) {
        CHECK_INT(cx_index_bound(index, 1 << 20, &dropped, &err).code, CX_E_UNSUPPORTED);
        cx_index_close(index);
        return;
    }
    CHECK_STATUS(cx_index_get_status(index, &status, &err), &err);
    uint64_t empty = status.bytes_used;
    put_three_days(index);
    CHECK_STATUS(cx_index_get_status(index, &status, &err), &err);
    CHECK(status.bytes_used > empty && status.bytes_file >= status.bytes_used);
    CHECK_INT(status.retained_ns, CX_TIME_NONE);
    CHECK_STATUS(cx_index_bound(index, status.bytes_used, &dropped, &err), &err);
    CHECK_INT(dropped, 0); /* what fits stays */
    uint64_t max = empty + (status.bytes_used - empty) / 2;
    CHECK_STATUS(cx_index_bound(index, max, &dropped, &err), &err);
    CHECK_STATUS(cx_index_get_status(index, &after, &err), &err);
    CHECK(dropped > 0 && after.trace_rows == status.trace_rows - dropped);
    CHECK(after.bytes_used <= max && after.trace_rows > 0);
    CHECK_STATUS(cx_index_retained(index, &retained_ns, &err), &err);
    CHECK(retained_ns > ROWS_START_NS && retained_ns == after.retained_ns);
    CHECK_INT(retained_ns % ROWS_DAY_NS, 0);
    /* Less than a day takes: then hours go, and the newest stays whatever it takes. */
    CHECK_STATUS(cx_index_bound(index, empty, &dropped, &err), &err);
    CHECK_STATUS(cx_index_get_status(index, &after, &err), &err);
    CHECK_INT(after.trace_rows, 1);
    CHECK(after.retained_ns > retained_ns && after.retained_ns <= newest_ns);
    CHECK_STATUS(cx_index_bound(index, 1, &dropped, &err), &err);
    CHECK_INT(dropped, 0);
    /* The space is used again. */
    uint64_t file = after.bytes_file;
    put_three_days(index);
    CHECK_STATUS(cx_index_get_status(index, &after, &err), &err);
    CHECK(after.bytes_file <= file + file / 4);
    cx_index_close(index);
}

/* --- what PostgreSQL cannot keep -------------------------------------------------------------- */

/* A generator of long texts of distinct words: a tsvector of all of them would be refused. */
static char *long_text(cx_arena *arena, size_t words)
{
    char *text = CX_ARENA_ARRAY(arena, char, words * 10 + 1);
    size_t size = 0;
    for (size_t i = 0; i < words; i++)
        size += (size_t)snprintf(text + size, 11, "w%08zu ", i);
    return text;
}

BOTH(nothing_a_sender_writes_makes_an_insert_fail)
{
    cx_err err = {0};
    cx_arena arena;
    cx_trace_row row;
    rows_spec spec = ROWS_SPEC_INIT;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    spec.action_extra = ",\"a\\u0000b\":\"nul \\u0000 and \\ud800 alone\",\"big\":"
                        "123456789012345678901234567890,\"small\":1e-99999,\"flat\":0e99999,"
                        "\"tokens_input\":99999999999999999999,\"carbon_grams\":1e300,"
                        "\"models_used_\":[1],\"audit_signature\":\"x\\u0000y\"";
    spec.rationale = long_text(&arena, 200000);
    char *task = CX_ARENA_ARRAY(&arena, char, 5001);
    memset(task, 'x', 5000);
    task[5000] = 0;
    spec.task_id = task;
    kit_put(index, &spec, 1);
    /* Years at both ends. */
    spec = (rows_spec)ROWS_SPEC_INIT;
    spec.trace_id = "t-1970";
    spec.at_ns = 2 * INT64_C(1000000000);
    kit_put(index, &spec, 1);
    spec.trace_id = "t-2261";
    spec.at_ns = INT64_C(9183110400) * 1000000000;
    kit_put(index, &spec, 1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 3);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces WHERE"
                                " task_id IS NULL AND tokens_input IS NULL AND"
                                " carbon_grams = 1e300 AND audit_signature = 'x\xef\xbf\xbdy'"),
              1);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.text = CX_STR("w00000017 w00000004");
    CHECK_FINDS(index, &query, "t-1");
    query.text = (cx_str){NULL, 0};
    query.trace_id = CX_STR("t-1");
    query.components = true;
    const cx_found_row *rows;
    size_t count;
    bool more;
    cx_json data;
    CHECK_STATUS(cx_index_find(index, &query, &arena, &rows, &count, &more, &err), &err);
    REQUIRE(count == 1);
    CHECK_STATUS(cx_json_parse_text(rows[0].cells[CX_COL_action_result].text, &arena, &data, &err),
                 &err);
    const cx_json *big = CX_JSON_GET(&data, "big");
    REQUIRE(big != NULL);
    CHECK_STR(cx_json_text(big), "123456789012345678901234567890");
    CHECK_STR(CX_JSON_GET_STR(&data, "a\xef\xbf\xbd"
                                     "b"),
              "nul \xef\xbf\xbd and \xef\xbf\xbd alone");
    (void)row;
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

/* The same for what does not come as a row, and for what is asked. */
BOTH(names_that_cannot_be_stored_are_found_as_they_were_stored)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_conflict_row *conflicts;
    size_t count;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    cx_conflict_row conflict = {.agent = CX_STR("agent-a"),
                                .trace_id = CX_STR("nul\0\xff\xed\xa0\x80"),
                                .level = CX_LEVEL_FULL,
                                .actor = CX_STR("agent-a"),
                                .seq = 1};
    cx_batch_row batch = {
        .batch_id = CX_STR("b"),
        .level = CX_LEVEL_GENERIC,
        .correlation_metadata = CX_STR("{\"a\\u0000\":[\"\\ud800\",1e-99999]}"),
        .reasons = CX_STR("{}"),
    };
    cx_json alert;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(CX_STR("{\"alert_id\":\"a\",\"severity\":\"warning\","
                                           "\"detection_mechanism\":\"x\",\"domain\":"
                                           "\"d\\u0000\",\"evidence_traces\":[\"t\\u0000\"]}"),
                                    &arena, &alert, &err),
                 &err);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_put_conflict(index, &conflict, &err), &err);
    CHECK_STATUS(cx_index_put_batch(index, &batch, &err), &err);
    CHECK_STATUS(cx_index_put_alert(index, &alert, ROWS_START_NS, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    CHECK_STATUS(cx_index_conflicts(index, CX_STR("agent-a"), conflict.trace_id, &arena, &conflicts,
                                    &count, &err),
                 &err);
    REQUIRE(count == 1);
    CHECK_STR(conflicts[0].trace_id, "nul\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.task_id = CX_STR("a\0b\xff");
    CHECK_FINDS(index, &query, "");
    query.task_id = (cx_str){NULL, 0};
    query.text = CX_STR("\xff\xfe\0quick");
    CHECK_FINDS(index, &query, "t-2"); /* what is no letter is no word */
    cx_arena_done(&arena);
    cx_index_close(index);
    (void)pg;
}

BOTH(an_erased_trace_leaves_its_row_and_its_words)
{
    cx_err err = {0};
    rows_spec specs[2] = {ROWS_SPEC_INIT, ROWS_SPEC_INIT};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    specs[1].level = CX_LEVEL_FULL;
    specs[1].rationale = "zanzibarium";
    kit_put(index, specs, 2);
    CHECK_PRIMARY(index, "full_traces");
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_remove(index, CX_STR("agent-a"), CX_STR("t-1"), CX_LEVEL_FULL, &err),
                 &err);
    CHECK_STATUS(cx_index_remove(index, CX_STR("agent-a"), CX_STR("t-9"), CX_LEVEL_FULL, &err),
                 &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    CHECK_PRIMARY(index, "generic");
    cx_index_close(index);
    if (pg)
        return;
    /* In no byte of the file. */
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), where, 1 << 24, &bytes, &err), &err);
    CHECK(bytes.size > 10000 && memmem(bytes.data, bytes.size, "zanzibarium", 11) == NULL);
    cx_buf_done(&bytes);
}

/* --- SQL of others ---------------------------------------------------------------------------- */

BOTH(the_queries_of_the_seed_run)
{
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM (SELECT\n"
                                "    trace_id,\n    trace_level,\n    csdma_plausibility_score,\n"
                                "    dsdma_domain_alignment,\n    idma_k_eff,\n"
                                "    idma_correlation_risk,\n    idma_fragility_flag,\n"
                                "    idma_phase,\n    coherence_level,\n    action_rationale,\n"
                                "    selected_action,\n    conscience_passed\n"
                                "FROM cirislens.covenant_traces\nWHERE signature_verified = TRUE\n"
                                "ORDER BY timestamp DESC) q"),
              5);
    CHECK_INT(kit_number(index, pg ? "SELECT count(*) FROM (SELECT trace_id, agent_id_hash,"
                                     " idma_k_eff, idma_phase FROM cirislens.covenant_traces"
                                     " WHERE idma_fragility_flag = TRUE"
                                     " AND timestamp > NOW() - INTERVAL '24000 hours'"
                                     " ORDER BY idma_k_eff ASC) q"
                                   : "SELECT count(*) FROM (SELECT trace_id, agent_id_hash,"
                                     " idma_k_eff, idma_phase FROM cirislens.covenant_traces"
                                     " WHERE idma_fragility_flag = TRUE AND timestamp >"
                                     " strftime('%Y-%m-%dT%H:%M:%S', 'now', '-24000 hours')"
                                     " ORDER BY idma_k_eff ASC) q"),
              5);
    cx_index_close(index);
    if (pg)
        return;
    /* A program that opens the file finds the table, the view and the words by their plain
     * names. */
    cx_err err = {0};
    cx_db *db;
    cx_db_statement *statement;
    bool there;
    CHECK_STATUS(cx_db_open(where, CX_DB_READ, &db, &err), &err);
    CHECK_STATUS(cx_db_prepare(db,
                               "SELECT (SELECT count(*) FROM covenant_traces) +"
                               " (SELECT sum(traces) FROM covenant_agent_hours) +"
                               " (SELECT count(*) FROM covenant_traces_text"
                               " WHERE covenant_traces_text MATCH 'quick')",
                               &statement, &err),
                 &err);
    CHECK_STATUS(cx_db_step(statement, &there, &err), &err);
    CHECK_INT(cx_db_int(statement, 0), 6 + 5 + 1);
    cx_db_finish(statement);
    cx_db_close(db);
}

static cx_status ignore_row(void *arg, const cx_cell *cells, cx_err *err)
{
    (void)arg;
    (void)cells;
    (void)err;
    return CX_SUCCESS;
}

/* A block of docs/sql.md is run as it stands, wrapped so that it answers one number. */
static void run_block(cx_index *index, const char *sql, size_t size)
{
    static const cx_cell_type types[] = {CX_CELL_INT};
    cx_err err = {0};
    cx_buf text;
    while (size > 0 && (sql[size - 1] == '\n' || sql[size - 1] == ';'))
        size--;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_printf(&text, "SELECT count(*) FROM (%.*s) q", (int)size, sql);
    cx_question question = {cx_buf_z(&text), NULL, 0, types, 1, ignore_row, NULL};
    cx_status status = cx_index_ask(index, &question, &err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", err.message, question.sql);
    cx_buf_done(&text);
}

BOTH(the_page_about_sql_tells_the_truth)
{
    cx_err err = {0};
    cx_buf page;
    unsigned blocks = 0;
    cx_buf_init(&page, cx_alloc_default());
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    CHECK_STATUS(
        cx_io_read_file(cx_io_system(), cx_test_path("../docs/sql.md"), 1 << 20, &page, &err),
        &err);
    const char *text = cx_buf_z(&page);
    for (unsigned i = 0; i < CX_COL_COUNT; i++) {
        char name[80];
        (void)snprintf(name, sizeof name, "`%s`", cx_trace_columns[i].name);
        if (strstr(text, name) == NULL)
            cx_test_fail(__FILE__, __LINE__, "the page does not know %s", name);
    }
    for (size_t i = 0; cx_schema_tables[i] != NULL; i++)
        CHECK(strstr(text, cx_schema_tables[i]) != NULL);
    for (const char *at = text; (at = strstr(at, "```sql")) != NULL;) {
        const char *line = strchr(at, '\n') + 1, *end = strstr(line, "```");
        bool other = strncmp(at + 6, pg ? " sqlite" : " postgresql", pg ? 7 : 11) == 0;
        if (!other) {
            run_block(index, line, (size_t)(end - line));
            blocks++;
        }
        at = end + 3;
    }
    CHECK_INT(blocks, 7);
    cx_buf_done(&page);
    cx_index_close(index);
}

BOTH(summaries_of_hours_follow_what_came_and_changed)
{
    cx_err err = {0};
    uint64_t hours;
    rows_spec late = ROWS_SPEC_INIT;
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    put_six(index);
    late.trace_id = "t-hour";
    late.at_ns += 90 * MINUTE_NS;
    late.csdma = (double)NAN;
    kit_put(index, &late, 1);
    CHECK_STATUS(cx_index_refresh(index, &hours, &err), &err);
    CHECK_INT(hours, pg ? 2 : 0);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(traces) AS bigint) FROM"
                                " cirislens.covenant_agent_hours"),
              6);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(overrides) AS bigint) FROM"
                                " cirislens.covenant_agent_hours WHERE agent_id_hash ="
                                " 'agent-b' AND conscience_rate = 0 AND entropy_rate IS NULL"),
              1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_agent_hours WHERE"
                                " avg_csdma IS NULL AND tokens_total = 100 AND traces = 1"),
              1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_agent_hours WHERE"
                                " trace_type = 'VERIFY_IDENTITY' AND avg_csdma = 0.125"
                                " AND min_csdma = 0.125 AND success_rate = 1"),
              1);
    /* The names of spec 1.0: every column of its summaries, and rates of what is not NULL. */
    CHECK_INT(kit_number(index,
                         "SELECT count(*) FROM (SELECT hour, trace_count, unique_agents,"
                         " verify_identity_count, validate_integrity_count,"
                         " evaluate_resilience_count, accept_incompleteness_count,"
                         " express_gratitude_count, avg_csdma_plausibility,"
                         " min_csdma_plausibility, avg_dsdma_alignment, min_dsdma_alignment,"
                         " avg_entropy_level, avg_coherence_level, conscience_pass_rate,"
                         " entropy_pass_rate, coherence_pass_rate, optimization_veto_pass_rate,"
                         " epistemic_humility_pass_rate, overrides_count, speak_count,"
                         " defer_count, ponder_count, task_complete_count, total_tokens,"
                         " total_cost_cents, total_llm_calls, avg_processing_ms,"
                         " max_processing_ms FROM cirislens.covenant_traces_hourly) AS hours"),
              2);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(trace_count) AS bigint) FROM"
                                " cirislens.covenant_traces_hourly"),
              6);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(overrides_count) AS bigint) FROM"
                                " cirislens.covenant_traces_hourly"),
              1);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(verify_identity_count) AS bigint) FROM"
                                " cirislens.covenant_traces_hourly"),
              kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces WHERE trace_type"
                                " = 'VERIFY_IDENTITY' AND signature_verified = TRUE"
                                " AND primary_row = TRUE"));
    CHECK_INT(kit_number(index, "SELECT CAST(1000 * min(min_csdma_plausibility) AS bigint) FROM"
                                " cirislens.covenant_traces_hourly"),
              kit_number(index, "SELECT CAST(1000 * min(csdma_plausibility_score) AS bigint) FROM"
                                " cirislens.covenant_traces WHERE signature_verified = TRUE"
                                " AND primary_row = TRUE"));
    CHECK_INT(kit_number(index, "SELECT CAST(sum(traces_verify_identity + traces_other"
                                " + traces_validate_integrity + traces_evaluate_resilience"
                                " + traces_accept_incompleteness + traces_express_gratitude)"
                                " AS bigint) FROM cirislens.covenant_trace_metrics"),
              6);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_fragile_day WHERE"
                                " trace_id IS NULL OR idma_k_eff IS NULL"),
              0);
    rejudge(index, CX_LEVEL_GENERIC, false);
    CHECK_STATUS(cx_index_refresh(index, &hours, &err), &err);
    CHECK_INT(hours, pg ? 1 : 0);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(trace_count) AS bigint) FROM"
                                " cirislens.covenant_traces_hourly"),
              5);
    CHECK_INT(kit_number(index, "SELECT CAST(sum(traces) AS bigint) FROM"
                                " cirislens.covenant_agent_hours"),
              5);
    CHECK_STATUS(cx_index_refresh(index, &hours, &err), &err);
    CHECK_INT(hours, 0);
    cx_index_close(index);
}

/* --- plans ------------------------------------------------------------------------------------ */

typedef struct plan {
    cx_buf text;
    size_t column; /* of the answer's text */
} plan;

static cx_status take_plan(void *arg, const cx_cell *cells, cx_err *err)
{
    plan *p = arg;
    (void)err;
    cx_buf_add_str(&p->text, cells[p->column].text);
    cx_buf_add_byte(&p->text, '\n');
    return CX_SUCCESS;
}

/* How the database would answer a query. */
static void explain(cx_index *index, bool pg, const cx_trace_query *query, plan *out)
{
    static const cx_cell_type types[] = {CX_CELL_INT, CX_CELL_INT, CX_CELL_INT, CX_CELL_TEXT};
    cx_sql_value values[32];
    unsigned count;
    cx_err err = {0};
    cx_arena arena;
    cx_buf sql;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_clear(&out->text);
    out->column = pg ? 0 : 3;
    cx_buf_add_z(&sql, pg ? "EXPLAIN (COSTS OFF) " : "EXPLAIN QUERY PLAN ");
    CHECK_STATUS(cx_index_find_sql(index, query, &arena, &sql, values, &count, &err), &err);
    cx_question question = {cx_buf_z(&sql), values,    count, pg ? types + 3 : types,
                            pg ? 1 : 4,     take_plan, out};
    CHECK_STATUS(cx_index_ask(index, &question, &err), &err);
    cx_buf_done(&sql);
    cx_arena_done(&arena);
}

/* Goes through an index in order: no table is read whole, and nothing is sorted. */
static void check_plan(cx_index *index, bool pg, const cx_trace_query *query, const char *by,
                       int line)
{
    plan p = {.column = 0};
    cx_buf_init(&p.text, cx_alloc_default());
    explain(index, pg, query, &p);
    const char *text = cx_buf_z(&p.text);
    bool bad = pg ? strstr(text, "Seq Scan") != NULL || strstr(text, "->  Sort") != NULL
                  : strstr(text, "SCAN t\n") != NULL || strstr(text, "TEMP B-TREE") != NULL;
    if (bad || strstr(text, by) == NULL)
        cx_test_fail(__FILE__, line, "expected %s in order, got:\n%s", by, text);
    cx_buf_done(&p.text);
}
#define CHECK_PLAN(query, sqlite, pg_part) \
    check_plan(index, pg, (query), pg ? (pg_part) : (sqlite), __LINE__)

BOTH(queries_walk_an_index)
{
    enum { ROWS = 3000 };
    static rows_spec specs[ROWS];
    static char ids[ROWS][16], agents[50][16], tasks[500][16];
    cx_err err = {0};
    cx_index *index = kit_open_empty(where);
    REQUIRE(index != NULL);
    for (size_t i = 0; i < ROWS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "t-%zu", i);
        (void)snprintf(agents[i % 50], sizeof agents[0], "agent-%zu", i % 50);
        (void)snprintf(tasks[i % 500], sizeof tasks[0], "task-%zu", i % 500);
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].agent = agents[i % 50];
        specs[i].task_id = tasks[i % 500];
        specs[i].verified = i % 100 != 0;
        specs[i].at_ns += (int64_t)(i % 3) * ROWS_DAY_NS + (int64_t)i * MINUTE_NS / 4;
    }
    kit_put(index, specs, ROWS);
    /* So few rows are sorted faster than walked; what is asked here is whether there is a way. */
    CHECK_STATUS(index->engine->run(index,
                                    pg ? "ANALYZE; SET enable_seqscan = off; SET enable_sort = off;"
                                         " SET enable_bitmapscan = off"
                                       : "ANALYZE cirislens",
                                    &err),
                 &err);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    CHECK_PLAN(&query, "covenant_traces_by_time", "timestamp_id_idx");
    query.has_cursor = true;
    query.cursor_ns = ROWS_START_NS + ROWS_DAY_NS;
    query.cursor_id = 1000;
    CHECK_PLAN(&query, "covenant_traces_by_time", "timestamp_id_idx");
    query.from_ns = ROWS_START_NS;
    CHECK_PLAN(&query, "covenant_traces_by_time", "timestamp_id_idx");
    query = (cx_trace_query)CX_TRACE_QUERY_INIT;
    query.agent = CX_STR("agent-7");
    CHECK_PLAN(&query, "covenant_traces_by_agent", "agent_id_hash_timestamp_id_idx");
    query.has_cursor = true;
    query.cursor_ns = ROWS_START_NS + ROWS_DAY_NS;
    query.cursor_id = 1000;
    CHECK_PLAN(&query, "covenant_traces_by_agent", "agent_id_hash_timestamp_id_idx");
    query = (cx_trace_query)CX_TRACE_QUERY_INIT;
    query.verified = CX_FALSE;
    CHECK_PLAN(&query, "covenant_traces_unverified", "Index");
    cx_index_close(index);
}
