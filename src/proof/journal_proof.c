/*
 * journal_proof.c - proofs about the journal in containers of their own (ledger.md §6).
 *
 * inclusion    {0: 1, 1: scheme, 2: tree_size, 3: index, 4: [hash...], 5: entry (o)}
 * consistency  {0: 1, 1: scheme, 2: size1, 3: size2, 4: [hash...]}
 */
#include "cbor/api.h"
#include "proof/proof_internal.h"

/* --- writing --------------------------------------------------------------------------------- */

static void encode_journal_proof(cx_scheme scheme, uint64_t first, uint64_t second,
                                 const cx_digest *path, size_t path_count, cx_bytes entry,
                                 cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(out, cx_scheme_name(scheme));
    cx_cbor_field(&fields, 2);
    cx_cbor_uint(out, first);
    cx_cbor_field(&fields, 3);
    cx_cbor_uint(out, second);
    cx_cbor_field(&fields, 4);
    cx_cbor_array(out, path_count);
    for (size_t i = 0; i < path_count; i++)
        cx_cbor_digest(out, &path[i]);
    if (entry.size != 0) {
        cx_cbor_field(&fields, 5);
        cx_cbor_bytes(out, entry);
    }
    cx_cbor_fields_end(&fields);
}

void cx_inclusion_encode(const cx_inclusion *proof, cx_buf *out)
{
    encode_journal_proof(proof->scheme, proof->tree_size, proof->index, proof->path,
                         proof->path_count, proof->entry, out);
}

void cx_consistency_encode(const cx_consistency *proof, cx_buf *out)
{
    encode_journal_proof(proof->scheme, proof->size1, proof->size2, proof->path, proof->path_count,
                         (cx_bytes){NULL, 0}, out);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Both containers, told apart by what field 5 may be. */
typedef struct container {
    cx_scheme scheme;
    uint64_t first, second;
    const cx_digest *path;
    size_t path_count;
    cx_bytes entry;
} container;

static void read_schema(cx_cbor_reader *reader, const cx_cbor_members *members)
{
    uint64_t schema = cx_cbor_read_uint(reader);
    if (cx_cbor_ok(reader) && schema != 1)
        cx_cbor_reject(reader, members->key_offset, "found schema %llu, expected 1",
                       (unsigned long long)schema);
}

static void read_scheme(cx_cbor_reader *reader, const cx_cbor_members *members, cx_scheme *out)
{
    cx_str name = cx_cbor_read_text(reader);
    if (cx_cbor_ok(reader) && !cx_scheme_parse(name, out))
        cx_cbor_reject(reader, members->key_offset, "found a scheme that is not known");
}

static cx_status read_container(cx_bytes bytes, const char *what, size_t path_max, bool with_entry,
                                cx_arena *arena, container *out, cx_err *err)
{
    cx_cbor_reader reader;
    cx_digest *path = CX_ARENA_ARRAY(arena, cx_digest, path_max);
    if (path == NULL)
        return cx_fail_nomem(err);
    memset(out, 0, sizeof *out);
    out->path = path;
    cx_cbor_begin(&reader, bytes, what);
    cx_cbor_members members = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &members)) {
        switch (members.key) {
        case 0: read_schema(&reader, &members); break;
        case 1: read_scheme(&reader, &members, &out->scheme); break;
        case 2: out->first = cx_cbor_read_uint(&reader); break;
        case 3: out->second = cx_cbor_read_uint(&reader); break;
        case 4:
            out->path_count = cx_cbor_read_array(&reader, path_max);
            for (size_t i = 0; i < out->path_count && cx_cbor_ok(&reader); i++)
                path[i] = cx_cbor_read_digest(&reader);
            break;
        case 5:
            if (!with_entry) {
                cx_cbor_reject_member(&reader, &members);
                break;
            }
            out->entry = cx_cbor_read_bytes(&reader);
            if (out->entry.size == 0)
                cx_cbor_reject_empty(&reader, &members);
            break;
        default: cx_cbor_reject_member(&reader, &members);
        }
    }
    cx_cbor_require(&reader, &members, 0x1f);
    return cx_cbor_end(&reader, err);
}

cx_status cx_inclusion_decode(cx_bytes bytes, cx_arena *arena, cx_inclusion *out, cx_err *err)
{
    container c;
    CX_TRY(read_container(bytes, "inclusion proof", CX_INCLUSION_PATH_MAX, true, arena, &c, err));
    *out = (cx_inclusion){.scheme = c.scheme,
                          .tree_size = c.first,
                          .index = c.second,
                          .path = c.path,
                          .path_count = c.path_count,
                          .entry = c.entry};
    return CX_SUCCESS;
}

cx_status cx_consistency_decode(cx_bytes bytes, cx_arena *arena, cx_consistency *out, cx_err *err)
{
    container c;
    CX_TRY(
        read_container(bytes, "consistency proof", CX_CONSISTENCY_PATH_MAX, false, arena, &c, err));
    *out = (cx_consistency){.scheme = c.scheme,
                            .size1 = c.first,
                            .size2 = c.second,
                            .path = c.path,
                            .path_count = c.path_count};
    return CX_SUCCESS;
}

