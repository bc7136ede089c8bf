/*
 * http_upgrade.c - connections that change their protocol.  U1 to U3: http_upgrade.h.
 *
 * Over TLS a thread carries the bytes between libcurl's connection and a pair of sockets of which
 * the caller has one end.
 */
#include "os/http/http_upgrade.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "os/http/tls.h"
#include "os/http/url.h"
#include "os/stream.h"

#define HEAD_MAX ((size_t)16 << 10)
#define BODY_MAX ((size_t)16 << 10)
#define CARRY_SIZE ((size_t)64 << 10)

/* What is on its way in one direction. */
typedef struct carried {
    uint8_t bytes[CARRY_SIZE];
    size_t at, size;
    bool ended; /* nothing more comes */
} carried;

struct cx_http_upgraded {
    const cx_alloc *alloc;
    cx_tls *tls;
    cx_socket near; /* our end of the pair */
    cx_thread carrier;
    carried out, in; /* to the server, from it */
};

/* --- carrying --------------------------------------------------------------------------------- */

/* Both false when the direction is over. */
static bool wants_room(const carried *c)
{
    return !c->ended && c->size == 0;
}

static void keep(carried *c, cx_socket_result result, size_t got)
{
    c->at = 0;
    c->size = result == CX_SOCKET_DONE ? got : 0;
    c->ended = result == CX_SOCKET_ENDED;
}

static bool give(carried *c, cx_socket_result result, size_t gone)
{
    if (result == CX_SOCKET_ENDED)
        return false;
    if (result == CX_SOCKET_DONE) {
        c->at += gone;
        c->size -= gone;
    }
    return true;
}

/* TLS may have bytes that its socket does not show, and may need to write in order to read: so each
 * side is tried whenever anything moved, and the sockets are waited for only when nothing did. */
static bool move_bytes(cx_http_upgraded *u, bool *out_moved)
{
    size_t size = 0;
    bool alive = true;
    *out_moved = false;
    if (wants_room(&u->out)) {
        cx_socket_result result = cx_tcp_receive(u->near, u->out.bytes, CARRY_SIZE, &size);
        keep(&u->out, result, size);
    }
    if (wants_room(&u->in)) {
        cx_socket_result result = cx_tls_receive(u->tls, u->in.bytes, CARRY_SIZE, &size);
        keep(&u->in, result, size);
    }
    if (u->out.size != 0) {
        cx_socket_result result = cx_tls_send(u->tls, u->out.bytes + u->out.at, u->out.size, &size);
        *out_moved |= result == CX_SOCKET_DONE;
        alive &= give(&u->out, result, size);
    }
    if (u->in.size != 0) {
        cx_socket_result result = cx_tcp_send(u->near, u->in.bytes + u->in.at, u->in.size, &size);
        *out_moved |= result == CX_SOCKET_DONE;
        alive &= give(&u->in, result, size);
    }
    /* The protocol above has no half-closed connections: what one side ends, the other loses when
     * all that was said has been carried. */
    return alive && !(u->out.ended && u->out.size == 0) && !(u->in.ended && u->in.size == 0);
}

static void carry(void *arg)
{
    cx_http_upgraded *u = arg;
    bool moved = false;
    while (move_bytes(u, &moved)) {
        cx_stream_wait list[] = {
            {u->near,
             (u->out.size == 0 ? CX_POLL_READ : 0u) | (u->in.size != 0 ? CX_POLL_WRITE : 0u), 0},
            {cx_tls_socket(u->tls),
             (u->in.size == 0 ? CX_POLL_READ : 0u) | (u->out.size != 0 ? CX_POLL_WRITE : 0u), 0}};
        if (!moved)
            (void)cx_stream_poll(list, CX_COUNT_OF(list), 1000);
    }
    cx_net_close(u->near);
    u->near = CX_SOCKET_NONE;
}

/* --- connecting ------------------------------------------------------------------------------- */

static bool is_loopback(const cx_ip *ip)
{
    char text[CX_IP_TEXT_SIZE];
    cx_ip_write(ip, text);
    return strncmp(text, "127.", 4) == 0 || strcmp(text, "::1") == 0;
}

static cx_status connect_plain(const cx_http_upgrade *request, const cx_url *to, const cx_ip *ip,
                               cx_socket *out, cx_err *err)
{
    if (request->token.size != 0 && !is_loopback(ip)) /* U1 */
        return cx_fail_at(err, CX_E_USAGE, "TokenInClear", CX_NO_OFFSET,
                          "%s is another machine: a token would cross the network unencrypted; use "
                          "https://",
                          to->host);
    return cx_stream_connect(ip, (uint16_t)strtoul(to->port, NULL, 10), request->timeout_ms,
                             CX_SOCKET_NONE, out, err);
}

