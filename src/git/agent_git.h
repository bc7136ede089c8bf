/*
 * agent_git.h - the writable part of git that an agent gets: a private copy of its work tree's git
 * directory, a copy of the folder of its branch, and a folder for new objects (run.md §11,
 * docs/decisions/0013).
 *
 * In the sandbox the copies are mounted over the real locations, so paths are the same inside and
 * outside; the repository itself is read-only there.  Git never reads the copies: snapshot.h reads
 * HEAD, index, references and the files that record changes, cx_agent_git_import_objects reads the
 * objects.
 *
 *   I1  What is copied for the agent comes from locations that only the governor writes.
 *   I2  What comes from the agent is read with lstat and openat2, and reaches git as bytes alone.
 */
#ifndef CX_GIT_AGENT_GIT_H
#define CX_GIT_AGENT_GIT_H

#include "base/api.h"
#include "git/worktree.h"

typedef struct cx_agent_git {
    const char *git_dir; /* HEAD, index, commondir, gitdir */
    const char *ref_dir; /* the agent's branch, as a file; NULL: the agent cannot move references */
    cx_str ref_prefix;   /* the prefix that ref_dir replaces: "refs/heads/cortex/<run>/" */
    const char *object_dir; /* empty at first */
} cx_agent_git;

/* Creates `hidden`/git and `hidden`/refs (unless without_refs) from the work tree's present state,
 * and an empty `scratch`/objects. The agent sees the first two mounted over the originals, the last
 * under its own path. Text lives in the arena. */
CX_RESULT cx_agent_git_make(const cx_worktree *worktree, const char *hidden, const char *scratch,
                            bool without_refs, cx_arena *arena, cx_agent_git *out, cx_err *err);

/* Objects that were imported already, by name. */
typedef struct cx_agent_objects {
    cx_map names;
    cx_arena arena;
} cx_agent_objects;

void cx_agent_objects_init(cx_agent_objects *objects);
void cx_agent_objects_done(cx_agent_objects *objects);

/*
 * Imports new objects from a folder that an agent can write into the repository. This function
 * reads the files itself, without following links or waiting for FIFOs, up to a limit in number and
 * size; git gets their contents as a pack and recomputes every name. CX_E_FORMAT for an object that
 * is damaged or whose name does not match its contents.
 */
CX_RESULT cx_agent_git_import_objects(const cx_git *git, const char *object_dir,
                                      cx_agent_objects *imported, cx_err *err);

#endif
