/*
 * load.c - reads a lattice in one pass (§1).
 *
 * Three forms:
 *
 *   lines     one object a line.  The input is cut into blocks of whole lines; several readers
 *             parse and hash blocks at the same time and are absorbed in file order.
 *   array     [ node, node, ... ]                one reader, element by element
 *   wrapped   { "schema_version": ..., "nodes": [ ... ] }        likewise
 *
 * In the last two a window slides over the input; an element that ends beyond the window is tried
 * again with more (CX_E_MORE), so no element is ever held together with another file's worth of text.
 *
 * Telling the forms apart (§1.1): a file that is one single JSON value is that value, otherwise it
 * is lines.  `[` can only be an array.  After `{` the first line decides: complete and followed by
 * more is lines; anything else is tried as a wrapped object and falls back to lines.
 *
 * Invariants:
 *   I1  blocks are absorbed in file order, so node numbers and the first error do not depend on
 *       the number of readers;
 *   I2  values of a batch borrow from its block, which stays untouched until the batch is absorbed;
 *   I3  after the first error nothing more is absorbed.
 */
#include "lattice/record.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/thread.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#define THREADS_MAX 8u
#define BATCH_NODES 4096u

/* --- where bytes come from ---------------------------------------------------------------------- */

/* Reads by position, from a file or from memory; streams were made memory before. */
typedef struct source {
    const cx_io *io;
    cx_file file; /* CX_FILE_NONE: memory */
    const char *name;
    cx_bytes memory;
    uint64_t total;
    uint64_t limit;
} source;

static cx_status fail_io(cx_err *err, int code, const char *name)
{
    cx_status status = cx_fail_os(err, code, "cannot read %s", name);
    if (err != NULL)
        err->tag = "U_IO";
    return status;
}

static cx_status fail_limit(const source *from, cx_err *err)
{
    return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", from->limit,
                      "found more than the limit of %llu bytes", (unsigned long long)from->limit);
}

