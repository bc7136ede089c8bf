/*
 * session_files.c - finds the files of a session, and imports them together.
 */
#include "stores/session_files.h"

#include <stdlib.h>

#include "base/api.h"
#include "stores/session_place.h"

#define ENDING ".jsonl"

/* What separates the documents of a group in the line that they become. */
#define MESSAGE_BEGIN "{\"info\":"
#define MESSAGE_PARTS ",\"parts\":["
#define MESSAGE_END "]}\n"

typedef struct session_choice {
    const cx_recorded_session *sessions;
    size_t count;
    cx_str name;
    const cx_recorded_session **files; /* the session itself first */
    size_t file_count;
    cx_map newest; /* path -> generation, once it was asked for often */
    unsigned asked;
    bool mapped;
} session_choice;

/* So many paths are looked for one by one before a map is made of all. */
#define ASKED_ONE_BY_ONE 8

cx_str cx_session_stem(cx_str path)
{
    cx_session_path read;
    cx_session_path_read(path, &read);
    return read.stem;
}

static bool is_id(const uint8_t *bytes, cx_str name)
{
    char id[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(bytes, CX_SESSION_ID_SIZE), id);
    return cx_str_eq(cx_str_from(id, sizeof id), name);
}

static bool has_id(const cx_recorded_session *session, cx_str name)
{
    uint8_t group[CX_SESSION_ID_SIZE];
    cx_session_path path;
    if (is_id(session->id, name))
        return true;
    cx_session_path_read(session->path, &path);
    if (path.group.size == 0 || path.shape == CX_SESSION_PART)
        return false;
    cx_session_id(path.group, CX_SESSION_OF_GROUP, group);
    return is_id(group, name);
}

static bool are_one_session(const cx_recorded_session *a, const cx_recorded_session *b)
{
    cx_session_path left, right;
    cx_session_path_read(a->path, &left);
    cx_session_path_read(b->path, &right);
    return left.shape == right.shape && left.shape != CX_SESSION_PART && left.group.size != 0 &&
           cx_str_eq(left.group, right.group);
}

static bool map_newest(session_choice *c)
{
    if (cx_failed(cx_map_reserve(&c->newest, c->count, NULL)))
        return false;
    for (size_t i = 0; i < c->count; i++) {
        uint64_t *value;
        bool fresh;
        if (cx_failed(cx_map_put(&c->newest, c->sessions[i].path, &value, &fresh, NULL)))
            return false;
        if (fresh || c->sessions[i].generation > *value)
            *value = c->sessions[i].generation;
    }
    return true;
}

/* Of several generations under one path the newest counts. */
static bool is_newest(session_choice *c, const cx_recorded_session *session)
{
    if (!c->mapped && c->asked++ >= ASKED_ONE_BY_ONE)
        c->mapped = map_newest(c);
    const uint64_t *newest = c->mapped ? cx_map_find(&c->newest, session->path) : NULL;
    if (newest != NULL)
        return session->generation >= *newest;
    for (size_t i = 0; i < c->count; i++)
        if (cx_str_eq(c->sessions[i].path, session->path) &&
            c->sessions[i].generation > session->generation)
            return false;
    return true;
}

static cx_status choose_session(session_choice *c, cx_err *err)
{
    int shown = (int)(c->name.size > 80 ? 80 : c->name.size);
    for (size_t i = 0; i < c->count && c->file_count == 0; i++)
        if (has_id(&c->sessions[i], c->name))
            c->files[c->file_count++] = &c->sessions[i];
    for (size_t i = 0; i < c->count && (c->file_count == 0 || !has_id(c->files[0], c->name)); i++) {
        const cx_recorded_session *s = &c->sessions[i];
        if (!cx_str_eq(cx_session_stem(s->path), c->name) || !is_newest(c, s))
            continue;
        if (c->file_count != 0 && are_one_session(c->files[0], s))
            continue;
        if (c->file_count != 0)
            return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                              "several archived files have the name %.*s: use the id that 'cortex "
                              "watch --list' shows",
                              shown, c->name.data);
        c->files[c->file_count++] = s;
    }
    if (c->file_count == 0)
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
            "the data directory has no session %.*s; 'cortex watch --list' lists them", shown,
            c->name.data);
    return CX_SUCCESS;
}

static int by_path(const void *left, const void *right)
{
    const cx_recorded_session *a = *(const cx_recorded_session *const *)left,
                              *b = *(const cx_recorded_session *const *)right;
    size_t size = a->path.size < b->path.size ? a->path.size : b->path.size;
    int order = memcmp(a->path.data, b->path.data, size);
    return order != 0 ? order : (a->path.size > b->path.size) - (a->path.size < b->path.size);
}

