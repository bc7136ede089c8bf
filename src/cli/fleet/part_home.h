/*
 * part_home.h - a data directory in a database, for commands that know folders.
 *
 * `--home postgresql://USER@HOST/DATABASE#PART` (the part "main" without #PART) opens the files of
 * that part (fleet/files.h): from then on the command's cx_io and SQLite find paths that begin with
 * "fleet:PART" there.
 */
#ifndef CX_CLI_FLEET_PART_HOME_H
#define CX_CLI_FLEET_PART_HOME_H

#include "cli/cli.h"
#include "fleet/api.h"
#include "ledger/api.h"

/* Whether a data directory is named by the address of a database. */
bool cx_cli_is_database(const char *home);

/* Splits "URL#PART" into both; *out_part is CX_FLEET_MAIN without one.  CX_E_USAGE. */
CX_RESULT cx_cli_split_database(cx_arena *arena, const char *home, const char **out_url,
                                cx_str *out_part, cx_err *err);

/* That a database refuses the user, or waits for no standby, is no verdict: it could not be
 * checked. */
CX_RESULT cx_cli_part_denied(cx_status status, cx_err *err);

/* Once a process: opens the part; from then on cli->io knows it, too.  *out_path is the data
 * directory's path from now on, "fleet:PART". */
CX_RESULT cx_cli_part_open(cx_cli *cli, const char *home, const char **out_path, cx_err *err);
/* The same with other options than those of the command line; url and part are filled in. */
CX_RESULT cx_cli_part_open_with(cx_cli *cli, const char *home, cx_fleet_files_options *options,
                                const char **out_path, cx_err *err);
/* The files of the part that is open; NULL when there is none. */
cx_fleet_files *cx_cli_part_files(const cx_cli *cli);
/* `cortex init --fleet URL`: the same as `cortex fleet init`. */
int cx_cli_init_fleet(cx_cli *cli, const cx_cli_args *args);
/* The index of a part for commands that do not own it: a file of the user's, below $XDG_CACHE_HOME
 * or ~/.cache, made when it is first asked.  The node that serves the part keeps its own there. */
CX_RESULT cx_cli_part_index(cx_cli *cli, const char **out_path, cx_err *err);
/* `reach` of cx_home_options: the node at $CORTEX_URL, with $CORTEX_TOKEN.  CX_E_NOT_FOUND when
 * that is not set.  `arg` is the cx_cli. */
CX_RESULT cx_cli_part_reach(void *arg, int *out, char who[CX_HOME_WHO_SIZE], cx_err *err);
/* `room` of cx_home_options: the quota of the part that is open.  `arg` is the cx_cli. */
CX_RESULT cx_cli_part_room(void *arg, uint64_t bytes, cx_err *err);
/* After all data directories are closed. */
void cx_cli_part_reach_end(cx_cli *cli);
/* An error of a command on a part says what the database said, and who owns the part. */
void cx_cli_part_explain(cx_cli *cli, cx_err *err);
/* Data directories that are opened next are read in the state of then: another process may have
 * written the part, as a node does for a command.  Without a part, or while one is open,
 * nothing. */
void cx_cli_part_renew(cx_cli *cli);
/* At the end of the process; all files must be closed. */
void cx_cli_part_close(cx_cli *cli);

#endif
