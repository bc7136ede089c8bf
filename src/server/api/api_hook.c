/*
 * api_hook.c - POST /hook/{agent}: an event of a coding agent's hook (docs/formats/live.md §9).
 *
 *   H1  Whatever goes wrong after the token was accepted, the answer to a question is "no" in the
 *       agent's own form: agents take every other status and every other body for no objection.
 *   H2  The query can only make a decision stricter, but for what it says about failures, which is
 *       recorded with each decision.
 */
#include "live/api.h"
#include "server/feed/live_feed.h"
#include "server/route.h"

static bool find_agent(const cx_call *call, cx_live_agent *out)
{
    *out = cx_live_agent_parse(call->captures[0]);
    return *out < CX_LIVE_AGENT_COUNT && *out != CX_LIVE_MCP;
}

/* "observe" that was asked for, and fail_open: a failure is no objection. */
static bool is_open(const cx_call *call)
{
    const cx_param *mode = cx_call_param(call, "mode");
    return cx_call_flag(call, "fail_open") || (mode->given && mode->choice == CX_LIVE_OBSERVE);
}

static void answer_body(cx_call *call, const cx_live_outcome *outcome)
{
    cx_buf_clear(&call->response.body);
    cx_buf_add_str(&call->response.body, outcome->out);
    if (outcome->out.size != 0)
        cx_call_answer(call, 200, "application/json");
    else
        cx_call_answer(call, 204, NULL);
}

/* H1 */
bool cx_api_hook_problem(cx_call *call, const cx_problem *problem)
{
    cx_live_agent agent;
    cx_live_outcome outcome;
    cx_arena arena;
    cx_err err;
    bool decided = false;
    if (call->token.id[0] == 0 || problem->status == 401 || problem->status == 403)
        return false; /* the agent's own setting for failures decides (onFailure) */
    if (!find_agent(call, &agent))
        agent = CX_LIVE_CLAUDE;
    cx_arena_init(&arena, call->service->alloc, 0);
    cx_status status = cx_live_answer_failure_http(
        agent, cx_bytes_str(call->request.body), is_open(call),
        problem->reason.data != NULL ? problem->reason : problem->detail, &arena, &decided,
        &outcome, &err);
    bool answered = !cx_failed(status) && decided;
    if (answered)
        answer_body(call, &outcome);
    cx_arena_done(&arena);
    return answered;
}

static bool is_about_the_body(cx_status status)
{
    return status.code == CX_E_SYNTAX || status.code == CX_E_MORE || status.code == CX_E_FORMAT ||
           status.code == CX_E_LIMIT;
}

static cx_status reject_hook(cx_call *call, const cx_err *why)
{
    const cx_problem problem = {.status = 422,
                                .type = "invalid-request",
                                .detail = cx_str_z(why->message),
                                .pointer = CX_STR("")};
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}

cx_status cx_api_hook(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    const cx_param *mode = cx_call_param(call, "mode");
    cx_live_outcome outcome;
    cx_live_options options = {.mode = mode->given ? (cx_live_mode)mode->choice : CX_LIVE_OBSERVE,
                               .fail_open = cx_call_flag(call, "fail_open"),
                               .via = "server",
                               .home = service->options.home_path,
                               .user_home = service->options.user_home,
                               .program = service->options.program,
                               .over_http = true};
    if (!find_agent(call, &options.agent))
        return cx_fail(err, CX_E_NOT_FOUND,
                       "no such agent: expected claude, codex, gemini, cursor or copilot");
    cx_status status = cx_live_take(cx_recorder_home(service->recorder), &options,
                                    cx_bytes_str(call->request.body), call->arena, &outcome, err);
    if (is_about_the_body(status))
        return reject_hook(call, err);
    if (status.code == CX_E_IO)
        atomic_store(&service->ledger_failed, true);
    CX_TRY(status);
    cx_live_feed_wake(service->feed);
    answer_body(call, &outcome);
    return CX_SUCCESS;
}
