/*
 * fleet - data directories in PostgreSQL: parts, leases, fenced commits, their files as a cx_io.
 *
 * Knows files and bytes only; what is in them is the business of log, db and ledger.
 */
#ifndef CX_FLEET_API_H
#define CX_FLEET_API_H

#include "fleet/files.h"
#include "fleet/fleet.h"

#endif
