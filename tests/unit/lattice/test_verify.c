/*
 * test_verify.c - the judgement: every code on the node and agent it belongs to, exact times,
 * odd hashes, anchors, taint, and shapes large enough to hurt what is not linear.  (lattice.md §4)
 */
#include "lattice/report.h"

#include <stdio.h>
#include <time.h>

#include "tests/support/lattice_text.h"
#include "tests/test.h"

static void check_verdict_at(int at, const cx_buf *text, const cx_lattice_checks *checks,
                             const char *expected)
{
    cx_buf verdict;
    cx_buf_init(&verdict, cx_alloc_default());
    const char *found = lattice_text_verdict(&verdict, cx_buf_str(text), checks);
    if (strcmp(found, expected) != 0)
        cx_test_fail(__FILE__, at, "found '%s', expected '%s'", found, expected);
    cx_buf_done(&verdict);
}
#define VERDICT(text, checks, expected) check_verdict_at(__LINE__, (text), (checks), (expected))

static void add(cx_buf *out, node_spec spec, char *out_hash)
{
    char hash[65];
    lattice_text_node(out, &spec, hash);
    cx_buf_add_byte(out, '\n');
    if (out_hash != NULL)
        memcpy(out_hash, hash, sizeof hash);
}

/* A first node "n0" of agent a, and specs of what can follow it. */
typedef struct pair {
    cx_buf text;
    char first[65];
} pair;

static void pair_init(pair *p)
{
    cx_buf_init(&p->text, cx_alloc_default());
    add(&p->text, (node_spec){.id = "n0"}, p->first);
}

static void check_second_at(int at, node_spec spec, const char *expected)
{
    pair p;
    pair_init(&p);
    if (spec.id == NULL)
        spec.id = "n1";
    if (spec.prev == NULL)
        spec.prev = p.first;
    add(&p.text, spec, NULL);
    check_verdict_at(at, &p.text, NULL, expected);
    cx_buf_done(&p.text);
}
#define SECOND(expected, ...) check_second_at(__LINE__, (node_spec){__VA_ARGS__}, (expected))

CX_TEST(verify_a_right_successor_holds)
{
    SECOND("ok", .seq = 1, .parents = {"n0"}, .parent_count = 1);
    SECOND("ok", .seq = 0, .agent = "b", .parents = {"n0"}, .parent_count = 1);
    SECOND("ok", .seq = 77, .agent = "b", .prev = "");
    SECOND("ok", .seq = 77, .agent = "b", .prev = "GENESIS");
    SECOND("ok", .seq = INT64_MAX, .agent = "b", .prev = ZEROS);
    SECOND("ok", .seq = 0, .fork = "natural", .prev = ZEROS);
    SECOND("ok", .seq = 1, .parents = {"n0"}, .parent_count = 1, .version = "v2.0");
    SECOND("ok", .seq = 1, .no_parents = true, .version = "1.0");
    SECOND("ok", .seq = 1, .parents = {"n0"}, .parent_count = 1, .extra = ",\"x\":[1e999]");
    SECOND("ok", .seq = 1, .seq_text = "1", .parents = {"n0"}, .parent_count = 1,
           .event = "{\"x\":\"\\ud800\"}", .delta = "{\"odd\":\"\\udfff\"}");
    SECOND("ok", .agent = "b", .seq = 0, .seq_text = "-0", .prev = ZEROS);
}

