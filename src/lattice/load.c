/*
 * load.c - opening a lattice: what form a file has, and who reads it (§1).
 *
 *   lines     one object a line                                         load_lines.c
 *   array     [ node, node, ... ]                                       load_document.c
 *   wrapped   { "schema_version": ..., "nodes": [ ... ] }               load_document.c
 *
 * A file that is one single JSON value is that value, otherwise it is lines.  `[` can only be an
 * array.  After `{` the first line decides: complete and followed by more is lines; anything else
 * is tried as a wrapped object and falls back to what its end shows it to be.
 */
#include "lattice/load.h"

#include <errno.h>

#include "base/api.h"

/* --- what the readers share ------------------------------------------------------------------- */

cx_status cx_lattice_fail_io(cx_err *err, int code, const char *name)
{
    cx_status status = cx_fail_os(err, code, "cannot read %s", name);
    if (err != NULL)
        err->tag = "U_IO";
    return status;
}

cx_status cx_lattice_fail_limit(const source *from, cx_err *err)
{
    return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", from->limit,
                      "found more than the limit of %llu bytes", (unsigned long long)from->limit);
}

/* Up to `size` bytes at `offset`; *out_size < size only at the end. */
cx_status cx_lattice_source_read(const source *from, uint64_t offset, uint8_t *data, size_t size,
                                 size_t *out_size, cx_err *err)
{
    size_t done = 0;
    while (done < size) {
        int64_t got =
            from->io->pread(from->io, from->file, data + done, size - done, offset + done);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return cx_lattice_fail_io(err, (int)-got, from->name);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    if (from->limit != 0 && offset + done > from->limit)
        return cx_lattice_fail_limit(from, err);
    *out_size = done;
    return CX_SUCCESS;
}

/* Turns positions inside a parsed piece into positions in the file. */
cx_status cx_lattice_relocate(cx_status status, uint64_t offset, uint64_t line, cx_err *err)
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

/* §1.1: a first object with none of these is a header. */
bool cx_lattice_is_header(const cx_json *value)
{
    static const char *const names[] = {"node_id", "agent_id", "seq", "event", "hash"};
    if (value->type != CX_JSON_OBJECT)
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_json_get(value, cx_str_z(names[i])) != NULL)
            return false;
    return true;
}

cx_status cx_lattice_read_version(cx_lattice *lattice, const cx_json *value, cx_str *version,
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

void cx_lattice_progress(const cx_lattice_options *options, uint64_t done, uint64_t total)
{
    if (options->progress != NULL)
        options->progress(options->progress_arg, done, total);
}

/* --- choosing the form ------------------------------------------------------------------------ */

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

/* What is known of a file from its start. */
typedef struct first_window {
    cx_str line;       /* the first that is not blank, as much of it as was read */
    bool whole;        /* all of it */
    bool more_follows; /* something that is not blank was seen after it */
    bool is_all;       /* nothing is left unread */
} first_window;

static form form_of_line(cx_lattice *lattice, const first_window *look)
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
    first_window look = {
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
            text =
                (cx_str){(const char *)from->memory.data, left < BLOCK_BYTES ? left : BLOCK_BYTES};
            text.data += text.size == 0 ? 0 : offset;
        } else {
            size_t got = 0;
            uint8_t *room = cx_buf_reserve(&head, BLOCK_BYTES);
            CX_TRY_GOTO(status, room == NULL ? cx_fail_nomem(err)
                                             : cx_lattice_source_read(from, offset, room,
                                                                      BLOCK_BYTES, &got, err));
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
    cx_status status = cx_lattice_try_wrapped(lattice, from, options, &version, &end, &wrapped_err);
    if (!cx_failed(status) && end == WRAPPED_AGAIN) {
        forget_nodes(lattice);
        status = cx_lattice_try_wrapped(lattice, from, options, &version, &end, &wrapped_err);
    }
    bool misshapen = cx_failed(status) && found != FORM_WRAPPED && wrapped_err.tag != NULL &&
                     strcmp(wrapped_err.tag, "U_SHAPE") == 0;
    if (misshapen || (!cx_failed(status) && end == WRAPPED_IS_LINES)) {
        forget_nodes(lattice);
        cx_status other = found == FORM_OBJECT_OR_LINES
                              ? cx_lattice_load_lines(lattice, from, options, &other_err)
                              : cx_lattice_load_single(lattice, from, options, &other_err);
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
        return cx_lattice_load_array(lattice, from, options, err);
    if (found == FORM_LINES)
        return cx_lattice_load_lines(lattice, from, options, err);
    if (found == FORM_NO_MEMORY)
        return cx_fail_nomem(err);
    return load_object_file(lattice, from, found, options, err);
}

/* --- opening and closing ---------------------------------------------------------------------- */

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
    lattice->threads = options->threads != 0 ? options->threads : cx_thread_cores();
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
static cx_status read_stream(cx_lattice *lattice, cx_file file, source *from, cx_err *err)
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
            return cx_lattice_fail_limit(from, err);
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
        return cx_lattice_fail_io(err, -failed, path);
    cx_status status = CX_SUCCESS;
    if (!is_stdin && (failed = io->size(io, file, &from.total, &regular)) != 0)
        status = cx_lattice_fail_io(err, -failed, path);
    else if (regular)
        status = remember_path(lattice, path, err);
    else
        status = read_stream(lattice, file, &from, err);
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
        status = cx_lattice_fail_limit(&from, err);
    else
        status = load_and_link(lattice, &from, options, err);
    if (cx_failed(status))
        cx_lattice_close(lattice);
    else
        *out = lattice;
    return status;
}

/* --- the source of one node ------------------------------------------------------------------- */

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
        CX_TRY(cx_lattice_source_read(&from, offset, (uint8_t *)data, size, &got, err));
        bool last = got < size;
        cx_status status =
            cx_json_parse_prefix(parser, (cx_str){data, got}, last, arena, out, &used, err);
        if (status.code != CX_E_MORE || last)
            return cx_lattice_relocate(status, offset, 1, err);
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
            status = cx_lattice_fail_io(err, -failed, lattice->path);
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
