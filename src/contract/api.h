/*
 * contract - what an agent may do: contracts, roles, policies, configuration, and their checks.
 *
 * Everything is read from the baseline, never from what an agent left.  Numbered invariants are in
 * contract.h, policy.h, config.h, role.h and gates.h; tests cite them as "policy.h P1".
 */
#ifndef CX_CONTRACT_API_H
#define CX_CONTRACT_API_H

#include "contract/agents.h"
#include "contract/config.h"
#include "contract/contract.h"
#include "contract/contract_command.h"
#include "contract/contract_repo.h"
#include "contract/gates.h"
#include "contract/policy.h"
#include "contract/role.h"

#endif