/* Up to `size` bytes at `offset`; *out_size < size only at the end. */
static cx_status source_read(const source *from, uint64_t offset, uint8_t *data, size_t size,
                             size_t *out_size, cx_err *err)
{
    size_t done = 0;
    while (done < size) {
        int64_t got = from->io->pread(from->io, from->file, data + done, size - done, offset + done);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return fail_io(err, (int)-got, from->name);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    if (from->limit != 0 && offset + done > from->limit)
        return fail_limit(from, err);
    *out_size = done;
    return CX_SUCCESS;
}

/* Turns positions inside a parsed piece into positions in the file. */
static cx_status relocate(cx_status status, uint64_t offset, uint64_t line, cx_err *err)
{
    if (status.code == CX_E_MORE)
        status.code = CX_E_SYNTAX; /* there is no more to come */
    if (cx_failed(status) && err != NULL && err->tag != NULL) {
        err->code = status.code;
        if (err->offset != CX_NO_OFFSET)
            err->offset += offset;
        err->line = err->line == 0 ? line : err->line + line - 1;
    }
    return status;
}

static cx_str skip_blank(cx_str text)
{
    while (text.size != 0 && (text.data[0] == ' ' || text.data[0] == '\t' || text.data[0] == '\r')) {
        text.data++;
        text.size--;
    }
    return text;
}

static bool is_blank_char(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static uint64_t count_lines(const char *data, size_t size)
{
    uint64_t lines = 0;
    const char *end = data + size;
    while (data < end && (data = memchr(data, '\n', (size_t)(end - data))) != NULL) {
        lines++;
        data++;
    }
    return lines;
}

/* --- lines -------------------------------------------------------------------------------------- */

/* A run of whole lines. */
typedef struct block {
    const char *data;
    size_t size;
    uint64_t offset;
    uint64_t number; /* 0, 1, ...: its turn to be absorbed */
    bool looking;    /* for the first object of the file, which may be a header */
} block;

typedef struct line_reader {
    cx_lattice *lattice;
    const source *from;
    const cx_lattice_options *options;
    cx_str version; /* file default, set by the header */
    cx_lock lock;
    /* Guarded by the lock. */
    uint64_t offset;      /* of the next block */
    uint64_t next_number; /* of the next block to hand out */
    uint64_t turn;        /* of the block to be absorbed next */
    uint64_t lines;       /* ended before that block */
    cx_buf carry;         /* a cut line at the end of the last block */
    bool exhausted;
    bool stopped; /* I3 */
    bool looking;    /* a block is read for the first object: others wait */
    bool first_done; /* the first object was looked at: the version is known */
    cx_status status;
    cx_err err;
} line_reader;

/* Next block from memory: a slice, up to the first line end behind BLOCK_BYTES. */
static bool slice_block(line_reader *reader, block *out)
{
    size_t at = (size_t)reader->offset, size = reader->from->memory.size;
    if (at >= size)
        return false;
    const char *data = (const char *)reader->from->memory.data;
    size_t end = size - at > BLOCK_BYTES ? at + BLOCK_BYTES : size;
    if (end < size) {
        const char *newline = memchr(data + end, '\n', size - end);
        end = newline == NULL ? size : (size_t)(newline - data) + 1;
    }
    *out = (block){.data = data + at, .size = end - at, .offset = reader->offset};
    reader->offset = end;
    return true;
}

/* Next block from the file into `buf`: carry first, then more until it holds a line end. */
static cx_status read_block(line_reader *reader, cx_buf *buf, block *out, bool *out_any, cx_err *err)
{
    uint64_t start = reader->offset - reader->carry.size;
    cx_buf_clear(buf);
    cx_buf_add(buf, reader->carry.data, reader->carry.size);
    CX_TRY(cx_buf_check(buf, err));
    cx_buf_clear(&reader->carry);
    size_t keep = 0;
    for (size_t step = BLOCK_BYTES; keep == 0; step *= 2) {
        uint8_t *room = cx_buf_reserve(buf, step);
        size_t got;
        if (room == NULL)
            return cx_fail_nomem(err);
        CX_TRY(source_read(reader->from, reader->offset, room, step, &got, err));
        cx_buf_advance(buf, got);
        reader->offset += got;
        if (got < step) {
            reader->exhausted = true;
            keep = buf->size;
            break;
        }
        const uint8_t *newline = memrchr(room, '\n', got);
        if (newline != NULL)
            keep = (size_t)(newline - buf->data) + 1;
    }
    cx_buf_add(&reader->carry, buf->data + keep, buf->size - keep);
    CX_TRY(cx_buf_check(&reader->carry, err));
    *out_any = keep != 0;
    *out = (block){.data = (const char *)buf->data, .size = keep, .offset = start};
    return CX_SUCCESS;
}

static cx_status next_block(line_reader *reader, cx_buf *buf, block *out, bool *out_any, cx_err *err)
{
    *out_any = false;
    if (reader->exhausted)
        return CX_SUCCESS;
    if (reader->from->file == CX_FILE_NONE)
        *out_any = slice_block(reader, out);
    else
        CX_TRY(read_block(reader, buf, out, out_any, err));
    if (!*out_any)
        reader->exhausted = true;
    out->number = reader->next_number;
    reader->next_number += *out_any;
    out->looking = reader->looking = *out_any && !reader->first_done;
    return CX_SUCCESS;
}

/* §1.1: a first object with none of these is a header. */
static bool is_header(const cx_json *value)
{
    static const char *const names[] = {"node_id", "agent_id", "seq", "event", "hash"};
    if (value->type != CX_JSON_OBJECT)
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_json_get(value, cx_str_z(names[i])) != NULL)
            return false;
    return true;
}

static cx_status take_version(cx_lattice *lattice, const cx_json *value, cx_str *version,
                              cx_err *err)
{
    if (value == NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_STRING)
        return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", 0,
                          "found %s as schema_version of the file, expected a string",
                          cx_json_type_name(value));
    *version = cx_arena_copy_str(&lattice->text, cx_json_text(value));
    return version->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Line numbers are relative to the block: *out_lines says how many it has. */
static cx_status parse_lines(line_reader *reader, batch *b, block *from, uint64_t *out_lines,
                             cx_err *err)
{
    const char *at = from->data, *end = from->data + from->size;
    uint64_t line = 1;
    b->input = (cx_str){from->data, from->size};
    for (; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        cx_str text = {at, (size_t)(stop - at)};
        uint64_t offset = from->offset + (uint64_t)(at - from->data);
        at = stop + 1;
        if (skip_blank(text).size == 0)
            continue;
        cx_json value;
        cx_arena_reset(&b->values, (cx_arena_mark){0});
        CX_TRY(relocate(cx_json_parse(&b->parser, text, &b->values, &value, err), offset, line, err));
        if (from->looking) {
            from->looking = false;
            if (is_header(&value)) {
                CX_TRY(relocate(take_version(reader->lattice, CX_JSON_GET(&value, "schema_version"),
                                             &reader->version, err), offset, line, err));
                continue;
            }
        }
        CX_TRY(relocate(cx_lattice_batch_add(b, &value, reader->version, offset, line, err), 0, line,
                        err));
    }
    *out_lines = line - 1;
    return CX_SUCCESS;
}

static void report_progress(const cx_lattice_options *options, uint64_t done, uint64_t total)
{
    if (options->progress != NULL)
        options->progress(options->progress_arg, done, total);
}

/* The first block tells how many nodes to expect: growing the array step by step costs page faults. */
static void expect_nodes(line_reader *reader, const batch *b, const block *from)
{
    uint64_t done = from->offset + from->size, total = reader->from->total;
    if (from->number != 0 || done == 0 || total <= done)
        return;
    double expected = (double)b->drafts.count * ((double)total / (double)done) * 1.02;
    cx_lattice *lattice = reader->lattice;
    /* Only a guess: when there is no room for it, growing will do or say so. */
    if (expected < (double)lattice->max_nodes)
        (void)cx_vec_reserve(&lattice->nodes, (size_t)expected, lattice->alloc);
}

/* Inside the lock and in turn: what was parsed joins the lattice. */
static cx_status absorb_block(line_reader *reader, batch *b, const block *from, uint64_t lines,
                              cx_err *err)
{
    for (size_t i = 0; i < b->drafts.count; i++) {
        uint64_t line = b->drafts.items[i].n.line + reader->lines;
        b->drafts.items[i].n.line = line <= UINT32_MAX ? (uint32_t)line : 0;
    }
    reader->lines += lines;
    expect_nodes(reader, b, from);
    CX_TRY(cx_lattice_absorb(reader->lattice, b, err));
    report_progress(reader->options, from->offset + from->size, reader->from->total);
    return CX_SUCCESS;
}

/* Keeps the first failure in file order (I1, I3). */
static void stop_reading(line_reader *reader, cx_status status, const cx_err *err)
{
    if (!reader->stopped) {
        reader->stopped = true;
        reader->status = status;
        reader->err = *err;
    }
}

static cx_status process_block(line_reader *reader, batch *b, block *from, cx_err *err)
{
    cx_lattice_batch_clear(b);
    uint64_t lines = 0;
    bool looking = from->looking;
    cx_status status = parse_lines(reader, b, from, &lines, err);
    if (looking) {
        /* The header, if any, is read: others may start.  Blank lines alone: the next block looks. */
        cx_lock_enter(&reader->lock);
        reader->first_done = !from->looking;
        reader->looking = false;
        cx_lock_wake(&reader->lock);
        cx_lock_leave(&reader->lock);
    }
    if (!cx_failed(status))
        status = cx_lattice_batch_digest(b, err);
    cx_lock_enter(&reader->lock);
    while (reader->turn != from->number && !reader->stopped)
        cx_lock_wait(&reader->lock);
    if (!reader->stopped) {
        if (cx_failed(status))
            err->line += err->line == 0 ? 0 : reader->lines;
        else
            status = absorb_block(reader, b, from, lines, err);
        if (cx_failed(status))
            stop_reading(reader, status, err);
        reader->turn++;
    }
    cx_lock_wake(&reader->lock);
    cx_lock_leave(&reader->lock);
    return status;
}

static void read_lines(void *arg, unsigned index)
{
    line_reader *reader = arg;
    cx_buf buf;
    batch b;
    (void)index;
    cx_buf_init(&buf, reader->lattice->alloc);
    cx_lattice_batch_init(&b, reader->lattice->alloc, reader->lattice->seed, &reader->lattice->limits);
    b.keep_deltas = reader->lattice->keep_deltas;
    b.keep_seals = reader->lattice->keep_seals;
    for (bool more = true; more;) {
        block from;
        cx_err err = {0};
        cx_lock_enter(&reader->lock);
        while (reader->looking && !reader->stopped)
            cx_lock_wait(&reader->lock);
        cx_status status = reader->stopped ? CX_SUCCESS : next_block(reader, &buf, &from, &more, &err);
        more = more && !reader->stopped;
        if (cx_failed(status)) {
            /* Blocks handed out before this one are still to be judged first (I1). */
            uint64_t number = reader->next_number++;
            while (reader->turn != number && !reader->stopped)
                cx_lock_wait(&reader->lock);
            stop_reading(reader, status, &err);
            cx_lock_wake(&reader->lock);
            more = false;
        }
        cx_lock_leave(&reader->lock);
        if (more)
            more = !cx_failed(process_block(reader, &b, &from, &err));
    }
    cx_lattice_batch_done(&b);
    cx_buf_done(&buf);
}

static cx_status load_lines(cx_lattice *lattice, const source *from,
                            const cx_lattice_options *options, cx_err *err)
{
    line_reader reader = {.lattice = lattice, .from = from, .options = options,
                          .version = CX_STR("2.0.0")};
    cx_buf_init(&reader.carry, lattice->alloc);
    cx_lock_init(&reader.lock);
    unsigned threads = options->threads != 0 ? options->threads : cx_thread_cores();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    if (from->total <= 2 * BLOCK_BYTES)
        threads = 1;
    cx_thread_team(threads, read_lines, &reader);
    cx_lock_done(&reader.lock);
    cx_buf_done(&reader.carry);
    if (reader.stopped && err != NULL)
        *err = reader.err;
    return reader.stopped ? reader.status : CX_SUCCESS;
}

/* --- one document -------------------------------------------------------------------------------- */

/* A window over the input with a position in it. */
typedef struct window {
    cx_lattice *lattice;
    const source *from;
    const cx_lattice_options *options;
    cx_buf buf;
    const char *data;
    size_t size;
    size_t at;
    uint64_t offset; /* of data[0] */
    uint64_t line;   /* of data[at], 1-based */
    bool last;       /* nothing behind the window */
    batch b;
} window;

static void window_init(window *w, cx_lattice *lattice, const source *from,
                        const cx_lattice_options *options)
{
    *w = (window){.lattice = lattice, .from = from, .options = options, .data = "", .line = 1};
    cx_buf_init(&w->buf, lattice->alloc);
    cx_lattice_batch_init(&w->b, lattice->alloc, lattice->seed, &lattice->limits);
    w->b.keep_deltas = lattice->keep_deltas;
    w->b.keep_seals = lattice->keep_seals;
    if (from->file == CX_FILE_NONE) {
        w->data = from->memory.size == 0 ? "" : (const char *)from->memory.data;
        w->size = from->memory.size;
        w->last = true;
    }
}

static void window_done(window *w)
{
    cx_lattice_batch_done(&w->b);
    cx_buf_done(&w->buf);
}

/* What the batch borrows from the window joins the lattice (I2). */
static cx_status window_flush(window *w, cx_err *err)
{
    CX_TRY(cx_lattice_batch_digest(&w->b, err));
    CX_TRY(cx_lattice_absorb(w->lattice, &w->b, err));
    cx_lattice_batch_clear(&w->b);
    report_progress(w->options, w->offset + w->at, w->from->total);
    return CX_SUCCESS;
}

/* Drops what lies behind and reads at least as much again. */
static cx_status window_more(window *w, cx_err *err)
{
    CX_TRY(window_flush(w, err));
    size_t rest = w->size - w->at;
    if (rest != 0)
        memmove(w->buf.data, w->buf.data + w->at, rest);
    w->buf.size = rest;
    w->offset += w->at;
    w->at = 0;
    size_t step = rest < BLOCK_BYTES ? BLOCK_BYTES : rest, got;
    uint8_t *room = cx_buf_reserve(&w->buf, step);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(source_read(w->from, w->offset + rest, room, step, &got, err));
    cx_buf_advance(&w->buf, got);
    w->last = got < step;
    w->data = (const char *)w->buf.data;
    w->size = w->buf.size;
    return CX_SUCCESS;
}

static void window_advance(window *w, size_t size)
{
    w->line += count_lines(w->data + w->at, size);
    w->at += size;
}

/* The next byte that is no white space; *out_byte -1 at the end. */
static cx_status window_peek(window *w, int *out_byte, cx_err *err)
{
    for (;;) {
        size_t at = w->at;
        while (at < w->size && is_blank_char(w->data[at]))
            at++;
        window_advance(w, at - w->at);
        if (at < w->size || w->last) {
            *out_byte = at < w->size ? (uint8_t)w->data[at] : -1;
            return CX_SUCCESS;
        }
        CX_TRY(window_more(w, err));
    }
}

static cx_status window_expected(const window *w, const char *expected, cx_err *err)
{
    cx_status status;
    if (w->at >= w->size)
        status = cx_fail_at(err, CX_E_SYNTAX, "U_SYNTAX", w->offset + w->at,
                            "found the end of the file, expected %s", expected);
    else
        status = cx_fail_at(err, CX_E_SYNTAX, "U_SYNTAX", w->offset + w->at,
                            "found byte 0x%02x, expected %s", (uint8_t)w->data[w->at], expected);
    if (err != NULL)
        err->line = w->line;
    return status;
}

/* One value from the window, good until the next. */
static cx_status window_value(window *w, cx_json *out, uint64_t *out_offset, uint64_t *out_line,
                              cx_err *err)
{
    int byte;
    CX_TRY(window_peek(w, &byte, err));
    for (;;) {
        size_t used;
        w->b.input = (cx_str){w->data, w->size};
        cx_arena_reset(&w->b.values, (cx_arena_mark){0});
        cx_status status =
            cx_json_parse_prefix(&w->b.parser, (cx_str){w->data + w->at, w->size - w->at}, w->last,
                                 &w->b.values, out, &used, err);
        if (status.code == CX_E_MORE && !w->last) {
            CX_TRY(window_more(w, err));
            continue;
        }
        *out_offset = w->offset + w->at;
        *out_line = w->line;
        CX_TRY(relocate(status, *out_offset, w->line, err));
        window_advance(w, used);
        return CX_SUCCESS;
    }
}

/* Behind `[`: elements up to and with `]`.  In an array file the first may be a header. */
static cx_status load_elements(window *w, cx_str *version, bool header_allowed, cx_err *err)
{
    int byte;
    for (bool first = true;; first = false) {
        CX_TRY(window_peek(w, &byte, err));
        if (byte == ']') {
            window_advance(w, 1);
            return CX_SUCCESS;
        }
        if (!first) {
            if (byte != ',')
                return window_expected(w, "',' or ']'", err);
            window_advance(w, 1);
        }
        cx_json value;
        uint64_t offset, line;
        CX_TRY(window_value(w, &value, &offset, &line, err));
        if (first && header_allowed && is_header(&value)) {
            CX_TRY(relocate(take_version(w->lattice, CX_JSON_GET(&value, "schema_version"), version,
                                         err), offset, line, err));
        } else {
            CX_TRY(relocate(cx_lattice_batch_add(&w->b, &value, *version, offset, line, err), 0,
                            line, err));
        }
        if (w->b.drafts.count >= BATCH_NODES)
            CX_TRY(window_flush(w, err));
        CX_TRY(window_peek(w, &byte, err));
        if (byte != ',' && byte != ']')
            return window_expected(w, "',' or ']'", err);
    }
}

static cx_status load_array(cx_lattice *lattice, const source *from,
                            const cx_lattice_options *options, cx_err *err)
{
    window w;
    cx_str version = CX_STR("2.0.0");
    int byte = 0;
    window_init(&w, lattice, from, options);
    w.b.parser.limits.depth--; /* the array itself is the first bracket */
    cx_status status;
    CX_GO(status, window_peek(&w, &byte, err));
    window_advance(&w, 1);
    CX_GO(status, load_elements(&w, &version, true, err));
    CX_GO(status, window_peek(&w, &byte, err));
    if (byte >= 0)
        status = window_expected(&w, "the end of the file", err);
    else
        status = window_flush(&w, err);
done:
    window_done(&w);
    return status;
}

/* What trying an object as a wrapped lattice can end in. */
typedef enum wrapped_end { WRAPPED_DONE, WRAPPED_AGAIN, WRAPPED_IS_LINES } wrapped_end;

typedef struct wrapped {
    cx_str version;      /* to read the nodes with */
    cx_str found;        /* schema_version met, data NULL when none */
    cx_map names;        /* of members met, to refuse repetitions */
    bool has_nodes, has_node_id;
} wrapped;

static cx_status note_name(window *w, wrapped *all, const cx_json *name, uint64_t offset,
                           uint64_t line, cx_err *err)
{
    cx_str text = cx_arena_copy_str(&w->lattice->text, cx_json_text(name));
    uint64_t *slot;
    bool is_new;
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_map_put(&all->names, text, &slot, &is_new, err));
    if (is_new)
        return CX_SUCCESS;
    text = shortened(text, 60);
    return relocate(cx_fail_at(err, CX_E_FORMAT, "U_DUPKEY", 0,
                               "found the name '%.*s' twice in one object, expected once",
                               (int)text.size, text.data), offset, line, err);
}

