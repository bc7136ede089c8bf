/*
 * api_traces.c - search and retrieval of traces, chains, wakeups, capacity (trace.md §11).
 *
 * Searches read the index: a trace that was just acknowledged may appear a moment later (the index
 * follows the ledger; /metrics shows its lag).
 */
#include <math.h>

#include "server/route.h"

/* --- GET /traces ------------------------------------------------------------------------------ */

static int8_t tri_of(const cx_call *call, const char *name)
{
    const cx_param *param = cx_call_param(call, name);
    return (int8_t)(!param->given ? CX_NULL : param->flag ? CX_TRUE : CX_FALSE);
}

static int64_t time_of(const cx_call *call, const char *name)
{
    const cx_param *param = cx_call_param(call, name);
    return param->given ? param->time_ns : CX_TIME_NONE;
}

static double number_of(const cx_call *call, const char *name)
{
    const cx_param *param = cx_call_param(call, name);
    return param->given ? param->number : (double)NAN;
}

/* In the index's form (§10): the part after the last dot, in upper case. */
static cx_status action_of(cx_call *call, cx_str *out, cx_err *err)
{
    cx_str text = cx_call_text(call, "selected_action");
    *out = text;
    if (text.data == NULL)
        return CX_SUCCESS;
    for (size_t i = text.size; i > 0; i--)
        if (text.data[i - 1] == '.') {
            text = cx_str_from(text.data + i, text.size - i);
            break;
        }
    char *upper = CX_ARENA_ARRAY(call->arena, char, text.size + 1);
    if (upper == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < text.size; i++)
        upper[i] =
            text.data[i] >= 'a' && text.data[i] <= 'z' ? (char)(text.data[i] - 32) : text.data[i];
    *out = cx_str_from(upper, text.size);
    return CX_SUCCESS;
}

static cx_status make_query(cx_call *call, cx_trace_query *out, cx_err *err)
{
    const cx_param *level = cx_call_param(call, "level"), *limit = cx_call_param(call, "limit");
    const cx_param *verified = cx_call_param(call, "verified");
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    query.trace_type = cx_call_text(call, "trace_type");
    query.agent = cx_call_text(call, "agent_id_hash");
    query.task_id = cx_call_text(call, "task_id");
    query.thought_id = cx_call_text(call, "thought_id");
    query.cognitive_state = cx_call_text(call, "cognitive_state");
    query.domain = cx_call_text(call, "domain");
    query.text = cx_call_text(call, "text");
    CX_TRY(action_of(call, &query.selected_action, err));
    query.from_ns = time_of(call, "from");
    query.to_ns = time_of(call, "to");
    if (verified->given)
        query.verified = verified->tri;
    query.conscience_passed = tri_of(call, "conscience_passed");
    query.overridden = tri_of(call, "overridden");
    query.fragility_flag = tri_of(call, "fragility_flag");
    query.min_plausibility = number_of(call, "min_plausibility");
    query.max_plausibility = number_of(call, "max_plausibility");
    if (level->given)
        query.level = level->level;
    if (limit->given)
        query.limit = (uint32_t)limit->count;
    *out = query;
    return CX_SUCCESS;
}

cx_status cx_api_traces(cx_call *call, cx_err *err)
{
    cx_trace_query query;
    cx_index *index;
    cx_str cursor = cx_call_text(call, "cursor");
    CX_TRY(make_query(call, &query, err));
    /* Whether words occur in a trace reveals content that a lower level hides. */
    if (query.text.data != NULL && call->token.level != CX_LEVEL_FULL)
        return cx_fail(
            err, CX_E_DENIED,
            "text: searching the contents of traces needs a token with the level full_traces");
    if (cursor.data != NULL)
        CX_TRY(cx_recorder_cursor_parse(call->service->recorder, cursor, &query, err));
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_traces(call->service->recorder, index, &query, &call->response.body,
                                     err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

/* --- one trace, one agent --------------------------------------------------------------------- */

cx_status cx_api_trace(cx_call *call, cx_err *err)
{
    const cx_param *level = cx_call_param(call, "level");
    const cx_trace_wanted wanted = {
        .trace_id = call->captures[0],
        .agent = cx_call_text(call, "agent_id_hash"),
        .level = level->given ? level->level : call->token.level,
    };
    cx_recorder *recorder = call->service->recorder;
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    if (cx_call_flag(call, "raw"))
        CX_TRY(cx_recorder_raw_trace(recorder, index, &wanted, &call->response.body, err));
    else
        CX_TRY(cx_recorder_answer_trace(recorder, index, &wanted, &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_chain(cx_call *call, cx_err *err)
{
    static const cx_chain_profile profiles[] = {CX_CHAIN_AUTO, CX_CHAIN_SPEC_1_0, CX_CHAIN_AGENT};
    const cx_param *profile = cx_call_param(call, "profile");
    const cx_param *genesis = cx_call_param(call, "genesis");
    const cx_chain_options options = {
        .profile = profile->given ? profiles[profile->choice] : CX_CHAIN_AUTO,
        .genesis = genesis->given ? &genesis->digest : NULL,
    };
    cx_verdict verdict;
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_chain(call->service->recorder, index, call->captures[0], &options,
                                    &call->response.body, &verdict, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_wakeup(cx_call *call, cx_err *err)
{
    bool complete;
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_wakeup(call->service->recorder, index, call->captures[0],
                                     &call->response.body, &complete, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_capacity(cx_call *call, cx_err *err)
{
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_capacity(call->service->recorder, index, call->captures[0],
                                       &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

/* --- around a trace, without recording, all agents -------------------------------------------- */

cx_status cx_api_around(cx_call *call, cx_err *err)
{
    const cx_trace_wanted wanted = {
        .trace_id = call->captures[0],
        .agent = cx_call_text(call, "agent_id_hash"),
        .level = call->token.level,
    };
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_around(call->service->recorder, index, &wanted,
                                     cx_call_flag(call, "nodes"), &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_check(cx_call *call, cx_err *err)
{
    CX_TRY(cx_recorder_answer_check(call->service->recorder, call->request.body,
                                    &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_fleet(cx_call *call, cx_err *err)
{
    const cx_param *days = cx_call_param(call, "days");
    const cx_fleet_wanted wanted = {.days = days->given ? (unsigned)days->count : 30,
                                    .to_ns = time_of(call, "to"),
                                    .agent = cx_call_text(call, "agent")};
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_fleet(call->service->recorder, index, &wanted, &call->response.body,
                                    err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}
