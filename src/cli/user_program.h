/*
 * user_program.h - programs that a user names in an option, such as --signer and --embedder: given
 * bytes on standard input, they answer on standard output.
 *
 * The command is split at spaces; no shell is involved, so no word can have a space. The program
 * has the caller's environment and its own process group (os/proc.h).
 */
#ifndef CX_CLI_USER_PROGRAM_H
#define CX_CLI_USER_PROGRAM_H

#include "cli/cli.h"

#define CX_CLI_PROGRAM_WORDS_MAX 64
#define CX_CLI_PROGRAM_SECONDS_MAX 86400

typedef struct cx_cli_user_program {
    const char *option;  /* that names the command; OPTION-timeout names the seconds */
    const char *command; /* not NULL */
    const char *failure; /* tag of its failures: "SignerFailed", .. */
    uint64_t timeout_s;  /* 1 to CX_CLI_PROGRAM_SECONDS_MAX */
    size_t output_max;   /* bytes */
} cx_cli_user_program;

/* The words of a command; the list ends with NULL and lives in the arena.  CX_E_USAGE: none, or too
 * many. */
CX_RESULT cx_cli_user_program_words(cx_cli *cli, const char *option, const char *command,
                                    const char *const **out, cx_err *err);

/*
 * Runs it to its end, and appends what it printed to `answer`.  `*out_name` is the program's name
 * for messages, in the arena.  CX_E_USAGE: the command has no word or too many.  CX_E_TIMEOUT and
 * CX_E_IO with the tag `failure`: it did not end in time, or failed; the message has the first line
 * of its standard error.
 */
CX_RESULT cx_cli_user_program_run(cx_cli *cli, const cx_cli_user_program *program, cx_bytes input,
                                  cx_buf *answer, const char **out_name, cx_err *err);

#endif
