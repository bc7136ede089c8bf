/*
 * remote_wire.c - the requests of clients to the writer process as bytes; the answers are in
 * remote_answer.c.
 *
 * W1  encode(decode(x)) == x, but for what an error says: a member that may be left out is left out
 *     when it is empty, and refused when it is there all the same.
 * W2  Which members a message has follows from what is asked: of_request here, of_answer there.
 */
#include "socket/remote_wire_internal.h"

/* --- members ---------------------------------------------------------------------------------- */

enum {
    NUMBER = 0,
    OP = 1,
    ACTOR = 2,
    KEY = 3,
    SEQ = 4,
    SUBJECT = 5,
    PREFIX = 6,
    FROM = 7,
    FLAGS = 8,
    LIMIT = 9,
    SCHEME = 10,
    FRAMES = 11,
    DERIVERS = 12,
    AGE = 13
};

enum { FLAG_BACKWARDS = 1, FLAG_AFTER = 2, FLAG_COMMON = 4 };

static const members of_request[CX_REMOTE_OP_END] = {
    [CX_REMOTE_HELLO] = {BIT(DERIVERS), 0},
    [CX_REMOTE_ACTOR] = {BIT(ACTOR), 0},
    [CX_REMOTE_ACTORS] = {BIT(SEQ), 0},
    [CX_REMOTE_GET] = {BIT(ACTOR) | BIT(KEY), 0},
    [CX_REMOTE_GET_AT] = {BIT(ACTOR) | BIT(KEY) | BIT(SEQ), 0},
    [CX_REMOTE_SCAN] = {BIT(ACTOR) | BIT(PREFIX) | BIT(LIMIT), BIT(FROM) | BIT(FLAGS)},
    [CX_REMOTE_ENTRY] = {BIT(ACTOR) | BIT(SEQ), 0},
    [CX_REMOTE_ABOUT] = {BIT(ACTOR) | BIT(SEQ) | BIT(SUBJECT), 0},
    [CX_REMOTE_ROOTS] = {BIT(ACTOR), 0},
    [CX_REMOTE_ERASE] = {BIT(ACTOR), 0},
    [CX_REMOTE_TXN_BEGIN] = {BIT(ACTOR), BIT(SCHEME)},
    [CX_REMOTE_TXN_GET] = {BIT(KEY), BIT(FLAGS)},
    [CX_REMOTE_TXN_COMMIT] = {BIT(FRAMES), 0},
    [CX_REMOTE_HOME_ROOT] = {BIT(SEQ), 0},
    [CX_REMOTE_ARCHIVE] = {BIT(KEY) | BIT(SEQ) | BIT(AGE), 0},
};

/* --- frames of a transaction ------------------------------------------------------------------ */

enum {
    FRAME_KIND = 0,
    FRAME_CREATED = 1,
    FRAME_BY = 2,
    FRAME_PAYLOAD = 3,
    FRAME_COMMITTED = 4,
    FRAME_SALT = 5,
    FRAME_SUBJECT = 6,
    FRAME_CHANGES = 7
};

enum { CHANGE_SET = 0, CHANGE_REMOVE = 1, CHANGE_SET_ERASABLE = 2 };

static void put_change(const cx_change *change, cx_buf *out)
{
    cx_cbor_array(out, change->removed ? 2 : 3);
    cx_cbor_uint(out, change->removed    ? CHANGE_REMOVE
                      : change->erasable ? CHANGE_SET_ERASABLE
                                         : CHANGE_SET);
    cx_cbor_bytes(out, change->key);
    if (!change->removed)
        cx_cbor_bytes(out, change->value);
}

static void put_draft(cx_cbor_fields *fields, const cx_entry_draft *draft)
{
    cx_cbor_field(fields, FRAME_KIND);
    cx_cbor_text(fields->out, draft->kind);
    cx_cbor_field(fields, FRAME_CREATED);
    cx_cbor_int(fields->out, draft->created_at_ns);
    if (draft->created_by.size != 0)
        put_bytes(fields, FRAME_BY, draft->created_by);
    if (draft->payload.size != 0)
        put_bytes(fields, FRAME_PAYLOAD, draft->payload);
    if (draft->committed)
        put_true(fields, FRAME_COMMITTED);
    if (draft->salt != NULL)
        put_bytes(fields, FRAME_SALT, cx_bytes_from(draft->salt, 32));
    if (draft->subject != NULL)
        put_bytes(fields, FRAME_SUBJECT, cx_bytes_from(draft->subject->bytes, 16));
}

static void put_frame(const cx_remote_frame *frame, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    if (frame->has_entry)
        put_draft(&fields, &frame->draft);
    cx_cbor_field(&fields, FRAME_CHANGES);
    cx_cbor_array(out, frame->change_count);
    for (size_t i = 0; i < frame->change_count; i++)
        put_change(&frame->changes[i], out);
    cx_cbor_fields_end(&fields);
}