/* One member of the outer object; nodes are read as they come. */
static cx_status load_member(window *w, wrapped *all, cx_err *err)
{
    cx_json name, value;
    uint64_t offset, line;
    int byte;
    CX_TRY(window_peek(w, &byte, err));
    if (byte != '"')
        return window_expected(w, "a member name", err);
    CX_TRY(window_value(w, &name, &offset, &line, err));
    CX_TRY(note_name(w, all, &name, offset, line, err));
    bool is_nodes = cx_str_is(cx_json_text(&name), "nodes");
    bool is_version = cx_str_is(cx_json_text(&name), "schema_version");
    all->has_node_id |= cx_str_is(cx_json_text(&name), "node_id");
    CX_TRY(window_peek(w, &byte, err));
    if (byte != ':')
        return window_expected(w, "':'", err);
    window_advance(w, 1);
    CX_TRY(window_peek(w, &byte, err));
    if (is_nodes && byte == '[') {
        all->has_nodes = true;
        window_advance(w, 1);
        w->b.parser.limits.depth--;
        CX_TRY(load_elements(w, &all->version, false, err));
        w->b.parser.limits.depth++;
        return CX_SUCCESS;
    }
    CX_TRY(window_value(w, &value, &offset, &line, err));
    if (is_nodes)
        return relocate(cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", 0,
                                   "found %s as nodes, expected an array",
                                   cx_json_type_name(&value)), offset, line, err);
    if (is_version)
        return relocate(take_version(w->lattice, &value, &all->found, err), offset, line, err);
    return CX_SUCCESS;
}

