/*
 * codec.h - what the record and payload codecs share: ids, omittable members, arrays in an arena.
 */
#ifndef CX_PROOF_CODEC_H
#define CX_PROOF_CODEC_H

#include "cbor/api.h"
#include "proof/record.h"

/* --- writing: a member that is left out when it is empty ------------------------------------- */

static inline void cx_codec_uint(cx_cbor_fields *fields, uint8_t key, uint64_t value)
{
    cx_cbor_field(fields, key);
    cx_cbor_uint(fields->out, value);
}

static inline void cx_codec_uint_o(cx_cbor_fields *fields, uint8_t key, uint64_t value)
{
    if (value != 0)
        cx_codec_uint(fields, key, value);
}

static inline void cx_codec_int(cx_cbor_fields *fields, uint8_t key, int64_t value)
{
    cx_cbor_field(fields, key);
    cx_cbor_int(fields->out, value);
}

/* A time, or null for "no time". */
static inline void cx_codec_time(cx_cbor_fields *fields, uint8_t key, int64_t value, bool null)
{
    cx_cbor_field(fields, key);
    if (null)
        cx_cbor_null(fields->out);
    else
        cx_cbor_int(fields->out, value);
}

static inline void cx_codec_text(cx_cbor_fields *fields, uint8_t key, cx_str text)
{
    cx_cbor_field(fields, key);
    cx_cbor_text(fields->out, text);
}

static inline void cx_codec_text_o(cx_cbor_fields *fields, uint8_t key, cx_str text)
{
    if (text.size != 0)
        cx_codec_text(fields, key, text);
}

static inline void cx_codec_bytes_o(cx_cbor_fields *fields, uint8_t key, cx_bytes bytes)
{
    if (bytes.size != 0) {
        cx_cbor_field(fields, key);
        cx_cbor_bytes(fields->out, bytes);
    }
}

static inline void cx_codec_id(cx_cbor_fields *fields, uint8_t key, const cx_id *id)
{
    cx_cbor_field(fields, key);
    cx_cbor_bytes(fields->out, cx_bytes_from(id->bytes, sizeof id->bytes));
}

static inline void cx_codec_digest(cx_cbor_fields *fields, uint8_t key, const cx_digest *digest)
{
    cx_cbor_field(fields, key);
    cx_cbor_digest(fields->out, digest);
}

static inline void cx_codec_f32(cx_cbor_fields *fields, uint8_t key, float value)
{
    cx_cbor_field(fields, key);
    cx_cbor_f32(fields->out, value);
}

static inline void cx_codec_f32_o(cx_cbor_fields *fields, uint8_t key, float value)
{
    if (value != 0.0f)
        cx_codec_f32(fields, key, value);
}

static inline void cx_codec_true_o(cx_cbor_fields *fields, uint8_t key, bool value)
{
    if (value) {
        cx_cbor_field(fields, key);
        cx_cbor_bool(fields->out, true);
    }
}

void cx_codec_texts(cx_buf *out, const cx_str *texts, size_t count);
void cx_codec_texts_o(cx_cbor_fields *fields, uint8_t key, const cx_str *texts, size_t count);
void cx_codec_ids_o(cx_cbor_fields *fields, uint8_t key, const cx_id *ids, size_t count);

/* --- reading --------------------------------------------------------------------------------- */

/* A decoder at work: the reader, the map at hand, and where arrays go. */
typedef struct cx_decoder {
    cx_cbor_reader reader;
    cx_cbor_members members;
    cx_arena *arena;
    bool out_of_memory;
} cx_decoder;

/* Begins with the outermost map. */
void cx_decoder_begin(cx_decoder *decoder, cx_bytes bytes, const char *what, cx_arena *arena);
static inline bool cx_decoder_next(cx_decoder *decoder)
{
    return !decoder->out_of_memory && cx_cbor_next_member(&decoder->reader, &decoder->members);
}
/* After the last member: the keys of `required` (bit k for key k) were present, and no bytes
 * follow. */
CX_RESULT cx_decoder_end(cx_decoder *decoder, uint64_t required, cx_err *err);
/* Ends a map inside the outermost one. */
void cx_decoder_end_inner(cx_decoder *decoder, const cx_cbor_members *outer, uint64_t required);

/* Members that must not be empty when they are there. */
uint64_t cx_decode_uint_o(cx_decoder *decoder);
cx_str cx_decode_text_o(cx_decoder *decoder);
cx_bytes cx_decode_bytes_o(cx_decoder *decoder);
float cx_decode_f32_o(cx_decoder *decoder);
bool cx_decode_true_o(cx_decoder *decoder);
void cx_decode_id(cx_decoder *decoder, cx_id *out);
int64_t cx_decode_time(cx_decoder *decoder, bool *out_null);
/* schema = 1 */
void cx_decode_schema(cx_decoder *decoder, uint64_t expected);
/* A code in min..max. */
uint8_t cx_decode_code(cx_decoder *decoder, uint64_t min, uint64_t max);
/* A text of at most `max` bytes. */
cx_str cx_decode_text_max(cx_decoder *decoder, size_t max);
/* Arrays; with `omittable` an empty one is refused. */
const cx_str *cx_decode_texts(cx_decoder *decoder, size_t max, size_t size_max, bool omittable,
                              size_t *out_count);
const cx_id *cx_decode_ids(cx_decoder *decoder, size_t max, size_t *out_count);
/* Room for `count` items in the arena, or NULL: then the decoder has failed. */
void *cx_decode_allocate(cx_decoder *decoder, size_t count, size_t item_size_bytes);

#endif
