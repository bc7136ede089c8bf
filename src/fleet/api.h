/*
 * fleet - the log of many nodes in PostgreSQL: parts, leases, commits that count once.
 *
 * Knows the frames of a ledger where a data directory is imported or exported; appends, leases and
 * the hash chain know bytes only.
 */
#ifndef CX_FLEET_API_H
#define CX_FLEET_API_H

#include "fleet/fleet.h"

#endif
