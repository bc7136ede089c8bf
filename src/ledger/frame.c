/*
 * frame.c - the ledger's frames: layout in frame.h.
 *
 * F1  A frame decodes to exactly what was encoded, or decoding fails.
 * F2  Erasable values are only in the erasable part; their hashes are in the guarded part, so that
 *     every commitment can still be recomputed after an erasure.
 */
#include "ledger/frame.h"

#include "base/api.h"

enum { FRAME_FORMAT = 1 };
enum { HAS_ENTRY = 1, HAS_COMMITTED = 2, HAS_SUBJECT = 4 };
enum { CHANGE_SET = 0, CHANGE_REMOVE = 1, CHANGE_SET_ERASABLE = 2 };

#define CHANGES_MAX 65536
#define SALT_SIZE 32

static void add_uint(cx_buf *out, uint64_t value, unsigned width)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    cx_buf_add(out, bytes, width);
}

cx_status cx_change_check(const cx_change *change, cx_err *err)
{
    if (change->key.size == 0 || change->key.size > CX_KEY_SIZE_MAX)
        return cx_fail(err, CX_E_LIMIT, "record key of %zu bytes; 1 to %d are allowed",
                       change->key.size, CX_KEY_SIZE_MAX);
    if (change->value.size > CX_VALUE_SIZE_MAX)
        return cx_fail(err, CX_E_LIMIT, "record of %zu bytes; at most %u are allowed",
                       change->value.size, CX_VALUE_SIZE_MAX);
    return CX_SUCCESS;
}

static cx_status encode_change(const cx_change *change, cx_buf *guarded, cx_buf *erasable,
                               cx_err *err)
{
    CX_TRY(cx_change_check(change, err));
    uint8_t kind = change->removed    ? CHANGE_REMOVE
                   : change->erasable ? CHANGE_SET_ERASABLE
                                      : CHANGE_SET;
    cx_buf_add_byte(guarded, kind);
    add_uint(guarded, change->key.size, 2);
    cx_buf_add(guarded, change->key.data, change->key.size);
    if (kind == CHANGE_REMOVE)
        return CX_SUCCESS;
    add_uint(guarded, change->value.size, 4);
    if (kind == CHANGE_SET) {
        cx_buf_add(guarded, change->value.data, change->value.size);
    } else {
        cx_buf_add(guarded, change->value_hash.bytes, sizeof change->value_hash.bytes);
        cx_buf_add(erasable, change->value.data, change->value.size);
    }
    return CX_SUCCESS;
}

cx_bytes cx_frame_erasable_in_place(const cx_ledger_frame *frame)
{
    const cx_bytes none = {NULL, 0};
    if (!frame->committed || frame->payload.data != frame->salt + SALT_SIZE)
        return none;
    for (size_t i = 0; i < frame->change_count; i++)
        if (frame->changes[i].erasable)
            return none;
    return cx_bytes_from(frame->salt, SALT_SIZE + frame->payload.size);
}

cx_status cx_frame_encode(const cx_ledger_frame *frame, cx_buf *guarded, cx_buf *erasable,
                          cx_err *err)
{
    uint8_t flags = 0;
    if (frame->change_count > CHANGES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a frame of %zu changes; at most %d are allowed",
                       frame->change_count, CHANGES_MAX);
    if (frame->entry.size != 0)
        flags |= HAS_ENTRY;
    if (frame->committed)
        flags |= HAS_COMMITTED;
    if (frame->has_subject)
        flags |= HAS_SUBJECT;
    cx_buf_add_byte(guarded, FRAME_FORMAT);
    cx_buf_add_byte(guarded, flags);
    add_uint(guarded, frame->actor.size, 2);
    cx_buf_add_str(guarded, frame->actor);
    if (frame->entry.size != 0) {
        add_uint(guarded, frame->entry.size, 4);
        cx_buf_add(guarded, frame->entry.data, frame->entry.size);
    }
    if (frame->has_subject)
        cx_buf_add(guarded, frame->subject.bytes, sizeof frame->subject.bytes);
    add_uint(guarded, frame->change_count, 4);
    if (frame->committed && erasable != NULL) {
        cx_buf_add(erasable, frame->salt, SALT_SIZE);
        cx_buf_add(erasable, frame->payload.data, frame->payload.size);
    }
    for (size_t i = 0; i < frame->change_count; i++)
        CX_TRY(encode_change(&frame->changes[i], guarded, erasable, err));
    CX_TRY(cx_buf_check(guarded, err));
    return erasable != NULL ? cx_buf_check(erasable, err) : CX_SUCCESS;
}

