/*
 * alerting.c - the threads that detect and send; see alerting.h.
 */
#include "server/alerts/alerting.h"

#include <stdio.h>

#include "crypto/api.h"
#include "index/api.h"
#include "live_audit/api.h"
#include "os/api.h"
#include "server/service.h"

#define POLL_MS 500
#define SEND_TIMEOUT_MS 30000
#define COMPLAINT_MAX 120 /* bytes of a program's standard error in a reason */
#define OUTPUT_MAX ((size_t)1 << 20)
#define REASON_SIZE CX_ERR_MESSAGE_SIZE
#define MS INT64_C(1000000)

typedef struct sender {
    cx_alerting *alerting;
    cx_destination destination;
    cx_thread thread;
    cx_arena arena; /* of one message */
    const char *url;
    bool failing; /* the last round could not use the queue: said once */
} sender;

struct cx_alerting {
    cx_service *service;
    const cx_alloc *alloc;
    cx_alerting_options options;
    cx_lock lock;
    atomic_bool stopping;
    cx_thread detector;
    sender senders[CX_DESTINATIONS];
    char *alertmanager_url;
    size_t alertmanager_url_size;
};

/* --- the secret ------------------------------------------------------------------------------- */

#define SECRET_PREFIX CX_STR("whsec_")

static cx_status fail_secret(cx_err *err, const char *what)
{
    return cx_fail_at(err, CX_E_USAGE, "BadSecret", CX_NO_OFFSET,
                      "%s; expected one line, whsec_ and the base64 of 24 to 64 random bytes",
                      what);
}

cx_status cx_webhook_secret_parse(cx_str text, cx_arena *arena, cx_bytes *out, cx_err *err)
{
    cx_buf bytes;
    while (text.size != 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.size--;
    if (!cx_str_starts(text, SECRET_PREFIX))
        return fail_secret(err, "the secret does not begin with whsec_");
    text = cx_str_from(text.data + SECRET_PREFIX.size, text.size - SECRET_PREFIX.size);
    cx_buf_init(&bytes, arena->alloc);
    cx_status status = CX_SUCCESS;
    if (!cx_base64_decode(text, CX_BASE64, &bytes))
        status = fail_secret(err, "what follows whsec_ is not base64");
    else
        status = cx_buf_check(&bytes, err);
    if (!cx_failed(status) &&
        (bytes.size < CX_WEBHOOK_SECRET_MIN || bytes.size > CX_WEBHOOK_SECRET_MAX))
        status = fail_secret(err, bytes.size < CX_WEBHOOK_SECRET_MIN ? "the secret is too short"
                                                                     : "the secret is too long");
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&bytes));
        *out = cx_str_bytes(copy);
        status = copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&bytes);
    return status;
}

/* Standard Webhooks: v1, and HMAC-SHA-256 over id, time and body with a full stop between. */
void cx_webhook_sign(cx_bytes secret, cx_str id, cx_str timestamp, cx_str body,
                     char out[CX_WEBHOOK_SIGNATURE_SIZE])
{
    const cx_bytes dot = cx_str_bytes(CX_STR("."));
    const cx_bytes pieces[] = {cx_str_bytes(id), dot, cx_str_bytes(timestamp), dot,
                               cx_str_bytes(body)};
    const cx_digest mac = cx_hmac_sha256(secret, pieces, CX_COUNT_OF(pieces));
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "v1,");
    cx_base64_add(&text, cx_bytes_from(mac.bytes, sizeof mac.bytes), CX_BASE64);
    CX_ASSERT(text.size < CX_WEBHOOK_SIGNATURE_SIZE);
    (void)snprintf(out, CX_WEBHOOK_SIGNATURE_SIZE, "%.*s", (int)text.size, (const char *)text.data);
    cx_buf_done(&text);
}

/* --- options ---------------------------------------------------------------------------------- */

