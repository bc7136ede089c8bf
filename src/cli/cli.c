/*
 * cli.c - what the commands share.
 */
#include "cli/cli.h"

#include <cortex/lattice.h>
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_where.h"
#include "recorder/api.h"
#include "provenance/api.h"
#include "server/api.h"

/* The name of what went wrong: the library's own, else by kind. */
static const char *error_name(const cx_err *err)
{
    if (err->tag != NULL)
        return err->tag;
    switch (err->code) {
    case CX_E_NOMEM: return "U_NOMEM";
    case CX_E_LIMIT: return "U_LIMIT";
    case CX_E_USAGE: return "U_USAGE";
    case CX_E_FORMAT: return "U_SHAPE";
    case CX_E_SYNTAX:
    case CX_E_MORE: return "U_SYNTAX";
    case CX_E_NOT_FOUND: return err->os_errno != 0 ? "U_IO" : "U_NOT_FOUND";
    default: return "U_IO";
    }
}

void cx_cli_write_error_json(cx_cli *cli, const cx_err *err)
{
    cx_buf line;
    uint64_t byte = err->offset == CX_NO_OFFSET ? 0 : err->offset;
    cx_buf_init(&line, cli->alloc);
    cx_buf_printf(&line,
                  "{\"error\":{\"byte\":%llu,\"code\":\"%s\",\"detail\":", (unsigned long long)byte,
                  error_name(err));
    cx_json_write_str(&line, cx_str_z(err->message), CX_JSON_PY_COMPACT);
    cx_buf_printf(&line, ",\"line\":%llu", (unsigned long long)err->line);
    if (cli->governed) {
        cx_buf_add_z(&line, ",\"message\":");
        cx_json_write_str(&line, cx_str_z(err->message), CX_JSON_PY_COMPACT);
    }
    cx_buf_add_z(&line, "}}\n");
    if (!line.failed)
        cx_cli_out_write(&cli->out, cx_buf_str(&line));
    cx_buf_done(&line);
}

int cx_cli_fail(cx_cli *cli, const char *path, const cx_err *err, bool json)
{
    uint64_t byte = err->offset == CX_NO_OFFSET ? 0 : err->offset;
    if (err->code == CX_E_USAGE)
        cx_cli_complain("%s: %s", path, err->message);
    else if (cli->governed && err->line == 0 && byte == 0) /* not about a place in a file */
        cx_cli_complain("%s: %s: %s", path, error_name(err), err->message);
    else
        cx_cli_complain("%s:%llu:%llu: %s: %s", path, (unsigned long long)err->line,
                        (unsigned long long)byte, error_name(err), err->message);
    if (json)
        cx_cli_write_error_json(cli, err);
    return err->code == CX_E_USAGE ? CX_EXIT_USAGE : CX_EXIT_UNCHECKED;
}

static bool asks_for_json(const cx_cli_args *args)
{
    for (size_t i = 0; i < args->given_count; i++) {
        const char *name = args->command->options[args->given[i].option].name;
        const char *value = args->given[i].values[0];
        if (strcmp(name, "json") == 0 ||
            (strcmp(name, "format") == 0 && value != NULL && strcmp(value, "json") == 0))
            return true;
    }
    return false;
}

int cx_cli_misuse(const cx_cli_args *args, const char *message)
{
    if (args->cli != NULL && asks_for_json(args)) {
        cx_err err = {0};
        if (cx_failed(cx_fail(&err, CX_E_USAGE, "%s", message)))
            cx_cli_write_error_json(args->cli, &err);
    }
    cx_cli_complain("%s: %s", args->command->name, message);
    cx_cli_remark("See 'cortex help %s'.", args->command->name);
    return CX_EXIT_USAGE;
}

static int write_answer(cx_cli *cli, const cx_buf *answer, bool exact, int exit_code)
{
    cx_err err;
    if (cx_failed(cx_buf_check(answer, &err))) {
        cx_cli_complain("%s", err.message);
        return CX_EXIT_UNCHECKED;
    }
    if (exact)
        cx_cli_out_write_exact(&cli->out, cx_buf_bytes(answer));
    else
        cx_cli_out_write(&cli->out, cx_buf_str(answer));
    return exit_code;
}

int cx_cli_answer(cx_cli *cli, cx_buf *answer, int exit_code)
{
    return write_answer(cli, answer, false, exit_code);
}

int cx_cli_answer_exact(cx_cli *cli, cx_buf *answer, int exit_code)
{
    return write_answer(cli, answer, true, exit_code);
}

