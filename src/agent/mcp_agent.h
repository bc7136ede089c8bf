/*
 * mcp_agent.h - what coding agents behind MCP say beside the protocol: approval requests and events
 * of tools, in the shapes that Codex servers use (run.md §5, §16).
 */
#ifndef CX_AGENT_MCP_AGENT_H
#define CX_AGENT_MCP_AGENT_H

#include "agent/mcp.h"
#include "agent/runner.h"

typedef enum cx_mcp_asks {
    CX_MCP_ASKS_OTHER,   /* nothing that is answered: -32601 */
    CX_MCP_ASKS_APPROVAL /* the host is asked, also about sampling */
} cx_mcp_asks;

/* What a request of the server is; `out` for those that the host is asked about. */
CX_RESULT cx_mcp_read_request(cx_str method, const cx_json *params, cx_arena *arena,
                              cx_mcp_asks *out_asks, cx_runner_request *out, cx_err *err);
/* The answer in every form that a server may look for. */
CX_RESULT cx_mcp_make_answer(const cx_runner_request *request, bool granted, cx_arena *arena,
                             cx_mcp_answer *out, cx_err *err);

/* The payload of TOOL_INVOCATION for a notification that says a tool begins; *out_is false for
 * others. *out_shell: it runs a command. */
CX_RESULT cx_mcp_read_tool(cx_str method, const cx_json *params, cx_arena *arena, bool *out_is,
                           bool *out_shell, cx_json *out, cx_err *err);
/* The thread that a notification belongs to; empty when it does not say. */
cx_str cx_mcp_read_thread(cx_str method, const cx_json *params);

#endif
