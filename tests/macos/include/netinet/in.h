/* Written for tests/macos. */
#ifndef CX_MACOS_NETINET_IN_H
#define CX_MACOS_NETINET_IN_H
#include <sys/socket.h>
typedef uint32_t in_addr_t;
typedef uint16_t in_port_t;
struct in_addr {
    in_addr_t s_addr;
};
struct sockaddr_in {
    uint8_t sin_len;
    sa_family_t sin_family;
    in_port_t sin_port;
    struct in_addr sin_addr;
    char sin_zero[8];
};
struct in6_addr {
    union {
        uint8_t bytes[16];
        uint32_t words[4];
    } u;
};
#define s6_addr u.bytes
struct sockaddr_in6 {
    uint8_t sin6_len;
    sa_family_t sin6_family;
    in_port_t sin6_port;
    uint32_t sin6_flowinfo;
    struct in6_addr sin6_addr;
    uint32_t sin6_scope_id;
};
extern const struct in6_addr in6addr_loopback, in6addr_any;
#define IPPROTO_TCP 6
#define IPPROTO_IPV6 41
#define IPV6_V6ONLY 27
#define INADDR_ANY ((in_addr_t)0)
#define INADDR_LOOPBACK ((in_addr_t)0x7f000001)
#define INET_ADDRSTRLEN 16
#define INET6_ADDRSTRLEN 46
uint16_t htons(uint16_t value);
uint16_t ntohs(uint16_t value);
uint32_t htonl(uint32_t value);
uint32_t ntohl(uint32_t value);
static inline int cx_macos_same(const struct in6_addr *a, const uint8_t *b, int size)
{
    for (int i = 0; i < size; i++)
        if (a->u.bytes[i] != b[i])
            return 0;
    return 1;
}
#define IN6_IS_ADDR_LOOPBACK(a) \
    cx_macos_same((a), (const uint8_t[16]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 16)
#define IN6_IS_ADDR_V4MAPPED(a) \
    cx_macos_same((a), (const uint8_t[12]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255}, 12)
#endif
