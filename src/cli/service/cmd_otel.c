/*
 * cmd_otel.c - `cortex otel traces`: which traces came over OTLP.
 */
#include "cli/ledger/ledger.h"
#include "crypto/api.h"
#include "recorder/api.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 100000

static void add_row(const cx_otlp_trace_row *row, bool json, cx_buf *out)
{
    char id[2 * CX_OTLP_INDEX_TRACE_SIZE];
    cx_hex_encode(cx_bytes_from(row->trace_id, sizeof row->trace_id), id);
    cx_buf_printf(out,
                  json ? "{\"first_seq\":%llu,\"spans\":%llu,\"trace_id\":\"%.*s\"}\n"
                       : "%10llu  %7llu spans  %.*s\n",
                  (unsigned long long)row->first_seq, (unsigned long long)row->spans,
                  (int)sizeof id, id);
}

static cx_status list_traces(cx_cli_ledger *l, void *state, cx_err *err)
{
    uint64_t limit = cx_cli_number(l->args, "limit", LIMIT_DEFAULT);
    const char *after = cx_cli_value(l->args, "after");
    uint8_t from[CX_OTLP_INDEX_TRACE_SIZE];
    const cx_otlp_trace_row *rows;
    size_t count;
    (void)state;
    if (limit == 0 || limit > LIMIT_MAX)
        return cx_fail(err, CX_E_USAGE, "option --limit: expected 1 to %d", LIMIT_MAX);
    if (after != NULL && !cx_hex_decode_any(cx_str_z(after), from, sizeof from))
        return cx_fail(err, CX_E_USAGE,
                       "option --after: expected a trace id, 32 hexadecimal digits");
    CX_TRY(cx_recorder_otlp_traces(l->home, after == NULL ? NULL : from, (size_t)limit, l->arena,
                                   &rows, &count, err));
    for (size_t i = 0; i < count; i++)
        add_row(&rows[i], l->json, &l->out);
    return CX_SUCCESS;
}

static int run_otel_traces(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {.access = CX_CLI_READ, .work = list_traces};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT("after", 0, CX_CLI_TEXT, "TRACE_ID", "Continue after this trace."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N; default 1000."), CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_otel_traces = {
    .name = "otel traces",
    .purpose = "list the traces that OpenTelemetry exporters sent",
    .about = "Lists every trace that 'cortex serve' received over OTLP, ordered by id: the number "
             "of its first entry ('cortex log --actor otel'), the number of its spans, its id. "
             "Other commands accept one as @otel/TRACE_ID: 'cortex lattice render @otel/TRACE_ID'.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex otel traces",
    .run = run_otel_traces,
};