static cx_status load_object(window *w, wrapped *all, cx_err *err)
{
    int byte;
    CX_TRY(window_peek(w, &byte, err));
    window_advance(w, 1);
    for (bool first = true;; first = false) {
        CX_TRY(window_peek(w, &byte, err));
        if (byte == '}' && first)
            break;
        CX_TRY(load_member(w, all, err));
        if (all->found.data != NULL && !all->has_nodes)
            all->version = all->found;
        CX_TRY(window_peek(w, &byte, err));
        if (byte == '}')
            break;
        if (byte != ',')
            return window_expected(w, "',' or '}'", err);
        window_advance(w, 1);
    }
    window_advance(w, 1);
    CX_TRY(window_peek(w, &byte, err));
    return window_flush(w, err);
}

static cx_status try_wrapped(cx_lattice *lattice, const source *from,
                             const cx_lattice_options *options, cx_str *version, wrapped_end *end,
                             cx_err *err)
{
    window w;
    wrapped all = {.version = *version};
    window_init(&w, lattice, from, options);
    cx_map_init(&all.names, lattice->alloc, lattice->seed);
    w.b.parser.limits.depth--; /* the outer object is the first bracket */
    cx_status status = load_object(&w, &all, err);
    bool more_follows = !cx_failed(status) && w.at < w.size;
    *end = WRAPPED_DONE;
    if (!cx_failed(status) && (more_follows || !all.has_nodes || all.has_node_id)) {
        *end = WRAPPED_IS_LINES;
    } else if (!cx_failed(status) && all.found.data != NULL && !cx_str_eq(all.found, all.version)) {
        *end = WRAPPED_AGAIN; /* schema_version stood behind the nodes */
        *version = all.found;
    }
    cx_map_done(&all.names);
    window_done(&w);
    return status;
}

