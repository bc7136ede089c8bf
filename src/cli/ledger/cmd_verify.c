/*
 * cmd_verify.c - `cortex verify`: identifies a file and verifies it. Recognises a proof file, a
 * data directory, or a lattice, and calls its checker. A trace of another tool cannot be
 * checked, and the message names the import that converts it.
 */
#include <string.h>

#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "cli/ledger/verify_parts.h"
#include "evidence/api.h"
#include "import/api.h"

static int run_verify(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_MANY("key", 0, CX_CLI_TEXT, "KEY",
                    "A public key that is trusted: a verifier key, 64 hex digits, or a file with "
                    "one of them. May be repeated."),
    CX_CLI_OPT("seal-key", 0, CX_CLI_TEXT, "KEY",
               "With --home: the public key that signed the snapshots."),
    CX_CLI_OPT("checkpoint", 0, CX_CLI_FILE, "NOTE",
               "A checkpoint stored elsewhere, which the journal must extend."),
    CX_CLI_OPT_FLAG("all", 0,
                    "With --home: NOTE is of the whole data directory, made by 'cortex checkpoint "
                    "--all'. Known by itself when its origin ends in /" CX_HOME_ROOT_ACTOR "."),
    CX_CLI_OPT("cosigners", 0, CX_CLI_COUNT, "N", "It must be cosigned by N of the keys."),
    CX_CLI_OPT(
        "require", 0, CX_CLI_CHOICE, "anchored|signed",
        "anchored, the default for files: a given key, checkpoint or root must confirm it; signed: "
        "a given key must have signed it. Without that the verdict is indeterminate."),
    CX_CLI_OPT_FLAG("self-consistent", 0,
                    "A file: that it agrees with itself is enough. Anybody can make such a file."),
    CX_CLI_OPT("manifest", 0, CX_CLI_FILE, "FILE",
               "With --home: a manifest stored elsewhere. For a state proof without a container: "
               "its manifest."),
    CX_CLI_OPT("root", 0, CX_CLI_TEXT, "HEX", "The root of the journal, or of the newer one."),
    CX_CLI_OPT("size", 0, CX_CLI_COUNT, "N", "How many entries that journal has."),
    CX_CLI_OPT("actor", 0, CX_CLI_TEXT, "NAME",
               "With --home: verify only this actor, whose checkpoint or root is given; default "
               "all actors, or with a checkpoint the default actor."),
    CX_CLI_OPT("home", 0, CX_CLI_FILE, "DIR", "Verify this data directory, in place of FILE."),
    CX_CLI_OPT("overall-root", 0, CX_CLI_TEXT, "HEX", "A proof: the overall root of its manifest."),
    CX_CLI_OPT("from-root", 0, CX_CLI_TEXT, "HEX",
               "A consistency proof: the root of the older journal."),
    CX_CLI_OPT("from-size", 0, CX_CLI_COUNT, "N", "How many entries the older journal has."),
    CX_CLI_OPT("from-checkpoint", 0, CX_CLI_FILE, "NOTE",
               "A checkpoint of the older journal in place of both."),
    CX_CLI_OPT("entry", 0, CX_CLI_FILE, "FILE",
               "The entry that an inclusion proof, tlog-proof or receipt is about."),
    CX_CLI_OPT("leaf", 0, CX_CLI_TEXT, "HEX", "Its leaf hash."),
    CX_CLI_OPT("namespace", 0, CX_CLI_CHOICE, "memories|edges",
               "A proof of the other one is broken."),
    CX_CLI_OPT_FLAG("members", 0, "A proof: every key must be a member, erased or not."),
    CX_CLI_OPT_FLAG("absent", 0, "A proof: every key must be absent."),
    CX_CLI_OPTION_PROGRESS,
    CX_CLI_OPT("state", 0, CX_CLI_FILE, "FILE",
               "With --home: keep in FILE what was verified, and go on from there: an interrupted "
               "verification continues, a later one reads only what was recorded since, and its "
               "answer says so. FILE is outside of the data directory, and yours alone."),
    CX_CLI_OPT("since", 0, CX_CLI_FILE, "NOTE",
               "With --home: that the journal still leads to this checkpoint, stored elsewhere, by "
               "what its tree proves; of the log only what came after is read, and the answer says "
               "so. With --actor or --all as for --checkpoint."),
    CX_CLI_OPTIONS_VERIFY,
    CX_CLI_OPTIONS_LIMITS,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_verify = {
    .name = "verify",
    .purpose = "recognise a file and verify it",
    .about =
        "Looks at the first bytes of FILE (\"-\" is standard input). Proofs, manifests, "
        "checkpoints and receipts are checked as by 'cortex-verify', against the keys, roots and "
        "checkpoints that the options give. A lattice is verified as by 'cortex lattice verify', "
        "with the same options. A trace of another tool has no hashes to check: the answer names "
        "the import that converts it to a lattice.\n\nWith --home DIR everything recorded there is "
        "checked from the first byte, and nothing is written. Only a checkpoint, manifest or root "
        "stored elsewhere can show that a journal was not truncated or rewritten.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 holds\n1 does not hold\n2 usage error\n3 could not be checked, or a key, root or "
             "checkpoint is missing",
    .example = "cortex verify answer.proof --key auditor.pub\n"
               "cortex verify --home ~/.local/share/cortex --checkpoint kept.note --key log.pub\n"
               "cortex verify --home ~/.local/share/cortex --state ~/.cortex-verified\n"
               "cortex verify history.jsonl",
    .run = run_verify,
};

/* Reads the first record; a file that cannot be opened is left to the checker, which reports it. */
static void read_head(const cx_io *io, const char *path, cx_buf *head)
{
    cx_file file;
    if (io->open(io, path, CX_IO_READ, &file) != 0)
        return;
    if (cx_failed(cx_import_read_head(io, file, path, 0, head, NULL)))
        cx_buf_clear(head);
    (void)io->close(io, file);
}

static int report_external_format(cx_cli *cli, const cx_cli_args *args, const char *format)
{
    cx_err err;
    const char *path = args->operands[0];
    cx_str word = cx_cli_quoted(&cli->arena, path);
    (void)cx_fail_at(&err, CX_E_UNSUPPORTED, "U_FOREIGN", 0,
                     "found a %s trace, expected a lattice; make one with: cortex import %s %s "
                     "-o history.jsonl",
                     format, format, word.data == NULL ? path : word.data);
    return cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
}

/* A lattice is verified; of a trace of another tool the answer says how to import it. */
static int verify_records(cx_cli *cli, const cx_cli_args *args, const cx_import_guessed *guessed)
{
    return guessed->format != NULL && !guessed->is_lattice
               ? report_external_format(cli, args, guessed->format)
               : cx_cli_run_lattice_verify(cli, args);
}

/* What 'cortex-verify' checks, seen from its first bytes. */
static bool is_proof(cx_bytes bytes)
{
    return cx_evidence_recognise(bytes) || cx_check_recognise(bytes) != CX_CHECK_UNKNOWN;
}

static int verify_standard_input(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err;
    cx_buf text;
    int code;
    cx_buf_init(&text, cli->alloc);
    uint64_t limit = cx_cli_number(args, "max-bytes", 0);
    if (cx_failed(cx_io_read_file(cli->io, "-",
                                  limit == 0 || limit > SIZE_MAX ? SIZE_MAX : (size_t)limit, &text,
                                  &err))) {
        code = cx_cli_fail(cli, "-", &err, cx_cli_has(args, "json"));
    } else if (is_proof(cx_buf_bytes(&text))) {
        code = cx_cli_verify_proof(cli, args, "-", cx_buf_bytes(&text));
    } else {
        cx_import_guessed guessed;
        cx_import_guess(cx_buf_bytes(&text), &guessed);
        cli->standard_input = &text;
        code = verify_records(cli, args, &guessed);
        cli->standard_input = NULL;
    }
    cx_buf_done(&text);
    return code;
}

static int verify_proof_file(cx_cli *cli, const cx_cli_args *args, const char *path)
{
    cx_err err;
    cx_buf bytes;
    cx_buf_init(&bytes, cli->alloc);
    int code = cx_failed(cx_io_read_file(cli->io, path, CX_PROOF_BYTES_MAX, &bytes, &err))
                   ? cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"))
                   : cx_cli_verify_proof(cli, args, path, cx_buf_bytes(&bytes));
    cx_buf_done(&bytes);
    return code;
}

/* A folder with a log in it. */
static bool is_home(cx_cli *cli, const char *path)
{
    cx_file folder;
    cx_str log = cx_arena_printf(&cli->arena, "%s/log", path);
    if (log.data == NULL ||
        cli->io->open(cli->io, log.data, CX_IO_READ | CX_IO_DIRECTORY, &folder) != 0)
        return false;
    (void)cli->io->close(cli->io, folder);
    return true;
}

static int run_verify(cx_cli *cli, const cx_cli_args *args)
{
    const char *home = cx_cli_value(args, "home");
    if ((home == NULL) == (args->operand_count == 0))
        return cx_cli_misuse(args, home == NULL
                                       ? "expected FILE or --home DIR, for example: cortex "
                                         "verify answer.proof"
                                       : "expected either FILE or --home DIR");
    const char *path = home != NULL ? home : args->operands[0];
    cx_err err = {0};
    if (home != NULL && cx_cli_is_database(home) &&
        cx_failed(cx_cli_part_open(cli, home, &path, &err)))
        return cx_cli_ledger_fail(cli, args, &err);
    if (home != NULL)
        return cx_cli_verify_home(cli, args, path);
    if (strcmp(path, "-") == 0)
        return verify_standard_input(cli, args);
    if (is_home(cli, path))
        return cx_cli_verify_home(cli, args, path);
    cx_import_guessed guessed;
    cx_buf head;
    cx_buf_init(&head, cli->alloc);
    read_head(cli->io, path, &head);
    cx_import_guess(cx_buf_bytes(&head), &guessed);
    bool proof = cx_evidence_recognise(cx_buf_bytes(&head)) ||
                 (!guessed.is_lattice && is_proof(cx_buf_bytes(&head)));
    cx_buf_done(&head);
    return proof ? verify_proof_file(cli, args, path) : verify_records(cli, args, &guessed);
}
