/*
 * record.c - the bytes of Head, Version and Edge (ledger.md §4): what is anchored in the state
 * roots.
 */
#include "proof/record.h"

#include "proof/codec.h"

#define BIT(key) (UINT64_C(1) << (key))
#define VERB_MAX 10
#define KIND_MAX 8

/* --- forms ----------------------------------------------------------------------------------- */

static void write_forms(cx_cbor_fields *outer, uint8_t key, const cx_forms *forms)
{
    cx_cbor_fields fields;
    cx_cbor_field(outer, key);
    cx_cbor_fields_begin(&fields, outer->out);
    cx_codec_text(&fields, 1, forms->brief);
    cx_codec_text(&fields, 2, forms->medium);
    cx_cbor_fields_end(&fields);
}

static void read_forms(cx_decoder *d, cx_forms *out)
{
    const cx_cbor_members outer = d->members;
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 1: out->brief = cx_cbor_read_text(&d->reader); break;
        case 2: out->medium = cx_cbor_read_text(&d->reader); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, BIT(1) | BIT(2));
}

/* --- Head ------------------------------------------------------------------------------------ */

static void write_tombstone(cx_cbor_fields *outer, const cx_head *head)
{
    cx_cbor_fields fields;
    cx_cbor_field(outer, 8);
    cx_cbor_fields_begin(&fields, outer->out);
    cx_codec_text(&fields, 1, head->tombstone_reason);
    cx_codec_int(&fields, 2, head->tombstoned_at);
    cx_codec_text(&fields, 3, head->tombstoned_by);
    cx_cbor_fields_end(&fields);
}

static void write_embedding(cx_cbor_fields *outer, const cx_head *head)
{
    cx_cbor_fields fields;
    cx_cbor_field(outer, 10);
    cx_cbor_fields_begin(&fields, outer->out);
    cx_codec_uint(&fields, 1, head->vertex);
    cx_codec_text(&fields, 2, head->model);
    cx_codec_uint(&fields, 3, head->dim);
    cx_codec_true_o(&fields, 4, head->stale);
    cx_cbor_fields_end(&fields);
}

static void write_frames(cx_cbor_fields *outer, const cx_head *head)
{
    cx_buf *out = outer->out;
    cx_cbor_field(outer, 12);
    cx_cbor_array(out, head->frame_count);
    for (size_t i = 0; i < head->frame_count; i++) {
        cx_cbor_fields fields;
        cx_cbor_fields_begin(&fields, out);
        cx_codec_uint(&fields, 1, head->frames[i].verb);
        cx_codec_uint(&fields, 2, head->frames[i].kind);
        cx_codec_text(&fields, 3, head->frames[i].ref);
        cx_cbor_fields_end(&fields);
    }
}

void cx_head_encode(const cx_head *head, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_id(&fields, 1, &head->id);
    cx_codec_uint(&fields, 2, head->type);
    cx_codec_uint(&fields, 3, head->current_version);
    cx_codec_text(&fields, 4, head->actor_scope);
    cx_codec_uint(&fields, 5, head->visibility);
    cx_codec_uint(&fields, 6, head->importance);
    cx_codec_texts_o(&fields, 7, head->tags, head->tag_count);
    if (head->tombstoned)
        write_tombstone(&fields, head);
    cx_codec_time(&fields, 9, head->last_updated_at, head->last_updated_null);
    if (head->embedded)
        write_embedding(&fields, head);
    write_forms(&fields, 11, &head->forms);
    if (head->frame_count != 0)
        write_frames(&fields, head);
    if (head->blinded)
        cx_codec_id(&fields, 13, &head->blind);
    cx_cbor_fields_end(&fields);
}

static void read_tombstone(cx_decoder *d, cx_head *head)
{
    const cx_cbor_members outer = d->members;
    head->tombstoned = true;
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 1: head->tombstone_reason = cx_cbor_read_text(&d->reader); break;
        case 2: head->tombstoned_at = cx_cbor_read_int(&d->reader); break;
        case 3: head->tombstoned_by = cx_cbor_read_text(&d->reader); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, BIT(1) | BIT(2) | BIT(3));
}

