/*
 * repair.h - the tables of a data directory against themselves: which rows are damaged, and making
 * those again that others lead to.
 *
 * No log is read.  A page of a tree must fold to the row above it, up to the actor's row; a node of
 * a journal must follow from the leaves; rows with a checksum must have it.  So damage is found and
 * named; rows that were changed together with all hashes above them are not (verify.h does that).
 */
#ifndef CX_LEDGER_CHECK_REPAIR_H
#define CX_LEDGER_CHECK_REPAIR_H

#include "ledger/home.h"

typedef struct cx_table_damage {
    cx_str actor;     /* empty: not of one actor; borrowed for the call */
    const char *what; /* "memories", "edges": a page; "journal": a node; "entry", "record", "actor",
                          "hash", "database": rows of it */
    char where[64];   /* "page 3f00/8 of level 0", "node 7 of level 1"; "" when not known */
    const char *why;
    bool repaired;
    const char *left; /* why it was not; "" = repairing was not asked for */
} cx_table_damage;

typedef struct cx_tables_check {
    uint64_t actors, pages, nodes, entries, records; /* that were looked at */
    uint64_t damaged, repaired;
    bool usable; /* false: there are no tables that are up to date; nothing was looked at */
} cx_tables_check;

typedef struct cx_tables_repairing {
    bool repair; /* the data directory is open for writing */
    cx_status (*found)(void *arg, const cx_table_damage *damage, cx_err *err);
    void *arg;
} cx_tables_repairing;

/*
 * Looks at all rows, and with `repair` makes pages from their leaves, leaves from the records, and
 * nodes of journals from the leaves, where the result is what the row above says.  Rows that came
 * back in a tree with snapshots are left, as nothing tells when they came: a rebuild does.  Holds
 * the write transaction.  CX_E_BUSY "Remote" of a remote data directory.
 */
CX_RESULT cx_home_check_tables(cx_home *home, const cx_tables_repairing *how, cx_tables_check *out,
                               cx_err *err);

#endif
