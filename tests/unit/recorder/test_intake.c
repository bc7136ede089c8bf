/*
 * Traces into the ledger: exactly once, told apart, and never called verified without it.
 */
#include "tests/support/recorder_fixture.h"

static const maker_options generic = MAKER_OPTIONS_INIT;

static maker_options full(const char *rationale)
{
    maker_options trace_options = MAKER_OPTIONS_INIT;
    trace_options.level = "full_traces";
    trace_options.rationale = rationale;
    return trace_options;
}

/* I2, I5 */
CX_TEST(intake_stores_once)
{
    fixture s;
    maker m;
    fixture_init(&s, "intake", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    cx_str trace = fixture_make(&s, &m, &generic);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_STORED);
    CHECK(s.took.events[0].verdict.form == CX_FORM_B);
    CHECK(s.took.changed);
    CHECK_INT(fixture_entries(&s, cx_str_z(m.agent)), 1);
    CHECK_INT(fixture_entries(&s, CX_STR("batches")), 1);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_DUPLICATE);
    CHECK_INT(s.took.events[0].seq, 0);
    CHECK(!s.took.changed);
    /* Other white space is the same trace (§9). */
    cx_str spaced = fixture_replace(&s, trace, "{\"trace_id\": ", "{\n \"trace_id\" :\t");
    CHECK_INT(fixture_send(&s, spaced, "generic"), CX_INTAKE_DUPLICATE);
    fixture_reopen(&s);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_DUPLICATE);
    CHECK_INT(fixture_entries(&s, cx_str_z(m.agent)), 1);
    CHECK_INT(fixture_entries(&s, CX_STR("batches")), 1);
    fixture_done(&s);
}

/* I2 */
CX_TEST(intake_twice_in_one_batch_is_once)
{
    fixture s;
    maker m;
    cx_buf batch;
    fixture_init(&s, "intake", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    cx_str trace = fixture_make(&s, &m, &generic);
    cx_buf_init(&batch, cx_alloc_default());
    maker_batch_begin(&batch);
    maker_batch_add(&batch, trace);
    maker_batch_add(&batch, trace);
    /* .. and under another id, which form B does not sign. */
    maker_batch_add(&batch, fixture_replace(&s, trace, "\"trace-", "\"other-"));
    maker_batch_end(&batch, "generic");
    fixture_take(&s, cx_buf_str(&batch));
    REQUIRE(s.took.received == 3);
    CHECK_INT(s.took.events[0].status, CX_INTAKE_STORED);
    CHECK_INT(s.took.events[1].status, CX_INTAKE_DUPLICATE);
    CHECK_INT(s.took.events[2].status, CX_INTAKE_REJECTED);
    CHECK(s.took.events[2].verdict.problem.reason == CX_REASON_SIGNATURE_REPLAYED);
    CHECK_INT(s.took.accepted, 2);
    CHECK_INT(fixture_entries(&s, cx_str_z(m.agent)), 1);
    cx_buf_done(&batch);
    fixture_done(&s);
}

CX_TEST(intake_keeps_conflicting_evidence)
{
    fixture s;
    maker m;
    maker_options same = MAKER_OPTIONS_INIT;
    fixture_init(&s, "intake", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    same.trace_id = "trace-same";
    cx_str first = fixture_make(&s, &m, &same), second = fixture_make(&s, &m, &same);
    CHECK_INT(fixture_send(&s, first, "generic"), CX_INTAKE_STORED);
    CHECK_INT(fixture_send(&s, second, "generic"), CX_INTAKE_CONFLICT);
    CHECK_INT(s.took.rejected, 1);
    uint64_t seq = s.took.events[0].seq;
    CHECK_INT(fixture_send(&s, second, "generic"), CX_INTAKE_CONFLICT);
    CHECK_INT(s.took.events[0].seq, seq);
    CHECK_INT(fixture_send(&s, first, "generic"), CX_INTAKE_DUPLICATE);
    CHECK_INT(fixture_entries(&s, cx_str_z(m.agent)), 2);
    CHECK_INT(fixture_entries(&s, CX_STR("alerts")), 1);
    fixture_done(&s);
}

/* I4, I5 */
CX_TEST(intake_rejects_what_is_not_signed_by_a_known_key)
{
    fixture s;
    maker known, stranger;
    fixture_init(&s, "intake", NULL);
    maker_init(&known, "alpha");
    maker_init(&stranger, "stranger");
    cx_str trace = fixture_make(&s, &known, &generic);
    /* An empty trust store knows no key (§14.9). */
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_REJECTED);
    CHECK(s.took.events[0].verdict.problem.reason == CX_REASON_KEY_UNKNOWN);
    CHECK(s.took.events[0].verdict.verdict == CX_INDETERMINATE);
    fixture_trust(&s, &known);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_STORED); /* usable at once (§14.11) */
    CHECK_INT(fixture_send(&s, fixture_make(&s, &stranger, &generic), "generic"),
              CX_INTAKE_REJECTED);
    cx_str changed = fixture_replace(&s, fixture_make(&s, &known, &generic), "0.9", "0.8");
    CHECK_INT(fixture_send(&s, changed, "generic"), CX_INTAKE_REJECTED);
    CHECK(s.took.events[0].verdict.problem.reason == CX_REASON_SIGNATURE_INVALID);
    CHECK_INT(fixture_entries(&s, cx_str_z(known.agent)), 1);
    CHECK_INT(fixture_entries(&s, cx_str_z(stranger.agent)), 0);
    fixture_done(&s);
}

