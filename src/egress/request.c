/*
 * request.c - heads of requests, read strictly and written again.  R1 to R3: request.h.
 */
#include "egress/request.h"

#include <string.h>

static bool refuse(cx_egress_fault *fault, const char *rule, unsigned status, const char *why)
{
    *fault = (cx_egress_fault){rule, status, why};
    return false;
}

static bool malformed(cx_egress_fault *fault, const char *why)
{
    return refuse(fault, "E02", 400, why);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_name(cx_str a, cx_str b)
{
    for (size_t i = 0; a.size == b.size && i < a.size; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return a.size == b.size;
}

bool cx_egress_header_is(cx_str name, const char *wanted)
{
    return same_name(name, cx_str_z(wanted));
}

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(cx_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_token_char(text.data[i]))
            return false;
    return text.size != 0;
}

static cx_str trim(cx_str text)
{
    while (text.size != 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = cx_str_from(text.data + 1, text.size - 1);
    while (text.size != 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* Bytes above 127 are allowed in values of others; controls are not. */
static bool is_value(cx_str value)
{
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if ((c < ' ' && c != '\t') || c == 127)
            return false;
    }
    return true;
}

bool cx_egress_header_value_ok(cx_str value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~')
            return false;
    return value.size != 0 && value.data[0] != ' ' && value.data[value.size - 1] != ' ';
}

size_t cx_egress_head_size(cx_str bytes)
{
    for (size_t i = 0; i + 4 <= bytes.size; i++)
        if (memcmp(bytes.data + i, "\r\n\r\n", 4) == 0)
            return i + 4;
    return 0;
}

/* The next line without its end; false at a line that does not end in CR LF (R1). */
static bool next_line(cx_str *rest, cx_str *out)
{
    const char *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    if (end == NULL || end == rest->data || end[-1] != '\r')
        return false;
    *out = cx_str_from(rest->data, (size_t)(end - rest->data) - 1);
    *rest = cx_str_from(end + 1, rest->size - out->size - 2);
    return memchr(out->data, '\r', out->size) == NULL;
}

/* --- the request line ------------------------------------------------------------------------- */

static bool set_host(cx_str authority, uint16_t port, cx_egress_request *out,
                     cx_egress_fault *fault)
{
    if (authority.size == 0)
        return malformed(fault, "the target names no host");
    if (memchr(authority.data, '@', authority.size) != NULL)
        return malformed(fault, "a user name in a URL is not accepted");
    if (cx_egress_host_is_number_form(authority))
        return refuse(fault, "E03", 403,
                      "the host is a number: an address is written in dotted decimal");
    const char *why = cx_egress_host_parse(authority, &out->host);
    if (why != NULL)
        return malformed(fault, why);
    if (out->host.port == 0)
        out->host.port = port;
    return out->host.port != 0 || malformed(fault, "CONNECT takes HOST:PORT");
}

static bool read_absolute(cx_str target, cx_egress_request *out, cx_egress_fault *fault)
{
    static const char scheme[] = "http://";
    size_t size = sizeof scheme - 1, end = size;
    if (target.size < size || !same_name(cx_str_from(target.data, size), CX_STR(scheme)))
        return malformed(fault, "the target is neither HOST:PORT of a CONNECT nor an http:// URL: "
                                "this is a proxy");
    while (end < target.size && target.data[end] != '/' && target.data[end] != '?')
        end++;
    out->target = cx_str_from(target.data + end, target.size - end);
    if (out->target.size != 0 && out->target.data[0] == '/')
        out->target = cx_str_from(out->target.data + 1, out->target.size - 1);
    return set_host(cx_str_from(target.data + size, end - size), 80, out, fault);
}

static bool read_request_line(cx_str line, cx_egress_request *out, bool *out_is_10,
                              cx_egress_fault *fault)
{
    const char *first = line.size == 0 ? NULL : memchr(line.data, ' ', line.size);
    if (first == NULL)
        return malformed(fault, "the request line has no target");
    out->method = cx_str_from(line.data, (size_t)(first - line.data));
    if (out->method.size > CX_EGRESS_METHOD_MAX || !is_token(out->method))
        return malformed(fault, "the method is no word of at most 32 bytes");
    cx_str rest = cx_str_from(first + 1, line.size - out->method.size - 1);
    if (rest.size < 9 || rest.data[rest.size - 9] != ' ' ||
        memcmp(rest.data + rest.size - 8, "HTTP/1.", 7) != 0 ||
        (rest.data[rest.size - 1] != '0' && rest.data[rest.size - 1] != '1'))
        return refuse(fault, "E02", 505, "the request line does not end in HTTP/1.1");
    *out_is_10 = rest.data[rest.size - 1] == '0';
    cx_str target = cx_str_from(rest.data, rest.size - 9);
    if (target.size == 0 || target.size > CX_EGRESS_TARGET_MAX)
        return refuse(fault, "E02", 414, "the target has more than 16384 bytes, or none");
    for (size_t i = 0; i < target.size; i++)
        if (target.data[i] <= ' ' || target.data[i] >= 127 || target.data[i] == '#' ||
            target.data[i] == '\\')
            return malformed(fault, "the target has a character that no URL has");
    out->connect = cx_str_is(out->method, "CONNECT");
    return out->connect ? set_host(target, 0, out, fault) : read_absolute(target, out, fault);
}

/* --- headers ---------------------------------------------------------------------------------- */

typedef struct head_reader {
    cx_egress_request *out;
    cx_egress_fault *fault;
    size_t count;
    bool is_10, has_host, has_length, is_chunked;
    cx_str named[16]; /* by Connection */
    size_t named_count;
} head_reader;

static bool take_host(head_reader *r, cx_str value)
{
    cx_egress_host host;
    if (r->has_host)
        return malformed(r->fault, "there are two Host headers");
    r->has_host = true;
    if (cx_egress_host_parse(value, &host) != NULL)
        return refuse(r->fault, "E06", 400, "the Host header names no host");
    if (!cx_str_eq(cx_egress_host_str(&host), cx_egress_host_str(&r->out->host)) ||
        (host.port != 0 && host.port != r->out->host.port))
        return refuse(r->fault, "E06", 400, "the Host header and the target name different hosts");
    return true;
}

static bool take_length(head_reader *r, cx_str value)
{
    uint64_t length = 0;
    if (r->has_length)
        return malformed(r->fault, "there are two Content-Length headers");
    r->has_length = true;
    if (value.size == 0 || value.size > 18)
        return malformed(r->fault, "Content-Length is no number below 10^18");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return malformed(r->fault, "Content-Length is no number below 10^18");
        length = length * 10 + (uint64_t)(value.data[i] - '0');
    }
    r->out->length = length;
    return true;
}

static bool take_coding(head_reader *r, cx_str value)
{
    if (r->is_chunked || !cx_egress_header_is(value, "chunked"))
        return malformed(r->fault, "Transfer-Encoding is not \"chunked\", once");
    if (r->is_10)
        return malformed(r->fault, "HTTP/1.0 has no Transfer-Encoding");
    r->is_chunked = true;
    return true;
}

static bool take_connection(head_reader *r, cx_str value)
{
    while (value.size != 0) {
        const char *comma = memchr(value.data, ',', value.size);
        size_t size = comma == NULL ? value.size : (size_t)(comma - value.data);
        cx_str name = trim(cx_str_from(value.data, size));
        if (name.size != 0) {
            if (!is_token(name) || r->named_count == CX_COUNT_OF(r->named))
                return malformed(r->fault, "Connection is no list of at most 16 words");
            r->named[r->named_count++] = name;
        }
        value =
            comma == NULL ? cx_str_from(NULL, 0) : cx_str_from(comma + 1, value.size - size - 1);
    }
    return true;
}

/* R3 */
static bool is_of_connection(cx_str name)
{
    static const char *const names[] = {"keep-alive",
                                        "proxy-connection",
                                        "proxy-authorization",
                                        "proxy-authenticate",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "http2-settings",
                                        "via",
                                        "forwarded"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_egress_header_is(name, names[i]))
            return true;
    return false;
}

static bool take_header(head_reader *r, cx_str line)
{
    const char *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);
    if (colon == NULL)
        return malformed(r->fault, "a header has no colon, or a line is folded");
    cx_str name = cx_str_from(line.data, (size_t)(colon - line.data));
    cx_str value = trim(cx_str_from(colon + 1, line.size - name.size - 1));
    if (!is_token(name))
        return malformed(r->fault, "the name of a header is no word");
    if (!is_value(value))
        return malformed(r->fault, "a header has a control character");
    if (++r->count > CX_EGRESS_HEADERS_MAX)
        return refuse(r->fault, "E02", 431, "there are more than 100 headers");
    if (cx_egress_header_is(name, "host"))
        return take_host(r, value);
    if (cx_egress_header_is(name, "content-length"))
        return take_length(r, value);
    if (cx_egress_header_is(name, "transfer-encoding"))
        return take_coding(r, value);
    if (cx_egress_header_is(name, "connection"))
        return take_connection(r, value);
    if (cx_egress_header_is(name, "expect")) {
        r->out->wants_continue = cx_egress_header_is(value, "100-continue");
        return r->out->wants_continue || refuse(r->fault, "E02", 417, "Expect is not 100-continue");
    }
    if (!is_of_connection(name))
        r->out->headers[r->out->header_count++] = (cx_egress_header){name, value};
    return true;
}

static void drop_named(head_reader *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->out->header_count; i++) {
        bool named = false;
        for (size_t k = 0; k < r->named_count && !named; k++)
            named = same_name(r->named[k], r->out->headers[i].name);
        if (!named)
            r->out->headers[kept++] = r->out->headers[i];
    }
    r->out->header_count = kept;
}

