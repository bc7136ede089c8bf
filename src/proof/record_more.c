/*
 * record_more.c - the bytes of records outside the state roots: vectors, checkpoint records,
 * salience, weights (ledger.md §4, §10.1).
 */
#include "crypto/api.h"
#include "proof/codec.h"

#define BIT(key) (UINT64_C(1) << (key))
#define VECTOR_DIM_MAX 65536
#define COMPACTED_MAX 1000000

/* --- vectors --------------------------------------------------------------------------------- */

void cx_vector_encode(const cx_vector *vector, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, vector->vertex);
    cx_codec_text(&fields, 2, vector->model);
    cx_codec_uint(&fields, 3, vector->dim);
    cx_cbor_field(&fields, 4);
    cx_cbor_array(out, vector->dim);
    for (uint64_t i = 0; i < vector->dim; i++)
        cx_cbor_f32(out, vector->values[i]);
    cx_codec_uint(&fields, 5, vector->source_version);
    cx_codec_time(&fields, 6, vector->embedded_at, vector->embedded_at_null);
    cx_codec_digest(&fields, 7, &vector->hash);
    cx_cbor_fields_end(&fields);
}

static void read_values(cx_decoder *d, cx_vector *vector)
{
    size_t at = d->reader.offset;
    size_t count = cx_cbor_read_array(&d->reader, VECTOR_DIM_MAX);
    float *values = cx_decode_allocate(d, count, sizeof *values);
    if (values == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        values[i] = cx_cbor_read_f32(&d->reader);
    if (cx_cbor_ok(&d->reader) && count != vector->dim)
        cx_cbor_reject(&d->reader, at, "%zu components where field 3 says %llu", count,
                       (unsigned long long)vector->dim);
    vector->values = values;
}

cx_status cx_vector_decode(cx_bytes bytes, cx_arena *arena, cx_vector *out, cx_err *err)
{
    cx_decoder d;
    cx_vector vector = {0};
    cx_decoder_begin(&d, bytes, "Vector", arena);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 1: vector.vertex = cx_cbor_read_uint(&d.reader); break;
        case 2: vector.model = cx_cbor_read_text(&d.reader); break;
        case 3: vector.dim = cx_cbor_read_uint(&d.reader); break;
        case 4: read_values(&d, &vector); break;
        case 5: vector.source_version = cx_cbor_read_uint(&d.reader); break;
        case 6: vector.embedded_at = cx_decode_time(&d, &vector.embedded_at_null); break;
        case 7: vector.hash = cx_cbor_read_digest(&d.reader); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    CX_TRY(cx_decoder_end(&d, 0xfe, err));
    *out = vector;
    return CX_SUCCESS;
}

cx_digest cx_vector_hash(const float *values, size_t count)
{
    static const char domain[] = "matrix.cortex.vector.v1";
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        const uint8_t bytes[4] = {(uint8_t)(bits >> 24), (uint8_t)(bits >> 16),
                                  (uint8_t)(bits >> 8), (uint8_t)bits};
        cx_sha256_add(&hash, bytes, sizeof bytes);
    }
    return cx_sha256_end(&hash);
}

/* --- checkpoint records ---------------------------------------------------------------------- */

void cx_checkpoint_record_encode(const cx_checkpoint_record *record, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    cx_codec_text(&fields, 1, record->intent);
    cx_codec_text(&fields, 2, record->step);
    cx_codec_int(&fields, 3, record->created_ns);
    cx_codec_uint(&fields, 4, record->budget);
    cx_cbor_field(&fields, 5);
    if (record->kept_null)
        cx_cbor_null(out);
    else
        cx_codec_texts(out, record->kept, record->kept_count);
    cx_cbor_field(&fields, 6);
    if (record->compacted_null)
        cx_cbor_null(out);
    else
        cx_cbor_array(out, record->compacted_count);
    for (size_t i = 0; !record->compacted_null && i < record->compacted_count; i++) {
        cx_cbor_fields item;
        cx_cbor_fields_begin(&item, out);
        cx_codec_text(&item, 0, record->compacted[i].uri);
        cx_codec_text(&item, 1, record->compacted[i].brief);
        cx_codec_f32(&item, 2, record->compacted[i].salience);
        cx_cbor_fields_end(&item);
    }
    cx_cbor_fields_end(&fields);
}

static void read_compacted_item(cx_decoder *d, cx_compacted *out)
{
    const cx_cbor_members outer = d->members;
    *out = (cx_compacted){0};
    d->members = cx_cbor_read_members(&d->reader);
    while (cx_decoder_next(d))
        switch (d->members.key) {
        case 0: out->uri = cx_cbor_read_text(&d->reader); break;
        case 1: out->brief = cx_cbor_read_text(&d->reader); break;
        case 2: out->salience = cx_cbor_read_f32(&d->reader); break;
        default: cx_cbor_reject_member(&d->reader, &d->members);
        }
    cx_decoder_end_inner(d, &outer, 7);
}

