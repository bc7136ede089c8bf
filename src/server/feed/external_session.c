/*
 * external_session.c - an archived session, with its subagents, as a lattice.
 */
#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "import/api.h"
#include "stores/api.h"
#include "server/feed/external_internal.h"

#define PREFIX "session/"
#define ENDING ".jsonl"

typedef struct session_choice {
    const cx_recorded_session *sessions;
    size_t count;
    cx_str name;
    const cx_recorded_session **files; /* the session itself first */
    size_t file_count;
} session_choice;

bool cx_external_is_session(cx_str branch)
{
    return cx_str_starts(branch, CX_STR(PREFIX));
}

/* The name of the file without its folders and its ending. */
static cx_str stem_of(cx_str path)
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
        if (!cx_str_eq(stem_of(s->path), c->name) || !is_newest(c, s))
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

static cx_status add_lines(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

/* All bytes of the files, concatenated, and where each begins. */
static cx_status import_files(cx_home *home, const session_choice *c, size_t max_bytes,
                              cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_bytes *files = CX_ARENA_ARRAY(arena, cx_bytes, c->file_count);
    size_t *ends = CX_ARENA_ARRAY(arena, size_t, c->file_count);
    cx_buf all;
    uint64_t erased;
    cx_status status = CX_SUCCESS;
    if (files == NULL || ends == NULL)
        return cx_fail_nomem(err);
    options.alloc = out->alloc;
    cx_buf_init(&all, out->alloc);
    for (size_t i = 0; i < c->file_count && !cx_failed(status); i++) {
        if (max_bytes != 0 && c->files[i]->offset > max_bytes - all.size)
            status = cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                                "the session has more than %zu bytes", max_bytes);
        else
            status = cx_recorder_session_bytes(home, c->files[i], &all, &erased, err);
        ends[i] = all.size;
    }
    for (size_t i = 0; i < c->file_count && !cx_failed(status); i++) {
        size_t start = i == 0 ? 0 : ends[i - 1];
        files[i] = cx_bytes_from(all.data + start, ends[i] - start);
    }
    if (!cx_failed(status))
        status = cx_import_run_bytes(cx_recorded_session_format_name(c->files[0]->format), files,
                                     c->file_count, &options, add_lines, out, NULL, err);
    cx_buf_done(&all);
    return status;
}

cx_status cx_external_session_lines(cx_home *home, const cx_external_options *wanted, cx_buf *out,
                                    cx_err *err)
{
    cx_arena arena;
    size_t before = out->size;
    session_choice c = {.name = cx_str_from(wanted->branch.data + strlen(PREFIX),
                                            wanted->branch.size - strlen(PREFIX))};
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = cx_recorder_sessions(home, &arena, &c.sessions, &c.count, err);
    if (!cx_failed(status) &&
        (c.files = CX_ARENA_ARRAY(&arena, const cx_recorded_session *, c.count + 1)) == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status))
        status = choose_session(&c, err);
    if (!cx_failed(status) && c.files[0]->format == CX_SESSION_UNREAD)
        status = cx_fail_at(err, CX_E_FORMAT, "Unread", CX_NO_OFFSET,
                            "session %.*s is of no known format: its bytes are archived ('cortex "
                            "log --actor sessions'), but there is no history to show",
                            (int)(c.name.size > 80 ? 80 : c.name.size), c.name.data);
    if (!cx_failed(status)) {
        add_subagents(&c);
        status = import_files(home, &c, wanted->max_bytes, &arena, out, err);
    }
    cx_arena_done(&arena);
    if (cx_failed(status))
        out->size = before;
    return status;
}
