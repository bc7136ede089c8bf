/*
 * api_events.c - POST /events: a batch of traces (trace.md §11).
 *
 * A readable batch is always answered with 200, whatever its events' verdicts: senders resend the
 * whole batch after every other status.
 */
#include "server/feed/live_feed.h"
#include "server/route.h"

static cx_status answer_problem(cx_call *call, const cx_batch_problem *found)
{
    const cx_problem problem = {
        .status = (unsigned)found->http,
        .type = found->type,
        .detail = found->detail.data == NULL ? CX_STR("the batch cannot be read") : found->detail,
        .pointer = found->pointer,
        .max_bytes = found->http == 413 ? call->service->body_max : 0,
    };
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}

static void count_events(cx_metrics *metrics, const cx_intake *intake)
{
    uint64_t counts[CX_COUNT_OF(metrics->events)] = {0};
    for (size_t i = 0; i < intake->received; i++)
        counts[intake->events[i].status]++;
    for (size_t i = 0; i < CX_COUNT_OF(counts); i++)
        if (counts[i] != 0)
            cx_counter_add(&metrics->events[i], counts[i]);
}

/* The rate of one key, whatever addresses its events come from. */
static bool admit_key(void *arg, cx_str key_id, size_t events)
{
    cx_call *call = arg;
    cx_service *service = call->service;
    bool admitted =
        cx_sender_rate_take(&service->open_keys, key_id, (double)events, call->began_ns);
    if (!admitted)
        cx_counter_add(&service->metrics.rejected_slow, 1);
    return admitted;
}

static cx_status take_batch(cx_call *call, cx_intake *out, cx_err *err)
{
    cx_recorder *recorder = call->service->recorder;
    const cx_open_sender sender = {admit_key, call};
    if (call->by_signature)
        return cx_recorder_take_open(recorder, call->request.body, &sender, call->arena, out, err);
    return cx_recorder_receive(recorder, call->request.body, CX_CAPTURE_AUTHENTICATED, call->arena,
                               out, err);
}

cx_status cx_api_events(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    cx_intake intake = {.problem = {.http = 0}};
    CX_ASSERT(CX_METRICS_EVENTS == CX_TAKE_STATUSES);
    cx_status status = take_batch(call, &intake, err);
    if (cx_failed(status)) {
        if (status.code == CX_E_IO)
            atomic_store(&service->ledger_failed, true);
        return status;
    }
    if (intake.problem.http != 0)
        return answer_problem(call, &intake.problem);
    count_events(&service->metrics, &intake);
    if (intake.changed)
        cx_live_feed_wake(service->feed);
    CX_TRY(cx_intake_json(&call->response.body, &intake, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}
