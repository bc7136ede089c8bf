/*
 * run_tail.h - live tails of events: one thread reads the files, sending threads take the events
 * that it has buffered.
 */
#ifndef CX_SERVER_RUN_TAIL_H
#define CX_SERVER_RUN_TAIL_H

#include "bundle/api.h"
#include "server/service.h"

typedef struct cx_run_tails cx_run_tails;

CX_RESULT cx_run_tails_open(const cx_io *io, const cx_alloc *alloc, cx_run_tails **out,
                            cx_err *err);
void cx_run_tails_end(cx_run_tails *tails);
void cx_run_tails_close(cx_run_tails *tails); /* NULL is fine; all readers must have left */
CX_RESULT cx_run_tails_join(cx_run_tails *tails, const cx_run_store *store, cx_str run_id,
                            uint64_t after, void (*wake)(void *arg), void *arg, cx_stream **out,
                            cx_err *err);

#endif
