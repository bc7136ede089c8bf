/*
 * sse.h - messages out of a stream of server-sent events (MCP, streamable HTTP transport).
 *
 *   E1  A message is the data of an event that is named "message" or has no name, its lines joined
 *       by line feeds.  Comments, ids and times to wait are read over: nothing is resumed.
 *   E2  Lines end with CR, LF or both, wherever the bytes are cut.
 *   E3  An event that the stream ends within is none.
 *   E4  Of a message of more than CX_GATEWAY_MESSAGE_MAX nothing is kept but what frame.h's F2
 *       says.
 */
#ifndef CX_GATEWAY_SSE_H
#define CX_GATEWAY_SSE_H

#include "gateway/frame.h"

typedef struct cx_gateway_sse {
    cx_buf line; /* that is not whole */
    cx_buf data; /* of the event that is read */
    size_t limit;
    bool has_data, is_other; /* of the event: it has another name */
    bool dropping;           /* its data is too long */
    bool in_data;            /* the line that is read is dropped data */
    bool after_cr, began;
    bool ended; /* the event was handed out, or was none */
    uint64_t dropped_bytes;
    cx_gateway_skim skim;
} cx_gateway_sse;

void cx_gateway_sse_init(cx_gateway_sse *sse, const cx_alloc *alloc, size_t limit);
void cx_gateway_sse_done(cx_gateway_sse *sse);
/* As cx_gateway_reader_next.  The message is borrowed until the next call. */
CX_RESULT cx_gateway_sse_next(cx_gateway_sse *sse, cx_bytes *bytes, cx_gateway_frame *out,
                              cx_str *out_message, cx_err *err);

#endif