static cx_status check_url(const char *option, const char *url, cx_err *err)
{
    cx_err why = {0};
    if (url == NULL || !cx_failed(cx_http_post_check_url(url, &why)))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "BadUrl", CX_NO_OFFSET, "option --%s: %s", option,
                      why.message);
}

cx_status cx_alerting_check(const cx_alerting_options *options, cx_err *err)
{
    CX_TRY(check_url("alert-webhook", options->webhook, err));
    CX_TRY(check_url("alertmanager", options->alertmanager, err));
    if (options->alertmanager != NULL && strchr(options->alertmanager, '?') != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "option --alertmanager: expected no query (?..): /api/v2/alerts is added");
    return options->webhook == NULL && options->alertmanager == NULL ? CX_SUCCESS
                                                                     : cx_http_post_ready(err);
}

static bool is_stopping(const cx_alerting *alerting)
{
    return atomic_load(&alerting->stopping);
}

static void sleep_for(cx_alerting *alerting, uint64_t milliseconds)
{
    cx_lock_enter(&alerting->lock);
    if (!is_stopping(alerting))
        cx_lock_wait_for(&alerting->lock, milliseconds > 60000 ? 60000 : (uint32_t)milliseconds);
    cx_lock_leave(&alerting->lock);
}

/* --- the detectors ---------------------------------------------------------------------------- */

static void note_round(cx_service *service, const cx_detect_round *round, uint64_t started_ns)
{
    cx_metrics *m = &service->metrics;
    uint64_t took = service->io->monotonic_ns(service->io) - started_ns;
    cx_counter_add(&m->detect_rounds[0], 1);
    cx_counter_add(&m->detect_raised, round->raised);
    atomic_store(&m->detect_last_us, took / 1000);
    atomic_store(&m->detect_last_at, service->io->wall_ns(service->io) / UINT64_C(1000000000));
    if (round->raised != 0)
        cx_service_log(service, "the detectors raised %llu alerts; 'cortex alert list' shows them",
                       (unsigned long long)round->raised);
}

static void detect_once(cx_alerting *alerting, cx_detect_schedule *schedule, bool *failing)
{
    cx_service *service = alerting->service;
    cx_index *index = NULL;
    cx_detect_round round;
    cx_err err = {0};
    uint64_t started = service->io->monotonic_ns(service->io);
    cx_status status = cx_index_open(service->index_where, CX_INDEX_READ, &index, &err);
    if (!cx_failed(status))
        status = cx_recorder_detect_round(service->recorder, index, schedule, &round, &err);
    cx_index_close(index);
    if (!cx_failed(status)) {
        note_round(service, &round, started);
    } else {
        cx_counter_add(&service->metrics.detect_rounds[1], 1);
        if (!*failing)
            cx_service_log(service, "the detectors could not run: %s; they are tried again",
                           err.message);
    }
    *failing = cx_failed(status);
}

/* --- audits of live sessions (live.md §10.5) -------------------------------------------------- */

#define AUDIT_BYTES_MAX ((size_t)128 << 20) /* of a session's transcripts, in memory */
#define AUDIT_FIRST_NS (UINT64_C(7) * 86400 * 1000000000)

typedef struct audit_round {
    cx_service *service;
    uint64_t raised;
} audit_round;

/* One alert a session, with the errors by their ids. */
static cx_status take_audit(void *arg, const cx_live_audit_report *report, cx_err *err)
{
    audit_round *round = arg;
    cx_service *service = round->service;
    cx_buf names;
    bool raised = false;
    cx_gap_alert alert = {.agent = report->agent,
                          .session = report->session,
                          .actor = report->actor,
                          .at_ns = (int64_t)service->io->wall_ns(service->io)};
    cx_counter_add(&service->metrics.audits[report->verdict], 1);
    if (report->verdict != CX_BROKEN)
        return CX_SUCCESS;
    cx_buf_init(&names, service->alloc);
    for (cx_live_audit_kind kind = 0; kind < CX_LIVE_AUDIT_KIND_COUNT; kind++) {
        if (report->counts[kind] == 0 || cx_live_audit_severity_of(kind) != CX_LIVE_AUDIT_ERROR)
            continue;
        cx_buf_printf(&names, "%s%s", names.size == 0 ? "" : " ", cx_live_audit_name(kind));
        alert.count += report->counts[kind];
    }
    alert.findings = cx_buf_str(&names);
    alert.message = report->finding_count == 0 ? CX_STR("") : report->findings[0].message;
    cx_status status = cx_buf_check(&names, err);
    if (!cx_failed(status))
        status = cx_recorder_raise_gap(service->recorder, &alert, &raised, err);
    round->raised += raised;
    cx_buf_done(&names);
    return status;
}