/* Reads one change.  Erasable values are located afterwards, when the payload's size is known. */
static bool decode_change(cx_reader *reader, bool erased, cx_change *out, size_t *out_erasable_size)
{
    *out = (cx_change){0};
    uint8_t kind = cx_reader_u8(reader);
    out->key = cx_reader_bytes(reader, cx_reader_u16(reader));
    if (kind > CHANGE_SET_ERASABLE || out->key.size == 0 || out->key.size > CX_KEY_SIZE_MAX)
        return false;
    out->removed = kind == CHANGE_REMOVE;
    if (out->removed)
        return cx_reader_ok(reader);
    size_t size = cx_reader_u32(reader);
    if (kind == CHANGE_SET) {
        out->value = cx_reader_bytes(reader, size);
        return cx_reader_ok(reader);
    }
    out->erasable = true;
    out->erased = erased;
    out->value.size = size;
    *out_erasable_size += size;
    cx_bytes hash = cx_reader_bytes(reader, sizeof out->value_hash.bytes);
    if (hash.size == sizeof out->value_hash.bytes)
        memcpy(out->value_hash.bytes, hash.data, hash.size);
    return cx_reader_ok(reader);
}

/* Assigns the erasable bytes to payload and values.  False when the sizes do not match. */
static bool divide_erasable(cx_ledger_frame *frame, cx_change *changes, cx_bytes erasable,
                            size_t values_size)
{
    size_t fixed = frame->committed ? SALT_SIZE : 0;
    if (erasable.size < fixed || erasable.size - fixed < values_size)
        return false;
    size_t payload_size = erasable.size - fixed - values_size;
    if (!frame->committed && payload_size != 0)
        return false;
    cx_reader reader = cx_reader_over(erasable);
    if (frame->committed) {
        frame->salt = cx_reader_bytes(&reader, SALT_SIZE).data;
        frame->payload = cx_reader_bytes(&reader, payload_size);
    }
    for (size_t i = 0; i < frame->change_count; i++)
        if (changes[i].erasable)
            changes[i].value = cx_reader_bytes(&reader, changes[i].value.size);
    return cx_reader_ok(&reader) && cx_reader_left(&reader) == 0;
}

static void forget_erased(cx_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].erasable)
            changes[i].value = (cx_bytes){NULL, 0};
}

static bool decode_start(cx_reader *reader, cx_ledger_frame *out)
{
    if (cx_reader_u8(reader) != FRAME_FORMAT)
        return false;
    uint8_t flags = cx_reader_u8(reader);
    if ((flags & ~(HAS_ENTRY | HAS_COMMITTED | HAS_SUBJECT)) != 0)
        return false;
    out->committed = (flags & HAS_COMMITTED) != 0;
    out->has_subject = (flags & HAS_SUBJECT) != 0;
    out->actor = cx_bytes_str(cx_reader_bytes(reader, cx_reader_u16(reader)));
    if ((flags & HAS_ENTRY) != 0) {
        out->entry = cx_reader_bytes(reader, cx_reader_u32(reader));
        if (out->entry.size == 0)
            return false;
    } else if (out->committed) {
        return false;
    }
    if (out->has_subject) {
        cx_bytes id = cx_reader_bytes(reader, sizeof out->subject.bytes);
        if (id.size == sizeof out->subject.bytes)
            memcpy(out->subject.bytes, id.data, id.size);
    }
    return cx_reader_ok(reader) && out->actor.size <= CX_ACTOR_SIZE_MAX;
}

cx_status cx_frame_decode(const cx_log_frame *parts, bool erased, cx_arena *arena,
                          cx_ledger_frame *out, cx_err *err)
{
    cx_reader reader = cx_reader_over(parts->guarded);
    cx_ledger_frame frame = {.erased = erased};
    size_t count = 0, values_size = 0;
    cx_change *changes = NULL;
    bool ok = decode_start(&reader, &frame);
    if (ok) {
        count = cx_reader_u32(&reader);
        /* A change is at least four bytes long. */
        ok = cx_reader_ok(&reader) && count <= CHANGES_MAX && count <= cx_reader_left(&reader) / 4;
    }
    if (ok && count != 0) {
        changes = CX_ARENA_ARRAY(arena, cx_change, count);
        if (changes == NULL)
            return cx_fail_nomem(err);
    }
    for (size_t i = 0; ok && i < count; i++)
        ok = decode_change(&reader, erased, &changes[i], &values_size);
    ok = ok && cx_reader_left(&reader) == 0;
    frame.changes = changes;
    frame.change_count = count;
    if (ok && erased)
        forget_erased(changes, count);
    else
        ok = ok && divide_erasable(&frame, changes, parts->erasable, values_size);
    if (!ok)
        return cx_fail_at(err, CX_E_FORMAT, "LogDamaged", reader.offset,
                          "a frame of the log is not one this program writes (byte %zu of it)",
                          reader.offset);
    *out = frame;
    return CX_SUCCESS;
}
