/*
 * files.h - which files a tool call reads or writes, by the names that agents' tools have.
 */
#ifndef CX_IMPORT_FILES_H
#define CX_IMPORT_FILES_H

#include "json/api.h"

#define CX_IMPORT_FILES_MAX 64 /* of one call; more are left out of the state */

typedef enum cx_import_file_use {
    CX_IMPORT_FILE_READ,
    CX_IMPORT_FILE_WRITE, /* the whole file */
    CX_IMPORT_FILE_EDIT,
    CX_IMPORT_FILE_DELETE
} cx_import_file_use;

typedef struct cx_import_file {
    cx_str path; /* as the call has it */
    cx_import_file_use what;
    const cx_json *content; /* the whole new content, a string; NULL = not in the call */
} cx_import_file;

/* "write", "edit", "delete"; "read". */
const char *cx_import_file_verb(cx_import_file_use what);

/* Fills `out`, which has room for CX_IMPORT_FILES_MAX; 0 for tools that are not known. */
size_t cx_import_files_of(cx_str tool, const cx_json *arguments, cx_import_file *out);

#endif
