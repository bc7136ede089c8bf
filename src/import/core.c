/*
 * core.c - an import from end to end: files in, pass one, order, pass two, summary.
 *
 * A line format is streamed twice and never stored; a document, standard input and other streams
 * are loaded whole.  Between the passes a file must not change: every line that is read again is
 * compared with the hash of the first pass.
 */
#include "import/vscdb.h"
#include "import/core.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>

#define CHUNK_BYTES ((size_t)1 << 20)
#define AHEAD_BYTES ((size_t)1 << 16)
#define LINE_END_MAX 2 /* CR, LF */
#define BYTES_MAX ((size_t)UINT32_MAX)
#define PATH_SHOWN_MIN ((size_t)60)
#define PROGRESS_EVERY ((uint64_t)1 << 22)

#define FORMAT(name, text) &cx_import_##name,
static const cx_import_format *const formats[] = {CX_IMPORT_FORMATS(FORMAT)};
#define FORMAT_COUNT CX_COUNT_OF(formats)
_Static_assert(FORMAT_COUNT <= CX_IMPORT_FORMATS_MAX, "detect.c has a place for each");

/* --- formats ------------------------------------------------------------------------------- */

const cx_import_format_info *cx_import_format_at(size_t index)
{
    return index < FORMAT_COUNT ? &formats[index]->info : NULL;
}

static const cx_import_format *find_format(cx_str name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (cx_str_is(name, formats[i]->info.name))
            return formats[i];
    }
    return NULL;
}

bool cx_import_has_windows(const char *name)
{
    const cx_import_format *format = find_format(cx_str_z(name));
    return format != NULL && format->windows;
}

bool cx_import_has_items(const char *name)
{
    const cx_import_format *format = find_format(cx_str_z(name));
    return format != NULL && format->item != NULL;
}

bool cx_import_asks(const char *name)
{
    const cx_import_format *format = find_format(cx_str_z(name));
    return format != NULL && format->asks;
}

bool cx_import_has_places(const char *name)
{
    const cx_import_format *format = find_format(cx_str_z(name));
    return format != NULL && format->places;
}

const cx_import_format *cx_import_format_nth(size_t index)
{
    return index < FORMAT_COUNT ? formats[index] : NULL;
}

/* --- files --------------------------------------------------------------------------------- */

void cx_import_progress(cx_import_core *core, uint64_t more_bytes)
{
    core->done_bytes += more_bytes;
    if (core->options.progress == NULL || core->done_bytes - core->reported_bytes < PROGRESS_EVERY)
        return;
    core->reported_bytes = core->done_bytes;
    core->options.progress(core->options.progress_arg, core->done_bytes, core->total_bytes);
}

void cx_import_count_bad(cx_import_core *core, const char *tag)
{
    source *from = &core->sources.items[core->sink.file];
    if (from->bad++ != 0 || !from->lines)
        return;
    from->first_bad_line = core->sink.line;
    from->first_bad = tag;
}

static size_t limit_of(const cx_import_core *core)
{
    size_t limit = core->options.max_bytes;
    return limit == 0 || limit > BYTES_MAX ? BYTES_MAX : limit;
}

static cx_status open_source(cx_import_core *core, source *from, cx_err *err)
{
    if (from->file != CX_FILE_NONE)
        return CX_SUCCESS;
    int failed = core->io->open(core->io, from->path, CX_IO_READ, &from->file);
    if (failed != 0) {
        from->file = CX_FILE_NONE;
        return cx_fail_os(err, -failed, "cannot open %s", from->path);
    }
    return CX_SUCCESS;
}

static void close_source(cx_import_core *core, source *from)
{
    if (from->file != CX_FILE_NONE)
        (void)core->io->close(core->io, from->file);
    from->file = CX_FILE_NONE;
}

static cx_status load_whole(cx_import_core *core, source *from, cx_err *err)
{
    if (!from->streamed)
        return CX_SUCCESS;
    close_source(core, from);
    cx_buf_clear(&from->whole);
    CX_TRY(cx_io_read_file(core->io, from->path, limit_of(core), &from->whole, err));
    from->bytes = cx_buf_bytes(&from->whole);
    from->streamed = false;
    return CX_SUCCESS;
}

