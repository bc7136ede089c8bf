/*
 * cmd_fleet_checkpoint.c - `cortex fleet checkpoint`: one statement about all parts of a fleet,
 * recorded in a part, so that the checkpoints and proofs of that part vouch for it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/fleet/fleet_args.h"
#include "cli/fleet/fleet_statement.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/checkpoint.h"
#include "ledger/api.h"

typedef struct making {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *url;
    cx_fleet *fleet;
    cx_cli_fleet_statement statement;
    cx_cli_fleet_file file;
    cx_cli_signer signer;
    bool has_signer;
    cx_str signed_by;
    uint8_t home_id[16]; /* of the data directory that records */
} making;

/* --- the parts -------------------------------------------------------------------------------- */

cx_status cx_cli_fleet_home_open(cx_cli *cli, const char *url, cx_str part, cx_home **out_home,
                                 cx_err *err)
{
    cx_fleet_files_options options = {.node = "cortex-fleet", .read_only = true};
    cx_str at = cx_arena_printf(&cli->arena, "%s#%.*s", url, (int)part.size, part.data);
    const char *path;
    cx_err why = {0};
    *out_home = NULL;
    if (at.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_part_open_with(cli, at.data, &options, &path, err));
    cx_home_options home_options = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    home_options.or_remote = false;
    cx_status status = cx_home_open(path, &home_options, out_home, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    *out_home = NULL;
    if (status.code == CX_E_NOT_FOUND && why.tag != NULL && strcmp(why.tag, "NoHome") == 0)
        return CX_SUCCESS;
    cx_cli_part_explain(cli, &why);
    *err = why;
    return status;
}

void cx_cli_fleet_home_close(cx_cli *cli, cx_home *home)
{
    cx_err ignored;
    if (home != NULL)
        (void)cx_failed(cx_home_close(home, &ignored));
    cx_cli_part_close(cli);
}

cx_status cx_cli_fleet_roots_of(cx_home *home, uint64_t *out_size, cx_digest *out_root, cx_err *err)
{
    cx_err why = {0};
    cx_roots roots;
    cx_status status = cx_home_roots(home, CX_STR(CX_HOME_ROOT_ACTOR), &roots, &why);
    *out_size = 0;
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        *err = why;
        return status;
    }
    *out_size = roots.journal_size;
    *out_root = roots.journal;
    return CX_SUCCESS;
}

static cx_status read_roots(making *m, cx_cli_fleet_part *part, cx_err *err)
{
    cx_home *home = NULL;
    cx_status status = cx_cli_fleet_home_open(m->cli, m->url, part->name, &home, err);
    part->has_home = home != NULL;
    if (home != NULL && cx_str_eq(part->name, m->file.part))
        cx_home_id(home, m->home_id);
    if (!cx_failed(status) && home != NULL)
        status = cx_home_root_now(home, &part->root, err);
    if (!cx_failed(status) && home != NULL)
        status = cx_cli_fleet_roots_of(home, &part->roots, &part->roots_root, err);
    cx_cli_fleet_home_close(m->cli, home);
    return status;
}

static cx_status add_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    making *m = arg;
    cx_cli_fleet_statement *s = &m->statement;
    const size_t count = s->count;
    if ((count & (count - 1)) == 0) { /* full: 0, 1, 2, 4, .. */
        cx_cli_fleet_part *more =
            CX_ARENA_ARRAY(&m->cli->arena, cx_cli_fleet_part, count == 0 ? 1 : 2 * count);
        if (more == NULL)
            return cx_fail_nomem(err);
        if (count != 0)
            memcpy(more, s->parts, count * sizeof *more);
        s->parts = more;
    }
    s->parts[count] = (cx_cli_fleet_part){.name = cx_arena_copy_str(&m->cli->arena, row->name)};
    return s->parts[s->count++].name.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status note_head(void *arg, const cx_fleet_row *row, cx_err *err)
{
    making *m = arg;
    (void)err;
    for (size_t i = 0; i < m->statement.count; i++) {
        cx_cli_fleet_part *part = &m->statement.parts[i];
        if (!cx_str_eq(part->name, row->name))
            continue;
        part->point = (cx_fleet_point){
            .number = row->number, .epoch = row->epoch, .commits = row->next, .head = row->head};
        memcpy(part->point.id, row->id, sizeof part->point.id);
    }
    return CX_SUCCESS;
}

