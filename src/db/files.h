/*
 * files.h - databases whose files are not in the file system but in a cx_io.
 *
 *     cx_db_use_files("fleet:main/", io, &err);
 *     cx_db_open("fleet:main/cortex.db", CX_DB_WRITE, &db, &err);
 *
 * A path that begins with the prefix is opened through the io, every other one as ever.
 *
 * What the io must do for such a file:
 *   - pread, pwrite, size and truncate as usual: holes read as zeros, a read is short at the end;
 *     what is written is read by this process at once;
 *   - sync makes all writes since the last sync durable and visible to other processes, in one
 *     step; without it they are gone when the process ends, and when the file is closed after a
 *     write or sync of it failed;
 *   - one process writes at a time; an opening with CX_IO_READ by another keeps the contents that
 *     it found (a frozen image), also when its process becomes the one that writes;
 *   - an opening for writing that is no longer the writer's fails from then on.
 *
 * What follows for the databases:
 *   - A write to the io happens only in a checkpoint, directly before the sync that ends it, so the
 *     outside sees one transaction's end after the other and nothing between.
 *   - The write-ahead log, its index, and rollback journals belong to the process: files without a
 *     name in the folder of temporary files, and memory.  They are gone with the process, and when
 *     the last connection closes.  So what was committed since the last checkpoint is lost when the
 *     process is killed: call cx_db_publish where that must not be.  A writer that closes makes a
 *     checkpoint, and waits some seconds for readers in its way; readers should close before it.
 *   - Connections of one process share all that with the writer's, and see its commits at once.
 *     A reader that was opened while the process had no writer of the path has the io's image,
 *     until it is opened again.  CX_DB_IMMUTABLE and CX_DB_ALONE are the same as CX_DB_READ.
 *   - When a write to the io or a sync fails, every later change of the file fails (CX_E_IO, or
 *     CX_E_DENIED) until all connections of the process to it are closed:
 *     what the sync did is unknown.  Reading goes on.
 *   - A file must not be renamed or removed while a connection to it is open.
 */
#ifndef CX_DB_FILES_H
#define CX_DB_FILES_H

#include "base/api.h"

#define CX_DB_PREFIX_MAX 255 /* bytes */

/*
 * For the whole process.  `io` must outlive it; prefix NULL (and io NULL) ends it.  CX_E_BUSY while
 * a file of the present prefix is open; CX_E_USAGE when the prefix is empty, too long, or
 * begins with '/', '.' or a blank.
 */
CX_RESULT cx_db_use_files(const char *prefix, const cx_io *io, cx_err *err);

/* Whether the path begins with the prefix. */
bool cx_db_in_files(const char *path);
/* Whether a file of that name is there, in these files or in the file system; true when that cannot
 * be told. */
bool cx_db_is_there(const char *path);

#endif