/* Reads up to `size` bytes at an offset of a streamed source. */
static cx_status read_at(cx_import_core *core, source *from, uint64_t offset, uint8_t *data,
                         size_t size, size_t *out_size, cx_err *err)
{
    size_t done = 0;
    CX_TRY(open_source(core, from, err));
    while (done < size) {
        int64_t count =
            core->io->pread(core->io, from->file, data + done, size - done, offset + done);
        if (count == -EINTR)
            continue;
        if (count < 0)
            return cx_fail_os(err, (int)-count, "cannot read %s", from->path);
        if (count == 0)
            break;
        done += (size_t)count;
    }
    *out_size = done;
    return CX_SUCCESS;
}

/* Cursor keeps its conversations in a database: they are read as lines. */
static cx_status load_database(cx_import_core *core, source *from, cx_err *err)
{
    cx_buf_clear(&from->whole);
    CX_TRY(cx_import_read_vscdb(from->path, limit_of(core), &from->whole, err));
    from->bytes = cx_buf_bytes(&from->whole);
    from->streamed = false;
    return CX_SUCCESS;
}

/* Decides how a path is read; streams cannot be read twice and are loaded whole. */
static cx_status prepare_path(cx_import_core *core, source *from, cx_err *err)
{
    uint64_t size = 0;
    bool regular = false, database = false;
    from->streamed = true;
    if (strcmp(from->path, "-") != 0) {
        CX_TRY(open_source(core, from, err));
        if (core->io->size(core->io, from->file, &size, &regular) != 0)
            regular = false;
        if (regular) {
            uint8_t head[16];
            size_t got = 0;
            CX_TRY(read_at(core, from, 0, head, sizeof head, &got, err));
            database = cx_import_is_sqlite(cx_bytes_from(head, got));
        }
        close_source(core, from);
    }
    if (database)
        return load_database(core, from, err);
    if (!regular)
        return load_whole(core, from, err);
    core->total_bytes += size;
    return CX_SUCCESS;
}

/* Lines are mostly read again in their order: one that follows brings those after it along. */
static cx_status read_ahead(cx_import_core *core, source *from, const entry *e, cx_str *out,
                            cx_err *err)
{
    cx_buf *held = &from->ahead;
    const uint64_t end = from->ahead_offset + held->size;
    if (e->offset < from->ahead_offset || e->offset + e->size > end) {
        const bool follows = e->offset >= from->ahead_offset && e->offset <= end + LINE_END_MAX;
        const bool ahead = follows && e->file < OPEN_FILES_MAX && e->size < AHEAD_BYTES;
        const size_t wanted = ahead ? AHEAD_BYTES : e->size;
        size_t got = 0;
        cx_buf_clear(held);
        uint8_t *space = cx_buf_reserve(held, wanted);
        if (space == NULL)
            return cx_fail_nomem(err);
        CX_TRY(read_at(core, from, e->offset, space, wanted, &got, err));
        cx_buf_advance(held, got);
        from->ahead_offset = e->offset;
        if (e->file >= OPEN_FILES_MAX)
            close_source(core, from);
    }
    const size_t start = (size_t)(e->offset - from->ahead_offset), left = held->size - start;
    *out = cx_str_from((const char *)held->data + start, left < e->size ? left : e->size);
    return CX_SUCCESS;
}

cx_status cx_import_reread(cx_import_core *core, const entry *e, cx_str *out, cx_err *err)
{
    source *from = &core->sources.items[e->file];
    cx_import_progress(core, e->size);
    if (from->streamed) {
        CX_TRY(read_ahead(core, from, e, out, err));
    } else {
        *out = cx_str_from((const char *)from->bytes.data + e->offset, e->size);
    }
    if (out->size != e->size || cx_map_hash_bytes(0, out->data, out->size) != e->check)
        return cx_fail(err, CX_E_CONFLICT, "%s changed while it was being read",
                       from->path == NULL ? "the input" : from->path);
    return CX_SUCCESS;
}

/* --- pass one: lines ----------------------------------------------------------------------- */

static bool is_blank(cx_str line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    }
    return true;
}

