/*
 * bundle.h - writing the bundle of one run, and reading a finished one (run.md §17).
 *
 *     CX_TRY(cx_run_begin(&options, &run, err));            folder, owner, empty event log
 *     CX_TRY(cx_run_event(run, &event, NULL, err));         RUN_CREATED first
 *     CX_TRY(cx_run_file_write(run, path, bytes, err));     any file, any number of times
 *     ...
 *     CX_TRY(cx_run_finish(run, CX_RUN_SUCCESS, 0, arena, &files, &count, err));
 *         RUN_FINISHED, its link, the log closed, every file read back and hashed
 *     facts.files = files; CX_TRY(cx_run_report_manifest(&facts, arena, &manifest, err));
 *     CX_TRY(cx_run_seal(run, &manifest, &seal, &sealed, err));
 *         manifest.json, the seal to the ledger, files 0444 and folders 0555, active/ entry removed
 *     cx_run_end(run);
 *
 * Paths are relative to the bundle, '/' between components, no empty, "." or ".." ones; they are
 * opened beneath the bundle and no symlink is followed.  Folders are made as needed.  A run may be
 * used by several threads.
 */
#ifndef CX_BUNDLE_BUNDLE_H
#define CX_BUNDLE_BUNDLE_H

#include "bundle/events.h"
#include "bundle/report.h"
#include "bundle/store.h"

#define CX_RUN_BUNDLE_FILES_MAX 100000
#define CX_RUN_BUNDLE_PATH_MAX 1024 /* bytes of a path in a bundle */
#define CX_RUN_BUNDLE_DEPTH_MAX 32

/* --- writing ---------------------------------------------------------------------------------- */

typedef struct cx_run cx_run;

typedef struct cx_run_begin_options {
    const cx_run_store *store;   /* must outlive the run */
    cx_str run_id;               /* empty = a new one (R6) */
    cx_str task_id;              /* for owner.json */
    cx_str trace_id;             /* 32 hex; empty = a new one */
    const cx_run_ledger *ledger; /* NULL = none: the bundle stays unsealed */
    cx_status (*mask)(void *arg, const cx_json *payload, cx_arena *arena, cx_json *out,
                      cx_err *err); /* as in events.h */
    void *mask_arg;
} cx_run_begin_options;

/* CX_E_EXISTS when there is a bundle of that id. */
CX_RESULT cx_run_begin(const cx_run_begin_options *options, cx_run **out, cx_err *err);
/* NULL is fine.  A run that was not sealed stays as it is, as after a crash. */
void cx_run_end(cx_run *run);

cx_str cx_run_id(const cx_run *run);
cx_str cx_run_trace_id(const cx_run *run);
const char *cx_run_folder(const cx_run *run); /* absolute path of the bundle */

/* See cx_run_events_append. */
CX_RESULT cx_run_event_append(cx_run *run, const cx_run_event *event, cx_str *out_line,
                              cx_err *err);
uint64_t cx_run_event_count(const cx_run *run);

/* R5: temporary name, fsync, rename, fsync of the folder.  events.* and manifest.json are refused.
 */
CX_RESULT cx_run_file_write(cx_run *run, cx_str path, cx_bytes contents, cx_err *err);
/* The same with cx_run_json_write's text. */
CX_RESULT cx_run_file_write_json(cx_run *run, cx_str path, const cx_json *value, cx_err *err);
/* An open file that something streams into: newly made or, with `append`, continued; close it with
 * the io.  It counts as written when the run finishes. */
CX_RESULT cx_run_file_open(cx_run *run, cx_str path, bool append, cx_file *out, cx_err *err);
/* Appended to `out`; CX_E_LIMIT beyond limit_bytes, CX_E_NOT_FOUND. */
CX_RESULT cx_run_file_read(cx_run *run, cx_str path, size_t limit_bytes, cx_buf *out, cx_err *err);
bool cx_run_file_exists(cx_run *run, cx_str path);
/* Hash and size of a file as it is now. */
CX_RESULT cx_run_file_ref(cx_run *run, cx_str path, cx_arena *arena, cx_run_ref *out, cx_err *err);

