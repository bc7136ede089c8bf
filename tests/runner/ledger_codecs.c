/*
 * ledger_codecs.c - CBOR, entries, records, forms, names and seeds.
 */
#include <stdio.h>

#include "fuzz/records.h"
#include "proof/seed.h"
#include "memory/forms.h"
#include "memory/uri.h"
#include "tests/runner/ledger.h"

/* --- cbor_strict.json ------------------------------------------------------------------------- */

static cx_status said(runner *r, bool accepted, cx_json *out, cx_err *err)
{
    return runner_string(r, accepted ? CX_STR("accepted") : CX_STR("refused"), out, err);
}

static cx_status strict_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    return said(r, !cx_failed(cx_cbor_check(bytes, NULL)), out, err);
}

static cx_status head_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    cx_head head;
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    return said(r, !cx_failed(cx_head_decode(bytes, &r->arena, &head, NULL)), out, err);
}

static cx_status accepted(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)item;
    return said(r, true, out, err);
}

static cx_status refused(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)item;
    return said(r, false, out, err);
}

/* --- what is decoded and encoded again -------------------------------------------------------- */

static CX_RESULT again_hex(runner *r, record_again *again, cx_bytes bytes, cx_json *out,
                           cx_err *err)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    bool good = again(bytes, &r->arena, &buf);
    cx_status status = good ? runner_hex(r, cx_buf_bytes(&buf), out, err)
                            : runner_string(r, CX_STR("refused"), out, err);
    cx_buf_done(&buf);
    return status;
}

/* Labels that show what the original's encoder does; our decoder refuses these. */
static bool only_the_encoder(const cx_json *item)
{
    cx_str label = cx_json_get_str(item, CX_STR("label"));
    return cx_str_starts(label, CX_STR("all zero")) ||
           cx_str_starts(label, CX_STR("zero manifest"));
}

static CX_RESULT put_again(runner *r, const cx_json *item, const char *member, record_again *again,
                           cx_json_list *object, cx_bytes *out_bytes, cx_err *err)
{
    cx_json value;
    CX_TRY(runner_bytes(r, item, member, out_bytes, err));
    CX_TRY(again_hex(r, again, *out_bytes, &value, err));
    cx_json_list_put(object, cx_str_z(member), value);
    return CX_SUCCESS;
}

static CX_RESULT put_digest(runner *r, cx_json_list *object, const char *name, cx_digest digest,
                            cx_err *err)
{
    cx_json value;
    CX_TRY(runner_digest(r, &digest, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

/* The members that both sides know of, as the case has them; those of the encoder only: refused. */
static cx_status record_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"cbor",
                                        "cbor_final",
                                        "cbor_with_zero_hash",
                                        "smt_key_hash",
                                        "smt_value_hash",
                                        "head_sha256",
                                        "version_hash",
                                        "sha256",
                                        "overall_root",
                                        "leaf_hash",
                                        "from_key",
                                        "to_key",
                                        "type_code",
                                        "reencode_after_decode_equal"};
    if (!only_the_encoder(item))
        return runner_pick(r, item, names, CX_COUNT_OF(names), out, err);
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json_list_put(&object, CX_STR("cbor"), cx_json_make_str(CX_STR("refused")));
    return cx_json_list_end_object(&object, out, err);
}

static bool asks(const cx_json *item, const char *name)
{
    return cx_json_get(item, cx_str_z(name)) != NULL;
}

static cx_status head_record_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_bytes bytes;
    cx_head head;
    CX_TRY(put_again(r, item, "cbor", again_head, &object, &bytes, err));
    if (!cx_failed(cx_head_decode(bytes, &r->arena, &head, NULL))) {
        cx_buf again;
        cx_buf_init(&again, cx_alloc_default());
        cx_head_encode(&head, &again);
        bool equal = cx_str_eq(cx_buf_str(&again), cx_bytes_str(bytes));
        cx_buf_done(&again);
        cx_json_list_put(&object, CX_STR("reencode_after_decode_equal"), cx_json_make_bool(equal));
        CX_TRY(put_digest(r, &object, "head_sha256", cx_digest_of(bytes), err));
        CX_TRY(put_digest(r, &object, "smt_key_hash",
                          cx_scheme_memory_key(CX_SCHEME_MATRIX_1, head.id.bytes), err));
        CX_TRY(put_digest(r, &object, "smt_value_hash", cx_scheme_value(CX_SCHEME_MATRIX_1, bytes),
                          err));
    }
    return cx_json_list_end_object(&object, out, err);
}

