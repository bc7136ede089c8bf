/*
 * session_index.c - stores each byte of a session file once, and finds it again.
 *
 *   I1  Pieces of a session follow each other without a gap: a piece begins where the record says
 *       that the last one ended, which is checked inside the transaction.
 */
#include "stores/session_index.h"

#include <stdio.h>

#include "crypto/api.h"
#include "proof/api.h"
#include "recorder/api.h"

#define FILE_PREFIX "session/file/"
#define PIECE_PREFIX "session/piece/"
#define REQUIRED (UINT64_C(0x3FE))

/* In the order of the numbers in records. */
static const struct {
    const char *name;
    cx_dotted_kind kind;
} formats[CX_SESSION_FORMAT_COUNT] = {
    {"claude-code", CX_KIND_SESSION_CLAUDE_CODE},
    {"codex", CX_KIND_SESSION_CODEX},
    {"unread", CX_KIND_SESSION_UNREAD},
    {"gemini-cli", CX_KIND_SESSION_GEMINI_CLI},
    {"qwen-code", CX_KIND_SESSION_QWEN_CODE},
    {"cursor", CX_KIND_SESSION_CURSOR},
    {"copilot-cli", CX_KIND_SESSION_COPILOT_CLI},
    {"opencode", CX_KIND_SESSION_OPENCODE},
    {"cline", CX_KIND_SESSION_CLINE},
    {"droid", CX_KIND_SESSION_DROID},
    {"aider", CX_KIND_SESSION_AIDER},
    {"openhands", CX_KIND_SESSION_OPENHANDS},
};

const char *cx_recorded_session_format_name(cx_recorded_session_format format)
{
    return formats[format].name;
}

