/*
 * watch_archive.c - archives changed files as pieces in the ledger.
 *
 *   W1  Only complete lines are archived: text after the last line feed waits for its end.
 *   W2  A file continues where the ledger ends, if the first and last archived bytes are
 *       unchanged; else it is another session.
 *   W3  A document is archived whole, as another session whenever its content is another one.
 *   W4  What is masked leaves no byte and no hash: the marks by which a file is known again
 *       are then made of its shape, in which letters and digits are all the same.
 */
#include "cli/service/watch.h"

#include <errno.h>
#include <string.h>

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "crypto/api.h"
#include "import/api.h"

#define PIECES_A_TURN 16
#define WAIT_MS 30000
#define POLL_MS 20
#define STALE_MAX 100
#define QUIET_NS (UINT64_C(60) * 1000000000)

static cx_session_shape shape_of(const cx_watch_file *file)
{
    cx_session_path path;
    cx_session_path_read(cx_str_z(file->path), &path);
    return path.shape;
}

/* One file being archived. */
typedef struct archiving {
    cx_watch *w;
    cx_watch_file *of;
    cx_file file;
    uint64_t size;            /* of the file, as it was opened */
    uint64_t end;             /* after its last line feed; of a document all of it */
    cx_digest whole;          /* of a document (W3) */
    cx_digest whole_shape;    /* likewise (W4) */
    cx_recorded_session base; /* what it is appended to */
    cx_buf bytes;             /* of one turn */
    const char *other;        /* what wrote it, if that is known and has no importer; or NULL */
} archiving;

/* --- the data directory ----------------------------------------------------------------------- */

/* The newest generation of a path is found by it. */
static cx_status find_by_path(cx_watch *w, size_t which, cx_err *err)
{
    const cx_recorded_session *items = w->sessions.items;
    uint64_t *place;
    bool is_new = false;
    CX_TRY(cx_map_put(&w->session_by_path, items[which].path, &place, &is_new, err));
    if (is_new || items[*place].generation < items[which].generation)
        *place = which;
    return CX_SUCCESS;
}

static cx_status read_sessions(cx_watch *w, cx_err *err)
{
    cx_map_done(&w->session_by_path); /* its keys go with the arena */
    cx_map_init(&w->session_by_path, w->cli->alloc, cx_io_seed(w->cli->io));
    cx_arena_done(&w->sessions_arena);
    cx_arena_init(&w->sessions_arena, w->cli->alloc, 0);
    const cx_recorded_session *found;
    size_t count;
    CX_TRY(cx_recorder_sessions(w->home, &w->sessions_arena, &found, &count, err));
    w->sessions.count = 0;
    for (size_t i = 0; i < count; i++) {
        cx_recorded_session *room = cx_vec_push(&w->sessions, w->cli->alloc);
        if (room == NULL)
            return cx_fail_nomem(err);
        *room = found[i];
        CX_TRY(find_by_path(w, w->sessions.count - 1, err));
    }
    return CX_SUCCESS;
}

/* What was just written, without asking for everything again. */
static cx_status remember_session(cx_watch *w, const cx_recorded_session *session, cx_err *err)
{
    const uint64_t *place = cx_map_find(&w->session_by_path, session->path);
    cx_recorded_session *room = place == NULL ? NULL : &w->sessions.items[*place];
    if (room != NULL && memcmp(room->id, session->id, sizeof session->id) != 0)
        room = NULL;
    for (size_t i = 0; i < w->sessions.count && room == NULL && place == NULL; i++)
        if (memcmp(w->sessions.items[i].id, session->id, sizeof session->id) == 0)
            room = &w->sessions.items[i]; /* it was renamed */
    if (room == NULL && (room = cx_vec_push(&w->sessions, w->cli->alloc)) == NULL)
        return cx_fail_nomem(err);
    *room = *session;
    return find_by_path(w, (size_t)(room - w->sessions.items), err);
}

/* Others own the data directory briefly, or serve it. */
static cx_status open_home(cx_watch *w, cx_err *err)
{
    const cx_io *io = w->cli->io;
    const cx_home_options options = cx_cli_home_options(w->cli, CX_CLI_WRITE, NULL);
    uint64_t end = io->monotonic_ns(io) + WAIT_MS * UINT64_C(1000000);
    cx_status status;
    while ((status = cx_home_open(w->home_path, &options, &w->home, err)).code == CX_E_BUSY &&
           io->monotonic_ns(io) < end)
        cx_thread_sleep_ms(POLL_MS);
    CX_TRY(status);
    return read_sessions(w, err);
}

