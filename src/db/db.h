/*
 * db.h - the database of derived tables: SQL in, rows out.
 *
 * A thin, safe face on SQLite: one file, statements prepared once, errors as cx_err.  Nothing in it
 * is the truth: its user must be able to fill it again.  A connection belongs to one thread
 * at a time (cx_db_lend).  SQLite keeps to its write-ahead log, so readers of other processes see
 * whole transactions and never wait for the writer.  Files may also be in a cx_io: files.h.
 */
#ifndef CX_DB_DB_H
#define CX_DB_DB_H

#include "base/api.h"

typedef struct cx_db cx_db;
typedef struct cx_db_statement cx_db_statement;

typedef enum cx_db_mode {
    CX_DB_WRITE,     /* opens or makes the file */
    CX_DB_FILL,      /* the same, of a file that only this process uses until cx_db_filled */
    CX_DB_READ,      /* must exist; never changes it; sees what a living writer commits */
    CX_DB_IMMUTABLE, /* must exist, without a living writer; not a byte is changed */
    CX_DB_ALONE,     /* the same with the write-ahead log that a killed writer left, unchanged */
    /* Of another program, which may be hostile: the same as IMMUTABLE, without a lock, without
     * trust in what its schema calls, and what is asked of it ends after some seconds
     * (CX_E_LIMIT). */
    CX_DB_EXTERNAL,
    CX_DB_SCRATCH /* a private database that is gone when closed; the path is not used */
} cx_db_mode;

/* Of pages in memory, for each file that is opened. */
#define CX_DB_CACHE_DEFAULT (UINT64_C(64) << 20)
#define CX_DB_CACHE_MIN (UINT64_C(64) << 10)
/* Files that this process opens from here on keep at most so many bytes of pages in memory, or
 * CX_DB_CACHE_MIN. */
void cx_db_limit_cache(uint64_t bytes);

/*
 * Writers that this process closes from here on leave a write-ahead log of up to so many bytes, as
 * a killed one does; default none.  For processes that write little and end at once: moving it into
 * the file is three syncs, and reading it at the next opening takes less.
 */
void cx_db_leave_log(uint64_t bytes);

/* Before the first opening for writing: SQLite gives its side files the mode of the file, so it is
 * made readable by its owner only.  When it cannot be made, the opening says why.  An existing file
 * is not touched: closing it would drop the locks that other connections of this process have on it
 * (POSIX). */
void cx_db_make_private(const char *path);

/* CX_E_FORMAT "DatabaseDamaged" when the file is no database. */
CX_RESULT cx_db_open(const char *path, cx_db_mode mode, cx_db **out, cx_err *err);
/* Opens one more file, to be written or to be read (CX_DB_WRITE, CX_DB_READ); its tables are called
 * `name`.table.  `name` is a plain identifier. */
CX_RESULT cx_db_attach(cx_db *db, const char *path, cx_db_mode mode, const char *name, cx_err *err);
/*
 * Lends the connection to another thread that is about to be started, which begins with
 * cx_db_borrow and ends with cx_db_give_back: meanwhile every call of other threads waits for that.
 * None of their statements may stand on a row.
 */
void cx_db_lend(cx_db *db);
void cx_db_borrow(cx_db *db);
void cx_db_give_back(cx_db *db);

/* All statements must have been closed.  Empties the write-ahead log when it was the writer. */
void cx_db_close(cx_db *db);

/* Of a writer: moves all of its write-ahead log into the file and empties it, so that what was
 * overwritten is nowhere any more.  Waits some seconds for readers that are in the way, then
 * CX_E_BUSY. */
CX_RESULT cx_db_empty_log(cx_db *db, cx_err *err);
/* Of a writer whose file is in a cx_io (files.h): what was committed is durable and seen by
 * other processes when this returns.  Waits some seconds for readers of older transactions, then
 * CX_E_BUSY: nothing was lost, call it again.  With a file of the file system it does nothing. */
CX_RESULT cx_db_publish(cx_db *db, cx_err *err);
/* cx_db_empty_log of an attached file, and drops what is in memory of it.  False while another
 * connection uses it, or when it failed: nothing was lost, call it again. */
