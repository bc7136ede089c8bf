/*
 * session_part.c - reads windows of archived sessions (invariants: session_part.h).
 */
#include "stores/session_part.h"

#include "base/api.h"
#include "stores/session_place.h"

/* The first lines of a file say whose it is. */
#define HEAD_LINES 16u
#define HEAD_BYTES_MAX ((uint64_t)256 << 10)
#define BEFORE_BYTES_MAX ((uint64_t)4 << 20)

typedef struct window {
    cx_home *home;
    const cx_session_files *files;
    const cx_recorded_session *file;
    cx_arena *arena; /* of one piece at a time */
    cx_buf *out;
    cx_buf *rest; /* of a document, without its records */
    size_t max_bytes;
} window;

static bool is_document(const cx_session_files *files)
{
    cx_session_path path;
    cx_session_path_read(files->items[0]->path, &path);
    return !files->joined && cx_session_path_is_document(&path);
}

bool cx_session_files_have_parts(const cx_session_files *files)
{
    const char *format = cx_recorded_session_format_name(files->items[0]->format);
    if (cx_session_files_are_text(files))
        return files->end == NULL || cx_import_place_is_usable(files->end);
    if (is_document(files))
        return cx_import_has_items(format) && (!files->placed || files->items_at != NULL);
    return cx_import_has_windows(format) &&
           (files->told != NULL || !files->placed || files->joined || !cx_import_asks(format));
}

