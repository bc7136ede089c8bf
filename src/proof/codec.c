/*
 * codec.c - the shared parts of the codecs: see codec.h.
 */
#include "proof/codec.h"

void cx_codec_texts(cx_buf *out, const cx_str *texts, size_t count)
{
    cx_cbor_array(out, count);
    for (size_t i = 0; i < count; i++)
        cx_cbor_text(out, texts[i]);
}

void cx_codec_texts_o(cx_cbor_fields *fields, uint8_t key, const cx_str *texts, size_t count)
{
    if (count == 0)
        return;
    cx_cbor_field(fields, key);
    cx_codec_texts(fields->out, texts, count);
}

void cx_codec_ids_o(cx_cbor_fields *fields, uint8_t key, const cx_id *ids, size_t count)
{
    if (count == 0)
        return;
    cx_cbor_field(fields, key);
    cx_cbor_array(fields->out, count);
    for (size_t i = 0; i < count; i++)
        cx_cbor_bytes(fields->out, cx_bytes_from(ids[i].bytes, sizeof ids[i].bytes));
}

void cx_decoder_begin(cx_decoder *decoder, cx_bytes bytes, const char *what, cx_arena *arena)
{
    *decoder = (cx_decoder){.arena = arena};
    cx_cbor_begin(&decoder->reader, bytes, what);
    decoder->members = cx_cbor_read_members(&decoder->reader);
}

cx_status cx_decoder_end(cx_decoder *decoder, uint64_t required, cx_err *err)
{
    if (decoder->out_of_memory)
        return cx_fail_nomem(err);
    cx_cbor_require(&decoder->reader, &decoder->members, required);
    return cx_cbor_end(&decoder->reader, err);
}

void cx_decoder_end_inner(cx_decoder *decoder, const cx_cbor_members *outer, uint64_t required)
{
    cx_cbor_require(&decoder->reader, &decoder->members, required);
    decoder->members = *outer;
}

static void reject_empty(cx_decoder *decoder)
{
    if (cx_cbor_ok(&decoder->reader))
        cx_cbor_reject_empty(&decoder->reader, &decoder->members);
}

uint64_t cx_decode_uint_o(cx_decoder *decoder)
{
    uint64_t value = cx_cbor_read_uint(&decoder->reader);
    if (value == 0)
        reject_empty(decoder);
    return value;
}

cx_str cx_decode_text_o(cx_decoder *decoder)
{
    cx_str text = cx_cbor_read_text(&decoder->reader);
    if (text.size == 0)
        reject_empty(decoder);
    return text;
}

cx_bytes cx_decode_bytes_o(cx_decoder *decoder)
{
    cx_bytes bytes = cx_cbor_read_bytes(&decoder->reader);
    if (bytes.size == 0)
        reject_empty(decoder);
    return bytes;
}

float cx_decode_f32_o(cx_decoder *decoder)
{
    float value = cx_cbor_read_f32(&decoder->reader);
    if (value == 0.0f)
        reject_empty(decoder);
    return value;
}

bool cx_decode_true_o(cx_decoder *decoder)
{
    bool value = cx_cbor_read_bool(&decoder->reader);
    if (!value)
        reject_empty(decoder);
    return value;
}

void cx_decode_id(cx_decoder *decoder, cx_id *out)
{
    (void)cx_cbor_read_exactly(&decoder->reader, out->bytes, sizeof out->bytes);
}

int64_t cx_decode_time(cx_decoder *decoder, bool *out_null)
{
    *out_null = cx_cbor_skip_null(&decoder->reader);
    return *out_null ? 0 : cx_cbor_read_int(&decoder->reader);
}

void cx_decode_schema(cx_decoder *decoder, uint64_t expected)
{
    size_t at = decoder->reader.offset;
    uint64_t schema = cx_cbor_read_uint(&decoder->reader);
    if (cx_cbor_ok(&decoder->reader) && schema != expected)
        cx_cbor_reject(&decoder->reader, at, "schema %llu where %llu is expected",
                       (unsigned long long)schema, (unsigned long long)expected);
}

uint8_t cx_decode_code(cx_decoder *decoder, uint64_t min, uint64_t max)
{
    size_t at = decoder->reader.offset;
    uint64_t code = cx_cbor_read_uint(&decoder->reader);
    if (cx_cbor_ok(&decoder->reader) && (code < min || code > max)) {
        cx_cbor_reject(&decoder->reader, at, "%llu is not in %llu..%llu", (unsigned long long)code,
                       (unsigned long long)min, (unsigned long long)max);
        return 0;
    }
    return (uint8_t)code;
}

cx_str cx_decode_text_max(cx_decoder *decoder, size_t max)
{
    size_t at = decoder->reader.offset;
    cx_str text = cx_cbor_read_text(&decoder->reader);
    if (text.size > max)
        cx_cbor_reject(&decoder->reader, at, "a text of %zu bytes; at most %zu are allowed",
                       text.size, max);
    return text;
}

void *cx_decode_allocate(cx_decoder *decoder, size_t count, size_t item_size_bytes)
{
    if (!cx_cbor_ok(&decoder->reader) || decoder->out_of_memory)
        return NULL;
    void *room = cx_arena_push_array(decoder->arena, count + 1, item_size_bytes, 8);
    decoder->out_of_memory = room == NULL;
    return room;
}

const cx_str *cx_decode_texts(cx_decoder *decoder, size_t max, size_t size_max, bool omittable,
                              size_t *out_count)
{
    size_t count = cx_cbor_read_array(&decoder->reader, max);
    if (count == 0 && omittable)
        reject_empty(decoder);
    cx_str *texts = cx_decode_allocate(decoder, count, sizeof *texts);
    if (texts == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        texts[i] = cx_decode_text_max(decoder, size_max);
    *out_count = count;
    return texts;
}

const cx_id *cx_decode_ids(cx_decoder *decoder, size_t max, size_t *out_count)
{
    size_t count = cx_cbor_read_array(&decoder->reader, max);
    if (count == 0)
        reject_empty(decoder);
    cx_id *ids = cx_decode_allocate(decoder, count, sizeof *ids);
    if (ids == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        memset(ids[i].bytes, 0, sizeof ids[i].bytes);
        cx_decode_id(decoder, &ids[i]);
    }
    *out_count = count;
    return ids;
}
