/*
 * backup.c - copying a data directory while it is in use.
 *
 * The checkpoints signed last are read before the log is: each of them is of a journal that the
 * copied log contains.  The record is written when everything else is durable.
 */
#include <stdio.h>
#include <string.h>

#include "base/api.h"
#include "crypto/api.h"
#include <errno.h>

#include "ledger/backup/backup_parts.h"
#include "ledger/internal.h"

typedef struct copy {
    cx_home *home;
    const char *to;
    cx_arena arena;
    cx_backup_file *files;
    cx_bytes *contents;
    size_t count;
    bool failed; /* a name did not fit, or memory ran out */
} copy;

const char *cx_backup_path(cx_arena *arena, const char *folder, cx_str name)
{
    return cx_arena_printf(arena, "%s/%.*s", folder, (int)name.size, name.data).data;
}

cx_status cx_backup_sync_above(const cx_io *io, const char *path, cx_arena *arena, cx_err *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    if (size == 0)
        return cx_io_sync_folder(io, ".", err);
    cx_str above = cx_arena_copy_str(arena, cx_str_from(path, size));
    return above.data == NULL ? cx_fail_nomem(err) : cx_io_sync_folder(io, above.data, err);
}

/* --- the small files -------------------------------------------------------------------------- */

/* A file that is not there is left out. */
static cx_status read_file(copy *c, cx_str name, cx_err *err)
{
    cx_buf text;
    const char *path = cx_backup_path(&c->arena, c->home->path, name);
    if (path == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, c->home->alloc);
    cx_status status = cx_io_read_file(c->home->io, path, CX_BACKUP_FILE_BYTES_MAX, &text, err);
    if (status.code == CX_E_NOT_FOUND) {
        cx_buf_done(&text);
        return CX_SUCCESS;
    }
    cx_str kept = {NULL, 0};
    if (!cx_failed(status)) {
        kept = cx_arena_copy_str(&c->arena, cx_buf_str(&text));
        if (kept.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    CX_TRY(status);
    c->contents[c->count] = cx_str_bytes(kept);
    c->files[c->count++] = (cx_backup_file){
        .name = name, .size_bytes = kept.size, .sha256 = cx_digest_of(cx_str_bytes(kept))};
    return CX_SUCCESS;
}

typedef struct names {
    copy *c;
    CX_VEC(cx_str) list;
} names;

static bool add_name(void *arg, const char *name)
{
    names *n = arg;
    if (!cx_backup_key_name_ok(cx_str_z(name)))
        return true; /* a temporary file of a checkpoint that is being replaced */
    cx_str *item =
        n->list.count == CX_BACKUP_FILES_MAX - 2 ? NULL : cx_vec_push(&n->list, n->c->home->alloc);
    cx_str text = cx_arena_printf(&n->c->arena, "keys/%s", name);
    n->c->failed = n->c->failed || item == NULL || text.data == NULL;
    if (item != NULL)
        *item = text;
    return !n->c->failed;
}

static cx_status list_keys(copy *c, names *found, cx_err *err)
{
    const char *keys = cx_backup_path(&c->arena, c->home->path, CX_STR("keys"));
    if (keys == NULL)
        return cx_fail_nomem(err);
    int failed = c->home->io->list(c->home->io, keys, add_name, found);
    if (failed != 0) {
        cx_status status = cx_fail_os(err, -failed, "cannot list %s", keys);
        if (status.code != CX_E_NOT_FOUND)
            return status;
    }
    return c->failed ? cx_fail(err, CX_E_LIMIT, "%s has more than %d files", keys,
                               CX_BACKUP_FILES_MAX - 2)
                     : CX_SUCCESS;
}

static cx_status read_small_files(copy *c, cx_err *err)
{
    names found = {.c = c};
    cx_status status;
    CX_TRY_GOTO(status, list_keys(c, &found, err));
    c->files = CX_ARENA_ARRAY(&c->arena, cx_backup_file, found.list.count + 2);
    c->contents = CX_ARENA_ARRAY(&c->arena, cx_bytes, found.list.count + 2);
    if (c->files == NULL || c->contents == NULL)
        CX_TRY_GOTO(status, cx_fail_nomem(err));
    CX_TRY_GOTO(status, read_file(c, CX_STR("config.toml"), err));
    for (size_t i = 0; i < found.list.count; i++)
        CX_TRY_GOTO(status, read_file(c, found.list.items[i], err));
done:
    cx_vec_done(&found.list, c->home->alloc);
    return status;
}

static cx_status make_folder(copy *c, cx_str name, cx_err *err)
{
    const char *path = cx_backup_path(&c->arena, c->to, name);
    if (path == NULL)
        return cx_fail_nomem(err);
    int failed = c->home->io->mkdir(c->home->io, path);
    return failed == 0 || failed == -EEXIST
               ? CX_SUCCESS
               : cx_fail_os(err, -failed, "making the folder %s", path);
}

static cx_status write_small_files(copy *c, cx_err *err)
{
    CX_TRY(make_folder(c, CX_STR("keys"), err));
    for (size_t i = 0; i < c->count; i++) {
        const char *path = cx_backup_path(&c->arena, c->to, c->files[i].name);
        if (path == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_io_replace_private_file(c->home->io, path, c->contents[i], err));
    }
    return cx_home_format_write(c->home->io, c->to, c->home->alloc, err);
}

/* --- the record ------------------------------------------------------------------------------- */

static cx_str time_text(copy *c)
{
    uint64_t now = c->home->io->wall_ns(c->home->io) / UINT64_C(1000000000);
    cx_civil_time t = cx_civil_of_seconds((int64_t)now);
    return cx_arena_printf(&c->arena, "%04u-%02u-%02uT%02u:%02u:%02uZ",
                           (unsigned)t.date.year % 10000, t.date.month, t.date.day, t.hour,
                           t.minute, t.second);
}

static cx_status read_copy_end(copy *c, cx_backup_record *out, cx_err *err)
{
    cx_log *log;
    const char *path = cx_backup_path(&c->arena, c->to, CX_STR("log"));
    const cx_log_options options = {.alloc = c->home->alloc, .io = c->home->io, .read_only = true};
    if (path == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_log_open(path, &options, &log, NULL, err));
    cx_log_get_end(log, &out->end);
    cx_log_home_id(log, out->home_id);
    cx_log_close(log);
    return CX_SUCCESS;
}

static cx_status write_record(copy *c, cx_err *err)
{
    cx_backup_record record = {.format = {.number = CX_HOME_FORMAT, .written_by = CX_VERSION},
                               .made_at = time_text(c),
                               .files = c->files,
                               .file_count = c->count};
    const char *path = cx_backup_path(&c->arena, c->to, CX_STR("backup.json"));
    cx_buf text;
    if (path == NULL || record.made_at.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_copy_end(c, &record, err));
    cx_buf_init(&text, c->home->alloc);
    cx_status status = cx_backup_record_write(&record, &c->arena, &text, err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(c->home->io, path, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status copy_parts(copy *c, cx_err *err)
{
    CX_TRY(read_small_files(c, err));
    const char *log = cx_backup_path(&c->arena, c->to, CX_STR("log"));
    if (log == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_log_backup(c->home->log, log, err));
    CX_TRY(write_small_files(c, err));
    CX_TRY(write_record(c, err));
    return cx_backup_sync_above(c->home->io, c->to, &c->arena, err);
}

static cx_status copy_to(cx_home *home, const char *to_path, cx_err *err)
{
    copy c = {.home = home, .to = to_path};
    cx_arena_init(&c.arena, home->alloc, 0);
    cx_status status = copy_parts(&c, err);
    cx_arena_done(&c.arena);
    return status;
}

cx_status cx_home_backup(cx_home *home, const char *to_path, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "a backup", err);
    int failed = home->io->mkdir(home->io, to_path);
    if (failed != 0)
        return cx_fail_os(err, -failed, "making the folder %s", to_path);
    return copy_to(home, to_path, err);
}

cx_status cx_home_copy_into(cx_home *home, const char *to_path, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "a copy", err);
    return copy_to(home, to_path, err);
}
