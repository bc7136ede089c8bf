/*
 * agent_git.h - what an agent may write of git: a private copy of the git directory of its work
 * tree, of the folder of its branch, and a folder for new objects (run.md §11, decision 0013).
 *
 * In the sandbox the copies lie over the real places, so that paths are the same inside and
 * outside; the repository itself is read-only there.  Nothing of them is ever given to git: HEAD,
 * index, references and the files that tell of changes are read by snapshot.h, objects by
 * cx_agent_git_take_objects.
 */
#ifndef CX_GIT_AGENT_GIT_H
#define CX_GIT_AGENT_GIT_H

#include "base/api.h"
#include "git/worktree.h"

typedef struct cx_agent_git {
    const char *git_dir;    /* HEAD, index, commondir, gitdir */
    const char *ref_dir;    /* its branch, as a file; NULL: the agent can move no reference */
    cx_str ref_prefix;      /* what ref_dir stands for: "refs/heads/cortex/<run>/" */
    const char *object_dir; /* empty at first */
} cx_agent_git;

/* Makes `hidden`/git and /refs (unless without_refs) from what the work tree has now, and
 * `scratch`/objects.  The agent sees the first two only in their places, the last under its own
 * name.  Text lives in the arena. */
CX_RESULT cx_agent_git_make(const cx_worktree *worktree, const char *hidden, const char *scratch,
                            bool without_refs, cx_arena *arena, cx_agent_git *out, cx_err *err);

/* Objects that were taken over already, by name. */
typedef struct cx_agent_objects {
    cx_map names;
    cx_arena arena;
} cx_agent_objects;

void cx_agent_objects_init(cx_agent_objects *objects);
void cx_agent_objects_done(cx_agent_objects *objects);

/*
 * Takes what is new in a folder of objects that an agent can write over into the repository.  Files
 * are read by us, without following links or waiting for FIFOs, and limited in number and size;
 * git gets their contents as a pack and computes every name anew.  CX_E_FORMAT for an object that
 * is damaged or has another name than its contents.
 */
CX_RESULT cx_agent_git_take_objects(const cx_git *git, const char *object_dir,
                                    cx_agent_objects *imported, cx_err *err);

#endif