static CX_RESULT put_edge_key(runner *r, cx_json_list *object, const char *name, const char *prefix,
                              const cx_id *near, uint8_t type, const cx_id *far, cx_err *err)
{
    uint8_t key[64];
    size_t size = strlen(prefix);
    cx_json value;
    memcpy(key, prefix, size);
    memcpy(key + size, near->bytes, 16);
    key[size + 16] = type;
    memcpy(key + size + 17, far->bytes, 16);
    CX_TRY(runner_hex(r, cx_bytes_from(key, size + 33), &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

static cx_status edge_record_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_bytes bytes;
    cx_edge edge;
    CX_TRY(put_again(r, item, "cbor", again_edge, &object, &bytes, err));
    CX_TRY(cx_edge_decode(bytes, &r->arena, &edge, err));
    CX_TRY(put_digest(
        r, &object, "smt_key_hash",
        cx_scheme_edge_key(CX_SCHEME_MATRIX_1, edge.src.bytes, edge.type, edge.dst.bytes), err));
    CX_TRY(
        put_digest(r, &object, "smt_value_hash", cx_scheme_value(CX_SCHEME_MATRIX_1, bytes), err));
    CX_TRY(put_edge_key(r, &object, "from_key", "e/from/", &edge.src, edge.type, &edge.dst, err));
    CX_TRY(put_edge_key(r, &object, "to_key", "e/to/", &edge.dst, edge.type, &edge.src, err));
    return cx_json_list_end_object(&object, out, err);
}

static cx_status version_record_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_bytes bytes;
    cx_version_record version;
    cx_digest hash;
    if (asks(item, "cbor_with_zero_hash"))
        CX_TRY(put_again(r, item, "cbor_with_zero_hash", again_version, &object, &bytes, err));
    CX_TRY(put_again(r, item, "cbor_final", again_version, &object, &bytes, err));
    CX_TRY(cx_version_decode(bytes, &r->arena, &version, err));
    CX_TRY(cx_version_hash(&version, cx_alloc_default(), &hash, err));
    CX_TRY(put_digest(r, &object, "version_hash", hash, err));
    runner_put_uint(r, &object, "type_code", version.type);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status manifest_record_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_bytes bytes;
    cx_manifest manifest;
    CX_TRY(put_again(r, item, "cbor", again_manifest, &object, &bytes, err));
    if (!cx_failed(cx_manifest_decode(bytes, &manifest, NULL)))
        CX_TRY(put_digest(r, &object, "overall_root", cx_manifest_overall(&manifest), err));
    return cx_json_list_end_object(&object, out, err);
}

static cx_status plain_got(runner *r, const cx_json *item, record_again *again, cx_json *out,
                           cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_bytes bytes;
    CX_TRY(put_again(r, item, "cbor", again, &object, &bytes, err));
    CX_TRY(put_digest(r, &object, "sha256", cx_digest_of(bytes), err));
    if (again == again_entry)
        CX_TRY(put_digest(r, &object, "leaf_hash", cx_scheme_entry(bytes), err));
    return cx_json_list_end_object(&object, out, err);
}

static cx_status checkpoint_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return plain_got(r, item, again_checkpoint_record, out, err);
}

static cx_status weights_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return plain_got(r, item, again_weights, out, err);
}

static cx_status entry_record_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return plain_got(r, item, again_entry, out, err);
}

/* --- journal.json ----------------------------------------------------------------------------- */

