/*
 * library.h - a shared library that is loaded when it is first needed, not at each program start.
 */
#ifndef CX_OS_LIBRARY_H
#define CX_OS_LIBRARY_H

#include "base/api.h"

typedef struct cx_library cx_library;

/* By its name as the loader knows it ("libpq.so.5"); CX_E_UNSUPPORTED when it is not there. */
CX_RESULT cx_library_load(const char *name, cx_library **out, cx_err *err);
/* Writes the address of a function into the pointer at `out`, which is a pointer to that function's
 * type; CX_E_UNSUPPORTED when the library has no such function. */
CX_RESULT cx_library_symbol(cx_library *library, const char *name, void *out, cx_err *err);
/* NULL is fine.  Nothing of it may be in use any more. */
void cx_library_close(cx_library *library);

#endif
