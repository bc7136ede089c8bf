/*
 * ledger_scope.c - scopes: verdicts, signatures, and scopes whose bytes the file does not give.
 */
#include "proof/scope.h"

#include "fuzz/records.h"
#include "tests/runner/ledger.h"
#include "tests/support/signer.h"

static cx_status scope_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    runner *r = arg;
    cx_bytes key;
    *out_found = cx_str_eq(agent, cx_json_get_str(runner_file.root, CX_STR("granted_by_known")));
    if (!*out_found)
        return CX_SUCCESS;
    CX_TRY(runner_bytes(r, runner_file.root, "pub", &key, err));
    if (key.size != sizeof out->bytes)
        return cx_fail(err, CX_E_FORMAT, "a key of %zu bytes", key.size);
    memcpy(out->bytes, key.data, sizeof out->bytes);
    return CX_SUCCESS;
}

static cx_status scope_snapshot(void *arg, const cx_digest *root, cx_bytes *out, bool *out_found,
                                cx_err *err)
{
    runner *r = arg;
    cx_manifest manifest;
    CX_TRY(runner_bytes(r, runner_file.root, "manifest_cbor", out, err));
    CX_TRY(cx_manifest_decode(*out, &manifest, err));
    *out_found = cx_digest_eq(&manifest.overall_root, root);
    return CX_SUCCESS;
}

static cx_bytes copied(runner *r, const cx_buf *bytes)
{
    return cx_str_bytes(cx_arena_copy_str(&r->arena, cx_buf_str(bytes)));
}

/*
 * The unsigned scope of a case without bytes: that of the first case that has them, but including
 * exactly the ids that a MultiProof next to it is about.  The label says "namespace 'edges'" where
 * that is a proof in the tree of edges, which has none: absent everywhere, and yet a proof that
 * folds to a root of the manifest.
 */
static CX_RESULT edges_proof(runner *r, const cx_digest *key, cx_buf *out, cx_err *err)
{
    cx_smt *smt;
    const cx_smt_path *path;
    cx_proof_item item;
    cx_multiproof proof = {
        .scheme = runner_file.scheme, .name_space = CX_STR("edges"), .count = 1, .items = &item};
    CX_TRY(cx_smt_open(runner_file.scheme, cx_alloc_default(), &smt, err));
    cx_status status = cx_smt_root(smt, &proof.root, err);
    if (!cx_failed(status))
        status = cx_smt_prove(smt, key, 1, &r->arena, &path, err);
    if (!cx_failed(status)) {
        item = (cx_proof_item){.path = *path, .kind = CX_ABSENT};
        status = cx_multiproof_encode(&proof, out, err);
    }
    cx_smt_close(smt);
    return status;
}

static bool says(const cx_json *item, const char *words)
{
    cx_str label = CX_JSON_GET_STR(item, "label");
    size_t size = strlen(words);
    for (size_t i = 0; i + size <= label.size; i++)
        if (memcmp(label.data + i, words, size) == 0)
            return true;
    return false;
}

