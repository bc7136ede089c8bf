/*
 * fleet_args.h - how commands about a fleet name its database.
 */
#ifndef CX_CLI_FLEET_FLEET_ARGS_H
#define CX_CLI_FLEET_FLEET_ARGS_H

#include "cli/cli.h"

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

#endif
