/*
 * backup.h - copies of a data directory, checked and restored (docs/upgrading.md).
 *
 *     BACKUP/log/          the log, up to one moment (log.md §6)
 *     BACKUP/keys/         the checkpoints signed last, read before the log
 *     BACKUP/config.toml   the settings, when there are any
 *     BACKUP/format        home_format.h
 *     BACKUP/backup.json   the record, written last: what all this is, and how much
 *
 * Tables, indexes, tokens and sockets are not in it: the former are made from the log, the latter
 * belong to one machine.  A backup is a data directory, too.  A tar archive of the folder is read
 * as well.
 *
 *   B1  An interrupted backup has no record, and before the log is whole no log.
 *   B2  What a backup contains is not trusted: links and special files are refused, sizes are
 *       compared with the free space, and nothing but the named files above is copied from it.
 *   B3  A restore copies to TO/.restoring.  TO/log gets its name last, after the copy was verified:
 *       an interrupted restore is no data directory.
 */
#ifndef CX_LEDGER_BACKUP_H
#define CX_LEDGER_BACKUP_H

#include "ledger/home.h"
#include "ledger/backup/home_format.h"
#include "log/api.h"

#define CX_BACKUP_RECORD_BYTES_MAX ((size_t)4 << 20)
#define CX_BACKUP_FILES_MAX 10000                  /* besides the log */
#define CX_BACKUP_FILE_BYTES_MAX ((size_t)1 << 20) /* of one of them */
#define CX_BACKUP_ENTRIES_MAX 200000               /* names in a backup's folders */
/* A segment's file; one for a single long frame may have 1 GiB more than the others. */
#define CX_BACKUP_SEGMENT_FILE_MAX (CX_LOG_SEGMENT_MAX + (UINT64_C(2) << 30))

/* A small file of a backup, besides its log. */
typedef struct cx_backup_file {
    cx_str name; /* "config.toml", "format", "keys/checkpoint-<32 hex digits>" */
    uint64_t size_bytes;
    cx_digest sha256;
} cx_backup_file;

/* backup.json; everything is in the arena that it was read with. */
typedef struct cx_backup_record {
    cx_home_format format; /* of the data directory; written_by: by which version it was copied */
    cx_str made_at;        /* RFC 3339, UTC, seconds */
    uint8_t home_id[16];
    cx_log_end end;
    const cx_backup_file *files;
    size_t file_count;
} cx_backup_record;

/* CX_E_FORMAT "BadBackupRecord"; CX_E_UNSUPPORTED "NewerFormat". */
CX_RESULT cx_backup_record_parse(cx_str text, cx_arena *arena, cx_backup_record *out, cx_err *err);
CX_RESULT cx_backup_record_write(const cx_backup_record *record, cx_arena *arena, cx_buf *out,
                                 cx_err *err);

/* What looking at a backup found. */
typedef struct cx_backup_state {
    cx_verdict verdict; /* holds: complete, as recorded; what is in the log was not verified */
    const char *reason; /* "UnsafeFile", "NoBackupRecord", ..; NULL = holds */
    cx_str message;     /* in the arena */
    bool has_record;
    cx_backup_record record;
    bool has_log; /* it can be opened: verifying it makes sense */
    uint64_t commit_count;
    uint64_t log_bytes;
    size_t other_count; /* files that a restore leaves out */
} cx_backup_state;

/*
 * Looks whether the backup in the folder `path` is one, safe and complete; reads only the ends of
 * its log.  CX_E_NOT_FOUND when there is no such folder; CX_E_UNSUPPORTED "NewerFormat".
 */
CX_RESULT cx_backup_inspect(const char *path, const cx_home_options *options, cx_arena *arena,
                            cx_backup_state *out, cx_err *err);

/*
 * Unpacks a tar archive of a backup ("-" is standard input) into the folder `to`, which is made.
 * Only files of a backup are written.  `out` is broken, with a reason, when the archive is damaged,
 * or has links, special files, names that lead elsewhere or a name twice; what was unpacked by then
 * stays for the caller to remove, also after an error.  CX_E_IO "NoSpace".
 */
CX_RESULT cx_backup_unpack(const char *archive, const char *to, const cx_home_options *options,
                           cx_arena *arena, cx_backup_state *out, cx_err *err);

/* A restore between its copy and its end. */
typedef struct cx_restore {
    const cx_io *io;
    const cx_alloc *alloc;
    const char *to;
    const char *work; /* TO/.restoring: a data directory, to be verified */
    bool made_folder; /* TO was made for this */
    bool with_config; /* config.toml was copied */
} cx_restore;

/*
 * Copies the backup `from`, of which `state` is known, to TO/.restoring.  CX_E_EXISTS when `to` is
 * not empty; CX_E_IO "NoSpace" when it does not fit; CX_E_FORMAT "Incomplete" when what was
 * copied is less than `state` says.  On an error nothing is left.
 */
CX_RESULT cx_restore_begin(const char *from, const char *to, const cx_backup_state *state,
                           bool with_config, const cx_home_options *options, cx_arena *arena,
                           cx_restore *out, cx_err *err);
/* Makes it the data directory TO; durable when this returns. */
CX_RESULT cx_restore_finish(cx_restore *restore, cx_arena *arena, cx_err *err);
/* Removes what was copied. */
CX_RESULT cx_restore_abandon(cx_restore *restore, cx_err *err);

#endif