static bool conclude(head_reader *r)
{
    if (!r->has_host && !r->out->connect && !r->is_10)
        return refuse(r->fault, "E06", 400, "there is no Host header");
    if (r->has_length && r->is_chunked)
        return malformed(r->fault, "there are Content-Length and Transfer-Encoding");
    if (r->out->connect && (r->is_chunked || (r->has_length && r->out->length != 0)))
        return malformed(r->fault, "CONNECT has no body");
    r->out->framing = r->is_chunked   ? CX_EGRESS_CHUNKED
                      : r->has_length ? CX_EGRESS_LENGTH
                                      : CX_EGRESS_NO_BODY;
    drop_named(r);
    return true;
}

bool cx_egress_request_parse(cx_str head, cx_egress_request *out, cx_egress_fault *fault)
{
    cx_str rest = head, line;
    head_reader r = {.out = out, .fault = fault};
    memset(out, 0, sizeof *out);
    if (head.size > CX_EGRESS_HEAD_MAX)
        return refuse(fault, "E02", 431, "the head has more than 32768 bytes");
    if (!next_line(&rest, &line))
        return malformed(fault, "the request line does not end in CR LF");
    if (!read_request_line(line, out, &r.is_10, fault))
        return false;
    while (next_line(&rest, &line)) {
        if (line.size == 0)
            return rest.size == 0 ? conclude(&r)
                                  : malformed(fault, "there are bytes after the head");
        if (!take_header(&r, line))
            return false;
    }
    return malformed(fault, "a line of the head does not end in CR LF");
}

