/*
 * test_approval.c - envelopes, approvals and attestations (run.md §13, §22): what is signed holds,
 * and each possible defect of it is found.
 */
#include "approval/approval.h"

#include <stdlib.h>

#include "os/folder.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "json/json.h"
#include "approval/attest.h"
#include "approval/statement.h"
#include "rules/clock.h"
#include "tests/support/folder.h"
#include "tests/support/signer.h"
#include "tests/test.h"

static cx_arena arena;
static cx_err err;
static char place[FOLDER_PATH_SIZE];

static const cx_digest contract = {{1, 2, 3}}, other_contract = {{9}};

/* --- making approvals ------------------------------------------------------------------------- */

static const cx_str default_scopes[] = {CX_STR("network"), CX_STR("wide_path:src/")};

static cx_run_approval sample(void)
{
    return (cx_run_approval){.approval_id = CX_STR("appr-1"),
                             .contract_sha256 = contract,
                             .scopes = {default_scopes, 2},
                             .reason = CX_STR("the tests need it"),
                             .approver = CX_STR("alice"),
                             .issued_at = CX_STR("2026-01-01T00:00:00Z"),
                             .expires_at = CX_STR("2026-01-02T00:00:00.000001Z"),
                             .nonce = CX_STR("0123456789abcdef")};
}

static cx_bytes seal_payload(cx_bytes payload, const char *type, const test_signer *signer)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_run_dsse_write(cx_str_z(type), payload, &signer->key, test_sign,
                                   (void *)(uintptr_t)signer, &out, &err),
                 &err);
    cx_str kept = cx_arena_copy_str(&arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return cx_str_bytes(kept);
}

static cx_bytes sealed(const cx_run_approval *approval, const test_signer *signer)
{
    cx_buf payload;
    cx_buf_init(&payload, cx_alloc_default());
    CHECK_STATUS(cx_run_approval_encode(approval, &arena, &payload, &err), &err);
    cx_bytes file = seal_payload(cx_buf_bytes(&payload), CX_RUN_DSSE_APPROVAL, signer);
    cx_buf_done(&payload);
    return file;
}

/* --- a place where runs want approvals -------------------------------------------------------- */

static test_signer alice, mallory;
static cx_run_approver approver;
static cx_run_policy policy;
static cx_run_approval_context context;

static int64_t at_time(const char *text)
{
    int64_t ns = 0;
    CHECK(cx_run_time_parse(cx_str_z(text), &ns));
    return ns;
}

static void begin(const char *name)
{
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(place, name);
    CHECK_STATUS(cx_path_make_folders(place, &err), &err);
    test_signer_make(&alice, 1);
    test_signer_make(&mallory, 2);
    approver = (cx_run_approver){.name = CX_STR("alice")};
    memcpy(approver.key, alice.key.bytes, sizeof approver.key);
    memset(&policy, 0, sizeof policy);
    policy.approvers = &approver;
    policy.approver_count = 1;
    context = (cx_run_approval_context){.io = cx_io_system(),
                                        .runtime_root = place,
                                        .policy = &policy,
                                        .run_id = CX_STR("run_1"),
                                        .contract_sha256 = contract,
                                        .agent_id = CX_STR("agent-1"),
                                        .now_ns = at_time("2026-01-01T12:00:00Z")};
}

static void end(void)
{
    folder_remove(place);
    cx_arena_done(&arena);
}

/* The reason why a file is refused, "" when it is taken. */
static cx_str add(cx_run_approvals *set, cx_bytes file)
{
    size_t before = set->refused.list.count;
    CHECK_STATUS(cx_run_approvals_add(set, CX_STR("file"), file, &err), &err);
    return set->refused.list.count == before ? CX_STR("") : set->refused.list.items[before].message;
}

static cx_str add_once(cx_bytes file)
{
    cx_run_approvals set;
    cx_run_approvals_init(&set, &context, &arena);
    cx_str why = add(&set, file);
    CHECK((set.list.count == 1) == (why.size == 0));
    cx_run_approvals_done(&set);
    return why;
}

static void check_why(int line, cx_bytes file, const char *expected)
{
    cx_str why = add_once(file);
    if (why.size == 0 || memmem(why.data, why.size, expected, strlen(expected)) == NULL)
        cx_test_fail(__FILE__, line, "found '%.*s', expected '%s'", (int)why.size, why.data,
                     expected);
}
#define CHECK_WHY(file, expected) check_why(__LINE__, file, expected)

