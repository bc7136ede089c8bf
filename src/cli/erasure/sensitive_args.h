/*
 * sensitive_args.h - the options of commands that record: what is done with secrets and personal
 * data (docs/sensitive.md).
 */
#ifndef CX_CLI_SENSITIVE_ARGS_H
#define CX_CLI_SENSITIVE_ARGS_H

#include "cli/cli.h"
#include "sensitive/api.h"

#define CX_CLI_OPTIONS_SENSITIVE                                                                   \
    CX_CLI_OPT_MANY("sensitive", 0, CX_CLI_TEXT, "[CLASS=]off|mark|mask",                          \
                    "What to do with secrets and personal data in what is recorded: nothing (the " \
                    "default), mark them, or mask them. CLASS is token, private-key, password, "   \
                    "custom, email, phone, card, iban, secrets or personal; later rules win. May " \
                    "be repeated."),                                                               \
        CX_CLI_OPT_MANY("sensitive-pattern", 0, CX_CLI_TEXT, "PREFIX:CHARSET:MIN[-MAX]",           \
                        "A pattern of your own, class custom: text that begins with PREFIX, then " \
                        "MIN to MAX of digits, hex, upper, alnum, word, url or base64. May be "    \
                        "repeated.")

/* Memory from the command's arena. */
CX_RESULT cx_cli_sensitive_rules(cx_cli *cli, const cx_cli_args *args,
                                 const cx_sensitive_rules **out, cx_err *err);

#endif
