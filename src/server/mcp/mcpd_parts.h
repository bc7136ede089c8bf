/*
 * mcpd_parts.h - shared by the files of the MCP server, and included by no other.
 */
#ifndef CX_SERVER_MCPD_PARTS_H
#define CX_SERVER_MCPD_PARTS_H

#include "json/api.h"
#include "server/mcp/mcpd.h"

enum {
    CX_MCPD_NO_METHOD = -32601,
    CX_MCPD_PARAMS = -32602,
    CX_MCPD_INTERNAL = -32603,
    CX_MCPD_NO_RESOURCE = -32002,
    CX_MCPD_HEADER_MISMATCH = -32020,
    CX_MCPD_VERSION_UNKNOWN = -32022
};

/* One request on its way. */
typedef struct cx_mcpd_call {
    const cx_mcpd_host *host;
    cx_mcpd_version version;
    cx_arena *arena;       /* of this request */
    const cx_json *params; /* an object, or NULL */
    cx_buf *result;        /* the value of "result" */
    int code;              /* 0 = `result` holds it, else an error of the protocol .. */
    cx_str why;            /* .. and this */
} cx_mcpd_call;

/* Makes it an error of the protocol. */
void cx_mcpd_fault(cx_mcpd_call *call, int code, const char *format, ...) CX_PRINTF(3, 4);
/* A text as JSON; what is no UTF-8 in it becomes U+FFFD. */
void cx_mcpd_add_text(cx_buf *out, cx_str text);
/* Lists are one page: a cursor can only be a wrong one. */
bool cx_mcpd_first_page(cx_mcpd_call *call);
/* `text` as a part of a path or a query: all but unreserved characters as %XX. */
void cx_mcpd_add_escaped(cx_buf *out, cx_str text);
/* The text of a refusal, from its problem document and log; in the arena. */
cx_str cx_mcpd_problem_text(const cx_mcpd_reply *reply, cx_arena *arena);

typedef cx_status cx_mcpd_method(cx_mcpd_call *call, cx_err *err);
cx_mcpd_method cx_mcpd_tools_list, cx_mcpd_tools_call;         /* mcpd_tools.c */
cx_mcpd_method cx_mcpd_resources_list, cx_mcpd_templates_list, /* mcpd_guide.c */
    cx_mcpd_resources_read, cx_mcpd_prompts_list, cx_mcpd_prompts_get;

/* --- tools ------------------------------------------------------------------------------------ */

typedef struct cx_mcpd_variant {
    const char *route;     /* the path of a GET route */
    const char *capture;   /* the argument in its first braces; NULL = none */
    const char *capture2;  /* .. in its second */
    const char *otherwise; /* the first one's default; NULL = it is required */
    const char *leave_out; /* a parameter of the route that is no argument; NULL = none */
} cx_mcpd_variant;

typedef struct cx_mcpd_tool {
    const char *name, *title, *about;
    const cx_mcpd_variant *variants;
    size_t variant_count;
    unsigned needs; /* listed for tokens with one of these scopes; 0 = for all */
} cx_mcpd_tool;

#define CX_MCPD_SHOWN_ARGS 2
/* Arguments of every tool: from_byte and max_bytes. */
extern const cx_route_param cx_mcpd_shown_params[CX_MCPD_SHOWN_ARGS];
bool cx_mcpd_is_shown_arg(cx_str name);

/* --- tools that are POST routes (mcpd_write.c) ------------------------------------------------ */

typedef struct cx_mcpd_write_tool cx_mcpd_write_tool;
/* NULL: there is no such tool, or it is not offered to this host. */
const cx_mcpd_write_tool *cx_mcpd_find_write_tool(const cx_mcpd_host *host, cx_str name);
/* The descriptions of those that are offered, each after a comma. */
void cx_mcpd_add_write_tools(const cx_mcpd_host *host, cx_mcpd_version version, cx_buf *out);
/* *out_wrong: why the request cannot be made; data NULL = it was made. */
CX_RESULT cx_mcpd_call_write_tool(cx_mcpd_call *call, const cx_mcpd_write_tool *tool,
                                  const cx_json *arguments, cx_mcpd_reply *out, cx_str *out_wrong,
                                  cx_err *err);
extern const char cx_mcpd_output_schema[];

const cx_mcpd_tool *cx_mcpd_find_tool(cx_str name); /* NULL when there is no such tool */
const cx_route *cx_mcpd_route_of(const cx_mcpd_variant *w);
/* A parameter of the route that is an argument; NULL when there is no such parameter. */
const cx_route_param *cx_mcpd_param_of(const cx_mcpd_variant *w, cx_str name);
bool cx_mcpd_variant_knows(const cx_mcpd_variant *w, cx_str name);
/* T1: a required argument that is missing; NULL when there is none. */
const char *cx_mcpd_variant_lacks(const cx_mcpd_variant *w, const cx_json *arguments);

#endif
