/*
 * exec_places.h - what `cortex exec` shows to a command, and what the command may write there.
 *
 *   P1  Never writable: the data directory, git's own directories, and in each writable folder the
 *       names that programs outside obey later (protected_names), also through a link.
 *   P2  Such a name that cannot be made read-only, because it is not there or is a link, is looked
 *       at again at the end: what the command made of it is said and recorded.
 */
#ifndef CX_CLI_EXEC_PLACES_H
#define CX_CLI_EXEC_PLACES_H

#include "cli/cli.h"
#include "cli/run/run_place.h"
#include "sandbox/api.h"

#define CX_CLI_EXEC_BINDS_MAX 256
#define CX_CLI_EXEC_WRITES_MAX 16
#define CX_CLI_EXEC_NAMES_MAX 48 /* protected names in a folder */
#define CX_CLI_EXEC_WATCHED_MAX ((size_t)CX_CLI_EXEC_WRITES_MAX * CX_CLI_EXEC_NAMES_MAX)

/* What a path leads to; all zero when it leads to nothing. */
typedef struct cx_cli_file_id {
    uint64_t device;
    uint64_t inode;
} cx_cli_file_id;

typedef struct cx_cli_watched_name {
    const char *path;
    cx_cli_file_id itself; /* of a link; zero = the name does not exist */
    cx_cli_file_id target; /* where the link leads */
} cx_cli_watched_name;

typedef struct cx_cli_exec_places {
    cx_cli *cli;
    const cx_cli_place *repo; /* NULL = outside of a repository */
    const char *data;         /* the data directory, absolute */
    const char *cwd;          /* absolute, without links */
    const char *writes[CX_CLI_EXEC_WRITES_MAX];
    size_t write_count;
    const char **reads; /* of --read */
    size_t read_count;
    cx_sandbox_bind binds[CX_CLI_EXEC_BINDS_MAX];
    size_t bind_count;
    cx_cli_watched_name watched[CX_CLI_EXEC_WATCHED_MAX];
    size_t watched_count;
} cx_cli_exec_places;

/* By options, and the contract unless it is NULL.  `cli`, `repo`, `data` and `cwd` are set before;
 * what is found lives in the cli's arena.  CX_E_USAGE: a folder that is not to be written (P1). */
CX_RESULT cx_cli_exec_places_find(cx_cli_exec_places *places, const cx_cli_args *args,
                                  const cx_contract *contract, cx_err *err);
/* P2: `made`, a list of paths.  Each is said on standard error, too. */
void cx_cli_exec_places_put_made(const cx_cli_exec_places *places, cx_json_list *list);
/* Without links, absolute; in the cli's arena. */
CX_RESULT cx_cli_exec_real_path(cx_cli *cli, const char *path, const char **out, cx_err *err);

#endif
