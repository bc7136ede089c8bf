/*
 * http_client.c - one request over HTTP/1.1 (RFC 9110, RFC 9112).  C1 to C4: http_client.h.
 */
#include "os/http/http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "os/http/url.h"
#include "os/system/system.h"

#define READ_STEP ((size_t)64 << 10)
#define CHUNK_LINE_MAX 256

cx_status cx_http_client_check_url(const char *text, cx_err *err)
{
    cx_url parsed;
    return cx_url_parse(text, false, &parsed, err);
}

/* --- the connection --------------------------------------------------------------------------- */

typedef struct exchange {
    const cx_http_client_request *request;
    const cx_alloc *alloc;
    cx_url to;
    int socket; /* -1 = none */
    uint64_t deadline_ms;
    cx_buf in;   /* what was received .. */
    size_t used; /* .. and read */
    bool ended;  /* the server closed its side */
    unsigned status;
    bool is_chunked, has_length;
    uint64_t length;
    cx_buf *body;
} exchange;

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static cx_status fail_late(const exchange *x, cx_err *err)
{
    return cx_fail_at(err, CX_E_TIMEOUT, "HttpFailed", CX_NO_OFFSET,
                      "%s port %s did not answer within %u ms", x->to.host, x->to.port,
                      (unsigned)x->request->timeout_ms);
}

/* C1 */
static cx_status wait_for(const exchange *x, short events, cx_err *err)
{
    struct pollfd one = {.fd = x->socket, .events = events};
    for (;;) {
        uint64_t now = now_ms();
        if (now >= x->deadline_ms)
            return fail_late(x, err);
        uint64_t left = x->deadline_ms - now;
        int ready = poll(&one, 1, left > 1000000 ? 1000000 : (int)left);
        if (ready > 0)
            return CX_SUCCESS;
        if (ready < 0 && errno != EINTR)
            return cx_fail_os(err, errno, "cannot wait for %s", x->to.host);
    }
}

static bool is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof v6);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
    memcpy(&v4, address, sizeof v4);
    return address->sa_family == AF_INET && ntohl(v4.sin_addr.s_addr) >> 24 == 127;
}

static cx_status fail_connect(const exchange *x, int code, cx_err *err)
{
    if (code == ECONNREFUSED)
        return cx_fail_at(err, CX_E_NOT_FOUND, "HttpFailed", CX_NO_OFFSET,
                          "nothing listens on %s port %s", x->to.host, x->to.port);
    return cx_fail_os(err, code, "cannot connect to %s port %s", x->to.host, x->to.port);
}

