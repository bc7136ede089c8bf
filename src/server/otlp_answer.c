/*
 * otlp_answer.c - encodes the three small messages that an exporter may receive.
 *
 *     Status                     1 code (varint), 2 message (text)
 *     Export..Response           1 partial_success
 *     Export..PartialSuccess     1 rejected (varint), 2 error_message (text)
 */
#include "server/otlp_answer.h"

#include "json/api.h"

#define MESSAGE_MAX 1000

static bool starts_with_type(cx_str text, const char *type)
{
    size_t at = 0;
    for (; type[at] != 0; at++) {
        char c = at < text.size ? text.data[at] : (char)0;
        if ((c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) != type[at])
            return false;
    }
    while (at < text.size && (text.data[at] == ' ' || text.data[at] == '\t'))
        at++;
    return at == text.size || text.data[at] == ';';
}

cx_otlp_encoding cx_otlp_encoding_of(cx_str content_type)
{
    if (starts_with_type(content_type, CX_OTLP_PROTOBUF))
        return CX_OTLP_AS_PROTOBUF;
    return starts_with_type(content_type, "application/json") ? CX_OTLP_AS_JSON : CX_OTLP_NEITHER;
}

/* --- protobuf --------------------------------------------------------------------------------- */

static void put_varint(cx_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        cx_buf_add_byte(out, (uint8_t)(value | 0x80));
    cx_buf_add_byte(out, (uint8_t)value);
}

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

/* {1: number, 2: text}; what is zero or empty is left out. */
static size_t pair_size(uint64_t number, cx_str text)
{
    return (number == 0 ? 0 : 1 + varint_size(number)) +
           (text.size == 0 ? 0 : 1 + varint_size(text.size) + text.size);
}

static void put_pair(cx_buf *out, uint64_t number, cx_str text)
{
    if (number != 0) {
        cx_buf_add_byte(out, 0x08);
        put_varint(out, number);
    }
    if (text.size != 0) {
        cx_buf_add_byte(out, 0x12);
        put_varint(out, text.size);
        cx_buf_add_str(out, text);
    }
}

/* --- both ------------------------------------------------------------------------------------- */

/* Cut between characters. */
static cx_str shorten_text(cx_str text)
{
    if (text.size > MESSAGE_MAX) {
        text.size = MESSAGE_MAX;
        while (text.size > 0 && ((unsigned char)text.data[text.size] & 0xC0) == 0x80)
            text.size--;
    }
    return text;
}

/* google.rpc.Code of an HTTP status. */
static uint64_t code_of(unsigned http)
{
    switch (http) {
    case 401: return 16; /* UNAUTHENTICATED */
    case 403: return 7;  /* PERMISSION_DENIED */
    case 404:
    case 405:
    case 501: return 12; /* UNIMPLEMENTED */
    case 413:
    case 429: return 8;  /* RESOURCE_EXHAUSTED */
    case 503: return 14; /* UNAVAILABLE */
    default: return http >= 500 ? 13 /* INTERNAL */ : 3 /* INVALID_ARGUMENT */;
    }
}

static bool begin_answer(cx_call *call, unsigned http)
{
    bool protobuf = cx_otlp_encoding_of(call->request.content_type) == CX_OTLP_AS_PROTOBUF;
    call->response.stream = NULL;
    cx_buf_clear(&call->response.body);
    cx_call_answer(call, http, protobuf ? CX_OTLP_PROTOBUF : "application/json");
    return protobuf;
}

void cx_otlp_answer_status(cx_call *call, unsigned http, cx_str message)
{
    cx_buf *out = &call->response.body;
    message = shorten_text(message);
    if (begin_answer(call, http)) {
        put_pair(out, code_of(http), message);
        return;
    }
    cx_buf_printf(out, "{\"code\":%u,\"message\":", (unsigned)code_of(http));
    cx_json_write_str(out, message, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, "}");
}

void cx_otlp_answer_outcome(cx_call *call, const cx_otlp_outcome *outcome)
{
    cx_buf *out = &call->response.body;
    cx_str message = shorten_text(outcome->message);
    bool partial = outcome->rejected != 0 || message.size != 0;
    if (begin_answer(call, 200)) {
        if (!partial)
            return;
        cx_buf_add_byte(out, 0x0A);
        put_varint(out, pair_size(outcome->rejected, message));
        put_pair(out, outcome->rejected, message);
        return;
    }
    if (!partial) {
        cx_buf_add_z(out, "{}");
        return;
    }
    cx_buf_add_z(out, "{\"partialSuccess\":{\"errorMessage\":");
    cx_json_write_str(out, message, CX_JSON_PY_COMPACT);
    cx_buf_printf(out, ",\"%s\":\"%llu\"}}",
                  outcome->is_logs ? "rejectedLogRecords" : "rejectedSpans",
                  (unsigned long long)outcome->rejected);
}
