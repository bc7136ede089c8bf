/*
 * test_step.c - steps become nodes: numbers, links, forks, exactly once, signatures, reading back
 * (docs/formats/steps.md).
 */
#include "recorder/step.h"

#include "base/api.h"
#include "crypto/api.h"
#include "lattice/api.h"
#include "recorder/node.h"
#include "tests/support/recorder_fixture.h"
#include "tests/support/signer.h"

#define MAX_STEPS 64

typedef struct taken_steps {
    cx_step_taken list[MAX_STEPS];
    size_t count;
} taken_steps;

static taken_steps take_lines(fixture *s, const char *lines)
{
    taken_steps taken = {.count = 0};
    cx_step *steps = NULL;
    CHECK_STATUS(cx_steps_read_lines(cx_str_z(lines), &s->arena, &steps, &taken.count, &s->err),
                 &s->err);
    if (taken.count > MAX_STEPS)
        taken.count = 0;
    CHECK_STATUS(cx_recorder_steps_take(s->recorder, steps, taken.count, CX_STR("tester"),
                                        taken.list, &s->err),
                 &s->err);
    return taken;
}

static cx_step_taken take_one(fixture *s, const char *line)
{
    taken_steps taken = take_lines(s, line);
    CHECK_INT(taken.count, 1);
    return taken.list[0];
}

/* Strict: all that Cortex writes holds there. */
static cx_lattice *open_branch(fixture *s, const char *branch, cx_buf *lines)
{
    cx_lattice *lattice = NULL;
    cx_lattice_report *report = NULL;
    const cx_lattice_options options = {.keep_deltas = true, .threads = 1};
    const cx_lattice_checks checks = {
        .content_ids = true, .require_seals = true, .strict_time = true, .unambiguous = true};
    cx_str name = branch == NULL ? (cx_str){NULL, 0} : cx_str_z(branch);
    cx_buf_init(lines, cx_alloc_default());
    CHECK_STATUS(cx_recorder_lattice(s->home, name, &options, lines, &lattice, &s->err), &s->err);
    if (lattice == NULL)
        return NULL;
    CHECK_STATUS(cx_lattice_verify(lattice, &checks, &report, &s->err), &s->err);
    CHECK_INT(cx_lattice_report_verdict(report), CX_HOLDS);
    cx_lattice_report_close(report);
    return lattice;
}

static void close_branch(cx_lattice *lattice, cx_buf *lines)
{
    cx_lattice_close(lattice);
    cx_buf_done(lines);
}

static cx_node head_of(const cx_lattice *lattice, const char *name)
{
    return cx_lattice_find(lattice, cx_str_z(name));
}

static bool state_is(const cx_lattice *lattice, cx_node node, const char *pointer,
                     const char *expected)
{
    cx_states *states = NULL;
    const cx_state_options options = CX_STATE_OPTIONS_INIT;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    bool good = !cx_failed(cx_states_open(lattice, &options, &states, NULL)) &&
                !cx_failed(cx_states_write_at(states, node, cx_str_z(pointer), &out, NULL)) &&
                cx_str_is(cx_buf_str(&out), expected);
    cx_states_close(states);
    cx_buf_done(&out);
    return good;
}

CX_TEST(steps_of_an_agent_follow_one_another)
{
    fixture s;
    cx_buf lines;
    fixture_init(&s, "step_chain", NULL);
    taken_steps taken = take_lines(
        &s, "{\"agent\":\"desk\",\"event\":{\"kind\":\"message\"},\"state_delta\":{\"memory\":"
            "{\"limit\":500}}}\n"
            "\n"
            "{\"agent\":\"desk\",\"state_delta\":{\"memory\":{\"limit\":900}}}\n"
            "{\"agent\":\"desk\"}\n");
    REQUIRE(taken.count == 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(taken.list[i].status, CX_STEP_STORED);
        CHECK_INT(taken.list[i].seq, i);
        CHECK_INT(taken.list[i].entry, i);
        CHECK_INT(strlen(taken.list[i].hash), 64);
    }
    cx_lattice *lattice = open_branch(&s, "agent/desk", &lines);
    REQUIRE(lattice != NULL);
    CHECK_INT(cx_lattice_count(lattice), 3);
    cx_node head = head_of(lattice, "@desk");
    cx_lattice_node_info info;
    cx_lattice_node(lattice, head, &info);
    CHECK(cx_str_is(info.id, taken.list[2].hash));
    CHECK(state_is(lattice, head, "/memory/limit", "900"));
    close_branch(lattice, &lines);
    CHECK_INT(fixture_entries(&s, CX_STR("desk")), 3);
    fixture_done(&s);
}

