/*
 * probe_model.h - a model that asks for one harmless tool call, played on loopback: what a probe
 * starts an agent against, so that no account is needed and nothing is paid.
 *
 * Speaks the Messages API (Claude Code), the Responses API (Codex) and generateContent (Gemini
 * CLI), as far as a probe needs.  A request whose newest mark is CX_PROBE_MAIN is answered with a
 * call that reads a file, then with one that starts a sub-agent whose prompt is CX_PROBE_SUB; that
 * one reads another file.  Everything else is answered with a word.
 *
 *   B1  Requests to other hosts (CONNECT, and absolute addresses) are refused: the agent gets this
 *       server as its proxy, too.
 */
#ifndef CX_CLI_LIVE_PROBE_MODEL_H
#define CX_CLI_LIVE_PROBE_MODEL_H

#include "cli/cli.h"
#include "live/api.h"

#define CX_PROBE_MAIN "cortex-probe-main"
#define CX_PROBE_SUB "cortex-probe-sub"
#define CX_PROBE_MAIN_FILE "main-agent.txt"
#define CX_PROBE_SUB_FILE "sub-agent.txt"
/* In the files: who sends it back has read them. */
#define CX_PROBE_MAIN_TEXT "contents for the main agent of a probe"
#define CX_PROBE_SUB_TEXT "contents for the sub-agent of a probe"

typedef struct cx_probe_model cx_probe_model;

/* `folder` has the two files; both texts are borrowed. */
CX_RESULT cx_probe_model_start(const cx_alloc *alloc, cx_live_agent agent, const char *folder,
                               cx_probe_model **out, uint16_t *out_port, cx_err *err);
/* Ends its threads and frees it; NULL is accepted. */
void cx_probe_model_stop(cx_probe_model *model);

typedef struct cx_probe_seen {
    unsigned requests;
    unsigned refused; /* to other hosts (B1) */
    /* The call was asked for; an answer to it came back; it has the contents of the file. */
    bool main_asked, main_ended, main_ran;
    bool sub_asked, sub_ended, sub_ran;
    bool can_start; /* the agent offers a tool that starts another */
} cx_probe_seen;
cx_probe_seen cx_probe_model_seen(cx_probe_model *model);

#endif
