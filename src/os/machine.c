/*
 * machine.c - the part of machine.h that is the same on all systems.
 */
#include "os/machine.h"

#include <sys/resource.h>

bool cx_machine_stack_limit(uint64_t *out_bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0)
        return false;
    *out_bytes = limit.rlim_cur == RLIM_INFINITY ? 0 : (uint64_t)limit.rlim_cur;
    return true;
}
