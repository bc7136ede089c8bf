/*
 * library_linked.h - the functions that a program of one file has of libraries that other builds
 * load (cmake/linked.cmake makes the table).
 */
#ifndef CX_OS_LIBRARY_LINKED_H
#define CX_OS_LIBRARY_LINKED_H

#include "base/api.h"

typedef struct cx_library_function {
    const char *library; /* the name that is asked for; NULL ends the table */
    const char *name;
    void (*address)(void);
} cx_library_function;

/* Rows of one library follow one another. */
extern const cx_library_function cx_library_table[];

#endif
