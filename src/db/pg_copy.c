/*
 * pg_copy.c - COPY .. FROM STDIN (FORMAT binary).
 *
 *     "PGCOPY\n" FF 0D 0A 00   int32 flags (0)   int32 size of the header's extension (0)
 *     for each row: int16 columns, then each value with its length
 *     int16 -1
 */
#ifdef CX_WITH_PG

#include "db/pg_internal.h"

/* What is handed to libpq at a time: it keeps its own copy. */
#define CHUNK_BYTES ((size_t)1 << 20)

static cx_status copy_bytes(cx_pg *pg, const void *data, size_t size, cx_err *err)
{
    const char *at = data;
    while (size > 0) {
        size_t now = size < CHUNK_BYTES ? size : CHUNK_BYTES;
        if (pg->f.PQputCopyData(pg->handle, at, (int)now) != 1)
            return cx_pg_fail(pg, NULL, "copying rows", err);
        at += now;
        size -= now;
    }
    return CX_SUCCESS;
}

cx_status cx_pg_copy_begin(cx_pg *pg, const char *sql, cx_err *err)
{
    static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
    CX_ASSERT(!pg->in_copy && pg->queued == 0);
    PGresult *result = pg->f.PQexec(pg->handle, sql);
    cx_status status = CX_SUCCESS;
    if (pg->f.PQresultStatus(result) != PGRES_COPY_IN)
        status = cx_pg_fail(pg, result, "copying rows", err);
    pg->f.PQclear(result);
    if (cx_failed(status))
        return status;
    pg->in_copy = true;
    return copy_bytes(pg, header, 19, err);
}

cx_status cx_pg_copy_rows(cx_pg *pg, cx_bytes rows, cx_err *err)
{
    CX_ASSERT(pg->in_copy);
    return copy_bytes(pg, rows.data, rows.size, err);
}

cx_status cx_pg_copy_end(cx_pg *pg, cx_err *err)
{
    CX_ASSERT(pg->in_copy);
    cx_status status = copy_bytes(pg, "\377\377", 2, err);
    pg->in_copy = false;
    if (!cx_failed(status) && pg->f.PQputCopyEnd(pg->handle, NULL) != 1)
        status = cx_pg_fail(pg, NULL, "copying rows", err);
    return cx_failed(status) ? status : cx_pg_finish(pg, "copying rows", err);
}

#endif
