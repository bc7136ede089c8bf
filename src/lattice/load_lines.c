/*
 * load_lines.c - JSON lines, read by several threads (§1.1).
 *
 * The input is cut into blocks of whole lines; each reader parses and hashes a block on its own,
 * and takes its turn to be absorbed.
 *
 * Invariants:
 *   I1  blocks are absorbed in file order, so node numbers and the first error do not depend on
 *       the number of readers;
 *   I2  values of a batch borrow from its block, which stays untouched until the batch is absorbed;
 *   I3  after the first error nothing more is absorbed.
 */
#include "lattice/load.h"

#include "base/api.h"

#define THREADS_MAX 8u
/* A block and what is made of it stay in the cache of a core until they are absorbed. */
#define LINES_BYTES ((size_t)1 << 18)

static cx_str skip_blank(cx_str text)
{
    while (text.size != 0 &&
           (text.data[0] == ' ' || text.data[0] == '\t' || text.data[0] == '\r')) {
        text.data++;
        text.size--;
    }
    return text;
}

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
    bool stopped;    /* I3 */
    bool looking;    /* a block is read for the first object: others wait */
    bool first_done; /* the first object was looked at: the version is known */
    cx_status status;
    cx_err err;
} line_reader;

/* Next block from memory: a slice, up to the first line end after LINES_BYTES. */
static bool slice_block(line_reader *reader, block *out)
{
    size_t at = (size_t)reader->offset, size = reader->from->memory.size;
    if (at >= size)
        return false;
    const char *data = (const char *)reader->from->memory.data;
    size_t end = size - at > LINES_BYTES ? at + LINES_BYTES : size;
    if (end < size) {
        const char *newline = memchr(data + end, '\n', size - end);
        end = newline == NULL ? size : (size_t)(newline - data) + 1;
    }
    *out = (block){.data = data + at, .size = end - at, .offset = reader->offset};
    reader->offset = end;
    return true;
}

/* Next block from the file into `buf`: carry first, then more until it holds a line end. */
static cx_status read_block(line_reader *reader, cx_buf *buf, block *out, bool *out_any,
                            cx_err *err)
{
    uint64_t start = reader->offset - reader->carry.size;
    cx_buf_clear(buf);
    cx_buf_add(buf, reader->carry.data, reader->carry.size);
    CX_TRY(cx_buf_check(buf, err));
    cx_buf_clear(&reader->carry);
    size_t keep = 0;
    for (size_t step = LINES_BYTES; keep == 0; step *= 2) {
        uint8_t *room = cx_buf_reserve(buf, step);
        size_t got;
        if (room == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_lattice_source_read(reader->from, reader->offset, room, step, &got, err));
        cx_buf_advance(buf, got);
        reader->offset += got;
        if (got < step) {
            reader->exhausted = true;
            keep = buf->size;
            break;
        }
        const uint8_t *newline = cx_bytes_last(room, '\n', got);
        if (newline != NULL)
            keep = (size_t)(newline - buf->data) + 1;
    }
    cx_buf_add(&reader->carry, buf->data + keep, buf->size - keep);
    CX_TRY(cx_buf_check(&reader->carry, err));
    *out_any = keep != 0;
    *out = (block){.data = (const char *)buf->data, .size = keep, .offset = start};
    return CX_SUCCESS;
}

static cx_status next_block(line_reader *reader, cx_buf *buf, block *out, bool *out_any,
                            cx_err *err)
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

/* Line numbers are relative to the block: *out_lines says how many it has. */
static cx_status parse_lines(line_reader *reader, batch *b, block *from, uint64_t *out_lines,
                             cx_err *err)
{
    const char *at = from->data, *end = from->data + from->size;
    uint64_t line = 1;
    b->input = (cx_str){from->data, from->size};
    const char *last_lf = cx_lattice_scan_limit(b->input);
    for (; at < end; line++) {
        if (last_lf != NULL && at < last_lf && !from->looking) {
            const char *next;
            CX_TRY(cx_lattice_batch_scan(b, at, last_lf, reader->version,
                                         from->offset + (uint64_t)(at - from->data), line, &next,
                                         err));
            if (next != NULL) {
                at = next;
                continue;
            }
        }
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        cx_str text = {at, (size_t)(stop - at)};
        uint64_t offset = from->offset + (uint64_t)(at - from->data);
        at = stop + 1;
        if (skip_blank(text).size == 0)
            continue;
        cx_json value;
        cx_arena_reset(&b->values, (cx_arena_mark){0});
        CX_TRY(cx_lattice_relocate(cx_json_parse(&b->parser, text, &b->values, &value, err), offset,
                                   line, err));
        if (from->looking) {
            from->looking = false;
            if (cx_lattice_is_header(&value)) {
                CX_TRY(cx_lattice_relocate(
                    cx_lattice_read_version(reader->lattice, CX_JSON_GET(&value, "schema_version"),
                                            &reader->version, err),
                    offset, line, err));
                continue;
            }
        }
        CX_TRY(cx_lattice_relocate(
            cx_lattice_batch_add(b, &value, reader->version, offset, line, err), 0, line, err));
    }
    *out_lines = line - 1;
    return CX_SUCCESS;
}

/* The first block tells how many nodes to expect: growing the array step by step costs page faults.
 */
static void expect_nodes(line_reader *reader, const batch *b, const block *from)
{
    uint64_t done = from->offset + from->size, total = reader->from->total;
    if (from->number != 0 || done == 0 || total <= done)
        return;
    double expected = (double)b->drafts.count * ((double)total / (double)done) * 1.02;
    cx_lattice *lattice = reader->lattice;
    if (expected >= (double)lattice->max_nodes)
        return;
    /* Only a guess: when there is no room for it, growing will do or say so. */
    (void)cx_vec_reserve(&lattice->nodes, (size_t)expected, lattice->alloc);
    cx_lattice_index_expect(&lattice->ids, (size_t)expected, lattice->alloc);
}

/* With the lock held and in turn: what was parsed joins the lattice. */
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
    cx_lattice_progress(reader->options, from->offset + from->size, reader->from->total);
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
        /* The header, if any, is read: others may start.  Blank lines alone: the next block looks.
         */
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
    cx_lattice_batch_init(&b, reader->lattice->alloc, reader->lattice->seed,
                          &reader->lattice->limits);
    b.keep_deltas = reader->lattice->keep_deltas;
    b.keep_seals = reader->lattice->keep_seals;
    for (bool more = true; more;) {
        block from = {0}; /* set where next_block says true */
        cx_err err = {0};
        cx_lock_enter(&reader->lock);
        while (reader->looking && !reader->stopped)
            cx_lock_wait(&reader->lock);
        cx_status status =
            reader->stopped ? CX_SUCCESS : next_block(reader, &buf, &from, &more, &err);
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

cx_status cx_lattice_load_lines(cx_lattice *lattice, const source *from,
                                const cx_lattice_options *options, cx_err *err)
{
    line_reader reader = {
        .lattice = lattice, .from = from, .options = options, .version = CX_STR("2.0.0")};
    cx_buf_init(&reader.carry, lattice->alloc);
    cx_lock_init(&reader.lock);
    unsigned threads = lattice->threads;
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
