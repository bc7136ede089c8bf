/*
 * cmd_run_attest.c - `cortex run attest`: a run as a signed in-toto statement, and checking one
 * (run.md §22).
 */
#include <string.h>

#include "cli/attest_view.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "cli/run/run_where.h"
#include "audit/api.h"

static int run_run_attest(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"RUN|DIR", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPTIONS_SIGNER_KEY,
    CX_CLI_OPTION_OUTPUT("the envelope"),
    CX_CLI_OPT("check", 0, CX_CLI_FILE, "ENVELOPE",
               "Check this envelope against the bundle instead of making one."),
    CX_CLI_OPTION_TRUSTED,
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_attest = {
    .name = "run attest",
    .purpose = "sign a statement about a finished run, or verify one",
    .about = "Makes an in-toto Statement v1 about a run's commit, patch and manifest - contract, "
             "gates, tests, events, sandbox, approvals - from the files of its bundle, and signs "
             "it as a DSSE envelope. When the ledger has the run's seal, the statement names its "
             "place: journal, index, size and root. A broken bundle, or one that differs from the "
             "sealed bundle, is not attested.\n\nWith --check, verifies an envelope: its signature "
             "over the received bytes, then every field against the bundle.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits =
        "0 signed; with --check: it holds\n1 the bundle is broken; with --check: it does not "
        "hold\n2 usage error\n3 could not be done; with --check: no key was given that signed it",
    .example = "cortex run attest RUN --key ~/keys/ci.key -o run.dsse.json\n"
               "cortex run attest bundle/ --check run.dsse.json --trusted ci.pub",
    .run = run_run_attest,
};

typedef struct attest_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_run_bundle *bundle;
    cx_run_known known; /* what the ledger knows of the run */
    cx_buf out;
    int exit_code;
} attest_job;

static cx_status open_bundle(attest_job *job, cx_err *err)
{
    return cx_cli_run_open(job->cli, job->args, job->args->operands[0], &job->bundle, err);
}

/* A false statement is not signed. *out_broken: a message about it was printed. */
static cx_status check_bundle(attest_job *job, bool *out_broken, cx_err *err)
{
    cx_run_verdict verdict;
    CX_TRY(
        cx_cli_run_known(job->cli, job->args, cx_run_bundle_name(job->bundle), &job->known, err));
    CX_TRY(cx_run_verify(job->bundle, &job->known.witness, &job->cli->arena, &verdict, err));
    *out_broken = verdict.verdict == CX_BROKEN;
    if (*out_broken && verdict.findings.list.count != 0) {
        const cx_run_finding *first = &verdict.findings.list.items[0];
        cx_cli_complain("run attest: the bundle is broken: %s %.*s: %.*s", first->rule,
                        (int)first->where.size, first->where.data, (int)first->message.size,
                        first->message.data);
    }
    cx_run_findings_done(&verdict.findings);
    return CX_SUCCESS;
}

/* The place of the seal in the ledger; all empty without one. */
static cx_status find_ledger(attest_job *job, cx_run_attest_ledger *out, cx_err *err)
{
    const char *path;
    cx_home *home = NULL;
    cx_roots roots = {0};
    memset(out, 0, sizeof *out);
    if (!job->known.sealed)
        return CX_SUCCESS;
    CX_TRY(cx_cli_home_path(job->cli, job->args, &path, err));
    CX_TRY(cx_cli_default_origin(job->cli, path, job->known.actor, &out->origin, err));
    const cx_home_options reading = cx_cli_home_options(job->cli, CX_CLI_READ, NULL);
    CX_TRY(cx_home_open(path, &reading, &home, err));
    cx_status status = cx_home_roots(home, job->known.actor, &roots, err);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
    out->index = job->known.seal_index;
    out->size = roots.journal_size;
    out->root = roots.journal;
    return status;
}

static cx_status make_envelope(attest_job *job, cx_cli_signer *signer, cx_buf *file, cx_err *err)
{
    cx_run_attest_ledger ledger;
    cx_json statement;
    cx_buf payload;
    CX_TRY(find_ledger(job, &ledger, err));
    CX_TRY(cx_run_attest_read(job->bundle, &ledger, &job->cli->arena, &statement, err));
    cx_buf_init(&payload, job->cli->alloc);
    cx_status status = cx_run_attest_payload(&statement, &payload, err);
    if (!cx_failed(status))
        status = cx_run_dsse_write(CX_STR(CX_RUN_DSSE_ATTESTATION), cx_buf_bytes(&payload),
                                   &signer->key, cx_cli_attest_sign, signer, file, err);
    cx_buf_done(&payload);
    return status;
}

static cx_status make_attestation(attest_job *job, cx_err *err)
{
    cx_cli_signer signer;
    cx_buf file;
    bool broken;
    CX_TRY(cx_cli_signer_open_key(job->cli, job->args, &signer, err));
    cx_buf_init(&file, job->cli->alloc);
    cx_status status = open_bundle(job, err);
    if (!cx_failed(status))
        status = check_bundle(job, &broken, err);
    if (!cx_failed(status) && broken) {
        job->exit_code = CX_EXIT_BROKEN;
    } else if (!cx_failed(status)) {
        status = make_envelope(job, &signer, &file, err);
        if (!cx_failed(status))
            status = cx_cli_attest_answer(job->cli, job->args, &signer, &file, &job->out, err);
    }
    cx_buf_done(&file);
    cx_cli_signer_done(&signer);
    return status;
}

static cx_status check_attestation(attest_job *job, cx_err *err)
{
    cx_pubkey *keys;
    size_t key_count;
    cx_bytes envelope;
    cx_run_attest_verdict verdict;
    CX_TRY(cx_cli_trusted_keys(job->cli, job->args, &keys, &key_count, err));
    CX_TRY(cx_cli_read_file(job->cli, cx_cli_value(job->args, "check"), &envelope, err));
    CX_TRY(open_bundle(job, err));
    CX_TRY(cx_run_attest_check(cx_bytes_str(envelope), job->bundle, keys, key_count, NULL,
                               &job->cli->arena, &verdict, err));
    return cx_cli_attest_verdict(job->cli, job->args, &verdict, &job->out, &job->exit_code, err);
}

static int run_run_attest(cx_cli *cli, const cx_cli_args *args)
{
    attest_job *job = CX_ARENA_NEW(&cli->arena, attest_job);
    cx_err err = {0};
    if (job == NULL)
        return cx_cli_misuse(args, "out of memory");
    memset(job, 0, sizeof *job);
    job->cli = cli;
    job->args = args;
    cx_buf_init(&job->out, cli->alloc);
    bool checks = cx_cli_has(args, "check");
    cx_status status = checks ? check_attestation(job, &err) : make_attestation(job, &err);
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->operands[0], &err, cx_cli_has(args, "json"))
                   : cx_cli_answer_exact(cli, &job->out, job->exit_code);
    cx_run_bundle_close(job->bundle);
    cx_buf_done(&job->out);
    return code;
}