/* approval.h A2 */
CX_TEST(approval_signed_is_used_once)
{
    cx_run_approvals set, again;
    const cx_run_approval *used = NULL, *more = NULL;
    begin("approval-once");
    const cx_run_approval approval = sample();
    cx_bytes file = sealed(&approval, &alice);
    cx_run_approvals_init(&set, &context, &arena);
    CHECK_STR(add(&set, file), "");
    CHECK_STR(add(&set, file), ""); /* looking at a folder again adds nothing */
    CHECK_INT(set.list.count, 1);
    CHECK(cx_run_approvals_find(&set, CX_STR("sampling")) == NULL);
    CHECK(cx_run_approvals_find(&set, CX_STR("wide_path:src")) == NULL);
    CHECK(cx_run_approvals_find(&set, CX_STR("wide_path:src/")) != NULL);
    CHECK_STATUS(cx_run_approvals_use(&set, CX_STR("sampling"), &used, &err), &err);
    CHECK(used == NULL);
    /* Two runs have looked; the first one that uses it has it. */
    cx_run_approvals_init(&again, &context, &arena);
    CHECK_STR(add(&again, file), "");
    CHECK_STATUS(cx_run_approvals_use(&set, CX_STR("network"), &used, &err), &err);
    REQUIRE(used != NULL);
    CHECK_STR(used->approval_id, "appr-1");
    CHECK_STR(used->signer, "alice");
    CHECK(used->used);
    /* Other scopes of it belong to the same use, also when it has expired since. */
    context.now_ns = at_time("2026-02-01T00:00:00Z");
    CHECK_STATUS(cx_run_approvals_use(&set, CX_STR("wide_path:src/"), &more, &err), &err);
    CHECK(more == used);
    context.now_ns = at_time("2026-01-01T12:00:00Z");
    CHECK(!cx_run_approvals_approve(&again, CX_STR("network")));
    CHECK_INT(again.list.count, 0);
    CHECK_INT(again.refused.refusing, 1);
    CHECK_WHY(file, "used before");
    cx_run_approvals_done(&set);
    cx_run_approvals_done(&again);
    end();
}

/* approval.h A3 */
CX_TEST(approval_refusals)
{
    static const cx_digest zero = {{0}};
    begin("approval-refusals");
    cx_run_approval a = sample();
    cx_bytes good = sealed(&a, &alice);
    CHECK_STR(add_once(good), "");
    CHECK_WHY(sealed(&a, &mallory), "no approver");
    CHECK_WHY(cx_str_bytes(CX_STR("{}")), "not an envelope");
    CHECK_WHY(cx_str_bytes(CX_STR("{\"event_type\":\"HUMAN_APPROVAL_COMPLETED\"}")),
              "not an envelope");
    a.contract_sha256 = other_contract;
    CHECK_WHY(sealed(&a, &alice), "another contract");
    a.contract_sha256 = zero;
    CHECK_WHY(sealed(&a, &alice), "another contract");
    a = sample();
    a.run_id = CX_STR("run_2");
    CHECK_WHY(sealed(&a, &alice), "another run");
    a.run_id = CX_STR("run_1");
    CHECK_STR(add_once(sealed(&a, &alice)), "");
    a = sample();
    a.approver = CX_STR("bob");
    CHECK_WHY(sealed(&a, &alice), "not the one whose key signed");
    a = sample();
    context.agent_id = CX_STR("alice");
    CHECK_WHY(sealed(&a, &alice), "is the agent");
    context.agent_id = CX_STR("agent-1");
    context.now_ns = at_time("2026-01-02T00:00:00.000001Z");
    CHECK_WHY(good, "expired");
    context.now_ns = at_time("2026-01-02T00:00:00Z");
    CHECK_STR(add_once(good), "");
    context.now_ns = at_time("2025-12-31T23:54:59Z");
    CHECK_WHY(good, "in the future");
    context.now_ns = at_time("2025-12-31T23:55:01Z");
    CHECK_STR(add_once(good), "");
    context.now_ns = at_time("2026-01-01T12:00:00Z");
    policy.approvers_fault = CX_STR("the digest differs");
    policy.approver_count = 0;
    CHECK_WHY(good, "pinned");
    context.policy = NULL;
    CHECK_WHY(good, "no approver");
    end();
}

CX_TEST(approval_of_the_contract_as_run)
{
    begin("approval-resolved");
    cx_run_approval a = sample();
    a.contract_sha256 = other_contract;
    context.resolved_sha256 = other_contract;
    CHECK_STR(add_once(sealed(&a, &alice)), "");
    end();
}

/* Each byte of an envelope, changed: it is never taken for what was signed. */
/* approval.h A1 */
CX_TEST(approval_tampered)
{
    begin("approval-tampered");
    const cx_run_approval a = sample();
    cx_bytes good = sealed(&a, &alice);
    char *text = cx_arena_push(&arena, good.size, 1);
    for (size_t i = 0; i < good.size; i++) {
        memcpy(text, good.data, good.size);
        text[i] = (char)(text[i] ^ 1);
        cx_str why = add_once(cx_str_bytes(cx_str_from(text, good.size)));
        /* White space between tokens is no part of the envelope. */
        if (why.size == 0 && good.data[i] != ' ' && good.data[i] != '\n')
            cx_test_fail(__FILE__, __LINE__, "byte %zu '%c' may be changed", i, good.data[i]);
    }
    end();
}

