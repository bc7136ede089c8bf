/*
 * machine_posix.c - the part of machine.h that needs nothing but POSIX.
 */
#include <errno.h>
#include <unistd.h>

#include "os/machine.h"

#define NAME_BYTES 256

cx_status cx_machine_host(cx_buf *out, cx_err *err)
{
    char name[NAME_BYTES + 1] = {0};
    if (gethostname(name, NAME_BYTES) != 0)
        return cx_fail_os(err, errno, "cannot read the name of this machine");
    cx_buf_add_z(out, name);
    return cx_buf_check(out, err);
}