/* The socket whose other end is carried through TLS. */
static cx_status connect_tls(cx_http_upgraded *u, const cx_http_upgrade *request, const cx_url *to,
                             const cx_ip *ip, cx_socket *out, cx_err *err)
{
    cx_socket pair[2];
    CX_TRY(cx_tls_connect(to->host, (uint16_t)strtoul(to->port, NULL, 10), ip, request->timeout_ms,
                          &u->tls, err));
    CX_TRY(cx_net_pair(pair, err));
    u->near = pair[0];
    if (!cx_thread_start(&u->carrier, carry, u)) {
        cx_net_close(pair[0]);
        cx_net_close(pair[1]);
        u->near = CX_SOCKET_NONE;
        return cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    }
    *out = pair[1];
    return CX_SUCCESS;
}

static cx_status connect_any(cx_http_upgraded *u, const cx_http_upgrade *request, const cx_url *to,
                             cx_socket *out, cx_err *err)
{
    cx_ip found[CX_IP_LOOKUP_MAX];
    size_t count = 0;
    cx_err why = {0};
    cx_status status;
    if (strcmp(to->host, "localhost") == 0 && cx_ip_parse(CX_STR("127.0.0.1"), &found[0]))
        count = 1;
    else
        CX_TRY(cx_ip_lookup(to->host, found, &count, err));
    status = cx_fail(&why, CX_E_NOT_FOUND, "%s has no address", to->host);
    for (size_t i = 0; i < count && cx_failed(status); i++)
        status = to->is_tls ? connect_tls(u, request, to, &found[i], out, &why)
                            : connect_plain(request, to, &found[i], out, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (why.tag != NULL)
        return cx_fail_at(err, why.code, why.tag, CX_NO_OFFSET, "%s", why.message);
    if (why.os_errno == ECONNREFUSED)
        why.code = CX_E_NOT_FOUND;
    return cx_fail_at(err, why.code, "HttpFailed", CX_NO_OFFSET, "%s port %s cannot be reached: %s",
                      to->host, to->port, why.message);
}

/* --- asking ----------------------------------------------------------------------------------- */

static cx_status ask(const cx_http_upgrade *request, const cx_url *to, cx_socket socket,
                     const cx_alloc *alloc, cx_err *err)
{
    cx_buf head;
    size_t size = strlen(to->path);
    while (size != 0 && to->path[size - 1] == '/')
        size--;
    cx_buf_init(&head, alloc);
    cx_buf_printf(&head, "GET %.*s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\n", (int)size, to->path,
                  request->path, to->is_v6 ? "[" : "", to->host, to->is_v6 ? "]" : "", to->port);
    cx_buf_printf(&head, "Connection: Upgrade\r\nUpgrade: %s\r\n", request->protocol);
    cx_buf_add_z(&head, "User-Agent: cortex/" CX_VERSION "\r\nAccept: application/json\r\n");
    if (request->token.size != 0) {
        cx_buf_add_z(&head, "Authorization: Bearer ");
        cx_buf_add_str(&head, request->token);
        cx_buf_add_z(&head, "\r\n");
    }
    cx_buf_add_z(&head, "\r\n");
    cx_status status = cx_buf_check(&head, err);
    if (!cx_failed(status))
        status = cx_net_write(socket, head.data, head.size, request->timeout_ms, err);
    cx_buf_done(&head);
    return status;
}

static cx_status fail_answer(const cx_url *to, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "HttpFailed", CX_NO_OFFSET, "%s port %s answered %s",
                      to->host, to->port, what);
}

/* Byte by byte, so that nothing of what follows is taken (U3). */
static cx_status read_head(const cx_http_upgrade *request, const cx_url *to, cx_socket socket,
                           cx_buf *head, cx_err *err)
{
    const cx_io *io = cx_io_system();
    uint64_t begun = io->monotonic_ns(io);
    while (head->size < 4 || memcmp(head->data + head->size - 4, "\r\n\r\n", 4) != 0) {
        size_t got = 0;
        uint8_t *room = cx_buf_reserve(head, 1);
        if (room == NULL)
            return cx_fail_nomem(err);
        uint64_t passed_ms = (io->monotonic_ns(io) - begun) / UINT64_C(1000000);
        uint32_t left_ms =
            passed_ms < request->timeout_ms ? request->timeout_ms - (uint32_t)passed_ms : 0;
        CX_TRY(cx_net_read(socket, room, 1, left_ms, &got, err));
        if (got == 0)
            return fail_answer(to, "nothing: it has ended the connection", err);
        cx_buf_advance(head, got);
        if (head->size > HEAD_MAX)
            return fail_answer(to, "with headers of more than 16 KiB", err);
    }
    return CX_SUCCESS;
}

