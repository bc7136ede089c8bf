/*
 * snapshot.h - the complete state of a work tree and its repository that an agent could change
 * (run.md §9 "pre-run snapshot", §10).
 *
 * Files are found by a walk with lstat and hashed as bytes (SHA-256), independent of git's view.
 * Of the repository: the `.git` entry, config, hooks, info, objects/info, shallow, grafts, names of
 * work trees, all references, HEAD and the index with its flags.  All of it is immutable and owned
 * by the snapshot.
 *
 * For a hostile work tree (git.h) only the repository's own references are read through git.
 */
#ifndef CX_GIT_SNAPSHOT_H
#define CX_GIT_SNAPSHOT_H

#include "os/api.h"
#include "git/agent_git.h"
#include "git/git_index.h"

typedef struct cx_snap_file {
    cx_str path; /* from the work tree; terminated */
    cx_facts facts;
    cx_digest sha256; /* of the bytes, or of a link's target; zero for folders and special files */
    cx_oid oid;       /* as a blob of the repository's format; size 0 unless file or link */
    bool binary;      /* a zero byte among the first 8,000 (D12) */
    bool stamped;     /* facts.changed_ns proves every later change */
} cx_snap_file;

typedef struct cx_snap_ref {
    cx_str name;
    cx_oid oid;
    cx_str target; /* of a symbolic one */
} cx_snap_ref;

/* A file of the repository itself: "config", "hooks/pre-commit", "info/exclude", .. */
typedef struct cx_snap_meta {
    cx_str name;
    uint32_t kind_mode; /* kind << 16 | mode */
    cx_digest sha256;
} cx_snap_meta;

typedef struct cx_snapshot {
    cx_arena arena;                            /* of files, .. */
    cx_arena path_arenas[CX_WALK_THREADS_MAX]; /* .. of their paths, one for each walking thread */
    cx_arena repo_arena;                       /* of the rest, which is read concurrently, .. */
    cx_arena index_arena;                      /* .. and of the index, likewise */
    cx_snap_file *files;                       /* sorted by path as bytes; folders too */
    size_t file_count;
    cx_index_entry *index; /* in the index's order */
    size_t index_count;
    cx_snap_ref *refs; /* sorted by name */
    size_t ref_count;
    cx_snap_meta *metas; /* sorted by name */
    size_t meta_count;
    cx_str head_ref; /* "refs/heads/..", empty when detached */
    cx_oid head;     /* the commit; size 0 before the first one */
} cx_snapshot;

typedef struct cx_snapshot_options {
    const cx_snapshot *before; /* hashes of files that cannot have changed since are reused; NULL */
    const char *
        skip; /* a folder of the work tree to skip (the runtime root inside the main checkout), relative; NULL = none */
    unsigned threads;       /* 0 = chosen by the number of files */
    const char *index_file; /* an index other than the work tree's (a hook's); NULL */
    const cx_agent_git *
        agent; /* read HEAD, index and branch from the agent's copies; NULL: from the work tree's git directory */
    bool repository_only; /* no files: index, references and the repository's own files */
} cx_snapshot_options;

#define CX_SNAPSHOT_OPTIONS_INIT ((cx_snapshot_options){.before = NULL})

/* `options` may be NULL. */
CX_RESULT cx_snapshot_read(const cx_git *git, const cx_snapshot_options *options, cx_snapshot **out,
                           cx_err *err);
void cx_snapshot_close(cx_snapshot *snapshot); /* NULL is fine */

/* NULL when absent. */
const cx_snap_file *cx_snapshot_find(const cx_snapshot *snapshot, cx_str path);
/* Whether two are the same file: kind, mode, size, contents or target; not times, not inodes. */
bool cx_snap_file_same(const cx_snap_file *a, const cx_snap_file *b);

/* What `git ls-files -z -s -v -f` (for an index that git_index.h does not read) and `git
 * for-each-ref` print, for fuzzing.  Results live in the arena and borrow nothing. */
CX_RESULT cx_index_parse(cx_str text, size_t oid_size, cx_arena *arena, cx_index_entry **out,
                         size_t *out_count, cx_err *err);
CX_RESULT cx_refs_parse(cx_str text, size_t oid_size, cx_arena *arena, cx_snap_ref **out,
                        size_t *out_count, cx_err *err);

#endif
