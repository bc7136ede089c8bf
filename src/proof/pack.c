/*
 * pack.c - the proof pack (docs/formats/proof.md).
 *
 *     {0: 1, 1: "cortex.proof", 2: scheme, 3: MultiProof, 4: manifest, 5: [{0: uri, 1: claim}...],
 *      6: [leaf or null...] (o), 7: inclusion (o), 8: checkpoint note (o)}
 *
 *   K1  As many questions as keys, in the same order; question i names the key of item i.
 *   K2  claim 0 absent, 1 member, 2 erased member: exactly what the proof gives.
 *   K3  A record shown is of the type asked, and has reached the version asked.
 *   K4  Field 6 only in matrix-1, one a key.
 */
#include "base/api.h"
#include "cbor/api.h"
#include "proof/pack.h"
#include "proof/proof_internal.h"

enum { CLAIM_ABSENT = 0, CLAIM_MEMBER = 1, CLAIM_ERASED = 2 };

/* --- writing --------------------------------------------------------------------------------- */

static uint64_t claim_code(cx_membership claim)
{
    return claim == CX_ABSENT ? CLAIM_ABSENT : claim == CX_MEMBER ? CLAIM_MEMBER : CLAIM_ERASED;
}

static void encode_lists(const cx_pack *pack, cx_cbor_fields *fields, cx_buf *out)
{
    cx_cbor_field(fields, 5);
    cx_cbor_array(out, pack->question_count);
    for (size_t i = 0; i < pack->question_count; i++) {
        cx_cbor_map(out, 2);
        cx_cbor_uint(out, 0);
        cx_cbor_text(out, pack->questions[i].uri);
        cx_cbor_uint(out, 1);
        cx_cbor_uint(out, claim_code(pack->questions[i].claim));
    }
    if (pack->leaves == NULL)
        return;
    cx_cbor_field(fields, 6);
    cx_cbor_array(out, pack->question_count);
    for (size_t i = 0; i < pack->question_count; i++) {
        if (pack->leaves[i].size == 0)
            cx_cbor_null(out);
        else
            cx_cbor_bytes(out, pack->leaves[i]);
    }
}

cx_status cx_pack_encode(const cx_pack *pack, cx_buf *out, cx_err *err)
{
    size_t start = out->size;
    cx_cbor_fields fields;
    CX_ASSERT(pack->leaves == NULL || pack->scheme == CX_SCHEME_MATRIX_1);
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(out, CX_STR(CX_PACK_MAGIC));
    cx_cbor_field(&fields, 2);
    cx_cbor_text(out, cx_scheme_name(pack->scheme));
    cx_cbor_field(&fields, 3);
    cx_cbor_bytes(out, pack->proof);
    cx_cbor_field(&fields, 4);
    cx_cbor_bytes(out, pack->manifest);
    encode_lists(pack, &fields, out);
    if (pack->inclusion.size != 0) {
        cx_cbor_field(&fields, 7);
        cx_cbor_bytes(out, pack->inclusion);
    }
    if (pack->checkpoint.size != 0) {
        cx_cbor_field(&fields, 8);
        cx_cbor_bytes(out, pack->checkpoint);
    }
    cx_cbor_fields_end(&fields);
    cx_status status = cx_buf_check(out, err);
    if (!cx_failed(status) && out->size - start > CX_PROOF_BYTES_MAX)
        status = cx_fail(err, CX_E_LIMIT, "the proof pack has %zu bytes, expected at most %u",
                         out->size - start, CX_PROOF_BYTES_MAX);
    if (cx_failed(status))
        out->size = start;
    return status;
}

/* --- reading --------------------------------------------------------------------------------- */

typedef struct pack_reader {
    cx_cbor_reader cbor;
    cx_arena *arena;
    bool no_memory;
    size_t leaf_count;
} pack_reader;

static void read_question(cx_cbor_reader *cbor, cx_pack_question *out)
{
    static const cx_membership claims[] = {CX_ABSENT, CX_MEMBER, CX_MEMBER_ERASED};
    cx_cbor_members members = cx_cbor_read_members(cbor);
    while (cx_cbor_next_member(cbor, &members)) {
        switch (members.key) {
        case 0:
            out->uri = cx_cbor_read_text(cbor);
            if (out->uri.size > CX_PACK_QUESTION_SIZE_MAX)
                cx_cbor_reject(cbor, members.key_offset, "expected at most 256 bytes of URI");
            break;
        case 1: out->claim = claims[cx_cbor_read_uint_max(cbor, CLAIM_ERASED)]; break;
        default: cx_cbor_reject_member(cbor, &members);
        }
    }
    cx_cbor_require(cbor, &members, 0x3);
}

static void read_questions(pack_reader *reader, cx_pack *out)
{
    size_t count = cx_cbor_read_array(&reader->cbor, CX_PROOF_KEYS_MAX);
    cx_pack_question *questions = CX_ARENA_ARRAY(reader->arena, cx_pack_question, count + 1);
    reader->no_memory = reader->no_memory || questions == NULL;
    for (size_t i = 0; i < count && cx_cbor_ok(&reader->cbor) && !reader->no_memory; i++)
        read_question(&reader->cbor, &questions[i]);
    out->questions = questions;
    out->question_count = count;
}

