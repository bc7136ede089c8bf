/*
 * session.h - what `show`, `why` and `evidence` share: the data directory, the runs and the
 * current repository, as far as they exist.
 */
#ifndef CX_CLI_SESSION_H
#define CX_CLI_SESSION_H

#include "cli/run/run_place.h"
#include "provenance/api.h"

#define CX_CLI_OPTIONS_SESSION                                                                     \
    CX_CLI_OPTION_HOME, CX_CLI_OPT("repo", 0, CX_CLI_FILE, "DIR",                                  \
                                   "A folder inside the repository; default: the one this is run " \
                                   "in, if it is one.")

typedef struct cx_cli_session {
    cx_home *home; /* closed with it; NULL = none, or owned by the caller */
    cx_git *git;
    cx_run_store store;
    cx_sources sources;
} cx_cli_session;

/* Parts that do not exist are left out, but those that --home and --repo name must exist. */
CX_RESULT cx_cli_session_open(cx_cli *cli, const cx_cli_args *args, cx_cli_session *out,
                              cx_err *err);
/* The same for a data directory that is open already, and stays open. */
CX_RESULT cx_cli_session_open_over(cx_cli *cli, const cx_cli_args *args, cx_home *home,
                                   cx_cli_session *out, cx_err *err);
void cx_cli_session_close(cx_cli_session *session); /* fine for a zeroed one */

/* The object that `text` names.  CX_E_CONFLICT "Ambiguous" with the candidates in `*out_list` as
 * JSON, CX_E_NOT_FOUND "NoThing".  FILE:LINE is understood with `lines`. */
CX_RESULT cx_cli_session_find(cx_cli *cli, cx_cli_session *session, const char *text, bool lines,
                              cx_prov_object *out, cx_json *out_list, cx_err *err);
/* The candidates as text. */
void cx_cli_session_candidates(cx_buf *out, const cx_json *list);
/* Ends a command: the exit code of an error. */
int cx_cli_session_fail(cx_cli *cli, const cx_cli_args *args, const cx_err *err);

#endif
