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

cx_status cx_api_events(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    cx_intake intake = {.problem = {.http = 0}};
    cx_status status = cx_recorder_take(service->recorder, call->request.body,
                                        CX_CAPTURE_AUTHENTICATED, call->arena, &intake, err);
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
