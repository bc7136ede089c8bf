/*
 * sensitive_args.c - options and settings become rules.
 */
#include "cli/erasure/sensitive_args.h"

#include "cli/ledger/ledger.h"

cx_status cx_cli_sensitive_rules(cx_cli *cli, const cx_cli_args *args,
                                 const cx_sensitive_rules **out, cx_err *err)
{
    const cx_str *policy, *patterns;
    size_t policy_count = 0, pattern_count = 0;
    CX_TRY(cx_cli_all_values(cli, args, "sensitive", &policy, &policy_count, err));
    CX_TRY(cx_cli_all_values(cli, args, "sensitive-pattern", &patterns, &pattern_count, err));
    return cx_sensitive_rules_make(policy, policy_count, patterns, pattern_count, &cli->arena, out,
                                   err);
}
