/*
 * fcntl.h - what src/base/io.c names of Linux and WASI does not have: file locks and the start of a
 * write.  cortex-verify only reads, and calls none of them; each would fail.
 */
#ifndef CX_WASM_FCNTL_H
#define CX_WASM_FCNTL_H

#include_next <fcntl.h>

#include <errno.h>

#define F_WRLCK 1
#define F_UNLCK 2
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define SYNC_FILE_RANGE_WRITE 2u

static inline int sync_file_range(int file, off_t offset, off_t size, unsigned flags)
{
    (void)file, (void)offset, (void)size, (void)flags;
    errno = ENOSYS;
    return -1;
}

#endif
