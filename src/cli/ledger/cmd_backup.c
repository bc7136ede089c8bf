/*
 * cmd_backup.c - `cortex backup`, `backup --verify` and `restore`: copies of a data directory, made
 * while it is in use, checked, and put back.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/ledger/verify_parts.h"
#include "os/api.h"

/* A backup as it is given: a folder, or a tar archive that is unpacked into a private folder. */
typedef struct given_backup {
    const char *shown;
    const char *path;                      /* the folder that is looked at */
    char temporary[CX_PATH_BYTES_MAX + 1]; /* "" = none */
} given_backup;

/* --- making one ------------------------------------------------------------------------------- */

static cx_status make_backup_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const char *to = l->args->operands[0];
    (void)state;
    CX_TRY(cx_cli_outside_homes(l->cli->io, to, err));
    cx_status copied = cx_home_backup(l->home, to, err);
    if (copied.code == CX_E_EXISTS)
        return cx_fail(err, CX_E_EXISTS, "%s exists; expected a folder that does not exist", to);
    CX_TRY(copied);
    if (!l->json) {
        cx_buf_add_z(&l->out, "copied to ");
        cx_shown_add(&l->out, cx_str_z(to));
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "backup", cx_str_z(to));
    cx_json_put_str(&json, "home", cx_str_z(l->path));
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- checking one ----------------------------------------------------------------------------- */

