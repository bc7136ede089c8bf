/*
 * objects.h - the object store of bundles (section [bundles] of the configuration, decision 0060).
 *
 *   S1  The file of a part may name it, and so may the user's and the system's.  That of a folder
 *       may not: a copy of a data directory must not choose where bundles go.
 *   S2  Credentials are in the environment only.  They are in no message, no entry and no answer,
 *       and agents do not have them unless a policy names the variables.
 */
#ifndef CX_CLI_OBJECTS_H
#define CX_CLI_OBJECTS_H

#include "cli/cli.h"
#include "cli/config.h"

/* Options of one command, from which the settings are made. */
#define CX_CLI_OPTIONS_OBJECTS                                                                \
    CX_CLI_OPT("store", 0, CX_CLI_TEXT, "KIND",                                               \
               "Where bundles are stored: database, in the journal of the run, or s3, in an " \
               "object store that speaks S3; default database."),                             \
        CX_CLI_OPT("endpoint", 0, CX_CLI_TEXT, "URL",                                         \
                   "The object store, as https://HOST[:PORT]."),                              \
        CX_CLI_OPT("bucket", 0, CX_CLI_TEXT, "NAME", "The bucket, which exists."),            \
        CX_CLI_OPT("region", 0, CX_CLI_TEXT, "NAME", "Its region; default us-east-1."),       \
        CX_CLI_OPT("prefix", 0, CX_CLI_TEXT, "PATH",                                          \
                   "Objects are PATH/sha256/HASH; default sha256/HASH."),                     \
        CX_CLI_OPT("store-timeout", 0, CX_CLI_COUNT, "SECONDS",                               \
                   "For one request, and two more for each MiB; default 30."),                \
        CX_CLI_OPT_FLAG("plain-http", 0, "Allow http:// beyond this machine, too.")

/* Sets cli->objects and cli->stores_objects from the command line, the environment and files. */
CX_RESULT cx_cli_objects_apply(cx_cli *cli, const cx_cli_args *args, const cx_config *config,
                               cx_err *err);
/* Whether the settings of a file could be used; those that it has not may be in another one. */
CX_RESULT cx_cli_objects_check(const cx_config_file *file, cx_err *err);
#define CX_CLI_OBJECTS_SECTION "bundles"

/* CX_E_USAGE when the file of this data directory says something about bundles (S1). */
CX_RESULT cx_cli_objects_allowed(const cx_cli *cli, cx_err *err);

#endif