static void read_embedding(cx_decoder *d, cx_head *head)
{
    const cx_cbor_members outer = d->members;
    head->embedded = true;
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 1: head->vertex = cx_cbor_read_uint(&d->reader); break;
        case 2: head->model = cx_cbor_read_text(&d->reader); break;
        case 3: head->dim = cx_cbor_read_uint(&d->reader); break;
        case 4: head->stale = cx_decode_true_o(d); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, BIT(1) | BIT(2) | BIT(3));
}

/* 1 to 256 bytes (§13). */
static cx_str read_ref(cx_decoder *d)
{
    size_t at = d->reader.offset;
    cx_str ref = cx_decode_text_max(d, CX_REF_SIZE_MAX);
    if (ref.size == 0)
        cx_cbor_reject(&d->reader, at, "a frame's reference is empty");
    return ref;
}

static void read_frame(cx_decoder *d, cx_frame *out)
{
    const cx_cbor_members outer = d->members;
    *out = (cx_frame){0};
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 1: out->verb = cx_decode_code(d, 1, VERB_MAX); break;
        case 2: out->kind = cx_decode_code(d, 1, KIND_MAX); break;
        case 3: out->ref = read_ref(d); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, BIT(1) | BIT(2) | BIT(3));
}

static void read_frames(cx_decoder *d, cx_head *head)
{
    size_t count = cx_cbor_read_array(&d->reader, CX_FRAMES_MAX);
    if (count == 0 && cx_cbor_ok(&d->reader))
        cx_cbor_reject_empty(&d->reader, &d->members);
    cx_frame *frames = cx_decode_allocate(d, count, sizeof *frames);
    if (frames == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        read_frame(d, &frames[i]);
    head->frames = frames;
    head->frame_count = count;
}

static void read_head_member(cx_decoder *d, cx_head *head)
{
    switch (d->members.key) {
    case 1: cx_decode_id(d, &head->id); break;
    case 2: head->type = cx_decode_code(d, CX_TYPE_MIN, CX_TYPE_MAX); break;
    case 3: head->current_version = cx_cbor_read_uint(&d->reader); break;
    case 4: head->actor_scope = cx_cbor_read_text(&d->reader); break;
    case 5:
        head->visibility = cx_decode_code(d, CX_VISIBILITY_PRIVATE, CX_VISIBILITY_ACTOR_PUBLIC);
        break;
    case 6: head->importance = cx_decode_code(d, 0, CX_IMPORTANCE_MAX); break;
    case 7:
        head->tags = cx_decode_texts(d, CX_TAGS_MAX, CX_TAG_SIZE_MAX, true, &head->tag_count);
        break;
    case 8: read_tombstone(d, head); break;
    case 9: head->last_updated_at = cx_decode_time(d, &head->last_updated_null); break;
    case 10: read_embedding(d, head); break;
    case 11: read_forms(d, &head->forms); break;
    case 12: read_frames(d, head); break;
    case 13:
        cx_decode_id(d, &head->blind);
        head->blinded = true;
        break;
    default: cx_cbor_reject_member(&d->reader, &d->members);
    }
}

cx_status cx_head_decode(cx_bytes bytes, cx_arena *arena, cx_head *out, cx_err *err)
{
    cx_decoder decoder;
    cx_head head = {0};
    cx_decoder_begin(&decoder, bytes, "Head", arena);
    while (cx_decoder_next(&decoder))
        read_head_member(&decoder, &head);
    CX_TRY(cx_decoder_end(
        &decoder, BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(9) | BIT(11), err));
    *out = head;
    return CX_SUCCESS;
}

/* --- Version --------------------------------------------------------------------------------- */

static void write_provenance(cx_cbor_fields *outer, const cx_provenance *p)
{
    cx_cbor_fields fields;
    cx_cbor_field(outer, 9);
    cx_cbor_fields_begin(&fields, outer->out);
    cx_codec_text(&fields, 1, p->source);
    cx_codec_texts_o(&fields, 2, p->derived_from, p->derived_count);
    cx_codec_texts_o(&fields, 3, p->attestations, p->attestation_count);
    cx_codec_bytes_o(&fields, 4, p->signed_by);
    if (p->has_signed_at)
        cx_codec_int(&fields, 5, p->signed_at);
    cx_codec_bytes_o(&fields, 6, p->signature);
    cx_cbor_fields_end(&fields);
}

static void write_version(const cx_version_record *v, const cx_digest *hash, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_id(&fields, 1, &v->id);
    cx_codec_uint(&fields, 2, v->version);
    cx_codec_uint(&fields, 3, v->type);
    if (!v->erased) {
        cx_cbor_field(&fields, 4);
        if (v->data.null)
            cx_cbor_null(out);
        else
            cx_cbor_bytes(out, v->data.bytes);
        cx_codec_time(&fields, 5, v->created_at, v->created_at_null);
        cx_codec_text(&fields, 6, v->created_by);
        if (v->expires)
            cx_codec_int(&fields, 7, v->expires_at);
        cx_codec_f32(&fields, 8, v->confidence);
        write_provenance(&fields, &v->provenance);
        write_forms(&fields, 10, &v->forms);
        cx_codec_true_o(&fields, 11, v->forms_override);
    }
    cx_codec_digest(&fields, 12, hash);
    if (!v->erased && v->blinded)
        cx_codec_id(&fields, 13, &v->blind);
    cx_cbor_fields_end(&fields);
}

void cx_version_encode(const cx_version_record *version, cx_buf *out)
{
    write_version(version, &version->hash, out);
}

cx_status cx_version_hash(const cx_version_record *version, const cx_alloc *alloc, cx_digest *out,
                          cx_err *err)
{
    static const cx_digest zeros = {{0}};
    cx_buf bytes;
    cx_buf_init(&bytes, alloc);
    write_version(version, &zeros, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        *out = cx_scheme_version(version->type, cx_buf_bytes(&bytes));
    cx_buf_done(&bytes);
    return status;
}

static void read_provenance(cx_decoder *d, cx_provenance *p)
{
    const cx_cbor_members outer = d->members;
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 1: p->source = cx_cbor_read_text(&d->reader); break;
        case 2:
            p->derived_from =
                cx_decode_texts(d, CX_DERIVED_FROM_MAX, SIZE_MAX, true, &p->derived_count);
            break;
        case 3:
            p->attestations =
                cx_decode_texts(d, SIZE_MAX - 1, SIZE_MAX, true, &p->attestation_count);
            break;
        case 4: p->signed_by = cx_decode_bytes_o(d); break;
        case 5:
            p->signed_at = cx_cbor_read_int(&d->reader);
            p->has_signed_at = true;
            break;
        case 6: p->signature = cx_decode_bytes_o(d); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, BIT(1));
}

static void read_version_member(cx_decoder *d, cx_version_record *v)
{
    switch (d->members.key) {
    case 1: cx_decode_id(d, &v->id); break;
    case 2: v->version = cx_cbor_read_uint(&d->reader); break;
    case 3: v->type = cx_decode_code(d, CX_TYPE_MIN, CX_TYPE_MAX); break;
    case 4:
        v->data.null = cx_cbor_skip_null(&d->reader);
        if (!v->data.null)
            v->data.bytes = cx_cbor_read_bytes(&d->reader);
        break;
    case 5: v->created_at = cx_decode_time(d, &v->created_at_null); break;
    case 6: v->created_by = cx_cbor_read_text(&d->reader); break;
    case 7:
        v->expires_at = cx_cbor_read_int(&d->reader);
        v->expires = true;
        break;
    case 8: v->confidence = cx_cbor_read_f32(&d->reader); break;
    case 9: read_provenance(d, &v->provenance); break;
    case 10: read_forms(d, &v->forms); break;
    case 11: v->forms_override = cx_decode_true_o(d); break;
    case 12: v->hash = cx_cbor_read_digest(&d->reader); break;
    case 13:
        cx_decode_id(d, &v->blind);
        v->blinded = true;
        break;
    default: cx_cbor_reject_member(&d->reader, &d->members);
    }
}

cx_status cx_version_decode(cx_bytes bytes, cx_arena *arena, cx_version_record *out, cx_err *err)
{
    const uint64_t stub = BIT(1) | BIT(2) | BIT(3) | BIT(12);
    const uint64_t whole = stub | BIT(4) | BIT(5) | BIT(6) | BIT(8) | BIT(9) | BIT(10);
    cx_decoder decoder;
    cx_version_record version = {0};
    cx_decoder_begin(&decoder, bytes, "Version", arena);
    while (cx_decoder_next(&decoder))
        read_version_member(&decoder, &version);
    version.erased = decoder.members.seen == stub;
    CX_TRY(cx_decoder_end(&decoder, version.erased ? stub : whole, err));
    *out = version;
    return CX_SUCCESS;
}

/* --- Edge ------------------------------------------------------------------------------------ */

void cx_edge_encode(const cx_edge *edge, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, edge->type);
    cx_codec_id(&fields, 2, &edge->src);
    cx_codec_id(&fields, 3, &edge->dst);
    cx_codec_time(&fields, 4, edge->created_at, edge->created_at_null);
    cx_codec_text_o(&fields, 5, edge->created_by);
    cx_codec_f32_o(&fields, 6, edge->weight);
    cx_codec_true_o(&fields, 7, edge->tombstoned);
    if (edge->has_tombstoned_at)
        cx_codec_int(&fields, 8, edge->tombstoned_at);
    cx_codec_text_o(&fields, 9, edge->reason);
    cx_codec_text_o(&fields, 10, edge->by);
    cx_codec_bytes_o(&fields, 11, edge->data);
    if (edge->blinded)
        cx_codec_id(&fields, 12, &edge->blind);
    cx_cbor_fields_end(&fields);
}