/* One address; *out_code: why it cannot be reached. */
static cx_status connect_to(exchange *x, const struct addrinfo *to, int *out_code, cx_err *err)
{
    socklen_t size = sizeof *out_code;
    *out_code = 0;
    x->socket = cx_system_socket(to->ai_family, SOCK_STREAM);
    if (x->socket < 0)
        *out_code = errno;
    else if (connect(x->socket, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS)
        *out_code = errno;
    if (*out_code == 0) {
        CX_TRY(wait_for(x, POLLOUT, err));
        if (getsockopt(x->socket, SOL_SOCKET, SO_ERROR, out_code, &size) != 0)
            *out_code = errno;
    }
    if (*out_code != 0 && x->socket >= 0) {
        (void)close(x->socket);
        x->socket = -1;
    }
    return CX_SUCCESS;
}

static cx_status connect_to_any(exchange *x, const struct addrinfo *found, cx_err *err)
{
    int code = 0;
    for (const struct addrinfo *to = found; to != NULL; to = to->ai_next) {
        if (x->request->token.size != 0 && !is_loopback(to->ai_addr)) /* C3 */
            return cx_fail_at(err, CX_E_USAGE, "TokenInClear", CX_NO_OFFSET,
                              "%s is another machine: a token would cross the network "
                              "unencrypted; use a tunnel, or let curl make the request over https",
                              x->to.host);
        CX_TRY(connect_to(x, to, &code, err));
        if (code == 0)
            return CX_SUCCESS;
    }
    return fail_connect(x, code, err);
}

static cx_status open_connection(exchange *x, cx_err *err)
{
    const bool is_localhost = strcmp(x->to.host, "localhost") == 0;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags =
                                       AI_NUMERICSERV | (is_localhost ? AI_NUMERICHOST : 0)};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(is_localhost ? "127.0.0.1" : x->to.host, x->to.port, &hints, &found);
    if (code == EAI_MEMORY)
        return cx_fail_nomem(err);
    if (code != 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "HttpFailed", CX_NO_OFFSET,
                          "cannot find the host %s: %s", x->to.host, gai_strerror(code));
    cx_status status = connect_to_any(x, found, err);
    freeaddrinfo(found);
    return status;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void write_head(const exchange *x, cx_buf *out)
{
    const cx_http_client_request *request = x->request;
    const char *more = request->path == NULL ? "" : request->path;
    size_t size = strlen(x->to.path);
    while (more[0] != 0 && size != 0 && x->to.path[size - 1] == '/')
        size--;
    cx_buf_printf(out, "%s %.*s%s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\n", request->method, (int)size,
                  x->to.path, more, size == 0 && more[0] == 0 ? "/" : "", x->to.is_v6 ? "[" : "",
                  x->to.host, x->to.is_v6 ? "]" : "", x->to.port);
    cx_buf_add_z(out, "User-Agent: cortex/" CX_VERSION "\r\nAccept: application/json\r\n"
                      "Accept-Encoding: identity\r\nConnection: close\r\n");
    if (request->token.size != 0) {
        cx_buf_add_z(out, "Authorization: Bearer ");
        cx_buf_add_str(out, request->token);
        cx_buf_add_z(out, "\r\n");
    }
    if (request->body.size != 0)
        cx_buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                      request->body.size);
    cx_buf_add_z(out, "\r\n");
}

/* A server may answer and close before it has read all: then its answer says why. */
static cx_status send_bytes(exchange *x, cx_bytes bytes, bool *out_cut, cx_err *err)
{
    size_t sent = 0;
    while (sent < bytes.size && !*out_cut) {
        ssize_t got = send(x->socket, bytes.data + sent, bytes.size - sent, cx_system_send_flags);
        if (got >= 0)
            sent += (size_t)got;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            CX_TRY(wait_for(x, POLLOUT, err));
        else if (errno == EPIPE || errno == ECONNRESET)
            *out_cut = true;
        else if (errno != EINTR)
            return cx_fail_os(err, errno, "cannot send to %s", x->to.host);
    }
    return CX_SUCCESS;
}

static cx_status send_request(exchange *x, cx_err *err)
{
    bool cut = false;
    cx_buf head;
    cx_buf_init(&head, x->alloc);
    write_head(x, &head);
    cx_status status = cx_buf_check(&head, err);
    if (!cx_failed(status))
        status = send_bytes(x, cx_buf_bytes(&head), &cut, err);
    cx_buf_done(&head);
    if (!cx_failed(status))
        status = send_bytes(x, x->request->body, &cut, err);
    return status;
}

/* --- receiving -------------------------------------------------------------------------------- */

static cx_status fail_http(const exchange *x, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "HttpFailed", CX_NO_OFFSET, "%s port %s answered %s",
                      x->to.host, x->to.port, what);
}

/* Receives more; sets `ended` when nothing more comes. */
static cx_status receive_more(exchange *x, cx_err *err)
{
    if (x->used != 0)
        memmove(x->in.data, x->in.data + x->used, x->in.size - x->used);
    x->in.size -= x->used;
    x->used = 0;
    for (;;) {
        uint8_t *room = cx_buf_reserve(&x->in, READ_STEP);
        if (room == NULL)
            return cx_fail_nomem(err);
        ssize_t got = recv(x->socket, room, READ_STEP, 0);
        if (got > 0) {
            cx_buf_advance(&x->in, (size_t)got);
            return CX_SUCCESS;
        }
        x->ended = got == 0;
        if (x->ended)
            return CX_SUCCESS;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            CX_TRY(wait_for(x, POLLIN, err));
        else if (errno == ECONNRESET)
            return fail_http(x, "nothing more: the connection was reset", err);
        else if (errno != EINTR)
            return cx_fail_os(err, errno, "cannot receive from %s", x->to.host);
    }
}