/* --- checking -------------------------------------------------------------------------------- */

/* The leaf hash in question: of the carried entry, of the caller, or of both when they agree. */
static cx_status find_leaf(const cx_inclusion *proof, const cx_digest *given, cx_digest *out_leaf,
                           cx_finding *out, cx_err *err)
{
    cx_entry entry;
    cx_err found;
    if (proof->entry.size == 0) {
        if (given == NULL)
            cx_finding_set(out, CX_INDETERMINATE, "NoLeaf", CX_FINDING_WHOLE,
                           "the proof carries no entry, and no leaf hash was given");
        else
            *out_leaf = *given;
        return CX_SUCCESS;
    }
    *out_leaf = cx_scheme_entry(proof->entry);
    if (given != NULL && !cx_digest_eq(given, out_leaf)) {
        cx_finding_set(out, CX_BROKEN, "LeafMismatch", CX_FINDING_WHOLE,
                       "the entry in the proof is not the one asked about");
        return CX_SUCCESS;
    }
    cx_status status = cx_entry_decode(proof->entry, &entry, &found);
    CX_TRY(cx_finding_from(status, &found, "LeafMismatch", out, err));
    out->offset = CX_NO_OFFSET; /* it counts from the entry */
    if (!cx_failed(status) && entry.seq != proof->index)
        cx_finding_set(out, CX_BROKEN, "LeafMismatch", CX_FINDING_WHOLE,
                       "the entry has seq %llu, the proof is about leaf %llu",
                       (unsigned long long)entry.seq, (unsigned long long)proof->index);
    return CX_SUCCESS;
}

static bool size_fits(const cx_journal_point *journal, uint64_t size, const char *which,
                      cx_finding *out)
{
    if (journal->size == CX_JOURNAL_SIZE_UNKNOWN || journal->size == size)
        return true;
    cx_finding_set(out, CX_BROKEN, "SizeMismatch", CX_FINDING_WHOLE,
                   "the proof is about %llu entries, the %s has %llu", (unsigned long long)size,
                   which, (unsigned long long)journal->size);
    return false;
}

cx_status cx_inclusion_leads_to(cx_bytes bytes, const cx_digest *leaf_hash, cx_arena *arena,
                                cx_inclusion *out_proof, cx_journal_point *out_journal,
                                cx_finding *out, cx_err *err)
{
    cx_inclusion proof;
    cx_digest leaf, root;
    cx_err found;
    cx_finding_init(out);
    cx_status status = cx_inclusion_decode(bytes, arena, &proof, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", out, err));
    if (out->verdict == CX_HOLDS)
        CX_TRY(find_leaf(&proof, leaf_hash, &leaf, out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    if (!cx_mmr_inclusion_root(proof.scheme, proof.index, proof.tree_size, &leaf, proof.path,
                               proof.path_count, &root)) {
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "%zu hashes do not lead from leaf %llu to the root of %llu entries",
                       proof.path_count, (unsigned long long)proof.index,
                       (unsigned long long)proof.tree_size);
        return CX_SUCCESS;
    }
    if (out_proof != NULL)
        *out_proof = proof;
    *out_journal = (cx_journal_point){proof.tree_size, root};
    return CX_SUCCESS;
}

cx_status cx_inclusion_verify(cx_bytes bytes, const cx_digest *leaf_hash,
                              const cx_journal_point *journal, cx_arena *arena, cx_finding *out,
                              cx_err *err)
{
    cx_journal_point found;
    CX_TRY(cx_inclusion_leads_to(bytes, leaf_hash, arena, NULL, &found, out, err));
    if (out->verdict != CX_HOLDS || !size_fits(journal, found.size, "journal", out))
        return CX_SUCCESS;
    if (!cx_digest_eq(&found.root, &journal->root))
        cx_finding_set(out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                       "the path leads to another root");
    return CX_SUCCESS;
}

cx_status cx_consistency_verify(cx_bytes bytes, const cx_journal_point *older,
                                const cx_journal_point *newer, cx_arena *arena, cx_finding *out,
                                cx_err *err)
{
    cx_consistency proof = {0};
    cx_err found;
    cx_finding_init(out);
    cx_status status = cx_consistency_decode(bytes, arena, &proof, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", out, err));
    if (out->verdict != CX_HOLDS || !size_fits(older, proof.size1, "older journal", out) ||
        !size_fits(newer, proof.size2, "newer journal", out))
        return CX_SUCCESS;
    if (proof.size1 > proof.size2)
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "the older size %llu is larger than the newer %llu",
                       (unsigned long long)proof.size1, (unsigned long long)proof.size2);
    else if (!cx_mmr_consistency_holds(proof.scheme, proof.size1, &older->root, proof.size2,
                                       &newer->root, proof.path, proof.path_count))
        cx_finding_set(out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                       "the newer journal does not begin with the %llu entries of the older",
                       (unsigned long long)proof.size1);
    return CX_SUCCESS;
}