/* `since_ns` is where the next round begins. */
static void audit_once(cx_alerting *alerting, int64_t *since_ns, bool *failing)
{
    cx_service *service = alerting->service;
    audit_round round = {.service = service};
    int64_t now = (int64_t)service->io->wall_ns(service->io);
    const cx_live_audit_options options = {.alloc = service->alloc,
                                           .no_work_tree = true,
                                           .only_with_hooks = true,
                                           .max_bytes = AUDIT_BYTES_MAX,
                                           .since_ns = *since_ns};
    cx_err err = {0};
    cx_status status =
        cx_live_audit_all(cx_recorder_home(service->recorder), &options, take_audit, &round, &err);
    if (!cx_failed(status)) {
        *since_ns = now;
    } else {
        cx_counter_add(&service->metrics.audits_failed, 1);
        if (!*failing)
            cx_service_log(service, "sessions could not be audited: %s; it is tried again",
                           err.message);
    }
    *failing = cx_failed(status);
    if (round.raised != 0)
        cx_service_log(service,
                       "calls ran that no hook decided, in %llu sessions; 'cortex hook audit "
                       "--all' names them",
                       (unsigned long long)round.raised);
}

static void detector_thread(void *arg)
{
    cx_alerting *alerting = arg;
    const cx_io *io = alerting->service->io;
    cx_detect_schedule schedule = {0};
    bool failing = false, audit_failing = false;
    int64_t since_ns = (int64_t)(io->wall_ns(io) - AUDIT_FIRST_NS);
    uint64_t every = alerting->options.detect_every_ms * (uint64_t)MS;
    uint64_t next = io->monotonic_ns(io) + every;
    while (!is_stopping(alerting)) {
        uint64_t now = io->monotonic_ns(io);
        if (now < next) {
            sleep_for(alerting, (next - now) / (uint64_t)MS + 1);
            continue;
        }
        detect_once(alerting, &schedule, &failing);
        audit_once(alerting, &since_ns, &audit_failing);
        next = io->monotonic_ns(io) + every;
    }
}

/* --- one attempt ------------------------------------------------------------------------------ */

/* An answer that is about this message: sent again it would not be taken either. */
static bool is_refusal(unsigned status)
{
    return status == 400 || status == 413 || status == 415 || status == 422;
}

static void judge_response(const cx_http_post_result *result, char reason[REASON_SIZE],
                           cx_delivery_attempt *out)
{
    out->result = result->status / 100 == 2    ? CX_ATTEMPT_DELIVERED
                  : is_refusal(result->status) ? CX_ATTEMPT_REFUSED
                                               : CX_ATTEMPT_AGAIN;
    out->retry_after_s = result->retry_after_s;
    if (out->result != CX_ATTEMPT_DELIVERED)
        (void)snprintf(reason, REASON_SIZE, "the receiver answered %u%s", result->status,
                       result->status / 100 == 3 ? ", and redirects are not followed" : "");
}

static void post_message(sender *s, const cx_delivery *delivery, const char *const *headers,
                         size_t header_count, char reason[REASON_SIZE], cx_delivery_attempt *out)
{
    cx_err err = {0};
    cx_http_post_result result = {0};
    const cx_http_post post = {.url = s->url,
                               .headers = headers,
                               .header_count = header_count,
                               .body = cx_str_bytes(delivery->body),
                               .timeout_ms = SEND_TIMEOUT_MS,
                               .cancel = &s->alerting->stopping};
    if (cx_failed(cx_http_post_send(&post, &result, &err))) {
        out->result = CX_ATTEMPT_AGAIN;
        (void)snprintf(reason, REASON_SIZE, "%s", err.message);
        return;
    }
    judge_response(&result, reason, out);
}