/* The next line without its end, which may be a bare LF (RFC 9112 §2.2). */
static cx_status read_line(exchange *x, size_t limit, cx_str *out, cx_err *err)
{
    for (;;) {
        size_t have = x->in.size - x->used;
        const uint8_t *from = have == 0 ? NULL : x->in.data + x->used;
        const uint8_t *end = have == 0 ? NULL : memchr(from, '\n', have);
        size_t size = end == NULL ? have : (size_t)(end - from);
        if (size > limit)
            return fail_http(x, "with a line that is too long", err);
        if (end != NULL) {
            x->used += size + 1;
            if (size != 0 && from[size - 1] == '\r')
                size--;
            *out = cx_str_from((const char *)from, size);
            return CX_SUCCESS;
        }
        if (x->ended)
            return fail_http(
                x, have == 0 && x->status == 0 ? "nothing" : "an answer that ends early", err);
        CX_TRY(receive_more(x, err));
    }
}

static bool read_digits(cx_str text, unsigned base, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;
        if (digit >= base || *out > (UINT64_MAX >> 8))
            return false;
        *out = *out * base + digit;
    }
    return text.size != 0;
}

static bool name_is(cx_str name, const char *wanted)
{
    size_t size = strlen(wanted);
    for (size_t i = 0; name.size == size && i < size; i++) {
        char c = name.data[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + 32) : c) != wanted[i])
            return false;
    }
    return name.size == size;
}

