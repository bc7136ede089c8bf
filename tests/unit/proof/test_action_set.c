/*
 * test_action_set.c - names, sets and proofs of absence: the vectors of make_actions.py, every bit
 * of a proof, other sets and other journals, every allocation.
 */
#include "proof/action_set.h"

#include "proof/check.h"
#include "tests/support/fault.h"
#include "tests/support/proof_util.h"

#define VECTORS "vectors/ledger/cortex-1/actions.json"

static const cx_check_options anyone = {.require = CX_REQUIRE_SELF_CONSISTENT};

static cx_check_result checked(vectors *v, cx_bytes bytes, const cx_check_options *options)
{
    cx_check_result result;
    cx_err err;
    memset(&result, 0, sizeof result);
    CHECK_STATUS(cx_check_run(bytes, options, &v->arena, &result, &err), &err);
    return result;
}

/* --- names ------------------------------------------------------------------------------------ */

typedef cx_status normal_form(cx_str text, cx_buf *out, cx_err *err);

static void check_normals(const cx_json *cases, normal_form *normal)
{
    for (uint32_t i = 0; i < cases->count; i++) {
        cx_str given = CX_JSON_GET_STR(&cases->items[i], "given");
        const cx_json *expected = CX_JSON_GET(&cases->items[i], "normal");
        cx_buf out;
        cx_err err;
        cx_buf_init(&out, cx_alloc_default());
        cx_buf_add_z(&out, "before");
        cx_status status = normal(given, &out, &err);
        cx_str made = cx_str_from((const char *)out.data + 6, out.size - 6);
        if (expected->type == CX_JSON_NULL) {
            CHECK_INT(status.code, CX_E_USAGE);
            CHECK_INT(out.size, 6);
        } else if (cx_failed(status) || !cx_str_eq(made, cx_json_text(expected))) {
            cx_test_fail(__FILE__, __LINE__, "'%.*s' became '%.*s'", (int)given.size, given.data,
                         (int)made.size, made.data);
        }
        cx_buf_done(&out);
    }
}

CX_TEST(action_names_have_one_normal_form)
{
    vectors v;
    REQUIRE(vectors_open(&v, VECTORS));
    check_normals(CX_JSON_GET(&v.root, "names"), cx_action_name_normal);
    check_normals(CX_JSON_GET(&v.root, "subjects"), cx_action_subject_normal);
    const cx_json *keys = CX_JSON_GET(&v.root, "keys");
    for (uint32_t i = 0; i < keys->count; i++) {
        cx_digest expected = member_digest(&keys->items[i], "key");
        cx_digest key = cx_action_key(CX_JSON_GET_STR(&keys->items[i], "name"));
        CHECK(cx_digest_eq(&key, &expected));
    }
    CHECK(cx_action_name_is_absolute(CX_STR("file:/a")) &&
          cx_action_name_is_absolute(CX_STR("write:/a")));
    CHECK(!cx_action_name_is_absolute(CX_STR("file:a/b")) &&
          !cx_action_name_is_absolute(CX_STR("tool:/a")));
    vectors_close(&v);
}

/* --- lists and sets --------------------------------------------------------------------------- */

static cx_smt *tree_of(const cx_action_item *items, size_t count)
{
    cx_smt *tree = NULL;
    cx_err err;
    CHECK_STATUS(cx_action_tree_open(items, count, cx_alloc_default(), &tree, &err), &err);
    return tree;
}

CX_TEST(action_sets_are_those_of_the_model)
{
    vectors v;
    const cx_action_item *items;
    size_t count;
    cx_digest root, expected;
    cx_action_set set;
    cx_buf again;
    cx_err err;
    REQUIRE(vectors_open(&v, VECTORS));
    cx_bytes list = member_bytes(&v, &v.root, "list");
    CHECK_STATUS(cx_action_list_decode(list, &v.arena, &items, &count, &err), &err);
    cx_buf_init(&again, cx_alloc_default());
    cx_action_list_encode(items, count, &again);
    CHECK(cx_str_eq(cx_buf_str(&again), cx_bytes_str(list)));

    const cx_json *described = CX_JSON_GET(&v.root, "items");
    CHECK_INT(count, described->count);
    for (uint32_t i = 0; i < described->count; i++) {
        const cx_json *names = CX_JSON_GET(&described->items[i], "stands_for");
        for (uint32_t j = 0; j < names->count; j++)
            for (size_t k = 0; k < count; k++)
                CHECK(cx_action_item_covers(&items[k], cx_json_text(&names->items[j])) == (i == k));
    }
    cx_smt *tree = tree_of(items, count);
    CHECK_STATUS(cx_smt_root(tree, &root, &err), &err);
    expected = member_digest(&v.root, "root");
    CHECK(cx_digest_eq(&root, &expected));
    CHECK_INT(cx_smt_count(tree), member_uint(&v.root, "names_count"));
    cx_smt_close(tree);

    cx_bytes payload = member_bytes(&v, &v.root, "set");
    CHECK_STATUS(cx_action_set_decode(payload, &set, &err), &err);
    CHECK(set.upto == 7 && set.calls == 3 && set.opaque == 1 && set.relative == 1 &&
          set.unread == 2);
    cx_buf_clear(&again);
    cx_action_set_encode(&set, &again);
    CHECK(cx_str_eq(cx_buf_str(&again), cx_bytes_str(payload)));
    cx_buf_done(&again);
    vectors_close(&v);
}

