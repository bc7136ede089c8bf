/*
 * contract_command.h - policies and contracts in the form that the command gate needs (run.md §8).
 */
#ifndef CX_CONTRACT_CONTRACT_COMMAND_H
#define CX_CONTRACT_CONTRACT_COMMAND_H

#include "command/api.h"
#include "contract/contract.h"

/*
 * The rules of a pack: its prefixes, and the forbidden actions of the repository, of the pack and
 * of `actions` (a contract's; may be empty).  CX_PACK_NONE is a command of no contract.
 */
CX_RESULT cx_run_policy_rules(const cx_run_policy *policy, cx_run_pack pack, cx_str_list actions,
                              cx_arena *arena, cx_run_command_rules *out, cx_err *err);

/* The trusted folders of the config; `forbidden` as in cx_run_trust.  Borrows from all of them. */
cx_run_trust cx_run_config_trust(const cx_run_config *config, const cx_str *forbidden,
                                 size_t forbidden_count);

/* The checks of the command gate: K10 uses the contract's pack, actions and network. */
extern const cx_contract_checks cx_run_contract_command_checks;

#endif