static void read_leaves(pack_reader *reader, cx_pack *out)
{
    size_t offset = reader->cbor.offset;
    size_t count = cx_cbor_read_array(&reader->cbor, CX_PROOF_KEYS_MAX);
    cx_bytes *leaves = CX_ARENA_ARRAY(reader->arena, cx_bytes, count + 1);
    reader->no_memory = reader->no_memory || leaves == NULL;
    for (size_t i = 0; i < count && cx_cbor_ok(&reader->cbor) && !reader->no_memory; i++) {
        leaves[i] = (cx_bytes){NULL, 0};
        if (cx_cbor_skip_null(&reader->cbor))
            continue;
        size_t at = reader->cbor.offset;
        leaves[i] = cx_cbor_read_bytes(&reader->cbor);
        if (leaves[i].size == 0 && cx_cbor_ok(&reader->cbor))
            cx_cbor_reject(&reader->cbor, at, "expected a record or null");
    }
    if (cx_cbor_ok(&reader->cbor) &&
        (count != out->question_count || out->scheme != CX_SCHEME_MATRIX_1))
        cx_cbor_reject(&reader->cbor, offset,
                       "expected records with matrix-1 only, one a question");
    out->leaves = leaves;
}

static cx_bytes read_optional(pack_reader *reader, const cx_cbor_members *members)
{
    cx_bytes bytes = cx_cbor_read_bytes(&reader->cbor);
    if (bytes.size == 0 && cx_cbor_ok(&reader->cbor))
        cx_cbor_reject_empty(&reader->cbor, members);
    return bytes;
}

static void read_member(pack_reader *reader, const cx_cbor_members *members, cx_pack *out)
{
    cx_cbor_reader *cbor = &reader->cbor;
    switch (members->key) {
    case 0:
        if (cx_cbor_read_uint(cbor) != 1 && cx_cbor_ok(cbor))
            cx_cbor_reject(cbor, members->key_offset, "expected schema 1");
        break;
    case 1:
        if (!cx_str_is(cx_cbor_read_text(cbor), CX_PACK_MAGIC) && cx_cbor_ok(cbor))
            cx_cbor_reject(cbor, members->key_offset, "expected \"" CX_PACK_MAGIC "\"");
        break;
    case 2:
        if (!cx_scheme_parse(cx_cbor_read_text(cbor), &out->scheme) && cx_cbor_ok(cbor))
            cx_cbor_reject(cbor, members->key_offset, "found a scheme that is not known");
        break;
    case 3: out->proof = cx_cbor_read_bytes(cbor); break;
    case 4: out->manifest = cx_cbor_read_bytes(cbor); break;
    case 5: read_questions(reader, out); break;
    case 6: read_leaves(reader, out); break;
    case 7: out->inclusion = read_optional(reader, members); break;
    case 8: out->checkpoint = read_optional(reader, members); break;
    default: cx_cbor_reject_member(cbor, members);
    }
}

cx_status cx_pack_decode(cx_bytes bytes, cx_arena *arena, cx_pack *out, cx_err *err)
{
    pack_reader reader = {.arena = arena};
    cx_pack pack = {0};
    cx_cbor_begin(&reader.cbor, bytes, "proof pack");
    cx_cbor_members members = cx_cbor_read_members(&reader.cbor);
    while (!reader.no_memory && cx_cbor_next_member(&reader.cbor, &members))
        read_member(&reader, &members, &pack);
    if (reader.no_memory)
        return cx_fail_nomem(err);
    cx_cbor_require(&reader.cbor, &members, 0x3f);
    CX_TRY(cx_cbor_end(&reader.cbor, err));
    *out = pack;
    return CX_SUCCESS;
}

/* --- checking -------------------------------------------------------------------------------- */

static void set_mismatch(cx_finding *out, size_t at, const char *why)
{
    cx_finding_set(out, CX_BROKEN, "QuestionMismatch", at, "question %zu: %s", at, why);
}

/* K3; the record was decoded once already, when the proof was checked. */
static cx_status check_record(const cx_uri *uri, const cx_proof_item *item, size_t at,
                              cx_arena *arena, cx_finding *out, cx_err *err)
{
    cx_head head;
    if (uri->is_edge || item->leaf.size == 0)
        return CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    cx_status status = cx_head_decode(item->leaf, arena, &head, err);
    cx_arena_reset(arena, mark);
    CX_TRY(status);
    if (head.type != uri->type)
        set_mismatch(out, at, "the memory is of another type than the one asked about");
    else if (head.current_version < uri->version)
        set_mismatch(out, at, "the memory has not reached the version asked about");
    return CX_SUCCESS;
}