static cx_status close_home(cx_watch *w, cx_err *err)
{
    cx_home *home = w->home;
    w->home = NULL;
    return home == NULL ? CX_SUCCESS : cx_home_close(home, err);
}

/* --- knowing a file again (W2) ---------------------------------------------------------------- */

static void write_shape(cx_bytes bytes, uint8_t *shape)
{
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t c = bytes.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
        shape[i] = is_letter ? 'a' : c >= '0' && c <= '9' ? '0' : c;
    }
}

/* W4 */
static cx_digest digest_shape(cx_bytes bytes)
{
    uint8_t shape[CX_SESSION_MARK_SIZE];
    CX_ASSERT(bytes.size <= sizeof shape);
    write_shape(bytes, shape);
    return cx_digest_of(cx_bytes_from(shape, bytes.size));
}

static cx_digest digest_mark(const cx_watch *w, cx_bytes bytes)
{
    return cx_sensitive_masks(w->sensitive) ? digest_shape(bytes) : cx_digest_of(bytes);
}

/* Whether the file has there what a mark was made of, with or without masks. */
static cx_status fits_mark(archiving *t, uint64_t offset, uint64_t size, const cx_digest *mark,
                           bool *out, cx_err *err)
{
    uint8_t bytes[CX_SESSION_MARK_SIZE];
    size_t got = 0;
    CX_ASSERT(size <= sizeof bytes);
    CX_TRY(
        cx_io_read_at(t->w->cli->io, t->file, t->of->path, bytes, (size_t)size, offset, &got, err));
    const cx_digest exact = cx_digest_of(cx_bytes_from(bytes, got));
    const cx_digest shape = digest_shape(cx_bytes_from(bytes, got));
    *out = cx_digest_eq(&exact, mark) || cx_digest_eq(&shape, mark);
    return CX_SUCCESS;
}

/* Brackets of a JSON document outside of its texts. */
typedef struct brackets {
    uint64_t open;
    bool quoted, escaped, any;
} brackets;

static void count_brackets(brackets *b, cx_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t c = bytes.data[i];
        if (b->escaped)
            b->escaped = false;
        else if (c == '"')
            b->quoted = !b->quoted;
        else if (b->quoted)
            b->escaped = c == '\\';
        else if (c == '{' || c == '[')
            b->open++;
        else if ((c == '}' || c == ']') && b->open != 0)
            b->open--;
        b->any |= c == '{' || c == '[';
    }
}

/* Hashes of all of a document, and whether it is whole: else it is being written. */
static cx_status read_whole(archiving *t, bool *out_ended, cx_err *err)
{
    uint8_t bytes[CX_SESSION_MARK_SIZE], shape[CX_SESSION_MARK_SIZE];
    brackets seen = {0};
    cx_sha256 exact, shaped;
    cx_sha256_init(&exact);
    cx_sha256_init(&shaped);
    for (uint64_t at = 0; at < t->size;) {
        size_t got = 0;
        CX_TRY(
            cx_io_read_at(t->w->cli->io, t->file, t->of->path, bytes, sizeof bytes, at, &got, err));
        if (got == 0)
            return cx_fail(err, CX_E_CONFLICT, "%s became shorter while it was read", t->of->path);
        got = got > t->size - at ? (size_t)(t->size - at) : got;
        count_brackets(&seen, cx_bytes_from(bytes, got));
        write_shape(cx_bytes_from(bytes, got), shape);
        cx_sha256_add(&exact, bytes, got);
        cx_sha256_add(&shaped, shape, got);
        at += got;
    }
    t->whole = cx_sha256_end(&exact);
    t->whole_shape = cx_sha256_end(&shaped);
    *out_ended = seen.any && seen.open == 0 && !seen.quoted;
    return CX_SUCCESS;
}

static cx_status goes_on(archiving *t, const cx_recorded_session *session, bool *out, cx_err *err)
{
    *out = false;
    if (t->of->document) {
        *out = t->size == session->offset && (cx_digest_eq(&t->whole, &session->head) ||
                                              cx_digest_eq(&t->whole_shape, &session->head));
        return CX_SUCCESS;
    }
    if (t->size < session->offset)
        return CX_SUCCESS;
    CX_TRY(fits_mark(t, 0, session->head_size, &session->head, out, err));
    return !*out ? CX_SUCCESS
                 : fits_mark(t, session->offset - session->tail_size, session->tail_size,
                             &session->tail, out, err);
}

