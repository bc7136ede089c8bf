/*
 * diag.c - aborts the program when an invariant is broken.
 */
#include "base/diag.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void cx_diag_abort(const char *file, int line, const char *expression)
{
    (void)fprintf(stderr, "cortex: bug: %s:%d: not true: %s\n", file, line, expression);
    abort();
}
