/*
 * suggest.h - which command was meant by words that name none.
 */
#ifndef CX_CLI_SUGGEST_H
#define CX_CLI_SUGGEST_H

#include "cli/opt.h"

enum { CX_CLI_SUGGEST_MAX = 40 }; /* characters of a word that is compared */

/* Edits (insert, delete, replace, swap neighbours) from a to b; UINT32_MAX when either is long. */
unsigned cx_cli_edit_distance(const char *a, const char *b);

/* Close enough to have been meant: about one slip in three letters. */
bool cx_cli_is_close(unsigned edits, const char *typed);

/*
 * The command that `text`, one word or two, means: by another word for it, in its group, or by a
 * slip.  NULL when none does: a wrong suggestion costs more than none.
 */
const cx_cli_command *cx_cli_suggest_command(cx_cli_commands commands, const char *text);

#endif
