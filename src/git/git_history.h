/*
 * git_history.h - commits made in a time, read from git's files as bytes: for a work tree whose git
 * directory an agent can write (docs/decisions/0013).
 *
 * HEAD, references and loose objects are read beneath the git directory without following links;
 * git is not run and no configuration is read.  What is read is the agent's word: a reference can
 * be moved away from a commit, and a commit's own times are whatever its author wrote.  When a
 * commit's object was made is the file system's word.
 *
 *   I1  The name of every object is computed again; one that does not match is not believed.
 *   I2  Packs are not read.  One that is newer than `since_ns` is reported: it may hide commits.
 */
#ifndef CX_GIT_GIT_HISTORY_H
#define CX_GIT_GIT_HISTORY_H

#include "git/git.h"

#define CX_GIT_HISTORY_REFS_MAX 20000
#define CX_GIT_HISTORY_COMMITS_MAX 20000

typedef struct cx_git_made {
    cx_oid oid;
    int64_t made_ns;               /* change time of its object */
    int64_t author_s, committer_s; /* as it says */
    cx_str subject;                /* first line of its message, at most 200 bytes */
} cx_git_made;

typedef struct cx_git_history {
    const cx_git_made *commits; /* by the time they were made, then by name */
    size_t count;
    bool has_new_packs;   /* I2 */
    bool is_cut;          /* over the limits: there are more */
    uint64_t false_names; /* I1 */
} cx_git_history;

/*
 * Commits that a reference or HEAD of the work tree `folder` reaches, whose object was made from
 * `since_ns` to `until_ns`.  Memory from the arena.  CX_E_NOT_FOUND "NoRepository" when the folder
 * has no `.git`; CX_E_FORMAT when that is nothing that can be followed.
 */
CX_RESULT cx_git_history_read(const char *folder, int64_t since_ns, int64_t until_ns,
                              cx_arena *arena, cx_git_history *out, cx_err *err);

/* The parents of a commit object and its facts, for fuzzing; false when it is none. */
typedef struct cx_git_commit_text {
    cx_oid parents[64];
    size_t parent_count;
    int64_t author_s, committer_s;
    cx_str subject; /* borrowed */
} cx_git_commit_text;
bool cx_git_commit_parse(cx_str text, size_t oid_size, cx_git_commit_text *out);

#endif
