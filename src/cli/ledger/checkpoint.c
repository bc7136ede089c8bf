/*
 * checkpoint.c - making and signing checkpoints of a journal.
 */
#include "cli/ledger/checkpoint.h"

#include <string.h>

#include "crypto/api.h"
#include "ledger/api.h"

/* --- reading ---------------------------------------------------------------------------------- */

/* "origin\nsize\nroot\n", what an unsigned checkpoint is. */
static bool parse_text(cx_str text, cx_checkpoint *out)
{
    cx_str lines[3];
    for (size_t i = 0; i < CX_COUNT_OF(lines); i++) {
        const char *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
        if (end == NULL)
            return false;
        lines[i] = cx_str_from(text.data, (size_t)(end - text.data));
        text = cx_str_from(end + 1, text.size - lines[i].size - 1);
    }
    char size[24];
    cx_buf root;
    cx_buf_init(&root, cx_alloc_default());
    bool good = text.size == 0 && cx_checkpoint_origin_ok(lines[0]) &&
                lines[1].size < sizeof size && cx_base64_decode(lines[2], CX_BASE64, &root) &&
                root.size == sizeof out->root.bytes;
    if (good) {
        memcpy(size, lines[1].data, lines[1].size);
        size[lines[1].size] = 0;
        good = !cx_failed(cx_cli_parse_number("size", size, &out->size, NULL));
        memcpy(out->root.bytes, root.data, sizeof out->root.bytes);
        out->origin = lines[0];
    }
    cx_buf_done(&root);
    return good;
}

cx_status cx_cli_parse_checkpoint(cx_bytes bytes, cx_cli_stored_checkpoint *out, cx_err *err)
{
    out->bytes = bytes;
    out->is_note = !parse_text(cx_bytes_str(bytes), &out->checkpoint);
    return out->is_note ? cx_checkpoint_parse(bytes, &out->checkpoint, NULL, err) : CX_SUCCESS;
}

cx_status cx_cli_read_checkpoint(cx_cli *cli, const char *path, cx_cli_stored_checkpoint *out,
                                 cx_err *err)
{
    cx_bytes bytes;
    cx_err why = {0};
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    cx_status status = cx_cli_parse_checkpoint(bytes, out, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    return cx_fail_at(err, why.code, why.tag, why.offset,
                      "%s: %s; 'cortex checkpoint' writes such files", path, why.message);
}

cx_status cx_cli_read_origin(cx_cli_ledger *l, const cx_cli_signer *signer, cx_str *out,
                             cx_err *err)
{
    const char *given = cx_cli_value(l->args, "origin");
    cx_str key_name = signer == NULL ? (cx_str){NULL, 0} : signer->name;
    if (given != NULL && key_name.size != 0 && !cx_str_is(key_name, given))
        return cx_fail(err, CX_E_USAGE,
                       "option --origin: found '%s', expected '%.*s', the name of the signing key",
                       given, (int)key_name.size, key_name.data);
    if (given != NULL)
        *out = cx_str_z(given);
    else if (key_name.size != 0)
        *out = key_name;
    else
        CX_TRY(cx_cli_default_origin(l->cli, l->path, l->actor, out, err));
    if (!cx_checkpoint_origin_ok(*out))
        return cx_fail(
            err, CX_E_USAGE,
            "the origin '%.*s' is not valid; expected text without spaces and '+' (see --origin)",
            (int)out->size, out->data);
    if (cx_origin_reserved(*out))
        return cx_fail(err, CX_E_USAGE,
                       "the origin '%.*s' is not valid: names that begin with " CX_ORIGIN_HASHED
                       " are for journals whose actor name is not valid as a log name",
                       (int)out->size, out->data);
    return CX_SUCCESS;
}

/* --- the journal now -------------------------------------------------------------------------- */

cx_status cx_cli_checkpoint_now(cx_cli_ledger *l, cx_str origin, cx_checkpoint *out, cx_err *err)
{
    cx_actor_info actor;
    cx_roots roots;
    CX_TRY(cx_home_actor(l->home, l->actor, &actor, err));
    if (actor.scheme != CX_SCHEME_CORTEX_1)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "SchemeUnsupported", CX_NO_OFFSET,
                          "the journal of %.*s is in scheme %s", (int)l->actor.size, l->actor.data,
                          cx_scheme_name(actor.scheme).data);
    CX_TRY(cx_home_roots(l->home, l->actor, &roots, err));
    *out = (cx_checkpoint){.origin = origin, .size = roots.journal_size, .root = roots.journal};
    return CX_SUCCESS;
}

