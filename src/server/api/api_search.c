/*
 * api_search.c - GET /api/v1/search and /api/v1/histories: steps by their words, and the list of
 * histories.
 *
 * They read the index, which follows the ledger: what was just acknowledged appears a moment later.
 */
#include "server/route.h"

static uint32_t limit_of(const cx_call *call, uint32_t otherwise)
{
    const cx_param *limit = cx_call_param(call, "limit");
    return limit->given ? (uint32_t)limit->count : otherwise;
}

cx_status cx_api_search(cx_call *call, cx_err *err)
{
    cx_index *index = NULL;
    cx_str cursor = cx_call_text(call, "cursor");
    cx_step_query query = {.words = cx_call_text(call, "q"),
                           .history = cx_call_text(call, "history"),
                           .kind = cx_call_text(call, "kind"),
                           .agent = cx_call_text(call, "agent"),
                           .tool = cx_call_text(call, "tool"),
                           .limit = limit_of(call, 50)};
    if (cursor.data != NULL)
        CX_TRY(cx_recorder_step_cursor(cursor, &query, err));
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_search(call->service->recorder, index, &query, &call->response.body,
                                     err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_histories(cx_call *call, cx_err *err)
{
    cx_index *index = NULL;
    cx_str cursor = cx_call_text(call, "cursor");
    cx_history_query query = CX_HISTORY_QUERY_INIT;
    query.words = cx_call_text(call, "q");
    query.name = cx_call_text(call, "history");
    query.source = cx_call_text(call, "source");
    query.agent = cx_call_text(call, "agent");
    query.limit = limit_of(call, 100);
    if (cursor.data != NULL)
        CX_TRY(cx_recorder_history_cursor(cursor, &query, err));
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_histories(call->service->recorder, index, &query,
                                        &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}