/* A payload signed by the right key, but not an approval. */
CX_TEST(approval_shape)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"\"v1\"", "\"v2\""},
        {"\"appr-1\"", "\"../x\""},
        {"\"appr-1\"", "\"a..b\""},
        {"\"appr-1\"", "\"\""},
        {"\"run_id\":null", "\"run_id\":7"},
        {"\"run_id\":null", "\"run_id\":\"/\""},
        {"\"scopes\":[\"network\",\"wide_path:src/\"]", "\"scopes\":[]"},
        {"\"network\"", "\"everything\""},
        {"\"network\"", "\"network:x\""},
        {"\"network\"", "7"},
        {"wide_path:src/", "wide_path:"},
        {"wide_path:src/", "wide_path"},
        {"\"the tests need it\"", "\"  \""},
        {"\"the tests need it\"", "\"a\\nb\""},
        {"\"alice\"", "\"\""},
        {"2026-01-01T00:00:00Z", "2026-13-01T00:00:00Z"},
        {"2026-01-02T00:00:00.000001Z", "2026-01-01T00:00:00Z"},
        {"\"0123456789abcdef\"", "\"short\""},
        {"\"version\"", "\"more\":1,\"version\""},
        {"\"contract_sha256\":\"01", "\"contract_sha256\":\"g1"},
        {"\"reason\"", "\"why\""},
    };
    cx_buf payload, changed;
    begin("approval-shape");
    cx_run_approval a = sample(), out;
    cx_buf_init(&payload, cx_alloc_default());
    cx_buf_init(&changed, cx_alloc_default());
    CHECK_STATUS(cx_run_approval_encode(&a, &arena, &payload, &err), &err);
    CHECK_STATUS(cx_run_approval_decode(cx_buf_bytes(&payload), &arena, &out, &err), &err);
    CHECK_STR(out.nonce, "0123456789abcdef");
    CHECK_INT(out.scopes.count, 2);
    CHECK(cx_digest_eq(&out.contract_sha256, &contract) && out.run_id.data == NULL);
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        const char *found =
            memmem(payload.data, payload.size, changes[i].from, strlen(changes[i].from));
        REQUIRE(found != NULL);
        size_t before = (size_t)(found - (const char *)payload.data);
        cx_buf_clear(&changed);
        cx_buf_add(&changed, payload.data, before);
        cx_buf_add_z(&changed, changes[i].to);
        before += strlen(changes[i].from);
        cx_buf_add(&changed, payload.data + before, payload.size - before);
        cx_bytes file = seal_payload(cx_buf_bytes(&changed), CX_RUN_DSSE_APPROVAL, &alice);
        cx_str why = add_once(file);
        if (why.size == 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' is taken", changes[i].to);
        CHECK(cx_run_approval_decode(cx_buf_bytes(&changed), &arena, &out, &err).code ==
              CX_E_FORMAT);
    }
    /* What is signed for something else is no approval. */
    CHECK_WHY(seal_payload(cx_buf_bytes(&payload), CX_RUN_DSSE_ATTESTATION, &alice),
              "not an envelope of an approval");
    cx_buf_done(&payload);
    cx_buf_done(&changed);
    end();
}

CX_TEST(approval_scopes)
{
    static const struct {
        const char *scope;
        bool valid;
    } rows[] = {
        {"network", true},
        {"sampling", true},
        {"sandbox_degraded", true},
        {"script:scripts/x", true},
        {"unlock:src/", true},
        {"override_file:AGENTS.override.md", true},
        {"permission:filesystem=danger-full-access", true},
        {"permission:mcp_tools=search", true},
        {"permission:filesystem=", false},
        {"permission:root=yes", false},
        {"permission:", false},
        {"script", false},
        {"script:", false},
        {" network", false},
        {"NETWORK", false},
        {"", false},
        {":x", false},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        if (cx_run_scope_valid(cx_str_z(rows[i].scope)) != rows[i].valid)
            cx_test_fail(__FILE__, __LINE__, "'%s'", rows[i].scope);
    }
}

static void put_file(const char *name, cx_bytes bytes)
{
    cx_str path = cx_arena_printf(&arena, "%s/approvals/%s", place, name);
    CHECK_STATUS(cx_io_replace_private_file(cx_io_system(), path.data, bytes, &err), &err);
}

CX_TEST(approval_folder)
{
    cx_run_approvals set;
    begin("approval-folder");
    cx_run_approvals_init(&set, &context, &arena);
    CHECK_STATUS(cx_run_approvals_add_folder(&set, &err), &err); /* there is none yet */
    CHECK_INT(set.list.count, 0);
    CHECK_STATUS(
        cx_path_make_folders(cx_arena_printf(&arena, "%s/approvals/used", place).data, &err), &err);
    cx_run_approval a = sample();
    put_file("b.json", sealed(&a, &alice));
    a.approval_id = CX_STR("appr-0");
    a.nonce = CX_STR("another-nonce-0123");
    put_file("a.json", sealed(&a, &alice));
    a.approval_id = CX_STR("appr-2");
    put_file("c.json", sealed(&a, &alice)); /* the nonce of a.json */
    a.contract_sha256 = other_contract;
    put_file("d.json", sealed(&a, &alice)); /* for another subject: passed over */
    put_file("e.json", cx_str_bytes(CX_STR("x")));
    put_file(".f.json", cx_str_bytes(CX_STR("x")));
    put_file("g.txt", cx_str_bytes(CX_STR("x")));
    CHECK_STATUS(cx_run_approvals_add_folder(&set, &err), &err);
    REQUIRE(set.list.count == 2);
    CHECK_STR(set.list.items[0].approval_id, "appr-0");
    CHECK_STR(set.list.items[1].approval_id, "appr-1");
    CHECK_INT(set.refused.refusing, 2); /* c.json, e.json */
    CHECK(cx_run_approvals_add_file(&set, "/nowhere/x", &err).code == CX_E_NOT_FOUND);
    cx_run_approvals_done(&set);
    end();
}

