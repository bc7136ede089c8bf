/*
 * message.h - one JSON-RPC message of MCP: what it is, and answers that the gateway gives itself.
 */
#ifndef CX_GATEWAY_MESSAGE_H
#define CX_GATEWAY_MESSAGE_H

#include "json/api.h"

typedef enum cx_gateway_kind {
    CX_GATEWAY_REQUEST,
    CX_GATEWAY_NOTIFICATION,
    CX_GATEWAY_ANSWER
} cx_gateway_kind;

/* Borrowed from the value and the arena. */
typedef struct cx_gateway_message {
    cx_gateway_kind kind;
    cx_str id; /* canonical JSON, so that 1 and "1" differ; empty: none, or null */
    cx_str method;
    const cx_json *params; /* NULL: none */
    const cx_json *result, *error;
} cx_gateway_message;

/* Whether a reader that takes no notice of case, as Go's does, takes `name` for `known`, although
 * they differ. */
bool cx_gateway_is_mistaken(cx_str name, cx_str known);
/* The first member of `object` that would be mistaken for one of `known`, or NULL.  Fine for a
 * value that is no object. */
const cx_json *cx_gateway_mistaken_member(const cx_json *object, const char *const *known,
                                          size_t known_count);

/* JSON-RPC 2.0 §5.1, and one of the range for servers. */
enum {
    CX_GATEWAY_E_PARSE = -32700,
    CX_GATEWAY_E_REQUEST = -32600,
    CX_GATEWAY_E_METHOD = -32601,
    CX_GATEWAY_E_PARAMS = -32602,
    CX_GATEWAY_E_INTERNAL = -32603,
    CX_GATEWAY_E_BUSY = -32000
};

/* CX_E_FORMAT: it is no message; what was found, what was expected. */
CX_RESULT cx_gateway_message_read(const cx_json *value, cx_arena *arena, cx_gateway_message *out,
                                  cx_err *err);
/* The id as canonical JSON; CX_E_FORMAT unless it is a text or an integer of bounded size. */
CX_RESULT cx_gateway_id_read(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err);

/* Each appends one line.  `id` is JSON; empty becomes null. */
void cx_gateway_add_error(cx_buf *out, cx_str id, int code, cx_str message);
/* The result of a tool call that was refused: isError and a text for the model. */
void cx_gateway_add_refusal(cx_buf *out, cx_str id, bool stateless, cx_str text);

/* --- servers ---------------------------------------------------------------------------------- */

#define CX_GATEWAY_NAME_MAX 64

/* Letters, digits, and after the first '.', '_' and '-'; no "__" and no '_' at the end, so that
 * mcp__NAME__TOOL can be taken apart.  CX_E_USAGE. */
CX_RESULT cx_gateway_check_name(cx_str name, cx_err *err);
#endif