static void read_compacted(cx_decoder *d, cx_checkpoint_record *record)
{
    record->compacted_null = cx_cbor_skip_null(&d->reader);
    if (record->compacted_null)
        return;
    size_t count = cx_cbor_read_array(&d->reader, COMPACTED_MAX);
    cx_compacted *items = cx_decode_allocate(d, count, sizeof *items);
    if (items == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        read_compacted_item(d, &items[i]);
    record->compacted = items;
    record->compacted_count = count;
}

cx_status cx_checkpoint_record_decode(cx_bytes bytes, cx_arena *arena, cx_checkpoint_record *out,
                                      cx_err *err)
{
    cx_decoder d;
    cx_checkpoint_record record = {0};
    cx_decoder_begin(&d, bytes, "checkpoint record", arena);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 0: cx_decode_schema(&d, 1); break;
        case 1: record.intent = cx_cbor_read_text(&d.reader); break;
        case 2: record.step = cx_cbor_read_text(&d.reader); break;
        case 3: record.created_ns = cx_cbor_read_int(&d.reader); break;
        case 4: record.budget = cx_cbor_read_uint(&d.reader); break;
        case 5:
            record.kept_null = cx_cbor_skip_null(&d.reader);
            if (!record.kept_null)
                record.kept =
                    cx_decode_texts(&d, COMPACTED_MAX, SIZE_MAX, false, &record.kept_count);
            break;
        case 6: read_compacted(&d, &record); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    CX_TRY(cx_decoder_end(&d, 0x7f, err));
    *out = record;
    return CX_SUCCESS;
}

/* --- salience and weights -------------------------------------------------------------------- */

void cx_salience_encode(const cx_salience *salience, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    cx_codec_int(&fields, 1, salience->last_used_ns);
    cx_codec_uint_o(&fields, 2, salience->access);
    cx_codec_uint_o(&fields, 3, salience->citations);
    cx_codec_uint_o(&fields, 4, salience->importance);
    cx_codec_true_o(&fields, 5, salience->pinned);
    cx_codec_f32(&fields, 6, salience->cached);
    cx_codec_int(&fields, 7, salience->computed_at_ns);
    cx_cbor_fields_end(&fields);
}

cx_status cx_salience_decode(cx_bytes bytes, cx_salience *out, cx_err *err)
{
    cx_decoder d;
    cx_salience salience = {0};
    cx_decoder_begin(&d, bytes, "salience", NULL);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 0: cx_decode_schema(&d, 1); break;
        case 1: salience.last_used_ns = cx_cbor_read_int(&d.reader); break;
        case 2: salience.access = cx_decode_uint_o(&d); break;
        case 3: salience.citations = cx_decode_uint_o(&d); break;
        case 4: salience.importance = cx_decode_code(&d, 1, CX_IMPORTANCE_MAX); break;
        case 5: salience.pinned = cx_decode_true_o(&d); break;
        case 6: salience.cached = cx_cbor_read_f32(&d.reader); break;
        case 7: salience.computed_at_ns = cx_cbor_read_int(&d.reader); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    CX_TRY(cx_decoder_end(&d, BIT(0) | BIT(1) | BIT(6) | BIT(7), err));
    *out = salience;
    return CX_SUCCESS;
}

void cx_weights_encode(const cx_weights_record *record, cx_buf *out)
{
    const cx_weights *w = &record->weights;
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    cx_codec_f32(&fields, 1, w->r);
    cx_codec_f32(&fields, 2, w->a);
    cx_codec_f32(&fields, 3, w->c);
    cx_codec_f32(&fields, 4, w->d);
    cx_codec_f32(&fields, 5, w->v);
    if (record->updated_at_ns != 0)
        cx_codec_int(&fields, 6, record->updated_at_ns);
    cx_codec_uint_o(&fields, 7, record->updates);
    cx_cbor_fields_end(&fields);
}

cx_status cx_weights_decode(cx_bytes bytes, cx_weights_record *out, cx_err *err)
{
    cx_decoder d;
    cx_weights_record record = {0};
    cx_decoder_begin(&d, bytes, "weights", NULL);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 0: cx_decode_schema(&d, 1); break;
        case 1: record.weights.r = cx_cbor_read_f32(&d.reader); break;
        case 2: record.weights.a = cx_cbor_read_f32(&d.reader); break;
        case 3: record.weights.c = cx_cbor_read_f32(&d.reader); break;
        case 4: record.weights.d = cx_cbor_read_f32(&d.reader); break;
        case 5: record.weights.v = cx_cbor_read_f32(&d.reader); break;
        case 6:
            record.updated_at_ns = cx_cbor_read_int(&d.reader);
            if (record.updated_at_ns == 0 && cx_cbor_ok(&d.reader))
                cx_cbor_reject_empty(&d.reader, &d.members);
            break;
        case 7: record.updates = cx_decode_uint_o(&d); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    CX_TRY(cx_decoder_end(&d, 0x3f, err));
    *out = record;
    return CX_SUCCESS;
}

cx_id cx_obj_hash(cx_str ref)
{
    cx_digest digest = cx_digest_of(cx_str_bytes(ref));
    cx_id id;
    memcpy(id.bytes, digest.bytes, sizeof id.bytes);
    return id;
}
