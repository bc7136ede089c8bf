/* Steps and histories on both engines: what is put is found, counted once, and gone when erased. */
#include "tests/support/index_kit.h"

#include "index/steps.h"

#define SECOND_NS INT64_C(1000000000)
#define START_NS (INT64_C(1800000000) * SECOND_NS)

static cx_step_row step_of(const char *history, const char *ref, const char *text)
{
    return (cx_step_row){.history = cx_str_z(history),
                         .source = CX_STR("codex"),
                         .ref = cx_str_z(ref),
                         .at_ns = START_NS,
                         .end_ns = CX_TIME_NONE,
                         .kind = CX_STR("message"),
                         .agent = CX_STR("main"),
                         .role = CX_STR("assistant"),
                         .text = cx_str_z(text),
                         .actor = CX_STR("sessions"),
                         .seq = 1};
}

static void put_steps(cx_index *index, const cx_step_row *rows, size_t count)
{
    cx_err err = {0};
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    for (size_t i = 0; i < count; i++)
        CHECK_STATUS(cx_index_put_step(index, &rows[i], &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
}

/* Refs that are found, newest first; "!TAG" when the question is refused. */
static void check_search(cx_index *index, cx_step_query query, const char *expected)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_found_step *found;
    size_t count = 0;
    bool more = false;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_status status = cx_index_search(index, &query, &arena, &found, &count, &more, &err);
    if (cx_failed(status))
        cx_buf_printf(&out, "!%s", err.tag);
    for (size_t i = 0; !cx_failed(status) && i < count; i++)
        cx_buf_printf(&out, "%s%.*s", i == 0 ? "" : " ", (int)found[i].ref.size, found[i].ref.data);
    if (more)
        cx_buf_add_z(&out, " +");
    cx_str text = cx_buf_str(&out);
    CHECK_STR(text, expected);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

static cx_step_query words(const char *text)
{
    return (cx_step_query){.words = cx_str_z(text), .limit = 10};
}

static cx_found_history history_named(cx_index *index, const char *name, cx_arena *arena)
{
    cx_err err = {0};
    const cx_found_history *found;
    size_t count = 0;
    bool more = false;
    cx_history_query query = CX_HISTORY_QUERY_INIT;
    query.name = cx_str_z(name);
    CHECK_STATUS(cx_index_histories(index, &query, arena, &found, &count, &more, &err), &err);
    CHECK_INT(count, 1);
    return count == 1 ? found[0] : (cx_found_history){0};
}

BOTH(steps_are_found_by_their_words)
{
    cx_index *index = kit_open_empty(where);
    (void)pg;
    REQUIRE(index != NULL);
    cx_step_row rows[] = {step_of("session/a", "1", "The quick brown fox isn't here"),
                          step_of("session/a", "2", "a refund_limit of 500 EUR; path src/main.c"),
                          step_of("session/b", "3",
                                  "Stra\xC3\x9F"
                                  "e und \xC3\x84rger"),
                          step_of("session/b", "4", "quick; \"quoted\" and 'single' % _ \\")};
    rows[3].kind = CX_STR("tool_call");
    rows[3].tool = CX_STR("Bash");
    put_steps(index, rows, CX_COUNT_OF(rows));
    check_search(index, words("quick"), "4 1");
    check_search(index, words("QUICK fox"), "1");
    check_search(index, words("fox quick br"), "1"); /* the last is a beginning */
    check_search(index, words("br quick"), "");      /* the first is not */
    check_search(index, words("src/main.c"), "2");
    check_search(index, words("\xC3\xA4rger"), "3");
    check_search(index, words("\"quoted\""), "4");
    check_search(index, words("'single'"), "4");
    check_search(index, words("isn't"), "1");
    check_search(index, words("% _ \\"), "!NoWords");
    check_search(index, words("a b c d e f g"), "!TooManyWords");
    cx_step_query query = words("quick");
    query.history = CX_STR("session/a");
    check_search(index, query, "1");
    query = words("quick");
    query.tool = CX_STR("Bash");
    check_search(index, query, "4");
    query = words("quick");
    query.limit = 1;
    check_search(index, query, "4 +");
    query.has_cursor = true;
    query.cursor_id = 4;
    check_search(index, query, "1");
    cx_index_close(index);
}

BOTH(histories_are_counted_once)
{
    cx_arena arena;
    cx_index *index = kit_open_empty(where);
    (void)pg;
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_step_row rows[] = {step_of("session/a", "1", "one"), step_of("session/a", "2", "two"),
                          step_of("session/a", "3", "three")};
    rows[0].role = CX_STR("user");
    rows[0].agent = CX_STR("user");
    rows[0].title = CX_STR("what was asked");
    rows[0].title_rank = 3;
    rows[1].title = CX_STR("a lesser title");
    rows[1].title_rank = 1;
    rows[1].at_ns = START_NS + 5 * SECOND_NS;
    rows[1].message_id = CX_STR("m");
    rows[1].tokens_input = 10;
    rows[1].tokens_output = 1;
    rows[1].cost_usd = 0.5;
    rows[2] = rows[1]; /* the same answer, with its last usage */
    rows[2].ref = CX_STR("3");
    rows[2].kind = CX_STR("tool_call");
    rows[2].failed = true;
    rows[2].tokens_output = 7;
    rows[2].cost_usd = 0;
    put_steps(index, rows, 2);
    put_steps(index, rows, 3); /* again: nothing but the new one counts */
    cx_found_history history = history_named(index, "session/a", &arena);
    CHECK_STR(history.title, "what was asked");
    CHECK_STR(history.agent, "main");
    CHECK_INT(history.steps, 3);
    CHECK_INT(history.calls, 1);
    CHECK_INT(history.errors, 1);
    CHECK_INT(history.tokens_input, 10);
    CHECK_INT(history.tokens_output, 7);
    CHECK(history.cost_usd == 0.5);
    CHECK_INT(history.first_ns, START_NS);
    CHECK_INT(history.last_ns, START_NS + 5 * SECOND_NS);
    cx_arena_done(&arena);
    cx_index_close(index);
}

/* "names", newest first. */
static void check_histories(cx_index *index, const cx_history_query *query, const char *expected)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_found_history *found;
    size_t count = 0;
    bool more = false;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_index_histories(index, query, &arena, &found, &count, &more, &err), &err);
    for (size_t i = 0; i < count; i++)
        cx_buf_printf(&out, "%s%.*s", i == 0 ? "" : " ", (int)found[i].name.size,
                      found[i].name.data);
    if (more)
        cx_buf_add_z(&out, " +");
    cx_str text = cx_buf_str(&out);
    CHECK_STR(text, expected);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

BOTH(histories_are_listed_newest_first_and_by_words)
{
    cx_index *index = kit_open_empty(where);
    (void)pg;
    REQUIRE(index != NULL);
    cx_step_row rows[] = {step_of("a", "1", "apple pie"), step_of("b", "1", "banana"),
                          step_of("c", "1", "cherry")};
    rows[1].at_ns += 2 * SECOND_NS;
    rows[2].at_ns += SECOND_NS;
    rows[2].title = CX_STR("Apple of 100%");
    rows[2].title_rank = 2;
    put_steps(index, rows, 3);
    cx_history_query query = CX_HISTORY_QUERY_INIT;
    check_histories(index, &query, "b c a");
    query.words = CX_STR("apple");
    check_histories(index, &query, "c a");
    query.words = CX_STR("100%");
    check_histories(index, &query, "c");
    query.words = (cx_str){NULL, 0};
    query.limit = 2;
    check_histories(index, &query, "b c +");
    query.has_cursor = true;
    query.cursor_ns = START_NS + SECOND_NS;
    query.cursor_id = 3;
    check_histories(index, &query, "a");
    query = (cx_history_query)CX_HISTORY_QUERY_INIT;
    query.from_ns = START_NS + SECOND_NS;
    query.to_ns = START_NS + 2 * SECOND_NS;
    check_histories(index, &query, "c");
    cx_index_close(index);
}

BOTH(erased_steps_leave_nothing)
{
    cx_err err = {0};
    cx_arena arena;
    cx_index *index = kit_open_empty(where);
    (void)pg;
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_step_row rows[] = {step_of("a", "1", "verysecret words"), step_of("a", "2", "plain words")};
    rows[0].title = CX_STR("verysecret title");
    rows[0].title_rank = 3;
    rows[0].tokens_input = 9;
    rows[1].seq = 2;
    put_steps(index, rows, 2);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_forget(index, CX_STR("sessions"), 1, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    check_search(index, words("verysecret"), "");
    check_search(index, words("words"), "2");
    cx_found_history history = history_named(index, "a", &arena);
    CHECK_INT(history.title.size, 0);
    CHECK_INT(history.tokens_input, 0);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.cortex_steps WHERE text LIKE"
                                " '%verysecret%'"),
              0);
    cx_arena_done(&arena);
    cx_index_close(index);
}

