/*
 * store.h - where runs live on the disk (run.md §1 R2, R6), and how their files are written (R5).
 *
 *     ROOT/runs/<run_id>/          a bundle: bundle.h writes it, verify.h judges it
 *     ROOT/worktrees/ locks/ approvals/
 *     ROOT/active/runs/<run_id>/   contract.json and owner.json while the run is going on, and
 *                                  events.lock, which is never inside the bundle
 *
 * A store is only a place; any number of processes and threads use one at once.
 */
#ifndef CX_BUNDLE_STORE_H
#define CX_BUNDLE_STORE_H

#include "base/api.h"
#include "rules/api.h"

#define CX_RUN_ROOT_ENV "CORTEXPILOT_RUNTIME_ROOT"
#define CX_RUN_ROOT_DEFAULT ".runtime-cache/cortexpilot" /* in the repository */
#define CX_RUN_ID_SIZE 53 /* "run_YYYYMMDD_HHMMSS_" and 32 hex digits, and a terminator */

typedef struct cx_run_store {
    const cx_io *io;
    const cx_alloc *alloc;
    const char *root; /* absolute; borrowed by everything made from the store */
} cx_run_store;

/*
 * The runtime root of a repository: `configured` (the value of CORTEXPILOT_RUNTIME_ROOT, NULL or ""
 * = not set), else REPO/.runtime-cache/cortexpilot.  CX_E_USAGE when `configured` is relative.
 */
CX_RESULT cx_run_store_root(const char *repo, const char *configured, cx_arena *arena,
                            const char **out, cx_err *err);

/*
 * `root` must be absolute and stay there while the store is used.  With `make` it and its folders
 * are made (0700); else it may be absent, and nothing is found in it.  `io` and `alloc` may be
 * NULL.
 */
CX_RESULT cx_run_store_open(cx_run_store *store, const char *root, bool make, const cx_io *io,
                            const cx_alloc *alloc, cx_err *err);

/* ROOT/<name>/<more>, terminated; `more` may be empty.  Data is NULL when out of memory. */
cx_str cx_run_store_path(const cx_run_store *store, cx_arena *arena, const char *name, cx_str more);

/* R6: what is accepted as a run id. */
bool cx_run_id_valid(cx_str id);
/* Whether it has the form of those that cx_run_id_make makes. */
bool cx_run_id_is_made(cx_str id);
CX_RESULT cx_run_id_make(const cx_io *io, char out[CX_RUN_ID_SIZE], cx_err *err);

/* The ids of all bundles, newest first (by id, descending); names that are no ids are left out. */
CX_RESULT cx_run_store_list(const cx_run_store *store, cx_arena *arena, cx_str **out,
                            size_t *out_count, cx_err *err);

/* --- runs that are going on ------------------------------------------------------------------- */

/* A process, told apart from any other that ever had its number. */
typedef struct cx_run_owner {
    cx_str host;
    cx_str boot_id;
    uint64_t pid;
    uint64_t start_time; /* cx_machine_process_start */
} cx_run_owner;

typedef enum cx_run_owner_state {
    CX_RUN_OWNER_ALIVE,
    CX_RUN_OWNER_DEAD,     /* gone, its number reused, or before a reboot */
    CX_RUN_OWNER_ELSEWHERE /* on another host, whose processes cannot be seen */
} cx_run_owner_state;

/* This process. */
CX_RESULT cx_run_owner_self(cx_arena *arena, cx_run_owner *out, cx_err *err);
cx_run_owner_state cx_run_owner_state_of(const cx_run_owner *owner);

/*
 * active/runs/<run_id>/: owner.json {run_id, task_id, pid, start_time, boot_id, host, since}, and
 * contract.json (the contract as run), by which hooks find what a worktree may do (§19).  begin is
 * done by cx_run_begin, end by cx_run_seal; `contract` is written when it is known.
 */
CX_RESULT cx_run_active_contract(const cx_run_store *store, cx_str run_id, cx_bytes contract,
                                 cx_err *err);
/* CX_E_NOT_FOUND when the run is not going on.  Text in the arena. */
CX_RESULT cx_run_active_owner(const cx_run_store *store, cx_str run_id, cx_arena *arena,
                              cx_run_owner *out, cx_err *err);
/* The ids of all of them, sorted. */
CX_RESULT cx_run_active_list(const cx_run_store *store, cx_arena *arena, cx_str **out,
                             size_t *out_count, cx_err *err);

/* --- writing ---------------------------------------------------------------------------------- */

/*
 * R5: `.<name>.<random>.tmp` next to it, fsync, rename, fsync of the folder.  Mode 0600.  What is
 * at `path` is replaced, a symlink too, never followed; the folder must be there.
 */
CX_RESULT cx_run_write_file(const cx_io *io, const char *path, cx_bytes contents, cx_err *err);
/* The same in an open folder (os/folder.h); no link on the way is followed, folders on the way
 * are made (0700). */
CX_RESULT cx_run_write_file_in(const cx_io *io, cx_file folder, const char *path, cx_bytes contents,
                               cx_err *err);

#endif
