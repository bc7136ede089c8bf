/*
 * index_view.h - the lag of the trace index, read without creating or changing anything.
 */
#ifndef CX_CLI_INDEX_VIEW_H
#define CX_CLI_INDEX_VIEW_H

#include "cli/trace/trace.h"

typedef struct cx_cli_index_view {
    const char *where;
    bool there, ours; /* ours: it belongs to this data directory */
    cx_index_status status;
    cx_err why_not; /* when it is not there */
    /* Set by the caller, for what is shown: */
    uint64_t max_bytes; /* that it may take; 0 = no limit */
    uint64_t log_bytes; /* that are read to make it again; 0 = not known */
} cx_cli_index_view;

void cx_cli_index_inspect(cx_home *home, const char *where, cx_cli_index_view *out);
/* Commits of the log that it does not have. */
uint64_t cx_cli_index_lag(const cx_cli_index_view *view, const cx_tables_status *tables);
/* One line, "index   12 commits, .." */
void cx_cli_index_print(cx_buf *out, const cx_cli_index_view *view, const cx_tables_status *tables);
/* The member "index": an object, or null when it is not there. */
void cx_cli_index_json(cx_json_list *json, const cx_cli_index_view *view,
                       const cx_tables_status *tables);

#endif
