/*
 * pg_internal.h - a connection to PostgreSQL, inside this module.
 */
#ifndef CX_DB_PG_INTERNAL_H
#define CX_DB_PG_INTERNAL_H

#include "base/api.h"
#include "db/pg.h"
#include "db/pg_library.h"

struct cx_pg {
    cx_pg_library f; /* pg->f.PQexec(..) */
    PGconn *handle;
    cx_pg_options options;
    char *url;
    size_t url_size;
    cx_arena texts; /* of the prepared statements */
    cx_map statements;
    uint64_t statement_count;
    bool in_transaction;
    bool in_copy;
    unsigned queued;
    unsigned warnings; /* of the running statement */
    char state[6];     /* SQLSTATE of what failed last, "" = none */
    bool silent;       /* no answer in time: the connection is not used any more */
    cx_buf values;     /* of the statement being sent */
    cx_buf scratch;    /* of the row being read */
};

/* What a failed result, or (NULL) the connection, means; `doing` is named in the message. */
cx_status cx_pg_fail(cx_pg *pg, const PGresult *result, const char *doing, cx_err *err);
/* Reads and throws away what is left of the running statement; its first failure. */
cx_status cx_pg_finish(cx_pg *pg, const char *doing, cx_err *err);

#endif