CX_TEST(a_key_is_taken_once_and_its_content_is_remembered)
{
    fixture s;
    fixture_init(&s, "step_key", NULL);
    const char *line = "{\"agent\":\"a\",\"key\":\"k1\",\"event\":{\"n\":1}}";
    cx_step_taken first = take_one(&s, line);
    CHECK_INT(first.status, CX_STEP_STORED);
    fixture_reopen(&s);
    cx_step_taken again = take_one(&s, line);
    CHECK_INT(again.status, CX_STEP_DUPLICATE);
    CHECK(strcmp(again.hash, first.hash) == 0);
    CHECK_INT(again.entry, first.entry);
    cx_step_taken other = take_one(&s, "{\"agent\":\"a\",\"key\":\"k1\",\"event\":{\"n\":2}}");
    CHECK_INT(other.status, CX_STEP_CONFLICT);
    CHECK(strcmp(other.problem.tag, "KeyReused") == 0);
    /* A key is its agent's. */
    CHECK_INT(take_one(&s, "{\"agent\":\"b\",\"key\":\"k1\",\"event\":{\"n\":2}}").status,
              CX_STEP_STORED);
    /* Twice in one call. */
    taken_steps twice = take_lines(&s, "{\"agent\":\"a\",\"key\":\"k2\"}\n"
                                       "{\"agent\":\"a\",\"key\":\"k2\"}\n");
    CHECK_INT(twice.list[0].status, CX_STEP_STORED);
    CHECK_INT(twice.list[1].status, CX_STEP_DUPLICATE);
    CHECK_INT(fixture_entries(&s, CX_STR("a")), 2);
    fixture_done(&s);
}

CX_TEST(an_expected_head_that_is_not_met_is_a_conflict_that_names_it)
{
    fixture s;
    char line[400];
    fixture_init(&s, "step_head", NULL);
    cx_step_taken first = take_one(&s, "{\"agent\":\"a\",\"head\":null}");
    CHECK_INT(first.status, CX_STEP_STORED);
    cx_step_taken late = take_one(&s, "{\"agent\":\"a\",\"head\":null}");
    CHECK_INT(late.status, CX_STEP_CONFLICT);
    CHECK(strcmp(late.problem.tag, "HeadMoved") == 0);
    CHECK(late.has_head && strcmp(late.head, first.hash) == 0);
    CHECK_INT(late.head_seq, 0);
    CHECK(strstr(late.problem.message, first.hash) != NULL);
    (void)snprintf(line, sizeof line, "{\"agent\":\"a\",\"head\":\"%s\"}", first.hash);
    cx_step_taken second = take_one(&s, line);
    CHECK_INT(second.status, CX_STEP_STORED);
    CHECK_INT(take_one(&s, line).status, CX_STEP_CONFLICT);
    /* After a step that was not taken the agent's next ones are not, and others are. */
    taken_steps some = take_lines(&s, "{\"agent\":\"a\",\"head\":null}\n"
                                      "{\"agent\":\"b\"}\n"
                                      "{\"agent\":\"a\"}\n");
    CHECK_INT(some.list[0].status, CX_STEP_CONFLICT);
    CHECK_INT(some.list[1].status, CX_STEP_STORED);
    CHECK_INT(some.list[2].status, CX_STEP_SKIPPED);
    CHECK_INT(fixture_entries(&s, CX_STR("a")), 2);
    fixture_done(&s);
}

