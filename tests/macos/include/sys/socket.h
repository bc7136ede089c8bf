/* Written for tests/macos: without SOCK_CLOEXEC, SOCK_NONBLOCK, MSG_NOSIGNAL (not in every SDK),
 * MSG_CMSG_CLOEXEC, accept4 and SO_PEERCRED. */
#ifndef CX_MACOS_SYS_SOCKET_H
#define CX_MACOS_SYS_SOCKET_H
#include <sys/types.h>
#include <sys/uio.h>
typedef unsigned socklen_t;
typedef unsigned char sa_family_t;
#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 30
#define PF_UNIX AF_UNIX
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_SEQPACKET 5
#define SOMAXCONN 128
#define SOL_SOCKET 0xffff
#define SO_REUSEADDR 4
#define SO_KEEPALIVE 8
#define SO_LINGER 0x80
#define SO_SNDBUF 0x1001
#define SO_RCVBUF 0x1002
#define SO_SNDTIMEO 0x1005
#define SO_RCVTIMEO 0x1006
#define SO_ERROR 0x1007
#define SO_TYPE 0x1008
#define SO_NOSIGPIPE 0x1022
#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2
#define MSG_PEEK 2
#define MSG_TRUNC 0x10
#define MSG_CTRUNC 0x20
#define MSG_WAITALL 0x40
#define MSG_DONTWAIT 0x80
#define SCM_RIGHTS 1
struct sockaddr {
    unsigned char sa_len;
    sa_family_t sa_family;
    char sa_data[14];
};
struct sockaddr_storage {
    unsigned char ss_len;
    sa_family_t ss_family;
    char pad_1[6];
    long long align;
    char pad_2[112];
};
struct msghdr {
    void *msg_name;
    socklen_t msg_namelen;
    struct iovec *msg_iov;
    int msg_iovlen;
    void *msg_control;
    socklen_t msg_controllen;
    int msg_flags;
};
struct cmsghdr {
    socklen_t cmsg_len;
    int cmsg_level;
    int cmsg_type;
};
#define CX_MACOS_ALIGN(n) (((unsigned)(n) + 3u) & ~3u)
#define CMSG_DATA(c) ((unsigned char *)(c) + CX_MACOS_ALIGN(sizeof(struct cmsghdr)))
#define CMSG_FIRSTHDR(m)                                                                        \
    ((m)->msg_controllen >= sizeof(struct cmsghdr) ? (struct cmsghdr *)(void *)(m)->msg_control \
                                                   : (struct cmsghdr *)0)
#define CMSG_SPACE(n) (CX_MACOS_ALIGN(sizeof(struct cmsghdr)) + CX_MACOS_ALIGN(n))
#define CMSG_LEN(n) (CX_MACOS_ALIGN(sizeof(struct cmsghdr)) + (unsigned)(n))
int accept(int socket, struct sockaddr *peer, socklen_t *size);
int bind(int socket, const struct sockaddr *address, socklen_t size);
int connect(int socket, const struct sockaddr *address, socklen_t size);
int getpeername(int socket, struct sockaddr *out, socklen_t *size);
int getsockname(int socket, struct sockaddr *out, socklen_t *size);
int getsockopt(int socket, int level, int name, void *out, socklen_t *size);
int listen(int socket, int backlog);
ssize_t recv(int socket, void *data, size_t size, int flags);
ssize_t recvmsg(int socket, struct msghdr *message, int flags);
ssize_t send(int socket, const void *data, size_t size, int flags);
ssize_t sendmsg(int socket, const struct msghdr *message, int flags);
int setsockopt(int socket, int level, int name, const void *value, socklen_t size);
int shutdown(int socket, int how);
int socket(int family, int type, int protocol);
int socketpair(int family, int type, int protocol, int out[2]);
#endif
