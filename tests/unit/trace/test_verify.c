/*
 * Verification (trace.md §4): signature text, keys in time, forms, levels, and what is reported.
 */
#include "tests/support/trace_kit.h"

#include "base/hex.h"

static const char alpha[] = "agent-976dbe504763";

static void setup(kit *k)
{
    kit_init(k);
    kit_load_trust(k);
    k->check.batch_level = CX_LEVEL_FULL;
}

/* The trust store's key, to be changed. */
static cx_trust_key *key_of(kit *k, const char *key_id)
{
    const cx_trust_key *key = cx_trust_find(&k->trust, cx_str_z(key_id));
    return (cx_trust_key *)(uintptr_t)key;
}

/* §14.1, §4.1: both alphabets, padded or not, never mixed. */
CX_TEST(verify_spellings_of_a_signature)
{
    static const char *const reasons[] = {"", "", "", ""};
    kit k;
    setup(&k);
    cx_str text = kit_file(&k, "traces/form-B-edge0.json");
    CHECK_REASON(kit_verify(&k, text), "");
    cx_str old = cx_arena_copy_str(&k.arena, k.trace.signature);
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK(cx_base64_decode_either(old, &bytes));
    CHECK_INT(bytes.size, 64);
    cx_str spelled[4];
    for (int i = 0; i < 4; i++) {
        cx_buf other;
        cx_buf_init(&other, cx_alloc_default());
        cx_base64_add(&other, cx_buf_bytes(&bytes), i % 2 == 0 ? CX_BASE64 : CX_BASE64_URL);
        while (i < 2 && other.size % 4 != 0)
            cx_buf_add_byte(&other, '=');
        while (i >= 2 && other.data[other.size - 1] == '=')
            other.size--;
        spelled[i] = cx_arena_copy_str(&k.arena, cx_buf_str(&other));
        cx_buf_done(&other);
        CHECK_REASON(kit_verify(&k, kit_replace(&k, text, old.data, spelled[i].data)), reasons[i]);
        CHECK_INT(k.verdict.verdict, CX_HOLDS);
    }
    CHECK(!cx_str_eq(spelled[0], spelled[1]) && spelled[0].size == spelled[2].size + 2);
    cx_str mixed = cx_arena_printf(&k.arena, "+_%s", old.data + 2);
    CHECK_REASON(kit_verify(&k, kit_replace(&k, text, old.data, mixed.data)), "signature_encoding");
    CHECK_STR(k.verdict.problem.path, "/signature");
    cx_str cut = cx_arena_printf(&k.arena, "%.*s", 4 * 15, old.data);
    CHECK_REASON(kit_verify(&k, kit_replace(&k, text, old.data, cut.data)), "signature_length");
    CHECK_REASON(kit_verify(&k, kit_replace(&k, text, old.data, "")), "signature_length");
    CHECK_INT(k.verdict.verdict, CX_BROKEN);
    CHECK_INT(k.verdict.form, CX_FORM_NONE);
    cx_buf_done(&bytes);
    kit_done(&k);
}

/* §14.9 */
CX_TEST(verify_without_keys_everything_is_unknown)
{
    kit k;
    kit_init(&k);
    CHECK_REASON(kit_verify(&k, kit_file(&k, "traces/form-B-edge0.json")), "key_unknown");
    CHECK_INT(k.verdict.verdict, CX_INDETERMINATE);
    CHECK_STR(k.verdict.problem.path, "/signature_key_id");
    CHECK(k.verdict.key == NULL && k.verdict.form == CX_FORM_NONE);
    kit_done(&k);
}

/* §4: signing time decides validity, time of receipt revocation, signing time again compromise. */
CX_TEST(verify_keys_in_time)
{
    kit k;
    setup(&k);
    cx_str text = kit_file(&k, "traces/form-B-edge0.json");
    cx_trust_key *key = key_of(&k, alpha);
    const cx_trust_key unchanged = *key;
    CHECK_REASON(kit_verify(&k, text), "");
    CHECK(k.verdict.key == key);
    int64_t signed_ns = k.trace.signed_ns, received_ns = k.check.received_ns;
    key->not_before = signed_ns;
    CHECK_REASON(kit_verify(&k, text), "");
    key->not_before = signed_ns + 1;
    CHECK_REASON(kit_verify(&k, text), "key_not_yet_valid");
    *key = unchanged;
    key->not_after = signed_ns + 1;
    CHECK_REASON(kit_verify(&k, text), "");
    key->not_after = signed_ns;
    CHECK_REASON(kit_verify(&k, text), "key_expired");
    *key = unchanged;
    key->revoked_at = received_ns + 1;
    CHECK_REASON(kit_verify(&k, text), "");
    key->revoked_at = received_ns;
    CHECK_REASON(kit_verify(&k, text), "key_revoked");
    CHECK_INT(k.verdict.verdict, CX_BROKEN);
    *key = unchanged;
    key->revoked_at = received_ns + 1;
    key->compromised_since = signed_ns + 1;
    CHECK_REASON(kit_verify(&k, text), "");
    key->compromised_since = signed_ns;
    CHECK_REASON(kit_verify(&k, text), "key_revoked");
    /* The order of the checks: whose key it is, from when, until when, revoked. */
    key->not_after = signed_ns;
    CHECK_REASON(kit_verify(&k, text), "key_expired");
    key->not_before = signed_ns + 1;
    CHECK_REASON(kit_verify(&k, text), "key_not_yet_valid");
    const cx_str other[] = {CX_STR("other")};
    key->agents = other;
    CHECK_REASON(kit_verify(&k, text), "key_agent_mismatch");
    CHECK_STR(k.verdict.problem.path, "/agent_id_hash");
    kit_done(&k);
}

