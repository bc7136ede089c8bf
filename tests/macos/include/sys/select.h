/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_SELECT_H
#define CX_MACOS_SYS_SELECT_H
#include <sys/types.h>
typedef struct fd_set {
    int fds_bits[32];
} fd_set;
#endif
