/*
 * erased.c - marks of erased content, as rows.
 */
#include "ledger/check/erased.h"

struct cx_erased {
    const cx_alloc *alloc;
    cx_db_statement *add, *drop_entry, *drop_subject, *scan;
};

static cx_status prepare(cx_erased *erased, cx_db *db, cx_err *err)
{
    CX_TRY(cx_db_run(db,
                     "CREATE TABLE IF NOT EXISTS erased(number INTEGER PRIMARY KEY,"
                     " actor TEXT NOT NULL, seq INTEGER NOT NULL, subject BLOB);"
                     "CREATE INDEX IF NOT EXISTS erased_seq ON erased(actor, seq);"
                     "CREATE INDEX IF NOT EXISTS erased_subject ON erased(actor, subject);",
                     err));
    CX_TRY(cx_db_prepare(db, "INSERT INTO erased(actor, seq, subject) VALUES(?,?,?)", &erased->add,
                         err));
    CX_TRY(cx_db_prepare(db, "DELETE FROM erased WHERE actor=? AND seq=? AND subject IS NULL",
                         &erased->drop_entry, err));
    CX_TRY(cx_db_prepare(db, "DELETE FROM erased WHERE actor=? AND subject=?",
                         &erased->drop_subject, err));
    return cx_db_prepare(db, "SELECT actor, seq FROM erased ORDER BY number", &erased->scan, err);
}

cx_status cx_erased_open(cx_db *db, bool empty, const cx_alloc *alloc, cx_erased **out, cx_err *err)
{
    cx_erased *erased = cx_alloc_zeroed(alloc, 1, sizeof *erased);
    if (erased == NULL)
        return cx_fail_nomem(err);
    erased->alloc = alloc;
    cx_status status = prepare(erased, db, err);
    if (!cx_failed(status) && empty)
        status = cx_db_run(db, "DELETE FROM erased", err);
    if (cx_failed(status))
        cx_erased_close(erased);
    else
        *out = erased;
    return status;
}

void cx_erased_close(cx_erased *erased)
{
    if (erased == NULL)
        return;
    cx_db_finish(erased->add);
    cx_db_finish(erased->drop_entry);
    cx_db_finish(erased->drop_subject);
    cx_db_finish(erased->scan);
    cx_alloc_free(erased->alloc, erased, sizeof *erased);
}

cx_status cx_erased_add(cx_erased *erased, const cx_erased_mark *mark, cx_err *err)
{
    cx_db_bind_text(erased->add, 1, mark->actor);
    cx_db_bind_int(erased->add, 2, (int64_t)mark->seq);
    if (mark->subject == NULL)
        cx_db_bind_null(erased->add, 3);
    else
        cx_db_bind_bytes(erased->add, 3,
                         cx_bytes_from(mark->subject->bytes, sizeof mark->subject->bytes));
    return cx_db_execute(erased->add, err);
}

cx_status cx_erased_explain(cx_erased *erased, const cx_erased_mark *target, cx_err *err)
{
    cx_db_statement *drop = target->subject == NULL ? erased->drop_entry : erased->drop_subject;
    cx_db_bind_text(drop, 1, target->actor);
    if (target->subject == NULL)
        cx_db_bind_int(drop, 2, (int64_t)target->seq);
    else
        cx_db_bind_bytes(drop, 2,
                         cx_bytes_from(target->subject->bytes, sizeof target->subject->bytes));
    return cx_db_execute(drop, err);
}

cx_status cx_erased_each(cx_erased *erased,
                         cx_status (*left)(void *arg, cx_str actor, uint64_t seq, cx_err *err),
                         void *arg, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (bool row = true; !cx_failed(status);) {
        status = cx_db_step(erased->scan, &row, err);
        if (cx_failed(status) || !row)
            break;
        status = left(arg, cx_db_text(erased->scan, 0), (uint64_t)cx_db_int(erased->scan, 1), err);
    }
    cx_db_reset(erased->scan);
    return status;
}
