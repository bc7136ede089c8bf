/*
 * route_live.h - the routes of agents' hooks and live sessions, a part of the table in route.c.
 */
#ifndef CX_SERVER_ROUTE_LIVE_H
#define CX_SERVER_ROUTE_LIVE_H

#include "live/api.h"
#include "server/route.h"

static const cx_route_param cx_hook_params[] = {
    {.name = "mode",
     .type = CX_PARAM_CHOICE,
     .choices = "observe|ask|enforce",
     .help = "The least mode; a session's policy or limits may be stricter. Default observe."},
    {.name = "fail_open",
     .type = CX_PARAM_FLAG,
     .help = "No objection when no decision is possible; recorded with each decision."},
};

#define CX_ROUTES_OF_SESSIONS                    \
    {.method = "POST",                           \
     .path = "/hook/{agent}",                    \
     .scopes = CX_SCOPE_HOOK,                    \
     .thread = CX_THREAD_WRITE,                  \
     .has_body = true,                           \
     .params = cx_hook_params,                   \
     .param_count = CX_COUNT_OF(cx_hook_params), \
     .answers = JSON,                            \
     .request_type = "any",                      \
     .response_type = "any",                     \
     .codes = "200 204 413 503",                 \
     .handler = cx_api_hook,                     \
     .problem = cx_api_hook_problem,             \
     .summary = "An event of a coding agent's hook: decided, recorded, answered in its form"},

#endif