static void send_to_webhook(sender *s, const cx_delivery *delivery, char reason[REASON_SIZE],
                            cx_delivery_attempt *out)
{
    const cx_io *io = s->alerting->service->io;
    char seconds[24], signature[CX_WEBHOOK_SIGNATURE_SIZE];
    (void)snprintf(seconds, sizeof seconds, "%llu",
                   (unsigned long long)(io->wall_ns(io) / UINT64_C(1000000000)));
    cx_webhook_sign(s->alerting->options.webhook_secret, delivery->id, cx_str_z(seconds),
                    delivery->body, signature);
    const char *headers[] = {
        "Content-Type: application/json",
        cx_arena_printf(&s->arena, "webhook-id: %.*s", (int)delivery->id.size, delivery->id.data)
            .data,
        cx_arena_printf(&s->arena, "webhook-timestamp: %s", seconds).data,
        cx_arena_printf(&s->arena, "webhook-signature: %s", signature).data,
    };
    for (size_t i = 0; i < CX_COUNT_OF(headers); i++)
        if (headers[i] == NULL) {
            (void)snprintf(reason, REASON_SIZE, "out of memory");
            return;
        }
    post_message(s, delivery, headers, CX_COUNT_OF(headers), reason, out);
}

static void send_to_alertmanager(sender *s, const cx_delivery *delivery, char reason[REASON_SIZE],
                                 cx_delivery_attempt *out)
{
    static const char *const headers[] = {"Content-Type: application/json"};
    post_message(s, delivery, headers, CX_COUNT_OF(headers), reason, out);
}

static void describe_end(const char *name, const cx_proc_result *result, const cx_buf *complaints,
                         char reason[REASON_SIZE])
{
    const char *end =
        complaints->size == 0 ? NULL : memchr(complaints->data, '\n', complaints->size);
    size_t size = end == NULL ? complaints->size : (size_t)(end - (const char *)complaints->data);
    if (size > COMPLAINT_MAX)
        size = COMPLAINT_MAX;
    if (result->timed_out)
        (void)snprintf(reason, REASON_SIZE, "%.80s did not end in %d s", name,
                       CX_ALERT_COMMAND_SECONDS);
    else
        (void)snprintf(reason, REASON_SIZE, "%.80s ended with %s %d%s%.*s", name,
                       result->signal != 0 ? "signal" : "exit code",
                       result->signal != 0 ? result->signal : result->exit_code,
                       size == 0 ? "" : ": ", (int)size,
                       size == 0 ? "" : (const char *)complaints->data);
}

static void run_alert_command(sender *s, const cx_delivery *delivery, char reason[REASON_SIZE],
                              cx_delivery_attempt *out)
{
    cx_err err = {0};
    cx_proc_result result;
    cx_buf complaints;
    cx_buf_init(&complaints, s->alerting->alloc);
    const cx_proc_options how = {.argv = s->alerting->options.command,
                                 .inherit_env = true,
                                 .input = cx_str_bytes(delivery->body),
                                 .timeout_ms = CX_ALERT_COMMAND_SECONDS * 1000,
                                 .output_limit_bytes = OUTPUT_MAX,
                                 .cancel = &s->alerting->stopping};
    cx_status status = cx_proc_run(&how, NULL, &complaints, &result, &err);
    if (cx_failed(status)) {
        (void)snprintf(reason, REASON_SIZE, "%s", err.message);
    } else if (result.exit_code == 0) {
        out->result = CX_ATTEMPT_DELIVERED;
    } else {
        if (result.exit_code == CX_ALERT_COMMAND_REFUSES)
            out->result = CX_ATTEMPT_REFUSED;
        describe_end(how.argv[0], &result, &complaints, reason);
    }
    cx_buf_done(&complaints);
}

