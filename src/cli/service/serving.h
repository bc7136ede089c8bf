/*
 * serving.h - a data directory that is being served: what `cortex serve` and `cortex up` share.
 *
 *     cx_serving_open    opens the data directory, makes the first token, listens
 *     cx_serving_close   finishes requests in progress and brings the tables up to date
 *
 * While it is served, HOME/server.json says where (docs/formats/home.md):
 *
 *     {"otlp_url": URL or null, "pid": N, "url": URL}
 */
#ifndef CX_CLI_SERVING_H
#define CX_CLI_SERVING_H

#include <signal.h>

#include "cli/cli.h"
#include "cli/fleet/serve_fleet.h"
#include "ledger/api.h"
#include "server/api.h"
#include "socket/api.h"
#include "stores/api.h"

typedef struct cx_serving {
    cx_cli *cli;
    const cx_cli_args *args;
    bool or_free_port;      /* when the default port is in use, listens on a free one */
    const char *path;       /* of the data directory, as given */
    cx_serve_worker worker; /* of a node of a fleet, if it is one */
    const sigset_t *ends;   /* that end the wait for the data directory; NULL = only time does */
    cx_home *home;
    cx_remote *remote;
    cx_recorder *recorder;
    cx_runs *runs;           /* NULL = no --repo */
    cx_part_watch *watch;    /* of a worker's part; NULL = it is none */
    char part_id[17];        /* .. the beginning of its id, in hex */
    cx_object_store objects; /* of bundles of its runs */
    cx_server *server;
    const char *token_path;              /* HOME/token; NULL = tokens are managed elsewhere */
    cx_str token_text;                   /* its contents; shown only on a terminal */
    bool first_token;                    /* made by this start */
    uint32_t home_root_ms, retention_ms; /* how often; 0 = never */
    cx_str url, otlp_url, otlp_grpc_url; /* the latter two empty: no OTLP is received so */
    bool described;                      /* HOME/server.json is this process's */
} cx_serving;

/* Reads the options of `cortex serve` that `args` has; before the first thread is started. */
CX_RESULT cx_serving_open(cx_serving *s, cx_err *err);
/* Of a serving that may not be open, or only in part. */
void cx_serving_close(cx_serving *s, uint32_t grace_ms);

/* Blocks SIGINT and SIGTERM in this thread and those that it starts from now on. */
void cx_serving_block_signals(sigset_t *ends, sigset_t *before);
/* Returns after the first of them; a second one then ends the process at once. */
void cx_serving_await_end(const sigset_t *ends, const sigset_t *before);

/* Where another process serves this data directory; *out_url is empty when none does. */
CX_RESULT cx_serving_find(cx_cli *cli, const char *home_path, cx_str *out_url, cx_err *err);

#endif
