/*
 * egress - the way from a sandbox to the network: a proxy that checks each connection against
 * lists of hosts, resolves names itself, connects to what it checked, and reports it
 * (docs/formats/egress.md).
 *
 * Knows nothing of sandboxes, contracts, runs and the ledger.
 */
#ifndef CX_EGRESS_API_H
#define CX_EGRESS_API_H

#include "egress/address.h"
#include "egress/credential.h"
#include "egress/hello.h"
#include "egress/host.h"
#include "egress/policy.h"
#include "egress/proxy.h"
#include "egress/request.h"

#endif