static cx_status no_journal(void *arg, const cx_run_approval *approval, bool *first, cx_err *why)
{
    (void)approval;
    (void)first;
    ++*(int *)arg;
    return cx_fail(why, CX_E_IO, "the journal is full");
}

static cx_status knows_it(void *arg, const cx_run_approval *approval, bool *first, cx_err *why)
{
    (void)approval;
    (void)why;
    ++*(int *)arg;
    *first = false;
    return CX_SUCCESS;
}

/* The folder of used nonces was restored, or is another runtime root's. */
CX_TEST(approval_that_the_journal_knows_allows_nothing)
{
    cx_run_approvals set;
    int asked = 0;
    begin("approval-known");
    const cx_run_approval a = sample();
    context.record = knows_it;
    context.record_arg = &asked;
    cx_run_approvals_init(&set, &context, &arena);
    CHECK_STR(add(&set, sealed(&a, &alice)), "");
    CHECK(!cx_run_approvals_approve(&set, CX_STR("network")));
    CHECK_INT(asked, 1);
    CHECK_INT(set.list.count, 0);
    cx_run_approvals_done(&set);
    end();
}

/* approval.h A2 */
CX_TEST(approval_without_a_journal_allows_nothing)
{
    cx_run_approvals set;
    int asked = 0;
    begin("approval-journal");
    const cx_run_approval a = sample();
    context.record = no_journal;
    context.record_arg = &asked;
    cx_run_approvals_init(&set, &context, &arena);
    CHECK_STR(add(&set, sealed(&a, &alice)), "");
    CHECK(!cx_run_approvals_approve(&set, CX_STR("network")));
    CHECK_INT(asked, 1);
    /* Nor later: its nonce is used. */
    context.record = NULL;
    CHECK(!cx_run_approvals_approve(&set, CX_STR("network")));
    CHECK_INT(set.refused.refusing, 2);
    cx_run_approvals_done(&set);
    end();
}

CX_TEST(approval_wanted)
{
    static const cx_str scopes[] = {CX_STR("wide_path:a/"), CX_STR("wide_path:b/"),
                                    CX_STR("network")};
    cx_json json;
    begin("approval-wanted");
    CHECK_STATUS(
        cx_run_approval_wanted_json((cx_str_list){scopes, 3}, &contract, 7, &arena, &json, &err),
        &err);
    const cx_json *reason = CX_JSON_GET(&json, "reason");
    REQUIRE(reason != NULL && reason->count == 2);
    CHECK_STR(cx_json_text(&reason->items[0]), "wide_path");
    CHECK_INT(CX_JSON_GET(&json, "scopes")->count, 3);
    CHECK_STR(cx_json_text(CX_JSON_GET(&json, "timeout_sec")), "7");
    end();
}

CX_TEST(approval_times)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1 = no time */
        int64_t ns;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"2026-01-01T00:00:00.000001Z", 1767225600, 1000},
        {"2024-02-29t12:00:00.5z", 1709208000, 500000000},
        {"2026-01-01T01:00:00+01:00", 1767225600, 0},
        {"2025-12-31T22:30:00-01:30", 1767225600, 0},
        {"2026-02-29T00:00:00Z", -1, 0},
        {"2026-01-01T24:00:00Z", -1, 0},
        {"2026-01-01T00:00:60Z", -1, 0},
        {"2026-01-01T00:00:00", -1, 0},
        {"2026-01-01 00:00:00Z", -1, 0},
        {"2026-01-01T00:00:00.Z", -1, 0},
        {"2026-01-01T00:00:00.1234567890Z", -1, 0},
        {"2026-01-01T00:00:00Zx", -1, 0},
        {"1969-12-31T23:59:59Z", -1, 0},
        {"2026-1-01T00:00:00Z", -1, 0},
        {"2026-01-01T00:00:00+24:00", -1, 0},
        {"", -1, 0},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        int64_t ns = -1;
        bool good = cx_run_time_parse(cx_str_z(rows[i].text), &ns);
        if (good != (rows[i].seconds >= 0) ||
            (good && ns != rows[i].seconds * 1000000000 + rows[i].ns))
            cx_test_fail(__FILE__, __LINE__, "'%s' is %lld", rows[i].text, (long long)ns);
    }
}