cx_recorded_session_format cx_recorded_session_format_of(const char *name)
{
    for (size_t i = 0; name != NULL && i < CX_COUNT_OF(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return (cx_recorded_session_format)i;
    return CX_SESSION_UNREAD;
}

void cx_recorded_session_name(cx_recorded_session *session)
{
    cx_session_id(session->path, session->generation, session->id);
}

/* --- records ---------------------------------------------------------------------------------- */

typedef struct key {
    uint8_t bytes[64];
    size_t size;
} key;

static key key_of(const char *prefix, const uint8_t *id)
{
    key k = {.size = strlen(prefix)};
    memcpy(k.bytes, prefix, k.size);
    if (id != NULL) {
        memcpy(k.bytes + k.size, id, CX_SESSION_ID_SIZE);
        k.size += CX_SESSION_ID_SIZE;
    }
    return k;
}

static key piece_key(const uint8_t *id, uint64_t offset)
{
    key k = key_of(PIECE_PREFIX, id);
    for (unsigned i = 0; i < 8; i++)
        k.bytes[k.size++] = (uint8_t)(offset >> (56 - 8 * i));
    return k;
}

static cx_bytes bytes_of(const key *k)
{
    return cx_bytes_from(k->bytes, k->size);
}

static void encode_session(const cx_recorded_session *session, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, session->format);
    cx_codec_uint(&fields, 2, session->generation);
    cx_codec_uint(&fields, 3, session->offset);
    cx_codec_uint(&fields, 4, session->device);
    cx_codec_uint(&fields, 5, session->inode);
    cx_codec_uint(&fields, 6, session->head_size);
    cx_codec_digest(&fields, 7, &session->head);
    cx_codec_uint(&fields, 8, session->tail_size);
    cx_codec_digest(&fields, 9, &session->tail);
    cx_codec_bytes_o(&fields, 10, cx_str_bytes(session->path));
    if (session->counted)
        cx_codec_uint(&fields, 11, session->lines);
    cx_codec_bytes_o(&fields, 12, session->place);
    cx_cbor_fields_end(&fields);
}

static cx_status decode_session(cx_bytes bytes, cx_recorded_session *out, cx_err *err)
{
    cx_decoder d;
    cx_decoder_begin(&d, bytes, "session record", NULL);
    while (cx_decoder_next(&d)) {
        cx_cbor_reader *r = &d.reader;
        switch (d.members.key) {
        case 1:
            out->format =
                (cx_recorded_session_format)cx_cbor_read_uint_max(r, CX_SESSION_FORMAT_COUNT - 1);
            break;
        case 2: out->generation = cx_cbor_read_uint(r); break;
        case 3: out->offset = cx_cbor_read_uint(r); break;
        case 4: out->device = cx_cbor_read_uint(r); break;
        case 5: out->inode = cx_cbor_read_uint(r); break;
        case 6: out->head_size = cx_cbor_read_uint_max(r, CX_SESSION_MARK_SIZE); break;
        case 7: out->head = cx_cbor_read_digest(r); break;
        case 8: out->tail_size = cx_cbor_read_uint_max(r, CX_SESSION_MARK_SIZE); break;
        case 9: out->tail = cx_cbor_read_digest(r); break;
        case 10: out->path = cx_bytes_str(cx_decode_bytes_o(&d)); break;
        case 11:
            out->lines = cx_cbor_read_uint(r);
            out->counted = true;
            break;
        case 12: out->place = cx_decode_bytes_o(&d); break;
        default: cx_cbor_reject_member(r, &d.members);
        }
    }
    return cx_decoder_end(&d, REQUIRED, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct collecting {
    cx_arena *arena;
    cx_recorded_session *items;
    size_t count, room;
} collecting;

static cx_status add_session(void *arg, cx_bytes name, cx_bytes value, bool *stop, cx_err *err)
{
    collecting *c = arg;
    (void)stop;
    if (c->count == c->room) {
        size_t room = c->room == 0 ? 64 : 2 * c->room;
        cx_recorded_session *grown = CX_ARENA_ARRAY(c->arena, cx_recorded_session, room);
        if (grown == NULL)
            return cx_fail_nomem(err);
        if (c->count != 0)
            memcpy(grown, c->items, c->count * sizeof *grown);
        c->items = grown;
        c->room = room;
    }
    cx_str kept = cx_arena_copy_str(c->arena, cx_bytes_str(value));
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    cx_recorded_session *session = &c->items[c->count];
    *session = (cx_recorded_session){.record = cx_str_bytes(kept)};
    if (name.size != strlen(FILE_PREFIX) + CX_SESSION_ID_SIZE)
        return cx_fail(err, CX_E_FORMAT, "a session record has a name of %zu bytes", name.size);
    memcpy(session->id, name.data + strlen(FILE_PREFIX), CX_SESSION_ID_SIZE);
    CX_TRY(decode_session(session->record, session, err));
    c->count++;
    return CX_SUCCESS;
}

static cx_status scan_session_rows(cx_home *home, const key *prefix,
                                   cx_status (*row)(void *, cx_bytes, cx_bytes, bool *, cx_err *),
                                   void *arg, cx_err *err)
{
    cx_actor_info actor;
    cx_status status = cx_home_actor(home, CX_STR(CX_SESSION_ACTOR), &actor, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    const cx_scan what = {
        .actor = CX_STR(CX_SESSION_ACTOR), .prefix = bytes_of(prefix), .row = row, .arg = arg};
    return cx_home_scan(home, &what, err);
}

cx_status cx_recorder_sessions(cx_home *home, cx_arena *arena, const cx_recorded_session **out,
                               size_t *out_count, cx_err *err)
{
    collecting c = {.arena = arena};
    const key prefix = key_of(FILE_PREFIX, NULL);
    CX_TRY(scan_session_rows(home, &prefix, add_session, &c, err));
    *out = c.items;
    *out_count = c.count;
    return CX_SUCCESS;
}

/* Lines are not counted in pieces of earlier versions.  The place is borrowed. */
static cx_status decode_piece(cx_bytes name, cx_bytes value, cx_session_piece *out,
                              cx_bytes *out_place, cx_err *err)
{
    cx_decoder d;
    *out = (cx_session_piece){.offset = 0};
    *out_place = (cx_bytes){NULL, 0};
    for (size_t i = name.size < 8 ? 0 : name.size - 8; i < name.size; i++)
        out->offset = out->offset << 8 | name.data[i];
    cx_decoder_begin(&d, value, "piece of a session", NULL);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 1: out->seq = cx_cbor_read_uint(&d.reader); break;
        case 2: out->size = cx_cbor_read_uint(&d.reader); break;
        case 3: out->lines = cx_cbor_read_uint(&d.reader); break;
        case 4: *out_place = cx_decode_bytes_o(&d); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    return cx_decoder_end(&d, 6, err);
}

/* What is wanted of a piece. */
typedef struct wanted_piece {
    cx_session_piece piece;
    cx_import_place place;
    bool has_place;
} wanted_piece;

static cx_status take_piece(void *arg, cx_bytes name, cx_bytes value, bool *stop, cx_err *err)
{
    wanted_piece *wanted = arg;
    cx_bytes place;
    cx_err ignored;
    *stop = true;
    CX_TRY(decode_piece(name, value, &wanted->piece, &place, err));
    wanted->has_place =
        place.size != 0 && !cx_failed(cx_import_place_decode(place, &wanted->place, &ignored));
    return CX_SUCCESS;
}

static cx_status find_piece(cx_home *home, const cx_recorded_session *session, uint64_t offset,
                            wanted_piece *out, cx_err *err)
{
    const key prefix = key_of(PIECE_PREFIX, session->id), from = piece_key(session->id, offset);
    const cx_scan what = {.actor = CX_STR(CX_SESSION_ACTOR),
                          .prefix = bytes_of(&prefix),
                          .from = bytes_of(&from),
                          .backwards = true,
                          .row = take_piece,
                          .arg = out};
    *out = (wanted_piece){.has_place = false};
    CX_TRY(cx_home_scan(home, &what, err));
    if (offset < out->piece.offset || offset - out->piece.offset >= out->piece.size)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPiece", CX_NO_OFFSET,
                          "no piece of the session has its byte %llu", (unsigned long long)offset);
    return CX_SUCCESS;
}

cx_status cx_recorder_session_piece(cx_home *home, const cx_recorded_session *session,
                                    uint64_t offset, cx_session_piece *out, cx_err *err)
{
    wanted_piece found;
    CX_TRY(find_piece(home, session, offset, &found, err));
    *out = found.piece;
    return CX_SUCCESS;
}

cx_status cx_recorder_session_place(cx_home *home, const cx_recorded_session *session,
                                    uint64_t offset, cx_session_piece *out,
                                    cx_import_place *out_place, bool *out_found, cx_err *err)
{
    wanted_piece found;
    CX_TRY(find_piece(home, session, offset, &found, err));
    *out = found.piece;
    *out_place = found.place;
    *out_found = found.has_place;
    return CX_SUCCESS;
}

typedef struct piece_list {
    cx_arena *arena;
    uint64_t *seqs;
    size_t count, room;
} piece_list;

static cx_status add_piece(void *arg, cx_bytes name, cx_bytes value, bool *stop, cx_err *err)
{
    piece_list *list = arg;
    cx_session_piece piece;
    cx_bytes place;
    (void)stop;
    CX_TRY(decode_piece(name, value, &piece, &place, err));
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : 2 * list->room;
        uint64_t *grown = CX_ARENA_ARRAY(list->arena, uint64_t, room);
        if (grown == NULL)
            return cx_fail_nomem(err);
        if (list->count != 0)
            memcpy(grown, list->seqs, list->count * sizeof *grown);
        list->seqs = grown;
        list->room = room;
    }
    list->seqs[list->count++] = piece.seq;
    return CX_SUCCESS;
}

cx_status cx_recorder_session_newest(cx_home *home, const cx_recorded_session *session,
                                     uint64_t *out_seq, bool *out_found, cx_err *err)
{
    cx_arena arena;
    piece_list list = {.arena = &arena};
    const key prefix = key_of(PIECE_PREFIX, session->id);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = scan_session_rows(home, &prefix, add_piece, &list, err);
    *out_found = !cx_failed(status) && list.count != 0;
    if (*out_found)
        *out_seq = list.seqs[list.count - 1];
    cx_arena_done(&arena);
    return status;
}

cx_status cx_recorder_session_bytes(cx_home *home, const cx_recorded_session *session, cx_buf *out,
                                    uint64_t *out_erased, cx_err *err)
{
    cx_arena arena, scratch;
    piece_list list = {.arena = &arena};
    const key prefix = key_of(PIECE_PREFIX, session->id);
    *out_erased = 0;
    cx_arena_init(&arena, out->alloc, 0);
    cx_arena_init(&scratch, out->alloc, 0);
    cx_status status = scan_session_rows(home, &prefix, add_piece, &list, err);
    for (size_t i = 0; i < list.count && !cx_failed(status); i++) {
        cx_entry_view entry;
        cx_arena_mark mark = cx_arena_mark_now(&scratch);
        status = cx_home_entry(home, CX_STR(CX_SESSION_ACTOR), list.seqs[i], &scratch, &entry, err);
        if (cx_failed(status))
            break;
        *out_erased += entry.payload_erased;
        cx_buf_add(out, entry.payload.data, entry.payload.size);
        cx_arena_reset(&scratch, mark);
    }
    cx_arena_done(&scratch);
    cx_arena_done(&arena);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static uint64_t lines_in(cx_bytes piece)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < piece.size; i++)
        lines += piece.data[i] == '\n';
    return lines;
}

/* Where a text is before the step; false: it is none that is read by places, or that is not
 * known. */
static bool place_before(const cx_recorded_session_step *step, cx_recorded_session_format format,
                         cx_import_place *out)
{
    const cx_recorded_session *before = step->before;
    cx_err ignored;
    *out = (cx_import_place){.lines = 0};
    if (!cx_import_has_places(formats[format].name))
        return false;
    return before->offset == 0 ||
           (before->place.size != 0 &&
            !cx_failed(cx_import_place_decode(before->place, out, &ignored)));
}

/* Appends the place after the pieces; nothing where it is not known. */
static void place_after(const cx_recorded_session_step *step, cx_recorded_session_format format,
                        cx_buf *out)
{
    cx_import_place place;
    if (!place_before(step, format, &place))
        return;
    for (size_t i = 0; i < step->piece_count; i++)
        cx_import_place_read(&place, step->pieces[i]);
    (void)cx_import_place_encode(&place, out);
}

cx_status cx_recorder_session_count(const cx_recorded_session_step *step, cx_arena *arena,
                                    cx_recorded_session *after, cx_err *err)
{
    cx_buf place;
    after->counted = step->before->counted || step->before->offset == 0;
    after->lines = step->before->lines;
    for (size_t i = 0; i < step->piece_count && after->counted; i++)
        after->lines += lines_in(step->pieces[i]);
    cx_buf_init(&place, cx_alloc_default());
    place_after(step, after->format, &place);
    cx_status status = cx_buf_check(&place, err);
    after->place = cx_str_bytes(cx_arena_copy_str(arena, cx_buf_str(&place)));
    cx_buf_done(&place);
    return !cx_failed(status) && after->place.data == NULL ? cx_fail_nomem(err) : status;
}

/* A piece that is written, and what is before it. */
typedef struct new_piece {
    cx_bytes bytes;
    const cx_sensitive_list *found;
    uint64_t offset, lines;
    const cx_import_place *place; /* NULL = not known */
} new_piece;

static void encode_piece(const new_piece *piece, uint64_t seq, bool counted, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_buf place;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, seq);
    cx_codec_uint(&fields, 2, piece->bytes.size);
    if (counted)
        cx_codec_uint(&fields, 3, piece->lines);
    cx_buf_init(&place, cx_alloc_default());
    if (piece->place != NULL && cx_import_place_encode(piece->place, &place))
        cx_codec_bytes_o(&fields, 4, cx_buf_bytes(&place));
    if (place.failed)
        out->failed = true;
    cx_buf_done(&place);
    cx_cbor_fields_end(&fields);
}

