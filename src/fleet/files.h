/*
 * files.h - the files of a part as a cx_io: a data directory whose files are in PostgreSQL.
 *
 *     cx_fleet_files_open(&options, &files, err);
 *     cx_home_open(cx_fleet_files_path(files), {.io = cx_fleet_files_io(files)}, ..);
 *
 * Paths that are "fleet:NAME" or begin with "fleet:NAME/" are those of the part; all others go to
 * the io below.  Clocks, random bytes and the process id are those of the io below.
 *
 *   P1  Files named log/.. and *.db belong to the owner.  Without the lease they can only be read.
 *       Opening "log/lock" and locking it takes the lease (-EAGAIN: another process has it);
 *       closing that file gives it back.
 *   P2  What is written to them is seen by this process at once, and by others when `sync` has
 *       returned: all of what was written to that file since the last sync is one commit (F1, F5).
 *   P3  Names and sizes change at once, each as a commit of its own.
 *   P4  All other files are small: read whole when they are opened, written whole by sync, rename
 *       or close; they need no lease (F4).  Locking one locks it among all processes.
 *   P5  Without the lease every read of the owner's files sees one state, that of the first read.
 *       Taking the lease ends it, and so does cx_fleet_files_renew_state.
 *   P6  After a failure that may have lost the lease, or once nothing was heard of the server for
 *       longer than the lease, every call on the owner's files fails with -EIO, and `lost` is
 *       called once.  Only opening the part again helps.
 */
#ifndef CX_FLEET_FILES_H
#define CX_FLEET_FILES_H

#include "fleet/fleet.h"

typedef struct cx_fleet_files cx_fleet_files;

typedef struct cx_fleet_files_options {
    const char *url;
    cx_str part;          /* its name; empty = CX_FLEET_MAIN */
    const char *node;     /* NULL = the host's name */
    const char *owner;    /* as in cx_fleet_options; used while it is opened */
    const cx_io *under;   /* NULL = system */
    uint32_t lease_ms;    /* 0 = default */
    uint64_t cache_bytes; /* of chunks in memory; 0 = 64 MiB, at least 1 MiB */
    bool read_only;       /* never takes the lease, never writes a small file */
    /* Called once, from any thread, when the part was lost while it was owned; may be NULL. */
    void (*lost)(void *arg, const char *why);
    void *lost_arg;
} cx_fleet_files_options;

CX_RESULT cx_fleet_files_open(const cx_fleet_files_options *options, cx_fleet_files **out,
                              cx_err *err);
/* All files must be closed.  Gives the lease back. */
void cx_fleet_files_close(cx_fleet_files *files);
/* Both live as long as `files`. */
const cx_io *cx_fleet_files_io(const cx_fleet_files *files);
const char *cx_fleet_files_path(const cx_fleet_files *files); /* "fleet:main" */

/* Of the part, which it keeps. */
void cx_fleet_files_id(const cx_fleet_files *files, uint8_t out[16]);

/* Whether this process has the lease. */
bool cx_fleet_files_own(cx_fleet_files *files);
/* What is read next without the lease is the state of then (P5): what another process wrote
 * meanwhile is seen.  Changes nothing while the lease is had or one of the owner's files is
 * open. */
void cx_fleet_files_renew_state(cx_fleet_files *files);
/* Whether the log may have `more` bytes, by the quota of the part as the database said it last; yes
 * while this process does not own the part.  CX_E_LIMIT "QuotaExceeded". */
CX_RESULT cx_fleet_files_room(cx_fleet_files *files, uint64_t more, cx_err *err);
/* How long ago this process synced the tables of the data directory; false = it has not. */
bool cx_fleet_files_tables_age(cx_fleet_files *files, uint64_t *out_ms);
/* While it has: where it serves (cx_fleet_publish). */
CX_RESULT cx_fleet_files_publish(cx_fleet_files *files, const char *address, cx_err *err);
/* Who has the part, for messages: "NODE"; empty when no one has. */
CX_RESULT cx_fleet_files_owner(cx_fleet_files *files, cx_arena *arena, cx_str *out, cx_err *err);

/* The words of the negative number that a call of the io returned last, or by which the part
 * was lost; "" when there was none.  Valid until the next call. */
const char *cx_fleet_files_why(cx_fleet_files *files);

#endif
