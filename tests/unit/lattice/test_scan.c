/*
 * Scanning compared with the general way: a line that is scanned adds to the batch exactly what its
 * values would have added, and a line that is declined adds nothing.
 */
#include <stdlib.h>

#include "lattice/record.h"
#include "tests/test.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define HEAD "{\"node_id\":\"n1\",\"agent_id\":\"a\",\"seq\":1,\"timestamp\":17.25,"
#define LINKS "\"prev_hash\":\"" ZEROS "\",\"hash\":\"" HASH_A "\""
#define NODE(event, delta) HEAD "\"event\":" event ",\"state_delta\":" delta "," LINKS

typedef struct fixture {
    batch scanned, parsed;
    char *input; /* line, LF, slack, and not a byte more */
    size_t size;
} fixture;

static bool kit_init(fixture *kit, cx_str line, bool keeps)
{
    const cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_lattice_batch_init(&kit->scanned, cx_alloc_default(), 7, &limits);
    cx_lattice_batch_init(&kit->parsed, cx_alloc_default(), 7, &limits);
    kit->scanned.keep_deltas = kit->parsed.keep_deltas = keeps;
    kit->scanned.keep_seals = kit->parsed.keep_seals = keeps;
    kit->size = line.size;
    kit->input = malloc(line.size + 1 + CX_JSON_RECODE_SLACK);
    if (kit->input == NULL)
        return false;
    memcpy(kit->input, line.data, line.size);
    memset(kit->input + line.size, '\n', 1 + CX_JSON_RECODE_SLACK);
    kit->scanned.input = kit->parsed.input =
        (cx_str){kit->input, line.size + 1 + CX_JSON_RECODE_SLACK};
    return true;
}

static void kit_done(fixture *kit)
{
    cx_lattice_batch_done(&kit->scanned);
    cx_lattice_batch_done(&kit->parsed);
    free(kit->input);
}

static bool scan(fixture *kit)
{
    const char *next = NULL;
    cx_err err;
    CHECK_STATUS(cx_lattice_batch_scan(&kit->scanned, kit->input, kit->input + kit->size,
                                       CX_STR("2.0.0"), 10, 3, &next, &err),
                 &err);
    CHECK(next == NULL || next == kit->input + kit->size + 1);
    return next != NULL;
}

static bool parse(fixture *kit)
{
    cx_json value;
    cx_err err;
    return !cx_failed(cx_json_parse(&kit->parsed.parser, (cx_str){kit->input, kit->size},
                                    &kit->parsed.values, &value, &err)) &&
           !cx_failed(cx_lattice_batch_add(&kit->parsed, &value, CX_STR("2.0.0"), 10, 3, &err));
}

static bool same_nodes(const node *a, const node *b)
{
    return cx_digest_eq(&a->hash, &b->hash) && cx_digest_eq(&a->prev, &b->prev) &&
           a->id_size == b->id_size && (a->id_size == 0 || memcmp(a->id, b->id, a->id_size) == 0) &&
           a->agent == b->agent && a->seq == b->seq && a->time.i == b->time.i &&
           a->offset == b->offset && a->flags == b->flags && a->line == b->line;
}

static bool same_jobs(const batch *a, const batch *b)
{
    bool same = a->jobs.count == b->jobs.count;
    for (size_t i = 0; same && i < a->jobs.count; i++) {
        const digest_job *left = &a->jobs.items[i], *right = &b->jobs.items[i];
        same = left->kind == right->kind && left->draft == right->draft &&
               left->size == right->size && cx_digest_eq(&left->expected, &right->expected) &&
               memcmp(a->work.data + left->offset, b->work.data + right->offset, left->size) == 0;
    }
    return same;
}

static bool same_rest(const batch *a, const batch *b)
{
    bool same = a->odd.count == b->odd.count && a->refs.count == b->refs.count &&
                a->complaints.count == b->complaints.count && a->agents.count == b->agents.count &&
                cx_str_eq(cx_buf_str(&a->deltas), cx_buf_str(&b->deltas));
    for (size_t i = 0; same && i < a->odd.count; i++)
        same = cx_str_eq(a->odd.items[i], b->odd.items[i]);
    for (size_t i = 0; same && i < a->refs.count; i++)
        same = cx_str_eq(a->refs.items[i].text, b->refs.items[i].text) &&
               a->refs.items[i].hash == b->refs.items[i].hash;
    for (size_t i = 0; same && i < a->complaints.count; i++)
        same = a->complaints.items[i].code == b->complaints.items[i].code &&
               cx_str_eq(a->complaints.items[i].detail, b->complaints.items[i].detail);
    return same;
}

