/*
 * grpc_session.h - one connection of a gRPC client, as bytes in and bytes out: HTTP/2 by
 * libnghttp2, unary calls above it, without a socket and without a thread.
 *
 * A *stream* is one call.  Its headers come first and may be answered at once; its message comes
 * next, within the limits; then the owner answers it, now or later.  libnghttp2 is loaded at run
 * time, as all libraries that only some commands need; nothing outside grpc_session.c knows it.
 *
 *   S1  A stream that was begun is closed exactly once, by `closed`, and is not used after it.
 *   S2  A stream is answered at most once; later answers are ignored.
 *   S3  All memory for messages goes through `reserve` and `release`.
 *   S4  What a client can make us keep or do without a call is limited: streams, bytes of headers,
 *       frames that carry no request (settings, pings, resets), pending output.
 */
#ifndef CX_SERVER_GRPC_SESSION_H
#define CX_SERVER_GRPC_SESSION_H

#include "server/grpc_wire.h"

#define CX_GRPC_STREAMS_MAX 100
#define CX_GRPC_HEADER_BYTES_MAX ((size_t)16 << 10)
/* While so much has not been sent, nothing more is read. */
#define CX_GRPC_PENDING_MAX ((size_t)64 << 10)

typedef struct cx_grpc_library cx_grpc_library;
/* CX_E_UNSUPPORTED "LibraryMissing". */
CX_RESULT cx_grpc_library_load(const cx_alloc *alloc, cx_grpc_library **out, cx_err *err);
void cx_grpc_library_free(cx_grpc_library *library); /* NULL is fine */

typedef struct cx_grpc_session cx_grpc_session;
typedef struct cx_grpc_stream cx_grpc_stream;

/* What is asked, as long as the stream lives. */
typedef struct cx_grpc_question {
    cx_str path, authorization; /* data NULL = none */
    bool from_page;             /* a web page made it (Origin) */
} cx_grpc_question;

/* A whole message; the owner's from now on, to be freed with `capacity` and released. */
typedef struct cx_grpc_message {
    uint8_t *data;
    size_t size, capacity;
    bool is_gzip;
} cx_grpc_message;

typedef struct cx_grpc_hooks {
    void *arg;
    /* The headers are right.  *out_user is passed back later.  May answer. */
    void (*begin)(void *arg, cx_grpc_stream *stream, const cx_grpc_question *question,
                  void **out_user);
    /* The message of a stream that is not answered yet. */
    void (*call)(void *arg, cx_grpc_stream *stream, void *user, const cx_grpc_message *message);
    /* The stream ends, or its caller does not wait any longer.  `user` is not passed again. */
    void (*closed)(void *arg, void *user);
    void (*answered)(void *arg, cx_grpc_code code);
    bool (*reserve)(void *arg, size_t bytes);
    void (*release)(void *arg, size_t bytes);
} cx_grpc_hooks;

typedef struct cx_grpc_limits {
    size_t message_bytes;
    uint32_t header_ms; /* for settings after connecting, and for a header */
    uint32_t body_ms;   /* for a message after its header */
    uint32_t answer_ms; /* for reading an answer */
    uint32_t idle_ms;   /* without a call; then the connection is ended */
} cx_grpc_limits;

CX_RESULT cx_grpc_session_open(const cx_grpc_library *library, const cx_alloc *alloc,
                               const cx_grpc_hooks *hooks, const cx_grpc_limits *limits,
                               uint64_t now_ns, cx_grpc_session **out, cx_err *err);
void cx_grpc_session_close(cx_grpc_session *session); /* NULL is fine */

typedef enum cx_grpc_end {
    CX_GRPC_GOES_ON,
    CX_GRPC_ENDS, /* after the pending output */
    CX_GRPC_ENDS_FLOOD,
    CX_GRPC_ENDS_SLOW,
    CX_GRPC_ENDS_TLS,  /* the client wants TLS */
    CX_GRPC_ENDS_OTHER /* it does not speak HTTP/2 */
} cx_grpc_end;

cx_grpc_end cx_grpc_session_receive(cx_grpc_session *session, cx_bytes bytes, uint64_t now_ns);
/* Appends what is to be sent, about CX_GRPC_PENDING_MAX bytes at most. */
cx_grpc_end cx_grpc_session_output(cx_grpc_session *session, cx_buf *out);
/* Applies the limits of time; *out_slow gets how many calls were ended by them. */
cx_grpc_end cx_grpc_session_expire(cx_grpc_session *session, uint64_t now_ns, unsigned *out_slow);
/* Accepts no more calls; it ends after those in progress. */
void cx_grpc_session_finish(cx_grpc_session *session);

/* OK, with the bytes of the answer's message. */
void cx_grpc_answer(cx_grpc_stream *stream, cx_bytes message);
/* Another code.  `retry_s` = when to try again; 0 = it says nothing. */
void cx_grpc_reject(cx_grpc_stream *stream, cx_grpc_code code, cx_str text, unsigned retry_s);

#endif
