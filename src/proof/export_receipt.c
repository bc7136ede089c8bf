/*
 * export_receipt.c - COSE receipts of the journal (RFC 9942; ledger.md §12).
 *
 *     18([ h'a3 01 27 04 44 <key id> 19018b 01',      protected: {1: -8, 4: key id, 395: 1}
 *          {396: {-1: [h'[size, index, [path]]']}},   -2: [h'[size1, size2, [path]]']
 *          null, h'<signature>' ])
 *
 * What is signed is ["Signature1", protected, h'', root]: the root is the detached payload, so that
 * a verifier has to compute the same root from the path.
 */
#include "cbor/api.h"
#include "proof/export.h"
#include "proof/proof_internal.h"

enum { HEADER_PROOFS = 396, PROTECTED_SIZE = 13, LABEL_INCLUSION = -1, LABEL_CONSISTENCY = -2 };

static void protected_header(const uint8_t key_id[4], uint8_t out[PROTECTED_SIZE])
{
    static const uint8_t head[] = {0xa3, 0x01, 0x27, 0x04, 0x44};
    static const uint8_t tail[] = {0x19, 0x01, 0x8b, 0x01};
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, key_id, 4);
    memcpy(out + sizeof head + 4, tail, sizeof tail);
}

void cx_receipt_to_sign(const uint8_t key_id[4], const cx_digest *root, cx_buf *out)
{
    uint8_t header[PROTECTED_SIZE];
    protected_header(key_id, header);
    cx_cbor_array(out, 4);
    cx_cbor_text(out, CX_STR("Signature1"));
    cx_cbor_bytes(out, cx_bytes_from(header, sizeof header));
    cx_cbor_bytes(out, (cx_bytes){NULL, 0});
    cx_cbor_digest(out, root);
}

/* --- writing --------------------------------------------------------------------------------- */

static cx_status encode_receipt(const uint8_t key_id[4], cx_scheme scheme, int label,
                                uint64_t first, uint64_t second, const cx_digest *path,
                                size_t path_count, const cx_signature *signature, cx_buf *out,
                                cx_err *err)
{
    uint8_t header[PROTECTED_SIZE];
    size_t start = out->size;
    cx_buf proof;
    if (scheme != CX_SCHEME_CORTEX_1)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "SchemeUnsupported", CX_NO_OFFSET,
                          "receipts are of cortex-1 only");
    if (path_count == 0)
        return cx_fail_at(err, CX_E_USAGE, "ReceiptTooSmall", CX_NO_OFFSET,
                          "a receipt needs a path of at least one hash; this one is empty");
    cx_buf_init(&proof, out->alloc);
    cx_cbor_array(&proof, 3);
    cx_cbor_uint(&proof, first);
    cx_cbor_uint(&proof, second);
    cx_cbor_array(&proof, path_count);
    for (size_t i = 0; i < path_count; i++)
        cx_cbor_digest(&proof, &path[i]);
    protected_header(key_id, header);
    cx_cbor_tag(out, 18);
    cx_cbor_array(out, 4);
    cx_cbor_bytes(out, cx_bytes_from(header, sizeof header));
    cx_cbor_map(out, 1);
    cx_cbor_uint(out, HEADER_PROOFS);
    cx_cbor_map(out, 1);
    cx_cbor_int(out, label);
    cx_cbor_array(out, 1);
    cx_cbor_bytes(out, cx_buf_bytes(&proof));
    cx_cbor_null(out);
    cx_cbor_bytes(out, cx_bytes_from(signature->bytes, sizeof signature->bytes));
    cx_status status = cx_buf_check(&proof, err);
    if (!cx_failed(status))
        status = cx_buf_check(out, err);
    if (cx_failed(status))
        out->size = start;
    cx_buf_done(&proof);
    return status;
}

cx_status cx_receipt_inclusion(const uint8_t key_id[4], const cx_inclusion *proof,
                               const cx_signature *signature, cx_buf *out, cx_err *err)
{
    return encode_receipt(key_id, proof->scheme, LABEL_INCLUSION, proof->tree_size, proof->index,
                          proof->path, proof->path_count, signature, out, err);
}