/* As a document hands it over; the number of its record is not that of a line. */
static cx_status import_item(cx_import_core *core, const cx_json *value, cx_err *err)
{
    cx_import_sink *sink = &core->sink;
    const uint64_t line = sink->line;
    if (line > UINT32_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET, "more than 2^32 records");
    core->item = line - 1;
    /* A number that overflows affects its record, whose text is stored (record.c). */
    core->line_value = cx_json_has_canonical(value) ? value : NULL;
    sink->line = 0;
    cx_status status = core->format->item(sink, value, (uint32_t)core->item, err);
    sink->line = line;
    core->line_value = NULL;
    return status;
}

static cx_status import_line(cx_import_core *core, cx_str line, cx_err *err)
{
    const bool items = has_items(window_of(core, core->sink.file));
    cx_json value;
    cx_err why = {0};
    cx_status status = cx_json_parse(&core->parser, line, &core->scratch, &value, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) && items && err != NULL)
        *err = why;
    if (items)
        return cx_failed(status) ? status : import_item(core, &value, err);
    if (cx_failed(status))
        return cx_import_bad_line(core, why.tag == NULL ? "U_SYNTAX" : why.tag, err);
    if (!cx_json_has_canonical(&value))
        return cx_import_bad_line(core, "U_NUMBER", err);
    core->line_value = &value;
    core->question = 0;
    status = core->format->line(&core->sink, &value, err);
    core->line_value = NULL;
    return status;
}

/* One line without its LF; the CR of a CRLF belongs to the line's end too. */
static cx_status read_line(cx_import_core *core, cx_str line, uint64_t offset, cx_err *err)
{
    if (offset == 0) {
        cx_bytes text = cx_import_after_mark(cx_str_bytes(line));
        offset = line.size - text.size;
        line = cx_bytes_str(text);
    }
    core->sink.line++;
    cx_import_progress(core, line.size + 1);
    if (line.size != 0 && line.data[line.size - 1] == '\r')
        line.size--;
    if (is_blank(line)) {
        const bool items = has_items(window_of(core, core->sink.file));
        core->sources.items[core->sink.file].blank_lines += !items;
        return CX_SUCCESS;
    }
    cx_arena_mark mark = cx_arena_mark_now(&core->scratch);
    core->line_offset = offset;
    core->line_text = line;
    cx_status status = import_line(core, line, err);
    cx_arena_reset(&core->scratch, mark);
    return status;
}

static cx_status lines_of_memory(cx_import_core *core, source *from, cx_err *err)
{
    const char *data = (const char *)from->bytes.data;
    size_t size = from->bytes.size;
    const cx_import_window *window = window_of(core, core->sink.file);
    for (size_t at = 0; at < size;) {
        if (window != NULL && at == window->head)
            core->sink.line = window->line;
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = end == NULL ? size - at : (size_t)(end - (data + at));
        if (length > limit_of(core))
            return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", at, "a line is longer than %zu bytes",
                              limit_of(core));
        CX_TRY(read_line(core, cx_str_from(data + at, length), at, err));
        at += length + (end != NULL);
    }
    from->sha256 = cx_digest_of(from->bytes);
    from->size = size;
    return CX_SUCCESS;
}

/* Reads blocks after the rest of the last one, and imports every complete line. */
static cx_status lines_of_stream(cx_import_core *core, source *from, cx_buf *held, cx_err *err)
{
    cx_sha256 sha;
    uint64_t start = 0; /* offset of held->data[0] in the file */
    size_t scanned = 0;
    cx_sha256_init(&sha);
    for (bool last = false; !last;) {
        size_t got = 0;
        uint8_t *space = cx_buf_reserve(held, CHUNK_BYTES);
        if (space == NULL)
            return cx_fail_nomem(err);
        CX_TRY(read_at(core, from, start + held->size, space, CHUNK_BYTES, &got, err));
        cx_sha256_add(&sha, space, got);
        cx_buf_advance(held, got);
        last = got < CHUNK_BYTES;
        size_t at = 0;
        for (;;) {
            size_t from_here = scanned > at ? scanned : at;
            const uint8_t *end = from_here == held->size
                                     ? NULL
                                     : memchr(held->data + from_here, '\n', held->size - from_here);
            if (end == NULL && (!last || at == held->size))
                break;
            size_t stop = end == NULL ? held->size : (size_t)(end - held->data);
            cx_str line = cx_str_from((const char *)held->data + at, stop - at);
            CX_TRY(read_line(core, line, start + at, err));
            at = stop + (end != NULL);
        }
        memmove(held->data, held->data + at, held->size - at);
        held->size -= at;
        start += at;
        scanned = held->size;
        if (held->size > limit_of(core))
            return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", start, "a line is longer than %zu bytes",
                              limit_of(core));
    }
    from->size = start;
    from->sha256 = cx_sha256_end(&sha);
    return CX_SUCCESS;
}

