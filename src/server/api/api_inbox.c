/*
 * api_inbox.c - GET /api/v1/inbox, ../facets: everything that is recorded, as one list.
 *
 * A token sees what its scopes and its level let it see elsewhere; everything else is neither
 * listed nor counted.
 */
#include "server/feed/inbox_objects.h"
#include "server/route.h"

static const char *const facets_given[] = {"kind",  "verdict", "gate",   "k_eff",
                                           "level", "agent",   "source", "time"};

static bool is_page_full(const cx_call *call)
{
    return (call->token.scopes & CX_SCOPE_READ) != 0 && call->token.level == CX_LEVEL_FULL;
}

/* False: the call was answered with what is wrong. */
static bool read_query(cx_call *call, cx_inbox_query *out)
{
    *out = (cx_inbox_query){.words = cx_call_text(call, "q"),
                            .traces = (call->token.scopes & CX_SCOPE_READ) != 0,
                            .histories = is_page_full(call),
                            .level = is_page_full(call) ? CX_LEVEL_FULL : call->token.level,
                            .limit = 100};
    if (call->service->recorder != NULL)
        out->now_ns = cx_recorder_now(call->service->recorder);
    for (size_t i = 0; i < CX_FACETS; i++)
        out->chosen[i] = cx_call_text(call, facets_given[i]);
    if (out->chosen[CX_FACET_TIME].data == NULL || cx_inbox_time_is(out->chosen[CX_FACET_TIME]))
        return true;
    const cx_problem problem = {.status = 422,
                                .type = "invalid-parameter",
                                .detail = CX_STR("the query has an invalid parameter"),
                                .parameter = CX_STR("time"),
                                .reason =
                                    CX_STR("expected 1h, 24h, 7d or a day such as 2026-01-31")};
    cx_call_problem(call, &problem);
    return false;
}

typedef cx_status inbox_answer(cx_recorder *recorder, cx_index *index, const cx_inbox_query *query,
                               const cx_inbox_object *objects, size_t count, cx_buf *out,
                               cx_err *err);

static cx_status answer_listing(cx_call *call, const cx_inbox_query *query, inbox_answer *make,
                                cx_err *err)
{
    const cx_inbox_object *objects;
    size_t count = 0;
    cx_index *index = NULL;
    if (call->service->recorder != NULL && query->traces)
        CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_inbox_objects(call, &objects, &count, err));
    CX_TRY(make(call->service->recorder, index, query, objects, count, &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_inbox(cx_call *call, cx_err *err)
{
    cx_inbox_query query;
    const cx_param *limit = cx_call_param(call, "limit");
    if (!read_query(call, &query))
        return CX_SUCCESS;
    query.cursor = cx_call_text(call, "cursor");
    if (limit->given)
        query.limit = (uint32_t)limit->count;
    return answer_listing(call, &query, cx_recorder_inbox, err);
}

cx_status cx_api_inbox_facets(cx_call *call, cx_err *err)
{
    cx_inbox_query query;
    return read_query(call, &query) ? answer_listing(call, &query, cx_recorder_inbox_facets, err)
                                    : CX_SUCCESS;
}
