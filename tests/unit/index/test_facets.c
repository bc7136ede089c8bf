/* What the inbox counts and finds by, on both engines: right whatever happened to the rows. */
#include "tests/support/index_kit.h"

enum { ROWS = 120, HOURS = 30 };

typedef struct counted {
    uint64_t all, verified, agent_a, k_eff[4], gate[4], level[3], hours[HOURS];
    bool complete;
} counted;

static cx_status take(void *arg, const cx_facet_cell *cell, cx_err *err)
{
    counted *c = arg;
    (void)err;
    c->all += cell->traces;
    c->verified += cell->verified ? cell->traces : 0;
    c->agent_a += cx_str_is(cell->agent, "agent-a") ? cell->traces : 0;
    c->k_eff[cell->k_eff] += cell->traces;
    c->gate[cell->gate] += cell->traces;
    c->level[cell->level] += cell->traces;
    int64_t hour = cell->hour - ROWS_START_NS / (INT64_C(3600) * 1000000000);
    CHECK(hour >= 0 && hour < HOURS);
    c->hours[hour >= 0 && hour < HOURS ? hour : 0] += cell->traces;
    return CX_SUCCESS;
}

static counted count(cx_index *index, const char *words)
{
    counted c = {0};
    cx_err err = {0};
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.words = words == NULL ? (cx_str){NULL, 0} : cx_str_z(words);
    CHECK_STATUS(cx_index_facets(index, &query, take, &c, &c.complete, &err), &err);
    return c;
}

/* How many a query finds; no more than a thousand are there. */
static uint64_t found(cx_index *index, const cx_trace_query *query)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_found_row *rows;
    size_t n = 0;
    bool more = false;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_trace_query all = *query;
    all.limit = 1000;
    CHECK_STATUS(cx_index_find(index, &all, &arena, &rows, &n, &more, &err), &err);
    CHECK(!more);
    cx_arena_done(&arena);
    return n;
}

/* Every class holds as many as a page of it does, and as SQL says. */
static void check_counts(cx_index *index)
{
    const counted c = count(index, NULL);
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    uint64_t sum = 0;
    query.verified = CX_NULL;
    CHECK(c.complete);
    CHECK_INT(c.all, kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"
                                       " WHERE primary_row = TRUE"));
    CHECK_INT(c.agent_a, kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces WHERE"
                                           " primary_row = TRUE AND agent_id_hash = 'agent-a'"));
    query.verified = CX_TRUE;
    CHECK_INT(c.verified, found(index, &query));
    query.verified = CX_NULL;
    for (int8_t k = 0; k < 4; k++) {
        query.k_eff = k;
        CHECK_INT(c.k_eff[k], found(index, &query));
    }
    query.k_eff = -1;
    for (int8_t g = 0; g < 4; g++) {
        query.gate = g;
        CHECK_INT(c.gate[g], found(index, &query));
    }
    query.gate = -1;
    for (int8_t l = 0; l < 3; l++) {
        query.kept_at = l;
        CHECK_INT(c.level[l], found(index, &query));
    }
    query.kept_at = -1;
    for (int64_t h = 0; h < HOURS; h++) {
        query.from_ns = ROWS_START_NS + h * INT64_C(3600) * 1000000000;
        query.to_ns = query.from_ns + INT64_C(3600) * 1000000000;
        CHECK_INT(c.hours[h], found(index, &query));
        sum += c.hours[h];
    }
    CHECK_INT(sum, c.all);
}

static void make_specs(rows_spec *specs)
{
    static char ids[ROWS][32];
    static const double k_effs[] = {(double)NAN, 1.5, 2.0, 4.9, 5.0, 0.0};
    for (size_t i = 0; i < ROWS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "t-%zu-end", i % 90); /* some come at two levels */
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].agent = i % 90 % 3 == 0 ? "agent-a" : "agent-b";
        specs[i].at_ns += (int64_t)(i % 90) * INT64_C(17) * 60 * 1000000000;
        specs[i].level = (cx_trace_level)(i < 90 ? i % 3 : (i + 1) % 3);
        specs[i].k_eff = k_effs[i % 6];
        specs[i].overridden = i % 7 == 0;
        specs[i].verified = i % 5 != 0;
        specs[i].rationale = i % 2 == 0 ? "even words, well-known" : "odd words";
        specs[i].action = i % 4 == 0 ? "TOOL" : "SPEAK";
        specs[i].seq = i;
    }
}

