/*
 * index_pg.h - the index in PostgreSQL, shared by its files.
 */
#ifndef CX_INDEX_INDEX_PG_H
#define CX_INDEX_INDEX_PG_H

#include "db/api.h"
#include "index/index_internal.h"

/* A row that waits for COPY; its bytes are in `rows` of the index. */
typedef struct cx_pg_pending {
    cx_str agent, trace_id, action_executed, action_timestamp, signer;
    cx_str name; /* key in `traces` below */
    cx_row_key key;
    int64_t received_ns;
    size_t offset, size; /* of the row's bytes */
    size_t primary_at;   /* of its primary_row, in them */
    int64_t next;        /* earlier waiting row of the same trace; -1 = none */
    bool replaced;       /* replaced by a later one of the same level */
    bool primary;
} cx_pg_pending;

typedef struct cx_pg_index {
    cx_pg *pg;
    bool timescale;
    cx_buf rows; /* encoded rows that wait for COPY */
    cx_arena texts;
    cx_map traces; /* agent, NUL, trace_id -> last pending row of that trace */
    CX_VEC(cx_pg_pending) pending;
    CX_VEC(int64_t) days;        /* days that have a partition; sorted */
    CX_VEC(int64_t) stale_hours; /* stale hours already recorded in this transaction; sorted */
    bool days_known;
    unsigned days_made; /* in this transaction */
} cx_pg_index;

bool cx_index_pg_is_timescale(const cx_index *index);
/* INSERT of the summaries of stale hours. */
void cx_index_pg_refresh_sql(cx_buf *sql);

/* index_pg_days.c: partitions by day. */
cx_status cx_index_pg_make_days(cx_index *index, cx_err *err);
cx_status cx_index_pg_drop_days(cx_index *index, int64_t before_ns, uint64_t *out, cx_err *err);

/* index_pg_feed.c: rows in bulk. */
cx_status cx_index_pg_put(cx_index *index, const cx_trace_row *row, cx_err *err);
cx_status cx_index_pg_flush(cx_index *index, cx_err *err);
cx_status cx_index_pg_touch(cx_index *index, int64_t ns, cx_err *err);
void cx_index_pg_forget_rows(cx_pg_index *own);

/* Inserts into a sorted vector of days or hours; *out_new is false when it was there. */
cx_status cx_index_pg_add_number(void *vector, int64_t number, bool *out_new, cx_err *err);

#endif
