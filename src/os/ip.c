/*
 * ip.c - IP addresses, over the system's resolver.
 */
#include "os/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

bool cx_ip_parse(cx_str text, cx_ip *out)
{
    char copy[CX_IP_TEXT_SIZE];
    cx_ip ip = {0};
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, 0, text.size) != NULL)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    if (inet_pton(AF_INET, copy, ip.bytes) != 1) {
        ip.is_v6 = true;
        if (inet_pton(AF_INET6, copy, ip.bytes) != 1)
            return false;
    }
    *out = ip;
    return true;
}

void cx_ip_write(const cx_ip *ip, char out[CX_IP_TEXT_SIZE])
{
    if (inet_ntop(ip->is_v6 ? AF_INET6 : AF_INET, ip->bytes, out, CX_IP_TEXT_SIZE) == NULL)
        out[0] = 0;
}

bool cx_ip_eq(const cx_ip *a, const cx_ip *b)
{
    return a->is_v6 == b->is_v6 && memcmp(a->bytes, b->bytes, a->is_v6 ? 16 : 4) == 0;
}

/* False for other families. */
static bool ip_of_sockaddr(const struct sockaddr *from, cx_ip *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    *out = (cx_ip){0};
    if (from == NULL)
        return false;
    if (from->sa_family == AF_INET) {
        memcpy(&v4, from, sizeof v4);
        memcpy(out->bytes, &v4.sin_addr, 4);
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(&v6, from, sizeof v6);
    memcpy(out->bytes, &v6.sin6_addr, 16);
    out->is_v6 = true;
    return true;
}

cx_status cx_ip_lookup(const char *name, cx_ip out[CX_IP_LOOKUP_MAX], size_t *out_count,
                       cx_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(name, NULL, &hints, &found);
    if (code == EAI_MEMORY)
        return cx_fail_nomem(err);
    if (code == EAI_NONAME)
        return cx_fail(err, CX_E_NOT_FOUND, "%s has no address", name);
    if (code != 0)
        return cx_fail(err, CX_E_IO, "%s could not be looked up: %s", name, gai_strerror(code));
    size_t count = 0;
    for (const struct addrinfo *at = found; at != NULL && count < CX_IP_LOOKUP_MAX;
         at = at->ai_next)
        count += ip_of_sockaddr(at->ai_addr, &out[count]);
    freeaddrinfo(found);
    *out_count = count;
    return count != 0 ? CX_SUCCESS : cx_fail(err, CX_E_NOT_FOUND, "%s has no address", name);
}

cx_status cx_ip_is_own(const cx_ip *ip, bool *out, cx_err *err)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return cx_fail_os(err, errno, "cannot list the addresses of this machine");
    *out = false;
    for (const struct ifaddrs *at = list; at != NULL && !*out; at = at->ifa_next) {
        cx_ip own;
        *out = ip_of_sockaddr(at->ifa_addr, &own) && cx_ip_eq(&own, ip);
    }
    freeifaddrs(list);
    return CX_SUCCESS;
}