BOTH(facets_are_right_whatever_happens_to_rows)
{
    rows_spec specs[ROWS];
    cx_err err = {0};
    uint64_t dropped = 0;
    (void)pg;
    cx_index *index = kit_open_empty(where);
    if (index == NULL)
        return;
    CHECK_INT(count(index, NULL).all, 0);
    make_specs(specs);
    kit_put(index, specs, 60);
    check_counts(index);
    kit_put(index, specs + 60, ROWS - 60); /* two levels of some */
    check_counts(index);
    kit_put(index, specs + 30, 30); /* replaced by the same */
    check_counts(index);
    CHECK_INT(count(index, NULL).all, 90);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    const cx_rejudged other = {.agent = CX_STR("agent-b"),
                               .trace_id = CX_STR("t-5-end"),
                               .level = CX_LEVEL_FULL,
                               .verified = true,
                               .form = CX_FORM_B};
    CHECK_STATUS(cx_index_rejudge(index, &other, &err), &err);
    CHECK_STATUS(
        cx_index_remove(index, CX_STR("agent-b"), CX_STR("t-1-end"), CX_LEVEL_DETAILED, &err),
        &err);
    CHECK_STATUS(
        cx_index_remove(index, CX_STR("agent-a"), CX_STR("t-3-end"), CX_LEVEL_GENERIC, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    check_counts(index);
    /* What is rolled back was never there. */
    const counted before = count(index, NULL);
    cx_arena arena;
    cx_trace_row row;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    specs[0].trace_id = "t-new";
    if (rows_make(&specs[0], &arena, &row))
        CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    cx_index_rollback(index);
    cx_arena_done(&arena);
    CHECK_INT(count(index, NULL).all, before.all);
    check_counts(index);
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + ROWS_DAY_NS, &dropped, &err), &err);
    CHECK(dropped > 0);
    check_counts(index);
    CHECK(count(index, NULL).all < before.all && count(index, NULL).all > 0);
    CHECK_STATUS(cx_index_clear(index, &err), &err);
    CHECK_INT(count(index, NULL).all, 0);
    cx_index_close(index);
}

static uint64_t found_words(cx_index *index, const char *words, bool names_only)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.verified = CX_NULL;
    query.words = cx_str_z(words);
    query.names_only = names_only;
    return found(index, &query);
}

/* However many rows a word has, and by whichever way they are then found. */
BOTH(words_begin_names_or_are_said)
{
    static const struct {
        const char *words;
        uint64_t found, by_name;
    } rows[] = {{"even", 45, 0},
                {"EVEN", 45, 0},
                {"eve", 0, 0},
                {"well-known", 45, 0},
                {"known-well", 0, 0},
                {"words", 90, 0},
                {"even words", 45, 0},
                {"even odd", 0, 0},
                {"t-7", 11, 11},
                {"T-7", 11, 11},
                {"t-7-end", 1, 1},
                {"-7-end", 0, 0},
                {"agent-a", 30, 30},
                {"agent-a even", 15, 0},
                {"tool", 23, 23},
                {"Speak odd", 45, 0},
                {"task-1", 90, 90},
                {"th-t-89", 1, 1},
                {"zzz", 0, 0},
                {"!!!", 0, 0},
                {"' OR 1=1", 0, 0},
                {"\"", 0, 0},
                {"*", 0, 0},
                {"NOT even", 0, 0},
                {"%", 0, 0},
                {"even* ^", 0, 0},
                {"\xe2\x80\xae", 0, 0},
                {"   ", 90, 90},
                {"a:b", 0, 0},
                {"NEAR(even)", 0, 0},
                {"{even}", 45, 0},
                {"\xff\xfe", 0, 0}};
    static const int plans[][2] = {{5000, 50000}, {0, 50000}, {0, 0}, {20, 40}};
    rows_spec specs[ROWS];
    cx_err err = {0};
    (void)pg;
    cx_index *index = kit_open_empty(where);
    if (index == NULL)
        return;
    make_specs(specs);
    kit_put(index, specs, 90);
    for (size_t p = 0; p < CX_COUNT_OF(plans); p++) {
        index->few_ids = plans[p][0];
        index->some_ids = plans[p][1];
        for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
            uint64_t all = found_words(index, rows[i].words, false);
            if (all != rows[i].found || found_words(index, rows[i].words, true) != rows[i].by_name)
                cx_test_fail(__FILE__, __LINE__, "%s: %llu, by name %llu", rows[i].words,
                             (unsigned long long)all,
                             (unsigned long long)found_words(index, rows[i].words, true));
            const counted c = count(index, rows[i].words);
            CHECK_INT(c.all, rows[i].found);
            CHECK(c.complete);
        }
    }
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.words = CX_STR("a b c d e f g");
    counted c = {0};
    CHECK_INT(cx_index_facets(index, &query, take, &c, &c.complete, &err).code, CX_E_LIMIT);
    cx_index_close(index);
}

