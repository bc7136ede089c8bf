/*
 * body.c - the framing of a request's body, read and written again, and heads of answers.
 */
#include <string.h>

#include "egress/proxy_internal.h"

#define CHUNK_DIGITS_MAX 15
#define TRAILER_MAX ((size_t)8 << 10)
#define ANSWER_HEAD_MAX ((size_t)128 << 10)

enum {
    STATE_SIZE,    /* digits of a chunk's size */
    STATE_SIZE_LF, /* after its CR */
    STATE_DATA,    /* of a chunk */
    STATE_DATA_CR, /* after the data */
    STATE_DATA_LF,
    STATE_TRAILER, /* a line after the last chunk */
    STATE_TRAILER_LF
};

void egress_body_init(egress_body *body, const cx_egress_request *request)
{
    *body = (egress_body){.framing = request->framing,
                          .left = request->framing == CX_EGRESS_LENGTH ? request->length : 0,
                          .state = STATE_SIZE};
    body->complete = request->framing == CX_EGRESS_NO_BODY ||
                     (request->framing == CX_EGRESS_LENGTH && request->length == 0);
}

static size_t add_data(egress_body *body, cx_bytes bytes, cx_buf *out)
{
    size_t size = bytes.size < body->left ? bytes.size : (size_t)body->left;
    cx_buf_add(out, bytes.data, size);
    body->left -= size;
    return size;
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A digit of a chunk's size, or the CR after it; extensions are not accepted. */
static bool take_size(egress_body *body, uint8_t byte)
{
    int digit = hex_digit(byte);
    if (byte == '\r' && body->line != 0) {
        body->state = STATE_SIZE_LF;
        return true;
    }
    if (digit < 0 || ++body->line > CHUNK_DIGITS_MAX)
        return false;
    body->left = body->left << 4 | (uint64_t)digit;
    return true;
}

static void end_size(egress_body *body)
{
    body->state = body->left == 0 ? STATE_TRAILER : STATE_DATA;
    body->line = 0;
}

/* Trailers are read and dropped. */
static bool take_trailer(egress_body *body, uint8_t byte)
{
    if (++body->trailer > TRAILER_MAX)
        return false;
    if (body->state == STATE_TRAILER) {
        if (byte == '\r')
            body->state = STATE_TRAILER_LF;
        else if (byte == '\n')
            return false;
        else
            body->line++;
        return true;
    }
    if (byte != '\n')
        return false;
    body->complete = body->line == 0;
    body->line = 0;
    body->state = STATE_TRAILER;
    return true;
}

static bool take_byte(egress_body *body, uint8_t byte)
{
    switch (body->state) {
    case STATE_SIZE: return take_size(body, byte);
    case STATE_SIZE_LF:
        if (byte != '\n')
            return false;
        end_size(body);
        return true;
    case STATE_DATA_CR: body->state = STATE_DATA_LF; return byte == '\r';
    case STATE_DATA_LF: body->state = STATE_SIZE; return byte == '\n';
    default: return take_trailer(body, byte);
    }
}

static bool take_chunks(egress_body *body, cx_bytes bytes, cx_buf *out)
{
    while (bytes.size != 0 && !body->complete) {
        size_t used = 1;
        if (body->state == STATE_DATA) {
            size_t size = bytes.size < body->left ? bytes.size : (size_t)body->left;
            cx_buf_printf(out, "%zx\r\n", size);
            used = add_data(body, bytes, out);
            cx_buf_add_z(out, "\r\n");
            body->state = body->left == 0 ? STATE_DATA_CR : STATE_DATA;
        } else if (!take_byte(body, bytes.data[0])) {
            return false;
        }
        bytes.data += used;
        bytes.size -= used;
    }
    if (body->complete)
        cx_buf_add_z(out, "0\r\n\r\n");
    return true;
}

bool egress_body_filter(void *arg, cx_bytes bytes, cx_buf *out)
{
    egress_body *body = arg;
    if (body->complete)
        return true;
    if (body->framing == CX_EGRESS_CHUNKED)
        return take_chunks(body, bytes, out);
    (void)add_data(body, bytes, out);
    body->complete = body->left == 0;
    return true;
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool is_dropped(cx_str line)
{
    static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
                                        "proxy-authenticate", "upgrade"};
    const char *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);
    if (colon == NULL)
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_egress_header_is(cx_str_from(line.data, (size_t)(colon - line.data)), names[i]))
            return true;
    return false;
}

static void write_head(cx_str head, bool final, cx_buf *out)
{
    while (head.size > 2) {
        const char *end = memchr(head.data, '\n', head.size);
        size_t size = end == NULL ? head.size : (size_t)(end - head.data) + 1;
        if (!is_dropped(cx_str_from(head.data, size)))
            cx_buf_add(out, head.data, size);
        head.data += size;
        head.size -= size;
    }
    cx_buf_add_z(out, final ? "Connection: close\r\n\r\n" : "\r\n");
}

bool egress_head_filter(void *arg, cx_bytes bytes, cx_buf *out)
{
    egress_head *head = arg;
    if (head->done) {
        cx_buf_add(out, bytes.data, bytes.size);
        return true;
    }
    cx_buf_add(&head->held, bytes.data, bytes.size);
    while (!head->done) {
        cx_str held = cx_buf_str(&head->held);
        size_t size = cx_egress_head_size(held);
        if (size == 0)
            return held.size <= ANSWER_HEAD_MAX;
        if (size < 17 || memcmp(held.data, "HTTP/1.", 7) != 0 || held.data[8] != ' ')
            return false;
        head->done = held.data[9] != '1'; /* interim answers are followed by others */
        write_head(cx_str_from(held.data, size), head->done, out);
        size_t rest = held.size - size;
        memmove(head->held.data, head->held.data + size, rest);
        head->held.size = rest;
    }
    cx_buf_add(out, head->held.data, head->held.size);
    head->held.size = 0;
    return true;
}