CX_TEST(intake_rejects_a_revoked_key_at_once)
{
    fixture s;
    maker m;
    fixture_init(&s, "intake", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    cx_str first = fixture_make(&s, &m, &generic), second = fixture_make(&s, &m, &generic);
    CHECK_INT(fixture_send(&s, first, "generic"), CX_INTAKE_STORED);
    CHECK_STATUS(cx_recorder_key_revoke(s.recorder, cx_str_z(m.key_id), CX_STR("lost"),
                                        CX_STR("me"), CX_TIME_NONE, &s.err),
                 &s.err);
    CHECK_INT(fixture_send(&s, second, "generic"), CX_INTAKE_REJECTED);
    CHECK(s.took.events[0].verdict.problem.reason == CX_REASON_KEY_REVOKED);
    uint64_t entries = fixture_entries(&s, CX_STR("trust"));
    CHECK_STATUS(cx_recorder_key_revoke(s.recorder, cx_str_z(m.key_id), CX_STR("again"),
                                        CX_STR("me"), CX_TIME_NONE, &s.err),
                 &s.err);
    CHECK_INT(fixture_entries(&s, CX_STR("trust")), entries);
    CHECK(cx_recorder_key_revoke(s.recorder, CX_STR("nobody"), CX_STR(""), CX_STR("me"),
                                 CX_TIME_NONE, &s.err)
              .code == CX_E_NOT_FOUND);
    fixture_done(&s);
}

CX_TEST(intake_never_rebinds_a_key)
{
    fixture s;
    maker alpha, beta;
    bool is_new = true;
    fixture_init(&s, "intake", NULL);
    maker_init(&alpha, "alpha");
    maker_init(&beta, "beta");
    fixture_trust(&s, &alpha);
    cx_trust_key key = maker_key(&alpha);
    CHECK_STATUS(cx_recorder_key_add(s.recorder, &key, &is_new, &s.err), &s.err);
    CHECK(!is_new);
    key.key = beta.public_key;
    CHECK(cx_recorder_key_add(s.recorder, &key, &is_new, &s.err).code == CX_E_CONFLICT);
    CHECK_STR(cx_str_z(s.err.tag), "KeyConflict");
    CHECK_INT(fixture_entries(&s, CX_STR("trust")), 1);
    fixture_done(&s);
}

/* I4 */
CX_TEST(intake_stores_unknown_keys_unverified_by_policy)
{
    static const cx_recorder_options keep = {.keep_unknown = true};
    fixture s;
    maker m;
    fixture_init(&s, "intake", &keep);
    maker_init(&m, "stranger");
    cx_str trace = fixture_make(&s, &m, &generic);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_UNVERIFIED);
    CHECK_INT(s.took.accepted, 1);
    CHECK(s.took.events[0].verdict.verdict == CX_INDETERMINATE);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_DUPLICATE);
    /* Its text must not slip in below its level either. */
    maker_options trace_options = full("words");
    cx_str loud = fixture_make(&s, &m, &trace_options);
    CHECK_INT(
        fixture_send(&s, fixture_replace(&s, loud, "\"full_traces\"", "\"generic\""), "generic"),
        CX_INTAKE_REJECTED);
    CHECK(s.took.events[0].verdict.problem.reason == CX_REASON_LEVEL_VIOLATION);
    fixture_done(&s);
}

