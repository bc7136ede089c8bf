/*
 * test_step_part.c - some of an agent's steps, opened without those before them: the same nodes,
 * and the same verdict, from any entry on.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "lattice/api.h"
#include "recorder/node.h"
#include "recorder/step.h"
#include "tests/support/recorder_fixture.h"

static const cx_lattice_options reading = {.keep_deltas = true, .threads = 1};

static cx_step_taken take(fixture *s, const char *line)
{
    cx_step *steps = NULL;
    size_t count = 0;
    cx_step_taken taken = {.status = CX_STEP_REJECTED};
    CHECK_STATUS(cx_steps_read_lines(cx_str_z(line), &s->arena, &steps, &count, &s->err), &s->err);
    CHECK_INT(count, 1);
    CHECK_STATUS(
        cx_recorder_steps_take(s->recorder, steps, count, CX_STR("tester"), &taken, &s->err),
        &s->err);
    CHECK_INT(taken.status, CX_STEP_STORED);
    return taken;
}

typedef struct opened {
    cx_buf lines;
    cx_lattice *lattice;
    cx_lattice_report *report;
} opened;

static cx_status open_part(fixture *s, const char *branch, uint64_t from, opened *out)
{
    *out = (opened){.lattice = NULL};
    cx_buf_init(&out->lines, cx_alloc_default());
    return cx_recorder_steps_part(s->home, cx_str_z(branch), from, &reading, &out->lines,
                                  &out->lattice, &out->report, &s->err);
}

static void close_part(opened *one)
{
    cx_lattice_report_close(one->report);
    cx_lattice_close(one->lattice);
    cx_buf_done(&one->lines);
}

/* Steps of `a` with a fork from long ago, a merge of it, and parents of another agent. */
static void record_history(fixture *s, unsigned steps)
{
    char line[500];
    cx_step_taken first = take(s, "{\"agent\":\"a\",\"state_delta\":{\"memory\":{\"k\":0}}}");
    cx_step_taken other = take(s, "{\"agent\":\"b\",\"state_delta\":{\"memory\":{\"o\":1}}}");
    cx_step_taken fork = first;
    for (unsigned i = 1; i < steps; i++) {
        if (i == 6) {
            (void)snprintf(line, sizeof line,
                           "{\"agent\":\"a\",\"fork\":true,\"parents\":[\"%s\"]}", first.hash);
            fork = take(s, line);
        } else if (i == 9) {
            (void)snprintf(line, sizeof line,
                           "{\"agent\":\"a\",\"parents\":[\"@a\",\"%s\"],\"event\":"
                           "{\"merge_strategy\":\"manual\"}}",
                           fork.hash);
            (void)take(s, line);
        } else if (i % 4 == 3) {
            (void)snprintf(line, sizeof line, "{\"agent\":\"a\",\"parents\":[\"@a\",\"%s\"]}",
                           other.hash);
            (void)take(s, line);
            other = take(s, "{\"agent\":\"b\"}");
        } else {
            (void)snprintf(line, sizeof line,
                           "{\"agent\":\"a\",\"state_delta\":{\"memory\":{\"k\":%u}}}", i);
            (void)take(s, line);
        }
    }
}

static bool has_same_node(const cx_lattice *whole, const cx_lattice *part, cx_node n)
{
    cx_lattice_node_info here, there;
    cx_lattice_node(part, n, &here);
    cx_node same = cx_lattice_find(whole, here.id);
    if (same == CX_NODE_NONE)
        return false;
    cx_lattice_node(whole, same, &there);
    return cx_str_eq(here.agent, there.agent) && here.seq == there.seq &&
           here.timestamp == there.timestamp && here.fork_type == there.fork_type;
}

