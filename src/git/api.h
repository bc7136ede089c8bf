/*
 * git - the repository of a governed run: objects, references, work trees, snapshots.
 *
 * Git is never given what an agent can write (docs/decisions/0013).  Knows nothing of runs and
 * gates. Each header numbers its invariants (I1, I2, ..); tests cite them as "git.h I3".
 */
#ifndef CX_GIT_API_H
#define CX_GIT_API_H

#include "git/checkout_update.h"
#include "git/git.h"
#include "git/git_history.h"
#include "git/git_pack.h"
#include "git/git_parts.h"
#include "git/repo.h"
#include "git/snapshot.h"
#include "git/snapshot_parts.h"
#include "git/worktree.h"

#endif