/* The newest generation of the path. */
static const cx_recorded_session *session_of_path(const cx_watch *w, cx_str path)
{
    const uint64_t *place = cx_map_find(&w->session_by_path, path);
    return place == NULL ? NULL : &w->sessions.items[*place];
}

/* A file that was renamed and no longer exists under its old name. */
static const cx_recorded_session *session_that_moved(const cx_watch *w, const cx_watch_file *file)
{
    for (size_t i = 0; i < w->sessions.count; i++) {
        const cx_recorded_session *s = &w->sessions.items[i];
        cx_facts facts;
        if (s->inode != file->inode || s->device != file->device)
            continue;
        cx_str path = cx_arena_copy_str(&w->cli->arena, s->path);
        if (path.data == NULL || (!cx_failed(cx_path_facts(path.data, false, &facts, NULL)) &&
                                  facts.inode == file->inode && facts.device == file->device))
            continue;
        return s;
    }
    return NULL;
}

static const char *format_of_path(const char *path)
{
    static const char *const places[][2] = {
        {"/.codex/", "codex"},
        {"/.claude/", "claude-code"},
        {"/.gemini/", "gemini-cli"},
        {"/.qwen/", "qwen-code"},
        {"/agent-transcripts/", "cursor"},
        {"/.copilot/", "copilot-cli"},
        {"/.factory/", "droid"},
        {"/.openhands", "openhands"},
        {"/opencode/storage/", "opencode"},
        {"/ui_messages.json", "cline"},
        {"/.aider.chat.history.md", "aider"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(places); i++)
        if (strstr(path, places[i][0]) != NULL)
            return places[i][1];
    return NULL;
}

/* By its first records, or else by its path; CX_SESSION_UNREAD when neither says anything. */
static cx_status find_format(archiving *t, cx_recorded_session_format *out, cx_err *err)
{
    cx_import_guessed guessed = {0};
    cx_buf head;
    cx_buf_init(&head, t->w->cli->alloc);
    cx_status status = cx_import_read_head(t->w->cli->io, t->file, t->of->path, 0, &head, err);
    if (!cx_failed(status))
        cx_import_guess(cx_buf_bytes(&head), &guessed);
    cx_buf_done(&head);
    CX_TRY(status);
    const char *format = guessed.format;
    if (format != NULL && strcmp(format, "messages") == 0)
        format = NULL; /* any program's: the path says more */
    if (format == NULL && guessed.other == NULL)
        format = format_of_path(t->of->path);
    t->other = guessed.other != NULL ? guessed.other->description : NULL;
    *out = cx_recorded_session_format_of(format);
    return CX_SUCCESS;
}

static cx_status find_base(archiving *t, cx_err *err)
{
    cx_str path = cx_str_z(t->of->path);
    const cx_recorded_session *here = session_of_path(t->w, path);
    const cx_recorded_session *moved = here == NULL ? session_that_moved(t->w, t->of) : NULL;
    const cx_recorded_session *base = here != NULL ? here : moved;
    bool same = false;
    if (base != NULL)
        CX_TRY(goes_on(t, base, &same, err));
    if (same) { /* one that could not be read may say more by now */
        t->base = *base;
        return t->base.format != CX_SESSION_UNREAD ? CX_SUCCESS
                                                   : find_format(t, &t->base.format, err);
    }
    t->base =
        (cx_recorded_session){.path = path, .generation = here == NULL ? 0 : here->generation + 1};
    cx_recorded_session_name(&t->base);
    return find_format(t, &t->base.format, err);
}

/* --- taking ----------------------------------------------------------------------------------- */

/* W1 */
static cx_status find_end(archiving *t, uint64_t from, cx_err *err)
{
    uint8_t bytes[4096];
    uint64_t at = t->size;
    t->end = from;
    if (t->of->document) {
        t->end = t->size;
        return CX_SUCCESS;
    }
    while (at > from) {
        size_t size = at - from < sizeof bytes ? (size_t)(at - from) : sizeof bytes, got = 0;
        CX_TRY(
            cx_io_read_at(t->w->cli->io, t->file, t->of->path, bytes, size, at - size, &got, err));
        for (size_t i = got; i > 0; i--)
            if (bytes[i - 1] == '\n') {
                t->end = at - size + i;
                return CX_SUCCESS;
            }
        at -= size;
    }
    return CX_SUCCESS;
}

/* Pieces end after a line where possible. */
static size_t cut_at_line(cx_bytes left)
{
    if (left.size <= CX_SESSION_PIECE_MAX)
        return left.size;
    for (size_t i = CX_SESSION_PIECE_MAX; i > 0; i--)
        if (left.data[i - 1] == '\n')
            return i;
    return CX_SESSION_PIECE_MAX;
}

static void mark_ends(archiving *t, cx_recorded_session *after, cx_bytes archived)
{
    size_t tail = archived.size < CX_SESSION_MARK_SIZE ? archived.size : CX_SESSION_MARK_SIZE;
    after->path = cx_str_z(t->of->path);
    after->device = t->of->device;
    after->inode = t->of->inode;
    if (t->of->document) { /* W3 */
        after->head = cx_sensitive_masks(t->w->sensitive) ? t->whole_shape : t->whole;
        return;
    }
    if (after->head_size == 0) {
        after->head_size = tail;
        after->head = digest_mark(t->w, cx_bytes_from(archived.data, tail));
    }
    after->tail_size = tail;
    after->tail = digest_mark(t->w, cx_bytes_from(archived.data + archived.size - tail, tail));
}

static void report_archived(archiving *t, const cx_recorded_session *after, uint64_t bytes,
                            uint64_t lines, uint64_t seq)
{
    cx_watch *w = t->w;
    char id[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(after->id, CX_SESSION_ID_SIZE), id);
    cx_buf_clear(&w->text);
    if (w->json) {
        cx_buf_printf(&w->text, "{\"bytes\":%llu,\"file\":", (unsigned long long)bytes);
        cx_cli_add_json_text(&w->text, cx_str_z(t->of->path));
        cx_buf_printf(&w->text,
                      ",\"format\":\"%s\",\"lines\":%llu,\"offset\":%llu,\"seq\":%llu,"
                      "\"session\":\"%.*s\"}\n",
                      cx_recorded_session_format_name(after->format), (unsigned long long)lines,
                      (unsigned long long)t->base.offset, (unsigned long long)seq, (int)sizeof id,
                      id);
    } else {
        cx_buf_printf(&w->text, "%.*s  +%llu lines, %llu bytes  ", (int)sizeof id, id,
                      (unsigned long long)lines, (unsigned long long)bytes);
        cx_shown_add(&w->text, cx_str_z(t->of->path));
        cx_buf_add_byte(&w->text, '\n');
    }
    if (!w->quiet)
        cx_cli_out_write(&w->cli->out, cx_buf_str(&w->text));
}

/* A turn that is not the file's last ends with a line where possible, so that nothing is cut in
 * two. */
static size_t cut_turn(cx_bytes bytes, bool is_last)
{
    size_t size = bytes.size;
    while (!is_last && size > 0 && bytes.data[size - 1] != '\n')
        size--;
    return size == 0 ? bytes.size : size;
}

/* Masks a copy of the pieces, which then are the copy's.  Pieces of one line are scanned together:
 * what is found counts for the first. */
static cx_status screen_pieces(archiving *t, cx_bytes *pieces, size_t count,
                               cx_sensitive_list *found, cx_err *err)
{
    cx_watch *w = t->w;
    size_t all = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        cx_sensitive_list_init(&found[i], &w->cli->arena);
        all += pieces[i].size;
    }
    cx_buf_clear(&w->masked);
    cx_buf_add(&w->masked, pieces[0].data, all);
    CX_TRY(cx_buf_check(&w->masked, err));
    for (size_t i = 0, next; i < count; i = next) {
        size_t size = 0;
        for (next = i; next < count &&
                       (next == i || pieces[next - 1].data[pieces[next - 1].size - 1] != '\n');
             next++)
            size += pieces[next].size;
        const cx_sensitive_target target = {
            .bytes = pieces[0].data + at, .size = size, .mask = w->masked.data + at};
        cx_sensitive_scan_lines(w->sensitive, &target, &found[i]);
        if (found[i].failed)
            return cx_fail_nomem(err);
        at += size;
    }
    for (size_t i = 0, from = 0; i < count; from += pieces[i++].size)
        pieces[i].data = w->masked.data + from;
    return CX_SUCCESS;
}