/* --- writing ---------------------------------------------------------------------------------- */

void cx_egress_request_write(const cx_egress_request *request, cx_buf *out)
{
    const cx_egress_host *host = &request->host;
    bool brackets = host->is_address && host->address.is_v6;
    cx_buf_add_str(out, request->method);
    cx_buf_add_z(out, " /");
    cx_buf_add_str(out, request->target);
    cx_buf_printf(out, " HTTP/1.1\r\nHost: %s%s%s", brackets ? "[" : "", host->name,
                  brackets ? "]" : "");
    if (host->port != 80)
        cx_buf_printf(out, ":%u", (unsigned)host->port);
    cx_buf_add_z(out, "\r\n");
    for (size_t i = 0; i < request->header_count; i++) {
        cx_buf_add_str(out, request->headers[i].name);
        cx_buf_add_z(out, ": ");
        cx_buf_add_str(out, request->headers[i].value);
        cx_buf_add_z(out, "\r\n");
    }
    if (request->framing == CX_EGRESS_CHUNKED)
        cx_buf_add_z(out, "Transfer-Encoding: chunked\r\n");
    else if (request->framing == CX_EGRESS_LENGTH) {
        cx_buf_add_z(out, "Content-Length: ");
        cx_buf_add_u64(out, request->length);
        cx_buf_add_z(out, "\r\n");
    }
    cx_buf_add_z(out, "Connection: close\r\n");
}
