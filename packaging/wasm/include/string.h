/*
 * string.h - the words for an errno, without the thread's locale, which WASI does not have.
 */
#ifndef CX_WASM_STRING_H
#define CX_WASM_STRING_H

#include_next <string.h>

#define strerror_l(code, locale) ((void)(locale), strerror(code))

#endif