/* Whether the bytes are in any file of the home. */
static bool home_holds(const fixture *s, const char *needle)
{
    static const char *const folders[] = {"", "/log"};
    bool found = false;
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        char path[FOLDER_PATH_SIZE + 8];
        cx_buf text;
        (void)snprintf(path, sizeof path, "%s%s", s->path, folders[i]);
        cx_buf_init(&text, cx_alloc_default());
        folder_contents(path, &text);
        found |= memmem(text.data, text.size, needle, strlen(needle)) != NULL;
        cx_buf_done(&text);
    }
    return found;
}

CX_TEST(intake_strips_what_the_level_does_not_allow)
{
    static const cx_recorder_options strip = {.strip_level = true};
    fixture s;
    maker m;
    fixture_init(&s, "intake", &strip);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    maker_options trace_options = full("a secret reason");
    /* Form B does not sign the level. */
    cx_str trace =
        fixture_replace(&s, fixture_make(&s, &m, &trace_options), "\"full_traces\"", "\"generic\"");
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_STORED);
    CHECK(s.took.events[0].stripped_count >= 1);
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_DUPLICATE);
    fixture_close(&s);
    CHECK(!home_holds(&s, "a secret reason"));
    CHECK(home_holds(&s, "HandlerActionType.SPEAK"));
    fixture_open(&s);
    fixture_done(&s);
}

CX_TEST(intake_rejected_text_is_nowhere)
{
    fixture s;
    maker m;
    cx_buf answer;
    fixture_init(&s, "intake", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    maker_options trace_options = full("a secret reason");
    cx_str trace =
        fixture_replace(&s, fixture_make(&s, &m, &trace_options), "\"full_traces\"", "\"generic\"");
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_REJECTED);
    cx_buf_init(&answer, cx_alloc_default());
    CHECK_STATUS(cx_intake_json(&answer, &s.took, &s.err), &s.err);
    CHECK(memmem(answer.data, answer.size, "secret", 6) == NULL);
    CHECK(memmem(answer.data, answer.size, "/components/3/data/action_rationale", 35) != NULL);
    cx_buf_done(&answer);
    fixture_close(&s);
    CHECK(!home_holds(&s, "a secret reason"));
    fixture_open(&s);
    fixture_done(&s);
}

CX_TEST(intake_the_same_trace_at_two_levels_is_two_records)
{
    fixture s;
    maker m;
    fixture_init(&s, "intake", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    cx_str trace = fixture_make(&s, &m, &generic);
    cx_str detailed = fixture_replace(&s, trace, "\"generic\"", "\"detailed\"");
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_STORED);
    CHECK_INT(fixture_send(&s, detailed, "generic"), CX_INTAKE_STORED);
    CHECK_INT(fixture_entries(&s, cx_str_z(m.agent)), 2);
    fixture_done(&s);
}

CX_TEST(intake_refuses_reserved_actors)
{
    static const char *const names[] = {"trust", "batches", "alerts", "key:x", "run:0", "a/b", ""};
    static const cx_recorder_options keep = {.keep_unknown = true};
    fixture s;
    maker m;
    char quoted[64];
    fixture_init(&s, "intake", &keep);
    maker_init(&m, "alpha");
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", m.agent);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "\"%s\"", names[i]);
        cx_str trace = fixture_replace(&s, fixture_make(&s, &m, &generic), quoted, name);
        CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_REJECTED);
    }
    CHECK_INT(fixture_entries(&s, CX_STR("trust")), 0);
    CHECK_INT(fixture_entries(&s, CX_STR("alerts")), 0);
    /* "unknown" and nothing are the key's own journal. */
    cx_str trace = fixture_replace(&s, fixture_make(&s, &m, &generic), quoted, "\"unknown\"");
    CHECK_INT(fixture_send(&s, trace, "generic"), CX_INTAKE_UNVERIFIED);
    cx_str actor = cx_arena_printf(&s.arena, "key:%s", m.key_id);
    CHECK_INT(fixture_entries(&s, actor), 1);
    fixture_done(&s);
}
