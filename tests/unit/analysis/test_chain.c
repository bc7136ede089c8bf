/*
 * test_chain.c - audit chains (trace.md §5): what breaks one, what is named, what changes nothing.
 */
#include "base/hex.h"
#include "tests/support/fault.h"
#include "tests/test.h"
#include "analysis/chain.h"

#define SECOND INT64_C(1000000000)
#define ENTRIES_MAX 320

typedef struct links {
    cx_arena arena;
    cx_err err;
    cx_chain_entry entries[ENTRIES_MAX];
    size_t count;
    cx_chain_options options;
    cx_chain_report report;
    cx_buf text;
} links;

static void links_init(links *l)
{
    memset(l, 0, sizeof *l);
    l->options.profile = CX_CHAIN_SPEC_1_0;
    cx_arena_init(&l->arena, cx_alloc_default(), 0);
    cx_buf_init(&l->text, cx_alloc_default());
}

static void links_done(links *l)
{
    cx_buf_done(&l->text);
    cx_arena_done(&l->arena);
}

/* Gives the entry the hash it would have after `previous`. */
static void link_to(cx_chain_entry *entry, const cx_digest *previous)
{
    char hex[64];
    size_t size = 0;
    if (previous != NULL) {
        cx_hex_encode(cx_bytes_from(previous->bytes, sizeof previous->bytes), hex);
        size = sizeof hex;
    }
    cx_chain_hash(cx_str_from(hex, size), entry->action, entry->success, entry->timestamp,
                  &entry->hash);
    entry->has_hash = true;
}

static cx_chain_entry *add(links *l, int64_t seq, const char *trace_id, const cx_digest *previous)
{
    cx_chain_entry *entry = &l->entries[l->count];
    *entry = (cx_chain_entry){.seq = seq,
                              .action = CX_STR("speak"),
                              .has_success = true,
                              .success = true,
                              .timestamp_ns = (seq + 100) * SECOND,
                              .trace_id = cx_str_z(trace_id),
                              .arrival = l->count};
    entry->timestamp = cx_arena_printf(&l->arena, "2026-01-01T00:00:%02uZ", (unsigned)seq % 60);
    link_to(entry, previous);
    l->count++;
    return entry;
}

/* Numbers first .. last, linked; the first to genesis. */
static void add_run(links *l, int64_t first, int64_t last)
{
    const cx_digest *previous = NULL;
    for (int64_t seq = first; seq <= last; seq++) {
        cx_str id = cx_arena_printf(&l->arena, "t%lld", (long long)seq);
        previous = &add(l, seq, id.data, previous)->hash;
    }
}

static void check(links *l)
{
    CHECK_STATUS(cx_chain_check(l->entries, l->count, &l->options, &l->arena, &l->report, &l->err),
                 &l->err);
}

/* Every finding as `kind number ids`, one after the other. */
static cx_str told(links *l)
{
    check(l);
    cx_buf_clear(&l->text);
    cx_buf_add_z(&l->text, cx_verdict_name(l->report.verdict));
    for (size_t i = 0; i < l->report.finding_count; i++) {
        const cx_chain_finding *f = &l->report.findings[i];
        cx_buf_printf(&l->text, "; %s %lld %.*s", cx_chain_kind_name(f->kind), (long long)f->seq,
                      (int)f->trace_id.size, f->trace_id.data);
        if (f->other_id.data != NULL)
            cx_buf_printf(&l->text, " %.*s", (int)f->other_id.size, f->other_id.data);
    }
    return cx_buf_str(&l->text);
}

/* --- what it is computed from ----------------------------------------------------------------- */

CX_TEST(chain_hash_is_the_one_of_the_specification)
{
    char hex[64];
    cx_digest digest;
    cx_chain_hash(CX_STR(""), CX_STR("speak"), true, CX_STR("2026-01-01T05:00:00.000000+00:00"),
                  &digest);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    CHECK_STR(cx_str_from(hex, 64),
              "042359a5c9a46d61b831014552ebb344b9616fab59c380e4bfac69f4e6fe8415");
}

