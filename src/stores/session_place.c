/*
 * session_place.c - reads records of an archived text from places (invariants: session_place.h).
 */
#include "stores/session_place.h"

#include "base/api.h"
#include "stores/session_part.h"

static bool is_same(const cx_import_place *a, const cx_import_place *b)
{
    cx_buf left, right;
    cx_buf_init(&left, cx_alloc_default());
    cx_buf_init(&right, cx_alloc_default());
    cx_import_place_write(a, &left);
    cx_import_place_write(b, &right);
    const bool same =
        !left.failed && !right.failed && cx_str_eq(cx_buf_str(&left), cx_buf_str(&right));
    cx_buf_done(&left);
    cx_buf_done(&right);
    return same;
}

/* --- pieces ----------------------------------------------------------------------------------- */

typedef struct placed {
    cx_session_piece piece;
    cx_import_place place; /* before it */
} placed;

typedef CX_VEC(cx_import_segment) segment_list;

typedef struct reader {
    cx_home *home;
    cx_session_files files; /* of the text */
    const cx_recorded_session *file;
    cx_arena arena; /* of one piece at a time */
    cx_buf *out;
    size_t max_bytes;
    segment_list segments;
    bool wrong; /* L1 */
} reader;

static void reader_begin(reader *r, cx_home *home, const cx_session_files *files, cx_buf *out)
{
    *r = (reader){
        .home = home, .files = *files, .file = files->items[0], .out = out, .max_bytes = SIZE_MAX};
    cx_arena_init(&r->arena, cx_alloc_default(), 0);
}

static void reader_done(reader *r)
{
    cx_vec_done(&r->segments, cx_alloc_default());
    cx_arena_done(&r->arena);
}

/* Places were made here: what was erased is none of the text. */
static bool are_made(const reader *r)
{
    return r->files.places != NULL;
}

static cx_status fail_wrong(reader *r, uint64_t offset, cx_err *err)
{
    r->wrong = true;
    return cx_fail_at(
        err, CX_E_FORMAT, "BadPlace", CX_NO_OFFSET,
        "the place that is recorded at byte %llu of the session is not where its text "
        "leads to",
        (unsigned long long)offset);
}