/* Encoded from the case's fields; decoded, its payload once more by its kind. */
static cx_status journal_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t seq = 0, created = 0;
    cx_bytes by, payload;
    cx_str kind;
    cx_json value;
    CX_TRY(runner_number(item, "seq", &seq, err));
    const cx_json *at = cx_json_get(item, CX_STR("created_at"));
    int64_t created_at = 0;
    if (at != NULL && !cx_json_int64(at, &created_at) && cx_json_uint64(at, &created))
        created_at = (int64_t)created;
    CX_TRY(runner_text(item, "kind", &kind, err));
    CX_TRY(runner_bytes(r, item, "created_by", &by, err));
    CX_TRY(runner_bytes(r, item, "payload", &payload, err));
    const cx_entry entry = {.seq = seq,
                            .kind = kind,
                            .created_at_ns = created_at,
                            .created_by = by,
                            .payload = payload};
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_entry_encode(&entry, &bytes);
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_digest leaf = cx_scheme_entry(cx_buf_bytes(&bytes));
    cx_entry back;
    cx_payload decoded;
    cx_status status = runner_hex(r, cx_buf_bytes(&bytes), &value, err);
    if (!cx_failed(status))
        status = cx_entry_decode(cx_buf_bytes(&bytes), &back, err);
    const cx_json *fields = cx_json_get(item, CX_STR("payload_fields"));
    if (!cx_failed(status) && fields != NULL && fields->type == CX_JSON_OBJECT)
        status = cx_payload_decode(cx_entry_kind_of(kind), payload, &r->arena, &decoded, err);
    cx_buf_done(&bytes);
    CX_TRY(status);
    cx_json_list_put(&object, CX_STR("cbor"), value);
    CX_TRY(put_digest(r, &object, "leaf_hash", leaf, err));
    return cx_json_list_end_object(&object, out, err);
}

/* --- codec.json: data, forms, truncation ------------------------------------------------------ */

static cx_status data_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t type;
    cx_bytes bytes;
    cx_data data;
    cx_forms forms;
    cx_json value;
    CX_TRY(runner_number(item, "type_code", &type, err));
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    CX_TRY(cx_data_decode((uint8_t)type, bytes, &r->arena, &data, err));
    CX_TRY(cx_forms_render(&data, &r->arena, &forms, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    cx_data_encode(&data, &buf);
    cx_status status = runner_hex(r, cx_buf_bytes(&buf), &value, err);
    if (!cx_failed(status)) {
        cx_json_list_put(&object, CX_STR("cbor"), value);
        cx_buf_clear(&buf);
        cx_forms_full(&data, &buf);
        status = runner_string(r, cx_buf_str(&buf), &value, err);
        cx_json_list_put(&object, CX_STR("form_full"), value);
    }
    cx_buf_done(&buf);
    CX_TRY(status);
    cx_json_list_put(&object, CX_STR("form_short"), cx_json_make_str(forms.brief));
    cx_json_list_put(&object, CX_STR("form_medium"), cx_json_make_str(forms.medium));
    cx_json_list_put(&object, CX_STR("type"), cx_json_make_str(cx_uri_type_name((uint8_t)type)));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(data_expect, "cbor", "form_full", "form_short", "form_medium", "type")

/* --- keys_uri.json, d11_seed.json ------------------------------------------------------------- */

static cx_status uri_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str text;
    cx_uri uri;
    cx_err why = {0};
    CX_TRY(runner_text(item, "uri", &text, err));
    bool good = !cx_failed(cx_memory_uri_parse(text, &uri, &why));
    return runner_string(r, good ? CX_STR("ok") : cx_str_z(why.tag != NULL ? why.tag : "error"),
                         out, err);
}

static cx_status expects_word(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str word;
    CX_TRY(runner_text(item, "cortex_expects", &word, err));
    return runner_string(r, word, out, err);
}

static cx_status ulid_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    cx_id id;
    char text[CX_ULID_SIZE];
    CX_TRY(runner_bytes(r, item, "id", &bytes, err));
    if (bytes.size != sizeof id.bytes)
        return cx_fail(err, CX_E_FORMAT, "an id of %zu bytes", bytes.size);
    memcpy(id.bytes, bytes.data, bytes.size);
    cx_ulid_format(&id, text);
    return runner_string(r, cx_str_from(text, sizeof text), out, err);
}

