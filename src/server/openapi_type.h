/*
 * openapi_type.h - the types of request and response bodies, and their JSON Schemas.
 *
 * A type is written once, in a short notation, in openapi_types.c:
 *
 *     {agent: string, seq: integer, value?: Value|null, kind: 'merge'|'delta', parents: NodeRef[]}
 *
 *     name: T      a required member          T|U      either of them
 *     name?: T     an optional member         T[]      an array
 *     *: T         any other member           [T, U]   an array of exactly these
 *     'word'       exactly this string        (T)      grouping
 *     any          any JSON value             Name     a type of the table
 *
 * The words string, integer, number, boolean, null and any are JSON's kinds; every other word is
 * the name of a type.
 */
#ifndef CX_SERVER_OPENAPI_TYPE_H
#define CX_SERVER_OPENAPI_TYPE_H

#include "base/api.h"

typedef struct cx_api_type {
    const char *name;
    const char *notation;
} cx_api_type;

extern const cx_api_type cx_api_types[];
extern const size_t cx_api_type_count;

/* NULL: there is no such type. */
const cx_api_type *cx_api_type_find(cx_str name);

/* Adds the JSON Schema of `notation`; asserts that it is well-formed and names existing types. */
void cx_api_type_schema(const char *notation, cx_buf *out);

#endif
