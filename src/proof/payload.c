/*
 * payload.c - the bytes of entries' payloads, one writer and one reader a kind (ledger.md §3).
 */
#include "proof/codec.h"

#define CITED_MAX 256
#define IDS_MAX 65536
#define TEXT_MAX 65536
#define BIT(key) (UINT64_C(1) << (key))

/* --- writing --------------------------------------------------------------------------------- */

static void write_write(cx_cbor_fields *f, const cx_payload_write *p)
{
    cx_codec_id(f, 1, &p->id);
    cx_codec_uint(f, 2, p->version);
    cx_codec_uint(f, 3, p->type);
    cx_codec_digest(f, 4, &p->version_hash);
}

static void write_edge(cx_cbor_fields *f, const cx_payload_edge *p, bool removed)
{
    cx_codec_uint(f, 1, p->type);
    cx_codec_id(f, 2, &p->src);
    cx_codec_id(f, 3, &p->dst);
    cx_codec_f32_o(f, 4, p->weight);
    if (removed) {
        cx_codec_true_o(f, 5, p->tombstoned);
        cx_codec_text_o(f, 6, p->reason);
        cx_codec_text_o(f, 7, p->by);
    }
}

static void write_update_head(cx_cbor_fields *f, const cx_payload_update_head *p)
{
    cx_codec_id(f, 1, &p->id);
    cx_codec_uint(f, 2, p->version);
    cx_codec_digest(f, 3, &p->head_hash);
}

static void write_embed(cx_cbor_fields *f, const cx_payload_embed *p)
{
    cx_codec_id(f, 1, &p->id);
    cx_codec_uint(f, 2, p->vertex);
    cx_codec_text(f, 3, p->model);
    cx_codec_uint(f, 4, p->dim);
    cx_codec_digest(f, 5, &p->vector_hash);
    cx_codec_uint(f, 6, p->source_version);
}

static void write_compact(cx_cbor_fields *f, const cx_payload_compact *p)
{
    cx_codec_text(f, 1, p->intent);
    cx_codec_text(f, 2, p->step);
    cx_codec_uint(f, 3, p->budget);
    cx_codec_uint(f, 4, p->kept);
    cx_codec_uint(f, 5, p->compacted);
    cx_codec_digest(f, 6, &p->record_hash);
}

static void write_attest(cx_cbor_fields *f, const cx_payload_attest *p)
{
    cx_codec_text(f, 1, p->intent);
    cx_codec_uint(f, 2, p->outcome);
    cx_codec_text_o(f, 3, p->reason);
    cx_codec_ids_o(f, 4, p->cited, p->cited_count);
}

static void write_weights(cx_cbor_fields *f, uint8_t key, const cx_weights *w)
{
    const float values[] = {w->r, w->a, w->c, w->d, w->v};
    for (uint8_t i = 0; i < 5; i++)
        cx_codec_f32(f, (uint8_t)(key + i), values[i]);
}

static void write_learn_weights(cx_cbor_fields *f, const cx_payload_learn_weights *p)
{
    cx_codec_uint(f, 1, p->source_seq);
    cx_codec_f32(f, 2, p->alpha);
    cx_codec_true_o(f, 3, p->decrement);
    cx_codec_true_o(f, 4, p->skipped);
    write_weights(f, 5, &p->previous);
    write_weights(f, 10, &p->now);
}

static void write_find_late(cx_cbor_fields *f, const cx_payload_find_late *p)
{
    cx_codec_text_o(f, 1, p->predicate);
    cx_codec_bytes_o(f, 2, p->types);
    if (p->limit != 0)
        cx_codec_int(f, 3, p->limit);
    cx_codec_int(f, 4, p->result_count);
    cx_codec_texts_o(f, 5, p->tags, p->tag_count);
    cx_codec_ids_o(f, 6, p->ids, p->id_count);
}

