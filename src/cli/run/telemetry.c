/*
 * telemetry.c - a run's spans on their way to a collector (telemetry.h).
 *
 * The variables are those of the OpenTelemetry specification: OTEL_SDK_DISABLED and
 * OTEL_TRACES_EXPORTER=none switch it off, OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT, _HEADERS and
 * _PROTOCOL say where, with what and how.  Only JSON over HTTP is spoken.
 */
#include "cli/run/telemetry.h"

#include <ctype.h>
#include <stdlib.h>

#include "audit/api.h"
#include "json/api.h"
#include "os/api.h"

#define PATH "/v1/traces"
#define WAIT_MS 500         /* before the second attempt; doubled before the third */
#define RETRY_AFTER_MAX_S 5 /* a collector that asks for more gets no more requests */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

/* --- where ------------------------------------------------------------------------------------ */

/* An endpoint is a base: the path of traces is added, unless it is there. */
static cx_status set_url(cx_cli *cli, const char *base, bool exact, const char *source,
                         cx_cli_telemetry *out, cx_err *err)
{
    size_t size = strlen(base);
    cx_err why;
    if (cx_failed(cx_http_post_check_url(base, &why)))
        return cx_fail(err, CX_E_USAGE, "%s: %s", source, why.message);
    while (!exact && size != 0 && base[size - 1] == '/')
        size--;
    bool has_path = exact || cx_str_ends(cx_str_from(base, size), CX_STR(PATH));
    if (!has_path && strchr(base, '?') != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "%s: an address with a query must name the whole path, such as "
                       "http://host:4318" PATH "?…",
                       source);
    out->url = cx_arena_printf(&cli->arena, "%.*s%s", (int)size, base, has_path ? "" : PATH).data;
    return out->url == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- headers ---------------------------------------------------------------------------------- */

static bool is_name_character(char c)
{
    return c > ' ' && c < 127 && strchr("\"(),/:;<=>?@[\\]{}", c) == NULL;
}

cx_status cx_cli_telemetry_add_header(cx_cli *cli, cx_cli_telemetry *to, const char *line,
                                      cx_err *err)
{
    size_t size = strlen(line), name = 0;
    while (name < size && is_name_character(line[name]))
        name++;
    bool good =
        name != 0 && name < size && line[name] == ':' && size <= CX_CLI_TELEMETRY_HEADER_BYTES_MAX;
    for (size_t i = name; i < size && good; i++)
        good = (unsigned char)line[i] >= ' ' && line[i] != 127;
    if (!good) /* T3: not its text */
        return cx_fail(err, CX_E_USAGE,
                       "a header: expected 'Name: value' of at most %d bytes, such as "
                       "'Authorization: Bearer TOKEN'",
                       CX_CLI_TELEMETRY_HEADER_BYTES_MAX);
    if (to->header_count == CX_CLI_TELEMETRY_HEADERS_MAX)
        return cx_fail(err, CX_E_USAGE, "at most %d headers can be sent",
                       CX_CLI_TELEMETRY_HEADERS_MAX);
    cx_str copy = cx_arena_copy_str(&cli->arena, cx_str_from(line, size));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    to->headers[to->header_count++] = copy.data;
    return CX_SUCCESS;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "name=value", the value with %XX, as W3C baggage has it; spaces around both. */
static cx_status add_pair(cx_cli *cli, cx_cli_telemetry *to, const char *text, size_t size,
                          cx_err *err)
{
    char line[CX_CLI_TELEMETRY_HEADER_BYTES_MAX + 2];
    size_t used = 0, at = 0;
    while (at < size && isspace((unsigned char)text[at]))
        at++;
    while (size > at && isspace((unsigned char)text[size - 1]))
        size--;
    if (at == size)
        return CX_SUCCESS;
    for (bool value = false; at < size; at++) {
        char c = text[at];
        if (used + 4 >= sizeof line)
            return cx_cli_telemetry_add_header(cli, to, "", err);
        if (!value && c == '=') {
            value = true;
            line[used++] = ':';
            c = ' ';
        } else if (value && c == '%' && at + 2 < size && hex_value(text[at + 1]) >= 0 &&
                   hex_value(text[at + 2]) >= 0) {
            c = (char)(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
            at += 2;
        } else if (!value && isspace((unsigned char)c)) {
            continue;
        }
        line[used++] = c == 0 ? '\n' : c; /* no end, and refused as a control character */
    }
    line[used] = 0;
    return cx_cli_telemetry_add_header(cli, to, line, err);
}

static cx_status read_headers(cx_cli *cli, cx_cli_telemetry *out, cx_err *err)
{
    const char *name = variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS") != NULL
                           ? "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
                           : "OTEL_EXPORTER_OTLP_HEADERS";
    const char *at = variable(name);
    while (at != NULL) {
        const char *end = strchr(at, ',');
        cx_err why;
        size_t size = end == NULL ? strlen(at) : (size_t)(end - at);
        cx_status status = add_pair(cli, out, at, size, &why);
        if (status.code == CX_E_USAGE)
            return cx_fail(err, CX_E_USAGE, "%s: %s; here as name=value, with %%XX", name,
                           why.message);
        if (cx_failed(status))
            return cx_fail_nomem(err);
        at = end == NULL ? NULL : end + 1;
    }
    return CX_SUCCESS;
}

/* --- what the environment says ---------------------------------------------------------------- */

static cx_status check_protocol(cx_err *err)
{
    const char *name = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") != NULL
                           ? "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
                           : "OTEL_EXPORTER_OTLP_PROTOCOL";
    const char *value = variable(name);
    if (value == NULL || strncmp(value, "http/", 5) == 0)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE,
                   "%s: spans are sent as JSON over HTTP only; expected http/json, and the "
                   "collector's port for HTTP (4318)",
                   name);
}

/* The specification's booleans ignore case. */
static bool is_true(const char *text)
{
    static const char wanted[] = "true";
    size_t at = 0;
    while (at < sizeof wanted && tolower((unsigned char)text[at]) == wanted[at] && wanted[at] != 0)
        at++;
    return at == sizeof wanted - 1 && text[at] == 0;
}

static cx_status read_environment(cx_cli *cli, cx_cli_telemetry *out, cx_err *err)
{
    const char *disabled = variable("OTEL_SDK_DISABLED"),
               *exporter = variable("OTEL_TRACES_EXPORTER");
    const char *exact = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
               *base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if ((disabled != NULL && is_true(disabled)) ||
        (exporter != NULL && strcmp(exporter, "none") == 0) || (exact == NULL && base == NULL))
        return CX_SUCCESS;
    CX_TRY(check_protocol(err));
    return exact != NULL ? set_url(cli, exact, true, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", out, err)
                         : set_url(cli, base, false, "OTEL_EXPORTER_OTLP_ENDPOINT", out, err);
}

cx_status cx_cli_telemetry_read(cx_cli *cli, const char *given, cx_cli_telemetry *out, cx_err *err)
{
    *out = (cx_cli_telemetry){.url = NULL};
    if (given != NULL)
        CX_TRY(set_url(cli, given, false, "the endpoint", out, err));
    else
        CX_TRY(read_environment(cli, out, err));
    return out->url == NULL ? CX_SUCCESS : read_headers(cli, out, err);
}

cx_status cx_cli_telemetry_for_run(cx_cli *cli, const cx_cli_args *args, cx_cli_telemetry *out,
                                   cx_err *err)
{
    const char *given = cx_cli_value(args, "otlp-endpoint");
    cx_err why = {0};
    cx_status status = cx_cli_telemetry_read(cli, given, out, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (given != NULL || status.code != CX_E_USAGE) {
        if (err != NULL)
            *err = why;
        return status;
    }
    *out = (cx_cli_telemetry){.url = NULL};
    cx_cli_remark("note: the spans of the run will not be sent: %s", why.message);
    return CX_SUCCESS;
}

/* --- sending ---------------------------------------------------------------------------------- */

static cx_status write_spans(cx_cli *cli, cx_run_bundle *bundle, cx_buf *out, uint64_t *out_spans,
                             cx_err *err)
{
    cx_run_projection projection;
    cx_json value;
    cx_status status = cx_run_view_projection(bundle, &cli->arena, &projection, err);
    if (!cx_failed(status))
        status = cx_run_view_spans(&projection, &cli->arena, &value, err);
    cx_run_projection_done(&projection, &cli->arena);
    CX_TRY(status);
    const cx_json *list = cx_json_pointer(&value, CX_STR("/resourceSpans/0/scopeSpans/0/spans"));
    *out_spans = list == NULL || list->type != CX_JSON_ARRAY ? 0 : list->count;
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static bool can_try_again(unsigned status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static const char *advice(unsigned status)
{
    return status == 401 || status == 403
               ? "; give the collector's token in OTEL_EXPORTER_OTLP_HEADERS"
           : status == 404 || status == 405 ? "; expected the address of an OTLP/HTTP receiver"
           : status == 415                  ? "; it does not take OTLP as JSON"
           : status == 413                  ? "; it does not take that many spans at once"
                                            : "";
}

/* T2 */
static void send_request(cx_cli *cli, const cx_cli_telemetry *to, cx_bytes body, cx_cli_sent *sent)
{
    cx_http_post post = {.url = to->url,
                         .headers = to->headers,
                         .header_count = to->header_count,
                         .body = body,
                         .timeout_ms = CX_CLI_TELEMETRY_TIMEOUT_MS};
    uint32_t wait_ms = WAIT_MS;
    while (sent->attempts < CX_CLI_TELEMETRY_ATTEMPTS) {
        cx_http_post_result result = {0};
        cx_err why = {0};
        sent->attempts++;
        cx_status status = cx_http_post_send(&post, &result, &why);
        sent->status = cx_failed(status) ? 0 : result.status;
        sent->accepted = sent->status >= 200 && sent->status < 300;
        if (sent->accepted)
            return;
        sent->message = cx_failed(status) ? cx_arena_printf(&cli->arena, "%s", why.message).data
                                          : cx_arena_printf(&cli->arena, "it answered %u%s",
                                                            sent->status, advice(sent->status))
                                                .data;
        if (status.code == CX_E_UNSUPPORTED || status.code == CX_E_NOMEM ||
            status.code == CX_E_LIMIT || !can_try_again(sent->status) ||
            result.retry_after_s > RETRY_AFTER_MAX_S || sent->attempts == CX_CLI_TELEMETRY_ATTEMPTS)
            return;
        cx_thread_sleep_ms(result.retry_after_s == 0 ? wait_ms : result.retry_after_s * 1000);
        wait_ms *= 2;
    }
}

cx_status cx_cli_telemetry_send(cx_cli *cli, const cx_cli_telemetry *to, cx_run_bundle *bundle,
                                cx_cli_sent *out, cx_err *err)
{
    CX_ASSERT(to->url != NULL);
    cx_cli_telemetry all = *to;
    cx_buf body;
    all.headers[all.header_count++] = "Content-Type: application/json";
    *out = (cx_cli_sent){.message = NULL};
    cx_buf_init(&body, cli->alloc);
    cx_status status = write_spans(cli, bundle, &body, &out->spans, err);
    if (!cx_failed(status))
        send_request(cli, &all, cx_buf_bytes(&body), out);
    cx_buf_done(&body);
    return status;
}

/* --- after a run ------------------------------------------------------------------------------ */

/* A query may have a key in it. */
static cx_str shown_url(const cx_cli_telemetry *to)
{
    return cx_str_from(to->url, strcspn(to->url, "?"));
}

cx_status cx_cli_telemetry_json(const cx_cli_telemetry *to, const cx_cli_sent *sent,
                                cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    *out = cx_json_make_null();
    if (to->url == NULL)
        return CX_SUCCESS;
    cx_json_put_bool(&object, "accepted", sent->accepted);
    cx_json_put_uint(&object, "attempts", sent->attempts);
    cx_json_put_str(&object, "endpoint", shown_url(to));
    cx_json_put_maybe(&object, "message",
                      sent->message == NULL ? CX_STR("") : cx_str_z(sent->message));
    cx_json_put_uint(&object, "spans", sent->spans);
    if (sent->status == 0)
        cx_json_put_null(&object, "status");
    else
        cx_json_put_uint(&object, "status", sent->status);
    return cx_json_list_end_object(&object, out, err);
}

/* {type:"cortex.run.telemetry.v1", run_id, telemetry} */
static cx_status record_sending(cx_cli *cli, const cx_cli_telemetry *to, const cx_cli_sent *sent,
                                cx_str run_id, const cx_run_ledger *ledger, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_json telemetry, value;
    cx_buf text;
    CX_TRY(cx_cli_telemetry_json(to, sent, &cli->arena, &telemetry, err));
    cx_json_put_str(&object, "run_id", run_id);
    cx_json_put(&object, "telemetry", telemetry);
    cx_json_put_z(&object, "type", "cortex.run.telemetry.v1");
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status =
            ledger->append(ledger->ctx, "run.telemetry", run_id, cx_buf_bytes(&text), NULL, err);
    cx_buf_done(&text);
    return status;
}

void cx_cli_telemetry_after_run(cx_cli *cli, const cx_cli_telemetry *to, cx_str run_id, cx_str path,
                                const cx_run_ledger *ledger, cx_cli_sent *out)
{
    cx_run_bundle *bundle = NULL;
    cx_err err = {0};
    *out = (cx_cli_sent){.message = NULL};
    if (to->url == NULL || run_id.size == 0 || path.size == 0)
        return;
    cx_status status = cx_run_bundle_open(cli->io, cli->alloc, path.data, &bundle, &err);
    if (!cx_failed(status))
        status = cx_cli_telemetry_send(cli, to, bundle, out, &err);
    cx_run_bundle_close(bundle);
    if (cx_failed(status))
        out->message = cx_arena_printf(&cli->arena, "%s", err.message).data;
    if (!out->accepted)
        cx_cli_remark("note: the spans of %.*s were not sent to %.*s: %s. The run is not affected; "
                      "'cortex run spans %.*s --to URL' sends them",
                      (int)run_id.size, run_id.data, (int)shown_url(to).size, shown_url(to).data,
                      out->message == NULL ? "out of memory" : out->message, (int)run_id.size,
                      run_id.data);
    if (ledger != NULL && cx_failed(record_sending(cli, to, out, run_id, ledger, &err)))
        cx_cli_remark("note: that spans were sent could not be recorded: %s", err.message);
}
