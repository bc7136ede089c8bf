/*
 * cmd_status.c - `cortex status`: the state of the data directory: ledger, roots, tables, owner,
 * active runs, disk space. Nothing is changed, and it waits no longer than any reader. A part
 * that cannot be read is reported as unknown; only when the ledger cannot be read is the exit
 * code 3.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/api.h"
#include "cli/ledger/checkpoint.h"
#include "cli/ledger/owner.h"
#include "cli/trace/index_view.h"
#include "cli/run/run_place.h"
#include "cli/trace/trace.h"
#include "ledger/api.h"
#include "stores/api.h"
#include "approval/api.h"
#include "git/api.h"
#include "server/api.h"

/* Up to this many entries, roots are computed without --roots; more take noticeable time. */
#define ROOTS_UNASKED_MAX 20000
#define ACTORS_SHOWN 12
#define NAMES_MAX 4096

typedef struct actor_line {
    cx_actor_info info;
    bool has_roots, has_snapshot;
    cx_roots roots;
    cx_manifest snapshot; /* the newest */
} actor_line;

typedef struct status_job {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *path;
    bool there;
    cx_facts facts;
    uint64_t log_bytes, segments, archived, free_bytes, all_bytes;
    cx_log_space space;    /* when the ledger could be read */
    const char *elsewhere; /* the other folder of archives; NULL = none */
    bool has_space;
    cx_cli_owner owner;
    size_t tokens;
    cx_err ledger_err; /* code CX_OK: what follows is known */
    uint64_t entries;
    actor_line *actors;
    size_t line_count; /* of `actors` */
    size_t actor_count;
    cx_scheme scheme;
    cx_tables_status tables;
    cx_cli_index_view index;
    size_t sessions, unread; /* archived files; those of no known format */
    cx_cli_stored_checkpoint *checkpoints;
    size_t checkpoint_count;
    bool in_repository;
    const char *worktree;
    cx_str *runs; /* going on */
    size_t run_count, dead_runs, locks, stale_locks, worktrees;
} status_job;

/* --- files ------------------------------------------------------------------------------------ */

typedef struct names {
    status_job *s;
    cx_str items[NAMES_MAX];
    size_t count;
} names;

static bool add_file_name(void *arg, const char *name)
{
    names *n = arg;
    n->items[n->count] = cx_arena_copy_str(&n->s->cli->arena, cx_str_z(name));
    n->count += n->items[n->count].data != NULL;
    return n->count < NAMES_MAX;
}

static names *list_folder(status_job *s, const char *folder)
{
    names *n = CX_ARENA_NEW(&s->cli->arena, names);
    if (n == NULL)
        return NULL;
    n->s = s;
    n->count = 0;
    (void)s->cli->io->list(s->cli->io, folder, add_file_name, n);
    return n;
}

static void read_log(status_job *s)
{
    cx_str folder = cx_arena_printf(&s->cli->arena, "%s/log", s->path);
    names *n = folder.data == NULL ? NULL : list_folder(s, folder.data);
    for (size_t i = 0; n != NULL && i < n->count; i++) {
        cx_str path = cx_arena_printf(&s->cli->arena, "%s/%s", folder.data, n->items[i].data);
        cx_facts facts;
        if (!cx_str_ends(n->items[i], CX_STR(".seg")) || path.data == NULL ||
            cx_failed(cx_path_facts(path.data, false, &facts, NULL)))
            continue;
        s->segments++;
        s->log_bytes += facts.size_bytes;
    }
}

