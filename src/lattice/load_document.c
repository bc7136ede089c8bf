/*
 * load_document.c - one JSON document: an array of nodes, an object around it, or a single node
 * (§1.1).
 *
 * A window slides over the input.  An element that ends beyond it is tried again with more
 * (CX_E_MORE), so nothing is held but the element being read.  Values of a batch borrow from the
 * window, which moves only after the batch is absorbed (I2 of load_lines.c).
 */
#include "lattice/load.h"

#define BATCH_NODES 4096u

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
    bool last;       /* nothing after the window */
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
    cx_lattice_progress(w->options, w->offset + w->at, w->from->total);
    return CX_SUCCESS;
}

/* Drops what has been read and reads at least as much again. */
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
    CX_TRY(cx_lattice_source_read(w->from, w->offset + rest, room, step, &got, err));
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
        CX_TRY(cx_lattice_relocate(status, *out_offset, w->line, err));
        window_advance(w, used);
        return CX_SUCCESS;
    }
}

/* After `[`: elements up to and with `]`.  In an array file the first may be a header. */
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
        if (first && header_allowed && cx_lattice_is_header(&value)) {
            CX_TRY(cx_lattice_relocate(
                cx_lattice_read_version(w->lattice, CX_JSON_GET(&value, "schema_version"), version,
                                        err),
                offset, line, err));
        } else {
            CX_TRY(cx_lattice_relocate(
                cx_lattice_batch_add(&w->b, &value, *version, offset, line, err), 0, line, err));
        }
        if (w->b.drafts.count >= BATCH_NODES)
            CX_TRY(window_flush(w, err));
        CX_TRY(window_peek(w, &byte, err));
        if (byte != ',' && byte != ']')
            return window_expected(w, "',' or ']'", err);
    }
}

cx_status cx_lattice_load_array(cx_lattice *lattice, const source *from,
                                const cx_lattice_options *options, cx_err *err)
{
    window w;
    cx_str version = CX_STR("2.0.0");
    int byte = 0;
    window_init(&w, lattice, from, options);
    w.b.parser.limits.depth--; /* the array itself is the first bracket */
    cx_status status;
    CX_TRY_GOTO(status, window_peek(&w, &byte, err));
    window_advance(&w, 1);
    CX_TRY_GOTO(status, load_elements(&w, &version, true, err));
    CX_TRY_GOTO(status, window_peek(&w, &byte, err));
    if (byte >= 0)
        status = window_expected(&w, "the end of the file", err);
    else
        status = window_flush(&w, err);
done:
    window_done(&w);
    return status;
}

typedef struct wrapped {
    cx_str version; /* to read the nodes with */
    cx_str found;   /* schema_version met, data NULL when none */
    cx_map names;   /* of members met, to refuse repetitions */
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
    return cx_lattice_relocate(
        cx_fail_at(err, CX_E_FORMAT, "U_DUPKEY", 0,
                   "found the name '%.*s' twice in one object, expected once", (int)text.size,
                   text.data),
        offset, line, err);
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
        return cx_lattice_relocate(cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", 0,
                                              "found %s as nodes, expected an array",
                                              cx_json_type_name(&value)),
                                   offset, line, err);
    if (is_version)
        return cx_lattice_relocate(cx_lattice_read_version(w->lattice, &value, &all->found, err),
                                   offset, line, err);
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

cx_status cx_lattice_try_wrapped(cx_lattice *lattice, const source *from,
                                 const cx_lattice_options *options, cx_str *version,
                                 wrapped_end *end, cx_err *err)
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
        *end = WRAPPED_AGAIN; /* schema_version stood after the nodes */
        *version = all.found;
    }
    cx_map_done(&all.names);
    window_done(&w);
    return status;
}

/* One object that spans lines and is no wrapped lattice: one node, or a header and nothing else. */
cx_status cx_lattice_load_single(cx_lattice *lattice, const source *from,
                                 const cx_lattice_options *options, cx_err *err)
{
    window w;
    cx_json value;
    cx_str version = CX_STR("2.0.0");
    uint64_t offset = 0, line = 0;
    int byte;
    window_init(&w, lattice, from, options);
    cx_status status;
    CX_TRY_GOTO(status, window_value(&w, &value, &offset, &line, err));
    if (cx_lattice_is_header(&value))
        status =
            cx_lattice_read_version(lattice, CX_JSON_GET(&value, "schema_version"), &version, err);
    else
        status = cx_lattice_batch_add(&w.b, &value, version, offset, line, err);
    CX_TRY_GOTO(status, cx_lattice_relocate(status, 0, line, err));
    CX_TRY_GOTO(status, window_flush(&w, err));
    CX_TRY_GOTO(status, window_peek(&w, &byte, err));
    if (byte >= 0)
        status = window_expected(&w, "the end of the file", err);
done:
    window_done(&w);
    return status;
}
