/*
 * share.h - a lock on the folder that a file lies in: shared by those who need the file to stay as
 * it is, taken alone by who changes it.  Nothing is written for it; it ends with the process.
 *
 * On the folder, because closing a descriptor of the file itself drops all POSIX locks that the
 * process has on it, and SQLite's are such.  Where a folder cannot be opened or locked there is no
 * lock, and everybody may do everything: it guards reading that is not otherwise guarded, and is no
 * promise.
 */
#ifndef CX_OS_SHARE_H
#define CX_OS_SHARE_H

#include "base/api.h"

/* The folder of `path`; CX_FILE_NONE when it cannot be opened. */
cx_file cx_share_open(const char *path);
void cx_share_close(cx_file folder); /* CX_FILE_NONE is accepted; lets go of what is held */

/* Whether it is held now; false when somebody else is in the way.  Neither waits. */
bool cx_share_lock_shared(cx_file folder);
bool cx_share_lock_exclusive(cx_file folder);
void cx_share_leave(cx_file folder);

#endif