CX_TEST(chain_names_are_read_back)
{
    static const char *const names[] = {"auto", "spec-1.0", "agent"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_chain_profile profile = CX_CHAIN_AUTO;
        CHECK(cx_chain_profile_parse(cx_str_z(names[i]), &profile));
        CHECK_STR(cx_str_z(cx_chain_profile_name(profile)), names[i]);
    }
    cx_chain_profile profile = CX_CHAIN_AGENT;
    CHECK(!cx_chain_profile_parse(CX_STR("spec-1.1"), &profile));
    CHECK_INT(profile, CX_CHAIN_AGENT);
}

/* --- one change, one finding ------------------------------------------------------------------ */

CX_TEST(chain_whole_holds)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 8);
    CHECK_STR(told(&l), "holds");
    CHECK_INT(l.report.entry_count, 8);
    l.options.profile = CX_CHAIN_AUTO;
    CHECK_STR(told(&l), "holds");
    CHECK_INT(l.report.profile, CX_CHAIN_SPEC_1_0);
    links_done(&l);
}

/* §14.19: whatever of an entry is changed, it is named at its own number, and nothing else is. */
CX_TEST(chain_change_is_named_at_its_own_number)
{
    for (size_t at = 0; at < 6; at++)
        for (unsigned what = 0; what < 3; what++) {
            links l;
            char expected[40];
            links_init(&l);
            add_run(&l, 1, 6);
            cx_chain_entry *entry = &l.entries[at];
            if (what == 0)
                entry->action = CX_STR("tool");
            else if (what == 1)
                entry->success = false;
            else
                entry->timestamp = CX_STR("2026-01-01T00:00:59Z");
            (void)snprintf(expected, sizeof expected, "broken; mismatch %zu t%zu%s%zu", at + 1,
                           at + 1, at == 0 ? "" : " t", at);
            if (at == 0)
                expected[strlen(expected) - 1] = '\0'; /* there is none before it */
            CHECK_STR(told(&l), expected);
            REQUIRE(l.report.finding_count == 1);
            CHECK(l.report.findings[0].has_expected);
            CHECK(cx_digest_eq(&l.report.findings[0].found, &entry->hash));
            links_done(&l);
        }
}

/* A hash that was changed does not fit, and the next entry does not follow it. */
CX_TEST(chain_changed_hash_breaks_two_links)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 5);
    l.entries[2].hash.bytes[31] ^= 1;
    CHECK_STR(told(&l), "broken; mismatch 3 t3 t2; mismatch 4 t4 t3");
    links_done(&l);
}

CX_TEST(chain_gap_says_how_many)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 9);
    l.entries[4] = l.entries[7]; /* 5, 6, 7 are gone */
    l.entries[5] = l.entries[8];
    l.count = 6;
    CHECK_STR(told(&l), "broken; gap 4 t4 t8; unchecked 8 t8");
    CHECK_INT(l.report.findings[0].next, 8);
    CHECK_INT(l.report.findings[0].missing, 3);
    links_done(&l);
}

/* The widest gap there is cannot be counted in 64 bits with a sign. */
CX_TEST(chain_gap_over_all_numbers_does_not_overflow)
{
    links l;
    links_init(&l);
    add(&l, 0, "low", NULL)->seq = INT64_MIN;
    add(&l, 0, "high", NULL)->seq = INT64_MAX;
    CHECK_STR(told(&l), "broken; gap -9223372036854775808 low high; "
                        "unchecked -9223372036854775808 low; unchecked 9223372036854775807 high");
    CHECK(l.report.findings[0].missing == INT64_MAX);
    links_done(&l);
}

CX_TEST(chain_same_entry_under_two_ids_is_a_duplicate)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 4);
    l.entries[l.count] = l.entries[1];
    l.entries[l.count].trace_id = CX_STR("copy");
    l.entries[l.count].arrival = l.count;
    l.count++;
    CHECK_STR(told(&l), "broken; duplicate 2 t2 copy");
    links_done(&l);
}

