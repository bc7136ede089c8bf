/*
 * library.c - shared libraries at run time, over dlopen.
 */
#include "os/library.h"

#include <dlfcn.h>

#include "os/system/system.h"

/* A cx_library is the handle of dlopen; the struct is never defined. */

cx_status cx_library_load(const char *name, cx_library **out, cx_err *err)
{
    char path[256];
    void *handle = NULL;
    for (unsigned i = 0; handle == NULL && cx_system_library(name, i, path, sizeof path); i++)
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "%s is not installed", name);
    *out = handle;
    return CX_SUCCESS;
}

cx_status cx_library_symbol(cx_library *library, const char *name, void *out, cx_err *err)
{
    void *address = dlsym(library, name);
    if (address == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "the installed library has no %s: it is too old",
                       name);
    /* ISO C cannot convert an object pointer to a function pointer; POSIX guarantees the bits. */
    memcpy(out, &address, sizeof address);
    return CX_SUCCESS;
}

void cx_library_close(cx_library *library)
{
    if (library != NULL)
        (void)dlclose(library);
}

const char *cx_library_advice(const char *package)
{
    return cx_system_library_advice == NULL ? package : cx_system_library_advice;
}

bool cx_library_is_linked(void)
{
    return false;
}
