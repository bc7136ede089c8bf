/*
 * The trust store (trace.md §4): reading, writing, finding.
 */
#include "tests/support/trace_kit.h"

#define KEY "LxJNYuOCOAYdSPXfsMTLJq62nw8MP6ZjEzKttkQgSUM"
#define STORE(keys) "{\"format\":\"cortex-trust-1\",\"keys\":[" keys "]}"
#define ONE(more) "{\"key_id\":\"a\",\"algorithm\":\"ed25519\",\"public_key\":\"" KEY "\"" more "}"

CX_TEST(trust_file_of_the_vectors)
{
    kit k;
    kit_init(&k);
    kit_load_trust(&k);
    CHECK_INT(k.trust.count, 6);
    for (size_t i = 1; i < k.trust.count; i++)
        CHECK(cx_str_cmp(k.trust.keys[i - 1].key_id, k.trust.keys[i].key_id) < 0);
    const cx_trust_key *lost = cx_trust_find(&k.trust, CX_STR("agent-7cfb5aac6fe3"));
    REQUIRE(lost != NULL);
    CHECK_STR(lost->revoked_reason, "device lost");
    CHECK_INT(lost->revoked_at, INT64_C(1768435200) * 1000000000);
    CHECK(lost->not_after == CX_TIME_NONE && lost->compromised_since == CX_TIME_NONE);
    CHECK(lost->replaces.data == NULL && lost->added_at == CX_TIME_NONE);
    const cx_trust_key *root = cx_trust_find(&k.trust, CX_STR("wa-test-ROOT00"));
    REQUIRE(root != NULL);
    CHECK_INT(root->agent_count, 0);
    CHECK(cx_trust_find(&k.trust, CX_STR("")) == NULL);
    CHECK(cx_trust_find(&k.trust, CX_STR("wa-test-ROOT0")) == NULL);
    CHECK(cx_trust_find(&k.trust, CX_STR("zzz")) == NULL);
    kit_done(&k);
}

CX_TEST(trust_files_that_are_refused)
{
    static const struct {
        const char *text, *tag, *words;
    } cases[] = {
        {"[]", "BadTrust", "cortex-trust-1"},
        {"{\"keys\":[]}", "BadTrust", "/format"},
        {"{\"format\":\"cortex-trust-2\",\"keys\":[]}", "BadTrust", "/format"},
        {"{\"format\":\"cortex-trust-1\"}", "BadTrust", "/keys"},
        {STORE("7"), "BadTrust", "/keys/0"},
        {STORE(ONE("") "," ONE("")), "BadTrust", "twice"},
        {STORE("{\"key_id\":\"\"}"), "BadTrust", "/keys/0/key_id"},
        {STORE("{\"key_id\":\"a\",\"algorithm\":\"rsa\"}"), "BadTrust", "/keys/0/algorithm"},
        {STORE("{\"key_id\":\"a\",\"algorithm\":\"ed25519\"}"), "BadTrust", "/keys/0/public_key"},
        {STORE("{\"key_id\":\"a\",\"algorithm\":\"ed25519\",\"public_key\":\"a b\"}"), "BadTrust",
         "/keys/0/public_key"},
        /* §14.12: the length, not the encoding. */
        {STORE("{\"key_id\":\"a\",\"algorithm\":\"ed25519\",\"public_key\":\"AAAA\"}"), "KeyLength",
         "found 3 bytes, expected the 32"},
        {STORE(ONE(",\"agents\":\"x\"")), "BadTrust", "/keys/0/agents"},
        {STORE(ONE(",\"agents\":[1]")), "BadTrust", "/keys/0/agents"},
        {STORE(ONE(",\"agents\":[\"\"]")), "BadTrust", "/keys/0/agents"},
        {STORE(ONE(",\"not_before\":\"soon\"")), "BadTrust", "/keys/0/not_before"},
        {STORE(ONE(",\"revoked_at\":0")), "BadTrust", "/keys/0/revoked_at"},
        {STORE(ONE(",\"chain_profile\":\"auto\"")), "BadTrust", "/keys/0/chain_profile"},
        {STORE(ONE(",\"description\":[]")), "BadTrust", "/keys/0/description"},
        {STORE(ONE(",\"key_id\":\"a\"")), "U_DUPKEY", "again"},
    };
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_trust trust = {NULL, 77};
        CHECK_INT(cx_trust_parse(cx_str_z(cases[i].text), &k.arena, &trust, &k.err).code,
                  CX_E_FORMAT);
        CHECK(k.err.tag != NULL && strcmp(k.err.tag, cases[i].tag) == 0);
        if (strstr(k.err.message, cases[i].words) == NULL)
            cx_test_fail(__FILE__, __LINE__, "case %zu says: %s", i, k.err.message);
        CHECK_INT(trust.count, 77);
    }
    kit_done(&k);
}

