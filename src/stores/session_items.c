/*
 * session_items.c - makes, keeps and reads places in documents (invariants: session_items.h).
 */
#include "stores/session_items.h"

#include "base/api.h"
#include "crypto/api.h"
#include "os/api.h"
#include "stores/session_told.h"

#define FORMAT "cortex-session-places-1"
#define FOLDER "places"
#define CHUNK ((size_t)64 << 10)
#define STRIDE 16u
#define FILE_BYTES_MAX ((size_t)64 << 20)
/* Of a smaller document they are made faster than a file is written. */
#define KEPT_FROM_BYTES ((uint64_t)256 << 10)
#define HEX_SIZE 64

/* --- the file --------------------------------------------------------------------------------- */

static cx_str path_of(cx_home *home, const uint8_t *id, const char *ending, cx_arena *arena)
{
    char hex[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(id, CX_SESSION_ID_SIZE), hex);
    return cx_arena_printf(arena, "%s/" FOLDER "/%.*s%s", cx_home_path(home), (int)sizeof hex, hex,
                           ending);
}

void cx_session_items_remove(cx_home *home, const uint8_t *id)
{
    static const char *const endings[] = {"", CX_SESSION_TOLD_IDS};
    const cx_io *io = cx_home_io(home);
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(endings); i++) {
        const cx_str path = path_of(home, id, endings[i], &arena);
        if (path.data != NULL)
            (void)io->unlink(io, path.data);
    }
    cx_arena_done(&arena);
}

static void digest_text(cx_str text, char hex[HEX_SIZE])
{
    const cx_digest digest = cx_digest_of(cx_str_bytes(text));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
}

void cx_session_items_save(cx_home *home, const uint8_t *id, const char *ending, cx_buf *text)
{
    cx_arena arena;
    CX_ASSERT(text->failed || text->size >= CX_SESSION_ITEMS_HEAD);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_str folder = cx_arena_printf(&arena, "%s/" FOLDER, cx_home_path(home));
    const cx_str path = path_of(home, id, ending, &arena);
    if (folder.data != NULL && path.data != NULL && !text->failed && text->size <= FILE_BYTES_MAX &&
        !cx_failed(cx_path_make_folders(folder.data, NULL))) {
        digest_text(cx_str_from((const char *)text->data + CX_SESSION_ITEMS_HEAD,
                                text->size - CX_SESSION_ITEMS_HEAD),
                    (char *)text->data);
        text->data[HEX_SIZE] = '\n';
        cx_status written =
            cx_io_replace_private_file(cx_home_io(home), path.data, cx_buf_bytes(text), NULL);
        (void)written;
    }
    cx_arena_done(&arena);
}

bool cx_session_items_load(cx_home *home, const uint8_t *id, const char *ending, cx_buf *text,
                           cx_str *out)
{
    char hex[HEX_SIZE];
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_str path = path_of(home, id, ending, &arena);
    const bool there = path.data != NULL && !cx_failed(cx_io_read_file(cx_home_io(home), path.data,
                                                                       FILE_BYTES_MAX, text, NULL));
    cx_arena_done(&arena);
    if (!there || text->size < CX_SESSION_ITEMS_HEAD || text->data[HEX_SIZE] != '\n')
        return false;
    *out = cx_str_from((const char *)text->data + CX_SESSION_ITEMS_HEAD,
                       text->size - CX_SESSION_ITEMS_HEAD);
    digest_text(*out, hex);
    return memcmp(hex, text->data, HEX_SIZE) == 0;
}

static cx_str hex_of(const cx_recorded_session *session, cx_arena *arena)
{
    char hex[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(session->id, CX_SESSION_ID_SIZE), hex);
    return cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
}

