/*
 * ledger_rest.c - the ledger's smaller lists: primitives and cut texts, hashes of keys and of empty
 * subtrees, and what is exported.
 */
#include "cbor/cbor.h"
#include "proof/export.h"
#include "memory/forms.h"
#include "tests/runner/ledger.h"
#include "tests/support/signer.h"

/* --- codec.json ------------------------------------------------------------------------------- */

static cx_status primitive_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    bool read = !cx_failed(cx_cbor_check(bytes, NULL));
    return runner_string(r, read ? CX_STR("accepted") : CX_STR("refused"), out, err);
}

/* The original wrote texts that are none. */
static cx_status primitive_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    bool text = !cx_str_is(CX_JSON_GET_STR(item, "value"), "invalid utf8 text");
    return runner_string(r, text ? CX_STR("accepted") : CX_STR("refused"), out, err);
}

static cx_status cut_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes text;
    size_t tokens;
    cx_buf cut;
    cx_json value;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_bytes(r, item, "in_hex", &text, err));
    CX_TRY(runner_count(item, "max_tokens", &tokens, err));
    cx_buf_init(&cut, cx_alloc_default());
    cx_tokens_truncate(cx_bytes_str(text), tokens, &cut);
    cx_status status = cx_buf_check(&cut, err);
    if (!cx_failed(status))
        status = runner_hex(r, cx_buf_bytes(&cut), &value, err);
    cx_buf_done(&cut);
    CX_TRY(status);
    cx_json_list_put(&object, CX_STR("out_hex"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(cut_expect, "out_hex")

/* --- export.json: decoded, checked, and written again ----------------------------------------- */

typedef struct exporter {
    cx_vkey key;
    test_signer signer;
} exporter;

static CX_RESULT exporter_of(runner *r, exporter *out, cx_err *err)
{
    cx_bytes seed;
    cx_str origin;
    CX_TRY(runner_bytes(r, r->root, "ed25519_seed", &seed, err));
    CX_TRY(runner_text(r->root, "origin", &origin, err));
    if (seed.size != sizeof out->signer.seed)
        return cx_fail(err, CX_E_FORMAT, "'ed25519_seed' is not 32 bytes");
    memcpy(out->signer.seed, seed.data, seed.size);
    test_signer_from_seed(&out->signer);
    cx_vkey_make(origin, CX_VKEY_NOTE, &out->signer.key, &out->key);
    return CX_SUCCESS;
}

static CX_RESULT put_buf(runner *r, cx_json_list *object, const char *name, cx_buf *text,
                         cx_err *err)
{
    cx_json value;
    CX_TRY(cx_buf_check(text, err));
    CX_TRY(runner_string(r, cx_arena_copy_str(&r->arena, cx_buf_str(text)), &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

static CX_RESULT check_note(const exporter *by, cx_bytes note, cx_err *err)
{
    const cx_note_check check = {&by->key, 1, 0};
    cx_note_result result = {0};
    cx_finding finding = {0};
    CX_TRY(cx_note_verify(note, &check, cx_alloc_default(), &result, &finding, err));
    return finding.verdict == CX_HOLDS
               ? CX_SUCCESS
               : cx_fail(err, CX_E_FORMAT, "the checkpoint does not hold: %s", finding.reason);
}

/* The key's text, and the checkpoint signed again: Ed25519 gives the same bytes. */
static cx_status export_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    exporter by;
    cx_str note;
    cx_checkpoint checkpoint;
    cx_signature signature;
    cx_buf text;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(exporter_of(r, &by, err));
    CX_TRY(runner_text(item, "checkpoint", &note, err));
    CX_TRY(check_note(&by, cx_str_bytes(note), err));
    CX_TRY(cx_checkpoint_parse(cx_str_bytes(note), &checkpoint, NULL, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_checkpoint_text(&checkpoint, &text);
    cx_status status = test_sign(&by.signer, cx_buf_bytes(&text), &signature, err);
    cx_buf_clear(&text);
    if (!cx_failed(status)) {
        cx_checkpoint_note(&checkpoint, &by.key, &signature, &text);
        status = put_buf(r, &object, "checkpoint", &text, err);
    }
    cx_buf_clear(&text);
    cx_vkey_add(&by.key, &text);
    if (!cx_failed(status))
        status = put_buf(r, &object, "vkey", &text, err);
    if (!cx_failed(status))
        status = runner_put_hex(
            r, &object, "pub", cx_bytes_from(by.signer.key.bytes, sizeof by.signer.key.bytes), err);
    cx_buf_done(&text);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(export_expect, "checkpoint", "vkey", "pub")

static cx_status tlog_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    exporter by;
    cx_str given;
    cx_tlog_proof proof;
    cx_buf text;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(exporter_of(r, &by, err));
    CX_TRY(runner_text(item, "text", &given, err));
    CX_TRY(cx_tlog_proof_decode(cx_str_bytes(given), &r->arena, &proof, err));
    CX_TRY(check_note(&by, proof.note, err));
    cx_json_list_put(&object, CX_STR("index"), cx_json_make_uint(&r->arena, proof.index));
    cx_buf_init(&text, cx_alloc_default());
    cx_tlog_proof_encode(proof.index, proof.path, proof.path_count, proof.note, &text);
    cx_status status = put_buf(r, &object, "text", &text, err);
    cx_buf_done(&text);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(tlog_expect, "index", "text")

/* The root is the checkpoint's: who signed one signed the other. */
static CX_RESULT write_receipt(runner *r, const cx_receipt *receipt, cx_buf *out, cx_err *err)
{
    exporter by;
    cx_str note;
    cx_checkpoint checkpoint;
    cx_signature signature;
    CX_TRY(exporter_of(r, &by, err));
    CX_TRY(runner_text(r->root, "checkpoint", &note, err));
    CX_TRY(cx_checkpoint_parse(cx_str_bytes(note), &checkpoint, NULL, err));
    cx_receipt_to_sign(receipt->key_id, &checkpoint.root, out);
    CX_TRY(test_sign(&by.signer, cx_buf_bytes(out), &signature, err));
    cx_buf_clear(out);
    if (receipt->is_consistency) {
        const cx_consistency proof = {.scheme = CX_SCHEME_CORTEX_1,
                                      .size1 = receipt->first,
                                      .size2 = receipt->size,
                                      .path = receipt->path,
                                      .path_count = receipt->path_count};
        return cx_receipt_consistency(receipt->key_id, &proof, &signature, out, err);
    }
    const cx_inclusion proof = {.scheme = CX_SCHEME_CORTEX_1,
                                .index = receipt->first,
                                .tree_size = receipt->size,
                                .path = receipt->path,
                                .path_count = receipt->path_count};
    return cx_receipt_inclusion(receipt->key_id, &proof, &signature, out, err);
}

static cx_status receipt_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes given;
    cx_receipt receipt;
    cx_buf bytes;
    cx_json value;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_bytes(r, item, "cbor", &given, err));
    CX_TRY(cx_receipt_decode(given, &r->arena, &receipt, err));
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = write_receipt(r, &receipt, &bytes, err);
    if (!cx_failed(status))
        status = runner_hex(r, cx_buf_bytes(&bytes), &value, err);
    cx_buf_done(&bytes);
    CX_TRY(status);
    cx_json_list_put(&object, CX_STR("cbor"), value);
    runner_put_uint(r, &object, receipt.is_consistency ? "size1" : "index", receipt.first);
    runner_put_uint(r, &object, receipt.is_consistency ? "size2" : "size", receipt.size);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(receipt_expect, "cbor", "index", "size", "size1", "size2")

/* --- by file ---------------------------------------------------------------------------------- */

void runner_ledger_rest(runner *r, cx_str name)
{
    static const struct {
        const char *file;
        runner_kind kind;
    } lists[] = {{"codec.json", {"/cbor_primitives", primitive_got, primitive_expect}},
                 {"codec.json", {"/truncate_to_tokens", cut_got, cut_expect}},
                 {"export.json", {"/tlog_proofs", tlog_got, tlog_expect}},
                 {"export.json", {"/cose_inclusion", receipt_got, receipt_expect}},
                 {"export.json", {"/cose_consistency", receipt_got, receipt_expect}}};
    static const runner_kind whole = {"", export_got, export_expect};
    if (cx_str_is(name, "export.json"))
        runner_run_one(r, &whole, "");
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        if (cx_str_is(name, lists[i].file))
            runner_run_list(r, &lists[i].kind, runner_file.path, runner_file.root);
}