static cx_lattice_options reading_options(cx_cli *cli, const cx_cli_args *args, cx_cli_keep keep,
                                          cx_cli_progress *progress)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    uint64_t threads = cx_cli_number(args, "threads", 0);
    uint64_t depth = cx_cli_number(args, "max-depth", 0);
    options.alloc = cli->alloc;
    options.threads = threads > 64 ? 64 : (unsigned)threads;
    options.max_depth = depth > 1024 ? 1024 : (uint32_t)depth; /* the format's limit, §1.2 */
    options.max_bytes = cx_cli_number(args, "max-bytes", 0);
    options.keep_deltas = keep == CX_CLI_KEEP_DELTAS;
    options.keep_seals = keep == CX_CLI_KEEP_SEALS;
    options.progress = cx_cli_progress_step;
    options.progress_arg = progress;
    return options;
}

/*
 * "run/<run_id>" or "run/<run_id>/<task id or governor>": a run of the repository that this is
 * started in, or of $CORTEXPILOT_RUNTIME_ROOT.
 */
static cx_status open_run(cx_cli *cli, const char *name, const cx_lattice_options *options,
                          cx_lattice **out, cx_err *err)
{
    const char *slash = strchr(name, '/');
    cx_str run_id = slash == NULL ? cx_str_z(name) : cx_str_from(name, (size_t)(slash - name));
    cx_str branch = slash == NULL ? (cx_str){NULL, 0} : cx_str_z(slash + 1);
    cx_run_store store;
    cx_run_bundle *bundle = NULL;
    cx_bytes events;
    CX_TRY(cx_cli_run_store(cli, NULL, false, &store, err));
    CX_TRY(cx_run_view_open(&store, run_id, &bundle, err));
    cx_buf_clear(&cli->recorded);
    cx_status status =
        cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, err);
    if (!cx_failed(status))
        status = cx_run_lattice(cx_bytes_str(events), branch, options, &cli->recorded, out, err);
    cx_run_bundle_close(bundle);
    return status;
}

/* The same for a bundle at any path. */
static cx_status open_bundle(cx_cli *cli, const char *path, const cx_lattice_options *options,
                             cx_lattice **out, cx_err *err)
{
    cx_run_bundle *bundle = NULL;
    cx_bytes events;
    CX_TRY(cx_run_bundle_open(cli->io, cli->alloc, path, &bundle, err));
    cx_buf_clear(&cli->recorded);
    cx_status status =
        cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, err);
    if (!cx_failed(status))
        status = cx_run_lattice(cx_bytes_str(events), (cx_str){NULL, 0}, options, &cli->recorded,
                                out, err);
    cx_run_bundle_close(bundle);
    return status;
}

/* A folder without events is read like any other path: the answer is then what is wrong with that.
 */
static bool is_bundle(const char *path, cx_arena *arena)
{
    cx_facts facts;
    cx_str events = cx_arena_printf(arena, "%s/events.jsonl", path);
    return events.data != NULL && !cx_failed(cx_path_facts(events.data, true, &facts, NULL)) &&
           facts.kind == CX_FILE_REGULAR;
}

/* Only reads, so another process may own the data directory. */
static cx_status open_recorded(cx_cli *cli, const cx_cli_args *args, const char *branch,
                               const cx_lattice_options *options, cx_lattice **out, cx_err *err)
{
    const char *path;
    cx_home *home = NULL;
    cx_str name = branch[0] == 0 ? (cx_str){NULL, 0} : cx_str_z(branch);
    const cx_home_options reading = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    CX_TRY(cx_cli_home_path(cli, args, &path, err));
    CX_TRY(cx_home_open(path, &reading, &home, err));
    cx_buf_clear(&cli->recorded);
    const cx_external_options wanted = {.branch = name};
    cx_status status = cx_external_is(name)
                           ? cx_external_lattice(home, &wanted, options, &cli->recorded, out, err)
                           : cx_recorder_lattice(home, name, options, &cli->recorded, out, err);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
    return status;
}

cx_lattice *cx_cli_open_lattice(cx_cli *cli, const cx_cli_args *args, const char *path,
                                cx_cli_keep keep, int *out_exit)
{
    cx_cli_progress progress;
    cx_cli_progress_init(&progress, cli->io, "reading");
    const cx_lattice_options options = reading_options(cli, args, keep, &progress);
    cx_lattice *lattice = NULL;
    cx_err err;
    bool in_memory = cli->standard_input != NULL && strcmp(path, "-") == 0;
    cx_status status;
    if (strncmp(path, "@run/", 5) == 0)
        status = open_run(cli, path + 5, &options, &lattice, &err);
    else if (path[0] == '@')
        status = open_recorded(cli, args, path + 1, &options, &lattice, &err);
    else if (in_memory)
        status = cx_lattice_open_bytes(cx_buf_bytes(cli->standard_input), &options, &lattice, &err);
    else if (is_bundle(path, &cli->arena))
        status = open_bundle(cli, path, &options, &lattice, &err);
    else
        status = cx_lattice_open(path, &options, &lattice, &err);
    cx_cli_progress_end(&progress);
    if (cx_failed(status))
        *out_exit = path[0] == '@' ? cx_cli_ledger_fail(cli, args, &err)
                                   : cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
    return lattice;
}
