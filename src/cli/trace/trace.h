/*
 * trace.h - what the commands over recorded traces share: a recorder on the data directory, its
 * index brought up to date, traces and times as arguments, answers as JSON or text.
 */
#ifndef CX_CLI_TRACE_H
#define CX_CLI_TRACE_H

#include "cli/ledger/ledger.h"
#include "recorder/api.h"

#define CX_CLI_LEVELS "generic|detailed|full_traces"
#define CX_CLI_PROFILES "auto|spec-1.0|agent"

#define CX_CLI_OPTION_DB               \
    CX_CLI_OPT(                        \
        "db", 0, CX_CLI_TEXT, "WHERE", \
        "The index: a file, or postgresql://..; default cirislens.db in the data directory.")
/* Who changes something: `actor` of the job. */
#define CX_CLI_OPTION_BY                 \
    CX_CLI_OPT(                          \
        "actor", 0, CX_CLI_TEXT, "NAME", \
        "The actor to record; default $CORTEX_ACTOR, else $LOGNAME or $USER, else \"local\".")
#define CX_CLI_OPTIONS_TRACES CX_CLI_OPTION_HOME, CX_CLI_OPTION_DB, CX_CLI_OPTION_JSON

#define CX_CLI_EXITS_INDEX                                                                \
    "2 usage error, or something named does not exist\n3 could not be answered: no data " \
    "directory, no index, unreadable, damaged"

typedef struct cx_cli_traces {
    cx_cli_ledger *l;
    cx_recorder *recorder; /* over l->home */
    const char *where;     /* of the index */
    cx_index *index;       /* open for reading; NULL unless the job wants it */
} cx_cli_traces;

typedef struct cx_cli_trace_job {
    cx_cli_access access;
    bool wants_index;                   /* brought up to date first, as far as it can be written */
    bool feeds_index;                   /* .. and when the work is done */
    const cx_recorder_options *options; /* NULL = as they come */
    cx_status (*prepare)(cx_cli_ledger *l, void *state, cx_err *err); /* may be NULL */
    cx_status (*work)(cx_cli_traces *t, void *state, cx_err *err);
} cx_cli_trace_job;

/* Runs a job from options to exit code, as cx_cli_run_job. */
int cx_cli_run_traces(cx_cli *cli, const cx_cli_args *args, const cx_cli_trace_job *job,
                      void *state);

/*
 * Brings the index at `where` up to date with the ledger. When another process owns the data
 * directory, it is only read.  CX_E_FORMAT "OtherHome": nothing was changed.
 */
CX_RESULT cx_cli_feed(cx_cli_ledger *l, cx_recorder *recorder, const char *where, cx_err *err);
/* Whether the index contains traces of this data directory, or none. */
bool cx_cli_index_is_ours(cx_home *home, cx_index *index);
/* Where the index of this command is; text in the arena. */
CX_RESULT cx_cli_index_where(cx_cli_ledger *l, const char **out, cx_err *err);

/* --- arguments ------------------------------------------------------------------------------ */

/* As traces spell times (trace.md §1), or seconds since 1970. */
CX_RESULT cx_cli_parse_trace_time(const char *what, const char *text, int64_t *out_ns, cx_err *err);
/* An option of that kind; `fallback` when it was not given. */
CX_RESULT cx_cli_time_option(const cx_cli_args *args, const char *name, int64_t fallback,
                             int64_t *out_ns, cx_err *err);
/* Of CX_CLI_LEVELS. */
cx_trace_level cx_cli_level_option(const cx_cli_args *args, const char *name,
                                   cx_trace_level fallback);
/* Of CX_CLI_PROFILES. */
cx_chain_profile cx_cli_profile_option(const cx_cli_args *args, const char *name);
/* A trust store file; memory from the arena. */
CX_RESULT cx_cli_read_trust_store(cx_cli *cli, const char *path, cx_trust *out, cx_err *err);

/* --- answers -------------------------------------------------------------------------------- */

/*
 * Ends an answer of the recorder, one line of JSON: as it is with --json, else as text by
 * `tell`. The buffer is released.
 */
CX_RESULT cx_cli_print_answer(cx_cli_ledger *l, cx_buf *answer,
                              void (*tell)(cx_buf *out, const cx_json *value), cx_err *err);

/* A member as text: strings escaped, numbers as spelled, null and absent as "-". */
void cx_cli_add_member(cx_buf *out, const cx_json *object, const char *name);
/* The same in a column: padded with spaces to `width` characters, never cut. */
void cx_cli_add_column(cx_buf *out, const cx_json *object, const char *name, unsigned width);
/* A number with three digits after the point, "-" when there is none; padded likewise. */
void cx_cli_add_score(cx_buf *out, const cx_json *value, unsigned width);
/* "  label      value\n", nothing when the member is absent or null. */
void cx_cli_add_line(cx_buf *out, const char *label, const cx_json *object, const char *name);

/* Exit code of a verdict: 0 holds, 1 broken, 3 indeterminate. */
int cx_cli_verdict_exit(cx_verdict verdict);

#endif