uint64_t cx_session_files_lines(const cx_session_files *files)
{
    if (files->end != NULL)
        return cx_import_place_reading(files->end, files->end)->records;
    if (is_document(files))
        return files->items_at == NULL ? 0 : files->items_at->items;
    return files->joined ? files->line_count : files->items[0]->lines;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The piece that has the byte at `offset`, with the lines before it. */
static cx_status piece_at(const window *w, uint64_t offset, cx_session_piece *out, cx_err *err)
{
    const cx_session_piece *pieces = w->files->pieces;
    size_t low = 0, high = w->files->piece_count;
    if (pieces == NULL || w->file != w->files->items[0])
        return cx_recorder_session_piece(w->home, w->file, offset, out, err);
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (pieces[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    *out = pieces[low];
    return CX_SUCCESS;
}

/* Lines that end before the byte after a piece. */
static cx_status lines_after(const window *w, const cx_session_piece *piece, uint64_t *out,
                             cx_err *err)
{
    cx_session_piece next;
    *out = w->file->lines;
    if (piece->offset + piece->size >= w->file->offset)
        return CX_SUCCESS;
    CX_TRY(piece_at(w, piece->offset + piece->size, &next, err));
    *out = next.lines;
    return CX_SUCCESS;
}

/* The piece's bytes, in the arena; of an erased one as many empty lines as it had (P2). */
static cx_status read_piece(const window *w, const cx_session_piece *piece, cx_bytes *out,
                            cx_err *err)
{
    cx_entry_view entry;
    uint64_t lines = 0;
    CX_TRY(cx_home_entry(w->home, CX_STR(CX_SESSION_ACTOR), piece->seq, w->arena, &entry, err));
    *out = entry.payload;
    if (!entry.payload_erased)
        return CX_SUCCESS;
    CX_TRY(lines_after(w, piece, &lines, err));
    const size_t count = (size_t)(lines - piece->lines);
    char *blank = cx_arena_push(w->arena, count + 1, 1);
    if (blank == NULL)
        return cx_fail_nomem(err);
    memset(blank, '\n', count);
    *out = cx_bytes_from(blank, count);
    return CX_SUCCESS;
}

/* The last piece before which fewer than `line` lines end: in it the line before it ends. */
static cx_status find_piece(const window *w, uint64_t line, cx_session_piece *out, cx_err *err)
{
    cx_session_piece middle;
    uint64_t end = w->file->offset;
    CX_TRY(piece_at(w, 0, out, err));
    while (out->offset + out->size < end) {
        const uint64_t low = out->offset + out->size;
        CX_TRY(piece_at(w, low + (end - 1 - low) / 2, &middle, err));
        if (middle.lines < line)
            *out = middle;
        else
            end = middle.offset;
    }
    return CX_SUCCESS;
}

/* Where a line begins; after the last one: the end. */
static cx_status find_line(const window *w, uint64_t line, uint64_t *out_offset, cx_err *err)
{
    cx_session_piece piece;
    cx_bytes bytes;
    *out_offset = line == 0 ? 0 : w->file->offset;
    if (line == 0 || line >= w->file->lines)
        return CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(w->arena);
    CX_TRY(find_piece(w, line, &piece, err));
    CX_TRY(read_piece(w, &piece, &bytes, err));
    uint64_t left = line - piece.lines;
    size_t at = 0;
    while (at < bytes.size && left != 0)
        left -= bytes.data[at++] == '\n';
    *out_offset = piece.offset + at;
    cx_arena_reset(w->arena, mark);
    return CX_SUCCESS;
}

/* Appends the bytes from .. until - 1. */
static cx_status add_bytes(const window *w, uint64_t from, uint64_t until, cx_err *err)
{
    cx_session_piece piece;
    cx_bytes bytes;
    for (uint64_t at = from; at < until; at = piece.offset + piece.size) {
        cx_arena_mark mark = cx_arena_mark_now(w->arena);
        CX_TRY(piece_at(w, at, &piece, err));
        CX_TRY(read_piece(w, &piece, &bytes, err));
        size_t start = (size_t)(at - piece.offset), end = bytes.size;
        if (until - piece.offset < end)
            end = (size_t)(until - piece.offset);
        if (start < end)
            cx_buf_add(w->out, bytes.data + start, end - start);
        CX_TRY(cx_buf_check(w->out, err));
        if (w->out->size > w->max_bytes)
            return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                              "the part has more than %zu bytes", w->max_bytes);
        cx_arena_reset(w->arena, mark);
    }
    return CX_SUCCESS;
}

/* P4 */
static cx_status count_pieces(window *w, cx_session_files *files, uint64_t *out_lines, cx_err *err)
{
    CX_VEC(cx_session_piece) pieces = {0};
    cx_session_piece piece;
    cx_status status = CX_SUCCESS;
    for (uint64_t at = 0; at < w->file->offset && !cx_failed(status);
         at = piece.offset + piece.size) {
        cx_entry_view entry;
        cx_session_piece *slot = cx_vec_push(&pieces, cx_alloc_default());
        cx_arena_mark mark = cx_arena_mark_now(w->arena);
        status = slot == NULL ? cx_fail_nomem(err)
                              : cx_recorder_session_piece(w->home, w->file, at, &piece, err);
        if (!cx_failed(status))
            status =
                cx_home_entry(w->home, CX_STR(CX_SESSION_ACTOR), piece.seq, w->arena, &entry, err);
        if (cx_failed(status))
            break;
        piece.lines = *out_lines;
        *slot = piece;
        for (size_t i = 0; !entry.payload_erased && i < entry.payload.size; i++)
            *out_lines += entry.payload.data[i] == '\n';
        cx_arena_reset(w->arena, mark);
    }
    cx_session_piece *kept = CX_ARENA_ARRAY(w->arena, cx_session_piece, pieces.count + 1);
    if (!cx_failed(status) && kept == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && pieces.count != 0)
        memcpy(kept, pieces.items, pieces.count * sizeof *kept);
    files->pieces = kept;
    files->piece_count = pieces.count;
    cx_vec_done(&pieces, cx_alloc_default());
    return status;
}

/* Of a session that a version before began to archive. */
static cx_status count_lines(window *w, cx_session_files *files, cx_err *err)
{
    cx_recorded_session *own = CX_ARENA_NEW(w->arena, cx_recorded_session);
    const cx_recorded_session **items =
        CX_ARENA_ARRAY(w->arena, const cx_recorded_session *, files->count);
    if (own == NULL || items == NULL)
        return cx_fail_nomem(err);
    *own = *w->file;
    own->lines = 0;
    own->counted = true;
    for (size_t i = 0; i < files->count; i++)
        items[i] = i == 0 ? own : files->items[i];
    CX_TRY(count_pieces(w, files, &own->lines, err));
    files->items = items;
    w->file = own;
    return CX_SUCCESS;
}

static cx_status read_piece_at(void *arg, uint64_t at, uint64_t *out_end, cx_buf *out, cx_err *err)
{
    const window *w = arg;
    cx_session_piece piece;
    cx_bytes bytes;
    cx_arena_mark mark = cx_arena_mark_now(w->arena);
    CX_TRY(piece_at(w, at, &piece, err));
    CX_TRY(read_piece(w, &piece, &bytes, err));
    cx_buf_add(out, bytes.data, bytes.size);
    cx_arena_reset(w->arena, mark);
    *out_end = piece.offset + piece.size;
    return cx_buf_check(out, err);
}

static cx_status find_told(const window *w, cx_session_files *files, cx_arena *arena, cx_err *err)
{
    window own = *w;
    cx_arena pieces;
    cx_arena_init(&pieces, cx_alloc_default(), 0);
    own.arena = &pieces;
    cx_status status =
        cx_session_told_open(w->home, w->file, read_piece_at, &own, arena, &files->told, err);
    cx_arena_done(&pieces);
    files->placed = true;
    return status;
}

cx_status cx_session_files_count(cx_home *home, cx_session_files *files, cx_arena *arena,
                                 cx_err *err)
{
    window w = {.home = home, .files = files, .file = files->items[0], .arena = arena};
    if (cx_session_files_are_text(files))
        return cx_session_places_find(home, files, arena, err);
    if (is_document(files)) {
        files->placed = true;
        return cx_session_items_open(home, w.file, CX_SESSION_PART_BYTES_MAX, false, arena,
                                     &files->items_at, err);
    }
    if (files->joined)
        return CX_SUCCESS;
    if (!w.file->counted)
        CX_TRY(count_lines(&w, files, err));
    return cx_import_asks(cx_recorded_session_format_name(w.file->format))
               ? find_told(&w, files, arena, err)
               : CX_SUCCESS;
}

/* --- the session's own file ------------------------------------------------------------------- */

/* At most HEAD_LINES lines and HEAD_BYTES_MAX bytes of the first ones that are before `line`. */
static cx_status add_head(const window *w, uint64_t line, cx_import_window *out, cx_err *err)
{
    uint64_t count = line < HEAD_LINES ? line : HEAD_LINES, end = 0;
    for (; count != 0; count--) {
        CX_TRY(find_line(w, count, &end, err));
        if (end <= HEAD_BYTES_MAX)
            break;
    }
    if (count == 0)
        return CX_SUCCESS;
    const size_t before = w->out->size;
    CX_TRY(add_bytes(w, 0, end, err));
    out->head = w->out->size - before;
    return CX_SUCCESS;
}

/* As many lines before `from` as fit. */
static cx_status find_before(const window *w, uint64_t from, uint64_t start, uint64_t *out_line,
                             uint64_t *out_offset, cx_err *err)
{
    uint64_t count = from < CX_SESSION_PART_BEFORE ? from : CX_SESSION_PART_BEFORE;
    for (;; count /= 2) {
        *out_line = from - count;
        CX_TRY(find_line(w, *out_line, out_offset, err));
        if (count == 0 || start - *out_offset <= BEFORE_BYTES_MAX)
            return CX_SUCCESS;
    }
}

/* The member that a line's time is in. */
static cx_str time_member(cx_recorded_session_format format)
{
    return format == CX_SESSION_CURSOR     ? CX_STR("\"timestamp_ms\":")
           : format == CX_SESSION_OPENCODE ? CX_STR("\"created\":")
           : format == CX_SESSION_CLINE    ? CX_STR("\"ts\":")
                                           : CX_STR("\"timestamp\":");
}

static bool read_ms(cx_str text, int64_t *out)
{
    int64_t ms = 0;
    size_t at = 0;
    for (; at < text.size && at < 14 && text.data[at] >= '0' && text.data[at] <= '9'; at++)
        ms = 10 * ms + (text.data[at] - '0');
    if (at == 0 || ms > INT64_MAX / 1000000)
        return false;
    *out = ms * 1000000;
    return true;
}

/* The time that a line has, as the formats with windows write it; false when it has none. */
static bool time_of_line(cx_str member, cx_str line, int64_t *out)
{
    const char *at = memmem(line.data, line.size, member.data, member.size), *end;
    if (at == NULL)
        return false;
    at += member.size;
    size_t left = line.size - (size_t)(at - line.data);
    for (; left != 0 && *at == ' '; left--)
        at++;
    if (left == 0 || *at != '"')
        return read_ms(cx_str_from(at, left), out);
    end = memchr(at + 1, '"', left - 1);
    return end != NULL && cx_import_time_iso(cx_str_from(at + 1, (size_t)(end - at) - 1), out);
}

/* The first time, or the last, of the lines in some bytes. */
static bool time_in(cx_recorded_session_format format, cx_str text, bool last, int64_t *out)
{
    const cx_str member = time_member(format);
    bool found = false;
    while (text.size != 0 && (last || !found)) {
        const char *end = memchr(text.data, '\n', text.size);
        const size_t size = end == NULL ? text.size : (size_t)(end - text.data) + 1;
        found |= time_of_line(member, cx_str_from(text.data, size), out);
        text = cx_str_from(text.data + size, text.size - size);
    }
    return found;
}

static cx_status add_own(const window *w, uint64_t from, cx_import_window *out, cx_err *err)
{
    uint64_t start, stop, before;
    *out = (cx_import_window){.from = from, .after_ns = INT64_MIN, .until_ns = INT64_MAX};
    out->until = w->file->lines - from > CX_SESSION_PART_LINES ? from + CX_SESSION_PART_LINES
                                                               : w->file->lines;
    CX_TRY(find_line(w, from, &start, err));
    CX_TRY(find_line(w, out->until, &stop, err));
    CX_TRY(find_before(w, from, start, &out->line, &before, err));
    CX_TRY(add_head(w, out->line, out, err));
    return add_bytes(w, before, stop, err);
}

/* --- documents that are the lines of one session ---------------------------------------------- */

static uint64_t size_of_documents(const cx_session_files *files, uint64_t from, uint64_t until)
{
    uint64_t size = 0;
    for (size_t i = files->lines[from]; i < files->lines[until]; i++)
        size += files->items[i]->offset;
    return size;
}

static cx_status add_document_lines(const window *w, uint64_t from, uint64_t until, cx_err *err)
{
    if (size_of_documents(w->files, from, until) > w->max_bytes)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                          "the part has more than %zu bytes", w->max_bytes);
    for (uint64_t line = from; line < until; line++)
        CX_TRY(cx_session_files_add_line(w->home, w->files, (size_t)line, w->out, err));
    return CX_SUCCESS;
}

/* As add_own: of documents the sizes are known without reading them. */
static cx_status add_documents(const window *w, uint64_t from, cx_import_window *out, cx_err *err)
{
    const cx_session_files *files = w->files;
    uint64_t before = from < CX_SESSION_PART_BEFORE ? from : CX_SESSION_PART_BEFORE;
    *out = (cx_import_window){.from = from, .after_ns = INT64_MIN, .until_ns = INT64_MAX};
    out->until = files->line_count - from > CX_SESSION_PART_LINES ? from + CX_SESSION_PART_LINES
                                                                  : files->line_count;
    while (before != 0 && size_of_documents(files, from - before, from) > BEFORE_BYTES_MAX)
        before /= 2;
    out->line = from - before;
    uint64_t head = out->line < HEAD_LINES ? out->line : HEAD_LINES;
    while (head != 0 && size_of_documents(files, 0, head) > HEAD_BYTES_MAX)
        head--;
    CX_TRY(add_document_lines(w, 0, head, err));
    out->head = w->out->size;
    return add_document_lines(w, out->line, out->until, err);
}

/* --- records of a document -------------------------------------------------------------------- */

static cx_status add_records(const window *w, uint64_t from, cx_import_window *out, cx_err *err)
{
    const cx_session_items *items = w->files->items_at;
    uint64_t before = from < CX_SESSION_PART_BEFORE ? from : CX_SESSION_PART_BEFORE;
    *out = (cx_import_window){
        .from = from, .after_ns = INT64_MIN, .until_ns = INT64_MAX, .items = true};
    out->until =
        items->items - from > CX_SESSION_PART_LINES ? from + CX_SESSION_PART_LINES : items->items;
    while (before != 0 && cx_session_items_size(items, from - before, from) > BEFORE_BYTES_MAX)
        before /= 2;
    out->line = from - before;
    if (cx_session_items_size(items, out->line, out->until) > w->max_bytes)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                          "the part has more than %zu bytes", w->max_bytes);
    CX_TRY(cx_session_items_rest(w->home, w->file, items, w->rest, err));
    out->rest = cx_buf_str(w->rest);
    return cx_session_items_read(w->home, w->file, items, out->line, out->until, w->out, err);
}

