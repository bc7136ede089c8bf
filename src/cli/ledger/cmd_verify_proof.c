/*
 * cmd_verify_proof.c - `cortex verify` of a proof file: the same answers as `cortex-verify` gives,
 * which needs nothing of this program.
 */
#include <string.h>

#include "cli/ledger/verify_parts.h"
#include "evidence/api.h"
#include "provenance/api.h"

static int code_of(cx_verdict verdict)
{
    return verdict == CX_HOLDS    ? CX_EXIT_HOLDS
           : verdict == CX_BROKEN ? CX_EXIT_BROKEN
                                  : CX_EXIT_UNCHECKED;
}

static cx_status read_option_file(cx_cli *cli, const cx_cli_args *args, const char *option,
                                  cx_bytes *out, cx_err *err)
{
    const char *path = cx_cli_value(args, option);
    if (path == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_read_file(cli, path, out, err));
    if (out->size == 0)
        return cx_fail(err, CX_E_USAGE, "option --%s: %s is empty", option, path);
    return CX_SUCCESS;
}

static cx_status read_digest(cx_cli *cli, const cx_cli_args *args, const char *option,
                             const cx_digest **out, cx_err *err)
{
    const char *text = cx_cli_value(args, option);
    cx_digest *digest = CX_ARENA_NEW(&cli->arena, cx_digest);
    if (digest == NULL)
        return cx_fail_nomem(err);
    if (text == NULL)
        return CX_SUCCESS;
    cx_str what = cx_arena_printf(&cli->arena, "option --%s", option);
    if (what.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_parse_digest(what.data, text, digest, err));
    *out = digest;
    return CX_SUCCESS;
}

/* A root and its size: the size needs the root, the root is weaker without the size. */
static cx_status read_journal_point(cx_cli *cli, const cx_cli_args *args, const char *root_option,
                                    const char *size_option, const cx_journal_point **out,
                                    cx_err *err)
{
    const cx_digest *root = NULL;
    cx_journal_point *point = CX_ARENA_NEW(&cli->arena, cx_journal_point);
    if (point == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_digest(cli, args, root_option, &root, err));
    if (root == NULL && cx_cli_has(args, size_option))
        return cx_fail(err, CX_E_USAGE, "--%s N needs --%s HEX", size_option, root_option);
    if (root == NULL)
        return CX_SUCCESS;
    point->root = *root;
    point->size = cx_cli_number(args, size_option, CX_JOURNAL_SIZE_UNKNOWN);
    *out = point;
    return CX_SUCCESS;
}

static cx_status read_keys(cx_cli *cli, const cx_cli_args *args, cx_check_options *out, cx_err *err)
{
    cx_vkey *keys = CX_ARENA_ARRAY(&cli->arena, cx_vkey, args->given_count + 1);
    if (keys == NULL)
        return cx_fail_nomem(err);
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, "key", given)) != NULL) {
        if (out->key_count == CX_NOTE_KEYS_MAX)
            return cx_fail(err, CX_E_USAGE, "option --key: at most %d keys", CX_NOTE_KEYS_MAX);
        CX_TRY(cx_cli_read_key(cli, "option --key", given->values[0], &keys[out->key_count], err));
        out->key_count++;
    }
    out->keys = keys;
    out->cosigners_required = (size_t)cx_cli_number(args, "cosigners", 0);
    if (out->cosigners_required > CX_NOTE_KEYS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --cosigners: at most %d", CX_NOTE_KEYS_MAX);
    return CX_SUCCESS;
}

cx_status cx_cli_read_home_trust(cx_cli *cli, const cx_cli_args *args, cx_check_options *out,
                                 cx_err *err)
{
    const char *require = cx_cli_value(args, "require");
    memset(out, 0, sizeof *out);
    out->now_given = true;
    out->now_ns = (int64_t)cli->io->wall_ns(cli->io);
    CX_TRY(read_keys(cli, args, out, err));
    if (require != NULL)
        out->require = strcmp(require, "signed") == 0 ? CX_REQUIRE_SIGNED : CX_REQUIRE_ANCHORED;
    return read_option_file(cli, args, "checkpoint", &out->checkpoint, err);
}

