/*
 * cmd_run_replay.c - `cortex run replay`: replays a finished run from its events, compares it
 * with another, or re-executes it (run.md §18, §20).
 */
#include <stdio.h>
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "cli/run/run_where.h"
#include "audit/api.h"

typedef struct replaying {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *name;
    cx_run_bundle *bundle, *against;
    cx_buf out;
    int exit_code;
} replaying;

/* --- the answer ------------------------------------------------------------------------------- */

static cx_str text_at(const cx_json *value, const char *name)
{
    cx_str text = cx_json_get_str(value, cx_str_z(name));
    return text.data == NULL ? CX_STR("") : text;
}

/* The program's words, then what came from a bundle. */
static void print_text(replaying *r, const char *before, cx_str text)
{
    cx_buf_add_z(&r->out, before);
    cx_shown_add(&r->out, text);
}

static void print_differences(replaying *r, const cx_json *report, const char *name)
{
    const cx_json *list = cx_json_get_typed(report, cx_str_z(name), CX_JSON_ARRAY);
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        cx_buf_printf(&r->out, "  %s", name);
        print_text(r, "  ", text_at(&list->items[i], "key"));
        cx_buf_add_byte(&r->out, '\n');
    }
}

static void print_reexecution(replaying *r, const cx_json *report)
{
    cx_str run = text_at(report, "run_id"), status = text_at(report, "status");
    const cx_json *errors = cx_json_get_typed(report, CX_STR("errors"), CX_JSON_ARRAY);
    print_text(r, "", run);
    print_text(r, "  done again: ", status);
    cx_buf_add_byte(&r->out, '\n');
    print_differences(r, report, "hard_diffs");
    print_differences(r, report, "soft_diffs");
    for (uint32_t i = 0; errors != NULL && i < errors->count; i++) {
        print_text(r, "  error  ", cx_json_text(&errors->items[i]));
        cx_buf_add_byte(&r->out, '\n');
    }
}