static bool is_untouched(const batch *b)
{
    return b->drafts.count == 0 && b->jobs.count == 0 && b->work.size == 0 && b->deltas.size == 0 &&
           b->agents.count == 0 && b->complaints.count == 0 && b->seals.count == 0;
}

/* 1 scanned and right, 0 declined, -1 wrong. */
static int compare_keeping(cx_str line, bool keeps)
{
    fixture kit = {0};
    int answer = -1;
    if (kit_init(&kit, line, keeps)) {
        if (!scan(&kit))
            answer = is_untouched(&kit.scanned) ? 0 : -1;
        else if (parse(&kit) && kit.scanned.drafts.count == 1 &&
                 same_nodes(&kit.scanned.drafts.items[0].n, &kit.parsed.drafts.items[0].n) &&
                 kit.scanned.drafts.items[0].id_hash == kit.parsed.drafts.items[0].id_hash &&
                 kit.scanned.drafts.items[0].delta.size == kit.parsed.drafts.items[0].delta.size &&
                 same_jobs(&kit.scanned, &kit.parsed) && same_rest(&kit.scanned, &kit.parsed))
            answer = 1;
    }
    if (answer < 0)
        cx_test_fail(__FILE__, __LINE__, "scanning %.*s goes wrong", (int)line.size, line.data);
    kit_done(&kit);
    return answer;
}

/* What is kept decides how a delta is read, not whether. */
static int compare(cx_str line)
{
    int keeping = compare_keeping(line, true), not_keeping = compare_keeping(line, false);
    return keeping < 0 || not_keeping < 0 ? -1 : keeping;
}

static const char *const ordinary[] = {
    NODE("{}", "{}") "}",
    NODE("{\"b\":1,\"a\":\"x\"}", "{\"memory\":{\"k\":1},\"beliefs\":{}}") ",\"parents\":[]}",
    NODE("{ \"a\" : 0.50 }", "{\"goals\":[1, 2],\"context_stack\":[]}") ", \"parents\": null }",
    NODE("{}", "{}") ",\"parents\":[\"p2\",\"p1\"],\"fork_type\":\"natural\"}",
    NODE("{}", "{}") ",\"parents\":[\"p\", \"p\"],\"fork_type\":null}",
    NODE("{\"merge_strategy\":\"lww\"}", "{}") ",\"schema_version\":\"2.0.0\"}",
    NODE("{\"merge_strategy\":1,\"__seal\":2}", "{\"a\":1}") "}",
    NODE("{\"__seal\":\"" HASH_A "\"}", "{\"z\":1.50,\"a\":{\"c\":1,\"b\":2}}") "}",
    NODE("{\"__seal\":\"not hex\"}", "{}") ",\"fork_type\":\"injection\"}",
    NODE("{}", "{}") ",\"extra\":{\"b\":[1],\"a\":null},\"more\":\"x\"}",
    /* What is found fault with is found so in the same words. */
    NODE("{}", "{}") ",\"fork_type\":\"other\",\"schema_version\":\"9.9\"}",
    NODE("{}", "{}") ",\"parents\":[1]}",
    NODE("{}", "{}") ",\"parents\":\"p\"}",
    NODE("{}", "{}") ",\"parents\":[\"\"]}",
    "{\"node_id\":1,\"event\":{},\"state_delta\":{}," LINKS "}",
    "{\"event\":{},\"state_delta\":{}," LINKS "}",
    "{\"node_id\":\"a,b\",\"agent_id\":\"\",\"seq\":-1,\"timestamp\":-5,\"event\":{},"
    "\"state_delta\":{}," LINKS "}",
    "{\"node_id\":\"n\",\"agent_id\":\"a\",\"seq\":99999999999999999999,\"timestamp\":1e3,"
    "\"event\":{},\"state_delta\":{}," LINKS "}",
    "{\"node_id\":\"n\",\"agent_id\":\"a\",\"seq\":1.0,\"timestamp\":true,\"event\":{},"
    "\"state_delta\":{}," LINKS "}",
    "{\"node_id\":\"n\",\"agent_id\":\"a\",\"seq\":1,\"timestamp\":1e301,\"event\":{},"
    "\"state_delta\":{}," LINKS "}",
    "{\"node_id\":\"n\",\"agent_id\":\"a\",\"seq\":1,\"timestamp\":99999999999999999999,"
    "\"event\":{\"__seal\":\"" HASH_A "\"},\"state_delta\":{}," LINKS "}",
    /* Any order, genesis words, hashes that are none. */
    "{\"prev_hash\":\"GENESIS\",\"state_delta\":{\"b\":1,\"a\":2},\"event\":{\"__seal\":\"" HASH_A
    "\"},\"hash\":\"odd\",\"timestamp\":1,\"seq\":0,\"agent_id\":\"a\",\"node_id\":\"n\"}",
    ("{\"prev_hash\":\"\",\"state_delta\":{},\"event\":{},\"hash\":\"n\",\"timestamp\":0.1,"
     "\"seq\":0,\"agent_id\":\"a\",\"node_id\":\"n\"}\r"),
};