/* --- those of subagents ----------------------------------------------------------------------- */

/* The time of a file's first or last record that has one. */
static cx_status time_at(const window *w, bool last, int64_t *out, bool *out_found, cx_err *err)
{
    cx_session_piece piece;
    cx_bytes bytes;
    cx_arena_mark mark = cx_arena_mark_now(w->arena);
    *out_found = false;
    if (w->file->offset == 0)
        return CX_SUCCESS;
    CX_TRY(piece_at(w, last ? w->file->offset - 1 : 0, &piece, err));
    CX_TRY(read_piece(w, &piece, &bytes, err));
    *out_found = time_in(w->file->format, cx_bytes_str(bytes), last, out);
    cx_arena_reset(w->arena, mark);
    return CX_SUCCESS;
}

/* A file of which nothing is of the time of the part is left out; what has no times is read. */
static cx_status add_subagent(const window *w, const cx_import_window *own, cx_import_window *out,
                              cx_err *err)
{
    int64_t first = 0, last = 0;
    bool has_first, has_last;
    CX_TRY(time_at(w, false, &first, &has_first, err));
    CX_TRY(time_at(w, true, &last, &has_last, err));
    *out = (cx_import_window){
        .until = UINT64_MAX, .after_ns = own->after_ns, .until_ns = own->until_ns};
    out->absent = w->file->offset == 0 || (has_first && first > own->until_ns) ||
                  (has_last && own->after_ns != INT64_MIN && last <= own->after_ns);
    return out->absent ? CX_SUCCESS : add_bytes(w, 0, w->file->offset, err);
}