/* Two of three are one entry told twice, the third is another: each is named for what it is. */
CX_TEST(chain_fork_and_duplicate_of_one_number)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 2);
    cx_chain_entry *twin = add(&l, 2, "twin", &l.entries[0].hash);
    twin->action = CX_STR("tool");
    link_to(twin, &l.entries[0].hash);
    l.entries[l.count] = *twin;
    l.entries[l.count].trace_id = CX_STR("again");
    l.entries[l.count].arrival = l.count;
    l.count++;
    CHECK_STR(told(&l), "broken; duplicate 2 twin again; fork 2 t2 twin");
    links_done(&l);
}

/* Of two histories that part, what follows may follow either. */
CX_TEST(chain_links_try_every_entry_of_the_number_before)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 2);
    cx_chain_entry *twin = add(&l, 2, "twin", &l.entries[0].hash);
    twin->success = false;
    link_to(twin, &l.entries[0].hash);
    add(&l, 3, "after-t2", &l.entries[1].hash);
    CHECK_STR(told(&l), "broken; fork 2 t2 twin");
    l.entries[3].trace_id = CX_STR("after-twin");
    link_to(&l.entries[3], &twin->hash);
    CHECK_STR(told(&l), "broken; fork 2 t2 twin");
    l.entries[3].hash.bytes[0] ^= 1;
    CHECK_STR(told(&l), "broken; fork 2 t2 twin; mismatch 3 after-twin t2");
    CHECK(!l.report.findings[1].has_expected); /* which of the two is not known */
    links_done(&l);
}

CX_TEST(chain_time_going_back_is_named_with_both)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 4);
    l.entries[2].timestamp_ns = l.entries[1].timestamp_ns;
    CHECK_STR(told(&l), "holds"); /* the same time is not earlier */
    l.entries[2].timestamp_ns--;
    CHECK_STR(told(&l), "broken; reorder 3 t2 t3");
    links_done(&l);
}

/* Of several with one number the first by (timestamp, arrival) is compared. */
CX_TEST(chain_order_is_that_of_the_first_of_a_number)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 3);
    cx_chain_entry *early = add(&l, 2, "early", &l.entries[0].hash);
    early->timestamp_ns = l.entries[0].timestamp_ns - 1;
    CHECK_STR(told(&l), "broken; duplicate 2 early t2; reorder 2 t1 early");
    early->timestamp_ns = l.entries[1].timestamp_ns;
    early->arrival = 0;
    l.entries[0].arrival = 9;
    CHECK_STR(told(&l), "broken; duplicate 2 early t2");
    early->arrival = 2;
    CHECK_STR(told(&l), "broken; duplicate 2 t2 early");
    links_done(&l);
}

/* The same trace with and without its hash is not two: what is absent differs from nothing. */
CX_TEST(chain_same_trace_without_its_hash_is_no_fork)
{
    for (size_t which = 1; which < 3; which++) {
        links l;
        links_init(&l);
        add_run(&l, 1, 2);
        l.entries[2] = l.entries[1];
        l.entries[2].arrival = 2;
        l.count = 3;
        l.entries[which].has_hash = false;
        CHECK_STR(told(&l), "indeterminate; unchecked 2 t2");
        l.entries[2].trace_id = CX_STR("other"); /* two traces of one number are two */
        check(&l);
        CHECK_INT(l.report.verdict, CX_BROKEN);
        links_done(&l);
    }
}

/* --- what cannot be checked ------------------------------------------------------------------- */

CX_TEST(chain_starts_late_and_holds)
{
    links l;
    links_init(&l);
    add_run(&l, 5, 8);
    CHECK_STR(told(&l), "holds; unchecked 5 t5");
    cx_digest genesis = {{7}};
    l.options.genesis = &genesis; /* then the first must follow it */
    CHECK_STR(told(&l), "broken; mismatch 5 t5");
    link_to(&l.entries[0], &genesis);
    for (size_t i = 1; i < l.count; i++)
        link_to(&l.entries[i], &l.entries[i - 1].hash);
    CHECK_STR(told(&l), "holds");
    links_done(&l);
}

CX_TEST(chain_numbers_zero_and_one_start_at_genesis)
{
    for (int64_t first = 0; first <= 1; first++) {
        links l;
        links_init(&l);
        add_run(&l, first, first + 2);
        CHECK_STR(told(&l), "holds");
        l.entries[0].success = false;
        check(&l);
        CHECK_INT(l.report.verdict, CX_BROKEN);
        links_done(&l);
    }
}

