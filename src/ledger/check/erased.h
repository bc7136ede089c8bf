/*
 * erased.h - erased content that no entry has explained yet, while the log is being verified.
 *
 * The marks are rows of a table next to the derived ones, so memory does not grow with them.
 */
#ifndef CX_LEDGER_CHECK_ERASED_H
#define CX_LEDGER_CHECK_ERASED_H

#include "base/api.h"
#include "db/api.h"
#include "proof/api.h"

/* An entry or frame whose erasable part is gone. */
typedef struct cx_erased_mark {
    cx_str actor;
    uint64_t seq;
    const cx_id *subject; /* the memory that it is about; NULL: the payload of entry `seq` */
} cx_erased_mark;

typedef struct cx_erased cx_erased;

/* Makes its table in `db` where it is missing; rows that are there are kept, or with `empty`
 * removed. Close it before the connection. */
CX_RESULT cx_erased_open(cx_db *db, bool empty, const cx_alloc *alloc, cx_erased **out,
                         cx_err *err);
void cx_erased_close(cx_erased *erased); /* NULL is fine */
CX_RESULT cx_erased_add(cx_erased *erased, const cx_erased_mark *mark, cx_err *err);
/* An entry says why: the marks of an entry's payload (subject NULL) or of a memory are dropped. */
CX_RESULT cx_erased_explain(cx_erased *erased, const cx_erased_mark *target, cx_err *err);
/* Those that are left, in the order in which they were added. */
CX_RESULT cx_erased_each(cx_erased *erased,
                         cx_status (*left)(void *arg, cx_str actor, uint64_t seq, cx_err *err),
                         void *arg, cx_err *err);

#endif