CX_TEST(a_fork_is_made_only_when_asked_for)
{
    fixture s;
    cx_buf lines;
    char line[400];
    fixture_init(&s, "step_fork", NULL);
    cx_step_taken zero = take_one(&s, "{\"agent\":\"a\"}");
    cx_step_taken one = take_one(&s, "{\"agent\":\"a\"}");
    (void)snprintf(line, sizeof line, "{\"agent\":\"a\",\"parents\":[\"%s\"]}", zero.hash);
    cx_step_taken refused = take_one(&s, line);
    CHECK_INT(refused.status, CX_STEP_CONFLICT);
    CHECK(strcmp(refused.problem.tag, "NotTheHead") == 0);
    CHECK(refused.has_head && strcmp(refused.head, one.hash) == 0);
    (void)snprintf(line, sizeof line, "{\"agent\":\"a\",\"fork\":true,\"parents\":[\"%s\"]}",
                   zero.hash);
    cx_step_taken fork = take_one(&s, line);
    CHECK_INT(fork.status, CX_STEP_STORED);
    CHECK_INT(fork.seq, 1);
    /* Both ends meet again. */
    (void)snprintf(line, sizeof line,
                   "{\"agent\":\"a\",\"fork\":true,\"parents\":[\"%s\",\"%s\"],\"event\":"
                   "{\"merge_strategy\":\"manual\"}}",
                   one.hash, fork.hash);
    CHECK_INT(take_one(&s, line).seq, 2);
    CHECK_INT(take_one(&s, "{\"agent\":\"a\",\"fork\":true}").status, CX_STEP_REJECTED);
    cx_lattice *lattice = open_branch(&s, "agent/a", &lines);
    REQUIRE(lattice != NULL);
    cx_lattice_node_info info;
    cx_lattice_node(lattice, head_of(lattice, fork.hash), &info);
    CHECK_INT(info.fork_type, CX_FORK_NATURAL);
    cx_lattice_node(lattice, head_of(lattice, "@a"), &info);
    CHECK_INT(info.parent_count, 2);
    close_branch(lattice, &lines);
    fixture_done(&s);
}

CX_TEST(parents_of_other_agents_come_along)
{
    fixture s;
    cx_buf lines;
    fixture_init(&s, "step_cross", NULL);
    taken_steps taken = take_lines(
        &s, "{\"agent\":\"planner\",\"key\":\"plan\",\"state_delta\":{\"memory\":{\"x\":1}}}\n"
            "{\"agent\":\"coder\",\"parents\":[\"@planner\"]}\n"
            "{\"agent\":\"planner\"}\n"
            "{\"agent\":\"coder\",\"parents\":[{\"agent\":\"planner\",\"key\":\"plan\"}]}\n"
            "{\"agent\":\"tester\",\"parents\":[\"coder#1\",\"@agent/planner\"]}\n"
            "{\"agent\":\"other\"}\n");
    REQUIRE(taken.count == 6);
    for (size_t i = 0; i < 6; i++)
        CHECK_INT(taken.list[i].status, CX_STEP_STORED);
    cx_lattice *lattice = open_branch(&s, "agent/coder", &lines);
    REQUIRE(lattice != NULL);
    CHECK_INT(cx_lattice_count(lattice), 3); /* of the planner what it had got to */
    CHECK(state_is(lattice, head_of(lattice, "@coder"), "/memory/x", "1"));
    close_branch(lattice, &lines);
    lattice = open_branch(&s, "agent/tester", &lines);
    REQUIRE(lattice != NULL);
    CHECK_INT(cx_lattice_count(lattice), 5);
    close_branch(lattice, &lines);
    lattice = open_branch(&s, NULL, &lines);
    REQUIRE(lattice != NULL);
    CHECK_INT(cx_lattice_count(lattice), 6);
    close_branch(lattice, &lines);
    /* A short hash, of any agent. */
    char line[200];
    (void)snprintf(line, sizeof line, "{\"agent\":\"late\",\"parents\":[\"%.9s\"]}",
                   taken.list[5].hash);
    CHECK_INT(take_one(&s, line).status, CX_STEP_STORED);
    CHECK(strcmp(take_one(&s, "{\"agent\":\"late\",\"parents\":[\"@nobody\"]}").problem.tag,
                 "NoParent") == 0);
    CHECK(strcmp(take_one(&s, "{\"agent\":\"late\",\"parents\":[\"coder#77\"]}").problem.tag,
                 "NoParent") == 0);
    fixture_done(&s);
}