CX_TEST(action_list_refuses_other_items)
{
    static const char *const wrong[] = {"file:a", "x:y", "tool"};
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++) {
        const cx_action_item item = {.name = cx_str_z(wrong[i]), .count = 1};
        cx_smt *tree;
        cx_err err;
        cx_status status = cx_action_tree_open(&item, 1, cx_alloc_default(), &tree, &err);
        CHECK_INT(status.code, CX_E_FORMAT);
    }
}

/* --- proofs ----------------------------------------------------------------------------------- */

CX_TEST(never_proofs_are_judged_as_the_model_says)
{
    vectors v;
    REQUIRE(vectors_open(&v, VECTORS));
    const cx_json *cases = CX_JSON_GET(&v.root, "verdicts");
    CHECK(cases->count >= 20);
    for (uint32_t i = 0; i < cases->count; i++) {
        cx_str verdict = CX_JSON_GET_STR(&cases->items[i], "verdict");
        cx_str name = CX_JSON_GET_STR(&cases->items[i], "name");
        cx_bytes proof = member_bytes(&v, &cases->items[i], "proof");
        char told[64];
        CHECK_INT(cx_check_recognise(proof), CX_CHECK_NEVER);
        cx_check_result result = checked(&v, proof, &anyone);
        const cx_finding *finding = &result.finding;
        int size =
            snprintf(told, sizeof told, "%s%s%s", cx_verdict_name(finding->verdict),
                     finding->reason == NULL ? "" : " ", finding->reason ? finding->reason : "");
        if (size <= 0 || !cx_str_starts(cx_str_z(told), verdict))
            cx_test_fail(__FILE__, __LINE__, "%.*s: %s, expected %.*s", (int)name.size, name.data,
                         told, (int)verdict.size, verdict.data);
    }
    vectors_close(&v);
}

static cx_bytes first_proof(vectors *v)
{
    return member_bytes(v, &CX_JSON_GET(&v->root, "verdicts")->items[0], "proof");
}

CX_TEST(a_never_proof_is_about_what_was_asked)
{
    vectors v;
    REQUIRE(vectors_open(&v, VECTORS));
    cx_bytes proof = first_proof(&v);
    const cx_json *journal = CX_JSON_GET(&v.root, "journal");
    cx_journal_point point = {member_uint(journal, "size"), member_digest(journal, "root")};
    cx_check_options options = {.journal = &point};
    cx_check_result result = checked(&v, proof, &options);
    CHECK_HOLDS(&result.finding);
    CHECK_INT(result.anchors, CX_CHECK_BY_ROOT);
    CHECK_STR(result.never, "tool:bash");

    options.never = CX_STR("tool:bash");
    options.subject = result.actions.subject;
    result = checked(&v, proof, &options);
    CHECK_HOLDS(&result.finding);
    options.never = CX_STR("tool:sh");
    result = checked(&v, proof, &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "QuestionMismatch");
    options.never = CX_STR("tool:bash");
    options.subject = CX_STR("run/another");
    result = checked(&v, proof, &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "QuestionMismatch");
    options.never = options.subject = CX_STR("");
    options.expect = CX_EXPECT_MEMBERS;
    result = checked(&v, proof, &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "NotMember");
    options.expect = CX_EXPECT_ABSENT;
    result = checked(&v, proof, &options);
    CHECK_HOLDS(&result.finding);
    point.size = 4;
    result = checked(&v, proof, &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "SizeMismatch");
    point.size = 3;
    point.root.bytes[0] ^= 1;
    result = checked(&v, proof, &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "RootMismatch");
    const cx_check_options none = {.never = CX_STR("tool:bash")};
    result = checked(&v, proof, &none);
    CHECK_FINDING(&result.finding, CX_INDETERMINATE, "NotAnchored");
    vectors_close(&v);
}

