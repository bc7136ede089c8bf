/*
 * cmd_attest.c - `cortex attest`: a signed statement about files, and checking one
 * (approval/statement.h).
 */
#include <string.h>

#include "cli/attest_view.h"
#include "cli/ledger/ledger.h"
#include "crypto/api.h"

#define BLOCK_SIZE ((size_t)256 << 10)

typedef struct attest_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_approval_subject *files;
    cx_buf out;
    int exit_code;
} attest_job;

/* --- the files -------------------------------------------------------------------------------- */

static cx_status hash_open_file(attest_job *job, cx_file file, const char *path, uint8_t *block,
                                cx_digest *out, cx_err *err)
{
    cx_sha256 hash;
    size_t size;
    cx_sha256_init(&hash);
    do {
        CX_TRY(cx_io_read_some(job->cli->io, file, path, block, BLOCK_SIZE, &size, err));
        cx_sha256_add(&hash, block, size);
    } while (size == BLOCK_SIZE);
    *out = cx_sha256_end(&hash);
    return CX_SUCCESS;
}

static cx_status hash_file(attest_job *job, const char *path, uint8_t *block,
                           cx_approval_subject *out, cx_err *err)
{
    const cx_io *io = job->cli->io;
    const char *slash = strrchr(path, '/');
    cx_file file;
    int code = io->open(io, path, CX_IO_READ, &file);
    if (code != 0)
        return cx_fail_os(err, -code, "cannot read %s", path);
    out->name = cx_str_z(slash == NULL ? path : slash + 1);
    cx_status status = hash_open_file(job, file, path, block, &out->sha256, err);
    (void)io->close(io, file);
    return status;
}

static cx_status hash_files(attest_job *job, cx_err *err)
{
    size_t count = job->args->operand_count;
    uint8_t *block = CX_ARENA_ARRAY(&job->cli->arena, uint8_t, BLOCK_SIZE);
    if (count > CX_APPROVAL_SUBJECTS_MAX)
        return cx_fail(err, CX_E_USAGE, "found %zu files, expected at most %d", count,
                       CX_APPROVAL_SUBJECTS_MAX);
    job->files = CX_ARENA_ARRAY(&job->cli->arena, cx_approval_subject, count);
    if (block == NULL || job->files == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(hash_file(job, job->args->operands[i], block, &job->files[i], err));
    return CX_SUCCESS;
}

/* --- signing and checking --------------------------------------------------------------------- */

static cx_status read_predicate(attest_job *job, cx_json *out, cx_err *err)
{
    const char *path = cx_cli_value(job->args, "predicate");
    if (path == NULL || cx_cli_value(job->args, "type") == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected --type URI and --predicate FILE: what the signature says of the "
                       "files");
    cx_bytes text;
    CX_TRY(cx_cli_read_file(job->cli, path, &text, err));
    return cx_run_json_read(cx_bytes_str(text), CX_RUN_DSSE_BYTES_MAX / 2, &job->cli->arena, out,
                            err);
}

static cx_status make_statement(attest_job *job, cx_err *err)
{
    cx_cli_signer signer;
    cx_json predicate;
    cx_buf payload, envelope;
    CX_TRY(read_predicate(job, &predicate, err));
    CX_TRY(hash_files(job, err));
    CX_TRY(cx_cli_signer_open_key(job->cli, job->args, &signer, err));
    cx_buf_init(&payload, job->cli->alloc);
    cx_buf_init(&envelope, job->cli->alloc);
    cx_status status = cx_approval_statement_write(job->files, job->args->operand_count,
                                                   cx_str_z(cx_cli_value(job->args, "type")),
                                                   &predicate, &job->cli->arena, &payload, err);
    if (!cx_failed(status) && payload.size > CX_RUN_DSSE_BYTES_MAX / 2)
        status = cx_fail(err, CX_E_LIMIT,
                         "the statement has %zu bytes, expected at most %u; sign fewer files",
                         payload.size, (unsigned)CX_RUN_DSSE_BYTES_MAX / 2);
    if (!cx_failed(status))
        status = cx_run_dsse_write(CX_STR(CX_RUN_DSSE_ATTESTATION), cx_buf_bytes(&payload),
                                   &signer.key, cx_cli_attest_sign, &signer, &envelope, err);
    if (!cx_failed(status))
        status = cx_cli_attest_answer(job->cli, job->args, &signer, &envelope, &job->out, err);
    cx_buf_done(&payload);
    cx_buf_done(&envelope);
    cx_cli_signer_done(&signer);
    return status;
}

static cx_status check_statement(attest_job *job, cx_err *err)
{
    const char *type = cx_cli_value(job->args, "type");
    cx_run_attest_verdict verdict;
    cx_pubkey *keys;
    cx_bytes envelope;
    size_t key_count;
    if (cx_cli_value(job->args, "predicate") != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "option --predicate makes a statement and --check reads one; expected one "
                       "of them");
    CX_TRY(cx_cli_trusted_keys(job->cli, job->args, &keys, &key_count, err));
    CX_TRY(cx_cli_read_file(job->cli, cx_cli_value(job->args, "check"), &envelope, err));
    CX_TRY(hash_files(job, err));
    CX_TRY(cx_approval_statement_check(cx_bytes_str(envelope), job->files, job->args->operand_count,
                                       type == NULL ? CX_STR("") : cx_str_z(type), keys, key_count,
                                       &job->cli->arena, &verdict, err));
    return cx_cli_attest_verdict(job->cli, job->args, &verdict, &job->out, &job->exit_code, err);
}

static int run_attest(cx_cli *cli, const cx_cli_args *args)
{
    attest_job job = {.cli = cli, .args = args};
    cx_err err = {0};
    cx_buf_init(&job.out, cli->alloc);
    cx_status status =
        cx_cli_has(args, "check") ? check_statement(&job, &err) : make_statement(&job, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer_exact(cli, &job.out, job.exit_code);
    cx_buf_done(&job.out);
    return code;
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("type", 0, CX_CLI_TEXT, "URI",
               "The type of the predicate, such as https://slsa.dev/provenance/v1; with --check it "
               "must be this one."),
    CX_CLI_OPT("predicate", 0, CX_CLI_FILE, "PREDICATE",
               "The predicate: a JSON object, which says what is true of the files."),
    CX_CLI_OPTIONS_SIGNER_KEY,
    CX_CLI_OPTION_OUTPUT("the envelope"),
    CX_CLI_OPT("check", 0, CX_CLI_FILE, "ENVELOPE",
               "Check this envelope against the files instead of making one."),
    CX_CLI_OPTION_TRUSTED,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_attest = {
    .name = "attest",
    .purpose = "sign a statement about files, such as how they were built, or verify one",
    .about = "Makes an in-toto Statement v1 with the name and the SHA-256 of each file as its "
             "subjects and the given predicate, and signs it as a DSSE envelope. What the "
             "predicate says is not checked.\n\nWith --check, verifies an envelope: its signature "
             "over the received bytes, then that each file is a subject, by name and SHA-256. "
             "The statement may name further files. 'cortex run attest' does the same for runs.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 signed; with --check: it holds\n1 with --check: it does not hold\n2 usage error\n3 "
             "could not be done; with --check: no key was given that signed it",
    .example = "cortex attest --type https://slsa.dev/provenance/v1 --predicate how.json --key "
               "k -o p.json app.tar\n"
               "cortex attest --check p.json --trusted ci.pub app.tar",
    .run = run_attest,
};
