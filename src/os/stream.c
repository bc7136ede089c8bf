/*
 * stream.c - TCP connections to checked addresses, and passing listening sockets on.
 */
#include "os/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "os/system/system.h"

#define WAITS_MAX 16
#define BACKLOG 128

bool cx_stream_poll(cx_stream_wait *list, size_t count, uint32_t timeout_ms)
{
    struct pollfd fds[WAITS_MAX];
    CX_ASSERT(count <= WAITS_MAX);
    for (size_t i = 0; i < count; i++) {
        short events = (short)(((list[i].wanted & CX_POLL_READ) != 0 ? POLLIN : 0) |
                               ((list[i].wanted & CX_POLL_WRITE) != 0 ? POLLOUT : 0));
        fds[i] = (struct pollfd){list[i].socket, events, 0};
        list[i].ready = 0;
    }
    int got = poll(fds, (nfds_t)count, timeout_ms > 1000000 ? 1000000 : (int)timeout_ms);
    for (size_t i = 0; i < count && got > 0; i++) {
        short events = fds[i].revents;
        if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0)
            list[i].ready = CX_POLL_READ | CX_POLL_WRITE;
        if ((events & POLLIN) != 0)
            list[i].ready |= CX_POLL_READ;
        if ((events & POLLOUT) != 0)
            list[i].ready |= CX_POLL_WRITE;
    }
    return got != 0;
}

static socklen_t make_sockaddr(const cx_ip *ip, uint16_t port, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (ip->is_v6) {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&v6.sin6_addr, ip->bytes, 16);
        memcpy(out, &v6, sizeof v6);
        return sizeof v6;
    }
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&v4.sin_addr, ip->bytes, 4);
    memcpy(out, &v4, sizeof v4);
    return sizeof v4;
}

