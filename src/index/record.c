/*
 * record.c - the encoding of the record next to a received trace, and the rows derived from it.
 *
 * Map members: 1 seq, 2 level, 3 batch, 4 capture, 5 received_ns, 6 consent_ns, 7 content, 8
 * signature, 9 key_id, 10 verified, 11 reason, 12 form, 13 numbers, 14 canonical, 15 is_view.
 * Members 3, 6, 10 .. 15 are left out when empty.
 */
#include "index/record.h"

#include "proof/api.h"

#define BIT(key) (UINT64_C(1) << (key))
#define REQUIRED (BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(7) | BIT(8) | BIT(9))

/* --- keys ------------------------------------------------------------------------------------ */

static void key_add(cx_trace_record_key *key, cx_bytes bytes)
{
    CX_ASSERT(bytes.size <= sizeof key->bytes - key->size);
    if (bytes.size != 0)
        memcpy(key->bytes + key->size, bytes.data, bytes.size);
    key->size += bytes.size;
}

static void key_begin(cx_trace_record_key *key, cx_str prefix, cx_trace_level level)
{
    static const char *const levels[] = {"g/", "d/", "f/"};
    CX_ASSERT(level <= CX_LEVEL_FULL);
    key->size = 0;
    key_add(key, cx_str_bytes(prefix));
    key_add(key, cx_str_bytes(cx_str_from(levels[level], 2)));
}

cx_bytes cx_trace_record_name(cx_trace_record_key *out, cx_trace_level level, cx_str trace_id)
{
    key_begin(out, CX_STR("trace/"), level);
    key_add(out, cx_str_bytes(trace_id));
    return cx_bytes_from(out->bytes, out->size);
}

cx_bytes cx_trace_connectivity_name(cx_trace_record_key *out, cx_trace_level level, cx_str trace_id)
{
    key_begin(out, CX_STR("connectivity/"), level);
    key_add(out, cx_str_bytes(trace_id));
    return cx_bytes_from(out->bytes, out->size);
}

cx_bytes cx_trace_conflict_name(cx_trace_record_key *out, cx_trace_level level, cx_str trace_id,
                                const cx_digest *content)
{
    key_begin(out, CX_STR("conflict/"), level);
    key_add(out, cx_str_bytes(trace_id));
    key_add(out, cx_str_bytes(CX_STR("/")));
    key_add(out, cx_bytes_from(content->bytes, sizeof content->bytes));
    return cx_bytes_from(out->bytes, out->size);
}

cx_bytes cx_trace_signature_name(cx_trace_record_key *out, cx_trace_level level,
                                 const cx_digest *signature)
{
    key_begin(out, CX_STR("sig/"), level);
    key_add(out, cx_bytes_from(signature->bytes, 16)); /* 128 bits tell signatures apart */
    return cx_bytes_from(out->bytes, out->size);
}

/* --- bytes ----------------------------------------------------------------------------------- */

static bool has_batch(const cx_trace_record *record)
{
    for (size_t i = 0; i < sizeof record->batch; i++)
        if (record->batch[i] != 0)
            return true;
    return false;
}

void cx_trace_record_encode(const cx_trace_record *record, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, record->seq);
    cx_codec_uint(&fields, 2, record->level);
    if (has_batch(record))
        cx_codec_bytes_o(&fields, 3, cx_bytes_from(record->batch, sizeof record->batch));
    cx_codec_text(&fields, 4, record->capture);
    cx_codec_int(&fields, 5, record->received_ns);
    if (record->consent_ns != CX_TIME_NONE)
        cx_codec_int(&fields, 6, record->consent_ns);
    cx_codec_digest(&fields, 7, &record->content);
    cx_codec_digest(&fields, 8, &record->signature);
    cx_codec_text(&fields, 9, record->key_id);
    cx_codec_true_o(&fields, 10, record->verified);
    cx_codec_uint_o(&fields, 11, record->reason);
    if (record->form != CX_FORM_NONE) {
        cx_codec_uint(&fields, 12, record->form);
        cx_codec_uint(&fields, 13, record->numbers);
        cx_codec_digest(&fields, 14, &record->canonical);
    }
    cx_codec_true_o(&fields, 15, record->is_view);
    cx_cbor_fields_end(&fields);
}