/* Up to PIECES_A_TURN pieces from where the base ends. */
static cx_status archive_part(archiving *t, bool *out_stale, cx_err *err)
{
    cx_watch *w = t->w;
    cx_bytes pieces[PIECES_A_TURN];
    cx_sensitive_list found[PIECES_A_TURN];
    uint64_t left = t->end - t->base.offset, seq = 0, lines = 0;
    size_t want = PIECES_A_TURN * CX_SESSION_PIECE_MAX, got = 0;
    bool whole = t->of->document && t->base.offset == 0 && left <= CX_SESSION_DOCUMENT_MAX;
    want = left < want || whole ? (size_t)left : want;
    cx_buf_clear(&t->bytes);
    uint8_t *room = cx_buf_reserve(&t->bytes, want);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_io_read_at(w->cli->io, t->file, t->of->path, room, want, t->base.offset, &got, err));
    if (got < want)
        return cx_fail(err, CX_E_CONFLICT, "%s became shorter while it was read", t->of->path);
    if (cx_sensitive_is_on(w->sensitive))
        got = cut_turn(cx_bytes_from(room, got), got == left);
    cx_recorded_session after = t->base;
    cx_recorded_session_step step = {.before = &t->base, .after = &after, .pieces = pieces};
    size_t used = 0;
    while (used < got && step.piece_count < PIECES_A_TURN) {
        cx_bytes piece = cx_bytes_from(room + used, got - used);
        piece.size = whole ? piece.size : cut_at_line(piece);
        pieces[step.piece_count++] = piece;
        used += piece.size;
    }
    for (size_t i = 0; i < used; i++)
        lines += room[i] == '\n';
    after.offset += used;
    mark_ends(t, &after, cx_bytes_from(room, used));
    if (cx_sensitive_is_on(w->sensitive)) {
        CX_TRY(screen_pieces(t, pieces, step.piece_count, found, err));
        step.found = found;
    }
    CX_TRY(cx_recorder_session_count(&step, &w->sessions_arena, &after, err));
    CX_TRY(cx_recorder_session_append(w->home, &step, &w->record, &seq, out_stale, err));
    if (*out_stale)
        return CX_SUCCESS;
    w->counts.pieces += step.piece_count;
    w->counts.bytes += used;
    w->counts.lines += lines;
    report_archived(t, &after, used, lines, seq);
    t->base = after;
    cx_str record = cx_arena_copy_str(&w->sessions_arena, cx_buf_str(&w->record));
    if (record.data == NULL)
        return cx_fail_nomem(err);
    t->base.record = cx_str_bytes(record);
    return remember_session(w, &t->base, err);
}

