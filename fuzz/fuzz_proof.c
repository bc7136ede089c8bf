/*
 * fuzz_proof.c - any bytes as a MultiProof, a proof about the journal, a manifest or a proof pack:
 * what decodes encodes to the same bytes, and checking never fails for another reason than memory.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "proof/check.h"

static cx_verdict verdict_of(cx_bytes bytes, cx_arena *arena)
{
    static const cx_multiproof_check check = {.name_space = CX_NAMESPACE_ANY};
    cx_finding finding;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    FUZZ_CHECK(!cx_failed(
        cx_multiproof_verify(bytes, (cx_bytes){NULL, 0}, &check, arena, NULL, &finding, NULL)));
    cx_arena_reset(arena, mark);
    return finding.verdict;
}

/*
 * A compact proof and the same with all its siblings told lead to the root alike.  The other way
 * round, what is left out may have been wrong: then only a proof that holds says something.
 */
static void try_other_form(cx_bytes bytes, cx_multiproof *proof, cx_arena *arena, cx_buf *out)
{
    bool compact = proof->compact;
    proof->compact = !compact;
    cx_buf_clear(out);
    if (proof->scheme != CX_SCHEME_CORTEX_1 || cx_failed(cx_multiproof_encode(proof, out, NULL))) {
        FUZZ_CHECK(!compact); /* keys that do not ascend, paths that contradict each other */
        return;
    }
    cx_verdict verdict = verdict_of(bytes, arena), other = verdict_of(cx_buf_bytes(out), arena);
    FUZZ_CHECK(compact ? verdict == other : verdict != CX_HOLDS || other == CX_HOLDS);
}

static void try_multiproof(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_multiproof proof;
    cx_err err;
    if (cx_failed(cx_multiproof_decode(bytes, arena, &proof, &err)) || proof.count == 0)
        return;
    cx_buf_clear(out);
    if (cx_failed(cx_multiproof_encode(&proof, out, &err))) {
        FUZZ_CHECK(err.tag != NULL && strcmp(err.tag, "InvalidArgument") == 0); /* a key twice */
        return;
    }
    FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    try_other_form(bytes, &proof, arena, out);
}

static void try_journal_proofs(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_inclusion inclusion;
    cx_consistency consistency;
    cx_buf_clear(out);
    if (!cx_failed(cx_inclusion_decode(bytes, arena, &inclusion, NULL))) {
        cx_inclusion_encode(&inclusion, out);
        FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    }
    cx_buf_clear(out);
    if (!cx_failed(cx_consistency_decode(bytes, arena, &consistency, NULL))) {
        cx_consistency_encode(&consistency, out);
        FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    }
}

static void try_pack(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_pack pack;
    if (cx_failed(cx_pack_decode(bytes, arena, &pack, NULL)))
        return;
    cx_buf_clear(out);
    FUZZ_CHECK(!cx_failed(cx_pack_encode(&pack, out, NULL)));
    FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
}

static void try_never(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_never_proof proof;
    cx_action_set set;
    const cx_action_item *items;
    size_t count;
    cx_buf_clear(out);
    if (!cx_failed(cx_never_proof_decode(bytes, arena, &proof, NULL))) {
        cx_never_proof_encode(&proof, out);
        FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    }
    cx_buf_clear(out);
    if (!cx_failed(cx_action_set_decode(bytes, &set, NULL))) {
        cx_action_set_encode(&set, out);
        FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    }
    cx_buf_clear(out);
    if (!cx_failed(cx_action_list_decode(bytes, arena, &items, &count, NULL))) {
        cx_action_list_encode(items, count, out);
        FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    }
}

static void try_check(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_check_options options = {.require = CX_REQUIRE_ANCHORED};
    cx_check_result result;
    cx_err err;
    cx_status status = cx_check_run(bytes, &options, arena, &result, &err);
    if (cx_failed(status))
        return;
    FUZZ_CHECK(result.finding.verdict != CX_HOLDS); /* nothing is trusted */
    FUZZ_CHECK(result.finding.reason != NULL);
    cx_buf_clear(out);
    cx_check_write_text(&result, CX_STR("file"), true, out);
    cx_check_write_json(&result, CX_STR("file"), out);
    FUZZ_CHECK(!cx_failed(cx_buf_check(out, NULL)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_buf out;
    cx_bytes bytes = cx_bytes_from(data, size);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    try_multiproof(bytes, &arena, &out);
    try_journal_proofs(bytes, &arena, &out);
    try_pack(bytes, &arena, &out);
    try_never(bytes, &arena, &out);
    try_check(bytes, &arena, &out);
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return 0;
}
