/*
 * telemetry.h - sends a run's spans to an OpenTelemetry collector: OTLP/HTTP, JSON
 * (docs/formats/otlp.md §6).
 *
 *   T1  Sending comes after the seal.  Whatever happens to it, the run's outcome and its bundle
 *       stay as they are; it is said, and recorded as an entry run.telemetry.
 *   T2  At most CX_CLI_TELEMETRY_ATTEMPTS requests of CX_CLI_TELEMETRY_TIMEOUT_MS each are made.
 *   T3  Headers are sent and never shown or recorded: they have tokens.
 */
#ifndef CX_CLI_TELEMETRY_H
#define CX_CLI_TELEMETRY_H

#include "bundle/api.h"
#include "cli/cli.h"

#define CX_CLI_TELEMETRY_ATTEMPTS 3
#define CX_CLI_TELEMETRY_TIMEOUT_MS 10000
#define CX_CLI_TELEMETRY_HEADERS_MAX 16
#define CX_CLI_TELEMETRY_HEADER_BYTES_MAX 4096

#define CX_CLI_OPTION_TELEMETRY                                                           \
    CX_CLI_OPT("otlp-endpoint", 0, CX_CLI_TEXT, "URL",                                    \
               "Send the run's spans there when it has ended (OTLP/HTTP, JSON); default " \
               "$OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or $OTEL_EXPORTER_OTLP_ENDPOINT, else not.")

typedef struct cx_cli_telemetry {
    const char *url; /* of the request; NULL = nothing is sent */
    const char *headers[CX_CLI_TELEMETRY_HEADERS_MAX + 1];
    size_t header_count;
} cx_cli_telemetry;

typedef struct cx_cli_sent {
    bool accepted;
    unsigned status;   /* of the last response; 0 = none came */
    unsigned attempts; /* requests that were made */
    uint64_t spans;
    const char *message; /* why it was not accepted, and what to do; in the arena */
} cx_cli_sent;

/* Where spans go: `given` (an endpoint, NULL = what the environment says), and with which headers.
 * The request goes to /v1/traces of an endpoint.  CX_E_USAGE says what is wrong with which. */
CX_RESULT cx_cli_telemetry_read(cx_cli *cli, const char *given, cx_cli_telemetry *out, cx_err *err);
/* The same for a run that starts: `--otlp-endpoint`, else the environment.  What is wrong with the
 * environment is said, and no reason not to run. */
CX_RESULT cx_cli_telemetry_for_run(cx_cli *cli, const cx_cli_args *args, cx_cli_telemetry *out,
                                   cx_err *err);
/* "Name: value" */
CX_RESULT cx_cli_telemetry_add_header(cx_cli *cli, cx_cli_telemetry *to, const char *line,
                                      cx_err *err);

/* Sends the spans of a run.  That nothing accepts them is a result, not an error. */
CX_RESULT cx_cli_telemetry_send(cx_cli *cli, const cx_cli_telemetry *to, cx_run_bundle *bundle,
                                cx_cli_sent *out, cx_err *err);

/* T1: of a run that has ended, by its bundle's path.  Says and records what happened; `ledger` may
 * be NULL. */
void cx_cli_telemetry_after_run(cx_cli *cli, const cx_cli_telemetry *to, cx_str run_id, cx_str path,
                                const cx_run_ledger *ledger, cx_cli_sent *out);
/* {accepted, attempts, endpoint, message, spans, status}, without a query string; null when nothing
 * was to be sent. */
CX_RESULT cx_cli_telemetry_json(const cx_cli_telemetry *to, const cx_cli_sent *sent,
                                cx_arena *arena, cx_json *out, cx_err *err);

#endif
