/*
 * test_dependencies.h - installed packages that tests may use: folders of the main checkout that
 * git does not track, such as node_modules and .venv (run-config.md §7 test_dependencies).
 *
 *   I1  Tests see them read-only; an agent does not see them at all, so that it cannot change them.
 *   I2  A folder that the commit itself has is never replaced.
 */
#ifndef CX_CANDIDATE_TEST_DEPENDENCIES_H
#define CX_CANDIDATE_TEST_DEPENDENCIES_H

#include "base/api.h"
#include "sandbox/api.h"

typedef struct cx_test_dependencies {
    const cx_sandbox_bind *binds;
    size_t bind_count;
    const char *const
        *env; /* PYTHONPATH and VIRTUAL_ENV of a virtual environment; ends with NULL */
} cx_test_dependencies;

/* Links each path of `root` into the checkout.  CX_E_NOT_FOUND when one is not installed,
 * CX_E_DENIED when it leads out of `root`, CX_E_EXISTS when the commit has it (I2). */
CX_RESULT cx_test_dependencies_link(const cx_str *paths, size_t count, const char *root,
                                    const char *checkout, cx_arena *arena,
                                    cx_test_dependencies *out, cx_err *err);

#endif
