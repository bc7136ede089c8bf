/*
 * manifest.c - the bytes of manifests, their digest and the root they imply (ledger.md §9).
 */
#include "crypto/api.h"
#include "proof/codec.h"

#define BIT(key) (UINT64_C(1) << (key))
#define SCHEMA_MATRIX_1 1
#define SCHEMA_CORTEX_1 2

static const cx_str name_edges = {"edges", 5};
static const cx_str name_memories = {"memories", 8};

static void write_roots(cx_cbor_fields *outer, const cx_manifest *manifest)
{
    cx_buf *out = outer->out;
    cx_cbor_field(outer, 5);
    if (manifest->state_roots_null) {
        cx_cbor_null(out);
        return;
    }
    cx_cbor_map(out, (manifest->has_edges ? 1u : 0u) + (manifest->has_memories ? 1u : 0u));
    /* By encoded key: the shorter name first. */
    if (manifest->has_edges) {
        cx_cbor_text(out, name_edges);
        cx_cbor_digest(out, &manifest->edges_root);
    }
    if (manifest->has_memories) {
        cx_cbor_text(out, name_memories);
        cx_cbor_digest(out, &manifest->memories_root);
    }
}

static void write_counters(cx_cbor_fields *outer, const cx_manifest *manifest)
{
    cx_cbor_fields fields;
    cx_cbor_field(outer, 11);
    cx_cbor_fields_begin(&fields, outer->out);
    cx_codec_uint(&fields, 1, manifest->live_memories);
    cx_codec_uint(&fields, 2, manifest->edge_count);
    cx_codec_uint_o(&fields, 3, manifest->tombstoned);
    cx_cbor_fields_end(&fields);
}

static void write_manifest(const cx_manifest *manifest, bool body, cx_buf *out)
{
    bool cortex = manifest->scheme == CX_SCHEME_CORTEX_1;
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, cortex ? SCHEMA_CORTEX_1 : SCHEMA_MATRIX_1);
    cx_codec_text(&fields, 1, manifest->actor);
    cx_codec_uint(&fields, 2, manifest->snapshot_seq);
    cx_codec_uint(&fields, 3, manifest->journal_size);
    cx_codec_digest(&fields, 4, &manifest->journal_root);
    write_roots(&fields, manifest);
    cx_codec_digest(&fields, 6, &manifest->overall_root);
    cx_codec_int(&fields, 7, manifest->created_ns);
    cx_codec_text_o(&fields, 8, manifest->trigger);
    if (!body) {
        cx_codec_text_o(&fields, 9, manifest->signed_by);
        if (!manifest->signature.null)
            cx_codec_bytes_o(&fields, 10, manifest->signature.bytes);
    }
    write_counters(&fields, manifest);
    if (cortex)
        cx_codec_text(&fields, 12, cx_scheme_name(manifest->scheme));
    cx_cbor_fields_end(&fields);
}

void cx_manifest_encode(const cx_manifest *manifest, cx_buf *out)
{
    write_manifest(manifest, false, out);
}

void cx_manifest_encode_body(const cx_manifest *manifest, cx_buf *out)
{
    write_manifest(manifest, true, out);
}

/* --- reading --------------------------------------------------------------------------------- */

static void read_roots(cx_decoder *d, cx_manifest *manifest)
{
    manifest->state_roots_null = cx_cbor_skip_null(&d->reader);
    if (manifest->state_roots_null)
        return;
    size_t count = cx_cbor_read_map(&d->reader, 2);
    for (size_t i = 0; i < count && cx_cbor_ok(&d->reader); i++) {
        size_t at = d->reader.offset;
        cx_str name = cx_cbor_read_text(&d->reader);
        if (cx_str_eq(name, name_edges) && i == 0) {
            manifest->edges_root = cx_cbor_read_digest(&d->reader);
            manifest->has_edges = true;
        } else if (cx_str_eq(name, name_memories) && !manifest->has_memories) {
            manifest->memories_root = cx_cbor_read_digest(&d->reader);
            manifest->has_memories = true;
        } else {
            cx_cbor_reject(&d->reader, at, "a state root other than \"edges\", then \"memories\"");
        }
    }
}

static void read_counters(cx_decoder *d, cx_manifest *manifest)
{
    const cx_cbor_members outer = d->members;
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 1: manifest->live_memories = cx_cbor_read_uint(&d->reader); break;
        case 2: manifest->edge_count = cx_cbor_read_uint(&d->reader); break;
        case 3: manifest->tombstoned = cx_decode_uint_o(d); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, BIT(1) | BIT(2));
}

