/*
 * db - the databases of derived tables: SQLite and PostgreSQL through one interface.
 *
 * Knows nothing of the ledger: what is in a database can be made again from the log.
 */
#ifndef CX_DB_API_H
#define CX_DB_API_H

#include "db/db.h"
#include "db/files.h"
#include "db/pg.h"

#endif