CX_TEST(scan_reads_ordinary_lines)
{
    for (size_t i = 0; i < CX_COUNT_OF(ordinary); i++)
        if (compare(cx_str_z(ordinary[i])) != 1)
            cx_test_fail(__FILE__, __LINE__, "declined: %s", ordinary[i]);
}

CX_TEST(scan_declines_all_others)
{
    static const char *const lines[] = {
        "",
        " ",
        "[]",
        "{}",
        "{\"a\":1}",
        " " NODE("{}", "{}") "}", /* the general way does it */
        NODE("{}", "{}"),
        NODE("{}", "{}") "} x",
        NODE("{}", "{}") ",}",
        NODE("{}", "{}") ",\"seq\":1}",
        NODE("{}", "{}") ",\"event\":{}}",
        NODE("{}", "{}") ",\"x\":1,\"x\":1}",
        NODE("{}", "{}") ",\"x\":[}",
        NODE("{}", "{}") ",\"x\\n\":1}",
        NODE("{\"a\":1,\"a\":2}", "{}") "}",
        NODE("{}", "{\"b\":1,\"a\":2,\"b\":3}") "}",
        NODE("[]", "{}") "}",
        NODE("{}", "null") "}",
        NODE("{\"a\":\"\xc3\xa4\"}", "{}") "}",
        NODE("{\"a\":1e400}", "{}") "}",
        NODE("{}", "{\"memory\":[]}") "}",
        NODE("{}", "{\"beliefs\":null}") "}",
        NODE("{}", "{\"goals\":{}}") "}",
        NODE("{}", "{\"context_stack\":\"\"}") "}",
        NODE("{}", "{}") ",\"parents\":[\"a\\u0041\"]}",
        NODE("{}", "{}") ",\"parents\":[\"a\",]}",
        NODE("{}", "{}") ",\"parents\":[[]]}",
        NODE("{}", "{}") ",\"parents\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
        NODE("{}",
             "{}") ",\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}",
        HEAD "\"event\":{},\"state_delta\":{},\"hash\":\"" HASH_A "\"}",
        HEAD "\"event\":{},\"state_delta\":{},\"hash\":\"x\",\"prev_hash\":\"" ZEROS "0\"}",
        HEAD "\"event\":{},\"state_delta\":{},\"hash\":\"x\",\"prev_hash\":0}",
        HEAD "\"state_delta\":{}," LINKS "}",
        HEAD "\"event\":{}," LINKS "}",
    };
    for (size_t i = 0; i < CX_COUNT_OF(lines); i++)
        if (compare(cx_str_z(lines[i])) != 0)
            cx_test_fail(__FILE__, __LINE__, "taken: %s", lines[i]);
}

/* Names are expected where they stood on the line before; others are found all the same. */
CX_TEST(scan_follows_lines_that_change)
{
    static const size_t turns[] = {0, 0, 1, 3, 0, 9, 21, 9, 5, 0};
    const cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_buf text;
    batch b;
    cx_buf_init(&text, cx_alloc_default());
    cx_lattice_batch_init(&b, cx_alloc_default(), 7, &limits);
    for (size_t i = 0; i < CX_COUNT_OF(turns); i++) {
        cx_buf_add_z(&text, ordinary[turns[i]]);
        cx_buf_add_byte(&text, '\n');
    }
    for (size_t i = 0; i < CX_JSON_RECODE_SLACK; i++)
        cx_buf_add_byte(&text, ' ');
    b.input = cx_buf_str(&text);
    const char *at = b.input.data, *last_lf = cx_lattice_scan_limit(b.input);
    REQUIRE(last_lf != NULL);
    CHECK(last_lf + 1 + CX_JSON_RECODE_SLACK == b.input.data + b.input.size);
    size_t lines = 0;
    for (cx_err err; at != NULL && at < last_lf; lines++)
        CHECK_STATUS(
            cx_lattice_batch_scan(&b, at, last_lf, CX_STR("2.0.0"), 0, lines + 1, &at, &err), &err);
    CHECK(at == last_lf + 1);
    CHECK_INT(lines, CX_COUNT_OF(turns));
    REQUIRE(b.jobs.count >= 2 && b.jobs.items[0].size == b.jobs.items[1].size);
    CHECK(memcmp(b.work.data + b.jobs.items[0].offset, b.work.data + b.jobs.items[1].offset,
                 b.jobs.items[0].size) == 0);
    cx_lattice_batch_done(&b);
    cx_buf_done(&text);
}