/* --- choosing the form ---------------------------------------------------------------------------- */

typedef enum form {
    FORM_LINES,
    FORM_ARRAY,
    FORM_WRAPPED,
    FORM_OBJECT_OR_LINES, /* a first line longer than we look: could be either */
    FORM_OBJECT,          /* an object that spans lines */
    FORM_NO_MEMORY
} form;

/* Forgets what a first attempt read; texts stay in the arena until close. */
static void forget_nodes(cx_lattice *lattice)
{
    lattice->nodes.count = lattice->parents.count = lattice->odd.count = 0;
    lattice->complaints.count = lattice->pending.count = 0;
    lattice->deltas.count = lattice->seals.count = lattice->agents.count = 0;
    cx_alloc_free(lattice->alloc, lattice->ids.slots, lattice->ids.size * sizeof(uint64_t));
    lattice->ids = (node_index){0};
    cx_map_done(&lattice->agent_index);
    cx_map_init(&lattice->agent_index, lattice->alloc, lattice->seed);
}

/* One object that spans lines and is no wrapped lattice: one node, or a header and nothing else. */
static cx_status load_single(cx_lattice *lattice, const source *from,
                             const cx_lattice_options *options, cx_err *err)
{
    window w;
    cx_json value;
    cx_str version = CX_STR("2.0.0");
    uint64_t offset = 0, line = 0;
    int byte;
    window_init(&w, lattice, from, options);
    cx_status status;
    CX_GO(status, window_value(&w, &value, &offset, &line, err));
    if (is_header(&value))
        status = take_version(lattice, CX_JSON_GET(&value, "schema_version"), &version, err);
    else
        status = cx_lattice_batch_add(&w.b, &value, version, offset, line, err);
    CX_GO(status, relocate(status, 0, line, err));
    CX_GO(status, window_flush(&w, err));
    CX_GO(status, window_peek(&w, &byte, err));
    if (byte >= 0)
        status = window_expected(&w, "the end of the file", err);
done:
    window_done(&w);
    return status;
}