/* A bound key signs for its agents; a trace without an agent is of none of them. */
CX_TEST(verify_agents_of_a_key)
{
    const cx_str agents[] = {CX_STR("a"), CX_STR("b")};
    const cx_trust_key any = {.agent_count = 0};
    const cx_trust_key bound = {.agents = agents, .agent_count = 2};
    CHECK(cx_trust_key_may_sign_for(&any, CX_STR("x")));
    CHECK(cx_trust_key_may_sign_for(&any, (cx_str){NULL, 0}));
    CHECK(cx_trust_key_may_sign_for(&bound, CX_STR("b")));
    CHECK(!cx_trust_key_may_sign_for(&bound, CX_STR("ab")));
    CHECK(!cx_trust_key_may_sign_for(&bound, CX_STR("unknown")));
    CHECK(!cx_trust_key_may_sign_for(&bound, (cx_str){NULL, 0}));
}

/* §14.8: a stamp is a hint; §3: which form, what it covers, how numbers were spelled. */
CX_TEST(verify_forms)
{
    static const struct {
        const char *file, *form, *covers, *numbers;
    } cases[] = {
        {"traces/form-A-generic2.json", "A", "envelope", "same"},
        {"traces/form-B-generic2.json", "B", "components", "same"},
        {"traces/form-D-generic2.json", "D", "components", "same"},
        {"traces/form-E-generic2.json", "E", "components+level", "same"},
        {"traces/form-E-as2.7.0-full_traces0.json", "E", "components+level", "same"},
        {"traces/form-F-generic2.json", "F", "envelope", "same"},
        {"traces/form-G-full_traces0.json", "G", "envelope", "same"},
        {"traces/form-H-detailed1.json", "H", "envelope", "jcs"},
        {"traces/lexeme-signed.json", "B", "components", "lexeme"},
        {"traces/respelled-0.json", "B", "components", "python"},
    };
    kit k;
    setup(&k);
    k.check.batch_level = CX_LEVEL_GENERIC;
    k.check.any_level = true;
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_str text = kit_file(&k, cases[i].file);
        CHECK_REASON(kit_verify(&k, text), "");
        CHECK_STR(cx_str_z(cx_trace_form_name(k.verdict.form)), cases[i].form);
        CHECK_STR(cx_str_z(cx_trace_signed_name(k.verdict.covers)), cases[i].covers);
        CHECK_STR(cx_str_z(cx_trace_numbers_name(k.verdict.numbers)), cases[i].numbers);
        /* Without that form there is none. */
        k.check.forms = CX_FORMS_ALL & ~CX_FORM_BIT(k.verdict.form);
        CHECK_REASON(kit_verify(&k, text), "signature_invalid");
        k.check.forms = CX_FORMS_ALL;
    }
    /* The stamp goes: E is still found, with F and G tried first. */
    cx_str text = kit_file(&k, "traces/form-E-as2.7.0-full_traces0.json");
    CHECK_REASON(kit_verify(&k, kit_replace(&k, text, "\"2.7.0\"", "\"2.7.9\"")), "");
    CHECK_REASON(kit_verify(&k, kit_replace(&k, text, "\"2.7.0\"", "\"33.1\"")), "");
    CHECK_REASON(kit_verify(&k, kit_replace(&k, text, "\"2.7.0\"", "null")), "");
    CHECK_INT(k.verdict.form, CX_FORM_E);
    kit_done(&k);
}

