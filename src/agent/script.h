/*
 * script.h - compares a script in a work tree with the baseline's (row C14 of the command gate):
 * implements cx_run_compare_script over a folder and a repository.
 */
#ifndef CX_AGENT_SCRIPT_H
#define CX_AGENT_SCRIPT_H

#include "command/api.h"
#include "git/api.h"

#define CX_RUN_SCRIPT_BYTES_MAX (UINT32_C(16) << 20)

typedef struct cx_run_script_context {
    const char *worktree; /* absolute */
    const cx_run_repo *repo;
    cx_str commit; /* the baseline's full id */
    const cx_alloc *alloc;
} cx_run_script_context;

/* A cx_run_compare_script; `ground` is a cx_run_script_context. A script over the limit counts as
 * different. */
cx_status cx_run_script_compare(void *ground, cx_str path, cx_str plain, cx_run_script *out,
                                cx_err *err);

#endif
