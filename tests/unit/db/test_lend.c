/*
 * test_lend.c - a connection that is lent is used by the thread that borrowed it, and by no other
 * until it is given back.
 */
#include <stdatomic.h>
#include <time.h>

#include "base/api.h"
#include "db/db.h"
#include "tests/test.h"

enum { LOANS = 20, ROWS = 50 };

typedef struct loan {
    cx_db *db;
    atomic_bool returned; /* just before it is given back */
    cx_status status;
    cx_err err;
} loan;

static void rest(long milliseconds)
{
    const struct timespec time = {0, milliseconds * 1000000};
    (void)nanosleep(&time, NULL);
}

static cx_status add_rows(loan *l)
{
    CX_TRY(cx_db_begin_write(l->db, &l->err));
    for (int i = 0; i < ROWS; i++) {
        CX_TRY(cx_db_run(l->db, "INSERT INTO t VALUES(1)", &l->err));
        if (i % 10 == 0)
            rest(1); /* so that the other thread gets to its call in between */
    }
    return cx_db_commit(l->db, &l->err);
}

static void borrow(void *arg)
{
    loan *l = arg;
    cx_db_borrow(l->db);
    l->status = add_rows(l);
    atomic_store(&l->returned, true);
    cx_db_give_back(l->db);
}

static int64_t count_rows(cx_db_statement *count)
{
    cx_err err;
    bool row = false;
    CHECK_STATUS(cx_db_step(count, &row, &err), &err);
    const int64_t rows = row ? cx_db_int(count, 0) : -1;
    cx_db_reset(count);
    return rows;
}

/* Each kind of call of the thread that lent it waits. */
static void use(unsigned which, cx_db *db, cx_db_statement *count)
{
    cx_err err;
    cx_db_statement *other = NULL;
    switch (which % 4) {
    case 0: (void)count_rows(count); break;
    case 1: CHECK_STATUS(cx_db_run(db, "SELECT 1", &err), &err); break;
    case 2:
        CHECK_STATUS(cx_db_prepare(db, "SELECT 2", &other, &err), &err);
        cx_db_finish(other);
        break;
    default:
        /* Within the transaction of the other thread this would be an error. */
        CHECK_STATUS(cx_db_begin_write(db, &err), &err);
        CHECK_STATUS(cx_db_commit(db, &err), &err);
    }
}

CX_TEST(db_that_is_lent_is_waited_for)
{
    cx_err err;
    cx_db *db = NULL;
    cx_db_statement *count = NULL;
    CHECK_STATUS(cx_db_open(NULL, CX_DB_SCRATCH, &db, &err), &err);
    if (db == NULL)
        return;
    CHECK_STATUS(cx_db_run(db, "CREATE TABLE t(a)", &err), &err);
    CHECK_STATUS(cx_db_prepare(db, "SELECT count(*) FROM t", &count, &err), &err);
    for (unsigned i = 0; i < LOANS; i++) {
        loan l = {.db = db};
        cx_thread thread = {0};
        cx_db_lend(db);
        CHECK(cx_thread_start(&thread, borrow, &l));
        use(i, db, count);
        CHECK(atomic_load(&l.returned));
        CHECK_INT(count_rows(count), (int64_t)ROWS * (i + 1));
        cx_thread_join(&thread);
        CHECK_STATUS(l.status, &l.err);
    }
    cx_db_finish(count);
    cx_db_close(db);
}

/* As where no thread could be started: the one that lends it borrows it itself. */
CX_TEST(db_can_be_lent_to_the_same_thread)
{
    cx_err err;
    cx_db *db = NULL;
    CHECK_STATUS(cx_db_open(NULL, CX_DB_SCRATCH, &db, &err), &err);
    if (db == NULL)
        return;
    CHECK_STATUS(cx_db_run(db, "CREATE TABLE t(a)", &err), &err);
    for (int i = 0; i < 2; i++) {
        loan l = {.db = db};
        cx_db_lend(db);
        borrow(&l);
        CHECK_STATUS(l.status, &l.err);
        CHECK_STATUS(cx_db_run(db, "INSERT INTO t VALUES(2)", &err), &err);
    }
    cx_db_close(db);
}