CX_TEST(scan_needs_a_line_end_with_slack_after_it)
{
    char text[CX_JSON_RECODE_SLACK + 2];
    memset(text, ' ', sizeof text);
    CHECK(cx_lattice_scan_limit((cx_str){text, sizeof text}) == NULL);
    CHECK(cx_lattice_scan_limit((cx_str){text, 0}) == NULL);
    text[0] = '\n';
    CHECK(cx_lattice_scan_limit((cx_str){text, CX_JSON_RECODE_SLACK}) == NULL);
    CHECK(cx_lattice_scan_limit((cx_str){text, CX_JSON_RECODE_SLACK + 1}) == text);
}

CX_TEST(scan_agrees_with_parsing_when_lines_are_damaged)
{
    static const char bytes[] = "{}[],:\" \\0e-.9nu\t\xc3";
    uint64_t random = cx_test_seed();
    unsigned taken = 0, declined = 0;
    cx_buf line;
    cx_buf_init(&line, cx_alloc_default());
    unsigned step = cx_test_step(4);
    for (unsigned i = 0; i < 20000 / step; i++) {
        cx_buf_clear(&line);
        cx_buf_add_z(&line, ordinary[cx_test_random(&random) % CX_COUNT_OF(ordinary)]);
        uint64_t dice = cx_test_random(&random);
        size_t at = (dice >> 8) % line.size;
        if (dice % 4 == 0) {
            memmove(line.data + at, line.data + at + 1, line.size - at - 1);
            line.size--;
        } else {
            line.data[at] = (uint8_t)bytes[(dice >> 40) % (sizeof bytes - 1)];
        }
        int answer = compare(cx_buf_str(&line));
        taken += answer == 1;
        declined += answer == 0;
    }
    CHECK(taken > 2000 / step);
    CHECK(declined > 2000 / step);
    cx_buf_done(&line);
}

/* Whether a line that is scanned says that something failed; -1 where the two ways disagree. */
static int fails(const char *event)
{
    char line[2048];
    fixture kit = {0};
    (void)snprintf(line, sizeof line, HEAD "\"event\":%s,\"state_delta\":{}," LINKS "}", event);
    if (compare(cx_str_z(line)) != 1 || !kit_init(&kit, cx_str_z(line), true) || !scan(&kit))
        return -1;
    int failed = (kit.scanned.drafts.items[0].n.flags & NODE_FAILED) != 0;
    kit_done(&kit);
    return failed;
}

CX_TEST(failures_are_what_an_event_says_of_itself)
{
    CHECK_INT(fails("{\"error\":\"no network\"}"), 1);
    CHECK_INT(fails("{\"error\":{\"code\":1}}"), 1);
    CHECK_INT(fails("{\"status\":\"error\"}"), 1);
    CHECK_INT(fails("{\"status\":\"failed\"}"), 1);
    CHECK_INT(fails("{\"status\":\"ERROR\"}"), 1);
    CHECK_INT(fails("{\"kind\":\"bad\"}"), 1);
    CHECK_INT(fails("{\"kind\":\"error\"}"), 1);
    CHECK_INT(fails("{\"tool_calls\":[{\"call_id\":\"a\"},{\"failed\":true}]}"), 1);
    CHECK_INT(fails("{}"), 0);
    CHECK_INT(fails("{\"error\":null}"), 0);
    CHECK_INT(fails("{\"error\":\"\"}"), 0);
    CHECK_INT(fails("{\"error\":false}"), 0);
    CHECK_INT(fails("{\"error\":[]}"), 0);
    CHECK_INT(fails("{\"status\":\"ok\",\"text\":\"\\\"error\\\":\\\"x\\\"\"}"), 0);
    /* What is inside of something else is not the event's own word. */
    CHECK_INT(fails("{\"raw\":{\"error\":\"x\",\"status\":\"error\"}}"), 0);
    CHECK_INT(fails("{\"tool_calls\":[{\"arguments\":{\"failed\":true},\"failed\":false}]}"), 0);
    CHECK_INT(fails("{\"tool_calls\":[{\"result\":\"]}{\\\"failed\\\":true\"}]}"), 0);
    CHECK_INT(fails("{\"tool_calls\":{\"failed\":true}}"), 0);
}
