/*
 * session_files.c - finds the files of a session, and imports them together.
 */
#include "stores/session_files.h"

#include <stdlib.h>

#include "base/api.h"

#define ENDING ".jsonl"

typedef struct session_choice {
    const cx_recorded_session *sessions;
    size_t count;
    cx_str name;
    const cx_recorded_session **files; /* the session itself first */
    size_t file_count;
} session_choice;

cx_str cx_session_stem(cx_str path)
{
    size_t start = path.size;
    while (start > 0 && path.data[start - 1] != '/')
        start--;
    cx_str name = cx_str_from(path.data + start, path.size - start);
    if (cx_str_ends(name, CX_STR(ENDING)))
        name.size -= strlen(ENDING);
    return name;
}

static bool has_id(const cx_recorded_session *session, cx_str name)
{
    char id[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(session->id, CX_SESSION_ID_SIZE), id);
    return cx_str_eq(cx_str_from(id, sizeof id), name);
}

/* Of several generations under one path the newest counts. */
static bool is_newest(const session_choice *c, const cx_recorded_session *session)
{
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

cx_status cx_session_files_find(cx_home *home, cx_str name, cx_arena *arena, cx_session_files *out,
                                cx_err *err)
{
    session_choice c = {.name = name};
    CX_TRY(cx_recorder_sessions(home, arena, &c.sessions, &c.count, err));
    c.files = CX_ARENA_ARRAY(arena, const cx_recorded_session *, c.count + 1);
    if (c.files == NULL)
        return cx_fail_nomem(err);
    CX_TRY(choose_session(&c, err));
    if (c.files[0]->format == CX_SESSION_UNREAD)
        return cx_fail_at(err, CX_E_FORMAT, "Unread", CX_NO_OFFSET,
                          "session %.*s is of no known format: its bytes are archived ('cortex "
                          "log --actor sessions'), but there is no history to show",
                          (int)(name.size > 80 ? 80 : name.size), name.data);
    add_subagents(&c);
    *out = (cx_session_files){c.files, c.file_count};
    return CX_SUCCESS;
}

/* All bytes of the files, concatenated, and where each begins. */
cx_status cx_session_files_import(cx_home *home, const cx_session_files *files, size_t max_bytes,
                                  const cx_import_options *options, cx_import_write write,
                                  void *write_arg, cx_import_summary *summary, uint64_t *out_erased,
                                  cx_err *err)
{
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    cx_arena arena;
    cx_buf all;
    uint64_t erased = 0;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, alloc, 0);
    cx_buf_init(&all, alloc);
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
    if (!cx_failed(status))
        status = cx_import_run_bytes(cx_recorded_session_format_name(files->items[0]->format),
                                     parts, files->count, options, write, write_arg, summary, err);
    cx_buf_done(&all);
    cx_arena_done(&arena);
    if (!cx_failed(status) && out_erased != NULL)
        *out_erased = erased;
    return status;
}
