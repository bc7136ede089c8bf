/*
 * net.c - Unix stream sockets.
 *
 * All sockets are non-blocking; calls wait with poll, with one deadline per call.  A path too long
 * for a socket address is reached through a short path to its folder.
 */
#include "os/net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "os/system/system.h"
#include "os/tcp.h"

/* Connections not accepted yet. */
#define BACKLOG 128

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t deadline_of(uint32_t timeout_ms)
{
    return timeout_ms == CX_NET_FOREVER ? UINT64_MAX : now_ms() + timeout_ms;
}

/* The time left as poll expects it; 0 after the deadline. */
static int left_ms(uint64_t deadline)
{
    if (deadline == UINT64_MAX)
        return -1;
    uint64_t now = now_ms();
    if (now >= deadline)
        return 0;
    return deadline - now > 1000000 ? 1000000 : (int)(deadline - now);
}

/* False after the deadline. */
static bool wait_until(struct pollfd *fds, nfds_t count, uint64_t deadline)
{
    for (;;) {
        int left = left_ms(deadline);
        int ready = poll(fds, count, left);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
        if (left == 0)
            return false;
    }
}

/* --- addresses ------------------------------------------------------------------------------- */

typedef struct address {
    struct sockaddr_un name;
    bool leads;        /* through `way` */
    cx_system_way way; /* to the folder of a long path */
} address;

static cx_status make_address(const char *path, address *out, cx_err *err)
{
    *out = (address){.name = {.sun_family = AF_UNIX}};
    size_t room = sizeof out->name.sun_path;
    if (strlen(path) < room) {
        memcpy(out->name.sun_path, path, strlen(path) + 1);
        return CX_SUCCESS;
    }
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? NULL : strndup(path, (size_t)(slash - path) + 1);
    if (folder == NULL)
        return slash == NULL ? cx_fail_os(err, ENAMETOOLONG, "%s", path) : cx_fail_nomem(err);
    bool opened = cx_system_way_open(folder, &out->way);
    int code = errno;
    free(folder);
    if (!opened)
        return cx_fail_os(err, code, "cannot open the folder of %s", path);
    int size = snprintf(out->name.sun_path, room, "%s/%s", out->way.path, slash + 1);
    if (size < 0 || (size_t)size >= room) {
        cx_system_way_close(&out->way);
        return cx_fail_os(err, ENAMETOOLONG, "%s", path);
    }
    out->leads = true;
    return CX_SUCCESS;
}

static void address_done(const address *at)
{
    if (at->leads)
        cx_system_way_close(&at->way);
}

static cx_status open_socket(cx_socket *out, cx_err *err)
{
    *out = cx_system_socket(AF_UNIX, SOCK_STREAM);
    return *out < 0 ? cx_fail_os(err, errno, "cannot make a socket") : CX_SUCCESS;
}

/* --- listening ------------------------------------------------------------------------------- */

/* Removes a socket that a killed process left; never anything that is not a socket. */
static cx_status remove_stale(const char *path, cx_err *err)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return errno == ENOENT ? CX_SUCCESS : cx_fail_os(err, errno, "cannot look at %s", path);
    if (!S_ISSOCK(info.st_mode))
        return cx_fail_os(err, EEXIST, "%s is no socket", path);
    if (unlink(path) != 0 && errno != ENOENT)
        return cx_fail_os(err, errno, "cannot remove %s", path);
    return CX_SUCCESS;
}

static cx_status bind_at(cx_socket socket, const char *path, cx_err *err)
{
    address at;
    CX_TRY(make_address(path, &at, err));
    cx_status status = CX_SUCCESS;
    if (!cx_system_bind_private(socket, (const struct sockaddr *)&at.name, sizeof at.name))
        status = cx_fail_os(err, errno, "cannot listen at %s", path);
    address_done(&at);
    return status;
}

cx_status cx_net_listen(const char *path, cx_listener *out, cx_err *err)
{
    cx_listener made = {CX_SOCKET_NONE, CX_SOCKET_NONE};
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, remove_stale(path, err));
    CX_TRY_GOTO(status, open_socket(&made.socket, err));
    made.stop = cx_system_wake_open();
    if (made.stop < 0)
        CX_TRY_GOTO(status, cx_fail_os(err, errno, "cannot make an event"));
    CX_TRY_GOTO(status, bind_at(made.socket, path, err));
    if (listen(made.socket, BACKLOG) != 0) {
        status = cx_fail_os(err, errno, "cannot listen at %s", path);
        (void)unlink(path);
    }
done:
    if (cx_failed(status))
        cx_net_listen_end(&made);
    else
        *out = made;
    return status;
}

cx_status cx_net_listen_nowhere(cx_listener *out, cx_err *err)
{
    *out = (cx_listener){CX_SOCKET_NONE, cx_system_wake_open()};
    return out->stop < 0 ? cx_fail_os(err, errno, "cannot make an event") : CX_SUCCESS;
}

void cx_net_stop(const cx_listener *listener)
{
    cx_system_wake(listener->stop); /* never cleared: it stays readable */
}

void cx_net_listen_end(cx_listener *listener)
{
    cx_net_close(listener->socket);
    cx_net_close(listener->stop);
    *listener = (cx_listener){CX_SOCKET_NONE, CX_SOCKET_NONE};
}