static cx_status check_question(const cx_pack *pack, const cx_multiproof *proof, size_t at,
                                cx_arena *arena, cx_finding *out, cx_err *err)
{
    const cx_proof_item *item = &proof->items[at];
    cx_namespace asked;
    cx_uri uri;
    cx_err found;
    if (cx_failed(cx_uri_parse(pack->questions[at].uri, &uri, &found))) {
        set_mismatch(out, at, found.message);
        return CX_SUCCESS;
    }
    asked = uri.is_edge ? CX_NAMESPACE_EDGES : CX_NAMESPACE_MEMORIES;
    cx_digest key = cx_uri_key(&uri, proof->scheme);
    if (!cx_str_eq(proof->name_space, cx_namespace_name(asked)))
        set_mismatch(out, at, "it is about the other namespace");
    else if (!cx_digest_eq(&key, &item->path.key))
        set_mismatch(out, at, "the proof is about another key");
    else if (pack->questions[at].claim != item->kind)
        set_mismatch(out, at, "the proof does not show what is claimed");
    else
        return check_record(&uri, item, at, arena, out, err);
    return CX_SUCCESS;
}

cx_status cx_pack_verify(const cx_pack *pack, cx_arena *arena, cx_multiproof *out_proof,
                         cx_manifest *out_manifest, cx_finding *out, cx_err *err)
{
    cx_multiproof proof;
    cx_multiproof_check check = {.name_space = CX_NAMESPACE_ANY,
                                 .leaves = pack->leaves,
                                 .leaf_count = pack->leaves == NULL ? 0 : pack->question_count};
    CX_TRY(cx_manifest_verify(pack->manifest, NULL, arena->alloc, out_manifest, out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    CX_TRY(cx_multiproof_verify(pack->proof, pack->manifest, &check, arena, &proof, out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    if (proof.scheme != pack->scheme)
        cx_finding_set(out, CX_BROKEN, "SchemeMismatch", CX_FINDING_WHOLE,
                       "the pack names another scheme than its proof");
    else if (proof.count != pack->question_count)
        cx_finding_set(out, CX_BROKEN, "QuestionMismatch", CX_FINDING_WHOLE,
                       "%zu questions come with a proof of %zu keys", pack->question_count,
                       proof.count);
    for (size_t i = 0; i < proof.count && out->verdict == CX_HOLDS; i++)
        CX_TRY(check_question(pack, &proof, i, arena, out, err));
    if (out_proof != NULL)
        *out_proof = proof;
    return CX_SUCCESS;
}

static cx_status check_seal(const cx_entry *entry, const cx_manifest *manifest, cx_arena *arena,
                            cx_finding *out, cx_err *err)
{
    cx_payload payload;
    cx_digest digest;
    cx_err found;
    cx_entry_kind kind = cx_entry_kind_of(entry->kind);
    CX_TRY(cx_manifest_digest(manifest, arena->alloc, &digest, err));
    if (kind != CX_ENTRY_SEAL) {
        cx_finding_set(out, CX_BROKEN, "SealMismatch", CX_FINDING_WHOLE, "the entry is no seal");
        return CX_SUCCESS;
    }
    cx_status status = cx_payload_decode(kind, entry->payload, arena, &payload, &found);
    CX_TRY(cx_finding_from(status, &found, "SealMismatch", out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    const cx_payload_seal *seal = &payload.as.seal;
    if (seal->snapshot_seq != manifest->snapshot_seq ||
        !cx_digest_eq(&seal->manifest_digest, &digest) ||
        !cx_digest_eq(&seal->overall_root, &manifest->overall_root))
        cx_finding_set(out, CX_BROKEN, "SealMismatch", CX_FINDING_WHOLE,
                       "the entry seals another manifest");
    else if (!manifest->signature.null &&
             (!cx_str_eq(seal->signed_by, manifest->signed_by) ||
              !cx_str_eq(cx_bytes_str(seal->signature), cx_bytes_str(manifest->signature.bytes))))
        cx_finding_set(out, CX_BROKEN, "SealMismatch", CX_FINDING_WHOLE,
                       "the entry names another signer or signature than the manifest");
    return CX_SUCCESS;
}

cx_status cx_pack_verify_seal(const cx_pack *pack, const cx_manifest *manifest,
                              const cx_journal_point *journal, cx_arena *arena, cx_finding *out,
                              cx_err *err)
{
    cx_inclusion inclusion;
    cx_entry entry;
    CX_TRY(cx_inclusion_verify(pack->inclusion, NULL, journal, arena, out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    /* It verified, so both decode. */
    CX_TRY(cx_inclusion_decode(pack->inclusion, arena, &inclusion, err));
    CX_TRY(cx_entry_decode(inclusion.entry, &entry, err));
    if (inclusion.scheme != pack->scheme) {
        cx_finding_set(out, CX_BROKEN, "SchemeMismatch", CX_FINDING_WHOLE,
                       "the seal's proof is of another scheme");
        return CX_SUCCESS;
    }
    return check_seal(&entry, manifest, arena, out, err);
}
