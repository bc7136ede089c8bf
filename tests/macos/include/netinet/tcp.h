/* Written for tests/macos. */
#ifndef CX_MACOS_NETINET_TCP_H
#define CX_MACOS_NETINET_TCP_H
#define TCP_NODELAY 1
#endif