static cx_status read_lines(cx_import_core *core, source *from, cx_err *err)
{
    if (!from->streamed)
        return lines_of_memory(core, from, err);
    cx_buf held;
    cx_buf_init(&held, core->alloc);
    cx_status status = lines_of_stream(core, from, &held, err);
    cx_buf_done(&held);
    if (core->sink.file >= OPEN_FILES_MAX)
        close_source(core, from);
    return status;
}

/* --- pass one: documents ------------------------------------------------------------------- */

static cx_status read_document(cx_import_core *core, source *from, cx_err *err)
{
    cx_json *document = CX_ARENA_NEW(&core->documents, cx_json);
    CX_TRY(load_whole(core, from, err));
    from->sha256 = cx_digest_of(from->bytes);
    from->size = from->bytes.size;
    cx_import_progress(core, from->size);
    if (document == NULL)
        return cx_fail_nomem(err);
    if (core->format->text != NULL) {
        const bool begins = core->options.windows == NULL; /* else it has no mark */
        cx_str text = cx_bytes_str(begins ? cx_import_after_mark(from->bytes) : from->bytes);
        size_t valid = cx_utf8_valid_prefix(text);
        if (valid != text.size)
            return cx_fail_at(err, CX_E_FORMAT, "U_UTF8", valid,
                              "found bytes that are not UTF-8, expected text in UTF-8");
        return core->format->text(&core->sink, text, err);
    }
    CX_TRY(cx_json_parse(&core->parser, cx_bytes_str(cx_import_after_mark(from->bytes)),
                         &core->documents, document, err));
    return core->format->document(&core->sink, document, err);
}

/* The line that starts at *at, which moves past it; false at the end. */
static bool next_filled_line(cx_bytes bytes, size_t *at, cx_str *out)
{
    while (*at < bytes.size) {
        const char *start = (const char *)bytes.data + *at;
        const char *end = memchr(start, '\n', bytes.size - *at);
        size_t size = end == NULL ? bytes.size - *at : (size_t)(end - start);
        *at += size + (end != NULL);
        *out = cx_str_from(start, size);
        if (!is_blank(*out))
            return true;
    }
    return false;
}

static bool is_whole_object(cx_json_parser *parser, cx_arena *arena, cx_str line)
{
    cx_json value;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    bool whole = !cx_failed(cx_json_parse(parser, line, arena, &value, NULL)) &&
                 value.type == CX_JSON_OBJECT;
    cx_arena_reset(arena, mark);
    return whole;
}

bool cx_import_looks_like_lines(cx_json_parser *parser, cx_arena *arena, cx_bytes bytes)
{
    cx_str first, second;
    size_t at = 0;
    if (!next_filled_line(bytes, &at, &first) || !next_filled_line(bytes, &at, &second))
        return false;
    if (is_whole_object(parser, arena, first))
        return true;
    return first.data[0] == '{' && is_whole_object(parser, arena, second);
}

bool cx_import_reads_lines(const char *name, cx_bytes head, const cx_alloc *alloc)
{
    const cx_import_format *format = find_format(cx_str_z(name));
    const cx_json_limits limits = {RECORD_DEPTH_MAX, 4300, 0, false};
    cx_json_parser parser;
    cx_arena arena;
    if (format == NULL || format->line == NULL)
        return false;
    if (format->document == NULL)
        return true;
    cx_arena_init(&arena, alloc, 0);
    cx_json_parser_init(&parser, alloc, &limits);
    const bool lines = cx_import_looks_like_lines(&parser, &arena, head);
    cx_json_parser_done(&parser);
    cx_arena_done(&arena);
    return lines;
}

