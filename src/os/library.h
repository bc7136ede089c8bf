/*
 * library.h - a shared library that is loaded when it is first needed, not at each program start.
 */
#ifndef CX_OS_LIBRARY_H
#define CX_OS_LIBRARY_H

#include "base/api.h"

typedef struct cx_library cx_library;

/* Loads a library by its soname ("libpq.so.5"); CX_E_UNSUPPORTED when it is not installed. */
CX_RESULT cx_library_load(const char *name, cx_library **out, cx_err *err);
/* Writes the address of a function into the pointer at `out`, which is a pointer to that function's
 * type; CX_E_UNSUPPORTED when the library has no such function. */
CX_RESULT cx_library_symbol(cx_library *library, const char *name, void *out, cx_err *err);
/* NULL is accepted.  Nothing of the library may be in use. */
void cx_library_close(cx_library *library);
/* What to do about a library that is missing: to install `package`, an own text with it in it.
 * Where libraries are linked, that nothing can be installed for this program. Lives as long as
 * `package`. */
const char *cx_library_advice(const char *package);
/* Whether this program is one file, which loads nothing (docs/installing.md). */
bool cx_library_is_linked(void);

#endif
