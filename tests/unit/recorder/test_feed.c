/*
 * The ledger into an index: all of it, once, from where it stopped; and back out as answers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/api.h"
#include "memory/memory.h"
#include "recorder/internal.h"
#include "recorder/links.h"
#include "tests/support/recorder_fixture.h"

static cx_index *open_index(fixture *s)
{
    cx_index *index = NULL;
    const char *path = cx_recorder_index_path(s->path, &s->arena);
    CHECK_STATUS(cx_index_open(path, CX_INDEX_READ, &index, &s->err), &s->err);
    return index;
}

static void feed(fixture *s)
{
    const char *path = cx_recorder_index_path(s->path, &s->arena);
    CHECK_STATUS(cx_recorder_feed_now(s->recorder, path, &s->err), &s->err);
}

static cx_json ask(fixture *s, const cx_trace_query *query)
{
    cx_buf out;
    cx_json value = {.type = CX_JSON_NULL};
    cx_index *index = open_index(s);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_recorder_answer_traces(s->recorder, index, query, &out, &s->err), &s->err);
    cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&out));
    CHECK_STATUS(cx_json_parse_text(copy, &s->arena, &value, &s->err), &s->err);
    cx_buf_done(&out);
    cx_index_close(index);
    return value;
}

static int64_t count_of(const cx_json *answer)
{
    int64_t count = -1;
    const cx_json *value = CX_JSON_GET(answer, "count");
    return value != NULL && cx_json_int64(value, &count) ? count : -1;
}

/* F1, F2 */
CX_TEST(feed_indexes_and_resumes)
{
    fixture s;
    maker m;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    fixture_init(&s, "feed", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    feed(&s);
    cx_json none = ask(&s, &query);
    CHECK_INT(count_of(&none), 0);
    for (int64_t i = 1; i <= 5; i++) {
        CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
                  CX_INTAKE_STORED);
        feed(&s);
        feed(&s); /* nothing new */
        cx_json some = ask(&s, &query);
        CHECK_INT(count_of(&some), i);
    }
    fixture_reopen(&s);
    feed(&s);
    cx_json all = ask(&s, &query);
    CHECK_INT(count_of(&all), 5);
    const cx_json *newest = &CX_JSON_GET(&all, "traces")->items[0];
    CHECK_STR(CX_JSON_GET_STR(newest, "timestamp"), "2026-01-01T04:24:00.600000000Z");
    CHECK_STR(CX_JSON_GET_STR(newest, "selected_action"), "SPEAK");
    double score = 0;
    CHECK(cx_json_double(cx_json_pointer(newest, CX_STR("/scores/csdma")), &score));
    CHECK(score == 0.9);
    fixture_done(&s);
}

CX_TEST(feed_pages_without_gaps)
{
    fixture s;
    maker m;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    fixture_init(&s, "feed", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    for (unsigned i = 0; i < 23; i++)
        CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
                  CX_INTAKE_STORED);
    feed(&s);
    query.limit = 5;
    unsigned seen = 0, pages = 0;
    cx_str last = {NULL, 0};
    for (bool more = true; more && pages < 10; pages++) {
        cx_json page = ask(&s, &query);
        const cx_json *rows = CX_JSON_GET(&page, "traces");
        for (uint32_t i = 0; i < rows->count; i++, seen++) {
            cx_str id = CX_JSON_GET_STR(&rows->items[i], "trace_id");
            CHECK(last.data == NULL || cx_str_cmp(id, last) < 0); /* newest first */
            last = id;
        }
        cx_str cursor = CX_JSON_GET_STR(&page, "next_cursor");
        more = cursor.data != NULL;
        if (more)
            CHECK_STATUS(cx_recorder_cursor_parse(s.recorder, cursor, &query, &s.err), &s.err);
        /* What comes in meanwhile is newer than what is left. */
        CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
                  CX_INTAKE_STORED);
        feed(&s);
    }
    CHECK_INT(seen, 23);
    CHECK_INT(pages, 5);
    CHECK(cx_recorder_cursor_parse(s.recorder, CX_STR("AAAA"), &query, &s.err).code == CX_E_FORMAT);
    CHECK_STR(cx_str_z(s.err.tag), "BadCursor");
    fixture_done(&s);
}

