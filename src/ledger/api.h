/*
 * ledger - the data directory: entries in the log, tables that follow, roots, snapshots, erasure.
 *
 * Knows what proof knows, and nothing of memories, traces or runs beyond their kinds.
 */
#ifndef CX_LEDGER_API_H
#define CX_LEDGER_API_H

#include "ledger/backup/backup.h"
#include "ledger/frame.h"
#include "ledger/handle.h"
#include "ledger/holds.h"
#include "ledger/check/repair.h"
#include "ledger/find/find.h"
#include "ledger/home.h"
#include "ledger/backup/home_format.h"
#include "ledger/root/home_root.h"
#include "ledger/kinds.h"
#include "ledger/seeds.h"
#include "ledger/snapshot.h"
#include "ledger/verify.h"

#endif
