/*
 * grpc_wire.h - gRPC over HTTP/2 as bytes, without a connection: what is in headers, trailers and
 * in front of a message (docs/formats/otlp.md §6).
 */
#ifndef CX_SERVER_GRPC_WIRE_H
#define CX_SERVER_GRPC_WIRE_H

#include "base/api.h"

typedef enum cx_grpc_code {
    CX_GRPC_OK = 0,
    CX_GRPC_INVALID_ARGUMENT = 3,
    CX_GRPC_DEADLINE_EXCEEDED = 4,
    CX_GRPC_PERMISSION_DENIED = 7,
    CX_GRPC_RESOURCE_EXHAUSTED = 8,
    CX_GRPC_UNIMPLEMENTED = 12,
    CX_GRPC_INTERNAL = 13,
    CX_GRPC_UNAVAILABLE = 14,
    CX_GRPC_UNAUTHENTICATED = 16
} cx_grpc_code;
#define CX_GRPC_CODES 17

/* "UNAVAILABLE"; NULL for a code that is never answered. */
const char *cx_grpc_code_name(unsigned code);

/* "application/grpc", "application/grpc+proto", parameters aside. */
bool cx_grpc_is_content_type(cx_str text);

/* The value of grpc-timeout: at most eight digits and a unit (H M S m u n). */
bool cx_grpc_timeout_parse(cx_str text, uint64_t *out_ns);

/* --- messages --------------------------------------------------------------------------------- */

#define CX_GRPC_PREFIX_SIZE 5

/* Reads the prefix of one message: a flag and a length. */
typedef struct cx_grpc_prefix {
    uint8_t bytes[CX_GRPC_PREFIX_SIZE];
    size_t size; /* of what has arrived */
} cx_grpc_prefix;

/* Takes what belongs to the prefix; returns how many bytes that is. */
size_t cx_grpc_prefix_take(cx_grpc_prefix *prefix, cx_bytes bytes);
static inline bool cx_grpc_prefix_is_whole(const cx_grpc_prefix *prefix)
{
    return prefix->size == CX_GRPC_PREFIX_SIZE;
}
uint8_t cx_grpc_prefix_flag(const cx_grpc_prefix *prefix); /* 1 = compressed */
uint32_t cx_grpc_prefix_length(const cx_grpc_prefix *prefix);

/* A message that is not compressed, with its prefix. */
void cx_grpc_message_add(cx_buf *out, cx_bytes message);

/* --- statuses --------------------------------------------------------------------------------- */

/* The value of grpc-message: UTF-8 with % escapes. */
void cx_grpc_text_add(cx_buf *out, cx_str text);

/* Code and message of a google.rpc.Status as otlp_answer.h writes it; false = it is none. */
bool cx_grpc_status_read(cx_bytes status, unsigned *out_code, cx_str *out_message);

/* The value of grpc-status-details-bin: a google.rpc.Status with a google.rpc.RetryInfo. */
void cx_grpc_retry_add(cx_buf *out, unsigned code, cx_str message, unsigned seconds);

#endif
