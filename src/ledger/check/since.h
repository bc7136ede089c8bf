/*
 * since.h - one journal against an older checkpoint of it, reading of the log only what came after.
 *
 * The right edge that the tree had at the checkpoint is read from the tables and must lead to the
 * checkpoint's root.  Each later entry is read from the log, checked in itself, and appended to
 * that edge, which in the end must be the edge that the tables have now.  So the journal as it is
 * now begins with what the checkpoint covers, and goes on with these entries.  Of the entries
 * before, only that hashes of them lead to the checkpoint is seen; the log was not read there.
 */
#ifndef CX_LEDGER_CHECK_SINCE_H
#define CX_LEDGER_CHECK_SINCE_H

#include "ledger/internal.h"
#include "ledger/verify.h"

/* Of a data directory that is open for reading; adds to `totals`.  CX_E_NOT_FOUND "NoTables": no
 * tables that are up to date. */
CX_RESULT cx_home_check_since(cx_home *home, const cx_home_verify_options *options,
                              const cx_check_sink *sink, cx_home_totals *totals, cx_err *err);

#endif