static cx_status write_text(const cx_session_items *p, const cx_recorded_session *session,
                            uint64_t seq, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json value;
    cx_json_list root = cx_json_list_begin(arena), rows = root, chunks = root;
    char hex[HEX_SIZE];
    for (size_t i = 0; i < p->row_count; i++)
        cx_json_list_add(&rows, cx_json_make_uint(arena, p->rows[i]));
    for (size_t i = 0; i < p->chunk_count; i++) {
        cx_hex_encode(cx_bytes_from(p->chunks[i].bytes, sizeof p->chunks[i].bytes), hex);
        cx_str text = cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
        chunks.failed |= text.data == NULL;
        cx_json_list_add(&chunks, cx_json_make_str(text));
    }
    const cx_str id = hex_of(session, arena);
    root.failed |= id.data == NULL;
    cx_json_put_uint(&root, "begin", p->begin);
    cx_json_put_uint(&root, "bytes", session->offset);
    cx_json_put_uint(&root, "chunk", CHUNK);
    cx_json_put_array(&root, "chunks", &chunks);
    cx_json_put_uint(&root, "end", p->end);
    cx_json_put_z(&root, "format", FORMAT);
    cx_json_put_uint(&root, "items", p->items);
    cx_json_put_array(&root, "rows", &rows);
    cx_json_put_uint(&root, "seq", seq);
    cx_json_list_put(&root, CX_STR("session"), cx_json_make_str(id));
    cx_json_put_uint(&root, "stride", STRIDE);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    for (size_t i = 0; i < CX_SESSION_ITEMS_HEAD; i++)
        cx_buf_add_byte(out, '0');
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static void save(cx_home *home, const cx_session_items *p, const cx_recorded_session *session,
                 uint64_t seq)
{
    cx_arena arena;
    cx_buf text;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    if (!cx_failed(write_text(p, session, seq, &arena, &text, NULL)))
        cx_session_items_save(home, session->id, "", &text);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

static bool is_uint(const cx_json *object, const char *name, uint64_t wanted)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    uint64_t found;
    return value != NULL && cx_json_uint64(value, &found) && found == wanted;
}

static bool get_uint(const cx_json *object, const char *name, uint64_t *out)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && cx_json_uint64(value, out);
}

static size_t rows_of(uint64_t items)
{
    return (size_t)((items + STRIDE - 1) / STRIDE);
}

static size_t chunks_of(uint64_t bytes)
{
    return (size_t)((bytes + CHUNK - 1) / CHUNK);
}

static bool load_rows(cx_session_items *p, const cx_json *list, cx_arena *arena)
{
    uint64_t *rows = CX_ARENA_ARRAY(arena, uint64_t, p->row_count + 1);
    if (list == NULL || list->count != p->row_count || rows == NULL)
        return false;
    for (size_t i = 0; i < p->row_count; i++)
        if (!cx_json_uint64(&list->items[i], &rows[i]) || rows[i] >= p->end - 1 ||
            rows[i] <= (i == 0 ? p->begin : rows[i - 1]))
            return false;
    p->rows = rows;
    return true;
}

static bool load_chunks(cx_session_items *p, const cx_json *list, cx_arena *arena)
{
    cx_digest *chunks = CX_ARENA_ARRAY(arena, cx_digest, p->chunk_count + 1);
    if (list == NULL || list->count != p->chunk_count || chunks == NULL)
        return false;
    for (size_t i = 0; i < p->chunk_count; i++)
        if (list->items[i].type != CX_JSON_STRING ||
            !cx_digest_parse(cx_json_text(&list->items[i]), &chunks[i]))
            return false;
    p->chunks = chunks;
    return true;
}

static bool load_text(cx_session_items *p, const cx_recorded_session *session, uint64_t seq,
                      cx_str text, cx_arena *scratch, cx_arena *arena)
{
    cx_json root;
    if (cx_failed(cx_json_parse_text(text, scratch, &root, NULL)) ||
        !cx_str_is(CX_JSON_GET_STR(&root, "format"), FORMAT) ||
        !cx_str_eq(CX_JSON_GET_STR(&root, "session"), hex_of(session, scratch)) ||
        !is_uint(&root, "bytes", session->offset) || !is_uint(&root, "seq", seq) ||
        !is_uint(&root, "chunk", CHUNK) || !is_uint(&root, "stride", STRIDE) ||
        !get_uint(&root, "begin", &p->begin) || !get_uint(&root, "end", &p->end) ||
        !get_uint(&root, "items", &p->items) || p->end > session->offset || p->end < 2 ||
        p->begin > p->end - 2 || p->items > p->end)
        return false;
    p->row_count = rows_of(p->items);
    p->chunk_count = chunks_of(session->offset);
    return load_rows(p, cx_json_get_typed(&root, CX_STR("rows"), CX_JSON_ARRAY), arena) &&
           load_chunks(p, cx_json_get_typed(&root, CX_STR("chunks"), CX_JSON_ARRAY), arena);
}