static cx_change read_change(cx_cbor_reader *reader)
{
    cx_change change = {.removed = false};
    size_t at = reader->offset;
    size_t count = cx_cbor_read_array(reader, 3);
    uint64_t what = cx_cbor_read_uint_max(reader, CHANGE_SET_ERASABLE);
    change.removed = what == CHANGE_REMOVE;
    change.erasable = what == CHANGE_SET_ERASABLE;
    if (cx_cbor_ok(reader) && count != (change.removed ? 2 : 3))
        cx_cbor_reject(reader, at, "a change of %zu items", count);
    change.key = read_bytes_max(reader, CX_KEY_SIZE_MAX);
    if (cx_cbor_ok(reader) && change.key.size == 0)
        cx_cbor_reject(reader, at, "a change of no record");
    if (!change.removed)
        change.value = read_bytes_max(reader, CX_VALUE_SIZE_MAX);
    return change;
}

static void read_changes(cx_cbor_reader *reader, cx_arena *arena, cx_remote_frame *frame)
{
    size_t count = cx_cbor_read_array(reader, CX_REMOTE_CHANGES_MAX);
    cx_change *changes = READ_ARRAY(reader, arena, cx_change, count);
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++)
        changes[i] = read_change(reader);
    frame->changes = changes;
    frame->change_count = count;
}

static cx_bytes read_not_empty(cx_cbor_reader *reader, const cx_cbor_members *at, size_t max)
{
    cx_bytes bytes = read_bytes_max(reader, max);
    if (cx_cbor_ok(reader) && bytes.size == 0)
        cx_cbor_reject_empty(reader, at);
    return bytes;
}

static void read_frame_member(cx_cbor_reader *reader, cx_arena *arena, const cx_cbor_members *at,
                              cx_remote_frame *frame)
{
    cx_entry_draft *draft = &frame->draft;
    switch (at->key) {
    case FRAME_KIND: draft->kind = cx_cbor_read_text(reader); break;
    case FRAME_CREATED: draft->created_at_ns = cx_cbor_read_int(reader); break;
    case FRAME_BY: draft->created_by = read_not_empty(reader, at, CX_ENTRY_CREATED_BY_MAX); break;
    case FRAME_PAYLOAD: draft->payload = read_not_empty(reader, at, SIZE_MAX); break;
    case FRAME_COMMITTED: draft->committed = read_true(reader); break;
    case FRAME_SALT: {
        size_t start = reader->offset;
        draft->salt = cx_cbor_read_bytes(reader).data;
        if (cx_cbor_ok(reader) && reader->offset - start != 2 + 32)
            cx_cbor_reject(reader, start, "a salt that has not 32 bytes");
        break;
    }
    case FRAME_SUBJECT:
        frame->subject = read_id(reader);
        draft->subject = &frame->subject;
        break;
    case FRAME_CHANGES: read_changes(reader, arena, frame); break;
    default: cx_cbor_reject_member(reader, at);
    }
}

static void read_frame(cx_cbor_reader *reader, cx_arena *arena, cx_remote_frame *out)
{
    *out = (cx_remote_frame){.has_entry = false};
    cx_cbor_members at = cx_cbor_read_members(reader);
    while (cx_cbor_next_member(reader, &at))
        read_frame_member(reader, arena, &at, out);
    out->has_entry = (at.seen & BIT(FRAME_KIND)) != 0;
    uint64_t needed = out->has_entry ? BIT(FRAME_KIND) | BIT(FRAME_CREATED) : 0;
    cx_cbor_require(reader, &at, needed | BIT(FRAME_CHANGES));
    if (cx_cbor_ok(reader) && !out->has_entry && at.seen != BIT(FRAME_CHANGES))
        cx_cbor_reject(reader, at.offset, "half of an entry");
}

static void read_frames(cx_cbor_reader *reader, cx_arena *arena, cx_remote_request *out)
{
    size_t at = reader->offset;
    size_t count = cx_cbor_read_array(reader, CX_REMOTE_FRAMES_MAX);
    if (cx_cbor_ok(reader) && count == 0)
        cx_cbor_reject(reader, at, "a transaction without frames");
    cx_remote_frame *frames = READ_ARRAY(reader, arena, cx_remote_frame, count);
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++)
        read_frame(reader, arena, &frames[i]);
    out->frames = frames;
    out->frame_count = count;
}

/* --- requests --------------------------------------------------------------------------------- */

static uint64_t flags_of(const cx_remote_request *request)
{
    return (request->backwards ? FLAG_BACKWARDS : 0u) | (request->after ? FLAG_AFTER : 0u) |
           (request->common ? FLAG_COMMON : 0u);
}

static void put_page(const cx_remote_request *request, const members *known, cx_cbor_fields *fields)
{
    if (takes(known, PREFIX))
        put_bytes(fields, PREFIX, request->prefix);
    if (takes(known, FROM) && request->from.size != 0)
        put_bytes(fields, FROM, request->from);
    if (takes(known, FLAGS) && flags_of(request) != 0)
        put_uint(fields, FLAGS, flags_of(request));
    if (takes(known, LIMIT))
        put_uint(fields, LIMIT, request->limit);
}