static cx_status ulid_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str text;
    CX_TRY(runner_text(item, "text", &text, err));
    return runner_string(r, text, out, err);
}

static cx_status seed_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes root_bytes;
    cx_digest root;
    cx_seed_input input = {0};
    char seed[CX_SEED_SIZE];
    CX_TRY(runner_text(item, "intent_id", &input.intent_id, err));
    CX_TRY(runner_text(item, "actor", &input.actor, err));
    CX_TRY(runner_text(item, "mtx_digest", &input.mtx_digest, err));
    CX_TRY(runner_text(item, "model_id", &input.model_id, err));
    CX_TRY(runner_bytes(r, item, asks(item, "overall_root") ? "overall_root" : "snapshot_hex",
                        &root_bytes, err));
    if (root_bytes.size == sizeof root.bytes) {
        memcpy(root.bytes, root_bytes.data, sizeof root.bytes);
        input.overall_root = &root;
    }
    CX_TRY(cx_seed_make(runner_file.scheme, &input, seed, err));
    return runner_string(r, cx_str_from(seed, sizeof seed), out, err);
}

static cx_status seed_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str seed;
    CX_TRY(runner_text(item, "seed", &seed, err));
    return runner_string(r, seed, out, err);
}

/* --- entries.json ----------------------------------------------------------------------------- */

static cx_status commitment_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes salt, payload;
    CX_TRY(runner_bytes(r, item, "salt", &salt, err));
    CX_TRY(runner_bytes(r, item, "payload", &payload, err));
    if (salt.size != 32)
        return cx_fail(err, CX_E_FORMAT, "a salt of %zu bytes", salt.size);
    cx_digest commitment = cx_scheme_payload_commitment(salt.data, payload);
    return runner_digest(r, &commitment, out, err);
}

static cx_status commitment_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str text;
    CX_TRY(runner_text(item, "commitment", &text, err));
    return runner_string(r, text, out, err);
}

/* salt and payload as they are kept next to the entry. */
static void run_pay_record(runner *r)
{
    cx_bytes salt, payload;
    cx_buf record;
    if (cx_failed(runner_bytes(r, runner_file.root, "salt", &salt, NULL)) ||
        cx_failed(runner_bytes(r, runner_file.root, "payload", &payload, NULL)))
        return;
    cx_buf_init(&record, cx_alloc_default());
    cx_buf_add(&record, salt.data, salt.size);
    cx_buf_add(&record, payload.data, payload.size);
    runner_value_hex(r, "/committed_entry/pay_record", cx_buf_bytes(&record));
    cx_buf_done(&record);
}

/* The seal's entry made again: what it says follows from the signed manifest. */
static CX_RESULT make_seal(runner *r, const cx_json *item, cx_buf *out, cx_err *err)
{
    cx_bytes manifest_bytes, entry_bytes, key;
    cx_manifest manifest;
    cx_finding finding;
    cx_entry entry;
    cx_payload payload = {.kind = CX_ENTRY_SEAL};
    cx_pubkey signer;
    cx_buf made;
    CX_TRY(runner_bytes(r, item, "manifest_signed_cbor", &manifest_bytes, err));
    CX_TRY(runner_bytes(r, item, "entry_cbor", &entry_bytes, err));
    CX_TRY(runner_bytes(r, item, "signer_pub", &key, err));
    if (key.size != sizeof signer.bytes)
        return cx_fail(err, CX_E_FORMAT, "'signer_pub' is not 32 bytes");
    memcpy(signer.bytes, key.data, key.size);
    CX_TRY(
        cx_manifest_verify(manifest_bytes, &signer, cx_alloc_default(), &manifest, &finding, err));
    if (finding.verdict != CX_HOLDS)
        return cx_fail(err, CX_E_FORMAT, "the signed manifest does not hold: %s", finding.reason);
    CX_TRY(cx_entry_decode(entry_bytes, &entry, err));
    payload.as.seal = (cx_payload_seal){.snapshot_seq = manifest.snapshot_seq,
                                        .overall_root = cx_manifest_overall(&manifest),
                                        .signed_by = manifest.signed_by,
                                        .signature = manifest.signature.bytes};
    CX_TRY(
        cx_manifest_digest(&manifest, cx_alloc_default(), &payload.as.seal.manifest_digest, err));
    cx_buf_init(&made, cx_alloc_default());
    cx_payload_encode(&payload, &made);
    entry.payload = cx_buf_bytes(&made);
    cx_entry_encode(&entry, out);
    cx_status status = cx_buf_check(&made, err);
    cx_buf_done(&made);
    return status;
}