static void read_edge_member(cx_decoder *d, cx_edge *edge)
{
    switch (d->members.key) {
    case 1: edge->type = cx_decode_code(d, CX_EDGE_TYPE_MIN, CX_EDGE_TYPE_MAX); break;
    case 2: cx_decode_id(d, &edge->src); break;
    case 3: cx_decode_id(d, &edge->dst); break;
    case 4: edge->created_at = cx_decode_time(d, &edge->created_at_null); break;
    case 5: edge->created_by = cx_decode_text_o(d); break;
    case 6: edge->weight = cx_decode_f32_o(d); break;
    case 7: edge->tombstoned = cx_decode_true_o(d); break;
    case 8:
        edge->tombstoned_at = cx_cbor_read_int(&d->reader);
        edge->has_tombstoned_at = true;
        break;
    case 9: edge->reason = cx_decode_text_o(d); break;
    case 10: edge->by = cx_decode_text_o(d); break;
    case 11: edge->data = cx_decode_bytes_o(d); break;
    case 12:
        cx_decode_id(d, &edge->blind);
        edge->blinded = true;
        break;
    default: cx_cbor_reject_member(&d->reader, &d->members);
    }
}

cx_status cx_edge_decode(cx_bytes bytes, cx_arena *arena, cx_edge *out, cx_err *err)
{
    cx_decoder decoder;
    cx_edge edge = {0};
    cx_decoder_begin(&decoder, bytes, "Edge", arena);
    while (cx_decoder_next(&decoder))
        read_edge_member(&decoder, &edge);
    CX_TRY(cx_decoder_end(&decoder, BIT(1) | BIT(2) | BIT(3) | BIT(4), err));
    *out = edge;
    return CX_SUCCESS;
}
