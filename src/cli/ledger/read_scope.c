/*
 * read_scope.c - reading under a scope.
 */
#include "cli/ledger/read_scope.h"

#include <string.h>

#include "cli/signer.h"
#include "ledger/api.h"

cx_status cx_cli_read_keys(cx_cli *cli, const cx_cli_args *args, cx_cli_keys *out, cx_err *err)
{
    cx_str *agents = CX_ARENA_ARRAY(&cli->arena, cx_str, args->given_count + 1);
    cx_pubkey *keys = CX_ARENA_ARRAY(&cli->arena, cx_pubkey, args->given_count + 1);
    if (agents == NULL || keys == NULL)
        return cx_fail_nomem(err);
    *out = (cx_cli_keys){agents, keys, 0};
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, "key", given)) != NULL) {
        const char *equals = strchr(given->values[0], '=');
        cx_vkey vkey;
        if (equals == NULL || equals == given->values[0])
            return cx_fail(err, CX_E_USAGE, "option --key: found '%s', expected AGENT=KEY",
                           given->values[0]);
        CX_TRY(cx_cli_read_key(cli, "option --key", equals + 1, &vkey, err));
        agents[out->count] = cx_str_from(given->values[0], (size_t)(equals - given->values[0]));
        keys[out->count++] = vkey.key;
    }
    return CX_SUCCESS;
}

cx_status cx_cli_read_scope(cx_cli *cli, const cx_cli_args *args, cx_cli_scope *out, cx_err *err)
{
    const char *path = cx_cli_value(args, "scope");
    memset(out, 0, sizeof *out);
    out->given = path != NULL;
    CX_TRY(cx_cli_read_keys(cli, args, &out->keys, err));
    return path == NULL ? CX_SUCCESS : cx_cli_read_file(cli, path, &out->bytes, err);
}

static cx_status find_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    const cx_cli_keys *keys = arg;
    (void)err;
    *out_found = false;
    for (size_t i = 0; i < keys->count && !*out_found; i++) {
        *out_found = cx_str_eq(keys->agents[i], agent);
        if (*out_found)
            *out = keys->keys[i];
    }
    return CX_SUCCESS;
}

static cx_status find_snapshot(void *arg, const cx_digest *overall_root, cx_bytes *out_manifest,
                               bool *out_found, cx_err *err)
{
    cx_cli_ledger *l = arg;
    cx_manifest manifest;
    cx_err why;
    cx_status status = cx_snapshot_by_root(l->home, l->actor, overall_root, l->arena, &manifest,
                                           out_manifest, &why);
    *out_found = !cx_failed(status);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND) {
        *err = why;
        return status;
    }
    return CX_SUCCESS;
}

cx_status cx_cli_check_scope(cx_cli_ledger *l, cx_bytes scope, const cx_cli_keys *keys,
                             cx_str presenter, cx_scope_use *out, cx_finding *out_finding,
                             cx_err *err)
{
    cx_cli_keys known = *keys;
    const cx_scope_check check = {
        .actor = l->actor,
        .now_ns = (int64_t)l->cli->io->wall_ns(l->cli->io),
        .key = keys->count == 0 ? NULL : find_key,
        .key_arg = &known,
        .snapshot = find_snapshot,
        .snapshot_arg = l,
        .has_presenter = presenter.size != 0,
        .presenter = presenter,
    };
    return cx_scope_verify(scope, &check, l->arena, out, out_finding, err);
}

cx_status cx_cli_scope_open(cx_cli_ledger *l, cx_cli_scope *scope, const cx_scope_use **out,
                            cx_err *err)
{
    cx_finding finding;
    *out = NULL;
    if (!scope->given)
        return CX_SUCCESS;
    CX_TRY(cx_cli_check_scope(l, scope->bytes, &scope->keys, (cx_str){NULL, 0}, &scope->granted,
                              &finding, err));
    if (finding.verdict != CX_HOLDS)
        return cx_fail_at(err, CX_E_DENIED, finding.reason, finding.offset,
                          "the scope does not hold: %s", finding.message);
    *out = &scope->granted;
    return CX_SUCCESS;
}
