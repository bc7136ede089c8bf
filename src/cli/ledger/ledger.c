/*
 * ledger.c - runs a command on a data directory: finds it and the actor, opens it, closes it,
 * reports errors.
 */
#include "cli/ledger/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "cli/fleet/part_home.h"
#include "socket/api.h"
#include "recorder/api.h"

/* --- where and who -------------------------------------------------------------------------- */

static const char *environment_value(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

cx_status cx_cli_home_path(cx_cli *cli, const cx_cli_args *args, const char **out, cx_err *err)
{
    const char *given = cx_cli_value(args, "home");
    const char *data = environment_value("XDG_DATA_HOME"), *home = environment_value("HOME");
    if (given == NULL)
        given = environment_value("CORTEX_HOME");
    if (given == NULL)
        given = cli->configured_home;
    cx_str path;
    if (given != NULL && given[0] == 0)
        return cx_fail(err, CX_E_USAGE, "option --home: expected the name of a folder");
    if (given != NULL && cx_cli_is_database(given))
        return cx_cli_part_open(cli, given, out, err);
    /* The XDG rule: a relative path there is to be ignored. */
    if (given != NULL)
        path = cx_arena_printf(&cli->arena, "%s", given);
    else if (data != NULL && data[0] == '/')
        path = cx_arena_printf(&cli->arena, "%s/cortex", data);
    else if (home != NULL)
        path = cx_arena_printf(&cli->arena, "%s/.local/share/cortex", home);
    else
        return cx_fail(err, CX_E_USAGE,
                       "expected --home DIR: neither $CORTEX_HOME nor $XDG_DATA_HOME nor $HOME is "
                       "set");
    if (path.data == NULL)
        return cx_fail_nomem(err);
    *out = path.data;
    return CX_SUCCESS;
}

cx_status cx_cli_actor_name(cx_cli *cli, const cx_cli_args *args, cx_str *out, cx_err *err)
{
    const char *name = cx_cli_value(args, "actor");
    const char *from = "option --actor";
    if (name == NULL) {
        from = "$CORTEX_ACTOR";
        name = environment_value("CORTEX_ACTOR");
    }
    if (name == NULL && cli->configured_actor != NULL) {
        from = "the configuration's actor";
        name = cli->configured_actor;
    }
    if (name == NULL) {
        from = "$LOGNAME or $USER";
        name = environment_value("LOGNAME") != NULL ? environment_value("LOGNAME")
                                                    : environment_value("USER");
    }
    if (name == NULL)
        name = "local";
    *out = cx_arena_copy_str(&cli->arena, cx_str_z(name));
    if (out->data == NULL)
        return cx_fail_nomem(err);
    if (!cx_actor_ok(*out))
        return cx_fail(err, CX_E_USAGE,
                       "%s: found '%s', expected 1 to 256 bytes of text without '/' and controls",
                       from, name);
    return CX_SUCCESS;
}

cx_status cx_cli_default_origin(cx_cli *cli, const char *home_path, cx_str actor, cx_str *out,
                                cx_err *err)
{
    char *real = realpath(home_path, NULL);
    const char *path = real == NULL ? home_path : real;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    *out = cx_arena_printf(&cli->arena, "%s/%.*s", name[0] == 0 ? "cortex" : name, (int)actor.size,
                           actor.data);
    free(real);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    cx_cli_progress *progress = arg;
    progress->label = what;
    cx_cli_progress_step(progress, done, total);
}

cx_home_options cx_cli_home_options(cx_cli *cli, cx_cli_access access, cx_cli_progress *progress)
{
    return (cx_home_options){
        .alloc = cli->alloc,
        .io = cli->io,
        .read_only = access != CX_CLI_WRITE,
        .or_remote = access == CX_CLI_WRITE,
        .reach = access == CX_CLI_WRITE && cli->part != NULL ? cx_cli_part_reach : NULL,
        .reach_arg = cli,
        .room = access == CX_CLI_WRITE && cli->part != NULL ? cx_cli_part_room : NULL,
        .room_arg = cli,
        .derivers = &cx_recorder_deriver,
        .deriver_count = 1,
        .progress = progress == NULL ? NULL : show_progress,
        .progress_arg = progress,
        .counted = progress == NULL ? NULL : cx_cli_progress_count,
        .archives = cli->archives && access == CX_CLI_WRITE,
        .archiving = {.keep = cli->archive_keep,
                      .age_ns = cli->archive_age_ns,
                      .folder = cli->archive_to,
                      .start_ms = CX_CLI_ARCHIVING_STARTS_MS},
    };
}

/* --- what went wrong ------------------------------------------------------------------------ */

/* What to do about it, by the name of what went wrong. */
static const struct advice {
    const char *tag, *text;
} advices[] = {
    {"Locked", "wait until it ends; commands that read work meanwhile"},
    {"AnswerLost", "'cortex log' shows whether it was recorded; check that before you repeat it"},
    {"HolderGone", "nothing was changed; try again"},
    {"VersionConflict",
     "another writer changed it first: read it with 'cortex memory get' and try again"},
    {"HeadConflict",
     "another writer changed it first: read it with 'cortex memory get' and try again"},
    {"AlreadyExists", "'cortex memory update' writes a new version of an existing memory"},
    {"ManifestRootMismatch", "make a new snapshot with 'cortex snapshot', or prove the state as it "
                             "was with --at SNAPSHOT"},
    {"SnapshotNotFound", "'cortex snapshot list' lists the snapshots; 'cortex snapshot' takes one"},
    {"NotCommitted", "only payloads written as committed can be erased; see 'cortex append'"},
    {"RootMismatch", "'cortex verify --home' shows the differences; 'cortex tables rebuild "
                     "--replace' restores the tables from the log"},
    {"LogDamaged", "'cortex verify --home' shows where; make a copy before you write"},
    {"RateLimited", "try again in a second"},
    {"UnknownAgent", "--key AGENT=KEY gives the key of the grantor"},
    {"NoKeyResolver", "--key AGENT=KEY gives the key of the grantor"},
    {"NoActionSet", "'cortex run list' and 'cortex watch --list' list what there is; --fresh "
                    "records a set of it"},
    {"NewerFormat",
     "nothing was changed; use that version or a later one, or restore a backup from "
     "before the upgrade: 'cortex help restore'"},
    {"BadFormatFile",
     "nothing was changed; if no later version of cortex was used here, remove the "
     "file: the log's own headers are checked in any case"},
    {"SchemeUnsupported", "the transparency-log formats exist for cortex-1 only"},
};

static const char *advice_for(const char *tag)
{
    for (size_t i = 0; tag != NULL && i < CX_COUNT_OF(advices); i++)
        if (strcmp(tag, advices[i].tag) == 0)
            return advices[i].text;
    return NULL;
}

/*
 * 1: the ledger rejects the call. 2: the call is invalid, or names something that does not
 * exist. 3: no answer is possible. 4: a legal hold.
 */
static int exit_code_of(const cx_err *err)
{
    if (err->tag != NULL && strcmp(err->tag, "OnHold") == 0)
        return CX_EXIT_REJECTED;
    if (err->tag != NULL && strcmp(err->tag, "NewerFormat") == 0)
        return CX_EXIT_UNCHECKED;
    switch (err->code) {
    case CX_E_EXISTS:
    case CX_E_CONFLICT: return CX_EXIT_BROKEN;
    case CX_E_DENIED: return err->os_errno == 0 ? CX_EXIT_BROKEN : CX_EXIT_UNCHECKED;
    case CX_E_USAGE:
    case CX_E_LIMIT:
    case CX_E_UNSUPPORTED: return CX_EXIT_USAGE;
    case CX_E_NOT_FOUND:
        return err->os_errno != 0 || (err->tag != NULL && strcmp(err->tag, "NoHome") == 0)
                   ? CX_EXIT_UNCHECKED
                   : CX_EXIT_USAGE;
    case CX_E_FORMAT:
        return err->tag != NULL && strcmp(err->tag, "BadURI") == 0 ? CX_EXIT_USAGE
                                                                   : CX_EXIT_UNCHECKED;
    default: return CX_EXIT_UNCHECKED;
    }
}

int cx_cli_ledger_fail(cx_cli *cli, const cx_cli_args *args, const cx_err *given)
{
    cx_err explained = *given;
    const cx_err *err = &explained;
    cx_cli_part_explain(cli, &explained);
    int code = exit_code_of(err);
    const char *advice = advice_for(err->tag);
    cx_cli_complain("%s: %s%s%s", args->command->name, err->tag == NULL ? "" : err->tag,
                    err->tag == NULL ? "" : ": ", err->message);
    if (advice != NULL)
        cx_cli_remark("%s", advice);
    else if (code == CX_EXIT_USAGE && err->code == CX_E_USAGE)
        cx_cli_remark("See 'cortex help %s'.", args->command->name);
    if (cx_cli_has(args, "json"))
        cx_cli_write_error_json(cli, err);
    return code;
}

/* --- running ---------------------------------------------------------------------------------- */

/* An unknown actor is usually a mistyped name: lists the existing ones. */
static void list_actors(cx_cli_ledger *l)
{
    const cx_actor_info *actors;
    size_t count;
    cx_err err;
    if (cx_failed(cx_home_actors_from(l->home, 0, 9, l->arena, &actors, &count, &err)))
        return;
    cx_buf line;
    cx_buf_init(&line, l->cli->alloc);
    for (size_t i = 0; i < count && i < 8; i++)
        cx_buf_printf(&line, "%s%.*s", i == 0 ? "" : ", ", (int)actors[i].name.size,
                      actors[i].name.data);
    if (count > 8)
        cx_buf_add_z(&line, ", ..");
    const char *text = cx_buf_z(&line);
    if (count == 0)
        cx_cli_complain("nothing is recorded in %s yet", l->path);
    else if (text != NULL)
        cx_cli_complain("the actors of %s are: %s (see --actor)", l->path, text);
    cx_buf_done(&line);
}

/* Commands own a data directory only briefly, so a command that finds it locked waits before it
 * fails. */
#define LOCK_WAIT_MS 5000
#define LOCK_POLL_MS 20

/* Sleeps a moment; false when the time for waiting is over. */
static bool pause_until(const cx_io *io, uint64_t end)
{
    if (io->monotonic_ns(io) >= end)
        return false;
    cx_thread_sleep_ms(LOCK_POLL_MS);
    return true;
}

static cx_status open_when_free(cx_cli_ledger *l, const cx_home_options *options, cx_err *err)
{
    const cx_io *io = l->cli->io;
    uint64_t end = io->monotonic_ns(io) + LOCK_WAIT_MS * UINT64_C(1000000);
    cx_status status;
    do {
        status = cx_home_open(l->path, options, &l->home, err);
    } while (status.code == CX_E_BUSY && pause_until(io, end));
    return status;
}

cx_status cx_cli_lock_signing(cx_cli_ledger *l, cx_err *err)
{
    const cx_io *io = l->cli->io;
    uint64_t end = io->monotonic_ns(io) + LOCK_WAIT_MS * UINT64_C(1000000);
    cx_str path = cx_arena_printf(l->arena, "%s/signing", l->path);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    int failed = io->open(io, path.data, CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE, &l->signing);
    if (failed != 0) {
        l->signing = CX_FILE_NONE;
        return cx_fail_os(err, -failed, "cannot open %s", path.data);
    }
    do {
        failed = io->lock(io, l->signing);
    } while (failed == -EAGAIN && pause_until(io, end));
    if (failed == -EAGAIN)
        return cx_fail_at(
            err, CX_E_BUSY, "Locked", CX_NO_OFFSET,
            "another command is signing for the data directory %s; try again when it has finished",
            l->path);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot lock %s", path.data);
}

/* Who only reads writes no tables: the next command would do the same work again. */
static void say_that_tables_lag(const cx_cli_ledger *l, const cx_cli_job *job,
                                const cx_cli_progress *progress)
{
    if (job->access == CX_CLI_WRITE || !progress->stepped)
        return;
    cx_cli_complain("note: the tables of %s lack what the log has, so this command derived them "
                    "for itself; 'cortex tables rebuild' writes them once for all commands",
                    l->path);
}

static void show_searching(void *arg, uint64_t count)
{
    cx_cli_ledger *l = arg;
    cx_cli_progress_step(&l->searching, count, l->memories);
}

static cx_status open_memory(cx_cli_ledger *l, cx_err *err)
{
    const cx_memory_options options = {.looked = show_searching, .looked_arg = l};
    return cx_memory_open(l->home, l->actor, &options, &l->memory, err);
}

static cx_status open_home(cx_cli_ledger *l, const cx_cli_job *job, cx_err *err)
{
    cx_cli_progress progress;
    cx_cli_progress_init(&progress, l->cli->io, "tables");
    cx_home_options options = cx_cli_home_options(l->cli, job->access, &progress);
    cx_cli_part_renew(l->cli); /* a job before this one may have written through a node */
    cx_status status = open_when_free(l, &options, err);
    cx_cli_progress_end(&progress);
    CX_TRY(status);
    say_that_tables_lag(l, job, &progress);
    if (job->access == CX_CLI_SIGN)
        CX_TRY(cx_cli_lock_signing(l, err));
    uint64_t torn = cx_home_torn_bytes(l->home);
    if (torn != 0 && job->access == CX_CLI_WRITE)
        cx_cli_complain(
            "note: removed %llu bytes of an unacknowledged write from the end of the log",
            (unsigned long long)torn);
    /* A reading command needs an existing actor. */
    cx_actor_info actor = {.live_memories = 0};
    if (job->wants_memory && job->access != CX_CLI_WRITE)
        CX_TRY(cx_home_actor(l->home, l->actor, &actor, err));
    l->memories = actor.live_memories + actor.tombstoned;
    return job->wants_memory ? open_memory(l, err) : CX_SUCCESS;
}

cx_status cx_cli_keep_reading(cx_cli_ledger *l, cx_err *err)
{
    bool wants_memory = l->memory != NULL;
    if (!cx_home_is_remote(l->home))
        return CX_SUCCESS;
    cx_memory_close(l->memory);
    l->memory = NULL;
    cx_status status = cx_home_close(l->home, err);
    l->home = NULL;
    CX_TRY(status);
    cx_cli_part_renew(l->cli);
    const cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_READ, NULL);
    CX_TRY(cx_home_open(l->path, &options, &l->home, err));
    return wants_memory ? open_memory(l, err) : CX_SUCCESS;
}