/* The proof with a checkpoint of its journal. */
static cx_bytes signed_proof(vectors *v, const signer *log, const char *origin)
{
    cx_never_proof proof;
    cx_vkey key;
    cx_buf text, note, out;
    cx_err err;
    const cx_json *journal = CX_JSON_GET(&v->root, "journal");
    const cx_checkpoint checkpoint = {cx_str_z(origin), member_uint(journal, "size"),
                                      member_digest(journal, "root")};
    CHECK_STATUS(cx_never_proof_decode(first_proof(v), &v->arena, &proof, &err), &err);
    cx_vkey_make(checkpoint.origin, CX_VKEY_NOTE, &log->key, &key);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&note, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    cx_checkpoint_text(&checkpoint, &text);
    cx_signature signature = sign(log, cx_buf_bytes(&text));
    cx_checkpoint_note(&checkpoint, &key, &signature, &note);
    proof.checkpoint = cx_buf_bytes(&note);
    cx_never_proof_encode(&proof, &out);
    cx_str kept = cx_arena_copy_str(&v->arena, cx_buf_str(&out));
    CHECK(!out.failed);
    cx_buf_done(&out);
    cx_buf_done(&note);
    cx_buf_done(&text);
    return cx_str_bytes(kept);
}

CX_TEST(a_checkpoint_names_the_journal_of_the_set)
{
    vectors v;
    REQUIRE(vectors_open(&v, VECTORS));
    signer log = signer_number(2), other = signer_number(3);
    cx_vkey keys[2] = {{.algorithm = CX_VKEY_NOTE, .key = log.key},
                       {.algorithm = CX_VKEY_NOTE, .key = other.key}};
    const cx_check_options options = {.keys = keys, .key_count = 1};
    const cx_check_options wrong = {.keys = keys + 1, .key_count = 1};
    cx_bytes good = signed_proof(&v, &log, "home/run:00112233445566ff");
    cx_check_result result = checked(&v, good, &options);
    CHECK_HOLDS(&result.finding);
    CHECK_INT(result.anchors, CX_CHECK_BY_CHECKPOINT);
    CHECK(result.is_signed);
    result = checked(&v, good, &wrong);
    CHECK_FINDING(&result.finding, CX_INDETERMINATE, "NotSigned");
    result = checked(&v, signed_proof(&v, &log, "home/mallory"), &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "ActorMismatch");
    result = checked(&v, signed_proof(&v, &log, "home/xrun:00112233445566ff"), &options);
    CHECK_FINDING(&result.finding, CX_BROKEN, "ActorMismatch");
    vectors_close(&v);
}

/* No changed bit of a proof that a key has signed leaves it a proof, of anything. */
CX_TEST(every_bit_of_a_never_proof_counts)
{
    vectors v;
    REQUIRE(vectors_open(&v, VECTORS));
    signer log = signer_number(2);
    const cx_vkey key = {.algorithm = CX_VKEY_NOTE, .key = log.key};
    const cx_check_options options = {.keys = &key, .key_count = 1};
    cx_bytes proof = signed_proof(&v, &log, "home/run:00112233445566ff");
    uint8_t *bytes = (uint8_t *)proof.data; /* the arena's own */
    size_t held = 0;
    for (size_t bit = 0; bit < proof.size * 8; bit++) {
        cx_arena_mark mark = cx_arena_mark_now(&v.arena);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cx_check_result result = checked(&v, proof, &options);
        bool same_name = result.finding.verdict == CX_HOLDS && cx_str_is(result.never, "tool:bash");
        held += result.finding.verdict == CX_HOLDS;
        CHECK(!same_name);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cx_arena_reset(&v.arena, mark);
    }
    /* Another name whose place is the same empty one, or has the same other leaf, is as absent. */
    CHECK(held <= 9 * 8);
    for (size_t size = 0; size < proof.size; size++) {
        cx_arena_mark mark = cx_arena_mark_now(&v.arena);
        cx_check_result result = checked(&v, cx_bytes_from(proof.data, size), &options);
        CHECK(result.finding.verdict != CX_HOLDS);
        cx_arena_reset(&v.arena, mark);
    }
    vectors_close(&v);
}

/* True when everything could be allocated. */
static bool checks_with_failing(cx_bytes proof, uint64_t fail_at)
{
    fault_alloc memory;
    cx_check_result result;
    cx_arena arena;
    cx_err err;
    fault_alloc_init(&memory, fail_at, false);
    cx_arena_init(&arena, &memory.alloc, 0);
    cx_status status = cx_check_run(proof, &anyone, &arena, &result, &err);
    if (!cx_failed(status))
        CHECK_HOLDS(&result.finding);
    else
        CHECK_INT(status.code, CX_E_NOMEM);
    cx_arena_done(&arena);
    CHECK_INT(atomic_load(&memory.live_bytes), 0);
    return atomic_load(&memory.fired) == 0;
}

CX_TEST(a_never_proof_is_checked_with_any_allocation_failing)
{
    vectors v;
    REQUIRE(vectors_open(&v, VECTORS));
    cx_bytes proof = first_proof(&v);
    uint64_t fail_at = 1;
    while (!checks_with_failing(proof, fail_at))
        fail_at++;
    CHECK(fail_at > 1);
    vectors_close(&v);
}
