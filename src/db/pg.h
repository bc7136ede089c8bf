/*
 * pg.h - PostgreSQL: SQL in, rows out, and rows in bulk.
 *
 * libpq is loaded when a connection is first opened: linking it would cost every start of the
 * program several milliseconds.  Values travel in binary both ways and are always parameters.
 * A statement is prepared when its text is first used and found again by its text.
 *
 *     CX_E_UNSUPPORTED             built without PostgreSQL, or libpq is not installed
 *     CX_E_IO      DatabaseAway    the server cannot be reached, went away, or is out of disk
 *     CX_E_BUSY    DatabaseAway    no connection left, too slow, or a lock: try again
 *     CX_E_DENIED                  user, password, rights
 *     CX_E_FORMAT  DatabaseDamaged the tables are not what they should be
 *     CX_E_FORMAT  DatabaseRefused the server does not take a value
 *
 * Messages name what failed and the SQLSTATE, never SQL or data.  A connection belongs to one
 * thread at a time.
 */
#ifndef CX_DB_PG_H
#define CX_DB_PG_H

#include "base/api.h"

typedef struct cx_pg cx_pg;

typedef struct cx_pg_options {
    unsigned connect_timeout_s; /* the URL's own wins */
    unsigned statement_timeout_ms;
    const char *application_name; /* likewise */
    bool read_only;
    bool warnings;              /* counts what the server warns of (cx_pg_warnings) */
    unsigned answer_timeout_ms; /* of cx_pg_query: the connection is given up; 0 = waits on */
} cx_pg_options;
#define CX_PG_OPTIONS_INIT                                                                    \
    {                                                                                         \
        .connect_timeout_s = 10, .statement_timeout_ms = 120000, .application_name = "cortex" \
    }

typedef enum cx_pg_type {
    CX_PG_TEXT,  /* text */
    CX_PG_INT,   /* bigint */
    CX_PG_FLOAT, /* double precision */
    CX_PG_BOOL,  /* boolean */
    CX_PG_TIME,  /* timestamptz; ns since 1970, kept to the microsecond below */
    CX_PG_JSON,  /* jsonb, as text */
    CX_PG_TEXTS, /* text[], as the text of a JSON array of strings */
    CX_PG_UUID,  /* uuid, 36 characters */
    CX_PG_LIST,  /* text[] from `items`; only as a parameter */
    CX_PG_TIMES, /* timestamptz[] from `times`; only as a parameter */
    CX_PG_BYTES, /* bytea, as `text` */
    CX_PG_BLOBS, /* bytea[] from `items`; only as a parameter */
    CX_PG_INTS   /* bigint[] from `times`; only as a parameter */
} cx_pg_type;

typedef struct cx_pg_value {
    cx_pg_type type;
    bool null;
    union {
        int64_t i;
        double f;
        bool b;
        cx_str text;
        const cx_str *items;
        const int64_t *times;
    };
    size_t count; /* of items or times */
} cx_pg_value;

/* --- connections ------------------------------------------------------------------------------ */

CX_RESULT cx_pg_open(const char *url, const cx_pg_options *options, cx_pg **out, cx_err *err);
void cx_pg_close(cx_pg *pg);
/* Whether the connection is known to be broken. */
bool cx_pg_is_away(const cx_pg *pg);
/* Connects again after a lost connection; the session's state starts empty. */
CX_RESULT cx_pg_reconnect(cx_pg *pg, cx_err *err);
/* The SQLSTATE of the statement that failed last; "" when the server gave none, so that what became
 * of a statement is not known.  Connecting has none. */
const char *cx_pg_state(const cx_pg *pg);
/* Warnings of the server since the last cx_pg_query or cx_pg_run began, with `warnings` set. */
unsigned cx_pg_warnings(const cx_pg *pg);

/* --- statements ------------------------------------------------------------------------------- */

/* One or more statements without values; rows are thrown away. */
CX_RESULT cx_pg_run(cx_pg *pg, const char *sql, cx_err *err);
CX_RESULT cx_pg_begin(cx_pg *pg, cx_err *err);
CX_RESULT cx_pg_commit(cx_pg *pg, cx_err *err);
void cx_pg_rollback(cx_pg *pg); /* no transaction: nothing happens */

/* Called for each row with a value for each column, borrowed until it returns. */
typedef cx_status cx_pg_row(void *arg, const cx_pg_value *columns, cx_err *err);
#define CX_PG_COLUMNS_MAX 128

/* `sql` has $1 .. for the values; `types` are those of the columns; `row` is NULL where none is
 * wanted.  *out_changed (or NULL) is the number of rows changed or read. */
CX_RESULT cx_pg_query(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t value_count,
                      const cx_pg_type *types, size_t column_count, cx_pg_row *row, void *arg,
                      uint64_t *out_changed, cx_err *err);

/* Statements without rows whose outcome is looked at later, at the latest by cx_pg_drain: no round
 * trip each.  Nothing else may be done in between. */
CX_RESULT cx_pg_queue(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t value_count,
                      cx_err *err);
CX_RESULT cx_pg_drain(cx_pg *pg, cx_err *err);

/* Forgets the prepared statements, as after tables were rebuilt. */
CX_RESULT cx_pg_forget(cx_pg *pg, cx_err *err);

/* --- rows in bulk ----------------------------------------------------------------------------- */

/* A row of COPY .. (FORMAT binary): its head, then each value. */
void cx_pg_add_row(cx_buf *out, unsigned column_count);
CX_RESULT cx_pg_add_value(cx_buf *out, const cx_pg_value *value, cx_err *err);

/* `sql` is COPY .. FROM STDIN (FORMAT binary); rows follow as made by the functions above. */
CX_RESULT cx_pg_copy_begin(cx_pg *pg, const char *sql, cx_err *err);
CX_RESULT cx_pg_copy_rows(cx_pg *pg, cx_bytes rows, cx_err *err);
/* The outcome of the whole COPY. */
CX_RESULT cx_pg_copy_end(cx_pg *pg, cx_err *err);

#endif