/* F1 */
CX_TEST(feed_recomputes_verdicts)
{
    static const cx_recorder_options keep = {.keep_unknown = true};
    fixture s;
    maker m;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    fixture_init(&s, "feed", &keep);
    maker_init(&m, "alpha");
    CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
              CX_INTAKE_UNVERIFIED);
    feed(&s);
    cx_json before = ask(&s, &query);
    CHECK_INT(count_of(&before), 0); /* nothing unverified by default */
    fixture_trust(&s, &m);
    feed(&s);
    cx_json now = ask(&s, &query);
    CHECK_INT(count_of(&now), 1);
    /* Compromised since before it was signed: no longer. */
    CHECK_STATUS(cx_recorder_key_revoke(s.recorder, cx_str_z(m.key_id), CX_STR("stolen"),
                                        CX_STR("me"), MAKER_START_NS, &s.err),
                 &s.err);
    feed(&s);
    cx_json after = ask(&s, &query);
    CHECK_INT(count_of(&after), 0);
    query.verified = CX_FALSE;
    cx_json hidden = ask(&s, &query);
    CHECK_INT(count_of(&hidden), 1);
    fixture_done(&s);
}

static cx_json trace_answer(fixture *s, const cx_trace_wanted *wanted, cx_code expected)
{
    cx_buf out;
    cx_json value = {.type = CX_JSON_NULL};
    cx_index *index = open_index(s);
    cx_buf_init(&out, cx_alloc_default());
    cx_status status = cx_recorder_answer_trace(s->recorder, index, wanted, &out, &s->err);
    CHECK_INT(status.code, expected);
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&out));
        CHECK_STATUS(cx_json_parse_text(copy, &s->arena, &value, &s->err), &s->err);
    }
    cx_buf_done(&out);
    cx_index_close(index);
    return value;
}

