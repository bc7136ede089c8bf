/*
 * test_net.c - sockets between programs: who may connect, what arrives, and every way not to.
 */
#include "os/net.h"

#include "os/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct pair {
    char folder[FOLDER_PATH_SIZE];
    char path[FOLDER_PATH_SIZE + 16];
    cx_listener listener;
    cx_socket client, server;
    cx_err err;
} pair;

static bool listen_at(pair *p, const char *name)
{
    *p = (pair){.listener = {CX_SOCKET_NONE, CX_SOCKET_NONE},
                .client = CX_SOCKET_NONE,
                .server = CX_SOCKET_NONE};
    folder_fresh(p->folder, name);
    CHECK_INT(mkdir(p->folder, 0700), 0);
    (void)snprintf(p->path, sizeof p->path, "%s/socket", p->folder);
    CHECK_STATUS(cx_net_listen(p->path, &p->listener, &p->err), &p->err);
    return p->listener.socket >= 0;
}

static bool connect_both(pair *p)
{
    bool stopped = true;
    CHECK_STATUS(cx_net_connect(p->path, &p->client, &p->err), &p->err);
    CHECK_STATUS(cx_net_accept(&p->listener, &p->server, &stopped, &p->err), &p->err);
    CHECK(!stopped);
    return p->client >= 0 && p->server >= 0;
}

static void finish(pair *p)
{
    cx_net_close(p->client);
    cx_net_close(p->server);
    cx_net_listen_end(&p->listener);
    folder_remove(p->folder);
}

CX_TEST(net_loopback_takes_a_free_port)
{
    cx_listener first = {CX_SOCKET_NONE, CX_SOCKET_NONE}, second = first;
    uint16_t port = 0, other = 0;
    cx_tcp_address address = {.host = "127.0.0.1", .is_loopback = true};
    int taken = CX_SOCKET_NONE;
    bool stopped = false;
    cx_socket none = CX_SOCKET_NONE;
    cx_err err;
    CHECK_STATUS(cx_net_listen_loopback(&first, &port, &err), &err);
    CHECK_STATUS(cx_net_listen_loopback(&second, &other, &err), &err);
    CHECK(port != 0 && other != 0 && port != other);
    address.port = port;
    CHECK(cx_tcp_listen(&address, &taken, &err).code == CX_E_BUSY);
    CHECK_INT(cx_net_wait(first.socket, &first, 0), CX_NET_LATE);
    cx_net_stop(&first);
    CHECK_STATUS(cx_net_accept(&first, &none, &stopped, &err), &err);
    CHECK(stopped && none == CX_SOCKET_NONE);
    cx_net_listen_end(&first);
    cx_net_listen_end(&second);
}

CX_TEST(net_bytes_go_both_ways)
{
    pair p;
    char got[8] = "";
    size_t size = 0;
    REQUIRE(listen_at(&p, "net"));
    REQUIRE(connect_both(&p));
    CHECK_STATUS(cx_net_write(p.client, "asked", 5, 1000, &p.err), &p.err);
    CHECK_INT(cx_net_wait(p.server, NULL, 1000), CX_NET_READY);
    CHECK_STATUS(cx_net_read(p.server, got, 5, 1000, &size, &p.err), &p.err);
    CHECK_INT(size, 5);
    CHECK(memcmp(got, "asked", 5) == 0);
    CHECK_STATUS(cx_net_write(p.server, "told", 4, 1000, &p.err), &p.err);
    CHECK_STATUS(cx_net_read(p.client, got, 4, 1000, &size, &p.err), &p.err);
    CHECK(size == 4 && memcmp(got, "told", 4) == 0);
    finish(&p);
}

CX_TEST(net_only_this_user_may_connect)
{
    pair p;
    struct stat info;
    cx_net_peer peer = {0};
    mode_t before = umask(0);
    REQUIRE(listen_at(&p, "net-mode"));
    (void)umask(before);
    CHECK_INT(stat(p.path, &info), 0);
    CHECK(S_ISSOCK(info.st_mode));
    CHECK_INT(info.st_mode & 0777, 0600);
    REQUIRE(connect_both(&p));
    CHECK_STATUS(cx_net_peer_of(p.server, &peer, &p.err), &p.err);
    CHECK_INT(peer.user, geteuid());
    CHECK_INT(peer.process, getpid());
    CHECK_INT(cx_net_user(), geteuid());
    CHECK_STATUS(cx_net_peer_of(p.client, &peer, &p.err), &p.err);
    CHECK_INT(peer.process, getpid());
    finish(&p);
}

CX_TEST(net_a_peer_is_the_same_user_or_refused)
{
    const cx_net_peer user = {.user = 1000, .process = 7}, root = {.user = 0, .process = 7};
    CHECK(cx_net_peer_ok(&user, 1000));
    CHECK(!cx_net_peer_ok(&user, 1001));
    CHECK(!cx_net_peer_ok(&user, 0));
    CHECK(!cx_net_peer_ok(&root, 1000));
    CHECK(cx_net_peer_ok(&root, 0));
}

CX_TEST(net_programs_that_are_started_inherit_nothing)
{
    pair p;
    REQUIRE(listen_at(&p, "net-exec"));
    REQUIRE(connect_both(&p));
    const int all[] = {p.client, p.server, p.listener.socket, p.listener.stop};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++)
        CHECK((fcntl(all[i], F_GETFD) & FD_CLOEXEC) != 0);
    finish(&p);
}