static void write_scope_violation(cx_cbor_fields *f, const cx_payload_scope_violation *p)
{
    cx_codec_text_o(f, 1, p->granted_to);
    cx_codec_text_o(f, 2, p->granted_by);
    cx_codec_id(f, 3, &p->id);
    cx_codec_text(f, 4, p->reason);
    cx_codec_text_o(f, 5, p->mode);
}

static void write_seal(cx_cbor_fields *f, const cx_payload_seal *p)
{
    cx_codec_uint(f, 1, p->snapshot_seq);
    cx_codec_digest(f, 2, &p->manifest_digest);
    cx_codec_digest(f, 3, &p->overall_root);
    cx_codec_text_o(f, 4, p->signed_by);
    cx_codec_bytes_o(f, 5, p->signature);
}

static void write_drop_snapshot(cx_cbor_fields *f, const cx_payload_drop_snapshot *p)
{
    cx_codec_uint(f, 1, p->snapshot_seq);
    cx_codec_digest(f, 2, &p->manifest_digest);
}

static void write_redact(cx_cbor_fields *f, const cx_payload_redact *p)
{
    cx_codec_uint(f, 1, p->target_seq);
    cx_codec_digest(f, 2, &p->commitment);
    cx_codec_text_o(f, 3, p->reason);
}

static void write_redact_memory(cx_cbor_fields *f, const cx_payload_redact_memory *p)
{
    cx_codec_id(f, 1, &p->id);
    cx_codec_uint(f, 2, p->versions_erased);
    cx_codec_digest(f, 3, &p->head_hash);
    cx_codec_text_o(f, 4, p->reason);
}

static void write_members(cx_cbor_fields *f, const cx_payload *p)
{
    switch (p->kind) {
    case CX_ENTRY_WRITE:
    case CX_ENTRY_UPDATE: write_write(f, &p->as.write); break;
    case CX_ENTRY_ADD_EDGE: write_edge(f, &p->as.edge, false); break;
    case CX_ENTRY_REMOVE_EDGE: write_edge(f, &p->as.edge, true); break;
    case CX_ENTRY_UPDATE_HEAD: write_update_head(f, &p->as.update_head); break;
    case CX_ENTRY_EMBED: write_embed(f, &p->as.embed); break;
    case CX_ENTRY_COMPACT: write_compact(f, &p->as.compact); break;
    case CX_ENTRY_ATTEST: write_attest(f, &p->as.attest); break;
    case CX_ENTRY_LEARN_WEIGHTS: write_learn_weights(f, &p->as.learn_weights); break;
    case CX_ENTRY_FIND_LATE: write_find_late(f, &p->as.find_late); break;
    case CX_ENTRY_SCOPE_VIOLATION: write_scope_violation(f, &p->as.scope_violation); break;
    case CX_ENTRY_SEAL: write_seal(f, &p->as.seal); break;
    case CX_ENTRY_DROP_SNAPSHOT: write_drop_snapshot(f, &p->as.drop_snapshot); break;
    case CX_ENTRY_REDACT: write_redact(f, &p->as.redact); break;
    case CX_ENTRY_REDACT_MEMORY: write_redact_memory(f, &p->as.redact_memory); break;
    default: CX_ASSERT(false); /* opaque kinds do not come here */
    }
}

/* Kinds whose payload is bytes as they are. */
static bool is_opaque(cx_entry_kind kind)
{
    return kind == CX_ENTRY_RAW || kind == CX_ENTRY_OTHER || kind == CX_ENTRY_GC ||
           kind == CX_ENTRY_MIGRATION;
}

void cx_payload_encode(const cx_payload *payload, cx_buf *out)
{
    if (is_opaque(payload->kind)) {
        cx_buf_add(out, payload->as.raw.data, payload->as.raw.size);
        return;
    }
    if (payload->kind == CX_ENTRY_TOMBSTONE) {
        cx_buf_add(out, payload->as.id.bytes, sizeof payload->as.id.bytes);
        return;
    }
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    write_members(&fields, payload);
    cx_cbor_fields_end(&fields);
}