/* Between which times records of other files belong to the part. */
static void time_window(cx_str text, const cx_session_files *files, cx_import_window *own)
{
    const cx_recorded_session_format format = files->items[0]->format;
    size_t at = own->head;
    for (uint64_t line = own->line; line < own->from && at < text.size; line++) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        at = end == NULL ? text.size : (size_t)(end - text.data) + 1;
    }
    int64_t before, until;
    if (own->from != 0 && time_in(format, cx_str_from(text.data, at), true, &before))
        own->after_ns = before;
    if (own->until < cx_session_files_lines(files) &&
        time_in(format, cx_str_from(text.data + at, text.size - at), true, &until))
        own->until_ns = until;
}

/* --- a record by its name --------------------------------------------------------------------- */

/* The member that a record's id is in, as the readers of these formats say (imports.md §2). */
static cx_str id_member(cx_recorded_session_format format)
{
    static const cx_recorded_session_format ids[] = {CX_SESSION_DROID, CX_SESSION_COPILOT_CLI,
                                                     CX_SESSION_GEMINI_CLI};
    for (size_t i = 0; i < CX_COUNT_OF(ids); i++)
        if (format == ids[i])
            return CX_STR("id");
    return CX_STR("uuid");
}

static bool is_record(const window *w, cx_str line, cx_str id)
{
    cx_arena *arena = w->arena;
    cx_json value;
    if (memmem(line.data, line.size, id.data, id.size) == NULL ||
        cx_failed(cx_json_parse_text(line, arena, &value, NULL)))
        return false;
    return cx_str_eq(cx_json_get_str(&value, id_member(w->file->format)), id);
}

