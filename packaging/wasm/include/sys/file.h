/*
 * sys/file.h - locks of files, which WASI does not have: each try fails.
 */
#ifndef CX_WASM_SYS_FILE_H
#define CX_WASM_SYS_FILE_H

#include_next <sys/file.h>

#include <errno.h>

static inline int cx_wasm_flock(int file, int how)
{
    (void)file, (void)how;
    errno = ENOSYS;
    return -1;
}

/* Not the struct of that name. */
#define flock(file, how) cx_wasm_flock(file, how)

#endif
