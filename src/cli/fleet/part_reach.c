/*
 * part_reach.c - commands that write to a part which a node serves: through that node, over HTTP
 * (docs/formats/socket.md §7).
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/fleet/part_home.h"
#include "os/api.h"

#define REACH_MS 30000

/* A connection through TLS has a thread, which ends after its socket was closed. */
struct cx_cli_reached {
    struct cx_cli_reached *next;
    cx_http_upgraded *upgraded;
};

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

static cx_status explain(cx_status status, cx_err *err)
{
    char said[CX_ERR_MESSAGE_SIZE];
    (void)snprintf(said, sizeof said, "%s", err->message);
    if (status.code == CX_E_DENIED)
        return cx_fail_at(
            err, CX_E_IO, "NodeRefuses", CX_NO_OFFSET,
            "$CORTEX_URL: %s; $CORTEX_TOKEN must be a token of the part with the scope "
            "home:write ('cortex token add --scope home:write')",
            said);
    if (status.code == CX_E_UNSUPPORTED)
        return cx_fail_at(err, CX_E_IO, "NodeRefuses", CX_NO_OFFSET,
                          "$CORTEX_URL: %s: expected the address of a node of this fleet", said);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_IO, "NodeAway", CX_NO_OFFSET,
                          "$CORTEX_URL: %s: expected the address of a node that runs", said);
    if (status.code == CX_E_USAGE)
        return cx_fail_at(err, CX_E_USAGE, err->tag, CX_NO_OFFSET, "$CORTEX_URL: %s", said);
    return status;
}

cx_status cx_cli_part_reach(void *arg, int *out, char who[CX_HOME_WHO_SIZE], cx_err *err)
{
    cx_cli *cli = arg;
    const char *url = variable("CORTEX_URL"), *token = variable("CORTEX_TOKEN");
    cx_http_upgrade request = {
        .url = url, .path = "/api/v1/writer", .protocol = "cortex-writer", .timeout_ms = REACH_MS};
    cx_socket socket;
    if (url == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "$CORTEX_URL is not set");
    if (token != NULL)
        request.token = cx_str_z(token);
    struct cx_cli_reached *reached = CX_ARENA_NEW(&cli->arena, struct cx_cli_reached);
    if (reached == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_http_upgrade_open(&request, cli->alloc, &reached->upgraded, &socket, err);
    if (cx_failed(status))
        return explain(status, err);
    reached->next = cli->reached;
    cli->reached = reached;
    (void)snprintf(who, CX_HOME_WHO_SIZE, "the server at %s", url);
    *out = socket;
    return CX_SUCCESS;
}

void cx_cli_part_reach_end(cx_cli *cli)
{
    for (struct cx_cli_reached *r = cli->reached; r != NULL; r = r->next)
        cx_http_upgraded_close(r->upgraded);
    cli->reached = NULL;
}