CX_TEST(time_never_runs_backwards_and_what_was_said_is_kept)
{
    fixture s;
    cx_buf lines;
    fixture_init(&s, "step_time", NULL);
    take_one(&s, "{\"agent\":\"a\",\"timestamp\":1700000000.5}");
    take_one(&s, "{\"agent\":\"a\",\"timestamp\":1600000000}");
    take_one(&s, "{\"agent\":\"a\",\"timestamp\":1700000001.123456789}");
    CHECK_INT(take_one(&s, "{\"agent\":\"a\",\"timestamp\":1e12}").status, CX_STEP_REJECTED);
    CHECK_INT(take_one(&s, "{\"agent\":\"a\",\"timestamp\":-1}").status, CX_STEP_REJECTED);
    cx_lattice *lattice = open_branch(&s, "agent/a", &lines);
    REQUIRE(lattice != NULL);
    CHECK(memmem(lines.data, lines.size, "\"__time\":1600000000", 19) != NULL);
    CHECK(memmem(lines.data, lines.size, "\"timestamp\":1700000001.123457", 29) != NULL);
    close_branch(lattice, &lines);
    fixture_done(&s);
}

CX_TEST(what_cannot_be_used_says_why_and_costs_no_other_agent)
{
    static const char *const wrong[] = {
        "{\"agent\":\"\"}",
        "{\"agent\":7}",
        "{\"agent\":\"a\\u0007\"}",
        "{\"agent\":\"trust\"}",
        "{\"agent\":\"a\",\"event\":[]}",
        "{\"agent\":\"a\",\"event\":{\"__seal\":\"x\"}}",
        "{\"agent\":\"a\",\"event\":{\"n\":1e999}}",
        "{\"agent\":\"a\",\"state_delta\":{\"memroy\":{}}}",
        "{\"agent\":\"a\",\"state_delta\":{\"memory\":[]}}",
        "{\"agent\":\"a\",\"state_delta\":{\"goals\":{}}}",
        "{\"agent\":\"a\",\"state\":{}}",
        "{\"agent\":\"a\",\"parents\":\"x\"}",
        "{\"agent\":\"a\",\"parents\":[{}]}",
        "{\"agent\":\"a\",\"parents\":[{\"key\":\"k\",\"x\":1}]}",
        "{\"agent\":\"a\",\"head\":\"abc\"}",
        "{\"agent\":\"a\",\"fork\":1}",
        "{\"agent\":\"a\",\"fork_type\":\"odd\"}",
        "{\"agent\":\"a\",\"timestamp\":\"now\"}",
        "{\"agent\":\"a\",\"signature\":{}}",
        "{\"agent\":\"a\",\"signature\":{\"key_id\":\"k\",\"signature\":\"AAAA\"}}",
        "[]",
    };
    fixture s;
    fixture_init(&s, "step_wrong", NULL);
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++) {
        cx_step_taken taken = take_one(&s, wrong[i]);
        CHECK_INT(taken.status, CX_STEP_REJECTED);
        CHECK(taken.problem.message[0] != 0);
    }
    /* A line that is no JSON could be anybody's. */
    taken_steps some = take_lines(&s, "{\"agent\":\"a\"}\n{\"agent\":\n{\"agent\":\"b\"}\n");
    REQUIRE(some.count == 3);
    CHECK_INT(some.list[0].status, CX_STEP_STORED);
    CHECK_INT(some.list[1].status, CX_STEP_REJECTED);
    CHECK_INT(some.list[1].problem.line, 2);
    CHECK_INT(some.list[2].status, CX_STEP_SKIPPED);
    fixture_done(&s);
}

