/*
 * sandbox_layer.c - the names of the layers.
 */
#include "sandbox/sandbox.h"

static const char *const layer_names[CX_SANDBOX_LAYER_COUNT] = {
    "user", "pid", "ipc", "uts", "net", "files", "seccomp", "rlimits", "landlock", "cgroup"};

const char *cx_sandbox_layer_name(cx_sandbox_layer layer)
{
    CX_ASSERT(layer != 0);
    for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++)
        if ((unsigned)layer == 1u << i)
            return layer_names[i];
    return "";
}
