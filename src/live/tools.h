/*
 * tools.h - the tools of coding agents: what each does, by name (docs/formats/live.md §4).
 */
#ifndef CX_LIVE_TOOLS_H
#define CX_LIVE_TOOLS_H

#include "live/live.h"

typedef enum cx_live_tool_form {
    CX_LIVE_FORM_NOTHING,
    CX_LIVE_FORM_COMMAND, /* a shell's text in one of its members */
    CX_LIVE_FORM_POWERSHELL,
    CX_LIVE_FORM_PATCH,
    CX_LIVE_FORM_READ,
    CX_LIVE_FORM_SEARCH, /* reads below a path, default the working folder */
    CX_LIVE_FORM_WRITE,
    CX_LIVE_FORM_URL,
    CX_LIVE_FORM_WEB, /* a search by the provider */
    CX_LIVE_FORM_AGENT,
    CX_LIVE_FORM_MESSAGE,  /* to an agent that runs */
    CX_LIVE_FORM_LATER,    /* starts what hooks see only when it runs, or not at all */
    CX_LIVE_FORM_WORKTREE, /* the session goes to another work tree, or leaves it */
    CX_LIVE_FORM_TYPED     /* bytes typed into a running program */
} cx_live_tool_form;

typedef struct cx_live_tool {
    const char *name;
    cx_live_tool_form form;
    /* Where command, path or URL is.  Agents pass on members that they do not know, so each that
     * is there counts. */
    const char *members[4];
} cx_live_tool;

/* NULL when no agent has a tool of that name.  Codex writes a namespace before some names. */
const cx_live_tool *cx_live_tool_find(cx_str name);
/* Whether the name is one of an MCP server's tools: mcp__S__T, mcp_S_T, MCP:T; the parts borrow. */
bool cx_live_tool_is_mcp(const cx_live_call *call, cx_str *out_server, cx_str *out_tool);

#endif