static cx_status put_piece(cx_txn *txn, const cx_recorded_session *of, const new_piece *piece,
                           int64_t now_ns, uint64_t *out_seq, cx_err *err)
{
    char who[80], id[2 * CX_SESSION_ID_SIZE];
    cx_buf value;
    const cx_mark mark = {.found = piece->found};
    const key k = piece_key(of->id, piece->offset);
    cx_hex_encode(cx_bytes_from(of->id, CX_SESSION_ID_SIZE), id);
    int size = snprintf(who, sizeof who, "watch:%.*s@%llu", (int)sizeof id, id,
                        (unsigned long long)piece->offset);
    const cx_entry_draft draft = {.kind = cx_kinds_name(formats[of->format].kind),
                                  .created_at_ns = now_ns,
                                  .created_by = cx_bytes_from(who, (size_t)size),
                                  .payload = piece->bytes,
                                  .committed = true};
    CX_TRY(cx_txn_entry(txn, &draft, out_seq, err));
    CX_TRY(cx_recorder_mark_put(txn, *out_seq, &mark, err));
    cx_buf_init(&value, cx_alloc_default());
    encode_piece(piece, *out_seq, of->counted, &value);
    cx_status status = cx_buf_check(&value, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, bytes_of(&k), cx_buf_bytes(&value), false, err);
    cx_buf_done(&value);
    return status;
}