CX_TEST(answers_one_trace)
{
    fixture s;
    maker m;
    cx_buf raw;
    maker_options trace_options = MAKER_OPTIONS_INIT;
    fixture_init(&s, "feed", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    trace_options.level = "full_traces";
    trace_options.rationale = "because it was asked";
    trace_options.trace_id = "trace-one";
    cx_str trace = fixture_make(&s, &m, &trace_options);
    CHECK_INT(fixture_send(&s, trace, "full_traces"), CX_INTAKE_STORED);
    feed(&s);
    cx_trace_wanted wanted = {.trace_id = CX_STR("trace-one"), .level = CX_LEVEL_FULL};
    cx_json full = trace_answer(&s, &wanted, CX_OK);
    CHECK_STR(CX_JSON_GET_STR(CX_JSON_GET(&full, "verdict"), "verdict"), "holds");
    CHECK_STR(
        cx_json_text(cx_json_pointer(&full, CX_STR("/trace/components/3/data/action_rationale"))),
        "because it was asked");
    CHECK(cx_json_pointer(&full, CX_STR("/proof/inclusion")) != NULL);
    wanted.level = CX_LEVEL_GENERIC;
    cx_json low = trace_answer(&s, &wanted, CX_OK);
    CHECK(cx_json_pointer(&low, CX_STR("/trace/components/3/data/action_rationale")) == NULL);
    CHECK(cx_json_pointer(&low, CX_STR("/trace/signature")) == NULL);
    CHECK(cx_json_pointer(&low, CX_STR("/trace/derived/removed")) != NULL);
    cx_index *index = open_index(&s);
    cx_buf_init(&raw, cx_alloc_default());
    CHECK(cx_recorder_raw_trace(s.recorder, index, &wanted, &raw, &s.err).code == CX_E_DENIED);
    wanted.level = CX_LEVEL_FULL;
    CHECK_STATUS(cx_recorder_raw_trace(s.recorder, index, &wanted, &raw, &s.err), &s.err);
    CHECK(cx_str_eq(cx_buf_str(&raw), trace)); /* byte for byte (§14.25) */
    cx_buf_done(&raw);
    cx_index_close(index);
    wanted.trace_id = CX_STR("trace-two");
    (void)trace_answer(&s, &wanted, CX_E_NOT_FOUND);
    fixture_done(&s);
}

CX_TEST(answers_report_ambiguous_traces)
{
    fixture s;
    maker alpha, beta;
    maker_options trace_options = MAKER_OPTIONS_INIT;
    fixture_init(&s, "feed", NULL);
    maker_init(&alpha, "alpha");
    maker_init(&beta, "beta");
    fixture_trust(&s, &alpha);
    fixture_trust(&s, &beta);
    trace_options.trace_id = "trace-one";
    CHECK_INT(fixture_send(&s, fixture_make(&s, &alpha, &trace_options), "generic"),
              CX_INTAKE_STORED);
    CHECK_INT(fixture_send(&s, fixture_make(&s, &beta, &trace_options), "generic"),
              CX_INTAKE_STORED);
    feed(&s);
    cx_trace_wanted wanted = {.trace_id = CX_STR("trace-one"), .level = CX_LEVEL_FULL};
    (void)trace_answer(&s, &wanted, CX_E_CONFLICT);
    wanted.agent = cx_str_z(beta.agent);
    cx_json found = trace_answer(&s, &wanted, CX_OK);
    CHECK_STR(CX_JSON_GET_STR(CX_JSON_GET(&found, "entry"), "actor"), beta.agent);
    fixture_done(&s);
}

/* The index forgets what the ledger has erased (decision 0023), the branch goes on. */
CX_TEST(feed_removes_erased_content)
{
    fixture s;
    maker m;
    cx_memory *memory;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    fixture_init(&s, "feed", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
                  CX_INTAKE_STORED);
    feed(&s);
    CHECK_STATUS(cx_memory_open(s.home, cx_str_z(m.agent), NULL, &memory, &s.err), &s.err);
    CHECK_STATUS(cx_memory_redact(memory, 1, CX_STR("asked"), CX_STR("me"), &s.err), &s.err);
    cx_memory_close(memory);
    feed(&s);
    cx_json left = ask(&s, &query);
    CHECK_INT(count_of(&left), 2);
    fixture_done(&s);
}

/* Refs that the words find, newest first. */
static void check_words(fixture *s, const char *words, const char *expected)
{
    cx_index *index = open_index(s);
    const cx_found_step *found;
    const cx_step_query query = {.words = cx_str_z(words), .limit = 10};
    size_t count = 0;
    bool more = false;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_index_search(index, &query, &s->arena, &found, &count, &more, &s->err),
                 &s->err);
    for (size_t i = 0; i < count; i++)
        cx_buf_printf(&out, "%s%.*s %.*s", i == 0 ? "" : ", ", (int)found[i].history.size,
                      found[i].history.data, (int)found[i].ref.size, found[i].ref.data);
    cx_str text = cx_buf_str(&out);
    CHECK_STR(text, expected);
    cx_buf_done(&out);
    cx_index_close(index);
}

/* Whether a file of the index has the word, in any of its bytes. */
static bool index_has_bytes(fixture *s, const char *word)
{
    static const char *const ends[] = {"", "-wal"};
    bool found = false;
    for (size_t i = 0; i < CX_COUNT_OF(ends); i++) {
        cx_buf bytes;
        cx_buf_init(&bytes, cx_alloc_default());
        cx_str path =
            cx_arena_printf(&s->arena, "%s%s", cx_recorder_index_path(s->path, &s->arena), ends[i]);
        if (!cx_failed(cx_io_read_file(cx_io_system(), path.data, (size_t)64 << 20, &bytes, NULL)))
            found |= memmem(bytes.data, bytes.size, word, strlen(word)) != NULL;
        cx_buf_done(&bytes);
    }
    return found;
}

/* Texts of a trace are found where they exist, at the component that says them, and go with it. */
CX_TEST(feed_finds_what_traces_say)
{
    fixture s;
    maker m;
    cx_memory *memory;
    maker_options said = MAKER_OPTIONS_INIT;
    fixture_init(&s, "words", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &said), "generic"), CX_INTAKE_STORED);
    said.level = "full_traces";
    said.rationale = "The verysecret gardener asked twice";
    CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &said), "full_traces"), CX_INTAKE_STORED);
    feed(&s);
    cx_str where = cx_arena_printf(&s.arena, "agent/%s entry:1.3", m.agent);
    check_words(&s, "verysecret garden", where.data);
    check_words(&s, "handleractiontype.speak", where.data); /* not of the generic one */
    CHECK(index_has_bytes(&s, "verysecret"));
    CHECK_STATUS(cx_memory_open(s.home, cx_str_z(m.agent), NULL, &memory, &s.err), &s.err);
    CHECK_STATUS(cx_memory_redact(memory, 1, CX_STR("asked"), CX_STR("me"), &s.err), &s.err);
    cx_memory_close(memory);
    feed(&s);
    check_words(&s, "verysecret", "");
    CHECK(!index_has_bytes(&s, "verysecret"));
    fixture_done(&s);
}