static cx_status seal_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_buf entry;
    cx_bytes signed_bytes;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(put_again(r, item, "manifest_signed_cbor", again_manifest, &object, &signed_bytes, err));
    cx_buf_init(&entry, cx_alloc_default());
    cx_status status = make_seal(r, item, &entry, err);
    if (!cx_failed(status))
        status = runner_put_hex(r, &object, "entry_cbor", cx_buf_bytes(&entry), err);
    if (!cx_failed(status))
        status = put_digest(r, &object, "leaf_hash", cx_scheme_entry(cx_buf_bytes(&entry)), err);
    cx_buf_done(&entry);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(seal_expect, "manifest_signed_cbor", "entry_cbor", "leaf_hash")

static void run_entries(runner *r)
{
    static const runner_kind commitment = {"", commitment_got, commitment_expect};
    static const runner_kind entry = {"", entry_record_got, record_expect};
    static const runner_kind seal = {"", seal_got, seal_expect};
    static const char *const names[] = {"/committed_entry", "/redact_entry",
                                        "/redact_memory_entry"};
    runner_run_one(r, &commitment, "");
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        runner_run_one(r, &entry, names[i]);
    run_pay_record(r);
    runner_run_one(r, &seal, "/seal");
}

static void run_strict(runner *r)
{
    static const runner_kind kinds[] = {{"/accept", strict_got, accepted},
                                        {"/reject", strict_got, refused},
                                        {"/head_reject", head_got, refused}};
    static const runner_kind head = {"", head_got, accepted};
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        runner_run_list(r, &kinds[i], runner_file.path, runner_file.root);
    runner_run_one(r, &head, "/head_accept");
}

void runner_ledger_codecs(runner *r, cx_str name)
{
    static const runner_kind codec[] = {{"/heads", head_record_got, record_expect},
                                        {"/versions", version_record_got, record_expect},
                                        {"/edges", edge_record_got, record_expect},
                                        {"/checkpoint", checkpoint_got, record_expect},
                                        {"/manifest", manifest_record_got, record_expect},
                                        {"/salience/weights", weights_got, record_expect},
                                        {"/data", data_got, data_expect}};
    static const runner_kind journal = {"/cases", journal_got, record_expect};
    static const runner_kind uris = {"/uris", uri_got, expects_word};
    static const runner_kind ulids = {"/ulids", ulid_got, ulid_expect};
    static const runner_kind seeds = {"/cases", seed_got, seed_expect};
    if (cx_str_is(name, "cbor_strict.json"))
        run_strict(r);
    for (size_t i = 0; cx_str_is(name, "codec.json") && i < CX_COUNT_OF(codec); i++)
        runner_run_list(r, &codec[i], runner_file.path, runner_file.root);
    if (cx_str_is(name, "journal.json"))
        runner_run_list(r, &journal, runner_file.path, runner_file.root);
    if (cx_str_is(name, "keys_uri.json")) {
        runner_run_list(r, &uris, runner_file.path, runner_file.root);
        runner_run_list(r, &ulids, runner_file.path, runner_file.root);
    }
    if (cx_str_is(name, "d11_seed.json"))
        runner_run_list(r, &seeds, runner_file.path, runner_file.root);
    if (cx_str_is(name, "entries.json"))
        run_entries(r);
}