/* A generic trace says nothing of its action: nothing is broken, and nothing is proved. */
CX_TEST(chain_without_actions_is_indeterminate)
{
    for (unsigned what = 0; what < 3; what++) {
        links l;
        links_init(&l);
        add_run(&l, 1, 4);
        if (what == 0)
            l.entries[2].action = (cx_str){NULL, 0};
        else if (what == 1)
            l.entries[2].has_success = false;
        else
            l.entries[2].has_hash = false; /* then the next has nothing to follow */
        CHECK_STR(told(&l), what == 2 ? "indeterminate; unchecked 3 t3; unchecked 4 t4"
                                      : "indeterminate; unchecked 3 t3");
        links_done(&l);
    }
}

/* Traces of the level generic have no action_executed. */
CX_TEST(chain_without_actions_recomputes_with_those_of_the_specification)
{
    static const char *const all[] = {"speak", "task_complete", "ponder",   "tool",   "observe",
                                      "defer", "reject",        "memorize", "recall", "forget"};
    links l;
    links_init(&l);
    l.options = (cx_chain_options){.profile = CX_CHAIN_AUTO, .infer_actions = true};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        cx_chain_entry *entry = add(&l, (int64_t)i + 1, "t", NULL);
        entry->trace_id = cx_arena_printf(&l.arena, "t%zu", i);
        entry->action = cx_str_z(all[i]);
        entry->success = i % 3 != 0;
        link_to(entry, i == 0 ? NULL : &l.entries[i - 1].hash);
    }
    for (size_t i = 0; i < l.count; i++)
        l.entries[i].action = (cx_str){NULL, 0};
    check(&l);
    CHECK(l.report.verdict == CX_HOLDS && l.report.profile == CX_CHAIN_SPEC_1_0);
    CHECK(l.report.finding_count == 0);

    /* One is missing: the gap is named, and so is that what follows it has no predecessor. */
    memmove(&l.entries[4], &l.entries[5], 5 * sizeof l.entries[0]);
    l.count--;
    check(&l);
    CHECK(l.report.verdict == CX_BROKEN && l.report.profile == CX_CHAIN_SPEC_1_0);
    CHECK(l.report.finding_count == 2);
    CHECK(l.report.findings[0].kind == CX_CHAIN_GAP && l.report.findings[0].seq == 4);
    CHECK(l.report.findings[0].missing == 1 && l.report.findings[0].next == 6);
    CHECK(l.report.findings[1].kind == CX_CHAIN_UNCHECKED && l.report.findings[1].seq == 6);

    /* An action that is none of them is no proof of anything. */
    l.count = 4;
    l.entries[2].success = !l.entries[2].success;
    check(&l);
    CHECK(l.report.verdict == CX_INDETERMINATE && l.report.profile == CX_CHAIN_SPEC_1_0);
    CHECK(l.report.finding_count == 1 && l.report.findings[0].kind == CX_CHAIN_UNCHECKED);
    CHECK(l.report.findings[0].seq == 3);

    /* Without that, as in a file of entries, nothing is tried. */
    l.options.infer_actions = false;
    check(&l);
    CHECK(l.report.verdict == CX_INDETERMINATE && l.report.profile == CX_CHAIN_AGENT);
    links_done(&l);
}

CX_TEST(chain_empty_action_is_an_action)
{
    links l;
    links_init(&l);
    add(&l, 1, "t1", NULL)->action = CX_STR("");
    link_to(&l.entries[0], NULL);
    CHECK_STR(told(&l), "holds");
    links_done(&l);
}

CX_TEST(chain_empty_is_indeterminate)
{
    links l;
    links_init(&l);
    CHECK_STR(told(&l), "indeterminate");
    CHECK(l.report.empty);
    l.options.profile = CX_CHAIN_AUTO;
    CHECK_STR(told(&l), "indeterminate");
    links_done(&l);
}

/* --- agents that hash other fields ------------------------------------------------------------ */

