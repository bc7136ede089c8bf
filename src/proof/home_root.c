/*
 * home_root.c - leaves, roots and proofs of the tree over all actors of a data directory.
 *
 * leaf     {0: 1, 1: actor, 2: scheme, 3: size, 4: overall root}
 * payload  {0: 1, 1: actors, 2: root, 3: entries}
 * proof    {0: 1, 1: "cortex.home-proof", 2: leaf, 3: index, 4: [hash...], 5: inclusion,
 *           6: checkpoint (o)}
 */
#include "proof/home_root.h"

#include "base/api.h"
#include "proof/codec.h"
#include "proof/entry.h"
#include "proof/proof_internal.h"

enum { ACTOR_MAX = 256 };

/* --- leaves ----------------------------------------------------------------------------------- */

void cx_home_leaf_encode(const cx_home_leaf *leaf, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(out, leaf->actor);
    cx_cbor_field(&fields, 2);
    cx_cbor_text(out, cx_scheme_name(leaf->scheme));
    cx_cbor_field(&fields, 3);
    cx_cbor_uint(out, leaf->size);
    cx_cbor_field(&fields, 4);
    cx_cbor_digest(out, &leaf->overall);
    cx_cbor_fields_end(&fields);
}

static void read_scheme(cx_decoder *decoder, cx_scheme *out)
{
    if (!cx_scheme_parse(cx_cbor_read_text(&decoder->reader), out) && cx_cbor_ok(&decoder->reader))
        cx_cbor_reject(&decoder->reader, decoder->members.key_offset,
                       "found a scheme that is not known");
}

cx_status cx_home_leaf_decode(cx_bytes bytes, cx_home_leaf *out, cx_err *err)
{
    cx_decoder decoder;
    cx_home_leaf leaf = {.size = 0};
    cx_decoder_begin(&decoder, bytes, "home leaf", NULL);
    while (cx_decoder_next(&decoder)) {
        switch (decoder.members.key) {
        case 0: cx_decode_schema(&decoder, 1); break;
        case 1:
            leaf.actor = cx_decode_text_max(&decoder, ACTOR_MAX);
            if (leaf.actor.size == 0 && cx_cbor_ok(&decoder.reader))
                cx_cbor_reject_empty(&decoder.reader, &decoder.members);
            break;
        case 2: read_scheme(&decoder, &leaf.scheme); break;
        case 3: leaf.size = cx_cbor_read_uint(&decoder.reader); break;
        case 4: leaf.overall = cx_cbor_read_digest(&decoder.reader); break;
        default: cx_cbor_reject_member(&decoder.reader, &decoder.members);
        }
    }
    CX_TRY(cx_decoder_end(&decoder, 0x1f, err));
    *out = leaf;
    return CX_SUCCESS;
}

cx_digest cx_home_leaf_hash(cx_bytes leaf)
{
    static const char domain[] = "cortex.home.leaf.v1";
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, leaf.data, leaf.size);
    return cx_sha256_end(&hash);
}

/* --- the payload ------------------------------------------------------------------------------ */

void cx_home_root_encode(const cx_home_root *root, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_uint(out, root->actors);
    cx_cbor_field(&fields, 2);
    cx_cbor_digest(out, &root->root);
    cx_cbor_field(&fields, 3);
    cx_cbor_uint(out, root->entries);
    cx_cbor_fields_end(&fields);
}

cx_status cx_home_root_decode(cx_bytes payload, cx_home_root *out, cx_err *err)
{
    cx_decoder decoder;
    cx_home_root root = {.actors = 0};
    cx_decoder_begin(&decoder, payload, "home root", NULL);
    while (cx_decoder_next(&decoder)) {
        switch (decoder.members.key) {
        case 0: cx_decode_schema(&decoder, 1); break;
        case 1: root.actors = cx_cbor_read_uint(&decoder.reader); break;
        case 2: root.root = cx_cbor_read_digest(&decoder.reader); break;
        case 3: root.entries = cx_cbor_read_uint(&decoder.reader); break;
        default: cx_cbor_reject_member(&decoder.reader, &decoder.members);
        }
    }
    CX_TRY(cx_decoder_end(&decoder, 0xf, err));
    *out = root;
    return CX_SUCCESS;
}

/* --- proofs ----------------------------------------------------------------------------------- */

void cx_home_proof_encode(const cx_home_proof *proof, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(out, CX_STR(CX_HOME_PROOF_MAGIC));
    cx_cbor_field(&fields, 2);
    cx_cbor_bytes(out, proof->leaf);
    cx_cbor_field(&fields, 3);
    cx_cbor_uint(out, proof->index);
    cx_cbor_field(&fields, 4);
    cx_cbor_array(out, proof->path_count);
    for (size_t i = 0; i < proof->path_count; i++)
        cx_cbor_digest(out, &proof->path[i]);
    cx_cbor_field(&fields, 5);
    cx_cbor_bytes(out, proof->inclusion);
    if (proof->checkpoint.size != 0) {
        cx_cbor_field(&fields, 6);
        cx_cbor_bytes(out, proof->checkpoint);
    }
    cx_cbor_fields_end(&fields);
}