/* The form of a streamed file is decided from its head, if that contains two lines. */
static cx_status choose_form(cx_import_core *core, source *from, cx_err *err)
{
    const cx_import_format *format = core->format;
    from->lines =
        format->text == NULL &&
        (format->document == NULL || core->options.windows != NULL); /* one line looks like one */
    if (format->line == NULL || format->document == NULL || from->lines)
        return CX_SUCCESS;
    if (from->streamed) {
        uint8_t *head = cx_arena_push(&core->scratch, CHUNK_BYTES, 1);
        size_t got = 0;
        if (head == NULL)
            return cx_fail_nomem(err);
        CX_TRY(read_at(core, from, 0, head, CHUNK_BYTES, &got, err));
        from->lines =
            cx_import_looks_like_lines(&core->parser, &core->scratch, cx_bytes_from(head, got));
        if (from->lines)
            return CX_SUCCESS;
        CX_TRY(load_whole(core, from, err));
    }
    from->lines = cx_import_looks_like_lines(&core->parser, &core->scratch, from->bytes);
    return CX_SUCCESS;
}

/* What a document says besides its items, before they are read. */
static cx_status read_rest(cx_import_core *core, const cx_import_window *window, cx_err *err)
{
    cx_json *rest = CX_ARENA_NEW(&core->documents, cx_json);
    if (rest == NULL)
        return cx_fail_nomem(err);
    const cx_str text = cx_bytes_str(cx_import_after_mark(cx_str_bytes(window->rest)));
    CX_TRY(cx_json_parse(&core->parser, text, &core->documents, rest, err));
    core->sink.arena = &core->documents;
    return core->format->document(&core->sink, rest, err);
}

/* Says which file a reader's message is about. */
static void name_file(const source *from, cx_status status, cx_err *err)
{
    char message[CX_ERR_MESSAGE_SIZE];
    if (err == NULL || from->path == NULL || status.code == CX_E_NOMEM || err->os_errno != 0 ||
        strstr(err->message, from->path) != NULL)
        return;
    memcpy(message, err->message, sizeof message);
    /* Of a long path less is shown, so that the message says what to do. */
    const size_t room = sizeof err->message - sizeof ": ";
    size_t size = strlen(message) < room - PATH_SHOWN_MIN ? strlen(message) : room - PATH_SHOWN_MIN;
    (void)snprintf(err->message, sizeof err->message, "%.*s: %.*s", (int)(room - size), from->path,
                   (int)size, message);
}

static cx_status read_source(cx_import_core *core, uint32_t file, cx_err *err)
{
    source *from = &core->sources.items[file];
    cx_import_sink *sink = &core->sink;
    cx_arena_mark mark = cx_arena_mark_now(&core->scratch);
    sink->file = file;
    sink->line = 0;
    from->first_entry = (uint32_t)core->entries.count;
    CX_TRY(choose_form(core, from, err));
    cx_arena_reset(&core->scratch, mark);
    if (has_items(window_of(core, file)))
        CX_TRY(read_rest(core, window_of(core, file), err));
    sink->arena = from->lines ? &core->scratch : &core->documents;
    cx_status status = from->lines ? read_lines(core, from, err) : read_document(core, from, err);
    if (!cx_failed(status) && core->format->file_end != NULL)
        status = core->format->file_end(sink, err);
    cx_arena_reset(&core->scratch, mark);
    if (cx_failed(status))
        name_file(from, status, err);
    return status;
}

/* --- the whole ----------------------------------------------------------------------------- */