static void find_in_lines(const window *w, cx_str rest, uint64_t first, cx_str id,
                          uint64_t *out_line, bool *out_found)
{
    bool there = rest.size != 0 && memmem(rest.data, rest.size, id.data, id.size) != NULL;
    for (uint64_t line = first; there && rest.size != 0 && !*out_found; line++) {
        const char *end = memchr(rest.data, '\n', rest.size);
        const size_t size = end == NULL ? rest.size : (size_t)(end - rest.data);
        *out_found = is_record(w, cx_str_from(rest.data, size), id);
        *out_line = line;
        rest = cx_str_from(rest.data + size, rest.size - size);
        if (end != NULL)
            rest = cx_str_from(rest.data + 1, rest.size - 1);
    }
}

/* Lines that are in two pieces are longer than a piece, and are not looked into. */
static cx_status find_id(const window *w, cx_str id, uint64_t *out_line, bool *out_found,
                         cx_err *err)
{
    cx_session_piece piece;
    cx_bytes bytes;
    for (uint64_t at = 0; at < w->file->offset && !*out_found; at = piece.offset + piece.size) {
        cx_arena_mark mark = cx_arena_mark_now(w->arena);
        CX_TRY(piece_at(w, at, &piece, err));
        CX_TRY(read_piece(w, &piece, &bytes, err));
        find_in_lines(w, cx_bytes_str(bytes), piece.lines, id, out_line, out_found);
        cx_arena_reset(w->arena, mark);
    }
    return CX_SUCCESS;
}