static cx_status find_placed(reader *r, uint64_t offset, placed *out, cx_err *err)
{
    bool found = true;
    size_t low = 0, high = r->files.piece_count;
    if (!are_made(r)) {
        CX_TRY(cx_recorder_session_place(r->home, r->file, offset, &out->piece, &out->place, &found,
                                         err));
        return found ? CX_SUCCESS : fail_wrong(r, offset, err);
    }
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->files.pieces[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    *out = (placed){r->files.pieces[low], r->files.places[low]};
    return CX_SUCCESS;
}

static cx_status read_bytes(reader *r, const cx_session_piece *piece, cx_bytes *out,
                            bool *out_erased, cx_err *err)
{
    cx_entry_view entry;
    CX_TRY(cx_home_entry(r->home, CX_STR(CX_SESSION_ACTOR), piece->seq, &r->arena, &entry, err));
    *out = entry.payload;
    *out_erased = entry.payload_erased;
    return CX_SUCCESS;
}

/* L1: what the piece leads to is the place after it. */
static cx_status check_piece(reader *r, const placed *p, const cx_import_place *after, cx_err *err)
{
    cx_bytes bytes;
    bool erased;
    cx_import_place at = p->place;
    cx_arena_mark mark = cx_arena_mark_now(&r->arena);
    CX_TRY(read_bytes(r, &p->piece, &bytes, &erased, err));
    if (!erased)
        cx_import_place_read(&at, bytes);
    cx_arena_reset(&r->arena, mark);
    return erased || is_same(&at, after) ? CX_SUCCESS
                                         : fail_wrong(r, p->piece.offset + p->piece.size, err);
}

/* L1 of a part that begins with the piece. */
static cx_status check_begin(reader *r, const placed *first, cx_err *err)
{
    static const cx_import_place begin = {.lines = 0};
    placed before;
    if (are_made(r))
        return CX_SUCCESS;
    if (first->piece.offset == 0)
        return is_same(&first->place, &begin) ? CX_SUCCESS : fail_wrong(r, 0, err);
    CX_TRY(find_placed(r, first->piece.offset - 1, &before, err));
    return check_piece(r, &before, &first->place, err);
}

/* .. and of what decides how all of the text is read. */
static cx_status check_last(reader *r, cx_err *err)
{
    placed last;
    if (are_made(r))
        return CX_SUCCESS;
    CX_TRY(find_placed(r, r->file->offset - 1, &last, err));
    return check_piece(r, &last, r->files.last, err);
}

/* --- making places (L3) ----------------------------------------------------------------------- */

static cx_status keep_made(reader *r, const placed *items, size_t count,
                           const cx_import_place *last, cx_arena *arena, cx_err *err)
{
    cx_session_piece *pieces = CX_ARENA_ARRAY(arena, cx_session_piece, count + 1);
    cx_import_place *places = CX_ARENA_ARRAY(arena, cx_import_place, count + 1);
    cx_import_place *ends = CX_ARENA_ARRAY(arena, cx_import_place, 2);
    if (pieces == NULL || places == NULL || ends == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        pieces[i] = items[i].piece;
        places[i] = items[i].place;
    }
    ends[0] = ends[1] = *last;
    cx_import_place_end(&ends[1]);
    r->files.pieces = pieces;
    r->files.places = places;
    r->files.piece_count = count;
    r->files.last = &ends[0];
    r->files.end = &ends[1];
    return CX_SUCCESS;
}

static cx_status make_places(reader *r, cx_arena *arena, cx_err *err)
{
    CX_VEC(placed) made = {0};
    cx_import_place at = {.lines = 0};
    cx_status status = CX_SUCCESS;
    for (uint64_t offset = 0; offset < r->file->offset && !cx_failed(status);) {
        placed *slot = cx_vec_push(&made, cx_alloc_default());
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        cx_bytes bytes;
        bool erased;
        if (slot == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        slot->place = at;
        status = cx_recorder_session_piece(r->home, r->file, offset, &slot->piece, err);
        if (!cx_failed(status))
            status = read_bytes(r, &slot->piece, &bytes, &erased, err);
        if (cx_failed(status))
            break;
        cx_import_place_read(&at, bytes);
        offset = slot->piece.offset + slot->piece.size;
        cx_arena_reset(&r->arena, mark);
    }
    if (!cx_failed(status))
        status = keep_made(r, made.items, made.count, &at, arena, err);
    cx_vec_done(&made, cx_alloc_default());
    r->wrong = false;
    return status;
}

bool cx_session_files_are_text(const cx_session_files *files)
{
    return !files->joined && files->count == 1 &&
           cx_import_has_places(cx_recorded_session_format_name(files->items[0]->format));
}

/* What is recorded at the end; *out_found false: nothing that can be read. */
static cx_status find_recorded(cx_session_files *files, cx_arena *arena, bool *out_found,
                               cx_err *err)
{
    const cx_recorded_session *file = files->items[0];
    cx_import_place *ends = CX_ARENA_ARRAY(arena, cx_import_place, 2);
    cx_err ignored;
    if (ends == NULL)
        return cx_fail_nomem(err);
    *out_found = file->place.size != 0 && file->counted &&
                 !cx_failed(cx_import_place_decode(file->place, &ends[0], &ignored)) &&
                 ends[0].lines == file->lines;
    if (!*out_found)
        return CX_SUCCESS;
    ends[1] = ends[0];
    cx_import_place_end(&ends[1]);
    files->last = &ends[0];
    files->end = &ends[1];
    return CX_SUCCESS;
}

cx_status cx_session_places_find(cx_home *home, cx_session_files *files, cx_arena *arena,
                                 cx_err *err)
{
    bool found;
    reader r;
    CX_TRY(find_recorded(files, arena, &found, err));
    if (found)
        return CX_SUCCESS;
    reader_begin(&r, home, files, NULL);
    cx_status status = make_places(&r, arena, err);
    *files = r.files;
    reader_done(&r);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t records_before(const reader *r, const placed *p)
{
    return cx_import_place_reading(&p->place, r->files.end)->records;
}

/* The last piece that begins with a line, and before which no more than `record` records begin. */
static cx_status find_first(reader *r, uint64_t record, placed *out, cx_err *err)
{
    uint64_t end = r->file->offset;
    placed middle;
    CX_TRY(find_placed(r, 0, out, err));
    while (out->piece.offset + out->piece.size < end) {
        const uint64_t low = out->piece.offset + out->piece.size;
        CX_TRY(find_placed(r, low + (end - 1 - low) / 2, &middle, err));
        if (records_before(r, &middle) <= record)
            *out = middle;
        else
            end = middle.piece.offset;
    }
    while (out->place.cut != 0 && out->piece.offset != 0)
        CX_TRY(find_placed(r, out->piece.offset - 1, out, err));
    return CX_SUCCESS;
}

static cx_status begin_segment(reader *r, const cx_import_place *place, cx_err *err)
{
    cx_import_segment *segment = cx_vec_push(&r->segments, cx_alloc_default());
    if (segment == NULL)
        return cx_fail_nomem(err);
    *segment = (cx_import_segment){r->out->size, *place};
    return CX_SUCCESS;
}

/* L2.  In the middle of a line there is no place to go on from. */
static cx_status check_gap(const placed *p, cx_err *err)
{
    return p->place.cut == 0
               ? CX_SUCCESS
               : cx_fail_at(err, CX_E_UNSUPPORTED, "NoParts", CX_NO_OFFSET,
                            "a part of a line of the session was erased at byte %llu: open the "
                            "whole",
                            (unsigned long long)p->piece.offset);
}

/* Appends the piece; *at is the place before it, then that after it.  *gap: there is none
 * before. */
static cx_status add_piece(reader *r, const placed *p, bool *gap, cx_import_place *at, cx_err *err)
{
    cx_bytes bytes;
    bool erased;
    CX_TRY(read_bytes(r, &p->piece, &bytes, &erased, err));
    if (erased) {
        *gap = *gap || !are_made(r);
        return are_made(r) ? CX_SUCCESS : check_gap(p, err);
    }
    if (*gap) {
        CX_TRY(check_gap(p, err));
        *at = p->place;
        CX_TRY(begin_segment(r, at, err));
        *gap = false;
    }
    const bool is_first = at->lines == 0 && at->cut == 0;
    cx_import_place_read(at, bytes);
    bytes = is_first ? cx_import_after_mark(bytes) : bytes;
    if (bytes.size > r->max_bytes - r->out->size)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                          "the part has more than %zu bytes", r->max_bytes);
    cx_buf_add(r->out, bytes.data, bytes.size);
    return cx_buf_check(r->out, err);
}

/* A line that goes on after the last piece begins no record of the part. */
static void cut_last_line(reader *r)
{
    const size_t begin = r->segments.count == 0 ? 0 : r->segments.items[r->segments.count - 1].at;
    while (r->out->size > begin && r->out->data[r->out->size - 1] != '\n')
        r->out->size--;
}

/* From a piece on until record `until` has begun, and so the one before it has ended. */
static cx_status add_pieces(reader *r, placed p, uint64_t until, cx_err *err)
{
    cx_import_place at = p.place;
    bool gap = true;
    for (;;) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        CX_TRY(add_piece(r, &p, &gap, &at, err));
        cx_arena_reset(&r->arena, mark);
        const uint64_t next = p.piece.offset + p.piece.size;
        const bool ends = next >= r->file->offset;
        if (!ends)
            CX_TRY(find_placed(r, next, &p, err));
        if (!gap && !is_same(&at, ends ? r->files.last : &p.place))
            return fail_wrong(r, next, err);
        if (ends)
            return CX_SUCCESS;
        if (records_before(r, &p) > until) {
            cut_last_line(r);
            return CX_SUCCESS;
        }
    }
}

static cx_status gather(reader *r, uint64_t from, uint64_t until, cx_err *err)
{
    placed first;
    r->segments.count = 0;
    cx_buf_clear(r->out);
    CX_TRY(find_first(r, from, &first, err));
    CX_TRY(check_begin(r, &first, err));
    CX_TRY(check_last(r, err));
    return add_pieces(r, first, until, err);
}

static cx_status fail_part(uint64_t from, uint64_t records, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                      "found a part from entry %llu, expected one below %llu",
                      (unsigned long long)from, (unsigned long long)records);
}