/* Once for a file and process: its bytes are archived, and that is all. */
static void report_unread(archiving *t)
{
    cx_watch_file *of = t->of;
    of->unknown = t->base.format == CX_SESSION_UNREAD && t->end != 0;
    if (!of->unknown || of->reported_unread)
        return;
    of->reported_unread = true;
    cx_cli_complain("watch: %s is %s: archived as bytes, without a history", of->path,
                    t->other != NULL ? t->other : "of no known format");
}

static cx_status archive_open_file(archiving *t, cx_err *err)
{
    cx_watch *w = t->w;
    bool stale = false, some = false, ended = true;
    if (t->of->document)
        CX_TRY(read_whole(t, &ended, err));
    if (!ended) { /* it is being written */
        t->of->waiting = t->size;
        return CX_SUCCESS;
    }
    CX_TRY(find_base(t, err));
    CX_TRY(find_end(t, t->base.offset, err));
    t->of->waiting = t->size - t->end;
    report_unread(t);
    for (int tries = 0; t->base.offset < t->end;) {
        CX_TRY(archive_part(t, &stale, err));
        some |= !stale;
        if (!stale)
            continue;
        if (++tries == STALE_MAX)
            return cx_fail(err, CX_E_CONFLICT, "another program archives %s too", t->of->path);
        CX_TRY(read_sessions(w, err));
        CX_TRY(find_base(t, err));
        CX_TRY(find_end(t, t->base.offset, err));
    }
    w->counts.sessions += some;
    t->of->set_due |= some && !t->of->unknown && shape_of(t->of) != CX_SESSION_PART;
    t->of->grown_ns = w->cli->io->monotonic_ns(w->cli->io);
    return CX_SUCCESS;
}