/* --- reading --------------------------------------------------------------------------------- */

typedef void read_member(cx_decoder *d, cx_payload *p);

static void unknown_member(cx_decoder *d)
{
    cx_cbor_reject_member(&d->reader, &d->members);
}

static void read_write(cx_decoder *d, cx_payload *payload)
{
    cx_payload_write *p = &payload->as.write;
    switch (d->members.key) {
    case 1: cx_decode_id(d, &p->id); break;
    case 2: p->version = cx_cbor_read_uint(&d->reader); break;
    case 3: p->type = cx_decode_code(d, CX_TYPE_MIN, CX_TYPE_MAX); break;
    case 4: p->version_hash = cx_cbor_read_digest(&d->reader); break;
    default: unknown_member(d);
    }
}

static void read_edge(cx_decoder *d, cx_payload *payload)
{
    cx_payload_edge *p = &payload->as.edge;
    switch (d->members.key) {
    case 1: p->type = cx_decode_code(d, CX_EDGE_TYPE_MIN, CX_EDGE_TYPE_MAX); break;
    case 2: cx_decode_id(d, &p->src); break;
    case 3: cx_decode_id(d, &p->dst); break;
    case 4: p->weight = cx_decode_f32_o(d); break;
    default: unknown_member(d);
    }
}

static void read_removed_edge(cx_decoder *d, cx_payload *payload)
{
    cx_payload_edge *p = &payload->as.edge;
    switch (d->members.key) {
    case 5: p->tombstoned = cx_decode_true_o(d); break;
    case 6: p->reason = cx_decode_text_o(d); break;
    case 7: p->by = cx_decode_text_o(d); break;
    default: read_edge(d, payload);
    }
}

static void read_update_head(cx_decoder *d, cx_payload *payload)
{
    cx_payload_update_head *p = &payload->as.update_head;
    switch (d->members.key) {
    case 1: cx_decode_id(d, &p->id); break;
    case 2: p->version = cx_cbor_read_uint(&d->reader); break;
    case 3: p->head_hash = cx_cbor_read_digest(&d->reader); break;
    default: unknown_member(d);
    }
}

static void read_embed(cx_decoder *d, cx_payload *payload)
{
    cx_payload_embed *p = &payload->as.embed;
    switch (d->members.key) {
    case 1: cx_decode_id(d, &p->id); break;
    case 2: p->vertex = cx_cbor_read_uint(&d->reader); break;
    case 3: p->model = cx_cbor_read_text(&d->reader); break;
    case 4: p->dim = cx_cbor_read_uint(&d->reader); break;
    case 5: p->vector_hash = cx_cbor_read_digest(&d->reader); break;
    case 6: p->source_version = cx_cbor_read_uint(&d->reader); break;
    default: unknown_member(d);
    }
}

static void read_compact(cx_decoder *d, cx_payload *payload)
{
    cx_payload_compact *p = &payload->as.compact;
    switch (d->members.key) {
    case 1: p->intent = cx_cbor_read_text(&d->reader); break;
    case 2: p->step = cx_cbor_read_text(&d->reader); break;
    case 3: p->budget = cx_cbor_read_uint(&d->reader); break;
    case 4: p->kept = cx_cbor_read_uint(&d->reader); break;
    case 5: p->compacted = cx_cbor_read_uint(&d->reader); break;
    case 6: p->record_hash = cx_cbor_read_digest(&d->reader); break;
    default: unknown_member(d);
    }
}

static void read_attest(cx_decoder *d, cx_payload *payload)
{
    cx_payload_attest *p = &payload->as.attest;
    switch (d->members.key) {
    case 1: p->intent = cx_cbor_read_text(&d->reader); break;
    case 2: p->outcome = cx_decode_code(d, 0, 1); break;
    case 3: p->reason = cx_decode_text_o(d); break;
    case 4: p->cited = cx_decode_ids(d, CITED_MAX, &p->cited_count); break;
    default: unknown_member(d);
    }
}

