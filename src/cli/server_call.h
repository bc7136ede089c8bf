/*
 * server_call.h - a request of a command to a server of this program: --url and --token-file.
 */
#ifndef CX_CLI_SERVER_CALL_H
#define CX_CLI_SERVER_CALL_H

#include "cli/cli.h"
#include "json/api.h"

#define CX_CLI_OPTIONS_SERVER                                                             \
    CX_CLI_OPT("url", 0, CX_CLI_TEXT, "URL",                                              \
               "Ask this server instead of the data directory, such as "                  \
               "http://127.0.0.1:8420; it must be on this machine."),                     \
        CX_CLI_OPT("token-file", 0, CX_CLI_FILE, "FILE",                                  \
                   "A file with the token for --url ('cortex token add' prints it); - = " \
                   "standard input.")

bool cx_cli_server_given(const cx_cli_args *args);
/*
 * GET `path`, or POST of `body` when it is not empty; *out is the answer, in the command's arena. A
 * refusal is an error with the server's reason: CX_E_DENIED (401, 403), CX_E_NOT_FOUND (404),
 * CX_E_USAGE (other 4xx), else CX_E_IO.
 */
CX_RESULT cx_cli_server_call(cx_cli *cli, const cx_cli_args *args, const char *path, cx_bytes body,
                             cx_json *out, cx_err *err);

#endif