static bool is_document_record(const cx_recorded_session *session, cx_str line, cx_str id,
                               cx_arena *arena)
{
    cx_json value;
    if (memmem(line.data, line.size, id.data, id.size) == NULL ||
        cx_failed(cx_json_parse_text(line, arena, &value, NULL)))
        return false;
    const cx_json *info = cx_json_get_typed(&value, CX_STR("info"), CX_JSON_OBJECT);
    const cx_json *found = cx_json_get(
        session->format == CX_SESSION_OPENCODE && info != NULL ? info : &value, CX_STR("id"));
    return found != NULL && (found->type == CX_JSON_STRING || cx_json_is_number(found)) &&
           cx_str_eq(cx_json_text(found), id);
}

static cx_status find_document(const window *w, cx_str id, uint64_t *out_line, bool *out_found,
                               cx_err *err)
{
    cx_buf line;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&line, cx_alloc_default());
    for (size_t i = 0; i < w->files->line_count && !*out_found && !cx_failed(status); i++) {
        cx_arena_mark mark = cx_arena_mark_now(w->arena);
        cx_buf_clear(&line);
        status = cx_session_files_add_line(w->home, w->files, i, &line, err);
        *out_line = i;
        *out_found =
            !cx_failed(status) && is_document_record(w->file, cx_buf_str(&line), id, w->arena);
        cx_arena_reset(w->arena, mark);
    }
    cx_buf_done(&line);
    return status;
}

/* So many records of a document are looked into together. */
#define FOUND_AT_ONCE 1024u

/* Cline's records have no ids. */
static cx_status find_item(const window *w, cx_str id, uint64_t *out_line, bool *out_found,
                           cx_err *err)
{
    const cx_session_items *items = w->files->items_at;
    cx_buf lines;
    cx_status status = CX_SUCCESS;
    if (items == NULL || w->file->format != CX_SESSION_GEMINI_CLI)
        return CX_SUCCESS;
    cx_buf_init(&lines, cx_alloc_default());
    *out_found = false;
    for (uint64_t at = 0; at < items->items && !*out_found && !cx_failed(status);
         at += FOUND_AT_ONCE) {
        const uint64_t left = items->items - at;
        cx_buf_clear(&lines);
        status = cx_session_items_read(w->home, w->file, items, at,
                                       left < FOUND_AT_ONCE ? items->items : at + FOUND_AT_ONCE,
                                       &lines, err);
        find_in_lines(w, cx_buf_str(&lines), at, id, out_line, out_found);
    }
    cx_buf_done(&lines);
    return status;
}

