/*
 * cmd_export.c - `cortex export tiles|receipt|tlog-proof|entry`: what transparency-log tools read.
 */
#include <string.h>

#include "cli/ledger/checkpoint.h"
#include "ledger/api.h"

typedef struct state {
    cx_cli_signer signer;
    bool has_signer;
    cx_cli_stored_checkpoint checkpoint;
    bool has_checkpoint;
    uint64_t seq;
    bool consistency;
    uint64_t older_size;
} state;

static cx_status open_signer(cx_cli_ledger *l, state *s, cx_err *err)
{
    CX_TRY(cx_cli_signer_open(l->cli, l->args, &s->signer, err));
    s->has_signer = true;
    return CX_SUCCESS;
}

/* A checkpoint of the present journal, signed and stored (checkpoint.h S1). */
static cx_status sign_now(cx_cli_ledger *l, state *s, cx_checkpoint *out, cx_buf *note, cx_err *err)
{
    cx_str origin;
    CX_TRY(cx_cli_read_origin(l, &s->signer, &origin, err));
    CX_TRY(cx_cli_checkpoint_now(l, origin, out, err));
    return cx_cli_checkpoint_sign(l, out, &s->signer, note, err);
}

/* The file, and with --json what it is about. */
static cx_status write_export(cx_cli_ledger *l, cx_buf *bytes, const char *format, uint64_t size,
                              const cx_digest *root, cx_err *err)
{
    CX_TRY(cx_buf_check(bytes, err));
    CX_TRY(cx_cli_deliver(l->cli, l->args, cx_buf_bytes(bytes), err));
    if (!l->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "bytes", bytes->size);
    cx_json_put_str(&json, "format", cx_str_z(format));
    cx_json_put_digest(&json, "root", root);
    cx_json_put_uint(&json, "size", size);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_export_job(cx_cli *cli, const cx_cli_args *args, const cx_cli_job *job)
{
    state s = {.has_signer = false};
    if (cx_cli_has(args, "json") && !cx_cli_has(args, "output"))
        return cx_cli_misuse(args, "--json needs --output FILE for the exported data");
    int code = cx_cli_run_job(cli, args, job, &s);
    cx_cli_signer_done(&s.signer);
    return code;
}

static const cx_cli_operand seq_operand[] = {{"SEQ", CX_CLI_TEXT, NULL, false, false}};

#define EXITS_EXPORT                                                                            \
    "0 written\n1 the journal does not extend the given checkpoint, or the one signed last\n2 " \
    "usage error, something named does not exist, or not a cortex-1 journal\n3 could not be "   \
    "written: no data directory, unreadable, the signer failed"

/* --- entry ------------------------------------------------------------------------------------ */

static cx_status prepare_entry(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    return cx_cli_parse_number("SEQ", l->args->operands[0], &s->seq, err);
}

static cx_status export_entry_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const state *s = arg;
    cx_entry_view view;
    CX_TRY(cx_home_entry(l->home, l->actor, s->seq, l->arena, &view, err));
    CX_TRY(cx_cli_deliver(l->cli, l->args, view.bytes, err));
    if (!l->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "bytes", view.bytes.size);
    cx_json_put_digest(&json, "leaf_hash", &view.leaf_hash);
    cx_json_put_uint(&json, "seq", s->seq);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_export_entry(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, prepare_entry, export_entry_job};
    return run_export_job(cli, args, &job);
}