static bool load(cx_home *home, const cx_recorded_session *session, uint64_t seq,
                 cx_session_items *p, cx_arena *arena)
{
    cx_arena scratch;
    cx_buf text;
    cx_arena_init(&scratch, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_str read;
    bool loaded = cx_session_items_load(home, session->id, "", &text, &read) &&
                  load_text(p, session, seq, read, &scratch, arena);
    cx_buf_done(&text);
    cx_arena_done(&scratch);
    return loaded;
}

/* --- making ----------------------------------------------------------------------------------- */

typedef struct making {
    CX_VEC(uint64_t) rows;
    uint64_t items;
} making;

static cx_status note_item(void *arg, size_t begin, cx_err *err)
{
    making *m = arg;
    if (m->items++ % STRIDE != 0)
        return CX_SUCCESS;
    uint64_t *row = cx_vec_push(&m->rows, cx_alloc_default());
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = begin;
    return CX_SUCCESS;
}

static cx_status keep(const making *m, cx_bytes document, const cx_import_items *items,
                      cx_session_items *p, cx_arena *arena, cx_err *err)
{
    *p = (cx_session_items){.begin = items->begin,
                            .end = items->end,
                            .items = items->count,
                            .row_count = m->rows.count,
                            .chunk_count = chunks_of(document.size)};
    uint64_t *rows = CX_ARENA_ARRAY(arena, uint64_t, p->row_count + 1);
    cx_digest *chunks = CX_ARENA_ARRAY(arena, cx_digest, p->chunk_count + 1);
    if (rows == NULL || chunks == NULL)
        return cx_fail_nomem(err);
    if (p->row_count != 0)
        memcpy(rows, m->rows.items, p->row_count * sizeof *rows);
    for (size_t i = 0; i < p->chunk_count; i++) {
        const size_t at = i * CHUNK, left = document.size - at;
        chunks[i] = cx_digest_of(cx_bytes_from(document.data + at, left < CHUNK ? left : CHUNK));
    }
    p->rows = rows;
    p->chunks = chunks;
    return CX_SUCCESS;
}

/* *out_made is false when it has none. */
static cx_status make(cx_home *home, const cx_recorded_session *session, cx_session_items *p,
                      cx_arena *arena, bool *out_made, cx_err *err)
{
    making m = {.items = 0};
    cx_import_items items;
    cx_buf document;
    uint64_t erased;
    cx_err why = {0};
    *out_made = false;
    cx_buf_init(&document, cx_alloc_default());
    cx_status status = cx_recorder_session_bytes(home, session, &document, &erased, err);
    if (!cx_failed(status) && erased == 0 && document.size == session->offset) {
        status = cx_import_find_items(cx_recorded_session_format_name(session->format),
                                      cx_buf_bytes(&document), cx_alloc_default(), note_item, &m,
                                      &items, &why);
        *out_made = !cx_failed(status);
        if (status.code == CX_E_NOMEM)
            status = cx_fail_nomem(err);
        else if (cx_failed(status)) /* the whole says what is wrong with it */
            status = CX_SUCCESS;
    }
    if (*out_made)
        status = keep(&m, cx_buf_bytes(&document), &items, p, arena, err);
    cx_vec_done(&m.rows, cx_alloc_default());
    cx_buf_done(&document);
    return status;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Some chunks of a document. */
typedef struct chunks {
    cx_home *home;
    const cx_recorded_session *session;
    const cx_session_items *places;
    cx_session_piece piece;
    cx_buf bytes;
    uint64_t begin;      /* of the bytes in the document */
    CX_VEC(bool) erased; /* of each chunk that they are of */
} chunks;

static void chunks_init(chunks *c, cx_home *home, const cx_recorded_session *session,
                        const cx_session_items *places)
{
    *c = (chunks){.home = home, .session = session, .places = places};
    cx_buf_init(&c->bytes, cx_alloc_default());
}

static void chunks_done(chunks *c)
{
    cx_vec_done(&c->erased, cx_alloc_default());
    cx_buf_done(&c->bytes);
}

static cx_status fail_places(cx_err *err)
{
    return cx_fail_at(err, CX_E_CONFLICT, "PlacesWrong", CX_NO_OFFSET,
                      "the places of the session's records are not those of its bytes");
}

/* Appends the bytes at..end - 1 of the document; *out_erased when some were erased. */
static cx_status add_range(chunks *c, uint64_t at, uint64_t end, bool *out_erased, cx_err *err)
{
    *out_erased = false;
    while (at < end && !*out_erased) {
        const cx_session_piece *piece = &c->piece;
        if (piece->size == 0 || at < piece->offset || at - piece->offset >= piece->size)
            CX_TRY(cx_recorder_session_piece(c->home, c->session, at, &c->piece, err));
        const uint64_t stop = piece->offset + piece->size;
        const size_t size = (size_t)((stop < end ? stop : end) - at);
        CX_TRY(cx_home_entry_range(c->home, CX_STR(CX_SESSION_ACTOR), piece->seq,
                                   at - piece->offset, size, &c->bytes, out_erased, err));
        at += size;
    }
    return cx_buf_check(&c->bytes, err);
}

/* L1, L3: the chunks that have the bytes from .. until - 1. */
static cx_status read_chunks(chunks *c, uint64_t from, uint64_t until, cx_err *err)
{
    const size_t last = chunks_of(until);
    c->begin = from / CHUNK * CHUNK;
    c->erased.count = 0;
    cx_buf_clear(&c->bytes);
    for (size_t i = (size_t)(from / CHUNK); i < last; i++) {
        const uint64_t at = (uint64_t)i * CHUNK, left = c->session->offset - at;
        const size_t before = c->bytes.size, size = left < CHUNK ? (size_t)left : CHUNK;
        bool *erased = cx_vec_push(&c->erased, cx_alloc_default());
        if (erased == NULL)
            return cx_fail_nomem(err);
        CX_TRY(add_range(c, at, at + size, erased, err));
        if (*erased) {
            c->bytes.size = before;
            uint8_t *room = cx_buf_reserve(&c->bytes, size);
            if (room == NULL)
                return cx_fail_nomem(err);
            memset(room, ' ', size);
            cx_buf_advance(&c->bytes, size);
            continue;
        }
        const cx_digest found = cx_digest_of(cx_bytes_from(c->bytes.data + before, size));
        if (!cx_digest_eq(&found, &c->places->chunks[i]))
            return fail_places(err);
    }
    return CX_SUCCESS;
}

/* The bytes from .. until - 1, up to what was erased; they were read. */
static cx_str text_of(const chunks *c, uint64_t from, uint64_t until, bool *out_erased)
{
    uint64_t end = until;
    for (size_t i = (size_t)((from - c->begin) / CHUNK); i < c->erased.count; i++) {
        const uint64_t begin = c->begin + (uint64_t)i * CHUNK;
        if (begin < end && c->erased.items[i])
            end = begin < from ? from : begin;
    }
    *out_erased = end != until;
    return cx_str_from((const char *)c->bytes.data + (from - c->begin), (size_t)(end - from));
}

/* --- records ---------------------------------------------------------------------------------- */

uint64_t cx_session_items_size(const cx_session_items *p, uint64_t from, uint64_t until)
{
    const size_t last = rows_of(until);
    const uint64_t end = last < p->row_count ? p->rows[last] : p->end;
    return from >= p->items ? 0 : end - p->rows[from / STRIDE];
}

/* Between two tokens a line feed is as good as a blank, and there is none elsewhere. */
static void add_line(cx_str item, cx_buf *out)
{
    const size_t at = out->size;
    cx_buf_add_str(out, item);
    for (size_t i = at; i < out->size; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    cx_buf_add_byte(out, '\n');
}

/* Removes the comma after the last record of a row. */
static bool cut_comma(cx_str *text)
{
    while (text->size != 0 && (unsigned char)text->data[text->size - 1] <= ' ')
        text->size--;
    if (text->size == 0 || text->data[text->size - 1] != ',')
        return false;
    text->size--;
    return true;
}

/* L2: those of one row that are wanted. */
static cx_status add_row(const chunks *c, size_t row, uint64_t from, uint64_t until, cx_buf *list,
                         cx_buf *out, cx_err *err)
{
    const cx_session_items *p = c->places;
    const bool is_last = row + 1 == p->row_count;
    const uint64_t first = (uint64_t)row * STRIDE;
    const uint64_t count = is_last ? p->items - first : STRIDE;
    bool erased;
    cx_str text = text_of(c, p->rows[row], is_last ? p->end - 1 : p->rows[row + 1], &erased);
    cx_str name, item;
    cx_json_span span;
    uint64_t number = 0;
    if (!erased && !is_last && !cut_comma(&text))
        return fail_places(err);
    cx_buf_clear(list);
    cx_buf_add_byte(list, '[');
    cx_buf_add_str(list, text);
    if (!erased)
        cx_buf_add_byte(list, ']');
    CX_TRY(cx_buf_check(list, err));
    if (!cx_json_span_begin(&span, cx_buf_str(list)))
        return fail_places(err);
    for (; cx_json_span_next(&span, &name, &item); number++)
        if (first + number >= from && first + number < until)
            add_line(item, out);
    if (erased ? number >= count : span.bad || number != count)
        return fail_places(err);
    for (; number < count; number++)
        if (first + number >= from && first + number < until)
            cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

cx_status cx_session_items_read(cx_home *home, const cx_recorded_session *session,
                                const cx_session_items *places, uint64_t from, uint64_t until,
                                cx_buf *out, cx_err *err)
{
    const size_t last = rows_of(until), before = out->size;
    chunks c;
    cx_buf list;
    CX_ASSERT(from < until && until <= places->items);
    const uint64_t begin = places->rows[from / STRIDE];
    const uint64_t end = last < places->row_count ? places->rows[last] : places->end;
    chunks_init(&c, home, session, places);
    cx_buf_init(&list, cx_alloc_default());
    cx_status status = read_chunks(&c, begin, end, err);
    for (size_t row = (size_t)(from / STRIDE); row < last && !cx_failed(status); row++)
        status = add_row(&c, row, from, until, &list, out, err);
    cx_buf_done(&list);
    chunks_done(&c);
    if (cx_failed(status))
        out->size = before;
    return status;
}

static cx_status add_rest(chunks *c, uint64_t from, uint64_t until, cx_buf *out, cx_err *err)
{
    bool erased;
    if (from == until)
        return CX_SUCCESS;
    CX_TRY(read_chunks(c, from, until, err));
    const cx_str text = text_of(c, from, until, &erased);
    if (erased)
        return cx_fail_at(err, CX_E_FORMAT, "Erased", CX_NO_OFFSET,
                          "what the session's document says besides its records was erased");
    cx_buf_add_str(out, text);
    return cx_buf_check(out, err);
}

cx_status cx_session_items_rest(cx_home *home, const cx_recorded_session *session,
                                const cx_session_items *places, cx_buf *out, cx_err *err)
{
    const size_t before = out->size;
    chunks c;
    chunks_init(&c, home, session, places);
    cx_status status = add_rest(&c, 0, places->begin, out, err);
    cx_buf_add_z(out, "[]");
    if (!cx_failed(status))
        status = add_rest(&c, places->end, session->offset, out, err);
    chunks_done(&c);
    if (cx_failed(status))
        out->size = before;
    return status;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Of a document in several pieces, what was not erased keeps its places. */
static cx_status is_gone(cx_home *home, const cx_recorded_session *session,
                         const cx_session_piece *first, bool *out, cx_err *err)
{
    cx_buf none;
    *out = false;
    if (first->size != session->offset)
        return CX_SUCCESS;
    cx_buf_init(&none, cx_alloc_default());
    cx_status status =
        cx_home_entry_range(home, CX_STR(CX_SESSION_ACTOR), first->seq, 0, 1, &none, out, err);
    cx_buf_done(&none);
    return status;
}

static cx_status check_begin(chunks *c, cx_err *err)
{
    const cx_session_items *p = c->places;
    const uint64_t first = p->row_count == 0 ? p->end - 1 : p->rows[0];
    bool erased;
    CX_TRY(read_chunks(c, p->begin, first + 1, err));
    const cx_str text = text_of(c, p->begin, first, &erased);
    for (size_t i = 0; i < text.size; i++)
        if (i == 0 ? text.data[i] != '[' : (unsigned char)text.data[i] > ' ')
            return fail_places(err);
    return CX_SUCCESS;
}

/* The first and the last records are where the list begins and ends. */
static cx_status check_ends(cx_home *home, const cx_recorded_session *session,
                            const cx_session_items *p, cx_err *err)
{
    cx_buf lines;
    chunks c;
    chunks_init(&c, home, session, p);
    cx_status status = check_begin(&c, err);
    chunks_done(&c);
    cx_buf_init(&lines, cx_alloc_default());
    if (!cx_failed(status) && p->items != 0)
        status = cx_session_items_read(home, session, p, p->items - 1, p->items, &lines, err);
    cx_buf_done(&lines);
    return status;
}

cx_status cx_session_items_open(cx_home *home, const cx_recorded_session *session, size_t max_bytes,
                                bool again, cx_arena *arena, const cx_session_items **out,
                                cx_err *err)
{
    cx_session_items *places = CX_ARENA_NEW(arena, cx_session_items);
    cx_session_piece first;
    bool made = false, gone;
    *out = NULL;
    if (places == NULL)
        return cx_fail_nomem(err);
    if (session->offset == 0 || session->offset > max_bytes)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_session_piece(home, session, 0, &first, err));
    CX_TRY(is_gone(home, session, &first, &gone, err));
    *places = (cx_session_items){.items = 0};
    if (!again && !gone && load(home, session, first.seq, places, arena)) {
        cx_status status = check_ends(home, session, places, err);
        if (status.code != CX_E_CONFLICT) {
            *out = cx_failed(status) ? NULL : places;
            return status;
        }
    }
    CX_TRY(make(home, session, places, arena, &made, err));
    if (!made) {
        cx_session_items_remove(home, session->id);
        return CX_SUCCESS;
    }
    if (session->offset >= KEPT_FROM_BYTES)
        save(home, places, session, first.seq);
    *out = places;
    return CX_SUCCESS;
}