static cx_status archive_file(cx_watch *w, cx_watch_file *of, cx_err *err)
{
    const cx_io *io = w->cli->io;
    archiving t = {.w = w, .of = of, .file = CX_FILE_NONE};
    cx_facts facts;
    int failure = io->open(io, of->path, CX_IO_READ | CX_IO_NO_LINKS, &t.file);
    if (failure == -ENOENT) { /* it went, perhaps to another name */
        *of = (cx_watch_file){.path = of->path, .document = of->document};
        return CX_SUCCESS;
    }
    if (failure != 0)
        return cx_fail_os(err, -failure, "cannot open %s", of->path);
    cx_buf_init(&t.bytes, w->cli->alloc);
    cx_arena_mark mark = cx_arena_mark_now(&w->cli->arena);
    cx_status status = cx_file_facts(t.file, &facts, err);
    if (!cx_failed(status)) {
        of->device = facts.device;
        of->inode = facts.inode;
        t.size = facts.size_bytes;
        status = archive_open_file(&t, err);
    }
    cx_arena_reset(&w->cli->arena, mark);
    cx_buf_done(&t.bytes);
    (void)io->close(io, t.file);
    return status;
}

/* Of one file alone: it went, may not be read, or changes under us. */
static bool is_of_the_file(const cx_watch_file *file, const cx_err *err)
{
    return (err->os_errno != 0 || err->code == CX_E_CONFLICT) &&
           strstr(err->message, file->path) != NULL;
}

/* A file that fails alone is complained of, and tried again by the next scan. */
static cx_status archive_dirty_file(cx_watch *w, cx_watch_file *file, cx_err *err)
{
    cx_status status = archive_file(w, file, err);
    if (cx_failed(status) && !is_of_the_file(file, err))
        return status;
    file->dirty = false;
    if (!cx_failed(status))
        return status;
    w->counts.failed++;
    if (!file->complained)
        cx_cli_complain("watch: %s", err->message);
    file->complained = true;
    file->modified_ns = 0;
    return CX_SUCCESS;
}

static void end_archiving(cx_watch *w)
{
    cx_err err;
    if (cx_failed(close_home(w, &err)))
        cx_cli_complain(
            "watch: note: the tables could not be brought up to date (%s); the log is complete",
            err.message);
}

cx_status cx_watch_archive(cx_watch *w, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    if (!cx_watch_any_dirty(w))
        return CX_SUCCESS;
    CX_TRY(open_home(w, err));
    for (size_t i = 0; i < w->files.count && !cx_failed(status); i++) {
        if (w->quiet && cx_watch_is_ending())
            break;
        if (cx_watch_is_due(w, &w->files.items[i]))
            status = archive_dirty_file(w, &w->files.items[i], err);
    }
    end_archiving(w);
    return status;
}

/* --- the newest ------------------------------------------------------------------------------- */

/* A subagent's file is no session that a person remembers. */
static bool is_subagent(const char *path)
{
    const char *name = strrchr(path, '/');
    return strncmp(name == NULL ? path : name + 1, "agent-", strlen("agent-")) == 0;
}

static cx_watch_file *newest_dirty(cx_watch *w)
{
    cx_watch_file *newest = NULL;
    for (size_t i = 0; i < w->files.count; i++) {
        cx_watch_file *file = &w->files.items[i];
        if (file->dirty && file->size != 0 && !is_subagent(file->path) &&
            (newest == NULL || file->modified_ns > newest->modified_ns))
            newest = file;
    }
    return newest;
}

cx_status cx_watch_archive_newest(cx_watch *w, const cx_recorded_session **out, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_watch_file *file;
    *out = NULL;
    if (newest_dirty(w) == NULL)
        return CX_SUCCESS;
    CX_TRY(open_home(w, err));
    while (!cx_failed(status) && *out == NULL && !cx_watch_is_ending() &&
           (file = newest_dirty(w)) != NULL) {
        status = archive_dirty_file(w, file, err);
        *out = session_of_path(w, cx_str_z(file->path));
        if (*out != NULL && ((*out)->format == CX_SESSION_UNREAD || (*out)->offset == 0))
            *out = NULL;
    }
    end_archiving(w);
    return status;
}

/* --- what sessions did ------------------------------------------------------------------------ */