/* The status of "HTTP/1.1 101 ..."; 0 when it is none. */
static unsigned status_of(cx_str head)
{
    const char *s = head.data;
    if (head.size < 12 || memcmp(s, "HTTP/1.", 7) != 0 || s[8] != ' ')
        return 0;
    unsigned status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (s[i] < '0' || s[i] > '9')
            return 0;
        status = status * 10 + (unsigned)(s[i] - '0');
    }
    return status;
}

/* The value of Content-Length, or 0. */
static size_t length_of(cx_str head)
{
    static const char name[] = "\r\ncontent-length:";
    size_t length = 0;
    for (size_t i = 0; i + sizeof name <= head.size; i++) {
        if (strncasecmp(head.data + i, name, sizeof name - 1) != 0)
            continue;
        for (i += sizeof name - 1; i < head.size && head.data[i] == ' '; i++)
            continue;
        for (; i < head.size && head.data[i] >= '0' && head.data[i] <= '9'; i++)
            if (length < BODY_MAX)
                length = length * 10 + (size_t)(head.data[i] - '0');
        break;
    }
    return length < BODY_MAX ? length : BODY_MAX;
}

/* The "detail" of a problem document (RFC 9457) as it stands there; empty when there is none. */
static cx_str read_reason(const cx_http_upgrade *request, cx_socket socket, size_t size,
                          cx_buf *body)
{
    static const char member[] = "\"detail\":\"";
    size_t got = 0;
    uint8_t *room = size == 0 ? NULL : cx_buf_reserve(body, size);
    if (room == NULL || cx_failed(cx_net_read(socket, room, size, request->timeout_ms, &got, NULL)))
        return CX_STR("");
    const char *from = got < sizeof member ? NULL : memmem(room, got, member, sizeof member - 1);
    if (from == NULL)
        return CX_STR("");
    from += sizeof member - 1;
    const char *all = (const char *)room + got, *end = from;
    while (end < all && *end != '"' && *end != '\\' && *end >= ' ')
        end++;
    return cx_str_from(from, (size_t)(end - from));
}

static cx_status fail_status(const cx_url *to, unsigned status, cx_str reason, cx_err *err)
{
    cx_code code = status == 401 || status == 403                    ? CX_E_DENIED
                   : status == 404 || status == 405 || status == 501 ? CX_E_UNSUPPORTED
                   : status == 429 || status >= 500                  ? CX_E_BUSY
                                                                     : CX_E_USAGE;
    return cx_fail_at(err, code, "HttpFailed", CX_NO_OFFSET, "%s port %s answered %u%s%.*s",
                      to->host, to->port, status, reason.size == 0 ? "" : ": ",
                      (int)(reason.size > 300 ? 300 : reason.size),
                      reason.size == 0 ? "" : reason.data);
}

static cx_status await_agreement(const cx_http_upgrade *request, const cx_url *to, cx_socket socket,
                                 const cx_alloc *alloc, cx_err *err)
{
    cx_buf head, body;
    cx_str reason = CX_STR("");
    cx_buf_init(&head, alloc);
    cx_buf_init(&body, alloc);
    cx_status status = read_head(request, to, socket, &head, err);
    unsigned code = cx_failed(status) ? 0 : status_of(cx_buf_str(&head));
    if (!cx_failed(status) && code == 0)
        status = fail_answer(to, "something that is not HTTP", err);
    if (!cx_failed(status) && code != 101) {
        reason = read_reason(request, socket, length_of(cx_buf_str(&head)), &body);
        status = fail_status(to, code, reason, err);
    }
    cx_buf_done(&head);
    cx_buf_done(&body);
    return status;
}

/* --- beginning and ending --------------------------------------------------------------------- */

cx_status cx_http_upgrade_open(const cx_http_upgrade *request, const cx_alloc *alloc,
                               cx_http_upgraded **out, cx_socket *out_socket, cx_err *err)
{
    cx_url to;
    cx_socket socket = CX_SOCKET_NONE;
    CX_TRY(cx_url_parse(request->url, true, &to, err));
    cx_http_upgraded *u = cx_alloc_zeroed(alloc, 1, sizeof *u);
    if (u == NULL)
        return cx_fail_nomem(err);
    u->alloc = alloc;
    u->near = CX_SOCKET_NONE;
    cx_status status = connect_any(u, request, &to, &socket, err);
    if (!cx_failed(status))
        status = ask(request, &to, socket, alloc, err);
    if (!cx_failed(status))
        status = await_agreement(request, &to, socket, alloc, err);
    if (cx_failed(status)) {
        cx_net_close(socket);
        cx_http_upgraded_close(u);
        return status;
    }
    *out = u;
    *out_socket = socket;
    return CX_SUCCESS;
}

void cx_http_upgraded_close(cx_http_upgraded *upgraded)
{
    if (upgraded == NULL)
        return;
    cx_thread_join(&upgraded->carrier);
    cx_tls_close(upgraded->tls);
    cx_alloc_free(upgraded->alloc, upgraded, sizeof *upgraded);
}