/* --- envelopes -------------------------------------------------------------------------------- */

/* dsse.h D1 */
CX_TEST(dsse_encoding_is_the_published_one)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_run_dsse_pae(CX_STR("http://example.com/HelloWorld"), cx_str_bytes(CX_STR("hello world")),
                    &out);
    CHECK_STR(cx_buf_str(&out), "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    cx_buf_done(&out);
}

/* dsse.h D2 */
CX_TEST(dsse_refusals)
{
#define KEYID "0000000000000000000000000000000000000000000000000000000000000000"
#define SIG \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
#define SIGNATURE "{\"keyid\":\"" KEYID "\",\"sig\":\"" SIG "\"}"
    static const struct {
        const char *text;
        cx_code code;
    } rows[] = {
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[" SIGNATURE "]}", CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[" SIGNATURE "]}", CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ\",\"signatures\":[" SIGNATURE "]}", CX_E_FORMAT},
        {"{\"payloadType\":\"t\",\"payload\":\"YR==\",\"signatures\":[" SIGNATURE "]}",
         CX_E_FORMAT},
        {"{\"payloadType\":\"t\",\"payload\":\"Y_==\",\"signatures\":[" SIGNATURE "]}",
         CX_E_FORMAT},
        {"{\"payloadType\":\"t\",\"payload\":\" YQ==\",\"signatures\":[" SIGNATURE "]}",
         CX_E_FORMAT},
        {"{\"payloadType\":1,\"payload\":\"YQ==\",\"signatures\":[" SIGNATURE "]}", CX_E_FORMAT},
        {"{\"payload\":\"YQ==\",\"signatures\":[" SIGNATURE "]}", CX_E_FORMAT},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[]}", CX_E_FORMAT},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":{}}", CX_E_FORMAT},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[" SIGNATURE ",1]}",
         CX_E_FORMAT},
        /* What others add is read over (D2), what they sign in other ways is listed (D3). */
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[" SIGNATURE "],\"x\":1}",
         CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[" SIGNATURE "," SIGNATURE
         "]}",
         CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[{\"sig\":\"" SIG
         "\",\"cert\":\"c\"}]}",
         CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[{\"keyid\":\"" KEYID
         "\",\"sig\":\"YQ==\"}]}",
         CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[{}]}", CX_OK},
        {"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"payload\":\"YQ==\",\"signatures\":"
         "[" SIGNATURE "]}",
         CX_E_FORMAT},
        {"[]", CX_E_FORMAT},
        {"", CX_E_MORE},
    };
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_run_dsse envelope;
        cx_status status = cx_run_dsse_read(cx_str_z(rows[i].text), &arena, &envelope, &err);
        if (status.code != rows[i].code)
            cx_test_fail(__FILE__, __LINE__, "row %zu is %d", i, (int)status.code);
    }
    cx_arena_done(&arena);
}

/* The envelope with the signatures of others put before and after its own. */
static cx_str with_signatures(cx_str text, const char *before, const char *after)
{
    const char *list = memmem(text.data, text.size, "[", 1);
    const char *end =
        list == NULL ? NULL : memmem(list, (size_t)(text.data + text.size - list), "]", 1);
    CHECK(end != NULL);
    if (end == NULL)
        return text;
    return cx_arena_printf(&arena, "%.*s%s%.*s%s%s", (int)(list + 1 - text.data), text.data, before,
                           (int)(end - list - 1), list + 1, after, end);
}

/* D3: ours counts next to signatures of any other kind, and each is listed. */
CX_TEST(dsse_next_to_others)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        {"", ""},
        {"{\"sig\":\"" SIG "\"},", ""},
        {"", ",{\"keyid\":\"\",\"sig\":\"" SIG "\"}"},
        {"{\"keyid\":\"SHA256:abc\",\"sig\":\"" SIG "\",\"cert\":{\"a\":[1]}},", ""},
        {"", ",{\"keyid\":7,\"sig\":\"MEUCIQ_-\"},{\"sig\":3},{}"},
        {SIGNATURE "," SIGNATURE ",", "," SIGNATURE},
    };
    begin("dsse-others");
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_run_dsse envelope;
        bool good = false, other = true;
        cx_bytes file = seal_payload(cx_str_bytes(CX_STR("x")), "t", &alice);
        cx_str text = with_signatures(cx_bytes_str(file), rows[i].before, rows[i].after);
        CHECK_STATUS(cx_run_dsse_read(text, &arena, &envelope, &err), &err);
        CHECK_STATUS(cx_run_dsse_verify(&envelope, &alice.key, cx_alloc_default(), &good, &err),
                     &err);
        CHECK_STATUS(cx_run_dsse_verify(&envelope, &mallory.key, cx_alloc_default(), &other, &err),
                     &err);
        CHECK(good && !other);
        size_t unusable = 0;
        for (size_t k = 0; k < envelope.signature_count; k++)
            unusable += envelope.signatures[k].unusable != NULL;
        CHECK_INT(unusable, i == 4 ? 3 : 0);
    }
    end();
}

