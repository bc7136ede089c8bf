/*
 * cmd_snapshot.c - `cortex snapshot make|list|show|seal|drop`.
 */
#include "cli/ledger/ledger.h"
#include "cli/signer.h"
#include "crypto/api.h"
#include "ledger/api.h"

static void manifest_json(const cx_manifest *m, cx_json_list *out)
{
    cx_json_list counts = cx_json_list_begin(out->arena);
    cx_json_put_str(out, "actor", m->actor);
    cx_json_put_time(out, "created_at", true, cx_cli_seconds(m->created_ns));
    cx_json_put_int(out, "created_at_ns", m->created_ns);
    if (m->has_edges)
        cx_json_put_digest(out, "edges_root", &m->edges_root);
    else
        cx_json_put_null(out, "edges_root");
    cx_json_put_digest(out, "journal_root", &m->journal_root);
    cx_json_put_uint(out, "journal_size", m->journal_size);
    if (m->has_memories)
        cx_json_put_digest(out, "memories_root", &m->memories_root);
    else
        cx_json_put_null(out, "memories_root");
    cx_json_put_digest(out, "overall_root", &m->overall_root);
    cx_json_put_str(out, "reason", m->trigger);
    cx_json_put_str(out, "scheme", cx_scheme_name(m->scheme));
    cx_json_put_bool(out, "sealed", !m->signature.null);
    cx_json_put_maybe(out, "signed_by", m->signed_by);
    cx_json_put_uint(out, "snapshot", m->snapshot_seq);
    cx_json_put_uint(&counts, "edges", m->edge_count);
    cx_json_put_uint(&counts, "memories", m->live_memories);
    cx_json_put_uint(&counts, "tombstoned", m->tombstoned);
    cx_json_put_object(out, "counts", &counts);
}

static void manifest_line(const cx_manifest *m, cx_buf *out)
{
    cx_buf_printf(out, "%llu  ", (unsigned long long)m->snapshot_seq);
    cx_form_time(cx_cli_seconds(m->created_ns), out);
    cx_buf_add_z(out, "  ");
    cx_cli_add_digest(out, &m->overall_root);
    cx_buf_add_z(out, m->signature.null ? "  " : "  sealed  ");
    cx_shown_add(out, m->trigger);
    cx_buf_add_byte(out, '\n');
}

static cx_status answer_manifest(cx_cli_ledger *l, const cx_manifest *m, cx_err *err)
{
    if (!l->json) {
        manifest_line(m, &l->out);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    manifest_json(m, &json);
    return cx_cli_end_json(&json, &l->out, err);
}

static int64_t now_ns(const cx_cli_ledger *l)
{
    return (int64_t)l->cli->io->wall_ns(l->cli->io);
}

static cx_status read_snapshot_seq(cx_cli_ledger *l, uint64_t *out, cx_err *err)
{
    return cx_cli_parse_number("SNAPSHOT", l->args->operands[0], out, err);
}

static const cx_cli_operand seq_operand[] = {{"SNAPSHOT", CX_CLI_TEXT, NULL, false, false}};

/* --- make ------------------------------------------------------------------------------------- */

static cx_status snapshot_make_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const char *reason = cx_cli_value(l->args, "reason");
    cx_manifest manifest;
    cx_actor_info actor;
    (void)state;
    CX_TRY(cx_home_actor(l->home, l->actor, &actor, err));
    CX_TRY(cx_snapshot_make(l->home, l->actor, cx_str_z(reason == NULL ? "explicit" : reason),
                            now_ns(l), l->arena, &manifest, err));
    return answer_manifest(l, &manifest, err);
}