/* §14.18: deployed agents number what is not in the trace, too. */
CX_TEST(chain_gap_of_an_agent_is_no_alarm)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 9);
    for (size_t i = 0; i < l.count; i++) {
        l.entries[i].seq *= 3;
        l.entries[i].hash.bytes[0] ^= 1;
    }
    l.options.profile = CX_CHAIN_AUTO;
    check(&l);
    CHECK_INT(l.report.profile, CX_CHAIN_AGENT);
    CHECK_INT(l.report.verdict, CX_INDETERMINATE);
    CHECK_INT(l.report.finding_count, 8);
    for (size_t i = 0; i < l.report.finding_count; i++)
        CHECK_INT(l.report.findings[i].kind, CX_CHAIN_GAP);
    links_done(&l);
}

/* One link that recomputes is enough to know how the agent hashes. */
CX_TEST(chain_auto_takes_the_profile_that_recomputes)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 4);
    for (size_t i = 0; i < l.count; i++)
        l.entries[i].hash.bytes[0] ^= 1;
    l.options.profile = CX_CHAIN_AUTO;
    CHECK_STR(told(&l), "indeterminate");
    CHECK_INT(l.report.profile, CX_CHAIN_AGENT);
    link_to(&l.entries[2], &l.entries[1].hash);
    check(&l);
    CHECK_INT(l.report.profile, CX_CHAIN_SPEC_1_0);
    CHECK_INT(l.report.verdict, CX_BROKEN);
    links_done(&l);
}

/* --- laws ------------------------------------------------------------------------------------- */

CX_TEST(chain_trace_sent_again_changes_nothing)
{
    for (size_t at = 0; at < 6; at++) {
        links l;
        links_init(&l);
        add_run(&l, 1, 6);
        l.entries[3].action = CX_STR("changed"); /* so that there is a finding to double */
        cx_str before = cx_arena_copy_str(&l.arena, told(&l));
        uint64_t count = l.report.entry_count;
        l.entries[l.count] = l.entries[at];
        l.entries[l.count].arrival = l.count;
        l.count++;
        CHECK_STR(told(&l), before.data);
        CHECK_INT(l.report.entry_count, count);
        links_done(&l);
    }
}

/* Order of arrival is irrelevant: all 720 orders of six entries with everything wrong in them. */
CX_TEST(chain_any_order_tells_the_same)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 5);
    l.entries[1].action = CX_STR("changed");
    l.entries[3].timestamp_ns = 0;
    l.entries[4].seq = 9;
    cx_chain_entry *twin = add(&l, 3, "twin", &l.entries[0].hash);
    twin->timestamp_ns++;
    cx_str expected = cx_arena_copy_str(&l.arena, told(&l));
    CHECK_STR(expected, "broken; mismatch 2 t2 t1; fork 3 t3 twin; mismatch 3 twin t2; "
                        "gap 4 t4 t5; reorder 4 t3 t4; unchecked 9 t5");
    for (unsigned order = 0; order < 720; order++) {
        cx_chain_entry kept[6];
        cx_arena_mark mark = cx_arena_mark_now(&l.arena);
        memcpy(kept, l.entries, sizeof kept);
        unsigned rest = order;
        for (unsigned i = 6; i > 1; i--) {
            unsigned other = rest % i;
            cx_chain_entry moved = l.entries[i - 1];
            rest /= i;
            l.entries[i - 1] = l.entries[other];
            l.entries[other] = moved;
        }
        for (size_t i = 0; i < 6; i++)
            l.entries[i].arrival = i;
        CHECK_STR(told(&l), expected.data);
        memcpy(l.entries, kept, sizeof kept);
        cx_arena_reset(&l.arena, mark);
    }
    links_done(&l);
}

/* One who signs hundreds of entries of one number gets no reader to hash each against each; and
 * what was not tried is not called a mismatch. */