static void core_done(cx_import_core *core)
{
    const cx_alloc *alloc = core->alloc;
    if (core->sink.state != NULL && core->format->done != NULL)
        core->format->done(&core->sink);
    for (size_t f = 0; f < core->sources.count; f++) {
        if (core->io != NULL)
            close_source(core, &core->sources.items[f]);
        cx_buf_done(&core->sources.items[f].whole);
        cx_buf_done(&core->sources.items[f].ahead);
    }
    cx_alloc_free(alloc, core->order, (core->entries.count + 1) * sizeof *core->order);
    cx_alloc_free(alloc, core->hashes, (core->entries.count + 1) * sizeof *core->hashes);
    cx_alloc_free(alloc, core->output,
                  (core->entries.count + core->sources.count + 1) * sizeof *core->output);
    cx_vec_done(&core->record.refs, alloc);
    cx_vec_done(&core->record.defines, alloc);
    cx_vec_done(&core->record.calls, alloc);
    cx_vec_done(&core->record.made, alloc);
    cx_vec_done(&core->record.fields, alloc);
    cx_vec_done(&core->record.beliefs, alloc);
    cx_vec_done(&core->record.memory, alloc);
    cx_vec_done(&core->sources, alloc);
    cx_vec_done(&core->entries, alloc);
    cx_vec_done(&core->refs, alloc);
    cx_vec_done(&core->slots, alloc);
    cx_vec_done(&core->calls, alloc);
    cx_vec_done(&core->links, alloc);
    cx_vec_done(&core->agents, alloc);
    cx_map_done(&core->slot_index);
    cx_map_done(&core->agent_source);
    cx_map_done(&core->agent_used);
    cx_buf_done(&core->text);
    cx_json_parser_done(&core->parser);
    cx_arena_done(&core->keep);
    cx_arena_done(&core->scratch);
    cx_arena_done(&core->documents);
    cx_arena_done(&core->line);
}

static void core_init(cx_import_core *core, const cx_import_options *options)
{
    const cx_import_options defaults = CX_IMPORT_OPTIONS_INIT;
    const cx_json_limits limits = {RECORD_DEPTH_MAX, 4300, 0, false};
    *core = (cx_import_core){.options = options == NULL ? defaults : *options};
    if (core->options.alloc == NULL)
        core->options.alloc = cx_alloc_default();
    core->alloc = core->options.alloc;
    core->seed = core->options.seed;
    core->sink = (cx_import_sink){
        .core = core, .options = &core->options, .arena = &core->scratch, .keep = &core->keep};
    cx_json_parser_init(&core->parser, core->alloc, &limits);
    cx_arena_init(&core->keep, core->alloc, 0);
    cx_arena_init(&core->scratch, core->alloc, 0);
    cx_arena_init(&core->documents, core->alloc, 0);
    cx_arena_init(&core->line, core->alloc, 0);
    cx_buf_init(&core->text, core->alloc);
    cx_map_init(&core->slot_index, core->alloc, core->seed);
    cx_map_init(&core->agent_source, core->alloc, core->seed);
    cx_map_init(&core->agent_used, core->alloc, core->seed);
}

static cx_status detect_first(cx_import_core *core, const char **out_name, cx_err *err)
{
    source *from = &core->sources.items[0];
    cx_import_guessed guessed = {0};
    if (from->streamed) {
        cx_buf head;
        cx_buf_init(&head, core->alloc);
        cx_status status = open_source(core, from, err);
        if (!cx_failed(status))
            status =
                cx_import_read_head(core->io, from->file, from->path, limit_of(core), &head, err);
        if (!cx_failed(status))
            cx_import_guess(cx_buf_bytes(&head), &guessed);
        cx_buf_done(&head);
        close_source(core, from);
        CX_TRY(status);
    } else {
        cx_import_guess(from->bytes, &guessed);
    }
    *out_name = guessed.format;
    return guessed.format == NULL ? cx_import_fail_unknown(&guessed, err) : CX_SUCCESS;
}

/* "claude" and "claud-code" are nearly claude-code: they begin as it does. */
static cx_status fail_format(const char *name, cx_err *err)
{
    const cx_import_format_info *format;
    const char *nearest = "auto";
    size_t shared_most = 0;
    for (size_t i = 0; (format = cx_import_format_at(i)) != NULL; i++) {
        size_t shared = 0;
        while (name[shared] != 0 && name[shared] == format->name[shared])
            shared++;
        if (shared > shared_most && (shared >= 3 || name[shared] == 0)) {
            shared_most = shared;
            nearest = format->name;
        }
    }
    return cx_fail(err, CX_E_USAGE,
                   "unknown import format '%s'; did you mean '%s'? 'cortex import --list' has them",
                   name, nearest);
}