/* Roots first: what they vouch for is in the commits that the heads, read by one query, cover. */
static cx_status read_parts(making *m, cx_err *err)
{
    CX_TRY(cx_fleet_list(m->fleet, add_part, m, err));
    for (size_t i = 0; i < m->statement.count; i++)
        CX_TRY(read_roots(m, &m->statement.parts[i], err));
    cx_fleet_id(m->fleet, m->statement.fleet);
    return cx_fleet_list(m->fleet, note_head, m, err);
}

/* --- recording -------------------------------------------------------------------------------- */

static cx_status append_statement(cx_cli_ledger *l, making *m, cx_err *err)
{
    cx_txn *txn;
    const cx_entry_draft draft = {
        .kind = cx_kinds_name(CX_KIND_FLEET_CHECKPOINT),
        .created_at_ns = (int64_t)l->cli->io->wall_ns(l->cli->io),
        .payload = cx_str_bytes(m->file.statement),
    };
    CX_TRY(cx_txn_begin_as(l->home, l->actor, CX_SCHEME_CORTEX_1, &txn, err));
    cx_status status = cx_txn_entry(txn, &draft, &m->file.seq, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

static cx_status keep(const making *m, cx_buf *bytes, cx_bytes *out, cx_err *err)
{
    cx_status status = cx_buf_check(bytes, err);
    cx_str copy = cx_arena_copy_str(&m->cli->arena, cx_buf_str(bytes));
    cx_buf_done(bytes);
    CX_TRY(status);
    *out = cx_str_bytes(copy);
    return copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status vouch(cx_cli_ledger *l, making *m, cx_err *err)
{
    cx_inclusion proof;
    cx_checkpoint now;
    cx_digest root;
    cx_str origin;
    cx_buf bytes;
    CX_TRY(cx_cli_read_origin(l, m->has_signer ? &m->signer : NULL, &origin, err));
    CX_TRY(cx_cli_checkpoint_now(l, origin, &now, err));
    CX_TRY(cx_proof_journal(l->home, l->actor, m->file.seq, now.size, true, l->arena, &proof, &root,
                            err));
    cx_buf_init(&bytes, l->cli->alloc);
    cx_inclusion_encode(&proof, &bytes);
    CX_TRY(keep(m, &bytes, &m->file.proof, err));
    cx_buf_init(&bytes, l->cli->alloc);
    cx_status status = CX_SUCCESS;
    if (m->has_signer)
        status = cx_cli_checkpoint_sign(l, &now, &m->signer, &bytes, err);
    else
        cx_checkpoint_text(&now, &bytes);
    if (cx_failed(status)) {
        cx_buf_done(&bytes);
        return status;
    }
    m->file.is_signed = m->has_signer;
    m->signed_by = origin;
    return keep(m, &bytes, &m->file.checkpoint, err);
}

/* What CORTEX_URL names may be a node of another part, and the token one of that part, too. */
static cx_status check_recorder(const cx_cli_ledger *l, const making *m, cx_err *err)
{
    cx_str part = m->file.part;
    uint8_t id[sizeof m->home_id];
    cx_home_id(l->home, id);
    if (memcmp(id, m->home_id, sizeof id) == 0)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_IO, "OtherPart", CX_NO_OFFSET,
                      "$CORTEX_URL: this node serves another part; nothing was recorded: expected "
                      "the address of a node of the part %.*s",
                      (int)part.size, part.data);
}

typedef cx_status recording_step(cx_cli_ledger *l, making *m, cx_err *err);

static cx_status append_step(cx_cli_ledger *l, making *m, cx_err *err)
{
    CX_TRY(check_recorder(l, m, err));
    return append_statement(l, m, err);
}

/* Two that sign at once are kept apart by a lock in the part. */
static cx_status vouch_step(cx_cli_ledger *l, making *m, cx_err *err)
{
    if (m->has_signer)
        CX_TRY(cx_cli_lock_signing(l, err));
    return vouch(l, m, err);
}

static cx_status run_step(making *m, const char *path, cx_cli_access access, recording_step *step,
                          cx_err *err)
{
    cx_cli_ledger l = {.cli = m->cli,
                       .args = m->args,
                       .arena = &m->cli->arena,
                       .path = path,
                       .actor = CX_STR(CX_FLEET_JOURNAL),
                       .signing = CX_FILE_NONE};
    const cx_home_options options = cx_cli_home_options(m->cli, access, NULL);
    CX_TRY(cx_home_open(path, &options, &l.home, err));
    cx_status status = step(&l, m, err);
    cx_err ignored;
    (void)cx_failed(cx_home_close(l.home, &ignored));
    if (l.signing != CX_FILE_NONE)
        (void)m->cli->io->close(m->cli->io, l.signing);
    return status;
}

/* A node that serves the part is the only one that may write it. */
static cx_status explain_owner(const making *m, cx_status status, cx_err *err)
{
    cx_str part = m->file.part;
    char said[CX_ERR_MESSAGE_SIZE];
    cx_cli_part_explain(m->cli, err);
    if (status.code != CX_E_BUSY || err->tag == NULL || strcmp(err->tag, "Locked") != 0)
        return status;
    (void)snprintf(said, sizeof said, "%s", err->message);
    return cx_fail_at(err, CX_E_BUSY, "Locked", CX_NO_OFFSET,
                      "%s; or name a part that no node serves instead of %.*s with --part ('cortex "
                      "fleet add NAME' makes one)",
                      said, (int)part.size, part.data);
}

/* Appended by this process, or by the node that serves the part; then the part is read. */
static cx_status record(making *m, cx_err *err)
{
    cx_fleet_files_options options = {.node = "cortex-fleet"};
    cx_str part = m->file.part;
    cx_str at = cx_arena_printf(&m->cli->arena, "%s#%.*s", m->url, (int)part.size, part.data);
    const char *path;
    if (at.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_part_open_with(m->cli, at.data, &options, &path, err));
    cx_status status = run_step(m, path, CX_CLI_WRITE, append_step, err);
    cx_cli_part_renew(m->cli);
    if (!cx_failed(status))
        status = run_step(m, path, CX_CLI_SIGN, vouch_step, err);
    if (cx_failed(status))
        status = explain_owner(m, status, err);
    cx_cli_part_close(m->cli);
    return status;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void add_part_line(cx_buf *out, const cx_cli_fleet_part *part)
{
    cx_buf_printf(out, "%-20.*s %8" PRIu64 " %10" PRIu64 "  ", (int)part->name.size,
                  part->name.data, part->point.epoch, part->point.commits);
    cx_hex_add(out, cx_bytes_from(part->point.head.bytes, 8));
    if (part->has_home)
        cx_buf_printf(out, " %10" PRIu64 " %8" PRIu64 "\n", part->root.entries, part->root.actors);
    else
        cx_buf_add_z(out, "  no data directory\n");
}

static cx_status answer(making *m, cx_buf *out, cx_err *err)
{
    const cx_cli_fleet_statement *s = &m->statement;
    cx_buf file;
    cx_buf_init(&file, m->cli->alloc);
    cx_status status = cx_cli_fleet_file_write(&m->file, &m->cli->arena, &file, err);
    if (!cx_failed(status) && cx_cli_has(m->args, "output"))
        status = cx_cli_deliver(m->cli, m->args, cx_buf_bytes(&file), err);
    if (!cx_failed(status) && cx_cli_has(m->args, "json"))
        cx_buf_add_str(out, cx_buf_str(&file));
    cx_buf_done(&file);
    CX_TRY(status);
    if (cx_cli_has(m->args, "json"))
        return cx_buf_check(out, err);
    cx_buf_printf(
        out, "recorded %zu parts as entry %" PRIu64 " of " CX_FLEET_JOURNAL " in the part %.*s, ",
        s->count, m->file.seq, (int)m->file.part.size, m->file.part.data);
    cx_buf_add_z(out, m->file.is_signed ? "signed as " : "not signed, of ");
    cx_shown_add(out, m->signed_by);
    cx_buf_add_z(out, "\npart                    epoch    commits  head                entries   "
                      "actors\n");
    for (size_t i = 0; i < s->count; i++)
        add_part_line(out, &s->parts[i]);
    return cx_buf_check(out, err);
}

static cx_status make(making *m, cx_buf *out, cx_err *err)
{
    const cx_fleet_options options = {.node = "cortex-fleet", .read_only = true};
    const char *part = cx_cli_value(m->args, "part");
    cx_buf statement;
    cx_bytes kept;
    CX_TRY(cx_cli_fleet_url(m->args, &m->url, err));
    CX_TRY(cx_cli_can_deliver(m->cli, m->args, err));
    m->file.part = part == NULL ? CX_STR(CX_FLEET_MAIN) : cx_str_z(part);
    if (cx_cli_signer_wanted(m->args)) {
        CX_TRY(cx_cli_signer_open(m->cli, m->args, &m->signer, err));
        m->has_signer = true;
    }
    CX_TRY(cx_fleet_open(m->url, &options, &m->fleet, err));
    cx_fleet_part found;
    CX_TRY(cx_fleet_find(m->fleet, m->file.part, &found, err));
    CX_TRY(read_parts(m, err));
    cx_buf_init(&statement, m->cli->alloc);
    cx_status status = cx_cli_fleet_statement_write(&m->statement, &m->cli->arena, &statement, err);
    if (cx_failed(status)) {
        cx_buf_done(&statement);
        return status;
    }
    CX_TRY(keep(m, &statement, &kept, err));
    m->file.statement = cx_bytes_str(kept);
    CX_TRY(record(m, err));
    return answer(m, out, err);
}

static int run_fleet_checkpoint(cx_cli *cli, const cx_cli_args *args)
{
    static const char *const making_only[] = {"part",   "sign",   "signer",        "signer-key",
                                              "origin", "output", "signer-timeout"};
    cx_err err = {0};
    making m = {.cli = cli, .args = args};
    cx_buf out;
    for (size_t i = 0; i < CX_COUNT_OF(making_only); i++)
        if (cx_cli_has(args, "check") && cx_cli_has(args, making_only[i]))
            return cx_cli_misuse(args, "--check FILE records nothing: expected only --key and "
                                       "--chains with it");
    if (cx_cli_has(args, "check"))
        return cx_cli_fleet_follow(cli, args);
    if (cx_cli_has(args, "key") || cx_cli_has(args, "chains"))
        return cx_cli_misuse(args, "--key and --chains are for --check FILE");
    cx_buf_init(&out, cli->alloc);
    cx_status status = cx_cli_part_denied(make(&m, &out, &err), &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    cx_fleet_close(m.fleet);
    cx_cli_signer_done(&m.signer);
    return code;
}

static const cx_cli_option options[] = {
    CX_CLI_OPT("part", 0, CX_CLI_TEXT, "NAME",
               "The part that records the statement; default main. While a node serves it, it is "
               "written through CORTEX_URL with CORTEX_TOKEN."),
    CX_CLI_OPTIONS_SIGNER,
    CX_CLI_OPTION_ORIGIN,
    CX_CLI_OPTION_OUTPUT("statement, proof and checkpoint"),
    CX_CLI_OPT("check", 0, CX_CLI_FILE, "FILE",
               "Record nothing: check that each part still leads from what FILE says."),
    CX_CLI_OPT_MANY("key", 0, CX_CLI_TEXT, "KEY",
                    "With --check: a public key that must have signed FILE: a verifier key, 64 hex "
                    "digits, or a file with one of them. May be repeated."),
    CX_CLI_OPT_FLAG("chains", 0,
                    "With --check: recompute the hashes of all commits of each part from their "
                    "bytes, too."),
    CX_CLI_OPTION_DATABASE,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_checkpoint = {
    .name = "fleet checkpoint",
    .purpose = "record one signed statement about all parts of a fleet, or check one",
    .about =
        "Reads every part: its id, epoch, number of commits and head, the root over its actors, "
        "and its journal of home roots. Records them as one entry of the journal " CX_FLEET_JOURNAL
        " in a part, and signs a checkpoint of that journal. With -o FILE all of it is in one "
        "file, to be kept elsewhere.\n\nWith --check FILE it says later of each part whether it "
        "still leads from there. A part that was removed, replaced, restored to an older state or "
        "written anew is broken; one that cannot be read is indeterminate. The database is not "
        "believed; FILE is, as far as its signature goes.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 recorded, or all parts lead from FILE\n1 a part does not, or FILE is not what was "
             "signed\n2 usage error\n3 could not be done: a part cannot be read or was moved, a "
             "node serves the part that records and CORTEX_URL does not lead to it, the database "
             "is away, refuses the user, or has no fleet",
    .example = "cortex fleet checkpoint --part audit --sign ~/keys/fleet.key -o fleet.json\n"
               "cortex fleet checkpoint --check fleet.json --key fleet.pub",
    .run = run_fleet_checkpoint,
};
