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
    const cx_live_told told = {.actor = session.actor,
                               .alone = true,
                               .transcript_from = out->size,
                               .max_bytes = max_bytes,
                               .until = UINT64_MAX};
    return cx_external_live_lines(home, &told, out, err);
}

static cx_status tell_archived(cx_home *home, const cx_session_files *files, size_t from,
                               size_t max_bytes, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_live_session session;
    bool found;
    CX_TRY(find_hooks(home, files->items[0], arena, &session, &found, err));
    const cx_live_told told = {.actor = found ? session.actor : (cx_str){NULL, 0},
                               .transcript_from = from,
                               .max_bytes = max_bytes,
                               .until = UINT64_MAX};
    return found ? cx_external_live_lines(home, &told, out, err) : CX_SUCCESS;
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

/* --- parts ------------------------------------------------------------------------------------ */

typedef struct session_part {
    cx_home *home;
    cx_str name;
    uint64_t from;
    cx_arena arena;
    cx_session_files files; /* of an archived session */
    cx_live_told told;      /* of one that only hooks recorded */
    uint64_t entries;
    bool parts;
} session_part;

/* A session that is in no archive, but in the journal of its hooks. */
static cx_status find_journal(session_part *p, cx_err *err)
{
    cx_live_session session;
    cx_actor_info info;
    cx_status status = cx_live_session_find(p->home, p->name, &p->arena, &session, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    CX_TRY(cx_home_actor(p->home, session.actor, &info, err));
    p->told = (cx_live_told){.actor = session.actor, .alone = true};
    p->entries = info.entry_count;
    p->parts = true;
    return CX_SUCCESS;
}

static cx_status find_session(session_part *p, cx_str branch, cx_err *err)
{
    if (!cx_external_is_session(branch))
        return CX_SUCCESS;
    p->name = cx_str_from(branch.data + strlen(PREFIX), branch.size - strlen(PREFIX));
    cx_status status = cx_session_files_find(p->home, p->name, &p->arena, &p->files, err);
    if (status.code == CX_E_NOT_FOUND)
        return find_journal(p, err);
    CX_TRY(status);
    p->parts = cx_session_files_have_parts(&p->files);
    if (p->parts)
        CX_TRY(cx_session_files_count(p->home, &p->files, &p->arena, err));
    p->parts = cx_session_files_have_parts(&p->files);
    p->entries = p->parts ? cx_session_files_lines(&p->files) : 0;
    return CX_SUCCESS;
}

cx_status cx_external_extent(cx_home *home, cx_str branch, cx_str node, cx_steps_extent *out,
                             cx_err *err)
{
    session_part p = {.home = home};
    *out = (cx_steps_extent){.parts = false};
    cx_arena_init(&p.arena, cx_alloc_default(), 0);
    cx_status status = find_session(&p, branch, err);
    if (!cx_failed(status)) {
        out->parts = p.parts && p.entries != 0;
        out->entries = p.entries;
    }
    if (!cx_failed(status) && out->parts && p.files.count != 0 && node.data != NULL)
        status = cx_session_files_line(home, &p.files, node, &out->entry, &out->found, err);
    cx_arena_done(&p.arena);
    return status;
}

/* What hooks decided while the records of the part were written. */
static cx_status tell_meanwhile(session_part *p, const cx_session_times *times, cx_buf *out,
                                cx_err *err)
{
    cx_live_session session;
    bool found;
    CX_TRY(find_hooks(p->home, p->files.items[0], &p->arena, &session, &found, err));
    if (!found)
        return CX_SUCCESS;
    p->told = (cx_live_told){.actor = session.actor, .max_bytes = CX_SESSION_PART_BYTES_MAX};
    CX_TRY(cx_external_live_between(p->home, &p->told, times->after_ns, times->until_ns, err));
    return cx_external_live_lines(p->home, &p->told, out, err);
}

static cx_status tell_part(session_part *p, cx_buf *out, cx_err *err)
{
    cx_session_times times;
    if (p->parts && p->from >= p->entries)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                          "found a part from entry %llu, expected one below %llu",
                          (unsigned long long)p->from, (unsigned long long)p->entries);
    if (p->files.count != 0) {
        CX_TRY(cx_session_files_import_part(p->home, &p->files, p->from, out->alloc, add_lines, out,
                                            &times, err));
        return tell_meanwhile(p, &times, out, err);
    }
    if (!p->parts)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                          "the data directory has no session %.*s that can be opened in parts",
                          (int)(p->name.size > 80 ? 80 : p->name.size), p->name.data);
    p->told.max_bytes = CX_SESSION_PART_BYTES_MAX;
    p->told.from = p->from;
    p->told.until = p->from + CX_STEPS_PART;
    return cx_external_live_lines(p->home, &p->told, out, err);
}

cx_status cx_external_part(cx_home *home, cx_str branch, uint64_t from,
                           const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                           cx_lattice_report **out_report, cx_err *err)
{
    session_part p = {.home = home, .from = from};
    *out = NULL;
    cx_arena_init(&p.arena, lines->alloc, 0);
    cx_status status = find_session(&p, branch, err);
    if (!cx_failed(status))
        status = tell_part(&p, lines, err);
    cx_arena_done(&p.arena);
    CX_TRY(status);
    CX_TRY(cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err));
    status = cx_lattice_verify(*out, NULL, out_report, err);
    if (cx_failed(status)) {
        cx_lattice_close(*out);
        *out = NULL;
    }
    return status;
}
