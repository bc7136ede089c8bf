/*
 * home_format.h - the format of a data directory as a whole, and the version that gave it to it.
 *
 *     HOME/format     {"format":1,"written_by":"0.3.0"} and a line feed; at most 4096 bytes
 *
 * The file is written when a data directory is created or first opened for writing by a version
 * that knows it; 0.1 and 0.2 did not write it, and what lacks it has format 1.  A format that is
 * higher than this program's is refused before anything is opened or changed.  Members that this
 * program does not know are ignored, so that a later version can still say who it is.
 */
#ifndef CX_LEDGER_HOME_FORMAT_H
#define CX_LEDGER_HOME_FORMAT_H

#include "base/api.h"

/* Increment when an older program must not open what this one has written. */
#define CX_HOME_FORMAT 1
#define CX_HOME_FORMAT_BYTES_MAX 4096
#define CX_HOME_VERSION_SIZE 33 /* of a version's name, with its zero */

typedef struct cx_home_format {
    uint64_t number;
    char written_by[CX_HOME_VERSION_SIZE]; /* digits, letters and ".+~-"; "" = not known */
} cx_home_format;

/* Reads the contents of such a file; CX_E_FORMAT "BadFormatFile". */
CX_RESULT cx_home_format_parse(cx_str text, cx_home_format *out, cx_err *err);
/* Whether `name` may be a version: 1 to 32 digits, letters and ".+~-". */
bool cx_home_version_ok(cx_str name);

/*
 * Whether this program may open the data directory at `path`.  CX_E_UNSUPPORTED "NewerFormat" names
 * the version that wrote it; CX_E_FORMAT "BadFormatFile" when the file is not one.  Without a file,
 * or without a data directory, it may.
 */
CX_RESULT cx_home_format_check(const cx_io *io, const char *path, const cx_alloc *alloc,
                               cx_err *err);
/* The error of a data directory or backup, named `what`, whose format is `found`. */
CX_RESULT cx_home_format_refuse(const cx_home_format *found, const char *what, cx_err *err);

/* Writes this program's format and version; durable.  Does nothing when there is a file. */
CX_RESULT cx_home_format_write(const cx_io *io, const char *path, const cx_alloc *alloc,
                               cx_err *err);

#endif