/* What is known of a file from its start. */
typedef struct first_look {
    cx_str line;       /* the first that is not blank, as much of it as was read */
    bool whole;        /* all of it */
    bool more_follows; /* something that is not blank was seen behind it */
    bool is_all;       /* nothing is left unread */
} first_look;

static form form_of_line(cx_lattice *lattice, const first_look *look)
{
    cx_json value;
    cx_arena arena;
    cx_json_parser parser;
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_json_parser_init(&parser, lattice->alloc, &lattice->limits);
    cx_status status = cx_json_parse(&parser, look->line, &arena, &value, NULL);
    form found = FORM_LINES;
    if (status.code == CX_E_MORE)
        found = look->whole ? FORM_OBJECT : FORM_OBJECT_OR_LINES;
    else if (!cx_failed(status) && !look->more_follows && CX_JSON_GET(&value, "nodes") != NULL &&
             CX_JSON_GET(&value, "node_id") == NULL)
        found = look->is_all ? FORM_WRAPPED : FORM_OBJECT_OR_LINES;
    cx_json_parser_done(&parser);
    cx_arena_done(&arena);
    return status.code == CX_E_NOMEM ? FORM_NO_MEMORY : found;
}

static form form_of_text(cx_lattice *lattice, cx_str text, bool is_all)
{
    size_t start = 0;
    while (start < text.size && is_blank_char(text.data[start]))
        start++;
    cx_str rest = {text.data + start, text.size - start};
    if (rest.size == 0 || (rest.data[0] != '{' && rest.data[0] != '['))
        return FORM_LINES;
    if (rest.data[0] == '[')
        return FORM_ARRAY;
    const char *newline = memchr(rest.data, '\n', rest.size);
    first_look look = {
        .line = {rest.data, newline == NULL ? rest.size : (size_t)(newline - rest.data)},
        .whole = newline != NULL || is_all,
        .is_all = is_all};
    for (size_t i = look.line.size; i < rest.size && !look.more_follows; i++)
        look.more_follows = !is_blank_char(rest.data[i]);
    return form_of_line(lattice, &look);
}

static bool all_blank(cx_str text)
{
    size_t at = 0;
    while (at < text.size && is_blank_char(text.data[at]))
        at++;
    return at == text.size;
}

/* Looks at the first BLOCK_BYTES that are not all blank. */
static cx_status find_form(cx_lattice *lattice, const source *from, form *out, cx_err *err)
{
    cx_buf head;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&head, lattice->alloc);
    for (uint64_t offset = 0;;) {
        cx_str text;
        if (from->file == CX_FILE_NONE) {
            size_t left = from->memory.size - (size_t)offset;
            text = (cx_str){(const char *)from->memory.data, left < BLOCK_BYTES ? left : BLOCK_BYTES};
            text.data += text.size == 0 ? 0 : offset;
        } else {
            size_t got = 0;
            uint8_t *room = cx_buf_reserve(&head, BLOCK_BYTES);
            CX_GO(status, room == NULL ? cx_fail_nomem(err)
                                       : source_read(from, offset, room, BLOCK_BYTES, &got, err));
            text = cx_str_from((const char *)room, got);
        }
        offset += text.size;
        bool is_all = text.size < BLOCK_BYTES || offset == from->total;
        if (is_all || !all_blank(text)) {
            *out = form_of_text(lattice, text, is_all);
            break;
        }
    }
done:
    cx_buf_done(&head);
    return status;
}

/*
 * An object that may be wrapped nodes, one node, or the first of many lines.  What a node or a
 * header calls `nodes` or `schema_version` may be of any shape (§1.1), but which of them it is only
 * its end tells: a complaint about shapes counts when the object is nothing else.
 */
static cx_status load_object_file(cx_lattice *lattice, const source *from, form found,
                                  const cx_lattice_options *options, cx_err *err)
{
    cx_err wrapped_err = {0}, other_err = {0};
    cx_str version = CX_STR("2.0.0");
    wrapped_end end = WRAPPED_DONE;
    cx_status status = try_wrapped(lattice, from, options, &version, &end, &wrapped_err);
    if (!cx_failed(status) && end == WRAPPED_AGAIN) {
        forget_nodes(lattice);
        status = try_wrapped(lattice, from, options, &version, &end, &wrapped_err);
    }
    bool misshapen = cx_failed(status) && found != FORM_WRAPPED && wrapped_err.tag != NULL &&
                     strcmp(wrapped_err.tag, "U_SHAPE") == 0;
    if (misshapen || (!cx_failed(status) && end == WRAPPED_IS_LINES)) {
        forget_nodes(lattice);
        cx_status other = found == FORM_OBJECT_OR_LINES
                              ? load_lines(lattice, from, options, &other_err)
                              : load_single(lattice, from, options, &other_err);
        bool counts = !misshapen || other.code == CX_E_NOMEM ||
                      (!cx_failed(other) && lattice->nodes.count != 0);
        if (counts) {
            status = other;
            wrapped_err = other_err;
        }
    }
    if (cx_failed(status) && err != NULL)
        *err = wrapped_err;
    return status;
}