static void read_scheme(cx_decoder *d)
{
    size_t at = d->reader.offset;
    cx_str name = cx_cbor_read_text(&d->reader);
    if (cx_cbor_ok(&d->reader) && !cx_str_eq(name, cx_scheme_name(CX_SCHEME_CORTEX_1)))
        cx_cbor_reject(&d->reader, at, "scheme is not \"cortex-1\"");
}

static void read_member(cx_decoder *d, cx_manifest *manifest)
{
    switch (d->members.key) {
    case 0:
        manifest->scheme = cx_decode_code(d, SCHEMA_MATRIX_1, SCHEMA_CORTEX_1) == SCHEMA_CORTEX_1
                               ? CX_SCHEME_CORTEX_1
                               : CX_SCHEME_MATRIX_1;
        break;
    case 1: manifest->actor = cx_cbor_read_text(&d->reader); break;
    case 2: manifest->snapshot_seq = cx_cbor_read_uint(&d->reader); break;
    case 3: manifest->journal_size = cx_cbor_read_uint(&d->reader); break;
    case 4: manifest->journal_root = cx_cbor_read_digest(&d->reader); break;
    case 5: read_roots(d, manifest); break;
    case 6: manifest->overall_root = cx_cbor_read_digest(&d->reader); break;
    case 7: manifest->created_ns = cx_cbor_read_int(&d->reader); break;
    case 8: manifest->trigger = cx_decode_text_o(d); break;
    case 9: manifest->signed_by = cx_decode_text_o(d); break;
    case 10: manifest->signature = (cx_maybe_bytes){false, cx_decode_bytes_o(d)}; break;
    case 11: read_counters(d, manifest); break;
    case 12: read_scheme(d); break;
    default: cx_cbor_reject_member(&d->reader, &d->members);
    }
}

cx_status cx_manifest_decode(cx_bytes bytes, cx_manifest *out, cx_err *err)
{
    cx_decoder d;
    cx_manifest manifest = {.signature = {.null = true}};
    cx_decoder_begin(&d, bytes, "manifest", NULL);
    while (cx_decoder_next(&d))
        read_member(&d, &manifest);
    bool named = (d.members.seen & BIT(12)) != 0;
    if (cx_cbor_ok(&d.reader) && named != (manifest.scheme == CX_SCHEME_CORTEX_1))
        cx_cbor_reject(&d.reader, d.members.offset, "schema and scheme name do not agree");
    if (cx_cbor_ok(&d.reader) && manifest.scheme == CX_SCHEME_CORTEX_1 &&
        !(manifest.has_edges && manifest.has_memories))
        cx_cbor_reject(&d.reader, d.members.offset, "the roots of edges and memories are missing");
    CX_TRY(cx_decoder_end(&d, 0xff | BIT(11), err));
    *out = manifest;
    return CX_SUCCESS;
}

/* --- digest and root ------------------------------------------------------------------------- */

cx_status cx_manifest_digest(const cx_manifest *manifest, const cx_alloc *alloc, cx_digest *out,
                             cx_err *err)
{
    cx_buf body;
    cx_buf_init(&body, alloc);
    cx_manifest_encode_body(manifest, &body);
    cx_status status = cx_buf_check(&body, err);
    if (!cx_failed(status))
        *out = cx_scheme_manifest(cx_buf_bytes(&body));
    cx_buf_done(&body);
    return status;
}

static void add_root(cx_sha256 *hash, cx_str name, const cx_digest *root)
{
    const uint8_t size = (uint8_t)name.size;
    cx_sha256_add(hash, &size, 1);
    cx_sha256_add(hash, name.data, name.size);
    cx_sha256_add(hash, root->bytes, sizeof root->bytes);
}

/* matrix-1 names each root there is; cortex-1 has always both. */
static cx_digest overall_of_some(const cx_manifest *manifest)
{
    static const char domain[] = "matrix.cortex.snapshot.overall.v1";
    const uint8_t count =
        (uint8_t)((manifest->has_edges ? 1 : 0) + (manifest->has_memories ? 1 : 0));
    const uint8_t before[] = {1}, after[] = {0, count};
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, before, sizeof before);
    cx_sha256_add(&hash, manifest->journal_root.bytes, sizeof manifest->journal_root.bytes);
    cx_sha256_add(&hash, after, sizeof after);
    if (manifest->has_edges)
        add_root(&hash, name_edges, &manifest->edges_root);
    if (manifest->has_memories)
        add_root(&hash, name_memories, &manifest->memories_root);
    return cx_sha256_end(&hash);
}

cx_digest cx_manifest_overall(const cx_manifest *manifest)
{
    if (manifest->scheme == CX_SCHEME_MATRIX_1 && !(manifest->has_edges && manifest->has_memories))
        return overall_of_some(manifest);
    return cx_scheme_overall(manifest->scheme, &manifest->journal_root, &manifest->edges_root,
                             &manifest->memories_root);
}
