/*
 * records.h - one way to decode and encode again for each format of the ledger, for the fuzzer and
 * for the tests that flip every bit.
 */
#ifndef CX_FUZZ_RECORDS_H
#define CX_FUZZ_RECORDS_H

#include "cbor/cbor.h"
#include "proof/record.h"

typedef bool record_again(cx_bytes bytes, cx_arena *arena, cx_buf *out);

/* Each: false when the bytes are refused; otherwise `out` holds what the encoder makes of them. */
#define RECORD_AGAIN(name)                                                        \
    static inline bool again_##name(cx_bytes bytes, cx_arena *arena, cx_buf *out) \
    {                                                                             \
        cx_##name value;                                                          \
        if (cx_failed(cx_##name##_decode(bytes, arena, &value, NULL)))            \
            return false;                                                         \
        cx_##name##_encode(&value, out);                                          \
        return true;                                                              \
    }

RECORD_AGAIN(head)
RECORD_AGAIN(edge)
RECORD_AGAIN(vector)
RECORD_AGAIN(checkpoint_record)

static inline bool again_version(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_version_record value;
    if (cx_failed(cx_version_decode(bytes, arena, &value, NULL)))
        return false;
    cx_version_encode(&value, out);
    return true;
}

static inline bool again_entry(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_entry value;
    (void)arena;
    if (cx_failed(cx_entry_decode(bytes, &value, NULL)))
        return false;
    cx_entry_encode(&value, out);
    return true;
}

static inline bool again_salience(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_salience value;
    (void)arena;
    if (cx_failed(cx_salience_decode(bytes, &value, NULL)))
        return false;
    cx_salience_encode(&value, out);
    return true;
}

static inline bool again_weights(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_weights_record value;
    (void)arena;
    if (cx_failed(cx_weights_decode(bytes, &value, NULL)))
        return false;
    cx_weights_encode(&value, out);
    return true;
}

static inline bool again_manifest(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_manifest value;
    (void)arena;
    if (cx_failed(cx_manifest_decode(bytes, &value, NULL)))
        return false;
    cx_manifest_encode(&value, out);
    return true;
}

static inline bool again_payload(cx_entry_kind kind, cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_payload value;
    if (cx_failed(cx_payload_decode(kind, bytes, arena, &value, NULL)))
        return false;
    cx_payload_encode(&value, out);
    return true;
}

static record_again *const record_formats[] = {
    again_head,  again_version,  again_edge,    again_vector,   again_checkpoint_record,
    again_entry, again_salience, again_weights, again_manifest,
};
#define RECORD_FORMAT_COUNT (sizeof record_formats / sizeof *record_formats)

#endif