static cx_status run_steps(cx_cli_ledger *l, const cx_cli_job *job, void *state, cx_err *err)
{
    CX_TRY(cx_cli_home_path(l->cli, l->args, &l->path, err));
    if (cx_cli_takes(l->args, "actor"))
        CX_TRY(cx_cli_actor_name(l->cli, l->args, &l->actor, err));
    if (job->prepare != NULL)
        CX_TRY(job->prepare(l, state, err));
    CX_TRY(open_home(l, job, err));
    cx_cli_progress_init(&l->searching, l->cli->io, "memories");
    cx_status status = job->work(l, state, err);
    cx_cli_progress_end(&l->searching);
    return status;
}

int cx_cli_run_job(cx_cli *cli, const cx_cli_args *args, const cx_cli_job *job, void *state)
{
    cx_err err = {0}, close_err = {0};
    cx_cli_ledger l = {.cli = cli, .args = args, .arena = &cli->arena, .signing = CX_FILE_NONE};
    l.json = cx_cli_has(args, "json");
    cx_buf_init(&l.out, cli->alloc);
    cx_status status = run_steps(&l, job, state, &err);
    int code;
    if (cx_failed(status)) {
        code = cx_cli_ledger_fail(cli, args, &err);
        if (l.home != NULL && err.tag != NULL && strcmp(err.tag, "NoActor") == 0)
            list_actors(&l);
    } else {
        code = cx_cli_answer(cli, &l.out, l.exit_code);
    }
    cx_memory_close(l.memory);
    /* What was acknowledged is in the log; tables that could not be flushed are rebuilt next
     * time. */
    if (cx_failed(cx_home_close(l.home, &close_err)))
        cx_cli_complain(
            "%s: note: the tables could not be brought up to date (%s); the log is complete",
            args->command->name, close_err.message);
    if (l.signing != CX_FILE_NONE)
        (void)cli->io->close(cli->io, l.signing);
    cx_buf_done(&l.out);
    return code;
}
