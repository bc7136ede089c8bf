/*
 * hooks.h - git hooks of a repository: small scripts that call `cortex hook <name>`. Hooks that
 * were there before are stored and run afterwards (run.md §19).
 */
#ifndef CX_CANDIDATE_HOOKS_H
#define CX_CANDIDATE_HOOKS_H

#include "candidate/diff.h"
#include "bundle/api.h"

typedef enum cx_hook_state {
    CX_HOOK_ABSENT,
    CX_HOOK_INSTALLED,
    CX_HOOK_OUTDATED, /* ours, but not what this program writes */
    CX_HOOK_EXTERNAL  /* not installed by cortex */
} cx_hook_state;

/* Whose commits and pushes a hook checks. */
typedef enum cx_hook_enforce {
    CX_HOOK_ENFORCE_UNKNOWN,
    CX_HOOK_ENFORCE_RUNS,  /* on branches and in work trees of governed runs */
    CX_HOOK_ENFORCE_PEOPLE /* all: without an active run nothing is allowed */
} cx_hook_enforce;

typedef struct cx_hook {
    const char *name; /* "pre-commit", "pre-push" */
    const char *path; /* absolute */
    cx_hook_state state;
    cx_hook_enforce enforce; /* of an installed one */
    bool chained;            /* the hook from before is stored next to it */
} cx_hook;

#define CX_HOOK_COUNT 2

const char *cx_hook_state_name(cx_hook_state state);
/* "runs", "people"; NULL for CX_HOOK_ENFORCE_UNKNOWN. */
const char *cx_hook_enforce_name(cx_hook_enforce enforce);

/* `program` is the absolute path of cortex, which the scripts name.  Text lives in the arena. */
CX_RESULT cx_hooks_status(const cx_git *git, const char *program, cx_arena *arena,
                          cx_hook out[CX_HOOK_COUNT], cx_err *err);
/* Installs all of them, or none when one cannot be: CX_E_EXISTS when an external hook is there
 * and one from before is kept already. */
CX_RESULT cx_hooks_install(const cx_git *git, const char *program, cx_hook_enforce enforce,
                           cx_arena *arena, cx_hook out[CX_HOOK_COUNT], cx_err *err);
/* Removes ours and puts back those from before; external ones stay. */
CX_RESULT cx_hooks_remove(const cx_git *git, const char *program, cx_arena *arena,
                          cx_hook out[CX_HOOK_COUNT], cx_err *err);

/*
 * What a hook judges by: the contract of the one active run that the work tree's branch belongs to.
 * Findings "hook_contract" say why there is none; a rejection, no error.  With
 * CX_HOOK_ENFORCE_RUNS, what is neither on a branch cortex/.. nor in a work tree of a run is
 * allowed: it is a person's own.
 */
typedef struct cx_hook_verdict {
    cx_run_findings findings;
    cx_str run_id;
    cx_str branch;
} cx_hook_verdict;

typedef struct cx_hook_options {
    const cx_git *git;
    const cx_run_store *store;
    const char *index_file; /* GIT_INDEX_FILE as git gave it to the hook; NULL */
    cx_str input;           /* pre-push: the lines on standard input */
    cx_hook_enforce enforce;
} cx_hook_options;

/* Findings list: call cx_run_findings_done.  Text lives in the arena. */
CX_RESULT cx_hook_pre_commit(const cx_hook_options *options, cx_arena *arena, cx_hook_verdict *out,
                             cx_err *err);
CX_RESULT cx_hook_pre_push(const cx_hook_options *options, cx_arena *arena, cx_hook_verdict *out,
                           cx_err *err);

#endif
