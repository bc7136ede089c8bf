/*
 * folder.h - temporary folders of tests.
 */
#ifndef CX_TESTS_FOLDER_H
#define CX_TESTS_FOLDER_H

#include "base/buf.h"

enum { FOLDER_PATH_SIZE = 512 };

/* A path for this process under $TMPDIR, where nothing is. */
void folder_fresh(char out[FOLDER_PATH_SIZE], const char *name);
/* With all that is in it, folders in folders too; absent is fine. */
void folder_remove(const char *path);

/* Name, size and contents of every file in it (not in folders in it), sorted by name: two folders
 * with equal texts hold the same. */
void folder_contents(const char *path, cx_buf *out);

#endif
