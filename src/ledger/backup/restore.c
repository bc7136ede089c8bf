/*
 * restore.c - looking at a backup, and making a data directory of it (backup.h B2, B3).
 */
#include <stdio.h>
#include <string.h>

#include "crypto/api.h"
#include "ledger/backup/backup_parts.h"
#include "ledger/internal.h"
#include "os/api.h"

#define WORK_NAME ".restoring"

static const cx_io *io_of(const cx_home_options *options)
{
    return options->io != NULL ? options->io : cx_io_system();
}

static const cx_alloc *alloc_of(const cx_home_options *options)
{
    return options->alloc != NULL ? options->alloc : cx_alloc_default();
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* Keeps the first finding; broken wins over indeterminate. */
static cx_status note(cx_backup_state *state, cx_verdict verdict, const char *reason,
                      cx_str message, cx_err *err)
{
    if (message.data == NULL)
        return cx_fail_nomem(err);
    if (state->reason != NULL && !(verdict == CX_BROKEN && state->verdict != CX_BROKEN))
        return CX_SUCCESS;
    state->verdict = verdict;
    state->reason = reason;
    state->message = message;
    return CX_SUCCESS;
}

/* --- names and kinds (B2) --------------------------------------------------------------------- */

typedef struct survey {
    cx_backup_state *state;
    cx_arena *arena;
    cx_status status;
    cx_err *err;
} survey;

static bool is_known(cx_str path)
{
    return cx_backup_is_file(path) || cx_str_is(path, "log") || cx_str_is(path, "keys") ||
           cx_str_is(path, "log/lock");
}

static void look_at(survey *s, const cx_walk_entry *entry)
{
    cx_str path = cx_str_from(entry->path, entry->path_size);
    cx_buf shown;
    cx_buf_init(&shown, cx_alloc_default());
    cx_shown_add(&shown, path);
    cx_str name = cx_buf_str(&shown);
    const char *what = NULL;
    if (entry->facts.kind == CX_FILE_LINK)
        what = "is a symbolic link";
    else if (entry->facts.kind == CX_FILE_SPECIAL)
        what = "is a device, FIFO or socket";
    else if (cx_backup_is_segment(path) && entry->facts.size_bytes > CX_BACKUP_SEGMENT_FILE_MAX)
        what = "is longer than any segment of a log";
    if (what != NULL)
        s->status = note(s->state, CX_BROKEN, "UnsafeFile",
                         cx_arena_printf(s->arena,
                                         "%.*s %s; expected files and folders that "
                                         "'cortex backup' makes",
                                         (int)name.size, name.data, what),
                         s->err);
    else if (cx_backup_is_segment(path))
        s->state->log_bytes += entry->facts.size_bytes;
    else if (!is_known(path))
        s->state->other_count++;
    cx_buf_done(&shown);
}

static cx_walk_step visit(void *arg, const cx_walk_entry *entry)
{
    survey *s = arg;
    look_at(s, entry);
    return cx_failed(s->status) ? CX_WALK_STOP : CX_WALK_ON;
}

static cx_status survey_files(const char *path, cx_arena *arena, cx_backup_state *state,
                              cx_err *err)
{
    cx_file folder;
    survey s = {.state = state, .arena = arena, .status = CX_SUCCESS, .err = err};
    const cx_walk_limits limits = {.entries = CX_BACKUP_ENTRIES_MAX, .depth = 8};
    CX_TRY(cx_folder_open(path, &folder, err));
    cx_err why = {0};
    cx_status status = cx_folder_walk(folder, &limits, visit, &s, &why);
    cx_folder_close(folder);
    CX_TRY(s.status);
    if (status.code == CX_E_LIMIT)
        return note(state, CX_BROKEN, "UnsafeFile",
                    cx_arena_printf(arena, "%s; no backup has so many", why.message), err);
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

/* --- the record ------------------------------------------------------------------------------- */

static cx_status read_record(const char *path, const cx_home_options *options, cx_arena *arena,
                             cx_backup_state *state, cx_err *err)
{
    cx_buf text;
    cx_err why = {0};
    const char *name = cx_backup_path(arena, path, CX_STR("backup.json"));
    if (name == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, alloc_of(options));
    cx_status status =
        cx_io_read_file(io_of(options), name, CX_BACKUP_RECORD_BYTES_MAX, &text, &why);
    bool read = !cx_failed(status);
    cx_str kept = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    if (status.code == CX_E_NOT_FOUND)
        return note(state, CX_INDETERMINATE, "NoBackupRecord",
                    CX_STR("it has no backup.json: it was made by version 0.1 or 0.2, copied by "
                           "hand, or interrupted, and nothing shows whether it is complete"),
                    err);
    if (read)
        status = cx_backup_record_parse(kept, arena, &state->record, &why);
    state->has_record = !cx_failed(status);
    if (status.code == CX_E_FORMAT || status.code == CX_E_LIMIT)
        return note(state, CX_BROKEN, "BadBackupRecord", cx_arena_printf(arena, "%s", why.message),
                    err);
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

static cx_status check_file(const char *path, const cx_backup_file *file,
                            const cx_home_options *options, cx_arena *arena, cx_backup_state *state,
                            cx_err *err)
{
    cx_buf text;
    const char *name = cx_backup_path(arena, path, file->name);
    if (name == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, alloc_of(options));
    cx_status status = cx_io_read_file(io_of(options), name, CX_BACKUP_FILE_BYTES_MAX, &text, err);
    cx_digest found = cx_digest_of(cx_buf_bytes(&text));
    bool same = !cx_failed(status) && cx_digest_eq(&found, &file->sha256);
    cx_buf_done(&text);
    if (same)
        return CX_SUCCESS;
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND && status.code != CX_E_LIMIT)
        return status;
    bool missing = status.code == CX_E_NOT_FOUND;
    return note(state, CX_BROKEN, missing ? "FileMissing" : "FileChanged",
                cx_arena_printf(arena, "%.*s %s", (int)file->name.size, file->name.data,
                                missing ? "is missing" : "is not the file that was copied"),
                err);
}

/* --- the log ---------------------------------------------------------------------------------- */

static cx_status compare_end(const cx_log_end *found, const uint8_t id[16], cx_arena *arena,
                             cx_backup_state *state, cx_err *err)
{
    const cx_backup_record *record = &state->record;
    if (memcmp(id, record->home_id, sizeof record->home_id) != 0)
        return note(state, CX_BROKEN, "OtherHome",
                    CX_STR("its log is of another data directory than its record"), err);
    if (found->commit_count < record->end.commit_count)
        return note(state, CX_BROKEN, "Incomplete",
                    cx_arena_printf(arena, "its log has %llu commits; %llu were copied",
                                    (unsigned long long)found->commit_count,
                                    (unsigned long long)record->end.commit_count),
                    err);
    if (found->commit_count == record->end.commit_count &&
        !cx_digest_eq(&found->digest, &record->end.digest))
        return note(state, CX_BROKEN, "EndChanged",
                    CX_STR("its log does not end as the one that was copied"), err);
    return CX_SUCCESS;
}

cx_status cx_backup_check_log(const char *log_path, const cx_home_options *options, cx_arena *arena,
                              cx_backup_state *state, cx_err *err)
{
    cx_log *log;
    cx_log_end end;
    cx_err why = {0};
    uint8_t id[16];
    const cx_log_options log_options = {
        .alloc = alloc_of(options), .io = io_of(options), .read_only = true};
    cx_status status = cx_log_open(log_path, &log_options, &log, NULL, &why);
    state->has_log = !cx_failed(status);
    if (status.code == CX_E_NOT_FOUND)
        return note(state, CX_BROKEN, "NoLog",
                    CX_STR("it has no log: copying it was interrupted, or it is no backup"), err);
    if (status.code == CX_E_FORMAT)
        return note(state, CX_BROKEN, "LogDamaged", cx_arena_printf(arena, "%s", why.message), err);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    cx_log_get_end(log, &end);
    cx_log_home_id(log, id);
    cx_log_close(log);
    state->commit_count = end.commit_count;
    return state->has_record ? compare_end(&end, id, arena, state, err) : CX_SUCCESS;
}

cx_status cx_backup_inspect(const char *path, const cx_home_options *options, cx_arena *arena,
                            cx_backup_state *out, cx_err *err)
{
    *out = (cx_backup_state){.verdict = CX_HOLDS};
    CX_TRY(survey_files(path, arena, out, err));
    if (out->verdict == CX_BROKEN)
        return CX_SUCCESS; /* nothing of it is opened */
    CX_TRY(cx_home_format_check(io_of(options), path, alloc_of(options), err));
    CX_TRY(read_record(path, options, arena, out, err));
    for (size_t i = 0; i < out->record.file_count; i++)
        CX_TRY(check_file(path, &out->record.files[i], options, arena, out, err));
    const char *log = cx_backup_path(arena, path, CX_STR("log"));
    return log == NULL ? cx_fail_nomem(err) : cx_backup_check_log(log, options, arena, out, err);
}

/* --- restoring -------------------------------------------------------------------------------- */

static bool any_name(void *arg, const char *name)
{
    const char **first = arg;
    *first = strcmp(name, WORK_NAME) == 0 ? WORK_NAME : "";
    return false;
}

/* Makes the folder, or takes an empty one. */
static cx_status make_target(cx_restore *r, cx_err *err)
{
    const char *found = NULL;
    int failed = r->io->mkdir(r->io, r->to);
    r->made_folder = failed == 0;
    if (failed == 0)
        return CX_SUCCESS;
    cx_status status = cx_fail_os(err, -failed, "cannot make the folder %s", r->to);
    if (status.code != CX_E_EXISTS)
        return status;
    failed = r->io->list(r->io, r->to, any_name, &found);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot list %s", r->to);
    if (found == NULL)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_EXISTS,
                   found[0] != 0 ? "%s has an interrupted restore in it: remove the folder and "
                                   "try again"
                                 : "%s is not empty; expected a folder that is new or empty",
                   r->to);
}

static cx_status check_space(const cx_restore *r, const cx_backup_state *state, cx_err *err)
{
    uint64_t free_bytes, all;
    CX_TRY(cx_path_space(r->to, &free_bytes, &all, err));
    if (state->log_bytes > free_bytes)
        return cx_fail_at(err, CX_E_IO, "NoSpace", CX_NO_OFFSET,
                          "the backup's log has %llu bytes; %llu are free for %s",
                          (unsigned long long)state->log_bytes, (unsigned long long)free_bytes,
                          r->to);
    return CX_SUCCESS;
}

static cx_status copy_log(const char *from, const cx_restore *r, cx_arena *arena, cx_err *err)
{
    cx_log *log;
    const char *source = cx_backup_path(arena, from, CX_STR("log"));
    const char *target = cx_backup_path(arena, r->work, CX_STR("log"));
    const cx_log_options options = {.alloc = r->alloc, .io = r->io, .read_only = true};
    if (source == NULL || target == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_log_open(source, &options, &log, NULL, err));
    cx_status status = cx_log_backup(log, target, err);
    cx_log_close(log);
    return status;
}

static cx_status copy_file(const char *from, const cx_restore *r, const cx_backup_file *file,
                           cx_arena *arena, cx_err *err)
{
    cx_buf text;
    const char *source = cx_backup_path(arena, from, file->name);
    const char *target = cx_backup_path(arena, r->work, file->name);
    if (source == NULL || target == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, r->alloc);
    cx_status status = cx_io_read_file(r->io, source, CX_BACKUP_FILE_BYTES_MAX, &text, err);
    if (!cx_failed(status)) {
        cx_digest found = cx_digest_of(cx_buf_bytes(&text));
        status = cx_digest_eq(&found, &file->sha256)
                     ? cx_io_replace_private_file(r->io, target, cx_buf_bytes(&text), err)
                     : cx_fail(err, CX_E_FORMAT, "%s changed while it was copied", source);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status copy_small_files(const char *from, cx_restore *r, const cx_backup_record *record,
                                  cx_arena *arena, cx_err *err)
{
    const char *keys = cx_backup_path(arena, r->work, CX_STR("keys"));
    if (keys == NULL)
        return cx_fail_nomem(err);
    int failed = r->io->mkdir(r->io, keys);
    if (failed != 0)
        return cx_fail_os(err, -failed, "making the folder %s", keys);
    for (size_t i = 0; i < record->file_count; i++) {
        const cx_backup_file *file = &record->files[i];
        bool config = cx_str_is(file->name, "config.toml");
        if (cx_str_is(file->name, "format") || (config && !r->with_config))
            continue;
        CX_TRY(copy_file(from, r, file, arena, err));
    }
    return cx_home_format_write(r->io, r->work, r->alloc, err);
}

/* What was copied is at least what was looked at. */
static cx_status check_copy(const cx_restore *r, const cx_backup_state *state,
                            const cx_home_options *options, cx_arena *arena, cx_err *err)
{
    cx_backup_state copied = {
        .verdict = CX_HOLDS, .has_record = state->has_record, .record = state->record};
    const char *log = cx_backup_path(arena, r->work, CX_STR("log"));
    if (log == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_backup_check_log(log, options, arena, &copied, err));
    if (copied.verdict == CX_BROKEN || copied.commit_count < state->commit_count)
        return cx_fail_at(err, CX_E_FORMAT, "Incomplete", CX_NO_OFFSET,
                          "the backup changed while it was copied: %s",
                          copied.reason != NULL ? copied.message.data : "commits are missing");
    return CX_SUCCESS;
}

static cx_status copy_all(const char *from, cx_restore *r, const cx_backup_state *state,
                          const cx_home_options *options, cx_arena *arena, cx_err *err)
{
    int failed = r->io->mkdir(r->io, r->work);
    if (failed != 0)
        return cx_fail_os(err, -failed, "making the folder %s", r->work);
    CX_TRY(check_space(r, state, err));
    CX_TRY(copy_log(from, r, arena, err));
    CX_TRY(copy_small_files(from, r, &state->record, arena, err));
    return check_copy(r, state, options, arena, err);
}

cx_status cx_restore_begin(const char *from, const char *to, const cx_backup_state *state,
                           bool with_config, const cx_home_options *options, cx_arena *arena,
                           cx_restore *out, cx_err *err)
{
    cx_restore r = {.io = io_of(options), .alloc = alloc_of(options), .to = to};
    r.with_config = with_config;
    r.work = cx_backup_path(arena, to, CX_STR(WORK_NAME));
    if (r.work == NULL)
        return cx_fail_nomem(err);
    CX_TRY(make_target(&r, err));
    cx_status status = copy_all(from, &r, state, options, arena, err);
    if (cx_failed(status)) {
        cx_status ignored = cx_restore_abandon(&r, NULL);
        (void)ignored; /* the first failure is the one to be told */
        return status;
    }
    *out = r;
    return CX_SUCCESS;
}

static cx_status move_up(const cx_restore *r, cx_str name, cx_arena *arena, cx_err *err)
{
    const char *source = cx_backup_path(arena, r->work, name);
    const char *target = cx_backup_path(arena, r->to, name);
    if (source == NULL || target == NULL)
        return cx_fail_nomem(err);
    int failed = r->io->rename(r->io, source, target);
    return failed == 0 ? CX_SUCCESS
                       : cx_fail_os(err, -failed, "cannot rename %s to %s", source, target);
}

static bool has_config(const cx_restore *r, cx_arena *arena)
{
    cx_facts facts;
    const char *path = cx_backup_path(arena, r->work, CX_STR("config.toml"));
    return path != NULL && !cx_failed(cx_path_facts(path, false, &facts, NULL));
}

cx_status cx_restore_finish(cx_restore *r, cx_arena *arena, cx_err *err)
{
    CX_TRY(move_up(r, CX_STR("keys"), arena, err));
    CX_TRY(move_up(r, CX_STR("format"), arena, err));
    if (has_config(r, arena))
        CX_TRY(move_up(r, CX_STR("config.toml"), arena, err));
    CX_TRY(cx_io_sync_folder(r->io, r->to, err));
    CX_TRY(move_up(r, CX_STR("log"), arena, err)); /* B3 */
    CX_TRY(cx_io_sync_folder(r->io, r->to, err));
    CX_TRY(cx_backup_sync_above(r->io, r->to, arena, err));
    return cx_path_remove_tree(r->work, err);
}

cx_status cx_restore_abandon(cx_restore *r, cx_err *err)
{
    if (r->made_folder)
        return cx_path_remove_tree(r->to, err);
    return cx_path_remove_tree(r->work, err);
}