cx_status cx_net_listen_loopback(cx_listener *out, uint16_t *out_port, cx_err *err)
{
    cx_listener made = {CX_SOCKET_NONE, CX_SOCKET_NONE};
    cx_tcp_address where = {.host = "127.0.0.1", .is_loopback = true};
    CX_TRY(cx_tcp_listen(&where, &made.socket, err));
    made.stop = cx_system_wake_open();
    int flags = fcntl(made.socket, F_GETFL);
    if (made.stop < 0 || flags < 0 || fcntl(made.socket, F_SETFL, flags | O_NONBLOCK) != 0) {
        cx_status status = cx_fail_os(err, errno, "cannot listen on loopback");
        cx_net_listen_end(&made);
        return status;
    }
    *out = made;
    *out_port = where.port;
    return CX_SUCCESS;
}

/* Errors of a connection that was aborted before it was accepted. */
static bool is_passing(int code)
{
    return code == EAGAIN || code == EINTR || code == ECONNABORTED || code == EPROTO;
}

cx_status cx_net_accept(const cx_listener *listener, cx_socket *out, bool *out_stopped, cx_err *err)
{
    for (;;) {
        *out_stopped = cx_net_wait(listener->socket, listener, CX_NET_FOREVER) == CX_NET_STOPPED;
        if (*out_stopped)
            return CX_SUCCESS;
        int accepted = cx_system_accept(listener->socket, NULL, NULL);
        if (accepted >= 0) {
            *out = accepted;
            return CX_SUCCESS;
        }
        if (!is_passing(errno))
            return cx_fail_os(err, errno, "cannot accept a connection");
    }
}

/* --- connecting ------------------------------------------------------------------------------ */

cx_status cx_net_connect(const char *path, cx_socket *out, cx_err *err)
{
    address at;
    cx_socket made = CX_SOCKET_NONE;
    CX_TRY(make_address(path, &at, err));
    cx_status status = open_socket(&made, err);
    if (!cx_failed(status) &&
        connect(made, (const struct sockaddr *)&at.name, sizeof at.name) != 0) {
        int code = errno;
        status = code == ECONNREFUSED
                     ? cx_fail(err, CX_E_NOT_FOUND, "no process listens at %s any more", path)
                     : cx_fail_os(err, code, "cannot connect to %s", path);
    }
    address_done(&at);
    if (cx_failed(status))
        cx_net_close(made);
    else
        *out = made;
    return status;
}

cx_status cx_net_pair(cx_socket out[2], cx_err *err)
{
    if (!cx_system_stream_pair(out))
        return cx_fail_os(err, errno, "cannot make a pair of sockets");
    return CX_SUCCESS;
}

void cx_net_close(cx_socket socket)
{
    if (socket >= 0)
        (void)close(socket);
}

/* --- reading and writing --------------------------------------------------------------------- */

cx_net_event cx_net_wait(cx_socket socket, const cx_listener *listener, uint32_t timeout_ms)
{
    struct pollfd fds[2] = {{.fd = listener == NULL ? -1 : listener->stop, .events = POLLIN},
                            {.fd = socket, .events = POLLIN}};
    if (!wait_until(fds, 2, deadline_of(timeout_ms)))
        return CX_NET_LATE;
    return fds[0].revents != 0 ? CX_NET_STOPPED : CX_NET_READY;
}

static cx_status timeout_error(const char *what, uint32_t timeout_ms, cx_err *err)
{
    return cx_fail(err, CX_E_TIMEOUT, "the other side %s within %u ms", what, timeout_ms);
}

cx_status cx_net_read(cx_socket socket, void *data, size_t size, uint32_t timeout_ms,
                      size_t *out_size, cx_err *err)
{
    uint64_t deadline = deadline_of(timeout_ms);
    size_t done = 0;
    while (done < size) {
        ssize_t got = recv(socket, (uint8_t *)data + done, size - done, 0);
        if (got == 0)
            break;
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return cx_fail_os(err, errno, "cannot read from a socket");
        struct pollfd fds = {.fd = socket, .events = POLLIN};
        if (!wait_until(&fds, 1, deadline))
            return timeout_error("sent nothing", timeout_ms, err);
    }
    *out_size = done;
    return CX_SUCCESS;
}

cx_status cx_net_write(cx_socket socket, const void *data, size_t size, uint32_t timeout_ms,
                       cx_err *err)
{
    uint64_t deadline = deadline_of(timeout_ms);
    size_t done = 0;
    while (done < size) {
        ssize_t put = send(socket, (const uint8_t *)data + done, size - done, cx_system_send_flags);
        if (put >= 0) {
            done += (size_t)put;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return cx_fail_os(err, errno, "cannot write to a socket");
        struct pollfd fds = {.fd = socket, .events = POLLOUT};
        if (!wait_until(&fds, 1, deadline))
            return timeout_error("took nothing", timeout_ms, err);
    }
    return CX_SUCCESS;
}

/* --- the peer -------------------------------------------------------------------------------- */

cx_status cx_net_peer_of(cx_socket socket, cx_net_peer *out, cx_err *err)
{
    cx_net_peer peer = {0};
    if (!cx_system_peer(socket, &peer.user, &peer.process))
        return cx_fail_os(err, errno, "cannot read the credentials of a socket's peer");
    *out = peer;
    return CX_SUCCESS;
}

bool cx_net_peer_ok(const cx_net_peer *peer, uint64_t user)
{
    return peer->user == user;
}

uint64_t cx_net_user(void)
{
    return geteuid();
}
