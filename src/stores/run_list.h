/*
 * run_list.h - governed runs that a data directory knows of, without their bundles: what their rows
 * and entries say (recorder/rows/run_rows.h).  Of a run that is listed two entries are read, of
 * others nothing.
 */
#ifndef CX_STORES_RUN_LIST_H
#define CX_STORES_RUN_LIST_H

#include "ledger/api.h"
#include "bundle/api.h"

typedef struct cx_run_listed {
    cx_str run_id, actor;
    cx_str task_id, status; /* of the seal; data NULL without one */
    int64_t created_ns;     /* of the first event that is known; INT64_MIN: none is */
    int64_t sealed_ns;      /* of the seal; INT64_MIN without one */
} cx_run_listed;

/* At most `limit` runs, newest first by their id, from the one before `cursor` on (data NULL = from
 * the newest).  Memory from the arena; none: there are no more. */
CX_RESULT cx_run_list_recorded(cx_home *home, cx_str cursor, size_t limit, cx_arena *arena,
                               cx_run_listed **out, size_t *out_count, cx_err *err);

#endif