static const cx_cli_option entry_options[] = {CX_CLI_OPTION_OUTPUT("the entry"),
                                              CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_export_entry = {
    .name = "export entry",
    .purpose = "export the bytes of one journal entry",
    .about = "Writes an entry's canonical bytes: what receipts and tlog-proofs are about ('cortex-"
             "verify --entry').",
    .operands = seq_operand,
    .operand_count = CX_COUNT_OF(seq_operand),
    .options = entry_options,
    .option_count = CX_COUNT_OF(entry_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex export entry 12 -o entry.bin",
    .run = run_export_entry,
};

/* --- tlog-proof ------------------------------------------------------------------------------- */

static cx_status prepare_tlog(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const char *path = cx_cli_value(l->args, "checkpoint");
    CX_TRY(prepare_entry(l, arg, err));
    s->has_checkpoint = path != NULL;
    if (s->has_checkpoint == cx_cli_signer_wanted(l->args))
        return cx_fail(err, CX_E_USAGE,
                       "expected either --checkpoint NOTE, or --sign or --signer for a new one");
    if (path == NULL)
        return open_signer(l, s, err);
    CX_TRY(cx_cli_read_checkpoint(l->cli, path, &s->checkpoint, err));
    if (!s->checkpoint.is_note)
        return cx_fail(err, CX_E_USAGE, "option --checkpoint: %s is not signed", path);
    return CX_SUCCESS;
}

static cx_status make_tlog(cx_cli_ledger *l, state *s, cx_buf *note, cx_buf *out, cx_err *err)
{
    cx_inclusion proof;
    cx_checkpoint at;
    cx_digest root;
    if (s->has_checkpoint) {
        at = s->checkpoint.checkpoint;
        cx_checkpoint now;
        CX_TRY(cx_cli_checkpoint_now(l, at.origin, &now, err));
        CX_TRY(cx_cli_check_follows(l, &at, &now, NULL, err));
        cx_buf_add_str(note, cx_bytes_str(s->checkpoint.bytes));
    } else {
        CX_TRY(sign_now(l, s, &at, note, err));
    }
    CX_TRY(cx_buf_check(note, err));
    CX_TRY(
        cx_proof_journal(l->home, l->actor, s->seq, at.size, false, l->arena, &proof, &root, err));
    cx_tlog_proof_encode(proof.index, proof.path, proof.path_count, cx_buf_bytes(note), out);
    return write_export(l, out, "tlog-proof", at.size, &root, err);
}

static cx_status export_tlog_proof_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_buf note, out;
    cx_buf_init(&note, l->cli->alloc);
    cx_buf_init(&out, l->cli->alloc);
    cx_status status = make_tlog(l, arg, &note, &out, err);
    cx_buf_done(&note);
    cx_buf_done(&out);
    return status;
}

static int run_export_tlog_proof(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job signs = {CX_CLI_SIGN, false, prepare_tlog, export_tlog_proof_job};
    static const cx_cli_job reads = {CX_CLI_READ, false, prepare_tlog, export_tlog_proof_job};
    return run_export_job(cli, args, cx_cli_signer_wanted(args) ? &signs : &reads);
}

static const cx_cli_option tlog_options[] = {
    CX_CLI_OPT("checkpoint", 0, CX_CLI_FILE, "NOTE",
               "Prove that the entry is in this checkpoint, in place of a new one."),
    CX_CLI_OPTIONS_SIGNER,
    CX_CLI_OPTION_ORIGIN,
    CX_CLI_OPTION_OUTPUT("the proof"),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_export_tlog_proof = {
    .name = "export tlog-proof",
    .purpose = "export an entry's inclusion as a c2sp.org/tlog-proof",
    .about = "Writes a proof that the entry is in the journal of a signed checkpoint, with the "
             "checkpoint in it. The log entry of these formats is the entry's leaf hash.",
    .operands = seq_operand,
    .operand_count = CX_COUNT_OF(seq_operand),
    .options = tlog_options,
    .option_count = CX_COUNT_OF(tlog_options),
    .exits = EXITS_EXPORT,
    .example = "cortex export tlog-proof 12 --sign ~/keys/cortex.key -o entry.tlog-proof",
    .run = run_export_tlog_proof,
};

/* --- receipt ---------------------------------------------------------------------------------- */

static cx_status prepare_receipt(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    s->consistency = cx_cli_has(l->args, "consistency-from");
    s->older_size = cx_cli_number(l->args, "consistency-from", 0);
    if (s->consistency == (l->args->operand_count == 1))
        return cx_fail(err, CX_E_USAGE, "expected either SEQ or --consistency-from SIZE");
    if (!s->consistency)
        CX_TRY(prepare_entry(l, arg, err));
    return open_signer(l, s, err);
}

static cx_status sign_root(state *s, const uint8_t key_id[4], const cx_digest *root,
                           cx_signature *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, s->signer.cli->alloc);
    cx_receipt_to_sign(key_id, root, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_cli_signer_sign(&s->signer, cx_buf_bytes(&text), out, err);
    cx_buf_done(&text);
    return status;
}

static cx_status make_receipt(cx_cli_ledger *l, state *s, cx_buf *note, cx_buf *out, cx_err *err)
{
    cx_checkpoint at;
    cx_vkey vkey;
    cx_signature signature;
    cx_inclusion inclusion;
    cx_consistency consistency;
    cx_digest root, older_root;
    CX_TRY(sign_now(l, s, &at, note, err));
    cx_vkey_make(at.origin, CX_VKEY_NOTE, &s->signer.key, &vkey);
    if (s->consistency)
        CX_TRY(cx_proof_consistency(l->home, l->actor, s->older_size, at.size, l->arena,
                                    &consistency, &older_root, &root, err));
    else
        CX_TRY(cx_proof_journal(l->home, l->actor, s->seq, at.size, false, l->arena, &inclusion,
                                &root, err));
    CX_TRY(sign_root(s, vkey.key_id, &root, &signature, err));
    if (s->consistency)
        CX_TRY(cx_receipt_consistency(vkey.key_id, &consistency, &signature, out, err));
    else
        CX_TRY(cx_receipt_inclusion(vkey.key_id, &inclusion, &signature, out, err));
    return write_export(l, out, "receipt", at.size, &root, err);
}

static cx_status export_receipt_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_buf note, out;
    cx_buf_init(&note, l->cli->alloc);
    cx_buf_init(&out, l->cli->alloc);
    cx_status status = make_receipt(l, arg, &note, &out, err);
    cx_buf_done(&note);
    cx_buf_done(&out);
    return status;
}

static int run_export_receipt(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_SIGN, false, prepare_receipt, export_receipt_job};
    return run_export_job(cli, args, &job);
}