/* A session is more than its own file: its subagents write into a folder of its name. */
static void mark_parents(cx_watch *w)
{
    static const char ending[] = ".jsonl";
    for (size_t i = 0; i < w->files.count; i++) {
        const cx_watch_file *child = &w->files.items[i];
        for (size_t j = 0; j < w->files.count && child->set_due; j++) {
            cx_watch_file *parent = &w->files.items[j];
            size_t size = strlen(parent->path);
            if (size <= sizeof ending || strcmp(parent->path + size - 6, ending) != 0)
                continue;
            size -= sizeof ending - 1;
            if (strncmp(parent->path, child->path, size) != 0 || child->path[size] != '/' ||
                parent->unknown)
                continue;
            parent->set_due = true;
            if (parent->grown_ns < child->grown_ns)
                parent->grown_ns = child->grown_ns;
        }
    }
}

/* A long document can be opened in parts at once; those of the version before are not needed. */
static cx_status make_places(cx_watch *w, const cx_recorded_session *session, cx_str id,
                             cx_err *err)
{
    cx_arena arena;
    cx_session_files files;
    cx_recorded_session before = *session;
    if (!cx_import_has_items(cx_recorded_session_format_name(session->format)))
        return CX_SUCCESS;
    cx_arena_init(&arena, w->cli->alloc, 0);
    cx_status status = cx_session_files_find(w->home, id, &arena, &files, err);
    if (!cx_failed(status) && cx_session_files_have_parts(&files))
        status = cx_session_files_count(w->home, &files, &arena, err);
    cx_arena_done(&arena);
    if (!cx_failed(status) && before.generation-- != 0) {
        cx_recorded_session_name(&before);
        cx_session_items_remove(w->home, before.id);
    }
    return status;
}

static cx_status record_session(cx_watch *w, const cx_watch_file *file, cx_err *err)
{
    char id[2 * CX_SESSION_ID_SIZE];
    uint64_t seq;
    const cx_recorded_session *session = session_of_path(w, cx_str_z(file->path));
    if (session == NULL || session->format == CX_SESSION_UNREAD)
        return CX_SUCCESS;
    cx_hex_encode(cx_bytes_from(session->id, CX_SESSION_ID_SIZE), id);
    const cx_str name = cx_str_from(id, sizeof id);
    cx_err why = {0};
    if (cx_failed(make_places(w, session, name, &why)))
        cx_cli_complain("watch: note: session %s opens slowly: where its records are could not be "
                        "found: %s",
                        file->path, why.message);
    return cx_actions_record_session(w->home, name, w->cli->alloc, &seq, err);
}

/* The set of one document of a session is that of them all. */
static void clear_group(cx_watch *w, const cx_watch_file *file)
{
    cx_session_path of, path;
    cx_session_path_read(cx_str_z(file->path), &of);
    for (size_t i = 0; i < w->files.count && of.group.size != 0; i++) {
        cx_session_path_read(cx_str_z(w->files.items[i].path), &path);
        if (path.shape == of.shape && cx_str_eq(path.group, of.group))
            w->files.items[i].set_due = false;
    }
}

static bool is_due(const cx_watch *w, const cx_watch_file *file, bool all)
{
    uint64_t now = w->cli->io->monotonic_ns(w->cli->io);
    return file->set_due && (all || now - file->grown_ns >= QUIET_NS);
}

cx_status cx_watch_record_actions(cx_watch *w, bool all, cx_err *err)
{
    bool any = false;
    cx_err closing;
    mark_parents(w);
    for (size_t i = 0; i < w->files.count && !any; i++)
        any = is_due(w, &w->files.items[i], all);
    if (!any)
        return CX_SUCCESS;
    CX_TRY(open_home(w, err));
    for (size_t i = 0; i < w->files.count; i++) {
        cx_watch_file *file = &w->files.items[i];
        cx_err why = {0};
        if (!is_due(w, file, all))
            continue;
        file->set_due = false;
        clear_group(w, file);
        if (cx_failed(record_session(w, file, &why)))
            cx_cli_complain("watch: note: what session %s did could not be recorded as a set: %s",
                            file->path, why.message);
    }
    cx_status closed = close_home(w, &closing);
    if (cx_failed(closed))
        cx_cli_complain(
            "watch: note: the tables could not be brought up to date (%s); the log is complete",
            closing.message);
    return CX_SUCCESS;
}