CX_TEST(a_part_from_any_entry_on_holds_and_has_the_nodes_of_the_whole)
{
    enum { STEPS = 24 };
    fixture s;
    opened part;
    cx_buf lines;
    cx_lattice *whole = NULL;
    fixture_init(&s, "part_any", NULL);
    record_history(&s, STEPS);
    cx_buf_init(&lines, cx_alloc_default());
    CHECK_STATUS(cx_recorder_lattice(s.home, CX_STR("agent/a"), &reading, &lines, &whole, &s.err),
                 &s.err);
    REQUIRE(whole != NULL);
    for (uint64_t from = 0; from < STEPS; from++) {
        uint32_t own = 0;
        CHECK_STATUS(open_part(&s, "agent/a", from, &part), &s.err);
        REQUIRE(part.lattice != NULL);
        if (cx_lattice_report_verdict(part.report) != CX_HOLDS)
            cx_test_fail(__FILE__, __LINE__, "the part from entry %u does not hold",
                         (unsigned)from);
        for (cx_node n = 0; n < cx_lattice_count(part.lattice); n++) {
            cx_lattice_node_info info;
            cx_lattice_node(part.lattice, n, &info);
            own += cx_str_is(info.agent, "a");
            CHECK(has_same_node(whole, part.lattice, n));
        }
        CHECK_INT(own, STEPS - from);
        CHECK(cx_lattice_find(part.lattice, CX_STR("@a")) != CX_NODE_NONE);
        close_part(&part);
    }
    cx_lattice_close(whole);
    cx_buf_done(&lines);
    fixture_done(&s);
}

CX_TEST(a_part_that_is_all_of_an_agent_alone_is_the_same_bytes)
{
    fixture s;
    opened part;
    cx_buf lines;
    fixture_init(&s, "part_all", NULL);
    for (unsigned i = 0; i < 5; i++)
        (void)take(&s, "{\"agent\":\"x/y\"}");
    cx_buf_init(&lines, cx_alloc_default());
    CHECK_STATUS(cx_recorder_lattice_lines(s.home, CX_STR("agent/x/y"), &lines, &s.err), &s.err);
    CHECK_STATUS(open_part(&s, "agent/x/y", 0, &part), &s.err);
    CHECK(cx_str_eq(cx_buf_str(&lines), cx_buf_str(&part.lines)));
    close_part(&part);
    cx_buf_done(&lines);
    fixture_done(&s);
}

/* what no record names is missing, as in a whole. */
CX_TEST(a_parent_that_no_record_has_is_a_finding)
{
    fixture s;
    opened part;
    cx_lattice_report *report = NULL;
    size_t count = 0;
    cx_node child;
    fixture_init(&s, "part_missing", NULL);
    record_history(&s, 5);
    CHECK_STATUS(open_part(&s, "agent/a", 2, &part), &s.err);
    REQUIRE(part.lattice != NULL);
    const size_t missing = cx_lattice_missing_count(part.lattice);
    CHECK(missing >= 1 && missing < 8);
    CHECK_INT(cx_lattice_missing(part.lattice, 0, &child).size, 64);
    CHECK_INT(child, 0);
    const bool none[8] = {false};
    CHECK_STATUS(cx_lattice_verify_part(part.lattice, NULL, none, &report, &s.err), &s.err);
    const cx_lattice_finding *errors = cx_lattice_report_errors(report, &count);
    CHECK(count >= 1 && errors[0].code == CX_E_MISSING_PARENT);
    cx_lattice_report_close(report);
    close_part(&part);
    fixture_done(&s);
}

/* A node at the edge of a part, whose prev_hash is one of its parents or not. */
static void check_edge_of(fixture *s, bool follows)
{
    static const char parent_text[] =
        "1111111111111111111111111111111111111111111111111111111111111111";
    static const char other_text[] =
        "2222222222222222222222222222222222222222222222222222222222222222";
    const cx_str parent = cx_str_z(parent_text);
    const bool known[1] = {true};
    char hash[CX_NODE_HASH_SIZE];
    cx_buf preimage, line;
    cx_lattice *lattice = NULL;
    cx_lattice_report *report = NULL;
    size_t count = 0;
    cx_node_draft draft = {.agent_id = CX_STR("a"),
                           .seq = 7,
                           .event = cx_json_list_begin(&s->arena),
                           .prev_hash = follows ? parent : cx_str_z(other_text),
                           .parents = &parent,
                           .parent_count = 1};
    cx_buf_init(&preimage, cx_alloc_default());
    cx_buf_init(&line, cx_alloc_default());
    CHECK_STATUS(
        cx_node_seconds(INT64_C(1700000000000000000), &s->arena, &draft.timestamp, &s->err),
        &s->err);
    CHECK_STATUS(
        cx_node_memory(CX_STR("k"), cx_json_make_bool(true), &s->arena, &draft.delta, &s->err),
        &s->err);
    CHECK_STATUS(cx_node_write(&draft, &s->arena, &preimage, &line, hash, &s->err), &s->err);
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&line), &reading, &lattice, &s->err), &s->err);
    REQUIRE(lattice != NULL && cx_lattice_missing_count(lattice) == 1);
    CHECK_STATUS(cx_lattice_verify_part(lattice, NULL, known, &report, &s->err), &s->err);
    const cx_lattice_finding *errors = cx_lattice_report_errors(report, &count);
    CHECK_INT(count, follows ? 0 : 1);
    CHECK(follows || errors[0].code == CX_E_LINEAGE);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_buf_done(&line);
    cx_buf_done(&preimage);
}

