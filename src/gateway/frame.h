/*
 * frame.h - lines of JSON-RPC out of a stream of bytes (MCP, stdio transport).
 *
 *   F1  A message is what stands before a line feed, at most CX_GATEWAY_MESSAGE_MAX bytes, and is
 *       handed on as it came.  A last one without a line feed counts.
 *   F2  Of a longer one nothing is kept but its id and whether it has a method, so that its sender
 *       can be told; memory stays bounded.
 *   F3  Lines of white space are no messages.
 */
#ifndef CX_GATEWAY_FRAME_H
#define CX_GATEWAY_FRAME_H

#include "base/api.h"

#define CX_GATEWAY_MESSAGE_MAX ((size_t)16 << 20)
#define CX_GATEWAY_ID_MAX 256 /* bytes of an id as JSON */

/* What is known of a message that is not kept (F2): its outermost members are followed. */
typedef struct cx_gateway_skim {
    unsigned depth;
    bool in_string, escaped, started, is_array;
    bool after_colon;
    bool key_is_id;
    bool has_id, has_method;
    char part[CX_GATEWAY_ID_MAX]; /* the member's name or value that is being read */
    size_t part_size;
    bool part_is_long;
    char id[CX_GATEWAY_ID_MAX]; /* as spelled */
    size_t id_size;
} cx_gateway_skim;

typedef enum cx_gateway_frame {
    CX_GATEWAY_FRAME_MORE, /* the bytes are used up */
    CX_GATEWAY_FRAME_MESSAGE,
    CX_GATEWAY_FRAME_TOO_LONG /* `skim` of the reader says what it was */
} cx_gateway_frame;

typedef struct cx_gateway_reader {
    cx_buf held; /* of a message that is not whole */
    size_t limit;
    bool returned; /* `held` was handed out */
    bool dropping;
    uint64_t dropped_bytes;
    cx_gateway_skim skim;
} cx_gateway_reader;

void cx_gateway_reader_init(cx_gateway_reader *reader, const cx_alloc *alloc, size_t limit);
void cx_gateway_reader_done(cx_gateway_reader *reader);

/* Takes bytes off the front of `bytes` until there is a message: without its line feed, borrowed
 * from `bytes` or the reader until the next call. */
CX_RESULT cx_gateway_reader_next(cx_gateway_reader *reader, cx_bytes *bytes, cx_gateway_frame *out,
                                 cx_str *out_line, cx_err *err);
/* At the end of the stream: what is left. */
CX_RESULT cx_gateway_reader_end(cx_gateway_reader *reader, cx_gateway_frame *out, cx_str *out_line,
                                cx_err *err);

void cx_gateway_skim_bytes(cx_gateway_skim *skim, cx_bytes bytes);

#endif
