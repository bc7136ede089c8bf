/*
 * command - the command gate: which commands may run, and which executable that is.
 *
 * One exact lexer, a table of rows, the first match decides; no shell.  Numbered invariants:
 * command.h.
 */
#ifndef CX_COMMAND_API_H
#define CX_COMMAND_API_H

#include "command/command.h"

#endif