CX_TEST(a_node_at_the_edge_of_a_part_follows_from_one_of_its_parents)
{
    fixture s;
    fixture_init(&s, "part_edge", NULL);
    check_edge_of(&s, true);
    check_edge_of(&s, false);
    fixture_done(&s);
}

CX_TEST(the_extent_of_a_branch_and_where_a_step_is)
{
    fixture s;
    cx_steps_extent extent;
    const cx_str none = {NULL, 0};
    fixture_init(&s, "part_extent", NULL);
    record_history(&s, 4);
    cx_step_taken last = take(&s, "{\"agent\":\"a\"}");
    CHECK_STATUS(cx_recorder_steps_extent(s.home, CX_STR("agent/a"), none, &extent, &s.err),
                 &s.err);
    CHECK(extent.parts && extent.entries == 5 && !extent.found);
    CHECK_STATUS(
        cx_recorder_steps_extent(s.home, CX_STR("agent/a"), cx_str_z(last.hash), &extent, &s.err),
        &s.err);
    CHECK(extent.found && extent.entry == 4);
    CHECK_STATUS(
        cx_recorder_steps_extent(s.home, CX_STR("agent/b"), cx_str_z(last.hash), &extent, &s.err),
        &s.err);
    CHECK(extent.parts && !extent.found);
    static const char *const others[] = {"agent/nobody", "agent/", "all", "run/x", ""};
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        CHECK_STATUS(cx_recorder_steps_extent(s.home, cx_str_z(others[i]), none, &extent, &s.err),
                     &s.err);
        CHECK(!extent.parts && extent.entries == 0);
    }
    fixture_done(&s);
}

CX_TEST(a_step_is_found_by_its_hash_in_any_journal)
{
    fixture s;
    cx_str line;
    bool found = true;
    fixture_init(&s, "part_hash", NULL);
    record_history(&s, 4);
    cx_step_taken other = take(&s, "{\"agent\":\"z\",\"event\":{\"text\":\"here\"}}");
    CHECK_STATUS(
        cx_recorder_step_line(s.home, cx_str_z(other.hash), &s.arena, &line, &found, &s.err),
        &s.err);
    CHECK(found && memmem(line.data, line.size, "\"here\"", 6) != NULL);
    static const char *const none[] = {
        "", "abc", "0000000000000000000000000000000000000000000000000000000000000000"};
    for (size_t i = 0; i < CX_COUNT_OF(none); i++) {
        CHECK_STATUS(
            cx_recorder_step_line(s.home, cx_str_z(none[i]), &s.arena, &line, &found, &s.err),
            &s.err);
        CHECK(!found);
    }
    fixture_done(&s);
}

CX_TEST(a_part_that_is_not_there_says_so)
{
    static const struct {
        const char *branch;
        uint64_t from;
        const char *tag;
    } wrong[] = {{"agent/a", 5, "NoPart"},
                 {"agent/a", UINT64_MAX, "NoPart"},
                 {"agent/nobody", 0, "NoBranch"},
                 {"all", 0, "NoBranch"}};
    fixture s;
    opened part;
    fixture_init(&s, "part_none", NULL);
    record_history(&s, 5);
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++) {
        CHECK_INT(open_part(&s, wrong[i].branch, wrong[i].from, &part).code, CX_E_NOT_FOUND);
        CHECK(part.lattice == NULL && strcmp(s.err.tag, wrong[i].tag) == 0);
        close_part(&part);
    }
    fixture_done(&s);
}