static cx_uri write_fact(fixture *s, cx_memory *memory, const cx_uri *before, const char *statement)
{
    cx_uri uri = {0};
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    const cx_data data = {.type = CX_TYPE_FACT,
                          .schema = 1,
                          .as.fact = {.subject = CX_STR("refunds"),
                                      .predicate = CX_STR("have"),
                                      .statement = cx_str_z(statement)}};
    cx_data_encode(&data, &bytes);
    const cx_memory_write write = {.type = CX_TYPE_FACT, .data = cx_buf_bytes(&bytes)};
    const cx_memory_update update = {.data = cx_buf_bytes(&bytes)};
    if (before == NULL)
        CHECK_STATUS(cx_memory_write_new(memory, &write, &uri, &s->err), &s->err);
    else
        CHECK_STATUS(cx_memory_update_at(memory, before, &update, &uri, &s->err), &s->err);
    cx_buf_done(&bytes);
    return uri;
}

static cx_str ref_of(fixture *s, const cx_uri *uri)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_uri_add(uri, &text);
    cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

/* All versions of a memory are found, and leave nothing when it is erased. */
CX_TEST(feed_finds_what_memories_say)
{
    fixture s;
    cx_memory *memory;
    fixture_init(&s, "memories", NULL);
    CHECK_STATUS(cx_memory_open(s.home, CX_STR("ann"), NULL, &memory, &s.err), &s.err);
    const cx_uri first = write_fact(&s, memory, NULL, "the verysecret limit is 500 EUR");
    const cx_uri second = write_fact(&s, memory, &first, "the verysecret limit is 900 EUR");
    const cx_uri other = write_fact(&s, memory, NULL, "a limit of another kind");
    feed(&s);
    cx_str refs[] = {ref_of(&s, &first), ref_of(&s, &second), ref_of(&s, &other)};
    check_words(&s, "verysecret 500",
                cx_arena_printf(&s.arena, "memory/ann %s", refs[0].data).data);
    check_words(&s, "limit",
                cx_arena_printf(&s.arena, "memory/ann %s, memory/ann %s, memory/ann %s",
                                refs[2].data, refs[1].data, refs[0].data)
                    .data);
    CHECK_STATUS(cx_memory_redact_memory(memory, &second, CX_STR("asked"), CX_STR("me"), &s.err),
                 &s.err);
    feed(&s);
    check_words(&s, "verysecret", "");
    CHECK(!index_has_bytes(&s, "verysecret"));
    cx_str left = cx_arena_printf(&s.arena, "memory/ann %s", refs[2].data);
    check_words(&s, "limit", left.data);
    /* F1: made again, it finds the same. */
    const char *path = cx_recorder_index_path(s.path, &s.arena);
    CHECK_INT(unlink(path), 0);
    feed(&s);
    check_words(&s, "verysecret", "");
    check_words(&s, "limit", left.data);
    cx_memory_close(memory);
    fixture_done(&s);
}

CX_TEST(feed_by_a_thread)
{
    fixture s;
    maker m;
    cx_feed_status status;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    fixture_init(&s, "feed", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    const char *path = cx_recorder_index_path(s.path, &s.arena);
    CHECK_STATUS(cx_recorder_feed_begin(s.recorder, path, NULL, NULL, &s.err), &s.err);
    for (unsigned i = 0; i < 20; i++)
        CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
                  CX_INTAKE_STORED);
    CHECK_STATUS(cx_recorder_feed_wait(s.recorder, 30000, &s.err), &s.err);
    cx_json all = ask(&s, &query);
    CHECK_INT(count_of(&all), 20);
    cx_recorder_feed_get_status(s.recorder, &status);
    CHECK(status.running && !status.away);
    CHECK(status.index_commits >= status.log_commits);
    fixture_done(&s);
}