static void read_proof_member(cx_decoder *decoder, cx_digest *path, cx_home_proof *out)
{
    cx_cbor_reader *reader = &decoder->reader;
    switch (decoder->members.key) {
    case 0: cx_decode_schema(decoder, 1); break;
    case 1:
        if (!cx_str_is(cx_cbor_read_text(reader), CX_HOME_PROOF_MAGIC) && cx_cbor_ok(reader))
            cx_cbor_reject(reader, decoder->members.key_offset,
                           "expected \"" CX_HOME_PROOF_MAGIC "\"");
        break;
    case 2: out->leaf = cx_cbor_read_bytes(reader); break;
    case 3: out->index = cx_cbor_read_uint(reader); break;
    case 4:
        out->path_count = cx_cbor_read_array(reader, CX_INCLUSION_PATH_MAX);
        for (size_t i = 0; i < out->path_count && cx_cbor_ok(reader); i++)
            path[i] = cx_cbor_read_digest(reader);
        break;
    case 5: out->inclusion = cx_cbor_read_bytes(reader); break;
    case 6: out->checkpoint = cx_decode_bytes_o(decoder); break;
    default: cx_cbor_reject_member(reader, &decoder->members);
    }
}

cx_status cx_home_proof_decode(cx_bytes bytes, cx_arena *arena, cx_home_proof *out, cx_err *err)
{
    cx_decoder decoder;
    cx_digest *path = CX_ARENA_ARRAY(arena, cx_digest, CX_INCLUSION_PATH_MAX);
    if (path == NULL)
        return cx_fail_nomem(err);
    cx_home_proof proof = {.path = path};
    cx_decoder_begin(&decoder, bytes, "home proof", arena);
    while (cx_decoder_next(&decoder))
        read_proof_member(&decoder, path, &proof);
    CX_TRY(cx_decoder_end(&decoder, 0x3f, err));
    *out = proof;
    return CX_SUCCESS;
}

/* The root that the proof's entry records. */
static cx_status read_recorded(const cx_inclusion *inclusion, cx_home_root *out, cx_finding *found,
                               cx_err *err)
{
    cx_entry entry;
    cx_err reason = {0};
    cx_status status = cx_entry_decode(inclusion->entry, &entry, &reason);
    CX_TRY(cx_finding_from(status, &reason, "NonCanonical", found, err));
    if (found->verdict != CX_HOLDS)
        return CX_SUCCESS;
    if (!cx_str_is(entry.kind, CX_HOME_ROOT_KIND) || entry.committed) {
        cx_finding_set(found, CX_BROKEN, "NotHomeRoot", CX_FINDING_WHOLE,
                       "the journal's entry records no home root");
        return CX_SUCCESS;
    }
    status = cx_home_root_decode(entry.payload, out, &reason);
    return cx_finding_from(status, &reason, "NonCanonical", found, err);
}

static void check_path(const cx_home_proof *proof, const cx_home_root *recorded, cx_finding *out)
{
    cx_digest leaf = cx_home_leaf_hash(proof->leaf), root;
    if (!cx_mmr_inclusion_root(CX_SCHEME_CORTEX_1, proof->index, recorded->actors, &leaf,
                               proof->path, proof->path_count, &root))
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "the path does not fit leaf %llu of %llu", (unsigned long long)proof->index,
                       (unsigned long long)recorded->actors);
    else if (!cx_digest_eq(&root, &recorded->root))
        cx_finding_set(out, CX_BROKEN, "HomeRootMismatch", CX_FINDING_WHOLE,
                       "the leaf does not lead to the home root that is recorded");
}

cx_status cx_home_proof_verify(const cx_home_proof *proof, const cx_journal_point *journal,
                               cx_arena *arena, cx_home_leaf *out_leaf, cx_home_root *out_root,
                               cx_journal_point *out_journal, cx_finding *out, cx_err *err)
{
    cx_inclusion inclusion = {.tree_size = 0};
    cx_err reason = {0};
    cx_finding_init(out);
    cx_status status = cx_home_leaf_decode(proof->leaf, out_leaf, &reason);
    CX_TRY(cx_finding_from(status, &reason, "NonCanonical", out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    CX_TRY(cx_inclusion_leads_to(proof->inclusion, NULL, arena, &inclusion, out_journal, out, err));
    if (out->verdict == CX_HOLDS && inclusion.scheme != CX_SCHEME_CORTEX_1)
        cx_finding_set(out, CX_BROKEN, "NotHomeRoot", CX_FINDING_WHOLE,
                       "the journal of home roots is in another scheme than cortex-1");
    if (out->verdict == CX_HOLDS)
        CX_TRY(read_recorded(&inclusion, out_root, out, err));
    if (out->verdict == CX_HOLDS)
        check_path(proof, out_root, out);
    if (out->verdict == CX_HOLDS && journal != NULL)
        CX_TRY(cx_inclusion_verify(proof->inclusion, NULL, journal, arena, out, err));
    return CX_SUCCESS;
}
