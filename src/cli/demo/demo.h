/*
 * demo.h - the two parts of `cortex demo`: a recorded incident, and a scenario that the program's
 * own commands act out in a folder.
 */
#ifndef CX_CLI_DEMO_H
#define CX_CLI_DEMO_H

#include "cli/cli.h"

/* At most so many lines of a command's output are shown; all of them are in DIR/demo.log. */
#define CX_DEMO_LINES_SHOWN 14

/*
 * Runs the scenario in `folder`, which must be empty or not exist.  Returns the exit code: 0 all
 * was as expected, 1 something was not, 2 the folder is not empty, 3 a part was skipped, which the
 * output names.
 */
int cx_cli_demo_scenario(cx_cli *cli, const cx_cli_args *args, const char *folder);

/* --- what an agent of the scenario signs (demo_agents.c) -------------------------------------- */

typedef struct cx_demo_agent {
    const char *name;   /* "researcher" */
    char id[17];        /* agent_id_hash */
    char key_id[32];    /* "agent-<12 hex>" */
    cx_str key_file;    /* DIR/agents/NAME.key */
    unsigned decisions; /* so far */
} cx_demo_agent;

typedef struct cx_demo_decision {
    const char *observation, *context, *rationale, *action;
    const char *run_id; /* correlation_metadata; NULL = none */
} cx_demo_decision;

/* Makes the agent's key file; it must not exist. */
CX_RESULT cx_demo_agent_make(cx_cli *cli, const char *folder, const char *name, cx_demo_agent *out,
                             cx_err *err);
/* The trust store of all of them, as `cortex key add` reads it. */
CX_RESULT cx_demo_trust(cx_cli *cli, const cx_demo_agent *agents, size_t count, cx_buf *out,
                        cx_err *err);
/* A batch with one signed trace, as it is posted; *out_id is the trace's, in the cli's arena. */
CX_RESULT cx_demo_decide(cx_cli *cli, cx_demo_agent *agent, const cx_demo_decision *decision,
                         cx_buf *out, cx_str *out_id, cx_err *err);

#endif