static cx_status print_rehydration(replaying *r, const cx_json *document, cx_err *err)
{
    cx_str run = text_at(document, "run_id"), status = text_at(document, "status");
    cx_str verdict = text_at(document, "verdict");
    const cx_json *states = cx_json_get_typed(document, CX_STR("states"), CX_JSON_ARRAY);
    const cx_json *divergence =
        cx_json_get_typed(document, CX_STR("first_divergence"), CX_JSON_OBJECT);
    print_text(r, "", run);
    print_text(r, "  replayed: ", status);
    print_text(r, "  (bundle: ", verdict);
    cx_buf_add_z(&r->out, ")\n");
    for (uint32_t i = 0; states != NULL && i < states->count; i++) {
        print_text(r, "  ", text_at(&states->items[i], "from"));
        print_text(r, " -> ", text_at(&states->items[i], "to"));
        print_text(r, "  ", text_at(&states->items[i], "reason"));
        cx_buf_add_byte(&r->out, '\n');
    }
    if (divergence == NULL)
        return CX_SUCCESS;
    cx_str field = text_at(divergence, "field");
    const cx_json *index = CX_JSON_GET(divergence, "index");
    cx_buf_add_z(&r->out, "  differs first ");
    if (index != NULL && index->type == CX_JSON_INT)
        cx_buf_printf(&r->out, "at event %.*s ", (int)index->count, index->text);
    print_text(r, "in ", field);
    cx_buf_add_z(&r->out, ": expected ");
    CX_TRY(cx_json_write(&r->out, CX_JSON_GET(divergence, "expected"), CX_JSON_PY_COMPACT, err));
    cx_buf_add_z(&r->out, ", found ");
    CX_TRY(cx_json_write(&r->out, CX_JSON_GET(divergence, "actual"), CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&r->out, '\n');
    return CX_SUCCESS;
}

/* --- --output --------------------------------------------------------------------------------- */

/* The folder of the file, with every link resolved. */
static cx_status folder_of(replaying *r, const char *path, cx_buf *out, cx_err *err)
{
    const char *slash = strrchr(path, '/');
    cx_str folder = slash == NULL   ? CX_STR(".")
                    : slash == path ? CX_STR("/")
                                    : cx_str_from(path, (size_t)(slash - path));
    cx_str kept = cx_arena_copy_str(&r->cli->arena, folder);
    return kept.data == NULL ? cx_fail_nomem(err) : cx_path_real(kept.data, out, err);
}

/* Nothing is ever written into a bundle (§18): neither into this one nor into another. */
static cx_status check_out(replaying *r, const char *path, cx_err *err)
{
    cx_buf folder;
    cx_facts facts;
    cx_buf_init(&folder, r->cli->alloc);
    cx_status status = folder_of(r, path, &folder, err);
    while (!cx_failed(status) && folder.size > 1) {
        cx_str manifest = cx_arena_printf(&r->cli->arena, "%.*s/events.hashchain.jsonl",
                                          (int)folder.size, (const char *)folder.data);
        if (manifest.data == NULL)
            status = cx_fail_nomem(err);
        else if (!cx_failed(cx_path_facts(manifest.data, false, &facts, NULL)))
            status = cx_fail(err, CX_E_USAGE,
                             "option --output: %s is inside a bundle; choose a path outside of it",
                             path);
        while (folder.size > 1 && folder.data[folder.size - 1] != '/')
            folder.size--;
        if (folder.size > 1)
            folder.size--;
    }
    cx_buf_done(&folder);
    return status;
}

static cx_status answer_replay(replaying *r, const cx_json *document, bool reexecuted, cx_err *err)
{
    const char *path = cx_cli_value(r->args, "output");
    if (path != NULL) {
        cx_buf text;
        cx_buf_init(&text, r->cli->alloc);
        cx_status status = cx_run_json_write(&text, document, err);
        if (!cx_failed(status))
            status = cx_io_replace_file(r->cli->io, path, cx_buf_bytes(&text), err);
        cx_buf_done(&text);
        CX_TRY(status);
    }
    if (cx_cli_has(r->args, "json")) {
        CX_TRY(cx_json_write(&r->out, document, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(&r->out, '\n');
    } else if (reexecuted) {
        print_reexecution(r, document);
    } else {
        CX_TRY(print_rehydration(r, document, err));
    }
    return cx_buf_check(&r->out, err);
}

/* --- working ---------------------------------------------------------------------------------- */

/* The seal of --seal, else the one in the ledger. */
static cx_status find_witness(replaying *r, cx_run_known *out, cx_err *err)
{
    const char *path = cx_cli_value(r->args, "seal");
    cx_buf text;
    if (path == NULL)
        return cx_cli_run_known(r->cli, r->args, cx_run_bundle_name(r->bundle), out, err);
    memset(out, 0, sizeof *out);
    cx_buf_init(&text, r->cli->alloc);
    cx_status status = cx_io_read_file(r->cli->io, path, CX_RUN_CONTRACT_BYTES_MAX, &text, err);
    cx_str copy = cx_failed(status) ? cx_str_from(NULL, 0)
                                    : cx_arena_copy_str(&r->cli->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    CX_TRY(cx_run_json_read(copy, 0, &r->cli->arena, &out->seal, err));
    out->sealed = true;
    out->witness.seal = &out->seal;
    return CX_SUCCESS;
}

static cx_status rehydrate_run(replaying *r, cx_err *err)
{
    cx_run_known known;
    cx_run_rehydration done;
    const char *against = cx_cli_value(r->args, "against");
    if (against == NULL)
        against = cx_cli_value(r->args, "baseline");
    if (against != NULL)
        CX_TRY(cx_cli_run_open(r->cli, r->args, against, &r->against, err));
    CX_TRY(find_witness(r, &known, err));
    CX_TRY(cx_run_rehydrate(r->bundle, &known.witness, r->against, &r->cli->arena, &done, err));
    r->exit_code = done.exit_code;
    return answer_replay(r, &done.document, false, err);
}

static cx_status real_path(replaying *r, const char *path, const char **out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, r->cli->alloc);
    cx_status status = cx_path_real(path, &text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&r->cli->arena, cx_buf_str(&text)).data;
        status = *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

static cx_status reexecute_run(replaying *r, cx_err *err)
{
    cx_run_store store;
    cx_json report;
    const char *repo = cx_cli_value(r->args, "repo");
    cx_run_reexec_options options = {.io = r->cli->io,
                                     .alloc = r->cli->alloc,
                                     .repo = repo == NULL ? "." : repo,
                                     .script = cx_cli_value(r->args, "script"),
                                     .allow_degraded_sandbox =
                                         cx_cli_has(r->args, "allow-degraded-sandbox")};
    CX_TRY(cx_cli_run_store(r->cli, repo, true, &store, err));
    options.root = store.root;
    CX_TRY(real_path(r, cx_machine_program(), &options.program, err));
    CX_TRY(cx_run_reexecute(r->bundle, &options, &r->cli->arena, &report, &r->exit_code, err));
    return answer_replay(r, &report, true, err);
}

static cx_status replay_run(replaying *r, cx_err *err)
{
    const char *out = cx_cli_value(r->args, "output");
    if (out != NULL)
        CX_TRY(check_out(r, out, err));
    CX_TRY(cx_cli_run_open(r->cli, r->args, r->name, &r->bundle, err));
    return cx_cli_has(r->args, "reexec") ? reexecute_run(r, err) : rehydrate_run(r, err);
}

static int run_run_replay(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    replaying r = {.cli = cli, .args = args, .name = args->operands[0]};
    if (cx_cli_has(args, "reexec") && (cx_cli_has(args, "against") || cx_cli_has(args, "baseline")))
        return cx_cli_misuse(args, "expected either --reexec or --against");
    if (cx_cli_has(args, "script") && !cx_cli_has(args, "reexec"))
        return cx_cli_misuse(args, "option --script: only with --reexec");
    cx_buf_init(&r.out, cli->alloc);
    cx_status status = replay_run(&r, &err);
    int code = cx_failed(status) ? cx_cli_fail(cli, r.name, &err, cx_cli_has(args, "json"))
                                 : cx_cli_answer(cli, &r.out, r.exit_code);
    cx_run_bundle_close(r.against);
    cx_run_bundle_close(r.bundle);
    cx_buf_done(&r.out);
    return code;
}

static const cx_cli_operand operands[] = {
    {"RUN", CX_CLI_TEXT, NULL, false, false},
};

static const cx_cli_option options[] = {
    CX_CLI_OPT("against", 0, CX_CLI_TEXT, "RUN2",
               "Compare with that run: the first place where this one went another way."),
    CX_CLI_OPT("baseline", 0, CX_CLI_TEXT, "RUN2", "The same."),
    CX_CLI_OPT_FLAG("reexec", 0,
                    "Re-execute the run: a new work tree at the recorded baseline, the stored "
                    "patch applied, and everything computed and tested again in the sandbox."),
    CX_CLI_OPT("script", 0, CX_CLI_FILE, "FILE",
               "With --reexec: also run the agent again from this replay script."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPT_FLAG("allow-degraded-sandbox", 0,
                    "With --reexec: continue even if a layer of the sandbox is unavailable."),
    CX_CLI_OPT("seal", 0, CX_CLI_FILE, "FILE", "The seal, if the ledger does not have it."),
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE", "Also write the document there."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_replay = {
    .name = "run replay",
    .purpose = "replay a run from its events, compare it, or re-execute it",
    .about = "RUN is the id of a run of this repository, or the folder or archive of a "
             "bundle.\n\nVerifies the bundle, rebuilds its states, verdicts and timeline from its "
             "events alone, and compares the result with its manifest and reports. With --against "
             "two runs are compared event by event, then by their patches and reports; ids, times "
             "and commits, which always differ, are ignored.\n\nWith --reexec the run is executed "
             "again and the result is a reexec_report: hard differences (patch, names, tree, "
             "verdicts, exit codes of tests) make it fail, soft ones (logs, durations) are listed. "
             "Nothing is ever written into a bundle.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 consistent, and no difference was found\n1 the bundle is broken, or contradicts "
             "its events\n2 usage error\n3 could not be checked: unsealed, no baseline commit, no "
             "sandbox\n5 it diverged",
    .example = "cortex run replay run_20260101_000000_aee408847d35e44e99430f0979c3357b --json",
    .run = run_run_replay,
};
