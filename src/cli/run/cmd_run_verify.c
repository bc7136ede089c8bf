/*
 * cmd_run_verify.c - `cortex run verify` and `cortex run export` (run.md §18, §20).
 */
#include "cli/ledger/ledger.h"
#include "cli/run/run_fail.h"
#include "cli/run/run_place.h"
#include "cli/run/run_where.h"
#include "bundle/api.h"

/* --- run verify ------------------------------------------------------------------------------- */

static int run_run_verify(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"RUN|DIR|ARCHIVE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("seal", 0, CX_CLI_FILE, "FILE",
               "The run's seal as JSON, instead of the one in the ledger."),
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTION_REPO, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_verify = {
    .name = "run verify",
    .purpose = "verify the bundle of a run",
    .about = "Checks the bundle of a run - by its id, its folder, or an archive made by `run "
             "export`: every file against the manifest, the events against their chain and the "
             "possible order of states, contract and reports against their schemas and each other, "
             "and the manifest against the seal in the ledger. Nothing is written.\n\nWithout a "
             "seal the answer is at best `indeterminate`: the author of the bundle could have "
             "rewritten all of it. No option turns that into `holds`.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 holds, and the seal matches\n1 broken: the codes name the places\n2 usage error\n3 "
             "could not be checked, or its seal is unknown",
    .example = "cortex run verify run_20260101_000000_aee408847d35e44e99430f0979c3357b\n"
               "cortex run verify bundle.tar.zst --seal seal.json --json",
    .run = run_run_verify,
};

static cx_status read_witness(cx_cli *cli, const cx_cli_args *args, cx_run_bundle *bundle,
                              cx_json *seal, cx_run_known *known, cx_run_witness *out, cx_err *err)
{
    const char *path = cx_cli_value(args, "seal");
    cx_bytes bytes;
    *out = (cx_run_witness){0};
    if (path == NULL) {
        CX_TRY(cx_cli_run_known(cli, args, cx_run_bundle_name(bundle), known, err));
        *out = known->witness;
        return CX_SUCCESS;
    }
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    CX_TRY(cx_run_json_read(cx_bytes_str(bytes), 0, &cli->arena, seal, err));
    if (seal->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "%s contains %s, expected a seal as a JSON object", path,
                       cx_json_type_name(seal));
    out->seal = seal;
    return CX_SUCCESS;
}

static void add_text(cx_buf *out, const cx_run_verdict *verdict)
{
    cx_buf_add_z(out, "run       ");
    cx_shown_add(out, verdict->run_id);
    cx_buf_printf(out, "\nverdict   %s", cx_verdict_name(verdict->verdict));
    if (verdict->verdict == CX_INDETERMINATE)
        cx_buf_add_z(out, " (unsealed: no ledger here knows this run)");
    cx_buf_printf(out, "\nevidence  %llu files, %llu events, %s\n",
                  (unsigned long long)verdict->file_count, (unsigned long long)verdict->event_count,
                  verdict->sealed ? "the seal agrees" : "no seal agrees");
    for (size_t i = 0; i < verdict->findings.list.count; i++) {
        const cx_run_finding *finding = &verdict->findings.list.items[i];
        cx_buf_printf(out, "  %-22s ", finding->rule);
        cx_shown_add(out, finding->where);
        cx_buf_add_z(out, ": ");
        cx_shown_add(out, finding->message);
        cx_buf_add_byte(out, '\n');
    }
}

