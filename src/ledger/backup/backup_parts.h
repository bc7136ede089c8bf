/*
 * backup_parts.h - shared by backup.c, backup_record.c and restore.c.
 */
#ifndef CX_LEDGER_BACKUP_PARTS_H
#define CX_LEDGER_BACKUP_PARTS_H

#include "ledger/backup/backup.h"

/* "checkpoint-" and 32 hex digits: what the folder keys/ contains. */
bool cx_backup_key_name_ok(cx_str name);
/* A file that a backup has besides its log and its record. */
bool cx_backup_name_ok(cx_str name);

/* log/NNNNNN.seg */
bool cx_backup_is_segment(cx_str path);
/* Any file that belongs to a backup: those, segments of the log, and the record. */
bool cx_backup_is_file(cx_str path);

/* "FOLDER/NAME" in the arena; NULL when memory ran out. */
const char *cx_backup_path(cx_arena *arena, const char *folder, cx_str name);

/* Makes the name of a folder durable in the folder above it. */
CX_RESULT cx_backup_sync_above(const cx_io *io, const char *path, cx_arena *arena, cx_err *err);

/* Whether the log at `log_path` is what was recorded, or goes on after it; else the state becomes
 * broken.  A log that cannot be read is broken, too; other errors are errors. */
CX_RESULT cx_backup_check_log(const char *log_path, const cx_home_options *options, cx_arena *arena,
                              cx_backup_state *state, cx_err *err);

#endif