cx_status cx_receipt_consistency(const uint8_t key_id[4], const cx_consistency *proof,
                                 const cx_signature *signature, cx_buf *out, cx_err *err)
{
    return encode_receipt(key_id, proof->scheme, LABEL_CONSISTENCY, proof->size1, proof->size2,
                          proof->path, proof->path_count, signature, out, err);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Refuses whatever is not `expected`. */
static void expect_uint(cx_cbor_reader *reader, uint64_t expected, const char *what)
{
    size_t offset = reader->offset;
    if (cx_cbor_read_uint(reader) != expected && cx_cbor_ok(reader))
        cx_cbor_reject(reader, offset, "expected %s", what);
}

static void expect_count(cx_cbor_reader *reader, size_t offset, size_t found, size_t expected,
                         const char *what)
{
    if (found != expected && cx_cbor_ok(reader))
        cx_cbor_reject(reader, offset, "expected %s", what);
}

static void read_protected(cx_cbor_reader *reader, cx_receipt *out)
{
    uint8_t expected[PROTECTED_SIZE];
    size_t offset = reader->offset;
    cx_bytes found = cx_cbor_read_bytes(reader);
    if (!cx_cbor_ok(reader))
        return;
    if (found.size == PROTECTED_SIZE) {
        memcpy(out->key_id, found.data + 5, sizeof out->key_id);
        protected_header(out->key_id, expected);
    }
    if (found.size != PROTECTED_SIZE || memcmp(found.data, expected, PROTECTED_SIZE) != 0)
        cx_cbor_reject(reader, offset, "expected the protected header {1: -8, 4: key id, 395: 1}");
}

static void read_label(cx_cbor_reader *reader, cx_receipt *out)
{
    size_t offset = reader->offset;
    int64_t label = cx_cbor_read_int(reader);
    out->is_consistency = label == LABEL_CONSISTENCY;
    if (cx_cbor_ok(reader) && label != LABEL_INCLUSION && label != LABEL_CONSISTENCY)
        cx_cbor_reject(reader, offset,
                       "expected -1, an inclusion proof, or -2, a consistency proof");
}

static cx_status read_path(cx_bytes bytes, cx_arena *arena, cx_receipt *out, cx_err *err)
{
    cx_cbor_reader reader;
    cx_digest *path = CX_ARENA_ARRAY(arena, cx_digest, CX_CONSISTENCY_PATH_MAX);
    if (path == NULL)
        return cx_fail_nomem(err);
    cx_cbor_begin(&reader, bytes, "receipt's proof");
    expect_count(&reader, 0, cx_cbor_read_array(&reader, 3), 3, "size, index or size, and path");
    uint64_t first = cx_cbor_read_uint(&reader), second = cx_cbor_read_uint(&reader);
    size_t offset = reader.offset;
    out->path_count = cx_cbor_read_array(&reader, out->is_consistency ? CX_CONSISTENCY_PATH_MAX
                                                                      : CX_INCLUSION_PATH_MAX);
    if (out->path_count == 0 && cx_cbor_ok(&reader))
        cx_cbor_reject(&reader, offset, "expected a path of at least one hash");
    for (size_t i = 0; i < out->path_count && cx_cbor_ok(&reader); i++)
        path[i] = cx_cbor_read_digest(&reader);
    out->path = path;
    out->size = out->is_consistency ? second : first;
    out->first = out->is_consistency ? first : second;
    return cx_cbor_end(&reader, err);
}

cx_status cx_receipt_decode(cx_bytes bytes, cx_arena *arena, cx_receipt *out, cx_err *err)
{
    cx_cbor_reader reader;
    cx_receipt receipt = {0};
    cx_cbor_begin(&reader, bytes, "receipt");
    size_t offset = reader.offset;
    if (cx_cbor_read_tag(&reader) != 18 && cx_cbor_ok(&reader))
        cx_cbor_reject(&reader, offset, "expected tag 18, COSE_Sign1");
    offset = reader.offset;
    expect_count(&reader, offset, cx_cbor_read_array(&reader, 4), 4, "the 4 parts of COSE_Sign1");
    read_protected(&reader, &receipt);
    offset = reader.offset;
    expect_count(&reader, offset, cx_cbor_read_map(&reader, 1), 1, "one unprotected header");
    expect_uint(&reader, HEADER_PROOFS, "header 396, the proofs");
    offset = reader.offset;
    expect_count(&reader, offset, cx_cbor_read_map(&reader, 1), 1, "one kind of proof");
    read_label(&reader, &receipt);
    offset = reader.offset;
    expect_count(&reader, offset, cx_cbor_read_array(&reader, 1), 1, "one proof");
    cx_bytes proof = cx_cbor_read_bytes(&reader);
    offset = reader.offset;
    if (!cx_cbor_skip_null(&reader))
        cx_cbor_reject(&reader, offset, "expected a detached payload, null");
    (void)cx_cbor_read_exactly(&reader, receipt.signature.bytes, sizeof receipt.signature.bytes);
    CX_TRY(cx_cbor_end(&reader, err));
    CX_TRY(read_path(proof, arena, &receipt, err));
    *out = receipt;
    return CX_SUCCESS;
}

/* --- checking -------------------------------------------------------------------------------- */

static bool size_fits(const cx_journal_point *journal, uint64_t size, cx_finding *out)
{
    if (journal == NULL || journal->size == CX_JOURNAL_SIZE_UNKNOWN || journal->size == size)
        return true;
    cx_finding_set(out, CX_BROKEN, "SizeMismatch", CX_FINDING_WHOLE,
                   "the receipt is about %llu entries, the journal has %llu",
                   (unsigned long long)size, (unsigned long long)journal->size);
    return false;
}

static void check_inclusion(const cx_receipt *receipt, const cx_receipt_check *check,
                            cx_digest *out_root, cx_finding *out)
{
    if (check->leaf_hash == NULL)
        cx_finding_set(out, CX_INDETERMINATE, "NoLeaf", CX_FINDING_WHOLE,
                       "a receipt does not carry its entry; give --entry or --leaf");
    else if (!size_fits(check->newer, receipt->size, out))
        return;
    else if (!cx_mmr_inclusion_root(CX_SCHEME_CORTEX_1, receipt->first, receipt->size,
                                    check->leaf_hash, receipt->path, receipt->path_count, out_root))
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "%zu hashes do not lead from leaf %llu to the root of %llu entries",
                       receipt->path_count, (unsigned long long)receipt->first,
                       (unsigned long long)receipt->size);
    else if (check->newer != NULL && !cx_digest_eq(out_root, &check->newer->root))
        cx_finding_set(out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                       "the path leads to another root");
}