/* What a growing file leaves for its next piece. */
BOTH(progress_of_a_history_is_kept)
{
    cx_err err = {0};
    cx_arena arena;
    cx_index *index = kit_open_empty(where);
    cx_history_progress progress = {.lines = 7, .pending = CX_STR("YWJj"), .path = CX_STR("/p")};
    (void)pg;
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(
        cx_index_set_history_progress(index, CX_STR("s"), CX_STR("codex"), &progress, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    progress = (cx_history_progress){0};
    CHECK_STATUS(cx_index_history_progress(index, CX_STR("s"), &arena, &progress, &err), &err);
    CHECK_INT(progress.lines, 7);
    CHECK_STR(progress.pending, "YWJj");
    CHECK_STATUS(cx_index_history_progress(index, CX_STR("other"), &arena, &progress, &err), &err);
    CHECK_INT(progress.lines, 0);
    CHECK(progress.pending.data == NULL);
    cx_arena_done(&arena);
    cx_index_close(index);
}

/* Traces and memories are found by their words, and listed elsewhere. */
BOTH(words_of_memories_go_by_their_ref)
{
    cx_err err = {0};
    cx_index *index = kit_open_empty(where);
    (void)pg;
    REQUIRE(index != NULL);
    cx_step_row rows[] = {step_of("memory/ann", "matrix://cortex/Fact/A#1", "verysecret limit"),
                          step_of("memory/ann", "matrix://cortex/Fact/A#12", "verysecret again"),
                          step_of("memory/ann", "matrix://cortex/Fact/AB#1", "verysecret other"),
                          step_of("memory/bob", "matrix://cortex/Fact/A#1", "verysecret bob"),
                          step_of("agent/x", "entry:1.0", "verysecret trace"),
                          step_of("agent/y", "entry:1.0", "verysecret trace"),
                          step_of("agent/y", "h", "verysecret step")};
    for (size_t i = 0; i < 4; i++)
        rows[i].source = CX_STR(CX_SOURCE_MEMORY);
    rows[4].source = rows[5].source = CX_STR(CX_SOURCE_TRACES);
    rows[6].source = CX_STR("steps");
    put_steps(index, rows, CX_COUNT_OF(rows));
    cx_history_query query = CX_HISTORY_QUERY_INIT;
    check_histories(index, &query, "agent/y"); /* it takes steps, too */
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(
        cx_index_forget_refs(index, CX_STR("memory/ann"), CX_STR("matrix://cortex/Fact/A#"), &err),
        &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    check_search(index, words("verysecret"),
                 "h entry:1.0 entry:1.0 matrix://cortex/Fact/A#1 matrix://cortex/Fact/AB#1");
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.cortex_steps WHERE text LIKE"
                                " '%verysecret%'"),
              5);
    /* A memory does not age. */
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_retain_steps(index, START_NS + SECOND_NS, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    check_search(index, words("verysecret"), "matrix://cortex/Fact/A#1 matrix://cortex/Fact/AB#1");
    cx_index_close(index);
}

/* A newer version of a document takes the place of the older one. */
BOTH(a_history_is_renewed)
{
    cx_err err = {0};
    cx_arena arena;
    cx_index *index = kit_open_empty(where);
    (void)pg;
    REQUIRE(index != NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_step_row rows[] = {step_of("session/a", "1", "old words"),
                          step_of("session/a", "2", "older words"),
                          step_of("session/b", "1", "other words")};
    rows[0].title = CX_STR("old title");
    rows[0].title_rank = 3;
    put_steps(index, rows, 3);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_renew_history(index, CX_STR("session/a"), CX_STR("session/c"), &err),
                 &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    check_search(index, words("words"), "1");
    cx_step_row new_row = step_of("session/c", "1", "new words");
    put_steps(index, &new_row, 1);
    check_search(index, words("words"), "1 1");
    cx_found_history history = history_named(index, "session/c", &arena);
    CHECK_INT(history.title.size, 0);
    CHECK_INT(history.steps, 1);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_drop_step(index, CX_STR("session/c"), CX_STR("1"), &err), &err);
    new_row.text = CX_STR("newest");
    CHECK_STATUS(cx_index_put_step(index, &new_row, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    check_search(index, words("newest"), "1");
    CHECK_INT(history_named(index, "session/c", &arena).steps, 1);
    cx_arena_done(&arena);
    cx_index_close(index);
}
