/*
 * otlp_answer.h - answers of OTLP/HTTP: google.rpc.Status for failures and partial success, in the
 * encoding of the request (docs/formats/otlp.md §2).
 */
#ifndef CX_SERVER_OTLP_ANSWER_H
#define CX_SERVER_OTLP_ANSWER_H

#include "server/service.h"

#define CX_OTLP_PROTOBUF "application/x-protobuf"

typedef enum cx_otlp_encoding {
    CX_OTLP_NEITHER,
    CX_OTLP_AS_PROTOBUF,
    CX_OTLP_AS_JSON
} cx_otlp_encoding;
/* Of a Content-Type, parameters aside. */
cx_otlp_encoding cx_otlp_encoding_of(cx_str content_type);

/* A google.rpc.Status with the code that corresponds to the HTTP status; JSON when the request
 * had neither encoding. */
void cx_otlp_answer_status(cx_call *call, unsigned http, cx_str message);

typedef struct cx_otlp_outcome {
    bool is_logs;
    uint64_t rejected;
    cx_str message; /* empty = everything was fine */
} cx_otlp_outcome;
/* 200. */
void cx_otlp_answer_outcome(cx_call *call, const cx_otlp_outcome *outcome);

#endif