static cx_status load_by_form(cx_lattice *lattice, const source *from,
                              const cx_lattice_options *options, cx_err *err)
{
    form found = FORM_LINES;
    CX_TRY(find_form(lattice, from, &found, err));
    if (found == FORM_ARRAY)
        return load_array(lattice, from, options, err);
    if (found == FORM_LINES)
        return load_lines(lattice, from, options, err);
    if (found == FORM_NO_MEMORY)
        return cx_fail_nomem(err);
    return load_object_file(lattice, from, found, options, err);
}

/* --- opening and closing ----------------------------------------------------------------------------- */

static cx_status new_lattice(const cx_io *io, const cx_lattice_options *options, cx_lattice **out,
                             cx_err *err)
{
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    cx_lattice *lattice = cx_alloc_zeroed(alloc, 1, sizeof *lattice);
    if (lattice == NULL)
        return cx_fail_nomem(err);
    lattice->alloc = alloc;
    lattice->io = io;
    lattice->seed = cx_io_seed(io);
    lattice->limits = (cx_json_limits){
        .depth = options->max_depth != 0 ? options->max_depth : 1024,
        .integer_digits = options->max_integer_digits != 0 ? options->max_integer_digits : 4300};
    lattice->max_nodes = options->max_nodes != 0 && options->max_nodes < CX_LATTICE_NODES_MAX
                             ? options->max_nodes
                             : CX_LATTICE_NODES_MAX;
    lattice->keep_deltas = options->keep_deltas;
    lattice->keep_seals = options->keep_seals;
    cx_arena_init(&lattice->text, alloc, 0);
    cx_buf_init(&lattice->slurped, alloc);
    cx_map_init(&lattice->agent_index, alloc, lattice->seed);
    *out = lattice;
    return CX_SUCCESS;
}

void cx_lattice_close(cx_lattice *lattice)
{
    if (lattice == NULL)
        return;
    const cx_alloc *alloc = lattice->alloc;
    size_t nodes = (lattice->nodes.count + 1) * sizeof(uint32_t);
    cx_alloc_free(alloc, lattice->children, (lattice->edge_count + 1) * sizeof(uint32_t));
    cx_alloc_free(alloc, lattice->first_child, nodes);
    cx_alloc_free(alloc, lattice->branch_nodes, nodes);
    cx_alloc_free(alloc, lattice->rank, nodes);
    cx_alloc_free(alloc, lattice->order, nodes);
    cx_alloc_free(alloc, lattice->position, nodes);
    cx_alloc_free(alloc, lattice->ids.slots, lattice->ids.size * sizeof(uint64_t));
    cx_alloc_free(alloc, lattice->hashes.slots, lattice->hashes.size * sizeof(uint64_t));
    cx_map_done(&lattice->agent_index);
    cx_vec_done(&lattice->nodes, alloc);
    cx_vec_done(&lattice->agents, alloc);
    cx_vec_done(&lattice->parents, alloc);
    cx_vec_done(&lattice->odd, alloc);
    cx_vec_done(&lattice->complaints, alloc);
    cx_vec_done(&lattice->missing, alloc);
    cx_vec_done(&lattice->pending, alloc);
    cx_vec_done(&lattice->deltas, alloc);
    cx_vec_done(&lattice->seals, alloc);
    cx_arena_done(&lattice->text);
    cx_buf_done(&lattice->slurped);
    cx_alloc_free(alloc, lattice->path, lattice->path_size);
    cx_alloc_free(alloc, lattice, sizeof *lattice);
}

static cx_status load_and_link(cx_lattice *lattice, const source *from,
                               const cx_lattice_options *options, cx_err *err)
{
    CX_TRY(load_by_form(lattice, from, options, err));
    if (lattice->nodes.count == 0)
        return cx_fail_at(err, CX_E_FORMAT, "U_EMPTY", 0,
                          "found no node, expected at least one: nothing was checked");
    return cx_lattice_link(lattice, err);
}

/* Streams cannot be read twice, nor opened twice: they are kept whole. */
static cx_status slurp(cx_lattice *lattice, cx_file file, source *from, cx_err *err)
{
    cx_buf *buf = &lattice->slurped;
    for (size_t got = 0, wanted = 0; got == wanted;) {
        uint8_t *room = cx_buf_reserve(buf, BLOCK_BYTES);
        if (room == NULL)
            return cx_fail_nomem(err);
        wanted = buf->capacity - buf->size;
        cx_status status = cx_io_read_some(from->io, file, from->name, room, wanted, &got, err);
        if (cx_failed(status) && err != NULL)
            err->tag = "U_IO";
        CX_TRY(status);
        cx_buf_advance(buf, got);
        if (from->limit != 0 && buf->size > from->limit)
            return fail_limit(from, err);
    }
    from->memory = lattice->memory = cx_buf_bytes(buf);
    from->total = from->memory.size;
    return CX_SUCCESS;
}