static cx_str trim(cx_str text)
{
    while (text.size != 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = cx_str_from(text.data + 1, text.size - 1);
    while (text.size != 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* C2 */
static cx_status read_header(exchange *x, cx_str line, cx_err *err)
{
    const char *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);
    if (colon == NULL || colon == line.data)
        return fail_http(x, "with a header that has no name", err);
    size_t size = (size_t)(colon - line.data);
    cx_str name = cx_str_from(line.data, size);
    cx_str value = trim(cx_str_from(colon + 1, line.size - size - 1));
    uint64_t length;
    if (name_is(name, "content-length")) {
        if (!read_digits(value, 10, &length) || (x->has_length && length != x->length))
            return fail_http(x, "with a length that is none, or with two", err);
        x->has_length = true;
        x->length = length;
    } else if (name_is(name, "transfer-encoding")) {
        if (!name_is(value, "chunked") || x->is_chunked)
            return fail_http(x, "with a transfer coding other than chunked", err);
        x->is_chunked = true;
    } else if (name_is(name, "content-encoding") && !name_is(value, "identity")) {
        return fail_http(x, "with an encoding that was not asked for", err);
    }
    return CX_SUCCESS;
}

/* Status line and headers; interim answers are skipped (RFC 9110 §15.2). */
static cx_status read_head(exchange *x, cx_err *err)
{
    size_t total = 0;
    do {
        cx_str line;
        uint64_t status;
        CX_TRY(read_line(x, CX_HTTP_CLIENT_HEAD_MAX, &line, err));
        if (line.size < 12 || !cx_str_starts(line, CX_STR("HTTP/1.")) || line.data[8] != ' ' ||
            !read_digits(cx_str_from(line.data + 9, 3), 10, &status) || status < 100)
            return fail_http(x, "something that is not HTTP", err);
        x->status = (unsigned)status;
        x->has_length = x->is_chunked = false;
        for (total += line.size;; total += line.size) {
            CX_TRY(read_line(x, CX_HTTP_CLIENT_HEAD_MAX, &line, err));
            if (line.size == 0)
                break;
            CX_TRY(read_header(x, line, err));
            if (total > CX_HTTP_CLIENT_HEAD_MAX)
                return fail_http(x, "with more than 64 KiB of headers", err);
        }
        total++; /* interim answers without an end */
    } while (x->status < 200);
    if (x->is_chunked && x->has_length)
        return fail_http(x, "with a length and chunks", err);
    return CX_SUCCESS;
}

static cx_status fail_too_large(const exchange *x, cx_err *err)
{
    return cx_fail_at(err, CX_E_LIMIT, "HttpFailed", CX_NO_OFFSET,
                      "%s port %s answered more than %zu bytes", x->to.host, x->to.port,
                      x->request->body_max);
}

/* `size` bytes of the body; UINT64_MAX = until the end. */
static cx_status read_body(exchange *x, uint64_t size, cx_err *err)
{
    while (size != 0) {
        size_t have = x->in.size - x->used;
        size_t take = have < size ? have : (size_t)size;
        if (take > x->request->body_max - x->body->size)
            return fail_too_large(x, err);
        if (take != 0)
            cx_buf_add(x->body, x->in.data + x->used, take);
        x->used += take;
        if (size != UINT64_MAX)
            size -= take;
        if (size == 0)
            break;
        if (x->ended)
            return size == UINT64_MAX ? CX_SUCCESS : fail_http(x, "an answer that ends early", err);
        CX_TRY(receive_more(x, err));
    }
    return CX_SUCCESS;
}

static cx_status read_chunks(exchange *x, cx_err *err)
{
    for (;;) {
        cx_str line;
        uint64_t size;
        CX_TRY(read_line(x, CHUNK_LINE_MAX, &line, err));
        const char *extension = line.size == 0 ? NULL : memchr(line.data, ';', line.size);
        if (extension != NULL)
            line.size = (size_t)(extension - line.data);
        if (!read_digits(trim(line), 16, &size) || size == UINT64_MAX)
            return fail_http(x, "with a chunk that has no size", err);
        if (size == 0)
            return CX_SUCCESS; /* what follows says nothing about the body */
        CX_TRY(read_body(x, size, err));
        CX_TRY(read_line(x, CHUNK_LINE_MAX, &line, err));
        if (line.size != 0)
            return fail_http(x, "with a chunk that is longer than its size", err);
    }
}

static cx_status receive_answer(exchange *x, cx_err *err)
{
    CX_TRY(read_head(x, err));
    if (x->status == 204 || x->status == 304)
        return CX_SUCCESS;
    if (x->is_chunked)
        return read_chunks(x, err);
    if (x->has_length && x->length > x->request->body_max)
        return fail_too_large(x, err);
    return read_body(x, x->has_length ? x->length : UINT64_MAX, err);
}

cx_status cx_http_client_exchange(const cx_http_client_request *request, const cx_alloc *alloc,
                                  unsigned *out_status, cx_buf *out_body, cx_err *err)
{
    CX_ASSERT(request->timeout_ms != 0 && out_body->size == 0);
    exchange x = {.request = request,
                  .alloc = alloc,
                  .socket = -1,
                  .deadline_ms = now_ms() + request->timeout_ms,
                  .body = out_body};
    CX_TRY(cx_url_parse(request->url, false, &x.to, err));
    for (size_t i = 0; i < request->token.size; i++)
        if (request->token.data[i] <= ' ' || request->token.data[i] >= 127)
            return cx_fail_at(err, CX_E_USAGE, "BadToken", CX_NO_OFFSET,
                              "the token has a space or a character that is not ASCII");
    cx_buf_init(&x.in, alloc);
    cx_status status = open_connection(&x, err);
    if (!cx_failed(status))
        status = send_request(&x, err);
    if (!cx_failed(status))
        status = receive_answer(&x, err);
    if (!cx_failed(status))
        status = cx_buf_check(out_body, err);
    if (!cx_failed(status))
        *out_status = x.status;
    cx_buf_done(&x.in);
    if (x.socket >= 0)
        (void)close(x.socket);
    return status;
}