/* §17, the order of the end, up to the manifest.  `out`: every file but manifest.json, sorted. */
CX_RESULT cx_run_finish(cx_run *run, cx_run_status status, int exit_code, cx_arena *arena,
                        const cx_run_ref **out, size_t *out_count, cx_err *err);

/* Facts of the seal that the run does not know itself. */
typedef struct cx_run_seal_facts {
    cx_str task_id;
    cx_run_status status;
    cx_str baseline_commit;
    cx_str final_commit;
} cx_run_seal_facts;

typedef struct cx_run_sealed {
    cx_digest manifest_sha256;
    bool in_ledger;
    uint64_t index; /* of the seal in the journal */
} cx_run_sealed;

CX_RESULT cx_run_seal(cx_run *run, const cx_json *manifest, const cx_run_seal_facts *facts,
                      cx_run_sealed *out, cx_err *err);

/*
 * Continues a run whose owner is dead, to end it as a FAILURE (`cleanup`, §23): recovers its events
 * (events.h).  CX_E_BUSY when the owner lives, CX_E_EXISTS when there is a manifest.json already.
 */
CX_RESULT cx_run_resume(const cx_run_begin_options *options, cx_run **out,
                        cx_run_recovery *out_recovery, cx_err *err);

/* --- reading ---------------------------------------------------------------------------------- */

/* A bundle as it is found: a folder, or an archive made by `run export` (read into memory, never
 * unpacked).  Nothing is ever written. */
typedef struct cx_run_bundle cx_run_bundle;

typedef struct cx_run_entry {
    cx_str path;
    bool regular; /* false: a symlink or special file, which a bundle must not have */
    uint64_t size_bytes;
} cx_run_entry;

/* `path` names the folder or the archive.  Text and contents live as long as the bundle. */
CX_RESULT cx_run_bundle_open(const cx_io *io, const cx_alloc *alloc, const char *path,
                             cx_run_bundle **out, cx_err *err);
/* The same from an archive's bytes, borrowed. */
CX_RESULT cx_run_bundle_open_archive(const cx_alloc *alloc, cx_bytes archive, cx_run_bundle **out,
                                     cx_err *err);
void cx_run_bundle_close(cx_run_bundle *bundle);

/* The last component of the folder, or the archive's top folder: what should be the run id. */
cx_str cx_run_bundle_name(const cx_run_bundle *bundle);
/* All files, sorted by path; folders are not listed. */
const cx_run_entry *cx_run_bundle_entries(const cx_run_bundle *bundle, size_t *out_count);
/* NULL when there is none. */
const cx_run_entry *cx_run_bundle_find(const cx_run_bundle *bundle, cx_str path);
/* The whole file, read once and kept; CX_E_NOT_FOUND, CX_E_LIMIT, CX_E_FORMAT (no regular file). */
CX_RESULT cx_run_bundle_read(cx_run_bundle *bundle, cx_str path, size_t limit_bytes, cx_bytes *out,
                             cx_err *err);
/* The last `most` bytes of a file of any size, or all of a shorter one; `out_size` is that of the
 * whole file.  The bytes live in `arena`.  Errors as above. */
CX_RESULT cx_run_bundle_read_end(cx_run_bundle *bundle, cx_str path, size_t most, cx_arena *arena,
                                 cx_bytes *out, uint64_t *out_size, cx_err *err);
/* `size` bytes of a file of any size from `offset` on, as far as it had them when the bundle was
 * opened; *out_got how many.  Nothing is kept.  Errors as above. */
CX_RESULT cx_run_bundle_read_at(cx_run_bundle *bundle, cx_str path, uint64_t offset, void *data,
                                size_t size, size_t *out_got, cx_err *err);
/* Strictly read JSON (R5); lives as long as the bundle. */
CX_RESULT cx_run_bundle_json(cx_run_bundle *bundle, cx_str path, cx_json *out, cx_err *err);
/* Of any size, without keeping it. */
CX_RESULT cx_run_bundle_digest(cx_run_bundle *bundle, cx_str path, cx_digest *out, cx_err *err);

#endif
