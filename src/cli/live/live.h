/*
 * live.h - what the commands about live sessions share.
 */
#ifndef CX_CLI_LIVE_LIVE_H
#define CX_CLI_LIVE_LIVE_H

#include "cli/ledger/ledger.h"
#include "live/api.h"

/* The agent that a word on the command line names.  CX_E_USAGE. */
CX_RESULT cx_cli_read_agent(const char *word, cx_live_agent *out, cx_err *err);
/* The path with every link resolved; in the arena. */
CX_RESULT cx_cli_real_path(cx_cli *cli, const char *path, cx_str *out, cx_err *err);
/* Of this program, as hooks name it.  CX_E_USAGE when it is not named cortex. */
CX_RESULT cx_cli_program_path(cx_cli *cli, cx_str *out, cx_err *err);

/* A session in one line, without its end: "claude-code 3f2a… enforce, 12 calls, 1 denied". */
void cx_cli_add_session_line(cx_buf *out, const cx_live_session *session);

#endif