/* Claude Code keeps the files of a session's subagents in a folder of its name. */
static void add_subagents(session_choice *c)
{
    const cx_recorded_session *of = c->files[0];
    if (of->format != CX_SESSION_CLAUDE_CODE || !cx_str_ends(of->path, CX_STR(ENDING)))
        return;
    cx_str folder = cx_str_from(of->path.data, of->path.size - strlen(ENDING));
    for (size_t i = 0; i < c->count; i++) {
        const cx_recorded_session *s = &c->sessions[i];
        if (s->path.size > folder.size + 1 && cx_str_starts(s->path, folder) &&
            s->path.data[folder.size] == '/' && s->format == of->format && is_newest(c, s))
            c->files[c->file_count++] = s;
    }
    qsort(c->files + 1, c->file_count - 1, sizeof *c->files, by_path);
}

/* --- groups of documents ---------------------------------------------------------------------- */

/* Where two names begin to differ, before the digits of a number that does. */
static size_t begin_of_difference(cx_str a, cx_str b)
{
    size_t at = 0;
    while (at < a.size && at < b.size && a.data[at] == b.data[at])
        at++;
    while (at > 0 && a.data[at - 1] >= '0' && a.data[at - 1] <= '9')
        at--;
    return at;
}

/* Digits count as numbers: 10.json follows 9.json. */
static int compare_names(cx_str a, cx_str b)
{
    size_t i = begin_of_difference(a, b), k = i;
    while (i < a.size && k < b.size) {
        size_t from = i, other = k;
        while (i < a.size && a.data[i] >= '0' && a.data[i] <= '9')
            i++;
        while (k < b.size && b.data[k] >= '0' && b.data[k] <= '9')
            k++;
        if (i == from || k == other) {
            i = from;
            k = other;
            if (a.data[i] != b.data[k])
                return (unsigned char)a.data[i] < (unsigned char)b.data[k] ? -1 : 1;
            i++;
            k++;
            continue;
        }
        while (from + 1 < i && a.data[from] == '0')
            from++;
        while (other + 1 < k && b.data[other] == '0')
            other++;
        if (i - from != k - other)
            return i - from < k - other ? -1 : 1;
        int order = memcmp(a.data + from, b.data + other, i - from);
        if (order != 0)
            return order;
    }
    return (i < a.size) - (k < b.size);
}

static int by_name(const void *left, const void *right)
{
    const cx_recorded_session *a = *(const cx_recorded_session *const *)left,
                              *b = *(const cx_recorded_session *const *)right;
    int order = compare_names(a->path, b->path);
    return order != 0 ? order : by_path(left, right);
}

/* Newest files of that shape in a group, in that order, to `out`. */
static size_t find_members(session_choice *c, cx_session_shape shape, cx_str group,
                           int (*order)(const void *, const void *),
                           const cx_recorded_session **out)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        const cx_recorded_session *s = &c->sessions[i];
        cx_session_path path;
        if (!cx_str_starts(s->path, group))
            continue;
        cx_session_path_read(s->path, &path);
        if (path.shape == shape && cx_str_eq(path.group, group) && s->format != CX_SESSION_UNREAD &&
            is_newest(c, s))
            out[count++] = s;
    }
    qsort(out, count, sizeof *out, order);
    return count;
}

/* The folder of the message that a part belongs to; empty when it is not archived. */
static cx_str group_of_part(const session_choice *c, const cx_session_path *part)
{
    for (size_t i = 0; i < c->count; i++) {
        cx_session_path path;
        cx_session_path_read(c->sessions[i].path, &path);
        if (path.shape == CX_SESSION_MESSAGE && cx_str_eq(path.file, part->message) &&
            cx_str_starts(path.group, part->group))
            return path.group;
    }
    return (cx_str){"", 0};
}

static cx_str above(cx_str folder)
{
    while (folder.size > 0 && folder.data[folder.size - 1] != '/')
        folder.size--;
    folder.size -= folder.size > 0;
    return folder;
}

/* The last folder of its path. */
static cx_str message_of(const cx_recorded_session *part)
{
    cx_str folders = above(part->path);
    size_t before = above(folders).size;
    before += before < folders.size;
    return cx_str_from(folders.data + before, folders.size - before);
}