static void read_learn_weights(cx_decoder *d, cx_payload *payload)
{
    cx_payload_learn_weights *p = &payload->as.learn_weights;
    float *const weights[] = {&p->previous.r, &p->previous.a, &p->previous.c, &p->previous.d,
                              &p->previous.v, &p->now.r,      &p->now.a,      &p->now.c,
                              &p->now.d,      &p->now.v};
    switch (d->members.key) {
    case 1: p->source_seq = cx_cbor_read_uint(&d->reader); break;
    case 2: p->alpha = cx_cbor_read_f32(&d->reader); break;
    case 3: p->decrement = cx_decode_true_o(d); break;
    case 4: p->skipped = cx_decode_true_o(d); break;
    default:
        if (d->members.key >= 5 && d->members.key <= 14)
            *weights[d->members.key - 5] = cx_cbor_read_f32(&d->reader);
        else
            unknown_member(d);
    }
}

static int64_t read_int_o(cx_decoder *d)
{
    int64_t value = cx_cbor_read_int(&d->reader);
    if (value == 0 && cx_cbor_ok(&d->reader))
        cx_cbor_reject_empty(&d->reader, &d->members);
    return value;
}

static void read_find_late(cx_decoder *d, cx_payload *payload)
{
    cx_payload_find_late *p = &payload->as.find_late;
    switch (d->members.key) {
    case 1: p->predicate = cx_decode_text_o(d); break;
    case 2: p->types = cx_decode_bytes_o(d); break;
    case 3: p->limit = read_int_o(d); break;
    case 4: p->result_count = cx_cbor_read_int(&d->reader); break;
    case 5: p->tags = cx_decode_texts(d, IDS_MAX, TEXT_MAX, true, &p->tag_count); break;
    case 6: p->ids = cx_decode_ids(d, IDS_MAX, &p->id_count); break;
    default: unknown_member(d);
    }
}

static void read_scope_violation(cx_decoder *d, cx_payload *payload)
{
    cx_payload_scope_violation *p = &payload->as.scope_violation;
    switch (d->members.key) {
    case 1: p->granted_to = cx_decode_text_o(d); break;
    case 2: p->granted_by = cx_decode_text_o(d); break;
    case 3: cx_decode_id(d, &p->id); break;
    case 4: p->reason = cx_cbor_read_text(&d->reader); break;
    case 5: p->mode = cx_decode_text_o(d); break;
    default: unknown_member(d);
    }
}

static void read_seal(cx_decoder *d, cx_payload *payload)
{
    cx_payload_seal *p = &payload->as.seal;
    switch (d->members.key) {
    case 1: p->snapshot_seq = cx_cbor_read_uint(&d->reader); break;
    case 2: p->manifest_digest = cx_cbor_read_digest(&d->reader); break;
    case 3: p->overall_root = cx_cbor_read_digest(&d->reader); break;
    case 4: p->signed_by = cx_decode_text_o(d); break;
    case 5: p->signature = cx_decode_bytes_o(d); break;
    default: unknown_member(d);
    }
}

static void read_drop_snapshot(cx_decoder *d, cx_payload *payload)
{
    cx_payload_drop_snapshot *p = &payload->as.drop_snapshot;
    switch (d->members.key) {
    case 1: p->snapshot_seq = cx_cbor_read_uint(&d->reader); break;
    case 2: p->manifest_digest = cx_cbor_read_digest(&d->reader); break;
    default: unknown_member(d);
    }
}

