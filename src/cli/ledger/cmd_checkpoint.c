/*
 * cmd_checkpoint.c - `cortex checkpoint`: a checkpoint of the journal, to be stored elsewhere.
 */
#include <string.h>

#include "cli/ledger/checkpoint.h"
#include "cli/ledger/cosign.h"
#include "ledger/api.h"

typedef struct state {
    cx_cli_signer signer;
    bool has_signer;
    bool has_older;
    cx_cli_stored_checkpoint older;
    cx_home_root_entry home_root; /* --all */
    cx_cli_witnesses witnesses;
} state;

static cx_status prepare_checkpoint(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const char *older = cx_cli_value(l->args, "consistency-from");
    if (cx_cli_has(l->args, "all"))
        l->actor = CX_STR(CX_HOME_ROOT_ACTOR);
    s->has_older = older != NULL;
    if (cx_cli_has(l->args, "proof") && older == NULL)
        return cx_fail(err, CX_E_USAGE, "--proof FILE needs --consistency-from OLD");
    if (older != NULL)
        CX_TRY(cx_cli_read_checkpoint(l->cli, older, &s->older, err));
    CX_TRY(cx_cli_witnesses_read(l, &s->witnesses, err));
    if (!cx_cli_signer_wanted(l->args))
        return CX_SUCCESS;
    CX_TRY(cx_cli_signer_open(l->cli, l->args, &s->signer, err));
    s->has_signer = true;
    return CX_SUCCESS;
}

static cx_status write_proof(cx_cli_ledger *l, const cx_consistency *proof, cx_err *err)
{
    const char *path = cx_cli_value(l->args, "proof");
    if (path == NULL)
        return CX_SUCCESS;
    cx_buf bytes;
    cx_buf_init(&bytes, l->cli->alloc);
    cx_consistency_encode(proof, &bytes);
    cx_cli_file file;
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = cx_cli_file_begin(&file, l->cli->io, path, err);
    if (!cx_failed(status)) {
        status = cx_cli_file_write(&file, cx_buf_bytes(&bytes), err);
        if (cx_failed(status))
            cx_cli_file_abort(&file);
        else
            status = cx_cli_file_commit(&file, err);
    }
    cx_buf_done(&bytes);
    return status;
}

static cx_status check_older(cx_cli_ledger *l, const state *s, const cx_checkpoint *now,
                             cx_err *err)
{
    cx_consistency proof;
    if (!s->has_older)
        return CX_SUCCESS;
    CX_TRY(cx_cli_check_follows(l, &s->older.checkpoint, now, &proof, err));
    CX_TRY(write_proof(l, &proof, err));
    if (!l->json)
        cx_cli_complain("consistent: the first %llu of %llu entries are unchanged",
                        (unsigned long long)s->older.checkpoint.size,
                        (unsigned long long)now->size);
    return CX_SUCCESS;
}

static cx_status answer_checkpoint_json(cx_cli_ledger *l, const state *s, const cx_checkpoint *now,
                                        cx_str note, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(l->arena), home_root = cx_json_list_begin(l->arena);
    cx_json_put_uint(&home_root, "actors", s->home_root.root.actors);
    cx_json_put_uint(&home_root, "entries", s->home_root.root.entries);
    cx_json_put_digest(&home_root, "root", &s->home_root.root.root);
    cx_json_put_uint(&home_root, "seq", s->home_root.seq);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_str(&json, "checkpoint", note);
    if (s->has_older)
        cx_json_put_uint(&json, "consistent_from", s->older.checkpoint.size);
    else
        cx_json_put_null(&json, "consistent_from");
    if (cx_cli_has(l->args, "all"))
        cx_json_put_object(&json, "home_root", &home_root);
    cx_json_put_uint(&json, "cosigned", s->witnesses.cosigned);
    cx_json_put_str(&json, "origin", now->origin);
    cx_json_put_digest(&json, "root", &now->root);
    cx_json_put_bool(&json, "signed", s->has_signer);
    cx_json_put_uint(&json, "size", now->size);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status checkpoint_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    cx_checkpoint now;
    cx_str origin;
    cx_buf note;
    CX_TRY(cx_cli_read_origin(l, s->has_signer ? &s->signer : NULL, &origin, err));
    CX_TRY(cx_cli_checkpoint_now(l, origin, &now, err));
    CX_TRY(check_older(l, s, &now, err));
    cx_buf_init(&note, l->cli->alloc);
    cx_status status = CX_SUCCESS;
    if (s->has_signer)
        status = cx_cli_checkpoint_sign(l, &now, &s->signer, &note, err);
    else
        cx_checkpoint_text(&now, &note);
    if (!cx_failed(status))
        status = cx_buf_check(&note, err);
    if (!cx_failed(status) && s->witnesses.count != 0)
        status = cx_cli_cosign(l, &s->witnesses, &now, &note, err);
    if (!cx_failed(status) && cx_cli_has(l->args, "output"))
        status = cx_cli_deliver(l->cli, l->args, cx_buf_bytes(&note), err);
    else if (!cx_failed(status) && !l->json)
        cx_cli_out_write_exact(&l->cli->out, cx_buf_bytes(&note));
    if (!cx_failed(status) && l->json)
        status = answer_checkpoint_json(l, s, &now, cx_buf_str(&note), err);
    cx_buf_done(&note);
    return status;
}

