/* Written for tests/macos. */
#ifndef CX_MACOS_NETDB_H
#define CX_MACOS_NETDB_H
#include <sys/socket.h>
struct addrinfo {
    int ai_flags;
    int ai_family;
    int ai_socktype;
    int ai_protocol;
    socklen_t ai_addrlen;
    char *ai_canonname;
    struct sockaddr *ai_addr;
    struct addrinfo *ai_next;
};
#define AI_PASSIVE 1
#define AI_NUMERICHOST 4
#define AI_NUMERICSERV 0x1000
#define EAI_AGAIN 2
#define EAI_FAIL 4
#define EAI_MEMORY 6
#define EAI_NONAME 8
#define EAI_SYSTEM 11
void freeaddrinfo(struct addrinfo *list);
const char *gai_strerror(int code);
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out);
#endif