/* Where links.db has been read to, or 0. */
static uint64_t linked_commit(fixture *s)
{
    cx_db *db = NULL;
    cx_db_statement *select;
    bool row = false;
    uint64_t at = 0;
    if (cx_failed(cx_db_open(cx_links_path(s->path, &s->arena), CX_DB_READ, &db, NULL)))
        return 0;
    if (!cx_failed(cx_db_prepare(db, "SELECT position_commit FROM at", &select, NULL))) {
        if (!cx_failed(cx_db_step(select, &row, NULL)) && row)
            at = (uint64_t)cx_db_int(select, 0);
        cx_db_finish(select);
    }
    cx_db_close(db);
    return at;
}

CX_TEST(feed_reads_links_on_before_they_are_asked_for)
{
    fixture s;
    maker m;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    fixture_init(&s, "feed-links", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    for (unsigned i = 0; i < 5; i++)
        CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"),
                  CX_INTAKE_STORED);
    CHECK_INT(linked_commit(&s), 0);
    const char *path = cx_recorder_index_path(s.path, &s.arena);
    CHECK_STATUS(cx_recorder_feed_begin(s.recorder, path, NULL, NULL, &s.err), &s.err);
    for (unsigned i = 0; i < 3000 && linked_commit(&s) < cx_home_durable(s.home); i++)
        cx_thread_sleep_ms(10);
    CHECK_INT(linked_commit(&s), cx_home_durable(s.home));
    fixture_done(&s);
}

typedef struct index_changes {
    _Atomic(unsigned) failures, recoveries;
} index_changes;

static void count_change(void *arg, const cx_err *failure)
{
    index_changes *changes = arg;
    if (failure == NULL)
        atomic_fetch_add(&changes->recoveries, 1);
    else
        atomic_fetch_add(&changes->failures, 1);
}