static cx_status remember_path(cx_lattice *lattice, const char *path, cx_err *err)
{
    lattice->path_size = strlen(path) + 1;
    lattice->path = cx_alloc_new(lattice->alloc, lattice->path_size);
    if (lattice->path == NULL)
        return cx_fail_nomem(err);
    memcpy(lattice->path, path, lattice->path_size);
    return CX_SUCCESS;
}

static cx_status load_path(cx_lattice *lattice, const cx_io *io, const char *path,
                           const cx_lattice_options *options, cx_err *err)
{
    source from = {.io = io, .file = CX_FILE_NONE, .name = path, .limit = options->max_bytes};
    cx_file file = CX_FILE_STDIN;
    bool regular = false, is_stdin = strcmp(path, "-") == 0;
    int failed = is_stdin ? 0 : io->open(io, path, CX_IO_READ, &file);
    if (failed != 0)
        return fail_io(err, -failed, path);
    cx_status status = CX_SUCCESS;
    if (!is_stdin && (failed = io->size(io, file, &from.total, &regular)) != 0)
        status = fail_io(err, -failed, path);
    else if (regular)
        status = remember_path(lattice, path, err);
    else
        status = slurp(lattice, file, &from, err);
    if (regular)
        from.file = file;
    if (!cx_failed(status))
        status = load_and_link(lattice, &from, options, err);
    if (!is_stdin)
        (void)io->close(io, file);
    return status;
}

cx_status cx_lattice_open_io(const cx_io *io, const char *path, const cx_lattice_options *options,
                             cx_lattice **out, cx_err *err)
{
    static const cx_lattice_options plain = CX_LATTICE_OPTIONS_INIT;
    cx_lattice *lattice;
    if (options == NULL)
        options = &plain;
    CX_TRY(new_lattice(io, options, &lattice, err));
    cx_status status = load_path(lattice, io, path, options, err);
    if (cx_failed(status))
        cx_lattice_close(lattice);
    else
        *out = lattice;
    return status;
}

cx_status cx_lattice_open(const char *path, const cx_lattice_options *options, cx_lattice **out,
                          cx_err *err)
{
    return cx_lattice_open_io(cx_io_system(), path, options, out, err);
}

cx_status cx_lattice_open_bytes(cx_bytes bytes, const cx_lattice_options *options, cx_lattice **out,
                                cx_err *err)
{
    static const cx_lattice_options plain = CX_LATTICE_OPTIONS_INIT;
    cx_lattice *lattice;
    if (options == NULL)
        options = &plain;
    CX_TRY(new_lattice(cx_io_system(), options, &lattice, err));
    lattice->memory = bytes;
    source from = {.io = lattice->io,
                   .file = CX_FILE_NONE,
                   .name = "memory",
                   .memory = bytes,
                   .total = bytes.size,
                   .limit = options->max_bytes};
    cx_status status = CX_SUCCESS;
    if (from.limit != 0 && bytes.size > from.limit)
        status = fail_limit(&from, err);
    else
        status = load_and_link(lattice, &from, options, err);
    if (cx_failed(status))
        cx_lattice_close(lattice);
    else
        *out = lattice;
    return status;
}

/* --- the source of one node ---------------------------------------------------------------------------- */

/* Grows `buf` until one value from `offset` on is complete in it, then parses that. */
static cx_status read_value(const cx_lattice *lattice, cx_file file, uint64_t offset,
                            cx_json_parser *parser, cx_arena *arena, cx_json *out, cx_err *err)
{
    source from = {.io = lattice->io, .file = file, .name = lattice->path};
    size_t size = 16384;
    for (;; size *= 4) {
        size_t got, used;
        char *data = CX_ARENA_ARRAY(arena, char, size);
        if (data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(source_read(&from, offset, (uint8_t *)data, size, &got, err));
        bool last = got < size;
        cx_status status =
            cx_json_parse_prefix(parser, (cx_str){data, got}, last, arena, out, &used, err);
        if (status.code != CX_E_MORE || last)
            return relocate(status, offset, 1, err);
    }
}

cx_status cx_lattice_source(const cx_lattice *lattice, cx_node n, cx_arena *arena, cx_json *out,
                            cx_err *err)
{
    const node *item = node_at(lattice, n);
    cx_json_parser parser;
    cx_json_parser_init(&parser, lattice->alloc, &lattice->limits);
    cx_status status;
    if (lattice->path == NULL) {
        size_t used, at = (size_t)item->offset;
        cx_str text = {(const char *)lattice->memory.data + at, lattice->memory.size - at};
        status = cx_json_parse_prefix(&parser, text, true, arena, out, &used, err);
    } else {
        cx_file file;
        int failed = lattice->io->open(lattice->io, lattice->path, CX_IO_READ, &file);
        if (failed != 0) {
            status = fail_io(err, -failed, lattice->path);
        } else {
            status = read_value(lattice, file, item->offset, &parser, arena, out, err);
            (void)lattice->io->close(lattice->io, file);
        }
    }
    cx_json_parser_done(&parser);
    if (!cx_failed(status) && (item->flags & NODE_NO_ID) == 0 &&
        !cx_str_eq(CX_JSON_GET_STR(out, "node_id"), node_id(item)))
        status = cx_fail(err, CX_E_CONFLICT, "%s changed since it was read",
                         lattice->path == NULL ? "the input" : lattice->path);
    return status;
}