cx_status cx_cli_check_follows(cx_cli_ledger *l, const cx_checkpoint *older,
                               const cx_checkpoint *now, cx_consistency *out_proof, cx_err *err)
{
    cx_consistency proof;
    cx_digest before, after;
    if (older->size > now->size)
        return cx_fail_at(err, CX_E_CONFLICT, "Truncated", CX_NO_OFFSET,
                          "the journal has %llu entries, and the older checkpoint covers %llu",
                          (unsigned long long)now->size, (unsigned long long)older->size);
    CX_TRY(cx_proof_consistency(l->home, l->actor, older->size, now->size, l->arena, &proof,
                                &before, &after, err));
    if (!cx_digest_eq(&before, &older->root) || !cx_digest_eq(&after, &now->root))
        return cx_fail_at(
            err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
            "the first %llu entries differ from those that the older checkpoint covers",
            (unsigned long long)older->size);
    if (out_proof != NULL)
        *out_proof = proof;
    return CX_SUCCESS;
}

/* --- signing ---------------------------------------------------------------------------------- */

/* HOME/keys/checkpoint-<32 hex digits of the origin's hash>: two actors that sign under one
 * origin share this file, and the second is rejected. */
static cx_status last_path(cx_cli_ledger *l, cx_str origin, const char **out, cx_err *err)
{
    char hex[33] = "";
    cx_digest hash = cx_digest_of(cx_str_bytes(origin));
    cx_hex_encode(cx_bytes_from(hash.bytes, 16), hex);
    cx_str path = cx_arena_printf(l->arena, "%s/keys/checkpoint-%s", l->path, hex);
    *out = path.data;
    return path.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* S1 */
static cx_status check_last(cx_cli_ledger *l, const char *path, const cx_checkpoint *now,
                            cx_err *err)
{
    cx_cli_stored_checkpoint last;
    cx_err why;
    cx_status status = cx_cli_read_checkpoint(l->cli, path, &last, &why);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status))
        return cx_fail_at(
            err, CX_E_FORMAT, "BadNote", CX_NO_OFFSET,
            "nothing is signed, because the checkpoint signed last, %s, cannot be read: %s", path,
            why.message);
    if (!cx_failed(cx_cli_check_follows(l, &last.checkpoint, now, NULL, &why)))
        return CX_SUCCESS;
    return cx_fail_at(err, why.code, why.tag, CX_NO_OFFSET,
                      "not signed, because it does not extend the checkpoint signed last (%s): %s",
                      path, why.message);
}

cx_status cx_cli_checkpoint_sign(cx_cli_ledger *l, const cx_checkpoint *now, cx_cli_signer *signer,
                                 cx_buf *out, cx_err *err)
{
    const char *path;
    cx_signature signature;
    cx_vkey vkey;
    cx_buf text;
    CX_TRY(last_path(l, now->origin, &path, err));
    CX_TRY(check_last(l, path, now, err));
    cx_buf_init(&text, l->cli->alloc);
    cx_checkpoint_text(now, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_cli_signer_sign(signer, cx_buf_bytes(&text), &signature, err);
    cx_buf_done(&text);
    CX_TRY(status);
    cx_vkey_make(now->origin, CX_VKEY_NOTE, &signer->key, &vkey);
    size_t start = out->size;
    cx_checkpoint_note(now, &vkey, &signature, out);
    CX_TRY(cx_buf_check(out, err));
    /* Stored before it is handed out. */
    return cx_io_replace_file(l->cli->io, path, cx_bytes_from(out->data + start, out->size - start),
                              err);
}

cx_status cx_cli_checkpoint_store(cx_cli_ledger *l, const cx_checkpoint *now, cx_bytes note,
                                  cx_err *err)
{
    const char *path;
    CX_TRY(last_path(l, now->origin, &path, err));
    return cx_io_replace_file(l->cli->io, path, note, err);
}