/* --all: the root over all actors goes into its journal first. */
static cx_status record_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const cx_io *io = l->cli->io;
    return cx_home_root_record(l->home, (int64_t)io->wall_ns(io), &s->home_root, err);
}

static int run_checkpoint(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job records = {CX_CLI_WRITE, false, NULL, record_job};
    /* Signing keeps what was signed: that is a write, and two must not sign at once. */
    static const cx_cli_job signs = {CX_CLI_SIGN, false, prepare_checkpoint, checkpoint_job};
    static const cx_cli_job shows = {CX_CLI_READ, false, prepare_checkpoint, checkpoint_job};
    state s = {.has_signer = false};
    int code = CX_EXIT_HOLDS;
    if (cx_cli_has(args, "all") && cx_cli_has(args, "actor"))
        return cx_cli_misuse(args, "expected either --all or --actor NAME");
    if (cx_cli_has(args, "all"))
        code = cx_cli_run_job(cli, args, &records, &s);
    if (code != CX_EXIT_HOLDS)
        return code;
    code = cx_cli_run_job(cli, args, cx_cli_signer_wanted(args) ? &signs : &shows, &s);
    cx_cli_signer_done(&s.signer);
    return code;
}

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("all", 0,
                    "Record the home root, one root over all actors, and make a checkpoint of the "
                    "journal of home roots: it stands for the whole data directory."),
    CX_CLI_OPTIONS_SIGNER,
    CX_CLI_OPTION_ORIGIN,
    CX_CLI_OPT("consistency-from", 0, CX_CLI_FILE, "OLD",
               "An earlier checkpoint, which the journal must extend."),
    CX_CLI_OPT("proof", 0, CX_CLI_FILE, "FILE",
               "Write the consistency proof from OLD to FILE, for 'cortex-verify'."),
    CX_CLI_OPT_MANY("witness", 0, CX_CLI_TEXT, "URL=KEY",
                    "Let the witness at URL ('cortex witness', or any of C2SP tlog-witness) cosign "
                    "it; KEY is its verifier key. May be repeated. Runs curl."),
    CX_CLI_OPT("witnesses", 0, CX_CLI_COUNT, "N",
               "How many of them must cosign; default all. With fewer there is no output, and exit "
               "code 3."),
    CX_CLI_OPTION_OUTPUT("the checkpoint"),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_checkpoint = {
    .name = "checkpoint",
    .purpose = "write a signed statement about the journal, for others to keep",
    .about =
        "Prints origin, size and root of the actor's journal as a C2SP checkpoint; with --sign or "
        "--signer as a signed note. With a stored checkpoint, 'cortex verify --home DIR "
        "--checkpoint NOTE' later shows whether the journal was truncated or rewritten.\n\nWith "
        "--all the checkpoint is of the journal " CX_HOME_ROOT_ACTOR ", in which the root over all "
        "actors is recorded first: it later also shows a journal that was removed.\n\nA "
        "checkpoint that does not extend the one last signed under its origin is not "
        "signed.\n\nWith "
        "--witness others cosign it, after they have checked that the journal extends what they "
        "were shown before; 'cortex-verify --witness-key KEY' demands their cosignatures.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 printed\n1 the journal does not extend OLD, or the checkpoint signed last\n2 usage "
             "error, no such actor, or not a cortex-1 journal\n3 could not be made: no data "
             "directory, unreadable, the signer failed",
    .example = "cortex checkpoint --sign ~/keys/cortex.key -o checkpoint.txt",
    .run = run_checkpoint,
};