static int run_snapshot_make(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, NULL, snapshot_make_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option make_options[] = {
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT",
               "Why, such as pre-compile, post-attest, periodic, for-scope; default explicit."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_snapshot_make = {
    .name = "snapshot make",
    .purpose = "take a snapshot, so that its state can be proven later",
    .about = "Records a manifest of the actor's present roots, numbered from 0, and keeps what is "
             "needed to prove that state until the snapshot is dropped. 'cortex snapshot' is short "
             "for it.",
    .options = make_options,
    .option_count = CX_COUNT_OF(make_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex snapshot --reason pre-compile",
    .run = run_snapshot_make,
};

/* --- list ------------------------------------------------------------------------------------- */

static cx_status snapshot_list_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_manifest *manifests;
    size_t count;
    (void)state;
    CX_TRY(cx_snapshot_list(l->home, l->actor, l->arena, &manifests, &count, err));
    cx_json_list list = cx_json_list_begin(l->arena), json = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++) {
        if (!l->json) {
            manifest_line(&manifests[i], &l->out);
            continue;
        }
        cx_json_list item = cx_json_list_begin(l->arena);
        manifest_json(&manifests[i], &item);
        cx_json_add_object(&list, &item);
    }
    if (!l->json) {
        if (count == 0)
            cx_buf_add_z(&l->out, "no snapshots; 'cortex snapshot' makes one\n");
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_array(&json, "snapshots", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_snapshot_list(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, snapshot_list_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option list_options[] = {CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_snapshot_list = {
    .name = "snapshot list",
    .purpose = "list the snapshots",
    .about = "Lists number, time, overall root and reason of each retained snapshot.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex snapshot list",
    .run = run_snapshot_list,
};

/* --- show ------------------------------------------------------------------------------------- */

typedef struct show_state {
    bool by_root;
    uint64_t seq;
    cx_digest root;
} show_state;

static cx_status prepare_show(cx_cli_ledger *l, void *state, cx_err *err)
{
    show_state *s = state;
    const char *root = cx_cli_value(l->args, "root");
    s->by_root = root != NULL;
    if ((l->args->operand_count == 1) == s->by_root)
        return cx_fail(err, CX_E_USAGE, "expected either SNAPSHOT or --root HEX");
    return s->by_root ? cx_cli_parse_digest("option --root", root, &s->root, err)
                      : read_snapshot_seq(l, &s->seq, err);
}

static cx_status snapshot_show_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const show_state *s = state;
    cx_manifest manifest;
    cx_bytes bytes;
    if (s->by_root)
        CX_TRY(cx_snapshot_by_root(l->home, l->actor, &s->root, l->arena, &manifest, &bytes, err));
    else
        CX_TRY(cx_snapshot_get(l->home, l->actor, s->seq, l->arena, &manifest, &bytes, err));
    if (cx_cli_has(l->args, "output"))
        CX_TRY(cx_cli_deliver(l->cli, l->args, bytes, err));
    return answer_manifest(l, &manifest, err);
}

static int run_snapshot_show(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, prepare_show, snapshot_show_job};
    show_state state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand maybe_seq[] = {{"SNAPSHOT", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option show_options[] = {
    CX_CLI_OPT("root", 0, CX_CLI_TEXT, "HEX",
               "The newest one with this overall root, in place of SNAPSHOT."),
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE",
               "Also write the manifest's bytes to FILE, for 'cortex-verify' and 'cortex verify "
               "--manifest'."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_snapshot_show = {
    .name = "snapshot show",
    .purpose = "show one snapshot's manifest",
    .about = "Shows the manifest of a snapshot, by number or by its overall root.",
    .operands = maybe_seq,
    .operand_count = CX_COUNT_OF(maybe_seq),
    .options = show_options,
    .option_count = CX_COUNT_OF(show_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex snapshot show 0 -o manifest.bin",
    .run = run_snapshot_show,
};

/* --- seal ------------------------------------------------------------------------------------- */

typedef struct seal_state {
    uint64_t seq;
    bool only_bytes; /* --to-sign */
    cx_cli_signer signer;
    bool has_signer;
    cx_signature signature;
    cx_pubkey key;
    cx_str signed_by;
} seal_state;

static cx_status prepare_seal(cx_cli_ledger *l, void *state, cx_err *err)
{
    seal_state *s = state;
    const char *by = cx_cli_value(l->args, "signed-by");
    const char *signature = cx_cli_value(l->args, "signature");
    const char *key = cx_cli_value(l->args, "key");
    CX_TRY(read_snapshot_seq(l, &s->seq, err));
    s->only_bytes = cx_cli_has(l->args, "to-sign");
    if (s->only_bytes + (signature != NULL) + cx_cli_signer_wanted(l->args) != 1)
        return cx_fail(err, CX_E_USAGE,
                       "expected one of --sign KEYFILE, --signer COMMAND, --signature HEX, "
                       "--to-sign");
    if ((signature != NULL) != (key != NULL))
        return cx_fail(err, CX_E_USAGE, "expected both --signature and --key, or neither");
    if (signature != NULL) {
        cx_vkey vkey;
        CX_TRY(cx_cli_read_key(l->cli, "option --key", key, &vkey, err));
        s->key = vkey.key;
        s->signed_by = vkey.name;
        if (!cx_hex_decode_any(cx_str_z(signature), s->signature.bytes, sizeof s->signature.bytes))
            return cx_fail(err, CX_E_USAGE, "option --signature: expected 128 hex digits");
    } else if (!s->only_bytes) {
        CX_TRY(cx_cli_signer_open(l->cli, l->args, &s->signer, err));
        s->has_signer = true;
        s->key = s->signer.key;
        s->signed_by = s->signer.name;
    }
    if (by != NULL)
        s->signed_by = cx_str_z(by);
    if (s->signed_by.size == 0 && !s->only_bytes)
        return cx_fail(err, CX_E_USAGE, "expected --signed-by NAME: the key has no name");
    return CX_SUCCESS;
}

static cx_status sign_and_seal(cx_cli_ledger *l, seal_state *s, cx_bytes to_sign, cx_err *err)
{
    cx_manifest manifest;
    if (s->has_signer)
        CX_TRY(cx_cli_signer_sign(&s->signer, to_sign, &s->signature, err));
    CX_TRY(cx_snapshot_seal(l->home, l->actor, s->seq, s->signed_by, &s->signature, &s->key,
                            l->actor, now_ns(l), err));
    CX_TRY(cx_snapshot_get(l->home, l->actor, s->seq, l->arena, &manifest, NULL, err));
    return answer_manifest(l, &manifest, err);
}

static cx_status snapshot_seal_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    seal_state *s = state;
    cx_buf bytes;
    cx_buf_init(&bytes, l->cli->alloc);
    cx_status status = cx_snapshot_to_sign(l->home, l->actor, s->seq, &bytes, err);
    if (!cx_failed(status))
        status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = s->only_bytes ? cx_cli_deliver(l->cli, l->args, cx_buf_bytes(&bytes), err)
                               : sign_and_seal(l, s, cx_buf_bytes(&bytes), err);
    cx_buf_done(&bytes);
    return status;
}

static int run_snapshot_seal(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job seals = {CX_CLI_WRITE, false, prepare_seal, snapshot_seal_job};
    static const cx_cli_job shows = {CX_CLI_READ, false, prepare_seal, snapshot_seal_job};
    seal_state state = {.seq = 0};
    int code = cx_cli_run_job(cli, args, cx_cli_has(args, "to-sign") ? &shows : &seals, &state);
    cx_cli_signer_done(&state.signer);
    return code;
}

static const cx_cli_option seal_options[] = {
    CX_CLI_OPTIONS_SIGNER,
    CX_CLI_OPT_FLAG("to-sign", 0, "Only write the bytes to sign, to --output or standard output."),
    CX_CLI_OPTION_OUTPUT("the bytes to sign"),
    CX_CLI_OPT("signature", 0, CX_CLI_TEXT, "HEX", "A signature made elsewhere, with --key."),
    CX_CLI_OPT("key", 0, CX_CLI_TEXT, "KEY", "The public key of --signature."),
    CX_CLI_OPT("signed-by", 0, CX_CLI_TEXT, "NAME", "The signer's name; default the key's name."),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_snapshot_seal = {
    .name = "snapshot seal",
    .purpose = "sign a snapshot",
    .about = "Signs the manifest and records the signature in it and in the journal. The key stays "
             "outside: a key file, another program, or a signature made elsewhere over the bytes "
             "that --to-sign writes.",
    .operands = seq_operand,
    .operand_count = CX_COUNT_OF(seq_operand),
    .options = seal_options,
    .option_count = CX_COUNT_OF(seal_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex snapshot seal 0 --sign ~/keys/cortex.key",
    .run = run_snapshot_seal,
};

/* --- drop ------------------------------------------------------------------------------------- */

static cx_status prepare_drop(cx_cli_ledger *l, void *state, cx_err *err)
{
    return read_snapshot_seq(l, state, err);
}

static cx_status snapshot_drop_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const uint64_t *seq = state;
    CX_TRY(cx_snapshot_drop(l->home, l->actor, *seq, l->actor, now_ns(l), err));
    if (!l->json) {
        cx_buf_printf(&l->out, "dropped %llu\n", (unsigned long long)*seq);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "dropped", *seq);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_snapshot_drop(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, prepare_drop, snapshot_drop_job};
    uint64_t state;
    return cx_cli_run_job(cli, args, &job, &state);
}

const cx_cli_command cx_cli_snapshot_drop = {
    .name = "snapshot drop",
    .purpose = "drop a snapshot",
    .about = "The state of the snapshot can no longer be proven from this data directory; earlier "
             "proofs still verify. The removal is recorded in the journal.",
    .operands = seq_operand,
    .operand_count = CX_COUNT_OF(seq_operand),
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex snapshot drop 0",
    .run = run_snapshot_drop,
};