static void read_member(cx_decoder *d, cx_trace_record *out)
{
    cx_cbor_reader *reader = &d->reader;
    switch (d->members.key) {
    case 1: out->seq = cx_cbor_read_uint(reader); break;
    case 2: out->level = (cx_trace_level)cx_cbor_read_uint_max(reader, CX_LEVEL_FULL); break;
    case 3: (void)cx_cbor_read_exactly(reader, out->batch, sizeof out->batch); break;
    case 4: out->capture = cx_cbor_read_text(reader); break;
    case 5: out->received_ns = cx_cbor_read_int(reader); break;
    case 6: out->consent_ns = cx_cbor_read_int(reader); break;
    case 7: out->content = cx_cbor_read_digest(reader); break;
    case 8: out->signature = cx_cbor_read_digest(reader); break;
    case 9: out->key_id = cx_cbor_read_text(reader); break;
    case 10: out->verified = cx_decode_true_o(d); break;
    case 11:
        out->reason = (cx_trace_reason)cx_cbor_read_uint_max(reader, CX_REASON_TRACE_ID_CONFLICT);
        break;
    case 12: out->form = (cx_trace_form)cx_cbor_read_uint_max(reader, CX_FORM_H); break;
    case 13: out->numbers = (cx_trace_numbers)cx_cbor_read_uint_max(reader, CX_NUMBERS_JCS); break;
    case 14: out->canonical = cx_cbor_read_digest(reader); break;
    case 15: out->is_view = cx_decode_true_o(d); break;
    default: cx_cbor_reject_member(reader, &d->members);
    }
}

cx_status cx_trace_record_decode(cx_bytes bytes, cx_trace_record *out, cx_err *err)
{
    cx_decoder decoder;
    cx_trace_record record = {.consent_ns = CX_TIME_NONE, .form = CX_FORM_NONE};
    cx_decoder_begin(&decoder, bytes, "trace record", NULL);
    while (cx_decoder_next(&decoder))
        read_member(&decoder, &record);
    CX_TRY(cx_decoder_end(&decoder, REQUIRED, err));
    *out = record;
    return CX_SUCCESS;
}

/* --- derived rows ---------------------------------------------------------------------------- */

static bool is_record(const cx_change *change)
{
    return !change->removed && !change->erased && change->key.size > 8 &&
           memcmp(change->key.data, "trace/", 6) == 0 && change->key.data[7] == '/';
}

/* A signature belongs to the first trace that contained it (trace.md §9). */
static cx_status derive_signature(cx_derive *at, const cx_change *change, cx_err *err)
{
    cx_trace_record record;
    cx_trace_record_key name;
    cx_bytes there;
    bool found = false;
    CX_TRY(cx_trace_record_decode(change->value, &record, err));
    cx_bytes key = cx_trace_signature_name(&name, record.level, &record.signature);
    CX_TRY(cx_derive_get_common(at, key, &there, &found, err));
    cx_bytes trace_id = cx_bytes_from(change->key.data + 8, change->key.size - 8);
    return found ? CX_SUCCESS : cx_derive_put_common(at, key, trace_id, err);
}

/* What a trace can be found by (provenance/object_find.c). */
static cx_status derive_names(cx_derive *at, const cx_change *change, cx_err *err)
{
    cx_trace_record record;
    CX_TRY(cx_trace_record_decode(change->value, &record, err));
    CX_TRY(cx_derive_hash(at, &record.content, err));
    CX_TRY(cx_derive_hash(at, &record.signature, err));
    if (record.form != CX_FORM_NONE)
        CX_TRY(cx_derive_hash(at, &record.canonical, err));
    return cx_derive_name(at, cx_str_from((const char *)change->key.data + 8, change->key.size - 8),
                          err);
}

/* That a journal has traces. */
static cx_status derive_journal(cx_derive *at, cx_err *err)
{
    uint8_t key[sizeof CX_TRACE_JOURNAL_PREFIX + CX_ACTOR_SIZE_MAX];
    const cx_str actor = cx_derive_actor(at);
    const size_t size = sizeof CX_TRACE_JOURNAL_PREFIX - 1;
    cx_bytes there;
    bool found = false;
    memcpy(key, CX_TRACE_JOURNAL_PREFIX, size);
    memcpy(key + size, actor.data, actor.size);
    const cx_bytes name = cx_bytes_from(key, size + actor.size);
    CX_TRY(cx_derive_get_common(at, name, &there, &found, err));
    return found ? CX_SUCCESS : cx_derive_put_common(at, name, (cx_bytes){NULL, 0}, err);
}

static cx_status derive_record(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                               size_t count, cx_err *err)
{
    if (entry == NULL || !cx_kinds_is(entry->kind, CX_KIND_TRACE_RECEIVED))
        return CX_SUCCESS;
    CX_TRY(derive_journal(at, err));
    for (size_t i = 0; i < count; i++) {
        if (!is_record(&changes[i]))
            continue;
        CX_TRY(derive_signature(at, &changes[i], err));
        CX_TRY(derive_names(at, &changes[i], err));
    }
    return CX_SUCCESS;
}

static cx_status check_record(const cx_entry *entry, const cx_change *changes, size_t count,
                              cx_arena *arena, cx_err *err)
{
    cx_trace_record record;
    (void)arena;
    if (entry == NULL || !cx_kinds_is(entry->kind, CX_KIND_TRACE_RECEIVED))
        return CX_SUCCESS;
    for (size_t i = 0; i < count; i++)
        if (is_record(&changes[i]))
            CX_TRY(cx_trace_record_decode(changes[i].value, &record, err));
    return CX_SUCCESS;
}

const cx_deriver cx_trace_deriver = {
    .name = "trace/2", .derive = derive_record, .check = check_record};