/* --- the queue -------------------------------------------------------------------------------- */

static void log_attempt(const sender *s, const cx_delivery *delivery, cx_delivery_state state,
                        const char *reason)
{
    cx_service *service = s->alerting->service;
    const char *name = cx_destination_name(s->destination);
    const char *word = delivery->event.data + sizeof "alert." - 1;
    int id_size = (int)delivery->alert_id.size;
    unsigned long long attempt = delivery->attempts + 1;
    if (state == CX_DELIVERY_DELIVERED)
        cx_service_log(service, "alert %.*s %s: delivered to %s, attempt %llu", id_size,
                       delivery->alert_id.data, word, name, attempt);
    else if (state == CX_DELIVERY_WAITING)
        cx_service_log(service, "alert %.*s %s: %s, attempt %llu failed, tried again later: %s",
                       id_size, delivery->alert_id.data, word, name, attempt, reason);
    else
        cx_service_log(service, "alert %.*s %s: given up for %s after %llu attempts (%s): %s",
                       id_size, delivery->alert_id.data, word, name, attempt,
                       cx_delivery_state_name(state), reason);
}

static cx_status send_message(sender *s, const cx_delivery *delivery, cx_err *err)
{
    static void (*const send[CX_DESTINATIONS])(
        sender * s, const cx_delivery *delivery, char reason[REASON_SIZE],
        cx_delivery_attempt *out) = {send_to_webhook, send_to_alertmanager, run_alert_command};
    char reason[REASON_SIZE] = "";
    cx_delivery_attempt attempt = {.result = CX_ATTEMPT_AGAIN};
    cx_delivery_state state;
    send[s->destination](s, delivery, reason, &attempt);
    if (attempt.result != CX_ATTEMPT_DELIVERED && is_stopping(s->alerting))
        return CX_SUCCESS; /* given up by us: it waits, as if it had not been tried */
    attempt.error = cx_str_z(reason);
    CX_TRY(cx_deliveries_record(s->alerting->service->recorder, delivery, &attempt, &state, err));
    cx_counter_add(&s->alerting->service->metrics.alert_attempts[s->destination][state], 1);
    log_attempt(s, delivery, state, reason);
    return CX_SUCCESS;
}

/* Sends what is due; `*out_wait_ms`: until something else may be. */
static cx_status send_due(sender *s, uint64_t *out_wait_ms, cx_err *err)
{
    cx_recorder *recorder = s->alerting->service->recorder;
    cx_delivery delivery;
    uint64_t count;
    int64_t due_ns, now_ns = cx_recorder_now(recorder);
    CX_TRY(cx_deliveries_collect(recorder, s->destination, &count, err));
    CX_TRY(cx_deliveries_next(recorder, s->destination, &s->arena, &delivery, &due_ns, err));
    if (due_ns == CX_TIME_NONE)
        return CX_SUCCESS;
    if (due_ns > now_ns) {
        uint64_t wait = (uint64_t)(due_ns - now_ns) / (uint64_t)MS + 1;
        if (wait < *out_wait_ms)
            *out_wait_ms = wait;
        return CX_SUCCESS;
    }
    *out_wait_ms = 0;
    return send_message(s, &delivery, err);
}

static void sender_thread(void *arg)
{
    sender *s = arg;
    cx_arena_mark empty = cx_arena_mark_now(&s->arena);
    while (!is_stopping(s->alerting)) {
        cx_err err = {0};
        uint64_t wait_ms = POLL_MS;
        cx_status status = send_due(s, &wait_ms, &err);
        cx_arena_reset(&s->arena, empty);
        if (cx_failed(status)) {
            wait_ms = CX_DELIVERY_PAUSE_FIRST_MS;
            if (!s->failing)
                cx_service_log(s->alerting->service,
                               "alerts for %s wait: the queue (alerts.db) cannot be used: %s",
                               cx_destination_name(s->destination), err.message);
        }
        s->failing = cx_failed(status);
        if (wait_ms != 0)
            sleep_for(s->alerting, wait_ms);
    }
}