static void read_redact(cx_decoder *d, cx_payload *payload)
{
    cx_payload_redact *p = &payload->as.redact;
    switch (d->members.key) {
    case 1: p->target_seq = cx_cbor_read_uint(&d->reader); break;
    case 2: p->commitment = cx_cbor_read_digest(&d->reader); break;
    case 3: p->reason = cx_decode_text_o(d); break;
    default: unknown_member(d);
    }
}

static void read_redact_memory(cx_decoder *d, cx_payload *payload)
{
    cx_payload_redact_memory *p = &payload->as.redact_memory;
    switch (d->members.key) {
    case 1: cx_decode_id(d, &p->id); break;
    case 2: p->versions_erased = cx_cbor_read_uint(&d->reader); break;
    case 3: p->head_hash = cx_cbor_read_digest(&d->reader); break;
    case 4: p->reason = cx_decode_text_o(d); break;
    default: unknown_member(d);
    }
}

/* The keys from 0 to `last` that must be there. */
#define UP_TO(last) (BIT((last) + 1) - 1)

static const struct {
    read_member *read;
    uint64_t required;
} readers[CX_ENTRY_OTHER] = {
    [CX_ENTRY_WRITE] = {read_write, UP_TO(4)},
    [CX_ENTRY_UPDATE] = {read_write, UP_TO(4)},
    [CX_ENTRY_ADD_EDGE] = {read_edge, UP_TO(3)},
    [CX_ENTRY_REMOVE_EDGE] = {read_removed_edge, UP_TO(3) | BIT(5)},
    [CX_ENTRY_UPDATE_HEAD] = {read_update_head, UP_TO(3)},
    [CX_ENTRY_EMBED] = {read_embed, UP_TO(6)},
    [CX_ENTRY_COMPACT] = {read_compact, UP_TO(6)},
    [CX_ENTRY_ATTEST] = {read_attest, UP_TO(2)},
    [CX_ENTRY_LEARN_WEIGHTS] = {read_learn_weights, UP_TO(14) & ~(BIT(3) | BIT(4))},
    [CX_ENTRY_FIND_LATE] = {read_find_late, BIT(0) | BIT(4)},
    [CX_ENTRY_SCOPE_VIOLATION] = {read_scope_violation, BIT(0) | BIT(3) | BIT(4)},
    [CX_ENTRY_SEAL] = {read_seal, UP_TO(3)},
    [CX_ENTRY_DROP_SNAPSHOT] = {read_drop_snapshot, UP_TO(2)},
    [CX_ENTRY_REDACT] = {read_redact, UP_TO(2)},
    [CX_ENTRY_REDACT_MEMORY] = {read_redact_memory, UP_TO(3)},
};

static cx_status decode_tombstone(cx_bytes bytes, cx_payload *out, cx_err *err)
{
    if (bytes.size != sizeof out->as.id.bytes)
        return cx_fail_at(err, CX_E_FORMAT, "NonCanonical", 0,
                          "tombstone: %zu bytes where 16 of an id are expected", bytes.size);
    memcpy(out->as.id.bytes, bytes.data, bytes.size);
    return CX_SUCCESS;
}

cx_status cx_payload_decode(cx_entry_kind kind, cx_bytes bytes, cx_arena *arena, cx_payload *out,
                            cx_err *err)
{
    cx_payload payload = {.kind = kind};
    if (is_opaque(kind)) {
        payload.as.raw = bytes;
    } else if (kind == CX_ENTRY_TOMBSTONE) {
        CX_TRY(decode_tombstone(bytes, &payload, err));
    } else {
        cx_decoder decoder;
        cx_decoder_begin(&decoder, bytes, cx_entry_kind_name(kind).data, arena);
        while (cx_decoder_next(&decoder)) {
            if (decoder.members.key == 0)
                cx_decode_schema(&decoder, 1);
            else
                readers[kind].read(&decoder, &payload);
        }
        CX_TRY(cx_decoder_end(&decoder, readers[kind].required, err));
    }
    *out = payload;
    return CX_SUCCESS;
}
