/*
 * runs.h - the governed runs of one repository, as the server shows and starts them (run.md §21).
 *
 * Reading uses audit/view.h.  Three tasks need more than a call: live tails of events, which one
 * thread feeds, the queue of requests (plan_queue.h), and runs that were started here.  A run is a
 * separate process, `cortex run`; it writes its entries through the socket of the data directory
 * (decision 0008) and is stopped when the server stops.
 */
#ifndef CX_SERVER_RUNS_H
#define CX_SERVER_RUNS_H

#include "stores/api.h"
#include "audit/api.h"
#include "server/service.h"

#define CX_RUN_TAILS_MAX 64            /* live readers at once */
#define CX_RUN_TAIL_KEEPALIVE_MS 15000 /* §21: a comment line when nothing else was sent */
#define CX_RUN_STARTED_MAX 16          /* runs started here that go on at once */
#define CX_RUN_START_WAIT_MS 60000     /* until a started run has an id */

typedef struct cx_runs_options {
    const cx_alloc *alloc;
    const cx_io *io;
    const char *repo;         /* absolute: a folder in the repository's main checkout */
    const char *runtime_root; /* absolute, as returned by cx_run_store_root */
    const char *program;     /* absolute path of this program, for starting runs; NULL = none can */
    const char *const *envp; /* what started runs get, ends with NULL; NULL = nothing */
    const char *home_path;   /* absolute */
    cx_home *home;           /* open; outlives it */
} cx_runs_options;

/* The runtime root need not be there yet. */
CX_RESULT cx_runs_open(const cx_runs_options *options, cx_runs **out, cx_err *err);
/* Ends all tails, and stops runs that were started here. */
void cx_runs_end(cx_runs *runs);
/* NULL is fine.  Waits for the runs that were started. */
void cx_runs_close(cx_runs *runs);

/* The runs that a call is about; CX_E_UNSUPPORTED when no repository is served. */
CX_RESULT cx_api_runs_of(cx_call *call, cx_runs **out, cx_err *err);

const char *cx_runs_repo(const cx_runs *runs);
/* CX_E_NOT_FOUND as long as there is no runtime root: nothing ever ran here. */
CX_RESULT cx_runs_store(const cx_runs *runs, cx_run_store *out, cx_err *err);
cx_run_index *cx_runs_index(const cx_runs *runs);
const cx_runs_options *cx_runs_options_of(const cx_runs *runs);
/* A case was queued: its planner need not wait. */
void cx_runs_wake_queue(cx_runs *runs);

/* --- tails ------------------------------------------------------------------------------------ */

/*
 * The body of GET /runs/{id}/events/stream: events after index `after`, then new ones as they are
 * written, until RUN_FINISHED.  The id was checked.
 */
CX_RESULT cx_runs_tail(cx_runs *runs, cx_str run_id, uint64_t after, void (*wake)(void *arg),
                       void *arg, cx_stream **out, cx_err *err);

/* --- starting --------------------------------------------------------------------------------- */

typedef struct cx_run_start {
    cx_bytes contract; /* or, with `is_intent`, a request of at most CX_RUN_INTENT_BYTES_MAX */
    bool is_intent;
    cx_str runner; /* data NULL = as contract or configuration say */
    bool no_merge;
    bool plan_only; /* of a request: nothing works on its contract */
    bool until_end; /* return when the run has ended, not when it has an id */
} cx_run_start;

typedef struct cx_run_started {
    cx_str run_id;  /* empty: it ended without making a run */
    int exit_code;  /* then */
    cx_str message; /* then: its error output */
} cx_run_started;

/* Returns when the run has an id, or ended.  CX_E_BUSY: too many go on; CX_E_UNSUPPORTED: no
 * program.
 */
CX_RESULT cx_runs_start(cx_runs *runs, const cx_run_start *what, cx_arena *arena,
                        cx_run_started *out, cx_err *err);

#endif
