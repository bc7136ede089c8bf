/*
 * holder.h - which process holds a home, as far as files and /proc tell.
 */
#ifndef CX_CLI_HOLDER_H
#define CX_CLI_HOLDER_H

#include "cli/cli.h"

typedef struct cx_cli_holder {
    bool held;
    char pid[24];   /* decimal; empty = not to be learnt */
    cx_str command; /* the first words of its command line, in the arena; empty likewise */
    bool socket;    /* HOME/socket is there: others write through it */
} cx_cli_holder;

/* Takes nothing, and changes nothing. */
void cx_cli_holder_look(cx_cli *cli, const char *home_path, cx_cli_holder *out);

#endif
