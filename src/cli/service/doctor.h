/*
 * doctor.h - what `cortex doctor` collects: checks, each with what was found and what to do.
 */
#ifndef CX_CLI_DOCTOR_H
#define CX_CLI_DOCTOR_H

#include "cli/cli.h"

typedef enum cx_doctor_status { CX_DOCTOR_OK, CX_DOCTOR_WARN, CX_DOCTOR_FAIL } cx_doctor_status;

typedef struct cx_doctor_check {
    const char *name; /* static storage */
    cx_doctor_status status;
    cx_str detail;
    const char *fix; /* what to do; NULL = nothing */
} cx_doctor_check;

typedef struct cx_doctor {
    cx_cli *cli;
    CX_VEC(cx_doctor_check) checks;
    bool failed; /* a check was lost for want of memory */
} cx_doctor;

/* `fix` must outlive the doctor (a literal, or text of the command's arena). */
void cx_doctor_note(cx_doctor *d, const char *name, cx_doctor_status status, const char *fix,
                    const char *format, ...) CX_PRINTF(5, 6);

/* doctor_home.c: the data directory, its configuration, and what serving needs. */
void cx_doctor_check_home(cx_doctor *d, const cx_cli_args *args);
/* doctor_run.c: what governed runs need (run.md §20).  Inside of a repository that is prepared for
 * runs what is missing fails; elsewhere it is a warning. */
void cx_doctor_check_runs(cx_doctor *d, const cx_cli_args *args);
/* doctor_agents.c: the hooks of coding agents; a line for each agent that is here. */
void cx_doctor_check_agents(cx_doctor *d, const cx_cli_args *args);

#endif