CX_TEST(a_signature_counts_when_the_key_is_trusted)
{
    fixture s;
    char line[600];
    bool is_new;
    fixture_init(&s, "step_signed", NULL);
    const char *text = CX_STEP_SIGNED_PREFIX
        "{\"agent\":\"a\",\"event\":{\"n\":1},\"key\":\"k\",\"state_delta\":{}}";
    cx_signature signature;
    test_signer signer;
    test_signer_make(&signer, 7);
    CHECK_STATUS(test_sign(&signer, cx_bytes_from(text, strlen(text)), &signature, &s.err), &s.err);
    cx_buf base64;
    cx_buf_init(&base64, cx_alloc_default());
    cx_base64_add(&base64, cx_bytes_from(signature.bytes, sizeof signature.bytes), CX_BASE64);
    const cx_trust_key key = {.key_id = CX_STR("desk-1"),
                              .key = signer.key,
                              .not_before = CX_TIME_NONE,
                              .not_after = CX_TIME_NONE,
                              .revoked_at = CX_TIME_NONE,
                              .compromised_since = CX_TIME_NONE};
    const char *form = "{\"agent\":\"a\",\"key\":\"k\",\"event\":{\"n\":%d},\"signature\":"
                       "{\"key_id\":\"%.*s\",\"signature\":\"%.*s\"}}";
    (void)snprintf(line, sizeof line, form, 1, (int)key.key_id.size, key.key_id.data,
                   (int)base64.size, (const char *)base64.data);
    cx_step_taken taken = take_one(&s, line);
    CHECK_INT(taken.status, CX_STEP_REJECTED);
    CHECK(strstr(taken.problem.message, "not registered") != NULL);
    CHECK_STATUS(cx_recorder_key_add(s.recorder, &key, &is_new, &s.err), &s.err);
    CHECK_INT(take_one(&s, line).status, CX_STEP_STORED);
    CHECK_INT(take_one(&s, line).status, CX_STEP_DUPLICATE);
    (void)snprintf(line, sizeof line, form, 2, (int)key.key_id.size, key.key_id.data,
                   (int)base64.size, (const char *)base64.data);
    cx_str other = fixture_replace(&s, cx_str_z(line), "\"k\"", "\"k2\"");
    char terminated[600];
    (void)snprintf(terminated, sizeof terminated, "%.*s", (int)other.size, other.data);
    taken = take_one(&s, terminated);
    CHECK_INT(taken.status, CX_STEP_REJECTED);
    CHECK(strcmp(taken.problem.tag, "BadSignature") == 0);
    CHECK_STATUS(cx_recorder_key_revoke(s.recorder, key.key_id, CX_STR("lost"), CX_STR("me"),
                                        CX_TIME_NONE, &s.err),
                 &s.err);
    (void)snprintf(line, sizeof line, form, 1, (int)key.key_id.size, key.key_id.data,
                   (int)base64.size, (const char *)base64.data);
    other = fixture_replace(&s, cx_str_z(line), "\"k\"", "\"k3\"");
    (void)snprintf(terminated, sizeof terminated, "%.*s", (int)other.size, other.data);
    taken = take_one(&s, terminated);
    CHECK(strstr(taken.problem.message, "revoked") != NULL);
    cx_buf_done(&base64);
    fixture_done(&s);
}

CX_TEST(names_that_no_journal_has_are_escaped)
{
    fixture s;
    cx_buf lines;
    fixture_init(&s, "step_names", NULL);
    CHECK_INT(take_one(&s, "{\"agent\":\"team/a%b\"}").status, CX_STEP_STORED);
    CHECK_INT(fixture_entries(&s, CX_STR("team%2Fa%25b")), 1);
    cx_lattice *lattice = open_branch(&s, "agent/team/a%b", &lines);
    REQUIRE(lattice != NULL);
    CHECK(cx_str_is(cx_lattice_agent_name(lattice, 0), "team/a%b"));
    close_branch(lattice, &lines);
    fixture_done(&s);
}

/* --- lattices of others ----------------------------------------------------------------------- */

static cx_status seal_text(fixture *s, cx_str text, bool dry, cx_steps_sealed *out)
{
    const cx_lattice_options options = {.keep_deltas = true, .threads = 1};
    cx_lattice *lattice = NULL;
    cx_status status = cx_lattice_open_bytes(cx_str_bytes(text), &options, &lattice, &s->err);
    if (!cx_failed(status))
        status = cx_recorder_steps_seal(s->recorder, lattice, CX_STR("tester"), dry, out, &s->err);
    cx_lattice_close(lattice);
    return status;
}

/* The same nodes with labels for ids and an event member more: hashes that have to be
 * recomputed. */
