/*
 * fuzz_checkpoint.c - any bytes as a signed note, a tlog-proof, a verifier key, a receipt or a URI:
 * what is read is written the same, and nothing is signed by a key that did not sign.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "proof/export.h"
#include "proof/witness.h"
#include "proof/uri.h"

static void expect_same(const cx_buf *out, cx_bytes bytes)
{
    FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
}

static void try_note(cx_bytes bytes, cx_buf *out)
{
    cx_checkpoint checkpoint;
    cx_note_result result;
    cx_finding finding;
    cx_bytes text;
    cx_pubkey key = {{1}};
    cx_vkey vkey;
    if (cx_failed(cx_checkpoint_parse(bytes, &checkpoint, &text, NULL)))
        return;
    cx_buf_clear(out);
    cx_checkpoint_text(&checkpoint, out);
    expect_same(out, text);
    cx_vkey_make(checkpoint.origin, CX_VKEY_NOTE, &key, &vkey);
    cx_note_check check = {&vkey, 1, 0};
    FUZZ_CHECK(
        !cx_failed(cx_note_verify(bytes, &check, cx_alloc_default(), &result, &finding, NULL)));
    FUZZ_CHECK(finding.verdict == CX_BROKEN);
}

static void try_tlog_proof(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_tlog_proof proof;
    if (cx_failed(cx_tlog_proof_decode(bytes, arena, &proof, NULL)))
        return;
    cx_buf_clear(out);
    cx_tlog_proof_encode(proof.index, proof.path, proof.path_count, proof.note, out);
    expect_same(out, bytes);
}

static void try_receipt(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_receipt receipt;
    if (cx_failed(cx_receipt_decode(bytes, arena, &receipt, NULL)))
        return;
    cx_inclusion inclusion = {.scheme = CX_SCHEME_CORTEX_1,
                              .tree_size = receipt.size,
                              .index = receipt.first,
                              .path = receipt.path,
                              .path_count = receipt.path_count};
    cx_consistency consistency = {.scheme = CX_SCHEME_CORTEX_1,
                                  .size1 = receipt.first,
                                  .size2 = receipt.size,
                                  .path = receipt.path,
                                  .path_count = receipt.path_count};
    cx_buf_clear(out);
    FUZZ_CHECK(!cx_failed(
        receipt.is_consistency
            ? cx_receipt_consistency(receipt.key_id, &consistency, &receipt.signature, out, NULL)
            : cx_receipt_inclusion(receipt.key_id, &inclusion, &receipt.signature, out, NULL)));
    expect_same(out, bytes);
}

static void try_witness(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_witness_request request;
    cx_witness_answer answer;
    FUZZ_CHECK(!cx_failed(cx_witness_judge(bytes, NULL, 0, NULL, arena, &answer, NULL)));
    FUZZ_CHECK(answer.status == 400 || answer.status == 404); /* no log is known */
    cx_buf_clear(out);
    if (!cx_failed(cx_witness_request_read(bytes, &request, NULL))) {
        cx_witness_request_write(&request, out);
        expect_same(out, bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_buf out;
    cx_vkey vkey;
    cx_uri uri;
    cx_bytes bytes = cx_bytes_from(data, size);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    try_note(bytes, &out);
    try_tlog_proof(bytes, &arena, &out);
    try_receipt(bytes, &arena, &out);
    try_witness(bytes, &arena, &out);
    cx_buf_clear(&out);
    if (!cx_failed(cx_vkey_parse(cx_bytes_str(bytes), &vkey, NULL))) {
        cx_vkey_add(&vkey, &out);
        expect_same(&out, bytes);
    }
    cx_buf_clear(&out);
    if (!cx_failed(cx_uri_parse(cx_bytes_str(bytes), &uri, NULL))) {
        cx_uri_add(&uri, &out);
        expect_same(&out, bytes);
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return 0;
}