/* I1 */
static cx_status append_step(cx_txn *txn, const cx_recorded_session_step *step, int64_t now_ns,
                             cx_buf *record, uint64_t *out_first_seq, bool *out_stale, cx_err *err)
{
    const cx_recorded_session *before = step->before, *after = step->after;
    const key k = key_of(FILE_PREFIX, after->id);
    cx_bytes there = {NULL, 0};
    cx_import_place place;
    bool found = false;
    uint64_t seq = 0;
    new_piece piece = {.offset = before->offset, .lines = before->lines};
    CX_TRY(cx_txn_get(txn, bytes_of(&k), &there, &found, err));
    if (found != (before->record.size != 0) ||
        (found && !cx_str_eq(cx_bytes_str(there), cx_bytes_str(before->record)))) {
        *out_stale = true;
        return CX_SUCCESS;
    }
    piece.place =
        after->place.size != 0 && place_before(step, after->format, &place) ? &place : NULL;
    for (size_t i = 0; i < step->piece_count; i++) {
        piece.bytes = step->pieces[i];
        piece.found = step->found == NULL ? NULL : &step->found[i];
        CX_TRY(put_piece(txn, after, &piece, now_ns, &seq, err));
        if (i == 0)
            *out_first_seq = seq;
        piece.offset += piece.bytes.size;
        piece.lines += lines_in(piece.bytes);
        if (piece.place != NULL)
            cx_import_place_read(&place, piece.bytes);
    }
    CX_ASSERT(step->piece_count != 0 && piece.offset == after->offset);
    CX_ASSERT(!after->counted || piece.lines == after->lines);
    encode_session(after, record);
    CX_TRY(cx_buf_check(record, err));
    return cx_txn_put(txn, bytes_of(&k), cx_buf_bytes(record), false, err);
}

cx_status cx_recorder_session_append(cx_home *home, const cx_recorded_session_step *step,
                                     cx_buf *record, uint64_t *out_first_seq, bool *out_stale,
                                     cx_err *err)
{
    cx_txn *txn;
    const cx_io *io = cx_home_io(home);
    *out_stale = false;
    cx_buf_clear(record);
    CX_TRY(cx_txn_begin(home, CX_STR(CX_SESSION_ACTOR), &txn, err));
    cx_status status =
        append_step(txn, step, (int64_t)io->wall_ns(io), record, out_first_seq, out_stale, err);
    if (!cx_failed(status) && !*out_stale)
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}