static int compare_bytes(cx_str a, cx_str b)
{
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_message(const void *left, const void *right)
{
    const cx_recorded_session *a = *(const cx_recorded_session *const *)left,
                              *b = *(const cx_recorded_session *const *)right;
    int order = compare_bytes(message_of(a), message_of(b));
    return order != 0 ? order : by_name(left, right);
}

/* The first of the parts, sorted by message, that is of this message or a later one. */
static size_t find_parts(const cx_recorded_session *const *parts, size_t count, cx_str message)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_bytes(message_of(parts[middle]), message) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The parts of a message follow it. */
static cx_status add_parts(session_choice *c, cx_arena *arena, cx_err *err)
{
    size_t count = c->file_count;
    cx_session_path path;
    const cx_recorded_session **messages =
        CX_ARENA_ARRAY(arena, const cx_recorded_session *, count + 1);
    const cx_recorded_session **parts =
        CX_ARENA_ARRAY(arena, const cx_recorded_session *, c->count + 1);
    if (messages == NULL || parts == NULL)
        return cx_fail_nomem(err);
    if (count == 0)
        return CX_SUCCESS;
    memcpy(messages, c->files, count * sizeof *messages);
    c->file_count = 0;
    cx_session_path_read(messages[0]->path, &path);
    size_t part_count =
        find_members(c, CX_SESSION_PART, above(above(path.group)), by_message, parts);
    for (size_t i = 0; i < count; i++) {
        cx_session_path_read(messages[i]->path, &path);
        c->files[c->file_count++] = messages[i];
        size_t at = find_parts(parts, part_count, path.file);
        for (; at < part_count && cx_str_eq(message_of(parts[at]), path.file); at++)
            c->files[c->file_count++] = parts[at];
    }
    return CX_SUCCESS;
}

/* All documents of the session that the chosen one is of. */
static cx_status add_group(session_choice *c, cx_arena *arena, bool *out_joined, cx_err *err)
{
    const cx_recorded_session *of = c->files[0];
    cx_session_path path;
    cx_session_path_read(of->path, &path);
    *out_joined = path.group.size != 0;
    if (!*out_joined)
        return CX_SUCCESS;
    cx_session_shape shape = path.shape == CX_SESSION_EVENT ? CX_SESSION_EVENT : CX_SESSION_MESSAGE;
    cx_str group = path.shape == CX_SESSION_PART ? group_of_part(c, &path) : path.group;
    c->file_count = find_members(c, shape, group, by_name, c->files);
    if (shape == CX_SESSION_MESSAGE)
        CX_TRY(add_parts(c, arena, err));
    if (c->file_count == 0) /* a part without its message */
        c->files[c->file_count++] = of;
    return CX_SUCCESS;
}

/* Where the lines begin that the documents become: an event each, or a message with its parts. */
static cx_status find_lines(cx_session_files *files, cx_arena *arena, cx_err *err)
{
    size_t count = 0;
    size_t *lines = CX_ARENA_ARRAY(arena, size_t, files->count + 1);
    if (lines == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < files->count; i++) {
        cx_session_path path;
        cx_session_path_read(files->items[i]->path, &path);
        if (path.shape != CX_SESSION_PART || i == 0)
            lines[count++] = i;
    }
    lines[count] = files->count;
    files->lines = lines;
    files->line_count = count;
    return CX_SUCCESS;
}

/* One line for each document, or for a message with its parts; an empty one where an event was
 * erased, so that the others keep their numbers. */
static void add_document(const cx_recorded_session *session, cx_bytes bytes, bool *open,
                         bool *first, cx_buf *out)
{
    cx_session_path path;
    cx_session_path_read(session->path, &path);
    if (path.shape != CX_SESSION_PART && *open) {
        cx_buf_add_z(out, MESSAGE_END);
        *open = false;
    }
    if (bytes.size == 0) {
        if (path.shape == CX_SESSION_EVENT)
            cx_buf_add_byte(out, '\n');
        return;
    }
    if (path.shape == CX_SESSION_MESSAGE) {
        cx_buf_add_z(out, MESSAGE_BEGIN);
        cx_session_add_line(bytes, out);
        cx_buf_add_z(out, MESSAGE_PARTS);
        *open = *first = true;
    } else {
        if (*open && !*first)
            cx_buf_add_byte(out, ',');
        cx_session_add_line(bytes, out);
        if (!*open)
            cx_buf_add_byte(out, '\n');
        *first = false;
    }
}

static cx_status join_documents(const cx_session_files *files, const cx_bytes *parts, cx_buf *out,
                                cx_err *err)
{
    bool open = false, first = false;
    for (size_t i = 0; i < files->count; i++)
        add_document(files->items[i], parts[i], &open, &first, out);
    if (open)
        cx_buf_add_z(out, MESSAGE_END);
    return cx_buf_check(out, err);
}

cx_status cx_session_files_add_line(cx_home *home, const cx_session_files *files, size_t line,
                                    cx_buf *out, cx_err *err)
{
    bool open = false, first = false;
    const size_t begin = out->size;
    uint64_t erased;
    cx_buf bytes;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&bytes, cx_alloc_default());
    for (size_t i = files->lines[line]; i < files->lines[line + 1] && !cx_failed(status); i++) {
        cx_buf_clear(&bytes);
        status = cx_recorder_session_bytes(home, files->items[i], &bytes, &erased, err);
        /* A message that was erased is an empty line, whatever parts it has. */
        if (!cx_failed(status) && (i == files->lines[line] || out->size != begin))
            add_document(files->items[i], cx_buf_bytes(&bytes), &open, &first, out);
    }
    cx_buf_done(&bytes);
    if (open)
        cx_buf_add_z(out, MESSAGE_END);
    else if (!cx_failed(status) && out->size == begin)
        cx_buf_add_byte(out, '\n');
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

static cx_status find_files(session_choice *c, cx_arena *arena, bool *out_joined, cx_err *err)
{
    CX_TRY(choose_session(c, err));
    if (c->files[0]->format == CX_SESSION_UNREAD)
        return cx_fail_at(err, CX_E_FORMAT, "Unread", CX_NO_OFFSET,
                          "session %.*s is of no known format: its bytes are archived ('cortex "
                          "log --actor sessions'), but there is no history to show",
                          (int)(c->name.size > 80 ? 80 : c->name.size), c->name.data);
    add_subagents(c);
    return add_group(c, arena, out_joined, err);
}

cx_status cx_session_files_find(cx_home *home, cx_str name, cx_arena *arena, cx_session_files *out,
                                cx_err *err)
{
    session_choice c = {.name = name};
    bool joined = false;
    CX_TRY(cx_recorder_sessions(home, arena, &c.sessions, &c.count, err));
    c.files = CX_ARENA_ARRAY(arena, const cx_recorded_session *, c.count + 1);
    if (c.files == NULL)
        return cx_fail_nomem(err);
    cx_map_init(&c.newest, cx_alloc_default(), (uint64_t)(uintptr_t)home);
    cx_status status = find_files(&c, arena, &joined, err);
    cx_map_done(&c.newest);
    CX_TRY(status);
    *out = (cx_session_files){.items = c.files, .count = c.file_count, .joined = joined};
    return joined ? find_lines(out, arena, err) : CX_SUCCESS;
}

/* All bytes of the files, concatenated, and where each begins; of a text with gaps, where it goes
 * on after them. */
cx_status cx_session_files_import(cx_home *home, const cx_session_files *files, size_t max_bytes,
                                  const cx_import_options *options, cx_import_write write,
                                  void *write_arg, cx_import_summary *summary, uint64_t *out_erased,
                                  cx_err *err)
{
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    cx_arena arena;
    cx_buf all, text;
    cx_session_gaps gaps;
    uint64_t erased = 0;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, alloc, 0);
    cx_buf_init(&all, alloc);
    cx_buf_init(&text, alloc);
    cx_bytes *parts = CX_ARENA_ARRAY(&arena, cx_bytes, files->count);
    size_t *ends = CX_ARENA_ARRAY(&arena, size_t, files->count);
    if (parts == NULL || ends == NULL)
        status = cx_fail_nomem(err);
    for (size_t i = 0; i < files->count && !cx_failed(status); i++) {
        uint64_t pieces = 0;
        if (max_bytes != 0 && files->items[i]->offset > max_bytes - all.size)
            status = cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                                "the session has more than %zu bytes", max_bytes);
        else
            status = cx_recorder_session_bytes(home, files->items[i], &all, &pieces, err);
        ends[i] = all.size;
        erased += pieces;
    }
    for (size_t i = 0; i < files->count && !cx_failed(status); i++) {
        size_t start = i == 0 ? 0 : ends[i - 1];
        parts[i] = cx_bytes_from(all.data + start, ends[i] - start);
    }
    if (!cx_failed(status) && files->joined) {
        status = join_documents(files, parts, &text, err);
        parts[0] = cx_buf_bytes(&text);
    }
    cx_import_options chosen = *options;
    if (!cx_failed(status) && erased != 0) {
        bool found;
        status = cx_session_places_gaps(home, files, &arena, &text, &gaps, &found, err);
        if (!cx_failed(status) && found) {
            parts[0] = cx_buf_bytes(&text);
            chosen.windows = &gaps.window;
        }
    }
    if (!cx_failed(status))
        status = cx_import_run_bytes(cx_recorded_session_format_name(files->items[0]->format),
                                     parts, files->joined ? 1 : files->count, &chosen, write,
                                     write_arg, summary, err);
    cx_buf_done(&text);
    cx_buf_done(&all);
    cx_arena_done(&arena);
    if (!cx_failed(status) && out_erased != NULL)
        *out_erased = erased;
    return status;
}
