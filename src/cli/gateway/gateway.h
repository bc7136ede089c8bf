/*
 * gateway.h - what the commands of the MCP gateway share.
 */
#ifndef CX_CLI_GATEWAY_GATEWAY_H
#define CX_CLI_GATEWAY_GATEWAY_H

#include "cli/ledger/ledger.h"
#include "gateway/api.h"

#define CX_GATEWAY_HEADERS_MAX 8 /* of --header */

/* A gateway at work: its options, and where messages come from. */
typedef struct cx_gateway_job {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *home;
    cx_gateway_options options;
    cx_gateway *gateway;
    cx_gateway_reader from_client, from_server;
    const char *url; /* NULL: the server is a child */
    const char *headers[CX_GATEWAY_HEADERS_MAX];
    size_t header_count;
    int exit_code;
} cx_gateway_job;

/* Lines of one side out of its bytes, each into the gateway; no bytes: the end of the stream. */
CX_RESULT cx_cli_gateway_feed(cx_gateway_job *job, cx_gateway_side from, cx_bytes bytes,
                              cx_err *err);

/* Runs a server as a child until one of the two ends. */
CX_RESULT cx_cli_gateway_stdio(cx_gateway_job *job, const char *const *argv, cx_err *err);

/* A server at the job's address. */
CX_RESULT cx_cli_gateway_http(cx_gateway_job *job, cx_err *err);

#endif
