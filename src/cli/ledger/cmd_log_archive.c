/*
 * cmd_log_archive.c - `cortex log archive` and `log restore`: full segments of the log compressed,
 * here or on another disk, and back.
 */
#include <errno.h>

#include "cli/ledger/ledger.h"
#include "ledger/api.h"
#include "log/api.h"
#include "os/api.h"

typedef struct archiving {
    bool restore;
    cx_log_archive_options options;
    cx_cli_progress progress;
} archiving;

static bool show_step(void *arg, uint32_t done, uint32_t count)
{
    archiving *a = arg;
    cx_cli_progress_step(&a->progress, done, count);
    return true;
}

/* The folder of --to, absolute, made when it is not there; "" for the log's own. */
static cx_status read_target(cx_cli_ledger *l, archiving *a, cx_err *err)
{
    const char *to = cx_cli_value(l->args, "to");
    cx_buf real;
    if (to == NULL || to[0] == 0) {
        a->options.folder = to;
        return CX_SUCCESS;
    }
    int failed = l->cli->io->mkdir(l->cli->io, to);
    if (failed != 0 && failed != -EEXIST)
        return cx_fail_os(err, -failed, "cannot make %s", to);
    cx_buf_init(&real, l->cli->alloc);
    cx_status status = cx_path_real(to, &real, err);
    if (!cx_failed(status)) {
        a->options.folder = cx_arena_copy_str(l->arena, cx_buf_str(&real)).data;
        if (a->options.folder == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&real);
    return status;
}

static cx_status read_age(const cx_cli_ledger *l, archiving *a, cx_err *err)
{
    const char *after = cx_cli_value(l->args, "after");
    if (after != NULL && !cx_age_parse(cx_str_z(after), &a->options.age_ns))
        return cx_fail(err, CX_E_USAGE,
                       "option --after: found '%.40s', expected an age such as 30d (also m, h, w, "
                       "y)",
                       after);
    return CX_SUCCESS;
}

static cx_status write_done(cx_cli_ledger *l, const archiving *a, const cx_log_archived *done,
                            cx_err *err)
{
    cx_log_space space;
    CX_TRY(cx_cli_keep_reading(l, err));
    CX_TRY(cx_home_log_space(l->home, &space, err));
    if (l->json) {
        cx_json_list json = cx_json_list_begin(l->arena);
        cx_json_put_uint(&json, "archived", space.archived);
        cx_json_put_uint(&json, "bytes_stored", space.bytes_stored);
        cx_json_put_uint(&json, "bytes_unpacked", space.bytes);
        cx_json_put_uint(&json, "changed", done->segments);
        if (space.elsewhere[0] != 0)
            cx_json_put_str(&json, "folder", cx_str_z(space.elsewhere));
        else
            cx_json_put_null(&json, "folder");
        cx_json_put_uint(&json, "segments", space.segments);
        return cx_cli_end_json(&json, &l->out, err);
    }
    cx_buf_printf(&l->out, "%s %u segments", a->restore ? "brought back" : "archived",
                  (unsigned)done->segments);
    if (done->segments != 0)
        cx_buf_printf(&l->out, ": %llu bytes %s %llu",
                      (unsigned long long)(a->restore ? done->bytes_packed : done->bytes_unpacked),
                      a->restore ? "became" : "take",
                      (unsigned long long)(a->restore ? done->bytes_unpacked : done->bytes_packed));
    cx_buf_printf(&l->out, "\n%u of %u segments are archived; the log takes %llu bytes\n",
                  (unsigned)space.archived, (unsigned)space.segments,
                  (unsigned long long)space.bytes_stored);
    if (space.elsewhere[0] != 0) {
        cx_buf_add_z(&l->out, "archives go to ");
        cx_shown_add(&l->out, cx_str_z(space.elsewhere));
        cx_buf_add_byte(&l->out, '\n');
    }
    return CX_SUCCESS;
}

static cx_status archive_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    archiving *a = arg;
    cx_log_archived done;
    uint64_t keep = a->restore ? 0 : cx_cli_number(l->args, "keep", 2);
    a->options.keep = keep > UINT32_MAX ? UINT32_MAX : (uint32_t)keep;
    a->options.go_on = show_step;
    a->options.arg = a;
    if (!a->restore) {
        CX_TRY(read_age(l, a, err));
        CX_TRY(read_target(l, a, err));
    }
    cx_cli_progress_init(&a->progress, l->cli->io, "segments");
    cx_status status = a->restore ? cx_home_log_restore(l->home, &a->options, &done, err)
                                  : cx_home_log_archive(l->home, &a->options, &done, err);
    cx_cli_progress_end(&a->progress);
    CX_TRY(status);
    return write_done(l, a, &done, err);
}

static int run_job(cx_cli *cli, const cx_cli_args *args, bool restore)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, NULL, archive_job};
    archiving a = {.restore = restore};
    if (restore && cli->archives)
        return cx_cli_misuse(args, "the configuration archives segments, so they would not stay; "
                                   "remove its section [archive] first ('cortex config' shows "
                                   "where it is)");
    cli->archives = false; /* this command does it itself */
    return cx_cli_run_job(cli, args, &job, &a);
}

static int run_log_archive(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, false);
}

static int run_log_restore(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, true);
}

#define EXITS                                                                                      \
    "0 done\n2 usage error\n"                                                                      \
    "3 not done: no zstd, a full disk, no answer of the writer process; each segment is whole in " \
    "one of both forms"

static const cx_cli_option archive_options[] = {
    CX_CLI_OPT("keep", 0, CX_CLI_COUNT, "N",
               "The newest N segments stay as they are; default 2. The one that is being written "
               "to always does."),
    CX_CLI_OPT("after", 0, CX_CLI_TEXT, "AGE",
               "Only segments that were last written to longer ago than AGE, such as 30d; default: "
               "all."),
    CX_CLI_OPT(
        "to", 0, CX_CLI_FILE, "DIR",
        "Put archives into DIR, now and later: another disk, say. It is noted in the log's "
        "folder; without DIR in place nothing can be read. Empty: the log's own folder, which "
        "is the default."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_log_archive = {
    .name = "log archive",
    .purpose = "compress full segments of the log",
    .about =
        "Compresses segments that are full with zstd, in blocks that can be read one by one. "
        "Everything goes on as before: proofs, verification, backups, and erasing, which makes "
        "the one archive anew. Each archive is compared with its segment byte by byte before "
        "the segment is removed. 'zstd -d' restores a segment without this program.\n\n"
        "A process that has the data directory open, such as a server, archives on behalf of this "
        "command. With a section [archive] in the configuration, processes that write for longer "
        "than some seconds archive by themselves, and this command takes its defaults from there.",
    .options = archive_options,
    .option_count = CX_COUNT_OF(archive_options),
    .exits = EXITS,
    .example = "cortex log archive\n"
               "cortex log archive --keep 16 --to /mnt/slow/cortex-log",
    .run = run_log_archive,
};

static const cx_cli_option restore_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                                CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_log_restore = {
    .name = "log restore",
    .purpose = "bring archived segments of the log back",
    .about = "Unpacks all archives into the segments that they were, compares, and removes them. "
             "Programs from before archives can then open the data directory again. Refused while "
             "the configuration has a section [archive].",
    .options = restore_options,
    .option_count = CX_COUNT_OF(restore_options),
    .exits = EXITS,
    .example = "cortex log restore",
    .run = run_log_restore,
};
