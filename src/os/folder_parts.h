/*
 * folder_parts.h - shared by the files that implement folder.h: folder.c opens and reads,
 * folder_change.c creates and changes, folder_remove.c removes trees, folder_walk.c walks them.
 */
#ifndef CX_OS_FOLDER_PARTS_H
#define CX_OS_FOLDER_PARTS_H

#include <limits.h>
#include <sys/stat.h>

#include "os/folder.h"

/* Opens a path below `folder` with the flags of open(2), following no link on the way nor at the
 * end. -1 with errno: ELOOP for a link, EXDEV for a path that leaves the folder. */
int cx_folder_beneath(int folder, const char *path, int flags, mode_t mode);
/* Fails with "cannot <what> <path>"; ELOOP and EXDEV as above are CX_E_DENIED. */
CX_RESULT cx_folder_fail(cx_err *err, int code, const char *what, const char *path);
CX_RESULT cx_folder_check_path(const char *path, cx_err *err);
void cx_folder_read_facts(const struct stat *info, cx_facts *out);

/*
 * The folder of the last component of a path, and that component.  A path without one, or whose
 * last component is "." or "..", is rejected: it does not name an entry of a folder.
 */
typedef struct cx_place {
    int folder;
    bool opened;
    char name[NAME_MAX + 1];
} cx_place;

CX_RESULT cx_place_find(cx_file folder, const char *path, cx_place *out, cx_err *err);
void cx_place_done(const cx_place *place);
/* Closes the place; when not `worked`, fails according to errno. */
CX_RESULT cx_place_end(const cx_place *place, bool worked, const char *what, const char *path,
                       cx_err *err);

#endif
