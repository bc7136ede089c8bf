/*
 * agents.h - the coding agents whose command line, environment and login are known: `cortex runner
 * add claude` needs no more than the name.
 *
 * A table and nothing else: which program a repository trusts stays in its policies (run.md §13
 * integrated), where `runner add` pins it.
 */
#ifndef CX_CONTRACT_AGENTS_H
#define CX_CONTRACT_AGENTS_H

#include "base/api.h"

typedef struct cx_agent_preset {
    const char *name; /* of the runner, and of its program */
    const char *title;
    const char *const *argv;  /* the template of an exec runner; ends with NULL */
    const char *const *env;   /* names that are passed on; ends with NULL */
    const char *const *login; /* one of them is enough to be logged in; ends with NULL */
    const char *login_file;   /* below HOME: where the agent keeps its login */
    bool codex_home;          /* a login in CORTEXPILOT_CODEX_BASE_HOME reaches it, too */
    const char *trust;        /* how it is kept from asking whether it trusts the folder */
} cx_agent_preset;

extern const cx_agent_preset cx_agent_presets[];
extern const size_t cx_agent_preset_count;

/* NULL when none is built in under that name. */
const cx_agent_preset *cx_agent_preset_find(cx_str name);

#endif