static cx_status wait_connected(cx_socket made, const char *name, uint32_t timeout_ms,
                                cx_socket stop, cx_err *err)
{
    cx_stream_wait list[2] = {{made, CX_POLL_WRITE, 0}, {stop, CX_POLL_READ, 0}};
    int code = 0;
    socklen_t size = sizeof code;
    if (!cx_stream_poll(list, 2, timeout_ms))
        return cx_fail(err, CX_E_TIMEOUT, "%s does not answer within %u ms", name,
                       (unsigned)timeout_ms);
    if (list[1].ready != 0)
        return cx_fail(err, CX_E_IO, "stopped while connecting to %s", name);
    if (getsockopt(made, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
        code = errno;
    return code == 0 ? CX_SUCCESS : cx_fail_os(err, code, "cannot connect to %s", name);
}

cx_status cx_stream_connect(const cx_ip *ip, uint16_t port, uint32_t timeout_ms, cx_socket stop,
                            cx_socket *out, cx_err *err)
{
    struct sockaddr_storage to;
    char name[CX_IP_TEXT_SIZE];
    const int on = 1;
    socklen_t size = make_sockaddr(ip, port, &to);
    cx_ip_write(ip, name);
    cx_socket made = cx_system_socket(to.ss_family, SOCK_STREAM);
    if (made < 0)
        return cx_fail_os(err, errno, "cannot make a socket");
    (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    cx_status status = CX_SUCCESS;
    if (connect(made, (const struct sockaddr *)&to, size) != 0)
        status = errno == EINPROGRESS ? wait_connected(made, name, timeout_ms, stop, err)
                                      : cx_fail_os(err, errno, "cannot connect to %s", name);
    if (cx_failed(status))
        cx_net_close(made);
    else
        *out = made;
    return status;
}

cx_status cx_stream_connect_begin(const cx_ip *ip, uint16_t port, const cx_ip *from, cx_socket *out,
                                  bool *out_connected, cx_err *err)
{
    struct sockaddr_storage to, own;
    char name[CX_IP_TEXT_SIZE];
    const int on = 1;
    socklen_t size = make_sockaddr(ip, port, &to);
    cx_socket made = cx_system_socket(to.ss_family, SOCK_STREAM);
    if (made < 0)
        return cx_fail_os(err, errno, "cannot make a socket");
    (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (from != NULL && from->is_v6 == ip->is_v6) {
        socklen_t own_size = make_sockaddr(from, 0, &own);
#ifdef IP_BIND_ADDRESS_NO_PORT
        /* The port is chosen by connect, which may choose one that is used towards others. */
        (void)setsockopt(made, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
#endif
        (void)bind(made, (const struct sockaddr *)&own, own_size);
    }
    *out_connected = connect(made, (const struct sockaddr *)&to, size) == 0;
    if (*out_connected || errno == EINPROGRESS) {
        *out = made;
        return CX_SUCCESS;
    }
    int code = errno;
    cx_net_close(made);
    cx_ip_write(ip, name);
    return cx_fail_os(err, code, "cannot connect to %s", name);
}

bool cx_stream_connected(cx_socket socket)
{
    int code = 0;
    socklen_t size = sizeof code;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0;
}

bool cx_stream_peer(cx_socket socket, cx_ip *out)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    *out = (cx_ip){{0}, false};
    if (getpeername(socket, (struct sockaddr *)&peer, &size) != 0)
        return false;
    if (peer.ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, &peer, sizeof v4);
        memcpy(out->bytes, &v4.sin_addr, 4);
        return true;
    }
    struct sockaddr_in6 v6;
    if (peer.ss_family != AF_INET6)
        return false;
    memcpy(&v6, &peer, sizeof v6);
    out->is_v6 = !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    memcpy(out->bytes, v6.sin6_addr.s6_addr + (out->is_v6 ? 0 : 12), out->is_v6 ? 16 : 4);
    return true;
}

void cx_stream_end_output(cx_socket socket)
{
    (void)shutdown(socket, SHUT_WR);
}

/* --- listening sockets of other processes ----------------------------------------------------- */

cx_status cx_stream_pair(cx_socket out[2], cx_err *err)
{
    if (!cx_system_socket_pair(out))
        return cx_fail_os(err, errno, "cannot make a pair of sockets");
    return CX_SUCCESS;
}

cx_status cx_stream_listen_loopback(uint16_t port, cx_socket *out, cx_err *err)
{
    static const cx_ip loopback = {{127, 0, 0, 1}, false};
    struct sockaddr_storage at;
    socklen_t size = make_sockaddr(&loopback, port, &at);
    cx_socket made = cx_system_socket(AF_INET, SOCK_STREAM);
    if (made < 0)
        return cx_fail_os(err, errno, "cannot make a socket");
    if (bind(made, (const struct sockaddr *)&at, size) != 0 || listen(made, BACKLOG) != 0) {
        cx_status status = cx_fail_os(err, errno, "cannot listen on 127.0.0.1:%u", (unsigned)port);
        cx_net_close(made);
        return status;
    }
    *out = made;
    return CX_SUCCESS;
}

/* Room for one descriptor, aligned as the kernel wants it. */
typedef union control_block {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
} control_block;

cx_status cx_stream_pass(cx_socket channel, cx_socket passed, cx_err *err)
{
    char byte = 's';
    struct iovec data = {&byte, 1};
    control_block control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
    if (sendmsg(channel, &message, cx_system_send_flags) != 1)
        return cx_fail_os(err, errno, "cannot pass a socket on");
    return CX_SUCCESS;
}

cx_socket_result cx_stream_take(cx_socket channel, cx_socket *out)
{
    char byte;
    struct iovec data = {&byte, 1};
    control_block control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    memset(&control, 0, sizeof control);
    ssize_t got = recvmsg(channel, &message, cx_system_receive_flags);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? CX_SOCKET_WAITS
                                                                         : CX_SOCKET_ENDED;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (got != 1 || header == NULL || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return CX_SOCKET_ENDED;
    memcpy(out, CMSG_DATA(header), sizeof *out);
    cx_system_adopt(*out);
    return CX_SOCKET_DONE;
}
