/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_UIO_H
#define CX_MACOS_SYS_UIO_H
#include <sys/types.h>
struct iovec {
    void *iov_base;
    size_t iov_len;
};
#endif
