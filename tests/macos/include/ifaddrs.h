/* Written for tests/macos. */
#ifndef CX_MACOS_IFADDRS_H
#define CX_MACOS_IFADDRS_H
#include <sys/socket.h>
struct ifaddrs {
    struct ifaddrs *ifa_next;
    char *ifa_name;
    unsigned ifa_flags;
    struct sockaddr *ifa_addr;
    struct sockaddr *ifa_netmask;
    struct sockaddr *ifa_dstaddr;
    void *ifa_data;
};
int getifaddrs(struct ifaddrs **out);
void freeifaddrs(struct ifaddrs *list);
#endif
