/*
 * library_linked.c - what library.h promises, in a program that loads nothing: libraries are in it,
 * or they are not. Other builds have library.c instead.
 */
#include "os/library_linked.h"

#include <string.h>

#include "os/library.h"

/* A cx_library is the first row of its library; the struct is never defined. */

cx_status cx_library_load(const char *name, cx_library **out, cx_err *err)
{
    for (const cx_library_function *f = cx_library_table; f->library != NULL; f++) {
        if (strcmp(f->library, name) == 0) {
            /* Only this file reads it, and as a row again. */
            memcpy(out, &(const cx_library_function *){f}, sizeof *out);
            return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_UNSUPPORTED, "%s is not part of this program", name);
}

cx_status cx_library_symbol(cx_library *library, const char *name, void *out, cx_err *err)
{
    const cx_library_function *first;
    memcpy(&first, &library, sizeof first);
    for (const cx_library_function *f = first;
         f->library != NULL && strcmp(f->library, first->library) == 0; f++) {
        if (strcmp(f->name, name) == 0) {
            memcpy(out, &f->address, sizeof f->address);
            return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_UNSUPPORTED, "this program has no %s", name);
}

void cx_library_close(cx_library *library)
{
    (void)library;
}

const char *cx_library_advice(const char *package)
{
    (void)package;
    return "this program is one file and loads no libraries; the packages, or a build from source, "
           "do";
}

bool cx_library_is_linked(void)
{
    return true;
}
