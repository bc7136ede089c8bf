/*
 * contract_command.c - converts policies and contracts to the rules of the command gate.
 */
#include "contract/contract_command.h"

cx_status cx_run_policy_rules(const cx_run_policy *policy, cx_run_pack pack, cx_str_list actions,
                              cx_arena *arena, cx_run_command_rules *out, cx_err *err)
{
    CX_ASSERT(actions.count == 0 || actions.items != NULL);
    bool known = pack < CX_PACK_COUNT;
    const cx_run_pack_rules *rules = &policy->packs[known ? pack : CX_PACK_NONE];
    const cx_str_list lists[] = {policy->forbidden_actions, rules->forbidden_actions, actions};
    size_t count = 0;
    cx_run_argv *allow = CX_ARENA_ARRAY(arena, cx_run_argv, rules->allow_count + 1);
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        count += lists[i].count;
    cx_str *forbidden = CX_ARENA_ARRAY(arena, cx_str, count + 1);
    if (allow == NULL || forbidden == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < rules->allow_count; i++)
        CX_TRY(
            cx_run_argv_make(rules->allow[i].items, rules->allow[i].count, arena, &allow[i], err));
    count = 0;
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        for (size_t k = 0; k < lists[i].count; k++)
            forbidden[count++] = lists[i].items[k];
    *out = (cx_run_command_rules){known, allow, known ? rules->allow_count : 0, forbidden, count};
    return CX_SUCCESS;
}

cx_run_trust cx_run_config_trust(const cx_run_config *config, const cx_str *forbidden,
                                 size_t forbidden_count)
{
    CX_ASSERT(forbidden_count == 0 || forbidden != NULL);
    return (cx_run_trust){.folders = config->trusted_dirs.items,
                          .folder_count = config->trusted_dirs.count,
                          .owner_uid = config->has_trusted_uid ? config->trusted_uid : 0,
                          .forbidden = forbidden,
                          .forbidden_count = forbidden_count};
}

static cx_status check_command(const cx_run_policy *policy, const cx_contract *contract,
                               cx_str command, cx_arena *arena, const char **out_row,
                               cx_str *out_reason, cx_err *err)
{
    cx_run_command_rules rules;
    cx_run_command_verdict verdict;
    CX_TRY(cx_run_policy_rules(policy, contract->pack, contract->forbidden_actions, arena, &rules,
                               err));
    cx_run_command_options options = {.rules = &rules,
                                      .network_policy =
                                          cx_str_z(cx_run_network_name(contract->network)),
                                      .lint = true};
    CX_TRY(cx_run_command_check(&options, command, arena, &verdict, err));
    *out_row = verdict.allow ? NULL : verdict.rule;
    *out_reason = verdict.reason;
    return CX_SUCCESS;
}

const cx_contract_checks cx_run_contract_command_checks = {check_command, cx_run_command_trivial};
