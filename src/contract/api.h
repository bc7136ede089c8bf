/*
 * contract - what an agent may do: the contract, roles, policies, configuration, their checks.
 *
 * Read from the baseline, never from what an agent left.
 */
#ifndef CX_CONTRACT_API_H
#define CX_CONTRACT_API_H

#include "contract/config.h"
#include "contract/contract.h"
#include "contract/contract_command.h"
#include "contract/contract_repo.h"
#include "contract/gates.h"
#include "contract/policy.h"
#include "contract/role.h"

#endif
