/*
 * former_names.h - names of commands and options that are still accepted for one release.
 *
 * They appear in no help, manual or completion.  COMMAND(old, now) is a command's whole name;
 * OPTION(old, now) holds for each command that has the option `now` and none called `old`.
 * Remove a line one release after the rename.
 */
#ifndef CX_CLI_FORMER_NAMES_H
#define CX_CLI_FORMER_NAMES_H

/* Renamed in 0.2.0. */
#define CX_CLI_FORMER_NAMES(COMMAND, OPTION) \
    COMMAND("trace lower", "trace redact")   \
    OPTION("out", "output")                  \
    OPTION("names", "name-only")             \
    OPTION("older", "older-than")

#endif