static cx_status answer_verdict(cx_cli *cli, const cx_cli_args *args, const cx_run_verdict *verdict,
                                cx_buf *out, cx_err *err)
{
    cx_json value;
    if (!cx_cli_has(args, "json")) {
        add_text(out, verdict);
        return cx_buf_check(out, err);
    }
    CX_TRY(cx_run_verdict_json(verdict, &cli->arena, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

static int run_run_verify(cx_cli *cli, const cx_cli_args *args)
{
    cx_run_bundle *bundle = NULL;
    cx_run_known known;
    cx_run_witness witness;
    cx_run_verdict verdict;
    cx_json seal;
    cx_err err = {0};
    cx_buf out;
    int code = CX_EXIT_UNCHECKED;
    cx_buf_init(&out, cli->alloc);
    cx_status status =
        cx_cli_run_open(cli, cx_cli_value(args, "repo"), args->operands[0], &bundle, &err);
    if (!cx_failed(status))
        status = read_witness(cli, args, bundle, &seal, &known, &witness, &err);
    if (!cx_failed(status)) {
        status = cx_run_verify(bundle, &witness, &cli->arena, &verdict, &err);
        if (!cx_failed(status)) {
            code = cx_run_verdict_exit(&verdict);
            status = answer_verdict(cli, args, &verdict, &out, &err);
            cx_run_findings_done(&verdict.findings);
        }
    }
    code = cx_failed(status) ? cx_cli_run_fail(cli, args, &err) : cx_cli_answer(cli, &out, code);
    cx_run_bundle_close(bundle);
    cx_buf_done(&out);
    return code;
}

/* --- run export ------------------------------------------------------------------------------- */

static int run_run_export(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand export_operands[] = {{"RUN|DIR", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option export_options[] = {
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE", "Write the archive to FILE; required."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTION_REPO, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_export = {
    .name = "run export",
    .purpose = "export a bundle as one file",
    .about = "Writes the bundle of a run as a tar archive compressed with zstd: files in the order "
             "of their paths, no times, no owners, so that the same bundle gives the same file. "
             "`cortex run verify` reads it as it is; `tar --zstd -xf` unpacks it.",
    .operands = export_operands,
    .operand_count = CX_COUNT_OF(export_operands),
    .options = export_options,
    .option_count = CX_COUNT_OF(export_options),
    .exits = "0 written\n2 usage error\n3 could not be written",
    .example = "cortex run export RUN --output run.tar.zst",
    .run = run_run_export,
};

static cx_status export_to(cx_cli *cli, const cx_cli_args *args, const char *path, cx_buf *out,
                           cx_err *err)
{
    cx_run_bundle *bundle;
    cx_buf archive;
    cx_cli_file file = {0};
    CX_TRY(cx_cli_run_find(cli, cx_cli_value(args, "repo"), args->operands[0], &bundle, err));
    cx_buf_init(&archive, cli->alloc);
    cx_status status = cx_run_archive_write(bundle, &archive, err);
    if (!cx_failed(status))
        status = cx_cli_file_begin(&file, cli->io, path, err);
    if (!cx_failed(status)) {
        status = cx_cli_file_write(&file, cx_buf_bytes(&archive), err);
        if (cx_failed(status))
            cx_cli_file_abort(&file);
        else
            status = cx_cli_file_commit(&file, err);
    }
    if (!cx_failed(status) && cx_cli_has(args, "json")) {
        size_t count;
        (void)cx_run_bundle_entries(bundle, &count);
        cx_json_list object = cx_json_list_begin(&cli->arena);
        cx_json_put_str(&object, "run_id", cx_run_bundle_name(bundle));
        cx_json_put_str(&object, "path", cx_str_z(path));
        cx_json_put_uint(&object, "files", count);
        cx_json_put_uint(&object, "bytes", archive.size);
        status = cx_cli_end_json(&object, out, err);
    }
    cx_buf_done(&archive);
    cx_run_bundle_close(bundle);
    return status;
}

static int run_run_export(cx_cli *cli, const cx_cli_args *args)
{
    const char *path = cx_cli_value(args, "output");
    cx_err err = {0};
    cx_buf out;
    if (path == NULL)
        return cx_cli_misuse(args, "expected --output FILE: where to write the archive");
    cx_buf_init(&out, cli->alloc);
    cx_status status = export_to(cli, args, path, &out, &err);
    int code = cx_failed(status) ? cx_cli_run_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}