static void write_unsealed(fixture *s, cx_str text, cx_buf *out)
{
    char ids[8][64], hashes[8][65];
    size_t count = 0;
    for (size_t at = 0; at < text.size && count < 8; count++) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        cx_json node, event;
        cx_str line = cx_str_from(text.data + at, (size_t)(end - text.data) - at);
        cx_str parents[8];
        cx_buf preimage;
        at += line.size + 1;
        CHECK_STATUS(cx_json_parse_text(line, &s->arena, &node, &s->err), &s->err);
        CHECK_STATUS(cx_json_parse_text(CX_STR("{\"n\":1}"), &s->arena, &event, &s->err), &s->err);
        cx_str id = CX_JSON_GET_STR(&node, "node_id"), agent = CX_JSON_GET_STR(&node, "agent_id");
        const cx_json *named = CX_JSON_GET(&node, "parents");
        /* Labels in the order of the old ids. */
        (void)snprintf(ids[count], sizeof ids[count], "%.40s", id.data);
        cx_buf_printf(out,
                      "{\"agent_id\":\"%.*s\",\"event\":{\"n\":1},\"node_id\":\"%s\",\"parents\":[",
                      (int)agent.size, agent.data, ids[count]);
        for (uint32_t i = 0; i < named->count; i++) {
            parents[i] = cx_str_z(ids[i]);
            cx_buf_printf(out, "%s\"%s\"", i == 0 ? "" : ",", ids[i]);
        }
        cx_lattice_fields fields = {.prev_hash = named->count == 0 ? CX_STR(CX_NODE_GENESIS)
                                                                   : cx_str_from(hashes[0], 64),
                                    .event = &event,
                                    .agent_id = agent,
                                    .schema_version = CX_STR("2.0.0"),
                                    .parents = parents,
                                    .parent_count = named->count};
        cx_buf_init(&preimage, cx_alloc_default());
        CHECK_STATUS(cx_lattice_preimage(&preimage, &fields, &s->err), &s->err);
        const cx_digest digest = cx_digest_of(cx_buf_bytes(&preimage));
        cx_hex_encode(cx_bytes_from(digest.bytes, 32), hashes[count]);
        hashes[count][64] = 0;
        cx_buf_printf(out,
                      "],\"prev_hash\":\"%.*s\",\"hash\":\"%s\",\"seq\":0,\"timestamp\":5,"
                      "\"state_delta\":",
                      (int)fields.prev_hash.size, fields.prev_hash.data, hashes[count]);
        CHECK_STATUS(
            cx_json_write(out, CX_JSON_GET(&node, "state_delta"), CX_JSON_PY_COMPACT, &s->err),
            &s->err);
        cx_buf_add_z(out, "}\n");
        cx_buf_done(&preimage);
    }
}

static cx_str read_example(fixture *s, const char *name)
{
    cx_buf text;
    cx_str path = cx_arena_printf(&s->arena, "%s/../examples/%s", CX_TEST_ROOT, name);
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path.data, 1 << 20, &text, &s->err), &s->err);
    cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

CX_TEST(a_lattice_of_others_is_sealed_and_keeps_its_states)
{
    fixture s;
    cx_buf lines;
    cx_steps_sealed sealed;
    fixture_init(&s, "step_seal", NULL);
    cx_str text = read_example(&s, "merge.jsonl");
    CHECK_STATUS(seal_text(&s, text, true, &sealed), &s.err);
    CHECK_INT(sealed.stored, 0);
    CHECK_INT(fixture_entries(&s, CX_STR("system")), 0);
    CHECK_STATUS(seal_text(&s, text, false, &sealed), &s.err);
    CHECK_INT(sealed.stored, 4);
    CHECK_INT(sealed.agents, 3);
    CHECK_STATUS(seal_text(&s, text, false, &sealed), &s.err);
    CHECK_INT(sealed.stored, 0);
    CHECK_INT(sealed.duplicates, 4);
    cx_lattice *lattice = open_branch(&s, "agent/agent_a", &lines);
    REQUIRE(lattice != NULL);
    CHECK_INT(cx_lattice_count(lattice), 4);
    CHECK(state_is(lattice, head_of(lattice, "@agent_a"), "/memory/x", "3"));
    CHECK(memmem(lines.data, lines.size, "\"node_id\":\"n1_b\"", 16) != NULL);
    /* What is strict already keeps its hashes: sealed once more elsewhere it is the same. */
    cx_str copy = cx_arena_copy_str(&s.arena, cx_buf_str(&lines));
    close_branch(lattice, &lines);
    fixture other;
    fixture_init(&other, "step_seal_again", NULL);
    CHECK_STATUS(seal_text(&other, copy, false, &sealed), &other.err);
    CHECK_INT(sealed.stored, 4);
    lattice = open_branch(&other, NULL, &lines);
    REQUIRE(lattice != NULL);
    cx_node head = head_of(lattice, "@agent_a");
    cx_lattice_node_info info;
    cx_lattice_node(lattice, head, &info);
    CHECK(memmem(copy.data, copy.size, info.id.data, info.id.size) != NULL);
    close_branch(lattice, &lines);
    fixture_done(&other);
    /* It goes on from there. */
    CHECK_INT(take_one(&s, "{\"agent\":\"agent_a\"}").status, CX_STEP_STORED);
    CHECK_INT(seal_text(&s, text, false, &sealed).code, CX_E_CONFLICT);
    fixture_done(&s);
}

