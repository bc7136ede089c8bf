/*
 * cli.c - what the commands share.
 */
#include "cli/cli.h"

#include <cortex/lattice.h>
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_where.h"
#include "import/api.h"
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

/* Some messages begin with the path, because they can be about one of several files. */
static const char *after_path(const char *message, const char *path)
{
    size_t size = strlen(path);
    bool has_it = strncmp(message, path, size) == 0 && strncmp(message + size, ": ", 2) == 0;
    return has_it ? message + size + 2 : message;
}

int cx_cli_fail(cx_cli *cli, const char *path, const cx_err *err, bool json)
{
    uint64_t byte = err->offset == CX_NO_OFFSET ? 0 : err->offset;
    const char *message = after_path(err->message, path);
    if (err->code == CX_E_USAGE)
        cx_cli_complain("%s: %s", path, message);
    else if (err->line == 0 && byte == 0) /* not about a place in a file */
        cx_cli_complain("%s: %s: %s", path, error_name(err), message);
    else
        cx_cli_complain("%s:%llu:%llu: %s: %s", path, (unsigned long long)err->line,
                        (unsigned long long)byte, error_name(err), message);
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

static bool is_about_shape(const cx_err *err)
{
    return err->tag != NULL &&
           (strcmp(err->tag, "U_SHAPE") == 0 || strcmp(err->tag, "U_EMPTY") == 0);
}

/*
 * JSON that is neither a lattice nor of a format with an importer.  What is not even faithful JSON
 * is reported as that.
 */
static cx_status fail_external(const cx_import_guessed *guessed, cx_status opened,
                               cx_lattice **lattice, cx_err *err)
{
    if (guessed->is_blank && cx_failed(opened) && err->tag != NULL &&
        strcmp(err->tag, "U_EMPTY") == 0)
        return cx_fail_at(err, opened.code, "U_EMPTY", CX_NO_OFFSET,
                          "found an empty file, expected a session or a history: an agent that "
                          "runs writes its file with the first answer");
    if (cx_failed(opened) && !is_about_shape(err) && guessed->other == NULL)
        return opened;
    if (!cx_failed(opened))
        cx_lattice_close(*lattice);
    *lattice = NULL;
    /* What is no text of JSON keeps the code of a lattice that is none (U_SYNTAX, U_UTF8). */
    bool is_text = guessed->other != NULL && cx_failed(opened) && err->tag != NULL &&
                   !is_about_shape(err) && !cx_str_is(cx_str_z(guessed->other->name), "sqlite");
    if (guessed->other != NULL)
        return cx_fail_at(err, is_text ? opened.code : CX_E_UNSUPPORTED,
                          is_text ? err->tag : "U_FOREIGN", 0,
                          "found %s, expected a session or a history; %s",
                          guessed->other->description, guessed->other->advice);
    return cx_fail_at(err, CX_E_UNSUPPORTED, "U_FOREIGN", 0,
                      "found JSON of no known format%s%s, expected a lattice or a format of "
                      "'cortex import --list'",
                      guessed->nearest == NULL ? "" : "; the nearest is ",
                      guessed->nearest == NULL ? "" : guessed->nearest);
}

cx_str cx_cli_quoted(cx_arena *arena, const char *path)
{
    cx_str quoted = {NULL, 0};
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_buf_add_sh_word(&text, cx_str_z(path));
    if (!cx_failed(cx_buf_check(&text, NULL)))
        quoted = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return quoted;
}

static cx_status add_nodes(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

/* Imports a trace of another tool, for this command alone. `bytes` NULL: the file at the path. */
static cx_status open_imported(cx_cli *cli, const char *path, const cx_bytes *bytes,
                               const char *format, const cx_lattice_options *options,
                               cx_lattice **out, cx_err *err)
{
    cx_import_options importing = CX_IMPORT_OPTIONS_INIT;
    importing.alloc = cli->alloc;
    importing.max_bytes = options->max_bytes > SIZE_MAX ? SIZE_MAX : (size_t)options->max_bytes;
    cx_buf_clear(&cli->recorded);
    CX_TRY(bytes != NULL ? cx_import_run_bytes(format, bytes, 1, &importing, add_nodes,
                                               &cli->recorded, NULL, err)
                         : cx_import_run(cli->io, format, &path, 1, &importing, add_nodes,
                                         &cli->recorded, NULL, err));
    cx_str word = cx_cli_quoted(&cli->arena, path);
    cx_cli_remark("note: %s: a %s trace, imported for this answer; it has no hashes of its own. "
                  "To keep the lattice: cortex import %s %s -o FILE",
                  path, format, format, word.data == NULL ? path : word.data);
    return cx_lattice_open_bytes(cx_buf_bytes(&cli->recorded), options, out, err);
}

/* Of text in memory. */
static cx_status open_text(cx_cli *cli, const char *path, cx_bytes text,
                           const cx_lattice_options *options, cx_lattice **out, cx_err *err)
{
    cx_import_guessed guessed;
    cx_import_guess(text, &guessed);
    if (guessed.format != NULL && !guessed.is_lattice)
        return open_imported(cli, path, &text, guessed.format, options, out, err);
    cx_status status = cx_lattice_open_bytes(text, options, out, err);
    return (guessed.is_json || guessed.other != NULL || guessed.is_blank) && !guessed.is_lattice
               ? fail_external(&guessed, status, out, err)
               : status;
}

/* Standard input is needed twice: to see what it is, and to read it. */
static cx_status open_piped(cx_cli *cli, const cx_lattice_options *options, cx_lattice **out,
                            cx_err *err)
{
    uint64_t limit = options->max_bytes;
    cx_buf_clear(&cli->piped);
    CX_TRY(cx_io_read_file(cli->io, "-", limit == 0 || limit > SIZE_MAX ? SIZE_MAX : (size_t)limit,
                           &cli->piped, err));
    return open_text(cli, "-", cx_buf_bytes(&cli->piped), options, out, err);
}

cx_status cx_cli_check_input(const char *path, cx_err *err)
{
    cx_facts facts;
    bool there = !cx_failed(cx_path_facts(path, true, &facts, NULL));
    if (there && facts.kind == CX_FILE_FOLDER)
        return cx_fail_at(err, CX_E_IO, "U_IO", 0,
                          "found a folder, expected a file; name a session's file in it");
    if (!there && strstr(path, "://") != NULL)
        return cx_fail_at(err, CX_E_IO, "U_IO", 0,
                          "found an address, expected a file; fetch it first, or pipe it: curl -sS "
                          "ADDRESS | cortex view -");
    return CX_SUCCESS;
}

static cx_status open_file(cx_cli *cli, const char *path, const cx_lattice_options *options,
                           cx_lattice **out, cx_err *err)
{
    cx_import_guessed guessed = {0};
    cx_file file;
    cx_buf head;
    cx_facts facts;
    CX_TRY(cx_cli_check_input(path, err));
    if (cx_failed(cx_path_facts(path, true, &facts, NULL)) || facts.kind != CX_FILE_REGULAR ||
        cli->io->open(cli->io, path, CX_IO_READ, &file) != 0)
        return cx_lattice_open(path, options, out, err); /* a stream, or nothing to read */
    cx_buf_init(&head, cli->alloc);
    if (!cx_failed(cx_import_read_head(cli->io, file, path, 0, &head, NULL)))
        cx_import_guess(cx_buf_bytes(&head), &guessed);
    cx_buf_done(&head);
    (void)cli->io->close(cli->io, file);
    if (guessed.format != NULL && !guessed.is_lattice)
        return open_imported(cli, path, NULL, guessed.format, options, out, err);
    cx_status status = cx_lattice_open(path, options, out, err);
    return (guessed.is_json || guessed.other != NULL || guessed.is_blank) && !guessed.is_lattice
               ? fail_external(&guessed, status, out, err)
               : status;
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
        status = open_text(cli, path, cx_buf_bytes(cli->standard_input), &options, &lattice, &err);
    else if (strcmp(path, "-") == 0)
        status = open_piped(cli, &options, &lattice, &err);
    else if (is_bundle(path, &cli->arena))
        status = open_bundle(cli, path, &options, &lattice, &err);
    else
        status = open_file(cli, path, &options, &lattice, &err);
    cx_cli_progress_end(&progress);
    if (cx_failed(status))
        *out_exit = path[0] == '@' ? cx_cli_ledger_fail(cli, args, &err)
                                   : cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
    return lattice;
}

/* --- parts of recorded histories -------------------------------------------------------------- */

/* Decimal digits, or the last part. */
static cx_status read_entry(const char *text, uint64_t entries, uint64_t *out, cx_err *err)
{
    const size_t size = strlen(text);
    *out = entries > CX_STEPS_PART ? entries - CX_STEPS_PART : 0;
    if (strcmp(text, "last") == 0)
        return CX_SUCCESS;
    *out = 0;
    for (size_t i = 0; i < size && size <= 18 && text[i] >= '0' && text[i] <= '9'; i++) {
        *out = 10 * *out + (uint64_t)(text[i] - '0');
        if (i + 1 == size)
            return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_USAGE,
                   "option --part: found '%.40s', expected the number of an entry, or last", text);
}

static void say_part(const cx_steps_extent *extent, const char *unit, uint64_t from)
{
    const uint64_t end =
        extent->entries - from > CX_STEPS_PART ? from + CX_STEPS_PART : extent->entries;
    cx_cli_remark("note: of %s 0 to %llu only %llu to %llu were read; what is said of the "
                  "history is said of these",
                  unit, (unsigned long long)(extent->entries - 1), (unsigned long long)from,
                  (unsigned long long)(end - 1));
}

static cx_status open_part_of(cx_cli *cli, cx_home *home, const char *part, cx_str branch,
                              const cx_lattice_options *options, cx_lattice **out,
                              cx_lattice_report **out_report, cx_err *err)
{
    cx_steps_extent extent;
    uint64_t from;
    const bool session = cx_str_starts(branch, CX_STR("session/"));
    cx_str none = {NULL, 0};
    CX_TRY(session ? cx_external_extent(home, branch, none, &extent, err)
                   : cx_recorder_steps_extent(home, branch, none, &extent, err));
    CX_TRY(read_entry(part, extent.entries, &from, err));
    CX_TRY(session
               ? cx_external_part(home, branch, from, options, &cli->recorded, out, out_report, err)
               : cx_recorder_steps_part(home, branch, from, options, &cli->recorded, out,
                                        out_report, err));
    say_part(&extent, "entries", from);
    return CX_SUCCESS;
}

/* Of "<run_id>"; the data directory is not asked. */
static cx_status open_run_part(cx_cli *cli, const char *part, cx_str name,
                               const cx_lattice_options *options, cx_lattice **out,
                               cx_lattice_report **out_report, cx_err *err)
{
    cx_run_store store;
    cx_steps_extent extent;
    uint64_t from;
    CX_TRY(cx_cli_run_store(cli, NULL, false, &store, err));
    CX_TRY(cx_run_extent(&store, name, &extent, err));
    CX_TRY(read_entry(part, extent.entries, &from, err));
    CX_TRY(cx_run_open_part(&store, name, from, options, &cli->recorded, out, out_report, err));
    say_part(&extent, "events", from);
    return CX_SUCCESS;
}

static cx_status open_part(cx_cli *cli, const cx_cli_args *args, const char *path, const char *part,
                           cx_cli_keep keep, cx_lattice **out, cx_lattice_report **out_report,
                           cx_err *err)
{
    const char *home_path;
    cx_home *home = NULL;
    const cx_home_options reading = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    cx_lattice_options options = reading_options(cli, args, keep, NULL);
    options.progress = NULL;
    cx_buf_clear(&cli->recorded);
    if (strncmp(path, "@run/", 5) == 0)
        return open_run_part(cli, part, cx_str_z(path + 5), &options, out, out_report, err);
    if (strncmp(path, "@agent/", 7) != 0 && strncmp(path, "@session/", 9) != 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --part: found %.80s, expected @agent/NAME, the steps of one agent, "
                       "@session/NAME or @run/RUN_ID",
                       path);
    CX_TRY(cx_cli_home_path(cli, args, &home_path, err));
    CX_TRY(cx_home_open(home_path, &reading, &home, err));
    cx_status status =
        open_part_of(cli, home, part, cx_str_z(path + 1), &options, out, out_report, err);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
    return status;
}

cx_lattice *cx_cli_open_verified(cx_cli *cli, const cx_cli_args *args, const char *path,
                                 const char *part, cx_cli_keep keep, cx_lattice_report **out_report,
                                 int *out_exit)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    *out_report = NULL;
    if (part != NULL) {
        if (cx_failed(open_part(cli, args, path, part, keep, &lattice, out_report, &err)))
            *out_exit = cx_cli_ledger_fail(cli, args, &err);
        return lattice;
    }
    lattice = cx_cli_open_lattice(cli, args, path, keep, out_exit);
    if (lattice != NULL && cx_failed(cx_lattice_verify(lattice, NULL, out_report, &err))) {
        *out_exit = cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
        cx_lattice_close(lattice);
        lattice = NULL;
    }
    return lattice;
}
