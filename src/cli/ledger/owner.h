/*
 * owner.h - which process owns a data directory, as far as files and /proc show.
 */
#ifndef CX_CLI_OWNER_H
#define CX_CLI_OWNER_H

#include "cli/cli.h"

typedef struct cx_cli_owner {
    bool held;
    char pid[24];   /* decimal; empty = not to be learnt */
    cx_str command; /* the first words of its command line, in the arena; empty likewise */
    bool socket;    /* HOME/socket exists: others write through it */
} cx_cli_owner;

/* Takes no lock, and changes nothing. */
void cx_cli_owner_find(cx_cli *cli, const char *home_path, cx_cli_owner *out);

#endif