/* Two nodes of one time meet, and two of one number have one time: the first of each pair by id was
 * the first before, whatever the new ids are. */
CX_TEST(sealing_keeps_the_order_of_nodes_of_one_time)
{
    static const char *const agents[] = {"a", "b", "c", "d"};
    for (unsigned round = 0; round < 12; round++) {
        fixture s;
        cx_buf lines, text;
        cx_steps_sealed sealed;
        cx_str parents[4];
        char hashes[4][64], hash[64];
        cx_json delta, none;
        fixture_init(&s, "step_seal_order", NULL);
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_init(&lines, cx_alloc_default());
        CHECK_STATUS(cx_json_parse_text(CX_STR("{}"), &s.arena, &none, &s.err), &s.err);
        for (unsigned i = 0; i < 5; i++) {
            cx_str value =
                cx_arena_printf(&s.arena, "{\"memory\":{\"x\":%u,\"round\":%u}}", i, round);
            CHECK_STATUS(cx_json_parse_text(value, &s.arena, &delta, &s.err), &s.err);
            cx_node_draft draft = {.agent_id = cx_str_z(i < 4 ? agents[i] : "m"),
                                   .delta = i < 4 ? delta : none,
                                   .event = cx_json_list_begin(&s.arena),
                                   .prev_hash = CX_STR(CX_NODE_GENESIS),
                                   .parents = parents,
                                   .parent_count = i < 4 ? 0 : 4};
            if (i == 4)
                draft.prev_hash = parents[0];
            CHECK_STATUS(cx_json_parse_text(CX_STR("5"), &s.arena, &draft.timestamp, &s.err),
                         &s.err);
            CHECK_STATUS(
                cx_node_write(&draft, &s.arena, &lines, &text, i < 4 ? hashes[i] : hash, &s.err),
                &s.err);
            if (i < 4)
                parents[i] = cx_str_from(hashes[i], 64);
        }
        cx_lattice *lattice = NULL;
        const cx_lattice_options options = {.keep_deltas = true, .threads = 1};
        CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), &options, &lattice, &s.err),
                     &s.err);
        char expected[8] = "";
        for (unsigned i = 0; i < 4; i++) {
            char digit[8];
            (void)snprintf(digit, sizeof digit, "%u", i);
            if (state_is(lattice, head_of(lattice, "@m"), "/memory/x", digit))
                memcpy(expected, digit, sizeof expected);
        }
        cx_lattice_close(lattice);
        CHECK(expected[0] != 0);
        /* Without seals it is not strict, and gets new hashes. */
        cx_str unsealed = cx_arena_copy_str(&s.arena, cx_buf_str(&text));
        cx_buf_clear(&text);
        write_unsealed(&s, unsealed, &text);
        CHECK_STATUS(seal_text(&s, cx_buf_str(&text), false, &sealed), &s.err);
        CHECK_INT(sealed.stored, 5);
        cx_buf_done(&lines);
        cx_buf_done(&text);
        lattice = open_branch(&s, "agent/m", &lines);
        REQUIRE(lattice != NULL);
        CHECK(state_is(lattice, head_of(lattice, "@m"), "/memory/x", expected));
        close_branch(lattice, &lines);
        fixture_done(&s);
    }
}

CX_TEST(what_does_not_verify_is_not_sealed)
{
    fixture s;
    cx_steps_sealed sealed;
    fixture_init(&s, "step_seal_bad", NULL);
    cx_str text = read_example(&s, "merge.jsonl");
    cx_str bad = fixture_replace(&s, text, "\"seq\":", "\"seq\": 7, \"was\":");
    REQUIRE(bad.data != NULL);
    CHECK_INT(seal_text(&s, bad, false, &sealed).code, CX_E_FORMAT);
    CHECK(s.err.tag != NULL && strcmp(s.err.tag, "NotVerified") == 0);
    CHECK(strstr(s.err.message, "line 1") != NULL);
    CHECK_INT(fixture_entries(&s, CX_STR("system")), 0);
    fixture_done(&s);
}