/* The keyid is a hint: with none, or one in another form, the signature is as good. */
CX_TEST(dsse_keyid_is_a_hint)
{
    begin("dsse-hint");
    cx_bytes file = seal_payload(cx_str_bytes(CX_STR("x")), "t", &alice);
    cx_str text = cx_bytes_str(file);
    const char *keyid = memmem(text.data, text.size, "\"keyid\": \"", 10);
    REQUIRE(keyid != NULL);
    size_t at = (size_t)(keyid - text.data) + 10;
    const char *const others[] = {"", "ci@example.org", KEYID};
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        cx_run_dsse envelope;
        bool good = false;
        cx_str changed =
            cx_arena_printf(&arena, "%.*s%s%s", (int)at, text.data, others[i], text.data + at + 64);
        CHECK_STATUS(cx_run_dsse_read(changed, &arena, &envelope, &err), &err);
        CHECK_STATUS(cx_run_dsse_verify(&envelope, &alice.key, cx_alloc_default(), &good, &err),
                     &err);
        CHECK(good);
    }
    end();
}

CX_TEST(dsse_signer_that_lies)
{
    cx_buf out;
    begin("dsse-signer");
    cx_buf_init(&out, cx_alloc_default());
    CHECK(cx_run_dsse_write(CX_STR("t"), cx_str_bytes(CX_STR("x")), &alice.key, test_sign, &mallory,
                            &out, &err)
              .code == CX_E_DENIED);
    cx_buf_done(&out);
    end();
}

/* --- attestations ----------------------------------------------------------------------------- */

static const char *const scenarios[] = {"success",  "out_of_scope", "tests_fail",
                                        "fix_loop", "tool_gate",    "wide_path"};

static cx_str read_text(const char *path)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, 1 << 24, &bytes, &err), &err);
    cx_str kept = cx_arena_copy_str(&arena, cx_buf_str(&bytes));
    cx_buf_done(&bytes);
    return kept;
}

/* The six published envelopes: the same payload byte for byte, and each holds. */
CX_TEST(attest_golden)
{
    test_signer golden;
    begin("attest-golden");
    for (size_t i = 0; i < sizeof golden.seed; i++)
        golden.seed[i] = (uint8_t)i;
    test_signer_from_seed(&golden);
    for (size_t i = 0; i < CX_COUNT_OF(scenarios); i++) {
        cx_run_bundle *bundle = NULL;
        cx_run_attest_verdict verdict;
        cx_run_dsse envelope;
        cx_json statement;
        cx_buf payload;
        cx_str folder = cx_arena_printf(&arena, "vectors/run/golden/%s/bundle", scenarios[i]);
        cx_str file =
            cx_arena_printf(&arena, "vectors/run/golden/%s/attestation.dsse.json", scenarios[i]);
        cx_str text = read_text(cx_test_path(file.data));
        CHECK_STATUS(cx_run_bundle_open(cx_io_system(), cx_alloc_default(),
                                        cx_test_path(folder.data), &bundle, &err),
                     &err);
        REQUIRE(bundle != NULL);
        CHECK_STATUS(
            cx_run_attest_check(text, bundle, &golden.key, 1, NULL, &arena, &verdict, &err), &err);
        if (!verdict.holds)
            cx_test_fail(__FILE__, __LINE__, "%s: %s %.*s", scenarios[i], verdict.reason,
                         (int)verdict.where.size, verdict.where.data);
        cx_buf_init(&payload, cx_alloc_default());
        CHECK_STATUS(cx_run_attest_read(bundle, NULL, &arena, &statement, &err), &err);
        CHECK_STATUS(cx_run_attest_payload(&statement, &payload, &err), &err);
        CHECK_STATUS(cx_run_dsse_read(text, &arena, &envelope, &err), &err);
        CHECK(cx_str_eq(cx_buf_str(&payload), cx_bytes_str(envelope.payload)));
        /* Signed by us: the same file. */
        cx_bytes again = seal_payload(cx_buf_bytes(&payload), CX_RUN_DSSE_ATTESTATION, &golden);
        CHECK(cx_str_eq(cx_bytes_str(again), text));
        cx_buf_done(&payload);
        cx_run_bundle_close(bundle);
    }
    end();
}

/* A statement changed somewhere and signed again by the right key is found at that place. */
static cx_run_attest_verdict check_changed(cx_run_bundle *bundle, cx_str payload, const char *from,
                                           const char *to, const test_signer *signer)
{
    cx_run_attest_verdict verdict = {0};
    cx_buf changed;
    const char *found = memmem(payload.data, payload.size, from, strlen(from));
    CHECK(found != NULL);
    if (found == NULL)
        return verdict;
    size_t before = (size_t)(found - payload.data), after = before + strlen(from);
    cx_buf_init(&changed, cx_alloc_default());
    cx_buf_add(&changed, payload.data, before);
    cx_buf_add_z(&changed, to);
    cx_buf_add(&changed, payload.data + after, payload.size - after);
    cx_bytes file = seal_payload(cx_buf_bytes(&changed), CX_RUN_DSSE_ATTESTATION, signer);
    CHECK_STATUS(cx_run_attest_check(cx_bytes_str(file), bundle, &signer->key, 1, NULL, &arena,
                                     &verdict, &err),
                 &err);
    cx_buf_done(&changed);
    return verdict;
}

