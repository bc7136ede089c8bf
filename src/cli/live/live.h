/*
 * live.h - what the commands about live sessions share.
 */
#ifndef CX_CLI_LIVE_LIVE_H
#define CX_CLI_LIVE_LIVE_H

#include "cli/ledger/ledger.h"
#include "live/api.h"

/* A session in one line, without its end: "claude-code 3f2a… enforce, 12 calls, 1 denied". */
void cx_cli_add_session_line(cx_buf *out, const cx_live_session *session);

#endif