static void read_checkpoints(status_job *s)
{
    cx_str folder = cx_arena_printf(&s->cli->arena, "%s/keys", s->path);
    names *n = folder.data == NULL ? NULL : list_folder(s, folder.data);
    size_t count = n == NULL ? 0 : n->count;
    s->checkpoints = CX_ARENA_ARRAY(&s->cli->arena, cx_cli_stored_checkpoint, count + 1);
    for (size_t i = 0; s->checkpoints != NULL && i < count; i++) {
        cx_str path = cx_arena_printf(&s->cli->arena, "%s/%s", folder.data, n->items[i].data);
        cx_err why;
        if (path.data != NULL && cx_str_starts(n->items[i], CX_STR("checkpoint-")) &&
            !cx_failed(cx_cli_read_checkpoint(s->cli, path.data,
                                              &s->checkpoints[s->checkpoint_count], &why)))
            s->checkpoint_count++;
    }
}

/* --- the ledger ------------------------------------------------------------------------------- */

static cx_status read_actor(status_job *s, cx_home *home, actor_line *line, bool roots, cx_err *err)
{
    const cx_manifest *manifests;
    size_t count;
    if (roots)
        CX_TRY(cx_home_roots(home, line->info.name, &line->roots, err));
    line->has_roots = roots;
    if (line->info.snapshot_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_snapshot_list(home, line->info.name, &s->cli->arena, &manifests, &count, err));
    line->has_snapshot = count != 0;
    if (count != 0)
        line->snapshot = manifests[count - 1];
    return CX_SUCCESS;
}