/* What an older program made gets its counts when a newer one opens it. */
CX_TEST(sqlite_facets_of_an_older_index)
{
    rows_spec specs[ROWS];
    cx_err err = {0};
    const char *where = kit_place(false);
    cx_index *index = kit_open_empty(where);
    if (index == NULL)
        return;
    make_specs(specs);
    kit_put(index, specs, ROWS);
    const counted before = count(index, NULL);
    CHECK_STATUS(index->engine->run(index,
                                    "DROP TRIGGER cirislens.covenant_traces_facets_insert;"
                                    "DROP TRIGGER cirislens.covenant_traces_facets_update;"
                                    "DROP TRIGGER cirislens.covenant_traces_facets_delete;"
                                    "DROP TABLE cirislens.covenant_traces_facets;"
                                    "DROP INDEX cirislens.covenant_traces_by_trace;"
                                    "DROP VIEW cirislens.covenant_traces_hourly;"
                                    "DROP VIEW cirislens.covenant_trace_metrics;"
                                    "DROP VIEW cirislens.covenant_traces_fragile_day;"
                                    "ALTER TABLE cirislens.covenant_trace_batches"
                                    " DROP COLUMN traces_received;"
                                    "ALTER TABLE cirislens.covenant_trace_batches"
                                    " DROP COLUMN traces_accepted;"
                                    "ALTER TABLE cirislens.covenant_trace_batches"
                                    " DROP COLUMN traces_rejected;"
                                    "ALTER TABLE cirislens.covenant_trace_batches"
                                    " DROP COLUMN rejection_reasons;"
                                    "ALTER TABLE cirislens.covenant_trace_batches"
                                    " DROP COLUMN source_ip;"
                                    "DROP VIEW cirislens.covenant_agent_hours;"
                                    "CREATE VIEW cirislens.covenant_traces_hourly AS SELECT 1;"
                                    "DROP TABLE cirislens.cortex_steps_text;"
                                    "DROP TABLE cirislens.cortex_steps;"
                                    "DROP TABLE cirislens.cortex_histories;"
                                    "DELETE FROM cirislens.cortex_index_versions WHERE version > 2",
                                    &err),
                 &err);
    cx_index_close(index);
    CHECK_INT(cx_index_open(where, CX_INDEX_READ, &index, &err).code, CX_E_FORMAT);
    CHECK_STATUS(cx_index_open(where, CX_INDEX_WRITE, &index, &err), &err);
    CHECK_INT(count(index, NULL).all, before.all);
    check_counts(index);
    /* The steps are not there yet: the feed starts again. */
    cx_feed_position position = kit_position;
    CHECK_STATUS(cx_index_position(index, kit_home, &position, &err), &err);
    CHECK_INT(position.commit, 0);
    CHECK_INT(position.frames, 0);
    cx_index_close(index);
    kit_remove(where, false);
}