/* §14.23: the fields are named, and nothing of what stood in them. */
CX_TEST(verify_levels)
{
    kit k;
    setup(&k);
    cx_str text = kit_file(&k, "traces/generic-detailed-field.json");
    k.check.batch_level = CX_LEVEL_GENERIC;
    CHECK_REASON(kit_verify(&k, text), "level_violation");
    CHECK_INT(k.verdict.verdict, CX_BROKEN);
    CHECK_INT(k.verdict.path_count, 1);
    CHECK_STR(k.verdict.problem.path, "/components/5/data/models_used");
    CHECK_INT(k.verdict.form, CX_FORM_B);
    k.check.any_level = true;
    CHECK_REASON(kit_verify(&k, text), "");
    CHECK_INT(k.verdict.path_count, 0);
    k.check.any_level = false;
    k.check.event_level = CX_LEVEL_FULL;
    CHECK_REASON(kit_verify(&k, text), "");
    k.check.event_level = CX_LEVEL_ABSENT;
    CHECK_REASON(kit_verify(&k, kit_file(&k, "traces/generic-unknown-text.json")),
                 "level_violation");
    const cx_json *note = CX_JSON_GET(k.trace.last[CX_EVENT_CONSCIENCE_RESULT]->data, "new_note");
    cx_str secret = cx_arena_copy_str(&k.arena, cx_json_text(note));
    cx_buf_clear(&k.scratch);
    CHECK_STATUS(cx_trace_verdict_json(&k.scratch, &k.trace, &k.verdict, &k.err), &k.err);
    CHECK_STATUS(cx_trace_verdict_text(&k.scratch, &k.trace, &k.verdict, true, &k.err), &k.err);
    CHECK(secret.size > 3 && strstr(cx_buf_z(&k.scratch), secret.data) == NULL);
    CHECK(strstr(cx_buf_z(&k.scratch), "/components/4/data/new_note") != NULL);
    kit_done(&k);
}

/* Everything that is reported, once. */
CX_TEST(verify_reports)
{
    kit k;
    cx_json value;
    setup(&k);
    CHECK_REASON(
        kit_verify(&k, kit_replace(&k, kit_file(&k, "traces/form-G-full_traces0.json"),
                                   "\"deployment_profile\"",
                                   "\"signature_ml_dsa_65\":\"AA\",\"deployment_profile\"")),
        "");
    CHECK_INT(k.verdict.pqc, CX_PQC_NOT_CHECKED);
    k.verdict.naive_timestamp = true;
    cx_buf_clear(&k.scratch);
    CHECK_STATUS(cx_trace_verdict_json(&k.scratch, &k.trace, &k.verdict, &k.err), &k.err);
    CHECK_INT(k.scratch.data[k.scratch.size - 1], '\n');
    CHECK_STATUS(cx_json_parse_text(cx_arena_copy_str(&k.arena, cx_buf_str(&k.scratch)), &k.arena,
                                    &value, &k.err),
                 &k.err);
    CHECK_STR(CX_JSON_GET_STR(&value, "verdict"), "holds");
    CHECK_STR(CX_JSON_GET_STR(&value, "form"), "G");
    CHECK_STR(CX_JSON_GET_STR(&value, "signed"), "envelope");
    CHECK_STR(CX_JSON_GET_STR(&value, "pqc"), "not_checked");
    CHECK_STR(CX_JSON_GET_STR(&value, "key_id"), alpha);
    CHECK_INT(CX_JSON_GET(&value, "reason")->type, CX_JSON_NULL);
    CHECK_INT(CX_JSON_GET(&value, "canonical_len")->type, CX_JSON_INT);
    CHECK_INT(CX_JSON_GET(&value, "warnings")->count, 1);
    cx_buf_clear(&k.scratch);
    CHECK_STATUS(cx_trace_verdict_text(&k.scratch, &k.trace, &k.verdict, false, &k.err), &k.err);
    CHECK(strstr(cx_buf_z(&k.scratch), ": holds\n") != NULL);
    CHECK(strstr(cx_buf_z(&k.scratch), "ML-DSA-65") != NULL);
    /* Ids come from outside: nothing of them acts on a terminal. */
    k.trace.trace_id = CX_STR("\x1b[31m\n");
    cx_buf_clear(&k.scratch);
    CHECK_STATUS(cx_trace_verdict_text(&k.scratch, &k.trace, &k.verdict, false, &k.err), &k.err);
    CHECK(strstr(cx_buf_z(&k.scratch), "trace \"\\u001b[31m\\n\": holds") != NULL);
    kit_done(&k);
}

CX_TEST(verify_warns_of_naive_timestamps)
{
    kit k;
    kit_init(&k);
    cx_str text = kit_small(&k, CX_EVENT_UNKNOWN, "", "");
    (void)kit_verify(&k, text);
    CHECK(!k.verdict.naive_timestamp);
    (void)kit_verify(&k, kit_replace(&k, text, "00:00:03Z", "00:00:03"));
    CHECK(k.verdict.naive_timestamp);
    kit_done(&k);
}

/* Form A strips nothing and signs the envelope: what verifies with a byte changed still has the
 * same components, to the byte. */
