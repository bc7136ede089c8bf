/*
 * cmd_key.c - `cortex key new` and `show`: signing keys, which are stored outside the data
 * directory. For trusted keys of agents see cmd_trust.c.
 *
 * K1  A secret is never written inside a data directory: a reader of the records must not be
 *     able to sign for them.
 */
#include <errno.h>
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/signer.h"
#include "cli/trace/trust.h"

static int run_key_new(cx_cli *cli, const cx_cli_args *args);
static int run_key_show(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option new_options[] = {
    CX_CLI_OPT("name", 0, CX_CLI_TEXT, "NAME",
               "The key's name, without spaces and '+'. For checkpoints it is the log's origin; "
               "default: the name of the data directory's folder, '/', the actor."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

static const cx_cli_operand show_operands[] = {{"FILE|ID", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option show_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_new = {
    .name = "key new",
    .purpose = "create a signing key",
    .about =
        "Writes a new Ed25519 signing key to FILE, readable by you only, and prints the verifier "
        "key to hand to others. FILE must not exist and must not be inside a data directory.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = new_options,
    .option_count = CX_COUNT_OF(new_options),
    .exits = "0 created\n1 FILE exists\n2 usage error, or FILE is inside a data directory\n3 could "
             "not be written",
    .example = "cortex key new ~/keys/cortex.key --name example.com/cortex",
    .run = run_key_new,
};

const cx_cli_command cx_cli_key_show = {
    .name = "key show",
    .purpose = "show a public key",
    .about = "For an existing file: prints the verifier key of its signing key, which 'cortex "
             "verify --key' and 'cortex-verify --key' accept. The secret is not shown. Otherwise "
             "shows the key with that id in the trust store (see 'cortex key add').",
    .operands = show_operands,
    .operand_count = CX_COUNT_OF(show_operands),
    .options = show_options,
    .option_count = CX_COUNT_OF(show_options),
    .exits = "0 shown\n2 usage error, FILE holds no key, or neither file nor key exists\n3 FILE or "
             "the data directory could not be read",
    .example = "cortex key show ~/keys/cortex.key\n"
               "cortex key show agent-976dbe504763",
    .run = run_key_show,
};

static cx_status answer_key(cx_cli *cli, const cx_cli_args *args, const char *path,
                            const cx_vkey *vkey, cx_buf *out, cx_err *err)
{
    if (!cx_cli_has(args, "json")) {
        cx_vkey_add(vkey, out);
        cx_buf_add_byte(out, '\n');
        return CX_SUCCESS;
    }
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    cx_vkey_add(vkey, &text);
    cx_json_list json = cx_json_list_begin(&cli->arena);
    cx_json_put_str(&json, "file", cx_str_z(path));
    cx_json_put_str(&json, "name", vkey->name);
    cx_json_put_hex(&json, "public_key", cx_bytes_from(vkey->key.bytes, sizeof vkey->key.bytes));
    cx_json_put_str(&json, "verifier_key", cx_buf_str(&text));
    cx_status status = cx_cli_end_json(&json, out, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    cx_buf_done(&text);
    return status;
}

static cx_status make_key(cx_cli *cli, const cx_cli_args *args, cx_vkey *out, cx_err *err)
{
    const char *path = args->operands[0], *given = cx_cli_value(args, "name"), *home;
    cx_str name, actor;
    cx_pubkey key;
    if (given != NULL) {
        name = cx_str_z(given);
    } else {
        CX_TRY(cx_cli_home_path(cli, args, &home, err));
        CX_TRY(cx_cli_actor_name(cli, args, &actor, err));
        CX_TRY(cx_cli_default_origin(cli, home, actor, &name, err));
    }
    if (!cx_checkpoint_origin_ok(name))
        return cx_fail(
            err, CX_E_USAGE,
            "the key name '%.*s' is not valid; expected text without spaces and '+' (see --name)",
            (int)name.size, name.data);
    CX_TRY(cx_cli_outside_homes(cli->io, path, err)); /* K1 */
    cx_status made = cx_cli_key_make(cli, path, name, &key, err);
    if (made.code == CX_E_EXISTS)
        return cx_fail(err, CX_E_EXISTS,
                       "%s exists, and keys are never overwritten; choose another name", path);
    CX_TRY(made);
    cx_vkey_make(name, CX_VKEY_NOTE, &key, out);
    return CX_SUCCESS;
}

static int run_key_job(cx_cli *cli, const cx_cli_args *args,
                       cx_status (*work)(cx_cli *cli, const cx_cli_args *args, cx_vkey *out,
                                         cx_err *err))
{
    cx_err err = {0};
    cx_vkey vkey;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = work(cli, args, &vkey, &err);
    if (!cx_failed(status))
        status = answer_key(cli, args, args->operands[0], &vkey, &out, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static int run_key_new(cx_cli *cli, const cx_cli_args *args)
{
    return run_key_job(cli, args, make_key);
}

static cx_status read_key(cx_cli *cli, const cx_cli_args *args, cx_vkey *out, cx_err *err)
{
    return cx_cli_key_read(cli, args->operands[0], out, err);
}

/* Also true for an existing file that cannot be read: the error is reported later. */
static bool is_file(const cx_cli *cli, const char *path)
{
    cx_file file;
    int failed = cli->io->open(cli->io, path, CX_IO_READ, &file);
    if (failed == 0)
        (void)cli->io->close(cli->io, file);
    return failed != -ENOENT;
}

static int run_key_show(cx_cli *cli, const cx_cli_args *args)
{
    const char *what = args->operands[0];
    /* A mistyped path is better reported as a file than searched as an id. */
    if (!is_file(cli, what) && strchr(what, '/') == NULL)
        return cx_cli_show_trusted_key(cli, args);
    return run_key_job(cli, args, read_key);
}