/* §14.2: each spelling gives the same 32 bytes. */
CX_TEST(trust_spellings_of_a_key)
{
    static const char *const spellings[] = {"_-8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                            "_-8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                                            "/+8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                            "/+8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(spellings); i++) {
        cx_trust trust;
        cx_str text = cx_arena_printf(&k.arena,
                                      STORE("{\"key_id\":\"a\",\"algorithm\":\"ed25519\","
                                            "\"public_key\":\"%s\"}"),
                                      spellings[i]);
        CHECK_STATUS(cx_trust_parse(text, &k.arena, &trust, &k.err), &k.err);
        CHECK(trust.keys[0].key.bytes[0] == 0xFF && trust.keys[0].key.bytes[1] == 0xEF);
        CHECK_INT(trust.keys[0].key.bytes[31], 0);
    }
    kit_done(&k);
}

/* What is written is read back as the same. */
CX_TEST(trust_keys_come_back)
{
    static const char all[] = ONE(
        ",\"agents\":[\"x\",\"y\"],\"not_before\":\"2026-01-01T00:00:00Z\",\"not_after\":"
        "\"2027-01-01T00:00:00.5+01:00\",\"revoked_at\":\"2026-06-01T00:00:00Z\",\"compromised_"
        "since\":"
        "\"2026-05-01T00:00:00Z\",\"revoked_reason\":\"r\",\"replaces\":\"b\",\"chain_profile\":"
        "\"agent\",\"description\":\"d\",\"added_by\":\"me\",\"added_at\":\"2026-01-01T00:00:00Z\","
        "\"more\":1");
    static const char written[] =
        "{\"added_at\":\"2026-01-01T00:00:00.000000000Z\",\"added_by\":\"me\",\"agents\":[\"x\","
        "\"y\"],\"algorithm\":\"ed25519\",\"chain_profile\":\"agent\",\"compromised_since\":"
        "\"2026-05-01T00:00:00.000000000Z\",\"description\":\"d\",\"key_id\":\"a\",\"not_after\":"
        "\"2026-12-31T23:00:00.500000000Z\",\"not_before\":\"2026-01-01T00:00:00.000000000Z\","
        "\"public_key\":\"" KEY "\",\"replaces\":\"b\",\"revoked_at\":"
        "\"2026-06-01T00:00:00.000000000Z\",\"revoked_reason\":\"r\"}";
    static const char least[] =
        "{\"agents\":[],\"algorithm\":\"ed25519\",\"key_id\":\"a\",\"not_after\":null,"
        "\"not_before\":null,\"public_key\":\"" KEY "\",\"replaces\":null,\"revoked_at\":null}";
    static const char *const cases[][2] = {
        {all, written}, {written, written}, {ONE(""), least}, {least, least}};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_json value;
        cx_trust_key key;
        CHECK_STATUS(cx_json_parse_text(cx_str_z(cases[i][0]), &k.arena, &value, &k.err), &k.err);
        CHECK_STATUS(cx_trust_key_parse(&value, CX_STR(""), &k.arena, &key, &k.err), &k.err);
        CHECK_STATUS(cx_trust_key_json(&key, &k.arena, &value, &k.err), &k.err);
        cx_buf_clear(&k.scratch);
        CHECK_STATUS(cx_json_write(&k.scratch, &value, CX_JSON_PY_COMPACT, &k.err), &k.err);
        CHECK_STR(cx_buf_str(&k.scratch), cases[i][1]);
    }
    kit_done(&k);
}

CX_TEST(trust_copies_borrow_nothing)
{
    kit k;
    cx_arena own;
    cx_trust copy, empty = {NULL, 0};
    kit_init(&k);
    kit_load_trust(&k);
    cx_arena_init(&own, cx_alloc_default(), 0);
    CHECK_STATUS(cx_trust_copy(&k.trust, &own, &copy, &k.err), &k.err);
    kit_done(&k); /* under AddressSanitizer what is borrowed shows now */
    CHECK_INT(copy.count, 6);
    const cx_trust_key *gamma = cx_trust_find(&copy, CX_STR("agent-da8b7affbdce"));
    REQUIRE(gamma != NULL);
    CHECK_STR(gamma->replaces, "agent-44f10d325f80");
    CHECK(cx_trust_key_may_sign_for(gamma, CX_STR("44f10d325f800e1f")));
    CHECK_STATUS(cx_trust_copy(&empty, &own, &copy, NULL), &k.err);
    CHECK_INT(copy.count, 0);
    cx_arena_done(&own);
}
