/*
 * exec_policy.c - policies, contract and options of `cortex exec` become one policy of egress.
 *
 *   E1  A contract narrows what policy and options allow, and never widens it.
 */
#include "cli/run/exec_policy.h"

#include <stdlib.h>
#include <string.h>

#include "cli/ledger/ledger.h"

const char *cx_cli_credentials_path(cx_cli *cli)
{
    const char *named = getenv("CORTEX_CREDENTIALS"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (named != NULL && named[0] != 0)
        return named;
    if (config != NULL && config[0] == '/')
        return cx_arena_printf(&cli->arena, "%s/cortex/credentials.json", config).data;
    if (home != NULL && home[0] == '/')
        return cx_arena_printf(&cli->arena, "%s/.config/cortex/credentials.json", home).data;
    return NULL;
}

/* policies/egress.json of HEAD; the work tree is never read for it. */
static cx_status read_of_commit(cx_cli *cli, const cx_cli_place *place, cx_cli_exec_policy *out,
                                cx_err *err)
{
    const cx_run_repo *repo = &place->repo;
    cx_run_blob kind = CX_BLOB_NONE;
    cx_bytes bytes = {NULL, 0};
    CX_TRY(repo->resolve(repo->arg, CX_STR("HEAD"), &cli->arena, &out->commit, err));
    if (out->commit.size == 0)
        return CX_SUCCESS;
    CX_TRY(repo->read(repo->arg, out->commit, CX_STR(CX_EGRESS_POLICY_FILE),
                      CX_EGRESS_POLICY_BYTES_MAX, &cli->arena, &kind, &bytes, err));
    if (kind == CX_BLOB_NONE)
        return CX_SUCCESS;
    if (kind != CX_BLOB_FILE)
        return cx_fail(err, CX_E_FORMAT, "%s of HEAD is no regular file of at most 1 MiB",
                       CX_EGRESS_POLICY_FILE);
    out->from = "commit";
    return cx_egress_policy_read(cx_bytes_str(bytes), CX_EGRESS_POLICY_FILE " of HEAD", &cli->arena,
                                 &out->egress, err);
}

static cx_status read_base(cx_cli *cli, const cx_cli_args *args, const cx_cli_place *place,
                           cx_cli_exec_policy *out, cx_err *err)
{
    const char *path = cx_cli_value(args, "policy");
    cx_bytes bytes;
    out->from = "none";
    cx_egress_policy_init(&out->egress);
    if (path == NULL)
        return place == NULL ? CX_SUCCESS : read_of_commit(cli, place, out, err);
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    out->from = "file";
    return cx_egress_policy_read(cx_bytes_str(bytes), path, &cli->arena, &out->egress, err);
}

/* Hosts of options are allowed besides those of the policy. */
static cx_status add_hosts(cx_cli *cli, const cx_cli_args *args, cx_egress_policy *policy,
                           cx_err *err)
{
    const cx_str *allow, *private_hosts;
    size_t count, private_count;
    cx_egress_list list, private_list;
    CX_TRY(cx_cli_all_values(cli, args, "allow", &allow, &count, err));
    CX_TRY(cx_cli_all_values(cli, args, "allow-private", &private_hosts, &private_count, err));
    if (count + private_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_egress_list_make(allow, count, "option --allow", &cli->arena, &list, err));
    CX_TRY(cx_egress_list_make(private_hosts, private_count, "option --allow-private", &cli->arena,
                               &private_list, err));
    for (size_t i = 0; i < private_list.count; i++)
        if (private_list.items[i].wildcard || private_list.items[i].host.port == 0)
            return cx_fail(err, CX_E_USAGE,
                           "option --allow-private: found '%.*s', expected HOST:PORT without a "
                           "wildcard",
                           (int)private_hosts[i].size, private_hosts[i].data);
    CX_TRY(cx_egress_list_join(&list, &private_list, &cli->arena, &list, err));
    CX_TRY(cx_egress_list_join(&policy->private_hosts, &private_list, &cli->arena,
                               &policy->private_hosts, err));
    if (policy->network == CX_EGRESS_DENY)
        policy->network = CX_EGRESS_ALLOWLIST;
    if (policy->network == CX_EGRESS_ALLOW && policy->list_count == 0)
        return CX_SUCCESS; /* every public host is allowed already */
    if (policy->list_count == 0)
        return cx_egress_policy_narrow(policy, &list, err);
    return cx_egress_list_join(&policy->lists[0], &list, &cli->arena, &policy->lists[0], err);
}

static cx_status fail_finding(const char *path, const cx_run_findings *findings, cx_err *err)
{
    for (size_t i = 0; i < findings->list.count; i++)
        if (!findings->list.items[i].informs)
            return cx_fail(err, CX_E_DENIED, "option --contract: %s: %s: %.*s", path,
                           findings->list.items[i].rule, (int)findings->list.items[i].message.size,
                           findings->list.items[i].message.data);
    return cx_fail(err, CX_E_DENIED, "option --contract: %s: the contract is not valid", path);
}

static cx_status read_contract(cx_cli *cli, const char *path, cx_cli_exec_policy *out, cx_err *err)
{
    cx_run_findings findings;
    cx_bytes bytes;
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    cx_run_findings_init(&findings, &cli->arena);
    cx_status status =
        cx_run_contract_read(cx_bytes_str(bytes), &cli->arena, &findings, &out->contract, err);
    if (!cx_failed(status))
        status = cx_run_findings_check(&findings, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = fail_finding(path, &findings, err);
    cx_run_findings_done(&findings);
    out->has_contract = !cx_failed(status);
    return status;
}

/* E1 */
static cx_status apply_contract(cx_cli *cli, cx_cli_exec_policy *out, cx_err *err)
{
    cx_egress_list list;
    const cx_str_list *hosts = &out->contract.network_hosts;
    cx_egress_policy *policy = &out->egress;
    if (out->contract.network == CX_NETWORK_DENY || hosts->count == 0) {
        if (out->contract.network != CX_NETWORK_ALLOW)
            policy->network = CX_EGRESS_DENY;
        return CX_SUCCESS;
    }
    CX_TRY(cx_egress_list_make(hosts->items, hosts->count, "the contract's network_hosts",
                               &cli->arena, &list, err));
    if (policy->network == CX_EGRESS_DENY && strcmp(out->from, "none") == 0)
        policy->network = CX_EGRESS_ALLOWLIST; /* no policy says otherwise */
    return cx_egress_policy_narrow(policy, &list, err);
}

static cx_status apply_network(const cx_cli_args *args, cx_egress_policy *policy)
{
    const char *network = cx_cli_value(args, "network");
    if (network == NULL)
        return CX_SUCCESS;
    policy->network = strcmp(network, "deny") == 0    ? CX_EGRESS_DENY
                      : strcmp(network, "allow") == 0 ? CX_EGRESS_ALLOW
                                                      : CX_EGRESS_ALLOWLIST;
    return CX_SUCCESS;
}

static cx_status load_credentials(cx_cli *cli, const cx_cli_args *args, cx_cli_exec_policy *out,
                                  cx_err *err)
{
    const cx_str *given;
    size_t count;
    cx_egress_policy *policy = &out->egress;
    CX_TRY(cx_cli_all_values(cli, args, "credential", &given, &count, err));
    cx_str *names = CX_ARENA_ARRAY(&cli->arena, cx_str, count + policy->credential_count + 1);
    if (names == NULL)
        return cx_fail_nomem(err);
    size_t all = 0;
    for (size_t i = 0; i < policy->credential_count + count; i++) {
        cx_str name = i < policy->credential_count ? policy->credentials[i]
                                                   : given[i - policy->credential_count];
        bool known = false;
        for (size_t k = 0; k < all && !known; k++)
            known = cx_str_eq(names[k], name);
        if (!known)
            names[all++] = name;
    }
    policy->credentials = names;
    policy->credential_count = all;
    if (all == 0 || policy->network == CX_EGRESS_DENY)
        return CX_SUCCESS;
    const char *path = cx_cli_credentials_path(cli);
    if (path == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected $HOME, or $CORTEX_CREDENTIALS with the file of "
                       "the credentials that the policy names");
    return cx_egress_credentials_load(path, names, all, &cli->arena, &out->credentials, err);
}

cx_status cx_cli_exec_policy_load(cx_cli *cli, const cx_cli_args *args, const cx_cli_place *place,
                                  cx_cli_exec_policy *out, cx_err *err)
{
    const char *contract = cx_cli_value(args, "contract");
    memset(out, 0, sizeof *out);
    CX_TRY(read_base(cli, args, place, out, err));
    CX_TRY(add_hosts(cli, args, &out->egress, err));
    CX_TRY(apply_network(args, &out->egress));
    if (contract != NULL) {
        CX_TRY(read_contract(cli, contract, out, err));
        CX_TRY(apply_contract(cli, out, err));
    }
    return load_credentials(cli, args, out, err);
}