static cx_status import_gathered(reader *r, uint64_t from, uint64_t until, const cx_alloc *alloc,
                                 cx_import_write write, void *write_arg, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    const uint64_t records = cx_session_files_lines(&r->files);
    const cx_import_window window = {.from = from,
                                     .until = until < records ? until : records,
                                     .after_ns = INT64_MIN,
                                     .until_ns = INT64_MAX,
                                     .segments = r->segments.items,
                                     .segment_count = r->segments.count,
                                     .end = r->files.end};
    const cx_bytes bytes = cx_buf_bytes(r->out);
    options.alloc = alloc;
    options.windows = &window;
    return cx_import_run_bytes(cx_recorded_session_format_name(r->file->format), &bytes, 1,
                               &options, write, write_arg, NULL, err);
}

cx_status cx_session_places_import(cx_home *home, const cx_session_files *files, uint64_t from,
                                   uint64_t until, const cx_alloc *alloc, cx_import_write write,
                                   void *write_arg, cx_err *err)
{
    cx_arena arena;
    cx_buf text;
    reader r;
    cx_arena_init(&arena, alloc, 0);
    cx_buf_init(&text, alloc);
    reader_begin(&r, home, files, &text);
    r.max_bytes = CX_SESSION_PART_BYTES_MAX;
    cx_status status = gather(&r, from, until, err);
    if (r.wrong) { /* L1 */
        status = make_places(&r, &arena, err);
        if (!cx_failed(status) && from >= cx_session_files_lines(&r.files))
            status = fail_part(from, cx_session_files_lines(&r.files), err);
        if (!cx_failed(status))
            status = gather(&r, from, until, err);
    }
    if (!cx_failed(status))
        status = import_gathered(&r, from, until, alloc, write, write_arg, err);
    reader_done(&r);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_session_places_gaps(cx_home *home, const cx_session_files *files, cx_arena *arena,
                                 cx_buf *out, cx_session_gaps *gaps, bool *out_found, cx_err *err)
{
    reader r;
    placed first;
    cx_session_files text = *files;
    const size_t before = out->size;
    *out_found = false;
    if (!cx_session_files_are_text(files))
        return CX_SUCCESS;
    CX_TRY(find_recorded(&text, arena, out_found, err));
    if (!*out_found || !cx_import_place_is_usable(text.end)) {
        *out_found = false;
        return CX_SUCCESS;
    }
    reader_begin(&r, home, &text, out);
    cx_status status = find_placed(&r, 0, &first, err);
    if (!cx_failed(status))
        status = check_begin(&r, &first, err);
    if (!cx_failed(status))
        status = add_pieces(&r, first, UINT64_MAX, err);
    cx_import_segment *segments = CX_ARENA_ARRAY(arena, cx_import_segment, r.segments.count + 1);
    *out_found = !cx_failed(status) && r.segments.count != 0;
    if (*out_found && segments == NULL)
        status = cx_fail_nomem(err);
    else if (*out_found)
        memcpy(segments, r.segments.items, r.segments.count * sizeof *segments);
    gaps->window = (cx_import_window){.until = UINT64_MAX,
                                      .after_ns = INT64_MIN,
                                      .until_ns = INT64_MAX,
                                      .segments = segments,
                                      .segment_count = r.segments.count,
                                      .end = text.end};
    reader_done(&r);
    if (!*out_found)
        out->size = before;
    return r.wrong || status.code == CX_E_UNSUPPORTED ? CX_SUCCESS : status;
}
