/*
 * agent_ops.h - the operations of a replay script, and the program that applies them (run.md §16).
 *
 *     write PATH TEXT      append PATH TEXT     write_b64 PATH BASE64   copy FROM TO
 *     rename FROM TO       delete PATH          symlink TARGET PATH     hardlink FROM TO
 *     chmod PATH OCTAL     mkfifo PATH          mkdir PATH              touch PATH
 *     git ARG..            gitlink PATH         (HEAD as a submodule's commit)
 *
 * Each is an array of texts, its name first.  Paths are relative to the work tree; a path that
 * leads out of it, also through a link, is rejected here too, not only by the sandbox.  Missing
 * folders are created.  git runs without hooks and user configuration, with a fixed identity and
 * time.
 *
 * The runner starts this program in the sandbox, with the work tree as working directory:
 *
 *     argv = {cx_sandbox_program(box), CX_AGENT_OPS, NULL}, input = a JSON array of operations
 *
 * It tries all operations, prints one JSON line {"op","name","error"} for each that failed, and
 * exits with 0 when all succeeded, 1 when some failed, 2 when the input is not a list of
 * operations.
 */
#ifndef CX_AGENT_AGENT_OPS_H
#define CX_AGENT_AGENT_OPS_H

#include "rules/api.h"

#define CX_AGENT_OPS "agent-ops"
#define CX_AGENT_OPS_MAX 10000

/* The whole of main. */
int cx_agent_ops_main(void);

/* Checks that `ops` is a list of operations as above; CX_E_FORMAT names the first that is not, and
 * why. */
CX_RESULT cx_agent_ops_check(const cx_json *ops, cx_err *err);
/* Applies one checked operation below `worktree`. */
CX_RESULT cx_agent_op_apply(const char *worktree, const cx_json *op, const cx_alloc *alloc,
                            cx_err *err);

#endif