static cx_status count_actors(status_job *s, cx_home *home, cx_err *err)
{
    cx_actor_walk walk;
    const cx_actor_info *info = NULL;
    cx_status status;
    cx_actor_walk_begin(&walk, home);
    while (!cx_failed(status = cx_actor_walk_next(&walk, &info, err)) && info != NULL) {
        s->actor_count++;
        s->entries += info->entry_count;
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* Text shows the first ones, and reads no others. */
static cx_status read_actors(status_job *s, cx_home *home, cx_err *err)
{
    const cx_actor_info *infos;
    const bool all = cx_cli_has(s->args, "json");
    CX_TRY(count_actors(s, home, err));
    if (all)
        CX_TRY(cx_home_actors(home, &s->cli->arena, &infos, &s->line_count, err));
    else
        CX_TRY(cx_home_actors_from(home, 0, ACTORS_SHOWN, &s->cli->arena, &infos, &s->line_count,
                                   err));
    s->actors = CX_ARENA_ARRAY(&s->cli->arena, actor_line, s->line_count + 1);
    if (s->actors == NULL)
        return cx_fail_nomem(err);
    bool roots = cx_cli_has(s->args, "roots") || s->entries <= ROOTS_UNASKED_MAX;
    for (size_t i = 0; i < s->line_count; i++) {
        s->actors[i] = (actor_line){.info = infos[i]};
        CX_TRY(read_actor(s, home, &s->actors[i], roots, err));
    }
    return CX_SUCCESS;
}

static cx_status read_sessions(status_job *s, cx_home *home, cx_err *err)
{
    const cx_recorded_session *found;
    CX_TRY(cx_recorder_sessions(home, &s->cli->arena, &found, &s->sessions, err));
    for (size_t i = 0; i < s->sessions; i++)
        s->unread += found[i].format == CX_SESSION_UNREAD;
    return CX_SUCCESS;
}

static cx_status read_home(status_job *s, cx_home *home, cx_err *err)
{
    const char *where = cx_cli_value(s->args, "db");
    if (where == NULL)
        where = cx_recorder_index_path(s->path, &s->cli->arena);
    if (where == NULL)
        return cx_fail_nomem(err);
    s->scheme = cx_home_scheme(home);
    cx_log_space space;
    CX_TRY(cx_home_log_space(home, &space, err));
    s->space = space;
    s->space.elsewhere = NULL; /* lives as the home does */
    if (space.elsewhere[0] != 0) {
        s->elsewhere = cx_arena_copy_str(&s->cli->arena, cx_str_z(space.elsewhere)).data;
        if (s->elsewhere == NULL)
            return cx_fail_nomem(err);
    }
    s->segments = space.segments;
    s->archived = space.archived;
    s->log_bytes = space.bytes_stored;
    CX_TRY(cx_home_tables_status(home, &s->tables, err));
    cx_cli_index_inspect(home, where, &s->index);
    s->index.max_bytes = s->cli->max_index;
    s->index.log_bytes = space.bytes_stored;
    CX_TRY(read_sessions(s, home, err));
    return read_actors(s, home, err);
}

static void read_ledger(status_job *s)
{
    const cx_home_options reading = cx_cli_home_options(s->cli, CX_CLI_READ, NULL);
    cx_home *home = NULL;
    cx_status status = cx_home_open(s->path, &reading, &home, &s->ledger_err);
    if (!cx_failed(status))
        status = read_home(s, home, &s->ledger_err);
    if (!cx_failed(status))
        s->ledger_err.code = CX_OK;
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
}

/* --- the repository --------------------------------------------------------------------------- */

static void read_runs(status_job *s, const cx_run_store *store)
{
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count;
    cx_err err;
    if (!cx_failed(cx_run_active_list(store, &s->cli->arena, &s->runs, &count, &err))) {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            cx_run_owner owner;
            if (cx_failed(cx_run_active_owner(store, s->runs[i], &s->cli->arena, &owner, &err)) ||
                cx_run_owner_state_of(&owner) == CX_RUN_OWNER_DEAD)
                s->dead_runs++;
            else
                s->runs[kept++] = s->runs[i];
        }
        s->run_count = kept;
    }
    if (cx_failed(cx_run_lock_list(store, &s->cli->arena, &locks, &reasons, &count, &err)))
        return;
    s->locks = count;
    for (size_t i = 0; i < count; i++)
        s->stale_locks += cx_run_lock_stale(reasons[i]);
}

static void read_repository(status_job *s)
{
    cx_cli_place place;
    cx_run_store store;
    cx_worktree_listed *items;
    size_t count;
    cx_err err;
    if (!cx_failed(cx_cli_place_open(s->cli, s->args, &place, &err))) {
        s->in_repository = true;
        s->worktree = cx_arena_copy_str(&s->cli->arena, cx_str_z(place.worktree)).data;
        if (!cx_failed(
                cx_run_store_open(&store, place.root, false, s->cli->io, s->cli->alloc, &err)))
            read_runs(s, &store);
        if (!cx_failed(
                cx_run_worktree_list(place.git, place.root, &s->cli->arena, &items, &count, &err)))
            for (size_t i = 0; i < count; i++)
                s->worktrees += items[i].ours;
    }
    cx_cli_place_close(&place);
}

static cx_status read_status(status_job *s, cx_err *err)
{
    cx_tokens tokens;
    CX_TRY(cx_cli_home_path(s->cli, s->args, &s->path, err));
    s->there = !cx_failed(cx_path_facts(s->path, true, &s->facts, NULL));
    s->has_space =
        s->there && !cx_failed(cx_path_space(s->path, &s->free_bytes, &s->all_bytes, err));
    read_log(s);
    cx_cli_owner_find(s->cli, s->path, &s->owner);
    read_checkpoints(s);
    if (!cx_failed(cx_tokens_read(s->cli->io, s->path, &s->cli->arena, &tokens, NULL)))
        s->tokens = tokens.count;
    read_ledger(s);
    read_repository(s);
    return CX_SUCCESS;
}

/* --- text ------------------------------------------------------------------------------------- */

/* "12.3 GiB" */
static void add_size(cx_buf *out, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < CX_COUNT_OF(units); unit++)
        value /= 1024;
    cx_buf_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static bool is_private(const status_job *s)
{
    return (s->facts.mode & 077) == 0;
}

/* What each form takes, what the configuration asks for, and why it was not done. */
static void print_archives(const status_job *s, cx_buf *out)
{
    const cx_log_space *space = &s->space;
    const cx_cli *cli = s->cli;
    if (s->archived == 0 && !cli->archives && space->failed_ns == 0)
        return;
    cx_buf_add_z(out, "archive ");
    add_size(out, space->bytes_plain);
    cx_buf_add_z(out, " plain, ");
    add_size(out, space->bytes_archived);
    cx_buf_add_z(out, " compressed, ");
    add_size(out, space->bytes_elsewhere);
    cx_buf_add_z(out, " in ");
    cx_shown_add(out, cx_str_z(s->elsewhere == NULL ? "another folder" : s->elsewhere));
    cx_buf_add_z(out, "; unpacked ");
    add_size(out, space->bytes);
    cx_buf_add_byte(out, '\n');
    if (cli->archives) {
        cx_buf_printf(out, "        by configuration, but the newest %u segments",
                      (unsigned)(cli->archive_keep == 0 ? 1 : cli->archive_keep));
        if (cli->archive_age_ns > 0)
            cx_buf_printf(out, " and those written to in the last %llu hours",
                          (unsigned long long)(cli->archive_age_ns / INT64_C(3600000000000)));
        cx_buf_add_z(out, s->owner.held ? "\n"
                                        : "; no process has the data directory open for long now: "
                                          "'cortex log archive' does it\n");
    }
    if (space->failed_ns == 0)
        return;
    cx_buf_add_z(out, "        failed at ");
    cx_form_time(cx_cli_seconds(space->failed_ns), out);
    cx_buf_add_z(out, ": ");
    cx_shown_add(out, cx_str_z(space->failure));
    cx_buf_add_byte(out, '\n');
}

static void print_ledger(const status_job *s, cx_buf *out)
{
    if (s->ledger_err.code != CX_OK) {
        cx_buf_add_z(out, "ledger  cannot be read: ");
        cx_shown_add(out, cx_str_z(s->ledger_err.message));
        cx_buf_add_byte(out, '\n');
        return;
    }
    cx_buf_printf(out, "ledger  %" PRIu64 " entries of %zu actors, ", s->entries, s->actor_count);
    add_size(out, s->log_bytes);
    cx_buf_printf(out, " in %" PRIu64 " segments, ", s->segments);
    if (s->archived != 0)
        cx_buf_printf(out, "%" PRIu64 " of them archived, ", s->archived);
    cx_buf_printf(out, "%" PRIu64 " commits, scheme %s\n", s->tables.log_commits,
                  cx_scheme_name(s->scheme).data);
    print_archives(s, out);
    cx_buf_printf(out, "tables  %" PRIu64 " commits, %" PRIu64 " behind\n", s->tables.table_commits,
                  s->tables.log_commits - s->tables.table_commits);
    cx_cli_index_print(out, &s->index, &s->tables);
    if (s->sessions != 0)
        cx_buf_printf(out, "watched %zu session files%s", s->sessions,
                      s->unread == 0 ? "\n" : ", ");
    if (s->unread != 0)
        cx_buf_printf(out,
                      "%zu of them unread: of no known format, archived as bytes; 'cortex "
                      "watch --list' names them\n",
                      s->unread);
}

static void print_actors(const status_job *s, cx_buf *out)
{
    for (size_t i = 0; i < s->line_count && i < ACTORS_SHOWN; i++) {
        const actor_line *line = &s->actors[i];
        cx_buf_add_z(out, "actor   ");
        cx_shown_add(out, line->info.name);
        cx_buf_printf(out, "  %" PRIu64 " entries", line->info.entry_count);
        if (line->has_roots) {
            cx_buf_add_z(out, "  root ");
            cx_cli_add_digest(out, &line->roots.overall);
        }
        if (line->has_snapshot) {
            cx_buf_printf(out, "  snapshot %" PRIu64 " of ", line->snapshot.snapshot_seq);
            cx_form_time(cx_cli_seconds(line->snapshot.created_ns), out);
        }
        cx_buf_add_byte(out, '\n');
    }
    if (s->actor_count > ACTORS_SHOWN)
        cx_buf_printf(out, "        and %zu more; --json has all\n", s->actor_count - ACTORS_SHOWN);
    if (s->line_count != 0 && !s->actors[0].has_roots)
        cx_buf_add_z(out, "        roots are computed with --roots, or 'cortex roots'\n");
    for (size_t i = 0; i < s->checkpoint_count; i++) {
        cx_buf_add_z(out, "signed  ");
        cx_shown_add(out, s->checkpoints[i].checkpoint.origin);
        cx_buf_printf(out, " at %" PRIu64 " entries\n", s->checkpoints[i].checkpoint.size);
    }
}

static void print_owner(const status_job *s, cx_buf *out)
{
    if (!s->owner.held) {
        cx_buf_add_z(out, "owner   none: commands open the data directory themselves\n");
        return;
    }
    cx_buf_printf(out, "owner   process %s", s->owner.pid[0] == 0 ? "?" : s->owner.pid);
    if (s->owner.command.size != 0) {
        cx_buf_add_z(out, " (");
        cx_shown_add(out, s->owner.command);
        cx_buf_add_byte(out, ')');
    }
    cx_buf_add_z(out, s->owner.socket ? "; others write through its socket\n"
                                      : "; it serves no socket, so others cannot write\n");
}

static void print_repository(const status_job *s, cx_buf *out)
{
    if (!s->in_repository)
        return;
    cx_buf_add_z(out, "runs    ");
    cx_buf_printf(out, "%zu running, %zu unfinished, %zu locks (%zu stale), %zu work trees in ",
                  s->run_count, s->dead_runs, s->locks, s->stale_locks, s->worktrees);
    cx_shown_add(out, cx_str_z(s->worktree == NULL ? "" : s->worktree));
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < s->run_count; i++) {
        cx_buf_add_z(out, "        ");
        cx_shown_add(out, s->runs[i]);
        cx_buf_add_byte(out, '\n');
    }
    if (s->dead_runs != 0 || s->stale_locks != 0)
        cx_buf_add_z(out, "        'cortex run cleanup' and 'cortex locks release --stale' clear "
                          "them up\n");
}