CX_TEST(net_waiting_has_an_end)
{
    pair p;
    char got[4];
    size_t size = 99;
    REQUIRE(listen_at(&p, "net-late"));
    REQUIRE(connect_both(&p));
    CHECK_INT(cx_net_wait(p.server, &p.listener, 20), CX_NET_LATE);
    CHECK_INT(cx_net_read(p.server, got, 4, 20, &size, &p.err).code, CX_E_TIMEOUT);
    CHECK_INT(size, 99);
    CHECK_STATUS(cx_net_write(p.client, "ab", 2, 20, &p.err), &p.err);
    CHECK_INT(cx_net_read(p.server, got, 4, 20, &size, &p.err).code, CX_E_TIMEOUT);
    /* Without a reader: at some time there is no room. */
    static char block[1 << 20];
    cx_status status = CX_SUCCESS;
    for (int i = 0; i < 64 && !cx_failed(status); i++)
        status = cx_net_write(p.client, block, sizeof block, 20, &p.err);
    CHECK_INT(status.code, CX_E_TIMEOUT);
    finish(&p);
}

CX_TEST(net_a_peer_that_is_gone_is_an_error_and_no_signal)
{
    pair p;
    char got[4];
    size_t size = 99;
    REQUIRE(listen_at(&p, "net-gone"));
    REQUIRE(connect_both(&p));
    CHECK_STATUS(cx_net_write(p.client, "ab", 2, 1000, &p.err), &p.err);
    cx_net_close(p.client);
    p.client = CX_SOCKET_NONE;
    CHECK_INT(cx_net_wait(p.server, NULL, 1000), CX_NET_READY);
    CHECK_STATUS(cx_net_read(p.server, got, 4, 1000, &size, &p.err), &p.err);
    CHECK_INT(size, 2); /* fewer than asked for: the end */
    CHECK_STATUS(cx_net_read(p.server, got, 4, 1000, &size, &p.err), &p.err);
    CHECK_INT(size, 0);
    CHECK_INT(cx_net_write(p.server, "x", 1, 1000, &p.err).code, CX_E_IO);
    CHECK_INT(p.err.os_errno, EPIPE);
    finish(&p);
}

static void stop_soon(void *arg)
{
    const struct timespec nap = {0, 20000000};
    (void)nanosleep(&nap, NULL);
    cx_net_stop(arg);
}

CX_TEST(net_stopping_wakes_those_who_wait)
{
    pair p;
    cx_thread thread;
    bool stopped = false;
    cx_socket none = CX_SOCKET_NONE;
    REQUIRE(listen_at(&p, "net-stop"));
    REQUIRE(connect_both(&p));
    REQUIRE(cx_thread_start(&thread, stop_soon, &p.listener));
    CHECK_STATUS(cx_net_accept(&p.listener, &none, &stopped, &p.err), &p.err);
    CHECK(stopped && none == CX_SOCKET_NONE);
    cx_thread_join(&thread);
    /* From now on always, and before what could be read. */
    CHECK_STATUS(cx_net_write(p.client, "x", 1, 1000, &p.err), &p.err);
    CHECK_INT(cx_net_wait(p.server, &p.listener, CX_NET_FOREVER), CX_NET_STOPPED);
    CHECK_INT(cx_net_wait(p.server, NULL, 1000), CX_NET_READY);
    finish(&p);
}

CX_TEST(net_a_stale_socket_is_replaced_and_nothing_else)
{
    pair p;
    cx_listener other = {CX_SOCKET_NONE, CX_SOCKET_NONE};
    REQUIRE(listen_at(&p, "net-stale"));
    cx_net_listen_end(&p.listener); /* the file stays */
    CHECK_INT(access(p.path, F_OK), 0);
    CHECK_INT(cx_net_connect(p.path, &p.client, &p.err).code, CX_E_NOT_FOUND);
    CHECK_STATUS(cx_net_listen(p.path, &p.listener, &p.err), &p.err);
    REQUIRE(connect_both(&p));
    char path[FOLDER_PATH_SIZE + 16];
    (void)snprintf(path, sizeof path, "%s/file", p.folder);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && close(file) == 0);
    CHECK_INT(cx_net_listen(path, &other, &p.err).code, CX_E_EXISTS);
    CHECK_INT(access(path, F_OK), 0);
    CHECK_INT(other.socket, CX_SOCKET_NONE);
    (void)snprintf(path, sizeof path, "%s/absent/socket", p.folder);
    CHECK_INT(cx_net_listen(path, &other, &p.err).code, CX_E_NOT_FOUND);
    CHECK_INT(cx_net_connect(path, &p.client, &p.err).code, CX_E_NOT_FOUND);
    finish(&p);
}

/* A socket's address has room for 107 bytes; a home may stand deeper. */
CX_TEST(net_a_path_of_any_length_is_reached)
{
    pair p;
    char path[FOLDER_PATH_SIZE * 2];
    REQUIRE(listen_at(&p, "net-deep"));
    cx_net_listen_end(&p.listener);
    int size = snprintf(path, sizeof path, "%s", p.folder);
    for (int i = 0; i < 4; i++) {
        size += snprintf(path + size, sizeof path - (size_t)size, "/%060d", i);
        CHECK_INT(mkdir(path, 0700), 0);
    }
    (void)snprintf(path + size, sizeof path - (size_t)size, "/socket");
    REQUIRE(strlen(path) < sizeof p.path);
    memcpy(p.path, path, strlen(path) + 1);
    CHECK(strlen(path) > 200);
    CHECK_STATUS(cx_net_listen(p.path, &p.listener, &p.err), &p.err);
    CHECK_INT(access(p.path, F_OK), 0);
    REQUIRE(connect_both(&p));
    finish(&p);
}
