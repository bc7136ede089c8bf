/*
 * signer.h - the only code that signs: with a key file, or by running another program.
 *
 * The library never signs; commands take bytes from it and bring signatures back.  Every
 * signature is verified with the public key before it is used.
 *
 * A key file is one line in the form that transparency-log tools read,
 * PRIVATE+KEY+name+hex(keyid)+base64(01 ‖ seed), readable by its owner only.
 */
#ifndef CX_CLI_SIGNER_H
#define CX_CLI_SIGNER_H

#include "cli/cli.h"
#include "proof/api.h"

#define CX_CLI_OPTIONS_SIGNER                                      \
    CX_CLI_OPT("sign", 0, CX_CLI_FILE, "KEYFILE",                  \
               "Sign with this key file (see 'cortex key new')."), \
        CX_CLI_OPTIONS_SIGNER_COMMAND
/* The same where signing is what the command is for. */
#define CX_CLI_OPTIONS_SIGNER_KEY                                                              \
    CX_CLI_OPT("key", 0, CX_CLI_FILE, "KEYFILE",                                               \
               "Sign with this key file (see 'cortex key new'); /dev/fd/N is descriptor N, - " \
               "standard input."),                                                             \
        CX_CLI_OPTIONS_SIGNER_COMMAND
#define CX_CLI_OPTIONS_SIGNER_COMMAND                                                           \
    CX_CLI_OPT("signer", 0, CX_CLI_TEXT, "COMMAND",                                             \
               "Sign with this program: words separated by spaces, no shell. It gets the "      \
               "bytes to sign on standard input and answers with the signature, 64 bytes, "     \
               "or those in hex or base64."),                                                   \
        CX_CLI_OPT("signer-key", 0, CX_CLI_TEXT, "KEY",                                         \
                   "The public key of --signer: a verifier key, 64 hex digits, or a file with " \
                   "one of them."),                                                             \
        CX_CLI_OPT("signer-timeout", 0, CX_CLI_COUNT, "SECONDS",                                \
                   "How long --signer may take; default 30.")

typedef struct cx_cli_signer {
    cx_cli *cli;
    cx_str name; /* of the key; empty when --signer-key was a bare one */
    cx_pubkey key;
    const char *command; /* NULL = the key file's secret */
    uint64_t timeout_s;
    uint8_t secret[64];
} cx_cli_signer;

/* Whether the options request a signature. */
bool cx_cli_signer_wanted(const cx_cli_args *args);
/* Names live in the command's arena. */
CX_RESULT cx_cli_signer_open(cx_cli *cli, const cx_cli_args *args, cx_cli_signer *out, cx_err *err);
/* The same for the options of CX_CLI_OPTIONS_SIGNER_KEY. */
CX_RESULT cx_cli_signer_open_key(cx_cli *cli, const cx_cli_args *args, cx_cli_signer *out,
                                 cx_err *err);
/* A key file by its path. */
CX_RESULT cx_cli_signer_open_file(cx_cli *cli, const char *path, cx_cli_signer *out, cx_err *err);
/* CX_E_DENIED "BadSignature" when what came back is not good; CX_E_TIMEOUT, CX_E_IO. */
CX_RESULT cx_cli_signer_sign(cx_cli_signer *signer, cx_bytes message, cx_signature *out,
                             cx_err *err);
/* Wipes the secret. */
void cx_cli_signer_done(cx_cli_signer *signer);

/* Writes a new key file, which must not exist yet. */
CX_RESULT cx_cli_key_make(cx_cli *cli, const char *path, cx_str name, cx_pubkey *out, cx_err *err);
/* The public half of a key file; the name lives in the command's arena. */
CX_RESULT cx_cli_key_read(cx_cli *cli, const char *path, cx_vkey *out, cx_err *err);

/* A public key as people give it: a verifier key, 64 hex digits (the name is then empty), or a file
 * with one of them or with 32 bytes.  Names live in the command's arena. */
CX_RESULT cx_cli_read_key(cx_cli *cli, const char *what, const char *value, cx_vkey *out,
                          cx_err *err);

#endif