CX_TEST(chain_many_of_one_number_are_not_all_tried)
{
    links l;
    links_init(&l);
    for (unsigned i = 0; i < 300; i++) {
        cx_str id = cx_arena_printf(&l.arena, "twin%03u", i);
        cx_chain_entry *twin = add(&l, 1, id.data, NULL);
        twin->action = id;
        link_to(twin, NULL);
    }
    add(&l, 2, "follows-10", &l.entries[10].hash);
    check(&l);
    CHECK_INT(l.report.finding_count, 299);
    link_to(&l.entries[300], &l.entries[200].hash);
    l.entries[300].trace_id = CX_STR("follows-200");
    check(&l);
    REQUIRE(l.report.finding_count == 300);
    CHECK_INT(l.report.findings[299].kind, CX_CHAIN_UNCHECKED);
    CHECK_INT(l.report.verdict, CX_BROKEN);
    links_done(&l);
}

CX_TEST(chain_without_memory_is_an_error)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 40);
    for (size_t i = 0; i < l.count; i += 2)
        l.entries[i].seq = (int64_t)(10 * i);
    for (uint64_t at = 1;; at++) {
        fault_alloc memory;
        cx_arena arena;
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_status status =
            cx_chain_check(l.entries, l.count, &l.options, &arena, &l.report, &l.err);
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        if (atomic_load(&memory.fired) == 0) {
            CHECK_STATUS(status, &l.err);
            CHECK(at > 2);
            break;
        }
        CHECK(cx_failed(status));
        CHECK_INT(l.err.code, CX_E_NOMEM);
    }
    links_done(&l);
}

/* --- reports ---------------------------------------------------------------------------------- */

static cx_str as_json(links *l)
{
    check(l);
    cx_buf_clear(&l->text);
    CHECK_STATUS(cx_chain_json(&l->text, CX_STR("a\"1"), &l->report, &l->err), &l->err);
    return cx_buf_str(&l->text);
}

CX_TEST(chain_json_has_the_members_of_the_vectors)
{
    links l;
    links_init(&l);
    CHECK_STR(as_json(&l), "{\"agent\":\"a\\\"1\",\"entries\":0,\"findings\":[{\"kind\":"
                           "\"empty\"}],\"profile\":\"spec-1.0\",\"verdict\":\"indeterminate\"}\n");
    add_run(&l, 1, 3);
    l.entries[2].seq = 5;
    CHECK_STR(as_json(&l),
              "{\"agent\":\"a\\\"1\",\"entries\":3,\"findings\":[{\"kind\":\"gap\",\"missing\":2,"
              "\"next\":5,\"seq\":2,\"trace_ids\":[\"t2\",\"t3\"]},{\"kind\":\"unchecked\","
              "\"seq\":5,\"trace_ids\":[\"t3\"]}],\"profile\":\"spec-1.0\",\"verdict\":"
              "\"broken\"}\n");
    l.entries[1].action = CX_STR("x");
    l.count = 2;
    (void)as_json(&l);
    CHECK(strstr(cx_buf_z(&l.text), "\"previous\":\"t1\"") != NULL);
    CHECK(strstr(cx_buf_z(&l.text), "\"trace_ids\":[\"t2\"]") != NULL);
    CHECK(strstr(cx_buf_z(&l.text), "\"expected\":\"") != NULL);
    links_done(&l);
}

CX_TEST(chain_text_lets_nothing_act_on_a_terminal)
{
    links l;
    links_init(&l);
    add_run(&l, 1, 3);
    l.entries[2].trace_id = CX_STR("\x1b[2J\n\x7f");
    l.entries[2].seq = 4;
    check(&l);
    CHECK_STATUS(cx_chain_text(&l.text,
                               CX_STR("\x1b"
                                      "a"),
                               &l.report, false, &l.err),
                 &l.err);
    CHECK_STR(cx_buf_str(&l.text), "\\u001ba: broken, 3 entries, profile spec-1.0\n"
                                   "  gap       2  1 missing before 4\n"
                                   "  unchecked 4  \\u001b[2J\\u000a\\u007f\n");
    cx_buf_clear(&l.text);
    CHECK_STATUS(cx_chain_text(&l.text, CX_STR("a"), &l.report, true, &l.err), &l.err);
    CHECK(strstr(cx_buf_z(&l.text), "\x1b[31mbroken\x1b[0m") != NULL);
    links_done(&l);
}
