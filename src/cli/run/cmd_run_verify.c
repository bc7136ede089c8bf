/*
 * cmd_run_verify.c - `cortex run verify` (run.md §18, §20).
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/run/run_fail.h"
#include "cli/run/run_place.h"
#include "cli/run/run_store.h"
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
    .about =
        "Checks the bundle of a run - by its id, its folder, or an archive made by `run "
        "export`: every file against the manifest, the events against their chain and the "
        "possible order of states, contract and reports against their schemas and each other, "
        "and the manifest against the seal in the ledger. Nothing is written. A run of another "
        "machine is read from the part of a fleet that $CORTEX_HOME names, or through the node "
        "at $CORTEX_URL; a stored bundle that is missing or was erased is "
        "`indeterminate`.\n\nWithout a "
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
        cx_buf_printf(out, " (%s)",
                      strcmp(verdict->reason, "unsealed") == 0
                          ? "unsealed: no ledger here knows this run"
                          : verdict->reason);
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

static cx_status judge_bundle(cx_cli *cli, const cx_cli_args *args, cx_run_bundle *bundle,
                              cx_run_verdict *out, cx_err *err)
{
    cx_run_known known;
    cx_run_witness witness;
    cx_json seal;
    CX_TRY(read_witness(cli, args, bundle, &seal, &known, &witness, err));
    return cx_run_verify(bundle, &witness, &cli->arena, out, err);
}

/* A bundle that was stored and cannot be had has a verdict, too. */
static cx_status judge_unread(cx_cli *cli, const cx_cli_args *args, cx_status status,
                              cx_run_verdict *out, cx_err *err)
{
    static const struct {
        const char *tag;
        cx_run_unread why;
    } of[] = {{CX_RUN_BUNDLE_CHANGED, CX_RUN_UNREAD_CHANGED},
              {CX_RUN_BUNDLE_MISSING, CX_RUN_UNREAD_MISSING},
              {CX_RUN_BUNDLE_ERASED, CX_RUN_UNREAD_ERASED},
              {CX_RUN_BUNDLE_UNREACHABLE, CX_RUN_UNREAD_AWAY},
              {CX_RUN_END_TAG, CX_RUN_UNREAD_ENDED}};
    for (size_t i = 0; err->tag != NULL && i < CX_COUNT_OF(of); i++) {
        if (strcmp(err->tag, of[i].tag) != 0)
            continue;
        cx_str message = cx_arena_copy_str(&cli->arena, cx_str_z(err->message));
        return message.data == NULL ? cx_fail_nomem(err)
                                    : cx_run_verify_unread(cx_str_z(args->operands[0]), of[i].why,
                                                           message, &cli->arena, out, err);
    }
    return status;
}

static int run_run_verify(cx_cli *cli, const cx_cli_args *args)
{
    cx_run_bundle *bundle = NULL;
    cx_run_verdict verdict;
    cx_err err = {0};
    cx_buf out;
    int code = CX_EXIT_UNCHECKED;
    cx_buf_init(&out, cli->alloc);
    cx_status status = cx_cli_run_open(cli, args, args->operands[0], &bundle, &err);
    if (cx_failed(status))
        status = judge_unread(cli, args, status, &verdict, &err);
    else
        status = judge_bundle(cli, args, bundle, &verdict, &err);
    if (!cx_failed(status)) {
        code = cx_run_verdict_exit(&verdict);
        status = answer_verdict(cli, args, &verdict, &out, &err);
        cx_run_findings_done(&verdict.findings);
    }
    code = cx_failed(status) ? cx_cli_run_fail(cli, args, &err) : cx_cli_answer(cli, &out, code);
    cx_run_bundle_close(bundle);
    cx_buf_done(&out);
    return code;
}