/* As gather_again. */
static cx_status find_item_again(const window *w, cx_str id, uint64_t *out_line, bool *out_found,
                                 cx_err *err)
{
    cx_session_files again = *w->files;
    window other = *w;
    cx_err why = {0};
    cx_status status = find_item(w, id, out_line, out_found, &why);
    if (status.code == CX_E_CONFLICT) {
        CX_TRY(cx_session_items_open(w->home, w->file, CX_SESSION_PART_BYTES_MAX, true, w->arena,
                                     &again.items_at, err));
        other.files = &again;
        return find_item(&other, id, out_line, out_found, err);
    }
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

static bool read_number(cx_str digits, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        *out = 10 * *out + (uint64_t)(digits.data[i] - '0');
    }
    return digits.size != 0 && digits.size <= 18;
}

cx_status cx_session_files_line(cx_home *home, const cx_session_files *files, cx_str name,
                                uint64_t *out_line, bool *out_found, cx_err *err)
{
    static const char at[] = "at:0:", src[] = "src:";
    cx_arena arena;
    const window w = {.home = home, .files = files, .file = files->items[0], .arena = &arena};
    uint64_t line = 0;
    *out_found = false;
    if (cx_str_starts(name, CX_STR(at))) {
        name = cx_str_from(name.data + sizeof at - 1, name.size - (sizeof at - 1));
        const char *more = name.size == 0 ? NULL : memchr(name.data, '~', name.size);
        name.size = more == NULL ? name.size : (size_t)(more - name.data); /* name.c has the why */
        /* As event.at counts. */
        const uint64_t first = files->end != NULL || is_document(files) ? 0 : 1;
        *out_found = read_number(name, &line) && line >= first &&
                     line - first < cx_session_files_lines(files);
        *out_line = *out_found ? line - first : 0;
        return CX_SUCCESS;
    }
    if (!cx_str_starts(name, CX_STR(src)) || name.size == sizeof src - 1 || files->end != NULL)
        return CX_SUCCESS;
    name = cx_str_from(name.data + sizeof src - 1, name.size - (sizeof src - 1));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = files->joined        ? find_document(&w, name, out_line, out_found, err)
                       : is_document(files) ? find_item_again(&w, name, out_line, out_found, err)
                                            : find_id(&w, name, out_line, out_found, err);
    cx_arena_done(&arena);
    return status;
}

/* --- all of it -------------------------------------------------------------------------------- */

typedef struct gathered {
    cx_import_window *windows;
    cx_bytes *files;
    size_t *ends;
} gathered;

static cx_status gather(window *w, const cx_session_files *files, uint64_t from, gathered *g,
                        cx_session_times *out_times, cx_err *err)
{
    const size_t count = files->joined ? 1 : files->count;
    w->file = files->items[0];
    if (files->joined)
        CX_TRY(add_documents(w, from, &g->windows[0], err));
    else if (is_document(files))
        CX_TRY(add_records(w, from, &g->windows[0], err));
    else
        CX_TRY(add_own(w, from, &g->windows[0], err));
    g->ends[0] = w->out->size;
    /* Its own records are chosen by their lines. */
    cx_import_window times = g->windows[0];
    time_window(cx_buf_str(w->out), files, &times);
    *out_times = (cx_session_times){times.after_ns, times.until_ns};
    for (size_t i = 1; i < count; i++) {
        w->file = files->items[i];
        CX_TRY(add_subagent(w, &times, &g->windows[i], err));
        g->ends[i] = w->out->size;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t start = i == 0 ? 0 : g->ends[i - 1];
        g->files[i] = cx_bytes_from(w->out->data + start, g->ends[i] - start);
    }
    return CX_SUCCESS;
}

