/*
 * run_end.h - the end of a run whose machine did not seal it, as another machine records it
 * (decision 0056): an entry run.end in the journal of its runs.
 *
 * It says what the journal has - how many events, and the hash of the last - by whom and why the
 * run was ended, and that its bundle is missing.  It is no seal: nothing of it makes a bundle hold,
 * and the seal that the machine of the run may still add takes its place.
 */
#ifndef CX_STORES_RUN_END_H
#define CX_STORES_RUN_END_H

#include "bundle/api.h"
#include "ledger/api.h"

#define CX_RUN_END_TAG "RunEndedUnsealed" /* of errors: CX_E_NOT_FOUND */

/* What an entry run.end says.  Text is borrowed. */
typedef struct cx_run_ending {
    cx_str run_id, reason, host; /* of the machine that has the bundle, if anything has */
    cx_str by_host, ended_at;
    uint64_t token; /* of the run's lease */
    uint64_t event_count;
    cx_digest chain_head; /* of event `event_count`; zero when there is none */
} cx_run_ending;

cx_id cx_run_end_subject(cx_str run_id);
CX_RESULT cx_run_end_write(const cx_run_ending *ending, cx_arena *arena, cx_buf *out, cx_err *err);
/* The first entry about the run in the journal `actor`; *out_found is false when there is none that
 * has the form.  Memory from the arena. */
CX_RESULT cx_run_end_find(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                          cx_run_ending *out, bool *out_found, cx_err *err);
/* CX_E_NOT_FOUND CX_RUN_END_TAG: in words, why there is no bundle. */
CX_RESULT cx_run_end_fail(const cx_run_ending *ending, cx_err *err);

#endif
