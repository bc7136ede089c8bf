/*
 * mcp_agent.h - messages of coding agents in addition to MCP: approval requests and tool events, in
 * the forms that Codex servers use (run.md §5, §16).
 */
#ifndef CX_AGENT_MCP_AGENT_H
#define CX_AGENT_MCP_AGENT_H

#include "agent/mcp.h"
#include "agent/runner.h"

typedef enum cx_mcp_request_class {
    CX_MCP_REQUEST_UNSUPPORTED, /* not supported: answered with -32601 */
    CX_MCP_REQUEST_APPROVAL     /* the host decides, also about sampling */
} cx_mcp_request_class;

/* Classifies a request of the server; sets `out` for those that the host decides. */
CX_RESULT cx_mcp_read_request(cx_str method, const cx_json *params, cx_arena *arena,
                              cx_mcp_request_class *out_asks, cx_runner_request *out, cx_err *err);
/* The answer, in all forms that servers look for. */
CX_RESULT cx_mcp_make_answer(const cx_runner_request *request, bool granted, cx_arena *arena,
                             cx_mcp_answer *out, cx_err *err);

/* The payload of TOOL_INVOCATION for a notification that a tool begins; *out_is is false for
 * others. *out_shell: the tool runs a command. */
CX_RESULT cx_mcp_read_tool(cx_str method, const cx_json *params, cx_arena *arena, bool *out_is,
                           bool *out_shell, cx_json *out, cx_err *err);
/* The thread that a notification belongs to; empty when it names none. */
cx_str cx_mcp_read_thread(cx_str method, const cx_json *params);

#endif