CX_TEST(attest_fields)
{
    static const struct {
        const char *from, *to, *reason, *where;
    } rows[] = {
        {"\"SUCCESS\"", "\"FAILURE\"", "field_mismatch", "/predicate/status"},
        {"\"tests_gate\":true", "\"tests_gate\":false", "field_mismatch",
         "/predicate/gates/tests_gate"},
        {"\"commands\":1", "\"commands\":2", "field_mismatch", "/predicate/tests/commands"},
        {"\"count\":36", "\"count\":35", "field_mismatch", "/predicate/events/count"},
        {"\"full\"", "\"none\"", "field_mismatch", "/predicate/sandbox"},
        {"\"approvals\":[]", "\"approvals\":[1]", "field_mismatch", "/predicate/approvals/0"},
        {"\"approvals\":[],", "", "field_mismatch", "/predicate/approvals"},
        {"\"_type\"", "\"Type\":1,\"_type\"", "field_mismatch", "/Type"},
        {"\"ledger\":null", "\"ledger\":1", "field_mismatch", "/predicate/ledger"},
        {"golden_success", "golden_x", "field_mismatch", "/predicate/task_id"},
        {"{\"_type\"", "{ \"_type\"", "payload_not_canonical", ""},
        {"}]}", "}", "envelope_invalid", ""},
    };
    cx_run_bundle *bundle = NULL;
    cx_json statement;
    cx_buf payload;
    begin("attest-fields");
    CHECK_STATUS(cx_run_bundle_open(cx_io_system(), cx_alloc_default(),
                                    cx_test_path("vectors/run/golden/success/bundle"), &bundle,
                                    &err),
                 &err);
    REQUIRE(bundle != NULL);
    cx_buf_init(&payload, cx_alloc_default());
    CHECK_STATUS(cx_run_attest_read(bundle, NULL, &arena, &statement, &err), &err);
    CHECK_STATUS(cx_run_attest_payload(&statement, &payload, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_run_attest_verdict verdict =
            check_changed(bundle, cx_buf_str(&payload), rows[i].from, rows[i].to, &alice);
        CHECK(!verdict.holds);
        CHECK_STR(cx_str_z(verdict.reason == NULL ? "" : verdict.reason), rows[i].reason);
        CHECK_STR(verdict.where, rows[i].where);
    }
    /* A place in a ledger that cannot be looked up here is not compared, only its shape. */
    cx_run_attest_verdict verdict = check_changed(
        bundle, cx_buf_str(&payload), "\"ledger\":null",
        "\"ledger\":{\"index\":3,\"origin\":\"x\",\"root\":\"" KEYID "\",\"size\":4}", &alice);
    CHECK(verdict.holds);
    const cx_run_attest_ledger ledger = {CX_STR("x"), 3, 4, {{0}}};
    cx_json with_ledger;
    CHECK_STATUS(cx_run_attest_read(bundle, &ledger, &arena, &with_ledger, &err), &err);
    cx_buf_clear(&payload);
    CHECK_STATUS(cx_run_attest_payload(&with_ledger, &payload, &err), &err);
    cx_bytes file = seal_payload(cx_buf_bytes(&payload), CX_RUN_DSSE_ATTESTATION, &alice);
    cx_str text = cx_bytes_str(file);
    const cx_run_attest_ledger other = {CX_STR("x"), 2, 4, {{0}}};
    CHECK_STATUS(cx_run_attest_check(text, bundle, &alice.key, 1, &ledger, &arena, &verdict, &err),
                 &err);
    CHECK(verdict.holds);
    CHECK_STATUS(cx_run_attest_check(text, bundle, &alice.key, 1, &other, &arena, &verdict, &err),
                 &err);
    CHECK_STR(verdict.where, "/predicate/ledger/index");
    /* Keys. */
    CHECK_STATUS(cx_run_attest_check(text, bundle, &mallory.key, 1, NULL, &arena, &verdict, &err),
                 &err);
    CHECK_STR(cx_str_z(verdict.reason), "key_unknown");
    CHECK_STATUS(cx_run_attest_check(text, bundle, NULL, 0, NULL, &arena, &verdict, &err), &err);
    CHECK_STR(cx_str_z(verdict.reason), "key_unknown");
    CHECK_STATUS(cx_run_attest_check(cx_bytes_str(seal_payload(cx_buf_bytes(&payload),
                                                               CX_RUN_DSSE_APPROVAL, &alice)),
                                     bundle, &alice.key, 1, NULL, &arena, &verdict, &err),
                 &err);
    CHECK_STR(cx_str_z(verdict.reason), "payload_type");
    CHECK_STATUS(
        cx_run_attest_check(CX_STR("{}"), bundle, &alice.key, 1, NULL, &arena, &verdict, &err),
        &err);
    CHECK_STR(cx_str_z(verdict.reason), "envelope_invalid");
    cx_buf_done(&payload);
    cx_run_bundle_close(bundle);
    end();
}

/* --- statements about files ------------------------------------------------------------------- */

static cx_status write_statement(const cx_approval_subject *files, size_t count, cx_str type,
                                 const char *predicate, cx_buf *out)
{
    cx_json value;
    CHECK_STATUS(cx_json_parse_text(cx_str_z(predicate), &arena, &value, &err), &err);
    return cx_approval_statement_write(files, count, type, &value, &arena, out, &err);
}

CX_TEST(statement_of_files)
{
    const cx_approval_subject files[] = {{CX_STR("a.tar"), {{1}}}, {CX_STR("b \xc3\xbc"), {{2}}}};
    cx_run_attest_verdict verdict;
    cx_buf payload;
    begin("statement-files");
    cx_buf_init(&payload, cx_alloc_default());
    CHECK_STATUS(write_statement(files, 2, CX_STR("urn:a:b"), "{\"z\":1,\"b\":[]}", &payload),
                 &err);
    CHECK_STR(
        cx_buf_str(&payload),
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{\"b\":[],\"z\":1},"
        "\"predicateType\":\"urn:a:b\",\"subject\":[{\"digest\":{\"sha256\":\"01000000000000000"
        "00000000000000000000000000000000000000000000000\"},\"name\":\"a.tar\"},{\"digest\":{"
        "\"sha256\":\"0200000000000000000000000000000000000000000000000000000000000000\"},\"name\""
        ":\"b \xc3\xbc\"}]}");
    cx_str text =
        cx_bytes_str(seal_payload(cx_buf_bytes(&payload), CX_RUN_DSSE_ATTESTATION, &alice));
    /* Any of the files, in any order; with no key nothing holds. */
    for (size_t i = 0; i < 2; i++) {
        CHECK_STATUS(cx_approval_statement_check(text, &files[i], 1, CX_STR("urn:a:b"), &alice.key,
                                                 1, &arena, &verdict, &err),
                     &err);
        CHECK(verdict.holds && verdict.signature_count == 1);
    }
    CHECK_STATUS(
        cx_approval_statement_check(text, files, 2, CX_STR(""), NULL, 0, &arena, &verdict, &err),
        &err);
    CHECK(!verdict.holds);
    CHECK_STR(cx_str_z(verdict.reason), "key_unknown");
    /* The digest of one under the name of the other. */
    const cx_approval_subject swapped = {CX_STR("a.tar"), {{2}}};
    CHECK_STATUS(cx_approval_statement_check(text, &swapped, 1, CX_STR(""), &alice.key, 1, &arena,
                                             &verdict, &err),
                 &err);
    CHECK(!verdict.holds);
    CHECK_STR(cx_str_z(verdict.reason), "subject_differs");
    CHECK_STR(verdict.where, "a.tar");
    cx_buf_done(&payload);
    end();
}

CX_TEST(statement_limits)
{
    static char long_name[CX_APPROVAL_NAME_MAX + 1], long_type[1200];
    const cx_approval_subject good = {CX_STR("a"), {{1}}};
    const cx_approval_subject twice[] = {good, good};
    const cx_approval_subject bad[] = {{CX_STR(""), {{1}}},
                                       {CX_STR("\xff"), {{1}}},
                                       {cx_str_from(long_name, sizeof long_name), {{1}}}};
    const cx_str types[] = {CX_STR(""),   CX_STR("x"),    CX_STR(":x"),
                            CX_STR("x:"), CX_STR("x:\n"), cx_str_from(long_type, sizeof long_type)};
    cx_buf payload;
    begin("statement-limits");
    cx_buf_init(&payload, cx_alloc_default());
    memset(long_name, 'n', sizeof long_name);
    memset(long_type, ':', sizeof long_type);
    CHECK(write_statement(&good, 0, CX_STR("a:b"), "{}", &payload).code == CX_E_USAGE);
    CHECK(
        write_statement(&good, CX_APPROVAL_SUBJECTS_MAX + 1, CX_STR("a:b"), "{}", &payload).code ==
        CX_E_USAGE);
    CHECK(write_statement(twice, 2, CX_STR("a:b"), "{}", &payload).code == CX_E_USAGE);
    CHECK(write_statement(&good, 1, CX_STR("a:b"), "[]", &payload).code == CX_E_USAGE);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(write_statement(&bad[i], 1, CX_STR("a:b"), "{}", &payload).code == CX_E_USAGE);
    for (size_t i = 0; i < CX_COUNT_OF(types); i++)
        CHECK(write_statement(&good, 1, types[i], "{}", &payload).code == CX_E_USAGE);
    CHECK(payload.size == 0);
    const cx_approval_subject longest = {cx_str_from(long_name, CX_APPROVAL_NAME_MAX), {{1}}};
    CHECK_STATUS(write_statement(&longest, 1, CX_STR("a:b"), "{}", &payload), &err);
    cx_buf_done(&payload);
    end();
}
