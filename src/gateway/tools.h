/*
 * tools.h - the tools of a server as it listed them: digests that pin them, schemas for arguments,
 * characters that a person does not see.
 */
#ifndef CX_GATEWAY_TOOLS_H
#define CX_GATEWAY_TOOLS_H

#include "json/api.h"
#include "schema/api.h"

#define CX_GATEWAY_TOOLS_MAX 4096
#define CX_GATEWAY_TOOL_NAME_MAX 256
#define CX_GATEWAY_TOOLS_BYTES_MAX ((size_t)64 << 20) /* of everything that is kept of them */

/* What a name, a description or a schema has in it that a person does not see (bits). */
enum {
    CX_GATEWAY_TRICK_TAG = 1,  /* U+E0000..E0FFF, and variation selectors that select nothing */
    CX_GATEWAY_TRICK_BIDI = 2, /* marks, overrides, embeddings and isolates of direction */
    CX_GATEWAY_TRICK_ZERO_WIDTH = 4, /* zero-width spaces, fillers, and joiners outside of emoji */
    CX_GATEWAY_TRICK_CONTROL = 8     /* what terminals obey; not tab and the ends of lines */
};
unsigned cx_gateway_tricks(cx_str text);

/* What a model is told of a tool, as digests of canonical JSON. */
typedef struct cx_gateway_tool_digests {
    cx_digest all;         /* of what the next two are of */
    cx_digest description; /* of name, title, description and annotations */
    cx_digest schema;      /* of inputSchema and outputSchema */
    cx_digest rest;        /* of every other member: _meta, icons, execution, .. */
    bool has_rest;         /* false: pinned by a version that did not look at it */
} cx_gateway_tool_digests;
CX_RESULT cx_gateway_tool_digest(const cx_json *tool, cx_arena *arena, cx_gateway_tool_digests *out,
                                 cx_err *err);
/* Whether the same was told.  What one of both does not know is no difference. */
bool cx_gateway_tool_same(const cx_gateway_tool_digests *a, const cx_gateway_tool_digests *b);

typedef struct cx_gateway_tool {
    cx_str name;
    cx_gateway_tool_digests digests;
    cx_schema *schema; /* NULL: none, or it cannot be used */
    cx_str schema_problem;
    cx_str *properties; /* names that the schema has at its top */
    size_t property_count;
    const char *rule; /* why it is hidden: "M02", "M03", "M04"; NULL = it is shown */
    cx_str why;
    uint64_t *calls_ns; /* when it was called: the last `calls_count` of a ring */
    size_t calls_next, calls_count;
} cx_gateway_tool;

typedef struct cx_gateway_tools {
    const cx_alloc *alloc;
    cx_arena arena; /* names and reasons */
    cx_gateway_tool *items;
    size_t count, room;
    size_t bytes;
} cx_gateway_tools;

void cx_gateway_tools_init(cx_gateway_tools *tools, const cx_alloc *alloc);
void cx_gateway_tools_done(cx_gateway_tools *tools);
cx_gateway_tool *cx_gateway_tools_find(cx_gateway_tools *tools, cx_str name);
/* Adds a tool, or replaces what is known of it.  CX_E_LIMIT. */
CX_RESULT cx_gateway_tools_put(cx_gateway_tools *tools, cx_str name, const cx_json *tool,
                               const cx_gateway_tool_digests *digests, cx_gateway_tool **out,
                               cx_err *err);
/* Sets why a tool is hidden; rule NULL shows it again. */
CX_RESULT cx_gateway_tool_hide(cx_gateway_tools *tools, cx_gateway_tool *tool, const char *rule,
                               cx_str why, cx_err *err);

/* Whether one more call within a minute stays within `per_minute`; counts it when `count`. */
CX_RESULT cx_gateway_tool_rate(cx_gateway_tools *tools, cx_gateway_tool *tool, uint32_t per_minute,
                               uint64_t now_ns, bool count, bool *out_ok, cx_err *err);

#endif