static void check_consistency(const cx_receipt *receipt, const cx_receipt_check *check,
                              cx_digest *out_root, cx_finding *out)
{
    if (check->older == NULL || check->newer == NULL) {
        cx_finding_set(out, CX_INDETERMINATE, "NoRoot", CX_FINDING_WHOLE,
                       "the older and the newer root must be given");
        return;
    }
    if (!size_fits(check->older, receipt->first, out) ||
        !size_fits(check->newer, receipt->size, out))
        return;
    *out_root = check->newer->root;
    if (receipt->first > receipt->size)
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "the older size is larger than the newer");
    else if (!cx_mmr_consistency_holds(CX_SCHEME_CORTEX_1, receipt->first, &check->older->root,
                                       receipt->size, &check->newer->root, receipt->path,
                                       receipt->path_count))
        cx_finding_set(out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                       "the newer journal does not begin with the entries of the older");
}

static cx_status check_signature(const cx_receipt *receipt, const cx_vkey *key,
                                 const cx_digest *root, const cx_alloc *alloc, cx_finding *out,
                                 cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, alloc);
    cx_receipt_to_sign(receipt->key_id, root, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status) &&
        !cx_ed25519_verify(&key->key, cx_buf_bytes(&text), &receipt->signature))
        cx_finding_set(out, CX_BROKEN, "SignatureInvalid", CX_FINDING_WHOLE,
                       "the signature is not one of this key over the root the path leads to");
    cx_buf_done(&text);
    return status;
}

cx_status cx_receipt_verify(cx_bytes bytes, const cx_receipt_check *check, cx_arena *arena,
                            cx_finding *out, cx_err *err)
{
    cx_receipt receipt;
    cx_digest root;
    cx_err found;
    cx_finding_init(out);
    cx_status status = cx_receipt_decode(bytes, arena, &receipt, &found);
    CX_TRY(cx_finding_from(status, &found, "BadReceipt", out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    if (memcmp(receipt.key_id, check->key->key_id, sizeof receipt.key_id) != 0)
        cx_finding_set(out, CX_BROKEN, "KeyMismatch", CX_FINDING_WHOLE,
                       "the receipt names another key than the one given");
    else if (receipt.is_consistency)
        check_consistency(&receipt, check, &root, out);
    else
        check_inclusion(&receipt, check, &root, out);
    if (out->verdict == CX_HOLDS)
        CX_TRY(check_signature(&receipt, check->key, &root, arena->alloc, out, err));
    return CX_SUCCESS;
}