void cx_remote_request_encode(const cx_remote_request *request, cx_buf *out)
{
    const members *known = &of_request[request->op];
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    put_uint(&fields, NUMBER, request->number);
    put_uint(&fields, OP, request->op);
    if (takes(known, ACTOR))
        put_bytes(&fields, ACTOR, request->actor);
    if (takes(known, KEY))
        put_bytes(&fields, KEY, request->key);
    if (takes(known, SEQ))
        put_uint(&fields, SEQ, request->seq);
    if (takes(known, SUBJECT))
        put_bytes(&fields, SUBJECT, cx_bytes_from(request->subject.bytes, 16));
    put_page(request, known, &fields);
    if (takes(known, SCHEME) && request->has_scheme) {
        cx_cbor_field(&fields, SCHEME);
        cx_cbor_text(out, cx_scheme_name(request->scheme));
    }
    if (takes(known, FRAMES)) {
        cx_cbor_field(&fields, FRAMES);
        cx_cbor_array(out, request->frame_count);
        for (size_t i = 0; i < request->frame_count; i++)
            put_frame(&request->frames[i], out);
    }
    if (takes(known, DERIVERS))
        put_bytes(&fields, DERIVERS, request->derivers);
    if (takes(known, AGE))
        put_uint(&fields, AGE, request->age_ns);
    cx_cbor_fields_end(&fields);
}

static void read_flags(cx_cbor_reader *reader, cx_remote_request *out)
{
    size_t at = reader->offset;
    uint64_t allowed =
        out->op == CX_REMOTE_SCAN ? FLAG_BACKWARDS | FLAG_AFTER | FLAG_COMMON : FLAG_COMMON;
    uint64_t flags = cx_cbor_read_uint(reader);
    if (cx_cbor_ok(reader) && (flags == 0 || (flags & ~allowed) != 0))
        cx_cbor_reject(reader, at, "flags that mean nothing here");
    out->backwards = (flags & FLAG_BACKWARDS) != 0;
    out->after = (flags & FLAG_AFTER) != 0;
    out->common = (flags & FLAG_COMMON) != 0;
}

static void read_request_member(cx_cbor_reader *reader, cx_arena *arena, const cx_cbor_members *at,
                                cx_remote_request *out)
{
    switch (at->key) {
    case NUMBER: out->number = cx_cbor_read_uint(reader); break;
    case OP: {
        size_t start = reader->offset;
        out->op = (cx_remote_op)cx_cbor_read_uint_max(reader, CX_REMOTE_OP_END - 1);
        if (cx_cbor_ok(reader) && out->op == 0)
            cx_cbor_reject(reader, start, "no call that is known");
        break;
    }
    case ACTOR: out->actor = read_bytes_max(reader, CX_REMOTE_MESSAGE_MAX); break;
    case KEY: out->key = read_bytes_max(reader, CX_KEY_SIZE_MAX); break;
    case SEQ: out->seq = cx_cbor_read_uint(reader); break;
    case SUBJECT: out->subject = read_id(reader); break;
    case PREFIX: out->prefix = read_bytes_max(reader, CX_KEY_SIZE_MAX); break;
    case FROM: out->from = read_not_empty(reader, at, CX_KEY_SIZE_MAX); break;
    case FLAGS: read_flags(reader, out); break;
    case LIMIT: out->limit = cx_cbor_read_uint_max(reader, CX_REMOTE_ROWS_MAX); break;
    case SCHEME:
        out->scheme = read_scheme(reader);
        out->has_scheme = true;
        break;
    case FRAMES: read_frames(reader, arena, out); break;
    case AGE: out->age_ns = cx_cbor_read_uint(reader); break;
    case DERIVERS: out->derivers = read_bytes_max(reader, CX_KEY_SIZE_MAX); break;
    default: cx_cbor_reject_member(reader, at);
    }
}

cx_status cx_remote_request_decode(cx_bytes bytes, cx_arena *arena, cx_remote_request *out,
                                   cx_err *err)
{
    cx_cbor_reader reader;
    cx_remote_request request = {.number = 0};
    cx_cbor_begin(&reader, bytes, "a request");
    cx_cbor_members at = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &at))
        read_request_member(&reader, arena, &at, &request);
    cx_cbor_require(&reader, &at, BIT(NUMBER) | BIT(OP));
    if (cx_cbor_ok(&reader) && !is_in_range(&of_request[request.op], at.seen))
        cx_cbor_reject(&reader, at.offset, "not the members of call %d", (int)request.op);
    CX_TRY(cx_cbor_end(&reader, err));
    *out = request;
    return CX_SUCCESS;
}

/* --- greetings -------------------------------------------------------------------------------- */

void cx_remote_greeting(uint8_t out[CX_REMOTE_GREETING_SIZE])
{
    memcpy(out, CX_REMOTE_GREETING, 6);
    out[6] = CX_REMOTE_VERSION >> 8;
    out[7] = CX_REMOTE_VERSION & 0xff;
}

bool cx_remote_greeting_read(const uint8_t bytes[CX_REMOTE_GREETING_SIZE], unsigned *out_version)
{
    if (memcmp(bytes, CX_REMOTE_GREETING, 6) != 0)
        return false;
    *out_version = (unsigned)bytes[6] << 8 | bytes[7];
    return true;
}