static const cx_cli_operand maybe_seq[] = {{"SEQ", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option receipt_options[] = {
    CX_CLI_OPT("consistency-from", 0, CX_CLI_COUNT, "SIZE",
               "A receipt that the first SIZE entries are unchanged, in place of one for an "
               "entry."),
    CX_CLI_OPTIONS_SIGNER,
    CX_CLI_OPTION_ORIGIN,
    CX_CLI_OPTION_OUTPUT("the receipt"),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_export_receipt = {
    .name = "export receipt",
    .purpose = "export an entry's inclusion as a COSE receipt",
    .about = "Writes a signed COSE receipt (RFC 9942) that the entry is in the journal as it is "
             "now, or that the journal follows from an earlier size.",
    .operands = maybe_seq,
    .operand_count = CX_COUNT_OF(maybe_seq),
    .options = receipt_options,
    .option_count = CX_COUNT_OF(receipt_options),
    .exits = EXITS_EXPORT,
    .example = "cortex export receipt 12 --sign ~/keys/cortex.key -o entry.receipt",
    .run = run_export_receipt,
};

/* --- tiles ------------------------------------------------------------------------------------ */

/* Writes one file below `folder`, making the folders of its path. */
static cx_status write_below(cx_cli_ledger *l, const char *folder, cx_str name, cx_bytes bytes,
                             cx_err *err)
{
    const cx_io *io = l->cli->io;
    cx_str path = cx_arena_printf(l->arena, "%s/%.*s", folder, (int)name.size, name.data);
    char *text = path.data == NULL ? NULL : cx_arena_push(l->arena, path.size + 1, 1);
    if (text == NULL)
        return cx_fail_nomem(err);
    memcpy(text, path.data, path.size + 1);
    for (char *at = text + strlen(folder); (at = strchr(at + 1, '/')) != NULL;) {
        *at = 0;
        (void)io->mkdir(io, text); /* errors are reported when the file is written */
        *at = '/';
    }
    cx_cli_file file;
    CX_TRY(cx_cli_file_begin(&file, io, path.data, err));
    cx_status status = cx_cli_file_write(&file, bytes, err);
    if (!cx_failed(status))
        return cx_cli_file_commit(&file, err);
    cx_cli_file_abort(&file);
    return status;
}

typedef struct tiling {
    const char *folder;
    const cx_trees *trees;
    uint64_t size;
    uint64_t count; /* files written */
} tiling;

/* Level -1 is the entries. */
static cx_status write_tile(cx_cli_ledger *l, tiling *t, int level, uint64_t index, cx_err *err)
{
    cx_buf bytes, name;
    unsigned width;
    cx_arena_mark mark = cx_arena_mark_now(l->arena);
    cx_buf_init(&bytes, l->cli->alloc);
    cx_buf_init(&name, l->cli->alloc);
    cx_status status = level < 0 ? cx_tile_entries(t->trees->scheme, t->trees->journal, t->size,
                                                   index, &bytes, &width, err)
                                 : cx_tile_hashes(t->trees->scheme, t->trees->journal, t->size,
                                                  (unsigned)level, index, &bytes, &width, err);
    if (!cx_failed(status)) {
        cx_tile_path(level, index, width, &name);
        status = cx_buf_check(&name, err);
    }
    if (!cx_failed(status))
        status = write_below(l, t->folder, cx_buf_str(&name), cx_buf_bytes(&bytes), err);
    cx_buf_done(&bytes);
    cx_buf_done(&name);
    cx_arena_reset(l->arena, mark);
    t->count++;
    return status;
}

/* The tree's hashes at height 8 * level, 256 a tile. */
static cx_status write_level(cx_cli_ledger *l, tiling *t, int level, uint64_t hashes, cx_err *err)
{
    for (uint64_t index = 0; index * CX_TILE_WIDTH < hashes; index++)
        CX_TRY(write_tile(l, t, level, index, err));
    return CX_SUCCESS;
}

static cx_status write_tiles(cx_cli_ledger *l, tiling *t, cx_err *err)
{
    CX_TRY(write_level(l, t, -1, t->size, err));
    for (int level = 0; level < 8 && t->size >> (8 * level) != 0; level++)
        CX_TRY(write_level(l, t, level, t->size >> (8 * level), err));
    return CX_SUCCESS;
}

static cx_status prepare_tiles(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    return cx_cli_signer_wanted(l->args) ? open_signer(l, s, err) : CX_SUCCESS;
}

/* The checkpoint is written last, when everything that it covers exists. */
static cx_status write_log(cx_cli_ledger *l, state *s, cx_buf *note, cx_err *err)
{
    cx_trees trees;
    cx_checkpoint now;
    cx_str origin;
    tiling t = {.folder = l->args->operands[0], .trees = &trees};
    cx_str within = cx_arena_printf(l->arena, "%s/tile", t.folder);
    if (within.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_outside_homes(l->cli->io, within.data, err));
    CX_TRY(cx_cli_read_origin(l, s->has_signer ? &s->signer : NULL, &origin, err));
    CX_TRY(cx_cli_checkpoint_now(l, origin, &now, err));
    if (s->has_signer)
        CX_TRY(cx_cli_checkpoint_sign(l, &now, &s->signer, note, err));
    t.size = now.size;
    int failed = l->cli->io->mkdir(l->cli->io, t.folder);
    (void)failed; /* exists already, or the error is reported when the first file is written */
    CX_TRY(cx_home_trees_begin(l->home, l->actor, &trees, err));
    cx_status status = write_tiles(l, &t, err);
    cx_home_trees_end(l->home);
    CX_TRY(status);
    if (s->has_signer)
        CX_TRY(write_below(l, t.folder, CX_STR("checkpoint"), cx_buf_bytes(note), err));
    if (!l->json) {
        cx_buf_printf(&l->out, "%llu tiles of %llu entries%s in ", (unsigned long long)t.count,
                      (unsigned long long)now.size, s->has_signer ? " and their checkpoint" : "");
        cx_shown_add(&l->out, cx_str_z(t.folder));
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_str(&json, "folder", cx_str_z(t.folder));
    cx_json_put_digest(&json, "root", &now.root);
    cx_json_put_bool(&json, "signed", s->has_signer);
    cx_json_put_uint(&json, "size", now.size);
    cx_json_put_uint(&json, "tiles", t.count);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status export_tiles_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_buf note;
    cx_buf_init(&note, l->cli->alloc);
    cx_status status = write_log(l, arg, &note, err);
    cx_buf_done(&note);
    return status;
}

static int run_export_tiles(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job signs = {CX_CLI_SIGN, false, prepare_tiles, export_tiles_job};
    static const cx_cli_job reads = {CX_CLI_READ, false, prepare_tiles, export_tiles_job};
    state s = {.has_signer = false};
    int code = cx_cli_run_job(cli, args, cx_cli_signer_wanted(args) ? &signs : &reads, &s);
    cx_cli_signer_done(&s.signer);
    return code;
}

static const cx_cli_operand tiles_operands[] = {{"DIR", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option tiles_options[] = {CX_CLI_OPTIONS_SIGNER, CX_CLI_OPTION_ORIGIN,
                                              CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_export_tiles = {
    .name = "export tiles",
    .purpose = "export the journal as static tiles for a web server",
    .about = "Writes the journal's tree as c2sp.org/tlog-tiles below DIR, and with --sign or "
             "--signer the signed checkpoint next to them. Log entries are leaf hashes, so no "
             "content is published.",
    .operands = tiles_operands,
    .operand_count = CX_COUNT_OF(tiles_operands),
    .options = tiles_options,
    .option_count = CX_COUNT_OF(tiles_options),
    .exits = EXITS_EXPORT,
    .example = "cortex export tiles /var/www/log --sign ~/keys/cortex.key",
    .run = run_export_tiles,
};