/* A backup of which nothing can be verified. */
static cx_status write_unreadable(cx_cli *cli, const cx_cli_args *args, const char *path,
                                  const cx_backup_state *state, cx_buf *out, cx_err *err)
{
    if (!cx_cli_has(args, "json")) {
        cx_shown_add(out, cx_str_z(path));
        cx_buf_printf(out, ": %s %s: ", cx_verdict_name(state->verdict), state->reason);
        cx_shown_add(out, state->message);
        cx_buf_add_byte(out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(&cli->arena);
    cx_cli_put_backup(&json, state);
    cx_json_put_str(&json, "detail", state->message);
    cx_json_put_str(&json, "home", cx_str_z(path));
    cx_json_put_z(&json, "reason", state->reason);
    cx_json_put_z(&json, "verdict", cx_verdict_name(state->verdict));
    return cx_cli_end_json(&json, out, err);
}

/* Looks at the backup; an archive is unpacked first. */
static cx_status look_at_backup(cx_cli *cli, given_backup *given, cx_backup_state *out, cx_err *err)
{
    cx_facts facts;
    const cx_home_options options = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    given->path = given->shown;
    given->temporary[0] = 0;
    if (strcmp(given->shown, "-") != 0) {
        CX_TRY(cx_path_facts(given->shown, true, &facts, err));
        if (facts.kind == CX_FILE_FOLDER)
            return cx_backup_inspect(given->shown, &options, &cli->arena, out, err);
    }
    CX_TRY(cx_path_make_temporary(given->temporary, err));
    cx_str inside = cx_arena_printf(&cli->arena, "%s/backup", given->temporary);
    if (inside.data == NULL)
        return cx_fail_nomem(err);
    given->path = inside.data;
    CX_TRY(cx_backup_unpack(given->shown, given->path, &options, &cli->arena, out, err));
    if (out->verdict == CX_BROKEN)
        return CX_SUCCESS;
    size_t others = out->other_count;
    CX_TRY(cx_backup_inspect(given->path, &options, &cli->arena, out, err));
    out->other_count += others;
    return CX_SUCCESS;
}

static void forget_backup(const given_backup *given)
{
    cx_err err = {0};
    if (given->temporary[0] != 0 && cx_failed(cx_path_remove_tree(given->temporary, &err)))
        cx_cli_complain("cannot remove %s: %s", given->temporary, err.message);
}

static cx_status verify_backup(cx_cli *cli, const cx_cli_args *args, given_backup *given,
                               cx_buf *out, int *out_code, cx_err *err)
{
    cx_backup_state state;
    CX_TRY(look_at_backup(cli, given, &state, err));
    *out_code = CX_EXIT_BROKEN;
    if (!state.has_log)
        return write_unreadable(cli, args, given->shown, &state, out, err);
    const cx_cli_backup_facts facts = {&state, true, given->shown};
    return cx_cli_audit_home(cli, args, given->path, &facts, out, out_code, err);
}

static int run_verify_backup(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    int code = CX_EXIT_UNCHECKED;
    given_backup given = {.shown = args->operands[0]};
    cx_buf_init(&out, cli->alloc);
    cx_status status = verify_backup(cli, args, &given, &out, &code, &err);
    forget_backup(&given);
    code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err) : cx_cli_answer(cli, &out, code);
    cx_buf_done(&out);
    return code;
}

static int run_backup(cx_cli *cli, const cx_cli_args *args)
{
    static const char *const of_verify[] = {"key",       "seal-key", "checkpoint", "all",
                                            "cosigners", "require",  "actor"};
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, make_backup_job};
    if (cx_cli_has(args, "verify"))
        return cx_cli_has(args, "home") ? cx_cli_misuse(args, "expected either --verify or --home")
                                        : run_verify_backup(cli, args);
    for (size_t i = 0; i < CX_COUNT_OF(of_verify); i++)
        if (cx_cli_has(args, of_verify[i]))
            return cx_cli_misuse(args, "options that name a key, a checkpoint or an actor belong "
                                       "to --verify");
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_operand backup_operands[] = {{"DIR", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option backup_options[] = {
    CX_CLI_OPT_FLAG("verify", 0, "Check the backup DIR, and write nothing."),
    CX_CLI_OPTIONS_ANCHORS, CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_backup = {
    .name = "backup",
    .purpose = "copy a data directory while it is in use, or check a copy",
    .about =
        "Copies everything acknowledged so far to the new folder DIR: the log, the settings, the "
        "checkpoints signed last, and a record of all that. Writers can continue meanwhile. "
        "Tables and indexes are not copied, because they are made from the log; tokens of the "
        "server and private keys are never copied. The copy is as secret as the data "
        "directory.\n\nWith --verify, checks that the backup DIR is complete, as its record says, "
        "and that everything in it holds, as 'cortex verify --home' does. Only a checkpoint "
        "stored elsewhere can show that it is not older than you think. DIR may be a tar archive "
        "of "
        "such a folder, or \"-\" for one on standard input: it is unpacked into a private folder "
        "below $TMPDIR. 'cortex restore' makes a data directory of it.",
    .operands = backup_operands,
    .operand_count = CX_COUNT_OF(backup_operands),
    .options = backup_options,
    .option_count = CX_COUNT_OF(backup_options),
    .exits = "0 copied; or the backup holds\n1 DIR exists; or the backup is incomplete or does not "
             "hold\n2 usage error\n3 could not be copied or checked: no data directory, "
             "unreadable, full disk, no record, a later format",
    .example = "cortex backup /mnt/backup/cortex-2026-11-21\n"
               "cortex backup --verify /mnt/backup/cortex-2026-11-21 --checkpoint kept.note --all "
               "--key log.pub",
    .run = run_backup,
};

/* --- putting one back ------------------------------------------------------------------------- */

typedef struct restoring {
    cx_cli *cli;
    const cx_cli_args *args;
    given_backup from;
    const char *to;
    cx_backup_state state;
    cx_restore restore;
    cx_buf out;
    int code;
    bool done;
} restoring;

/* Verifies the copy; *out_good: it may become the data directory. */
static cx_status verify_copy(restoring *r, bool *out_good, cx_err *err)
{
    const cx_cli_backup_facts facts = {&r->state, !cx_cli_has(r->args, "unrecorded"),
                                       r->from.shown};
    CX_TRY(cx_cli_audit_home(r->cli, r->args, r->restore.work, &facts, &r->out, &r->code, err));
    *out_good = r->code == CX_EXIT_HOLDS;
    return CX_SUCCESS;
}

static cx_status finish_or_abandon(restoring *r, cx_err *err)
{
    bool good = false;
    cx_status status = verify_copy(r, &good, err);
    if (!cx_failed(status) && good) {
        CX_TRY(cx_restore_finish(&r->restore, &r->cli->arena, err));
        r->done = true;
        return CX_SUCCESS;
    }
    cx_status removed = cx_restore_abandon(&r->restore, cx_failed(status) ? NULL : err);
    return cx_failed(status) ? status : removed;
}

static cx_status restore_backup(restoring *r, cx_err *err)
{
    const cx_home_options options = cx_cli_home_options(r->cli, CX_CLI_READ, NULL);
    CX_TRY(cx_cli_outside_homes(r->cli->io, r->to, err));
    CX_TRY(look_at_backup(r->cli, &r->from, &r->state, err));
    bool unknown = r->state.verdict == CX_INDETERMINATE && !cx_cli_has(r->args, "unrecorded");
    if (r->state.verdict == CX_BROKEN || unknown) {
        r->code = unknown ? CX_EXIT_UNCHECKED : CX_EXIT_BROKEN;
        return write_unreadable(r->cli, r->args, r->from.shown, &r->state, &r->out, err);
    }
    CX_TRY(cx_restore_begin(r->from.path, r->to, &r->state, cx_cli_has(r->args, "with-config"),
                            &options, &r->cli->arena, &r->restore, err));
    return finish_or_abandon(r, err);
}

static void say_what_to_know(const restoring *r)
{
    if (!r->done) {
        cx_cli_remark("nothing was restored%s",
                      r->code == CX_EXIT_UNCHECKED && !r->state.has_record
                          ? "; --unrecorded restores what there is, when it holds"
                          : "");
        return;
    }
    cx_cli_remark("restored to %s; 'cortex token add' creates tokens, 'cortex tables rebuild' an "
                  "index",
                  r->to);
    if (!cx_cli_has(r->args, "checkpoint"))
        cx_cli_remark("nothing from outside shows that this backup is the newest: with "
                      "--checkpoint NOTE a restore refuses one that is older");
}

static int run_restore(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    restoring r = {.cli = cli,
                   .args = args,
                   .from = {.shown = args->operands[0]},
                   .to = cx_cli_value(args, "to"),
                   .code = CX_EXIT_UNCHECKED};
    if (r.to == NULL || r.to[0] == 0)
        return cx_cli_misuse(args, "expected --to DIR, a folder that is new or empty");
    cx_buf_init(&r.out, cli->alloc);
    cx_status status = restore_backup(&r, &err);
    forget_backup(&r.from);
    int code;
    if (cx_failed(status)) {
        code = cx_cli_ledger_fail(cli, args, &err);
    } else {
        code = cx_cli_answer(cli, &r.out, r.code);
        say_what_to_know(&r);
    }
    cx_buf_done(&r.out);
    return code;
}

static const cx_cli_operand restore_operands[] = {{"BACKUP", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option restore_options[] = {
    CX_CLI_OPT("to", 0, CX_CLI_FILE, "DIR", "Where to: a folder that is new or empty."),
    CX_CLI_OPT_FLAG("with-config", 0,
                    "Restore config.toml, too. Settings can name programs and addresses: look at "
                    "the file first."),
    CX_CLI_OPT_FLAG("unrecorded", 0,
                    "Accept a backup without a record, as versions 0.1 and 0.2 made them; only its "
                    "log is restored."),
    CX_CLI_OPTIONS_ANCHORS,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_restore = {
    .name = "restore",
    .purpose = "make a data directory of a backup",
    .about =
        "BACKUP is a folder that 'cortex backup' made, a tar archive of one, or \"-\" for an "
        "archive "
        "on standard input. Copies it to the folder DIR, verifies the copy as 'cortex verify "
        "--home' does, "
        "and only then makes it a data directory. Links, special files and unknown names in a "
        "backup are not followed or copied. A restore that is interrupted, or that finds the "
        "backup broken, leaves no data directory.\n\nA restored copy ends where the backup ended. "
        "Never use it together with the original: both would record different histories under the "
        "same "
        "id, and a witness rejects the second.",
    .operands = restore_operands,
    .operand_count = CX_COUNT_OF(restore_operands),
    .options = restore_options,
    .option_count = CX_COUNT_OF(restore_options),
    .exits = "0 restored, and it holds\n1 DIR is not empty, or the backup is incomplete or does "
             "not hold\n2 usage error\n3 could not be restored or checked: unreadable, full disk, "
             "no record, a later format",
    .example = "cortex restore /mnt/backup/cortex --to DIR "
               "--checkpoint kept.note --all --key log.pub\n"
               "zstd -dc backup.tar.zst | cortex restore - --to DIR",
    .run = run_restore,
};