static cx_status choose_format(cx_import_core *core, const char *name, cx_err *err)
{
    if (strcmp(name, "auto") == 0) {
        cx_status status = detect_first(core, &name, err);
        if (cx_failed(status)) {
            name_file(&core->sources.items[0], status, err);
            return status;
        }
    }
    core->format = find_format(cx_str_z(name));
    if (core->format == NULL)
        return fail_format(name, err);
    if (core->options.only.size != 0 && !core->format->takes_only)
        return cx_fail(err, CX_E_USAGE, "format '%s' has no runs to choose from", name);
    core->sink.state =
        cx_arena_push(&core->keep, core->format->state_size + 1, alignof(max_align_t));
    if (core->sink.state == NULL)
        return cx_fail_nomem(err);
    memset(core->sink.state, 0, core->format->state_size + 1);
    return CX_SUCCESS;
}

static cx_status import_sources(cx_import_core *core, const char *format, cx_import_write write,
                                void *write_arg, cx_import_summary *summary, cx_err *err)
{
    uint32_t importer;
    CX_TRY(choose_format(core, format, err));
    if (core->format->document == NULL && core->format->text == NULL)
        core->total_bytes *= 2; /* lines are read twice */
    CX_TRY(cx_import_agent_of(core, CX_STR(IMPORTER), &importer, err));
    CX_ASSERT(importer == 0);
    for (size_t f = 0; f < core->sources.count; f++)
        CX_TRY(read_source(core, (uint32_t)f, err));
    core->sink.arena = &core->scratch;
    if (core->format->finish != NULL)
        CX_TRY(core->format->finish(&core->sink, err));
    if (core->options.only.size != 0 && core->entries.count == 0)
        return cx_fail(err, CX_E_USAGE, "no run has the name '%.*s'",
                       (int)(core->options.only.size > 80 ? 80 : core->options.only.size),
                       core->options.only.data);
    if (write == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_import_resolve(core, err));
    CX_TRY(cx_import_emit(core, write, write_arg, err));
    if (core->options.progress != NULL)
        core->options.progress(core->options.progress_arg, core->done_bytes, core->done_bytes);
    return summary == NULL ? CX_SUCCESS : cx_import_summarize(core, summary, err);
}

static source *new_source(cx_import_core *core)
{
    source *made = cx_vec_push(&core->sources, core->alloc);
    if (made != NULL) {
        *made = (source){.file = CX_FILE_NONE};
        cx_buf_init(&made->whole, core->alloc);
        cx_buf_init(&made->ahead, core->alloc);
    }
    return made;
}

cx_status cx_import_run(const cx_io *io, const char *format, const char *const *paths,
                        size_t path_count, const cx_import_options *options, cx_import_write write,
                        void *write_arg, cx_import_summary *summary, cx_err *err)
{
    cx_import_core core;
    cx_status status = CX_SUCCESS;
    if (path_count == 0 || path_count >= UINT32_MAX)
        return cx_fail(err, CX_E_USAGE, "no file to import");
    core_init(&core, options);
    core.io = io;
    if (core.seed == 0)
        core.options.seed = core.slot_index.seed = core.agent_source.seed = core.agent_used.seed =
            cx_io_seed(io);
    for (size_t f = 0; f < path_count; f++) {
        source *made = new_source(&core);
        if (made == NULL)
            CX_TRY_GOTO(status, cx_fail_nomem(err));
        made->path = paths[f];
        CX_TRY_GOTO(status, prepare_path(&core, made, err));
    }
    status = import_sources(&core, format, write, write_arg, summary, err);
done:
    core_done(&core);
    return status;
}

cx_status cx_import_run_bytes(const char *format, const cx_bytes *files, size_t file_count,
                              const cx_import_options *options, cx_import_write write,
                              void *write_arg, cx_import_summary *summary, cx_err *err)
{
    cx_import_core core;
    cx_status status = CX_SUCCESS;
    if (file_count == 0 || file_count >= UINT32_MAX)
        return cx_fail(err, CX_E_USAGE, "no file to import");
    core_init(&core, options);
    for (size_t f = 0; f < file_count; f++) {
        source *made = new_source(&core);
        if (made == NULL)
            CX_TRY_GOTO(status, cx_fail_nomem(err));
        made->bytes = files[f];
    }
    status = import_sources(&core, format, write, write_arg, summary, err);
done:
    core_done(&core);
    return status;
}
