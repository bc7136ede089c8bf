/*
 * attest_view.c - signed statements, as commands write and judge them (attest_view.h).
 */
#include "cli/attest_view.h"

#include <string.h>

#include "cli/ledger/ledger.h"

cx_status cx_cli_attest_sign(void *arg, cx_bytes message, cx_signature *out, cx_err *err)
{
    return cx_cli_signer_sign(arg, message, out, err);
}

cx_status cx_cli_attest_answer(cx_cli *cli, const cx_cli_args *args, const cx_cli_signer *signer,
                               const cx_buf *envelope, cx_buf *out, cx_err *err)
{
    const char *path = cx_cli_value(args, "output");
    cx_digest keyid = cx_run_dsse_keyid(&signer->key);
    if (path == NULL) {
        cx_buf_add_str(out, cx_buf_str(envelope));
        return CX_SUCCESS;
    }
    cx_cli_file written;
    memset(&written, 0, sizeof written);
    CX_TRY(cx_cli_file_begin(&written, cli->io, path, err));
    cx_status status = cx_cli_file_write(&written, cx_buf_bytes(envelope), err);
    if (cx_failed(status)) {
        cx_cli_file_abort(&written);
        return status;
    }
    CX_TRY(cx_cli_file_commit(&written, err));
    if (!cx_cli_has(args, "json"))
        return CX_SUCCESS;
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_json_put_str(&object, "path", cx_str_z(path));
    cx_json_put_digest(&object, "keyid", &keyid);
    return cx_cli_end_json(&object, out, err);
}

cx_status cx_cli_trusted_keys(cx_cli *cli, const cx_cli_args *args, cx_pubkey **out,
                              size_t *out_count, cx_err *err)
{
    const cx_cli_given *given = NULL;
    size_t count = 0;
    while ((given = cx_cli_next(args, "trusted", given)) != NULL)
        count++;
    *out = CX_ARENA_ARRAY(&cli->arena, cx_pubkey, count + 1);
    *out_count = count;
    if (*out == NULL)
        return cx_fail_nomem(err);
    for (count = 0; (given = cx_cli_next(args, "trusted", given)) != NULL; count++) {
        cx_vkey vkey;
        CX_TRY(cx_cli_read_key(cli, "option --trusted", given->values[0], &vkey, err));
        (*out)[count] = vkey.key;
    }
    return CX_SUCCESS;
}

/* Those that are not of a trusted key, so that a reader sees who else signed. */
static void print_other_signatures(cx_buf *out, const cx_run_attest_verdict *verdict)
{
    for (size_t i = 0; i < verdict->signature_count; i++) {
        const cx_run_attest_signature *item = &verdict->signatures[i];
        if (strcmp(item->state, "valid") == 0)
            continue;
        cx_buf_printf(out, "  signature %zu, key ", i + 1);
        cx_shown_add(out, item->keyid.size == 0 ? CX_STR("not named") : item->keyid);
        cx_buf_printf(out, ": %s%s%s\n",
                      strcmp(item->state, "invalid") == 0       ? "invalid"
                      : strcmp(item->state, "unknown_key") == 0 ? "not one of a trusted key"
                                                                : "cannot be used",
                      item->why == NULL ? "" : ": ", item->why == NULL ? "" : item->why);
    }
}

static cx_status put_signatures(cx_cli *cli, cx_json_list *object,
                                const cx_run_attest_verdict *verdict, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&cli->arena);
    cx_json value;
    for (size_t i = 0; i < verdict->signature_count; i++) {
        const cx_run_attest_signature *item = &verdict->signatures[i];
        cx_json_list one = cx_json_list_begin(&cli->arena);
        cx_json_put_maybe(&one, "keyid", item->keyid);
        cx_json_put_str(&one, "state", cx_str_z(item->state));
        cx_json_put_maybe(&one, "why", item->why == NULL ? (cx_str){NULL, 0} : cx_str_z(item->why));
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(object, CX_STR("signatures"), value);
    return CX_SUCCESS;
}

cx_status cx_cli_attest_verdict(cx_cli *cli, const cx_cli_args *args,
                                const cx_run_attest_verdict *verdict, cx_buf *out, int *out_exit,
                                cx_err *err)
{
    bool unknown = verdict->reason != NULL && strcmp(verdict->reason, "key_unknown") == 0;
    const char *word = verdict->holds ? "holds" : unknown ? "indeterminate" : "broken";
    *out_exit = verdict->holds ? CX_EXIT_HOLDS : unknown ? CX_EXIT_UNCHECKED : CX_EXIT_BROKEN;
    if (!cx_cli_has(args, "json")) {
        cx_buf_printf(out, "%s%s%s%s", word, verdict->reason == NULL ? "" : ": ",
                      verdict->reason == NULL ? "" : verdict->reason,
                      verdict->where.size == 0 ? "" : " ");
        cx_shown_add(out, verdict->where);
        if (verdict->message.size != 0) {
            cx_buf_add_z(out, ": ");
            cx_shown_add(out, verdict->message);
        }
        cx_buf_add_byte(out, '\n');
        print_other_signatures(out, verdict);
        return CX_SUCCESS;
    }
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_json_put_str(&object, "verdict", cx_str_z(word));
    cx_json_put_maybe(&object, "reason",
                      verdict->reason == NULL ? (cx_str){NULL, 0} : cx_str_z(verdict->reason));
    cx_json_put_maybe(&object, "message", verdict->message);
    cx_json_put_maybe(&object, "path", verdict->where);
    CX_TRY(put_signatures(cli, &object, verdict, err));
    if (verdict->holds)
        cx_json_put_digest(&object, "keyid", &verdict->keyid);
    else
        cx_json_put_null(&object, "keyid");
    return cx_cli_end_json(&object, out, err);
}
