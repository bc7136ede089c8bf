/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_UN_H
#define CX_MACOS_SYS_UN_H
#include <sys/socket.h>
struct sockaddr_un {
    unsigned char sun_len;
    sa_family_t sun_family;
    char sun_path[104];
};
#define SOL_LOCAL 0
#define LOCAL_PEERCRED 1
#define LOCAL_PEERPID 2
#endif
