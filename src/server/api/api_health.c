/*
 * api_health.c - liveness, readiness, metrics, the OpenAPI document; and the start of the live
 * feed.
 */
#include "os/api.h"
#include "server/api/fleet_metrics.h"
#include "server/feed/live_feed.h"
#include "server/grpc_wire.h"
#include "server/route.h"

cx_status cx_api_healthz(cx_call *call, cx_err *err)
{
    (void)err;
    cx_buf_add_z(&call->response.body, "{\"status\":\"ok\"}\n");
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

static const char *index_state(const cx_feed_status *feed)
{
    if (!feed->running)
        return "stopped";
    if (feed->away)
        return "away";
    return feed->index_commits < feed->log_commits ? "behind" : "current";
}

/* Batches are accepted while the index's database is unavailable: the index catches up later. */
cx_status cx_api_readyz(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    cx_feed_status feed = {.running = false};
    (void)err;
    if (atomic_load(&service->stopping) || atomic_load(&service->ledger_failed)) {
        cx_service_reject_busy(
            call, 503,
            atomic_load(&service->stopping)
                ? "the server is shutting down; send the request again after its restart"
                : "a write to the ledger failed; restart the server (its log has the cause)");
        return CX_SUCCESS;
    }
    if (service->recorder != NULL)
        cx_recorder_feed_get_status(service->recorder, &feed);
    cx_buf_printf(&call->response.body, "{\"index\":\"%s\",\"status\":\"ready\"}\n",
                  index_state(&feed));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void write_requests(cx_buf *out, const cx_metrics *metrics)
{
    char labels[192];
    cx_metrics_head(out, "cortex_http_requests_total", "counter", "Answers by route and class.");
    for (size_t i = 0; i <= cx_route_count; i++)
        for (unsigned class = 1; class < CX_METRICS_CLASSES; class ++) {
            uint64_t count = cx_counter(&metrics->requests[i][class]);
            if (count == 0)
                continue;
            (void)snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\",code=\"%uxx\"",
                           i == cx_route_count ? "-" : cx_routes[i].method,
                           i == cx_route_count ? "-" : cx_routes[i].path, class);
            cx_metrics_value(out, "cortex_http_requests_total", labels, count);
        }
}

static void write_gauge(cx_buf *out, const char *name, const char *help, uint64_t value)
{
    cx_metrics_head(out, name, "gauge", help);
    cx_metrics_value(out, name, NULL, value);
}

static void write_counter(cx_buf *out, const char *name, const char *help, uint64_t value)
{
    cx_metrics_head(out, name, "counter", help);
    cx_metrics_value(out, name, NULL, value);
}

static void write_events(cx_buf *out, const cx_metrics *metrics)
{
    char labels[64];
    cx_metrics_head(out, "cortex_events_total", "counter", "Events of batches by outcome.");
    for (int i = CX_INTAKE_STORED; i < CX_TAKE_STATUSES; i++) {
        (void)snprintf(labels, sizeof labels, "status=\"%s\"",
                       cx_intake_event_status_name((cx_intake_event_status)i));
        cx_metrics_value(out, "cortex_events_total", labels, cx_counter(&metrics->events[i]));
    }
}

static void write_otlp(cx_buf *out, const cx_metrics *metrics)
{
    static const char *const signals[] = {"traces", "logs"};
    static const char *const results[CX_OTLP_RESULTS] = {"stored", "duplicate", "conflict",
                                                         "rejected"};
    char labels[64];
    cx_metrics_head(out, "cortex_otlp_records_total", "counter",
                    "Spans and log records received over OTLP by outcome.");
    for (size_t s = 0; s < CX_COUNT_OF(signals); s++)
        for (size_t r = 0; r < CX_OTLP_RESULTS; r++) {
            (void)snprintf(labels, sizeof labels, "signal=\"%s\",result=\"%s\"", signals[s],
                           results[r]);
            cx_metrics_value(out, "cortex_otlp_records_total", labels,
                             cx_counter(&metrics->otlp[s][r]));
        }
    write_counter(out, "cortex_otlp_bytes_total", "Bytes of accepted OTLP requests, decompressed.",
                  cx_counter(&metrics->otlp_bytes));
    cx_metrics_head(out, "cortex_grpc_calls_total", "counter",
                    "Calls of OTLP over gRPC by the code of their answer.");
    for (unsigned code = 0; code < CX_GRPC_CODES; code++) {
        if (cx_grpc_code_name(code) == NULL)
            continue;
        (void)snprintf(labels, sizeof labels, "code=\"%s\"", cx_grpc_code_name(code));
        cx_metrics_value(out, "cortex_grpc_calls_total", labels,
                         cx_counter(&metrics->grpc_calls[code]));
    }
    write_counter(out, "cortex_grpc_closed_flood_total",
                  "Connections of OTLP over gRPC that were closed for too many frames without a "
                  "request.",
                  cx_counter(&metrics->grpc_closed_flood));
}

static void write_feed(cx_buf *out, cx_recorder *recorder)
{
    cx_feed_status feed;
    if (recorder == NULL)
        return;
    cx_recorder_feed_get_status(recorder, &feed);
    write_gauge(out, "cortex_log_commits", "Durable commits of the ledger.", feed.log_commits);
    write_gauge(out, "cortex_index_commits", "Commits that the index contains.",
                feed.index_commits);
    write_gauge(out, "cortex_index_away", "1 while the index's database is unavailable.",
                feed.away);
}

/* It grows with the number of segments, so it is not read for each request. */
#define LOG_SPACE_NS (UINT64_C(30) * 1000000000)

static void read_log_space(cx_metrics *m, const cx_io *io, cx_home *home)
{
    uint64_t now = io->monotonic_ns(io), read = cx_counter(&m->log_read_ns);
    cx_log_space space;
    cx_err err;
    if ((read != 0 && now - read < LOG_SPACE_NS) ||
        cx_failed(cx_home_log_space(home, &space, &err)))
        return;
    atomic_store(&m->log_bytes[0], space.bytes_plain);
    atomic_store(&m->log_bytes[1], space.bytes_archived);
    atomic_store(&m->log_bytes[2], space.bytes_elsewhere);
    atomic_store(&m->log_failed_at, (uint64_t)(space.failed_ns / 1000000000));
    atomic_store(&m->log_read_ns, now);
}

static void write_log_space(cx_buf *out, cx_metrics *m, const cx_io *io, cx_recorder *recorder)
{
    static const char *const forms[] = {"form=\"plain\"", "form=\"compressed\"",
                                        "form=\"elsewhere\""};
    cx_log_archiving_state state;
    if (recorder == NULL)
        return;
    read_log_space(m, io, cx_recorder_home(recorder));
    cx_home_log_archiving(cx_recorder_home(recorder), &state);
    cx_metrics_head(out, "cortex_log_bytes", "gauge", "What the log takes, by form of segments.");
    for (size_t i = 0; i < CX_COUNT_OF(forms); i++)
        cx_metrics_value(out, "cortex_log_bytes", forms[i], cx_counter(&m->log_bytes[i]));
    write_counter(out, "cortex_log_archived_total", "Segments that this process archived.",
                  state.segments);
    write_counter(out, "cortex_log_archive_failures_total",
                  "Attempts of this process to archive a segment that failed.", state.failures);
    write_gauge(out, "cortex_log_archive_failed_time_seconds",
                "Time of the last such failure since which none succeeded, since 1970; 0 = none.",
                cx_counter(&m->log_failed_at));
}

static void write_pending(cx_buf *out, cx_recorder *recorder)
{
    cx_pending_sums sums;
    cx_err err;
    if (recorder == NULL || cx_failed(cx_recorder_pending_counts(recorder, &sums, &err)))
        return;
    write_gauge(out, "cortex_pending_keys", "Keys that wait for a decision.", sums.keys);
    write_gauge(out, "cortex_pending_events", "Events that wait with their key.", sums.events);
}

static void write_home_root(cx_buf *out, cx_recorder *recorder)
{
    cx_home_root_status status;
    if (recorder == NULL)
        return;
    cx_home_root_get_status(cx_recorder_home(recorder), &status);
    write_gauge(out, "cortex_home_roots", "Home roots recorded.", status.roots);
    write_gauge(out, "cortex_home_root_entries", "Entries that the last home root covers.",
                status.entries);
    write_gauge(out, "cortex_home_root_time_seconds",
                "Time of the last home root, since 1970; 0 = none.", status.created_seconds);
}

static void write_deliveries(cx_buf *out, const cx_metrics *m, const cx_io *io,
                             cx_recorder *recorder)
{
    static const char *const results[CX_DELIVERY_STATES] = {"again", "delivered", "failed",
                                                            "expired"};
    cx_deliveries_waiting waiting[CX_DESTINATIONS];
    char labels[80];
    cx_err err;
    _Static_assert(CX_ALERT_DESTINATIONS == (int)CX_DESTINATIONS, "as the queue has");
    _Static_assert(CX_ALERT_RESULTS == (int)CX_DELIVERY_STATES, "as the queue has");
    cx_metrics_head(out, "cortex_alert_attempts_total", "counter",
                    "Attempts to deliver an alert by outcome.");
    for (cx_destination d = 0; d < CX_DESTINATIONS; d++)
        for (cx_delivery_state r = 0; r < CX_DELIVERY_STATES; r++) {
            (void)snprintf(labels, sizeof labels, "destination=\"%s\",result=\"%s\"",
                           cx_destination_name(d), results[r]);
            cx_metrics_value(out, "cortex_alert_attempts_total", labels,
                             cx_counter(&m->alert_attempts[d][r]));
        }
    if (recorder == NULL || cx_failed(cx_deliveries_waiting_now(recorder, waiting, &err)))
        return;
    cx_metrics_head(out, "cortex_alert_waiting", "gauge", "Alerts that wait for delivery.");
    for (cx_destination d = 0; d < CX_DESTINATIONS; d++) {
        (void)snprintf(labels, sizeof labels, "destination=\"%s\"", cx_destination_name(d));
        cx_metrics_value(out, "cortex_alert_waiting", labels, waiting[d].count);
    }
    int64_t now = (int64_t)io->wall_ns(io);
    cx_metrics_head(out, "cortex_alert_oldest_seconds", "gauge",
                    "Age of the oldest alert that waits for delivery; 0 = none waits.");
    for (cx_destination d = 0; d < CX_DESTINATIONS; d++) {
        bool waits = waiting[d].oldest_ns != CX_TIME_NONE && waiting[d].oldest_ns < now;
        (void)snprintf(labels, sizeof labels, "destination=\"%s\"", cx_destination_name(d));
        cx_metrics_value(out, "cortex_alert_oldest_seconds", labels,
                         waits ? (uint64_t)(now - waiting[d].oldest_ns) / 1000000000 : 0);
    }
}

static void write_detectors(cx_buf *out, const cx_metrics *m)
{
    cx_metrics_head(out, "cortex_detect_rounds_total", "counter", "Rounds of the detectors.");
    cx_metrics_value(out, "cortex_detect_rounds_total", "result=\"done\"",
                     cx_counter(&m->detect_rounds[0]));
    cx_metrics_value(out, "cortex_detect_rounds_total", "result=\"failed\"",
                     cx_counter(&m->detect_rounds[1]));
    write_counter(out, "cortex_detect_raised_total", "Alerts that the rounds raised.",
                  cx_counter(&m->detect_raised));
    write_gauge(out, "cortex_detect_time_seconds",
                "Time of the last round that was done, since 1970; 0 = none.",
                cx_counter(&m->detect_last_at));
    cx_metrics_head(out, "cortex_detect_seconds", "gauge", "How long that round took.");
    cx_buf_printf(out, "cortex_detect_seconds %.6f\n",
                  (double)cx_counter(&m->detect_last_us) * 1e-6);
}

static void write_audits(cx_buf *out, const cx_metrics *m)
{
    char labels[64];
    cx_metrics_head(out, "cortex_live_audits_total", "counter",
                    "Audits of live sessions, by what they found.");
    for (cx_verdict verdict = CX_HOLDS; verdict <= CX_INDETERMINATE; verdict++) {
        (void)snprintf(labels, sizeof labels, "verdict=\"%s\"", cx_verdict_name(verdict));
        cx_metrics_value(out, "cortex_live_audits_total", labels, cx_counter(&m->audits[verdict]));
    }
    cx_metrics_value(out, "cortex_live_audits_total", "verdict=\"failed\"",
                     cx_counter(&m->audits_failed));
}

static void write_memory(cx_buf *out)
{
    uint64_t bytes;
    if (cx_machine_resident(&bytes))
        write_gauge(out, "process_resident_memory_bytes", "Memory in use, by pages of 4 KiB.",
                    bytes);
}

cx_status cx_api_metrics(cx_call *call, cx_err *err)
{
    cx_metrics *m = &call->service->metrics;
    cx_buf *out = &call->response.body;
    write_requests(out, m);
    cx_metrics_head(out, "cortex_http_request_seconds", "histogram",
                    "Time from the headers to the end of the answer.");
    cx_histogram_write(out, "cortex_http_request_seconds", "pool=\"intake\"", &m->intake);
    cx_histogram_write(out, "cortex_http_request_seconds", "pool=\"read\"", &m->reads);
    write_events(out, m);
    write_pending(out, call->service->recorder);
    write_otlp(out, m);
    write_counter(out, "cortex_http_body_bytes_total", "Bytes of bodies received.",
                  cx_counter(&m->body_bytes));
    write_gauge(out, "cortex_http_connections", "Open connections.", cx_gauge(&m->connections));
    write_gauge(out, "cortex_http_in_flight", "Requests not answered yet.",
                cx_gauge(&m->in_flight));
    write_gauge(out, "cortex_http_queued_intake", "Writing requests that wait for a worker.",
                cx_gauge(&m->queued_intake));
    write_gauge(out, "cortex_http_queued_reads", "Reading requests that wait for a worker.",
                cx_gauge(&m->queued_reads));
    write_gauge(out, "cortex_http_body_memory_bytes", "Memory used by request bodies.",
                cx_gauge(&m->body_memory));
    write_counter(out, "cortex_http_refused_full_total", "Requests rejected with 503: server busy.",
                  cx_counter(&m->rejected_full));
    write_counter(out, "cortex_http_refused_rate_total", "Requests rejected with 429.",
                  cx_counter(&m->rejected_slow));
    write_counter(out, "cortex_http_cut_total", "Connections closed for being too slow.",
                  cx_counter(&m->closed_slow));
    write_gauge(out, "cortex_feed_readers", "Readers of the live feed.",
                cx_gauge(&m->feed_readers));
    write_counter(out, "cortex_feed_events_total", "Events sent to readers of the live feed.",
                  cx_counter(&m->feed_events));
    write_counter(out, "cortex_feed_dropped_total", "Readers dropped for being too slow.",
                  cx_counter(&m->feed_dropped));
    write_feed(out, call->service->recorder);
    write_log_space(out, m, call->service->io, call->service->recorder);
    write_home_root(out, call->service->recorder);
    write_detectors(out, m);
    write_audits(out, m);
    write_deliveries(out, m, call->service->io, call->service->recorder);
    write_memory(out);
    CX_TRY(cx_api_fleet_metrics(call, err));
    cx_call_answer(call, 200, "text/plain; version=0.0.4; charset=utf-8");
    return CX_SUCCESS;
}

/* --- the document, the feed ------------------------------------------------------------------- */

cx_status cx_api_openapi(cx_call *call, cx_err *err)
{
    CX_TRY(cx_route_openapi(&call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_feed(cx_call *call, cx_err *err)
{
    cx_response *response = &call->response;
    cx_str after = call->request.last_event_id;
    (void)err;
    if (call->service->feed == NULL) {
        cx_service_reject_busy(call, 503, "the live feed is not running");
        return CX_SUCCESS;
    }
    if (after.data == NULL || after.size == 0)
        after = cx_call_text(call, "after");
    if (after.data != NULL) {
        if (!cx_live_feed_position_parse(after, &response->after)) {
            const cx_problem problem = {
                .status = 422,
                .type = "invalid-parameter",
                .detail = CX_STR("the position to continue from is not one of this feed"),
                .parameter = CX_STR("after"),
                .reason = CX_STR("expected the id of an event, such as 17.2")};
            cx_call_problem(call, &problem);
            return CX_SUCCESS;
        }
        response->has_after = true;
    }
    response->stream = cx_live_feed_stream;
    cx_call_answer(call, 200, "text/event-stream");
    cx_call_header(call, "X-Accel-Buffering", "no");
    return CX_SUCCESS;
}
