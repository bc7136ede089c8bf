/*
 * fleet_args.h - what commands about a fleet have in common: how they name its database, and how
 * they work on it and answer (fleet_job.c).
 */
#ifndef CX_CLI_FLEET_FLEET_ARGS_H
#define CX_CLI_FLEET_FLEET_ARGS_H

#include "cli/cli.h"
#include "fleet/api.h"
#include "json/api.h"

#define CX_CLI_OPTION_DATABASE                                                                   \
    CX_CLI_OPT("database", 0, CX_CLI_TEXT, "URL",                                                \
               "The database: postgresql://USER@HOST:PORT/NAME; several hosts after each other " \
               "and ?target_session_attrs=read-write find the primary. Default $CORTEX_FLEET. "  \
               "Leave the password to ~/.pgpass: command lines are seen by others.")

#define CX_CLI_EXITS_DATABASE                                                                  \
    "\n2 usage error\n3 could not be done: the database is away, refuses the user, or has no " \
    "fleet"

/* The value of CX_CLI_OPTION_DATABASE, or $CORTEX_FLEET. */
CX_RESULT cx_cli_fleet_url(const cx_cli_args *args, const char **out, cx_err *err);

typedef enum cx_cli_fleet_use {
    CX_CLI_FLEET_URL, /* the work opens what it needs: `fleet` is NULL */
    CX_CLI_FLEET_READS,
    CX_CLI_FLEET_WRITES
} cx_cli_fleet_use;

typedef struct cx_cli_fleet_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_fleet *fleet;
    const char *url;
    bool json;
    cx_buf out; /* the answer */
    int code;   /* .. and its exit code */
} cx_cli_fleet_job;

typedef cx_status cx_cli_fleet_work(cx_cli_fleet_job *job, cx_err *err);
/* Does the work on the database that is named, and answers with what it wrote. */
int cx_cli_fleet_run(cx_cli *cli, const cx_cli_args *args, cx_cli_fleet_use use,
                     cx_cli_fleet_work *work);
/* Members quota_bytes and stored_bytes, null without a quota. */
void cx_cli_fleet_put_quota(cx_json_list *json, uint64_t quota, uint64_t stored);
/* Members of how parts are spread over nodes; part, from and to are null while none is moved. */
void cx_cli_fleet_put_balance(cx_json_list *json, const cx_fleet_balance *balance);
/* .. as a sentence. */
void cx_cli_fleet_add_balance(cx_buf *out, const cx_fleet_balance *balance);
/* Takes the part; CX_E_BUSY "Locked" while another process owns it. */
CX_RESULT cx_cli_fleet_take(cx_fleet *fleet, cx_fleet_part *part, cx_str name, cx_err *err);
/* A copy that lives as long as the answer. */
cx_str cx_cli_fleet_kept(const cx_cli_fleet_job *job, cx_str text);

/* Whether bundles of a part's runs go to an object store, as its own settings or those of this
 * machine say; *out_bucket is in the arena.  Settings that cannot be read are found by who uses
 * them: none is then said. */
CX_RESULT cx_cli_fleet_objects(cx_cli_fleet_job *job, unsigned part, const char **out_bucket,
                               cx_err *err);

#endif