static void print_status(const status_job *s, cx_buf *out)
{
    cx_buf_add_z(out, "home    ");
    cx_shown_add(out, cx_str_z(s->path));
    if (s->there)
        cx_buf_printf(
            out, " (mode %04o%s)\n", s->facts.mode,
            is_private(s) || s->ledger_err.code != CX_OK ? "" : ": others may read it; chmod 700");
    else
        cx_buf_add_z(out, " (not there)\n");
    print_ledger(s, out);
    print_actors(s, out);
    if (s->there)
        print_owner(s, out);
    if (s->tokens != 0)
        cx_buf_printf(out, "tokens  %zu\n", s->tokens);
    print_repository(s, out);
    if (s->has_space) {
        cx_buf_add_z(out, "disk    ");
        add_size(out, s->free_bytes);
        cx_buf_add_z(out, " free of ");
        add_size(out, s->all_bytes);
        cx_buf_add_z(out, "; contents are not encrypted by cortex\n");
    }
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_actors_json(const status_job *s, cx_json_list *json)
{
    cx_json_list items = cx_json_list_begin(json->arena);
    for (size_t i = 0; i < s->line_count; i++) {
        const actor_line *line = &s->actors[i];
        cx_json_list item = cx_json_list_begin(json->arena), snapshot = item;
        cx_json_put_str(&item, "actor", line->info.name);
        cx_json_put_uint(&item, "entries", line->info.entry_count);
        if (line->has_roots) {
            cx_json_put_digest(&item, "edges_root", &line->roots.edges);
            cx_json_put_digest(&item, "journal_root", &line->roots.journal);
            cx_json_put_digest(&item, "memories_root", &line->roots.memories);
            cx_json_put_digest(&item, "overall_root", &line->roots.overall);
        }
        cx_json_put_uint(&item, "memories", line->info.live_memories);
        if (line->has_snapshot) {
            snapshot = cx_json_list_begin(json->arena);
            cx_json_put_time(&snapshot, "created_at", true,
                             cx_cli_seconds(line->snapshot.created_ns));
            cx_json_put_uint(&snapshot, "number", line->snapshot.snapshot_seq);
            cx_json_put_digest(&snapshot, "overall_root", &line->snapshot.overall_root);
            cx_json_put_object(&item, "snapshot", &snapshot);
        } else {
            cx_json_put_null(&item, "snapshot");
        }
        cx_json_add_object(&items, &item);
    }
    cx_json_put_array(json, "actors", &items);
}

static void write_archive_json(const status_job *s, cx_json_list *json)
{
    cx_json_list archive = cx_json_list_begin(json->arena), rules = archive;
    const cx_log_space *space = &s->space;
    cx_json_put_uint(&archive, "archived_segments", space->archived);
    cx_json_put_uint(&archive, "bytes_compressed", space->bytes_archived);
    cx_json_put_uint(&archive, "bytes_elsewhere", space->bytes_elsewhere);
    cx_json_put_uint(&archive, "bytes_plain", space->bytes_plain);
    cx_json_put_uint(&archive, "bytes_unpacked", space->bytes);
    if (s->cli->archives) {
        rules = cx_json_list_begin(json->arena);
        cx_json_put_uint(&rules, "after_seconds", (uint64_t)cx_cli_seconds(s->cli->archive_age_ns));
        cx_json_put_uint(&rules, "keep", s->cli->archive_keep);
        cx_json_put_object(&archive, "configured", &rules);
    } else {
        cx_json_put_null(&archive, "configured");
    }
    if (space->failed_ns != 0) {
        cx_json_put_str(&archive, "error", cx_str_z(space->failure));
        cx_json_put_time(&archive, "failed_at", true, cx_cli_seconds(space->failed_ns));
    } else {
        cx_json_put_null(&archive, "error");
        cx_json_put_null(&archive, "failed_at");
    }
    cx_json_put_maybe(&archive, "folder", cx_str_z(s->elsewhere == NULL ? "" : s->elsewhere));
    cx_json_put_object(json, "archive", &archive);
}

static void write_ledger_json(const status_job *s, cx_json_list *json)
{
    cx_json_list ledger = cx_json_list_begin(json->arena), kept = ledger;
    if (s->ledger_err.code != CX_OK) {
        cx_json_put_str(&ledger, "error", cx_str_z(s->ledger_err.message));
        cx_json_put_object(json, "ledger", &ledger);
        return;
    }
    kept = cx_json_list_begin(json->arena);
    write_actors_json(s, &ledger);
    write_archive_json(s, &ledger);
    cx_json_put_uint(&ledger, "archived_segments", s->archived);
    for (size_t i = 0; i < s->checkpoint_count; i++) {
        cx_json_list item = cx_json_list_begin(json->arena);
        cx_json_put_str(&item, "origin", s->checkpoints[i].checkpoint.origin);
        cx_json_put_digest(&item, "root", &s->checkpoints[i].checkpoint.root);
        cx_json_put_uint(&item, "size", s->checkpoints[i].checkpoint.size);
        cx_json_add_object(&kept, &item);
    }
    cx_json_put_array(&ledger, "checkpoints", &kept);
    cx_json_put_uint(&ledger, "commits", s->tables.log_commits);
    cx_json_put_uint(&ledger, "entries", s->entries);
    cx_cli_index_json(&ledger, &s->index, &s->tables);
    cx_json_put_uint(&ledger, "log_bytes", s->log_bytes);
    cx_json_put_str(&ledger, "scheme", cx_scheme_name(s->scheme));
    cx_json_put_uint(&ledger, "segments", s->segments);
    cx_json_put_uint(&ledger, "session_files", s->sessions);
    cx_json_put_uint(&ledger, "table_commits", s->tables.table_commits);
    cx_json_put_uint(&ledger, "unread_files", s->unread);
    cx_json_put_object(json, "ledger", &ledger);
}

static void write_owner_json(const status_job *s, cx_json_list *json)
{
    cx_json_list owner = cx_json_list_begin(json->arena);
    if (!s->owner.held) {
        cx_json_put_null(json, "owner");
        return;
    }
    cx_json_put_maybe(&owner, "command", s->owner.command);
    cx_json_put_uint(&owner, "pid", strtoull(s->owner.pid, NULL, 10));
    cx_json_put_bool(&owner, "serves_socket", s->owner.socket);
    cx_json_put_object(json, "owner", &owner);
}

static void write_repository_json(const status_job *s, cx_json_list *json)
{
    cx_json_list runs = cx_json_list_begin(json->arena);
    if (!s->in_repository) {
        cx_json_put_null(json, "repository");
        return;
    }
    cx_json_put_uint(&runs, "left_behind", s->dead_runs);
    cx_json_put_uint(&runs, "locks", s->locks);
    cx_json_put_str(&runs, "path", cx_str_z(s->worktree == NULL ? "" : s->worktree));
    cx_json_put_strs(&runs, "runs", s->runs, s->run_count);
    cx_json_put_uint(&runs, "stale_locks", s->stale_locks);
    cx_json_put_uint(&runs, "worktrees", s->worktrees);
    cx_json_put_object(json, "repository", &runs);
}

static cx_status write_status_json(const status_job *s, cx_buf *out, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(&s->cli->arena), home = json, disk = json;
    home = cx_json_list_begin(&s->cli->arena);
    disk = cx_json_list_begin(&s->cli->arena);
    if (s->has_space) {
        cx_json_put_uint(&disk, "free_bytes", s->free_bytes);
        cx_json_put_uint(&disk, "total_bytes", s->all_bytes);
        cx_json_put_object(&json, "disk", &disk);
    } else {
        cx_json_put_null(&json, "disk");
    }
    write_owner_json(s, &json);
    cx_json_put_bool(&home, "encrypted", false);
    cx_json_put_bool(&home, "exists", s->there);
    cx_json_put_str(&home, "path", cx_str_z(s->path));
    cx_json_put_bool(&home, "private", s->there && is_private(s));
    cx_json_put_uint(&home, "tokens", s->tokens);
    cx_json_put_object(&json, "home", &home);
    write_ledger_json(s, &json);
    write_repository_json(s, &json);
    cx_json_put_str(&json, "version", cx_str_z(cx_version()));
    return cx_cli_end_json(&json, out, err);
}

/* --- the command ------------------------------------------------------------------------------ */

static int run_status(cx_cli *cli, const cx_cli_args *args)
{
    status_job s = {.cli = cli, .args = args};
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = read_status(&s, &err);
    if (!cx_failed(status) && cx_cli_has(args, "json"))
        status = write_status_json(&s, &out, &err);
    else if (!cx_failed(status))
        print_status(&s, &out);
    int code;
    if (cx_failed(status))
        code = cx_cli_ledger_fail(cli, args, &err);
    else
        code = cx_cli_answer(cli, &out,
                             s.ledger_err.code == CX_OK ? CX_EXIT_HOLDS : CX_EXIT_UNCHECKED);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_DB,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPT_FLAG("roots", 0, "Compute the roots of a large ledger too, which may take long."),
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_status = {
    .name = "status",
    .purpose = "show the state of ledger, roots, tables, writer, runs and disk",
    .about = "Shows the data directory and its size, each actor with its overall root and newest "
             "snapshot, the checkpoint signed last, the lag of tables and index, the process that "
             "owns the data directory, and in a git repository the active governed runs with locks "
             "and work trees. It only reads, also while a server or a run owns the data directory. "
             "'cortex verify' checks the data, 'cortex doctor' the machine.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 shown\n2 usage error\n3 the ledger cannot be read, or there is none",
    .example = "cortex status --json",
    .run = run_status,
};