bool cx_db_empty_attached_log(cx_db *db, const char *name);
/*
 * Of a writer, without a statement or transaction under way: afterwards no byte of a row that was
 * deleted or overwritten is in the file, its write-ahead log, or the pages that this connection
 * keeps.  What it writes does not depend on the size of the file when all of it was written through
 * this module since it was made (`wiped`); else it is rewritten as a whole.  CX_E_BUSY as above.
 */
CX_RESULT cx_db_forget_deleted(cx_db *db, bool wiped, cx_err *err);

/* One or more statements without parameters and without rows. */
CX_RESULT cx_db_run(cx_db *db, const char *sql, cx_err *err);
CX_RESULT cx_db_begin(cx_db *db, cx_err *err); /* reading: one consistent view until the end */
/* Of a writer that fills a whole file: 256 MB may be in the write-ahead log before it is moved over
 * (16 MB else), so that a page which many transactions write is moved once. */
void cx_db_write_in_bulk(cx_db *db);
/* A file that was opened with CX_DB_FILL is as one of CX_DB_WRITE from here on; no transaction. */
CX_RESULT cx_db_filled(cx_db *db, cx_err *err);
CX_RESULT cx_db_begin_write(cx_db *db, cx_err *err);
CX_RESULT cx_db_commit(cx_db *db, cx_err *err);
void cx_db_rollback(cx_db *db); /* no transaction: nothing happens */

CX_RESULT cx_db_prepare(cx_db *db, const char *sql, cx_db_statement **out, cx_err *err);
void cx_db_finish(cx_db_statement *statement);

/* Parameters count from 1 and stay bound until bound again; bytes must live until the next
 * reset. */
void cx_db_bind_int(cx_db_statement *statement, int index, int64_t value);
void cx_db_bind_double(cx_db_statement *statement, int index, double value);
void cx_db_bind_bytes(cx_db_statement *statement, int index, cx_bytes value);
void cx_db_bind_text(cx_db_statement *statement, int index, cx_str value);
void cx_db_bind_null(cx_db_statement *statement, int index);

/* The next row; *out_row is false after the last one, and the statement is then reset. */
CX_RESULT cx_db_step(cx_db_statement *statement, bool *out_row, cx_err *err);
/* Runs a statement to its end, for those without rows. */
CX_RESULT cx_db_execute(cx_db_statement *statement, cx_err *err);
void cx_db_reset(cx_db_statement *statement);

/* Columns count from 0; borrowed until the next step or reset. */
int64_t cx_db_int(const cx_db_statement *statement, int column);
double cx_db_double(const cx_db_statement *statement, int column);
cx_bytes cx_db_bytes(const cx_db_statement *statement, int column);
cx_str cx_db_text(const cx_db_statement *statement, int column);
bool cx_db_is_null(const cx_db_statement *statement, int column);
/* The same value, stored in the same way. */
bool cx_db_equal(const cx_db_statement *left, const cx_db_statement *right, int column);

typedef enum cx_db_type { CX_DB_NULL, CX_DB_INT, CX_DB_BYTES, CX_DB_TEXT } cx_db_type;

/* A column of a row; bytes and text must live until the next row is asked for. */
typedef struct cx_db_value {
    cx_db_type type;
    int64_t number;
    cx_bytes bytes;
} cx_db_value;

#define CX_DB_COLUMNS_MAX 12
/* Sets the columns of the next row, or *out_more to false. */
typedef cx_status cx_db_next_row(void *arg, cx_db_value *columns, bool *out_more, cx_err *err);
/*
 * Inserts all rows that `next` gives into a table of that many columns, which costs less than a
 * statement for each (rows.c), the least in the order of the table's key.  No key may be there
 * already.  After a failure the transaction must be rolled back.
 */
CX_RESULT cx_db_insert_rows(cx_db *db, const char *table, size_t columns, cx_db_next_row *next,
                            void *arg, cx_err *err);

/* Rows changed by the last statement. */
int64_t cx_db_changes(const cx_db *db);
/* Reads every page and index: CX_E_FORMAT "DatabaseDamaged" with the first complaint. */
CX_RESULT cx_db_check(cx_db *db, cx_err *err);

#endif