cx_status cx_cli_read_trust(cx_cli *cli, const cx_cli_args *args, cx_check_options *out,
                            cx_err *err)
{
    const char *require = cx_cli_value(args, "require");
    const char *name_space = cx_cli_value(args, "namespace");
    CX_TRY(cx_cli_read_home_trust(cli, args, out, err));
    CX_TRY(read_digest(cli, args, "overall-root", &out->overall_root, err));
    CX_TRY(read_digest(cli, args, "leaf", &out->leaf_hash, err));
    CX_TRY(read_journal_point(cli, args, "root", "size", &out->journal, err));
    CX_TRY(read_journal_point(cli, args, "from-root", "from-size", &out->older, err));
    CX_TRY(read_option_file(cli, args, "from-checkpoint", &out->older_checkpoint, err));
    CX_TRY(read_option_file(cli, args, "manifest", &out->manifest, err));
    CX_TRY(read_option_file(cli, args, "entry", &out->entry, err));
    if ((out->journal != NULL && out->checkpoint.size != 0) ||
        (out->older != NULL && out->older_checkpoint.size != 0))
        return cx_fail(err, CX_E_USAGE, "expected either a root or a checkpoint, not both");
    if (cx_cli_has(args, "members") && cx_cli_has(args, "absent"))
        return cx_fail(err, CX_E_USAGE, "expected either --members or --absent, not both");
    out->expect = cx_cli_has(args, "members")  ? CX_EXPECT_MEMBERS
                  : cx_cli_has(args, "absent") ? CX_EXPECT_ABSENT
                                               : CX_EXPECT_ANY;
    out->namespace_given = name_space != NULL;
    out->name_space = name_space != NULL && strcmp(name_space, "edges") == 0
                          ? CX_NAMESPACE_EDGES
                          : CX_NAMESPACE_MEMORIES;
    if (cx_cli_has(args, "self-consistent") && require != NULL)
        return cx_fail(err, CX_E_USAGE, "expected either --self-consistent or --require, not both");
    if (cx_cli_has(args, "self-consistent"))
        out->require = CX_REQUIRE_SELF_CONSISTENT;
    return CX_SUCCESS;
}

/* The whole of an evidence file. */
static int verify_evidence(cx_cli *cli, const cx_cli_args *args, const char *path, cx_bytes bytes,
                           const cx_check_options *options)
{
    cx_err err = {0};
    cx_evidence_result *result = CX_ARENA_NEW(&cli->arena, cx_evidence_result);
    if (result == NULL)
        return CX_EXIT_UNCHECKED;
    cx_status status = cx_evidence_check(bytes, options, &cli->arena, result, &err);
    if (!cx_failed(status) && result->read)
        status = cx_evidence_check_traces(result, &cli->arena, &err);
    if (status.code == CX_E_USAGE)
        return cx_cli_ledger_fail(cli, args, &err);
    if (cx_failed(status))
        cx_evidence_result_of(&err, result);
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "json"))
        cx_evidence_write_json(result, cx_str_z(path), &out);
    else
        cx_evidence_write_text(result, cx_str_z(path), cx_cli_has(args, "details"), &out);
    int code = cx_cli_answer(cli, &out, code_of(result->finding.verdict));
    cx_buf_done(&out);
    return code;
}

int cx_cli_verify_proof(cx_cli *cli, const cx_cli_args *args, const char *path, cx_bytes bytes)
{
    cx_err err = {0};
    cx_check_options options;
    cx_check_result result;
    if (cx_failed(cx_cli_read_trust(cli, args, &options, &err)))
        return cx_cli_ledger_fail(cli, args, &err);
    if (cx_evidence_recognise(bytes))
        return verify_evidence(cli, args, path, bytes, &options);
    cx_status status = cx_check_run(bytes, &options, &cli->arena, &result, &err);
    if (status.code == CX_E_USAGE)
        return cx_cli_ledger_fail(cli, args, &err);
    if (cx_failed(status))
        cx_check_result_of(&err, &result);
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "json"))
        cx_check_write_json(&result, cx_str_z(path), &out);
    else
        cx_check_write_text(&result, cx_str_z(path), cx_cli_has(args, "details"), &out);
    int code = cx_cli_answer(cli, &out, code_of(result.finding.verdict));
    cx_buf_done(&out);
    return code;
}