CX_TEST(feed_says_when_the_index_cannot_be_reached_and_when_it_can)
{
    fixture s;
    maker m;
    index_changes changes = {0};
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    fixture_init(&s, "away", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    cx_str folder = cx_arena_printf(&s.arena, "%s/later", s.path);
    cx_str path = cx_arena_printf(&s.arena, "%s/index.db", folder.data);
    REQUIRE(folder.data != NULL && path.data != NULL);
    CHECK_STATUS(cx_recorder_feed_begin(s.recorder, path.data, count_change, &changes, &s.err),
                 &s.err);
    CHECK_INT(atomic_load(&changes.failures), 1); /* at once */
    CHECK_INT(fixture_send(&s, fixture_make(&s, &m, &trace_options), "generic"), CX_INTAKE_STORED);
    CHECK_INT(mkdir(folder.data, 0700), 0);
    CHECK_STATUS(cx_recorder_feed_wait(s.recorder, 30000, &s.err), &s.err);
    fixture_done(&s); /* the thread has ended */
    CHECK_INT(atomic_load(&changes.failures), 1);
    CHECK_INT(atomic_load(&changes.recoveries), 1);
}

CX_TEST(branches_of_traces_hold)
{
    fixture s;
    maker alpha, beta;
    cx_buf lines, again, answer;
    cx_lattice *lattice;
    cx_lattice_report *report;
    maker_options trace_options = MAKER_OPTIONS_INIT;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    fixture_init(&s, "bridge", NULL);
    maker_init(&alpha, "alpha");
    maker_init(&beta, "beta");
    fixture_trust(&s, &alpha);
    fixture_trust(&s, &beta);
    for (unsigned i = 0; i < 4; i++) {
        trace_options.overridden = i == 2;
        CHECK_INT(fixture_send(&s, fixture_make(&s, &alpha, &trace_options), "generic"),
                  CX_INTAKE_STORED);
        CHECK_INT(fixture_send(&s, fixture_make(&s, &beta, &trace_options), "generic"),
                  CX_INTAKE_STORED);
    }
    options.keep_deltas = true;
    cx_buf_init(&lines, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    cx_buf_init(&answer, cx_alloc_default());
    cx_str none = {NULL, 0};
    CHECK_STATUS(cx_recorder_lattice(s.home, none, &options, &lines, &lattice, &s.err), &s.err);
    const cx_lattice_checks strict = {
        .content_ids = true, .require_seals = true, .strict_time = true, .unambiguous = true};
    CHECK_STATUS(cx_lattice_verify(lattice, &strict, &report, &s.err), &s.err);
    CHECK(cx_lattice_report_verdict(report) == CX_HOLDS);
    CHECK_INT(cx_lattice_agent_count(lattice), 2);
    CHECK_INT(cx_lattice_count(lattice), 48);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    fixture_reopen(&s);
    CHECK_STATUS(cx_recorder_lattice_lines(s.home, none, &again, &s.err), &s.err);
    CHECK(cx_str_eq(cx_buf_str(&lines), cx_buf_str(&again)));
    /* The conscience's override is a decision that diverges; nothing came from outside. */
    CHECK(memmem(again.data, again.size, "\"natural\"", 9) != NULL);
    CHECK(memmem(again.data, again.size, "\"injection\"", 11) == NULL);
    cx_buf_clear(&again);
    cx_str branch = cx_arena_printf(&s.arena, "agent/%s", alpha.agent);
    CHECK_STATUS(cx_recorder_lattice_lines(s.home, branch, &again, &s.err), &s.err);
    CHECK(again.size * 2 < lines.size + 4096);
    CHECK(cx_recorder_lattice_lines(s.home, CX_STR("agent/nobody"), &again, &s.err).code ==
          CX_E_NOT_FOUND);
    cx_buf_done(&lines);
    cx_buf_done(&again);
    cx_buf_done(&answer);
    fixture_done(&s);
}

/* --- the thread ------------------------------------------------------------------------------- */

static struct {
    fixture *fixture;
    pthread_t main_thread;
} held;

/* The log is read by the feed's thread only when that is to stop. */
static int64_t held_pread(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    (void)io;
    cx_recorder *recorder = held.fixture->recorder;
    for (bool wait = !pthread_equal(pthread_self(), held.main_thread); wait;) {
        cx_lock_enter(&recorder->lock);
        wait = !recorder->feeder.stopping;
        cx_lock_leave(&recorder->lock);
        if (wait)
            (void)usleep(1000);
    }
    return cx_io_system()->pread(cx_io_system(), file, data, size, offset);
}

static void append_many(fixture *s, unsigned commits, unsigned entries)
{
    const cx_entry_draft draft = {.kind = CX_STR("raw"), .created_at_ns = 1};
    for (unsigned i = 0; i < commits; i++) {
        cx_txn *txn;
        CHECK_STATUS(cx_txn_begin(s->home, CX_STR("a"), &txn, &s->err), &s->err);
        for (unsigned j = 0; j < entries; j++)
            CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &s->err), &s->err);
        CHECK_STATUS(cx_txn_commit(txn, &s->err), &s->err);
    }
}

static uint64_t indexed_commits(fixture *s)
{
    uint8_t home_id[16];
    cx_feed_position position;
    cx_index *index = open_index(s);
    cx_home_id(s->home, home_id);
    CHECK_STATUS(cx_index_position(index, home_id, &position, &s->err), &s->err);
    cx_index_close(index);
    return position.commit;
}

/* A server that has much to index ends without all of it. */
CX_TEST(feed_stops_before_the_end)
{
    fixture s;
    cx_io io = *cx_io_system();
    fixture_init(&s, "feed-stops", NULL);
    append_many(&s, 20, 1000);
    fixture_close(&s);
    io.pread = held_pread;
    held.fixture = &s;
    held.main_thread = pthread_self();
    const cx_home_options options = {
        .io = &io, .derivers = &cx_recorder_deriver, .deriver_count = 1};
    CHECK_STATUS(cx_home_open(s.path, &options, &s.home, &s.err), &s.err);
    CHECK_STATUS(cx_recorder_open(s.home, &s.options, &s.recorder, &s.err), &s.err);
    const char *path = cx_recorder_index_path(s.path, &s.arena);
    CHECK_STATUS(cx_recorder_feed_begin(s.recorder, path, NULL, NULL, &s.err), &s.err);
    cx_recorder_feed_end(s.recorder);
    CHECK(indexed_commits(&s) < 20);
    feed(&s);
    CHECK(indexed_commits(&s) >= 20);
    fixture_done(&s);
}
