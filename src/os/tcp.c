/*
 * tcp.c - a listening TCP socket.
 */
#include "os/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/system/system.h"

#define BACKLOG 1024

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static bool parse_port(const char *text, uint16_t *out)
{
    uint32_t port = 0;
    size_t digits = strlen(text);
    if (digits == 0 || digits > 5)
        return false;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (uint32_t)(*text - '0');
    }
    *out = (uint16_t)port;
    return port <= UINT16_MAX;
}

/* The part before the last colon, without the brackets of an IPv6 address. */
static bool split_address(const char *text, cx_tcp_address *out)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !parse_port(colon + 1, &out->port))
        return false;
    size_t size = (size_t)(colon - text);
    out->is_v6 = size >= 2 && text[0] == '[' && text[size - 1] == ']';
    if (out->is_v6) {
        text++;
        size -= 2;
    }
    if (size == 0 || size >= sizeof out->host)
        return false;
    memcpy(out->host, text, size);
    out->host[size] = 0;
    if (strcmp(out->host, "localhost") == 0)
        (void)snprintf(out->host, sizeof out->host, "%s", out->is_v6 ? "::1" : "127.0.0.1");
    return true;
}

static bool to_socket_address(const cx_tcp_address *address, any_address *out, socklen_t *out_size)
{
    memset(out, 0, sizeof *out);
    if (address->is_v6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(address->port);
        *out_size = sizeof out->v6;
        return inet_pton(AF_INET6, address->host, &out->v6.sin6_addr) == 1;
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(address->port);
    *out_size = sizeof out->v4;
    return inet_pton(AF_INET, address->host, &out->v4.sin_addr) == 1;
}

cx_status cx_tcp_address_parse(const char *text, cx_tcp_address *out, cx_err *err)
{
    cx_tcp_address address = {.port = 0};
    any_address numeric;
    socklen_t size;
    if (!split_address(text, &address) || !to_socket_address(&address, &numeric, &size))
        return cx_fail(err, CX_E_USAGE,
                       "found '%s', expected ADDRESS:PORT with a numeric address, such as "
                       "127.0.0.1:8420 or [::1]:8420",
                       text);
    address.is_loopback = address.is_v6 ? IN6_IS_ADDR_LOOPBACK(&numeric.v6.sin6_addr) != 0
                                        : ntohl(numeric.v4.sin_addr.s_addr) >> 24 == 127;
    *out = address;
    return CX_SUCCESS;
}

static cx_status bind_and_listen(int socket, const any_address *to, socklen_t size,
                                 cx_tcp_address *address, cx_err *err)
{
    const int on = 1;
    any_address bound = {.v6 = {0}};
    socklen_t bound_size = sizeof bound;
    /* A restarted server can use the port at once. */
    (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->is_v6)
        (void)setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(socket, &to->any, size) != 0 || listen(socket, BACKLOG) != 0 ||
        getsockname(socket, &bound.any, &bound_size) != 0) {
        if (errno == EADDRINUSE)
            return cx_fail_at(err, CX_E_BUSY, "AddressInUse", CX_NO_OFFSET,
                              "another program listens on %s port %u", address->host,
                              (unsigned)address->port);
        return cx_fail_os(err, errno, "cannot listen on %s port %u", address->host,
                          (unsigned)address->port);
    }
    address->port = ntohs(address->is_v6 ? bound.v6.sin6_port : bound.v4.sin_port);
    return CX_SUCCESS;
}

cx_status cx_tcp_listen(cx_tcp_address *address, int *out_socket, cx_err *err)
{
    any_address to;
    socklen_t size;
    if (!to_socket_address(address, &to, &size))
        return cx_fail(err, CX_E_USAGE, "'%s' is no numeric address", address->host);
    int made = cx_system_socket(to.any.sa_family, SOCK_STREAM);
    if (made < 0)
        return cx_fail_os(err, errno, "cannot make a socket");
    cx_status status = bind_and_listen(made, &to, size, address, err);
    if (cx_failed(status)) {
        cx_tcp_close(made);
        return status;
    }
    *out_socket = made;
    return CX_SUCCESS;
}

void cx_tcp_close(int socket)
{
    if (socket >= 0)
        (void)close(socket);
}

void cx_tcp_stop_listening(int socket)
{
    if (!cx_system_silence(socket))
        cx_tcp_cut(socket); /* waiters wake repeatedly until it is closed */
}

void cx_tcp_cut(int socket)
{
    (void)shutdown(socket, SHUT_RDWR);
}

bool cx_tcp_has_ended(int socket)
{
    char byte;
    ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool cx_tcp_network(const void *sockaddr, char out[CX_TCP_NETWORK_SIZE])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    sa_family_t family;
    memcpy(&family, (const char *)sockaddr + offsetof(struct sockaddr, sa_family), sizeof family);
    out[0] = '\0';
    if (family == AF_INET6) {
        memcpy(&v6, sockaddr, sizeof v6);
        bool loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
        if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            memset(v6.sin6_addr.s6_addr + 8, 0, 8);
            (void)inet_ntop(AF_INET6, loopback ? &in6addr_loopback : &v6.sin6_addr, out,
                            CX_TCP_NETWORK_SIZE);
            return loopback;
        }
        memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    } else if (family == AF_INET) {
        memcpy(&v4, sockaddr, sizeof v4);
    } else {
        return false;
    }
    (void)inet_ntop(AF_INET, &v4.sin_addr, out, CX_TCP_NETWORK_SIZE);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
}

uint64_t cx_tcp_descriptors(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
        struct rlimit more = limit;
        more.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : (rlim_t)wanted;
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            limit = more;
    }
    return limit.rlim_cur;
}