static cx_status check_part(const cx_session_files *files, uint64_t from, cx_err *err)
{
    if (!cx_session_files_have_parts(files))
        return cx_fail_at(err, CX_E_UNSUPPORTED, "NoParts", CX_NO_OFFSET,
                          "the session cannot be opened in parts: open the whole");
    if (from >= cx_session_files_lines(files))
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                          "found a part from entry %llu, expected one below %llu",
                          (unsigned long long)from,
                          (unsigned long long)cx_session_files_lines(files));
    return CX_SUCCESS;
}

typedef struct part {
    cx_home *home;
    const cx_session_files *files;
    uint64_t from;
    const cx_alloc *alloc;
    cx_arena arena, pieces;
    cx_buf text, rest;
    cx_session_answers answers;
} part;

static cx_status gather_part(part *p, gathered *g, cx_session_times *out_times, cx_err *err)
{
    window w = {.home = p->home,
                .files = p->files,
                .arena = &p->pieces,
                .out = &p->text,
                .rest = &p->rest,
                .max_bytes = CX_SESSION_PART_BYTES_MAX};
    cx_buf_clear(&p->text);
    cx_buf_clear(&p->rest);
    return gather(&w, p->files, p->from, g, out_times, err);
}

/* The places of a document that are not those of its bytes are made again, once. */
static cx_status gather_again(part *p, cx_session_files *files, gathered *g,
                              cx_session_times *out_times, cx_err *err)
{
    *files = *p->files;
    CX_TRY(cx_session_items_open(p->home, files->items[0], CX_SESSION_PART_BYTES_MAX, true,
                                 &p->arena, &files->items_at, err));
    p->files = files;
    CX_TRY(check_part(files, p->from, err));
    return gather_part(p, g, out_times, err);
}

static cx_status import_part(part *p, cx_import_write write, void *write_arg,
                             cx_session_times *out_times, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_session_files again;
    cx_err why = {0};
    const size_t count = p->files->count;
    gathered g = {CX_ARENA_ARRAY(&p->arena, cx_import_window, count),
                  CX_ARENA_ARRAY(&p->arena, cx_bytes, count),
                  CX_ARENA_ARRAY(&p->arena, size_t, count)};
    if (g.windows == NULL || g.files == NULL || g.ends == NULL)
        return cx_fail_nomem(err);
    cx_status status = gather_part(p, &g, out_times, &why);
    if (status.code == CX_E_CONFLICT && is_document(p->files))
        status = gather_again(p, &again, &g, out_times, &why);
    if (cx_failed(status) && err != NULL)
        *err = why;
    CX_TRY(status);
    options.alloc = p->alloc;
    options.windows = g.windows;
    if (p->files->told != NULL) {
        CX_TRY(cx_session_told_answers(p->files->told, HEAD_LINES, g.windows[0].line,
                                       g.windows[0].until, &p->answers, err));
        options.was_told = cx_session_was_told;
        options.told_arg = &p->answers;
    }
    return cx_import_run_bytes(cx_recorded_session_format_name(p->files->items[0]->format), g.files,
                               p->files->joined ? 1 : count, &options, write, write_arg, NULL, err);
}

cx_status cx_session_files_import_part(cx_home *home, const cx_session_files *files, uint64_t from,
                                       const cx_alloc *alloc, cx_import_write write,
                                       void *write_arg, cx_session_times *out_times, cx_err *err)
{
    part p = {.home = home, .files = files, .from = from, .alloc = alloc};
    CX_TRY(check_part(files, from, err));
    if (files->end != NULL) {
        *out_times = (cx_session_times){INT64_MIN, INT64_MAX};
        return cx_session_places_import(home, files, from, from + CX_SESSION_PART_LINES, alloc,
                                        write, write_arg, err);
    }
    cx_arena_init(&p.arena, alloc, 0);
    cx_arena_init(&p.pieces, alloc, 0);
    cx_buf_init(&p.text, alloc);
    cx_buf_init(&p.rest, alloc);
    cx_status status = import_part(&p, write, write_arg, out_times, err);
    cx_session_answers_done(&p.answers);
    cx_buf_done(&p.rest);
    cx_buf_done(&p.text);
    cx_arena_done(&p.pieces);
    cx_arena_done(&p.arena);
    return status;
}