/* The id among those of the cases' scopes whose key is proven. */
static CX_RESULT id_of_key(runner *r, const cx_json *cases, const cx_digest *key, cx_id *out,
                           cx_err *err)
{
    for (uint32_t i = 0; i < cases->count; i++) {
        cx_bytes bytes;
        cx_scope scope;
        if (CX_JSON_GET(&cases->items[i], "unsigned_cbor") == NULL)
            continue;
        CX_TRY(runner_bytes(r, &cases->items[i], "unsigned_cbor", &bytes, err));
        if (cx_failed(cx_scope_decode(bytes, &r->arena, &scope, NULL)))
            continue;
        for (size_t k = 0; k < scope.include.id_count; k++) {
            cx_digest of = cx_scheme_memory_key(runner_file.scheme, scope.include.ids[k].bytes);
            *out = scope.include.ids[k];
            if (cx_digest_eq(&of, key))
                return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_UNSUPPORTED, "no case of the file names the id that is proven");
}

static CX_RESULT rebuilt(runner *r, const cx_json *item, cx_scope *out, cx_err *err)
{
    const cx_json *cases = cx_json_get_typed(runner_file.root, CX_STR("cases"), CX_JSON_ARRAY);
    cx_bytes bytes, proof_bytes;
    cx_multiproof proof;
    cx_id *id = CX_ARENA_ARRAY(&r->arena, cx_id, 1);
    uint32_t first = 0;
    if (CX_JSON_GET(runner_file.root, "multiproof_cbor") == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "its bytes are not in the file");
    while (first < cases->count && CX_JSON_GET(&cases->items[first], "unsigned_cbor") == NULL)
        first++;
    if (id == NULL)
        return cx_fail_nomem(err);
    if (first == cases->count)
        return cx_fail(err, CX_E_UNSUPPORTED, "no case of the file has its bytes");
    CX_TRY(runner_bytes(r, &cases->items[first], "unsigned_cbor", &bytes, err));
    CX_TRY(cx_scope_decode(bytes, &r->arena, out, err));
    CX_TRY(runner_bytes(r, runner_file.root, "multiproof_cbor", &proof_bytes, err));
    CX_TRY(cx_multiproof_decode(proof_bytes, &r->arena, &proof, err));
    if (proof.count != 1)
        return cx_fail(err, CX_E_UNSUPPORTED, "a proof of more than one memory");
    CX_TRY(id_of_key(r, cases, &proof.items[0].path.key, id, err));
    out->include = (cx_selector){.ids = id, .id_count = 1};
    out->multiproof = proof_bytes;
    if (!says(item, "namespace 'edges'"))
        return CX_SUCCESS;
    cx_buf other;
    cx_buf_init(&other, cx_alloc_default());
    cx_status status = edges_proof(r, &proof.items[0].path.key, &other, err);
    if (!cx_failed(status)) {
        out->multiproof = copied(r, &other);
        if (out->multiproof.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&other);
    return status;
}

/* What the case's scope says, without its signature; in the arena. */
static CX_RESULT unsigned_of(runner *r, const cx_json *item, cx_scope *out, cx_bytes *out_bytes,
                             cx_err *err)
{
    cx_buf bytes;
    if (CX_JSON_GET(item, "unsigned_cbor") != NULL) {
        CX_TRY(runner_bytes(r, item, "unsigned_cbor", out_bytes, err));
        return cx_scope_decode(*out_bytes, &r->arena, out, err);
    }
    CX_TRY(rebuilt(r, item, out, err));
    cx_buf_init(&bytes, cx_alloc_default());
    cx_scope_to_sign(out, &bytes);
    *out_bytes = copied(r, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    cx_buf_done(&bytes);
    if (!cx_failed(status) && out_bytes->data == NULL)
        status = cx_fail_nomem(err);
    return status;
}

/* The signed bytes of a case: as they stand, or made from what the case signs. */
static CX_RESULT signed_of(runner *r, const cx_json *item, cx_bytes *out, cx_err *err)
{
    cx_scope scope;
    cx_bytes bytes;
    cx_buf encoded;
    if (CX_JSON_GET(item, "cbor") != NULL)
        return runner_bytes(r, item, "cbor", out, err);
    CX_TRY(unsigned_of(r, item, &scope, &bytes, err));
    CX_TRY(runner_bytes(r, item, "signature", &scope.signature.bytes, err));
    scope.signature.null = false;
    cx_buf_init(&encoded, cx_alloc_default());
    cx_scope_encode(&scope, &encoded);
    *out = copied(r, &encoded);
    cx_status status = cx_buf_check(&encoded, err);
    cx_buf_done(&encoded);
    if (!cx_failed(status) && out->data == NULL)
        status = cx_fail_nomem(err);
    return status;
}

static cx_status scope_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    cx_scope_use granted;
    cx_finding finding = {0};
    cx_scope_check check = {
        .key = scope_key, .key_arg = r, .snapshot = scope_snapshot, .snapshot_arg = r};
    CX_TRY(signed_of(r, item, &bytes, err));
    CX_TRY(runner_signed(item, "now_ns", &check.now_ns, err));
    CX_TRY(runner_text(runner_file.root, "actor", &check.actor, err));
    CX_TRY(cx_scope_verify(bytes, &check, &r->arena, &granted, &finding, err));
    return runner_string(r, cx_str_z(finding.verdict == CX_HOLDS ? "holds" : finding.reason), out,
                         err);
}

static cx_status scope_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str word;
    CX_TRY(runner_text(item, "cortex_expects", &word, err));
    return runner_string(r, word, out, err);
}

/* --- what the cases say about the bytes to sign ----------------------------------------------- */

/* Of a case "tampered after signing" what widens the scope came later: it was signed without. */
static CX_RESULT sign(runner *r, const cx_json *item, const cx_scope *scope, cx_signature *out,
                      cx_err *err)
{
    test_signer signer;
    cx_bytes seed;
    cx_buf bytes;
    cx_scope original = *scope;
    if (says(item, "tampered after signing")) {
        original.budget_tokens = 0;
        original.writable = false;
    }
    CX_TRY(runner_bytes(r, runner_file.root, "ed25519_seed", &seed, err));
    if (seed.size != sizeof signer.seed)
        return cx_fail(err, CX_E_FORMAT, "'ed25519_seed' is not 32 bytes");
    memcpy(signer.seed, seed.data, seed.size);
    test_signer_from_seed(&signer);
    cx_buf_init(&bytes, cx_alloc_default());
    cx_scope_to_sign(&original, &bytes);
    cx_status status = test_sign(&signer, cx_buf_bytes(&bytes), out, err);
    cx_buf_done(&bytes);
    return status;
}

static void run_signing(runner *r, const cx_json *item, size_t index)
{
    cx_scope scope;
    cx_bytes bytes;
    cx_signature signature;
    cx_err err = {0};
    cx_status status = unsigned_of(r, item, &scope, &bytes, &err);
    if (status.code == CX_E_UNSUPPORTED)
        return;
    if (!cx_failed(status))
        status = sign(r, item, &scope, &signature, &err);
    if (cx_failed(status)) {
        runner_value(r, runner_pointer(r, "/cases", index, "signature"), status, NULL, &err);
        return;
    }
    cx_digest digest = cx_digest_of(bytes);
    runner_value_hex(r, runner_pointer(r, "/cases", index, "signature"),
                     cx_bytes_from(signature.bytes, sizeof signature.bytes));
    runner_value_uint(r, runner_pointer(r, "/cases", index, "unsigned_len"), bytes.size);
    runner_value_digest(r, runner_pointer(r, "/cases", index, "unsigned_sha256"), &digest);
}

/* Entries and Heads of the file: decoded and encoded again. */
static void run_again(runner *r, const char *list, record_again *again)
{
    const cx_json *items = cx_json_pointer(runner_file.root, cx_str_z(list));
    bool one = items != NULL && items->type == CX_JSON_STRING;
    if (items != NULL && !one && items->type != CX_JSON_ARRAY)
        return;
    for (uint32_t i = 0; items != NULL && i < (one ? 1 : items->count); i++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        const cx_json *item = one ? items : &items->items[i];
        cx_bytes bytes;
        cx_buf out;
        cx_err err = {0};
        cx_str pointer = one ? cx_str_z(list) : cx_arena_printf(&r->arena, "%s/%u", list, i);
        if (pointer.data == NULL || cx_failed(runner_bytes(r, item, "bytes", &bytes, &err)))
            continue;
        cx_buf_init(&out, cx_alloc_default());
        if (again(bytes, &r->arena, &out))
            runner_value_hex(r, pointer.data, cx_buf_bytes(&out));
        else
            runner_value_text(r, pointer.data, CX_STR("refused"));
        cx_buf_done(&out);
        cx_arena_reset(&r->arena, mark);
    }
}

static void run_public_key(runner *r)
{
    test_signer signer;
    cx_bytes seed;
    if (cx_failed(runner_bytes(r, runner_file.root, "ed25519_seed", &seed, NULL)) ||
        seed.size != sizeof signer.seed)
        return;
    memcpy(signer.seed, seed.data, seed.size);
    test_signer_from_seed(&signer);
    runner_value_hex(r, "/pub", cx_bytes_from(signer.key.bytes, sizeof signer.key.bytes));
}

void runner_ledger_scope(runner *r, cx_str name)
{
    static const runner_kind cases = {"/cases", scope_got, scope_expect};
    if (!cx_str_is(name, "scope.json"))
        return;
    runner_run_list(r, &cases, runner_file.path, runner_file.root);
    const cx_json *list = cx_json_get_typed(runner_file.root, CX_STR("cases"), CX_JSON_ARRAY);
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        run_signing(r, &list->items[i], i);
        cx_arena_reset(&r->arena, mark);
    }
    run_public_key(r);
    run_again(r, "/manifest_cbor", again_manifest);
    run_again(r, "/entries", again_entry);
    run_again(r, "/heads", again_head);
    run_again(r, "/resolve_scoped/violation_entry_cbor", again_entry);
    run_again(r, "/resolve_scoped/update_head_violation_entry_cbor", again_entry);
}
