/* Written for tests/macos. */
#ifndef CX_MACOS_ARPA_INET_H
#define CX_MACOS_ARPA_INET_H
#include <netinet/in.h>
const char *inet_ntop(int family, const void *address, char *out, socklen_t size);
int inet_pton(int family, const char *text, void *out);
#endif