/* --- start and end ---------------------------------------------------------------------------- */

static cx_status make_alertmanager_url(cx_alerting *alerting, cx_err *err)
{
    const char *given = alerting->options.alertmanager;
    size_t size = given == NULL ? 0 : strlen(given);
    if (given == NULL)
        return CX_SUCCESS;
    while (size != 0 && given[size - 1] == '/')
        size--;
    alerting->alertmanager_url_size = size + sizeof "/api/v2/alerts";
    alerting->alertmanager_url = cx_alloc_new(alerting->alloc, alerting->alertmanager_url_size);
    if (alerting->alertmanager_url == NULL)
        return cx_fail_nomem(err);
    (void)snprintf(alerting->alertmanager_url, alerting->alertmanager_url_size,
                   "%.*s/api/v2/alerts", (int)size, given);
    return CX_SUCCESS;
}

static cx_status start_sender(cx_alerting *alerting, cx_destination destination, const char *url,
                              bool wanted, cx_err *err)
{
    sender *s = &alerting->senders[destination];
    *s = (sender){.alerting = alerting, .destination = destination, .url = url};
    cx_arena_init(&s->arena, alerting->alloc, 0);
    if (!wanted)
        return CX_SUCCESS;
    CX_TRY(cx_deliveries_begin(alerting->service->recorder, destination, err));
    return cx_thread_start(&s->thread, sender_thread, s)
               ? CX_SUCCESS
               : cx_fail(err, CX_E_IO, "cannot start a thread that sends alerts");
}

static cx_status start_threads(cx_alerting *alerting, cx_err *err)
{
    const cx_alerting_options *options = &alerting->options;
    CX_TRY(make_alertmanager_url(alerting, err));
    CX_TRY(start_sender(alerting, CX_TO_WEBHOOK, options->webhook, options->webhook != NULL, err));
    CX_TRY(start_sender(alerting, CX_TO_ALERTMANAGER, alerting->alertmanager_url,
                        options->alertmanager != NULL, err));
    CX_TRY(start_sender(alerting, CX_TO_COMMAND, NULL, options->command != NULL, err));
    if (options->detect_every_ms != 0 &&
        !cx_thread_start(&alerting->detector, detector_thread, alerting))
        return cx_fail(err, CX_E_IO, "cannot start the thread of the detectors");
    return CX_SUCCESS;
}

cx_status cx_alerting_open(cx_service *service, const cx_alerting_options *options,
                           cx_alerting **out, cx_err *err)
{
    CX_TRY(cx_alerting_check(options, err));
    cx_alerting *alerting = cx_alloc_zeroed(service->alloc, 1, sizeof *alerting);
    if (alerting == NULL)
        return cx_fail_nomem(err);
    alerting->service = service;
    alerting->alloc = service->alloc;
    alerting->options = *options;
    cx_lock_init(&alerting->lock);
    cx_status status = start_threads(alerting, err);
    if (cx_failed(status))
        cx_alerting_close(alerting);
    else
        *out = alerting;
    return status;
}

void cx_alerting_close(cx_alerting *alerting)
{
    if (alerting == NULL)
        return;
    atomic_store(&alerting->stopping, true);
    cx_lock_enter(&alerting->lock);
    cx_lock_wake(&alerting->lock);
    cx_lock_leave(&alerting->lock);
    cx_thread_join(&alerting->detector);
    for (cx_destination d = 0; d < CX_DESTINATIONS; d++) {
        cx_thread_join(&alerting->senders[d].thread);
        cx_arena_done(&alerting->senders[d].arena);
    }
    cx_alloc_free(alerting->alloc, alerting->alertmanager_url, alerting->alertmanager_url_size);
    cx_lock_done(&alerting->lock);
    cx_alloc_free(alerting->alloc, alerting, sizeof *alerting);
}