CX_TEST(verify_finds_every_changed_byte)
{
    static const cx_trace_bytes b = {.form = CX_FORM_B, .batch_level = CX_LEVEL_ABSENT};
    kit k;
    cx_buf whole;
    unsigned held = 0;
    setup(&k);
    cx_buf_init(&whole, cx_alloc_default());
    cx_str text = kit_file(&k, "traces/form-A-generic2.json");
    CHECK_REASON(kit_verify(&k, text), "");
    CHECK_STATUS(cx_trace_canonical(&k.trace, &b, &whole, &k.err), &k.err);
    char *copy = (char *)(uintptr_t)cx_arena_copy_str(&k.arena, text).data;
    cx_arena_mark mark = cx_arena_mark_now(&k.arena);
    for (size_t i = 0; i < text.size; i += 3) {
        copy[i] ^= 1;
        if (kit_verify(&k, cx_str_from(copy, text.size)) == CX_REASON_NONE) {
            cx_buf_clear(&k.scratch);
            CHECK_STATUS(cx_trace_canonical(&k.trace, &b, &k.scratch, &k.err), &k.err);
            if (!cx_str_eq(cx_buf_str(&k.scratch), cx_buf_str(&whole)))
                cx_test_fail(__FILE__, __LINE__, "byte %zu may be changed", i);
            held++;
        }
        copy[i] ^= 1;
        cx_arena_reset(&k.arena, mark);
    }
    CHECK(held < text.size / 30);
    cx_buf_done(&whole);
    kit_done(&k);
}

/* --- several at once ----------------------------------------------------------------------- */

/* Every form, first guesses that are wrong, and most ways to fail. */
static const char *const crowd_names[] = {
    "form-B-edge0", "form-A-edge0",    "form-C-edge1",       "form-D-edge1",
    "expired",      "form-E-edge2",    "form-E1-edge2",      "F-task-id-forged",
    "form-F-edge2", "agent-not-bound", "form-G-edge2",       "S-plus-L",
    "form-H-edge1", "form-B-edge1",    "detailed-reasoning", "form-E-as2.7.0-edge1",
    "form-B-edge2", "F-null-added",    "form-A-detailed1",   "E-level-changed",
    "form-C-edge2", "form-H-edge2",    "form-D-full_traces0"};
enum { CROWD = CX_COUNT_OF(crowd_names) };

static void check_same_verdict(const char *name, const cx_trace_verdict *got,
                               const cx_trace_verdict *want)
{
    if (got->verdict != want->verdict || got->problem.reason != want->problem.reason ||
        !cx_str_eq(got->problem.path, want->problem.path) || got->form != want->form ||
        got->numbers != want->numbers || got->covers != want->covers || got->key != want->key ||
        got->canonical_size_bytes != want->canonical_size_bytes ||
        got->path_count != want->path_count || !cx_digest_eq(&got->canonical, &want->canonical))
        cx_test_fail(__FILE__, __LINE__, "%s: among others %s, alone %s", name,
                     cx_trace_reason_name(got->problem.reason),
                     cx_trace_reason_name(want->problem.reason));
}

/* Whatever is next to it, a trace is judged as it is alone. */
CX_TEST(verify_many_is_one_by_one)
{
    enum { ROUNDS = 2, ALL = ROUNDS * CROWD };
    static cx_trace traces[CROWD];
    static cx_trace_verdict alone[CROWD], verdicts[ALL];
    static cx_digest contents[ALL];
    cx_trace_job jobs[ALL];
    unsigned held = 0;
    kit k;
    setup(&k);
    for (unsigned i = 0; i < CROWD; i++) {
        char path[80];
        (void)snprintf(path, sizeof path, "traces/%s.json", crowd_names[i]);
        (void)kit_verify(&k, kit_file(&k, path));
        REQUIRE(k.problem.reason == CX_REASON_NONE);
        traces[i] = k.trace;
        alone[i] = k.verdict;
        held += k.verdict.verdict == CX_HOLDS;
    }
    CHECK(held >= 12 && held + 5 <= CROWD);
    for (unsigned i = 0; i < ALL; i++)
        jobs[i] = (cx_trace_job){&traces[i % CROWD], k.check, &verdicts[i],
                                 i % 3 == 0 ? NULL : &contents[i]};
    for (unsigned count = 0; count <= ALL; count += count < 20 ? 1 : 7) {
        memset(verdicts, 0x55, sizeof verdicts);
        CHECK_STATUS(cx_trace_verify_many(jobs, count, &k.scratch, &k.arena, &k.err), &k.err);
        for (unsigned i = 0; i < count; i++) {
            check_same_verdict(crowd_names[i % CROWD], &verdicts[i], &alone[i % CROWD]);
            k.trace = traces[i % CROWD];
            if (jobs[i].out_content != NULL)
                kit_check_content(&k, &contents[i]);
        }
    }
    kit_done(&k);
}
