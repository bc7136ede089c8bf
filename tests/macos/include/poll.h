/* Written for tests/macos: without ppoll. */
#ifndef CX_MACOS_POLL_H
#define CX_MACOS_POLL_H
#define POLLIN 1
#define POLLPRI 2
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16
#define POLLNVAL 32
typedef unsigned nfds_t;
struct pollfd {
    int fd;
    short events;
    short revents;
};
int poll(struct pollfd *files, nfds_t count, int timeout_ms);
#endif