CX_TEST(verify_each_code_on_its_node)
{
    SECOND("E_HASH:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1, .hash = ZEROS);
    SECOND("E_HASH:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1, .hash = "");
    SECOND("E_VERSION:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1, .version = "2.0.1");
    SECOND("E_FORK_TYPE:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1, .fork = "Natural");
    SECOND("E_DUP_ID:n0@a", .id = "n0", .seq = 1, .parents = {"n0"}, .parent_count = 1);
    SECOND("E_MISSING_PARENT:n1@a", .seq = 1, .parents = {"n0", "none"}, .parent_count = 2);
    SECOND("E_SEQ_GAP:n1@a", .seq = 2, .parents = {"n0"}, .parent_count = 1);
    SECOND("E_SEQ_DUP:n1@a", .seq = 0, .prev = ZEROS);
    SECOND("E_LINEAGE:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1, .prev = ZEROS);
    SECOND("E_LINEAGE:n1@b", .seq = 0, .agent = "b");
    SECOND("E_LINEAGE:n1@b", .seq = 0, .agent = "b", .prev = "genesis");
    SECOND("E_LINEAGE:n1@b", .agent = "b", .parents = {"n0"}, .parent_count = 1, .prev = ZEROS);
    SECOND("E_MISSING_PARENT:n1@b", .agent = "b", .parents = {"none"}, .parent_count = 1);
    SECOND("E_CONTAIN:n1@a", .seq = 1);
    SECOND("E_CONTAIN:n1@a", .seq = 1, .no_parents = true);
    SECOND("ok", .seq = 1, .version = "1.1"); /* implied by prev_hash (§3.3) */
    SECOND("E_CYCLE:n1@a E_SCHEMA:n1@a", .seq = 1, .parents = {"n0", "n1", "n1"},
           .parent_count = 3);
    SECOND("E_SEAL:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1,
           .event = "{\"__seal\":\"" ZEROS "\"}");
    SECOND("E_SEAL:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1,
           .event = "{\"__seal\":null}");
    SECOND("ok W_TIME:n1@a", .seq = 1, .parents = {"n0"}, .parent_count = 1, .timestamp = "-1");
}

CX_TEST(verify_schema_leaves_unusable_nodes_out)
{
    static const char *const tails[] = {
        ",\"agent_id\":\"b\"", /* everything missing */
        ",\"agent_id\":\"b\",\"seq\":1.0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":true,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":9223372036854775808,\"timestamp\":0,\"event\":{},"
        "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":\"0\",\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":1e301,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":-1e400,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":[],\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{\"x\":[1e400]},"
        "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{\"z\":1e400},"
        "\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},"
        "\"state_delta\":{\"goals\":{}},\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},"
        "\"state_delta\":{\"memory\":null},\"prev_hash\":\"\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":null,\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\\ud800\",\"hash\":\"\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\",\"parents\":\"n0\"",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\",\"parents\":[1]",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\",\"fork_type\":1",
        ",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":0,\"event\":{},\"state_delta\":{},"
        "\"prev_hash\":\"\",\"hash\":\"\",\"schema_version\":null"};
    for (size_t i = 0; i < CX_COUNT_OF(tails); i++) {
        pair p;
        pair_init(&p);
        cx_buf_printf(&p.text, "{\"node_id\":\"bad\"%s}\n", tails[i]);
        VERDICT(&p.text, NULL, "E_SCHEMA:bad@b"); /* one report, whatever else is wrong */
        cx_buf_done(&p.text);
    }
}

CX_TEST(verify_nodes_without_names_are_told_by_place)
{
    pair p;
    pair_init(&p);
    cx_buf_add_z(&p.text, "{\"node_id\":7,\"agent_id\":\"b\"}\n{\"seq\":1}\n"
                          "{\"node_id\":\"\\ud800\",\"agent_id\":\"\\udfff\"}\n");
    VERDICT(&p.text, NULL, "E_SCHEMA:#1@b E_SCHEMA:#2@? E_SCHEMA:#3@?");
    cx_buf_done(&p.text);
}

CX_TEST(verify_usable_schema_errors_leave_the_node_in)
{
    SECOND("E_SCHEMA:x,y@a", .id = "x,y", .seq = 1, .parents = {"n0"}, .parent_count = 1);
    SECOND("E_SCHEMA:n1@", .agent = "", .prev = ZEROS);
    SECOND("E_SCHEMA:n1@b", .agent = "b", .seq = -5, .prev = ZEROS);
    SECOND("E_MISSING_PARENT:n1@a E_SCHEMA:n1@a", .seq = 1, .parents = {"n0", ""},
           .parent_count = 2);
    SECOND("E_SCHEMA:n1@a", .seq = 1, .parents = {"n0", "n0"}, .parent_count = 2);
    SECOND("E_MISSING_PARENT:n1@a E_MISSING_PARENT:n1@a E_SCHEMA:n1@a", .seq = 1,
           .parents = {"z", "n0", "z"}, .parent_count = 3);
    SECOND("E_MISSING_PARENT:n1@a E_MISSING_PARENT:n1@a", .seq = 1, .parents = {"z", "n0", "y"},
           .parent_count = 3);
    pair p;
    pair_init(&p); /* once by id and once by hash */
    add(&p.text,
        (node_spec){
            .id = "n1", .seq = 1, .prev = p.first, .parents = {"n0", p.first}, .parent_count = 2},
        NULL);
    VERDICT(&p.text, NULL, "E_SCHEMA:n1@a");
    cx_buf_done(&p.text);
}

CX_TEST(verify_options_ask_for_more)
{
    static const cx_lattice_checks ids = {.content_ids = true}, seals = {.require_seals = true},
                                   times = {.strict_time = true}, plain = {.unambiguous = true};
    pair p;
    pair_init(&p);
    VERDICT(&p.text, &ids, "E_ID:n0@a");
    VERDICT(&p.text, &seals, "E_SEAL_MISSING:n0@a");
    VERDICT(&p.text, &plain, "ok");
    add(&p.text,
        (node_spec){.id = "n1",
                    .seq = 1,
                    .timestamp = "-0.5",
                    .prev = p.first,
                    .parents = {"n0"},
                    .parent_count = 1,
                    .version = "v2.0.0"},
        NULL);
    add(&p.text, (node_spec){.id = "d0", .agent = "9d", .timestamp = "3"}, NULL);
    add(&p.text, (node_spec){.id = "g0", .agent = "g", .prev = "GENESIS", .timestamp = "4"}, NULL);
    VERDICT(&p.text, &times, "E_TIME:n1@a");
    VERDICT(&p.text, &plain,
            "E_AMBIGUOUS:d0@9d E_AMBIGUOUS:g0@g E_AMBIGUOUS:n1@a "
            "W_TIME:n1@a");
    cx_buf_done(&p.text);
}

/* Whether a child at `late` counts as earlier than its parent at `early`. */
static bool regresses(const char *parent, const char *child)
{
    static const cx_lattice_checks times = {.strict_time = true};
    cx_buf text, verdict;
    char first[65];
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&verdict, cx_alloc_default());
    add(&text, (node_spec){.id = "p", .timestamp = parent}, first);
    add(&text,
        (node_spec){.id = "c",
                    .seq = 1,
                    .timestamp = child,
                    .prev = first,
                    .parents = {"p"},
                    .parent_count = 1},
        NULL);
    const char *found = lattice_text_verdict(&verdict, cx_buf_str(&text), &times);
    bool late = strcmp(found, "E_TIME:c@a") == 0;
    CHECK(late || strcmp(found, "ok") == 0);
    cx_buf_done(&text);
    cx_buf_done(&verdict);
    return late;
}

CX_TEST(verify_times_are_compared_exactly)
{
    char hundred[2][220];
    for (int i = 0; i < 2; i++) {
        memset(hundred[i], '0', 201);
        hundred[i][0] = '1';
        hundred[i][200] = (char)('0' + i);
        hundred[i][201] = 0;
    }
    /* In rising order; equal neighbours carry the same rank. */
    const struct {
        const char *text;
        int rank;
    } times[] = {{"-9.9e299", 0},
                 {"-18446744073709551617", 1},
                 {"-18446744073709551616.0", 2},
                 {"-9223372036854775809", 3},
                 {"-9223372036854775808", 4},
                 {"-1.5", 5},
                 {"-1", 6},
                 {"-0.0", 7},
                 {"0", 7},
                 {"5e-324", 8},
                 {"0.5", 9},
                 {"9007199254740992", 10},
                 {"9007199254740992.0", 10},
                 {"9007199254740993.0", 10},
                 {"9007199254740993", 11},
                 {"9223372036854775807", 12},
                 {"9223372036854775808", 13},
                 {"9223372036854775808.0", 13},
                 {"18446744073709551610", 14},
                 {"1.8446744073709552e19", 15},
                 {"18446744073709551616", 15},
                 {"18446744073709551617", 16},
                 {hundred[0], 18},
                 {hundred[1], 19},
                 {"9.9e299", 20}};
    for (size_t a = 0; a < CX_COUNT_OF(times); a++)
        for (size_t b = 0; b < CX_COUNT_OF(times); b++)
            if (regresses(times[a].text, times[b].text) != (times[b].rank < times[a].rank))
                cx_test_fail(__FILE__, __LINE__, "%s then %s", times[a].text, times[b].text);
}

CX_TEST(verify_times_end_before_1e300)
{
    char nines[302];
    memset(nines, '9', 301);
    nines[0] = '-';
    nines[301] = 0; /* 1 - 10^300, which is -1e300 as a double */
    SECOND("ok", .agent = "b", .prev = ZEROS, .timestamp = nines);
    SECOND("ok", .agent = "b", .prev = ZEROS, .timestamp = nines + 1);
    nines[0] = '9'; /* 10^301 - 1 */
    SECOND("E_SCHEMA:n1@b", .agent = "b", .prev = ZEROS, .timestamp = nines);
    SECOND("E_SCHEMA:n1@b", .agent = "b", .prev = ZEROS, .timestamp = "1e300");
    SECOND("E_SCHEMA:n1@b", .agent = "b", .prev = ZEROS, .timestamp = "-1E300");
    SECOND("ok", .agent = "b", .prev = ZEROS, .timestamp = "-9.999999999999999e299");
}

CX_TEST(verify_hashes_compare_as_texts)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    add(&text, (node_spec){.id = "n0", .hash = "odd one"}, NULL);
    add(&text,
        (node_spec){
            .id = "n1", .seq = 1, .prev = "odd one", .parents = {"odd one"}, .parent_count = 1},
        NULL);
    VERDICT(&text, NULL, "E_HASH:n0@a"); /* resolves and follows all the same */
    cx_buf_clear(&text);
    char upper[65];
    pair p;
    pair_init(&p);
    for (int i = 0; i < 65; i++)
        upper[i] = (char)(p.first[i] >= 'a' && p.first[i] <= 'f' ? p.first[i] - 32 : p.first[i]);
    add(&p.text,
        (node_spec){.id = "n1", .seq = 1, .prev = upper, .parents = {"n0"}, .parent_count = 1},
        NULL);
    VERDICT(&p.text, NULL, "E_LINEAGE:n1@a");
    cx_buf_done(&p.text);
    cx_buf_done(&text);
}

CX_TEST(verify_taint_spreads_to_descendants_only)
{
    cx_buf text;
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    char bad[65], fine[65];
    size_t count;
    cx_buf_init(&text, cx_alloc_default());
    add(&text, (node_spec){.id = "bad", .agent = "a", .hash = ZEROS}, bad);
    add(&text, (node_spec){.id = "fine", .agent = "b"}, fine);
    add(&text,
        (node_spec){.id = "child",
                    .agent = "c",
                    .prev = fine,
                    .parents = {"fine", "bad"},
                    .parent_count = 2,
                    .timestamp = "5"},
        NULL);
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
    CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
    const cx_lattice_branch *branches = cx_lattice_report_branches(report, &count);
    CHECK_INT(count, 3);
    CHECK(!branches[0].valid && !branches[0].tainted && branches[0].error_count == 1);
    CHECK(branches[1].valid && !branches[1].tainted && branches[1].error_count == 0);
    CHECK(branches[2].valid && branches[2].tainted);
    CHECK_STR(branches[2].agent, "c");
    CHECK(cx_lattice_report_verdict(report) == CX_BROKEN);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

/* Which of two nodes of one id a child means cannot be known. */
CX_TEST(verify_taint_comes_from_repeated_ids)
{
    cx_buf text;
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    char first[65];
    size_t count;
    cx_buf_init(&text, cx_alloc_default());
    add(&text, (node_spec){.id = "n"}, first);
    add(&text,
        (node_spec){.id = "child",
                    .agent = "b",
                    .prev = first,
                    .parents = {"n"},
                    .parent_count = 1,
                    .timestamp = "5"},
        NULL);
    add(&text, (node_spec){.id = "n", .agent = "c", .timestamp = "7"}, NULL);
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
    CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
    const cx_lattice_branch *branches = cx_lattice_report_branches(report, &count);
    CHECK_INT(count, 3);
    CHECK(branches[0].valid && branches[0].tainted); /* a, of the first n */
    CHECK(branches[1].valid && branches[1].tainted);
    CHECK(!branches[2].valid && branches[2].error_count == 1); /* c, of the second */
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

/* Errors that name an agent no node has are told under that name, as under any other. */
CX_TEST(verify_tells_errors_of_strangers)
{
    cx_buf text, out;
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    add(&text, (node_spec){.id = "n0", .agent = "k"}, NULL);
    cx_buf_add_z(&text, "{\"node_id\":\"m\"}\n{\"seq\":1}\n{\"agent_id\":\"b\"}\n");
    cx_lattice_head heads[] = {{CX_STR("ghost"), CX_STR("x")}};
    cx_lattice_anchor anchor = {.heads = heads, .head_count = 1};
    cx_lattice_checks checks = {.anchor = &anchor};
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
    CHECK_STATUS(cx_lattice_verify(lattice, &checks, &report, &err), &err);
    cx_lattice_text_options plain = {0};
    CHECK_STATUS(cx_lattice_report_text(&out, lattice, report, &plain, &err), &err);
    CHECK_STR(cx_buf_str(&out),
              "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===\n"
              "Loaded 4 trace nodes from DATG.\n"
              "Branch 'k': VALID\n"
              "Branch '?': INVALID\n  E_SCHEMA #2\n  E_SCHEMA m\n"
              "Branch 'b': INVALID\n  E_SCHEMA #3\n"
              "Branch 'ghost': INVALID\n  E_HEAD *\n"
              "[FAILURE] 3 of 4 branches failed verification.\n"
              "Evidence: hash=held monotonic=held lineage=held containment=held structure=FAILED "
              "seals=none ids=labels time=ordered anchor=bad\n");
    cx_buf_clear(&out);
    CHECK_STATUS(cx_lattice_report_json(&out, lattice, report, &err), &err);
    CHECK(strstr(cx_buf_z(&out), "{\"branches\":{\"?\":\"INVALID\",\"b\":\"INVALID\","
                                 "\"ghost\":\"INVALID\",\"k\":\"VALID\"},") != NULL);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_buf_done(&out);
    cx_buf_done(&text);
}

CX_TEST(verify_anchors)
{
    cx_buf text;
    char heads[2][65];
    cx_buf_init(&text, cx_alloc_default());
    add(&text, (node_spec){.id = "n0"}, heads[0]);
    add(&text, (node_spec){.id = "m0", .agent = "b"}, heads[1]);
    cx_lattice_head list[] = {{CX_STR("a"), cx_str_z(heads[0])},
                              {CX_STR("b"), cx_str_z(heads[1])},
                              {CX_STR("c"), CX_STR("x")}};
    cx_lattice_anchor anchor = {.heads = list, .head_count = 2};
    cx_lattice_checks checks = {.anchor = &anchor};
    VERDICT(&text, &checks, "ok");
    anchor.head_count = 1;
    VERDICT(&text, &checks, "ok"); /* some heads */
    anchor.head_count = 3;
    VERDICT(&text, &checks, "E_HEAD:*@c");
    anchor.head_count = 2;
    list[1].hash = CX_STR("another");
    VERDICT(&text, &checks, "E_HEAD:m0@b");
    anchor.whole = true; /* of which everything is wrong */
    anchor.head_count = 1;
    VERDICT(&text, &checks, "E_HEAD:m0@b E_ROOT:*@*");
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
    CHECK(cx_lattice_verify(lattice, &checks, &report, &err).code == CX_E_USAGE);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}

/* Details are cut for people, but never within a character: the report stays JSON. */
CX_TEST(verify_long_names_are_cut_between_characters)
{
    char name[7][400];
    for (size_t i = 0; i < 7; i++) {
        size_t at = 0;
        for (; at < i; at++)
            name[i][at] = 'x';
        for (; at + 8 < sizeof name[i]; at += 4)
            memcpy(name[i] + at, i % 2 ? "\xF0\x9F\x98\x80" : "\xC3\xA9\xC3\xA9", 5);
        pair p;
        cx_lattice *lattice;
        cx_lattice_report *report;
        cx_err err;
        cx_buf out;
        cx_arena arena;
        cx_json value;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        cx_buf_init(&out, cx_alloc_default());
        pair_init(&p);
        add(&p.text,
            (node_spec){.id = name[i],
                        .seq = 1,
                        .prev = name[i],
                        .timestamp = "9",
                        .parents = {name[i] + i, "n0"},
                        .parent_count = 2,
                        .version = name[i]},
            NULL);
        add(&p.text,
            (node_spec){
                .id = "t", .agent = "b", .timestamp = "1", .parents = {name[i]}, .parent_count = 1},
            NULL);
        CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&p.text), NULL, &lattice, &err), &err);
        cx_lattice_head head = {CX_STR("a"), cx_str_z(name[i])};
        cx_lattice_anchor anchor = {.heads = &head, .head_count = 1};
        CHECK_STATUS(
            cx_lattice_verify(lattice, &(cx_lattice_checks){.anchor = &anchor}, &report, &err),
            &err);
        CHECK_STATUS(cx_lattice_report_json(&out, lattice, report, &err), &err);
        CHECK_STATUS(cx_json_parse_text(cx_buf_str(&out), &arena, &value, &err), &err);
        CHECK(strstr(cx_buf_z(&out), "\\ufffd") == NULL);
        cx_lattice_report_close(report);
        cx_lattice_close(lattice);
        cx_buf_done(&out);
        cx_buf_done(&p.text);
        cx_arena_done(&arena);
    }
}

/* --- large shapes: must not be quadratic ------------------------------------------------------ */

static void check_large(const cx_buf *text, const cx_lattice_checks *checks, size_t errors)
{
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    size_t count;
    clock_t started = clock(); /* processor time: a busy machine is not a slow program */
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(text), NULL, &lattice, &err), &err);
    CHECK_STATUS(cx_lattice_verify(lattice, checks, &report, &err), &err);
    (void)cx_lattice_report_errors(report, &count);
    CHECK_INT(count, errors);
    CHECK(clock() - started < 60 * CLOCKS_PER_SEC);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
}

#define SMALL_NODE                                                                        \
    "{\"node_id\":\"%s%d\",\"agent_id\":\"%s\",\"seq\":%d,\"timestamp\":%d,\"event\":{}," \
    "\"state_delta\":{},\"prev_hash\":\"%s\",\"hash\":\"%s\",\"parents\":["

CX_TEST(verify_a_node_with_many_children)
{
    const int children = 300000 / (int)cx_test_step(3); /* enough for a second thread, too */
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_printf(&text, SMALL_NODE "]}\n", "root", 0, "r", 0, 0, "", ZEROS);
    for (int i = 0; i < children; i++) /* all on one step of one agent, forks of it */
        cx_buf_printf(&text, SMALL_NODE "\"root0\"],\"fork_type\":\"natural\"}\n", "c", i, "kid", 0,
                      1, ZEROS, ZEROS);
    check_large(&text, NULL, (size_t)children + 1); /* made-up hashes, all but that right */
    cx_buf_done(&text);
}

CX_TEST(verify_a_node_with_100000_parents)
{
    enum { PARENTS = 100000 };
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_printf(&text, SMALL_NODE, "merge", 0, "m", 0, 9, ZEROS, "x");
    for (int i = 0; i < PARENTS; i++) /* named backwards, before they are read */
        cx_buf_printf(&text, "%s\"p%d\"", i == 0 ? "" : ",", PARENTS - 1 - i);
    cx_buf_add_z(&text, "]}\n");
    for (int i = 0; i < PARENTS; i++)
        cx_buf_printf(&text, SMALL_NODE "]}\n", "p", i, "q", i, 0, ZEROS, ZEROS);
    check_large(&text, NULL, 2 * (size_t)PARENTS); /* E_HASH each, E_CONTAIN each but the first */
    cx_buf_done(&text);
}

CX_TEST(verify_many_agents_under_an_anchor)
{
    enum { AGENTS = 60000 };
    cx_buf text;
    cx_arena arena;
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_lattice_head *heads = CX_ARENA_ARRAY(&arena, cx_lattice_head, AGENTS);
    REQUIRE(heads != NULL);
    for (int i = 0; i < AGENTS; i++) {
        cx_str name = cx_arena_printf(&arena, "agent%05d", i);
        cx_buf_printf(&text, SMALL_NODE "]}\n", "n", i, name.data, 0, 0, "", ZEROS);
        heads[i] = (cx_lattice_head){name, CX_STR(ZEROS)};
    }
    cx_lattice_anchor anchor = {.heads = heads, .head_count = AGENTS};
    check_large(&text, &(cx_lattice_checks){.anchor = &anchor}, AGENTS);
    cx_arena_done(&arena);
    cx_buf_done(&text);
}

/* --- two threads ------------------------------------------------------------------------------ */

#define MANY 70000u /* nodes: enough for a second thread */

/* Five branches of made-up hashes: each node has findings of its own and of its branch. */
static void write_many(cx_buf *text)
{
    for (unsigned k = 0; k < MANY; k++)
        cx_buf_printf(text,
                      "{\"node_id\":\"n%u\",\"agent_id\":\"a%u\",\"seq\":%u,\"timestamp\":%u,"
                      "\"event\":{},\"state_delta\":{},\"prev_hash\":\"%064x\","
                      "\"hash\":\"%064x\",\"parents\":[\"n%u\"]}\n",
                      k, k % 5, k / 5 + (k / 5 > 9000), k % 977, k % 3 == 0 ? k - 5 : 1, k,
                      k < 5 ? 0 : k - 5);
}

static cx_lattice_report *judge_many(const cx_buf *text, unsigned threads, cx_lattice **out)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_lattice_report *report = NULL;
    cx_err err;
    options.threads = threads;
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(text), &options, out, &err), &err);
    CHECK_STATUS(cx_lattice_verify(*out, NULL, &report, &err), &err);
    return report;
}

