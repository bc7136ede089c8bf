/*
 * external_session.c - a session as a lattice: archived, with its subagents and what hooks decided;
 * or what hooks recorded alone.
 */
#include "base/api.h"
#include "import/api.h"
#include "live/api.h"
#include "stores/api.h"
#include "server/feed/external_internal.h"

#define PREFIX "session/"
#define UUID_SIZE 36

bool cx_external_is_session(cx_str branch)
{
    return cx_str_starts(branch, CX_STR(PREFIX));
}

static cx_status add_lines(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

/* The session whose hooks saw this transcript; *out_found false: none did.  Claude Code's files
 * have the name of the session, Codex' end in it. */
static cx_status find_hooks(cx_home *home, const cx_recorded_session *file, cx_arena *arena,
                            cx_live_session *out, bool *out_found, cx_err *err)
{
    cx_str actor, id = cx_session_stem(file->path);
    cx_actor_info info;
    cx_err ignored;
    bool codex = file->format == CX_SESSION_CODEX;
    *out_found = false;
    if (codex && id.size > UUID_SIZE)
        id = cx_str_from(id.data + id.size - UUID_SIZE, UUID_SIZE);
    if (id.size == 0 || id.size > CX_LIVE_SESSION_BYTES_MAX)
        return CX_SUCCESS;
    CX_TRY(cx_live_actor(codex ? CX_LIVE_CODEX : CX_LIVE_CLAUDE, id, arena, &actor, err));
    cx_status status = cx_home_actor(home, actor, &info, &ignored);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        *err = ignored;
        return status;
    }
    return cx_live_session_read(home, actor, arena, out, out_found, err);
}

/* A session without an archived transcript: its entries are its history. */
static cx_status tell_alone(cx_home *home, cx_str name, size_t max_bytes, cx_arena *arena,
                            cx_buf *out, cx_err *err)
{
    cx_live_session session;
    cx_err ignored;
    cx_status status = cx_live_session_find(home, name, arena, &session, &ignored);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                          "the data directory has no session %.*s: 'cortex watch --list' lists "
                          "archived ones, 'cortex session list' those that hooks recorded",
                          (int)(name.size > 80 ? 80 : name.size), name.data);
    if (cx_failed(status)) {
        *err = ignored;
        return status;
    }
    return cx_external_live_lines(home, session.actor, out->size, true, max_bytes, out, err);
}

static cx_status tell_archived(cx_home *home, const cx_session_files *files, size_t from,
                               size_t max_bytes, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_live_session session;
    bool found;
    CX_TRY(find_hooks(home, files->items[0], arena, &session, &found, err));
    return found ? cx_external_live_lines(home, session.actor, from, false, max_bytes, out, err)
                 : CX_SUCCESS;
}

cx_status cx_external_session_lines(cx_home *home, const cx_external_options *wanted, cx_buf *out,
                                    cx_err *err)
{
    cx_arena arena;
    cx_session_files files;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    size_t before = out->size;
    cx_str name =
        cx_str_from(wanted->branch.data + strlen(PREFIX), wanted->branch.size - strlen(PREFIX));
    options.alloc = out->alloc;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = cx_session_files_find(home, name, &arena, &files, err);
    bool alone = status.code == CX_E_NOT_FOUND;
    if (alone)
        status = tell_alone(home, name, wanted->max_bytes, &arena, out, err);
    else if (!cx_failed(status))
        status = cx_session_files_import(home, &files, wanted->max_bytes, &options, add_lines, out,
                                         NULL, NULL, err);
    if (!alone && !cx_failed(status))
        status = tell_archived(home, &files, before, wanted->max_bytes, &arena, out, err);
    cx_arena_done(&arena);
    if (cx_failed(status))
        out->size = before;
    return status;
}
