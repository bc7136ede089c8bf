/*
 * banned.h - functions that this project does not call.  The build includes this header in every .c
 * file, so that a use is a compile error.
 */
#ifndef CX_BASE_BANNED_H
#define CX_BASE_BANNED_H

/* Included first: their own declarations must precede the poison below. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Macros with _FORTIFY_SOURCE under clang, which does not poison a macro. */
#undef sprintf
#undef vsprintf

/* `rand` and `gets` cannot be on the list: OpenSSL's headers have parameters of these names.  C has
 * no `gets` since C11. */
#if defined(__GNUC__)
/* A fortified C library makes macros of these under clang, and a macro cannot be poisoned. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncat strncpy stpcpy sprintf vsprintf strtok
#pragma GCC poison localtime gmtime ctime asctime mktime setlocale
#pragma GCC poison system popen atoi atol atoll atof strtod strtof srand tmpnam mktemp
#endif

#endif
