/*
 * share.h - an advisory lock on the folder of a file: shared by readers that need the file not to
 * change, exclusive for a process that changes it.  Writes nothing; ends with the process.
 *
 * The lock is on the folder because closing a descriptor of the file itself drops all POSIX locks
 * of the process on it, which SQLite uses.  Where a folder cannot be opened or locked there is no
 * lock, and nothing is excluded: it is best-effort protection for reads that have no other.
 */
#ifndef CX_OS_SHARE_H
#define CX_OS_SHARE_H

#include "base/api.h"

/* The folder of `path`; CX_FILE_NONE when it cannot be opened. */
cx_file cx_share_open(const char *path);
void cx_share_close(cx_file folder); /* CX_FILE_NONE is accepted; releases the lock */

/* Tries to take or convert the lock without waiting; false when another process conflicts. */
bool cx_share_lock_shared(cx_file folder);
bool cx_share_lock_exclusive(cx_file folder);
void cx_share_leave(cx_file folder);

#endif