static bool is_same_finding(const cx_lattice_finding *a, const cx_lattice_finding *b)
{
    return a->code == b->code && a->node == b->node && cx_str_eq(a->id, b->id) &&
           cx_str_eq(a->agent, b->agent) && cx_str_eq(a->detail, b->detail);
}

CX_TEST(verify_finds_the_same_with_two_threads)
{
    cx_buf text;
    cx_lattice *lattices[2] = {NULL};
    cx_buf_init(&text, cx_alloc_default());
    write_many(&text);
    cx_lattice_report *one = judge_many(&text, 1, &lattices[0]);
    cx_lattice_report *two = judge_many(&text, 2, &lattices[1]);
    size_t count, other;
    const cx_lattice_finding *left = cx_lattice_report_errors(one, &count);
    const cx_lattice_finding *right = cx_lattice_report_errors(two, &other);
    CHECK(count > MANY + MANY / 2); /* in nodes and in branches */
    CHECK_INT(other, count);
    for (size_t i = 0, wrong = 0; i < count && i < other && wrong < 3; i++) {
        if (!is_same_finding(&left[i], &right[i])) {
            cx_test_fail(__FILE__, __LINE__, "finding %zu is another", i);
            wrong++;
        }
    }
    const cx_lattice_branch *branches = cx_lattice_report_branches(one, &count);
    const cx_lattice_branch *others = cx_lattice_report_branches(two, &other);
    CHECK_INT(other, count);
    for (size_t i = 0; i < count && i < other; i++) {
        CHECK_INT(others[i].error_count, branches[i].error_count);
        CHECK(others[i].valid == branches[i].valid && others[i].tainted == branches[i].tainted);
    }
    cx_lattice_report_close(one);
    cx_lattice_report_close(two);
    cx_lattice_close(lattices[0]);
    cx_lattice_close(lattices[1]);
    cx_buf_done(&text);
}
